"""An encoder in the loop: what it made in a run, and whether this build has one.

The engine asks it for each frame when it is due, at the target of the moment (`crates/codec`). What it made stays with
the run: the table `slices`, and a byte stream a flow, `encoded-FLOW.h264` in the run's folder, which any player plays.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from tidegate import _core
from tidegate.errors import InputError
from tidegate.media import extra
from tidegate.media.clip import Clip
from tidegate.media.codec import Format
from tidegate.media.h264 import H264Decoder
from tidegate.media.settings import Settings
from tidegate.running import Run

NAME = "openh264"
"""The codec's name in settings."""
BUILD = "maturin develop --release --features codec-openh264"
"""How to get it."""
Ints = npt.NDArray[np.int64]


def is_in() -> bool:
    """Whether this build has it."""
    return NAME in _core.ENCODERS


def needs() -> None:
    """Asks for the encoder, and for what decodes its bits.

    Raises:
        InputError: when this build has none: says how to get it.
    """
    if not is_in():
        raise InputError(f"this build has no encoder in the loop; build with: {BUILD}")
    extra.needs("av", f"to decode what {NAME} makes")


def check(settings: Settings) -> None:
    """Whether settings are for an encoder in the loop, and this build has it.

    Raises:
        InputError: names what is wrong.
    """
    if settings.codec != NAME:
        raise InputError(f"codec: found {settings.codec}; the encoder in the loop is {NAME}")
    for name in ("b_frames", "rungs"):
        if getattr(settings, name) != getattr(Settings, name):
            raise InputError(f"--media {settings.clip}: {name} is for clips encoded beforehand, not for {NAME}")
    needs()


class OpenH264:
    """What decodes the bits of OpenH264: ffmpeg's decoder, as for x264."""

    def decoder(self, header: bytes, form: Format) -> H264Decoder:
        """See [Decoding][tidegate.media.sent.Decoding]."""
        del form  # it is in the header
        return H264Decoder(header)


@dataclass(frozen=True)
class Take:
    """What an encoder in the loop made of a clip for one flow of a run: one encoding, whose rate changes."""

    clip: Clip
    form: Format
    header: bytes
    bits: bytes
    """The slices, one behind the other."""
    frames: Ints
    """Of each slice the frame."""
    lengths: Ints
    """Of each slice its bytes."""
    order: Ints
    """For each frame, which picture of the clip it shows."""
    rates: Ints
    """For each frame, what the encoder was asked for, in bit/s."""
    codec = OpenH264()
    reorder = lookahead = 0

    @property
    def length(self) -> int:
        """Frames; it never begins again."""
        return max(1, len(self.order))

    @property
    def pictures(self) -> int:
        """Pictures up to the last that was encoded."""
        return int(self.order.max(initial=0)) + 1

    @property
    def rungs(self) -> tuple[Take]:
        """Itself: there is one encoding."""
        return (self,)

    @cached_property
    def _firsts(self) -> Ints:
        return np.searchsorted(self.frames, np.arange(len(self.order) + 1)).astype(np.int64)

    @cached_property
    def _starts(self) -> Ints:
        return np.concatenate([[0], np.cumsum(self.lengths)])

    @cached_property
    def sizes(self) -> Ints:
        """Bytes of each frame."""
        return np.diff(self._starts[self._firsts])

    @cached_property
    def packets(self) -> Ints:
        """Packets of each frame."""
        each = np.concatenate([[0], np.cumsum(-(-self.lengths // self.form.payload))])
        return np.diff(each[self._firsts])

    def frame(self, number: int) -> list[bytes]:
        """The slices of a frame."""
        of = range(self._firsts[number], self._firsts[number + 1])
        return [self.bits[self._starts[at] : self._starts[at + 1]] for at in of]

    def places(self, number: int) -> tuple[Ints, Ints]:
        """Where slices would begin if every packet were full, and their lengths: no packet has bytes of two."""
        lengths = self.lengths[self._firsts[number] : self._firsts[number + 1]]
        before = np.cumsum(-(-lengths // self.form.payload)) - -(-lengths // self.form.payload)
        return before * self.form.payload, lengths

    def rate_at(self, number: int) -> int:
        """What the encoder was asked for."""
        return int(self.rates[number])


def take(run: Run, flow: str, settings: Settings, payload: int) -> Take:
    """What the encoder of a flow made.

    Raises:
        InputError: when the run has not kept it, or its clip is gone.
    """
    clip = settings.open(run.scenario.base)
    if "slices" not in run.tables:
        raise InputError(f"{run.name}: the run has lost what its encoder made (no table slices)")
    table = run.table("slices")
    mine = (table.to_numpy("flow") == flow) & (table.to_numpy("length") > 0)
    frames, pictures, lengths = (table.to_numpy(name)[mine].astype(np.int64) for name in ("frame", "picture", "length"))
    bits = run.encoded(flow)
    if len(bits) < lengths.sum() or (np.diff(frames) < 0).any():
        raise InputError(f"{run.name}: what the encoder of {flow} made is damaged")
    header = len(bits) - int(lengths.sum())
    _, firsts = np.unique(frames, return_index=True)
    rates = table.to_numpy("target_bps")[mine][firsts].astype(np.int64)
    form = Format(clip.width, clip.height, clip.fps, settings.group, 0, payload)
    return Take(clip, form, bits[:header], bits[header:], frames, lengths, pictures[firsts], rates)
