"""gcc-remb: the receiving half against aiortc's traces, the Kalman filter against pykalman, and whole calls."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pykalman import KalmanFilter

import tidegate
from support import ROOT, Cli, example, shared
from tidegate import Arrived, InputError, PacketResult, Report, Scenario, _core, run
from tidegate.control import ReceiverHost
from tidegate.control import registry as controllers
from tidegate.net.wire import Remb
from tidegate.scenario.lower import lower

MS = 1_000_000


def check_replay(path: Path, least: int) -> None:
    result = example("replay_rbe").replay(path)
    assert result["deviation"] <= 1e-9, result
    assert (result["states"], result["rembs"]) == (0, 0), result
    assert result["said"] >= least, result


def test_the_receiving_half_says_what_aiortc_says_and_when() -> None:
    check_replay(ROOT / "tests" / "data" / "gcc" / "aiortc_rbe_overload.csv", 2)


@pytest.mark.parametrize("name", ["ramp", "overload"])
def test_whole_traces_of_aiortc(name: str) -> None:
    check_replay(shared() / "vectors" / f"aiortc_rbe_{name}.csv", 100)


def test_a_wrong_row_is_seen(tmp_path: Path) -> None:
    lines = (ROOT / "tests" / "data" / "gcc" / "aiortc_rbe_overload.csv").read_text().splitlines()
    cells = lines[-1].split(",")
    cells[3] = str(float(cells[3]) + 1e-6)
    cells[7] = "DECREASE"
    cells[9] = "" if cells[9] else "1"
    file = tmp_path / "wrong.csv"
    file.write_text("\n".join([*lines[:-1], ",".join(cells)]) + "\n")
    result = example("replay_rbe").replay(file)
    assert result["deviation"] == pytest.approx(1e-6, abs=1e-9)
    assert (result["states"], result["rembs"]) == (1, 1)


@pytest.mark.parametrize("preset", ["draft-02", "hoang2017"])
def test_the_kalman_filter_is_pykalmans(preset: str) -> None:
    """One state, transition 1, transition variance q, and the measurement variance that ours has at each step."""
    # the thesis has the draft's filter
    defaults = json.loads(_core.controller_defaults("gcc", "draft-02"))
    theirs = KalmanFilter(
        transition_matrices=[[1.0]],
        observation_matrices=[[1.0]],
        transition_covariance=[[defaults["process_noise"]]],
        initial_state_mean=[0.0],
        initial_state_covariance=[[defaults["initial_error"]]],
    )
    host = tidegate.controller("gcc", preset=preset)
    luck = random.Random(1)
    mean, covariance = np.zeros(1), np.array([[defaults["initial_error"]]])
    sent = arrival = steps = 0
    largest = 0.0
    for sequence in range(1500):
        # each packet is a group by itself; a queue grows from the 500th to the 700th
        sent += luck.randrange(8, 40) * MS
        growth = 2.0 if 500 <= sequence < 700 else 0.0
        arrival = max(arrival + 6 * MS, sent + 50 * MS + int((luck.gauss(0, 3) + growth * (sequence - 500)) * MS))
        host.on_report(arrival + 50 * MS, Report([PacketResult(sequence, 1200, sent, arrival)]))
        noted = host.internals
        if "offset" not in noted:
            continue
        steps += 1
        mean, covariance = theirs.filter_update(
            mean,
            covariance,
            observation=[noted["group_delta_ms"]],
            observation_covariance=np.array([[noted["var_noise"]]]),
        )
        assert noted["offset"] == pytest.approx(mean[0], abs=1e-9), f"step {steps}"
        largest = max(largest, abs(noted["offset"]))
    assert steps >= 1400
    assert largest > 0.5, "the queue shows"


def media(**keys: Any) -> Scenario:
    return Scenario.from_dict(
        {
            "duration": "20s",
            "links": [{"name": "cable", "capacity": "1Mbps", "delay": "30ms", "queue": {"time": "300ms"}}],
            "flows": [{"name": "call", "media": {"controller": "gcc-remb", **keys}}],
        }
    )


@pytest.mark.parametrize(
    ("controller", "written", "expected"),
    [
        ("gcc", "auto", "twcc"),
        ("gcc-remb", "auto", "none"),
        ("gcc-remb:aiortc", "auto", "none"),
        ("fixed:1Mbps", "auto", "twcc"),
        ("gcc-remb", "twcc", "twcc"),
        ("gcc", "ccfb", "ccfb"),
        ("gcc", "none", "none"),
    ],
)
def test_per_packet_feedback_follows_the_controller(controller: str, written: str, expected: str) -> None:
    scenario = media(controller=controller, feedback={"format": written})
    assert lower(scenario).ir["flows"][0]["kind"]["media"]["feedback"]["format"] == expected
    if written == "auto":
        default = lower(media(controller=controller))
        assert default.ir["flows"][0]["kind"]["media"]["feedback"]["format"] == expected


def test_a_controller_in_python_gets_twcc() -> None:
    scenario = media(controller=f"python:{ROOT / 'docs' / 'examples' / 'aimd.py'}:Aimd")
    assert lower(scenario).ir["flows"][0]["kind"]["media"]["feedback"]["format"] == "twcc"


@pytest.mark.parametrize("preset", controllers.registry()["gcc-remb"]["presets"])
@pytest.mark.parametrize("both_ways", [False, True])
def test_a_call_lives_on_remb_and_receiver_reports(preset: str, both_ways: bool) -> None:
    done = run(
        media(controller=f"gcc-remb:{preset}", both_ways=both_ways, video={"source": "greedy"}), record="packets"
    )
    kinds = set("+".join(done.table("rtcp").to_numpy("contents").tolist()).split("+"))
    # both ends send before the first report is due, so that their reports are sender reports
    assert kinds - {"RR"} == {"SR", "SDES", "REMB"}
    assert both_ways or "RR" in kinds
    rows = done.table("internals")
    names = rows.to_numpy("name").astype(str)
    flow, times, values = rows.to_numpy("flow").astype(str), rows.to_numpy("t_s"), rows.to_numpy("value")
    remb_rows = (names == "remb_sent") & (flow == "call")
    heard = (names == "remb") & (flow == "call")
    assert set(values[heard]) <= set(values[remb_rows]), "the sender hears what the receiver says"
    # at least once a second from the first one on (draft section 3 (b))
    assert np.diff(times[remb_rows]).max() <= 1.0 + 1e-9
    # and the target never exceeds it
    metrics = done.metrics("call")
    assert 0.25e6 < metrics["receive_rate_bps"] <= 1.0e6
    decisions = done.table("decisions")
    chosen = decisions.to_numpy("flow").astype(str) == "call"
    t, target = decisions.to_numpy("t_s")[chosen], decisions.to_numpy("target_bps")[chosen]
    last = times[heard].searchsorted(t, side="right") - 1
    has_estimate = last >= 0
    assert has_estimate.sum() > 3
    assert (target[has_estimate] <= np.maximum(values[heard][last[has_estimate]], 30_000)).all()


def test_urgent_rembs_go_out_at_once() -> None:
    """A capacity that halves: the REMB that says so leaves with the packet that shows it, between two reports."""
    scenario = media(video={"source": "greedy"}).with_changes(
        {"links.cable.capacity": {"schedule": [["0s", "1Mbps"], ["15s", "400kbps"]]}}
    )
    done = run(scenario, record="packets")
    table = done.table("rtcp")
    contents, times = table.to_numpy("contents").astype(str), table.to_numpy("t_s")
    alone = [float(when) for content, when in zip(contents, times, strict=True) if content == "REMB"]
    assert any(15.0 < when < 16.5 for when in alone), alone


def test_the_first_placement_is_as_it_was(cli: Cli) -> None:
    result = cli("controllers", "gcc-remb")
    assert result.code == 0
    assert "needs feedback: own; receiving half: yes" in " ".join(result.out.split())


def test_what_cannot_be_known_is_refused() -> None:
    with pytest.raises(InputError, match="loss_over: there is no such setting"):
        run(media(controller="gcc-remb:hoang2017,loss_over=packets"))
    with pytest.raises(ValueError, match="gcc has no receiver half; controllers with a receiver half: gcc-remb"):
        tidegate.receiver("gcc")


def remb_of(host: ReceiverHost, now_ns: int) -> list[tuple[int, int]]:
    return [(now_ns, packet.bitrate_bps) for packet in host.message(now_ns) if isinstance(packet, Remb)]


def test_a_half_by_hand_speaks_within_a_second_and_at_once_when_the_rate_falls() -> None:
    host = tidegate.receiver("gcc-remb")
    now = sent = 0
    rembs: list[tuple[int, int]] = []
    for number in range(1200):
        # 100 packets a second; from the sixth second on each takes 3 ms more than it was spaced
        sent += 10 * MS
        now = sent + 40 * MS + max(0, number - 600) * 3 * MS
        while host.alarm_ns is not None and host.alarm_ns <= now:
            time = host.alarm_ns
            if host.on_alarm(time)[0] == "now":
                rembs += remb_of(host, time)
        ticks = (sent * 262_144 // 1_000_000_000) % (1 << 24)
        if host.on_packet(now, Arrived(number, 1250, ticks))[0] == "now":
            rembs += remb_of(host, now)
    times = np.array([time for time, _ in rembs])
    assert np.diff(times).max() <= 1_000_000_000
    times = times / 1e9
    rates = [rate for _, rate in rembs]
    assert 0.5 < times[0] < 0.6, "after one window"
    # 1 Mbit/s arrive: the first step counts as a second, then it grows by 8 % a second, to 1.5 times what arrives
    before = [rate for time, rate in zip(times, rates, strict=True) if time < 6]
    assert len(before) == 6
    grown = [min(1.5e6, 1.08e6 * math.pow(1.08, time - times[0])) for time in times[:6]]
    assert before == pytest.approx(grown, rel=0.005), "a step of 60 ms is 0.5 %"
    fallen = next(index for index, rate in enumerate(rates) if index > 5 and rate < before[-1])
    # beta times what arrived in the last half second: between 1250 B in 13 ms and in 10 ms
    assert 0.85 * 10_000 / 0.013 * 0.98 <= rates[fallen] <= 0.85e6
    assert times[fallen] < 6.4
    assert times[fallen] - times[fallen - 1] < 1.0
