"""What a run needs of memory is told before it begins, and is about what it takes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from support import ROOT
from tidegate import Scenario, run
from tidegate.errors import RunError
from tidegate.scenario import _memory as memory
from tidegate.scenario._lower import lower

MEASURED = """\
import json, sys
from tidegate import Scenario, run
from tidegate.scenario import _memory as memory
from tidegate.scenario._lower import lower

def size(name):
    return int(dict(line.split(":", 1) for line in open("/proc/self/status"))[name].split()[0]) * 1024

scenario = Scenario.from_dict(json.loads(sys.argv[1]))
run(Scenario.from_dict({"duration": "1s", "links": [{}], "flows": [{"media": {"controller": "gcc"}}]}))
open("/proc/self/clear_refs", "w").write("5")  # the peak counts from here on
before = size("VmRSS")
kept = run(scenario)
made = lower(scenario)
print(json.dumps([memory.need(made.ir, made.inputs.traces), size("VmHWM") - before]))
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
    flows: Sequence[dict[str, Any]], record: str, capacity: Any = "4Mbps", duration: str = "600s"
) -> dict[str, Any]:
    """Flows from the ends of fast access links over one slow link to other ends."""
    access = {"capacity": "1Gbps", "delay": "1ms"}
    ways = range(len(flows))
    return {
        "duration": duration,
        "record": record,
        "links": [
            *({"name": f"in-{n}", "from": f"a{n}", "to": "left", **access} for n in ways),
            {"name": "middle", "from": "left", "to": "right", "capacity": capacity, "delay": "20ms"},
            *({"name": f"out-{n}", "from": "right", "to": f"b{n}", **access} for n in ways),
        ],
        "flows": [{"name": f"flow-{n}", "from": f"a{n}", "to": f"b{n}", **flow} for n, flow in enumerate(flows)],
    }


CALL: dict[str, Any] = {"media": {"controller": "gcc", "max_rate": "1Mbps"}}
TCP: dict[str, Any] = {"tcp": {}}
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


def test_more_than_there_is_is_refused_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "free", lambda: (50_000_000, "memory of this machine"))
    day = Scenario.from_dict(shape("call", 1, "86400s", "series"))
    with pytest.raises(RunError) as told:
        run(day)
    text = str(told.value)
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
