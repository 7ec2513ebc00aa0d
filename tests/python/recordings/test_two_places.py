"""Packets that are in captures twice: seen twice at one place, or at two places, in one file or in two."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from support.captures import (
    COUNT,
    LOST,
    PLAIN,
    A,
    B,
    Passed,
    call,
    counts,
    datagram,
    ipv4,
    pcap,
    pcapng,
    read,
    remarks,
    rtp,
    udp,
)
from tidegate import Run
from tidegate.recordings import imported

START = 1_700_000_000.0
NAT = "203.0.113.7"

Sight = tuple[float, int, Passed]


def both_places(delay: float = 0.03, queue: float = 0.004, sizes: tuple[int, int] = (172, 132)) -> list[Sight]:
    """A call at both of its ends: time, place (0 at A, 1 at B), packet; hop limits of each place, and a queue on the way.

    Of what A sends one of twenty is lost.
    """
    rows = []
    for n in range(200):
        wait = delay + queue * (n % 5)
        out, back = rtp(n, 0x11223344, sizes[0]), rtp(n, 0x55667788, sizes[1])
        rows.append((START + n / 50, 0, Passed(START + n / 50, A, B, out, 64)))
        if n % 20 != 7:
            rows.append((START + n / 50 + wait, 1, Passed(START + n / 50 + wait, A, B, out, 60)))
        rows.append((START + n / 50 + 0.005, 1, Passed(START + n / 50 + 0.005, B, A, back, 64)))
        rows.append((START + n / 50 + 0.005 + wait, 0, Passed(START + n / 50 + 0.005 + wait, B, A, back, 60)))
    return rows


def check(run: Run, delay_ms: float = 38) -> None:
    """The numbers of `both_places`."""
    outgoing, incoming = run.metrics("outgoing"), run.metrics("incoming")
    assert (outgoing["packets_sent"], incoming["packets_sent"]) == (200, 200)
    assert outgoing["loss_fraction"] == pytest.approx(0.05, abs=0.006)
    assert incoming["loss_fraction"] == 0
    for way in (outgoing, incoming):
        assert way["one_way_delay_ms_p50"] == pytest.approx(delay_ms, abs=1.1)


# --- one place ------------------------------------------------------------------------------------


def test_a_mirrored_port_counts_once(tmp_path: Path) -> None:
    packets = [(packet.at + lag, packet.ip()) for packet in call() for lag in (0.0, 10e-6)]
    run = read(tmp_path, pcap(packets))
    assert counts(run) == PLAIN
    assert f"{2 * COUNT - len(LOST)} packets are in the capture a second time" in remarks(run)


@pytest.mark.parametrize("offload", [False, True])
def test_several_interfaces_of_a_router_count_once(offload: bool, tmp_path: Path) -> None:
    """With a network adapter that computes checksums, the first sight has part of one."""
    rows = [
        (
            packet.at + lag,
            interface,
            ipv4(
                packet.source,
                packet.target,
                datagram(packet.payload, checksum=0x1234 if offload and interface else 0x4321),
                hops=packet.hops - interface,
            ),
        )
        for packet in call()
        for interface, lag in ((0, 0.0), (1, 80e-6))
    ]
    assert counts(read(tmp_path, pcapng(sorted(rows)))) == PLAIN


def test_what_the_network_doubles_stays(tmp_path: Path) -> None:
    packets = [(packet.at, packet.ip()) for packet in call()]
    doubled = [(at + 20e-6, ip) for at, ip in packets[::20]]
    run = read(tmp_path, pcap(packets + doubled))
    assert sum(flow["packets_sent"] for flow in run.summary["flows"]) > 2 * COUNT
    assert "a second time" not in remarks(run)


# --- two places in one file -----------------------------------------------------------------------


def merged(rows: Sequence[Sight], told_by: str, later: float = 0.0) -> bytes:
    """Both places in one file; the clock of the second is ahead."""
    return pcapng(
        sorted(
            (
                at + later * place,
                place if told_by == "interfaces" else 0,
                udp(p.source, p.target, p.payload, hops=64 if told_by == "order" else p.hops),
            )
            for at, place, p in rows
        )
    )


@pytest.mark.parametrize("told_by", ["interfaces", "hop limits", "order"])
def test_two_places_in_one_file_are_told_apart(told_by: str, tmp_path: Path) -> None:
    run = read(tmp_path, merged(both_places(), told_by))
    assert "it was made at two places" in remarks(run)
    check(run)


@pytest.mark.parametrize("later", [0.2, -7200.0])
@pytest.mark.parametrize("told_by", ["interfaces", "hop limits"])
def test_clocks_that_are_apart_do_not_change_which_place_is_which(told_by: str, later: float, tmp_path: Path) -> None:
    check(read(tmp_path, merged(both_places(), told_by, later)))


def test_where_nothing_tells_the_places_their_clocks_tell_no_delay(tmp_path: Path) -> None:
    run = read(tmp_path, merged(both_places(), "order", -7200.0))
    assert all("one_way_delay_ms_p50" not in flow for flow in run.summary["flows"])


def test_each_place_may_be_a_mirrored_port(tmp_path: Path) -> None:
    twice = [(at + lag, place, packet) for at, place, packet in both_places() for lag in (0.0, 10e-6)]
    check(read(tmp_path, merged(twice, "hop limits")))


@pytest.mark.parametrize("delay", [0.0006, 0.004])
def test_a_short_path_is_no_mirror(delay: float, tmp_path: Path) -> None:
    """The delay does not change, but routers lowered the hop limit by four, and packets are lost between."""
    check(read(tmp_path, merged(both_places(delay, 0.0), "hop limits")), 1e3 * delay)


# --- two files ------------------------------------------------------------------------------------


def files(folder: Path, sides: Sequence[Sequence[tuple[float, bytes]]]) -> list[Path]:
    paths = [folder / f"{name}.pcap" for name in "ab"]
    for path, rows in zip(paths, sides, strict=True):
        path.write_bytes(pcap(rows))
    return paths


@pytest.mark.parametrize("sizes", [(172, 132), (132, 172)])
def test_a_nat_between_two_captures(sizes: tuple[int, int], tmp_path: Path) -> None:
    sides: list[list[tuple[float, bytes]]] = [[], []]
    for at, place, p in both_places(sizes=sizes):
        source, target = (NAT if place and end == A else end for end in (p.source, p.target))
        sides[place].append((at, udp(source, target, p.payload, hops=p.hops)))
    a, b = files(tmp_path, sides)
    check(imported([a, b]))
    check(imported([a], far=[b]))


@pytest.mark.parametrize("step", [0.25, -0.25])
def test_a_clock_that_was_set_gives_no_delays(step: float, tmp_path: Path) -> None:
    sides: list[list[tuple[float, bytes]]] = [[], []]
    for at, place, packet in both_places():
        sides[place].append((at + (step if place == 1 and at > START + 2 else 0), packet.ip()))
    run = imported(files(tmp_path, sides))
    said = f"the clock of one capture point was set by {1e3 * step:+.1f} ms at about 2 s: delays are not known"
    assert said in remarks(run, "warnings")
    outgoing = run.metrics("outgoing")
    assert not {"one_way_delay_ms_p50", "media_jitter_ms_mean", "jitter_ms_mean"} & set(outgoing)
    assert outgoing["packets_sent"] == 200
    # what was sent while the clock had not got so far yet may be lost or not
    assert outgoing["loss_fraction"] == pytest.approx(0.05, abs=0.012)


def test_a_drift_that_no_clock_has_gives_no_delays(tmp_path: Path) -> None:
    draw = random.Random(5)
    sides: list[list[tuple[float, bytes]]] = [[], []]
    for n in range(1500):
        sent, wait = n / 25, 0.03 + draw.random() * 0.002
        for source, target, ssrc in ((A, B, 1), (B, A, 2)):
            ip = udp(source, target, rtp(n, ssrc))
            near, far = (sent, sent + wait) if source == A else (sent + wait, sent)
            sides[0].append((START + near, ip))
            sides[1].append((START + far * 1.003, ip))
    run = imported(files(tmp_path, sides))
    assert "ppm, which no clock that runs does" in remarks(run, "warnings")
    assert "one_way_delay_ms_p50" not in run.metrics("outgoing")
