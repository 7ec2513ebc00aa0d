"""Questions that a comparison cannot answer as it is: what its network and its sources leave no room for."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from tidegate.results.stats import Interval
from tidegate.running import Run
from tidegate.scenario import Flow, Link, Scenario
from tidegate.scenario import _subject as subject
from tidegate.scenario.links import Schedule, TraceCapacity
from tidegate.scenario.sources import CbrVideo
from tidegate.show import _recordings, _view
from tidegate.units import Duration, Rate

_FILLED = 0.9
"""Who carried so much of the most that its sources have is held by them; a link that is so full holds as well."""

_PLAYED = 0.1
"""So much of a recording has to be played for a word on that network."""

_NAMED = 3
"""So many controllers are named."""


def doubts(scenario: Scenario, runs: Mapping[str, Sequence[Run]]) -> list[str]:
    """What cannot be told from these runs of a scenario, each with the key of the setting that it is about.

    Args:
        scenario: What was run; the controllers take the place of its subject's.
        runs: The runs of each controller.
    """
    return [*_held_by_the_source(scenario, runs), *_little_played(runs), *_same_network(scenario, runs)]


def _held_by_the_source(scenario: Scenario, runs: Mapping[str, Sequence[Run]]) -> Iterator[str]:
    """Where two that carried all that their sources had, on a link with room, cannot be told apart by their rates."""
    flow = scenario.flows[subject.of_scenario(scenario, "controller")]
    if flow.media is None or (most := _most(flow)) is None:
        return
    key, rate = most
    held = [
        label
        for label, some in runs.items()
        if not any(run.session for run in some)  # a program has its own source
        and Interval.of(run.metrics().get("receive_rate_bps") for run in some).mean >= _FILLED * rate
        and not _used(some) >= _FILLED
    ]
    if len(held) < min(2, len(runs)):
        return
    names = ", ".join(held[:_NAMED]) + (f" and {len(held) - _NAMED} more" if len(held) > _NAMED else "")
    used = max(_used(runs[label]) for label in held)
    room = f", on a link that was {100 * used:.0f} % full" if math.isfinite(used) else ""
    why = "so that their rates say nothing of them; set it higher, or the capacity lower"
    yield f"{key}: {names} sent all that the source has ({rate}){room}, {why}"


def _used(runs: Sequence[Run]) -> float:
    """The mean utilisation of the fullest link; NaN where none has a capacity."""
    link = _view.bottleneck(runs)
    return Interval.of(
        one.get("utilisation") for run in runs for one in run.summary["links"] if one["link"] == link
    ).mean


def _most(flow: Flow) -> tuple[str, Rate] | None:
    """The setting that bounds what a flow has to send, and what that is with its audio; None where it is its nature."""
    media = flow.media
    if media is None or media.video is False or isinstance(media.video, CbrVideo):
        return None
    if getattr(media.video, "schedule", None):
        return None
    key = f"flows.{flow.name}.media"
    if media.max_rate is not None and media.max_rate <= media.video.max:
        return f"{key}.max_rate", media.max_rate
    return f"{key}.video.max", Rate(media.video.max + (0 if media.audio is False else media.audio.rate))


def _little_played(runs: Mapping[str, Sequence[Run]]) -> Iterator[str]:
    """Where next to nothing of a recording was played."""
    told = set()
    for (way, trace), part in _recordings.played(run.summary for some in runs.values() for run in some).items():
        link = way.removesuffix(".back")
        if part < _PLAYED and link not in told:
            told.add(link)
            share = f"{100 * part:.0f} %" if part >= 0.01 else f"{100 * part:.1g} %"  # noqa: PLR2004
            more = 'more seeds with offset = "random", or a longer duration, play more'
            yield f"links.{link}.capacity.trace: {share} of {trace} was played, which says little of it; {more}"


def _same_network(scenario: Scenario, runs: Mapping[str, Sequence[Run]]) -> Iterator[str]:
    """Where seeds make no network another one, and intervals are of the call's own noise."""
    several = max(len(some) for some in runs.values()) > 1
    calls_only = all(flow.media is not None for flow in scenario.flows) and not scenario.sessions
    if several and calls_only and scenario.lte is None and not any(_random(link) for link in scenario.links):
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
