"""The commands run and compare."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer

from tidegate._signals import raised
from tidegate.cli.completing import complete_controllers, scenarios
from tidegate.cli.engines import EngineName, Scheduler, engine_of
from tidegate.cli.options import (
    AsJson,
    Media,
    Pcap,
    Record,
    RunFolder,
    ScenarioName,
    Seed,
    Sets,
    Workers,
    captured,
    changes,
    check_record,
    say_how_long,
    say_what_code_is_run,
    say_what_media_lacks,
)
from tidegate.cli.terminal import print_json, print_run, results_only, say_remarks, stoppable, typed
from tidegate.errors import RunError


def run(
    scenario: ScenarioName,
    seed: Seed = None,
    record: Record = None,
    set_: Sets = [],  # noqa: B006
    media: Media = None,
    out: RunFolder = None,
    pcap: Pcap = False,
    as_json: AsJson = False,
) -> None:
    """Run a scenario once.

    With --media CLIP the video is real; `tidegate media render` makes a film of a run that was written.

    Example: tidegate run home-broadband --set flows.call.media.controller=gcc:draft-02 --out my-run
    """
    from tidegate.media.chain import Chain
    from tidegate.output.terminal import console, progress
    from tidegate.results.folders import check_folder
    from tidegate.runs import RUN_FILE, RunJob
    from tidegate.runs.jobs import execute
    from tidegate.scenario import Scenario

    check_record(record, media)
    made = Scenario.load(scenario, {**changes(set_), **captured(pcap, out)})
    if out is not None:
        check_folder(out, RUN_FILE)
    say_what_code_is_run(scenario, made.code)
    if media is not None:
        say_what_media_lacks()
    with (
        results_only(),
        stoppable("stopped; nothing was written"),
        raised() if media is not None else nullcontext(),
        progress(made.name, shown=not as_json) as tell,
    ):
        if media is None:
            (done,) = execute([RunJob(made, seed, record)], progress=tell)
        else:
            chain = Chain(media, progress=tell)
            fed = execute([RunJob(chain.feed(made), seed, "packets")], progress=chain.running)
            (done,) = (judged.judged_run() for judged in chain.judge(fed))
    if out is not None:
        done.save(out)
    if as_json:
        print_json(done.to_data())
    else:
        print_run(done)
    say_remarks(done.remarks, made)
    if out is not None and not as_json:
        console().print(f"\nwritten to {out}")


def compare(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="CONTROLLER...",
            help='What to compare: gcc, gcc:draft-02, fixed:2Mbps, python:mine.py:Mine, "program:node call.js".',
            autocompletion=complete_controllers,
        ),
    ],
    scenario: Annotated[str | None, typer.Option(help="Scenario file or name.", autocompletion=scenarios)] = None,
    link: Annotated[
        Path | None,
        typer.Option(
            metavar="TRACE",
            help="A recorded network, from a place that the seed chooses; a generated LTE link otherwise.",
        ),
    ] = None,
    capacity: Annotated[str | None, typer.Option(help="A constant capacity, such as 5Mbps.")] = None,
    delay: Annotated[str | None, typer.Option(help="One-way propagation delay, such as 20ms.")] = None,
    queue: Annotated[str | None, typer.Option(help="Queue limit: 300ms, 64kB or 100p.")] = None,
    cross: Annotated[
        list[str],
        typer.Option(
            metavar="FLOW",
            help="Competition: tcp:cubic@20s, udp:1Mbps@10s-30s, web*10, media:gcc@5s. May be given again.",
        ),
    ] = [],  # noqa: B006
    beside: Annotated[
        list[str],
        typer.Option(
            "--with",
            metavar="CONTROLLER",
            help="Another flow of the same media beside it, under this controller, or a TCP: nada, gcc@20s, "
            "tcp:cubic@20s. May be given again.",
            autocompletion=complete_controllers,
        ),
    ] = [],  # noqa: B006
    media: Media = None,
    media_source: Annotated[str | None, typer.Option(help="Video source: statistical, ideal or greedy.")] = None,
    duration: Annotated[str | None, typer.Option(help="Simulated time, such as 60s.")] = None,
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds, for 95 % intervals.")] = 1,
    set_: Sets = [],  # noqa: B006
    out: Annotated[Path | None, typer.Option(help="Folder for table, picture, report and runs.")] = None,
    pcap: Pcap = False,
    jobs: Workers = None,
    engine: EngineName = None,
    scheduler: Scheduler = None,
    as_json: AsJson = False,
) -> None:
    """Compare controllers on one network.

    All see the same network with the same luck and the same competition. With --media CLIP the video of media flows
    is real: a clip, encoded at a ladder of rates, is sent, decoded as far as it arrived in time, and judged.

    Example: tidegate compare gcc fixed --link LTE.trace --cross tcp:cubic@20s --seeds 5 --out DIR

    Example: tidegate compare gcc nada scream --with gcc@20s --capacity 4Mbps --delay 50ms --seeds 5

    Example: tidegate compare gcc tfrc --media bikes:size=320x136 --out DIR

    A real program makes the call by the wall clock, at both of its ends, on the same links with the same luck (Linux):

    Example: tidegate compare gcc "program:python3 docs/examples/rtp_cbr.py" --capacity 1Mbps --duration 10s
    """
    from tidegate import comparison
    from tidegate.output.terminal import console, marks, progress, show
    from tidegate.results.folders import check_folder
    from tidegate.scenario import subject
    from tidegate.scenario.variants import scenario_for

    made = scenario_for(
        base=scenario, link=link, capacity=capacity, delay=delay, queue=queue, cross=cross, beside=beside,
        media_source=media_source, changes={**changes(set_, duration=duration), **captured(pcap, out)},
    )  # fmt: skip
    if out is not None:
        check_folder(out, comparison.COMPARISON_FILE)
    if media is not None:
        say_what_media_lacks()
    if scenario is not None:
        compared = subject.of_scenario(made, "controller")
        others = made.model_copy(update={"flows": [flow for at, flow in enumerate(made.flows) if at != compared]})
        say_what_code_is_run(scenario, others.code)
    if sessions := comparison.sessions_of(names, made, seeds):
        say_how_long(sessions)
    with (
        results_only(),
        stoppable("stopped; nothing was written"),
        # clips are encoded and judged in this thread
        raised() if media is not None else nullcontext(),
        engine_of(engine, scheduler, jobs),
        progress(f"{len(names) * seeds} runs", shown=not as_json) as tell,
    ):
        done = comparison.compare(
            names, made, seeds=seeds, workers=jobs, processes=None, progress=tell, command=typed(), media=media
        )
        if out is not None:
            done.save(out)
    to = console()
    if as_json:
        print_json(done.to_data())
    else:
        last = f"seeds 1 to {seeds}, mean ± 95 % interval" if seeds > 1 else "seed 1"
        document = done.document()
        to.print(f"{made.name}, {made.duration}, {'; '.join(filter(None, [last, marks(document)]))}\n")
        show(document)
    say_remarks(done.remarks, made)
    if out is not None and not as_json:
        names = ["table.md", "table.csv", "runs.csv", "comparison.png", "report.html", *done.attached]
        to.print(f"\nwritten to {out}: {', '.join(name for name in names if not name.startswith('quality-'))}, runs/")
    if done.failed:
        sys.stdout.flush()
        why = [f"{name}: {reason}" for name, reason in done.failed.items()]
        raise RunError("\n".join([f"{len(why)} of {len(done.table.controllers)} controllers failed:", *why]))
