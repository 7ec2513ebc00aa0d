"""The command sweep."""

from __future__ import annotations

from collections import Counter
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tidegate.cli.completing import complete_controllers, complete_keys, complete_suites, scenarios
from tidegate.cli.engines import EngineName, Scheduler, engine_of
from tidegate.cli.options import AsJson, Workers, pair, say_what_code_is_run, values_of
from tidegate.cli.terminal import Stopped, print_json, results_only, say, typed, warn
from tidegate.errors import InputError, RunError

if TYPE_CHECKING:
    from tidegate.comparison.sweeping import SweepResult
    from tidegate.suite.sweeping import SuiteSweep

By = AbstractContextManager[None]
"""The engine that was asked for, not yet begun."""


def add_to(app: typer.Typer) -> None:
    """Puts the command on the command line."""
    app.command()(sweep)


def sweep(
    scenario: Annotated[
        str | None,
        typer.Argument(help="Scenario file, or a name from `tidegate scenario list`.", autocompletion=scenarios),
    ] = None,
    *,
    set_: Annotated[
        list[str],
        typer.Option(
            "--set",
            metavar="KEY=A,B,C",
            autocompletion=complete_keys,
            help="Values for a key, such as links.uplink.delay=20ms,50ms, or a range: 2ms:50ms:5 (five values), "
            "log:100kbps:10Mbps:4. May be given again: all combinations.",
        ),
    ],
    out: Annotated[Path, typer.Option(help="Folder for results; the same again goes on where it was left.")],
    seeds: Annotated[
        int | None, typer.Option(min=1, help="How many seeds of each combination: 1, or what the suite says.")
    ] = None,
    suite: Annotated[
        str | None,
        typer.Option(metavar="SUITE", help="A suite instead of a scenario.", autocompletion=complete_suites),
    ] = None,
    controller: Annotated[
        str | None,
        typer.Option(
            metavar="CONTROLLER",
            help="With --suite: whose settings controller.NAME are; or --set controller=A,B.",
            autocompletion=complete_controllers,
        ),
    ] = None,
    cases: Annotated[
        list[str], typer.Option("--cases", metavar="PATTERN", help="Only these cases of the suite: '5.1*'.")
    ] = [],  # noqa: B006
    traces: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Recorded networks, for suites that take windows of them.")
    ] = None,
    jobs: Workers = None,
    engine: EngineName = None,
    scheduler: Scheduler = None,
    as_json: AsJson = False,
) -> None:
    """Run all combinations of settings, in a scenario or over a suite.

    Finished runs are kept and never run again, so that the same command goes on where it was stopped.

    Over a suite each combination of a controller's settings meets every case, is judged by the suite's rules, and has
    means over the cases.

    A value that has a comma itself, and no brackets around it, stands in quotes:
    flows.call.media.controller='gcc,"gcc:draft-02,k_up=0.02"'. What stands in quotes is never a range.

    Example: tidegate sweep home-broadband --set links.uplink.delay=20ms,50ms --seeds 5 --out DIR

    Example: tidegate sweep --suite smoke --controller gcc --set controller.beta=0.7:0.9:5 --out DIR
    """
    grid: dict[str, list[str]] = {}
    for text in set_:
        key, values = pair(text)
        if key in grid:
            raise InputError(f"--set {key}: is given twice; write {key}=A,B")
        grid[key] = values_of(key, values)
    by = engine_of(engine, scheduler, jobs)
    if suite is not None:
        if scenario is not None:
            raise InputError(f"{scenario}: does not go with --suite, which has its own scenarios")
        _over_suite(suite, grid, controller, out, seeds, cases, traces, jobs, by, as_json=as_json)
        return
    of_suites = {"--controller": controller, "--cases": cases, "--traces": traces}
    if given := next((name for name, value in of_suites.items() if value), None):
        raise InputError(f"{given}: is for suites; name one with --suite")
    if scenario is None:
        raise InputError("name what is swept: a scenario (see tidegate scenario list), or a suite with --suite")
    _in_scenario(scenario, grid, out, seeds or 1, jobs, by, as_json=as_json)


def _in_scenario(
    scenario: str, grid: dict[str, list[str]], out: Path, seeds: int, jobs: int | None, by: By, *, as_json: bool
) -> None:
    from tidegate.comparison import sweeping
    from tidegate.output.terminal import console, progress
    from tidegate.results.folders import check_folder
    from tidegate.runs.seeds import seeds_from
    from tidegate.scenario import Scenario
    from tidegate.show import view

    made = Scenario.load(scenario)
    say_what_code_is_run(scenario, made.code)
    with results_only():
        plan = sweeping.Plan.of(made, grid, seeds_from(seeds), typed())
    check_folder(out, sweeping.SWEEP_FILE, exchanged=False)
    try:
        with results_only(), by, progress(f"{len(plan.points)} runs", shown=not as_json) as tell:
            result = plan.run(out, workers=jobs, processes=None, progress=tell)
    except KeyboardInterrupt:
        kept, total = plan.kept(out)
        what = f"{kept} of {total} runs are done and kept in {out}"
        raise Stopped(f"stopped; {what}; the same command goes on from there") from None
    if as_json:
        print_json({"runs": result.rows, "failed": result.failed, "resumed": result.resumed})
    elif result.rows:
        _print_sweep(result)
        written = ["report.html", "sweep.png", "summary.md", "summary.csv", "flows.csv"]
        there = ", ".join(name for name in written if (out / name).is_file())
        console().print(f"\nwritten to {out}: {there}, results/, runs.parquet/")
    warn(view.warnings(row["summary"] for row in result.rows), made)
    if result.resumed:
        say(f"{result.resumed} of {len(plan.points)} runs were there already")
    if result.failed:
        raise RunError("\n".join([f"{len(result.failed)} of {len(plan.points)} runs failed:", *result.failed]))


def _over_suite(
    name: str,
    grid: dict[str, list[str]],
    controller: str | None,
    out: Path,
    seeds: int | None,
    cases: list[str],
    traces: Path | None,
    jobs: int | None,
    by: By,
    *,
    as_json: bool,
) -> None:
    from tidegate.output.terminal import console, progress
    from tidegate.results.folders import check_folder
    from tidegate.suite import SUITE_FILE, Suite
    from tidegate.suite.sweeping import SweepPlan

    with results_only():
        whole = Suite.load(name, traces=traces)
        plan = SweepPlan.of(whole, grid, controller, seeds=seeds, cases=cases)
    check_folder(out, SUITE_FILE, exchanged=False)
    count = len({point.key for point in plan.plan.points})
    try:
        with results_only(), by, progress(f"{count} runs", shown=not as_json) as tell:
            result, made = plan.run(out, workers=jobs, progress=tell, command=typed())
    except KeyboardInterrupt:
        kept, total = plan.plan.kept(out)
        what = f"{kept} of {total} runs are done and kept in {out}"
        raise Stopped(f"stopped; {what}; the same command goes on from there") from None
    if as_json:
        print_json(_combinations(made))
    elif made.rows:
        _print_sweep(made)
        written = ["report.html", "sweep.png", "summary.md", "summary.csv", "index.html", "scorecard.md", "scores.csv"]
        there = ", ".join(name for name in written if (out / name).is_file())
        console().print(f"\nwritten to {out}: {there}, junit.xml, results/, runs.parquet/", soft_wrap=True)
    for why, some in Counter(case.not_run for case in result.suite.cases if case.not_run).items():
        say(f"{some} {'case was' if some == 1 else 'cases were'} not run: {why}")
    if result.resumed:
        say(f"{result.resumed} of {count} runs were there already")
    if made.failed:
        raise RunError("\n".join([f"{len(made.failed)} of {len(result.cells)} cells failed:", *made.failed]))


def _combinations(made: SuiteSweep) -> dict[str, object]:
    """Each combination with its means over all cases, and over each."""
    from tidegate.show.sweeps import Swept

    swept = Swept.of(made)
    lines = [
        {
            **one.settings,
            "verdict": one.verdict,
            **{name: {"mean": one.mean(name).mean, "half_interval_95": one.mean(name).half} for name in swept.names},
        }
        for one in swept.combinations
    ]
    return {"suite": made.name, "combinations": lines, "failed": made.failed, "resumed": made.resumed}


def _print_sweep(result: SweepResult) -> None:
    from tidegate.output.terminal import console, show
    from tidegate.show import sweeps
    from tidegate.show.sweeps import Swept
    from tidegate.wording import counted

    swept = Swept.of(result)
    runs = {len(one.rows) for one in swept.over_all}
    # what is the same in every line is told once
    same = [f"{key} = {value}" for key, value in swept.constant.items()]
    if sweeps.CASE in swept.keys:
        same.append(f"means over {len(swept.values[sweeps.CASE]) - 1} cases")
    what = "seed" if sweeps.CASE in swept.keys else "run"
    same += [f"{counted(count, what)} each" for count in runs if len(runs) == 1]
    console().print(f"{result.name}: {', '.join(same)}\n")
    show(result.document())
