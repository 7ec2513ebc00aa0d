"""The commands of suites: list, show, check, metrics, run."""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tidegate import _shipped
from tidegate.cli.completing import complete_controllers, complete_suites
from tidegate.cli.engines import EngineName, Scheduler, TimeLimit, engine_of
from tidegate.cli.options import AsJson, Cases, Workers, say_duration, say_what_code_of_a_suite_is_run
from tidegate.cli.terminal import kept_runs, print_json, print_names, results_only, say, stoppable, typed
from tidegate.errors import InputError, RunError

if TYPE_CHECKING:
    from tidegate.suite import Suite, SuiteResult


Name = Annotated[
    str,
    typer.Argument(
        metavar="SUITE", help="A name from `tidegate suite list`, or a file.", autocompletion=complete_suites
    ),
]
Traces = Annotated[
    Path | None,
    typer.Option(metavar="FOLDER", help="Folder of recorded networks, for suites that use excerpts of them (traces)."),
]

suites = typer.Typer(no_args_is_help=True, help="Many controllers on many networks, judged by rules.")


@suites.command("list")
def list_(as_json: AsJson = False) -> None:
    """List the suites that come with tidegate."""
    from tidegate.suite import Suite

    loaded = [Suite.load(name) for name in _shipped.suites()]
    if as_json:
        print_json(
            [
                {"name": suite.name, "cases": len(suite.cases), "description": suite.table.description}
                for suite in loaded
            ]
        )
        return
    print_names({suite.name: f"{len(suite.cases):3} cases  {suite.table.description}" for suite in loaded})


@suites.command()
def show(
    suite: Name,
    traces: Traces = None,
    as_toml: Annotated[
        bool,
        typer.Option("--toml", help="Print only the suite's file, with all that it takes over from another suite."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show the cases and rules of a suite.

    With --toml a file that `suite check` and `suite run` take, and that gives the same scorecard. Files of scenarios
    are relative to the present folder in it.

    Example: tidegate suite show rmcat

    Example: tidegate suite show rmcat --toml > mine.toml
    """
    from tidegate.output.terminal import console, print_rows
    from tidegate.suite import Suite

    if as_toml and as_json:
        raise InputError("--toml: the option does not go with --json; leave one of them out")
    loaded = Suite.load(suite, traces=traces)
    if as_toml:
        sys.stdout.write(loaded.to_toml())
        return
    if as_json:
        cases = [{key: value for key, value in case.to_data().items() if key != "base"} for case in loaded.cases]
        print_json({"name": loaded.name, "cases": cases, "rules": [rule.to_dict() for rule in loaded.rules]})
        return
    to = console()
    to.print(f"{loaded.name}: {loaded.table.description}", soft_wrap=True)
    to.print(f"{loaded.extends}\n" if loaded.extends else "", soft_wrap=True)
    rows = (
        (case.name, case.title, f"not run: {case.not_run}" if case.not_run else case.source) for case in loaded.cases
    )
    print_rows(["case", "", ""], rows, text_columns={1, 2})
    for rule in loaded.rules:
        to.print(f"\n{rule.name}: {rule.says}", soft_wrap=True)
        to.print(f"  {' '.join(rule.cases)}; {rule.source}{'; ' if rule.why else ''}{rule.why}", soft_wrap=True)


@suites.command()
def check(suite: Annotated[str, typer.Argument(metavar="FILE", help="A suite's file.")], traces: Traces = None) -> None:
    """Check a suite's file: its keys, scenarios and rules.

    Example: tidegate suite check my-suite.toml
    """
    from tidegate.output.terminal import console
    from tidegate.suite import Suite
    from tidegate.wording import counted

    loaded = Suite.load(suite, traces=traces)
    absent = [case for case in loaded.cases if case.not_run]
    for case in loaded.cases:
        if case.scenario is not None:
            case.scenario.check()
    skipped = f", {len(absent)} of them not run here" if absent else ""
    extends = f" ({loaded.extends})" if loaded.extends else ""
    counts = f"{counted(len(loaded.cases), 'case')}{skipped}, {counted(len(loaded.rules), 'rule')}"
    console().print(f"{suite}: {counts}{extends}", soft_wrap=True)
    _say_what_is_hardly_judged(loaded)


@suites.command()
def metrics() -> None:
    """List the metrics that rules can limit."""
    from tidegate.output.terminal import console
    from tidegate.suite import numbers

    for name in numbers.names():
        metric = numbers.metric_of(name)
        unit = f" [{metric.unit}]" if metric.unit else ""
        console().print(f"{name}: {metric.label}{unit}. {metric.definition}", soft_wrap=True)


@suites.command()
def run(
    suite: Name,
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="CONTROLLER...",
            help='Controllers to run: gcc, nada, fixed:2Mbps, python:mine.py:Mine, "program:node call.js".',
            autocompletion=complete_controllers,
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for page and tables; keeps finished runs. By default the suite's name."),
    ] = None,
    seeds: Annotated[int | None, typer.Option(min=1, help="Number of seeds; by default as the suite says.")] = None,
    cases: Cases = [],  # noqa: B006
    baseline: Annotated[
        str | None, typer.Option(metavar="CONTROLLER", help="Controller to compare the others with, seed by seed.")
    ] = None,
    traces: Traces = None,
    jobs: Workers = None,
    engine: EngineName = None,
    scheduler: Scheduler = None,
    time_limit: TimeLimit = None,
    as_json: AsJson = False,
) -> None:
    """Run a suite: every controller on every case, with a verdict for each by the suite's rules.

    The folder keeps finished runs by all that they depend on, so the same command continues a stopped suite, and
    repeats only what changed. A failed run becomes a cell with the reason, and the exit code is 1.

    Example: tidegate suite run smoke gcc nada --out DIR

    Example: tidegate suite run traces gcc scream --traces FOLDER --seeds 1 --out DIR

    A real program can make the call of each case that has one call, in real time (Linux):

    Example: tidegate suite run smoke gcc "program:python3 docs/examples/rtp_cbr.py" --cases fq-codel --seeds 1
    """
    from tidegate.output.terminal import console, progress
    from tidegate.results.folders import check_folder
    from tidegate.suite import SUITE_FILE, Plan, Suite

    with results_only():
        loaded = Suite.load(suite, traces=traces)
        plan = Plan.of(loaded, names, seeds=seeds, cases=cases)
    out = Path(plan.suite.name) if out is None else out
    check_folder(out, SUITE_FILE, exchanged=False)
    say_what_code_of_a_suite_is_run(suite, plan.suite)
    if sessions := plan.sessions(out):
        say_duration(sessions)
    bar = progress(f"{len(plan.points)} runs", visible=not as_json)
    with (
        stoppable(partial(kept_runs, plan, out)),
        results_only(),
        engine_of(engine, scheduler, jobs, time_limit),
        bar as tell,
    ):
        result = plan.run(out, baseline=baseline, workers=jobs, progress=tell, command=typed())
    if as_json:
        print_json(_data(result))
    else:
        _print(result)
        console().print(
            f"\nwritten to {out}: index.html, scorecard.md, scores.csv, junit.xml, results/, runs.parquet/",
            soft_wrap=True,
        )
    _say_what_is_hardly_judged(loaded)
    for case, program, seed, against in result.noisy:
        say(f"warning: {case}, {program}, seed {seed} is noisy: {against}")
    if result.resumed:
        # a controller that cannot take part in a case never has a run of it
        able = {point.key for point in plan.points if (point.case.name, point.controller) not in result.unfit}
        say(f"{result.resumed} of {len(able)} runs existed already")
    if broken := [cell for cell in result.cells if cell.state == "error"]:
        why = [f"{cell.case}, {cell.controller}: {cell.why}" for cell in broken]
        raise RunError("\n".join([f"{len(broken)} of {len(result.cells)} cells failed:", *why]))
    for controller in result.controllers:
        reasons = [why for (_, name), why in result.troubles.items() if name == controller]
        if reasons and not any(name == controller for _, name in result.rows):
            raise InputError(f"{controller} fits no case: {reasons[0]}")


def _say_what_is_hardly_judged(suite: Suite) -> None:
    if sentence := suite.hardly_judged:
        say(f"warning: {sentence}")


def _data(result: SuiteResult) -> dict[str, object]:
    from tidegate.suite.scores import scores

    cells = [
        {
            "case": cell.case,
            "controller": cell.controller,
            "state": cell.state,
            "close": cell.close,
            "why": cell.why,
            "checks": [
                {
                    "rule": check.rule.name,
                    "passed": check.passed,
                    "close": check.close,
                    "mean": check.value.mean,
                    "half_interval_95": check.value.half,
                }
                for check in cell.checks
            ],
        }
        for cell in result.cells
    ]
    noisy = [dict(zip(("case", "controller", "seed", "against"), session, strict=True)) for session in result.noisy]
    ranked = [
        {
            "controller": score.controller,
            "rank": score.rank,
            "passed": score.passed,
            "of": score.of,
            "rules_met": score.met,
            "rules": score.rules,
            **{name: mean.mean for name, mean in score.means.items()},
            "half_intervals_95": {name: mean.half for name, mean in score.means.items()},
        }
        for score in scores(result)
    ]
    return {
        "suite": result.suite.name,
        "baseline": result.baseline,
        "cells": cells,
        "noisy": noisy,
        "scores": ranked,
    }


def _print(result: SuiteResult) -> None:
    from tidegate.output.terminal import console, show

    document = result.document()
    console().print(f"{result.suite.name}: {len(result.suite.cases)} cases, {result.seeds_shown}\n")
    # the first part of the answer goes last, where the reader's eye is
    show(replace(document, answer=document.answer[::-1]))
    reasons = [case.not_run for case in result.suite.cases if case.not_run]
    if reasons:
        verb = "case was" if len(reasons) == 1 else "cases were"
        note = f"{len(reasons)} {verb} not run: {'; '.join(sorted(set(reasons)))}"
        console().print(f"\n{note}", soft_wrap=True)
