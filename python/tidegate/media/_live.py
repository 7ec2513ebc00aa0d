"""The output of an encoder in the loop in a run.

The engine asks the encoder for each frame when it is due, at the target of the moment (`crates/codec`). Its output is
kept with the run: the table `slices`, and for each flow a byte stream, `encoded-FLOW.h264` in the run's folder, which
any player plays.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from tidegate.errors import InputError
from tidegate.runs import Run
from tidegate.video.clip import Clip
from tidegate.video.codec import Format
from tidegate.video.measures import Ints
from tidegate.video.openh264 import OpenH264
from tidegate.video.settings import Settings


@dataclass(frozen=True)
class Take:
    """The encoding of a clip by an encoder in the loop, for one flow of a run; its rate changes.

    Its frames are the pictures that the encoder was given; one that it left out to hold its rate has no bytes.
    """

    clip: Clip
    form: Format
    header: bytes
    bits: bytes
    """The slices, one behind the other."""
    order: Ints
    """For each frame, the number of its picture in the clip."""
    rates: Ints
    """For each frame, the rate that the encoder was asked for, in bit/s."""
    starts: Ints
    """For each frame its first slice, and at the end the number of slices."""
    lengths: Ints
    """Bytes of each slice."""
    codec = OpenH264()
    reorder = lookahead = 0

    @property
    def length(self) -> int:
        """Frames; it never begins again."""
        return max(1, len(self.order))

    @property
    def pictures(self) -> int:
        """Pictures up to the last that the encoder was given."""
        return int(self.order.max(initial=0)) + 1

    @property
    def rungs(self) -> tuple[Take]:
        """Itself: there is one encoding."""
        return (self,)

    @cached_property
    def _ends(self) -> Ints:
        """Positions in the bits where slices begin, and where the last one ends."""
        return _sums(self.lengths)

    @cached_property
    def sizes(self) -> Ints:
        """Bytes of each frame."""
        return np.diff(self._ends[self.starts])

    @cached_property
    def packets(self) -> Ints:
        """Packets of each frame."""
        return np.diff(_sums(self._packets_of(self.lengths))[self.starts])

    def _packets_of(self, lengths: Ints) -> Ints:
        return -(-lengths // self.form.payload)

    def frame(self, number: int) -> list[bytes]:
        """The slices of a frame."""
        ends = self._ends[self.starts[number] : self.starts[number + 1] + 1].tolist()
        return [self.bits[begin:end] for begin, end in pairwise(ends)]

    def places(self, number: int) -> tuple[Ints, Ints]:
        """Begin of each slice in bytes, as if all packets were full, and lengths; no packet has bytes of two slices."""
        lengths = self.lengths[self.starts[number] : self.starts[number + 1]]
        return _sums(self._packets_of(lengths))[:-1] * self.form.payload, lengths

    def rate_at(self, number: int) -> int:
        """Rate that the encoder was asked for, bit/s."""
        return int(self.rates[number])


def _sums(values: Ints) -> Ints:
    """The sum of the values before each one, and at the end the sum of all."""
    sums: Ints = np.concatenate([[0], np.cumsum(values)])
    return sums


def take(run: Run, flow: str, settings: Settings, payload: int) -> Take:
    """The output of the encoder of a flow.

    Raises:
        InputError: when the run has lost it, or its clip is gone.
    """
    clip = settings.open(run.scenario.base)
    if "slices" not in run.tables:
        raise InputError(f"{run.name}: the encoder's output is missing in the run (no table slices)")
    table = run.table("slices")
    mine = table.to_numpy("flow") == flow
    pictures, lengths = (table.to_numpy(name)[mine].astype(np.int64) for name in ("picture", "length"))
    rates = table.to_numpy("target_bps")[mine].astype(np.int64)
    bits = run.encoded(flow)
    header = len(bits) - int(lengths.sum())
    if header < 0 or (np.diff(pictures) < 0).any():
        raise InputError(f"{run.name}: the output of the encoder of {flow} is damaged")
    order, firsts = np.unique(pictures, return_index=True)
    # a picture that was left out has a row, but no slice
    real = lengths > 0
    starts = np.append(_sums(real)[firsts], real.sum()).astype(np.int64)
    form = Format(clip.width, clip.height, clip.fps, settings.group, 0, payload)
    return Take(clip, form, bits[:header], bits[header:], order, rates[firsts], starts, lengths[real])
