"""A search for settings: its input, results that formulas predict, continuation, and no lost runs."""

from __future__ import annotations

import importlib.util
import json
import math
import re
import shlex
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from support import PLAIN, Cli, begin
from tidegate import InputError, OutputError, Scenario, optimisation
from tidegate.optimisation import ScenarioTask, Search, SearchResult, SuiteTask, Try, search
from tidegate.optimisation.goals import Goal, Limit
from tidegate.optimisation.space import Setting
from tidegate.output import svg
from tidegate.output.chart import Axis, Chart
from tidegate.output.html import page
from tidegate.results.metrics import METRICS
from tidegate.runs import engine
from tidegate.suite import Suite
from tidegate.units import Rate

pytest.importorskip("optuna", reason="needs Optuna: pip install 'tidegate[optimise]'")

SMALL = PLAIN.replace('"4s"', '"1s"')
SUITE = """
seeds = 1
[[cases]]
name = "one"
scenario = "x.toml"
[[cases]]
name = "two"
scenario = "x.toml"
set = { "links.cable.capacity" = "1Mbps" }
"""


@pytest.fixture
def task() -> ScenarioTask:
    return ScenarioTask(Scenario.parse(SMALL), "fixed")


# --- typed settings ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "low", "middle", "high"),
    [
        ("k=2ms:50ms", "2ms", "26ms", "50ms"),
        ("k=50ms:2ms", "2ms", "26ms", "50ms"),
        ("k=100us:2ms", "0.1ms", "1.05ms", "2ms"),
        ("k=log:100kbps:10Mbps", "0.1Mbps", "1Mbps", "10Mbps"),
        ("k=0.5:1", "0.5", "0.75", "1"),
        ("k=1:9", "1", "5", "9"),
        ("k=1%:3%", "1%", "2%", "3%"),
    ],
)
def test_ranges(text: str, low: str, middle: str, high: str) -> None:
    setting = Setting.parse(text)
    centre = math.sqrt(setting.low * setting.high) if setting.log else (setting.low + setting.high) / 2
    assert [setting.value(number) for number in (setting.low, centre, setting.high)] == [low, middle, high]
    assert setting.number(setting.value(setting.high)) == setting.high
    assert setting.whole == (text == "k=1:9")


def test_values_are_no_finer_than_a_thousandth_of_the_range_and_stay_inside() -> None:
    setting = Setting.parse("k=0.123456:0.123499")
    assert all(
        0.123456 <= float(setting.value(setting.low + (setting.high - setting.low) * step / 99)) <= 0.123499
        for step in range(100)
    )
    assert Setting.parse("k=2ms:50ms").value(12.345678) == "12.35ms"


def test_choices() -> None:
    assert Setting.parse('k=gcc,gcc:draft-02,"a,b"').choices == ("gcc", "gcc:draft-02", "a,b")
    assert Setting.parse("k=1ms:3ms:3").choices == ("1ms", "2ms", "3ms")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("k", "k: expected KEY=2ms:50ms, KEY=log:100kbps:10Mbps, KEY=gcc,nada"),
        ("k=", "k=: expected KEY="),
        ("k=gcc", "k=gcc: a single value leaves nothing to search"),
        ("k=1ms:1ms", "k: 1ms:1ms: both ends are equal; expected different ends"),
        ("k=1:2ms", "k: 1:2ms: both ends need their unit: 1ms?"),
        ("k=log:0:1", "k: log:0:1: both ends of a log range must be above zero"),
    ],
)
def test_wrong_settings(text: str, why: str) -> None:
    with pytest.raises(InputError) as caught:
        Setting.parse(text)
    assert str(caught.value).startswith(why)


def test_goals_and_limits() -> None:
    goal = Goal.parse("utilisation", METRICS)
    assert (goal.series.name, goal.best) == ("utilisation", "highest")
    assert Goal.parse("delay_p95", METRICS).best == "lowest"
    assert Goal.parse("lowest call rate", METRICS).series.name == "call receive_rate_bps"
    limit = Limit.parse("tcp delay_p95 < 150ms", METRICS)
    assert (limit.series.name, limit.condition.below, limit.condition.bound) == (
        "tcp one_way_delay_ms_p95",
        True,
        150.0,
    )
    assert Limit.parse("loss<=2%", METRICS).condition.bound == 0.02
    assert not Limit.parse("rate >= 1.5Mbps", METRICS).condition.below


@pytest.mark.parametrize(
    ("parse", "text", "why"),
    [
        (Goal, "utilization", "--for: utilization: there is no such metric; did you mean utilisation?"),
        (Goal, "best of all", "--for: found 'best of all'; expected a metric"),
        (Goal, "sending_rate", "expected 'highest sending_rate' or 'lowest sending_rate'"),
        (Limit, "delay_p95", "--subject-to: found 'delay_p95'; expected a limit such as 'delay_p95 < 150ms'"),
        (Limit, "delay_p95 < 150", 'a time needs a unit, for example "150ms"'),
        (Limit, "delay_p59 < 150ms", "there is no such metric; did you mean"),
        (Limit, "loss < 2", "expected a share in per cent"),
    ],
)
def test_wrong_goals(parse: type[Goal | Limit], text: str, why: str) -> None:
    with pytest.raises(InputError) as caught:
        parse.parse(text, METRICS)
    assert why in str(caught.value)


def test_a_limit_holds_in_the_worst_case_and_a_goal_is_a_mean() -> None:
    numbers = {"a": [10.0, 30.0], "b": [100.0, 120.0]}
    assert Goal.parse("delay_p95", METRICS).value(numbers) == 65.0
    assert Limit.parse("delay_p95 < 100ms", METRICS).excess(numbers) == pytest.approx(0.1)
    assert Limit.parse("delay_p95 < 110ms", METRICS).excess(numbers) == 0.0
    assert Limit.parse("delay_p95 > 25ms", METRICS).excess(numbers) == pytest.approx(0.2)
    # a missing number is neither good nor within a limit
    gap: dict[str, list[float | None]] = {"a": [10.0, None], "b": [1.0, 1.0]}
    assert Goal.parse("delay_p95", METRICS).value(gap) is None
    assert Limit.parse("delay_p95 < 100ms", METRICS).excess({"a": [None], "b": [1.0]}) == 1.0


def test_the_best_holds_all_limits_and_the_nearest_comes_next(task: ScenarioTask) -> None:
    def tried(goal: float | None, *over: float) -> Try:
        return Try({"k": str(goal)}, {}, goal, over)

    tries = (tried(0.9, 0.5), tried(0.7, 0.0), tried(0.8, -0.1), tried(0.8, 0.0), tried(None), tried(0.95, 0.2))
    planned = Search.of(task, ["controller.rate=300kbps:3Mbps"], "utilisation", ["loss < 1%"])
    empty = SearchResult(
        "x", planned.settings, planned.goal, planned.limits, (1,), tries, None, None, {}, "", "", "", {}
    )
    assert empty.best is tries[2]
    assert [candidate.goal for candidate in empty.ranked] == [0.8, 0.8, 0.7, 0.95, 0.9]


# --- searches -------------------------------------------------------------------------------------


def test_it_finds_the_largest_rate_that_fits(tmp_path: Path) -> None:
    scenario = Scenario.parse(
        PLAIN.replace('media = { controller = "gcc" }', 'media = { video = { source = "greedy", max = "5Mbps" } }')
    )
    search_of = Search.of(
        ScenarioTask(scenario, "fixed"), ["controller.rate=log:200kbps:8Mbps"], "rate", ["loss < 1%"], seeds=1
    )
    result = search_of.run(tmp_path / "o", tries=40)
    best = result.best
    assert best is not None
    assert best.goal is not None
    # the link carries 2 Mbit/s, headers of IP and UDP among them (28 B of some 1200 B)
    assert 1.85e6 < best.goal <= 2.0e6
    fits = Rate.parse(best.values["controller.rate"])
    faster = [tried for tried in result.tries if Rate.parse(tried.values["controller.rate"]) > fits]
    assert faster
    assert not any(tried.held for tried in faster)
    assert result.checked is not None
    assert result.checked.values == best.values
    assert result.importances == {"controller.rate": 1.0}
    assert len({tried.values["controller.rate"] for tried in result.tries}) > 35


def params(result: SearchResult) -> list[dict[str, str]]:
    return [dict(tried.values) for tried in result.tries]


def search_of(task: ScenarioTask, **more: Any) -> Search:
    settings = ["controller.rate=300kbps:3Mbps", "links.cable.delay=5ms,50ms"]
    return Search.of(task, settings, "utilisation", ["delay_p95 < 100ms"], **{"seeds": 1, **more})


@pytest.mark.parametrize("moment", ["run", "tell"])
def test_a_search_that_was_stopped_comes_to_the_same_end(
    task: ScenarioTask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    import optuna

    unbroken = search_of(task).run(tmp_path / "whole", tries=20)
    calls = 0
    module, name = (engine, "run_all") if moment == "run" else (optuna.Study, "tell")
    original: Callable[..., Any] = getattr(module, name)

    def stop_once(*args: Any, **kwargs: Any) -> Any:
        nonlocal calls
        calls += 1
        # the third few tries; or in the midst of telling of the second few
        if calls == (4 if moment == "run" else 7):
            raise KeyboardInterrupt
        return original(*args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(module, name, stop_once)
        with pytest.raises(KeyboardInterrupt):
            search_of(task).run(tmp_path / "parts", tries=20)
    before = SearchResult.load(tmp_path / "parts")
    assert 0 < len(before.tries) < 20
    parts = search_of(task).run(tmp_path / "parts", tries=20)
    assert params(parts) == params(unbroken)
    assert parts.to_csv() == unbroken.to_csv()


def test_no_run_is_done_twice(task: ScenarioTask, tmp_path: Path) -> None:
    first = search_of(task).run(tmp_path / "o", tries=8)
    files = {file: file.stat().st_mtime_ns for file in (tmp_path / "o" / "results").iterdir()}
    assert search_of(task).run(tmp_path / "o", tries=8) == first
    more = search_of(task).run(tmp_path / "o", tries=12)
    assert params(more)[:8] == params(first)
    assert all(file.stat().st_mtime_ns == time for file, time in files.items())
    assert SearchResult.load(tmp_path / "o").tries == more.tries


def test_a_killed_search_goes_on(tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_text(PLAIN)
    argv = [
        "optimise", "links.cable.delay=1ms:90ms", "--scenario", "x.toml", "--for", "rate", "--seeds", "2",
        "--tries", "24", "--out", "o", "--json",
    ]  # fmt: skip
    process = begin(argv, tmp_path)
    tries = tmp_path / "o" / "tries.json"
    while not tries.is_file():
        assert process.poll() is None, process.communicate()
    process.send_signal(signal.SIGKILL)
    process.communicate()
    files = list((tmp_path / "o" / "results").glob("*.json"))
    before = {file: file.stat().st_mtime_ns for file in files}
    # the kill came as the record was written
    with (tmp_path / "o" / "optuna.jsonl").open("ab") as file:
        file.write(b'{"op_code":4,"half')
    done = begin(argv, tmp_path)
    out, err = done.communicate(timeout=120)
    assert done.returncode == 0, err
    assert len(json.loads(out)["tries"]) == 24
    assert all(file.stat().st_mtime_ns == time for file, time in before.items())


def test_another_search_is_refused(task: ScenarioTask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    search_of(task).run(tmp_path / "o", tries=4)
    with pytest.raises(
        OutputError, match=r"the folder holds another search \(different seeds\); choose another folder"
    ):
        search_of(task, seeds=2).run(tmp_path / "o", tries=4)
    monkeypatch.setattr(search, "build", lambda: "another")
    with pytest.raises(OutputError, match="holds a search with another engine"):
        search_of(task).run(tmp_path / "o", tries=4)


def test_tries_that_fail_are_told_and_others_go_on(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "import tidegate\nclass Mine(tidegate.Controller):\n    def __init__(self, rate=1.0):\n        self.rate = rate\n"
        "    def on_limits(self, now_ns, limits):\n        return int(self.rate * 1e6)\n"
        "    def on_report(self, now_ns, report):\n        if self.rate > 2:\n            raise ValueError('too fast')\n"
    )
    task = ScenarioTask(Scenario.parse(SMALL), f"python:{tmp_path}/mine.py:Mine")
    result = Search.of(task, ["controller.rate=0.2:3.0"], "rate", seeds=1).run(tmp_path / "o", tries=8)
    failed = [tried for tried in result.tries if tried.goal is None]
    assert 0 < len(failed) < 8
    assert all("too fast" in tried.why and float(tried.values["controller.rate"]) > 2 for tried in failed)
    assert result.best is not None
    assert "Failed" in page(result.document())
    hopeless = Search.of(task, ["controller.rate=2.5:3.0"], "rate", seeds=1)
    with pytest.raises(InputError, match=r"every try failed; the first: .*too fast"):
        hopeless.run(tmp_path / "p", tries=4)


def test_over_a_suite(tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_text(SMALL)
    (tmp_path / "s.toml").write_text(SUITE)
    suite = Suite.load(tmp_path / "s.toml")
    planned = Search.of(
        SuiteTask(suite, "fixed"), ["controller.rate=log:100kbps:8Mbps"], "mean rate", ["loss < 2%"], seeds=2
    )
    result = planned.run(tmp_path / "o", tries=8)
    first = result.tries[0]
    assert {case: len(by_seed) for case, by_seed in first.numbers["mean receive_rate_bps"].items()} == {
        "one": 2,
        "two": 2,
    }
    assert result.best is None or result.best.goal is not None
    again = SearchResult.load(tmp_path / "o")
    assert again.tries == result.tries
    assert "and 2 cases" in page(again.document())
    with pytest.raises(
        InputError, match=r"links\.cable\.delay: in a suite only settings of the controller can be searched"
    ):
        Search.of(SuiteTask(suite, "fixed"), ["links.cable.delay=1ms:2ms"], "rate")
    task = SuiteTask(suite, "fixed", "my.toml", ("o*",))
    assert task.again({"controller.rate": "1Mbps"}) == (
        "tidegate suite run my.toml fixed fixed:rate=1Mbps --cases 'o*'"
    )


# --- the command ----------------------------------------------------------------------------------


def test_the_command_and_its_page(tmp_path: Path, cli: Cli) -> None:
    (tmp_path / "x.toml").write_text(SMALL)
    argv = (
        "optimise",
        "controller.rate=300kbps:3Mbps",
        "--controller",
        "fixed",
        "--scenario",
        "x.toml",
        "--seeds",
        "2",
    )
    got = cli(*argv, "--for", "utilisation", "--subject-to", "loss < 1%", "--tries", "12", "--out", "o")
    assert got.code == 0, got.err
    assert re.search(r"^best +\S+(kbps|Mbps) +\d", got.out, re.MULTILINE)
    assert re.search(r"^unchanged ", got.out, re.MULTILINE)
    assert re.search(r"^best, with other seeds", got.out, re.MULTILINE)
    assert "to run the best try: tidegate compare fixed fixed:rate=" in got.out
    text = (tmp_path / "o" / "report.html").read_text()
    # each try in the history and over its setting
    assert text.partition("<main>")[2].count("<circle") == 2 * 12
    assert "Importance of the settings" in text
    html = SearchResult.load(tmp_path / "o")._repr_html_()
    assert "best, with other seeds" in html
    # of twelve tries a notebook and the terminal have five, and the page all
    assert [">12.<" in form or ">12. (" in form for form in (html, text)] == [False, True]
    assert not re.search(r"^6\.", got.out, re.MULTILINE)
    assert not re.search(r'(?:src|href)="(?!data:)', text)
    (tmp_path / "o" / "report.html").unlink()
    assert cli("report", "o").code == 0
    assert (tmp_path / "o" / "report.html").read_text() == text
    rows = (tmp_path / "o" / "tries.csv").read_text().splitlines()
    assert len(rows) == 13
    assert rows[0].startswith("try,controller.rate,goal,limits_held,utilisation,loss_fraction,")
    assert (
        cli("report", "o", "--out", "o.png").err
        == "tidegate: --out o.png: a picture of a search cannot be drawn; expected .html\n"
    )
    # its number is that of the run
    best = SearchResult.load(tmp_path / "o").best
    assert best is not None
    label = f"fixed:rate={best.values['controller.rate']}"
    run = cli("compare", label, "--scenario", "x.toml", "--seeds", "2", "--json")
    utilisations = [row["summary"]["flows"][0]["utilisation"] for row in json.loads(run.out)["runs"]]
    assert utilisations == best.numbers["utilisation"][""]


@pytest.mark.parametrize(
    ("argv", "why"),
    [
        (
            ("controller.beta=0.5:0.9",),
            "controller.beta: no controller is given; expected --controller with a name, such as gcc",
        ),
        (("links.cable.dealy=1ms:2ms",), "links.cable.dealy"),
        (("controller.betta=0.5:0.9", "--controller", "gcc"), "betta"),
        (("links.cable.delay=1ms:2ms", "links.cable.delay=1ms:3ms"), "links.cable.delay is given twice"),
        (("links.cable.delay=1ms:2ms", "--cases", "5*"), "--cases: the option is for suites; name one with --suite"),
        (("controller.beta=0.5:0.9", "--suite", "smoke"), "--suite: no controller is given; expected"),
        (("links.cable.delay=1ms:2ms", "--subject-to", "absent loss < 1%"), "there is no flow absent; available: call"),
    ],
)
def test_wrong_usage(tmp_path: Path, cli: Cli, argv: Sequence[str], why: str) -> None:
    (tmp_path / "x.toml").write_text(SMALL)
    scenario = () if "--suite" in argv else ("--scenario", "x.toml")
    got = cli("optimise", *argv, *scenario, "--for", "utilisation", "--out", "o", "--tries", "4")
    assert got.code == 2, got.err
    assert why in got.err


def test_what_stands_at_the_vertical_axis_has_room_for_it() -> None:
    """Values that differ in their fifth digit have long names; 7 units is about a letter of 12 px."""
    positions = {}
    for low, high in ((0.0, 1.0), (50.0331, 50.0392)):
        drawn = svg.drawing(Chart(Axis("", 0, 1, marks=()), Axis("", low, high), [], "", "small"))
        labels = re.findall(r'<text x="([\d.]+)" y="[\d.]+" text-anchor="end">([\d.]+)</text>', drawn)
        assert len(labels) > 2
        assert all(float(x) - 7 * len(label) >= 0 for x, label in labels)
        positions[low] = {float(x) for x, _ in labels}
    assert min(positions[50.0331]) > max(positions[0.0])


def test_without_optuna_it_says_what_to_install(
    tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch, task: ScenarioTask
) -> None:
    original = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *more: None if name == "optuna" else original(name, *more)
    )
    (tmp_path / "x.toml").write_text(SMALL)
    argv = ("optimise", "links.cable.delay=1ms:2ms", "--scenario", "x.toml", "--for", "rate", "--out", "o")
    got = cli(*argv)
    assert (got.code, got.err) == (2, "tidegate: a search needs Optuna: pip install 'tidegate[optimise]'\n")
    assert not (tmp_path / "o").exists()
    assert optimisation.OPTIMISE_FILE == "optimise.json"


def test_a_search_on_a_recorded_link(cli: Cli, tmp_path: Path) -> None:
    """The command for the best try has the link, and runs."""
    link = tmp_path / "drive.csv"
    link.write_text("time_s,rate_mbps\n" + "".join(f"{second},{2 + second % 3}\n" for second in range(30)))
    common = ["--link", str(link), "--set", "duration=4s", "--for", "receive_rate_bps", "--tries", "2", "--seeds", "1"]
    for settings in (["controller.beta=0.7,0.9", "--controller", "gcc"], ["links.bottleneck.delay=5ms,80ms"]):
        out = tmp_path / settings[0][:5]
        done = cli("optimise", *settings, *common, "--out", str(out))
        assert done.code == 0, done.err
        command = re.search(r"to run the best try: tidegate (.*)", done.out)
        assert command is not None
        assert f"--link {link}" in command[1]
        assert cli(*shlex.split(command[1]), "--seeds", "1").code == 0, command[1]
    done = cli("optimise", "controller.beta=0.7,0.9", "--suite", "smoke", "--controller", "gcc", *common[:2],
               "--for", "rate", "--out", str(tmp_path / "s"))  # fmt: skip
    assert done.code == 2
    assert "--link: the option is for one scenario; a suite has its own networks" in done.err
