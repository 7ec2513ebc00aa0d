"""The command line.

Exit codes: 0 all well, 1 a run failed or a result could not be written, 2 wrong usage or input, 130
stopped by the person.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence

import typer

from tidegate.cli import look, runs
from tidegate.cli.terminal import Stopped, say
from tidegate.errors import TidegateError

_HELP = """A workbench for congestion control of real-time media.

How does this controller behave on that network, against those flows, for that media, and how do I
know?

    tidegate compare gcc fixed --link LTE.trace --cross tcp:cubic@20s --seeds 5 --out DIR

Exit codes: 0 all well, 1 a run failed or a result could not be written, 2 wrong usage or input, 130
stopped by you. With TIDEGATE_DEBUG=1 errors come with their traceback.
"""

app = typer.Typer(
    name="tidegate",
    help=_HELP,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
runs.add_to(app)
look.add_to(app)

STOPPED = 130
"""128 + SIGINT, as shells have it."""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line and returns its exit code; never raises, never shows a traceback unasked."""
    debug = os.environ.get("TIDEGATE_DEBUG") not in {None, "", "0"}
    try:
        code = app(argv, prog_name="tidegate", standalone_mode=False)
        sys.stdout.flush()
        if code == STOPPED:
            say("stopped")
    except typer.TyperException as error:
        say(error.format_message() + _usage(error))
        return error.exit_code
    except BrokenPipeError:
        # whoever read the output has seen enough; keep the interpreter from saying so at its exit
        sys.stdout = None  # type: ignore[assignment]
        return 0
    except (KeyboardInterrupt, typer.Abort):
        say("stopped")
        return STOPPED
    except SystemExit as error:
        return error.code if isinstance(error.code, int) else 1
    except TidegateError as error:
        if debug and not isinstance(error, Stopped):
            traceback.print_exc()
        say(str(error))
        return error.exit_code
    except MemoryError:
        say("out of memory; a shorter duration or record = \"summary\" needs less")
        return 1
    except OSError as error:
        if debug:
            traceback.print_exc()
        place = f"{error.filename}: " if error.filename else ""
        say(f"{place}{error.strerror or error}")
        return 1
    except Exception as error:  # noqa: BLE001
        if debug:
            traceback.print_exc()
        say(
            f"this is a bug in tidegate: {type(error).__name__}: {error}\n"
            "Please report it with the command, the scenario and the traceback that TIDEGATE_DEBUG=1 shows."
        )
        return 1
    return code if isinstance(code, int) else 0


def _usage(error: typer.TyperException) -> str:
    context = getattr(error, "ctx", None)
    return f"\n(see {context.command_path} --help)" if context is not None else ""


def script() -> None:
    """The entry point."""
    sys.exit(main())
