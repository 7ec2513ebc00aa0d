"""The command check: a gate for changes of a controller."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tidegate.cli.completing import complete_controllers, complete_suites
from tidegate.cli.engines import EngineName, Scheduler, TimeLimit, engine_of
from tidegate.cli.options import AsJson, Cases, Force, Traces, Workers, refuse, say_what_code_of_a_suite_is_run
from tidegate.cli.terminal import Stopped, print_json, results_only, say, say_remarks, stoppable
from tidegate.errors import InputError, RunError, TidegateError

if TYPE_CHECKING:
    from tidegate.gate.checking import Outcome
    from tidegate.output.junit import Case

_PICTURE = "before-after.png"
"""The picture in the folder of the runs."""


def check(
    baseline: Annotated[
        Path, typer.Argument(metavar="BASELINE", help="File of the baseline to compare with; with --write, to make.")
    ],
    controller: Annotated[
        str | None,
        typer.Argument(
            metavar="[CONTROLLER]",
            help="Controller to check: gcc, python:mine.py:Mine; by default the baseline's, as its code is now.",
            autocompletion=complete_controllers,
        ),
    ] = None,
    suite: Annotated[
        str | None,
        typer.Option(
            metavar="SUITE",
            help="Suite to run, by name or file; by default the baseline's.",
            autocompletion=complete_suites,
        ),
    ] = None,
    fail_if: Annotated[
        list[str],
        typer.Option(
            metavar="RULE",
            help="Change that counts as worse: 'delay_p95 > +5% and > +10ms', 'utilisation < -5%', "
            "'tcp rate < -20% in 5.6*'. "
            "Or as a change: 'change(loss) > 2pp'. Repeatable; by default the baseline's rules.",
        ),
    ] = [],  # noqa: B006
    write: Annotated[bool, typer.Option("--write", help="Make the baseline instead of checking.")] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Count undecided rules as failed, too.")] = False,
    seeds: Annotated[
        int | None,
        typer.Option(min=1, help="Maximum number of seeds; by default as many as the baseline has, 80 with --write."),
    ] = None,
    cases: Cases = [],  # noqa: B006
    traces: Traces = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder that keeps the runs, so that none is repeated; by default temporary.")
    ] = None,
    junit: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write JUnit XML with a test for each rule in each case.")
    ] = None,
    picture: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Where something is worse, draw the worst case before and now to this file (.png, .svg, .pdf); with "
            "--out by default before-after.png there.",
        ),
    ] = None,
    github: Annotated[bool, typer.Option("--github", help="Print annotations for GitHub.")] = False,
    every: Annotated[bool, typer.Option("--all", help="Print also rules that stayed within their limits.")] = False,
    force: Force = False,
    jobs: Workers = None,
    engine: EngineName = None,
    scheduler: Scheduler = None,
    time_limit: TimeLimit = None,
    as_json: AsJson = False,
) -> None:
    """Check whether a change made a controller worse.

    The command runs a suite, compares it seed by seed with a baseline in the repository, and prints the numbers that
    became worse or better, by how much, and in which case. A rule fails only if the mean of the differences surely
    exceeds its limit: a change that is within all limits fails in at most 1 of 100 checks. A check begins with five
    seeds; cases with undecided rules get more, up to 80. Rules that are still undecided then are reported as such.

    Exit codes: 0 no rule fails, 1 a rule or a run failed, 2 wrong usage or input. With --junit and --github a check
    that could not be made is reported there, too, as an error.

    Example: tidegate check baseline.json gcc --suite smoke --write

    Example: tidegate check baseline.json gcc:beta=0.8

    Example: tidegate check baseline.json gcc --fail-if 'delay_p95 > +5% and > +10ms' --junit check.xml --github
    """
    from tidegate._files import check_target, first_bytes
    from tidegate.gate import checking
    from tidegate.gate.baseline import Baseline
    from tidegate.gate.evidence import LOOKS
    from tidegate.output.terminal import console, progress
    from tidegate.results.folders import check_folder
    from tidegate.suite import SUITE_FILE, Suite

    by = engine_of(engine, scheduler, jobs, time_limit)
    if out is not None:
        check_folder(out, SUITE_FILE, exchanged=False)
    if junit is not None:
        check_target(junit, "JUnit XML", lambda file: b"<testsuites" in first_bytes(file), force=force)
    if picture is not None:
        _check_picture(picture, force=force)
    bars = partial(progress, visible=not as_json)
    if write:
        of_checks = {"--strict": strict, "--junit": junit, "--picture": picture, "--github": github, "--all": every}
        refuse(of_checks, "{}: the option is for checks; --write only makes a baseline")
        if controller is None or suite is None:
            missing = "a controller" if controller is None else "--suite SUITE"
            right = f"tidegate check {baseline} {controller or 'CONTROLLER'} --suite {suite or 'smoke'} --write"
            raise InputError(f"--write: {missing} is missing; expected {right}")
        loaded = Suite.load(suite, traces=traces)
        say_what_code_of_a_suite_is_run(suite, loaded)
        with results_only(), stoppable("stopped; no baseline was written"), by:
            saved = checking.write(
                baseline,
                controller,
                loaded,
                suite_name=suite,
                rules=fail_if,
                seeds=seeds or LOOKS[-1],
                cases=cases,
                out=out,
                workers=jobs,
                progress=bars,
                force=force,
            )
        counts = f"{controller}, {len(saved.cases)} cases of {loaded.name}, {saved.seeds} seeds"
        console().print(f"written to {baseline}: {counts}", soft_wrap=True)
        return
    with _reported(baseline, controller, junit, github=github, err=as_json):
        before = Baseline.load(baseline)
        if suite is not None and Path(suite).stem != Path(before.suite).stem:
            raise InputError(
                f"--suite {suite}: the baseline is of {before.suite}; leave --suite out, or use another baseline"
            )
        again = shlex.join(["tidegate", "check", str(baseline), before.controller, "--suite", before.suite, "--write"])
        repeat = ["tidegate", "check", str(baseline), *([controller] if controller else [])]
        repeat += [part for rule in fail_if for part in ("--fail-if", rule)]
        loaded = Suite.load(suite or before.suite, traces=traces)
        say_what_code_of_a_suite_is_run(suite or before.suite, loaded)
        with results_only(), stoppable("stopped"), by:
            outcome = checking.check(
                before,
                loaded,
                controller,
                rules=fail_if,
                cases=cases,
                seeds=seeds,
                out=out,
                workers=jobs,
                progress=bars,
                remake=f": {again}",
                repeat=shlex.join([*repeat, *(["--traces", str(traces)] if traces else [])]),
            )
    _print(outcome, junit, strict=strict, github=github, every=every, as_json=as_json)
    _draw(outcome, picture, out)
    if not outcome.passed(strict=strict):
        failures = outcome.document().failures
        raise RunError("\n".join([outcome.summary, *(f"{case}: {why}" for case, why in failures)]))


def _print(outcome: Outcome, junit: Path | None, *, strict: bool, github: bool, every: bool, as_json: bool) -> None:
    """Prints an outcome, and reports it where it is asked for."""
    from tidegate._files import write_file
    from tidegate.output.junit import xml
    from tidegate.output.terminal import console, show

    document, tests = outcome.document(), outcome.cases(strict=strict)
    if junit is not None:
        write_file(junit, xml("tidegate check", {f"{outcome.suite}: {outcome.controller}": tests}))
    if as_json:
        print_json(outcome.to_data())
    else:
        console().print(f"{document.title}, {', '.join(document.facts)}\n", soft_wrap=True)
        show(document, detail=every)
        if outcome.change is not None:
            console().print("\n" + "\n".join(outcome.change.lines), soft_wrap=True, markup=False, highlight=False)
    if github:
        _annotate(tests, err=as_json)
    say_remarks(document.remarks)


def _check_picture(picture: Path, *, force: bool) -> None:
    """Checks that the picture may be written to a file.

    Raises:
        InputError: when its suffix is none of a picture.
        OutputError: when a file of another kind would be lost.
    """
    from tidegate._files import check_target
    from tidegate.cli.reports import PICTURES, suffix_of

    if picture.suffix.lower() not in PICTURES:
        raise InputError(f"--picture {picture}: found {suffix_of(picture)}; expected {', '.join(sorted(PICTURES))}")
    check_target(picture, "picture", lambda path: path.suffix == picture.suffix, force=force)


def _draw(outcome: Outcome, picture: Path | None, out: Path | None) -> None:
    """Draws the worst case before and now; takes away the picture of an earlier check in the same folder."""
    from tidegate._files import write_file
    from tidegate.cli.reports import drawn
    from tidegate.results.folders import add_file

    if outcome.change is None:
        if out is not None:
            (out / _PICTURE).unlink(missing_ok=True)
        return
    target = picture or (out / _PICTURE if out else None)
    if target is None:
        return
    data = drawn(outcome.change.figure(outcome.controller, outcome.against), target)
    if picture is None:
        add_file(target.parent, target.name, data)
    else:
        write_file(target, data)
    say(f"{outcome.change.case} before and now is drawn in {target}")


@contextmanager
def _reported(baseline: Path, controller: str | None, junit: Path | None, *, github: bool, err: bool) -> Iterator[None]:
    """Reports a check that cannot be made where its results would be: a wrong baseline, a library that is missing."""
    from tidegate._files import write_file
    from tidegate.output.junit import Case, xml
    from tidegate.suite.tables import file_of, line_of

    began = time.perf_counter()
    try:
        yield
    except Stopped:
        raise
    except Exception as error:
        text = str(error) if isinstance(error, TidegateError) else f"{type(error).__name__}: {error}"
        name = controller or _controller_of(baseline)
        file = file_of(name)
        of_controller = bool(file) and text.startswith(file)
        case = Case(
            "tidegate check",
            "check",
            "error",
            text.partition("\n")[0],
            text,
            title="tidegate check could not be made",
            seconds=time.perf_counter() - began,
            file=file if of_controller else str(baseline),
            line=line_of(name) if of_controller else None,
        )
        if junit is not None:
            write_file(junit, xml("tidegate check", {str(baseline): [case]}))
        if github:
            _annotate([case], err=err)
        raise


def _controller_of(baseline: Path) -> str:
    from tidegate.gate.baseline import Baseline

    try:
        return Baseline.load(baseline).controller
    except TidegateError:
        return ""


def _annotate(tests: list[Case], *, err: bool) -> None:
    """Prints annotations for GitHub: first of worse rules, then of undecided ones, then of failed runs."""
    from tidegate.output.github import annotation

    order = ["worse", "undecided", ""]
    for case in sorted(tests, key=lambda case: order.index(case.verdict)):
        if case.state != "passed":
            typer.echo(annotation(case), err=err)
