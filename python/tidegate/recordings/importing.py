"""From the files of a recorded call to a run."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from tidegate import _core
from tidegate._core import Table
from tidegate.control.registry import choose, is_file
from tidegate.errors import InputError
from tidegate.recordings._counted import counted
from tidegate.recordings._link import truth
from tidegate.recordings._reading import GETSTATS, File, read
from tidegate.runs import Kept, Run, versions
from tidegate.runs.recorded import FORMAT
from tidegate.show import view

OVERUSE = 1
"""The code of over-use in `state`."""

KEY = "recording"
"""Of what has to be known of an imported run, among the warnings of its summary."""


_READ, _MADE = 0.3, 0.8
"""What part of the work is done when the files are read, and when the call is put together: seen with captures."""
_WAIT_S = 0.2
_SESSION_CAPTURE = "packets-A.pcapng"
"""What `tidegate shell --pcap` leaves in a session's folder."""

Progress = Callable[[float], None]
Result = TypeVar("Result")


def imported(
    files: Sequence[str | Path],
    *,
    far: Sequence[str | Path] = (),
    same_clock: bool = False,
    replay: str | None = None,
    link: str | Path | None = None,
    progress: Progress | None = None,
) -> Run:
    """A recorded call as a run, whose metrics are those of runs as far as the recording tells them.

    Args:
        files: RTC event logs of libwebrtc (format 2), captures (pcap, pcapng), or what getStats said (a dump of
            webrtc-internals, or JSON, a report a line): those of one end; and that of the other one, if there is one.
            They may be packed by gzip.
        far: Those of the other end, where there are several of one.
        same_clock: Whether both ends had one clock; else the far one is set so that the least one-way delay is the same
            both ways.
        replay: A controller of tidegate's that hears, open loop, what the near end was told: `gcc`,
            `gcc:draft-02,beta=0.9`. What it notes is in the table `internals`, as `replayed_...`.
        link: Whose link it went over, if that was ours: the folder of a `tidegate shell` session, whose capacity,
            queues and drops are joined by their packets; or a scenario, whose capacity is.
        progress: Is told what part is done.

    Raises:
        ControllerError: when there is no such controller, preset or setting.
        InputError: which file is wrong, where, what was found there and what would be right.
    """
    if not files:
        raise InputError("no file was given; expected a recording of a call")
    tell = progress or (lambda _: None)
    count = len(files) + len(far)
    some = []
    for place, one in enumerate((*files, *far)):
        some.append(_patiently(partial(read, Path(one)), tell, _READ * place / count))
    near, distant = some[: len(files)], some[len(files) :]
    _check_different(some)
    strange = next((one for one in some if one.format != some[0].format), None)
    if strange is not None:
        found = f"found a file of the format “{strange.format}” beside one of “{some[0].format}”"
        raise InputError(f"{strange.path}: {found}; expected one format for all")
    if some[0].format == GETSTATS:
        if replay is not None:
            raise InputError(
                f"{some[0].path}: getStats has no feedback on packets, which {replay} could hear; expected an event "
                "log or a capture"
            )
        of = _patiently(partial(counted, some), tell, _READ)
        done = _run(some, of.summary, of.tables, of.remarks, of.begun_ms, of.damage)
    else:
        call = _patiently(partial(_call, near, distant, same_clock, replay), tell, _READ)
        tables = {name: _patiently(partial(call.table, name), tell, _MADE) for name in call.table_names()}
        done = _run(some, json.loads(call.summary_json()), tables, call.remarks, call.begun_ms, _broken(call, some))
    if link is not None:
        done = _patiently(partial(_with_truth, done, link), tell, _MADE)
    tell(1.0)
    return done


def _call(near: Sequence[File], far: Sequence[File], same_clock: bool, replay: str | None) -> _core.ImportedCall:
    host = None if replay is None else _host(replay)
    some = [*near, *far]
    try:
        if some[0].format == "capture":
            return _core.import_captures([one.data for one in near], [one.data for one in far], same_clock, host)
        return _core.import_event_logs([one.data for one in some], same_clock, host)
    except ValueError as error:
        at, why = error.args
        raise InputError(f"{some[at].path}: {why}") from None


def _patiently(work: Callable[[], Result], tell: Progress, done: float) -> Result:
    """Does one piece of work, and says meanwhile what part was done before it."""
    tell(done)
    with ThreadPoolExecutor(1) as pool:
        under_way = pool.submit(work)
        while True:
            try:
                return under_way.result(_WAIT_S)
            except TimeoutError:
                if under_way.done():
                    raise
                tell(done)


def _check_different(files: Sequence[File]) -> None:
    seen: dict[bytes, File] = {}
    for one in files:
        first = seen.setdefault(one.data, one)
        if first is not one:
            same = "is given twice" if first.path == one.path else f"is the same file as {first.path}"
            raise InputError(f"{one.path}: {same}; expected that of the other end")


def _with_truth(done: Run, link: str | Path) -> Run:
    captured = None
    capture = Path(link) / _SESSION_CAPTURE
    if "packets" not in done.tables and capture.is_file():
        captured = imported([capture])
    found = truth(done, link, captured)
    tables = {**{name: done.table(name) for name in done.tables}, **found.tables}
    remarks = {key: [*done.summary[key], *_remarks(found.remarks)] for key in ("warnings", "notes")}
    summary = {**done.summary, "links": list(found.links), **remarks}
    return Run({**done.about, "summary": summary}, Kept(tables))


def _host(name: str) -> _core.ControllerHost:
    choice = choose(name, Path(), run_code=False)
    if is_file(choice.name):
        right = "expected one of tidegate's, such as gcc, to hear a recording"
        raise InputError(f"{name}: found a controller that is in a file; {right}")
    return _core.controller(choice.name, choice.preset, json.dumps(dict(choice.settings)), 0, 0, None)


def agreement(run: Run) -> Mapping[str, float] | None:
    """How a replayed detector agrees with the recorded one; None without both.

    Parts of the time in which both are known: `agree`, in which they say the same, `recorded_overuse` and
    `replayed_overuse`, in which one says over-use.
    """
    flow = run.subject
    table = run.table("internals") if "internals" in run.tables else None
    if table is None:
        return None
    names, times, values = (table.to_numpy(column) for column in ("name", "t_s", "value"))
    ours = table.to_numpy("flow") == flow
    grid = np.arange(0.0, float(run.summary["duration_s"]), 0.01)
    steps = []
    for name in ("state", "replayed_state"):
        some = ours & (names == name)
        if not some.any():
            return None
        steps.append(view.step_at(times[some], values[some], grid))
    recorded, replayed = (one[np.isfinite(steps[0]) & np.isfinite(steps[1])] for one in steps)
    if not len(recorded):
        return None
    return {
        "agree": float(np.mean(recorded == replayed)),
        "recorded_overuse": float(np.mean(recorded == OVERUSE)),
        "replayed_overuse": float(np.mean(replayed == OVERUSE)),
    }


def _run(
    files: Sequence[File],
    metrics: Mapping[str, Any],
    tables: Mapping[str, Table],
    remarks: Sequence[str],
    begun_ms: int | None,
    damage: Sequence[str] = (),
) -> Run:
    name = files[0].path.name.partition(".")[0] or "recording"
    summary = {
        "name": name,
        "seed": 0,
        **metrics,
        "warnings": _remarks([*remarks, *damage]),
        "notes": _remarks(remarks),
    }
    about = {
        "format": FORMAT,
        "name": name,
        "seed": 0,
        "digest": summary["digest"],
        "summary": summary,
        # nobody ran a scenario
        "scenario": "",
        "base": str(files[0].path.parent.resolve()),
        "versions": dict(versions()),
        "imported": {"files": [one.about for one in files], "begun_ms": begun_ms},
    }
    return Run(about, Kept(tables))


def _remarks(sentences: Iterable[str]) -> list[dict[str, str]]:
    return [{"key": KEY, "says": sentence} for sentence in sentences]


def _broken(call: _core.ImportedCall, files: Sequence[File]) -> list[str]:
    """What could not be read, by file."""
    told = []
    for file, (first, count) in zip(files, call.problems, strict=True):
        told += [f"{file.path.name}: {one}" for one in first]
        if count > len(first):
            told.append(f"{file.path.name}: {count - len(first)} more things that could not be read")
    return told
