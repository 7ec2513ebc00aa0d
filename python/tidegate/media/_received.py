"""Slices that arrived in time: from the record of a run to the input of a decoder.

* A frame's **rung** follows from the recorded size of its group's first frame, which differs between rungs. An encoder
  in the loop has left its frames with the run.
* A **slice** is in time if all packets that carry bytes of it are.
* A lost packet arrives when it is **repaired**: with its retransmission, or when parity restores it.
* A packet is **in time** if it arrived by the time its frame is due. If the frame was complete by then, the
  record has this time, whether or not the frame could be decoded without concealment. Otherwise it is the frame's time
  of capture plus the playout delay of the next frame that was complete in time, because then the buffer moved on; after
  the last such frame, plus the delay of that one. Packets that arrive later count as lost.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from tidegate.errors import InputError
from tidegate.media._live import Take, take
from tidegate.media.ladder import Ladder, Rung
from tidegate.runs import Run
from tidegate.scenario.media import Media
from tidegate.scenario.sources import EncoderVideo, FramesVideo
from tidegate.video.measures import Floats, Ints
from tidegate.video.settings import Settings

Sent = Ladder | Take
"""Source of the frames of a flow: a ladder of encodings, or the output of an encoder in the loop."""
Encoding = Rung | Take
"""A clip, encoded once."""


@dataclass(frozen=True)
class Received:
    """The frames of one flow in the order of sending, which is that of decoding."""

    sent: Sent
    flow: str
    coded: Ints
    """Number of each frame in what was sent; where a clip begins again, counting goes on."""
    rung: Ints
    """Rung of each frame, counted from 0."""
    captured_s: Floats
    """Time at which each frame left its encoder."""
    shown_s: Floats
    """Time at which each frame is shown, or would be if it had arrived: the deadline of its packets. Never falls."""
    arrived_s: list[Floats]
    """For each frame, the times at which its packets arrived; infinity for those that did not."""
    payload: int
    """Bytes of a full packet."""

    def __len__(self) -> int:
        """Number of frames."""
        return len(self.coded)

    def picture(self, frame: int) -> int:
        """Number of the picture that a frame shows; counting goes on where the clip begins again."""
        turns, position = divmod(int(self.coded[frame]), self.sent.length)
        first: int = turns * self.sent.pictures
        return first + int(self.sent.order[position])

    def _place(self, frame: int) -> tuple[Encoding, int]:
        return self.sent.rungs[int(self.rung[frame])], int(self.coded[frame]) % self.sent.length

    def rate(self, frame: int) -> int:
        """Rate that the encoder was asked for at a frame, in bit/s."""
        encoding, number = self._place(frame)
        return encoding.rate_at(number)

    def slices(self, frame: int) -> Iterator[tuple[bytes, bool]]:
        """The slices of a frame, each with whether it arrived in time."""
        encoding, number = self._place(frame)
        return zip(encoding.frame(number), self.slices_in_time(frame).tolist(), strict=True)

    def slices_in_time(self, frame: int) -> npt.NDArray[np.bool_]:
        """Whether each slice of a frame arrived in time."""
        encoding, number = self._place(frame)
        begin, length = encoding.places(number)
        # number of packets before each one that were late or lost
        missing = np.concatenate([[0], np.cumsum(self.arrived_s[frame] > self.shown_s[frame])])
        last = (begin + length - 1) // self.payload
        in_time: npt.NDArray[np.bool_] = missing[last + 1] == missing[begin // self.payload]
        return in_time


def media_of(run: Run, flow: str) -> Media:
    """The media settings of a flow in the scenario.

    Raises:
        InputError: when no flow with media has that name.
    """
    call = flow.removesuffix(".back")
    for candidate in run.scenario.flows:
        if candidate.media is not None and (candidate.name == flow or call in candidate.names):
            return candidate.media
    raise InputError(f"{flow} is not a flow with media")


def sent_by(run: Run, flow: str | None = None) -> Sent:
    """Source of the frames of a flow of a run; of the subject by default.

    Raises:
        InputError: when the flow sent no real video, or its encoded clip is gone.
    """
    name = flow or run.subject
    media = media_of(run, name)
    video = media.video
    if isinstance(video, EncoderVideo):
        return take(run, name, Settings.parse(video.clip), int(media.payload))
    if not isinstance(video, FramesVideo) or video.group is None:
        raise InputError(f"{run.name}: {name} sent no real video; run it with --media CLIP")
    return Ladder.load(Path(video.ladder).parent)


def received(run: Run, sent: Sent, flow: str | None = None) -> Received:
    """Frames of a flow, with the arrivals of their packets; of the subject by default.

    Args:
        run: The run.
        sent: Source of its frames: a ladder, or the result of [sent_by][tidegate.media._received.sent_by].
        flow: Name of the flow.

    Raises:
        InputError: when the run did not keep its packets, or sent other frames.
    """
    name = flow or run.subject
    if "packets" not in run.tables:
        raise InputError(f"{run.name}: the run has no packets; run it again with --media or --record packets")
    frames = run.table("frames")
    mine = (frames.to_numpy("flow") == name) & frames.to_numpy("video")
    by_number = np.argsort(frames.to_numpy("frame")[mine], kind="stable")

    def column(column_name: str) -> npt.NDArray[np.generic]:
        picked: npt.NDArray[np.generic] = frames.to_numpy(column_name)[mine][by_number]
        return picked

    sizes, key = column("size").astype(np.int64), column("key").astype(bool)
    captured = column("captured_s").astype(float)
    # a decoder that conceals shows a frame at its time, whether or not it could be decoded without that
    due = column("due_s" if "due_s" in frames.columns else "rendered_s").astype(float)
    payload = int(media_of(run, name).payload)
    if isinstance(sent, Take):
        if not np.array_equal(sent.sizes[sent.sizes > 0], sizes):
            raise InputError(f"{run.name}: the frames that {name} sent are not those of its encoder")
        arrived = _arrivals(run, name, sent.packets[sent.sizes > 0])
        return _received_take(sent, name, captured, due, arrived)
    coded = _coded(key, sent.form.group)
    rungs, arrived = _rungs(sizes, key, coded, sent, name), _arrivals(run, name, -(-sizes // payload))
    return Received(sent, name, coded, rungs, captured, deadlines(captured, due), arrived, payload)


def _received_take(take: Take, flow: str, captured_s: Floats, due_s: Floats, arrived_s: list[Floats]) -> Received:
    """Frames of a take, with those that its encoder left out: without packets, at their time of capture."""
    encoded = np.flatnonzero(take.sizes)
    # pictures left out before the first frame and after the last one do not matter
    coded = np.arange(encoded[0], encoded[-1] + 1) if len(encoded) else encoded
    captured = np.interp(take.order[coded], take.order[encoded], captured_s) if len(encoded) else captured_s
    due = np.full(len(coded), math.nan)
    arrived = [np.zeros(0)] * len(coded)
    for frame, position in enumerate((encoded - coded[:1]).tolist()):
        due[position], arrived[position] = due_s[frame], arrived_s[frame]
    rung = np.zeros(len(coded), dtype=np.int64)
    shown_s = deadlines(captured, due)
    return Received(take, flow, coded, rung, captured, shown_s, arrived, take.form.payload)


def _coded(key: npt.NDArray[np.bool_], group: int) -> Ints:
    """The place of each frame in the ladder: a pause of the source leaves out the rest of a group."""
    numbers = np.arange(len(key))
    group_starts: Ints = np.maximum.accumulate(np.where(key, numbers, 0))
    places: Ints = (np.cumsum(key) - 1) * group + numbers - group_starts
    return places


def _rungs(sizes: Ints, key: npt.NDArray[np.bool_], coded: Ints, ladder: Sent, flow: str) -> Ints:
    if not len(sizes):
        return np.zeros(0, dtype=np.int64)
    positions = coded % ladder.length
    rung_sizes = np.array([rung.sizes for rung in ladder.rungs])[:, positions]
    firsts = np.flatnonzero(key)
    rungs = (rung_sizes[:, firsts] == sizes[firsts]).argmax(axis=0)[np.cumsum(key) - 1]
    wrong = np.flatnonzero(rung_sizes[rungs, np.arange(len(sizes))] != sizes)
    if len(wrong):
        raise InputError(
            f"{flow}: frame {wrong[0]} has {sizes[wrong[0]]} bytes and is not a frame of the encoded clip; "
            "the clip has been encoded again since the run: run it again"
        )
    numbers: Ints = rungs.astype(np.int64)
    return numbers


def deadlines(captured_s: Floats, due_s: Floats) -> Floats:
    """Time at which each frame is shown or given up.

    Args:
        captured_s: In ascending order.
        due_s: When each frame was to be shown; NaN where it was not complete by then.

    Returns:
        Never falls; the time of capture where no frame was complete in time.

    >>> deadlines(np.array([0.0, 1.0, 2.0, 3.0]), np.array([0.5, np.nan, 2.7, np.nan]))
    array([0.5, 1.7, 2.7, 3.7])
    """
    complete = np.flatnonzero(np.isfinite(due_s))
    if not len(complete):
        return captured_s.copy()
    after = np.searchsorted(complete, np.arange(len(captured_s)))
    source = complete[np.minimum(after, len(complete) - 1)]
    times = captured_s + (due_s - captured_s)[source]
    times[complete] = due_s[complete]
    # a delay that shrinks may put a frame that was given up before one that was shown
    never_falling: Floats = np.maximum.accumulate(times)
    return never_falling


def _arrivals(run: Run, flow: str, counts: Ints) -> list[Floats]:
    """For each frame the times of arrival of its packets; its first packet on record counts as its first."""
    packets = run.table("packets")
    mine = (packets.to_numpy("flow") == flow) & (packets.to_numpy("kind") == "video")
    frame = packets.to_numpy("frame")[mine].astype(np.int64)
    sequence = packets.to_numpy("rtp_sequence")[mine].astype(np.int64)
    arrived = packets.to_numpy("arrived_s")[mine].astype(float)
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    flat = np.full(int(starts[-1]), math.inf)
    if len(frame):
        # packets are in order of sending: the first of a frame among them has its lowest number
        first = np.full(len(counts), -1, dtype=np.int64)
        first[frame[::-1]] = sequence[::-1]
        part = (sequence - first[frame]) % (1 << 16)
        _book(flat, starts, frame, part, arrived)
        if "repairs" in run.tables:
            repairs = run.table("repairs")
            mine = repairs.to_numpy("flow") == flow
            frame = repairs.to_numpy("frame")[mine].astype(np.int64)
            # a frame without packets on record was not sent
            part = (repairs.to_numpy("rtp_sequence")[mine].astype(np.int64) - first[frame]) % (1 << 16)
            _book(flat, starts, frame, part, repairs.to_numpy("t_s")[mine].astype(float))
    return [flat[starts[k] : starts[k + 1]] for k in range(len(counts))]


def _book(flat: Floats, starts: Ints, frame: Ints, part: Ints, arrived: Floats) -> None:
    """Enters the times at which parts of frames arrived, where they are earlier than those entered before."""
    good = np.isfinite(arrived) & (part < np.diff(starts)[frame])
    np.minimum.at(flat, starts[frame[good]] + part[good], arrived[good])
