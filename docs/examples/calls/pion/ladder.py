"""The clip as VP8 at each of a row of rates: pion encodes nothing, so that its peer goes from one of these to another.

Run by itself it prints the folder. It is made once and kept beside the clip in the user's cache.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.progress import track

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import clip

RATES = [round(160_000 * 1.35**step, -3) for step in range(11)]
"""bit/s, 160 kbit/s to 3.2 Mbit/s. Two neighbours are less than 1.5 apart, because that is how far pion's GCC lets its
estimate exceed what is received: with wider steps it would never get to the next one."""
GROUP = 15
"""Frames from one key frame to the next, where the rate may change: 0.6 s."""


def program() -> str:
    """The ffmpeg program, that of imageio-ffmpeg or else the system's."""
    try:
        import imageio_ffmpeg
    except ImportError:
        if found := shutil.which("ffmpeg"):
            return found
        raise SystemExit("pion's clip is encoded by ffmpeg, which is not here: pip install 'tidegate[media]'") from None
    return str(imageio_ffmpeg.get_ffmpeg_exe())


def made() -> Path:
    """The folder of the encodings, a file `RATE.ivf` each."""
    source = Path(os.environ.get("CALL_CLIP") or clip.made())
    folder = source.with_suffix(f".vp8-{GROUP}-{len(RATES)}")
    if folder.is_dir():
        return folder
    ffmpeg = program()
    with tempfile.TemporaryDirectory(dir=source.parent) as scratch:
        part = Path(scratch) / "ladder"
        part.mkdir()
        for rate in track(RATES, "Encoding the clip", console=Console(stderr=True)):
            bits = str(int(rate))
            # constant bit rate in real time, as libwebrtc sets libvpx: no frames ahead, none that is never shown
            settings = ["-c:v", "libvpx", "-deadline", "realtime", "-cpu-used", "8", "-lag-in-frames", "0"]
            settings += [
                "-auto-alt-ref",
                "0",
                "-threads",
                "1",
                "-b:v",
                bits,
                "-minrate",
                bits,
                "-maxrate",
                bits,
                "-bufsize",
                bits,
            ]
            settings += ["-g", str(GROUP), "-keyint_min", str(GROUP)]
            told = subprocess.run(  # noqa: S603  (ffmpeg, on a file that we wrote)
                [ffmpeg, "-v", "error", "-i", source, *settings, part / f"{bits}.ivf"],
                capture_output=True,
                text=True,
                check=False,
                stdin=subprocess.DEVNULL,
            )
            if told.returncode:
                raise SystemExit(f"{ffmpeg} cannot encode {source}: {told.stderr.strip()[-300:]}")
        if not folder.is_dir():
            part.rename(folder)
    return folder


if __name__ == "__main__":
    print(made())
