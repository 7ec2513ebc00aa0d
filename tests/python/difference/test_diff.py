"""Two results side by side: their differences, equal numbers, certainty and order."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from support import HALF_A_MEGABIT, Cli
from tidegate import InputError, Run, Scenario, compare, run, sweep
from tidegate.difference import Difference, Number, Side, diff
from tidegate.difference.settings import Setting, Settings, differing
from tidegate.difference.sides import RunHashes, Series
from tidegate.output.html import page
from tidegate.output.markdown import markdown
from tidegate.output.terminal import show
from tidegate.results.metrics import METRICS
from tidegate.results.stats import paired
from tidegate.suite import Plan, Suite

RATE, DELAY, LOSS = (METRICS[name] for name in ("receive_rate_bps", "one_way_delay_ms_p95", "loss_fraction"))
BASE = """
duration = "3s"
[[links]]
name = "up"
from = "a"
to = "b"
capacity = "2Mbps"
delay = "20ms"
[[flows]]
name = "call"
from = "a"
to = "b"
media = { controller = "fixed:1Mbps" }
"""

Values = Mapping[int, float | None]


def scenario(text: str = BASE) -> Scenario:
    return Scenario.parse(text, "base.toml")


def side(numbers: Mapping[tuple[str, str], Values], kind: str = "comparison", **settings: object) -> Side:
    """A comparison that was never run, from numbers by controller and metric."""
    series: dict[tuple[str, ...], dict[str, Series]] = {}
    runs: dict[tuple[str, ...], dict[int, RunHashes]] = {}
    for (controller, name), values in numbers.items():
        series.setdefault((controller,), {})[name] = Series(METRICS[name].label, METRICS[name], values)
        runs[controller,] = {seed: RunHashes(f"{controller}{values}", "") for seed in values}
    return Side(kind, "made", Settings.without_defaults(settings), series, {}, runs)


def by_controller(difference: Difference) -> dict[tuple[str, str], Number]:
    return {(number.scopes.b[0], number.key): number for number in difference.numbers}


# --- settings -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (('delay = "20ms"', 'delay = "0.02s"'), []),
        (('delay = "20ms"', 'delay = "50ms"'), [("links.up.delay", "20ms", "50ms")]),
        # a default that is written down changes nothing
        (('delay = "20ms"', 'delay = "20ms"\nloss = 0.0'), []),
        (('delay = "20ms"', 'delay = "20ms"\nloss = "1%"'), [("links.up.loss", "0.0", "0.01")]),
        (('"fixed:1Mbps"', '{ name = "fixed", settings = { rate = "1Mbps" } }'),
         [("flows.call.media.controller", "fixed:1Mbps", "fixed:rate=1Mbps")]),
        (('duration = "3s"', 'duration = "3s"\ndescription = "what people read"'), []),
        (('delay = "20ms"', 'delay = "20ms"\nqueue = { packets = 30 }'),
         [("links.up.queue", "-", "{ packets = 30 }")]),
    ],
)  # fmt: skip
def test_settings_differ_where_their_meaning_does(
    change: tuple[str, str], expected: Sequence[tuple[str, str, str]]
) -> None:
    assert change[0] in BASE
    changed = scenario(BASE.replace(*change))
    settings = differing(Settings.of_scenario(scenario()), Settings.of_scenario(changed))
    assert {(setting.key, setting.a, setting.b) for setting in settings} == {*expected}


def test_a_flow_that_one_side_alone_has_is_one_line() -> None:
    more = BASE + '[[flows]]\nname = "tcp"\nfrom = "a"\nto = "b"\ntcp = { algorithm = "reno" }\n'
    (setting,) = differing(*(Settings.of_scenario(scenario(text)) for text in (BASE, more)))
    assert (setting.key, setting.a) == ("flows.tcp", "-")
    assert 'algorithm = "reno"' in setting.b
    # entries are matched by their names, not by their positions
    swapped = BASE.replace("[[links]]", '[[links]]\nname = "x"\nfrom = "a"\nto = "c"\ncapacity = "1Mbps"\n\n[[links]]')
    settings = differing(*(Settings.of_scenario(scenario(text)) for text in (BASE, swapped)))
    assert [setting.key for setting in settings] == ["links.x"]


# --- numbers --------------------------------------------------------------------------------------


def test_numbers_are_paired_by_seed() -> None:
    # the seeds differ more than the sides
    a = side({("gcc", RATE.name): {1: 1e6, 2: 2e6, 3: 3e6, 4: 9e6}})
    b = side({("gcc", RATE.name): {1: 1.1e6, 2: 2.12e6, 3: 3.08e6, 5: 1e6}})
    number = by_controller(Difference(a, b))["gcc", RATE.name]
    assert number.paired
    assert number.difference == paired({1: 1.1e6, 2: 2.12e6, 3: 3.08e6}, {1: 1e6, 2: 2e6, 3: 3e6})
    means = (number.a.mean, number.b.mean, number.difference.count)
    assert means == (2e6, 2.1e6, 3), "only seeds that both sides have"
    assert number.word == "better"
    reverse = by_controller(Difference(b, a))["gcc", RATE.name]
    assert (reverse.difference.mean, reverse.word) == (-number.difference.mean, "worse")


def test_without_a_common_seed_they_are_said_to_be_unpaired() -> None:
    a, b = (side({("gcc", DELAY.name): values}) for values in ({1: 50.0, 2: 50.0}, {3: 90.0}))
    number = by_controller(Difference(a, b))["gcc", DELAY.name]
    assert (number.paired, number.difference.mean, number.difference.half, number.word) == (False, 40.0, None, "")


def test_of_many_that_differ_by_luck_none_is_called_better() -> None:
    """At 5 % for each number, one of twenty would be called better: the chance of this pair is one in forty."""
    luck = {1: 4.0, 2: 20.0, 3: 8.0, 4: 30.0, 5: 12.0, 6: 3.0}
    before = dict.fromkeys(luck, 100.0)
    after = {seed: 100.0 + more for seed, more in luck.items()}
    alone = Difference(side({("gcc", DELAY.name): before}), side({("gcc", DELAY.name): after}))
    (number,) = alone.numbers
    assert 0.01 < number.chance < 0.05
    assert number.word == "worse"
    calm = {seed: 100.0 + (-1) ** seed * 5 for seed in luck}
    twenty = {(f"c{number}", DELAY.name): before for number in range(20)}
    changed = dict.fromkeys(twenty, calm) | {("c0", DELAY.name): after}
    assert [number.word for number in Difference(side(twenty), side(changed)).numbers] == [""] * 20
    # a difference that is the same for all seeds is certain, but only reported if it matters
    sure = Difference(side(twenty), side(changed | {("c1", DELAY.name): dict.fromkeys(luck, 90.0)}))
    assert [number.word for number in sure.numbers] == ["better"] + [""] * 19
    tiny = Difference(side(twenty), side(changed | {("c1", DELAY.name): dict.fromkeys(luck, 100.5)}))
    assert [number.word for number in tiny.numbers] == [""] * 20


def test_what_differs_most_stands_first() -> None:
    """Differences are sorted in margins, a common unit of milliseconds and megabits, by the lower end of the interval."""
    a: dict[tuple[str, str], Values] = {
        ("half", RATE.name): {1: 2e6, 2: 2e6},
        ("tenth", DELAY.name): {1: 100.0, 2: 100.0},
        ("noise", DELAY.name): {1: 100.0, 2: 100.0},
        ("small", LOSS.name): {1: 0.0, 2: 0.0},
        ("same", LOSS.name): {1: 0.0, 2: 0.0},
        ("gone", DELAY.name): {1: 5.0, 2: 5.0},
    }
    b: dict[tuple[str, str], Values] = {
        **a,
        ("half", RATE.name): {1: 1e6, 2: 1e6},
        ("tenth", DELAY.name): {1: 110.0, 2: 110.0},
        ("noise", DELAY.name): {1: 100.0, 2: 400.0},
        ("small", LOSS.name): {1: 0.0001, 2: 0.0001},
        ("gone", DELAY.name): {1: None, 2: None},
    }
    numbers = Difference(side(a), side(b)).numbers
    assert [number.scopes.a[0] for number in numbers] == ["gone", "half", "tenth", "small", "noise", "same"]
    assert [number.matters for number in numbers] == [True, True, True, False, True, False]
    assert [number.same for number in numbers] == [False] * 5 + [True]


def test_a_value_that_one_side_lost_is_seen() -> None:
    a, b = (side({("gcc", DELAY.name): {1: 5.0, 2: second}}) for second in (5.0, None))
    (number,) = Difference(a, b).numbers
    assert (number.same, number.one_sided, number.matters, number.difference.mean) == (False, 1, True, 0.0)


def test_the_one_controller_that_is_another_is_held_against_the_one_that_was() -> None:
    rate = {1: 1e6}
    a = side({("gcc", RATE.name): rate, ("nada", RATE.name): rate})
    b = side({("gcc:beta=0.8", RATE.name): rate, ("nada", RATE.name): rate})
    difference = Difference(a, b)
    assert [number.scopes.parts for number in difference.numbers] == [("gcc → gcc:beta=0.8",), ("nada",)]
    assert (difference.only_a, difference.only_b) == ([], [])
    two = side({("fixed:1Mbps", RATE.name): rate, ("scream", RATE.name): rate})
    assert Difference(a, two).numbers == []
    assert Difference(a, two).only_b == [("fixed:1Mbps",), ("scream",)]


# --- forms ----------------------------------------------------------------------------------------


def test_short_forms_say_what_they_leave_out_and_whole_ones_have_it(capsys: pytest.CaptureFixture[str]) -> None:
    names = [f"c{number}" for number in range(40)]
    before: dict[tuple[str, str], Values] = {(name, DELAY.name): {1: 100.0, 2: 100.0} for name in names}
    after: dict[tuple[str, str], Values] = {
        (name, DELAY.name): {1: 200.0 + number, 2: 200.0 + number} for number, name in enumerate(names)
    }
    small: dict[tuple[str, str], Values] = {
        ("tiny", DELAY.name): {1: 5.0, 2: 5.0},
        ("same", DELAY.name): {1: 5.0, 2: 5.0},
    }
    only = {(f"x{number}", DELAY.name): {1: 1.0} for number in range(33)}
    settings: dict[str, Any] = {f"key{number}": number for number in range(35)}
    a = side(before | small, "comparison", **settings)
    b = side(after | small | only | {("tiny", DELAY.name): {1: 5.0001, 2: 5.0001}}, **dict.fromkeys(settings, "other"))
    document = Difference(a, b).document()
    small_print = "10 numbers differ less; 1 number differs too little to matter"
    show(document, hint="--all shows more")
    short = capsys.readouterr().out
    assert "5 settings more; --all shows more" in short
    assert "x29 and 3 more; --all shows more" in short
    assert f"{small_print} (below 1 ms, 0.2 s, 0.1 % or the last digit); --all shows more" in short
    assert "1 of 42 numbers are the same" in short
    rows = {line.partition("one-way")[0].split()[-1] for line in short.splitlines() if "95th percentile" in line}
    assert rows == {*names[10:]}, "those that differ most"
    assert "key34" not in short
    show(document, detail=True, hint="--all shows more")
    detailed = capsys.readouterr().out
    assert "--all" not in detailed
    assert small_print not in detailed
    for text in (detailed, markdown(document), page(document)):
        assert all(word in text for word in ("c9", "tiny", "same", "key34", "x32"))
        assert " more" not in text.partition("What the numbers mean")[0]
    assert small_print in Difference(a, b).to_markdown()
    assert "tiny" not in Difference(a, b).to_markdown()
    cell = Difference(a, b)._repr_html_()
    assert "A: made · B: made" in cell
    assert small_print in cell


def test_where_nothing_matters_short_forms_have_no_table(capsys: pytest.CaptureFixture[str]) -> None:
    result = side({("gcc", DELAY.name): {1: 5.0, 2: 5.0}})
    show(Difference(result, result).document())
    same = "nothing differs\n\n1 of 1 numbers are the same; 2 of 2 runs are identical to the bit\n"
    assert capsys.readouterr().out == same
    assert "<table" not in Difference(result, result)._repr_html_()
    assert "| gcc |" in Difference(result, result).to_markdown(detail=True)


# --- results --------------------------------------------------------------------------------------


def test_runs_comparisons_and_sweeps(tmp_path: Path, cli: Cli) -> None:
    slow = scenario(BASE.replace('"20ms"', '"50ms"'))
    run(scenario()).save("r1")
    run(slow).save("r2")
    difference = diff(run(scenario()), run(slow))
    assert difference.settings == [Setting("links.up.delay", "20ms", "50ms")]
    delay = next(number for number in difference.numbers if number.key == "one_way_delay_ms_p95")
    assert abs(delay.difference.mean - 30.0) < 1.0
    assert delay.difference.half is None, "one seed"
    assert difference.runs == (0, 1)
    assert {number.scopes.a for number in difference.numbers} == {("call",), ("link up",), ("link up.back",)}
    assert not diff(run(scenario()), run(scenario())).differs

    printed = cli("diff", "r1", "r2")
    assert (printed.code, printed.err) == (0, "")
    lines = printed.out.splitlines()
    assert any(line.split() == ["links.up.delay", "20ms", "50ms"] for line in lines)
    assert any("one-way delay, 95th percentile" in line and f"{delay.difference.mean:+.1f}" in line for line in lines)
    assert "numbers are the same" in printed.out
    assert "queueing delay, mean" not in printed.out
    assert "queueing delay, mean" in cli("diff", "r1", "r2", "--all").out
    assert cli("diff", "r1", "r2", "--exit-code").code == 1
    same = cli("diff", "r1", "r1", "--exit-code")
    assert (same.code, "nothing differs" in same.out) == (0, True)
    data = json.loads(cli("diff", "r1", "r2", "--json").out)
    assert data["settings"] == [{"key": "links.up.delay", "a": "20ms", "b": "50ms"}]
    assert (data["differs"], data["runs_same"], data["runs_paired"]) == (True, 0, 1)

    compare(["fixed:1Mbps", "fixed:500kbps"], scenario(), seeds=2).save("c1")
    compare(["fixed:1Mbps", "fixed:800kbps"], scenario(), seeds=3).save("c2")
    data = json.loads(cli("diff", "c1", "c2", "--json", "--all").out)
    assert {setting["key"]: (setting["a"], setting["b"]) for setting in data["settings"]} == {
        "controllers": ("fixed:1Mbps, fixed:500kbps", "fixed:1Mbps, fixed:800kbps"),
        "seeds": ("1, 2", "1 to 3"),
    }
    changed = {number["controller"] for number in data["numbers"] if not number["same"]}
    assert changed == {"fixed:500kbps → fixed:800kbps"}
    assert {number["seeds"] for number in data["numbers"] if number["difference"] is not None} == {2}
    assert data["runs_same"] == 2

    sweep(scenario(), {"links.up.delay": ["10ms", "20ms"], "duration": ["3s"]}, out="s1", seeds=2)
    sweep(scenario(), {"links.up.delay": ["20ms", "30ms"], "duration": ["2s"]}, out="s2", seeds=2)
    data = json.loads(cli("diff", "s1", "s2", "--json").out)
    assert {setting["key"] for setting in data["settings"]} == {"set.duration", "values.links.up.delay"}
    assert data["only_a"] == [{"settings": "links.up.delay=10ms"}]
    assert data["only_b"] == [{"settings": "links.up.delay=30ms"}]
    assert {number["settings"] for number in data["numbers"]} == {"links.up.delay=20ms"}

    for argv, expected in [
        (("r1", "c1"), "r1 holds a run, and c1 a comparison; expected two of the same kind"),
        (("r1", "nowhere"), "nowhere: there is no such folder; expected a run, comparison, sweep or suite result"),
        (("r1", "r1/run.json"), "r1/run.json: is a file; expected a run, comparison, sweep or suite result"),
        ((".", "r1"), ". does not hold a run, comparison, sweep or suite result (no run.json, comparison.json, "),
    ]:
        refused = cli("diff", *argv)
        assert (refused.code, refused.out) == (2, "")
        assert expected in refused.err
    (tmp_path / "r2" / "run.json").write_text("{")
    assert cli("diff", "r1", "r2").code == 2
    with pytest.raises(InputError, match="one is a run and the other a sweep"):
        diff(run(scenario()), sweep(scenario(), {"duration": ["2s"]}, out="s3"))


def test_recorded_calls_have_no_luck_in_common_but_that_of_one_recording() -> None:
    simulated = run(scenario())

    def imported(sha256: str) -> Run:
        files = [{"file": "a.rtclog", "format": "event log", "sha256": sha256}]
        return Run({**simulated.about, "scenario": "", "seed": 0, "imported": {"files": files}}, {})

    a, b = imported("0123456789abcdef"), imported("fedcba9876543210")
    assert not any(number.paired for number in diff(a, b).numbers)
    assert diff(a, b).settings == [Setting("recordings", '["0123456789ab"]', '["fedcba987654"]')]
    assert all(number.paired for number in diff(a, a).numbers)
    assert not diff(a, a).differs


SUITE = (
    """
seeds = 2
[[cases]]
name = "steps"
scenario = "rfc8867-5.1-variable-capacity"
set = { duration = "4s", "flows.call.stop" = "4s" }
"""
    + HALF_A_MEGABIT
)
MINE = """
from tidegate import Controller, Decision

class Mine(Controller):
    def on_report(self, now_ns, report):
        return Decision(target_bps=RATE)
"""


def test_suites_have_their_verdicts_beside_each_other_and_say_whose_code_is_another(tmp_path: Path, cli: Cli) -> None:
    mine = tmp_path / "mine.py"
    controller = f"python:{mine}:Mine"
    mine.write_text(MINE.replace("RATE", "700_000"))
    before = Plan.of(Suite.parse(SUITE), [controller, "fixed:1Mbps"]).run("before")
    mine.write_text(MINE.replace("RATE", "300_000"))
    after = Plan.of(Suite.parse(SUITE.replace("500_000", "600_000")), [controller, "fixed:1Mbps"]).run("after")
    difference = diff(before, after)
    rule, *files = difference.settings
    assert (rule.key, rule.a, rule.b) == ("rules.rate.at_least", "500000.0", "600000.0")
    assert [setting.key for setting in files] == [f"files or code of {controller}"]
    (change,) = difference.verdicts
    assert (change.scopes.a, change.a, change.b.partition(":")[0]) == (("steps", controller), "pass", "fail")
    assert {number.scopes.a[1] for number in difference.numbers if not number.same} == {controller}
    assert difference.numbers[0].scopes.a == ("steps", controller)
    printed = cli("diff", "before", "after")
    assert (printed.code, printed.err) == (0, "")
    assert "verdict in A" in printed.out
    assert "2 of 4 runs are identical to the bit" in printed.out
