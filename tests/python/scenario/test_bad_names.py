"""Names of files, links and numbers that cannot be had: a sentence, before any work."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from support import PLAIN, Cli
from tidegate._files import table_written
from tidegate.errors import OutputError, ScenarioError


def test_a_loop_of_links_is_no_folder(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_text(PLAIN)
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    got = cli("run", "x.toml", "--out", "a")
    assert (got.code, got.err) == (1, "tidegate: a: cannot be written: Too many levels of symbolic links\n")


def test_a_file_of_code_whose_name_is_no_text(cli: Cli, tmp_path: Path) -> None:
    name = os.fsdecode(b"x\xff.py")
    (tmp_path / name).write_text("class Mine:\n    pass\n")
    got = cli("compare", f"python:{name}:Mine", "--duration", "1s")
    why = "has characters that cannot be written in a result; rename the file"
    assert (got.code, got.err) == (2, f"tidegate: x\\udcff.py: {why}\n")


def test_a_recording_of_less_than_a_second_is_shown_in_milliseconds(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "x.trace").write_text("1\n2\n3\n4\n5\n")
    first, means, bars, *rest = cli("trace", "show", "x.trace").out.split("\n")
    assert first == "x.trace: mahimahi, 5ms, mean 12.032Mbps"
    assert means == "means of 1ms: minimum 12.032Mbps, maximum 12.032Mbps, zero in 0.0% of them"
    assert (bars, rest) == ("█████", [""])
    facts = json.loads(cli("trace", "show", "x.trace", "--json").out)
    assert (facts["bin_s"], facts["least_bps"], facts["largest_bps"], facts["bins_without_any"]) == (
        0.001,
        12_032_000,
        12_032_000,
        0,
    )


def test_a_table_that_cannot_be_written_is_named_once(tmp_path: Path) -> None:
    with pytest.raises(OutputError) as caught, table_written(tmp_path / "x.parquet"):
        raise ValueError(f"{tmp_path}/x.parquet: ValueError: External: No space left on device (os error 28)")
    assert str(caught.value) == f"{tmp_path}/x.parquet: cannot be written: No space left on device"


def test_a_name_that_is_there_five_hundred_times_is_twenty_lines(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_text(PLAIN + '[[links]]\nname = "again"\ncapacity = "1Mbps"\ndelay = "1ms"\n' * 501)
    got = cli("scenario", "check", "x.toml")
    lines = got.err.splitlines()
    assert (got.code, len(lines), lines[-1]) == (2, 20, "481 more problems")
    assert all('"again" is the name of entry' in line for line in lines[:-1])
    error = ScenarioError(["a"] * 20)
    assert (str(error).count("a"), len(error.problems)) == (20, 20)
