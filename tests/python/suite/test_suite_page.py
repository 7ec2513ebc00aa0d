"""The page of a suite's result: what it says, whole, escaped, small, and in the colours of all other figures."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.suite_results import TWELVE, block, made, rendered, row
from tidegate.cli.suites import _data as suite_data
from tidegate.cli.suites import _print
from tidegate.output.chart import Ellipse
from tidegate.output.document import NOTHING, Drawing, Section, Table, plain_text
from tidegate.output.markdown import markdown
from tidegate.output.notebook import cell as in_notebook
from tidegate.output.packed import unpack
from tidegate.output.palette import looks
from tidegate.show.plot import rate_delay_scatter
from tidegate.suite import SuiteResult
from tidegate.suite.verdicts import Check


def of_kind(blocks: Sequence[Any], kind: type[Any]) -> Iterator[Any]:
    """Blocks of a kind, also those in sections."""
    for one in blocks:
        if isinstance(one, kind):
            yield one
        elif isinstance(one, Section):
            yield from of_kind(one.blocks, kind)


class Texts(HTMLParser):
    """Every text with the elements that it is in, and every element with its attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.broken = False
        self.texts: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self.broken = tag == "wbr"
        if tag not in {"meta", "link", "wbr"}:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not {"script", "style"} & {*self.open}:
            # a name that may be broken somewhere is one name
            before = self.texts.pop() if self.broken else ""
            self.texts.append(before + data)
        self.broken = False


def test_every_cell_has_its_verdict_and_the_number_that_decides() -> None:
    result = made()
    text = rendered(result)
    shown = re.findall(
        r'<td class="text (\w+)"><button data-at="(\d+),(\d+)"><span><b>([^<]*)</b></span><span>([^<]*)</span>',
        text.replace("\N{NO-BREAK SPACE}", " "),
    )
    assert len(shown) == 6 * 3
    states = {"good": "pass", "bad": "fail"}
    for tone, at, who, sign, number in shown:
        state = states[tone]
        cell = result.cell(result.suite.cases[int(at)].name, result.controllers[int(who)])
        assert cell.state == state
        assert sign.startswith({"pass": "✓ pass", "fail": "✗ fail"}[state])
        one = cell.deciding
        assert one is not None
        assert number == f"{one.rule.name} {one.shown_interval}"
    assert {tone for tone, *_ in shown} == {*states}
    # one that breaks the delay by little has most of it to say of the delay, else of the rate
    assert result.cell("5.0,delay=0ms", "gcc").deciding == min(
        result.cell("5.0,delay=0ms", "gcc").checks, key=lambda check: check.slack
    )


def test_what_decides_is_what_is_broken_most() -> None:
    result = made(cases=8)
    worst = result.cell("5.7,delay=70ms", "fixed:700kbps")
    # delay 178 of at most 100 ms is farther out than 1.72 of at least 1 Mbit/s is in
    assert worst.deciding is not None
    assert worst.deciding.rule.name == "delay"
    assert worst.deciding.slack == pytest.approx((100 - 178) / 100)
    assert worst.deciding.beyond == "78 % over the limit"
    rate = next(check for check in worst.checks if check.rule.name == "rate")
    assert rate.slack == pytest.approx(0.72)
    assert rate.beyond == ""
    twice = result.cell("5.7,delay=70ms", "gcc").deciding
    assert twice is not None
    assert Check(twice.rule.model_copy(update={"at_most": 40.0}), twice.value).beyond == "4.0 times the limit"
    lower = twice.rule.model_copy(update={"at_most": None, "at_least": 640.0})
    assert Check(lower, twice.value).beyond == "25 % of the limit"
    none = twice.rule.model_copy(update={"at_most": 0.0})
    assert Check(none, twice.value).beyond == "160.0 ms too much"
    assert Check(lower, twice.value, missing=(2,)).slack == -math.inf


def test_ranks_differences_rules_and_reasons_are_said() -> None:
    result = made()
    said = " ".join(" ".join(Texts(rendered(result)).texts).split())
    for one in (
        "most cases: ",
        "Difference from gcc",
        "The worst case of each controller",
        "Carries a megabit.",
        "a megabit is a picture",
        "Keeps the queue short. ",
        "at most 100 ms, in every case",
        "no node",
        "wifi (3.1)",
        "tidegate suite run mine",
        "video.max: is below the capacity",
        "such as 5.0,delay=0ms, fixed:700kbps",
    ):
        assert one in said, one
    assert "short.." not in said
    silent = made()
    for cell in list(silent.rows):
        if cell[1] == "nada":
            vars(silent)["rows"][cell] = {1: row(1, 1e5, 1.0)}
    assert (
        "nada carries too little to compare its delays: receive rate 0.10 Mbit/s; delays are compared only"
        in " ".join(" ".join(Texts(rendered(silent)).texts).split())
    )


def test_data_behind_a_cell_is_that_of_its_runs() -> None:
    result = made()
    data = block(rendered(result))
    at = [case.name for case in result.suite.cases].index("5.2,delay=20ms")
    cell = data["cells"][at * 3 + 1]
    values = [one["flows"][0]["receive_rate_bps"] / 1e6 for one in result.rows["5.2,delay=20ms", "nada"].values()]
    place = [one[0] for one in data["metrics"]].index("receive_rate_bps")
    mean, half = cell["flows"][0]["values"][place]
    assert mean == pytest.approx(sum(values) / 3, abs=1e-3)
    assert half == pytest.approx(result.interval("5.2,delay=20ms", "nada", "receive_rate_bps").half / 1e6, abs=1e-3)  # type: ignore[operator]
    assert cell["digest"] == f"{1:016x}"
    assert cell["events"] == [[60.0, "capacity falls", "call", None]]
    assert cell["beside"] == [["tcp", "tcp", 3 - mean]] or cell["beside"][0][2] == pytest.approx(3 - mean, abs=2e-3)
    kept = result.rows["5.2,delay=20ms", "nada"][1]["measures"]["series"]["flows"]["call"]
    call, tcp = cell["series"]["flows"]
    np.testing.assert_allclose(unpack(call["rate"], data["steps"]["rate"]), kept["rate_bps"], atol=5001)
    delay = unpack(call["delay"], data["steps"]["delay"])
    assert np.isnan(delay[:2]).all()
    np.testing.assert_allclose(delay[2:], kept["delay_ms"][2:], atol=0.51)
    assert (call["own"], tcp["own"], tcp["delay"]) == (1, 0, [])
    capacity = unpack(cell["series"]["capacity"], data["steps"]["rate"])
    assert (capacity[0], capacity[-1]) == (3e6, 2e6)
    assert data["cells"][-1] == {"state": "not run", "why": "no node"}


def test_runs_without_series_have_a_page(tmp_path: Path) -> None:
    data = block(rendered(made(series=False)))
    assert not any("series" in cell for cell in data["cells"])
    assert data["cells"][0]["flows"][0]["values"]
    # and so has a result of which nothing is there yet
    result = made()
    empty = SuiteResult(
        result.suite, ("gcc",), "gcc", {}, {(case.name, "gcc"): "stopped" for case in result.suite.cases}
    )
    said = Texts(rendered(empty)).texts
    assert "stopped" in said
    assert "no case was run to its end" in said


def test_nothing_is_asked_of_the_network_and_nothing_of_this_machine_is_in_it() -> None:
    text = rendered(made(TWELVE))
    assert "default-src &#x27;none&#x27;" in text
    for _, attributes in Texts(text).elements:
        assert not {"src", "srcset", "action"} & attributes.keys()
        assert attributes.get("href") in (None, "data:,")
    addresses = {one for one in re.findall(r"https?://[^\s\"'<)]+", text) if "w3.org/2000/svg" not in one}
    assert addresses == set()
    assert rendered(made(TWELVE)) == text


def test_names_from_outside_cannot_become_markup() -> None:
    evil = "</script><img src=x onerror=alert(1)>\"'&"
    long = f"python:/home/{'x' * 300}/mine.py:Mine"
    result = made(("gcc", evil, long, "日本語\u202e"), names={"<b>case</b>": evil})
    vars(result)["troubles"] = {("5.0,delay=0ms", evil): evil}
    text = rendered(result)
    parsed = Texts(text)
    assert not any(name in {"img", "iframe"} or "onerror" in attributes for name, attributes in parsed.elements)
    assert evil in parsed.texts
    assert "</script><img" not in text
    data = block(text)
    assert data["controllers"][1]["name"] == evil
    assert data["cases"][6]["name"] == "<b>case</b>"


def test_a_controller_has_its_colour_everywhere() -> None:
    result = made(TWELVE)
    text = rendered(result)
    own = looks(TWELVE)
    for name in TWELVE:
        style = f"--light:{own[name].colour};--dark:{own[name].on_dark}"
        assert f'style="{style}" data-name="{name}"' in text
    for controller, one in zip(block(text)["controllers"], own.values(), strict=True):
        assert (controller["light"], controller["dark"]) == (one.colour, one.on_dark)


def test_the_colours_are_those_of_figures() -> None:
    from support import synthetic_runs as synthetic

    axes = rate_delay_scatter({name: [synthetic.under(name)] for name in TWELVE}).axes[0]
    drawn = {one.get_text(): str(one.get_color()) for one in axes.texts}
    for controller in block(rendered(made(TWELVE)))["controllers"]:
        assert drawn[controller["name"]] == controller["light"]


def test_the_ellipse_is_the_covariance_of_the_points() -> None:
    rng = np.random.default_rng(7)
    cloud = rng.multivariate_normal([3.0, -1.0], [[4.0, 1.5], [1.5, 1.0]], 400)
    one = Ellipse.of([(float(a), float(b)) for a, b in cloud])
    assert one is not None
    values, vectors = np.linalg.eigh(np.cov(cloud.T))
    assert (one.short**2, one.long**2) == pytest.approx(tuple(values))
    assert abs(math.tan(math.radians(one.angle)) - vectors[1, 1] / vectors[0, 1]) < 1e-6
    # one standard deviation of two normal numbers holds 1 - exp(-1/2) of the points
    centred = cloud - cloud.mean(axis=0)
    inside = (centred @ np.linalg.inv(np.cov(cloud.T)) * centred).sum(axis=1) <= 1
    assert inside.mean() == pytest.approx(1 - math.exp(-0.5), abs=0.06)
    assert Ellipse.of([(0.0, 1.0), (1.0, 2.0)]) is None


def test_every_case_is_a_point() -> None:
    result = made(TWELVE, cases=9)
    text = rendered(result)
    assert text.count('class="dot small"') == 12 * 9
    assert text.count('class="dot large"') == 12
    assert text.count("<ellipse ") == 12
    drawing = next(block for block in of_kind(result.document().more, Drawing))
    dot = next(dot for dot in drawing.chart.trails[0].dots if dot.title.startswith("gcc, 5.3,"))
    assert dot.x == pytest.approx(50 + 80)
    assert dot.y == pytest.approx(2.02)
    assert "gcc, 5.3,delay=30ms: 2.02 Mbit/s, 130 ms" in text
    # delay runs from right to left
    places = dict(re.findall(r"<title>gcc, (5\.\d).*?</title><circle cx=\"([\d.]+)\"", text))
    ordered = [float(places[f"5.{at}"]) for at in range(9)]
    assert ordered == sorted(ordered, reverse=True)


@pytest.mark.parametrize(("cases", "seeds"), [(60, 5), pytest.param(450, 1, marks=pytest.mark.slow)])
def test_a_page_stays_below_five_megabytes(cases: int, seeds: int) -> None:
    text = rendered(made(TWELVE, cases=cases, seeds=seeds))
    size = len(text.encode())
    assert size < 5_000_000
    data = block(text)
    with_series = sum("series" in cell for cell in data["cells"])
    if cases == 60:
        assert size > 1_000_000
        assert with_series == 12 * 60
        assert data["note"] == ""
    else:
        assert "To keep the page small" in data["note"]
        assert data["note"] in text


def test_paper_has_every_cell_in_tables_that_fit() -> None:
    text = rendered(made(TWELVE))
    paper = text.partition('<div class="card paper">')[2].partition("</div></div>")[0]
    tables = paper.split('<div class="scroll">')[1:]
    assert len(tables) == 3
    assert all(f"{NOTHING} not run: no node" in one and ">passed<" in one for one in tables)
    assert sum(one.count("<td class=") for one in tables) == 12 * 6
    for name in TWELVE:
        assert sum(f'title="{name}"' in one for one in tables) == 1


def test_a_difference_has_its_sign_its_interval_and_whether_it_is_sure() -> None:
    result = made()
    _, table = of_kind(result.document().answer, Table)
    heads = [plain_text(column.head) for column in table.columns]
    row = next(row for row in table.rows if plain_text(row.cells[0]) == "nada")
    numbers = dict(zip(heads, row.cells, strict=True))
    rate, delay, loss = (numbers[name] for name in ("receive rate", "one-way delay, 95th percentile", "loss"))
    assert (rate.value.mean, rate.mark, rate.signed) == (pytest.approx(-1.5e5), "sure", True)
    assert (delay.value.mean, delay.mark) == (pytest.approx(9.0), "sure")
    assert (loss.value.mean, loss.mark) == (0.0, "")
    text = markdown(result.document())
    assert "| nada | **-0.15 ± 0.00** | - | **+9.0 ± 0.0** | +0.00 ± 0.00 |" in text
    assert '<td class="sure">+9.0<span class="interval"> ± 0.0</span></td>' in rendered(result)
    assert "Difference from gcc" not in in_notebook(result.document())


def test_markdown_says_what_the_page_says() -> None:
    result = made(names={"a|b": "two"})
    text = markdown(result.document(), again=False)
    heads = [line for line in text.splitlines() if line.startswith("#")]
    assert heads == [
        "# mine: gcc, nada and fixed:700kbps", "## The answer", "## Difference from gcc", "## Scorecard",
        "## The worst case of each controller", "## Cases that were not run", "## Rules", "## Warnings",
        "### Warnings of runs (1)", "### What the numbers mean",
    ]  # fmt: skip
    assert "networks that were never run" in text
    assert "Source: here · 8 cases, 7 of them run · 3 controllers · 3 seeds" in text
    assert "| 5.0,delay=0ms | **✓ pass** delay 20.0 ± 0.0 ms |" in text
    assert f"| wifi | {NOTHING} not run: no node |  |  |" in text
    assert "\n| a\\|b | " in text
    assert "## Make it again" in markdown(result.document())


def test_a_terminal_has_the_scores_last(capsys: pytest.CaptureFixture[str]) -> None:
    result = made()
    _print(result)
    first, card, headline, scores, unrun = capsys.readouterr().out.split("\n\n")
    assert first == "mine: 7 cases, 3 seeds"
    lines = [re.split(r"\s{2,}", line.strip()) for line in card.splitlines()]
    assert lines[0] == ["case", "gcc", "nada", "fixed:700kbps"]
    assert lines[1] == ["5.0,delay=0ms", "pass", "pass", "pass"]
    fails = [f"fail: delay: {delay}.0 ± 0.0 ms" for delay in (120, 129, 138)]
    assert lines[-1] == ["5.5,delay=50ms", *fails]
    assert headline == "gcc passes most cases: 5 of 6 cases."
    assert [line.split()[0] for line in scores.splitlines()] == ["controller", *result.controllers]
    assert unrun == "1 case was not run: no node\n"


def test_a_notebook_has_no_buttons_and_no_asides() -> None:
    shown = Texts(made()._repr_html_())
    assert not any(name in {"button", "svg", "small"} for name, _ in shown.elements)
    assert "fail: delay: 120.0 ± 0.0 ms" in shown.texts
    assert "title 1" not in " ".join(shown.texts)


def test_a_close_number_has_its_mark_in_every_form_and_outcome(capsys: pytest.CaptureFixture[str]) -> None:
    result = made(cases=1)
    runs = dict(result.rows)

    def measured(controller: str, rates: tuple[float, ...], delays: tuple[float, ...]) -> None:
        both = enumerate(zip(rates, delays, strict=True), 1)
        runs["5.0,delay=0ms", controller] = {seed: row(seed, rate, delay) for seed, (rate, delay) in both}

    # passes: the delay has least room and is sure, the rate is close
    measured("gcc", (1.1e6, 1.7e6, 2.3e6), (95.0, 95.1, 95.2))
    # fails: both rules are broken, and the rate for sure, so that no other seed could change the verdict
    measured("nada", (5e5, 5e5, 5e5), (80.0, 105.0, 130.0))
    # fails by a number that is close
    measured("fixed:700kbps", (2e6, 2e6, 2e6), (80.0, 105.0, 130.0))
    result = replace(result, rows=runs)
    cells = [result.cell("5.0,delay=0ms", name) for name in result.controllers]
    assert [cell.state for cell in cells] == ["pass", "fail", "fail"]
    assert [cell.close for cell in cells] == [True, False, True]

    texts = ["delay 95.1 ± 0.2 ms; rate 1.70 ± 1.49 Mbit/s ≈", "rate 0.50 ± 0.00 Mbit/s", "delay 105.0 ± 62.1 ms ≈"]
    signs = ["✓ pass", "✗ fail", "✗ fail"]
    page = " ".join(Texts(rendered(result)).texts).replace("\N{NO-BREAK SPACE}", " ")
    card = markdown(result.document(), again=False).replace("\N{NO-BREAK SPACE}", " ")
    for sign, text in zip(signs, texts, strict=True):
        assert text in page
        assert f"**{sign}** {text} |" in card

    _print(result)
    out = capsys.readouterr().out
    line = next(line for line in out.splitlines() if line.strip().startswith("5.0"))
    in_terminal = ["pass: rate: 1.70 ± 1.49 Mbit/s ≈", "fail: rate: 0.50 ± 0.00 Mbit/s and 1 more"]
    assert re.split(r"\s{2,}", line.strip())[1:] == [*in_terminal, "fail: delay: 105.0 ± 62.1 ms ≈"]
    explained = "≈: a limit lies within the 95 % interval of the number"
    assert explained in out

    data: list[dict[str, Any]] = suite_data(result)["cells"]  # type: ignore[assignment]
    assert [cell["close"] for cell in data if cell["state"] != "not run"] == [True, False, True]
    of_checks = [[(check["rule"], check["close"]) for check in cell["checks"]] for cell in data[:3]]
    assert of_checks == [
        [("rate", True), ("delay", False)], [("rate", False), ("delay", True)], [("rate", False), ("delay", True)]
    ]  # fmt: skip

    _print(made())
    assert "≈" not in capsys.readouterr().out
