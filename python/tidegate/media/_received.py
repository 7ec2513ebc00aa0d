"""Which slices of which frames arrived in time: from the record of a run to what a decoder is given.

* A frame's **rung** follows from the recorded size of its group's first frame, which no two rungs have in common. An
  encoder in the loop has left its frames with the run.
* A **slice** is there if all packets that carry bytes of it are.
* A lost packet arrives when it is **repaired**: with its retransmission, or when parity restores it.
* A packet is **in time** if it arrived by the time its frame is shown. For a frame that the playout buffer showed, that
  is when it did. For one that it gave up, whole or not, it is its time of capture and the playout delay of the next
  frame that was shown, which is when the buffer moved on; after the last one, the delay of that one. What comes later
  is lost.
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
"""Where the frames of a flow are from: a ladder of encodings, or what an encoder in the loop made."""
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
    """From which rung, counted from 0."""
    captured_s: Floats
    """When each left its encoder."""
    shown_s: Floats
    """When each is shown, or would be if it had come: its packets' deadline. Never falls."""
    arrived_s: list[Floats]
    """For each frame when each of its packets arrived; infinity where it did not."""
    payload: int
    """Bytes of a full packet."""

    def __len__(self) -> int:
        """How many frames."""
        return len(self.coded)

    def picture(self, frame: int) -> int:
        """Which picture of the clip a frame shows, counted on where what was sent begins again."""
        turns, at = divmod(int(self.coded[frame]), self.sent.length)
        first: int = turns * self.sent.pictures
        return first + int(self.sent.order[at])

    def _place(self, frame: int) -> tuple[Encoding, int]:
        return self.sent.rungs[int(self.rung[frame])], int(self.coded[frame]) % self.sent.length

    def rate(self, frame: int) -> int:
        """What the encoder was asked for at a frame, in bit/s."""
        encoding, number = self._place(frame)
        return encoding.rate_at(number)

    def slices(self, frame: int) -> Iterator[tuple[bytes, bool]]:
        """The slices of a frame, each with whether it was there in time."""
        encoding, number = self._place(frame)
        return zip(encoding.frame(number), self.there(frame).tolist(), strict=True)

    def there(self, frame: int) -> npt.NDArray[np.bool_]:
        """For each slice of a frame whether it was there in time."""
        encoding, number = self._place(frame)
        begin, length = encoding.places(number)
        # how many packets before each were late or lost
        missing = np.concatenate([[0], np.cumsum(self.arrived_s[frame] > self.shown_s[frame])])
        last = (begin + length - 1) // self.payload
        there: npt.NDArray[np.bool_] = missing[last + 1] == missing[begin // self.payload]
        return there


def media_of(run: Run, flow: str) -> Media:
    """What the scenario says of a flow with media.

    Raises:
        InputError: when there is none of that name.
    """
    plain = flow.removesuffix(".back")
    for one in run.scenario.flows:
        if one.media is not None and (one.name == flow or plain in one.names):
            return one.media
    raise InputError(f"{flow}: is no flow with media")


def sent_by(run: Run, flow: str | None = None) -> Sent:
    """Where the frames of a flow of a run are from; of the subject by default.

    Raises:
        InputError: when it sent no real video, or that is gone.
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
    """What arrived of a flow; of the subject by default.

    Args:
        run: The run.
        sent: What it was fed from: a ladder, or what [sent_by][tidegate.media._received.sent_by] gives.
        flow: Whose.

    Raises:
        InputError: when the run did not keep its packets, or sent something else.
    """
    name = flow or run.subject
    if "packets" not in run.tables:
        raise InputError(f"{run.name}: the run did not keep its packets; run it with --media, or --record packets")
    frames = run.table("frames")
    mine = (frames.to_numpy("flow") == name) & frames.to_numpy("video")
    by_number = np.argsort(frames.to_numpy("frame")[mine], kind="stable")

    def column(of: str) -> npt.NDArray[np.generic]:
        picked: npt.NDArray[np.generic] = frames.to_numpy(of)[mine][by_number]
        return picked

    sizes, key = column("size").astype(np.int64), column("key").astype(bool)
    captured, rendered = column("captured_s").astype(float), column("rendered_s").astype(float)
    payload = int(media_of(run, name).payload)
    if isinstance(sent, Take):
        if not np.array_equal(sent.sizes[sent.sizes > 0], sizes):
            raise InputError(f"{run.name}: {name} sent other frames than its encoder made")
        arrived = _arrivals(run, name, sent.packets[sent.sizes > 0])
        return _taken(sent, name, captured, rendered, arrived)
    coded = _coded(key, sent.form.group)
    rungs, arrived = _rungs(sizes, key, coded, sent, name), _arrivals(run, name, -(-sizes // payload))
    return Received(sent, name, coded, rungs, captured, deadlines(captured, rendered), arrived, payload)


def _taken(take: Take, flow: str, captured_s: Floats, rendered_s: Floats, arrived_s: list[Floats]) -> Received:
    """What arrived of a take, with the pictures that its encoder left out: nothing of them, at their time."""
    made = np.flatnonzero(take.sizes)
    # what it left out before the first frame and behind the last is of no consequence
    coded = np.arange(made[0], made[-1] + 1) if len(made) else made
    captured = np.interp(take.order[coded], take.order[made], captured_s) if len(made) else captured_s
    rendered = np.full(len(coded), math.nan)
    arrived = [np.zeros(0)] * len(coded)
    for frame, at in enumerate((made - coded[:1]).tolist()):
        rendered[at], arrived[at] = rendered_s[frame], arrived_s[frame]
    rung = np.zeros(len(coded), dtype=np.int64)
    shown = deadlines(captured, rendered)
    return Received(take, flow, coded, rung, captured, shown, arrived, take.form.payload)


def _coded(key: npt.NDArray[np.bool_], group: int) -> Ints:
    """The place of each frame in the ladder: a pause of the source leaves out the rest of a group."""
    numbers = np.arange(len(key))
    begun: Ints = np.maximum.accumulate(np.where(key, numbers, 0))
    places: Ints = (np.cumsum(key) - 1) * group + numbers - begun
    return places


def _rungs(sizes: Ints, key: npt.NDArray[np.bool_], coded: Ints, ladder: Sent, flow: str) -> Ints:
    if not len(sizes):
        return np.zeros(0, dtype=np.int64)
    at = coded % ladder.length
    every = np.array([rung.sizes for rung in ladder.rungs])[:, at]
    firsts = np.flatnonzero(key)
    rungs = (every[:, firsts] == sizes[firsts]).argmax(axis=0)[np.cumsum(key) - 1]
    wrong = np.flatnonzero(every[rungs, np.arange(len(sizes))] != sizes)
    if len(wrong):
        raise InputError(
            f"{flow}: frame {wrong[0]} has {sizes[wrong[0]]} bytes, which is no frame of the encoded clip; "
            "the clip has been encoded anew since: run again"
        )
    found: Ints = rungs.astype(np.int64)
    return found


def deadlines(captured_s: Floats, rendered_s: Floats) -> Floats:
    """When each frame is shown, or given up.

    Args:
        captured_s: In ascending order.
        rendered_s: NaN where a frame was not shown.

    Returns:
        Never falls; the time of capture where no frame was shown at all.

    >>> deadlines(np.array([0.0, 1.0, 2.0, 3.0]), np.array([0.5, np.nan, 2.7, np.nan]))
    array([0.5, 1.7, 2.7, 3.7])
    """
    shown = np.flatnonzero(np.isfinite(rendered_s))
    if not len(shown):
        return captured_s.copy()
    after = np.searchsorted(shown, np.arange(len(captured_s)))
    source = shown[np.minimum(after, len(shown) - 1)]
    times = captured_s + (rendered_s - captured_s)[source]
    times[shown] = rendered_s[shown]
    # a delay that shrinks may put a frame that was given up before one that was shown
    never_falling: Floats = np.maximum.accumulate(times)
    return never_falling


def _arrivals(run: Run, flow: str, counts: Ints) -> list[Floats]:
    """For each frame the time of arrival of each packet; the first packet that is on record is its first."""
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
            # of a frame of which no packet is on record nothing was sent
            part = (repairs.to_numpy("rtp_sequence")[mine].astype(np.int64) - first[frame]) % (1 << 16)
            _book(flat, starts, frame, part, repairs.to_numpy("t_s")[mine].astype(float))
    return [flat[starts[k] : starts[k + 1]] for k in range(len(counts))]


def _book(flat: Floats, starts: Ints, frame: Ints, part: Ints, arrived: Floats) -> None:
    """Enters when parts of frames arrived, where that is earlier than what is known."""
    good = np.isfinite(arrived) & (part < np.diff(starts)[frame])
    np.minimum.at(flat, starts[frame[good]] + part[good], arrived[good])
