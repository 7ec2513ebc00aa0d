"""A progress bar, on a terminal or in a notebook."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from html import escape
from importlib import import_module
from typing import Any

from tidegate.errors import InputError
from tidegate.wording import one_line

Progress = Callable[[float], None]
"""A function that is called with the fraction of the work that is done, from 0 to 1."""

_PATIENCE = 1.0  # seconds without a bar


def progress_bar(progress: Progress | bool | None, label: str) -> AbstractContextManager[Progress | None]:
    """The function to call with the progress, for the time of a `with` block.

    Args:
        progress: The caller's own function; True for a bar, if there is a terminal or notebook; False or None for none.
        label: The text beside the bar.

    Raises:
        InputError: when `progress` is none of these.
    """
    if progress is not True:
        if progress and not callable(progress):
            raise InputError(
                f"progress: found {progress!r}; expected True, or a function that takes the finished fraction"
            )
        return nullcontext(progress or None)
    # rich takes a while to load, and draws in notebooks only with ipywidgets
    from rich.console import Console

    console = Console(stderr=True)
    if console.is_jupyter:
        return _in_notebook(label)
    return _on_terminal(label, console) if sys.stderr.isatty() else nullcontext()


@contextmanager
def _on_terminal(label: str, console: Any) -> Iterator[Progress]:
    from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TaskProgressColumn())
    bar = Bar(*columns, TextColumn("time left"), TimeRemainingColumn(), console=console, transient=True)
    task = bar.add_task(one_line(label), total=1.0)
    due = _after_patience()

    def tell(fraction: float) -> None:
        if not bar.live.is_started and due() and fraction < 1:
            bar.start()
        bar.update(task, completed=fraction)

    try:
        yield tell
    finally:
        if bar.live.is_started:
            bar.stop()


@contextmanager
def _in_notebook(label: str) -> Iterator[Progress]:
    # IPython is installed wherever a notebook runs, and is no dependency otherwise
    show = import_module("IPython.display")

    due = _after_patience()
    handle: Any = None

    def tell(fraction: float) -> None:
        nonlocal handle
        bar = f'<progress value="{fraction:.3f}" style="width:20em"></progress>'
        drawn = show.HTML(f"{escape(label)} {bar} {fraction:.0%}")
        if handle is not None:
            handle.update(drawn)
        elif due() and fraction < 1:
            handle = show.display(drawn, display_id=True)

    try:
        yield tell
    finally:
        if handle is not None:
            handle.update(show.HTML(""))


def _after_patience() -> Callable[[], bool]:
    started = time.monotonic()
    return lambda: time.monotonic() - started > _PATIENCE
