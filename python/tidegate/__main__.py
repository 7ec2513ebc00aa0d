"""`tidegate` and `python -m tidegate`: the command line, in any state in which a shell starts it."""

from __future__ import annotations

import errno
import io
import os
import signal
import sys


def script() -> None:
    """Entry point of the command line.

    Ctrl-C may come at any line, and its exception could hit an import of any library. So both signals end the process,
    except during work that stops in order.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # at once: the next line loads the engine
    try:
        from tidegate import _signals

        _signals.end_at_once()
        _open_streams()
        from tidegate.cli import main
    except ImportError as error:
        if not str(error.path).endswith(".so"):
            raise
        sys.exit(f"tidegate: a library cannot be loaded: {error}; where memory is limited (ulimit -v), it needs more")

    sys.exit(main())


class _Closed(io.TextIOBase):
    """Standard output that was closed before the program began (`>&-`)."""

    def write(self, text: str, /) -> int:
        """Raises an error that says so."""
        del text
        raise OSError(errno.EBADF, "is closed, so that results cannot be shown", "standard output")


def _open_streams() -> None:
    """Opens missing standard streams, so that no other file gets their numbers, and makes each take any text."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            # takes the lowest number that is free, which is this one
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
    # closed streams are None, in spite of their declared types
    streams: dict[str, object] = vars(sys)
    if streams["stdout"] is None:
        sys.stdout = _Closed()
    if streams["stderr"] is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # a terminal may lack characters of ours; a question mark is better than no result
            stream.reconfigure(errors="replace")


if __name__ == "__main__":
    script()
