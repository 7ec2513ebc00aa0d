"""The command shell: real programs on a scenario's links."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tidegate.cli.options import AsJson, ScenarioName, Sets, changes, say_what_code_is_run
from tidegate.cli.terminal import print_json, results_only, say, warn
from tidegate.errors import InputError

if TYPE_CHECKING:
    from tidegate.shell import Session


def add_to(app: typer.Typer) -> None:
    """Puts the command on the command line."""
    app.command()(shell)


def shell(
    scenario: ScenarioName,
    programs: Annotated[
        list[str],
        typer.Argument(
            metavar="-- PROGRAM A -- PROGRAM B",
            help="What runs at the two ends, each with its arguments.",
        ),
    ],
    call: Annotated[
        str | None,
        typer.Option(metavar="FLOW", help="The flow that the programs stand for; the first with media by default."),
    ] = None,
    duration: Annotated[str | None, typer.Option(help="Instead of the scenario's: the session ends then.")] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Instead of the scenario's.")] = None,
    record: Annotated[str | None, typer.Option(help="How much is kept: summary, series, or packets.")] = None,
    realtime: Annotated[
        str, typer.Option(help="auto: a real-time priority where it may be had; off: none.", metavar="auto|off")
    ] = "auto",
    set_: Sets = [],  # noqa: B006
    out: Annotated[Path | None, typer.Option(help="Folder for the run and what is needed to replay it.")] = None,
    as_json: AsJson = False,
) -> None:
    """Run real programs on the links of a scenario, by the wall clock.

    Two network namespaces (no root needed; Linux) are joined by the scenario's links: queues, losses, jitter and cross
    traffic are those of a run. The programs stand where the scenario's call was: A sends where its sender was. Each
    finds its own address in TIDEGATE_ADDRESS (10.77.0.1, 10.77.0.2), the other one in TIDEGATE_PEER. The session
    ends when both programs have ended (one has 5 s when the other is done), when the scenario's duration is over, or
    by Ctrl-C. What arrived is then done once more in virtual time, which gives the results of any run.

    Example: tidegate shell home-broadband --duration 5s -- ping -c 3 10.77.0.2 -- sleep 4
    """
    if record not in {None, "summary", "series", "packets"}:
        raise InputError(f"--record: found {record}; expected summary, series or packets")
    if realtime not in {"auto", "off"}:
        raise InputError(f"--realtime: found {realtime}; expected auto or off")
    a, b = _programs(programs)
    from tidegate.cli.printing import print_run
    from tidegate.cli.tables import console
    from tidegate.results._folders import check_folder
    from tidegate.running import RUN_FILE
    from tidegate.scenario import Scenario
    from tidegate.shell import Programs, session

    longer = {} if duration is None else {"duration": duration}
    made = Scenario.load(scenario, {**changes(set_), **longer})
    if out is not None:
        check_folder(out, RUN_FILE)
    say_what_code_is_run(scenario, made.code)
    with (
        results_only(),
        session(
            made, Programs(a, b), call=call, seed=seed, record=record, realtime="off" if realtime == "off" else "auto"
        ) as done,
    ):
        if out is not None:
            done.save(out)
    if as_json:
        kind, against = done.verdict
        about = {key: value for key, value in done.about.items() if key != "flows"}
        session_json = {**about, "verdict": kind, "against": against, "replay_differs": done.differs}
        print_json({"digest": done.run.digest, "seed": done.run.seed, "session": session_json, **done.run.summary})
    else:
        print_run(done.run)
        _print_session(done)
        if out is not None:
            console().print(f"\nwritten to {out}")
    warn(done.run.warnings, made)
    _end(done)


def _programs(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """The two command lines."""
    parts: list[list[str]] = [[]]
    for word in words:
        if word == "--":
            parts.append([])
        else:
            parts[-1].append(word)
    if len(parts) == 2 and all(parts):  # noqa: PLR2004
        return parts[0], parts[1]
    found = "an empty program" if not all(parts) else "1 program" if len(parts) == 1 else f"{len(parts)} programs"
    raise InputError(f"found {found}; expected two: tidegate shell SCENARIO -- PROGRAM A -- PROGRAM B")


def _print_session(done: Session) -> None:
    from tidegate.cli.tables import console

    to, about = console(), done.about
    kind, against = done.verdict
    names = {6: "tcp", 17: "udp", 1: "icmp"}
    to.print()
    for number, flow in enumerate(about["flows"], 1):
        protocol = names.get(flow["protocol"], f"protocol {flow['protocol']}")
        ports = f", A's port {flow['port_a']}, B's port {flow['port_b']}" if flow["port_a"] or flow["port_b"] else ""
        to.print(f"A-{number} and B-{number}: {protocol}{ports}")
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
