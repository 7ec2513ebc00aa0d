"""The document "lissah2019": its scheme on its network, and what is kept of a run, by hand."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

from support import ROOT, shared
from tidegate import paper, run
from tidegate.paper import Backing, Result, Verdict
from tidegate.paper.reading import load
from tidegate.papers.lissah2019.experiment import LABELS, OPEN, loss_for
from tidegate.papers.lissah2019.kept import Kept, simple_mos
from tidegate.papers.lissah2019.network import CONTROLLERS, FOUND, FRAMES, SENDERS, scenario
from tidegate.running import Run

FOLDER = ROOT / "python" / "tidegate" / "papers" / "lissah2019"


@pytest.fixture(scope="module")
def result() -> Result:
    return paper.run("lissah2019")


@pytest.fixture(scope="module")
def shaped() -> Run:
    """With a default gap and losses."""
    return run(scenario("table", FOUND.but(video="3Mbps", controller="default_gap=2.4ms")), seed=1)


def ours(result: Result, name: str) -> float:
    return result.outcome.measures[name].value.mean


# --- the transcription ----------------------------------------------------------------------------


def test_numbers_are_transcribed_as_printed() -> None:
    text = (shared() / "seeds" / "lissah2019-lookup-table-ns3.txt").read_text("utf-8")
    text = re.sub(r"\s+", " ", text)
    for printed in ("77.7 microseconds", "50.1 microseconds", "147.55 microseconds", "136.10 microseconds"):
        assert printed in text
    assert "lowest delay at 20.35" in text
    assert "lowest delay at 10.3 microseconds" in text
    assert "was below 150ms" in text
    assert "by the proposed work is 3.98 as oppose to 3.15" in text
    published = {claim.id: claim.published for claim in load(FOLDER).claims if claim.published is not None}
    assert published == {
        "unit-of-delay": 0.0103,
        "delay-mean": 50.1,
        "delay-most": 136.10,
        "delay-least": 10.3,
        "existing-delay-mean": 77.7,
        "existing-delay-most": 147.55,
        "existing-delay-least": 20.35,
        "mos": 3.98,
        "existing-mos": 3.15,
    }


def test_the_recorded_frames_are_groups_of_12_with_two_b_frames() -> None:
    for rate in (250, 500, 1000):
        lines = (FOLDER / "frames" / f"bikes_{rate}.txt").read_text("ascii").splitlines()
        kinds = "".join(line.split()[1] for line in lines)
        sizes = [int(line.split()[-1]) for line in lines]
        assert len(sizes) == FRAMES
        assert abs(sum(sizes) * 8 * 25 / FRAMES / (rate * 1000) - 1) < 0.01
        # in the order of decoding an I or P frame stands before the two B frames that are shown before it
        assert re.fullmatch(r"I(PBB)*(IBB(PBB){3})*(IBB)?(PBB)*P?B*", kinds), kinds[:60]
        assert [match.start() for match in re.finditer("I", kinds)][:4] == [0, 10, 22, 34]


# --- what is kept of a run ------------------------------------------------------------------------


def test_frames_are_kept_as_packet_after_packet_says(shaped: Run) -> None:
    kept = Kept.of(shaped)
    table = shaped.table("packets")
    columns = ("flow", "kind", "frame", "sent_s", "arrived_s")
    rows = zip(*(table.to_numpy(name).tolist() for name in columns), strict=True)
    frames: dict[int, list[tuple[float, float]]] = {}
    for flow, kind, frame, sent, arrived in rows:
        if flow == "video" and kind == "video":
            frames.setdefault(int(frame), []).append((sent, arrived))
    whole = {frame: packets for frame, packets in frames.items() if not any(math.isnan(at) for _, at in packets)}
    assert kept.frame.tolist() == sorted(whole)
    assert len(whole) < len(frames)
    delays = [max(at for _, at in whole[n]) - min(at for at, _ in whole[n]) for n in sorted(whole)]
    assert np.allclose(kept.delay, np.array(delays) * 1e3, rtol=0, atol=1e-9)
    # EvalVid adds up what each gap at the receiver is longer than the one at the sender
    last = [max(at for _, at in whole[n]) for n in sorted(whole)]
    first = [min(at for at, _ in whole[n]) for n in sorted(whole)]
    summed = np.concatenate([[0.0], np.cumsum(np.diff(last) - np.diff(first))]) * 1e3
    assert np.allclose(kept.cumulative, summed, rtol=0, atol=1e-6)
    packets = [one for some in frames.values() for one in some]
    lost = sum(math.isnan(at) for _, at in packets)
    assert kept.lost == pytest.approx(lost / len(packets), rel=1e-12)
    assert kept.sent.sum() == len(packets)
    # nothing is received before it is captured, sent and complete
    assert (kept.late >= kept.delay - 1e-9).all()


def test_gaps_of_a_lossy_run_are_on_the_wire(shaped: Run) -> None:
    table = shaped.table("packets")
    video = (table.to_numpy("flow") == "video") & (table.to_numpy("kind") == "video")
    sent = table.to_numpy("sent_s")[video]
    notes = shaped.table("internals")
    gap_notes = notes.to_numpy("name") == "gap_us"
    at, gap = notes.to_numpy("t_s")[gap_notes], notes.to_numpy("value")[gap_notes]
    # the gap that held when each packet left
    held = np.concatenate([[2400.0], gap])[np.searchsorted(at, sent[1:], side="right")]
    apart = np.diff(sent) * 1e6
    assert (apart >= held - 1e-2).all()
    # a frame's packets wait for nothing else
    assert np.mean(np.abs(apart - held) < 1e-2) > 0.5
    assert len(np.unique(np.round(held))) > 3


def test_the_simulators_delay_is_that_of_the_last_packet_before_the_report() -> None:
    made = run(scenario("table", FOUND.but(downloads=4)), seed=1)
    notes = made.table("internals")
    name, at, value = (notes.to_numpy(one) for one in ("name", "t_s", "value"))
    said, when = value[name == "delay_said_ms"], at[name == "delay_said_ms"]
    table = made.table("packets")
    # the half hears all of its flow but reports
    heard = (table.to_numpy("flow") == "video") & (table.to_numpy("kind") == "video")
    sent, arrived = table.to_numpy("sent_s")[heard], table.to_numpy("arrived_s")[heard]
    here = ~np.isnan(arrived)
    order = np.argsort(arrived[here], kind="stable")
    sent, arrived = sent[here][order], arrived[here][order]
    last = np.searchsorted(arrived, when, side="right") - 1
    assert len(said) > 10
    assert np.allclose(said, (arrived - sent)[last] * 1e3, rtol=0, atol=1e-6)
    used = value[name == "delay_ms"]
    assert 0 < len(used) <= len(said)
    assert set(np.round(used, 6)) <= set(np.round(said, 6))


def test_mos_by_hand() -> None:
    # 78 + 2 * 11 + 10 = 110 ms: R = 93.2 - 2.75 - 5 = 85.45
    rating = 85.45
    expected = 1 + 0.035 * rating + 7e-6 * rating * (rating - 60) * (100 - rating)
    assert simple_mos(78, 11, 2) == pytest.approx(expected, rel=1e-12)
    # 200 + 10 = 210 ms: R = 93.2 - 9
    rating = 84.2
    expected = 1 + 0.035 * rating + 7e-6 * rating * (rating - 60) * (100 - rating)
    assert simple_mos(200, 0, 0) == pytest.approx(expected, rel=1e-12)
    assert simple_mos(100, 0, 100) == 1
    # its two halves meet where they change, but for the document's 3.98 and 3.15 loss decides
    assert simple_mos(149.999999, 0, 0) == pytest.approx(simple_mos(150, 0, 0), abs=1e-6)
    assert loss_for(3.15, 77.7, 1.5) == pytest.approx(11.99, abs=0.01)


# --- beside the document --------------------------------------------------------------------------


def test_nothing_differs_without_a_reason_that_holds(result: Result) -> None:
    for one in result.judgements:
        assert one.verdict is Verdict.AGREES or one.backing is Backing.CONFIRMED, one.claim.id
    verdicts = {one.claim.id: one.verdict for one in result.judgements}
    assert verdicts["formula"] is Verdict.AGREES
    assert verdicts["divisor"] is Verdict.TREND
    assert {name for name, one in verdicts.items() if one is Verdict.DIFFERS} >= {
        "fewer-packets",
        "unit-of-delay",
        "delay-improves-by-the-table",
        "existing-mos",
        "mos-improves",
    }


def test_the_scheme_is_worth_nothing_beside_tcp(result: Result) -> None:
    """Not more delay, loss or packets than without control, and not less."""
    for quantity, within in (("sent", 0.01), ("delay.mean", 0.03), ("delay.most", 0.03), ("mos", 0.01)):
        none, table = (ours(result, f"{name}.{quantity}") for name in ("none", "table"))
        assert abs(table / none - 1) < within, quantity
    assert abs(ours(result, "none.lost") - ours(result, "table.lost")) < 0.3


def test_a_loss_makes_it_faster_where_there_is_a_default_gap(result: Result) -> None:
    assert 10 < ours(result, "gap.default") < 1000
    # 2.4 ms are 2083 packets in 5 s; a gap of a millisecond or less more than twice as many
    assert ours(result, "udp.constant.sent") == pytest.approx(5000 / 2.4, rel=0.03)
    assert ours(result, "udp.table.sent") > 2 * ours(result, "udp.constant.sent")
    assert ours(result, "udp.constant.lost") < 5
    assert 50 < ours(result, "udp.table.lost") < 100


def test_a_queue_of_100_packets_bounds_delays(result: Result) -> None:
    """Largest: a full queue of TCP's segments and an I frame, within what the mix of packets allows."""
    path, full, video = 6.0, 100 * 590 * 8 / 4e3, 100 * 1252 * 8 / 4e3
    assert path + full < ours(result, "none.delay.most") < path + video
    assert path + ours(result, "packet") * 0.1 < ours(result, "table.delay.least") < 12


def test_every_sender_has_its_rows(result: Result) -> None:
    tables = {table.name: table for table in result.outcome.tables}
    for name in ("senders", "adapting"):
        assert [row[0] for row in tables[name].rows] == list(LABELS.values())
    assert [row[0] for row in tables["open"].rows] == list(OPEN)
    assert set(SENDERS) < set(CONTROLLERS) == set(LABELS)
