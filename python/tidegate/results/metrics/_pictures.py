"""The numbers of real video."""

from __future__ import annotations

from tidegate.results.metrics.model import Metric

PICTURES: tuple[str, ...] = (
    "picture_psnr_db",
    "picture_psnr_encoded_db",
    "picture_vmaf",
    "picture_vmaf_encoded",
    "picture_mos",
    "picture_latency_ms_p95",
)
"""What comparisons show besides where the video is real."""


def catalogue() -> list[Metric]:
    """Of real video (`--media`), by the ticks of the receiver's display."""
    beside = "of what is seen at each tick of the display beside the picture that is due before encoding; freezes count"
    sent = "of what is due, as it was encoded"
    return [
        Metric("picture_psnr_db", "PSNR", "dB", "higher", f"Mean luma PSNR {beside}."),
        Metric("picture_psnr_encoded_db", "PSNR as encoded", "dB", "higher", f"Mean luma PSNR {sent}."),
        Metric(
            "picture_psnr_own_db",
            "PSNR of the picture shown",
            "dB",
            "higher",
            "Mean luma PSNR of what is seen beside its own original, however old: coding and concealment, no freezes.",
        ),
        Metric("picture_ssim", "SSIM", "", "higher", f"Mean luma SSIM {beside}.", digits=3),
        Metric("picture_ssim_encoded", "SSIM as encoded", "", "higher", f"Mean luma SSIM {sent}.", digits=3),
        Metric(
            "picture_vmaf",
            "VMAF",
            "",
            "higher",
            f"Mean VMAF (vmaf_v0.6.1, pictures at their own size) {beside}.",
        ),
        Metric("picture_vmaf_encoded", "VMAF as encoded", "", "higher", f"Mean VMAF {sent}."),
        Metric(
            "picture_mos",
            "picture MOS",
            "",
            "higher",
            "Mean of EvalVid's grades of the PSNR of each tick: above 37 dB 5, 31 4, 25 3, 20 2, else 1.",
            digits=2,
        ),
        Metric("picture_mos_encoded", "picture MOS as encoded", "", "higher", f"The same {sent}.", digits=2),
        Metric(
            "picture_distortion_in_interval",
            "distortion in interval",
            "%",
            "lower",
            "EvalVid's: the largest share, in any 25 ticks in a row, of those with a grade below 4 and below that of "
            "the picture as encoded.",
            100,
        ),
        *(
            Metric(
                f"picture_latency_ms_{point}",
                f"picture latency, {words}",
                "ms",
                "lower",
                f"{words[:1].upper()}{words[1:]}, over the display's ticks, of the time since capture of what is seen.",
            )
            for point, words in (("mean", "mean"), ("p95", "95th percentile"))
        ),
        Metric(
            "picture_freezes",
            "picture freezes",
            "",
            "lower",
            "How often a picture stood for max(3 frames, a frame + 150 ms) or longer (W3C webrtc-stats); a picture "
            "that is concealed in part does not stand.",
        ),
        Metric("picture_freeze_time_s", "time pictures stood", "s", "lower", "Total length of those.", digits=2),
        Metric(
            "picture_frames_lost",
            "frames lost",
            "%",
            "lower",
            "Frames of real video of which nothing was there when they were to be shown.",
            100,
            2,
        ),
        Metric(
            "picture_frames_damaged",
            "frames damaged",
            "%",
            "lower",
            "Frames of real video of which some slices were there when they were to be shown, and others not.",
            100,
            2,
        ),
        Metric(
            "picture_frames_left_out",
            "frames left out",
            "%",
            "lower",
            "Pictures that an encoder in the loop left out to hold its rate.",
            100,
            2,
        ),
    ]
