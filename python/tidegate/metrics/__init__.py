"""What each number of a summary is: name, unit, how it is shown, which direction is better."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from tidegate.metrics import pictures
from tidegate.metrics.model import Metric
from tidegate.metrics.pictures import PICTURES

__all__ = ["HEADLINE", "MEMBERS", "METRICS", "PICTURES", "Metric", "metric"]


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


_ALL = [
    Metric(
        "sending_rate_bps",
        "sending rate",
        "Mbit/s",
        "neither",
        "Bytes put on the wire over the flow's time, headers included (RFC 8868 section 3, metric 1).",
        1e-6,
        2,
    ),
    Metric(
        "receive_rate_bps",
        "receive rate",
        "Mbit/s",
        "higher",
        "Bytes that arrived over the flow's time, headers included (RFC 8868 section 3, metric 1).",
        1e-6,
        2,
        headline=True,
    ),
    Metric(
        "goodput_bps",
        "goodput",
        "Mbit/s",
        "higher",
        "Useful payload bytes over the flow's time: first copies of media, TCP in order (RFC 8868 section 3).",
        1e-6,
        2,
    ),
    Metric(
        "utilisation",
        "utilisation",
        "%",
        "higher",
        "Receive rate over the mean capacity, in the same time, of the tightest link on the flow's way "
        "(RFC 8868 section 3, metric 10, averaged).",
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
        "(RFC 8868 section 3, metric 5).",
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
        "Packets that came too late for playout (RFC 8868 section 3, metric 5).",
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
        "the time from the wire to arrival of the packets that arrived (RFC 8868 section 3, metric 4).",
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
        "Gaps between rendered frames above max(3 x mean gap, mean gap + 150 ms) (W3C webrtc-stats), the end included; "
        "and no picture in the first second or longer.",
        digits=1,
    ),
    Metric(
        "freeze_time_s",
        "time frozen",
        "s",
        "lower",
        "Total length of the freezes (W3C webrtc-stats, totalFreezesDuration), of a late first picture and of an early "
        "last one.",
        digits=2,
        headline=True,
    ),
    *pictures.catalogue(),
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
        "the mean of its last fifth (RFC 8868 section 3, metric 8, which leaves the rule open).",
    ),
    Metric(
        "oscillation_hz",
        "oscillation",
        "1/s",
        "lower",
        "Full swings of the receive rate, by seconds, between 20 % under and 20 % over its mean, a second "
        "(RFC 8868 section 3, metric 9 with the sending rate, which leaves the watermarks open).",
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
            "1 is equal, 1/n is one that has all (RFC 8868 section 3, metric 7).",
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
            f"Least over largest of the flows' bytes in windows of {width} s, mean; RFC 8868 section 3, metric 7 "
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
