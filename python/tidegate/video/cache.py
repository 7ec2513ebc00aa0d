"""The cache of encoded clips."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import IO

from platformdirs import user_cache_path

from tidegate._files import writable


def cache() -> Path:
    """The folder of encoded clips: TIDEGATE_CACHE, or the user's cache folder of the platform."""
    folder = os.environ.get("TIDEGATE_CACHE")
    return (Path(folder) if folder else user_cache_path("tidegate", appauthor=False)) / "media"


def scratch() -> IO[bytes]:
    """A file without a name, on the disk of the cache: the system's temporary folder may be memory.

    Raises:
        OutputError: when the cache cannot be written.
    """
    folder = cache()
    with writable(folder):
        folder.mkdir(parents=True, exist_ok=True)
        return tempfile.TemporaryFile(dir=folder)
