"""Becomes a program in a session that was entered: `nsenter` starts this there, with rights that the program loses."""

from __future__ import annotations

import os
import sys

from tidegate import _core


def main(argv: list[str]) -> int:
    """Becomes the program; returns only if it cannot be started."""
    _core.drop_rights()
    try:
        os.execvp(argv[0], argv)  # noqa: S606
    except OSError as error:
        print(f"tidegate: {argv[0]}: cannot be started: {error.strerror}", file=sys.stderr)  # noqa: T201
        return 127


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
