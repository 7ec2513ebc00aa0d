"""An encoder in the loop: what a build without one says, and what one does in a build with the feature."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support import Cli
from support.media import decoded, digest, film, link, needs_av, value
from tidegate import Run, Scenario, _core, run
from tidegate.errors import InputError
from tidegate.media import judge, with_clip, with_encoder
from tidegate.media._decode import pairs
from tidegate.media._live import Take
from tidegate.media._received import Received, received, sent_by

IN_LOOP = "openh264" in _core.ENCODERS
needs_encoder = pytest.mark.skipif(not IN_LOOP, reason="this build has no encoder in the loop: make test-codec")
CLIP = "procedural:size=176x144,codec=openh264"
REFUSED = (
    "this build of tidegate has no encoder in the loop; build with: maturin develop --release --features codec-openh264"
)


@pytest.fixture(autouse=True)
def own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    monkeypatch.setenv("TIDEGATE_CACHE", str(tmp_path_factory.getbasetemp() / "media-cache"))


def filmed(scenario: Scenario, clip: str = CLIP, seed: int = 1) -> tuple[Run, Received]:
    """A run with an encoder in the loop, and what arrived."""
    done = run(with_encoder(scenario, clip), seed, "packets")
    return done, received(done, sent_by(done))


def take_of(got: Received) -> Take:
    assert isinstance(got.sent, Take)
    return got.sent


# --- without ---------------------------------------------------------------------------------------------


@pytest.mark.skipif(IN_LOOP, reason="this build has the encoder")
def test_a_build_without_an_encoder_says_how_to_get_one(cli: Cli, tmp_path: Path) -> None:
    done = cli("compare", "gcc", "--duration", "2s", "--media", CLIP, "--out", "out")
    assert (done.code, REFUSED in done.err) == (2, True), done.err
    assert not (tmp_path / "out").exists()
    with pytest.raises(InputError, match="build with: maturin develop"):
        with_encoder(link(), CLIP)
    listed = cli("media", "clips")
    assert f"There is no encoder in the loop in this build; build with: {REFUSED.split(': ')[1]}" in " ".join(
        listed.out.split()
    )
    (tmp_path / "x.toml").write_text(
        'duration = "2s"\n[[links]]\ncapacity = "1Mbps"\n[[flows]]\nname = "call"\n'
        f'media = {{ video = {{ source = "encoder", clip = "{CLIP}" }} }}\n'
    )
    done = cli("run", "x.toml")
    assert (done.code, REFUSED in done.err, "flows.call.media" in done.err) == (2, True, True), done.err


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("procedural:codec=openh264,b_frames=2", "b_frames is for clips encoded beforehand, not for openh264"),
        ("procedural:codec=openh264,rungs=3", "rungs is for clips encoded beforehand, not for openh264"),
    ],
)
def test_settings_that_do_not_fit_the_codec_are_refused(cli: Cli, settings: str, message: str) -> None:
    done = cli("compare", "gcc", "--duration", "2s", "--media", settings)
    assert (done.code, message in done.err) == (2, True), done.err


def test_a_ladder_and_an_encoder_in_the_loop_are_not_confused() -> None:
    with pytest.raises(InputError, match="leaves no ladder: use with_encoder"):
        with_clip(link(), CLIP)
    with pytest.raises(InputError, match="codec: found x264; the encoder in the loop is openh264"):
        with_encoder(link(), "procedural:codec=x264")


# --- with ------------------------------------------------------------------------------------------------


class Steps:
    """1500, 300, 900 and 400 kbit/s, four seconds each, whatever happens."""

    rates = (1_500_000, 300_000, 900_000, 400_000)

    def on_limits(self, now_ns: int, limits: Any) -> int:
        del limits
        return self.rates[now_ns // 4_000_000_000 % 4]

    def on_report(self, now_ns: int, report: Any) -> int:
        del report
        return self.rates[now_ns // 4_000_000_000 % 4]


@needs_encoder
@needs_av
def test_the_encoder_follows_its_target_within_a_second() -> None:
    data = link("100Mbps", controller="fixed:600kbps", video={"min": "100kbps"}).to_dict()
    data["duration"] = "16s"
    data["flows"][0]["media"]["controller"] = Steps
    done = run(with_encoder(Scenario.from_dict(data), "procedural:size=320x192,codec=openh264,group=0"), 1, "packets")
    table = done.table("slices")
    picture, target, length = (table.to_numpy(name) for name in ("picture", "target_bps", "length"))
    for step, rate in enumerate(Steps.rates):
        # from a second after the change on: three seconds, in which a frame is 1.3 % of the bytes on average
        begin, end = 25 * (4 * step + 1), 25 * (4 * step + 4)
        counted = (picture >= begin) & (picture < end)
        # headers of packets are not the encoder's
        assert (target[counted] < rate).all()
        assert (target[counted] > 0.9 * rate).all()
        assert length[counted].sum() * 8 / 3 == pytest.approx(target[counted].mean(), rel=0.1)


@needs_encoder
@needs_av
def test_without_loss_what_is_seen_is_what_was_encoded(tmp_path: Path) -> None:
    import av

    # it does not probe, so that the rate is low for a while
    scenario = link(controller="gcc:libwebrtc-v1", start_rate="200kbps", video={"min": "30kbps", "max": "600kbps"})
    done, got = filmed(scenario, "procedural:size=320x192,codec=openh264")
    judged = judge(done, vmaf_every=0)
    assert judged.columns["psnr_db"].tolist() == judged.columns["psnr_encoded_db"].tolist()
    assert value(judged, "picture_frames_left_out") > 0, "a low rate to begin with"
    assert value(judged, "picture_frames_lost") == value(judged, "picture_frames_damaged") == 0
    # the byte stream plays by itself, and shows what was judged
    done.save(tmp_path / "run")
    with av.open(str(tmp_path / "run" / "encoded-call.h264")) as film:
        played = [digest(np.asarray(frame.to_ndarray(), np.uint8)) for frame in film.decode(video=0)]
    decoded = [pair for pair in pairs(got) if len(got.slices_in_time(pair.frame))]
    assert played[: len(decoded)] == [digest(pair.sent) for pair in decoded]
    assert [pair.decoded is not None and digest(pair.decoded) for pair in decoded[:50]] == played[:50]


@needs_encoder
@needs_av
def test_the_same_seed_gives_the_same_bits(tmp_path: Path) -> None:
    scenario = link("700kbps", loss=0.02, controller="gcc")
    first, _ = filmed(scenario, seed=5)
    two, _ = filmed(scenario, seed=5)
    other_seed, _ = filmed(scenario, seed=6)
    assert first.digest == two.digest != other_seed.digest
    assert first.encoded("call") == two.encoded("call") != other_seed.encoded("call")
    first.save(tmp_path / "run")
    again = Run.load(tmp_path / "run")
    assert again.encoded("call") == again.kept().encoded("call") == first.encoded("call")
    assert judge(again, vmaf_every=0).to_csv() == judge(first, vmaf_every=0).to_csv()
    with pytest.raises(InputError, match="ghost has no encoder in the loop"):
        again.encoded("ghost")
    (tmp_path / "run" / "encoded-call.h264").unlink()
    with pytest.raises(InputError, match="call has no encoder in the loop"):
        judge(again, vmaf_every=0)


def by_hand(done: Run) -> list[str]:
    """Decodes the byte stream without the slices of lost packets; nothing of ours but the record of the run."""
    slices, packets = done.table("slices"), done.table("packets")
    length = slices.to_numpy("length").astype(int)
    frames = slices.to_numpy("frame")[length > 0].tolist()
    length = length[length > 0]
    bits = done.encoded("call")
    stream, position = bits[: len(bits) - length.sum()], len(bits) - int(length.sum())
    mine = packets.to_numpy("kind") == "video"
    fates = {
        number: packets.to_numpy("fate")[mine & (packets.to_numpy("frame") == number)].tolist()
        for number in set(frames)
    }
    for number, size in zip(frames, length.tolist(), strict=True):
        # a slice is a packet; what is on its way at the end of the run has no fate
        if fates[number] and fates[number].pop(0) == "arrived":
            stream += bits[position : position + size]
        position += size
    return decoded(stream)


@needs_encoder
@needs_av
def test_lost_slices_are_concealed_as_by_hand() -> None:
    done, got = filmed(link(loss=0.03, controller="fixed:900kbps"), seed=3)
    in_time = [frame for frame in range(len(got)) if got.shown_s[frame] < 4.0 and len(got.slices_in_time(frame))]
    damaged = [frame for frame in in_time if got.slices_in_time(frame).any() and not got.slices_in_time(frame).all()]
    lost = [frame for frame in in_time if not got.slices_in_time(frame).any()]
    assert len(damaged) > 5, "there is something to conceal"
    ours = [digest(pair.decoded) for pair in pairs(got) if pair.decoded is not None and pair.frame in set(in_time)]
    assert len(ours) == len(in_time) - len(lost)
    assert ours == by_hand(done)[: len(ours)]
    assert ours != [digest(pair.sent) for pair in pairs(got)][: len(ours)]


@needs_encoder
@needs_av
def test_a_picture_loss_indication_brings_a_key_frame() -> None:
    def lossy(**repair: Any) -> tuple[Run, Received]:
        loss = {"schedule": [["0s", 0.0], ["1s", 1.0], ["1200ms", 0.0]]}
        scenario = link(loss=loss, playout={"fixed": "100ms"}, repair=repair, controller="fixed:400kbps")
        return filmed(scenario, "procedural:size=176x144,codec=openh264,group=0")

    plain, with_pli = lossy(), lossy(pli=True)
    frames, rtcp = (with_pli[0].table(name) for name in ("frames", "rtcp"))
    asked = rtcp.to_numpy("t_s")[["PLI" in content for content in rtcp.to_numpy("contents")]]
    keys = frames.to_numpy("captured_s")[frames.to_numpy("key")]
    assert keys[0] == 0
    assert len(asked) >= 1
    # 10 ms back, and the next picture of 25 a second
    assert 0.010 <= keys[1] - asked[0] <= 0.010 + 0.040 + 1e-6
    assert plain[0].table("frames").to_numpy("key").sum() == 1, "no key frame was requested, and there are no groups"
    # behind the loss: whole again, and not
    complete, broken = (judge(done, vmaf_every=0).columns for done, _ in (with_pli, plain))
    assert complete["psnr_db"][-25:].tolist() == complete["psnr_encoded_db"][-25:].tolist()
    assert (broken["psnr_db"][-25:] < broken["psnr_encoded_db"][-25:]).all()


@needs_encoder
@needs_av
def test_each_direction_has_its_encoder_and_a_camera_goes_on_through_pauses() -> None:
    scenario = link(controller="fixed:400kbps", both_ways=True, pauses=[["1s", "2s"]])
    done, got = filmed(scenario, "procedural:size=176x144,codec=openh264,group=0")
    assert done.encoded("call")
    assert done.encoded("call.back")
    order = take_of(got).order.tolist()
    assert order == [*range(25), *range(50, order[-1] + 1)]
    frames = done.table("frames")
    mine = frames.to_numpy("flow") == "call"
    assert np.flatnonzero(frames.to_numpy("key")[mine]).tolist() == [0, 25], "who looks again knows nothing of before"
    judged = judge(done, vmaf_every=0)
    assert judged.columns["psnr_db"].tolist() == judged.columns["psnr_encoded_db"].tolist()


@needs_encoder
@needs_av
def test_a_comparison_and_a_film_work_with_it(cli: Cli, tmp_path: Path) -> None:
    clip = ("--media", CLIP + ",vmaf_every=0")
    done = cli("compare", "gcc", "fixed:600kbps", "--capacity", "1Mbps", "--duration", "3s", *clip, "--out", "out")
    assert (done.code, "PSNR" in done.out) == (0, True), done.err
    assert (tmp_path / "out" / "contact-sheet.png").is_file()
    assert cli("media", "render", "out/runs/gcc-seed1", "-o", "one.mp4").code == 0
    listed = cli("media", "clips")
    assert "openh264, an encoder in the loop, is in this build" in " ".join(listed.out.split())


@needs_encoder
@needs_av
def test_a_clip_that_breaks_ends_the_run_with_its_name(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tidegate.video.clip import Procedural

    monkeypatch.setattr(
        Procedural, "pictures", lambda self, count: iter([np.zeros((self.height, self.width), np.uint8)])
    )
    done = cli("compare", "gcc", "--duration", "2s", "--media", CLIP, "--out", "out")
    assert done.code != 0
    assert "a picture of 25344 bytes: 176x144 needs 38016 bytes" in done.err
    assert "Traceback" not in done.err
    monkeypatch.setattr(Procedural, "pictures", lambda self, count: iter([]))
    done = cli("compare", "gcc", "--duration", "2s", "--media", CLIP, "--out", "out")
    assert "the clip ends before picture 0" in done.err
    assert not (tmp_path / "out").exists()


@needs_encoder
@needs_av
def test_a_scenario_file_may_name_a_clip_beside_it(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    film(tmp_path / "a" / "clip.mkv")
    film(tmp_path / "a" / "fast.mkv", fps=Fraction(120))

    def written(clip: str, more: str = "") -> str:
        (tmp_path / "a" / "x.toml").write_text(
            f'duration = "2s"\n[[links]]\ncapacity = "1Mbps"\n[[flows]]\nname = "call"\n'
            f'media = {{ video = {{ source = "encoder", clip = "{clip}" }}{more} }}\n'
        )
        return "a/x.toml"

    done = cli("run", written("clip.mkv:group=0"), "--record", "packets", "--out", "run")
    assert done.code == 0, done.err
    judged = judge(Run.load(tmp_path / "run"), vmaf_every=0)
    assert judged.columns["psnr_db"].tolist() == judged.columns["psnr_encoded_db"].tolist()
    for clip, more, message in [
        ("fast.mkv", "", "120 pictures per second: OpenH264 supports 1 to 60"),
        ("clip.mkv", ', payload = "100B"', "packets of 100 bytes: OpenH264 needs at least 200 bytes"),
        ("none.mkv", "", "none.mkv: there is no such file"),
    ]:
        done = cli("run", written(clip, more))
        assert (done.code, message in done.err, "flows.call" in done.err) == (2, True, True), done.err
