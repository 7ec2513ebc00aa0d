"""Controllers in files have the name that was asked for, whatever does the runs, and results hold no path of the machine."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from support import PLAIN, Cli
from tidegate import Run, Scenario, _core, compare, run

MINE = """\
from tidegate import Controller

class Mine(Controller):
    def __init__(self, gain=1.0):
        self.gain = gain

    def on_limits(self, now_ns, limits):
        return 30e6

    def on_report(self, now_ns, report):
        return 30e6 * self.gain
"""
"""Sends far too much, so that there are warnings about it."""
NAME = "python:sub/mine.py:Mine"
ARGV = ["compare", "gcc", NAME, f"{NAME}:gain=0.5", "--scenario", "plain.toml", "--seeds", "2"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "mine.py").write_text(MINE)
    (tmp_path / "plain.toml").write_text(PLAIN)
    return tmp_path


def tables(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*.parquet")}


def words(file: Path) -> set[str]:
    """Every text in a table: a file of it is packed."""
    table = _core.read_parquet(str(file))
    columns = [table.to_numpy(name) for name in table.columns]
    return {str(value) for column in columns if column.dtype.kind in "UO" for value in column.tolist()}


def check_tables(out: Path, folder: Path) -> None:
    files = [file for file in out.rglob("*.parquet") if file.is_file()]
    assert files
    for file in files:
        assert not [word for word in words(file) if str(folder) in word], file.name


def test_tables_do_not_depend_on_what_does_the_runs(folder: Path, cli: Cli) -> None:
    for jobs in ("1", "2"):
        assert cli(*ARGV, "-j", jobs, "--out", f"out{jobs}").code == 0
    assert tables(folder / "out1") == tables(folder / "out2")
    assert (folder / "out1" / "runs.csv").read_text() == (folder / "out2" / "runs.csv").read_text()
    first, second = (json.loads((folder / f"out{jobs}" / "comparison.json").read_text()) for jobs in (1, 2))
    assert {**first, "command": ""} == {**second, "command": ""}


def test_a_saved_run_under_another_name_has_it_in_its_tables(tmp_path: Path) -> None:
    saved = Run.load(run(Scenario.parse(PLAIN), seed=3).save(tmp_path / "run")).under("other")
    for table in map(saved.table, saved.tables):
        assert table.columns[-2:] == ["controller", "seed"]
        assert len({*table.columns}) == len(table.columns)
        assert table.to_numpy("controller").tolist() == ["other"] * len(table)
        assert table.to_numpy("seed").tolist() == [3] * len(table)


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_no_file_of_a_comparison_holds_a_path_of_the_machine(jobs: str, folder: Path, cli: Cli) -> None:
    done = cli(*ARGV, "-j", jobs, "--out", "out")
    assert str(folder) not in done.out + done.err
    assert NAME in done.err, "a warning is about it"
    check_tables(folder / "out", folder)
    path = str(folder).encode()
    with_path = {file.name for file in (folder / "out").rglob("*") if file.is_file() and path in file.read_bytes()}
    # files that repeat a run need the paths of its inputs
    assert with_path <= {"run.json", "scenario.toml", "comparison.json"}
    for file in (folder / "out").rglob("run.json"):
        about = json.loads(file.read_text())
        assert str(folder) not in json.dumps({**about, "scenario": "", "base": ""})
        again = run(Run.load(file.parent).scenario, seed=about["seed"])
        assert again.digest == about["digest"], "its scenario runs again"
    with (folder / "out" / "runs.csv").open() as table:
        assert {row["controller"] for row in csv.DictReader(table)} == {"gcc", NAME, f"{NAME}:gain=0.5"}


def test_no_file_of_a_sweep_or_a_suite_does(folder: Path, cli: Cli) -> None:
    key = f"flows.call.media.controller={NAME},gcc"
    for number, argv in enumerate([
        ["sweep", "plain.toml", "--set", key, "-j", "2"],
        ["sweep", "plain.toml", "--set", f"flows.call.media.controller={NAME}", "--set", "flows.call.media.controller.gain=0.5,1"],
        ["suite", "run", "smoke", NAME, "--seeds", "1", "--cases", "5.1*", "-j", "2"],
    ]):  # fmt: skip
        out = folder / f"out{number}"
        done = cli(*argv, "--out", str(out.relative_to(folder)))
        assert done.code == 0, done.err
        assert str(folder) not in done.out + done.err
        check_tables(out, folder)
        holding = {file.name for file in out.rglob("*") if file.is_file() and str(folder).encode() in file.read_bytes()}
        assert holding <= {"sweep.json", "suite.json", "scenario.toml"}, holding


def test_a_path_that_was_typed_for_stays(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    full = f"python:{folder}/sub/mine.py:Mine"
    done = compare([full, NAME], Scenario.load("plain.toml"))
    assert [runs[0].metrics()["controller"] for runs in done.runs.values()] == [full, NAME]
    assert [set(runs[0].table("series").to_numpy("controller").tolist()) for runs in done.runs.values()] == [
        {full},
        {NAME},
    ]


def test_an_error_of_a_controller_names_its_file_as_it_was_typed_for(folder: Path, cli: Cli) -> None:
    (folder / "sub" / "mine.py").write_text(MINE.replace("return 30e6 * self.gain", "raise ValueError('no')"))
    done = cli("compare", NAME, "gcc", "--scenario", "plain.toml")
    assert "(sub/mine.py, line " in done.err
    assert str(folder) not in done.err
