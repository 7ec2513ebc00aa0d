"""Claims on TFRC, each as a rule on the tables of `tfrc_experiments.py` and `tfrc_situations.py`.

`docs/tfrc-behaviour.md` shows them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass

import tfrc_experiments as tfrc
import tfrc_situations as after
from gcc_experiments import Experiment, Row

EXPERIMENTS: dict[str, Experiment] = {**tfrc.EXPERIMENTS, after.SITUATIONS.name: after.SITUATIONS}
"""All of them by name."""


@dataclass(frozen=True)
class Claim:
    """A claim, its source, the rule that decides, and the numbers that it decides on."""

    name: str
    words: str
    source: str
    rule: str
    numbers: str
    holds: bool

    @property
    def verdict(self) -> str:
        """The word for it."""
        return "confirmed" if self.holds else "refuted"


def rows(name: str) -> dict[str, Row]:
    """The rows of an experiment by label."""
    return {row.label: row for row in EXPERIMENTS[name].rows()}


def _column(name: str, column: str, starting: str = "") -> list[float]:
    return [row[column] for label, row in rows(name).items() if label.startswith(starting)]


def _span(values: Iterable[float], digits: int, unit: str = "") -> str:
    all_of = sorted(values)
    low, high = (f"{value:.{digits}f}" for value in (all_of[0], all_of[-1]))
    return (low if low == high else f"{low} to {high}") + unit


def _within(values: Iterable[float], low: float, high: float) -> bool:
    return all(low <= value <= high for value in values)


def _steady() -> list[Claim]:
    ratios = _column("steady", "ratio")
    return [
        Claim(
            "equation",
            "A flow under random loss sends what the equation gives for its loss event rate and round-trip time",
            "RFC 5348, 3.1 and 4.3",
            "sent / equation from 0.85 to 1.15 in each row",
            _span(ratios, 2),
            _within(ratios, 0.85, 1.15),
        )
    ]


def _fairness() -> list[Claim]:
    ratios = _column("fairness", "TFRC/TCP")
    crowded = [row["TFRC/TCP"] for label, row in rows("fairness").items() if label.endswith(("n = 16", "n = 32"))]
    parts = [row["TFRC/TCP"] for row in rows("smoothness").values()]
    return [
        Claim(
            "fair",
            "Reasonably fair beside TCP: generally within a factor of two of what TCP sends under the same conditions",
            "RFC 5348, 1",
            "mean TFRC / mean TCP from 0.5 to 2 for each n and queue",
            _span(ratios, 2),
            _within(ratios, 0.5, 2),
        ),
        Claim(
            "even",
            "The normalised throughputs of both stay near one, however many flows share the link",
            "our reading of Floyd et al. 2000, simulations",
            "mean TFRC / mean TCP from 0.8 to 1.25 for n = 16 and 32, too",
            _span(crowded, 2),
            _within(crowded, 0.8, 1.25),
        ),
        Claim(
            "smooth",
            "Much lower variation of throughput over time than TCP",
            "RFC 5348, 1; Floyd et al. 2000",
            "coefficient of variation below TCP's at each time scale from 0.2 to 10 s",
            f"{_span(parts, 2)} of TCP's",
            all(part < 1 for part in parts),
        ),
    ]


def _response() -> list[Claim]:
    call, tcp = (rows("steps")[name] for name in ("TFRC", "TCP"))
    down, up = "half-way down (s)", "half-way up (s)"
    needed = _column("persistent", "least") + _column("persistent", "most")
    increase = _column("relief", "most")
    return [
        Claim(
            "slower",
            "It responds more slowly than TCP to changes of the available bandwidth",
            "RFC 5348, 1",
            "half-way later than TCP after both steps",
            f"down {call[down]:.1f} and {tcp[down]:.1f} s, up {call[up]:.1f} and {tcp[up]:.1f} s",
            call[down] > tcp[down] and call[up] > tcp[up],
        ),
        Claim(
            "halving",
            "Persistent congestion halves its rate only after several round trips, where TCP needs one",
            "Floyd et al. 2000, appendix",
            "more than two round trips (one is for the news) in each run",
            f"{_span(needed, 1)} round trips",
            min(needed) > 2,
        ),
        Claim(
            "increase",
            "When losses end it grows by less than the packet in a round trip that TCP adds each round trip",
            "Floyd et al. 2000, appendix",
            "less than 1 in each run and window of 5 s, with discounting and without",
            f"at most {increase[0]:.2f} and {increase[1]:.2f}",
            max(increase) < 1,
        ),
    ]


def _voice() -> list[Claim]:
    voip, small = rows("voip"), rows("small")
    goal = [row["tfrc-sp, no gap (kb/s)"] / row["TCP (kb/s)"] for row in voip.values()]
    plain = [row["tfrc (kb/s)"] / row["TCP (kb/s)"] for row in voip.values()]
    packets = [row["small/TCP"] for label, row in small.items() if label.startswith("tfrc-sp, queue in packets")]
    in_bytes = [row["small/TCP"] for label, row in small.items() if label.startswith("tfrc-sp, queue in bytes")]
    unsent = voip["5 % lost"]
    return [
        Claim(
            "small",
            "With small packets plain TFRC gets far less than a TCP with full ones under the same losses",
            "RFC 4828, 1",
            "160 bytes of payload: less than half of TCP's in each row",
            f"{_span(plain, 2)} of TCP's",
            max(plain) < 0.5,
        ),
        Claim(
            "goal",
            "TFRC-SP achieves the bandwidth of a TCP with packets of up to 1500 bytes",
            "RFC 4828, abstract",
            "without the 10 ms: from 0.5 to 2 of TCP's in each row",
            f"{_span(goal, 2)} of TCP's",
            _within(goal, 0.5, 2),
        ),
        Claim(
            "voice",
            "TFRC-SP carries a voice call of 64 kb/s where TFRC does not",
            "RFC 4828, 1",
            "5 % lost: of the voice TFRC-SP leaves less than 1 % unsent, TFRC more",
            f"{unsent['voice not sent, tfrc-sp (%)']:.1f} and {unsent['voice not sent, tfrc (%)']:.1f} %",
            unsent["voice not sent, tfrc-sp (%)"] < 1 < unsent["voice not sent, tfrc (%)"],
        ),
        Claim(
            "similar",
            "TFRC-SP competes reasonably fairly where small and large packets are dropped alike",
            "RFC 4828, abstract",
            "queue in packets: from 0.5 to 2 of TCP's",
            f"{_span(packets, 2)} of TCP's",
            _within(packets, 0.5, 2),
        ),
        Claim(
            "bytes",
            "In drop-tail queues in bytes it can receive considerably more than its share",
            "RFC 4828, abstract",
            "queue in bytes: more than twice TCP's in at least one row",
            f"{_span(in_bytes, 1)} times TCP's",
            max(in_bytes) > 2,
        ),
    ]


def _situations() -> list[Claim]:
    table = rows("situations")
    cases = [f"{loss:g} % lost" for loss in after.SITUATION_LOSSES]
    new, old = ([table[f"{rules}, {case}"] for case in cases] for rules in tfrc.RULES)

    def both(column: str, digits: int, unit: str) -> str:
        return " and ".join(_span((row[column] for row in rows_), digits, unit) for rows_ in (new, old))

    def less(column: str) -> bool:
        return all(a[column] < b[column] for a, b in zip(new, old, strict=True))

    a_round_trip = after.SEGMENT_BYTES * 8 / after.LONG_RTT / 1e3  # kb/s
    falls = [after.silence(rules, 0.0, seed)["falls"] for rules in tfrc.RULES for seed in after.seeds(0.0)]
    waits = [b[0] - a[0] for run in falls for a, b in itertools.pairwise(run)]
    parts = [part for run in falls for _, part in run]
    old_floor, new_floor = (rows_[0]["X after it (kb/s)"] / a_round_trip for rows_ in (old, new))
    return [
        Claim(
            "start",
            "RFC 5348 shortens the start-up delay (four packets in the first round trip, not one)",
            "Vardhan, 2.1; RFC 5348, 4.2",
            "1 Mb/s arrives sooner than with RFC 3448",
            both("start (s)", 1, " s"),
            less("start (s)"),
        ),
        Claim(
            "four",
            "In silence the allowed rate is halved at each expiry of the nofeedback timer, which is four round trips",
            "Vardhan, 2.1; RFC 5348, 4.3 and 4.4",
            "nothing lost: each step is to a half, and four round trips after the one before",
            f"to {_span(parts, 2)}, {_span((wait / after.LONG_RTT for wait in waits), 2)} round trips apart",
            all(math.isclose(part, 0.5, rel_tol=1e-6) for part in parts)
            and all(math.isclose(wait, 4 * after.LONG_RTT, rel_tol=0.02) for wait in waits),
        ),
        Claim(
            "two",
            "With RFC 3448 silence reduces the rate to two packets a round trip",
            "Vardhan, 2.1",
            "nothing lost: after 30 s X is less than four packets a round trip",
            f"{old_floor:.1f} packets a round trip",
            old_floor < 4,
        ),
        Claim(
            "initial",
            "With RFC 5348 silence without loss does not reduce it below the initial rate",
            "Vardhan, 2.1; RFC 5348, 4.4",
            "nothing lost: after 30 s X is at least four packets of 1000 bytes a round trip",
            f"{new_floor:.1f} packets a round trip",
            new_floor >= 4,
        ),
        Claim(
            "recovery",
            "RFC 5348 comes back sooner from silence",
            "Vardhan, 2.1",
            "1 Mb/s arrives again sooner than with RFC 3448",
            both("catches up (s)", 1, " s"),
            less("catches up (s)"),
        ),
        Claim(
            "limited",
            "After a data-limited period RFC 5348 is not held to twice what was received in it",
            "Vardhan, 2.1; RFC 5348, 4.3",
            "20 kb/s for 30 s: X above 60 kb/s (twice six frames of 124 bytes in a round trip) with RFC 5348 only, and 1 Mb/s arrives sooner",
            both("catches up to 1 Mb/s (s)", 1, " s"),
            less("catches up to 1 Mb/s (s)")
            and all(row["X before 1 Mb/s (kb/s)"] <= 60 for row in old)
            and all(row["X before 1 Mb/s (kb/s)"] > 60 for row in new),
        ),
    ]


def claims() -> dict[str, Claim]:
    """All of them by name."""
    every = [*_steady(), *_fairness(), *_response(), *_voice(), *_situations()]
    return {claim.name: claim for claim in every}


def text() -> str:
    """The table in Markdown."""
    lines = ["| claim | where | rule | found | verdict |", "|---|---|---|---|---|"]
    lines += [
        f"| {claim.words} | {claim.source} | {claim.rule} | {claim.numbers} | **{claim.verdict}** |"
        for claim in claims().values()
    ]
    # "<" ends a table for the test that writes it
    assert "<" not in "".join(lines)
    return "\n".join(lines) + "\n"
