"""Remarks on runs: warnings are reasons to doubt numbers, notes help to interpret them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_NOTE = re.compile(r"(^|\.)circuit_breaker$|^seed$|\.capacity\.trace$")
"""Keys of notes: remarks that do not put the numbers in doubt."""
_EACH = 2
"""Number of remarks of a kind that are shown in full."""


@dataclass(frozen=True)
class Remarks:
    """Sentences about runs, each as `KEY: SENTENCE` with the key of its setting."""

    sentences: Sequence[str] = ()
    """Warnings and notes, in the order in which they arose."""
    marked: Sequence[str] = ()
    """Sentences that are notes whatever their key: remarks on how the numbers of a recording were made."""

    @classmethod
    def of(cls, summaries: Iterable[Mapping[str, Any]], *more: str) -> Remarks:
        """Collects the remarks in the summaries of runs, each once, and adds `more`."""
        listed = list(summaries)
        sentences = [_sentence(remark) for summary in listed for remark in summary.get("warnings", ())]
        marked = [_sentence(remark) for summary in listed for remark in summary.get("notes", ())]
        return cls(list(dict.fromkeys([*sentences, *more, *marked])), marked)

    @property
    def notes(self) -> list[str]:
        """Remarks that help to interpret the numbers."""
        return [sentence for sentence in self.sentences if self._is_note(sentence)]

    @property
    def warnings(self) -> list[str]:
        """Reasons to doubt the numbers."""
        return [sentence for sentence in self.sentences if not self._is_note(sentence)]

    def _is_note(self, sentence: str) -> bool:
        return sentence in self.marked or _NOTE.search(sentence.partition(": ")[0]) is not None

    @property
    def labelled(self) -> list[tuple[str, str]]:
        """Warnings, then notes, each as a pair of its label and the sentence."""
        return [("Warning", text) for text in self.warnings] + [("Note", text) for text in self.notes]

    @property
    def brief(self) -> Remarks:
        """The remarks with only the first ones of each kind, and the number of the others of that kind."""
        notes = _first_of_kinds(self.notes)
        return Remarks([*_first_of_kinds(self.warnings), *notes], notes)


def _first_of_kinds(sentences: Iterable[str]) -> list[str]:
    kinds: dict[tuple[str, str], list[str]] = {}
    for sentence in sentences:
        kinds.setdefault(_kind(sentence), []).append(sentence)
    shortened: list[str] = []
    for alike in kinds.values():
        first = alike[:_EACH] if len(alike) > _EACH + 1 else alike
        shortened += first
        if rest := len(alike) - len(first):
            shortened[-1] += f" (and {rest} more like this)"
    return shortened


def _sentence(remark: Mapping[str, Any] | str) -> str:
    return remark if isinstance(remark, str) else f"{remark['key']}: {remark['says']}"


def _kind(sentence: str) -> tuple[str, str]:
    """The part that remarks of a kind share: the last part of the key, and the sentence without its numbers.

    A remark without the key of a setting, such as "5.1 was not run: WHY", is a kind of its own.
    """
    key, _, says = sentence.partition(": ")
    last = key if " " in key else key.rpartition(".")[2]
    return last, "" if last == "circuit_breaker" else re.sub(r"\d+(\.\d+)?", "#", says)
