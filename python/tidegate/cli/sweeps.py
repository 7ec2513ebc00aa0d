"""The command sweep."""

from __future__ import annotations

from collections import Counter
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tidegate.cli.completing import complete_controllers, complete_keys
from tidegate.cli.engines import EngineName, Scheduler, TimeLimit, engine_of
from tidegate.cli.options import (
    AsJson,
    CasesOfSuite,
    Link,
    ScenarioIfAny,
    SuiteInstead,
    Traces,
    Workers,
    pair,
    refuse,
    say_what_code_is_run,
    say_what_code_of_a_suite_is_run,
    scenario_of,
)
from tidegate.cli.terminal import kept_runs, print_json, results_only, say, say_remarks, stoppable, typed
from tidegate.errors import InputError, RunError, located

if TYPE_CHECKING:
    from tidegate.comparison.sweeping import Plan, SweepResult
    from tidegate.scenario import Scenario
    from tidegate.suite.sweeping import SuiteSweep, SweepPlan

By = AbstractContextManager[None]
"""The chosen engine, not yet started."""


def sweep(
    scenario: ScenarioIfAny = None,
    *,
    set_: Annotated[
        list[str],
        typer.Option(
            "--set",
            metavar="KEY=A,B,C",
            autocompletion=complete_keys,
            help="Values for a key, such as links.uplink.delay=20ms,50ms, or a range: 2ms:50ms:5 (five values), "
            "log:100kbps:10Mbps:4. Repeatable; all combinations are run.",
        ),
    ],
    out: Annotated[Path, typer.Option(help="Folder for results; the same command again continues the sweep in it.")],
    seeds: Annotated[
        int | None,
        typer.Option(min=1, help="Number of seeds of each combination; by default 1, or as the suite says."),
    ] = None,
    suite: SuiteInstead = None,
    controller: Annotated[
        str | None,
        typer.Option(
            metavar="CONTROLLER",
            help="Controller that controller.NAME is a setting of, in place of the scenario's; or use --set "
            "controller=A,B.",
            autocompletion=complete_controllers,
        ),
    ] = None,
    link: Link = None,
    cases: CasesOfSuite = [],  # noqa: B006
    traces: Traces = None,
    jobs: Workers = None,
    engine: EngineName = None,
    scheduler: Scheduler = None,
    time_limit: TimeLimit = None,
    as_json: AsJson = False,
) -> None:
    """Run all combinations of settings, in a scenario or over a suite.

    Finished runs are kept and never repeated, so the same command continues a stopped sweep.

    Over a suite, each combination of a controller's settings runs on every case, is judged by the suite's rules, and
    has means over the cases.

    A value with a comma, but without brackets around it, needs quotes:
    flows.call.media.controller='gcc,"gcc:draft-02,k_up=0.02"'. Text in quotes is never a range.

    Example: tidegate sweep home-broadband --set links.uplink.delay=20ms,50ms --seeds 5 --out DIR

    Example: tidegate sweep home-broadband --controller python:mine.py:Mine --set controller.k=1,2,4 --out DIR

    Example: tidegate sweep --suite smoke --controller gcc --set controller.beta=0.7:0.9:5 --out DIR
    """
    from tidegate.comparison import sweeping
    from tidegate.query import ranges
    from tidegate.runs.seeds import seeds_from
    from tidegate.suite import Suite
    from tidegate.suite.sweeping import SweepPlan

    grid: dict[str, list[str]] = {}
    for text in set_:
        key, values = pair(text)
        if key in grid:
            raise InputError(f"--set {key}: the key is given twice; write {key}=A,B")
        with located(f"--set {text}"):
            grid[key] = ranges.values(values)
    by = engine_of(engine, scheduler, jobs, time_limit)
    if suite is not None:
        if scenario is not None:
            raise InputError(f"{scenario}: a scenario does not go with --suite, which has its own scenarios")
        refuse({"--link": link}, "{}: the option is for one scenario; a suite has its own networks")
        with results_only():
            loaded = Suite.load(suite, traces=traces)
            plan = SweepPlan.of(loaded, grid, controller, seeds=seeds, cases=cases)
        say_what_code_of_a_suite_is_run(suite, loaded)
        _over_suite(plan, out, jobs, by, as_json=as_json)
        return
    of_suites = {"--cases": cases, "--traces": traces}
    refuse(of_suites, "{}: the option is for suites; name one with --suite")
    if scenario is None and link is None:
        raise InputError(
            "no scenario is given; expected a scenario (see tidegate scenario list), or a suite with --suite"
        )
    network = scenario_of(scenario, link)
    if scenario is not None:
        say_what_code_is_run(scenario, network.code)
    with results_only():
        sweep_plan = sweeping.Plan.of(*sweeping.for_subject(network, grid, controller), seeds_from(seeds or 1), typed())
    _in_scenario(network, sweep_plan, out, jobs, by, as_json=as_json)


def _in_scenario(loaded: Scenario, plan: Plan, out: Path, jobs: int | None, by: By, *, as_json: bool) -> None:
    from tidegate.comparison import sweeping
    from tidegate.output.terminal import console, progress
    from tidegate.results.folders import check_folder
    from tidegate.show import view

    check_folder(out, sweeping.SWEEP_FILE, exchanged=False)
    bar = progress(f"{len(plan.points)} runs", visible=not as_json)
    with stoppable(partial(kept_runs, plan, out)), results_only(), by, bar as tell:
        result = plan.run(out, workers=jobs, processes=None, progress=tell)
    if as_json:
        print_json({"runs": result.rows, "failed": result.failed, "resumed": result.resumed})
    elif result.rows:
        _print_sweep(result)
        console().print(_written(out, "report.html", "sweep.png", "summary.md", "summary.csv", "flows.csv"))
    say_remarks(view.remarks(row["summary"] for row in result.rows), loaded)
    if result.resumed:
        say(f"{result.resumed} of {len(plan.points)} runs existed already")
    if result.failed:
        raise RunError("\n".join([f"{len(result.failed)} of {len(plan.points)} runs failed:", *result.failed]))


def _over_suite(plan: SweepPlan, out: Path, jobs: int | None, by: By, *, as_json: bool) -> None:
    from tidegate.output.terminal import console, progress
    from tidegate.results.folders import check_folder
    from tidegate.suite import SUITE_FILE

    check_folder(out, SUITE_FILE, exchanged=False)
    count = len({point.key for point in plan.plan.points})
    bar = progress(f"{count} runs", visible=not as_json)
    with stoppable(partial(kept_runs, plan.plan, out)), results_only(), by, bar as tell:
        result, swept = plan.run(out, workers=jobs, progress=tell, command=typed())
    if as_json:
        print_json(_combinations(swept))
    elif swept.rows:
        _print_sweep(swept)
        files = ["report.html", "sweep.png", "summary.md", "summary.csv", "index.html", "scorecard.md", "scores.csv"]
        console().print(_written(out, *files, "junit.xml"), soft_wrap=True)
    for why, skipped in Counter(case.not_run for case in result.suite.cases if case.not_run).items():
        say(f"{skipped} {'case was' if skipped == 1 else 'cases were'} not run: {why}")
    if result.resumed:
        say(f"{result.resumed} of {count} runs existed already")
    if swept.failed:
        raise RunError("\n".join([f"{len(swept.failed)} of {len(result.cells)} cells failed:", *swept.failed]))


def _written(out: Path, *files: str) -> str:
    """The line that lists the files which a sweep wrote."""
    files_written = [name for name in files if (out / name).is_file()]
    return f"\nwritten to {out}: {', '.join([*files_written, 'results/', 'runs.parquet/'])}"


def _combinations(sweep: SuiteSweep) -> dict[str, object]:
    """The combinations as JSON data, with their means over all cases and over each case."""
    from tidegate.show.sweeps import Swept

    swept = Swept.of(sweep)
    lines = [
        {
            **combination.settings,
            "verdict": combination.verdict,
            **{
                name: {"mean": combination.mean(name).mean, "half_interval_95": combination.mean(name).half}
                for name in swept.names
            },
        }
        for combination in swept.combinations
    ]
    return {"suite": sweep.name, "combinations": lines, "failed": sweep.failed, "resumed": sweep.resumed}


def _print_sweep(result: SweepResult) -> None:
    from tidegate.output.terminal import console, show
    from tidegate.show import sweeps
    from tidegate.show.sweeps import Swept
    from tidegate.wording import counted

    swept = Swept.of(result)
    runs = {len(combination.rows) for combination in swept.over_all}
    # facts that are the same for all lines are printed once
    same = [f"{key} = {value}" for key, value in swept.constant.items()]
    if sweeps.CASE in swept.keys:
        same.append(f"means over {len(swept.values[sweeps.CASE]) - 1} cases")
    noun = "seed" if sweeps.CASE in swept.keys else "run"
    same += [f"{counted(count, noun)} each" for count in runs if len(runs) == 1]
    console().print(f"{result.name}: {', '.join(same)}\n")
    show(result.document())
