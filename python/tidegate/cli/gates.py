"""The command check: a gate for changes of a controller."""

from __future__ import annotations

import shlex
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tidegate.cli.completing import complete_controllers, complete_suites
from tidegate.cli.engines import EngineName, Scheduler, engine_of
from tidegate.cli.options import AsJson, Cases, Force, Traces, Workers, refuse
from tidegate.cli.terminal import print_json, results_only, say_remarks, stoppable
from tidegate.errors import InputError, RunError

if TYPE_CHECKING:
    from tidegate.output.junit import Case


def check(
    baseline: Annotated[Path, typer.Argument(metavar="BASELINE", help="The file to compare with, or to --write.")],
    controller: Annotated[
        str | None,
        typer.Argument(
            metavar="[CONTROLLER]",
            help="What is tried: gcc, python:mine.py:Mine. By default the baseline's, as its code is now.",
            autocompletion=complete_controllers,
        ),
    ] = None,
    suite: Annotated[
        str | None,
        typer.Option(metavar="SUITE", help="A suite; the baseline's by default.", autocompletion=complete_suites),
    ] = None,
    fail_if: Annotated[
        list[str],
        typer.Option(
            metavar="RULE",
            help="What counts as worse: 'delay_p95 > +5% and > +10ms', 'utilisation < -5%', 'tcp rate < -20% in 5.6*'. "
            "Or as changes: 'change(loss) > 2pp'. May be given again. Those of the baseline by default.",
        ),
    ] = [],  # noqa: B006
    write: Annotated[bool, typer.Option("--write", help="Make the baseline instead.")] = False,
    strict: Annotated[bool, typer.Option("--strict", help="What stays undecided fails, too.")] = False,
    seeds: Annotated[
        int | None, typer.Option(min=1, help="At most so many seeds: 80, or as many as the baseline has.")
    ] = None,
    cases: Cases = [],  # noqa: B006
    traces: Traces = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder that keeps the runs; the same again does no run twice.")
    ] = None,
    junit: Annotated[Path | None, typer.Option(metavar="FILE", help="Write JUnit XML: a test a rule and case.")] = None,
    github: Annotated[bool, typer.Option("--github", help="Print annotations for GitHub.")] = False,
    every: Annotated[bool, typer.Option("--all", help="Print what stayed within its limits, too.")] = False,
    force: Force = False,
    jobs: Workers = None,
    engine: EngineName = None,
    scheduler: Scheduler = None,
    as_json: AsJson = False,
) -> None:
    """Did a change make a controller worse?

    Runs a suite, compares it seed by seed with a baseline that is kept in the repository, and says what became worse
    and better, by how much, and in which case. A rule fails only where the mean of the differences exceeds its limit
    for certain: over all rules and cases a change that is within all limits fails in 1 of 100 checks at most. Five
    seeds are run; cases in which something is open are run with more of them, up to 80. What is open then is undecided.

    Exit codes: 0 nothing is worse, 1 something is or a run failed, 2 wrong usage or input.

    Example: tidegate check baseline.json gcc --suite smoke --write

    Example: tidegate check baseline.json gcc:beta=0.8

    Example: tidegate check baseline.json gcc --fail-if 'delay_p95 > +5% and > +10ms' --junit check.xml --github
    """
    from tidegate._files import check_target, write_file
    from tidegate.gate import checking
    from tidegate.gate.baseline import Baseline
    from tidegate.gate.deciding import LOOKS
    from tidegate.output.junit import xml
    from tidegate.output.terminal import console, progress, show
    from tidegate.results.folders import check_folder
    from tidegate.suite import SUITE_FILE, Suite

    if out is not None:
        check_folder(out, SUITE_FILE, exchanged=False)
    if junit is not None:
        check_target(junit, "JUnit XML", lambda file: b"<testsuites" in file.read_bytes()[:200], force=force)
    bars = partial(progress, shown=not as_json)
    if write:
        of_checks = {"--strict": strict, "--junit": junit, "--github": github, "--all": every}
        refuse(of_checks, "{}: is for checks; --write makes a baseline and compares nothing")
        if controller is None or suite is None:
            missing = "a controller" if controller is None else "--suite SUITE"
            right = f"tidegate check {baseline} {controller or 'CONTROLLER'} --suite {suite or 'smoke'} --write"
            raise InputError(f"--write: needs {missing}: {right}")
        made = Suite.load(suite, traces=traces)
        with results_only(), stoppable("stopped; no baseline was written"), engine_of(engine, scheduler, jobs):
            done = checking.write(
                baseline, controller, made, named=suite, rules=fail_if, seeds=seeds or LOOKS[-1], cases=cases,
                out=out, workers=jobs, progress=bars, force=force,
            )  # fmt: skip
        told = f"{len(done.cases)} cases of {made.name}, {done.seeds} seeds, {controller}"
        console().print(f"written to {baseline}: {told}", soft_wrap=True)
        return
    known = Baseline.load(baseline)
    if suite is not None and Path(suite).stem != Path(known.suite).stem:
        raise InputError(f"--suite {suite}: the baseline is of {known.suite}; expected that, or another baseline")
    again = shlex.join(["tidegate", "check", str(baseline), known.controller, "--suite", known.suite, "--write"])
    with results_only(), stoppable("stopped"), engine_of(engine, scheduler, jobs):
        outcome = checking.check(
            known, Suite.load(suite or known.suite, traces=traces), controller, rules=fail_if, cases=cases,
            seeds=seeds, out=out, workers=jobs, progress=bars, made_by=f": {again}",
        )  # fmt: skip
    document, tests = outcome.document(), outcome.cases(strict=strict)
    if junit is not None:
        write_file(junit, xml("tidegate check", {f"{outcome.suite}: {outcome.controller}": tests}))
    if as_json:
        print_json(outcome.to_data())
    else:
        console().print(f"{document.title}, {', '.join(document.facts)}\n", soft_wrap=True)
        show(document, detail=every)
    if github:
        _annotate(tests, err=as_json)
    say_remarks(document.remarks)
    if not outcome.passed(strict=strict):
        raise RunError("\n".join([outcome.verdict, *(f"{case}: {why}" for case, why in document.failures)]))


def _annotate(tests: list[Case], *, err: bool) -> None:
    """Prints annotations of GitHub: of what is worse, then of what is undecided, then of what failed."""
    from tidegate.output.github import annotation

    order = ["worse", "undecided", ""]
    for case in sorted(tests, key=lambda case: order.index(case.word)):
        if case.state != "passed":
            typer.echo(annotation(case), err=err)
