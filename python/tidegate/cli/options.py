"""Options that several commands have: how they are written and read.

A shell waits for this file at each press of Tab: it loads nothing but the engine.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tidegate import _core
from tidegate.cli.completing import complete_keys, scenarios
from tidegate.cli.terminal import say
from tidegate.errors import InputError

if TYPE_CHECKING:
    from tidegate.shell import LiveJob


ScenarioName = Annotated[
    str,
    typer.Argument(help="Scenario file, or a name from `tidegate scenario list`.", autocompletion=scenarios),
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
        try:
            Duration.parse(duration)
        except InputError as error:
            raise InputError(f"--duration: {error}") from None
    for key, value in {"duration": duration, "seed": seed}.items():
        if value is None:
            continue
        if key in given:
            raise InputError(f"--{key} {value}: --set {key} names it, too; expected one of the two")
        given[key] = value
    return given


def values_of(key: str, text: str) -> list[str]:
    """The values of a `--set KEY=A,B,C`, ranges spread out.

    Raises:
        InputError: says what was found and what would be right.
    """
    from tidegate.query import ranges

    try:
        return ranges.values(text)
    except InputError as error:
        raise InputError(f"--set {key}={text}: {error}") from None


def say_how_long(sessions: Sequence[LiveJob]) -> None:
    """Says how long sessions of programs take, before they begin.

    Raises:
        InputError: when sessions cannot be had here.
    """
    from tidegate.shell import check_surroundings, how_long

    check_surroundings()
    say(how_long(sessions))


def say_what_code_is_run(file: str, named: Sequence[str]) -> None:
    """Says so where a scenario brings code with it that nobody typed."""
    if not named:
        return
    from tidegate.scenario import Scenario

    with suppress(InputError):  # of a file that is right only with what was typed
        named = [one for one in named if one in Scenario.load(file).code]
    if named:
        say(f"{file} names Python code, which runs with your rights: {', '.join(named)}")
