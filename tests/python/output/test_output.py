"""Documents and their forms: the rendering of each kind of block, and the positions of dots in charts."""

from __future__ import annotations

import html
import re

import pytest

from tidegate.output import markdown, notebook, terminal
from tidegate.output.chart import Axis, Dot, Trail, between, rate_delay
from tidegate.output.document import (
    NOTHING,
    Beside,
    Column,
    Details,
    Document,
    Drawing,
    Items,
    Judged,
    Number,
    Pairs,
    Phrase,
    Picture,
    Row,
    Section,
    Table,
    again,
    notes,
)
from tidegate.output.html import page
from tidegate.output.palette import Look
from tidegate.results.metrics import metric
from tidegate.results.remarks import Remarks
from tidegate.results.stats import Interval

RATE, LOSS = metric("receive_rate_bps"), metric("loss_fraction")


def numbers(kind: str = "") -> Table:
    """Metrics over two contenders."""
    rows = [
        Row([RATE.label, Number(RATE, Interval(2e6, 1e5, 3), "best"), Number(RATE, Interval(1e6, 2e5, 3))], RATE),
        Row([LOSS.label, Number(LOSS, Interval(1e-6, None, 1), "unsure"), Number(LOSS, Interval.of([]))], LOSS),
        Row(["a detail", "x", "y"], detail=True),
        Row(["fit", "yes", "no: delay; loss at the sender"], metric("quality"), kind="words"),
    ]
    return Table([Column(""), Column(Phrase("gcc", look=Look(0))), Column(Phrase("b|ad <i>"))], rows, "headline")


WHOLE = Document(
    "A <title>",
    [Section("In numbers", [numbers(), *notes("A note.", detail=True), *notes("Short.")])],
    [
        Details("Behind", [Pairs([("name", "meaning")]), Items([["an ", Phrase("item", "code")]])]),
        Section("Pictures", [Beside([Picture(b"\x89PNG", "A caption", file="a.png")], "pair")]),
        again({"The command:": "tidegate run *"}, versions={"tidegate": "0.1.0"}, text=("TOML", "x = 1")),
        Table(
            [Column("claim"), Column("")], [Row(["c", Judged(["1", "2"], "bad", "why")], below="Because.")], "document"
        ),
    ],
    ["3 seeds", "2 flows"],
    failures=[("tfrc failed", "it <b>"), ("Failed", "too")],
    remarks=Remarks(["mind & this", "seed: it varies little"]),
    settings=[("delay", "1ms, 2ms")],
)


def test_a_page_has_every_word_once_and_as_text() -> None:
    text = page(WHOLE)
    body = text.partition("<main>")[2].partition("</main>")[0]
    assert "<i>" not in body
    assert "it <b>" not in body
    for phrase in (
        "A <title>",
        "b|ad <i>",
        "mind & this",
        "A note.",
        "Because.",
        "tidegate run *",
        "a detail",
        "x = 1",
    ):
        assert html.escape(phrase) in body
    assert body.count("A caption") == 2  # visible, and as the text for readers who cannot see the picture
    assert '<td class="bad" title="why">' in body
    assert "★ best, ☆ the best mean, perhaps by chance." in body
    # a number too small for its digits, and a missing one
    assert re.search(rf"&lt; 0.01 %.*{NOTHING}", body, re.DOTALL)
    assert (
        body.index("mind &amp; this")
        < body.index("b|ad")
        < body.index("Note: seed: it varies little")
        < body.index("Behind")
    )
    assert "<script" not in text, "nothing in it needs one"


def test_markdown_says_the_same_with_units_in_a_column() -> None:
    text = markdown.markdown(WHOLE)
    assert text.startswith("# A &lt;title>\n\n3 seeds · 2 flows\n\n**tfrc failed**: it &lt;b>\n")
    assert "| receive rate | Mbit/s | **2.00 ± 0.10** | 1.00 ± 0.20 |" in text
    assert "| loss | % | **0.00** ? | - |" in text
    assert "b\\|ad &lt;i>" in text
    assert "![A caption](a.png)" in text
    assert "- an `item`" in text
    assert (
        text.index("mind &amp; this") < text.index("| loss |") < text.index("**Note**: seed: ") < text.index("Behind")
    )
    short = markdown.markdown(WHOLE, whole=False)
    assert "a detail" in text
    assert "a detail" not in short
    assert "A note." not in short
    assert short.endswith("Short.\n\nWarning: mind &amp; this\n\nNote: seed: it varies little\n")


def test_a_terminal_has_the_answer_alone(capsys: pytest.CaptureFixture[str]) -> None:
    terminal.show(WHOLE)
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert lines[0].split() == ["gcc", "b|ad", "<i>", "unit"]
    assert lines[1].split() == ["receive", "rate", "2.00", "±", "0.10", "*", "1.00", "±", "0.20", "Mbit/s"]
    assert lines[2].split() == ["loss", "0.00", "*?", "-", "%"]
    assert lines[3].split() == ["fit", "yes", "no:", "delay;"]
    assert lines[-1] == "Short."
    assert terminal.marks(WHOLE) == "* best, *? best mean, perhaps by chance"


def test_a_cell_of_a_notebook_has_the_answer_and_paints_nothing() -> None:
    text = notebook.cell(WHOLE)
    assert "a detail" not in text
    assert html.escape("it <b>") in text
    assert not re.search(r"#[0-9a-f]{3,6}\b|rgb\(|<svg", text)


def test_round_numbers_lie_between_and_few() -> None:
    for low, high in ((0.0, 3.4), (21.0, 24.0), (-1.0, 1.0), (0.001, 0.0013), (5.0, 5.0)):
        ticks = between(low, high)
        assert 1 <= len(ticks) <= 8
        assert all(low - 1e-12 <= value <= high + 1e-12 for value in ticks)


@pytest.mark.parametrize(
    "points", [[(5.0, 1.0)], [(1.0, 0.0), (2.0, 0.0)], [(0.0, 1.0)], [(1.0, 1.0), (900.0, 2.0)], []]
)
def test_axes_hold_every_dot_and_delay_falls(points: list[tuple[float, float]]) -> None:
    chart = rate_delay([Trail(Look(0), [Dot(x, y) for x, y in points])])
    for x, y in points:
        assert 0 <= chart.x.part(x) <= 1 or (chart.x.log and x == 0)
        assert 0 <= chart.y.part(y) <= 1
    assert chart.x.part(chart.x.high) < chart.x.part(max(chart.x.low, 1e-3))
    assert chart.x.log == (len(points) == 2 and points[1][0] == 900.0)


def test_dots_stand_where_ticks_say() -> None:
    """A dot on a tick of both axes lies on both of their lines."""
    text = page(Document("x", [Drawing(rate_delay([Trail(Look(0), [Dot(100.0, 2.0), Dot(40.0, 1.0)])]))]))
    places = dict(re.findall(r'x="([\d.]+)" y="330" text-anchor="middle">(\d+)<', text))
    by_delay = {float(delay): float(x) for x, delay in places.items()}
    heights = {float(rate): float(y) - 4 for y, rate in re.findall(r'y="([\d.]+)" text-anchor="end">([\d.]+)<', text)}
    dots = [(float(x), float(y)) for x, y in re.findall(r'<circle cx="([\d.]+)" cy="([\d.]+)" r="4.5"', text)]
    assert dots[0] == pytest.approx((by_delay[100.0], heights[2.0]), abs=0.11)
    assert dots[1] == pytest.approx((by_delay[40.0], heights[1.0]), abs=0.11)


def test_logarithmic_axes_have_ones_twos_and_fives() -> None:
    assert [text for _, text in Axis("", 8.0, 120.0, log=True).ticks(5)] == ["10", "20", "50", "100"]
