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
    """A call whose rate an agent sets, in a scenario's world.

    An episode is the flow's life in one run of a scenario, from its start to its end; a step is one interval. The run
    is one of the engine, with all that the scenario has: media, links, cross traffic, other controllers.

    Args:
        scenario: A scenario, the path or name of one, or a list, from which each reset draws.
        flow: The call whose rate is set, by name; the [subject][tidegate.scenario.subject.place] by default.
        interval: How long a step is.
        action: What an action, a number from -1 to 1, means: `rate`, by its logarithm from the least to the largest, or
            `change`, a factor on the rate. What is beyond -1 and 1 counts as these.
        rate: The least and the largest rate; by default those of the flow.
        factor: The change of the rate at 1; at -1 it is one over that.
        history: How many intervals an observation has.
        reward: A function of a step's info; by default the share of the capacity that was received, less a sixth of
            log2(1 + d / 100 ms) for the delay d of queues (in the network and at the sender), less the loss.

    Attributes:
        terms: What a policy has to know of the environment; see [Terms][tidegate.control.agent.Terms].

    Raises:
        InputError: when a scenario, the flow or a setting is not usable.

    >>> env = CallEnv("home-broadband", rate=("100kbps", "2.5Mbps"))
    >>> _, info = env.reset(seed=7, options={"seed": 3})
    >>> seen, reward, terminated, truncated, info = env.step([env.terms.to_action("1Mbps")])
    >>> env.observation_space.contains(seen), round(info["rate_bps"])
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
        # what type checkers know of boxes is not what they know of arrays
        self.action_space = cast("Any", Box(-1.0, 1.0, (1,), np.float32))
        self.observation_space = cast("Any", observation_space(wanted.terms))
        self.source = Source(wanted)
        self._reward = reward
        self._episode: Episode | None = None
        self._core: _core.Episode | None = None

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begins another episode.

        Args:
            seed: Of what draws scenarios and the seeds of their worlds from now on.
            options: `scenario`, a number or a name, and `seed`, of the world: instead of drawing them.

        Returns:
            The observation, in which nothing has happened, and `scenario`, `seed` and `flow` of the episode.

        Raises:
            InputError: when the scenario does not fit the environment, or an option is not known.
        """
        super().reset(seed=seed)
        asked = dict(options or {})
        number = int(self.np_random.integers(len(self.source.names)))
        world = int(self.np_random.integers(2**63))
        if "scenario" in asked:
            number = self.source.number(asked.pop("scenario"))
        if "seed" in asked:
            world = asked.pop("seed")
            if type(world) is not int:
                raise InputError(f"options: seed: found {world!r}; expected a whole number")
        if asked:
            raise InputError(f"options: found {', '.join(map(str, asked))}; there are scenario and seed")
        self._episode = episode = self.source.episode(number, world)
        self._core = episode.core
        about = {"scenario": episode.scenario.name, "seed": episode.seed, "flow": episode.flow}
        return episode.core.observation(), about

    def step(self, action: Action) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """One interval at the rate that the action asks for.

        Returns:
            The observation; the reward; whether the sender has stopped before its time (a circuit breaker, a limit of
            packets); whether the flow's time is over; and what the interval came to, in units: what was observed, and
            the truth, which an agent cannot know (`capacity_bps`, not a number where none is known, and what follows
            it).

        Raises:
            InputError: when the action is none, or there is no episode under way.
            RunError: when a component of the world fails.
        """
        if self._core is None:
            raise InputError("step: no episode is under way; call reset()")
        value = number_of(action)
        with step_errors():
            seen, reward, over, stopped, info = self._core.step(value)
        if stopped:
            self._core = None
        if self._reward is not None:
            reward = float(self._reward(info))
        elif reward is None:
            reward = 0.0  # the link is there no longer, or has no limit for a time
        return seen, reward, stopped, over and not stopped, info

    @property
    def core(self) -> _core.Episode | None:
        """The engine's part of the episode that is under way."""
        return self._core

    def finish(self) -> Run:
        """Ends the episode where it is, and gives it as a [Run][tidegate.runs.Run], as `tidegate run` does.

        Raises:
            InputError: when there is none.
        """
        episode, self._episode, self._core = self._episode, None, None
        if episode is None:
            raise InputError("finish: no episode is under way; call reset()")
        return episode.finish()

    def close(self) -> None:
        """Forgets the episode."""
        self._episode = self._core = None


def observation_space(terms: Terms) -> Box:
    """The ranges of the features, for each interval of the history."""
    low, high = ([[getattr(one, end) for one in FEATURES]] * terms.history for end in ("low", "high"))
    return Box(np.array(low, np.float32), np.array(high, np.float32), dtype=np.float32)


def number_of(action: object) -> float:
    """The number that an action is.

    Raises:
        InputError: when it is not one number.
    """
    array = action if type(action) is np.ndarray else _array(action)
    if array.size != 1 or array.ndim > 1:
        raise InputError(
            f"step: found an action of shape {array.shape}; expected one number from -1 to 1, of shape (1,)"
        )
    value = float(array.item())
    if value != value:  # noqa: PLR0124 - the quickest test for what is not a number
        raise InputError("step: found an action that is not a number (nan); expected one from -1 to 1")
    return value


def _array(action: object) -> NDArray[Any]:
    try:
        return np.asarray(action, np.float64)
    except (TypeError, ValueError):
        raise InputError(
            f"step: found the action {action!r}; expected one number from -1 to 1, of shape (1,)"
        ) from None
