"""What runs with pictures came to: measures, tables, figure 6, and the bars of figure 7."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from tidegate.paper import Drawing, Measure, Plan, Sheet, Table
from tidegate.paper.measures import CellValue
from tidegate.papers.lissah2019.network import CONTROLLERS, FRAMES
from tidegate.papers.lissah2019.pictures import COMPARED, OPEN, RATES, Encoded, Seen, seeds

PUBLISHED_PSNR: Mapping[str, float] = {"table": 34.49, "existing": 31.25}
"""Means in dB as printed (section 5.4)."""


@dataclass(frozen=True)
class _Quantity:
    """What is measured of what was seen."""

    unit: str
    head: str
    """Of a column."""
    of: Callable[[Seen], float]


def _end(which: Callable[[Iterable[float]], float], values: Callable[[], list[float]]) -> float:
    """The least or the largest of them."""
    return which(values())


def _metric(name: str) -> Callable[[Seen], float]:
    return lambda one: one.summary[f"picture_{name}"]


QUANTITIES: Mapping[str, _Quantity] = {
    "psnr": _Quantity("dB", "PSNR (dB)", lambda one: float(one.psnr.mean())),
    "psnr.encoded": _Quantity("dB", "as encoded (dB)", lambda one: float(one.encoded.mean())),
    "psnr.worst": _Quantity("dB", "worst second (dB)", lambda one: one.worst),
    "ssim": _Quantity("", "SSIM", _metric("ssim")),
    "evalvid": _Quantity("", "EvalVid's MOS", _metric("mos")),
    "harmed": _Quantity(
        "%",
        "frames not whole in time (%)",
        lambda one: 100 * (one.summary["picture_frames_lost"] + one.summary["picture_frames_damaged"]),
    ),
    "freezes": _Quantity("", "freezes", _metric("freezes")),
    "frozen": _Quantity("s", "frozen (s)", _metric("freeze_time_s")),
}
"""Of files and of calls."""

BESIDE: Mapping[str, _Quantity] = {
    "pictured.delay": _Quantity("ms", "frame delay (ms)", lambda one: float(one.kept.delay.mean())),
    "pictured.jitter": _Quantity("ms", "cumulative jitter (ms)", lambda one: float(one.kept.cumulative.mean())),
    "pictured.lost": _Quantity("%", "packets lost (%)", lambda one: 100 * one.kept.lost),
    "pictured.mos": _Quantity("", "MOS from packets", lambda one: one.kept.mos),
}
"""Of the same runs, as of those without pictures."""

LATENCY = _Quantity("ms", "latency (ms)", _metric("latency_ms_mean"))
"""Of calls: files have none."""


@dataclass(frozen=True)
class Viewed:
    """What was seen of all runs."""

    plan: Plan
    done: Mapping[Any, Any]
    """Results of `pictures.jobs` by their keys."""
    lacks: str
    """What must be installed; there is nothing of `done` then, and measures have no value."""
    labels: Mapping[str, str]
    """What a reader sees of `CONTROLLERS`."""

    def _taken(self, unit: str, values: Callable[[], Iterable[float]]) -> Measure:
        return Measure.not_taken(self.lacks, unit) if self.lacks else Measure.of(values(), unit)

    def _exact(self, unit: str, value: Callable[[], float]) -> Measure:
        return Measure.not_taken(self.lacks, unit) if self.lacks else Measure.exact(value(), unit)

    def runs(self, part: str, *key: str) -> list[Seen]:
        """Of all seeds of a part; `key` is a controller, behind the label of a setting where the part is open."""
        return [self.done[(part, *key, seed)] for seed in seeds(self.plan, part)]

    def of(self, quantity: _Quantity, part: str, *key: str) -> Measure:
        """A quantity over the seeds."""
        return self._taken(quantity.unit, lambda: [quantity.of(one) for one in self.runs(part, *key)])

    def more(self, quantity: str, first: str, second: str) -> Measure:
        """How much more the first one has, on the same luck."""
        what = QUANTITIES[quantity]
        return self._taken(
            what.unit,
            lambda: [
                what.of(one) - what.of(other)
                for one, other in zip(self.runs("file", first), self.runs("file", second), strict=True)
            ],
        )

    def encoded(self) -> list[Encoded]:
        """The encodings by rising rate."""
        return [self.done["encoded", label] for label in RATES]

    def measures(self) -> Iterator[tuple[str, Measure]]:
        """All that claims speak of."""
        for name in CONTROLLERS:
            for quantity, what in QUANTITIES.items():
                yield f"{name}.{quantity}", self.of(what, "file", name)
                yield f"call.{name}.{quantity}", self.of(what, "call", name)
            for quantity, what in BESIDE.items():
                yield f"{name}.{quantity}", self.of(what, "file", name)
            yield f"call.{name}.latency", self.of(LATENCY, "call", name)
        for quantity in ("psnr", "evalvid"):
            yield f"more.{quantity}", self.more(quantity, "table", "existing")
            yield f"more.{quantity}.none", self.more(quantity, "table", "none")
            for name in COMPARED:
                unit, settings = QUANTITIES[quantity].unit, partial(self._open, quantity, name)
                yield f"open.{name}.{quantity}.least", self._exact(unit, partial(_end, min, settings))
                yield f"open.{name}.{quantity}.most", self._exact(unit, partial(_end, max, settings))
        yield "encoded.least", self._exact("dB", lambda: float(self.encoded()[0].psnr.mean()))
        yield "encoded.most", self._exact("dB", lambda: float(self.encoded()[-1].psnr.mean()))
        yield "encoded.doubling", self._exact("dB", self._doubling)
        yield "printed.rate", self._exact("kb/s", lambda: self._printed()[0] / 1e3)
        yield "printed.grade", self._exact("", lambda: self._printed()[1])

    def _open(self, quantity: str, name: str) -> list[float]:
        """Means over seeds at each setting that is left open, and as found."""
        what = QUANTITIES[quantity]
        keys = [("file", name), *(("open picture", label, name) for label in OPEN)]
        return [self.of(what, *key).value.mean for key in keys]

    def _doubling(self) -> float:
        """How much PSNR a doubled rate adds, as a mean over all of them."""
        one = self.encoded()
        octaves = np.log2(one[-1].rate / one[0].rate)
        return float((one[-1].psnr.mean() - one[0].psnr.mean()) / octaves)

    def _printed(self) -> tuple[float, float]:
        """The rate in bit/s at which the clip has the printed PSNR as encoded, and EvalVid's mean grade there.

        Along the line through the two nearest encodings, over the logarithm of the rate.
        """
        one = self.encoded()
        known = np.array([each.psnr.mean() for each in one])
        after = int(np.clip(np.searchsorted(known, PUBLISHED_PSNR["table"]), 1, len(one) - 1))
        share = (PUBLISHED_PSNR["table"] - known[after - 1]) / (known[after] - known[after - 1])
        low, high = one[after - 1], one[after]
        return low.rate * (high.rate / low.rate) ** float(share), low.grade + float(share) * (high.grade - low.grade)

    def tables(self) -> Iterator[Table]:
        """What was seen, by sender and by setting; nothing without pictures."""
        if self.lacks:
            return
        yield self._senders(
            "pictures", "Real pictures of 1 Mb/s, put together as EvalVid does", "file", BESIDE.values()
        )
        yield self._senders("call", "The same in a call: what is a second late is not seen", "call", [LATENCY])
        shown = ("psnr", "evalvid", "harmed")
        heads = ["setting", *(f"{self.labels[name]}: {QUANTITIES[what].head}" for what in shown for name in COMPARED)]
        keys = {"as found": ("file",), **{label: ("open picture", label) for label in OPEN}}
        rows: list[list[CellValue]] = [
            [label, *(self.of(QUANTITIES[what], *key, name) for what in shown for name in COMPARED)]
            for label, key in keys.items()
        ]
        yield Table("open-pictures", "What the document leaves open and what is seen", heads, rows)
        coded: list[list[CellValue]] = [
            [label, round(one.rate / 1e3, 1), float(one.psnr.mean()), one.grade]
            for label, one in zip(RATES, self.encoded(), strict=True)
        ]
        heads = ["asked for", "sent (kb/s)", "PSNR (dB)", "EvalVid's MOS"]
        yield Table("encoded", "The clip as it is encoded, before any network", heads, coded)

    def _senders(self, table: str, title: str, part: str, more: Iterable[_Quantity]) -> Table:
        """A row for each controller."""
        shown = [*QUANTITIES.values(), *more]
        rows: list[list[CellValue]] = [
            [self.labels[name], *(self.of(what, part, name) for what in shown)] for name in CONTROLLERS
        ]
        return Table(table, title, ["sender", *(what.head for what in shown)], rows)

    def figure6(self) -> Drawing:
        """PSNR of each frame with the two that the document compares."""
        sheet = Sheet("Figure 6", "PSNR of frames", x="Frame", y="PSNR (dB)")
        for at, name in ((FRAMES / 2 - 20, "existing"), (FRAMES / 2 + 20, "table")):
            first = self.runs("file", name)[0]
            sheet.series(self.labels[name], first.picture[:FRAMES], first.psnr[:FRAMES])
            sheet.published(self.labels[name], [at], [PUBLISHED_PSNR[name]])
        return sheet.drawing("figure6", "One seed; the document's means as marks. Its clip and its rate are others.")

    def bars(self, sheet: Sheet, names: Iterable[str], printed: Mapping[str, float]) -> None:
        """Adds EvalVid's MOS to figure 7, beside what is printed; nothing without pictures."""
        if self.lacks:
            return
        label = "EvalVid's, from PSNR"
        sheet.bars(label, {self.labels[name]: self.of(QUANTITIES["evalvid"], "file", name) for name in names})
        sheet.published(label, [self.labels[name] for name in printed], list(printed.values()))
