"""The meaning of Ctrl-C and SIGTERM while tidegate works.

An exception at any line, which is what Python makes of Ctrl-C, does harm where nobody expects one: in the middle of an
import it leaves a lock behind on which other threads wait for ever, and in a callback of somebody's C or Rust it is
lost, and taken for a "no". So in the program both signals end the process at once, as they do by default. Work that is
to stop in order asks for a note (`noted`), and work in one thread that can be left at any line asks for the exception
(`raised`).
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_NUMBERS = (signal.SIGINT, signal.SIGTERM)
_is_program = False


def end_at_once() -> None:
    """For the program: from now on both end the process by their default action, unless work asks for something else.

    What was begun in the background ignores Ctrl-C, and goes on ignoring it.
    """
    global _is_program  # noqa: PLW0603
    _is_program = True
    for number in _NUMBERS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)


@contextmanager
def noted() -> Iterator[threading.Event]:
    """Makes the first signal a note, to be read in between, and the second one KeyboardInterrupt.

    Raises:
        KeyboardInterrupt: at the end, where there is a note.
    """
    asked = threading.Event()

    def note(number: int, frame: FrameType | None) -> None:
        if asked.is_set():
            signal.default_int_handler(number, frame)
        asked.set()

    with _handled(note):
        yield asked
    if asked.is_set():
        raise KeyboardInterrupt


@contextmanager
def raised() -> Iterator[None]:
    """Makes them KeyboardInterrupt in the main thread, at any line."""
    with _handled(signal.default_int_handler):
        yield


@contextmanager
def _handled(handler: signal._HANDLER) -> Iterator[None]:
    """Another handler for those signals of which nobody else has decided what they mean."""
    if threading.current_thread() is not threading.main_thread():
        yield  # signals do not come here
        return
    usual = (signal.default_int_handler, signal.SIG_DFL) if _is_program else (signal.default_int_handler,)
    before = {number: now for number in _NUMBERS if (now := signal.getsignal(number)) in usual}
    for number in before:
        signal.signal(number, handler)
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)
