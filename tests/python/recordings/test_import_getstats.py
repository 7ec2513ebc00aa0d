"""Calls of which only getStats was recorded, as runs."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tidegate
from support import Cli, shared
from tidegate import InputError
from tidegate.output.markdown import markdown
from tidegate.recordings import imported
from tidegate.show import report

BEGUN_MS = 1_700_000_000_000.0
SECONDS, RATE, LOST, FREEZE = 20, 100, 7, 12
"""So many reports, packets a second, packets lost in the eighth second, and the second of a freeze."""


def sender(second: int) -> list[dict[str, Any]]:
    """What a sender of 100 packets a second, each of 1000 bytes behind 20 of header, says after some seconds."""
    sent = RATE * (second + 1)
    stamp = BEGUN_MS + 1000 * second
    return [
        {
            "id": "O", "type": "outbound-rtp", "kind": "video", "ssrc": 77, "timestamp": stamp, "packetsSent": sent,
            "bytesSent": 1000 * sent, "headerBytesSent": 20 * sent, "retransmittedPacketsSent": 3, "framesEncoded": 30 * second,
            "targetBitrate": 900_000, "nackCount": 2, "pliCount": 1,
        },
        {
            "id": "RI", "type": "remote-inbound-rtp", "kind": "video", "ssrc": 77, "timestamp": stamp - 300,
            "packetsLost": 0 if second < LOST else 5, "roundTripTime": 0.05 if second % 2 else 0.07, "jitter": 0.004,
        },
        {"id": "T", "type": "transport", "selectedCandidatePairId": "P2", "timestamp": stamp},
        {"id": "P1", "type": "candidate-pair", "nominated": False, "availableOutgoingBitrate": 1, "timestamp": stamp},
        {
            "id": "P2", "type": "candidate-pair", "nominated": True, "localCandidateId": "L", "timestamp": stamp,
            "availableOutgoingBitrate": 1_000_000 if second < 10 else 500_000, "currentRoundTripTime": 0.06,
        },
        {"id": "L", "type": "local-candidate", "address": "2001:db8::1", "timestamp": stamp},
    ]  # fmt: skip


def receiver(second: int) -> list[dict[str, Any]]:
    """The other end, half a second later."""
    lost = 0 if second < LOST else 5
    came = RATE * (second + 1) - lost
    froze = second >= FREEZE
    return [
        {
            "id": "I", "type": "inbound-rtp", "kind": "video", "ssrc": 77, "timestamp": BEGUN_MS + 1000 * second + 500,
            "packetsReceived": came, "packetsLost": lost, "bytesReceived": 1000 * came, "headerBytesReceived": 20 * came,
            "framesDecoded": 30 * second, "framesDropped": 4, "freezeCount": int(froze), "totalFreezesDuration": 0.75 * froze,
            "jitter": 0.003,
        }
    ]  # fmt: skip


def lines(report: Any, *, seconds: int = SECONDS) -> bytes:
    """A report a line; its times begin at 5 s."""
    return "".join(json.dumps({"time_s": 5 + at, "report": report(at)}) + "\n" for at in range(seconds)).encode()


def internals(report: Any, *, stamped: bool) -> dict[str, Any]:
    """The same as webrtc-internals' dump: a series for each member of each object."""
    stats: dict[str, Any] = {}
    for at in range(SECONDS):
        for one in report(at):
            for name, value in one.items():
                if name not in {"id", "type"} and (stamped or name != "timestamp"):
                    made = stats.setdefault(f"{one['id']}-{name}", {"statsType": one["type"], "values": []})
                    made["values"].append(value)
                    made.setdefault("startTime", when(at))
                    made["endTime"] = when(at)
    return {"stats": {key: {**one, "values": json.dumps(one["values"])} for key, one in stats.items()}}


def when(second: int) -> str:
    return f"2023-11-14T22:13:{20 + second:02d}.000Z"


def rtcstats() -> bytes:
    """The same as webrtc-internals' other dump."""
    events: list[Any] = [["create", None, {}, BEGUN_MS - 1000], ["getUserMedia", "1-0", {"audio": True}, 1000]]
    reports = ({one["id"]: one for one in sender(at)} for at in range(SECONDS))
    events += (["getStats", "1-1", report, 1000 if at else 0] for at, report in enumerate(reports))
    return b'RTCStatsDump\n{"fileFormat":3}\n' + "".join(json.dumps(one) + "\n" for one in events).encode()


FORMS = {
    "lines": lines(sender),
    "mapping": "".join(
        json.dumps({"t": at, "stats": {one["id"]: one for one in sender(at)}}) + "\n" for at in range(SECONDS)
    ).encode(),
    "internals": json.dumps({"PeerConnections": {"1-1": internals(sender, stamped=True)}}).encode(),
    "before stamps": json.dumps({"PeerConnections": {"1-1": internals(sender, stamped=False)}}, indent=2).encode(),
    "rtcstats": rtcstats(),
    "packed": gzip.compress(lines(sender)),
}


@pytest.mark.parametrize("form", FORMS)
def test_all_forms_come_to_the_same_rates(tmp_path: Path, form: str) -> None:
    file = tmp_path / "call.json"
    file.write_bytes(FORMS[form])
    run = imported([file])
    flow = run.metrics("outgoing")
    assert run.summary["duration_s"] == SECONDS - 1
    # over IPv6, as the address of the pair in use says
    assert flow["sending_rate_bps"] == pytest.approx(RATE * (1000 + 20 + 48) * 8)
    assert (flow["packets_sent"], flow["bytes_sent"]) == (RATE * SECONDS, RATE * SECONDS * 1068)
    assert (flow["retransmissions"], flow["nacks"], flow["plis"]) == (3, 2, 1)
    assert flow["frames_encoded"] == 30 * (SECONDS - 1)
    # a dump has the time of each report, 0.3 s before it was read
    known = RATE * SECONDS - (30 if form == "internals" else 0)
    assert flow["loss_fraction"] == pytest.approx(5 / known)
    assert flow["round_trip_ms_mean"] == pytest.approx(60)
    series = run.table("series")
    assert np.allclose(series.to_numpy("sending_rate_bps"), RATE * 1068 * 8)
    lost = series.to_numpy("packets_lost")
    assert lost.sum() == 5
    assert lost[LOST - 2 : LOST].sum() == 5
    if form != "internals":
        assert lost[LOST - 1] == 5
    assert run.about["imported"]["begun_ms"] == BEGUN_MS


def test_the_estimate_is_the_decision_and_what_encoders_aim_at_stands_beside(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(lines(sender))
    run = imported([tmp_path / "a.jsonl"])
    decisions = run.table("decisions")
    assert decisions.to_numpy("target_bps").tolist() == [1_000_000, 500_000], "of the pair in use"
    assert decisions.to_numpy("t_s").tolist() == [0, 10]
    noted = run.table("internals")
    values = {
        name: noted.to_numpy("value")[noted.to_numpy("name") == name] for name in set(noted.to_numpy("name").tolist())
    }
    assert set(values["encoder_target"].tolist()) == {900_000}
    assert values["round_trip_ms"][:2].round(6).tolist() == [70, 50]
    assert values["jitter_ms_reported"][0] == pytest.approx(4)


@pytest.mark.parametrize("value", [["P2"], {"P2": 1}, None])
def test_a_member_of_another_shape_is_one_that_is_not_there(tmp_path: Path, value: object) -> None:
    names = ("selectedCandidatePairId", "ssrc", "kind", "localCandidateId", "address")

    def odd(second: int) -> list[dict[str, Any]]:
        return [{key: value if key in names else its for key, its in one.items()} for one in sender(second)]

    (tmp_path / "odd.jsonl").write_bytes(lines(odd))
    try:
        assert imported([tmp_path / "odd.jsonl"]).flows == ["outgoing"]
    except InputError as error:
        assert "odd.jsonl" in str(error)


@pytest.mark.parametrize("count", [10**59, 2**64, -(10**59), 10**400])
def test_a_count_beyond_all_counters_is_absent_from_a_run_that_can_be_read_again(count: int, tmp_path: Path) -> None:
    huge = [{**entry, "retransmittedPacketsSent": count} if entry["id"] == "O" else entry for entry in sender(1)]
    (tmp_path / "a.jsonl").write_bytes(lines(lambda second: huge if second == SECONDS - 1 else sender(second)))
    imported([tmp_path / "a.jsonl"]).save(tmp_path / "out")
    assert tidegate.Run.load(tmp_path / "out").metrics("outgoing").get("retransmissions") in {None, 3}


def test_what_nobody_counted_is_absent_and_not_zero(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(lines(sender))
    run = imported([tmp_path / "a.jsonl"])
    unknown = {
        "receive_rate_bps", "packets_received", "one_way_delay_ms_mean", "queueing_delay_ms_p95", "freezes", "frames_decoded",
        "goodput_bps", "utilisation", "jitter_ms_mean", "frames_rendered",
    }  # fmt: skip
    assert not unknown & run.metrics("outgoing").keys()
    series = run.table("series")
    for name in ("receive_rate_bps", "one_way_delay_ms_mean", "queueing_delay_ms_mean", "goodput_bps"):
        assert np.isnan(series.to_numpy(name)).all(), name
    assert run.flows == ["outgoing"]
    assert "freezes" not in run.tables
    assert not run.summary["links"]
    without = [{key: value for key, value in one.items() if key != "headerBytesSent"} for one in sender(0)]
    text = json.dumps({"time_s": 0, "report": without}) + "\n" + json.dumps({"time_s": 1, "report": sender(1)}) + "\n"
    (tmp_path / "b.jsonl").write_text(text)
    assert imported([tmp_path / "b.jsonl"]).metrics("outgoing")["packets_sent"] == 2 * RATE


def test_both_ends_tell_what_arrived_and_was_seen(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(lines(sender))
    (tmp_path / "b.jsonl").write_bytes(lines(receiver))
    both = imported([tmp_path / "a.jsonl", tmp_path / "b.jsonl"])
    dump = {
        "PeerConnections": {name: internals(report, stamped=True) for name, report in (("x", receiver), ("y", sender))}
    }
    (tmp_path / "dump.json").write_text(json.dumps(dump))
    for run in (both, imported([tmp_path / "dump.json"])):
        flow = run.metrics("outgoing")
        assert (flow["packets_received"], flow["frames_decoded"], flow["frames_dropped"]) == (1995, 570, 4)
        assert (flow["freezes"], flow["freeze_time_s"]) == (1, 0.75)
        assert flow["loss_fraction"] == 5 / 2000
        freezes = run.table("freezes")
        # the far end's reports are half a second behind, by Unix time
        assert freezes.to_numpy("t_s").tolist() == [FREEZE + 0.5]
        assert freezes.to_numpy("length_s").tolist() == [0.75]
    alone = imported([tmp_path / "b.jsonl"]).metrics("incoming")
    assert (alone["packets_received"], "packets_sent" in alone) == (1995, False)


def test_a_folder_of_it_has_a_report_without_empty_headings(tmp_path: Path, cli: Cli) -> None:
    (tmp_path / "a.jsonl").write_bytes(lines(sender))
    told = cli("import", "a.jsonl", "--out", "call")
    assert told.code == 0, told.err
    assert "round trip, mean (ms)" in told.out
    assert "single packets are unknown" in told.err
    again = tidegate.Run.load(tmp_path / "call")
    assert not again.summary["warnings"], "what was assumed is no reason for doubt"
    assert len(again.summary["notes"]) == 1
    assert again.metrics("outgoing") == imported([tmp_path / "a.jsonl"]).metrics("outgoing")
    assert cli("report", "call").code == cli("report", "call", "--out", "s.png").code == 0
    page = (tmp_path / "call" / "report.html").read_text("utf-8")
    for heading in ("Rate", "Round trip", "Packets lost", "Frames encoded"):
        assert f">{heading}<" in page, heading
    for heading in ("One-way delay", "Delay in the pacer", "Queues", "Frame delay", "The network", "Delay"):
        assert f">{heading}<" not in page, heading


WRONG = {
    "no media": (b'{"time_s": 1, "report": []}\n', "found no outbound-rtp or inbound-rtp; expected getStats of a call"),
    "only its type": (
        b'{"PeerConnections": {"1": {"stats": {"A-ssrc": {"startTime": "2026-11-23T12:00:00.000Z", "endTime": '
        b'"2026-11-23T12:00:00.000Z", "statsType": "outbound-rtp", "values": "[]"}}}}}',
        'found no outbound-rtp or inbound-rtp; its objects are "outbound-rtp"; expected getStats of a call',
    ),
    "one": (lines(sender, seconds=1), "found one report; rates need the counters of at least two"),
    "other json": (b'{"a": 1}\n', 'line 1: found {"a": 1}; expected an object with time_s and report'),
    "cut dump": (FORMS["before stamps"][:-40], "not valid JSON: column"),
    "list": (b'{"PeerConnections": []}', "found JSON without PeerConnections"),
    "latin": (b'{"a": "\xe4"}', "byte 7: the text is not UTF-8"),
    "version": (b'RTCStatsDump\n{"fileFormat":4}\n', "line 2: found fileFormat 4; expected 1 to 3"),
    "compressed": (
        b'RTCStatsDump\n{"fileFormat":3}\n["getStats","1",{"O":{"12":3}},5]\n',
        "line 3: the keys are numbers (rtcstats' compression)",
    ),
    "days": (
        b"".join(json.dumps({"time_s": at, "report": sender(0)}).encode() + b"\n" for at in (0, 1e9)),
        "the times lie 11574 days apart; expected at most 7",
    ),
    "deep": (b'{"PeerConnections": ' + b"[" * 100_000, "not valid JSON"),
    "huge": (b'{"time_s": 1e999, "report": []}', "expected an object with time_s and report"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_told_with_its_place(tmp_path: Path, cli: Cli, name: str) -> None:
    data, right = WRONG[name]
    (tmp_path / "x.json").write_bytes(data)
    told = cli("import", "x.json", "--out", "call")
    assert (told.code, told.err.startswith("tidegate: x.json: ")) == (2, True), told.err
    assert right in told.err
    assert not (tmp_path / "call").exists()


def test_lines_that_are_broken_are_left_out_and_told(tmp_path: Path) -> None:
    rows = lines(sender).splitlines()
    rows[3] = rows[3][:100]
    rows[5] = rows[4]
    (tmp_path / "a.jsonl").write_bytes(b"\n".join(rows))
    run = imported([tmp_path / "a.jsonl"])
    assert run.metrics("outgoing")["packets_sent"] == RATE * SECONDS
    assert [remark["says"].partition(": ")[0] for remark in run.summary["warnings"]] == ["a.jsonl"] * 2
    assert not any("a.jsonl" in remark["says"] for remark in run.summary["notes"])
    warnings = " ".join(run.warnings)
    assert "a.jsonl: line 4: not valid JSON: column" in warnings
    assert "a.jsonl: line 6: found a time of 9 s after 9 s; expected a later one" in warnings


def test_files_that_do_not_belong_together(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(lines(sender))
    (tmp_path / "b.jsonl").write_bytes(lines(receiver).replace(b'"ssrc": 77', b'"ssrc": 78'))
    with pytest.raises(
        InputError, match=r"b\.jsonl shares no SSRC with a\.jsonl; expected a recording of the other end"
    ):
        imported([tmp_path / "a.jsonl", tmp_path / "b.jsonl"])
    with pytest.raises(InputError, match=r"a\.jsonl: the file is given twice; expected the file of the other end"):
        imported([tmp_path / "a.jsonl", tmp_path / "a.jsonl"])
    (tmp_path / "c.jsonl").write_bytes(lines(sender))
    with pytest.raises(
        InputError, match=r"c\.jsonl: the file is the same as .*a\.jsonl; expected the file of the other end"
    ):
        imported([tmp_path / "a.jsonl", tmp_path / "c.jsonl"])
    with pytest.raises(InputError, match="getStats has no feedback on packets for gcc"):
        imported([tmp_path / "a.jsonl"], replay="gcc")


def test_a_call_of_chromium_with_the_truth_of_its_link() -> None:
    folder = shared() / "recordings" / "chromium-steps"
    near, far = folder / "stats-sender.jsonl.gz", folder / "stats-receiver.jsonl.gz"
    run = imported([near, far])
    flow = run.metrics("outgoing")
    with gzip.open(near, "rt") as file:
        *_, last = [json.loads(line)["stats"] for line in file]
    # every one of the link's 35 drops, and the browser's own counts
    assert round(flow["loss_fraction"] * (flow["packets_received"] + 35)) == 35
    assert flow["packets_sent"] == sum(one["packetsSent"] for one in last if one["type"] == "outbound-rtp")
    assert flow["freezes"] == 4
    series, decisions = run.table("series"), run.table("decisions")
    at, rate = series.to_numpy("t_s"), series.to_numpy("receive_rate_bps")
    # 2, 0.5 and 2 Mbit/s from 31 and 61 s on, as the rates of the recording's own capture have it
    assert np.nanmax(rate[at < 30]) < 2.02e6
    assert 0.42e6 < np.nanmax(rate[(at > 36) & (at < 58)]) < 0.51e6
    target = decisions.to_numpy("target_bps")[decisions.to_numpy("t_s") > 35]
    assert target[:20].max() < 0.6e6


def test_a_report_says_where_a_row_has_several_freezes(tmp_path: Path) -> None:
    def froze(second: int, times: int) -> list[dict[str, Any]]:
        (inbound,) = receiver(second)
        return [{**inbound, "freezeCount": times * inbound["freezeCount"]}]

    for times, says in ((1, False), (4, True)):
        file = tmp_path / f"{times}.json"
        file.write_bytes(lines(lambda second, times=times: froze(second, times)))
        text = markdown(report.document(imported([file])))
        assert ("1 report counted them, so that a row may have several of them." in text) == says
