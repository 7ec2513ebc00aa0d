"""Options that several commands have: how they are written and read.

A shell waits for this file at each press of Tab: it loads nothing but the engine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tidegate import _core
from tidegate.cli.completing import complete_keys, complete_suites, scenarios
from tidegate.cli.terminal import say
from tidegate.errors import InputError, located

if TYPE_CHECKING:
    from tidegate.shell import LiveJob


ScenarioName = Annotated[
    str, typer.Argument(help="Scenario file, or a name from `tidegate scenario list`.", autocompletion=scenarios)
]
Sets = Annotated[
    list[str],
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        autocompletion=complete_keys,
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


Seed = Annotated[int | None, typer.Option(min=0, help="Instead of the scenario's.")]
Record = Annotated[str | None, typer.Option(help="How much is kept: summary, series, or packets.")]
RunFolder = Annotated[Path | None, typer.Option(help="Folder for the run: run.json and Parquet tables.")]
ScenarioIfAny = Annotated[
    str | None, typer.Argument(help="Scenario file, or a name from `tidegate scenario list`.", autocompletion=scenarios)
]
SuiteInstead = Annotated[
    str | None, typer.Option(metavar="SUITE", help="A suite instead of a scenario.", autocompletion=complete_suites)
]
Cases = Annotated[
    list[str], typer.Option("--cases", metavar="PATTERN", help="Only these cases: '5.1*'. May be given again.")
]
CasesOfSuite = Annotated[
    list[str], typer.Option("--cases", metavar="PATTERN", help="Only these cases of the suite: '5.1*'.")
]
Traces = Annotated[
    Path | None, typer.Option(metavar="FOLDER", help="Recorded networks, for suites that take windows of them.")
]


def check_record(record: str | None, media: str | None = None) -> None:
    """Whether `--record` is a level, and the one that `--media` needs.

    Raises:
        InputError: when it is not.
    """
    if record not in {None, "summary", "series", "packets"}:
        raise InputError(f"--record: found {record}; expected summary, series or packets")
    if media is not None and record not in {None, "packets"}:
        raise InputError(f"--record: found {record}; --media needs packets")


def refuse(options: Mapping[str, object], why: str) -> None:
    """Refuses options that do not go with others.

    Args:
        options: The options and their values, as they were given.
        why: The message, with `{}` for the first of them that was given.

    Raises:
        InputError: when there is such an option.
    """
    for name, value in options.items():
        if value:
            raise InputError(why.format(name))


def captured(pcap: bool, out: Path | None) -> dict[str, Any]:
    """What `--pcap` changes in a scenario.

    Raises:
        InputError: when there is no folder for the files.
    """
    if pcap and out is None:
        raise InputError("--pcap: needs a folder for the files: --out DIR")
    return {"capture": True} if pcap else {}


def pair(text: str) -> tuple[str, str]:
    """Key and value of a `--set`.

    Raises:
        InputError: when it is none.
    """
    key, equals, value = text.partition("=")
    if not equals or not key or not value:
        raise InputError(f"--set {text}: expected KEY=VALUE, such as links.uplink.delay=50ms")
    return key.strip(), value.strip()


def changes(sets: Sequence[str], *, duration: str | None = None, seed: int | None = None) -> dict[str, Any]:
    """What several `--set` and options of the same names change: values by dotted key.

    Raises:
        InputError: when a key is given twice, or a duration is no duration.
    """
    from tidegate.comparison.sweeping import plain_value
    from tidegate.units import Duration

    given: dict[str, Any] = {}
    for key, text in map(pair, sets):
        if key in given:
            raise InputError(f"--set {key}: is given twice")
        given[key] = plain_value(text)
    if duration is not None:
        with located("--duration"):
            Duration.parse(duration)
    for key, value in {"duration": duration, "seed": seed}.items():
        if value is None:
            continue
        if key in given:
            raise InputError(f"--{key} {value}: --set {key} names it, too; expected one of the two")
        given[key] = value
    return given


def say_how_long(sessions: Sequence[LiveJob]) -> None:
    """Says how long sessions of programs take, before they begin.

    Raises:
        InputError: when sessions cannot be had here.
    """
    from tidegate.shell import check_surroundings, how_long

    check_surroundings()
    say(how_long(sessions))


def say_what_media_lacks() -> None:
    """Says what `--media` is without, where its extra is not installed."""
    from tidegate.video import extra

    if missing := extra.missing():
        say(f"{missing}; {extra.INSTALL} brings H.264, real clips and VMAF")


def say_what_code_is_run(file: str, named: Sequence[str]) -> None:
    """Says so where a scenario brings code with it that nobody typed."""
    if not named:
        return
    from tidegate.scenario import Scenario

    with suppress(InputError):  # of a file that is right only with what was typed
        named = [one for one in named if one in Scenario.load(file).code]
    if named:
        say(f"{file} names Python code, which runs with your rights: {', '.join(named)}")
