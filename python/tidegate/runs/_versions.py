"""What results are made with: versions, and the build of the engine."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import metadata
from pathlib import Path

import numpy as np

from tidegate import _core
from tidegate._files import sha256


@cache
def versions() -> Mapping[str, str]:
    """What a result was made with."""
    found = {"tidegate": version(), "python": platform.python_version(), "numpy": np.__version__}
    commit = _core.COMMIT
    return {**found, "commit": commit} if commit else found


def versions_of(inputs: Iterable[str]) -> dict[str, str]:
    """The same, with that of ONNX Runtime where one of the inputs is a model."""
    if not any(name.startswith("onnx:") for name in inputs):
        return dict(versions())
    return {**versions(), "onnxruntime": metadata.version("onnxruntime")}


@cache
def build() -> str:
    """Which build of the engine this is: a hash of the extension, which differs within a version, too."""
    return sha256(Path(_core.__file__))[:16]


def version() -> str:
    """The version of tidegate."""
    return _core.__version__
