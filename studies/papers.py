"""Quick results of the shipped papers, kept as other studies' numbers are: measures, and a fingerprint of each job's result.

A paper's verdicts follow from its measures, so that they are judged anew at every test without a run. A sample of the jobs is
done again, and one paper as a whole, another one after each commit. `make studies STUDY=paper_vardhan` measures a paper again.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from kept import FOLDER, ROUNDING, agree
from tidegate import Run
from tidegate._files import file_name
from tidegate.paper import Measure, Outcome, Plan, Result
from tidegate.paper import _mutations as mutations
from tidegate.paper.result import _judge, prepare
from tidegate.paper.shipped import names
from tidegate.results.stats import Interval
from tidegate.runs import engine
from tidegate.runs.pool import Job
from tidegate.runs.seeds import seeds_from

PREFIX = "paper_"
PICTURES = 0.01
"""By which part measures of decoded pictures may differ: another build of x264 makes other pictures."""


def fingerprint(result: object) -> str:
    """A hash of a job's result: digests of runs, and every number to its last bit."""
    text = hashlib.sha256()
    for part in _parts(result):
        text.update(part)
        text.update(b"\0")
    return text.hexdigest()[:16]


def _parts(value: object) -> Iterator[bytes]:
    if isinstance(value, Run):
        yield value.digest.encode()
    elif isinstance(value, np.ndarray):
        yield f"{value.dtype.str}{value.shape}".encode()
        yield value.astype("U").tobytes() if value.dtype == object else value.tobytes()
    elif isinstance(value, float):
        yield float(value).hex().encode()
    elif isinstance(value, Mapping):
        for key in sorted(value, key=repr):
            yield repr(key).encode()
            yield from _parts(value[key])
    elif isinstance(value, list | tuple):
        yield str(len(value)).encode()
        for part in value:
            yield from _parts(part)
    elif dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            yield field.name.encode()
            yield from _parts(getattr(value, field.name))
    elif value is None or isinstance(value, str | int | bool | bytes):
        yield repr(value).encode()
    else:
        raise TypeError(f"a job's result holds {value!r}, which has no fingerprint")


def has_pictures(job: Job[Any]) -> bool:
    """Whether a job encodes and decodes pictures: its bits are those of the libraries that do it."""
    return type(job).__module__ == "tidegate.papers.lissah2019.pictures"


@dataclasses.dataclass(frozen=True)
class PaperStudy:
    """The kept quick result of one paper."""

    key: str

    @property
    def name(self) -> str:
        """What `make studies` calls it."""
        return PREFIX + self.key

    @property
    def path(self) -> Path:
        """Its file: a line for each job with its fingerprint, and for each measure."""
        return FOLDER / f"{self.name}.jsonl"

    def _lines(self) -> Sequence[Any]:
        return [json.loads(line) for line in self.path.read_text("utf-8").splitlines()]

    @property
    def fingerprints(self) -> dict[str, str]:
        """Those of its jobs, by their keys as text."""
        return {name: value for kind, name, value in self._lines() if kind == "job"}

    @property
    def measures(self) -> dict[str, Measure]:
        """All that was measured."""
        return {
            name: Measure(Interval(*interval), unit, about)
            for kind, name, value in self._lines()
            if kind == "measure"
            for *interval, unit, about in [value]
        }

    def result(self) -> Result:
        """The paper's claims judged by the kept measures; it has no tables and no figures."""
        return self._judged(Outcome(self.measures))

    def _judged(self, outcome: Outcome) -> Result:
        document, _ = prepare(self.key)
        plan = self.plan()
        judgements = _judge(document, outcome, plan)
        jobs, kept = len(self.fingerprints), mutations.load(document.folder)
        return Result(document, plan, outcome, judgements, jobs=jobs, took_s=0.0, mutations=kept)

    def plan(self) -> Plan:
        """That of a quick run."""
        _, experiment = prepare(self.key)
        return Plan(True, seeds_from(experiment.quick_seeds))

    def jobs(self) -> dict[Any, Job[Any]]:
        """The work of a quick run."""
        _, experiment = prepare(self.key)
        return dict(experiment.jobs(self.plan()))

    def tables(self) -> dict[tuple[str, str], str]:
        """None: a paper's tables are on the page that its command writes."""
        return {}

    def sample(self, seed: object) -> list[str]:
        """Two jobs again: a line for each whose result differs."""
        jobs = {str(key): job for key, job in self.jobs().items() if not has_pictures(job)}
        fingerprints = self.fingerprints
        differences = [] if jobs.keys() == fingerprints.keys() else [f"{self.key} has other jobs than the kept file"]
        chosen = random.Random(f"{self.name} {seed}").sample(sorted(jobs.keys() & fingerprints.keys()), 2)
        results = engine.run_all([jobs[key] for key in chosen])
        return differences + [
            f"job {key} has another result"
            for key, result in zip(chosen, results, strict=True)
            if fingerprint(result) != fingerprints[key]
        ]

    def whole(self) -> list[str]:
        """All jobs and measures again: a line for each that differs."""
        fingerprints, outcome = self._measured()
        measures = outcome.measures
        fingerprints_then, measures_then = self.fingerprints, self.measures
        lines = [
            f"job {key} has another result"
            for key, value in fingerprints.items()
            if fingerprints_then.get(key) != value
        ]
        for name, now in measures.items():
            then = measures_then.get(name)
            if now.lacks or (then is not None and _agree(now.value, then.value)):
                continue
            if then is not None and "picture" in f"{name} {now.about}" and _near(now.value.mean, then.value.mean):
                continue
            lines.append(f"{name} is now {now.show()}, kept is {then.show() if then else 'nothing'}")
        lines += [f"{name} is no longer measured" for name in measures_then.keys() - measures.keys()]
        with TemporaryDirectory() as folder:
            page = self._judged(outcome).save(Path(folder) / "page")
            drawn = {path.stem for path in (page / "figures").glob("*.svg") if path.stat().st_size > 2000}
            lines += [
                f"{figure.name} is not drawn" for figure in outcome.figures if file_name(figure.name) not in drawn
            ]
        return lines

    def remake(self, progress: Callable[[int, int], None] = lambda *_: None) -> dict[tuple[str, str], str]:
        """Measures all of it again and writes its file."""
        fingerprints, outcome = self._measured(progress)
        measures = outcome.measures
        lacks = {measure.lacks for measure in measures.values() if measure.lacks}
        if lacks:
            raise SystemExit(f"{self.key}: {'; '.join(sorted(lacks))}")
        lines = [json.dumps(["job", *item]) for item in fingerprints.items()]
        lines += [
            json.dumps(
                [
                    "measure",
                    name,
                    [measure.value.mean, measure.value.half, measure.value.count, measure.unit, measure.about],
                ]
            )
            for name, measure in measures.items()
        ]
        self.path.write_text("\n".join([*lines, ""]), "utf-8")
        return self.tables()

    def _measured(self, progress: Callable[[int, int], None] = lambda *_: None) -> tuple[dict[str, str], Outcome]:
        _, experiment = prepare(self.key)
        jobs = self.jobs()
        results = engine.run_all(list(jobs.values()), progress=lambda fraction: progress(round(1000 * fraction), 1000))
        done = dict(zip(jobs, results, strict=True))
        fingerprints = {str(key): fingerprint(done[key]) for key, job in jobs.items() if not has_pictures(job)}
        return fingerprints, experiment.outcome(self.plan(), done)


def _agree(value: Interval, other: Interval) -> bool:
    """Half a width is a difference of numbers as large as the mean, and rounded as they are."""
    if value.half is None or other.half is None:
        halves = value.half is other.half
    else:
        halves = math.isclose(value.half, other.half, rel_tol=ROUNDING, abs_tol=ROUNDING * abs(value.mean))
    return halves and value.count == other.count and agree(value.mean, other.mean)


def _near(value: float, other: float) -> bool:
    return math.isclose(value, other, rel_tol=PICTURES)


PAPERS = {PREFIX + key: PaperStudy(key) for key in names()}
"""All of them, by the names that `make studies` takes."""
