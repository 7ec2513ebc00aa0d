"""The subject: the flow that a scenario, its runs and their comparison are about. No other module chooses it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tidegate.errors import InputError

if TYPE_CHECKING:
    from tidegate.scenario import Flow, Scenario

_NAMED = re.compile(r"subject(-\d+)?")
"""Names of the subject: a flow `subject` with a `count` becomes `subject-1`, `subject-2` and so on in a run."""


def place(flows: Sequence[tuple[str, str]]) -> int:
    """The position of the subject in a list of flows, each a name and a kind.

    It is the first called `subject`, of any kind; else the first program that stands for a call; else the first with
    media; else the first.

    >>> place([("web", "tcp"), ("call", "media")]), place([("call", "media"), ("subject-1", "udp")])
    (1, 1)
    >>> place([("beside", "media"), ("call", "program")])
    1
    """
    subjects = [position for position, (name, _) in enumerate(flows) if _NAMED.fullmatch(name)]
    calls = [position for wanted in ("program", "media") for position, (_, kind) in enumerate(flows) if kind == wanted]
    return (*subjects, *calls, 0)[0]


def of_summary(summary: Mapping[str, Any]) -> Mapping[str, Any]:
    """The metrics of a run's subject.

    Raises:
        InputError: when the run has no flows.
    """
    flows: Sequence[Mapping[str, Any]] = summary["flows"]
    if not flows:
        raise InputError(f"{summary.get('name', 'summary')}: the run has no flow")
    return flows[place([(flow["flow"], flow["kind"]) for flow in flows])]


def of_scenario(scenario: Scenario, part: str) -> int:
    """The position of the subject in a scenario's flows, for a comparison that replaces `part` of its media.

    Raises:
        InputError: when the subject has no media.
    """
    flows: Sequence[Flow] = scenario.flows
    if not any(flow.media for flow in flows):
        reason = f"; members of sessions have no {part}" if scenario.sessions else ""
        raise InputError(f"{scenario.name}: no media flow has a {part} to replace{reason}")
    position = place([(flow.name, flow.kind) for flow in flows])
    if flows[position].media is None:
        flow = flows[position]
        reason = f'the subject "{flow.name}" is a flow of kind {flow.kind} and has no {part} to replace'
        raise InputError(f"{scenario.name}: {reason}")
    return position
