"""Lessons for people who learn congestion control: each has a scenario, a hint, a question and its answer."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tidegate.scenario import Scenario

FOLDER = Path(__file__).resolve().parent / "lessons"
"""The folder of the lessons' texts and scenarios."""


@dataclass(frozen=True)
class Lesson:
    """A lesson."""

    number: int
    """Its number, from 1."""
    title: str
    """Its title."""
    look_for: str
    """A hint on what to watch, shown before it begins."""
    question: str
    """A task to try or to think about."""
    answer: str
    """The result of the task."""
    contenders: Sequence[str]
    """The one or two controllers with which it begins."""
    scenario: Scenario
    """The scenario that is played."""


def lessons() -> list[Lesson]:
    """Loads all lessons, in the order in which they are taught.

    >>> [lesson.title for lesson in lessons()][:3]
    ['Ramp and probes', 'A step down', 'Buffer bloat']
    """
    texts = tomllib.loads((FOLDER / "lessons.toml").read_text(encoding="utf-8"))["lessons"]
    return [
        Lesson(number, **{**words, "scenario": Scenario.load(FOLDER / f"{words['scenario']}.toml")})
        for number, words in enumerate(texts, 1)
    ]
