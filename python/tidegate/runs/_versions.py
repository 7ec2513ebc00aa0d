"""Versions of the software that results depend on, and the build of the engine."""

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
    """Versions that results depend on, by name."""
    packages = {"tidegate": version(), "python": platform.python_version(), "numpy": np.__version__}
    commit = _core.COMMIT
    return {**packages, "commit": commit} if commit else packages


def versions_of(inputs: Iterable[str]) -> dict[str, str]:
    """These versions, with that of ONNX Runtime if an input is a model."""
    if not any(name.startswith("onnx:") for name in inputs):
        return dict(versions())
    return {**versions(), "onnxruntime": metadata.version("onnxruntime")}


@cache
def build() -> str:
    """Hash of the extension module: it tells builds of one version apart."""
    return sha256(Path(_core.__file__))[:16]


def version() -> str:
    """The version of tidegate."""
    return _core.__version__
