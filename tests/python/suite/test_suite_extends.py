"""Suites that extend another one, and `suite show --toml`."""

from __future__ import annotations

from pathlib import Path

import pytest

from support import ROOT, Cli
from tidegate import _shipped
from tidegate.errors import InputError
from tidegate.suite import Plan, Suite, SuiteResult

OURS = """
extends = "smoke"
seeds = 2

[without]
cases = ["5.[16]"]
rules = ["fair"]

[[cases]]
name = "home"
scenario = "home-broadband"
set = { duration = "5s" }

[[cases]]
name = "loss"
scenario = "lossy-wifi"
set = { duration = "5s" }

[[rules]]
name = "low-loss"
says = "At most 3 in 100 packets are lost."
metric = "loss_fraction"
at_most = 0.03
source = "ours"
"""


def write(folder: Path, **texts: str) -> None:
    """Writes files of suites by their names."""
    folder.mkdir(exist_ok=True)
    for name, text in texts.items():
        (folder / f"{name}.toml").write_text(text, encoding="utf-8")


def test_a_suite_adds_to_another_and_replaces_parts_of_it(tmp_path: Path) -> None:
    write(tmp_path, ours=OURS)
    ours, smoke = Suite.load(tmp_path / "ours.toml"), Suite.load("smoke")
    assert [case.name for case in ours.cases] == ["5.4", "fq-codel", "loss", "cell", "home"]
    assert (ours.table.seeds, ours.table.baseline, ours.table.source) == (2, "gcc", smoke.table.source)
    rules, before = ({rule.name: rule for rule in suite.rules} for suite in (ours, smoke))
    # those that were about 5.1 and 5.6 alone are gone with them, others have forgotten them
    assert [*rules] == [
        name for name in before if name not in {"fair", "converges", "minimum-rate", "leaves-room-for-tcp"}
    ]
    assert before["low-delay"].cases == rules["low-delay"].cases == ["5.[14]", "fq-codel", "loss"]
    assert rules["low-loss"].at_most == 0.03
    assert rules["low-loss"].cases == ["*"]
    wifi = next(case.scenario for case in ours.cases if case.name == "loss")
    assert wifi is not None
    assert wifi.duration == 5_000_000_000


def test_rules_forget_cases_that_are_gone(tmp_path: Path) -> None:
    write(tmp_path, ours='extends = "smoke"\n[without]\ncases = ["fq-codel"]\n')
    rules = {rule.name: rule.cases for rule in Suite.load(tmp_path / "ours.toml").rules}
    assert rules["low-delay"] == ["5.[14]", "loss"]


def test_files_extend_files_and_each_finds_its_own_scenarios(tmp_path: Path, cli: Cli) -> None:
    scenario = cli("scenario", "show", "home-broadband").out
    write(tmp_path / "base", home=scenario, base='[[cases]]\nname = "a"\nscenario = "home.toml"\n')
    write(
        tmp_path / "top",
        middle='extends = "../base/base.toml"\nseeds = 3\n[[cases]]\nname = "b"\nscenario = "home-broadband"\n',
    )
    write(tmp_path, top='extends = "top/middle.toml"\nbaseline = "nada"\n')
    top = Suite.load(tmp_path / "top.toml")
    assert ([case.name for case in top.cases], top.table.seeds, top.table.baseline) == (["a", "b"], 3, "nada")
    # as one file it names the scenario from where it is
    write(tmp_path / "base", flat=top.to_toml(tmp_path / "base"))
    assert 'scenario = "home.toml"' in (tmp_path / "base" / "flat.toml").read_text()
    keys = [
        [point.key for point in Plan.of(suite, ["gcc"]).points]
        for suite in (top, Suite.load(tmp_path / "base" / "flat.toml"))
    ]
    assert keys[0] == keys[1]


def networks(folder: Path) -> Path:
    """A folder of one recorded network."""
    (folder / "networks").mkdir()
    (folder / "networks" / "steps").write_text("".join(f"{second} {1 + second % 3}\n" for second in range(200)))
    return folder / "networks"


@pytest.mark.parametrize("name", _shipped.suites())
def test_what_show_prints_is_the_same_suite(
    name: str, tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The key of a run is the hash of all that it depends on: equal keys and equal rules give equal scorecards."""
    traces = networks(tmp_path)
    monkeypatch.chdir(tmp_path)
    # with and without a file in between, which extends it
    write(tmp_path, copy=cli("suite", "show", name, "--toml").out, ours=f'extends = "{name}"\n')
    write(tmp_path, resolved=cli("suite", "show", "ours.toml", "--toml").out)
    shipped = Suite.load(name, traces=traces)
    patterns = () if len(shipped.cases) < 60 else (shipped.cases[0].name, shipped.cases[-1].name)
    for file in ("copy.toml", "ours.toml", "resolved.toml"):
        suite = Suite.load(file, traces=traces)
        assert [case.name for case in suite.cases] == [case.name for case in shipped.cases]
        assert suite.rules == shipped.rules
        assert (suite.table.seeds, suite.table.baseline) == (shipped.table.seeds, shipped.table.baseline)
        plans = [Plan.of(each, ["gcc"], seeds=1, cases=patterns) for each in (suite, shipped)]
        assert [point.key for point in plans[0].points] == [point.key for point in plans[1].points]
    assert "extends" not in Suite.load("resolved.toml").text
    assert (tmp_path / "copy.toml").read_text() == (_shipped.SUITES / f"{name}.toml").read_text()


def test_a_result_is_read_without_the_suite_that_was_extended(tmp_path: Path) -> None:
    write(
        tmp_path,
        base='[[cases]]\nname = "a"\nscenario = "home-broadband"\nset = { duration = "3s" }\n',
        ours='extends = "base.toml"\n',
    )
    before = Plan.of(tmp_path / "ours.toml", ["fixed:1Mbps"], seeds=1).run(tmp_path / "out")
    (tmp_path / "base.toml").unlink()
    assert [cell.state for cell in SuiteResult.load(tmp_path / "out").cells] == [cell.state for cell in before.cells]


def test_show_and_check_say_what_is_different(tmp_path: Path, cli: Cli) -> None:
    write(tmp_path, ours=OURS)
    says = (
        "extends smoke; adds case home; replaces case loss; leaves out cases 5.1 and 5.6; replaces rule low-loss; "
        "leaves out rules converges, fair, leaves-room-for-tcp and minimum-rate"
    )
    assert f"({says})" in cli("suite", "check", "ours.toml").out
    assert says in cli("suite", "show", "ours.toml").out
    refused = cli("suite", "show", "smoke", "--toml", "--json")
    assert refused.code == 2
    assert "--toml: the option does not go with --json" in refused.err


def test_a_case_for_which_there_are_few_rules_is_said(tmp_path: Path, cli: Cli) -> None:
    new = '[[cases]]\nname = "{}"\nscenario = "rfc8867-5.1-variable-capacity"\nset = {{ duration = "2s", "flows.call.stop" = "2s" }}\n'
    said = "few of 9 rules are for satellite (no-starvation): rules name their cases by patterns"
    write(tmp_path, ours='extends = "rmcat"\n' + new.format("satellite"))
    assert said in cli("suite", "check", "ours.toml").err
    assert said in cli("suite", "run", "ours.toml", "fixed:1Mbps", "--cases", "satellite", "--seeds", "1").err
    write(tmp_path, ours='extends = "rmcat"\n' + new.format("5.1-satellite"))
    assert "few of" not in cli("suite", "check", "ours.toml").err


def test_the_suite_of_the_page_that_extends_another_is_one(
    tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (ROOT / "docs" / "suites.md").read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    write(tmp_path, ours=page.partition('title="ours.toml"}\n')[2].partition("```")[0])
    printed = page.partition("$ tidegate suite check ours.toml\n")[2].partition("```")[0]
    assert cli("suite", "check", "ours.toml").out == printed


CASE = '[[cases]]\nname = "x"\nscenario = "home-broadband"\n'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('extends = "rmcatt"\n', "a.toml:1: extends: rmcatt is not a suite; did you mean rmcat?"),
        ('extends = "no.toml"\n', "no.toml: there is no such file"),
        ("extends = 3\n", "a.toml:1: extends: found 3; expected text"),
        ('extend = "smoke"\n', "a.toml:1: extend: there is no such key; did you mean extends?"),
        ('extends = "a.toml"\n', "a.toml:1: extends: found a.toml, but suites would extend each other without an end"),
        ('extends = "smoke"\n[without]\ncases = ["5.9"]\n', "a.toml:3: without.cases: found 5.9, which matches no case of smoke; did you mean 5.6?"),
        ('extends = "smoke"\n[without]\nrules = ["low-dellay"]\n', "a.toml:3: without.rules: found low-dellay, which matches no rule of smoke; did you mean low-delay?"),
        ('extends = "rmcat"\n[without]\ncases = ["5.1,delay=50ms"]\n', "which is one combination of the case 5.1; expected 5.1"),
        ('extends = "smoke"\n[without]\ncase = ["5.1"]\n', "a.toml:3: without.case: there is no such key; did you mean cases?"),
        ('extends = "smoke"\n[without]\ncases = ["*"]\n', "a.toml:3: without.cases: leaves no case of smoke"),
        ('extends = "rmcat"\n[without]\ncases = ["5.3-reference"]\n', "a.toml:1: extends: the rule feedback is relative to 5.3-reference, which is no case here; expected that case, or feedback in without.rules"),
        (f'[without]\ncases = ["x"]\n{CASE}', "a.toml:1: without: is for a suite that extends another"),
        (f'extends = "smoke"\n{CASE}[[rules]]\nname = "fair"\nsays = "x"\nmetric = "loss"\nsource = "x"\n', "a.toml:8: rules.fair.metric: found loss; expected a metric"),
        (f'extends = "smoke"\n{CASE}{CASE}', "x is given twice"),
        ('extends = "smoke"\ncases = 3\n', "a.toml:2: cases: found 3; expected a list"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_with_its_place(
    text: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, a=text)
    with pytest.raises(InputError) as caught:
        Suite.load("a.toml")
    assert said in str(caught.value)


def test_what_is_wrong_in_the_other_file_is_said_with_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, a='extends = "b.toml"\n', b='extends = "c.toml"\n', c='extends = "a.toml"\n')
    with pytest.raises(InputError, match=r"c.toml:1: extends: .*\(a.toml -> b.toml -> c.toml -> a.toml\)"):
        Suite.load("a.toml")
    write(tmp_path, b="seeds = 0\n" + CASE)
    with pytest.raises(InputError, match=r"^b.toml:1: seeds: found 0"):
        Suite.load("a.toml")
    write(tmp_path, b=CASE.replace("home-broadband", "home-broadbant"))
    with pytest.raises(InputError, match=r"^b.toml:1: cases.x: home-broadbant: there is no such scenario"):
        Suite.load("a.toml")
    write(tmp_path, **{f"s{number}": f'extends = "s{number + 1}.toml"\n' for number in range(30)})
    with pytest.raises(InputError, match="found more than 20 suites in a row"):
        Suite.load("s0.toml")
