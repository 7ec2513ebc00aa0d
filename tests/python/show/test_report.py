"""Reports: small, complete, escaped, and true to the recording."""

from __future__ import annotations

import hashlib
import html
import json
import re
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tidegate
from support import synthetic_runs as synthetic
from tidegate import compare, plot, report
from tidegate.cli.terminal import print_run
from tidegate.comparison import scenario_for
from tidegate.errors import OutputError
from tidegate.output import html as html_pages
from tidegate.output.chart import Chart
from tidegate.output.document import Beside, Block, Document, Drawing, Section
from tidegate.output.packed import pack, unpack
from tidegate.show import view
from tidegate.show.report import series
from tidegate.show.table import ComparisonTable


def block(text: str) -> dict[str, Any]:
    match = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert match is not None
    data: dict[str, Any] = json.loads(match[1])["timeline"]
    return data


def drawings(document: Document) -> list[Chart]:
    """The charts of a document that are drawn without a script."""

    def inside(blocks: Sequence[Block]) -> Iterator[Chart]:
        for block in blocks:
            if isinstance(block, Drawing):
                yield block.chart
            if isinstance(block, Section | Beside):
                yield from inside(block.blocks)

    return list(inside([*document.opening, *document.answer, *document.more]))


def test_a_minute_of_four_flows_stays_under_a_megabyte(tmp_path: Path) -> None:
    source = report.Source(synthetic.comparison(("gcc", "fixed", "nada", "mine"), 5, flows=4))
    size = report.write(tmp_path / "report.html", source).stat().st_size
    assert 150_000 < size < 1_000_000


def test_many_seeds_and_long_runs_stay_small_too_and_say_so() -> None:
    runs = {"gcc": [synthetic.run("gcc", seed, duration=600, flows=5) for seed in range(40)]}
    text = report.html(report.Source(runs))
    assert len(text) < 1_000_000
    count = len(block(text)["columns"][0]["panels"])
    assert 1 <= count < 40
    assert f"the charts show {count} of 40 seeds" in text


def test_the_series_in_the_page_are_those_of_the_recording() -> None:
    run = synthetic.run("gcc")
    data = block(report.html(run))
    panel = data["columns"][0]["panels"][0]
    truth = view.flow_series(run, "subject")
    receive = unpack(panel["flows"][0]["receive"], data["steps"]["rate"])
    np.testing.assert_allclose(receive, truth.receive_bps / 1e6, atol=0.00051)
    delay = unpack(panel["flows"][0]["delay"], data["steps"]["delay"])
    np.testing.assert_allclose(delay, truth.delay_ms, atol=0.051)
    capacity = unpack(panel["capacity"], data["steps"]["rate"])
    np.testing.assert_allclose(capacity, view.truth(run, "bottleneck")[1] / 1e6, atol=0.00051)


def test_the_marks_of_a_link_show_where_there_are_any(capsys: pytest.CaptureFixture[str]) -> None:
    run = synthetic.run("gcc")
    assert "Marked by queues" not in report.html(run)
    run.summary["links"][0]["marked"] = 4711
    text = report.html(run)
    assert "Marked by queues" in text
    assert "4711" in text
    scenario = tidegate.Scenario.load("lossy-wifi").with_changes({"duration": "5s"})
    done = tidegate.run(scenario, record="summary")
    for marks in (0, 4711):
        done.summary["links"][0]["marked"] = marks
        print_run(done)
        printed = capsys.readouterr().out
        assert ("marked" in printed, "4711" in printed) == (marks > 0, marks > 0)


def marked(run: Any) -> Any:
    """The run with a column of marks: every second packet of the subject in the second half."""
    table = run.table("series")
    late = (table["flow"] == "subject") & (table["t_s"] >= 30)
    table["packets_marked"] = np.where(late, table["packets_arrived"] // 2, 0)
    return run


def test_marks_over_time_are_in_every_picture_where_there_are_any() -> None:
    plain, run = synthetic.run("gcc"), marked(synthetic.run("gcc"))
    data = block(report.html(run))
    (flow,) = data["columns"][0]["panels"][0]["flows"]
    shares = unpack(flow["marks"], data["steps"]["marks"])
    expected = view.flow_series(run, "subject").marked * 100
    np.testing.assert_allclose(shares, expected, atol=0.051)
    assert np.nanmax(shares[:100]) == 0
    assert np.nanmean(shares[-50:]) > 30
    for draw in (plot.session, plot.time_series):
        assert "Marked (%)" in [ax.get_ylabel() for ax in draw(run).axes]
        assert "Marked (%)" not in [ax.get_ylabel() for ax in draw(plain).axes]
    assert ">Packets marked<" in report.html(run)
    assert ">Packets marked<" not in report.html(plain)
    groups = {"gcc": [run], "fixed": [synthetic.run("fixed")]}
    assert [ax.get_ylabel() for ax in plot.comparison(groups).axes][-1] == "Marked (%)"
    assert ">Packets marked<" in report.html(report.Source(groups))


def test_the_two_queues_of_dualpi2_are_two_lines() -> None:
    changes = {"duration": "8s", "flows.call.media.controller": "scream", "flows.download.start": "1s"}
    run = tidegate.run(tidegate.Scenario.load("l4s-access", changes))
    whole, parts = run.table("queues"), run.table("queue_parts")
    assert sorted(set(parts["part"])) == ["classic", "l4s"]
    at = {name: parts["bytes"][(parts["part"] == name) & (parts["link"] == "downlink")] for name in ("l4s", "classic")}
    total = whole["bytes"][whole["link"] == "downlink"]
    in_service = total - at["l4s"] - at["classic"]
    # the whole queue has the packet in service, too
    assert in_service.min() >= 0
    assert in_service.max() <= 1600
    assert at["l4s"].max() > 0
    data = block(report.html(run))
    names = [queue["name"] for queue in data["columns"][0]["panels"][0]["queues"]]
    assert names[0] == "downlink, l4s"
    assert "downlink" not in names
    lines = [str(line.get_label()) for line in plot.session(run).axes[-1].lines]
    assert lines == names
    # a queue of one kind has no parts
    assert "queue_parts" not in tidegate.run(tidegate.Scenario.load("home-broadband", {"duration": "1s"})).tables


def test_other_flows_are_named_with_what_drives_them() -> None:
    groups = {"gcc": [synthetic.run("gcc", flows=3)], "fixed": [synthetic.run("fixed", flows=3)]}
    panel = block(report.html(report.Source(groups)))["columns"][0]["panels"][0]
    assert [flow["name"] for flow in panel["others"]] == ["cross-1 (cubic)", "cross-2 (cubic)"]
    rows = {row.key: row.label for row in ComparisonTable.of(groups).rows}
    assert rows["cross-1:receive_rate_bps"] == "receive rate of cross-1 (cubic)"
    # a flow that differs between the columns has its name alone
    groups["fixed"][0].summary["flows"][1]["controller"] = "prague"
    rows = {row.key: row.label for row in ComparisonTable.of(groups).rows}
    assert rows["cross-1:receive_rate_bps"] == "receive rate of cross-1"


def test_a_small_interval_has_its_first_digit_in_every_form() -> None:
    groups = synthetic.comparison(("gcc", "fixed"), 3)
    for run, delay in zip(groups["gcc"], (22.80, 22.81, 22.82), strict=True):
        run.summary["flows"][0]["one_way_delay_ms_p95"] = delay
    for run in groups["fixed"]:
        run.summary["flows"][0]["one_way_delay_ms_p95"] = 40.04
    table = ComparisonTable.of(groups)
    half = 0.02  # 4.303 * 0.01 / sqrt(3)
    assert table.rows[3].cells["gcc"].half == pytest.approx(half, abs=0.005)
    assert "22.81 ± 0.02" in table.to_markdown()
    # runs that agree need no digit more
    assert "40.0 ± 0.0" in table.to_markdown()
    assert '22.81 ms<span class="interval"> ± 0.02</span>' in report.html(report.Source(groups))


def test_packing_keeps_gaps_and_values() -> None:
    values = np.array([np.nan, 0.1, 0.1, np.nan, 1e6, 0.0, -3.3])
    np.testing.assert_allclose(unpack(pack(values, 0.1), 0.1), values, atol=0.0501)


def test_finer_bins_are_joined_and_long_runs_thinned() -> None:
    assert series.factor(300, 0.2) == 1
    assert series.factor(6000, 0.01) == 20
    assert series.factor(15000, 0.2) == 10
    # no longer than the run
    assert series.factor(1, 0.1) == 1


def test_means_of_a_step_function_are_exact() -> None:
    t, values = np.array([0.0, 0.5, 2.0]), np.array([4.0, 8.0, 1.0])
    edges = np.array([0.0, 1.0, 2.0, 3.0])
    np.testing.assert_allclose(series.step_means(t, values, edges), [6.0, 8.0, 1.0])
    assert np.isnan(series.step_means(np.empty(0), np.empty(0), edges)).all()


def test_more_flows_than_can_be_told_apart_are_summed() -> None:
    run = synthetic.run("gcc", flows=12)
    panel = block(report.html(run))["columns"][0]["panels"][0]
    assert [flow["name"] for flow in panel["others"]] == ["11 other flows"]
    total = sum(view.flow_series(run, f"cross-{i}").receive_bps for i in range(1, 12)) / 1e6
    np.testing.assert_allclose(unpack(panel["others"][0]["receive"], 0.001), total, atol=0.00051)


def test_the_distribution_ends_at_one_and_knows_the_median() -> None:
    run = synthetic.run("gcc", packets=True)
    table = run.table("packets")
    delay = (table["arrived_s"] - table["sent_s"]) * 1e3
    median = float(np.nanmedian(delay))
    got = series.distribution(view.delay_quantiles(run, "subject"), np.array([0.0, median, 1e9]))
    assert got[0] == 0
    assert got[1] == pytest.approx(500, abs=5)
    assert got[2] == 1000


def test_distribution_scatter_and_table_have_one_95th_percentile() -> None:
    """With seeds of very different links the 95th percentile of pooled packets is not the mean of the seeds."""
    done = compare(["gcc", "fixed:2Mbps"], scenario_for(duration="20s"), seeds=3)
    text = report.html(done)
    lines = {line["label"]: line for line in block(text)["cdf"]["lines"]}
    grid = np.array(block(text)["cdf"]["x"])
    (chart,) = drawings(done.document())
    dots = [dot for trail in chart.trails for dot in trail.dots if dot.size == "large"]
    for (name, runs), dot in zip(done.runs.items(), dots, strict=True):
        by_seed = [run.metrics()["one_way_delay_ms_p95"] for run in runs]
        mean = sum(by_seed) / len(by_seed)
        (cell,) = (row.cells[name] for row in done.table.rows if row.key == "one_way_delay_ms_p95")
        assert cell.mean == pytest.approx(mean)
        assert lines[name]["p95"] == pytest.approx(mean, abs=1e-3)
        assert dot.x == pytest.approx(mean)
        # the line itself crosses 95 % there, between two points of its grid
        crossing = int(np.argmax(np.array(lines[name]["y"]) >= 950))
        assert grid[crossing - 1] * 0.99 <= mean <= grid[crossing] * 1.01
        pooled = np.concatenate([view.delays(run, run.subject)[0] for run in runs])
        weight = np.concatenate([view.delays(run, run.subject)[1] for run in runs])
        order = np.argsort(pooled)
        percentile = pooled[order][np.searchsorted(np.cumsum(weight[order]) / weight.sum(), 0.95)]
        assert abs(percentile - mean) > 0.05 * mean, "otherwise the test would prove nothing"
        ax = plot.delay_cdf({name: runs}).axes[0]
        dot_of_figure = next(line for line in ax.lines if list(line.get_ydata()) == [0.95])
        assert float(np.asarray(dot_of_figure.get_xdata())[0]) == pytest.approx(mean)


def test_names_from_outside_cannot_become_markup() -> None:
    run = synthetic.run("gcc")
    evil = "</script><img src=x onerror=alert(1)>"
    run.summary["name"] = run.summary["flows"][1]["flow"] = evil
    run.table("series")["flow"][run.table("series")["flow"] == "cross-1"] = evil
    text = report.html(report.Source({evil: [run]}, title=evil, scenario=evil, command=evil, versions={evil: evil}))
    assert evil not in text
    assert "<img" not in text
    assert html.escape(evil) in text
    assert block(text)["columns"][0]["label"] == evil


def test_nothing_in_the_page_points_outside() -> None:
    text = report.html(synthetic.run("gcc"))
    assert "default-src 'none'" in html.unescape(text)
    assert not re.search(r'(?:src|href)\s*=\s*"(?!data:)', text)
    assert "url(" not in re.search(r"<style>.*</style>", text, re.DOTALL)[0]  # type: ignore[index]
    for part in ("Copyright (c)", "Leon Sorokin", "The MIT License"):
        assert part in text


def test_the_policy_forbids_every_request() -> None:
    """Of each kind of request that a page can make; only styles and programs in the page itself, and pictures in it."""
    run = synthetic.run("gcc")
    for text in (report.html(run), report.html(report.Source({"gcc": [run]}))):
        head, _, body = text.partition("<body")
        (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', head)
        rules = {name: set(values) for name, *values in map(str.split, html.unescape(policy).split(";"))}
        assert rules["default-src"] == {"'none'"}
        assert rules["img-src"] == {"data:"}
        assert rules["script-src"] == rules["style-src"] == {"'unsafe-inline'"}
        assert set(rules) <= {"default-src", "img-src", "script-src", "style-src", "base-uri", "form-action"}
        # it is in force before anything that could send one
        assert not re.search(r"<(?:link|script|style|img)", head[: head.index("Content-Security-Policy")])
        assert not re.search(
            r"https?://(?!www\.w3\.org/)", re.sub(r"<(script|style).*?</\1>", "", body, flags=re.DOTALL)
        )


def test_the_files_of_uplot_are_those_that_were_published() -> None:
    folder = Path(html_pages.__file__).with_name("assets") / "uplot"
    source = tomllib.loads((folder / "source.toml").read_text())
    hashes = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}
    del hashes["source.toml"]
    assert hashes == source["sha256"]
    assert f"uPlot (v{source['version']})" in (folder / "uPlot.iife.min.js").read_text()[:100]


def test_the_headline_table_says_what_the_summaries_say() -> None:
    groups = synthetic.comparison(("gcc", "fixed"), 4)
    row = next(r for r in ComparisonTable.of(groups).rows if r.metric.name == "one_way_delay_ms_p95")
    values = [view.metric(run, "subject", row.metric.name) for run in groups["gcc"]]
    assert row.cells["gcc"].mean == pytest.approx(np.mean(values))
    # Student's t with three degrees of freedom
    assert row.cells["gcc"].half == pytest.approx(3.182 * np.std(values, ddof=1) / 2, rel=1e-3)
    assert row.best.labels == {"gcc"}
    assert re.search(f'class="best"[^>]*>{np.mean(values):.1f} ms', report.html(report.Source(groups)))


def test_runs_without_series_still_give_their_numbers(tmp_path: Path) -> None:
    run = synthetic.run("gcc")
    run._tables = {}
    text = report.html(run)
    assert "no series to draw" in text
    assert "<canvas" not in text
    assert run.digest in text


def test_a_run_without_a_scenario_is_not_asked_for_it() -> None:
    class Imported(tidegate.Run):
        @property
        def scenario(self) -> tidegate.Scenario:
            raise AssertionError("the report must not ask for the scenario")

    done = tidegate.run(tidegate.scenario_for(duration="2s"))
    assert "<h1" in report.html(Imported(done.about, done._tables))


def test_a_report_appears_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "report.html"
    target.write_text("the old one")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.replace", full)
    with pytest.raises(OutputError, match="No space left on device"):
        report.write(target, synthetic.run("gcc"))
    assert target.read_text() == "the old one"
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


def test_the_same_runs_give_the_same_page() -> None:
    assert report.html(synthetic.run("gcc", 3)) == report.html(synthetic.run("gcc", 3))


def test_a_run_as_short_as_its_first_bin_is_shown(tmp_path: Path) -> None:
    """It tells no width of bins by their steps; warnings, as of a division by that width, are errors."""
    scenario = tidegate.Scenario.load("home-broadband").with_changes(duration="50ms", warmup="0s")
    done = tidegate.run(scenario)
    assert len(view.flow_series(done, "call").t) == 1
    panel = series.panel(done, ["call"], "uplink", ends=True)
    assert panel["n"] == 1
    assert panel["dt"] > 0
    report.write(tmp_path / "report.html", report.Source({"gcc": [done]}))
