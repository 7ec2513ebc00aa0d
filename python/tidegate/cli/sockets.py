"""The commands live send, live receive and gap: our endpoints on sockets."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tidegate._signals import interruptible
from tidegate.cli.completing import complete_controllers, scenarios
from tidegate.cli.options import (
    AsJson,
    Media,
    Record,
    RunFolder,
    Seed,
    Sets,
    changes,
    check_record,
    say_what_code_is_run,
    say_what_media_lacks,
)
from tidegate.cli.terminal import print_json, print_run, results_only, say, say_remarks, stoppable
from tidegate.errors import InputError, RunError, located

if TYPE_CHECKING:
    from tidegate.runs import Run
    from tidegate.scenario import Scenario

live_app = typer.Typer(
    help="Calls between two tidegate endpoints on two machines, over UDP.", no_args_is_help=True, rich_markup_mode=None
)

_STOPPED = 130
_NOISY_MS = 5.0  # lateness at the 99th percentile above which the machine shapes a result more than the network does

_IGNORED = {
    "forged": "forged or damaged (another key, if all)",
    "replayed": "replayed",
    "oversized": "too long",
    "malformed": "that are no message",
    "strangers": "from other addresses",
}

Key = Annotated[
    Path, typer.Option("--key", metavar="FILE", help="File with the secret of both sides: 16 bytes or more, mode 0600.")
]
MaxRate = Annotated[
    str, typer.Option("--max-rate", metavar="RATE", help="Maximum rate of sending, from 50kbps to 1Gbps.")
]
Pcap = Annotated[
    bool, typer.Option("--pcap", help="Write this side's packets to packets-SIDE.pcapng, for Wireshark; needs --out.")
]


@live_app.command()
def send(
    peer: Annotated[str, typer.Argument(metavar="ADDRESS:PORT", help="Address of `tidegate live receive`.")],
    key: Key,
    scenario: Annotated[
        str | None,
        typer.Option(
            help="Scenario, by file or name, whose subject is sent; `tidegate gap` simulates it.",
            autocompletion=scenarios,
        ),
    ] = None,
    controller: Annotated[
        str | None,
        typer.Option(
            help="Controller, such as gcc or python:mine.py:Mine; by default the scenario's.",
            autocompletion=complete_controllers,
        ),
    ] = None,
    duration: Annotated[
        str | None, typer.Option(help="Duration of the call, such as 30s; by default the scenario's.")
    ] = None,
    seed: Seed = None,
    record: Record = None,
    set_: Sets = [],  # noqa: B006
    media: Media = None,
    max_rate: MaxRate = "20Mbps",
    bind: Annotated[
        str | None, typer.Option(metavar="ADDRESS:PORT", help="Local address and port; by default any free port.")
    ] = None,
    out: RunFolder = None,
    pcap: Pcap = False,
    as_json: AsJson = False,
) -> None:
    """Send media to `tidegate live receive` on another machine, under a controller.

    Tables and folder are as from `tidegate run`, made of both sides' records. With --media CLIP the video is real, and
    judged afterwards. Ctrl-C ends the call on both sides, with results.

    Example: tidegate live send 192.0.2.1:5004 --key call.key --controller gcc --duration 30s --out sent
    """
    from tidegate.results.folders import check_folder
    from tidegate.runs import RUN_FILE, sockets
    from tidegate.scenario.variants import with_controller

    check_record(record, media)
    _check_pcap(pcap, out)
    call = sockets.scenario_of(scenario, changes(set_, duration=duration))
    if controller is not None:
        call = with_controller(call, controller)
    rate = _rate(max_rate)
    if bind is not None:
        sockets.address(bind)
    sockets.peer_address(peer)
    secret = sockets.read_key(key)
    if out is not None:
        check_folder(out, RUN_FILE)
    if scenario is not None:
        say_what_code_is_run(scenario, call.code)
    if media is not None:
        call, record = _fed(call, media, with_bar=not as_json), "packets"
    with _capturing(pcap, "sender") as file:
        with results_only(), _watched(f"to {peer}", with_bar=not as_json) as ask:
            run = sockets.send(
                call, peer, secret, max_rate=rate, bind=bind, seed=seed, record=record, progress=ask, capture=file
            )
        if media is not None:
            run = _judged(run, media, with_bar=not as_json)
        _finish(run, out, file, as_json=as_json, partner=peer)


@live_app.command()
def receive(
    bind: Annotated[str, typer.Option(metavar="ADDRESS:PORT", help="Address and port of this machine to listen on.")],
    key: Key,
    wait: Annotated[
        str | None, typer.Option(help="Maximum wait for a call, such as 60s; by default without end.")
    ] = None,
    max_rate: MaxRate = "20Mbps",
    out: RunFolder = None,
    pcap: Pcap = False,
    as_json: AsJson = False,
) -> None:
    """Wait for a call of `tidegate live send`, receive its media, and send feedback.

    The command answers one call and ends with it. Its tables and folder, too, are made of both sides' records.

    Example: tidegate live receive --bind 0.0.0.0:5004 --key call.key --out received
    """
    from tidegate.results.folders import check_folder
    from tidegate.runs import RUN_FILE, sockets
    from tidegate.units import Duration

    _check_pcap(pcap, out)
    rate = _rate(max_rate)
    sockets.address(bind)
    with located("--wait"):
        patience = None if wait is None else Duration.parse(wait).seconds
    secret = sockets.read_key(key)
    if out is not None:
        check_folder(out, RUN_FILE)
    with _capturing(pcap, "receiver") as file:
        with results_only(), _watched(f"at {bind}", with_bar=not as_json, waits=True, patience=patience) as ask:
            run = sockets.receive(bind, secret, max_rate=rate, progress=ask, capture=file)
        _finish(run, out, file, as_json=as_json, partner="the sender")


def gap(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of a `live send` or `live receive`.")],
    scenario: Annotated[
        str | None,
        typer.Option(
            help="Scenario of the network, by file or name; by default the call's own.", autocompletion=scenarios
        ),
    ] = None,
    set_: Sets = [],  # noqa: B006
    exit_code: Annotated[bool, typer.Option("--exit-code", help="Exit with 1 if a limit exceeded.")] = False,
    as_json: AsJson = False,
) -> None:
    """Simulate a call that went over a socket, and print both side by side.

    The simulation has the same scenario, seed and settings. Limits: the median targets differ by at most 10 %, the
    losses by at most 1 percentage point.

    Example: tidegate gap sent --scenario lte-one-call
    """
    from tidegate.comparison import gap as gaps
    from tidegate.output.terminal import console, print_rows
    from tidegate.runs import Run
    from tidegate.scenario import Scenario

    live = Run.load(folder)
    changed = changes(set_)
    network: Scenario | None
    if scenario is not None:
        network = gaps.with_media_of(live, Scenario.load(scenario, changed))
    else:
        network = live.scenario.with_changes(changed) if changed else None
    say_what_code_is_run(str(folder), live.scenario.code)
    with results_only():
        comparison = gaps.gap(live, network)
    if as_json:
        print_json(comparison.to_data())
    else:
        held = {True: "kept", False: "exceeded", None: ""}
        rows = (
            (line.label, line.show(line.live), line.show(line.simulated), line.limit, held[line.within])
            for line in comparison.lines
        )
        print_rows(["", "live", "simulated", "limit", ""], rows)
        if network is None and live.name == "call":
            console().print("\nthe simulation assumes 1 Gbit/s without delay; give the real network with --scenario")
    say_remarks(comparison.simulated.remarks, comparison.simulated.scenario)
    if exit_code and not comparison.within:
        raise typer.Exit(1)


def _rate(text: str) -> Any:
    from tidegate.runs import sockets
    from tidegate.units import Rate

    with located("--max-rate"):
        rate = Rate.parse(text)
    return sockets.capped(rate)


def _check_pcap(pcap: bool, out: Path | None) -> None:
    if pcap and out is None:
        raise InputError("--pcap: no folder is given for the file; add --out DIR")


@contextmanager
def _capturing(pcap: bool, side: str) -> Iterator[Path | None]:
    """Yields a temporary path for a capture file, until the run's folder has it."""
    from tidegate.runs import capture_file

    with (
        tempfile.TemporaryDirectory(prefix="tidegate-", ignore_cleanup_errors=True) if pcap else nullcontext() as folder
    ):
        yield None if folder is None else Path(folder) / capture_file(side)


def _fed(scenario: Scenario, media: str, *, with_bar: bool) -> Scenario:
    """The scenario with a clip, which is encoded before the call."""
    from tidegate.media.feeding import with_clip, with_encoder
    from tidegate.output.terminal import progress
    from tidegate.video import openh264
    from tidegate.video.settings import Settings

    say_what_media_lacks()
    settings = Settings.parse(media)
    if settings.codec == openh264.NAME:
        return with_encoder(scenario, settings)
    with (
        stoppable("stopped; no call was made"),
        interruptible(),
        progress(f"encode {settings.clip}", visible=with_bar) as tell,
    ):
        return with_clip(scenario, settings, progress=tell)[0]


def _judged(run: Run, media: str, *, with_bar: bool) -> Run:
    """The run with judged pictures, if the receiver has sent its record of arrivals."""
    from tidegate.media.judge import judge
    from tidegate.output.terminal import progress
    from tidegate.video.settings import Settings

    if run.about["live"]["other"] is None:
        say("warning: the pictures were not judged: the receiver's record of arrivals is missing")
        return run
    try:
        with interruptible(), progress("judge the pictures", visible=with_bar) as tell:
            return judge(run, vmaf_every=Settings.parse(media).vmaf_every, progress=tell).judged_run()
    except (InputError, KeyboardInterrupt) as error:
        say(f"warning: the pictures were not judged: {str(error) or 'stopped'}")
        return run


@contextmanager
def _watched(
    endpoint: str, *, with_bar: bool, waits: bool = False, patience: float | None = None
) -> Iterator[Callable[[str, float], bool]]:
    """Shows the progress of a call, and yields the function that tells the engine whether to go on."""
    from tidegate.output.terminal import progress

    start = time.monotonic()
    announced: set[str] = set()
    lines = {"media": f"the call {endpoint} has begun"} | (
        {"waiting": f"waiting for a call {endpoint}"} if waits else {}
    )
    with interruptible(), progress(f"call {endpoint}", visible=with_bar) as tell:

        def ask(phase: str, share: float) -> bool:
            if phase in lines and phase not in announced:
                announced.add(phase)
                say(lines[phase])
            if tell is not None and phase == "media":
                tell(share)
            return patience is None or phase != "waiting" or time.monotonic() - start < patience

        yield ask


def _finish(run: Run, out: Path | None, capture: Path | None, *, as_json: bool, partner: str) -> None:
    """Saves and prints a call; prints the reason if it ended early or without the other side's record."""
    from tidegate.output.terminal import console
    from tidegate.runs import sockets

    live = run.about["live"]
    if why := live["capture_failed"]:
        say(f"warning: {capture.name if capture else 'the capture'} is not kept, because it is incomplete: {why}")
        capture = None
    if out is not None:
        run.save(out, also=[capture] if capture else [])
    if as_json:
        print_json({**run.to_data(), "live": live})
    else:
        print_run(run)
        _print_health(live)
    say_remarks(run.remarks)
    if out is not None and not as_json:
        console().print(f"\nwritten to {out}")
    recorded = f"; the recording of the call until then is in {out}" if out is not None else ""
    match live["why"]:
        case "stopped":
            raise typer.Exit(_STOPPED)
        case "silent":
            ended = f"so the call ended after {live['lasted_s']:.1f} s{recorded}"
            raise RunError(f"no packet came from {partner} for {sockets.SILENCE} s, {ended}")
        case "ended":
            say(f"{partner} ended the call after {live['lasted_s']:.1f} s")
    if live["other"] is None:
        why = f"the record of {partner} did not come: it gave up, or the way from it is blocked"
        raise RunError(f"the call is over, but {why}{recorded}")


def _print_health(live: dict[str, Any]) -> None:
    from tidegate.output.terminal import console, print_rows

    to = console()
    to.print()
    mine, theirs = ("sender", "receiver") if live["side"] == "sender" else ("receiver", "sender")
    rows = [_health(side, live[key]) for side, key in ((mine, "own"), (theirs, "other")) if live[key] is not None]
    headers = ["side", "wakeups", "late p50 (ms)", "p99", "worst", "judged", "unsent", "capped", "ignored"]
    print_rows(headers, rows)
    for side, key in ((mine, "own"), (theirs, "other")):
        if live[key] is not None and any(live[key]["ignored"].values()):
            to.print(f"the {side} ignored datagrams: {_reasons(live[key]['ignored'])}")
    if live["least_round_trip_ms"] is not None:
        round_trip = f"{live['least_round_trip_ms']:.3f} ms"
        to.print(f"\nminimum round trip {round_trip}; one-way delays assume that both directions are equally fast")
        to.print(_clocks(live))
    to.print(f"quiet means: wakeups are late by at most {_NOISY_MS:.0f} ms at the 99th percentile")


def _health(side: str, health: dict[str, Any]) -> list[str]:
    late, p99 = [f"{late:.2f}" for late in health["late_ms"]], health["late_ms"][1]
    counts = health["unsent"], health["capped"], sum(health["ignored"].values())
    return [side, str(health["wakeups"]), *late, "quiet" if p99 <= _NOISY_MS else "noisy", *map(str, counts)]


def _reasons(ignored: Mapping[str, int]) -> str:
    """Counts of ignored datagrams by reason, as text."""
    return ", ".join(f"{count} {_IGNORED[reason]}" for reason, count in ignored.items() if count)


def _clocks(live: dict[str, Any]) -> str:
    """A sentence on the alignment of the two sides' clocks."""
    ahead, ppm = live["clock_ahead_ms"], live["clock_drift_ppm"]
    offset = f"the receiver's clock began {abs(ahead):.3f} ms {'before' if ahead >= 0 else 'after'} the sender's"
    if ppm is None:
        return offset
    correction = "is removed" if live["clock_drift_removed"] else "is less than 1 ms in all and is not removed"
    return f"{offset} and runs {abs(ppm):.1f} ppm too {'slow' if ppm > 0 else 'fast'}; the drift {correction}"
