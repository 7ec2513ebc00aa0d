"""`docs/fairness.md`: it shows what was measured, what was measured is measured again, and the verdicts turn."""

from __future__ import annotations

import random

import pytest

import fairness
from support import ROOT, check_table, markdown
from tidegate.control.registry import registry

PAGE = ROOT / "docs/fairness.md"


def test_every_scheme_is_there() -> None:
    """All of the registry but `fixed`, which adapts to nothing, and every pair of them."""
    named = {scheme.partition(":")[0] for scheme in fairness.SCHEMES}
    assert named == {*registry()} - {"fixed"} | {"tcp"}
    assert list(fairness.read()) == fairness.all_keys()


@pytest.mark.parametrize("queue", fairness.QUEUES)
def test_the_tables_are_what_was_measured(queue: int) -> None:
    """Share of the first flow, and mean wait."""
    for name, value in {
        "share": lambda one: 100 * one.share,
        "wait": lambda one: one.wait_ms,
    }.items():
        head = ["first \\ second", *fairness.SCHEMES]
        check_table(PAGE, f"{name} {queue}", markdown(head, 1, fairness.rows(value, queue)))


def test_the_verdicts_are_what_was_measured() -> None:
    """Of 2018, with the schemes of then and of today."""
    head = ["said in 2018", "rule", "schemes", "holds", "measured"]
    found = [
        [one.said, one.rule, age, "yes" if one.holds else "no", one.measured]
        for age, schemes in {"of 2018": ("gcc:libwebrtc-v1", "scream-v1"), "today's": ("gcc", "scream")}.items()
        for one in fairness.claims(*schemes)
    ]
    check_table(PAGE, "2018", markdown(head, 5, found))


def again(keys: list[tuple[str, str, int, float]]) -> None:
    """Runs some cells anew: they are what the file says, to the last digit."""
    cells = fairness.read()
    for key in keys:
        assert fairness.cell(*key) == cells[key]


def test_some_cells_come_out_as_they_were() -> None:
    """Of quick schemes, one of each kind; after a change of a scheme or of TCP, `make fairness` runs all anew."""
    again([("tcp:newreno", "tcp:cubic", 1, 0.0), ("gcc", "tcp:cubic", 4, 0.0), ("nada", "scream", 1, 0.0)])


@pytest.mark.slow
def test_many_cells_come_out_as_they_were() -> None:
    """A tenth of them, another one for each version of the file."""
    keys = fairness.all_keys()
    again(random.Random(fairness.RESULTS.read_text()).sample(keys, len(keys) // 10))


def test_a_verdict_turns_with_what_it_is_about(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each rule is met by some cells and broken by others."""
    cells = fairness.read()
    before = [one.holds for one in fairness.claims("gcc", "scream")]

    def turned(**values: float) -> list[bool]:
        """The verdicts if the cells of GCC, or of all others, had these values."""

        def change(one: fairness.Cell) -> fairness.Cell:
            mine = one.first == "gcc"
            return fairness.Cell(**{**vars(one), **{k: (v if mine else vars(one)[k]) for k, v in values.items()}})

        monkeypatch.setattr(fairness, "read", lambda: {key: change(one) for key, one in cells.items()})
        return [one.holds for one in fairness.claims("gcc", "scream")]

    assert turned() == before
    assert turned(share=0.5)[0]
    assert not turned(share=0.8)[0]
    assert turned(found_s=119.0)[2]
    assert not turned(found_s=0.1)[2]
    assert not turned(wait_ms=0.001)[4]
    assert not turned(rate_bps=1.0)[5]
