"""Figures of the slides, whose axes have almost no numbers, and our own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from tidegate.paper import Drawing, Measure, Sheet
from tidegate.papers.hermanns2013.alone import TICK_S, Alone
from tidegate.papers.hermanns2013.cells import CALLERS

_LOAD = "Calls a cell on average"
_WINDOW_S = (20.0, 21.0)
"""Period that is drawn tick by tick."""


def _rates(runs: Mapping[str, Alone], names: Sequence[str], where: str, title: str) -> Sheet:
    sheet = Sheet(where, title, "Time (s)", "Rate sent (kbit/s)", ylim=(0, None))
    for key in names:
        rate = runs[key].rate
        sheet.series(CALLERS[key].label, np.arange(len(rate)), rate / 1e3, step=True)
    return sheet


def alone(runs: Mapping[str, Alone]) -> Drawing:
    """Rates of a call alone in the network."""
    sheet = _rates(runs, ("sprout", "gcc", "tfrc"), "Slide 8", "One call alone in the network")
    return sheet.drawing("alone", "Rate of each second, first seed. The slide's axes cannot be read from its text.")


def forecast(run: Alone, traffic: str, name: str) -> Drawing:
    """Forecast, bytes that may be sent and bytes sent, tick by tick."""
    assert run.ticks is not None  # noqa: S101
    ticks = run.ticks
    drawn = (ticks.at >= _WINDOW_S[0]) & (ticks.at < _WINDOW_S[1])
    sheet = Sheet(
        "Slide 11", f"Forecast and bytes sent: {traffic}", "Time (s)", "Bytes", xlim=_WINDOW_S, ylim=(0, None)
    )
    for label, values in (
        ("cumulative forecast", ticks.forecast),
        ("bytes allowed", ticks.allowed),
        ("bytes sent", ticks.sent),
    ):
        sheet.series(label, ticks.at[drawn], values[drawn], step=True)
    return sheet.drawing(name, "Sprout alone in the network, one second of the first seed.")


def reception(bulk: Alone, call: Alone) -> Drawing:
    """Bytes that arrive in each tick."""
    sheet = Sheet(
        "Slide 12", "Data reception", "Time (s)", "Bytes received in a tick of 20 ms", xlim=_WINDOW_S, ylim=(0, None)
    )
    for label, run in (("file transfer", bulk), ("conversational video", call)):
        times = np.arange(len(run.arrived)) * TICK_S
        drawn = (times >= _WINDOW_S[0]) & (times < _WINDOW_S[1])
        sheet.series(label, times[drawn], run.arrived[drawn], step=True)
    return sheet.drawing("reception", "Sprout alone in the network, one second of the first seed.")


def by_load(loads: Sequence[int], curves: Mapping[str, Mapping[str, Sequence[Sequence[float]]]]) -> Iterator[Drawing]:
    """Quantities of calls by load; curves by quantity, controller, load and seed."""
    caption = "Means over seeds with 95 % intervals. The slide's axis has no numbers."
    cov, delay = "Coefficient of variation", "Delay (ms)"
    slides = (
        ("spread", "Slide 14", "Variation of calls' mean rates between users", cov),
        ("variation", "Slide 14", "Variation of a call's rate over its seconds", cov),
        (
            "steps",
            "Slide 14",
            "Change of a call's rate from second to second",
            "Mean change as a share of the mean rate",
        ),
        ("rate", "Slide 15", "Mean video rate", "Rate sent (kbit/s)"),
        ("network", "Slide 16", "Mean delay from departure to arrival", delay),
        ("delay", "Slide 16", "Mean delay from capture to arrival", delay),
        ("files", "not in the slides", "Duration of file transfers beside calls", "Duration of a file of 500 kB (s)"),
    )
    for name, where, title, axis in slides:
        log = axis == delay
        sheet = Sheet(where, title, _LOAD, axis, ylim=(None if log else 0, None), ylog=log)
        for label, values in curves[name].items():
            if len(loads) > 1:
                sheet.series(label, loads, np.transpose(values))
            else:
                sheet.bars(label, {str(loads[0]): Measure.of(values[0])})
        yield sheet.drawing(f"load-{name}", caption)


def by_fps(rates: Mapping[str, Mapping[int, Sequence[float]]]) -> Drawing:
    """Rate by frame rate, to see whether the time between frames matters."""
    where, title = "not in the slides", "Sprout alone: rate by frame rate"
    sheet = Sheet(where, title, "Frames a second", "Rate sent (kbit/s)", xlog=True, ylim=(0, 1600))
    for label, by_frame_rate in rates.items():
        sheet.series(label, list(by_frame_rate), np.transpose(list(by_frame_rate.values())))
    return sheet.drawing(
        "fps", "At 50 frames a second and more each tick has a frame. The encoder's rate is 0.2 to 1.5 Mb/s."
    )


def repaired(runs: Mapping[str, Alone]) -> Drawing:
    """Rates of a call with and without our rule."""
    sheet = _rates(runs, ("sprout", "aware"), "not in the slides", "One call alone, with and without our rule")
    return sheet.drawing("cure", "Rate of each second, first seed.")
