"""What the frames of a run were: those of a ladder of encodings, or what an encoder in the loop made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from tidegate.video.clip import Clip
from tidegate.video.codec import Decoder, Format

Ints = npt.NDArray[np.int64]


class Decoding(Protocol):
    """Makes decoders."""

    def decoder(self, header: bytes, form: Format) -> Decoder:
        """A decoder that has seen nothing yet."""


class Encoding(Protocol):
    """A clip, encoded once."""

    @property
    def sizes(self) -> Ints:
        """Bytes of each frame, in the order of decoding."""

    def frame(self, number: int) -> list[bytes]:
        """The slices of a frame."""

    def places(self, number: int) -> tuple[Ints, Ints]:
        """Where in a frame its slices begin, and how long they are, in bytes; packets are cut from its beginning."""

    def rate_at(self, number: int) -> int:
        """What the encoder was asked for, in bit/s."""


class Sent(Protocol):
    """Where the frames of a flow are from."""

    @property
    def clip(self) -> Clip:
        """What is seen."""

    @property
    def form(self) -> Format:
        """Its size, and how it is sent."""

    @property
    def codec(self) -> Decoding:
        """What decodes it."""

    @property
    def header(self) -> bytes:
        """What decoders are told out of band."""

    @property
    def order(self) -> Ints:
        """For each frame in the order of decoding, which picture of the clip it shows."""

    @property
    def rungs(self) -> Sequence[Encoding]:
        """The encodings that frames may be from."""

    @property
    def length(self) -> int:
        """Frames before it begins again."""

    @property
    def pictures(self) -> int:
        """Pictures before it begins again."""

    @property
    def reorder(self) -> int:
        """How many frames later than it is decoded a picture is shown, for the sake of B frames."""

    @property
    def lookahead(self) -> int:
        """How many pictures an encoder must wait for before it can encode one, for the sake of B frames."""
