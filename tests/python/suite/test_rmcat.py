"""The cases of RFC 8867 are what it says: its tables, written down from its text, beside what the engine gets."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import pytest

from tidegate import Scenario, run
from tidegate.scenario.lower import lower
from tidegate.scenario.sources import StatisticalVideo
from tidegate.scenario.traffic import Web
from tidegate.suite import Suite, verdicts
from tidegate.units import Frequency

Steps = list[tuple[float, float]]
Rates = list[tuple[float, int]]
S = 10**9
MS = 10**6


@dataclass(frozen=True)
class Case:
    """A case as the RFC has it: seconds, Mbit/s, milliseconds."""

    duration: float
    reference: float
    """Reference bottleneck capacity."""
    ratios: Steps
    """Path capacity ratio from each time on, forward."""
    flows: list[tuple[float, float | None]]
    """Start and end of each media flow; no end: with the test."""
    back: Steps = field(default_factory=list)
    """Path capacity ratio from each time on, backward; unrestricted by default."""
    delay: float = 50
    maximum: float = 1.5
    """Largest rate of a video source."""

    def capacity(self, ratios: Steps) -> Rates:
        """bit/s from each time on."""
        return [(at, round(ratio * self.reference * 1e6)) for at, ratio in ratios]


# sections 5.1 to 5.8 with tables 1 to 6, and 6.1
CASES = {
    "5.1-variable-capacity": Case(100, 1, [(0, 1.0), (40, 2.5), (60, 0.6), (80, 1.0)], [(0, 99)]),
    "5.2-two-flows": Case(125, 2, [(0, 2.0), (25, 1.0), (50, 1.75), (75, 0.5), (100, 1.0)], [(0, None)] * 2),
    "5.3-congested-feedback": Case(
        100,
        1,
        [(0, 2.0), (20, 1.0), (40, 0.5), (60, 2.0)],
        [(0, 99)] * 2,
        back=[(0, 2.0), (35, 0.8), (70, 2.0)],
    ),
    "5.4-competing-calls": Case(120, 3.5, [(0, 1.0)], [(0, 119), (20, 119), (40, 119)]),
    "5.5-rtt-fairness": Case(300, 4, [(0, 1.0)], [(start, 299) for start in (0, 10, 20, 30, 40)], delay=0),
    "5.6-long-tcp": Case(120, 2, [(0, 1.0)], [(5, 119)]),
    "5.7-short-tcp": Case(300, 2, [(0, 1.0)], [(5, 299)] * 2),
    "5.8-pause-resume": Case(120, 3.5, [(0, 1.0)], [(0, 119)] * 3),
    # the first of three flows, twice the share of each other one, is to have 1.75 Mbit/s: more than section 4.3 lets it
    "6.1-priority": Case(120, 3.5, [(0, 1.0)], [(0, 119), (20, 119), (40, 119)], maximum=2),
}
BY_UDP = {
    "5.1-background-udp": "5.1-variable-capacity",
    "5.2-background-udp": "5.2-two-flows",
    "5.3-background-udp": "5.3-congested-feedback",
}
PHYSICAL = 4_000_000
"""bit/s of the link where UDP takes what is not to be there (sections 5.1 to 5.3)."""


def engine(name: str) -> dict[str, Any]:
    """What the engine gets of a shipped scenario of the RFC."""
    ir: dict[str, Any] = lower(Scenario.load(f"rfc8867-{name}")).ir
    return ir


def link(ir: dict[str, Any], name: str) -> dict[str, Any]:
    """One direction of a link."""
    (found,) = (one for one in ir["links"] if one["name"] == name)
    return dict(found)


def capacity(one: dict[str, Any]) -> Rates | None:
    """bit/s from each time on, in seconds; None where there is no limit."""
    kind = one["capacity"]
    if kind == "infinite":
        return None
    if "constant" in kind:
        return [(0, kind["constant"])]
    return [(at / S, rate) for at, rate in kind["schedule"]["steps"]]


def of_kind(ir: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    """All flows of a kind."""
    return [flow for flow in ir["flows"] if kind in flow["kind"]]


def times(flow: dict[str, Any]) -> tuple[float, float | None]:
    """Start and end, in seconds."""
    return flow["start"] / S, None if flow["stop"] is None else flow["stop"] / S


def media_is_that_of_section_4_3(ir: dict[str, Any], maximum: float = 1.5) -> None:
    """Video of 150 kbit/s to 1.5 Mbit/s that begins at 150 kbit/s and obeys within 200 ms, audio of 20 kbit/s."""
    for flow in of_kind(ir, "media"):
        spec = flow["kind"]["media"]
        assert (spec["video"]["min"], spec["video"]["max"]) == (150_000, round(maximum * 1e6))
        assert spec["start_rate"] == 150_000
        assert 10 <= spec["video"]["fps"] <= 30
        assert spec["audio"]["rate"] == 20_000


def path_is_that_of_section_4_2(one: dict[str, Any], delay: float | None = 50) -> None:
    """300 ms of drop-tail queue, no loss, jitter of at most 30 ms as RFC 8868 section 4.5.3 draws it."""
    settings = one["settings"]
    assert settings["queue"]["time"] == 300 * MS
    assert settings["discipline"] == "drop_tail"
    assert settings["loss"] == "none"
    jitter = settings["jitter"]["rfc8868"]
    assert (jitter["std"], jitter["n_std"], jitter["mean"]) == (5 * MS, 3, 0)
    if delay is not None:
        assert settings["delay"] == delay * MS


@pytest.mark.parametrize("name", CASES)
def test_a_case_is_what_its_section_says(name: str) -> None:
    case, ir = CASES[name], engine(name)
    assert ir["duration"] == case.duration * S
    forward, back = link(ir, "bottleneck"), link(ir, "bottleneck.back")
    assert capacity(forward) == case.capacity(case.ratios)
    assert capacity(back) == (case.capacity(case.back) or None)
    path_is_that_of_section_4_2(forward, case.delay)
    media_is_that_of_section_4_3(ir, case.maximum)
    assert [times(flow) for flow in of_kind(ir, "media")] == case.flows
    assert len({flow["kind"]["media"]["controller"]["name"] for flow in of_kind(ir, "media")}) == 1


@pytest.mark.parametrize("name", BY_UDP)
def test_background_udp_leaves_what_the_link_has_otherwise(name: str) -> None:
    case, ir = CASES[BY_UDP[name]], engine(name)
    assert ir["duration"] == case.duration * S
    assert [times(flow) for flow in of_kind(ir, "media")] == case.flows
    media_is_that_of_section_4_3(ir)
    expected = {("left", "right"): case.ratios}
    if case.back:
        expected["right", "left"] = case.back
    sources = {(flow["from"], flow["to"]): flow for flow in of_kind(ir, "udp")}
    assert sources.keys() == expected.keys()
    for ends, ratios in expected.items():
        flow, udp = sources[ends], sources[ends]["kind"]["udp"]
        assert times(flow) == (0, None)
        assert (udp["pattern"], udp["packet_size"]) == ("cbr", 1500)  # RFC 8868 section 5.3
        left = case.capacity(ratios)
        assert [(at / S, rate) for at, rate in udp["schedule"]] == [(at, PHYSICAL - rate) for at, rate in left]
    ways = ["bottleneck", "bottleneck.back"] if case.back else ["bottleneck"]
    for way in ways:
        assert capacity(link(ir, way)) == [(0, PHYSICAL)]
        path_is_that_of_section_4_2(link(ir, way))


@pytest.mark.parametrize("name", ["5.1-variable-capacity", "5.1-background-udp", "5.2-two-flows", "5.2-background-udp"])
def test_the_longer_delay_of_5_1_and_5_2_is_on_the_forward_path_alone(name: str) -> None:
    changed = Scenario.load(f"rfc8867-{name}", {"links.bottleneck.delay": "100ms"})
    ir = lower(changed).ir
    assert link(ir, "bottleneck")["settings"]["delay"] == 100 * MS
    assert link(ir, "bottleneck.back")["settings"]["delay"] == 50 * MS


def test_both_ways_of_5_3_are_one_call() -> None:
    flows = engine("5.3-congested-feedback")["flows"]
    assert [flow["kind"]["media"]["pair"] for flow in flows] == ["call.back", "call"]
    assert [(flow["from"], flow["to"]) for flow in flows] == [("left", "right"), ("right", "left")]


def test_flows_of_5_5_have_the_delays_of_the_rfc_in_their_order_of_coming() -> None:
    ir = engine("5.5-rtt-fairness")
    shared = link(ir, "bottleneck")["settings"]["delay"]
    access = {one["from"]: one["settings"]["delay"] for one in ir["links"]}
    assert [(access[flow["from"]] + shared) / MS for flow in of_kind(ir, "media")] == [10, 25, 50, 100, 150]


def tcp_is_that_of_rfc_5681(flow: dict[str, Any]) -> None:
    """Reno's window, IW of three segments (section 3.1), acknowledgements of every second one (section 4.2); losses by
    RACK-TLP, as section 4.3 allows."""
    tcp = flow["kind"]["tcp"]
    assert (tcp["algorithm"], tcp["recovery"]) == ("sack", "rack")
    assert (tcp["initial_window"], tcp["delayed_ack"], tcp["min_rto"]) == (3, True, None)


def test_5_6_has_one_long_tcp_all_the_time() -> None:
    (flow,) = of_kind(engine("5.6-long-tcp"), "tcp")
    assert times(flow) == (0, 119)
    assert flow["kind"]["tcp"]["workload"] == "long"
    assert (flow["from"], flow["to"]) == ("left", "right")
    tcp_is_that_of_rfc_5681(flow)


def test_5_7_has_ten_short_tcps_of_which_two_begin_on() -> None:
    web = of_kind(engine("5.7-short-tcp"), "tcp")
    starts = [flow["start"] / S for flow in web]
    assert (starts.count(0), len(starts)) == (2, 10)
    pauses = [start for start in starts if start]
    assert len(pauses) == 8
    assert sum(pauses) / len(pauses) == 10.0  # the mean pause of RFC 8868 section 5.1
    for flow in web:
        assert flow["kind"]["tcp"]["workload"] == {"web": {"min": 30_000, "max": 50_000, "idle": 10 * S}}
        assert (flow["from"], flow["to"], flow["stop"]) == ("left", "right", None)
        tcp_is_that_of_rfc_5681(flow)


def test_flow_two_of_5_8_pauses_from_40_to_60_s() -> None:
    flows = of_kind(engine("5.8-pause-resume"), "media")
    assert [flow["kind"]["media"]["pauses"] for flow in flows] == [[], [[40 * S, 60 * S]], []]


def test_6_1_has_priorities_that_the_capacity_can_show() -> None:
    ir = engine("6.1-priority")
    (coupling,) = ir["couplings"]
    assert coupling == {"flows": [["first", 2.0], ["second", 1.0], ["third", 1.0]], "algorithm": "active"}
    audio, share = 0.02, CASES["6.1-priority"].reference * 2 / 4
    assert 1.5 + audio < share < CASES["6.1-priority"].maximum + audio


def test_6_3_has_two_bottlenecks_on_the_way_of_the_first_flow() -> None:
    ir = engine("6.3-multiple-bottlenecks")
    assert ir["duration"] == 300 * S
    ends = {(one["from"], one["to"]): one for one in ir["links"]}
    ratios = {("a", "b"): 1.0, ("b", "c"): 4.0, ("c", "d"): 0.75}
    for way, ratio in ratios.items():
        assert capacity(ends[way]) == [(0, round(2e6 * ratio))]
        assert capacity(ends[way[::-1]]) is None
    for way in (("a", "b"), ("c", "d")):
        path_is_that_of_section_4_2(ends[way], delay=None)
    assert ends["b", "c"]["settings"]["jitter"] == "none"  # so that 2 * 15 ms are the most on the whole way
    flows = of_kind(ir, "media")
    assert [(flow["from"], flow["to"]) for flow in flows] == [("a", "d"), ("a", "b"), ("c", "d")]
    assert {times(flow) for flow in flows} == {(0, 299)}
    points = "abcd"
    for flow, delay in zip(flows, (100, 40, 40), strict=True):
        there = points[points.index(flow["from"]) : points.index(flow["to"]) + 1]
        steps = list(pairwise(there))
        assert sum(ends[one]["settings"]["delay"] for one in steps) == delay * MS
        assert sum(ends[one[::-1]]["settings"]["delay"] for one in steps) == delay * MS
    media_is_that_of_section_4_3(ir)


# The suites that come with tidegate

DELAYS = {"links.bottleneck.delay": ("50ms", "100ms")}
QUEUES = {"links.bottleneck.queue.time": ("300ms", "1000ms")}
# values in brackets: 5.1, 5.2 ("similar to" 5.1) and 5.6
BRACKETS = {"5.1": DELAYS, "5.1-udp": DELAYS, "5.2": DELAYS, "5.2-udp": DELAYS, "5.6": QUEUES}
BASIC = ("5.1", "5.2", "5.3", "5.4", "5.5", "5.6", "5.7", "5.8")
SINGLE = ("5.3", "5.3-udp", "5.4", "5.5", "5.7", "5.8", "6.1", "6.3")


def suite_case(name: str) -> dict[str, Any]:
    """What the engine gets of a case of rmcat."""
    (case,) = (case for case in Suite.load("rmcat").cases if case.name == name)
    assert case.scenario is not None
    ir: dict[str, Any] = lower(case.scenario).ir
    return ir


def test_rmcat_has_every_case_and_each_value_in_brackets() -> None:
    names = {case.name for case in Suite.load("rmcat").cases}
    expected = set(SINGLE)
    for name, brackets in BRACKETS.items():
        ((key, values),) = brackets.items()
        expected |= {f"{name},{key.split('.', 2)[2]}={value}" for value in values}
    assert expected <= names
    marking = {f"6.2-{name},discipline={discipline}" for name in BASIC for discipline in ("pie", "dualpi2")}
    assert marking <= names
    further = {name for name in names - expected - marking if "cubic" not in name and "-off," not in name}
    assert further == {"5.3-reference"}


@pytest.mark.parametrize("name", ["5.1", "5.1-udp", "5.2", "5.2-udp"])
@pytest.mark.parametrize("delay", [50, 100])
def test_delays_in_brackets_are_what_they_say(name: str, delay: int) -> None:
    ir = suite_case(f"{name},delay={delay}ms")
    path_is_that_of_section_4_2(link(ir, "bottleneck"), delay)
    assert link(ir, "bottleneck.back")["settings"]["delay"] == 50 * MS


@pytest.mark.parametrize("name", ["5.6", "5.6-cubic"])
@pytest.mark.parametrize("queue", [300, 1000])
def test_queues_in_brackets_are_what_they_say(name: str, queue: int) -> None:
    ir = suite_case(f"{name},queue.time={queue}ms")
    assert link(ir, "bottleneck")["settings"]["queue"]["time"] == queue * MS
    (tcp,) = of_kind(ir, "tcp")
    assert tcp["kind"]["tcp"]["algorithm"] == ("cubic" if "cubic" in name else "sack")
    assert times(tcp) == (0, 119)
    assert [times(flow) for flow in of_kind(ir, "media")] == [(5, 119)]


def test_what_5_3_is_compared_with_differs_in_the_way_back_alone() -> None:
    ours, reference = suite_case("5.3"), suite_case("5.3-reference")
    assert capacity(link(reference, "bottleneck.back")) is None
    for ir in (ours, reference):
        ir["name"] = ""
        ir["links"] = [one for one in ir["links"] if one["name"] != "bottleneck.back"]
    assert ours == reference


@pytest.mark.parametrize("name", BASIC)
@pytest.mark.parametrize("discipline", ["pie", "dualpi2"])
def test_6_2_is_the_basic_case_with_a_queue_that_marks(name: str, discipline: str) -> None:
    brackets = BRACKETS.get(name, {})
    plain = suite_case(name + "".join(f",{key.split('.', 2)[2]}={values[0]}" for key, values in brackets.items()))
    marking = suite_case(f"6.2-{name},discipline={discipline}")
    found = link(marking, "bottleneck")["settings"]["discipline"]
    assert list(found) == [discipline]
    assert found[discipline].get("ecn", True)
    # contenders with ECN set the codepoint, and no others
    assert {flow["kind"]["media"]["ecn"] for flow in of_kind(marking, "media")} == {"off"}  # those of gcc
    for ir in (plain, marking):
        ir["name"] = ""
        for one in ir["links"]:
            one["settings"]["discipline"] = ""
    assert plain == marking


def test_schemes_that_use_ecn_have_their_codepoints_in_6_2() -> None:
    (case,) = (case for case in Suite.load("rmcat").cases if case.name == "6.2-5.1,discipline=pie")
    found = {}
    for controller in ("nada", "scream"):
        (flow,) = of_kind(lower(case.with_controller(controller)).ir, "media")
        found[controller] = flow["kind"]["media"]["ecn"]
    assert found == {"nada": "ect0", "scream": "ect1"}


def test_every_case_of_rmcat_and_smoke_has_rules_and_every_rule_a_reason() -> None:
    for name in ("rmcat", "smoke"):
        suite = Suite.load(name)
        for case in suite.cases:
            rules = [rule.name for rule in suite.rules if verdicts.applies(rule, case.name, "gcc")]
            assert "no-starvation" in rules, case.name
            # behind a queue of 1 s that TCP fills nothing can be in time
            assert ("media-in-time" in rules) == (not case.name.endswith("1000ms")), case.name
            assert len(rules) >= 4, (case.name, rules)
        for rule in suite.rules:
            assert "RFC 88" in rule.source, rule.name
            # RFC 8868 section 3 has 0.333; all other numbers are ours
            assert rule.why or rule.at_least == 0.333, rule.name


def test_smoke_is_small() -> None:
    suite = Suite.load("smoke")
    assert len(suite.cases) == 6
    assert {"5.1", "5.6"} <= {case.name for case in suite.cases}
    seconds = sum(case.scenario.duration / S for case in suite.cases if case.scenario is not None)
    assert seconds * suite.table.seeds <= 3000


# RFC 8869

INTENSITIES_DOWN = [f"{0.7 * step:.1f}" for step in range(1, 16)]  # 0.7 to 10.5; the RFC prints "9,1"
INTENSITIES_UP = INTENSITIES_FAR = [f"{0.7 * step:.1f}" for step in range(1, 11)]  # 0.7 to 7.0
CELLULAR = {
    # 3GPP case, user intensities, km/h, most Mbit/s of other traffic in a cell
    "2.1-down": (1, INTENSITIES_DOWN, (3, 30), 4),
    "2.1-up": (1, INTENSITIES_UP, (3, 30), 2),
    "2.2-down": (3, INTENSITIES_FAR, (3,), 2),
    "2.2-up": (3, INTENSITIES_FAR, (3,), 1),
}
WIRES = {"10ms": 40, "65ms": 150}
"""Round trip in ms with a wire of this delay: an idle cell adds some 20 ms."""


@pytest.fixture(scope="module")
def wireless() -> Suite:
    return Suite.load("rmcat-wireless")


@pytest.mark.parametrize("name", CELLULAR)
def test_cellular_cases_are_what_rfc_8869_says(name: str, wireless: Suite) -> None:
    number, intensities, speeds, most = CELLULAR[name]
    found = set()
    for case in wireless.cases:
        if not case.name.startswith(name):
            continue
        assert case.scenario is not None
        made = case.scenario
        lte, (link,) = made.lte, made.links
        assert lte is not None
        assert (lte.sites, lte.case, lte.bandwidth, lte.scheduler, lte.antennas) == (7, number, "10MHz", "pf", "2x2")
        assert (made.duration / S, case.begin_between) == (91, (30 * S, 60 * S))
        callers, others = lte.users
        assert callers.arrival is not None
        assert callers.arrival.stay == 30 * S
        call, load = made.flows
        ends = ("fixed", callers.name, "fixed", others.name)
        assert (call.from_, call.to, load.from_, load.to) == (
            ends if name.endswith("down") else (ends[1], ends[0], ends[3], ends[2])
        )
        media = call.media
        assert media is not None
        assert isinstance(media.video, StatisticalVideo)
        assert (media.video.min, media.video.max, media.start_rate) == (150_000, 1_500_000, 150_000)
        assert media.audio is not False
        assert media.audio.rate == 20_000
        assert load.tcp is not None
        assert isinstance(load.tcp.workload, Web)
        web = load.tcp.workload.web
        # a download without queueing delay pauses for the mean pause between two files
        assert others.count * web.max * 8 / (web.idle / S) / 21 == most * 1e6
        found.add((callers.arrival.rate, round(lte.speed / 1000), str(link.delay)))
    expected = {(Frequency.parse(f"{one}/s"), speed, wire) for one in intensities for speed in speeds for wire in WIRES}
    assert found == expected


@pytest.mark.parametrize(("wire", "round_trip"), WIRES.items())
def test_wires_make_the_round_trips_of_rfc_8869(wire: str, round_trip: int, wireless: Suite) -> None:
    scenario = wireless.cases[0].scenario
    assert scenario is not None
    data = scenario.with_changes({"links.internet.delay": wire, "duration": "5s"}).to_dict()
    data["lte"]["users"] = [{"name": "user", "place": [100, 0]}]
    udp = {"rate": "50kbps", "packet_size": "200B"}
    data["flows"] = [
        {"name": "down", "from": "fixed", "to": "user", "udp": udp},
        {"name": "up", "from": "user", "to": "fixed", "udp": udp},
    ]
    flows = run(Scenario.from_dict(data), record="summary").summary["flows"]
    assert sum(flow["one_way_delay_ms_mean"] for flow in flows) == pytest.approx(round_trip, abs=5)


def test_wifi_cases_are_listed_and_not_run(wireless: Suite) -> None:
    wifi = [case for case in wireless.cases if case.name.startswith("3.")]
    assert [case.name for case in wifi] == [f"3.1-{one}" for one in "abcde"] + [f"3.2-{one}" for one in "abcdefg"]
    assert all(case.scenario is None and "Wi-Fi" in case.not_run for case in wifi)


def test_the_quick_part_of_rmcat_wireless_is_small(wireless: Suite) -> None:
    quick = wireless.only(("*rate=2.8/s,*delay=10ms",))
    assert {case.name.split(",")[0] for case in quick.cases} == set(CELLULAR)
    assert len(quick.cases) == 6
