"""Two results side by side: the differences of their settings, verdicts and numbers."""

from tidegate.difference.difference import Difference, Number, VerdictChange, diff
from tidegate.difference.sides import KINDS, Side

__all__ = ["KINDS", "Difference", "Number", "Side", "VerdictChange", "diff"]
