"""A link that goes packet by packet, with a drop-tail queue, does what the fast one does."""

from __future__ import annotations

import numpy as np
import pytest

from support import shipped
from tidegate import Run, Scenario, run

FIXED = [
    "cell-with-outages",
    "drop-and-download",
    "lossy-wifi",
    "rfc8867-5.3-background-udp",
    "starlink",
    "thesis-network",
]
"""Capacities that are constant, scheduled, drawn, of satellites and of statuses; calls, TCP and UDP."""
TABLES = ("packets", "queues", "series", "truth", "frames")


def managed(scenario: Scenario) -> Scenario:
    """The same with other links; those of the driver stay."""
    return scenario.with_changes({f"links.{link.name}.service": "managed" for link in scenario.links})


def same(name: str) -> None:
    """Digest, metrics and tables."""
    scenario = Scenario.load(name)
    one, other = (run(each, record="packets") for each in (scenario, managed(scenario)))
    assert other.digest == one.digest
    assert other.summary == one.summary
    for table in TABLES:
        if table in one.tables:
            _same_table(one, other, table)


def _same_table(one: Run, other: Run, table: str) -> None:
    for column in one.table(table).columns:
        np.testing.assert_array_equal(one.table(table).to_numpy(column), other.table(table).to_numpy(column))


@pytest.mark.parametrize("name", FIXED)
def test_packet_by_packet_is_the_same(name: str) -> None:
    same(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", shipped.rotating(FIXED))
def test_packet_by_packet_is_the_same_in_other_scenarios(name: str) -> None:
    same(name)
