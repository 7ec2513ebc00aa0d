"""Commands that show or convert things: scenario, trace, controllers, version."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tidegate.cli.completing import complete_controllers
from tidegate.cli.options import AsJson, Force, Limit, ScenarioName
from tidegate.cli.terminal import print_json, print_names, results_only
from tidegate.errors import InputError, did_you_mean
from tidegate.wording import printable

if TYPE_CHECKING:
    import numpy as np

    from tidegate.net.trace import Trace

scenario_app = typer.Typer(help="List, show and check scenarios.", no_args_is_help=True, rich_markup_mode=None)
trace_app = typer.Typer(
    help="Show, convert and generate recorded networks.", no_args_is_help=True, rich_markup_mode=None
)

_BARS = "▁▂▃▄▅▆▇█"
_BAR_COLUMNS = 60


@scenario_app.command("list")
def list_(as_json: AsJson = False) -> None:
    """List the scenarios that come with tidegate.

    Example: tidegate scenario list
    """
    from tidegate import _shipped
    from tidegate.scenario import Scenario

    loaded = [Scenario.load(name) for name in _shipped.scenarios()]
    if as_json:
        keys = ("name", "description", "source")
        print_json([{key: getattr(scenario, key) for key in keys} for scenario in loaded])
        return
    print_names({scenario.name: scenario.description for scenario in loaded})


@scenario_app.command()
def show(scenario: ScenarioName) -> None:
    """Print a scenario file.

    Example: tidegate scenario show home-broadband > mine.toml
    """
    from tidegate.scenario import Scenario, shipped, toml

    path = shipped.find(scenario)
    text = toml.read(path)  # once, because a pipe ends
    Scenario.parse(text, path)
    sys.stdout.write(printable(text) if sys.stdout.isatty() else text)


@scenario_app.command()
def check(
    scenario: ScenarioName,
    ir: Annotated[bool, typer.Option("--ir", help="Print the engine's input as JSON.")] = False,
    run_code: Annotated[
        bool, typer.Option("--run-code", help="Import controllers written in Python, which runs their files.")
    ] = False,
) -> None:
    """Check a scenario with all files and controllers that it names: whether `tidegate run` would begin.

    Controllers written in Python are not run; the check is that their file exists, is Python, and has the class.

    Example: tidegate scenario check mine.toml
    """
    from tidegate.output.terminal import console
    from tidegate.scenario import Scenario, assembling

    loaded = Scenario.load(scenario)
    with results_only():
        run_input = assembling.assemble(loaded, run_code=run_code)
    unrun = ", ".join(run_input.inputs.unrun)
    if ir and unrun:
        raise InputError(f"--ir: the engine's input depends on {unrun}, which has to be run for it; add --run-code")
    if ir:
        print_json(run_input.ir)
        return
    links, flows = len(run_input.ir["links"]), len(run_input.ir["flows"])
    console().print(f"{scenario}: good ({links} one-way links, {flows} flows, {loaded.duration})")
    if external := assembling.external(run_input.ir):
        driven = f"driven by code of yours (tidegate.simpy), not by `tidegate run`: {', '.join(external)}"
        console().print(driven, soft_wrap=True)
    if unrun:
        console().print(f"checked without running: {unrun} (--run-code imports it)", soft_wrap=True)


@scenario_app.command("schema")
def schema_() -> None:
    """Print the JSON Schema of scenario files, for editors.

    Example: tidegate scenario schema > scenario.schema.json
    """
    from tidegate.scenario import schema

    sys.stdout.write(schema.text())


_FORMATS = (
    "mahimahi, seconds-mbps, data-rate-pattern, opennetlab, pantheon-path, pion-phases, raca, lumos, csv, "
    "milliseconds-kbps, sabre, mm-link-log, iperf3, devtools, connectivity-ini"
)
To = Annotated[str | None, typer.Option(help="Format to write, mahimahi or csv; by default from the file's suffix.")]
TraceFile = Annotated[Path, typer.Argument(help="File of a recorded network; .gz is unpacked.")]
Direction = Annotated[
    str | None,
    typer.Option(help="Direction, down or up, for formats with both; by default the usual one of the format."),
]
Frequency = Annotated[float | None, typer.Option(help="Lines per second, for formats without times.")]
Reference = Annotated[str | None, typer.Option(help="Rate for a ratio of 1, for formats with ratios.")]


def _load(file: Path, form: str | None, direction: str | None, frequency: float | None, reference: str | None) -> Trace:
    from tidegate.net import trace as traces

    match direction:
        case "down" | "up" | None:
            return traces.load(file, format=form, direction=direction, frequency=frequency, reference_rate=reference)
    raise InputError(f"--direction: found {direction}; expected down or up")


@trace_app.command("show")
def show_trace(
    file: TraceFile,
    format_: Annotated[str | None, typer.Option("--format", help=f"Format of the file: {_FORMATS}.")] = None,
    direction: Direction = None,
    frequency: Frequency = None,
    reference_rate: Reference = None,
    limit: Limit = None,
    as_json: AsJson = False,
) -> None:
    """Describe a recorded network.

    Example: tidegate trace show LTE.trace
    """
    import numpy as np

    from tidegate._inputs import raise_limit
    from tidegate.output.terminal import console
    from tidegate.units import Duration

    raise_limit(limit)
    trace = _load(file, format_, direction, frequency, reference_rate)
    # less than a second has no rate over one; opportunities are whole milliseconds
    width = 10**9 if trace.duration_ns >= 10**9 else max(10**6, trace.duration_ns // _BAR_COLUMNS)
    _, rates = trace.series(width)
    low, high, dark = float(rates.min()), float(rates.max()), float(np.mean(rates == 0))
    warnings = [] if trace.outlying is None else [_outlier(trace)]
    facts = {
        "file": str(file),
        "format": trace.format,
        "duration_s": trace.duration_ns / 1e9,
        "mean_rate_bps": trace.mean_rate,
        "bin_s": width / 1e9,
        "least_bps": low,
        "largest_bps": high,
        "bins_without_any": dark,
        "notes": trace.remarks,
        "warnings": warnings,
    }
    if as_json:
        print_json(facts)
        return
    to = console()
    to.print(f"{file}: {trace.format}, {Duration(trace.duration_ns)}, mean {_rate(trace.mean_rate)}")
    to.print(
        f"means of {Duration(width)}: minimum {_rate(low)}, maximum {_rate(high)}, zero in {dark:.1%} of them",
        soft_wrap=True,
    )
    to.print(_bars(rates))
    for remark in warnings:
        to.print(f"Warning: {remark}", soft_wrap=True)
    for remark in trace.remarks:
        to.print(f"Note: {remark}", soft_wrap=True)


def _outlier(trace: Trace) -> str:
    return (
        f"the mean ({_rate(trace.mean_rate)}) is more than ten times the median by time ({_rate(trace.outlying)}): an "
        "outlier makes it, and utilisation, which is a part of the mean, is low for every controller"
    )


def _rate(value: object) -> str:
    from tidegate.units import bits_per_second

    number = float(value)  # type: ignore[arg-type]
    return str(bits_per_second(round(number, -3 if number >= 1e5 else 0)))  # noqa: PLR2004


def _bars(rates: np.ndarray) -> str:
    """Bar chart of a rate over time, in one line."""
    import numpy as np

    if not len(rates) or rates.max() <= 0:
        return ""
    parts = np.array_split(rates, min(_BAR_COLUMNS, len(rates)))
    means = np.array([part.mean() for part in parts]) / max(part.mean() for part in parts)
    return "".join(_BARS[round(float(mean) * (len(_BARS) - 1))] for mean in means)


@trace_app.command()
def convert(
    file: TraceFile,
    out: Annotated[Path, typer.Argument(help="File to write.")],
    to: To = None,
    force: Force = False,
    format_: Annotated[str | None, typer.Option("--format", help="Format of the input, as for show.")] = None,
    direction: Direction = None,
    frequency: Frequency = None,
    reference_rate: Reference = None,
    limit: Limit = None,
) -> None:
    """Write a recorded network in another format.

    Example: tidegate trace convert phases.json phases.csv --reference-rate 1Mbps
    """
    from tidegate._inputs import raise_limit

    raise_limit(limit)
    form = _form(out, to, force=force)
    _write(_load(file, format_, direction, frequency, reference_rate), out, form)


_SUFFIXES = {".csv": "csv", **dict.fromkeys((".trace", ".mahimahi", ".mm", ".up", ".down", ""), "mahimahi")}


def _form(out: Path, to: str | None, *, force: bool) -> str:
    """Format to write, from `--to` or the file's suffix; checks that no other file would be lost."""
    if out.suffix == ".gz":
        raise InputError(f"{out}: found .gz; traces are written uncompressed: run gzip afterwards")
    suffixes = ", ".join(suffix for suffix in _SUFFIXES if suffix)
    if to is None and out.suffix.lower() not in _SUFFIXES:
        raise InputError(f"{out}: found {out.suffix}; expected one of {suffixes}, or --to mahimahi or --to csv")
    form = to or _SUFFIXES[out.suffix.lower()]
    if form not in _SUFFIXES.values():
        hint = did_you_mean(form, ["mahimahi", "csv"])
        raise InputError(f"--to: found {form}; expected mahimahi or csv{hint}")
    from tidegate._files import check_target

    check_target(out, f"{form} trace", lambda path: _is_trace(path, form), force=force)
    return form


def _is_trace(path: Path, form: str) -> bool:
    from tidegate.net import trace as traces

    try:
        return traces.load(path).format == form
    except InputError:
        return False


def _write(trace: Trace, out: Path, form: str) -> None:
    from tidegate._files import write_file
    from tidegate.output.terminal import console
    from tidegate.units import Duration

    try:
        data = trace.to_csv() if form == "csv" else trace.to_mahimahi()
    except ValueError as error:
        raise InputError(str(error)) from None
    write_file(out, data)
    console().print(f"written to {out}: {form}, {Duration(trace.duration_ns)}, mean {_rate(trace.mean_rate)}")


@trace_app.command()
def generate(
    model: Annotated[
        str, typer.Argument(help="Model, brownian or lte; brownian if only a file is given.", metavar="[MODEL]")
    ],
    out: Annotated[Path | None, typer.Argument(help="File to write.", metavar="OUT")] = None,
    duration: Annotated[str, typer.Option(help="Duration of the trace.")] = "60s",
    seed: Annotated[int, typer.Option(min=0, help="Seed; the same seed gives the same link.")] = 1,
    start: Annotated[str, typer.Option(help="brownian: rate at the beginning.")] = "5Mbps",
    largest: Annotated[str, typer.Option("--max", help="brownian: maximum rate.")] = "12Mbps",
    sigma: Annotated[str, typer.Option(help="brownian: standard deviation of the rate's change over 1 s.")] = "2.4Mbps",
    outage_escape: Annotated[float, typer.Option(help="brownian: rate at which outages end, per second.")] = 1.0,
    case: Annotated[int, typer.Option(help="lte: 3GPP case, 1 or 3.")] = 1,
    bandwidth: Annotated[str, typer.Option(help="lte: bandwidth of the cell, 5MHz or 10MHz.")] = "10MHz",
    antennas: Annotated[str, typer.Option(help="lte: antennas, 1x1, 1x2 or 2x2.")] = "1x2",
    speed: Annotated[str, typer.Option(help="lte: speed of the users.")] = "3km/h",
    users: Annotated[int, typer.Option(help="lte: users with full buffers in the cell, this one included.")] = 1,
    to: To = None,
    force: Force = False,
) -> None:
    """Generate a cellular link: the process of Winstein et al. (NSDI 2013, section 3), or a user of an LTE network.

    Example: tidegate trace generate sprout.trace --duration 120s --seed 7

    Example: tidegate trace generate lte cell.trace --case 3 --bandwidth 5MHz --users 2
    """
    from tidegate.net import trace as traces
    from tidegate.runs import lte

    if out is None:
        model, out = "brownian", Path(model)
    form = _form(out, to, force=force)
    match model:
        case "brownian":
            trace = traces.generate(
                seed=seed, duration=duration, start=start, max=largest, sigma=sigma, outage_escape=outage_escape
            )
        case "lte":
            trace = lte.trace(
                seed=seed,
                duration=duration,
                case=case,
                bandwidth=bandwidth,
                antennas=antennas,
                speed=speed,
                users=users,
            )
        case _:
            hint = did_you_mean(model, ["brownian", "lte"])
            raise InputError(f"{model} is not a model; available: brownian, lte{hint}")
    _write(trace, out, form)


def controllers(
    names: Annotated[
        list[str] | None,
        # a list, because Bash completes the words around a colon as several
        typer.Argument(
            metavar="[NAME]",
            help="Controller, or preset of it, whose settings to print; by default all controllers.",
            autocompletion=complete_controllers,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the controllers, or the settings of one.

    Commands that take controllers also take a class of your own (python:FILE:CLASS), a model (onnx:FILE) and AlphaRTC's
    Python class (alphartc:FILE); compare and suite run also take a real program ("program:COMMAND").

    Example: tidegate controllers gcc
    """
    from tidegate.control import registry
    from tidegate.output.terminal import console, print_rows

    catalogue = registry.registry()
    if names and len(names) > 1:
        raise InputError(f"{' '.join(names)}: found {len(names)} names; expected one")
    name = names[0] if names else None
    chosen = None if name is None else registry.choose(name, Path(), run_code=False)
    if chosen is not None and chosen.name not in catalogue:
        raise InputError(f"{name} is not a controller of tidegate; available: {', '.join(catalogue)}")
    if as_json:
        print_json(catalogue[chosen.name] if chosen is not None else list(catalogue.values()))
        return
    to = console()
    if chosen is None:
        rows = [(entry["name"], ", ".join(entry["presets"]), entry["summary"]) for entry in catalogue.values()]
        print_rows(["controller", "presets", "summary"], rows, text_columns={1, 2}, folded={1, 2})
        to.print("\nA class of your own: python:file.py:Class")
        to.print("A neural model: onnx:model.onnx; an Estimator written for AlphaRTC: alphartc:file.py")
        return
    controller = catalogue[chosen.name]
    preset = chosen.preset or controller["presets"][0]
    to.print(f"{controller['name']}: {controller['summary']}")
    to.print(f"needs feedback: {controller['needs']}; receiving half: {'yes' if controller['receiver'] else 'no'}")
    to.print(f"presets: {', '.join(controller['presets'])}; values below: {preset}")
    for content, sets in controller["in_call"][preset].items():
        called = ", ".join(f"{key}={_value(value)}" for key, value in sets.items())
        if called:
            to.print(f"defaults of a scenario's call with a {content}: {called}")
    to.print("")
    lines = []
    values = {**controller["defaults"][preset], **chosen.settings}
    settings = registry.settings_of(chosen.name, preset)
    same_settings = [
        candidate for candidate in controller["presets"] if registry.settings_of(chosen.name, candidate) == settings
    ]
    for setting in settings:
        text = _value(values.get(setting["name"]))
        elsewhere = {
            other_preset: _value(controller["defaults"][other_preset].get(setting["name"]))
            for other_preset in same_settings
            if other_preset != preset
        }
        others = "".join(f"; {other_preset}: {value}" for other_preset, value in elsewhere.items() if value != text)
        lines.append((setting["name"], text, setting["unit"], f"{setting['doc']}{others}"))
    print_rows(["setting", "value", "unit", "meaning"], lines, text_columns={2, 3}, folded={3})


def _value(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def version(as_json: AsJson = False) -> None:
    """Print versions, for reports.

    Example: tidegate version
    """
    from tidegate.output.terminal import console
    from tidegate.runs import versions

    if as_json:
        print_json(dict(versions()))
        return
    for name, value in versions().items():
        console().print(f"{name} {value}")
