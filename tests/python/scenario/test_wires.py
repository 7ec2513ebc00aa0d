"""Largest packets, legs over TCP, and clocks: their form in files, their checks, and their effects."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import tidegate
from support import Cli
from tidegate import Scenario, _core
from tidegate.errors import InputError, ScenarioError
from tidegate.scenario.lower import lower

CALL = """duration = "20s"

[[links]]
name = "leg"
capacity = "4Mbps"
delay = "30ms"

[[flows]]
name = "call"
media = { repair = { nack = true, pli = true } }
"""


def changed(**changes: Any) -> Scenario:
    return Scenario.parse(CALL, changes={key.replace("__", "."): value for key, value in changes.items()})


def test_a_tunnel_that_drops_large_packets_lets_no_picture_through_and_smaller_payloads_do() -> None:
    tunnel = {"links__leg__mtu": {"bytes": "1280B", "too_big": "drop"}, "flows__call__media__controller": "fixed:2Mbps"}
    dark = tidegate.run(changed(**tunnel, flows__call__media__payload="1300B"))
    assert dark.metrics("call")["without_picture_s"] > 19
    assert any("above its MTU of 1280, were dropped" in warning for warning in dark.warnings), dark.warnings
    fits = tidegate.run(changed(**tunnel, flows__call__media__payload="1200B"))
    assert fits.metrics("call")["without_picture_s"] < 0.5
    assert fits.metrics("call")["loss_fraction"] == 0
    assert not fits.warnings


def test_fragments_double_the_loss_of_what_is_split() -> None:
    lossy = {"links__leg__loss": "2%", "flows__call__media__payload": "1400B"}
    lossy |= {"flows__call__media__controller": "fixed:3Mbps", "flows__call__media__repair": "none"}
    whole = tidegate.run(changed(**lossy)).metrics("call")["loss_fraction"]
    split = tidegate.run(changed(**lossy, links__leg__mtu="1400B")).metrics("call")["loss_fraction"]
    assert 0.012 < whole < 0.028
    assert 1.4 < split / whole < 2.4


def test_over_tcp_nothing_is_lost_and_losses_are_delays() -> None:
    lossy = {"links__leg__loss": "1%", "flows__call__media__controller": "fixed:1Mbps"}
    udp, tcp = tidegate.run(changed(**lossy)), tidegate.run(changed(**lossy, links__leg__via="tcp"))
    assert udp.metrics("call")["loss_fraction"] > 0.004
    assert tcp.metrics("call")["loss_fraction"] == 0
    assert tcp.metrics("call")["one_way_delay_ms_p95"] > udp.metrics("call")["one_way_delay_ms_p95"] + 30
    # what the link lost was the connection's, which is a flow beside the call
    assert tcp.flows == ["call", "call.leg", "call.leg.back"]
    assert tcp.metrics("call.leg")["loss_fraction"] > 0.004
    assert [flow["kind"] for flow in tcp.summary["flows"]] == ["media", "leg", "leg"]


def test_results_of_a_leg_are_shown_compared_and_kept(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "leg.toml").write_text(CALL + '\n[clocks.right]\nppm = 100\nsteps = [{ time = "5s", behind = "1s" }]\n')
    out = tmp_path / "out"
    args = ["--set", 'links.leg.via={writer="relay", buffer="32kB"}', "--set", "links.leg.mtu=1280B"]
    shown = cli("run", str(tmp_path / "leg.toml"), *args, "--out", str(out))
    assert shown.code == 0, shown.err
    assert cli("report", str(out)).code == 0
    again = tidegate.Run.load(out)
    assert again.scenario.links[0].mtu == 1280
    assert tidegate.run(again.scenario).digest == again.digest
    compared = cli("compare", "gcc", "scream", "--scenario", str(tmp_path / "leg.toml"), *args)
    assert compared.code == 0, compared.err


@pytest.mark.parametrize("controller", ["gcc", "nada", "scream", "tfrc", "sprout", "gcc-remb", "fixed"])
def test_clocks_that_run_true_or_alike_change_little_and_a_date_is_no_delay_of_the_sender(controller: str) -> None:
    def rate(**changes: Any) -> float:
        done = tidegate.run(changed(flows__call__media__controller=controller, **changes), record="summary")
        return float(done.metrics("call")["receive_rate_bps"])

    true = rate()
    alike = rate(clocks__left__ppm=200, clocks__right__ppm=200)
    assert 0.93 < alike / true < 1.07, controller
    # the sender's own date is in no time that its controller compares; gcc-remb's receiver has it from abs-send-time
    step = rate(clocks__left__steps=[{"time": "10s", "ahead": "250ms"}])
    assert controller == "gcc-remb" or 0.93 < step / true < 1.07, controller


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"links.leg.mtu": "500B"}, 'links.leg.mtu: found "500B"; expected from 576B'),
        (
            {"links.leg.mtu": {"bytes": "1280B", "too_big": "split"}},
            'links.leg.mtu.too_big: found "split"; expected "fragment"',
        ),
        ({"links.leg.via": "quic"}, 'links.leg.via: found "quic"; expected "udp", "tcp"'),
        ({"links.leg.via": {"buffer": "1kB"}}, "links.leg.via.buffer"),
        ({"links.leg.via": "tcp", "links.leg.back": False}, "links.leg.via: found a connection without a way back"),
        ({"clocks.rigth.ppm": 5}, 'clocks.rigth: no call begins or ends at "rigth"; did you mean right?'),
        ({"clocks.right.ppm": 1e6}, "clocks.right.ppm"),
        ({"clocks.right.steps": [{"time": "5s"}]}, "clocks.right.steps[1]: found neither of `ahead` and `behind`"),
        (
            {"clocks.right.steps": [{"time": "5s", "ahead": "1s", "behind": "1s"}]},
            "clocks.right.steps[1]: found both of `ahead` and `behind`",
        ),
        (
            {"clocks.right.steps": [{"time": "5s", "ahead": "1s"}, {"time": "5s", "behind": "1s"}]},
            'clocks.right.steps[2]: the step at "5s" follows "5s"',
        ),
        ({"clocks.right.steps": [{"time": "50s", "ahead": "1s"}]}, "clocks.right.steps[1].time"),
    ],
)
def test_what_is_wrong_is_told(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        Scenario.parse(CALL, changes=changes)
    assert said in str(caught.value)


def test_none_of_them_is_in_the_engines_input_where_it_is_not_stated() -> None:
    plain, stated = lower(Scenario.parse(CALL)).ir, lower(changed(links__leg__mtu="1500B", links__leg__via="tcp")).ir
    assert "clocks" not in plain
    assert all("via" not in link and "mtu" not in link["settings"] for link in plain["links"])
    assert [link["settings"]["mtu"] for link in stated["links"]] == [{"bytes": 1500, "too_big": "fragment"}] * 2


WIFI_AND_LTE = Scenario.load("wifi-to-lte")


def test_by_hand_a_call_is_moved_as_by_the_scenario() -> None:
    world = tidegate.live_world(WIFI_AND_LTE.with_changes({"moves": []}))
    world.step(until="15s")
    world.change_call("call", at="20s", path=["lte"])
    world.change_call("call", at="30s", max_rate="400kbps", min_rate="100kbps")
    world.step(until="40s")
    world.change_call("call", path=["wifi"], signalled=False)
    world.change_call("call", video_max="900kbps", repair=False)
    run = world.finish()
    world.scenario.check()
    assert tidegate.run(world.scenario).digest == run.digest
    assert [move.key for move in world.scenario.moves] == [
        "path",
        "max_rate",
        "min_rate",
        "path",
        "video.max",
        "repair",
    ]
    times, targets = (run.table("decisions").to_numpy(name) for name in ("t_s", "target_bps"))
    assert targets[(times >= 30) & (times < 40)].max() == 400_000


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({}, "call: found no change; expected path, max_rate, min_rate, video_max or repair"),
        ({"path": ["lte", "wifi"]}, "path"),
        ({"path": ["5g"]}, 'path: found "5g"; expected the name of a link'),
        ({"max_rate": "1kbps"}, "call:"),
        ({"max_rate": "fast"}, 'call: max_rate: found "fast"'),
        ({"video_max": "9Gbps"}, "call: video_max: found"),
        ({"path": ["lte"], "at": "99s"}, "call: at: found 99 s"),
    ],
)
def test_what_cannot_be_done_to_a_call_is_told_and_changes_nothing(change: dict[str, Any], said: str) -> None:
    world = tidegate.live_world(WIFI_AND_LTE)
    with pytest.raises(InputError) as caught:
        world.change_call("call", **change)
    assert said in str(caught.value)
    with pytest.raises(InputError, match="calls"):
        world.change_call("calls", path=["lte"])
    assert world.finish().digest == tidegate.run(WIFI_AND_LTE).digest


@pytest.mark.parametrize("repair", [{"nack": True, "pli": True}, {"fec": {"packets": 4}}])
def test_repair_ends_and_begins_by_a_move_at_both_ends(repair: dict[str, Any]) -> None:
    moves = [{"time": f"{at}s", "flow": "call", "key": "repair", "value": on} for at, on in ((6, False), (12, True))]
    lossy = {"links.leg.loss": "3%", "flows.call.media.repair": repair, "flows.call.media.controller": "fixed:1Mbps"}
    run = tidegate.run(Scenario.parse(CALL, changes={**lossy, "moves": moves, "record": "packets"}))
    table = run.table("packets")
    sent, kinds = table.to_numpy("sent_s"), table.to_numpy("kind")
    of_repair = sent[(kinds == "retransmission") | (kinds == "repair")]
    # what had been asked for or was queued before may still leave
    assert not ((of_repair > 6.3) & (of_repair < 12)).any()
    assert ((of_repair < 6) & (of_repair > 1)).sum() > 10
    assert (of_repair > 12.2).sum() > 10
    repaired = run.table("repaired").to_numpy("t_s") if "repaired" in run.tables else sent[:0]
    assert not ((repaired > 6.5) & (repaired < 12)).any()


def test_a_call_that_repairs_nothing_has_no_repair_to_end() -> None:
    move = {"time": "5s", "flow": "call", "key": "repair", "value": False}
    with pytest.raises(ScenarioError, match="the flow repairs nothing"):
        Scenario.parse(CALL, changes={"flows.call.media.repair": "none", "moves": [move]})


@pytest.mark.parametrize("repair", [{"nack": True, "pli": True}, {"fec": {"packets": 1, "by_frame": True}}])
def test_what_is_on_goes_on_and_a_switch_in_the_middle_of_a_group_changes_no_bytes(repair: dict[str, Any]) -> None:
    def digest(*switches: tuple[int, bool], in_bytes: bool = False) -> str:
        moves = [{"time": f"{at}ms", "flow": "call", "key": "repair", "value": on} for at, on in switches]
        lossy = {"links.leg.loss": "10%", "links.leg.capacity": "500kbps", "flows.call.media.repair": repair}
        made = lower(Scenario.parse(CALL, changes={**lossy, "moves": moves}))
        return _core.run(
            json.dumps({**made.ir, "bytes": in_bytes}), made.inputs.traces, made.inputs.python, None
        ).digest

    assert digest((4321, True), (5000, True)) == digest()
    switches = [(at, index % 2 == 1) for index, at in enumerate(range(2003, 12_000, 611))]
    assert digest(*switches) == digest(*switches, in_bytes=True) != digest()
