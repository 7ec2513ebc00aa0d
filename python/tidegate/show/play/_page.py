"""The page as one file: what was built, with the situations put into it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tidegate.errors import InputError

BUILT = Path(__file__).resolve().parent / "page.html"
"""The page without situations: `make page` builds it from `page/`, and wheels have it."""

_PLACE = "/*PAYLOAD*/null"
_NOT_IN_IT = ("python", "live", "recordings", "codec")  # crates that are not a part of the browser's engine
_MARKS = (b"<title>tidegate play</title>", b'id="payload"')


def is_built() -> bool:
    """Whether the page is here."""
    return BUILT.is_file()


def newer() -> Path | None:
    """A file of a clone that has changed since its page was built, which then runs another engine than the clone."""
    root = BUILT.parents[4]
    is_clone = (root / "page" / "build.mjs").is_file()
    sources = [*(root / "page" / "src").glob("*"), *(root / "crates").glob("*/src/**/*.rs")] if is_clone else []
    built = BUILT.stat().st_mtime
    changed = (file for file in sources if file.parts[len(root.parts) + 1] not in _NOT_IN_IT)
    return next((file.relative_to(root) for file in changed if file.stat().st_mtime > built), None)


def is_page(file: Path) -> bool:
    """Whether a file is such a page."""
    text = file.read_bytes()
    return all(mark in text for mark in _MARKS)


def page(payload: Mapping[str, Any]) -> str:
    """The page with its situations, as one HTML file that asks for nothing else.

    Args:
        payload: What [payload][tidegate.show.play.payload] made.

    Raises:
        InputError: when the page was not built.
    """
    try:
        text = BUILT.read_text(encoding="utf-8")
    except FileNotFoundError:
        needs = "which needs node and Rust's target wasm32-unknown-unknown"
        raise InputError(f"the page is not built here: `make page` builds it, {needs}; wheels have it") from None
    before, place, after = text.partition(_PLACE)
    if not place or _PLACE in after:
        raise InputError(f"{BUILT}: is no page of tidegate's: {_PLACE} is not once in it; `make page` builds it anew")
    # what could end the element that it stands in: JSON may write any sign by its number
    data = json.dumps(payload, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
    return f"{before}{data}{after}"
