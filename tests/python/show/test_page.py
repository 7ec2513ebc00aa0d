"""The page of `tidegate play` in a browser: its controls, digests equal to native runs, links, files and devices."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest

import tidegate
from support import Cli, chromium
from support.play_page import (
    CHANGES,
    SCENARIO,
    Open,
    address,
    at_time,
    browser,
    capacity,
    clock,
    comes_true,
    drawn,
    exported,
    listed,
    moves,
    numbers,
    opened,
    state,
    text,
    to,
)
from tidegate import Scenario
from tidegate.show import play

__all__ = ["address", "browser", "opened", "text"]  # fixtures

pytestmark = pytest.mark.slow

LESSONS = Path(play.__file__).parent / "lessons"

BROKEN = ["#p=", "#p=AAAA", "#p=%%%", "#p=q1bKz1ayUgrJzE1VKEotLs0pUSgoyk9ILUpMyUktAgA", "#nowhere", "#p=" + "A" * 5000]


if not play.is_built():
    pytest.skip("the page is not built (make page)", allow_module_level=True)
if chromium.find() is None:
    pytest.skip("needs chromium", allow_module_level=True)


def test_it_plays_pauses_steps_and_goes_back(opened: Open) -> None:
    page = opened()
    assert page.locator("#situation").input_value() == SCENARIO
    assert (page.locator("#controller-a").input_value(), page.locator("#controller-b").input_value()) == ("gcc", "nada")
    assert clock(page) == 0
    page.locator("#play").click()
    at_time(page, "> 0.5")
    page.locator("#play").click()
    stopped = clock(page)
    page.wait_for_timeout(300)
    assert clock(page) == stopped
    page.locator("#step").click()
    at_time(page, f"> {stopped}")
    to(page, 8)
    page.locator("#back").click()
    at_time(page, "=== 7")
    before = numbers(page)
    to(page, 9)
    assert numbers(page) != before
    to(page, 7)
    assert numbers(page) == before, "the run is the same again"


def test_speed_is_that_of_the_clock(opened: Open) -> None:
    page = opened()
    page.locator("#speed").select_option("10")
    page.locator("#play").click()
    at_time(page, ">= 12")
    assert clock(page) == 12
    assert "play" in page.locator("#play").inner_text()


def test_each_button_is_a_change_that_is_listed_and_taken_back(opened: Open) -> None:
    page = opened()
    to(page, 2)
    # an outage begins and ends; a handover has more delay afterwards, too
    for name, count in (("download", 1), ("loss", 2), ("outage", 4), ("handover", 6)):
        page.locator(f"#{name}").click()
        listed(page, count)
    changes = " ".join(moves(page))
    assert "download-1 begins" in changes
    assert "loss" in changes
    assert page.locator("#download").get_attribute("aria-pressed") == "true"
    assert page.locator("#loss").get_attribute("aria-pressed") == "true"
    page.locator("#undo").click()
    listed(page, 4)
    page.keyboard.press("Control+z")
    listed(page, 2)
    page.locator("#moves li button").first.click()
    listed(page, 1)
    page.locator("#reset").click()
    listed(page, 0)
    at_time(page, "=== 0")


def test_the_capacity_follows_slider_keys_and_the_knob(opened: Open) -> None:
    page = opened()
    to(page, 3)
    assert state(page, "capacity") == 5e6
    before = page.locator("#capacity-text").inner_text()
    capacity(page, 0.3)
    listed(page, 1)
    (move,) = state(page, "moves")
    assert (move["at"], move["link"], move["key"]) == (3000, "downlink", "capacity")
    assert move["value"] == state(page, "capacity") < 5e6
    assert page.locator("#capacity-text").inner_text() != before
    page.locator("#capacity").focus()
    page.keyboard.press("ArrowUp")
    comes_true(page, f"tidegate.state().capacity > {move['value']}")
    listed(page, 1)
    slid = state(page, "capacity")
    box = page.locator("#handle").bounding_box()
    across, down = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(across, down)
    page.mouse.down()
    page.mouse.move(across, down - 60, steps=6)
    page.mouse.up()
    comes_true(page, f"tidegate.state().capacity > {slid + 1e5}")
    listed(page, 1)
    page.locator("#undo").click()
    comes_true(page, f"tidegate.state().capacity === {slid}")


def test_a_download_ends_and_loss_goes(opened: Open) -> None:
    page = opened()
    to(page, 2)
    for name in ("download", "loss"):
        page.locator(f"#{name}").click()
    listed(page, 2)
    to(page, 4)
    for name in ("download", "loss"):
        page.locator(f"#{name}").click()
        comes_true(page, f"document.getElementById('{name}').getAttribute('aria-pressed') === 'false'")
    started, lossy, ended, clean = state(page, "moves")
    assert [move["at"] for move in (started, lossy, ended, clean)] == [2000, 2000, 4000, 4000]
    assert (started["running"], ended["running"]) == (True, False)
    assert (lossy["value"], clean["value"]) == (0.05, 0)


@pytest.mark.parametrize(
    ("control", "chart"),
    [
        ("#show-receive", "#chart-rate"),
        ("#show-sending", "#chart-rate"),
        ("#show-target", "#chart-rate"),
        ("#log", "#chart-rate"),
        ("#window", "#chart-rate"),
        ("#queue-unit", "#chart-queue"),
    ],
)
def test_each_choice_of_a_chart_changes_it(opened: Open, control: str, chart: str) -> None:
    page = opened()
    to(page, 8)
    page.locator(chart).scroll_into_view_if_needed()
    page.wait_for_timeout(300)
    before = drawn(page, chart)
    if control in {"#window", "#queue-unit"}:
        page.locator(control).select_option(index=0 if control == "#window" else 1)
    else:
        page.locator(control).click()
    end = time.monotonic() + 20
    while drawn(page, chart) == before:
        assert time.monotonic() < end, "nothing changed"
        page.wait_for_timeout(50)


def test_what_is_seen_of_the_inside_is_chosen(opened: Open) -> None:
    page = opened()
    to(page, 8)
    count = page.locator("#inside figure").count()
    assert count >= 2
    page.locator("#inside-choice summary").click()
    chosen = page.locator("#topics input:checked").first
    topic = chosen.get_attribute("data-topic")
    chosen.focus()
    page.keyboard.press("Space")
    comes_true(page, f"document.querySelectorAll('#inside figure').length === {count - 1}")
    assert page.locator(f"#inside figure[data-topic='{topic}']").count() == 0
    assert page.evaluate("document.activeElement.dataset.topic") == topic
    page.locator("#topics [data-all]").click()
    comes_true(page, "document.querySelectorAll('#inside figure').length > 8")


@pytest.mark.parametrize("name", ["plain", "changed"])
def test_an_exported_scenario_has_the_digest_that_the_page_shows(
    opened: Open, cli: Cli, tmp_path: Path, name: str
) -> None:
    page = opened()
    if name == "changed":
        page.locator("#controller-a").select_option("scream")
        page.locator("#queue").select_option("fq-codel")
        page.locator("#seed").fill("7")
        page.locator("#seed").press("Enter")
        to(page, 2)
        page.locator("#download").click()
        capacity(page, 0.4)
        to(page, 3.3)
        page.locator("#loss").click()
        page.locator("#handover").click()
        to(page, 6)
        page.locator("#outage").click()
        page.locator("#download").click()
        capacity(page, 0.7)
        to(page, 8)
        page.locator("#loss").click()
    native = tidegate.run(Scenario.load(SCENARIO, CHANGES))
    files = exported(page, tmp_path)
    assert len(files) == 2
    for file, digest in files:
        result = cli("run", str(file), "--json")
        assert result.code == 0, result.err
        assert f'"digest": "{digest}"' in result.out
        run = tidegate.run(Scenario.load(file))
        assert run.digest == digest
        if name == "changed":
            assert run.scenario.seed == 7
            assert run.metrics("download-1")["packets_received"] > 0
    assert len({digest for _, digest in files}) == 2
    assert (native.digest == files[0][1]) == (name == "plain")


def test_a_link_opens_the_same_play(opened: Open, address: str) -> None:
    page = opened()
    page.locator("#controller-b").select_option("scream")
    page.locator("#queue").select_option("codel")
    to(page, 4)
    page.locator("#loss").click()
    capacity(page, 0.35)
    listed(page, 2)
    page.locator("#share").click()
    comes_true(page, "document.getElementById('link').value.includes('#p=')")
    link = page.locator("#link").input_value()
    assert link.startswith(address)
    second = opened(link.removeprefix(address))
    at_time(second, "=== 4")
    assert moves(second) == moves(page)
    assert second.locator("#controller-b").input_value() == "scream"
    assert second.locator("#queue").input_value() == "codel"
    assert numbers(second) == numbers(page)
    page.locator("#whole").check()
    page.locator("#share").click()
    comes_true(page, f"document.getElementById('link').value.length > {len(link) + 500}")


def test_a_link_with_the_scenario_opens_in_a_page_without_it(opened: Open, tmp_path: Path) -> None:
    page = opened()
    to(page, 4)
    page.locator("#loss").click()
    page.locator("#whole").check()
    page.locator("#share").click()
    comes_true(page, "document.getElementById('link').value.includes('#p=')")
    fragment = page.locator("#link").input_value().partition("#")[2]
    file = tmp_path / "other.html"
    file.write_text(play.page(play.payload(Scenario.load("home-broadband"))))
    second = opened(f"#{fragment}", at=file.as_uri())
    at_time(second, "=== 4")
    assert moves(second) == moves(page)


def test_without_the_means_to_unpack_it_says_so(opened: Open) -> None:
    page = opened(script="delete globalThis.DecompressionStream")
    assert "DecompressionStream" in page.locator("#error").inner_text()
    assert page.locator("#play").is_hidden()


@pytest.mark.parametrize("fragment", BROKEN)
def test_a_broken_link_is_a_sentence_and_the_page_works(opened: Open, fragment: str) -> None:
    page = opened(fragment)
    comes_true(page, "!document.getElementById('error').hidden || !document.getElementById('notice').hidden")
    sentence = page.locator("#error:visible, #notice:visible").first.inner_text()
    assert "link" in sentence
    assert page.locator("#situation").input_value() == SCENARIO
    to(page, 1)


def test_without_webassembly_it_says_so(opened: Open) -> None:
    page = opened(script="delete globalThis.WebAssembly")
    comes_true(page, "!document.getElementById('error').hidden")
    assert "WebAssembly" in page.locator("#error").inner_text()


def test_a_page_without_a_scenario_says_so(opened: Open, tmp_path: Path) -> None:
    shutil.copy(play.BUILT, tmp_path / "empty.html")
    page = opened(at=(tmp_path / "empty.html").as_uri())
    comes_true(page, "!document.getElementById('error').hidden")
    assert "tidegate play" in page.locator("#error").inner_text()


def test_the_file_works_offline(opened: Open, cli: Cli, tmp_path: Path) -> None:
    assert cli("play", "home-broadband", "scream", "--out", "play.html").code == 0
    page = opened(at=(tmp_path / "play.html").as_uri(), offline=True)
    assert page.locator("#controller-a").input_value() == "scream"
    to(page, 5)
    ((_, digest),) = exported(page, tmp_path)
    changed = {"flows.call.media.controller": "scream"}
    assert digest == tidegate.run(Scenario.load("home-broadband", changed)).digest


def test_a_recorded_network_is_in_the_page(opened: Open, cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "mine.trace").write_text("".join(f"{ms + ms % 7}\n" for ms in range(5, 5000, 5)))
    changes = {"links.uplink.capacity": {"trace": "mine.trace"}, "duration": "15s"}
    (tmp_path / "mine.toml").write_text(Scenario.load("home-broadband", changes).to_toml())
    assert cli("play", "mine.toml", "--out", "play.html").code == 0
    page = opened(at=(tmp_path / "play.html").as_uri())
    to(page, 5)
    page.locator("#handover").click()
    listed(page, 3)
    # a recording goes by the name that it has beside the scenario
    for file, digest in exported(page, tmp_path):
        run = tidegate.run(Scenario.load(file))
        assert run.digest == digest
        assert len(run.scenario.moves) >= 2


@pytest.mark.parametrize("width", [390, 360])
def test_a_phone_needs_no_scrolling_sideways(opened: Open, width: int) -> None:
    page = opened(viewport={"width": width, "height": 844}, has_touch=True, is_mobile=True)
    to(page, 5)
    page.locator("#inside-choice").evaluate("one => { one.open = true }")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    for name in ("play", "capacity", "download"):
        box = page.locator(f"#{name}").bounding_box()
        assert 0 <= box["x"] <= box["x"] + box["width"] <= width


@pytest.mark.parametrize("lesson", [lesson.scenario.name for lesson in play.lessons()])
def test_each_lesson_opens_by_its_name_and_plays(opened: Open, lesson: str) -> None:
    page = opened(f"#{lesson}")
    assert page.locator("#situation").input_value() == lesson
    assert page.locator("#look-for").inner_text()
    assert not page.locator("#answer").is_visible()
    page.locator("#question").click()
    assert page.locator("#answer").is_visible()
    to(page, 25)
    assert page.locator("#error").is_hidden()
    scenario = Scenario.load(LESSONS / f"{lesson}.toml")
    for which, controller in zip("ab", state(page, "controllers"), strict=False):
        native = tidegate.run(scenario.with_changes({"flows.call.media.controller": controller})).digest
        assert page.evaluate(f"tidegate.digest('{which}')") == native
    page.locator("#situation").select_option(SCENARIO)
    at_time(page, "=== 0")
    assert page.locator("#lesson").is_hidden()


def test_each_queue_and_each_controller_runs(opened: Open) -> None:
    page = opened()
    to(page, 3)
    for select in ("queue", "controller-a"):
        words = page.locator(f"#{select} option").evaluate_all("all => all.map(one => one.value)")
        assert len(words) >= 8
        for word in words:
            page.locator(f"#{select}").select_option(word)
            comes_true(page, "tidegate.state().ready")
            now = page.evaluate("tidegate.state()")
            assert now["controllers" if select == "controller-a" else select] in (word, [word, "nada"])
            assert now["error"] is None, word
            # thirty bins of a tenth of a second; the first ones are empty until the first packet arrives
            assert [now["now"], now["rows"][0]["series"] >= 28, now["rows"][0]["frames"] > 20] == [3, True, True], word
            assert page.locator("#error").is_hidden(), word


def test_a_seed_that_is_typed_stays_while_something_else_changes(opened: Open) -> None:
    page = opened()
    to(page, 2)
    page.locator("#seed").fill("7")
    # a run that plays while the user types
    page.evaluate("document.getElementById('loss').click()")
    listed(page, 1)
    page.wait_for_timeout(100)
    assert page.locator("#seed").input_value() == "7"
    page.locator("#seed").press("Enter")
    comes_true(page, "tidegate.state().ready && tidegate.state().seed === 7")
    page.locator("#undo").click()
    comes_true(page, "document.getElementById('seed').value === '1'")


def test_one_controller_alone(opened: Open) -> None:
    page = opened()
    to(page, 2)
    columns = page.locator("#numbers thead th").count()
    page.locator("#controller-b").select_option("")
    comes_true(page, f"document.querySelectorAll('#numbers thead th').length === {columns - 1}")


def test_the_keyboard_is_enough(opened: Open) -> None:
    page = opened()
    page.keyboard.press("Space")
    at_time(page, "> 0.2")
    page.keyboard.press("Space")
    stopped = clock(page)
    page.keyboard.press("ArrowRight")
    at_time(page, f"> {stopped}")
    page.keyboard.press("ArrowDown")
    listed(page, 1)
    speed = page.locator("#speed").input_value()
    page.keyboard.press("+")
    comes_true(page, f"Number(document.getElementById('speed').value) > {speed}")
    page.keyboard.press("-")
    comes_true(page, f"Number(document.getElementById('speed').value) === {speed}")
    page.keyboard.press("Control+z")
    listed(page, 0)


def test_each_control_has_a_name_and_changes_are_spoken(opened: Open) -> None:
    page = opened()
    to(page, 2)
    unnamed = page.evaluate(
        "[...document.querySelectorAll('button, input, select, [role=img], canvas[role]')].filter(one => !("
        "(one.labels && [...one.labels].some(label => label.textContent.trim())) || one.getAttribute('aria-label')"
        " || one.textContent.trim() || one.getAttribute('aria-labelledby'))).map(one => one.outerHTML.slice(0, 100))"
    )
    assert unnamed == []
    page.locator("#loss").click()
    comes_true(page, "document.getElementById('said').textContent.length > 0")


def test_light_and_dark(opened: Open) -> None:
    colour = "getComputedStyle(document.body).backgroundColor"
    light, dark = opened(color_scheme="light"), opened(color_scheme="dark")
    assert light.evaluate(colour) != dark.evaluate(colour)
    light.locator("#theme").select_option("dark")
    assert light.evaluate(colour) == dark.evaluate(colour)


def test_a_picture_of_the_charts(opened: Open, tmp_path: Path) -> None:
    page = opened()
    to(page, 6)
    with page.expect_download() as waiting:
        page.locator("#png").click()
    file = tmp_path / "play.png"
    waiting.value.save_as(file)
    image = pytest.importorskip("matplotlib.image", reason="needs matplotlib to read the picture")
    pixels = (image.imread(file)[:, :, :3] * 255).round().astype(int)
    assert pixels.shape[0] > 500
    assert pixels.shape[1] > 700
    # the blue of gcc and the pink of nada, as in reports
    for colour in ((0x00, 0x72, 0xB2), (0xCC, 0x79, 0xA7)):
        assert (pixels == colour).all(axis=2).sum() > 200, colour
        # its name stands above the charts in its colour
        assert (pixels[:25] == colour).all(axis=2).any(), colour


@pytest.mark.parametrize("motion", ["reduce", "no-preference"])
def test_a_frame_takes_little_at_ten_times_the_speed(opened: Open, motion: str) -> None:
    page = opened("#queue-management", reduced_motion=motion)
    page.locator("#speed").select_option("10")
    page.locator("#play").click()
    at_time(page, ">= 50")
    times = sorted(page.evaluate("tidegate.frameTimes()"))
    p95 = times[int(0.95 * len(times))]
    print(f"{motion}: {len(times)} frames, script and engine p50 {times[len(times) // 2]:.1f}, p95 {p95:.1f} ms")
    # half of the time of a frame at 60 frames a second; the slowest frames depend on the machine's other work
    assert times[len(times) // 2] <= 8
    assert len(times) > 20
