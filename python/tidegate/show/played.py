"""How much runs play of the recorded networks in them, in sentences and as a share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any


def told(summaries: Iterable[Mapping[str, Any]]) -> list[str]:
    """How much runs with these summaries play of each recorded network: a sentence for each link that plays one.

    >>> one = {"link": "lte", "trace": "lte.csv", "from_s": 700.0, "used_s": 60.0, "length_s": 2668.0}
    >>> told([{"recordings": [one]}])
    ['lte plays lte.csv: 60 s of 2668 s, from 700 s on']
    >>> told([{"seed": 1, "recordings": [one]}, {"seed": 2, "recordings": [{**one, "from_s": 730.0}]}])
    ['lte plays lte.csv: 60 s of 2668 s in each run, from 2 places; 3 % of it in all']
    """
    return [f"{link} plays {trace}: {_said(some)}" for (link, trace), some in _links(summaries).items()]


def played(summaries: Iterable[Mapping[str, Any]]) -> dict[tuple[str, str], float]:
    """What part of a recording these runs play in all, by link and recording: 1 is all of it."""
    return {which: _part(some) for which, some in _links(summaries).items()}


def _links(summaries: Iterable[Mapping[str, Any]]) -> dict[tuple[str, str], list[Mapping[str, Any]]]:
    links: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for summary in summaries:
        for one in summary.get("recordings", ()):
            links.setdefault((str(one["link"]), str(one["trace"])), []).append({**one, "seed": summary.get("seed")})
    return links


def _said(some: Sequence[Mapping[str, Any]]) -> str:
    length, used = some[0]["length_s"], max(one["used_s"] for one in some)
    places = {float(one["from_s"]) for one in some}
    part = f"{used:.10g} s of {length:.10g} s"
    if len(places) == 1:
        several = len({one["seed"] for one in some}) > 1
        same = ", whatever the seed" if several and used < length else ""
        return f"{part}, from {places.pop():.10g} s on{same}"
    return f"{part} in each run, from {len(places)} places; {100 * _part(some):.0f} % of it in all"


def _part(some: Sequence[Mapping[str, Any]]) -> float:
    length, used = float(some[0]["length_s"]), float(max(one["used_s"] for one in some))
    # what goes over the end goes on at the beginning; stretches in order, each without what those before had
    places = {float(one["from_s"]) for one in some}
    stretches = sorted((start - lap, start - lap + used) for start in places for lap in (0.0, length))
    covered = reached = 0.0
    for begin, end in stretches:
        covered += max(0.0, min(end, length) - max(begin, reached))
        reached = max(reached, min(end, length))
    return covered / length if length else 1.0
