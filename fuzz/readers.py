"""Fuzzes whole commands with files of strangers.

    FUZZ_RUNS=100000 FUZZ_SEED=1 python fuzz/readers.py [READER ...]
    python fuzz/readers.py --table 150 [READER ...]

`./run SECONDS readers` calls this; without FUZZ_RUNS the readers share FUZZ_SECONDS. Each run changes one valid file
of a reader (`valid_files.py`), by its bytes or in the shape of its data (`mutating.py`), and a command reads it. Of
whatever file a command either makes a result, or says in at most twenty lines what is wrong with it: exit code 0, 1 or
2, no word of a bug, no control character of the file on the terminal, no result of a file that it refuses, and at most
2 s of CPU (docs/limits.md). A file that breaks this is kept in `found/readers/`.

With `--table` so many different files are made for each reader that it refuses, a process of its own reads each, and
the costs of the dearest are written into README.md.

A new reader is a line of `READERS`: its name, what makes valid files, which of them are changed, and the commands that
read them.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import math
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
from functools import partial
from pathlib import Path

import files_checks
import mutating
import valid_files

from tidegate.cli import main
from tidegate.results.folders import MANIFEST

FOUND = Path(__file__).with_name("found") / "readers"
_LINES, _CPU_S, _MEMORY_MB = 20, 2.0, 500  # of a refusal (docs/limits.md)
_README = Path(__file__).with_name("README.md")
_TABLE = ("<!-- refused -->\n", "<!-- /refused -->\n")
_SHOWN = 2000  # characters of a text in a fault
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")

NEW = ("new", "new.csv", "new.html", "new.trace")
"""What commands write here: folder, table, page."""


@dataclass(frozen=True)
class Reader:
    """A kind of file, and what reads it."""

    name: str
    """Its name."""
    make: Callable[[], object]
    """Writes valid files into the present folder; `plain.toml` and `suite.toml` are there."""
    changed: str
    """Pattern of the files that are changed, one at a time."""
    commands: tuple[str, ...]
    """What reads them in the present folder; `{}` is the changed file, results have names of `NEW`, and what is behind
    `&&` reads them."""


def call(*argv: str) -> str:
    """Calls the command line; returns why it refuses, or nothing.

    Raises:
        AssertionError: when it does not end as a command ends, its text has a control character, or it writes a result
            of what it refuses.
    """
    earlier = {name for name in NEW if Path(name).exists()}
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main(argv)
    errors = err.getvalue()
    text = out.getvalue() + errors
    assert code in {0, 1, 2}, f"{argv}: exit code {code}: {text[:_SHOWN]}"
    assert "bug in tidegate" not in text, f"{argv}: {text[:_SHOWN]}"
    assert not (raw := _CONTROL.findall(text)), f"{argv}: {raw} in {text[:_SHOWN]!r}"
    assert code == 0 or errors.strip(), f"{argv}: exit code {code} without a reason"
    assert code == 0 or (lines := errors.count("\n")) <= _LINES, f"{argv}: {lines} lines: {errors[:_SHOWN]}"
    for name in NEW:
        written = name in earlier or (code == 0 and name in argv)
        assert Path(name).exists() == written, f"{argv}: exit code {code}, {name}: {text[:_SHOWN]}"
    return f"exit code {code}: {errors}" if code else ""


def made(*argv: str) -> Callable[[], None]:
    """A command that makes valid files."""

    def make() -> None:
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            assert main(argv) == 0, argv

    return make


_REPORT = "report out --out new.html"
_DIFF = ("diff out before", "diff before out", "diff out before --all")
_SWEEP = ("sweep", "plain.toml", "--set", "links.cable.delay=10ms,20ms", "--out", "out")
_SUITE = ("suite", "run", "suite.toml", "gcc", "fixed:500kbps", "--seeds", "2", "--out", "out")
_SUITE_SWEEP = ("sweep", "--suite", "suite.toml", "--controller", "gcc", "--set", "controller.beta=0.8,0.9")
_SEARCH = ("optimise", "flows.call.media.controller=gcc,nada", "--scenario", "plain.toml", "--tries", "2")
_SEARCH += ("--seeds", "1", "--for", "utilisation", "--subject-to", "loss < 5%", "--out", "out")
_BASELINE = ("check", "base.json", "gcc", "--suite", "suite.toml")

_NETWORKS = "--traces networks"
_CHECK, _SHOW = f"suite check suite.toml {_NETWORKS}", "suite show suite.toml"
_RATE = "--reference-rate 1Mbps"  # for formats with ratios
_TRACES = (
    f"trace show {{}} {_RATE}",
    f"trace show {{}} {_RATE} --json",
    f"trace convert {{}} new.csv {_RATE} && trace show new.csv",
    f"trace convert {{}} new.trace {_RATE} && trace show new.trace",
)
_IMPORTS = ("import {} --out new", "import {} --out new --json && report new --out new.html")
_BOTH_ENDS = "import calls/sender calls/receiver --out new --trace new.csv --replay gcc"
_CAPTURES = tuple(
    f"capture/{form}"
    for form in ("pcap", "pcapng", "wrapped_tcp", "wrapped_turn", "wrapped_fragments", "wrapped_rtpdump", "wrapped_mjr")
)
_GETSTATS = tuple(
    f"files_getstats/{form}" for form in ("callback", "internals", "lines", "list", "received", "rtcstats", "server")
)

READERS = [
    Reader("run", made("run", "plain.toml", "--out", "out"), "out/*.json", (_REPORT, *_DIFF)),
    Reader("table", made("run", "plain.toml", "--out", "out"), "out/*.parquet", (_REPORT, *_DIFF)),
    Reader(
        "comparison",
        made("compare", "gcc", "nada", "--scenario", "plain.toml", "--out", "out"),
        "out/**/*.json",
        (_REPORT, *_DIFF),
    ),
    Reader("sweep", made(*_SWEEP), "out/**/*.json", (_REPORT, *_DIFF, "results out")),
    Reader("suite", made(*_SUITE), "out/**/*.json", (_REPORT, *_DIFF, "results out")),
    Reader("suite_sweep", made(*_SUITE_SWEEP, "--seeds", "1", "--out", "out"), "out/**/*.json", (_REPORT, *_DIFF)),
    Reader("search", made(*_SEARCH), "out/*.json", (_REPORT,)),
    Reader("baseline", made(*_BASELINE, "--seeds", "10", "--write"), "base.json", (" ".join([*_BASELINE, "-j1"]),)),
    Reader("scenario", valid_files.scenarios, "scenarios/*.toml", ("scenario check {}", "scenario check {} --ir")),
    Reader("ladder", valid_files.ladder, "chat_*.txt", ("scenario check recorded.toml",)),
    Reader(
        "suite_file", valid_files.suite, "suite.toml", (_CHECK, f"{_SHOW} {_NETWORKS}", f"{_SHOW} {_NETWORKS} --json")
    ),
    Reader("network", valid_files.networks, "networks/*", _TRACES),
    Reader(
        "event_log",
        partial(valid_files.recordings, "event_log/sender", "event_log/receiver"),
        "calls/*",
        (*_IMPORTS, _BOTH_ENDS),
    ),
    Reader("session", valid_files.session, "session/*.csv", ("import calls/sender --link session --out new",)),
    Reader("capture", partial(valid_files.recordings, *_CAPTURES), "calls/*", _IMPORTS),
    Reader("getstats", partial(valid_files.recordings, *_GETSTATS), "calls/*", _IMPORTS),
    Reader("paper", valid_files.paper, "paper/[!e]*", ("paper paper --seeds 1 --json", "paper paper -j1 --out new")),
]
"""All readers."""


def prepare(reader: Reader, folder: Path) -> None:
    """Writes a reader's valid files into a folder, which it reads without a fault.

    Raises:
        AssertionError: when they are not valid.
    """
    (folder / "plain.toml").write_text(valid_files.SCENARIO)
    (folder / "suite.toml").write_text(valid_files.SUITE)
    with chdir(folder):
        reader.make()
        # what lists hashes of contents would hide every change from the readers behind it
        for manifest in folder.rglob(MANIFEST):
            manifest.unlink()
        if (folder / "out").is_dir():
            shutil.copytree("out", "before")
        for file in files(reader):
            for command in reader.commands:
                assert not (why := read(command, file)), f"{command}, {file}: {why}"


def files(reader: Reader) -> list[Path]:
    """The files of the present folder that are changed."""
    return sorted(path for path in Path().glob(reader.changed) if path.is_file())


def read(command: str, file: Path) -> str:
    """Calls a command of a reader with a file; returns why it refuses, or nothing.

    Raises:
        AssertionError: when a property does not hold, or a further command refuses the result of the first.
    """
    for name in NEW:
        shutil.rmtree(name) if Path(name).is_dir() else Path(name).unlink(missing_ok=True)
    first, *further = command.split(" && ")
    why = call(*(str(file) if word == "{}" else word for word in first.split()))
    for words in () if why else further:
        assert not (refusal := call(*words.split())), f"{command}: {refusal}"
    return why


def fuzz(reader: Reader, folder: Path, luck: random.Random, cpu_s: float = math.inf) -> None:
    """Changes one file of a prepared folder, reads the folder, and puts the file back.

    Raises:
        AssertionError: when a property does not hold, or more CPU time than `cpu_s` is needed; the changed file is in
            `found/readers/`.
    """
    with chdir(folder):
        file = luck.choice(files(reader))
        valid = file.read_bytes()
        wrong = mutating.mutation(valid, luck)
        command = luck.choice(reader.commands)
        file.write_bytes(wrong)
        begun = time.process_time()
        try:
            read(command, file)
            spent = time.process_time() - begun
            assert spent <= cpu_s, f"{command}, {file}: {spent:.1f} s of CPU"
        except AssertionError:
            _keep(reader, file, wrong)
            raise
        finally:
            file.write_bytes(valid)


def _keep(reader: Reader, file: Path, wrong: bytes) -> Path:
    FOUND.mkdir(parents=True, exist_ok=True)
    kept = FOUND / f"{reader.name}-{hashlib.sha256(wrong).hexdigest()[:8]}-{file.name}"
    kept.write_bytes(wrong)
    return kept


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
                    fuzz(reader, Path(folder), luck, _CPU_S)
                except AssertionError as fault:
                    faults += 1
                    sys.stdout.write(f"{reader.name}, run {number} of seed {seed}: {fault}\n")
        sys.stdout.write(f"{reader.name}: {number} runs\n")
        sys.stdout.flush()
    return faults


# --- the costs of refusals ------------------------------------------------------------------------


@dataclass
class Costs:
    """The largest costs of the files that a reader refused."""

    reader: str
    files: int = 0
    """Different files that were read."""
    refused: int = 0
    cpu_s: float = 0.0
    before_mb: float = 0.0
    """Memory of a forked process that reads nothing."""
    memory_mb: float = 0.0
    lines: int = 0
    faults: int = 0

    def row(self) -> str:
        """Its row of the table."""
        memory = f"{self.memory_mb:.0f} | {self.before_mb:.0f}"
        return f"| `{self.reader}` | {self.files} | {self.refused} | {self.cpu_s:.2f} | {memory} | {self.lines} |\n"


def _forked(work: Callable[[], str]) -> tuple[dict[str, str], float, float]:
    """Works in a child: what was refused or what was wrong, seconds of CPU, and MB of memory at most."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            try:
                answer = {"refusal": work()}
            except BaseException as fault:  # noqa: BLE001
                answer = {"fault": f"{type(fault).__name__}: {fault}"}
            with os.fdopen(writing, "w", encoding="utf-8") as pipe:
                json.dump(answer, pipe)
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, encoding="utf-8") as pipe:
        text = pipe.read()
    _, status, usage = os.wait4(child, 0)
    ended = json.loads(text) if text else {"fault": f"the process ended with status {status}"}
    return ended, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1000


def costs(reader: Reader, folder: Path, luck: random.Random, wanted: int) -> Costs:
    """Makes so many different files that a reader refuses, in a prepared folder; others are read, too, and not counted.

    A file that breaks a property, or costs more than a refusal may, is in `found/readers/`.
    """
    done = Costs(reader.name, before_mb=_forked(str)[2])
    seen: set[bytes] = set()
    with chdir(folder):
        # most changes of a packed or a large file stay valid, but not all
        while done.refused < wanted and done.files < 100 * wanted:
            file = luck.choice(files(reader))
            valid = file.read_bytes()
            wrong = mutating.mutation(valid, luck)
            mark = hashlib.sha256(file.name.encode() + wrong).digest()
            if wrong == valid or mark in seen:
                continue
            seen.add(mark)
            command = luck.choice(reader.commands)
            file.write_bytes(wrong)
            try:
                ended, cpu_s, memory_mb = _forked(partial(read, command, file))
            finally:
                file.write_bytes(valid)
            done.files += 1
            refusal, fault = ended.get("refusal", ""), ended.get("fault", "")
            if not (refusal or fault):
                continue
            done.refused += bool(refusal)
            done.cpu_s, done.memory_mb = max(done.cpu_s, cpu_s), max(done.memory_mb, memory_mb)
            done.lines = max(done.lines, refusal.count("\n"))
            if fault or cpu_s > _CPU_S or memory_mb > _MEMORY_MB:
                done.faults += 1
                kept = _keep(reader, file, wrong)
                sys.stdout.write(f"{command}, {file}: {cpu_s:.1f} s, {memory_mb:.0f} MB, {kept}: {fault or refusal}\n")
    return done


def table(names: Sequence[str], wanted: int, seed: int) -> int:
    """Measures the costs of refusals and writes their table into README.md; returns the number of faults."""
    rows = "| reader | files | refused | CPU (s) | memory (MB) | before (MB) | lines |\n|---|" + "---:|" * 6 + "\n"
    faults = 0
    for reader in READERS:
        if names and reader.name not in names:
            continue
        with tempfile.TemporaryDirectory(dir=files_checks.PLACE) as folder:
            prepare(reader, Path(folder))
            done = costs(reader, Path(folder), random.Random(f"{seed} {reader.name}"), wanted)
        faults += done.faults
        rows += done.row()
        sys.stdout.write(done.row())
        sys.stdout.flush()
    if not names:
        begin, end = _TABLE
        before, _, rest = _README.read_text("utf-8").partition(begin)
        _README.write_text(before + begin + "\n" + rows + "\n" + end + rest.partition(end)[2], "utf-8")
    return faults


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("readers", nargs="*", metavar="READER", help="these alone; all by default")
    parser.add_argument("--table", type=int, metavar="FILES", help="measure the costs of so many refused files each")
    given = parser.parse_args()
    wanted = os.environ.get("FUZZ_RUNS")
    seed = int(os.environ.get("FUZZ_SEED", "1"))
    if given.table:
        sys.exit(bool(table(given.readers, given.table, seed)))
    spent = float(os.environ.get("FUZZ_SECONDS", "60"))
    sys.exit(bool(loop(given.readers, int(wanted) if wanted else None, spent, seed)))
