"""Calls that were recorded elsewhere, as runs: what libwebrtc logs."""

from tidegate.recordings.importing import imported

__all__ = ["imported"]
