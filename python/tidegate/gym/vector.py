"""Many calls at once, in threads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from tidegate import _core
from tidegate.errors import InputError
from tidegate.gym.env import CallEnv
from tidegate.gym.episodes import AnyScenario, step_errors
from tidegate.runs import pool

_NAMES = tuple(_core.STEP_NUMBERS)
_MASKS = tuple(f"_{name}" for name in _NAMES)
_MOST = 100_000


class CallVectorEnv(VectorEnv[NDArray[np.float32], NDArray[Any], NDArray[Any]]):
    """Many environments of one kind, stepped by one call of the engine in threads, without Python's lock.

    Each gives what a [CallEnv][tidegate.gym.CallEnv] of its own would, number by number. An environment whose episode
    is over begins another one with its next step, whose action is not used and whose reward is 0 (Gymnasium's
    `AutoresetMode.NEXT_STEP`).

    Args:
        scenario: As for [CallEnv][tidegate.gym.CallEnv].
        num_envs: How many.
        threads: In how many threads; as many as there are cores by default.
        settings: Those of [CallEnv][tidegate.gym.CallEnv].

    Raises:
        InputError: when a scenario or a setting is not usable.

    >>> envs = CallVectorEnv("home-broadband", num_envs=4)
    >>> seen, _ = envs.reset(seed=1)
    >>> seen, rewards, terminated, truncated, infos = envs.step(np.zeros((4, 1)))
    >>> seen.shape, infos["rate_bps"].shape
    ((4, 5, 11), (4,))
    """

    metadata: dict[str, Any] = {"render_modes": [], "autoreset_mode": AutoresetMode.NEXT_STEP}  # noqa: RUF012

    def __init__(
        self,
        scenario: AnyScenario | Sequence[AnyScenario] = (),
        num_envs: int = 1,
        *,
        threads: int | None = None,
        **settings: Any,
    ) -> None:
        for name, value in (("num_envs", num_envs), ("threads", threads)):
            if value is not None and (type(value) is not int or not 1 <= value <= _MOST):
                raise InputError(f"{name}: found {value!r}; expected a whole number from 1 to {_MOST}")
        self.num_envs = num_envs
        self._threads = _core.StepThreads(min(threads or pool.cores(), num_envs))
        self._reward = settings.get("reward")
        first = CallEnv(scenario, **settings)
        self.envs = [first, *(CallEnv(scenario, **settings) for _ in range(num_envs - 1))]
        for env in self.envs[1:]:
            env.source = first.source  # what scenarios need is read once for all
        self.terms = first.terms
        self.single_observation_space, self.single_action_space = first.observation_space, first.action_space
        self.observation_space = batch_space(first.observation_space, num_envs)
        self.action_space = batch_space(first.action_space, num_envs)
        self._over = np.zeros(num_envs, bool)
        self._ready = False

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Begins another episode in each: with `seed`, `seed + 1` and so on where it is one number.

        Raises:
            InputError: as [CallEnv.reset][tidegate.gym.CallEnv.reset].
        """
        seeds: list[int | None]
        if seed is None or isinstance(seed, int):
            seeds = [None if seed is None else seed + number for number in range(self.num_envs)]
        else:
            seeds = list(seed)
        if len(seeds) != self.num_envs:
            raise InputError(f"seed: found {len(seeds)} of them; expected {self.num_envs}, or one number")
        seen = np.empty(self.observation_space.shape or (), np.float32)
        infos: dict[str, Any] = {}
        for number, env in enumerate(self.envs):
            seen[number], info = env.reset(seed=seeds[number], options=options)
            infos = self._add_info(infos, info, number)
        self._over[:] = False
        self._ready = True
        return seen, infos

    def step(
        self, actions: NDArray[Any]
    ) -> tuple[NDArray[np.float32], NDArray[Any], NDArray[Any], NDArray[Any], dict[str, Any]]:
        """One interval in each.

        Raises:
            InputError: when the actions are none, or no episodes are under way.
            RunError: when a component of a world fails.
        """
        if not self._ready:
            raise InputError("step: no episodes are under way; call reset()")
        given = self._actions(actions)
        seen = np.empty(self.observation_space.shape or (), np.float32)
        rewards = np.zeros(self.num_envs)
        terminated, truncated = np.zeros(self.num_envs, bool), np.zeros(self.num_envs, bool)
        infos: dict[str, Any] = {}
        again = np.flatnonzero(self._over)
        for number in again.tolist():
            seen[number], info = self.envs[number].reset()
            infos = self._add_info(infos, info, number)
        work = np.flatnonzero(~self._over)
        self._over[again] = False
        if work.size:
            part, values, ends = self._stepped(work, given)
            seen[work] = part
            mask = np.zeros(self.num_envs, bool)
            mask[work] = True
            columns = np.zeros((len(_NAMES), self.num_envs))
            columns[:, work] = values.T
            infos |= zip(_NAMES, columns, strict=True)
            infos |= dict.fromkeys(_MASKS, mask)
            for at, (number, (reward, over, stopped)) in enumerate(zip(work.tolist(), ends, strict=True)):
                if self._reward is not None:
                    reward = float(self._reward(dict(zip(_NAMES, values[at].tolist(), strict=True))))  # noqa: PLW2901
                rewards[number] = 0.0 if reward != reward else reward  # noqa: PLR0124
                terminated[number], truncated[number] = stopped, over and not stopped
            self._over[work] = terminated[work] | truncated[work]
        return seen, rewards, terminated, truncated, infos

    def _stepped(self, work: NDArray[Any], given: NDArray[np.float64]) -> tuple[NDArray[Any], NDArray[Any], list[Any]]:
        """The engine's part of a step of some of them."""
        shape = self.single_observation_space.shape or ()
        seen, values = np.empty((work.size, *shape), np.float32), np.empty((work.size, len(_NAMES)))
        cores = [core for number in work if (core := self.envs[number].core) is not None]
        with step_errors():
            ends = self._threads.step(cores, given[work], seen, values)
        return seen, values, ends

    def _actions(self, actions: object) -> NDArray[np.float64]:
        right = f"expected one number from -1 to 1 for each, of shape ({self.num_envs}, 1)"
        try:
            given = np.ascontiguousarray(actions, np.float64)
        except (TypeError, ValueError):
            raise InputError(f"step: found the actions {actions!r}; {right}") from None
        if given.shape not in ((self.num_envs, 1), (self.num_envs,)):
            raise InputError(f"step: found actions of shape {given.shape}; {right}")
        if np.isnan(given).any():
            raise InputError(f"step: found an action that is not a number (nan); {right}")
        return given.reshape(self.num_envs)

    def close_extras(self, **kwargs: Any) -> None:
        """Forgets the episodes."""
        del kwargs
        for env in self.envs:
            env.close()
        self._ready = False
