"""The slides' figures, their statements as numbers, and what our rule for limited senders repairs and costs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from tidegate.paper import Drawing, Measure, Outcome, Plan, Table
from tidegate.paper import Experiment as Base
from tidegate.paper.measures import CellValue
from tidegate.papers.hermanns2013 import figures
from tidegate.papers.hermanns2013.alone import GREEDY, Alone, AloneJob
from tidegate.papers.hermanns2013.cells import BURSTS, CALLERS, EQUAL, VIDEO, Caller, Calls, Cell, CellJob
from tidegate.papers.hermanns2013.variants import FPS, VARIANTS
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
WHATS: Mapping[str, tuple[Callable[[Calls], float], str, str]] = {
    "rate": (lambda one: float(one.rate.mean()) / 1e3, "kbit/s", "mean rate sent by a call"),
    "spread": (lambda one: one.spread, "", "coefficient of variation, over users, of their mean rates"),
    "variation": (
        lambda one: float(np.nanmean(one.variation)),
        "",
        "coefficient of variation of a call's rate, by seconds",
    ),
    "steps": (
        lambda one: float(np.nanmean(one.steps)),
        "",
        "mean change from one second to the next, of the mean rate",
    ),
    "network": (lambda one: float(np.nanmean(one.network)), "ms", "mean delay from the wire to arrival"),
    "waiting": (lambda one: float(np.nanmean(one.waiting)), "ms", "mean time that a packet waits at its sender"),
    "delay": (lambda one: float(np.nanmean(one.network + one.waiting)), "ms", "mean delay from capture to arrival"),
    "late": (
        lambda one: float(np.nanmean(one.late)),
        "ms",
        "95 % quantile of the delay from the wire, mean over calls",
    ),
    "loss": (lambda one: 100 * float(np.nanmean(one.loss)), "%", "packets lost"),
    "frozen": (lambda one: 100 * float(np.nanmean(one.frozen)), "%", "of the time frozen"),
    "files": (lambda one: one.files_s, "s", "time that a file takes"),
}
"""What is measured of a cell: how, in which unit, what it is."""


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
                jobs["alone", key, seed] = AloneJob(caller, seed)
            for fps in FPS:
                jobs["fps", fps, seed] = AloneJob(_at(fps, VIDEO), seed)
                jobs["equal-fps", fps, seed] = AloneJob(_at(fps, EQUAL["flows.call.media.video"]), seed)
            for key, caller in VARIANTS.items():
                jobs["variant", key, seed] = AloneJob(caller, seed)
            for load in _loads(plan):
                for key, caller in CALLERS.items():
                    jobs["cell", load, key, seed] = CellJob(Cell(caller, load, end_s=end_s), seed)
            for kind, (_, cells, keys) in () if plan.quick else OTHERS.items():
                for key in IN_OTHERS:
                    jobs[kind, OTHER_LOAD, key, seed] = CellJob(
                        Cell(CALLERS[key].under(keys), OTHER_LOAD, **cells), seed
                    )
        return jobs

    def outcome(self, plan: Plan, done: Mapping[Any, Any]) -> Outcome:
        """Measures of what the slides say, their figures, and ours."""
        return Results(plan.seeds, _loads(plan), done).outcome()


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

    seeds: Sequence[int]
    loads: Sequence[int]
    done: Mapping[Any, Any]

    def of(self, *key: Any) -> list[Any]:
        """The runs under a key, one a seed."""
        return [self.done[(*key, seed)] for seed in self.seeds]

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
        def over(runs: Sequence[Alone], take: Callable[[Alone], float], unit: str, about: str) -> Measure:
            return Measure.of([take(one) for one in runs], unit, about)

        for who in (*CALLERS, *GREEDY_CALLERS):
            runs = self.of("alone", who)
            yield f"alone.{who}.rate", over(runs, lambda one: one.mean / 1e3, "kbit/s", "mean rate, alone")
            yield f"alone.{who}.variation", over(runs, lambda one: one.variation, "", "of its rate, by seconds, alone")
            yield f"alone.{who}.steps", over(runs, lambda one: one.steps, "", "change from second to second, alone")
            yield (
                f"alone.{who}.received",
                over(runs, lambda one: one.received, "bytes", "that arrive in a tick, if any"),
            )
            yield f"alone.{who}.empty", over(runs, lambda one: one.empty, "", "share of ticks in which nothing arrives")
            yield f"alone.{who}.delay", over(runs, lambda one: one.network, "ms", "mean delay from the wire, alone")
        for fps in FPS:
            runs = self.of("fps", fps)
            yield f"fps.{fps}.rate", over(runs, lambda one: one.mean / 1e3, "kbit/s", f"mean rate with {fps} frames/s")
            equal = over(
                self.of("equal-fps", fps), lambda one: one.mean / 1e3, "kbit/s", "the same, frames of equal size"
            )
            yield f"fps.{fps}.equal", equal
        for name in VARIANTS:
            runs = self.of("variant", name)
            yield f"variant.{name}.rate", over(runs, lambda one: one.mean / 1e3, "kbit/s", "mean rate, alone")
            yield f"variant.{name}.variation", over(runs, lambda one: one.variation, "", "of its rate, by seconds")
            yield f"variant.{name}.waiting", over(runs, lambda one: one.waiting, "ms", "at the sender")

    def _allowed(self) -> Iterator[tuple[str, Measure]]:
        for who in ("sprout", "bulk", "aware"):
            ticks = [one.ticks for one in self.of("alone", who) if one.ticks is not None]
            yield (
                f"ticks.{who}.unused",
                Measure.of([one.unused for one in ticks], "", "share of ticks with more to send"),
            )
            forecast = Measure.of([one.mean for one in ticks], "bytes", "that may be in the network, mean over ticks")
            yield f"ticks.{who}.forecast", forecast
            yield f"ticks.{who}.every", Measure.of([one.every for one in ticks], "ms", "between two forecasts, median")
        pairs = list(zip(self.of("alone", "sprout"), self.of("alone", "bulk"), strict=True))
        ratio = [bulk.received / call.received for call, bulk in pairs]
        yield "received.ratio", Measure.of(ratio, "", "bytes in a tick, file transfer over video, where any arrive")
        ratio = [bulk.arrived.mean() / call.arrived.mean() for call, bulk in pairs]
        yield "received.mean_ratio", Measure.of(ratio, "", "the same over all ticks")
        ratio = [bulk.ticks.mean / call.ticks.mean for call, bulk in pairs if bulk.ticks and call.ticks]
        yield "forecast.ratio", Measure.of(ratio, "", "forecast, file transfer over video, on the same luck")
        beside = [_together(call.settled, bulk.settled) for call, bulk in pairs]
        about = "correlation of a call's rate, by seconds, with a file transfer's on the same luck"
        yield "channel.call", Measure.of(beside, "", about)
        forecasts = [
            (call, bulk, call.ticks.by_seconds, bulk.ticks.by_seconds)
            for call, bulk in pairs
            if call.ticks and bulk.ticks
        ]
        about = "correlation, by seconds, of the forecast for a {} with what {}"
        beside = [_together(second, bulk.came) for _, bulk, _, second in forecasts]
        yield "forecast.bulk.channel", Measure.of(beside, "", about.format("file transfer", "arrives of it"))
        beside = [_together(first, bulk.came) for _, bulk, first, _ in forecasts]
        yield "forecast.call.channel", Measure.of(beside, "", about.format("call", "arrives of a file transfer"))
        beside = [_together(first, call.settled) for call, _, first, _ in forecasts]
        yield "forecast.call.video", Measure.of(beside, "", about.format("call", "the call sends"))
        more = [
            two.mean - one.mean
            for one, two in zip(self.of("alone", "bulk"), self.of("alone", "aware_bulk"), strict=True)
        ]
        yield "cure.bulk", Measure.of(more, "bit/s", "rate of a file transfer with our rule less that without")
        share = [one.within(100.0) for one in self.of("alone", "bulk")]
        yield "bulk.in_time", Measure.of(share, "", "share of packets of a file transfer that take at most 100 ms")
        ratio = [
            bulk.received / call.received
            for call, bulk in zip(self.of("variant", "bursts"), self.of("alone", "bulk"), strict=True)
        ]
        yield "received.bursts", Measure.of(ratio, "", "the same with bursts at changes of the rate, where any arrive")
        yield "frames.every", Measure.of([one.frame_ms for one in self.of("alone", "sprout")], "ms", "between frames")

    # --- cells ----------------------------------------------------------------------------------------

    def _cells(self) -> Iterator[tuple[str, Measure]]:
        for kind, load, who in dict.fromkeys(key[:3] for key in self.done if key[0] in {"cell", *OTHERS}):
            runs = self.of(kind, load, who)
            for what, (take, unit, about) in WHATS.items():
                yield f"{kind}.{load}.{who}.{what}", Measure.of([take(one) for one in runs], unit, about)

    def _repair(self) -> Iterator[tuple[str, Measure]]:
        """Differences between two controllers on the same luck."""
        for load in self.loads:
            for who, other in (("sprout", "least"), ("aware", "sprout"), ("aware", "gcc"), ("sprout", "gcc")):
                pairs = list(zip(self.of("cell", load, who), self.of("cell", load, other), strict=True))
                for what, (take, unit, about) in WHATS.items():
                    more = Measure.of(
                        [take(one) - take(two) for one, two in pairs], unit, f"{about}: {who} less {other}"
                    )
                    yield f"more.{load}.{who}.{other}.{what}", more

    # --- tables and figures -----------------------------------------------------------------------------

    def _tables(self) -> Iterator[Table]:
        made = self.measures
        heads = [
            "rate (kbit/s)",
            "CoV over users",
            "CoV over time",
            "change a second",
            "delay (ms)",
            "at the sender (ms)",
            "p95 (ms)",
        ]
        heads += ["loss (%)", "frozen (%)", "a file takes (s)"]
        shown = ("rate", "spread", "variation", "steps", "network", "waiting", "late", "loss", "frozen", "files")
        for kind, title in {
            "cell": "case 1, files of 500 kB",
            **{kind: title for kind, (title, *_) in OTHERS.items()},
        }.items():
            rows: list[list[CellValue]] = [
                [load, CALLERS[who].label, *(made[f"{kind}.{load}.{who}.{what}"] for what in shown)]
                for kind_, load, who in dict.fromkeys(key[:3] for key in self.done)
                if kind_ == kind
            ]
            if rows:
                yield Table(kind, f"Calls in loaded cells: {title}", ["calls a cell", "controller", *heads], rows)
        whats = ("rate", "variation", "steps", "delay", "received", "empty")
        rows = [
            [one.label, *(made[f"alone.{key}.{what}"] for what in whats)]
            for key, one in {**CALLERS, **GREEDY_CALLERS}.items()
        ]
        heads = [
            "sender",
            "rate (kbit/s)",
            "CoV over time",
            "change a second",
            "delay (ms)",
            "bytes a tick, if any",
            "empty ticks",
        ]
        yield Table("alone", "One sender alone, from 10 s on", heads, rows)
        rows = [[fps, made[f"fps.{fps}.rate"], made[f"fps.{fps}.equal"]] for fps in FPS]
        title = "Sprout alone with frames that come more or less often"
        yield Table("fps", title, ["frames a second", "rate (kbit/s)", "frames of equal size (kbit/s)"], rows)
        kept = ("rate", "variation", "waiting")
        rows = [[one.label, *(made[f"variant.{name}.{what}"] for what in kept)] for name, one in VARIANTS.items()]
        title = "Sprout alone: what the slides leave open, one at a time"
        yield Table("variants", title, ["variant", "rate (kbit/s)", "CoV over time", "at the sender (ms)"], rows)

    def _figures(self) -> Iterator[Drawing]:
        first = {key[1]: one for key, one in self.done.items() if key[0] == "alone" and key[-1] == self.seeds[0]}
        yield figures.alone(first)
        for who, what, name in (
            ("bulk", "file transfer", "forecast-file"),
            ("sprout", "conversational video", "forecast-video"),
        ):
            if first[who].ticks is not None:  # what is no Sprout forecasts nothing
                yield figures.forecast(first[who], what, name)
        yield figures.reception(first["bulk"], first["sprout"])
        curves = {
            what: {
                one.label: [[take(run) for run in self.of("cell", load, key)] for load in self.loads]
                for key, one in CALLERS.items()
            }
            for what, (take, *_) in WHATS.items()
        }
        yield from figures.by_load(self.loads, curves)
        yield figures.by_fps(
            {
                label: {fps: [one.mean / 1e3 for one in self.of(kind, fps)] for fps in FPS}
                for label, kind in {"sizes that vary": "fps", "frames of equal size": "equal-fps"}.items()
            }
        )
        yield figures.repaired(first)
