"""Figures of real video: quality over time, and a contact sheet of the worst moments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from tidegate.media.judge import Judged, Moment
from tidegate.output.palette import MUTED, looks
from tidegate.show import view
from tidegate.show.plot import STYLE
from tidegate.show.plot.style import finished
from tidegate.video.clip import Picture, planes
from tidegate.video.measures import GRADES, Floats

_BIN_S = 0.5
_AS_ENCODED: dict[str, Any] = {"linewidth": 1, "linestyle": (0, (4, 2)), "alpha": 0.8}
_SHOWN = 4
"""Moments on a contact sheet."""


def rgb(picture: Picture) -> npt.NDArray[np.uint8]:
    """A picture as RGB, shape (height, width, 3), by ITU-R BT.601 with Y from 16 to 235."""
    light, *colour = planes(picture)
    y = 1.164 * (light.astype(np.float32) - 16)
    u, v = (plane.repeat(2, axis=0).repeat(2, axis=1).astype(np.float32) - 128 for plane in colour)
    out = np.stack([y + 1.596 * v, y - 0.392 * u - 0.813 * v, y + 2.017 * u], axis=-1)
    return np.clip(np.round(out), 0, 255).astype(np.uint8)


def quality(judged: Mapping[str, Judged]) -> Figure:
    """PSNR, VMAF if there are scores, and picture latency over time, as means over half a second."""
    with mpl.rc_context(STYLE):
        scored = any(np.isfinite(video.columns["vmaf"]).any() for video in judged.values())
        rows = [("psnr_db", "psnr_encoded_db", "PSNR (dB)")]
        rows += [("vmaf", "vmaf_encoded", "VMAF")] if scored else []
        rows += [("latency_ms", "", "Picture latency (ms)")]
        figure = Figure(figsize=(10, 2.6 * len(rows) + 0.8), layout="constrained", dpi=110)
        axes = figure.subplots(len(rows), 1, sharex=True, squeeze=False)[:, 0]
        hues = looks(judged, {label: [view.label_of(video.run, video.flow)] for label, video in judged.items()})
        for axis, (seen_column, sent_column, label) in zip(axes, rows, strict=True):
            for name, video in judged.items():
                if sent_column:
                    axis.plot(*_binned(video.columns, sent_column), color=hues[name].colour, **_AS_ENCODED)
                axis.plot(*_binned(video.columns, seen_column), color=hues[name].colour, linestyle=hues[name].linestyle)
            axis.set_ylabel(label)
            axis.grid(visible=True, axis="y")
            if sent_column:
                low, high = axis.get_ylim()
                axis.set_ylim(max(0, low), high)
            else:
                axis.set_ylim(bottom=0)
        low, high = axes[0].get_ylim()
        for above, grade in GRADES:
            if low < above < high:
                axes[0].axhline(above, color=MUTED, linewidth=0.8, linestyle=":")
                axes[0].annotate(
                    f"MOS {grade}", (1, above), xycoords=("axes fraction", "data"), ha="right", va="bottom", fontsize=8
                )
        axes[-1].set_xlabel("Time (s)")
        keys = [Line2D([], [], color=hues[name].colour, linestyle=hues[name].linestyle, label=name) for name in judged]
        keys.append(Line2D([], [], color=MUTED, label="as encoded", **_AS_ENCODED))
        figure.legend(handles=keys, loc="outside upper center", ncols=min(5, len(keys)))
        return finished(figure)


def _binned(columns: Mapping[str, npt.NDArray[Any]], name: str) -> tuple[Floats, Floats]:
    t, values = columns["t_s"], columns[name]
    finite = np.isfinite(values)
    if not finite.any():
        return np.zeros(0), np.zeros(0)
    bins = (t[finite] / _BIN_S).astype(np.int64)
    counts = np.bincount(bins)
    filled = np.flatnonzero(counts)
    means = np.bincount(bins, weights=values[finite].astype(float))[filled].astype(np.float64) / counts[filled]
    middles = (filled.astype(np.float64) + 0.5) * _BIN_S
    return middles, means


def contact_sheet(judged: Mapping[str, Judged]) -> Figure:
    """For each controller its worst moments in order of time: the picture that was sent, and the one that was seen.

    The worst are the largest differences of PSNR between sent and seen, one of each sixth of the run.
    """
    picked = {name: sorted(_worst(video), key=lambda moment: moment.t_s) for name, video in judged.items()}
    across = max(1, *(len(moments) for moments in picked.values())) if picked else 1
    forms = [video.sent.form for video in judged.values()]
    ratio = max((form.height / form.width for form in forms), default=0.75)
    wide = 3.2
    with mpl.rc_context(STYLE):
        figure = Figure(
            figsize=(wide * across + 0.5, 2 * len(judged) * (wide * ratio + 0.32) + 0.2), layout="constrained", dpi=110
        )
        axes = figure.subplots(2 * max(1, len(judged)), across, squeeze=False)
        for axis in axes.ravel():
            axis.set_axis_off()
        for row, (name, moments) in enumerate(picked.items()):
            for column, moment in enumerate(moments):
                upper, lower = axes[2 * row, column], axes[2 * row + 1, column]
                upper.imshow(rgb(moment.sent))
                lower.imshow(rgb(moment.seen))
                upper.set_title(f"{name}, {moment.t_s:.2f} s: sent, {moment.sent_db:.1f} dB", fontsize=9)
                lower.set_title(f"seen, {moment.seen_db:.1f} dB", fontsize=9, fontweight="normal")
        return finished(figure)


def _worst(judged: Judged) -> list[Moment]:
    """The worst moments first; only one of them where nothing went wrong."""
    by_harm = sorted(judged.moments, key=lambda moment: moment.seen_db - moment.sent_db)
    harmed = [moment for moment in by_harm if moment.seen_db < moment.sent_db]
    return harmed[:_SHOWN] or by_harm[:1]
