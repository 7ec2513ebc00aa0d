"""Two results side by side: what differs in their settings, and in their numbers."""

from tidegate.difference.difference import Answer, Difference, Number, diff
from tidegate.difference.sides import KINDS, Side

__all__ = ["KINDS", "Answer", "Difference", "Number", "Side", "diff"]
