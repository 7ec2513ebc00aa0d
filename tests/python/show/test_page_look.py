"""The look of the page of `tidegate play`: the capacity is visible, pictures fit, and controls are large enough for fingers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.play_page import Open, address, browser, comes_true, opened, text, to
from tidegate import Scenario
from tidegate.show import play

__all__ = ["address", "browser", "opened", "text"]  # fixtures

pytestmark = pytest.mark.slow

# how bright each pixel of a column of the rates is on white, where no upright line of the grid stands: at 3.5 of 20 s
COLUMN = """() => {
  const canvas = document.querySelector('#chart-rate canvas');
  const [all, over] = [canvas, document.querySelector('#chart-rate .u-over')].map(one => one.getBoundingClientRect());
  const x = Math.round(over.left - all.left + over.width * 0.175);
  const { data } = canvas.getContext('2d').getImageData(x, 0, 1, canvas.height);
  return Array.from({ length: canvas.height }, (_, y) => 255 - data[4 * y + 3] + (data[4 * y + 3] / 255) * data[4 * y]);
}"""


@pytest.mark.parametrize("lesson", ["beside-tcp", "l4s"])
def test_no_line_of_the_grid_hides_the_capacity(opened: Open, lesson: str) -> None:
    page = opened(f"#{lesson}")
    to(page, 8)
    for control in ("#show-receive", "#show-target"):
        page.locator(control).uncheck()
    page.wait_for_timeout(400)
    # the grid has a line at 4 and at 6 Mbit/s, where the capacity is: drawn above it, it leaves 178 of its 125
    assert min(page.evaluate(COLUMN)) < 150


def sizes(page: Any) -> list[list[int]]:
    """The width of each picture in pixels, and the width in which it is shown."""
    widths = page.evaluate(
        "[...document.querySelectorAll('#queues canvas, #frames canvas')].map(one =>"
        " [one.width, Math.round(one.getBoundingClientRect().width * devicePixelRatio)])"
    )
    return [[int(width) for width in pair] for pair in widths]


def test_pictures_of_a_run_that_rests_fit_a_window_of_another_width(opened: Open) -> None:
    page = opened()
    to(page, 5)
    for width in (700, 1280, 390):
        before = sizes(page)
        page.set_viewport_size({"width": width, "height": 900})
        page.wait_for_timeout(500)
        now = sizes(page)
        assert now != before
        assert all(abs(drawn - visible) <= 1 for drawn, visible in now), now


def test_a_mark_in_the_legend_is_dashed_as_its_line_is(opened: Open) -> None:
    page = opened()
    to(page, 5)
    styles = "[...document.querySelectorAll('#chart-{} .u-marker')].map(one => one.style.borderStyle)"
    assert page.evaluate(styles.format("rate"))[1:] == ["solid", "dashed", "solid", "dashed"]
    assert page.evaluate(styles.format("delay"))[1:] == ["solid", "dotted", "dashed"] * 2


def test_it_is_said_whose_packets_wait_where_they_are_not_the_calls(opened: Open) -> None:
    page = opened("#queue-management")
    to(page, 40)
    texts: set[str] = set()
    for _ in range(30):
        page.locator("#step").click()
        comes_true(page, "tidegate.state().ready")
        page.wait_for_timeout(60)
        texts.update(page.locator("#queues .said").all_inner_texts())
    waiting = [text for text in texts if not text.startswith("0 ")]
    assert any("download" in text for text in waiting)
    assert any("download" in text and "call" not in text for text in waiting), waiting


def test_fingers_find_what_they_look_for(opened: Open) -> None:
    page = opened(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    to(page, 5)
    page.locator("#loss").tap()
    page.locator("#inside-choice summary").tap()
    page.wait_for_timeout(300)
    # WCAG 2.2, 2.5.8: 24 by 24 CSS pixels; a box to check has its label
    small = page.evaluate(
        "[...document.querySelectorAll('button, select, summary, input')].filter(one => one.offsetParent)"
        ".map(one => (one.type === 'checkbox' ? one.closest('label') : one)).map(one => [one.outerHTML.slice(0, 80),"
        " one.getBoundingClientRect()]).filter(([, box]) => box.width < 24 || box.height < 24).map(([what]) => what)"
    )
    assert small == []


def test_how_things_stand_where_nothing_can_be_played(opened: Open, tmp_path: Path) -> None:
    file = tmp_path / "other.html"
    file.write_text(play.page(play.payload(Scenario.load("lte-cell"), refused="its links cannot be dragged")))
    page = opened(at=file.as_uri())
    assert page.evaluate("tidegate.state()") == {"situation": "lte-cell", "refused": "its links cannot be dragged"}
