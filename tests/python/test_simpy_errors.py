"""tidegate.simpy used wrongly, stopped, or ended early: errors that say what is wrong."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import simpy

import tidegate
from support import Cli
from tidegate import Controller, Flow, Link, Media, Scenario, Udp, _core
from tidegate.errors import InputError, RunError, ScenarioError
from tidegate.simpy import Call, Environment, Packet, World, nanoseconds

Steps = Generator[simpy.Event, Any, None]


def test_a_scenario_with_external_parts_needs_a_driver(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('duration = "2s"\n[[links]]\ncapacity = "external"\n[[flows]]\nudp = { rate = "1Mbps" }\n')
    done = cli("run", str(file))
    assert done.code == 2
    key = "links.link: an external link or flow needs a driver; run this scenario inside tidegate.simpy"
    assert f"{file}:2: {key}" in " ".join(done.err.split())
    file.write_text('duration = "2s"\n[[links]]\ndelay = "1ms"\n[[flows]]\nname = "mine"\nexternal = {}\n')
    with pytest.raises(
        InputError,
        match=r"flows\.mine: an external link or flow needs a driver; run this scenario inside tidegate\.simpy",
    ):
        tidegate.run(file)


def test_what_cannot_stand_beside_external() -> None:
    with pytest.raises(ScenarioError) as caught:
        Scenario.parse(
            'duration = "2s"\n[[links]]\ncapacity = "external"\ndelay = "1ms"\nloss = "1%"\n'
            'back = { capacity = "external", queue = { packets = 3 } }\n[[flows]]\nexternal = { size = 3 }\n'
        )
    assert "external: size" in str(caught.value) or "external.size: there is no such key" in str(caught.value)
    with pytest.raises(ScenarioError) as caught:
        Scenario.parse(
            'duration = "2s"\n[[links]]\ncapacity = "external"\ndelay = "1ms"\nloss = "1%"\n'
            'back = { capacity = "external", queue = { packets = 3 } }\n[[flows]]\nexternal = {}\nudp = { rate = "1bps" }\n'
        )
    why = "an external link has no settings but its capacity: your own code decides when each packet arrives"
    first, second, third, fourth = caught.value.problems
    assert first == f"scenario.toml:4: links[1].delay: {why}"
    assert second.endswith(f"loss: {why}")
    assert third.endswith(f"back.queue: {why}")
    assert fourth.endswith("found udp and external; expected exactly one of media, udp, tcp and external")
    # one way in the model's hands, the other in the engine's
    both = 'duration = "2s"\n[[links]]\ncapacity = "external"\nback = { capacity = "1Mbps", delay = "3ms" }\n'
    made = Scenario.parse(both + "[[flows]]\nmedia = {}\n")
    assert World(Environment(), made)._core.links == ["link"]
    assert Scenario.parse(made.to_toml()).to_dict() == made.to_dict()


def test_wrong_use_is_told() -> None:
    env = Environment()
    flows = [Flow(name="x", external={}, start="1s", stop="3s"), Flow(name="y", external={})]
    scenario = Scenario(duration="4s", links=[Link(name="far", capacity="external")], flows=flows)
    world, neighbour = World(env, scenario), World(env, scenario)
    with pytest.raises(InputError, match=r"^farr: the scenario has no such external link; did you mean far\?$"):
        world.link("farr")
    with pytest.raises(InputError, match=r"^z: the scenario has no such external flow; available: x, y$"):
        world.arrivals("z")
    with pytest.raises(InputError, match=r"z: no such external flow; available: x, y$"):
        world.feed("z", 100)
    with pytest.raises(InputError, match=r"x: found a packet at 0.*; the flow runs from 1.* until before 3"):
        world.feed("x", 100)
    for size in (0, 65536):
        with pytest.raises(InputError, match=rf"y: found a packet of {size} bytes; expected 1 to 65535"):
            world.feed("y", size)
    for size, tag in ((-1, 0), (2**40, 0), (100, -1), (100, 2**64)):
        with pytest.raises(InputError):
            world.feed("y", size, tag)
    with pytest.raises(
        InputError, match="found 3 as the receiver of packets; expected a function of a packet, or a Store"
    ):
        world.link("far").out = 3  # type: ignore[assignment]
    packets: list[Packet] = []
    world.link("far").out = packets.append
    neighbour.link("far").out = packets.append
    world.feed("y", 100)
    neighbour.feed("y", 100)
    env.run(until="1ms")
    first, second = packets
    assert (first.holder, second.holder) == (world, neighbour)
    with pytest.raises(InputError, match='cause: found "boredom"; available: queue, loss, corrupt, outage'):
        first.drop("boredom")
    with pytest.raises(InputError, match=r"Packet 0 \(datagram, 100 B\).* belongs to another world"):
        world.forward(second)
    first.forward()
    for again in (first.forward, first.drop):
        with pytest.raises(InputError, match="was already forwarded or dropped"):
            again()
    heard = world.arrivals("y")
    env.run(until="2ms")
    (arrived,) = heard.items
    assert arrived.link is None
    with pytest.raises(InputError, match="has arrived"):
        arrived.forward()
    env.run(until="5s")
    with pytest.raises(InputError, match="this world has finished"):
        world.feed("y", 100)
    world = World(env, scenario)
    world.feed("y", 100)
    with pytest.raises(
        RunError, match=r"links\.far: its packets have no receiver; set `out` before the environment runs"
    ):
        env.run(until="6s")
    with pytest.raises(InputError, match=r"found Environment as the environment; expected a tidegate\.simpy\.Env"):
        World(simpy.Environment(), scenario)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="flow: found several flows, or no media; expected a single flow with media"):
        Call(env, Flow(udp=Udp(rate="1Mbps")), duration="3s")


def test_what_is_asked_for_is_checked() -> None:
    scenario = Scenario(duration="1s", links=[Link(delay="1ms")], flows=[Flow(name="y", external={})])
    world = World(Environment(), scenario)
    with pytest.raises(InputError, match=r"^y: size: found 100\.5; expected a whole number$"):
        world.feed("y", 100.5)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"^y: tag: found 'a'; expected a whole number$"):
        world.feed("y", 100, "a")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="record: found 'all'; expected summary, series or packets"):
        World(Environment(), scenario, record="all")  # type: ignore[arg-type]


def test_packets_of_other_calls_are_refused() -> None:
    env = Environment()
    first, second = Call(env, duration="2s"), Call(env, duration="2s")
    first.sender.out = second.receiver.receive
    with pytest.raises(InputError, match="does not come from the other end of this call"):
        env.run(until="1s")
    env = Environment()
    first = Call(env, duration="2s")
    first.sender.out = first.sender.receive
    with pytest.raises(InputError, match="does not come from the other end of this call"):
        env.run(until="1s")


def test_the_core_by_hand() -> None:
    ir = {
        "name": "x",
        "duration": 10**9,
        "seed": 1,
        "links": [{"name": "l", "from": "a", "to": "b", "capacity": "external"}],
        "flows": [{"name": "f", "from": "a", "to": "b", "kind": "external"}],
    }
    text = __import__("json").dumps(ir)
    world = _core.World(text)
    assert (world.links, world.flows, world.duration_ns, world.now_ns, world.peek()) == (["l"], ["f"], 10**9, 0, None)
    world.feed("f", 100, 7, 5)
    assert world.peek() == 5
    (packet,) = world.run_until(10**9)
    assert (packet.tag, packet.size, packet.sent_ns, world.now_ns, world.peek()) == (7, 100, 5, 5, None)
    with pytest.raises(ValueError, match="this packet has no holder; give it to"):
        packet.forward()
    with pytest.raises(ValueError, match=r"^at 0\.000000004s: the world has already reached 0\.000000005s$"):
        world.forward(packet, 4)
    world.forward(packet, 20)
    with pytest.raises(ValueError, match=r"the world has already reached 0\.000000020s"):
        world.feed("f", 100, 7, 19)
    (packet,) = world.run_until(10**9)
    assert (packet.link, world.now_ns) == (None, 20)
    assert world.run_until(10**9) == []
    assert world.finish().events == 2, "a source and a link had something to do"
    for late in (world.finish, world.peek, lambda: world.run_until(3)):
        with pytest.raises(ValueError, match="this world has finished"):
            late()
    with pytest.raises(ValueError, match=r"^scenario: "):
        _core.World("{}")


def test_times_are_whole_nanoseconds() -> None:
    env = Environment()
    assert nanoseconds(int(np.int64(3))) == nanoseconds(np.int64(3)) == 3  # type: ignore[arg-type]
    for wrong in (0.5, 3.0, None, [1]):
        with pytest.raises(InputError, match="this clock counts whole nanoseconds"):
            nanoseconds(wrong)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="this clock counts whole nanoseconds"):
        simpy.Timeout(env, 1.5)
    with pytest.raises(InputError, match="whole nanoseconds"):
        env.run(until=1.5)
    with pytest.raises(InputError, match="a time needs a unit"):
        env.timeout("20")
    with pytest.raises(ValueError, match="Negative delay -1"):
        env.timeout(-1)
    env.timeout(tidegate.Duration("3s"))
    env.run()
    assert env.now == 3 * 10**9
    assert type(env.now) is int


# What goes on inside


class Failing(Controller):
    """Fails at the first report."""

    def on_report(self, now_ns: int, report: tidegate.Report) -> None:
        raise ZeroDivisionError("not today")


def test_a_controller_that_fails_fails_its_world() -> None:
    scenario = Scenario.load("home-broadband", {"duration": "5s", "flows.call.media.controller": Failing})
    env = Environment()
    world = World(env, scenario)
    with pytest.raises(RunError, match="on_report raised ZeroDivisionError: not today") as caught:
        env.run(until=world.done)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    env = Environment()
    world = World(env, scenario)
    told = []

    def waiting() -> Steps:
        try:
            yield world.done
        except RunError as error:
            told.append(error)

    env.process(waiting())
    env.run()
    # SimPy throws a copy into a process, whose cause is the original
    cause = told[0].__cause__
    assert isinstance(cause, RunError)
    assert isinstance(cause.__cause__, ZeroDivisionError)
    with pytest.raises(RunError, match="not today"):
        world.finish()


def test_exceptions_of_the_model_come_through() -> None:
    class Mine(Exception):
        pass

    def out(packet: Packet) -> None:
        raise Mine(packet.kind)

    env = Environment()
    call = Call(env, duration="5s")
    call.sender.out = out
    # the first packet is a probe's
    with pytest.raises(Mine, match="padding"):
        env.run(until=call.done)

    def failing() -> Steps:
        yield env.timeout("1s")
        raise Mine("in a process")

    env = Environment()
    world = World(env, Scenario.load("home-broadband", {"duration": "5s"}))
    env.process(failing())
    with pytest.raises(Mine, match="in a process"):
        env.run(until=world.done)
    assert world.now == 10**9


class Meddling(Controller):
    """Drives the world that it runs in."""

    world: World

    def on_report(self, now_ns: int, report: tidegate.Report) -> None:
        self.world.feed("x", 100)


def test_a_world_is_not_driven_from_inside() -> None:
    flows = [Flow(name="call", media=Media(controller=Meddling)), Flow(name="x", external={})]
    scenario = Scenario(duration="5s", links=[Link(delay="1ms")], flows=flows)
    env = Environment()
    Meddling.world = World(env, scenario)
    with pytest.raises(RunError, match="this world is running: code inside it"):
        env.run(until=Meddling.world.done)


def test_stepping_by_hand_never_lets_the_world_run_ahead() -> None:
    scenario = Scenario(duration="2s", links=[Link(capacity="1Mbps", delay="1ms")], flows=[Flow(name="x", external={})])
    env = Environment()
    world = World(env, scenario)
    fed = 0
    for number in range(500):
        world.feed("x", 1000)
        fed += 1
        env.timeout("3ms")
        before = env.now
        while env.now == before:
            env.step()
        assert world.now == env.now > before, number
    run = env.run(until=world.done)
    # 8 ms of service each; what does not fit into 300 ms of queue is lost
    metrics = run.metrics("x")
    assert metrics["packets_sent"] == fed == metrics["packets_received"] + metrics["lost_queue"]


def test_ctrl_c_stops_a_world() -> None:
    scenario = Scenario.load("hundred-calls", {"duration": "3600s", "record": "summary"})
    env = Environment()
    world = World(env, scenario)
    threading.Timer(0.5, signal.raise_signal, [signal.SIGINT]).start()
    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        env.run(until=world.done)
    assert time.monotonic() - begun < 10


def test_without_simpy_it_is_said(tmp_path: Path) -> None:
    code = """\
        import sys
        sys.modules["simpy"] = None
        try:
            import tidegate.simpy
        except ImportError as error:
            print(error)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True)
    assert done.stdout == 'tidegate.simpy needs SimPy: pip install "tidegate[simpy]"\n'


def test_whoever_takes_a_packet_may_end_the_world() -> None:
    env = Environment()
    call = Call(env, duration="5s")
    taken: list[Packet] = []

    def take(packet: Packet) -> None:
        taken.append(packet)
        if len(taken) == 10:
            call.finish()

    call.sender.out = call.receiver.out = take
    run = env.run(until=call.done)
    assert len(taken) == 10
    assert run is call.finish()
    assert run.summary["duration_s"] == env.now / 1e9 < 5
    env.run()  # what was planned of it does nothing


def test_a_world_may_end_before_it_has_begun() -> None:
    env = Environment()
    run = World(env, Scenario.load("home-broadband", {"duration": "5s", "warmup": "1s"})).finish()
    assert run.summary["duration_s"] == 0
    assert run.metrics()["packets_received"] == 0
    assert run.metrics()["receive_rate_bps"] is None
