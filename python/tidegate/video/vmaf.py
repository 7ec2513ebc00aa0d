"""VMAF by the ffmpeg program in imageio-ffmpeg.

Model vmaf_v0.6.1 (viewers at three picture heights from a 1080p screen), built into the program. Pictures are compared
at their own size and not scaled to 1080p, so that scores compare runs of one clip, and not clips of different sizes.
With every k-th frame, motion is still taken from all frames (libvmaf's n_subsample).
"""

from __future__ import annotations

import json
import math
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from types import TracebackType
from typing import IO, Self

import numpy as np

from tidegate.errors import RunError
from tidegate.video import extra
from tidegate.video.clip import Picture, planes
from tidegate.video.measures import Floats

MODEL = "vmaf_v0.6.1"


def program() -> str | None:
    """The ffmpeg program; None where it is not installed."""
    if not extra.has("imageio_ffmpeg"):
        return None
    import imageio_ffmpeg

    return str(imageio_ffmpeg.get_ffmpeg_exe())


class Vmaf:
    """Compares distorted pictures with their references as they come, and holds only a few of them.

    A context; after it `scores` has the results.
    """

    def __init__(self, width: int, height: int, *, distorted: int = 1, subsample: int = 5) -> None:
        """Compares pictures of one size with `distorted` pictures per reference; scores each `subsample`-th frame."""
        self._form = (width, height)
        self._distorted = distorted
        self._subsample = subsample
        self._frames = 0
        self.scores: list[Floats] = []
        """Scores of each series of distorted pictures: 0 to 100 for each frame; NaN for frames without a score."""

    def __enter__(self) -> Self:
        """Starts the program."""
        self._folder = tempfile.TemporaryDirectory(prefix="tidegate-vmaf-")
        path = Path(self._folder.name)
        width, height = self._form
        stack = self._distorted + 1
        names = [f"[p{k}]" for k in range(stack)]
        graph = [
            f"[0:v]split={stack + self._distorted - 1}" + "".join(f"[s{k}]" for k in range(stack + self._distorted - 1))
        ]
        # a copy of the reference for each comparison
        graph += [f"[s{k}]crop={width}:{height}:0:0[r{k}]" for k in range(self._distorted)]
        graph += [
            f"[s{self._distorted + k}]crop={width}:{height}:0:{(k + 1) * height}{names[k]}"
            for k in range(self._distorted)
        ]
        graph += [
            f"{names[k]}[r{k}]libvmaf=model=version={MODEL}:n_subsample={self._subsample}:log_fmt=json:log_path={k}.json[o{k}]"
            for k in range(self._distorted)
        ]
        sinks = [part for k in range(self._distorted) for part in ("-map", f"[o{k}]", "-f", "null", "-")]
        size = f"{width}x{height * stack}"
        source = ["-f", "rawvideo", "-pix_fmt", "yuv420p", "-s", size, "-r", "25", "-i", "pipe:0"]
        command = [str(program()), "-nostdin", "-hide_banner", "-loglevel", "error", *source]
        self._errors = (path / "errors.txt").open("w+b")
        self._process = subprocess.Popen(  # noqa: S603
            [*command, "-filter_complex", ";".join(graph), *sinks],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=self._errors,
            cwd=path,
        )
        return self

    def add(self, reference: Picture, distorted: Sequence[Picture]) -> None:
        """Adds the next reference with its distorted pictures.

        Raises:
            RunError: when the program has stopped.
        """
        pipe = self._pipe()
        try:
            # one below the other: all of Y, then U, then V
            for plane in chain.from_iterable(zip(*map(planes, [reference, *distorted]), strict=True)):
                pipe.write(np.ascontiguousarray(plane).data)
        except OSError:
            raise RunError(f"VMAF: {self._last_error()}") from None
        self._frames += 1

    def _pipe(self) -> IO[bytes]:
        assert self._process.stdin is not None  # noqa: S101
        return self._process.stdin

    def _last_error(self) -> str:
        self._process.wait()
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else f"the ffmpeg program ended with exit code {self._process.returncode}"

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Waits for the scores, or stops the program after an error.

        Raises:
            RunError: when the program made no scores.
        """
        try:
            if kind is not None:
                self._process.kill()
            with suppress(OSError):
                self._pipe().close()
            code = self._process.wait()
            if kind is None and self._frames:
                if code:
                    raise RunError(f"VMAF: {self._last_error()}")
                self.scores = [self._load_scores(Path(self._folder.name) / f"{k}.json") for k in range(self._distorted)]
            elif kind is None:
                self.scores = [np.zeros(0) for _ in range(self._distorted)]
        finally:
            self._errors.close()
            self._folder.cleanup()

    def _load_scores(self, path: Path) -> Floats:
        scores = np.full(self._frames, math.nan)
        for frame in json.loads(path.read_text("utf-8"))["frames"]:
            score = frame["metrics"].get("vmaf")
            if score is not None and frame["frameNum"] % self._subsample == 0:
                scores[frame["frameNum"]] = score
        return scores
