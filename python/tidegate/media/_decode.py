"""Decodes what arrived, and beside it what was sent, picture by picture: nothing is kept.

A frame of which at least one slice is there goes to the decoder, which conceals the rest; one of which nothing is there
is not decoded, and the picture before stays on the screen.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tidegate.media._received import Received
from tidegate.media._screen import order
from tidegate.video.clip import Picture
from tidegate.video.codec import Decoder

_AHEAD = 8  # frames: how much later than in its turn a decoder may give out a picture for the sake of their order


@dataclass(frozen=True)
class Pair:
    """One picture, in the order of showing."""

    number: int
    """Which picture of the clip, counted on where the ladder begins again."""
    sent: Picture
    """As it was encoded."""
    seen: Picture | None
    """As it could be decoded at the receiver; None where nothing of it could."""
    frame: int
    """In which frame it is."""
    whole: bool
    """Whether all slices were there."""


class _Line:
    """A decoder with the frames that it is given, and what has come out of it."""

    def __init__(self, received: Received, *, all_of_it: bool) -> None:
        self._received = received
        self._decoder: Decoder = received.sent.codec.decoder(received.sent.header, received.sent.form)
        self._all = all_of_it
        self._ready: dict[int, Picture] = {}
        self._next = 0
        self.whole: dict[int, bool] = {}

    def feed(self) -> bool:
        """Decodes the next frame; False at the end."""
        frame = self._next
        if frame > len(self._received):
            return False
        self._next += 1
        if frame == len(self._received):
            self._ready.update(self._decoder.flush())
            return True
        slices = list(self._received.slices(frame))
        picture = self._received.picture(frame)
        there = [data for data, came in slices if came or self._all]
        self.whole[picture] = len(there) == len(slices)
        if there:
            self._ready.update(self._decoder.decode(picture, there))
        return True

    def take(self, picture: int, frame: int) -> Picture | None:
        """A picture, decoding as far as it takes."""
        while picture not in self._ready and self._next <= frame + _AHEAD and self.feed():
            pass
        while self._next <= frame:
            self.feed()
        for old in [number for number in self._ready if number < picture]:
            del self._ready[old]
        return self._ready.pop(picture, None)


def pairs(received: Received) -> Iterator[Pair]:
    """Every picture that was sent, in the order of showing.

    Raises:
        RuntimeError: when what was sent cannot be decoded, which would be a bug.
    """
    sent, seen = _Line(received, all_of_it=True), _Line(received, all_of_it=False)
    before: Picture | None = None
    for frame in order(received).tolist():
        number = received.picture(frame)
        as_sent = sent.take(number, frame)
        if not len(received.there(frame)):
            as_sent = before  # left out by its encoder: as encoded, too, the picture before stays
        if as_sent is None:
            raise RuntimeError(f"picture {number} as it was encoded cannot be decoded")
        before = as_sent
        as_seen = seen.take(number, frame)
        yield Pair(number, as_sent, as_seen, frame, seen.whole.pop(number, False))
        sent.whole.pop(number, None)
