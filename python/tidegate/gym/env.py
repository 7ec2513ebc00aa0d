"""The environment of one call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import gymnasium
import numpy as np
from gymnasium.spaces import Box
from numpy.typing import NDArray

from tidegate import _core
from tidegate.control.agent import ActionKind, Terms
from tidegate.errors import InputError
from tidegate.gym.episodes import FEATURES, AnyScenario, Episode, Reward, Source, settings, step_errors
from tidegate.runs import Run

Observation = NDArray[np.float32]
Action = NDArray[np.float32] | Sequence[float] | float


class CallEnv(gymnasium.Env[Observation, Action]):
    """A call in a scenario's world; an agent sets its rate.

    An episode is the flow's life in one run of a scenario, from its start to its end; a step is one interval. The run
    is one of the engine, with all that the scenario has: media, links, cross traffic, other controllers.

    Args:
        scenario: A scenario, the path or name of one, or a list, from which each reset draws.
        flow: Name of the call whose rate is set; by default the [subject][tidegate.scenario.subject.place].
        interval: Duration of a step.
        action: Meaning of an action, a number from -1 to 1: `rate` is the rate on a logarithmic scale from the minimum
            to the maximum, `change` is a factor on the rate. Numbers beyond -1 and 1 are clipped.
        rate: Minimum and maximum rate; by default those of the flow.
        factor: Factor on the rate for the action 1; for -1 it is the reciprocal.
        history: Number of intervals in an observation.
        reward: A function of a step's info; by default the share of the capacity that was received, less a sixth of
            log2(1 + d / 100 ms) for the delay d of queues (in the network and at the sender), less the loss.

    Attributes:
        terms: Terms that a policy shares with the environment; see [Terms][tidegate.control.agent.Terms].

    Raises:
        InputError: when a scenario, the flow or a setting is not usable.

    >>> env = CallEnv("home-broadband", rate=("100kbps", "2.5Mbps"))
    >>> _, info = env.reset(seed=7, options={"seed": 3})
    >>> observation, reward, terminated, truncated, info = env.step([env.terms.to_action("1Mbps")])
    >>> env.observation_space.contains(observation), round(info["rate_bps"])
    (True, 1000000)
    >>> env.finish().seed
    3
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 - Gymnasium's own

    def __init__(
        self,
        scenario: AnyScenario | Sequence[AnyScenario] = (),
        *,
        flow: str | None = None,
        interval: str = "100ms",
        action: ActionKind = "rate",
        rate: tuple[str | int, str | int] | None = None,
        factor: float = 1.5,
        history: int = 5,
        reward: Reward | None = None,
        render_mode: None = None,
    ) -> None:
        if render_mode is not None:
            raise InputError(
                f"render_mode: found {render_mode!r}; expected None: finish() gives a run, which has figures"
            )
        wanted = settings(
            scenario,
            flow=flow,
            interval=interval,
            action=action,
            rate=rate,
            factor=factor,
            history=history,
            reward=reward,
        )
        self.terms: Terms = wanted.terms
        # type checkers do not accept a Box as a space of arrays
        self.action_space = cast("Any", Box(-1.0, 1.0, (1,), np.float32))
        self.observation_space = cast("Any", observation_space(wanted.terms))
        self.source = Source(wanted)
        self._reward = reward
        self._episode: Episode | None = None
        self._core: _core.Episode | None = None

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begins a new episode.

        Args:
            seed: Seed of the generator that draws scenarios and the seeds of their worlds from now on.
            options: `scenario`, by number or name, and `seed` of the world, to choose them instead of drawing them.

        Returns:
            The first observation, which is all zeros, and `scenario`, `seed` and `flow` of the episode.

        Raises:
            InputError: when the scenario does not fit the environment, or there is no such option.
        """
        super().reset(seed=seed)
        remaining = dict(options or {})
        number = int(self.np_random.integers(len(self.source.names)))
        world = int(self.np_random.integers(2**63))
        if "scenario" in remaining:
            number = self.source.number(remaining.pop("scenario"))
        if "seed" in remaining:
            world = remaining.pop("seed")
            if type(world) is not int:
                raise InputError(f"options: seed: found {world!r}; expected a whole number")
        if remaining:
            raise InputError(f"options: found {', '.join(map(str, remaining))}; available: scenario and seed")
        self._episode = episode = self.source.episode(number, world)
        self._core = episode.core
        info = {"scenario": episode.scenario.name, "seed": episode.seed, "flow": episode.flow}
        return episode.core.observation(), info

    def step(self, action: Action) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Runs one interval at the rate of the action.

        Returns:
            The observation; the reward; whether the sender has stopped before its time (a circuit breaker, a limit of
            packets); whether the flow's time is over; and the numbers of the interval in their units: the observed
            ones, then the truth, which an agent cannot know (from `capacity_bps` on, which is NaN where the capacity is
            unknown).

        Raises:
            InputError: when the action is invalid, or no episode is under way.
            RunError: when a component of the world fails.
        """
        if self._core is None:
            raise InputError("step: no episode is under way; call reset()")
        value = number_of(action)
        with step_errors():
            observation, reward, over, stopped, info = self._core.step(value)
        if stopped:
            self._core = None
        if self._reward is not None:
            reward = float(self._reward(info))
        elif reward is None:
            reward = 0.0  # the link is gone, or has no limit for a time
        return observation, reward, stopped, over and not stopped, info

    @property
    def core(self) -> _core.Episode | None:
        """The engine's part of the episode that is under way."""
        return self._core

    def finish(self) -> Run:
        """Ends the episode at its current time, and returns its [Run][tidegate.runs.Run], like that of `tidegate run`.

        Raises:
            InputError: when no episode is under way.
        """
        episode, self._episode, self._core = self._episode, None, None
        if episode is None:
            raise InputError("finish: no episode is under way; call reset()")
        return episode.finish()

    def close(self) -> None:
        """Drops the episode."""
        self._episode = self._core = None


def observation_space(terms: Terms) -> Box:
    """The ranges of the features, for each interval of the history."""
    low, high = ([[getattr(feature, end) for feature in FEATURES]] * terms.history for end in ("low", "high"))
    return Box(np.array(low, np.float32), np.array(high, np.float32), dtype=np.float32)


def number_of(action: object) -> float:
    """Converts an action to a number.

    Raises:
        InputError: when it is not a single number.
    """
    array = action if type(action) is np.ndarray else _array(action)
    if array.size != 1 or array.ndim > 1:
        raise InputError(
            f"step: found an action of shape {array.shape}; expected one number from -1 to 1, of shape (1,)"
        )
    value = float(array.item())
    if value != value:  # noqa: PLR0124 - the fastest test for NaN
        raise InputError("step: found an action that is not a number (nan); expected one from -1 to 1")
    return value


def _array(action: object) -> NDArray[Any]:
    try:
        return np.asarray(action, np.float64)
    except (TypeError, ValueError):
        raise InputError(
            f"step: found the action {action!r}; expected one number from -1 to 1, of shape (1,)"
        ) from None
