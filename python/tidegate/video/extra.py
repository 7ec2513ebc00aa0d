"""What the extra `[media]` brings, and what to say where it is missing."""

from __future__ import annotations

import importlib.util

from tidegate.errors import InputError

INSTALL = "pip install 'tidegate[media]'"
"""How to get it."""
PACKAGES = {"av": "PyAV", "imageio_ffmpeg": "imageio-ffmpeg", "skvideo": "scikit-video"}
"""Modules of the extra, by what they are imported as."""


def has(module: str) -> bool:
    """Whether a module of the extra is installed."""
    return importlib.util.find_spec(module) is not None


def missing() -> str:
    """What works less well without the packages that are missing; nothing where all are there."""
    without = []
    if not has("av"):
        without.append("no PyAV: the video is coded by tidegate's own intra codec, which needs several times the rate")
    if not has("imageio_ffmpeg"):
        without.append("no imageio-ffmpeg: no VMAF")
    return "; ".join(without)


def needs(module: str, why: str) -> None:
    """Asks for a module of the extra.

    Raises:
        InputError: when it is not installed: says how to get it, and what works without it.
    """
    if not has(module):
        left = "; the clip `procedural` needs nothing more"
        raise InputError(f"{PACKAGES[module]} is needed {why}: {INSTALL}{left}")
