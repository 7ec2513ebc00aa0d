"""Two results side by side: what is called different, what is the same, what is sure, and in which order."""

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
from tidegate.difference.sides import Made, Series
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
    """A comparison that was never run: numbers by controller and metric."""
    series: dict[tuple[str, ...], dict[str, Series]] = {}
    made: dict[tuple[str, ...], dict[int, Made]] = {}
    for (who, name), values in numbers.items():
        series.setdefault((who,), {})[name] = Series(METRICS[name].label, METRICS[name], values)
        made[who,] = {seed: Made(f"{who}{values}", "") for seed in values}
    return Side(kind, "made", Settings.plain(settings), series, {}, made)


def of(difference: Difference) -> dict[tuple[str, str], Number]:
    return {(one.where.b[0], one.key): one for one in difference.numbers}


# --- settings -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (('delay = "20ms"', 'delay = "0.02s"'), []),
        (('delay = "20ms"', 'delay = "50ms"'), [("links.up.delay", "20ms", "50ms")]),
        # what is written with the value of its default is the same
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
    other = scenario(BASE.replace(*change))
    found = differing(Settings.of_scenario(scenario()), Settings.of_scenario(other))
    assert {(one.key, one.a, one.b) for one in found} == {*expected}


def test_a_flow_that_one_side_alone_has_is_one_line() -> None:
    more = BASE + '[[flows]]\nname = "tcp"\nfrom = "a"\nto = "b"\ntcp = { algorithm = "reno" }\n'
    found = differing(*(Settings.of_scenario(scenario(text)) for text in (BASE, more)))
    assert [(one.key, one.a) for one in found] == [("flows.tcp", "-")]
    assert 'algorithm = "reno"' in found[0].b
    # and entries go by their names, not by their places
    swapped = BASE.replace("[[links]]", '[[links]]\nname = "x"\nfrom = "a"\nto = "c"\ncapacity = "1Mbps"\n\n[[links]]')
    assert [one.key for one in differing(*(Settings.of_scenario(scenario(text)) for text in (BASE, swapped)))] == [
        "links.x"
    ]


# --- numbers --------------------------------------------------------------------------------------


def test_numbers_are_paired_by_seed() -> None:
    # both have the same luck, which is larger than what they differ in
    a = side({("gcc", RATE.name): {1: 1e6, 2: 2e6, 3: 3e6, 4: 9e6}})
    b = side({("gcc", RATE.name): {1: 1.1e6, 2: 2.12e6, 3: 3.08e6, 5: 1e6}})
    one = of(Difference(a, b))["gcc", RATE.name]
    assert one.paired
    assert one.difference == paired({1: 1.1e6, 2: 2.12e6, 3: 3.08e6}, {1: 1e6, 2: 2e6, 3: 3e6})
    assert (one.a.mean, one.b.mean, one.difference.count) == (2e6, 2.1e6, 3), "seeds that both have, and no others"
    assert one.word == "better"
    other = of(Difference(b, a))["gcc", RATE.name]
    assert (other.difference.mean, other.word) == (-one.difference.mean, "worse")


def test_without_a_common_seed_they_are_said_to_be_unpaired() -> None:
    a, b = (side({("gcc", DELAY.name): values}) for values in ({1: 50.0, 2: 50.0}, {3: 90.0}))
    one = of(Difference(a, b))["gcc", DELAY.name]
    assert (one.paired, one.difference.mean, one.difference.half, one.word) == (False, 40.0, None, "")


def test_of_many_that_differ_by_luck_none_is_called_better() -> None:
    """Five per cent each would call one of twenty so: this pair is one in forty."""
    luck = {1: 4.0, 2: 20.0, 3: 8.0, 4: 30.0, 5: 12.0, 6: 3.0}
    before = dict.fromkeys(luck, 100.0)
    after = {seed: 100.0 + more for seed, more in luck.items()}
    alone = Difference(side({("gcc", DELAY.name): before}), side({("gcc", DELAY.name): after}))
    (number,) = alone.numbers
    assert 0.01 < number.chance < 0.05
    assert number.word == "worse"
    calm = {seed: 100.0 + (-1) ** seed * 5 for seed in luck}
    many = {(f"c{at}", DELAY.name): before for at in range(20)}
    other = dict.fromkeys(many, calm) | {("c0", DELAY.name): after}
    assert [one.word for one in Difference(side(many), side(other)).numbers] == [""] * 20
    # a difference without any luck in it stays one, if it is one that matters
    sure = Difference(side(many), side(other | {("c1", DELAY.name): dict.fromkeys(luck, 90.0)}))
    assert [one.word for one in sure.numbers] == ["better"] + [""] * 19
    tiny = Difference(side(many), side(other | {("c1", DELAY.name): dict.fromkeys(luck, 100.5)}))
    assert [one.word for one in tiny.numbers] == [""] * 20


def test_what_differs_most_stands_first() -> None:
    """In margins, since milliseconds and megabits have nothing else in common; and as much as the interval leaves."""
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
    found = Difference(side(a), side(b)).numbers
    assert [one.where.a[0] for one in found] == ["gone", "half", "tenth", "small", "noise", "same"]
    assert [one.matters for one in found] == [True, True, True, False, True, False]
    assert [one.same for one in found] == [False] * 5 + [True]


def test_a_value_that_one_side_lost_is_seen() -> None:
    a, b = (side({("gcc", DELAY.name): {1: 5.0, 2: second}}) for second in (5.0, None))
    (one,) = Difference(a, b).numbers
    assert (one.same, one.one_sided, one.matters, one.difference.mean) == (False, 1, True, 0.0)


def test_the_one_controller_that_is_another_is_held_against_the_one_that_was() -> None:
    rate = {1: 1e6}
    a = side({("gcc", RATE.name): rate, ("nada", RATE.name): rate})
    b = side({("gcc:beta=0.8", RATE.name): rate, ("nada", RATE.name): rate})
    found = Difference(a, b)
    assert [one.where.parts for one in found.numbers] == [("gcc → gcc:beta=0.8",), ("nada",)]
    assert (found.only_a, found.only_b) == ([], [])
    two = side({("fixed:1Mbps", RATE.name): rate, ("scream", RATE.name): rate})
    assert Difference(a, two).numbers == []
    assert Difference(a, two).only_b == [("fixed:1Mbps",), ("scream",)]


# --- forms ----------------------------------------------------------------------------------------


def test_short_forms_say_what_they_leave_out_and_whole_ones_have_it(capsys: pytest.CaptureFixture[str]) -> None:
    names = [f"c{at}" for at in range(40)]
    before: dict[tuple[str, str], Values] = {(name, DELAY.name): {1: 100.0, 2: 100.0} for name in names}
    after: dict[tuple[str, str], Values] = {
        (name, DELAY.name): {1: 200.0 + at, 2: 200.0 + at} for at, name in enumerate(names)
    }
    small: dict[tuple[str, str], Values] = {
        ("tiny", DELAY.name): {1: 5.0, 2: 5.0},
        ("same", DELAY.name): {1: 5.0, 2: 5.0},
    }
    only = {(f"x{at}", DELAY.name): {1: 1.0} for at in range(33)}
    settings: dict[str, Any] = {f"key{at}": at for at in range(35)}
    a = side(before | small, "comparison", **settings)
    b = side(after | small | only | {("tiny", DELAY.name): {1: 5.0001, 2: 5.0001}}, **dict.fromkeys(settings, "other"))
    document = Difference(a, b).document()
    small_print = "10 numbers differ less; 1 number differs by less than matters"
    show(document, hint="--all shows more")
    short = capsys.readouterr().out
    assert "5 settings more; --all shows more" in short
    assert "x29 and 3 more; --all shows more" in short
    assert f"{small_print} (1 ms, 0.2 s, 0.1 % or the last digit); --all shows more" in short
    assert "1 of 42 numbers are the same" in short
    rows = {line.partition("one-way")[0].split()[-1] for line in short.splitlines() if "95th percentile" in line}
    assert rows == {*names[10:]}, "those that differ most"
    assert "key34" not in short
    show(document, detail=True, hint="--all shows more")
    whole = capsys.readouterr().out
    assert "--all" not in whole
    assert small_print not in whole
    for text in (whole, markdown(document), page(document)):
        assert all(word in text for word in ("c9", "tiny", "same", "key34", "x32"))
        assert " more" not in text.partition("What the numbers mean")[0]
    assert small_print in Difference(a, b).to_markdown()
    assert "tiny" not in Difference(a, b).to_markdown()
    shown = Difference(a, b)._repr_html_()
    assert "A: made · B: made" in shown
    assert small_print in shown


def test_where_nothing_matters_short_forms_have_no_table(capsys: pytest.CaptureFixture[str]) -> None:
    one = side({("gcc", DELAY.name): {1: 5.0, 2: 5.0}})
    show(Difference(one, one).document())
    same = "nothing differs\n\n1 of 1 numbers are the same; 2 of 2 runs are the same to the bit\n"
    assert capsys.readouterr().out == same
    assert "<table" not in Difference(one, one)._repr_html_()
    assert "| gcc |" in Difference(one, one).to_markdown(detail=True)


# --- results --------------------------------------------------------------------------------------


def test_runs_comparisons_and_sweeps(tmp_path: Path, cli: Cli) -> None:
    slow = scenario(BASE.replace('"20ms"', '"50ms"'))
    run(scenario()).save("r1")
    run(slow).save("r2")
    found = diff(run(scenario()), run(slow))
    assert found.settings == [Setting("links.up.delay", "20ms", "50ms")]
    delay = next(one for one in found.numbers if one.key == "one_way_delay_ms_p95")
    assert abs(delay.difference.mean - 30.0) < 1.0
    assert delay.difference.half is None, "one seed"
    assert found.runs == (0, 1)
    assert {one.where.a for one in found.numbers} == {("call",), ("link up",), ("link up.back",)}
    assert not diff(run(scenario()), run(scenario())).differs

    told = cli("diff", "r1", "r2")
    assert (told.code, told.err) == (0, "")
    lines = told.out.splitlines()
    assert any(line.split() == ["links.up.delay", "20ms", "50ms"] for line in lines)
    assert any("one-way delay, 95th percentile" in line and f"{delay.difference.mean:+.1f}" in line for line in lines)
    assert "numbers are the same" in told.out
    assert "queueing delay, mean" not in told.out
    assert "queueing delay, mean" in cli("diff", "r1", "r2", "--all").out
    assert cli("diff", "r1", "r2", "--exit-code").code == 1
    nothing = cli("diff", "r1", "r1", "--exit-code")
    assert (nothing.code, "nothing differs" in nothing.out) == (0, True)
    data = json.loads(cli("diff", "r1", "r2", "--json").out)
    assert data["settings"] == [{"key": "links.up.delay", "a": "20ms", "b": "50ms"}]
    assert (data["differs"], data["runs_same"], data["runs_paired"]) == (True, 0, 1)

    compare(["fixed:1Mbps", "fixed:500kbps"], scenario(), seeds=2).save("c1")
    compare(["fixed:1Mbps", "fixed:800kbps"], scenario(), seeds=3).save("c2")
    data = json.loads(cli("diff", "c1", "c2", "--json", "--all").out)
    assert {one["key"]: (one["a"], one["b"]) for one in data["settings"]} == {
        "controllers": ("fixed:1Mbps, fixed:500kbps", "fixed:1Mbps, fixed:800kbps"),
        "seeds": ("1, 2", "1 to 3"),
    }
    assert {one["controller"] for one in data["numbers"] if not one["same"]} == {"fixed:500kbps → fixed:800kbps"}
    assert {one["seeds"] for one in data["numbers"] if one["difference"] is not None} == {2}
    assert data["runs_same"] == 2

    sweep(scenario(), {"links.up.delay": ["10ms", "20ms"], "duration": ["3s"]}, out="s1", seeds=2)
    sweep(scenario(), {"links.up.delay": ["20ms", "30ms"], "duration": ["2s"]}, out="s2", seeds=2)
    data = json.loads(cli("diff", "s1", "s2", "--json").out)
    assert {one["key"] for one in data["settings"]} == {"set.duration", "values.links.up.delay"}
    assert data["only_a"] == [{"settings": "links.up.delay=10ms"}]
    assert data["only_b"] == [{"settings": "links.up.delay=30ms"}]
    assert {one["settings"] for one in data["numbers"]} == {"links.up.delay=20ms"}

    for argv, expected in [
        (("r1", "c1"), "r1 holds a run, and c1 a comparison; expected two of one kind"),
        (("r1", "nowhere"), "nowhere: there is no such folder; expected a run, comparison, sweep or suite result"),
        (("r1", "r1/run.json"), "r1/run.json: is a file; expected a run, comparison, sweep or suite result"),
        ((".", "r1"), ".: holds no run, comparison, sweep or suite result (no run.json, comparison.json, "),
    ]:
        got = cli("diff", *argv)
        assert (got.code, got.out) == (2, "")
        assert expected in got.err
    (tmp_path / "r2" / "run.json").write_text("{")
    assert cli("diff", "r1", "r2").code == 2
    with pytest.raises(InputError, match="one is a run and the other a sweep"):
        diff(run(scenario()), sweep(scenario(), {"duration": ["2s"]}, out="s3"))


def test_recorded_calls_have_no_luck_in_common_but_that_of_one_recording() -> None:
    made = run(scenario())

    def imported(sha256: str) -> Run:
        files = [{"file": "a.rtclog", "format": "event log", "sha256": sha256}]
        return Run({**made.about, "scenario": "", "seed": 0, "imported": {"files": files}}, {})

    one, other = imported("0123456789abcdef"), imported("fedcba9876543210")
    assert not any(number.paired for number in diff(one, other).numbers)
    assert diff(one, other).settings == [Setting("recordings", '["0123456789ab"]', '["fedcba987654"]')]
    assert all(number.paired for number in diff(one, one).numbers)
    assert not diff(one, one).differs


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
    who = f"python:{mine}:Mine"
    mine.write_text(MINE.replace("RATE", "700_000"))
    before = Plan.of(Suite.parse(SUITE), [who, "fixed:1Mbps"]).run("before")
    mine.write_text(MINE.replace("RATE", "300_000"))
    after = Plan.of(Suite.parse(SUITE.replace("500_000", "600_000")), [who, "fixed:1Mbps"]).run("after")
    found = diff(before, after)
    assert [(one.key, one.a, one.b) for one in found.settings[:1]] == [("rules.rate.at_least", "500000.0", "600000.0")]
    assert [one.key for one in found.settings[1:]] == [f"files or code of {who}"]
    assert [(one.where.a, one.a, one.b.partition(":")[0]) for one in found.answers] == [
        (("steps", who), "pass", "fail")
    ]
    assert {one.where.a[1] for one in found.numbers if not one.same} == {who}
    assert found.numbers[0].where.a == ("steps", who)
    told = cli("diff", "before", "after")
    assert (told.code, told.err) == (0, "")
    assert "verdict in A" in told.out
    assert "2 of 4 runs are the same to the bit" in told.out
