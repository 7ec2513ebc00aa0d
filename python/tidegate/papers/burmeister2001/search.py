"""Search for the unstated settings of sections 7 and 8, with a test of the chosen ones out of sample.

Each candidate is run for tables 7 to 13. Its score is the root mean square of the deviations from the printed numbers
(delays in seconds and rates count alike: both are below 1). `dithering.CHOSEN` stays within 0.01 of the best. For the
test out of sample a scenario is left out: the best candidate for the other two is chosen, and its deviation in the
third is printed beside the smallest deviation there.

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
from tidegate.papers.burmeister2001.dithering import CHOSEN, COPIED, GRID, LOSERS, TABLES, UnstatedSettings, outcome
from tidegate.papers.burmeister2001.groups import SessionSummary
from tidegate.runs import RunJob, engine

SWAPPED = {2: 3, 3: 2}
"""Scenario by column of table 9: columns 2 and 3 seem to be swapped, so each is compared with the scenario it fits."""


def candidates() -> Iterator[UnstatedSettings]:
    """The chosen settings, then others with another session bandwidth, packet size, delay, capacity or loss."""
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


def describe(candidate: UnstatedSettings) -> str:
    """Describes a candidate in a line."""
    near, far = candidate.delays
    return (
        f"{candidate.bandwidth}, {candidate.size} B, "
        f"centre {candidate.centre.delay}, {candidate.centre.byte_error:g} of bytes, "
        f"branch {candidate.branch.capacity} and {near}, {far}"
    )


SessionRuns = Mapping[tuple[int, str, str, int], SessionSummary]
"""Runs by number of the candidate, parameter, value and scenario."""
Numbers = Mapping[tuple[str, str, int], float]
"""The document's numbers by table, value and scenario."""


def run(settings: Sequence[UnstatedSettings], grid: Sequence[str], seed: int) -> SessionRuns:
    """Runs all candidates."""
    jobs = {
        (number, parameter, value, scenario): Then(
            RunJob(candidate.scenario(parameter, value, scenario, redraw=parameter == "l"), seed),
            SessionSummary.from_run,
        )
        for (number, candidate), parameter, value, scenario in product(enumerate(settings), ("k", "l"), grid, LOSERS)
    }
    results = engine.run_all(list(jobs.values()))
    return {key: result for key, result in zip(jobs, results, strict=True) if isinstance(result, SessionSummary)}


def published() -> Numbers:
    """The document's numbers, without the copied column."""
    numbers = {}
    for claim in load(Path(__file__).parent).claims:
        if claim.cell is not None and claim.cell[0] in TABLES and isinstance(claim.published, int | float):
            table, value, column = claim.cell
            scenario = SWAPPED.get(int(column), int(column)) if table == "table9" else int(column)
            if (table, scenario) != COPIED:
                numbers[table, value, scenario] = float(claim.published)
    return numbers


def deviation(
    done: SessionRuns, candidate: int, scenarios: Sequence[int], grid: Sequence[str], printed: Numbers
) -> float:
    """Root mean square of the deviations from the printed numbers of some scenarios."""
    deviations = [
        outcome(done[candidate, parameter, value, scenario], scenario)[column] - printed[table, value, scenario]
        for (table, (parameter, column)), value, scenario in product(TABLES.items(), grid, scenarios)
        if (table, value, scenario) in printed
    ]
    squares = [difference**2 for difference in deviations if not math.isnan(difference)]
    return math.sqrt(math.fsum(squares) / len(squares)) if squares else math.inf


def left_out(
    done: SessionRuns, count: int, grid: Sequence[str], printed: Numbers
) -> Iterator[tuple[int, int, float, float, float]]:
    """Each scenario left out, the best candidate for the others, its deviations there and here, the smallest here."""
    for scenario in LOSERS:
        remaining = [number for number in LOSERS if number != scenario]
        inside = [deviation(done, candidate, remaining, grid, printed) for candidate in range(count)]
        best = min(range(count), key=inside.__getitem__)
        outside = [deviation(done, candidate, [scenario], grid, printed) for candidate in range(count)]
        yield scenario, best, inside[best], outside[best], min(outside)


def say(*cells: str) -> None:
    """Prints a line and flushes it, because a search takes long."""
    sys.stdout.write(f"{'  '.join(cells)}\n")
    sys.stdout.flush()


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints the candidates, the best first, then the test with each scenario left out."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--every", type=int, default=1, help="step through the values of k and l", metavar="N")
    parser.add_argument("--candidates", type=int, help="number of candidates, from the first on", metavar="N")
    options = parser.parse_args(arguments)
    settings = list(candidates())[: options.candidates]
    grid, printed = GRID[:: options.every], published()
    done = run(settings, grid, options.seed)
    total = [deviation(done, number, list(LOSERS), grid, printed) for number in range(len(settings))]
    say("deviation", "candidate")
    for number in sorted(range(len(settings)), key=total.__getitem__):
        say(f"{total[number]:.4f}", describe(settings[number]))
    say("left out", "deviation of others", "deviation of left out", "minimum of left out", "best for others")
    for scenario, best, inside, outside, smallest in left_out(done, len(settings), grid, printed):
        say(str(scenario), f"{inside:.4f}", f"{outside:.4f}", f"{smallest:.4f}", describe(settings[best]))


if __name__ == "__main__":
    main()
