"""The record "scream_l4s": scenarios against the record, and summaries of runs against computations by hand."""

from __future__ import annotations

import numpy as np
import pytest

from papers import PaperStudy
from tidegate import run
from tidegate.paper import shipped
from tidegate.paper.reading import load
from tidegate.papers.scream_l4s.experiment import EQUAL, FRAMES, PACKET, PRAGUE, PUBLISHED, VARIED, Network, RunSummary


def test_a_paper_has_its_name_with_either_line() -> None:
    assert shipped.find("scream-l4s") == shipped.find("scream_l4s") == shipped.FOLDER / "scream_l4s"


def test_the_figure_shows_what_the_tables_have() -> None:
    claims = {claim.id: claim for claim in load(shipped.find("scream-l4s")).claims}
    for frames in FRAMES:
        printed = [claims[f"{frames}/25 ms/{n} TCP"].published for n in PRAGUE]
        assert printed == list(PUBLISHED[frames][25])


def test_packets_and_round_trip_are_the_record_s() -> None:
    scenario = Network(25, 1).scenario().with_changes({"duration": "3s", "warmup": "1s", "record": "packets"})
    finished = run(scenario)
    packets = finished.table("packets")
    sizes = packets.to_numpy("size")[packets.to_numpy("kind") == "video"]
    assert (sizes.max(), np.median(sizes)) == (PACKET, PACKET)
    assert finished.metrics("prague-0")["one_way_delay_ms_mean"] < 2, "all delay is on the way back"


@pytest.mark.parametrize("prague", [0, 2])
def test_what_is_kept_of_a_run(prague: int) -> None:
    scenario = Network(25, prague).scenario().with_changes({"duration": "21s"})
    finished = run(scenario)
    summary = RunSummary.from_run(finished)
    scream = finished.summary["flows"][0]
    assert summary.rate == scream["goodput_bps"] / 1e6
    assert summary.marked == pytest.approx(scream["marked"] / scream["packets_received"])
    assert np.isnan(summary.prague) == (prague == 0)


def test_frames_vary_by_half() -> None:
    """The standard deviation is 0.5 / sqrt(3) if uniform within 50 %, and sqrt(2) times the scale of Laplace's."""
    assert np.sqrt(2) * VARIED["scale_b"] == pytest.approx(0.5 / np.sqrt(3), rel=0.01)
    assert VARIED["max"] == EQUAL["max"]


def test_nothing_differs_without_a_reason() -> None:
    result = PaperStudy("scream_l4s").result()
    assert result.unexplained == []
