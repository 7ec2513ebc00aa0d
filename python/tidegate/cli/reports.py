"""The command report, which makes the page or the picture of a result again."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tidegate.cli.options import Force, Limit
from tidegate.errors import InputError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from tidegate.comparison import Comparison
    from tidegate.comparison.sweeping import SweepResult
    from tidegate.runs import Run


def report(
    folder: Annotated[Path, typer.Argument(help="Folder of a `run`, `compare`, `sweep`, `optimise` or `suite run`.")],
    out: Annotated[
        Path | None,
        typer.Option(help="File to write, .html, .png, .svg or .pdf; by default report.html in the folder."),
    ] = None,
    size: Annotated[
        str | None, typer.Option(help="Width and height of a picture in inches, as 3.3x2.4.", metavar="WIDTHxHEIGHT")
    ] = None,
    style: Annotated[
        str | None,
        typer.Option(help="Style of a picture: paper, or screen; paper is the default for one narrower than 5 inches."),
    ] = None,
    title: Annotated[str | None, typer.Option(help="Heading of a picture; none if empty.")] = None,
    force: Force = False,
    limit: Limit = None,
) -> None:
    """Make the HTML report of a run, a comparison, a sweep, a search or a suite again, or its picture.

    The picture of a run shows the data of both ends over one time axis, like a browser's webrtc-internals. That of a
    comparison is its sheet of charts, and that of a sweep shows delay against rate. The report of a stopped sweep or
    search has the finished runs.

    Example: tidegate report DIR --out talk.html

    Example: tidegate report my-run --out session.png

    Example: tidegate report DIR --out figure.pdf --size 3.3x4.5 --title ""
    """
    from tidegate._files import check_target
    from tidegate._inputs import raise_limit
    from tidegate.cli.folders import opened
    from tidegate.optimisation import SearchResult
    from tidegate.output.files import write_page
    from tidegate.output.terminal import console
    from tidegate.show import report as reporting
    from tidegate.suite import SuiteResult
    from tidegate.suite.sweeping import SuiteSweep, is_sweep

    raise_limit(limit)
    picture = out is not None and out.suffix.lower() in PICTURES
    look = {"size": None if size is None else _inches(size), "style": style, "title": title}
    if not picture and any(value is not None for value in look.values()):
        raise InputError(
            f"--size, --style, --title: they are for pictures; expected --out with {', '.join(sorted(PICTURES))}"
        )
    if out is not None and picture:
        check_target(out, "picture", lambda path: path.suffix == out.suffix, force=force)
    elif out is not None and out.suffix.lower() not in {".html", ".htm"}:
        raise InputError(f"--out {out}: found {suffix_of(out)}; expected .html, {', '.join(sorted(PICTURES))}")
    elif out is not None:
        check_target(out, "report of tidegate", reporting.is_report, force=force)
    source = opened(folder, ["run", "comparison", "sweep", "search", "suite result"])
    if isinstance(source, SuiteResult) and is_sweep(source):
        source = SuiteSweep.of(source)
    target = out or folder / ("index.html" if isinstance(source, SuiteResult) else "report.html")
    if not picture:
        write_page(target, source.document())
    elif isinstance(source, SearchResult | SuiteResult):
        kind = "a search" if isinstance(source, SearchResult) else "a suite's result"
        raise InputError(f"--out {out}: a picture of {kind} cannot be drawn; expected .html")
    else:
        _draw(source, target, look)
    console().print(f"written to {target}")


PICTURES = {".png", ".svg", ".pdf"}
"""Suffixes of pictures."""


def suffix_of(path: Path) -> str:
    """The suffix of a file's name, in words."""
    return f"the suffix {path.suffix}" if path.suffix else "no suffix"


def _inches(text: str) -> tuple[float, float]:
    match = re.fullmatch(r"([0-9.]+)(?:in)? *[x,] *([0-9.]+)(?:in)?", text)
    try:
        if match is not None:
            return float(match[1]), float(match[2])
    except ValueError:
        pass
    raise InputError(f"--size {text}: expected width and height in inches, as 3.3x2.4")


def _draw(source: Run | Comparison | SweepResult, target: Path, look: dict[str, Any]) -> None:
    from tidegate._files import write_file
    from tidegate.comparison import Comparison
    from tidegate.runs import Run
    from tidegate.show import plot

    try:
        if isinstance(source, Run):
            figure = plot.session(source, **look)
        elif isinstance(source, Comparison):
            figure = plot.comparison(source.runs, **look)
        else:
            figure = plot.sweep(source, **look)
    except ValueError as error:
        raise InputError(f"{target}: {error}") from None
    write_file(target, drawn(figure, target))


def drawn(figure: Figure, target: Path) -> bytes:
    """A figure as the contents of a file with this name."""
    data = io.BytesIO()
    figure.savefig(data, format=target.suffix.lower()[1:])
    return data.getvalue()
