"""Media flows whose feedback keeps RTCP's 5 %: closed forms, limits, and what `docs/avpf.md` says."""

from __future__ import annotations

import math
from typing import Any

import pytest

import avpf
import tidegate
from tidegate import Feedback, Flow, Link, Media, Rate, Run, Scenario, ScenarioError

COMPENSATION = math.e - 1.5


def call(seconds: int, link: dict[str, Any] | None = None, **media: Any) -> Run:
    fast = {"name": "fast", "capacity": "10Mbps", "delay": "50ms", "queue": {"time": "300ms"}}
    scenario = Scenario(
        name="call",
        duration=f"{seconds}s",
        links=[Link(**{**fast, **(link or {})})],
        flows=[Flow(name="call", media=Media(**media))],
    )
    return tidegate.run(scenario, seed=1, record="packets")


# --- closed forms ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("scheme", "least"), [("draft-02, TWCC", 0.99), ("gcc, TWCC", 0.98), ("gcc, RFC 8888", 0.98)])
@pytest.mark.parametrize("rules", ["avpf", "avpf, reduced size"])
def test_who_always_has_something_to_say_sends_by_turns_early_and_regular(
    scheme: str, least: float, rules: str
) -> None:
    """An interval waits for 0.5 to 1.5 Td over e - 3/2 and is reconsidered; the one that an early packet skips is not.

    So two packets take Td (1 + 1 / (e - 3/2)). The other end sends one each Td, and sizes average out. Where frames are
    left out there is now and then nothing to say.
    """
    receiver = 2 / (1 + 1 / COMPENSATION)
    assert least < avpf.mean("100kbps", scheme, rules, "share") / (0.05 * (1 + receiver) / 2) < 1.01


@pytest.mark.parametrize("link", avpf.LINKS)
@pytest.mark.parametrize("scheme", avpf.SCHEMES)
def test_avp_reports_every_360_s_over_the_bandwidth_in_kbits(link: str, scheme: str) -> None:
    numbers = avpf.numbers(link, scheme, "avp", 1)
    reports = avpf.LONG / (360_000 / Rate(link))
    # the deviation of one interval is 0.18 of its mean
    assert numbers["from_receiver"] == pytest.approx(reports, abs=1 + 4 * 0.18 * math.sqrt(reports))
    assert numbers["share"] < 0.01


@pytest.mark.parametrize("link", avpf.LINKS)
def test_regular_packets_use_what_is_theirs_and_t_rr_interval_saves_it(link: str) -> None:
    assert avpf.mean(link, "gcc-remb", "avpf", "share") == pytest.approx(0.05, rel=0.01)
    assert avpf.numbers(link, "gcc-remb", "avpf, reduced size, rr_interval", 1)["share"] < 0.4 * 0.05
    # what is saved at the sender and on regular packets is there for feedback
    plain, spared = (
        avpf.mean(link, "gcc, TWCC", rules, "age_s")
        for rules in ("avpf, reduced size", "avpf, reduced size, rr_interval")
    )
    assert (spared < plain) == (link != "2.5Mbps"), "where regular packets come faster than every 50 ms, they wait less"


@pytest.mark.parametrize("link", avpf.LINKS)
@pytest.mark.parametrize("scheme", avpf.SCHEMES)
@pytest.mark.parametrize("rules", ["avpf", "avpf, reduced size", "avpf, reduced size, rr_interval", "avp"])
def test_nothing_takes_more_than_its_5_percent_and_what_early_packets_bring_forward(
    link: str, scheme: str, rules: str
) -> None:
    numbers = avpf.numbers(link, scheme, rules, 1)
    assert 0.001 < numbers["share"] < 0.053
    assert numbers["largest"] < 500


def test_free_feedback_knows_no_share() -> None:
    free = avpf.numbers("100kbps", "gcc, TWCC", "free", 1)
    assert free["rate"] == pytest.approx(20, rel=0.05)
    assert free["share"] > 0.08
    assert call(5).digest == call(5, feedback=Feedback(profile="free")).digest


# --- limits ---------------------------------------------------------------------------------------

FULL = {"controller": "fixed", "start_rate": "2.5Mbps", "min_rate": "2.5Mbps", "max_rate": "2.5Mbps"}
FINE = {"controller": "fixed", "video": False, "audio": {"rate": "20kbps", "interval": "5ms"}}


@pytest.mark.parametrize("media", [FULL, FINE], ids=["video", "200 packets a second"])
@pytest.mark.parametrize("kind", ["twcc", "ccfb"])
@pytest.mark.parametrize("reduced", [False, True])
def test_where_per_packet_feedback_needs_more_than_there_is_the_newest_is_reported(
    media: dict[str, Any], kind: str, reduced: bool
) -> None:
    """2 bytes for each of 200 packets/s are 3.2 kbit/s; 5 % of 20 kbit/s is 1."""
    feedback = Feedback(format=kind, profile="avpf", bandwidth="20kbps", reduced_size=reduced)
    reports = avpf.reports(call(1200, **media, feedback=feedback), 20_000)
    assert 0.049 < reports["share"] < 0.058
    assert reports["largest"] < 1500
    assert reports["longest_s"] < 30
    table = call(60, **media, feedback=feedback).table("truth")
    assert table.num_rows > 0


def test_reduced_size_is_feedback_alone_and_needs_leave() -> None:
    for reduced in (False, True):
        feedback = Feedback(profile="avpf", bandwidth="200kbps", reduced_size=reduced)
        contents = call(30, feedback=feedback).table("rtcp").to_numpy("contents")
        assert ("TWCC" in contents) is reduced
        assert "RR+SDES+TWCC" in contents


def test_both_directions_of_a_call_share_the_session() -> None:
    run = call(600, both_ways=True, feedback=Feedback(profile="avpf", bandwidth="100kbps"))
    table = run.table("rtcp")
    share = float(table.to_numpy("size").sum()) * 8 / 600 / 100_000
    # both have always something to say
    assert share == pytest.approx(0.05 * 2 / (1 + 1 / COMPENSATION), rel=0.02)


# --- the scenario's keys --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"profile": "savpf"}, r'profile: found "savpf"; expected "free", "avp" or "avpf"; did you mean avpf\?'),
        ({"bandwidth": "0Mbps"}, r'bandwidth: found "0Mbps"; expected more than zero'),
        ({"reduced_size": True}, r'reduced_size: found true; it needs profile = "avpf", and profile is "free"'),
        (
            {"profile": "avp", "rr_interval": "1s"},
            r'rr_interval: found "1s"; it needs profile = "avpf", and profile is "avp"',
        ),
        ({"profile": "avpf", "reports": "1s"}, r'reports: found "1s"; with profile = "avpf" use rr_interval instead'),
    ],
)
def test_what_does_not_fit_is_named(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(ScenarioError, match=rf"flows.call.media.feedback.{message}"):
        Scenario.load("home-broadband").with_changes({"flows.call.media.feedback": keys})


# --- the page -------------------------------------------------------------------------------------


def test_what_the_page_says() -> None:
    def mean(link: str, rules: str, metric: str, scheme: str = "gcc, TWCC") -> float:
        return avpf.mean(link, scheme, rules, metric)

    small, delay = "avpf, reduced size, rr_interval", "one_way_delay_ms_p95"
    for link in avpf.LINKS:
        assert mean(link, small, "share") < mean(link, "free", "share")
        if link != "100kbps":
            assert mean(link, small, "utilisation") == pytest.approx(mean(link, "free", "utilisation"), abs=0.02)
    # the window counts what no report has told of yet: the fewer there are, the more pictures are left out
    pictures = 30 * avpf.LONG
    assert 0.045 < mean("100kbps", "free", "left_out_frames") / pictures < 0.055
    assert 0.31 < mean("100kbps", small, "left_out_frames") / pictures < 0.35
    assert 0.5 < mean("100kbps", "avpf", "left_out_frames") / pictures < 0.54
    used = [mean("100kbps", rules, "utilisation") for rules in ("avpf", small, "free")]
    assert used == [pytest.approx(share, abs=0.015) for share in (0.675, 0.74, 0.87)]
    # libwebrtc and the draft differ in what a quarter of a second costs
    assert mean("100kbps", "free", delay) == pytest.approx(136, abs=5)
    assert mean("100kbps", "avpf", delay) == pytest.approx(194, abs=10)
    assert mean("100kbps", "free", delay, "draft-02, TWCC") == pytest.approx(175, abs=10)
    assert mean("100kbps", "avpf", delay, "draft-02, TWCC") == pytest.approx(296, abs=30)
    losses = [avpf.numbers("100kbps", "draft-02, TWCC", "avpf", seed)["loss_fraction"] for seed in avpf.SEEDS]
    assert 0.002 < min(losses) < 0.004
    assert 0.02 < max(losses) < 0.04
    assert mean("100kbps", "avpf", "age_s") == pytest.approx(0.245, abs=0.005)
    for scheme in avpf.SCHEMES:
        assert mean("100kbps", "avp", "longest_s", scheme) > 3
        assert mean("500kbps", "avp", "longest_s", scheme) < 3
    # silence: nearly three seconds without a report, and the older presets lower their rate by a fifth each second
    for scheme in ("draft-02, TWCC", "gcc-remb"):
        assert 0.22 < mean("100kbps", "avp", "utilisation", scheme) < 0.26
    # today's does not: its round trips come from receiver reports, and it leaves a picture in four out
    assert mean("100kbps", "avp", "utilisation") == pytest.approx(0.72, abs=0.015)
    assert 0.235 < mean("100kbps", "avp", "left_out_frames") / pictures < 0.255
    assert 1.8 < mean("100kbps", "avp", delay) / mean("100kbps", "free", delay) < 2.3
    late = [
        avpf.numbers("100kbps", scheme, "avp", seed)["falls_s"]
        for scheme in ("gcc, TWCC", "gcc, RFC 8888")
        for seed in avpf.SEEDS
    ]
    assert 1.3 < min(late) < 1.5
    assert 35 < max(late) < 45
    # at one report in 0.72 s
    assert 1.2 < mean("500kbps", "avp", delay) / mean("500kbps", "free", delay) < 1.35
    assert mean("500kbps", "avp", "utilisation") == pytest.approx(0.77, abs=0.025)
    assert 0.015 < mean("500kbps", "avp", "loss_fraction", "draft-02, TWCC") < 0.07
    for name, (least, most) in {"falls_s": (1.8, 2.5), "largest_ms": (1.35, 1.8)}.items():
        times = mean("500kbps", "avp", name, "gcc-remb") / mean("500kbps", "free", name, "gcc-remb")
        assert least < times < most
    # at 2.5 Mbit/s an interval of AVP is 144 ms
    assert mean("2.5Mbps", "avp", "utilisation") == pytest.approx(mean("2.5Mbps", "free", "utilisation"), abs=0.02)


def test_two_thirds_of_what_a_call_leaves_out_under_avpf_are_transients_that_its_window_causes() -> None:
    """At 100 kbit/s the first frame of a transient takes the bytes of all eight; seven pictures are not encoded."""

    def left_out(rules: str, **video: Any) -> float:
        run = avpf.play("100kbps", "gcc, TWCC", rules, 1, **video)
        return float(run.metrics("call")["left_out_frames"]) / (30 * avpf.LONG)

    # a frame of the transient is never smaller than the mean, so that with a burst of one byte none is large
    assert left_out("free", burst="1B") == 0
    assert left_out("avpf", burst="1B") == pytest.approx(0.18, abs=0.01)
    assert left_out("avp", burst="1B") == pytest.approx(0.12, abs=0.02)
    assert left_out("avpf") == avpf.numbers("100kbps", "gcc, TWCC", "avpf", 1)["left_out_frames"] / (30 * avpf.LONG)
