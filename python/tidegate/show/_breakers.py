"""Sentences on the circuit breakers (RFC 8083) of runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

_WHY = {
    "RTCP timeout": "no RTCP came back for three intervals (RFC 8083 section 4.1)",
    "media timeout": "reports said that none of the flow's packets arrived (RFC 8083 section 4.2)",
    "congestion": "the flow sent more than ten times the rate that TCP would get (RFC 8083 section 4.3)",
    "media usability": "the flow's packets arrived too late or with too many gaps to be of use (RFC 8083 section 4.4)",
}

_MAX_FLOWS = 3
"""The largest number of flows with a sentence each; more flows of a controller share one sentence."""


def sentences(summaries: Sequence[Mapping[str, Any]]) -> list[str]:
    """Sentences on the flows whose senders stopped, or would have stopped, each after the key of the setting.

    >>> flow = {"flow": "call", "controller": "fixed", "circuit_breaker": "congestion", "circuit_breaker_s": 12.34}
    >>> sentences([{"flows": [flow]}])[0].partition(" because ")[0]
    'flows.call.media.circuit_breaker: fixed would have stopped at 12.3 s'
    >>> sentences([{"flows": [flow]}, {"flows": [{**flow, "circuit_breaker_s": 15}]}])[0].partition(" because ")[0]
    'flows.call.media.circuit_breaker: fixed would have stopped in 2 of 2 runs, at 12.3 to 15.0 s,'
    """
    stops: dict[tuple[str, str, str], dict[str, list[float]]] = {}
    runs: dict[tuple[str, str], int] = {}
    for summary in summaries:
        for flow in summary.get("flows", ()):
            controller, name = str(flow.get("controller", "")), str(flow["flow"])
            runs[controller, name] = runs.get((controller, name), 0) + 1
            time = flow.get("circuit_breaker_s")
            if isinstance(time, int | float):
                why = str(flow.get("circuit_breaker"))
                did = "stopped" if flow.get("circuit_breaker_stopped") else "would have stopped"
                stops.setdefault((controller, did, why), {}).setdefault(name, []).append(float(time))
    texts = []
    for (controller, did, why), flows in stops.items():
        because = f"because {_WHY.get(why, why)}"
        if len(flows) > _MAX_FLOWS:
            earliest = min(time for times in flows.values() for time in times)
            which = f"{len(flows)} flows of {controller} {did}, the first at {earliest:.1f} s,"
            texts.append(f"media.circuit_breaker: {which} {because}")
            continue
        for name, times in flows.items():
            count = runs[controller, name]
            first, last = f"{min(times):.1f}", f"{max(times):.1f}"
            when = f"at {first} s" if first == last else f"at {first} to {last} s"
            if count > 1:
                when = f"in {len(times)} of {count} runs, {when},"
            which = f"flows.{name}.media.circuit_breaker"
            texts.append(f"{which}: {controller} {did} {when} {because}")
    return texts
