"""The command shell: real programs on a scenario's links."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NoReturn

import typer

from tidegate.cli.options import (
    AsJson,
    Record,
    ScenarioIfAny,
    Seed,
    Sets,
    captured,
    changes,
    check_record,
    say_what_code_is_run,
)
from tidegate.cli.terminal import print_json, print_run, results_only, say, say_remarks
from tidegate.errors import InputError

if TYPE_CHECKING:
    from tidegate.shell import Programs, Session


def shell(
    scenario: ScenarioIfAny = None,
    programs: Annotated[
        list[str],
        typer.Argument(
            metavar="-- PROGRAM A -- PROGRAM B ...",
            help="Programs at the two ends, each with its arguments; further ones join A and B in turn, up to eight in "
            "all. With one program, your shell is at the other end; with none it is at end A, and --enter leads to B.",
        ),
    ] = [],  # noqa: B006
    enter: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Start a shell at end B of a running session; NAME:A for end A."),
    ] = None,
    call: Annotated[
        str | None,
        typer.Option(metavar="FLOW", help="Flow that the programs replace; by default the first with media."),
    ] = None,
    duration: Annotated[
        str | None,
        typer.Option(help="Duration of the session; by default the scenario's, and an hour with a shell."),
    ] = None,
    seed: Seed = None,
    record: Record = None,
    realtime: Annotated[
        str, typer.Option(help="Real-time priority: auto takes it if allowed, off does not.", metavar="auto|off")
    ] = "auto",
    set_: Sets = [],  # noqa: B006
    out: Annotated[Path | None, typer.Option(help="Folder for the run and the files that replay it.")] = None,
    pcap: Annotated[
        bool,
        typer.Option("--pcap", help="Write each end's packets to packets-A.pcapng and packets-B.pcapng; needs --out."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Run real programs on the links of a scenario, by the wall clock.

    Two network namespaces (no root needed; Linux) are joined by the scenario's links: queues, losses, jitter and cross
    traffic are those of a run. The programs replace the scenario's call: A is at its sender's end, B at its receiver's.
    Each program finds its own address in TIDEGATE_ADDRESS (10.77.0.1, 10.77.0.2), and the other one in TIDEGATE_PEER. A
    third program (C) is beside A and a fourth (D) beside B, each in its own namespace; all share the links. The session
    ends when all programs or your shell have ended (when one of a pair has ended, the other has 5 s), when the
    scenario's duration is over, or by Ctrl-C. The packets are then replayed in virtual time, which gives the results of
    any run.

    Example: tidegate shell home-broadband --duration 5s -- ping -c 3 10.77.0.2 -- sleep 4
    """
    if enter is not None:
        _enter(enter, [*([scenario] if scenario else []), *programs])
    if scenario is None:
        raise InputError("found no scenario; expected tidegate shell SCENARIO -- PROGRAM A -- PROGRAM B")
    captured(pcap, out)
    check_record(record)
    if realtime not in {"auto", "off"}:
        raise InputError(f"--realtime: found {realtime}; expected auto or off")
    ends = _programs(programs)
    from tidegate.output.terminal import console
    from tidegate.results.folders import check_folder
    from tidegate.runs import RUN_FILE
    from tidegate.scenario import Scenario
    from tidegate.shell import check_environment, session

    at_terminal = "shell" in (ends.a, ends.b)
    changed = changes(set_, duration=duration)
    loaded = Scenario.load(scenario, {"duration": "1h", **changed} if at_terminal else changed)
    if out is not None:
        check_folder(out, RUN_FILE)
    say_what_code_is_run(scenario, loaded.code)
    if at_terminal:
        check_environment()
        _invite(loaded.name, ends)
    priority: Literal["auto", "off"] = "off" if realtime == "off" else "auto"
    at_ends = session(loaded, ends, call=call, seed=seed, record=record, realtime=priority, pcap=pcap)
    with results_only(), at_ends as finished:
        if out is not None:
            finished.save(out)
    if as_json:
        kind, against = finished.verdict
        about = {key: value for key, value in finished.about.items() if key != "flows"}
        session_json = {**about, "verdict": kind, "against": against, "replay_differs": finished.differs}
        print_json({"session": session_json, **finished.run.to_data()})
    else:
        print_run(finished.run)
        _print_session(finished)
        if out is not None:
            console().print(f"\nwritten to {out}")
    say_remarks(finished.run.remarks, loaded)
    _end(finished)


def _programs(words: Sequence[str]) -> Programs:
    """Parses the programs at the ends."""
    from tidegate.shell import Programs

    if not words:
        return Programs("shell", None)
    parts: list[list[str]] = [[]]
    for word in words:
        if word == "--":
            parts.append([])
        else:
            parts[-1].append(word)
    if not all(parts):
        raise InputError(
            "found an empty program; expected tidegate shell SCENARIO -- PROGRAM A -- PROGRAM B, each with arguments"
        )
    a, *rest = parts
    return Programs(a, rest[0] if rest else "shell", rest[1:])


def _invite(name: str, ends: Programs) -> None:
    end = "A" if ends.a == "shell" else "B"
    hint = f"; for a shell at the other end: tidegate shell --enter {name}" if ends.b is None else ""
    say(f"your shell is at end {end}; the session ends with this shell{hint}")


def _enter(name: str, words: Sequence[str]) -> NoReturn:
    """Replaces this process by a shell or a program in a running session."""
    from tidegate.shell import check_environment
    from tidegate.shell.entering import command
    from tidegate.shell.sessions import user_shell

    check_environment("nsenter")
    prefix, variables = command(name)
    os.execvpe(prefix[0], [*prefix, *(words or user_shell())], {**os.environ, **variables})  # noqa: S606


def _print_session(session: Session) -> None:
    from tidegate.output.terminal import console

    to, info = console(), session.about
    kind, against = session.verdict
    names = {6: "tcp", 17: "udp", 1: "icmp"}
    to.print()
    for number, flow in enumerate(info["flows"], 1):
        protocol = names.get(flow["protocol"], f"protocol {flow['protocol']}")
        ends = [f"{flow[f'address_{side}']} port {flow[f'port_{side}']}".removesuffix(" port 0") for side in "ab"]
        to.print(f"A-{number} and B-{number}: {protocol}, {ends[0]} and {ends[1]}")
    if info.get("shared"):
        last = len(info["flows"])
        to.print(f"{info['shared']} packets of further flows count, and queue, as those of A-{last} and B-{last}")
    for stream in session.streams:
        to.print(str(stream))
    to.print(
        f"packets written after their due time: {session.lateness}; {kind}"
        + "".join(f"\n  {reason}" for reason in against)
    )
    if info["clamped"]:
        worst = info["clamped_by"]["worst_ms"]
        to.print(f"{info['clamped']} of {info['packets']} packets entered the model late, by at most {worst:.3f} ms")
    same = "all due times and drops are the same in the replay"
    to.print(same if session.differs is None else f"the replay differs: {session.differs}")


def _end(session: Session) -> None:
    """Prints the reason of a bad end, and exits with its code."""
    info = session.about
    if info["why"] == "behind":
        expected = "expected a scenario with less traffic, or a faster or less busy machine"
        raise InputError(
            f"this machine is too slow for the session: the model fell a second behind the clock; {expected}"
        )
    if info["interrupted"]:
        raise typer.Exit(130)
    bad = 0
    for name, program in info["programs"].items():
        status = program["status"]
        if status and not program["stopped"]:
            how = f"ended with exit code {status}" if status > 0 else f"was killed by signal {-status}"
            say(f"program {name} ({' '.join(program['argv'])}) {how}")
            bad = 1
    if bad:
        raise typer.Exit(1)
