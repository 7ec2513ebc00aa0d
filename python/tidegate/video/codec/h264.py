"""H.264 by x264 and ffmpeg's decoder, both inside PyAV.

As a real-time sender encodes: `veryfast`, `zerolatency`, one slice a packet, one key frame a group and none between,
one reference frame. One thread each: x264 makes the same bits on every machine with one thread only, and ffmpeg
conceals errors only where slices are not decoded side by side.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from tidegate.errors import InputError
from tidegate.video.clip import Picture
from tidegate.video.codec.contract import Coded, Format

START = b"\0\0\0\1"
"""Before each NAL unit in a byte stream (H.264 annex B)."""
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
        import av

        return f"av {av.__version__} libavcodec {'.'.join(map(str, av.library_versions['libavcodec']))}"

    def encode(self, pictures: Iterable[Picture], form: Format, rate: int) -> tuple[bytes, Iterator[Coded]]:
        """See [Codec][tidegate.video.codec.Codec]; the header holds the sequence and picture parameter sets.

        Raises:
            InputError: when x264 refuses the format.
        """
        import av

        packets = _packets(pictures, form, rate)
        try:
            first = next(packets)
        except av.error.FFmpegError as error:
            raise InputError(f"x264 cannot encode {form.width}x{form.height} at {rate} bit/s: {error}") from None
        header = b"".join(START + unit for unit in units(bytes(first)) if unit[0] & 31 in {_SPS, _PPS})

        def frames() -> Iterator[Coded]:
            yield _coded(first)
            yield from map(_coded, packets)

        return header, frames()

    def decoder(self, header: bytes, form: Format) -> H264Decoder:
        """See [Codec][tidegate.video.codec.Codec]."""
        del form  # it is in the header
        return H264Decoder(header)


def _packets(pictures: Iterable[Picture], form: Format, rate: int) -> Iterator[Any]:
    import av

    context: Any = av.CodecContext.create("libx264", "w")
    context.width, context.height, context.pix_fmt = form.width, form.height, "yuv420p"
    context.framerate, context.time_base = form.fps, 1 / form.fps
    context.bit_rate, context.gop_size, context.max_b_frames = rate, form.group, form.b_frames
    context.thread_count = 1
    blocks = -(-form.width // 16) * -(-form.height // 16)
    settings = {
        "keyint": form.group,
        "min-keyint": form.group,
        "scenecut": 0,
        "open-gop": 0,
        "ref": 1,
        "bframes": form.b_frames,
        "b-adapt": 0,
        "b-pyramid": "none",
        "threads": 1,
        "sliced-threads": 0,
        "slice-max-size": form.payload,
        "vbv-maxrate": max(1, rate // 1000),
        "vbv-bufsize": max(1, round(rate * _BUFFER_S / 1000)),
        "level": next((level for most, level in _LEVELS if blocks <= most), "6.0"),
    }
    joined = ":".join(f"{key}={value}" for key, value in settings.items())
    context.options = {"preset": "veryfast", "tune": "zerolatency", "x264-params": joined}
    for number, picture in enumerate(pictures):
        frame = av.VideoFrame.from_ndarray(picture, format="yuv420p")
        frame.pts = number
        yield from context.encode(frame)
    yield from context.encode(None)


def units(data: bytes) -> list[bytes]:
    """The NAL units of a byte stream, without start codes and the zeros behind them (H.264 annex B)."""
    return [unit.rstrip(b"\0") for unit in re.split(b"\0\0\1", data)[1:]]


def _coded(packet: Any) -> Coded:
    """An access unit without its parameter sets, which go out of band, and without words about the encoder."""
    slices = [unit for unit in units(bytes(packet)) if unit[0] & 31 in {_SLICE, _IDR}]
    idr = slices[0][0] & 31 == _IDR
    kind = "I" if idr else "P" if slices[0][0] >> 5 & 3 else "B"  # nal_ref_idc is 0 where no frame refers to it
    return Coded(kind, int(packet.pts), tuple(START + unit for unit in slices))


class H264Decoder:
    """ffmpeg's decoder: it fills missing parts of a frame from the frame before, along motion that it guesses."""

    def __init__(self, header: bytes) -> None:
        """Creates a decoder; `header` holds the parameter sets (SPS and PPS)."""
        import av

        self._av = av
        self._context: Any = av.CodecContext.create("h264", "r")
        self._context.thread_count = 1
        self._header = header

    def decode(self, picture: int, slices: Sequence[bytes]) -> list[tuple[int, Picture]]:
        """See [Decoder][tidegate.video.codec.Decoder]."""
        packet = self._av.Packet(self._header + b"".join(slices))
        self._header = b""
        packet.pts = picture
        return self._take(packet)

    def flush(self) -> list[tuple[int, Picture]]:
        """See [Decoder][tidegate.video.codec.Decoder]."""
        return self._take(None)

    def _take(self, packet: Any) -> list[tuple[int, Picture]]:
        try:
            frames = self._context.decode(packet)
        except self._av.error.FFmpegError:
            return []  # it could not be decoded: the picture before stays
        return [(int(frame.pts), frame.to_ndarray()) for frame in frames if frame.pts is not None]
