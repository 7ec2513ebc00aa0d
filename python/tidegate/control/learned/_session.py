"""ONNX models by ONNX Runtime, an extra: loading, inspecting and running them, with errors of one line."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tidegate._inputs import MODEL
from tidegate._inputs import read as read_input
from tidegate.errors import ControllerError

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Tensor:
    """An input or an output of a model."""

    name: str
    type: str
    """Such as `tensor(float)`."""
    shape: tuple[int | None, ...]
    """Its dimensions; None where any will do."""

    def __str__(self) -> str:
        """Name, type and shape, for errors."""
        return f"{self.name} {self.type} [{', '.join('?' if size is None else str(size) for size in self.shape)}]"


class Model:
    """A model that can be run."""

    def __init__(self, content: bytes, label: str) -> None:
        runtime = _runtime(label)
        options = runtime.SessionOptions()
        # one thread: runs are many at a time, and a sum over threads has no order of its own
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.execution_mode = runtime.ExecutionMode.ORT_SEQUENTIAL
        options.use_deterministic_compute = True
        options.log_severity_level = 4  # what matters is raised, and said here
        self.label = label
        self._content = content
        try:
            self._session = runtime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
            self.metadata: Mapping[str, str] = dict(self._session.get_modelmeta().custom_metadata_map)
        except Exception as error:  # noqa: BLE001 - its exceptions have no base of their own
            raise ControllerError(f"{label}: {_why(error)}") from None
        self.inputs = [_tensor(tensor) for tensor in self._session.get_inputs()]
        self.outputs = [_tensor(tensor) for tensor in self._session.get_outputs()]

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles the bytes of its file, to go to another machine."""
        return _load, (self._content, self.label)

    def run(self, inputs: Mapping[str, Floats]) -> Sequence[Any]:
        """Computes the outputs.

        Raises:
            ControllerError: when it cannot compute them from these inputs.
        """
        try:
            outputs: Sequence[Any] = self._session.run(None, dict(inputs))
        except Exception as error:  # noqa: BLE001 - as above
            raise ControllerError(f"{self.label}: {_why(error)}") from None
        return outputs

    def signature(self) -> str:
        """Its inputs and outputs, for errors."""
        return f"{'; '.join(map(str, self.inputs))} -> {'; '.join(map(str, self.outputs))}"


class OfModel:
    """Base of the makers of controllers from models: no settings, and no further files."""

    beside: Mapping[str, Path] = {}

    def __init__(self, model: Model) -> None:
        self._model = model

    def check(self, settings: Mapping[str, Any]) -> None:
        """Refuses any setting: a model has none."""
        for key in settings:
            raise ControllerError(f"onnx:{self._model.label}: {key}: a model has no settings; remove it")


def load(path: Path, label: str) -> Model:
    """The model in a file; the same one for the same content, because it holds nothing of a run.

    Raises:
        ControllerError: when there is none in it, or ONNX Runtime cannot run it.
    """
    return _load(read_input(path, MODEL, ControllerError).data, label)


@lru_cache(maxsize=16)
def _load(content: bytes, label: str) -> Model:
    return Model(content, label)


def _runtime(label: str) -> Any:
    try:
        import onnxruntime
    except ImportError as error:
        extra = 'pip install "tidegate[onnx]"'
        raise ControllerError(f"{label}: a model needs ONNX Runtime ({error}): {extra}") from None
    return onnxruntime


def _tensor(node: Any) -> Tensor:
    return Tensor(node.name, node.type, tuple(size if isinstance(size, int) else None for size in node.shape))


_KINDS = {
    "INVALID_PROTOBUF": "the file is not an ONNX file",
    "NO_MODEL": "the file is not an ONNX file",
    "INVALID_GRAPH": "ONNX Runtime cannot run this model",
    "NOT_IMPLEMENTED": "ONNX Runtime cannot run this model",
    "FAIL": "ONNX Runtime cannot run this model",
}


def _why(error: BaseException) -> str:
    """The message of ONNX Runtime in one line, without positions in its C++ code."""
    text = " ".join(str(error).split())
    match = re.match(r"\[ONNXRuntimeError\] : \d+ : (\w+) : (.*)", text)
    kind, message = (match[1], match[2]) if match else ("", text)
    if "No graph was found" in message:
        return "the file is not an ONNX file (it has no graph)"
    message = re.sub(r"\S*/[\w./]+\.(?:cc|h):\d+ \S+(?: \[\w+\])? ?", "", message)
    return f"{_KINDS.get(kind, 'ONNX Runtime refuses it')}: {message[:300]}"
