"""Commands that run something: run, compare, sweep, report."""

from __future__ import annotations

import csv
import io
import shlex
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer

from tidegate import _core, comparing
from tidegate._files import check_target, write_file
from tidegate.cli.terminal import (
    Stopped,
    comparison_table,
    console,
    plain_table,
    print_json,
    print_table,
    progress,
    results_only,
    say,
)
from tidegate.comparing import sweeping
from tidegate.control import registry as controllers
from tidegate.errors import InputError, RunError
from tidegate.results._folders import check_folder
from tidegate.results.metrics import HEADLINE, MEMBERS, PICTURES, metric
from tidegate.results.quality import verdict
from tidegate.running import RUN_FILE, Run, RunJob
from tidegate.scenario import Scenario, shipped
from tidegate.scenario import _subject as subject
from tidegate.show import _view


def _scenarios(incomplete: str) -> list[str]:
    return [name for name in shipped.names() if name.startswith(incomplete)]


class _Behind(str):
    """What stands behind a colon, which Typer would take out because it does not begin with the colon itself."""

    __slots__ = ()

    def startswith(self, *_: Any) -> bool:
        """It has been chosen already."""
        return True


def complete_controllers(ctx: typer.Context, incomplete: str) -> list[str]:
    """Names of controllers and their presets that go on from what was typed."""
    names = list(controllers.registry())
    presets = [f"{name}:{preset}" for name, one in controllers.registry().items() for preset in one["presets"]]
    typed = [*(ctx.params.get("names") or ()), incomplete]
    # Bash takes a colon for a word of its own, and puts what we answer behind it
    if ":" in typed[-2:]:
        colon = len(typed) - 1 - typed[::-1].index(":")
        begun = f"{typed[colon - 1] if colon else ''}:{''.join(typed[colon + 1 :])}"
        return [_Behind(preset.partition(":")[2]) for preset in presets if preset.startswith(begun)]
    return [name for name in [*names, *presets] if name.startswith(incomplete)]


ScenarioName = Annotated[
    str,
    typer.Argument(help="Scenario file, or a name from `tidegate scenario list`.", autocompletion=_scenarios),
]
Sets = Annotated[
    list[str],
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Another value for a key of the scenario, such as links.uplink.delay=50ms.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for programs, and nothing else.")]
Media = Annotated[
    str | None,
    typer.Option(
        "--media",
        metavar="CLIP",
        help="Real video: a clip from `tidegate media clips`, or a file, is encoded, sent, decoded and judged as it "
        "is seen; settings behind a colon, as in bikes:size=320x136,b_frames=2. "
        f"An encoder in the loop, codec=openh264, is {'' if 'openh264' in _core.ENCODERS else 'not '}in this build.",
    ),
]
Pcap = Annotated[
    bool,
    typer.Option(
        "--pcap",
        help="Write packets-sender.pcapng and packets-receiver.pcapng with each run, for Wireshark; needs --out.",
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Write over a file of another kind, too.")]
Workers = Annotated[int | None, typer.Option("--jobs", "-j", min=1, help="Runs at once; one a core by default.")]


def add_to(app: typer.Typer) -> None:
    """Puts the commands on the command line."""
    app.command()(run)
    app.command()(compare)
    app.command()(sweep)
    app.command()(report)


def run(
    scenario: ScenarioName,
    seed: Annotated[int | None, typer.Option(min=0, help="Instead of the scenario's.")] = None,
    record: Annotated[str | None, typer.Option(help="How much is kept: summary, series, or packets.")] = None,
    set_: Sets = [],  # noqa: B006
    media: Media = None,
    out: Annotated[Path | None, typer.Option(help="Folder for the run: run.json and Parquet tables.")] = None,
    pcap: Pcap = False,
    as_json: AsJson = False,
) -> None:
    """Run a scenario once.

    With --media CLIP the video is real; `tidegate media render` makes a film of a run that was written.

    Example: tidegate run home-broadband --set flows.call.media.controller=gcc:draft-02 --out my-run
    """
    if record not in {None, "summary", "series", "packets"}:
        raise InputError(f"--record: found {record}; expected summary, series or packets")
    made = Scenario.load(scenario, {**_changes(set_), **_captured(pcap, out)})
    if out is not None:
        check_folder(out, RUN_FILE)
    _say_what_code_is_run(scenario, made.code)
    if media is not None and record not in {None, "packets"}:
        raise InputError(f"--record: found {record}; --media needs packets")
    with results_only():
        if media is None:
            (done,) = _execute([RunJob(made, seed, record)], made.name, shown=not as_json)
        else:
            done = _run_with_media(made, seed, media, shown=not as_json)
    if out is not None:
        done.save(out)
    if as_json:
        print_json({"digest": done.digest, "seed": done.seed, **done.summary})
        return
    _print_run(done)
    if out is not None:
        console().print(f"\nwritten to {out}")


def _run_with_media(made: Scenario, seed: int | None, media: str, *, shown: bool) -> Run:
    from tidegate.media._results import Chain

    _say_what_is_missing()
    with stoppable("stopped; nothing was written"), progress(made.name, shown=shown) as tell:
        chain = Chain(media, progress=tell)
        done = comparing.execute([RunJob(chain.feed(made), seed, "packets")], progress=chain.running)
        (judged,) = chain.judge(done)
        return judged.judged_run()


def _say_what_code_is_run(file: str, named: Sequence[str]) -> None:
    """Says so where a scenario brings code with it that nobody typed."""
    if not named:
        return
    with suppress(InputError):  # of a file that is right only with what was typed
        named = [one for one in named if one in Scenario.load(file).code]
    if named:
        say(f"{file} names Python code, which runs with your rights: {', '.join(named)}")


def _say_what_is_missing() -> None:
    from tidegate.video import _extra as extra

    if missing := extra.missing():
        say(f"{missing}; {extra.INSTALL} brings H.264, real clips and VMAF")


def _print_run(done: Run) -> None:
    to = console()
    to.print(f"{done.name}, seed {done.seed}, digest {done.digest}\n")
    flows = _view.point_to_point(done)
    shown = [name for name in (*HEADLINE, *PICTURES) if any(flow.get(name) is not None for flow in flows)]
    heads = ["flow", "controller", *(_head(name) for name in shown), _head("quality")]
    told = [
        [
            str(flow["flow"]),
            str(flow.get("controller") or flow["kind"]),
            *(metric(name).show(flow.get(name)) for name in shown),
            verdict([flow.get("quality")]),
        ]
        for flow in flows
    ]
    # a few flows stand side by side, as controllers do in a comparison; many are a line each
    lines = [list(line) for line in zip(heads, *told, strict=True)] if len(flows) <= _SIDE_BY_SIDE else [heads, *told]
    table = plain_table(*lines[0])
    for line in lines[1:]:
        table.add_row(*line)
    if flows:
        print_table(table)
        to.print()
    for session, members in _view.sessions(done.summary).items():
        _print_members(session, members)
        to.print()
    names = ["capacity_bps", "carried_bps", "utilisation", "dropped_queue", "dropped_wire"]
    names += ["marked"] if any(link["marked"] for link in done.summary["links"]) else []
    links = plain_table("link", *(_head(name) for name in names))
    for link in done.summary["links"]:
        links.add_row(link["link"], *(metric(name).show(link.get(name)) for name in names))
    print_table(links)


_MEMBERS_SHOWN = 20
_SIDE_BY_SIDE = 8  # flows of a run


def _print_members(session: str, members: Sequence[Mapping[str, Any]]) -> None:
    total = _view.session_sums(members)
    shown = [name for name in MEMBERS if any(one.get(name) is not None for one in members)]
    table = plain_table(session, "profile", *(_head(name) for name in shown))
    for one in members[:_MEMBERS_SHOWN]:
        table.add_row(one["member"], one["profile"], *(metric(name).show(one.get(name)) for name in shown))
    if len(members) > _MEMBERS_SHOWN:
        table.add_row(f"and {len(members) - _MEMBERS_SHOWN} more", "", *([""] * len(shown)))
    table.add_row("all", "", *(metric(name).show(total[name]) for name in shown))
    print_table(table)


def _head(name: str) -> str:
    one = metric(name)
    return f"{one.label} ({one.unit})" if one.unit else one.label


def compare(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="CONTROLLER...",
            help="What to compare: gcc, gcc:draft-02, fixed:2Mbps, python:mine.py:Mine.",
            autocompletion=complete_controllers,
        ),
    ],
    scenario: Annotated[str | None, typer.Option(help="Scenario file or name.", autocompletion=_scenarios)] = None,
    link: Annotated[
        Path | None,
        typer.Option(metavar="TRACE", help="A recorded network; a generated LTE link otherwise."),
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
    media: Media = None,
    media_source: Annotated[str | None, typer.Option(help="Video source: statistical, ideal or greedy.")] = None,
    duration: Annotated[str | None, typer.Option(help="Simulated time, such as 60s.")] = None,
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds, for 95 % intervals.")] = 1,
    set_: Sets = [],  # noqa: B006
    out: Annotated[Path | None, typer.Option(help="Folder for table, picture, report and runs.")] = None,
    pcap: Pcap = False,
    jobs: Workers = None,
    as_json: AsJson = False,
) -> None:
    """Compare controllers on one network.

    All see the same network with the same luck and the same competition. With --media CLIP the video of media flows
    is real: a clip, encoded at a ladder of rates, is sent, decoded as far as it arrived in time, and judged.

    Example: tidegate compare gcc fixed --link LTE.trace --cross tcp:cubic@20s --seeds 5 --out DIR

    Example: tidegate compare gcc tfrc --media bikes:size=320x136 --out DIR
    """
    made = comparing.scenario_for(
        base=scenario,
        link=link,
        capacity=capacity,
        delay=delay,
        queue=queue,
        cross=cross,
        duration=duration,
        media_source=media_source,
    )
    if changes := {**_changes(set_), **_captured(pcap, out)}:
        made = made.with_changes(changes)
    if out is not None:
        check_folder(out, comparing.COMPARISON_FILE)
    if media is not None:
        _say_what_is_missing()
    if scenario is not None:
        compared = subject.of_scenario(made, "controller")
        others = made.model_copy(update={"flows": [flow for at, flow in enumerate(made.flows) if at != compared]})
        _say_what_code_is_run(scenario, others.code)
    with (
        results_only(),
        stoppable("stopped; nothing was written"),
        progress(f"{len(names) * seeds} runs", shown=not as_json) as tell,
    ):
        done = comparing.compare(
            names,
            made,
            seeds=seeds,
            workers=jobs,
            processes=None,
            progress=tell,
            command=typed(),
            media=media,
        )
        if out is not None:
            done.save(out)
    if as_json:
        print_json(done.to_data())
        _tell_failures(done)
        return
    to = console()
    last = f"seeds 1 to {seeds}, mean ± 95 % interval" if seeds > 1 else "seed 1"
    to.print(f"{made.name}, {made.duration}, {last}; * best\n")
    print_table(comparison_table(done.table))
    if out is not None:
        names = ["table.md", "table.csv", "runs.csv", "comparison.png", "report.html", *done.attached]
        to.print(f"\nwritten to {out}: {', '.join(name for name in names if not name.startswith('quality-'))}, runs/")
    _tell_failures(done)


def _tell_failures(done: comparing.Comparison) -> None:
    if done.failed:
        sys.stdout.flush()
        why = [f"{name}: {reason}" for name, reason in done.failed.items()]
        raise RunError("\n".join([f"{len(why)} of {len(done.table.controllers)} controllers failed:", *why]))


def typed() -> str:
    """What was typed, for the record."""
    return shlex.join(["tidegate", *sys.argv[1:]])


def sweep(
    scenario: ScenarioName,
    set_: Annotated[
        list[str],
        typer.Option(
            "--set",
            metavar="KEY=A,B,C",
            help="Values for a key, such as links.uplink.delay=20ms,50ms. May be given again: all combinations.",
        ),
    ],
    out: Annotated[Path, typer.Option(help="Folder for results; the same again goes on where it was left.")],
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds of each combination.")] = 1,
    jobs: Workers = None,
    as_json: AsJson = False,
) -> None:
    """Run all combinations of settings.

    Finished runs are kept and never run again, so that the same command goes on where it was stopped.

    A value that has a comma itself stands in quotes: flows.call.media.controller='gcc,"fixed:rate=2Mbps"'.

    Example: tidegate sweep home-broadband --set links.uplink.delay=20ms,50ms --seeds 5 --out DIR
    """
    made = Scenario.load(scenario)
    grid: dict[str, list[str]] = {}
    for text in set_:
        key, values = _pair(text)
        if key in grid:
            raise InputError(f"--set {key}: is given twice; write {key}=A,B")
        grid[key] = _split(key, values)
    _say_what_code_is_run(scenario, made.code)
    with results_only():
        plan = sweeping.Plan.of(made, grid, comparing.seeds_from(seeds))
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
        console().print(f"\nwritten to {out}: summary.md, summary.csv, flows.csv, results/")
    if result.resumed:
        say(f"{result.resumed} of {len(plan.points)} runs were there already")
    if result.failed:
        raise RunError("\n".join([f"{len(result.failed)} of {len(plan.points)} runs failed:", *result.failed]))


def _print_sweep(result: sweeping.SweepResult) -> None:
    lines = [line.strip("|").split(" | ") for line in result.to_markdown().splitlines()]
    table = plain_table(*(head.strip() for head in lines[0]))
    for line in lines[2:]:
        table.add_row(*(cell.strip() for cell in line))
    print_table(table)


def report(
    folder: Annotated[Path, typer.Argument(help="What `run` or `compare` wrote with --out.")],
    out: Annotated[
        Path | None,
        typer.Option(help="File to write, .html, .png, .svg or .pdf; report.html in the folder by default."),
    ] = None,
    force: Force = False,
) -> None:
    """Make the HTML report of a run or a comparison again, or its picture.

    The picture of a run has all that its two ends knew over one time axis, as a browser's webrtc-internals shows it;
    that of a comparison is its sheet.

    Example: tidegate report DIR --out talk.html

    Example: tidegate report my-run --out session.png
    """
    from tidegate.show import report as reporting

    picture = out is not None and out.suffix.lower() in _PICTURES
    if out is not None and picture:
        check_target(out, "picture", lambda path: path.suffix == out.suffix, force=force)
    elif out is not None:
        check_target(out, "report of tidegate", reporting.is_report, force=force)
    if (folder / comparing.COMPARISON_FILE).is_file():
        source: Any = comparing.Comparison.load(folder)
    elif (folder / RUN_FILE).is_file():
        source = Run.load(folder)
    else:
        wanted = f"{RUN_FILE} or {comparing.COMPARISON_FILE}"
        raise InputError(f"{folder}: holds neither a run nor a comparison (no {wanted})")
    target = out or folder / "report.html"
    if picture:
        _draw(source, target)
    else:
        reporting.write(target, source)
    console().print(f"written to {target}")


_PICTURES = {".png", ".svg", ".pdf"}


def _draw(source: Run | comparing.Comparison, target: Path) -> None:
    from tidegate.show import plot

    figure = plot.session(source) if isinstance(source, Run) else plot.comparison(source.runs)
    data = io.BytesIO()
    figure.savefig(data, format=target.suffix.lower()[1:])
    write_file(target, data.getvalue())


def _captured(pcap: bool, out: Path | None) -> dict[str, Any]:
    if pcap and out is None:
        raise InputError("--pcap: needs a folder for the files: --out DIR")
    return {"capture": True} if pcap else {}


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key or not value:
        raise InputError(f"--set {text}: expected KEY=VALUE, such as links.uplink.delay=50ms")
    return key.strip(), value.strip()


def _changes(sets: Sequence[str]) -> dict[str, Any]:
    return {key: sweeping.plain_value(value) for key, value in map(_pair, sets)}


def _split(key: str, values: str) -> list[str]:
    """Values at their commas, those in quotes left whole.

    >>> _split("x", 'gcc,"fixed:rate=2Mbps,y=1",a')
    ['gcc', 'fixed:rate=2Mbps,y=1', 'a']
    """
    try:
        found = next(csv.reader([values], skipinitialspace=True))
    except csv.Error:
        found = []
    if not found or not all(found):
        raise InputError(f"--set {key}={values}: expected values with commas between them")
    return found


class stoppable:  # noqa: N801
    """Turns Ctrl-C into a sentence."""

    def __init__(self, sentence: str) -> None:
        self.sentence = sentence

    def __enter__(self) -> None:
        """Begins."""

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """Says the sentence if it was Ctrl-C."""
        if isinstance(error, KeyboardInterrupt):
            raise Stopped(self.sentence) from None


def _execute(jobs: Sequence[RunJob], what: str, *, shown: bool) -> list[Run]:
    with stoppable("stopped; nothing was written"), progress(what, shown=shown) as tell:
        return comparing.execute(jobs, progress=tell)
