"""The encoder in the loop: whether this build has it, its settings, and its decoder."""

from __future__ import annotations

from tidegate import _core
from tidegate.errors import InputError
from tidegate.video import extra
from tidegate.video.codec.contract import Format
from tidegate.video.codec.h264 import H264Decoder
from tidegate.video.settings import Settings

NAME = "openh264"
"""The codec's name in settings."""
BUILD = "maturin develop --release --features codec-openh264"
"""Command that builds with it."""


def is_in() -> bool:
    """Whether this build has the encoder."""
    return NAME in _core.ENCODERS


def needs() -> None:
    """Requires the encoder, and PyAV, which decodes its bits.

    Raises:
        InputError: when one of them is missing; says how to get it.
    """
    if not is_in():
        raise InputError(f"this build of tidegate has no encoder in the loop; build with: {BUILD}")
    extra.needs("av", f"to decode what {NAME} makes")


def check(settings: Settings) -> None:
    """Checks that settings are for an encoder in the loop, and that this build has it.

    Raises:
        InputError: names the wrong setting, or the missing part.
    """
    if settings.codec not in {None, NAME}:
        raise InputError(f"codec: found {settings.codec}; the encoder in the loop is {NAME}")
    for name in ("b_frames", "rungs"):
        if getattr(settings, name) != getattr(Settings, name):
            raise InputError(f"--media {settings.clip}: {name} is for clips encoded beforehand, not for {NAME}")
    needs()


class OpenH264:
    """The decoder for the bits of OpenH264: ffmpeg's, as for x264."""

    def decoder(self, header: bytes, form: Format) -> H264Decoder:
        """A new decoder."""
        del form  # it is in the header
        return H264Decoder(header)
