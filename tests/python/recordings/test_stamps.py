"""Captures of one place whose times are not those of the call."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.captures import RAW, A, B, pcap, read, remarks, rtp, udp

START = 1_700_000_000.0
COUNT = 500
"""Packets of G.711 each way, 20 ms apart: ten seconds."""


def sights(late: float = 0.0) -> list[tuple[float, bytes]]:
    """Packets of both ways as they pass A, where those of B are late from the middle on."""
    rows = []
    for n in range(COUNT):
        rows.append((n / 50, udp(A, B, rtp(n, 0x11223344))))
        waited = 0.03 + 0.002 * (n % 3) + (late if n >= COUNT // 2 else 0.0)
        rows.append((n / 50 + waited, udp(B, A, rtp(n, 0x55667788), hops=60)))
    return sorted(rows, key=lambda row: row[0])


@pytest.mark.parametrize("step", [0.25, -0.25, 3600.0])
def test_a_clock_that_was_set(step: float, tmp_path: Path) -> None:
    rows = [(START + at + (step if at >= 5 else 0), frame) for at, frame in sights()]
    run = read(tmp_path, pcap(rows, by_time=False))
    said = f"the clock of the capture was set by {1e3 * step:+.1f} ms at about "
    assert said in remarks(run, "warnings")
    assert "media_jitter_ms_mean" not in run.metrics("incoming")
    assert run.metrics("incoming")["packets_received"] == COUNT
    assert run.metrics("incoming")["loss_fraction"] == 0


@pytest.mark.parametrize("late", [0.0, 0.25, 1.0])
def test_a_slow_way_is_no_clock(late: float, tmp_path: Path) -> None:
    run = read(tmp_path, pcap([(START + at, frame) for at, frame in sights(late)]))
    assert remarks(run, "warnings") == ""
    assert run.metrics("incoming")["media_jitter_ms_mean"] < 5


def test_one_way_whose_times_step_back(tmp_path: Path) -> None:
    """Two files put one behind the other, the later one first."""
    rows = [(START + n / 50, udp(A, B, rtp(n, 7))) for n in range(100)]
    run = read(tmp_path, pcap([*rows[50:], *rows[:50]], RAW, by_time=False))
    assert "the times of the capture step back by 1980.0 ms at 2.0 s: its clock was set, or files" in remarks(
        run, "warnings"
    )


def test_other_packets_of_another_day_are_no_step(tmp_path: Path) -> None:
    """Files that were put one behind the other, with one call in one of them."""
    speech = [(START + n / 50, udp(A, B, rtp(n, 7))) for n in range(100)]
    other = [(START + day + n, udp(A, "192.0.2.9", bytes(20))) for day in (86400.0, 86390.5) for n in range(3)]
    assert remarks(read(tmp_path, pcap([*other, *speech], by_time=False)), "warnings") == ""
    assert remarks(read(tmp_path, pcap([*speech, *other], by_time=False)), "warnings") == ""


@pytest.mark.parametrize("kind", [0, 96])
@pytest.mark.parametrize("speed", [1e-3, 20.0])
def test_times_that_are_not_those_of_the_call(kind: int, speed: float, tmp_path: Path) -> None:
    """Made up by a converter, or changed when the packets were sent again; a clock that is not known may be as slow."""
    step = 160 if kind == 0 else 3000
    rows = [(START + speed * n / 50, udp(A, B, rtp(n, 0x1122AABB, kind=kind, stamp=step * n))) for n in range(COUNT)]
    run = read(tmp_path, pcap(rows))
    warned = remarks(run, "warnings")
    if speed > 1 and kind == 96:
        assert warned == ""
        return
    # where the clock is not known, it is at most 192 kHz
    words = "20 times as slowly" if speed > 1 else f"{1000 if kind == 0 else 781} times as fast"
    assert f"the RTP timestamps of SSRC 0x1122aabb go about {words} as the times in the file" in warned
