"""Calls that were recorded elsewhere, as runs: what libwebrtc logs, and captures."""

from tidegate.recordings.importing import imported

__all__ = ["imported"]
