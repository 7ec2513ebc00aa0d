"""The commands live send, live receive and gap: our endpoint on a socket."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tidegate._signals import raised
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
    help="Calls of our own endpoints over UDP, between two machines.", no_args_is_help=True, rich_markup_mode=None
)

_STOPPED = 130
_NOISY_MS = 5.0  # lateness at the 99th percentile from which on a result says more of the machine than of the network

Key = Annotated[
    Path, typer.Option("--key", metavar="FILE", help="A file with what both sides hold: 16 bytes or more, mode 0600.")
]
MaxRate = Annotated[str, typer.Option("--max-rate", metavar="RATE", help="More is never sent: from 50kbps to 1Gbps.")]
Pcap = Annotated[
    bool, typer.Option("--pcap", help="Write what this side saw to packets-SIDE.pcapng, for Wireshark; needs --out.")
]


@live_app.command()
def send(
    peer: Annotated[str, typer.Argument(metavar="ADDRESS:PORT", help="Where `tidegate live receive` is.")],
    key: Key,
    scenario: Annotated[
        str | None,
        typer.Option(
            help="Whose subject is sent, and what `tidegate gap` simulates: a file or a name.", autocompletion=scenarios
        ),
    ] = None,
    controller: Annotated[
        str | None,
        typer.Option(help="Instead of the scenario's: gcc, python:mine.py:Mine.", autocompletion=complete_controllers),
    ] = None,
    duration: Annotated[str | None, typer.Option(help="How long, such as 30s.")] = None,
    seed: Seed = None,
    record: Record = None,
    set_: Sets = [],  # noqa: B006
    media: Media = None,
    max_rate: MaxRate = "20Mbps",
    bind: Annotated[
        str | None, typer.Option(metavar="ADDRESS:PORT", help="From where; any free port by default.")
    ] = None,
    out: RunFolder = None,
    pcap: Pcap = False,
    as_json: AsJson = False,
) -> None:
    """Send media to `tidegate live receive` on another machine, under a controller.

    The tables and the folder are those of `tidegate run`, from what both sides recorded. With --media CLIP the video is
    real, and judged afterwards. Ctrl-C ends the call on both sides, with results.

    Example: tidegate live send 192.0.2.1:5004 --key call.key --controller gcc --duration 30s --out sent
    """
    from tidegate.results.folders import check_folder
    from tidegate.runs import RUN_FILE, sockets
    from tidegate.scenario.variants import with_controller

    check_record(record, media)
    _check_pcap(pcap, out)
    made = sockets.scenario_of(scenario, changes(set_, duration=duration))
    if controller is not None:
        made = with_controller(made, controller)
    rate = _rate(max_rate)
    if bind is not None:
        sockets.address(bind)
    sockets.peer_address(peer)
    secret = sockets.read_key(key)
    if out is not None:
        check_folder(out, RUN_FILE)
    if scenario is not None:
        say_what_code_is_run(scenario, made.code)
    if media is not None:
        made, record = _fed(made, media, shown=not as_json), "packets"
    with _capturing(pcap, "sender") as file:
        with results_only(), _watched(f"to {peer}", shown=not as_json) as ask:
            done = sockets.send(
                made, peer, secret, max_rate=rate, bind=bind, seed=seed, record=record, progress=ask, capture=file
            )
        if media is not None:
            done = _judged(done, media, shown=not as_json)
        _finish(done, out, file, as_json=as_json, other=peer)


@live_app.command()
def receive(
    bind: Annotated[str, typer.Option(metavar="ADDRESS:PORT", help="At which address and port of this machine.")],
    key: Key,
    wait: Annotated[
        str | None, typer.Option(help="How long to wait for a call, such as 60s; for ever by default.")
    ] = None,
    max_rate: MaxRate = "20Mbps",
    out: RunFolder = None,
    pcap: Pcap = False,
    as_json: AsJson = False,
) -> None:
    """Wait for a call of `tidegate live send`, receive its media, and send feedback.

    It answers one call and ends with it; what both sides recorded is in its tables and its folder, too.

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
        with results_only(), _watched(f"at {bind}", shown=not as_json, waits=True, patience=patience) as ask:
            done = sockets.receive(bind, secret, max_rate=rate, progress=ask, capture=file)
        _finish(done, out, file, as_json=as_json, other="the sender")


def gap(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="What `live send` or `live receive` wrote.")],
    scenario: Annotated[
        str | None,
        typer.Option(help="What the network was, if not that of the call's own scenario.", autocompletion=scenarios),
    ] = None,
    set_: Sets = [],  # noqa: B006
    exit_code: Annotated[bool, typer.Option("--exit-code", help="Exit with 1 when a limit does not hold.")] = False,
    as_json: AsJson = False,
) -> None:
    """Simulate a call that went over a socket, and print both side by side.

    The same scenario, seed and settings, in virtual time. Limits: the median target within 10 %, the loss within
    1 point.

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
        found = gaps.gap(live, network)
    if as_json:
        print_json(found.to_data())
    else:
        held = {True: "holds", False: "does not hold", None: ""}
        rows = (
            (line.label, line.show(line.live), line.show(line.simulated), line.limit, held[line.within])
            for line in found.lines
        )
        print_rows(["", "live", "simulated", "limit", ""], rows)
        if network is None and live.name == "call":
            console().print("\nthe network is taken as 1 Gbps without delay; --scenario says what it was")
    say_remarks(found.simulated.remarks, found.simulated.scenario)
    if exit_code and not found.within:
        raise typer.Exit(1)


def _rate(text: str) -> Any:
    from tidegate.runs import sockets
    from tidegate.units import Rate

    with located("--max-rate"):
        rate = Rate.parse(text)
    return sockets.capped(rate)


def _check_pcap(pcap: bool, out: Path | None) -> None:
    if pcap and out is None:
        raise InputError("--pcap: needs a folder for the file: --out DIR")


@contextmanager
def _capturing(pcap: bool, side: str) -> Iterator[Path | None]:
    """A place for a capture file until the run's folder has it."""
    from tidegate.runs import capture_file

    with tempfile.TemporaryDirectory(prefix="tidegate-", ignore_cleanup_errors=True) if pcap else nullcontext() as at:
        yield None if at is None else Path(at) / capture_file(side)


def _fed(made: Scenario, media: str, *, shown: bool) -> Scenario:
    """The scenario with a clip, encoded before anybody is called."""
    from tidegate.media.feeding import with_clip, with_encoder
    from tidegate.output.terminal import progress
    from tidegate.video import openh264
    from tidegate.video.settings import Settings

    say_what_media_lacks()
    settings = Settings.parse(media)
    if settings.codec == openh264.NAME:
        return with_encoder(made, settings)
    with stoppable("stopped; nobody was called"), raised(), progress(f"encode {settings.clip}", shown=shown) as tell:
        return with_clip(made, settings, progress=tell)[0]


def _judged(done: Run, media: str, *, shown: bool) -> Run:
    """The run with what was seen of the clip, if the receiver has told what arrived."""
    from tidegate.media.judge import judge
    from tidegate.output.terminal import progress
    from tidegate.video.settings import Settings

    if done.about["live"]["other"] is None:
        say("warning: the pictures were not judged: what arrived is not known")
        return done
    try:
        with raised(), progress("judge the pictures", shown=shown) as tell:
            return judge(done, vmaf_every=Settings.parse(media).vmaf_every, progress=tell).judged_run()
    except (InputError, KeyboardInterrupt) as error:
        say(f"warning: the pictures were not judged: {str(error) or 'stopped'}")
        return done


@contextmanager
def _watched(
    what: str, *, shown: bool, waits: bool = False, patience: float | None = None
) -> Iterator[Callable[[str, float], bool]]:
    """Shows how far a call is, and gives what the engine asks whether to go on."""
    from tidegate.output.terminal import progress

    begun = time.monotonic()
    told: set[str] = set()
    lines = {"media": f"the call {what} has begun"} | ({"waiting": f"waiting for a call {what}"} if waits else {})
    with raised(), progress(f"call {what}", shown=shown) as tell:

        def ask(phase: str, share: float) -> bool:
            if phase in lines and phase not in told:
                told.add(phase)
                say(lines[phase])
            if tell is not None and phase == "media":
                tell(share)
            return patience is None or phase != "waiting" or time.monotonic() - begun < patience

        yield ask


def _finish(done: Run, out: Path | None, capture: Path | None, *, as_json: bool, other: str) -> None:
    """Saves and prints a call; says how it ended where that is not its time."""
    from tidegate.output.terminal import console

    told = done.about["live"]
    if why := told["capture_failed"]:
        say(f"warning: {capture.name if capture else 'the capture'} is not kept, for it is not whole: {why}")
        capture = None
    if out is not None:
        done.save(out, also=[capture] if capture else [])
    if as_json:
        print_json({**done.to_data(), "live": told})
    else:
        print_run(done)
        _print_health(told)
    say_remarks(done.remarks)
    if out is not None and not as_json:
        console().print(f"\nwritten to {out}")
    kept = f"; what was recorded until then is in {out}" if out is not None else ""
    match told["why"]:
        case "stopped":
            raise typer.Exit(_STOPPED)
        case "silent":
            raise RunError(f"nothing came from {other} for 2 s, so the call ended after {told['lasted_s']:.1f} s{kept}")
        case "ended":
            say(f"{other} ended the call after {told['lasted_s']:.1f} s")


def _print_health(told: dict[str, Any]) -> None:
    from tidegate.output.terminal import console, print_rows

    to = console()
    to.print()
    mine, theirs = ("sender", "receiver") if told["side"] == "sender" else ("receiver", "sender")
    rows = [_health(side, told[of]) for side, of in ((mine, "own"), (theirs, "other")) if told[of] is not None]
    heads = ["side", "wakeups", "late p50 (ms)", "p99", "worst", "judged", "unsent", "capped", "ignored"]
    print_rows(heads, rows)
    if told["least_round_trip_ms"] is not None:
        least = f"{told['least_round_trip_ms']:.3f} ms"
        to.print(f"\nleast round trip {least}; one-way delays take both directions to be equally fast")
        to.print(_clocks(told))
    to.print(f"quiet: wakeups late by at most {_NOISY_MS:.0f} ms at the 99th percentile")


def _health(side: str, health: dict[str, Any]) -> list[str]:
    late, p99 = [f"{late:.2f}" for late in health["late_ms"]], health["late_ms"][1]
    counts = health["unsent"], health["capped"], sum(health["ignored"].values())
    return [side, str(health["wakeups"]), *late, "quiet" if p99 <= _NOISY_MS else "noisy", *map(str, counts)]


def _clocks(told: dict[str, Any]) -> str:
    """How the times of both sides were brought together."""
    ahead, ppm = told["clock_ahead_ms"], told["clock_drift_ppm"]
    said = f"the receiver's clock began {abs(ahead):.3f} ms {'before' if ahead >= 0 else 'after'} the sender's"
    if ppm is None:
        return said
    what = "is taken out" if told["clock_drift_removed"] else "comes to less than 1 ms and is left in"
    return f"{said} and goes {abs(ppm):.1f} ppm too {'slow' if ppm > 0 else 'fast'}, which {what}"
