"""Every datagram of every flow goes through its bytes before its receiver sees it, and nothing changes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from support import shipped
from tidegate import Run, Scenario, _core
from tidegate import run as run_it

FEC = {"fec": {"packets": 5, "parity": 2, "by_frame": True}, "pli": True}


@pytest.fixture(name="through_bytes")
def _through_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs have the engine's mode `bytes` from now on."""
    engine = _core.run

    def run(scenario: str, *rest: Any) -> Any:
        return engine(json.dumps({**json.loads(scenario), "bytes": True}), *rest)

    monkeypatch.setattr(_core, "run", run)


def _same(name: str) -> None:
    known = next(line for line in shipped.GOLDEN.read_text().splitlines() if line.startswith(f"{name} "))
    assert shipped.line(shipped.once(name)).rstrip() == known


FIXED = ["coupled-calls", "l4s-access", "lossy-wifi", "lte-one-call", "newpred", "tcp-joins"]
"""Calls, coupled ones, sessions and TCP, over wire and radio, with marks and without."""


@pytest.mark.parametrize("name", FIXED)
@pytest.mark.usefixtures("through_bytes")
def test_a_run_through_bytes_is_the_run(name: str) -> None:
    _same(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", shipped.rotating(FIXED))
@pytest.mark.usefixtures("through_bytes")
def test_another_run_through_bytes_is_the_run(name: str) -> None:
    _same(name)


def _repaired(controller: str, repair: dict[str, Any]) -> Run:
    changes = {
        "flows.call.media.repair": repair,
        "flows.call.media.controller": controller,
        "links.wifi.loss": "3%",
        "duration": "10s",
    }
    return run_it(Scenario.load("lossy-wifi").with_changes(changes), record="summary")


@pytest.mark.parametrize(
    ("controller", "repair", "by"),
    [
        ("gcc", {"nack": True}, "repaired_resent"),
        ("gcc-remb", FEC, "repaired_parity"),
        ("sprout", {**FEC, "nack": True}, "repaired_resent"),
        ("tfrc", FEC, "repaired_parity"),
    ],
)
def test_repair_and_stamps_survive_their_bytes(
    controller: str, repair: dict[str, Any], by: str, request: pytest.FixtureRequest
) -> None:
    plain = _repaired(controller, repair)
    request.getfixturevalue("through_bytes")
    assert _repaired(controller, repair).digest == plain.digest
    assert plain.metrics()[by] > 0
