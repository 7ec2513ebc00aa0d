"""Trained policies as controllers: they decide once an interval, from the observations of [tidegate.gym][tidegate.gym].

>>> from tidegate.control.agent import Terms, controller
>>> terms = Terms(rate=("100kbps", "2Mbps"))
>>> round(terms.to_rate(0.0)), terms.to_action("2Mbps")
(447214, 1.0)

A file with a function that takes no arguments and returns such a controller is a controller itself:
`python:mine.py:policy`. It gets the same observations as the agent in the environment, number by number, and so decides
the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from tidegate import _core
from tidegate.errors import InputError
from tidegate.units import Duration, Rate

if TYPE_CHECKING:
    from numpy.typing import NDArray

ActionKind = Literal["rate", "change"]


@dataclass(frozen=True)
class Terms:
    """Settings that an agent was trained with and needs as a controller.

    Args:
        interval: How long a decision holds.
        action: The meaning of an action, a number from -1 to 1: `rate`, by its logarithm from the least to the largest,
            or `change`, a factor on the rate: `factor` at 1, and one over it at -1.
        rate: The least and the largest rate. Observed rates are scaled by them, too.
        factor: The largest change.
        history: Intervals in an observation.

    Raises:
        InputError: when one of them is not usable.
    """

    interval: str = "100ms"
    action: ActionKind = "rate"
    rate: tuple[str | int, str | int] = ("30kbps", "2.5Mbps")
    factor: float = 1.5
    history: int = 5

    def __post_init__(self) -> None:
        """Checks them."""
        self.core  # noqa: B018

    @cached_property
    def core(self) -> _core.Terms:
        """The same settings in the engine's form."""
        if self.action not in ("rate", "change"):
            raise InputError(f'action: found {self.action!r}; expected "rate" or "change"')
        if type(self.history) is not int or self.history < 0:
            raise InputError(f"history: found {self.history!r}; expected a whole number from 1 to 1000")
        change = float(self.factor) if self.action == "change" else None
        try:
            return _core.Terms(int(Duration.parse(self.interval)), change, *self.bounds, self.history)
        except ValueError as error:
            raise InputError(str(error)) from None

    @property
    def bounds(self) -> tuple[int, int]:
        """The least and the largest rate in bit/s."""
        try:
            low, high = self.rate
        except (TypeError, ValueError):
            raise InputError(f'rate: found {self.rate!r}; expected two rates, such as ("100kbps", "5Mbps")') from None
        return _bps(low), _bps(high)

    def to_rate(self, action: float, last: str | int = 0) -> float:
        """The rate in bit/s that an action asks for, where the rate before was `last`."""
        return float(self.core.rate(action, _bps(last)))

    def to_action(self, rate: str | int) -> float:
        """The action that asks for a rate, where actions are rates."""
        return self.core.action(_bps(rate))

    def to_dict(self) -> dict[str, Any]:
        """Plain data, to be kept beside a policy."""
        return {**asdict(self), "interval": str(self.interval), "rate": list(self.bounds)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Terms from the output of [to_dict][tidegate.control.agent.Terms.to_dict].

        Raises:
            InputError: when it is something else.
        """
        field_names = {field.name for field in fields(cls)}
        if not field_names >= set(data):
            raise InputError(
                f"terms: found {', '.join(sorted(set(data) - field_names))}; expected {', '.join(sorted(field_names))}"
            )
        return cls(**{**data, "rate": tuple(data["rate"])} if "rate" in data else data)


def _bps(rate: str | int) -> int:
    return int(Rate.parse(rate)) if isinstance(rate, str) else int(rate)


def controller(
    decide: Callable[[NDArray[Any]], Any], terms: Terms | None = None, start: str | int = "300kbps"
) -> _core.AgentController:
    """A controller whose decisions `decide` makes.

    Args:
        decide: Gets the observation, an array of shape (history, features) as in the environment, at the beginning of
            each interval, and answers with an action, a number.
        terms: The terms on which it was trained.
        start: The rate before its first action, which matters where actions are changes.
    """

    def act(observation: NDArray[Any]) -> float:
        try:
            action = decide(observation)
        except (ValueError, RuntimeError) as error:
            # NumPy's and PyTorch's, where weights are of another space; changed in place, so that its line stays
            shape = observation.shape
            error.args = (f"{error}; the observation has the shape {shape}, from history = {shape[0]} in its terms",)
            raise
        if (size := np.size(action)) != 1:
            raise ValueError(f"the policy returned {size} numbers; expected one from -1 to 1")
        return float(action.item() if hasattr(action, "item") else action)

    return _core.AgentController(act, (terms or Terms()).core, _bps(start))
