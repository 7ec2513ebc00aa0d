"""What `tidegate check` leaves for others to read: JUnit XML and annotations, also of a check that cannot be made."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from support import Cli
from tidegate.errors import InputError
from tidegate.gate.baseline import Baseline
from tidegate.gate.checking import write
from tidegate.gate.course import Course
from tidegate.suite import Plan, Suite

SUITE = """
description = "one short look"

[[cases]]
name = "steps"
title = "Steps of the capacity"
scenario = "rfc8867-5.1-variable-capacity"
set = { duration = "10s", "flows.call.stop" = "9s" }
"""
MINE = """
from tidegate import Controller
{before}

class Mine(Controller):
    def on_limits(self, now_ns, limits):
        return {rate}

    def on_report(self, now_ns, report):
        {body}
        return {rate}
"""


def mine(rate: int = 600_000, *, before: str = "", body: str = "pass") -> str:
    """A controller in Python."""
    return MINE.format(rate=rate, before=before, body=body)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a suite, a controller in Python and its baseline."""
    folder = tmp_path_factory.mktemp("gate")
    (folder / "short.toml").write_text(SUITE)
    (folder / "mine.py").write_text(mine())
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        suite = Suite.load("short.toml")
        write(Path("base.json"), "python:mine.py:Mine", suite, suite_name="short.toml", rules=["rate < -5%"], seeds=20)
    return folder


@pytest.fixture
def folder(prepared: Path, tmp_path: Path, cli: Cli) -> Path:
    """A copy of it in the folder where the command line runs."""
    for file in prepared.iterdir():
        if file.is_file():
            shutil.copy(file, tmp_path)
    return tmp_path


def cases_in(file: Path) -> tuple[ET.Element, list[ET.Element]]:
    """The only test suite of a JUnit file, and its tests."""
    (group,) = ET.parse(file).getroot()
    return group, list(group)


def test_a_failure_says_at_length_what_failed_and_where_and_how_long_it_took(folder: Path, cli: Cli) -> None:
    (folder / "mine.py").write_text(mine(400_000))
    done = cli("check", "base.json", "--junit", "check.xml", "--github")
    assert done.code == 1
    group, (test,) = cases_in(folder / "check.xml")
    assert test.get("file") == "mine.py"
    assert float(test.get("time") or 0) > 0
    assert group.get("time") == test.get("time")
    (failure,) = test
    text = failure.text or ""
    for line in (
        "rule: rate < -5%",
        "case: steps of short",
        "receive rate, mean of 10 seeds:",
        "  before (python:mine.py:Mine): 0.6",
        "  now (python:mine.py:Mine): 0.4",
        "  change: -0.2",
        "  at least, for sure: -0.2",
        "  limit: -5%",
        "again: tidegate check base.json --cases steps",
    ):
        assert f"\n{line}" in f"\n{text}", line
    # the line of the class
    assert "::error file=mine.py,line=5,title=steps became worse::" in done.out


@pytest.mark.parametrize(
    ("break_it", "file", "said"),
    [
        ("library", "mine.py", "libmine.so"),
        ("baseline", "base.json", "base.json is not a baseline"),
        ("gone", "base.json", "base.json"),
        ("network", "base.json", "the network differs from that of the baseline"),
    ],
)
def test_a_check_that_cannot_be_made_is_reported_all_the_same(
    break_it: str, file: str, said: str, folder: Path, cli: Cli
) -> None:
    match break_it:
        case "library":
            (folder / "mine.py").write_text(mine(before='import ctypes\nctypes.CDLL("./libmine.so")'))
        case "baseline":
            (folder / "base.json").write_text("{}")
        case "gone":
            (folder / "base.json").unlink()
        case _:
            (folder / "short.toml").write_text(SUITE.replace('"9s"', '"8s"'))
    done = cli("check", "base.json", "--junit", "check.xml", "--github")
    assert done.code == 2, done.err
    group, (test,) = cases_in(folder / "check.xml")
    assert (group.get("tests"), group.get("errors"), group.get("failures")) == ("1", "1", "0")
    assert test.get("file") == file
    (error,) = test
    assert error.tag == "error"
    assert said in (error.get("message") or "") + (error.text or "")
    # the text is that of the message on the terminal
    assert (error.text or "") in done.err.replace("tidegate: ", "")
    (annotation,) = [line for line in done.out.splitlines() if line.startswith("::error ")]
    # the class is behind the line with the library
    place = f"file={file},line=6" if break_it == "library" else f"file={file}"
    assert annotation.startswith(f"::error {place},title=tidegate check could not be made::")


def test_without_being_asked_nothing_is_reported(folder: Path, cli: Cli) -> None:
    (folder / "base.json").write_text("{}")
    done = cli("check", "base.json")
    assert (done.code, done.out) == (2, "")
    assert not (folder / "check.xml").exists()


def test_an_endless_run_is_ended_and_fails(folder: Path, cli: Cli) -> None:
    (folder / "mine.py").write_text(mine(body="while True: pass"))
    done = cli("check", "base.json", "--junit", "check.xml", "--time-limit", "1s", "--seeds", "20")
    assert done.code == 1, done.err
    _, (test,) = cases_in(folder / "check.xml")
    (error,) = test
    assert "the run took longer than the time limit of 1 s, and was ended" in (error.text or "")
    assert "steps: seed 1: the run took longer than the time limit of 1 s" in done.err


COMPARE = ["compare", "python:mine.py:Mine", "gcc", "--set", "duration=600s", "--out", "out", "-j", "1"]
COUNTED = """if not hasattr(self, "begun"):
            self.begun = open("begun", "a").write("1")
        """
"""Leaves a mark for each run that began."""


@pytest.mark.parametrize("command", [["check", "base.json", "--seeds", "20", "-j", "1"], [*COMPARE, "--seeds", "4"]])
def test_after_a_run_without_progress_its_other_seeds_are_not_begun(folder: Path, cli: Cli, command: list[str]) -> None:
    (folder / "mine.py").write_text(mine(body=f"{COUNTED}while True: pass"))
    done = cli(*command, "--time-limit", "1s")
    assert done.code == 1, done.err
    assert (folder / "begun").read_text() == "1"
    assert "; it made no progress in the last 0.5 s, as with an endless loop in a controller" in done.err
    assert "; no further seed of it was begun" in done.err


def test_a_slow_run_says_nothing_of_its_other_seeds(folder: Path, cli: Cli) -> None:
    (folder / "mine.py").write_text(mine(before="import time", body=f"{COUNTED}time.sleep(0.001)"))
    done = cli(*COMPARE, "--seeds", "2", "--time-limit", "2s")
    assert done.code == 1, done.err
    assert (folder / "begun").read_text() == "11"
    assert "progress" not in done.err


def test_a_failure_shows_the_worst_case_before_and_now(folder: Path, cli: Cli) -> None:
    (folder / "mine.py").write_text(mine(400_000))
    done = cli("check", "base.json", "--picture", "worse.svg", "--out", "out", "--junit", "check.xml")
    assert done.code == 1
    assert done.out.count("steps over 10 s, a mark for each 1 s, median of 5 seeds") == 1
    rates = [line for line in done.out.splitlines() if re.search("(before|now) .*Mbit/s$", line)]
    assert (
        done.out.count("  each mark is a median at that time; the table judges means of whole calls over all seeds")
        == 1
    )
    # on one scale: what is slower has lower marks
    marks = [re.search(r"(?:before|now) +([▁▂▃▄▅▆▇█ ]{10}) ", line) for line in rates]
    before, now = (match[1] for match in marks if match)
    assert before[5] > now[5] > "▁"
    assert "steps before and now is drawn in worse.svg" in done.err
    drawing = (folder / "worse.svg").read_text()
    assert drawing.startswith("<?xml")
    assert "steps: Steps of the capacity" in drawing
    assert "\n".join(line for line in done.out.splitlines() if line in rates) in (folder / "check.xml").read_text()
    # without a file it is beside the runs, until a check passes
    assert cli("check", "base.json", "--out", "out").code == 1
    assert (folder / "out" / "before-after.png").read_bytes().startswith(b"\x89PNG")
    (folder / "mine.py").write_text(mine())
    assert cli("check", "base.json", "--out", "out").code == 0
    assert not (folder / "out" / "before-after.png").exists()
    (folder / "mine.py").write_text(mine(400_000))
    assert cli("check", "base.json", "--out", "out").code == 1
    assert (folder / "out" / "before-after.png").exists()


def test_the_course_in_a_baseline_is_that_of_its_runs(folder: Path) -> None:
    course = Baseline.load(folder / "base.json").cases["steps"].course
    assert course is not None
    assert (course.step_s, len(course.rate_kbps), len(course.rate_kbps[0])) == (1, 5, 10)
    result = Plan.of("short.toml", ["python:mine.py:Mine"], seeds=2).run(folder / "runs", processes=False)
    kept = result.rows["steps", "python:mine.py:Mine"][2]["measures"]["series"]["flows"]["call"]
    assert course.rate_kbps[1][3] == round(kept["rate_bps"][3] / 1e3)
    assert course.delay_ms[1][3] == round(kept["delay_ms"][3])
    assert course.rate_kbps[1][-1] is None or course.rate_kbps[1][-1] < 600


def test_an_older_baseline_has_no_course_and_the_check_says_so(folder: Path, cli: Cli) -> None:
    data = json.loads((folder / "base.json").read_text())
    data["format"] = 2
    for case in data["cases"].values():
        del case["course"]
    (folder / "base.json").write_text(json.dumps(data))
    assert cli("check", "base.json").code == 0
    (folder / "mine.py").write_text(mine(400_000))
    done = cli("check", "base.json", "--picture", "worse.png")
    assert done.code == 1
    assert "the baseline has no course over time, since it was made by an older tidegate; make it again" in done.out
    assert (folder / "worse.png").read_bytes().startswith(b"\x89PNG")


def test_of_several_calls_rates_are_added_and_the_longest_delay_counts() -> None:
    flows = {
        "a": {"rate_bps": [1e6, 1e6, None], "delay_ms": [20, None, None]},
        "b": {"rate_bps": [None, 2e6, None], "delay_ms": [None, 70, None]},
        "tcp": {"rate_bps": [9e6, 9e6, 9e6], "delay_ms": [1, 1, 1]},
    }
    row = {"contenders": ["a", "b"], "measures": {"series": {"t_s": [0, 1, 2], "flows": flows, "links": {}}}}
    course = Course.of({1: row})
    assert course == Course(1, ((1000, 3000, None),), ((20, 70, None),))
    # a course of 150 s has bins of 3 s
    long = {"a": {"rate_bps": [1e6] * 149 + [None], "delay_ms": [20.0] * 75 + [40.0] * 75}}
    row = {"contenders": ["a"], "measures": {"series": {"t_s": list(range(150)), "flows": long, "links": {}}}}
    course = Course.of({1: row})
    assert course is not None
    assert (course.step_s, len(course.rate_kbps[0]), course.delay_ms[0][24], course.delay_ms[0][25]) == (3, 50, 20, 40)
    assert Course.of({}) is None


@pytest.mark.parametrize(
    ("course", "said"),
    [
        ({"step_s": 0, "rate_kbps": [[1]], "delay_ms": [[1]]}, "step_s"),
        ({"step_s": 1, "rate_kbps": [[1, 2]], "delay_ms": [[1]]}, "do not have the same seeds and bins"),
        ({"step_s": 1, "rate_kbps": [], "delay_ms": []}, "do not have the same seeds and bins"),
        ({"step_s": 1, "rate_kbps": [["x"]], "delay_ms": [[1]]}, "rate_kbps"),
    ],
)
def test_a_damaged_course_is_said(course: dict[str, Any], said: str, folder: Path) -> None:
    data = json.loads((folder / "base.json").read_text())
    data["cases"]["steps"]["course"] = course
    (folder / "base.json").write_text(json.dumps(data))
    with pytest.raises(InputError, match=said):
        Baseline.load(folder / "base.json")


def test_a_picture_has_a_suffix_of_one(folder: Path, cli: Cli) -> None:
    done = cli("check", "base.json", "--picture", "worse.txt")
    assert done.code == 2
    assert "--picture worse.txt: found the suffix .txt; expected .pdf, .png, .svg" in done.err
    assert cli("check", "base.json", "--write", "--picture", "x.png").code == 2
