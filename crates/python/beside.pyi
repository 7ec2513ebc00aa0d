"""The compiled core of tidegate, as type checkers see it: `make stubs` writes this file, from `crates/python`."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, Self, SupportsIndex, TypeAlias, final, overload

import numpy as np
import numpy.typing as npt
from typing_extensions import Buffer

__version__: str
COMMIT: str
ENCODERS: list[str]
METRICS: list[tuple[str, list[tuple[str, str, str, Literal["higher", "lower", "neither"], str, float, int, int]]]]
FEATURES: list[tuple[str, str, float, float, str]]
"""The numbers of an agent's observation: name, unit, least and largest scaled value, what it is."""
STEP_NUMBERS: list[str]
"""What a step of an episode tells, by name."""

_Objects: TypeAlias = Mapping[str, Callable[[], Any]]
_Feedback: TypeAlias = Literal["per-packet", "receiver-reports", "own", "none"]
_Ecn: TypeAlias = Literal["off", "ect0", "ect1"]
_Counts: TypeAlias = Literal["rtp", "ip"]
_Interval: TypeAlias = Literal["usual", "frame"]
_Urgency: TypeAlias = Literal["none", "regular", "early", "now"]
_Whole: TypeAlias = Sequence[int] | npt.NDArray[np.integer[Any]]
_TwccStatus: TypeAlias = int | Literal["untimed"] | None
_Packet: TypeAlias = (
    App
    | Bye
    | Ccfb
    | EcnFeedback
    | ExtendedReport
    | Fir
    | Nack
    | Pli
    | ReceiverReport
    | Remb
    | Sdes
    | SenderReport
    | Sli
    | Twcc
    | Unknown
)

class Refused(ValueError):
    """A scenario that cannot be run.

    `place` is its dotted key, `found` what is there (a sentence where `expected` is empty), `expected` what would be right.
    """

    place: str
    found: str
    expected: str

class InternalError(RuntimeError):
    """A bug in tidegate: the message names the place in its source."""

class RunError(RuntimeError):
    """A run stopped before its end: the message names the component, the simulated time and the reason."""

class Report:
    @property
    def sequence(self) -> npt.NDArray[np.uint64]: ...
    @property
    def size(self) -> npt.NDArray[np.uint64]: ...
    @property
    def sent_ns(self) -> npt.NDArray[np.int64]: ...
    @property
    def arrival_ns(self) -> npt.NDArray[np.float64]: ...

class Needs:
    @property
    def feedback(self) -> _Feedback: ...
    @property
    def ecn(self) -> _Ecn: ...
    @property
    def counts(self) -> _Counts: ...
    @property
    def interval(self) -> _Interval: ...

class ControllerHost:
    @property
    def internals(self) -> dict[str, float]: ...

class ReceiverHost:
    @property
    def internals(self) -> dict[str, float]: ...

class Packet:
    @property
    def holder(self) -> Any: ...

class Table:
    @overload
    def __getitem__(self, key: str, /) -> npt.NDArray[Any]:
        """A column by its name, as `to_numpy` gives it; KeyError names those that there are."""
    @overload
    def __getitem__(self, key: SupportsIndex, /) -> dict[str, Any]:
        """A row by its number, from the end where that is negative."""
    @overload
    def __getitem__(self, key: slice, /) -> Table:
        """Neighbouring rows."""
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def __reduce__(self) -> tuple[Any, tuple[bytes]]: ...

class _Panics:
    def argument(self, value: Any) -> None: ...
    def result(self) -> Any: ...
    def __iter__(self) -> Self: ...

def sprout_forecasts(
    bytes_per_tick: _Whole,
    *,
    time_to_next_ms: int | _Whole = 20,
    controller: Literal["sprout", "sprout-ewma"] = "sprout",
    **settings: float,
) -> npt.NDArray[np.uint32]: ...
