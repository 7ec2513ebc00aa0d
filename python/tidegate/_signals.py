"""The meaning of Ctrl-C and SIGTERM while tidegate works.

Python turns Ctrl-C into an exception at any line, which does harm in code that does not expect it: in an import it
leaves a lock behind on which other threads wait for ever, and in a callback from C or Rust it is lost, and taken for a
"no". So in the program both signals end the process at once, as by default. Work that has to stop in order checks a
flag (`noted`), and work in a single thread that can stop at any line gets the exception (`interruptible`).
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
    """Gives both signals their default action, which ends the process, except inside `noted` and `interruptible`.

    For the program only. A process in the background ignores Ctrl-C, and goes on ignoring it.
    """
    global _is_program  # noqa: PLW0603
    _is_program = True
    for number in _NUMBERS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)


@contextmanager
def noted() -> Iterator[threading.Event]:
    """Makes the first signal set an event, for work to check, and the second one raise KeyboardInterrupt.

    Raises:
        KeyboardInterrupt: at the end, if the event is set.
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
def interruptible() -> Iterator[None]:
    """Context in which Ctrl-C and SIGTERM raise KeyboardInterrupt in the main thread, at any line."""
    with _handled(signal.default_int_handler):
        yield


@contextmanager
def _handled(handler: signal._HANDLER) -> Iterator[None]:
    """Sets a handler for those of the signals that have their usual handler, and resets it at the end."""
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
