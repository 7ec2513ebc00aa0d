"""Results in a notebook: printed, shown, copied, sent to other processes, and as tables of other libraries."""

from __future__ import annotations

import copy
import pickle
import re
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tidegate
from tidegate import Comparison, Run, Scenario, SweepResult, Table, _core, difference
from tidegate.gate.checking import Outcome
from tidegate.optimisation.result import SearchResult
from tidegate.paper.result import Result
from tidegate.paper.verdicts import Verdict
from tidegate.suite import Plan as SuitePlan
from tidegate.suite import Suite, SuiteResult

SCENARIO = tidegate.scenario_for(capacity="2Mbps", duration="4s", cross=["tcp@1s"])


@pytest.fixture(scope="module")
def run() -> Run:
    return tidegate.run(SCENARIO.with_changes(capture=True), record="packets")


def test_columns_that_a_data_frame_hides_have_another_name_too(run: Run, tmp_path: Path) -> None:
    # methods and properties of pandas.DataFrame and polars.DataFrame among the names of columns: df.size is a number
    hidden = {"size": "size_bytes", "where": "fate_at"}
    for name in run.tables:
        table = run.table(name)
        for old, new in hidden.items():
            assert (old in table.columns) == (new in table.columns), (name, old)
            if old in table.columns:
                np.testing.assert_array_equal(table[old], table[new])
    assert {"size_bytes", "fate_at"} <= {*run.table("packets").columns}
    # files of earlier versions have only the old names
    packets = run.table("packets")
    old_columns = [(name, packets[name].tolist() if packets[name].dtype.kind == "U" else packets[name])
                   for name in packets.columns if name in {"size", "where", "sent_s"}]  # fmt: skip
    file = tmp_path / "packets.parquet"
    Table.of(old_columns).write_parquet(str(file))
    read = _core.read_parquet(str(file))
    assert {"size", "size_bytes", "where", "fate_at"} <= {*read.columns}
    np.testing.assert_array_equal(read["fate_at"], packets["where"])
    # and files of this one have both
    packets.write_parquet(str(file))
    assert _core.read_parquet(str(file)).columns == packets.columns


@pytest.fixture(scope="module")
def both() -> Comparison:
    return tidegate.compare(["gcc", "fixed:1Mbps"], SCENARIO, seeds=2)


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> SweepResult:
    keys = {"links.downlink.delay": ["10ms", "30ms"]} if SCENARIO.links[0].name == "downlink" else None
    keys = keys or {f"links.{SCENARIO.links[0].name}.delay": ["10ms", "30ms"]}
    return tidegate.sweep(SCENARIO, keys, out=tmp_path_factory.mktemp("sweep") / "out")


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> SuiteResult:
    suite = """
source = "a test"

[[cases]]
name = "small"
title = "One call"
source = "a test"
scenario = "home-broadband"
set = { duration = "6s" }

[[rules]]
name = "sends"
says = "something arrives"
source = "a test"
metric = "receive_rate_bps"
at_least = 1000
"""
    plan = SuitePlan.of(Suite.parse(suite), ["gcc"])
    return plan.run(tmp_path_factory.mktemp("suite") / "out")


class Balanced(HTMLParser):
    """Reads HTML, checks that its tags are balanced, and collects its text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.texts: list[str] = []
        self.feed(html)
        assert not self.open

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.open.append(tag)
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join(self.texts)


def assert_same(run: Run, copied: Run) -> None:
    assert (run.digest, run.controller, run.seed) == (copied.digest, copied.controller, copied.seed)
    assert set(run.tables) == set(copied.tables)
    assert run.metrics() == copied.metrics()
    for name in run.tables:
        table, again = run.table(name), copied.table(name)
        assert table.columns == again.columns
        for column in table.columns:
            np.testing.assert_array_equal(table[column], again[column])


def test_what_is_printed_is_one_short_line(run: Run, both: Comparison, swept: SweepResult, judged: SuiteResult) -> None:
    for result in (run, both, both.table, swept, judged, judged.suite, *(run.table(name) for name in run.tables)):
        assert re.fullmatch(r"<tidegate [^\n]{10,240}>", repr(result))
    assert repr(both).startswith("<tidegate Comparison of gcc, fixed:1Mbps on 2Mbps, 2 seeds")
    assert repr(swept).endswith(": 2 of 2 runs>")
    plan = SuitePlan.of("rfc8868", ["gcc"], cases=["call,*"])
    assert len(repr(plan)) < 200


def test_what_gates_papers_searches_and_differences_say_of_themselves(run: Run, both: Comparison) -> None:
    answers: Any = [SimpleNamespace(state=state) for state in ("fine", "fine", "worse")]
    outcome = Outcome("rmcat", "nada", "gcc", answers, {"5.1": "no"}, {}, 12)
    counts = "1 worse, 0 undecided, 2 fine, 1 cases failed"
    assert repr(outcome) == f"<tidegate gate Outcome of nada against gcc on rmcat: {counts}>"
    document: Any = SimpleNamespace(key="hoang2017")
    judgements: Any = [SimpleNamespace(verdict=Verdict.AGREES), SimpleNamespace(verdict=Verdict.AGREES)]
    unused: Any = None
    paper = Result(document, unused, unused, judgements, 3, 0.1)
    assert repr(paper) == "<tidegate paper Result of hoang2017: 2 agrees>"
    text = repr(difference.diff(run, both.runs["gcc"][0]))
    assert re.fullmatch(r"<tidegate Difference of [^\n]{10,160}>", text)
    search = SearchResult("home", (), unused, (), (1,), (), None, None, {}, "", "", "", {})
    assert repr(search) == "<tidegate SearchResult of home: 0 tries, the best none that keeps all limits>"


def test_a_notebook_shows_a_small_table_of_each(
    run: Run, both: Comparison, swept: SweepResult, judged: SuiteResult
) -> None:
    values: dict[str, Any] = {"run": run, "both": both, "table": both.table, "swept": swept, "judged": judged}
    cells = {name: Balanced(result._repr_html_()) for name, result in values.items()}
    assert all("table" in cell.tags for cell in cells.values())
    assert run.subject in cells["run"].text
    receive = next(row for row in both.table.rows if row.key == "receive_rate_bps")
    for name in both.controllers:
        assert name in cells["both"].texts
        assert f"{receive.metric.show(receive.cells[name].mean)} Mbit/s" in cells["both"].texts
    assert {"10ms", "30ms"} <= set(cells["swept"].texts)
    assert {"gcc", "1 of 1"} <= set(cells["judged"].texts)
    # no colours of its own, so that it fits dark and light pages
    assert not re.search(r"#[0-9a-f]{3,6}\b|rgb\(", both._repr_html_())


def test_a_long_table_shows_its_first_rows_and_says_so(run: Run) -> None:
    series = run.table("series")
    cell = Balanced(series._repr_html_())
    assert cell.tags.count("tr") == 1 + 10
    assert f"{len(series)} rows" in cell.text
    assert "of which the first 10 are shown" in cell.text
    empty = Balanced(series[0:0]._repr_html_())
    assert "0 rows" in empty.text


def test_a_name_is_text_in_what_a_notebook_shows(both: Comparison) -> None:
    evil = "<script>alert(1)</script>"
    comparison = Comparison(
        both.scenario, {evil: both.runs["gcc"], "x": both.runs["fixed:1Mbps"]}, failed={"<b>": "<i>no"}
    )
    table = Table.of([(evil, [evil, "b"])])
    renamed = both.runs["gcc"][0].under(evil)
    for result in (comparison, table, renamed):
        html = result._repr_html_()
        assert "<script" not in html
        assert "<i>no" not in html
        assert "&lt;script&gt;" in html
        assert evil in Balanced(html).text


def test_columns_rows_and_slices_of_a_table(run: Run) -> None:
    series = run.table("series")
    assert len(series) == series.num_rows > 5
    np.testing.assert_array_equal(series["t_s"], series.to_numpy("t_s"))
    assert series[0]["flow"] == series["flow"][0]
    assert series[-1]["t_s"] == series["t_s"][-1]
    assert type(series[0]["t_s"]) is float
    assert list(series[0]) == series.columns
    part = series[2:5]
    assert isinstance(part, Table)
    np.testing.assert_array_equal(part["t_s"], series["t_s"][2:5])
    np.testing.assert_array_equal(series[-3:]["flow"], series["flow"][-3:])
    assert len(series[:0]) == 0
    # a table is also a sequence of rows
    rows: Any = series
    assert len(list(rows)) == len(series)


@pytest.mark.parametrize(
    ("key", "error", "words"),
    [
        ("t_sec", KeyError, "no column.*t_sec.*available: t_s, "),
        (10**6, IndexError, "row 1000000: the table has .* rows"),
        (-(10**6), IndexError, "row -1000000: the table has"),
        (1.5, TypeError, "float.*expected a column's name, a row's number, or a slice"),
        (slice(0, 6, 2), ValueError, "found a step of 2; expected 1"),
        (slice(None, None, -1), ValueError, "found a step of -1; expected 1"),
    ],
)
def test_a_wrong_key_says_what_would_be_right(run: Run, key: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        run.table("series")[key]


def test_a_run_is_the_same_after_pickle_and_copies(run: Run) -> None:
    for again in (pickle.loads(pickle.dumps(run)), copy.copy(run), copy.deepcopy(run)):
        assert_same(run, again)
        assert again.pcapng() == run.pcapng()
    deep = copy.deepcopy(run)
    assert deep.summary is not run.summary
    # a copy can be pickled again
    assert_same(run, pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(run)))))


def test_a_pickled_run_is_saved_like_any_other(run: Run, tmp_path: Any) -> None:
    again = pickle.loads(pickle.dumps(run))
    assert_same(run, Run.load(again.save(tmp_path / "run")))


def test_a_comparison_and_a_sweep_are_the_same_after_pickle_and_copies(both: Comparison, swept: SweepResult) -> None:
    for again in (pickle.loads(pickle.dumps(both)), copy.copy(both), copy.deepcopy(both)):
        assert again.to_data() == both.to_data()
        assert again.scenario == both.scenario
        for name in both.controllers:
            for run, copied in zip(both.runs[name], again.runs[name], strict=True):
                assert_same(run, copied)
    for once_more in (pickle.loads(pickle.dumps(swept)), copy.copy(swept), copy.deepcopy(swept)):
        assert once_more.to_csv() == swept.to_csv()


def test_a_table_is_the_same_after_pickle_and_copies(run: Run) -> None:
    for name in run.tables:
        table = run.table(name)
        assert copy.copy(table) is table
        assert copy.deepcopy([table])[0] is table
        again = pickle.loads(pickle.dumps(table))
        assert again.columns == table.columns
        for column in table.columns:
            np.testing.assert_array_equal(again[column], table[column])
            assert again[column].dtype.kind == table[column].dtype.kind
    for damaged in (b"", b"PAR1", b"no table", pickle.dumps(1)):
        with pytest.raises(ValueError, match="not a table of tidegate"):
            _core.table_of(damaged)


def test_a_suite_and_its_result_go_through_a_pickle(judged: SuiteResult) -> None:
    again = pickle.loads(pickle.dumps(judged))
    assert [cell.state for cell in again.cells] == [cell.state for cell in judged.cells]


@pytest.mark.parametrize("name", ["pandas", "polars"])
def test_a_table_as_a_data_frame(run: Run, name: str) -> None:
    pytest.importorskip(name, reason=f"{name} is not installed: tables are not converted to its frames")
    for table_name in run.tables:
        table = run.table(table_name)
        frame = getattr(table, f"to_{name}")()
        assert list(frame.columns) == table.columns
        assert len(frame) == len(table)
        for column in table.columns:
            np.testing.assert_array_equal(np.asarray(frame[column].to_numpy()), table[column])


def test_a_library_that_is_not_there_is_named(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "polars", None)
    with pytest.raises(ImportError, match="polars is not installed: pip install polars"):
        run.table("series").to_polars()


def test_a_figure_shows_itself_once_and_leaves_nothing_with_pyplot(run: Run, both: Comparison) -> None:
    from matplotlib import pyplot as plt

    before = plt.get_fignums()
    for figure in (tidegate.plot.time_series(run), tidegate.plot.comparison(both.runs)):
        data = figure._repr_png_()  # type: ignore[attr-defined]
        assert data.startswith(b"\x89PNG")
        # also when the cell is run again
        assert figure._repr_png_().startswith(b"\x89PNG")  # type: ignore[attr-defined]
        # one way to be shown, and no second one
        assert not any(hasattr(figure, f"_repr_{kind}_") for kind in ("svg", "jpeg", "markdown", "latex"))
    assert plt.get_fignums() == before


def test_a_scenario_of_a_run_is_still_there_after_a_pickle(run: Run) -> None:
    assert isinstance(pickle.loads(pickle.dumps(run)).scenario, Scenario)
