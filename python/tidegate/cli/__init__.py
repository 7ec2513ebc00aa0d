"""The command line: its commands, options and messages.

These modules import little, so that `--help`, `--version` and completions are fast. Each command imports the modules
that it works with when it is called.

Exit codes: 0 all well, 1 a run failed or a result could not be written, 2 wrong usage or input, 130
work that Ctrl-C or SIGTERM stopped; before and after the work they end the program at once.
"""

from __future__ import annotations

import logging
import os
import sys
import traceback
from collections.abc import Sequence
from functools import cache
from typing import Annotated, Any

import typer
import typer.core
import typer.main

from tidegate import _core
from tidegate.cli import (
    diffs,
    gates,
    inspection,
    media,
    optimise,
    papers,
    play,
    recordings,
    reports,
    results,
    runs,
    shell,
    sockets,
    suites,
    sweeps,
)
from tidegate.cli.terminal import Stopped, say
from tidegate.errors import LIMIT_VARIABLE, TidegateError
from tidegate.wording import printable

_HELP = """A workbench for congestion control of real-time media.

How does this controller behave on that network, against those flows, for that media, and how do I
know?

    tidegate compare gcc fixed --link LTE.trace --cross tcp:cubic@20s --seeds 5 --out DIR

Exit codes: 0 all well, 1 a run failed or a result could not be written, 2 wrong usage or input, 130
work that Ctrl-C or SIGTERM stopped; before and after it they end the program at once. With
TIDEGATE_DEBUG=1 errors come with their traceback.
"""

app = typer.Typer(
    name="tidegate",
    help=_HELP,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
_COMMANDS = (
    runs.run,
    runs.compare,
    play.play,
    sweeps.sweep,
    optimise.optimise,
    gates.check,
    diffs.diff,
    recordings.import_,
    shell.shell,
    sockets.gap,
    results.results,
    reports.report,
    papers.paper,
    inspection.controllers,
    inspection.version,
)
for _command in _COMMANDS:
    app.command(_command.__name__.rstrip("_"))(_command)
_GROUPS = {
    "suite": suites.suites,
    "live": sockets.live_app,
    "media": media.media_app,
    "scenario": inspection.scenario_app,
    "trace": inspection.trace_app,
}
for _name, _group in _GROUPS.items():
    app.add_typer(_group, name=_name)


class _WarningPrinter(logging.Handler):
    """Log handler that prints the package's warnings as messages of the command line."""

    def emit(self, record: logging.LogRecord) -> None:
        """Prints a warning."""
        say(record.getMessage())


logging.getLogger("tidegate").addHandler(_WarningPrinter(logging.WARNING))


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"tidegate {_core.__version__}")
        raise typer.Exit


@app.callback(help=_HELP)
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Options of the program as a whole."""


class _LazyCheck:
    """Typer's check of a parameter by pydantic, which is imported only if there is a value to check.

    Typer itself would import pydantic for each option without a value, which takes longer than all other work of
    `--help` or a completion.
    """

    def __init__(self, descriptor: Any) -> None:
        self._descriptor = descriptor

    def coerce(self, value: Any, param: Any, ctx: typer.Context) -> Any:
        """The value as the command gets it."""
        if ctx.resilient_parsing:
            return value  # a completion: the line is incomplete
        if value is None:
            return () if param.multiple or param.nargs == -1 else None
        return _original_check(self._descriptor).coerce(value, param=param, ctx=ctx)


# a version of typer without this function keeps its own check, and starts more slowly
_original_check: Any = getattr(typer.core, "build_runtime_param", None)
vars(typer.core)["build_runtime_param"] = _LazyCheck


STOPPED = 130
"""128 + SIGINT, as shells have it."""


@cache
def _command_line() -> Any:
    """Commands and options of `app`, built once in a process: that takes 40 ms, longer than most commands."""
    return typer.main.get_command(app)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line and returns its exit code; never raises, and shows a traceback only on request."""
    limit = os.environ.get(LIMIT_VARIABLE)
    try:
        code = _command_line()(argv, prog_name="tidegate", standalone_mode=False)
        sys.stdout.flush()
    except SystemExit as error:
        if isinstance(error.__context__, BrokenPipeError):
            return 0  # the reader of the output closed it
        return error.code if isinstance(error.code, int) else 1
    except BaseException as error:  # noqa: BLE001
        return _report(error)
    finally:
        # --limit holds for this call alone
        if limit is None:
            os.environ.pop(LIMIT_VARIABLE, None)
        else:
            os.environ[LIMIT_VARIABLE] = limit
    if code == STOPPED:
        say("stopped")
    return code if isinstance(code, int) else 0


def _report(error: BaseException) -> int:
    """Prints the message of an error and returns the exit code for it."""
    if os.environ.get("TIDEGATE_DEBUG", "0") not in {"", "0"} and not isinstance(error, Stopped):
        sys.stderr.write(printable("".join(traceback.format_exception(error))))
    match error:
        case typer.TyperException() if type(error).__name__ == "NoArgsIsHelpError":
            sys.stderr.write(error.format_message() + "\n")
            return error.exit_code
        case typer.TyperException():
            say(error.format_message() + _usage(error))
            return error.exit_code
        case BrokenPipeError():
            # else the interpreter reports it again at its exit
            sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115
            return 0
        case KeyboardInterrupt() | typer.Abort():
            say("stopped")
            return STOPPED
        case TidegateError():
            say(str(error))
            return error.exit_code
        case MemoryError():
            say('out of memory; use a shorter duration or record = "summary"')
        case ImportError() if str(error.path).endswith(".so"):
            say(f"a library cannot be loaded: {error}; where memory is limited (ulimit -v), it needs more")
        case OSError():
            say(f"{error.filename}: {error.strerror}" if error.filename else error.strerror or str(error))
            # else the interpreter reports a full disk again at its exit
            sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115
        case _:
            say(
                f"this is a bug in tidegate: {type(error).__name__}: {error}\n"
                "Please report it with the command, the scenario and the traceback that TIDEGATE_DEBUG=1 shows."
            )
    return 1


def _usage(error: typer.TyperException) -> str:
    context = getattr(error, "ctx", None)
    return f"\n(see {context.command_path} --help)" if context is not None else ""
