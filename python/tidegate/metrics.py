"""What each number of a summary is: name, unit, how it is shown, which direction is better."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from tidegate.stats import Interval

Better = Literal["higher", "lower", "neither"]


@dataclass(frozen=True)
class Metric:
    """One number of a run's summary."""

    name: str
    """Its key in the summary, with the unit as suffix."""
    label: str
    """Its name for people."""
    unit: str
    """The unit in which it is shown."""
    better: Better
    """Which direction is better."""
    definition: str
    """How it is computed, with the source of the definition."""
    scale: float = 1.0
    """What a value of the summary is multiplied by to be in `unit`."""
    digits: int = 1
    """Digits after the point."""
    headline: bool = False
    """Whether comparisons show it."""

    def show(self, value: float | None) -> str:
        """A value with the metric's digits, without unit; a dash where there is none.

        >>> METRICS["receive_rate_bps"].show(2_500_000), METRICS["loss_fraction"].show(None)
        ('2.50', '-')
        """
        if value is None or not math.isfinite(value):
            return "-"
        return f"{value * self.scale:.{self.digits}f}"

    def show_interval(self, interval: Interval) -> str:
        """`mean ± half` in the metric's unit.

        >>> METRICS["receive_rate_bps"].show_interval(Interval(2.5e6, 1e5, 5))
        '2.50 ± 0.10'
        """
        text = self.show(interval.mean)
        return text if interval.half is None else f"{text} ± {self.show(interval.half)}"


def _delays(stem: str, label: str, what: str, headline: str) -> list[Metric]:
    points = {
        "mean": "mean",
        "std": "standard deviation",
        "min": "least",
        "p50": "median",
        "p95": "95th percentile",
        "p99": "99th percentile",
        "max": "largest",
    }
    own = points if stem == "one_way_delay_ms" else {k: v for k, v in points.items() if k not in {"std", "min"}}
    return [
        Metric(
            f"{stem}_{point}",
            f"{label}, {words}",
            "ms",
            "lower",
            f"{words[:1].upper()}{words[1:]} of {what}",
            headline=point == headline,
        )
        for point, words in own.items()
    ]


def _jitters(stem: str, label: str, what: str) -> list[Metric]:
    points = {"mean": "mean", "max": "largest"}
    return [
        Metric(f"{stem}_{point}", f"{label}, {word}", "ms", "lower", f"{word.capitalize()} {what}", digits=2)
        for point, word in points.items()
    ]


def _pictures() -> list[Metric]:
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


_ALL = [
    Metric(
        "sending_rate_bps",
        "sending rate",
        "Mbit/s",
        "neither",
        "Bytes put on the wire over the flow's time, headers included (RFC 8868 section 3.1, metric 1).",
        1e-6,
        2,
    ),
    Metric(
        "receive_rate_bps",
        "receive rate",
        "Mbit/s",
        "higher",
        "Bytes that arrived over the flow's time, headers included (RFC 8868 section 3.1, metric 1).",
        1e-6,
        2,
        headline=True,
    ),
    Metric(
        "goodput_bps",
        "goodput",
        "Mbit/s",
        "higher",
        "Useful payload bytes over the flow's time: first copies of media, TCP in order (RFC 8868 section 3.1).",
        1e-6,
        2,
    ),
    Metric(
        "utilisation",
        "utilisation",
        "%",
        "higher",
        "Receive rate over the mean capacity, in the same time, of the tightest link on the flow's way "
        "(RFC 8868 section 3.1, metric 10, averaged).",
        100,
        headline=True,
    ),
    Metric(
        "packets_sent",
        "packets sent",
        "",
        "neither",
        "Packets put on the wire, feedback left out.",
        digits=0,
    ),
    Metric(
        "packets_received",
        "packets received",
        "",
        "higher",
        "Packets that arrived after the warm-up, whenever they were sent.",
        digits=0,
    ),
    Metric(
        "bytes_sent",
        "bytes sent",
        "MB",
        "neither",
        "Bytes put on the wire, headers included.",
        1e-6,
        2,
    ),
    Metric(
        "bytes_received",
        "bytes received",
        "MB",
        "higher",
        "Bytes that arrived, headers included.",
        1e-6,
        2,
    ),
    Metric(
        "loss_fraction",
        "loss",
        "%",
        "lower",
        "Packets lost over packets whose fate is known, of those sent after the warm-up "
        "(RFC 8868 section 3.1, metric 5).",
        100,
        2,
        headline=True,
    ),
    Metric(
        "residual_loss_fraction",
        "residual loss",
        "%",
        "lower",
        "Packets of audio and video that were lost or late and not repaired in time for playout, over those whose fate "
        "is known, of those sent after the warm-up. What is lost of packets of padding and repair is not in it.",
        100,
        3,
    ),
    Metric(
        "repair_overhead",
        "repair overhead",
        "%",
        "lower",
        "Bytes of retransmissions and parity over bytes of audio and video, as they were put on the wire.",
        100,
        2,
    ),
    *(
        Metric(name, label, "packets", "neither", definition, digits=0)
        for name, label, definition in (
            ("nacks", "requests of packets", "RTCP packets with a Generic NACK (RFC 4585), from the receiver."),
            ("retransmissions", "sent once more", "Packets of the retransmission stream (RFC 4588) sent."),
            (
                "repaired_resent",
                "repaired by retransmission",
                "Lost packets of video that were there in time for playout because they were sent once more.",
            ),
            (
                "repaired_parity",
                "repaired by parity",
                "Lost packets of video that were there in time for playout because parity restored them.",
            ),
            ("plis", "requests of key frames", "RTCP packets with a picture loss indication, from the receiver."),
        )
    ),
    Metric("key_frames", "key frames", "", "neither", "Video frames that need no earlier one, as captured.", digits=0),
    Metric(
        "lost_queue",
        "lost in queues",
        "packets",
        "lower",
        "Packets that found a queue full.",
        digits=0,
    ),
    Metric(
        "lost_wire",
        "lost on the wire",
        "packets",
        "neither",
        "Packets lost to a link's loss model.",
        digits=0,
    ),
    Metric(
        "discarded_late",
        "discarded late",
        "packets",
        "lower",
        "Packets that came too late for playout (RFC 8868 section 3.1, metric 5).",
        digits=0,
    ),
    *_delays(
        "sender_delay_ms",
        "delay at the sender",
        "the time that media packets waited at their sender, from capture to the wire; one-way delay begins there.",
        "",
    ),
    Metric(
        "sender_skipped_frames",
        "skipped at the sender",
        "frames",
        "lower",
        "Frames of video and audio that were not sent, because more than `queue_limit` waited at the sender.",
        digits=0,
    ),
    Metric(
        "sender_skipped_bytes",
        "bytes skipped at the sender",
        "kB",
        "lower",
        "Encoded bytes of those frames.",
        1e-3,
    ),
    *_delays(
        "one_way_delay_ms",
        "one-way delay",
        "the time from the wire to arrival of the packets that arrived (RFC 8868 section 3.1, metric 4).",
        "p95",
    ),
    *_jitters(
        "jitter_ms",
        "jitter",
        "interarrival jitter (RFC 3550 section 6.4.1) over packets, by the time that they were put on the wire.",
    ),
    *_jitters(
        "media_jitter_ms",
        "jitter from capture",
        "interarrival jitter (RFC 3550 section 6.4.1) over packets of audio and video, each by its RTP timestamps: "
        "what waits at the sender, and the packets of one frame, are in it.",
    ),
    Metric(
        "quality",
        "fit for a call",
        "",
        "neither",
        "`met` where loss is at most 1 %, mean latency at most 150 ms and mean jitter at most 30 ms (Vardhan and "
        "Reddy, section 3), else what is over: loss, delay, jitter. Counts what waits and is skipped at the sender.",
    ),
    Metric(
        "quality_network",
        "fit for a call, network alone",
        "",
        "neither",
        "The same from the wire to arrival: loss, one-way delay and jitter.",
    ),
    Metric(
        "r_factor",
        "rating R",
        "",
        "higher",
        "R of the audio by the E-model (ITU-T G.107, default values) as G.711 with the concealment of its appendix I, "
        "from the mean time from capture to playout and the share of audio frames that were not played out.",
    ),
    Metric("mos", "MOS", "", "higher", "Mean opinion score of that rating, 1 to 4.5 (G.107 annex B).", digits=2),
    Metric(
        "mos_without_plc",
        "MOS without concealment",
        "",
        "higher",
        "The same for G.711 without packet loss concealment (Bpl = 4.3 instead of 25.1, ITU-T G.113 appendix I).",
        digits=2,
    ),
    *_delays(
        "queueing_delay_ms",
        "queueing delay",
        "the time that packets waited in queues, their own transmission left out.",
        "mean",
    ),
    *_delays(
        "frame_delay_ms",
        "frame delay",
        "the time from capture to rendering of video frames (RFC 8869 section 2.3).",
        "p95",
    ),
    Metric("frames_sent", "frames sent", "", "neither", "Video frames captured.", digits=0),
    Metric("frames_rendered", "frames rendered", "", "higher", "Video frames shown.", digits=0),
    Metric(
        "freezes",
        "freezes",
        "",
        "lower",
        "Gaps between rendered frames above max(3 x mean gap, mean gap + 150 ms) (W3C webrtc-stats).",
        digits=1,
    ),
    Metric(
        "freeze_time_s",
        "time frozen",
        "s",
        "lower",
        "Total length of the freezes (W3C webrtc-stats, totalFreezesDuration).",
        digits=2,
        headline=True,
    ),
    *_pictures(),
    Metric(
        "feedback_rate_bps",
        "feedback rate",
        "kbit/s",
        "lower",
        "Bytes of RTCP or bare acknowledgements over the flow's time, headers included.",
        1e-3,
    ),
    Metric(
        "feedback_overhead",
        "feedback overhead",
        "%",
        "lower",
        "Feedback bytes over bytes that arrived (RFC 8867 section 4).",
        100,
        2,
    ),
    Metric(
        "convergence_time_s",
        "convergence time",
        "s",
        "lower",
        "From the flow's start to the first second from which five in a row are within 10 % of its final share, "
        "the mean of its last fifth (RFC 8868 section 3.1, metric 8, which leaves the rule open).",
    ),
    Metric(
        "oscillation_hz",
        "oscillation",
        "1/s",
        "lower",
        "Full swings of the receive rate, by seconds, between 20 % under and 20 % over its mean, a second "
        "(RFC 8868 section 3.1, metric 9 with the sending rate, which leaves the watermarks open).",
        digits=3,
    ),
    Metric(
        "rtcp_share",
        "RTCP",
        "%",
        "neither",
        "RTCP that the member sent, IP and UDP headers included, over the session bandwidth, of which all members "
        "together may use 5 % (RFC 3550 section 6.2).",
        100,
        3,
    ),
    Metric("losses", "losses", "", "lower", "Lost packets that the member saw, and whose report is settled.", digits=0),
    Metric(
        "reported_early",
        "reported early",
        "",
        "neither",
        "Losses reported in early packets (RFC 4585 section 3.5.2).",
        digits=0,
    ),
    Metric(
        "reported_regular", "reported regularly", "", "neither", "Losses reported in regular RTCP packets.", digits=0
    ),
    Metric(
        "suppressed",
        "suppressed",
        "",
        "neither",
        "Losses not reported, because another member had (RFC 4585 section 3.5.2).",
        digits=0,
    ),
    Metric(
        "not_allowed",
        "not allowed",
        "",
        "lower",
        "Losses not reported, because that would have been later than max_feedback_delay (RFC 4585 section 3.5.2).",
        digits=0,
    ),
    Metric(
        "waiting_ms_mean",
        "waiting",
        "ms",
        "lower",
        "Mean time from the detection of a loss to sending the report, of the reports sent.",
    ),
    Metric(
        "loss_report_delay_ms_mean",
        "loss report delay",
        "ms",
        "lower",
        "Of packets that the member sent: mean time from sending to the first report of a loss.",
    ),
    Metric(
        "recovery_ms_mean",
        "recovery",
        "ms",
        "lower",
        "NEWPRED: mean time from the detection of a lost segment to one that was coded after the loss was reported.",
    ),
    Metric("capacity_bps", "capacity", "Mbit/s", "neither", "Mean capacity of the link.", 1e-6, 2),
    Metric(
        "carried_bps",
        "carried",
        "Mbit/s",
        "higher",
        "Bytes that the link carried over the time.",
        1e-6,
        2,
    ),
    Metric(
        "dropped_queue",
        "dropped, queue full",
        "packets",
        "lower",
        "Packets that found the queue full.",
        digits=0,
    ),
    Metric(
        "dropped_wire",
        "lost on the wire",
        "packets",
        "neither",
        "Packets lost by the link itself.",
        digits=0,
    ),
    *(
        Metric(
            f"jain_{width}s",
            f"Jain's index over {width} s",
            "",
            "higher",
            f"Jain's fairness index (Jain, Chiu, Hawe 1984) of the flows' bytes in windows of {width} s, mean: "
            "1 is equal, 1/n is one that has all (RFC 8868 section 3.1, metric 7).",
            digits=3,
        )
        for width in (1, 5, 20)
    ),
    *(
        Metric(
            f"ratio_{width}s",
            f"least over largest share, {width} s",
            "",
            "higher",
            f"Least over largest of the flows' bytes in windows of {width} s, mean; RFC 8868 section 3.1, metric 7 "
            "wants at least 0.333.",
            digits=3,
        )
        for width in (1, 5, 20)
    ),
]

METRICS: Mapping[str, Metric] = MappingProxyType({metric.name: metric for metric in _ALL})
"""Every metric by its name."""

MEMBERS: tuple[str, ...] = (
    "rtcp_share",
    "losses",
    "reported_early",
    "reported_regular",
    "suppressed",
    "not_allowed",
    "waiting_ms_mean",
    "loss_report_delay_ms_mean",
    "recovery_ms_mean",
)
"""What tables of the members of sessions show, in order."""

HEADLINE: tuple[str, ...] = tuple(metric.name for metric in _ALL if metric.headline)
"""What comparisons show, in order."""

PICTURES: tuple[str, ...] = (
    "picture_psnr_db",
    "picture_psnr_encoded_db",
    "picture_vmaf",
    "picture_vmaf_encoded",
    "picture_mos",
    "picture_latency_ms_p95",
)
"""What comparisons show besides where the video is real."""


def metric(name: str) -> Metric:
    """The metric of that name; a plain one where the catalogue does not know it.

    >>> metric("something_new_ms").unit
    'ms'
    """
    known = METRICS.get(name)
    if known is not None:
        return known
    stem, _, suffix = name.rpartition("_")
    units = {"bps": ("Mbit/s", 1e-6), "ms": ("ms", 1.0), "s": ("s", 1.0), "hz": ("1/s", 1.0)}
    if stem and suffix in units:
        unit, scale = units[suffix]
        return Metric(name, stem.replace("_", " "), unit, "neither", "", scale, 2)
    return Metric(name, name.replace("_", " "), "", "neither", "", digits=3)
