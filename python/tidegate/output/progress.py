"""A bar that says how far work is, for whoever asks for one: on a terminal, or in a notebook."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from html import escape
from importlib import import_module
from typing import Any

from tidegate.errors import InputError

Progress = Callable[[float], None]
"""Is told the fraction of work that is done, from 0 to 1."""

_PATIENCE = 1.0  # seconds without a bar


def shown(progress: Progress | bool | None, what: str) -> AbstractContextManager[Progress | None]:
    """Whom to tell how far work is: a function of the caller's, a bar that is drawn for True, or nobody.

    Args:
        progress: What the caller asked for.
        what: What the bar is of.

    Raises:
        InputError: when it is none of these.
    """
    if progress is not True:
        if progress and not callable(progress):
            raise InputError(
                f"progress: found {progress!r}; expected True, or a function that is told the fraction done"
            )
        return nullcontext(progress or None)
    # rich takes a while to load, and draws in notebooks only with ipywidgets
    from rich.console import Console

    console = Console(stderr=True)
    if console.is_jupyter:
        return _in_notebook(what)
    return _on_terminal(what, console) if sys.stderr.isatty() else nullcontext()


@contextmanager
def _on_terminal(what: str, console: Any) -> Iterator[Progress]:
    from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TaskProgressColumn())
    bar = Bar(*columns, TextColumn("time left"), TimeRemainingColumn(), console=console, transient=True)
    task = bar.add_task(what, total=1.0)
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
def _in_notebook(what: str) -> Iterator[Progress]:
    # a notebook has it, and nobody else
    show = import_module("IPython.display")

    due = _after_patience()
    handle: Any = None

    def tell(fraction: float) -> None:
        nonlocal handle
        bar = f'<progress value="{fraction:.3f}" style="width:20em"></progress>'
        drawn = show.HTML(f"{escape(what)} {bar} {fraction:.0%}")
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
    begun = time.monotonic()
    return lambda: time.monotonic() - begun > _PATIENCE
