"""Situations that are prepared for people who learn: a scenario each, what to look for, a question and its answer."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tidegate.scenario import Scenario

FOLDER = Path(__file__).resolve().parent / "lessons"
"""Where they are."""


@dataclass(frozen=True)
class Lesson:
    """One of them."""

    number: int
    """Its place among them, from 1."""
    title: str
    """What it is called."""
    look_for: str
    """What to look for, before it begins."""
    question: str
    """What to try or to think about."""
    answer: str
    """What comes of that."""
    contenders: Sequence[str]
    """The controllers that it begins with, one or two."""
    scenario: Scenario
    """What is played."""


def lessons() -> list[Lesson]:
    """All of them, in the order in which they are taught.

    >>> [lesson.title for lesson in lessons()][:3]
    ['Ramp and probes', 'A step down', 'Buffer bloat']
    """
    told = tomllib.loads((FOLDER / "lessons.toml").read_text(encoding="utf-8"))["lessons"]
    return [
        Lesson(number, **{**words, "scenario": Scenario.load(FOLDER / f"{words['scenario']}.toml")})
        for number, words in enumerate(told, 1)
    ]
