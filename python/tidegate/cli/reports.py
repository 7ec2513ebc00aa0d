"""The command report: the page of a result again, or its picture."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tidegate.cli.options import Force
from tidegate.errors import InputError

if TYPE_CHECKING:
    from tidegate.comparing import Comparison
    from tidegate.running import Run


def add_to(app: typer.Typer) -> None:
    """Puts the command on the command line."""
    app.command()(report)


def report(
    folder: Annotated[Path, typer.Argument(help="What `run` or `compare` wrote with --out.")],
    out: Annotated[
        Path | None,
        typer.Option(help="File to write, .html, .png, .svg or .pdf; report.html in the folder by default."),
    ] = None,
    force: Force = False,
) -> None:
    """Make the HTML report of a run or a comparison again, or its picture.

    The picture of a run has all that its two ends knew over one time axis, as a browser's webrtc-internals shows it;
    that of a comparison is its sheet.

    Example: tidegate report DIR --out talk.html

    Example: tidegate report my-run --out session.png
    """
    from tidegate import comparing
    from tidegate._files import check_target
    from tidegate.cli.tables import console
    from tidegate.running import RUN_FILE, Run
    from tidegate.show import report as reporting

    picture = out is not None and out.suffix.lower() in _PICTURES
    if out is not None and picture:
        check_target(out, "picture", lambda path: path.suffix == out.suffix, force=force)
    elif out is not None and out.suffix.lower() not in {".html", ".htm"}:
        found = f"the suffix {out.suffix}" if out.suffix else "no suffix"
        raise InputError(f"--out {out}: found {found}; expected .html, {', '.join(sorted(_PICTURES))}")
    elif out is not None:
        check_target(out, "report of tidegate", reporting.is_report, force=force)
    if (folder / comparing.COMPARISON_FILE).is_file():
        source: Any = comparing.Comparison.load(folder)
    elif (folder / RUN_FILE).is_file():
        source = Run.load(folder)
    else:
        wanted = f"{RUN_FILE} or {comparing.COMPARISON_FILE}"
        raise InputError(f"{folder}: holds neither a run nor a comparison (no {wanted})")
    target = out or folder / "report.html"
    if picture:
        _draw(source, target)
    else:
        reporting.write(target, source)
    console().print(f"written to {target}")


_PICTURES = {".png", ".svg", ".pdf"}


def _draw(source: Run | Comparison, target: Path) -> None:
    from tidegate._files import write_file
    from tidegate.running import Run
    from tidegate.show import plot

    figure = plot.session(source) if isinstance(source, Run) else plot.comparison(source.runs)
    data = io.BytesIO()
    figure.savefig(data, format=target.suffix.lower()[1:])
    write_file(target, data.getvalue())
