"""What must hold of files that Python reads, whatever they hold: the result is a value or an error of tidegate's.

`files.py` fuzzes these functions; `tests/python/whole/test_fuzzed.py` calls them with a thousand mutations of each
corpus.
"""

from __future__ import annotations

import json
import random
import tempfile
import tomllib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from tidegate import Comparison, Run, Scenario, _core, report, run
from tidegate.errors import TidegateError
from tidegate.paper import _mutations as mutations
from tidegate.paper import reading
from tidegate.paper.claims import PAPER_TOML
from tidegate.query.intervals import Expression, Undefined
from tidegate.recordings import imported
from tidegate.results import Results
from tidegate.results.folders import MANIFEST
from tidegate.results.stats import Interval
from tidegate.scenario import _frames as frames
from tidegate.scenario import toml
from tidegate.scenario.lower import lower
from tidegate.video.settings import Settings

_SHARED = Path("/dev/shm")
_PLACE = tempfile.TemporaryDirectory(dir=_SHARED if _SHARED.is_dir() else None, prefix="tidegate-fuzz-")
PLACE = Path(_PLACE.name)
_MOST = 8  # links and flows of what is built: more of them are no other code, and slower

PLAIN = """\
duration = "1s"
links = [{ name = "cable", capacity = "2Mbps", delay = "10ms" }]
flows = [{ name = "call", media = {} }]
"""


def scenario(data: bytes) -> None:
    """A scenario file: what is right can be written and read again, lowered, and built by the engine."""
    file = PLACE / "x.toml"
    file.write_bytes(data)
    made = Scenario.load(file)
    text = made.to_toml()
    assert Scenario.parse(text, file).to_toml() == text
    if len(made.links) + sum(flow.count for flow in made.flows) > _MOST or made.sessions or made.lte:
        return
    run_input = lower(made, run_code=False)
    if run_input.inputs.unrun or len(run_input.ir["flows"]) > _MOST:
        return
    try:
        _core.World(json.dumps(run_input.ir), run_input.inputs.traces, {})
    except _core.Refused:
        pass


def saved(data: bytes) -> None:
    """The JSON files of a saved result; the first byte says which of them it is."""
    choice, data = data[:1], data[1:]
    match choice[0] % 4 if choice else 0:
        case 0:
            (PLACE / "run" / "run.json").write_bytes(data)
            loaded = Run.load(PLACE / "run")
            loaded.metrics()
            _ = loaded.members, loaded.flows, loaded.scenario
            Comparison(Scenario.parse(PLAIN), {"gcc": [loaded]}).table.to_markdown()
            if len(data) % 16 == 0:
                report.html(loaded)
        case 1:
            (PLACE / "comparison" / "comparison.json").write_bytes(data)
            Comparison.load(PLACE / "comparison").table.to_markdown()
        case 2:
            (PLACE / "listed" / MANIFEST).write_bytes(data)
            _ = Run.load(PLACE / "listed").tables
        case _:
            results = Results(PLACE / "sweep")
            results.file("0" * 32).write_bytes(data)
            results.read("0" * 32)


def paper(data: bytes) -> None:
    """A paper's claims, and what is kept of its mutations."""
    name = PAPER_TOML if data[:1] != b"{" else mutations.FILE
    (PLACE / "paper" / name).write_bytes(data)
    if name == PAPER_TOML:
        reading.load(PLACE / "paper")
    else:
        mutations.load(PLACE / "paper")


_MEASURES = {
    "udp.loss": Interval(0.4, 0.1, 5),
    "gcc.loss": Interval(0.1, None, 1),
    "a": Interval(0.0, 0.0, 2),
    "published": Interval(-5.5, 0.2, 3),
}


def rule(data: bytes) -> None:
    """A rule of a paper: nothing in it runs, and it is true, false, a number, or undefined."""
    expression = Expression(data.decode("utf-8", "replace"))
    assert expression.kind in {"truth", "number"}
    try:
        _ = expression.truth(_MEASURES) if expression.kind == "truth" else expression.number(_MEASURES)
    except Undefined:
        pass


def media(data: bytes) -> None:
    """Recorded frame sizes, and behind a colon the text of `--media`."""
    if data[:1] == b":":
        made = Settings.parse(data[1:].decode("utf-8", "replace"))
        # a clip's name has no space at its end, unless settings follow it
        assert made.clip != made.clip.rstrip() or Settings.parse(made.text()) == made
        return
    (PLACE / "sizes" / "chat_600.txt").write_bytes(data)
    for rung in frames.ladder(PLACE, "sizes"):
        assert all(0 <= size <= frames.LARGEST for size in rung.sizes)


def getstats(data: bytes) -> None:
    """What getStats said of a call: a run whose tables and report can be made."""
    file = PLACE / "stats.json"
    # what begins otherwise is a log or a capture, which Rust reads
    file.write_bytes(data if data.startswith((b"{", b"[", b"RTCStatsDump")) else b"{" + data)
    made = imported([file])
    assert all(len(made.table(name)) for name in made.tables)
    if len(data) % 16 == 0:
        report.html(made)


TARGETS: dict[str, Callable[[bytes], None]] = {
    "files_scenario": scenario,
    "files_saved": saved,
    "files_paper": paper,
    "files_rule": rule,
    "files_media": media,
    "files_getstats": getstats,
}


# --- mutations that keep the shape ----------------------------------------------------------------

STRANGE: list[Any] = [
    None, True, 0, -1, 1, 2**63, 10**400, 1e999, -0.0, 0.5, "", "x", "\0", "0s", "1ns", "-1ms", "9e99s", "0bps", "1bps",
    "1e30bps", "100%", "gcc", "python:x.py:X", "../x", "inf", [], [[]], {}, {"": 0}, {"name": "x"}, [["0s", "1Mbps"]],
]  # fmt: skip


def _places(data: Any) -> Iterator[tuple[Any, Any]]:
    keys = list(data) if isinstance(data, dict) else range(len(data)) if isinstance(data, list) else []
    for key in keys:
        yield data, key
        yield from _places(data[key])


def reshaped(data: Any, luck: random.Random) -> None:
    """Values taken out, doubled, exchanged for others of the same file or for strange ones, and put in."""
    places = list(_places(data))
    if not places:
        return
    for _ in range(luck.choice((1, 1, 2, 4))):
        into, key = luck.choice(places)
        _, (other, other_key) = luck.random(), luck.choice(places)
        try:
            match luck.randrange(6):
                case 0:
                    del into[key]
                case 1 if isinstance(into, list):
                    into.append(json.loads(json.dumps(into[key])))
                case 2:
                    into[key] = json.loads(json.dumps(other[other_key]))
                case 3 if isinstance(into, dict):
                    into[str(other_key)] = into[key]
                case 4 if isinstance(into[key], int | float) and not isinstance(into[key], bool):
                    into[key] = luck.choice((into[key] * 2, -into[key], into[key] + 1, into[key] * 1e9))
                case _:
                    into[key] = luck.choice(STRANGE)
        except (KeyError, IndexError, TypeError, ValueError, OverflowError):
            continue  # of what an earlier step took away


def changed(data: bytes, seeds: Sequence[bytes], most: int, luck: random.Random) -> bytes:
    """Bytes flipped, set, put in, taken out and doubled, or another file's from somewhere on."""
    out = bytearray(data)
    for _ in range(luck.randint(1, 4)):
        at = luck.randint(0, len(out))
        until = min(len(out), at + luck.randint(1, 16))
        match luck.randrange(6):
            case 0 if at < len(out):
                out[at] ^= 1 << luck.randrange(8)
            case 1 if at < len(out):
                out[at] = luck.choice(b'\0\x01\x7f\x80\xff09-{}[]"')
            case 2:
                out[at:at] = luck.randbytes(luck.randrange(9))
            case 3:
                del out[at:until]
            case 4:
                out[at:at] = out[at:until]
            case _:
                other = luck.choice(seeds)
                out[at:] = other[luck.randint(0, len(other)) :]
    return bytes(out[:most])


def mutated(data: bytes, most: int, luck: random.Random, plainly: Callable[[], bytes]) -> bytes:
    """A mutation of bytes (`plainly`) half of the time, and one of the data in the file otherwise."""
    mark = data[:1] if data[:1] and data[0] < 4 else b""
    body = data[len(mark) :]
    if luck.random() < 0.5:
        return plainly()
    try:
        if body[:1] in {b"{", b"["}:
            value = json.loads(body)
            reshaped(value, luck)
            out = json.dumps(value).encode()
        else:
            value = tomllib.loads(body.decode())
            reshaped(value, luck)
            out = toml.write(value).encode()
    except (ValueError, RecursionError, TypeError, AttributeError, TidegateError):
        return plainly()
    return (mark + out)[:most]


def prepare() -> None:
    """Makes the files beside those that are checked."""
    for name in ("run", "comparison", "listed", "paper", "sizes", "sweep/results"):
        (PLACE / name).mkdir(parents=True)
    made = run(Scenario.parse(PLAIN))
    made.save(PLACE / "comparison" / "runs" / "gcc-seed1")
    made.save(PLACE / "listed")
    for table in (PLACE / "listed").glob("*.parquet"):
        (PLACE / "run" / table.name).write_bytes(table.read_bytes())


def check(name: str, data: bytes) -> None:
    """Checks one input of a target.

    Raises:
        AssertionError: when a property does not hold.
    """
    try:
        TARGETS[name](data)
    except TidegateError as error:
        assert str(error)
