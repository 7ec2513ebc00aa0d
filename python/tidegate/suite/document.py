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
    begun,
    notes,
)
from tidegate.output.document import Cell as DocumentCell
from tidegate.output.palette import Look, looks
from tidegate.results.metrics import Metric
from tidegate.results.stats import Interval
from tidegate.suite import cells, numbers, verdicts
from tidegate.suite.scores import SHOWN, Score, scores
from tidegate.suite.tables import short
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
"""What also those have who are out."""
_RANK = Metric(
    "rank", "rank by power", "", "lower", digits=0,
    definition="One more than the number of those whose power is greater for certain (95 %, paired run by run).",
)  # fmt: skip
_MOST_WARNINGS, _MOST_SEEDS = 30, 20


def document(result: SuiteResult) -> Document:
    """What there is to say of a suite's result."""
    suite, own, every = result.suite, looks(result.controllers, _ran(result)), scores(result)
    names = {name: Phrase(name, "label", look=own[name]) for name in result.controllers}
    more: dict[str, Iterator[Block]] = {
        "Noisy sessions": _noisy(result),
        "Rate against delay, over all cases": _drawing(result, every, own),
        "The worst case of each": _worst(result, every, names),
        "Runs that failed": _failed(result),
        "Cases that were not run": _not_run(result),
        "Rules": _rules(result),
        "What this cannot tell": _doubts(result),
        "Warnings": _warnings(result),
    }
    blocks = [Section(title, made) for title, some in more.items() if (made := list(some))]
    return Document(
        f"{suite.name}: {listed(result.controllers, most=6)}",
        [_scores(every, names), *_beside(result, every, names), _scorecard(result, names, own)],
        [*blocks, _again(result), _definitions(result)],
        _facts(result),
        suite.table.description,
    )


def _ran(result: SuiteResult) -> Mapping[str, set[str]]:
    """The controllers that ran under each contender's name: names in tables do not tell whose class it is."""
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


def _scores(every: Sequence[Score], names: Names) -> Section:
    """Who stands where."""
    rows = []
    for score in every:
        means = [_number(score, name, Interval.of([score.means[name]])) for name, _ in SHOWN]
        rank = Number(_RANK, Interval.of([score.rank]))
        rows.append(Row([names[score.controller], f"{score.passed} of {score.of}", rank, *means]))
    said = notes(
        "Means over the cases; who passes most stands first. A rank goes by power (log of rate over delay): one more "
        "than the number of those whose power is greater for certain (95 %, paired run by run). Who cannot be told "
        "apart shares a rank.",
        detail=True,
    )
    said += [
        Paragraph([Phrase(f"{score.controller} has no rank", "strong"), f": {score.out}."])
        for score in every
        if score.out
    ]
    table = _means(rows, Column("cases passed"), Column(_RANK.label, _RANK))
    return Section("The answer", [Paragraph(_sentence(every), detail=True), table, *said])


def _means(rows: Sequence[Row], *further: Column) -> Table:
    about = [numbers.about(name) for name, _ in SHOWN]
    return Table([Column("controller"), *further, *(Column(m.label, m) for m in about)], rows, "scores")


def _number(score: Score, name: str, value: Interval, *, signed: bool = False) -> Number:
    """A number of a controller; nothing of delay where it is out."""
    known = value if not score.out or name in _CARRYING else Interval.of([])
    sure = signed and known.half is not None and abs(known.mean) > known.half
    return Number(numbers.about(name), known, "sure" if sure else "", signed=signed)


def _sentence(every: Sequence[Score]) -> list[Words]:
    """Who passes most, and who is first."""
    most, ran = max(score.passed for score in every), counted(max(score.of for score in every), "case")
    passing = [score.controller for score in every if score.passed == most]
    first = [score.controller for score in every if score.rank == 1]
    if len(every) == 1:
        return [Phrase(passing[0], "strong"), f" passes {most} of {ran}."]
    said: list[Words] = ["Nobody passes a case."]
    if most:
        verb = "passes" if len(passing) == 1 else "pass"
        said = [Phrase(listed(passing, most=6), "strong"), f" {verb} most: {most} of {ran}."]
    if first:
        verb = "has" if len(first) == 1 else "share"
        said += [" ", Phrase(listed(first, most=6), "strong"), f" {verb} the first rank by power."]
    return said


def _beside(result: SuiteResult, every: Sequence[Score], names: Names) -> Iterator[Section]:
    """Differences against the baseline."""
    rows = []
    for score in every:
        if score.controller != result.baseline:
            more = [_number(score, name, score.differences[name], signed=True) for name, _ in SHOWN]
            rows.append(Row([names[score.controller], *more]))
    if rows:
        seeds = "The interval is over seeds: it speaks of these cases and of no others."
        said = notes(
            "What each has more than the baseline, as the mean of the differences run by run (the same seed is the "
            "same luck) with its 95 % interval; bold where the interval leaves no doubt of the sign.",
            seeds if len(result.seeds) > 1 else "With one seed the interval is over cases.",
        )
        yield Section(f"Beside {result.baseline}", [_means(rows), *said], detail=True)


# --- every cell -----------------------------------------------------------------------------------


def _scorecard(result: SuiteResult, names: Names, own: Mapping[str, Look]) -> Section:
    rows = []
    for at, case in enumerate(result.suite.cases):
        head: list[Words] = [Phrase(case.name, "label"), Phrase(case.title, "small")]
        if case.not_run:
            rows.append(Row([head, f"{_SIGNS['not run']} not run: {case.not_run}"], detail=True))
        else:
            judged = [_judged(result.cell(case.name, name), (at, who)) for who, name in enumerate(names)]
            rows.append(Row([head, *judged]))
    counts = [(result.count(name, "pass"), result.count(name, "fail")) for name in names]
    rows.append(Row(["passed", *(f"{a} of {a + b}" for a, b in counts)], kind="sum", detail=True))
    card = Cells(
        Table([Column("case"), *(Column(name, left=True) for name in names.values())], rows, abreast=_ABREAST),
        partial(cells.data, result, own),
        "Open a cell for its rules, numbers and pictures; arrow keys go from cell to cell.",
        "Without scripts the cells cannot be opened; scores.csv has all their numbers.",
    )
    close = "≈: a limit lies within the 95 % interval of that number; other seeds could change the verdict."
    said = notes(
        "Beside each verdict stands the rule that decides it: the one that is broken most, or that has least room.",
        close if any(cell.close for cell in result.cells) else "",
        detail=True,
    )
    return Section("Scorecard", [card, *said])


def _judged(cell: Cell, place: tuple[int, int]) -> Judged:
    """Sign, word, and the number behind it."""
    decides, behind = cell.deciding, cell.brief[:90] or "no rule"
    if decides is not None:
        value = "no value" if decides.missing else decides.shown
        behind = f"{decides.rule.name} " + value.replace(" ", "\N{NO-BREAK SPACE}")
    sign = f"{_SIGNS[cell.state]} {cell.state}{' ≈' if cell.close else ''}"
    brief = cell.state if cell.state == "pass" else f"{cell.state}: {short(cell)}"
    return Judged([Phrase(sign, "strong"), behind], _TONES[cell.state], opens=place, brief=brief)


def _noisy(result: SuiteResult) -> Iterator[Block]:
    if result.noisy:
        yield Paragraph(
            "Of real programs, by a clock that cannot be trusted: their numbers are of what the machine could do."
        )
        yield Items([
            [f"{case}, ", Phrase(name, "code"), f", seed {seed}: {why}"] for case, name, seed, why in result.noisy
        ])  # fmt: skip


def _drawing(result: SuiteResult, every: Sequence[Score], own: Mapping[str, Look]) -> Iterator[Block]:
    """Rate against delay, a dot for each case."""
    trails = [trail for score in every if (trail := _trail(result, score, own[score.controller])).dots]
    if trails:
        said = (
            "Each small mark is a case (means over seeds: receive rate of the calls on average, and the 95th "
            "percentile of one-way delay of the worst of them), each large one the mean of a controller's cases. The "
            "ellipse is one standard deviation of its cases in every direction, from their covariance as drawn, as "
            "Pantheon draws it (Yan et al., USENIX ATC 2018). Delay runs from right to left: up and right is better."
        )
        yield Drawing(rate_delay(trails, "wide", legend=True), caption=said)


def _trail(result: SuiteResult, score: Score, look: Look) -> Trail:
    name, of, dots = score.controller, dict(SHOWN), []
    for case in result.suite.cases:
        delay, rate = (result.interval(case.name, name, m, of[m]) for m in ("one_way_delay_ms_p95", "receive_rate_bps"))
        if delay.count and rate.count and delay.mean > 0:
            x, y = delay.mean, rate.mean / 1e6
            dots.append(Dot(x, y, rate_title(f"{name}, {case.name}", x, y), size="small"))
    if dots:
        dots.append(mean_dot(name, dots))
    return Trail(look, dots, name, spread=True, beside="no rank" if score.rank is None else f"rank {score.rank}")


def _worst(result: SuiteResult, every: Sequence[Score], names: Names) -> Iterator[Block]:
    """The case in which each controller breaks most, with the numbers."""
    rows: list[list[DocumentCell]] = []
    for score in every:
        cell, name = result.worst(score.controller), names[score.controller]
        if cell is None:
            rows.append([name, "breaks no rule" if score.of else "no case was run to its end", ""])
        else:
            broken = sorted(cell.broken, key=lambda check: check.slack)
            rows.append([name, Phrase(cell.case, "label"), Items([*map(_broken, broken)])])
    yield _prose("controller", "case", "what broke, by how much", rows=rows)
    yield from notes("The case with the greatest share of its rules broken.")


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
        yield Pairs([(why, "; ".join(some)) for why, some in reasons.items()])


def _rules(result: SuiteResult) -> Iterator[Block]:
    met: dict[str, list[bool]] = {rule.name: [] for rule in result.suite.rules}
    for check in (check for cell in result.cells for check in cell.checks):
        met[check.rule.name].append(check.passed)
    if met:
        yield Pairs([(rule.name, _rule(rule, met[rule.name])) for rule in result.suite.rules])
    else:
        yield Paragraph("This suite has none: every cell that ran is passed.")


def _rule(rule: RuleTable, met: Sequence[bool]) -> Sentence:
    label = begun(numbers.about(rule.metric).label)
    of = "" if rule.of is None else f" ({rule.of})"
    beside = f" relative to {rule.relative_to}" if rule.relative_to else ""
    where = "in every case" if rule.cases == ["*"] else f"in {', '.join(rule.cases)}"
    who = "" if rule.controllers == ["*"] else f", of {', '.join(rule.controllers)}"
    number = f"{label}{of}{beside}: {verdicts.limit(rule)}, {where}{who}."
    said = f" {number} Met in {sum(met)} of {counted(len(met), 'cell')}. Source: {rule.source}. {rule.why}"
    return [Phrase(f"{begun(rule.says).rstrip('.')}.", "words"), said]


def _doubts(result: SuiteResult) -> Iterator[Block]:
    if result.doubts:
        yield Items([_of_cells(said, listed(some, most=NAMED)) for said, some in result.doubts.items()])


def _warnings(result: SuiteResult) -> Iterator[Block]:
    said: dict[str, set[str]] = {}
    for case, controller, _, row in result.runs():
        for warning in row["warnings"]:
            text = warning if isinstance(warning, str) else f"{warning['key']}: {warning['says']}"
            said.setdefault(text, set()).add(f"{case}, {controller}")
    if said:
        items = [_of_cells(text, f"{counted(len(some), 'cell')}, such as {min(some)}") for text, some in said.items()]
        further = [f"and {len(said) - _MOST_WARNINGS} more"] if len(said) > _MOST_WARNINGS else []
        yield Details(f"What runs warn of ({len(said)})", [Items([*items[:_MOST_WARNINGS], *further])])


def _of_cells(said: str, where: str) -> Sentence:
    return [f"{said} ", Phrase(f"({where})", "soft")]


def _again(result: SuiteResult) -> Section:
    about = result.about
    seeds = ", ".join(map(str, result.seeds[:_MOST_SEEDS])) + (" ..." if len(result.seeds) > _MOST_SEEDS else "")
    said = notes(
        f"Seeds: {seeds or 'none'}. {SAME_BITS}. scores.csv, beside this page, has every number of every run with its "
        "digest, and junit.xml the verdicts for other programs."
    )
    command = {"The command that made this:": str(about.get("command", ""))}
    versions, text = dict(about.get("versions", {})), ("The suite (TOML)", result.suite.text)
    return again(command, *said, versions=versions, text=text)


def _definitions(result: SuiteResult) -> Details:
    """Of the numbers that rules and scores speak of, with the names that rules have for them."""
    named = dict.fromkeys([*(name for name, _ in SHOWN), *(rule.metric for rule in result.suite.rules)])
    about = [numbers.about(name) for name in named]
    pairs: list[tuple[str, Sentence]] = [(begun(m.label), [Phrase(m.name, "code"), f": {m.definition}"]) for m in about]
    return Details("What the numbers mean", [Pairs(pairs)])
