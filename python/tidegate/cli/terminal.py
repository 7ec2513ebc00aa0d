"""Messages on the terminal, and results as JSON. Tables are in `output.terminal`, which takes longer to import."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tidegate.errors import TidegateError
from tidegate.wording import printable

if TYPE_CHECKING:
    from tidegate.comparison.sweeping import Plan
    from tidegate.results.remarks import Remarks
    from tidegate.runs import Run
    from tidegate.scenario import Scenario
    from tidegate.suite import Plan as SuitePlan


class Stopped(TidegateError):
    """The user pressed Ctrl-C."""

    exit_code = 130


def say(message: str) -> None:
    """Prints a message for the user on standard error, apart from the results."""
    sys.stderr.write(f"tidegate: {printable(message)}\n")
    sys.stderr.flush()


def say_remarks(remarks: Remarks, scenario: Scenario | None = None) -> None:
    """Prints warnings and notes on standard error, each with file and line of its setting if they are known."""
    sys.stdout.flush()
    for kind, sentence in remarks.brief.labelled:
        key = sentence.partition(": ")[0]
        where = scenario.where(key) if scenario else ""
        of_way_back = _of_way_back(key, scenario) if scenario else ""
        say(f"{kind.lower()}: {where}{': ' if where else ''}{of_way_back}{sentence}")


def _of_way_back(key: str, scenario: Scenario) -> str:
    """A hint for a setting that a link's way back has from its way there; empty for any other setting."""
    for link in scenario.links:
        begin = f"links.{link.name}.back."
        name = key.removeprefix(begin).partition(".")[0]
        if key.startswith(begin) and (isinstance(link.back, bool) or name not in link.back.model_fields_set):
            hint = f"for another one write back = {{ {name} = ... }} in this table"
            return f"the backward direction of {link.name} has the forward direction's {name} ({hint}): "
    return ""


def results_only() -> redirect_stdout[Any]:
    """Sends the output of controllers in Python to standard error, so that only results are on standard output."""
    return redirect_stdout(sys.stderr)


def print_json(data: Any) -> None:
    """Prints data as JSON, with null for NaN and infinity, which JSON lacks."""
    text = json.dumps(_json_ready(data), indent=1, allow_nan=False)
    # JSON escapes all control characters except DEL
    sys.stdout.write(text.replace("\x7f", "\\u007f") + "\n")


def _json_ready(data: Any) -> Any:
    match data:
        case dict():
            return {str(key): _json_ready(value) for key, value in data.items()}
        case list() | tuple():
            return [_json_ready(value) for value in data]
        case float() if data != data or data in (float("inf"), float("-inf")):  # noqa: PLR0124
            return None
    return data


def print_names(summaries: Mapping[str, str]) -> None:
    """Prints names, each with its summary."""
    from tidegate.output.terminal import console

    width = max(map(len, summaries), default=0)
    for name, summary in summaries.items():
        console().print(f"{name:{width}}  {summary}", soft_wrap=True)


def typed() -> str:
    """The typed command, for records."""
    return shlex.join(["tidegate", *sys.argv[1:]])


@contextmanager
def stoppable(sentence: str | Callable[[], str]) -> Iterator[None]:
    """Turns Ctrl-C into a message; a function is called for the message only then."""
    try:
        yield
    except KeyboardInterrupt:
        raise Stopped(sentence if isinstance(sentence, str) else sentence()) from None


def kept_runs(plan: Plan | SuitePlan, out: Path) -> str:
    """The message for a stopped sweep or suite, with the number of runs that its folder keeps."""
    finished, total = plan.kept(out)
    return f"stopped; {finished} of {total} runs are done and kept in {out}; the same command goes on from there"


def print_run(run: Run) -> None:
    """Prints a run: its name, seed and digest, and the tables of its flows, sessions and links."""
    from tidegate.output.terminal import console, show
    from tidegate.show import view

    luck = "" if view.is_recorded(run) else f", seed {run.seed}"
    console().print(f"{run.name}{luck}, digest {run.digest}\n")
    show(run.document())
