"""Damaged results, and panics: one clear error, whatever the damage."""

from __future__ import annotations

import copy
import json
import os
import random
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from support import PLAIN, Cli
from tidegate import Comparison, Run, Scenario, _core, _inputs, compare, report, run, sweep
from tidegate.errors import InputError
from tidegate.results.folders import MANIFEST
from tidegate.runs import RUN_FILE


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("saved")
    return run(Scenario.parse(PLAIN.replace('"4s"', '"1s"')), record="packets").save(place / "run")


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Path]:
    """A folder in memory where there is one: thousands of files are written, one after the other."""
    shared = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=shared if shared.is_dir() else tmp_path) as folder:
        yield Path(folder)


def mutants(data: bytes, count: int, seed: int) -> Iterator[bytes]:
    """One byte, some bytes, a piece left out or doubled, an end."""
    luck = random.Random(seed)
    for number in range(count):
        out = bytearray(data)
        at = luck.randrange(len(out))
        match number % 8:
            case 0 | 1 | 2 | 3 | 4:
                out[at] = luck.randrange(256)
            case 5:
                for _ in range(8):
                    out[luck.randrange(len(out))] = luck.randrange(256)
            case 6:
                length = luck.randrange(1, 20)
                out[at : at + length] = b"" if luck.random() < 0.5 else out[at : at + length] * 2
            case _:
                del out[at:]
        yield bytes(out)


def read_all(file: Path, data: bytes) -> bool:
    """Whether a file can be read; what is read can be used. Anything but an error of the usual kind escapes."""
    file.write_bytes(data)
    try:
        table = _core.read_parquet(str(file))
    except ValueError as error:
        assert str(error).startswith(f"{file}: not a Parquet file of tidegate: ")
        return False
    for column in table.columns:
        assert len(table.to_numpy(column)) == len(table)
    return True


def mutate_parquet(saved: Path, tmp_path: Path, each: int) -> tuple[int, int]:
    file = tmp_path / "x.parquet"
    tables = sorted(saved.glob("*.parquet"))
    assert len(tables) > 8
    refused = total = 0
    for number, table in enumerate(tables):
        data = table.read_bytes()
        assert read_all(file, data)
        for mutant in mutants(data, each, number):
            refused += not read_all(file, mutant)
            total += 1
    return refused, total


def test_damaged_parquet_is_an_error_or_a_table(saved: Path, memory: Path) -> None:
    refused, total = mutate_parquet(saved, memory, 400)
    assert refused > total / 2


@pytest.mark.slow
def test_much_damaged_parquet_is_an_error_or_a_table(saved: Path, memory: Path) -> None:
    refused, total = mutate_parquet(saved, memory, 12_000)
    assert total > 100_000
    assert refused > total / 2


def test_every_byte_of_a_small_table(saved: Path, memory: Path) -> None:
    # among these are the single bytes that made the reader panic
    data = (saved / "links.parquet").read_bytes()
    file = memory / "x.parquet"
    panics = 0
    for at in range(len(data)):
        for value in (37, 165):
            file.write_bytes(data[:at] + bytes([value]) + data[at + 1 :])
            try:
                _core.read_parquet(str(file))
            except ValueError as error:
                panics += ".rs:" in str(error)
    assert panics, "a panic inside the reader, with its place"


def read_saved(folder: Path) -> None:
    loaded = Run.load(folder)
    for name in loaded.tables:
        loaded.table(name)


def test_a_changed_byte_is_found_in_whatever_file(saved: Path) -> None:
    luck = random.Random(1)
    for path in sorted(saved.iterdir()):
        if path.name == MANIFEST:
            continue
        data = path.read_bytes()
        at = luck.randrange(len(data))
        path.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        with pytest.raises(InputError) as caught:
            read_saved(saved)
        assert (
            str(caught.value)
            == f"{path}: the file is damaged or was changed: its hash differs from the one in {MANIFEST}"
        )
        path.write_bytes(data)
    data = (saved / MANIFEST).read_bytes()
    (saved / MANIFEST).write_bytes(data[:-9])
    with pytest.raises(InputError, match=r"manifest.json: the file is damaged$"):
        Run.load(saved)
    (saved / MANIFEST).write_bytes(data)
    assert Run.load(saved).table("truth").num_rows


def places(data: Any) -> Iterator[tuple[Any, Any]]:
    """Each container with each of its keys."""
    keys = list(data) if isinstance(data, dict) else range(len(data)) if isinstance(data, list) else []
    for key in keys:
        yield data, key
        yield from places(data[key])


STRANGE: list[Any] = [None, True, -1, 10**400, 1e999, "", "x", "\0", [], [[]], {}, {"flow": 5}]


def mutate_json(saved: Path, tmp_path: Path, count: int) -> int:
    """Wrong values in the right shape, in a folder of an earlier version, which has no manifest."""
    about = json.loads((saved / RUN_FILE).read_text())
    for table in ("truth", "decisions", "flows"):
        if (saved / f"{table}.parquet").exists():
            (tmp_path / f"{table}.parquet").write_bytes((saved / f"{table}.parquet").read_bytes())
    luck = random.Random(2)
    refused = 0
    for _ in range(count):
        wrong = copy.deepcopy(about)
        container, key = luck.choice(list(places(wrong)))
        match luck.random():
            case chance if chance < 0.2:
                del container[key]
            case chance if chance < 0.3 and isinstance(container, list):
                container.append(container[key])
            case _:
                container[key] = luck.choice(STRANGE)
        (tmp_path / RUN_FILE).write_text(json.dumps(wrong))
        try:
            loaded = Run.load(tmp_path)
            loaded.metrics()
            _ = (loaded.members, loaded.flows, loaded.scenario)
            Comparison(Scenario.parse(PLAIN), {"gcc": [loaded]}).table.to_markdown()
            if luck.random() < 0.05:
                report.html(loaded)
        except InputError as error:
            refused += 1
            assert RUN_FILE in str(error) or "scenario" in str(error), error
    return refused


def test_damaged_json_of_the_right_shape(saved: Path, memory: Path) -> None:
    assert mutate_json(saved, memory, 1500) > 600


@pytest.mark.slow
def test_much_damaged_json_of_the_right_shape(saved: Path, memory: Path) -> None:
    assert mutate_json(saved, memory, 20_000) > 8_000


def test_a_damaged_result_is_told_on_the_command_line(cli: Cli, tmp_path: Path) -> None:
    place = compare(["fixed"], Scenario.parse(PLAIN)).save(tmp_path / "o")
    for name in ("runs/fixed-seed1/truth.parquet", "runs/fixed-seed1/run.json", "comparison.json"):
        data = (place / name).read_bytes()
        (place / name).write_bytes(data.replace(b"1", b"2"))
        got = cli("report", "o")
        assert (got.code, got.err) == (
            2,
            f"tidegate: o/{name}: the file is damaged or was changed: its hash differs from the one in {MANIFEST}\n",
        )
        (place / name).write_bytes(data)
    assert cli("report", "o").code == 0


@pytest.mark.parametrize("value", [{}, [], [1.0], {"x": 1.0}, "1", 1e101, -1e308])
def test_a_number_of_the_whole_run_that_is_none(saved: Path, tmp_path: Path, value: Any) -> None:
    about = json.loads((saved / RUN_FILE).read_text())
    about["summary"]["duration_s"] = value
    (tmp_path / RUN_FILE).write_text(json.dumps(about))
    with pytest.raises(InputError, match=r"is damaged: summary\.duration_s: found .*; expected a number"):
        Run.load(tmp_path)


def forged(file: Path, change: Callable[[Any], object]) -> None:
    """A result with other contents, without the list of hashes."""
    data = json.loads(file.read_text())
    change(data)
    file.write_text(json.dumps(data))
    (file.parent / MANIFEST).unlink(missing_ok=True)


@pytest.mark.parametrize("name", ["/etc", "../elsewhere", "link", "runs/../../elsewhere", "a\0b", ""])
def test_a_comparison_names_runs_of_its_own_folder(cli: Cli, tmp_path: Path, name: str) -> None:
    place = compare(["fixed"], Scenario.parse(PLAIN)).save(tmp_path / "o")
    elsewhere = run(Scenario.parse(PLAIN)).save(tmp_path / "elsewhere")
    (place / "link").symlink_to(elsewhere)
    forged(place / "comparison.json", lambda index: index["runs"][0].update(folder=name))
    got = cli("report", "o")
    assert got.code == 2
    assert any(why in got.err for why in ("in its folder", "which is not in this folder", "found a NUL"))
    assert not (place / "report.html").read_text().count("elsewhere")


def test_a_file_of_a_run_that_is_a_link_to_elsewhere(cli: Cli, tmp_path: Path, saved: Path) -> None:
    place = run(Scenario.parse(PLAIN.replace('"4s"', '"1s"'))).save(tmp_path / "o")
    (place / MANIFEST).unlink()
    (place / "truth.parquet").unlink()
    (place / "truth.parquet").symlink_to(saved / "truth.parquet")
    got = cli("report", "o")
    assert (got.code, got.err) == (
        2, "tidegate: o: names truth.parquet, which is not in this folder; a result is read from its own folder\n",
    )  # fmt: skip


@pytest.mark.parametrize(
    "name", ["comparison.json", "notes.csv", "runs/fixed-seed1/run.json", "runs/fixed-seed1/truth.parquet"]
)
def test_pipes_in_a_result_are_refused(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """A pipe without a writer, in a folder with and without the list of its files."""
    monkeypatch.setattr(_inputs, "PIPE_WAIT_S", 0.1)
    compared = compare(["fixed"], Scenario.parse(PLAIN.replace('"4s"', '"1s"')))
    place = replace(compared, attached={"notes.csv": b"a,b\n"}).save(tmp_path / "o")
    (place / name).unlink()
    os.mkfifo(place / name)
    for _ in range(2):
        got = cli("report", "o")
        assert got.code == 2
        # a folder whose first file is a pipe is no result at all
        assert got.err.startswith("tidegate: o does not hold" if name == "comparison.json" else f"tidegate: o/{name}: ")
        for manifest in place.rglob(MANIFEST):
            manifest.unlink()


def test_an_attached_file_has_its_limit(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compared = compare(["fixed"], Scenario.parse(PLAIN.replace('"4s"', '"1s"')))
    place = replace(compared, attached={"notes.csv": b"a,b\n" * 100}).save(tmp_path / "o")
    assert cli("report", "o").code == 0
    with (place / "notes.csv").open("wb") as file:
        file.truncate(_inputs.ATTACHED.size + 1)
    (place / MANIFEST).unlink()
    got = cli("report", "o")
    assert got.code == 2
    assert "o/notes.csv is larger than 32MB, the limit of an attached file" in got.err


def test_runs_with_damaged_tables_are_not_the_same_to_the_bit(cli: Cli, tmp_path: Path) -> None:
    place = compare(["fixed"], Scenario.parse(PLAIN.replace('"4s"', '"1s"'))).save(tmp_path / "o")
    kept = place / "runs" / "fixed-seed1"
    table = kept / "series.parquet"
    table.write_bytes(table.read_bytes()[:-1])
    why = f"the file is damaged or was changed: its hash differs from the one in {MANIFEST}"
    for name in ("o", "o/runs/fixed-seed1"):
        got = cli("diff", name, name)
        assert (got.code, got.out) == (2, "")
        assert got.err == f"tidegate: o/runs/fixed-seed1/series.parquet: {why}\n"
    table.unlink()
    assert (
        cli("diff", "o", "o").err == f"tidegate: o/runs/fixed-seed1/series.parquet: is missing: {MANIFEST} lists it\n"
    )


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda index: index.update(seeds=["1"]), 'seeds[1]: found "1"; expected a whole number'),
        (lambda index: index["results"].append("../../x"), 'results[3]: found "../../x"; expected'),
        (lambda index: index.update(grid={"a": [1, "2ms"]}), "grid.a[1]: found 1; expected text"),
        (lambda index: index.pop("command"), "command: the key is missing"),
        (lambda index: index.update(scenario="x = ["), "scenario:1: not valid TOML: invalid value"),
        (lambda index: index["seeds"].append(2), "results: found 2; expected 4, of each combination with each seed"),
    ],
)
def test_a_forged_sweep_is_refused_with_its_place(
    cli: Cli, tmp_path: Path, change: Callable[[Any], object], why: str
) -> None:
    scenario = Scenario.parse(PLAIN.replace('"4s"', '"1s"'))
    sweep(scenario, {"links.cable.delay": ["1ms", "2ms"]}, out=tmp_path / "o")
    forged(tmp_path / "o" / "sweep.json", change)
    for got in (cli("report", "o"), cli("diff", "o", "o")):
        assert got.code == 2
        assert got.err.startswith(f"tidegate: o/sweep.json: the file is damaged: {why}")
