"""Repair of lost video through whole scenarios: settings, closed forms, figures, and what the viewer gets."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.media import link as media_link
from support.media import needs_av, needs_clips, needs_vmaf, sent, value
from tidegate import Media, Run, Scenario, run
from tidegate.errors import ScenarioError
from tidegate.media import judge
from tidegate.media._received import received

OURS = "procedural:size=96x80,codec=intra,rungs=4,vmaf_every=0"


@pytest.fixture(autouse=True)
def own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    monkeypatch.setenv("TIDEGATE_CACHE", str(tmp_path_factory.getbasetemp() / "media-cache"))


def call(repair: Any = None, loss: float = 0.0, playout: Any = "1s", **changes: Any) -> Scenario:
    """Video of 1 Mbit/s over a wide link of 50 ms there and back that loses packets on the way there."""
    plays = {"fixed": playout} if isinstance(playout, str) else playout
    media = {"controller": "fixed:1Mbps", "video": {"source": "ideal"}, "playout": plays}
    media |= {"repair": "none" if repair is None else repair}
    media |= changes.pop("media", {})
    return Scenario.from_dict(
        {
            "duration": "120s",
            "links": [{"capacity": "20Mbps", "delay": "25ms", "loss": loss, "back": {"loss": 0.0}}],
            "flows": [{"name": "call", "media": media}],
            **changes,
        }
    )


# --- settings ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("repair", "message"),
    [
        ("{ nack = 3 }", "nack: found 3; expected true or false"),
        ("{ nack = { requests = 0 } }", "nack.requests: found 0"),
        ('{ nack = { keep = "0s" } }', 'nack.keep: found "0s"; expected more than zero'),
        ("{ nack = { retries = 2 } }", "nack.retries"),
        ('{ pli = { interval = "0s" } }', 'pli.interval: found "0s"; expected more than zero'),
        ("{ fec = true }", "fec: found true; expected false, or a table with packets and parity"),
        ("{ fec = { parity = 1 } }", "fec.packets"),
        ("{ fec = { packets = 3, parity = 4 } }", "fec.parity: found 4; expected from 1 to packets (3)"),
        ("{ fec = { packets = 300 } }", "fec.packets: found 300"),
        ("{ fex = true }", "repair.fex"),
        ('"nack"', 'repair: found "nack"; expected "auto", "none", or a table with nack, pli and fec'),
    ],
)
def test_what_is_wrong_is_said_with_file_line_and_key(repair: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "call.toml"
    file.write_text(
        f'duration = "5s"\n[[links]]\ncapacity = "2Mbps"\n[[flows]]\nmedia.controller = "gcc"\nmedia.repair = {repair}\n'
    )
    with pytest.raises(ScenarioError) as error:
        Scenario.load(file)
    text = str(error.value)
    assert f"{file}:6:" in text
    assert message in text


def test_repair_needs_video_and_packets_that_still_fit() -> None:
    audio = {"video": False, "audio": {}, "min_rate": "20kbps"}
    with pytest.raises(ScenarioError, match="the flow has no video to repair"):
        call({"nack": True}, media=audio)
    call({}, media=audio)
    # 24 bytes of header, and 12 for the marks of a key frame, which parity protects with the other extensions
    largest = 65_535 - 28 - 24 - 12
    call({"nack": True}, media={"payload": f"{largest - 2}B"})
    call({"fec": {"packets": 2}}, media={"payload": f"{largest - 28 - 12}B"})
    call({"nack": True}, media={"payload": f"{largest + 12 - 2}B", "marks": False})
    with pytest.raises(ScenarioError, match="needs the marks to assign restored packets to frames"):
        call({"fec": {"packets": 2}}, media={"marks": False})
    for repair in ({"nack": True}, {"fec": {"packets": 2}}):
        with pytest.raises(ScenarioError, match="payload"):
            call(repair, media={"payload": f"{largest}B"})


def test_without_repair_nothing_changes() -> None:
    unset: tuple[Any, ...] = ("none", {}, {"nack": False})
    plain, *others = (run(call(repair, 0.02, duration="5s"), record="packets") for repair in unset)
    assert {plain.digest} == {other.digest for other in others}
    metrics = plain.metrics()
    names = ("nacks", "retransmissions", "repaired_resent", "repaired_parity", "plis", "repair_overhead")
    assert [metrics[name] for name in names] == [0] * len(names)
    assert metrics["residual_loss_fraction"] == metrics["loss_fraction"]
    assert "repairs" not in plain.tables


def test_a_file_keeps_what_it_says_of_repair_and_a_method_replaces_none() -> None:
    for repair in ("none", {}, {"nack": True}):
        scenario = call(repair)
        assert scenario.to_dict()["flows"][0]["media"]["repair"] == repair
        assert Scenario.parse(scenario.to_toml()).to_dict() == scenario.to_dict()
    # without a word a call is repaired as WebRTC's is, and audio is not
    assert Media().repair_methods == Media(repair={"nack": True, "pli": True}).repair_methods
    assert not Media(video=False, audio={}).repair_methods.repairs
    assert "repair" not in Media().to_dict()
    media = call("none").with_changes({"flows.call.media.repair.nack": True}).flows[0].media
    assert media is not None
    assert media.repair_methods.to_dict() == {"nack": True}


def test_the_record_does_not_change_the_run() -> None:
    everything = {"nack": True, "pli": True, "fec": {"packets": 5, "parity": 1, "by_frame": True}}
    scenario = call(everything, 0.05, duration="20s")
    digests = {run(scenario, record=level).digest for level in ("summary", "series", "packets")}
    assert len(digests) == 1


# --- closed forms ---------------------------------------------------------------------------------------


def test_one_retransmission_leaves_the_square_of_the_loss() -> None:
    p = 0.05
    squares = [run(call({"nack": {"requests": 1}}, p), seed).metrics() for seed in (1, 2, 3)]
    residual = np.mean([metrics["residual_loss_fraction"] for metrics in squares])
    # 36 000 packets, of which 90 stay lost: four standard deviations are 0.00105
    assert residual == pytest.approx(p * p, abs=0.00105)
    for metrics in squares:
        # the network's loss stays the network's: four standard deviations of 12 600 packets are 0.0078
        assert metrics["loss_fraction"] == pytest.approx(p, abs=0.0078)
        # each loss is sent once more, with OSN
        assert metrics["repair_overhead"] == pytest.approx(p, abs=0.009)
        assert metrics["repaired_resent"] == pytest.approx(metrics["retransmissions"] * (1 - p), rel=0.05)
        assert metrics["nacks"] <= metrics["retransmissions"]
        assert metrics["sending_rate_bps"] == pytest.approx(1e6 * 1252 / 1224, rel=0.03), "repair is in the target"


def test_requests_go_on_until_the_packet_is_there_or_due() -> None:
    p = 0.3
    metrics = run(call({"nack": True}, p, playout="2s"), 1).metrics()
    assert metrics["loss_fraction"] == pytest.approx(p, abs=0.02)
    # nine times within a second and a few packets of 12 000 are still missing: 0.3^10 is 6e-6
    assert metrics["residual_loss_fraction"] < 1e-3
    # every packet of video is sent 1 / (1 - p) times
    assert metrics["repair_overhead"] == pytest.approx(p / (1 - p), abs=0.03)


@pytest.mark.parametrize(("packets", "parity"), [(5, 1), (10, 2)])
def test_parity_leaves_what_the_closed_form_says(packets: int, parity: int) -> None:
    p, protected = 0.05, packets // parity
    all_of = [run(call({"fec": {"packets": packets, "parity": parity}}, p), seed).metrics() for seed in (1, 2, 3)]
    expected = p * (1 - (1 - p) ** protected)
    residual = np.mean([metrics["residual_loss_fraction"] for metrics in all_of])
    # of 33 000 packets 370 stay lost, in groups of up to five: 4 sqrt(5 * 370) / 33 000
    assert residual == pytest.approx(expected, abs=0.0052)
    assert residual < 0.5 * p
    for metrics in all_of:
        # parity is as long as the longest packet of its group and 28 bytes more
        assert parity / packets < metrics["repair_overhead"] < parity / packets * 1.5
        assert metrics["nacks"] == metrics["retransmissions"] == metrics["repaired_resent"] == 0


def test_both_together_leave_less_than_each() -> None:
    ways: list[dict[str, Any]] = [
        {"nack": {"requests": 1}},
        {"fec": {"packets": 5}},
        {"nack": {"requests": 1}, "fec": {"packets": 5}},
    ]
    by_request, by_parity, both = (run(call(repair, 0.1), 1).metrics()["residual_loss_fraction"] for repair in ways)
    assert both < 0.5 * by_request < by_request < by_parity


def test_an_adaptive_playout_waits_for_retransmissions() -> None:
    adaptive = {"adaptive": {"min": "0s", "max": "1s"}}
    cases: list[tuple[Any, float]] = [(None, 0.0), (None, 0.02), ({"nack": True}, 0.02)]
    whole, plain, repaired = (run(call(repair, p, adaptive, duration="60s")).metrics() for repair, p in cases)
    assert whole["without_picture_s"] < 0.5
    # the first frame that is lost takes with it all later ones
    assert plain["frames_rendered"] < 0.1 * plain["frames_sent"]
    assert plain["without_picture_s"] > 50
    assert repaired["frames_rendered"] >= repaired["frames_sent"] - 20, "what is on its way at the end"
    assert repaired["residual_loss_fraction"] < 1e-3
    # the price is a round trip and what finds the gap
    added = repaired["frame_delay_ms_mean"] - whole["frame_delay_ms_mean"]
    assert 30 < added < 200


@pytest.mark.parametrize("profile", ["free", "avp", "avpf"])
def test_requests_go_as_the_profile_lets_them(profile: str) -> None:
    feedback = {"profile": profile, "format": "none"}
    done = run(call({"nack": True}, 0.02, duration="60s", media={"feedback": feedback}), record="packets")
    rtcp = done.table("rtcp")
    contents = np.array([str(content).split("+") for content in rtcp.to_numpy("contents")], dtype=object)
    mine = rtcp.to_numpy("from_receiver")
    alone = sum(1 for content, ours in zip(contents, mine, strict=True) if ours and content == ["NACK"])
    asked = sum(1 for content, ours in zip(contents, mine, strict=True) if ours and "NACK" in content)
    assert asked == done.metrics()["nacks"] > 20
    if profile == "free":
        assert alone > 0.9 * asked
    else:
        assert alone == 0, "in compounds"
        # what RTCP may use: 5 % of the session's 2.5 Mbit/s, on average over intervals that are drawn
        assert done.metrics()["feedback_rate_bps"] < 0.05 * 2.5e6 * 1.02
    assert done.metrics()["residual_loss_fraction"] < (0.02 if profile == "avp" else 0.005)


def test_key_frames_come_on_demand() -> None:
    plain, asked = (
        run(call(repair, 0.01, playout="100ms", duration="60s")).metrics() for repair in (None, {"pli": True})
    )
    assert (plain["plis"], plain["key_frames"]) == (0, 1)
    assert asked["key_frames"] > 30
    # a request that comes while the key frame is under way asks for none
    assert asked["key_frames"] - 1 <= asked["plis"] <= 60 / 0.3


# --- the picture ------------------------------------------------------------------------------------------


def lossy(repair: Any, loss: float = 0.05, **media: Any) -> Run:
    scenario = media_link(loss=loss, repair=repair or "none", **media)
    return sent(scenario, OURS)[0]


def test_a_repaired_packet_arrives_when_it_is_repaired() -> None:
    done, ladder = sent(media_link(loss=0.05, repair={"nack": True}), OURS)
    got = received(done, ladder)
    packets, repairs = done.table("packets"), done.table("repairs")
    video = packets.to_numpy("kind") == "video"
    arrived = packets.to_numpy("arrived_s")[video].astype(float)
    numbers = packets.to_numpy("rtp_sequence")[video].astype(int)
    expected = dict(zip(numbers.tolist(), arrived.tolist(), strict=True))
    assert sum(math.isnan(time) for time in expected.values()) > 5
    for number, time in zip(repairs.to_numpy("rtp_sequence").tolist(), repairs.to_numpy("t_s").tolist(), strict=True):
        assert math.isnan(expected[number])
        expected[number] = time
    flat = np.concatenate(got.arrived_s)[: len(expected)]
    wanted = np.array(list(expected.values()))
    assert np.where(np.isinf(flat), math.nan, flat).tolist() == pytest.approx(wanted.tolist(), nan_ok=True)
    assert set(repairs.to_numpy("by").tolist()) == {"retransmission"}


@pytest.mark.parametrize("repair", [{"nack": True}, {"fec": {"packets": 2, "parity": 2}}])
def test_what_is_repaired_is_seen(repair: Any) -> None:
    plain, repaired = judge(lossy(None)), judge(lossy(repair))
    damaged = [
        value(metrics, "picture_frames_lost") + value(metrics, "picture_frames_damaged")
        for metrics in (plain, repaired)
    ]
    assert damaged[0] > 0.05
    # two packets of parity for two of media lose what loses both: 5 % of 5 %
    assert damaged[1] < (0.02 if "nack" in repair else 0.4 * damaged[0])
    # parity takes its part of the target: what is encoded is less, and more of it is seen
    lost = [
        value(metrics, "picture_psnr_encoded_db") - value(metrics, "picture_psnr_db") for metrics in (plain, repaired)
    ]
    assert lost[1] < 0.5 * lost[0]


@pytest.mark.slow
@needs_av
@needs_clips
@needs_vmaf
@pytest.mark.parametrize("controller", ["fixed:1Mbps", "gcc"])
def test_requests_bring_back_what_losses_cost(controller: str) -> None:
    def seen(loss: float, repair: Any) -> tuple[float, float]:
        # reports at these times leave the losses as they were before libwebrtc's
        repair = {**repair, "feedback": {"reports": "rfc3550"}}
        scenario = Scenario.from_dict(
            {
                "duration": "30s",
                "links": [{"capacity": "5Mbps", "delay": "25ms", "loss": loss, "back": {"loss": 0.0}}],
                "flows": [{"name": "call", "media": {"controller": controller, "start_rate": "1Mbps", **repair}}],
            }
        )
        judged = judge(sent(scenario, "bikes:size=352x288")[0])
        return value(judged, "picture_vmaf"), value(judged, "picture_psnr_db")

    without_loss, hit, restored = (
        seen(loss, {"repair": repair}) for loss, repair in ((0.0, "none"), (0.02, "none"), (0.02, {"nack": True}))
    )
    for measure, undamaged, lost, repaired, cost in zip(
        ("VMAF", "PSNR"), without_loss, hit, restored, (5, 3), strict=True
    ):
        print(
            f"{controller}: {measure} {undamaged:.2f} without loss, {lost:.2f} with 2 %, {repaired:.2f} with requests"
        )
        assert lost < undamaged - cost
        assert repaired - lost >= 0.9 * (undamaged - lost), measure


def test_packets_that_are_late_and_restore_others_too_late_count_once() -> None:
    """All media are late after the warm-up, and what parity restores then is late, too: 345 late of 344 that arrived."""
    scenario = Scenario.from_dict(
        {
            "name": "late",
            "duration": "30s",
            "warmup": "15s",
            "links": [
                {
                    "name": "l",
                    "from": "a",
                    "to": "b",
                    "capacity": "4Mbps",
                    "delay": "50ms",
                    "queue": {"time": "1s"},
                    "loss": 0.6,
                    "jitter": {"uniform": "20ms"},
                },
                {"name": "back", "from": "b", "to": "a", "capacity": "4Mbps", "delay": "50ms"},
            ],
            "flows": [
                {
                    "name": "call",
                    "from": "a",
                    "to": "b",
                    "media": {
                        "controller": "fixed",
                        "start_rate": "1Mbps",
                        "playout": {"fixed": "1ms"},
                        "repair": {"fec": {"packets": 2}},
                    },
                },
                {"name": "noise", "from": "a", "to": "b", "start": "5s", "udp": {"rate": "3.9Mbps"}},
            ],
        }
    )
    for seed in range(1, 7):
        metrics = run(scenario, seed=seed).metrics("call")
        assert 0.99 < metrics["residual_loss_fraction"] <= 1.0
