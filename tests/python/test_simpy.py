"""tidegate inside SimPy: the same runs as the engine alone."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Generator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import simpy

import tidegate
from support import ROOT, example
from tidegate import Controller, Flow, Link, Media, Run, Scenario, Stream, Tcp, Udp
from tidegate.simpy import Call, Environment, Packet, World

Steps = Generator[simpy.Event, Any, None]


def same(actual: Run, expected: Run) -> None:
    """The same facts, packet by packet where packets are kept."""
    assert actual.digest == expected.digest
    assert actual.draws == expected.draws
    if "packets" in actual.tables:
        for column in actual.table("packets").columns:
            mine, theirs = actual.table("packets").to_numpy(column), expected.table("packets").to_numpy(column)
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
    """All kinds of flows over a narrow link and one that a driver holds; many events coincide."""
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
    held = []

    def out(packet: Packet) -> None:
        if packet.sequence % 2:
            held.append(packet)
        else:
            packet.forward()

    world.link("far").out = world.link("far.back").out = out
    run = env.run(until=world.done)
    assert len(held) > 100
    packets = run.table("packets")
    odd = packets.to_numpy("sequence") % 2 == 1
    assert set(packets.to_numpy("fate")[odd]) <= {"queue", "under way"}, "odd ones die at the narrow link or never end"
    held[0].forward()
    held[1].drop()


def test_packets_tell_what_they_are() -> None:
    env = Environment()
    call = Call(env, Media(controller="gcc"), duration="2s")
    packets: list[Packet] = []

    def out(packet: Packet) -> None:
        packets.append(packet)
        packet.forward()

    call.sender.out = call.receiver.out = out
    env.run(until=call.done)
    media = [packet for packet in packets if packet.kind == "video"]
    padding = [packet for packet in packets if packet.kind == "padding"]
    rtcp = [packet for packet in packets if packet.kind == "rtcp"]
    assert len(media) + len(rtcp) + len(padding) == len(packets) > 50
    assert padding, "probes begin with it"
    assert [packet.rtp_sequence for packet in media] == [
        (media[0].rtp_sequence or 0) + number for number in range(len(media))
    ]
    assert {packet.link for packet in media} == {"network"}
    assert {packet.flow for packet in packets} == {"call"}
    assert all(packet.rtcp is None and packet.tag is None and packet.marker is not None for packet in media)
    assert any(packet.marker for packet in media)
    assert all(a.sent_ns <= b.sent_ns for a, b in pairwise(media))
    assert all(28 < packet.size <= 28 + 36 + 1200 for packet in media)
    for packet in rtcp:
        assert packet.rtcp is not None
        assert packet.size == len(packet.rtcp) + 28
        assert packet.rtp_sequence is packet.timestamp is packet.payload_type is packet.transport_sequence is None
        assert packet.marker is None
    kinds = {type(report).__name__ for packet in rtcp for report in tidegate.wire.decode(packet.rtcp or b"")}
    assert {"SenderReport", "ReceiverReport", "Sdes", "Twcc"} <= kinds


# The thesis


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
    run = example("thesis_simpy").manager(controller, seed, scenario)
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


def test_a_link_that_the_model_changes() -> None:
    links = [Link(name="link", capacity="4Mbps", delay="5ms", service="managed", queue={}, back=False)]
    flow = Flow(name="steady", udp=Udp(rate="8Mbps", packet_size="1000B"), stop="20ms")
    scenario = Scenario(duration="1s", sending_jitter="off", record="packets", links=links, flows=[flow])
    env = Environment()
    world = World(env, scenario)

    def change() -> Steps:
        yield env.timeout("21ms")
        world.change("link", capacity="1Mbps")

    env.process(change())
    run = env.run(until=world.done)
    arrived = np.rint(run.table("packets").to_numpy("arrived_s") * 1000)
    # 2 ms each; the eleventh has half of it left, which takes 4; the others 8 each
    np.testing.assert_array_equal(arrived, [*range(7, 26, 2), 30, *range(38, 103, 8)])
    link = run.summary["links"][0]
    assert link["capacity_bps"] == (4e6 * 21 + 1e6 * 979) / 1000
    truth = run.table("truth").to_numpy("capacity_bps")
    assert truth[0] == (4e6 * 21 + 1e6 * 179) / 200, "a bin of 200 ms"
    assert set(truth[1:]) == {1e6}
    with pytest.raises(tidegate.errors.InputError, match="this world has finished"):
        world.change("link", capacity="1Mbps")
    plain = World(Environment(), Scenario(duration="1s", links=[Link(name="link")], flows=[flow]))
    with pytest.raises(
        tidegate.errors.InputError, match=r'links\.link: found no managed link of this name.* service = "managed"'
    ):
        plain.change("link", delay="1ms")


def test_streams_are_those_of_the_engine() -> None:
    scenario = through({"capacity": "infinite", "delay": "1ms", "loss": "5%", "queue": {}})
    run = tidegate.run(scenario)
    draws = run.draws["far/loss"]["count"]
    luck = Stream(scenario.seed, "far", "loss")
    lost = sum(luck.chance(0.05) for _ in range(draws))
    packets = run.table("packets")
    died = (packets.to_numpy("fate") == "loss") & (packets.to_numpy("where") == "far")
    assert lost == died.sum()
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
    assert len(blocks) == page.count("```python") == 7
    names: dict[str, Any] = {}
    for block in blocks:
        exec(compile(block, "docs/simpy.md", "exec"), names)
