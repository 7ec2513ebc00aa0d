"""The command sweep."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tidegate.cli.options import AsJson, ScenarioName, Workers, pair, say_what_code_is_run, values_of
from tidegate.cli.terminal import Stopped, print_json, results_only, say, typed, warn
from tidegate.errors import InputError, RunError

if TYPE_CHECKING:
    from tidegate.comparing.sweeping import SweepResult


def add_to(app: typer.Typer) -> None:
    """Puts the command on the command line."""
    app.command()(sweep)


def sweep(
    scenario: ScenarioName,
    set_: Annotated[
        list[str],
        typer.Option(
            "--set",
            metavar="KEY=A,B,C",
            help="Values for a key, such as links.uplink.delay=20ms,50ms, or a range: 2ms:50ms:5 (five values), "
            "log:100kbps:10Mbps:4. May be given again: all combinations.",
        ),
    ],
    out: Annotated[Path, typer.Option(help="Folder for results; the same again goes on where it was left.")],
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds of each combination.")] = 1,
    jobs: Workers = None,
    as_json: AsJson = False,
) -> None:
    """Run all combinations of settings.

    Finished runs are kept and never run again, so that the same command goes on where it was stopped.

    A value that has a comma itself, and no brackets around it, stands in quotes:
    flows.call.media.controller='gcc,"gcc:draft-02,k_up=0.02"'. What stands in quotes is never a range.

    Example: tidegate sweep home-broadband --set links.uplink.delay=20ms,50ms --seeds 5 --out DIR
    """
    from tidegate.cli.printing import print_recordings
    from tidegate.cli.tables import console, progress
    from tidegate.comparing import sweeping
    from tidegate.results._folders import check_folder
    from tidegate.running._seeds import seeds_from
    from tidegate.scenario import Scenario
    from tidegate.show import _view

    made = Scenario.load(scenario)
    grid: dict[str, list[str]] = {}
    for text in set_:
        key, values = pair(text)
        if key in grid:
            raise InputError(f"--set {key}: is given twice; write {key}=A,B")
        grid[key] = values_of(key, values)
    say_what_code_is_run(scenario, made.code)
    with results_only():
        plan = sweeping.Plan.of(made, grid, seeds_from(seeds), typed())
    check_folder(out, sweeping.SWEEP_FILE, exchanged=False)
    try:
        with results_only(), progress(f"{len(plan.points)} runs", shown=not as_json) as tell:
            result = plan.run(out, workers=jobs, processes=None, progress=tell)
    except KeyboardInterrupt:
        kept, total = plan.kept(out)
        what = f"{kept} of {total} runs are done and kept in {out}"
        raise Stopped(f"stopped; {what}; the same command goes on from there") from None
    if as_json:
        print_json({"runs": result.rows, "failed": result.failed, "resumed": result.resumed})
    elif result.rows:
        _print_sweep(result)
        print_recordings({**row["summary"], "seed": row["seed"]} for row in result.rows)
        written = ["report.html", "sweep.png", "summary.md", "summary.csv", "flows.csv"]
        there = ", ".join(name for name in written if (out / name).is_file())
        console().print(f"\nwritten to {out}: {there}, results/")
    warn(_view.warnings(row["summary"] for row in result.rows), made)
    if result.resumed:
        say(f"{result.resumed} of {len(plan.points)} runs were there already")
    if result.failed:
        raise RunError("\n".join([f"{len(result.failed)} of {len(plan.points)} runs failed:", *result.failed]))


def _print_sweep(result: SweepResult) -> None:
    from tidegate.cli.tables import broken, console, plain_table, print_table
    from tidegate.show import _sweep
    from tidegate.show._sweep import Swept

    swept = Swept.of(result)
    short = _sweep.shortened(swept.varied)
    runs = {len(one.rows) for one in swept.combinations}
    # what is the same in every line is told once
    same = [f"{key} = {value}" for key, value in swept.constant.items()]
    same += [f"{count} run{'' if count == 1 else 's'} each" for count in runs if len(runs) == 1]
    console().print(f"{result.name}: {', '.join(same)}\n")
    heads = [*(short[key] for key in swept.varied), *(["runs"] if len(runs) > 1 else [])]
    table = plain_table(*(heads or [""]), *(broken(_sweep.head(name)) for name in swept.names))
    for one in swept.combinations:
        begin = [*(one.settings[key] for key in swept.varied), *([str(len(one.rows))] if len(runs) > 1 else [])]
        numbers = (_sweep.about(name).show_interval(one.mean(name)) for name in swept.names)
        table.add_row(*(begin or [result.name]), *numbers)
    print_table(table, len(swept.varied) or 1)
