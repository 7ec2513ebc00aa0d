"""The thesis of Hoang (2017) again: RRTCC and UDP over a network of statuses, and beside TCP."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from tidegate.paper import Drawing, Measure, Outcome, Plan, Table, Then, group_seeds
from tidegate.paper import Experiment as Base
from tidegate.paper.measures import CellValue
from tidegate.papers.hoang2017 import fairness, figures, settings
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
from tidegate.papers.hoang2017.variants import ALL, READINGS, RECOMMENDED
from tidegate.runs import RunJob
from tidegate.runs.pool import Job

PUBLISHED_ESTIMATE = 7_082_516.0
"""Bit/s, section 4.1: "the average final estimated bandwidth"."""

CONFIGURATION = "2"
"""That of tables 7 and 8."""

LEAST, MOST = 3e6, 10e6
"""Bounds of the rate, bit/s (table 7)."""

JUDGED = {FIXED_THRESHOLD: "fair", ADAPTIVE: "adaptive"}
"""Whose fairness claims speak of, and under which name."""


class Experiment(Base):
    """Chapter 4 of the thesis, its tables 2 and 3, and what its picture depends on."""

    quick_seeds: ClassVar[int] = 20
    full_seeds: ClassVar[int] = 200

    def jobs(self, plan: Plan) -> Mapping[Any, Job[Any]]:
        """Every call with every seed, UDP and RRTCC over the same network."""
        jobs: dict[Any, Job[Any]] = {}
        for seed in plan.seeds:
            for configuration in CONFIGURATIONS:
                jobs["call", THESIS.name, configuration, seed] = PairJob(THESIS, configuration, seed)
            for name, variant in ALL.items():
                jobs["call", name, CONFIGURATION, seed] = PairJob(variant, CONFIGURATION, seed)
        # a run beside TCP is two hundred times as long as a call
        beside = [*((one, LOAD) for one in CONTROLLERS), *((FIXED_THRESHOLD, load) for load in LOADS)]
        for seed, delay, (controller, load) in product(plan.seeds[: _beside_tcp(plan)], DELAYS, beside):
            run = RunJob(fairness.scenario(delay, controller, load), seed, "packets")
            jobs["tcp", delay, controller, load, seed] = Then(run, fairness.keep)
        return jobs

    def outcome(self, plan: Plan, done: Mapping[Any, Any]) -> Outcome:
        """Measures of what chapter 4 says, its figures, and the tables of what decides them."""
        runs = group_seeds(done)
        calls: dict[str, Pairs] = {c: runs["call", THESIS.name, c] for c in CONFIGURATIONS}
        variants: dict[str, Pairs] = {name: runs["call", name, CONFIGURATION] for name in ALL}
        shared: dict[Any, list[Shared]] = {key[1:]: kept for key, kept in runs.items() if key[0] == "tcp"}
        measures = dict(settings.measures(calls))
        for configuration, pairs in calls.items():
            measures |= dict(_configuration(configuration, pairs))
        measures |= dict(_run(calls[CONFIGURATION]))
        for name, pairs in variants.items():
            measures |= dict(_variant(name, pairs))
        for (delay, controller, load), kept in shared.items():
            if controller in JUDGED and load == LOAD:
                measures |= {f"{JUDGED[controller]}.{key}.{delay}": one for key, one in _fairness(delay, kept)}
        measures |= dict(_machine([run for key, kept in shared.items() if key[1] == ADAPTIVE for run in kept]))
        measures |= dict(_formulas([pair[1] for pairs in calls.values() for pair in pairs]))
        return Outcome(
            measures,
            tables=[*_tables(variants, calls), *_fairness_tables(shared)],
            figures=_figures(calls, variants, shared),
            notes=[
                "Figures 5, 16 and 17 are of the first seed; the other numbers are means over seeds.",
                f"Runs beside TCP (table 3) are long: they take {_beside_tcp(plan)} of the {len(plan.seeds)} seeds.",
                "A network's luck comes from named substreams: UDP and RRTCC of one seed meet the same statuses.",
            ],
            digests={
                f"{name}, {who}, configuration 2, seed {seed}": call.digest
                for name, pairs in variants.items()
                for seed, pair in zip(plan.seeds, pairs, strict=True)
                for who, call in zip(("udp", "rrtcc"), pair, strict=True)
            },
        )


def _beside_tcp(plan: Plan) -> int:
    """How many seeds the runs beside TCP take."""
    return max(1, len(plan.seeds) // 8)


def _over(pairs: Pairs, at: int, name: str, unit: str, about: str = "") -> Measure:
    return Measure.of([getattr(pair[at], name) for pair in pairs], unit, about)


def _configuration(configuration: str, pairs: Pairs) -> Iterator[tuple[str, Measure]]:
    """What figures 18 to 20 show."""
    for at, who in enumerate(("udp", "rrtcc")):
        yield f"{who}.loss.{configuration}", _over(pairs, at, "ratio", "", "loss ratio, mean over the sender's reports")
        yield f"{who}.lost.{configuration}", _over(pairs, at, "loss", "", "share of all packets lost")
        yield f"{who}.rate.{configuration}", _over(pairs, at, "rate", "bit/s", "mean sending rate")
        yield f"{who}.goodput.{configuration}", _over(pairs, at, "goodput", "bit/s", "mean rate that arrived")

    # of a mean rate r over a mean capacity C at least 1 - C / r is lost
    half = [udp.carried / (1 - (1 - udp.carried / UDP_RATE) / 2) for udp, _ in pairs]
    yield f"bound.rate.{configuration}", Measure.of(half, "bit/s", "highest mean rate with half of UDP's loss")


def _run(pairs: Pairs) -> Iterator[tuple[str, Measure]]:
    """What section 4.1 says of its one configuration."""
    udp, rrtcc = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    yield "estimate", _over(pairs, 1, "estimate", "bit/s", "mean of the final estimate A")
    for who, calls in (("udp", udp), ("rrtcc", rrtcc)):
        below = [float((call.ratios < 0.2).mean()) for call in calls]  # noqa: PLR2004
        yield f"{who}.below20", Measure.of(below, "", "share of reports with a loss ratio below 20 %")
    for prefix, calls in (("", rrtcc), ("udp.", udp)):
        first, second = zip(*(_unrest(call.ratios) for call in calls), strict=True)
        yield f"{prefix}unrest.first", Measure.of(first, "", "deviation of the loss ratio, first half of a run")
        yield f"{prefix}unrest.second", Measure.of(second, "", "... second half")
    steps = [np.abs(np.diff(call.a)) / call.a[:-1] for call in rrtcc]
    yield "steps", Measure.of([float(one[len(one) // 2 :].mean()) for one in steps], "", "mean step of A, second half")
    # the same bound at the published estimate
    ratio = [(1 - call.carried / UDP_RATE) / (1 - call.carried / PUBLISHED_ESTIMATE) for call in udp]
    about = "largest ratio of losses at the published estimate, of all seeds"
    yield "bound.ratio", Measure.exact(max(ratio), "", about)
    idle = CONFIGURATIONS[CONFIGURATION][0]
    at_idle = (1 - idle / UDP_RATE) / (1 - idle / PUBLISHED_ESTIMATE)
    yield "bound.ratio.idle", Measure.exact(at_idle, "", "the same over a network that is always idle")
    yield "carried", Measure.of([call.carried for call in udp], "bit/s", "mean capacity that UDP met")


def _unrest(ratios: npt.NDArray[np.float64]) -> tuple[float, float]:
    """Standard deviation of the reported loss ratios in both halves of a call."""
    first, second = np.array_split(ratios, 2)
    return float(first.std()), float(second.std())


def _machine(runs: Sequence[Shared]) -> Iterator[tuple[str, Measure]]:
    """What of the changes of the rate controller's state is in table 1."""
    found = Counter(dict[tuple[int, int, int], int]())
    for run in runs:
        found.update(run.changes)
    allowed = sum(count for change, count in found.items() if change in TABLE_1)
    share = allowed / found.total() if found else float("nan")
    yield "machine.allowed", Measure.exact(share, "", "share of the changes of state that table 1 has")
    yield "machine.kinds", Measure.exact(float(len(found)), "", "different changes of state that were met")


def _formulas(calls: Sequence[Call]) -> Iterator[tuple[str, Measure]]:
    """How many reports were answered as sections 2.2.2.3 and 2.2.2.4 have it, and the fastest growth of A_r."""
    known = [call for call in calls if len(call.a_s) == len(call.reports) > 1]
    branches = [0, 0, 0]
    right = 0
    for call in known:
        before = np.concatenate([[UDP_RATE], call.a_s[:-1]])
        for was, a_s, ratio in zip(before, call.a_s, call.ratios, strict=True):
            branch = 0 if ratio > 0.1 else 1 if ratio >= 0.02 else 2  # noqa: PLR2004
            wanted = (was * (1 - 0.5 * ratio), was, 1.05 * was + 1000)[branch]
            right += bool(abs(a_s / min(max(wanted, LEAST), MOST) - 1) < 1e-9)  # noqa: PLR2004
            branches[branch] += 1
    share = right / sum(branches) if known else float("nan")
    yield "formula.loss", Measure.exact(share, "", "share of the reports after which A_s is that of the formula")
    yield "formula.branches", Measure.exact(float(min(branches)), "", "reports in the rarest of its three cases")
    least = [np.clip(np.minimum(call.a_s, call.a_r), LEAST, MOST) for call in known]
    same = [float(np.mean(np.abs(call.a - one) <= 1)) for call, one in zip(known, least, strict=True)]
    yield "formula.min", Measure.of(same, "", "share of the reports after which A is the smaller of A_s and A_r")
    growth = [float((call.a_r[1:] / call.a_r[:-1]).max()) for call in known]
    yield "formula.growth", Measure.exact(max(growth, default=float("nan")), "", "largest A_r over the one before it")


def _variant(name: str, pairs: Pairs) -> Iterator[tuple[str, Measure]]:
    for key, attribute, unit in (("loss", "ratio", ""), ("rate", "rate", "bit/s"), ("estimate", "estimate", "bit/s")):
        yield f"variant.{name}.{key}", _over(pairs, 1, attribute, unit)
    yield f"variant.{name}.udp", _over(pairs, 0, "ratio", "")


def _fairness(delay: str, runs: Sequence[Shared]) -> Iterator[tuple[str, Measure]]:
    def over(name: str, scale: float, unit: str, about: str) -> Measure:
        return Measure.of([getattr(run, name) * scale for run in runs], unit, about)

    yield "goodput", over("goodput", 1e-3, "kbit/s", "of RRTCC")
    yield "settled", over("settled", 1e-3, "kbit/s", "received of RRTCC in the second half of the run")
    yield "loss", over("loss", 100, "%", "of RRTCC's packets")
    yield "tcp", over("tcp", 1e-3, "kbit/s", "of a TCP connection while it is on")
    yield "tfs", over("tfs", 100, "%", "by the thesis's formula")
    yield "on", over("on", 100, "%", "of the time a TCP connection is on")
    goodput, tcp = PUBLISHED[delay]
    # no total is below what the call alone has
    bound = Measure.exact(100 * tcp / (goodput / (TCP_FLOWS + 1)), "%", "largest TFS that table 3's own numbers allow")
    yield "tfs.bound", bound
    yield "delayed", over("delayed", 100, "%", "of RRTCC's packets take more than 400 ms")


def _row(pairs: Pairs) -> dict[str, CellValue]:
    udp, ratio = _over(pairs, 0, "ratio", ""), _over(pairs, 1, "ratio", "")
    return {
        "UDP's loss ratio": udp,
        "RRTCC's loss ratio": ratio,
        "UDP's / RRTCC's": udp.value.mean / ratio.value.mean if ratio.value.mean else None,
        "RRTCC's rate (Mbit/s)": Measure.of([pair[1].rate / 1e6 for pair in pairs]),
        "RRTCC's estimate (Mbit/s)": Measure.of([pair[1].estimate / 1e6 for pair in pairs]),
    }


def _tables(variants: Mapping[str, Pairs], calls: Mapping[str, Pairs]) -> Iterator[Table]:
    groups = {
        "readings": ("What the thesis leaves open, read the other way (configuration 2)", READINGS),
        "recommended": ("gcc-02's values and the second way, on the same luck (configuration 2)", RECOMMENDED),
        "decides": ("What packet size and loss window decide (configuration 2)", figures.DECIDING),
    }
    for name, (title, chosen) in groups.items():
        yield Table.of(name, title, ({"variant": one.label, **_row(variants[one.name])} for one in chosen))
    rows = (
        {
            "configuration": configuration,
            **_row(pairs),
            "UDP's goodput (Mbit/s)": Measure.of([udp.goodput / 1e6 for udp, _ in pairs]),
            "RRTCC's goodput (Mbit/s)": Measure.of([rrtcc.goodput / 1e6 for _, rrtcc in pairs]),
        }
        for configuration, pairs in calls.items()
    )
    yield Table.of("configurations", "Figures 18 to 20 in numbers", rows)
    yield Table(
        "late",
        "Packets that take so much longer than the fastest one, of those that arrive (configuration 2)",
        ["later by (ms)", "share of packets"],
        [[f"{ms:g}", Measure.of([rrtcc.late[ms] for _, rrtcc in variants[THESIS.name]])] for ms in LATE],
    )


def _fairness_tables(shared: Mapping[Any, Sequence[Shared]]) -> Iterator[Table]:
    rows = []
    for controller, load, delay in product(CONTROLLERS, LOADS, DELAYS):
        if (delay, controller, load) in shared:
            made = dict(_fairness(delay, shared[delay, controller, load]))
            rows.append(
                {
                    "delay": delay,
                    "controller": CONTROLLERS[controller],
                    "download": load.size,
                    "mean pause": load.idle,
                    "codec's most": load.most,
                    "goodput of RRTCC (kbit/s)": made["goodput"],
                    "in the second half (kbit/s)": made["settled"],
                    "its loss (%)": made["loss"],
                    "later than 400 ms (%)": made["delayed"],
                    "TCP while on (kbit/s)": made["tcp"],
                    "TFS (%)": made["tfs"],
                    "TCP on (% of the time)": made["on"],
                }
            )
    yield Table.of(
        "fairness", "One call and five TCP connections on 5 Mbit/s, by controller and by what TCP does", rows
    )


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
