"""A baseline: what a controller made of a suite, seed by seed, as a small file that is kept beside the code.

It says what it was made on: of each case the scenario, and what engine and measures make of it with a constant rate and
one seed (`REFERENCE`): the digest, and the numbers that the baseline has. An engine for which these are the same gives
the same network, the same competitors and the same numbers, so that a difference is the controller's. So a baseline
holds for other machines and other builds, also for one in which somebody's controller in Rust has changed; and not
where packets go another way. Both hashes are of what they mean: words about a scenario, further metrics and the text of
our sources do not count.
"""

from __future__ import annotations

import glob
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from tidegate._files import check_target, write_file
from tidegate.errors import InputError
from tidegate.gate.rules import Rule
from tidegate.results.metrics import HEADLINE, Metric, finite
from tidegate.runs import engine, pool
from tidegate.runs import versions as versions_here
from tidegate.suite import Plan, Suite, SuiteResult, numbers
from tidegate.suite.cases import Case
from tidegate.suite.plan import SuiteJob

REFERENCE = "fixed:500kbps"
"""What engines are told apart by: a sender that answers nothing."""

_ABOUT = "A baseline of `tidegate check`: numbers of each seed, in the summary's own units, from seed 1 on."
_FORMAT = 2
_DIGITS = 6  # of a value; more would make files larger, and no difference that is a person's business

Values = Mapping[str, Sequence[float | None]]
"""Numbers by seed, from seed 1 on, of each series: `worst one_way_delay_ms_p95`."""


@dataclass(frozen=True)
class Known:
    """What a baseline has of a case."""

    network: str
    """Hash of its scenario and of who contends in it: see `network`."""
    engine: str
    """Hash of what engine and measures make of it with a constant rate: see `engines`."""
    values: Values
    """The numbers of its runs."""


@dataclass(frozen=True)
class Baseline:
    """What a controller made of a suite."""

    suite: str
    """Name or file of the suite."""
    controller: str
    """The controller."""
    seeds: int
    """With how many seeds each case was run."""
    only: tuple[str, ...]
    """Patterns of the cases that it is of, where it is not of all."""
    rules: tuple[str, ...]
    """What is asked where nobody says otherwise."""
    cases: Mapping[str, Known]
    """Its cases."""
    versions: Mapping[str, str]
    """What it was made with."""

    def save(self, path: Path, *, force: bool = False) -> None:
        """Writes it.

        Raises:
            OutputError: when it cannot be written, or the file is something else.
        """
        check_file(path, force=force)
        kept = ("suite", "controller", "seeds", "only", "rules", "versions")
        head = {"about": _ABOUT, "format": _FORMAT, **{name: getattr(self, name) for name in kept}}
        lines = [f" {json.dumps(key)}: {json.dumps(value)}," for key, value in head.items()]
        cases = []
        for name, one in self.cases.items():
            about = f'"network": {json.dumps(one.network)}, "engine": {json.dumps(one.engine)}'
            series = [f"   {json.dumps(key)}: {json.dumps(list(some))}" for key, some in one.values.items()]
            values = ",\n".join(series)
            cases.append(f'  {json.dumps(name)}: {{\n   {about}, "values": {{\n{values}\n  }}}}')
        write_file(path, "\n".join(["{", *lines, ' "cases": {', ",\n".join(cases), " }", "}", ""]))

    @classmethod
    def load(cls, path: Path) -> Self:
        """Reads one.

        Raises:
            InputError: when there is none, or it is damaged.
        """
        try:
            data = json.loads(path.read_bytes())
        except OSError as error:
            make = f"tidegate check {path} CONTROLLER --suite smoke --write makes one"
            raise InputError(f"{path}: cannot be read: {error.strerror}; {make}") from None
        except (ValueError, RecursionError) as error:
            raise InputError(f"{path}: is no baseline, or only a part of one: {error}") from None
        found = data.get("format") if isinstance(data, dict) else None
        if found != _FORMAT or not data.get("cases"):
            what = "has no case" if found == _FORMAT else f"found format {found!r}; expected {_FORMAT}"
            raise InputError(f"{path}: is no baseline of tidegate, or of another version ({what}); make it again")
        try:
            seeds = int(data["seeds"])
            cases = {
                str(name): Known(str(one["network"]), str(one["engine"]), _values(name, one["values"], seeds))
                for name, one in data["cases"].items()
            }
            only, rules = (tuple(map(str, data[key])) for key in ("only", "rules"))
            versions = dict(data["versions"])
            return cls(str(data["suite"]), str(data["controller"]), seeds, only, rules, cases, versions)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InputError(f"{path}: is no baseline of tidegate, or damaged: {error!r}") from None


def check_file(path: Path, *, force: bool) -> None:
    """Whether a baseline may be written there.

    Raises:
        OutputError: when something else would be lost.
    """
    check_target(path, "baseline of tidegate", lambda file: _ABOUT.encode() in file.read_bytes(), force=force)


def _values(case: str, data: Mapping[str, Any], seeds: int) -> dict[str, list[float | None]]:
    found = {}
    for name, some in data.items():
        if not isinstance(some, list) or len(some) != seeds:
            raise ValueError(f"{case}: {name} has not {seeds} values")
        if any(value is not None and finite(value) is None for value in some):
            raise ValueError(f"{case}: {name} has values that are no numbers")
        found[str(name)] = [finite(value) for value in some]
    return found


def catalogue() -> dict[str, Metric]:
    """The metrics that a rule can ask for."""
    return {name: numbers.about(name) for name in numbers.known()}


def series_of(rules: Sequence[Rule], asked: Sequence[tuple[str, str | None]] = ()) -> list[str]:
    """What of each run a baseline keeps: what comparisons show, what a suite asks for, and what rules do.

    Args:
        rules: The rules of the gate.
        asked: Further metrics, such as those that the suite's own rules are about, and of whom.
    """
    usual = [f"worst {name}" for name in HEADLINE]
    suite = [f"{of or 'worst'} {name}" for name, of in asked]
    return list(dict.fromkeys([*usual, *suite, *(rule.series for rule in rules)]))


def values_of(result: SuiteResult, case: str, controller: str, series: str, seeds: int) -> list[float | None]:
    """The numbers of a cell by seed, from seed 1 on."""
    of, _, name = series.rpartition(" ")
    found = result.values(case, controller, name, of)
    return [rounded(found.get(seed)) for seed in range(1, seeds + 1)]


def rounded(value: float | None) -> float | None:
    """A value as it stands in a baseline."""
    return None if value is None else float(f"{value:.{_DIGITS}g}")


def network(case: Case) -> str:
    """Hash of what a case's scenario means, and of who is judged in it."""
    meaning = case.scenario.to_dict() if case.scenario is not None else {}
    for words in ("name", "description", "source"):
        meaning.pop(words, None)
    return _hash([meaning, case.who])


def engines(
    suite: Suite,
    series: Mapping[str, Iterable[str]],
    *,
    workers: int | None = None,
    progress: pool.Progress | None = None,
) -> dict[str, str]:
    """Of each case a hash of what engine and measures make of it with a constant rate: the digest, and numbers.

    Args:
        suite: The suite.
        series: The series whose numbers count, by case: those that its baseline has.
        workers: How many runs at once; one a core by default.
        progress: Is told the fraction done.
    """
    plan = Plan.of(suite, [REFERENCE], seeds=1, cases=[glob.escape(case) for case in series])
    jobs = [SuiteJob(point) for point in plan.points]
    done = engine.run_all(jobs, workers=workers, progress=progress, keep_going=True)
    rows = {point.case.name: row for point, row in zip(plan.points, done, strict=True)}
    return {case: _behaviour(rows.get(case), names) for case, names in series.items()}


def _behaviour(row: Mapping[str, Any] | BaseException | None, series: Iterable[str]) -> str:
    """Hash of the digest and of these numbers of a run; `none` where there is no such run."""
    if row is None or isinstance(row, BaseException):
        return "none"
    parts = {name: name.rpartition(" ") for name in series}
    values = {name: [rounded(numbers.number(row, metric, of))] for name, (of, _, metric) in parts.items()}
    return _hash([row["digest"], values])


def _hash(meaning: Any) -> str:
    return hashlib.sha256(json.dumps(meaning, sort_keys=True).encode()).hexdigest()[:16]


def made_with() -> dict[str, str]:
    """What says by which tidegate a baseline was made."""
    return {name: version for name, version in versions_here().items() if name in {"tidegate", "commit"}}
