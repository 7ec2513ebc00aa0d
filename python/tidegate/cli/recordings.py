"""The command import."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from tidegate._signals import interruptible
from tidegate.cli.completing import complete_controllers
from tidegate.cli.options import AsJson, Force, Limit
from tidegate.cli.terminal import print_json, print_run, say, say_remarks, stoppable


class Place(StrEnum):
    """The place of a capture on the path of a call."""

    sender = "sender"
    receiver = "receiver"
    middle = "middle"


def import_(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            help="Recordings of one or both ends of a call: RTC event logs of libwebrtc (format 2, as written by "
            "Chromium), packet captures (pcap, pcapng), or getStats (dumps of webrtc-internals and rtcstats, JSON lists"
            " or lines), also beside logs or captures of the same call. Files may be gzip-compressed.",
        ),
    ],
    out: Annotated[Path, typer.Option(help="Folder for the run: run.json and Parquet tables.")],
    far: Annotated[
        list[Path],
        typer.Option(metavar="FILE", help="Captures of the other end; needed if an end has several."),
    ] = [],  # noqa: B006
    same_clock: Annotated[
        bool,
        typer.Option(
            "--same-clock",
            help="Assume that both ends share one clock; by default the far clock is shifted so that the minimum "
            "delay is the same in both directions.",
        ),
    ] = False,
    replay: Annotated[
        str | None,
        typer.Option(
            metavar="CONTROLLER",
            help="Feed the near end's feedback to a controller of tidegate, such as gcc, without effect on the call; "
            "its estimates are in the table internals as replayed_..., beside the recorded ones.",
            autocompletion=complete_controllers,
        ),
    ] = None,
    link: Annotated[
        str | None,
        typer.Option(
            metavar="DIR|SCENARIO",
            help="Link of the call, if tidegate emulated it: the folder of a tidegate shell session, which adds "
            "capacity, queues and drops; or a scenario, which adds the capacity.",
        ),
    ] = None,
    at: Annotated[
        Place | None,
        typer.Option(
            help="Place of the first capture: at the end that sends more, at the end that receives more, or between "
            "them. By default it is told by the direction in the file, hop limits, or RTCP.",
        ),
    ] = None,
    rtp: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT",
            help="Address from or to which all that may be RTP is RTP, in a capture with too few packets to tell.",
        ),
    ] = None,
    trace: Annotated[
        Path | None,
        typer.Option(
            help="File for a lower bound of the link's capacity, derived from the call: a recorded network (CSV) for "
            "links of scenarios."
        ),
    ] = None,
    force: Force = False,
    limit: Limit = None,
    as_json: AsJson = False,
) -> None:
    """Import a recorded call as a run, for report, plots and notebooks.

    Values that the recording lacks are absent: the link's capacity, and with one end's log all that the other end saw
    beyond its feedback.

    Example: tidegate import event_log_20261123_1200_77_1.log --out DIR && tidegate report DIR
    """
    from tidegate._files import check_target, first_bytes, write_file
    from tidegate._inputs import raise_limit
    from tidegate.output.terminal import console, progress
    from tidegate.recordings import agreement, capacity, imported
    from tidegate.results.folders import check_folder
    from tidegate.runs import RUN_FILE

    raise_limit(limit)
    check_folder(out, RUN_FILE)
    if trace is not None:
        check_target(trace, "csv trace", lambda path: first_bytes(path).startswith(b"# duration_s="), force=force)
    with stoppable("stopped; nothing was written"), interruptible(), progress(out.name, visible=not as_json) as tell:
        run = imported(
            files,
            far=far,
            same_clock=same_clock,
            replay=replay,
            link=link,
            at=None if at is None else at.value,
            rtp=rtp,
            progress=tell,
        )
    found_capacity = None if trace is None else capacity(run)
    run.save(out)
    if trace is not None and found_capacity is not None:
        write_file(trace, found_capacity.to_csv())
    if as_json:
        print_json(run.to_data())
    else:
        print_run(run)
        comparison = agreement(run)
        if comparison is not None:
            console().print(
                f"{replay} with the recorded feedback: its detector agrees with the recorded detector "
                f"{comparison['agree']:.1%} of the time; over-use: {comparison['replayed_overuse']:.1%} of the time, "
                f"recorded {comparison['recorded_overuse']:.1%}"
            )
        console().print(f"\nwritten to {out}")
    if trace is not None and found_capacity is not None:
        say(
            f"{trace}: a lower bound of the capacity; packets queued {found_capacity.stood:.1%} of the time, and "
            "only then the bound is the rate that the link gave this call"
        )
    say_remarks(run.remarks)
