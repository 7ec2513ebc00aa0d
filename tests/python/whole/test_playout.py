"""Adaptive playout after an outage at the start: the example of docs/results.md, frame by frame."""

from __future__ import annotations

import numpy as np
import pytest

from tidegate import Scenario, run

MAX_S = 1.0
TICK_S = 1 / 90_000
"""Of the timestamps by which a receiver knows when a frame was captured."""


def test_a_backlog_is_shown_as_it_comes_and_the_maximum_holds_from_then_on() -> None:
    link = {"name": "link", "capacity": {"schedule": [["0s", "0bps"], ["6s", "5Mbps"]]}}
    media = {"controller": "fixed:500kbps", "playout": {"adaptive": {"max": "1s"}}}
    made = Scenario.from_dict({"duration": "20s", "links": [link], "flows": [{"name": "call", "media": media}]})
    done = run(made)
    frames = done.table("frames")
    captured, complete, shown = (frames.to_numpy(f"{name}_s") for name in ("captured", "complete", "rendered"))
    seen = np.isfinite(shown)
    order = np.argsort(shown[seen])
    delay, at = (shown - captured)[seen][order], shown[seen][order]

    # what came first is shown first: who has seen no faster frame cannot know that it is six seconds late
    backlog = delay > delay[at > 7].max() + 1e-9
    assert delay[0] == pytest.approx(6.02, abs=0.01)
    assert 30 < backlog.sum() < 90
    assert at[backlog].max() < 6.4, "a fast forward of some tenths of a second"
    assert (np.diff(captured[seen][order]) > 0).all()
    # a frame is never kept for longer than max, and is shown no later than max behind the fastest frame before
    fastest = np.minimum.accumulate((complete - captured)[np.isfinite(complete)])
    assert (shown - complete)[seen].max() <= MAX_S + TICK_S
    before = np.maximum(np.searchsorted(complete[np.isfinite(complete)], at, side="left") - 1, 0)
    assert (delay <= fastest[before] + MAX_S + TICK_S).all()
    assert delay[~backlog].max() == pytest.approx(MAX_S + fastest[-1], abs=0.15)
    # between, what had been waiting for more than that is given up: a freeze
    given_up = captured[~seen & (captured < 6)]
    assert len(given_up) > 90
    assert done.table("freezes").to_numpy("length_s") == pytest.approx([6.02, 0.72], abs=0.02)
    metrics = done.metrics("call")
    assert metrics["freeze_time_s"] == pytest.approx(6.74, abs=0.04)
    # so the 95th percentile over frames is one of the backlog, which is on the screen for 2 % of the time
    assert metrics["frame_delay_ms_p95"] > 5000
    assert metrics["frame_delay_ms_p50"] < 1100
