"""What README tells under its picture, which `make demo` draws: one sentence a controller."""

from __future__ import annotations

import re
from functools import cache

import numpy as np
import pytest

import tidegate
from gcc_experiments import RecordedFlow
from support import ROOT

DROP, UP, LEAVES = 20.0, 35.0, 70.0
FPS = 30.0
PROPAGATION = 20.0
"""Of the link, ms."""
SEEDS = (1, 2, 3)


@cache
def seen(controller: str, seed: int) -> RecordedFlow:
    scenario = tidegate.Scenario.load("drop-and-download").with_changes({"flows.call.media.controller": controller})
    return RecordedFlow(tidegate.run(scenario, seed=seed))


def delay(one: RecordedFlow, start: float, stop: float) -> float:
    """Mean queueing delay, ms."""
    return one.queueing(start, stop)[0]


# RecordedFlow takes the propagation of the links of its own experiments off, 50 ms
TOO_MUCH = 50.0 - PROPAGATION


def peak(one: RecordedFlow, start: float, stop: float) -> float:
    """Largest queueing delay, ms."""
    return one.queueing(start, stop)[1] + TOO_MUCH


def emptied(one: RecordedFlow) -> float:
    """Time from the drop until the largest queueing delay of a bin is below 50 ms, s."""
    return one.drained(DROP + 2, 50.0 - TOO_MUCH) + 2


def test_the_demo_is_what_readme_shows() -> None:
    demo = re.search(r"tidegate (compare .*) --out", (ROOT / "Makefile").read_text())
    assert demo is not None
    assert demo[1] in (ROOT / "docs" / "quickstart.md").read_text()
    for page in ("README.md", "docs/index.md"):
        told = re.findall(r"^- `([^`]+)`", (ROOT / page).read_text(), re.MULTILINE)
        assert told == re.findall(r"(?:gcc|tfrc|fixed)\S*", demo[1]), page


@pytest.mark.parametrize("seed", SEEDS)
def test_gcc_probes_follows_the_drop_shares_and_comes_back(seed: int) -> None:
    one = seen("gcc", seed)
    assert one.reaches(2.4e6) < 0.5, "within half a second all that the encoder can make"
    assert 0.2 < one.falls(1e6, DROP) < 1.5, "below the capacity a second after the drop"
    assert 550 < peak(one, DROP, DROP + 4) < 620, "a queue"
    assert 1 < emptied(one) - one.falls(1e6, DROP) < 2, "which is gone one to two seconds later"
    captured = one.run.table("frames").to_numpy("captured_s")
    captured = captured[(captured >= DROP) & (captured < DROP + emptied(one))]
    assert 30 < FPS * emptied(one) - len(captured) < 50, "some forty frames are left out until then"
    download = RecordedFlow(one.run, "download").mean_rate(55, LEAVES)
    assert 0.65 * 4e6 < download < 0.75 * 4e6, "seven tenths of the link"
    assert 0.95 * 4e6 < download + one.mean_rate(55, LEAVES) < 4.02e6, "and the call has the rest"
    # near the old capacity it first grows additively, for as long as the seed has it
    full = next(time for time in np.arange(LEAVES, 90.0, 0.5) if one.target(time) > 2.3e6)
    growth = (one.target(full) / one.target(full - 4)) ** (1 / 4)
    assert 1.07 < growth < 1.09, f"8 % a second, {growth:.3f}"


@pytest.mark.parametrize("seed", SEEDS)
def test_the_draft_grows_slowly_and_has_little(seed: int) -> None:
    one = seen("gcc:draft-02", seed)
    growth = (one.target(18) / one.target(6)) ** (1 / 12)
    assert 1.04 < growth < 1.055, f"5 % a second, {growth:.3f}"
    assert one.mean_rate(15, DROP) < 1e6, "never has what the drop takes away"
    assert 0.15 * 4e6 < one.mean_rate(55, LEAVES) < 4e6 / 3, "less than a third of the link beside the download"


@pytest.mark.parametrize("seed", SEEDS)
def test_tfrc_is_soon_back_fair_and_late(seed: int) -> None:
    one = seen("tfrc", seed)
    assert one.reaches(2.4e6, UP) < 5, "soon back after the drop"
    assert one.reaches(2.4e6, LEAVES) < 5, "and after the download"
    download = RecordedFlow(one.run, "download")
    ratio = one.mean_rate(55, 70) / download.mean_rate(55, 70)
    assert 1 / 3 < ratio < 3, f"within the factor of three of RFC 8868 section 3, {ratio:.2f}"
    assert 550 < peak(one, DROP, DROP + 4) < 620, "a queue of 0.6 s"
    assert 4.5 < emptied(one) < 5.5, "which is empty after five seconds"
    assert 350 < peak(one, DROP + 8, UP) < 450, "and filled again to 0.4 s"


@pytest.mark.parametrize("seed", SEEDS)
def test_fixed_loses_half_and_is_late(seed: int) -> None:
    one = seen("fixed:2Mbps", seed)
    assert np.isclose(one.loss(22, UP), 0.5, atol=0.05), "2 Mbit/s into 1"
    assert 500 < delay(one, 22, UP) < 650, "600 kbit of queue at 1 Mbit/s"
    stretches = one.run.table("without_picture")
    begins, lengths = stretches.to_numpy("begin_s"), stretches.to_numpy("length_s")
    still = lengths[(begins > DROP) & (begins < UP)].sum() / (UP - DROP)
    assert 0.75 < still < 1, f"the picture stands still for most of the drop, {still:.2f}"
    frames = one.run.table("frames")
    captured, shown = frames.to_numpy("captured_s"), frames.to_numpy("rendered_s")
    late = np.median((shown - captured)[(shown > DROP + 2) & (shown < UP)])
    assert 5 < late < 7.5, f"and is some six seconds late, {late:.1f}"
