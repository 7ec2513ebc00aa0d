"""The scenario of a session: its call is replaced by what programs send."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tidegate.errors import InputError, did_you_mean
from tidegate.scenario import Scenario
from tidegate.shell._network import SIDES
from tidegate.units import Duration

FLOWS = 32
"""Flows of programs that are told apart, for each side: `FLOWS` of `crates/live/src/shell`."""


def with_programs(scenario: Scenario, call: str | None = None, flows: int = FLOWS) -> Scenario:
    """The scenario whose call is made by programs: A is where its sender was, B where its receiver was.

    All other flows stay, so that they are in the same queues. What A sends is in the flows `A-1`, `A-2` and so on, one
    for each pair of ports that is seen, what B sends in `B-1` and so on. Where the call is that of several users of
    a radio network, the programs are at one user of that kind: one of them, or where they come and go one more, who is
    there all the time.

    Args:
        scenario: Links and flows.
        call: The flow to be replaced; by default the first with media, else the first.
        flows: How many of each side.

    Raises:
        InputError: when there is no such flow, or parts of the scenario belong to another driver.
    """
    data = scenario.to_dict()
    given: list[dict[str, Any]] = list(data.get("flows", ()))
    _check_driver(scenario)
    taken = [name for flow in scenario.flows for name in flow.names if name.partition("-")[0] in SIDES]
    if taken:
        raise InputError(f"{scenario.name}: flows.{taken[0]}: the programs' flows are called A-1, B-1 and so on")
    names = [flow.name for flow in scenario.flows]
    if call is not None and call not in names:
        hint = did_you_mean(call, names) or f"; there are {', '.join(names) or 'none'}"
        raise InputError(f"--call {call}: {scenario.name} has no such flow{hint}")
    media = [at for at, flow in enumerate(scenario.flows) if flow.media is not None]
    if not names:
        raise InputError(f"{scenario.name}: has no flow that programs could stand for, only sessions")
    at = names.index(call) if call is not None else (*media, 0)[0]
    replaced = scenario.flows[at]
    ends = (replaced.from_, replaced.to)
    if several := _several(scenario, ends):
        key, group = several
        name = f"{group}-program"
        data[key] = _with_user(data[key], group, name)
        ends = (name if ends[0] == group else ends[0], name if ends[1] == group else ends[1])
    elif replaced.count > 1:
        given[at] = {**given[at], "count": replaced.count - 1}
    else:
        del given[at]
    for number in range(1, flows + 1):
        for side, (start, end) in zip(SIDES, (ends, ends[::-1]), strict=True):
            given.append({"name": f"{side}-{number}", "from": start, "to": end, "external": {}})
    return Scenario.from_dict({**data, "flows": given}, scenario.base)


def _several(scenario: Scenario, ends: tuple[str, str]) -> tuple[str, str] | None:
    """The end that is a group of several users, behind the key of its radio network."""
    groups = {group.name: key for key, radio in scenario.radios.items() for group in radio.users if group.several}
    return next(((groups[end], end) for end in ends if end in groups), None)


def _with_user(radio: dict[str, Any], group: str, name: str) -> dict[str, Any]:
    """The radio network with one user apart from its group."""
    users = []
    for user in radio["users"]:
        if user["name"] != group:
            users.append(user)
            continue
        if "count" in user:
            users.append({**user, "count": user["count"] - 1})
        else:
            users.append(user)
        apart = {key: value for key, value in user.items() if key not in {"count", "arrival", "start", "stop"}}
        users.append({**apart, "name": name})
    return {**radio, "users": users}


def _check_driver(scenario: Scenario) -> None:
    external = [link.name for link in scenario.links if getattr(link, "capacity", None) == "external"]
    external += [flow.name for flow in scenario.flows if flow.external is not None]
    if external:
        raise InputError(f"{scenario.name}: {external[0]} is external, which only tidegate.simpy can drive")


@dataclass(frozen=True)
class Standing:
    """A scenario in which programs stand for one call, under its name, so that its numbers stand beside other runs'."""

    live: Scenario
    """The scenario with the programs' flows."""
    sides: tuple[str, str]
    """The flows of what A and B send: the call's name; and what its way back is called, or `NAME.feedback`."""
    start: Duration
    """When the call begins."""
    stop: Duration | None
    """When it ends; with the scenario by default."""


def standing_for(scenario: Scenario, call: str) -> Standing:
    """The scenario in which programs are one call; all other flows, and all that is drawn, are as they were.

    Args:
        scenario: Links and flows.
        call: The flow with media that they are.

    Raises:
        InputError: when it cannot be a call of programs.
    """
    _check_driver(scenario)
    at = next(at for at, flow in enumerate(scenario.flows) if flow.name == call)
    flow = scenario.flows[at]
    why = None
    if flow.media is None:
        why = f"is {flow.kind}, no call that programs could make"
    elif flow.count > 1:
        why = f"is {flow.count} calls, and programs make one"
    elif flow.media.pauses:
        why = "pauses, of which a program knows nothing"
    elif any(call in one.flows for one in scenario.couplings):
        why = "is coupled with others, which programs cannot be"
    elif scenario.radios:
        why = "is in a radio network, in which programs are not compared"
    if flow.media is None or why is not None:
        raise InputError(f"{scenario.name}: flows.{call}: {why}")
    both = flow.media.both_ways
    names = (call, f"{call}.back" if both else f"{call}.feedback")
    taken = {name for one in scenario.flows if one is not flow for name in one.names}
    if names[1] in taken:
        raise InputError(f"{scenario.name}: flows.{names[1]}: is what the way back of {call} is called; rename it")
    data = scenario.to_dict()
    times = {key: data["flows"][at][key] for key in ("start", "stop") if key in data["flows"][at]}
    ends = (flow.from_, flow.to)
    data["flows"][at : at + 1] = [
        {"name": name, "from": begin, "to": end, **times, "external": {"program": True} if is_call else {}}
        for name, begin, end, is_call in ((names[0], *ends, True), (names[1], *ends[::-1], both))
    ]
    return Standing(Scenario.from_dict(data, scenario.base), names, flow.start, flow.stop)
