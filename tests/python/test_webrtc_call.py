"""What WebRTC's call does around its controller: `gcc:libwebrtc` in a scenario."""

from __future__ import annotations

from typing import Any

import pytest

import tidegate
from tidegate import Scenario

# --- the pacer's queue ----------------------------------------------------------------------------


def call(controller: str, **media: Any) -> tidegate.Run:
    way = {"name": "way", "from": "left", "to": "right", "capacity": "10Mbps", "delay": "20ms"}
    flow = {"name": "call", "media": {"controller": controller, **media}}
    keys = {"name": "call", "duration": "60s", "sending_jitter": "off", "record": "series"}
    return tidegate.run(Scenario.from_dict({**keys, "links": [way], "flows": [flow]}))


@pytest.mark.parametrize(("limit", "waits_ms"), [("2s", 1333.0), ("600ms", 400.0)])
def test_what_comes_faster_than_it_may_leave_waits_for_two_thirds_of_the_limit(limit: str, waits_ms: float) -> None:
    # the pacer may send 1.1 times 500 kbit/s; 972 come
    video = {"source": "cbr", "packet_size": "1000B", "rate": "1Mbps"}
    keys: dict[str, Any] = {"max_rate": "500kbps", "video": video, "queue_limit": limit}
    found = call("gcc:libwebrtc", **keys).metrics("call")
    assert found["sender_skipped_frames"] == 0
    # RTP packets of 972 bytes, 125 a second
    assert found["packets_sent"] == pytest.approx(7500 - 125 * waits_ms / 1000, rel=0.002)
    assert found["sender_delay_ms_max"] == pytest.approx(waits_ms, rel=0.03)
    others = call("gcc:libwebrtc-v1,pacing_factor=1.1", **keys).metrics("call")
    assert others["sender_skipped_frames"] > 2000, "a controller that does not ask for that leaves frames out"
