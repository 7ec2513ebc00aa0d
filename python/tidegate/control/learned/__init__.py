"""Estimators trained or written elsewhere, as controllers: ONNX models, and AlphaRTC's Python class.

`onnx:FILE` runs a model by ONNX Runtime: one with the contract of the bandwidth estimation challenge of MMSys 2024, at
the receiver ([challenge2024][tidegate.control.learned.challenge2024]), or one that learned in
[tidegate.gym][tidegate.gym], at the sender, whose [metadata][tidegate.control.learned.metadata] holds its terms.
`alphartc:FILE` runs the class `Estimator` of a Python file that was written for AlphaRTC or OpenNetLab's gym.
Estimates of a receiver go to the sender in REMB.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from tidegate._inputs import MODEL, check_file
from tidegate.control import Needs
from tidegate.control.agent import Terms
from tidegate.errors import ControllerError

KINDS = ("onnx", "alphartc")
"""Prefixes of the names of such controllers."""


class Maker(Protocol):
    """Makes both halves of a controller."""

    needs: Needs
    """Requirements on the session."""
    beside: Mapping[str, Path]
    """Other files that it consists of, by their names."""

    def check(self, settings: Mapping[str, Any]) -> None:
        """Raises a ControllerError for settings that it does not have, or values that it does not take."""

    def __call__(self, **settings: Any) -> Any:
        """Both halves, or the only one, with settings as keyword arguments."""


def maker(kind: str, path: Path, label: str) -> Maker:
    """Reads a file of one of the `KINDS`, and runs its code where it has any.

    Args:
        kind: Which of them.
        path: The file.
        label: The file as its user named it, for errors.

    Raises:
        ControllerError: when it is none, or when what reads it is not installed.
    """
    if kind == "onnx":
        from tidegate.control.learned import _onnx

        return _onnx.maker(path, label)
    from tidegate.control.learned import _alphartc

    return _alphartc.maker(path, label)


def metadata(terms: Terms, start_bps: int = 300_000, observation: Sequence[str] = ()) -> dict[str, str]:
    """Metadata that makes a model trained in [tidegate.gym][tidegate.gym] a controller.

    `onnx.helper.set_model_props(model, metadata(env.unwrapped.terms))` puts it there.

    Args:
        terms: The terms on which it was trained.
        start_bps: The rate before its first action, in bit/s.
        observation: Features of each interval that it gets, in its order; all of them by default.

    >>> metadata(Terms(history=2), observation=["rate", "loss"])["tidegate.observation"]
    '["rate", "loss"]'
    """
    from tidegate.control.learned import _described

    return _described.metadata(terms, start_bps, observation)


def look(kind: str, path: Path, label: str) -> None:
    """Checks a file as far as possible without running anything.

    Raises:
        ControllerError: when it cannot be read, or is no Python of that kind.
    """
    if kind == "alphartc":
        from tidegate.control.learned import _alphartc

        _alphartc.look(path, label)
        return
    check_file(path, MODEL, ControllerError)
