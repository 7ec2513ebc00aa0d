"""`tidegate` and `python -m tidegate`: the command line, from whatever state a shell begins it in."""

from __future__ import annotations

import errno
import io
import os
import signal
import sys
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def script() -> None:
    """The entry point.

    Loading takes a while, and Ctrl-C may come at any line of it. An exception there would end up in the middle of
    somebody's import; so the process just goes. Afterwards both signals are the exception that everything expects.
    """
    _on_signals(_leave)
    _open_streams()
    from tidegate.cli import main

    _on_signals(signal.default_int_handler)
    code = main()
    # nothing is left to be stopped in order
    _on_signals(_leave)
    sys.exit(code)


def _on_signals(handler: signal._HANDLER) -> None:
    for number in _SIGNALS:
        # what was begun in the background ignores Ctrl-C, and goes on ignoring it
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handler)


def _leave(number: int, frame: FrameType | None) -> None:
    del number, frame
    os.write(2, b"tidegate: stopped\n")
    os._exit(128 + signal.SIGINT)


class _Closed(io.TextIOBase):
    """Standard output that was closed before the program began (`>&-`)."""

    def write(self, text: str, /) -> int:
        """Says so."""
        del text
        raise OSError(errno.EBADF, "is closed, so that results cannot be shown", "standard output")


def _open_streams() -> None:
    """Makes sure that the three streams are there, and that no file is opened under their numbers."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            # takes the lowest number that is free, which is this one
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
    # they are None where they were closed, whatever their types say
    streams: dict[str, object] = vars(sys)
    if streams["stdout"] is None:
        sys.stdout = _Closed()
    if streams["stderr"] is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115


if __name__ == "__main__":
    script()
