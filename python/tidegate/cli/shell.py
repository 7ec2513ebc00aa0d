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
            help="What runs at the two ends, each with its arguments; more come beside them in turn, up to eight. With "
            "one, your shell is at the other end; with none it is at end A, and --enter leads to end B.",
        ),
    ] = [],  # noqa: B006
    enter: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Start a shell in a session that is on, at its end B; NAME:A is another."),
    ] = None,
    call: Annotated[
        str | None,
        typer.Option(metavar="FLOW", help="The flow that the programs stand for; the first with media by default."),
    ] = None,
    duration: Annotated[
        str | None,
        typer.Option(help="The session ends then: by default with the scenario, and after an hour with a shell."),
    ] = None,
    seed: Seed = None,
    record: Record = None,
    realtime: Annotated[
        str, typer.Option(help="auto: a real-time priority where it may be had; off: none.", metavar="auto|off")
    ] = "auto",
    set_: Sets = [],  # noqa: B006
    out: Annotated[Path | None, typer.Option(help="Folder for the run and what is needed to replay it.")] = None,
    pcap: Annotated[
        bool,
        typer.Option("--pcap", help="Write packets-A.pcapng and packets-B.pcapng, what each end saw; needs --out."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Run real programs on the links of a scenario, by the wall clock.

    Two network namespaces (no root needed; Linux) are joined by the scenario's links: queues, losses, jitter and cross
    traffic are those of a run. The programs stand where the scenario's call was: A sends where its sender was. Each
    finds its own address in TIDEGATE_ADDRESS (10.77.0.1, 10.77.0.2), the other one in TIDEGATE_PEER. A third program
    (C) is beside A and a fourth (D) beside B, each in a namespace of its own, and all share the links. The session
    ends when all programs have ended (one of a pair has 5 s when the other is done), or your shell has, when the
    scenario's duration is over, or by Ctrl-C. What arrived is then done once more in virtual time, which gives the
    results of any run.

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
    who = _programs(programs)
    from tidegate.output.terminal import console
    from tidegate.results.folders import check_folder
    from tidegate.runs import RUN_FILE
    from tidegate.scenario import Scenario
    from tidegate.shell import session

    at_terminal = "shell" in (who.a, who.b)
    changed = changes(set_, duration=duration)
    made = Scenario.load(scenario, {"duration": "1h", **changed} if at_terminal else changed)
    if out is not None:
        check_folder(out, RUN_FILE)
    say_what_code_is_run(scenario, made.code)
    if at_terminal:
        _invite(made.name, who)
    priority: Literal["auto", "off"] = "off" if realtime == "off" else "auto"
    at_ends = session(made, who, call=call, seed=seed, record=record, realtime=priority, pcap=pcap)
    with results_only(), at_ends as done:
        if out is not None:
            done.save(out)
    if as_json:
        kind, against = done.verdict
        about = {key: value for key, value in done.about.items() if key != "flows"}
        session_json = {**about, "verdict": kind, "against": against, "replay_differs": done.differs}
        print_json({"session": session_json, **done.run.to_data()})
    else:
        print_run(done.run)
        _print_session(done)
        if out is not None:
            console().print(f"\nwritten to {out}")
    say_remarks(done.run.remarks, made)
    _end(done)


def _programs(words: Sequence[str]) -> Programs:
    """What is at the ends."""
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
    a, *others = parts
    return Programs(a, others[0] if others else "shell", others[1:])


def _invite(name: str, who: Programs) -> None:
    where = "A" if who.a == "shell" else "B"
    other = f"; the other end: tidegate shell --enter {name}" if who.b is None else ""
    say(f"your shell is at end {where}; the session ends with it{other}")


def _enter(name: str, words: Sequence[str]) -> NoReturn:
    """Becomes a shell, or a program, in a session that is on."""
    from tidegate.shell import check_surroundings
    from tidegate.shell.entering import command
    from tidegate.shell.sessions import user_shell

    check_surroundings("nsenter")
    entering, told = command(name)
    os.execvpe(entering[0], [*entering, *(words or user_shell())], {**os.environ, **told})  # noqa: S606


def _print_session(done: Session) -> None:
    from tidegate.output.terminal import console

    to, about = console(), done.about
    kind, against = done.verdict
    names = {6: "tcp", 17: "udp", 1: "icmp"}
    to.print()
    for number, flow in enumerate(about["flows"], 1):
        protocol = names.get(flow["protocol"], f"protocol {flow['protocol']}")
        ends = [f"{flow[f'address_{side}']} port {flow[f'port_{side}']}".removesuffix(" port 0") for side in "ab"]
        to.print(f"A-{number} and B-{number}: {protocol}, {ends[0]} and {ends[1]}")
    for stream in done.streams:
        to.print(str(stream))
    to.print(f"written after due: {done.lateness}; {kind}" + "".join(f"\n  {one}" for one in against))
    if about["clamped"]:
        most = about["clamped_by"]["worst_ms"]
        to.print(f"{about['clamped']} of {about['packets']} packets entered the model late, by {most:.3f} ms at most")
    same = "each due time and each drop is the same in the replay"
    to.print(same if done.differs is None else f"the replay differs: {done.differs}")


def _end(done: Session) -> None:
    """Says how it ended, if not well, and with which code."""
    about = done.about
    if about["why"] == "behind":
        right = "expected a scenario with less traffic, or a faster or less busy machine"
        raise InputError(f"this machine is too slow for it: the model fell a second behind the clock; {right}")
    if about["interrupted"]:
        raise typer.Exit(130)
    bad = 0
    for name, program in about["programs"].items():
        status = program["status"]
        if status and not program["stopped"]:
            how = f"ended with {status}" if status > 0 else f"was killed by signal {-status}"
            say(f"program {name} ({' '.join(program['argv'])}) {how}")
            bad = 1
    if bad:
        raise typer.Exit(1)
