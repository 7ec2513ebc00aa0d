"""Radio networks: what scenarios say of them, who comes, what the tables hold, and what calibrations come to."""

from __future__ import annotations

import numpy as np
import pytest

import tidegate
from support import Cli
from tidegate import Lte, Scenario, Users, lte
from tidegate.errors import InputError, ScenarioError
from tidegate.scenario.lower import lower

CELL = """
duration = "20s"
[lte]
bandwidth = "5MHz"
[[lte.users]]
name = "phone"
count = 3
start = "1s"
[[lte.users]]
name = "caller"
arrival = { rate = "30/min", stay = "5s" }
[[links]]
name = "net"
from = "server"
to = "core"
delay = "5ms"
[[flows]]
name = "call"
from = "server"
to = "caller"
media = { both_ways = true }
[[flows]]
name = "feed"
from = "server"
to = "phone"
start = "500ms"
stop = "4s"
udp = { rate = "1Mbps" }
[[flows]]
name = "upload"
from = "phone"
to = "server"
udp = { rate = "200kbps" }
"""


def test_a_flow_to_users_is_one_for_each_and_counts_from_when_they_come() -> None:
    ir = lower(Scenario.parse(CELL)).ir
    users = {user["name"]: user for user in ir["radios"][0]["users"]}
    phones = [name for name in users if name.startswith("phone")]
    callers = [name for name in users if name.startswith("caller")]
    assert phones == ["phone-1", "phone-2", "phone-3"]
    # 30 a minute for 20 s: 10 with a deviation of 3.2
    assert 2 <= len(callers) <= 20
    flows = {flow["name"]: flow for flow in ir["flows"]}
    for number, name in enumerate(callers, 1):
        there, back = flows[f"call-{number}"], flows[f"call.back-{number}"]
        assert (there["from"], there["to"]) == (back["to"], back["from"]) == ("server", name)
        assert there["start"] == users[name]["start"]
        assert there["stop"] == there["start"] + 5 * 10**9
        assert users[name]["stop"] > there["stop"], "the end of the flow is still heard"
        assert there["kind"]["media"]["pair"] == back["name"]
        assert back["kind"]["media"]["pair"] == there["name"]
    for number, name in enumerate(phones, 1):
        feed, upload = flows[f"feed-{number}"], flows[f"upload-{number}"]
        assert (feed["to"], feed["start"], feed["stop"]) == (name, 1_500_000_000, 5_000_000_000)
        assert (upload["from"], upload["start"], upload["stop"]) == (name, 1_000_000_000, None)
    assert len(flows) == 2 * len(callers) + 6


def test_arrivals_are_poisson_and_their_own_luck() -> None:
    text = CELL.replace('duration = "20s"', 'duration = "600s"').replace("30/min", "2/s")
    one, other = lower(Scenario.parse(text), seed=1), lower(Scenario.parse(text), seed=2)
    assert one.hash == other.hash, "who comes when is a matter of the seed"
    starts = [user["start"] / 1e9 for user in one.ir["radios"][0]["users"] if user["name"].startswith("caller")]
    # 1200 with a deviation of 35; exponential gaps have a coefficient of variation of 1, here +- 0.03
    assert abs(len(starts) - 1200) < 125
    gaps = np.diff(starts)
    assert 0.88 < gaps.std() / gaps.mean() < 1.12
    # other users in the network do not change arrivals
    fewer = lower(Scenario.parse(text.replace("count = 3", "count = 1")), seed=1)
    assert [
        user["start"] / 1e9 for user in fewer.ir["radios"][0]["users"] if user["name"].startswith("caller")
    ] == starts


def test_a_cell_run_loses_nothing_says_the_same_again_and_fills_its_tables() -> None:
    scenario = Scenario.parse(CELL)
    once, again = tidegate.run(scenario), tidegate.run(scenario)
    assert once.digest == again.digest
    assert tidegate.run(scenario, record="summary").digest == once.digest
    feed = once.metrics("feed-1")
    assert feed["receive_rate_bps"] == pytest.approx(1e6, rel=0.02)
    assert feed["loss_fraction"] == 0
    radio = once.table("radio")
    direction, sinr, cqi = (radio.to_numpy(name) for name in ("direction", "sinr_db", "cqi"))
    assert set(direction) == {"down", "up"}
    assert {"phone-1", "caller-1"} < set(radio.to_numpy("user"))
    assert np.all((cqi >= 0) & (cqi <= 15))
    assert -10 < np.nanmedian(sinr) < 40
    # blocks that are sent just before a row of the table arrive in the time of the next one: bytes, but no SINR
    unsent = (radio.to_numpy("blocks") == 0) & (radio.to_numpy("bytes") > 0)
    assert unsent.any()
    assert np.array_equal(np.isnan(sinr), unsent)
    # all bytes that left the network are in the blocks that arrived, with 2 bytes of PDCP header a packet
    carried = next(link for link in once.summary["links"] if link["link"] == "lte")["carried_bps"] * 20 / 8
    blocks = radio.to_numpy("bytes").sum()
    assert carried < blocks < carried * 1.06
    cells = once.table("cells")
    assert cells.to_numpy("bytes").sum() == blocks
    assert "radio" not in tidegate.run(Scenario.load("home-broadband", {"duration": "2s"})).tables


WRONG = [
    ('bandwidth = "5MHz"', 'bandwidth = "7MHz"', 'scenario.toml:4: lte.bandwidth: found "7MHz"; expected'),
    ('bandwidth = "5MHz"', "case = 2", "scenario.toml:4: lte.case: found 2; expected 1 or 3"),
    ('bandwidth = "5MHz"', 'speed = "3"', 'scenario.toml:4: lte.speed: found "3"; a speed needs a unit, for example'),
    ('bandwidth = "5MHz"', 'speed = "900km/h"', 'lte.speed: found "900km/h"; expected at most 500km/h'),
    (
        'bandwidth = "5MHz"',
        'name = "net"',
        'scenario.toml:4: lte.name: "net" is the name of a link, too; names are unique',
    ),
    ('bandwidth = "5MHz"', "sized = 7", "scenario.toml:4: lte.sized: there is no such key"),
    (
        'name = "phone"',
        'name = "server"',
        'scenario.toml:6: lte.users.server.name: "server" is the name of a point of the network',
    ),
    (
        'name = "phone"',
        'name = "caller"',
        'scenario.toml:10: lte.users.caller.name: "caller" is the name of entry 1, too',
    ),
    ("count = 3", "count = 0", "scenario.toml:7: lte.users.phone.count: found 0; expected a number of at least 1"),
    (
        'start = "1s"',
        'start = "30s"',
        'scenario.toml:8: lte.users.phone.start: found "30s"; expected a time before the run',
    ),
    ('"30/min"', '"30"', 'scenario.toml:11: lte.users.caller.arrival.rate: found "30"; a frequency needs a unit'),
    ('"30/min"', '"9000/s"', "lte.users.caller.arrival.rate: found"),
    ('stay = "5s"', 'stay = "0s"', 'lte.users.caller.arrival.stay: found "0s"; expected more than zero'),
    ('to = "phone"', 'to = "phones"', 'flows.feed.to: no link begins or ends at "phones"; did you mean phone?'),
    ('stop = "4s"', "count = 2", "flows.feed.count: found 2; expected 1, since the flow stands for one"),
    ('from = "phone"\nto = "server"', 'from = "phone"\nto = "caller"', "flows.upload.to: both ends are users"),
]


@pytest.mark.parametrize(("found", "replaced", "message"), WRONG)
def test_what_is_wrong_is_said_with_file_line_and_key(found: str, replaced: str, message: str) -> None:
    assert found in CELL
    with pytest.raises(ScenarioError) as error:
        Scenario.parse(CELL.replace(found, replaced, 1))
    assert message in str(error.value)


def test_a_scenario_with_users_survives_being_written() -> None:
    scenario = Scenario.parse(CELL)
    again = Scenario.parse(scenario.to_toml())
    assert lower(again).ir == lower(scenario).ir
    changed = scenario.with_changes({"lte.case": 3, "lte.users.caller.arrival.rate": "1/s"})
    assert changed.lte is not None
    assert changed.lte.case == 3


@pytest.mark.parametrize("name", ["lte-one-call", "lte-cell", "lte-driving"])
def test_shipped_cells_run(name: str) -> None:
    done = tidegate.run(Scenario.load(name, {"duration": "20s", "warmup": "5s"}), record="summary")
    calls = [flow for flow in done.summary["flows"] if flow["kind"] == "media"]
    assert calls
    assert all(flow["one_way_delay_ms_min"] >= 24 for flow in calls if flow["packets_received"])


def test_a_user_of_a_cell_becomes_a_trace(cli: Cli) -> None:
    made = cli("trace", "generate", "lte", "cell.trace", "--duration", "5s", "--bandwidth", "5MHz", "--users", "2")
    assert made.code == 0, made.err
    shown = cli("trace", "show", "cell.trace")
    assert "mahimahi" in shown.out
    rate = lte.trace(seed=1, duration="5s", bandwidth="5MHz", users=2).mean_rate
    other = lte.trace(seed=2, duration="5s", bandwidth="5MHz", users=2).mean_rate
    # between a crawl and what the carrier holds
    assert 1e4 < rate < 17.6e6
    assert rate != other


def test_wrong_traces_of_cells_are_refused(cli: Cli) -> None:
    for arguments, message in [
        (("lte", "x", "--case", "2"), "case: found 2; expected 1 or 3"),
        (("lte", "x", "--speed", "fast"), 'speed: found "fast"; expected a speed'),
        (("lte", "x", "--users", "0"), "users: found 0; expected from 1 to 100"),
        (("nr", "x"), "nr is not a model; available: brownian, lte"),
    ]:
        got = cli("trace", "generate", *arguments)
        assert got.code == 2, got
        assert message in got.err, got.err
    with pytest.raises(InputError, match="duration"):
        lte.trace(seed=1, duration="0s")


def test_alone_users_hear_more_than_in_a_full_network() -> None:
    me = Users(name="me", place=(150.0, 90.0), full_buffer=True)
    others = Users(name="other", count=100, full_buffer=True)
    alone = lte.survey(Lte(users=[me]), seed=1, duration="500ms")
    full = lte.survey(Lte(users=[me, others]), seed=1, duration="500ms")
    assert alone.geometry_db[0] == full.geometry_db[0]
    assert alone.rate_bps[0] > 3 * full.rate_bps[0]
