"""Papers with a mistake in the file, in the code or in the measures."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from support.cable import CODE, TOML, wrong
from tidegate import paper
from tidegate.errors import InputError, RunError
from tidegate.paper.reading import load


@pytest.mark.parametrize(
    ("original", "replaced", "message"),
    [
        ("year = 2001", "year = ", "3: not valid TOML: invalid value"),
        ("year = 2001", "", "p/paper.toml: year: the key is missing"),
        ("year = 2001", 'year = "2001"', '3: year: found "2001"; expected a whole number'),
        ('title = "A cable <that> carries what it can & no more"', 'title = ""', '1: title: found ""; expected text'),
        ("[[unstated]]", "[[unsaid]]", "8: unsaid: there is no such key; did you mean unstated?"),
        ('why = "the closed', 'because = "the closed', "11: unstated[1].because: there is no such key"),
        ('id = "share"', 'id = "a share"', '14: claim.a share.id: found "a share"; expected a letter or digit'),
        ('id = "strange"', 'id = "share"', '62: claim.share: the id "share" is used already ('),
        ('agrees = "loss.8 == 0"', "", "62: claim.strange: found"),
        ('agrees = "loss.8 == 0"', 'agrees = "loss.8 ="', '66: claim.strange.agrees: found "loss.8 ="; expected a rule'),
        ('agrees = "loss.8 == 0"', 'agrees = "loss.8 + 1"',
         '66: claim.strange.agrees: found "loss.8 + 1"; expected a comparison, such as gcc.loss < 0.1'),
        ('agrees = "loss.8 == 0"', 'agrees = "1 < 2"',
         '66: claim.strange.agrees: found "1 < 2"; the rule names no measure, so that its verdict would not depend on a run'),
        ('because = "delay.8 < 20"', 'because = "published > 2"',
         '60: claim.full-delay.because: found "published > 2"; the rule names no measure'),
        ('["0.5 points"]', "[]", "26: table.sent.columns[2].tolerance.within: found []; expected a list of length 1 or more"),
        ('agrees = "loss.8 == 0"', 'agrees = "loss.8 == 0"\nbecause = "loss.8 > 0"',
         "67: claim.strange.because: this rule has no reason to confirm; give reason as well"),
        ('agrees = "loss.8 == 0"', 'agrees = "loss.8 == 0"\nopen = "loss.8 > 0"',
         "67: claim.strange.open: there is no reason, which says what setting decides; give it as well"),
        ('agrees = "loss.8 == 0"', 'agrees = "loss.8 == 0"\nopen = "1 > 0"\nreason = "It is open."',
         '67: claim.strange.open: found "1 > 0"; the rule names no measure'),
        ('agrees = "loss.8 == 0"', 'agrees = "loss.8 == 0"\nopen = "loss.8 > 0"\nreason = "The queue decides it."',
         "62: claim.strange: its rule open says that an unstated setting decides it; name it in the decides of one"),
        ('why = "the closed', 'decides = ["starnge"]\nwhy = "the closed',
         '11: unstated[1].decides[1]: found "starnge"; there is no such claim; did you mean strange?'),
        ('why = "the closed', 'decides = ["strange"]\nwhy = "the closed',
         '11: unstated[1].decides[1]: found "strange", whose verdict does not depend on a setting; give it a rule open, or kind'),
        ("{delay.8}", "{delay.8", "59: claim.full-delay.reason: found"),
        ("{delay.8}", "{delay.8 +}", '59: claim.full-delay.reason: found "delay.8 +"; expected a rule'),
        ("published = 14", "published = nan", "44: claim.idle-delay.published: found nan; expected a finite number"),
        ("published = 14", 'published = "14"', '44: claim.idle-delay.published: found "14"; expected a number'),
        ("[900, 1100]", "[1100, 900]", "78: claim.long.published: found [1100, 900]; expected [minimum, maximum]"),
        ("[900, 1100]", "[900]", "78: claim.long.published: found [900]; expected a list of length 2 or more"),
        ('"0.001 ms"', '"0.001 s"',
         '46: claim.idle-delay.tolerance.within: found "0.001 s"; expected "5%", or "0.5 ms" in the unit of the number'),
        ('"0.001 ms"', '"much"', '46: claim.idle-delay.tolerance.within: found "much"; expected "5%", "0.5 ms", "2 sigma" or "count"'),
        ('"0.001 ms"', '"14 ms"', '46: claim.idle-delay.tolerance.within: found "14 ms" of 14, so that even 0 would agree; expected less'),
        ('"0.001 ms"', '"100%"', '46: claim.idle-delay.tolerance.within: found "100%" of 14, so that even 0 would agree; expected less'),
        ('id = "share"', 'id = "share"\nkind = "mine"', '15: claim.share.kind: found "mine"; expected'),
        ('"0.001 ms"', '"2 sigma"', '46: claim.idle-delay.tolerance.within: found "2 sigma"; the claim has no sigma'),
        (', why = "size over rate plus propagation"', "", "46: claim.idle-delay.tolerance.why: the key is missing"),
        ('["0.5 points"]', '["0.5%%"]', '26: table.sent.columns[2].tolerance.within: found "0.5%%"; expected "5%", or'),
        (', tolerance = { within = "1%", why = "the queue\'s fill at the end" }', "",
         "19: table.sent.tolerance: is missing (in the table, its column or its cells)"),
        ("1 = [1000, 0]", "1 = [1000]", "30: table.sent.rows.1: found 1 numbers; expected 2, one for each column"),
        ("1 = [1000, 0]", '1 = [1000, "x"]', "30: table.sent.rows.1[2]: found"),
        ('rows = ["8"]', 'rows = ["9"]', '35: table.sent.cells[1].rows: found "9"; available: 1, 2, 4, 8'),
        ('name = "loss"', 'name = "received"', "24: table.sent.columns: found received more than once; expected unique names"),
    ],
)  # fmt: skip
def test_a_wrong_file_is_named_with_line_and_key(original: str, replaced: str, message: str, tmp_path: Path) -> None:
    folder = wrong(tmp_path, original, replaced)
    with pytest.raises(InputError) as caught:
        load(folder)
    expected = message if message.startswith("p/") else f"p/paper.toml:{message}"
    assert expected in str(caught.value)
    assert "Traceback" not in str(caught.value)


def test_a_paper_makes_claims(tmp_path: Path) -> None:
    folder = wrong(tmp_path)
    (folder / "paper.toml").write_text(TOML[: TOML.index("[[claim]]")], "utf-8")
    with pytest.raises(InputError, match=r"makes no claim; expected \[\[claim\]\] or \[\[table\]\]$"):
        load(folder)


def test_the_closest_say_counts_in_a_table(tmp_path: Path) -> None:
    extra = """
[[table.cells]]
columns = ["received"]
tolerance = { within = "50%", why = "for this column" }
reason = "{row} of {column}, {ours}"
[[table.cells]]
rows = ["2"]
columns = ["received"]
quick = false
"""
    claims = {
        claim.id: claim
        for claim in load(
            wrong(tmp_path, 'because = "received.8 <= 2000"\n', f'because = "received.8 <= 2000"\n{extra}')
        ).claims
    }
    eight, two, loss = (claims[f"sent/{cell}"] for cell in ("8/received", "2/received", "2/loss"))
    assert eight.bound is not None
    assert (eight.bound.share, eight.bound.words) == (0.5, "50%")
    assert eight.trend is not None
    assert eight.trend.text == "received.8 >= 0.99 * received.4"
    # the later reason takes the place of the earlier one, and of what backed that
    assert (eight.because, eight.reason is not None and eight.reason.parts[0]) == (None, "8 of received, ")
    assert (eight.quick, two.quick, loss.quick) == (True, False, True)
    assert (loss.unit, loss.digits, eight.unit, eight.digits, eight.measure) == ("%", 1, "kbit/s", 0, "received.8")


# --- wrong code -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("x = ", "experiment.py: the file cannot be loaded: line 1: invalid syntax"),
        ("1 / 0", "experiment.py: the file cannot be loaded: ZeroDivisionError: division by zero (line 1, in <module>)"),
        ("exit(3)", "experiment.py: the file cannot be loaded: SystemExit: 3 (line 1, in <module>)"),
        ("x = 1", "experiment.py: the file defines no class Experiment(tidegate.paper.Experiment)"),
        ("class Experiment: ...", "experiment.py: the file defines no class Experiment(tidegate.paper.Experiment)"),
        ("from tidegate.paper import Experiment", "experiment.py: the file defines no class Experiment(tidegate.paper.Experiment)"),
        ("from tidegate import paper\nclass Experiment(paper.Experiment): ...", "experiment.py: the file cannot be loaded: TypeError: "),
    ],
)  # fmt: skip
def test_code_that_cannot_be_loaded(code: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        paper.run(wrong(tmp_path, code=code))
    assert message in str(caught.value)


def test_code_that_cannot_be_loaded_leaves_no_module(tmp_path: Path) -> None:
    folder = wrong(tmp_path, code="x = 1 / 0").rename(tmp_path / "unfinished")
    with pytest.raises(InputError, match="division by zero"):
        paper.run(folder)
    assert "tidegate_paper_unfinished" not in sys.modules


@pytest.mark.parametrize(
    ("original", "replaced", "message"),
    [
        ('done[key, seed][metric]', 'done[key, seed]["lost"]', r"experiment\.py: KeyError: 'lost' \(line \d+, in "),
        ("return {**run.metrics(),", "return {**run.nothing(),", r"experiment\.py: AttributeError: .*nothing.* \(line \d+, in summary\)$"),
        ('"delays"', '"sent"', r"experiment\.py: two tables are called sent; give each table its own name$"),
        ('"delays"', '"claims"', r"experiment\.py: two tables are called claims; give each"),
        ("quick_seeds = 2", "quick_seeds = 'x'", r"experiment\.py: TypeError: "),
        ("measures = {}", "raise SystemExit(3)", r"experiment\.py: SystemExit: 3 \(line \d+, in outcome\)$"),
        ("measures = {}", "return None", r"experiment\.py: TypeError: outcome\(\) returned None; expected an Outcome$"),
        ("measures = {}", "return Outcome({'a': 1.5})", r"TypeError: measures: found 1\.5; expected a Measure \("),
        ("measures = {}", "return Outcome({}, notes=[3])", r"TypeError: notes: found 3; expected a str \("),
        ("measures = {}", "return Outcome({}, [Table('a', 'b', ['c'], [[{}]])])",
         r"TypeError: table a: found {}; expected text, a number or a Measure \("),
    ],
)  # fmt: skip
def test_code_that_fails_is_named(original: str, replaced: str, message: str, tmp_path: Path) -> None:
    assert original in CODE
    with pytest.raises(RunError, match=message):
        paper.run(wrong(tmp_path, code=CODE.replace(original, replaced, 1)))


def test_claims_that_nobody_measures_are_all_named(tmp_path: Path) -> None:
    folder = wrong(tmp_path, 'measure = "delay.1"', 'measure = "delay.0"')
    text = (folder / "paper.toml").read_text("utf-8").replace('"significant(jittered.1', '"significant(jitter.1')
    (folder / "paper.toml").write_text(text, "utf-8")
    with pytest.raises(InputError) as caught:
        paper.run(folder)
    lines = str(caught.value).splitlines()
    assert [line.partition("paper.toml")[2] for line in lines] == [
        ":40: idle-delay: delay.0: the experiment has no such measure; did you mean delay.8?",
        ":68: jitter: jitter.1: the experiment has no such measure; did you mean jittered.1?",
    ]
