"""Results of runs with pictures: measures, tables, figure 6, and EvalVid's bars of figure 7."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tidegate.paper import Drawing, Measure, Quantity, Sheet, Table
from tidegate.paper.measures import CellValue
from tidegate.papers.lissah2019.network import CONTROLLERS, FRAMES, LABELS
from tidegate.papers.lissah2019.pictures import COMPARED, OPEN, RATES, Encoded, PictureRun

PUBLISHED_PSNR: Mapping[str, float] = {"table": 34.49, "existing": 31.25}
"""Printed mean PSNR in dB, by sender (section 5.4)."""


def _metric(name: str, unit: str, head: str) -> Quantity[PictureRun]:
    return Quantity(lambda run: run.summary[f"picture_{name}"], unit, head=head)


QUANTITIES: Mapping[str, Quantity[PictureRun]] = {
    "psnr": Quantity(lambda run: float(run.psnr.mean()), "dB", head="PSNR (dB)"),
    "psnr.encoded": Quantity(lambda run: float(run.encoded.mean()), "dB", head="PSNR as encoded (dB)"),
    "psnr.worst": Quantity(lambda run: run.worst, "dB", head="PSNR of the worst second (dB)"),
    "ssim": _metric("ssim", "", "SSIM"),
    "evalvid": _metric("mos", "", "EvalVid's MOS"),
    "harmed": Quantity(
        lambda run: 100 * (run.summary["picture_frames_lost"] + run.summary["picture_frames_damaged"]),
        "%",
        head="frames missing, damaged or late (%)",
    ),
    "freezes": _metric("freezes", "", "freezes"),
    "frozen": _metric("freeze_time_s", "s", "time frozen (s)"),
}
"""Quantities of files and of calls."""

NETWORK_QUANTITIES: Mapping[str, Quantity[PictureRun]] = {
    "pictured.delay": Quantity(lambda run: float(run.network.delay.mean()), "ms", head="frame delay (ms)"),
    "pictured.jitter": Quantity(lambda run: float(run.network.cumulative.mean()), "ms", head="cumulative jitter (ms)"),
    "pictured.lost": Quantity(lambda run: 100 * run.network.lost, "%", head="packets lost (%)"),
    "pictured.mos": Quantity(lambda run: run.network.mos, head="MOS from packets"),
}
"""Quantities of the same runs that runs without pictures have as well."""

LATENCY = _metric("latency_ms_mean", "ms", "latency (ms)")
"""Latency of calls; files have none."""

ENCODINGS = {
    "encoded.least": "dB",
    "encoded.most": "dB",
    "encoded.doubling": "dB",
    "printed.rate": "kb/s",
    "printed.grade": "",
}
"""Measures of the encodings, with their units."""


@dataclass(frozen=True)
class PictureResults:
    """Measures, tables and figures of all runs with pictures."""

    runs: Mapping[Any, list[Any]]
    """Results of `pictures.jobs` by key without the seed: part, label of an open setting if any, controller."""
    lacks: str
    """Text that says what must be installed; `runs` is then empty, and measures have no value."""

    def over_seeds(self, quantity: Quantity[PictureRun], *key: str) -> Measure:
        """Measure of a quantity over the seeds."""
        return quantity.over(self.runs.get(key, []))

    def more(self, quantity: str, first: str, second: str) -> Measure:
        """Mean of the first sender's value less the second's, seed by seed."""
        return QUANTITIES[quantity].less(self.runs.get(("file", first), []), self.runs.get(("file", second), []))

    def measures(self) -> Iterator[tuple[str, Measure]]:
        """Measures that claims refer to, by name."""
        for name, measure in self._measures():
            yield name, replace(measure, lacks=self.lacks)

    def _measures(self) -> Iterator[tuple[str, Measure]]:
        for name in CONTROLLERS:
            for label, quantity in QUANTITIES.items():
                yield f"{name}.{label}", self.over_seeds(quantity, "file", name)
                yield f"call.{name}.{label}", self.over_seeds(quantity, "call", name)
            for label, quantity in NETWORK_QUANTITIES.items():
                yield f"{name}.{label}", self.over_seeds(quantity, "file", name)
            yield f"call.{name}.latency", self.over_seeds(LATENCY, "call", name)
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
        """Means over seeds with the fitted settings, and with each setting of `OPEN`."""
        keys = [("file", name), *(("open picture", label, name) for label in OPEN)]
        return [self.over_seeds(QUANTITIES[quantity], *key).value.mean for key in keys]

    @property
    def encoded(self) -> list[Encoded]:
        """The encodings, by increasing rate."""
        encodings: list[Encoded] = self.runs[
            "encoded",
        ]  # the key without its last part, which is a rate here and not a seed
        return encodings

    def _encodings(self) -> dict[str, float]:
        """Smallest and largest PSNR of the encodings, the mean gain of a doubled rate, and a point between encodings.

        The point is where the clip as encoded has the printed PSNR: its rate and EvalVid's mean grade are interpolated
        between the two nearest encodings, over the logarithm of the rate.
        """
        encoded = self.encoded
        psnr = np.array([encoding.psnr.mean() for encoding in encoded])
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
        """Quality by sender and by setting, and the encodings; no tables without pictures."""
        if self.lacks:
            return
        for part, table, title, other_quantities in (
            ("file", "pictures", "Pictures of 1 Mb/s, put together as EvalVid does", NETWORK_QUANTITIES.values()),
            ("call", "call", "Pictures of 1 Mb/s in a call, without frames that are 1 s late", [LATENCY]),
        ):
            senders = {LABELS[name]: self.runs[part, name] for name in CONTROLLERS}
            yield Table.of_quantities(table, title, "sender", senders, [*QUANTITIES.values(), *other_quantities])
        columns = [(QUANTITIES[name], sender) for name in ("psnr", "evalvid", "harmed") for sender in COMPARED]
        heads = ["setting", *(f"{LABELS[sender]}: {quantity.head}" for quantity, sender in columns)]
        keys = {"fitted settings": ("file",), **{label: ("open picture", label) for label in OPEN}}
        rows: list[list[CellValue]] = [
            [label, *(self.over_seeds(quantity, *key, sender) for quantity, sender in columns)]
            for label, key in keys.items()
        ]
        yield Table(
            "open-pictures", "Quality of pictures, with one open setting changed (fitted settings: none)", heads, rows
        )
        rows = [
            [label, round(encoding.rate / 1e3, 1), float(encoding.psnr.mean()), encoding.grade]
            for label, encoding in zip(RATES, self.encoded, strict=True)
        ]
        heads = ["target rate", "rate as encoded (kb/s)", "PSNR (dB)", "EvalVid's MOS"]
        yield Table("encoded", "Encodings: quality of the clip before it is sent", heads, rows)

    def figure6(self) -> Drawing:
        """PSNR of each frame, with the two senders that the document compares."""
        sheet = Sheet("Figure 6", "PSNR of frames", x="Frame", y="PSNR (dB)")
        for x, name in ((FRAMES / 2 - 20, "existing"), (FRAMES / 2 + 20, "table")):
            first = self.runs["file", name][0]
            sheet.series(LABELS[name], first.picture[:FRAMES], first.psnr[:FRAMES])
            sheet.published(LABELS[name], [x], [PUBLISHED_PSNR[name]])
        return sheet.drawing(
            "figure6", "First seed. Markers: the document's means; its clip and rate differ from ours."
        )

    def bars(self, sheet: Sheet, names: Iterable[str], printed: Mapping[str, float]) -> None:
        """Adds EvalVid's MOS and the printed values to figure 7, if there are pictures."""
        if self.lacks:
            return
        label = "EvalVid's, from PSNR"
        sheet.bars(label, {LABELS[name]: self.over_seeds(QUANTITIES["evalvid"], "file", name) for name in names})
        sheet.published(label, [LABELS[name] for name in printed], list(printed.values()))
