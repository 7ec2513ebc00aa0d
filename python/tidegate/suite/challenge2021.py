"""The score of the MMSys 2021 grand challenge on bandwidth estimation (OpenNetLab), as far as the network goes.

`final = 0.2 video + 0.1 audio + network`, `network = 0.2 delay + 0.2 receive rate + 0.3 loss`, each part from 0 to 100
(github.com/OpenNetLab/challenge-HOWTO, README.md, "Final Score"; parts from packets as
github.com/OpenNetLab/Challenge-Environment, `metrics/utils/net_eval_method.py`, computes them). Video is VMAF as
a fraction of the VMAF in an ideal network; audio is all or nothing by DNSMOS, and the evaluation took it as 100.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

MAX_DELAY_MS = 400.0
"""Maximum delay, in ms; from this delay on there are no points (`metrics/eval_network.py`, `--max_delay`)."""
DELAY_WEIGHT, RATE_WEIGHT, LOSS_WEIGHT = 0.2, 0.2, 0.3
VIDEO_WEIGHT, AUDIO_WEIGHT = 0.2, 0.1


def network_score(delay_p95_ms: float, delay_min_ms: float, rate_fraction: float, loss_fraction: float) -> float:
    """Points for the network, 0 to 70, from the summary of a run.

    Args:
        delay_p95_ms: 95th percentile of the one-way delay, in ms.
        delay_min_ms: Minimum one-way delay, in ms.
        rate_fraction: Received rate as a fraction of the rate in an ideal network; a value above 1 counts as 1.
        loss_fraction: Packets lost as a fraction of the packets sent.

    >>> round(network_score(130.0, 40.0, 0.9, 0.02), 2)
    62.4
    >>> network_score(500.0, 40.0, 1.2, 0.0), network_score(450.0, 420.0, 0.0, 1.0)
    (50.0, 0.0)
    """
    room = MAX_DELAY_MS - delay_min_ms
    delay = max(0.0, MAX_DELAY_MS - delay_p95_ms) / room if room > 0 else 0.0
    rate, received_fraction = min(1.0, rate_fraction), 1.0 - loss_fraction
    return 100 * (DELAY_WEIGHT * delay + RATE_WEIGHT * rate + LOSS_WEIGHT * received_fraction)


def network_score_of_packets(packets: Iterable[Mapping[str, Any]], ideal_rate_bps: float) -> float | None:
    """Points for the network, 0 to 70, from the packets that arrived, by the challenge's own evaluation.

    Delays are relative to the delay of the first packet of each stream, because clocks differ; delay and rate are means
    over streams; packets whose sequence numbers are missing count as lost.

    Args:
        packets: In order of arrival, with `ssrc`, `sequence_number` (unwrapped), `send_time_ms`, `arrival_time_ms` and
            `payload_size` in bytes, as AlphaRTC's estimators get them.
        ideal_rate_bps: Payload rate of a stream in an ideal network, in bit/s.

    Returns:
        Points; `None` without packets.
    """
    streams: dict[int, list[Mapping[str, Any]]] = {}
    lost = 0
    for packet in packets:
        stream = streams.setdefault(packet["ssrc"], [])
        if stream:
            lost += max(0, packet["sequence_number"] - stream[-1]["sequence_number"] - 1)
        stream.append(packet)
    if not streams:
        return None
    delays, rates = [], []
    for stream in streams.values():
        raw = np.array([packet["arrival_time_ms"] - packet["send_time_ms"] for packet in stream], np.float64)
        relative = raw - raw[0]
        p95 = float(np.percentile(np.minimum(relative, MAX_DELAY_MS), 95))
        delays.append((MAX_DELAY_MS - p95) / (MAX_DELAY_MS - float(relative.min())))
        rates += _rate(stream)
    received = sum(map(len, streams.values()))
    rate = min(1.0, float(np.mean(rates)) / ideal_rate_bps) if rates else 0.0
    received_fraction = 1.0 - lost / (lost + received)
    return 100 * (DELAY_WEIGHT * float(np.mean(delays)) + RATE_WEIGHT * rate + LOSS_WEIGHT * received_fraction)


def _rate(stream: list[Mapping[str, Any]]) -> list[float]:
    """Payload rate in bit/s up to the last packet that arrived later than the first; empty if none did."""
    first = stream[0]["arrival_time_ms"]
    size, rate = 0, 0.0
    for packet in stream:
        size += packet["payload_size"]
        if packet["arrival_time_ms"] != first:
            rate = size * 8e3 / (packet["arrival_time_ms"] - first)
    return [rate] if rate > 0 else []


def final_score(network: float, vmaf: float, ideal_vmaf: float = 100.0) -> float:
    """The whole score, 0 to 100, with full points for audio, as the evaluation gave them.

    Args:
        network: Points for the network.
        vmaf: Mean VMAF of the displayed pictures.
        ideal_vmaf: Mean VMAF of the displayed pictures in an ideal network.

    >>> final_score(62.4, 80.0), final_score(70.0, 99.0, 95.0)
    (88.4, 100.0)
    """
    return VIDEO_WEIGHT * min(100.0, 100.0 * vmaf / ideal_vmaf) + AUDIO_WEIGHT * 100.0 + network
