"""H.264 by x264 and ffmpeg's decoder, both inside PyAV.

As a real-time sender encodes: `veryfast`, `zerolatency`, one slice a packet, one key frame a group and none between, one
reference frame. One thread each, because x264 makes the same bits with one thread only where machines have different
numbers of cores, and because ffmpeg conceals errors only without slice threads.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import av

from tidegate.errors import InputError
from tidegate.media.clip import Picture
from tidegate.media.codec import Coded, Format

_START = b"\0\0\0\1"
_SLICE, _IDR, _SPS, _PPS = 1, 5, 7, 8  # nal_unit_type, H.264 table 7-1
_BUFFER_S = 0.5
"""Seconds at the rate in the encoder's rate buffer (VBV): how far a frame may exceed its share."""
_LEVELS = ((1620, "3.0"), (8192, "4.0"), (36864, "5.1"))
"""Most macroblocks of a picture, and the level (H.264 table A-1): one for all rates, so that parameter sets agree."""


class X264:
    """x264 at a constant rate."""

    name = "x264"

    @property
    def version(self) -> str:
        """Of the libraries in PyAV."""
        return f"av {av.__version__} libavcodec {'.'.join(map(str, av.library_versions['libavcodec']))}"

    def encode(self, pictures: Iterable[Picture], form: Format, rate: int) -> tuple[bytes, Iterator[Coded]]:
        """See [Codec][tidegate.media.codec.Codec]; the header holds the sequence and picture parameter sets.

        Raises:
            InputError: when x264 refuses the format.
        """
        try:
            frames = self._encode(pictures, form, rate)
            header, first = next(frames)
        except av.error.FFmpegError as error:
            raise InputError(f"x264 cannot encode {form.width}x{form.height} at {rate} bit/s: {error}") from None

        def rest() -> Iterator[Coded]:
            yield first
            for _, frame in frames:
                yield frame

        return header, rest()

    def _encode(self, pictures: Iterable[Picture], form: Format, rate: int) -> Iterator[tuple[bytes, Coded]]:
        context = _encoder(form, rate)
        header = b""
        for number, picture in enumerate([*_pictures(pictures)] if False else pictures):
            frame = av.VideoFrame.from_ndarray(picture, format="yuv420p")
            frame.pts = number
            for packet in context.encode(frame):
                header, coded = _coded(packet, header)
                yield header, coded
        for packet in context.encode(None):
            header, coded = _coded(packet, header)
            yield header, coded

    def decoder(self, header: bytes, form: Format) -> H264Decoder:
        """See [Codec][tidegate.media.codec.Codec]."""
        return H264Decoder(header)
