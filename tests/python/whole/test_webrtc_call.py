"""What WebRTC's call does around its controller: `gcc:libwebrtc` in a scenario."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

import tidegate
from support import Cli
from tidegate import Scenario, ScenarioError


def call(controller: str, way: Mapping[str, Any] | None = None, **media: Any) -> tidegate.Run:
    way = {"name": "way", "from": "left", "to": "right", "capacity": "10Mbps", "delay": "20ms", **(way or {})}
    flow = {"name": "call", "media": {"controller": controller, **media}}
    keys = {"name": "call", "duration": "60s", "sending_jitter": "off", "record": "series"}
    return tidegate.run(Scenario.from_dict({**keys, "links": [way], "flows": [flow]}))


PUSHBACKS = ("frames", "rate", "off")

# --- the pacer's queue ----------------------------------------------------------------------------


@pytest.mark.parametrize(("limit", "waits_ms"), [("2s", 1333.0), ("600ms", 400.0)])
def test_what_comes_faster_than_it_may_leave_waits_for_two_thirds_of_the_limit(limit: str, waits_ms: float) -> None:
    # the pacer may send 1.1 times 500 kbit/s; 972 come
    video = {"source": "cbr", "packet_size": "1000B", "rate": "1Mbps"}
    keys: dict[str, Any] = {"max_rate": "500kbps", "video": video, "queue_limit": limit}
    found = call("gcc:libwebrtc", **keys).metrics("call")
    assert found["sender_skipped_frames"] == 0
    # RTP packets of 972 bytes, 125 a second
    assert found["packets_sent"] == pytest.approx(7500 - 125 * waits_ms / 1000, rel=0.002)
    # bursts of 40 ms leave, so that what waits swings by as much
    assert found["sender_delay_ms_max"] == pytest.approx(waits_ms, abs=20 + 0.01 * waits_ms)
    others = call("gcc:libwebrtc-v1,pacing_factor=1.1", **keys).metrics("call")
    assert others["sender_skipped_frames"] > 2000, "a controller that does not ask for that leaves frames out"


# --- congestion-window pushback -------------------------------------------------------------------


def test_an_encoder_leaves_frames_out_while_more_is_in_flight_than_the_window_holds() -> None:
    # the link falls to a fifth for 20 s, before a queue of 1.5 s; 30 pictures a second
    falls = {
        "capacity": {"schedule": [["0s", "2Mbps"], ["20s", "400kbps"], ["40s", "2Mbps"]]},
        "queue": {"time": "1.5s"},
    }
    runs = {which: call(f"gcc:libwebrtc,pushback={which}", falls, video={"source": "ideal"}) for which in PUSHBACKS}
    found = {which: run.metrics("call") for which, run in runs.items()}
    assert {which: one["sender_skipped_frames"] for which, one in found.items()} == dict.fromkeys(PUSHBACKS, 0)
    assert found["rate"]["left_out_frames"] == found["off"]["left_out_frames"] == 0
    left_out = found["frames"]["left_out_frames"]
    captured = {which: one["frames_sent"] for which, one in found.items()}
    assert captured["frames"] + left_out == captured["rate"] == captured["off"]
    assert 10 < left_out < 20 * 30 / 2, "at most every other one while the link is slow"
    noted = runs["frames"].table("internals")
    times = noted.to_numpy("t_s")[noted.to_numpy("name") == "frames_left_out"]
    assert 20 < times.min() < 21
    # they are the first to go when the window is full, and the queue is gone sooner
    assert found["frames"]["one_way_delay_ms_p95"] < 0.5 * found["off"]["one_way_delay_ms_p95"]


# --- a shared screen ------------------------------------------------------------------------------

SCREEN: dict[str, Any] = {"content": "screen", "video": {"source": "ideal", "fps": 5, "max": "600kbps"}}


def test_a_shared_screen_is_what_a_call_sets_for_one() -> None:
    one = call("gcc:libwebrtc", **SCREEN)
    written = call(
        "gcc:libwebrtc,pacing_factor=1.0,alr_probing=true", **{**SCREEN, "content": "camera", "queue_limit": "2.875s"}
    )
    assert one.digest == written.digest
    camera = call("gcc:libwebrtc", **{**SCREEN, "content": "camera"})
    assert camera.digest != one.digest
    pacing, target = (one.table("decisions").to_numpy(name) for name in ("pacing_bps", "target_bps"))
    assert np.all(pacing <= target + 8)
    # who says otherwise has it otherwise
    own = call("gcc:libwebrtc,alr_probing=false,pacing_factor=1.1", queue_limit="2s", **SCREEN)
    assert own.digest == camera.digest
    # other controllers know no screens; only the limit is another one
    other = call("tfrc", **SCREEN)
    assert other.digest == call("tfrc", **{**SCREEN, "content": "camera"}).digest


def test_a_screen_is_video() -> None:
    with pytest.raises(ScenarioError, match=r'content: found "screen"; the flow has no video; expected "camera"'):
        call("gcc", content="screen", video=False, audio={"rate": "20kbps"})


def test_what_a_call_sets_is_told(cli: Cli) -> None:
    told = " ".join(cli("controllers", "gcc:libwebrtc").out.split())
    assert "defaults of a scenario's call with a camera: alr_probing=false, pacing_factor=1.1" in told
    assert "defaults of a scenario's call with a screen: alr_probing=true, pacing_factor=1.0" in told
    assert "a scenario's call" not in cli("controllers", "tfrc").out


@pytest.mark.parametrize("source", ["statistical", "ideal"])
def test_a_schedule_of_what_there_is_anyway_changes_nothing(source: str) -> None:
    falls = {
        "capacity": {"schedule": [["0s", "3Mbps"], ["10s", "300kbps"], ["20s", "2Mbps"]]},
        "queue": {"time": "2s"},
    }
    video = {"source": source, "max": "2.5Mbps"}
    plain = call("gcc", falls, video=video)
    assert plain.metrics("call")["left_out_frames"] > 10
    assert call("gcc", falls, video={**video, "schedule": [["0s", "2.5Mbps"]]}).digest == plain.digest


@pytest.mark.parametrize("source", [{"source": "ideal"}, {"source": "cbr", "packet_size": "1000B"}])
def test_a_schedule_counts_from_the_flows_start_though_it_begins_paused(source: dict[str, Any]) -> None:
    video = {**source, "schedule": [["0s", "200kbps"], ["25s", "2Mbps"]]}
    early, late = (
        call("fixed:5Mbps", video=video, pauses=[pause], max_rate="5Mbps") for pause in (["1s", "10s"], ["0s", "10s"])
    )
    sent = [run.metrics("call")["bytes_sent"] for run in (early, late)]
    # a second at 200 kbit/s is all that differs
    assert sent[0] - sent[1] == pytest.approx(25_000, rel=0.2)


def test_a_pacer_of_no_rate_pauses_nobody_while_nothing_waits() -> None:
    class Still(tidegate.Controller):
        def on_limits(self, now_ns: int, limits: tidegate.Limits) -> tidegate.Decision:
            del now_ns, limits
            return tidegate.Decision(500_000, pacing_bps=0, drain_queue=True)

        def on_report(self, now_ns: int, report: tidegate.Report) -> None:
            del now_ns, report

    assert call(Still).metrics("call")["packets_sent"] > 100  # type: ignore[arg-type]
