"""Decodes the slices that arrived, and beside them all that were sent, picture by picture, without keeping pictures.

A frame with at least one slice goes to the decoder, which conceals the rest. A frame without slices is not decoded, and
the picture before stays on the screen.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tidegate.media._received import Received
from tidegate.media._screen import order
from tidegate.video.clip import Picture
from tidegate.video.codec import Decoder

_AHEAD = 8  # frames by which a decoder may delay a picture, to put pictures in order


@dataclass(frozen=True)
class Pair:
    """One picture, in the order of showing."""

    number: int
    """Number of the picture; counting goes on where the ladder begins again."""
    sent: Picture
    """As it was encoded."""
    decoded: Picture | None
    """As decoded at the receiver; None where nothing could be decoded."""
    frame: int
    """Number of its frame, in the order of sending."""
    is_complete: bool
    """Whether all slices arrived in time."""


class _Line:
    """A decoder with its input frames and the pictures that it has decoded."""

    def __init__(self, received: Received, *, all_of_it: bool) -> None:
        self._received = received
        self._decoder: Decoder = received.sent.codec.decoder(received.sent.header, received.sent.form)
        self._all = all_of_it
        self._ready: dict[int, Picture] = {}
        self._next = 0
        self.complete: dict[int, bool] = {}

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
        arrived = [data for data, came in slices if came or self._all]
        self.complete[picture] = len(arrived) == len(slices)
        if arrived:
            self._ready.update(self._decoder.decode(picture, arrived))
        return True

    def take(self, picture: int, frame: int) -> Picture | None:
        """Takes a picture out, and decodes as far as that needs."""
        while picture not in self._ready and self._next <= frame + _AHEAD and self.feed():
            pass
        while self._next <= frame:
            self.feed()
        for old in [number for number in self._ready if number < picture]:
            del self._ready[old]
        return self._ready.pop(picture, None)


def pairs(received: Received) -> Iterator[Pair]:
    """Each picture that was sent, in the order of showing.

    Raises:
        RuntimeError: when an encoded picture cannot be decoded although all of it was sent, which would be a bug.
    """
    sender, receiver = _Line(received, all_of_it=True), _Line(received, all_of_it=False)
    before: Picture | None = None
    for frame in order(received).tolist():
        number = received.picture(frame)
        as_sent = sender.take(number, frame)
        if not len(received.slices_in_time(frame)):
            as_sent = before  # its encoder left it out: the picture before stays, also as encoded
        if as_sent is None:
            raise RuntimeError(f"picture {number} as it was encoded cannot be decoded")
        before = as_sent
        as_seen = receiver.take(number, frame)
        yield Pair(number, as_sent, as_seen, frame, receiver.complete.pop(number, False))
        sender.complete.pop(number, None)
