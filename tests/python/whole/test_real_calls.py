"""`docs/real-calls.md` shows what was measured, and what was simulated beside it comes out again."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest

import real_calls
from real_calls import CASES, NUMBERS, estimate_of, last
from support import ROOT, check_table, markdown, shared

PAGE = ROOT / "docs/real-calls.md"


@dataclass(frozen=True)
class Limit:
    """How far the simulation may be from libwebrtc in the box."""

    number: str
    label: str
    most: float
    relative: bool
    """The limit is a share of libwebrtc's own number, in percent."""

    @property
    def unit(self) -> str:
        """What the difference is in."""
        return " %" if self.relative else " s" if self.number.endswith("_s") else " points"

    def differs(self, ours: float, theirs: float) -> float:
        """By how much, signed."""
        return 100 * (ours / theirs - 1) if self.relative else ours - theirs


LIMITS = (
    Limit("estimate_before_kbps", "estimate before (kb/s)", 10, relative=True),
    Limit("estimate_during_kbps", "estimate during (kb/s)", 10, relative=True),
    Limit("estimate_after_kbps", "estimate after (kb/s)", 10, relative=True),
    Limit("loss_percent", "loss (%)", 1, relative=False),
    Limit("queue_peak_ms", "queue's peak (ms)", 15, relative=True),
    Limit("to_90_s", "time to 90 % (s)", 0.5, relative=False),
)
DIGITS = {"loss_percent": 2, "freeze_s": 1, "freezes": 1, "to_90_s": 1}


def shown(number: str, value: float) -> str:
    """As the page has it."""
    if not np.isfinite(value):
        return "-" if np.isnan(value) else "never"
    return f"{value:.{DIGITS.get(number, 0)}f}"


PACED = "gcc:libwebrtc,burst=0ms"
BESIDE = {"wrtc": ("gcc", PACED, f"{PACED}+jitter"), "chromium": ("gcc", "gcc+jitter")}
"""The controller that each program is compared with."""


def gaps(program: str) -> Iterator[list[str]]:
    """Rows of the table of gaps: a program's calls, and simulated ones."""
    for name in CASES:
        theirs = real_calls.medians(program, name)
        for limit in LIMITS:
            number = limit.number
            if np.isnan(theirs[number]):
                continue
            cells = [name, limit.label, shown(number, theirs[number])]
            for ours in BESIDE[program]:
                value = real_calls.medians(ours, name)[number]
                differs = limit.differs(value, theirs[number])
                off = f"{differs:+.{0 if limit.relative else DIGITS[number]}f}{limit.unit}"
                cells += [shown(number, value), off if abs(differs) <= limit.most else f"**{off}**"]
            yield [*cells, f"{limit.most:g}{limit.unit}"]


def rows_of(case: str) -> Iterator[list[str]]:
    """Rows of a case's table: medians over the sessions that were quiet."""
    found = real_calls.read()
    for program, label in real_calls.LABELS.items():
        mine = [one for one in found if (one.program, one.case) == (program, case)]
        if not mine:
            continue
        quiet = sum(one.state != "noisy" for one in mine)
        middle = real_calls.medians(program, case)
        runs = str(quiet) if quiet == len(mine) else f"{quiet} of {len(mine)}"
        yield [label, runs, *(shown(number, middle[number]) for number in COLUMNS)]


COLUMNS = {
    "estimate_before_kbps": "estimate before (kb/s)",
    "estimate_during_kbps": "during",
    "estimate_after_kbps": "after",
    "receive_kbps": "received (kb/s)",
    "loss_percent": "lost (%)",
    "queue_p95_ms": "queue p95 (ms)",
    "queue_peak_ms": "peak (ms)",
    "freezes": "freezes",
    "freeze_s": "frozen (s)",
    "to_90_s": "time to 90 % (s)",
}


@pytest.mark.parametrize("case", CASES)
def test_the_tables_are_what_was_measured(case: str) -> None:
    head = ["who", "sessions", *COLUMNS.values()]
    check_table(PAGE, case, markdown(head, 1, list(rows_of(case))))


@pytest.mark.parametrize("program", BESIDE)
def test_the_gaps_are_what_was_measured(program: str) -> None:
    labels = [word for ours in BESIDE[program] for word in (real_calls.LABELS[ours], "off by")]
    head = ["scenario", "what", real_calls.LABELS[program], *labels, "limit"]
    check_table(PAGE, f"gaps of {program}", markdown(head, 2, list(gaps(program))))


@pytest.mark.parametrize("contender", real_calls.SIMULATED)
@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_the_simulated_calls_come_out_again(case: real_calls.Case, contender: str) -> None:
    if case.trace:
        os.environ.setdefault("TIDEGATE_SHARED", str(shared()))
    rows = [one for one in real_calls.read() if (one.program, one.case, one.seed) == (contender, case.name, 1)]
    assert len(rows) == 1
    numbers = real_calls.simulated(case, 1, contender).numbers
    for name in NUMBERS:
        assert numbers.get(name, np.nan) == pytest.approx(rows[0].numbers[name], rel=1e-4, nan_ok=True), name


def test_what_was_noisy_is_in_no_median() -> None:
    for row in real_calls.read():
        assert row.state in {"quiet", "noisy", "simulated"}
        assert row.tries <= real_calls.TRIES
        # the verdict's own limit
        assert row.state != "quiet" or row.numbers["late_p99_ms"] <= 5


def test_limits_have_both_sides() -> None:
    queue = next(limit for limit in LIMITS if limit.number == "queue_peak_ms")
    assert queue.differs(115, 100) == pytest.approx(15)
    assert queue.differs(85, 100) == pytest.approx(-15)
    loss = next(limit for limit in LIMITS if limit.number == "loss_percent")
    assert loss.differs(0.2, 1.2) == pytest.approx(-1)


def test_the_time_to_a_level_is_between_two_notes() -> None:
    times = np.array([9.0, 10.0, 11.0, 12.0, 13.0])
    # doubles each second from 11 s on; 200 is reached in the middle of two notes, as logarithms have it
    values = np.array([900.0, 100.0, 100.0, 200.0 * 2**-0.5, 200.0 * 2**0.5])
    assert real_calls._crossing(times, values, 10.0, 200.0) == pytest.approx(2.5)
    assert np.isnan(real_calls._crossing(times, values, 10.0, 400.0))
    assert real_calls._crossing(times, values, 12.5, 100.0) == 0.0


def test_a_capacity_is_averaged_over_each_second() -> None:
    changes, rates = np.array([0.0, 1.25, 1.75]), np.array([8.0, 4.0, 16.0])
    assert real_calls._mean_rate(changes, rates, 0, 1) == 8
    assert real_calls._mean_rate(changes, rates, 1, 2) == 8 * 0.25 + 4 * 0.5 + 16 * 0.25


def test_statistics_are_read_as_lists_and_as_tables() -> None:
    pairs = [
        {"type": "candidate-pair", "nominated": False, "availableOutgoingBitrate": 300000},
        {"type": "candidate-pair", "nominated": True, "availableOutgoingBitrate": 250000},
        {"type": "inbound-rtp", "freezeCount": 2},
    ]
    assert estimate_of({"report": pairs}) == 250000
    assert estimate_of({"report": {str(n): one for n, one in enumerate(pairs)}}) == 250000
    assert last(pairs, "freezeCount") == 2
    assert estimate_of({"report": {"availableOutgoingBitrate": 5.0}}) == 5.0
    assert np.isnan(last(pairs, "framesEncoded"))
