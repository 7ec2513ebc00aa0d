"""Figures of the slides, their statements as numbers, and effects and cost of our rule for limited senders."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from tidegate.paper import Drawing, Measure, Outcome, Plan, Quantity, Table, Then, group_seeds
from tidegate.paper import Experiment as Base
from tidegate.paper.measures import CellValue
from tidegate.papers.hermanns2013 import figures
from tidegate.papers.hermanns2013.alone import FULL, GREEDY, Alone, Ticks, job
from tidegate.papers.hermanns2013.cells import BURSTS, CALLERS, EQUAL, VIDEO, Caller, Calls, Cell
from tidegate.papers.hermanns2013.variants import FPS, VARIANTS
from tidegate.runs import RunJob
from tidegate.runs.pool import Job

LOADS = (1, 2, 4)
"""Mean numbers of calls in a cell."""
QUICK_LOADS = (2,)
"""Loads of a quick run."""
QUICK_END_S = 85
"""Duration of its runs of cells."""
VARIANT_LOAD = 2
"""Load of the cell variants."""
CELL_VARIANTS: Mapping[str, tuple[str, Mapping[str, Any], Mapping[str, Any]]] = {
    "case3": ("3GPP case 3", {"case": 3}, {}),
    "small": ("files of 500 kbit", {"file": "500 kbit"}, {}),
    "bursts": ("an encoder with bursts at changes of its rate (RFC 8593)", {}, BURSTS),
}
"""Other readings of the slides' cells: title, settings of the cells, keys of the callers."""
VARIANT_CALLERS = ("sprout", "aware", "gcc", "least")
"""Callers in the cell variants; one with its own encoder keeps it."""
QUICK_VARIANT = ("bursts", "sprout")
"""The only cell variant, and its caller, of a quick run: the statements on Sprout's rate hang on it."""
GREEDY_CALLERS: Mapping[str, Caller] = {
    "bulk": Caller("Sprout, file transfer", "sprout:bulk", GREEDY),
    "aware_bulk": Caller("Sprout with our rule, file transfer", "sprout:bulk,app_limited=ignore", GREEDY),
}
"""Callers that always have data to send."""
CHANNEL: Mapping[str, Caller] = {
    "channel": Caller("what the channel carries (fixed rate of 40 Mb/s)", "fixed:40Mbps", FULL)
}
"""A sender that fills the channel, so that what arrives in a second is what the channel carries."""
CELL_QUANTITIES: Mapping[str, Quantity[Calls]] = {
    "rate": Quantity(
        lambda run: float(run.rate.mean()) / 1e3, "kbit/s", "mean sending rate of a call", "rate (kbit/s)"
    ),
    "spread": Quantity(
        lambda run: run.spread, "", "coefficient of variation of mean rates between users", "CoV between users"
    ),
    "variation": Quantity(
        lambda run: _mean(run.variation), "", "coefficient of variation of a call's rate, by seconds", "CoV over time"
    ),
    "steps": Quantity(
        lambda run: _mean(run.steps),
        "",
        "mean change from second to second as a share of the mean rate",
        "change from second to second",
    ),
    "network": Quantity(lambda run: _mean(run.network), "ms", "mean delay from departure to arrival", "delay (ms)"),
    "waiting": Quantity(
        lambda run: _mean(run.waiting), "ms", "mean time that a packet waits at its sender", "time at the sender (ms)"
    ),
    "delay": Quantity(lambda run: _mean(run.network + run.waiting), "ms", "mean delay from capture to arrival"),
    "late": Quantity(
        lambda run: _mean(run.late), "ms", "95 % quantile of the delay from departure, mean over calls", "p95 (ms)"
    ),
    "loss": Quantity(lambda run: 100 * _mean(run.loss), "%", "share of packets lost", "loss (%)"),
    "frozen": Quantity(
        lambda run: 100 * _mean(run.frozen), "%", "share of the time without a new picture", "without picture (%)"
    ),
    "files": Quantity(lambda run: run.files_s, "s", "duration of the transfer of a file", "duration of a file (s)"),
}
"""Quantities of a cell; those with a head are in its table."""
RATE: Quantity[Alone] = Quantity(lambda run: run.mean / 1e3, "kbit/s", "mean rate of a call alone", "rate (kbit/s)")
ALONE: Mapping[str, Quantity[Alone]] = {
    "rate": RATE,
    "variation": Quantity(
        lambda run: run.variation, "", "coefficient of variation of the rate by seconds, alone", "CoV over time"
    ),
    "steps": Quantity(
        lambda run: run.steps, "", "mean change from second to second, alone", "change from second to second"
    ),
    "later": Quantity(
        lambda run: run.later, "", "coefficient of variation of the rate by seconds, alone, from 20 s on"
    ),
    "received": Quantity(
        lambda run: run.received,
        "bytes",
        "mean bytes received per tick, over ticks with arrivals",
        "bytes per tick (only ticks with arrivals)",
    ),
    "empty": Quantity(lambda run: run.empty, "", "share of ticks in which nothing arrives", "empty ticks"),
    "delay": Quantity(lambda run: run.network, "ms", "mean delay from departure, alone", "delay (ms)"),
    "arrived": Quantity(lambda run: run.carried / 1e3, "kbit/s", "mean rate that arrives, alone"),
}
"""Quantities of a sender alone."""
VARIANT_QUANTITIES: Mapping[str, Quantity[Alone]] = {
    "rate": RATE,
    "variation": Quantity(
        lambda run: run.variation, "", "coefficient of variation of the rate by seconds", "CoV over time"
    ),
    "waiting": Quantity(
        lambda run: run.waiting, "ms", "mean time that a packet waits at its sender", "time at the sender (ms)"
    ),
}
"""Quantities of a sender alone with a setting changed."""
TICKS: Mapping[str, Quantity[Ticks]] = {
    "unused": Quantity(lambda run: run.unused, "", "share of ticks in which the forecast allows more than is sent"),
    "exceeded": Quantity(lambda run: run.exceeded, "", "share of ticks in which more is sent than the forecast allows"),
    "share": Quantity(lambda run: run.share_sent, "", "bytes sent over bytes that the forecast allows"),
    "forecast": Quantity(lambda run: run.mean, "bytes", "mean forecast of the bytes that may be in the network"),
    "every": Quantity(lambda run: run.interval_ms, "ms", "median time between two forecasts"),
}


_UNITS = {"bandwidth": "MHz", "speed": "km/h", "least": "Mb/s", "most": "Mb/s", "length": "s", "load": "Mb/s"}
"""Units of the slides' settings that have one."""


def _mean(values: npt.NDArray[np.float64]) -> float:
    return float(np.nanmean(values))


class Experiment(Base):
    """Figures and statements of all slides."""

    quick_seeds: ClassVar[int] = 3
    full_seeds: ClassVar[int] = 5

    def jobs(self, plan: Plan) -> Mapping[Any, Job[Any]]:
        """Jobs of a sender alone in many ways, and of the cells under each load."""
        jobs: dict[Any, Job[Any]] = {}
        end_s = QUICK_END_S if plan.quick else Cell.end_s
        for seed in plan.seeds:
            for key, caller in {**CALLERS, **GREEDY_CALLERS, **CHANNEL}.items():
                jobs["alone", key, seed] = job(caller, seed)
            for fps in FPS:
                jobs["fps", fps, seed] = job(_sprout_at_fps(fps, VIDEO), seed)
                jobs["equal-fps", fps, seed] = job(_sprout_at_fps(fps, EQUAL["flows.call.media.video"]), seed)
            for key, caller in VARIANTS.items():
                jobs["variant", key, seed] = job(caller, seed)
            cells = {
                ("cell", load, key): Cell(caller, load, end_s=end_s)
                for load, (key, caller) in product(_loads(plan), CALLERS.items())
            }
            for (kind, (_, settings, keys)), key in product(CELL_VARIANTS.items(), VARIANT_CALLERS):
                if not plan.quick or (kind, key) == QUICK_VARIANT:
                    caller = CALLERS[key].under(keys)
                    cells[kind, VARIANT_LOAD, key] = Cell(caller, VARIANT_LOAD, **settings, end_s=end_s)
            for cell_key, cell in cells.items():
                jobs[(*cell_key, seed)] = Then(RunJob(cell.scenario, seed), Calls.from_run)
        return jobs

    def outcome(self, plan: Plan, done: Mapping[Any, Any]) -> Outcome:
        """Measures of the slides' statements, their figures, and ours."""
        return CallResults(_loads(plan), done).outcome()


def _sprout_at_fps(fps: int, video: Mapping[str, Any]) -> Caller:
    """Sprout with a number of frames a second."""
    return Caller("", "sprout", {"flows.call.media.video": {**video, "fps": fps}})


def _correlation(first: npt.NDArray[np.float64], second: npt.NDArray[np.float64]) -> float:
    """Correlation coefficient of two series by seconds; 0 if one is constant, as it follows nothing."""
    return float(np.corrcoef(first, second)[0, 1]) if first.std() and second.std() else 0.0


def _loads(plan: Plan) -> Sequence[int]:
    return QUICK_LOADS if plan.quick else LOADS


@dataclass(frozen=True)
class CallResults:
    """Measures, tables and figures of the runs."""

    loads: Sequence[int]
    done: Mapping[Any, Any]

    @cached_property
    def runs(self) -> Mapping[Any, list[Any]]:
        """Runs by the key of their jobs without the seed, one a seed."""
        return group_seeds(self.done)

    def outcome(self) -> Outcome:
        """The outcome of the paper."""
        return Outcome(
            {**self.measures, **dict(self._repair())},
            tables=list(self._tables()),
            figures=list(self._figures()),
            notes=[
                "Figures over time are of the first seed; other numbers are means over seeds, which also place users.",
                "A call in the cells counts if it has at least 20 s after the warm-up.",
            ],
            digests={", ".join(map(str, key)): run.digest for key, run in self.done.items()},
        )

    @cached_property
    def measures(self) -> dict[str, Measure]:
        """Measures that claims refer to, by name."""
        return dict([*self._alone(), *self._allowed(), *self._cells()])

    # --- alone ----------------------------------------------------------------------------------------

    def _alone(self) -> Iterator[tuple[str, Measure]]:
        for caller, (name, quantity) in product((*CALLERS, *GREEDY_CALLERS, *CHANNEL), ALONE.items()):
            yield f"alone.{caller}.{name}", quantity.over(self.runs["alone", caller])
        for fps in FPS:
            yield f"fps.{fps}.rate", replace(RATE, about=f"mean rate with {fps} frames/s").over(self.runs["fps", fps])
            equal = replace(RATE, about="mean rate with frames of equal size")
            yield f"fps.{fps}.equal", equal.over(self.runs["equal-fps", fps])
        for variant, (name, quantity) in product(VARIANTS, VARIANT_QUANTITIES.items()):
            yield f"variant.{variant}.{name}", quantity.over(self.runs["variant", variant])

    def _allowed(self) -> Iterator[tuple[str, Measure]]:
        for caller in ("sprout", "bulk", "aware"):
            ticks = [run.ticks for run in self.runs["alone", caller] if run.ticks is not None]
            for name, quantity in TICKS.items():
                yield f"ticks.{caller}.{name}", quantity.over(ticks)
        calls: list[Alone] = self.runs["alone", "sprout"]
        bulks: list[Alone] = self.runs["alone", "bulk"]
        pairs = list(zip(calls, bulks, strict=True))
        ratio = [bulk.received / call.received for call, bulk in pairs]
        yield "received.ratio", Measure.of(ratio, "", "ratio of bytes in ticks with arrivals, file transfer to video")
        ratio = [bulk.arrived.mean() / call.arrived.mean() for call, bulk in pairs]
        yield "received.mean_ratio", Measure.of(ratio, "", "ratio of bytes in all ticks, file transfer to video")
        ratio = [bulk.ticks.mean / call.ticks.mean for call, bulk in pairs if bulk.ticks and call.ticks]
        yield "forecast.ratio", Measure.of(ratio, "", "ratio of mean forecasts, file transfer to video, same seed")
        channels: list[Alone] = self.runs["alone", "channel"]
        correlations = [
            _correlation(call.settled, channel.arrived_by_seconds)
            for call, channel in zip(calls, channels, strict=True)
        ]
        description = "correlation by seconds of a call's rate with what the channel carries, same seed"
        yield "channel.call", Measure.of(correlations, "", description)
        description = "correlation by seconds of the forecast for a {} with {}"
        for name, runs in (("call", calls), ("bulk", bulks)):
            correlations = [
                _correlation(run.ticks.by_seconds, channel.arrived_by_seconds)
                for run, channel in zip(runs, channels, strict=True)
                if run.ticks
            ]
            words = description.format("file transfer" if name == "bulk" else name, "what the channel carries")
            yield f"forecast.{name}.channel", Measure.of(correlations, "", words)
        correlations = [_correlation(bulk.ticks.by_seconds, bulk.arrived_by_seconds) for bulk in bulks if bulk.ticks]
        own = description.format("file transfer", "what arrives of it")
        yield "forecast.bulk.own", Measure.of(correlations, "", own)
        correlations = [
            _correlation(call.ticks.by_seconds, call.settled) for call, bulk in pairs if call.ticks and bulk.ticks
        ]
        yield "forecast.call.video", Measure.of(correlations, "", description.format("call", "the rate that it sends"))
        rate: Quantity[Alone] = Quantity(lambda run: run.mean, "bit/s")
        description = "rate of a file transfer with our rule less its rate without"
        yield "cure.bulk", rate.less(self.runs["alone", "aware_bulk"], bulks, description)
        share = [bulk.within(100.0) for bulk in bulks]
        yield "bulk.in_time", Measure.of(share, "", "share of packets of a file transfer that take at most 100 ms")
        bursts = zip(self.runs["variant", "bursts"], bulks, strict=True)
        ratio = [bulk.received / call.received for call, bulk in bursts]
        yield "received.bursts", Measure.of(ratio, "", "ratio of bytes in ticks with arrivals, with bursts")
        yield "frames.every", Measure.of([call.frame_ms for call in calls], "ms", "mean time between frames")

    # --- cells ----------------------------------------------------------------------------------------

    def _cells(self) -> Iterator[tuple[str, Measure]]:
        for key, runs in self.runs.items():
            if key[0] in {"cell", *CELL_VARIANTS}:
                for name, quantity in CELL_QUANTITIES.items():
                    yield ".".join(map(str, (*key, name))), quantity.over(runs)

        of_slide: list[Calls] = self.runs["cell", self.loads[0], "sprout"]
        for name in of_slide[0].settings:
            yield f"setting.{name}", Measure.of([run.settings[name] for run in of_slide], _UNITS.get(name, ""))

    def _repair(self) -> Iterator[tuple[str, Measure]]:
        """Differences between two controllers, seed by seed."""
        pairs = (("sprout", "least"), ("aware", "sprout"), ("aware", "gcc"), ("sprout", "gcc"))
        for load, (caller, reference), (name, quantity) in product(self.loads, pairs, CELL_QUANTITIES.items()):
            description = f"{quantity.about}: {caller} less {reference}"
            difference = quantity.less(self.runs["cell", load, caller], self.runs["cell", load, reference], description)
            yield f"more.{load}.{caller}.{reference}.{name}", difference

    # --- tables and figures -----------------------------------------------------------------------------

    def _tables(self) -> Iterator[Table]:
        measures = self.measures
        heads_by_name = {name: quantity.head for name, quantity in CELL_QUANTITIES.items() if quantity.head}
        for kind, title in {
            "cell": "case 1, files of 500 kB",
            **{kind: title for kind, (title, *_) in CELL_VARIANTS.items()},
        }.items():
            rows: list[list[CellValue]] = [
                [
                    key[1],
                    CALLERS[key[2]].label,
                    *(measures[f"{kind}.{key[1]}.{key[2]}.{name}"] for name in heads_by_name),
                ]
                for key in self.runs
                if key[0] == kind
            ]
            if rows:
                heads = ["calls a cell", "controller", *heads_by_name.values()]
                yield Table(kind, f"Calls in loaded cells: {title}", heads, rows)
        names = ("rate", "variation", "steps", "delay", "received", "empty")
        senders = {caller.label: self.runs["alone", key] for key, caller in {**CALLERS, **GREEDY_CALLERS}.items()}
        title = "One sender alone, from 10 s on"
        yield Table.of_quantities("alone", title, "sender", senders, [ALONE[name] for name in names])
        rows = [[fps, measures[f"fps.{fps}.rate"], measures[f"fps.{fps}.equal"]] for fps in FPS]
        title = "Sprout alone at several frame rates"
        yield Table("fps", title, ["frames a second", "rate (kbit/s)", "frames of equal size (kbit/s)"], rows)
        variants = {caller.label: self.runs["variant", key] for key, caller in VARIANTS.items()}
        title = "Sprout alone: settings that the slides leave open, changed one at a time"
        yield Table.of_quantities("variants", title, "variant", variants, VARIANT_QUANTITIES.values())

    def _figures(self) -> Iterator[Drawing]:
        first: dict[str, Alone] = {key[1]: runs[0] for key, runs in self.runs.items() if key[0] == "alone"}
        yield figures.alone(first)
        for key, title, name in (
            ("bulk", "file transfer", "forecast-file"),
            ("sprout", "conversational video", "forecast-video"),
        ):
            if first[key].ticks is not None:  # only Sprout has forecasts
                yield figures.forecast(first[key], title, name)
        yield figures.reception(first["bulk"], first["sprout"])
        curves = {
            name: {
                caller.label: [list(map(quantity.take, self.runs["cell", load, key])) for load in self.loads]
                for key, caller in CALLERS.items()
            }
            for name, quantity in CELL_QUANTITIES.items()
        }
        yield from figures.by_load(self.loads, curves)
        yield figures.by_fps(
            {
                label: {fps: [run.mean / 1e3 for run in self.runs[kind, fps]] for fps in FPS}
                for label, kind in {"sizes that vary": "fps", "frames of equal size": "equal-fps"}.items()
            }
        )
        yield figures.repaired(first)
