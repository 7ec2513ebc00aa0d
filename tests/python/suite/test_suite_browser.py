"""The page of a suite's result in a real browser: cells open, keys lead on, and paper has all of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from support import chromium
from support.chromium import browser
from support.suite_results import TWELVE, made, rendered

__all__ = ["browser"]  # a fixture

pytestmark = pytest.mark.slow

FOCUSED = "document.activeElement.dataset.at"
HEADING = "document.querySelector('dialog h2')?.textContent"


@pytest.fixture
def sheet(tmp_path: Path) -> Path:
    page = tmp_path / "index.html"
    page.write_text(rendered(made((*TWELVE[:8], f"python:/home/{'x' * 90}.py:Mine"))), encoding="utf-8")
    return page


def key(browser: chromium.Browser, name: str) -> None:
    for kind in ("rawKeyDown", "keyUp"):
        browser.call("Input.dispatchKeyEvent", type=kind, key=name, code=name, windowsVirtualKeyCode=27)


def test_nothing_is_fetched_and_nothing_complained_of(browser: chromium.Browser, sheet: Path) -> None:
    browser.open(sheet)
    assert browser.evaluate("document.documentElement.dataset.ready") == "yes"
    assert browser.complaints() == []
    assert [url for url in browser.requests() if not url.startswith("data:")] == [sheet.resolve().as_uri()]


def test_arrow_keys_go_from_cell_to_cell_and_through_what_is_open(browser: chromium.Browser, sheet: Path) -> None:
    browser.open(sheet)
    browser.evaluate("document.querySelector('[data-at=\"0,0\"]').focus()")
    for name in ("ArrowRight", "ArrowDown"):
        key(browser, name)
    assert browser.evaluate(FOCUSED) == "1,1"
    browser.evaluate("document.activeElement.click()")
    assert browser.evaluate(HEADING) == "✓ pass 5.1,delay=10ms · gcc:draft-02"
    # the rules with their numbers, pictures of rate and delay, and the command that shows more
    said = browser.evaluate("document.querySelector('dialog').textContent")
    assert "at least 1 Mbit/s" in said
    assert "tidegate suite view . 5.1,delay=10ms gcc:draft-02 --seed 1 --out view" in said
    assert browser.evaluate("document.querySelectorAll('dialog svg.plot').length") == 2
    key(browser, "ArrowLeft")
    assert browser.evaluate(HEADING) == "✓ pass 5.1,delay=10ms · gcc"
    key(browser, "ArrowUp")
    key(browser, "ArrowUp")
    assert browser.evaluate(HEADING) == "✓ pass 5.0,delay=0ms · gcc"
    browser.evaluate("document.querySelector('dialog').close()")
    browser.evaluate("new Promise((done) => setTimeout(() => done(true), 50))")
    assert browser.evaluate(FOCUSED) == "0,0"


def test_a_pointer_over_a_cell_has_its_rules(browser: chromium.Browser, sheet: Path) -> None:
    browser.open(sheet)
    over = "(() => { const c = document.querySelector('[data-at=\"5,0\"]'); c.dispatchEvent(new Event('mouseenter')); return c.title; })()"
    assert browser.evaluate(over) == "✓ rate: 2.02 Mbit/s, at least 1 Mbit/s\n✗ delay: 120.0 ms, at most 100 ms"


def test_a_button_of_the_legend_brings_out_one(browser: chromium.Browser, sheet: Path) -> None:
    browser.open(sheet)
    browser.evaluate("document.querySelectorAll('ul.legend button')[1].click()")
    shown = "[...new Set([...document.querySelectorAll('.plot .on')].map((part) => part.dataset.name))]"
    assert browser.evaluate(shown) == ["gcc:draft-02"]
    assert browser.evaluate("document.querySelector('.plot').classList.contains('one')")
    browser.evaluate("document.querySelectorAll('ul.legend button')[1].click()")
    assert browser.evaluate(shown) == []


def test_paper_has_tables_without_buttons_and_a_narrow_screen_does_not_scroll_sideways(
    browser: chromium.Browser, sheet: Path
) -> None:
    browser.open(sheet)
    visible = "[...document.querySelectorAll('.{}')].filter((part) => part.offsetParent).length"
    assert browser.evaluate(visible.format("card.screen")) == 1
    assert browser.evaluate(visible.format("card.paper table")) == 0
    browser.call("Emulation.setEmulatedMedia", media="print")
    assert browser.evaluate(visible.format("card.screen")) == 0
    assert browser.evaluate(visible.format("card.paper table")) == 2
    assert browser.evaluate("document.querySelectorAll('.paper button').length") == 0
    browser.call("Emulation.setEmulatedMedia", media="")
    browser.call("Emulation.setDeviceMetricsOverride", width=390, height=800, deviceScaleFactor=1, mobile=False)
    assert browser.evaluate("document.documentElement.scrollWidth") == 390
    browser.call("Emulation.clearDeviceMetricsOverride")
