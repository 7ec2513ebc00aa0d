"""What runs with pictures came to: measures, tables, figure 6, and the bars of figure 7."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tidegate.paper import Drawing, Measure, Quantity, Sheet, Table
from tidegate.paper.measures import CellValue
from tidegate.papers.lissah2019.network import CONTROLLERS, FRAMES, LABELS
from tidegate.papers.lissah2019.pictures import COMPARED, OPEN, RATES, Encoded, Seen

PUBLISHED_PSNR: Mapping[str, float] = {"table": 34.49, "existing": 31.25}
"""Means in dB as printed (section 5.4)."""


def _metric(name: str, unit: str, head: str) -> Quantity[Seen]:
    return Quantity(lambda run: run.summary[f"picture_{name}"], unit, head=head)


QUANTITIES: Mapping[str, Quantity[Seen]] = {
    "psnr": Quantity(lambda run: float(run.psnr.mean()), "dB", head="PSNR (dB)"),
    "psnr.encoded": Quantity(lambda run: float(run.encoded.mean()), "dB", head="as encoded (dB)"),
    "psnr.worst": Quantity(lambda run: run.worst, "dB", head="worst second (dB)"),
    "ssim": _metric("ssim", "", "SSIM"),
    "evalvid": _metric("mos", "", "EvalVid's MOS"),
    "harmed": Quantity(
        lambda run: 100 * (run.summary["picture_frames_lost"] + run.summary["picture_frames_damaged"]),
        "%",
        head="frames not whole in time (%)",
    ),
    "freezes": _metric("freezes", "", "freezes"),
    "frozen": _metric("freeze_time_s", "s", "frozen (s)"),
}
"""Of files and of calls."""

BESIDE: Mapping[str, Quantity[Seen]] = {
    "pictured.delay": Quantity(lambda run: float(run.kept.delay.mean()), "ms", head="frame delay (ms)"),
    "pictured.jitter": Quantity(lambda run: float(run.kept.cumulative.mean()), "ms", head="cumulative jitter (ms)"),
    "pictured.lost": Quantity(lambda run: 100 * run.kept.lost, "%", head="packets lost (%)"),
    "pictured.mos": Quantity(lambda run: run.kept.mos, head="MOS from packets"),
}
"""Of the same runs, as of those without pictures."""

LATENCY = _metric("latency_ms_mean", "ms", "latency (ms)")
"""Of calls: files have none."""

ENCODINGS = {
    "encoded.least": "dB",
    "encoded.most": "dB",
    "encoded.doubling": "dB",
    "printed.rate": "kb/s",
    "printed.grade": "",
}
"""What is measured of the encodings, and its unit."""


@dataclass(frozen=True)
class Viewed:
    """What was seen of all runs."""

    runs: Mapping[Any, list[Any]]
    """Results of `pictures.jobs` by their keys: a controller, behind the label of a setting where the part is open."""
    lacks: str
    """What must be installed; there is nothing of `runs` then, and measures have no value."""

    def of(self, quantity: Quantity[Seen], *key: str) -> Measure:
        """A quantity over the seeds."""
        return quantity.over(self.runs.get(key, []))

    def more(self, quantity: str, first: str, second: str) -> Measure:
        """How much more the first one has, on the same luck."""
        return QUANTITIES[quantity].less(self.runs.get(("file", first), []), self.runs.get(("file", second), []))

    def measures(self) -> Iterator[tuple[str, Measure]]:
        """All that claims speak of."""
        for name, measure in self._measures():
            yield name, replace(measure, lacks=self.lacks)

    def _measures(self) -> Iterator[tuple[str, Measure]]:
        for name in CONTROLLERS:
            for label, quantity in QUANTITIES.items():
                yield f"{name}.{label}", self.of(quantity, "file", name)
                yield f"call.{name}.{label}", self.of(quantity, "call", name)
            for label, quantity in BESIDE.items():
                yield f"{name}.{label}", self.of(quantity, "file", name)
            yield f"call.{name}.latency", self.of(LATENCY, "call", name)
        for label in ("psnr", "evalvid"):
            yield f"more.{label}", self.more(label, "table", "existing")
            yield f"more.{label}.none", self.more(label, "table", "none")
            for name in COMPARED:
                unit, means = QUANTITIES[label].unit, self._open(label, name)
                yield f"open.{name}.{label}.least", Measure.exact(min(means), unit)
                yield f"open.{name}.{label}.most", Measure.exact(max(means), unit)
        values = {} if self.lacks else self._encodings()
        for name, unit in ENCODINGS.items():
            yield name, Measure.exact(values.get(name, np.nan), unit)

    def _open(self, quantity: str, name: str) -> list[float]:
        """Means over seeds at each setting that is left open, and as found."""
        keys = [("file", name), *(("open picture", label, name) for label in OPEN)]
        return [self.of(QUANTITIES[quantity], *key).value.mean for key in keys]

    @property
    def encoded(self) -> list[Encoded]:
        """The encodings by rising rate."""
        encodings: list[Encoded] = self.runs["encoded",]  # their keys end in a rate, not in a seed
        return encodings

    def _encodings(self) -> dict[str, float]:
        """The least and the largest PSNR as encoded, and how much of it a doubled rate adds, a mean over all of them.

        With the rate at which the clip has the printed PSNR as encoded, and EvalVid's mean grade there: along the line
        through the two nearest encodings, over the logarithm of the rate.
        """
        encoded = self.encoded
        psnr = np.array([each.psnr.mean() for each in encoded])
        after = int(np.clip(np.searchsorted(psnr, PUBLISHED_PSNR["table"]), 1, len(encoded) - 1))
        part = float((PUBLISHED_PSNR["table"] - psnr[after - 1]) / (psnr[after] - psnr[after - 1]))
        low, high = encoded[after - 1], encoded[after]
        return {
            "encoded.least": float(psnr[0]),
            "encoded.most": float(psnr[-1]),
            "encoded.doubling": float((psnr[-1] - psnr[0]) / np.log2(encoded[-1].rate / encoded[0].rate)),
            "printed.rate": low.rate * (high.rate / low.rate) ** part / 1e3,
            "printed.grade": low.grade + part * (high.grade - low.grade),
        }

    def tables(self) -> Iterator[Table]:
        """What was seen, by sender and by setting; nothing without pictures."""
        if self.lacks:
            return
        for part, table, title, more in (
            ("file", "pictures", "Real pictures of 1 Mb/s, put together as EvalVid does", BESIDE.values()),
            ("call", "call", "The same in a call: what is a second late is not seen", [LATENCY]),
        ):
            senders = {LABELS[name]: self.runs[part, name] for name in CONTROLLERS}
            yield Table.of_quantities(table, title, "sender", senders, [*QUANTITIES.values(), *more])
        columns = [(QUANTITIES[name], who) for name in ("psnr", "evalvid", "harmed") for who in COMPARED]
        heads = ["setting", *(f"{LABELS[who]}: {quantity.head}" for quantity, who in columns)]
        keys = {"as found": ("file",), **{label: ("open picture", label) for label in OPEN}}
        rows: list[list[CellValue]] = [
            [label, *(self.of(quantity, *key, who) for quantity, who in columns)] for label, key in keys.items()
        ]
        yield Table("open-pictures", "What the document leaves open and what is seen", heads, rows)
        rows = [
            [label, round(one.rate / 1e3, 1), float(one.psnr.mean()), one.grade]
            for label, one in zip(RATES, self.encoded, strict=True)
        ]
        heads = ["asked for", "sent (kb/s)", "PSNR (dB)", "EvalVid's MOS"]
        yield Table("encoded", "The clip as it is encoded, before any network", heads, rows)

    def figure6(self) -> Drawing:
        """PSNR of each frame with the two that the document compares."""
        sheet = Sheet("Figure 6", "PSNR of frames", x="Frame", y="PSNR (dB)")
        for at, name in ((FRAMES / 2 - 20, "existing"), (FRAMES / 2 + 20, "table")):
            first = self.runs["file", name][0]
            sheet.series(LABELS[name], first.picture[:FRAMES], first.psnr[:FRAMES])
            sheet.published(LABELS[name], [at], [PUBLISHED_PSNR[name]])
        return sheet.drawing("figure6", "One seed; the document's means as marks. Its clip and its rate are others.")

    def bars(self, sheet: Sheet, names: Iterable[str], printed: Mapping[str, float]) -> None:
        """Adds EvalVid's MOS to figure 7, beside what is printed; nothing without pictures."""
        if self.lacks:
            return
        label = "EvalVid's, from PSNR"
        sheet.bars(label, {LABELS[name]: self.of(QUANTITIES["evalvid"], "file", name) for name in names})
        sheet.published(label, [LABELS[name] for name in printed], list(printed.values()))
