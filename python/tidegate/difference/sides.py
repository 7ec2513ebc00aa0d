"""One of two compared results: its settings, verdicts and numbers, in the same form for each kind of result."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias

from tidegate.comparison import Comparison
from tidegate.comparison.sweeping import SweepResult
from tidegate.difference.settings import Settings
from tidegate.errors import InputError
from tidegate.results.metrics import HEADLINE, MEMBERS, PICTURES, RECORDED, Metric, finite, metric
from tidegate.results.quality import verdict_on
from tidegate.results.stats import BySeed
from tidegate.runs import Run
from tidegate.show import sweeps, view
from tidegate.show.report import LINKS
from tidegate.show.sweeps import Swept
from tidegate.suite import SuiteResult, numbers
from tidegate.suite.scores import SCORED
from tidegate.suite.tables import cell_summary
from tidegate.wording import counted

Result: TypeAlias = Run | Comparison | SweepResult | SuiteResult
"""The results that can be compared."""

Scope: TypeAlias = tuple[str, ...]
"""The source of numbers: a flow or link of a run, a controller of a comparison, a combination of a sweep's settings, or
case and controller of a suite."""


@dataclass(frozen=True)
class Series:
    """A number of several runs."""

    label: str
    """The name in tables, with the flow."""
    metric: Metric
    """The metric, with unit and digits."""
    values: BySeed
    """The numbers by seed."""


@dataclass(frozen=True)
class RunHashes:
    """Two hashes of a run."""

    digest: str
    """The hash of its recording: equal for runs that are the same to the bit."""
    content: str
    """The hash of its inputs without the engine: the scenario, the files that it names, the controllers' code."""

    @classmethod
    def of(cls, metadata: Mapping[str, Any]) -> RunHashes:
        """The hashes from a run's metadata."""
        return cls(str(metadata["digest"]), str(metadata.get("scenario_hash", "")))


@dataclass(frozen=True)
class Side:
    """A result in the form in which it is compared."""

    kind: str
    """`run`, `comparison`, `sweep` or `suite result`."""
    title: str
    """Its name, controllers and seeds, in a few words."""
    settings: Settings
    """The settings of its runs."""
    series: Mapping[Scope, Mapping[str, Series]]
    """The numbers of its tables, by scope and key."""
    verdicts: Mapping[Scope, str]
    """The verdicts: whether a flow was within limits of loss, delay and jitter, or the results of a suite's rules."""
    runs: Mapping[Scope, Mapping[int, RunHashes]]
    """The hashes of its runs, by scope and seed."""

    @classmethod
    def of(cls, result: Result) -> Side:
        """The side of a result.

        Raises:
            InputError: when the result is none of `KINDS`, or a table of a saved run is damaged.
        """
        for type_, (_, make) in KINDS.items():
            if isinstance(result, type_):
                return make(result)
        kinds = ", ".join(word for word, _ in KINDS.values())
        raise InputError(f"found a {type(result).__name__}; expected one of {kinds}")


def _of_run(run: Run) -> Side:
    run.check()
    recorded = [str(file["sha256"]) for file in (run.about.get("imported") or {}).get("files", ())]
    # a recorded call has no seed: the hash of its recording takes that place
    seed = int(recorded[0][:8], 16) if recorded else run.seed
    extra: dict[str, Any] = {"engine": _engine([run.about]), "inputs": _inputs([run.about])}
    extra |= {"recordings": [sha256[:12] for sha256 in recorded]} if recorded else {"seed": run.seed}
    flows = {str(flow["flow"]): flow for flow in view.point_to_point(run)}
    # a link and a flow may have the same name
    links = {f"link {link['link']}": link for link in run.summary["links"]}
    sessions = {f"session {name}": view.session_sums(members) for name, members in view.sessions(run.summary).items()}
    tables: list[tuple[Mapping[str, Mapping[str, Any]], Sequence[str]]] = [
        (flows, RECORDED if recorded else (*HEADLINE, *PICTURES)),
        # whether a link clears ECN fields is one of its settings
        (links, [name for name in LINKS if name != "bleached"]),
        (sessions, MEMBERS),
        ({"fairness": run.summary.get("fairness") or {}}, ("jain_5s",)),
    ]
    series = {
        (source,): {
            name: Series(metric(name).label, metric(name), {seed: number})
            for name in names
            if (number := finite(row.get(name))) is not None
        }
        for table, names in tables
        for source, row in table.items()
    }
    return Side(
        "run",
        f"{run.name}: {run.controller}{'' if recorded else f', seed {run.seed}'}",
        Settings.of_text(str(run.about["scenario"])).beside(extra),
        {scope: numbers for scope, numbers in series.items() if numbers},
        {(name,): verdict_on([flow]) for name, flow in flows.items()},
        {(): {seed: RunHashes.of(run.about)}},
    )


def _of_comparison(result: Comparison) -> Side:
    for runs_of in result.runs.values():
        for run in runs_of:
            run.check()
    runs = [run.about for runs in result.runs.values() for run in runs]
    extra = {
        "controllers": ", ".join(result.table.controllers),
        "seeds": _listed(result.seeds),
        "engine": _engine(runs),
        "inputs": _inputs(runs),
    }
    verdicts = result.table.verdicts.items()
    return Side(
        "comparison",
        f"{result.scenario.name}: {', '.join(result.table.controllers)}; {_seeds(result.seeds)}",
        Settings.of_scenario(result.scenario).without("seed").beside(extra),
        {
            (name,): {row.key: Series(row.label, row.metric, row.values[name]) for row in result.table.rows}
            for name in result.controllers
        },
        {(name,): f"failed: {result.failed[name]}" if name in result.failed else verdict for name, verdict in verdicts},
        {(name,): {run.seed: RunHashes.of(run.about) for run in runs} for name, runs in result.runs.items()},
    )


def _of_sweep(result: SweepResult) -> Side:
    swept = Swept.of(result)
    seeds = sorted({int(row["seed"]) for row in result.rows})
    extra: dict[str, Any] = {
        "values": {key: ", ".join(swept.values[key]) for key in swept.varied},
        "set": dict(swept.constant),
        "seeds": _listed(seeds),
        "engine": _engine(result.rows),
    }
    if len(result.rows) < result.planned:
        extra["runs"] = f"{len(result.rows)} of {result.planned}"
    series, runs = {}, {}
    for combination in swept.combinations:
        # only keys with several values distinguish runs; the settings show a constant that differs between the sweeps
        scope = tuple(f"{key}={combination.settings[key]}" for key in sorted(swept.varied))
        series[scope] = {
            name: Series(
                sweeps.label(name),
                sweeps.metric_of(name),
                {int(row["seed"]): sweeps.value(row, name) for row in combination.rows},
            )
            for name in swept.names
        }
        runs[scope] = {int(row["seed"]): RunHashes.of(row) for row in combination.rows}
    title = f"{result.name}: {', '.join(swept.varied) or 'nothing'} varied; {_seeds(seeds)}"
    settings = Settings.of_text(result.scenario).without("seed").beside(extra)
    return Side("sweep", title, settings, series, {}, runs)


def _of_suite(result: SuiteResult) -> Side:
    cases = {
        case.name: Settings.of_scenario(case.scenario).without("seed").beside({"contenders": list(case.contenders)})
        for case in result.suite.cases
        if case.scenario is not None
    }
    rules = {rule.name: rule.to_dict() for rule in result.suite.rules}
    parts = {"cases": Settings.joined(cases), "rules": Settings.without_defaults(rules)}
    extra = {
        "suite": result.suite.name,
        "controllers": ", ".join(result.controllers),
        "baseline": result.baseline,
        "seeds": _listed(result.seeds),
        "engine": _engine([row for *_, row in result.runs()]),
    }
    metrics = {name: numbers.metric_of(name) for name, _ in SCORED}
    return Side(
        "suite result",
        f"{result.suite.name}: {', '.join(result.controllers)}; {_seeds(result.seeds)}",
        Settings.joined(parts).beside(extra),
        {
            scope: {
                name: Series(metrics[name].label, metrics[name], result.values(*scope, name, part))
                for name, part in SCORED
            }
            for scope in result.rows
        },
        {
            (cell.case, cell.controller): cell.state if cell.state == "pass" else f"{cell.state}: {cell_summary(cell)}"
            for cell in result.cells
        },
        {scope: {seed: RunHashes.of(row) for seed, row in rows.items()} for scope, rows in result.rows.items()},
    )


def _engine(runs: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """The engine's versions in the metadata of runs; Python and platform are left out, since they change no bit."""
    versions = [metadata.get("versions") or {} for metadata in runs]
    by_key = {key: dict.fromkeys(str(by[key]) for by in versions if key in by) for key in ("tidegate", "commit")}
    return {key: " and ".join(values) for key, values in by_key.items() if values}


def _inputs(runs: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """The hashes of files and controllers' code in the metadata of runs, by name."""
    inputs = (item for metadata in runs for item in (metadata.get("inputs") or {}).items())
    return {str(name): str(content)[:12] for name, content in inputs}


def _listed(seeds: Sequence[int]) -> str:
    """Seeds in a few words.

    >>> _listed([1, 2, 3]), _listed([2, 5]), _listed([7]), _listed([1, 2, 2**63])
    ('1 to 3', '2, 5', '7', '1, 2, 9223372036854775808')
    """
    # the list of a result may end at a seed of 2^63
    if len(seeds) > 2 and all(after - before == 1 for before, after in pairwise(seeds)):  # noqa: PLR2004
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
"""The kinds of results that can be compared: the name of the kind, and the function that makes a side."""
