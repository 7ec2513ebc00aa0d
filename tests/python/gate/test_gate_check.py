"""`tidegate check`: a baseline in a file, a suite compared with it, and the report."""

from __future__ import annotations

import csv
import json
import re
import shutil
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from support import NO_WIFI, ROOT, Cli
from tidegate.gate import baseline as baselines
from tidegate.gate.baseline import Baseline
from tidegate.gate.checking import check, write
from tidegate.runs import Run
from tidegate.suite import Suite, SuiteResult, numbers

SUITE = (
    """
description = "two short looks"
source = "here"

[[cases]]
name = "steps"
scenario = "rfc8867-5.1-variable-capacity"
set = { duration = "10s", "flows.call.stop" = "9s" }

[[cases]]
name = "tcp"
scenario = "rfc8867-5.6-long-tcp"
set = { duration = "12s", "flows.call.stop" = "12s" }

"""
    + NO_WIFI
)
MINE = """
from tidegate import Controller

class Mine(Controller):
    def on_limits(self, now_ns, limits):
        return {rate}

    def on_report(self, now_ns, report):
        return {rate}
"""
RULES = ["delay_p95 > +5% and > +10ms", "rate < -5%", "tcp rate < -20% in tcp"]


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a suite and a baseline of it."""
    folder = tmp_path_factory.mktemp("gate")
    (folder / "short.toml").write_text(SUITE)
    write(
        folder / "base.json", "fixed:600kbps", Suite.load(folder / "short.toml"), suite_name="short.toml", rules=RULES
    )
    return folder


@pytest.fixture
def folder(prepared: Path, tmp_path: Path, cli: Cli) -> Path:
    """A copy of it in the folder where the command line runs."""
    for file in prepared.iterdir():
        shutil.copy(file, tmp_path)
    return tmp_path


def test_a_baseline_is_small_and_readable_and_says_what_it_was_made_on(folder: Path) -> None:
    text = (folder / "base.json").read_text()
    data = json.loads(text)
    assert (data["suite"], data["controller"], data["seeds"]) == ("short.toml", "fixed:600kbps", 80)
    assert data["rules"] == RULES
    assert list(data["cases"]) == ["steps", "tcp"]
    case = data["cases"]["tcp"]
    assert re.fullmatch(r"[0-9a-f]{16}", case["network"])
    assert re.fullmatch(r"[0-9a-f]{16}", case["engine"])
    assert len(case["values"]["tcp receive_rate_bps"]) == 80
    assert case["values"]["worst receive_rate_bps"][0] == pytest.approx(600e3, rel=0.1)
    assert "tcp receive_rate_bps" not in data["cases"]["steps"]["values"]
    # a line a number, so that a change shows in review
    assert sum(line.strip().startswith('"worst receive_rate_bps"') for line in text.splitlines()) == 2
    assert len(text) < 20_000
    again = Baseline.load(folder / "base.json")
    again.save(folder / "again.json")
    assert (folder / "again.json").read_text() == text


def test_the_same_again_passes_with_five_seeds(folder: Path, cli: Cli) -> None:
    done = cli("check", "base.json", "--all")
    assert done.code == 0, done.err
    assert "5 questions in 2 cases, 10 runs" in done.out
    assert "nothing is worse" in done.out
    assert done.out.count("within") == 5
    assert "wifi was not run: no Wi-Fi node" in done.err


def test_what_became_worse_and_better_is_told_with_case_and_amount(folder: Path, cli: Cli) -> None:
    done = cli("check", "base.json", "fixed:500kbps", "--junit", "check.xml", "--github", "--json")
    assert done.code == 1
    assert "2 of 5 worse" in done.err
    answers = {
        (answer["case"], f"{answer['of']} {answer['metric']}"): answer for answer in json.loads(done.out)["answers"]
    }
    slow = answers["steps", "worst receive_rate_bps"]
    assert slow["state"] == "worse"
    assert slow["now"] / slow["before"] == pytest.approx(5 / 6, rel=0.02)
    # it is worse by less than is proved, and by more than the limit
    assert 0.05 * slow["before"] < slow["worse_by_at_least"] <= slow["before"] - slow["now"]
    assert answers["tcp", "tcp receive_rate_bps"]["state"] == "fine"
    # what is drawn over time is the case in which the sure part of the change is the most limits
    worst = max(answers.values(), key=lambda answer: (answer["worse_by_at_least"] or 0) / (0.05 * answer["before"]))
    assert worst["state"] == "worse"
    assert json.loads(done.out)["change"]["case"] == worst["case"]
    root = ET.parse(folder / "check.xml").getroot()
    (group,) = root
    assert (group.get("tests"), group.get("failures"), group.get("errors")) == ("5", "2", "0")
    failed = [test for test in group if test.find("failure") is not None]
    assert {(test.get("classname"), test.get("name")) for test in failed} == {
        ("short.steps", "rate < -5%"),
        ("short.tcp", "rate < -5%"),
    }
    errors = [line for line in done.err.splitlines() if line.startswith("::error ")]
    assert len(errors) == 2
    assert errors[0].startswith("::error title=steps became worse::receive rate: ")
    assert "-16." in errors[0]
    assert "%25" in errors[0]
    assert "%2" not in errors[0].replace("%25", "")


def test_the_table_names_case_number_change_bound_and_limit(folder: Path, cli: Cli) -> None:
    done = cli("check", "base.json", "fixed:500kbps", "--cases", "steps")
    (line,) = [line for line in done.out.splitlines() if line.startswith("worse")]
    assert re.match(r"worse +steps +receive rate +0\.\d\d +0\.\d\d +Mbit/s +-0\.\d\d \(-1\d\.\d%\) +-0\.\d\d \(", line)
    assert line.split()[-2:] == ["-5%", "20"]
    better = cli("check", "base.json", "fixed:700kbps", "--cases", "steps", "--fail-if", "change(rate) < -5%")
    assert better.code == 0
    assert re.search(r"^better +steps +receive rate", better.out, re.MULTILINE)


def test_a_check_is_a_document(folder: Path) -> None:
    baseline, suite = Baseline.load(folder / "base.json"), Suite.load(folder / "short.toml")
    outcome = check(baseline, suite, "fixed:500kbps", cases=["steps"])
    assert outcome.summary == "1 of 2 worse"
    short, long = outcome.to_markdown(), outcome.to_markdown(detail=True)
    assert "| **worse** | steps | receive rate |" in short
    assert ("within" in short, "within" in long) == (False, True)
    html = outcome._repr_html_()
    assert '<span class="bad">worse</span>' in html
    assert "fixed:500kbps against the baseline of fixed:600kbps: short" in html
    states = [case.state for case in outcome.cases()]
    assert sorted(states) == ["failure", "passed"]


def test_what_more_seeds_cannot_decide_is_undecided_and_fails_only_if_strict(folder: Path, cli: Cli) -> None:
    assert cli("check", "gcc.json", "gcc", "--suite", "short.toml", "--cases", "tcp", "--write").code == 0
    # competing flows are in it without a request, so that a rule about them needs no other baseline
    series = json.loads((folder / "gcc.json").read_text())["cases"]["tcp"]["values"]
    assert "tcp receive_rate_bps" in series
    # other runs with the same mean are neither surely worse nor surely no worse than exactly this mean
    arguments = ["check", "gcc.json", "gcc:beta=0.850001", "--fail-if", "rate < -0bps"]
    done = cli(*arguments, "--junit", "check.xml", "--github")
    assert done.code == 0, done.err
    assert "1 undecided" in done.out
    assert "1 questions in 1 cases, 80 runs" in done.out
    assert "::warning title=tcp is undecided::" in done.out
    assert ET.parse(folder / "check.xml").getroot()[0].get("skipped") == "1"
    strict = cli(*arguments, "--junit", "check.xml", "--strict")
    assert strict.code == 1
    assert ET.parse(folder / "check.xml").getroot()[0].get("failures") == "1"


def test_a_controller_of_the_repository_is_tried_as_its_code_is_now(folder: Path, cli: Cli) -> None:
    mine = folder / "mine.py"
    mine.write_text(MINE.format(rate=600_000))
    options = ["--cases", "steps", "--seeds", "12", "--jobs", "1"]
    assert cli("check", "own.json", "python:mine.py:Mine", "--suite", "short.toml", "--write", *options).code == 0
    assert str(folder) not in (folder / "own.json").read_text()
    assert cli("check", "own.json", *options).code == 0
    mine.write_text(MINE.format(rate=400_000))
    worse = cli("check", "own.json", *options)
    assert worse.code == 1
    assert re.search(r"^worse +steps +utilisation", worse.out, re.MULTILINE)
    mine.write_text(MINE.format(rate="1 / 0"))
    broken = cli("check", "own.json", "--junit", "check.xml", *options)
    assert broken.code == 1
    assert "1 cases failed\nsteps: seed 1: " in broken.err
    assert "ZeroDivisionError" in broken.err
    assert ET.parse(folder / "check.xml").getroot()[0].get("errors") == "1"


def test_a_controller_that_sends_nothing_is_worse_although_it_has_no_delay(folder: Path, cli: Cli) -> None:
    done = cli("check", "base.json", "fixed:1bps", "--fail-if", "frame_delay_p95 > +5%", "--cases", "steps", "--json")
    (answer,) = json.loads(done.out)["answers"]
    assert (done.code, answer["state"]) == (1, "worse")


def test_an_engine_that_gives_other_numbers_is_refused(folder: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(baselines, "REFERENCE", "fixed:500001bps")
    done = cli("check", "base.json")
    assert done.code == 2
    assert "the baseline was made with another engine: fixed:500001bps gives other numbers in steps" in done.err
    assert "make the baseline again: tidegate check base.json fixed:600kbps --suite short.toml --write" in done.err


def test_a_measure_that_gives_another_number_is_refused(
    folder: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = numbers.number

    def changed(row: numbers.Row, name: str, scope: str | None = None) -> float | None:
        value = original(row, name, scope)
        return value * 1.001 if value is not None and name == "utilisation" else value

    monkeypatch.setattr(numbers, "number", changed)
    done = cli("check", "base.json")
    assert (done.code, "the baseline was made with another engine" in done.err) == (2, True), done.err


def test_words_spellings_and_further_numbers_do_not_make_another_network_or_engine(
    folder: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite = folder / "short.toml"
    reworded = SUITE.replace('duration = "10s"', 'duration = "10000ms", description = "ten seconds", source = "a book"')
    suite.write_text(
        reworded.replace('"flows.call.stop" = "12s"', '"flows.call.stop" = "0.2min", "links.bottleneck.loss" = 0')
    )
    original = Run.__init__

    def with_further_number(self: Run, about: dict[str, Any], tables: Any) -> None:
        original(self, about, tables)
        for flow in self.summary["flows"]:
            flow["a_number_of_tomorrow"] = 1.0

    monkeypatch.setattr(Run, "__init__", with_further_number)
    done = cli("check", "base.json")
    assert done.code == 0, done.err


def test_a_baseline_of_before_today_still_holds(cli: Cli, tmp_path: Path) -> None:
    """A baseline of an earlier state; a commit that changes results makes it again, and says so.

    It was made anew when calls began to be repaired, and shows what can be decoded.
    """
    for file in (ROOT / "tests" / "data" / "gate").iterdir():
        shutil.copy(file, tmp_path)
    done = cli("check", "base.json")
    assert done.code == 0, done.err
    assert "12 questions in 3 cases, 15 runs\nnothing is worse" in done.out.replace("\n\n", "\n")


def test_another_network_suite_or_case_is_refused(folder: Path, cli: Cli) -> None:
    suite = folder / "short.toml"
    for old, new, why in [
        ('duration = "10s"', 'duration = "11s"', "steps: the network differs from that of the baseline"),
        ('name = "steps"', 'name = "stairs"', "stairs is a case of short that is not in the baseline"),
        ('name = "tcp"', 'name = "tcp"\nnot_run = "x"\n[[cases]]\nname = "tcp2"', "tcp2 is a case of short"),
    ]:
        suite.write_text(SUITE.replace(old, new))
        done = cli("check", "base.json")
        assert (done.code, why in done.err) == (2, True), done.err
        assert "make the baseline again: tidegate check base.json" in done.err
    suite.write_text(SUITE[: SUITE.index('[[cases]]\nname = "tcp"')])
    assert "tcp is a case of the baseline that is not in short" in cli("check", "base.json").err
    assert "the baseline is of short.toml" in cli("check", "base.json", "--suite", "smoke").err


@pytest.mark.parametrize(
    ("argv", "why"),
    [
        (["none.json"], "none.json: there is no such file; tidegate check none.json CONTROLLER"),
        (["base.json", "gccc"], "gccc: there is no such controller; did you mean gcc"),
        (["base.json", "--cases", "5.1"], "found 5.1, which matches no case of short"),
        (["base.json", "--fail-if", "rate < -5% in 5.6"], "the rule matches no case; available: steps, tcp"),
        (["base.json", "--fail-if", "jitter_max > +5%"], "the baseline has no worst jitter_ms_max in steps, tcp; make"),
        (["base.json", "--fail-if", "rate < -5%", "--fail-if", "rate  < -5%"], "'rate < -5%' is given twice"),
        (
            ["base.json", "--fail-if", "loss > +2pp", "--fail-if", "change(loss) > 2pp"],
            "'change(loss) > 2pp' is given twice",
        ),
        (["base.json", "--seeds", "1"], "found 1, too few to show that anything is worse: 5 questions"),
        (["base.json", "--seeds", "5"], "expected at least 10"),
        (
            ["new.json", "--write", "--suite", "short.toml"],
            "a controller is missing; expected tidegate check new.json CONTROLLER",
        ),
        (["new.json", "gcc", "--write"], "--suite SUITE is missing"),
        (["new.json", "gcc", "--write", "--suite", "short.toml", "--seeds", "1"], "found 1, too few to show"),
        (["new.json", "gcc", "--write", "--suite", "short.toml", "--strict"], "--strict: the option is for checks"),
        (
            ["short.toml", "gcc", "--write", "--suite", "short.toml"],
            "the file exists already and is not a baseline of tidegate",
        ),
    ],
)
def test_wrong_usage_says_what_is_right(folder: Path, cli: Cli, argv: list[str], why: str) -> None:
    done = cli("check", *argv)
    assert done.code in (1, 2) if "exists already" in why else done.code == 2
    assert why in done.err
    assert not (folder / "new.json").exists()


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[: len(text) // 2],
        lambda text: "[]",
        lambda text: "",
        lambda text: text.replace('"format": 3', '"format": 4'),
        lambda text: text.replace('"seeds": 80', '"seeds": 79'),
        lambda text: text.replace('"engine"', '"motor"'),
        lambda text: re.sub(r'"cases": \{.*', '"cases": {}}', text, flags=re.DOTALL),
        lambda text: text.replace("null", "NaN").replace("0.0,", "Infinity,"),
        lambda text: re.sub(r"\[(\d)", r'["x", \1', text),
        # the square of such a number is no float
        lambda text: re.sub(r"\[[\d.]+", "[1e200", text),
    ],
)
def test_a_damaged_baseline_is_refused_in_one_line(folder: Path, cli: Cli, damage: object) -> None:
    file = folder / "base.json"
    assert callable(damage)
    file.write_text(damage(file.read_text()))
    done = cli("check", "base.json")
    assert done.code == 2
    assert "is not a baseline" in done.err
    assert done.err.count("\n") == 1


def test_runs_in_a_folder_are_not_done_twice(folder: Path) -> None:
    baseline, suite = Baseline.load(folder / "base.json"), Suite.load(folder / "short.toml")
    check(baseline, suite, out=folder / "runs")
    times = {file: file.stat().st_mtime_ns for file in (folder / "runs" / "results").iterdir()}
    assert len(times) == 10
    check(baseline, suite, out=folder / "runs")
    assert {file: file.stat().st_mtime_ns for file in (folder / "runs" / "results").iterdir()} == times


def test_the_folder_has_every_case_with_the_seeds_that_it_took(folder: Path, cli: Cli, tmp_path: Path) -> None:
    """`steps` is decided at the first look; `tcp` takes part up to the last one."""
    rules = ["--fail-if", "rate < -5% in steps", "--fail-if", "loss > +0.2pp in tcp"]
    done = cli("check", "base.json", "fixed:570kbps", *rules, "--out", "chk", "--junit", "gate.xml", "--all")
    assert done.code in {0, 1}, done.err
    result = SuiteResult.load(tmp_path / "chk")
    counts = {
        case.name: len(result.rows[case.name, "fixed:570kbps"]) for case in result.suite.cases if not case.not_run
    }
    assert set(counts) == {"steps", "tcp"}
    assert len(set(counts.values())) == 2, "one case took more seeds than the other"
    assert result.seeds_shown == f"{min(counts.values())} to {max(counts.values())} seeds"
    page, card = ((tmp_path / "chk" / name).read_text() for name in ("index.html", "scorecard.md"))
    for text in (page, card):
        assert result.seeds_shown in text
        assert "steps" in text
        assert "tcp" in text
    with (tmp_path / "chk" / "scores.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {case: len({row["seed"] for row in rows if row["case"] == case}) for case in counts} == counts
    suites = ET.parse(tmp_path / "chk" / "junit.xml").getroot()
    assert {str(test.get("name")).partition(" ")[0] for test in suites.iter("testcase")} >= {"steps", "tcp"}
    # the same again runs nothing, and leaves the same
    again = cli("check", "base.json", "fixed:570kbps", *rules, "--out", "chk", "--all")
    assert again.out == done.out
    assert (tmp_path / "chk" / "scorecard.md").read_text() == card


FAILS = """
from pathlib import Path
from tidegate import Controller, Decision

class Mine(Controller):
    def on_limits(self, now_ns, limits):
        if limits.start_bps == 200e3:
            with Path(__file__).with_name("tries").open("a") as file:
                file.write("x")
            raise ValueError("no")
        return Decision(570e3, pacing_bps=570e3)

    def on_report(self, now_ns, report):
        return Decision(570e3, pacing_bps=570e3)
"""


def test_a_run_that_failed_is_not_tried_at_every_look(folder: Path, cli: Cli, tmp_path: Path) -> None:
    """`steps` fails at once, and `tcp` goes on for several looks."""
    suite = SUITE.replace(
        '"flows.call.stop" = "9s"', '"flows.call.stop" = "9s", "flows.call.media.start_rate" = "200kbps"'
    )
    (tmp_path / "two.toml").write_text(suite)
    rules = ["rate < -5%"]
    write(tmp_path / "two.json", "fixed:600kbps", Suite.load(tmp_path / "two.toml"), suite_name="two.toml", rules=rules)
    (tmp_path / "mine.py").write_text(FAILS)
    done = cli("check", "two.json", "python:mine.py:Mine", "-j", "1", "--out", "chk")
    assert done.code == 1, done.err
    result = SuiteResult.load(tmp_path / "chk")
    assert set(result.troubles) == {("steps", "python:mine.py:Mine")}
    assert len(result.rows["tcp", "python:mine.py:Mine"]) > 5
    assert len((tmp_path / "tries").read_text()) == 5, "five seeds, once each"
