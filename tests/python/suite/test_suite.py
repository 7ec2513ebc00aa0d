"""Suites: their files, their runs, what is kept of them, and their verdicts."""

from __future__ import annotations

import copy
import csv
import io
import itertools
import json
import math
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from support import HALF_A_MEGABIT, NO_WIFI, ROOT, Cli
from tidegate.errors import InputError
from tidegate.results.stats import Interval
from tidegate.scenario import toml
from tidegate.suite import Plan, Suite, SuiteResult, numbers, windows
from tidegate.suite.model import WindowsTable
from tidegate.suite.scores import scores
from tidegate.units import Rate

CASES = (
    """
description = "two short looks"
source = "here"
seeds = 2
baseline = "fixed:1Mbps"

[[cases]]
name = "steps"
scenario = "rfc8867-5.1-variable-capacity"
set = { duration = "10s", "flows.call.stop" = "9s" }
vary = { "links.bottleneck.delay" = ["50ms", "100ms"] }

[[cases]]
name = "three"
scenario = "rfc8867-5.4-competing-calls"
set = { duration = "8s", "flows.call.start_step" = "1s", "flows.call.stop" = "8s" }

"""
    + NO_WIFI
)
RULES = (
    HALF_A_MEGABIT
    + """
[[rules]]
name = "queue"
says = "keeps the queue short"
metric = "queueing_delay_ms_p95"
at_most = 100
cases = ["steps*"]
source = "here"
"""
)


def suite(text: str = CASES + RULES, path: str = "mine.toml") -> Suite:
    """A suite of short cases."""
    return Suite.parse(text, path)


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> SuiteResult:
    """Four senders: one that fits, one that is too slow, one that floods, one that adapts."""
    controllers = ["fixed:700kbps", "fixed:30kbps", "fixed:10Mbps", "gcc"]
    return Plan.of(suite(), controllers).run(tmp_path_factory.mktemp("suite") / "out")


def test_every_combination_and_every_case_is_there() -> None:
    assert [case.name for case in suite().cases] == ["steps,delay=50ms", "steps,delay=100ms", "three", "wifi"]
    assert [int(case.scenario.links[0].delay) for case in suite().cases[:2] if case.scenario] == [
        50_000_000,
        100_000_000,
    ]


def test_the_controller_is_in_every_call_and_nowhere_else() -> None:
    case = Suite.parse('[[cases]]\nname = "tcp"\nscenario = "rfc8867-5.6-long-tcp"\n').cases[0]
    made = case.with_controller("nada")
    assert [flow.media.controller if flow.media else None for flow in made.flows] == ["nada", None]
    assert case.contending(["call", "tcp"]) == ["call"]
    several = suite().cases[2]
    assert several.contending(["call-1", "call-2", "call-10", "caller"]) == ["call-1", "call-2", "call-10"]


def test_of_flows_that_come_and_go_those_that_begin_in_a_time_are_judged(tmp_path: Path) -> None:
    text = """
        seeds = 1
        [[cases]]
        name = "three"
        scenario = "rfc8867-5.4-competing-calls"
        set = { duration = "8s", "flows.call.start_step" = "2s", "flows.call.stop" = "8s" }
        begin_between = ["2s", "4s"]
        [[rules]]
        name = "rate"
        says = "carries something"
        metric = "receive_rate_bps"
        at_least = 1
        source = "here"
    """
    file = tmp_path / "one.toml"
    file.write_text(text)
    suite = Suite.load(file)
    (case,) = suite.cases
    rows = [{"flow": f"call-{number + 1}", "start_s": 2.0 * number} for number in range(3)]
    assert case.judged(rows) == ["call-2"]
    assert type(case).of_data(case.to_data()).judged(rows) == ["call-2"]
    result = Plan.of(suite, ["fixed:1Mbps"]).run(tmp_path / "out")
    ((_, row),) = result.rows["three", "fixed:1Mbps"].items()
    assert row["contenders"] == ["call-2"]
    assert [flow["flow"] for flow in row["flows"]] == ["call-2"]
    # who is judged is part of what a run's numbers depend on
    other = Suite.parse(text.replace('["2s", "4s"]', '["0s", "4s"]'), file)
    assert Plan.of(other, ["fixed:1Mbps"]).points[0].key != Plan.of(suite, ["fixed:1Mbps"]).points[0].key
    for wrong in ('["4s", "2s"]', '["2s", "9s"]'):
        with pytest.raises(InputError, match="begin_between: found"):
            Suite.parse(text.replace('["2s", "4s"]', wrong), file)


def test_verdicts_go_by_the_numbers(result: SuiteResult) -> None:
    assert result.cell("steps,delay=50ms", "fixed:700kbps").state == "pass"
    slow = result.cell("steps,delay=50ms", "fixed:30kbps")
    assert (slow.state, [one.rule.name for one in slow.broken]) == ("fail", ["rate"])
    flood = result.cell("steps,delay=100ms", "fixed:10Mbps")
    assert (flood.state, [one.rule.name for one in flood.broken]) == ("fail", ["queue"])
    assert flood.broken[0].text.endswith("ms, at most 100 ms")
    assert result.cell("wifi", "gcc").why == "no Wi-Fi node"
    # of several contenders it is the worst that counts
    three = result.cell("three", "fixed:700kbps").checks[0].value.mean
    rates = [
        min(flow["receive_rate_bps"] for flow in row["flows"]) for row in result.rows["three", "fixed:700kbps"].values()
    ]
    assert three == pytest.approx(sum(rates) / len(rates))


def test_who_does_not_send_has_no_rank_and_no_delay(result: SuiteResult) -> None:
    by_name = {score.controller: score for score in scores(result)}
    assert by_name["fixed:30kbps"].rank is None
    assert by_name["fixed:30kbps"].out.startswith("share received 3.")
    text = (result_folder(result) / "scorecard.md").read_text(encoding="utf-8")
    line = next(line for line in text.splitlines() if "| fixed:30kbps | 0 of 3" in line)
    assert line.count(" - |") == len(["delay", "loss", "frozen", "power"])


def test_a_rank_that_says_nothing_is_none(result: SuiteResult) -> None:
    ranking = scores(result)
    assert {score.controller for score in ranking if score.passed == 3} == {"fixed:700kbps", "gcc"}
    assert ranking[2].passed < ranking[1].passed == 3
    assert {score.rank for score in ranking} == {None}
    # each of these met some rules, and every rule is counted in each of its cases
    assert [score.rules for score in ranking] == [5] * len(ranking)
    assert {score.controller: score.met for score in ranking} == {
        controller: sum(check.passed for cell in result.cells if cell.controller == controller for check in cell.checks)
        for controller in result.controllers
    }
    text = (result_folder(result) / "scorecard.md").read_text(encoding="utf-8")
    leaders = " and ".join(score.controller for score in ranking[:2])
    assert f"**{leaders}** pass most cases: 3 of 3 cases. By power they cannot be told apart." in text
    assert "rank by power" not in text


def test_those_that_pass_most_are_ranked_if_power_tells_them_apart(tmp_path: Path) -> None:
    rule = '[[rules]]\nname = "r"\nsays = "s"\nmetric = "receive_rate_bps"\nof = "mean"\nat_least = {}\nsource = "h"\n'
    text = CASES.replace("seeds = 2", "seeds = 3") + rule.format(500_000)
    controllers = ["fixed:600kbps", "fixed:800kbps", "fixed:801kbps", "fixed:100kbps"]
    result = Plan.of(suite(text), controllers, cases=["steps*"]).run(tmp_path / "out", baseline="fixed:800kbps")
    ranks = {score.controller: score.rank for score in scores(result)}
    powers = {name: result.paired("power", name, "fixed:100kbps").mean for name in ranks}
    assert ranks["fixed:100kbps"] is None
    best = max(("fixed:600kbps", "fixed:800kbps", "fixed:801kbps"), key=powers.__getitem__)
    assert ranks[best] == 1
    assert len({rank for rank in ranks.values() if rank is not None}) > 1
    # the same sender twice: nothing tells them apart
    same = Plan.of(suite(text), ["gcc:beta=0.85", "gcc"], cases=["steps*"]).run(tmp_path / "same")
    assert {score.rank for score in scores(same)} == {None}
    said = (tmp_path / "same" / "scorecard.md").read_text(encoding="utf-8")
    assert "pass most cases: 2 of 2 cases. By power they cannot be told apart." in said


def test_means_over_cases_have_intervals_over_seeds(result: SuiteResult) -> None:
    score = next(score for score in scores(result) if score.controller == "gcc")
    cases = [case.name for case in result.suite.cases if not case.not_run]
    by_seed = [
        math.fsum(result.values(case, "gcc", "receive_rate_bps", "mean")[seed] or 0.0 for case in cases) / len(cases)
        for seed in result.seeds
    ]
    assert score.means["receive_rate_bps"].mean == pytest.approx(Interval.of(by_seed).mean)
    assert score.means["receive_rate_bps"].half == pytest.approx(Interval.of(by_seed).half)
    text = (result_folder(result) / "scorecard.md").read_text(encoding="utf-8")
    shown = numbers.metric_of("receive_rate_bps").show_interval(Interval.of(by_seed))
    assert f"| {shown} |" in next(line for line in text.splitlines() if line.startswith("| gcc | "))
    # so has the number that decides a cell
    check = result.cell("three", "fixed:10Mbps").deciding
    assert check is not None
    assert f"{check.rule.name} {check.shown.partition(' ')[0]} ± {check.interval}" in text


def result_folder(result: SuiteResult) -> Path:
    """Where a result was written."""
    assert result.folder is not None
    return result.folder


def test_differences_are_paired(result: SuiteResult) -> None:
    other = result.paired("receive_rate_bps", "fixed:10Mbps", "gcc")
    one = [result.values(case.name, "fixed:10Mbps", "receive_rate_bps") for case in result.suite.cases[:3]]
    two = [result.values(case.name, "gcc", "receive_rate_bps") for case in result.suite.cases[:3]]
    by_seed = [
        sum((a[seed] or 0) - (b[seed] or 0) for a, b in zip(one, two, strict=True)) / len(one) for seed in (1, 2)
    ]
    assert other.mean == pytest.approx(sum(by_seed) / 2)
    assert result.paired("receive_rate_bps", "gcc", "gcc").mean == 0


def test_what_is_written_can_be_read_again(result: SuiteResult) -> None:
    again = SuiteResult.load(result_folder(result))
    assert [(cell.case, cell.controller, cell.state) for cell in again.cells] == [
        (cell.case, cell.controller, cell.state) for cell in result.cells
    ]
    rows = list(csv.DictReader(io.StringIO((result_folder(result) / "scores.csv").read_text(encoding="utf-8"))))
    calls = {row["flow"] for row in rows if row["case"] == "three" and row["contender"] == "True"}
    assert calls == {"call-1", "call-2", "call-3"}
    root = ET.parse(result_folder(result) / "junit.xml").getroot()
    counts = {one.attrib["name"]: (one.attrib["failures"], one.attrib["skipped"]) for one in root}
    assert counts["fixed:30kbps"] == ("3", "1")
    assert counts["fixed:700kbps"][1] == "1"
    for file in (result_folder(result) / "results").iterdir():
        assert file.stat().st_size < 1_000_000


def test_a_second_run_does_only_what_changed(tmp_path: Path) -> None:
    mine = tmp_path / "mine.py"
    text = (
        "from tidegate import Controller\n\n\n"
        "class Mine(Controller):\n"
        "    def on_report(self, now_ns, report):\n"
        "        return {rate}\n"
    )
    mine.write_text(text.format(rate=300_000))
    labels = ["fixed:1Mbps", f"python:{mine}:Mine"]
    small = suite(CASES)
    first = Plan.of(small, labels, seeds=1, cases=["steps*"]).run(tmp_path / "out")
    assert first.resumed == 0
    assert Plan.of(small, labels, seeds=1, cases=["steps*"]).run(tmp_path / "out").resumed == 4
    # another rule judges the same runs
    assert Plan.of(suite(), labels, seeds=1, cases=["steps*"]).run(tmp_path / "out").resumed == 4
    mine.write_text(text.format(rate=600_000))
    changed = Plan.of(small, labels, seeds=2, cases=["steps*"]).run(tmp_path / "out")
    assert changed.resumed == 2
    rates = changed.values("steps,delay=50ms", labels[1], "receive_rate_bps")
    assert all(value is not None and 400_000 < value < 700_000 for value in rates.values())


def test_a_run_that_fails_is_a_cell_that_says_why(tmp_path: Path) -> None:
    mine = tmp_path / "mine.py"
    mine.write_text(
        "from tidegate import Controller\n\n\n"
        "class Mine(Controller):\n"
        "    def on_report(self, now_ns, report):\n"
        "        raise ValueError('nothing doing')\n"
    )
    label = f"python:{mine}:Mine"
    result = Plan.of(suite(), ["gcc", label], seeds=1, cases=["steps*"]).run(tmp_path / "out")
    cell = result.cell("steps,delay=50ms", label)
    assert cell.state == "error"
    assert "nothing doing" in cell.why
    assert result.cell("steps,delay=50ms", "gcc").state in {"pass", "fail"}
    again = SuiteResult.load(tmp_path / "out")
    assert again.cell("steps,delay=50ms", label).why == cell.why


def test_who_cannot_take_part_in_a_case_is_not_run_in_it(tmp_path: Path, cli: Cli) -> None:
    plan = Plan.of("rmcat", ["tfrc", "gcc"], seeds=1, cases=["6.1", "5.4"])
    for result in (plan.run(tmp_path), SuiteResult.load(tmp_path), plan.run(tmp_path)):
        cell = result.cell("6.1", "tfrc")
        assert cell.state == "not run"
        assert "a controller that can be coupled" in cell.why
        assert result.cell("5.4", "tfrc").state == "fail"
        assert result.cell("6.1", "gcc").state == "pass"
    short = "needs a controller that can be coupled, such as gcc"
    assert cell.brief == short
    assert f" not run</b></span><span>{short}</span>" in (tmp_path / "index.html").read_text()
    assert f" not run** {short} |" in (tmp_path / "scorecard.md").read_text()
    again = cli(
        "suite",
        "run",
        "rmcat",
        "tfrc",
        "gcc",
        "--cases",
        "6.1",
        "--cases",
        "5.4",
        "--seeds",
        "1",
        "--out",
        str(tmp_path),
    )
    assert "3 of 3 runs existed already" in again.err
    lone = ["suite", "run", "rmcat", "tfrc", "--cases", "6.1", "--seeds", "1", "--out", str(tmp_path / "lone")]
    refused = cli(*lone)
    assert refused.code == 2
    assert "tfrc fits no case: " in refused.err


def test_a_killed_suite_keeps_what_is_done(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(CASES)
    command = [sys.executable, "-m", "tidegate", "suite", "run", str(file), "gcc", "nada", "--seeds", "16", "-j", "1"]
    with subprocess.Popen([*command, "--out", str(tmp_path / "out")], stderr=subprocess.DEVNULL) as process:
        results = tmp_path / "out" / "results"
        end = time.monotonic() + 60
        while time.monotonic() < end and (not results.is_dir() or len(list(results.glob("*.json"))) < 5):
            time.sleep(0.02)
        os.kill(process.pid, signal.SIGKILL)
    kept = len(list((tmp_path / "out" / "results").glob("[0-9a-f]*.json")))
    assert kept >= 5
    stopped = SuiteResult.load(tmp_path / "out")
    assert any(cell.state == "error" and "stopped before" in cell.why for cell in stopped.cells)
    result = Plan.of(Suite.load(file), ["gcc", "nada"], seeds=16).run(tmp_path / "out")
    assert result.resumed >= kept - 1
    assert not any(cell.state == "error" for cell in result.cells)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[[cases]]\nname = "a"\n', "mine.toml:1: cases.a: the case has no scenario"),
        ('[[cases]]\nname = "a"\nscenario = "rfc8867-5.1"\n', "mine.toml:1: cases.a: rfc8867-5.1: there is no such scenario"),
        ('[[cases]]\nname = "a"\nscenarios = "x"\n', "mine.toml:3: cases.a.scenarios: there is no such key"),
        (CASES.replace('delay" =', 'dely" ='), "links.bottleneck.dely"),
        (CASES.replace('"wifi"', '"three"'), "three is given twice"),
        (CASES + RULES.replace("receive_rate_bps", "receive_rate"), "expected a metric; did you mean receive_rate_bps?"),
        (CASES + RULES.replace('["steps*"]', '["step"]'), "rules.queue.cases: found step, which matches no case"),
        (CASES + RULES.replace("at_least = 500_000\n", ""), "rules.rate.at_least: is missing, and so is at_most"),
        (CASES + RULES.replace("at_least = 500_000", 'at_least = 5\nof = "best"'), "rules.rate.of: found best"),
        (CASES.replace('"wifi"\n', '"wifi"\ncontenders = ["x"]\nscenario = "two-calls"\n').replace("not_run", "title"),
         "contenders: found x"),
        ("seeds = 0\n" + CASES.replace("seeds = 2\n", ""), "mine.toml:1: seeds: found 0"),
        ("cases = 3", "cases: found 3; expected a list"),
    ],
)  # fmt: skip
def test_what_is_wrong_in_a_file_is_said_with_its_place(text: str, said: str) -> None:
    with pytest.raises(InputError) as caught:
        suite(text)
    assert said in str(caught.value)


def test_wrong_use_is_said(tmp_path: Path) -> None:
    for controllers, kwargs, said in (
        (["gccc"], {}, "did you mean gcc?"),
        (["gcc", "gcc"], {}, "listed twice"),
        (["gcc"], {"cases": ["5.9*"]}, "found 5.9*, which matches no case of mine"),
        (["gcc"], {"cases": ["wifi"]}, "no case can be run: no Wi-Fi node"),
    ):
        with pytest.raises(InputError) as caught:
            Plan.of(suite(), controllers, **kwargs)  # type: ignore[arg-type]
        assert said in str(caught.value)
    with pytest.raises(InputError, match="baseline: found nada; expected one of gcc"):
        Plan.of(suite(), ["gcc"], seeds=1).run(tmp_path / "x", baseline="nada")
    with pytest.raises(InputError, match=r"smok is not a suite; did you mean smoke\?"):
        Suite.load("smok")
    with pytest.raises(InputError, match="there is no such file"):
        SuiteResult.load(tmp_path / "nothing")
    (tmp_path / "suite.json").write_text(json.dumps({"suite": 3}))
    with pytest.raises(InputError, match="the file is damaged"):
        SuiteResult.load(tmp_path)


def test_windows_of_recordings_are_spread_and_never_overlap(tmp_path: Path) -> None:
    for source, files in (("a", 3), ("b", 1)):
        (tmp_path / source).mkdir()
        for number in range(files):
            # a minute, then a minute that is too slow for a call, then a minute
            rates = [2.0] * 60 + [0.01] * 60 + [4.0] * 60
            text = "".join(f"{at} {rate + number}\n" for at, rate in enumerate(rates))
            (tmp_path / source / f"net{number}").write_text(text)
        (tmp_path / source / "README.md").write_text("not a network\n")
    (tmp_path / "b" / "short").write_text("0 1\n1 1\n2 1\n")
    table = WindowsTable.model_validate({"count": 9, "length": "20s", "between": ["1500kbps", "9Mbps"]})
    found = windows.spread(tmp_path, table)
    assert [one.name for one in found] == [one.name for one in windows.spread(tmp_path, table)]
    places: dict[str, list[int]] = {}
    for one in found:
        file, _, at = one.name.partition("@")
        places.setdefault(file, []).append(int(at.removesuffix("s")))
    assert set(places) == {"a/net0", "a/net1", "a/net2", "b/net0"}
    for begins in places.values():
        ordered = sorted(begins)
        assert all(b - a >= 20 for a, b in itertools.pairwise(ordered))
    # of the first recording of b nothing is taken where its mean is below the bound
    assert all(at <= 40 + 15 or at >= 120 - 15 for at in places["b/net0"])
    with pytest.raises(InputError, match="has no recorded network of at least 20s"):
        windows.spread(tmp_path, table.model_copy(update={"between": [Rate(10**9), Rate(2 * 10**9)]}))


def test_without_recordings_their_cases_are_not_run(tmp_path: Path) -> None:
    made = Suite.load("traces")
    assert [case.not_run for case in made.cases] == ["no folder of recordings is given (--traces FOLDER)"]
    gone = CASES.replace('duration = "10s",', 'duration = "10s", "links.bottleneck.capacity" = { trace = "gone.csv" },')
    result = Plan.of(suite(gone), ["gcc"], seeds=1).run(tmp_path / "out")
    assert result.cell("steps,delay=50ms", "gcc").why == "the recording gone.csv does not exist"
    assert result.cell("three", "gcc").state == "pass"


def test_damaged_suites_are_refused_or_planned() -> None:
    """Any key lost, or with any value: a sentence, or a plan, and nothing else."""
    junk = [
        0, -1, 1.5, "", [], {}, "x", [1], {"a": 1}, float("inf"), True, "5.1*", ["50ms"], "[", {"links": ["x"]},
        {"links.bottleneck.delay": ["50ms", "x"]}, {"": [1]}, {"flows.call": ["x"]},
        {"links.bottleneck.queue": [{"time": "3ms"}, {"packets": 3}]},
    ]  # fmt: skip
    keys = ("vary", "set", "contenders", "windows", "not_run", "of", "relative_to", "at_most", "cases", "metric")
    whole = toml.parse(CASES + RULES, "mine.toml")
    luck = random.Random(1)
    planned = 0
    for _ in range(150):
        data = copy.deepcopy(whole)
        for _ in range(luck.randint(1, 2)):
            *way, last = luck.choice(list(_places(data)))
            here = data
            for step in way:
                here = here[step]
            chance = luck.random()
            if chance < 0.2:
                del here[last]
            elif chance < 0.4 and isinstance(here, dict):
                here[luck.choice(keys)] = copy.deepcopy(luck.choice(junk))
            else:
                here[last] = copy.deepcopy(luck.choice(junk))
        try:
            Plan.of(suite(toml.write(data)), ["gcc"], seeds=1)
        except InputError:
            continue
        planned += 1
    assert 5 < planned < 145


def _places(data: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to each value."""
    entries = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for step, value in entries:
        yield (*way, step)
        yield from _places(value, (*way, step))


def test_the_suite_of_the_page_is_one_that_a_good_call_passes(tmp_path: Path, cli: Cli) -> None:
    page = (ROOT / "docs" / "suites.md").read_text(encoding="utf-8")
    file = tmp_path / "mine.toml"
    file.write_text(page.partition('title="mine.toml"}\n')[2].partition("```")[0], encoding="utf-8")
    assert cli("suite", "check", str(file)).out.endswith("mine.toml: 2 cases, 1 rule\n")
    result = Plan.of(str(file), ["gcc"], seeds=1).run(tmp_path / "out", processes=False)
    assert [cell.state for cell in result.cells] == ["pass", "pass"]


def test_a_suite_says_what_its_cases_cannot_tell(tmp_path: Path) -> None:
    """All flows of a case that take the controllers have to be held by their sources, of two controllers at least."""
    case = """
[[cases]]
name = "{name}"
scenario = "rfc8867-5.4-competing-calls"
source = "here"
set = {{ duration = "4s", "flows.call.start_step" = "0s", "flows.call.stop" = "4s", "links.bottleneck.capacity" = "{rate}" }}
"""
    names = {"wide": "20Mbps", "broad": "20Mbps", "narrow": "3Mbps"}
    text = 'description = "d"\nsource = "here"\n' + "".join(case.format(name=n, rate=r) for n, r in names.items())
    made = Plan.of(suite(text), ["fixed:2Mbps", "fixed:3Mbps"], seeds=1).run(tmp_path / "out")
    ((said, cases),) = made.doubts.items()
    assert said.startswith(
        "flows.call.media.video.max: fixed:2Mbps and fixed:3Mbps sent all that the source can produce (1.52Mbps)"
    )
    assert cases == ["wide", "broad"]
    assert f"- {said} (wide and broad)" in (tmp_path / "out" / "scorecard.md").read_text("utf-8")
    assert said in (tmp_path / "out" / "index.html").read_text("utf-8")
    one = Plan.of(suite(text), ["fixed:2Mbps", "fixed:500kbps"], seeds=1).run(tmp_path / "two")
    assert not one.doubts
    assert "cannot tell" not in (tmp_path / "two" / "scorecard.md").read_text("utf-8")
