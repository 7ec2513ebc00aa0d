"""Options that several commands share, and the parsing of their values.

The shell waits for this module at each press of Tab, so it imports nothing but the engine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from tidegate import _core
from tidegate.cli.completing import complete_keys, complete_suites, scenarios
from tidegate.cli.terminal import say
from tidegate.errors import InputError, Refusals, located

if TYPE_CHECKING:
    from tidegate.runs import Run
    from tidegate.scenario import Scenario
    from tidegate.scenario.scenario import Level
    from tidegate.shell import LiveJob
    from tidegate.suite import Suite


ScenarioName = Annotated[
    str, typer.Argument(help="Scenario file, or a name from `tidegate scenario list`.", autocompletion=scenarios)
]
Sets = Annotated[
    list[str],
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        autocompletion=complete_keys,
        help="New value for a key of the scenario, such as links.uplink.delay=50ms. Repeatable.",
    ),
]
Limit = Annotated[
    str | None,
    typer.Option(metavar="SIZE", help="Read files up to this size, unpacked, such as 2GB; by default docs/limits.md."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print only JSON, for programs.")]
Media = Annotated[
    str | None,
    typer.Option(
        "--media",
        metavar="CLIP",
        help="Real video: a clip from `tidegate media clips`, or a file, is encoded, sent, decoded and judged as the "
        "viewer sees it; settings after a colon, as in bikes:size=320x136,b_frames=2. "
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
Force = Annotated[bool, typer.Option("--force", help="Replace even a file of another kind.")]
Workers = Annotated[
    int | None, typer.Option("--jobs", "-j", min=1, help="Number of runs at once; by default one per core.")
]


Seed = Annotated[int | None, typer.Option(min=0, help="Seed of the run; by default the scenario's.")]
Record = Annotated[
    str | None, typer.Option(help="Detail that is recorded: summary, series or packets; by default the scenario's.")
]
RunFolder = Annotated[Path | None, typer.Option(help="Folder for the run: run.json and Parquet tables.")]
ScenarioIfAny = Annotated[
    str | None, typer.Argument(help="Scenario file, or a name from `tidegate scenario list`.", autocompletion=scenarios)
]
SuiteInstead = Annotated[
    str | None,
    typer.Option(metavar="SUITE", help="Suite to run instead of a scenario.", autocompletion=complete_suites),
]
Cases = Annotated[
    list[str],
    typer.Option("--cases", metavar="PATTERN", help="Run only these cases: '5.1*'. Repeatable; by default all."),
]
CasesOfSuite = Annotated[
    list[str],
    typer.Option("--cases", metavar="PATTERN", help="Run only these cases of the suite: '5.1*'. Repeatable."),
]
Traces = Annotated[
    Path | None,
    typer.Option(metavar="FOLDER", help="Folder of recorded networks, for suites that use excerpts of them."),
]

Link = Annotated[
    Path | None,
    typer.Option(
        metavar="TRACE",
        help="Recorded network of the scenario's first link, in both directions unless the scenario gives the way back "
        "a capacity of its own; played from a moment that the seed chooses. Without a scenario that of lte-generated.",
    ),
]


def check_record(record: str | None, media: str | None = None) -> Level | None:
    """Checks that `--record` is a level, and with `--media` the one that it needs; returns it.

    Raises:
        InputError: when it is not.
    """
    if record not in {None, "summary", "series", "packets"}:
        raise InputError(f"--record: found {record}; expected summary, series or packets")
    if media is not None and record not in {None, "packets"}:
        raise InputError(f"--record: found {record}; --media needs packets")
    return cast("Level | None", record)


def refuse(options: Mapping[str, object], why: str) -> None:
    """Refuses options that do not go with others.

    Args:
        options: Values of the options, by name; one without a value is false.
        why: The message, with `{}` for the name of the first option that has a value.

    Raises:
        InputError: when an option has a value.
    """
    for name, value in options.items():
        if value:
            raise InputError(why.format(name))


def captured(pcap: bool, out: Path | None) -> dict[str, Any]:
    """Changes of a scenario by `--pcap`.

    Raises:
        InputError: when there is no folder for the files.
    """
    if pcap and out is None:
        raise InputError("--pcap: no folder is given for the files; add --out DIR")
    return {"capture": True} if pcap else {}


def pair(text: str) -> tuple[str, str]:
    """Splits a `--set` into key and value.

    Raises:
        InputError: when the text is not KEY=VALUE.
    """
    key, equals, value = text.partition("=")
    if not equals or not key or not value:
        raise InputError(f"--set {text}: expected KEY=VALUE, such as links.uplink.delay=50ms")
    return key.strip(), value.strip()


def changes(sets: Sequence[str], *, duration: str | None = None, seed: int | None = None) -> dict[str, Any]:
    """Changes of a scenario by `--set`, `--duration` and `--seed`: values by dotted key.

    Raises:
        InputError: when a key is given twice, or the duration is invalid.
    """
    from tidegate.comparison.sweeping import plain_value
    from tidegate.units import Duration

    values: dict[str, Any] = {}
    for key, text in map(pair, sets):
        if key in values:
            raise InputError(f"--set {key}: the key is given twice")
        with located(f"--set {key}"):
            values[key] = plain_value(text)
    if duration is not None:
        with located("--duration"):
            Duration.parse(duration)
    for key, value in {"duration": duration, "seed": seed}.items():
        if value is None:
            continue
        if key in values:
            raise InputError(f"--{key} {value}: --set {key} sets the same key; expected only one of the two")
        values[key] = value
    return values


def variants_of(texts: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Variants by `--variant`: changed values by dotted key, by name.

    Raises:
        InputError: when a text has no name, or a key is given twice; names each such text.
    """
    from tidegate.comparison.sweeping import plain_value

    variants: dict[str, dict[str, Any]] = {}
    refusals = Refusals()
    for text in texts:
        with refusals.of_input():
            name, colon, setting = (text + " " if text.endswith(":") else text).partition(": ")
            key, equals, value = (part.strip() for part in setting.partition("="))
            if not colon or not name.strip() or (setting.strip() and not (key and equals and value)):
                raise InputError(f'--variant {text}: expected NAME: KEY=VALUE, such as "far: links.uplink.delay=80ms"')
            values = variants.setdefault(name.strip(), {})
            if key and key in values:
                raise InputError(f"--variant {text}: the key is given twice")
            if key:
                with located(f"--variant {name.strip()}: {key}"):
                    values[key] = plain_value(value)
    refusals.raise_all()
    return variants


def scenario_of(name: str | None, link: Path | None, changed: Mapping[str, Any] | None = None) -> Scenario:
    """A scenario with changed values, and the recorded network of `--link` if there is one; without a name the default.

    Raises:
        InputError: when there is no such scenario, or the recorded network or a value does not fit.
    """
    from tidegate.scenario import Scenario
    from tidegate.scenario.variants import scenario_for

    # a scenario as it is has its errors with the lines of its file
    return scenario_for(base=name, link=link, changes=changed) if link else Scenario.load(str(name), changed)


def recordings_of(texts: Sequence[str]) -> dict[str, Run]:
    """The recorded calls of `--recording`, by name: `NAME: DIR`, or `DIR`, whose name is the folder's.

    Raises:
        InputError: when there is no run in a folder, or two have one name.
    """
    from tidegate.runs import Run

    recordings: dict[str, Run] = {}
    for text in texts:
        before, colon, behind = text.partition(": ")
        folder = Path(behind.strip() if colon else text)
        name = before.strip() if colon else folder.resolve().name
        if name in recordings:
            raise InputError(f"--recording {text}: found {name} twice; expected names that differ, as in NAME: DIR")
        with located(f"--recording {text}"):
            recordings[name] = Run.load(folder)
    return recordings


def say_duration(sessions: Sequence[LiveJob]) -> None:
    """Prints the expected duration of sessions (real-time runs of other programs) before they begin.

    Raises:
        InputError: when this machine cannot run sessions.
    """
    from tidegate.shell import check_environment, how_long

    check_environment()
    say(how_long(sessions))


def say_what_media_lacks() -> None:
    """Prints the features that `--media` lacks, if its extra is not installed."""
    from tidegate.video import extra

    if missing := extra.missing():
        say(f"{missing}; {extra.INSTALL} brings H.264, real clips and VMAF")


def say_what_code_is_run(file: str, code: Sequence[str]) -> None:
    """Prints a message if a scenario runs Python code that was not named on the command line."""
    if not code:
        return
    from tidegate.scenario import Scenario

    with suppress(InputError):  # a file that is valid only with the typed changes
        code = [name for name in code if name in Scenario.load(file).code]
    _say_code(file, code)


def say_what_code_of_a_suite_is_run(name: str, suite: Suite) -> None:
    """Prints a message if a suite's scenarios run Python code, beside the controllers that were typed."""
    code: dict[str, None] = {}
    for case in suite.cases:
        if case.scenario is not None:
            others = [flow for flow in case.scenario.flows if flow.name not in case.contenders]
            code |= dict.fromkeys(case.scenario.model_copy(update={"flows": others}).code)
    _say_code(name, list(code))


def _say_code(file: str, code: Sequence[str]) -> None:
    if code:
        say(f"{file} names Python code, which runs with your rights: {', '.join(code)}")
