"""Each paper's experiment with the mechanism taken away that the paper is about."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import pytest

from tidegate import paper
from tidegate.paper import Result, Verdict, words
from tidegate.paper._mutations import AS_RUN, Answer, Mutations
from tidegate.papers.burmeister2001 import unicast
from tidegate.papers.lissah2019 import pictures
from tidegate.runs import Run, RunJob
from tidegate.runs.pool import Tick
from tidegate.scenario import Scenario

Change = Callable[[Scenario], Scenario]


@dataclass(frozen=True)
class Mutation:
    """One thing taken away."""

    about: str
    """What a reader of the page is told."""
    change: Change


def _of(scenario: Scenario) -> Iterator[tuple[str, str]]:
    """The media flows of a scenario, and the names of their controllers."""
    for flow in scenario.flows:
        if flow.media is not None:
            found: Any = flow.media.controller
            yield flow.name, found if isinstance(found, str) else found.name


def controller(begins: str, other: str, **keys: Any) -> Change:
    """Another controller for those whose name begins so; `keys` are of the flow's media."""

    def change(scenario: Scenario) -> Scenario:
        changes: dict[str, Any] = {}
        for flow, name in _of(scenario):
            if name.startswith(begins):
                changes[f"flows.{flow}.media.controller"] = other
                changes |= {f"flows.{flow}.media.{key}": value for key, value in keys.items()}
        return scenario.with_changes(changes) if changes else scenario

    return change


def sessions(change: Callable[[Any], Mapping[str, Any]]) -> Change:
    """The same for RTP sessions: the keys to change of each."""

    def changed(scenario: Scenario) -> Scenario:
        changes = {
            f"sessions.{one.name}.{key}": value for one in scenario.sessions for key, value in change(one).items()
        }
        return scenario.with_changes(changes) if changes else scenario

    return changed


def _as_avp(session: Any) -> Mapping[str, Any]:
    return {"profile": "avp", **{f"members.{one.name}.profile": "avp" for one in session.members if one.profile}}


def _at_once(session: Any) -> Mapping[str, Any]:
    # of two members neither waits for the other anyway
    return {"avpf.l": 0, "avpf.k": 0} if len(session.members) > 2 else {}


def _twice_as_often(session: Any) -> Mapping[str, Any]:
    avp = session.profile == "avp" or any(one.profile == "avp" for one in session.members)
    return {"minimum": "2.5s"} if avp and session.minimum >= 1_000_000_000 else {}


def _udp_for_tcp(scenario: Scenario) -> Scenario:
    """The document's TCP without control: packets of its size at 1.2 Mb/s. What is ours, two TCP flows in step, stays."""
    if not any(one.name == "tcp" for one in scenario.flows):
        return scenario
    flows = [
        one if one.tcp is None else one.model_copy(update={"tcp": None, "udp": _constant(one.tcp.packet_size)})
        for one in scenario.flows
    ]
    return scenario.model_copy(update={"flows": flows})


def _constant(size: Any) -> Any:
    from tidegate import Udp

    return Udp(rate="1.2Mbps", packet_size=size)


MUTATIONS: Mapping[str, Mapping[str, Mutation]] = {
    "hoang2017": {
        "constant": Mutation(
            "RRTCC becomes a sender at a constant 4.7 Mb/s, its mean rate", controller("gcc", "fixed:4700kbps")
        ),
    },
    "burmeister2001": {
        "no suppression": Mutation("no member waits for others before it reports (l = k = 0)", sessions(_at_once)),
        "AVP": Mutation("all members use AVP: no early feedback, 5 s between reports", sessions(_as_avp)),
        "interval": Mutation("AVP's least interval is 2.5 s instead of 5", sessions(_twice_as_often)),
    },
    "vardhan": {
        "constant": Mutation(
            "TFRC becomes a sender that goes on at its application's rate", controller("tfrc", "fixed:100Mbps")
        ),
        "no TCP": Mutation("TCP becomes UDP at a constant 1.2 Mb/s", _udp_for_tcp),
    },
    "hermanns2013": {"gcc": Mutation("Sprout becomes GCC", controller("sprout", "gcc:libwebrtc-v1"))},
    "scream_l4s": {
        "constant": Mutation("SCReAM becomes a sender at a constant 40 Mb/s", controller("scream", "fixed:40Mbps")),
        "no L4S": Mutation(
            "SCReAM's packets bear no codepoint: it answers losses and delay, in the classic queue",
            controller("scream", "scream:ericsson-2026-07,ecn=off"),
        ),
    },
    "lissah2019": {
        "none": Mutation(
            "the table answers no loss: frames go out as they come", controller("lookup_table", "lookup_table:none")
        ),
    },
}
"""By paper, then by name."""

SEEDS = {"hoang2017": 6, "burmeister2001": 1, "vardhan": 3, "hermanns2013": 1, "lissah2019": 2, "scream_l4s": 2}
"""So few that all of it takes minutes; two are needed for an interval."""


Known = dict[tuple[str, int | None, str | None], Run]


@contextmanager
def changed(change: Change | None, known: Known) -> Iterator[None]:
    """Every run that begins meanwhile is of the changed scenario; what is not changed by it, and known, is not run anew."""
    original = RunJob.__call__

    def call(self: RunJob, tick: Tick) -> Run:
        assert isinstance(self.scenario, Scenario)
        made = self.scenario if change is None else change(self.scenario)
        if made.record != "summary":  # single packets are too much to keep
            return original(replace(self, scenario=made), tick)
        key = (made.model_dump_json(), self.seed, self.record)
        if key not in known:
            known[key] = original(replace(self, scenario=made), tick)
        return known[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RunJob, "__call__", call)
        # what takes longest and says least of the mechanisms: decoded pictures, and one of table 3's cells a hundred times
        patch.setattr(pictures, "lacking", lambda: "decoded pictures are left out")
        patch.setattr(unicast, "DRAWS", 10)
        yield


def found(key: str, progress: Callable[[str], None] = lambda _: None) -> Mutations:
    """Runs the paper as it is, and once with each mutation."""
    results: dict[str, Result] = {}
    known: Known = {}
    for name, change in {AS_RUN: None, **{name: one.change for name, one in MUTATIONS[key].items()}}.items():
        with changed(change, known):
            results[name] = paper.run(key, seeds=SEEDS[key])
        progress(f"{key}: {name}")
    rows = zip(*(one.judgements for one in results.values()), strict=True)
    answers = {
        row[0].claim.id: {name: Answer(one.verdict, words.ours(one)) for name, one in zip(results, row, strict=True)}
        for row in rows
        if row[0].verdict is not Verdict.NOT_RUN
    }
    return Mutations(SEEDS[key], {name: one.about for name, one in MUTATIONS[key].items()}, answers)
