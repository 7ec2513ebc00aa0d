"""The command import."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tidegate._signals import raised
from tidegate.cli.completing import complete_controllers
from tidegate.cli.options import AsJson, Force
from tidegate.cli.terminal import print_json, print_run, say, say_remarks, stoppable


def import_(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            help="RTC event log of libwebrtc (format 2), as Chromium writes it, a capture (pcap, pcapng), or what "
            "getStats said (a dump of webrtc-internals, or a report a line); and that of the other end. May be packed "
            "by gzip.",
        ),
    ],
    out: Annotated[Path, typer.Option(help="Folder for the run: run.json and Parquet tables.")],
    far: Annotated[
        list[Path], typer.Option(metavar="FILE", help="Captures of the other end, where an end has several.")
    ] = [],  # noqa: B006
    same_clock: Annotated[
        bool,
        typer.Option(
            "--same-clock",
            help="Both ends had one clock. Else the far one is set so that the least delay is one both ways.",
        ),
    ] = False,
    replay: Annotated[
        str | None,
        typer.Option(
            metavar="CONTROLLER",
            help="A controller of tidegate's, such as gcc, hears open loop what the near end was told; what it notes "
            "is beside the recorded estimates in the table internals, as replayed_...",
            autocompletion=complete_controllers,
        ),
    ] = None,
    link: Annotated[
        str | None,
        typer.Option(
            metavar="DIR|SCENARIO",
            help="The link was ours: the folder of the tidegate shell session, whose capacity, queues and drops are "
            "joined; or a scenario, whose capacity is.",
        ),
    ] = None,
    trace: Annotated[
        Path | None,
        typer.Option(
            help="Write what the call tells of its link's capacity, a lower bound, as a recorded network (CSV) for "
            "links of scenarios."
        ),
    ] = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Import a recorded call as a run, for report, plots and notebooks.

    What the recording does not tell is absent: the link's capacity, and with one end's log what the other end saw
    beyond its feedback.

    Example: tidegate import event_log_20261123_1200_77_1.log --out DIR && tidegate report DIR
    """
    from tidegate._files import check_target, write_file
    from tidegate.output.terminal import console, progress
    from tidegate.recordings import agreement, capacity, imported
    from tidegate.results.folders import check_folder
    from tidegate.runs import RUN_FILE

    check_folder(out, RUN_FILE)
    if trace is not None:
        check_target(trace, "csv trace", lambda path: path.read_bytes().startswith(b"# duration_s="), force=force)
    with stoppable("stopped; nothing was written"), raised(), progress(out.name, shown=not as_json) as tell:
        done = imported(files, far=far, same_clock=same_clock, replay=replay, link=link, progress=tell)
    found_capacity = None if trace is None else capacity(done)
    done.save(out)
    if trace is not None and found_capacity is not None:
        write_file(trace, found_capacity.to_csv())
    if as_json:
        print_json(done.to_data())
    else:
        print_run(done)
        found = agreement(done)
        if found is not None:
            console().print(
                f"{replay} hears the same feedback: its detector says the same as the recorded one "
                f"{found['agree']:.1%} of the time; over-use {found['replayed_overuse']:.1%}, "
                f"recorded {found['recorded_overuse']:.1%}"
            )
        console().print(f"\nwritten to {out}")
    if trace is not None and found_capacity is not None:
        say(
            f"{trace}: a lower bound of the capacity; a queue stood {found_capacity.stood:.1%} of the time, and "
            "only then is it what the link gave this call"
        )
    say_remarks(done.remarks)
