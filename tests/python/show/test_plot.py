"""Figures: they show the recorded numbers, and leave matplotlib's global state alone."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from support import synthetic_runs as synthetic
from tidegate import Run, Scenario, plot, run
from tidegate.output.palette import DASHES, HUES, look, looks
from tidegate.show import view


def png(figure: Figure) -> bytes:
    target = io.BytesIO()
    figure.savefig(target, format="png")
    return target.getvalue()


def values(line: Line2D) -> tuple[Any, Any]:
    """The data of a line."""
    x, y = line.get_data()
    return np.asarray(x), np.asarray(y)


def line_of(ax: Axes, controller: str) -> tuple[Any, Any]:
    hue = look(controller).colour
    return values(next(line for line in ax.get_lines() if line.get_color() == hue))


def note(figure: Figure) -> str:
    """The small print at the bottom."""
    return str(figure.get_supxlabel())


def test_comparison_has_a_panel_for_each_controller_and_two_shared_ones() -> None:
    groups = synthetic.comparison(("gcc", "fixed", "nada"), 3)
    figure = plot.comparison(groups)
    assert [ax.get_ylabel() for ax in figure.axes] == ["Rate (Mbit/s)"] * 3 + [
        "One-way delay (ms)",
        "Loss (%)",
    ]
    assert figure.axes[-1].get_xlabel() == "Time (s)"
    assert len(png(figure)) > 50_000


def test_lines_are_medians_over_seeds_and_bands_their_range() -> None:
    groups = synthetic.comparison(("gcc",), 3)
    figure = plot.comparison(groups)
    stack = np.vstack([view.flow_series(run, "subject").receive_bps for run in groups["gcc"]]) / 1e6
    drawn = line_of(figure.axes[0], "gcc")[1]
    np.testing.assert_allclose(drawn, np.median(stack, axis=0))
    band = np.asarray(figure.axes[0].collections[-1].get_paths()[0].vertices)[:, 1]
    assert band.max() == pytest.approx(stack.max())
    assert "median of 3 seeds" in note(figure)


def test_seeds_with_different_links_are_not_averaged() -> None:
    groups = synthetic.comparison(("gcc",), 3, wandering=True)
    figure = plot.comparison(groups)
    first = view.flow_series(groups["gcc"][0], "subject").receive_bps / 1e6
    np.testing.assert_allclose(line_of(figure.axes[0], "gcc")[1], first)
    assert "lines: seed 1;" in note(figure)


def test_capacity_is_drawn_as_the_step_it_was() -> None:
    run = synthetic.run("gcc")
    figure = plot.time_series(run)
    t, capacity = view.truth(run, "bottleneck")
    step = next(line for line in figure.axes[0].get_lines() if line.get_drawstyle() == "steps-post")
    x, y = values(step)
    np.testing.assert_allclose(y[:-1], capacity / 1e6)
    np.testing.assert_allclose(x[:-1], t)


TEN = ["gcc", "gcc:draft-02", "gcc-remb", "fixed:2Mbps", "tfrc", "tfrc-sp", "sprout", "rrb-simd", "python:a.py:A", "b"]


def test_a_controller_looks_the_same_in_any_company() -> None:
    for label in TEN[:8]:
        others = [name for name in TEN if name != label]
        for company in ([], others[:1], others, others[::-1]):
            assert looks([*company, label])[label] == look(label), label
    assert len(set(looks(TEN).values())) == len(TEN)
    # presets have their algorithm's hue and a dash each
    presets = [look(f"gcc:{preset}") for preset in ("libwebrtc", "libwebrtc-v1", "draft-02", "aiortc", "hoang2017")]
    assert {preset.hue for preset in presets} == {look("gcc").hue}
    assert len({preset.dash for preset in presets}) == 5
    assert presets[0] == look("gcc")
    # more variants than a hue has dashes: all looks are still distinct, whatever the order
    rates = [f"fixed:{rate}kbps" for rate in range(500, 540)]
    assert len(set(looks(rates).values())) == len(rates) == len(HUES) * len(DASHES)
    assert looks(rates[::-1]) == looks(rates)


def test_dashes_are_on_the_lines_that_share_an_axis() -> None:
    groups = {"gcc": [synthetic.run("gcc", 1)], "gcc:draft-02": [synthetic.run("gcc", 2)]}
    styles = {line.get_label(): line.is_dashed() for line in plot.delay_cdf(groups).axes[0].lines}
    assert (styles["gcc"], styles["gcc:draft-02"]) == (False, True)
    delay = plot.comparison(groups).axes[2]
    assert [line.is_dashed() for line in delay.lines] == [False, True]


def test_sequences_are_grouped_by_the_subjects_controller() -> None:
    groups = view.grouped([synthetic.run("gcc", 1), synthetic.run("fixed", 1), synthetic.run("gcc", 2)])
    assert {label: len(runs) for label, runs in groups.items()} == {"gcc": 2, "fixed": 1}


def test_cdf_of_single_packets_and_of_bins_say_which_they_are() -> None:
    single = plot.delay_cdf([synthetic.run("gcc", packets=True)]).axes[0]
    binned = plot.delay_cdf([synthetic.run("gcc")]).axes[0]
    assert single.get_xlabel() == "One-way delay (ms)"
    assert "mean of each bin" in binned.get_xlabel()
    run = synthetic.run("gcc", packets=True)
    table = run.table("packets")
    delay = (table["arrived_s"] - table["sent_s"]) * 1e3
    x, y = line_of(single, "gcc")
    assert x[np.searchsorted(y, 0.5)] == pytest.approx(np.nanmedian(delay), rel=1e-3)
    assert single.get_xscale() == "log"


def test_scatter_has_a_dot_for_each_seed_and_runs_from_slow_to_quick() -> None:
    groups = synthetic.comparison(("gcc", "nada"), 4)
    ax = plot.rate_delay_scatter(groups).axes[0]
    assert [len(np.asarray(c.get_offsets())) for c in ax.collections] == [4, 1, 4, 1]
    start, end = ax.get_xlim()
    assert start > end
    mean = np.mean([view.metric(run, "subject", "one_way_delay_ms_p95") for run in groups["gcc"]])
    assert np.asarray(ax.collections[1].get_offsets())[0, 0] == pytest.approx(mean)


def test_internals_are_named_and_unknown_names_are_refused() -> None:
    run = synthetic.run("gcc")
    figure = plot.internals(run, names=["threshold"])
    assert [ax.get_title(loc="left") for ax in figure.axes] == ["threshold"]
    with pytest.raises(ValueError, match="has no internal 'tresh'; available: trend, threshold"):
        plot.internals(run, names=["tresh"])


def test_what_cannot_be_drawn_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="no run was given"):
        plot.comparison([])
    with pytest.raises(ValueError, match="no flow 'absent'"):
        plot.time_series(synthetic.run(), flow="absent")
    bare = synthetic.run()
    bare._tables = {}
    with pytest.raises(ValueError, match="has no series; run it again with record"):
        plot.time_series(bare)


def test_a_flow_that_never_received_anything_can_be_drawn() -> None:
    run = synthetic.run("gcc")
    for name, column in run.table("series").items():
        if name.startswith(("receive", "one_way", "queueing", "packets")):
            column[:] = np.nan if "delay" in name else 0
    assert png(plot.comparison([run]))
    assert png(plot.time_series(run))
    assert png(plot.delay_cdf([run]))


def test_pyplot_is_never_imported() -> None:
    code = "import sys, tidegate; tidegate.plot; sys.exit('matplotlib.pyplot' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, env={"PYTHONPATH": ":".join(sys.path)})


@pytest.fixture(scope="module")
def outages() -> Run:
    """A call over a cell with outages that freeze its picture, beside a download."""
    changes = {"duration": "40s", "links.cell.queue": {"packets": 60}}
    return run(Scenario.load("cell-with-outages", changes))


def test_a_session_has_what_both_ends_knew(outages: Run, tmp_path: Path) -> None:
    saved = Run.load(outages.save(tmp_path / "run"))
    figure = plot.session(saved)
    panels = {ax.get_ylabel(): ax for ax in figure.axes}
    assert list(panels) == [
        "Rate (Mbit/s)", "Delay (ms)", "Pacer (kB)", "Frame delay (ms)", "Loss (%)", "Queues (kB)",
    ]  # fmt: skip
    assert all(ax.get_xlim() == panels["Loss (%)"].get_xlim() for ax in figure.axes)
    metrics = outages.metrics()
    rates = {str(line.get_label()): line for line in panels["Rate (Mbit/s)"].lines}
    assert {"encoders", "sent", "received", "acknowledged", "goodput", "target"} <= set(rates)
    totals = {name: float(np.nansum(np.asarray(line.get_ydata(), float))) * 0.2 for name, line in rates.items()}
    assert totals["sent"] == pytest.approx(metrics["bytes_sent"] * 8e-6, rel=1e-6)
    assert totals["received"] == pytest.approx(metrics["bytes_received"] * 8e-6, rel=0.01)
    frames = outages.table("frames")
    assert totals["encoders"] == pytest.approx(frames.to_numpy("size").sum() * 8e-6, rel=1e-6)
    # reports acknowledge what arrived, except at the very end; gcc also counts the headers of IP and UDP
    assert 0.85 * totals["received"] < totals["acknowledged"] <= totals["received"] + 1e-6
    # the shaded times are those of the summary
    length = outages.table("without_picture").to_numpy("length_s")
    assert length.sum() == pytest.approx(metrics["without_picture_s"])
    assert len(length) > 1
    shaded = sum(patch.get_width() for patch in panels["Frame delay (ms)"].patches)
    assert shaded == pytest.approx(metrics["without_picture_s"])
    dots = next(line for line in panels["Frame delay (ms)"].lines if line.get_label() == "capture to screen")
    delay = np.asarray(dots.get_ydata(), float)
    assert np.isfinite(delay).sum() == metrics["frames_rendered"]
    assert np.nanmax(delay) <= metrics["frame_delay_ms_max"], "a picture that is never shown counts, too"
    # a round trip takes at least twice the one-way delay
    trip = next(line for line in panels["Delay (ms)"].lines if "round trip" in str(line.get_label()))
    assert float(np.min(np.asarray(trip.get_ydata()))) > 2 * metrics["one_way_delay_ms_min"] - 1


def test_every_queue_is_drawn() -> None:
    links = [
        {"name": name, "from": a, "to": b, "capacity": rate, "delay": "5ms"}
        for name, a, b, rate in (("first", "left", "mid", "2Mbps"), ("second", "mid", "right", "1500kbps"))
    ]
    flows = [{"name": "call", "media": {}}, {"name": "file", "tcp": {}}]
    done = run(Scenario.from_dict({"duration": "8s", "links": links, "flows": flows}))
    names = {line.get_label() for line in plot.session(done).axes[-1].lines}
    link_names = [link["link"] for link in done.summary["links"]]
    assert names == {name for name in link_names if view.queue(done, name)[1].max() > 0}
    assert {"first", "second"} <= names
    assert {line.get_label() for line in plot.time_series(done).axes[3].lines} == names


def test_the_quantiles_are_those_of_the_summary(outages: Run) -> None:
    delays = view.delay_quantiles(outages, "call")
    for share in ("p50", "p95", "p99"):
        index = round(float(share[1:]) * 2)
        assert delays[index] == outages.metrics()[f"one_way_delay_ms_{share}"]
    ends = [outages.metrics()[f"one_way_delay_ms_{end}"] for end in ("min", "max")]
    assert [delays[0], delays[-1]] == pytest.approx(ends, rel=2e-3), "the histogram's own resolution"


def test_internals_have_units_and_the_threshold_what_it_judges(outages: Run) -> None:
    axes = {ax.get_title(loc="left"): ax for ax in plot.internals(outages).axes}
    judged = axes["compared and threshold"]
    assert judged.get_ylabel() == "ms"
    assert axes["delay_based"].get_ylabel() == "Mbit/s"
    assert axes["rtt_ms"].get_ylabel() == "ms"
    coded = {title for title, ax in axes.items() if not ax.get_ylabel()}
    assert coded == {
        "state (0 normal, 1 over-use, 2 under-use)",
        "rate_state (0 hold, 1 increase, 2 decrease)",
        "loss_state (0 increasing, 1 with padding, 2 decreasing, 3 delay-based)",
        "app_limited (0 no, 1 yes)",
    }
    # over-use begins only where the line is above the threshold
    table = outages.table("internals")
    name, value = table.to_numpy("name"), table.to_numpy("value")
    compared, threshold, state = (value[name == series] for series in ("compared", "threshold", "state"))
    began = np.flatnonzero(np.diff((state == 1).astype(int)) == 1) + 1
    assert len(began) >= 3
    # the threshold is noted after it has adapted to the compared value
    assert (compared[began] > threshold[began - 1] * 0.99).all()
