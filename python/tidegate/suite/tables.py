"""A suite's result as tables: the scorecard in Markdown, every number as CSV, and verdicts as JUnit XML."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from tidegate.comparison.doubts import NAMED
from tidegate.results.metrics import finite
from tidegate.show.table import pipes
from tidegate.suite import numbers
from tidegate.suite.scores import SHOWN, Score, label, scores
from tidegate.wording import listed

if TYPE_CHECKING:
    from tidegate.suite.result import Cell, SuiteResult

_CARRYING = {"receive_rate_bps", "share_fraction"}  # what also those have who are out
_WORDS = {"pass": "pass", "fail": "**fail**", "error": "error", "not run": "not run"}


def files(result: SuiteResult) -> Iterator[tuple[str, str]]:
    """The tables of a result by name of their file."""
    yield "scorecard.md", markdown(result)
    yield "scores.csv", to_csv(result)
    yield "junit.xml", junit(result)


def markdown(result: SuiteResult) -> str:
    """Scorecard, scores and rules as Markdown."""
    suite = result.suite
    parts = [
        f"# {suite.name}",
        suite.table.description,
        f"{len(suite.cases)} cases, {result.seeds_shown} each. Source: {suite.table.source}",
        "## Scorecard",
        *_scorecard(result),
        *(["## Noisy sessions", *_noisy(result)] if result.noisy else []),
        "## Scores",
        *_scores(result),
        *(["## What this cannot tell", *_doubts(result)] if result.doubts else []),
        "## Rules",
        *_rules(result),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def short(cell: Cell) -> str:
    """A cell in a few words: its verdict, and what decides it."""
    if cell.state in ("error", "not run"):
        return cell.brief
    if not cell.checks:
        return "no rule"
    if not cell.broken:
        return f"{len(cell.checks)} rules{', close' if cell.close else ''}"
    one = cell.deciding or cell.broken[0]
    rest = f" and {len(cell.broken) - 1} more" if len(cell.broken) > 1 else ""
    return f"{one.rule.name}: {one.shown}{rest}{', close' if cell.close else ''}"


def _noisy(result: SuiteResult) -> Iterator[str]:
    yield "Of real programs, by a clock that cannot be trusted: their numbers are of what the machine could do."
    yield "\n".join(f"- {case}, `{program}`, seed {seed}: {why}" for case, program, seed, why in result.noisy)


def _doubts(result: SuiteResult) -> Iterator[str]:
    yield "\n".join(f"- {said} ({listed(cases, most=NAMED)})" for said, cases in result.doubts.items())


def _scorecard(result: SuiteResult) -> Iterator[str]:
    lines = [pipes(["case", *result.controllers]), pipes(["---"] * (1 + len(result.controllers)))]
    for case in result.suite.cases:
        cells = [result.cell(case.name, one) for one in result.controllers]
        lines.append(pipes([case.name, *(f"{_WORDS[cell.state]}: {short(cell)}" for cell in cells)]))
    lines.append(pipes(["**passed**", *(f"{passed} of {of}" for passed, of in _passed(result))]))
    yield "\n".join(lines)
    if any(cell.close for cell in result.cells):
        yield "*close*: a limit lies within the 95 % interval of the number that decides; other seeds could change it."


def _passed(result: SuiteResult) -> Iterator[tuple[int, int]]:
    for one in result.controllers:
        passed = result.count(one, "pass")
        yield passed, passed + result.count(one, "fail")


def _scores(result: SuiteResult) -> Iterator[str]:
    heads = ["controller", "cases passed", "rank by power", *(label(name) for name, _ in SHOWN)]
    lines = [pipes(heads), pipes(["---", "---:", "---:", *["---:"] * len(SHOWN)])]
    every = scores(result)
    for one in every:
        cells = [mean(one, name) for name, _ in SHOWN]
        lines.append(
            pipes([one.controller, f"{one.passed} of {one.of}", "-" if one.rank is None else str(one.rank), *cells])
        )
    yield "\n".join(lines)
    yield "Means over the cases. A rank is one more than the number of those whose power is greater for certain (95 %)."
    if outs := [f"`{one.controller}`: {one.out}" for one in every if one.out]:
        yield "Without a rank: " + "; ".join(outs) + "."
    if len(result.controllers) > 1:
        lines = [pipes(["controller", *(label(name) for name, _ in SHOWN)]), pipes(["---", *["---:"] * len(SHOWN)])]
        for one in every:
            if one.controller != result.baseline:
                lines.append(pipes([one.controller, *(difference(one, name) for name, _ in SHOWN)]))
        yield f"### Beside `{result.baseline}`, run by run (same seed, same luck)"
        yield "\n".join(lines)
        yield "Mean of the differences with its 95 % interval; bold where it leaves no doubt of the sign."


def mean(score: Score, name: str) -> str:
    """A mean, without unit; nothing of delay where a controller is out."""
    value = score.means[name]
    if not math.isfinite(value) or (score.out and name not in _CARRYING):
        return "-"
    return numbers.about(name).show(value)


def difference(score: Score, name: str) -> str:
    """A paired difference with its sign and interval."""
    one, about = score.differences[name], numbers.about(name)
    if not one.count or (score.out and name not in _CARRYING):
        return "-"
    text = f"{one.mean * about.scale:+.{about.digits}f}"
    if one.half is not None:
        text += f" ± {about.show(one.half)}"
    return f"**{text}**" if one.half is not None and abs(one.mean) > one.half else text


def _rules(result: SuiteResult) -> Iterator[str]:
    lines = [pipes(["rule", "asks", "cases", "source"]), pipes(["---"] * 4)]
    for rule in result.suite.rules:
        why = f" {rule.why}" if rule.why else ""
        lines.append(pipes([rule.name, rule.says, " ".join(rule.cases), f"{rule.source}{why}"]))
    yield "\n".join(lines)


def to_csv(result: SuiteResult) -> str:
    """A line for each run and flow, with all numbers in the summary's own units; the run's own stand without a flow."""
    rows = []
    for case, controller, seed, row in result.runs():
        about = {"case": case, "controller": controller, "seed": seed, "digest": row["digest"]}
        for flow in row["flows"]:
            measured = row["measures"]["flows"].get(flow["flow"], {})
            rows.append(
                {
                    **about,
                    "flow": flow["flow"],
                    "contender": flow["flow"] in row["contenders"],
                    **_numbers(flow),
                    **_numbers(measured),
                }
            )
        rows.append({**about, "flow": "", "contender": "", **_numbers(row["measures"]["run"])})
    names = dict.fromkeys(name for row in rows for name in row)
    out = io.StringIO()
    writer = csv.DictWriter(out, list(names), restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def _numbers(values: Mapping[str, object]) -> dict[str, str]:
    found = {name: finite(value) for name, value in values.items()}
    return {name: repr(value) for name, value in found.items() if value is not None}


def junit(result: SuiteResult) -> str:
    """Verdicts as JUnit XML: a test suite for each controller, a test case for each case."""
    root = ET.Element("testsuites", name=result.suite.name)
    for controller in result.controllers:
        cells = [cell for cell in result.cells if cell.controller == controller]
        counts = {
            "tests": len(cells),
            "failures": sum(cell.state == "fail" for cell in cells),
            "errors": sum(cell.state == "error" for cell in cells),
            "skipped": sum(cell.state == "not run" for cell in cells),
        }
        attributes = {"name": controller, **{key: str(count) for key, count in counts.items()}}
        group = ET.SubElement(root, "testsuite", attributes)
        for cell in cells:
            one = ET.SubElement(group, "testcase", classname=f"{result.suite.name}.{controller}", name=cell.case)
            match cell.state:
                case "fail":
                    told = [f"{check.rule.name}: {check.text}. {check.rule.says}" for check in cell.broken]
                    ET.SubElement(one, "failure", message=printable(short(cell))).text = printable("\n".join(told))
                case "error":
                    ET.SubElement(one, "error", message=printable(short(cell))).text = printable(cell.why)
                case "not run":
                    ET.SubElement(one, "skipped", message=printable(cell.why))
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def printable(text: str) -> str:
    """Without characters that XML cannot have."""
    return "".join(char if char >= " " or char in "\n\t" else "?" for char in text)
