"""The environment of many calls at once, in threads."""

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
_MAX_COUNT = 100_000


class CallVectorEnv(VectorEnv[NDArray[np.float32], NDArray[Any], NDArray[Any]]):
    """Many environments of one kind, stepped by one call of the engine in threads, without Python's lock.

    Each environment gives the same numbers as a [CallEnv][tidegate.gym.CallEnv] by itself. When its episode is over,
    its next step begins a new one; the action of that step is not used, and its reward is 0 (Gymnasium's
    `AutoresetMode.NEXT_STEP`).

    Args:
        scenario: As for [CallEnv][tidegate.gym.CallEnv].
        num_envs: Number of environments.
        threads: Number of threads; by default as many as there are cores.
        settings: Further arguments of [CallEnv][tidegate.gym.CallEnv].

    Raises:
        InputError: when a scenario or a setting is not usable.

    >>> envs = CallVectorEnv("home-broadband", num_envs=4)
    >>> observations, _ = envs.reset(seed=1)
    >>> observations, rewards, terminated, truncated, infos = envs.step(np.zeros((4, 1)))
    >>> observations.shape, infos["rate_bps"].shape
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
            if value is not None and (type(value) is not int or not 1 <= value <= _MAX_COUNT):
                raise InputError(f"{name}: found {value!r}; expected a whole number from 1 to {_MAX_COUNT}")
        self.num_envs = num_envs
        self._threads = _core.StepThreads(min(threads or pool.cores(), num_envs))
        self._reward = settings.get("reward")
        first = CallEnv(scenario, **settings)
        self.envs = [first, *(CallEnv(scenario, **settings) for _ in range(num_envs - 1))]
        for env in self.envs[1:]:
            env.source = first.source  # files of scenarios are read once for all environments
        self.terms = first.terms
        self.single_observation_space, self.single_action_space = first.observation_space, first.action_space
        self.observation_space = batch_space(first.observation_space, num_envs)
        self.action_space = batch_space(first.action_space, num_envs)
        self._over = np.zeros(num_envs, bool)
        self._ready = False

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Begins a new episode in each environment; a single `seed` counts up: `seed`, `seed + 1` and so on.

        Raises:
            InputError: as [CallEnv.reset][tidegate.gym.CallEnv.reset].
        """
        seeds: list[int | None]
        if seed is None or isinstance(seed, int):
            seeds = [None if seed is None else seed + number for number in range(self.num_envs)]
        else:
            seeds = list(seed)
        if len(seeds) != self.num_envs:
            raise InputError(f"seed: found {len(seeds)} seeds; expected {self.num_envs}, or one number")
        observations = np.empty(self.observation_space.shape or (), np.float32)
        infos: dict[str, Any] = {}
        for number, env in enumerate(self.envs):
            observations[number], info = env.reset(seed=seeds[number], options=options)
            infos = self._add_info(infos, info, number)
        self._over[:] = False
        self._ready = True
        return observations, infos

    def step(
        self, actions: NDArray[Any]
    ) -> tuple[NDArray[np.float32], NDArray[Any], NDArray[Any], NDArray[Any], dict[str, Any]]:
        """Runs one interval in each environment.

        Raises:
            InputError: when the actions are invalid, or no episodes are under way.
            RunError: when a component of a world fails.
        """
        if not self._ready:
            raise InputError("step: no episodes are under way; call reset()")
        numbers = self._actions(actions)
        observations = np.empty(self.observation_space.shape or (), np.float32)
        rewards = np.zeros(self.num_envs)
        terminated, truncated = np.zeros(self.num_envs, bool), np.zeros(self.num_envs, bool)
        infos: dict[str, Any] = {}
        again = np.flatnonzero(self._over)
        for number in again.tolist():
            observations[number], info = self.envs[number].reset()
            infos = self._add_info(infos, info, number)
        work = np.flatnonzero(~self._over)
        self._over[again] = False
        if work.size:
            part, values, ends = self._stepped(work, numbers)
            observations[work] = part
            mask = np.zeros(self.num_envs, bool)
            mask[work] = True
            columns = np.zeros((len(_NAMES), self.num_envs))
            columns[:, work] = values.T
            infos |= zip(_NAMES, columns, strict=True)
            infos |= dict.fromkeys(_MASKS, mask)
            for row, (number, (reward, over, stopped)) in enumerate(zip(work.tolist(), ends, strict=True)):
                if self._reward is not None:
                    reward = float(self._reward(dict(zip(_NAMES, values[row].tolist(), strict=True))))  # noqa: PLW2901
                rewards[number] = 0.0 if reward != reward else reward  # noqa: PLR0124
                terminated[number], truncated[number] = stopped, over and not stopped
            self._over[work] = terminated[work] | truncated[work]
        return observations, rewards, terminated, truncated, infos

    def _stepped(
        self, work: NDArray[Any], numbers: NDArray[np.float64]
    ) -> tuple[NDArray[Any], NDArray[Any], list[Any]]:
        """Steps the episodes of some environments in the engine."""
        shape = self.single_observation_space.shape or ()
        observations, values = np.empty((work.size, *shape), np.float32), np.empty((work.size, len(_NAMES)))
        cores = [core for number in work if (core := self.envs[number].core) is not None]
        with step_errors():
            ends = self._threads.step(cores, numbers[work], observations, values)
        return observations, values, ends

    def _actions(self, actions: object) -> NDArray[np.float64]:
        expected = f"expected one number from -1 to 1 for each, of shape ({self.num_envs}, 1)"
        try:
            numbers = np.ascontiguousarray(actions, np.float64)
        except (TypeError, ValueError):
            raise InputError(f"step: found the actions {actions!r}; {expected}") from None
        if numbers.shape not in ((self.num_envs, 1), (self.num_envs,)):
            raise InputError(f"step: found actions of shape {numbers.shape}; {expected}")
        if np.isnan(numbers).any():
            raise InputError(f"step: found an action that is not a number (nan); {expected}")
        return numbers.reshape(self.num_envs)

    def close_extras(self, **kwargs: Any) -> None:
        """Drops the episodes."""
        del kwargs
        for env in self.envs:
            env.close()
        self._ready = False
