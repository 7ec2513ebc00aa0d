"""A suite's result for other programs: every number as CSV, and verdicts as JUnit XML."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tidegate._inputs import CODE
from tidegate._inputs import read as read_input
from tidegate.errors import InputError
from tidegate.output import csv
from tidegate.output.junit import Case, xml
from tidegate.results.metrics import finite

if TYPE_CHECKING:
    from tidegate.suite.result import Cell, SuiteResult


def files(result: SuiteResult) -> Iterator[tuple[str, str]]:
    """The files of a result for other programs, by name."""
    yield "scores.csv", to_csv(result)
    yield "junit.xml", junit(result)


def cell_summary(cell: Cell) -> str:
    """The rule that decides a cell or could change its verdict, with its number; empty for one that passes for sure."""
    if cell.state in ("error", "not run"):
        return cell.brief
    named = cell.broken or cell.hanging
    if not named:
        return ""
    check = min(named, key=lambda check: check.slack)
    rest = f" and {len(named) - 1} more" if len(named) > 1 else ""
    return f"{check.rule.name}: {check.marked}{rest}"


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
    return csv.lines(names, ([row.get(name) for name in names] for row in rows))


def _numbers(values: Mapping[str, object]) -> dict[str, float]:
    numbers = {name: finite(value) for name, value in values.items()}
    return {name: value for name, value in numbers.items() if value is not None}


def junit(result: SuiteResult) -> str:
    """Verdicts as JUnit XML: a test suite for each controller, a test case for each case."""
    tests = {
        controller: [_case(result, cell) for cell in result.cells if cell.controller == controller]
        for controller in result.controllers
    }
    return xml(result.suite.name, tests)


def _case(result: SuiteResult, cell: Cell) -> Case:
    seconds, file = result.seconds.get((cell.case, cell.controller)), file_of(cell.controller)
    case = Case(f"{result.suite.name}.{cell.controller}", cell.case, "passed", seconds=seconds, file=file)
    match cell.state:
        case "fail":
            why = [f"{check.rule.name}: {check.text}. {check.rule.says}" for check in cell.broken]
            return replace(case, state="failure", message=cell_summary(cell), text="\n".join(why))
        case "error":
            return replace(case, state="error", message=cell_summary(cell), text=cell.why)
        case "not run":
            return replace(case, state="skipped", message=cell.why)
    return case


def file_of(controller: str) -> str:
    """The file that a controller is in; nothing for one of the engine or of a package.

    >>> file_of("python:mine/slope.py:Slope:gain=2"), file_of("alphartc:BandwidthEstimator.py"), file_of("gcc:beta=0.8")
    ('mine/slope.py', 'BandwidthEstimator.py', '')
    """
    match = re.match(r"(?:python|onnx|alphartc):([^:]+\.(?:py|onnx))(?::|$)", controller)
    return match[1] if match else ""


def line_of(controller: str) -> int | None:
    """The line of a controller's class in its file, or that of an error of syntax; `None` where neither is known."""
    match = re.match(r"(python|alphartc):([^:]+\.py)(?::([^:]+)|$)", controller)
    if match is None:
        return None
    # a name of AlphaRTC's class leaves the class out
    name = "Estimator" if match[1] == "alphartc" else match[3]
    try:
        tree = ast.parse(read_input(Path(match[2]), CODE).data)
    except SyntaxError as error:
        return error.lineno
    except (InputError, ValueError, RecursionError):
        return None
    classes = (node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == name)
    return next((node.lineno for node in classes), None)
