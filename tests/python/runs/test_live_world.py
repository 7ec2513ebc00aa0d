"""A world that is stepped, read and changed by hand is the run of the scenario that it writes down."""

from __future__ import annotations

import _thread
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import tidegate
from tidegate import Controller, InputError, LiveWorld, OutputError, Report, RunError, Scenario, live_world


def by_hand(scenario: Scenario | str, cuts: float) -> LiveWorld:
    """A session with changes now and ahead of time, in steps of `cuts` seconds."""
    world = live_world(scenario, seed=4)

    def go(until: float) -> None:
        while world.now < until:
            world.step(until=min(world.now + cuts, until))

    go(3)
    world.change("uplink", capacity="700kbps", delay="60ms")
    world.change("uplink", at="7.5s", loss="3%")
    world.change("uplink.back", at=5, loss=0.1)
    go(6.25)
    world.change("uplink", capacity="0bps")
    world.change("uplink", at=world.now + 0.5, capacity="2Mbps")
    go(9)
    return world


def short(name: str = "home-broadband", **changes: object) -> Scenario:
    return Scenario.load(name, {"duration": "12s", **changes})


def test_what_was_done_by_hand_is_saved_and_runs_to_the_same_digest(tmp_path: Path) -> None:
    world = by_hand(short(), 0.37)
    file = world.save(tmp_path / "by-hand.toml")
    finished = world.finish()
    assert world.finish() is finished
    command = [sys.executable, "-m", "tidegate", "run", str(file), "--out", str(tmp_path / "run")]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    again = tidegate.Run.load(tmp_path / "run")
    assert again.digest == finished.digest != tidegate.run(short(), seed=4).digest
    assert again.metrics() == finished.metrics()
    assert again.about["scenario_hash"] == finished.about["scenario_hash"]
    for table in ("series", "truth", "queues"):
        for column in again.table(table).columns:
            np.testing.assert_array_equal(again.table(table).to_numpy(column), finished.table(table).to_numpy(column))
    assert [(str(move.time), move.link, move.key) for move in again.scenario.moves] == [
        ("3s", "uplink", "capacity"),
        ("3s", "uplink", "delay"),
        ("7.5s", "uplink", "loss"),
        ("5s", "uplink.back", "loss"),
        ("6.25s", "uplink", "capacity"),
        ("6.75s", "uplink", "capacity"),
    ]


def test_neither_steps_nor_looking_move_anything() -> None:
    coarse = by_hand(short(), 100).finish()
    world = by_hand(short(), 0.1)
    while world.now < world.duration:
        world.metrics()
        world.table("series")
        world.step(seconds=0.5)
    assert world.finish().digest == coarse.digest
    assert world.finish().metrics() == coarse.metrics()


@pytest.mark.parametrize("name", ["home-broadband", "fq-codel-home", "satellite", "rfc8867-5.6-long-tcp"])
def test_a_world_that_nobody_changes_is_the_run(name: str) -> None:
    scenario = Scenario.load(name, {"duration": "25s"})
    world = live_world(scenario)
    world.step(seconds=5)
    assert world.finish().digest == tidegate.run(scenario).digest
    assert not world.scenario.moves


def test_what_is_read_on_the_way_is_what_a_run_says_that_ends_there() -> None:
    world = live_world(short())
    world.step(until="6s")
    ended = tidegate.run(short(duration="6s"))
    for column in ended.table("internals").columns:
        ours = world.table("internals").to_numpy(column)
        # what happens at 6 s has not been done
        np.testing.assert_array_equal(ours, ended.table("internals").to_numpy(column)[: len(ours)])
    assert len(ours) > 10
    for key in ("goodput_bps", "one_way_delay_ms_p95", "queueing_delay_ms_mean"):
        assert world.metrics()[key] == pytest.approx(ended.metrics()[key], rel=0.01)
    assert world.table("series").to_numpy("t_s").max() < 6


class Steady(Controller):
    """Always the same rate."""

    def on_report(self, now_ns: int, report: Report) -> float:
        return 400_000


class Fails(Controller):
    """Fails at the first report."""

    def on_report(self, now_ns: int, report: Report) -> float:
        raise RuntimeError("on purpose")


def test_controllers_in_python_take_part() -> None:
    scenario = short().with_changes({"flows.call.media.controller": Steady})
    world = by_hand(scenario, 1)
    assert world.finish().digest == tidegate.run(world.scenario).digest


def test_a_world_that_fails_says_so_and_is_over() -> None:
    world = live_world(short().with_changes({"flows.call.media.controller": Fails}))
    with pytest.raises(RunError, match="on purpose"):
        world.step(seconds=5)
    for what in (lambda: world.step(seconds=1), world.metrics, world.finish):
        with pytest.raises(InputError, match="stopped with an error"):
            what()
    assert repr(world) == "<tidegate LiveWorld of home-broadband, stopped with an error>"


def test_no_more_changes_are_made_than_a_scenario_can_say() -> None:
    world = live_world(short())
    for number in range(5000):
        world.change("uplink", at=number / 1000, capacity="1Mbps", delay="10ms")
    with pytest.raises(
        InputError, match="uplink: found 10000 changes before this one; a scenario has at most 10000 moves"
    ):
        world.change("uplink", at=11, loss="1%")
    assert world.finish().digest == tidegate.run(world.scenario).digest


def wrong(what: Callable[[LiveWorld], object], says: str) -> None:
    world = live_world(short())
    world.step(seconds=2)
    with pytest.raises(InputError) as error:
        what(world)
    assert says in str(error.value)
    assert not world.scenario.moves
    assert world.now == 2


def test_bad_input_is_told_and_changes_nothing() -> None:
    wrong(lambda world: world.change("upink", loss=0.1), "upink: the run has no such link; did you mean uplink?")
    wrong(lambda world: world.change("uplink"), "found no change")
    wrong(lambda world: world.change("uplink", capacity=5), "uplink: capacity: found 5; a rate needs a unit")  # type: ignore[arg-type]
    wrong(lambda world: world.change("uplink", loss=5), 'did you mean "5%"')
    wrong(
        lambda world: world.change("uplink", at="1s", loss=0),
        "at: found 1 s; expected a time from 2 s (now)",
    )
    wrong(lambda world: world.change("uplink", at="13s", loss=0), "to the end of the run at 12 s")
    wrong(lambda world: world.change("uplink", at=float("inf"), loss=0), "at: found inf")
    wrong(lambda world: world.change("uplink", at=True, loss=0), "at: found True")
    wrong(lambda world: world.step(), "neither of seconds and until")
    wrong(lambda world: world.step(1, until=5), "both of seconds and until")
    wrong(lambda world: world.step(-1), "seconds: found -1")
    wrong(lambda world: world.step(until="1s"), "until: found 1 s; the run is at 2 s already")
    wrong(lambda world: world.step(until="5"), "until: found")
    wrong(lambda world: world.metrics("absent"), "absent: the run has no such flow")
    with pytest.raises(KeyError, match="has no such table"):
        live_world(short()).table("packets")
    external = Scenario.from_dict(
        {
            "duration": "1s",
            "links": [{"name": "l", "from": "a", "to": "b", "capacity": "external"}],
            "flows": [{"name": "f", "from": "a", "to": "b", "media": {}}],
        }
    )
    with pytest.raises(InputError, match=r"links\.l is external and needs a driver; .* tidegate\.simpy"):
        live_world(external)


def test_a_file_that_is_named_from_the_scenarios_folder_keeps_it_there(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "x.csv").write_text("time_s,rate_bps\n0,2000000\n4,900000\n8,1500000\n")
    text = short().to_toml().replace('capacity = "5Mbps"', 'capacity = { trace = "x.csv" }')
    (tmp_path / "there" / "plain.toml").write_text(text)
    world = live_world(tmp_path / "there" / "plain.toml")
    world.step(seconds=2)
    world.change("uplink", capacity="1Mbps")
    with pytest.raises(InputError, match=r"names x\.csv, which is in .*there; save it there"):
        world.save(tmp_path / "moved.toml")
    assert not (tmp_path / "moved.toml").exists()
    file = world.save(tmp_path / "there" / "moved.toml")
    assert tidegate.run(file).digest == world.finish().digest
    with pytest.raises(OutputError):
        live_world(short()).save(file / "x")


def test_whoever_asks_is_told_how_far_it_is() -> None:
    told: list[float] = []
    world = live_world(short())
    world.step(seconds=3, progress=told.append)
    assert told == sorted(told)
    assert told[-1] == 1
    assert world.now == 3


def test_ctrl_c_leaves_a_world_that_goes_on() -> None:
    # days of simulated time, too long to wait for
    scenario = Scenario.load("home-broadband", {"duration": "1000000s", "record": "summary"})
    world = live_world(scenario)
    threading.Timer(0.3, _thread.interrupt_main).start()
    with pytest.raises(KeyboardInterrupt):
        world.step(until=world.duration)
    stands = world.now
    assert 0 < stands < world.duration
    world.change("uplink", capacity="1Mbps")
    world.step(seconds=5)
    assert world.now == pytest.approx(stands + 5)
    assert world.metrics()["packets_sent"] > 0
