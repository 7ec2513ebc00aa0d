"""From scenarios to episodes of the engine: whose rate is set, within which bounds, and in which world."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from tidegate import _core
from tidegate.control.agent import ActionKind, Terms
from tidegate.errors import InputError, RunError, did_you_mean
from tidegate.runs import Run, engine_errors, run_of
from tidegate.scenario import Media, Scenario, memory, subject
from tidegate.scenario.lower import Lowered, RunInput
from tidegate.scenario.variants import anchored
from tidegate.suite.cases import expand
from tidegate.suite.model import CaseTable
from tidegate.suite.suite import Suite

AnyScenario = Scenario | str | Path
Reward = Callable[[Mapping[str, float]], float]


class Feature(NamedTuple):
    """One number of an observation."""

    name: str
    unit: str
    low: float
    high: float
    doc: str


FEATURES = tuple(Feature(*one) for one in _core.FEATURES)
"""The numbers of one interval, in order: name, unit of what is scaled, range of the scaled value, how it is scaled."""


@dataclass(frozen=True)
class Settings:
    """What an environment was asked for."""

    scenarios: tuple[Scenario, ...]
    flow: str | None
    terms: Terms
    default_reward: bool


def settings(
    scenario: AnyScenario | Sequence[AnyScenario],
    *,
    flow: str | None = None,
    interval: str = "100ms",
    action: ActionKind = "rate",
    rate: tuple[str | int, str | int] | None = None,
    factor: float = 1.5,
    history: int = 5,
    reward: Reward | None = None,
) -> Settings:
    """What an environment is asked for, checked; see [CallEnv][tidegate.gym.CallEnv].

    Raises:
        InputError: when a scenario, the flow or a setting is not usable.
    """
    given: object = [scenario] if isinstance(scenario, Scenario | str | Path) else scenario
    listed: list[Any] = list(given) if isinstance(given, list | tuple) else [given]
    for one in listed:
        if not isinstance(one, Scenario | str | Path):
            raise InputError(
                f"scenario: found {one!r}; expected a scenario, the name or file of one, or a list of them"
            )
    if not listed:
        raise InputError('scenario: found none; expected one, or a list, such as scenario="home-broadband"')
    if reward is not None and not callable(reward):
        raise InputError(f"reward: found {reward!r}; expected a function of a step's info, or None for the default")
    found = tuple(_bare(one if isinstance(one, Scenario) else Scenario.load(one), flow) for one in listed)
    terms = Terms(interval, action, rate if rate is not None else _bounds(found, flow), factor, history)
    return Settings(found, flow, terms, reward is None)


def _place(scenario: Scenario, flow: str | None) -> int:
    """The position of the flow whose rate is set."""
    if flow is None:
        return subject.of_scenario(scenario, "controller")
    for at, one in enumerate(scenario.flows):
        if one.name == flow and one.media is not None:
            return at
    calls = [one.name for one in scenario.flows if one.media is not None]
    hint = did_you_mean(flow, calls) or f"; there are {', '.join(calls) or 'none'}"
    raise InputError(f"{scenario.name}: flow: found {flow!r}; expected one with media{hint}")


def _bare(scenario: Scenario, flow: str | None) -> Scenario:
    """The scenario without a warm-up, which rewards do not know, and without the controller that is replaced."""
    at = _place(scenario, flow)
    data = scenario.to_dict()
    data["warmup"], data["record"] = "0s", "summary"
    data["flows"][at]["media"]["controller"] = "gcc:libwebrtc-v1"
    return Scenario.from_dict(data, scenario.base)


def _bounds(scenarios: Sequence[Scenario], flow: str | None) -> tuple[int, int]:
    """The rates of a call that the scenarios agree on."""
    found: dict[tuple[int, int], tuple[str, Media]] = {}
    for scenario in scenarios:
        media = scenario.flows[_place(scenario, flow)].media
        assert media is not None  # noqa: S101
        found.setdefault((int(media.least_rate), int(media.largest_rate)), (scenario.name, media))
    if len(found) > 1:
        said = [f"{name} has {media.least_rate} to {media.largest_rate}" for name, media in list(found.values())[:2]]
        what = f"scenarios with other rates do not fit into one space ({'; '.join(said)})"
        raise InputError(f'rate: {what}; give one for all: rate=("100kbps", "5Mbps")')
    return next(iter(found))


class Source:
    """Makes the episodes of an environment; what a scenario needs is read once."""

    def __init__(self, wanted: Settings) -> None:
        self.wanted = wanted
        self._lowered: dict[int, Lowered] = {}

    @property
    def names(self) -> list[str]:
        """The scenarios' names."""
        return [one.name for one in self.wanted.scenarios]

    def number(self, which: object) -> int:
        """The number of a scenario, by its number or name.

        Raises:
            InputError: when there is none.
        """
        names = self.names
        if isinstance(which, str) and which in names:
            return names.index(which)
        if isinstance(which, int) and not isinstance(which, bool) and 0 <= which < len(names):
            return which
        known = f"a number from 0 to {len(names) - 1}, or one of {', '.join(names[:10])}"
        raise InputError(f"options: scenario: found {which!r}; expected {known}")

    def episode(self, number: int, seed: int, controller: str | None = None) -> Episode:
        """A world at the beginning of its flow, whose rate is set, or which has a controller and is watched.

        Raises:
            InputError: when the scenario does not fit the environment.
        """
        scenario = self.wanted.scenarios[number]
        if controller is not None:
            key = f"flows.{scenario.flows[_place(scenario, self.wanted.flow)].name}.media.controller"
            scenario = scenario.with_changes({key: anchored(controller)})
            made = Lowered(scenario).for_run(seed=seed)
        else:
            if number not in self._lowered:
                self._lowered[number] = Lowered(scenario)
            made = self._lowered[number].for_run(seed=seed)
        made, flow, start = self._with_agent(scenario, made, watched=controller is not None)
        memory.check(made)
        needs = made.inputs
        with engine_errors(scenario):
            core = _core.Episode(json.dumps(made.ir), flow, self.wanted.terms.core, start, needs.traces, needs.python)
        if self.wanted.default_reward and not core.knows_capacity:
            what = f"{scenario.name}: no link on the way of {flow} has a known capacity, of which the default reward"
            raise InputError(f"{what} is a share; give reward=, a function of a step's info")
        return Episode(core, scenario, made, flow)

    def _with_agent(self, scenario: Scenario, made: RunInput, *, watched: bool) -> tuple[RunInput, str, int]:
        """What the engine takes, with an agent in the flow; the flow's name there, and where its rate begins."""
        asked = scenario.flows[_place(scenario, self.wanted.flow)].name
        flows: list[dict[str, Any]] = list(made.ir["flows"])
        names = [flow["name"] for flow in flows]
        # several flows alike are numbered
        name = asked if asked in names else f"{asked}-1"
        at = names.index(name)
        media: dict[str, Any] = dict(flows[at]["kind"]["media"])
        if watched:
            return made, name, int(media["start_rate"])
        if media["feedback"]["format"] == "none":
            right = 'expected "auto", "twcc" or "ccfb", without which there is nothing to observe'
            raise InputError(f'{scenario.name}: flows.{asked}.media.feedback.format: found "none"; {right}')
        low, high = self.wanted.terms.bounds
        start = min(max(int(media["start_rate"]), low), high)
        # RTCP has its share of what the scenario says, however far the agent may go
        feedback = {**media["feedback"], "bandwidth": media["feedback"].get("bandwidth") or media["max_rate"]}
        media.update(min_rate=low, max_rate=high, start_rate=start, feedback=feedback)
        media["controller"] = {"name": "agent", "preset": "", "settings": {}, "python": False}
        flows[at] = {**flows[at], "kind": {"media": media}}
        return replace(made, ir={**made.ir, "flows": flows}), name, start


@contextmanager
def step_errors() -> Iterator[None]:
    """Turns errors of the engine's step into those that environments raise.

    Raises:
        InputError: when there is no step that it could make.
        RunError: when a component of the world fails; `__cause__` is the exception of a controller in Python.
    """
    try:
        yield
    except _core.RunError as error:
        raise RunError(str(error)) from error.__cause__
    except ValueError as error:
        raise InputError(f"step: {error}") from None


@dataclass
class Episode:
    """An episode under way, with what it was made from."""

    core: _core.Episode
    scenario: Scenario
    made: RunInput
    flow: str

    @property
    def seed(self) -> int:
        """The world's seed."""
        return int(self.made.ir["seed"])

    def finish(self) -> Run:
        """Ends it where it is, and gives its run."""
        with engine_errors(self.scenario):
            return run_of(self.scenario, self.made, self.core.finish()).under("agent")


def rewards_of(
    controller: str,
    scenario: AnyScenario,
    *,
    seed: int | None = None,
    flow: str | None = None,
    interval: str = "100ms",
    rate: tuple[str | int, str | int] | None = None,
    reward: Reward | None = None,
) -> list[float]:
    """What a controller would have been paid, step by step: to compare agents with others.

    Args:
        controller: A controller as everywhere: `gcc`, `fixed:1Mbps`, `python:mine.py:policy`.
        scenario: Where.
        seed: Of the world, instead of the scenario's.
        flow: As for [CallEnv][tidegate.gym.CallEnv].
        interval: Likewise.
        rate: Of the environment that it is compared with; the default reward knows the least rate.
        reward: Likewise; of its info only the truth says something.

    Raises:
        InputError: when something does not fit.

    >>> len(rewards_of("gcc", "home-broadband", seed=1))
    600
    """
    source = Source(settings(scenario, flow=flow, interval=interval, rate=rate, reward=reward))
    episode = source.episode(0, source.wanted.scenarios[0].seed if seed is None else seed, controller)
    found, over = [], False
    with engine_errors(episode.scenario):
        while not over:
            _, paid, over, _, info = episode.core.step(0.0)
            found.append(float(reward(info)) if reward is not None else paid or 0.0)
    return found


def cases_of(suite: str | Path | Suite, *, traces: str | Path | None = None) -> list[Scenario]:
    """The scenarios of a suite's cases, to draw episodes from.

    Args:
        suite: A suite, its file, or the name of one that tidegate ships.
        traces: A folder of recorded networks, for suites that take windows of them.

    Raises:
        InputError: when the suite is not usable, or none of its cases can be run here.

    >>> [one.name for one in cases_of("smoke")]
    ['5.1', '5.4', '5.6', 'fq-codel', 'loss', 'cell']
    """
    loaded = suite if isinstance(suite, Suite) else Suite.load(suite, traces=traces)
    found = [case.scenario for case in loaded.cases if case.scenario is not None]
    if not found:
        raise InputError(f"{loaded.name}: none of its cases can be run here{'' if traces else '; give traces=FOLDER'}")
    return found


def windows_of(
    folder: str | Path,
    *,
    count: int = 40,
    length: str = "60s",
    between: tuple[str, str] = ("150kbps", "20Mbps"),
    scenario: str | Path = "lte-generated",
    changes: Mapping[str, Any] | None = None,
) -> list[Scenario]:
    """Scenarios whose first link plays windows of recorded networks, spread over a folder by a rule.

    Args:
        folder: The recordings; see [tidegate.suite.windows][tidegate.suite.windows] for the rule.
        count: How many.
        length: How long each is.
        between: Least and greatest mean capacity.
        scenario: What else is in them.
        changes: Values by dotted key that replace those of the scenario.

    Raises:
        InputError: when there is no such folder or scenario, or nothing in the folder serves.
    """
    table = CaseTable.model_validate(
        {
            "name": "window",
            "scenario": str(scenario),
            "set": dict(changes or {}),
            "windows": {"count": count, "length": length, "between": list(between)},
        }
    )
    return [case.scenario for case in expand(table, Path(), Path(folder)) if case.scenario is not None]
