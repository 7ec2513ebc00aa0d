"""Figures of any size: nothing is cut in a column of a paper, and what cannot fit is refused."""

from __future__ import annotations

import io
import itertools
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.text import Text

from support import Cli
from support import synthetic_runs as synthetic
from tidegate import Scenario, plot, run
from tidegate.output.palette import look

GROUPS = synthetic.comparison(("gcc", "fixed", "nada"), 2)
ONE = synthetic.run("gcc")


def swept(values: dict[str, list[str]]) -> Any:
    """A sweep over one or two settings, whose combinations differ in delay and rate."""
    rows = []
    for number, chosen in enumerate(itertools.product(*values.values())):
        summary = synthetic.run("gcc").summary
        flow = {**summary["flows"][0], "one_way_delay_ms_p95": 30.0 + 0.1 * number, "receive_rate_bps": 2e6}
        settings = dict(zip(values, chosen, strict=True))
        rows.append({"settings": settings, "seed": 1, "digest": "1", "summary": {**summary, "flows": [flow]}})
    return SimpleNamespace(
        keys=list(values), rows=rows, name="swept", failed=(), planned=len(rows), scenario="", command="", verdicts={}
    )


DISCIPLINES = {"links.up.queue.discipline": ["drop-tail", "codel", "fq-codel", "pie"]}
NUMBERS = {"links.up.delay": ["5ms", "10ms", "20ms", "40ms"]}
MAP = {**NUMBERS, "links.up.queue.time": ["100ms", "200ms", "400ms"]}

FIGURES: list[tuple[Callable[..., Figure], Any, float]] = [
    (plot.comparison, GROUPS, 5.5),
    (plot.delay_cdf, GROUPS, 2.3),
    (plot.rate_delay_scatter, GROUPS, 2.3),
    (plot.time_series, ONE, 4.5),
    (plot.session, ONE, 4.5),
    (plot.internals, ONE, 2.4),
    (plot.sweep, swept(DISCIPLINES), 2.6),
    (plot.sweep, swept(NUMBERS), 2.6),
    (plot.sweep, swept(MAP), 4.5),
]


def reach(figure: Figure) -> tuple[float, float]:
    """How far anything that is drawn reaches over the edges of a figure, across and up, in points."""
    figure.draw_without_rendering()
    box, (width, height) = figure.get_tightbbox(), figure.get_size_inches()
    return max(-box.x0, box.x1 - width) * 72, max(-box.y0, box.y1 - height) * 72


@pytest.mark.parametrize(("draw", "source", "height"), FIGURES)
@pytest.mark.filterwarnings("error")
def test_nothing_is_cut_in_a_column_of_a_paper(draw: Callable[..., Figure], source: Any, height: float) -> None:
    figure = draw(source, size=(3.3, height))
    assert tuple(figure.get_size_inches()) == (3.3, height)
    assert max(reach(figure)) < 1


@pytest.mark.parametrize(("kind", "first"), [("pdf", b"%PDF"), ("svg", b"<?xml"), ("png", b"\x89PNG")])
def test_it_can_be_saved_in_any_format(kind: str, first: bytes) -> None:
    data = io.BytesIO()
    plot.delay_cdf(GROUPS, size=(3.3, 2.3)).savefig(data, format=kind)
    assert data.getvalue().startswith(first)


def test_letters_of_a_pdf_are_letters() -> None:
    figure = plot.delay_cdf(GROUPS, size=(3.3, 2.3))
    data = io.BytesIO()
    figure.savefig(data, format="pdf")
    # Type 3 fonts are drawings of letters, which journals refuse
    assert b"/Subtype /Type42" in data.getvalue() or b"/CIDFontType2" in data.getvalue()
    assert b"/Subtype /Type3" not in data.getvalue()


@pytest.mark.parametrize(("draw", "source", "height"), FIGURES)
def test_what_does_not_fit_is_refused(draw: Callable[..., Figure], source: Any, height: float) -> None:
    with pytest.raises(ValueError, match=r"size: 0\.9 by 0\.8 inches are"):
        draw(source, size=(0.9, 0.8))
    with pytest.raises(ValueError, match="expected width and height in inches"):
        draw(source, size=(3.3, 0))
    with pytest.raises(ValueError, match="found 'papers'; expected paper or screen"):
        draw(source, style="papers")
    with pytest.raises(ValueError, match=r"matplotlib has no parameter 'font\.sise'"):
        draw(source, style={"font.sise": 3})


def test_a_label_that_is_too_long_for_the_figure_is_named() -> None:
    long = "the controller of the second version of the third draft, with the settings of the appendix"
    with pytest.raises(ValueError, match="not wide enough for the text 'the controller of"):
        plot.delay_cdf({long: GROUPS["gcc"]}, size=(3.3, 2.3))


def test_a_style_sets_letters_and_lines() -> None:
    usual, paper = plot.delay_cdf(GROUPS), plot.delay_cdf(GROUPS, style="paper")
    own = plot.delay_cdf(GROUPS, style={"font.size": 22, "axes.labelsize": 22, "lines.linewidth": 3.2})

    def sizes(figure: Figure) -> list[Any]:
        (ax,) = figure.axes
        return [ax.xaxis.label.get_fontsize(), ax.lines[0].get_linewidth()]

    assert sizes(usual) == [11, 2]
    assert sizes(paper) == [8, pytest.approx(1.375)]
    assert sizes(own) == [22, 4]
    # a figure as wide as a column has the style of papers
    assert sizes(plot.delay_cdf(GROUPS, size=(3.3, 2.3))) == sizes(paper)


def legend_colours(ax: Axes | Figure) -> dict[str, str]:
    legend = ax.legends[0] if isinstance(ax, Figure) else ax.get_legend()
    assert legend is not None
    pairs = zip(legend.get_texts(), legend.get_lines(), strict=False)
    return {text.get_text(): to_hex(line.get_color()) for text, line in pairs}


def test_labels_have_the_colour_of_what_ran_as_keys_and_as_other_names() -> None:
    expected = {"GCC": look("gcc").colour, "NADA": look("nada").colour}
    keys = {"GCC": GROUPS["gcc"], "NADA": GROUPS["nada"]}
    assert legend_colours(plot.delay_cdf(keys).axes[0]) == expected
    names = {"gcc": "GCC", "nada": "NADA"}
    chosen = {name: GROUPS[name] for name in names}
    assert legend_colours(plot.delay_cdf(chosen, labels=names).axes[0]) == expected
    assert [text.get_text() for text in plot.rate_delay_scatter(chosen, labels=names).axes[0].texts[:2]] == [
        "GCC",
        "NADA",
    ]
    sheet = plot.comparison(chosen, labels={**names, "bottleneck": "uplink", "cross-1": "TCP"})
    drawn = [text.get_text() for text in sheet.findobj(Text)]
    assert {"GCC", "NADA", "true capacity of uplink", "TCP", "GCC and NADA on “synthetic”"} <= {*drawn}
    assert not {"gcc", "nada"} & {*drawn}


@pytest.mark.parametrize(("draw", "source", "height"), FIGURES)
def test_a_heading_is_the_given_one_or_none(draw: Callable[..., Figure], source: Any, height: float) -> None:
    def headings(figure: Figure) -> set[str]:
        return {figure.get_suptitle(), *(ax.get_title(loc="left") for ax in figure.axes)}

    assert "Ours" in headings(draw(source, title="Ours"))
    assert draw(source, title="").get_suptitle() == ""


def test_other_flows_have_a_line_and_a_name_each() -> None:
    groups = {"gcc": [synthetic.run("gcc", seed, flows=3) for seed in (1, 2)]}
    for figure in (plot.comparison(groups), plot.time_series(groups["gcc"][0])):
        ax = figure.axes[0]
        legend = ax.get_legend()
        assert legend is not None
        names = [text.get_text() for text in legend.get_texts()]
        assert [name for name in names if name.startswith("cross")] == ["cross-1 (cubic)", "cross-2 (cubic)"]
        looks = {text.get_text(): (to_hex(line.get_color()), line.is_dashed())
                 for text, line in zip(legend.get_texts()[1:], legend.get_lines(), strict=True)}  # fmt: skip
        assert looks["cross-1 (cubic)"] != looks["cross-2 (cubic)"]
    # many flows would be a tangle
    many = plot.time_series(synthetic.run("gcc", flows=9)).axes[0].get_legend()
    assert many is not None
    assert "8 other flows" in [text.get_text() for text in many.get_texts()]


def test_names_of_a_sweep_are_points_with_texts_apart() -> None:
    figure = plot.sweep(swept(DISCIPLINES))
    ax = figure.axes[0]
    assert {line.get_linestyle() for line in ax.lines} == {"None"}
    figure.draw_without_rendering()
    boxes = {text.get_text(): Text.get_window_extent(text) for text in ax.texts}
    assert {*boxes} == {*DISCIPLINES["links.up.queue.discipline"]}
    assert not any(a.overlaps(b) for a, b in itertools.combinations(boxes.values(), 2))
    assert [line.get_linestyle() for line in plot.sweep(swept(NUMBERS)).axes[0].lines] == ["-"]


def test_the_command_line_has_the_size_the_style_and_the_heading(tmp_path: Path, cli: Cli) -> None:
    run(Scenario.load("home-broadband", {"duration": "5s"})).save(tmp_path / "run")
    target = tmp_path / "figure.svg"
    assert cli("report", str(tmp_path / "run"), "--out", str(target), "--size", "3.3x7", "--title", "").code == 0
    assert 'width="237.6pt" height="504pt"' in target.read_text("utf-8")
    for words, why in (
        (["--out", str(target), "--size", "3.3"], "--size 3.3: expected width and height in inches, as 3.3x2.4"),
        (["--out", str(target), "--style", "papers"], "style: found 'papers'; expected paper or screen"),
        (["--size", "3.3x7"], "--size, --style, --title: they are for pictures"),
    ):
        outcome = cli("report", str(tmp_path / "run"), *words, "--force")
        assert outcome.code == 2
        assert why in " ".join(outcome.err.split())


def test_names_of_near_points_in_a_small_figure_do_not_overlap() -> None:
    near = {f"controller {number}": [synthetic.under("constant", seed)] for number, seed in enumerate((1, 2, 3, 4))}
    figure = plot.rate_delay_scatter(near, size=(3.3, 2.4))
    figure.draw_without_rendering()
    (ax,) = figure.axes
    names = [text for text in ax.texts if text.get_text() in near]
    assert len(names) == len(near)
    boxes = [text.get_window_extent() for text in names]
    assert not any(a.overlaps(b) for a, b in itertools.combinations(boxes, 2))
    assert all(ax.bbox.x0 - 1 <= box.x0 and box.x1 <= ax.bbox.x1 + 1 for box in boxes)


def test_means_above_a_narrow_panel_have_their_names() -> None:
    figure = plot.comparison({"GCC": [synthetic.under("careful")]}, size=(6, 5))
    (facts,) = [ax.get_title(loc="right") for ax in figure.axes if ax.get_title(loc="right")]
    assert "bit/s goodput" in facts


def test_a_heading_counts_controllers_or_calls() -> None:
    names = [f"column {number}" for number in range(7)]
    alike = plot.comparison({name: [synthetic.under("gcc")] for name in names})
    assert alike.get_suptitle().startswith("7 calls on ")
    other = plot.comparison({name: [synthetic.under(name)] for name in names})
    assert other.get_suptitle().startswith("7 controllers on ")
