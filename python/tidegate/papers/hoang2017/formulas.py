"""Formulas of sections 2.2.2.3 and 3.4.3.1, computed from a call's packets and compared with what RRTCC noted.

The delay variation d(i), the threshold and its order, the received rate R(i), and the estimate A_r in its three cases.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tidegate.paper import Measure
from tidegate.runs import Run

Floats = npt.NDArray[np.float64]

K_UP, K_DOWN = 0.01, 0.00018
"""Speeds of the threshold, 1/ms (table 6)."""
LEAST_THRESHOLD = 0.01
"""Threshold below which ours does not fall, ms: only its sign is left then."""
BETA = 0.95
"""Table 6."""
WINDOW_S = 0.5
"""T, over which R(i) is measured (section 3.4.3.1, table 6)."""
RATES = 3e6, 10e6
"""Bounds of the rate, bit/s (table 7)."""
TICK_MS = 0.25
"""Unit of arrival times in feedback on packets (draft-holmer-rmcat-transport-wide-cc-extensions-01 section 3.1.5)."""
OVER_USE = 1
"""Code of the detector's signal."""
INCREASE = 1
"""Code of the rate controller's state."""


@dataclass(frozen=True)
class Checks:
    """Comparisons of a call; arrays hold whether a noted value is that of the formula, in the order of the notes."""

    variation: Sequence[bool]
    """d(i), to the unit of arrival times in feedback."""
    threshold: Sequence[bool]
    """The threshold after m(i)."""
    order: Sequence[bool]
    """Whether a comparison with the threshold after its update, as in the thesis, gives the same signal."""
    received: Sequence[bool]
    """R(i), to a packet."""
    decrease: Sequence[bool]
    """A_r = beta R(i) after over-use."""
    increase: Sequence[str]
    """Formula by which A_r increased: `multiplicative`, `additive` or `none`."""


def checks(run: Run) -> Checks:
    """Compares a call under RRTCC with the thesis's formulas."""
    internals = run.table("internals")
    names, values, times = (internals.to_numpy(column) for column in ("name", "value", "t_s"))

    def noted(name: str) -> Floats:
        return np.asarray(values[names == name], dtype=float)

    packets = run.table("packets")
    media = packets.to_numpy("kind") == "video"
    sent, arrived = packets.to_numpy("sent_s")[media], packets.to_numpy("arrived_s")[media]
    bits = float(packets.to_numpy("size")[media][0]) * 8
    variation, threshold, estimate = noted("group_delta_ms"), noted("threshold"), noted("compared")
    steps = list(_steps(sent, arrived))[: len(variation)]
    expected = np.array([step.variation for step in steps])
    # the noted variation has the arrival times of the feedback
    elapsed = [0.0 if step.repeated else delta + step.sent for step, delta in zip(steps, variation, strict=True)]
    same_threshold, same_order = _thresholds(threshold, estimate, elapsed)
    return Checks(
        variation=(np.abs(variation - expected) <= TICK_MS * (1 + 1e-6)).tolist(),
        threshold=same_threshold,
        order=same_order,
        received=_received(noted("received_rate"), times[names == "received_rate"], arrived, bits),
        decrease=_decreases(names, values),
        increase=list(_increases(names, values, times)),
    )


@dataclass(frozen=True)
class _Step:
    """A delay variation."""

    variation: float
    """d(i), ms."""
    sent: float
    """T(i) - T(i-1), ms."""
    repeated: bool
    """Whether the packet is lost, so that the last variation counts once more."""


def _steps(sent: Floats, arrived: Floats) -> Iterator[_Step]:
    """Delay variations in the order of packets."""
    last: int | None = None
    step: _Step | None = None
    for index, arrival in enumerate(arrived):
        if math.isnan(arrival):
            if step is not None:
                yield _Step(step.variation, step.sent, True)
            continue
        if last is not None:
            between = 1e3 * float(sent[index] - sent[last])
            step = _Step(1e3 * float(arrival - arrived[last]) - between, between, False)
            yield step
        last = index


def _thresholds(threshold: Floats, estimate: Floats, elapsed: Sequence[float]) -> tuple[list[bool], list[bool]]:
    """Whether each threshold follows from the one before, and whether the order of update and comparison matters."""
    same: list[bool] = []
    order: list[bool] = []
    # the first two samples have no time before them
    for index in range(2, len(threshold)):
        before, m = float(threshold[index - 1]), float(estimate[index])
        gain = K_DOWN if abs(m) < before else K_UP
        after = max(LEAST_THRESHOLD, before + elapsed[index] * gain * (abs(m) - before))
        same.append(math.isclose(after, float(threshold[index]), rel_tol=1e-6, abs_tol=1e-6))
        order.append((m > before, m < -before) == (m > after, m < -after))
    return same, order


def _received(rates: Floats, times: Floats, arrived: Floats, bits: float) -> list[bool]:
    """Whether each R(i) is the bits of a window of T over T, to a packet."""
    arrivals = np.sort(arrived[~np.isnan(arrived)])
    same = []
    for rate, time in zip(rates, times, strict=True):
        # up to the last packet that the report, which left before, knows of
        ends = arrivals[arrivals <= time]
        counts = [((ends > end - WINDOW_S) & (ends <= end)).sum() for end in ends[-4:]]
        same.append(any(abs(rate - count * bits / WINDOW_S) <= bits / WINDOW_S for count in counts))
    return same


def _decreases(names: npt.NDArray[np.object_], values: Floats) -> list[bool]:
    """Whether A_r is beta R(i), within the bounds of the rate, after each report with over-use."""
    same: list[bool] = []
    state, rate = 0.0, math.nan
    for name, value in zip(names, values, strict=True):
        if name == "state":
            state = value
        elif name == "delay_based":
            rate = value
        elif name == "received_rate" and state == OVER_USE:
            expected = min(max(BETA * value, RATES[0]), RATES[1])
            same.append(math.isclose(rate, expected, rel_tol=1e-6))
    return same


def _increases(names: npt.NDArray[np.object_], values: Floats, times: Floats) -> Iterator[str]:
    """Formula of each increase of A_r that no bound cuts short."""
    state, before, then, rtt = -1.0, math.nan, math.nan, math.nan
    for name, value, time in zip(names, values, times, strict=True):
        if name == "rate_state":
            state = value
        elif name == "rtt_ms":
            rtt = value
        elif name == "delay_based":
            if state == INCREASE and not math.isnan(before) and value < RATES[1]:
                yield _kind(before, value, 1e3 * (time - then), rtt)
            before, then = value, time


def _kind(before: float, after: float, passed_ms: float, rtt_ms: float) -> str:
    frame = before / 30
    packet = frame / math.ceil(frame / 9600)
    alpha = 0.5 * min(passed_ms / (100 + rtt_ms), 1.0)
    if math.isclose(after, before * 1.08 ** min(passed_ms / 1e3, 1.0), rel_tol=1e-3):
        return "multiplicative"
    # after Hold no time has passed yet, and the least step is left
    steps = (1000.0, max(1000.0, alpha * packet))
    return "additive" if any(math.isclose(after - before, step, rel_tol=0.01) for step in steps) else "none"


def measures(calls: Sequence[Checks]) -> Iterator[tuple[str, Measure]]:
    """Measures of the formulas, over the calls of each seed."""
    shares: Mapping[str, tuple[Sequence[Sequence[bool]], str]] = {
        "variation": ([call.variation for call in calls], "share of the delay variations that are d(i)"),
        "threshold": ([call.threshold for call in calls], "share of the thresholds that are del_var_th(i)"),
        "order": ([call.order for call in calls], "share of the signals that the thesis's order would give as well"),
        "received": ([call.received for call in calls], "share of the received rates that are R(i), to a packet"),
        "beta": ([call.decrease for call in calls], "share of the estimates after over-use that are beta R(i)"),
    }
    for name, (same, about) in shares.items():
        yield f"formula.{name}", Measure.of([float(np.mean(flags)) for flags in same if len(flags)], "", about)
    increases = [kind for call in calls for kind in call.increase]
    for kind in ("multiplicative", "additive", "none"):
        about = f"number of {kind} increases of A_r" if kind != "none" else "number of increases by neither formula"
        yield f"formula.{kind}", Measure.exact(float(increases.count(kind)), "", about)
