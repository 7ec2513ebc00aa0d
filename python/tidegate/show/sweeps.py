"""Sweeps for tables, figures and pages: combinations, their numbers, and the roles of settings in drawings."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

from tidegate.errors import InputError
from tidegate.output import palette
from tidegate.output.palette import Look
from tidegate.query.ranges import End
from tidegate.results.metrics import HEADLINE, Metric, finite, metric
from tidegate.results.remarks import Remarks
from tidegate.results.stats import Interval
from tidegate.scenario import subject
from tidegate.show import view
from tidegate.wording import listed

RATE, DELAY = "receive_rate_bps", "one_way_delay_ms_p95"
"""The metrics of figures of sweeps; pages have further ones."""
CASE = "case"
"""The key of the cases in a sweep over a suite."""
ALL_CASES = "all cases"
"""The value of that key for means over all cases."""

Row = Mapping[str, Any]
"""One finished run: its `settings`, `seed`, `digest` and `summary`."""


class SweepLike(Protocol):
    """The interface of a sweep: a :class:`tidegate.SweepResult`, or anything of the same shape."""

    @property
    def keys(self) -> Sequence[str]:
        """The keys that were varied."""

    @property
    def rows(self) -> Sequence[Row]:
        """The finished runs."""

    @property
    def name(self) -> str:
        """The name of the scenario or suite that was varied."""

    @property
    def failed(self) -> Sequence[str]:
        """The known reasons of failed runs."""

    @property
    def planned(self) -> int:
        """The number of all runs, finished or not."""

    @property
    def scenario(self) -> str:
        """The scenario or suite that is varied, as TOML."""

    @property
    def command(self) -> str:
        """The command line; empty where there was none."""

    @property
    def verdicts(self) -> Mapping[tuple[str, ...], str]:
        """The verdicts of a suite's rules, by the values of all keys; empty where no suite is swept over."""


@dataclass(frozen=True)
class Combination:
    """One value for each key, and the runs with these."""

    settings: Mapping[str, str]
    """Its values by key."""
    rows: Sequence[Row]
    """Its runs, one a seed."""
    verdict: str = ""
    """The verdict of a suite's rules."""

    def mean(self, name: str) -> Interval:
        """The mean of a number over its runs."""
        return Interval.of(value(row, name) for row in self.rows)

    @property
    def point(self) -> tuple[float, float]:
        """Its mean delay (ms) and rate (Mbit/s), the coordinates in figures."""
        delay, rate = (self.mean(name).mean * metric(name).scale for name in (DELAY, RATE))
        return delay, rate


@dataclass(frozen=True)
class Panel:
    """One of several drawings of the same kind."""

    title: str
    """The values of varied settings that all combinations in it share."""
    lines: Mapping[str, Sequence[Combination]]
    """Combinations by controller, in order of the first setting."""

    @property
    def combinations(self) -> list[Combination]:
        """The combinations of all controllers."""
        return [combination for line in self.lines.values() for combination in line]


@dataclass(frozen=True)
class Swept:
    """A sweep with the roles of its settings in drawings.

    A varied controller gives lines if one other setting is varied, and panels if more are. The first two of the other
    settings are axes; each further one gives panels.
    """

    keys: Sequence[str]
    """The keys, in order."""
    combinations: Sequence[Combination]
    """The combinations that have runs, in order."""

    @classmethod
    def of(cls, sweep: SweepLike) -> Swept:
        """Groups the runs of a sweep."""
        by_values: dict[tuple[str, ...], list[Row]] = {}
        over_all = over_cases(sweep.rows, sweep.keys) if CASE in sweep.keys else []
        for row in (*over_all, *sweep.rows):
            by_values.setdefault(tuple(row["settings"][key] for key in sweep.keys), []).append(row)
        return cls(
            list(sweep.keys),
            [
                Combination(dict(zip(sweep.keys, values, strict=True)), rows, sweep.verdicts.get(values, ""))
                for values, rows in by_values.items()
            ],
        )

    @cached_property
    def over_all(self) -> Sequence[Combination]:
        """The combinations over all cases in a sweep over a suite; else all combinations."""
        return [
            combination for combination in self.combinations if combination.settings.get(CASE, ALL_CASES) == ALL_CASES
        ]

    @cached_property
    def values(self) -> Mapping[str, Sequence[str]]:
        """The values of each key, in order."""
        return {
            key: list(dict.fromkeys(combination.settings[key] for combination in self.combinations))
            for key in self.keys
        }

    @cached_property
    def varied(self) -> Sequence[str]:
        """The keys that have more than one value."""
        return [key for key in self.keys if len(self.values[key]) > 1]

    @cached_property
    def constant(self) -> Mapping[str, str]:
        """The value of each key that has only one."""
        return {key: self.values[key][0] for key in self.keys if self.values[key] and key not in self.varied}

    @cached_property
    def controllers(self) -> str | None:
        """The first varied key whose values are controllers."""
        return next((key for key in self.varied if key.rpartition(".")[2] == "controller"), None)

    @cached_property
    def axes(self) -> Sequence[str]:
        """The keys that are axes: none, one or two."""
        return [key for key in self.varied if key not in {self.controllers, CASE}][:2]

    @cached_property
    def beside(self) -> Sequence[str]:
        """The keys whose values are panels."""
        drawn = {*self.axes, *([] if self.is_map else [self.controllers])}
        return [key for key in self.varied if key not in drawn]

    @property
    def is_map(self) -> bool:
        """Whether two settings span a map, so that no line leads from one combination to the next."""
        return len(self.axes) == 2  # noqa: PLR2004

    @cached_property
    def is_line(self) -> bool:
        """Whether a line leads along the values of the one axis: they are amounts. Names have no order."""
        return len(self.axes) == 1 and are_amounts(self.values[self.axes[0]])

    @cached_property
    def panels(self) -> Sequence[Panel]:
        """A panel for each combination of the values of `beside`."""
        by_values: dict[tuple[str, ...], dict[str, list[Combination]]] = {}
        for combination in self.combinations:
            panel = by_values.setdefault(tuple(combination.settings[key] for key in self.beside), {})
            panel.setdefault(self.label(combination), []).append(combination)
        short = shortened(self.beside)
        return [
            Panel(
                ", ".join(
                    value if key in {self.controllers, CASE} else f"{short[key]} {value}"
                    for key, value in zip(self.beside, values, strict=True)
                ),
                lines,
            )
            for values, lines in by_values.items()
        ]

    def label(self, combination: Combination) -> str:
        """The controller of a combination."""
        if self.controllers is not None:
            return combination.settings[self.controllers]
        flow = of_subject(combination.rows[0])
        return str(flow.get("controller") or flow["kind"])

    @cached_property
    def looks(self) -> Mapping[str, Look]:
        """The look of each controller's line, by `label`."""
        ran: dict[str, set[str]] = {}
        for combination in self.combinations:
            names = (name for row in combination.rows for name in self._ran(row))
            ran.setdefault(self.label(combination), set()).update(names)
        return palette.looks(ran, ran)

    def _ran(self, row: Row) -> Iterable[str]:
        """The controllers that ran in the varied flow; a class may have the name of a scheme that is not its own."""
        varied = (self.controllers or "").split(".")[1:2]
        flows = (flow for flow in row["summary"]["flows"] if flow["flow"] in varied)
        return [str(flow["controller"]) for flow in flows if flow.get("controller")]

    @cached_property
    def names(self) -> Sequence[str]:
        """The numbers that tables show: those of comparisons, and sums over sessions."""
        rows = [row for combination in self.combinations for row in combination.rows]
        sums = dict.fromkeys(name for row in rows for name in of_sessions(row))
        return [name for name in (*HEADLINE, *sums) if any(value(row, name) is not None for row in rows)]

    @property
    def drawn(self) -> bool:
        """Whether there is a rate and a delay to draw, and more than one combination."""
        return {RATE, DELAY} <= {*self.names} and len(self.combinations) > 1

    @property
    def remarks(self) -> Remarks:
        """Warnings and notes of its runs, each once."""
        return view.remarks(row["summary"] for combination in self.combinations for row in combination.rows)

    @property
    def judged(self) -> bool:
        """Whether a suite's rules gave verdicts."""
        return any(combination.verdict for combination in self.combinations)

    @property
    def how(self) -> str:
        """Sentences that say which settings are axes and which panels; empty where there are no panels."""
        if not self.beside:
            return ""
        short = shortened(self.varied)
        axes = f"Axes: {listed([short[key] for key in self.axes])}. " if self.axes else ""
        return f"{axes}A panel for each {listed([short[key] for key in self.beside])}."


def over_cases(rows: Sequence[Row], keys: Sequence[str]) -> list[Row]:
    """Makes rows of means over the cases of a suite: one for each combination and seed of a sweep.

    A case counts for a number only if every combination has that number with each of its seeds, so that all means are
    over the same cases.
    """
    by_combination: dict[tuple[str, ...], dict[int, dict[str, Row]]] = {}
    for row in rows:
        combination = tuple(row["settings"][key] for key in keys if key != CASE)
        by_combination.setdefault(combination, {}).setdefault(row["seed"], {})[row["settings"][CASE]] = row
    all_by_case = [by_case for by_seed in by_combination.values() for by_case in by_seed.values()]
    cases = dict.fromkeys(row["settings"][CASE] for row in rows)
    common = {
        name: [
            case
            for case in cases
            if all(case in by_case and value(by_case[case], name) is not None for by_case in all_by_case)
        ]
        for name in HEADLINE
    }
    means: list[Row] = []
    for by_seed in by_combination.values():
        for seed, by_case in by_seed.items():
            first = next(iter(by_case.values()))
            flow = {key: of_subject(first).get(key) for key in ("flow", "kind", "controller")}
            for name, counted_cases in common.items():
                numbers = (value(by_case[case], name) for case in counted_cases)
                flow[name] = Interval.of(numbers).mean if counted_cases else None
            summary = {"flows": [flow], "links": []}
            means.append({"settings": {**first["settings"], CASE: ALL_CASES}, "seed": seed, "summary": summary})
    return means


def of_subject(row: Row) -> Mapping[str, Any]:
    """The metrics of a run's subject."""
    return subject.of_summary(row["summary"])


def of_sessions(row: Row) -> dict[str, float]:
    """Sums and means over the members of each session, as `SESSION.METRIC`."""
    sums = {session: view.session_sums(members) for session, members in view.sessions(row["summary"]).items()}
    return {f"{session}.{name}": number for session, numbers in sums.items() for name, number in numbers.items()}


def value(row: Row, name: str) -> float | None:
    """A number of a run: of its subject, or of a session as `SESSION.METRIC`."""
    return finite(of_sessions(row).get(name) if "." in name else of_subject(row).get(name))


def metric_of(name: str) -> Metric:
    """The metric of a number: of `receive_rate_bps`, or of a session as `SESSION.METRIC`."""
    return metric(name.rpartition(".")[2])


def label(name: str) -> str:
    """A number's name for readers, with its session."""
    session, dot, _ = name.rpartition(".")
    return f"{session}{': ' if dot else ''}{metric_of(name).label}"


def head(name: str) -> str:
    """A number's name with its unit, as the head of a column."""
    unit = metric_of(name).unit
    return f"{label(name)}{f' ({unit})' if unit else ''}"


def shortened(keys: Iterable[str]) -> dict[str, str]:
    """The shortest ends of keys that are clear and distinct, by key.

    >>> list(shortened(["links.up.delay", "links.down.delay", "flows.call.media.controller"]).values())
    ['up.delay', 'down.delay', 'controller']
    """
    split_keys = [key.split(".") for key in keys]
    short = {}
    for parts in split_keys:
        minimum = 1 if parts[-1] == "controller" else 2
        tails = (parts[-count:] for count in range(minimum, len(parts) + 1))
        unique = (tail for tail in tails if sum(key[-len(tail) :] == tail for key in split_keys) == 1)
        short[".".join(parts)] = ".".join(next(unique, parts))
    return short


def are_amounts(values: Iterable[str]) -> bool:
    """Whether all values of a setting are numbers, with units of one kind or without.

    >>> [are_amounts(values) for values in (["2ms", "0.1s"], ["0.5", "0.85"], ["codel", "pie"], ["1ms", "2"])]
    [True, True, False, False]
    """
    try:
        kinds = {(end.kind, end.unit if end.kind is None else "") for end in (End.parse(v, v) for v in values)}
    except InputError:
        return False
    return len(kinds) == 1


def plainly(number: float) -> str:
    """Formats a number for a cell of a map, with up to three significant digits.

    >>> [plainly(number) for number in (0.0, 0.1234, 12.34, 1234.5, float("nan"))]
    ['0', '0.12', '12.3', '1234', '-']
    """
    if not math.isfinite(number):
        return "-"
    digits = 0 if abs(number) >= 100 or not number else 1 if abs(number) >= 10 else 2  # noqa: PLR2004
    return f"{number:.{digits}f}"
