"""Calls that were recorded elsewhere, as runs: what libwebrtc logs, and captures."""

from tidegate.recordings.capacity import Capacity, capacity
from tidegate.recordings.importing import agreement, imported

__all__ = ["Capacity", "agreement", "capacity", "imported"]
