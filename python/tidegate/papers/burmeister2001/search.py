"""How the settings of sections 7 and 8, which the document does not state, were chosen, and what they say otherwise.

Each candidate is run for tables 7 to 13, and deviates from the printed numbers by a root mean square (delays in seconds
and rates count alike: both are below 1). `dithering.CHOSEN` stays within 0.01 of the best. To judge out of sample, a
scenario is left out: the best candidate for the other two is chosen, and its deviation from the third is told beside
the least there.

    python -m tidegate.papers.burmeister2001.search            # all of them, one seed
    python -m tidegate.papers.burmeister2001.search --every 4  # a coarse look: every fourth value of k and l
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

from tidegate.paper import Then
from tidegate.paper.reading import load
from tidegate.papers.burmeister2001.dithering import CHOSEN, COPIED, GRID, LOSERS, TABLES, Chosen, outcome
from tidegate.papers.burmeister2001.groups import Seen
from tidegate.runs import RunJob, engine

SWAPPED = {2: 3, 3: 2}
"""Columns 2 and 3 of table 9 seem to be swapped; so they are compared with the scenario that they fit."""


def candidates() -> Iterator[Chosen]:
    """What was chosen, and around it other session bandwidths, packets, delays, capacities and losses."""
    yield CHOSEN
    for bandwidth in ("64kbps", "80kbps", "100kbps", "110kbps", "135kbps", "150kbps", "200kbps"):
        yield replace(CHOSEN, bandwidth=bandwidth)
    for size in (250, 500, 1000):
        yield replace(CHOSEN, size=size)
    for delays in (("40ms", "44ms"), ("60ms", "66ms"), ("80ms", "80ms"), ("80ms", "100ms"), ("100ms", "110ms")):
        yield replace(CHOSEN, delays=delays)
    for capacity in ("150kbps", "300kbps", "1Mbps"):
        yield replace(CHOSEN, branch=replace(CHOSEN.branch, capacity=capacity))
    for delay in ("1ms", "5ms", "20ms", "40ms"):
        yield replace(CHOSEN, centre=replace(CHOSEN.centre, delay=delay))
    for byte_error in (2e-6, 4e-6, 2e-5):
        yield replace(CHOSEN, centre=replace(CHOSEN.centre, byte_error=byte_error))


def named(one: Chosen) -> str:
    """A candidate in a line."""
    near, far = one.delays
    return (
        f"{one.bandwidth}, {one.size} B, centre {one.centre.delay}, {one.centre.byte_error:g} of bytes, "
        f"branch {one.branch.capacity} and {near}, {far}"
    )


Tried = Mapping[tuple[int, str, str, int], Seen]
"""Runs by candidate, parameter, value and scenario."""
Numbers = Mapping[tuple[str, str, int], float]
"""The document's by table, value and scenario."""


def run(tried: Sequence[Chosen], grid: Sequence[str], seed: int) -> Tried:
    """All of them."""
    jobs = {
        (number, parameter, value, scenario): Then(
            RunJob(one.scenario(parameter, value, scenario, redraw=parameter == "l"), seed), Seen.of
        )
        for (number, one), parameter, value, scenario in product(enumerate(tried), ("k", "l"), grid, LOSERS)
    }
    results = engine.run_all(list(jobs.values()))
    return {key: seen for key, seen in zip(jobs, results, strict=True) if isinstance(seen, Seen)}


def published() -> Numbers:
    """The document's numbers but for those of a copy."""
    found = {}
    for claim in load(Path(__file__).parent).claims:
        if claim.cell is not None and claim.cell[0] in TABLES and isinstance(claim.published, int | float):
            table, value, column = claim.cell
            scenario = SWAPPED.get(int(column), int(column)) if table == "table9" else int(column)
            if (table, scenario) != COPIED:
                found[table, value, scenario] = float(claim.published)
    return found


def deviation(done: Tried, candidate: int, scenarios: Sequence[int], grid: Sequence[str], printed: Numbers) -> float:
    """Root mean square over the printed numbers of some scenarios."""
    off = [
        outcome(done[candidate, parameter, value, scenario], scenario)[what] - printed[table, value, scenario]
        for (table, (parameter, what)), value, scenario in product(TABLES.items(), grid, scenarios)
        if (table, value, scenario) in printed
    ]
    known = [one**2 for one in off if not math.isnan(one)]
    return math.sqrt(math.fsum(known) / len(known)) if known else math.inf


def left_out(
    done: Tried, count: int, grid: Sequence[str], printed: Numbers
) -> Iterator[tuple[int, int, float, float, float]]:
    """Each scenario left out, what the others choose, its deviation there and here, and the least here."""
    for scenario in LOSERS:
        others = [one for one in LOSERS if one != scenario]
        inside = [deviation(done, one, others, grid, printed) for one in range(count)]
        best = min(range(count), key=inside.__getitem__)
        here = [deviation(done, one, [scenario], grid, printed) for one in range(count)]
        yield scenario, best, inside[best], here[best], min(here)


def say(*cells: str) -> None:
    """Prints a line at once: a search takes long."""
    sys.stdout.write(f"{'  '.join(cells)}\n")
    sys.stdout.flush()


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints the candidates, the best first, and what each scenario left out comes to."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--every", type=int, default=1, help="every so manyth value of k and l")
    parser.add_argument("--candidates", type=int, help="so many of them only")
    given = parser.parse_args(arguments)
    tried = list(candidates())[: given.candidates]
    grid, printed = GRID[:: given.every], published()
    done = run(tried, grid, given.seed)
    total = [deviation(done, number, list(LOSERS), grid, printed) for number in range(len(tried))]
    say("deviation", "candidate")
    for one in sorted(range(len(tried)), key=total.__getitem__):
        say(f"{total[one]:.4f}", named(tried[one]))
    say("left out", "of the others", "of the one left out", "least there", "chosen by the others")
    for scenario, best, inside, here, least in left_out(done, len(tried), grid, printed):
        say(str(scenario), f"{inside:.4f}", f"{here:.4f}", f"{least:.4f}", named(tried[best]))


if __name__ == "__main__":
    main()
