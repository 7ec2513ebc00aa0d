"""gcc:libwebrtc in the engine on the links of libwebrtc's recordings: what differs, and why.

`TIDEGATE_BLESS=1` writes the table of `docs/controllers/gcc.md` anew.
"""

from __future__ import annotations

import statistics
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

import gcc_links as links
import tidegate
from gcc_experiments import Targets
from gcc_links import BARE, CALL, LINKS
from support import ROOT, check_table, shared

PAGE = ROOT / "docs" / "controllers" / "gcc.md"


def between(low: float, value: float, high: float) -> None:
    assert low <= value <= high, f"{value:g} is not in {low:g} to {high:g}"


@pytest.mark.parametrize("choice", [BARE, CALL])
def test_probes_find_the_link_and_delay_finds_a_drop(choice: links.Choice) -> None:
    """Probes at 0.9 and 1.8 Mbit/s leave within 60 ms and are told of 50 ms and a report later; by 8 % a second it takes 22 s.

    A drop to a quarter fills 400 ms of queue in 0.13 s. What is received is averaged over 0.5 s, and each step down is
    at most to 0.85 of it, so that two of them are needed.
    """
    of = replace(LINKS["steps"], seconds=20)
    found = links.targets_of(links.run(of, lambda *_: False, 1, **choice))
    between(0.1, found.reaches(1600), 0.35)
    between(0.85 * 2000 - 60, found.mean(2, 15), 2050)
    between(0.5, found.falls(500, 15), 1.5)
    between(0.85 * 500 - 30, found.mean(17, 20), 500)


def test_losses_of_a_fifth_take_the_rate_down_as_far_as_libwebrtcs() -> None:
    """Ten seeds of libwebrtc are at 362 to 545 kbit/s after ten seconds of it; one of ours, as far from these as they are wide."""
    of = replace(LINKS["loss20"], seconds=21)
    found = links.targets_of(links.run(of, links.by_luck(of, 1), 1, **BARE))
    assert found.at(9.9) == 5000
    between(362 - 183, found.at(20), 545 + 183)


def vectors() -> Path:
    return shared() / "vectors"


@cache
def runs(name: str) -> tuple[list[Targets], ...]:
    """libwebrtc's targets, ours, and ours of a call."""
    return links.columns(name, vectors())


@pytest.mark.slow
def test_the_table() -> None:
    check_table(PAGE, "links", links.table({name: runs(name) for name in LINKS}))


@pytest.mark.slow
def test_the_bare_controller_does_what_libwebrtc_does() -> None:
    """Beyond the start: means within 3 %, which are a step of the saw tooth sooner or later; times within 0.2 s and 3 %."""
    for measure in links.MEASURES:
        if measure.link == "alr_drop" or "from 0" in measure.what or LINKS[measure.link].loss:
            continue
        theirs, ours = (statistics.median(measure.read(run) for run in column) for column in runs(measure.link)[:2])
        between(0.97 * theirs - 0.2, ours, 1.03 * theirs + 0.2)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["loss10", "loss20"])
def test_under_random_loss_the_medians_are_within_libwebrtcs_seeds(name: str) -> None:
    theirs, ours, _ = runs(name)
    for time in (15, 20, 30, 39):
        range_ = [run.at(time) for run in theirs]
        between(min(range_), statistics.median(run.at(time) for run in ours), max(range_))


@pytest.mark.slow
def test_bursts_keep_a_call_up_under_loss() -> None:
    """Five seconds of 20 % loss: a call is above the bare controller, and it is its bursts that do it."""
    _, bare, call = ([run.at(15) for run in column] for column in runs("loss20"))
    between(1.08, statistics.median(call) / statistics.median(bare), 1.2)
    short = {**CALL, "settings": {**CALL["settings"], "burst": "5ms"}}
    spread = [links.engine("loss20", vectors(), seed, short).at(15) for seed in range(1, 21)]
    between(0.98, statistics.median(spread) / statistics.median(bare), 1.06)


@pytest.mark.slow
def test_headers_count() -> None:
    """A call is allowed what the bare controller is: not less by 28 bytes of 1252, nor by 28 of 307 where padding fills probes."""
    for name in ("const1m", "alr"):
        of = next(measure for measure in links.MEASURES if measure.link == name and "mean" in measure.what)
        bare, call = (statistics.median(of.read(run) for run in column) for column in runs(name)[1:])
        between(0.99, call / bare, 1.01)


@pytest.mark.slow
def test_a_call_of_loss5_starts_slowly_by_bad_luck() -> None:
    """The recording's losses, by number, hit a fifth of its second two probes; others of 5 % hit none as much."""
    assert min(run.reaches(4000) for run in runs("loss5")[2]) > 5
    of = replace(LINKS["loss5"], seconds=1)
    for seed in range(1, 11):
        luck = tidegate.Stream(seed, "link", "loss")
        lucky = links.targets_of(links.run(of, lambda *_, luck=luck: luck.chance(0.05), seed, **CALL))
        between(0.1, lucky.reaches(4000), 0.5)


@pytest.mark.slow
def test_a_call_that_asks_for_probes_finds_the_link_again() -> None:
    """Limited from 25 s on and so below its drop's rate; every 5 s a probe, of a call that asks for them."""
    asks = {**CALL, "settings": {"pacing_factor": 1.1, "alr_probing": True}}
    without = runs("drop_recovery")[2]
    assert all(run.at(40) < 1000 for run in without)
    between(5, links.engine("drop_recovery", vectors(), 1, asks).reaches(2400, 25), 10)


@pytest.mark.slow
def test_whether_a_drop_is_probed_away_hangs_on_its_losses(monkeypatch: pytest.MonkeyPatch) -> None:
    """No probe where losses limit the target at the moment when the queue is gone; without a limit of the queue, none do."""
    after = [run.reaches(1000, 13.2) for run in runs("alr_drop")[1]]
    assert min(after) < 7, "some are as quick as libwebrtc"
    assert max(after) > 15, "others grow by 8 % a second"
    monkeypatch.setattr(links.Carrier, "queue_ns", 10**12)
    for seed in (1, 2, 3):
        between(2, links.engine("alr_drop", vectors(), seed, BARE).reaches(1000, 13.2), 4)
