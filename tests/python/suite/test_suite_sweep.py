"""Sweeps over a suite: whose settings, means over which cases, what is run once only, and what is written."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from support import HALF_A_MEGABIT, NO_WIFI, Cli
from tidegate import InputError
from tidegate.comparison.sweeping import SweepResult
from tidegate.results.metrics import HEADLINE
from tidegate.show import sweeps
from tidegate.show.sweeps import ALL_CASES, CASE, Swept
from tidegate.suite import Plan, Suite, SuiteResult
from tidegate.suite.sweeping import SuiteSweep, SweepPlan

SUITE = (
    """
seeds = 2
[[cases]]
name = "one"
scenario = "rfc8867-5.1-variable-capacity"
set = { duration = "4s", "flows.call.stop" = "4s" }
[[cases]]
name = "three"
scenario = "rfc8867-5.4-competing-calls"
set = { duration = "4s", "flows.call.start_step" = "500ms", "flows.call.stop" = "4s" }
"""
    + NO_WIFI
    + HALF_A_MEGABIT
    + """[[rules]]
name = "queue"
says = "keeps the queue short"
metric = "queueing_delay_ms_p95"
at_most = 100
cases = ["three"]
source = "here"
"""
)
RATE = {"controller.rate": ["300kbps", "700kbps", "2Mbps"]}


def suite() -> Suite:
    return Suite.parse(SUITE, "mine.toml")


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[SuiteResult, SuiteSweep]:
    """Three rates of a constant sender: too slow, right, and too fast for three."""
    out = tmp_path_factory.mktemp("sweep") / "out"
    return SweepPlan.of(suite(), RATE, "fixed").run(out)


def test_every_combination_is_a_contender_in_every_case(done: tuple[SuiteResult, SuiteSweep]) -> None:
    result, made = done
    assert result.controllers == ("fixed:rate=300kbps", "fixed:rate=700kbps", "fixed:rate=2Mbps")
    assert made.keys == ["controller.rate", CASE]
    assert (len(made.rows), made.planned, made.failed, made.name) == (12, 12, [], "mine")
    assert {(row["settings"]["controller.rate"], row["settings"][CASE]) for row in made.rows} == {
        (rate, case) for rate in RATE["controller.rate"] for case in ("one", "three")
    }
    # the suite's rules have the same to say as in its scorecard
    passed = {rate: made.verdicts[rate, ALL_CASES] for rate in RATE["controller.rate"]}
    assert passed == {"300kbps": "0 of 2", "700kbps": "2 of 2", "2Mbps": "1 of 2"}
    assert made.verdicts["2Mbps", "three"] == result.cell("three", "fixed:rate=2Mbps").state == "fail"


def test_means_are_those_of_the_scorecard(done: tuple[SuiteResult, SuiteSweep]) -> None:
    result, made = done
    swept = Swept.of(made)
    first = swept.over_all[1]
    assert first.settings == {"controller.rate": "700kbps", CASE: ALL_CASES}
    who = "fixed:rate=700kbps"
    for name, of in (("receive_rate_bps", "mean"), ("one_way_delay_ms_p95", "worst")):
        by_case = [result.values(case, who, name, of) for case in ("one", "three")]
        assert len(by_case[0]) == 2
        by_seed = {}
        for seed in (1, 2):
            numbers = [values[seed] for values in by_case]
            by_seed[seed] = math.fsum(number for number in numbers if number is not None) / 2
        got = {row["seed"]: sweeps.value(row, name) for row in first.rows}
        assert got == pytest.approx(by_seed)
        alone = next(one for one in swept.combinations if one.settings == {"controller.rate": "700kbps", CASE: "three"})
        assert {row["seed"]: sweeps.value(row, name) for row in alone.rows} == by_case[1]
    assert "utilisation" not in swept.names, "no call's part of a link says much where three share it"


def test_the_picture_begins_with_all_cases_and_has_one_line(done: tuple[SuiteResult, SuiteSweep]) -> None:
    swept = Swept.of(done[1])
    assert list(swept.axes) == ["controller.rate"]
    assert [panel.title for panel in swept.panels] == [ALL_CASES, "one", "three"]
    assert [[*panel.lines] for panel in swept.panels] == [["fixed"]] * 3
    assert [len(panel.lines["fixed"]) for panel in swept.panels] == [3, 3, 3]
    several = SweepPlan.of(suite(), {"controller": ["fixed", "gcc"]})
    assert several.plan.controllers == ("fixed", "gcc")


def made_by_hand(numbers: dict[tuple[str, str, int], float | None]) -> SweepResult:
    """A sweep over a suite that was never run: rates by value, case and seed."""
    rows: list[dict[str, Any]] = []
    for (value, case, seed), rate in numbers.items():
        flow = {"flow": "subject", "kind": "media", "controller": "gcc", "receive_rate_bps": rate}
        flow["one_way_delay_ms_p95"] = 10.0
        settings = {"controller.beta": value, CASE: case}
        rows.append({"settings": settings, "seed": seed, "digest": "", "summary": {"flows": [flow], "links": []}})
    return SweepResult(["controller.beta", CASE], rows, [], 0, len(rows))


def test_all_means_are_over_the_same_cases() -> None:
    """A case in which one combination has no number, or no run, would make its mean one of other cases."""
    whole: dict[tuple[str, str, int], float | None] = {
        ("0.7", "a", 1): 1e6, ("0.7", "b", 1): 3e6, ("0.7", "c", 1): 9e6,
        ("0.8", "a", 1): 2e6, ("0.8", "b", 1): 4e6, ("0.8", "c", 1): None,
    }  # fmt: skip
    missing = {key: value for key, value in whole.items() if value is not None}
    for numbers in (whole, dict[tuple[str, str, int], float | None](missing)):
        over_all = Swept.of(made_by_hand(numbers)).over_all
        assert [one.mean("receive_rate_bps").mean for one in over_all] == [2e6, 3e6]
    assert set(HEADLINE) > {"receive_rate_bps"}


def test_what_was_run_is_not_run_again(done: tuple[SuiteResult, SuiteSweep], tmp_path: Path) -> None:
    folder = done[0].folder
    assert folder is not None
    again, made = SweepPlan.of(suite(), RATE, "fixed").run(folder)
    assert again.resumed == made.resumed == 12
    assert made.rows == done[1].rows
    # nor by the suite for the same controller, nor by a larger sweep
    assert Plan.of(suite(), ["fixed:rate=700kbps"]).kept(folder) == (4, 4)
    more = {"controller.rate": ["300kbps", "700kbps", "900kbps"]}
    assert SweepPlan.of(suite(), more, "fixed").plan.kept(folder) == (8, 12)
    assert SuiteSweep.of(SuiteResult.load(folder)).rows == made.rows
    plain = Plan.of(suite(), ["fixed:1Mbps"], cases=["one"]).run(tmp_path / "plain")
    with pytest.raises(InputError, match="does not hold the sweep of a suite"):
        SuiteSweep.of(plain)


def test_the_command_writes_pages_tables_and_a_figure(tmp_path: Path, cli: Cli) -> None:
    (tmp_path / "mine.toml").write_text(SUITE)
    argv = ["sweep", "--suite", "mine.toml", "--controller", "fixed", "--set", "controller.rate=300kbps,700kbps"]
    got = cli(*argv, "--out", "out", "--seeds", "1")
    assert got.code == 0, got.err
    lines = [line.split() for line in got.out.splitlines() if line[:1].isdigit()]
    assert [line[:4] for line in lines] == [["300kbps", "0", "of", "2"], ["700kbps", "2", "of", "2"]]
    assert "mine: means over 2 cases, 1 seed each" in got.out
    assert "1 case was not run: no Wi-Fi node" in got.err
    there = {path.name for path in (tmp_path / "out").iterdir()}
    assert there >= {
        "report.html",
        "sweep.png",
        "summary.md",
        "summary.csv",
        "index.html",
        "scorecard.md",
        "suite.json",
    }
    table = (tmp_path / "out" / "summary.md").read_text().splitlines()
    assert table[0].startswith("| controller.rate | case | passed | runs | receive rate")
    assert [line.split(" | ")[:3] for line in table[2:4]] == [
        ["| 300kbps", "all cases", "0 of 2"], ["| 700kbps", "all cases", "2 of 2"],
    ]  # fmt: skip
    assert len((tmp_path / "out" / "summary.csv").read_text().splitlines()) == 1 + 4

    data = json.loads(cli(*argv, "--out", "out", "--seeds", "1", "--json").out)
    assert data["resumed"] == 4
    assert [one["verdict"] for one in data["combinations"]] == ["0 of 2", "2 of 2", "fail", "pass", "fail", "pass"]

    page = tmp_path / "out" / "report.html"
    before = page.read_text()
    page.unlink()
    assert cli("report", "out").code == 0
    assert page.read_text() == before
    assert cli("report", "out", "--out", "figure.svg").code == 0
    assert cli("suite", "run", "mine.toml", "fixed:1Mbps", "--cases", "one", "--out", "plain").code == 0
    (tmp_path / "plain" / "index.html").unlink()
    assert cli("report", "plain").out == "written to plain/index.html\n"
    assert (tmp_path / "plain" / "index.html").is_file()


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        (["--suite", "smoke", "--set", "controller.beta=0.8"], "no controller is given; expected --controller with a name"),
        (["--suite", "smoke", "--controller", "gcc", "--set", "links.x.delay=1ms"],
         "--set links.x.delay: in a suite only settings of controllers are swept; expected controller or"),
        (["--suite", "smoke", "--controller", "gcc", "--set", "controller=gcc,nada"],
         "--controller gcc: --set controller gives the controllers already; leave one of them out"),
        (["--suite", "smoke", "--controller", "gcc", "--set", "controller.beta=0.8,0.8"], "the value 0.8 is given twice"),
        (["--suite", "smoke", "--controller", "gcc", "--set", "controller.beto=0.8"], "beto"),
        (["--suite", "smoke", "--controller", "gcc", "--set", "controller.beta=7"], "beta"),
        (["--suite", "smoke", "--controller", "gcx", "--set", "controller.beta=0.8"], "gcx"),
        (["--suite", "smok", "--controller", "gcc", "--set", "controller.beta=0.8"], "did you mean smoke"),
        (["home-broadband", "--suite", "smoke", "--controller", "gcc", "--set", "controller.beta=0.8"],
         "home-broadband: a scenario does not go with --suite"),
        (["home-broadband", "--controller", "gcc", "--set", "controller=gcc,nada"],
         "--controller gcc: --set controller gives the controllers already; leave one out"),
        (["home-broadband", "--set", "controller.beta=0.8,0.9", "--set", "flows.call.media.controller.beta=0.7"],
         "--set controller.beta: the key is given twice, the second time as flows.call.media.controller.beta"),
        (["home-broadband", "--controller", "gcc", "--set", "controller.beto=0.8,0.9"], "did you mean beta"),
        (["--suite", "smoke", "--link", "x", "--controller", "gcc", "--set", "controller.beta=0.8"],
         "--link: the option is for one scenario"),
        (["home-broadband", "--cases", "5.1", "--set", "duration=1s"], "--cases: the option is for suites"),
        (["--set", "duration=1s"], "no scenario is given; expected a scenario (see tidegate scenario list), or a suite"),
        (["--suite", "smoke", "--controller", "gcc", "--set", "controller.beta=0.8", "--cases", "9*"],
         "cases: found 9*"),
    ],
)  # fmt: skip
def test_wrong_use_is_a_sentence(argv: list[str], expected: str, tmp_path: Path, cli: Cli) -> None:
    got = cli("sweep", *argv, "--out", "out")
    assert (got.code, got.out) == (2, "")
    assert expected in got.err
    assert "Traceback" not in got.err
    assert not (tmp_path / "out").exists()
