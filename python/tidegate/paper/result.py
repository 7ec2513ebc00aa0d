"""Running a paper, and what came of it."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tidegate._files import file_name, named, write_file
from tidegate.errors import InputError, RunError, TidegateError
from tidegate.output.document import Document as Page
from tidegate.output.files import write_page, write_text
from tidegate.output.notebook import Shown
from tidegate.paper import _mutations as mutations
from tidegate.paper import document as documents
from tidegate.paper import shipped, words
from tidegate.paper.claims import Document, Kind
from tidegate.paper.experiment import Experiment, Outcome, Plan
from tidegate.paper.measures import Measure, Table
from tidegate.paper.reading import load
from tidegate.paper.verdicts import Judgement, Verdict, judge
from tidegate.results.folders import check_folder, write_folder
from tidegate.runs import engine, pool, versions
from tidegate.runs.seeds import seeds_from

PAPER_FILE = "paper.json"
"""What every folder with a result has."""


@dataclass(frozen=True, repr=False)
class Result(Shown):
    """A paper's claims beside what was measured."""

    published: Document
    """What the paper says."""
    plan: Plan
    outcome: Outcome
    judgements: Sequence[Judgement]
    jobs: int
    """How many pieces of work it took."""
    took_s: float
    """How long that took, in seconds of this machine."""
    command: str = ""
    """What was typed to get it."""
    versions: Mapping[str, str] = field(default_factory=lambda: dict(versions()))
    mutations: mutations.Mutations | None = None
    """Which verdicts turn without the document's mechanism, where that is kept with the paper."""

    def __repr__(self) -> str:
        counts = ", ".join(f"{count} {verdict}" for verdict, count in self.counts.items())
        return f"<tidegate paper Result of {self.published.key}: {counts}>"

    def turned(self, claims: Sequence[Judgement]) -> int:
        """How many of the claims turn under some mutation."""
        return sum(bool(self.mutations and self.mutations.turned_by(one.claim.id)) for one in claims)

    @property
    def counts(self) -> dict[Verdict, int]:
        """How many claims have each verdict."""
        found = Counter(one.verdict for one in self.judgements)
        return {verdict: found[verdict] for verdict in Verdict if found[verdict]}

    @property
    def counts_by_kind(self) -> dict[Kind, dict[Verdict, int]]:
        """The same for each kind of claim that there is."""
        found = Counter((one.claim.kind, one.verdict) for one in self.judgements)
        kinds = {kind: {verdict: found[kind, verdict] for verdict in Verdict if found[kind, verdict]} for kind in Kind}
        return {kind: counts for kind, counts in kinds.items() if counts}

    @property
    def unexplained(self) -> list[Judgement]:
        """Claims that differ and for which the paper's file gives no reason."""
        return [one for one in self.judgements if one.unexplained]

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
        """All that there is to say of it: what holds and what does not first, bookkeeping last."""
        return documents.document(self)

    def to_data(self) -> dict[str, Any]:
        """As plain data: what `paper.json` holds and `--json` prints."""
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
            "mutations": {} if self.mutations is None else dict(self.mutations.about),
            "claims": [_claim(one, self.mutations) for one in self.judgements],
            "measures": {name: _measure(one) for name, one in self.outcome.measures.items()},
            "unstated": [one.to_dict() for one in paper.unstated],
            "notes": list(self.outcome.notes),
            "digests": dict(self.outcome.digests),
        }

    def save(self, folder: str | Path) -> Path:
        """Writes page, README, tables, figures and data into a folder, whole or not at all.

        An earlier result there is replaced; files in it that are not tidegate's, or were changed, are kept.

        Raises:
            OutputError: when it cannot be written, or something else is there.
        """
        path = Path(folder)
        claims = Table("claims", "Every claim", words.HEADS, [words.row(judgement) for judgement in self.judgements])
        with write_folder(path, PAPER_FILE) as making:
            with named(path):
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


def _measure(one: Measure) -> dict[str, Any]:
    mean = one.value.mean if one.value.count else None
    return {
        "mean": mean,
        "half_interval_95": one.value.half,
        "count": one.value.count,
        "unit": one.unit,
        "about": one.about,
    }


def _claim(one: Judgement, known: mutations.Mutations | None) -> dict[str, Any]:
    claim = one.claim
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
        "ours": {name: _measure(measure) for name, measure in one.ours.items()},
        "deviation": one.deviation,
        "relative": one.relative,
        "verdict": str(one.verdict),
        "turned_by": None if known is None else known.turned_by(claim.id),
        "sure": one.sure,
        "reason": one.reason,
        "backing": str(one.backing),
        "undefined": one.undefined,
    }


def prepare(key: str | Path) -> tuple[Document, Experiment]:
    """A paper's data and code.

    Raises:
        InputError: when there is no such paper, or it cannot be used.
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
        quick: Whether minutes are enough; else everything that the document did.
        seeds: How many, counted from 1; as the experiment says by default.
        out: Folder to write page, tables and figures to.
        workers: How many jobs at once; one a core by default.
        progress: Told the fraction that is done.
        command: What was typed, for the record.

    Raises:
        InputError: when there is no such paper, or it cannot be used.
        RunError: when its experiment fails.
        OutputError: when the result cannot be written.
    """
    document, experiment = prepare(key)
    if out is not None:
        check_folder(Path(out), PAPER_FILE)
    code = document.folder / shipped.CODE
    begun = time.monotonic()
    with _blamed(code):
        usual = seeds_from(experiment.quick_seeds if quick else experiment.full_seeds)
    plan = Plan(quick, usual if seeds is None else seeds_from(seeds))
    with _blamed(code):
        jobs = dict(experiment.jobs(plan))
        results = engine.run_all(list(jobs.values()), workers=workers, progress=progress)
        outcome = experiment.outcome(plan, dict(zip(jobs, results, strict=True)))
        if not isinstance(outcome, Outcome):
            raise TypeError(f"outcome gave {outcome!r}; expected an Outcome")
    result = Result(
        document,
        plan,
        outcome,
        _judge(document, outcome, plan),
        len(jobs),
        time.monotonic() - begun,
        command,
        mutations=mutations.load(document.folder),
    )
    _distinct(result, code)
    if out is not None:
        result.save(out)
    return result


@contextmanager
def _blamed(code: Path) -> Iterator[None]:
    """Turns an exception of a paper's code into a sentence."""
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


def _distinct(result: Result, code: Path) -> None:
    """Whether every table and figure has a file name of its own."""
    for kind, names in (
        ("table", ["claims", *(one.name for one in result.tables)]),
        ("figure", [one.name for one in result.outcome.figures]),
    ):
        files = [file_name(name) for name in names]
        twice = next((name for name, file in zip(names, files, strict=True) if files.count(file) > 1), None)
        if twice is not None:
            raise RunError(f"{code}: two {kind}s are called {twice}; each needs a name of its own")


def list_papers() -> list[Document]:
    """The papers that come with tidegate."""
    return [load(shipped.FOLDER / key) for key in shipped.names()]
