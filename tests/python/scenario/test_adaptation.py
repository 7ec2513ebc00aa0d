"""Resolution and frame rate that follow the encoder's rate in steps."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from support import PLAIN
from tidegate import Run, Scenario, ScenarioError, run
from tidegate.scenario.lower import lower

STEPS = [
    {"height": 180, "fps": 10.0},
    {"rate": "200kbps", "height": 180, "fps": 20.0},
    {"rate": "500kbps", "height": 360, "fps": 20.0},
]


def call(schedule: list[list[str]], adaptation: Any, duration: str = "29.98s", **keys: Any) -> Scenario:
    """A call at 4 Mbit/s over 5 Mbit/s, whose application bounds its encoder's rate."""
    plain = Scenario.parse(PLAIN).to_dict()
    video = {"source": "ideal", "schedule": schedule, "adaptation": adaptation, **keys.pop("video", {})}
    media = {"controller": "fixed:4Mbps", "video": video, **keys}
    link = {**plain["links"][0], "capacity": "5Mbps"}
    return Scenario.from_dict(
        {**plain, "duration": duration, "links": [link], "flows": [{**plain["flows"][0], "media": media}]}
    )


def steps(done: Run) -> list[tuple[float, float, float]]:
    """Time, height and frame rate of each step that begins."""
    table = done.table("internals")
    name, time, value = (table.to_numpy(column) for column in ("name", "t_s", "value"))
    heights, rates = name == "video_height", name == "video_fps"
    assert np.array_equal(time[heights], time[rates])
    return list(zip(time[heights].tolist(), value[heights].tolist(), value[rates].tolist(), strict=True))


def frames(done: Run) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Time of capture in s, size in bytes, and whether it is a key frame, of each frame of video."""
    table = done.table("frames")
    captured, size, key = (table.to_numpy(name) for name in ("captured_s", "size", "key"))
    return captured, size, key


UP_AND_DOWN = [["0s", "100kbps"], ["3s", "600kbps"], ["20s", "499kbps"]]


def test_steps_come_one_by_one_upwards_and_after_their_time() -> None:
    done = run(call(UP_AND_DOWN, {"steps": STEPS}), record="packets")
    # 600 kbit/s are 1.2 times 500: up after 5 s each, and down 2 s after it is below 500
    assert steps(done) == [(0.0, 180, 10), (8.0, 180, 20), (13.0, 360, 20), (22.0, 180, 20)]
    captured, size, key = frames(done)
    assert captured[key].tolist() == [0.0, 13.0, 22.0], "another frame rate alone needs no key frame"
    expected = [*np.arange(80) / 10, *(8 + np.arange(440) / 20)]
    np.testing.assert_allclose(captured, expected, atol=1e-9)
    for begin, end, kbps in ((0, 3, 100), (3, 8, 600), (8, 20, 600), (20, 30, 499)):
        inside = (captured >= begin) & (captured < end)
        assert 8 * size[inside].sum() / (end - begin) == pytest.approx(kbps * 1e3, abs=20), begin
    metrics = done.metrics()
    assert metrics["video_switches"] == 3
    assert metrics["key_frames"] == 3
    # 180 frames of 20 a second from 13 to 22 s
    assert metrics["video_height_mean"] == pytest.approx(180 + 180 * 180 / 520)
    assert metrics["freezes"] == 0
    assert metrics["without_picture_s"] == 0


def test_the_warmup_counts_no_switches() -> None:
    metrics = run(call(UP_AND_DOWN, {"steps": STEPS}).with_changes({"warmup": "10s"}), record="summary").metrics()
    assert metrics["video_switches"] == 2
    # 60 frames before, 180 in, and 160 after the time of 360 lines
    assert metrics["video_height_mean"] == pytest.approx(180 + 180 * 180 / 400)


def test_statistical_video_keeps_its_rate() -> None:
    done = run(call(UP_AND_DOWN, {"steps": STEPS}, video={"source": "statistical"}), record="packets")
    assert [(height, fps) for _, height, fps in steps(done)] == [(180, 10), (180, 20), (360, 20), (180, 20)]
    times = [time for time, *_ in steps(done)]
    # the first frame after the time, which may come 2 intervals later
    for time, due in zip(times, (0, 8, 13, 22), strict=True):
        assert due <= time < due + 0.2
    captured, size, key = frames(done)
    assert captured[key].tolist() == [times[0], times[2], times[3]]
    for begin, end, kbps, fps in ((9, 20, 600, 20), (4, 8, 600, 10), (23, 30, 499, 20)):
        inside = (captured >= begin) & (captured < end)
        # deviations of 0.21 of the mean frame and of the mean interval
        count = fps * (end - begin)
        assert inside.sum() == pytest.approx(count, abs=3 * 0.21 * count**0.5 + 1)
        assert 8 * size[inside].sum() / (end - begin) == pytest.approx(kbps * 1e3, rel=4 * 0.3 / count**0.5)


def swings(seconds: int) -> list[list[str]]:
    """A rate that swings each second from what the second step needs to nearly what the third one does."""
    return [[f"{second}s", "599kbps" if second % 2 else "200kbps"] for second in range(seconds)]


def test_within_the_hysteresis_there_is_no_switch() -> None:
    still = run(call(swings(60), {"steps": STEPS}, "60s"), record="series")
    assert steps(still) == [(0.0, 180, 20)]
    assert still.metrics()["video_switches"] == 0
    # the mechanism in two halves: by time alone nothing switches, and without either each swing does
    by_time = run(call(swings(60), {"steps": STEPS, "hysteresis": 1.0}, "60s"), record="series")
    assert by_time.metrics()["video_switches"] == 0
    no_time = {"steps": STEPS, "up_after": "0s", "down_after": "0s"}
    by_rate = run(call(swings(60), no_time, "60s"), record="series")
    assert by_rate.metrics()["video_switches"] == 0
    neither = run(call(swings(60), {**no_time, "hysteresis": 1.0}, "60s"), record="series")
    assert neither.metrics()["video_switches"] == 59
    assert neither.metrics()["key_frames"] == 60


def test_downwards_all_steps_are_taken_at_once() -> None:
    schedule = [["0s", "1Mbps"], ["10s", "100kbps"]]
    assert steps(run(call(schedule, {"steps": STEPS}))) == [(0.0, 360, 20), (12.0, 180, 10)]
    assert steps(run(call(schedule, {"steps": STEPS, "down_after": "0s"}))) == [(0.0, 360, 20), (10.0, 180, 10)]
    # 1.9 s are too short
    brief = [["0s", "1Mbps"], ["10s", "100kbps"], ["11900ms", "1Mbps"]]
    assert steps(run(call(brief, {"steps": STEPS}))) == [(0.0, 360, 20)]


def test_one_step_is_no_step() -> None:
    """The mechanism itself changes nothing: the digest is that of video without it."""
    for source in ("ideal", "statistical"):
        plain = Scenario.parse(PLAIN).with_changes({"flows.call.media.video.source": source})
        stepped = plain.with_changes({"flows.call.media.video.adaptation": {"steps": [{"height": 720}]}})
        assert run(stepped).digest == run(plain).digest
        assert run(stepped).metrics()["video_height_mean"] == 720
        for name in ("video_switches", "video_height_mean"):
            assert run(plain).metrics()[name] is None


def test_libwebrtcs_steps_follow_the_capacity_of_a_call() -> None:
    capacity = '{ schedule = [["0s", "3Mbps"], ["30s", "400kbps"], ["60s", "3Mbps"]] }'
    text = PLAIN.replace('"2Mbps"', capacity).replace("4s", "120s")
    done = run(Scenario.parse(text.replace('"gcc"', '"gcc", video = { adaptation = true }')))
    taken = steps(done)
    assert taken[:1] == [(0.0, 270, 30)], "300 kbit/s with headers are less than 300 kbit/s of video"
    heights = [180, 270, 360, 540, 720]

    def at(second: float) -> float:
        return [height for time, height, _ in taken if time <= second][-1]

    assert at(29) == 720
    assert at(58) in (180, 270, 360)
    assert at(119) == 720
    ups = [(a, b) for a, b in pairwise(taken) if b[1] > a[1]]
    assert all(b[0] - a[0] >= 5 and heights.index(int(b[1])) == heights.index(int(a[1])) + 1 for a, b in ups)
    assert done.metrics()["video_switches"] == len(taken) - 1 < 20
    still = run(Scenario.parse(text))
    assert done.metrics()["key_frames"] >= still.metrics()["key_frames"]


def test_a_screen_that_joins_begins_at_the_step_of_its_rate() -> None:
    scenario = call([["0s", "1Mbps"]], {"steps": STEPS})
    moves = [("0s", False), ("10s", True), ("15s", False), ("20s", True)]
    data = scenario.to_dict()
    data["moves"] = [{"time": time, "flow": "call", "key": "video", "value": on} for time, on in moves]
    data["flows"][0]["media"]["audio"] = {}
    done = run(Scenario.from_dict(data), record="packets")
    assert steps(done) == [(10.0, 360, 20)]
    table = done.table("frames")
    video = table.to_numpy("video") & table.to_numpy("key")
    assert table.to_numpy("captured_s")[video].tolist() == [10.0, 20.0]


WRONG: list[tuple[Any, str]] = [
    ({"steps": []}, "adaptation.steps: found []; expected a list of length 1 or more"),
    ({"steps": [{"rate": "1kbps", "height": 90}]}, 'adaptation.steps[1].rate: found "1kbps"; expected "0bps" for the first step'),
    ({"steps": [STEPS[0], STEPS[2], STEPS[1]]}, 'adaptation.steps[3].rate: found "200kbps" after "500kbps"; expected steps in ascending order of rate'),
    ({"steps": [STEPS[0], {"rate": "1kbps", "height": 180, "fps": 10.0}]}, "adaptation.steps[2]: found the height (180) and the fps of the step before; expected others"),
    ({"steps": [STEPS[0], {"rate": "2Tbps", "height": 360}]}, 'adaptation.steps[2].rate: found "2Tbps"'),
    ({"steps": [{"height": 0}]}, "adaptation.steps[1].height: found 0; expected a number of at least 1"),
    ({"steps": [{"rate": "0bps"}]}, "adaptation.steps[1].height"),
    ({"steps": STEPS, "hysteresis": 0.9}, "adaptation.hysteresis: found 0.9; expected a number of at least 1"),
    ({"steps": STEPS, "after": "2s"}, "adaptation.after: there is no such key"),
    ("often", 'adaptation: found "often"; expected true or false'),
]  # fmt: skip


@pytest.mark.parametrize(("adaptation", "said"), WRONG)
def test_steps_that_make_no_sense_are_refused(adaptation: Any, said: str) -> None:
    with pytest.raises(ScenarioError) as error:
        call([["0s", "1Mbps"]], adaptation)
    assert said in str(error.value)


@pytest.mark.parametrize("source", ["greedy", "frames", "encoder", "cbr"])
def test_other_sources_have_no_steps(source: str) -> None:
    with pytest.raises(ScenarioError, match="adaptation: there is no such key"):
        call([["0s", "1Mbps"]], True, video={"source": source, "ladder": "x", "clip": "x", "packet_size": "1kB"})


def test_the_engine_is_told_only_where_there_are_steps() -> None:
    def video(adaptation: Any) -> Any:
        return lower(call([["0s", "1Mbps"]], adaptation, video={"fps": 25.0})).ir["flows"][0]["kind"]["media"]["video"]

    assert "adaptation" not in video(False)
    adapted = video(True)["adaptation"]
    assert [(step["rate"], step["height"], step["fps"]) for step in adapted["steps"]] == [
        (0, 180, 25.0),
        (200_000, 270, 25.0),
        (300_000, 360, 25.0),
        (500_000, 540, 25.0),
        (900_000, 720, 25.0),
    ]
    assert {key: value for key, value in adapted.items() if key != "steps"} == {
        "hysteresis": 1.2,
        "up_after": 5_000_000_000,
        "down_after": 2_000_000_000,
    }
    scenario = call([["0s", "1Mbps"]], {"steps": STEPS, "hysteresis": 1.5})
    assert Scenario.parse(scenario.to_toml()).to_dict() == scenario.to_dict()


def test_time_without_a_picture_goes_by_the_frame_rate_of_the_time() -> None:
    # 30 frames a second and then 4: 250 ms would be long at the first frame rate (183 ms), and are not at the second
    few = {"steps": [{"height": 180, "fps": 4.0}, {"rate": "500kbps", "height": 360}]}
    done = run(call([["0s", "1Mbps"], ["10s", "100kbps"]], few))
    assert steps(done) == [(0.0, 360, 30), (12.0, 180, 4)]
    assert done.metrics()["without_picture_s"] == 0
    rare = {"steps": [{"height": 180, "fps": 4.0}, {"rate": "500kbps", "height": 180, "fps": 0.5}]}
    # a picture each 2 s is late for 4 frames a second, and in time for one each 2 s
    assert run(call([["0s", "1Mbps"]], rare)).metrics()["without_picture_s"] == 0
