"""The document "hermanns2013": what is run is what its slides say, what is measured is what it is called, and what comes out."""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt
import pytest

from papers import PaperStudy
from support import ROOT, shared
from tidegate.paper import Backing, Result, Verdict
from tidegate.paper.reading import load
from tidegate.papers.hermanns2013.alone import LARGEST, SETTLED_S, TICK_S, Alone, Ticks, job
from tidegate.papers.hermanns2013.cells import (
    CALL_S,
    CALLERS,
    CELLS,
    EQUAL,
    FILES,
    SEEN_S,
    WARMUP_S,
    Caller,
    Calls,
    Cell,
    unrest,
)
from tidegate.papers.hermanns2013.experiment import GREEDY_CALLERS
from tidegate.runs import RunJob
from tidegate.scenario.sources import StatisticalVideo
from tidegate.scenario.traffic import FileTransfer

FOLDER = ROOT / "python" / "tidegate" / "papers" / "hermanns2013"


def quiet(done: float) -> bool:
    """The encoder runs free: without observer and without limit."""
    return True


# --- what is run ----------------------------------------------------------------------------------


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("load", [1, 2.5])
@pytest.mark.parametrize("case", [1, 3])
def test_the_network_is_that_of_slide_7(file: str, load: float, case: int) -> None:
    made = Cell(CALLERS["sprout"], load, case=case, file=file).scenario
    lte = made.lte
    assert lte is not None
    assert (lte.sites, lte.case, lte.bandwidth, lte.antennas, str(lte.speed)) == (7, case, "5MHz", "1x2", "3km/h")
    callers, downloaders = lte.users
    assert callers.arrival is not None
    assert downloaders.arrival is not None
    assert callers.arrival.stay.seconds == CALL_S == 60
    # Little's law: calls that are there at a time
    assert callers.arrival.rate.per_second * CALL_S / CELLS == pytest.approx(load, rel=1e-6)
    call, download = made.flows
    assert download.tcp is not None
    assert isinstance(download.tcp.workload, FileTransfer)
    size = int(download.tcp.workload.file)
    assert size * 8 in {4_000_000, 500_000}
    assert downloaders.arrival.rate.per_second * size * 8 / CELLS == pytest.approx(2e6, rel=1e-6)
    assert call.media is not None
    video = call.media.video
    assert isinstance(video, StatisticalVideo)
    assert (int(video.min), int(video.max), video.fps) == (200_000, 1_500_000, 30)


def test_sentences_are_printed_on_the_slides() -> None:
    text = (shared() / "seeds" / "hermanns2013-sprout-lte.txt").read_text("utf-8")
    text = " ".join(text.replace("*", "").replace("\u201c", "").replace("\u201d", "").replace("\u2019", "'").split())
    found = [claim.text for claim in load(FOLDER).claims if claim.where.startswith("Slide")]
    said = [
        "30fps gives roughly 33ms between frames",
        "False congestion detection",
        "At some point of time there is just nothing to send",
        "BytesToSend and BytesSent are always same",
        "Video bitrate is all most equal to minimum bitrate",
        "Sprout doesn't utilizes the network",
        "Forecast that every packet has 95% probability of clearing network within 100ms",
    ]
    for one in said:
        assert one in text, one
        assert any(one in claim for claim in found), one


# --- what is measured -----------------------------------------------------------------------------


def test_unrest_in_closed_form() -> None:
    assert unrest(np.array([5.0, 5.0, 5.0])) == (0.0, 0.0)
    # 1 and 3 in turn: deviation 1 and steps of 2 about a mean of 2
    assert unrest(np.array([1.0, 3.0] * 8)) == (0.5, 1.0)
    # a ramp: all of its spread is slow
    spread, steps = unrest(np.arange(1.0, 100.0))
    assert spread == pytest.approx(np.sqrt((99**2 - 1) / 12) / 50)
    assert steps == pytest.approx(1 / 50)
    assert np.isnan(unrest(np.array([1.0]))).all()
    assert np.isnan(unrest(np.zeros(5))).all()


def test_unused_ticks_are_those_with_room_for_a_packet() -> None:
    at: npt.NDArray[np.float64] = SETTLED_S + np.arange(-1.0, 4.0) * TICK_S
    sent = np.zeros(5)
    allowed = np.array([9e9, LARGEST, LARGEST + 1, 0.0, 5000.0])
    ticks = Ticks(at, forecast=allowed, allowed=allowed, sent=sent)
    assert ticks.unused == 0.5
    assert ticks.mean == allowed[1:].mean()
    assert ticks.every == pytest.approx(1e3 * TICK_S)


def test_calls_are_taken_out_of_a_run_as_they_are() -> None:
    cell = Cell(CALLERS["gcc"], 0.5, end_s=85)
    run = RunJob(cell.scenario, 3)(quiet)
    calls = Calls.of(run)
    flows = run.table("flows")
    begins = dict(zip(flows.to_numpy("flow"), flows.to_numpy("start_s"), strict=True))
    media = [one for one in run.summary["flows"] if one["kind"] == "media"]
    seen = [
        one for one in media if begins[one["flow"]] >= WARMUP_S + SEEN_S - CALL_S and begins[one["flow"]] <= 85 - SEEN_S
    ]
    assert len(calls.rate) == len(seen)
    assert list(calls.rate) == [one["sending_rate_bps"] for one in seen]
    assert calls.spread == pytest.approx(np.std(calls.rate) / np.mean(calls.rate))
    # Poisson: within four deviations of the arrivals of 85 - 20 - 20 s
    expected = 0.5 * CELLS / CALL_S * (85 - 2 * SEEN_S)
    assert abs(len(seen) - expected) < 4 * np.sqrt(expected)
    series = run.table("series")
    name = seen[0]["flow"]
    own = series.to_numpy("flow") == name
    begin, end = max(begins[name], WARMUP_S), min(begins[name] + CALL_S, 85)
    at = series.to_numpy("t_s")[own]
    whole = series.to_numpy("sending_rate_bps")[own][(at >= begin) & (at + 1 <= end)]
    assert (calls.variation[0], calls.steps[0]) == unrest(whole)
    assert 0.3 < calls.files_s < 5


# --- one sender alone -----------------------------------------------------------------------------


@cache
def alone(key: str, seed: int) -> Alone:
    return job({**CALLERS, **GREEDY_CALLERS}[key], seed)(quiet)


@pytest.mark.parametrize("key", ["sprout", "bulk"])
def test_ticks_account_for_every_byte(key: str) -> None:
    one = alone(key, 1)
    assert one.ticks is not None
    # what was sent before the first forecast is in no tick
    first = one.ticks.at[0]
    assert 0 <= one.rate.sum() / 8 - one.ticks.sent.sum() < one.rate[: int(first) + 1].sum() / 8
    assert (one.ticks.allowed <= one.ticks.forecast).all()


def test_a_file_transfer_sends_what_it_may_give_or_take_a_packet() -> None:
    ticks = alone("bulk", 1).ticks
    assert ticks is not None
    over = (ticks.sent - ticks.allowed)[ticks.at >= SETTLED_S]
    # the last packet goes while there is any room, and now and then the next tick's room comes before its forecast
    assert np.quantile(over, 0.01) > -LARGEST
    assert 0 <= np.median(over) <= 1.5 * LARGEST


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_trap_and_the_way_out(seed: int) -> None:
    trapped, aware, free = (alone(key, seed) for key in ("sprout", "aware", "tfrc"))
    least = alone("least", seed).mean
    assert least < trapped.mean < 2 * least
    assert aware.mean == pytest.approx(free.mean, rel=0.01)
    assert trapped.steps > 1.5 * aware.steps
    bulk = alone("bulk", seed)
    assert bulk.mean > 20 * trapped.mean
    # who always has more to send never says otherwise: the same run, bit for bit
    assert alone("aware_bulk", seed).digest == bulk.digest
    assert alone("aware", seed).digest != alone("sprout", seed).digest


def test_its_rate_moves_twice_as_much() -> None:
    """Over eight seeds, 2.1 times: of one by itself, 1.5 to 2.8 times."""
    trapped, aware = ([alone(key, seed).steps for seed in range(1, 9)] for key in ("sprout", "aware"))
    assert np.mean(trapped) > 2 * np.mean(aware)


@pytest.mark.parametrize("fps", [50, 100])
def test_it_is_not_the_time_between_frames(fps: int) -> None:
    """A frame in every tick, all of one size: nothing is periodic on Sprout's clock, and it falls all the same."""
    video = {**EQUAL["flows.call.media.video"], "fps": fps}
    one = job(Caller("", "sprout", {"flows.call.media.video": video}), 1)(quiet)
    assert one.empty < 0.05
    assert one.mean < 1.5 * alone("least", 1).mean


# --- the page -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def result() -> Result:
    return PaperStudy("hermanns2013").result()


def test_every_difference_has_a_reason_that_holds(result: Result) -> None:
    assert result.unexplained == []
    for one in result.judgements:
        if one.verdict in {Verdict.TREND, Verdict.DIFFERS}:
            assert one.backing is Backing.CONFIRMED, one.claim.id
    differs = {one.claim.id for one in result.judgements if one.verdict is Verdict.DIFFERS}
    assert differs == {"periodicity", "unstable-over-users"}


def test_differences_are_seed_by_seed(result: Result) -> None:
    measures = result.outcome.measures
    for what in ("rate", "delay", "files"):
        more = measures[f"more.2.aware.sprout.{what}"].value.mean
        both = [measures[f"cell.2.{who}.{what}"].value.mean for who in ("aware", "sprout")]
        assert more == pytest.approx(both[0] - both[1])
    delay, network, waiting = (measures[f"cell.2.sprout.{one}"].value.mean for one in ("delay", "network", "waiting"))
    assert delay == pytest.approx(network + waiting)
