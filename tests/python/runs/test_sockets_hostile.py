"""Calls over sockets beside neighbours: floods from strangers and under the peer's address, and a peer that is gone.

All of it goes over the loopback interface, and lasts seconds.
"""

from __future__ import annotations

import json
import random
import re
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

from support import environment
from tidegate import _core
from tidegate.runs import Run

pytestmark = pytest.mark.skipif(not hasattr(_core, "live_send"), reason="calls over sockets need Linux")

FLOOD = 20_000
"""Datagrams of a flood, at both ends of a call together."""
MAGIC = b"tdgt"


def begin(*arguments: object) -> subprocess.Popen[str]:
    """The program in a process of its own, with its reports in English lines."""
    command = [sys.executable, "-m", "tidegate", "live", *map(str, arguments)]
    return subprocess.Popen(command, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def begin_receiver(key: Path, out: Path, wait: str = "60s") -> tuple[subprocess.Popen[str], int]:
    """A receiver that waits, and its port."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    receiver = begin("receive", "--bind", f"127.0.0.1:{port}", "--key", key, "--wait", wait, "--out", out)
    wait_for(receiver, "waiting for a call")
    return receiver, port


def wait_for(program: subprocess.Popen[str], text: str) -> None:
    """Reads the errors of a program up to a line with a text."""
    assert program.stderr is not None
    line = program.stderr.readline()
    assert text in line, line + program.stderr.read()


def resident(program: subprocess.Popen[str]) -> int:
    """Bytes of memory that a program has."""
    status = Path(f"/proc/{program.pid}/status").read_text()
    found = re.search(r"VmRSS:\s+(\d+) kB", status)
    assert found is not None
    return int(found[1]) * 1024


def dropped(port: int) -> int:
    """Datagrams that the kernel dropped because the buffer of a socket was full."""
    lines = Path("/proc/net/udp").read_text().splitlines()
    return sum(int(line.split()[-1]) for line in lines if f":{port:04X} " in line.split("rem_address")[0][:30])


class Relay:
    """Stands between the two sides of a call, so that it can send to each under the address of the other one.

    Attributes:
        seen: Genuine datagrams by the socket that sends them on, the first ones of each kind: handshake or sealed.
        bytes_to: Bytes of handshake messages that passed to the caller and to the answerer.
    """

    def __init__(self, answerer: int) -> None:
        self.front, self.back = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
        self.front.bind(("127.0.0.1", 0))
        self.back.connect(("127.0.0.1", answerer))
        self.port = int(self.front.getsockname()[1])
        self.caller: tuple[str, int] | None = None
        self.seen: dict[tuple[bool, bool], list[bytes]] = {
            (down, handshake): [] for down in (True, False) for handshake in (True, False)
        }
        self.passed: Counter[bool] = Counter()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._over.is_set():
            for ready in select.select([self.front, self.back], [], [], 0.1)[0]:
                try:
                    data, source = ready.recvfrom(65_535)
                except ConnectionRefusedError:
                    continue
                down = ready is self.front
                if down:
                    self.caller = source
                self.passed[down] += 1
                kept = self.seen[down, data.startswith(MAGIC)]
                if len(kept) < 500:
                    kept.append(data)
                self.send(data, down=down)

    def send(self, data: bytes, *, down: bool) -> None:
        """Sends to the answerer (down) or to the caller, under the address of the other one."""
        try:
            if down:
                self.back.send(data)
            elif self.caller is not None:
                self.front.sendto(data, self.caller)
        except ConnectionRefusedError:
            pass

    def close(self) -> None:
        """Ends the thread."""
        self._over.set()
        self._thread.join(5)
        self.front.close()
        self.back.close()


def noise(luck: random.Random, length: int) -> bytes:
    """Bytes that no message begins with."""
    return b"\xff" + luck.randbytes(length - 1)


def hostile(relay: Relay, luck: random.Random, *, down: bool) -> list[tuple[str, bytes]]:
    """A datagram of each of seven kinds, with the reason for which it is ignored."""
    sealed, handshake = relay.seen[down, False], [data for data in relay.seen[down, True] if len(data) < 120]
    spoofed = bytearray(luck.choice(sealed))
    # a number of the future, so that it is none that has come before, and another bit
    spoofed[-24:-16] = (1 << 41 | luck.getrandbits(40)).to_bytes(8, "big")
    spoofed[luck.randrange(len(spoofed) - 24)] ^= 1 << luck.randrange(8)
    if spoofed.startswith(MAGIC):
        spoofed[0] ^= 0xFF
    rtp = b"\x80\x60" + luck.randbytes(2 + 4) + luck.randbytes(4) + luck.randbytes(1188)
    rtcp = bytes([0x80 | luck.randrange(32), luck.randrange(200, 208)]) + luck.randbytes(2)
    return [
        ("forged", noise(luck, luck.randrange(30, 1400))),  # anything
        ("forged", rtp),  # a flood of SSRCs
        ("forged", bytes(spoofed)),  # feedback or media of the peer, changed
        ("malformed", rtcp * luck.randrange(1, 6)),  # RTCP that is cut off
        ("replayed", luck.choice(sealed)),
        ("oversized", b"\x80" + luck.randbytes(1999)),
        ("malformed", luck.choice(handshake)),  # the handshake again
    ]


def test_a_flood_at_both_ends_of_a_call_is_counted_and_changes_nothing(tmp_path: Path, key: Path) -> None:
    sent, received = tmp_path / "sent", tmp_path / "received"
    receiver, port = begin_receiver(key, received)
    relay = Relay(port)
    luck = random.Random(7)
    arguments = ("--key", key, "--controller", "fixed:300kbps", "--duration", "10s", "--out", sent)
    sender = begin("send", f"127.0.0.1:{relay.port}", *arguments)
    counts: dict[bool, Counter[str]] = {True: Counter(), False: Counter()}
    try:
        wait_for(sender, "has begun")
        time.sleep(1.0)
        assert relay.caller is not None
        before = [resident(program) for program in (sender, receiver)]
        began = time.monotonic()
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
            for number in range(FLOOD // 14):
                for down in (True, False):
                    for reason, data in hostile(relay, luck, down=down):
                        relay.send(data, down=down)
                        counts[down][reason] += 1
                # the kernel drops what is from another address
                stranger.sendto(noise(luck, 100), ("127.0.0.1", port))
                # within 5 s, in the middle of the call
                time.sleep(max(0.0, began + 5.0 * number / (FLOOD // 14) - time.monotonic()))
        # the offer again, as if the caller had not received the answer: it gets the same one, and no more
        offers = [data for data in relay.seen[True, True] if len(data) > 120]
        answers = len(relay.seen[False, True])
        for _ in range(50):
            relay.send(offers[-1], down=True)
        time.sleep(0.5)
        again = relay.seen[False, True][answers:]
        # on a slow machine either side repeats a message of the handshake that was answered
        late = sum(max(0, count - 2) for count in (answers, len(relay.seen[True, True])))
        assert 0 < len(again) <= 50
        assert set(again) == {relay.seen[False, True][answers - 1]}
        assert len(again[0]) < len(offers[-1])
        grown = [resident(program) - old for old, program in zip(before, (sender, receiver), strict=True)]
        full = {True: dropped(port), False: dropped(relay.caller[1])}
        outputs = [program.communicate(timeout=60) for program in (sender, receiver)]
    finally:
        relay.close()
        for program in (sender, receiver):
            program.kill()
    assert [program.returncode for program in (sender, receiver)] == [0, 0], outputs
    runs = Run.load(sent), Run.load(received)
    assert runs[0].digest == runs[1].digest
    assert runs[0].metrics()["packets_sent"] > 200
    # what was sent at each end is what its side counts, but for what its kernel had no room for
    assert sum(sum(counter.values()) for counter in counts.values()) == FLOOD // 14 * 14
    again_to_caller = len(again)
    for run, down in zip(runs, (False, True), strict=True):
        ignored = run.about["live"]["own"]["ignored"]
        expected = counts[down] + Counter({} if down else {"malformed": again_to_caller})
        if not full[down] and not late:
            assert ignored == {"strangers": 0, **expected}
        for reason, count in expected.items():
            assert count - full[down] <= ignored[reason] <= count + late, (reason, full)
    for out, _ in outputs:
        assert re.search(r"the sender ignored datagrams: \d+ forged or damaged", out), out
        assert re.search(r"the receiver ignored datagrams: \d+ forged or damaged", out), out
    # 10 000 datagrams of about 800 bytes: had any been kept, the memory would have grown by them
    assert max(grown) < 4e6, grown


def test_before_an_address_is_proved_it_gets_less_than_came_from_it(tmp_path: Path, key: Path) -> None:
    receiver, port = begin_receiver(key, tmp_path / "received")
    relay = Relay(port)
    luck = random.Random(3)
    sender = begin("send", f"127.0.0.1:{relay.port}", "--key", key, "--duration", "1s", "--out", tmp_path / "sent")
    try:
        outputs = [program.communicate(timeout=60) for program in (sender, receiver)]
        assert [program.returncode for program in (sender, receiver)] == [0, 0], outputs
    finally:
        relay.close()
        sender.kill()
        receiver.kill()
    # all of that call again, at a new receiver with the same key, from an address that it does not know
    replayed = [*relay.seen[True, True], *relay.seen[False, True], *relay.seen[True, False][:50]]
    replayed += [noise(luck, length) for length in range(30, 1400, 30)] + [MAGIC + noise(luck, 200)]
    receiver, port = begin_receiver(key, tmp_path / "another")
    received, replies = 0, []
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as address:
            for data in replayed * 5:
                address.sendto(data, ("127.0.0.1", port))
                received += len(data)
                time.sleep(0.001)
            while select.select([address], [], [], 0.3)[0]:
                replies.append(address.recv(65_535))
        # only the hello and the offer are answered, with 70 bytes each
        assert len(replies) > 5
        assert {len(reply) for reply in replies} == {70}
        assert sum(map(len, replies)) <= 3 * received
        assert sum(map(len, replies)) < received
        receiver.send_signal(signal.SIGINT)
        receiver.communicate(timeout=20)
    finally:
        receiver.kill()
    assert not (tmp_path / "another").exists()


def test_no_call_says_what_was_ignored(tmp_path: Path, key: Path) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as flood:
        receiver, port = begin_receiver(key, tmp_path / "received", wait="3s")
        for data in (noise(random.Random(1), 200), MAGIC + bytes(2000), MAGIC + bytes(100)):
            flood.sendto(data, ("127.0.0.1", port))
        _, err = receiver.communicate(timeout=30)
    assert receiver.returncode == 1
    assert (
        "no call arrived; 3 datagrams were ignored: 1 forged, 0 replayed, 0 oversized, 2 malformed, 0 of strangers"
        in err
    )


def test_a_record_that_never_comes_is_an_error(tmp_path: Path, key: Path) -> None:
    sent, received = tmp_path / "sent", tmp_path / "received"
    receiver, port = begin_receiver(key, received)
    sender = begin("send", f"127.0.0.1:{port}", "--key", key, "--duration", "4s", "--out", sent)
    try:
        wait_for(sender, "has begun")
        time.sleep(2)
        # it stands still until its time is over, and the other side has given up meanwhile
        sender.send_signal(signal.SIGSTOP)
        _, err = receiver.communicate(timeout=30)
        assert receiver.returncode == 1
        assert "no packet came from the sender for 2 s" in err
        time.sleep(2)
        sender.send_signal(signal.SIGCONT)
        out, err = sender.communicate(timeout=30)
    finally:
        sender.kill()
        receiver.kill()
    assert sender.returncode == 1, out
    assert f"tidegate: the call is over, but the record of 127.0.0.1:{port} did not come" in err
    assert f"the recording of the call until then is in {sent}" in err
    # what this side knows is kept
    about = json.loads((sent / "run.json").read_text())
    assert (about["live"]["why"], about["live"]["other"]) == ("completed", None)
