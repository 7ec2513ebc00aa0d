"""Gymnasium environments on the engine: an agent sets the rate of a call, interval by interval.

Install with `pip install "tidegate[gym]"`. [docs/gym.md](../gym.md) has the tables and figures.

>>> import gymnasium, tidegate.gym
>>> env = gymnasium.make("tidegate/Call-v0", scenario="home-broadband")
>>> observation, info = env.reset(seed=1)
>>> for _ in range(10):
...     observation, reward, terminated, truncated, info = env.step([0.5])
>>> observation.shape, round(info["time_s"], 3)
((5, 11), 1.0)
"""

try:
    import gymnasium
except ModuleNotFoundError as missing:
    if missing.name != "gymnasium":
        raise
    raise ImportError('tidegate.gym needs Gymnasium: pip install "tidegate[gym]"') from None

from tidegate.control.agent import Terms, controller
from tidegate.gym.env import CallEnv
from tidegate.gym.episodes import FEATURES, cases_of, rewards_of, windows_of
from tidegate.gym.vector import CallVectorEnv

__all__ = ["FEATURES", "CallEnv", "CallVectorEnv", "Terms", "cases_of", "controller", "rewards_of", "windows_of"]

ID = "tidegate/Call-v0"

if ID not in gymnasium.registry:
    gymnasium.register(
        ID, entry_point="tidegate.gym.env:CallEnv", vector_entry_point="tidegate.gym.vector:CallVectorEnv"
    )
