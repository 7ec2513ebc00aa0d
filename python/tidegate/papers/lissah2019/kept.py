"""Summary of a run for figures 3 to 5 and the document's MOS."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tidegate.papers.lissah2019.network import FRAMES, REPORTS
from tidegate.runs import Run

Floats = npt.NDArray[np.float64]

END = 80.0
"""End of the video, s."""


@dataclass(frozen=True)
class NetworkRun:
    """Summary of a run; arrays by frame have a value for each frame that is whole at the receiver."""

    digest: str
    sent: Floats
    """Packets of the video sent in each interval of `REPORTS` seconds (figure 3)."""
    lost: float
    """Share of the video's sent packets that were lost."""
    frame: npt.NDArray[np.int64]
    """Numbers of the frames that are whole at the receiver."""
    delay: Floats
    """Delay by frame: from its first packet on the wire to the arrival of its last one, ms (figure 4)."""
    late: Floats
    """Delay by frame from capture to arrival, with the time at the sender, ms."""
    cumulative: Floats
    """EvalVid's cumulative jitter by frame, ms (figure 5): the summed amounts by which gaps between frames are longer
    at the receiver than at the sender."""
    packet_delay: float
    """Mean one-way delay of packets, ms."""
    packet_jitter: float
    """Mean absolute difference of the delays of two successive packets, ms."""
    answers: Floats
    """Gaps that followed losses, us, before the session's minimum rate bounds them."""
    goodput: float
    """Goodput of the video, bit/s."""
    tcp: float
    """Goodput of the downloads together, bit/s."""

    @classmethod
    def from_run(cls, run: Run) -> NetworkRun:
        """Summarises a run."""
        sent, arrived, number = _packets(run)
        received = ~np.isnan(arrived)
        frame, first, last, complete = _frames(sent, arrived, number)
        delay = (last - first)[complete] * 1e3
        captured = _captured(run, frame)
        packet_delays = (arrived - sent)[received] * 1e3
        return cls(
            digest=run.digest,
            sent=np.histogram(sent, np.arange(0.0, END + REPORTS / 2, REPORTS))[0].astype(float),
            lost=float(1 - received.mean()),
            frame=frame[complete],
            delay=delay,
            late=(last - captured)[complete] * 1e3,
            cumulative=delay - delay[0] if len(delay) else delay,
            packet_delay=float(packet_delays.mean()) if len(packet_delays) else float("nan"),
            packet_jitter=float(np.abs(np.diff(packet_delays)).mean()) if len(packet_delays) > 1 else float("nan"),
            answers=_gaps_after_loss(run),
            goodput=float(run.metrics("video")["goodput_bps"] or 0.0),
            tcp=sum(float(run.metrics(flow)["goodput_bps"] or 0.0) for flow in run.flows if flow.startswith("tcp")),
        )

    @property
    def share_whole(self) -> float:
        """Share of the video's frames that are whole at the receiver."""
        return len(self.frame) / FRAMES

    @property
    def mos(self) -> float:
        """The document's MOS of the run."""
        return simple_mos(self.packet_delay, self.packet_jitter, 100 * self.lost)


def simple_mos(delay_ms: float, jitter_ms: float, lost_percent: float) -> float:
    """A mean opinion score "from lost packets in percent, average delay, average jitter and R-value" (section 5.4).

    The document names these four quantities and gives no formula. This one uses them and no others, and is the one of
    tools that measure paths (PingPlotter, "How is MOS calculated"): jitter counts twice as much as delay, 10 ms are
    added for the codec, 1 % of loss reduces R by 2.5, and annex B of ITU-T G.107 turns R into a score. It is meant for
    speech.

    >>> round(simple_mos(0, 0, 0), 2), round(simple_mos(77.7, 10, 5), 2), round(simple_mos(200, 30, 0), 2)
    (4.4, 3.95, 3.95)
    """
    effective = delay_ms + 2 * jitter_ms + 10
    rating = 93.2 - effective / 40 if effective < 160 else 93.2 - (effective - 120) / 10  # noqa: PLR2004
    rating = min(max(rating - 2.5 * lost_percent, 0.0), 100.0)
    return 1 + 0.035 * rating + 7e-6 * rating * (rating - 60) * (100 - rating)


def _packets(run: Run) -> tuple[Floats, Floats, npt.NDArray[np.int64]]:
    """Departure and arrival of each packet of the video, s, and the number of its frame."""
    table = run.table("packets")
    video = (table.to_numpy("flow") == "video") & (table.to_numpy("kind") == "video")
    video &= table.to_numpy("fate") != "under way"  # at the end
    frame = table.to_numpy("frame")[video].astype(np.int64)
    return table.to_numpy("sent_s")[video], table.to_numpy("arrived_s")[video], frame


def _frames(
    sent: Floats, arrived: Floats, number: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], Floats, Floats, npt.NDArray[np.bool_]]:
    """Number of each sent frame, departure of its first packet, arrival of its last one, and whether all arrived."""
    frame, begin = np.unique(number, return_index=True)
    if not len(frame):
        return frame, np.empty(0), np.empty(0), np.empty(0, dtype=bool)
    last = np.maximum.reduceat(arrived, begin)  # NaN if one is lost
    return frame, sent[begin], last, ~np.isnan(last)


def _captured(run: Run, frame: npt.NDArray[np.int64]) -> Floats:
    """Capture time of each of these frames, s; NaN if the source has no frames."""
    table = run.table("frames")
    video = (table.to_numpy("flow") == "video") & table.to_numpy("video")
    numbers, times = table.to_numpy("frame")[video], table.to_numpy("captured_s")[video]
    if not len(numbers):
        return np.full(len(frame), np.nan)
    # the table is in the order of frames
    return np.asarray(times[np.searchsorted(numbers, frame)], dtype=float)


def _gaps_after_loss(run: Run) -> Floats:
    table = run.table("internals")
    names, values = table.to_numpy("name"), table.to_numpy("value")
    gap, fraction = (np.asarray(values[names == name], dtype=float) for name in ("gap_us", "fraction_lost"))
    return gap[fraction > 0]
