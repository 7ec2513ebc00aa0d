"""The course of a case's calls over time, coarsely: kept in a baseline, and drawn beside that of a check that fails."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Self

import numpy as np
import numpy.typing as npt
from pydantic import Field, model_validator

from tidegate.results.shapes import Shape

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from tidegate.suite.numbers import Row

SEEDS = 5
"""Seeds of a course: those of a check's first look."""
_BINS = 60
"""Most bins of a course: a picture shows no more, and a baseline stays small."""
_MARKS = "▁▂▃▄▅▆▇█"

Floats = npt.NDArray[np.float64]
BySeed = tuple[tuple[int | None, ...], ...]
_Whole = Annotated[int, Field(ge=0, le=10**12)]


class CourseShape(Shape):
    """A course in the file of a baseline."""

    step_s: Annotated[int, Field(ge=1)]
    rate_kbps: list[list[_Whole | None]]
    delay_ms: list[list[_Whole | None]]

    @model_validator(mode="after")
    def _alike(self) -> Self:
        """Checks that all rows are of the same seeds and bins."""
        rows = [*self.rate_kbps, *self.delay_ms]
        if not rows or len(self.rate_kbps) != len(self.delay_ms) or len({len(row) for row in rows}) != 1 or not rows[0]:
            raise ValueError("rate_kbps and delay_ms do not have the same seeds and bins")
        return self


@dataclass(frozen=True)
class Course:
    """Rate and delay of a case's calls in bins of time, by seed from seed 1 on."""

    step_s: int
    """Length of a bin, in seconds."""
    rate_kbps: BySeed
    """Mean receive rate of all calls together; `None` where none was active."""
    delay_ms: BySeed
    """Mean one-way delay of the call that has the longest; `None` where nothing arrived."""

    @classmethod
    def of(cls, rows: Mapping[int, Row]) -> Course | None:
        """The course of a case's runs by seed; `None` where they have no series."""
        runs = [rows[seed] for seed in range(1, SEEDS + 1) if seed in rows]
        series = [(row["contenders"], row["measures"].get("series") or {}) for row in runs]
        if not series or not all(kept.get("flows") for _, kept in series):
            return None
        length = min(len(kept["t_s"]) for _, kept in series)
        step = max(1, -(-length // _BINS))
        by_seed = [
            [_joined(kept["flows"], contenders, name, join)[:length] for contenders, kept in series]
            for name, join in (("rate_bps", np.nansum), ("delay_ms", np.nanmax))
        ]
        rates, delays = ([_binned(values, step) for values in quantity] for quantity in by_seed)
        return cls(step, *(_rounded(rates, 1e-3), _rounded(delays, 1.0)))

    @classmethod
    def read(cls, shape: CourseShape) -> Self:
        """The course of a baseline's file."""
        return cls(shape.step_s, *(tuple(map(tuple, rows)) for rows in (shape.rate_kbps, shape.delay_ms)))

    def to_data(self) -> dict[str, Any]:
        """The course as plain data."""
        return {"step_s": self.step_s, "rate_kbps": self.rate_kbps, "delay_ms": self.delay_ms}

    def to_json(self) -> str:
        """The course as it stands in a baseline: a line for each seed, so that a change shows in review."""
        quantities = [
            f'    "{name}": [\n' + ",\n".join(f"     {json.dumps(list(row))}" for row in rows) + "\n    ]"
            for name, rows in (("rate_kbps", self.rate_kbps), ("delay_ms", self.delay_ms))
        ]
        return f'{{\n    "step_s": {self.step_s},\n' + ",\n".join(quantities) + "\n   }"


@dataclass(frozen=True)
class Change:
    """The course of a case before and now."""

    case: str
    """Name of the case."""
    title: str
    """What the case is, as its suite says; may be empty."""
    before: Course | None
    """That of the baseline; `None` for a baseline that was made without."""
    now: Course
    """That of the controller that was checked."""

    def to_data(self) -> dict[str, Any]:
        """The change as plain data."""
        before = None if self.before is None else self.before.to_data()
        return {"case": self.case, "before": before, "now": self.now.to_data()}

    @property
    def lines(self) -> list[str]:
        """The change as lines for a log: median rate and delay over the seeds, before above now, on one scale."""
        now, sides = self.now, [("before", self.before), ("now", self.now)]
        seeds, bins = len(now.rate_kbps), len(now.rate_kbps[0])
        text = [f"{self.case} over {bins * now.step_s} s, a mark for each {now.step_s} s, median of {seeds} seeds"]
        for label, unit, scale, digits in (("receive rate", "Mbit/s", 1e-3, 2), ("one-way delay", "ms", 1.0, 0)):
            rows = [
                (side, _median(course.rate_kbps if label == "receive rate" else course.delay_ms) * scale)
                for side, course in sides
                if course is not None
            ]
            top = max((float(np.nanmax(row)) for _, row in rows if np.isfinite(row).any()), default=0.0)
            for number, (side, row) in enumerate(rows):
                least, most = (f(row) if np.isfinite(row).any() else 0.0 for f in (np.nanmin, np.nanmax))
                head = label if number == 0 else ""
                text.append(
                    f"  {head:13}  {side:6}  {_marks(row, top)}  {least:.{digits}f} to {most:.{digits}f} {unit}"
                )
        if self.before is None:
            text.append(f"  {WITHOUT}")
        return [*text, f"  each mark is a median at that time; {JUDGED}"]

    def figure(self, controller: str, against: str) -> Figure:
        """Draws the change: medians over the seeds, and bands from the least to the most."""
        from tidegate.show.plot.before_after import Side, before_after

        sides = [
            Side(name, course.step_s, _array(course.rate_kbps) / 1e3, _array(course.delay_ms))
            for name, course in ((f"before: {against}", self.before), (f"now: {controller}", self.now))
            if course is not None
        ]
        return before_after(f"{self.case}: {self.title}" if self.title else self.case, sides, JUDGED)


JUDGED = "the table judges means of whole calls over all seeds, which can differ"
"""Beside a course over time, in log and picture: medians of few seeds on generated links can point the other way."""
WITHOUT = (
    "the baseline has no course over time, since it was made by an older tidegate; make it again to see before and now"
)


def _joined(flows: Mapping[str, Any], contenders: Sequence[str], name: str, join: Any) -> Floats:
    """A quantity of all contenders together; NaN where none of them has a value."""
    rows = [_floats(flows[flow][name]) for flow in contenders if flows.get(flow, {}).get(name)]
    if not rows:
        return np.full(len(next(iter(flows.values()))["rate_bps"]), np.nan)
    return _over(np.vstack(rows), join)


def _over(stack: Floats, join: Any) -> Floats:
    """Joins the rows of an array; NaN where a column has no value."""
    joined = np.full(stack.shape[1], np.nan)
    present = np.isfinite(stack).any(axis=0)
    if present.any():
        joined[present] = join(stack[:, present], axis=0)
    return joined


def _binned(values: Floats, step: int) -> Floats:
    padded = np.full(-(-len(values) // step) * step, np.nan)
    padded[: len(values)] = values
    return _over(padded.reshape(-1, step).T, np.nanmean)


def _rounded(rows: Sequence[Floats], scale: float) -> BySeed:
    return tuple(tuple(round(value * scale) if np.isfinite(value) else None for value in row.tolist()) for row in rows)


def _floats(values: Sequence[float | None]) -> Floats:
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


def _array(rows: BySeed) -> Floats:
    return np.vstack([_floats(row) for row in rows])


def _median(rows: BySeed) -> Floats:
    return _over(_array(rows), np.nanmedian)


def _marks(row: Floats, top: float) -> str:
    return "".join(_marked(row, top))


def _marked(row: Floats, top: float) -> Iterator[str]:
    for value in row.tolist():
        level = value / top * len(_MARKS) if top > 0 else 0.0
        yield _MARKS[min(int(level), len(_MARKS) - 1)] if np.isfinite(value) else " "
