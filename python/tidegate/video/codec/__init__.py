"""Codecs of clips that are encoded beforehand: x264, and our intra codec where PyAV is missing."""

from __future__ import annotations

from tidegate.errors import InputError
from tidegate.video import extra
from tidegate.video.codec.contract import Codec, Coded, Decoder, Format, filled

__all__ = ["Codec", "Coded", "Decoder", "Format", "codec", "filled"]


def codec(name: str | None = None) -> Codec:
    """A codec by its name; the best that is installed by default.

    Raises:
        InputError: when there is none of that name, or it needs a package.
    """
    if name is None:
        name = "x264" if extra.has("av") else "intra"
    if name == "x264":
        extra.needs("av", "for the codec x264")
        from tidegate.video.codec.h264 import X264

        return X264()
    if name == "intra":
        from tidegate.video.codec.intra import Intra

        return Intra()
    raise InputError(f"codec: found {name}; expected x264, intra or openh264")
