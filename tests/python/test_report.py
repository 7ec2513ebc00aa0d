"""Reports: small, whole, escaped, and true to the recording."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import synthetic_runs as synthetic
from tidegate import _view, report
from tidegate.errors import OutputError
from tidegate.report import series, tables


def block(text: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert found is not None
    data: dict[str, Any] = json.loads(found[1])
    return data


def test_a_minute_of_four_flows_stays_under_a_megabyte(tmp_path: Path) -> None:
    source = report.Source(synthetic.comparison(("gcc", "fixed", "nada", "mine"), 5, flows=4))
    size = report.write(tmp_path / "report.html", source).stat().st_size
    assert 150_000 < size < 1_000_000


def test_many_seeds_and_long_runs_stay_small_too_and_say_so() -> None:
    runs = {"gcc": [synthetic.run("gcc", seed, duration=600, flows=5) for seed in range(40)]}
    text = report.html(report.Source(runs))
    assert len(text) < 1_000_000
    shown = len(block(text)["columns"][0]["panels"])
    assert 1 <= shown < 40
    assert f"the series of {shown} of 40 seeds" in text


def test_the_series_in_the_page_are_those_of_the_recording() -> None:
    run = synthetic.run("gcc")
    data = block(report.html(run))
    panel = data["columns"][0]["panels"][0]
    truth = _view.flow_series(run, "subject")
    receive = series.unpack(panel["flows"][0]["receive"], data["steps"]["rate"])
    np.testing.assert_allclose(receive, truth.receive_bps / 1e6, atol=0.00051)
    delay = series.unpack(panel["flows"][0]["delay"], data["steps"]["delay"])
    np.testing.assert_allclose(delay, truth.delay_ms, atol=0.051)
    capacity = series.unpack(panel["capacity"], data["steps"]["rate"])
    np.testing.assert_allclose(capacity, _view.truth(run, "bottleneck")[1] / 1e6, atol=0.00051)


def test_packing_keeps_gaps_and_values() -> None:
    values = np.array([np.nan, 0.1, 0.1, np.nan, 1e6, 0.0, -3.3])
    np.testing.assert_allclose(series.unpack(series.pack(values, 0.1), 0.1), values, atol=0.0501)


def test_finer_bins_are_joined_and_long_runs_thinned() -> None:
    assert series.factor(300, 0.2) == 1
    assert series.factor(6000, 0.01) == 20
    assert series.factor(15000, 0.2) == 10


def test_means_of_a_step_function_are_exact() -> None:
    t, values = np.array([0.0, 0.5, 2.0]), np.array([4.0, 8.0, 1.0])
    edges = np.array([0.0, 1.0, 2.0, 3.0])
    np.testing.assert_allclose(series.step_means(t, values, edges), [6.0, 8.0, 1.0])
    assert np.isnan(series.step_means(np.empty(0), np.empty(0), edges)).all()


def test_more_flows_than_can_be_told_apart_are_summed() -> None:
    run = synthetic.run("gcc", flows=12)
    panel = block(report.html(run))["columns"][0]["panels"][0]
    assert [other["name"] for other in panel["others"]] == ["11 other flows"]
    total = sum(_view.flow_series(run, f"cross-{i}").receive_bps for i in range(1, 12)) / 1e6
    np.testing.assert_allclose(series.unpack(panel["others"][0]["receive"], 0.001), total, atol=0.00051)


def test_the_distribution_ends_at_one_and_knows_the_median() -> None:
    run = synthetic.run("gcc", packets=True)
    table = run.table("packets")
    delay = (table["arrived_s"] - table["sent_s"]) * 1e3
    median = float(np.nanmedian(delay))
    got = series.distribution([run], "subject", np.array([0.0, median, 1e9]))
    assert got[0] == 0
    assert got[1] == pytest.approx(500, abs=1)
    assert got[2] == 1000


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
    for part in ("Copyright (c)", "Leon Sorokin", "MIT Licensed"):
        assert part in text


def test_the_headline_table_says_what_the_summaries_say() -> None:
    groups = synthetic.comparison(("gcc", "fixed"), 4)
    row = next(r for r in tables.headline(groups) if r.about.name == "one_way_delay_ms_p95")
    values = [_view.metric(run, "subject", row.about.name) for run in groups["gcc"]]
    assert row.cells["gcc"].mean == pytest.approx(np.mean(values))
    # Student's t with three degrees of freedom
    assert row.cells["gcc"].half == pytest.approx(3.182 * np.std(values, ddof=1) / 2, rel=1e-3)
    assert row.best == {"gcc"}
    assert f'class="best">{np.mean(values):.1f} ms' in report.html(report.Source(groups))


def test_runs_without_series_still_give_their_numbers(tmp_path: Path) -> None:
    run = synthetic.run("gcc")
    run._tables = {}
    text = report.html(run)
    assert "no series to draw" in text
    assert "<canvas" not in text
    assert run.digest in text


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
