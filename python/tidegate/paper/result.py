"""Runs of papers, and their results."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from tidegate._files import file_name, writable, write_file
from tidegate.errors import InputError, RunError, TidegateError
from tidegate.output.document import Document as Page
from tidegate.output.files import write_page, write_text
from tidegate.output.notebook import Displayable
from tidegate.paper import _mutations as mutations
from tidegate.paper import document as documents
from tidegate.paper import shipped, words
from tidegate.paper.claims import Document, Kind
from tidegate.paper.experiment import Experiment, Outcome, Plan
from tidegate.paper.measures import Measure, Table
from tidegate.paper.reading import load
from tidegate.paper.turning import firm_rules
from tidegate.paper.verdicts import Judgement, Verdict, judge
from tidegate.results.folders import check_folder, write_folder
from tidegate.runs import engine, pool, versions
from tidegate.runs.seeds import seeds_from

PAPER_FILE = "paper.json"
"""Name of the file by which a folder with a result is recognised."""


@dataclass(frozen=True, repr=False)
class Result(Displayable):
    """A paper's claims beside the measured numbers."""

    published: Document
    """The paper's claims as its file states them."""
    plan: Plan
    outcome: Outcome
    judgements: Sequence[Judgement]
    jobs: int
    """Number of jobs."""
    took_s: float
    """Duration of the run in seconds of real time."""
    command: str = ""
    """The command line that produced the result."""
    versions: Mapping[str, str] = field(default_factory=lambda: dict(versions()))
    mutations: mutations.Mutations | None = None
    """Verdicts without the document's mechanism; `None` if none are stored with the paper."""

    def __repr__(self) -> str:
        counts = ", ".join(f"{count} {verdict}" for verdict, count in self.counts.items())
        return f"<tidegate paper Result of {self.published.key}: {counts}>"

    def turned(self, claims: Sequence[Judgement]) -> int:
        """Number of the claims that turn under at least one mutation."""
        return sum(bool(self.mutations and self.mutations.turned_by(judged.claim.id)) for judged in claims)

    @property
    def counts(self) -> dict[Verdict, int]:
        """Number of claims with each verdict."""
        counts = Counter(judgement.verdict for judgement in self.judgements)
        return {verdict: counts[verdict] for verdict in Verdict if counts[verdict]}

    @property
    def counts_by_kind(self) -> dict[Kind, dict[Verdict, int]]:
        """Number of claims with each verdict, for each kind of claim that occurs."""
        counts = Counter((judgement.claim.kind, judgement.verdict) for judgement in self.judgements)
        by_kind = {
            kind: {verdict: counts[kind, verdict] for verdict in Verdict if counts[kind, verdict]} for kind in Kind
        }
        return {kind: verdicts for kind, verdicts in by_kind.items() if verdicts}

    @property
    def unexplained(self) -> list[Judgement]:
        """Claims that differ and for which the paper's file gives no reason."""
        return [judgement for judgement in self.judgements if judgement.unexplained]

    @cached_property
    def firm(self) -> list[tuple[Judgement, str]]:
        """Claims with the key of a rule that holds and that no number of ours turns; their verdicts are no evidence."""
        return [
            (judgement, key)
            for judgement in self.judgements
            for key in firm_rules(judgement, self.outcome.measures, mutated=self._changes(judgement))
        ]

    def _changes(self, judgement: Judgement) -> bool:
        """Whether the stored verdict on the claim is another one under some mutation, by what was measured."""
        effects = (mutations.Effect.TURNS, mutations.Effect.NOT_APART, mutations.Effect.BETTER)
        return bool(self.mutations and self.mutations.with_effect(judgement.claim.id, *effects))

    @property
    def tables(self) -> list[Table]:
        """The document's tables with ours beside them, then the experiment's own."""
        beside = (words.beside(table, self.by_cell) for table in self.published.paper.table)
        return [*beside, *self.outcome.tables]

    @property
    def by_cell(self) -> words.ByCell:
        """Judgements of numbers that stand in tables of the document, by table, row and column."""
        return {judgement.claim.cell: judgement for judgement in self.judgements if judgement.claim.cell}

    def document(self) -> Page:
        """The result as a page: the claims that hold and those that do not first, bookkeeping last."""
        return documents.document(self)

    def to_data(self) -> dict[str, Any]:
        """Plain data, as `paper.json` holds it and `--json` prints it."""
        paper = self.published.paper
        return {
            "format": 1,
            "paper": self.published.key,
            "title": paper.title,
            "authors": paper.authors,
            "year": paper.year,
            "source": paper.source,
            "quick": self.plan.quick,
            "seeds": list(self.plan.seeds),
            "jobs": self.jobs,
            "took_s": round(self.took_s, 3),
            "command": self.command,
            "versions": dict(self.versions),
            "counts": self.counts,
            "counts_by_kind": self.counts_by_kind,
            "mutations": {} if self.mutations is None else dict(self.mutations.changes),
            "claims": [_claim_data(judgement, self.mutations) for judgement in self.judgements],
            "measures": {name: _measure_data(measure) for name, measure in self.outcome.measures.items()},
            "unstated": [setting.to_dict() for setting in paper.unstated],
            "notes": list(self.outcome.notes),
            "digests": dict(self.outcome.digests),
        }

    def save(self, folder: str | Path) -> Path:
        """Writes page, README, tables, figures and data into a folder, whole or not at all.

        An earlier result in the folder is replaced. Files that are not tidegate's or were changed stay.

        Raises:
            OutputError: when the folder cannot be written, or holds something else.
        """
        path = Path(folder)
        claims = Table("claims", "Every claim", words.HEADS, [words.row(judgement) for judgement in self.judgements])
        with write_folder(path, PAPER_FILE) as making:
            with writable(path):
                (making / "tables").mkdir()
                (making / "figures").mkdir()
            for table in (claims, *self.tables):
                stem = making / "tables" / file_name(table.name)
                write_file(stem.with_name(f"{stem.name}.csv"), table.to_csv())
                write_text(stem.with_name(f"{stem.name}.md"), documents.of_table(table))
            for figure in self.outcome.figures:
                stem = making / "figures" / file_name(figure.name)
                write_file(stem.with_name(f"{stem.name}.svg"), figure.svg)
                write_file(stem.with_name(f"{stem.name}.png"), figure.file("png"))
            document = self.document()
            write_text(making / "README.md", document)
            write_page(making / "index.html", document)
            write_file(making / PAPER_FILE, json.dumps(self.to_data(), indent=1, allow_nan=False) + "\n")
        return path


def _measure_data(measure: Measure) -> dict[str, Any]:
    mean = measure.value.mean if measure.value.count else None
    return {
        "mean": mean,
        "half_interval_95": measure.value.half,
        "count": measure.value.count,
        "unit": measure.unit,
        "about": measure.about,
    }


def _claim_data(judgement: Judgement, mutated: mutations.Mutations | None) -> dict[str, Any]:
    claim = judgement.claim
    return {
        "id": claim.id,
        "where": claim.where,
        "text": claim.text,
        "kind": str(claim.kind),
        "published": list(claim.published) if isinstance(claim.published, tuple) else claim.published,
        "unit": claim.unit,
        "sigma": claim.sigma,
        "tolerance": claim.bound and {"within": claim.bound.words, "why": claim.bound.why},
        "agrees": claim.agrees and claim.agrees.text,
        "trend": claim.trend and claim.trend.text,
        "because": claim.because and claim.because.text,
        "ours": {name: _measure_data(measure) for name, measure in judgement.ours.items()},
        "deviation": judgement.deviation,
        "relative": judgement.relative,
        "verdict": str(judgement.verdict),
        "turned_by": None if mutated is None else mutated.turned_by(claim.id),
        "sure": judgement.sure,
        "reason": judgement.reason,
        "backing": str(judgement.backing),
        "undefined": judgement.undefined,
    }


def prepare(key: str | Path) -> tuple[Document, Experiment]:
    """Loads a paper's claims and its code.

    Raises:
        InputError: when no paper has the key, or its files cannot be used.
    """
    folder = shipped.find(key)
    return load(folder), shipped.experiment(folder)


def run(
    key: str | Path,
    *,
    quick: bool = True,
    seeds: int | None = None,
    out: str | Path | None = None,
    workers: int | None = None,
    progress: pool.Progress | None = None,
    command: str = "",
) -> Result:
    """Runs a paper's experiment and judges each of its claims.

    Args:
        key: A key from `tidegate paper list`, or a folder with a `paper.toml`.
        quick: Whether to run for minutes only; else everything that the document did.
        seeds: Number of seeds, counted from 1; the experiment's number by default.
        out: Folder to write page, tables and figures to.
        workers: Number of jobs at once; one a core by default.
        progress: Called with the fraction that is done.
        command: The command line, for the record.

    Raises:
        InputError: when no paper has the key, or its files cannot be used.
        RunError: when its experiment fails.
        OutputError: when the result cannot be written.
    """
    document, experiment = prepare(key)
    if out is not None:
        check_folder(Path(out), PAPER_FILE)
    code = document.folder / shipped.CODE
    started = time.monotonic()
    with _errors_in(code):
        default_seeds = seeds_from(experiment.quick_seeds if quick else experiment.full_seeds)
    plan = Plan(quick, default_seeds if seeds is None else seeds_from(seeds))
    with _errors_in(code):
        jobs = dict(experiment.jobs(plan))
        results = engine.run_all(list(jobs.values()), workers=workers, progress=progress)
        outcome = experiment.outcome(plan, dict(zip(jobs, results, strict=True)))
        if not isinstance(outcome, Outcome):
            raise TypeError(f"outcome() returned {outcome!r}; expected an Outcome")
    result = Result(
        document,
        plan,
        outcome,
        _judge(document, outcome, plan),
        len(jobs),
        time.monotonic() - started,
        command,
        mutations=mutations.load(document.folder),
    )
    _check_file_names(result, code)
    if out is not None:
        result.save(out)
    return result


@contextmanager
def _errors_in(code: Path) -> Iterator[None]:
    """Turns an exception of a paper's code into a message that names the file and the line."""
    try:
        yield
    except (TidegateError, MemoryError):
        raise
    except (Exception, SystemExit) as error:
        raise RunError(f"{code}: {shipped.failure(error, code)}") from error


def _judge(document: Document, outcome: Outcome, plan: Plan) -> list[Judgement]:
    judgements, problems = [], []
    for claim in document.claims:
        try:
            judgements.append(judge(claim, outcome.measures, quick=plan.quick))
        except InputError as error:
            problems.append(f"{document.places[claim.id]}: {claim.id}: {error}")
    if problems:
        raise InputError("\n".join(problems))
    return judgements


def _check_file_names(result: Result, code: Path) -> None:
    """Checks that no two tables and no two figures have the same file name."""
    for kind, names in (
        ("table", ["claims", *(table.name for table in result.tables)]),
        ("figure", [figure.name for figure in result.outcome.figures]),
    ):
        files = [file_name(name) for name in names]
        repeated = next((name for name, file in zip(names, files, strict=True) if files.count(file) > 1), None)
        if repeated is not None:
            raise RunError(f"{code}: two {kind}s are called {repeated}; give each {kind} its own name")


def list_papers() -> list[Document]:
    """The papers that come with tidegate."""
    return [load(shipped.FOLDER / key) for key in shipped.names()]
