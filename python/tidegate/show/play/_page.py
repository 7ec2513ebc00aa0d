"""The page as one file: the built page, with the situations put into it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tidegate.errors import InputError

BUILT = Path(__file__).resolve().parent / "page.html"
"""The page without situations: `make page` builds it from `page/`, and wheels have it."""

_SLOT = "/*PAYLOAD*/null"
_EXCLUDED = ("python", "live", "recordings", "codec")  # crates that are not part of the browser's engine
_MARKS = (b"<title>tidegate play</title>", b'id="payload"')


def is_built() -> bool:
    """Whether the page is built."""
    return BUILT.is_file()


def newer() -> Path | None:
    """A source file that is newer than the built page, so that the page runs an older engine; `None` without such."""
    root = BUILT.parents[4]
    is_clone = (root / "page" / "build.mjs").is_file()
    sources = [*(root / "page" / "src").glob("*"), *(root / "crates").glob("*/src/**/*.rs")] if is_clone else []
    built = BUILT.stat().st_mtime
    changed = (file for file in sources if file.parts[len(root.parts) + 1] not in _EXCLUDED)
    return next((file.relative_to(root) for file in changed if file.stat().st_mtime > built), None)


def is_page(file: Path) -> bool:
    """Whether a file is a page that this module made."""
    text = file.read_bytes()
    return all(mark in text for mark in _MARKS)


_NEEDS = {"node": "node 20 or newer (https://nodejs.org)", "cargo": "Rust (https://rustup.rs)"}
"""Programs that build the page, and their names for people."""


def _way_to_the_page() -> str:
    """The way to the page from here, in words: a clone builds it, a wheel has it."""
    clone = Path(__file__).resolve().parents[4]
    if not (clone / "page" / "package.json").is_file():
        return "install a wheel of tidegate, which has the page"
    missing = [needed for program, needed in _NEEDS.items() if shutil.which(program) is None]
    first = f"install {' and '.join(missing)}, then " if missing else ""
    return f"{first}run `make page` in {clone}, which takes a minute or two"


def page(payload: Mapping[str, Any]) -> str:
    """Makes the page with its situations, as one HTML file that loads nothing else.

    Args:
        payload: The result of [payload][tidegate.show.play.payload].

    Raises:
        InputError: when the page was not built.
    """
    try:
        text = BUILT.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InputError(f"the page is not built here; {_way_to_the_page()}") from None
    before, slot, after = text.partition(_SLOT)
    if not slot or _SLOT in after:
        raise InputError(
            f"{BUILT} is not a page of tidegate: expected {_SLOT} exactly once; run `make page` to build it again"
        )
    # "<" could end the element around the data; JSON may write it by its number
    data = json.dumps(payload, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
    return f"{before}{data}{after}"
