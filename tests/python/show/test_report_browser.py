"""The report in a real browser: it fetches nothing, logs no error, and draws all charts."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

import tidegate
from support import chromium
from support import synthetic_runs as synthetic
from support.chromium import browser
from tidegate import Scenario, report

__all__ = ["browser"]  # a fixture

pytestmark = pytest.mark.slow

# The number of colours on each canvas, without transparent pixels.
COLOURS = """[...document.querySelectorAll("canvas")].map((canvas) => {
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  const seen = new Set();
  for (let i = 0; i < data.length; i += 4) {
    if (data[i + 3]) seen.add(data[i] << 16 | data[i + 1] << 8 | data[i + 2]);
  }
  return seen.size;
})"""
BOX = """(() => {
  const over = document.querySelector(".u-over");
  over.scrollIntoView({ block: "center" });
  const box = over.getBoundingClientRect();
  return [box.x, box.y, box.width, box.height];
})()"""
SECOND_SEED = """(() => {
  const seed = document.getElementById("seed");
  seed.value = "1";
  seed.dispatchEvent(new Event("change"));
})()"""
# After two frames all requested drawing is done.
RENDERED = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))"


@pytest.fixture
def sheet(tmp_path: Path) -> Path:
    runs = synthetic.comparison(("gcc", "fixed"), 3, flows=4)
    return report.write(
        tmp_path / "report.html",
        report.Source(runs, title="A <b>bold</b> title", command="tidegate compare"),
    )


def test_nothing_is_fetched_and_nothing_complained_of(browser: chromium.Browser, sheet: Path) -> None:
    browser.open(sheet)
    assert browser.evaluate(RENDERED)
    assert browser.complaints() == []
    assert [url for url in browser.requests() if not url.startswith("data:")] == [sheet.resolve().as_uri()]


def test_every_chart_is_there_and_drawn(browser: chromium.Browser, sheet: Path) -> None:
    browser.open(sheet)
    browser.evaluate(RENDERED)
    # four quantities for each of two controllers, and the distribution
    assert browser.evaluate("document.querySelectorAll('canvas').length") == 9
    assert browser.evaluate("document.documentElement.dataset.charts") == "9"
    assert all(count > 3 for count in browser.evaluate(COLOURS))
    assert browser.evaluate("document.querySelectorAll('svg .dot').length") == 8
    assert browser.evaluate("document.querySelector('h1').textContent") == "A <b>bold</b> title"


def test_a_blank_canvas_would_be_found(browser: chromium.Browser, sheet: Path) -> None:
    browser.open(sheet)
    browser.evaluate(RENDERED)
    browser.evaluate("(() => { const c = document.querySelector('canvas'); c.getContext('2d').reset(); })()")
    assert browser.evaluate(COLOURS)[0] == 0


def test_dragging_zooms_all_charts_over_time_and_a_button_goes_back(browser: chromium.Browser, sheet: Path) -> None:
    browser.open(sheet)
    browser.evaluate(RENDERED)
    before = browser.evaluate("[...document.querySelectorAll('canvas')].map((c) => c.toDataURL())")
    box = browser.evaluate(BOX)
    x, y, width, height = box
    steps = [
        ("mouseMoved", 0.25),
        ("mousePressed", 0.25),
        ("mouseMoved", 0.4),
        ("mouseMoved", 0.5),
        ("mouseReleased", 0.5),
    ]
    for kind, share in steps:
        browser.call(
            "Input.dispatchMouseEvent",
            type=kind,
            x=x + share * width,
            y=y + height / 2,
            button="left",
            clickCount=1,
        )
    browser.evaluate(RENDERED)
    start, end = map(float, browser.evaluate("document.documentElement.dataset.zoom").split())
    assert start == pytest.approx(15, abs=0.3)
    assert end == pytest.approx(30, abs=0.3)
    after = browser.evaluate("[...document.querySelectorAll('canvas')].map((c) => c.toDataURL())")
    changed = [a != b for a, b in zip(before, after, strict=True)]
    # the distribution is not over time
    assert changed == [True] * 8 + [False]
    browser.evaluate("document.getElementById('reset').click()")
    browser.evaluate(RENDERED)
    assert browser.evaluate("document.documentElement.dataset.zoom") == ""
    again = browser.evaluate("[...document.querySelectorAll('canvas')].map((c) => c.toDataURL())")
    assert again == before
    assert browser.complaints() == []


def test_another_seed_and_a_dark_page_are_drawn_anew(browser: chromium.Browser, sheet: Path, tmp_path: Path) -> None:
    browser.open(sheet)
    browser.evaluate(RENDERED)
    first = browser.evaluate("document.querySelector('canvas').toDataURL()")
    browser.evaluate(SECOND_SEED)
    browser.evaluate(RENDERED)
    second = browser.evaluate("document.querySelector('canvas').toDataURL()")
    assert second != first
    browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    browser.evaluate(RENDERED)
    assert browser.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(20, 23, 28)"
    assert browser.evaluate("document.querySelector('canvas').toDataURL()") != second
    assert all(count > 3 for count in browser.evaluate(COLOURS))
    picture = browser.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)
    (tmp_path / "dark.png").write_bytes(base64.b64decode(picture["data"]))
    browser.call("Emulation.setEmulatedMedia", features=[])
    assert browser.complaints() == []


def test_a_narrow_page_does_not_scroll_sideways(browser: chromium.Browser, sheet: Path) -> None:
    browser.call(
        "Emulation.setDeviceMetricsOverride",
        width=390,
        height=800,
        deviceScaleFactor=2,
        mobile=True,
    )
    browser.open(sheet)
    browser.evaluate(RENDERED)
    assert browser.evaluate("document.documentElement.scrollWidth") <= 390
    assert all(count > 3 for count in browser.evaluate(COLOURS))
    browser.call("Emulation.clearDeviceMetricsOverride")


# The words of the main table that are in sight: the text of each cell, and the name before it.
IN_SIGHT = """(() => {
  const wide = document.documentElement.clientWidth;
  return [...document.querySelectorAll("table.headline tbody td")].map((cell) => {
    const range = document.createRange();
    range.selectNodeContents(cell);
    const box = range.getBoundingClientRect(), whole = cell.getBoundingClientRect();
    const name = getComputedStyle(cell, "::before").content;
    return [name.replaceAll('"', ""), cell.textContent, whole.left >= 0 && box.left >= 0 && box.right <= wide && whole.right <= wide];
  });
})()"""


@pytest.mark.parametrize(
    "names", [("gcc",), ("gcc", "fixed", "nada"), ("gcc", "a-controller-of-ones-own:with=settings")]
)
def test_the_main_table_is_read_on_a_phone(browser: chromium.Browser, tmp_path: Path, names: tuple[str, ...]) -> None:
    groups = {name: [synthetic.under(name, seed) for seed in (1, 2, 3)] for name in names}
    browser.call("Emulation.setDeviceMetricsOverride", width=390, height=844, deviceScaleFactor=2, mobile=True)
    try:
        browser.open(report.write(tmp_path / "report.html", report.Source(groups)))
        assert browser.evaluate(RENDERED)
        cells = browser.evaluate(IN_SIGHT)
        assert len(cells) >= 8 * len(names)
        assert [text for _, text, seen in cells if not seen] == []
        if len(names) > 1:
            assert {name for name, *_ in cells} == {*names}
        else:
            head = "document.querySelector('table.headline thead th:last-child').getBoundingClientRect().right"
            assert 0 < browser.evaluate(head) <= 390
    finally:
        browser.call("Emulation.clearDeviceMetricsOverride")


def test_a_single_run_has_its_charts(browser: chromium.Browser, tmp_path: Path) -> None:
    browser.open(report.write(tmp_path / "one.html", synthetic.run("gcc", flows=3)))
    browser.evaluate(RENDERED)
    # rate, delay, loss, the queue and the distribution; a synthetic run has no series of its ends
    assert browser.evaluate("document.querySelectorAll('canvas').length") == 5
    assert browser.evaluate("document.getElementById('seed')") is None
    assert browser.complaints() == []


# The width by which a figure, table or canvas exceeds the page.
OVER = """Math.max(...[...document.querySelectorAll("figure, canvas, svg.plot, table")]
  .filter((one) => one.offsetParent !== null || one.tagName === "svg")
  .map((one) => one.getBoundingClientRect().right - document.documentElement.clientWidth))"""
WIDTHS = "[...document.querySelectorAll('[data-chart]')].map((one) => one.clientWidth).filter((width) => width)"


@pytest.mark.parametrize("count", [1, 3, 10])
def test_controllers_have_room_on_a_screen_and_on_paper(browser: chromium.Browser, tmp_path: Path, count: int) -> None:
    names = ("gcc", "gcc:draft-02", "fixed:2Mbps", "tfrc", "sprout", "a", "b", "c", "d", "e")[:count]
    runs = {name: [synthetic.run("gcc", seed)] for seed, name in enumerate(names, 1)}
    browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    browser.open(report.write(tmp_path / "report.html", report.Source(runs)))
    browser.evaluate(RENDERED)
    widths = browser.evaluate(WIDTHS)
    assert min(widths) >= 290
    # a few charts fill the width of the page
    assert max(widths) > 1300 / min(count, 4) - 60
    browser.call("Emulation.setDeviceMetricsOverride", width=718, height=1000, deviceScaleFactor=1, mobile=False)
    browser.evaluate("dispatchEvent(new Event('beforeprint'))")
    browser.call("Emulation.setEmulatedMedia", media="print")
    browser.evaluate(RENDERED)
    assert browser.evaluate(OVER) <= 0.5
    assert all(colours > 3 for colours in browser.evaluate(COLOURS))
    # dark lines on white paper, although the screen is dark
    assert browser.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    browser.call("Emulation.setEmulatedMedia", media="", features=[])
    browser.call("Emulation.clearDeviceMetricsOverride")
    browser.evaluate("dispatchEvent(new Event('afterprint'))")
    browser.evaluate(RENDERED)
    assert browser.evaluate(WIDTHS) == widths
    assert browser.complaints() == []


# Numbers of pixels in a colour, which neither axes nor grids have.
COLOURED = """[...document.querySelectorAll("canvas")].map((canvas) => {
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  let count = 0;
  for (let i = 0; i < data.length; i += 4) {
    const colour = data.subarray(i, i + 3);
    if (data[i + 3] > 128 && Math.max(...colour) - Math.min(...colour) > 80) count += 1;
  }
  return count;
})"""


def test_a_value_without_neighbours_is_drawn(browser: chromium.Browser, tmp_path: Path) -> None:
    """A run of a single bin has points, where a line would have no length."""
    short = tidegate.run(Scenario.load("home-broadband", {"duration": "150ms"}))
    browser.open(report.write(tmp_path / "short.html", short))
    browser.evaluate(RENDERED)
    assert browser.evaluate(COLOURED)[0] > 0
