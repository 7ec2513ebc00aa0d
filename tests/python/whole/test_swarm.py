"""A slice of the swarm, what it draws, and that it would notice."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import swarm
from support import swarm_scenarios
from tidegate import Scenario, _core, scenario
from tidegate.errors import InputError, ScenarioError
from tidegate.scenario import (
    buckets,
    clocks,
    couplings,
    disciplines,
    flows,
    legs,
    links,
    media,
    population,
    radio,
    repair,
    sessions,
    sources,
    traffic,
)
from tidegate.scenario.model import Model

ABSENT = {
    "Scenario.description": "text",
    "Scenario.source": "text",
    "Scenario.variants": "of comparisons",
    "Flow.external": "the driver's",
    "EncoderVideo": "in no usual build",
    "External": "the driver's",
    "Controller": "controllers go by their text",
    "TraceCapacity.format": "said of single files",
    "TraceCapacity.direction": "said of single files",
    "TraceCapacity.frequency": "said of single files",
    "TraceCapacity.reference_rate": "said of single files",
    "Lte.name": "a name",
    "Users.start": "the flows' own times are drawn",
    "Users.stop": "the flows' own times are drawn",
    "Users.place": "drawn by the engine",
}


def kinds() -> Iterator[type[Model]]:
    for module in (
        scenario.scenario,
        buckets,
        clocks,
        couplings,
        disciplines,
        flows,
        legs,
        links,
        media,
        population,
        radio,
        repair,
        sessions,
        sources,
        traffic,
    ):
        for _, one in inspect.getmembers(module, inspect.isclass):
            if issubclass(one, Model) and one.__module__ == module.__name__ and not one.__name__.startswith("_"):
                yield one


def set_in(value: Any) -> Iterator[str]:
    if isinstance(value, Model):
        for name in value.model_fields_set:
            yield f"{type(value).__name__}.{name}"
            yield from set_in(getattr(value, name))
    elif isinstance(value, list | tuple | dict):
        for one in value.values() if isinstance(value, dict) else value:
            yield from set_in(one)


@pytest.mark.timeout(120)
def test_it_draws_every_key_of_the_schema() -> None:
    abstract = {"Way", "Video", "EncodedVideo", "ModelledVideo", "Bucket", "Managed"}
    known = {
        f"{kind.__name__}.{name}" for kind in kinds() if kind.__name__ not in abstract for name in kind.model_fields
    }
    drawn: set[str] = set()
    refused = 0
    for seed in range(1, 1500):
        try:
            drawn.update(set_in(Scenario.from_dict(swarm_scenarios.scenario(seed))))
        except ScenarioError:
            refused += 1
    assert refused < 150
    missing = {key for key in known - drawn if key not in ABSENT and key.partition(".")[0] not in ABSENT}
    assert not missing


def test_it_draws_what_a_check_could_overlook() -> None:
    drawn = {"coupled": 0, "moved": 0, "at once": 0, "another path": 0}
    for seed in range(1, 1500):
        data = swarm_scenarios.scenario(seed)
        running = [move for move in data.get("moves", []) if move["key"] == "running"]
        drawn["coupled"] += any("air" in coupling["flows"] for coupling in data.get("couplings", []))
        drawn["moved"] += any(move["flow"] == "air" for move in running)
        drawn["another path"] += any(move["value"] == ["spare"] for move in data.get("moves", []))
        drawn["at once"] += len(running) > len({move["time"] for move in running})
    assert min(drawn.values()) > 2, drawn


@pytest.mark.parametrize(("checked", "ran"), [("good", "refused"), ("refused", "good")])
def test_a_check_that_differs_from_a_run_is_a_fault(
    checked: str, ran: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise _core.Refused("no") if ran == "refused" else InputError("no")

    if ran == "refused":
        monkeypatch.setattr(_core, "run", refuse)
    else:
        monkeypatch.setattr(Scenario, "check", refuse)
    swarm_scenarios.files(tmp_path)
    with pytest.raises(swarm.Fault, match="good, but a run is refused: no" if checked == "good" else "no, but it runs"):
        swarm.check(swarm_scenarios.scenario(1), tmp_path, swarm.Tally())


def test_a_seed_is_a_scenario() -> None:
    assert swarm_scenarios.scenario(7) == swarm_scenarios.scenario(7) != swarm_scenarios.scenario(8)


def test_some_of_it(tmp_path: Path) -> None:
    tally = swarm.Tally()
    swarm.swarm(1, 60, tmp_path, tally, most=25)
    assert tally.scenarios > 20
    assert tally.runs == 4 * tally.scenarios
    assert not any("Steady" in why for why in tally.why), "the controller in Python is never run"
    assert not tally.faults, list(tmp_path.iterdir())


@pytest.mark.slow
def test_more_of_it(tmp_path: Path) -> None:
    tally = swarm.Tally()
    swarm.swarm(1000, 30, tmp_path, tally)
    assert not tally.faults, list(tmp_path.iterdir())
    assert tally.scenarios > 50


def test_it_notices_and_says_how_to_see_it_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plain = _core.run

    def other(ir: str, *rest: Any) -> Any:
        # as if some code had another idea of what a byte is
        return plain(
            ir.replace('"bytes": true', '"bytes": false').replace('"delay": 1', '"delay": 2')
            if '"bytes": true' in ir
            else ir,
            *rest,
        )

    monkeypatch.setattr(_core, "run", other)
    tally = swarm.Tally()
    swarm.swarm(1, 60, tmp_path, tally, most=12)
    assert len(tally.faults) > 2
    seed = tally.faults[0]
    assert f"again: python tests/python/swarm.py --only {seed}" in capsys.readouterr().out
    kept = tmp_path / f"seed-{seed}"
    assert "through bytes" in (kept / "fault.txt").read_text()
    monkeypatch.undo()
    assert (
        Scenario.load(kept / "scenario.toml").to_dict() == Scenario.from_dict(swarm_scenarios.scenario(seed)).to_dict()
    )


def test_a_run_that_does_not_end_is_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(swarm, "CPU_SECONDS", 0.0)
    data = swarm_scenarios.scenario(1) | {"duration": "2000s"}
    swarm_scenarios.files(tmp_path)
    with pytest.raises(swarm.Fault, match="run: still running after 0 s of CPU time"):
        swarm.check(data, tmp_path, swarm.Tally())
