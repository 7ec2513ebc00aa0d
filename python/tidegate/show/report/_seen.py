"""The part of a recorded call's report on its picture: when it stood still, and how late its frames were."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tidegate.output.document import Block, Column, Paragraph, Row, Section, Table, notes
from tidegate.show import _session
from tidegate.show.view import Floats, RunLike
from tidegate.wording import counted

_LATE_MS = 150.0
"""Lateness of a frame that is listed: that by which libwebrtc tells a freeze from a pause between two pictures
(`kMinIncreaseForFreezeMs` of `video_quality_observer2.cc`)."""
_APART_S = 1.0
"""Time between two late frames from which on they are of two stretches."""
_MOST = 20
"""Largest number of freezes and of stretches that are listed: the longest, and the latest."""


def section(run: RunLike) -> Iterator[Section]:
    """Yields the section; none for a call without video."""
    blocks: list[Block] = []
    for entry in run.summary["flows"]:
        # a picture is encoded, decoded, frozen, or seen as frames on the wire
        if any(entry.get(name) for name in ("frames_encoded", "frames_decoded", "frames_sent", "freezes")):
            blocks += [*_freezes(run, entry), *_processing(run, entry), *_late_frames(run, entry)]
    if blocks:
        yield Section("The picture", blocks)


def _freezes(run: RunLike, entry: dict[str, Any]) -> Iterator[Block]:
    flow = str(entry["flow"])
    count = entry.get("freezes")
    if count is None:
        yield Paragraph(f"{flow}: the recording does not say what was shown; getStats of the receiver does.")
        return
    if not count:
        yield Paragraph(f"{flow}: the receiver counted no freeze: the picture never stood still.")
        return
    total = entry.get("freeze_time_s")
    in_all = "" if total is None else f", {total:.2f} s in all"
    yield Paragraph(f"{flow}: the picture stood still {_times(int(count))}{in_all}.")
    ends, lengths = _session.freezes(run, flow)
    yield from _listed("stood still until (s)", "for (s)", ends, lengths, 2)
    if len(ends):
        # a report counts every freeze since the one before
        together = f"{counted(len(ends), 'report')} counted them, so that a row may have several of them."
        several = together if len(ends) < count else ""
        yield from notes(
            several, "Times are of the reports that first counted a freeze: it ended at that time or shortly before."
        )


def _processing(run: RunLike, entry: dict[str, Any]) -> Iterator[Block]:
    times, taken = _session.processing(run, str(entry["flow"]))
    if len(taken):
        worst = int(np.argmax(taken))
        usual, longest = np.median(taken), taken[worst]
        yield Paragraph(
            f"{entry['flow']}: frames were decoded {usual:.0f} ms after their first packet came (median of reports), "
            f"at most {longest:.0f} ms (mean of the report at {times[worst]:.1f} s)."
        )


def _late_frames(run: RunLike, entry: dict[str, Any]) -> Iterator[Block]:
    captured, late = _session.lateness(run, str(entry["flow"]))
    if not len(late):
        return
    flow, sent, whole = str(entry["flow"]), entry.get("frames_sent"), entry.get("frames_whole")
    most, latest = entry["frame_lateness_ms_p95"], entry["frame_lateness_ms_max"]
    yield Paragraph(
        f"{flow}: 95 % of the complete video frames came within {most:.0f} ms of the quickest, and the latest of them "
        f"{latest:.0f} ms after it."
    )
    if sent is not None and whole is not None and whole < sent:
        yield Paragraph(f"{flow}: of {counted(int(sent), 'frame')} {int(sent - whole)} lacked a packet at first.")
    late_rows = np.flatnonzero(late > _LATE_MS)
    late_rows = late_rows[np.argsort(captured[late_rows], kind="stable")]
    times, values = captured[late_rows], late[late_rows]
    if len(times):
        begins = np.flatnonzero(np.diff(times, prepend=-np.inf) > _APART_S)
        largest = np.maximum.reduceat(values, begins)
        last = times[np.append(begins[1:], len(times)) - 1]
        heading = f"frames later than {_LATE_MS:.0f} ms, from (s)"
        yield from _listed(heading, "by at most (ms)", times[begins], largest, 0, until=last)


def _listed(
    heading: str, size: str, times: Floats, sizes: Floats, digits: int, *, until: Floats | None = None
) -> Iterator[Block]:
    """Yields a table with a row for each time, in order of time; of many the largest."""
    kept = np.sort(np.argsort(-sizes, kind="stable")[:_MOST])
    columns = [Column(heading), *([] if until is None else [Column("to (s)")]), Column(size)]
    rows = [
        Row([f"{times[row]:.1f}", *([] if until is None else [f"{until[row]:.1f}"]), f"{sizes[row]:.{digits}f}"])
        for row in kept
    ]
    if rows:
        yield Table(columns, rows, "numbers")
    if len(kept) < len(times):
        yield from notes(f"The largest {len(kept)} of {len(times)} are listed.")


def _times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count} times")
