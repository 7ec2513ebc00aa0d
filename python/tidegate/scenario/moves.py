"""Moves: changes of links, flows and paths while a scenario runs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from tidegate.errors import InputError, ScenarioError, did_you_mean
from tidegate.scenario import netem
from tidegate.scenario._rules import SENDING_RATE
from tidegate.scenario.buckets import AnyDiscipline
from tidegate.scenario.disciplines import managed
from tidegate.scenario.explain import Path, Problem
from tidegate.scenario.links import MTU, AnyMtu, Ecn, Jitter, Loss, Queue, limits, mtu_ir
from tidegate.scenario.model import Model, Name, lowered
from tidegate.scenario.netem import NetemText
from tidegate.scenario.reading import Files, Reading
from tidegate.scenario.shapes import ByKey
from tidegate.scenario.sources import CbrVideo
from tidegate.units import Duration, Fraction, Quantity, Rate, show

if TYPE_CHECKING:
    from tidegate.scenario.flows import Flow
    from tidegate.scenario.links import Link
    from tidegate.scenario.scenario import Scenario


def _plain(value: Any) -> Any:
    """A value as in a file."""
    match value:
        case Model():
            return value.to_dict()
        case Quantity():
            return str(value)
    return value


OF_LINKS: Mapping[str, Any] = {
    "capacity": Rate,
    "delay": Duration,
    "loss": Loss,
    "jitter": Jitter,
    "byte_error": Fraction,
    "ecn": Ecn,
    "netem": NetemText,
    "mtu": AnyMtu,
    "queue": Queue,
    "discipline": AnyDiscipline,
}
"""Types of the values of links, by key."""
OF_MEDIA: Mapping[str, Any] = {
    "video": bool,
    "audio": bool,
    "max_rate": Rate,
    "min_rate": Rate,
    "video.max": Rate,
    "repair": bool,
}
"""Types of the values of calls, by key."""
_LIMITS = ("max_rate", "min_rate", "video.max", "repair")
"""Keys of calls that the engine takes together."""
_OF_FLOWS = {"running": bool, "path": Annotated[list[Name], Field(min_length=1)], **OF_MEDIA}


class Move(Model):
    """A change of a link or of a flow. It comes before all other events at the same time.

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
    """Flow that is changed, instead of a link; `call.back` is what a call in both directions sends back."""
    key: Literal[
        "capacity",
        "delay",
        "loss",
        "jitter",
        "byte_error",
        "ecn",
        "netem",
        "mtu",
        "queue",
        "discipline",
        "running",
        "path",
        "video",
        "audio",
        "max_rate",
        "min_rate",
        "video.max",
        "repair",
    ]
    """Property that is changed. Those of a link are keys of [Link][tidegate.scenario.links.Link]. `running` begins or
    ends a flow. The others are of a call: its `path`, whether its `video` (of a camera or of a screen) and its `audio`
    go on or pause (audio with `dtx` goes on as silence), whether its `repair` goes on, and limits of its rates, as in
    [Media][tidegate.scenario.media.Media]."""
    value: Annotated[Any, ByKey({**OF_LINKS, **_OF_FLOWS}, _plain)]
    """New value, of the type that the key has in a link: a capacity is a rate. The remaining bits of a packet in
    service are sent at the new capacity. Delay, loss, jitter, byte errors and ECN apply to packets that are served
    later; the times of a loss schedule count from the start of the run. Waiting packets come into another discipline in
    the order in which they came to the link; what does not fit is dropped, and a limit in time is converted at the
    capacity that was moved last. A flow begins once (true) and ends once (false), instead of at its `start` and `stop`.
    A path is the list of links from the flow's beginning to its end; what comes back takes their other directions, and
    packets that are under way stay on the old path. Of a lower `video.max` the controller hears as of less to send."""
    signalled: bool = True
    """Whether the ends of the call hear of the new path, as libwebrtc's do when another network is chosen: their
    controllers begin anew."""

    def fits(self, scenario: Scenario, path: Path) -> Iterator[Problem]:
        """Yields a problem for each value that contradicts another, or does not match the scenario."""
        if self.time > scenario.duration:
            right = f"at most the duration ({scenario.duration})"
            yield Problem((*path, "time"), f'found "{self.time}"; expected {right}')
        if (self.link is None) == (self.flow is None):
            stated = "neither link nor flow" if self.link is None else "both link and flow"
            yield Problem(path, f"found {stated}; expected exactly one of them")
            return
        yield from self._subject(scenario, path)
        kind, keys = ("link", OF_LINKS) if self.link is not None else ("flow", _OF_FLOWS)
        if self.key not in keys:
            yield Problem((*path, "key"), f'found "{self.key}"; expected {_either(keys)} for a {kind}')
        elif isinstance(self.value, Model):
            yield from self.value.problems((*path, "value"), scenario.duration)
        elif self.key == "mtu":
            yield from MTU.problems((*path, "value"), self.value)
        elif self.key in OF_MEDIA:
            yield from self._of_media(scenario, path)
        elif self.key == "path":
            yield from self._of_path(scenario, path)
        if "signalled" in self.model_fields_set and self.key != "path":
            yield Problem((*path, "signalled"), "found beside another key than path; expected it there alone")

    def _subject(self, scenario: Scenario, path: Path) -> Iterator[Problem]:
        """Yields a problem if there is no such link or flow."""
        entries: Sequence[Link | Flow] = scenario.links if self.link is not None else scenario.flows
        names, name = [name for entry in entries for name in entry.names], str(self.link or self.flow)
        if self.key in OF_MEDIA:
            calls = (flow for flow in scenario.flows if flow.media is not None and flow.media.both_ways)
            names += (f"{name}.back" for flow in calls for name in flow.names)
        kind = "link" if self.link is not None else "flow"
        if name in scenario.radios:
            yield Problem((*path, kind), f'found "{name}"; the channels of a radio network cannot be moved')
        elif name not in names:
            yield Problem((*path, kind), _unknown(name, names, kind))

    def _of_path(self, scenario: Scenario, path: Path) -> Iterator[Problem]:
        """Yields a problem for each link of the path that there is not, or not in both directions."""
        links = [name for link in scenario.links for name in link.names]
        for link in self.value:
            if link not in links:
                yield Problem((*path, "value"), _unknown(link, links, "link"))
            elif other_direction(link) not in links:
                reason = f'"{link}" has no other direction, which the call\'s feedback needs'
                yield Problem((*path, "value"), f"found {show(self.value)}; {reason}")

    def _of_media(self, scenario: Scenario, path: Path) -> Iterator[Problem]:
        """Yields a problem if the flow is no call with such a source, or a limit is out of the source's range."""
        flow = _flows(scenario).get(str(self.flow))
        if flow is None:
            return
        if (media := flow.media) is None:
            yield Problem((*path, "flow"), f'found "{self.flow}"; expected a media flow for {self.key}')
            return
        if self.key in ("video", "audio") and getattr(media, self.key) is False:
            yield Problem((*path, "key"), f'found "{self.key}"; the flow has no {self.key}')
        if self.key == "repair" and not media.repair_methods.repairs:
            yield Problem((*path, "key"), 'found "repair"; the flow repairs nothing')
        if self.key in ("max_rate", "min_rate"):
            yield from SENDING_RATE.problems((*path, "value"), self.value)
        if self.key == "video.max":
            if media.video is False or isinstance(media.video, CbrVideo):
                yield Problem((*path, "key"), 'found "video.max"; the flow has no video that follows a target')
            elif not media.video.min <= self.value <= media.video.max:
                right = f"from {media.video.min} to {media.video.max}, between which its encoder works"
                yield Problem((*path, "value"), f'found "{self.value}"; expected {right}')


def _flows(scenario: Scenario) -> dict[str, Flow]:
    """The tables of flows by the flows' names, those of what calls send back among them."""
    return {f"{name}{suffix}": flow for flow in scenario.flows for name in flow.names for suffix in ("", ".back")}


def _unknown(name: str, names: Sequence[str], kind: str) -> str:
    hint = did_you_mean(name, names) or f"; available: {', '.join(names[:12]) or 'none'}"
    return f'found "{name}"; expected the name of a {kind}{hint}'


def _either(words: Iterable[str]) -> str:
    *words, last = words
    return f"{', '.join(words)} or {last}"


def to_ir(scenario: Scenario, reading: Reading) -> list[dict[str, Any]]:
    """The moves as the engine takes them."""
    limited = links_with_limits(scenario)
    lowered_moves: dict[int, dict[str, Any]] = {}
    for position, move in sorted(enumerate(scenario.moves), key=lambda entry: entry[1].time):
        move_ir: dict[str, Any] = {"time": int(move.time)}
        if move.link is None:
            move_ir["flow"] = move.flow
            if move.key in _LIMITS:
                move_ir["limits"] = _limit_ir(move)
            else:
                move_ir[move.key] = move.value
        else:
            change = {str(move.key): _lowered(move.key, move.value, reading)}
            if move.key == "queue":
                limited.add(move.link)
            elif move.key == "discipline" and move.link not in limited:
                change["queue"] = own_limits(move.value).to_ir(reading)
            move_ir |= {"link": move.link, "change": change}
        lowered_moves[position] = move_ir
        if move.key == "path":
            move_ir |= {"back": way_back(move.value), "signalled": move.signalled}
    return [lowered_moves[position] for position in range(len(scenario.moves))]


def _limit_ir(move: Move) -> dict[str, Any]:
    """A limit of a call's rates, or whether its repair goes on, as the engine takes it."""
    return {move.key.replace(".", "_"): int(move.value) if isinstance(move.value, Rate) else move.value}


def _lowered(key: str, value: Any, reading: Reading) -> Any:
    if key == "discipline":
        discipline = managed(value)
        return "drop_tail" if discipline is None else discipline.to_ir(reading)
    if key == "netem":
        return netem.parse(value)
    if key == "mtu":
        return mtu_ir(value, reading)
    if key == "loss" and isinstance(value, Fraction):
        return {"bernoulli": float(value)}
    return lowered(value, reading)


def links_with_limits(scenario: Scenario) -> set[str]:
    """Names of the links whose tables state limits of the queue: there another discipline brings none of its own."""
    ways = (way for link in scenario.links for way in zip(link.names, link.ways, strict=True))
    return {name for name, keys in ways if keys["queue"] is not None}


def own_limits(discipline: Any) -> Queue:
    """The queue limits of a discipline where none are stated."""
    return limits({"queue": None, "discipline": discipline})


class ByHand:
    """Changes of links that are not in the scenario: checked as its moves, and in the engine's form."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        moved = {move.link for move in scenario.moves if move.link is not None and move.key == "queue"}
        self._limited = links_with_limits(scenario) | moved

    def moves(self, link: str, time: Duration, **values: Any) -> list[Move]:
        """The change of a link's properties that are not `None`, as moves.

        Raises:
            InputError: when there is no such link, no change, or a value is not usable.
        """
        links = [name for entry in self._scenario.links for name in entry.names]
        if link not in links:
            hint = did_you_mean(str(link), links) or f"; available: {', '.join(links[:12])}"
            raise InputError(f"{link}: the run has no such link{hint}")
        values = {key: value for key, value in values.items() if value is not None}
        if not values:
            raise InputError(f"{link}: found no change; expected {_either(OF_LINKS)}")
        if "discipline" in values and "queue" not in values and link not in self._limited:
            values["queue"] = own_limits(_move(link, time, "discipline", values["discipline"]).value)
        elif "queue" in values:
            self._limited.add(link)
        # larger limits hold before packets come into another discipline
        return [_move(link, time, key, values[key]) for key in sorted(values, key="discipline".__eq__)]

    def of_call(self, flow: str, time: Duration, **values: Any) -> list[Move]:
        """The change of a flow of a call, as moves: its `path`, `signalled` or not, and limits of its rates.

        Raises:
            InputError: when there is no such flow of a call, no change, or a value is not usable.
        """
        signalled = values.pop("signalled", True)
        values = {key: value for key, value in values.items() if value is not None}
        if not values:
            raise InputError(f"{flow}: found no change; expected path, max_rate, min_rate, video_max or repair")
        changes: list[Move] = []
        for key, value in values.items():
            heard = {} if key != "path" or signalled else {"signalled": False}
            try:
                move = Move(time=time, flow=flow, key=key.replace("video_max", "video.max"), value=value, **heard)
            except ScenarioError as error:
                raise InputError(f"{flow}: {key}{str(error).removeprefix('Move: value')}") from None
            for problem in move.fits(self._scenario, ()):
                raise InputError(f"{flow}: {key}: {problem.message}")
            changes.append(move)
        return changes

    def call_to_ir(self, moves: Sequence[Move]) -> str:
        """The change of a flow of a call as JSON."""
        change: dict[str, Any] = {}
        for move in moves:
            if move.key == "path":
                change |= {"path": move.value, "back": way_back(move.value), "signalled": move.signalled}
            else:
                change["limits"] = {**change.get("limits", {}), **_limit_ir(move)}
        return json.dumps(change)

    def to_ir(self, moves: Sequence[Move]) -> str:
        """The new properties of a link, move by move, as JSON."""
        reading = Reading(self._scenario, Files())
        return json.dumps([{move.key: _lowered(move.key, move.value, reading)} for move in moves])


def _move(link: str, time: Duration, key: str, value: Any) -> Move:
    try:
        move = Move(time=time, link=link, key=key, value=value)
    except ScenarioError as error:
        raise InputError(f"{link}: {key}{str(error).removeprefix('Move: value')}") from None
    if isinstance(move.value, Model):
        for problem in move.value.problems((key,), Duration(0)):
            raise InputError(problem.text(link))
    for problem in MTU.problems((key,), move.value) if key == "mtu" else ():
        raise InputError(problem.text(link))
    return move


def way_back(path: Sequence[str]) -> list[str]:
    """The links of a path in their other direction, from its end to its beginning.

    >>> way_back(["wifi", "core.back"])
    ['core', 'wifi.back']
    """
    return [other_direction(link) for link in reversed(path)]


def other_direction(link: str) -> str:
    """Name of the other direction of a link."""
    return link.removesuffix(".back") if link.endswith(".back") else f"{link}.back"


def problems(scenario: Scenario) -> Iterator[Problem]:
    """Yields the problems of a scenario's moves."""
    if not scenario.moves:
        return
    for position, move in enumerate(scenario.moves):
        yield from move.fits(scenario, ("moves", position))
    yield from _of_radio_users(scenario)
    yield from _begins_and_ends(scenario)
    yield from _rate_limits(scenario)


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
        if move.flow not in times or move.key != "running":
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


def _rate_limits(scenario: Scenario) -> Iterator[Problem]:
    """Yields a problem for each move after which a call's `min_rate` is above its `max_rate`."""
    flows, limits = _flows(scenario), dict[str, dict[str, Rate]]()
    for position, move in sorted(enumerate(scenario.moves), key=lambda entry: entry[1].time):
        flow = flows.get(move.flow or "")
        if flow is None or flow.media is None or move.key not in ("max_rate", "min_rate"):
            continue
        stated = {"min_rate": flow.media.least_rate, "max_rate": flow.media.largest_rate}
        rates = limits.setdefault(str(move.flow), stated)
        rates[move.key] = move.value
        if rates["min_rate"] > rates["max_rate"] > 0:
            other = "max_rate" if move.key == "min_rate" else "min_rate"
            right = f"at {'most' if other == 'max_rate' else 'least'} {other}, which is {rates[other]} then"
            yield Problem(("moves", position, "value"), f'found "{move.value}"; expected {right}')


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
