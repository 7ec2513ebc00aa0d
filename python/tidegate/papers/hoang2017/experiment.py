"""Experiment of Hoang's thesis (2017): RRTCC and UDP over a network with random states, and RRTCC against TCP."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from tidegate.paper import Drawing, Measure, Outcome, Plan, Table, Then, group_seeds
from tidegate.paper import Experiment as Base
from tidegate.paper.measures import CellValue
from tidegate.papers.hoang2017 import fairness, figures, formulas, settings
from tidegate.papers.hoang2017.calls import (
    CONFIGURATIONS,
    LATE,
    THESIS,
    UDP_RATE,
    Call,
    PairJob,
    Pairs,
)
from tidegate.papers.hoang2017.fairness import (
    ADAPTIVE,
    CONTROLLERS,
    DELAYS,
    FIXED_THRESHOLD,
    LOAD,
    LOADS,
    PUBLISHED,
    TABLE_1,
    TCP_FLOWS,
    Shared,
)
from tidegate.papers.hoang2017.variants import ALL, BY_PACKET, READINGS, RECOMMENDED
from tidegate.runs import RunJob
from tidegate.runs.pool import Job

PUBLISHED_ESTIMATE = 7_082_516.0
"""Bit/s, section 4.1: "the average final estimated bandwidth"."""

CONFIGURATION = "2"
"""Configuration of tables 7 and 8."""

MIN_RATE, MAX_RATE = 3e6, 10e6
"""Bounds of the rate, bit/s (table 7)."""

SMALL = BY_PACKET[3_000]
"""Packets of which 1000 last little longer than an RTCP interval, so that RRTCC hears of the network once."""

JUDGED = {FIXED_THRESHOLD: "fair", ADAPTIVE: "adaptive"}
"""Controllers whose fairness claims refer to, with their prefix in measures."""


class Experiment(Base):
    """Chapter 4 of the thesis, its tables 2 and 3, and the settings that its results depend on."""

    quick_seeds: ClassVar[int] = 20
    full_seeds: ClassVar[int] = 200

    def jobs(self, plan: Plan) -> Mapping[Any, Job[Any]]:
        """Jobs of all calls (pairs: UDP and RRTCC over the same network), and of the runs against TCP."""
        jobs: dict[Any, Job[Any]] = {}
        for seed in plan.seeds:
            for configuration in CONFIGURATIONS:
                for variant in (THESIS, SMALL):
                    jobs["call", variant.name, configuration, seed] = PairJob(variant, configuration, seed)
            for name, variant in ALL.items():
                jobs["call", name, CONFIGURATION, seed] = PairJob(variant, CONFIGURATION, seed)
        # a run against TCP is two hundred times as long as a call
        against_tcp = [
            *((controller, LOAD) for controller in CONTROLLERS),
            *((FIXED_THRESHOLD, load) for load in LOADS),
        ]
        for seed, delay, (controller, load) in product(plan.seeds[: _tcp_seeds(plan)], DELAYS, against_tcp):
            run = RunJob(fairness.scenario(delay, controller, load), seed, "packets")
            jobs["tcp", delay, controller, load, seed] = Then(run, fairness.summarise)
        return jobs

    def outcome(self, plan: Plan, done: Mapping[Any, Any]) -> Outcome:
        """Measures of the statements of chapter 4, its figures, and tables of the settings that matter."""
        runs = group_seeds(done)
        calls: dict[str, Pairs] = {c: runs["call", THESIS.name, c] for c in CONFIGURATIONS}
        variants: dict[str, Pairs] = {name: runs["call", name, CONFIGURATION] for name in ALL}
        shared: dict[Any, list[Shared]] = {key[1:]: group for key, group in runs.items() if key[0] == "tcp"}
        measures = dict(settings.measures(calls))
        for configuration, pairs in calls.items():
            measures |= dict(_configuration(configuration, pairs, runs["call", SMALL.name, configuration]))
        measures |= dict(_both({name: variants[variant.name] for name, variant in BY_PACKET.items()}))
        measures |= dict(_run(calls[CONFIGURATION]))
        for name, pairs in variants.items():
            measures |= dict(_variant(name, pairs))
        for (delay, controller, load), group in shared.items():
            if controller in JUDGED and load == LOAD:
                prefix = JUDGED[controller]
                measures |= {f"{prefix}.{key}.{delay}": measure for key, measure in _fairness(delay, group)}
        measures |= dict(_machine([run for key, group in shared.items() if key[1] == ADAPTIVE for run in group]))
        measures |= dict(_formulas([pair[1] for pairs in calls.values() for pair in pairs]))
        checked = [pair[1].checks for pairs in calls.values() for pair in pairs]
        measures |= dict(formulas.measures([checks for checks in checked if checks is not None]))
        return Outcome(
            measures,
            tables=[*_tables(variants, calls), *_fairness_tables(shared)],
            figures=_figures(calls, variants, shared),
            notes=[
                "Figures 5, 16 and 17 are of the first seed; the other numbers are means over seeds.",
                f"Runs against TCP (table 3) are long and use {_tcp_seeds(plan)} of the {len(plan.seeds)} seeds.",
                "With the same seed UDP and RRTCC have the same network statuses, whose random numbers are separate.",
            ],
            digests={
                f"{name}, {sender}, configuration 2, seed {seed}": call.digest
                for name, pairs in variants.items()
                for seed, pair in zip(plan.seeds, pairs, strict=True)
                for sender, call in zip(("udp", "rrtcc"), pair, strict=True)
            },
        )


def _tcp_seeds(plan: Plan) -> int:
    """Number of seeds of the runs against TCP."""
    return max(1, len(plan.seeds) // 8)


def _mean_of(pairs: Pairs, index: int, name: str, unit: str, description: str = "") -> Measure:
    return Measure.of([getattr(pair[index], name) for pair in pairs], unit, description)


def _rate(rates: Iterable[float], about: str) -> Measure:
    """Measure of rates in bit/s, in Mbit/s and to a bit/s: sending times are whole nanoseconds."""
    return Measure.of([round(rate / 1e6, 6) for rate in rates], "Mbit/s", about)


def _configuration(configuration: str, pairs: Pairs, small: Pairs) -> Iterator[tuple[str, Measure]]:
    """Measures of figures 18 to 20; `small` has calls with packets of 3 kB."""
    for index, sender in enumerate(("udp", "rrtcc")):
        yield (
            f"{sender}.loss.{configuration}",
            _mean_of(pairs, index, "ratio", "", "loss ratio, mean over the sender's reports"),
        )
        yield f"{sender}.lost.{configuration}", _mean_of(pairs, index, "loss", "", "share of all packets lost")
        rate, goodput = ([getattr(pair[index], name) for pair in pairs] for name in ("rate", "goodput"))
        yield f"{sender}.rate.{configuration}", _rate(rate, "all bits sent over the time in which they were sent")
        yield f"{sender}.goodput.{configuration}", _rate(goodput, "bits received over the time in which they were sent")
    about = "RRTCC's sending rate with packets of 3 kB"
    yield f"small.rate.{configuration}", _rate([rrtcc.rate for _, rrtcc in small], about)
    # goodputs are nearer to RRTCC's line if these two have one sign
    ahead = [udp.rate - rrtcc.rate for udp, rrtcc in pairs]
    yield f"ahead.{configuration}", _rate(ahead, "UDP's sending rate less RRTCC's")
    farther = max if np.mean(ahead) > 0 else min
    below = [(udp.rate + rrtcc.rate) / 2 - farther(udp.goodput, rrtcc.goodput) for udp, rrtcc in pairs]
    about = "middle of the two sending rates less the goodput that is farther from RRTCC's"
    yield f"below.{configuration}", _rate(below, about)

    # with a mean rate r over a mean capacity C, at least 1 - C / r is lost
    half = [udp.carried / (1 - (1 - udp.carried / UDP_RATE) / 2) for udp, _ in pairs]
    yield f"bound.rate.{configuration}", _rate(half, "maximum mean rate with half of UDP's loss, over all packets")


def _both(by_packet: Mapping[int, Pairs]) -> Iterator[tuple[str, Measure]]:
    """Measures of the statement that RRTCC loses less at a rate just below UDP's, for each size of packets."""
    fast = [
        udp / rrtcc
        for pairs in by_packet.values()
        for udp, rrtcc in [[_mean_of(pairs, index, "ratio", "").value.mean for index in (0, 1)]]
        if _mean_of(pairs, 1, "rate", "").value.mean >= 0.9 * UDP_RATE
    ]
    about = (
        "maximum ratio of UDP's loss ratio to RRTCC's, over the sizes of packets with which RRTCC has 0.9 of UDP's rate"
    )
    yield "fast.ratio", Measure.exact(max(fast, default=float("nan")), "", about)


def _run(pairs: Pairs) -> Iterator[tuple[str, Measure]]:
    """Measures of section 4.1, for its single configuration."""
    udp, rrtcc = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    yield "estimate", _mean_of(pairs, 1, "estimate", "bit/s", "mean of the final estimate A over reports")
    yield "udp.constant", _mean_of(pairs, 0, "rate", "bit/s", "UDP's sending rate")
    for sender, calls in (("udp", udp), ("rrtcc", rrtcc)):
        below = [float((call.ratios < 0.2).mean()) for call in calls]  # noqa: PLR2004
        yield f"{sender}.below20", Measure.of(below, "", "share of reports with a loss ratio below 20 %")
    for prefix, calls in (("", rrtcc), ("udp.", udp)):
        first, second = zip(*(_deviation_of_halves(call.ratios) for call in calls), strict=True)
        calmer = float(np.mean([late < early / 2 for early, late in zip(first, second, strict=True)]))
        about = "share of the runs whose loss ratio deviates less than half as much in the second half as in the first"
        yield f"{prefix}calmer", Measure.exact(calmer, "", about)
        yield (
            f"{prefix}unrest.first",
            Measure.of(first, "", "deviation of the loss ratio in the first half of a run"),
        )
        yield (
            f"{prefix}unrest.second",
            Measure.of(second, "", "deviation of the loss ratio in the second half of a run"),
        )
    steps = [np.abs(np.diff(call.a)) / call.a[:-1] for call in rrtcc]
    yield (
        "steps",
        Measure.of(
            [float(relative[len(relative) // 2 :].mean()) for relative in steps],
            "",
            "mean relative change of A between reports, second half",
        ),
    )
    # the bound 1 - C / r at the published estimate
    ratio = [(1 - call.carried / UDP_RATE) / (1 - call.carried / PUBLISHED_ESTIMATE) for call in udp]
    description = "maximum ratio of UDP's loss to that at the published estimate"
    yield "bound.ratio", Measure.exact(max(ratio), "", description)
    idle = CONFIGURATIONS[CONFIGURATION][0]
    at_idle = (1 - idle / UDP_RATE) / (1 - idle / PUBLISHED_ESTIMATE)
    yield (
        "bound.ratio.idle",
        Measure.exact(at_idle, "", "the same maximum ratio on an idle network"),
    )
    yield "carried", _rate([call.carried for call in udp], "mean capacity in UDP's runs")


def _deviation_of_halves(ratios: npt.NDArray[np.float64]) -> tuple[float, float]:
    """Standard deviation of the reported loss ratios in both halves of a call."""
    first, second = np.array_split(ratios, 2)
    return float(first.std()), float(second.std())


def _machine(runs: Sequence[Shared]) -> Iterator[tuple[str, Measure]]:
    """Measures of the changes of the rate controller's state, beside table 1."""
    counts = Counter(dict[tuple[int, int, int], int]())
    for run in runs:
        counts.update(run.changes)
    allowed = sum(count for change, count in counts.items() if change in TABLE_1)
    share = allowed / counts.total() if counts else float("nan")
    yield "machine.allowed", Measure.exact(share, "", "share of the changes of state that are in table 1")
    yield "machine.kinds", Measure.exact(float(len(counts)), "", "number of different changes of state in the runs")


def _formulas(calls: Sequence[Call]) -> Iterator[tuple[str, Measure]]:
    """Measures of the formulas of sections 2.2.2.3 and 2.2.2.4, and of the fastest growth of A_r."""
    controlled = [call for call in calls if len(call.a_s) == len(call.reports) > 1]
    branches = [0, 0, 0]
    matches = 0
    for call in controlled:
        before = np.concatenate([[UDP_RATE], call.a_s[:-1]])
        for previous, a_s, ratio in zip(before, call.a_s, call.ratios, strict=True):
            branch = 0 if ratio > 0.1 else 1 if ratio >= 0.02 else 2  # noqa: PLR2004
            expected = (previous * (1 - 0.5 * ratio), previous, 1.05 * previous + 1000)[branch]
            matches += bool(abs(a_s / min(max(expected, MIN_RATE), MAX_RATE) - 1) < 1e-9)  # noqa: PLR2004
            branches[branch] += 1
    share = matches / sum(branches) if controlled else float("nan")
    yield "formula.loss", Measure.exact(share, "", "share of the reports after which A_s equals the formula")
    yield (
        "formula.branches",
        Measure.exact(float(min(branches)), "", "number of reports in the formula's rarest case"),
    )
    smaller = [np.clip(np.minimum(call.a_s, call.a_r), MIN_RATE, MAX_RATE) for call in controlled]
    shares = [float(np.mean(np.abs(call.a - minimum) <= 1)) for call, minimum in zip(controlled, smaller, strict=True)]
    yield "formula.min", Measure.of(shares, "", "share of the reports after which A is the smaller of A_s and A_r")
    growth = [float((call.a_r[1:] / call.a_r[:-1]).max()) for call in controlled]
    yield (
        "formula.growth",
        Measure.exact(max(growth, default=float("nan")), "", "maximum growth factor of A_r"),
    )


def _variant(name: str, pairs: Pairs) -> Iterator[tuple[str, Measure]]:
    yield f"variant.{name}.loss", _mean_of(pairs, 1, "ratio", "")
    yield f"variant.{name}.rate", _rate([rrtcc.rate for _, rrtcc in pairs], "RRTCC's sending rate")
    yield f"variant.{name}.estimate", _rate([rrtcc.estimate for _, rrtcc in pairs], "mean of A over reports")
    yield f"variant.{name}.udp", _mean_of(pairs, 0, "ratio", "")


def _fairness(delay: str, runs: Sequence[Shared]) -> Iterator[tuple[str, Measure]]:
    def over(name: str, scale: float, unit: str, description: str) -> Measure:
        return Measure.of([getattr(run, name) * scale for run in runs], unit, description)

    yield "goodput", over("goodput", 1e-3, "kbit/s", "goodput of RRTCC")
    yield "settled", over("settled", 1e-3, "kbit/s", "goodput of RRTCC in the second half of the run")
    yield "loss", over("loss", 100, "%", "packet loss of RRTCC")
    yield "tcp", over("tcp", 1e-3, "kbit/s", "throughput of a TCP connection while on")
    yield "tfs", over("tfs", 100, "%", "TFS by the thesis's formula")
    yield "on", over("on", 100, "%", "share of the time that a TCP connection is on")
    goodput, tcp = PUBLISHED[delay]
    # the total is at least the goodput of the call
    bound = Measure.exact(100 * tcp / (goodput / (TCP_FLOWS + 1)), "%", "maximum TFS that the numbers of table 3 allow")
    yield "tfs.bound", bound
    yield "delayed", over("delayed", 100, "%", "share of RRTCC's packets that take more than 400 ms")


def _row(pairs: Pairs) -> dict[str, CellValue]:
    udp, ratio = _mean_of(pairs, 0, "ratio", ""), _mean_of(pairs, 1, "ratio", "")
    return {
        "UDP's loss ratio": udp,
        "RRTCC's loss ratio": ratio,
        "ratio of the two": udp.value.mean / ratio.value.mean if ratio.value.mean else None,
        "RRTCC's rate (Mbit/s)": Measure.of([pair[1].rate / 1e6 for pair in pairs]),
        "RRTCC's estimate (Mbit/s)": Measure.of([pair[1].estimate / 1e6 for pair in pairs]),
    }


def _tables(variants: Mapping[str, Pairs], calls: Mapping[str, Pairs]) -> Iterator[Table]:
    groups = {
        "readings": ("Other readings of what the thesis leaves open (configuration 2)", READINGS),
        "recommended": ("gcc-02's values and the second placement, with the same seeds (configuration 2)", RECOMMENDED),
        "decides": ("Effects of packet size and loss window (configuration 2)", figures.DECIDING),
    }
    for name, (title, chosen) in groups.items():
        yield Table.of(name, title, ({"variant": variant.label, **_row(variants[variant.name])} for variant in chosen))
    rows = (
        {
            "configuration": configuration,
            **_row(pairs),
            "UDP's goodput (Mbit/s)": Measure.of([udp.goodput / 1e6 for udp, _ in pairs]),
            "RRTCC's goodput (Mbit/s)": Measure.of([rrtcc.goodput / 1e6 for _, rrtcc in pairs]),
        }
        for configuration, pairs in calls.items()
    )
    yield Table.of("configurations", "Numbers of figures 18 to 20", rows)
    yield Table(
        "late",
        "Share of arrived packets that are later than the fastest packet (configuration 2)",
        ["later by (ms)", "share of packets"],
        [[f"{ms:g}", Measure.of([rrtcc.late[ms] for _, rrtcc in variants[THESIS.name]])] for ms in LATE],
    )


def _fairness_tables(shared: Mapping[Any, Sequence[Shared]]) -> Iterator[Table]:
    rows = []
    for controller, load, delay in product(CONTROLLERS, LOADS, DELAYS):
        if (delay, controller, load) in shared:
            measures = dict(_fairness(delay, shared[delay, controller, load]))
            rows.append(
                {
                    "delay": delay,
                    "controller": CONTROLLERS[controller],
                    "download": load.size,
                    "mean pause": load.idle,
                    "codec's maximum": load.most,
                    "goodput of RRTCC (kbit/s)": measures["goodput"],
                    "goodput in the second half (kbit/s)": measures["settled"],
                    "loss of RRTCC (%)": measures["loss"],
                    "packets later than 400 ms (%)": measures["delayed"],
                    "throughput of TCP while on (kbit/s)": measures["tcp"],
                    "TFS (%)": measures["tfs"],
                    "time that TCP is on (%)": measures["on"],
                }
            )
    yield Table.of("fairness", "A call and five TCP connections on 5 Mbit/s, by controller and by load", rows)


def _figures(calls: Mapping[str, Pairs], variants: Mapping[str, Pairs], shared: Mapping[Any, Any]) -> list[Drawing]:
    udp, rrtcc = calls[CONFIGURATION][0]
    return [
        figures.throughput(shared["50ms", FIXED_THRESHOLD, LOAD][0]),
        figures.estimates(udp, rrtcc),
        figures.ratios(udp, rrtcc),
        *figures.by_configuration(calls),
        figures.by_packet(variants),
        figures.by_window(variants),
        figures.by_controller(variants),
    ]
