"""Calls over sockets: `tidegate live send`, `live receive` and `gap`, over the loopback interface."""

from __future__ import annotations

import hmac
import json
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tidegate import _core
from tidegate.cli import main
from tidegate.errors import InputError
from tidegate.runs import Run, sockets
from tidegate.units import Rate

pytestmark = pytest.mark.skipif(not hasattr(_core, "live_send"), reason="calls over sockets need Linux")


def free_port(address: str = "127.0.0.1") -> int:
    """A port that is free just now."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as one:
        one.bind((address, 0))
        return int(one.getsockname()[1])


def begin(*arguments: object) -> subprocess.Popen[str]:
    """The program in a process of its own."""
    command = [sys.executable, "-m", "tidegate", *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def begin_receiver(port: int, key: Path, out: Path, *more: str, host: str = "127.0.0.1") -> subprocess.Popen[str]:
    """A receiver that is there: it has said so."""
    receiver = begin("live", "receive", "--bind", f"{host}:{port}", "--key", key, "--wait", "60s", "--out", out, *more)
    assert receiver.stderr is not None
    assert "waiting for a call" in receiver.stderr.readline()
    return receiver


def said(program: subprocess.Popen[str]) -> tuple[int, str, str]:
    """Exit code and output of a program."""
    out, err = program.communicate(timeout=60)
    return program.returncode, out, err


def test_a_call_leaves_the_same_run_on_both_sides_and_gap_holds_it_against_its_simulation(
    tmp_path: Path, key: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    port = free_port()
    at = f"127.0.0.1:{port}"
    sent, received = tmp_path / "sent", tmp_path / "received"
    receiver = begin_receiver(port, key, received)
    sender = begin("live", "send", at, "--key", key, "--controller", "gcc", "--duration", "4s", "--out", sent)
    for code, out, err in map(said, (sender, receiver)):
        assert code == 0, err
        assert "minimum round trip" in out
    ours, theirs = Run.load(sent), Run.load(received)
    assert ours.digest == theirs.digest
    assert ours.summary == {**theirs.summary}
    assert ours.scenario.flows[0].media is not None
    assert ours.scenario.flows[0].media.overhead == 28 + 24
    assert ours.scenario == theirs.scenario
    call = ours.metrics()
    assert call["loss_fraction"] == 0.0
    assert call["packets_sent"] > 100
    assert call["frames_rendered"] > 60
    assert {"series", "decisions", "frames"} <= set(ours.tables)
    assert ours.about["live"]["why"] == "completed"
    assert main(["gap", str(sent), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {line["name"] for line in found["lines"]} >= {"median target", "loss_fraction"}
    assert main(["gap", str(received)]) == 0
    assert "simulated" in capsys.readouterr().out


def packets(capture: Path) -> list[bytes]:
    """The packets of a capture file, each from its IP header on."""
    data, at, found = capture.read_bytes(), 0, []
    while at < len(data):
        kind, length = struct.unpack_from("<II", data, at)
        if kind == 6:
            found.append(data[at + 28 : at + 28 + struct.unpack_from("<I", data, at + 20)[0]])
        at += length
    return found


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_captures_hold_what_each_side_saw(tmp_path: Path, key: Path, host: str) -> None:
    try:
        port = free_port(host)
    except OSError as error:
        pytest.skip(f"no {host} here: {error}")
    named = f"[{host}]" if ":" in host else host
    sent, received = tmp_path / "sent", tmp_path / "received"
    receiver = begin_receiver(port, key, received, "--pcap", host=named)
    sender = begin(
        "live",
        "send",
        f"{named}:{port}",
        "--key",
        key,
        "--duration",
        "2s",
        "--record",
        "packets",
        "--out",
        sent,
        "--pcap",
    )
    for code, out, err in map(said, (sender, receiver)):
        assert code == 0, err
        assert "the receiver's clock began" in out
    ours, theirs = packets(sent / "packets-sender.pcapng"), packets(received / "packets-receiver.pcapng")
    # nothing is lost on loopback, but the last words when the other one has gone
    header = 40 if ":" in host else 20
    assert abs(len(ours) - len(theirs)) <= 3
    media = [one for one in ours if one[header + 8] >> 6 == 2]
    assert [one for one in theirs if one[header + 8] >> 6 == 2] != []
    assert sorted(media) == sorted(one for one in theirs if one[header + 8] >> 6 == 2)
    run = Run.load(sent)
    # their sizes are those that the run counts: headers, number and tag included
    table = run.table("packets")
    rtp = [one for one in media if not 192 <= one[header + 9] <= 223]  # RFC 5761 section 4
    sizes = table.to_numpy("size")[table.to_numpy("kind") != "rtcp"].tolist()
    # what was under way at the end has no row
    assert 0 <= len(rtp) - len(sizes) < 0.2 * len(rtp)
    assert sorted(map(len, rtp[: len(sizes)])) == sorted(sizes)
    assert ours[0][header + 8 : header + 12] == b"tdgt"
    assert run.scenario.flows[0].media is not None
    assert run.scenario.flows[0].media.overhead == header + 8 + 24


@pytest.mark.slow  # a late machine sends less, and its pictures come later
def test_real_video_goes_over_a_socket_and_is_judged(tmp_path: Path, key: Path) -> None:
    port = free_port()
    sent, received = tmp_path / "sent", tmp_path / "received"
    receiver = begin_receiver(port, key, received)
    clip = "procedural:size=96x80,codec=intra,rungs=4,vmaf_every=0"
    sender = begin(
        "live", "send", f"127.0.0.1:{port}", "--key", key, "--media", clip, "--duration", "3s", "--out", sent
    )
    for code, _, err in map(said, (sender, receiver)):
        assert code == 0, err
        assert "warning" not in err
    run = Run.load(sent)
    assert run.digest == Run.load(received).digest
    call = run.metrics()
    # all of it arrived: what was seen is what was encoded
    assert call["loss_fraction"] == 0.0
    assert call["picture_psnr_db"] == pytest.approx(call["picture_psnr_encoded_db"], abs=1.5)
    assert 20 < call["picture_psnr_db"] < 60


def test_ctrl_c_ends_both_sides_in_order_with_results(tmp_path: Path, key: Path) -> None:
    port = free_port()
    at = f"127.0.0.1:{port}"
    sent, received = tmp_path / "sent", tmp_path / "received"
    receiver = begin_receiver(port, key, received)
    sender = begin("live", "send", at, "--key", key, "--duration", "60s", "--out", sent)
    assert sender.stderr is not None
    assert "has begun" in sender.stderr.readline()
    time.sleep(1)
    sender.send_signal(signal.SIGINT)
    code, _, err = said(sender)
    assert (code, "stopped" in err) == (130, True), err
    code, _, err = said(receiver)
    assert code == 0, err
    assert "ended the call" in err
    assert Run.load(sent).digest == Run.load(received).digest


def test_a_controller_in_python_can_be_used(tmp_path: Path, key: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "from tidegate import Controller\n\n\nclass Mine(Controller):\n"
        "    def on_limits(self, now_ns, limits):\n        return 500_000\n\n"
        "    def on_report(self, now_ns, report):\n        return None\n"
    )
    done: list[Run] = []
    port = free_port()
    secret = sockets.read_key(key)
    thread = threading.Thread(target=lambda: done.append(sockets.receive(f"127.0.0.1:{port}", secret)), daemon=True)
    thread.start()
    changes = {"duration": "2s", "flows.call.media.controller": f"python:{tmp_path / 'mine.py'}:Mine"}
    sent = sockets.send(sockets.scenario_of(None, changes), f"127.0.0.1:{port}", secret)
    thread.join(20)
    assert done
    assert sent.digest == done[0].digest
    assert sent.metrics()["sending_rate_bps"] == pytest.approx(500e3, rel=0.4)


@pytest.mark.slow  # a late machine sends less, and its pictures come later
def test_the_cap_holds_back_what_exceeds_it(key: Path) -> None:
    # the target is bounded by it, but headers and audio come on top
    port, cap, seconds = free_port(), 100_000, 6
    secret = sockets.read_key(key)
    done: list[Run] = []
    thread = threading.Thread(target=lambda: done.append(sockets.receive(f"127.0.0.1:{port}", secret)), daemon=True)
    thread.start()
    changes = {"duration": f"{seconds}s", "flows.call.media.controller": "fixed:100kbps", "warmup": "0s"}
    sent = sockets.send(sockets.scenario_of(None, changes), f"127.0.0.1:{port}", secret, max_rate=Rate(cap))
    thread.join(30)
    assert sent.about["live"]["own"]["capped"] > 5
    # the rate, and a burst of a quarter of a second
    assert 0.6 * cap < sent.metrics()["receive_rate_bps"] <= cap * (1 + 0.25 / seconds)
    assert sent.metrics()["loss_fraction"] > 0


@pytest.mark.parametrize("controller", ["nada", "sprout", "scream", "gcc-remb"])
def test_schemes_with_a_receiver_half_or_marks_of_ecn_go_over_a_socket(key: Path, controller: str) -> None:
    port = free_port()
    secret = sockets.read_key(key)
    received: list[Run] = []
    thread = threading.Thread(target=lambda: received.append(sockets.receive(f"127.0.0.1:{port}", secret)), daemon=True)
    thread.start()
    changes = {"duration": "2s", "flows.call.media.controller": controller}
    sent = sockets.send(sockets.scenario_of(None, changes), f"127.0.0.1:{port}", secret)
    thread.join(20)
    assert received
    assert sent.digest == received[0].digest
    call = sent.metrics()
    assert (call["loss_fraction"], call["marked"]) == (0.0, 0)
    assert call["packets_received"] > 20
    assert call["feedback_rate_bps"] > 1000


def test_forged_and_replayed_datagrams_are_counted_and_change_nothing(key: Path) -> None:
    port = free_port()
    secret = sockets.read_key(key)
    received: list[Run] = []
    thread = threading.Thread(target=lambda: received.append(sockets.receive(f"127.0.0.1:{port}", secret)), daemon=True)
    thread.start()
    count = 0
    # packets that come before its socket is open are not counted
    end = time.monotonic() + 20
    while f":{port:04X} " not in Path("/proc/net/udp").read_text() and time.monotonic() < end:
        time.sleep(0.01)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as flood:
        for size in (0, 1, 30, 200, 1400, 9000):
            for byte in (b"t", b"\x80", b"\x01"):
                flood.sendto(byte * size, ("127.0.0.1", port))
                count += 1
        time.sleep(0.2)
        sent = sockets.send(sockets.scenario_of(None, {"duration": "2s"}), f"127.0.0.1:{port}", secret)
    thread.join(20)
    ignored = received[0].about["live"]["own"]["ignored"]
    assert sum(ignored.values()) == count
    assert sent.metrics()["loss_fraction"] == 0.0


def of_version(version: int, kind: int, nonce: bytes, body: bytes, key: bytes) -> bytes:
    """A handshake message of another version, made by hand from the description in `crates/live/src/session`."""
    extracted = hmac.digest(b"tidegate live", key, "sha256")
    expanded = hmac.digest(extracted, b"handshake\x01", "sha256")
    message = b"tdgt" + bytes([version, kind]) + nonce + body
    return message + hmac.digest(expanded, message, "sha256")[:16]


def test_a_caller_of_another_version_is_told_and_so_is_this_side(
    tmp_path: Path, key: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    secret, port, nonce = sockets.read_key(key), free_port(), bytes(range(32))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as caller:
        caller.bind(("127.0.0.1", 0))
        caller.settimeout(10)
        hello = of_version(3, 1, nonce, bytes(64), secret)

        def calls() -> None:
            time.sleep(0.3)
            for _ in range(20):
                caller.sendto(hello, ("127.0.0.1", port))
                time.sleep(0.1)

        thread = threading.Thread(target=calls, daemon=True)
        thread.start()
        assert main(["live", "receive", "--bind", f"127.0.0.1:{port}", "--key", str(key), "--wait", "30s"]) == 1
        assert "speaks version 3" in capsys.readouterr().err
        reply = caller.recv(2000)
        thread.join()
    assert len(reply) < len(hello)
    assert reply == of_version(2, 6, nonce, b"\x02", secret)
    # the other way round: what answers is of version 3
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as answerer:
        answerer.bind(("127.0.0.1", 0))
        answerer.settimeout(10)

        def answers() -> None:
            data, who = answerer.recvfrom(2000)
            answerer.sendto(of_version(3, 6, data[6:38], b"\x03", secret), who)

        thread = threading.Thread(target=answers, daemon=True)
        thread.start()
        assert main(["live", "send", f"127.0.0.1:{answerer.getsockname()[1]}", "--key", str(key)]) == 1
        assert "speaks version 3" in capsys.readouterr().err
        thread.join()


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["send", "127.0.0.1:9"], 2, "--key"),
        (["send", "somewhere:5004", "--key", "KEY"], 2, "expected ADDRESS:PORT"),
        (["send", "127.0.0.1", "--key", "KEY"], 2, "expected ADDRESS:PORT"),
        (["send", "::1:5004", "--key", "KEY"], 2, "expected ADDRESS:PORT"),
        (["send", "127.0.0.1:0", "--key", "KEY"], 2, "expected from 1 to 65535"),
        (["send", "127.0.0.1:65536", "--key", "KEY"], 2, "expected from 1 to 65535"),
        (["send", "239.0.0.1:5004", "--key", "KEY"], 2, "one machine"),
        (["send", "0.0.0.0:5004", "--key", "KEY"], 2, "one machine"),
        (["send", "127.0.0.1:5004", "--key", "none.key"], 2, "there is no such file"),
        (["send", "127.0.0.1:5004", "--key", "."], 2, "cannot be read"),
        (["send", "127.0.0.1:5004", "--key", "open.key"], 2, "chmod 600"),
        (["send", "127.0.0.1:5004", "--key", "short.key"], 2, "found 15 bytes"),
        (["send", "127.0.0.1:5004", "--key", "long.key"], 2, "more than 4096"),
        (["send", "127.0.0.1:5004", "--key", "KEY", "--max-rate", "5Gbps"], 2, "from 50kbps to 1Gbps"),
        (["send", "127.0.0.1:5004", "--key", "KEY", "--max-rate", "1bps"], 2, "from 50kbps to 1Gbps"),
        (["send", "127.0.0.1:5004", "--key", "KEY", "--max-rate", "fast"], 2, "--max-rate"),
        (["send", "127.0.0.1:5004", "--key", "KEY", "--duration", "long"], 2, "--duration"),
        (["send", "127.0.0.1:5004", "--key", "KEY", "--controller", "gccc"], 2, "gcc"),
        (["send", "127.0.0.1:5004", "--key", "KEY", "--scenario", "nowhere"], 2, "nowhere"),
        (["send", "127.0.0.1:5004", "--key", "KEY", "--scenario", "group-t2"], 2, "no media flow"),
        (["send", "127.0.0.1:5004", "--key", "KEY", "--set", "flows.call.media.marks=false"], 2, "marks"),
        (
            ["send", "127.0.0.1:5004", "--key", "KEY", "--pcap"],
            2,
            "--pcap: no folder is given for the file; add --out DIR",
        ),
        (["receive", "--bind", "127.0.0.1:5004", "--key", "KEY", "--pcap"], 2, "--pcap: no folder is given"),
        (["send", "127.0.0.1:5004", "--key", "KEY", "--media", "nothing"], 2, "nothing"),
        (
            ["send", "127.0.0.1:5004", "--key", "KEY", "--media", "bikes", "--record", "series"],
            2,
            "--media needs packets",
        ),
        (["send", "127.0.0.1:5004", "--key", "KEY", "--bind", "[::1]:5004"], 2, "same family"),
        (["send", "127.0.0.1:5004", "--key", "KEY", "--bind", "192.0.2.1:5004"], 2, "address of this machine"),
        (["receive", "--bind", "192.0.2.1:5004", "--key", "KEY"], 2, "address of this machine"),
        (["receive", "--bind", "127.0.0.1:TAKEN", "--key", "KEY"], 2, "in use"),
        (["receive", "--bind", "127.0.0.1:5004", "--key", "KEY", "--wait", "never"], 2, "--wait"),
        (["receive", "--bind", "127.0.0.1:FREE", "--key", "KEY", "--wait", "200ms"], 1, "no call arrived"),
        (["send", "127.0.0.1:FREE", "--key", "KEY"], 1, "no program listens there"),
    ],
)
def test_wrong_uses_are_told_in_a_line(
    tmp_path: Path,
    key: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    code: int,
    says: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, size, mode in (("open.key", 32, 0o644), ("short.key", 15, 0o600), ("long.key", 4097, 0o600)):
        Path(name).write_bytes(bytes(size))
        Path(name).chmod(mode)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 0))
        replaced = {"KEY": str(key), "TAKEN": str(taken.getsockname()[1]), "FREE": str(free_port())}
        for word, value in replaced.items():
            arguments = [one.replace(word, value) for one in arguments]
        assert main(["live", *arguments]) == code
    err = capsys.readouterr().err
    assert says in err
    assert err.startswith("tidegate: ")
    assert "Traceback" not in err
    assert not (tmp_path / "out").exists()


def test_a_folder_that_is_no_call_over_a_socket_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gap", str(tmp_path)]) == 2
    assert main(["run", "home-broadband", "--set", "duration=1s", "--out", str(tmp_path / "run")]) == 0
    capsys.readouterr()
    assert main(["gap", str(tmp_path / "run")]) == 2
    assert "not a call over a socket" in capsys.readouterr().err


def test_keys_come_from_files_that_nobody_else_reads(key: Path) -> None:
    assert sockets.read_key(key) == bytes(range(32))
    key.chmod(0o640)
    with pytest.raises(InputError, match="0640"):
        sockets.read_key(key)


def test_addresses() -> None:
    assert sockets.address("127.0.0.1:1") == ("127.0.0.1", 1)
    assert sockets.address("[fe80::1]:65535") == ("fe80::1", 65535)
    made = sockets.over_socket(sockets.scenario_of(None), "[::1]:5004")
    assert made.flows[0].media is not None
    assert made.flows[0].media.overhead == 48 + 24
