"""A clip encoded at several rates, on disk: the simulated sender sends from it, and its receiver decodes it.

A ladder is a folder with `ladder.json` and for each rate R in kbit/s:

* `rung_R.txt`: a line a frame, in the order of decoding: number, type, `X`, luma PSNR in dB as it was encoded, bytes.
  This is the layout that `video = {source = "frames", ladder = ...}` reads.
* `rung_R.bits`: the frames one after the other.
* `rung_R.npz`: for each slice its frame, its begin in the frame, and its length.

Where the next slice does not fit into the rest of a packet, zero bytes (trailing_zero_8bits of H.264 annex B) fill the
packet, so that no slice is in two packets, as RFC 6184 would send it; this adds 0 to 3 % to x264's bits. The first
frame of a group gets a few more bytes where needed, so that its size differs between rates: the sizes sent tell the
rate that was used.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from tidegate._files import writable, write_file
from tidegate.errors import InputError, OutputError
from tidegate.results.folders import write_folder
from tidegate.runs import pool
from tidegate.video import codec as codecs
from tidegate.video.cache import cache
from tidegate.video.clip import Clip, luma
from tidegate.video.codec import Codec, Format, filled
from tidegate.video.measures import Floats, Ints, psnr
from tidegate.video.settings import Settings

MARK = "ladder.json"
_FORMAT = 2
_LARGEST_FRAME = 1_000_000
"""Bytes: RFC 8593 section 6."""


@dataclass(frozen=True)
class Rung:
    """One encoding."""

    rate: int
    """Rate that the encoder was asked for, bit/s."""
    sizes: Ints
    """Bytes of each frame, in the order of decoding."""
    kinds: list[str]
    """I, P or B."""
    psnr_db: Floats
    """Luma PSNR of each frame as it was encoded."""
    slices: tuple[Ints, Ints, Ints]
    """For each slice its frame, its begin in the frame, and its length."""
    path: Path
    """The file with the bits."""

    @cached_property
    def _starts(self) -> Ints:
        return np.concatenate([[0], np.cumsum(self.sizes)])

    @cached_property
    def _firsts(self) -> Ints:
        return np.searchsorted(self.slices[0], np.arange(len(self.sizes) + 1)).astype(np.int64)

    def rate_at(self, number: int) -> int:
        """Rate that the encoder was asked for, bit/s: the same for all frames."""
        del number
        return self.rate

    def places(self, number: int) -> tuple[Ints, Ints]:
        """Begins and lengths of the slices in a frame, in bytes; packets are cut from the beginning of the frame."""
        span = slice(self._firsts[number], self._firsts[number + 1])
        return self.slices[1][span], self.slices[2][span]

    def frame(self, number: int) -> list[bytes]:
        """The slices of a frame."""
        with self.path.open("rb") as file:
            file.seek(int(self._starts[number]))
            bits = file.read(int(self.sizes[number]))
        places = zip(*(column.tolist() for column in self.places(number)), strict=True)
        return [bits[begin : begin + length] for begin, length in places]


@dataclass(frozen=True)
class Ladder:
    """A clip's encodings."""

    folder: Path
    settings: Settings
    clip: Clip
    form: Format
    codec: Codec
    header: bytes
    """The header for decoders, sent out of band."""
    order: Ints
    """For each frame in the order of decoding, the number of its picture in the clip."""
    rungs: tuple[Rung, ...]
    """By rising rate."""

    @property
    def length(self) -> int:
        """Frames: whole groups, so that it can begin again after the last."""
        return len(self.order)

    @property
    def pictures(self) -> int:
        """Pictures: as many as frames."""
        return self.length

    @property
    def reorder(self) -> int:
        """Frames from decoding a picture to showing it; above 0 with B frames."""
        return max(0, int(np.max(np.arange(self.length) - self.order)))

    @property
    def lookahead(self) -> int:
        """Pictures that an encoder must wait for before it can encode one; above 0 with B frames."""
        return max(0, int(np.max(self.order - np.arange(self.length))))

    @classmethod
    def load(cls, folder: Path) -> Ladder:
        """Reads a ladder; its clip must still be there.

        Raises:
            InputError: when there is no ladder, it is damaged, or its clip has changed.
        """
        again = "run the command with --media again to encode the clip again"
        try:
            about = json.loads((folder / MARK).read_text("utf-8"))
        except (OSError, ValueError):
            raise InputError(f"{folder} holds no encoded clip (no {MARK}); {again}") from None
        if about.get("format") != _FORMAT:
            raise InputError(f"{folder / MARK}: another version of tidegate made the file; {again}")
        try:
            settings = Settings(**{**about["settings"], "size": tuple(about["size"])})
            clip = settings.open()
            if clip.identity != about["clip"]:
                raise InputError(f"{folder}: the clip was encoded from another {settings.clip}; {again}")
            form = Format(clip.width, clip.height, clip.fps, about["group"], settings.b_frames, about["payload"])
            rungs = tuple(_rung(folder, rate) for rate in about["rates"])
            codec = codecs.codec(settings.codec)
            order = np.array(about["order"], dtype=np.int64)
            return cls(folder, settings, clip, form, codec, bytes.fromhex(about["header"]), order, rungs)
        except (OSError, ValueError, KeyError, TypeError, IndexError) as error:
            raise InputError(
                f"{folder}: the encoded clip is damaged ({error}); remove the folder and {again}"
            ) from None


def _rung(folder: Path, rate: int) -> Rung:
    stem = folder / f"rung_{rate // 1000}"
    rows = [line.split() for line in stem.with_suffix(".txt").read_text("utf-8").splitlines() if line[:1] != "%"]
    with np.load(stem.with_suffix(".npz"), allow_pickle=False) as data:
        slices = tuple(data[name] for name in ("frame", "begin", "length"))
    sizes = np.array([int(row[4]) for row in rows], dtype=np.int64)
    bits = stem.with_suffix(".bits")
    if bits.stat().st_size != sizes.sum():
        raise ValueError(f"{bits.name} has not the length of its frames")
    quality = np.array([float(row[3]) for row in rows])
    return Rung(rate, sizes, [row[1] for row in rows], quality, (slices[0], slices[1], slices[2]), bits)


def rates(least: int, most: int, count: int) -> list[int]:
    """Rates in equal ratios from `least` to `most` bit/s, in whole kbit/s.

    >>> rates(150_000, 2_400_000, 5)
    [150000, 300000, 600000, 1200000, 2400000]
    """
    low, high = max(1000, least), max(1000, least, most)
    grid = [low * (high / low) ** (k / max(1, count - 1)) for k in range(count)]
    return sorted({max(1, round(rate / 1000)) * 1000 for rate in grid})


def encode(
    settings: Settings,
    *,
    frames: int,
    least: int,
    most: int,
    payload: int = 1200,
    workers: int | None = None,
    progress: pool.Progress | None = None,
) -> Ladder:
    """Encodes the clip at `settings.rungs` rates, unless the cache has them.

    Args:
        settings: The clip and its encoding.
        frames: Least number of pictures.
        least: Lowest rate in bit/s.
        most: Highest rate in bit/s.
        payload: Bytes of a full packet.
        workers: Number of encoders at once.
        progress: Called with the fraction that is done.

    Raises:
        InputError: when the clip is not usable, or its size or the payload does not suit the codec.
        OutputError: when the cache cannot be written.
    """
    clip = settings.open()
    codec = codecs.codec(settings.codec)
    if payload < 200:  # noqa: PLR2004
        raise InputError(f"payload: found {payload} bytes; encoding for packets needs at least 200")
    is_intra = codec.name == "intra"
    form = Format(
        clip.width,
        clip.height,
        clip.fps,
        1 if is_intra else settings.group,
        0 if is_intra else settings.b_frames,
        payload,
    )
    if not settings.group:
        raise InputError(
            f"--media: found group=0, but {codec.name} cannot make key frames on request; expected at least 1"
        )
    if form.b_frames >= form.group > 1 or (form.group == 1 and form.b_frames):
        raise InputError(f"--media: {form.b_frames} B frames do not fit in a group of {form.group}")
    count = -(-frames // form.group) * form.group
    chosen = rates(least, most, settings.rungs)
    about = {
        "format": _FORMAT,
        "clip": clip.identity,
        "codec": codec.version,
        "size": [clip.width, clip.height],
        "frames": count,
        "group": form.group,
        "payload": payload,
        "rates": chosen,
        "settings": {
            "clip": settings.clip if clip.name == settings.clip else str(Path(settings.clip).expanduser().resolve()),
            "complexity": settings.complexity,
            "codec": codec.name,
            "group": settings.group,
            "b_frames": form.b_frames,
            "rungs": settings.rungs,
        },
    }
    keyed = {**about, "settings": {"b_frames": form.b_frames}}
    key = hashlib.sha256(json.dumps(keyed, sort_keys=True).encode()).hexdigest()[:20]
    folder = cache() / f"{Path(clip.name).stem}-{clip.width}x{clip.height}-{key}"
    if not (folder / MARK).is_file():
        _make(folder, about, clip, codec, form, workers, progress)
    return Ladder.load(folder)


def _make(
    folder: Path,
    about: dict[str, Any],
    clip: Clip,
    codec: Codec,
    form: Format,
    workers: int | None,
    progress: pool.Progress | None,
) -> None:
    jobs = [_Encoding(clip, codec, form, rate, about["frames"]) for rate in about["rates"]]
    with writable(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
    done = [rung for rung in pool.run_all(jobs, workers=workers, progress=progress) if isinstance(rung, _EncodedRung)]
    header, order = done[0].header, done[0].order
    if any(rung.header != header or rung.order != order for rung in done):
        raise OutputError(f"{clip.name}: its encodings have different parameter sets and cannot be mixed")
    _tell_apart([rung.frames for rung in done], form.group)
    with write_folder(folder, MARK) as making:
        for rung in done:
            rung.write(making)
        write_file(making / MARK, json.dumps({**about, "header": header.hex(), "order": order}, indent=1) + "\n")


@dataclass
class _EncodedRung:
    """One encoding in memory: its bits are a few megabytes, whatever the size of the pictures."""

    rate: int
    header: bytes
    order: list[int]
    kinds: list[str]
    psnr_db: list[float]
    frames: list[list[bytes]]
    """The slices of each frame, filled up; the last of a frame may be filled, too."""

    def write(self, folder: Path) -> None:
        stem = folder / f"rung_{self.rate // 1000}"
        sizes = [sum(map(len, slices)) for slices in self.frames]
        if max(sizes) > _LARGEST_FRAME:
            raise InputError(f"a frame at {self.rate // 1000} kbit/s has {max(sizes)} bytes; expected at most 1 MB")
        rows = zip(range(len(sizes)), self.kinds, self.psnr_db, sizes, strict=True)
        lines = [f"{number} {kind} X {quality:.6f} {size}" for number, kind, quality, size in rows]
        head = "% frame, type, X, luma PSNR in dB, bytes; in the order of decoding"
        write_file(stem.with_suffix(".txt"), "\n".join([head, *lines]) + "\n")
        write_file(stem.with_suffix(".bits"), b"".join(itertools.chain.from_iterable(self.frames)))
        lengths = [[len(data) for data in slices] for slices in self.frames]
        with writable(stem), stem.with_suffix(".npz").open("wb") as file:
            np.savez(
                file,
                frame=np.repeat(np.arange(len(lengths)), [len(frame_lengths) for frame_lengths in lengths]),
                begin=np.concatenate([np.cumsum([0, *frame_lengths[:-1]]) for frame_lengths in lengths]),
                length=np.concatenate(lengths),
            )


@dataclass(frozen=True)
class _Encoding:
    """One encoding as a piece of work for the pool."""

    clip: Clip
    codec: Codec
    form: Format
    rate: int
    count: int

    def __call__(self, tick: pool.Tick) -> _EncodedRung:
        """Encodes, and decodes again to measure the quality."""
        waiting: dict[int, Any] = {}

        def pictures() -> Any:
            for number, picture in enumerate(self.clip.pictures(self.count)):
                waiting[number] = picture
                tick(number / self.count)
                yield picture

        header, frames = self.codec.encode(pictures(), self.form, self.rate)
        decoder = self.codec.decoder(header, self.form)
        encoded = _EncodedRung(self.rate, header, [], [], [], [])
        quality: dict[int, float] = {}

        def judge(ready: Sequence[tuple[int, Any]]) -> None:
            for number, picture in ready:
                quality[number] = psnr(luma(waiting.pop(number)), luma(picture))

        for frame in frames:
            encoded.order.append(frame.picture)
            encoded.kinds.append(frame.kind)
            encoded.frames.append(filled(frame.slices, self.form.payload))
            judge(decoder.decode(frame.picture, frame.slices))
        judge(decoder.flush())
        encoded.psnr_db = [quality[number] for number in encoded.order]
        return encoded


def _tell_apart(rungs: Sequence[list[list[bytes]]], group: int) -> None:
    """Appends zero bytes to the first frame of each group, so that its size differs between rates."""
    for number in range(0, len(rungs[0]), group):
        used: set[int] = set()
        for frames in rungs:
            size = sum(map(len, frames[number]))
            more = next(k for k in itertools.count() if size + k not in used)
            frames[number][-1] += bytes(more)
            used.add(size + more)
