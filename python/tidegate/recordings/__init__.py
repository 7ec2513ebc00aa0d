"""Calls that were recorded elsewhere, as runs: what libwebrtc logs, and captures."""

from tidegate.recordings.importing import agreement, imported

__all__ = ["agreement", "imported"]
