"""`onnx:FILE`: finds the contract of a model, and makes the controller."""

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


def maker(path: Path, label: str) -> Challenge2024 | Described:
    """The maker of the controller for a model.

    Raises:
        ControllerError: when its contract is neither of the two.
    """
    model = load(path, label)
    if TERMS in model.metadata:
        return Described(model)
    if _OBS not in {tensor.name for tensor in model.inputs}:
        raise ControllerError(
            f"{label}: found {model.signature()}; expected those of the challenge of 2024 (obs, hidden_states, "
            f"cell_states -> output, state_out, cell_out), or metadata with {TERMS}"
        )
    return Challenge2024(model)


class Challenge2024(OfModel):
    """A checked model with the contract of the challenge of MMSys 2024."""

    needs = Follower.needs

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        inputs = {tensor.name: tensor for tensor in model.inputs}
        outputs = [tensor.name for tensor in model.outputs]
        for name in inputs:
            if name != _OBS and name not in _STATES:
                raise self._wrong(f"found an input {name}; expected obs, hidden_states and cell_states")
        for tensor in inputs.values():
            if tensor.type != "tensor(float)":
                raise self._wrong(f"the input {tensor} is not a tensor(float)")
        self._obs = self._shape(inputs[_OBS], challenge2024.COUNT)
        self._states = {name: self._shape(tensor) for name, tensor in inputs.items() if name != _OBS}
        wanted = [_OUTPUT, *(_STATES[name] for name in self._states)]
        if missing := [name for name in wanted if name not in outputs]:
            raise self._wrong(f"the model has no output {missing[0]}; available: {', '.join(outputs)}")
        self._places = {name: outputs.index(name) for name in wanted}
        # what shapes do not say, a first call does
        self.call(np.zeros(challenge2024.COUNT, np.float32), self.states())

    def _wrong(self, problem: str) -> ControllerError:
        return ControllerError(
            f"{self._model.label}: {problem} (the challenge of 2024 has its contract in torch_policy.py)"
        )

    def _shape(self, tensor: Tensor, last: int | None = None) -> tuple[int, ...]:
        """The shape of an input for one call and one step."""
        shape = tuple(1 if size is None else size for size in tensor.shape)
        if last is not None and tensor.shape and tensor.shape[-1] is None:
            shape = (*shape[:-1], last)
        if last is not None and int(np.prod(shape)) != last:
            raise self._wrong(f"the input {tensor} has {int(np.prod(shape))} numbers; expected [1, 1, {last}]")
        if last is None and any(size > 1 for size in shape[:-1]):
            raise self._wrong(f"the input {tensor} is for more than one call; expected [1, SIZE]")
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
        return Follower(), OnnxModel(self, self._model.label)


class OnnxModel(Estimating):
    """Observes packets, and gets an estimate of the model every 60 ms."""

    def __init__(self, model: Challenge2024, label: str) -> None:
        super().__init__(challenge2024.INTERVAL_NS)
        self._model, self._label = model, label
        self._observer = challenge2024.Observer()
        self._states = model.states()

    def hear(self, now_ns: int, packet: Arrived) -> None:
        self._observer.hear(now_ns, packet)

    def estimate(self, now_ns: int) -> int:
        del now_ns
        estimate, self._states = self._model.call(self._observer.close(), self._states)
        return checked(estimate, f"{self._label}: the estimate is")
