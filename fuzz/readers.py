"""Fuzzes whole commands with files of strangers.

    FUZZ_RUNS=100000 FUZZ_SEED=1 python fuzz/readers.py [READER ...]

`./run SECONDS readers` calls this; without FUZZ_RUNS the readers share FUZZ_SECONDS. Each run changes one file of a
reader, by its bytes or in the shape of its data, and the reader reads it. Of whatever file a command either makes a
result, or says in a sentence what is wrong with it: exit code 0, 1 or 2, no word of a bug, and no control character of
the file on the terminal. A file that breaks this is kept in `found/readers/`.

A new reader is a line of `READERS`: its name, what makes valid files, which of them are changed, and what reads them.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import random
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import files_checks

from tidegate.cli import main
from tidegate.results import sweeps
from tidegate.results.folders import MANIFEST

FOUND = Path(__file__).with_name("found") / "readers"
_MOST = 2**20  # bytes of a changed file
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_HOSTILE = ("\x1b[2J", "\x1b]0;title\x07", "\x9b31m", "\x7f", "\u202egnp.", "\r", "\u2028", "\ud800", "<b>", "\n", "")

SCENARIO = """\
duration = "1s"

[[links]]
name = "cable"
capacity = "2Mbps"
delay = "10ms"

[[flows]]
name = "call"
media = {}
"""

SUITE = """\
description = "a network"
source = "here"

[[cases]]
name = "a"
scenario = "plain.toml"

[[cases]]
name = "wifi"
not_run = "no node"

[[rules]]
name = "rate"
says = "carries a megabit"
metric = "receive_rate_bps"
at_least = 1_000_000
source = "here"
"""


@dataclass(frozen=True)
class Reader:
    """A kind of file, and what reads it."""

    name: str
    """Its name."""
    make: Callable[[], object]
    """Writes valid files into the present folder; `plain.toml` and `suite.toml` are there."""
    changed: str
    """Pattern of the files that are changed, one at a time."""
    read: Callable[[random.Random], None]
    """Reads them in the present folder.

    Raises:
        AssertionError: when a property does not hold.
    """


def call(*argv: str) -> None:
    """Calls the command line.

    Raises:
        AssertionError: when it does not end as a command ends, or its text has a control character.
    """
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main(argv)
    text = out.getvalue() + err.getvalue()
    assert code in {0, 1, 2}, f"{argv}: exit code {code}: {text}"
    assert "bug in tidegate" not in text, f"{argv}: {text}"
    assert not (raw := _CONTROL.findall(text)), f"{argv}: {raw} in {text!r}"
    assert code == 0 or err.getvalue().strip(), f"{argv}: exit code {code} without a reason"


def made(*argv: str) -> Callable[[], None]:
    """A command that makes valid files."""

    def make() -> None:
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            assert main(argv) == 0, argv

    return make


def by(*commands: str) -> Callable[[random.Random], None]:
    """A reading function that calls one of these commands."""

    def read(luck: random.Random) -> None:
        call(*luck.choice(commands).split())

    return read


_REPORT = "report out --out page.html --force"
_DIFF = ("diff out before", "diff before out", "diff out before --all")
_SWEEP = ("sweep", "plain.toml", "--set", "links.cable.delay=10ms,20ms", "--out", "out")
_SUITE = ("suite", "run", "suite.toml", "gcc", "fixed:500kbps", "--seeds", "2", "--out", "out")
_SUITE_SWEEP = ("sweep", "--suite", "suite.toml", "--controller", "gcc", "--set", "controller.beta=0.8,0.9")
_SEARCH = (
    "optimise",
    "flows.call.media.controller=gcc,nada",
    "--scenario",
    "plain.toml",
    "--tries",
    "2",
    "--seeds",
    "1",
)
_SEARCH += ("--for", "utilisation", "--subject-to", "loss < 5%", "--out", "out")
_BASELINE = ("check", "base.json", "gcc", "--suite", "suite.toml")

READERS = [
    Reader("run", made("run", "plain.toml", "--out", "out"), "out/*.json", by(_REPORT, *_DIFF)),
    Reader(
        "comparison",
        made("compare", "gcc", "nada", "--scenario", "plain.toml", "--out", "out"),
        "out/**/*.json",
        by(_REPORT, *_DIFF),
    ),
    Reader("sweep", made(*_SWEEP), "out/**/*.json", by(_REPORT, *_DIFF, "results out")),
    Reader("suite", made(*_SUITE), "out/**/*.json", by(_REPORT, *_DIFF, "results out")),
    Reader("suite_sweep", made(*_SUITE_SWEEP, "--seeds", "1", "--out", "out"), "out/**/*.json", by(_REPORT, *_DIFF)),
    Reader("search", made(*_SEARCH), "out/*.json", by(_REPORT)),
    Reader("baseline", made(*_BASELINE, "--seeds", "10", "--write"), "base.json", by(" ".join([*_BASELINE, "-j1"]))),
]
"""All readers."""


def prepare(reader: Reader, folder: Path) -> None:
    """Writes a reader's valid files into a folder, which it reads without a fault.

    Raises:
        AssertionError: when they are not valid.
    """
    (folder / "plain.toml").write_text(SCENARIO)
    (folder / "suite.toml").write_text(SUITE)
    with chdir(folder):
        reader.make()
        # what lists hashes of contents would hide every change from the readers behind it
        for manifest in folder.rglob(MANIFEST):
            manifest.unlink()
        if (folder / "out").is_dir():
            shutil.copytree("out", "before")
        reader.read(random.Random(0))


def named(data: Any, luck: random.Random) -> Any:
    """Data with hostile characters in a name, a key or a text."""
    match data:
        case dict() if data:
            key = luck.choice(list(data))
            if luck.random() < 0.2:
                return {_hostile(name, luck) if name == key else name: value for name, value in data.items()}
            return {**data, key: named(data[key], luck)}
        case list() if data:
            number = luck.randrange(len(data))
            return [*data[:number], named(data[number], luck), *data[number + 1 :]]
        case str():
            return _hostile(data, luck)
    return luck.choice(_HOSTILE)


def _hostile(text: str, luck: random.Random) -> str:
    at = luck.randint(0, len(text))
    return text[:at] + luck.choice(_HOSTILE) + text[at:]


def mutation(data: bytes, luck: random.Random) -> bytes:
    """A file's contents, changed as bytes, in the shape of its data, or in a name; a result's hash is made right."""
    try:
        tree = json.loads(data)
    except ValueError:
        tree = None
    if tree is None or luck.random() < 0.3:
        return files_checks.mutated(data, _MOST, luck, lambda: files_checks.changed(data, [data], _MOST, luck))
    if luck.random() < 0.4:
        tree = named(tree, luck)
    else:
        files_checks.reshaped(tree, luck)
    if isinstance(tree, dict) and "content" in tree:
        # a forged result has the right hash
        del tree["content"]
        tree["content"] = sweeps.content_hash(tree)
    return json.dumps(tree).encode()


def fuzz(reader: Reader, folder: Path, luck: random.Random) -> None:
    """Changes one file of a prepared folder, reads the folder, and puts the file back.

    Raises:
        AssertionError: when a property does not hold; the changed file is in `found/readers/`.
    """
    file = luck.choice(sorted(path for path in folder.glob(reader.changed) if path.is_file()))
    valid = file.read_bytes()
    wrong = mutation(valid, luck)
    file.write_bytes(wrong)
    try:
        with chdir(folder):
            reader.read(luck)
    except AssertionError:
        FOUND.mkdir(parents=True, exist_ok=True)
        (FOUND / f"{reader.name}-{hashlib.sha256(wrong).hexdigest()[:8]}-{file.name}").write_bytes(wrong)
        raise
    finally:
        file.write_bytes(valid)


def loop(names: Sequence[str], runs: int | None, seconds: float, seed: int) -> int:
    """Fuzzes readers for so many runs each, or so many seconds together; returns the number of faults."""
    chosen = [reader for reader in READERS if not names or reader.name in names]
    faults = 0
    for reader in chosen:
        luck, number = random.Random(f"{seed} {reader.name}"), 0
        end = time.monotonic() + seconds / len(chosen)
        with tempfile.TemporaryDirectory(dir=files_checks.PLACE) as folder:
            prepare(reader, Path(folder))
            while number < runs if runs is not None else time.monotonic() < end:
                number += 1
                try:
                    fuzz(reader, Path(folder), luck)
                except AssertionError as fault:
                    faults += 1
                    sys.stdout.write(f"{reader.name}, run {number} of seed {seed}: {fault}\n")
        sys.stdout.write(f"{reader.name}: {number} runs\n")
        sys.stdout.flush()
    return faults


if __name__ == "__main__":
    wanted = os.environ.get("FUZZ_RUNS")
    spent = float(os.environ.get("FUZZ_SECONDS", "60"))
    sys.exit(bool(loop(sys.argv[1:], int(wanted) if wanted else None, spent, int(os.environ.get("FUZZ_SEED", "1")))))
