"""Where encoded clips are kept."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import IO

from platformdirs import user_cache_path

from tidegate._files import named


def cache() -> Path:
    """The folder where ladders are kept: TIDEGATE_CACHE, or the user's cache folder of the platform."""
    own = os.environ.get("TIDEGATE_CACHE")
    return (Path(own) if own else user_cache_path("tidegate", appauthor=False)) / "media"


def scratch() -> IO[bytes]:
    """A file without a name, on the disk of the cache: the system's temporary folder may be memory.

    Raises:
        OutputError: when the cache cannot be written.
    """
    place = cache()
    with named(place):
        place.mkdir(parents=True, exist_ok=True)
        return tempfile.TemporaryFile(dir=place)
