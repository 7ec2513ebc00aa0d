"""Figures of papers: the document's axes and markers, and our bands against values computed by hand."""

from __future__ import annotations

import numpy as np
import pytest

from tidegate.paper import Measure, Sheet
from tidegate.results.stats import Interval


def sheet() -> Sheet:
    return Sheet("Figure 1", "t", x="Time (s)", y="Rate (bit/s)", xlim=(0, 10), ylim=(0, 5))


def test_a_figure_has_the_document_s_axes_and_our_bands() -> None:
    figure = sheet().series("gcc", [0, 5, 10], [[1, 2, np.nan], [3, 4, 5]]).published("gcc", [5], [3.5])
    (ax,) = figure.drawing("x").figure.axes
    assert (ax.get_xlabel(), ax.get_ylabel(), ax.get_xlim(), ax.get_ylim()) == (
        "Time (s)",
        "Rate (bit/s)",
        (0, 10),
        (0, 5),
    )
    line, marks = ax.lines
    np.testing.assert_array_equal(line.get_ydata(), [2, 3, 5])
    np.testing.assert_array_equal(marks.get_xydata(), [[5, 3.5]])
    # two values 1 apart from their mean: t(1) = 12.7062, s = sqrt 2
    band = ax.collections[0].get_paths()[0].vertices
    assert band[:, 1].min() == pytest.approx(2 - 12.7062, abs=1e-3)
    assert band[:, 1].max() == pytest.approx(3 + 12.7062, abs=1e-3)
    with pytest.raises(ValueError, match=r"gcc: found values of shape \(1, 2\); expected \(seeds, 3\)"):
        sheet().series("gcc", [1, 2, 3], [1, 2])


def test_bars_and_distributions() -> None:
    bars = (
        Sheet("Figure 2", "t", x="c", y="y").bars("a", {"1": Interval(2.0, 0.5, 3)}).bars("b", {"1": Measure.exact(3)})
    )
    (ax,) = bars.published("b", ["1"], [3.2]).drawing("x").figure.axes
    assert [bar.get_height() for bar in ax.patches] == [2.0, 3.0]
    marks = next(line for line in ax.lines if line.get_label() == "b, published")
    bar = ax.patches[1]
    np.testing.assert_allclose(marks.get_xydata(), [[bar.get_x() + bar.get_width() / 2, 3.2]])
    (ax,) = Sheet("Figure 3", "t", x="x", y="F").cdf("a", [[1, 2, 3, 4]]).drawing("x").figure.axes
    x, y = ax.lines[0].get_data()
    for value, share in ((1, 0.25), (2, 0.5), (2.9, 0.5), (4, 1.0)):
        assert np.asarray(y)[np.searchsorted(x, value, side="right") - 1] == share
    with pytest.raises(ValueError, match="a: found no samples"):
        sheet().cdf("a", [[]])


def test_the_same_figure_gives_the_same_bytes() -> None:
    first, second = (sheet().series("gcc", [0, 1], [1, 2]).drawing("x") for _ in range(2))
    assert first.file("svg") == second.file("svg")
    assert first.file("png") == second.file("png")


def test_logarithmic_axes_have_plain_numbers() -> None:
    drawing = Sheet("Figure 4", "t", x="x", y="y", xlog=True).series("a", [1.5, 3, 48], [1, 2, 3]).drawing("x")
    drawing.file("svg")  # drawing makes the labels
    (ax,) = drawing.figure.axes
    low, high = ax.get_xlim()
    labels = [label.get_text() for label in ax.get_xticklabels(which="both") if low <= label.get_position()[0] <= high]
    assert [text for text in labels if text] == ["2", "5", "10", "20", "50"]


def test_dollar_signs_in_labels_begin_no_formula() -> None:
    name = r"$\frac$"  # as a formula an error
    sheet = Sheet(name, name, x=name, y=name).series(name, [0, 1], [1, 2]).points(name, [0], [1])
    sheet = sheet.bars(name, {name: Measure.exact(1)}).published(name, [name], [1.0])
    drawing = sheet.drawing("x")
    drawing.file("svg")
    (ax,) = drawing.figure.axes
    legend = [text.get_text() for text in ax.get_legend().get_texts()]
    assert sorted(legend) == [name, name, name, f"{name}, published"]
    assert name in [label.get_text() for label in ax.get_xticklabels()]


def test_points_have_no_line_between_them() -> None:
    drawn = Sheet("Figure 5", "t", x="x", y="y").points("a", [3, 1, 2], [4.0, 5.0, 6.0]).series("b", [0, 3], [0, 3])
    (ax,) = drawn.drawing("x").figure.axes
    line, points = ax.lines
    assert points.get_linestyle() == "None"
    assert points.get_xydata().tolist() == [[3, 4], [1, 5], [2, 6]]
    assert points.get_color() != line.get_color()
