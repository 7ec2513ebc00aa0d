"""Scenarios that ship: each is good and says where it comes from."""

from __future__ import annotations

import pytest

import tidegate
from tidegate import Scenario
from tidegate.scenario import shipped


@pytest.mark.parametrize("name", shipped.names())
def test_shipped_scenarios_are_good_and_say_where_they_come_from(name: str) -> None:
    scenario = Scenario.load(name)
    scenario.check()
    assert scenario.name == name
    assert len(scenario.description) > 40
    assert any(word in scenario.source for word in ("RFC", "Ours", "NSDI", "thesis"))


def test_there_are_more_than_a_dozen() -> None:
    assert len(shipped.names()) >= 12
    assert tidegate.Scenario.load("home-broadband").name in shipped.names()
