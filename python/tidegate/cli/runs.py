"""The commands run and compare."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer

from tidegate._signals import interruptible
from tidegate.cli.completing import complete_controllers, scenarios
from tidegate.cli.engines import EngineName, Scheduler, TimeLimit, engine_of
from tidegate.cli.options import (
    AsJson,
    Link,
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
    recordings_of,
    say_duration,
    say_what_code_is_run,
    say_what_media_lacks,
    variants_of,
)
from tidegate.cli.terminal import print_json, print_run, results_only, say_remarks, stoppable, typed
from tidegate.errors import InputError, RunError


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

    With --media CLIP the video is real; `tidegate media render` makes a film of a saved run.

    Example: tidegate run home-broadband --set flows.call.media.controller=gcc:draft-02 --out my-run
    """
    from tidegate.media.chain import Chain
    from tidegate.output.terminal import console, progress
    from tidegate.results.folders import check_folder
    from tidegate.runs import RUN_FILE, RunJob
    from tidegate.runs.jobs import execute
    from tidegate.scenario import Scenario

    check_record(record, media)
    loaded = Scenario.load(scenario, {**changes(set_), **captured(pcap, out)})
    if out is not None:
        check_folder(out, RUN_FILE)
    say_what_code_is_run(scenario, loaded.code)
    if media is not None:
        say_what_media_lacks()
    with (
        results_only(),
        stoppable("stopped; nothing was written"),
        interruptible() if media is not None else nullcontext(),
        progress(loaded.name, visible=not as_json) as tell,
    ):
        if media is None:
            (result,) = execute([RunJob(loaded, seed, record)], progress=tell)
        else:
            chain = Chain(media, progress=tell)
            fed = execute([RunJob(chain.feed(loaded), seed, "packets")], progress=chain.running)
            (result,) = (judged.judged_run() for judged in chain.judge(fed))
    if out is not None:
        result.save(out)
    if as_json:
        print_json(result.to_data())
    else:
        print_run(result)
    say_remarks(result.remarks, loaded)
    if out is not None and not as_json:
        console().print(f"\nwritten to {out}")


def compare(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[CONTROLLER...]",
            help='Controllers to compare: gcc, gcc:draft-02, fixed:2Mbps, python:mine.py:Mine, "program:node call.js".',
            autocompletion=complete_controllers,
        ),
    ] = None,
    scenario: Annotated[
        str | None,
        typer.Option(help="Scenario file or name; by default lte-generated.", autocompletion=scenarios),
    ] = None,
    link: Link = None,
    capacity: Annotated[str | None, typer.Option(help="Constant capacity of the link, such as 5Mbps.")] = None,
    delay: Annotated[str | None, typer.Option(help="One-way propagation delay, such as 20ms.")] = None,
    queue: Annotated[str | None, typer.Option(help="Queue limit: 300ms, 64kB or 100p.")] = None,
    cross: Annotated[
        list[str],
        typer.Option(
            metavar="FLOW",
            help="Competing flow: tcp:cubic@20s, udp:1Mbps@10s-30s, web*10, media:gcc@5s. Repeatable.",
        ),
    ] = [],  # noqa: B006
    beside: Annotated[
        list[str],
        typer.Option(
            "--with",
            metavar="CONTROLLER",
            help="Competing flow of the same media under this controller, or a TCP flow: nada, gcc@20s, tcp:cubic@20s. "
            "Repeatable.",
            autocompletion=complete_controllers,
        ),
    ] = [],  # noqa: B006
    media: Media = None,
    media_source: Annotated[str | None, typer.Option(help="Video source: statistical, ideal or greedy.")] = None,
    duration: Annotated[str | None, typer.Option(help="Simulated time, such as 60s.")] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Number of seeds; from two on there are 95 % intervals.")] = 1,
    set_: Sets = [],  # noqa: B006
    variant: Annotated[
        list[str],
        typer.Option(
            metavar="NAME:KEY=VALUE",
            help='Column with a changed value: "FQ-CoDel: links.uplink.discipline=fq-codel". The name ends at the '
            'first ": "; a repeated name adds a value; controller=NAME is the controller of the call. Repeatable.',
        ),
    ] = [],  # noqa: B006
    recording: Annotated[
        list[str],
        typer.Option(
            metavar="NAME:DIR",
            help='Further column with a call that was recorded (tidegate import): "customer: my-call", or my-call. It '
            "is not ranked. Repeatable.",
        ),
    ] = [],  # noqa: B006
    out: Annotated[Path | None, typer.Option(help="Folder for table, picture, report and runs.")] = None,
    record: Record = None,
    pcap: Pcap = False,
    jobs: Workers = None,
    engine: EngineName = None,
    scheduler: Scheduler = None,
    time_limit: TimeLimit = None,
    as_json: AsJson = False,
) -> None:
    """Compare controllers on one network, or variants of a scenario.

    All controllers have the same network, random numbers and cross traffic. With --media CLIP the video of media flows
    is real: a clip is encoded at a ladder of rates, sent, decoded as far as it arrived in time, and judged.

    Example: tidegate compare gcc fixed --link LTE.trace --cross tcp:cubic@20s --seeds 5 --out DIR

    Example: tidegate compare gcc nada scream --with gcc@20s --capacity 4Mbps --delay 50ms --seeds 5

    Example: tidegate compare gcc tfrc --media bikes:size=320x136 --out DIR

    With --variant the columns are what-ifs: the scenario as it is, then each variant, with differences from the first:

    Example: tidegate compare --scenario home-broadband --variant "FQ-CoDel: links.uplink.discipline=fq-codel"

    A recorded call beside what would have been:

    Example: tidegate compare gcc scream --link link.csv --recording "customer: my-call"

    A real program can make the call in real time, at both ends, on the same links with the same seeds (Linux):

    Example: tidegate compare gcc "program:python3 docs/examples/rtp_cbr.py" --capacity 1Mbps --duration 10s
    """
    from tidegate import comparison
    from tidegate.output.terminal import console, marks, progress, show
    from tidegate.results.folders import check_folder
    from tidegate.scenario import subject
    from tidegate.scenario.variants import scenario_for

    level = check_record(record, media)
    variants = variants_of(variant)
    names = names or []
    network = scenario_for(
        base=scenario,
        link=link,
        capacity=capacity,
        delay=delay,
        queue=queue,
        cross=cross,
        beside=beside,
        media_source=media_source,
        changes={**changes(set_, duration=duration), **captured(pcap, out)},
    )
    recordings = recordings_of(recording)
    if not (names or variants or network.variants or recordings):
        raise InputError(
            "found neither a controller nor a variant; expected controllers, such as gcc nada, or --variant"
        )
    if out is not None:
        check_folder(out, comparison.COMPARISON_FILE)
    if media is not None:
        say_what_media_lacks()
    if scenario is not None:
        compared = subject.of_scenario(network, "controller")
        others = network.model_copy(
            update={"flows": [flow for index, flow in enumerate(network.flows) if index != compared]}
        )
        say_what_code_is_run(scenario, others.code)
    if not variants and (sessions := comparison.sessions_of(names, network, seeds)):
        say_duration(sessions)
    with (
        results_only(),
        stoppable("stopped; nothing was written"),
        # this thread encodes and judges clips
        interruptible() if media is not None else nullcontext(),
        engine_of(engine, scheduler, jobs, time_limit),
        progress(f"{len(names) * seeds} runs" if names and not variants else "runs", visible=not as_json) as tell,
    ):
        result = comparison.compare(
            names,
            network,
            variants=variants,
            seeds=seeds,
            workers=jobs,
            processes=None,
            progress=tell,
            command=typed(),
            media=media,
            record=level,
            recordings=recordings,
        )
        if out is not None:
            result.save(out)
    to = console()
    if as_json:
        print_json(result.to_data())
    else:
        last = f"seeds 1 to {seeds}, mean ± 95 % interval" if seeds > 1 else "seed 1"
        document = result.document()
        to.print(f"{network.name}, {network.duration}, {'; '.join(filter(None, [last, marks(document)]))}\n")
        show(document)
    say_remarks(result.remarks, network)
    if out is not None and not as_json:
        names = ["table.md", "table.csv", "runs.csv", "comparison.png", "report.html", *result.attached]
        to.print(f"\nwritten to {out}: {', '.join(name for name in names if not name.startswith('quality-'))}, runs/")
    if result.failed:
        sys.stdout.flush()
        why = [f"{name}: {reason}" for name, reason in result.failed.items()]
        columns = "variants" if result.variants else "controllers"
        raise RunError("\n".join([f"{len(why)} of {len(result.table.controllers)} {columns} failed:", *why]))
