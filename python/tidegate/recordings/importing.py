"""From the files of a recorded call to a run."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tidegate import _core
from tidegate._core import Table
from tidegate.control.registry import choose
from tidegate.errors import InputError
from tidegate.recordings._reading import File, read
from tidegate.running import Run
from tidegate.running._versions import versions
from tidegate.running.recorded import FORMAT
from tidegate.show import _view

OVERUSE = 1
"""The code of over-use in `state`."""

KEY = "recording"
"""Of what has to be known of an imported run, among the warnings of its summary."""


class _Told:
    """The tables of an imported call, in memory."""

    def __init__(self, call: _core.ImportedCall) -> None:
        self._call = call

    def names(self) -> list[str]:
        return self._call.table_names()

    def get(self, name: str) -> Table:
        return self._call.table(name)

    def capture(self, _side: str) -> bytes | None:
        return None

    def encoded(self, _flow: str) -> bytes | None:
        return None

    def draws(self) -> Mapping[str, Any] | None:
        return None


def imported(
    files: Sequence[str | Path],
    *,
    far: Sequence[str | Path] = (),
    same_clock: bool = False,
    replay: str | None = None,
) -> Run:
    """A recorded call as a run, whose metrics are those of runs as far as the recording tells them.

    Args:
        files: RTC event logs of libwebrtc (format 2), or captures (pcap, pcapng): those of one end; and that of the
            other one, if there is one. They may be packed by gzip.
        far: Those of the other end, where there are several of one.
        same_clock: Whether both ends had one clock; else the far one is set so that the least one-way delay is the same
            both ways.
        replay: A controller of tidegate's that hears, open loop, what the near end was told: `gcc`,
            `gcc:draft-02,beta=0.9`. What it notes is in the table `internals`, as `replayed_...`.

    Raises:
        ControllerError: when there is no such controller, preset or setting.
        InputError: which file is wrong, where, what was found there and what would be right.
    """
    if not files:
        raise InputError("no file was given; expected a recording of a call")
    near, distant = ([read(Path(one)) for one in one_end] for one_end in (files, far))
    some = [*near, *distant]
    strange = next((one for one in some if one.format != some[0].format), None)
    if strange is not None:
        found = f"found a file of the format “{strange.format}” beside one of “{some[0].format}”"
        raise InputError(f"{strange.path}: {found}; expected one format for all")
    host = None if replay is None else _host(replay)
    try:
        if some[0].format == "capture":
            call = _core.import_captures([one.data for one in near], [one.data for one in distant], same_clock, host)
        else:
            call = _core.import_event_logs([one.data for one in some], same_clock, host)
    except ValueError as error:
        at, why = error.args
        raise InputError(f"{some[at].path}: {why}") from None
    return Run(_about(call, some), _Told(call))


def _host(name: str) -> _core.ControllerHost:
    choice = choose(name, Path(), run_code=False)
    if choice.name.startswith("python"):
        raise InputError(
            f"{name}: found a controller in Python; expected one of tidegate's, such as gcc, to hear a recording"
        )
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
        steps.append(_view.step_at(times[some], values[some], grid))
    recorded, replayed = (one[np.isfinite(steps[0]) & np.isfinite(steps[1])] for one in steps)
    if not len(recorded):
        return None
    return {
        "agree": float(np.mean(recorded == replayed)),
        "recorded_overuse": float(np.mean(recorded == OVERUSE)),
        "replayed_overuse": float(np.mean(replayed == OVERUSE)),
    }


def _about(call: _core.ImportedCall, files: Sequence[File]) -> Mapping[str, Any]:
    name = files[0].path.name.partition(".")[0] or "recording"
    says = [*call.remarks, *_broken(call, files)]
    summary = {"name": name, "seed": 0, **json.loads(call.summary_json())}
    summary["warnings"] = [{"key": KEY, "says": one} for one in says]
    return {
        "format": FORMAT,
        "name": name,
        "seed": 0,
        "digest": summary["digest"],
        "summary": summary,
        # nobody ran a scenario
        "scenario": "",
        "base": str(files[0].path.parent.resolve()),
        "versions": dict(versions()),
        "imported": {"files": [one.about for one in files], "begun_ms": call.begun_ms},
    }


def _broken(call: _core.ImportedCall, files: Sequence[File]) -> list[str]:
    """What could not be read, by file."""
    told = []
    for file, (first, count) in zip(files, call.problems, strict=True):
        told += [f"{file.path.name}: {one}" for one in first]
        if count > len(first):
            told.append(f"{file.path.name}: {count - len(first)} more things that could not be read")
    return told
