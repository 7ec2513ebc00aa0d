"""tidegate inside SimPy: the same runs as the engine alone, and errors that say what is wrong."""

from __future__ import annotations

import importlib.util
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Generator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import simpy

import tidegate
from support import ROOT, Cli
from tidegate import Controller, Flow, Link, Media, Run, Scenario, Stream, Tcp, Udp, _core
from tidegate.errors import InputError, RunError, ScenarioError
from tidegate.simpy import Call, Environment, Packet, World, nanoseconds

Steps = Generator[simpy.Event, Any, None]


def same(one: Run, other: Run) -> None:
    """The same facts, packet by packet where packets are kept."""
    assert one.digest == other.digest
    assert one.draws == other.draws
    if "packets" in one.tables:
        for column in one.table("packets").columns:
            mine, theirs = one.table("packets").to_numpy(column), other.table("packets").to_numpy(column)
            np.testing.assert_array_equal(mine, theirs)


# Worlds as processes


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("home-broadband", {}),
        ("tcp-joins", {"duration": "30s", "record": "packets"}),
        ("rfc8867-5.7-short-tcp", {"duration": "30s"}),
        ("two-calls", {"duration": "30s", "warmup": "5s"}),
        ("lossy-wifi", {"duration": "20s"}),
        ("lte-generated", {"duration": "20s"}),
        ("thesis-network", {}),
    ],
)
def test_a_world_is_the_run_that_the_engine_makes(name: str, changes: dict[str, Any]) -> None:
    scenario = Scenario.load(name, changes)
    native = tidegate.run(scenario, seed=5)
    env = Environment()
    world = World(env, scenario, seed=5)
    run = env.run(until=world.done)
    same(run, native)
    assert run.summary == native.summary
    assert env.now == int(scenario.duration)
    assert run.about == native.about
    # in small steps, with other things going on
    env = Environment()
    world = World(env, scenario, seed=5)

    def ticking() -> Steps:
        while True:
            yield env.timeout("1.7ms")

    env.process(ticking())
    same(env.run(until=world.done), native)


def test_worlds_side_by_side_begin_when_they_are_made() -> None:
    scenario = Scenario.load("home-broadband", {"duration": "8s"})
    env = Environment("3s")
    worlds = [World(env, scenario, seed=1)]
    env.run(until="5s")
    worlds += [World(env, scenario, seed=1), World(env, scenario, seed=2)]
    assert [world.now for world in worlds] == [2 * 10**9, 0, 0]
    env.run()
    assert env.now == 13 * 10**9
    one, two, three = (world.finish() for world in worlds)
    assert one.digest == two.digest == tidegate.run(scenario).digest != three.digest


def test_a_world_may_end_early_and_stays_what_it_was() -> None:
    scenario = Scenario.load("lte-generated", {"duration": "60s", "record": "packets"})
    env = Environment()
    world = World(env, scenario)
    env.run(until="7s")
    early = world.finish()
    assert world.done.triggered
    assert world.finish() is early
    env.run()
    native = tidegate.run(scenario.with_changes({"duration": "7s"}))
    same(early, native)
    assert early.summary == native.summary
    assert early.table("truth").num_rows == native.table("truth").num_rows


# External flows


def steady(**kind: Any) -> Scenario:
    """A sender of one packet every 5 ms, whose packets all meet those of others at the same nanosecond."""
    flows = [
        Flow(name="steady", **kind),
        Flow(name="other", udp=Udp(rate="3.2Mbps", packet_size="1000B")),
        Flow(name="call", media=Media(controller="gcc", video={"source": "ideal", "fps": 25.0})),
        Flow(name="file", start="1s", tcp=Tcp(algorithm="reno", packet_size="1000B")),
    ]
    links = [Link(name="link", capacity="8Mbps", delay="5ms", queue={"packets": 20})]
    return Scenario(duration="6s", sending_jitter="off", record="packets", links=links, flows=flows)


def test_a_fed_flow_is_the_one_that_the_engine_sends() -> None:
    native = tidegate.run(steady(udp=Udp(rate="1.6Mbps", packet_size="1000B")))
    env = Environment()
    world = World(env, steady(external={}))
    heard: list[tuple[int, int | None, int]] = []

    def sender() -> Steps:
        number = 0
        while True:
            world.feed("steady", 1000, tag=2**64 - 1 - number)
            number += 1
            yield env.timeout("5ms")

    def receiver() -> Steps:
        arrivals = world.arrivals("steady")
        while True:
            packet = yield arrivals.get()
            heard.append((packet.sequence, packet.tag, env.now))

    env.process(sender())
    env.process(receiver())
    run = env.run(until=world.done)
    same(run, native)
    assert {**run.metrics("steady"), "kind": "udp", "controller": "cbr"} == native.metrics("steady")
    packets = run.table("packets")
    mine = (packets.to_numpy("flow") == "steady") & (packets.to_numpy("fate") == "arrived")
    assert [sequence for sequence, _, _ in heard] == list(packets.to_numpy("sequence")[mine])
    np.testing.assert_allclose([at / 1e9 for _, _, at in heard], packets.to_numpy("arrived_s")[mine], rtol=0, atol=1e-9)
    assert all(tag == 2**64 - 1 - sequence for sequence, tag, _ in heard)
    assert 800 < len(heard) < 1200, "the link is too narrow for all"


def test_worlds_hand_on_what_arrives() -> None:
    """Two worlds in a row, each with half of the way, are one world with all of it."""

    def half(name: str) -> Scenario:
        link = Link(name=name, capacity="8Mbps", delay="7ms")
        return Scenario(duration="2s", record="packets", links=[link], flows=[Flow(name="x", external={})])

    env = Environment()
    first, second = World(env, half("a")), World(env, half("b"))
    seen = []

    def sender() -> Steps:
        for number in range(100):
            first.feed("x", 1000, number)
            yield env.timeout("10ms")

    def relay() -> Steps:
        while True:
            packet = yield first.arrivals("x").get()
            second.feed("x", packet.size, packet.tag)

    def receiver() -> Steps:
        while True:
            packet = yield second.arrivals("x").get()
            seen.append((env.now, packet.tag))

    for process in (sender, relay, receiver):
        env.process(process())
    env.run()
    # 1 ms of service and 7 ms of delay, twice
    assert seen == [(10_000_000 * number + 16_000_000, number) for number in range(100)]


# External links


def through(far: dict[str, Any]) -> Scenario:
    """All kinds of flows over a narrow link and one that is in somebody's hands; much falls together."""
    links = [
        Link(
            **{"name": "narrow", "from": "left", "to": "middle"}, capacity="8Mbps", delay="1ms", queue={"packets": 20}
        ),
        Link(**{"name": "far", "from": "middle", "to": "right"}, **far),
    ]
    return steady(udp=Udp(rate="1.6Mbps", packet_size="1000B")).model_copy(update={"links": links})


def test_a_pure_delay_in_python_is_the_one_of_the_engine() -> None:
    native = tidegate.run(through({"capacity": "infinite", "delay": "5ms", "queue": {}}))
    env = Environment()
    world = World(env, through({"capacity": "external"}))
    store = simpy.Store(env)

    def carry(packet: Packet) -> Steps:
        yield env.timeout("5ms")
        packet.forward()

    def serve() -> Steps:
        while True:
            packet = yield store.get()
            assert packet.link == "far.back"
            env.process(carry(packet))

    def begin(packet: Packet) -> None:
        env.process(carry(packet))

    world.link("far").out = begin
    world.link("far.back").out = store
    env.process(serve())
    same(env.run(until=world.done), native)


def test_nothing_in_between_is_no_delay_at_all() -> None:
    native = tidegate.run(through({"capacity": "infinite", "queue": {}}))
    env = Environment()
    world = World(env, through({"capacity": "external"}))
    for name in ("far", "far.back"):
        world.link(name).out = lambda packet: packet.forward()
    same(env.run(until=world.done), native)


def test_what_is_kept_is_inside_and_what_is_late_is_nothing() -> None:
    """Conservation is checked at the end of every run; half of the packets stay with the model."""
    env = Environment()
    world = World(env, through({"capacity": "external"}))
    kept = []

    def out(packet: Packet) -> None:
        if packet.sequence % 2:
            kept.append(packet)
        else:
            packet.forward()

    world.link("far").out = world.link("far.back").out = out
    run = env.run(until=world.done)
    assert len(kept) > 100
    packets = run.table("packets")
    odd = packets.to_numpy("sequence") % 2 == 1
    assert set(packets.to_numpy("fate")[odd]) <= {"queue"}, "odd ones die at the narrow link or never end"
    kept[0].forward()
    kept[1].drop()


def test_packets_tell_what_they_are() -> None:
    env = Environment()
    call = Call(env, Media(controller="gcc"), duration="2s")
    seen: list[Packet] = []

    def out(packet: Packet) -> None:
        seen.append(packet)
        packet.forward()

    call.sender.out = call.receiver.out = out
    env.run(until=call.done)
    media = [packet for packet in seen if packet.kind == "video"]
    rtcp = [packet for packet in seen if packet.kind == "rtcp"]
    assert len(media) + len(rtcp) == len(seen) > 50
    assert [packet.rtp_sequence for packet in media] == [
        (media[0].rtp_sequence or 0) + number for number in range(len(media))
    ]
    assert {packet.link for packet in media} == {"network"}
    assert {packet.flow for packet in seen} == {"call"}
    assert all(packet.rtcp is None and packet.tag is None and packet.marker is not None for packet in media)
    assert any(packet.marker for packet in media)
    assert all(a.sent_ns <= b.sent_ns for a, b in pairwise(media))
    assert all(28 < packet.size <= 28 + 24 + 1200 for packet in media)
    for packet in rtcp:
        assert packet.rtcp is not None
        assert packet.size == len(packet.rtcp) + 28
        assert packet.rtp_sequence is packet.timestamp is packet.payload_type is packet.transport_sequence is None
        assert packet.marker is None
    kinds = {type(one).__name__ for packet in rtcp for one in tidegate.wire.decode(packet.rtcp or b"")}
    assert {"SenderReport", "ReceiverReport", "Sdes", "Twcc"} <= kinds


# The thesis


def example() -> Any:
    spec = importlib.util.spec_from_file_location("thesis_simpy", ROOT / "docs" / "examples" / "thesis_simpy.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Cautious(Controller):
    """Halves at loss, and adds 10 kbit/s a report otherwise."""

    def on_limits(self, now_ns: int, limits: tidegate.Limits) -> int:
        self.limits, self.rate = limits, limits.start_bps
        return self.rate

    def on_report(self, now_ns: int, report: tidegate.Report) -> int:
        lost = any(packet.arrival_ns is None for packet in report.packets)
        self.rate = max(self.limits.min_bps, self.rate // 2 if lost else self.rate + 10_000)
        return self.rate


@pytest.mark.parametrize(
    "controller",
    [
        "gcc:hoang2017",
        "gcc:draft-02",
        "gcc-remb:hoang2017",
        "gcc-remb:aiortc",
        "fixed:7.2Mbps",
        "fixed:4Mbps",
        Cautious,
    ],
)
@pytest.mark.parametrize("seed", [1, 2, 77])
def test_the_thesis_in_simpy_is_the_thesis_in_the_engine(controller: str | type[Controller], seed: int) -> None:
    scenario = Scenario.load("thesis-network", {"record": "packets"})
    run = example().manager(controller, seed, scenario)
    native = tidegate.run(scenario.with_changes({"flows.sender.media.controller": controller}), seed=seed)
    assert run.digest == native.digest
    for table in ("packets", "decisions", "internals", "rtcp"):
        for column in native.table(table).columns:
            mine, theirs = run.table(table).to_numpy(column), native.table(table).to_numpy(column)
            np.testing.assert_array_equal(mine, theirs)
    assert run.metrics()["lost_wire"] == native.metrics()["lost_wire"] > 20
    assert run.draws == {name: draws for name, draws in native.draws.items() if not name.startswith("network")}


def test_the_example_says_that_they_are_equal() -> None:
    file = ROOT / "docs" / "examples" / "thesis_simpy.py"
    done = subprocess.run([sys.executable, str(file), "fixed", "3"], capture_output=True, text=True, check=True)
    first, second = done.stdout.splitlines()
    assert first.startswith("fixed, seed 3: ")
    digest = second.removeprefix("digest ").partition(",")[0]
    assert second == f"digest {digest}, of the engine's own network {digest}"


def test_streams_are_those_of_the_engine() -> None:
    scenario = through({"capacity": "infinite", "delay": "1ms", "loss": "5%", "queue": {}})
    run = tidegate.run(scenario)
    draws = run.draws["far/loss"]["count"]
    luck = Stream(scenario.seed, "far", "loss")
    lost = sum(luck.chance(0.05) for _ in range(draws))
    assert lost == next(link for link in run.summary["links"] if link["link"] == "far")["dropped_wire"]
    whole = [Stream(1, "a", "b").below(10) for _ in range(3)]
    assert whole == [whole[0]] * 3
    assert whole[0] in range(10)
    luck = Stream(1, "a", "c")
    counts = np.bincount([luck.below(4) for _ in range(40_000)], minlength=4)
    assert abs(counts - 10_000).max() < 5 * np.sqrt(40_000 * 0.25 * 0.75)
    assert luck.below(0) == 0


def test_the_page_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs" / "simpy.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    assert len(blocks) == page.count("```python") == 6
    names: dict[str, Any] = {}
    for block in blocks:
        exec(compile(block, "docs/simpy.md", "exec"), names)


# Errors


def test_a_scenario_with_external_parts_needs_a_driver(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('duration = "2s"\n[[links]]\ncapacity = "external"\n[[flows]]\nudp = { rate = "1Mbps" }\n')
    done = cli("run", str(file))
    assert done.code == 2
    key = "links.link: is external, which somebody has to drive; run this scenario inside tidegate.simpy"
    assert f"{file}:2: {key}" in " ".join(done.err.split())
    file.write_text('duration = "2s"\n[[links]]\ndelay = "1ms"\n[[flows]]\nname = "mine"\nexternal = {}\n')
    with pytest.raises(InputError, match=r"flows\.mine: is external, .*run this scenario inside tidegate\.simpy"):
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
    why = "an external link does to packets what whoever drives the run does, and nothing else"
    first, second, third, fourth = caught.value.problems
    assert first == f"scenario.toml:4: links[1].delay: {why}"
    assert second.endswith(f"loss: {why}")
    assert third.endswith(f"back.queue: {why}")
    assert fourth.endswith("has udp and external; expected exactly one of media, udp, tcp and external")
    # one way in the model's hands, the other in the engine's
    both = 'duration = "2s"\n[[links]]\ncapacity = "external"\nback = { capacity = "1Mbps", delay = "3ms" }\n'
    made = Scenario.parse(both + "[[flows]]\nmedia = {}\n")
    assert World(Environment(), made)._core.links == ["link"]
    assert Scenario.parse(made.to_toml()).to_dict() == made.to_dict()


def test_wrong_use_is_told() -> None:
    env = Environment()
    flows = [Flow(name="x", external={}, start="1s", stop="3s"), Flow(name="y", external={})]
    scenario = Scenario(duration="4s", links=[Link(name="far", capacity="external")], flows=flows)
    world, other = World(env, scenario), World(env, scenario)
    with pytest.raises(InputError, match=r"^farr: no such external link; did you mean far\?$"):
        world.link("farr")
    with pytest.raises(InputError, match=r"^z: no such external flow; there are x, y$"):
        world.arrivals("z")
    with pytest.raises(InputError, match=r"z: no such external flow; there are x, y$"):
        world.feed("z", 100)
    with pytest.raises(InputError, match=r"x: fed at 0.*; it runs from 1.* until before 3"):
        world.feed("x", 100)
    for size in (0, 65536):
        with pytest.raises(InputError, match=rf"y: a packet of {size} bytes; expected 1 to 65535"):
            world.feed("y", size)
    for size, tag in ((-1, 0), (2**40, 0), (100, -1), (100, 2**64)):
        with pytest.raises(InputError):
            world.feed("y", size, tag)
    with pytest.raises(
        InputError, match="found 3 as a way out; expected something to call with each packet, or a Store"
    ):
        world.link("far").out = 3  # type: ignore[assignment]
    packets: list[Packet] = []
    world.link("far").out = packets.append
    other.link("far").out = packets.append
    world.feed("y", 100)
    other.feed("y", 100)
    env.run(until="1ms")
    first, second = packets
    assert (first.holder, second.holder) == (world, other)
    with pytest.raises(InputError, match='no packet dies of "boredom"; there are queue, loss, corrupt, outage'):
        first.drop("boredom")
    with pytest.raises(InputError, match=r"Packet 0 \(datagram, 100 B\).* is of another world"):
        world.forward(second)
    first.forward()
    for again in (first.forward, first.drop):
        with pytest.raises(InputError, match="was forwarded or dropped before"):
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
    nobody = World(env, scenario)
    nobody.feed("y", 100)
    with pytest.raises(RunError, match=r"links\.far: nobody takes its packets; set `out` before the environment runs"):
        env.run(until="6s")
    with pytest.raises(InputError, match=r"found Environment as the environment; expected a tidegate\.simpy\.Env"):
        World(simpy.Environment(), scenario)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="flow: a call is one flow of media"):
        Call(env, Flow(udp=Udp(rate="1Mbps")), duration="3s")


def test_what_is_fed_has_whole_numbers() -> None:
    scenario = Scenario(duration="1s", links=[Link(delay="1ms")], flows=[Flow(name="y", external={})])
    world = World(Environment(), scenario)
    with pytest.raises(InputError, match=r"^y: size: found 100\.5; expected a whole number$"):
        world.feed("y", 100.5)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"^y: tag: found 'a'; expected a whole number$"):
        world.feed("y", 100, "a")  # type: ignore[arg-type]


def test_packets_of_other_calls_are_refused() -> None:
    env = Environment()
    one, two = Call(env, duration="2s"), Call(env, duration="2s")
    one.sender.out = two.receiver.receive
    with pytest.raises(InputError, match="was not sent by the other end of this call"):
        env.run(until="1s")
    env = Environment()
    one = Call(env, duration="2s")
    one.sender.out = one.sender.receive
    with pytest.raises(InputError, match="was not sent by the other end of this call"):
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
    with pytest.raises(ValueError, match=r"^at 0\.000000004s: the world is at 0\.000000005s already$"):
        world.forward(packet, 4)
    world.forward(packet, 20)
    with pytest.raises(ValueError, match=r"the world is at 0\.000000020s"):
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
    with pytest.raises(Mine, match="video"):
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
    with pytest.raises(RunError, match="this world is at work: what runs inside it"):
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
