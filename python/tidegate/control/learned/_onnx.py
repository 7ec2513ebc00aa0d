"""`onnx:FILE`: which contract a model has, and the controller that it is."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tidegate.control import Arrived, Controller, ReceiverHalf
from tidegate.control.learned import challenge2024
from tidegate.control.learned._described import TERMS, Described
from tidegate.control.learned._receiving import Estimating, Follower, checked
from tidegate.control.learned._session import Floats, Model, OfModel, Tensor, load
from tidegate.errors import ControllerError

_OBS, _STATES = "obs", {"hidden_states": "state_out", "cell_states": "cell_out"}
_OUTPUT = "output"


def maker(path: Path, shown: str) -> Challenge2024 | Described:
    """What makes the controller that a model is.

    Raises:
        ControllerError: when it has no contract that is known.
    """
    model = load(path, shown)
    if TERMS in model.metadata:
        return Described(model)
    if _OBS not in {one.name for one in model.inputs}:
        raise ControllerError(
            f"{shown}: found {model.signature()}; expected those of the challenge of 2024 (obs, hidden_states, "
            f"cell_states -> output, state_out, cell_out), or metadata with {TERMS}"
        )
    return Challenge2024(model)


class Challenge2024(OfModel):
    """A model with the contract of the challenge of MMSys 2024, checked."""

    needs = Follower.needs

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        inputs = {one.name: one for one in model.inputs}
        outputs = [one.name for one in model.outputs]
        for name in inputs:
            if name != _OBS and name not in _STATES:
                raise self._wrong(f"there is an input {name}; expected obs, hidden_states and cell_states")
        for one in inputs.values():
            if one.type != "tensor(float)":
                raise self._wrong(f"the input {one} is no tensor(float)")
        self._obs = self._shape(inputs[_OBS], challenge2024.COUNT)
        self._states = {name: self._shape(one) for name, one in inputs.items() if name != _OBS}
        wanted = [_OUTPUT, *(_STATES[name] for name in self._states)]
        if missing := [name for name in wanted if name not in outputs]:
            raise self._wrong(f"there is no output {missing[0]}; it has {', '.join(outputs)}")
        self._places = {name: outputs.index(name) for name in wanted}
        # what shapes do not say, a first call does
        self.call(np.zeros(challenge2024.COUNT, np.float32), self.states())

    def _wrong(self, what: str) -> ControllerError:
        return ControllerError(
            f"{self._model.shown}: {what} (the challenge of 2024 has its contract in torch_policy.py)"
        )

    def _shape(self, tensor: Tensor, last: int | None = None) -> tuple[int, ...]:
        """The shape of an input for one call and one step."""
        shape = tuple(1 if one is None else one for one in tensor.shape)
        if last is not None and tensor.shape and tensor.shape[-1] is None:
            shape = (*shape[:-1], last)
        if last is not None and int(np.prod(shape)) != last:
            raise self._wrong(f"the input {tensor} has {int(np.prod(shape))} numbers; expected [1, 1, {last}]")
        if last is None and any(one > 1 for one in shape[:-1]):
            raise self._wrong(f"the input {tensor} is of more than one call; expected [1, SIZE]")
        return shape

    def states(self) -> dict[str, Floats]:
        """The states that a call begins with: zeros."""
        return {name: np.zeros(shape, np.float32) for name, shape in self._states.items()}

    def call(self, observation: Floats, states: Mapping[str, Floats]) -> tuple[float, dict[str, Floats]]:
        """One step: the estimate in bit/s, which may be no number, and the states for the next step.

        Raises:
            ControllerError: when the model cannot take it, or its output has another shape.
        """
        outputs = self._model.run({_OBS: observation.reshape(self._obs), **states})
        estimate = np.asarray(outputs[self._places[_OUTPUT]])
        if estimate.size not in {1, 2} or estimate.dtype.kind != "f":
            # the second is the deviation of the estimate
            shape = list(estimate.shape)
            raise self._wrong(f"output has the shape {shape} of {estimate.dtype}; expected [1, 1, 2] of float32")
        after = {name: np.asarray(outputs[self._places[_STATES[name]]]) for name in states}
        for name, state in after.items():
            if state.shape != self._states[name]:
                wrong = (
                    f"{_STATES[name]} has the shape {list(state.shape)}; expected {list(self._states[name])}, as {name}"
                )
                raise self._wrong(wrong)
        return float(estimate.reshape(-1)[0]), after

    def __call__(self, **settings: Any) -> tuple[Controller, ReceiverHalf]:
        """Both halves."""
        del settings
        return Follower(), OnnxModel(self, self._model.shown)


class OnnxModel(Estimating):
    """Observes, and asks the model every 60 ms."""

    def __init__(self, model: Challenge2024, shown: str) -> None:
        super().__init__(challenge2024.INTERVAL_NS)
        self._model, self._shown = model, shown
        self._observer = challenge2024.Observer()
        self._states = model.states()

    def hear(self, now_ns: int, packet: Arrived) -> None:
        self._observer.hear(now_ns, packet)

    def estimate(self, now_ns: int) -> int:
        del now_ns
        found, self._states = self._model.call(self._observer.close(), self._states)
        return checked(found, f"{self._shown}: its estimate is")
