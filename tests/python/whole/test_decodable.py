"""Frames that can be decoded: against the closed form of groups of pictures, and against a walk over each lost packet."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tidegate import Run, Scenario, run

GROUP = 12
KEY_PACKETS, PACKETS = 4, 2
PAYLOAD = 1200
LOSS = 0.02
GROUPS = 1000


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A thousand groups of recorded frames over independent losses, without repair."""
    folder = tmp_path_factory.mktemp("ladder")
    sizes = [KEY_PACKETS * PAYLOAD] + [PACKETS * PAYLOAD] * (GROUP - 1)
    (folder / "clip_500.txt").write_text("".join(f"{n} P 0 0 {size}\n" for n, size in enumerate(sizes)))
    video = {"source": "frames", "ladder": str(folder / "clip_*.txt"), "group": GROUP, "max": "600kbps", "fps": 25}
    media = {"controller": "fixed:2Mbps", "max_rate": "2Mbps", "video": video, "playout": {"fixed": "100ms"}}
    media |= {"payload": f"{PAYLOAD}B", "repair": "none"}
    link = {"name": "wire", "capacity": "20Mbps", "delay": "10ms", "loss": LOSS, "back": {"loss": 0.0}}
    scenario = {"duration": f"{GROUPS * GROUP / 25 + 1}s", "links": [link], "flows": [{"name": "call", "media": media}]}
    return run(Scenario.from_dict(scenario), 1, "packets")


def test_as_many_frames_are_shown_as_the_closed_form_says(recorded: Run) -> None:
    frames = recorded.table("frames")
    shown = np.isfinite(frames.to_numpy("rendered_s"))[: GROUPS * GROUP].reshape(GROUPS, GROUP)
    assert frames.to_numpy("key")[: GROUPS * GROUP].reshape(GROUPS, GROUP)[:, 0].all()
    whole = (1 - LOSS) ** PACKETS
    expected = (1 - LOSS) ** KEY_PACKETS * (1 - whole**GROUP) / (GROUP * (1 - whole))
    shares = shown.mean(axis=1)
    error = shares.std(ddof=1) / np.sqrt(GROUPS)
    assert error < 0.015
    assert shares.mean() == pytest.approx(expected, abs=3 * error)
    # a rule that shows each whole frame would show nearly all
    assert whole > expected + 10 * error


def damaged_frames(recorded: Run) -> set[int]:
    """Numbers of the frames of which a packet was lost."""
    packets = recorded.table("packets")
    lost = ~np.isin(packets.to_numpy("fate"), ["arrived", "in flight"]) & (packets.to_numpy("kind") == "video")
    return set(packets.to_numpy("frame")[lost].astype(int).tolist())


def test_a_walk_over_the_lost_packets_finds_the_same_frames(recorded: Run) -> None:
    frames, damaged = recorded.table("frames"), damaged_frames(recorded)
    assert len(damaged) > 200
    keys, shown = frames.to_numpy("key").tolist(), np.isfinite(frames.to_numpy("rendered_s")).tolist()
    decoded, expected = False, []
    for number, key in enumerate(keys):
        decoded = number not in damaged and (key or decoded)
        expected.append(decoded)
    # what is on its way at the end has no fate
    ended = len(keys) - 10
    assert shown[:ended] == expected[:ended]


def test_the_time_without_a_picture_and_the_delays_follow_from_what_is_shown(recorded: Run) -> None:
    frames, metrics = recorded.table("frames"), recorded.metrics("call")
    captured, rendered = frames.to_numpy("captured_s"), frames.to_numpy("rendered_s")
    end = float(recorded.summary["duration_s"])
    shown = np.isfinite(rendered)
    gaps = np.diff(np.concatenate([captured[:1], rendered[shown], [end]]))
    # 150 ms more than an interval of 40 ms
    assert metrics["without_picture_s"] == pytest.approx(gaps[gaps > 0.19].sum(), abs=1e-6)
    assert recorded.table("without_picture").to_numpy("length_s").sum() == pytest.approx(metrics["without_picture_s"])
    later = np.append(rendered, end)
    for number in range(len(captured) - 1, -1, -1):
        later[number] = rendered[number] if shown[number] else later[number + 1]
    delays = (later[:-1] - captured) * 1e3
    assert metrics["frame_delay_ms_mean"] == pytest.approx(delays.mean(), rel=1e-6)
    for share, name in ((0.5, "p50"), (0.95, "p95"), (0.99, "p99")):
        quantile = float(np.quantile(delays, share, method="inverted_cdf"))
        assert metrics[f"frame_delay_ms_{name}"] == pytest.approx(quantile, rel=0.005)
    assert metrics["frame_delay_ms_max"] == pytest.approx(delays.max(), rel=1e-6)


def test_the_delay_of_whole_frames_is_that_of_a_decoder_that_needs_no_references(recorded: Run) -> None:
    frames, damaged = recorded.table("frames"), damaged_frames(recorded)
    captured, due = frames.to_numpy("captured_s"), frames.to_numpy("due_s")
    later = np.append(due, float(recorded.summary["duration_s"]))
    for number in range(len(captured) - 1, -1, -1):
        if number in damaged or not np.isfinite(due[number]):
            later[number] = later[number + 1]
    expected = float(np.quantile((later[:-1] - captured) * 1e3, 0.5, method="inverted_cdf"))
    assert recorded.metrics("call")["whole_frame_delay_ms_p50"] == pytest.approx(expected, rel=0.005)
    # 100 ms of playout delay, 10 ms of the link, and 5 ms for each of two packets at 2 Mbit/s
    assert 119 < expected < 122
    assert recorded.metrics("call")["frame_delay_ms_p50"] > expected


def test_a_lost_b_frame_is_missing_alone_and_a_lost_reference_takes_all_up_to_the_next_key_frame(
    tmp_path: Path,
) -> None:
    """In coding order I P B B P B B P ...: of ten thousand frames those are shown whose references arrived."""
    kinds = ["I", "P", *("BBP" * 4)[:10]]
    (tmp_path / "clip_500.txt").write_text("".join(f"{n} {kind} 0 0 1000\n" for n, kind in enumerate(kinds)))
    video = {"source": "frames", "ladder": str(tmp_path / "clip_*.txt"), "group": 12, "max": "600kbps", "fps": 25}
    media = {"controller": "fixed:2Mbps", "max_rate": "2Mbps", "video": video, "playout": {"fixed": "100ms"}}
    link = {"name": "wire", "capacity": "20Mbps", "delay": "10ms", "loss": LOSS, "back": {"loss": 0.0}}
    flow = {"name": "call", "media": {**media, "repair": "none"}}
    recorded = run(Scenario.from_dict({"duration": "400s", "links": [link], "flows": [flow]}), 1, "packets")
    damaged, shown = damaged_frames(recorded), np.isfinite(recorded.table("frames").to_numpy("rendered_s")).tolist()
    assert sum(kinds[number % 12] == "B" for number in damaged) > 50
    expected, chain = [], False
    for number in range(len(shown)):
        kind = kinds[number % 12]
        whole = number not in damaged
        if kind != "B":
            chain = whole and (chain or kind == "I")
        expected.append(whole and chain)
    assert shown[:-10] == expected[:-10]
