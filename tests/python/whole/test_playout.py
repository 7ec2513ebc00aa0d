"""Adaptive playout after an outage at the start: the example of docs/results.md, frame by frame."""

from __future__ import annotations

import numpy as np
import pytest

from tidegate import Scenario, run

MAX_S = 1.0
TICK_S = 1 / 90_000
"""Of the timestamps by which a receiver knows when a frame was captured."""


def test_a_backlog_is_shown_as_it_comes_and_the_maximum_holds_from_then_on() -> None:
    link = {"name": "link", "capacity": {"schedule": [["0s", "0bps"], ["6s", "5Mbps"]]}, "queue": {"time": "10s"}}
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
    assert 150 < backlog.sum() < 190
    assert at[backlog].max() < 7, (
        "the fast forward of six seconds of 500 kbit/s takes 6 x 0.5 / 4.5 s, and a second at most"
    )
    assert (np.diff(captured[seen][order]) > 0).all()
    # a frame is never kept for longer than max, and is shown no later than max behind the fastest frame before
    fastest = np.minimum.accumulate((complete - captured)[np.isfinite(complete)])
    assert (shown - complete)[seen].max() <= MAX_S + TICK_S
    before = np.maximum(np.searchsorted(complete[np.isfinite(complete)], at, side="left") - 1, 0)
    assert (delay <= fastest[before] + MAX_S + TICK_S).all()
    assert delay[~backlog].max() == pytest.approx(MAX_S + fastest[-1], abs=0.15)
    # nothing is lost; no picture comes before the link does
    assert seen[captured < 6].all()
    assert done.table("without_picture").to_numpy("length_s") == pytest.approx([6.02], abs=0.02)
    metrics = done.metrics("call")
    assert (metrics["without_picture_s"], metrics["freezes"]) == (pytest.approx(6.02, abs=0.02), 0)
    # so the 95th percentile over frames is one of the backlog, which is on the screen for 5 % of the time
    assert 5000 < metrics["frame_delay_ms_p95"] < 5300
    assert metrics["frame_delay_ms_p50"] < 1150
