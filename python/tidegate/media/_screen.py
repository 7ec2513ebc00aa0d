"""The display clock: what is due and what is on the screen at each tick, worked out before anything is decoded.

The screen ticks with the clip's frame rate from when the first picture is shown; a tick is looked at in its middle, so
that small deviations of playout do not matter. At each tick

* **on**: the last picture whose time has come is on the screen (or the last one before it that could be decoded);
* **due**: while playout goes on, that one, too. While the screen waits for a frame that is late, the pictures that an
  undisturbed playout with the present delay would have shown in the meantime: a freeze is a distortion. Once the late
  frame is there and the delay has grown, what is due is what is on again, and the delay shows as latency.
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
    """The ticks up to `end_s`, or until the last picture has been shown: what stops has no freeze at its end.

    Args:
        captured_s: When each picture was captured, in the order of showing.
        shown_s: When each is shown, never falling.
        fps: Ticks a second.
        end_s: When the run is over.

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
    """When each picture is shown: as many frames late as B frames make necessary."""
    late = received.sent.reorder
    if not late or not len(received):
        return received.shown_s
    tail = received.shown_s[-1] + np.arange(1, late + 1) / float(received.sent.clip.fps)
    return np.concatenate([received.shown_s, tail])[late:]


def captured_in_order(received: Received) -> Floats:
    """When each picture was captured: an encoder with B frames sees it before it can send a frame of it."""
    return received.captured_s - received.sent.lookahead / float(received.sent.clip.fps)
