"""Where encoded clips are kept."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import IO

from tidegate._files import named


def cache() -> Path:
    """The folder where ladders are kept: TIDEGATE_CACHE, or the user's cache folder of the platform."""
    if own := os.environ.get("TIDEGATE_CACHE"):
        return Path(own) / "media"
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "tidegate" / "media"


def scratch() -> IO[bytes]:
    """A file without a name, on the disk of the cache: the system's temporary folder may be memory.

    Raises:
        OutputError: when the cache cannot be written.
    """
    place = cache()
    with named(place):
        place.mkdir(parents=True, exist_ok=True)
        return tempfile.TemporaryFile(dir=place)
