"""The document of a suite's result: the answer, every cell with what is behind it, and bookkeeping at the end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Literal

from tidegate.comparison.doubts import NAMED
from tidegate.output.chart import Dot, Trail, mean_dot, rate_delay, rate_title
from tidegate.output.document import (
    NOTHING,
    SAME_BITS,
    Block,
    Cells,
    Column,
    Details,
    Document,
    Drawing,
    Items,
    Judged,
    Number,
    Pairs,
    Paragraph,
    Phrase,
    Row,
    Section,
    Sentence,
    Table,
    Words,
    again,
    capitalised,
    notes,
)
from tidegate.output.document import Cell as DocumentCell
from tidegate.output.palette import Look, looks
from tidegate.results.metrics import Metric
from tidegate.results.stats import Interval
from tidegate.suite import cells, numbers, verdicts
from tidegate.suite.scores import SCORED, Score, scores
from tidegate.suite.tables import cell_summary
from tidegate.wording import counted, listed

if TYPE_CHECKING:
    from tidegate.suite.model import RuleTable
    from tidegate.suite.result import Cell, SuiteResult
    from tidegate.suite.verdicts import Check

Names = Mapping[str, Phrase]
"""Every controller's name beside its line."""

_ABREAST = 5
"""Controllers side by side on a page of paper."""
_SIGNS = {"pass": "✓", "fail": "✗", "error": "!", "not run": NOTHING}
"""The sign of each verdict, beside its word: colour alone says nothing to many, and nothing on paper."""
_TONES: Mapping[str, Literal["", "good", "odd", "bad"]] = {"pass": "good", "fail": "bad", "error": "odd", "not run": ""}
_CARRYING = {"receive_rate_bps", "share_fraction"}
"""Numbers that are compared of controllers that carry little, too."""
_RANK = Metric(
    "rank", "rank by power", "", "lower", digits=0,
    definition="Of those that pass most cases: one more than the number of them with significantly greater power "
    "(95 %, paired run by run).",
)  # fmt: skip
_MOST_WARNINGS, _MOST_SEEDS = 30, 20


def document(result: SuiteResult) -> Document:
    """Builds the document of a suite's result."""
    suite, look_of, ranking = result.suite, looks(result.controllers, _ran(result)), scores(result)
    names = {name: Phrase(name, "label", look=look_of[name]) for name in result.controllers}
    more: dict[str, Iterator[Block]] = {
        "Noisy sessions": _noisy(result),
        "Rate against delay in all cases": _drawing(result, ranking, look_of),
        "The worst case of each controller": _worst(result, ranking, names),
        "Runs that failed": _failed(result),
        "Cases that were not run": _not_run(result),
        "Rules": _rules(result),
        "Questions that these cases cannot answer": _doubts(result),
        "Warnings": _warnings(result),
    }
    blocks = [Section(title, contents) for title, blocks_of in more.items() if (contents := list(blocks_of))]
    return Document(
        f"{suite.name}: {listed(result.controllers, most=6)}",
        [_scores(ranking, names), *_beside(result, ranking, names), _scorecard(result, names, look_of)],
        [*blocks, _again(result), _definitions(result)],
        _facts(result),
        suite.table.description,
    )


def _ran(result: SuiteResult) -> Mapping[str, set[str]]:
    """Returns the controllers that ran under each contender's name, which does not tell the class."""
    ran: dict[str, set[str]] = {}
    for _, name, _, row in result.runs():
        flows = (flow for flow in row["flows"] if flow["flow"] in row["contenders"])
        ran.setdefault(name, set()).update(str(flow["controller"]) for flow in flows if flow.get("controller"))
    return ran


def _facts(result: SuiteResult) -> list[str]:
    suite, version = result.suite, dict(result.about.get("versions", {})).get("tidegate")
    ran = sum(not case.not_run for case in suite.cases)
    facts = [f"Source: {suite.table.source}"] if suite.table.source else []
    facts.append(counted(len(suite.cases), "case") + (f", {ran} of them run" if ran < len(suite.cases) else ""))
    facts += [counted(len(result.controllers), "controller"), result.seeds_shown]
    return [*facts, f"tidegate {version}"] if version else facts


# --- the answer -----------------------------------------------------------------------------------


def _scores(ranking: Sequence[Score], names: Names) -> Section:
    """Builds the table of passed cases, ranks and means."""
    with_rules = any(score.rules for score in ranking)
    with_ranks = any(score.rank is not None for score in ranking)
    rows = []
    for score in ranking:
        means = [_number(score, name, score.means[name]) for name, _ in SCORED]
        passed: list[DocumentCell] = [f"{score.passed} of {score.of}"]
        passed += [f"{score.met} of {score.rules}"] if with_rules else []
        passed += [Number(_RANK, Interval.of([score.rank]))] if with_ranks else []
        rows.append(Row([names[score.controller], *passed, *means]))
    remarks = notes(
        "The controller that passes most cases is first. Numbers are means over the cases; with several seeds they "
        "have a 95 % interval over seeds, which holds for these cases and no others.",
        "Controllers that pass most cases are ranked by power, log(rate / delay): the rank is one more than the number "
        "of them with significantly greater power (95 %, paired run by run)."
        if with_ranks
        else "",
        detail=True,
    )
    remarks += [
        Paragraph([Phrase(f"{score.controller} carries too little", "strong"), f" to compare its delays: {score.out}."])
        for score in ranking
        if score.out
    ]
    columns = [Column("cases passed")]
    columns += [Column("rules met")] if with_rules else []
    columns += [Column(_RANK.label, _RANK)] if with_ranks else []
    return Section("The answer", [Paragraph(_sentence(ranking)), _means(rows, *columns), *remarks])


def _means(rows: Sequence[Row], *columns: Column) -> Table:
    about = [numbers.metric_of(name) for name, _ in SCORED]
    return Table([Column("controller"), *columns, *(Column(m.label, m) for m in about)], rows, "scores")


def _number(score: Score, name: str, value: Interval, *, signed: bool = False) -> Number:
    """Returns a number of a controller; empty for delay and loss of one without a rank."""
    shown_value = value if not score.out or name in _CARRYING else Interval.of([])
    sure = signed and shown_value.half is not None and abs(shown_value.mean) > shown_value.half
    return Number(numbers.metric_of(name), shown_value, "sure" if sure else "", signed=signed)


def _sentence(ranking: Sequence[Score]) -> list[Words]:
    """Writes the sentence on those that pass most cases, and on their power."""
    most, ran = max(score.passed for score in ranking), counted(max(score.of for score in ranking), "case")
    leading = [score for score in ranking if score.passed == most > 0]
    if len(ranking) == 1:
        return [Phrase(ranking[0].controller, "strong"), f" passes {most} of {ran}."]
    if not leading:
        return ["No controller passes a case."]
    verb = "passes" if len(leading) == 1 else "pass"
    sentence: list[Words] = [_controllers(leading), f" {verb} most cases: {most} of {ran}."]
    if not any(score.rules for score in ranking):
        sentence = []  # without rules every case is passed
    able = [score for score in leading if not score.out]
    first = [score for score in able if score.rank == 1]
    if len(first) == 1:
        sentence += [" By power ", _controllers(first), " is first."]
    elif first:
        sentence += [" By power ", _controllers(first), " are first, and cannot be told apart."]
    elif len(able) > 1:
        these: Words = "they" if sentence and able == leading else _controllers(able)
        sentence += [" By power ", these, " cannot be told apart."]
    return sentence


def _controllers(listed_scores: Sequence[Score]) -> Phrase:
    return Phrase(listed([score.controller for score in listed_scores], most=6), "strong")


def _beside(result: SuiteResult, ranking: Sequence[Score], names: Names) -> Iterator[Section]:
    """Differences against the baseline."""
    rows = []
    for score in ranking:
        if score.controller != result.baseline:
            differences = [_number(score, name, score.differences[name], signed=True) for name, _ in SCORED]
            rows.append(Row([names[score.controller], *differences]))
    if rows:
        seeds = "The interval is computed over seeds: it is valid only for these cases."
        remarks = notes(
            "Difference from the baseline: the mean of the differences run by run (the same seed draws the same random "
            "numbers) with its 95 % interval; bold where the interval excludes zero.",
            seeds if len(result.seeds) > 1 else "With one seed the interval is computed over cases.",
        )
        yield Section(f"Difference from {result.baseline}", [_means(rows), *remarks], detail=True)


# --- every cell -----------------------------------------------------------------------------------


def _scorecard(result: SuiteResult, names: Names, look_of: Mapping[str, Look]) -> Section:
    rows = []
    for row_number, case in enumerate(result.suite.cases):
        head: list[Words] = [Phrase(case.name, "label"), Phrase(case.title, "small")]
        if case.not_run:
            rows.append(Row([head, f"{_SIGNS['not run']} not run: {case.not_run}"], detail=True))
        else:
            verdict_cells = [
                _judged(result.cell(case.name, name), (row_number, column_number))
                for column_number, name in enumerate(names)
            ]
            rows.append(Row([head, *verdict_cells]))
    counts = [(result.count(name, "pass"), result.count(name, "fail")) for name in names]
    rows.append(Row(["passed", *(f"{a} of {a + b}" for a, b in counts)], kind="sum", detail=True))
    card = Cells(
        Table([Column("case"), *(Column(name, left=True) for name in names.values())], rows, abreast=_ABREAST),
        partial(cells.data, result, look_of),
        "Open a cell for its rules, numbers and charts; arrow keys go from cell to cell.",
        "Without scripts the cells cannot be opened; scores.csv has all their numbers.",
    )
    remarks = notes(
        "Each verdict is followed by the deciding rule: the rule broken by the widest margin, or, if none is broken, "
        "the rule kept by the narrowest. A kept rule that is close (≈) follows it.",
        detail=True,
    )
    if any(check.close for cell in result.cells for check in cell.broken or cell.checks):
        remarks += notes("≈: a limit lies within the 95 % interval of the number: other seeds could decide otherwise.")
    return Section("Scorecard", [card, *remarks])


def _judged(cell: Cell, opens: tuple[int, int]) -> Judged:
    """Returns sign and word of a verdict, with the number that decides it."""
    behind = cell.brief[:90] or "no rule"
    if cell.deciding is not None:
        also = [check for check in cell.hanging[:1] if not cell.broken and check is not cell.deciding]
        behind = "; ".join(map(_deciding, [cell.deciding, *also]))
    sign = f"{_SIGNS[cell.state]} {cell.state}"
    brief = ": ".join(filter(None, [cell.state, cell_summary(cell)]))
    return Judged([Phrase(sign, "strong"), behind], _TONES[cell.state], opens=opens, brief=brief)


def _deciding(check: Check) -> str:
    """Returns a rule's name and number."""
    value = "no value" if check.missing else check.marked
    return f"{check.rule.name} " + value.replace(" ", "\N{NO-BREAK SPACE}")


def _noisy(result: SuiteResult) -> Iterator[Block]:
    if result.noisy:
        yield Paragraph(
            "Sessions of real programs on a machine that was too busy: their numbers depend on the machine's load."
        )
        yield Items([
            [f"{case}, ", Phrase(name, "code"), f", seed {seed}: {why}"] for case, name, seed, why in result.noisy
        ])  # fmt: skip


def _drawing(result: SuiteResult, ranking: Sequence[Score], look_of: Mapping[str, Look]) -> Iterator[Block]:
    """Rate against delay, a dot for each case."""
    trails = [trail for score in ranking if (trail := _trail(result, score, look_of[score.controller])).dots]
    if trails:
        caption = (
            "Each small mark is a case: the mean receive rate of its calls, and the 95th percentile of one-way delay "
            "of its worst call, both averaged over seeds. Each large mark is the mean of a controller's cases. The "
            "ellipse is one standard deviation of the cases in every direction, from their covariance in the chart's "
            "scales, as Pantheon draws it (Yan et al., USENIX ATC 2018). Delay runs from right to left: up and right "
            "is better."
        )
        yield Drawing(rate_delay(trails, "wide", legend=True), caption=caption)


def _trail(result: SuiteResult, score: Score, look: Look) -> Trail:
    name, joined_by, dots = score.controller, dict(SCORED), []
    for case in result.suite.cases:
        delay, rate = (
            result.interval(case.name, name, m, joined_by[m]) for m in ("one_way_delay_ms_p95", "receive_rate_bps")
        )
        if delay.count and rate.count and delay.mean > 0:
            x, y = delay.mean, rate.mean / 1e6
            dots.append(Dot(x, y, rate_title(f"{name}, {case.name}", x, y), size="small"))
    if dots:
        dots.append(mean_dot(name, dots))
    rank = "" if score.rank is None else f", rank {score.rank}"
    return Trail(look, dots, name, spread=True, beside=f"{score.passed} of {score.of}{rank}")


def _worst(result: SuiteResult, ranking: Sequence[Score], names: Names) -> Iterator[Block]:
    """Lists the case in which each controller breaks most rules, with the numbers."""
    rows: list[list[DocumentCell]] = []
    for score in ranking:
        cell, name = result.worst(score.controller), names[score.controller]
        if cell is None:
            rows.append([name, "breaks no rule" if score.of else "no case was run to its end", ""])
        else:
            broken = sorted(cell.broken, key=lambda check: check.slack)
            rows.append([name, Phrase(cell.case, "label"), Items([*map(_broken, broken)])])
    yield _prose("controller", "case", "broken rules, with the excess", rows=rows)
    yield from notes("For each controller the case in which the greatest share of the rules is broken.")


def _broken(check: Check) -> Sentence:
    return [Phrase(check.rule.name, "strong"), f": {check.text} ", Phrase(f"({check.beyond})", "bad")]


def _prose(*heads: str, rows: Sequence[Sequence[DocumentCell]]) -> Table:
    return Table([Column(head, left=True) for head in heads], [*map(Row, rows)], "prose")


# --- bookkeeping ----------------------------------------------------------------------------------


def _failed(result: SuiteResult) -> Iterator[Block]:
    rows = [[cell.case, cell.controller, cell.why] for cell in result.cells if cell.state == "error"]
    if rows:
        yield _prose("case", "controller", "why", rows=rows)


def _not_run(result: SuiteResult) -> Iterator[Block]:
    reasons: dict[str, list[str]] = {}
    for case in result.suite.cases:
        if case.not_run:
            reasons.setdefault(case.not_run, []).append(f"{case.name} ({case.title})" if case.title else case.name)
    if reasons:
        yield Pairs([(why, "; ".join(names)) for why, names in reasons.items()])


def _rules(result: SuiteResult) -> Iterator[Block]:
    met: dict[str, list[bool]] = {rule.name: [] for rule in result.suite.rules}
    for check in (check for cell in result.cells for check in cell.checks):
        met[check.rule.name].append(check.passed)
    if met:
        yield Pairs([(rule.name, _rule(rule, met[rule.name])) for rule in result.suite.rules])
    else:
        yield Paragraph("This suite has no rules: every cell that was run counts as passed.")


def _rule(rule: RuleTable, met: Sequence[bool]) -> Sentence:
    label = capitalised(numbers.metric_of(rule.metric).label)
    joined = "" if rule.of is None else f" ({rule.of})"
    beside = f" relative to {rule.relative_to}" if rule.relative_to else ""
    cases = "in every case" if rule.cases == ["*"] else f"in {', '.join(rule.cases)}"
    controllers = "" if rule.controllers == ["*"] else f", for {', '.join(rule.controllers)}"
    number = f"{label}{joined}{beside}: {verdicts.limit(rule)}, {cases}{controllers}."
    sentence = f" {number} Met in {sum(met)} of {counted(len(met), 'cell')}. Source: {rule.source}. {rule.why}"
    return [Phrase(f"{capitalised(rule.says).rstrip('.')}.", "words"), sentence]


def _doubts(result: SuiteResult) -> Iterator[Block]:
    if result.doubts:
        yield Items([_of_cells(doubt, listed(names, most=NAMED)) for doubt, names in result.doubts.items()])


def _warnings(result: SuiteResult) -> Iterator[Block]:
    by_text: dict[str, set[str]] = {}
    for case, controller, _, row in result.runs():
        for warning in row["warnings"]:
            text = warning if isinstance(warning, str) else f"{warning['key']}: {warning['says']}"
            by_text.setdefault(text, set()).add(f"{case}, {controller}")
    if by_text:
        items = [
            _of_cells(text, f"{counted(len(places), 'cell')}, such as {min(places)}")
            for text, places in by_text.items()
        ]
        rest = [f"and {len(by_text) - _MOST_WARNINGS} more"] if len(by_text) > _MOST_WARNINGS else []
        yield Details(f"Warnings of runs ({len(by_text)})", [Items([*items[:_MOST_WARNINGS], *rest])])


def _of_cells(text: str, places: str) -> Sentence:
    return [f"{text} ", Phrase(f"({places})", "soft")]


def _again(result: SuiteResult) -> Section:
    about = result.about
    seeds = ", ".join(map(str, result.seeds[:_MOST_SEEDS])) + (" ..." if len(result.seeds) > _MOST_SEEDS else "")
    remarks = notes(
        f"Seeds: {seeds or 'none'}. {SAME_BITS}. scores.csv, beside this page, has every number of every run with its "
        "digest, and junit.xml the verdicts for other programs."
    )
    command = {"The command that made this result:": str(about.get("command", ""))}
    versions, text = dict(about.get("versions", {})), ("The suite (TOML)", result.suite.text)
    return again(command, *remarks, versions=versions, text=text)


def _definitions(result: SuiteResult) -> Details:
    """Lists the definitions of the numbers in rules and scores, with their names in rules."""
    names = dict.fromkeys([*(name for name, _ in SCORED), *(rule.metric for rule in result.suite.rules)])
    metrics = [numbers.metric_of(name) for name in names]
    pairs: list[tuple[str, Sentence]] = [
        (capitalised(m.label), [Phrase(m.name, "code"), f": {m.definition}"]) for m in metrics
    ]
    return Details("What the numbers mean", [Pairs(pairs)])
