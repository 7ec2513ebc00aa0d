"""Runs of each paper's experiment without the mechanism that the paper is about."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest

from tidegate import paper
from tidegate.paper import Judgement, Result, Verdict, words
from tidegate.paper._mutations import AS_RUN, Effect, MutatedVerdict, Mutations, effect
from tidegate.papers.burmeister2001 import losses, unicast
from tidegate.papers.lissah2019 import pictures
from tidegate.runs import Run, RunJob
from tidegate.runs.pool import Tick
from tidegate.scenario import Scenario
from tidegate.units import Rate

BLIND = Path(__file__).with_name("blind.py")
"""Controller that takes the place of Sprout."""
Change = Callable[[Scenario], Scenario]


@dataclass(frozen=True)
class Mutation:
    """A change of the scenarios that removes a mechanism."""

    about: str
    """Description for the reader of the page."""
    change: Change
    constructed: Sequence[str] = ()
    """Patterns of the claims that compare the mechanism with what replaces it, or state what the mutation sets."""


def _name(choice: Any) -> str:
    """Name of a controller, as on the command line or with its settings as keys."""
    return choice if isinstance(choice, str) else choice.name


def _media_controllers(scenario: Scenario) -> Iterator[tuple[str, str]]:
    """The media flows of a scenario, and the names of their controllers."""
    for flow in scenario.flows:
        if flow.media is not None:
            yield flow.name, _name(flow.media.controller)


def controller(prefix: str, replacement: str, **keys: Any) -> Change:
    """Replaces controllers whose name begins with a prefix, and sets `keys` of the flow's media."""

    def change(scenario: Scenario) -> Scenario:
        changes: dict[str, Any] = {}
        for flow, name in _media_controllers(scenario):
            if name.startswith(prefix):
                changes[f"flows.{flow}.media.controller"] = replacement
                changes |= {f"flows.{flow}.media.{key}": value for key, value in keys.items()}
        return scenario.with_changes(changes) if changes else scenario

    return change


def _shorter_gaps(scenario: Scenario) -> Scenario:
    """Takes the table's default gap away, and makes the divisor of its equation larger, whatever it is."""
    changes: dict[str, Any] = {}
    for flow, spec in _media_controllers(scenario):
        if spec.startswith(("lookup_table:table", "lookup_table:equation")):
            kept = [key for key in spec.split(",") if not key.startswith(("scale=", "default_gap="))]
            changes[f"flows.{flow}.media.controller"] = ",".join([*kept, "default_gap=0ms", "scale=1e18"])
    return scenario.with_changes(changes) if changes else scenario


def sessions(change: Callable[[Any], Mapping[str, Any]]) -> Change:
    """Changes RTP sessions; `change` gives the keys to change of a session."""

    def changed(scenario: Scenario) -> Scenario:
        changes = {
            f"sessions.{session.name}.{key}": value
            for session in scenario.sessions
            for key, value in change(session).items()
        }
        return scenario.with_changes(changes) if changes else scenario

    return changed


def _as_avp(session: Any) -> Mapping[str, Any]:
    return {
        "profile": "avp",
        **{f"members.{member.name}.profile": "avp" for member in session.members if member.profile},
    }


def _at_once(session: Any) -> Mapping[str, Any]:
    # with two members, neither waits for the other anyway
    return {"avpf.l": 0, "avpf.k": 0} if len(session.members) > 2 else {}


def _twice_as_often(session: Any) -> Mapping[str, Any]:
    avp = session.profile == "avp" or any(member.profile == "avp" for member in session.members)
    return {"minimum": "2.5s"} if avp and session.minimum >= 1_000_000_000 else {}


def _udp_for_tcp(scenario: Scenario) -> Scenario:
    """Replaces the document's TCP by UDP with packets of its size at 1.2 Mb/s; our own two TCP flows in step stay."""
    if not any(flow.name == "tcp" for flow in scenario.flows):
        return scenario
    flows = [
        flow if flow.tcp is None else flow.model_copy(update={"tcp": None, "udp": _constant(flow.tcp.packet_size)})
        for flow in scenario.flows
    ]
    return scenario.model_copy(update={"flows": flows})


def _constant(size: Any) -> Any:
    from tidegate import Udp

    return Udp(rate="1.2Mbps", packet_size=size)


def _held_at(rate: str | None = None) -> Change:
    """Holds the rate of controllers at a constant, by default the largest; feedback and what they compute stay."""

    def change(scenario: Scenario) -> Scenario:
        return _with_media(scenario, lambda media: _at_constant_rate(media, rate))

    return change


def _at_constant_rate(media: Any, rate: str | None) -> Mapping[str, Any]:
    if not _name(media.controller).startswith(("gcc", "tfrc")):
        return {}
    constant = media.largest_rate if rate is None else Rate.parse(rate)
    return {"min_rate": constant, "max_rate": constant, "start_rate": constant}


def _as_rfc3448(scenario: Scenario) -> Scenario:
    """Gives TFRC under RFC 5348's rules those of RFC 3448; ns-2's settings stay."""

    def keys(media: Any) -> Mapping[str, Any]:
        choice = media.controller
        old = not isinstance(choice, str) and choice.name == "tfrc" and choice.preset == "rfc5348"
        return {"controller": choice.model_copy(update={"preset": "rfc3448"})} if old else {}

    return _with_media(scenario, keys)


def _with_media(scenario: Scenario, keys: Callable[[Any], Mapping[str, Any]]) -> Scenario:
    """Changes the media of flows; `keys` gives those to change of a flow's media."""
    flows = [
        flow.model_copy(update={"media": flow.media.model_copy(update=dict(changes))})
        if flow.media is not None and (changes := keys(flow.media))
        else flow
        for flow in scenario.flows
    ]
    return scenario.model_copy(update={"flows": flows})


MUTATIONS: Mapping[str, Mapping[str, Mutation]] = {
    "hoang2017": {
        "constant": Mutation(
            "RRTCC sends at a constant 4.7 Mb/s, its mean rate, whatever it computes from the same feedback",
            _held_at("4700kbps"),
        ),
    },
    "burmeister2001": {
        "no suppression": Mutation(
            "no member waits for reports of other members before it reports (l = k = 0)", sessions(_at_once)
        ),
        "AVP": Mutation("all members use AVP: no early feedback, 5 s between reports", sessions(_as_avp)),
        "interval": Mutation("AVP's minimum interval is 2.5 s instead of 5 s", sessions(_twice_as_often)),
    },
    "vardhan": {
        "constant": Mutation(
            "TFRC sends at its application's rate, whatever it computes from the same feedback", _held_at()
        ),
        "RFC 3448": Mutation(
            "section 2's TFRC of RFC 5348 has the rules of RFC 3448",
            _as_rfc3448,
            constructed=("start-up-delay", "5348-sends-faster"),
        ),
        "no TCP": Mutation("TCP becomes UDP at a constant 1.2 Mb/s", _udp_for_tcp),
    },
    "hermanns2013": {
        "blind": Mutation(
            "Sprout's forecast becomes a constant 12 Mb/s",
            controller("sprout", f"python:{BLIND}:Blind"),
            # of both Sprouts; and of the forecast itself, which is noted with each report
            constructed=(
                "cure-*",
                *("tick", "forecast*", "file-transfer", "not-enough-data"),
            ),
        )
    },
    "scream_l4s": {
        "constant": Mutation("SCReAM becomes a sender at a constant 40 Mb/s", controller("scream", "fixed:40Mbps")),
        "no L4S": Mutation(
            "SCReAM's packets have no ECN codepoint: SCReAM reacts to losses and delay, in the classic queue",
            controller("scream", "scream:ericsson-2026-07,ecn=off"),
        ),
    },
    "lissah2019": {
        "none": Mutation(
            "no default gap, and gaps that are a hundred thousandth of those computed from the same reports",
            _shorter_gaps,
            constructed=("divisors",),
        ),
    },
}
"""By paper, then by name."""

SEEDS = {"hoang2017": 6, "burmeister2001": 3, "vardhan": 3, "hermanns2013": 3, "lissah2019": 5, "scream_l4s": 3}
"""Number of seeds by paper: so few that all runs take minutes; with two, intervals are too wide to be apart."""


RunCache = dict[tuple[str, int | None, str | None], Run]


@contextmanager
def changed(change: Change | None, cache: RunCache) -> Iterator[None]:
    """Applies a change to the scenario of every run that starts in the context; scenarios in the cache are not run again."""
    original = RunJob.__call__

    def call(self: RunJob, tick: Tick) -> Run:
        assert isinstance(self.scenario, Scenario)
        scenario = self.scenario if change is None else change(self.scenario)
        if scenario.record != "summary":  # records of single packets are too large for the cache
            return original(replace(self, scenario=scenario), tick)
        key = (scenario.model_dump_json(), self.seed, self.record)
        if key not in cache:
            cache[key] = original(replace(self, scenario=scenario), tick)
        return cache[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RunJob, "__call__", call)
        # slowest, and least about the mechanisms: decoded pictures, and a hundred draws of a cell of table 3
        patch.setattr(pictures, "lacking", lambda: "decoded pictures are left out")
        patch.setattr(unicast, "DRAWS", 10)
        # a verdict turns if intervals are apart, and that of a single run is unknown
        patch.setattr(losses, "QUICK_SEEDS", SEEDS["burmeister2001"])
        yield


def computed(key: str, progress: Callable[[str], None] = lambda _: None) -> Mutations:
    """Runs the paper as it is, and once with each mutation."""
    results: dict[str, Result] = {}
    cache: RunCache = {}
    for name, change in {AS_RUN: None, **{name: mutation.change for name, mutation in MUTATIONS[key].items()}}.items():
        with changed(change, cache):
            results[name] = paper.run(key, seeds=SEEDS[key])
        progress(f"{key}: {name}")
    rows = zip(*(result.judgements for result in results.values()), strict=True)
    verdicts = {
        row[0].claim.id: {
            name: MutatedVerdict(judgement.verdict, words.ours(judgement), _effect(key, name, row[0], judgement))
            for name, judgement in zip(results, row, strict=True)
        }
        for row in rows
        if row[0].verdict is not Verdict.NOT_RUN
    }
    return Mutations(SEEDS[key], {name: mutation.about for name, mutation in MUTATIONS[key].items()}, verdicts)


def _effect(key: str, name: str, as_run: Judgement, mutated: Judgement) -> Effect:
    """Effect of a mutation on a claim of a paper."""
    if name == AS_RUN:
        return Effect.UNCHANGED
    patterns = MUTATIONS[key][name].constructed
    constructed = any(fnmatchcase(as_run.claim.id, pattern) for pattern in patterns)
    return effect(as_run, mutated, constructed=constructed)
