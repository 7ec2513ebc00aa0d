"""The scenario of a session: its call is replaced by what programs send."""

from __future__ import annotations

from typing import Any

from tidegate.errors import InputError, did_you_mean
from tidegate.scenario import Scenario

FLOWS = 32
"""Flows of programs that are told apart, for each side: `FLOWS` of `crates/live/src/shell`."""

SIDES = ("A", "B")


def with_programs(scenario: Scenario, call: str | None = None, flows: int = FLOWS) -> Scenario:
    """The scenario whose call is made by programs: A is where its sender was, B where its receiver was.

    All other flows stay, so that they are in the same queues. What A sends is in the flows `A-1`, `A-2` and so on, one
    for each pair of ports that is seen, what B sends in `B-1` and so on.

    Args:
        scenario: Links and flows.
        call: The flow to be replaced; by default the first with media, else the first.
        flows: How many of each side.

    Raises:
        InputError: when there is no such flow, or parts of the scenario belong to another driver.
    """
    data = scenario.to_dict()
    given: list[dict[str, Any]] = list(data.get("flows", ()))
    external = [link.name for link in scenario.links if getattr(link, "capacity", None) == "external"]
    external += [flow.name for flow in scenario.flows if flow.external is not None]
    if external:
        raise InputError(f"{scenario.name}: {external[0]} is external, which only tidegate.simpy can drive")
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
    if replaced.count > 1:
        given[at] = {**given[at], "count": replaced.count - 1}
    else:
        del given[at]
    for number in range(1, flows + 1):
        for side, (start, end) in zip(SIDES, (ends, ends[::-1]), strict=True):
            given.append({"name": f"{side}-{number}", "from": start, "to": end, "external": {}})
    return Scenario.from_dict({**data, "flows": given}, scenario.base)
