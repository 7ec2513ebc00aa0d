"""NADA through the whole engine: where equation (5) of RFC 8698 says that it rests, priorities, marks, both placements."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest

import tidegate
from support import ROOT, example, shared
from tidegate import Run, Scenario
from tidegate.control import nada

CALL = """\
duration = "{duration}"

[[links]]
name = "cable"
capacity = "{capacity}"
delay = "25ms"
queue = {{ time = "300ms" }}
{link}
"""

FLOW = """
[[flows]]
name = "{name}"
media = {{ controller = "{controller}", max_rate = "1500kbps", video = {{ source = "greedy", max = "1500kbps" }}{more} }}
"""


def call(*flows: str, capacity: str = "1Mbps", duration: str = "40s", link: str = "", more: str = "") -> Run:
    """Flows of these controllers on one link, each with 1.5 Mb/s at most."""
    text = CALL.format(capacity=capacity, duration=duration, link=link)
    for number, controller in enumerate(flows):
        text += FLOW.format(name=f"call{number}" if number else "call", controller=controller, more=more)
    return tidegate.run(Scenario.parse(text), record="packets")


@pytest.mark.parametrize("name", ["const1m", "loss5"])
def test_updates_are_those_of_ns3_rmcat(name: str) -> None:
    """From the first to the last, nothing taken over but packets."""
    files = [ROOT / "tests" / "data" / "nada" / f"nada_ns3rmcat_{name}_{table}.csv" for table in ("packets", "updates")]
    count, off = example("replay_nada").replay(*files)
    assert count >= 60
    assert off < 1e-6
    # the RFC's estimates are others
    assert example("replay_nada").replay(*files, "rfc8698")[1] > 0.01


def test_all_updates_of_the_recording() -> None:
    """A minute."""
    files = [shared() / "vectors" / f"nada_ns3rmcat_const1m_{table}.csv" for table in ("packets", "updates")]
    count, off = example("replay_nada").replay(*files)
    assert count == 599
    assert off < 1e-6


def test_equations_are_those_of_the_rfc() -> None:
    """Closed forms."""
    vectors = json.loads((ROOT / "tests" / "data" / "nada" / "nada_equations.json").read_text("utf-8"))
    near = partial(pytest.approx, rel=1e-9)
    for queueing, tilde in vectors["warp"]:
        assert nada.equivalent_delay(queueing, loss_int=10, since_loss=1) == near(tilde)
    for row in vectors["x_curr"]:
        signal = nada.congestion_signal(row["d_tilde"], p_mark=row["p_mark"], p_loss=row["p_loss"])
        assert signal == near(row["x_curr"])
    for row in vectors["gradual"]:
        arguments = (row[key] for key in ("r_ref", "x_curr", "x_prev", "delta_ms"))
        assert nada.gradual_update(*arguments, rmax_bps=1.5e6) == near(row["unclipped"])
    for row in vectors["rampup"]:
        assert nada.gamma(row["rtt_ms"]) == near(row["gamma"])
    for row in vectors["buffer"]:
        shaped = nada.shaped_rates(row["r_ref"], row["buffer_len_bytes"], rmin_bps=150e3, rmax_bps=1.5e6)
        assert shaped == near((row["r_vin"], row["r_send"]))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: nada.gamma(-1), "rtt_ms: found -1; expected a number of at least 0"),
        (lambda: nada.equivalent_delay(1, loss_int=0), "loss_int: found 0; expected a number of more than 0"),
        (lambda: nada.congestion_signal(1, p_loss=2), "p_loss: found 2; expected a number of at least 0 and at most 1"),
        (lambda: nada.shaped_rates(float("nan"), 0, rmax_bps=1), "r_ref_bps: found NaN"),
        (lambda: nada.gamma(1, preset="draft"), "`preset` is `draft`, expected one of `rfc8698`, `ns3-rmcat`"),
        (lambda: nada.gamma(1, gama_max=1), "`gama_max` is not a setting"),
    ],
)
def test_what_is_wrong_is_said(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        call()


def late(run: Run, series: str, flow: str = "call") -> float:
    """Mean of an internal value over the second half."""
    table = run.table("internals")
    chosen = (table.to_numpy("name") == series) & (table.to_numpy("flow") == flow)
    times, values = table.to_numpy("t_s")[chosen], table.to_numpy("value")[chosen]
    return float(np.mean(values[times > times.max() / 2]))


@pytest.mark.parametrize("controller", ["nada", "nada:ecn=false", "nada:placement=receiver", "nada:ns3-rmcat"])
def test_alone_it_holds_the_queue_of_equation_5(controller: str) -> None:
    """XREF RMAX / r = 10 ms * 1.5 / 1: rates are of RTP packets, so that r is somewhat below 1 Mb/s."""
    run = call(controller)
    metrics = run.metrics()
    assert 0.97e6 < metrics["receive_rate_bps"] * 40 / 38 < 1.03e6
    rate, signal = late(run, "r_ref_bps"), late(run, "x_curr_ms")
    assert signal == pytest.approx(10 * 1.5e6 / rate, rel=0.02)
    assert 0.93e6 < rate < 1e6
    assert metrics["loss_fraction"] == 0
    # 25 ms, 15 ms, and 10 ms of a packet of 1200 bytes
    assert 35 < metrics["one_way_delay_ms_p50"] < 55


def test_rates_are_as_priorities() -> None:
    """Of flows that begin together and see the same signal."""
    run = call("nada:prio=2", "nada", "nada", capacity="2Mbps", duration="60s")
    rates = [late(run, "r_ref_bps", flow) for flow in ("call", "call1", "call2")]
    assert rates[0] / rates[1] == pytest.approx(2, rel=0.1)
    assert rates[1] / rates[2] == pytest.approx(1, rel=0.03)
    assert sum(run.metrics(flow)["receive_rate_bps"] for flow in ("call", "call1", "call2")) == pytest.approx(
        2e6, rel=0.05
    )


def test_marks_take_the_place_of_losses() -> None:
    """CoDel drops what it may not mark. Both count, at reference ratios of 1 %, with 2 and with 10 ms."""
    codel = 'discipline = { name = "codel", ecn = true }'
    marked, dropped = call("nada", link=codel), call("nada:ecn=false", link=codel)
    assert marked.metrics()["loss_fraction"] == 0
    assert 0.01 < dropped.metrics()["loss_fraction"] < 0.05
    assert 0.02 < late(marked, "p_mark") < 0.1
    assert 0.01 < late(dropped, "p_loss") < 0.05
    assert (late(marked, "p_loss"), late(dropped, "p_mark")) == (0, 0)


def test_feedback_of_either_kind_gives_the_same_rate() -> None:
    """RFC 8888 tells arrivals in 1/1024 s, transport-wide feedback in 1/4000 s."""
    rates = [
        late(call("nada:ecn=false", more=f', feedback = {{ format = "{kind}" }}'), "r_ref_bps")
        for kind in ("ccfb", "twcc")
    ]
    assert rates[0] == pytest.approx(rates[1], rel=0.02)


def test_the_receiver_speaks_ten_times_a_second() -> None:
    """An APP packet of 20 bytes, alone but for those that go along with an RTCP report."""
    rtcp = call("nada:placement=receiver").table("rtcp")
    is_report = rtcp.to_numpy("from_receiver").astype(bool) & (rtcp.to_numpy("size") == 28 + 20)
    times = rtcp.to_numpy("t_s")[is_report]
    assert 330 < len(times) <= 400
    assert np.median(np.diff(times)) == pytest.approx(0.1, abs=0.02)


def test_who_comes_late_takes_the_queue_for_propagation() -> None:
    """The late-comer effect of RFC 8698 section 6.1: the second flow measures less and gets more."""
    text = CALL.format(capacity="1Mbps", duration="90s", link="")
    text += FLOW.format(name="call", controller="nada", more="")
    text += FLOW.format(name="late", controller="nada", more="").replace("media =", 'start = "30s"\nmedia =')
    run = tidegate.run(Scenario.parse(text), record="packets")
    assert late(run, "queueing_ms", "late") < late(run, "queueing_ms") - 2
    assert late(run, "r_ref_bps", "late") > 1.1 * late(run, "r_ref_bps")
