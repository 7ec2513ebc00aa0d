"""Two results side by side: what differs in their settings, and in their numbers."""

from tidegate.differing.difference import Answer, Difference, Number, diff
from tidegate.differing.sides import KINDS, Side

__all__ = ["KINDS", "Answer", "Difference", "Number", "Side", "diff"]
