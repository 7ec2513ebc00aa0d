"""The slides' figures, their statements as numbers, and what our rule for limited senders repairs and costs."""

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
from tidegate.papers.hermanns2013.alone import GREEDY, Alone, Ticks, job
from tidegate.papers.hermanns2013.cells import BURSTS, CALLERS, EQUAL, VIDEO, Caller, Calls, Cell
from tidegate.papers.hermanns2013.variants import FPS, VARIANTS
from tidegate.runs import RunJob
from tidegate.runs.pool import Job

LOADS = (1, 2, 4)
"""Calls a cell on average."""
QUICK_LOADS = (2,)
"""Those of a quick run."""
QUICK_END_S = 85
"""When its runs end."""
OTHER_LOAD = 2
"""At which other cells are run, which a quick run leaves out."""
OTHERS: Mapping[str, tuple[str, Mapping[str, Any], Mapping[str, Any]]] = {
    "case3": ("3GPP case 3", {"case": 3}, {}),
    "small": ("files of 500 kbit", {"file": "500 kbit"}, {}),
    "bursts": ("an encoder with bursts at changes of its rate (RFC 8593)", {}, BURSTS),
}
"""What else the cells may have been: title, what is other about the cells, and about who calls."""
IN_OTHERS = ("sprout", "aware", "gcc", "least")
"""Who is run in them; those with an encoder of their own as they are."""
GREEDY_CALLERS: Mapping[str, Caller] = {
    "bulk": Caller("Sprout, file transfer", "sprout:bulk", GREEDY),
    "aware_bulk": Caller("Sprout, aware, file transfer", "sprout:bulk,app_limited=ignore", GREEDY),
}
"""Who always has something to send."""
WHATS: Mapping[str, Quantity[Calls]] = {
    "rate": Quantity(lambda run: float(run.rate.mean()) / 1e3, "kbit/s", "mean rate sent by a call", "rate (kbit/s)"),
    "spread": Quantity(
        lambda run: run.spread, "", "coefficient of variation, over users, of their mean rates", "CoV over users"
    ),
    "variation": Quantity(
        lambda run: _mean(run.variation), "", "coefficient of variation of a call's rate, by seconds", "CoV over time"
    ),
    "steps": Quantity(
        lambda run: _mean(run.steps), "", "mean change from one second to the next, of the mean rate", "change a second"
    ),
    "network": Quantity(lambda run: _mean(run.network), "ms", "mean delay from the wire to arrival", "delay (ms)"),
    "waiting": Quantity(
        lambda run: _mean(run.waiting), "ms", "mean time that a packet waits at its sender", "at the sender (ms)"
    ),
    "delay": Quantity(lambda run: _mean(run.network + run.waiting), "ms", "mean delay from capture to arrival"),
    "late": Quantity(
        lambda run: _mean(run.late), "ms", "95 % quantile of the delay from the wire, mean over calls", "p95 (ms)"
    ),
    "loss": Quantity(lambda run: 100 * _mean(run.loss), "%", "packets lost", "loss (%)"),
    "frozen": Quantity(lambda run: 100 * _mean(run.frozen), "%", "of the time frozen", "frozen (%)"),
    "files": Quantity(lambda run: run.files_s, "s", "time that a file takes", "a file takes (s)"),
}
"""What is measured of a cell; what has a head is in its table."""
RATE: Quantity[Alone] = Quantity(lambda run: run.mean / 1e3, "kbit/s", "mean rate, alone", "rate (kbit/s)")
ALONE: Mapping[str, Quantity[Alone]] = {
    "rate": RATE,
    "variation": Quantity(lambda run: run.variation, "", "of its rate, by seconds, alone", "CoV over time"),
    "steps": Quantity(lambda run: run.steps, "", "change from second to second, alone", "change a second"),
    "received": Quantity(lambda run: run.received, "bytes", "that arrive in a tick, if any", "bytes a tick, if any"),
    "empty": Quantity(lambda run: run.empty, "", "share of ticks in which nothing arrives", "empty ticks"),
    "delay": Quantity(lambda run: run.network, "ms", "mean delay from the wire, alone", "delay (ms)"),
}
"""Of a sender alone."""
OF_VARIANTS: Mapping[str, Quantity[Alone]] = {
    "rate": RATE,
    "variation": Quantity(lambda run: run.variation, "", "of its rate, by seconds", "CoV over time"),
    "waiting": Quantity(lambda run: run.waiting, "ms", "at the sender", "at the sender (ms)"),
}
"""Of one that is otherwise."""
TICKS: Mapping[str, Quantity[Ticks]] = {
    "unused": Quantity(lambda run: run.unused, "", "share of ticks with more to send"),
    "forecast": Quantity(lambda run: run.mean, "bytes", "that may be in the network, mean over ticks"),
    "every": Quantity(lambda run: run.every, "ms", "between two forecasts, median"),
}


def _mean(values: npt.NDArray[np.float64]) -> float:
    return float(np.nanmean(values))


class Experiment(Base):
    """All of the slides."""

    quick_seeds: ClassVar[int] = 2
    full_seeds: ClassVar[int] = 5

    def jobs(self, plan: Plan) -> Mapping[Any, Job[Any]]:
        """One sender alone in many ways, and the cells under each load."""
        jobs: dict[Any, Job[Any]] = {}
        end_s = QUICK_END_S if plan.quick else Cell.end_s
        for seed in plan.seeds:
            for key, caller in {**CALLERS, **GREEDY_CALLERS}.items():
                jobs["alone", key, seed] = job(caller, seed)
            for fps in FPS:
                jobs["fps", fps, seed] = job(_at(fps, VIDEO), seed)
                jobs["equal-fps", fps, seed] = job(_at(fps, EQUAL["flows.call.media.video"]), seed)
            for key, caller in VARIANTS.items():
                jobs["variant", key, seed] = job(caller, seed)
            cells = {
                ("cell", load, key): Cell(caller, load, end_s=end_s)
                for load, (key, caller) in product(_loads(plan), CALLERS.items())
            }
            if not plan.quick:
                for (kind, (_, other, keys)), key in product(OTHERS.items(), IN_OTHERS):
                    cells[kind, OTHER_LOAD, key] = Cell(CALLERS[key].under(keys), OTHER_LOAD, **other)
            for place, cell in cells.items():
                jobs[(*place, seed)] = Then(RunJob(cell.scenario, seed), Calls.of)
        return jobs

    def outcome(self, plan: Plan, done: Mapping[Any, Any]) -> Outcome:
        """Measures of what the slides say, their figures, and ours."""
        return Results(_loads(plan), done).outcome()


def _at(fps: int, video: Mapping[str, Any]) -> Caller:
    """Sprout with so many frames a second."""
    return Caller("", "sprout", {"flows.call.media.video": {**video, "fps": fps}})


def _together(one: npt.NDArray[np.float64], other: npt.NDArray[np.float64]) -> float:
    """Correlation of two series of seconds."""
    return float(np.corrcoef(one, other)[0, 1])


def _loads(plan: Plan) -> Sequence[int]:
    return QUICK_LOADS if plan.quick else LOADS


@dataclass(frozen=True)
class Results:
    """What the runs came to."""

    loads: Sequence[int]
    done: Mapping[Any, Any]

    @cached_property
    def runs(self) -> Mapping[Any, list[Any]]:
        """The runs by their keys, one a seed."""
        return group_seeds(self.done)

    def outcome(self) -> Outcome:
        """All of it."""
        return Outcome(
            {**self.measures, **dict(self._repair())},
            tables=list(self._tables()),
            figures=list(self._figures()),
            notes=[
                "Figures over time are of the first seed; all else are means over seeds, which place users, too.",
                "A call counts in the cells if at least 20 s of it are after the warm-up.",
            ],
            digests={", ".join(map(str, key)): one.digest for key, one in self.done.items()},
        )

    @cached_property
    def measures(self) -> dict[str, Measure]:
        """What claims speak of."""
        return dict([*self._alone(), *self._allowed(), *self._cells()])

    # --- alone ----------------------------------------------------------------------------------------

    def _alone(self) -> Iterator[tuple[str, Measure]]:
        for who, (name, quantity) in product((*CALLERS, *GREEDY_CALLERS), ALONE.items()):
            yield f"alone.{who}.{name}", quantity.over(self.runs["alone", who])
        for fps in FPS:
            yield f"fps.{fps}.rate", replace(RATE, about=f"mean rate with {fps} frames/s").over(self.runs["fps", fps])
            equal = replace(RATE, about="the same, frames of equal size")
            yield f"fps.{fps}.equal", equal.over(self.runs["equal-fps", fps])
        for variant, (name, quantity) in product(VARIANTS, OF_VARIANTS.items()):
            yield f"variant.{variant}.{name}", quantity.over(self.runs["variant", variant])

    def _allowed(self) -> Iterator[tuple[str, Measure]]:
        for who in ("sprout", "bulk", "aware"):
            ticks = [one.ticks for one in self.runs["alone", who] if one.ticks is not None]
            for name, quantity in TICKS.items():
                yield f"ticks.{who}.{name}", quantity.over(ticks)
        calls: list[Alone] = self.runs["alone", "sprout"]
        bulks: list[Alone] = self.runs["alone", "bulk"]
        pairs = list(zip(calls, bulks, strict=True))
        ratio = [bulk.received / call.received for call, bulk in pairs]
        yield "received.ratio", Measure.of(ratio, "", "bytes in a tick, file transfer over video, where any arrive")
        ratio = [bulk.arrived.mean() / call.arrived.mean() for call, bulk in pairs]
        yield "received.mean_ratio", Measure.of(ratio, "", "the same over all ticks")
        ratio = [bulk.ticks.mean / call.ticks.mean for call, bulk in pairs if bulk.ticks and call.ticks]
        yield "forecast.ratio", Measure.of(ratio, "", "forecast, file transfer over video, on the same luck")
        beside = [_together(call.settled, bulk.settled) for call, bulk in pairs]
        about = "correlation of a call's rate, by seconds, with a file transfer's on the same luck"
        yield "channel.call", Measure.of(beside, "", about)
        about = "correlation, by seconds, of the forecast for a {} with what {}"
        beside = [_together(bulk.ticks.by_seconds, bulk.came) for call, bulk in pairs if call.ticks and bulk.ticks]
        yield "forecast.bulk.channel", Measure.of(beside, "", about.format("file transfer", "arrives of it"))
        beside = [_together(call.ticks.by_seconds, bulk.came) for call, bulk in pairs if call.ticks and bulk.ticks]
        yield "forecast.call.channel", Measure.of(beside, "", about.format("call", "arrives of a file transfer"))
        beside = [_together(call.ticks.by_seconds, call.settled) for call, bulk in pairs if call.ticks and bulk.ticks]
        yield "forecast.call.video", Measure.of(beside, "", about.format("call", "the call sends"))
        rate: Quantity[Alone] = Quantity(lambda run: run.mean, "bit/s")
        about = "rate of a file transfer with our rule less that without"
        yield "cure.bulk", rate.less(self.runs["alone", "aware_bulk"], bulks, about)
        share = [bulk.within(100.0) for bulk in bulks]
        yield "bulk.in_time", Measure.of(share, "", "share of packets of a file transfer that take at most 100 ms")
        bursts = zip(self.runs["variant", "bursts"], bulks, strict=True)
        ratio = [bulk.received / call.received for call, bulk in bursts]
        yield "received.bursts", Measure.of(ratio, "", "the same with bursts at changes of the rate, where any arrive")
        yield "frames.every", Measure.of([call.frame_ms for call in calls], "ms", "between frames")

    # --- cells ----------------------------------------------------------------------------------------

    def _cells(self) -> Iterator[tuple[str, Measure]]:
        for key, runs in self.runs.items():
            if key[0] in {"cell", *OTHERS}:
                for name, quantity in WHATS.items():
                    yield ".".join(map(str, (*key, name))), quantity.over(runs)

    def _repair(self) -> Iterator[tuple[str, Measure]]:
        """Differences between two controllers on the same luck."""
        pairs = (("sprout", "least"), ("aware", "sprout"), ("aware", "gcc"), ("sprout", "gcc"))
        for load, (who, other), (name, quantity) in product(self.loads, pairs, WHATS.items()):
            about = f"{quantity.about}: {who} less {other}"
            more = quantity.less(self.runs["cell", load, who], self.runs["cell", load, other], about)
            yield f"more.{load}.{who}.{other}.{name}", more

    # --- tables and figures -----------------------------------------------------------------------------

    def _tables(self) -> Iterator[Table]:
        made = self.measures
        shown = {name: quantity.head for name, quantity in WHATS.items() if quantity.head}
        for kind, title in {
            "cell": "case 1, files of 500 kB",
            **{kind: one[0] for kind, one in OTHERS.items()},
        }.items():
            rows: list[list[CellValue]] = [
                [key[1], CALLERS[key[2]].label, *(made[f"{kind}.{key[1]}.{key[2]}.{name}"] for name in shown)]
                for key in self.runs
                if key[0] == kind
            ]
            if rows:
                heads = ["calls a cell", "controller", *shown.values()]
                yield Table(kind, f"Calls in loaded cells: {title}", heads, rows)
        names = ("rate", "variation", "steps", "delay", "received", "empty")
        senders = {one.label: self.runs["alone", key] for key, one in {**CALLERS, **GREEDY_CALLERS}.items()}
        title = "One sender alone, from 10 s on"
        yield Table.of_quantities("alone", title, "sender", senders, [ALONE[name] for name in names])
        rows = [[fps, made[f"fps.{fps}.rate"], made[f"fps.{fps}.equal"]] for fps in FPS]
        title = "Sprout alone with frames that come more or less often"
        yield Table("fps", title, ["frames a second", "rate (kbit/s)", "frames of equal size (kbit/s)"], rows)
        variants = {one.label: self.runs["variant", key] for key, one in VARIANTS.items()}
        title = "Sprout alone: what the slides leave open, one at a time"
        yield Table.of_quantities("variants", title, "variant", variants, OF_VARIANTS.values())

    def _figures(self) -> Iterator[Drawing]:
        first: dict[str, Alone] = {key[1]: runs[0] for key, runs in self.runs.items() if key[0] == "alone"}
        yield figures.alone(first)
        for who, title, name in (
            ("bulk", "file transfer", "forecast-file"),
            ("sprout", "conversational video", "forecast-video"),
        ):
            if first[who].ticks is not None:  # what is no Sprout forecasts nothing
                yield figures.forecast(first[who], title, name)
        yield figures.reception(first["bulk"], first["sprout"])
        curves = {
            name: {
                one.label: [list(map(quantity.take, self.runs["cell", load, key])) for load in self.loads]
                for key, one in CALLERS.items()
            }
            for name, quantity in WHATS.items()
        }
        yield from figures.by_load(self.loads, curves)
        yield figures.by_fps(
            {
                label: {fps: [one.mean / 1e3 for one in self.runs[kind, fps]] for fps in FPS}
                for label, kind in {"sizes that vary": "fps", "frames of equal size": "equal-fps"}.items()
            }
        )
        yield figures.repaired(first)
