"""`onnx:FILE` for agents that learned in [tidegate.gym][tidegate.gym]: the model's metadata holds its terms.

| key of the metadata | JSON | what it is |
|---|---|---|
| `tidegate.terms` | an object | [Terms][tidegate.control.agent.Terms] as `to_dict` gives them |
| `tidegate.observation` | a list of names | features of each interval that it gets, in its order; all by default |
| `tidegate.start` | bit/s | the rate before its first action; 300 kbit/s by default |
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from tidegate import _core
from tidegate.control import Needs
from tidegate.control.agent import Terms, controller
from tidegate.control.learned._session import Floats, Model, OfModel, Tensor
from tidegate.errors import ControllerError, InputError, did_you_mean

TERMS, OBSERVATION, START = "tidegate.terms", "tidegate.observation", "tidegate.start"
_NAMES = [feature[0] for feature in _core.FEATURES]
_START_BPS = 300_000
_ACTION = "action"


def metadata(terms: Terms, start_bps: int = _START_BPS, observation: Sequence[str] = ()) -> dict[str, str]:
    """See [metadata][tidegate.control.learned.metadata]."""
    names = json.dumps(list(observation) or _NAMES)
    return {TERMS: json.dumps(terms.to_dict()), OBSERVATION: names, START: json.dumps(start_bps)}


class Described(OfModel):
    """A checked model that decides once an interval, with the terms in its metadata."""

    needs = Needs()

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        self._terms = self._read_terms()
        self._columns = self._read_columns()
        self._start = self._read_start()
        if len(model.inputs) != 1:
            raise self._wrong(f"found {model.signature()}; expected one input")
        self._shape = self._shape_of(model.inputs[0])
        names = [output.name for output in model.outputs]
        self._place = names.index(_ACTION) if _ACTION in names else 0
        # what shapes do not say, a first call does
        self.decide(np.zeros((self._terms.history, len(_NAMES)), np.float32))

    def _wrong(self, problem: str) -> ControllerError:
        return ControllerError(f"{self._model.label}: {problem}")

    def _json(self, key: str) -> Any:
        try:
            return json.loads(self._model.metadata[key])
        except (ValueError, RecursionError) as error:
            raise self._wrong(f"metadata {key}: is not JSON: {error}") from None

    def _read_terms(self) -> Terms:
        terms = self._json(TERMS)
        right = "expected an object as Terms.to_dict() gives it"
        if not isinstance(terms, dict):
            raise self._wrong(f"metadata {TERMS}: found {json.dumps(terms)[:60]}; {right}")
        try:
            return Terms.from_dict(terms)
        except InputError as error:
            raise self._wrong(f"metadata {TERMS}: {error}") from None
        except (TypeError, ValueError, OverflowError):
            raise self._wrong(f"metadata {TERMS}: found {json.dumps(terms)[:200]}; {right}") from None

    def _read_columns(self) -> list[int]:
        names = self._json(OBSERVATION) if OBSERVATION in self._model.metadata else _NAMES
        if not isinstance(names, list) or not names:
            raise self._wrong(f"metadata {OBSERVATION}: found {json.dumps(names)[:60]}; expected a list of names")
        for name in names:
            if name not in _NAMES:
                hint = did_you_mean(str(name), _NAMES) or f"; available: {', '.join(_NAMES)}"
                raise self._wrong(f"metadata {OBSERVATION}: {json.dumps(name)[:60]}: there is no such number{hint}")
        return [_NAMES.index(name) for name in names]

    def _read_start(self) -> int:
        start = self._json(START) if START in self._model.metadata else _START_BPS
        if type(start) is not int or not 0 < start < 2**63:
            raise self._wrong(f"metadata {START}: found {json.dumps(start)[:60]}; expected whole bit/s above 0")
        return start

    def _shape_of(self, tensor: Tensor) -> list[int]:
        if tensor.type != "tensor(float)":
            raise self._wrong(f"the input {tensor} is not a tensor(float)")
        rows, width = self._terms.history, len(self._columns)
        for shape in ([1, rows, width], [1, rows * width], [rows, width], [rows * width]):
            fits = all(size in (None, wanted) for size, wanted in zip(tensor.shape, shape, strict=False))
            if len(tensor.shape) == len(shape) and fits:
                return shape
        raise self._wrong(f"found the input {tensor}; expected [1, {rows}, {width}] or [1, {rows * width}]")

    def decide(self, observation: Floats) -> float:
        """The action for an observation, of shape (history, features), the newest last.

        Raises:
            ControllerError: when the model cannot take it, or its answer is not one number.
        """
        inputs = observation[:, self._columns].reshape(self._shape)
        action = np.asarray(self._model.run({self._model.inputs[0].name: inputs})[self._place])
        if action.size != 1 or action.dtype.kind != "f":
            name = self._model.outputs[self._place].name
            shape = list(action.shape)
            raise self._wrong(f"{name} has the shape {shape} of {action.dtype}; expected one number, the action")
        number = float(action.reshape(-1)[0])
        if not np.isfinite(number):
            raise self._wrong(f"the action is {number}; expected a number from -1 to 1")
        return number

    def __call__(self, **settings: Any) -> _core.AgentController:
        """The controller."""
        del settings
        return controller(self.decide, self._terms, self._start)
