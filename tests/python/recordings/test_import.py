"""Calls that were recorded elsewhere, as runs: RTC event logs."""

from __future__ import annotations

import gzip
import json
import struct
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

import tidegate
from support import Cli, shared
from support import event_logs as log
from tidegate import InputError, wire
from tidegate.recordings import agreement, capacity, imported

COUNT, LOST, DELAY_MS, OFFSET_MS = 200, {20, 21, 150}, 30, 7_000
"""Packets every 10 ms over a path of 30 ms each way; the far clock is 7 s ahead."""


def queue(number: int) -> int:
    """How long a packet waits, in ms: up to 15, and none does for the first."""
    return number // 10 % 4 * 5


def arrival(number: int) -> int:
    return 1000 + 10 * number + DELAY_MS + queue(number)


def packets(times: Sequence[int] | None = None) -> list[log.Rtp]:
    return [
        log.Rtp(
            (times or range(1000, 1000 + 10 * COUNT, 10))[n],
            (65_500 + n) % 2**16,
            n,
            timestamp=3000 * (n // 3),
            marker=n % 3 == 2,
        )
        for n in range(COUNT)
    ]


def feedback() -> list[tuple[int, bytes]]:
    """Transport-wide feedback on ten packets at a time, which comes back when the last of them has arrived and 30 ms later."""
    told = []
    for first in range(0, COUNT, 10):
        some = range(first, first + 10)
        reference = (arrival(first) + OFFSET_MS) // 64
        deltas: list[int | Literal["untimed"] | None] = []
        last = reference * 256
        for number in some:
            at = (arrival(number) + OFFSET_MS) * 4
            deltas.append(None if number in LOST else at - last)
            last = last if number in LOST else at
        one = wire.Twcc(
            sender_ssrc=1,
            media_ssrc=2,
            base_sequence=first,
            reference_time=reference,
            feedback_count=first // 10,
            packets=deltas,
        )
        told.append((arrival(first + 9) + DELAY_MS, wire.encode([one])))
    return told


def sender() -> bytes:
    return b"".join([
        log.begin(990),
        log.streams(0x1234, 0x1235),
        log.rtp(packets(), outgoing=True),
        log.rtcp(feedback(), outgoing=False),
        log.loss_based([(1100, 400_000, 0), (2000, 500_000, 13)]),
        log.delay_based([(1100, 410_000, 1), (1500, 300_000, 3), (2000, 500_000, 2)]),
    ])  # fmt: skip


def receiver() -> bytes:
    come = [one for n, one in enumerate(packets([arrival(n) + OFFSET_MS for n in range(COUNT)])) if n not in LOST]
    left = [(at - DELAY_MS + OFFSET_MS, packet) for at, packet in feedback()]
    return b"".join([
        log.begin(990 + OFFSET_MS),
        log.rtp(sorted(come, key=lambda one: one.at_ms), outgoing=False),
        log.rtcp(left, outgoing=True),
    ])  # fmt: skip


@pytest.fixture
def logs(tmp_path: Path) -> tuple[Path, Path]:
    near, far = tmp_path / "sender.log", tmp_path / "receiver.log"
    near.write_bytes(sender())
    far.write_bytes(receiver())
    return near, far


def fates(run: tidegate.Run) -> tuple[set[int], np.ndarray]:
    """Transport-wide numbers of the packets that were lost, and the delays of the others in ms."""
    table = run.table("packets")
    lost = table.to_numpy("fate") == "lost"
    delay = (table.to_numpy("arrived_s") - table.to_numpy("sent_s")) * 1000
    numbers = (table.to_numpy("rtp_sequence").astype(int) - 65_500) % 2**16
    return set(numbers[lost].tolist()), delay[~lost][np.argsort(numbers[~lost])]


EXPECTED = [DELAY_MS + queue(n) for n in range(COUNT) if n not in LOST]


def test_one_log_tells_losses_and_delays_by_its_feedback(logs: tuple[Path, Path]) -> None:
    run = imported(logs[:1])
    lost, delays = fates(run)
    assert lost == LOST
    # the only round trip is that of the feedback, which has waited for the packet before last: 0 ms at least
    assert np.allclose(delays, EXPECTED, atol=1e-6)
    flow = run.metrics("outgoing")
    assert flow["packets_sent"] == COUNT
    assert flow["packets_received"] == COUNT - len(LOST)
    assert flow["loss_fraction"] == len(LOST) / COUNT
    assert flow["one_way_delay_ms_min"] == DELAY_MS
    assert flow["bytes_sent"] == COUNT * 1052
    assert (run.table("packets").to_numpy("kind") == "video").all()


def test_both_logs_tell_them_exactly_whatever_the_clocks(logs: tuple[Path, Path]) -> None:
    run = imported(logs)
    lost, delays = fates(run)
    assert lost == LOST
    assert np.allclose(delays, EXPECTED, atol=1e-6)
    assert any(f"-{OFFSET_MS}.000 ms are added to the far clock" in one for one in run.warnings)
    # packets that come 7 s before they leave cannot be of one clock
    (near, far) = logs
    assert np.allclose(fates(imported([far, near], same_clock=True))[1], EXPECTED, atol=1e-6)


def test_what_fec_restored_was_lost(logs: tuple[Path, Path]) -> None:
    """Chromium notes what FEC restored as what came in, of this packet some time after it was due."""
    restored = [replace(one, at_ms=arrival(n) + OFFSET_MS + 15) for n, one in enumerate(packets()) if n in LOST]
    logs[1].write_bytes(receiver() + log.rtp(restored, outgoing=False))
    run = imported(logs)
    lost, delays = fates(run)
    assert lost == LOST
    assert np.allclose(delays, EXPECTED, atol=1e-6)
    assert (
        f"outgoing: {len(LOST)} packets in the receiver's log are lost according to the receiver's feedback"
        in " ".join(run.warnings)
    )


def test_a_call_is_over_when_nothing_comes_through_any_more(logs: tuple[Path, Path]) -> None:
    """The way between both ends is gone, and they go on sending and logging for 5 s."""
    whole = imported(logs)
    more = [
        log.Rtp(1000 + 10 * n, (65_500 + n) % 2**16, n % 2**16, timestamp=3000 * n) for n in range(COUNT, COUNT + 250)
    ]
    reports = [(log_end + OFFSET_MS, b"\x80\xc9\0\1\0\0\0\1") for log_end in range(more[0].at_ms, more[-1].at_ms, 500)]
    logs[0].write_bytes(sender() + log.rtp(more, outgoing=True))
    logs[1].write_bytes(receiver() + log.rtcp(reports, outgoing=True))
    run = imported(logs)
    assert "after the end of reception at both ends, are left out" in " ".join(run.warnings)
    assert run.metrics("outgoing")["loss_fraction"] == whole.metrics("outgoing")["loss_fraction"]
    rate = whole.metrics("outgoing")["receive_rate_bps"]
    assert run.metrics("outgoing")["receive_rate_bps"] == pytest.approx(rate, rel=0.03)


def test_what_nobody_could_know_is_absent_and_not_zero(logs: tuple[Path, Path]) -> None:
    run = imported(logs)
    flow = run.metrics("outgoing")
    unknown = {
        "queueing_delay_ms_p95", "goodput_bps", "freezes", "frames_rendered", "utilisation", "lost_queue",
        "sender_delay_ms_mean", "discarded_late", "quality", "marked", "residual_loss_fraction",
    }  # fmt: skip
    assert not unknown & flow.keys()
    assert run.summary["links"] == []
    assert "truth" not in run.tables
    series = run.table("series")
    assert np.isnan(series.to_numpy("queueing_delay_ms_mean")).all()
    assert np.isfinite(series.to_numpy("receive_rate_bps")).all()
    far = imported(logs[1:]).metrics("incoming")
    assert far["packets_received"] == COUNT - len(LOST)
    assert far["loss_fraction"] == len(LOST) / COUNT
    assert not {"sending_rate_bps", "bytes_sent", "one_way_delay_ms_mean"} & far.keys(), "nothing tells when they left"


def ccfb_by_hand(first: int, arrivals: Sequence[int | None], sent_ms: int) -> bytes:
    """A datagram by the figure of RFC 8888 section 3.1, octet by octet: one stream, arrivals by the far clock in ms."""
    # R, ECN (ECT(0) here), ATO in 1/1024 s before the report
    reports = [0 if at is None else 0x8000 | 0b10 << 13 | round((sent_ms - at) * 1.024) for at in arrivals]
    body = struct.pack(">IIHH", 1, 0x1234, first % 2**16, len(reports))
    body += b"".join(struct.pack(">H", one) for one in reports) + b"\0\0" * (len(reports) % 2)
    body += struct.pack(">I", round(sent_ms * 65.536) % 2**32)
    return struct.pack(">BBH", 0b10001011, 205, len(body) // 4) + body


def ccfb_by_us(first: int, arrivals: Sequence[int | None], sent_ms: int) -> bytes:
    """The same by our encoder."""
    metrics = [None if at is None else (0b10, round((sent_ms - at) * 1.024)) for at in arrivals]
    stamp = round(sent_ms * 65.536) % 2**32
    return wire.encode([wire.Ccfb(sender_ssrc=1, streams=[(0x1234, first % 2**16, metrics)], report_timestamp=stamp)])


@pytest.mark.parametrize("encoded", [ccfb_by_hand, ccfb_by_us])
def test_feedback_of_rfc_8888_tells_losses_delays_and_marks(tmp_path: Path, encoded: Callable[..., bytes]) -> None:
    told = []
    for first in range(0, COUNT, 10):
        some = [None if n in LOST else arrival(n) + OFFSET_MS for n in range(first, first + 10)]
        at = arrival(first + 9)
        told.append((at + DELAY_MS, encoded(65_500 + first, some, at + OFFSET_MS)))
    plain = [replace(one, transport=None) for one in packets()]
    parts = [log.begin(990), log.streams(0x1234, 0x1235), log.rtp(plain, outgoing=True), log.rtcp(told, outgoing=False)]
    (tmp_path / "x.log").write_bytes(b"".join(parts))
    run = imported([tmp_path / "x.log"], replay="gcc")
    lost, delays = fates(run)
    assert lost == LOST
    # arrival times are told in 1/1024 s
    assert np.allclose(delays, EXPECTED, atol=1.1)
    table = run.table("packets")
    came = table.to_numpy("fate") == "arrived"
    assert set(table.to_numpy("ecn")[came].tolist()) == {"ect0"}
    assert "replayed_state" in set(run.table("internals").to_numpy("name").tolist())


def test_the_recorded_estimates_are_decisions_and_internals(logs: tuple[Path, Path]) -> None:
    run = imported(logs[:1])
    decisions = run.table("decisions")
    assert decisions.to_numpy("target_bps").tolist() == [400_000, 500_000]
    assert np.allclose(decisions.to_numpy("t_s"), [0.1, 1.0])
    assert np.isnan(decisions.to_numpy("pacing_bps")).all()
    internals = run.table("internals")
    state = internals.to_numpy("value")[internals.to_numpy("name") == "state"]
    assert state.tolist() == [0, 1, 2], "normal, over-use, under-use, as gcc notes them"
    assert run.controller == "recorded"


def test_a_folder_of_it_is_one_of_a_run(logs: tuple[Path, Path], tmp_path: Path, cli: Cli) -> None:
    told = cli("import", str(logs[0]), "--out", "call")
    assert told.code == 0
    assert "written to call" in told.out
    assert "recording: arrival times are from feedback" in told.err
    again = tidegate.Run.load(tmp_path / "call")
    assert again.digest == imported(logs[:1]).digest
    assert again.metrics("outgoing") == imported(logs[:1]).metrics("outgoing")
    assert cli("report", "call").code == cli("report", "call", "--out", "s.png").code == 0
    page = (tmp_path / "call" / "report.html").read_text("utf-8")
    assert "s recorded" in page
    assert "Recorded files" in page
    assert "simulated time" not in page
    about = json.loads((tmp_path / "call" / "run.json").read_text("utf-8"))
    assert about["imported"]["begun_ms"] == 1_700_000_000_010
    packed = tmp_path / "sender.log.gz"
    packed.write_bytes(gzip.compress(sender()))
    assert cli("import", str(packed), "--out", "packed", "--json").code == 0
    assert tidegate.Run.load(tmp_path / "packed").digest == again.digest


@pytest.mark.parametrize("end", [len(sender()) - 5, 1500, 900])
def test_what_stands_before_a_cut_is_imported_and_the_cut_is_told(tmp_path: Path, end: int) -> None:
    file = tmp_path / "cut.log"
    file.write_bytes(sender()[:end])
    try:
        run = imported([file])
    except InputError as error:
        assert str(error).startswith(f"{file}: byte ")
        return
    assert run.metrics("outgoing")["packets_sent"] == COUNT
    assert any(one.startswith("recording: cut.log: byte ") and "are left" in one for one in run.warnings)


WRONG = {
    "empty": (b"", "byte 0: the file is empty"),
    "text": (b"hello, world", "found text that is no JSON; expected an RTC event log (format 2)"),
    "old": (log.data(1, b"x"), "byte 0: found an RTC event log of format 1"),
    "later": (log.begin(5, version=3), "found an RTC event log of format 3; expected format 2"),
    "quiet": (log.begin(5), "byte 0: found no RTP; expected a recording of a call"),
    "long": (
        log.rtp([log.Rtp(0, 1), log.Rtp(10**11, 2)], outgoing=True),
        "the timestamps span 1157 days; expected at most 7",
    ),
    "bomb": (
        log.begin(5) + log.data(3, log.number(1, 5) + log.number(11, 2**32 - 1)),
        "found 4294967295 events after the first in a batch of 8 bytes",
    ),
    "packed": (gzip.compress(sender())[:-20], "cannot be unpacked by gzip"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_told_with_its_place(tmp_path: Path, cli: Cli, name: str) -> None:
    data, right = WRONG[name]
    (tmp_path / "x.log").write_bytes(data)
    told = cli("import", "x.log", "--out", "call")
    assert told.code == 2
    assert told.err.startswith("tidegate: x.log")
    assert right in told.err
    assert not (tmp_path / "call").exists()


def test_files_that_are_not_there_and_too_many(tmp_path: Path, cli: Cli) -> None:
    (tmp_path / "a.log").write_bytes(sender())
    assert "nowhere.log: there is no such file" in cli("import", "nowhere.log", "--out", "call").err
    (tmp_path / "b.log").write_bytes(receiver())
    (tmp_path / "c.log").write_bytes(sender() + sender())
    told = cli("import", "a.log", "b.log", "c.log", "--out", "call")
    assert "found 3 event logs; expected one from each end" in told.err
    assert (
        "a.log: the file is given twice; expected the file of the other end"
        in cli("import", "a.log", "a.log", "--out", "call").err
    )
    assert cli("import", str(tmp_path), "--out", "call").code == 2


def test_a_call_of_chromium() -> None:
    folder = shared() / "recordings" / "chromium-short"
    near, far = folder / "sender.rtclog", folder / "receiver.rtclog"
    run = imported([near])
    both = imported([near, far])
    flow, other = run.metrics("outgoing"), both.metrics("outgoing")
    assert (flow["loss_fraction"], other["loss_fraction"]) == (0, 0), "a short call over an empty link"
    # the browser's own count of the packets that were sent by the last snapshot, less than a second before the end
    *_, last = [json.loads(line)["stats"] for line in (folder / "stats-sender.jsonl").read_text().splitlines()]
    counted = sum(one["packetsSent"] for one in last if one["type"] == "outbound-rtp")
    # that snapshot is from before the sender's last second, which the log has
    assert 0 < counted <= 1372
    # arrivals by feedback and by the other log agree to the stamps' millisecond and the least round trip's half
    one, two = (
        {
            (int(sequence), kind): (arrived - begun) * 1000
            for sequence, kind, arrived, begun in zip(
                table.to_numpy("rtp_sequence"),
                table.to_numpy("kind"),
                table.to_numpy("arrived_s"),
                table.to_numpy("sent_s"),
                strict=True,
            )
            if np.isfinite(arrived) and np.isfinite(sequence)
        }
        for table in (run.table("packets"), both.table("packets"))
    )
    differences = np.array([one[key] - two[key] for key in one.keys() & two.keys()])
    assert len(differences) > 400
    # a busy browser stamps some late, in one place or the other
    assert np.quantile(np.abs(differences - np.median(differences)), 0.9) < 3
    assert abs(np.median(differences)) < 3
    # 20 ms of path each way, by clocks that were never set
    assert 18 < other["one_way_delay_ms_min"] < 22
    decisions = run.table("decisions")
    targets = decisions.to_numpy("target_bps")[decisions.to_numpy("t_s") > 0.5]
    assert 1.8e6 < targets.min() < targets.max() < 2.6e6, "the probes of the first moments found the link's 2 Mb/s"


# --- replay ---------------------------------------------------------------------------------------


def test_a_controller_hears_open_loop_what_it_was_told_in_a_run(captured: tuple[tidegate.Run, Path, Path]) -> None:
    """The trend line that gcc fitted in the run is what it fits when its capture is imported."""
    run, near, _ = captured
    again = imported([near], replay="gcc")
    ours, theirs = run.table("internals"), again.table("internals")
    assert any("compare the detectors, not the rates" in one for one in again.warnings)

    def noted(table: tidegate.Table, name: str) -> np.ndarray:
        return np.asarray(table.to_numpy("value")[table.to_numpy("name") == name])

    for name in ("trend", "group_delta_ms", "state"):
        here, there = noted(ours, name), noted(theirs, f"replayed_{name}")
        assert len(here) == len(there) > 50, name
        assert np.mean(np.isclose(here, there, atol=1e-9)) > 0.95, name
    assert len(noted(theirs, "replayed_target")) > 3


def test_a_recorded_detector_beside_ours(logs: tuple[Path, Path], tmp_path: Path, cli: Cli) -> None:
    told = cli("import", str(logs[0]), "--replay", "gcc", "--out", "call")
    assert told.code == 0, told.err
    assert "gcc with the recorded feedback: its detector agrees with the recorded detector" in told.out
    assert "replayed_state" in set(tidegate.Run.load(tmp_path / "call").table("internals").to_numpy("name").tolist())
    assert (
        "there is no such setting; did you mean beta?"
        in cli("import", str(logs[0]), "--replay", "gcc:betta=1", "--out", "wrong").err
    )
    told = cli("import", str(logs[1]), "--replay", "gcc", "--out", "wrong")
    assert (told.code, "found no feedback on packets sent by the near end" in told.err) == (2, True)
    folder = shared() / "recordings" / "chromium-short"
    found = agreement(imported([folder / "sender.rtclog"], replay="gcc"))
    assert found is not None
    assert found["agree"] > 0.8


# --- captures -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def captured(tmp_path_factory: pytest.TempPathFactory) -> tuple[tidegate.Run, Path, Path]:
    """A run of a call over a lossy link, and its captures of both sides."""
    folder = tmp_path_factory.mktemp("captured")
    link = {
        "name": "link", "from": "left", "to": "right", "capacity": "800kbps", "delay": "25ms", "queue": {"time": "200ms"},
        "loss": "2%",
    }  # fmt: skip
    keys = {"name": "call", "duration": "12s", "record": "packets", "capture": True}
    flow = {"name": "call", "media": {"controller": "gcc", "repair": "none"}}
    made = tidegate.Scenario.from_dict({**keys, "links": [link], "flows": [flow]})
    run = tidegate.run(made)
    near, far = folder / "near.pcapng", folder / "far.pcapng"
    near.write_bytes(run.pcapng("sender"))
    far.write_bytes(run.pcapng("receiver"))
    return run, near, far


def rows(run: tidegate.Run) -> list[tuple[float, int, int, str, float]]:
    """For each packet of RTP when it was sent, its number and size, what became of it, and its delay in ms."""
    table = run.table("packets")
    rtp = table.to_numpy("kind") != "rtcp"
    sent, arrived = table.to_numpy("sent_s")[rtp], table.to_numpy("arrived_s")[rtp]
    became = [{"arrived": "arrived", "under way": "unknown", "unknown": "unknown"}.get(fate, "lost")
              for fate in table.to_numpy("fate")[rtp].tolist()]  # fmt: skip
    # an imported call begins with its first packet
    at = np.round((sent - sent.min()) * 1e6, 1).tolist()
    delays = np.nan_to_num((arrived - sent) * 1000).round(6).tolist()
    # padding has a number, too
    numbers = [int(one) for one in table.to_numpy("rtp_sequence")[rtp]]
    return sorted(zip(at, numbers, table.to_numpy("size")[rtp].tolist(), became, delays, strict=True))


def test_captures_of_a_run_come_to_the_same_losses_and_delays(captured: tuple[tidegate.Run, Path, Path]) -> None:
    run, near, far = captured
    again = imported([near, far], same_clock=True)
    ours, theirs = rows(run), rows(again)
    assert len(ours) == len(theirs) > 500
    assert (run.table("packets").to_numpy("kind") == "padding").any()
    # what died as the run ended might be under way, as far as a capture knows
    sure = [at for at, *_ in ours if at < 11.5e6]
    assert theirs[: len(sure)] == ours[: len(sure)]
    assert sum(became == "lost" for *_, became, _ in ours) > 10
    for name in ("one_way_delay_ms_p95", "loss_fraction", "receive_rate_bps"):
        assert again.metrics("outgoing")[name] == pytest.approx(run.metrics()[name], rel=0.02), name
    # which place is which is told by the order of packets alone
    assert rows(imported([far, near], same_clock=True)) == theirs


def test_frames_are_whole_when_the_run_had_them_whole(captured: tuple[tidegate.Run, Path, Path]) -> None:
    run, near, far = captured
    ours, theirs = run.table("frames"), imported([near, far], same_clock=True).table("frames")
    begun = float(run.table("packets").to_numpy("sent_s").min())
    video = ours.to_numpy("video")
    known = {
        round(float(complete) - begun, 9)
        for complete in ours.to_numpy("complete_s")[video].tolist()
        if np.isfinite(complete) and complete < 11.5
    }
    came = theirs.to_numpy("complete_s")[theirs.to_numpy("video")]
    told = {
        round(float(complete), 9) for complete in came.tolist() if np.isfinite(complete) and complete + begun < 11.5
    }
    assert len(known) > 250
    # nothing is repaired in this run: a frame is whole when all of its packets are there
    assert told == known
    sizes = theirs.to_numpy("size")[theirs.to_numpy("video")]
    assert len(sizes) == pytest.approx(video.sum(), abs=20)
    whole = imported([near, far], same_clock=True).metrics("outgoing")
    assert whole["frames_whole"] < whole["frames_sent"] == len(sizes)
    # 200 ms of queue at 800 kbit/s, and what a burst waits at its sender
    assert 20 < whole["frame_lateness_ms_p95"] < whole["frame_lateness_ms_max"] < 400


def test_one_capture_tells_what_its_feedback_tells(captured: tuple[tidegate.Run, Path, Path]) -> None:
    run, near, _ = captured
    ours, theirs = rows(run), rows(imported([near]))
    assert [one[:3] for one in ours] == [one[:3] for one in theirs]
    told = [(here[3], there[3]) for here, there in zip(ours, theirs, strict=True) if there[3] != "unknown"]
    assert len(told) > 0.9 * len(ours), "feedback on packets is read, with the extension that numbers them"
    assert all(here == there for here, there in told)
    delays = [(here[4], there[4]) for here, there in zip(ours, theirs, strict=True) if there[3] == "arrived"]
    differences = np.subtract(*np.array(delays).T)
    # ticks of 250 us; of two packets that leave at once feedback may have told of one
    assert np.ptp(np.quantile(differences, [0.01, 0.99])) < 0.3


def test_a_capacity_is_a_link_again(captured: tuple[tidegate.Run, Path, Path], tmp_path: Path, cli: Cli) -> None:
    told = cli("import", *map(str, captured[1:]), "--same-clock", "--trace", "link.csv", "--out", "call")
    assert told.code == 0, told.err
    assert "link.csv: a lower bound of the capacity; packets queued" in told.err
    bound = capacity(tidegate.Run.load(tmp_path / "call"))
    assert bound.rate_bps.max() <= 800_000 * 1.001, "the link's"
    assert bound.rate_bps.max() > 800_000 * 0.97
    trace = tidegate.trace.load(tmp_path / "link.csv")
    assert trace.duration_ns / 1e9 == pytest.approx(bound.duration_s, abs=1e-3)
    assert cli("compare", "gcc", "--link", "link.csv", "--duration", "3s").code == 0
    (tmp_path / "mine.txt").write_text("mine")
    told = cli("import", str(captured[1]), "--trace", "mine.txt", "--out", "other")
    assert (told.code, "the file exists already and is not a csv trace" in told.err) == (1, True)
    (tmp_path / "far.log").write_bytes(receiver())
    told = cli("import", "far.log", "--trace", "x.csv", "--out", "other")
    assert (told.code, "does not have the times at which packets left" in told.err, (tmp_path / "other").exists()) == (
        2,
        True,
        False,
    )


def test_what_is_neither_rtp_nor_rtcp_is_counted_and_told() -> None:
    told = " ".join(imported([shared() / "recordings" / "chromium-steps" / "link.up.in.pcap.gz"]).warnings)
    assert "left out of the capture: " in told
    assert "STUN" in told
    assert "DTLS" in told


def test_captures_that_are_wrong_are_told(captured: tuple[tidegate.Run, Path, Path], tmp_path: Path, cli: Cli) -> None:
    whole = captured[1].read_bytes()
    (tmp_path / "cut.pcapng").write_bytes(whole[: len(whole) // 2])
    told = cli("import", "cut.pcapng", "--out", "call")
    assert told.code == 0, told.err
    assert "cut.pcapng: byte " in told.err
    assert "a block takes" in told.err
    head = bytes.fromhex("d4c3b2a1020004000000000000000000ffff0000")
    wrong = {
        "link.pcap": (
            head + (147).to_bytes(4, "little") + bytes(8) + bytes([1, 0, 0, 0] * 2) + b"x",
            "found link type 147",
        ),
        "none.pcap": (head + (101).to_bytes(4, "little"), "found no packets; expected a call"),
        "short.pcap": (head, "the link type of a pcap file takes 4 bytes, but 0 are left"),
        "order.pcapng": (bytes.fromhex("0a0d0d0a1c00000011223344") + bytes(16), "found no byte-order magic"),
    }
    for name, (data, right) in wrong.items():
        (tmp_path / name).write_bytes(data)
        told = cli("import", name, "--out", "wrong")
        assert (told.code, right in told.err) == (2, True), told.err
    (tmp_path / "a.log").write_bytes(sender())
    told = cli("import", "a.log", "cut.pcapng", "--out", "wrong")
    assert "found a file of the format “capture” beside a file of “event log”" in told.err


def test_an_encrypted_call_through_a_link_with_its_truth() -> None:
    folder = shared() / "recordings" / "chromium-steps"
    near = [folder / "link.up.in.pcap.gz", folder / "link.down.out.pcap.gz"]
    far = [folder / "link.up.out.pcap.gz", folder / "link.down.in.pcap.gz"]
    with gzip.open(folder / "link.up.csv.gz", "rt") as file:
        truth = np.array([[int(cell) for cell in line.split(",")] for line in file.read().splitlines()[1:]])
    dropped = truth[truth[:, 4] == 1]
    for same_clock in (True, False):
        run = imported(near, far=far, same_clock=same_clock)
        table = run.table("packets")
        lost = table.to_numpy("fate") == "lost"
        # what the link dropped besides is no RTP
        assert sorted(table.to_numpy("size")[lost].tolist()) == sorted(dropped[:, 3].tolist())
        assert run.metrics("outgoing")["loss_fraction"] == pytest.approx(len(dropped) / len(lost), rel=1e-3)
        assert 20 <= run.metrics("outgoing")["one_way_delay_ms_min"] < 20.5, "the link's delay"
        assert 1100 < run.metrics("outgoing")["one_way_delay_ms_max"] < 1300, "75 kB at 0.5 Mb/s"
    # the link's truth: 2, 0.5 and 2 Mb/s from 35 and 65 s on; the browser began its call some seconds before its media
    bound = capacity(run)
    steps = [
        np.percentile(bound.rate_bps[(bound.t_s >= a) & (bound.t_s < b)], [50, 100]) / 1e6
        for a, b in ((5, 30), (38, 60))
    ]
    for (middle, most), right in zip(steps, (2.0, 0.5), strict=True):
        assert 0.97 * right < middle <= most < 1.01 * right, "a lower bound, and close where packets queued"
    assert bound.rate_bps.max() < 2.02e6
    assert set(table.to_numpy("kind").tolist()) == {"audio", "video", "retransmission"}
    assert "RTCP is encrypted" in " ".join(imported(near).warnings)
