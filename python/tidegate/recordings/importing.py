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
from tidegate.recordings._joined import joined
from tidegate.recordings._link import truth
from tidegate.recordings._reading import CAPTURE, GETSTATS, File, read
from tidegate.runs import Kept, Run, versions
from tidegate.runs.result import FORMAT
from tidegate.show import view

OVERUSE = 1
"""The code of over-use in `state`."""

KEY = "recording"
"""Key of the remarks on an imported run, in its summary."""


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
    at: str | None = None,
    rtp: str | None = None,
    progress: Progress | None = None,
) -> Run:
    """Returns a recorded call as a run, with all metrics that the recording has.

    Args:
        files: RTC event logs of libwebrtc (format 2), captures (pcap, pcapng), or what getStats said (a dump of
            webrtc-internals, or JSON, a report a line): those of one end; and that of the other one, if there is one.
            They may be packed by gzip. getStats beside logs or captures of the same call adds what was shown.
        far: Those of the other end, where there are several of one.
        same_clock: Whether both ends had one clock; else the far one is set so that the least one-way delay is the same
            both ways.
        replay: A controller of tidegate's that gets, open loop, the feedback of the near end: `gcc`,
            `gcc:draft-02,beta=0.9`. Its notes are in the table `internals`, as `replayed_...`.
        link: The link of the call, if it was ours: the folder of a `tidegate shell` session, whose capacity, queues
            and drops are joined by their packets; or a scenario, whose capacity is joined.
        at: Where the (first) capture was made: `sender`, `receiver` (the end that receives more) or `middle`; by
            default told by the packets.
        rtp: An address and port, `192.0.2.1:5004`, from or to which all that may be RTP is RTP, in a capture with too
            few packets to tell.
        progress: A function that gets the fraction done.

    Raises:
        ControllerError: when there is no such controller, preset or setting.
        InputError: names the file, the place, the value there and the right one.
    """
    if not files:
        raise InputError("no file was given; expected a recording of a call")
    tell = progress or (lambda _: None)
    count = len(files) + len(far)
    read_files = []
    for number, path in enumerate((*files, *far)):
        read_files.append(_patiently(partial(read, Path(path)), tell, _READ * number / count))
    _check_different(read_files)
    near, distant = (
        [file for file in end if file.format != GETSTATS]
        for end in (read_files[: len(files)], read_files[len(files) :])
    )
    if not near:
        near, distant = distant, near
    counting = [file for file in read_files if file.format == GETSTATS]
    read_files = [*near, *distant]
    strange = next((path for path in read_files if path.format != read_files[0].format), None)
    if strange is not None:
        formats = f"found a file of the format “{strange.format}” beside a file of “{read_files[0].format}”"
        raise InputError(f"{strange.path}: {formats}; expected one format for all, and getStats beside it")
    if (at is not None or rtp is not None) and not any(file.format == CAPTURE for file in read_files):
        option, first = "at" if at is not None else "rtp", [*read_files, *counting][0]
        raise InputError(f"{first.path}: found no capture; {option} says something of captures alone")
    counters = _patiently(partial(counted, counting), tell, _READ) if counting else None
    if counters is not None and not read_files:
        if replay is not None:
            raise InputError(
                f"{counting[0].path}: getStats has no feedback on packets for {replay}; expected an event log or "
                "a capture"
            )
        done = _run(counting, counters.summary, counters.tables, counters.remarks, counters.begun_ms, counters.damage)
    else:
        call = _patiently(partial(_call, near, distant, same_clock, replay, at, rtp), tell, _READ)
        tables = {name: _patiently(partial(call.table, name), tell, _MADE) for name in call.table_names()}
        metrics, doubts = json.loads(call.summary_json()), [*call.doubts, *_broken(call, read_files)]
        done = _run(read_files, metrics, tables, call.remarks, call.begun_ms, doubts)
        if counters is not None:
            done = _patiently(partial(joined, done, counters, read_files, counting), tell, _MADE)
    if link is not None:
        done = _patiently(partial(_with_truth, done, link), tell, _MADE)
    tell(1.0)
    return done


def _call(
    near: Sequence[File], far: Sequence[File], same_clock: bool, replay: str | None, at: str | None, rtp: str | None
) -> _core.ImportedCall:
    host = None if replay is None else _host(replay)
    files = [*near, *far]
    try:
        if files[0].format == CAPTURE:
            near_data, far_data = [file.data for file in near], [file.data for file in far]
            return _core.import_captures(near_data, far_data, same_clock, at, rtp, host)
        return _core.import_event_logs([file.data for file in files], same_clock, host)
    except ValueError as error:
        if len(error.args) == 1:
            raise InputError(str(error)) from None
        number, why = error.args
        raise InputError(f"{files[number].path}: {why}") from None


def _patiently(work: Callable[[], Result], tell: Progress, done: float) -> Result:
    """Does a piece of work, and reports meanwhile the part done before it."""
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
    by_data: dict[bytes, File] = {}
    for file in files:
        first = by_data.setdefault(file.data, file)
        if first is not file:
            same = "the file is given twice" if first.path == file.path else f"the file is the same as {first.path}"
            raise InputError(f"{file.path}: {same}; expected the file of the other end")


def _with_truth(done: Run, link: str | Path) -> Run:
    captured = None
    capture = Path(link) / _SESSION_CAPTURE
    if "packets" not in done.tables and capture.is_file():
        captured = imported([capture])
    joined = truth(done, link, captured)
    tables = {**{name: done.table(name) for name in done.tables}, **joined.tables}
    notes = [*done.summary["notes"], *_remarks(joined.remarks)]
    summary = {**done.summary, "links": list(joined.links), "notes": notes}
    return Run({**done.about, "summary": summary}, Kept(tables))


def _host(name: str) -> _core.ControllerHost:
    choice = choose(name, Path(), run_code=False)
    if is_file(choice.name):
        right = "expected a controller of tidegate, such as gcc, for the replay"
        raise InputError(f"{name}: found a controller in a file; {right}")
    return _core.controller(choice.name, choice.preset, json.dumps(dict(choice.settings)), 0, 0, None)


def agreement(run: Run) -> Mapping[str, float] | None:
    """Compares a replayed detector with the recorded one; None without both.

    Returns parts of the time in which both are known: `agree`, in which they are equal, `recorded_overuse` and
    `replayed_overuse`, in which the detector reports over-use.
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
        rows = ours & (names == name)
        if not rows.any():
            return None
        steps.append(view.step_at(times[rows], values[rows], grid))
    recorded, replayed = (step[np.isfinite(steps[0]) & np.isfinite(steps[1])] for step in steps)
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
    doubts: Sequence[str],
) -> Run:
    name = files[0].path.name.partition(".")[0] or "recording"
    summary = {
        "name": name,
        "seed": 0,
        **metrics,
        "warnings": _remarks(doubts),
        "notes": _remarks(remarks),
    }
    about = {
        "format": FORMAT,
        "name": name,
        "seed": 0,
        "digest": summary["digest"],
        "summary": summary,
        # an imported call has no scenario
        "scenario": "",
        "base": str(files[0].path.parent.resolve()),
        "versions": dict(versions()),
        "imported": {"files": [file.about for file in files], "begun_ms": begun_ms},
    }
    return Run(about, Kept(tables))


def _remarks(sentences: Iterable[str]) -> list[dict[str, str]]:
    return [{"key": KEY, "says": sentence} for sentence in sentences]


def _broken(call: _core.ImportedCall, files: Sequence[File]) -> list[str]:
    """Returns sentences on records that could not be parsed, by file."""
    sentences = []
    for file, (first, count) in zip(files, call.problems, strict=True):
        sentences += [f"{file.path.name}: {problem}" for problem in first]
        if count > len(first):
            sentences.append(f"{file.path.name}: {count - len(first)} more records that could not be parsed")
    return sentences
