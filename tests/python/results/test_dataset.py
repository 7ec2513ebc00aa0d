"""Runs of sweeps and suites as a Parquet data set: whole files, each run once, read by others and listed by us."""

from __future__ import annotations

import csv
import io
import json
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support import PLAIN, Cli
from tidegate import _core
from tidegate.errors import InputError
from tidegate.query import RowFilter
from tidegate.results import dataset
from tidegate.results.dataset import Row, Writer
from tidegate.results.metrics import FLOWS

SWEEP = ["sweep", "net.toml", "--set", "links.cable.delay=5ms,40ms", "--set", "links.cable.loss=0.0,0.02"]
SWEEP += ["--set", "flows.call.media.controller=gcc,fixed:500kbps", "--seeds", "2", "--out", "o"]


@pytest.fixture
def swept(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "net.toml").write_text(PLAIN)
    got = cli(*SWEEP)
    assert got.code == 0, got.err
    return Path("o")


def rows(folder: Path) -> list[dict[str, Any]]:
    return [
        {"controller": name, **table[index]} for name, table in dataset.tables(folder) for index in range(len(table))
    ]


def test_each_run_is_a_row(cli: Cli, swept: Path) -> None:
    listed = rows(swept)
    assert len(listed) == 16
    by_digest = {row["digest"]: row for row in csv.DictReader((swept / "summary.csv").read_text().splitlines())}
    for row in listed:
        csv_row = by_digest[row["digest"]]
        assert row["scenario"] == "net"
        assert row["links.cable.delay"] == csv_row["links.cable.delay"]
        assert row["links.cable.loss"] == float(csv_row["links.cable.loss"]), "a number where all values are"
        assert row["seed"] == int(csv_row["seed"])
        assert row["flows.call.media.controller"].startswith(row["controller"].partition(":")[0])
        for name in ("receive_rate_bps", "one_way_delay_ms_p95", "loss_fraction"):
            assert row[name] == float(csv_row[name])
    assert {file.parent.name for _, file in dataset.parts(swept / dataset.FOLDER)} == {
        f"controller={name}" for name in {row["controller"].replace(":", "%3A").replace("=", "%3D") for row in listed}
    }


def test_the_same_sweep_again_completes_and_grows_it(cli: Cli, swept: Path) -> None:
    before = {row["key"]: repr(row) for row in rows(swept)}
    (_, first), *_ = dataset.parts(swept / dataset.FOLDER)
    first.unlink()
    (first.parent / "part-zzz.parquet").write_bytes(b"PAR1 and no more")
    (first.parent / ".part.tidegate-abcd").write_bytes(b"half")
    assert cli(*SWEEP).code == 0
    again = rows(swept)
    assert len(again) == 16
    assert {row["key"]: repr(row) for row in again} == before
    assert not list(first.parent.glob(".*"))
    more = [part.replace("5ms,40ms", "5ms,40ms,80ms") for part in SWEEP]
    assert cli(*more).code == 0
    assert len({row["key"] for row in rows(swept)}) == len(rows(swept)) == 24


def test_a_run_that_is_done_again_is_one_row(cli: Cli, swept: Path) -> None:
    suite = ["suite", "run", "smoke", "gcc", "fixed:500kbps", "--cases", "fq-codel", "--seeds", "2", "--out", "s"]
    assert cli(*suite).code in {0, 1}
    for folder, argv in ((swept, SWEEP), (Path("s"), suite)):
        before = sorted(map(repr, rows(folder)))
        files = sorted((folder / "results").glob("[0-9a-f]*.json"))
        # one is lost, and one is damaged; their rows are in the data set
        files[0].unlink()
        files[-1].write_text("{")
        assert cli(*argv).code in {0, 1}
        assert sorted(map(repr, rows(folder))) == before


def test_a_suite_has_one_too(cli: Cli) -> None:
    got = cli("suite", "run", "smoke", "gcc", "fixed:500kbps", "--cases", "fq-codel", "--seeds", "2", "--out", "s")
    assert got.code in {0, 1}, got.err
    listed = rows(Path("s"))
    assert sorted((row["controller"], row["scenario"], row["seed"]) for row in listed) == [
        (name, "fq-codel", seed) for name in ("fixed:500kbps", "gcc") for seed in (1, 2)
    ]
    assert all(row["receive_rate_bps"] > 0 for row in listed)


def test_what_is_listed_is_what_holds(cli: Cli, swept: Path) -> None:
    all_rows = rows(swept)
    cases: dict[str, Callable[[dict[str, Any]], bool]] = {
        'controller == "gcc" and delay_p95 > 30ms': lambda row: (
            row["controller"] == "gcc" and row["one_way_delay_ms_p95"] > 30
        ),
        "links.cable.delay == '40ms' or not rate >= 600kbps": lambda row: (
            row["links.cable.delay"] == "40ms" or not row["receive_rate_bps"] >= 600_000
        ),
        "links.cable.loss > 0.01 and seed in [2, 7]": lambda row: row["links.cable.loss"] > 0.01 and row["seed"] == 2,
        "one_way_delay_ms_p95 <= 30 and seed != 1": lambda row: row["one_way_delay_ms_p95"] <= 30 and row["seed"] != 1,
        "1 < seed < 3 and 'gcc' == controller": lambda row: row["seed"] == 2 and row["controller"] == "gcc",
        "delay_p95 > 10 ms and < 30ms and seed not in [-1, 2]": lambda row: (
            10 < row["one_way_delay_ms_p95"] < 30 and row["seed"] == 1
        ),
    }
    for where, holds in cases.items():
        expected = sorted(row["digest"] for row in all_rows if holds(row))
        assert 0 < len(expected) < 16, where
        got = cli("results", "o", "--where", where, "--columns", "digest", "--csv")
        assert (got.code, got.err) == (0, "")
        assert sorted(row["digest"] for row in csv.DictReader(io.StringIO(got.out))) == expected, where
        data = json.loads(cli("results", "o", "--where", where, "--json", "--limit", "1").out)
        assert (data["found"], data["runs"], len(data["rows"])) == (len(expected), 16, 1)
    got = cli("results", "o", "--limit", "3")
    assert got.out.endswith("\n16 of 16 runs, 3 of them printed (--limit, --csv)\n")
    assert "links.cable.delay" in got.out


@pytest.mark.parametrize(
    ("where", "why"),
    [
        ("delay_p59 > 3ms", "delay_p59: there is no such column"),
        ("controller > 'gcc'", "controller: found > for a column of text; expected ==, != or in"),
        ("delay_p95 > 3kbps", "one_way_delay_ms_p95: "),
        ("seed == 'one'", 'seed: found "one"; expected a number'),
        ("__import__('os')", "expected a column compared with a value"),
        ("controller ==", "expected a condition such as"),
        ("(" * 500, "expected a condition such as"),
        ("seed < seed", 'found "seed < seed"; expected a column compared with a value'),
        ("seed + 1 < 3", "expected a column compared with a value"),
        ("worst delay_p95 < 3ms", "expected a column compared with a value"),
        ("controller == 'gcc' end", "expected a condition such as"),
        ("seed in []", "expected a column compared with a value"),
    ],
)
def test_a_wrong_condition_is_said(where: str, why: str) -> None:
    kinds = {"controller": "U", "seed": "u", "one_way_delay_ms_p95": "f"}
    with pytest.raises(InputError) as caught:
        RowFilter(where, kinds)
    assert why in str(caught.value)


def test_a_folder_without_runs_is_said(cli: Cli, tmp_path: Path) -> None:
    got = cli("results", str(tmp_path))
    assert got.code == 2
    assert "the folder has no runs.parquet with runs; expected a folder that `tidegate sweep`" in got.err


def test_a_number_that_is_not_there_is_neither_more_nor_less() -> None:
    row_filter = RowFilter("delay_p95 > 3ms or delay_p95 <= 3ms or delay_p95 != 1ms", {"one_way_delay_ms_p95": "f"})
    assert row_filter({"one_way_delay_ms_p95": np.array([np.nan, 1.0, 5.0])}).tolist() == [False, True, True]


def test_many_small_files_become_few(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dataset, "_FULL", 100)
    keys = [f"{number:032x}" for number in range(250)]
    writer = Writer(tmp_path, ["scenario"], ["loss_fraction"])
    assert writer.begin(keys) == set()
    for number, key in enumerate(keys):
        writer.add(Row(key, "python:a/b.py:Ü:k=1", {"scenario": "net"}, number, {"loss_fraction": number / 1000}))
        if number % 7 == 0:
            writer.flush()
    count = len(list(dataset.parts(tmp_path / dataset.FOLDER)))
    writer.close()
    files = list(dataset.parts(tmp_path / dataset.FOLDER))
    assert count > 30
    assert 2 <= len(files) <= 3
    listed = rows(tmp_path)
    assert {row["key"]: row["loss_fraction"] for row in listed} == {key: n / 1000 for n, key in enumerate(keys)}
    assert len(listed) == 250
    assert {row["controller"] for row in listed} == {"python:a/b.py:Ü:k=1"}
    assert Writer(tmp_path, ["scenario"], ["loss_fraction"]).begin(keys) == set(keys)
    assert Writer(tmp_path, ["scenario"], ["marked"]).begin(keys) == set(), "other columns: written anew"


@pytest.mark.slow
def test_a_killed_sweep_leaves_whole_files_and_is_completed(tmp_path: Path) -> None:
    (tmp_path / "net.toml").write_text(PLAIN)
    code = """
        from tidegate.results import dataset
        dataset._SOON = 0.05
        from tidegate import sweep
        sweep("net.toml", {"duration": [f"{at}s" for at in range(5, 205)]}, out="o", seeds=5)
    """
    argv = [sys.executable, "-c", textwrap.dedent(code)]
    process = subprocess.Popen(argv, cwd=tmp_path)
    end = time.monotonic() + 60
    root = tmp_path / "o" / dataset.FOLDER
    while time.monotonic() < end and len(list(dataset.parts(root))) < 8:
        time.sleep(0.02)
    assert process.poll() is None
    process.send_signal(signal.SIGKILL)
    process.wait()
    keys = [str(key) for _, file in dataset.parts(root) for key in _core.read_parquet(str(file)).to_numpy("key")]
    done = {file.stem for file in (tmp_path / "o" / "results").glob("[0-9a-f]*.json")}
    assert len(keys) == len(set(keys))
    assert set(keys) <= done, "a run whose own file is not there is done again, and has no row yet"
    subprocess.run(argv, cwd=tmp_path, check=True)
    listed = rows(tmp_path / "o")
    assert len(listed) == len({row["key"] for row in listed}) == 1000


def generated(folder: Path, count: int) -> None:
    """A data set as a sweep of so many runs leaves it."""
    keys = [f"{number:032x}" for number in range(count)]
    writer = Writer(folder, ["scenario", "links.uplink.delay", "digest"], FLOWS)
    writer.begin(keys)
    luck = np.random.default_rng(1)
    values = luck.lognormal(3.0, 1.0, (count, 40))
    for number, key in enumerate(keys):
        numbers = dict(zip(FLOWS, values[number], strict=False))
        numbers["one_way_delay_ms_p95"] = values[number, 0] * 4
        words = {"scenario": f"net{number % 50}", "links.uplink.delay": f"{number % 20}ms", "digest": key[:16]}
        writer.add(Row(key, f"controller{number % 10}", words, number // 1000, numbers))
    writer.close()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the peak of a process is asked of Linux")
def test_a_hundred_thousand_runs_are_listed_in_seconds_and_little_memory(tmp_path: Path) -> None:
    peaks, seconds = [], []
    for count in (10_000, 100_000):
        folder = tmp_path / str(count)
        folder.mkdir()
        generated(folder, count)
        where = 'controller == "controller3" and delay_p95 > 100ms'
        # not of getrusage, in which a child begins with the peak of the Python that starts it
        code = (
            "import sys; from tidegate.cli import main; code = main(sys.argv[1:]);"
            "peak = next(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM'));"
            "print(code, peak, file=sys.stderr)"
        )
        argv = [sys.executable, "-c", code, "results", str(folder), "--where", where]
        start = time.monotonic()
        got = subprocess.run(argv, capture_output=True, text=True, check=True)
        seconds.append(time.monotonic() - start)
        code_, peak = map(int, got.stderr.split())
        assert code_ == 0
        assert f" of {count} runs" in got.stdout
        peaks.append(peak / 1024)
    print(f"peaks {peaks} MB, seconds {seconds}")
    assert seconds[1] < 20
    # a file is 10 000 rows of 10 controllers there, and one of 1 000 here: no more than one of them is held
    assert peaks[1] < peaks[0] + 40


@pytest.mark.slow
@pytest.mark.parametrize("reader", ["polars", "duckdb", "pyarrow", "pandas"])
def test_others_read_it(swept: Path, reader: str) -> None:
    module = pytest.importorskip(reader, reason=f"{reader} is not installed")
    root = str(swept / dataset.FOLDER)
    if reader == "polars":
        frame = module.scan_parquet(f"{root}/**/*.parquet", hive_partitioning=True).collect()
        listed = frame.to_dicts()
    elif reader == "duckdb":
        query = f"select * from read_parquet('{root}/*/*.parquet', hive_partitioning = true)"
        cursor = module.connect().execute(query)
        names = [column[0] for column in cursor.description]
        listed = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
    elif reader == "pyarrow":
        listed = pytest.importorskip("pyarrow.dataset").dataset(root, partitioning="hive").to_table().to_pylist()
    else:
        pytest.importorskip("pyarrow", reason="pandas reads Parquet by it")
        listed = module.read_parquet(root).to_dict("records")
    ours = {row["key"]: row for row in rows(swept)}
    assert len(listed) == len(ours)
    for row in listed:
        our_row = ours[row["key"]]
        for name in ("controller", "scenario", "links.cable.delay", "links.cable.loss", "seed", "receive_rate_bps"):
            assert row[name] == our_row[name], (reader, name)


@pytest.mark.slow
def test_a_table_that_unpacks_to_far_more_than_its_size_is_refused(tmp_path: Path) -> None:
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({f"c{number}": polars.repeat(1.0, 10**6, eager=True) for number in range(20)})
    frame.write_parquet(tmp_path / "rows.parquet")
    assert (tmp_path / "rows.parquet").stat().st_size < 10**6
    with pytest.raises(ValueError, match="1000000 rows take 160 MB, over 100 times its size"):
        _core.read_parquet(str(tmp_path / "rows.parquet"))
