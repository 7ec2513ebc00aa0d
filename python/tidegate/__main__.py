"""`tidegate` and `python -m tidegate`: the command line, from whatever state a shell begins it in."""

from __future__ import annotations

import errno
import io
import os
import signal
import sys


def script() -> None:
    """The entry point.

    Ctrl-C may come at any line, and an exception would end up in the middle of somebody's import. So both signals end
    the process, until work begins that stops in order, and after it.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # at once: the next line loads the engine
    from tidegate import _signals

    _signals.end_at_once()
    _open_streams()
    from tidegate.cli import main

    sys.exit(main())


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
