"""Fuzzes the files that Python reads: whatever they hold, the result is a value or an error of tidegate's.

    python fuzz/files.py TARGET [FOLDER ...] [-max_total_time=60 ...]

Needs atheris, which is libFuzzer for Python: it follows the coverage of tidegate's own code, and what comes after the
target's name is libFuzzer's. `./run` calls this.
"""

from __future__ import annotations

import random
import sys
from functools import partial

import atheris

with atheris.instrument_imports(include=["tidegate"]):
    import files_checks


def mutator(data: bytes, most: int, seed: int) -> bytes:
    """libFuzzer's own mutation half of the time, and one of the data in the file otherwise."""
    return files_checks.mutated(data, most, random.Random(seed), lambda: bytes(atheris.Mutate(data, most)))


def main() -> None:
    """Fuzzes one target."""
    _, name, *options = sys.argv
    files_checks.prepare()
    atheris.Setup([sys.argv[0], *options], partial(files_checks.check, name), custom_mutator=mutator)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
