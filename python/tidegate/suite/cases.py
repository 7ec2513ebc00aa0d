"""Cases: a scenario with its changes, and the flows in it that take the controller that is tried."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from tidegate import _shipped
from tidegate.control import registry
from tidegate.control.contenders import Contender, anchored
from tidegate.errors import InputError, Refusals, did_you_mean
from tidegate.scenario import Scenario, toml
from tidegate.scenario.capacity import TraceCapacity
from tidegate.suite import oracle, windows
from tidegate.suite.model import CaseTable

if TYPE_CHECKING:
    from tidegate.shell import LiveJob

_ONE_OF_SEVERAL = r"([-.]\d+)*(\.back)?"  # what a run adds to the name of a flow: its number, its direction


@dataclass(frozen=True)
class Case:
    """One network that each controller is tried on."""

    name: str
    """Its name in tables."""
    title: str
    """A few words about it."""
    source: str
    """Its source: a document and section."""
    scenario: Scenario | None
    """The network and its flows; `None` for a case that is not run."""
    contenders: tuple[str, ...] = ()
    """The flows of the scenario that take the controller."""
    not_run: str = ""
    """The reason why it is not run; empty for a case that is."""
    begin_between: tuple[int, int] | None = None
    """Only contenders that begin in this time are judged, in nanoseconds; all where it is `None`."""

    @property
    def who(self) -> str:
        """Contenders and judged flows as text: a part of the key of a run, because numbers depend on them."""
        return " ".join((*self.contenders, *map(str, self.begin_between or ())))

    @property
    def others(self) -> list[str]:
        """The flows of the scenario that do not take the controller."""
        flows = self.scenario.flows if self.scenario is not None else []
        return [flow.name for flow in flows if flow.name not in self.contenders]

    def with_controller(self, controller: Contender | Mapping[str, Any]) -> Scenario:
        """Its scenario with a controller in all its contenders.

        Raises:
            InputError: when the controller does not fit.
        """
        assert self.scenario is not None  # noqa: S101
        if controller == oracle.NAME:
            return oracle.with_oracle(self.scenario, self.contenders)
        data = self.scenario.to_dict()
        for flow in data["flows"]:
            if flow.get("name", "flow") in self.contenders:
                flow["media"]["controller"] = anchored(controller)
        return Scenario.from_dict(data, self.scenario.base)

    def session(self, program: str, seed: int) -> LiveJob:
        """A session of a real program that is the contender of this case.

        Raises:
            InputError: when the case has several, or one that a program cannot be.
        """
        from tidegate.shell import LiveJob

        assert self.scenario is not None  # noqa: S101
        if len(self.contenders) > 1:
            raise InputError(
                f"the case has {len(self.contenders)} calls ({', '.join(self.contenders)}), but a program makes one"
            )
        return LiveJob.of(program, self.scenario, self.contenders[0], seed, "series")

    def to_data(self) -> dict[str, Any]:
        """As plain data, from which [of_data][tidegate.suite.cases.Case.of_data] makes it again."""
        scenario = self.scenario
        about = {"scenario": scenario.to_toml(), "base": str(scenario.base.resolve())} if scenario is not None else {}
        return {
            "name": self.name,
            "title": self.title,
            "source": self.source,
            "contenders": list(self.contenders),
            "not_run": self.not_run,
            **({} if self.begin_between is None else {"begin_between": list(self.begin_between)}),
            **about,
        }

    @classmethod
    def of_data(cls, data: Mapping[str, Any]) -> Self:
        """From plain data, as [to_data][tidegate.suite.cases.Case.to_data] gives it.

        Raises:
            InputError: when its scenario is none.
        """
        scenario = None
        if data.get("scenario") is not None:
            scenario = Scenario.parse(data["scenario"], Path(data["base"]) / "scenario.toml")
        time = data.get("begin_between")
        between = None if time is None else (time[0], time[1])
        names = tuple(data["contenders"])
        return cls(data["name"], data["title"], data["source"], scenario, names, data["not_run"], between)

    def judged(self, flows: Sequence[Mapping[str, Any]]) -> list[str]:
        """Returns the names of the flows whose numbers are compared with the rules, from a run's summary."""
        names = self.contending([str(flow["flow"]) for flow in flows])
        if self.begin_between is None:
            return names
        begin, end = (time / 1e9 for time in self.begin_between)
        starts = {str(flow["flow"]): float(flow["start_s"]) for flow in flows}
        return [name for name in names if begin <= starts[name] < end]

    def contending(self, flows: Sequence[str]) -> list[str]:
        """Returns the flows of a run that take the controller: alike ones are numbered, some have a way back."""
        names = "|".join(re.escape(name) for name in self.contenders)
        matching = [flow for flow in flows if re.fullmatch(f"({names}){_ONE_OF_SEVERAL}", flow)]
        return [flow for flow in matching if flow not in self.others]


def expand(table: CaseTable, base: Path, traces: Path | None) -> Iterator[Case]:
    """Returns the cases of a table: each combination of the values that it varies, with each window.

    Args:
        table: The table.
        base: The folder of its scenario files.
        traces: The folder of recorded networks, if there is one.

    Raises:
        InputError: when scenario, keys, values or contenders do not fit.
    """
    if table.not_run:
        yield Case(table.name, table.title, table.source, None, not_run=table.not_run)
        return
    if table.scenario is None:
        raise InputError("the case has no scenario; expected the name of one, or not_run with the reason")
    scenario = _load(table.scenario, base)
    if table.windows is not None and traces is None:
        yield Case(
            table.name, table.title, table.source, None, not_run="no folder of recordings is given (--traces FOLDER)"
        )
        return
    choices = windows.spread(traces, table.windows) if table.windows is not None and traces is not None else [None]
    for values in itertools.product(*table.vary.values()):
        varied = dict(zip(table.vary, values, strict=True))
        for window in choices:
            changes = {**table.set, **varied}
            parts = [table.name, *(f"{_short(key)}={_plain(value)}" for key, value in varied.items())]
            title = table.title
            if window is not None:
                changes |= {f"links.{scenario.links[0].name}.capacity": window.capacity, "duration": window.length}
                parts.append(window.name)
                title = title or window.title
            name = ",".join(parts)
            changed = scenario.with_changes({**changes, "name": re.sub(r"[^A-Za-z0-9_.+-]+", "-", name)[:64]})
            missing = _missing(changed)
            between = _between(changed, table)
            runnable = None if missing else changed
            yield Case(name, title, table.source, runnable, _contenders(changed, table), missing, between)


def _load(name: str, base: Path) -> Scenario:
    # a scenario in the folder of a shipped suite has the same name for every suite
    for folder in (base, _shipped.SUITES):
        if (folder / name).is_file():
            return Scenario.load(folder / name)
    return Scenario.load(name)


def _contenders(scenario: Scenario, table: CaseTable) -> tuple[str, ...]:
    media = [flow.name for flow in scenario.flows if flow.media is not None]
    for name in table.contenders:
        if name not in media:
            hint = did_you_mean(name, media) or f"; available: {', '.join(media) or 'none'}"
            raise InputError(f"contenders: found {name}; expected media flows of {scenario.name}{hint}")
    if not media:
        raise InputError(f"{scenario.name} has no media flow that could take a controller")
    return tuple(table.contenders or media)


def _between(scenario: Scenario, table: CaseTable) -> tuple[int, int] | None:
    if table.begin_between is None:
        return None
    begin, end = table.begin_between
    if not begin < end <= scenario.duration:
        right = f"expected two times within the {scenario.duration} of {scenario.name}, the earlier first"
        raise InputError(f'begin_between: found "{begin}" to "{end}"; {right}')
    return int(begin), int(end)


def _missing(scenario: Scenario) -> str:
    """Returns the reason why it cannot be run here: a missing recording."""
    for link in scenario.links:
        for capacity in (link.capacity, getattr(link.back, "capacity", None)):
            if isinstance(capacity, TraceCapacity) and not (scenario.base / capacity.trace).is_file():
                return f"the recording {Path(capacity.trace).name} does not exist"
    return ""


def _short(key: str) -> str:
    """A key without the table and the entry that it is in: `links.x.queue.time` is `queue.time`."""
    parts = key.split(".")
    return ".".join(parts[2:]) or key


def _plain(value: Any) -> str:
    """A value as a part of a name: of a table the name of its kind, or its values.

    >>> _plain("50ms"), _plain(0.5), _plain({"rfc8868": {"std": "5ms"}}), _plain({"mean": "1%", "burst": 5})
    ('50ms', '0.5', 'rfc8868', '1%/5')
    """
    if isinstance(value, dict):
        return next(iter(value)) if len(value) == 1 else "/".join(map(_plain, value.values()))
    return value if isinstance(value, str) else toml.inline(value)


def check_controllers(controllers: Mapping[str, str | Mapping[str, Any]], *, simulated: bool = False) -> None:
    """Checks that these controllers exist.

    Args:
        controllers: As scenarios name them, by what tables call them.
        simulated: Whether real programs, which take part by the wall clock, are refused.

    Raises:
        InputError: names each one that does not exist.
    """
    refusals = Refusals()
    for label, choice in controllers.items():
        with refusals.of_input():
            if registry.is_program(label) and not simulated:
                from tidegate.shell import Contender

                Contender.of(label)
            elif label != oracle.NAME:
                registry.choose(choice if isinstance(choice, str) else str(choice["name"]), Path())
    refusals.raise_all()
