"""Recorded networks as other programs write them, through the command line and in runs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import tidegate
from support import Cli
from tidegate.cli import inspection
from tidegate.errors import TraceError
from tidegate.net import trace

OBOE = "".join(f"{begin} {rate}\n{begin + 1900} {rate}\n" for begin, rate in ((15, 3000), (2000, 2500), (4000, 2000)))


def test_the_help_names_the_formats_that_the_reader_has(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("1\n")
    with pytest.raises(TraceError) as caught:
        trace.load(tmp_path / "x", format="pcap")
    assert str(caught.value) == f"pcap: no such trace format; available: {inspection._FORMATS}"


def test_a_choice_of_units_is_said_where_it_is_used(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "oboe.txt").write_text(OBOE)
    shown = cli("trace", "show", "oboe.txt").out
    assert shown.startswith("oboe.txt: milliseconds-kbps, 7.785s, mean 2.383Mbps")
    assert "Note: two columns are read as milliseconds and kbit/s" in shown
    assert 'Note: line 1: the first time is "15"; times are counted from it' in shown
    facts = json.loads(cli("trace", "show", "oboe.txt", "--json").out)
    assert len(facts["notes"]) == 2
    assert facts["warnings"] == []
    run = tidegate.run(_scenario(tmp_path / "oboe.txt"))
    notes = [text for text in run.remarks.notes if text.startswith("links.way.capacity.trace: ")]
    assert [text.partition(": ")[2] for text in notes] == facts["notes"]
    # what is said by the person needs no remark
    assert trace.load(tmp_path / "oboe.txt", format="milliseconds-kbps").remarks == facts["notes"][1:]


def test_an_outlier_is_a_warning_and_sizes_no_queue(cli: Cli, tmp_path: Path) -> None:
    # 2 Mbit/s for 3.8 of 4 s, and 200 ms at 8 Gbit/s: the mean is 402 Mbit/s
    rows = [(0, 2), (1.8, 2), (2, 8000), (2.2, 2), (4, 2)]
    (tmp_path / "x.txt").write_text("".join(f"{time} {rate}\n" for time, rate in rows))
    assert cli("trace", "show", "x.txt").out.count("Warning: the mean (") == 1
    run = tidegate.run(_scenario(tmp_path / "x.txt", "5Mbps"))
    [warning] = [text for text in run.remarks.warnings if text.startswith("links.way.capacity: ")]
    assert "more than ten times its median by time (2.000 Mbit/s)" in warning
    # 300 ms at 2 Mbit/s are 75 kB; at the mean they would be 15 MB, which nothing fills
    given = tidegate.run(_scenario(tmp_path / "x.txt", "5Mbps", 'queue = { bytes = "75kB" },'))
    [dropped, as_given] = [_dropped(summary) for summary in (run.summary, given.summary)]
    assert dropped == as_given > 0


def _dropped(summary: Mapping[str, Any]) -> int:
    [dropped] = [link["dropped_queue"] for link in summary["links"] if link["link"] == "way"]
    return int(dropped)


def test_a_wrong_file_is_told_with_the_formats(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("when,speed\n0,1\n")
    got = cli("trace", "show", "x.csv")
    assert got.code == 2
    assert "x.csv: found the columns when, speed; expected columns of csv (time_s or time_ms" in got.err
    assert inspection._FORMATS in got.err


def test_a_kept_scenario_names_its_recordings_from_where_it_is(cli: Cli, tmp_path: Path) -> None:
    nets = tmp_path / "nets"
    nets.mkdir()
    (nets / "x.txt").write_text("0 2\n1 3\n2 1\n")
    scenario = _scenario(nets / "x.txt").with_changes({"links.way.capacity.trace": "nets/x.txt"})
    (tmp_path / "s.toml").write_text(scenario.to_toml())
    assert cli("compare", "gcc", "fixed", "--scenario", "s.toml", "--seeds", "1", "--out", "out/c").code == 0
    sha256 = hashlib.sha256((nets / "x.txt").read_bytes()).hexdigest()
    kept = (tmp_path / "out" / "c" / "scenario.toml").read_text()
    assert f'[links.capacity]\ntrace = "../../nets/x.txt"\nsha256 = "{sha256}"\n' in kept
    digest = tidegate.run(tidegate.Scenario.load(tmp_path / "s.toml")).digest
    assert tidegate.run(tidegate.Scenario.load(tmp_path / "out" / "c" / "scenario.toml")).digest == digest
    saved = tidegate.run(tidegate.Scenario.load(tmp_path / "s.toml")).save(tmp_path / "run")
    # another file, and none, are told where the scenario is run again; what was saved is read without it
    (nets / "x.txt").write_text("0 2\n1 3\n2 2\n")
    again = cli("run", "out/c/scenario.toml")
    assert again.code != 0
    assert "nets/x.txt: found another recording, of SHA-256 " in again.err
    assert f"the scenario was kept with a recording of SHA-256 {sha256[:12]}..." in again.err
    loaded = tidegate.Run.load(saved)
    with pytest.raises(TraceError, match=r"nets/x\.txt: found another recording"):
        tidegate.run(loaded.scenario)
    (nets / "x.txt").unlink()
    with pytest.raises(TraceError, match=rf"nets/x\.txt: there is no such file; .*{sha256[:12]}"):
        tidegate.run(loaded.scenario)
    assert "there is no such file; the scenario was kept with" in cli("run", "out/c/scenario.toml").err


def _scenario(path: Path, rate: str = "500kbps", queue: str = "") -> tidegate.Scenario:
    return tidegate.Scenario.parse(
        f"""
        duration = "2s"
        links = [{{ name = "way", from = "a", to = "b", capacity = {{ trace = "{path}" }}, {queue} delay = "10ms" }}]
        flows = [{{ name = "call", from = "a", to = "b", media = {{ controller = "fixed:{rate}" }} }}]
        """
    )
