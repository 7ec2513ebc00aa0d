"""The memory that a run needs is estimated before it begins, and is about what it takes."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from support import ROOT
from tidegate import Flow, Link, Media, Scenario, run
from tidegate.errors import InputError, RunError
from tidegate.scenario import Tcp, Udp, memory
from tidegate.scenario.lower import lower
from tidegate.scenario.ways import Ways

MEASURED = """\
import json, sys
from tidegate import Scenario, run
from tidegate.scenario import memory
from tidegate.scenario.lower import lower
from tidegate.scenario.ways import Ways

def size(name):
    return int(dict(line.split(":", 1) for line in open("/proc/self/status"))[name].split()[0]) * 1024

scenario = Scenario.from_dict(json.loads(sys.argv[1]))
run(Scenario.from_dict({"duration": "1s", "links": [{}], "flows": [{"media": {"controller": "gcc"}}]}))
open("/proc/self/clear_refs", "w").write("5")  # the peak counts from here on
before = size("VmRSS")
kept = run(scenario)
taken = size("VmHWM") - before
made = lower(scenario)
print(json.dumps([memory.need(made.ir, made.inputs.traces), taken]))
"""


def shape(kind: str, count: int, duration: str, record: str, **keys: Any) -> dict[str, Any]:
    flows: dict[str, dict[str, Any]] = {
        "call": {"media": {"controller": "gcc", "max_rate": "1Mbps"}},
        "tcp": {"tcp": {}},
        "udp": {"udp": {"rate": "1Mbps", "packet_size": "1200B"}},
    }
    return {
        "duration": duration,
        "record": record,
        "links": [{"capacity": f"{count}Mbps", "delay": "10ms"}],
        "flows": [{"name": "flow", "count": count, **flows[kind]}],
        **keys,
    }


def dumbbell(
    flows: Sequence[dict[str, Any]], record: str, capacity: Any = "4Mbps", duration: str = "600s", access: str = "1Gbps"
) -> dict[str, Any]:
    """Flows from the ends of fast access links over one slow link to other ends."""
    fast = {"capacity": access, "delay": "1ms"}
    ways = range(len(flows))
    return {
        "duration": duration,
        "record": record,
        "links": [
            *({"name": f"in-{n}", "from": f"a{n}", "to": "left", **fast} for n in ways),
            {"name": "middle", "from": "left", "to": "right", "capacity": capacity, "delay": "20ms"},
            *({"name": f"out-{n}", "from": "right", "to": f"b{n}", **fast} for n in ways),
        ],
        "flows": [{"name": f"flow-{n}", "from": f"a{n}", "to": f"b{n}", **flow} for n, flow in enumerate(flows)],
    }


def chain(flow: dict[str, Any], record: str, duration: str, *capacities: Any) -> dict[str, Any]:
    """One flow over links one after the other."""
    links = [
        {"name": f"l-{n}", "from": f"p-{n}", "to": f"p-{n + 1}", "capacity": capacity, "delay": "1ms"}
        for n, capacity in enumerate(capacities)
    ]
    flows = [{"from": "p-0", "to": f"p-{len(capacities)}", **flow}]
    return {"duration": duration, "record": record, "links": links, "flows": flows}


CALL: dict[str, Any] = {"media": {"controller": "gcc", "max_rate": "1Mbps"}}
TCP: dict[str, Any] = {"tcp": {}}
GREEDY: dict[str, Any] = {
    "media": {
        "max_rate": "1Gbps",
        "video": {"source": "greedy"},
        "feedback": {"bandwidth": "1Mbps", "reports": "rfc3550"},
    }
}
FLOOD: dict[str, Any] = {"udp": {"rate": "100Mbps"}}
BURSTS = {"schedule": [["0s", "500Mbps"], ["2s", "1Mbps"]]}

SHAPES = {
    "a dumbbell's connections": dumbbell([TCP] * 3, "series", duration="2400s"),
    "a dumbbell's packets": dumbbell([CALL, TCP, TCP], "packets"),
    "one connection after others": dumbbell([TCP, *[{"stop": "20s", **TCP}] * 9], "packets"),
    "too much UDP": dumbbell([{"udp": {"rate": "12Mbps", "packet_size": "1200B"}}], "packets"),
    "many calls": shape("call", 1000, "1s", "summary"),
    "many connections": shape("tcp", 1500, "1s", "summary"),
    "many flows": shape("udp", 4000, "1s", "summary"),
    "hours of a call": shape("call", 1, "4000s", "series"),
    "hours of UDP": shape("udp", 20, "4000s", "series"),
    "packets of calls": shape("call", 5, "200s", "packets"),
    "packets of UDP": shape("udp", 10, "200s", "packets"),
    "packets of TCP": shape("tcp", 4, "200s", "packets"),
    "a capture": shape("udp", 10, "200s", "packets", capture=True),
    "calls with fast access, packets": dumbbell([GREEDY] * 5, "packets", "10Mbps", "200s"),
    "a call below its link": shape("call", 1, "1500s", "packets", links=[{"capacity": "1Gbps"}]),
    "reports of a fast session": chain(
        {"media": {"max_rate": "1Gbps", "feedback": {"reports": "rfc3550"}}}, "series", "500s", "10Gbps"
    ),
    "reports at libwebrtc's times": chain(
        {"media": {"max_rate": "1Gbps", "video": {"source": "greedy", "max": "15Mbps"}}}, "series", "500s", "20Mbps"
    ),
    "a fast bottleneck": chain(TCP, "packets", "10s", "1Gbps"),
    "a bottleneck of several hops": chain(TCP, "packets", "300s", "10Gbps", "1Gbps", "20Mbps", "1Gbps"),
    "a fast link with nothing on it": {
        **chain(TCP, "packets", "300s", "20Mbps", "10Gbps"),
        "flows": [{"from": "p-0", "to": "p-1", **TCP}],
    },
    "files": shape(
        "tcp",
        100,
        "60s",
        "packets",
        links=[{"capacity": "1Gbps", "delay": "1ms"}],
        flows=[{"name": "file", "count": 100, "start_step": "100ms", "tcp": {"workload": {"file": "3MB"}}}],
    ),
    "bursts": chain(TCP, "packets", "600s", BURSTS),
    "what is dropped, captured": {**chain(FLOOD, "summary", "60s", "1Mbps"), "capture": True},
    "a connection that begins earlier": shape(
        "tcp",
        20,
        "200s",
        "packets",
        flows=[{"name": "long", **TCP}, {"name": "short", "count": 9, "start": "190s", **TCP}],
    ),
    "a session": {
        "duration": "1000s",
        "record": "packets",
        "links": [{"capacity": "10Mbps", "delay": "10ms"}],
        "sessions": [
            {
                "name": "lecture",
                "bandwidth": "500kbps",
                "members": [
                    {"name": "left", "media": {"rate": "400kbps"}},
                    {"name": "right", "count": 9, "node": "right"},
                ],
            }
        ],
    },
    "a queue for each flow": shape(
        "udp",
        1,
        "1s",
        "summary",
        links=[
            {
                "name": f"link-{n}",
                "from": f"end-{n}" if n else "left",
                "to": f"end-{n + 1}" if n < 19 else "right",
                "discipline": {"name": "fq-codel", "flows": 65_536},
            }
            for n in range(20)
        ],
    ),
}


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("name", SHAPES)
def test_the_estimate_is_what_a_run_takes(name: str) -> None:
    env = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    argv = [sys.executable, "-c", MEASURED, json.dumps(SHAPES[name])]
    done = subprocess.run(argv, env=env, capture_output=True, text=True, check=True)
    wanted, taken = json.loads(done.stdout)
    print(f"{name}: {wanted / 1e6:.0f} MB estimated, {taken / 1e6:.0f} MB taken")
    assert taken / 1.6 < wanted < taken * 1.6


def test_the_link_that_limits_is_that_of_the_way(tmp_path: Path) -> None:
    """A gigabit that is no bottleneck needs no more than none at all; a recorded one needs what it carried."""
    (tmp_path / "slow.csv").write_text("time_s,rate_bps\n0,4000000\n600,4000000\n")

    def need(data: dict[str, Any]) -> int:
        made = lower(Scenario.from_dict(data, tmp_path))
        return memory.need(made.ir, made.inputs.traces)

    flows = [CALL, TCP, {"tcp": {"algorithm": "newreno"}}]
    for record in ("series", "packets"):
        constant = need(dumbbell(flows, record))
        assert need(dumbbell(flows, record, {"trace": "slow.csv"})) == pytest.approx(constant, rel=0.01)
        assert constant < need(dumbbell(flows, record, "40Mbps")) < 12 * constant
        plain = dumbbell(flows, record)
        plain["links"] = [{**link, "capacity": "4Mbps"} for link in plain["links"]]
        assert need(plain) == constant
    wide = dumbbell(flows, "series", "1Gbps")
    assert need(wide) > 100 * need(dumbbell(flows, "summary")), "a gigabit of TCP is told of packet by packet"


def test_levels_and_lengths_need_what_they_add() -> None:
    def need(**changes: Any) -> int:
        return memory.need(lower(Scenario.from_dict({**shape("call", 1, "1000s", "series"), **changes})).ir)

    summary, series, packets = (need(record=level) for level in ("summary", "series", "packets"))
    assert summary < series < packets < need(record="packets", capture=True)
    assert need(duration="2000s") - series == pytest.approx(series - summary, rel=0.05)
    assert need(bin="20ms") > series
    shaped = {"name": "shaper", "rate": "1Mbps", "burst": "9kB", "discipline": {"name": "fq-codel", "flows": 1000}}
    queues = need(links=[{"capacity": "1Mbps", "discipline": shaped}]) - need(links=[{"capacity": "1Mbps"}])
    assert 150_000 < queues < 250_000, "1000 queues for either way, of some 100 bytes"
    # the issue's own cases: a day of series in gigabytes, not megabytes or terabytes
    assert 5e8 < need(duration="86400s") < 5e9


def estimate(data: dict[str, Any], **changes: Any) -> int:
    run_input = lower(Scenario.from_dict({**data, **changes}))
    return memory.need(run_input.ir, run_input.inputs.traces)


def beside(data: dict[str, Any], record: str = "packets") -> float:
    """Estimated bytes of packets and their rows, without flows, links and bins."""
    idle = [{**flow, "start": "0s", "stop": "1ns"} for flow in data["flows"]]
    moves = [move for move in data.get("moves", ()) if "flow" not in move]
    return estimate(data, record=record) - estimate(data, record=record, flows=idle, moves=moves)


PLAIN = {"tcp": TCP, "media": GREEDY}


@pytest.mark.parametrize("record", ["series", "packets"])
@pytest.mark.parametrize("flow", PLAIN.values(), ids=PLAIN)
def test_a_way_carries_what_its_bottleneck_does(flow: dict[str, Any], record: str) -> None:
    """However fast other links are, and wherever on the way it is."""
    alone = beside(chain(flow, record, "100s", "10Mbps"), record)
    assert alone > 0
    for others in (("10Mbps", "1Gbps"), ("1Gbps", "10Mbps", "40Gbps"), ("infinite", "infinite", "10Mbps")):
        assert beside(chain(flow, record, "100s", *others), record) == pytest.approx(alone)
    idle = chain(flow, record, "100s", "10Mbps", "40Gbps")
    idle["flows"][0]["to"] = "p-1"
    assert beside(idle, record) == pytest.approx(alone)
    if flow is TCP or record == "packets":
        # a call's series do not grow with its rate
        assert beside(chain(flow, record, "100s", "500Mbps", "1Gbps"), record) > 20 * alone


@pytest.mark.parametrize("count", [1, 40])
def test_calls_share_what_they_have_in_common(count: int) -> None:
    single, several = (estimate(dumbbell([GREEDY] * n, "packets")) for n in (1, count))
    series = [estimate(dumbbell([GREEDY] * n, "series")) for n in (1, count)]
    reports = 45 * 2 * 600 / 0.36
    assert several - series[1] - count * reports == pytest.approx(single - series[0] - reports, rel=1e-3)


@pytest.mark.parametrize("count", [1, 5, 40])
def test_connections_share_what_they_have_in_common(count: int) -> None:
    single = beside(dumbbell([TCP], "packets", "10Mbps", "100s"))
    assert beside(dumbbell([TCP] * count, "packets", "10Mbps", "100s")) == pytest.approx(single)
    # ten megabits each of a hundred, or all of what is less
    several = beside(dumbbell([TCP] * count, "packets", "100Mbps", "100s", "10Mbps"))
    assert several == pytest.approx(min(count, 10) * single)
    # one after the other
    apart = dumbbell([TCP] * count, "packets", "10Mbps", "100s")
    for n, flow in enumerate(apart["flows"]):
        flow.update(start=f"{n}s", stop=f"{n + 1}s")
    assert beside(apart) == pytest.approx(count * single / 100)


def test_the_case_that_was_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Access links of 1 Gbit/s: 29 GB were estimated at `packets`, 72.9 at `series`, and 0.1 taken."""
    monkeypatch.setattr(memory, "free", lambda: (200_000_000, "memory of this machine"))
    for record in ("summary", "series", "packets"):
        assert run(Scenario.from_dict(dumbbell([TCP] * 20, record, duration="20s"))).flows
    with pytest.raises(RunError, match="needs about"):
        run(Scenario.from_dict(dumbbell([TCP] * 20, "series", "1Gbps", "2000s", "10Gbps")))


def net(tmp_path: Path) -> dict[str, Any]:
    """A recorded network: 40 Mbit/s for a second of each ten, else 1."""
    lines = [f"{t},{40 if t % 10 == 0 else 1}" for t in range(60)]
    (tmp_path / "net.csv").write_text("time_s,rate_mbps\n" + "\n".join(lines) + "\n60,1\n")
    return {"trace": str(tmp_path / "net.csv"), "offset": "random"}


def test_what_limits_a_connection(tmp_path: Path) -> None:
    """In Mbit/s over 100 s, by the estimate of a link of 1 Mbit/s."""
    unit = beside(chain(TCP, "packets", "100s", "1Mbps"))

    def rate(data: dict[str, Any], **changes: Any) -> float:
        return beside({**data, **changes}) / unit

    def of(capacity: Any, **changes: Any) -> float:
        return rate(chain(TCP, "packets", "100s", capacity, "1Gbps"), **changes)

    def moved(key: str, value: Any, **more: Any) -> list[dict[str, Any]]:
        return [{"time": "50s", "link": "l-0", "key": key, "value": value, **more}]

    assert of("30Mbps") == pytest.approx(30)
    assert of({"schedule": [["0s", "500Mbps"], ["2s", "1Mbps"]]}) == pytest.approx(10.98)
    assert of({"schedule": [["0s", "9Mbps"], ["1s", "1Mbps"]], "period": "8s"}) == pytest.approx((13 * 8 + 100) / 100)
    assert of(net(tmp_path)) == pytest.approx((10 * 40 + 90) / 100)
    assert of("1Mbps", moves=moved("capacity", "99Mbps")) == pytest.approx(50)
    assert of("99Mbps", moves=moved("capacity", "1Mbps")) == pytest.approx(50)
    bucket = {"rate": "5Mbps", "burst": "10kB"}
    for name in ("policer", "shaper"):
        data = chain(TCP, "packets", "100s", "1Gbps", "1Gbps")
        data["links"][0]["discipline"] = {"name": name, **bucket}
        assert rate(data) == pytest.approx(5, rel=0.01)
    # a window a round trip of 4 ms, and one of 2.2 ms once the delay is less
    small = {"tcp": {"receive_window": "25kB"}}
    assert rate(chain(small, "packets", "100s", "1Gbps", "1Gbps")) == pytest.approx(50)
    data = chain(small, "packets", "100s", "1Gbps", "1Gbps")
    assert rate(data, moves=moved("delay", "100us")) == pytest.approx(25_000 * 8 / 3.1e-3 / 1e6)
    file = {"tcp": {"workload": {"file": "12.5MB"}}}
    assert rate(chain(file, "packets", "100s", "1Gbps", "1Gbps")) == pytest.approx(1.05)
    data = chain(TCP, "packets", "100s", "1Mbps")
    stopped = [{"time": "10s", "flow": "flow", "key": "running", "value": False}]
    assert rate(data, moves=stopped) == pytest.approx(0.1)
    assert 0 < rate(chain({"tcp": {"workload": {"web": {}}}}, "packets", "100s", "1Gbps")) < 0.2


def test_a_call_needs_what_each_of_its_paths_lets_it_send() -> None:
    def of(path: str, **changes: Any) -> float:
        data = chain({"name": "call", **GREEDY}, "packets", "100s", "1Mbps")
        other = {**data["links"][0], "name": "fast", "capacity": "49Mbps"}
        data["links"] = [data["links"][0], other] if path == "slow" else [other, data["links"][0]]
        return beside({**data, **changes})

    moves = [{"time": "50s", "flow": "call", "key": "path", "value": ["fast"]}]
    assert of("slow", moves=moves) == pytest.approx((of("slow") + of("fast")) / 2, rel=0.01)
    assert of("fast") > 5 * of("slow")


def test_what_nothing_limits() -> None:
    """A window a round trip at `packets`; acknowledgments of one instant are noted once, unless something spreads them."""
    free = chain(TCP, "series", "100s", "infinite")
    assert beside(free, "series") == 0
    assert beside(free, "packets") > 1e9
    free["links"][0]["jitter"] = {"uniform": "1ms"}
    assert beside(free, "series") > 1e9


def test_what_is_sent_whatever_the_link(tmp_path: Path) -> None:
    """UDP and a fixed sender: packets that are dropped are rows as well. Who adapts sends no more than arrives."""
    slow, fast = (beside(chain(FLOOD, "packets", "100s", capacity)) for capacity in ("1Mbps", "1Gbps"))
    assert slow == pytest.approx(fast)
    steps: dict[str, Any] = {"udp": {"rate": "100Mbps", "schedule": [["0s", "1Mbps"], ["50s", "9Mbps"]]}}
    assert beside(chain(steps, "packets", "100s", "1Gbps")) == pytest.approx(fast / 20)
    # other patterns have no schedule
    steps["udp"]["pattern"] = "poisson"
    assert beside(chain(steps, "packets", "100s", "1Gbps")) == pytest.approx(fast)
    fixed = {"media": {**GREEDY["media"], "controller": "fixed:50Mbps"}}
    slow, fast = (beside(chain(fixed, "packets", "100s", capacity)) for capacity in ("1Mbps", "1Gbps"))
    assert slow == pytest.approx(fast)
    slow, fast = (beside(chain(GREEDY, "packets", "100s", capacity)) for capacity in ("1Mbps", "1Gbps"))
    assert slow < fast / 50


def test_users_of_a_radio_network_have_what_the_air_carries() -> None:
    """However fast the wire: 5 MHz carry some 20 Mbit/s a cell."""
    data = {
        "duration": "100s",
        "lte": {"bandwidth": "5MHz", "users": [{"name": "phone"}]},
        "links": [{"from": "server", "to": "core", "capacity": "10Gbps", "delay": "1ms"}],
        "flows": [{"from": "server", "to": "phone", **TCP}],
    }
    wire = beside(chain(TCP, "packets", "100s", "20Mbps"))
    for capacity in ("10Gbps", "infinite"):
        data["links"] = [{"from": "server", "to": "core", "capacity": capacity, "delay": "1ms"}]
        assert beside(data) == pytest.approx(wire, rel=0.05)
    data["links"] = [{"from": "server", "to": "core", "capacity": "20Mbps"}]
    assert beside(data) == pytest.approx(wire, rel=0.05)


WRONG: dict[str, dict[str, Any]] = {
    "a way to nowhere": {"flows": [Flow(name="a", to="nowhere", tcp=Tcp())]},
    "a call to nowhere": {"flows": [Flow(name="a", to="nowhere", media=Media())]},
    "a move of no link": {"moves": [{"time": "1s", "link": "none", "key": "delay", "value": "1ms"}]},
    "a capacity of no link": {"moves": [{"time": "1s", "link": "none", "key": "capacity", "value": "1Mbps"}]},
    "downloads at once": {"flows": [Flow(name="a", tcp=Tcp(workload={"web": {"idle": "0s"}}))]},
    "segments of nothing": {"flows": [Flow(name="a", tcp=Tcp(packet_size="0B"))]},
    "datagrams of nothing": {"flows": [Flow(name="a", udp=Udp(rate="1Mbps", packet_size="0B"))]},
    "no rate": {"flows": [Flow(name="a", media=Media(max_rate="0bps"))]},
    "no bandwidth": {"flows": [Flow(name="a", media=Media(feedback={"bandwidth": "0bps"}))]},
    "reports at once": {"flows": [Flow(name="a", media=Media(feedback={"reports": "0s"}))]},
    "a period of nothing": {"links": [Link(capacity={"schedule": [["0s", "1Mbps"]], "period": "0s"})]},
    "bins of nothing": {"bin": "0s"},
    "no time": {"duration": "0s"},
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_with_a_scenario_is_said_by_the_engine(name: str) -> None:
    """One that was made in Python comes to the estimate unchecked."""
    plain = {"duration": "2s", "links": [Link(capacity="1Mbps")], "flows": [Flow(name="a", tcp=Tcp())]}
    with pytest.raises(InputError):
        run(Scenario(**{**plain, **WRONG[name]}))


def graph(luck: random.Random) -> list[dict[str, str]]:
    points = [f"p{n}" for n in range(luck.randint(2, 9))]
    pairs = [luck.sample(points, 2) for _ in range(luck.randint(1, 14))]
    return [{"name": f"l{n}", "from": begin, "to": end} for n, (begin, end) in enumerate(pairs)]


def test_ways_are_those_of_the_engine() -> None:
    """Fewest links, and among equals the one found first in the order of the scenario, as in `assemble/graph.rs`."""
    luck = random.Random(1)
    for _ in range(200):
        links = graph(luck)
        points = sorted({link[key] for link in links for key in ("from", "to")})
        ways = Ways({"links": links})
        for begin in points:
            reached: dict[str, list[str]] = {begin: []}
            for here in (waiting := [begin]):
                for link in links:
                    if link["from"] == here and link["to"] not in reached:
                        reached[link["to"]] = [*reached[here], link["name"]]
                        waiting.append(link["to"])
            for end in points:
                assert [link["name"] for link in ways.between(begin, end)] == reached.get(end, [])


def test_more_than_there_is_is_refused_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "free", lambda: (50_000_000, "memory of this machine"))
    day = Scenario.from_dict(shape("call", 1, "86400s", "series"))
    with pytest.raises(RunError) as caught:
        run(day)
    text = str(caught.value)
    assert 'GB of memory (record = "series", 86400 s, 1 flows), and 50 MB are free (memory of this machine)' in text
    assert 'record = "summary" needs about 8 MB' in text
    assert "TIDEGATE_IGNORE_MEMORY=1" in text
    small = Scenario.from_dict(shape("call", 1, "1s", "series"))
    assert run(small).flows == ["flow"]
    monkeypatch.setattr(memory, "free", lambda: (1_000_000, "memory of this machine"))
    with pytest.raises(RunError):
        run(small)
    monkeypatch.setenv("TIDEGATE_IGNORE_MEMORY", "1")
    assert run(small).flows == ["flow"]


@pytest.mark.skipif(sys.platform != "linux", reason="ulimit -v is what Linux holds to")
def test_a_small_ulimit_is_an_error_and_no_abort(tmp_path: Path) -> None:
    toml = tmp_path / "day.toml"
    toml.write_text(Scenario.from_dict(shape("call", 1, "86400s", "series")).to_toml())
    line = f"ulimit -v 2000000; exec {sys.executable} -m tidegate run {toml} --out {tmp_path / 'o'}"
    env = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(["bash", "-c", line], env=env, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 1
    assert "needs about" in done.stderr
    assert "ulimit -v" in done.stderr
    assert "Traceback" not in done.stderr
    assert "panicked" not in done.stderr
    assert not (tmp_path / "o").exists()
