"""Users of a radio network during a run: expands groups to users, and each flow of a group to a flow per user."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tidegate._core import Stream
from tidegate.errors import InputError
from tidegate.scenario.explain import Path, Problem
from tidegate.scenario.model import numbered
from tidegate.scenario.radio import Radio, Users
from tidegate.units import Duration, Frequency

if TYPE_CHECKING:
    from tidegate.scenario.scenario import Scenario

MAX_USERS = 32_768
"""Largest number of users of a radio network."""
_LINGER = 2 * 10**9  # ns that an arrived user is still reached after its stay, for the ends of its flows


@dataclass(frozen=True)
class Member:
    """A user of a radio network."""

    name: str
    start: int
    """Time at which it comes, in ns."""
    stop: int | None
    """Latest end of its flows, in ns; None for the run's end."""
    leave: int | None
    """Time at which it leaves, in ns; None for the run's end."""


def population(scenario: Scenario, seed: int) -> dict[str, list[Member]]:
    """The users of each group of the radio networks, by the group's name.

    Raises:
        InputError: when more than `MAX_USERS` arrive.
    """
    groups: dict[str, list[Member]] = {}
    for key, radio in scenario.radios.items():
        network_seed, room = scenario.seeds.get(radio.name, seed), MAX_USERS
        for group in radio.users:
            members = members_of(group, radio.name, network_seed, int(scenario.duration), room)
            room -= len(members)
            if room < 0:
                raise InputError(
                    f"{key}.users.{group.name}: the network has more than {MAX_USERS} users with this group"
                )
            groups[group.name] = members
    return groups


def members_of(group: Users, network: str, seed: int, end: int, room: int = MAX_USERS) -> list[Member]:
    """The users of a group in a run that ends at `end`; stops soon after `room` users."""
    return list(_members(group, network, seed, end, room))


def _members(group: Users, network: str, seed: int, end: int, room: int) -> Iterator[Member]:
    start, stop = int(group.start), None if group.stop is None else int(group.stop)
    if group.arrival is None:
        yield from (Member(name, start, stop, stop) for name in numbered(group.name, group.count))
        return
    stream = Stream(seed, network, f"{group.name} arrivals")
    mean = 1 / group.arrival.rate.per_second
    stay, time_s, number = int(group.arrival.stay), start / 1e9, 0
    last = min(end, end if stop is None else stop)
    while number <= room:
        time_s += stream.exponential(mean)
        begin = round(time_s * 1e9)
        if begin >= last:
            return
        number += 1
        yield Member(f"{group.name}-{number}", begin, begin + stay, begin + stay + _LINGER)


def lower_radio(radio: Radio, groups: Mapping[str, Sequence[Member]]) -> dict[str, Any]:
    """The radio network as the engine takes it."""
    users = []
    for group in radio.users:
        users += [
            {
                "name": member.name,
                "start": member.start,
                "stop": member.leave,
                "place": None if group.place is None else list(group.place),
                "full": group.full_buffer,
            }
            for member in groups[group.name]
        ]
    return {"name": radio.name, "core": radio.core, "users": users, "access": radio.access()}


def flows_of(ir: dict[str, Any], groups: Mapping[str, Sequence[Member]], end: int) -> Iterator[dict[str, Any]]:
    """Yields a flow for each user of the group at an end of the flow, or the flow itself if no end is a group."""
    key = next((key for key in ("from", "to") if ir[key] in groups), None)
    if key is None:
        yield ir
        return
    members = groups[ir[key]]
    opposite = "to" if key == "from" else "from"
    for number, member in enumerate(members, 1):
        start = member.start + ir["start"]
        own_stop = None if ir["stop"] is None else member.start + ir["stop"]
        stop = min((time for time in (member.stop, own_stop) if time is not None), default=None)
        if start >= end or (stop is not None and stop <= start):
            continue
        flow = {**ir, key: member.name, "start": start, "stop": stop}
        if ir[opposite] in groups:
            flow[opposite] = groups[ir[opposite]][0].name
        if member.name != ir[key]:
            flow["name"] = f"{ir['name']}-{number}"
            flow["kind"] = _paired(ir["kind"], number)
        yield flow


def _paired(kind: Any, number: int) -> Any:
    """A flow's kind; if the flow has a return flow, with the name of this user's return flow."""
    if not isinstance(kind, dict) or not kind.get("media", {}).get("pair"):
        return kind
    media = kind["media"]
    return {"media": {**media, "pair": f"{media['pair']}-{number}"}}


def problems(scenario: Scenario) -> Iterator[Problem]:
    """Yields the problems of the radio networks."""
    for key, radio in scenario.radios.items():
        points = {point for link in scenario.links for point in (link.from_, link.to)} | {radio.core}
        numbers: dict[str, int] = {}
        for position, group in enumerate(radio.users):
            path: Path = (key, "users", position)
            if group.name in points:
                message = f'"{group.name}" is the name of a point of the network; expected another name for users'
                yield Problem((*path, "name"), message)
            if group.name in numbers:
                message = f'"{group.name}" is the name of entry {numbers[group.name]}, too; names are unique'
                yield Problem((*path, "name"), message)
            numbers[group.name] = position + 1
            yield from _group(group, path, scenario.duration)
        yield from radio.problems((key,), scenario.duration)
        yield from _templates(scenario, {group.name: group for group in radio.users})


def _group(group: Users, path: Path, duration: Duration) -> Iterator[Problem]:
    if group.start >= duration > 0:
        yield Problem((*path, "start"), f'found "{group.start}"; expected a time before the run\'s end ({duration})')
    if group.stop is not None and group.stop <= group.start:
        yield Problem((*path, "stop"), f'found "{group.stop}"; expected a time after the start ({group.start})')
    if group.arrival is None:
        return
    if group.count > 1:
        yield Problem(
            (*path, "count"),
            f"found {group.count} and an arrival process; expected only one of count and arrival",
        )
    if group.arrival.rate.per_second * duration.seconds > MAX_USERS:
        max_rate = Frequency(int(MAX_USERS / max(duration.seconds, 1) * Frequency.units["/s"]))
        message = f'found "{group.arrival.rate}"; expected at most {max_rate}, so that at most {MAX_USERS} users arrive'
        yield Problem((*path, "arrival", "rate"), message)
    yield from group.problems(path, duration)


def _templates(scenario: Scenario, groups: Mapping[str, Users]) -> Iterator[Problem]:
    for position, flow in enumerate(scenario.flows):
        ends = [end for end in (flow.from_, flow.to) if end in groups]
        if not ends:
            continue
        path: Path = ("flows", position)
        if flow.count > 1:
            message = f'found {flow.count}; expected 1, since the flow stands for one flow per user of "{ends[0]}"'
            yield Problem((*path, "count"), message)
        if flow.external is not None and any(groups[end].several for end in ends):
            yield Problem(path, f'an external flow needs a single user, but "{ends[0]}" stands for several')
        several = [end for end in ends if groups[end].several]
        if len(ends) > 1 and several:
            message = f'both ends are users of the radio network, and "{several[0]}" stands for several of them'
            yield Problem((*path, "to"), f"{message}; name a single user at each end")
