"""Sources of the document vardhan, the verdict on calls, and the E-model."""

from __future__ import annotations

import math
import re
from collections import Counter
from typing import Any

import numpy as np
import pytest

import tidegate
from tidegate import Scenario, ScenarioError, quality, report
from tidegate.runs import Run
from tidegate.scenario.lower import lower

CONFERENCE = [["0s", "448kbps"], ["20s", "20kbps"], ["50s", "1Mbps"], ["80s", "448kbps"]]
"""Section 4.6 of the document."""


def scenario(flows: list[dict[str, Any]], **link: Any) -> Scenario:
    cable = {"name": "way", "from": "left", "to": "right", "capacity": "10Mbps", "delay": "20ms", **link}
    keys = {"name": "quality", "duration": "100s", "sending_jitter": "off", "record": "packets"}
    return Scenario.from_dict({**keys, "links": [cable], "flows": flows})


def media(controller: str, name: str = "call", **keys: Any) -> dict[str, Any]:
    return {"name": name, "media": {"controller": controller, "video": False, **keys}}


def conference(controller: str, name: str = "call", **keys: Any) -> dict[str, Any]:
    video = {"source": "cbr", "packet_size": "1000B", "schedule": CONFERENCE}
    return media(controller, name, video=video, **keys)


def departures(run: Run, flow: str, *kinds: str) -> tuple[np.ndarray, np.ndarray]:
    """When packets were sent, in ns, and their sizes on the wire."""
    table = run.table("packets")
    mask = (table.to_numpy("flow") == flow) & np.isin(table.to_numpy("kind"), kinds)
    sent = np.rint(table.to_numpy("sent_s")[mask] * 1e9).astype(np.int64)
    order = np.argsort(sent, kind="stable")
    return sent[order], table.to_numpy("size")[mask][order]


# --- sources --------------------------------------------------------------------------------------


def test_a_constant_rate_of_media_is_that_of_udp_packet_by_packet() -> None:
    udp = {"name": "udp", "udp": {"rate": "1Mbps", "packet_size": "1000B", "schedule": CONFERENCE}}
    # the stamp of tfrc takes bytes of the payload, not of the wire, from the first packet on
    run = tidegate.run(scenario([udp, conference("fixed:5Mbps"), conference("tfrc", "tfrc", max_rate="5Mbps")]))
    sent, sizes = departures(run, "udp", "datagram")
    # one at the start, then 448 kb/s x 40 s, 20 kb/s x 30 s and 1 Mb/s x 30 s in packets of 8000 bit
    count = 1 + (448_000 * 40 + 20_000 * 30 + 1_000_000 * 30) // 8000
    assert [run.metrics(flow)["packets_sent"] for flow in ("udp", "call", "tfrc")] == [count] * 3
    # the table has packets that arrived or were lost, not those under way at the end
    assert len(sent) >= count - 3
    assert set(sizes) == {1000}
    ours, sizes = departures(run, "call", "video")
    assert set(sizes) == {1000}
    assert np.array_equal(ours, sent)
    ours, sizes = departures(run, "tfrc", "video")
    assert set(sizes) == {1000}


def test_what_exceeds_the_controllers_rate_waits_and_is_then_skipped() -> None:
    # RTP packets of 972 bytes leave at 500 kb/s, those of 1 Mb/s on the wire come at 972 kb/s
    rate = {"source": "cbr", "packet_size": "1000B", "rate": "1Mbps"}
    flow = media("fixed:500kbps", video=rate, queue_limit="500ms")
    call = tidegate.run(scenario([flow])).metrics("call")
    assert call["packets_sent"] * 972 * 8 == pytest.approx(500e3 * 100, rel=0.001)
    # what came is sent, waits (half a second at the target, and the packet that went over it), or was skipped
    came, waiting = 12_500, 500e3 * 0.5 / 8 / 972
    skipped = came - call["packets_sent"] - waiting
    assert call["sender_skipped_frames"] == pytest.approx(skipped, abs=2)
    assert call["sender_delay_ms_p50"] == pytest.approx(500, rel=0.05)
    assert call["quality_network"] == "met", "the network carries all that it gets"
    assert call["quality"] == "loss, delay", "the listener does not get it"


def test_g711_is_160_bytes_every_20_ms() -> None:
    run = tidegate.run(scenario([media("fixed:100kbps", audio={"rate": "64kbps"})]))
    sent, sizes = departures(run, "call", "audio")
    # 160 bytes, 24 of RTP with its extensions, 28 of UDP and IP
    assert set(sizes) == {212}
    assert np.array_equal(sent, np.arange(len(sent)) * 20_000_000)
    assert run.metrics("call")["packets_sent"] == 5001


def test_talk_spurts_keep_the_clock_and_their_share_and_disturb_nobody() -> None:
    def run(audio: dict[str, Any], seed: int = 1) -> Run:
        flow = media(
            "fixed:1Mbps",
            audio={"rate": "64kbps", **audio},
            video={"source": "statistical", "max": "500kbps"},
            repair="none",
        )
        flow["media"]["start_rate"] = "564kbps"
        long = scenario([flow]).with_changes({"duration": "1000s"})
        return tidegate.run(long, seed=seed, record="packets")

    spurts, steady = run({"spurts": True}), run({})
    sent, sizes = departures(spurts, "call", "audio")
    assert set(sizes) == {212}
    assert not (sent % 20_000_000).any(), "a frame is sent or it is not; the clock goes on"
    # 1.004 of 2.591 s in the mean; 386 cycles make a standard deviation of 0.014
    assert len(sent) / 50_000 == pytest.approx(1.004 / 2.591, abs=0.045)
    gaps = np.diff(sent) // 20_000_000
    assert len(gaps[gaps > 1]) == pytest.approx(1000 / 2.591, rel=0.15)
    other_sent, _ = departures(run({"spurts": True}, seed=2), "call", "audio")
    assert not np.array_equal(other_sent, sent)
    # the luck of everything else is the same
    sizes_of = {
        run_: run_.table("frames").to_numpy("size")[run_.table("frames").to_numpy("video")] for run_ in (spurts, steady)
    }
    count = min(len(sizes) for sizes in sizes_of.values()) - 1
    assert count > 29_000
    assert np.array_equal(sizes_of[spurts][:count], sizes_of[steady][:count])
    assert run({"spurts": {"talk": "1.004s", "pause": "1.587s"}}).digest == spurts.digest


def test_audio_without_spurts_is_the_experiment_that_it_was() -> None:
    ir = lower(scenario([media("gcc", audio={})])).ir["flows"][0]["kind"]["media"]["audio"]
    assert ir == {"rate": 20_000, "interval": 20_000_000}


@pytest.mark.parametrize(
    ("keys", "complaint"),
    [
        ({"video": {"source": "cbr", "packet_size": "1000B"}}, "found neither rate nor schedule"),
        (
            {"video": {"source": "cbr", "packet_size": "1000B", "rate": "1Mbps", "schedule": CONFERENCE}},
            "found both rate and schedule",
        ),
        ({"video": {"source": "cbr", "packet_size": "52B", "rate": "1Mbps"}}, 'found "52B"; expected from 53B'),
        ({"video": {"source": "cbr", "packet_size": "66kB", "rate": "1Mbps"}}, 'found "66kB"; expected from 53B'),
        (
            {"video": {"source": "cbr", "packet_size": "1kB", "schedule": [["1s", "1Mbps"]]}},
            'the first step is at "1s"',
        ),
        ({"video": {"source": "cbr", "packet_size": "1kB", "schedule": [["0s", "0bps"]]}}, "every rate is zero"),
        ({"video": {"source": "cbr", "packet_size": "1kB", "rate": "0bps"}}, "expected more than zero"),
        ({"video": {"source": "cbr", "packet_size": "1kB", "rate": "1Mbps", "fps": 30}}, "fps"),
        ({"audio": {"spurts": {"talk": "0s"}}}, 'found "0s"; expected from 1ms'),
        ({"audio": {"spurts": "sometimes"}}, "spurts"),
    ],
)
def test_sources_that_cannot_be_are_refused(keys: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ScenarioError, match=r"call|media|flows") as error:
        scenario([media("gcc", **keys)])
    assert complaint in str(error.value)


# --- the verdict ----------------------------------------------------------------------------------


def jitter_by_hand(transits: np.ndarray) -> tuple[float, float]:
    """Mean and largest J of RFC 3550 section 6.4.1 over packets in order of arrival."""
    jitter, jitters = 0.0, []
    for difference in np.abs(np.diff(transits)):
        jitter += (difference - jitter) / 16
        jitters.append(jitter)
    return float(np.mean(jitters)), float(np.max(jitters))


def test_jitter_is_that_of_rfc_3550_in_the_network_and_from_capture() -> None:
    video = {"source": "ideal", "min": "600kbps", "max": "600kbps"}
    flow = media("fixed:700kbps", video=video, max_rate="700kbps", repair="none")
    run = tidegate.run(scenario([flow], jitter={"uniform": "15ms"}))
    call, table = run.metrics("call"), run.table("packets")
    mask = (table.to_numpy("kind") == "video") & (table.to_numpy("fate") == "arrived")
    sent, arrived = table.to_numpy("sent_s")[mask] * 1e3, table.to_numpy("arrived_s")[mask] * 1e3
    order = np.argsort(arrived, kind="stable")
    mean, largest = jitter_by_hand((arrived - sent)[order])
    assert call["jitter_ms_mean"] == pytest.approx(mean, abs=1e-4)
    assert call["jitter_ms_max"] == pytest.approx(largest, abs=1e-4)
    # transits that are uniform over 15 ms differ by a third of that in the mean
    assert mean == pytest.approx(5, rel=0.1)
    # every frame is captured at a tick of 30 Hz and leaves within 33 ms: the timestamp is that of the tick
    captured = np.floor(sent * 0.03 + 1e-6) / 0.03
    mean, largest = jitter_by_hand((arrived - captured)[order])
    tick = 1e3 / 90_000
    assert call["media_jitter_ms_mean"] == pytest.approx(mean, abs=2 * tick)
    assert call["media_jitter_ms_max"] == pytest.approx(largest, abs=2 * tick)
    assert call["media_jitter_ms_mean"] > call["jitter_ms_mean"] + 1, "three packets of a frame do not leave at once"


@pytest.mark.parametrize(
    ("link", "verdict"),
    [
        ({}, "met"),
        ({"delay": "148ms"}, "met"),
        ({"delay": "150ms"}, "delay"),
        ({"loss": 0.005}, "met"),
        ({"loss": 0.02}, "loss"),
        ({"jitter": {"uniform": "80ms"}}, "met"),
        ({"jitter": {"uniform": "110ms"}}, "jitter"),
        ({"delay": "151ms", "loss": 0.02, "jitter": {"uniform": "110ms"}}, "loss, delay, jitter"),
    ],
)
def test_the_verdict_names_what_is_over(link: dict[str, Any], verdict: str) -> None:
    udp = {"name": "udp", "udp": {"rate": "400kbps", "packet_size": "1000B"}}
    tcp = {"name": "tcp", "tcp": {"algorithm": "reno", "workload": {"file": "10kB"}}}
    run = tidegate.run(scenario([media("fixed:100kbps", audio={"rate": "64kbps"}), udp, tcp], **link))
    for flow in ("call", "udp"):
        metrics = run.metrics(flow)
        assert (metrics["quality"], metrics["quality_network"]) == (verdict, verdict), flow
        over = {
            "loss": metrics["loss_fraction"] > 0.01,
            "delay": metrics["one_way_delay_ms_mean"] > 150,
            "jitter": metrics["jitter_ms_mean"] > 30,
        }
        assert verdict == (", ".join(name for name, is_over in over.items() if is_over) or "met")
    assert run.metrics("tcp")["quality"] is None, "a TCP flow is no call"


def test_speech_is_rated_from_capture_to_playout() -> None:
    run = tidegate.run(scenario([media("fixed:100kbps", audio={"rate": "64kbps"})], delay="100ms", loss=0.03))
    frames = run.table("frames")
    captured, rendered = frames.to_numpy("captured_s"), frames.to_numpy("rendered_s")
    heard = np.isfinite(rendered)
    delay = float(np.mean((rendered - captured)[heard])) * 1e3
    assert 100 < delay < 200
    # those that were not yet played out do not count
    due = heard | (captured + (rendered - captured)[heard].max() < 100)
    loss = 1 - heard.sum() / due.sum()
    assert 0.02 < loss < 0.04
    call = run.metrics("call")
    assert call["r_factor"] == pytest.approx(quality.r_factor(delay, loss), abs=1e-6)
    assert call["mos"] == pytest.approx(quality.mos(quality.r_factor(delay, loss)), abs=1e-6)
    bare = quality.r_factor(delay, loss, bpl=quality.G711_BPL)
    assert call["mos_without_plc"] == pytest.approx(quality.mos(bare), abs=1e-6)
    assert call["mos"] - call["mos_without_plc"] > 0.5


def test_a_flow_without_audio_has_no_score() -> None:
    call = tidegate.run(scenario([conference("fixed:5Mbps")])).metrics("call")
    assert call["r_factor"] is call["mos"] is call["mos_without_plc"] is None


# --- the E-model ----------------------------------------------------------------------------------


def test_the_e_model_has_the_published_values() -> None:
    # G.107: R = 93.2 with all defaults, and table B.1 of scores, which is rounded up to two digits
    assert quality.r_factor(0, 0) == pytest.approx(93.2, abs=0.05)
    for rating, score in {90: 4.34, 80: 4.03, 70: 3.60, 60: 3.10, 50: 2.58}.items():
        assert -1e-9 < score - quality.mos(rating) < 0.01
    # Cole and Rosenbluth's line through the cost of delay, which has its corner at 177.3 ms
    for delay, tolerance in {150: 0.2, 177.3: 1.0, 200: 0.2, 250: 0.2, 300: 0.2}.items():
        cost = quality.r_factor(0, 0) - quality.r_factor(delay, 0)
        assert cost == pytest.approx(0.024 * delay + 0.11 * max(0.0, delay - 177.3), abs=tolerance), delay
    # loss costs half of 95 where its percentage equals the robustness
    for bpl in (quality.G711_BPL, quality.G711_CONCEALED_BPL):
        cost = quality.r_factor(0, 0, bpl=bpl) - quality.r_factor(0, bpl / 100, bpl=bpl)
        assert cost == pytest.approx(47.5, abs=1e-9)


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: quality.r_factor(-1, 0), "delay_ms"),
        (lambda: quality.r_factor(math.nan, 0), "delay_ms"),
        (lambda: quality.r_factor(0, 1.1), "loss_fraction"),
        (lambda: quality.r_factor(0, 0, ie=96), "ie"),
        (lambda: quality.r_factor(0, 0, bpl=0), "bpl"),
        (lambda: quality.mos(math.nan), "rating"),
    ],
)
def test_bad_numbers_are_named(call: Any, name: str) -> None:
    with pytest.raises(ValueError, match=f"^{name}: found "):
        call()


# --- where people see it --------------------------------------------------------------------------


def test_a_comparison_says_who_is_fit_for_a_call() -> None:
    bad = scenario([media("gcc", video={"source": "greedy", "max": "5Mbps"})], capacity="1Mbps", queue={"time": "1s"})
    done = tidegate.compare(["fixed:500kbps", "fixed:2Mbps"], bad.with_changes({"duration": "10s"}), seeds=2)
    assert done.table.verdicts == {"fixed:500kbps": "yes", "fixed:2Mbps": "no: loss, delay"}
    (last,) = (
        line
        for line in done.table.to_markdown().splitlines()
        if line.startswith("| loss, delay and jitter within limits")
    )
    assert last == "| loss, delay and jitter within limits |  | yes | no: loss, delay |"
    assert done.to_data()["quality"] == done.table.verdicts
    assert not any("quality" in row.key for row in done.table.rows), "it is no number"
    page = report.html(done)
    words = Counter(re.findall(r"<td[^>]*>(.*?)</td>", page))
    assert words["yes"] == 4, "of sender and network, in two tables"
    assert words["no: loss, delay"] == 4


def test_a_verdict_says_where() -> None:
    """A verdict said `loss` beside a loss of 0.00 %: the sender had skipped the missing media."""
    rate = {"source": "cbr", "packet_size": "1000B", "rate": "1Mbps"}
    skipping = scenario([media("fixed:500kbps", video=rate, queue_limit="100ms")]).with_changes({"duration": "10s"})
    run = tidegate.run(skipping)
    assert (run.metrics()["loss_fraction"], run.metrics()["quality_network"]) == (0.0, "met")
    table = tidegate.compare(["fixed:500kbps", "fixed:1.2Mbps"], skipping, seeds=2).table
    assert table.verdicts == {"fixed:500kbps": "no: loss at the sender", "fixed:1.2Mbps": "yes"}
    assert "no: loss at the sender" in report.html(run)


@pytest.mark.parametrize(
    ("verdicts", "network", "expected"),
    [
        (["met", "met"], ["met", "met"], "yes"),
        (["loss", "met", "met"], ["met", "met", "met"], "in 2 of 3, else loss at the sender"),
        (["loss, delay, jitter"], ["delay"], "no: delay; loss and jitter at the sender"),
        (["loss, delay, jitter"], ["met"], "no: loss, delay and jitter at the sender"),
        (["loss", "loss"], ["met", "loss"], "no: loss"),
        (["delay"], [None], "no: delay"),
        ([None, None], [None, None], "-"),
    ],
)
def test_the_words_of_a_verdict(verdicts: list[str | None], network: list[str | None], expected: str) -> None:
    assert quality.verdict(verdicts, network) == expected
