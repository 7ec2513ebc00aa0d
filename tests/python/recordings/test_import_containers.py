"""Containers of getStats: whichever a call is kept in, it comes to the same run."""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support import Cli, shared
from tidegate import InputError, Run
from tidegate.recordings import imported

BEGUN_MS = 1_700_000_000_000
SECONDS, RATE = 20, 100
LOST_FROM, LOST = 12, 5
"""The second from which on so many packets are lost."""

Objects = dict[str, dict[str, Any]]


def stamp(second: int) -> int:
    return BEGUN_MS + 1000 * second


def report(second: int) -> Objects:
    """A sender of 100 packets a second, each of 1000 bytes behind 20 of header, which receives half as many."""
    sent, came = RATE * (second + 1), RATE // 2 * (second + 1)
    lost = LOST if second >= LOST_FROM else 0
    objects: Objects = {
        "CF": {"type": "certificate", "fingerprint": "00"},
        "O": {
            "type": "outbound-rtp", "kind": "video", "ssrc": 77, "packetsSent": sent, "bytesSent": 1000 * sent,
            "headerBytesSent": 20 * sent, "pliCount": 1, "frameHeight": 360 if second < LOST_FROM else 180,
        },
        "I": {
            "type": "inbound-rtp", "kind": "video", "ssrc": 78, "packetsReceived": came - lost, "packetsLost": lost,
            "bytesReceived": 1000 * came, "headerBytesReceived": 20 * came, "jitter": 0.004,
        },
        "P": {"type": "candidate-pair", "nominated": True, "availableOutgoingBitrate": 900_000 + second // 5},
    }  # fmt: skip
    return {key: {"id": key, "timestamp": stamp(second), **entry} for key, entry in objects.items()}


REPORTS = [report(second) for second in range(SECONDS)]


def delta(before: Objects, now: Objects) -> dict[str, Any]:
    """What rtcstats.js keeps of a report: no ids, what changed, and the latest stamp once."""
    new: dict[str, Any] = copy.deepcopy(now)
    for key, entry in new.items():
        del entry["id"]
        for name in [name for name in entry if before.get(key, {}).get(name) == entry[name]]:
            del entry[name]
        if entry.get("timestamp") == stamp_of(now):
            entry["timestamp"] = 0
    return {**new, "timestamp": stamp_of(now)}


def stamp_of(objects: Objects) -> int:
    return max(int(entry["timestamp"]) for entry in objects.values())


def rows(values: list[Any]) -> bytes:
    return "".join(json.dumps(value) + "\n" for value in values).encode()


DELTAS = [delta(REPORTS[second - 1] if second else {}, now) for second, now in enumerate(REPORTS)]
CLIENT: list[Any] = ["connectionInfo", None, {"userAgent": "x"}, BEGUN_MS - 5]
OLD: list[Any] = [CLIENT, *(["getstats", "PC_0", now, stamp(second)] for second, now in enumerate(DELTAS))]
META = {"path": "/", "time": BEGUN_MS, "fileFormat": 2}
TIMED: list[dict[str, Any]] = [
    {"time_s": stamp(second) / 1000, "report": list(now.values())} for second, now in enumerate(REPORTS)
]
NEW: list[Any] = [["create", None, {}, BEGUN_MS - 1000]] + [
    ["getStats", "1", {key: entry for key, entry in now.items() if key != "timestamp"}, 1000] for now in DELTAS
]
HEAD = b'RTCStatsDump\n{"fileFormat":3}\n'


def sparse(now: dict[str, Any]) -> dict[str, Any]:
    """A report of version 3, which leaves out objects that did not change."""
    return {key: entry for key, entry in now.items() if isinstance(entry, dict) and entry.keys() - {"timestamp"}}


CONTAINERS = {
    "lines": rows(TIMED),
    "lines after a broken one": b'{"time_s": 1, "rep\n' + rows(TIMED),
    "a list": json.dumps(TIMED).encode(),
    "a list, indented": json.dumps(TIMED, indent=2).encode(),
    "a byte-order mark": b"\xef\xbb\xbf" + json.dumps(TIMED).encode(),
    "an empty line first": b"\n\n" + json.dumps(TIMED).encode(),
    "a list of raw reports": json.dumps([list(now.values()) for now in REPORTS]).encode(),
    "a list of maps": json.dumps(REPORTS, indent=1).encode(),
    "a list of pairs": json.dumps([list(now.items()) for now in REPORTS]).encode(),
    "a list of all objects": json.dumps([entry for now in REPORTS for entry in now.values()]).encode(),
    "raw reports, a line each": rows([list(now.values()) for now in REPORTS]),
    "maps, a line each": rows(list(REPORTS)),
    "pairs, a line each": rows(
        [{"t": stamp(second) / 1000, "stats": list(now.items())} for second, now in enumerate(REPORTS)]
    ),
    "stamps beside reports": rows([{"timestamp": stamp(second), "stats": now} for second, now in enumerate(REPORTS)]),
    "dates beside reports": rows(
        [{"timestamp": f"2023-11-14T22:13:{20 + second:02d}.000Z", "stats": now} for second, now in enumerate(REPORTS)]
    ),
    "rtcstats, old": rows(OLD),
    "rtcstats, old, numbered": rows([[*event, number] for number, event in enumerate(OLD)]),
    "rtcstats, old, whole": rows([["getStats", "PC_0", now, stamp(second)] for second, now in enumerate(REPORTS)]),
    "rtcstats, a list": json.dumps(OLD, indent=1).encode(),
    "rtcstats, 2": rows([META, *OLD]),
    "rtcstats, 1, with the first line": HEAD.replace(b"3", b"1") + rows(OLD),
    "rtcstats, 3": HEAD + rows(NEW),
    "rtcstats, 3, sparse": HEAD + rows([[*event[:2], sparse(event[2]), event[3]] for event in NEW]),
}


def call(folder: Path, data: bytes) -> Run:
    file = folder / "call.dat"
    file.write_bytes(data)
    return imported([file])


@pytest.mark.parametrize("container", CONTAINERS)
def test_a_container_changes_nothing(tmp_path: Path, container: str) -> None:
    run = call(tmp_path, CONTAINERS[container])
    out, came = run.metrics("outgoing"), run.metrics("incoming")
    assert (out["packets_sent"], out["bytes_sent"], out["plis"]) == (2000, 2000 * 1048, 1)
    assert out["sending_rate_bps"] == pytest.approx(RATE * 1048 * 8)
    assert (came["packets_received"], came["loss_fraction"]) == (995, 5 / 1000)
    # what is unchanged for seconds and then is another is no slope
    lost = run.table("series").to_numpy("packets_lost")[-SECONDS + 1 :]
    assert np.flatnonzero(lost).tolist() == [LOST_FROM - 1]
    heights = run.table("internals").to_numpy("value")[run.table("internals").to_numpy("name") == "frame_height"]
    assert np.flatnonzero(np.diff(heights)).tolist() == [LOST_FROM - 1]
    assert run.about["imported"]["begun_ms"] == BEGUN_MS
    assert run.summary["digest"] == call(tmp_path, CONTAINERS["a list of raw reports"]).summary["digest"]


def test_an_object_that_went_is_no_longer_counted(tmp_path: Path) -> None:
    events = copy.deepcopy(NEW)
    events[11][2]["O"] = None
    for event in events[12:]:
        event[2].pop("O", None)
    run = call(tmp_path, HEAD + rows(events))
    assert run.metrics("outgoing")["packets_sent"] == 10 * RATE
    sent = run.table("series").to_numpy("packets_sent")
    assert np.nansum(sent) == 9 * RATE


OLD_NAMES = {"O": "ssrc_77_send", "I": "ssrc_78_recv", "P": "Conn-audio-1-0", "B": "bweforvideo"}


def old_report(second: int) -> Objects:
    """What getStats with a callback says of the same call: texts, and headers in the bytes."""
    sent, came = RATE * (second + 1), RATE // 2 * (second + 1)
    lost = LOST if second >= LOST_FROM else 0
    height = 360 if second < LOST_FROM else 180
    objects: Objects = {
        OLD_NAMES["O"]: {
            "type": "ssrc", "ssrc": "77", "mediaType": "video", "packetsSent": str(sent), "bytesSent": str(1020 * sent),
            "packetsLost": str(lost), "googRtt": "50" if second else "-1", "googPlisReceived": "1",
            "googFrameHeightSent": str(height),
        },
        OLD_NAMES["I"]: {
            "type": "ssrc", "ssrc": "78", "mediaType": "video", "packetsReceived": str(came - lost),
            "packetsLost": str(lost), "bytesReceived": str(1020 * came), "googJitterReceived": "4",
        },
        OLD_NAMES["B"]: {"type": "VideoBwe", "googAvailableSendBandwidth": str(900_000 + second // 5)},
        "Conn-audio-1-1": {"type": "googCandidatePair", "googActiveConnection": "false", "googLocalAddress": "[::1]:9"},
        OLD_NAMES["P"]: {
            "type": "googCandidatePair", "googActiveConnection": "true", "googLocalAddress": "192.0.2.1:9", "googRtt": "51",
        },
    }  # fmt: skip
    return {key: {"id": key, "timestamp": stamp(second), **entry} for key, entry in objects.items()}


OLD_REPORTS = [old_report(second) for second in range(SECONDS)]


def old_dump(*, typed: bool) -> bytes:
    """The same as a dump of webrtc-internals before Chrome 117."""
    stats: dict[str, Any] = {}
    for second, now in enumerate(OLD_REPORTS):
        for key, entry in now.items():
            for name in entry.keys() - {"id", "type", "timestamp"}:
                when = f"2023-11-14T22:13:{20 + second:02d}.000Z"
                made = stats.setdefault(f"{key}-{name}", {"startTime": when, "values": []})
                made["endTime"] = when
                made["values"].append(entry[name])
                if typed:
                    made["statsType"] = entry["type"]
    series = {key: {**entry, "values": json.dumps(entry["values"])} for key, entry in stats.items()}
    return json.dumps({"getUserMedia": [], "PeerConnections": {"7-1": {"stats": series}}}).encode()


WITH_CALLBACK = {
    "lines": rows([{"time_s": second, "report": list(now.values())} for second, now in enumerate(OLD_REPORTS)]),
    "rtcstats, old": rows(
        [
            ["getstats", "PC_0", delta(OLD_REPORTS[second - 1] if second else {}, now), stamp(second)]
            for second, now in enumerate(OLD_REPORTS)
        ]
    ),
    "internals": old_dump(typed=True),
    "internals without types": old_dump(typed=False),
}


@pytest.mark.parametrize("container", WITH_CALLBACK)
def test_getstats_with_a_callback_is_read_in_todays_terms(tmp_path: Path, container: str) -> None:
    run = call(tmp_path, WITH_CALLBACK[container])
    out, came = run.metrics("outgoing"), run.metrics("incoming")
    # headers are in the bytes, and the pair in use has IPv4
    assert (out["packets_sent"], out["bytes_sent"], out["plis"]) == (2000, 2000 * 1048, 1)
    assert out["sending_rate_bps"] == pytest.approx(RATE * 1048 * 8)
    assert out["loss_fraction"] == pytest.approx(LOST / 2000)
    assert out["round_trip_ms_mean"] == pytest.approx(50), "without what was not known"
    assert (came["packets_received"], came["loss_fraction"]) == (995, 5 / 1000)
    assert run.table("decisions").to_numpy("target_bps").tolist() == [900_000, 900_001, 900_002, 900_003]
    names, values = (run.table("internals").to_numpy(name) for name in ("name", "value"))
    assert set(values[names == "round_trip_ms_ice"].round(6).tolist()) == {51}
    assert set(values[names == "jitter_ms"].round(6).tolist()) == {4}
    assert values[names == "frame_height"].tolist() == [360] * LOST_FROM + [180] * (SECONDS - LOST_FROM)
    assert not any("headers were not counted" in warning for warning in run.warnings)


def test_names_of_types_before_the_standard(tmp_path: Path) -> None:
    old = {"outbound-rtp": "outboundrtp", "inbound-rtp": "inboundrtp", "candidate-pair": "candidatepair"}
    reports = copy.deepcopy(TIMED)
    for second, row in enumerate(reports):
        for entry in row["report"]:
            entry["type"] = old.get(entry["type"], entry["type"])
        # what the far end reports, until 2018
        far = {"id": "R", "type": "inboundrtp", "isRemote": True, "ssrc": 77, "packetsLost": 0, "roundTripTime": 0.05}
        row["report"].append({**far, "timestamp": stamp(second)})
    run = call(tmp_path, rows(reports))
    assert run.metrics("incoming")["packets_received"] == 995
    assert run.metrics("outgoing")["round_trip_ms_mean"] == pytest.approx(50)


WRONG = {
    "milliseconds": (
        rows([{"time_s": stamp(second) - BEGUN_MS, "report": now} for second, now in enumerate(REPORTS)]),
        "the times of the reports go over 19000 s and the stamps in them over 19 s; expected times in seconds",
    ),
    "no media": (
        rows([{"time_s": second, "report": [{"type": "codec", "id": "C"}]} for second in range(3)]),
        'found no outbound-rtp or inbound-rtp; its objects are "codec"; expected getStats of a call with media',
    ),
    "old, without streams": (
        rows([{"time_s": 1, "report": [{"type": "googCandidatePair", "id": "Conn-a"}, {"type": "VideoBwe", "id": "b"}]}]),
        'its objects are "VideoBwe", "googCandidatePair"; expected getStats of a call with media',
    ),
    "one": (json.dumps(list(REPORTS[0].items())).encode(), "found one report; rates need the counters of at least two"),
    "members as numbers": (
        rows([["getstats", "P", {"O": {"12": 3}}, 5]]),
        "line 1: the keys are numbers (rtcstats' compression); expected names",
    ),
    "methods as numbers": (
        HEAD + rows([[17, "P", {"O": {"packetsSent": 3}}, 5]]),
        "line 3: the methods are numbers (rtcstats' compression); expected names",
    ),
    "maps that were not unfolded": (
        rows([{"time_s": second, "report": {}} for second in range(3)]),
        "(all reports are empty: JSON.stringify makes {} of a map; expected [...report] of each)",
    ),
    "empty list": (b"[]", "found no outbound-rtp or inbound-rtp"),
    "list of numbers": (b"[1, 2]", "entry 1: found 1; expected an object with time_s and report, or a report"),
    "list, cut": (json.dumps(TIMED).encode()[:-40], "not valid JSON: column"),
    "event without a time": (rows([CLIENT, ["getstats", "P", REPORTS[0], "x"]]), "line 2: found {"),
    "of a server": (rows([{"statsSessionId": "x", "type": "identity"}] * 2), "found no outbound-rtp or inbound-rtp"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_told_with_its_place(tmp_path: Path, cli: Cli, name: str) -> None:
    data, right = WRONG[name]
    (tmp_path / "x.json").write_bytes(data)
    told = cli("import", "x.json", "--out", "call")
    assert (told.code, told.err.startswith("tidegate: x.json: ")) == (2, True), told.err
    assert right in told.err
    assert not (tmp_path / "call").exists()


@pytest.mark.parametrize("data", [b"\n\nhello\n", b"hello\n", b"time,rate\n1,2\n", "\n\näöü\n".encode() * 200])
def test_text_is_told_what_can_be_read(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "x.txt").write_bytes(data)
    with pytest.raises(InputError, match="found text that is no JSON") as error:
        imported([tmp_path / "x.txt"])
    for kind in ("RTC event log (format 2)", "pcap, pcapng", "rtpdump", ".mjr", "webrtc-internals", "rtcstats", "JSON"):
        assert kind in str(error.value), kind


def test_broken_events_are_left_out_and_told(tmp_path: Path) -> None:
    lines = rows(OLD).splitlines()
    lines[4] = lines[4][:60]
    # one that came before the one before it
    lines[7] = json.dumps([*OLD[7][:3], BEGUN_MS]).encode()
    run = call(tmp_path, b"\n".join(lines))
    assert run.metrics("outgoing")["packets_sent"] == 2000
    warnings = " ".join(run.warnings)
    assert "line 5: not valid JSON: column" in warnings
    assert "line 8: found a time of 5.000 s before the one before; expected a later one" in warnings


def test_three_containers_of_one_call_of_firefox() -> None:
    folder = shared() / "cases" / "getstats"
    runs = [imported([file]) for file in sorted(folder.iterdir())]
    assert len({run.summary["digest"] for run in runs}) == 1
    assert runs[0].metrics("outgoing")["packets_sent"] == 22500
    assert runs[0].metrics("incoming")["packets_received"] == 15145


def counted(times: Sequence[float], values: Sequence[int], unit: float = 1e3) -> str:
    """Reports with stamps of Unix time in a unit, whose sender has counted so many packets of 1000 bytes."""
    return "\n".join(
        json.dumps([
            {
                "id": "O", "type": "outbound-rtp", "ssrc": 7, "timestamp": round((1.7e9 + time) * unit),
                "packetsSent": value, "bytesSent": 1000 * value, "headerBytesSent": 0,
            }
        ])
        for time, value in zip(times, values, strict=True)
    )  # fmt: skip


def test_counters_that_begin_anew_are_added_up(tmp_path: Path) -> None:
    (tmp_path / "anew.jsonl").write_text(counted(range(7), [0, 100, 200, 300, 90, 190, 290]))
    run = imported([tmp_path / "anew.jsonl"])
    metrics = run.metrics("outgoing")
    assert metrics["packets_sent"] == 590
    assert metrics["sending_rate_bps"] == pytest.approx(590 * 1028 * 8 / 6)
    assert "the counters of 1 stream began anew and are added up" in str(run.summary["notes"])


@pytest.mark.parametrize("unit", [1.0, 1e3, 1e6])
def test_stamps_are_in_units_of_their_size(unit: float, tmp_path: Path) -> None:
    """libwebrtc's own JSON has microseconds, others' seconds."""
    (tmp_path / "units.jsonl").write_text(counted(range(5), [0, 100, 200, 300, 400], unit))
    run = imported([tmp_path / "units.jsonl"])
    assert run.summary["duration_s"] == pytest.approx(4)
    assert run.metrics("outgoing")["sending_rate_bps"] == pytest.approx(100 * 1028 * 8)
    assert run.about["imported"]["begun_ms"] == pytest.approx(1.7e12, rel=0, abs=1)
