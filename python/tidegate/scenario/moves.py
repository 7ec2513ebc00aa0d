"""Moves: what changes while a scenario runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BeforeValidator, Discriminator, Tag, ValidationInfo
from pydantic_core import PydanticCustomError

from tidegate.errors import InputError, did_you_mean
from tidegate.scenario.explain import Path, Problem
from tidegate.scenario.model import Model, Name, lowered
from tidegate.units import Duration, Fraction, Rate, show

if TYPE_CHECKING:
    from tidegate.scenario.reading import Reading


def _kind(value: object) -> str | None:
    match value:
        case bool():
            return "~truth"
        # quantities are numbers, too
        case Rate():
            return "~rate"
        case Duration():
            return "~time"
        case float() | int():
            return "~fraction"
        case str():
            return "~rate" if value.endswith("bps") else "~fraction" if value.endswith("%") else "~time"
    return None


_EXPECTED: dict[str, tuple[type, str]] = {
    "capacity": (Rate, 'a rate, such as "500kbps"'),
    "delay": (Duration, 'a time, such as "80ms"'),
    "loss": (Fraction, 'a fraction, such as "5%"'),
    "running": (bool, "true or false"),
}


def _wrong(of: type[Any], value: object) -> str:
    """Why a value is none of a kind; empty for one that is."""
    if of is bool:
        return "" if isinstance(value, bool) else f"found {show(value)}; expected true or false"
    try:
        of.parse(value)
    except InputError as error:
        return str(error)
    return ""


def _of_its_key(value: object, info: ValidationInfo) -> object:
    """What is nothing at all is told as what its key has: 5 for a capacity is a rate without a unit."""
    key = info.data.get("key")
    wrong = _wrong(_EXPECTED[key][0], value) if key is not None and _kind(value) is not None else ""
    # a good value of another kind is told with all else that does not fit
    if wrong and all(_wrong(of, value) for of, _ in _EXPECTED.values()):
        raise PydanticCustomError("tidegate", "{why}", {"why": wrong})
    return value


class Move(Model):
    """One change: of a link, or of whether a flow runs. It is made before whatever else happens at its time.

    >>> Move(time="10s", link="uplink", key="capacity", value="500kbps").value
    Rate('500kbps')
    """

    if TYPE_CHECKING:

        def __init__(self, /, **keys: Any) -> None: ...

    time: Duration
    """When."""
    link: Name | None = None
    """The link that is changed, in one direction: `uplink`, or `uplink.back` for its way back."""
    flow: Name | None = None
    """Or the flow that begins or ends."""
    key: Literal["capacity", "delay", "loss", "running"]
    """What is changed: of a link `capacity`, `delay` or `loss`; of a flow whether it is `running`."""
    value: Annotated[
        Annotated[bool, Tag("~truth")]
        | Annotated[Rate, Tag("~rate")]
        | Annotated[Fraction, Tag("~fraction")]
        | Annotated[Duration, Tag("~time")],
        Discriminator(
            _kind,
            custom_error_type="shape",
            custom_error_message='a rate, a time, a fraction such as "5%", or true or false',
        ),
        BeforeValidator(_of_its_key),
    ]
    """What it is from then on. The bits that are left of a packet in service go at the new capacity; delay and loss
    hold for what is served later. A flow begins once and ends once, instead of at its `start` and `stop`."""

    def fits(self, links: Sequence[str], flows: Sequence[str], duration: Duration, path: Path) -> Iterator[Problem]:
        """What does not fit to links and flows of these names."""
        if self.time > duration:
            yield Problem((*path, "time"), f'found "{self.time}"; expected a time of the run, which ends at {duration}')
        if (self.link is None) == (self.flow is None):
            found = "neither link nor flow" if self.link is None else "both link and flow"
            yield Problem(path, f"found {found}; expected one of them")
            return
        kind, known, name = ("link", links, self.link) if self.link is not None else ("flow", flows, self.flow)
        if name not in known:
            hint = did_you_mean(str(name), known) or f"; there are {', '.join(known[:12]) or 'none'}"
            yield Problem((*path, kind), f'found "{name}"; no {kind} has that name{hint}')
        if (kind == "flow") != (self.key == "running"):
            right = "running" if kind == "flow" else "capacity, delay or loss"
            yield Problem((*path, "key"), f'found "{self.key}"; expected {right} for a {kind}')
        of, expected = _EXPECTED[self.key]
        if not isinstance(self.value, of):
            shown = str(self.value).lower() if isinstance(self.value, bool) else f'"{self.value}"'
            yield Problem((*path, "value"), f"found {shown}; expected {expected}")

    def to_ir(self, reading: Reading) -> Any:
        """As the engine takes it."""
        kind, name = ("link", self.link) if self.link is not None else ("flow", self.flow)
        return {"time": int(self.time), kind: name, self.key: lowered(self.value, reading)}
