"""What recordings of calls tell beside what a run's own numbers say: counters of getStats, frames of captures."""

from __future__ import annotations

from tidegate.results.metrics.model import Metric

COUNTED: tuple[str, ...] = (
    "round_trip_ms_mean",
    "frames_encoded",
    "frames_decoded",
    "frames_dropped",
    "frames_whole",
    "frame_lateness_ms_p95",
)
"""What tables show besides, of a recorded call."""


def catalogue() -> list[Metric]:
    """Of recorded calls."""
    source = "W3C webrtc-stats"
    late = (
        "of how much later than the quickest of its stream a frame was whole, by its timestamp and the receiver's clock"
    )
    return [
        Metric(
            "round_trip_ms_mean", "round trip, mean", "ms", "lower", f"Mean of roundTripTime in all reports ({source})."
        ),
        Metric(
            "round_trip_ms_max", "round trip, largest", "ms", "lower", f"Largest roundTripTime in a report ({source})."
        ),
        Metric(
            "frames_encoded", "frames encoded", "", "neither", f"framesEncoded of all streams ({source}).", digits=0
        ),
        Metric("frames_decoded", "frames decoded", "", "higher", f"framesDecoded of all streams ({source}).", digits=0),
        Metric(
            "frames_dropped",
            "frames dropped",
            "",
            "lower",
            f"framesDropped of all streams: before decoding, or too late to be shown ({source}).",
            digits=0,
        ),
        Metric(
            "frames_whole",
            "frames whole",
            "",
            "higher",
            "Video frames of which every packet arrived the first time.",
            digits=0,
        ),
        Metric("frame_lateness_ms_p95", "frame lateness, p95", "ms", "lower", f"95th percentile {late}."),
        Metric("frame_lateness_ms_max", "frame lateness, largest", "ms", "lower", f"Largest {late}."),
    ]
