"""What is said on the terminal: messages, and results as JSON. Tables are in `tables`, which takes longer to load."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Any

from tidegate.errors import TidegateError

if TYPE_CHECKING:
    from tidegate.runs import Run
    from tidegate.scenario import Scenario


class Stopped(TidegateError):
    """The person pressed Ctrl-C."""

    exit_code = 130


def say(message: str) -> None:
    """Prints a message for the person on standard error, apart from the results."""
    sys.stderr.write(f"tidegate: {message}\n")
    sys.stderr.flush()


def warn(warnings: Sequence[str], made: Scenario) -> None:
    """Says what runs of a scenario warn of, with file and line of the setting where they are known."""
    sys.stdout.flush()
    for one in warnings:
        where = made.where(one.partition(": ")[0])
        say(f"warning: {where}{': ' if where else ''}{one}{_of_way_back(one.partition(': ')[0], made)}")


def _of_way_back(key: str, made: Scenario) -> str:
    """Of a setting that a link's way back has from its way there: so, and how the way back gets its own."""
    for link in made.links:
        begin = f"links.{link.name}.back."
        name = key.removeprefix(begin).partition(".")[0]
        if key.startswith(begin) and (isinstance(link.back, bool) or name not in link.back.model_fields_set):
            own = f"back = {{ {name} = ... }} in this table gives it its own"
            return f" (the way back has the {name} of the way there; {own})"
    return ""


def results_only() -> redirect_stdout[Any]:
    """Keeps what controllers in Python print out of the results: it goes beside them, to stderr."""
    return redirect_stdout(sys.stderr)


def print_json(data: Any) -> None:
    """Data for a program; NaN and infinity are null, as JSON has none."""
    sys.stdout.write(json.dumps(_plain(data), indent=1, allow_nan=False) + "\n")


def _plain(data: Any) -> Any:
    match data:
        case dict():
            return {str(key): _plain(value) for key, value in data.items()}
        case list() | tuple():
            return [_plain(value) for value in data]
        case float() if data != data or data in (float("inf"), float("-inf")):  # noqa: PLR0124
            return None
    return data


def typed() -> str:
    """What was typed, for the record."""
    return shlex.join(["tidegate", *sys.argv[1:]])


class stoppable:  # noqa: N801
    """Turns Ctrl-C into a sentence."""

    def __init__(self, sentence: str) -> None:
        self.sentence = sentence

    def __enter__(self) -> None:
        """Begins."""

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """Says the sentence if it was Ctrl-C."""
        if isinstance(error, KeyboardInterrupt):
            raise Stopped(self.sentence) from None


def print_run(done: Run) -> None:
    """Prints a run: what it is, its flows, its sessions and its links."""
    from tidegate.output.terminal import console, show

    console().print(f"{done.name}, seed {done.seed}, digest {done.digest}\n")
    show(done.document())
