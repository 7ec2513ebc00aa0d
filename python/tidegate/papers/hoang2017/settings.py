"""Tables 2 and 6 to 9: settings read from scenarios and controllers, or measured in runs where runs show them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

import numpy as np

from tidegate.control import registry as controllers
from tidegate.paper import Measure
from tidegate.papers.hoang2017 import fairness
from tidegate.papers.hoang2017.calls import CONFIGURATIONS, STATUSES, THESIS, Call, Pairs, scenario
from tidegate.scenario import Media

NEAR = 700_000.0
"""Largest distance from a capacity of table 9, bit/s: a little less than half of that between two statuses."""


def measures(calls: Mapping[str, Pairs]) -> Iterator[tuple[str, Measure]]:
    """Measures of each parameter in the tables."""
    yield from _table_2()
    yield from _table_6()
    yield from _table_7(calls)
    yield from _statuses(calls)


def _table_2() -> Iterator[tuple[str, Measure]]:
    scenario = fairness.scenario("50ms", fairness.FIXED_THRESHOLD)
    link = next(link for link in scenario.links if link.name == "bottleneck")
    media = next(flow.media for flow in scenario.flows if flow.media is not None)
    yield "table2.queue", Measure.exact(float((link.queue and link.queue.packets) or 0), "packets")
    yield "table2.start", Measure.exact(int(media.first_rate) / 1e3, "kbit/s")
    yield "table2.bottleneck", Measure.exact(int(link.capacity) / 1e6, "Mbit/s")  # type: ignore[arg-type]
    yield "table2.latest", Measure.exact(fairness.LATEST * 1e3, "ms", "delay above which a packet counts as too late")
    yield "table2.interval", Measure.exact(int(media.feedback.report_times) / 1e9, "s")


def _table_6() -> Iterator[tuple[str, Measure]]:
    name, _, preset = THESIS.controller.partition(":")
    used = {**controllers.registry()[name]["defaults"][preset], **THESIS.settings}
    yield "table6.threshold", Measure.exact(float(used["threshold_start"]), "ms")
    yield "table6.k_up", Measure.exact(float(used["k_up"]))
    yield "table6.k_down", Measure.exact(float(used["k_down"]))
    yield "table6.beta", Measure.exact(float(used["beta"]))
    yield "table6.window", Measure.exact(float(used["received_window"]) / 1e3, "s")


def _table_7(calls: Mapping[str, Pairs]) -> Iterator[tuple[str, Measure]]:
    rrtcc = [pair[1] for pairs in calls.values() for pair in pairs]
    media = next(flow.media for flow in scenario(THESIS, "2").flows if flow.media is not None)
    yield "table7.start", Measure.exact(float(int(media.first_rate)), "bit/s")
    yield "table7.most", Measure.exact(float(int(media.largest_rate)), "bit/s")
    yield "table7.least", Measure.exact(float(int(media.least_rate)), "bit/s")
    yield "rates.within", Measure.exact(float(all(_within(call, media) for call in rrtcc)))
    yield "table7.packets", Measure.of([call.packets for call in rrtcc], "packets")
    yield "table7.rtcp", Measure.of([call.feedback for call in rrtcc], "s", "mean time between two reports")
    yield "table7.delay", Measure.of([call.delay[0] for call in rrtcc], "s")
    yield "table7.deviation", Measure.of([call.delay[1] for call in rrtcc], "s")
    spacing = [float(np.diff(call.steps).min()) for call in rrtcc if len(call.steps) > 1]
    yield "table7.network", Measure.exact(min(spacing), "s", "shortest time between two changes of status")
    ended = [call.ended for pairs in calls.values() for pair in pairs for call in pair]
    yield (
        "session.ended",
        Measure.of(
            [float(by_bye) for by_bye in ended if by_bye is not None],
            "",
            "share of sessions that BYE ends",
        ),
    )
    yield (
        "session.lost",
        Measure.of([float(by_bye is None) for by_bye in ended], "", "share of sessions whose BYE is lost"),
    )


def _within(call: Call, media: Media) -> bool:
    low, high = int(media.least_rate), int(media.largest_rate)
    return bool(((call.a >= low) & (call.a <= high)).all())


def _statuses(calls: Mapping[str, Pairs]) -> Iterator[tuple[str, Measure]]:
    same = [_same_network(udp, rrtcc) for pairs in calls.values() for udp, rrtcc in pairs]
    yield "luck.same", Measure.exact(float(np.mean(same)), "", "share of networks that were the same for UDP and RRTCC")
    for configuration, pairs in calls.items():
        met = {float(capacity) for pair in pairs for capacity in pair[0].capacity}
        for status, capacity in zip(STATUSES, CONFIGURATIONS[configuration], strict=True):
            # a status that no seed meets, which happens with few seeds, has no value
            nearest = [value for value in met if abs(value - capacity) < NEAR]
            as_met = Measure.of(nearest, "bit/s", "capacity recorded in the runs")
            yield f"table9.{configuration}.{status}", as_met
    idle, first, second, saturated = CONFIGURATIONS["2"]
    per_seed = [_share_by_capacity(udp) for udp, _ in calls["2"]]
    for status, capacities in (("idle", [idle]), ("cross-traffic", [first, second]), ("saturated", [saturated])):
        shares = [100 * sum(shares_of_run[capacity] for capacity in capacities) for shares_of_run in per_seed]
        yield f"table8.{status}", Measure.of(shares, "%", "share of the intervals with this status")


def _same_network(first: Call, second: Call) -> bool:
    """Whether both runs met the same statuses."""
    return np.array_equal(first.steps, second.steps) and np.array_equal(first.capacity, second.capacity)


def _share_by_capacity(call: Call) -> Mapping[float, float]:
    """Share of a run's intervals by capacity."""
    ends = np.append(call.steps[1:], call.horizon)
    shares: defaultdict[float, float] = defaultdict(float)
    for capacity, length in zip(call.capacity, (ends - call.steps) / call.horizon, strict=True):
        shares[float(capacity)] += float(length)
    return shares
