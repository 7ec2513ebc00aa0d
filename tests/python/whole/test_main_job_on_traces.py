"""The main job over collected networks: they load, and a comparison over one of each makes sense."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from support import shared
from tidegate import Comparison, Run, Scenario, TraceError, compare, plot, run, scenario_for, trace
from tidegate.results.metrics import HEADLINE
from tidegate.show.view import flow_series

FOLDERS = {
    # files, format, and one that a comparison is made over
    "mahimahi": (8, "mahimahi", "Verizon-LTE-short.down"),
    "nyc-lte": (5, "mahimahi", "trace-3201711-timessquare"),
    "aml-jens-drp": (6, "data-rate-pattern", "drp_munich_autobahn.csv"),
    "indigo-calibrated": (4, "mahimahi", "3.04mbps-poisson.trace"),
    "raca-5g": (16, "raca", "Download_Driving_B_2020.02.27_17.30.15.csv.gz"),
    "opennetlab-gym": (16, "opennetlab", "4G_3mbps.json"),
}


def folder(name: str) -> Path:
    return shared() / "traces" / name


@pytest.mark.parametrize("name", FOLDERS)
def test_every_file_loads(name: str) -> None:
    count, kind, _ = FOLDERS[name]
    files = [file for file in folder(name).rglob("*") if file.is_file() and file.name != "README.md"]
    assert len(files) == count
    for file in files:
        if file.name == "drp_ericsson.csv":
            # it does not say how many lines a second it has, and a guess would be wrong
            with pytest.raises(TraceError, match=r"drp_ericsson\.csv, data-rate-pattern: found no frequency; expected"):
                trace.load(file)
        one = trace.load(file, frequency=100 if file.name == "drp_ericsson.csv" else None)
        assert one.format == kind
        times, rates = one.series(one.duration_ns // 100)
        assert len(times) == len(rates) >= 100
        # the mean over all bins is the mean; a hundredth of the time is left over at most
        assert np.mean(rates[:100]) == pytest.approx(one.mean_rate, rel=0.01), file.name
        assert 100e3 < one.mean_rate < 1e9


@pytest.fixture(scope="module", params=FOLDERS)
def compared(request: pytest.FixtureRequest) -> Comparison:
    _, _, file = FOLDERS[request.param]
    # what is held below was looked at for the first half minute of each
    base = scenario_for(link=folder(request.param) / file, duration="30s")
    begin = base.with_changes({"links.bottleneck.capacity.offset": "0s"})
    return compare(["gcc", "fixed", "fixed:2500kbps"], begin, seeds=1)


def test_a_comparison_makes_sense(compared: Comparison) -> None:
    for controller in ("gcc", "fixed"):
        (one,) = compared.runs[controller]
        metrics = one.metrics()
        for name in HEADLINE:
            value = metrics[name]
            assert isinstance(value, float | int), name
            assert math.isfinite(value), name
            assert value >= 0, name
        assert metrics["utilisation"] <= 1
        assert metrics["loss_fraction"] < 0.5
        # the scenario's link is 20 ms long
        assert metrics["one_way_delay_ms_min"] >= 20
        assert metrics["one_way_delay_ms_p50"] < 500
        check_pictures(one)
        assert 50e3 < metrics["receive_rate_bps"] < 2.6e6, "the encoder's range"
        check_truth(one)
    (gcc,), (fixed,), (most,) = compared.runs.values()
    # what gives way waits less than what does not, be it at 1 Mbit/s or at all that the encoder can make
    assert gcc.metrics()["loss_fraction"] <= fixed.metrics()["loss_fraction"]
    waits, *others = (one.metrics()["one_way_delay_ms_p95"] for one in (gcc, fixed, most))
    # a frame that leaves in one piece waits for itself: 2.5 Mbit/s at 30 a second
    itself = 1e3 * 2.5e6 / 30 / gcc.summary["links"][0]["capacity_bps"]
    assert waits < 1.1 * max(others) + itself
    target = set(fixed.table("decisions").to_numpy("target_bps"))
    assert target == {1e6}


DURATION, FPS, BIN = 30.0, 30.0, 0.2
LATER_HALF = 15.0
"""From here on nothing is left of what outages in the first seconds of a recording delayed, s."""
LONGEST_DELAY = 1.0
"""By which the playout buffer shows a frame later than the fastest one at most, s."""
NEEDED, OUTAGE = 1e6, 50e3
"""What `fixed` sends, and less than gets a frame through in time, bit/s."""


def check_pictures(one: Run) -> None:
    """All pictures are shown but those for which the link was too slow, and those by which a sender is behind.

    The recording of raca-5g begins with nine slow seconds, six of which carry next to nothing. `fixed` loses a fifth of
    its packets there and has no rate to spare for sending them again: its new frames wait, longer than a second until
    14 s. So half of its frames are shown, without an error of the playout.
    """
    metrics = one.metrics()
    assert metrics["frames_sent"] + metrics["left_out_frames"] == pytest.approx(FPS * DURATION, rel=0.02)
    truth, stretches = one.table("truth"), one.table("without_picture")
    capacity = truth.to_numpy("capacity_bps")[truth.to_numpy("link") == "bottleneck"][: round(DURATION / BIN)]
    slow = capacity < NEEDED
    ends, lengths = stretches.to_numpy("t_s"), stretches.to_numpy("length_s")
    late = float(np.minimum(lengths, np.maximum(0, ends - LATER_HALF)).sum())
    assert late <= BIN * slow[round(LATER_HALF / BIN) :].sum()
    without = metrics["without_picture_s"]
    outages = "".join("x" if out else " " for out in capacity < OUTAGE).split()
    assert without >= max((BIN * len(outage) for outage in outages), default=0.0) - LONGEST_DELAY
    if one.controller != "fixed":
        # the first key frame takes the time of several pictures
        assert without <= BIN * slow.sum() + 0.25, "who gives way has pictures as soon as the link is back"
    assert metrics["frames_rendered"] > 0.9 * FPS * (DURATION - without)


def check_truth(one: Run) -> None:
    """Nothing arrives faster than the link carried, over what it had kept waiting."""
    truth, series = one.table("truth"), one.table("series")
    bins = 150
    capacity = truth.to_numpy("capacity_bps")[truth.to_numpy("link") == "bottleneck"][:bins]
    received = series.to_numpy("receive_rate_bps")[:bins]
    assert len(capacity) == bins
    # packets arrive a propagation delay after they left: some of a bin's belong to the one before
    carried = np.cumsum(capacity) * 0.2
    arrived = np.cumsum(received) * 0.2
    assert (arrived <= carried + 1504 * 8).all()


def test_its_picture_ends_with_the_run(compared: Comparison) -> None:
    for (one,) in compared.runs.values():
        series = flow_series(one, one.subject)
        assert series.t[-1] == pytest.approx(29.9)
        # no bin that has no width and so no rate
        assert (series.receive_bps[-25:] > 0).any()
    figure = plot.comparison(compared.runs)
    *_, loss = figure.axes
    assert loss.get_xlim()[1] == pytest.approx(30)
    lost = any(one.metrics()["loss_fraction"] for (one,) in compared.runs.values())
    assert any("no packet was lost" in text.get_text() for text in loss.texts) is not lost


def test_a_trace_in_a_scenario_with_its_settings() -> None:
    file = folder("aml-jens-drp") / "drp_ericsson.csv"
    made = Scenario.from_dict(
        {
            "duration": "10s",
            "links": [{"name": "link", "capacity": {"trace": str(file), "frequency": 100, "scale": 0.01}}],
            "flows": [{"name": "udp", "udp": {"rate": "10Mbps"}}],
        }
    )
    lines = [int(line) for line in file.read_text().split() if not line.startswith("#")]
    expected = np.mean(lines[:1000]) * 1e3 * 0.01
    done = run(made)
    assert done.summary["links"][0]["capacity_bps"] == pytest.approx(expected, rel=1e-6)
    assert done.summary["links"][0]["carried_bps"] == pytest.approx(expected, abs=1500 * 8 / 10)
