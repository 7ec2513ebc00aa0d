"""The subject: the flow that a scenario, its runs and their comparison are about. Who it is, is decided here alone."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tidegate.errors import InputError

if TYPE_CHECKING:
    from tidegate.scenario import Flow, Scenario

_NAMED = re.compile(r"subject(-\d+)?")
"""Several flows alike that are called `subject` are `subject-1`, `subject-2` and so on in a run."""


def place(flows: Sequence[tuple[str, str]]) -> int:
    """The position of the subject in a list of flows, each a name and a kind.

    It is the first that is called `subject`, whatever its kind; else the program that stands for a call; else the first
    with media; else the first.

    >>> place([("web", "tcp"), ("call", "media")]), place([("call", "media"), ("subject-1", "udp")])
    (1, 1)
    >>> place([("beside", "media"), ("call", "program")])
    1
    """
    named = [at for at, (name, _) in enumerate(flows) if _NAMED.fullmatch(name)]
    calls = [at for wanted in ("program", "media") for at, (_, kind) in enumerate(flows) if kind == wanted]
    return (*named, *calls, 0)[0]


def of_summary(summary: Mapping[str, Any]) -> Mapping[str, Any]:
    """The metrics of a run's subject.

    Raises:
        InputError: when the run has no flows.
    """
    flows: Sequence[Mapping[str, Any]] = summary["flows"]
    if not flows:
        raise InputError(f"{summary.get('name', 'the run')}: has no flow")
    return flows[place([(flow["flow"], flow["kind"]) for flow in flows])]


def of_scenario(scenario: Scenario, what: str) -> int:
    """The position of the subject in a scenario's flows, for a comparison that replaces `what` in its media.

    Raises:
        InputError: when the subject has no media.
    """
    flows: Sequence[Flow] = scenario.flows
    if not any(flow.media for flow in flows):
        why = "; members of sessions have none" if scenario.sessions else ""
        raise InputError(f"{scenario.name}: has no media flow whose {what} could be replaced{why}")
    at = place([(flow.name, flow.kind) for flow in flows])
    if flows[at].media is None:
        found = f'its subject is "{flows[at].name}", which is {flows[at].kind} and has no {what} that could be replaced'
        raise InputError(f"{scenario.name}: {found}")
    return at
