"""Moves: changes of links, flows and paths while a scenario runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BeforeValidator, Discriminator, Field, Tag, ValidationInfo
from pydantic_core import PydanticCustomError

from tidegate.errors import InputError, did_you_mean
from tidegate.scenario.explain import Path, Problem
from tidegate.scenario.model import Model, Name, lowered
from tidegate.units import Duration, Fraction, Rate, show

if TYPE_CHECKING:
    from tidegate.scenario.flows import Flow
    from tidegate.scenario.reading import Reading
    from tidegate.scenario.scenario import Scenario


def _kind(value: object) -> str | None:
    match value:
        case bool():
            return "~truth"
        case list():
            return "~links"
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
    "path": (list, 'a list of links, such as ["lte"]'),
}
_OF_FLOWS = ("running", "path")


def _why_not(kind: type[Any], value: object) -> str:
    """Reason why a value is not of a kind; empty if it is."""
    if kind in (bool, list):
        expected = next(text for of_kind, text in _EXPECTED.values() if of_kind is kind)
        return "" if isinstance(value, kind) else f"found {show(value)}; expected {expected}"
    try:
        kind.parse(value)
    except InputError as error:
        return str(error)
    return ""


def _check_kind(value: object, info: ValidationInfo) -> object:
    """Rejects a value of no kind with the message of its key's kind: 5 as a capacity is a rate without a unit."""
    key = info.data.get("key")
    reason = _why_not(_EXPECTED[key][0], value) if key is not None and _kind(value) is not None else ""
    # a valid value of another kind is reported by `fits`, with the other problems
    if reason and all(_why_not(kind, value) for kind, _ in _EXPECTED.values()):
        raise PydanticCustomError("tidegate", "{why}", {"why": reason})
    return value


class Move(Model):
    """A change of a link, or of a flow's times or path. It comes before all other events at the same time.

    >>> Move(time="10s", link="uplink", key="capacity", value="500kbps").value
    Rate('500kbps')
    """

    if TYPE_CHECKING:

        def __init__(self, /, **keys: Any) -> None: ...

    time: Duration
    """Time of the change."""
    link: Name | None = None
    """Link that is changed, in one direction: `uplink`, or `uplink.back` for the other direction."""
    flow: Name | None = None
    """Flow that begins or ends, or call whose path changes; instead of a link."""
    key: Literal["capacity", "delay", "loss", "running", "path"]
    """Property that is changed: `capacity`, `delay` or `loss` of a link; `running` of a flow; `path` of a call."""
    value: Annotated[
        Annotated[bool, Tag("~truth")]
        | Annotated[Rate, Tag("~rate")]
        | Annotated[Fraction, Tag("~fraction")]
        | Annotated[Duration, Tag("~time")]
        | Annotated[list[Name], Tag("~links"), Field(min_length=1)],
        Discriminator(
            _kind,
            custom_error_type="shape",
            custom_error_message='a rate, a time, a fraction such as "5%", true or false, or a list of links',
        ),
        BeforeValidator(_check_kind),
    ]
    """New value. The remaining bits of a packet in service are sent at the new capacity; a new delay or loss applies to
    packets that are served later. A flow begins once and ends once, instead of at its `start` and `stop`. A path is the
    links from the flow's beginning to its end; what comes back takes their other directions, and packets that are under
    way stay on the old path."""
    signalled: bool = True
    """Whether the ends of the call hear of the new path, as libwebrtc's do when another network is chosen: their
    controllers begin anew."""

    def fits(self, links: Sequence[str], flows: Sequence[str], duration: Duration, path: Path) -> Iterator[Problem]:
        """Yields a problem for each value that does not match links and flows of these names."""
        if self.time > duration:
            yield Problem((*path, "time"), f'found "{self.time}"; expected at most the duration ({duration})')
        if (self.link is None) == (self.flow is None):
            stated = "neither link nor flow" if self.link is None else "both link and flow"
            yield Problem(path, f"found {stated}; expected exactly one of them")
            return
        kind, names, name = ("link", links, self.link) if self.link is not None else ("flow", flows, self.flow)
        if name not in names:
            hint = did_you_mean(str(name), names) or f"; available: {', '.join(names[:12]) or 'none'}"
            yield Problem((*path, kind), f'found "{name}"; expected the name of a {kind}{hint}')
        if (kind == "flow") != (self.key in _OF_FLOWS):
            expected_key = "running or path" if kind == "flow" else "capacity, delay or loss"
            yield Problem((*path, "key"), f'found "{self.key}"; expected {expected_key} for a {kind}')
        if "signalled" in self.model_fields_set and self.key != "path":
            yield Problem((*path, "signalled"), "found beside another key than path; expected it there alone")
        expected_type, expected = _EXPECTED[self.key]
        if not isinstance(self.value, expected_type):
            yield Problem((*path, "value"), f"found {_shown(self.value)}; expected {expected}")
        elif isinstance(self.value, list):
            for link in self.value:
                if link not in links:
                    hint = did_you_mean(link, links) or f"; available: {', '.join(links[:12]) or 'none'}"
                    yield Problem((*path, "value"), f'found "{link}"; expected the name of a link{hint}')
                elif _other(link) not in links:
                    reason = f'"{link}" has no other direction, which the call\'s feedback needs'
                    yield Problem((*path, "value"), f"found {_shown(self.value)}; {reason}")

    def to_ir(self, reading: Reading) -> Any:
        """As the engine takes it."""
        kind, name = ("link", self.link) if self.link is not None else ("flow", self.flow)
        move = {"time": int(self.time), kind: name, self.key: lowered(self.value, reading)}
        if isinstance(self.value, list):
            move |= {"back": way_back(self.value), "signalled": self.signalled}
        return move


def way_back(path: Sequence[str]) -> list[str]:
    """The links of a path in their other direction, from its end to its beginning.

    >>> way_back(["wifi", "core.back"])
    ['core', 'wifi.back']
    """
    return [_other(link) for link in reversed(path)]


def _other(link: str) -> str:
    """Name of the other direction of a link."""
    return link.removesuffix(".back") if link.endswith(".back") else f"{link}.back"


def _shown(value: object) -> str:
    """A value as in a file."""
    if isinstance(value, list):
        return "[" + ", ".join(map(_shown, value)) + "]"
    return str(value).lower() if isinstance(value, bool) else f'"{value}"'


def problems(scenario: Scenario) -> Iterator[Problem]:
    """Yields the problems of a scenario's moves."""
    if not scenario.moves:
        return
    links, flows = ([name for entry in entries for name in entry.names] for entries in (scenario.links, scenario.flows))
    for position, move in enumerate(scenario.moves):
        yield from move.fits(links, flows, scenario.duration, ("moves", position))
    yield from _of_radio_users(scenario)
    yield from _begins_and_ends(scenario)


def _of_radio_users(scenario: Scenario) -> Iterator[Problem]:
    """Yields a problem for each move of a flow that is several in the run, or none."""
    flows = {name: flow for flow in scenario.flows for name in flow.names}
    for position, move in enumerate(scenario.moves):
        flow = flows.get(move.flow or "")
        user = None if flow is None else scenario.radio_user(flow)
        if flow is None or user is None or _times(scenario, flow):
            continue
        if user.several:
            several = f'"{user.name}" are several users of the radio network, each with a flow of its own'
            reason = f"{several}, whose begin and end follow from its user's arrival and cannot be moved"
        else:
            reason = f'its user "{user.name}" is not there at its start ({Duration(user.start + flow.start)})'
        yield Problem(("moves", position, "flow"), f'found "{move.flow}"; {reason}')


def _begins_and_ends(scenario: Scenario) -> Iterator[Problem]:
    """Yields a problem for each flow that begins or ends twice, or ends before it has begun."""
    times = {name: pair for flow in scenario.flows for name, pair in _times(scenario, flow).items()}
    moved: dict[tuple[str, bool], tuple[int, Duration]] = {}
    for position, move in enumerate(scenario.moves):
        if move.flow not in times or not isinstance(move.value, bool):
            continue
        event = "begins" if move.value else "ends"
        if (earlier := moved.get((move.flow, move.value))) is not None:
            message = f"{move.flow} {event} by moves[{earlier[0] + 1}] already; a flow begins once and ends once"
            yield Problem(("moves", position), message)
            continue
        moved[move.flow, move.value] = position, move.time
    for (name, value), (position, time) in moved.items():
        start, stop = times[name]
        start = moved.get((name, True), (0, start))[1]
        stop = moved.get((name, False), (0, stop))[1]
        if stop is None or stop > start or (value and (name, False) in moved):
            continue
        right = f"a time before {name} ends ({stop})" if value else f"a time after {name} begins ({start})"
        yield Problem(("moves", position, "time"), f'found "{time}"; expected {right}')


def _times(scenario: Scenario, flow: Flow) -> Mapping[str, tuple[Duration, Duration | None]]:
    """Start and stop of each flow of a table, without its moves; none of those that users of a radio network multiply.

    Times of a radio user's flow count from the user's arrival.
    """
    user = scenario.radio_user(flow)
    if user is None:
        starts = (Duration(flow.start + number * flow.start_step) for number in range(flow.count))
        return {name: (start, flow.stop) for name, start in zip(flow.names, starts, strict=True)}
    start = Duration(user.start + flow.start)
    stops = (user.stop, None if flow.stop is None else Duration(user.start + flow.stop))
    stop = min((time for time in stops if time is not None), default=None)
    if user.several or start >= scenario.duration or (stop is not None and stop <= start):
        return {}
    return {flow.name: (start, stop)}
