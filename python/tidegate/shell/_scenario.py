"""Scenarios of sessions: external flows for the programs replace the call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tidegate.errors import InputError, did_you_mean
from tidegate.scenario import Scenario
from tidegate.scenario.moves import way_back
from tidegate.shell._network import SIDES
from tidegate.units import Duration

FLOWS = 128
"""Flows of programs that are distinguished at each side: `FLOWS` of `crates/live/src/shell`."""


def with_programs(scenario: Scenario, call: str | None = None, flows: int = FLOWS) -> Scenario:
    """The scenario whose call is made by programs: A is where its sender was, B where its receiver was.

    All other flows stay, in the same queues. Packets of A are in the flows `A-1`, `A-2` and so on, one for each pair
    of ports; packets of B are in `B-1` and so on. If the call belongs to a group of users in a radio network, the
    programs are at one user of that group; if those users come and go, at one more user that stays all the time.

    Args:
        scenario: Links and flows.
        call: The flow to be replaced; by default the first with media, else the first.
        flows: Number of flows of each side.

    Raises:
        InputError: when there is no such flow, or the scenario has external parts, which another driver needs.
    """
    data = scenario.to_dict()
    tables: list[dict[str, Any]] = list(data.get("flows", ()))
    _check_driver(scenario)
    taken = [name for flow in scenario.flows for name in flow.names if name.partition("-")[0] in SIDES]
    if taken:
        raise InputError(f"{scenario.name}: flows.{taken[0]}: the programs' flows are called A-1, B-1 and so on")
    names = [flow.name for flow in scenario.flows]
    if call is not None and call not in names:
        hint = did_you_mean(call, names) or f"; available: {', '.join(names) or 'none'}"
        raise InputError(f"--call {call}: {scenario.name} has no flow of this name{hint}")
    media = [index for index, flow in enumerate(scenario.flows) if flow.media is not None]
    if not names:
        raise InputError(f"{scenario.name}: programs can only replace a flow, and the scenario has only sessions")
    index = names.index(call) if call is not None else (*media, 0)[0]
    replaced = scenario.flows[index]
    ends = (replaced.from_, replaced.to)
    if user_group := _user_group(scenario, ends):
        key, group = user_group
        name = f"{group}-program"
        data[key] = _with_user(data[key], group, name)
        ends = (name if ends[0] == group else ends[0], name if ends[1] == group else ends[1])
    elif replaced.count > 1:
        tables[index] = {**tables[index], "count": replaced.count - 1}
    else:
        del tables[index]
    sides = [[f"{side}-{number}" for number in range(1, flows + 1)] for side in SIDES]
    for name_a, name_b in zip(*sides, strict=True):
        tables.append({"name": name_a, "from": ends[0], "to": ends[1], "external": {}})
        tables.append({"name": name_b, "from": ends[1], "to": ends[0], "external": {}})
    if moves := _moves(scenario, replaced.name if replaced.count == 1 else "", *sides):
        data["moves"] = moves
    return Scenario.from_dict({**data, "flows": tables}, scenario.base)


def _moves(scenario: Scenario, call: str, there: Sequence[str], back: Sequence[str]) -> list[Any]:
    """The moves of a scenario, those of the replaced call as moves of the programs' flows, there and back."""
    moves: list[Any] = []
    for number, move in enumerate(scenario.to_dict().get("moves", ()), 1):
        if move.get("flow") not in (call, f"{call}.back"):
            moves.append(move)
        elif move["key"] != "path":
            reason = f"found {move['key']} of {call}; programs do that by themselves: leave this move out"
            raise InputError(f"{scenario.name}: moves[{number}]: {reason}")
        else:
            change = {key: value for key, value in move.items() if key != "signalled"}
            for flows, path in ((there, move["value"]), (back, way_back(move["value"]))):
                moves += ({**change, "flow": flow, "value": path} for flow in flows)
    return moves


def _user_group(scenario: Scenario, ends: tuple[str, str]) -> tuple[str, str] | None:
    """The key of a radio network and the end that is a group of several users in it, if there is one."""
    groups = {group.name: key for key, radio in scenario.radios.items() for group in radio.users if group.several}
    return next(((groups[end], end) for end in ends if end in groups), None)


def _with_user(radio: dict[str, Any], group: str, name: str) -> dict[str, Any]:
    """The radio network with one user of a group separated from it, under another name."""
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
        raise InputError(f"{scenario.name}: the flow {external[0]} is external, which only tidegate.simpy can drive")


@dataclass(frozen=True)
class Standing:
    """A scenario in which programs make one call under its name, so that its numbers compare with other runs."""

    live: Scenario
    """The scenario with the programs' flows."""
    sides: tuple[str, str]
    """Flows of A and B: the name of the call, and that of its way back, or `NAME.feedback`."""
    start: Duration
    """Begin of the call."""
    stop: Duration | None
    """End of the call; None: the end of the scenario."""


def standing_for(scenario: Scenario, call: str) -> Standing:
    """The scenario in which programs make one call; all other flows and random numbers stay as they are.

    Args:
        scenario: Links and flows.
        call: The flow with media that the programs replace.

    Raises:
        InputError: when it cannot be a call of programs.
    """
    _check_driver(scenario)
    index = next(index for index, flow in enumerate(scenario.flows) if flow.name == call)
    flow = scenario.flows[index]
    why = None
    if flow.media is None:
        why = f"the flow is {flow.kind}, but programs can only make calls"
    elif flow.count > 1:
        why = f"the flow stands for {flow.count} calls, but programs make one"
    elif flow.media.pauses:
        why = "the flow pauses, but programs do not know when"
    elif any(call in coupling.flows for coupling in scenario.couplings):
        why = "the flow is coupled with other flows, but programs cannot be coupled"
    elif scenario.radios:
        why = "the scenario has radio networks, in which programs cannot be compared"
    if flow.media is None or why is not None:
        raise InputError(f"{scenario.name}: flows.{call}: {why}")
    both = flow.media.both_ways
    names = (call, f"{call}.back" if both else f"{call}.feedback")
    taken = {name for peer in scenario.flows if peer is not flow for name in peer.names}
    if names[1] in taken:
        raise InputError(
            f"{scenario.name}: flows.{names[1]}: the backward flow of {call} has this name; rename this flow"
        )
    data = scenario.to_dict()
    times = {key: data["flows"][index][key] for key in ("start", "stop") if key in data["flows"][index]}
    ends = (flow.from_, flow.to)
    if moves := _moves(scenario, call, names[:1], names[1:]):
        data["moves"] = moves
    data["flows"][index : index + 1] = [
        {"name": name, "from": begin, "to": end, **times, "external": {"program": True} if is_call else {}}
        for name, begin, end, is_call in ((names[0], *ends, True), (names[1], *ends[::-1], both))
    ]
    return Standing(Scenario.from_dict(data, scenario.base), names, flow.start, flow.stop)
