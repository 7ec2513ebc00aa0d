"""The report of a recorded call: when the picture stood still, how late its frames were, and no unknown capacity."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tidegate
from support import event_logs as log
from tidegate import Run, report
from tidegate.recordings import imported
from tidegate.show import plot

SECONDS, COUNT = 20, 300
FREEZES = {12: (2, 0.984), 15: (3, 1.374)}
"""Freezes and their time that the report of a second is the first to tell."""
LATE = range(100, 110)
"""Frames that are 300 ms late."""


def stats(folder: Path, freezes: Mapping[int, tuple[int, float]] | None) -> Run:
    """A receiver's getStats, a report a second; None where it does not count freezes."""
    count = (0, 0.0)
    lines = []
    for second in range(SECONDS):
        count = (freezes or {}).get(second, count)
        stream: dict[str, Any] = {
            "id": "I", "type": "inbound-rtp", "kind": "video", "ssrc": 1, "packetsReceived": 100 * second, "packetsLost": 0,
            "bytesReceived": 100_000 * second, "framesDecoded": 30 * second,
            "totalProcessingDelay": 1.5 * second + (3.0 if second >= 12 else 0.0),
        }  # fmt: skip
        if freezes is not None:
            stream |= {"freezeCount": count[0], "totalFreezesDuration": count[1]}
        lines.append(json.dumps({"time_s": second, "report": [stream]}) + "\n")
    (folder / "stats.jsonl").write_text("".join(lines))
    return imported([folder / "stats.jsonl"])


def both_logs(folder: Path) -> Run:
    """Both ends' event logs of 10 s of video, of which some frames are late."""
    head = log.begin(990) + log.streams(0x1234, 0x1235)
    sent = [log.Rtp(1000 + 33 * n, n, n, timestamp=2970 * n, marker=True) for n in range(COUNT)]
    came = [
        log.Rtp(1030 + 33 * n + (300 if n in LATE else 0), n, n, timestamp=2970 * n, marker=True) for n in range(COUNT)
    ]
    (folder / "a.log").write_bytes(head + log.rtp(sent, outgoing=True))
    (folder / "b.log").write_bytes(log.begin(990) + log.rtp(sorted(came, key=lambda one: one.at_ms), outgoing=False))
    return imported([folder / "a.log", folder / "b.log"])


def text_of(page: str) -> str:
    """A page's text, with a bar between the texts of tags."""
    page = re.sub(r"(?s)<(script|style).*?</\1>", "", page)
    return re.sub(r"\s*\|[\s|]*", "|", html.unescape(re.sub(r"<[^>]+>", "|", page)))


def test_a_report_says_when_the_picture_stood_still(tmp_path: Path) -> None:
    page = report.html(stats(tmp_path, FREEZES))
    text = text_of(page)
    assert "|The picture|incoming: the picture stood still 3 times, 1.37 s in all.|" in text
    assert "|Stood still until (s)|For (s)|12.0|0.98|15.0|0.39|" in text
    assert "it ended at that time or shortly before" in text
    late = "frames were decoded 50 ms after their first packet came (median of reports), at most 150 ms"
    assert f"|incoming: {late} (mean of the report at 12.0 s).|" in text
    assert "Time in which the picture stood still is shaded." in page


def test_no_freeze_and_an_unknown_number_of_them_are_two_things(tmp_path: Path) -> None:
    assert "incoming: the receiver counted no freeze: the picture never stood still.|" in text_of(
        report.html(stats(tmp_path, {}))
    )
    text = text_of(report.html(stats(tmp_path, None)))
    assert "incoming: the recording does not say what was shown; getStats of the receiver does.|" in text
    assert "stood still" not in text


def test_a_report_says_how_late_frames_were(tmp_path: Path) -> None:
    run = both_logs(tmp_path)
    page = report.html(run)
    text = text_of(page)
    assert "outgoing: the recording does not say what was shown; getStats of the receiver does.|" in text
    assert (
        "outgoing: 95 % of the complete video frames came within 0 ms of the quickest, and the latest of them 300 ms after it"
        in text
    )
    assert "|Frames later than 150 ms, from (s)|To (s)|By at most (ms)|3.3|3.6|300|" in text
    assert "|Frame lateness|" in text
    # a picture of it shows no frame as never shown
    labels = [label for ax in plot.session(run).axes for label in ax.get_legend_handles_labels()[1]]
    assert "complete, later than the quickest" in labels
    assert "never shown" not in labels


def test_no_chart_has_an_unknown_capacity(tmp_path: Path) -> None:
    for run in (stats(tmp_path, FREEZES), both_logs(tmp_path)):
        text = text_of(report.html(run))
        assert "|Rate|" in text
        assert "apacity" not in text.partition("What the numbers mean")[0]
        assert all("apacity" not in ax.get_ylabel() for ax in plot.session(run).axes)
    simulated = tidegate.run(tidegate.Scenario.load("home-broadband").with_changes({"duration": "3s"}))
    assert "|Rate against capacity|" in text_of(report.html(simulated))
    assert "The picture" not in text_of(report.html(simulated))
