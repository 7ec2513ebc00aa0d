"""A link of statuses, and the application that the thesis (Hoang 2017) runs over it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support import PLAIN
from tidegate import Run, Scenario, run
from tidegate.errors import ScenarioError
from tidegate.scenario.lower import lower

SIZE = 24_000  # bytes of an RTP packet of thesis-network
CONTROLLER = "flows.sender.media.controller"


def thesis(controller: str = "fixed:7.2Mbps", **changes: Any) -> Scenario:
    return Scenario.load("thesis-network").with_changes({CONTROLLER: controller, **changes})


def network(done: Run) -> tuple[Any, Any]:
    """The capacity of the network as the record has it: when, and how much."""
    truth = done.table("truth")
    rows = truth.to_numpy("link") == "network"
    return truth.to_numpy("t_s")[rows], truth.to_numpy("capacity_bps")[rows]


def packets(done: Run) -> tuple[Any, Any, Any]:
    """Of the RTP packets: when they were sent and arrived, and whether they were lost on the wire."""
    table = done.table("packets")
    rtp = table.to_numpy("kind") == "video"
    lost = table.to_numpy("fate")[rtp] == "loss"
    return table.to_numpy("sent_s")[rtp], table.to_numpy("arrived_s")[rtp], lost


def udp(capacity: Any, rate: str = "8Mbps", **changes: Any) -> Scenario:
    """1000 B packets, one every gap, over a link of statuses without anything else."""
    return Scenario.from_dict(
        {
            "duration": "200s",
            "sending_jitter": "off",
            "record": "packets",
            "links": [{"name": "network", "capacity": capacity, "back": False}],
            "flows": [{"name": "udp", "udp": {"rate": rate, "packet_size": "1000B"}}],
            **changes,
        }
    )


def statuses(**named: tuple[str, float]) -> list[dict[str, Any]]:
    return [{"name": name, "capacity": rate, "probability": share} for name, (rate, share) in named.items()]


# --- the network ----------------------------------------------------------------------------------


def test_one_seed_is_one_network_whatever_is_sent() -> None:
    """The thesis "recorded it in the first case and used it in the second case every time" (section 4.2)."""
    for seed in (1, 2):
        fixed, gcc = (run(thesis(name), seed, "packets") for name in ("fixed:7.2Mbps", "gcc:hoang2017"))
        assert fixed.metrics("sender")["sending_rate_bps"] != gcc.metrics("sender")["sending_rate_bps"]
        for column in ("t_s", "link", "capacity_bps"):
            fixed_column, gcc_column = (done.table("truth").to_numpy(column) for done in (fixed, gcc))
            assert np.array_equal(fixed_column, gcc_column)
        for stream in ("network/status", "network/loss", "network/jitter"):
            checkpoints = [done.draws[stream]["checkpoints"] for done in (fixed, gcc)]
            shorter = min(map(len, checkpoints))
            assert shorter >= 4
            assert checkpoints[0][:shorter] == checkpoints[1][:shorter], stream
        for done in (fixed, gcc):
            # one number an interval up to the goodbye, and one a packet, reports of the sender included
            assert done.draws["network/status"]["count"] == int(done.metrics("sender")["stop_s"] / 2) + 1
            contents_column = list(done.table("rtcp").to_numpy("contents"))
            reports = sum(contents.startswith("SR") for contents in contents_column)
            assert done.draws["network/loss"]["count"] == 1000 + reports


def test_other_capacities_meet_the_same_luck() -> None:
    key = "links.network.capacity.statuses"
    table9 = {"idle": "4.32Mbps", "cross-traffic-1": "2.88Mbps", "cross-traffic-2": "1.44Mbps"}
    changed = thesis().with_changes({f"{key}.{name}.capacity": rate for name, rate in table9.items()})
    was, now = (network(run(scenario, 5, "series"))[1] for scenario in (thesis(), changed))
    assert {(5.76e6, 4.32e6), (0.0, 0.0)} | set(zip(was, now, strict=True)) == {
        (5.76e6, 4.32e6),
        (4.32e6, 2.88e6),
        (2.88e6, 1.44e6),
        (0.0, 0.0),
    }


def test_statuses_have_their_shares() -> None:
    scenario = udp(
        Scenario.load("thesis-network").links[0].capacity, rate="1kbps", duration="20000s", bin="2s", record="series"
    )
    _, capacity = network(run(scenario, 1))
    n = len(capacity)
    assert n == 10_000
    for rate, share in ((5.76e6, 0.7), (4.32e6, 0.125), (2.88e6, 0.125), (0.0, 0.05)):
        fraction = np.count_nonzero(capacity == rate) / n
        assert abs(fraction - share) < 4 * (share * (1 - share) / n) ** 0.5, rate


def test_each_status_loses_what_it_cannot_carry() -> None:
    lost_in: dict[float, list[Any]] = {}
    delays = []
    rate, runs = 7_200_000, 40
    for seed in range(runs):
        done = run(thesis(), seed, "packets")
        times, capacity = network(done)
        sent, arrived, lost = packets(done)
        assert len(sent) == 1000
        metrics = done.metrics("sender")
        assert metrics["packets_received"] + metrics["lost_wire"] == 1000
        assert metrics["lost_queue"] == metrics["queueing_delay_ms_max"] == 0
        # a sender report on the way shortens the gap of the packet after it, and the first one has none
        table = done.table("packets")
        reports = table.to_numpy("sent_s")[(table.to_numpy("kind") == "rtcp") & (table.to_numpy("size") > 60)]
        plain = np.array([not np.any((reports > at - 0.0267) & (reports < at)) for at in sent])
        plain[0] = False
        status = capacity[np.searchsorted(times, sent, side="right") - 1]
        for here in np.unique(status):
            lost_in.setdefault(float(here), []).extend(lost[plain & (status == here)])
        delays.extend((arrived - sent)[~lost])
    assert sorted(lost_in) == [0.0, 2.88e6, 4.32e6, 5.76e6]
    for capacity_of, fates in lost_in.items():
        expected = 1 - capacity_of / rate
        error = 4 * (expected * (1 - expected) / len(fates)) ** 0.5
        assert len(fates) > 500
        assert abs(np.mean(fates) - expected) <= error, capacity_of
    n = len(delays)
    assert n > 20_000
    assert abs(np.mean(delays) - 10e-3) < 4 * 1e-3 / n**0.5
    assert abs(np.std(delays) - 1e-3) < 4 * 1e-3 / (2 * n) ** 0.5
    assert min(delays) > 0


def test_packets_meet_the_capacity_that_the_record_shows() -> None:
    all_or_nothing = {"interval": "500ms", "statuses": statuses(open=("1Gbps", 0.5), shut=("0bps", 0.5))}
    done = run(udp(all_or_nothing, bin="250ms"), 3)
    times, capacity = network(done)
    table = done.table("packets")
    open_at = capacity[np.searchsorted(times, table.to_numpy("sent_s"), side="right") - 1] > 0
    assert len(open_at) == 200_001
    assert 0.4 < np.mean(open_at) < 0.6
    # packets at the border of a bin are left to the integers of the engine: seconds are rounded here
    inside = np.abs(np.round(table.to_numpy("sent_s") * 4) / 4 - table.to_numpy("sent_s")) > 1e-6
    assert np.array_equal((table.to_numpy("fate") == "loss")[inside], ~open_at[inside])
    # a bin of two halves shows their mean
    (_, halves), (_, wholes) = network(done), network(run(udp(all_or_nothing, bin="1s"), 3))
    assert np.array_equal(wholes, halves.reshape(-1, 4).mean(axis=1))


@pytest.mark.parametrize("window", ["0s", "50ms"])
def test_two_senders_share_what_there_is(window: str) -> None:
    scenario = udp(
        {"interval": "2s", "rate_window": window, "statuses": statuses(only=("6Mbps", 1.0))},
        flows=[
            {"name": "one", "udp": {"rate": "4Mbps", "packet_size": "1000B"}},
            {"name": "two", "start": "1ms", "udp": {"rate": "4Mbps", "packet_size": "1000B"}},
        ],
    )
    done = run(scenario, 1)
    # one packet a millisecond in all, 8 Mbit/s: a quarter of each is too much
    for name in ("one", "two"):
        metrics = done.metrics(name)
        n = metrics["packets_received"] + metrics["lost_wire"]
        assert abs(metrics["lost_wire"] / n - 0.25) < 4 * (0.25 * 0.75 / n) ** 0.5


def test_a_run_that_is_saturated_from_end_to_end() -> None:
    capacity = {"interval": "2s", "statuses": statuses(idle=("6Mbps", 1e-9), saturated=("0bps", 1 - 1e-9))}
    done = run(udp(capacity, duration="10s"), 1)
    metrics = done.metrics("udp")
    assert (metrics["packets_received"], metrics["lost_wire"]) == (0, 10_001)
    (link,) = done.summary["links"]
    assert link["capacity_bps"] == 0.0
    assert metrics["utilisation"] is None
    call = PLAIN.replace(
        '"2Mbps"', "{ interval = '1s', statuses = [{ name = 'a', capacity = '1bps', probability = 1 }] }"
    )
    assert run(Scenario.parse(call), 1).metrics("call")["packets_received"] == 1, "of the first nothing is known"


# --- the application ------------------------------------------------------------------------------


def test_one_packet_every_interval_and_then_goodbye() -> None:
    done = run(thesis(), 1, "packets")
    sent, _, _ = packets(done)
    gaps = np.diff(sent)
    assert np.abs(gaps - SIZE * 8 / 7.2e6).max() < 2e-9
    table = done.table("packets")
    assert set(table.to_numpy("size")[table.to_numpy("kind") == "video"]) == {SIZE}
    metrics = done.metrics("sender")
    assert metrics["stop_s"] == pytest.approx(sent[-1], abs=1e-9), "the flow's time ends with it"
    assert metrics["sending_rate_bps"] == pytest.approx(1000 * SIZE * 8 / sent[-1], rel=1e-9)
    # over the time in which it was there
    _, capacity = network(run(thesis(duration="26.64s"), 1, "series"))
    mean = capacity[:133].mean()
    assert metrics["utilisation"] == pytest.approx(metrics["receive_rate_bps"] / mean, rel=0.01)
    rtcp = done.table("rtcp")
    said = rtcp.to_numpy("contents")
    goodbye = np.array(["BYE" in one for one in said])
    assert goodbye.sum() == 1
    at = rtcp.to_numpy("t_s")
    assert at[goodbye][0] == pytest.approx(sent[-1], abs=1e-9)
    feedback = at[[one == "TWCC" for one in said]]
    assert np.abs(np.diff(feedback) - 3).max() < 1e-9
    assert len(feedback) == 9, "the last of them after the goodbye"


def test_both_ways_each_has_its_own_end() -> None:
    both = {"flows.sender.media.both_ways": True, "links.network.back.capacity": "20Mbps"}
    done = run(thesis().with_changes(both), 1, "packets")
    table = done.table("packets")
    for flow in ("sender", "sender.back"):
        rows = (table.to_numpy("flow") == flow) & (table.to_numpy("kind") == "video")
        assert rows.sum() == 1000
    assert done.metrics("sender.back")["packets_received"] == 1000


# --- what is refused ------------------------------------------------------------------------------

GOOD = (
    '{ interval = "2s", statuses = [{ name = "a", capacity = "1Mbps", probability = 0.5 }, '
    '{ name = "b", capacity = "0bps", probability = "50%" }] }'
)
ALONE = "a link with statuses has no queue, discipline or loss: packets above its capacity are lost"
WRONG = [
    ('"2s", ', '"0s", ', '5: links.cable.capacity.interval: found "0s"; expected at least 100us'),
    ('interval = "2s", ', "", "5: links.cable.capacity.interval: the key is missing"),
    ('"2s", ', '"2s", rate_window = "61s", ',
     '5: links.cable.capacity.rate_window: found "61s"; expected at most 60s'),
    ("0.5", "0.6", "5: links.cable.capacity.statuses: the probabilities sum to 1.1; expected 1"),
    ("0.5", "1.5", "5: links.cable.capacity.statuses[1].probability: found 1.5; a fraction lies between 0 and 1; did "
     'you mean "1.5%"?'),
    ('name = "b"', 'name = "a"', '5: links.cable.capacity.statuses[2].name: "a" is the name of entry 1, too; names are unique'),
    ('"1Mbps"', '"0Mbps"', "5: links.cable.capacity.statuses: every status that can occur has the capacity 0bps; the link "
     "would never carry a packet"),
    (GOOD, '{ interval = "2s", statuses = [] }',
     "5: links.cable.capacity.statuses: found []; expected a list of length 1 or more"),
    (GOOD, GOOD + "\nqueue = { packets = 9 }", f"6: links.cable.queue: {ALONE}"),
    (GOOD, GOOD + '\nloss = "1%"', f"6: links.cable.loss: {ALONE}"),
    (GOOD, '"2Mbps"\nloss = "1%"\nback = { capacity = ' + GOOD + " }",
     f"7: links.cable.back.capacity: {ALONE} (set loss = 0 in back, whose default is the loss of the link)"),
    (GOOD, GOOD + "\nback = { queue = { packets = 9 } }", f"6: links.cable.back.queue: {ALONE}"),
    ('duration = "4s"', 'duration = "4000s"\nbin = "1s"', None),
    ('"2s", ', '"100us", ', None),
    ('"gcc"', '"gcc", packets = 0', "10: flows.call.media.packets: found 0; expected a number of at least 1"),
    ('"gcc"', '"gcc", payload = "65482B"',
     '10: flows.call.media.payload: found "65.482kB"; expected from 64B to 65.469kB'),
    ('"gcc"', '"gcc", payload = "65482B", overhead = "0B"',
     '10: flows.call.media.payload: found "65.482kB"; expected from 64B to 65.469kB'),
    ('"gcc"', '"gcc", payload = "65469B"', None),
    ('"gcc"', '"gcc", marks = false, payload = "65481B"', None),
    ('"gcc"', '"gcc", overhead = "1001B"', '10: flows.call.media.overhead: found "1.001kB"; expected at most 1kB'),
    ('"gcc"', '"gcc", feedback = { reports = "0s" }',
     '10: flows.call.media.feedback.reports: found "0s"; expected more than zero'),
]  # fmt: skip


@pytest.mark.parametrize(("found", "replaced", "message"), WRONG)
def test_refuses_and_says_where(found: str, replaced: str, message: str | None) -> None:
    text = PLAIN.replace('"2Mbps"', GOOD)
    assert found in text
    text = text.replace(found, replaced, 1)
    if message is None:
        run(Scenario.parse(text).with_changes({"duration": "2s"}), 1, "summary")
        return
    with pytest.raises(ScenarioError) as error:
        Scenario.parse(text, "x.toml")
    assert error.value.problems[0] == f"x.toml:{message}"


def test_too_many_statuses() -> None:
    text = PLAIN.replace('"2Mbps"', GOOD).replace('"2s"', '"100us"').replace('"4s"', '"1001s"')
    with pytest.raises(
        ScenarioError, match=r'found "100us"; expected a longer one: at most 10000000 intervals in a run'
    ):
        Scenario.parse(text)


def test_too_many_changes_of_a_generated_cell() -> None:
    changes = {"record": "summary", "bin": "1000s"}
    scenario = Scenario.load("cell-with-outages")
    with pytest.raises(ScenarioError, match=r"brownian: found a run of 200001s; expected at most 200000s"):
        scenario.with_changes({**changes, "duration": "200001s"})
    assert scenario.with_changes({**changes, "duration": "200000s"}).duration == 200_000 * 10**9


def test_the_default_queue_is_no_queue_here_and_the_text_is_the_same_again() -> None:
    scenario = Scenario.load("thesis-network")
    forth, back = lower(scenario).ir["links"]
    assert set(forth["settings"]["queue"].values()) == {None, True}
    assert back["settings"]["queue"]["time"] == 300_000_000
    assert lower(Scenario.parse(scenario.to_toml(), scenario.name)).ir == lower(scenario).ir


@settings(deadline=None)
@given(
    shares=st.lists(st.floats(-0.1, 1.1) | st.sampled_from([0, 0.5, 1]), max_size=3),
    rates=st.lists(st.sampled_from(["0bps", "1bps", "1Mbps", "1000Gbps", "x", 3]), min_size=3, max_size=3),
    times=st.tuples(*[st.sampled_from(["0s", "1ns", "100us", "1s", "61s", "1e9s", None])] * 2),
    beside=st.dictionaries(st.sampled_from(["queue", "loss", "byte_error", "jitter"]),
                           st.sampled_from([0, "1%", {}, {"packets": 3}, {"normal": "1ms"}, "none"]), max_size=2),
)  # fmt: skip
def test_what_is_taken_runs_and_the_rest_is_refused(
    shares: list[float], rates: list[Any], times: tuple[Any, Any], beside: dict[str, Any]
) -> None:
    entries = [
        {"name": f"s{number}", "capacity": rate, "probability": share}
        for number, (share, rate) in enumerate(zip(shares, rates, strict=False))
    ]
    capacity = {"statuses": entries, "interval": times[0], "rate_window": times[1]}
    capacity = {key: value for key, value in capacity.items() if value is not None}
    links = [{"name": "network", "capacity": capacity, "back": False, **beside}]
    try:
        scenario = udp(capacity, rate="100kbps", duration="1s", links=links)
    except ScenarioError as error:
        assert error.problems
    else:
        done = run(scenario, 1).metrics("udp")
        assert done["packets_sent"] == 13
