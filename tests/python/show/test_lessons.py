"""The lessons of the page: the engine behaves as their sentences say, and otherwise without the named cause."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import tidegate
from tidegate import Run, Scenario
from tidegate.show.play import lessons

LESSONS = {lesson.scenario.name: lesson for lesson in lessons()}
NAMES = [
    "ramp-and-probes",
    "step-down",
    "buffer-bloat",
    "loss-is-not-congestion",
    "beside-tcp",
    "queue-management",
    "l4s",
    "another-path",
]


@cache
def _run(name: str, controller: str, changes: tuple[tuple[str, str], ...]) -> Run:
    values: dict[str, Any] = {"flows.call.media.controller": controller}
    for key, value in changes:
        # a queue as the page changes it: by a limit in time, or by a discipline with its usual limits
        values[key] = {"time": value} if key.endswith(".queue") else value
    return tidegate.run(LESSONS[name].scenario.with_changes(values))


def between(run: Run, begin: float, end: float, column: str, flow: str = "call") -> float:
    """The mean of a column of the series from `begin` to `end` in seconds; for a column of maxima the largest."""
    table = run.table("series")
    time, flows = table.to_numpy("t_s"), table.to_numpy("flow")
    values = table.to_numpy(column)[(time >= begin) & (time < end) & (flows == flow)]
    return float(np.nanmax(values) if column.endswith("max") else np.nanmean(values))


def rate(run: Run, begin: float, end: float) -> float:
    """The mean sending rate in Mbit/s."""
    return between(run, begin, end, "sending_rate_bps") / 1e6


def delay(run: Run, begin: float, end: float) -> float:
    """The mean one-way delay in ms."""
    return between(run, begin, end, "one_way_delay_ms_mean")


def worst(run: Run, begin: float, end: float) -> float:
    """The largest one-way delay in ms."""
    return between(run, begin, end, "one_way_delay_ms_max")


def played(name: str, controller: str, **changes: str) -> Run:
    return _run(name, controller, tuple((key.replace("__", "."), value) for key, value in changes.items()))


def test_there_are_eight_in_this_order() -> None:
    assert [lesson.scenario.name for lesson in lessons()] == NAMES
    assert [lesson.number for lesson in lessons()] == [1, 2, 3, 4, 5, 6, 7, 8]


@pytest.mark.parametrize("name", NAMES)
def test_each_says_what_it_is_for_and_can_be_run(name: str) -> None:
    lesson = LESSONS[name]
    assert lesson.scenario.description
    assert lesson.question.endswith("?")
    assert all(30 < len(text) < 600 for text in (lesson.look_for, lesson.question, lesson.answer))
    assert 1 <= len(lesson.contenders) <= 2
    assert lesson.scenario.flows[0].media is not None
    assert lesson.contenders[0] == lesson.scenario.flows[0].media.controller
    Scenario.parse(lesson.scenario.to_toml()).check()


def test_probes_find_the_capacity_and_climbing_takes_long() -> None:
    today, draft = played("ramp-and-probes", "gcc"), played("ramp-and-probes", "gcc:draft-02")
    assert rate(today, 1.8, 3) > 2.3
    assert rate(draft, 1.8, 3) < 0.4
    assert rate(draft, 9, 11) < 0.5
    probes, none = (run.table("internals") for run in (today, draft))
    measured = probes.to_numpy("name") == "probe_rate"
    assert measured.sum() == 3
    assert (probes.to_numpy("t_s")[measured] < 0.3).all()
    assert "probe_rate" not in none.to_numpy("name")


def test_a_window_drains_the_queue_and_a_rate_lets_it_grow() -> None:
    gcc, scream = played("step-down", "gcc"), played("step-down", "scream")
    assert worst(gcc, 20, 23) > 1000
    assert worst(scream, 20, 23) < 700
    assert delay(scream, 21, 23) < 60
    assert delay(gcc, 21, 23) > 500
    assert rate(scream, 42, 45) > 2
    assert rate(gcc, 42, 45) < 1.2


def test_the_buffer_is_what_hurts() -> None:
    bloated, short = played("buffer-bloat", "gcc"), played("buffer-bloat", "gcc", links__uplink__queue="50ms")
    assert 1100 < delay(bloated, 20, 45) < 1500
    assert 0.03 < rate(bloated, 25, 45) < 0.15
    assert worst(short, 20, 45) < 71
    assert rate(short, 20, 45) > 2.3
    assert 0.005 < short.metrics("call")["loss_fraction"] < 0.02
    fair = played("buffer-bloat", "gcc", links__uplink__discipline="fq-codel")
    assert delay(fair, 20, 45) < 110
    assert rate(fair, 20, 45) > 2.3


def test_who_takes_loss_for_congestion() -> None:
    gcc, nada = played("loss-is-not-congestion", "gcc"), played("loss-is-not-congestion", "nada")
    assert rate(gcc, 10, 60) > 2.4
    assert rate(nada, 10, 60) < 1.2
    assert worst(gcc, 10, 60) < 60
    clean = played("loss-is-not-congestion", "nada", links__wifi__loss="0%")
    assert rate(clean, 10, 60) > 2.3
    assert 1.5 < rate(played("loss-is-not-congestion", "gcc", links__wifi__loss="10%"), 10, 60) < 2.2


def test_who_looks_at_delay_gives_way_to_who_looks_at_loss() -> None:
    gcc, nada = played("beside-tcp", "gcc"), played("beside-tcp", "nada")
    for run in (gcc, nada):
        assert delay(run, 30, 60) > 250
        assert 0.4 < rate(run, 30, 60) < 1.2
        assert delay(run, 10, 20) < 40
    assert rate(nada, 63, 68) > 2.3
    assert rate(gcc, 63, 68) < 1.5
    assert rate(gcc, 75, 80) < 1.5


def test_turns_give_a_half_and_one_short_queue_gives_a_short_delay() -> None:
    for controller in ("gcc", "nada", "scream"):
        fair = played("queue-management", controller)
        assert delay(fair, 30, 60) < 50
        assert 1.6 < rate(fair, 30, 60) < 2.1
    for discipline, low, high in (("codel", 1.6, 2.4), ("pie", 0.6, 1.0)):
        shared = played("queue-management", "gcc", links__downlink__discipline=discipline)
        assert delay(shared, 30, 60) < 50
        assert low < rate(shared, 30, 60) < high
    assert 260 < delay(played("beside-tcp", "gcc"), 30, 60) < 300


def test_marks_keep_the_queue_short_and_the_share() -> None:
    marked, beside = played("l4s", "scream"), played("l4s", "gcc")
    assert delay(marked, 30, 60) < 25
    assert delay(beside, 30, 60) > 32
    assert rate(marked, 30, 60) > 1.5
    assert marked.metrics("call")["marked"] > 1000
    assert beside.metrics("call")["marked"] == 0
    unmarked = played("l4s", "scream", links__downlink__discipline="drop-tail", links__downlink__queue="200ms")
    assert delay(unmarked, 30, 60) > 170
    assert rate(unmarked, 30, 60) < 0.2


def _above(run: Run, mbps: float, since: float) -> float:
    """The time from `since` until the target is so high."""
    table = run.table("decisions")
    times, targets = table.to_numpy("t_s"), table.to_numpy("target_bps")
    return float(times[(times > since) & (targets > mbps * 1e6)][0]) - since


def _target(run: Run, at: float) -> float:
    table = run.table("decisions")
    return float(table.to_numpy("target_bps")[table.to_numpy("t_s") <= at][-1]) / 1e6


def test_another_path_is_begun_anew_and_unheard_it_costs_delay_and_the_way_back() -> None:
    gcc, nada = played("another-path", "gcc"), played("another-path", "nada")
    assert [_target(run, 20.05) for run in (gcc, nada)] == [0.3, 0.3]
    assert _above(gcc, 1, 20.05) < 1
    assert _above(nada, 1, 20.05) > 3
    assert _above(gcc, 2, 40) < 0.5
    assert 2.5 < _above(nada, 2, 40) < 3.5
    scenario = LESSONS["another-path"].scenario
    moves = [{**move, "signalled": False} for move in scenario.to_dict()["moves"]]
    unheard = tidegate.run(scenario.with_changes({"moves": moves}))
    assert _target(unheard, 20.05) == 2.5
    assert 300 < worst(unheard, 20, 25) < 400
    assert worst(gcc, 20, 25) < 200
    assert 6.5 < _above(unheard, 2, 40) < 8.5
