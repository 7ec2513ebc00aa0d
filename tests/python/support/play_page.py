"""The page of `tidegate play` in a browser, and what is done to it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from support import chromium
from tidegate import Scenario
from tidegate.show import play

playwright = pytest.importorskip("playwright.sync_api", reason='needs Playwright: pip install "tidegate[page]"')


SCENARIO = "tcp-joins"


CHANGES = {"duration": "12s", "flows.download.start": "4s", "flows.download.stop": "9s"}


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Debian's Chromium, without a window."""
    with playwright.sync_playwright() as made:
        started = made.chromium.launch(executable_path=chromium.find(), args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture(scope="module")
def text() -> str:
    """The page with a short scenario and the lessons."""
    return play.page(play.payload(Scenario.load(SCENARIO, CHANGES), ["gcc", "nada"]))


@pytest.fixture(scope="module")
def address(text: str) -> Iterator[str]:
    """Where it is served."""
    with play.Server(text) as server:
        Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}).start()
        yield server.address
        server.shutdown()


Open = Callable[..., Any]


@pytest.fixture
def opened(browser: Any, address: str) -> Iterator[Open]:
    """Opens the page; in the end nothing was asked for but it, and nothing was said on the console."""
    contexts: list[Any] = []
    asked: list[str] = []
    said: list[str] = []

    def begin(fragment: str = "", at: str = address, script: str | None = None, **settings: Any) -> Any:
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **settings})
        contexts.append(context)
        context.set_default_timeout(20_000)
        if script is not None:
            context.add_init_script(script)
        page = context.new_page()
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(f"{at}{fragment}")
        comes_true(page, "globalThis.tidegate?.state().ready || !document.getElementById('error').hidden")
        return page

    yield begin
    for context in contexts:
        context.close()
    allowed = (address, "file://", "data:", "blob:")
    assert [url for url in asked if not url.startswith(allowed)] == []
    assert {url.partition("#")[0] for url in asked if url.startswith(address)} <= {address}
    assert said == []


def clock(page: Any) -> float:
    """What the page shows for the time, in seconds."""
    return float(page.locator("#clock").inner_text().split()[0])


def comes_true(page: Any, condition: str) -> None:
    """Waits until an expression is true in the page. (Playwright's own way needs eval, which the page forbids.)"""
    end = time.monotonic() + 60
    while not page.evaluate(condition):
        assert time.monotonic() < end, f"never: {condition}; the clock says {page.locator('#clock').inner_text()}"
        page.wait_for_timeout(30)


def at_time(page: Any, comparison: str) -> None:
    """Waits until the clock compares so, in seconds."""
    comes_true(page, f"parseFloat(document.getElementById('clock').textContent) {comparison}")


def to(page: Any, seconds: float) -> None:
    """Goes to a time of the run, as a user with the slider does."""
    page.locator("#time").evaluate(
        "(slider, ms) => { slider.value = ms; slider.dispatchEvent(new Event('input', {bubbles: true}));"
        " slider.dispatchEvent(new Event('change', {bubbles: true})); }",
        seconds * 1000,
    )
    comes_true(page, f"tidegate.state().ready && tidegate.state().now === {seconds}")
    at_time(page, f"=== {seconds}")


def moves(page: Any) -> list[str]:
    """The list of changes."""
    return [str(text) for text in page.locator("#moves li").all_inner_texts()]


def numbers(page: Any) -> str:
    """The table of numbers, once it stands still: it is filled where the run rests, and once a second while it plays."""
    page.wait_for_timeout(700)
    return str(page.locator("#numbers tbody").inner_text())


def listed(page: Any, count: int) -> None:
    """Waits until so many changes are listed."""
    comes_true(page, f"document.querySelectorAll('#moves li').length === {count}")


def exported(page: Any, folder: Path) -> list[tuple[Path, str]]:
    """For each contender the file that the page gives, and the digest that it shows beside it."""
    page.locator("#export").click()
    count = len(page.evaluate("tidegate.state().controllers"))
    comes_true(page, f"document.querySelectorAll('#exported code[data-digest]').length === {count}")
    made = []
    for part in page.locator("#exported [data-contender]").all():
        with page.expect_download() as waiting:
            part.locator("a[download]").click()
        file = folder / waiting.value.suggested_filename
        waiting.value.save_as(file)
        digest = str(part.locator("code[data-digest]").get_attribute("data-digest"))
        assert digest in part.inner_text()
        made.append((file, digest))
    return made


def capacity(page: Any, share: float) -> None:
    """Sets the slider of the capacity to a part of its way."""
    page.locator("#capacity").evaluate(
        "(slider, share) => { slider.value = String(Math.round(slider.max * share));"
        " slider.dispatchEvent(new Event('input', {bubbles: true})); slider.dispatchEvent(new Event('change', {bubbles: true})); }",
        share,
    )


def state(page: Any, key: str) -> Any:
    """How things stand."""
    return page.evaluate(f"tidegate.state().{key}")


def drawn(page: Any, place: str) -> str:
    """What the first canvas of a chart has on it."""
    return str(page.evaluate(f"document.querySelector('{place} canvas').toDataURL()"))
