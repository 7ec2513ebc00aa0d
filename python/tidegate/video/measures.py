"""Similarity of pictures: PSNR, SSIM, and EvalVid's grades and distortion.

>>> [grade(db) for db in (37.1, 37.0, 31.0, 25.0, 20.0)]
[5, 4, 3, 2, 1]
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tidegate.video.clip import Picture

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

MOST_DB = 60.0
"""PSNR of equal pictures, and of any that are more alike than this: libvmaf's cap for 8 bits (integer_psnr.c)."""
GRADES = ((37.0, 5), (31.0, 4), (25.0, 3), (20.0, 2))
"""PSNR in dB above which a frame has the grade; at most 20 dB is grade 1 (EvalVid 2.7, `mos`)."""
WINDOW = 25
"""Frames in a window of the distortion in interval (EvalVid 2.7, `miv`, default)."""
ANNOYING = 4
"""Grades below this can make a frame a bad one (`miv`)."""
_C1, _C2 = (0.01 * 255) ** 2, (0.03 * 255) ** 2  # Wang et al. 2004, K1 = 0.01, K2 = 0.03


def psnr(reference: Picture, seen: Picture) -> float:
    """Peak signal-to-noise ratio of two planes of equal shape in dB, at most 60.

    >>> round(psnr(np.zeros((2, 2), np.uint8), np.array([[0, 0], [0, 2]], np.uint8)), 3)
    48.131
    """
    difference = np.subtract(reference, seen, dtype=np.int16)
    difference *= difference  # at most 255^2, which 16 bits hold without a sign
    squares = int(difference.view(np.uint16).sum(dtype=np.uint64))
    if squares == 0:
        return MOST_DB
    return min(MOST_DB, 10 * math.log10(255**2 * difference.size / squares))


def ssim(reference: Picture, seen: Picture) -> float:
    """Structural similarity of two planes: the mean over windows of 8x8 pixels at every fourth row and column.

    Wang, Bovik, Sheikh, Simoncelli (IEEE Trans. Image Processing 13(4), 2004) with the windows of x264 and ffmpeg
    instead of Gaussian ones; equal to ffmpeg's `ssim` filter.

    Args:
        reference: At least 8x8; rows and columns beyond a multiple of 4 are left out.
        seen: Of the same shape.
    """
    high, wide = (side // 4 * 4 for side in reference.shape)
    # products of two bytes fit in 16 bits
    a, b = (plane[:high, :wide].astype(np.uint16) for plane in (reference, seen))
    sum_a, sum_b = _windows(a), _windows(b)
    squares, cross = _windows(a * a) + _windows(b * b), _windows(a * b)
    # sums over 64 pixels: the constants scale as x264's pixel.c has them (truncated there to whole numbers)
    c1, c2 = int(_C1 * 64 * 64 + 0.5), int(_C2 * 64 * 63 + 0.5)
    product, both = sum_a * sum_b, sum_a**2 + sum_b**2
    top = (2 * product + c1) * (2 * (cross * 64 - product) + c2)
    return float(np.mean(top / ((both + c1) * (squares * 64 - both + c2))))


def _windows(values: npt.NDArray[np.uint16]) -> Floats:
    """Sums over windows of 8x8 at every fourth row and column."""
    rows = np.add(values[0::4], values[1::4], dtype=np.uint32) + values[2::4] + values[3::4]
    fours: Floats = (rows[:, 0::4] + rows[:, 1::4] + rows[:, 2::4] + rows[:, 3::4]).astype(np.float64)
    pairs = fours[:-1] + fours[1:]
    return pairs[:, :-1] + pairs[:, 1:]


def grade(db: float) -> int:
    """EvalVid's grade of a frame, 5 (excellent) to 1 (bad), from its PSNR."""
    return next((grade for above, grade in GRADES if db > above), 1)


def grades(db: Floats) -> npt.NDArray[np.int64]:
    """The grade of each frame."""
    return np.array([grade(value) for value in db], dtype=np.int64)


def distortion(seen: Sequence[int] | npt.NDArray[np.int64], sent: Sequence[int] | npt.NDArray[np.int64]) -> float:
    """EvalVid's distortion in interval: the largest share of bad frames in any window of 25 frames.

    A frame is bad where its grade is below 4 and below that of the same frame as it was encoded. A run shorter than a
    window is one window.

    Args:
        seen: The grade of each frame as seen.
        sent: The grade of each frame as encoded.

    Returns:
        0 to 1; NaN without frames.
    """
    received, encoded = np.asarray(seen), np.asarray(sent)
    if len(received) == 0:
        return math.nan
    bad = (received < ANNOYING) & (received < encoded)
    totals = np.concatenate([[0], np.cumsum(bad)])
    width = min(WINDOW, len(bad))
    return float(np.max(totals[width:] - totals[:-width])) / width
