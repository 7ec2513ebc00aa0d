"""A call of which packets and getStats were recorded, as one run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import tidegate
from support import Cli, shared
from support import event_logs as log
from tidegate import InputError
from tidegate.recordings import imported

SECONDS, FIRST_MS, UTC_MS = 20, 1000, 1_700_000_000_000
SSRC, RETRANSMISSIONS = 0x12345678, 0x12345679


def packets(second: int) -> int:
    """Packets of a second: their number differs from second to second, so that clocks can be told."""
    return 30 + 10 * (second % 3) + second


def times(first_ms: int) -> list[int]:
    return [
        first_ms + 1000 * second + 1000 * number // packets(second)
        for second in range(SECONDS)
        for number in range(packets(second))
    ]


def logs(folder: Path, ssrc: int = SSRC) -> list[Path]:
    """Both ends' logs: a packet takes 30 ms."""
    for name, delay, outgoing in (("a.log", 0, True), ("b.log", 30, False)):
        rows = [
            log.Rtp(at + delay, number, number, ssrc=ssrc, timestamp=90 * at % 2**32, marker=True)
            for number, at in enumerate(times(FIRST_MS))
        ]
        head = log.begin(FIRST_MS, UTC_MS) + log.streams(ssrc, RETRANSMISSIONS)
        (folder / name).write_bytes(head + log.rtp(rows, outgoing=outgoing))
    return [folder / "a.log", folder / "b.log"]


def stats(folder: Path, *, sender: bool = True, later_s: float = 0.0, ssrc: int = SSRC, stamped: bool = True) -> Path:
    """getStats of an end, a report a second; its clock may be another one."""
    lines, count = [], 0
    for second in range(SECONDS):
        stamp = UTC_MS + 1000 * second + 1000 * later_s
        side: dict[str, Any] = {"id": "S", "kind": "video", "ssrc": ssrc}
        if sender:
            side |= {"type": "outbound-rtp", "packetsSent": count, "bytesSent": 1000 * count, "targetBitrate": 400_000}
            side |= {"framesEncoded": 30 * second}
        else:
            side |= {"type": "inbound-rtp", "packetsReceived": count, "packetsLost": 0, "bytesReceived": 1000 * count}
            side |= {"freezeCount": int(second >= 12), "totalFreezesDuration": 0.8 * (second >= 12)}
        lines.append({"time_s": stamp / 1000, "report": [{**side, **({"timestamp": stamp} if stamped else {})}]})
        count += packets(second)
    file = folder / f"{'sender' if sender else 'receiver'}.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return file


def test_packets_have_the_rates_and_getstats_what_was_shown(tmp_path: Path) -> None:
    both = logs(tmp_path)
    alone = imported(both)
    run = imported([*both, stats(tmp_path), stats(tmp_path, sender=False)])
    mine, flow = alone.metrics("outgoing"), run.metrics("outgoing")
    assert {name: flow[name] for name in mine} == mine, "of each packet"
    assert (flow["frames_encoded"], flow["freezes"], flow["freeze_time_s"]) == (30 * (SECONDS - 1), 1, 0.8)
    assert run.table("packets").to_numpy("sent_s").tolist() == alone.table("packets").to_numpy("sent_s").tolist()
    freezes = run.table("freezes")
    assert freezes.to_numpy("t_s").tolist() == pytest.approx([12], abs=0.06)
    assert freezes.to_numpy("flow").tolist() == ["outgoing"]
    assert "encoder_target" in run.table("internals").to_numpy("name").tolist()
    assert run.table("decisions").to_numpy("target_bps").tolist() == [400_000]
    assert run.summary["digest"] != alone.summary["digest"]
    assert [file["format"] for file in run.about["imported"]["files"]] == ["event log"] * 2 + ["getStats"] * 2
    assert run.summary["warnings"] == alone.summary["warnings"]
    agreement = run.summary["notes"][-1]["says"]
    assert agreement.startswith("what was shown is from sender.jsonl, by Unix time and ")
    assert float(agreement.rpartition(" differ by ")[2].partition("%")[0]) < 5
    run.save(tmp_path / "out")
    page = tidegate.report.html(tidegate.Run.load(tmp_path / "out"))
    for words in ("the picture stood still once, 0.80 s in all", "of the complete video frames came within"):
        assert words in page


def test_getstats_of_the_far_end_alone_is_found_to_be_that(tmp_path: Path) -> None:
    run = imported([*logs(tmp_path), stats(tmp_path, sender=False)])
    assert run.flows == ["outgoing"]
    assert run.metrics("outgoing")["freezes"] == 1
    assert run.table("freezes").to_numpy("flow").tolist() == ["outgoing"]


def test_packets_may_be_given_as_the_far_end(tmp_path: Path) -> None:
    near, far = logs(tmp_path)
    run = imported([stats(tmp_path)], far=[near, far])
    assert run.summary["flows"] == imported([near, far, stats(tmp_path)]).summary["flows"]


def test_a_clock_that_is_off_is_brought_to_the_packets(tmp_path: Path) -> None:
    run = imported([*logs(tmp_path), stats(tmp_path, sender=False, later_s=1.5)])
    assert run.table("freezes").to_numpy("t_s").tolist() == pytest.approx([12], abs=0.11)
    assert "by Unix time and -1." in run.summary["notes"][-1]["says"]


def test_what_does_not_belong_together_is_refused(tmp_path: Path, cli: Cli) -> None:
    both = logs(tmp_path)
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"ssrc": 0x9ABCDEF0}, r"sender\.jsonl shares no SSRC with a\.log; expected recordings of one call"),
        ({"later_s": 3600}, r"one begins 3600\.\d s after the other; expected recordings of one time"),
        ({"later_s": 60 - UTC_MS / 1000, "stamped": False}, r"sender\.jsonl has no Unix time, by which it could be"),
    ]
    for changes, right in wrong:
        with pytest.raises(InputError, match=right):
            imported([*both, stats(tmp_path, **changes)])
    assert imported([*both, stats(tmp_path, stamped=False)]).metrics("outgoing")["frames_encoded"] == 570
    ending = cli("import", "a.log", "sender.jsonl", "--out", "out", "--replay", "gcc")
    assert ending.code == 2
    assert not (tmp_path / "out").exists()


def test_a_call_of_chromium_of_which_all_was_recorded() -> None:
    folder = shared() / "recordings" / "chromium-steps"
    near = [folder / "link.up.in.pcap.gz", folder / "link.down.out.pcap.gz", folder / "stats-receiver.jsonl.gz"]
    far = [folder / "link.up.out.pcap.gz", folder / "link.down.in.pcap.gz"]
    run = imported(near, far=far)
    flow = run.metrics("outgoing")
    assert (flow["freezes"], flow["frames_decoded"]) == (4, 2315)
    agreement = run.summary["notes"][-1]["says"]
    assert float(agreement.rpartition(" differ by ")[2].partition("%")[0]) < 2
    # the link becomes slow at 31 s: frames are late, and the picture stands still
    assert 31 < run.table("freezes").to_numpy("t_s").min() < 36
