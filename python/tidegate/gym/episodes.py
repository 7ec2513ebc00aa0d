"""Episodes of the engine, made from scenarios, with the flow whose rate is set, and its bounds."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from tidegate import _core
from tidegate.control.agent import ActionKind, Terms
from tidegate.control.contenders import anchored
from tidegate.errors import InputError, RunError, did_you_mean
from tidegate.runs import Run, run_of
from tidegate.scenario import Media, Scenario, memory, subject
from tidegate.scenario.assembling import engine_errors
from tidegate.scenario.lower import Lowered, RunInput
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


FEATURES = tuple(Feature(*row) for row in _core.FEATURES)
"""The numbers of one interval, in order: name, unit before scaling, range after scaling, and the scaling."""


@dataclass(frozen=True)
class Settings:
    """Settings of an environment."""

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
    """Checks the settings of an environment; see [CallEnv][tidegate.gym.CallEnv].

    Raises:
        InputError: when a scenario, the flow or a setting is not usable.
    """
    sequence: object = [scenario] if isinstance(scenario, Scenario | str | Path) else scenario
    listed: list[Any] = list(sequence) if isinstance(sequence, list | tuple) else [sequence]
    for source in listed:
        if not isinstance(source, Scenario | str | Path):
            raise InputError(
                f"scenario: found {source!r}; expected a scenario, the name or file of one, or a list of them"
            )
    if not listed:
        raise InputError('scenario: found none; expected one, or a list, such as scenario="home-broadband"')
    if reward is not None and not callable(reward):
        raise InputError(f"reward: found {reward!r}; expected a function of a step's info, or None for the default")
    scenarios = tuple(
        _stripped(source if isinstance(source, Scenario) else Scenario.load(source), flow) for source in listed
    )
    terms = Terms(interval, action, rate if rate is not None else _bounds(scenarios, flow), factor, history)
    return Settings(scenarios, flow, terms, reward is None)


def _flow_position(scenario: Scenario, flow: str | None) -> int:
    """The position of the flow whose rate is set."""
    if flow is None:
        return subject.of_scenario(scenario, "controller")
    for position, candidate in enumerate(scenario.flows):
        if candidate.name == flow and candidate.media is not None:
            return position
    calls = [candidate.name for candidate in scenario.flows if candidate.media is not None]
    hint = did_you_mean(flow, calls) or f"; available: {', '.join(calls) or 'none'}"
    raise InputError(f"{scenario.name}: flow: found {flow!r}; expected a flow with media{hint}")


def _stripped(scenario: Scenario, flow: str | None) -> Scenario:
    """The scenario without a warm-up, which rewards do not have, and without the controller that the agent replaces."""
    position = _flow_position(scenario, flow)
    data = scenario.to_dict()
    data["warmup"], data["record"] = "0s", "summary"
    data["flows"][position]["media"]["controller"] = "gcc:libwebrtc-v1"
    return Scenario.from_dict(data, scenario.base)


def _bounds(scenarios: Sequence[Scenario], flow: str | None) -> tuple[int, int]:
    """Minimum and maximum rate of the call, which are the same in all scenarios."""
    by_rates: dict[tuple[int, int], tuple[str, Media]] = {}
    for scenario in scenarios:
        media = scenario.flows[_flow_position(scenario, flow)].media
        assert media is not None  # noqa: S101
        by_rates.setdefault((int(media.least_rate), int(media.largest_rate)), (scenario.name, media))
    if len(by_rates) > 1:
        examples = [
            f"{name} has {media.least_rate} to {media.largest_rate}" for name, media in list(by_rates.values())[:2]
        ]
        reason = f"scenarios with different rates do not fit into one space ({'; '.join(examples)})"
        raise InputError(f'rate: {reason}; give the same for all: rate=("100kbps", "5Mbps")')
    return next(iter(by_rates))


class Source:
    """Maker of an environment's episodes; it reads the files of each scenario once."""

    def __init__(self, wanted: Settings) -> None:
        self.wanted = wanted
        self._lowered: dict[int, Lowered] = {}

    @property
    def names(self) -> list[str]:
        """Names of the scenarios."""
        return [scenario.name for scenario in self.wanted.scenarios]

    def number(self, which: object) -> int:
        """Finds the number of a scenario by its number or name.

        Raises:
            InputError: when there is no such scenario.
        """
        names = self.names
        if isinstance(which, str) and which in names:
            return names.index(which)
        if isinstance(which, int) and not isinstance(which, bool) and 0 <= which < len(names):
            return which
        expected = f"a number from 0 to {len(names) - 1}, or one of {', '.join(names[:10])}"
        raise InputError(f"options: scenario: found {which!r}; expected {expected}")

    def episode(self, number: int, seed: int, controller: str | None = None) -> Episode:
        """Makes a world at the beginning of its flow; an agent sets the flow's rate, or a `controller` that is watched.

        Raises:
            InputError: when the scenario does not fit the environment.
        """
        scenario = self.wanted.scenarios[number]
        if controller is not None:
            key = f"flows.{scenario.flows[_flow_position(scenario, self.wanted.flow)].name}.media.controller"
            scenario = scenario.with_changes({key: anchored(controller)})
            run_input = Lowered(scenario).for_run(seed=seed)
        else:
            if number not in self._lowered:
                self._lowered[number] = Lowered(scenario)
            run_input = self._lowered[number].for_run(seed=seed)
        run_input, flow, start = self._with_agent(scenario, run_input, watched=controller is not None)
        memory.check(run_input)
        needs = run_input.inputs
        with engine_errors(scenario):
            core = _core.Episode(
                json.dumps(run_input.ir), flow, self.wanted.terms.core, start, needs.traces, needs.python
            )
        if self.wanted.default_reward and not core.knows_capacity:
            reason = f"{scenario.name}: no link on the route of {flow} has a known capacity, and the default reward"
            raise InputError(f"{reason} is a share of this capacity; give reward=, a function of a step's info")
        return Episode(core, scenario, run_input, flow)

    def _with_agent(self, scenario: Scenario, run_input: RunInput, *, watched: bool) -> tuple[RunInput, str, int]:
        """The engine's input with an agent in the flow, the flow's name there, and its initial rate."""
        flow_name = scenario.flows[_flow_position(scenario, self.wanted.flow)].name
        flows: list[dict[str, Any]] = list(run_input.ir["flows"])
        names = [flow["name"] for flow in flows]
        # the engine numbers flows that are repeated
        name = flow_name if flow_name in names else f"{flow_name}-1"
        position = names.index(name)
        media: dict[str, Any] = dict(flows[position]["kind"]["media"])
        if watched:
            return run_input, name, int(media["start_rate"])
        if media["feedback"]["format"] == "none":
            expected = 'expected "auto", "twcc" or "ccfb", without which there is nothing to observe'
            raise InputError(f'{scenario.name}: flows.{flow_name}.media.feedback.format: found "none"; {expected}')
        low, high = self.wanted.terms.bounds
        start = min(max(int(media["start_rate"]), low), high)
        # RTCP has its share of the scenario's rate, not of the agent's maximum
        feedback = {**media["feedback"], "bandwidth": media["feedback"].get("bandwidth") or media["max_rate"]}
        media.update(min_rate=low, max_rate=high, start_rate=start, feedback=feedback)
        media["controller"] = {"name": "agent", "preset": "", "settings": {}, "python": False}
        flows[position] = {**flows[position], "kind": {"media": media}}
        return replace(run_input, ir={**run_input.ir, "flows": flows}), name, start


@contextmanager
def step_errors() -> Iterator[None]:
    """Turns errors of the engine's step into those that environments raise.

    Raises:
        InputError: when no step is possible.
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
    """An episode under way, with its scenario and input."""

    core: _core.Episode
    scenario: Scenario
    run_input: RunInput
    flow: str

    @property
    def seed(self) -> int:
        """Seed of the world."""
        return int(self.run_input.ir["seed"])

    def finish(self) -> Run:
        """Ends the episode at its current time, and returns its run."""
        with engine_errors(self.scenario):
            return run_of(self.scenario, self.run_input, self.core.finish()).under("agent")


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
    """Computes the rewards of a controller, step by step, to compare agents with it.

    Args:
        controller: A controller as elsewhere: `gcc`, `fixed:1Mbps`, `python:mine.py:policy`.
        scenario: The scenario.
        seed: Seed of the world; by default the scenario's.
        flow: As for [CallEnv][tidegate.gym.CallEnv].
        interval: As for `CallEnv`.
        rate: Rates of the environment to compare with; the default reward depends on the minimum rate.
        reward: As for `CallEnv`; only the truth in its info has meaning here.

    Raises:
        InputError: when something does not fit.

    >>> len(rewards_of("gcc", "home-broadband", seed=1))
    600
    """
    source = Source(settings(scenario, flow=flow, interval=interval, rate=rate, reward=reward))
    episode = source.episode(0, source.wanted.scenarios[0].seed if seed is None else seed, controller)
    rewards, over = [], False
    with engine_errors(episode.scenario):
        while not over:
            _, paid, over, _, info = episode.core.step(0.0)
            rewards.append(float(reward(info)) if reward is not None else paid or 0.0)
    return rewards


def cases_of(suite: str | Path | Suite, *, traces: str | Path | None = None) -> list[Scenario]:
    """Loads the scenarios of a suite's cases, to draw episodes from.

    Args:
        suite: A suite, its file, or the name of one that tidegate ships.
        traces: A folder of recorded networks, for suites that take windows of them.

    Raises:
        InputError: when the suite is not usable, or none of its cases can be run here.

    >>> [scenario.name for scenario in cases_of("smoke")]
    ['5.1', '5.4', '5.6', 'fq-codel', 'loss', 'cell']
    """
    loaded = suite if isinstance(suite, Suite) else Suite.load(suite, traces=traces)
    scenarios = [case.scenario for case in loaded.cases if case.scenario is not None]
    if not scenarios:
        raise InputError(f"{loaded.name}: none of its cases can be run here{'' if traces else '; give traces=FOLDER'}")
    return scenarios


def windows_of(
    folder: str | Path,
    *,
    count: int = 40,
    length: str = "60s",
    between: tuple[str, str] = ("150kbps", "20Mbps"),
    scenario: str | Path = "lte-generated",
    changes: Mapping[str, Any] | None = None,
) -> list[Scenario]:
    """Makes scenarios whose first link plays windows of recorded networks, spread over a folder by a rule.

    Args:
        folder: The recordings; see [tidegate.suite.windows][tidegate.suite.windows] for the rule.
        count: Number of windows.
        length: Duration of each window.
        between: Minimum and maximum mean capacity of a window.
        scenario: The scenario in which they replace the first link's capacity.
        changes: Values by dotted key that replace those of the scenario.

    Raises:
        InputError: when there is no such folder or scenario, or the folder has no usable recording.
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
