"""Conservation and closed forms, through scenarios: what must come out, worked out by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support import shared
from tidegate import Run, Scenario, run, trace

SIZE = 1200  # bytes


def scenario(**changes: Any) -> Scenario:
    """One link of 2 Mbit/s and 10 ms with one UDP flow of 1200 B packets, without sending jitter."""
    return Scenario.from_dict(
        {
            "name": "closed-form",
            "duration": "20s",
            "sending_jitter": "off",
            "links": [{"name": "link", "capacity": "2Mbps", "delay": "10ms"}],
            "flows": [{"name": "udp", "udp": {"rate": "100kbps", "packet_size": f"{SIZE}B"}}],
            **changes,
        }
    )


def column(one: Run, table: str, name: str, flow: str | None = None) -> np.ndarray[Any, Any]:
    found = one.table(table)
    values = found.to_numpy(name)
    return values if flow is None else values[found.to_numpy("flow") == flow]


def link(one: Run, name: str = "link") -> dict[str, Any]:
    (found,) = (each for each in one.summary["links"] if each["link"] == name)
    return dict(found)


# --- delays ---------------------------------------------------------------------------------------


def test_an_idle_path_takes_serialisation_and_propagation() -> None:
    done = run(
        scenario(
            links=[
                {"name": "first", "from": "left", "to": "middle", "capacity": "2Mbps", "delay": "10ms"},
                {"name": "second", "from": "middle", "to": "right", "capacity": "7Mbps", "delay": "3ms"},
                {"name": "third", "from": "right", "to": "end", "capacity": "infinite", "delay": "500us"},
            ],
            flows=[{"name": "udp", "to": "end", "udp": {"rate": "100kbps", "packet_size": f"{SIZE}B"}}],
        ),
        record="packets",
    )
    took = column(done, "packets", "arrived_s", "udp") - column(done, "packets", "sent_s", "udp")
    expected = SIZE * 8 / 2e6 + 10e-3 + SIZE * 8 / 7e6 + 3e-3 + 500e-6
    assert len(took) > 200
    # each link rounds to its nanosecond; the rest is the rounding of seconds as floats
    assert np.abs(took - expected).max() < 2.5e-9
    metrics = done.metrics("udp")
    assert metrics["one_way_delay_ms_min"] == pytest.approx(expected * 1e3, abs=2.5e-6)
    assert metrics["one_way_delay_ms_max"] == pytest.approx(expected * 1e3, abs=2.5e-6)
    assert metrics["queueing_delay_ms_max"] == 0.0


def test_a_handshake_takes_a_round_trip_before_the_first_data() -> None:
    file = {"workload": {"file": "1460B"}, "packet_size": "1500B"}
    plain, *opened = (
        run(scenario(flows=[{"name": "tcp", "tcp": {**file, **keys}}]), record="packets")
        for keys in (
            {"handshake": False},
            {"options": False},
            {"algorithm": "newreno"},
            {"algorithm": "cubic"},
        )
    )
    of_syns = (40, 48, 52)  # RFC 9293 section 3.2: 4 bytes; RFC 7323: 3 and padding; RFC 2018: 2 and padding
    # the SYN there and its answer back at 2 Mbit/s, and 10 ms on the way
    after = [2 * (syn * 8 / 2e6 + 10e-3) for syn in of_syns]
    expected = [([1500], [0.0]), *(([syn, 1500], [0.0, at]) for syn, at in zip(of_syns, after, strict=True))]
    for done, (sizes, sent) in zip((plain, *opened), expected, strict=True):
        assert done.metrics()["packets_sent"] == done.metrics()["packets_received"] == len(sizes)
        data = column(done, "packets", "kind") == "data"
        assert column(done, "packets", "size")[data].tolist() == sizes
        assert column(done, "packets", "sent_s")[data] == pytest.approx(sent, abs=1e-9)


@pytest.mark.parametrize(
    ("queue", "waiting"),
    [
        # with the packet in service 20, so that the last one waits for 19
        ({"packets": 20}, 19),
        ({"packets": 20, "counts_in_service": False}, 20),
        # 50 kB are 41.7 packets, and so are 200 ms at 2 Mbit/s
        ({"bytes": "50kB"}, 40),
        ({"bytes": "50kB", "counts_in_service": False}, 41),
        ({"time": "200ms"}, 40),
        ({"time": "200ms", "packets": 10}, 9),
    ],
)
def test_the_largest_wait_is_buffer_over_rate(queue: dict[str, Any], waiting: int) -> None:
    service = SIZE * 8 / 2e3  # ms
    # a rate that has nothing to do with the service, so that packets come at all its phases
    done = run(
        scenario(
            links=[{"name": "link", "capacity": "2Mbps", "delay": "10ms", "queue": queue}],
            flows=[{"name": "udp", "udp": {"rate": "2718281bps", "packet_size": f"{SIZE}B"}}],
        )
    )
    largest = done.metrics("udp")["queueing_delay_ms_max"]
    # all phases within a thousandth of a service, and never more
    assert waiting * service * (1 - 1e-12) - 0.01 * service < largest <= waiting * service * (1 + 1e-9)
    assert done.metrics("udp")["lost_queue"] > 1000


def test_the_mean_wait_of_m_d_1() -> None:
    # Pollaczek and Khinchine: rho / (2 (1 - rho)) services; at 9.6 Mbit/s a service is 1 ms
    rho = 0.8
    queue = scenario(
        duration="600s",
        links=[{"name": "link", "capacity": "9600kbps", "queue": {}}],
        flows=[{"name": "udp", "udp": {"rate": "7680kbps", "packet_size": f"{SIZE}B", "pattern": "poisson"}}],
    )
    means = [run(queue, seed, "summary").metrics("udp")["queueing_delay_ms_mean"] for seed in range(1, 6)]
    # waits are alike over some 1 / (1 - sqrt(rho))^2 = 90 services, so that 5 * 600 s hold some 33,000
    # independent ones with a deviation like their mean: 0.7 %, and three of these
    assert np.mean(means) == pytest.approx(rho / (2 * (1 - rho)), rel=0.02)
    assert len(set(means)) == 5


# --- rates ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("flow", "packet"),
    [
        ({"udp": {"rate": "3Mbps", "packet_size": f"{SIZE}B"}}, SIZE),
        ({"udp": {"rate": "3Mbps", "packet_size": f"{SIZE}B", "pattern": "poisson"}}, SIZE),
        # a queue of more than a bandwidth-delay product, which NewReno never empties
        ({"tcp": {"algorithm": "newreno"}}, 1500),
        ({"media": {"controller": "fixed:3Mbps", "video": {"source": "greedy", "max": "5Mbps"}}}, 1500),
    ],
)
def test_a_saturated_link_carries_its_rate(flow: dict[str, Any], packet: int) -> None:
    done = run(
        scenario(
            warmup="5s",
            links=[{"name": "link", "capacity": "2Mbps", "delay": "10ms", "queue": {"time": "300ms"}}],
            flows=[{"name": "flow", **flow}],
        ),
        record="packets",
    )
    # the packets on the wire when the seconds begin and end are counted whole: one of them at most
    assert link(done)["carried_bps"] == pytest.approx(2e6, abs=packet * 8 / 15)
    if "media" in flow:
        return  # whose reports share the link in both directions
    # and they leave one behind the other: a service between every two arrivals
    data = column(done, "packets", "kind") != "ack"
    arrived, sizes = column(done, "packets", "arrived_s")[data], column(done, "packets", "size")[data]
    order = np.argsort(arrived)
    gaps, services = np.diff(arrived[order]), sizes[order][1:] * 8 / 2e6
    steady = (arrived[order][1:] > 5) & (arrived[order][1:] < 20)
    assert np.abs(gaps - services)[steady].max() < 2.5e-9


def test_a_schedule_is_kept() -> None:
    steps = [["0s", "2Mbps"], ["4s", "500kbps"], ["7s", "0bps"], ["8s", "3Mbps"]]
    done = run(
        scenario(
            links=[{"name": "link", "capacity": {"schedule": steps, "period": "10s"}, "queue": {"packets": 5}}],
            flows=[{"name": "udp", "udp": {"rate": "5Mbps", "packet_size": f"{SIZE}B"}}],
        ),
        record="packets",
    )
    arrived = column(done, "packets", "arrived_s", "udp")
    for begin, end, rate in ((0, 4, 2e6), (4, 7, 5e5), (7, 8, 0), (8, 10, 3e6), (10, 14, 2e6), (18, 20, 3e6)):
        carried = ((arrived >= begin) & (arrived < end)).sum() * SIZE * 8
        # one packet is on the way into each phase and one out of it
        assert carried == pytest.approx(rate * (end - begin), abs=SIZE * 8), (begin, end)
    assert link(done)["capacity_bps"] == pytest.approx((4 * 2e6 + 3 * 5e5 + 2 * 3e6) / 10, rel=1e-9)


# --- recorded networks ----------------------------------------------------------------------------

OPPORTUNITY = 1504  # bytes a line of mahimahi, its MTU with the header of its tunnel


def over_trace(file: Path, duration: int, offset: int = 0) -> Run:
    capacity = {"trace": str(file), "offset": f"{offset}s"}
    return run(
        scenario(
            duration=f"{duration}s",
            links=[{"name": "link", "capacity": capacity, "queue": {"packets": 50}}],
            flows=[{"name": "udp", "udp": {"rate": "150Mbps", "packet_size": f"{OPPORTUNITY}B"}}],
        )
    )


def check_opportunities(file: Path, duration: int, offset: int = 0) -> int:
    """Compares what a saturated recording carries with its lines; answers how many count."""
    lines = np.array([int(line) for line in file.read_text().split()])
    period = lines[-1]
    rounds = (duration + offset) * 1000 // period + 1
    times = np.concatenate([lines + number * period for number in range(rounds + 1)])
    due = times[(times >= offset * 1000) & (times < (offset + duration) * 1000)] - offset * 1000
    done = over_trace(file, duration, offset)
    # before the first packet no opportunity can be taken
    missed = (due == 0).sum()
    carried = round(link(done)["carried_bps"] * duration / 8 / OPPORTUNITY)
    assert len(due) - missed - 1 <= carried <= len(due) + 1, file.name
    # and the truth beside the estimates says the same, bin by bin
    mine = done.table("truth").to_numpy("link") == "link"
    truth = done.table("truth").to_numpy("capacity_bps")[mine] * 0.2 / 8 / OPPORTUNITY
    expected = np.histogram(due, np.arange(0, duration * 1000 + 1, 200))[0]
    np.testing.assert_allclose(truth[: len(expected)], expected, atol=1e-6, err_msg=file.name)
    return len(due)


def test_a_recording_carries_its_opportunities(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    file = tmp_path / "made.down"
    file.write_text("".join(f"{at}\n" for at in np.sort(rng.integers(1, 7001, 2500))))
    assert check_opportunities(file, 20) > 6000
    assert check_opportunities(file, 10, offset=3) > 3000


@pytest.mark.parametrize("name", ["ATT-LTE-driving.up", "Verizon-LTE-short.down", "TMobile-LTE-short.up"])
def test_a_public_recording_carries_its_opportunities(name: str) -> None:
    assert check_opportunities(shared() / "traces" / "mahimahi" / name, 30) > 1000


def test_a_recording_of_rates_carries_its_rates(tmp_path: Path) -> None:
    file = tmp_path / "rates.csv"
    rates = [1000, 1000, 4000, 4000, 4000, 500, 500, 500, 500, 2000]  # kbit/s, a second each
    file.write_text("time_s,rate_kbps\n" + "".join(f"{at},{rate}\n" for at, rate in enumerate(rates)))
    assert trace.load(file).mean_rate == 1_800_000
    # and again from its beginning: one packet is on the wire at the end
    carried = link(over_trace(file, 17))["carried_bps"] * 17
    assert carried == pytest.approx((sum(rates) + sum(rates[:7])) * 1000, abs=OPPORTUNITY * 8)


# --- conservation ---------------------------------------------------------------------------------

EVERYTHING = {
    "duration": "14s",
    "links": [
        {
            "name": "first",
            "to": "middle",
            "capacity": "3Mbps",
            "delay": "15ms",
            "queue": {"packets": 30},
            "loss": {"mean": "2%", "burst": 2},
            "jitter": {"uniform": "5ms"},
        },
        {
            "name": "second",
            "from": "middle",
            "capacity": "2Mbps",
            "delay": "5ms",
            "byte_error": 1e-5,
            "queue": {"packets": 12},
        },
    ],
    "flows": [
        {"name": "call", "stop": "10s", "media": {"controller": "gcc", "audio": {}}},
        {"name": "tcp", "stop": "10s", "tcp": {}},
        {"name": "udp", "stop": "10s", "count": 2, "udp": {"rate": "900kbps", "pattern": "poisson"}},
    ],
}


@pytest.mark.parametrize("seed", [1, 2, 4])
def test_what_is_sent_arrives_or_is_lost(seed: int) -> None:
    done = run(Scenario.from_dict(EVERYTHING), seed, "packets")
    fates = column(done, "packets", "fate")
    kinds, names = column(done, "packets", "kind"), column(done, "packets", "flow")
    where = column(done, "packets", "where")
    feedback = np.isin(kinds, ["rtcp", "ack"])
    lost = dict.fromkeys(("queue", "loss", "corrupt"), 0)
    for flow in done.summary["flows"]:
        # four seconds after the last one was sent nothing is on the way any more
        mine = fates[(names == flow["flow"]) & ~feedback]
        assert len(mine) == flow["packets_sent"] > 100, flow["flow"]
        assert (mine == "arrived").sum() == flow["packets_received"]
        assert (mine == "queue").sum() == flow["lost_queue"]
        assert (mine != "arrived").sum() == flow["lost_queue"] + flow["lost_wire"]
        for cause in lost:
            lost[cause] += int((mine == cause).sum())
    assert min(lost.values()) > 0, f"each way of dying was tried: {lost}"
    for each in done.summary["links"]:
        # media and feedback alike
        here = where == each["link"]
        assert (here & (fates == "queue")).sum() == each["dropped_queue"]
        assert (here & (fates != "queue")).sum() == each["dropped_wire"]
    arrived = column(done, "packets", "arrived_s")
    assert np.isnan(arrived[fates != "arrived"]).all()
    assert (arrived > column(done, "packets", "sent_s"))[fates == "arrived"].all()
    # the series count the same packets
    for sent, flow in ((column(done, "series", "packets_sent", f["flow"]), f) for f in done.summary["flows"]):
        assert sent.sum() == flow["packets_sent"]
        assert column(done, "series", "packets_arrived", flow["flow"]).sum() == flow["packets_received"]


def test_packets_under_way_at_the_end_have_rows_without_an_arrival() -> None:
    """One every 10 ms from 0 to 1 s, and 250.1 ms until it arrives: those sent from 750 ms on are 26."""
    done = run(
        scenario(
            duration="1s",
            links=[{"name": "link", "capacity": "100Mbps", "delay": "250ms"}],
            flows=[{"name": "udp", "udp": {"rate": "960kbps", "packet_size": f"{SIZE}B"}}],
        ),
        record="packets",
    )
    fates, arrived = column(done, "packets", "fate"), column(done, "packets", "arrived_s")
    (flow,) = done.summary["flows"]
    assert len(fates) == flow["packets_sent"]
    late = column(done, "packets", "sent_s") > 1 - 0.25 - SIZE * 8 / 1e8
    assert ((fates == "under way") == late).all()
    assert late.sum() == 26
    assert np.isnan(arrived[late]).all()
    assert np.isfinite(arrived[~late]).all()
    assert set(column(done, "packets", "where")[late]) == {"link"}
    assert np.isnan(column(done, "packets", "queueing_delay_ms")[late]).all()


def test_a_queue_that_is_never_served_still_has_its_packets_in_the_table() -> None:
    done = run(
        scenario(duration="10s", links=[{"name": "link", "capacity": "10kbps", "queue": {"packets": 40}}]),
        record="packets",
    )
    fates = column(done, "packets", "fate")
    (flow,) = done.summary["flows"]
    assert len(fates) == flow["packets_sent"] == 105
    assert (fates == "arrived").sum() == flow["packets_received"]
    assert (fates == "under way").sum() == 105 - flow["packets_received"] - flow["lost_queue"] >= 40


# --- recorded delays ------------------------------------------------------------------------------


@pytest.mark.parametrize("own", [0, 250])
def test_a_recorded_delay_is_added_to_the_links(tmp_path: Path, own: int) -> None:
    (tmp_path / "net.csv").write_text("# duration_s=2\ntime_ms,rate_kbps,delay_ms\n0,2000,10\n1000,2000,30\n")
    capacity = {"trace": str(tmp_path / "net.csv")}
    links = [{"name": "link", "capacity": capacity, "delay": f"{own}ms"}]
    done = run(scenario(duration="8s", links=links), record="packets")
    sent = column(done, "packets", "sent_s")
    took = column(done, "packets", "arrived_s") - sent
    leaves = sent + SIZE * 8 / 2e6
    expected = SIZE * 8 / 2e6 + own / 1e3 + np.where(leaves % 2 < 1, 10e-3, 30e-3)
    there = np.isfinite(took)
    assert there.sum() > 70
    assert took[there] == pytest.approx(expected[there], abs=1e-8)


# --- how many, and how much -----------------------------------------------------------------------


@pytest.mark.parametrize("both_ways", [False, True])
@pytest.mark.parametrize(("count", "payload"), [(1, "1200B"), (51, "1200B"), (51, "200B"), (1000, "200B")])
def test_a_flow_ends_after_so_many_packets_also_inside_a_frame(count: int, payload: str, both_ways: bool) -> None:
    media = {"controller": "gcc", "packets": count, "payload": payload, "both_ways": both_ways}
    done = run(scenario(flows=[{"name": "call", "media": media}]), record="packets")
    kinds, names = column(done, "packets", "kind"), column(done, "packets", "flow")
    for flow in done.summary["flows"]:
        assert ((names == flow["flow"]) & (kinds == "video")).sum() == count


@pytest.mark.parametrize(
    ("video", "most"),
    [
        ({}, 20e6),
        ({"max": "3Mbps"}, 3e6),
    ],
)
def test_a_greedy_source_fills_max_rate_unless_it_has_a_max(video: dict[str, Any], most: float) -> None:
    media = {"controller": "fixed:20Mbps", "max_rate": "20Mbps", "video": {"source": "greedy", **video}}
    links = [{"name": "link", "capacity": "100Mbps", "delay": "10ms"}]
    done = run(scenario(links=links, flows=[{"name": "call", "media": media}]))
    # what max bounds is media: with 24 bytes of header on 1200
    headers = 1224 / 1200 if video else 1
    assert done.summary["flows"][0]["sending_rate_bps"] == pytest.approx(most * headers * 1252 / 1224, rel=2e-3)


# --- playout --------------------------------------------------------------------------------------


def watched(steps: list[list[str]], loss: str = "0%") -> Run:
    """Twenty seconds of 500 kbit/s over a link of these capacities, played out with at most a second of delay."""
    link = {"name": "link", "capacity": {"schedule": steps}, "loss": loss, "queue": {"time": "10s"}}
    call = {"controller": "fixed:500kbps", "playout": {"adaptive": {"max": "1s"}}}
    return run(scenario(links=[link], flows=[{"name": "call", "media": call}]), record="series")


def without_picture(one: Run) -> float:
    return float(one.summary["flows"][0]["without_picture_s"])


def test_adaptive_playout_keeps_its_maximum_after_an_outage_at_the_start() -> None:
    done = watched([["0s", "0bps"], ["6s", "5Mbps"]])
    assert without_picture(done) == pytest.approx(6, abs=0.1)
    captured = column(done, "frames", "captured_s")
    took = column(done, "frames", "rendered_s") - captured
    fastest = np.nanmin(column(done, "frames", "complete_s") - captured)
    # the backlog of six seconds is gone after 6 x 0.5 / 4.5 s
    later = (captured > 7) & np.isfinite(took)
    assert later.sum() > 12 * 30
    # a timestamp of 90 kHz rounds
    assert np.nanmax(took[later]) <= 1 + fastest + 1 / 90_000


def test_the_time_without_a_picture_is_all_of_it_where_none_comes() -> None:
    assert without_picture(watched([["0s", "5Mbps"]], loss="100%")) == pytest.approx(20, abs=1e-9)
    # the first frame has 13.5 kB, which take 0.216 s at 500 kbit/s; the link ceases at half of the time, or does not
    assert without_picture(watched([["0s", "5Mbps"], ["10s", "0bps"]])) == pytest.approx(10.22, abs=0.1)
    assert without_picture(watched([["0s", "5Mbps"]])) == pytest.approx(0.217, abs=0.001)


def test_a_link_counts_the_feedback_that_dies_on_it() -> None:
    scenario = Scenario.parse(
        'duration = "60s"\nrecord = "packets"\n[[links]]\nname = "l"\ncapacity = "5Mbps"\ndelay = "10ms"\n'
        'back = { loss = "5%" }\n[[flows]]\nname = "tcp"\ntcp = {}\n'
    )
    done = run(scenario, 1, "packets")
    back = next(each for each in done.summary["links"] if each["link"] == "l.back")
    died = (column(done, "packets", "where") == "l.back") & (column(done, "packets", "fate") == "loss")
    assert back["dropped_wire"] == died.sum()
    # of some 24 000 acknowledgements (one for two packets of 1500 bytes in 4.8 ms) one in 20: five deviations
    acks = (column(done, "packets", "kind") == "ack").sum()
    assert abs(back["dropped_wire"] - 0.05 * acks) < 5 * (0.05 * 0.95 * acks) ** 0.5
    assert back["dropped_wire"] > 500
    assert done.metrics("tcp")["lost_wire"] == 0, "a flow's losses are of what it sends"


# --- what there is to send ------------------------------------------------------------------------


def test_a_source_encodes_what_its_application_has() -> None:
    """Frames of each second: a schedule's rate from its instant on, within the encoder's bounds, on through pauses."""
    steps = [["0s", "500kbps"], ["2.5s", "3Mbps"], ["5s", "300kbps"]]
    video = {"source": "ideal", "min": "100kbps", "max": "800kbps", "fps": 20, "schedule": steps}
    media = {"controller": "fixed", "max_rate": "2Mbps", "video": video}  # 1 Mbit/s
    flow = {"name": "call", "start": "1s", "media": {**media, "pauses": [["3s", "4s"]]}}
    done = run(scenario(duration="8s", flows=[flow], links=[{"name": "link", "capacity": "10Mbps"}]))
    captured, size = (column(done, "frames", name, "call") for name in ("captured_s", "size"))
    sent = [int(size[(captured >= second) & (captured < second + 1)].sum()) * 8 for second in range(8)]
    # from 1 s on; the step at 3.5 s falls into the pause from 3 to 4 s
    assert sent == [0, 500_000, 500_000, 0, 800_000, 800_000, 300_000, 300_000]


# --- how often a receiver reports -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("rate", "both_ways", "interval", "every"),
    [
        # 68 bytes in 5 % of 68 kbit/s, of 136 and of 40; and an end that sends nothing
        ("68kbps", True, "auto", 160),
        ("136kbps", True, "auto", 80),
        ("40kbps", True, "auto", 250),
        ("600kbps", True, "auto", 50),
        ("68kbps", False, "auto", 50),
        ("68kbps", True, "70ms", 70),
    ],
)
def test_transport_feedback_takes_five_percent_of_what_its_end_may_send(
    rate: str, both_ways: bool, interval: str, every: int
) -> None:
    media = {
        "controller": {"name": "fixed", "rate": rate},
        "start_rate": rate,
        "max_rate": "1Mbps",
        # a packet in each 10 ms, so that there is always something to report
        "video": {"source": "ideal", "min": "10kbps", "max": "1Mbps", "fps": 100},
        "feedback": {"interval": interval},
        "both_ways": both_ways,
    }
    flows = [{"name": "call", "media": media}]
    done = run(scenario(duration="10s", flows=flows, links=[{"name": "link", "capacity": "10Mbps"}]))
    times, contents, back = (column(done, "rtcp", name, "call") for name in ("t_s", "contents", "from_receiver"))
    sent = times[(contents == "TWCC") & np.asarray(back, dtype=bool)]
    assert len(sent) > 9 / (every / 1000)
    assert np.diff(sent) == pytest.approx(every / 1000, abs=1e-6)


def test_a_schedule_makes_no_frames_of_packets() -> None:
    """A greedy source with one is sent as it is without: nothing is shown, and parity needs no marks."""
    found = set()
    for schedule in ([], [["0s", "2.5Mbps"]]):
        video = {"source": "greedy", "schedule": schedule}
        media = {"controller": "fixed", "video": video, "marks": False, "repair": {"fec": {"packets": 5}}}
        found.add(run(scenario(duration="4s", flows=[{"name": "call", "media": media}])).digest)
    assert len(found) == 1
