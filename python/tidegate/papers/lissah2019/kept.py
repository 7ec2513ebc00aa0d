"""What figures 3 to 5 and the document's MOS need of a run."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tidegate.papers.lissah2019.network import FRAMES, REPORTS
from tidegate.runs import Run

Floats = npt.NDArray[np.float64]

END = 80.0
"""When the video ends, s."""


@dataclass(frozen=True)
class Kept:
    """What is kept of a run."""

    digest: str
    sent: Floats
    """The video's packets in each interval of `REPORTS` seconds (figure 3)."""
    lost: float
    """Share of the video's packets that were sent and lost."""
    frame: npt.NDArray[np.int64]
    """Numbers of the frames that are whole at the receiver."""
    delay: Floats
    """Of each of them: from its first packet on the wire to its last one's arrival, ms (figure 4)."""
    late: Floats
    """Of each of them: from capture to arrival, with the time at the sender, ms."""
    cumulative: Floats
    """Of each of them: EvalVid's cumulative jitter, what the gaps between frames at the receiver are longer than those
    at the sender, added up, ms (figure 5)."""
    packet_delay: float
    """Mean one-way delay of packets, ms."""
    packet_jitter: float
    """Mean difference of the delays of two packets in a row, ms."""
    answers: Floats
    """The gaps that answered losses, us, before the session's least rate bounds them."""
    goodput: float
    """Of the video, bit/s."""
    tcp: float
    """Of the downloads, bit/s."""

    @classmethod
    def of(cls, run: Run) -> Kept:
        """Of a run."""
        sent, arrived, number = _packets(run)
        here = ~np.isnan(arrived)
        frame, first, last, whole = _frames(sent, arrived, number)
        delay = (last - first)[whole] * 1e3
        captured = _captured(run, frame)
        packets = (arrived - sent)[here] * 1e3
        return cls(
            digest=run.digest,
            sent=np.histogram(sent, np.arange(0.0, END + REPORTS / 2, REPORTS))[0].astype(float),
            lost=float(1 - here.mean()),
            frame=frame[whole],
            delay=delay,
            late=(last - captured)[whole] * 1e3,
            cumulative=delay - delay[0] if len(delay) else delay,
            packet_delay=float(packets.mean()) if len(packets) else float("nan"),
            packet_jitter=float(np.abs(np.diff(packets)).mean()) if len(packets) > 1 else float("nan"),
            answers=_answers(run),
            goodput=float(run.metrics("video")["goodput_bps"] or 0.0),
            tcp=sum(float(run.metrics(flow)["goodput_bps"] or 0.0) for flow in run.flows if flow.startswith("tcp")),
        )

    @property
    def whole(self) -> float:
        """Share of the video's frames that are whole at the receiver."""
        return len(self.frame) / FRAMES

    @property
    def mos(self) -> float:
        """The document's, of the run."""
        return simple_mos(self.packet_delay, self.packet_jitter, 100 * self.lost)


def simple_mos(delay_ms: float, jitter_ms: float, lost_percent: float) -> float:
    """A mean opinion score "from lost packets in percent, average delay, average jitter and R-value" (section 5.4).

    The document names these four and gives no formula. This one has them, no others, and is what tools that measure
    paths print (PingPlotter, "How is MOS calculated"): jitter counts as twice as much delay, 10 ms are for the
    codec, 1 % of loss costs 2.5 of R, and R makes a score by annex B of ITU-T G.107. It is meant for speech.

    >>> round(simple_mos(0, 0, 0), 2), round(simple_mos(77.7, 10, 5), 2), round(simple_mos(200, 30, 0), 2)
    (4.4, 3.95, 3.95)
    """
    effective = delay_ms + 2 * jitter_ms + 10
    rating = 93.2 - effective / 40 if effective < 160 else 93.2 - (effective - 120) / 10  # noqa: PLR2004
    rating = min(max(rating - 2.5 * lost_percent, 0.0), 100.0)
    return 1 + 0.035 * rating + 7e-6 * rating * (rating - 60) * (100 - rating)


def _packets(run: Run) -> tuple[Floats, Floats, npt.NDArray[np.int64]]:
    """When each packet of the video was sent and arrived, s, and the number of its frame."""
    table = run.table("packets")
    video = (table.to_numpy("flow") == "video") & (table.to_numpy("kind") == "video")
    video &= table.to_numpy("fate") != "under way"  # at the end
    frame = table.to_numpy("frame")[video].astype(np.int64)
    return table.to_numpy("sent_s")[video], table.to_numpy("arrived_s")[video], frame


def _frames(
    sent: Floats, arrived: Floats, number: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], Floats, Floats, npt.NDArray[np.bool_]]:
    """Of each frame sent: its number, when its first packet left, when its last one came, and whether all did."""
    frame, begin = np.unique(number, return_index=True)
    if not len(frame):
        return frame, np.empty(0), np.empty(0), np.empty(0, dtype=bool)
    last = np.maximum.reduceat(arrived, begin)  # NaN if one is lost
    return frame, sent[begin], last, ~np.isnan(last)


def _captured(run: Run, frame: npt.NDArray[np.int64]) -> Floats:
    """When each of these frames was captured, s; NaN of a source without frames."""
    table = run.table("frames")
    video = (table.to_numpy("flow") == "video") & table.to_numpy("video")
    numbers, at = table.to_numpy("frame")[video], table.to_numpy("captured_s")[video]
    if not len(numbers):
        return np.full(len(frame), np.nan)
    # frames are captured in their order
    return np.asarray(at[np.searchsorted(numbers, frame)], dtype=float)


def _answers(run: Run) -> Floats:
    table = run.table("internals")
    name, value = table.to_numpy("name"), table.to_numpy("value")
    gap, fraction = (np.asarray(value[name == one], dtype=float) for one in ("gap_us", "fraction_lost"))
    return gap[fraction > 0]
