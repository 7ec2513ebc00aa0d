"""Results of a sweep or a suite in its folder: each has the key of its run, and is checked when it is loaded."""

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
from typing import TYPE_CHECKING, Any

from tidegate._files import TEMPORARY, writable, write_file
from tidegate.errors import OutputError, TidegateError
from tidegate.results.folders import add_file, begin_folder, keep, lock
from tidegate.results.saved import read_json, within

if TYPE_CHECKING:
    from tidegate.results.shapes import Shape

SWEEP_FILE = "sweep.json"
_FORMAT = 2
_TEMPORARY = re.compile(rf"\.([0-9a-f]{{32}}|[a-z]+)\.(json|csv|md|html|xml|png){re.escape(TEMPORARY)}.*")


@dataclass(frozen=True)
class Results:
    """The folder of a sweep, or of a suite."""

    folder: Path
    kind: str = SWEEP_FILE
    """Name of the file with the plan of the runs."""
    row: type[Shape] | None = None
    """Shape of a result, which is checked when it is loaded."""

    def file(self, key: str) -> Path:
        """Path of the result under a key, whether it exists or not."""
        return within(self.folder, f"results/{key}.json")

    def read(self, key: str) -> Mapping[str, Any] | None:
        """Loads the result under a key; `None` if it is missing, damaged or of another key.

        Raises:
            InputError: when it is as it was written, and no result of this kind.
        """
        file = self.file(key)
        try:
            result = read_json(file)
        except TidegateError:
            return None
        if not isinstance(result, dict) or result.get("key") != key:
            return None
        content = result.pop("content", None)
        if content != content_hash(result):
            return None
        if self.row is not None:
            from tidegate.results.shapes import checked

            checked(file, result, self.row)
        return result

    def write(self, key: str, result: Mapping[str, Any]) -> Path:
        """Writes the result under a key, completely or not at all."""
        about = {"key": key, **result}
        file = self.file(key)
        # the hash is of the data as they will be loaded, where a tuple has become a list
        decoded = json.loads(json.dumps(about))
        write_file(file, json.dumps({**decoded, "content": content_hash(decoded)}) + "\n")
        return file

    def clear_way(self, key: str) -> None:
        """Renames a file that has the name of a key's result and is not one."""
        with writable(self.file(key)):
            if self.file(key).exists():
                keep(self.file(key))

    @contextmanager
    def prepared(self, plan: Mapping[str, Any], variants: Sequence[str], seeds: Sequence[int]) -> Iterator[None]:
        """Prepares the folder for a plan, locks it meanwhile, and removes unfinished files of a killed run.

        Args:
            plan: Fields of the plan's file.
            variants: An identity of each combination of settings.
            seeds: Seeds of each combination.

        Raises:
            OutputError: when the folder cannot be written, holds another plan, or another process is using it.
        """
        begin_folder(self.folder, self.kind)
        self._check_plan(set(variants), seeds)
        results = self.folder / "results"
        with writable(results):
            results.mkdir(parents=True, exist_ok=True)
        with _exclusive(results, self.folder):
            for folder in (self.folder, results):
                for file in folder.glob(f".*{TEMPORARY}*"):
                    if _TEMPORARY.fullmatch(file.name):
                        file.unlink(missing_ok=True)
            about = {"format": _FORMAT, **plan, "seeds": list(seeds), "variants": sorted(set(variants))}
            add_file(self.folder, self.kind, json.dumps(about, indent=1) + "\n")
            yield

    def _check_plan(self, variants: set[str], seeds: Sequence[int]) -> None:
        """Checks that the folder holds no other plan; the same plan may be run again, or be extended."""
        try:
            before = read_json(self.folder / self.kind)
            earlier, with_seeds = set(before["variants"]), list(before["seeds"])
        except (TidegateError, KeyError, TypeError):
            return
        if not earlier <= variants:
            why = f"{len(earlier - variants)} of its {len(earlier)} combinations are not in this plan"
        elif missing := [seed for seed in with_seeds if seed not in set(seeds)]:
            why = f"its seed {missing[0]} is not in this plan"
        else:
            return
        right = "choose another folder, or repeat all earlier combinations and seeds and add to them"
        raise OutputError(f"{self.folder}: the folder holds a sweep with another plan: {why}; {right}")


def content_hash(result: Mapping[str, Any]) -> str:
    """The hash of a result by which damage to its file is noticed."""
    return hashlib.sha256(json.dumps(result, sort_keys=True).encode()).hexdigest()


@contextmanager
def _exclusive(folder: Path, typed: Path) -> Iterator[None]:
    """Locks a folder until the process ends at the latest."""
    if sys.platform == "win32":
        yield
        return
    with writable(folder):
        handle = os.open(folder, os.O_RDONLY)
    try:
        lock(handle, wait=False)
    except BlockingIOError:
        os.close(handle)
        raise OutputError(
            f"{typed}: another process is using the folder; wait for its end, or choose another folder"
        ) from None
    except OSError:
        pass  # a file system without locks
    try:
        yield
    finally:
        os.close(handle)
