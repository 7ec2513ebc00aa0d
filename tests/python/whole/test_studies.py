"""Numbers that studies keep: tables are those of the numbers, and runs give the same numbers again.

Which runs are repeated, and which study as a whole, changes with each commit (`support.rotation`).
"""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Iterator
from functools import cache

import pytest

import kept
from papers import PAPERS
from papers import _agree as agree_as_measured
from remake import STUDIES
from support import DOCS, check_table, rotation, shared
from tidegate import Scenario
from tidegate.results.stats import Interval
from tidegate.scenario.lower import Lowered


@cache
def needs(study: str) -> None:
    """Skips a study whose inputs are in the shared folder, where that is absent."""
    folder = None if study in PAPERS else getattr(importlib.import_module(study), "SHARED", None)
    if folder is not None and not (shared() / folder).is_dir():
        pytest.skip(f"needs {folder} in the shared folder")


def stale(study: str, differences: list[str]) -> str:
    """What is not as its runs give it, and the command that makes it anew."""
    tables = ", ".join(f"{name} of docs/{page}" for page, name in STUDIES[study].tables()) or study
    return "\n".join([f"stale: {tables}", f"make studies STUDY={study} makes it anew", *differences])


@pytest.mark.parametrize("study", STUDIES)
def test_tables_are_those_of_the_kept_numbers(study: str) -> None:
    for (page, name), text in STUDIES[study].tables().items():
        check_table(DOCS / page, name, text)


@pytest.mark.parametrize("study", STUDIES)
def test_runs_of_a_sample_give_the_kept_numbers(study: str) -> None:
    needs(study)
    differences = STUDIES[study].sample(rotation())
    assert not differences, stale(study, differences)


def scenarios(job: object) -> Iterator[Scenario]:
    """Those of a paper's job, where it has them before it begins."""
    if isinstance(job, Scenario | Lowered):
        yield job.scenario if isinstance(job, Lowered) else job
    elif dataclasses.is_dataclass(job):
        yield from scenarios(getattr(job, "scenario", None))
        for field in dataclasses.fields(job):
            yield from scenarios(getattr(job, field.name))
    elif isinstance(job, list | tuple):
        for part in job:
            yield from scenarios(part)


@pytest.mark.parametrize("study", PAPERS)
def test_a_paper_states_how_its_tcp_repairs_losses(study: str) -> None:
    """A default that changes moves no paper: their simulators had RFC 6675, or less."""
    ways = {
        (flow.tcp.algorithm, flow.tcp.recovery)
        for job in PAPERS[study].jobs().values()
        for scenario in scenarios(job)
        for flow in scenario.flows
        if flow.tcp is not None
    }
    assert ways <= {*((older, None) for older in ("tahoe", "reno", "newreno", "sack"))} | {
        (newer, "rfc6675") for newer in ("cubic", "prague")
    }


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_all_runs_of_a_study_give_the_kept_numbers() -> None:
    study = sorted(STUDIES)[rotation() % len(STUDIES)]
    print(f"as a whole: {study}")
    needs(study)
    differences = STUDIES[study].whole()
    assert not differences, stale(study, differences)


def test_a_number_that_is_not_kept_is_named_with_the_command() -> None:
    today = importlib.import_module("today")
    with pytest.raises(
        kept.StaleError, match=r'today.jsonl has no run\("nowhere", "", "gcc", 1\): make studies STUDY=today'
    ):
        today.run("nowhere", "", "gcc", 1)


def test_another_number_and_another_digest_are_differences() -> None:
    store = kept.Store("today")
    place = "run", next(key for key, entry in store.entries["run"].items() if entry.controllers == ["fixed"])
    entries, key = store.entries[place[0]], place[1]
    assert store.stale([place]) == []
    right = entries[key]
    entries[key] = kept.Entry(
        {**right.value, "": {**right.value[""], "loss_fraction": 0.5}}, right.digests, right.controllers
    )
    (line,) = store.stale([place])
    assert "the digests are the same" in line
    entries[key] = kept.Entry(right.value, ["0" * 16], right.controllers)
    (line,) = store.stale([place])
    assert "digests differ" in line


def test_numbers_of_the_same_runs_may_differ_by_another_processors_rounding_alone() -> None:
    kept_then = {"rate": 33.39293524914944, "bins": [1.5, float("nan")], "flows": 3}
    assert kept.agree({**kept_then, "rate": 33.39293524914961}, kept_then)
    for other in ({"rate": 33.39293}, {"bins": [1.5]}, {"bins": [1.5, 0.0]}, {"flows": 4}, {"more": 1}):
        assert not kept.agree({**kept_then, **other}, kept_then), other
    store = kept.Store("today")
    place = "run", next(key for key, entry in store.entries["run"].items() if entry.controllers == ["fixed"])
    entries, key = store.entries[place[0]], place[1]
    right = entries[key]
    rate = right.value[""]["receive_rate_bps"]
    entries[key] = kept.Entry(
        {**right.value, "": {**right.value[""], "receive_rate_bps": rate * (1 + 1e-13)}},
        right.digests,
        right.controllers,
    )
    assert store.stale([place]) == []


def test_half_a_width_of_a_paper_may_differ_as_its_mean_may() -> None:
    """The numbers of lissah2019's worst second on two processors: equal means, widths apart in their last digits."""
    then = Interval(33.39293524914944, 4.4998644120897255, 3)
    assert agree_as_measured(Interval(33.39293524914944, 4.499864412089715, 3), then)
    for half, count in ((4.49986, 3), (None, 3), (4.4998644120897255, 2)):
        assert not agree_as_measured(Interval(33.39293524914944, half, count), then)


def test_a_sample_has_every_controller() -> None:
    store = kept.store("today")
    entries = [entry for some in store.entries.values() for entry in some.values()]
    sampled = [store.entries[function][key] for function, key in store.sample(7)]
    assert {tuple(entry.controllers) for entry in sampled} == {tuple(entry.controllers) for entry in entries}
