"""TFRC after a start, a silence and a time with little to send, by RFC 3448 and by RFC 5348."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import tidegate
from gcc_experiments import KILO, Experiment, Row
from kept import kept
from tfrc_experiments import FEEDBACK, LEAST, RULES, STEP_SEEDS, at, noted, path, scenario, series
from tidegate import Flow, Media, Run

LONG = "100ms"
"""One way: a round trip of 200 ms, so that what takes round trips can be seen."""
LONG_RTT = 0.2
FRAMES_A_SECOND = 25
SEGMENT_BYTES = 1000
SEGMENT = f"segment={SEGMENT_BYTES}B,mss={SEGMENT_BYTES}B"
MEDIA_KBPS = 1000
IDLE = (30.0, 60.0)
CONFERENCE = ((0, 448), (20, 20), (50, MEDIA_KBPS), (80, 448))
"""From second on, kb/s: Vardhan's video conference, whose packets have 1000 bytes."""
LIMITED = (20.0, 50.0)
SITUATION_END = 100
SITUATION_LOSSES = (0.0, 0.1)


@cache
def _ladder(schedule: tuple[tuple[int, int], ...]) -> tempfile.TemporaryDirectory[str]:
    """Frames of a source that does not adapt: the same at every rate that is asked for."""
    folder = tempfile.TemporaryDirectory(prefix="tidegate-frames-")
    ends = [*(start for start, _ in schedule[1:]), SITUATION_END]
    sizes = [
        kbps * 1000 // 8 // FRAMES_A_SECOND
        for (start, kbps), end in zip(schedule, ends, strict=True)
        for _ in range((end - start) * FRAMES_A_SECOND)
    ]
    text = "".join(f"{i} P X {i} {size}\n" for i, size in enumerate(sizes))
    for kbps in (1, 100_000):
        Path(folder.name, f"frames_{kbps}.txt").write_text(text)
    return folder


def situation(rules: str, loss: float, seed: int, *, silent: bool) -> Run:
    """A call over an empty path: 1 Mb/s with a silence of 30 s, or the conference, which is data-limited for 30 s."""
    schedule = ((0, MEDIA_KBPS),) if silent else CONFERENCE
    video = {"source": "frames", "ladder": _ladder(schedule).name, "fps": FRAMES_A_SECOND, "min": "1kbps"}
    call = Media(
        controller=f"tfrc:{rules},{SEGMENT}",
        min_rate=LEAST,
        max_rate="100Mbps",
        video={**video, "max": "100Mbps"},
        payload=f"{SEGMENT_BYTES}B",
        feedback=FEEDBACK,
        repair="none",
        pauses=[(f"{IDLE[0]}s", f"{IDLE[1]}s")] if silent else [],
    )
    return tidegate.run(scenario(path(f"{loss}%", delay=LONG), SITUATION_END, Flow(name="call", media=call)), seed)


def seeds(loss: float) -> Sequence[int]:
    """Seeds of the runs: without loss all would be the same."""
    return STEP_SEEDS if loss else (1,)


def catching_up(run: Run, since: float) -> float:
    """Time from an instant on until 9/10 of the media's rate arrive for good, the path's delay not counted, s."""
    t, rate = series(run, "call", "receive_rate_bps")
    width = float(t[1] - t[0])
    within = (t >= since + LONG_RTT / 2 - width / 2) & (t < since + 15)
    short = t[within & (rate < 0.9 * MEDIA_KBPS * KILO)]
    return float(short[-1]) + width - since - LONG_RTT / 2 if len(short) else 0.0


def allowed(run: Run, when: float) -> float:
    """X, kb/s."""
    return float(at(*noted(run, "x_bps"), when)) / KILO


@kept
def silence(rules: str, loss: float, seed: int) -> dict[str, Any]:
    """Start and recovery around a silence, X before and after it, and each time that X falls in it.

    A fall is its time, s, and the part of X that is left.
    """
    run = situation(rules, loss, seed, silent=True)
    t, x = noted(run, "x_bps")
    within = [i for i in range(1, len(t)) if IDLE[0] + 1 < t[i] < IDLE[1]]
    return {
        "start (s)": catching_up(run, 0.0),
        "X before silence (kb/s)": allowed(run, IDLE[0]),
        "X after it (kb/s)": allowed(run, IDLE[1]),
        "catches up (s)": catching_up(run, IDLE[1]),
        "falls": [(float(t[i]), float(x[i] / x[i - 1])) for i in within if x[i] < x[i - 1]],
    }


@kept
def conference(rules: str, loss: float, seed: int) -> dict[str, float]:
    """X at the end of a data-limited time, the recovery from it, and the longest wait at the sender."""
    run = situation(rules, loss, seed, silent=False)
    return {
        "X before 1 Mb/s (kb/s)": allowed(run, LIMITED[1]),
        "catches up to 1 Mb/s (s)": catching_up(run, LIMITED[1]),
        "waits, most (ms)": run.metrics()["sender_delay_ms_max"],
    }


COLUMNS = {"start (s)": 0.1, "X before silence (kb/s)": 1, "X after it (kb/s)": 1, "catches up (s)": 0.1, "X before 1 Mb/s (kb/s)": 1, "catches up to 1 Mb/s (s)": 0.1, "waits, most (ms)": 1}  # fmt: skip
"""Columns with the step to which they are rounded."""


def situations() -> list[Row]:
    """Medians over the seeds."""
    rows = []
    for rules in RULES:
        for loss in SITUATION_LOSSES:
            runs = [{**silence(rules, loss, seed), **conference(rules, loss, seed)} for seed in seeds(loss)]
            numbers = {column: float(np.median([run[column] for run in runs])) for column in COLUMNS}
            rows.append(Row(f"{rules}, {loss:g} % lost", numbers))
    return rows


SITUATIONS = Experiment("situations", COLUMNS, situations)


def claims_table() -> str:
    """All claims on TFRC: they follow from these situations and from the other experiments."""
    import tfrc_claims  # which imports this module

    return tfrc_claims.text()


TABLES = {("tfrc-behaviour.md", "situations"): SITUATIONS.text, ("tfrc-behaviour.md", "claims"): claims_table}
