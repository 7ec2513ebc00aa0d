"""The network emulator in tc's words."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tidegate
from support import ROOT, Cli
from tidegate import Scenario
from tidegate.errors import InputError, ScenarioError
from tidegate.scenario.netem import parse

ALL = 2**32 - 1


def part(share: float) -> int:
    return round(share * ALL)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("delay 100ms", {"delay": 100_000_000}),
        ("delay 100", {"delay": 100_000}),
        ("latency 1.5s", {"delay": 1_500_000_000}),
        ("delay 100ms 20ms 25%", {"delay": 10**8, "jitter": 2 * 10**7, "delay_correlation": part(0.25)}),
        ("delay 100ms 20ms distribution normal", {"delay": 10**8, "jitter": 2 * 10**7, "distribution": "normal"}),
        ("loss 0.3%", {"loss": {"random": {"probability": part(0.003)}}}),
        ("loss random 0.3 25", {"loss": {"random": {"probability": part(0.003), "correlation": part(0.25)}}}),
        ("drop 5%", {"loss": {"random": {"probability": part(0.05)}}}),
        ("loss gemodel 1%", {"loss": {"gemodel": {"p": part(0.01), "r": ALL - part(0.01), "h": 0, "k1": 0}}}),
        ("loss gemodel 1% 10% 70% 0.1%", {"loss": {"gemodel": {"p": part(0.01), "r": part(0.1), "h": ALL - part(0.7), "k1": part(0.001)}}}),
        ("loss state 1% 10% 2% 30% 4%", {"loss": {"state": {"p13": part(0.01), "p31": part(0.1), "p32": part(0.02), "p23": part(0.3), "p14": part(0.04)}}}),
        ("loss 1% ecn", {"loss": {"random": {"probability": part(0.01)}}, "ecn": True}),
        ("duplicate 1%", {"duplicate": {"probability": part(0.01)}}),
        # iproute2 hands it over only beside another correlation
        ("duplicate 1% 50%", {"duplicate": {"probability": part(0.01)}}),
        ("loss 1% 10% dup 1% 50%", {"loss": {"random": {"probability": part(0.01), "correlation": part(0.1)}}, "duplicate": {"probability": part(0.01), "correlation": part(0.5)}}),
        ("corrupt 0.1%", {"corrupt": {"probability": part(0.001)}}),
        ("delay 10ms reorder 25% 50%", {"delay": 10**7, "reorder": {"probability": part(0.25), "correlation": part(0.5)}, "gap": 1}),
        ("delay 10ms reorder 100% gap 5", {"delay": 10**7, "reorder": {"probability": ALL}, "gap": 5}),
        ("rate 1mbit", {"rate": {"bytes_per_s": 125_000}}),
        ("rate 100kbps 14 48 5", {"rate": {"bytes_per_s": 100_000, "overhead": 14, "cell": 48, "cell_overhead": 5}}),
        ("rate 1Mibit -4", {"rate": {"bytes_per_s": 131_072, "overhead": -4}}),
        ("limit 10k", {"limit": 10_240}),
        ("seed 42", {}),
        ("tc qdisc add dev eth0 root netem delay 1ms", {"delay": 10**6}),
    ],
)  # fmt: skip
def test_words_mean_what_they_mean_to_tc(text: str, expected: dict[str, object]) -> None:
    assert parse(text) == expected


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("delay", 'found nothing after "delay"; expected a value'),
        ("delay fast", 'delay: found "fast"; expected a time, such as 100ms'),
        ("delay 5x", 'delay: found "5x"; expected a time'),
        ("los 1% loss 2%", "found a second loss; expected one"),
        ("loss 101%", 'loss: found "101%"; expected at most 100%'),
        ("loss gilbert 1%", 'loss: found "gilbert"; expected per cent, random, state or gemodel'),
        ("reorder 25%", "reorder: found no delay"),
        ("delay 1ms gap 5", "gap: found no reorder"),
        ("ecn", "ecn: found no loss"),
        ("delay 10ms distribution normal", "distribution: found no delay with jitter"),
        ("delay 1ms 1ms distribution paretto", 'distribution: found "paretto"; did you mean pareto?'),
        ("slot 20ms", "slot is not modelled"),
        ("dely 1ms", 'found "dely"; did you mean delay?'),
        ("rate 7bit", 'rate: found "7bit"; expected at least 8bit'),
        ("limit 0", 'limit: found "0"; expected from 1'),
        ("rate 1mbit 14 x", 'found "x"; expected one of limit'),
    ],
)
def test_what_tc_refuses_is_refused(text: str, said: str) -> None:
    with pytest.raises(InputError) as caught:
        parse(text)
    assert said in str(caught.value)


def test_the_page_has_commands_that_people_type() -> None:
    rows = re.findall(r"^\| `(tc [^`]*)`[^|]*\| (.*) \|$", (ROOT / "docs" / "tc.md").read_text(), re.MULTILINE)
    assert len(rows) >= 20
    for command, here in rows:
        keys = re.findall(r"`([a-z]+ = [^`]*)`", here)
        if "move" in here:
            value = next(key for key in keys if key.startswith("value"))
            assert "netem" not in command or value == f'value = "{command.split(" netem ")[1]}"'
            continue
        link = Scenario.parse(HOME % "\n".join(keys)).links[0]
        if " netem " in command:
            assert parse(link.netem) == parse(command)


HOME = """duration = "20s"
sending_jitter = "off"

[[links]]
name = "uplink"
%s

[[flows]]
name = "steady"
udp = { rate = "2Mbps" }
"""


def test_a_scenario_names_place_and_key() -> None:
    with pytest.raises(ScenarioError) as caught:
        Scenario.parse(HOME % 'netem = "dely 1ms"')
    assert str(caught.value) == 'scenario.toml:6: links.uplink.netem: found "dely"; did you mean delay?'


def run(netem: str, more: str = "") -> tidegate.Run:
    return tidegate.run(Scenario.parse(HOME % f'netem = "{netem}"' + more), record="packets")


def test_losses_copies_and_reordering_have_their_shares() -> None:
    lost = run("loss 5%").metrics("steady")
    assert lost["loss_fraction"] == pytest.approx(0.05, abs=0.012)
    twice = run("duplicate 10%")
    assert twice.metrics("steady")["loss_fraction"] == 0
    assert twice.metrics("steady")["packets_received"] == twice.metrics("steady")["packets_sent"], "copies are none"
    packets = run("delay 30ms reorder 20%").table("packets")
    sent, arrived = packets.to_numpy("sent_s"), packets.to_numpy("arrived_s")
    ahead = (arrived - sent) < 0.001
    assert ahead[np.isfinite(arrived)].mean() == pytest.approx(0.2, abs=0.03)


def test_what_correlation_does_is_said(cli: Cli, tmp_path: object) -> None:
    correlated = run("loss 5% 25%")
    warnings = [warning["says"] for warning in correlated.summary["warnings"]]
    assert any("loss 5% 25% is 0.198 % in truth" in text for text in warnings), warnings
    assert not run("loss 5%").summary.get("warnings")


def test_calls_live_with_copies_and_a_move_takes_the_emulator_away() -> None:
    text = HOME.replace('udp = { rate = "2Mbps" }', "media = {}") % 'capacity = "8Mbps"\ndelay = "20ms"'
    text += '[[moves]]\ntime = "5s"\nlink = "uplink"\nkey = "netem"\nvalue = "%s"\n'
    text += '[[moves]]\ntime = "12s"\nlink = "uplink"\nkey = "netem"\nvalue = ""\n'
    doubled = tidegate.run(Scenario.parse(text % "duplicate 30%"))
    still = tidegate.run(Scenario.parse(text % ""))
    assert doubled.digest != still.digest
    assert doubled.metrics("steady")["goodput_bps"] == pytest.approx(still.metrics("steady")["goodput_bps"], rel=0.05)
    delayed = tidegate.run(Scenario.parse(text % "delay 80ms"), record="packets").table("packets")
    sent, delay = delayed.to_numpy("sent_s"), delayed.to_numpy("arrived_s") - delayed.to_numpy("sent_s")
    there = delayed.to_numpy("kind") != "rtcp"
    assert np.nanmin(delay[there & (sent > 5) & (sent < 12)]) > 0.1
    assert np.nanmin(delay[there & (sent > 12.2)]) < 0.03
