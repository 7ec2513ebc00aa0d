"""A target below the lowest rate of the encoder: what the run's numbers and its warning say."""

from __future__ import annotations

from typing import Any

import pytest

from support import PLAIN
from tidegate import Run, Scenario, ScenarioError, run


def under(rate: str, **video: Any) -> Run:
    """A call of 20 s under this target over 2 Mbit/s, its video at 300 kbit/s at least."""
    plain = Scenario.parse(PLAIN).to_dict()
    media = {
        "controller": {"name": "fixed", "rate": rate},
        "video": {"source": "ideal", "min": "300kbps", **video},
        "audio": {},
    }
    flow = {**plain["flows"][0], "media": media}
    return run(Scenario.from_dict({**plain, "duration": "20s", "warmup": "5s", "flows": [flow]}), record="summary")


def test_a_target_that_is_too_low_is_warned_of_where_frames_wait() -> None:
    waits = under("200kbps", below_min="wait")
    metrics = waits.metrics()
    assert metrics["below_least_s"] == 15.0
    # media of 2 s at 200 kbit/s wait, and the pacer sends them at 170 kbit/s behind the audio
    assert 1900 < metrics["below_least_wait_ms_max"] < 2600
    (warning,) = [text for text in waits.remarks.warnings if "media.video.min" in text]
    # 30 frames of 1250 bytes in 2 packets, and 50 packets of audio: 300 + 13.4 and 20 + 9.6 kbit/s
    assert warning.startswith(
        "flows.call.media.video.min: for 15.0 of 15.0 s the target was below what audio and the encoder's lowest rate "
        "need with their headers, 343 kbit/s, and media waited up to "
    )
    assert "frames were not sent" in warning


@pytest.mark.parametrize(("rate", "below_min"), [("200kbps", "send"), ("200kbps", "suspend"), ("400kbps", "wait")])
def test_no_warning_where_none_wait(rate: str, below_min: str) -> None:
    done = under(rate, below_min=below_min)
    metrics = done.metrics()
    assert not [text for text in done.remarks.warnings if "video.min" in text]
    assert metrics["below_least_s"] == (15.0 if rate == "200kbps" else 0.0)
    assert metrics["sender_skipped_frames"] == 0
    video = {"send": 300e3, "suspend": 0.0, "wait": 356e3}[below_min]
    audio = 50 * 8 * (50 + 24 + 28)
    per_packet = 30 * 2 * 8 * 56
    headers = per_packet if video else 0
    padding = metrics["receive_rate_bps"] - audio - video - headers
    if below_min == "suspend":
        # padding fills the target, which counts no IP and UDP
        assert 160e3 < padding < 210e3
    else:
        assert abs(padding) < 12e3


def test_suspended_video_comes_back_under_gcc() -> None:
    plain = Scenario.parse(PLAIN).to_dict()
    steps = [["0s", "1Mbps"], ["20s", "100kbps"], ["60s", "1Mbps"]]
    links = [{**plain["links"][0], "capacity": {"schedule": steps}}]
    media = {"controller": "gcc", "audio": {}, "video": {"min": "150kbps", "below_min": "suspend", "key_factor": 3.0}}
    flow = {**plain["flows"][0], "media": media}
    done = run(Scenario.from_dict({**plain, "duration": "100s", "links": links, "flows": [flow]}), record="packets")
    table = done.table("frames")
    times = [t for t, video in zip(table["captured_s"].tolist(), table["video"].tolist(), strict=True) if video]

    def frames(begin: float, end: float) -> int:
        return sum(begin <= time < end for time in times)

    assert frames(0, 20) == pytest.approx(600, abs=10)
    assert frames(40, 60) == 0, "100 kbit/s are too little for 150"
    assert frames(80, 100) == pytest.approx(600, abs=10)


def test_other_words_are_refused() -> None:
    with pytest.raises(ScenarioError, match="below_min"):
        under("1Mbps", below_min="stop")
    with pytest.raises(ScenarioError, match="below_min"):
        under("1Mbps", source="greedy", below_min="send")
