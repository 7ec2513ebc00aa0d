"""Times of RTCP reports by their named rules, through whole scenarios."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tidegate import Media, Run, Scenario, run
from tidegate.errors import ScenarioError


def call(feedback: dict[str, Any], **media: Any) -> Scenario:
    """A call of 1.8 Mbit/s over a wide link for 200 s."""
    media = {
        "controller": "fixed:1.8Mbps",
        "video": {"source": "ideal"},
        "feedback": feedback,
        "repair": "none",
        **media,
    }
    return Scenario.from_dict(
        {
            "duration": "200s",
            "links": [{"name": "wide", "capacity": "20Mbps", "delay": "25ms"}],
            "flows": [{"name": "call", "media": media}],
        }
    )


def gaps(done: Run, kind: str, *, of_receiver: bool) -> npt.NDArray[np.float64]:
    """Times between two compounds of an end that begin with such a report, s."""
    rtcp = done.table("rtcp")
    begins = np.array([str(contents).split("+")[0] == kind for contents in rtcp.to_numpy("contents")])
    mine = (rtcp.to_numpy("from_receiver") == of_receiver) & begins
    return np.diff(rtcp.to_numpy("t_s")[mine])


@pytest.mark.parametrize(
    ("reports", "sender", "receiver", "least", "most"),
    # by RFC 3550 both ends alike, by 360 s / 2500; a number is drawn from 0.41 to 1.23 of that, from 0.5 to 1.5 of
    # libwebrtc's intervals: 360 s / 1800 for what is sent, and a second for what is received
    [("rfc3550", 0.144, 0.144, 0.41, 1.24), ("libwebrtc", 0.2, 1.0, 0.49, 1.53)],
)
def test_reports_come_at_the_times_of_their_rule(
    reports: str, sender: float, receiver: float, least: float, most: float
) -> None:
    done = run(call({"reports": reports}), record="packets")
    for mean, times in (
        (sender, gaps(done, "SR", of_receiver=False)),
        (receiver, gaps(done, "RR", of_receiver=True)),
    ):
        # four standard deviations of the mean of uniform numbers between half and one and a half
        assert times[1:].mean() == pytest.approx(mean, rel=0.02 + 4 / np.sqrt(12 * len(times)))
        assert least * mean <= times[1:].min()
        assert times.max() <= most * mean


def test_rfc_3550_is_the_default_where_packets_may_not_come_at_any_time() -> None:
    for profile in ("avp", "avpf"):
        assert Media(feedback={"profile": profile}).feedback.report_times == "rfc3550"
    # said in a file, it holds under every profile
    assert Media(feedback={"profile": "avpf", "reports": "rfc3550"}).feedback.report_times == "rfc3550"


@pytest.mark.parametrize(
    ("feedback", "message"),
    [
        ({"reports": "webrtc"}, 'found "webrtc"; expected "auto", "rfc3550", "libwebrtc", or a time'),
        (
            {"reports": "libwebrtc", "profile": "avp"},
            'found "libwebrtc"; it needs profile = "free", and profile is "avp"',
        ),
        ({"reports": "libwebrtc", "profile": "avpf"}, 'with profile = "avpf" use rr_interval instead'),
    ],
)
def test_a_rule_that_does_not_fit_is_refused(feedback: dict[str, Any], message: str) -> None:
    with pytest.raises(ScenarioError) as error:
        call(feedback)
    assert message in str(error.value)
