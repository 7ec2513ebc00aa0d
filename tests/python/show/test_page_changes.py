"""Changes and links on the page of `tidegate play`, with scenarios that have moves, schedules, recordings and randomness."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import tidegate
from support.play_page import (
    CHANGES,
    SCENARIO,
    Open,
    address,
    browser,
    capacity,
    clock,
    comes_true,
    exported,
    listed,
    opened,
    state,
    text,
    to,
)
from tidegate import Scenario
from tidegate.show import play

__all__ = ["address", "browser", "opened", "text"]  # fixtures

pytestmark = pytest.mark.slow


def served(folder: Path, name: str, changes: dict[str, Any]) -> str:
    """A file with the page of one scenario."""
    file = folder / "other.html"
    file.write_text(play.page(play.payload(Scenario.load(name, changes))))
    return file.as_uri()


def shared(page: Any) -> str:
    """The fragment of the link."""
    page.locator("#link").evaluate("one => { one.value = '' }")
    page.locator("#share").click()
    comes_true(page, "document.getElementById('link').value.includes('#p=')")
    return "#" + str(page.locator("#link").input_value()).partition("#")[2]


def test_a_link_to_another_version_of_a_scenario(opened: Open, tmp_path: Path) -> None:
    theirs = opened(at=served(tmp_path, SCENARIO, {**CHANGES, "links.downlink.delay": "77ms"}))
    without = opened(shared(theirs))
    assert "works while" not in theirs.locator("#link-said").inner_text()
    assert "another version of the scenario" in without.locator("#notice").inner_text()
    assert without.locator("#situation").input_value() == SCENARIO
    assert '"77ms"' not in without.evaluate("tidegate.toml()")
    theirs.locator("#whole").check()
    carried = opened(shared(theirs))
    assert carried.locator("#notice").is_hidden()
    assert carried.locator("#situation option:checked").inner_text().endswith("(from the link)")
    assert '"77ms"' in carried.evaluate("tidegate.toml()")
    shared(without)
    assert "works while `tidegate play` runs" in without.locator("#link-said").inner_text()


def test_the_capacity_is_planned_ahead(opened: Open) -> None:
    page = opened()
    to(page, 3)
    page.locator("#ahead").fill("2")
    page.locator("#ahead").press("Tab")
    capacity(page, 0.4)
    listed(page, 1)
    assert state(page, "moves")[0]["at"] == 5000
    assert state(page, "capacity") == 5e6, "not yet"
    box = page.locator("#plan").bounding_box()
    across, down = box["x"] + box["width"] * 0.8, box["y"] + box["height"] * 0.5
    page.mouse.move(across, down)
    page.mouse.down()
    page.mouse.move(across, down + 40, steps=6)
    page.mouse.up()
    listed(page, 2)
    planned = state(page, "moves")[1]
    assert planned["at"] > 5000
    page.locator("#undo").click()
    listed(page, 1)
    across = box["x"] + box["width"] * 0.3  # before the run's end, beyond which no point can be
    page.mouse.move(across, down)
    page.mouse.down()
    page.mouse.move(across, down + 40, steps=6)
    page.mouse.up()
    listed(page, 2)
    page.mouse.dblclick(across, down + 40)
    listed(page, 1)
    assert state(page, "moves")[0]["at"] == 5000, "the other one stays"
    to(page, 6)
    assert state(page, "capacity") == state(page, "moves")[0]["value"], "it came"


def test_an_outage_and_a_handover_keep_the_schedule(opened: Open, tmp_path: Path) -> None:
    page = opened(at=served(tmp_path, "rfc8867-5.1-variable-capacity", {}))
    to(page, 30)
    page.locator("#outage").click()
    assert state(page, "capacity") == 0
    to(page, 39.8)
    page.locator("#handover").click()
    for time_s, bps in ((31.9, 0), (32, 1e6), (39.8, 0), (40.2, 0), (40.3, 2.5e6), (59.9, 2.5e6), (60, 6e5), (80, 1e6)):
        to(page, time_s)
        assert state(page, "capacity") == bps, time_s
    (file, digest), *_ = exported(page, tmp_path)
    run = tidegate.run(Scenario.load(file))
    assert run.digest == digest
    assert [int(move.time) / 1e9 for move in run.scenario.moves] == [30, 32, 39.8, 40.3, 40.3, 60, 80]


def test_a_value_that_is_held_has_its_turn(opened: Open) -> None:
    page = opened()
    to(page, 1)
    page.locator("#play").click()
    box = page.locator("#handle").bounding_box()
    across, down = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(across, down)
    page.mouse.down()
    for far in (20, 60):  # the second one within the tenth of a second in which they are not told apart
        page.mouse.move(across, down + far)
        page.wait_for_timeout(20)  # a frame: moves of one are told as one
    page.wait_for_timeout(500)
    held = state(page, "capacity")
    page.mouse.up()
    assert state(page, "capacity") == held < 5e6
    assert state(page, "moves")[-1]["value"] == held


def test_the_slider_reaches_what_chance_draws(opened: Open, tmp_path: Path) -> None:
    page = opened(at=served(tmp_path, "cell-with-outages", {}))
    assert "recorded or random" in page.locator("#replaced").inner_text()
    to(page, 0.5)
    assert state(page, "capacity") > 4e6, "more than was thought before anything was drawn"
    assert int(page.locator("#capacity").input_value()) < 1000


def test_losses_of_a_process_are_gone_for_good(opened: Open, tmp_path: Path) -> None:
    page = opened(at=served(tmp_path, "lossy-wifi", {}))
    to(page, 2)
    button = page.locator("#loss")
    assert "replaced for the rest of the run" in str(button.get_attribute("title"))
    assert button.get_attribute("aria-pressed") is None
    button.click()
    listed(page, 1)
    assert "replaced for the rest of the run" in page.locator("#said").inner_text()
    comes_true(page, "document.getElementById('loss').textContent === 'no loss'")
    to(page, 3)
    button.click()
    listed(page, 2)
    assert state(page, "moves")[1]["value"] == 0


def test_queues_beside_each_other_are_told(opened: Open) -> None:
    page = opened()
    to(page, 8)
    sentence = page.locator("#queues .said").first
    assert "wait" in sentence.inner_text()
    assert "one after the other" not in sentence.inner_text()
    page.locator("#queue").select_option("fq-codel")
    comes_true(page, "tidegate.state().ready && tidegate.state().queue === 'fq-codel'")
    comes_true(page, "document.querySelector('#queues .said').textContent.includes('queues one after the other')")


def test_another_fragment_opens_another_play(opened: Open) -> None:
    page = opened()
    to(page, 2)
    page.evaluate("location.hash = '#buffer-bloat'")
    comes_true(page, "tidegate.state().situation === 'buffer-bloat' && tidegate.state().ready")
    assert clock(page) == 0
    page.evaluate("location.hash = '#p=damaged'")
    comes_true(page, "!document.getElementById('notice').hidden")
    assert "damaged" in page.locator("#notice").inner_text()
    assert state(page, "situation") == "buffer-bloat"
    page.locator("#queue").select_option("codel")
    page.locator("#reset").click()
    assert state(page, "queue") == "codel"
    page.locator("#situation").select_option(SCENARIO)
    comes_true(page, "document.getElementById('notice').hidden")


def test_keys_after_the_pointer(opened: Open) -> None:
    page = opened()
    page.locator("#time").focus()
    page.keyboard.press("Space")
    comes_true(page, "tidegate.state().playing")
    page.keyboard.press("Space")
    comes_true(page, "!tidegate.state().playing")
    page.locator("#speed").focus()
    page.keyboard.press("ArrowDown")
    page.locator("#speed").dispatch_event("change")
    assert page.evaluate("document.activeElement.id") == "speed", "chosen by keys it stays"
    page.locator("#speed").dispatch_event("pointerdown")
    page.locator("#speed").dispatch_event("change")
    assert page.evaluate("document.activeElement.id") == "", "chosen by pointer the keys are free again"
