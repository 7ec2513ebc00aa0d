"""The interface of codecs: frames of slices in decoding order, and pictures made from slices.

An encoder in the loop ([_openh264][tidegate.video.openh264]) does not implement it: it makes single frames on request.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

from tidegate.video.clip import Picture


@dataclass(frozen=True)
class Format:
    """Parameters of an encoder: its input, and the packets of the network."""

    width: int
    height: int
    fps: Fraction
    group: int
    """Frames from one key frame to the next."""
    b_frames: int
    """Frames between two that others refer to."""
    payload: int
    """Bytes of a packet: where the codec can avoid it, no slice is larger."""


@dataclass(frozen=True)
class Coded:
    """One frame, in the order of decoding."""

    kind: str
    """I, P or B; the first of a group is an I, and no later frame refers to a frame before it."""
    picture: int
    """Number of the picture in the clip."""
    slices: tuple[bytes, ...]
    """Each can be decoded without the others of its frame."""


class Decoder(Protocol):
    """Makes pictures from the slices that arrived, and conceals the missing ones."""

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
        """Version that its bits depend on."""

    def encode(self, pictures: Iterable[Picture], form: Format, rate: int) -> tuple[bytes, Iterator[Coded]]:
        """The header for the decoder (sent out of band), and the frames at `rate` bit/s."""

    def decoder(self, header: bytes, form: Format) -> Decoder:
        """A new decoder."""


def filled(slices: Sequence[bytes], payload: int) -> list[bytes]:
    """The slices of a frame with zero bytes between, so that no slice that fits in a packet is split.

    >>> [len(one) for one in filled([b"abc", b"de", b"fghi", b"j"], 6)]
    [3, 3, 4, 1]
    """
    out: list[bytes] = []
    used = 0
    for data in slices:
        room = -used % payload
        if out and room < len(data) <= payload:
            out[-1] += bytes(room)
            used += room
        out.append(data)
        used += len(data)
    return out
