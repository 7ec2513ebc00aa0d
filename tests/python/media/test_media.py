"""Real video without any package of the extra: clips, settings, measures, the display clock, our own codec."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from support import Cli
from support.media import flat, link, sent, value
from tidegate import Run
from tidegate.errors import InputError
from tidegate.media import Procedural, Settings, distortion, find, grade, grades, judge, psnr, ssim, with_clip
from tidegate.media._received import Received, _coded, deadlines, received
from tidegate.media._screen import schedule
from tidegate.media.judge import _freezes
from tidegate.media.ladder import Ladder, encode, rates
from tidegate.video import extra as extras
from tidegate.video.cache import cache
from tidegate.video.clip import luma
from tidegate.video.codec import Format, codec, filled
from tidegate.video.codec.intra import black

OURS = "procedural:size=96x80,codec=intra,rungs=4,vmaf_every=0"


@pytest.fixture(autouse=True)
def own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.getbasetemp() / "media-cache"
    monkeypatch.setenv("TIDEGATE_CACHE", str(folder))
    return folder


# --- clips and settings ---------------------------------------------------------------------------


def test_the_procedural_clip_is_the_same_everywhere_and_tells_its_number() -> None:
    clip = Procedural(96, 80, complexity=0.5)
    pictures = list(clip.pictures(6))
    assert [picture.shape for picture in pictures] == [(120, 96)] * 6
    digest = hashlib.sha256(b"".join(picture.tobytes() for picture in pictures)).hexdigest()
    assert digest[:16] == "ba0583fcf6fc465b"
    wide = 96 // 18
    for number, picture in enumerate(pictures):
        bits = [luma(picture)[4, wide * (bit + 1)] > 128 for bit in range(16)]
        assert sum(int(bit) << (15 - position) for position, bit in enumerate(bits)) == number


def test_more_complexity_needs_more_bits() -> None:
    def size(complexity: float) -> int:
        _, frames = codec("intra").encode(
            Procedural(96, 80, complexity=complexity).pictures(3), Format(96, 80, Fraction(25), 1, 0, 1200), 10**9
        )
        return sum(len(data) for frame in frames for data in frame.slices)

    assert size(0.0) < 0.5 * size(0.3) < 0.5 * size(0.9)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("procedural:size=97x80", "size: the picture is 97x80; both must be even"),
        ("procedural:size=8x80", "expected from 32x32 to 4096x4096"),
        ("procedural:size=big", 'found "big"; expected WIDTHxHEIGHT'),
        ("procedural:complexity=2", 'complexity: found "2"; expected a number from 0 to 1'),
        ("procedural:group=1001", 'group: found "1001"; expected a whole number from 0 to 1000'),
        ("procedural:group=0", "cannot make key frames on request; expected at least 1"),
        ("procedural:grop=3", '"grop" is not a setting; did you mean group?'),
        ("procedural:group=3,group=4", "group is given twice"),
        ("procedual", "is not a clip; did you mean procedural?"),
        ("nowhere.mp4", "nowhere.mp4: there is no such file"),
        ("bikes:complexity=0.5", "complexity is a setting of the procedural clip only"),
        ("procedural:codec=h264", "codec: found h264; expected x264, intra or openh264"),
    ],
)
def test_what_is_wrong_with_a_clip_is_said(text: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError) as error:
        encode(Settings.parse(text), frames=1, least=10**5, most=10**5)
    if text == "nowhere.mp4" and not extras.has("av"):
        message = "PyAV is needed to read nowhere.mp4"
    assert message in str(error.value)


def test_without_the_extra_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extras, "has", lambda module: False)
    assert codec().name == "intra"
    assert "PyAV is not installed" in extras.missing()
    assert "VMAF is not computed" in extras.missing()
    uses: list[Callable[[], object]] = [lambda: find("clip.mp4"), lambda: codec("x264")]
    for use in uses:
        with pytest.raises(
            InputError, match=r"PyAV is needed .*: pip install 'tidegate\[media\]'; the clip `procedural`"
        ):
            use()


# --- measures ---------------------------------------------------------------------------------------


def test_psnr_is_as_by_hand_and_capped() -> None:
    reference = flat(100)
    changed = reference.copy()
    changed[0, 0] = 116  # a square error of 256 over 256 pixels is a mean of 1
    assert psnr(reference, changed) == pytest.approx(20 * math.log10(255), abs=1e-12)
    assert psnr(reference, reference) == 60.0
    assert psnr(flat(0), flat(255)) == 0.0


def test_ssim_of_flat_planes_is_as_by_hand() -> None:
    # without variance only the means count: (2ab + C1) / (a2 + b2 + C1)
    c1 = (0.01 * 255) ** 2
    assert ssim(flat(100), flat(120)) == pytest.approx((2 * 100 * 120 + c1) / (100**2 + 120**2 + c1), rel=1e-4)
    assert ssim(flat(7), flat(7)) == 1.0


def test_evalvids_grades_and_distortion_of_twenty_frames_are_as_by_hand() -> None:
    encoded = [38.0, 37.01, 37.0, 36.0, 31.01, 31.0, 30.0, 25.01, 25.0, 24.0] + [40.0] * 10
    seen_db = (
        [38.0, 30.0, 31.5, 31.0, 31.01, 25.5, 25.0, 20.01, 20.0, 19.0]
        + [40.0, 36.0, 31.0, 20.0, 37.0, 37.5, 5.0]
        + [40.0] * 3
    )
    sent_grades = [5, 5, 4, 4, 4, 3, 3, 3, 2, 2] + [5] * 10
    seen_grades = [5, 3, 4, 3, 4, 3, 2, 2, 1, 1] + [5, 4, 3, 1, 4, 5, 1] + [5] * 3
    assert grades(np.array(encoded)).tolist() == sent_grades
    assert grades(np.array(seen_db)).tolist() == seen_grades
    assert np.mean(seen_grades) == 66 / 20
    # bad: below 4 and below what was encoded: frames 1, 3, 6, 7, 8, 9, 12, 13, 16; 5 is as bad as it was encoded
    assert distortion(seen_grades, sent_grades) == 9 / 20
    # windows of 25 slide over a longer run: of 5 good ones and these 20, all nine; with 30 between, nine of 25 again
    assert distortion([5] * 5 + seen_grades, [5] * 5 + sent_grades) == 9 / 25
    assert distortion(seen_grades + [5] * 30 + [1] * 12, sent_grades + [5] * 42) == 12 / 25
    assert math.isnan(distortion([], []))
    assert [grade(db) for db in (37.0, 31.0, 25.0, 20.0)] == [4, 3, 2, 1], "thresholds are exclusive"


# --- what arrived, and when it is shown --------------------------------------------------------------


def test_deadlines_follow_the_next_frame_that_was_shown() -> None:
    nan = math.nan
    captured = np.arange(6.0)
    times = deadlines(captured, np.array([nan, 1.3, nan, nan, 4.9, nan]))
    assert times == pytest.approx([0.3, 1.3, 2.9, 3.9, 4.9, 5.9])
    # the delay shrank while frame 1 was lost: it cannot be shown before frame 0
    assert deadlines(np.array([0.0, 0.1, 0.2]), np.array([0.5, nan, 0.55])).tolist() == [0.5, 0.5, 0.55]
    assert deadlines(captured, np.full(6, nan)).tolist() == captured.tolist()


def test_a_pause_leaves_out_the_rest_of_a_group() -> None:
    key = np.array([1, 0, 0, 1, 0, 1, 0], dtype=bool)
    assert _coded(key, 3).tolist() == [0, 1, 2, 3, 4, 6, 7]


def test_the_display_clock_is_as_by_hand() -> None:
    captured = np.array([0.0, 1, 2, 3, 4])
    # played out evenly: what is due is on
    even = schedule(captured, captured + 0.5, 1.0, 5.6)
    assert even.t_s.tolist() == [1.0, 2.0, 3.0, 4.0, 5.0]
    assert even.on.tolist() == even.due.tolist() == [0, 1, 2, 3, 4]
    # frame 2 comes 2 s late and the delay grows: two ticks show frame 1 while 2 and 3 are due, then 2 is due and on
    late = schedule(captured, np.array([0.5, 1.5, 4.5, 5.5, 6.5]), 1.0, 7.5)
    assert late.on.tolist() == [0, 1, 1, 1, 2, 3, 4]
    assert late.due.tolist() == [0, 1, 2, 3, 2, 3, 4]
    # a pause of the source: nothing is due but the last picture
    paused = schedule(np.array([0.0, 1, 4, 5]), np.array([0.5, 1.5, 4.5, 5.5]), 1.0, 6.5)
    assert paused.on.tolist() == paused.due.tolist() == [0, 1, 1, 1, 2, 3]
    # the end of the source is none: the last picture has its tick, and what stands on the screen then is no freeze
    stopped = schedule(captured, captured + 0.5, 1.0, 60.0)
    assert stopped.on.tolist() == stopped.due.tolist() == [0, 1, 2, 3, 4]
    assert len(schedule(np.zeros(0), np.zeros(0), 1.0, 5.0).t_s) == 0


def test_freezes_are_pictures_that_stand_too_long() -> None:
    def lengths(stands: list[int], fps: float) -> list[float]:
        captured = np.repeat(np.arange(len(stands), dtype=float), stands)
        return _freezes(captured, np.ones(len(captured), dtype=bool), fps)

    # at 25 frames/s the limit is 40 + 150 ms, at 10 it is three frames
    assert lengths([1, 4, 1, 5, 2], 25.0) == [0.2]
    assert lengths([2, 3, 4], 10.0) == [0.3, 0.4]


def test_a_slice_needs_all_packets_that_carry_its_bytes() -> None:
    class Rung:
        def places(self, number: int) -> tuple[np.ndarray, np.ndarray]:
            # in packets of 10 bytes: 0; 0 and 1; 1; 2 to 4
            return np.array([0, 8, 14, 20]), np.array([8, 6, 6, 21])

    class FakeLadder:
        rungs = (Rung(),)
        length = 1

    def there(arrived: list[float]) -> list[bool]:
        zeros = np.zeros(1, dtype=np.int64)
        got = Received(FakeLadder(), "call", zeros, zeros, np.zeros(1), np.array([1.0]), [np.array(arrived)], 10)  # type: ignore[arg-type]
        return [bool(value) for value in got.slices_in_time(0)]

    late, never = 1.01, math.inf
    assert there([1.0, 1.0, 1.0, 1.0, 1.0]) == [True, True, True, True]
    assert there([late, 1.0, 1.0, 1.0, 1.0]) == [False, False, True, True]
    assert there([1.0, never, 1.0, 1.0, 1.0]) == [True, False, False, True]
    assert there([1.0, 1.0, 1.0, late, 1.0]) == [True, True, True, False]


def test_slices_are_not_cut_by_packets() -> None:
    assert filled([b"a" * 7, b"b" * 3, b"c", b"d" * 25, b"e" * 6], 10) == [
        b"a" * 7,
        b"b" * 3,
        b"c",
        b"d" * 25 + b"\0" * 4,  # fits in no packet anyway, but the next one does
        b"e" * 6,
    ]
    assert filled([b"a" * 7, b"b" * 4], 10) == [b"a" * 7 + b"\0" * 3, b"b" * 4]


def test_rates_are_in_equal_ratios() -> None:
    assert rates(100_000, 800_000, 4) == [100_000, 200_000, 400_000, 800_000]
    assert rates(500_000, 500_000, 12) == [500_000]


# --- our own codec -------------------------------------------------------------------------------------


def test_the_intra_codec_keeps_its_rate_and_repeats_what_is_missing() -> None:
    clip, form = Procedural(96, 80), Format(96, 80, Fraction(25), 1, 0, 1200)
    originals = list(clip.pictures(50))
    for rate, least_db in ((200_000, 21.0), (800_000, 31.0)):
        header, frames = codec("intra").encode(iter(originals), form, rate)
        coded = list(frames)
        size = sum(len(data) for frame in coded[10:] for data in frame.slices)
        assert size * 8 * 25 / 40 == pytest.approx(rate, rel=0.1)
        complete, holed = (codec("intra").decoder(header, form) for _ in range(2))
        before = black(96, 80)
        for frame in coded:
            ((_, good),) = complete.decode(frame.picture, frame.slices)
            ((_, bad),) = holed.decode(frame.picture, [frame.slices[0], *frame.slices[2:]])
            assert (luma(bad)[:16] == luma(good)[:16]).all()
            assert (luma(bad)[32:] == luma(good)[32:]).all()
            assert (luma(bad)[16:32] == luma(before)[16:32]).all(), "the second row is what it was"
            before = bad
        assert psnr(luma(originals[-1]), luma(good)) > least_db


# --- the whole chain --------------------------------------------------------------------------------------


def test_without_loss_what_is_seen_is_what_was_encoded() -> None:
    run, ladder = sent(link(), OURS)
    judged = judge(run)
    psnr_db, encoded = judged.columns["psnr_db"], judged.columns["psnr_encoded_db"]
    assert psnr_db.tolist() == encoded.tolist()
    got = received(run, ladder)
    at_rung = [ladder.rungs[got.rung[frame]].psnr_db[got.coded[frame]] for frame in range(len(psnr_db))]
    assert np.round(psnr_db, 6).tolist() == at_rung, "the encoder's own figures"
    assert judged.columns["picture"].tolist() == list(range(len(psnr_db)))
    assert value(judged, "picture_frames_lost") == value(judged, "picture_frames_damaged") == 0
    assert value(judged, "picture_freezes") == 0
    # 200 ms of playout after the first frame was whole; a tick is looked at in its middle
    first = float(run.table("frames").to_numpy("complete_s")[0])
    assert value(judged, "picture_latency_ms_mean") == pytest.approx((first + 0.2 + 0.02) * 1e3, abs=0.1)
    # frames until the end of the run, less those whose time comes later
    assert len(psnr_db) == math.floor((4 - first - 0.2) * 25)


def test_what_is_late_is_lost_and_counted_apart_from_coding() -> None:
    # 600 kb/s of video through 300 kb/s with a deep queue: later and later, until nothing is in time
    run, _ = sent(link("300kbps", controller="fixed:600kbps"), OURS)
    judged = judge(run)
    assert value(judged, "picture_frames_lost") > 0.5
    assert value(judged, "picture_psnr_db") < value(judged, "picture_psnr_encoded_db") - 3
    assert value(judged, "picture_freeze_time_s") > 1.0
    assert value(judged, "picture_psnr_own_db") == pytest.approx(judged.columns["psnr_own_db"].mean())
    # age grows while the picture stands
    latency = judged.columns["latency_ms"]
    assert np.diff(latency[-20:]) == pytest.approx(40.0, abs=1e-3)
    with_metrics = judged.judged_run()
    assert with_metrics.metrics()["picture_psnr_db"] == value(judged, "picture_psnr_db")
    assert with_metrics.digest == run.digest


def test_both_directions_and_pauses_are_judged_by_their_own_frames() -> None:
    run, ladder = sent(link(both_ways=True, pauses=[("1s", "2s")]), OURS)
    for flow in ("call", "call.back"):
        judged = judge(run, flow=flow)
        assert judged.columns["psnr_db"].tolist() == judged.columns["psnr_encoded_db"].tolist()
        assert value(judged, "picture_freezes") <= 1, "a pause of the source"
    assert len(received(run, ladder, "call.back")) == 25 + 51, "the last one at 4 s"


def test_nothing_that_arrives_is_a_black_picture() -> None:
    run, _ = sent(link(loss=1.0), OURS)
    judged = judge(run)
    assert value(judged, "picture_frames_lost") == 1.0
    assert judged.summary["picture_latency_ms_mean"] is None
    assert value(judged, "picture_psnr_db") < 15
    assert value(judged, "picture_mos") == 1.0


def test_packets_tell_their_frame() -> None:
    run, _ = sent(link(), OURS)
    packets, frames = run.table("packets"), run.table("frames")
    video = packets.to_numpy("kind") == "video"
    number = packets.to_numpy("frame")
    assert np.isnan(number[~video]).all()
    assert len(number[~video])
    sizes = frames.to_numpy("size")
    assert np.bincount(number[video].astype(int)).tolist()[:90] == (-(-sizes.astype(int) // 1200)).tolist()[:90]
    steps = np.diff(packets.to_numpy("rtp_sequence")[video]) % (1 << 16)
    assert set(steps.tolist()) == {1.0}


def test_the_cache_is_used_and_its_faults_are_said(own_cache: Path) -> None:
    _, first = with_clip(link(), OURS)
    times = {file: file.stat().st_mtime_ns for file in first.folder.iterdir()}
    _, second = with_clip(link(), OURS)
    assert second.folder == first.folder
    assert first.folder.parent == cache()
    assert {file: file.stat().st_mtime_ns for file in second.folder.iterdir()} == times
    assert not [file for file in cache().iterdir() if file.name.startswith(".")], "nothing half-written"
    _, third = with_clip(link(), OURS.replace("rungs=4", "rungs=3"))
    assert third.folder != first.folder
    bits = next(third.folder.glob("*.bits"))
    bits.write_bytes(bits.read_bytes()[:-1])
    with pytest.raises(InputError, match="the encoded clip is damaged"):
        Ladder.load(third.folder)
    with pytest.raises(InputError, match="holds no encoded clip"):
        Ladder.load(own_cache / "nowhere")


def test_no_two_rates_have_a_first_frame_of_one_size() -> None:
    _, ladder = with_clip(link(), OURS)
    firsts = np.array([rung.sizes for rung in ladder.rungs])[:, :: ladder.form.group]
    assert all(len(set(column)) == len(ladder.rungs) for column in firsts.T.tolist())


def test_compare_with_media_writes_pictures_and_a_table(cli: Cli, tmp_path: Path) -> None:
    network = ("--capacity", "1Mbps", "--duration", "3s", "--media", OURS)
    done = cli("compare", "gcc", "fixed:600kbps", *network, "--seeds", "2", "--out", "out")
    assert done.code == 0, done.err
    assert "PSNR of the encoded picture" in done.out
    assert "picture MOS" in done.out
    assert "VMAF" not in done.out
    names = {file.name for file in (tmp_path / "out").iterdir()}
    assert {"quality.png", "contact-sheet.png", "quality-gcc-seed1.csv", "quality-fixed-600kbps-seed2.csv"} <= names
    assert (tmp_path / "out" / "report.html").read_text().count("data:image/png;base64,") == 2
    again = cli("report", "out", "--out", "again.html")
    assert again.code == 0
    assert (tmp_path / "again.html").read_text() == (tmp_path / "out" / "report.html").read_text()
    rows = (tmp_path / "out" / "quality-gcc-seed1.csv").read_text().splitlines()
    assert rows[0].startswith("t_s,picture,rate_bps,psnr_encoded_db,psnr_db")
    assert len(rows) > 60


def test_run_with_media_keeps_what_a_film_needs(cli: Cli, tmp_path: Path) -> None:
    network = ("home-broadband", "--set", "duration=2s", "--media", OURS)
    done = cli("run", *network, "--json")
    assert done.code == 0, done.err
    (flow,) = json.loads(done.out)["flows"]
    assert cli("run", *network, "--out", "out").code == 0
    saved = Run.load(tmp_path / "out")
    assert saved.metrics()["picture_psnr_db"] == flow["picture_psnr_db"] > 20
    again = judge(saved, vmaf_every=0)
    assert again.summary["picture_psnr_db"] == flow["picture_psnr_db"], "a saved run can be judged again"


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (("compare", "gcc", "--media", "procedual", "--out", "out"), "is not a clip; did you mean procedural?"),
        (("run", "home-broadband", "--media", OURS, "--record", "series", "--out", "out"), "--media needs packets"),
        (("compare", "gcc", "--media", OURS, "--set", "flows.subject.media.video=false"), "no media flow with video"),
        (("media", "render", "nowhere", "-o", "out.mp4"), "nowhere/run.json: there is no such file"),
    ],
)
def test_wrong_words_write_nothing(argv: tuple[str, ...], message: str, cli: Cli, tmp_path: Path) -> None:
    done = cli(*argv)
    if "video=false" in argv[-1]:
        assert done.code == 2
    else:
        assert done.code == 2
        assert message in done.err
    assert "Traceback" not in done.err
    assert not list(tmp_path.iterdir())


def test_clips_are_listed_with_the_settings(cli: Cli) -> None:
    done = cli("media", "clips")
    assert done.code == 0
    assert "procedural" in done.out
    assert "352x288" in done.out
    assert "vmaf_every" in done.out
