"""The parts of recorded networks that runs play, in sentences and as fractions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any


def sentences(summaries: Iterable[Mapping[str, Any]]) -> list[str]:
    """Sentences on the parts of recorded networks that runs play: one for each link with a recording.

    >>> entry = {"link": "lte", "trace": "lte.csv", "from_s": 700.0, "used_s": 60.0, "length_s": 2668.0}
    >>> sentences([{"recordings": [entry]}])
    ['lte plays lte.csv: 60 s of 2668 s, from 700 s on']
    >>> sentences([{"seed": 1, "recordings": [entry]}, {"seed": 2, "recordings": [{**entry, "from_s": 730.0}]}])
    ['lte plays lte.csv: 60 s of 2668 s in each run, from 2 start times; 3 % of the recording in all']
    """
    return [f"{link} plays {trace}: {_extent(entries)}" for (link, trace), entries in _by_link(summaries).items()]


def played(summaries: Iterable[Mapping[str, Any]]) -> dict[tuple[str, str], float]:
    """The fraction of each recording that the runs play together, by link and recording."""
    return {key: _fraction(entries) for key, entries in _by_link(summaries).items()}


def _by_link(summaries: Iterable[Mapping[str, Any]]) -> dict[tuple[str, str], list[Mapping[str, Any]]]:
    """The entries on recordings in summaries, with their seeds, by link and recording."""
    links: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for summary in summaries:
        for entry in summary.get("recordings", ()):
            key = str(entry["link"]), str(entry["trace"])
            links.setdefault(key, []).append({**entry, "seed": summary.get("seed")})
    return links


def _extent(entries: Sequence[Mapping[str, Any]]) -> str:
    """The played part in words."""
    length, used = entries[0]["length_s"], max(entry["used_s"] for entry in entries)
    starts = {float(entry["from_s"]) for entry in entries}
    part = f"{used:.10g} s of {length:.10g} s"
    if len(starts) == 1:
        several_seeds = len({entry["seed"] for entry in entries}) > 1
        same = ", the same for all seeds" if several_seeds and used < length else ""
        return f"{part}, from {starts.pop():.10g} s on{same}"
    return (
        f"{part} in each run, from {len(starts)} start times; {100 * _fraction(entries):.0f} % of the recording in all"
    )


def _fraction(entries: Sequence[Mapping[str, Any]]) -> float:
    length, used = float(entries[0]["length_s"]), float(max(entry["used_s"] for entry in entries))
    # playback wraps around at the end; stretches are added in order, each without the part that earlier ones cover
    starts = {float(entry["from_s"]) for entry in entries}
    stretches = sorted((start - lap, start - lap + used) for start in starts for lap in (0.0, length))
    covered = reached = 0.0
    for begin, end in stretches:
        covered += max(0.0, min(end, length) - max(begin, reached))
        reached = max(reached, min(end, length))
    return covered / length if length else 1.0
