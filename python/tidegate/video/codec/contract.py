"""What a codec is to the rest: frames of slices in the order of decoding, and pictures from what arrived of them.

An encoder in the loop ([_openh264][tidegate.video.openh264]) is none: it is asked frame by frame.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

from tidegate.video.clip import Picture


@dataclass(frozen=True)
class Format:
    """What an encoder has to know of its input and of the network."""

    width: int
    height: int
    fps: Fraction
    group: int
    """Frames from one key frame to the next."""
    b_frames: int
    """Frames between two that others refer to."""
    payload: int
    """Bytes of a packet: no slice is larger where the codec can help it."""


@dataclass(frozen=True)
class Coded:
    """One frame, in the order of decoding."""

    kind: str
    """I, P or B; the first of a group is an I that nothing behind it looks beyond."""
    picture: int
    """Which picture of the clip it shows."""
    slices: tuple[bytes, ...]
    """Each can be decoded without the others of its frame."""


class Decoder(Protocol):
    """Makes pictures from what arrived, with concealment of what did not."""

    def decode(self, picture: int, slices: Sequence[bytes]) -> list[tuple[int, Picture]]:
        """Takes the slices of one frame that arrived, at least one; gives the pictures that are ready, by number."""

    def flush(self) -> list[tuple[int, Picture]]:
        """The pictures that were held back for their order."""


class Codec(Protocol):
    """An encoder with its decoder."""

    name: str
    """`x264` or `intra`."""

    @property
    def version(self) -> str:
        """What its bits depend on."""

    def encode(self, pictures: Iterable[Picture], form: Format, rate: int) -> tuple[bytes, Iterator[Coded]]:
        """What the decoder must know before (sent out of band), and the frames at `rate` bit/s."""

    def decoder(self, header: bytes, form: Format) -> Decoder:
        """A decoder that has seen nothing yet."""


def filled(slices: Sequence[bytes], payload: int) -> list[bytes]:
    """The slices of a frame with zero bytes between, so that none that fits in a packet is in two.

    >>> [len(one) for one in filled([b"abc", b"de", b"fghi", b"j"], 6)]
    [3, 3, 4, 1]
    """
    out: list[bytes] = []
    used = 0
    for one in slices:
        room = -used % payload
        if out and room < len(one) <= payload:
            out[-1] += bytes(room)
            used += room
        out.append(one)
        used += len(one)
    return out
