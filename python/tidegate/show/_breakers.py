"""What runs say of their circuit breakers, in sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

_WHY = {
    "RTCP timeout": "no RTCP came back for three intervals (RFC 8083 section 4.1)",
    "media timeout": "reports said that nothing of it arrived (RFC 8083 section 4.2)",
    "congestion": "it sent more than ten times what TCP would get (RFC 8083 section 4.3)",
    "media usability": "what arrived was too late or too full of gaps to be of use (RFC 8083 section 4.4)",
}

_ONE_BY_ONE = 3
"""So many flows get a sentence each."""


def told(summaries: Sequence[Mapping[str, Any]]) -> list[str]:
    """A sentence for each flow whose sender stopped, or would have had to, with the key of the setting; of many one.

    >>> flow = {"flow": "call", "controller": "fixed", "circuit_breaker": "congestion", "circuit_breaker_s": 12.34}
    >>> told([{"flows": [flow]}])[0].partition(" because ")[0]
    'flows.call.media.circuit_breaker: fixed would have stopped at 12.3 s'
    >>> told([{"flows": [flow]}, {"flows": [{**flow, "circuit_breaker_s": 15}]}])[0].partition(" because ")[0]
    'flows.call.media.circuit_breaker: fixed would have stopped in 2 of 2 runs, at 12.3 to 15.0 s,'
    """
    found: dict[tuple[str, str, str], dict[str, list[float]]] = {}
    runs: dict[tuple[str, str], int] = {}
    for summary in summaries:
        for flow in summary.get("flows", ()):
            who = str(flow.get("controller", "")), str(flow["flow"])
            runs[who] = runs.get(who, 0) + 1
            at = flow.get("circuit_breaker_s")
            if isinstance(at, int | float):
                why = str(flow.get("circuit_breaker"))
                did = "stopped" if flow.get("circuit_breaker_stopped") else "would have stopped"
                found.setdefault((who[0], did, why), {}).setdefault(who[1], []).append(float(at))
    sentences = []
    for (controller, did, why), flows in found.items():
        because = f"because {_WHY.get(why, why)}"
        if len(flows) > _ONE_BY_ONE:
            earliest = min(at for times in flows.values() for at in times)
            which = f"{len(flows)} flows of {controller} {did}, the first at {earliest:.1f} s,"
            sentences.append(f"media.circuit_breaker: {which} {because}")
            continue
        for name, times in flows.items():
            of = runs[controller, name]
            first, last = f"{min(times):.1f}", f"{max(times):.1f}"
            when = f"at {first} s" if first == last else f"at {first} to {last} s"
            if of > 1:
                when = f"in {len(times)} of {of} runs, {when},"
            which = f"flows.{name}.media.circuit_breaker"
            sentences.append(f"{which}: {controller} {did} {when} {because}")
    return sentences
