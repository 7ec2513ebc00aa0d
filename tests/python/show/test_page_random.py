"""After random actions on the page of `tidegate play`, its state depends only on the resulting play."""

from __future__ import annotations

import random
from typing import Any

import pytest

from support.play_page import Open, address, at_time, browser, comes_true, opened, text

__all__ = ["address", "browser", "opened", "text"]  # fixtures

pytestmark = pytest.mark.slow

BUTTONS = ("play", "back", "step", "download", "loss", "outage", "handover", "path", "undo")
STEPS = 50


def act(page: Any, luck: random.Random) -> None:
    """Does one random action."""
    match luck.choice((*BUTTONS, "seek", "capacity", "queue", "controller", "seed", "now", "ahead")):
        case "seek":
            page.locator("#time").evaluate(
                "(one, ms) => { one.value = ms; one.dispatchEvent(new Event('input')); }", luck.randrange(120) * 100
            )
        case "capacity":
            page.locator("#capacity").evaluate(
                "(one, at) => { one.value = at; one.dispatchEvent(new Event('input')); one.dispatchEvent(new Event('change')); }",
                luck.randrange(1000),
            )
        case "queue":
            page.select_option("#queue", index=luck.randrange(6))
        case "controller":
            page.select_option("#controller-b", luck.choice(("", "nada", "scream", "tfrc")))
        case "seed":
            page.fill("#seed", str(luck.randrange(9)))
            page.press("#seed", "Tab")
        case "now" | "ahead" as where:
            box = page.locator("#handle" if where == "now" else "#plan").bounding_box()
            if box is None or box["width"] < 5:
                return
            x, y = box["x"] + min(17, box["width"] / 2), box["y"] + 17
            page.mouse.move(x, y)
            page.mouse.down()
            page.mouse.move(x + luck.randrange(60), y + luck.randrange(-80, 120), steps=3)
            page.mouse.up()
        case button:
            # another path is offered only where there is one
            if page.locator(f"#{button}").is_visible() and page.locator(f"#{button}").is_enabled():
                page.locator(f"#{button}").click()


@pytest.mark.parametrize("number", range(3))
def test_what_was_lived_through_is_what_its_link_shows(opened: Open, number: int) -> None:
    luck = random.Random(number)
    page = opened()
    page.select_option("#speed", "10")
    for _ in range(STEPS):
        act(page, luck)
        page.wait_for_timeout(luck.randrange(100))
    # in a single script: a run that ends in between would begin again
    page.evaluate("tidegate.state().playing && document.getElementById('play').click()")
    comes_true(page, "tidegate.state().ready")
    lived = page.evaluate("tidegate.state()")
    numbers = page.locator("#numbers").inner_text()
    page.locator("#share").click()
    comes_true(page, "document.getElementById('link').value !== ''")
    again = opened(page.evaluate("location.hash"))
    assert lived["error"] is None
    assert len(lived["moves"]) > 3, "something was changed"
    # worlds that got the changes one by one are in the state of worlds that began with all changes
    state = again.evaluate("tidegate.state()")
    assert [state[key] for key in ("now", "moves", "rows")] == [lived[key] for key in ("now", "moves", "rows")]
    assert again.locator("#numbers").inner_text() == numbers


def test_a_page_is_ready_when_all_numbers_are_drawn(opened: Open) -> None:
    page = opened()
    page.select_option("#speed", "10")
    page.locator("#play").click()
    at_time(page, "> 2")
    # in a single script, so that no frame is drawn between the click and the look
    ready, numbers = page.evaluate(
        "document.getElementById('play').click(), [tidegate.state().ready, document.getElementById('numbers').innerText]"
    )
    comes_true(page, "tidegate.state().ready")
    drawn = page.evaluate("document.getElementById('numbers').innerText")
    assert drawn != numbers, "the table is drawn once a second while it plays"
    assert not ready
