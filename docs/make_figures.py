"""Draws the figures that are listed in `FIGURES` into docs/images/.

The runs are those of the tables of `studies/` (`gcc_experiments.py`, `tfrc_experiments.py`, `sprout_traces.py`,
`today.py`, `fairness.py`), so that table and figure cannot part. `python docs/make_figures.py` draws all,
`python docs/make_figures.py tfrc` only those whose names begin so.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

import tidegate
from tidegate import Run, Scenario, plot
from tidegate.control.registry import registry
from tidegate.output.palette import CAPACITY_EDGE, CAPACITY_FILL, HUES, MUTED
from tidegate.query import ranges
from tidegate.show.view import flow_series

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent / "studies"), str(HERE.parent / "tests" / "python")]

import fairness  # noqa: E402 - studies are no package
import gcc_experiments as gcc  # noqa: E402
import real_calls  # noqa: E402
import sprout_traces as traces  # noqa: E402
import tfrc_experiments as tfrc  # noqa: E402
import tfrc_situations as after  # noqa: E402
import today  # noqa: E402
from support import shared  # noqa: E402

LUMA = (0.299, 0.587, 0.114)
"""How bright red, green and blue are (ITU-R BT.601)."""
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


def _truth(run: Run, link: str, end: float) -> tuple[np.ndarray, np.ndarray]:
    """The capacity that a link had, Mbit/s, up to the end."""
    table = run.table("truth")
    mine = np.asarray(table.to_numpy("link")) == link
    t, rate = (np.asarray(table.to_numpy(column))[mine] for column in ("t_s", "capacity_bps"))
    return np.append(t, end), np.append(rate, rate[-1]) / 1e6


def _fives(values: np.ndarray) -> np.ndarray:
    """Bins of 0.2 s as rows of a second each; what is left over at the end goes."""
    return values[: len(values) // 5 * 5].reshape(-1, 5)


def _by_second(ax: Axes, t: np.ndarray, rate: np.ndarray, colour: str, label: str) -> None:
    """Rates over seconds, of those in bins of 0.2 s."""
    ax.plot(_fives(t)[:, 0], _fives(rate).mean(axis=1) / 1e6, color=colour, label=label)


def _capacity(ax: Axes, run: Run, end: float, link: str = "bottleneck") -> None:
    t, rate = _truth(run, link, end)
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
    ax.set_title("dashed: 8 % and 5 % a second; grey: the capacity", loc="left", fontsize=10)
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
        ("libwebrtc", "300ms", "newreno"),
        ("libwebrtc", "300ms", "cubic"),
        ("libwebrtc", "50ms", "cubic"),
        ("draft-02", "300ms", "cubic"),
        ("draft-02,num_deltas_cap=1", "300ms", "cubic"),
    ]
    figure, axes = _new(len(cases), 9)
    for ax, (preset, queue, algorithm) in zip(axes, cases, strict=True):
        run = gcc.tcp_run(preset, algorithm, queue)
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
    for colour, queue in zip(HUES, ("50ms", "300ms"), strict=False):
        run = gcc.buffer_run("libwebrtc", "3Mbps", queue)
        _rate(rate, run, "call", colour, f"{queue} of queue")
        t, mean = _series(run, "call", "t_s", "queueing_delay_ms_mean")
        delay.plot(t, mean, color=colour)
        t, lost, arrived = _series(run, "call", "t_s", "packets_lost", "packets_arrived")
        lost, known = (_fives(part).sum(axis=1) for part in (lost, lost + arrived))
        loss.plot(_fives(t)[:, 0], 100 * lost / np.maximum(known, 1), color=colour)
    loss.axhspan(0, 5, color=CAPACITY_FILL, zorder=0)
    rate.set(ylabel="Receive rate (Mbit/s)", ylim=(0, 3.3), xlim=(0, 200))
    rate.legend(loc="lower right")
    delay.set(ylabel="Mean queueing delay (ms)", ylim=(0, None))
    loss.set(ylabel="Lost (%)", ylim=(0, 15))
    loss.text(199, 4.7, "losses that may be inherent", ha="right", va="top", color="#666666")
    return figure


def calls() -> Figure:
    """Calls of two ages on three shipped networks: rate under capacity, and one-way delay."""
    figure = Figure(figsize=(10, 6.5), dpi=DPI, layout="constrained")
    grid = figure.subplots(2, len(gcc.NETWORKS), sharex=True, height_ratios=(3, 2))
    for (rate, delay), network in zip(grid.T, gcc.NETWORKS, strict=True):
        for colour, (preset, age) in zip((HUES[1], HUES[0]), gcc.BEFORE_AND_TODAY.items(), strict=True):
            run = gcc.call_run(preset, network)
            t, received = _series(run, "call", "t_s", "receive_rate_bps")
            _by_second(rate, t, np.nan_to_num(received), colour, age)
            t, most = _series(run, "call", "t_s", "one_way_delay_ms_max")
            delay.plot(t, most, color=colour, linewidth=1)
        t, capacity = _truth(run, run.summary["links"][0]["link"], 60)
        rate.fill_between(t, capacity, step="post", color=CAPACITY_FILL, linewidth=0, zorder=0)
        rate.set(xlim=(0, 60), ylim=(0, 4))
        rate.set_title(network, loc="left", fontsize=10)
        delay.set(yscale="log", ylim=(10, 5000), xlabel="Time (s)")
    grid[0, 0].set_ylabel("Receive rate over 1 s (Mbit/s)")
    grid[1, 0].set_ylabel("Largest one-way delay (ms)")
    grid[0, 0].legend(loc="lower right")
    return figure


def inside() -> Figure:
    """What the default saw and did at the step down."""
    names = ["delay_based", "received_rate", "compared", "threshold", "state", "rate_state"]
    figure = plot.internals(gcc.steps_run(gcc.PRESETS[0]), names=names)
    figure.set(dpi=DPI, size_inches=(10, 9))
    figure.axes[-1].set_xlim(58, 70)
    return figure


def tfrc_fairness() -> Figure:
    """Normalised throughput of n TFRC and n TCP flows: each flow, and the means."""
    figure = Figure(figsize=(10, 4), dpi=DPI, layout="constrained")
    for ax, queue in zip(figure.subplots(1, 2, sharey=True), tfrc.QUEUES, strict=True):
        for colour, label, side in ((HUES[0], "TFRC", 0.94), (HUES[1], "TCP", 1.06)):
            each = [np.concatenate([run[label] for run in tfrc.over_seeds(queue, n)]) for n in tfrc.COUNTS]
            for n, values in zip(tfrc.COUNTS, each, strict=True):
                ax.plot(np.full(len(values), n * side), values, ".", color=colour, alpha=0.35, markersize=5)
            ax.plot(tfrc.COUNTS, [values.mean() for values in each], "o-", color=colour, label=label)
        ax.axhline(1, color=CAPACITY_EDGE, linewidth=1)
        ax.set(xscale="log", xlabel="n", ylim=(0, 1.6))
        ax.set_xticks(tfrc.COUNTS, [str(n) for n in tfrc.COUNTS])
        ax.xaxis.set_minor_formatter(NullFormatter())
        ax.set_title(f"n and n flows over 15 Mb/s, queue of {queue}", loc="left", fontsize=10)
    figure.axes[0].set_ylabel("Rate over fair share")
    figure.axes[0].legend(loc="lower left")
    return figure


def tfrc_smoothness() -> Figure:
    """One flow of each kind over time, and the coefficient of variation by time scale."""
    figure = Figure(figsize=(10, 4), dpi=DPI, layout="constrained")
    over_time, scales = figure.subplots(1, 2, width_ratios=(3, 2))
    run = tfrc.smoothness_run()
    for colour, flow, label in ((HUES[1], "tcp-1", "TCP"), (HUES[0], "call-1", "TFRC")):
        t, rate = tfrc.series(run, flow, "sending_rate_bps")
        over_time.plot(_fives(t)[:, 0], _fives(rate).mean(axis=1) / 1e6, color=colour, linewidth=1)
        scales.plot(tfrc.SCALES, tfrc.smoothness()[label], "o-", color=colour, label=label)
    over_time.set(xlim=(60, 160), ylim=(0, 1.6), xlabel="Time (s)", ylabel="Sending rate over 0.5 s (Mbit/s)")
    scales.set(xscale="log", ylim=(0, None), xlabel="Time scale (s)", ylabel="Coefficient of variation")
    scales.set_xticks(tfrc.SCALES, [f"{scale:g}" for scale in tfrc.SCALES])
    scales.xaxis.set_minor_formatter(NullFormatter())
    scales.legend()
    return figure


def tfrc_steps() -> Figure:
    """Steps of the random loss: mean rates, and X after the two extreme steps."""
    figure = Figure(figsize=(10, 6.5), dpi=DPI, layout="constrained")
    grid = figure.add_gridspec(2, 2)
    both = figure.add_subplot(grid[0, :])
    for colour, kind, label in ((HUES[1], "tcp", "TCP"), (HUES[0], "tfrc", "TFRC")):
        t, rate = tfrc.mean_rate(kind)
        both.plot(t, rate / 1e6, color=colour, label=label)
    both.axvspan(tfrc.STEP_AT, tfrc.BACK_AT, color=CAPACITY_FILL, zorder=0)
    both.set(xlim=(50, 110), ylim=(0, 2.5), xlabel="Time (s)", ylabel="Sending rate (Mbit/s)")
    both.set_title("1 % lost, 5 % while shaded; mean of 30 runs", loc="left", fontsize=10)
    both.legend(loc="upper right", ncols=2)
    down, up = (figure.add_subplot(grid[1, i]) for i in (0, 1))
    times = np.linspace(-5, 20, 501)
    for run in tfrc.persistent_runs(1):
        t, x = tfrc.noted(run, "x_bps")
        part = tfrc.at(t, x, tfrc.STEP_AT + times * tfrc.RTT) / tfrc.at(t, x, tfrc.STEP_AT)
        down.step(times, part, where="post", color=HUES[0], linewidth=0.7, alpha=0.5)
    down.axhline(0.5, color=MUTED, linewidth=1, linestyle=(0, (4, 3)))
    down.set(xlim=(-5, 20), ylim=(0, 1.5), xlabel="Round trips since", ylabel="X over X then")
    down.set_title("1 %, then half of all packets lost", loc="left", fontsize=10)
    since = np.linspace(-2, 15, 171)
    for colour, label in zip((HUES[0], HUES[2]), tfrc.DISCOUNTING, strict=True):
        packets = [tfrc.packets_a_round_trip(run, tfrc.STEP_AT + since) for run in tfrc.relief_runs(label)]
        up.plot(since, np.mean(packets, axis=0), color=colour, label=label)
    up.set(xlim=(-2, 15), ylim=(0, None), xlabel="Time since (s)", ylabel="X (packets a round trip)")
    up.set_title("1 %, then no loss; mean of 10 runs", loc="left", fontsize=10)
    up.legend(loc="upper left")
    return figure


def tfrc_voice() -> Figure:
    """Small packets under random loss: what can be sent, and how much of a voice call is not."""
    figure = Figure(figsize=(10, 4), dpi=DPI, layout="constrained")
    rates, unsent = figure.subplots(1, 2)
    rows = tfrc.EXPERIMENTS["voip"].rows()
    for colour, column, style in (
        (HUES[1], "TCP", "o-"),
        (HUES[0], "tfrc", "o-"),
        (HUES[2], "tfrc-sp", "o-"),
        (HUES[2], "tfrc-sp, no gap", "o:"),
    ):
        rates.plot(tfrc.VOICE_LOSSES, [row[f"{column} (kb/s)"] for row in rows], style, color=colour, label=column)
    rates.axhline(88, color=MUTED, linewidth=1, linestyle=(0, (4, 3)))  # 220 bytes on the wire each 20 ms
    rates.set(yscale="log", ylabel="Sending rate (kbit/s)")
    rates.set_title("flows that send all they may; dashed: a voice call on the wire", loc="left", fontsize=10)
    for colour, kind in ((HUES[0], "tfrc"), (HUES[2], "tfrc-sp")):
        missing = [row[f"voice not sent, {kind} (%)"] for row in rows]
        unsent.plot(tfrc.VOICE_LOSSES, missing, "o-", color=colour, label=kind)
    unsent.set(ylim=(0, 100), ylabel="Voice never sent (%)")
    unsent.set_title("a voice call of 64 kbit/s", loc="left", fontsize=10)
    unsent.legend(loc="upper left", fontsize=9)
    for ax in (rates, unsent):
        ax.set(xscale="log", xlabel="Random loss (%)")
        ax.set_xticks(tfrc.VOICE_LOSSES, [f"{loss:g}" for loss in tfrc.VOICE_LOSSES])
        ax.xaxis.set_minor_formatter(NullFormatter())
    rates.legend(fontsize=9)
    return figure


def tfrc_situations() -> Figure:
    """X and what arrives after a start, a silence and a data-limited period, by both RFCs."""
    figure = Figure(figsize=(10, 6.5), dpi=DPI, layout="constrained")
    windows = (
        ("start", True, 0.0, (0, 5)),
        ("silence from 30 to 60 s", True, 0.0, (28, 65)),
        ("20 kb/s from 20 to 50 s", False, 0.0, (18, 55)),
    )
    axes = figure.subplots(2, 3, sharex="col", sharey="row")
    for (title, silent, loss, span), column in zip(windows, axes.T, strict=True):
        for colour, rules in zip(HUES, tfrc.RULES, strict=False):
            run = after.situation(rules, loss, 1, silent=silent)
            t, x = tfrc.noted(run, "x_bps")
            column[0].step(t, x / 1e3, where="post", color=colour, label=rules)
            t, rate = tfrc.series(run, "call", "receive_rate_bps")
            column[1].plot(t, rate / 1e6, color=colour)
        column[0].set_title(title, loc="left", fontsize=10)
        column[0].set(yscale="log", xlim=span)
        column[1].set(xlabel="Time (s)", ylim=(0, None))
    axes[0, 0].set_ylabel("X (kbit/s)")
    axes[1, 0].set_ylabel("Receive rate (Mbit/s)")
    axes[0, 0].legend(loc="lower right")
    return figure


def sprout_traces() -> Figure:
    """Rate over self-inflicted delay on each link, as figure 7 of NSDI 2013 has it; its own points are hollow."""
    figure = Figure(figsize=(10, 11), dpi=DPI, layout="constrained")
    colours = dict(zip(traces.NAMES.values(), (HUES[5], HUES[2], HUES[0], MUTED), strict=True))
    found = traces.ours(only_published=False)
    axes = figure.subplots(4, 2).ravel()
    for ax, trace in zip(axes, traces.TRACES, strict=True):
        published = traces.PUBLISHED.get(trace.paper or "", {})
        for points, fill in ((found[trace.name], "full"), (published, "none")):
            for name, point in points.items():
                style = {"color": colours[name], "fillstyle": fill, "markersize": 8, "linestyle": "none"}
                ax.plot(point.self_inflicted_ms, point.kbps / 1e3, "o", **style)
        note = "" if trace.same else " (another recording)" if trace.paper else " (not in the paper)"
        ax.set_title(trace.name + note, loc="left", fontsize=10)
        # as the paper has it: better is up and to the right
        ax.set(xscale="log", xlim=(2e5, 2), ylim=(0, None))
    for ax in axes[-2:]:
        ax.set_xlabel("Self-inflicted delay (ms)")
    for ax in axes[::2]:
        ax.set_ylabel("Rate (Mbit/s)")
    for name, colour in colours.items():
        axes[0].plot([], [], "o", color=colour, label=name)
    axes[0].plot([], [], "o", color=CAPACITY_EDGE, fillstyle="none", label="in the paper")
    figure.legend(loc="outside upper center", ncols=5)
    return figure


def policer() -> Figure:
    """A call behind a policer, and behind a shaper with the same bucket."""
    end = 40.0
    figure = Figure(figsize=(10, 7), dpi=DPI, layout="constrained")
    axes = figure.subplots(3, 2, sharex=True, sharey="row")
    for column, title, changes in zip(
        axes.T, ("policer", "shaper"), ({}, {"links.cell.discipline": today.SHAPER}), strict=True
    ):
        run = tidegate.run(Scenario.load(today.POLICED, {**changes, "duration": f"{end:g}s"}))
        call = flow_series(run, "call")
        _capacity(column[0], run, end, "cell")
        column[0].plot(call.t, call.sending_bps / 1e6, color=MUTED, label="sent")
        column[0].plot(call.t, call.receive_bps / 1e6, color=HUES[0], label="received")
        column[1].plot(call.t, call.delay_max_ms, color=HUES[0])
        column[2].plot(call.t, call.loss * 100, color=HUES[0])
        column[0].set_title(title, loc="left", fontsize=10)
        column[0].set(xlim=(0, end), ylim=(0, 4))
        column[2].set(xlabel="Time (s)", ylim=(0, 40))
    for ax, label in zip(axes[:, 0], ("Rate (Mbit/s)", "Largest delay (ms)", "Loss (%)"), strict=True):
        ax.set_ylabel(label)
    axes[1, 0].set_ylim(0, None)
    axes[0, 0].legend(loc="upper right")
    return figure


def side_by_side(runs: Mapping[str, Scenario], link: str, colours: Mapping[str, str], waits: Iterable[str]) -> Figure:
    """Two runs: the rates of flows on a link, and under them the delays of some of these flows."""
    figure = Figure(figsize=(10, 4.5), dpi=DPI, layout="constrained")
    grid = figure.subplots(2, 2, sharex=True, sharey="row", height_ratios=(3, 2))
    for (rate, delay), (title, scenario) in zip(grid.T, runs.items(), strict=True):
        run = tidegate.run(scenario)
        end = float(run.summary["duration_s"])
        _capacity(rate, run, end, link)
        for flow, colour in colours.items():
            seen = flow_series(run, flow)
            _by_second(rate, seen.t, seen.receive_bps, colour, flow)
            if flow in waits:
                delay.plot(seen.t, seen.delay_max_ms, color=colour, linewidth=1)
        rate.set_title(title, loc="left", fontsize=10)
        delay.set(xlim=(0, end), xlabel="Time (s)")
    grid[0, 0].set(ylim=(0, None), ylabel="Receive rate over 1 s (Mbit/s)")
    grid[1, 0].set(ylim=(0, None), ylabel="Largest delay (ms)")
    grid[0, 1].legend(loc="upper right")
    return figure


def beside(name: str) -> Figure:
    """A call of today beside another flow, as it is in a scenario, and with something else instead."""
    other = today.BESIDE[name]
    runs = {name: Scenario.load(name), other.title: Scenario.load(name, dict(other.instead))}
    return side_by_side(runs, other.link, {"call": HUES[0], other.flow: MUTED}, ["call"])


def starlink() -> Figure:
    """Calls over satellites that change every 15 s."""
    figure, (rate, delay, loss) = _new(3, 7)
    for number, (colour, controller) in enumerate(zip(HUES, ("gcc", "tfrc"), strict=False)):
        run = tidegate.run(Scenario.load("starlink", {"flows.call.media.controller": controller}))
        call = flow_series(run, "call")
        if number == 0:
            _capacity(rate, run, 120, "dish")
        rate.plot(call.t, call.receive_bps / 1e6, color=colour, label=controller)
        delay.plot(call.t, call.delay_max_ms, color=colour)
        loss.plot(call.t, call.loss * 100, color=colour)
    rate.set(ylabel="Receive rate (Mbit/s)", xlim=(0, 120), ylim=(0, 12))
    delay.set(ylabel="Largest delay (ms)", ylim=(0, None))
    loss.set(ylabel="Loss (%)", ylim=(0, None))
    rate.legend(loc="upper right")
    return figure


def coupled() -> Figure:
    """Three videos of one sender, coupled and not."""
    made = Scenario.load("coupled-calls")
    alone = Scenario.from_dict({**made.to_dict(), "couplings": []})
    colours = dict(zip(("camera", "slides", "second"), HUES, strict=False))
    return side_by_side({"coupled, 2 : 1 : 1": made, "each for itself": alone}, "uplink", colours, colours)


def schemes(link: Mapping[str, Any], seconds: int) -> Figure:
    """Every scheme of the registry on the same link."""
    names = [name for name in registry() if name != "fixed"]
    figure = Figure(figsize=(12, 7), dpi=DPI, layout="constrained")
    panels = figure.subplots(-(-len(names) // 4), 4, sharex=True, sharey=True)
    for ax, name in zip(panels.flat, names, strict=False):
        media = {"controller": name, "video": {"max": "8Mbps"}}
        data = {"duration": f"{seconds}s", "links": [dict(link)], "flows": [{"name": "call", "media": media}]}
        run = tidegate.run(Scenario.from_dict(data))
        _capacity(ax, run, seconds, "link")
        seen = flow_series(run, "call")
        _by_second(ax, seen.t, seen.receive_bps, HUES[0], name)
        call = run.summary["flows"][0]
        said = f"{call['one_way_delay_ms_p95']:.0f} ms, {100 * call['loss_fraction']:.1f} % lost"
        ax.set_title(f"{name}: {said}", loc="left", fontsize=9)
    for ax in panels.flat[len(names) :]:
        ax.set_visible(False)
    panels.flat[0].set(xlim=(0, seconds), ylim=(0, 8))
    figure.supxlabel("Time (s)", fontsize=10)
    figure.supylabel("Receive rate over 1 s, and capacity (Mbit/s)", fontsize=10)
    return figure


def controllers_step() -> Figure:
    """A fall of the capacity and its return."""
    steps = [["0s", "4Mbps"], ["30s", "1.5Mbps"], ["60s", "4Mbps"]]
    queue = {"time": "300ms"}
    figure = schemes({"name": "link", "capacity": {"schedule": steps}, "delay": "25ms", "queue": queue}, 90)
    figure.axes[0].set_ylim(0, 5)
    return figure


def controllers_lte() -> Figure:
    """A recorded cell, where the recordings are."""
    trace = str(shared() / "traces/mahimahi/ATT-LTE-driving.down")
    return schemes({"name": "link", "capacity": {"trace": trace}, "delay": "20ms"}, 90)


def real_programs() -> Figure:
    """Calls of real programs and simulated ones: estimate and queue, medians by the second."""
    courses = real_calls.read_series()
    real = [name for name in real_calls.LABELS if name not in real_calls.SIMULATED and "made-up" not in name]
    figure = Figure(figsize=(12, 13), dpi=DPI, layout="constrained")
    for row, (case, (rates, waits)) in enumerate(
        zip(real_calls.CASES, figure.subplots(len(real_calls.CASES), 2), strict=True)
    ):
        mine = [(name, courses[name, case]) for name in ["gcc", *real] if (name, case) in courses]
        capacity = max((course["capacity_kbps"] for _, course in mine), key=len) / 1e3
        rates.fill_between(np.arange(1, len(capacity) + 1), capacity, step="pre", color=CAPACITY_FILL, linewidth=0)
        for name, course in mine:
            style = {
                "color": MUTED if name in real_calls.SIMULATED else HUES[real.index(name)],
                "linewidth": 3 if name in real_calls.SIMULATED else 1.5,
                "label": real_calls.LABELS[name].replace("`", ""),
            }
            rates.plot(course["t_s"], course["estimate_kbps"] / 1e3, **style)
            waits.plot(course["t_s"], course["queue_ms"], **style)
        rates.set(title=case, ylabel="estimate (Mbit/s)", ylim=(0, 3.2))
        waits.set(title=case, ylabel="queueing delay (ms)", ylim=(0, None))
        if row == 0:
            waits.legend(fontsize=8)
    for ax in figure.axes[-2:]:
        ax.set_xlabel("Time (s)")
    return figure


def pairs(title: str, value: Callable[[fairness.Cell], float], cmap: str, most: float | None) -> Figure:
    """A value of each pair of schemes, for both queues."""
    figure = Figure(figsize=(13, 6.5), dpi=DPI, layout="constrained")
    for ax, queue in zip(figure.subplots(1, 2), fairness.QUEUES, strict=True):
        values = fairness.matrix(value, queue)
        top = most or 100.0 * queue
        image = ax.imshow(values, cmap=cmap, vmin=0, vmax=top)
        names = fairness.SCHEMES
        ax.set_xticks(range(len(names)), names, rotation=60, ha="right", fontsize=8)
        ax.set_yticks(range(len(names)), names, fontsize=8)
        for (row, column), one in np.ndenumerate(values):
            light = np.dot(image.to_rgba(one)[:3], LUMA)
            ink = "black" if light > np.mean(LUMA) * 1.5 else "white"
            ax.text(column, row, f"{one:.0f}", ha="center", va="center", fontsize=7, color=ink)
        ax.grid(visible=False)
        ax.set(xlabel="comes after 20 s", ylabel="there first")
        ax.set_title(f"queue of {queue} bandwidth-delay product{'s' if queue > 1 else ''}", loc="left", fontsize=10)
        figure.colorbar(image, ax=ax, label=title, shrink=0.8)
    return figure


def swept(grid: Mapping[str, str]) -> Figure:
    """A sweep of docs/sweeps.md."""
    values = {key: ranges.values(text) for key, text in grid.items()}
    made = Scenario.load("home-broadband", {"duration": "30s"})
    with TemporaryDirectory() as folder:
        return plot.sweep(tidegate.sweep(made, values, seeds=5, out=Path(folder) / "sweep"))


CONTROLLER = "flows.call.media.controller"
FIGURES: dict[str, Callable[[], Figure]] = {
    "sweep-line": partial(swept, {"links.uplink.capacity": "log:500kbps:2.5Mbps:4", CONTROLLER: "gcc,nada,scream"}),
    "sweep-map": partial(
        swept,
        {"links.uplink.capacity": "500kbps:2Mbps:4", "links.uplink.queue.time": "50ms:350ms:4", CONTROLLER: "gcc,nada"},
    ),
    "real-calls": real_programs,
    "controllers-step": controllers_step,
    "controllers-lte": controllers_lte,
    "fairness-share": partial(pairs, "share of the first flow (%)", lambda one: 100 * one.share, "RdBu", 100.0),
    "fairness-wait": partial(pairs, "mean queueing delay (ms)", lambda one: one.wait_ms, "YlOrRd", None),
    "coupled": coupled,
    **{f"scenario-{draw.__name__}": draw for draw in (policer, starlink)},
    **{f"scenario-{name}": partial(beside, name) for name in today.BESIDE},
    **{f"gcc-{draw.__name__}": draw for draw in (calls, ramp, steps, inside, tcp, buffers)},
    **{
        draw.__name__.replace("_", "-"): draw
        for draw in (tfrc_fairness, tfrc_smoothness, tfrc_steps, tfrc_voice, tfrc_situations, sprout_traces)
    },
}


def main(*starting: str) -> None:
    """Draws those whose names begin with one of these, or all."""
    IMAGES.mkdir(exist_ok=True)
    with mpl.rc_context(STYLE):
        for name, draw in FIGURES.items():
            if name.startswith(starting or ("",)):
                path = IMAGES / f"{name}.png"
                draw().savefig(path, dpi=DPI)
                print(path.relative_to(HERE.parent), path.stat().st_size)


if __name__ == "__main__":
    main(*sys.argv[1:])
