"""Questions that a comparison or a suite cannot answer as it is: what network and sources leave no room for."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from tidegate.results.stats import Interval
from tidegate.scenario import Link, Scenario
from tidegate.scenario.links import Schedule, TraceCapacity
from tidegate.scenario.sources import CbrVideo
from tidegate.show import played, view
from tidegate.units import Duration, Rate
from tidegate.wording import listed

_FILLED = 0.9
"""Who carried so much of the most that its sources have is held by them; a link that is so full holds as well."""

_PLAYED = 0.1
"""So much of a recording has to be played for a word on that network."""

NAMED = 3
"""So many controllers, or cases, are named."""

Seen = Mapping[str, Any]
"""A run's summary (`flows`, `links`, `recordings`), with a `session` where a real program was tried."""


def doubts(scenario: Scenario, contenders: Collection[str], runs: Mapping[str, Sequence[Seen]]) -> list[str]:
    """What cannot be told from these runs of a scenario, each with the key of the setting that it is about.

    Args:
        scenario: What was run.
        contenders: The flows that took the controllers, by their names in a run.
        runs: What is known of the runs of each controller.
    """
    return [*_held_by_the_source(scenario, contenders, runs), *_little_played(runs), *_same_network(scenario, runs)]


def _held_by_the_source(
    scenario: Scenario, contenders: Collection[str], runs: Mapping[str, Sequence[Seen]]
) -> Iterator[str]:
    """Where two that carried all that their sources had, on a link with room, cannot be told apart by their rates."""
    mosts = {name: most for name in contenders if (most := _most(scenario, name)) is not None}
    if not mosts or len(mosts) < len(contenders):
        return
    key, rate = next(iter(mosts.values()))
    held = [
        label
        for label, some in runs.items()
        if not any("session" in one for one in some)  # a program has its own source
        and all(_received(some, name) >= _FILLED * most for name, (_, most) in mosts.items())
        and not _used(some) >= _FILLED
    ]
    if len(held) < min(2, len(runs)):
        return
    used = max(_used(runs[label]) for label in held)
    room = f", on a link that was {100 * used:.0f} % full" if math.isfinite(used) else ""
    why = "so that their rates say nothing of them; set it higher, or the capacity lower"
    yield f"{key}: {listed(held, most=NAMED)} sent all that the source has ({rate}){room}, {why}"


def _received(runs: Sequence[Seen], flow: str) -> float:
    """The mean rate of a flow at its receiver; NaN where it never began."""
    return Interval.of(one.get("receive_rate_bps") for run in runs for one in run["flows"] if one["flow"] == flow).mean


def _used(runs: Sequence[Seen]) -> float:
    """The mean utilisation of the fullest link; NaN where none has a capacity."""
    found = view.fullest(runs)
    return math.nan if found is None else found[1]


def _most(scenario: Scenario, name: str) -> tuple[str, Rate] | None:
    """The setting that bounds what a flow has to send, and what that is with its audio; None where it is its nature."""
    # several alike are call-1, call-2 and so on in a run
    flow = next((one for one in scenario.flows if re.fullmatch(rf"{re.escape(one.name)}(-\d+)?", name)), None)
    media = None if flow is None else flow.media
    if flow is None or media is None or media.video is False or isinstance(media.video, CbrVideo):
        return None
    if getattr(media.video, "schedule", None):
        return None
    key = f"flows.{flow.name}.media"
    if media.max_rate is not None and media.max_rate <= media.video.max:
        return f"{key}.max_rate", media.max_rate
    return f"{key}.video.max", Rate(media.video.max + (0 if media.audio is False else media.audio.rate))


def _little_played(runs: Mapping[str, Sequence[Seen]]) -> Iterator[str]:
    """Where next to nothing of a recording was played."""
    told = set()
    for (way, trace), part in played.played(run for some in runs.values() for run in some).items():
        link = way.removesuffix(".back")
        if part < _PLAYED and link not in told:
            told.add(link)
            share = f"{100 * part:.0f} %" if part >= 0.01 else f"{100 * part:.1g} %"  # noqa: PLR2004
            more = 'more seeds with offset = "random", or a longer duration, play more'
            yield f"links.{link}.capacity.trace: {share} of {trace} was played, which says little of it; {more}"


def _same_network(scenario: Scenario, runs: Mapping[str, Sequence[Seen]]) -> Iterator[str]:
    """Where seeds make no network another one, and intervals are of the call's own noise."""
    several = max(len(some) for some in runs.values()) > 1
    calls_only = all(flow.media is not None for flow in scenario.flows) and not scenario.sessions
    if several and calls_only and not scenario.radios and not any(_random(link) for link in scenario.links):
        yield "seed: it changes nothing but the noise of encoder and RTCP, and of that alone are the intervals"


def _random(link: Link) -> bool:
    """Whether a seed has anything to say in what a cable does."""
    return any(
        not _known(way["capacity"])
        or bool(way["loss"])
        or bool(way["byte_error"])
        or way["jitter"] != "none"
        or getattr(way["discipline"], "name", way["discipline"]) not in {"drop-tail", "codel"}
        for way in link.ways
    )


def _known(capacity: object) -> bool:
    if isinstance(capacity, TraceCapacity):
        # what it tells of losses is drawn, too
        return capacity.capacity_only and isinstance(capacity.offset, Duration)
    return isinstance(capacity, Rate | Schedule) or capacity == "infinite"
