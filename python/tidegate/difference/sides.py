"""One of two results that are compared: what it is made of, and its numbers, whatever kind of result it is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from tidegate.comparison import Comparison
from tidegate.comparison.sweeping import SweepResult
from tidegate.difference.settings import Settings
from tidegate.errors import InputError
from tidegate.results.metrics import HEADLINE, MEMBERS, PICTURES, Metric, finite, metric
from tidegate.results.quality import verdict_on
from tidegate.results.stats import BySeed
from tidegate.runs import Run
from tidegate.show import sweeps, view
from tidegate.show.report import LINKS
from tidegate.show.sweeps import Swept
from tidegate.suite import SuiteResult, numbers
from tidegate.suite.scores import SHOWN
from tidegate.suite.tables import short
from tidegate.wording import counted

Result: TypeAlias = Run | Comparison | SweepResult | SuiteResult
"""What can be compared."""

Place: TypeAlias = tuple[str, ...]
"""Where numbers are from: in a run a flow or a link, in a comparison a controller, in a sweep its settings, in a suite
case and controller."""


@dataclass(frozen=True)
class Series:
    """A number of several runs."""

    label: str
    """What it is called in tables, with the flow that it is of."""
    metric: Metric
    """What it is."""
    values: BySeed
    """By seed."""


@dataclass(frozen=True)
class Made:
    """A run, by two hashes."""

    digest: str
    """Of its recording: equal ones are of runs that are the same to the bit."""
    content: str
    """Of all that it was made from but the engine: the scenario, the files that it names, the controllers' code."""

    @classmethod
    def of(cls, about: Mapping[str, Any]) -> Made:
        """Of what is kept of a run."""
        return cls(str(about["digest"]), str(about.get("scenario_hash", "")))


@dataclass(frozen=True)
class Side:
    """A result, as it is compared."""

    kind: str
    """`run`, `comparison`, `sweep` or `suite result`."""
    title: str
    """What it is, in a few words."""
    settings: Settings
    """What it was made of."""
    series: Mapping[Place, Mapping[str, Series]]
    """The numbers of its tables, by where they are from and by a key."""
    answers: Mapping[Place, str]
    """Verdicts: whether a flow was fit for a call, or what a suite's rules say."""
    made: Mapping[Place, Mapping[int, Made]]
    """Its runs, by where they are and by seed."""

    @classmethod
    def of(cls, result: Result) -> Side:
        """A side of its kind.

        Raises:
            InputError: when it is none of `KINDS`.
        """
        for type_, (_, make) in KINDS.items():
            if isinstance(result, type_):
                return make(result)
        kinds = ", ".join(word for word, _ in KINDS.values())
        raise InputError(f"found a {type(result).__name__}; expected one of {kinds}")


def _of_run(run: Run) -> Side:
    recorded = [str(one["sha256"]) for one in (run.about.get("imported") or {}).get("files", ())]
    # a recorded call has no seed: its luck is that of its recording
    luck = int(recorded[0][:8], 16) if recorded else run.seed
    about: dict[str, Any] = {"engine": _engine([run.about]), "inputs": _inputs([run.about])}
    about |= {"recordings": [one[:12] for one in recorded]} if recorded else {"seed": run.seed}
    flows = {str(flow["flow"]): flow for flow in view.point_to_point(run)}
    # a link and a flow may have one name
    links = {f"link {link['link']}": link for link in run.summary["links"]}
    sessions = {f"session {name}": view.session_sums(of) for name, of in view.sessions(run.summary).items()}
    tables: list[tuple[Mapping[str, Mapping[str, Any]], Sequence[str]]] = [
        (flows, (*HEADLINE, *PICTURES)),
        # whether a link clears ECN fields is one of its settings
        (links, [name for name in LINKS if name != "bleached"]),
        (sessions, MEMBERS),
        ({"fairness": run.summary.get("fairness") or {}}, ("jain_5s",)),
    ]
    series = {
        (place,): {
            name: Series(metric(name).label, metric(name), {luck: number})
            for name in names
            if (number := finite(row.get(name))) is not None
        }
        for table, names in tables
        for place, row in table.items()
    }
    return Side(
        "run",
        f"{run.name}: {run.controller}{'' if recorded else f', seed {run.seed}'}",
        Settings.of_text(str(run.about["scenario"])).beside(about),
        {place: some for place, some in series.items() if some},
        {(name,): verdict_on([flow]) for name, flow in flows.items()},
        {(): {luck: Made.of(run.about)}},
    )


def _of_comparison(result: Comparison) -> Side:
    runs = [run.about for some in result.runs.values() for run in some]
    about = {
        "controllers": ", ".join(result.table.controllers),
        "seeds": _listed(result.seeds),
        "engine": _engine(runs),
        "inputs": _inputs(runs),
    }
    verdicts = result.table.verdicts.items()
    return Side(
        "comparison",
        f"{result.scenario.name}: {', '.join(result.table.controllers)}; {_seeds(result.seeds)}",
        Settings.of_scenario(result.scenario).without("seed").beside(about),
        {
            (name,): {row.key: Series(row.label, row.metric, row.values[name]) for row in result.table.rows}
            for name in result.controllers
        },
        {(one,): f"failed: {result.failed[one]}" if one in result.failed else says for one, says in verdicts},
        {(one,): {run.seed: Made.of(run.about) for run in some} for one, some in result.runs.items()},
    )


def _of_sweep(result: SweepResult) -> Side:
    swept = Swept.of(result)
    seeds = sorted({int(row["seed"]) for row in result.rows})
    about: dict[str, Any] = {
        "values": {key: ", ".join(swept.values[key]) for key in swept.varied},
        "set": dict(swept.constant),
        "seeds": _listed(seeds),
        "engine": _engine(result.rows),
    }
    if len(result.rows) < result.planned:
        about["runs"] = f"{len(result.rows)} of {result.planned}"
    series, made = {}, {}
    for one in swept.combinations:
        # a key with one value tells no two runs apart; where the other sweep has another one, the settings say so
        place = tuple(f"{key}={one.settings[key]}" for key in sorted(swept.varied))
        series[place] = {
            name: Series(
                sweeps.label(name), sweeps.about(name), {int(row["seed"]): sweeps.value(row, name) for row in one.rows}
            )
            for name in swept.names
        }
        made[place] = {int(row["seed"]): Made.of(row) for row in one.rows}
    title = f"{result.name}: {', '.join(swept.varied) or 'nothing'} varied; {_seeds(seeds)}"
    settings = Settings.of_text(result.scenario).without("seed").beside(about)
    return Side("sweep", title, settings, series, {}, made)


def _of_suite(result: SuiteResult) -> Side:
    cases = {
        case.name: Settings.of_scenario(case.scenario).without("seed").beside({"contenders": list(case.contenders)})
        for case in result.suite.cases
        if case.scenario is not None
    }
    rules = {rule.name: rule.to_dict() for rule in result.suite.rules}
    parts = {"cases": Settings.joined(cases), "rules": Settings.plain(rules)}
    about = {
        "suite": result.suite.name,
        "controllers": ", ".join(result.controllers),
        "baseline": result.baseline,
        "seeds": _listed(result.seeds),
        "engine": _engine([row for *_, row in result.runs()]),
    }
    shown = {name: numbers.about(name) for name, _ in SHOWN}
    return Side(
        "suite result",
        f"{result.suite.name}: {', '.join(result.controllers)}; {_seeds(result.seeds)}",
        Settings.joined(parts).beside(about),
        {
            place: {name: Series(shown[name].label, shown[name], result.values(*place, name, of)) for name, of in SHOWN}
            for place in result.rows
        },
        {
            (one.case, one.controller): one.state if one.state == "pass" else f"{one.state}: {short(one)}"
            for one in result.cells
        },
        {place: {seed: Made.of(row) for seed, row in rows.items()} for place, rows in result.rows.items()},
    )


def _engine(about: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """What made some runs; the same bits come of it on every machine, so that Python and platform are no matter."""
    some = [one.get("versions") or {} for one in about]
    found = {key: dict.fromkeys(str(one[key]) for one in some if key in one) for key in ("tidegate", "commit")}
    return {key: " and ".join(values) for key, values in found.items() if values}


def _inputs(about: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Hashes of the files that some runs read, and of their controllers' code."""
    return {str(name): str(content)[:12] for one in about for name, content in (one.get("inputs") or {}).items()}


def _listed(seeds: Sequence[int]) -> str:
    """Seeds in few words.

    >>> _listed([1, 2, 3]), _listed([2, 5]), _listed([7])
    ('1 to 3', '2, 5', '7')
    """
    if len(seeds) > 2 and list(seeds) == [*range(seeds[0], seeds[-1] + 1)]:  # noqa: PLR2004
        return f"{seeds[0]} to {seeds[-1]}"
    return ", ".join(map(str, seeds))


def _seeds(seeds: Sequence[int]) -> str:
    return counted(len(seeds), "seed")


KINDS: Mapping[type[Any], tuple[str, Callable[[Any], Side]]] = {
    Run: ("run", _of_run),
    Comparison: ("comparison", _of_comparison),
    SweepResult: ("sweep", _of_sweep),
    SuiteResult: ("suite result", _of_suite),
}
"""The kinds of results that are compared, each with its word."""
