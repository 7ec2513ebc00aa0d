"""What tables, figures and pages read from a sweep: its combinations, their numbers, and which setting is drawn how."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

from tidegate.output import palette
from tidegate.output.palette import Look
from tidegate.results.metrics import HEADLINE, Metric, finite, metric
from tidegate.results.remarks import Remarks
from tidegate.results.stats import Interval
from tidegate.scenario import subject
from tidegate.show import view
from tidegate.wording import listed

RATE, DELAY = "receive_rate_bps", "one_way_delay_ms_p95"
"""What figures of sweeps are about; the page has the others, too."""
CASE = "case"
"""The key under which a sweep over a suite has its cases."""
ALL_CASES = "all cases"
"""The value of that key under which means over all of them stand."""

Row = Mapping[str, Any]
"""One finished run: its `settings`, `seed`, `digest` and `summary`."""


class SweepLike(Protocol):
    """What is needed of a sweep: a :class:`tidegate.SweepResult`, or anything of the same shape."""

    @property
    def keys(self) -> Sequence[str]:
        """The keys that were varied."""

    @property
    def rows(self) -> Sequence[Row]:
        """One for each finished run."""

    @property
    def name(self) -> str:
        """What was varied: the name of a scenario or a suite."""

    @property
    def failed(self) -> Sequence[str]:
        """Why some runs failed, as far as that is known."""

    @property
    def planned(self) -> int:
        """How many runs there are, finished or not."""

    @property
    def scenario(self) -> str:
        """What is varied, as TOML."""

    @property
    def command(self) -> str:
        """What was typed, or nothing."""

    @property
    def verdicts(self) -> Mapping[tuple[str, ...], str]:
        """What a suite's rules say, by the values of all keys; nothing where no suite is swept over."""


@dataclass(frozen=True)
class Combination:
    """One value for each key, and the runs with these."""

    settings: Mapping[str, str]
    """Its values by key."""
    rows: Sequence[Row]
    """Its runs, one a seed."""
    verdict: str = ""
    """What a suite's rules say."""

    def mean(self, name: str) -> Interval:
        """The mean of a number over its runs."""
        return Interval.of(value(row, name) for row in self.rows)

    @property
    def point(self) -> tuple[float, float]:
        """Its mean delay (ms) and rate (Mbit/s), of which figures are."""
        delay, rate = (self.mean(name).mean * metric(name).scale for name in (DELAY, RATE))
        return delay, rate


@dataclass(frozen=True)
class Panel:
    """One drawing of several alike."""

    title: str
    """What all in it have in common, of the settings that are varied."""
    lines: Mapping[str, Sequence[Combination]]
    """Combinations by controller, in order of the first setting."""

    @property
    def combinations(self) -> list[Combination]:
        """Those of all controllers."""
        return [combination for line in self.lines.values() for combination in line]


@dataclass(frozen=True)
class Swept:
    """A sweep, and which of its settings is drawn how.

    A setting that is a controller gives lines where one other setting is varied, and panels where more are. Of the
    others the first two are axes, and all further ones give panels.
    """

    keys: Sequence[str]
    """The keys, in order."""
    combinations: Sequence[Combination]
    """Every combination of which there are runs, in order."""

    @classmethod
    def of(cls, sweep: SweepLike) -> Swept:
        """Of a sweep."""
        found: dict[tuple[str, ...], list[Row]] = {}
        over_all = over_cases(sweep.rows, sweep.keys) if CASE in sweep.keys else []
        for row in (*over_all, *sweep.rows):
            found.setdefault(tuple(row["settings"][key] for key in sweep.keys), []).append(row)
        return cls(
            list(sweep.keys),
            [
                Combination(dict(zip(sweep.keys, values, strict=True)), rows, sweep.verdicts.get(values, ""))
                for values, rows in found.items()
            ],
        )

    @cached_property
    def over_all(self) -> Sequence[Combination]:
        """Of a sweep over a suite the combinations over all cases; else every one."""
        return [one for one in self.combinations if one.settings.get(CASE, ALL_CASES) == ALL_CASES]

    @cached_property
    def values(self) -> Mapping[str, Sequence[str]]:
        """The values of each key, in order."""
        return {key: list(dict.fromkeys(one.settings[key] for one in self.combinations)) for key in self.keys}

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
    def panels(self) -> Sequence[Panel]:
        """One for each combination of the values of `beside`."""
        found: dict[tuple[str, ...], dict[str, list[Combination]]] = {}
        for one in self.combinations:
            panel = found.setdefault(tuple(one.settings[key] for key in self.beside), {})
            panel.setdefault(self.label(one), []).append(one)
        short = shortened(self.beside)
        return [
            Panel(
                ", ".join(
                    value if key in {self.controllers, CASE} else f"{short[key]} {value}"
                    for key, value in zip(self.beside, values, strict=True)
                ),
                lines,
            )
            for values, lines in found.items()
        ]

    def label(self, one: Combination) -> str:
        """The controller of a combination."""
        if self.controllers is not None:
            return one.settings[self.controllers]
        flow = of_subject(one.rows[0])
        return str(flow.get("controller") or flow["kind"])

    @cached_property
    def looks(self) -> Mapping[str, Look]:
        """How the line of each controller looks, by `label`."""
        ran: dict[str, set[str]] = {}
        for combination in self.combinations:
            names = (name for row in combination.rows for name in self._ran(row))
            ran.setdefault(self.label(combination), set()).update(names)
        return palette.looks(ran, ran)

    def _ran(self, row: Row) -> Iterable[str]:
        """The controller that a run had where controllers are varied: a class may be called like another's scheme."""
        varied = (self.controllers or "").split(".")[1:2]
        flows = (flow for flow in row["summary"]["flows"] if flow["flow"] in varied)
        return [str(flow["controller"]) for flow in flows if flow.get("controller")]

    @cached_property
    def names(self) -> Sequence[str]:
        """The numbers that tables show: those of comparisons, and sums over sessions."""
        sums = dict.fromkeys(name for one in self.combinations for row in one.rows for name in of_sessions(row))
        every = (*HEADLINE, *sums)
        rows = [row for one in self.combinations for row in one.rows]
        return [name for name in every if any(value(row, name) is not None for row in rows)]

    @property
    def drawn(self) -> bool:
        """Whether there is a rate and a delay to draw, and more than one combination."""
        return {RATE, DELAY} <= {*self.names} and len(self.combinations) > 1

    @property
    def remarks(self) -> Remarks:
        """Warnings and notes of its runs, each once."""
        return view.remarks(row["summary"] for one in self.combinations for row in one.rows)

    @property
    def judged(self) -> bool:
        """Whether rules of a suite say something of it."""
        return any(one.verdict for one in self.combinations)

    @property
    def how(self) -> str:
        """Which settings are axes and which panels, where there are panels."""
        if not self.beside:
            return ""
        short = shortened(self.varied)
        axes = f"Axes: {listed([short[key] for key in self.axes])}. " if self.axes else ""
        return f"{axes}A panel for each {listed([short[key] for key in self.beside])}."


def over_cases(rows: Sequence[Row], keys: Sequence[str]) -> list[Row]:
    """For each combination of a sweep over a suite and each seed a row that has means over the cases.

    A number is over those cases in which every combination has it with each of its seeds, so that all are means over
    the same cases.
    """
    found: dict[tuple[str, ...], dict[int, dict[str, Row]]] = {}
    for row in rows:
        combination = tuple(row["settings"][key] for key in keys if key != CASE)
        found.setdefault(combination, {}).setdefault(row["seed"], {})[row["settings"][CASE]] = row
    every = [by_case for by_seed in found.values() for by_case in by_seed.values()]
    cases = dict.fromkeys(row["settings"][CASE] for row in rows)
    common = {
        name: [case for case in cases if all(case in one and value(one[case], name) is not None for one in every)]
        for name in HEADLINE
    }
    made: list[Row] = []
    for by_seed in found.values():
        for seed, by_case in by_seed.items():
            first = next(iter(by_case.values()))
            flow = {key: of_subject(first).get(key) for key in ("flow", "kind", "controller")}
            for name, some in common.items():
                numbers = (value(by_case[case], name) for case in some)
                flow[name] = Interval.of(numbers).mean if some else None
            summary = {"flows": [flow], "links": []}
            made.append({"settings": {**first["settings"], CASE: ALL_CASES}, "seed": seed, "summary": summary})
    return made


def of_subject(row: Row) -> Mapping[str, Any]:
    """The metrics of a run's subject."""
    return subject.of_summary(row["summary"])


def of_sessions(row: Row) -> dict[str, float]:
    """Sums and means over the members of each session, as `SESSION.METRIC`."""
    found = view.sessions(row["summary"]).items()
    return {f"{session}.{name}": value for session, of in found for name, value in view.session_sums(of).items()}


def value(row: Row, name: str) -> float | None:
    """A number of a run: of its subject, or of a session as `SESSION.METRIC`."""
    return finite(of_sessions(row).get(name) if "." in name else of_subject(row).get(name))


def about(name: str) -> Metric:
    """What a number is."""
    return metric(name.rpartition(".")[2])


def label(name: str) -> str:
    """A number's name for people, with the session that it is of."""
    session, dot, _ = name.rpartition(".")
    return f"{session}{': ' if dot else ''}{about(name).label}"


def head(name: str) -> str:
    """A number as the head of a column."""
    unit = about(name).unit
    return f"{label(name)}{f' ({unit})' if unit else ''}"


def shortened(keys: Iterable[str]) -> dict[str, str]:
    """Keys by as little of their ends as says what they are and tells them apart.

    >>> list(shortened(["links.up.delay", "links.down.delay", "flows.call.media.controller"]).values())
    ['up.delay', 'down.delay', 'controller']
    """
    every = [key.split(".") for key in keys]
    found = {}
    for parts in every:
        least = 1 if parts[-1] == "controller" else 2
        tails = (parts[-count:] for count in range(least, len(parts) + 1))
        tail = next((one for one in tails if sum(other[-len(one) :] == one for other in every) == 1), parts)
        found[".".join(parts)] = ".".join(tail)
    return found


def plainly(number: float) -> str:
    """A number in a cell of a map: three digits that count.

    >>> [plainly(number) for number in (0.0, 0.1234, 12.34, 1234.5, float("nan"))]
    ['0', '0.12', '12.3', '1234', '-']
    """
    if not math.isfinite(number):
        return "-"
    digits = 0 if abs(number) >= 100 or not number else 1 if abs(number) >= 10 else 2  # noqa: PLR2004
    return f"{number:.{digits}f}"
