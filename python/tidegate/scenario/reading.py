"""Loads the files that a scenario names while it is turned into the engine's input."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from tidegate._files import readable, sha256
from tidegate.errors import InputError, TidegateError, TraceError
from tidegate.net import trace

if TYPE_CHECKING:
    from tidegate.control.registry import Choice
    from tidegate.scenario.capacity import TraceCapacity
    from tidegate.scenario.scenario import Scenario

T = TypeVar("T")


@dataclass(frozen=True)
class Origin:
    """The file of a recorded network and the settings of its parser: another machine parses it to the same network."""

    path: Path
    sha256: str
    how: TraceCapacity

    def contents(self) -> bytes:
        """The unpacked bytes of the file.

        Raises:
            InputError: when it cannot be read, or has changed.
        """
        content = trace.contents(self.path)
        if content.sha256 != self.sha256:
            raise InputError(f"{self.path}: the file has changed since it was read; run the same command again")
        return content.data

    def parse(self, data: bytes) -> trace.Trace:
        """Parses the network from these bytes."""
        how = self.how
        return trace.parse(self.path, data, how.format, how.frequency, how.direction, how.reference_rate)


@dataclass
class Inputs:
    """Inputs of a scenario's runs apart from its settings: networks, controllers, files."""

    traces: list[trace.Trace] = field(default_factory=list)
    """Recorded networks, in the order of their indices in the engine's input."""
    origins: list[Origin] = field(default_factory=list)
    """File of each recorded network."""
    python: dict[str, Callable[[], Any]] = field(default_factory=dict)
    """Factories of controllers written in Python, and of iterators over pictures, by name."""
    files: dict[str, str] = field(default_factory=dict)
    """SHA-256 of each file that was read, by name."""
    local_classes: dict[str, str] = field(default_factory=dict)
    """Source text of each class that only this process has, such as those of a notebook's cell or a function."""
    unrun: list[str] = field(default_factory=list)
    """Controllers written in Python whose code was not run: the scenario can be checked, but not run."""


class Files:
    """Cache of loaded files, which several scenarios share."""

    def __init__(self) -> None:
        self._results: dict[Any, Any] = {}

    def once(self, key: Any, load: Callable[[], T]) -> T:
        """Result of `load` for `key`; calls it only the first time."""
        if key not in self._results:
            self._results[key] = load()
        result: T = self._results[key]
        return result


class Reading:
    """State of one pass over a scenario: its folder, its loaded files, and whether code that it names may run."""

    def __init__(self, scenario: Scenario, files: Files, *, run_code: bool = True) -> None:
        self.run_code = run_code
        self.scenario = scenario
        self.base = scenario.base
        self.files = files
        self.inputs = Inputs()
        self.cable = ""
        """Name of the link whose directions are being lowered."""
        self._indices: dict[str, int] = {}

    @contextmanager
    def at(self, key: str) -> Iterator[None]:
        """Puts the key before the message of each error inside."""
        try:
            yield
        except InputError as error:
            where = self.scenario.where(key)
            raise type(error)(f"{where + ': ' if where else ''}{key}: {error}") from error.__cause__

    def trace(self, capacity: TraceCapacity) -> int:
        """Loads a recorded network; returns its index among those of the scenario."""
        path = self.base / capacity.trace
        key = capacity.model_dump_json(exclude={"offset", "scale", "capacity_only", "sha256"})
        expected = capacity.sha256 or self.scenario.kept_with.get(capacity.trace)
        if expected is not None:
            _check_kept(path, expected)
        if key not in self._indices:
            loaded, self.inputs.files[capacity.trace] = self.files.once((path, key), lambda: _load(path, capacity))
            self._indices[key] = len(self.inputs.traces)
            self.inputs.traces.append(loaded)
            self.inputs.origins.append(Origin(path, self.inputs.files[capacity.trace], capacity))
        return self._indices[key]

    def controller(self, chosen: Choice) -> None:
        """Adds a controller's factory and code to the inputs, if it is written in Python."""
        if not chosen.is_run and chosen.label not in self.inputs.unrun:
            self.inputs.unrun.append(chosen.label)
        factory = chosen.factory()
        if factory is not None:
            self.inputs.python[chosen.label] = factory
            self.inputs.files.update({name: digest(file) for name, file in chosen.code().items()})
            for name, (text, code) in chosen.local_classes().items():
                self.inputs.local_classes[name], self.inputs.files[name] = text, code


def _load(path: Path, capacity: TraceCapacity) -> tuple[trace.Trace, str]:
    how = {key: getattr(capacity, key) for key in ("format", "frequency", "direction", "reference_rate")}
    loaded, sha256 = trace.load_with_sha256(path, **how)
    if loaded.mean_rate == 0:
        raise TraceError(f"{path}: every rate is zero; the link would never carry a packet")
    return loaded, sha256


def _check_kept(path: Path, expected: str) -> None:
    """Checks that a recording is there, and is the one with which a scenario was kept."""
    kept = f"the scenario was kept with a recording of SHA-256 {expected[:12]}..."
    if not path.exists():
        raise TraceError(f"{path}: there is no such file; {kept}: put it there, or name its place with --set")
    if (actual := digest(path)) != expected:
        raise TraceError(f"{path}: found another recording, of SHA-256 {actual[:12]}...; {kept}")


def digest(path: Path) -> str:
    """SHA-256 of a regular file of any size, such as the code of a controller or a model.

    Raises:
        TidegateError: when it cannot be read.
    """
    with readable(path, TidegateError):
        return sha256(path)
