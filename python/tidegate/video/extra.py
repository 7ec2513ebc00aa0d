"""Packages of the extra `[media]`, and the messages where they are missing."""

from __future__ import annotations

import importlib.util

from tidegate.errors import InputError

INSTALL = "pip install 'tidegate[media]'"
"""Command that installs the extra."""
PACKAGES = {"av": "PyAV", "imageio_ffmpeg": "imageio-ffmpeg", "skvideo": "scikit-video"}
"""Packages of the extra, by the module that is imported."""


def has(module: str) -> bool:
    """Whether a module of the extra is installed."""
    return importlib.util.find_spec(module) is not None


def missing() -> str:
    """Consequences of the packages that are missing; empty where all are installed."""
    without = []
    if not has("av"):
        without.append(
            "PyAV is not installed: tidegate's own intra codec encodes the video and needs several times the rate"
        )
    if not has("imageio_ffmpeg"):
        without.append("imageio-ffmpeg is not installed: VMAF is not computed")
    return "; ".join(without)


def needs(module: str, why: str) -> None:
    """Requires a module of the extra.

    Raises:
        InputError: when it is not installed; says how to install it, and what works without it.
    """
    if not has(module):
        alternative = "; the clip `procedural` needs no package"
        raise InputError(f"{PACKAGES[module]} is needed {why}: {INSTALL}{alternative}")
