"""Our intra codec, used without PyAV: each frame by itself, 8x8 transforms, one slice a row of macroblocks.

It works as JPEG does (DCT, one step for all coefficients, deflate for Huffman), with the transform of HEVC (ITU-T
H.265, 8.6.4.2) in integers, so that it makes the same pictures on every machine. It needs several times the rate of
H.264. A slice that is missing is repeated from the picture before.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from tidegate.video.clip import Picture, joined, planes
from tidegate.video.codec.contract import Coded, Format, filled

_Ints = npt.NDArray[np.int64]

_T: _Ints = np.array(
    [
        [64, 64, 64, 64, 64, 64, 64, 64],
        [89, 75, 50, 18, -18, -50, -75, -89],
        [83, 36, -36, -83, -83, -36, 36, 83],
        [75, -18, -89, -50, 50, 89, 18, -75],
        [64, -64, -64, 64, 64, -64, -64, 64],
        [50, -89, 18, 75, -75, -18, 89, -50],
        [36, -83, 83, -36, -36, 83, -83, 36],
        [18, -50, 75, -89, 89, -75, 50, -18],
    ],
    dtype=np.int64,
)
"""Rows have the norm 2^7.5 or nearly so: a transform there and back multiplies by 2^30."""
_SCALE = 15
_ORDER = np.argsort([(u + v) * 8 + (u if (u + v) % 2 else v) for u in range(8) for v in range(8)], kind="stable")
"""Zigzag, from low to high frequencies."""
_STEPS = [round(2 ** (3 + k / 8)) for k in range(56)]
"""Sizes of the quantiser's step: eight to the octave, the least such that levels of +-1024 fit in a byte."""
_BLOCK, _MACRO = 8, 16


class Intra:
    """Our own codec."""

    name = "intra"
    version = "intra 1"

    def encode(self, pictures: Iterable[Picture], form: Format, rate: int) -> tuple[bytes, Iterator[Coded]]:
        """See [Codec][tidegate.video.codec.Codec]; there is no header, and every frame is a key frame."""
        return b"", self._frames(pictures, form, rate)

    def _frames(self, pictures: Iterable[Picture], form: Format, rate: int) -> Iterator[Coded]:
        share = rate / 8 / float(form.fps)
        step, debt = len(_STEPS) // 2, 0.0
        for number, picture in enumerate(pictures):
            rows = [_forward(row) for row in _rows(picture, form)]
            slices = filled([_packed(index, row, step) for index, row in enumerate(rows)], form.payload)
            debt += sum(map(len, slices)) - share
            # bytes beyond the share are saved again over half a second
            wish = max(share - debt / (0.5 * float(form.fps)), share / 8)
            used = sum(map(len, slices))
            step += round(4 * np.log2(used / wish)) if not 0.9 < used / wish < 1.1 else 0  # noqa: PLR2004
            step = min(max(step, 0), len(_STEPS) - 1)
            yield Coded("I", number, tuple(slices))

    def decoder(self, header: bytes, form: Format) -> IntraDecoder:
        """See [Codec][tidegate.video.codec.Codec]."""
        del header
        return IntraDecoder(form)


class IntraDecoder:
    """Its decoder: starts from black, and repeats rows whose slices are missing."""

    def __init__(self, form: Format) -> None:
        """With the size of the pictures."""
        self._form = form
        self._last = black(form.width, form.height)

    def decode(self, picture: int, slices: Sequence[bytes]) -> list[tuple[int, Picture]]:
        """See [Decoder][tidegate.video.codec.Decoder]."""
        rows = _rows(self._last, self._form)
        for data in slices:
            index, row = _unpacked(data, self._form.width)
            if index < len(rows):
                rows[index] = _backward(row)
        self._last = _joined(rows, self._form)
        return [(picture, self._last)]

    def flush(self) -> list[tuple[int, Picture]]:
        """See [Decoder][tidegate.video.codec.Decoder]: it holds nothing back."""
        return []


def black(width: int, height: int) -> Picture:
    """The black picture (Y 16, U and V 128: ITU-R BT.601)."""
    out = np.full((height * 3 // 2, width), 128, dtype=np.uint8)
    out[:height] = 16
    return out


def _rows(picture: Picture, form: Format) -> list[_Ints]:
    """Rows of macroblocks as blocks, shape (blocks, 8, 8): luma, U, V; edges are filled with their last line."""
    across, down = -(-form.width // _MACRO), -(-form.height // _MACRO)
    parts = []
    for plane, size in zip(planes(picture), (_MACRO, _BLOCK, _BLOCK), strict=True):
        padding = ((0, down * size - plane.shape[0]), (0, across * size - plane.shape[1]))
        padded = np.pad(plane, padding, mode="edge").astype(np.int64)
        blocks = padded.reshape(down, size // 8, 8, across * size // 8, 8).transpose(0, 1, 3, 2, 4)
        parts.append(blocks.reshape(down, -1, 8, 8))
    return list(np.concatenate(parts, axis=1))


def _joined(rows: list[_Ints], form: Format) -> Picture:
    across, down = -(-form.width // _MACRO), -(-form.height // _MACRO)
    stacked = np.stack(rows)
    cuts = [4 * across, 5 * across]
    parts = []
    for blocks, size in zip(np.split(stacked, cuts, axis=1), (_MACRO, _BLOCK, _BLOCK), strict=True):
        shaped = blocks.reshape(down, size // 8, across * size // 8, 8, 8).transpose(0, 1, 3, 2, 4)
        parts.append(shaped.reshape(down * size, across * size))
    return joined([part[: form.height // by, : form.width // by] for part, by in zip(parts, (1, 2, 2), strict=True)])


def _forward(blocks: _Ints) -> _Ints:
    """Coefficients in zigzag order, shape (64, blocks), scaled as if the transform were orthonormal."""
    turned = _T @ (blocks - 128) @ _T.T
    values: _Ints = ((turned + (1 << (_SCALE - 1))) >> _SCALE).reshape(-1, 64)[:, _ORDER].T
    return values


def _backward(coefficients: _Ints) -> _Ints:
    blocks = np.empty((coefficients.shape[1], 64), dtype=np.int64)
    blocks[:, _ORDER] = coefficients.T
    turned = _T.T @ blocks.reshape(-1, 8, 8) @ _T
    values: _Ints = np.clip(((turned + (1 << (_SCALE - 1))) >> _SCALE) + 128, 0, 255)
    return values


def _packed(index: int, row: _Ints, step: int) -> bytes:
    """A slice: row, step, and the quantised coefficients by frequency, deflated."""
    size = _STEPS[step]
    # a dead zone of a third, as intra frames of H.264 have it: round towards zero
    levels = np.sign(row) * ((np.abs(row) * 3 + size) // (3 * size))
    body = zlib.compressobj(6, zlib.DEFLATED, -15)
    data = body.compress(np.clip(levels, -128, 127).astype(np.int8).tobytes()) + body.flush()
    return bytes([index, step]) + data


def _unpacked(data: bytes, width: int) -> tuple[int, _Ints]:
    blocks = 6 * -(-width // _MACRO)
    levels = np.frombuffer(zlib.decompress(data[2:], -15), dtype=np.int8).reshape(64, blocks)
    return data[0], levels.astype(np.int64) * _STEPS[data[1]]
