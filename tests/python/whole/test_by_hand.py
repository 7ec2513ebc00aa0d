"""Controllers, receiver halves and packet formats driven by hand, against what others wrote."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tidegate
from support import ROOT, shared
from tidegate import Arrived, ControllerHost, Limits, PacketResult, Report, Run, Scenario, Sent, run, wire

DATA = ROOT / "tests" / "data"

# --- GCC against aiortc ---------------------------------------------------------------------------

TOLERANCE = 1e-9  # what vectors/README.md asks of an independent implementation
STATES = {"NORMAL": 0.0, "OVERUSING": 1.0, "UNDERUSING": 2.0}
STATE = ("offset", "slope", "var_noise", "num_deltas", "threshold")


class Feeder:
    """One packet a group and one report a packet, so that each row's difference is seen alone."""

    def __init__(self, host: ControllerHost) -> None:
        self.host = host
        self.sequence = 0

    def __call__(self, sent_ms: float, arrival_ms: float, size: float) -> dict[str, float]:
        sent, arrival = round(sent_ms * 1e6), round(arrival_ms * 1e6)
        self.host.on_report(arrival + 50_000_000, Report([PacketResult(self.sequence, int(size), sent, arrival)]))
        self.sequence += 1
        return self.host.internals


def replay(file: Path) -> int:
    """Replays differences between groups on the whole controller; answers how many."""
    data = json.loads(file.read_text())
    assert data["columns"] == ["t_delta_ms", "ts_delta_ms", "size_delta", "now_ms", *STATE, "hypothesis"]
    rows = data["rows"]
    feed = Feeder(tidegate.controller("gcc", preset="aiortc"))
    # a size must not be negative on the way
    size = 100.0 - min(0.0, *accumulate(row[2] for row in rows))
    sent = arrival = 0.0
    assert feed(sent, arrival, size).keys().isdisjoint(STATE), "nothing is known after one packet"
    # the difference to a group shows when the packet after it arrives: one packet more than rows
    for number, row in enumerate([*rows, [20.0, 20.0, 0.0]]):
        arrival, sent, size = arrival + row[0], sent + row[1], size + row[2]
        said = feed(sent, arrival, size)
        if number == 0:
            assert said.keys().isdisjoint(STATE)
            continue
        expected = rows[number - 1][4:]
        for name, value in zip(STATE, expected, strict=False):
            assert abs(said[name] - value) <= TOLERANCE, (number - 1, name)
        assert said["state"] == STATES[expected[5]], number - 1
    return len(rows)


def test_the_filter_and_detector_of_aiortc() -> None:
    assert replay(DATA / "gcc" / "aiortc_kalman_detector.json") == 60


def test_the_filter_and_detector_of_aiortc_at_length() -> None:
    assert replay(shared() / "vectors" / "aiortc_kalman_detector.json") == 600


# --- a controller by hand and in a run ------------------------------------------------------------

CALL = """\
duration = "20s"
[[links]]
name = "cable"
capacity = { schedule = [["0s", "2Mbps"], ["8s", "600kbps"], ["14s", "1500kbps"]] }
delay = "20ms"
loss = "0.5%"
[[flows]]
name = "call"
media = { controller = "gcc" }
"""


class Proxy(tidegate.Controller):
    """GCC in place of a Python controller: every value goes to Python and back."""

    needs = tidegate.controller("gcc").needs

    def on_limits(self, now_ns: int, limits: Limits) -> tidegate.Decision:
        if not hasattr(self, "host"):
            # as a call sets it, which is what a scenario's is
            self.host = tidegate.controller("gcc", now_ns=now_ns, limits=limits, pacing_factor=1.1, alr_probing=False)
            return self.host.decision
        return self.host.on_limits(now_ns, limits)

    def on_report(self, now_ns: int, report: Report) -> tidegate.Decision:
        # made again from its parts, so that nothing hides in the object that came
        again = Report(
            report.packets,
            in_flight=report.in_flight,
            backlog=report.backlog,
            pacer_delay_ns=report.pacer_delay_ns,
            report_rtt_ns=report.report_rtt_ns,
            packet_rtt_ns=report.packet_rtt_ns,
            ecn=report.ecn,
            loss=report.loss,
            remb_bps=report.remb_bps,
            messages=report.messages,
            reporter=report.reporter,
        )
        decision = self.host.on_report(now_ns, again)
        self.internals = self.host.internals
        return decision

    def on_alarm(self, now_ns: int) -> tidegate.Decision:
        decision = self.host.on_alarm(now_ns)
        self.internals = self.host.internals
        return decision

    def on_sent(self, now_ns: int, sent: Sent) -> tidegate.Decision:
        decision = self.host.on_sent(now_ns, sent)
        self.internals = self.host.internals
        return decision


@pytest.mark.parametrize("feedback", ["twcc", "ccfb"])
def test_gcc_through_python_is_gcc(feedback: str) -> None:
    plain = Scenario.parse(CALL).with_changes({"flows.call.media.feedback": {"format": feedback}})
    data = plain.to_dict()
    data["flows"][0]["media"]["controller"] = Proxy
    native, proxied = run(plain), run(Scenario.from_dict(data))
    assert len(set(native.table("decisions").to_numpy("target_bps"))) > 50, "it did something"
    assert proxied.digest == native.digest
    # the host tells the last value of each name; both have it at the same instants
    noted, again = (last_values(one) for one in (native, proxied))
    assert again
    assert again.items() <= noted.items()
    assert {name for _, name in again} == {name for _, name in noted}


def last_values(one: Run) -> dict[tuple[float, str], float]:
    """The last value of each internal at each instant."""
    columns = (one.table("internals").to_numpy(name).tolist() for name in ("t_s", "name", "value"))
    return {(at, name): value for at, name, value in zip(*columns, strict=True)}


def test_a_host_refuses_nonsense() -> None:
    host = tidegate.controller("gcc", limits=Limits(start_bps=500_000))
    assert host.decision.target_bps == 500_000
    with pytest.raises(ValueError, match="gccc: no such controller; available: fixed, gcc"):
        tidegate.controller("gccc")
    with pytest.raises(ValueError, match="aiortk"):
        tidegate.controller("gcc", preset="aiortk")
    with pytest.raises(ValueError, match="no receiver half"):
        tidegate.receiver("gcc")
    with pytest.raises(ValueError, match="a name must have four ASCII characters"):
        Report(messages=[("TOOLONG", b"")])


# --- a receiver half by hand and in a run ---------------------------------------------------------


class Meter(tidegate.ReceiverHalf):
    """Measures the received rate over 100 ms and tells it in a REMB and in a message of its own."""

    def __init__(self) -> None:
        self.begun: int | None = None
        self.bytes = 0
        self.rate = 0

    def on_packet(self, now_ns: int, packet: Arrived) -> str | None:
        begun = self.begun = now_ns if self.begun is None else self.begun
        self.bytes += packet.size
        if now_ns - begun < 100_000_000:
            return None
        self.rate = self.bytes * 8 * 10**9 // (now_ns - begun)
        self.begun, self.bytes = now_ns, 0
        self.internals["rate"] = float(self.rate)
        return "now"

    def message(self, now_ns: int) -> list[wire.Remb | wire.App]:
        assert self.rate > 0, "it speaks only when it has asked to"
        return [wire.Remb(2, self.rate, [1]), wire.App(0, 2, b"RATE", self.rate.to_bytes(4, "big"))]


class Follow(tidegate.Controller):
    """Does what its receiving half says, twice as fast."""

    def on_report(self, now_ns: int, report: Report) -> int | None:
        if report.remb_bps is None:
            return None
        ((name, data),) = report.messages
        exact = int.from_bytes(data, "big")
        assert name == "RATE"
        # the mantissa of a REMB has 18 bits, and what does not fit is cut
        assert 0 <= exact - report.remb_bps < exact >> 17
        self.internals["exact"] = float(exact)
        return 2 * report.remb_bps


def pair() -> tuple[Follow, Meter]:
    """Both halves, for `python:FILE:pair`."""
    return Follow(), Meter()


def test_a_receiver_half_by_hand() -> None:
    half = Meter()
    packets = ((10_000_000 * n, Arrived(n, 1250, n * 2621, rtp_sequence=n)) for n in range(11))
    asked = [half.on_packet(at, packet) for at, packet in packets]
    assert asked == [None] * 10 + ["now"]
    said = half.message(100_000_000)
    assert half.rate == 11 * 1250 * 8 * 10
    assert said[0] == wire.Remb(2, 1_100_000, [1])
    remb, app = wire.decode(wire.encode(said))
    assert isinstance(remb, wire.Remb)
    assert (remb.bitrate_bps, app) == (1_100_000, said[1])


def test_a_receiver_half_in_a_run() -> None:
    here = Path(__file__)
    made = Scenario.parse(CALL).with_changes(
        {
            "flows.call.media.controller": f"python:{here}:pair",
            "flows.call.media.feedback": {"format": "none", "reports": "rfc3550"},
            "flows.call.media.repair": "none",
            "flows.call.media.video": {"source": "greedy", "max": "5Mbps"},
        }
    )
    done = run(made, record="packets")
    internals = done.table("internals")
    values = {
        name: internals.to_numpy("value")[internals.to_numpy("name") == name].tolist() for name in ("rate", "exact")
    }
    # what it measured is what the other end was told, in order, but for the few that were lost
    assert len(values["rate"]) == 196, "20 s, and the next packet after each 100 ms"
    assert len(values["exact"]) > 0.97 * 196
    told = iter(values["rate"])
    assert all(any(rate == one for one in told) for rate in values["exact"])
    contents = set(done.table("rtcp").to_numpy("contents"))
    assert any("REMB" in what and "APP" in what for what in contents), contents
    # twice what arrives fills the link whatever it carries
    truth, series = done.table("truth"), done.table("series")
    capacity = truth.to_numpy("capacity_bps")[truth.to_numpy("link") == "cable"]
    late = series.to_numpy("t_s") >= 5
    received = series.to_numpy("receive_rate_bps")[late]
    assert 0.97 < received.sum() / capacity[-len(received) :].sum() < 1.001
    assert np.isfinite(done.metrics()["one_way_delay_ms_p95"])


# --- RTCP against pion ----------------------------------------------------------------------------

FILES = {"rtcp_reports": 18, "rtcp_nack": 17, "rtcp_psfb": 8, "rtcp_twcc_manual": 9}


def block(fields: dict[str, Any]) -> wire.ReportBlock:
    return wire.ReportBlock(
        fields["ssrc"],
        fields["fraction_lost"],
        fields["cumulative_lost_i24"],
        fields["ext_highest_seq"],
        fields["jitter"],
        fields["lsr"],
        fields["dlsr"],
    )


def described(kind: str, of: dict[str, Any]) -> object:
    """The packet that a vector's fields describe."""
    match kind:
        case "sr":
            blocks = [block(one) for one in of["reports"]]
            counts = of["packet_count"], of["octet_count"]
            return wire.SenderReport(of["ssrc"], int(of["ntp"]), of["rtp_ts"], *counts, blocks, b"")
        case "rr":
            return wire.ReceiverReport(of["ssrc"], [block(one) for one in of["reports"]], b"")
        case "nack":
            pairs = [(one["pid"], one["blp"]) for one in of["pairs"]]
            return wire.Nack(of["sender_ssrc"], of["media_ssrc"], pairs)
        case "pli":
            return wire.Pli(of["sender_ssrc"], of["media_ssrc"])
        case "sli":
            entries = [(one["first"], one["number"], one["picture"]) for one in of["entries"]]
            return wire.Sli(of["sender_ssrc"], of["media_ssrc"], entries)
        case "fir":
            return wire.Fir(of["sender_ssrc"], [(one["ssrc"], one["seq"]) for one in of["entries"]])
    raise AssertionError(kind)


def lost_in(pairs: list[tuple[int, int]]) -> Iterator[int]:
    """The sequence numbers that a NACK asks for (RFC 4585 section 6.2.1)."""
    for pid, blp in pairs:
        yield pid
        yield from ((pid + bit + 1) & 0xFFFF for bit in range(16) if blp >> bit & 1)


def check_exact(vector: dict[str, Any]) -> None:
    data = bytes.fromhex(vector["hex"])
    (packet,) = wire.decode(data)
    assert packet == described(vector["kind"], vector["fields"])
    assert wire.encode([packet]) == data
    if isinstance(packet, wire.Nack):
        assert list(lost_in(packet.pairs)) == vector["fields"]["lost"]


def check_twcc(vector: dict[str, Any]) -> None:
    data, of = bytes.fromhex(vector["hex"]), vector["decoded"]
    (packet,) = wire.decode(data)
    assert isinstance(packet, wire.Twcc)
    head = packet.sender_ssrc, packet.media_ssrc, packet.base_sequence, packet.reference_time, packet.feedback_count
    names = ("sender_ssrc", "media_ssrc", "base_seq", "reference_time_64ms", "fb_pkt_count")
    assert head == tuple(of[name] for name in names)
    assert len(packet.packets) == of["status_count"] == len(of["packets"])
    at = packet.reference_time * 64_000  # us
    for number, (status, (sequence, symbol, *times)) in enumerate(zip(packet.packets, of["packets"], strict=True)):
        assert sequence == (packet.base_sequence + number) & 0xFFFF
        assert symbol in {0, 1, 2}
        if symbol == 0:
            assert (status, times) == (None, [])
            continue
        assert isinstance(status, int)
        at += 250 * status
        assert times == [250 * status, at], "the delta and the time since the clock's origin, in us"
    # the chunks may be others: what they say is compared
    assert wire.decode(wire.encode([packet])) == [packet]


def check(folder: Path, file: str) -> int:
    vectors = json.loads((folder / f"{file}.json").read_text())
    for vector in vectors:
        try:
            (check_twcc if file == "rtcp_twcc_manual" else check_exact)(vector)
        except Exception as error:
            error.add_note(f"{file}: {vector['id']}")
            raise
    return len(vectors)


@pytest.mark.parametrize("file", FILES)
def test_rtcp_of_pion(file: str) -> None:
    assert check(DATA / "wire", file) == 4


@pytest.mark.parametrize("file", FILES)
def test_all_rtcp_of_pion(file: str) -> None:
    assert check(shared() / "vectors", file) == FILES[file]


def test_what_is_cut_short_is_a_value_error() -> None:
    vectors = [one for file in FILES for one in json.loads((DATA / "wire" / f"{file}.json").read_text())]
    for vector in vectors:
        data = bytes.fromhex(vector["hex"])
        for end in range(1, len(data)):
            with pytest.raises(ValueError, match=r"\S"):
                wire.decode(data[:end])
        for place in range(len(data)):
            changed = bytes([*data[:place], data[place] ^ 0x41, *data[place + 1 :]])
            try:
                found = wire.decode(changed)
            except ValueError:
                continue
            # whatever it says now, it can be written and says the same again
            assert wire.decode(wire.encode(found)) == found


class Stamps(Proxy):
    """Stamps its running number on every packet, and the 51st time it cannot."""

    def stamp(self, now_ns: int, packet: tidegate.Outgoing) -> tuple[int, bytes]:
        assert packet.size > 12
        if packet.sequence == 50:
            raise RuntimeError("no more ink")
        return 7, packet.sequence.to_bytes(4, "big")


def test_an_exception_in_stamp_ends_the_run() -> None:
    data = Scenario.parse(CALL).to_dict()
    data["flows"][0]["media"]["controller"] = Stamps
    with pytest.raises(tidegate.RunError, match=r"stamp raised RuntimeError: no more ink") as caught:
        run(Scenario.from_dict(data))
    assert isinstance(caught.value.__cause__, RuntimeError)
