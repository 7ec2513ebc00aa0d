"""The scenario: the top table of a scenario file."""

from __future__ import annotations

import copy
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import Field, PrivateAttr, ValidationError

from tidegate.errors import InputError, ScenarioError, did_you_mean
from tidegate.scenario import shipped, toml
from tidegate.scenario._checks import problems
from tidegate.scenario.clocks import Clock
from tidegate.scenario.couplings import Coupling
from tidegate.scenario.explain import Path as KeyPath
from tidegate.scenario.explain import Problem, dotted, explain
from tidegate.scenario.flows import Flow
from tidegate.scenario.links import Link
from tidegate.scenario.media import Media
from tidegate.scenario.model import NAME, Model, Name
from tidegate.scenario.moves import Move
from tidegate.scenario.radio import Lte, Radio, Users
from tidegate.scenario.sessions import Session
from tidegate.scenario.shapes import OneOf
from tidegate.scenario.source import Source
from tidegate.scenario.whatifs import Variant
from tidegate.units import Duration, show

Seed = Annotated[int, Field(ge=0, le=2**64 - 1)]
Level = Literal["summary", "series", "packets"]


class Scenario(Model):
    """A complete experiment: links, flows and their duration.

    >>> from tidegate import Flow, Link, Media, Scenario
    >>> scenario = Scenario(
    ...     name="home",
    ...     duration="60s",
    ...     links=[Link(name="uplink", capacity="2Mbps", delay="20ms")],
    ...     flows=[Flow(name="call", media=Media(controller="gcc"))],
    ... )
    >>> print(scenario.to_toml(), end="")
    name = "home"
    duration = "60s"
    <BLANKLINE>
    [[links]]
    name = "uplink"
    capacity = "2Mbps"
    delay = "20ms"
    <BLANKLINE>
    [[flows]]
    name = "call"
    media = {}
    """

    if TYPE_CHECKING:

        def __init__(self, /, **keys: Any) -> None: ...

    name: Name = "scenario"
    """Name of the scenario; by default the name of the file."""
    description: str = ""
    """Purpose of the scenario, in a sentence or two."""
    source: str = ""
    """Source of the figures in the scenario."""
    duration: Duration
    """Simulated time of a run."""
    warmup: Duration = Duration(0)
    """Time at the beginning of the run that the metrics leave out."""
    seed: Seed = 1
    """Seed of the run."""
    seeds: dict[str, Seed] = Field(default_factory=dict)
    """Seeds of individual links, flows, members or radio networks, by name; no other random numbers change."""
    sending_jitter: Annotated[Literal["auto", "off"] | Duration, OneOf('"auto", "off", or a time')] = "auto"
    """Largest random delay of TCP and UDP senders, against phase effects at drop-tail queues."""
    record: Level = "series"
    """Recorded data: only metrics (summary), metrics and time series (series), or also every packet (packets)."""
    bin: Duration = Duration(200_000_000)
    """Width of a bin of the series (RFC 8868 section 3: 200 ms)."""
    capture: bool = False
    """Whether packets are recorded at both ends, for capture files."""
    lte: Lte | None = None
    """LTE network, whose users are points of the network."""
    links: Annotated[list[Link], Field(min_length=1, max_length=100_000)]
    """Links of the network."""
    flows: Annotated[list[Flow], Field(max_length=100_000)] = Field(default_factory=list)
    """Flows over the network."""
    couplings: Annotated[list[Coupling], Field(max_length=1000)] = Field(default_factory=list)
    """Media flows of one sender whose congestion controls are coupled."""
    moves: Annotated[list[Move], Field(max_length=10_000)] = Field(default_factory=list)
    """Changes of links and flows during the run."""
    sessions: Annotated[list[Session], Field(max_length=1000)] = Field(default_factory=list)
    """RTP sessions, each with any number of members."""
    clocks: dict[Name, Clock] = Field(default_factory=dict)
    """Clocks of the ends of calls that do not run true, by the point of the network at which they are."""
    variants: Annotated[list[Variant], Field(max_length=100)] = Field(default_factory=list)
    """Variants of the scenario, which `tidegate compare` without controllers runs side by side; nothing else takes
    them."""

    _base: Path = PrivateAttr(default=Path())
    """Folder that relative names of files start from."""
    _kept_with: Mapping[str, str] = PrivateAttr(default_factory=dict)
    """SHA-256 by name of the files with which the scenario of a saved run was run."""
    _places: dict[str, str] = PrivateAttr(default_factory=dict)
    """File and line of each key, for a scenario that was loaded from a file without changes."""

    @classmethod
    def load(cls, what: str | Path, changes: Mapping[str, Any] | None = None) -> Self:
        """Reads a scenario file, or one that tidegate ships, by its name.

        Args:
            what: A path, or a name from `tidegate scenario list`.
            changes: Values by dotted key that replace those of the file.

        Raises:
            InputError: when there is no such file or scenario.
            ScenarioError: names file, line, key, the value found and the value expected.

        >>> Scenario.load("home-broadband").links[0].name
        'uplink'
        """
        path = shipped.find(what)
        return cls.parse(toml.read(path), path, changes)

    @classmethod
    def parse(cls, text: str, path: str | Path = "scenario.toml", changes: Mapping[str, Any] | None = None) -> Self:
        """Reads the text of a scenario file; `path` names it in errors and anchors its files.

        Raises:
            ScenarioError: names file, line, key, the value found and the value expected.
        """
        path = Path(path)
        source = Source.parse(text, path, _names)
        data = source.data
        data.setdefault("name", _name_of(path))
        assign_all(data, changes or {})
        named = source.named

        def where(problem: Problem) -> str:
            key = dotted(problem.path, named)
            if any(key == changed or key.startswith(f"{changed}.") for changed in changes or ()):
                return f"{path}, as changed"
            return source.where(problem.path)

        scenario = cls._build(data, path.parent, where)
        if not changes:
            scenario._places = {dotted(key_path, named): source.where(key_path) for key_path in source.lines}  # noqa: SLF001
        return scenario

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], base: str | Path = ".") -> Self:
        """Builds a scenario from plain data of the shape of a file; `base` anchors the files that it names.

        Raises:
            ScenarioError: names key, the value found and the value expected.
        """
        return cls._build(copy.deepcopy(dict(data)), Path(base), lambda _: "scenario")

    @classmethod
    def _build(cls, data: dict[str, Any], base: Path, where: Any) -> Self:
        named = _names(data)
        try:
            scenario = cls.model_validate(data)
        except ValidationError as error:
            wrong = list(explain(error, cls))
            raise ScenarioError(problem.text(where(problem), named) for problem in wrong) from None
        scenario._base = base  # noqa: SLF001
        wrong = list(problems(scenario))
        if wrong:
            raise ScenarioError(problem.text(where(problem), named) for problem in wrong)
        return scenario

    @property
    def radios(self) -> dict[str, Radio]:
        """The radio networks by their keys."""
        return {} if self.lte is None else {"lte": self.lte}

    def radio_user(self, flow: Flow) -> Users | None:
        """The user, or the group of users, of a radio network that a flow goes from or to, if it does."""
        users = {user.name: user for radio in self.radios.values() for user in radio.users}
        return users.get(flow.from_) or users.get(flow.to)

    @property
    def base(self) -> Path:
        """The folder that relative names of files start from."""
        return self._base

    @property
    def code(self) -> list[str]:
        """Names of its controllers written in Python, whose code a run executes.

        >>> Scenario.load("home-broadband", {"flows.call.media.controller": "python:mine.py:Mine"}).code
        ['python:mine.py:Mine']
        """
        controllers = [flow.media.controller for flow in self.flows if flow.media is not None]
        texts = (
            controller if isinstance(controller, str) else getattr(controller, "name", "") for controller in controllers
        )
        return list(dict.fromkeys(text for text in texts if text.partition(":")[0] in ("python", "alphartc")))

    def where(self, key: str) -> str:
        """File and line of a dotted key, or of the table that it would be in; empty if it is unknown."""
        while key and key not in self._places:
            key = key.rpartition(".")[0]
        return self._places.get(key, "")

    def check(self, *, run_code: bool = False) -> None:
        """Checks all that a run checks before it begins, files and controllers included.

        It takes as long as the beginning of a run: it loads recorded networks, and builds all links and flows.

        Args:
            run_code: Whether Python modules of controllers are imported, which runs them; if not, the check is only
                that they exist, are Python, and have a class of the name.

        Raises:
            ScenarioError: lists every problem.
            InputError: when a file or a controller that it names is not usable, or the engine refuses the scenario.
            RunError: when a run needs more memory than is free.
        """
        wrong = list(problems(self))
        if wrong:
            raise ScenarioError(problem.text(self.name, _names(self.to_dict())) for problem in wrong)
        from tidegate.scenario.assembling import assemble

        assemble(self, run_code=run_code)

    def with_changes(self, changes: Mapping[str, Any] | None = None, /, **keys: Any) -> Self:
        """A copy with values replaced by dotted key, as `--set` does; it is checked after the last change.

        The order of the changes does not matter: a table is replaced before the keys in it.

        Raises:
            InputError: when a key leads nowhere, or two of them contradict each other.
            ScenarioError: when a value does not fit.

        >>> Scenario.load("home-broadband").with_changes({"links.uplink.delay": "5ms"}).links[0].delay
        Duration('5ms')
        """
        data = self.to_dict()
        assign_all(data, {**(changes or {}), **keys})
        return type(self).from_dict(data, self._base)

    @property
    def kept_with(self) -> Mapping[str, str]:
        """SHA-256 by name of the files with which it was run, of the scenario of a saved run; otherwise empty."""
        return self._kept_with

    def to_toml(self) -> str:
        """The scenario as the text of a TOML file."""
        return toml.write(self.to_dict())

    def kept(self, files: Mapping[str, str]) -> Self:
        """The scenario, whose recorded networks must be those of these SHA-256, by name, when it is run."""
        named = {str(capacity["trace"]) for capacity in _recorded(self.to_dict())}
        self._kept_with = {name: sha256 for name, sha256 in files.items() if name in named}
        return self

    def kept_toml(self, folder: Path, files: Mapping[str, str]) -> str:
        """The text of a file in `folder`, which names recorded networks relative to it, and with their hashes.

        Args:
            folder: Folder in which the text will be a file.
            files: SHA-256 of each file by its name in this scenario.
        """
        data = self.to_dict()
        for capacity in _recorded(data):
            name = str(capacity["trace"])
            capacity["trace"] = Path(os.path.relpath(self._base / name, folder)).as_posix()
            if name in files:
                capacity["sha256"] = files[name]
        return toml.write(data)


def _recorded(data: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The capacities of links that are recorded networks."""
    for link in data["links"]:
        for way in (link, link.get("back")):
            capacity = way.get("capacity") if isinstance(way, dict) else None
            if isinstance(capacity, dict) and "trace" in capacity:
                yield capacity


def _name_of(path: Path) -> str:
    name = "".join(char if char.isalnum() or char in "_.+-" else "-" for char in path.stem)
    return name[:64] if name[:1].isalnum() and name.isascii() else "scenario"


def _names(data: Mapping[str, Any]) -> dict[KeyPath, str]:
    """Names of links, flows, sessions and members by their path, as far as they have a valid one."""
    named: dict[KeyPath, str] = {}

    def walk(entries: object, path: KeyPath) -> None:
        for position, entry in enumerate(entries if isinstance(entries, list) else ()):
            if not isinstance(entry, dict):
                continue
            key_path = (*path, position)
            name = entry.get("name")
            if isinstance(name, str) and re.match(NAME, name):
                named[key_path] = name
            walk(entry.get("members"), (*key_path, "members"))

    for key in ("links", "flows", "sessions"):
        walk(data.get(key), (key,))
    lte = data.get("lte")
    walk(lte.get("users") if isinstance(lte, dict) else None, ("lte", "users"))
    return named


_DEEPEST_KEY = 50
"""Most names in a dotted key; the deepest key of a scenario has a dozen."""


def assign_all(data: dict[str, Any], changes: Mapping[str, Any]) -> None:
    """Sets values by their dotted keys; links and flows go by their name, or by number from 1.

    A table is set before the keys in it, and names last, so that the order of the changes does not matter.

    Raises:
        InputError: when a key leads nowhere, or two of them contradict each other.

    >>> data = {"links": [{"name": "x", "delay": "1ms"}]}
    >>> assign_all(data, {"links.x.capacity.trace": "x.csv", "links.x.capacity": {"offset": "random"}})
    >>> data
    {'links': [{'name': 'x', 'delay': '1ms', 'capacity': {'offset': 'random', 'trace': 'x.csv'}}]}
    >>> assign_all(data, {"links.y.delay": "20ms"})
    Traceback (most recent call last):
    ...
    tidegate.errors.InputError: links.y.delay: no entry of links is called y; available: x
    """
    set_by: dict[tuple[int, str], str] = {}
    """Changed key by the entry that it set: the identity of a table and a key in it."""
    for key in sorted(changes, key=_parents_first):
        steps = key.split(".")
        if not all(steps):
            raise InputError(f'"{key}" is not a key; expected names with dots between them')
        if len(steps) > _DEEPEST_KEY:
            raise InputError(
                f"{key[:40]}...: is not a key; expected at most {_DEEPEST_KEY} names with dots between them"
            )
        node: Any = data
        for depth, step in enumerate(steps[:-1]):
            if isinstance(node, list):
                node = _entry(node, steps, depth)
                continue
            node = _inside(node, step, key, set_by)
        if isinstance(node, list):
            _entry(node, steps, len(steps) - 1)
            raise InputError(f"{key}: found the name of a table; expected a key in this table")
        target = (id(node), steps[-1])
        if target in set_by:
            raise InputError(f"{key}: found the same key again as {set_by[target]}; expected one of them")
        set_by[target] = key
        # a copy, so that later changes in it do not reach the caller's table
        node[steps[-1]] = copy.deepcopy(changes[key]) if isinstance(changes[key], dict | list) else changes[key]


def _parents_first(key: str) -> tuple[bool, int]:
    steps = key.split(".")
    return steps[-1] == "name", len(steps)


_NAMED_TABLES = ("controller", "discipline")
"""Keys whose value is a name, or a table with that name: a setting can be added to "gcc:draft-02"."""


def _inside(outer: dict[str, Any], step: str, key: str, set_by: dict[tuple[int, str], str]) -> Any:
    """The table under `step`, created if missing; `set_by` has the keys that were set before."""
    child, parent = outer.get(step), set_by.get((id(outer), step))
    if isinstance(child, dict | list):
        return child
    table: dict[str, Any] = {}
    if child is None and step == "controller":
        child = Media.model_fields[step].default  # which stands in no file
    if step in _NAMED_TABLES and isinstance(child, str):
        table["name"] = child
        if parent is not None:
            set_by[id(table), "name"] = parent
    elif parent is not None:
        raise InputError(f"{key}: its table {parent} is also set, to {show(child)}; expected one of the two")
    outer[step] = table
    return table


def _entry(entries: list[Any], steps: list[str], depth: int) -> Any:
    listed = [entry for entry in entries if isinstance(entry, dict)]
    step = steps[depth]
    for entry in listed:
        if entry.get("name") == step:
            return entry
    if step.isascii() and step.isdigit() and 1 <= int(step) <= len(listed):
        return listed[int(step) - 1]
    if not listed and entries:
        parent = ".".join(steps[:depth])
        raise InputError(
            f"{'.'.join(steps)}: {parent} is a list of values; expected the whole list, as in {parent}=[1, 2]"
        )
    names = [str(entry.get("name", position)) for position, entry in enumerate(listed, 1)]
    hint = did_you_mean(step, names) or f"; available: {', '.join(names)}"
    raise InputError(f"{'.'.join(steps)}: no entry of {steps[depth - 1]} is called {step}{hint}")
