"""The display clock: the picture that is due and the one on the screen at each tick, computed before decoding.

The screen ticks with the clip's frame rate from when the first picture is shown; a tick is evaluated at its middle, so
that small deviations of playout do not matter. At each tick

* **on**: the last picture whose time has come is on the screen (or the last one before it that could be decoded);
* **due**: while playout goes on, the same picture. While the screen waits for a late frame, the picture that an
  undisturbed playout with the present delay would show: a freeze counts as a distortion. Once the late frame is there
  and the delay has grown, the due picture is again the one on the screen, and the delay counts as latency.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tidegate.media._received import Received
from tidegate.video.measures import Floats, Ints


@dataclass(frozen=True)
class Schedule:
    """Ticks of the screen; pictures are counted in the order in which they are shown."""

    t_s: Floats
    """The middle of each tick."""
    on: Ints
    """The last picture whose time has come."""
    due: Ints
    """The picture that should be seen; never before `on`."""


def order(received: Received) -> Ints:
    """For each picture, in the order in which they are shown, the frame that it is in."""
    pictures = [received.picture(frame) for frame in range(len(received))]
    return np.argsort(pictures, kind="stable").astype(np.int64)


def schedule(captured_s: Floats, shown_s: Floats, fps: float, end_s: float) -> Schedule:
    """The ticks up to `end_s`, or until the last picture has been shown: a video that stops has no freeze at its end.

    Args:
        captured_s: Time at which each picture was captured, in the order of showing.
        shown_s: Time at which each is shown, never falling.
        fps: Ticks a second.
        end_s: End of the run.

    >>> late = schedule(np.arange(4.0), np.array([1.0, 2.0, 5.0, 6.0]), 1.0, 8.0)
    >>> late.on, late.due
    (array([0, 1, 1, 1, 2, 3]), array([0, 1, 2, 3, 2, 3]))
    """
    if not len(shown_s):
        none = np.zeros(0, dtype=np.int64)
        return Schedule(np.zeros(0), none, none)
    end_s = min(end_s, float(shown_s[-1]) + 1 / fps)
    count = max(0, int(np.floor((end_s - shown_s[0]) * fps + 1e-9)))
    ticks = shown_s[0] + (np.arange(count) + 0.5) / fps
    on = np.searchsorted(shown_s, ticks, side="right") - 1
    due = np.searchsorted(captured_s, captured_s[on] + (ticks - shown_s[on]), side="right") - 1
    return Schedule(ticks, on.astype(np.int64), np.maximum(due, on).astype(np.int64))


def shown_in_order(received: Received) -> Floats:
    """Time at which each picture is shown: later by as many frames as B frames require."""
    late = received.sent.reorder
    if not late or not len(received):
        return received.shown_s
    tail = received.shown_s[-1] + np.arange(1, late + 1) / float(received.sent.clip.fps)
    return np.concatenate([received.shown_s, tail])[late:]


def captured_in_order(received: Received) -> Floats:
    """Time at which each picture was captured: with B frames, the encoder gets it some frames before it sends it."""
    return received.captured_s - received.sent.lookahead / float(received.sent.clip.fps)
