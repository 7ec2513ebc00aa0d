"""Calls that go on after trouble: a link that is idle again is used again."""

from __future__ import annotations

from typing import Any

import pytest

import tidegate
from gcc_experiments import RecordedFlow
from tidegate import Scenario

CONTROLLERS = ("gcc", "nada", "nada:ns3-rmcat", "scream", "scream:ericsson-2026-07", "scream-v1")
SILENT = {"capacity": "5Mbps", "back": {"loss": {"schedule": [["0s", 0], ["20s", 1], ["30s", 0]]}}}
DROPPED = {"capacity": {"schedule": [["0s", "5Mbps"], ["20s", "100kbps"], ["30s", "5Mbps"]]}, "discipline": "dualpi2"}


@pytest.mark.parametrize("link", [SILENT, DROPPED], ids=["no feedback", "a fiftieth of the capacity"])
@pytest.mark.parametrize("controller", CONTROLLERS)
def test_a_call_comes_back_after_ten_bad_seconds(controller: str, link: dict[str, Any]) -> None:
    """Half a minute later it has a tenth of 5 Mbit/s at least.

    A frame and the alarm after which a window opens again are often due at one instant here; SCReAM was silent for good
    where the frame came first and took the alarm away.
    """
    call = {"controller": controller, "video": {"source": "ideal", "max": "8Mbps"}}
    data = {
        "duration": "60s",
        "links": [{"name": "up", "delay": "25ms", "queue": {"time": "300ms"}, **link}],
        "flows": [{"name": "call", "media": call}],
    }
    seen = RecordedFlow(tidegate.run(Scenario.from_dict(data)), "call")
    assert seen.mean_rate(10, 20) > 0.5e6
    assert seen.mean_rate(50, 60) > 0.5e6
