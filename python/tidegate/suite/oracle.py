"""The oracle: a sender that knows the network and all flows, and sends nine tenths of its share.

A yardstick for rules, not a scheme: a rule that it breaks asks for the impossible, or is wrong. It takes
part only on request (`tidegate suite run rmcat oracle`), and only where shares are known before a run:
with constant capacities and schedules.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from tidegate.control import Controller, Decision, Limits, Needs, Report
from tidegate.errors import ControllerError, InputError
from tidegate.scenario import Flow, Scenario
from tidegate.suite import shares as sharing
from tidegate.suite.shares import Shares
from tidegate.units import Duration

NAME = "oracle"
"""Its name in suites."""

PART = 0.9
"""Of its share that it sends. The rest is for RTCP, acknowledgements and the swings of an encoder's rate."""

_CLASS = f"python:{__name__}:Oracle"


class Oracle(Controller):
    """Sends at given rates from given times on, whatever is reported.

    >>> plan = Oracle("1000000@0 500000@40000000000")
    >>> first = plan.on_limits(0, Limits(max_bps=2_000_000))
    >>> first.target_bps, first.pacing_bps, first.alarm_ns
    (900000, 1000000, 40000000000)
    """

    # rates are of what is on the wire, as capacities are
    needs = Needs(feedback="none", counts="ip")

    def __init__(self, shares: str = "") -> None:
        """Takes the plan.

        Args:
            shares: Its share from each time on, in order of time: `1000000@0 500000@40000000000`, in bit/s at ns.

        Raises:
            ControllerError: when the text is no plan.
        """
        try:
            pairs = [pair.split("@") for pair in shares.split()]
            self._plan = [(int(time), int(rate)) for rate, time in pairs]
        except ValueError:
            raise ControllerError(f"oracle: shares: found {shares!r}; expected pairs such as 1000000@0") from None
        if not self._plan or any(time >= later for (time, _), (later, _) in pairwise(self._plan)):
            raise ControllerError(f"oracle: shares: found {shares!r}; expected pairs in order of time")
        self._limits = Limits()
        self._rate = int(PART * self._plan[0][1])

    def on_limits(self, now_ns: int, limits: Limits) -> Decision:
        """The bounds of its sources."""
        self._limits = limits
        return self._decision(now_ns)

    def on_report(self, now_ns: int, report: Report) -> None:
        """Feedback tells it nothing new."""
        del now_ns, report

    def on_alarm(self, now_ns: int) -> Decision:
        """The next share."""
        return self._decision(now_ns)

    def coupled_rate(self) -> float:
        """Its rate: it can be coupled, and has a share that goes by priorities anyway."""
        return float(self._rate)

    def on_coupled(self, now_ns: int, rate_bps: int) -> Decision:
        """The rest that other flows leave is in the plan, too."""
        del rate_bps
        return self._decision(now_ns)

    def _decision(self, now_ns: int) -> Decision:
        share = next((rate for time, rate in reversed(self._plan) if time <= now_ns), self._plan[0][1])
        after = next((time for time, _ in self._plan if time > now_ns), None)
        low, high = self._limits.min_bps, self._limits.max_bps
        self._rate = min(max(int(PART * share), low), high)
        return Decision(self._rate, pacing_bps=max(share, self._rate), alarm_ns=after)


def with_oracle(scenario: Scenario, contenders: Sequence[str]) -> Scenario:
    """A scenario with the oracle in all its contenders: each flow is a table of its own, because shares differ.

    A call in both ways becomes two calls in one way each. Names, times and routes stay.

    Raises:
        InputError: when shares are not known before the run.
    """
    shares = sharing.of_scenario(scenario)
    if shares is None:
        raise InputError("the oracle needs capacities that are known before a run: constant ones or schedules")
    data = scenario.to_dict()
    tables = []
    for flow, table in zip(scenario.flows, data["flows"], strict=True):
        tables += list(_alone(flow, table, shares)) if flow.name in contenders else [table]
    names = {flow.name: flow.names for flow in scenario.flows if flow.name in contenders}
    couplings = []
    for coupling in scenario.couplings:
        pairs = coupling.each(names)
        flows, priorities = [name for name, _ in pairs], [priority for _, priority in pairs]
        couplings.append({**coupling.to_dict(), "flows": flows, "priorities": priorities})
    return Scenario.from_dict({**data, "flows": tables, "couplings": couplings}, scenario.base)


def _alone(flow: Flow, table: Mapping[str, Any], shares: Shares) -> Iterator[dict[str, Any]]:
    """Each of several alike, and each direction, as a table of its own."""
    ends = [("", flow.from_, flow.to)]
    if flow.media is not None and flow.media.both_ways:
        ends.append((".back", flow.to, flow.from_))
    for number, name in enumerate(flow.names):
        for suffix, begin, end in ends:
            changed = {
                key: value for key, value in copy.deepcopy(dict(table)).items() if key not in ("count", "start_step")
            }
            changed.update({"name": name + suffix, "from": begin, "to": end})
            changed["start"] = str(Duration(flow.start + number * flow.start_step))
            changed["media"].pop("both_ways", None)
            changed["media"]["controller"] = {"name": _CLASS, "shares": _plan(shares, name + suffix)}
            yield changed


def _plan(shares: Shares, flow: str) -> str:
    """The share at each time from which on it is another one; through pauses it stays what it was."""
    changes: list[tuple[int, int]] = []
    for time, rate in zip(shares.edges_s.tolist(), shares.rate_bps[flow].tolist(), strict=False):
        # without any bound the limits of its sources hold
        rounded = round(min(rate, sharing.UNLIMITED)) if math.isfinite(rate) else round(sharing.UNLIMITED)
        if rounded > 0 and (not changes or changes[-1][1] != rounded):
            changes.append((round(time * 1e9), rounded))
    return " ".join(f"{rate}@{time}" for time, rate in changes) or "1@0"
