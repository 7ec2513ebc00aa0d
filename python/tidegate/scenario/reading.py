"""Files that scenarios name, read while they are turned into what the engine takes."""

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
    from tidegate.scenario.links import TraceCapacity
    from tidegate.scenario.scenario import Scenario

T = TypeVar("T")


@dataclass(frozen=True)
class Origin:
    """The file of a recorded network, and how it is read: what another machine makes the same of."""

    path: Path
    sha256: str
    how: TraceCapacity

    def contents(self) -> bytes:
        """The unpacked bytes of the file.

        Raises:
            InputError: when it cannot be read, or is not what it was.
        """
        data = trace.contents(self.path)
        if digest(self.path) != self.sha256:
            raise InputError(f"{self.path}: was changed since it was read; run the same again")
        return data

    def parse(self, data: bytes) -> trace.Trace:
        """The network out of these bytes."""
        how = self.how
        return trace.parse(self.path, data, how.format, how.frequency, how.direction, how.reference_rate)


@dataclass
class Inputs:
    """What runs of a scenario need beside its settings."""

    traces: list[trace.Trace] = field(default_factory=list)
    """Recorded networks, by their index in what the engine takes."""
    origins: list[Origin] = field(default_factory=list)
    """The file that each of them was read from."""
    python: dict[str, Callable[[], Any]] = field(default_factory=dict)
    """What makes controllers written in Python, and iterators over pictures, by their names."""
    files: dict[str, str] = field(default_factory=dict)
    """SHA-256 of every file that was read, by name."""
    here: dict[str, str] = field(default_factory=dict)
    """The text of each class that only this process has: one of a notebook's cell, or of a function."""
    unrun: list[str] = field(default_factory=list)
    """Controllers written in Python whose code was only looked at: the scenario can be checked, and not run."""


class Files:
    """What has been read for several scenarios, so that they share it."""

    def __init__(self) -> None:
        self._found: dict[Any, Any] = {}

    def once(self, key: Any, read: Callable[[], T]) -> T:
        """What `read` gave when it was called for `key` the first time."""
        if key not in self._found:
            self._found[key] = read()
        found: T = self._found[key]
        return found


class Reading:
    """One pass over a scenario: where its files begin, what they hold, and whether code that it names may run."""

    def __init__(self, scenario: Scenario, files: Files, *, run_code: bool = True) -> None:
        self.run_code = run_code
        self.scenario = scenario
        self.base = scenario.base
        self.files = files
        self.inputs = Inputs()
        self.cable = ""
        """The link whose directions are being read."""
        self._indices: dict[str, int] = {}

    @contextmanager
    def at(self, key: str) -> Iterator[None]:
        """Puts the key before the message of whatever goes wrong inside."""
        try:
            yield
        except InputError as error:
            where = self.scenario.where(key)
            raise type(error)(f"{where + ': ' if where else ''}{key}: {error}") from error.__cause__

    def trace(self, capacity: TraceCapacity) -> int:
        """The number of a recorded network among those of the scenario."""
        path = self.base / capacity.trace
        key = capacity.model_dump_json(exclude={"offset", "scale", "capacity_only"})
        if key not in self._indices:
            loaded, self.inputs.files[capacity.trace] = self.files.once(
                (path, key), lambda: (_load(path, capacity), digest(path))
            )
            self._indices[key] = len(self.inputs.traces)
            self.inputs.traces.append(loaded)
            self.inputs.origins.append(Origin(path, self.inputs.files[capacity.trace], capacity))
        return self._indices[key]

    def controller(self, chosen: Choice) -> None:
        """Notes a controller, for what it takes to make one written in Python."""
        if not chosen.is_run and chosen.label not in self.inputs.unrun:
            self.inputs.unrun.append(chosen.label)
        factory = chosen.factory()
        if factory is not None:
            self.inputs.python[chosen.label] = factory
            self.inputs.files.update({name: digest(file) for name, file in chosen.code().items()})
            for name, (text, code) in chosen.here().items():
                self.inputs.here[name], self.inputs.files[name] = text, code


def _load(path: Path, capacity: TraceCapacity) -> trace.Trace:
    how = {key: getattr(capacity, key) for key in ("format", "frequency", "direction", "reference_rate")}
    loaded = trace.load(path, **how)
    if loaded.mean_rate == 0:
        raise TraceError(f"{path}: every rate is zero; a link that never carries anything is no link")
    return loaded


def digest(path: Path) -> str:
    """SHA-256 of a file.

    Raises:
        TidegateError: when it cannot be read.
    """
    with readable(path, TidegateError):
        return sha256(path)
