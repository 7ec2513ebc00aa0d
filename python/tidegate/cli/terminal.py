"""What is said on the terminal: messages, and results as JSON. Tables are in `tables`, which takes longer to load."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tidegate.errors import TidegateError

if TYPE_CHECKING:
    from tidegate.comparison.sweeping import Plan
    from tidegate.results.remarks import Remarks
    from tidegate.runs import Run
    from tidegate.scenario import Scenario
    from tidegate.suite import Plan as SuitePlan


class Stopped(TidegateError):
    """The person pressed Ctrl-C."""

    exit_code = 130


def say(message: str) -> None:
    """Prints a message for the person on standard error, apart from the results."""
    sys.stderr.write(f"tidegate: {message}\n")
    sys.stderr.flush()


def say_remarks(remarks: Remarks, scenario: Scenario | None = None) -> None:
    """Prints warnings and notes on standard error, with file and line of the setting where they are known."""
    sys.stdout.flush()
    for kind, sentence in remarks.brief.named:
        key = sentence.partition(": ")[0]
        where = scenario.where(key) if scenario else ""
        of_way_back = _of_way_back(key, scenario) if scenario else ""
        say(f"{kind.lower()}: {where}{': ' if where else ''}{sentence}{of_way_back}")


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


def print_names(about: Mapping[str, str]) -> None:
    """Prints names, and what there is to say of each beside it."""
    from tidegate.output.terminal import console

    width = max(map(len, about), default=0)
    for name, says in about.items():
        console().print(f"{name:{width}}  {says}", soft_wrap=True)


def typed() -> str:
    """What was typed, for the record."""
    return shlex.join(["tidegate", *sys.argv[1:]])


@contextmanager
def stoppable(sentence: str | Callable[[], str]) -> Iterator[None]:
    """Turns Ctrl-C into a sentence, which may be made only then."""
    try:
        yield
    except KeyboardInterrupt:
        raise Stopped(sentence if isinstance(sentence, str) else sentence()) from None


def kept_runs(plan: Plan | SuitePlan, out: Path) -> str:
    """A sentence for the plan of a sweep or a suite that was stopped: how many of its runs its folder keeps."""
    kept, total = plan.kept(out)
    return f"stopped; {kept} of {total} runs are done and kept in {out}; the same command goes on from there"


def print_run(done: Run) -> None:
    """Prints a run: what it is, its flows, its sessions and its links."""
    from tidegate.output.terminal import console, show

    console().print(f"{done.name}, seed {done.seed}, digest {done.digest}\n")
    show(done.document())
