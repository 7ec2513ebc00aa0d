"""Checks across the parts of a scenario: names, routes, times, and totals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from tidegate.errors import did_you_mean
from tidegate.scenario import _rules as rules
from tidegate.scenario import clocks, couplings, moves, population
from tidegate.scenario._loops import timeless
from tidegate.scenario.explain import Path, Problem
from tidegate.scenario.flows import Flow
from tidegate.scenario.links import Link
from tidegate.scenario.routes import Routes, directions
from tidegate.scenario.sessions import Session

if TYPE_CHECKING:
    from tidegate.scenario.scenario import Scenario

_MAX_FLOWS = 100_000


def problems(scenario: Scenario) -> Iterator[Problem]:
    """Yields a problem for each contradiction between the parts of a scenario."""
    yield from _times(scenario)
    yield from _unique(scenario)
    yield from _seeds(scenario)
    for position, link in enumerate(scenario.links):
        yield from link.problems(("links", position), scenario.duration)
    for position, flow in enumerate(scenario.flows):
        yield from flow.problems(("flows", position), scenario.duration)
    several = {user.name for radio in scenario.radios.values() for user in radio.users if user.several}
    yield from couplings.problems(scenario.couplings, scenario.flows, several)
    yield from moves.problems(scenario)
    yield from clocks.problems(scenario)
    yield from population.problems(scenario)
    yield from _routes(scenario)
    yield from timeless(scenario)
    for position, session in enumerate(scenario.sessions):
        yield from _places(session, ("sessions", position), scenario)
        yield from session.problems(("sessions", position), scenario.duration)
    if not scenario.flows and not scenario.sessions:
        yield Problem(("flows",), "found neither flows nor sessions; expected at least one of them")


def _times(scenario: Scenario) -> Iterator[Problem]:
    yield from rules.POSITIVE.problems(("duration",), scenario.duration)
    if scenario.warmup >= scenario.duration > 0:
        message = f'found "{scenario.warmup}"; expected less than the duration ({scenario.duration})'
        yield Problem(("warmup",), message)
    yield from rules.POSITIVE.problems(("bin",), scenario.bin)
    if scenario.bin and scenario.record != "summary":
        members = sum(member.count for session in scenario.sessions for member in session.members)
        series = sum(flow.count for flow in scenario.flows) + members + 2 * len(scenario.links)
        if scenario.duration / scenario.bin * series > rules.MAX_BINS:
            message = (
                f'found "{scenario.bin}"; the series of flows and links would have more than {rules.MAX_BINS} bins; '
                "expected a longer bin"
            )
            yield Problem(("bin",), message)


def _unique(scenario: Scenario) -> Iterator[Problem]:
    lists: dict[str, Sequence[Link | Flow | Session]] = {"links": scenario.links, "flows": scenario.flows}
    if scenario.sessions:
        lists["sessions"] = scenario.sessions
    numbers: dict[str, int] = {}
    for key, entries in lists.items():
        if key != "sessions":
            # members are flows, too: SESSION.MEMBER
            numbers = {}
        for kind, radio in scenario.radios.items() if key == "links" else ():
            if any(radio.name in link.names for link in scenario.links):
                yield Problem((kind, "name"), f'"{radio.name}" is the name of a link, too; names are unique')
        for position, entry in enumerate(entries):
            for name in _all_names(entry):
                if name in numbers:
                    message = f'"{name}" is the name of entry {numbers[name]}, too; names are unique'
                    yield Problem((key, position, "name"), message)
                    break
                numbers[name] = position + 1
            if len(numbers) > _MAX_FLOWS:
                yield Problem((key,), f"found more than {_MAX_FLOWS} in total; expected at most {_MAX_FLOWS}")
                return


def _seeds(scenario: Scenario) -> Iterator[Problem]:
    entries: list[Link | Flow | Session] = [*scenario.links, *scenario.flows, *scenario.sessions]
    names = [name for entry in entries for name in _all_names(entry)]
    names += [radio.name for radio in scenario.radios.values()]
    for name in scenario.seeds:
        if name not in names:
            hint = did_you_mean(name, names) or f"; available: {', '.join(names[:12])}"
            yield Problem(("seeds", name), f'no link, flow, member or radio network is called "{name}"{hint}')


def _all_names(entry: Link | Flow | Session) -> list[str]:
    if isinstance(entry, Session):
        return [f"{entry.name}.{name}" for member in entry.members for name in member.names]
    return entry.names


@dataclass(frozen=True)
class _Network:
    """The points of a scenario, and the routes between them."""

    routes: Routes[str]
    points: frozenset[str]

    @classmethod
    def of(cls, scenario: Scenario, *, radio: bool = False) -> Self:
        """The network of a scenario's links; with `radio` also the hops to users of radio networks."""
        hops = [(begin, end, name) for begin, end, name, _ in directions(scenario.links)]
        for network in scenario.radios.values() if radio else ():
            ends = [(network.core, user.name) for user in network.users]
            hops += [hop for core, user in ends for hop in ((core, user, ""), (user, core, ""))]
        return cls(Routes(hops), frozenset(point for begin, end, _ in hops for point in (begin, end)))


def _places(session: Session, path: Path, scenario: Scenario) -> Iterator[Problem]:
    """Yields a problem for each member of a session whose point the others cannot reach."""
    network = _Network.of(scenario)
    first: str | None = None
    for position, member in enumerate(session.members):
        inner = (*path, "members", position, "node")
        point = member.node or member.name
        if point not in network.points:
            yield _nowhere(inner, point, network)
            continue
        first = first or point
        for begin, end in ((first, point), (point, first)):
            if network.routes.between(begin, end) is None:
                yield Problem(inner, f'no links lead from "{begin}" to "{end}"')


def _nowhere(path: Path, point: str, network: _Network) -> Problem:
    points = sorted(network.points)
    hint = did_you_mean(point, points)
    return Problem(path, f'no link begins or ends at "{point}"{hint} (points: {", ".join(points[:12])})')


def _routes(scenario: Scenario) -> Iterator[Problem]:
    network = _Network.of(scenario, radio=True)
    for position, flow in enumerate(scenario.flows):
        ends = (("from", flow.from_), ("to", flow.to))
        missing = [(key, point) for key, point in ends if point not in network.points]
        for key, point in missing:
            yield _nowhere(("flows", position, key), point, network)
        if missing:
            continue
        required = [(flow.from_, flow.to)]
        if flow.udp is None and flow.external is None:
            required.append((flow.to, flow.from_))
        for begin, end in required:
            if network.routes.between(begin, end) is None:
                reason = "" if (begin, end) == required[0] else " for feedback or acknowledgements"
                message = f'no links lead from "{begin}" to "{end}"{reason}'
                yield Problem(("flows", position), message)
