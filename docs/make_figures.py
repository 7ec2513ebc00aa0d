"""Draws the figures of docs/gcc-behaviour.md into docs/images/: `python docs/make_figures.py`.

The runs are those of the tests' tables (`tests/python/gcc_experiments.py`), so that table and figure cannot part.
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter

from tidegate import Run, plot
from tidegate._palette import CAPACITY_EDGE, CAPACITY_FILL, HUES, MUTED

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tests" / "python"))

import gcc_experiments as gcc  # noqa: E402 - it lies beside the tests

IMAGES = HERE / "images"
DPI = 80
STYLE = {
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e3e6ea",
    "legend.frameon": False,
    "lines.linewidth": 1.5,
}


def _series(run: Run, flow: str, *columns: str) -> list[np.ndarray]:
    table = run.table("series")
    mine = np.asarray(table.to_numpy("flow")) == flow
    return [np.asarray(table.to_numpy(column))[mine] for column in columns]


def _rate(ax: Axes, run: Run, flow: str, colour: str, label: str) -> None:
    t, rate = _series(run, flow, "t_s", "receive_rate_bps")
    ax.plot(t, np.nan_to_num(rate) / 1e6, color=colour, label=label)


def _delay(ax: Axes, run: Run, colour: str, label: str) -> None:
    t, delay = _series(run, "call", "t_s", "one_way_delay_ms_max")
    ax.plot(t, delay - 50, color=colour, label=label)


def _capacity(ax: Axes, run: Run, end: float) -> None:
    table = run.table("truth")
    mine = np.asarray(table.to_numpy("link")) == "bottleneck"
    t, rate = (np.asarray(table.to_numpy(column))[mine] for column in ("t_s", "capacity_bps"))
    t, rate = np.append(t, end), np.append(rate, rate[-1]) / 1e6
    ax.fill_between(t, rate, step="post", color=CAPACITY_FILL, linewidth=0, zorder=0)
    ax.step(t, rate, where="post", color=CAPACITY_EDGE, linewidth=1, zorder=1)


def _new(rows: int, height: float) -> tuple[Figure, list[Axes]]:
    figure = Figure(figsize=(10, height), dpi=DPI, layout="constrained")
    axes = list(figure.subplots(rows, 1, sharex=True, squeeze=False)[:, 0])
    axes[-1].set_xlabel("Time (s)")
    return figure, axes


def ramp() -> Figure:
    """Growth of the target, with the law that it follows, on a logarithmic axis."""
    figure, (ax,) = _new(1, 4)
    t = np.linspace(0, 60, 100)
    for growth in (1.08, 1.05):
        law = 0.3 * growth**t
        ax.plot(t[law < 5], law[law < 5], color=MUTED, linewidth=1, linestyle=(0, (4, 3)))  # noqa: PLR2004 - the capacity
    for colour, preset in zip(HUES, gcc.PRESETS, strict=False):
        table = gcc.ramp_run(preset).table("decisions")
        target = np.asarray(table.to_numpy("target_bps")) / 1e6
        ax.step(table.to_numpy("t_s"), target, where="post", color=colour, label=preset)
    ax.axhline(5, color=CAPACITY_EDGE)
    ax.set(yscale="log", xlim=(0, 100), ylim=(0.25, 6), ylabel="Target (Mbit/s)")
    ax.set_title("dashed: 8 % and 5 % a second", loc="left", fontsize=10)
    ax.set_yticks([0.3, 0.5, 1, 2, 5], ["0.3", "0.5", "1", "2", "5"])
    ax.yaxis.set_minor_formatter(NullFormatter())
    ax.legend(loc="lower right")
    return figure


def steps() -> Figure:
    """Rates and queueing delay around the steps of the capacity."""
    figure, (rate, delay) = _new(2, 6)
    _capacity(rate, gcc.steps_run(gcc.PRESETS[0]), 200)
    labels = [*gcc.PRESETS, "libwebrtc 2018-2020"]
    for colour, preset, label in zip(HUES, [*gcc.PRESETS, gcc.BAYESIAN], labels, strict=False):
        run = gcc.steps_run(preset)
        _rate(rate, run, "call", colour, label)
        _delay(delay, run, colour, label)
    rate.set(ylabel="Receive rate (Mbit/s)", xlim=(40, 200), ylim=(0, 2.8))
    delay.set(ylabel="Largest queueing delay (ms)", ylim=(0, None))
    delay.legend(loc="upper right")
    return figure


def tcp() -> Figure:
    """A call and a download."""
    cases = [
        ("libwebrtc-v1", "300ms", "newreno"),
        ("libwebrtc-v1", "300ms", "cubic"),
        ("draft-02", "300ms", "cubic"),
        ("draft-02,num_deltas_cap=1", "300ms", "cubic"),
    ]
    figure, axes = _new(len(cases), 8)
    for ax, (preset, queue, algorithm) in zip(axes, cases, strict=True):
        run = gcc.tcp_run(preset, queue, algorithm)
        _capacity(ax, run, 150)
        _rate(ax, run, "download", MUTED, "TCP")
        _rate(ax, run, "call", HUES[0], "call")
        ax.set_title(f"gcc:{preset} and {algorithm}, {queue} of queue", loc="left", fontsize=10)
        ax.set(ylabel="Mbit/s", xlim=(0, 150), ylim=(0, 2.2))
    axes[0].legend(handles=axes[0].get_lines()[-2:], loc="upper right", ncols=2)
    return figure


def buffers() -> Figure:
    """The same call before a short queue and before a long one."""
    figure, (rate, delay, loss) = _new(3, 7)
    for colour, queue in zip(HUES, ("50ms", "200ms"), strict=False):
        run = gcc.buffer_run("libwebrtc-v1", "1Mbps", queue)
        _rate(rate, run, "call", colour, f"{queue} of queue")
        t, mean = _series(run, "call", "t_s", "queueing_delay_ms_mean")
        delay.plot(t, mean, color=colour)
        t, lost, arrived = _series(run, "call", "t_s", "packets_lost", "packets_arrived")
        whole = len(t) // 5 * 5
        lost, known = (part[:whole].reshape(-1, 5).sum(axis=1) for part in (lost, lost + arrived))
        loss.plot(t[:whole:5], 100 * lost / np.maximum(known, 1), color=colour)
    loss.axhspan(2, 10, color=CAPACITY_FILL, zorder=0)
    rate.set(ylabel="Receive rate (Mbit/s)", ylim=(0, 1.1), xlim=(0, 200))
    rate.legend(loc="lower right")
    delay.set(ylabel="Mean queueing delay (ms)", ylim=(0, None))
    loss.set(ylabel="Lost (%)", ylim=(0, 15))
    loss.text(199, 9.4, "the loss part holds", ha="right", va="top", color="#666666")
    return figure


def inside() -> Figure:
    """What the default saw and did at the step down."""
    names = ["delay_based", "received_rate", "trend", "threshold", "state", "rate_state"]
    figure = plot.internals(gcc.steps_run(gcc.PRESETS[0]), names=names)
    figure.set(dpi=DPI, size_inches=(10, 9))
    for ax in figure.axes[:2]:
        ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value / 1e6:g}"))
        ax.set_title(f"{ax.get_title(loc='left')} (Mbit/s)", loc="left", fontsize=11, fontweight="bold")
    figure.axes[-1].set_xlim(58, 70)
    return figure


def main() -> None:
    """Draws all of them."""
    IMAGES.mkdir(exist_ok=True)
    with mpl.rc_context(STYLE):
        for draw in (ramp, steps, inside, tcp, buffers):
            path = IMAGES / f"gcc-{draw.__name__}.png"
            draw().savefig(path, dpi=DPI)
            print(path.relative_to(HERE.parent), path.stat().st_size)


if __name__ == "__main__":
    main()
