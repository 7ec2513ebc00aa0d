"""Remarks on questions that a comparison or a suite cannot answer, because of its network, sources or seeds."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from tidegate.results.stats import Interval
from tidegate.scenario import Link, Scenario
from tidegate.scenario.capacity import Schedule, TraceCapacity
from tidegate.scenario.sources import CbrVideo
from tidegate.show import played, view
from tidegate.units import Rate
from tidegate.wording import listed

_FILLED = 0.9
"""A controller that carried this part of its source's largest rate is limited by the source; a link that is so full is
a limit as well."""

_PLAYED = 0.1
"""The smallest part of a recording that represents its network."""

NAMED = 3
"""The largest number of controllers, or cases, that a sentence names."""

Summary = Mapping[str, Any]
"""A run's summary (`flows`, `links`, `recordings`), with a `session` where a real program ran."""


def doubts(scenario: Scenario, contenders: Collection[str], runs: Mapping[str, Sequence[Summary]]) -> list[str]:
    """Says what these runs of a scenario cannot show: sentences, each after the key of the setting in question.

    Args:
        scenario: The scenario that was run.
        contenders: The names of the flows whose controllers are compared.
        runs: The summaries of each controller's runs.
    """
    return [
        *_limited_by_the_source(scenario, contenders, runs),
        *_little_played(runs),
        *_same_network(scenario, runs),
    ]


def _limited_by_the_source(
    scenario: Scenario, contenders: Collection[str], runs: Mapping[str, Sequence[Summary]]
) -> Iterator[str]:
    """Controllers whose rates cannot be compared: each sent all that its source had, on a link with room for more."""
    maxima = {name: maximum for name in contenders if (maximum := _source_maximum(scenario, name)) is not None}
    if not maxima or len(maxima) < len(contenders):
        return
    key, rate = next(iter(maxima.values()))
    limited = [
        label
        for label, summaries in runs.items()
        if not any("session" in summary for summary in summaries)  # a program has its own source
        and all(_received(summaries, name) >= _FILLED * maximum for name, (_, maximum) in maxima.items())
        and not _used(summaries) >= _FILLED
    ]
    if len(limited) < min(2, len(runs)):
        return
    used = max(_used(runs[label]) for label in limited)
    room = f", on a link that was {100 * used:.0f} % full" if math.isfinite(used) else ""
    why = "so the source limited their rates, not the controllers; raise this setting, or lower the capacity"
    yield f"{key}: {listed(limited, most=NAMED)} sent all that the source can produce ({rate}){room}, {why}"


def _received(summaries: Sequence[Summary], flow: str) -> float:
    """The mean rate of a flow at its receiver; NaN where it never began."""
    flows = (entry for summary in summaries for entry in summary["flows"] if entry["flow"] == flow)
    return Interval.of(entry.get("receive_rate_bps") for entry in flows).mean


def _used(summaries: Sequence[Summary]) -> float:
    """The mean utilisation of the fullest link; NaN where no link has a capacity."""
    link = view.most_utilised_link(summaries)
    return math.nan if link is None else link[1]


def _source_maximum(scenario: Scenario, name: str) -> tuple[str, Rate] | None:
    """The setting that limits a flow's source, and that rate with audio; None where the rate itself is under test."""
    # a flow with `count` is call-1, call-2 and so on in a run
    flow = next((flow for flow in scenario.flows if re.fullmatch(rf"{re.escape(flow.name)}(-\d+)?", name)), None)
    media = None if flow is None else flow.media
    if flow is None or media is None or media.video is False or isinstance(media.video, CbrVideo):
        return None
    if getattr(media.video, "schedule", None):
        return None
    key = f"flows.{flow.name}.media"
    if media.max_rate is not None and media.max_rate <= media.video.max:
        return f"{key}.max_rate", media.max_rate
    return f"{key}.video.max", Rate(media.video.max + (0 if media.audio is False else media.audio.rate))


def _little_played(runs: Mapping[str, Sequence[Summary]]) -> Iterator[str]:
    """Recordings of which too little was played, a sentence for each link."""
    reported = set()
    all_summaries = (summary for summaries in runs.values() for summary in summaries)
    for (direction, trace), part in played.played(all_summaries).items():
        link = direction.removesuffix(".back")
        if part < _PLAYED and link not in reported:
            reported.add(link)
            share = f"{100 * part:.0f} %" if part >= 0.01 else f"{100 * part:.1g} %"  # noqa: PLR2004
            why = "too little to represent this network"
            more = 'use more seeds with offset = "random", or a longer duration'
            yield f"links.{link}.capacity.trace: {share} of {trace} was played, {why}; {more}"


def _same_network(scenario: Scenario, runs: Mapping[str, Sequence[Summary]]) -> Iterator[str]:
    """Scenarios whose network is the same for all seeds, so that intervals show only the noise of the call."""
    several_seeds = max(map(len, runs.values())) > 1
    calls_only = all(flow.media is not None for flow in scenario.flows) and not scenario.sessions
    summaries = [summary for alike in runs.values() for summary in alike]
    if (
        several_seeds
        and calls_only
        and not scenario.radios
        and not any(_random(link, summaries) for link in scenario.links)
    ):
        yield "seed: the network is the same for all seeds, so intervals show only the randomness of encoder and RTCP"


def _random(link: Link, summaries: Sequence[Summary]) -> bool:
    """Whether the behaviour of a link depends on the seed."""
    return any(
        not _is_fixed(name, direction["capacity"], summaries)
        or bool(direction["loss"])
        or bool(direction["byte_error"])
        or direction["jitter"] != "none"
        or getattr(direction["discipline"], "name", direction["discipline"]) not in {"drop-tail", "codel"}
        for name, direction in zip(link.names, link.ways, strict=True)
    )


def _is_fixed(name: str, capacity: object, summaries: Sequence[Summary]) -> bool:
    """Whether the capacity of a direction of a link was the same in all runs."""
    if isinstance(capacity, TraceCapacity):
        # a random offset in a recording that is no longer than the run is its beginning
        begins = {entry["from_s"] for summary in summaries for entry in _entries(summary, "recordings", name)}
        # losses of a recording are drawn at random
        lost = any(entry["dropped_wire"] for summary in summaries for entry in _entries(summary, "links", name))
        return len(begins) <= 1 and (capacity.capacity_only or not lost)
    return isinstance(capacity, Rate | Schedule) or capacity == "infinite"


def _entries(summary: Summary, key: str, link: str) -> list[Mapping[str, Any]]:
    return [entry for entry in summary.get(key, ()) if entry["link"] == link]
