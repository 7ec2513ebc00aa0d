"""Recorded networks: which stretch of one a run plays, what is said of it, and what it replays beside the capacity."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tidegate
from support import PLAIN, Cli
from tidegate import Scenario
from tidegate.show import report

LENGTH, DURATION = 100, 10
NO_TRACES = [
    "user = admin\npassword = hunter2secret\n",
    "hunter2secret\n",
    "time_s,rate_bps\n0,hunter2secret\n",
    '{"uplink": {"trace_pattern": [{"duration": "hunter2secret", "capacity": 1}]}}',
    '{"bandwidths": "hunter2secret"}',
    "-----BEGIN PRIVATE KEY-----\nhunter2secret\n",
]


@pytest.fixture
def hour(tmp_path: Path) -> Path:
    """A recording whose rate says where in it one is: (1000 + s) kbit/s in second s."""
    file = tmp_path / "hour.csv"
    rows = [f"{second},{1000 + second}" for second in range(LENGTH)]
    file.write_text("\n".join([f"# duration_s={LENGTH}", "time_s,rate_kbps", *rows, ""]), "utf-8")
    return file


@pytest.mark.parametrize("text", NO_TRACES)
@pytest.mark.parametrize("call", ["trace show {}", "trace convert {} x.csv", "scenario check net.toml"])
def test_an_error_does_not_repeat_a_password(cli: Cli, tmp_path: Path, text: str, call: str) -> None:
    (tmp_path / "file").write_text(text, "utf-8")
    scenario = PLAIN.replace('capacity = "2Mbps"', 'capacity = { trace = "file" }')
    assert "trace" in scenario
    (tmp_path / "net.toml").write_text(scenario, "utf-8")
    got = cli(*call.replace("{}", "file").split())
    assert got.code == 2
    assert "file" in got.err
    assert not any(part in got.out + got.err for part in ("hunter2", "admin", "BEGIN"))


def over(folder: Path, capacity: dict[str, Any], **more: Any) -> Scenario:
    """Packets over a recorded link, which come one every 20 ms."""
    link = {"name": "radio", "capacity": capacity, "delay": "10ms", **more.pop("link", {})}
    flow = {"name": "flow", "udp": {"rate": "400kbps", "packet_size": "1000B"}}
    data = {"name": "x", "duration": f"{DURATION}s", "sending_jitter": "off", "links": [link], "flows": [flow]}
    return Scenario.from_dict({**data, **more}, folder)


def played(run: tidegate.Run) -> list[dict[str, Any]]:
    """What it says of recordings."""
    return list(run.summary["recordings"])


def test_a_seed_chooses_a_stretch(hour: Path) -> None:
    """It is there in the recording, whole, the same as by its offset, and another one for each seed."""
    random = over(hour.parent, {"trace": hour.name, "offset": "random"})
    places = []
    for seed in range(1, 61):
        run = tidegate.run(random, seed)
        there, back = played(run)
        assert there == {"link": "radio", "trace": "hour.csv", "from_s": there["from_s"], "used_s": 10, "length_s": 100}
        assert back == {**there, "link": "radio.back"}, "both were recorded at the same time"
        begin = there["from_s"]
        if seed <= 5:
            said = over(hour.parent, {"trace": hour.name, "offset": f"{round(begin * 1000)}ms"})
            assert tidegate.run(said, seed).digest == run.digest
            truth = run.table("truth")
            rates = truth.to_numpy("capacity_bps")[truth.to_numpy("link") == "radio"]
            middle = begin + 0.1 + 0.2 * np.arange(len(rates))
            assert np.abs(rates - (1000 + np.floor(middle)) * 1000).max() <= 1000
        places.append(begin)
    assert len(set(places)) == 60
    assert all(
        0 <= place <= LENGTH - DURATION and round(place * 1000) == pytest.approx(place * 1000) for place in places
    )
    # uniform from 0 to 90 s: mean 45 s with deviation 90 / sqrt(12) / sqrt(60) = 3.4 s; four of them
    assert abs(np.mean(places) - 45) < 13.4
    assert min(places) < 10
    assert max(places) > 80


def test_who_chooses_is_the_cable(hour: Path) -> None:
    """Another cable begins elsewhere, one with a seed of its own stays, and the shorter way must have the place."""
    short = hour.with_name("short.csv")
    short.write_text("# duration_s=12\ntime_s,rate_kbps\n0,1000\n6,2000\n", "utf-8")
    way = {"trace": hour.name, "offset": "random"}

    def begins(seed: int, **more: Any) -> list[float]:
        return [one["from_s"] for one in played(tidegate.run(over(hour.parent, way, **more), seed))]

    assert len({begins(1)[0], begins(2)[0], begins(1, link={"name": "other"})[0]}) == 3
    assert begins(2, seeds={"radio": 1}) == begins(1)
    both = [begins(seed, link={"back": {"capacity": {**way, "trace": "short.csv"}}}) for seed in range(1, 9)]
    assert all(there == back <= 2 for there, back in both)
    assert len({there for there, _ in both}) == 8


@pytest.mark.parametrize("duration", ["100s", "250s"])
def test_a_recording_no_longer_than_the_run_is_played_from_its_beginning(hour: Path, duration: str) -> None:
    """Nothing of it is left to vary, and seeds that vary nothing are named."""
    random = over(hour.parent, {"trace": hour.name, "offset": "random"}, duration=duration)
    begun = over(hour.parent, {"trace": hour.name}, duration=duration)
    for seed in (1, 2, 3):
        run = tidegate.run(random, seed, "summary")
        assert [(entry["from_s"], entry["used_s"]) for entry in played(run)] == [(0, 100)] * 2
        assert run.digest == tidegate.run(begun, seed, "summary").digest
    media = random.to_dict()
    media["flows"][0] = {"name": "call", "media": {"controller": "fixed:400kbps"}}
    done = tidegate.compare(["fixed:300kbps", "fixed:400kbps"], Scenario.from_dict(media, hour.parent), seeds=2)
    assert [text for text in done.warnings if text.startswith("seed: the network is the same for all seeds")]


def test_how_much_is_played_is_said(hour: Path, cli: Cli) -> None:
    """In the terminal, in tables and in reports; a fixed stretch says that seeds do not vary it."""
    file = hour.with_name("x.toml")
    file.write_text(over(hour.parent, {"trace": hour.name, "offset": "30s"}, link={"back": False}).to_toml(), "utf-8")
    assert cli("run", str(file)).out.rstrip().endswith("radio plays hour.csv: 10 s of 100 s, from 30 s on.")
    media = over(hour.parent, {"trace": hour.name, "offset": "30s"}).to_dict()
    media["flows"][0] = {"name": "call", "media": {"controller": "fixed:400kbps"}}
    fixed = tidegate.compare(["fixed:300kbps", "gcc"], Scenario.from_dict(media, hour.parent), seeds=2)
    assert "radio plays hour.csv: 10 s of 100 s, from 30 s on, the same for all seeds." in fixed.table.to_markdown()
    out = cli("compare", "gcc", "--link", str(hour), "--duration", "10s", "--seeds", "3", "--out", "out").out
    (line,) = [line for line in out.splitlines() if " plays " in line]
    assert line.startswith("bottleneck plays hour.csv: 10 s of 100 s in each run, from 3 start times; ")
    share = float(line.partition("; ")[2].partition(" ")[0])
    loaded = tidegate.Comparison.load(hour.parent / "out")
    begins = sorted(played(run)[0]["from_s"] for run in loaded.runs["gcc"])
    covered = 10 + sum(min(10, after - before) for before, after in itertools.pairwise(begins))
    assert share == round(covered)
    assert line in report.html(loaded)
    swept = cli("sweep", str(file), "--set", "links.radio.delay=1ms,2ms", "--seeds", "2", "--out", "swept").out
    assert "\nradio plays hour.csv: 10 s of 100 s, from 30 s on, the same for all seeds.\n" in swept


def test_delays_and_losses_are_replayed(tmp_path: Path) -> None:
    """Each at its time, on top of the link's delay; `capacity_only` leaves them out."""
    (tmp_path / "path.csv").write_text(
        "# duration_s=10\ntime_s,rate_mbps,delay_ms,loss\n0,8,30,0\n4,8,70,1\n6,8,50,0\n", "utf-8"
    )
    run = tidegate.run(over(tmp_path, {"trace": "path.csv"}), record="packets")
    packets = run.table("packets")
    assert {"sent_s", "arrived_s"} <= set(packets.columns), packets.columns
    sent, arrived = packets.to_numpy("sent_s"), packets.to_numpy("arrived_s")
    delay = (arrived - sent) * 1000
    # 1 ms of service and 10 ms of the link
    for begin, end, expected in ((0.0, 3.9, 41.0), (6.1, 9.8, 61.0)):
        some = delay[(sent >= begin) & (sent < end)]
        assert len(some) > 180
        assert np.allclose(some, expected, atol=1e-6)
    assert np.isnan(delay[(sent >= 4) & (sent < 5.99)]).all()
    plain = tidegate.run(over(tmp_path, {"trace": "path.csv", "capacity_only": True}))
    flow = plain.metrics()
    assert (flow["packets_received"], flow["loss_fraction"]) == (500, 0), "the last one is sent as the run ends"
    assert flow["one_way_delay_ms_max"] == pytest.approx(11, abs=1e-6)


def test_pings_of_raca_are_replayed(tmp_path: Path) -> None:
    """Half of the least round trip, held until the next one; before the first one, the first."""
    rows = [
        f"2020.02.27_17.30.{second:02},8000,100,{ping}"
        for second, ping in enumerate(["-", "-", "62", *["-"] * 3, "80", "-"])
    ]
    (tmp_path / "drive.csv").write_text("\n".join(["Timestamp,DL_bitrate,UL_bitrate,PINGMIN", *rows, ""]), "utf-8")
    run = tidegate.run(over(tmp_path, {"trace": "drive.csv"}, duration="7900ms"), record="packets")
    packets = run.table("packets")
    sent = packets.to_numpy("sent_s")
    delay = (packets.to_numpy("arrived_s") - sent) * 1000
    assert np.allclose(delay[sent < 5.9], 11 + 31, atol=1e-6)
    assert np.allclose(delay[(sent > 6) & (sent < 7.8)], 11 + 40, atol=1e-6)
    (tmp_path / "drive.csv").write_text("Timestamp,DL_bitrate,PINGMIN\n2020.02.27_17.30.01,8000,fast\n", "utf-8")
    with pytest.raises(
        tidegate.TraceError, match=r"line 2: found 4 characters that are not a number; expected milliseconds, or -"
    ):
        tidegate.trace.load(tmp_path / "drive.csv")


def test_an_offset_is_a_time_or_chance(hour: Path) -> None:
    """Other words are refused with what would be right."""
    with pytest.raises(tidegate.ScenarioError, match=r'offset: found "sometimes"; expected .*"random"'):
        over(hour.parent, {"trace": hour.name, "offset": "sometimes"})
