"""Exports for other programs: each row names its controller, seed and flow."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np

from support import PLAIN
from tidegate import Comparison, Run, Scenario, _core, compare, run
from tidegate.comparison.sweeping import sweep

TWO = PLAIN.replace('"4s"', '"3s"') + '\n[[flows]]\nname = "download"\nstart = "1s"\ntcp = {}\n'


def parse_csv(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_runs_csv_has_a_row_for_each_controller_seed_and_flow(tmp_path: Path) -> None:
    done = compare(["gcc", "gcc:draft-02", "fixed:500kbps"], Scenario.parse(TWO), seeds=[3, 5])
    done.save(tmp_path / "o")
    rows = parse_csv((tmp_path / "o" / "runs.csv").read_text())
    assert rows == parse_csv(Comparison.load(tmp_path / "o").to_csv())
    keys = [(row["controller"], int(row["seed"]), row["flow"]) for row in rows]
    assert keys == [(name, seed, flow) for name in done.runs for seed in (3, 5) for flow in ("call", "download")]
    for row in rows:
        (matching,) = (matching for matching in done.runs[row["controller"]] if matching.seed == int(row["seed"]))
        assert row["digest"] == matching.digest
        for name, value in matching.metrics(row["flow"]).items():
            if name in {"flow", "kind"} or name not in row:
                continue
            if name == "controller":
                assert row["flow_controller"] == value
            elif isinstance(value, str) or value is None:
                assert row[name] == (value or "")
            else:
                assert float(row[name]) == value
        assert {"one_way_delay_ms_p95", "goodput_bps", "loss_fraction"} <= row.keys()
    # the table's mean is the mean of these rows
    means = {(cell["metric"], cell["controller"]): cell["mean"] for cell in done.table.to_data()}
    for name in done.runs:
        rates = [float(row["receive_rate_bps"]) for row in rows if (row["controller"], row["flow"]) == (name, "call")]
        assert np.isclose(means["receive_rate_bps", name], sum(rates) / 2, rtol=1e-12)


def test_every_parquet_file_names_controller_and_seed(tmp_path: Path) -> None:
    done = compare(["gcc", "fixed:500kbps"], Scenario.parse(TWO), seeds=2, record="packets")
    done.save(tmp_path / "o")
    pairs: set[tuple[str, int]] = set()
    files = sorted((tmp_path / "o" / "runs").glob("*/*.parquet"))
    assert len(files) > 20
    for file in files:
        table = _core.read_parquet(str(file))
        if table.num_rows:
            (pair,) = set(zip(table.to_numpy("controller").tolist(), table.to_numpy("seed").tolist(), strict=True))
            pairs.add(pair)
            assert pair[0] in done.runs
            assert file.parent.name.endswith(f"seed{pair[1]}")
    assert pairs == {(name, seed) for name in done.runs for seed in (1, 2)}
    loaded = Comparison.load(tmp_path / "o").runs["fixed:500kbps"][1]
    fresh = done.runs["fixed:500kbps"][1]
    assert (loaded.controller, fresh.controller) == ("fixed:500kbps",) * 2
    for name in fresh.tables:
        assert fresh.table(name).columns == loaded.table(name).columns
    assert fresh.table("flows").to_numpy("flow_controller").tolist() == ["fixed", "cubic"]


def test_a_run_by_itself_is_of_its_subjects_controller(tmp_path: Path) -> None:
    saved = run(Scenario.parse(TWO, changes={"seed": 7}))
    table = Run.load(saved.save(tmp_path / "one")).table("series")
    assert (set(table.to_numpy("controller")), set(table.to_numpy("seed"))) == ({"gcc"}, {7})


def test_a_sweep_has_a_row_for_each_flow(tmp_path: Path) -> None:
    key = "links.cable.delay"
    result = sweep(Scenario.parse(TWO), {key: ["10ms", "30ms"]}, out=tmp_path / "s", seeds=2)
    rows = parse_csv((tmp_path / "s" / "flows.csv").read_text())
    assert [(row[key], row["seed"], row["flow"]) for row in rows] == [
        (delay, seed, flow) for delay in ("10ms", "30ms") for seed in ("1", "2") for flow in ("call", "download")
    ]
    goodputs = {(row[key], row["seed"]): row["goodput_bps"] for row in parse_csv(result.to_csv())}
    assert {(row[key], row["seed"]): row["goodput_bps"] for row in rows if row["flow"] == "call"} == goodputs
