"""The results of a sweep or a suite in its folder: each says what it is a result of, and is checked when it is read."""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tidegate._files import TEMPORARY, named, write_file
from tidegate.errors import OutputError, TidegateError
from tidegate.results.folders import add_file, begin_folder, keep
from tidegate.results.saved import read_json

if sys.platform != "win32":
    import fcntl

SWEEP_FILE = "sweep.json"
_FORMAT = 2
_TEMPORARY = re.compile(rf"\.([0-9a-f]{{32}}|[a-z]+)\.(json|csv|md|html|xml|png){re.escape(TEMPORARY)}.*")


@dataclass(frozen=True)
class Results:
    """The folder of a sweep, or of a suite."""

    folder: Path
    kind: str = SWEEP_FILE
    """The file in it that says what is run."""

    def file(self, key: str) -> Path:
        """Where a result is, or will be."""
        return self.folder / "results" / f"{key}.json"

    def read(self, key: str) -> Mapping[str, Any] | None:
        """The result under a key, if it is there, whole, and a result of what the key stands for."""
        try:
            found = read_json(self.file(key))
        except TidegateError:
            return None
        if not isinstance(found, dict) or found.get("key") != key:
            return None
        content = found.pop("content", None)
        return found if content == _content(found) else None

    def write(self, key: str, result: Mapping[str, Any]) -> Path:
        """Writes one, whole or not at all."""
        about = {"key": key, **result}
        file = self.file(key)
        # once as they will be read: a tuple is a list then
        plain = json.loads(json.dumps(about))
        write_file(file, json.dumps({**plain, "content": _content(plain)}) + "\n")
        return file

    def clear_way(self, key: str) -> None:
        """Moves a file away that has the name of a key's result and is none."""
        with named(self.file(key)):
            if self.file(key).exists():
                keep(self.file(key))

    @contextmanager
    def begun(self, plan: Mapping[str, Any], variants: Sequence[str], seeds: Sequence[int]) -> Iterator[None]:
        """The folder for a plan, for nobody else meanwhile, without what a killed run left unfinished.

        Args:
            plan: What is written into it.
            variants: An identity of each combination of settings.
            seeds: Each of them is run with these.

        Raises:
            OutputError: when it cannot be written, holds another plan, or somebody is at work in it.
        """
        begin_folder(self.folder, self.kind)
        self._check_plan(set(variants), seeds)
        results = self.folder / "results"
        with named(results):
            results.mkdir(parents=True, exist_ok=True)
        with _alone(results, self.folder):
            for place in (self.folder, results):
                for file in place.glob(f".*{TEMPORARY}*"):
                    if _TEMPORARY.fullmatch(file.name):
                        file.unlink(missing_ok=True)
            about = {"format": _FORMAT, **plan, "seeds": list(seeds), "variants": sorted(set(variants))}
            add_file(self.folder, self.kind, json.dumps(about, indent=1) + "\n")
            yield

    def _check_plan(self, variants: set[str], seeds: Sequence[int]) -> None:
        """A plan may grow, or be run again; another one has a folder of its own."""
        try:
            before = read_json(self.folder / self.kind)
            had, with_seeds = set(before["variants"]), list(before["seeds"])
        except (TidegateError, KeyError, TypeError):
            return
        if not had <= variants:
            why = f"{len(had - variants)} of its {len(had)} combinations are not in this one"
        elif missing := [seed for seed in with_seeds if seed not in set(seeds)]:
            why = f"its seed {missing[0]} is not in this one"
        else:
            return
        right = "choose another folder, or repeat all that is there and add to it"
        raise OutputError(f"{self.folder}: holds a sweep with another plan: {why}; {right}")


def _content(found: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(found, sort_keys=True).encode()).hexdigest()


@contextmanager
def _alone(folder: Path, shown: Path) -> Iterator[None]:
    """A lock that ends with the process."""
    if sys.platform == "win32":
        yield
        return
    with named(folder):
        handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        raise OutputError(f"{shown}: somebody is at work in it; wait for it, or choose another folder") from None
    except OSError:
        pass  # a file system without locks
    try:
        yield
    finally:
        os.close(handle)
