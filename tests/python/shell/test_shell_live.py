"""Sessions in real namespaces: packets through links, no packet gets out, nothing stays.

Everything is sent within namespaces that the session makes, and lasts some seconds. Skips where they are forbidden.
"""

from __future__ import annotations

import csv
import itertools
import json
import os
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest

from support import as_script, environment, need_namespaces, ordinary_user

pytestmark = pytest.mark.slow

need_namespaces()

from support.shell_sessions import shell, told  # noqa: E402
from tidegate import Run  # noqa: E402
from tidegate.shell.sessions import replay  # noqa: E402

# packets of 1000 bytes every 5 ms, once the other one is there; who gets one sends 100 bytes back
CALL = """
import os, socket, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind((os.environ["TIDEGATE_ADDRESS"], 5004))
s.settimeout(1.5); peer = (os.environ["TIDEGATE_PEER"], 5004); seen = []
if os.environ["TIDEGATE_SIDE"] == "A":
    while not os.path.exists("ready-" + peer[0]): time.sleep(0.01)
    s.setblocking(False); begun = time.monotonic()
    for number in range(400):
        while time.monotonic() < begun + 0.005 * number: time.sleep(0.0005)
        s.sendto(b"%012.6f" % time.monotonic() + bytes(960), peer)
        try:
            while True: seen.append(time.monotonic() - float(s.recv(2000)[:12]))
        except BlockingIOError: pass
    s.settimeout(1.0)
    try:
        while len(seen) < 400: seen.append(-float(s.recv(2000)[:12]) + time.monotonic())
    except TimeoutError: pass
    sys.stdout.write(f"{len(seen)} {min(seen)}\\n")  # in one piece, also where output is not buffered
else:
    open("ready-" + os.environ["TIDEGATE_ADDRESS"], "w").close()
    try:
        while True:
            data, who = s.recvfrom(2000); s.sendto(data[:72], who)
    except TimeoutError: pass
"""


def test_packets_take_the_time_of_the_links_and_the_replay_is_exact(tmp_path: Path) -> None:
    done = shell(
        tmp_path, "home-broadband", "--duration", "10s", "--out", "run", "--pcap", "--json", programs=(CALL, CALL)
    )
    summary = told(done)
    session = summary["session"]
    assert session["replay_differs"] is None
    assert session["packets"] == 800
    flows = {one["flow"]: one for one in summary["flows"]}
    # 1000 bytes at 5 Mbit/s are 1.6 ms, 100 bytes at 50 Mbit/s 16 us; 15 ms each way
    assert flows["A-1"]["packets_received"] == 400
    assert flows["A-1"]["one_way_delay_ms_min"] == pytest.approx(16.6, abs=0.001)
    assert flows["B-1"]["one_way_delay_ms_min"] == pytest.approx(15.016, abs=0.001)
    seen, least = done.stdout.split()[:2]
    assert int(seen) == 400
    assert 0.031616 <= float(least) < 0.05
    # each end has sent 400 packets and got 400: blocks of kind 6 in its capture
    for side in "AB":
        capture = (tmp_path / "run" / f"packets-{side}.pcapng").read_bytes()
        kinds, at = [], 0
        while at < len(capture):
            kind, length = struct.unpack_from("<II", capture, at)
            kinds.append(kind)
            at += length
        assert kinds == [0x0A0D0D0A, 1, *[6] * 800]
    # the folder is one of a run like any other, and can be replayed
    run = Run.load(tmp_path / "run")
    assert run.metrics("A-1")["packets_sent"] == 400
    again, differs = replay(tmp_path / "run", run.scenario)
    assert differs is None
    assert again.digest == run.digest == summary["digest"]


HANDOVER = """
duration = "10s"
links = [{ name = "wifi", capacity = "20Mbps", delay = "10ms" }, { name = "lte", capacity = "5Mbps", delay = "50ms" }]
flows = [{ name = "call", media = {} }]
moves = [{ time = "1500ms", flow = "call", key = "path", value = ["lte"] }]
"""


def test_programs_go_over_to_another_path_in_both_directions(tmp_path: Path) -> None:
    (tmp_path / "handover.toml").write_text(HANDOVER)
    done = shell(tmp_path, "handover.toml", "--record", "packets", "--out", "run", "--json", programs=(CALL, CALL))
    assert told(done)["session"]["replay_differs"] is None
    packets = Run.load(tmp_path / "run").table("packets")
    flows, sent, arrived = (packets.to_numpy(name) for name in ("flow", "sent_s", "arrived_s"))
    for flow in ("A-1", "B-1"):
        delays = (arrived - sent)[flows == flow]
        before = sent[flows == flow] < 1.5
        assert before.any(), flow
        assert delays[before].max() < 0.02, flow
        assert delays[~before].min() > 0.05, flow


EMULATED = """
name = "emulated"
duration = "10s"

[[links]]
name = "there"
from = "left"
to = "right"
netem = "delay 40ms duplicate 30% loss 10%"
back = { netem = "delay 20ms" }
[[flows]]
name = "call"
from = "left"
to = "right"
media = {}
"""

# 300 numbers from A; B tells how many came, how many of them twice, and in what order
COUNT = """
import os, socket, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind((os.environ["TIDEGATE_ADDRESS"], 5004)); s.settimeout(1.5)
peer = (os.environ["TIDEGATE_PEER"], 5004)
if os.environ["TIDEGATE_SIDE"] == "A":
    while not os.path.exists("ready-" + peer[0]): time.sleep(0.01)
    for number in range(300): s.sendto(b"%d" % number + bytes(500), peer); time.sleep(0.004)
    s.settimeout(5); s.recv(2000)
else:
    open("ready-" + os.environ["TIDEGATE_ADDRESS"], "w").close()
    seen = []
    try:
        while True: seen.append(int(s.recv(2000).rstrip(bytes(1))))
    except TimeoutError: s.sendto(b"over", peer)
    sys.stdout.write(f"{len(set(seen))} {len(seen) - len(set(seen))} {seen == sorted(seen)}\\n")
"""


def test_programs_get_the_copies_that_the_emulator_makes(tmp_path: Path) -> None:
    (tmp_path / "emulated.toml").write_text(EMULATED)
    done = shell(tmp_path, "emulated.toml", "--out", "run", "--json", programs=(COUNT, COUNT))
    summary = told(done)
    assert summary["session"]["replay_differs"] is None
    came, twice, in_order = done.stdout.split()[:3]
    # a packet is lost for good if it has no copy, and both are lost as each
    assert 240 <= int(came) <= 295
    assert 50 <= int(twice) <= 110
    assert in_order == "True"
    sent = {one["flow"]: one for one in summary["flows"]}["A-1"]
    assert sent["packets_sent"] == 300
    assert sent["one_way_delay_ms_min"] == pytest.approx(40, abs=0.001)


# the addresses that it can send to, and those that answer
ASK = """
import os, socket, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind((os.environ["TIDEGATE_ADDRESS"], 5004)); s.settimeout(0.1)
told = {}; end = time.monotonic() + 2
while time.monotonic() < end:
    for last in (1, 2, 3, 4):
        if (to := f"10.77.0.{last}") != os.environ["TIDEGATE_ADDRESS"]:
            try: s.sendto(b"from " + os.environ["TIDEGATE_END"].encode(), (to, 5004))
            except OSError as error: told[to] = error.strerror
    try:
        while time.monotonic() < end: data, who = s.recvfrom(100); told[who[0]] = data.decode()
    except TimeoutError: pass
end, side, peer = (os.environ["TIDEGATE_" + name] for name in ("END", "SIDE", "PEER"))
sys.stdout.write(f"{end} of {side} with {peer} {told}\\n")  # in one piece: three programs write to one pipe
"""


def test_two_calls_share_the_links_and_each_hears_its_own_peer(tmp_path: Path) -> None:
    # 1000 bytes every 5 ms are 1.6 Mbit/s, and the link has 5
    done = shell(tmp_path, "home-broadband", "--duration", "10s", "--out", "run", "--json", programs=(CALL,) * 4)
    summary = told(done)
    session = summary["session"]
    assert session["replay_differs"] is None
    assert session["packets"] == 1600
    assert [program["status"] for program in session["programs"].values()] == [0] * 4
    assert list(session["programs"]) == list("ABCD")
    flows = {one["flow"]: one for one in summary["flows"]}
    assert [flows[name]["packets_received"] for name in ("A-1", "A-2", "B-1", "B-2")] == [400] * 4
    # the ports are the same: the addresses tell the calls apart
    about = json.loads((tmp_path / "run" / "session.json").read_text())
    pairs = {(one["address_a"], one["address_b"]) for one in about["flows"]}
    assert pairs == {("10.77.0.1", "10.77.0.2"), ("10.77.0.3", "10.77.0.4")}
    assert [line.split()[0] for line in done.stdout.splitlines()[:2]] == ["400", "400"]
    assert Run.load(tmp_path / "run").metrics("A-2")["packets_sent"] == 400


def test_whoever_is_at_the_same_side_cannot_be_reached_past_the_links(tmp_path: Path) -> None:
    done = shell(tmp_path, "home-broadband", "--duration", "8s", programs=(ASK,) * 3)
    assert done.returncode == 0, done.stderr
    said = dict(line.split(" of ") for line in done.stdout.splitlines() if " of " in line)
    past = "No route to host"
    assert said["A"] == f"A with 10.77.0.2 {{'10.77.0.3': '{past}', '10.77.0.2': 'from B'}}"
    # an end without a partner of its own has the first of the other side
    assert said["C"] == f"A with 10.77.0.2 {{'10.77.0.1': '{past}', '10.77.0.2': 'from B'}}"
    assert said["B"].startswith("B with 10.77.0.1 {")
    assert "'10.77.0.1': 'from A'" in said["B"]
    assert "'10.77.0.3': 'from C'" in said["B"]


def test_who_is_left_of_a_pair_ends_after_it_and_other_pairs_go_on(tmp_path: Path) -> None:
    sleep = "import time; time.sleep({})"
    programs = tuple(sleep.format(seconds) for seconds in (0, 60, 8, 8))
    done = shell(tmp_path, "home-broadband", "--duration", "30s", "--json", programs=programs)
    ends = told(done)["session"]["programs"]
    assert {end: program["stopped"] for end, program in ends.items()} == dict.fromkeys("ACD", False) | {"B": True}
    assert 4.9 < ends["B"]["ended_s"] - ends["A"]["ended_s"] < 6
    assert ends["D"]["ended_s"] > 8


def test_cross_traffic_of_the_engine_is_in_the_same_queue(tmp_path: Path) -> None:
    sets = ["--set", "flows.backup.start=0s", "--set", "flows.backup.stop=9s"]
    done = shell(tmp_path, "fq-codel-home", *sets, "--duration", "9s", "--json", programs=(CALL, CALL))
    summary = told(done)
    flows = {one["flow"]: one for one in summary["flows"]}
    assert summary["session"]["replay_differs"] is None
    assert flows["backup"]["packets_received"] > 500
    assert flows["A-1"]["one_way_delay_ms_mean"] > flows["A-1"]["one_way_delay_ms_min"] + 0.5


OUT = """
import errno, os, socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for host in ("192.0.2.1", "10.77.1.1", "169.254.1.1"):
    try: s.sendto(b"x", (host, 53)); print("SENT to", host)
    except OSError as error: print(errno.errorcode[error.errno])
names = [name for _, name in socket.if_nameindex()]
print("DEVICES", *sorted(names))
print("SCHEDULED", os.sched_getscheduler(0), os.getpid() < 100, open("/proc/self/status").read().split("CapEff:")[1].split()[0])
try: socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0); print("RAW")
except OSError: print("no raw")
"""


def test_no_way_leads_out_and_programs_have_no_priority(tmp_path: Path) -> None:
    done = shell(tmp_path, "home-broadband", "--duration", "5s", programs=(OUT, OUT))
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("ENETUNREACH") == 6
    assert "SENT" not in done.stdout
    assert done.stdout.count("DEVICES eth0 lo") == 2
    assert done.stdout.count(f"SCHEDULED {os.SCHED_OTHER} True") == 2
    assert done.stdout.count("no raw") == 2
    if os.geteuid() != 0:
        assert done.stdout.count("True 0000000000000000") == 2


def test_the_model_goes_by_stamps_however_late_the_session_is(tmp_path: Path) -> None:
    argv = [sys.executable, "-c", CALL]
    process = subprocess.Popen(
        [sys.executable, "-m", "tidegate", "shell", "home-broadband", "--out", "run", "--", *argv, "--", *argv],
        cwd=tmp_path,
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
    )
    try:
        end = time.monotonic() + 60
        while not (tmp_path / "ready-10.77.0.2").exists():
            assert process.poll() is None
            assert time.monotonic() < end
            time.sleep(0.01)
        time.sleep(0.5)
        pid = process.pid
        for _ in range(2):
            (pid,) = map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
        # who forwards packets stands still in the middle of two seconds with one every 5 ms
        os.kill(pid, signal.SIGSTOP)
        time.sleep(0.6)
        os.kill(pid, signal.SIGCONT)
        _, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 0, err
    with (tmp_path / "run" / "arrivals.csv").open() as file:
        at = [int(row["at_ns"]) / 1e6 for row in csv.DictReader(file) if row["from"] == "A"]
    assert len(at) == 400
    # by its stamps nothing has stopped: by when they were read, there would be a gap of 600 ms
    assert max(later - before for before, later in itertools.pairwise(at)) < 300
    session = json.loads((tmp_path / "run" / "session.json").read_text())
    # what was due meanwhile was written late, and that is said
    assert 400 < session["lateness"]["worst_ms"] < 5000
    assert session["unstamped"] == 0


def _left(marker: str) -> list[str]:
    """Processes whose environment has a marker."""
    found = []
    for file in Path("/proc").glob("[0-9]*/environ"):
        try:
            if marker.encode() in file.read_bytes():
                found.append((file.parent / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            continue
    return found


@pytest.mark.parametrize("victim", ["outside", "unshare", "inside"])
def test_whoever_is_killed_nothing_stays(tmp_path: Path, victim: str) -> None:
    marker = f"TIDEGATE_TEST={os.getpid()}-{victim}"
    name, _, value = marker.partition("=")
    # a daemon that has left its parent, its session and its terminal
    program = "import os, time\nif os.fork() == 0:\n    os.setsid()\n    if os.fork(): os._exit(0)\nopen('up-' + os.environ['TIDEGATE_SIDE'], 'w'); time.sleep(60)"
    argv = [sys.executable, "-c", program]
    env = environment(**{name: value})
    process = subprocess.Popen(
        [sys.executable, "-m", "tidegate", "shell", "home-broadband", "--", *argv, "--", *argv],
        cwd=tmp_path,
        env=env,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        stdin=subprocess.DEVNULL,
    )
    try:
        end = time.monotonic() + 60
        while not all((tmp_path / f"up-{side}").exists() for side in "AB"):
            assert process.poll() is None
            assert time.monotonic() < end
            time.sleep(0.05)
        pid = process.pid
        for _ in range(["outside", "unshare", "inside"].index(victim)):
            (pid,) = map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
        os.kill(pid, signal.SIGKILL)
        process.wait(timeout=20)
        end = time.monotonic() + 10
        while (left := _left(marker)) and time.monotonic() < end:
            time.sleep(0.1)
        assert not left
        assert process.returncode == (-signal.SIGKILL if victim == "outside" else 1)
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_session_with_its_results(tmp_path: Path, number: signal.Signals) -> None:
    argv = [sys.executable, "-c", CALL.replace("range(400)", "range(40000)")]
    env = environment()
    process = subprocess.Popen(
        [sys.executable, "-m", "tidegate", "shell", "home-broadband", "--out", "run", "--", *argv, "--", *argv],
        cwd=tmp_path,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
    )
    try:
        time.sleep(8)
        assert process.poll() is None
        process.send_signal(number)
        _, err = process.communicate(timeout=40)
    finally:
        process.kill()
    assert process.returncode == 130, err
    assert Run.load(tmp_path / "run").metrics("A-1")["packets_received"] > 100


def test_programs_that_fail_are_told(tmp_path: Path) -> None:
    done = shell(tmp_path, "home-broadband", "--duration", "5s", programs=("raise SystemExit(3)", "pass"))
    assert done.returncode == 1
    assert "program A (" in done.stderr
    assert "ended with exit code 3" in done.stderr
    command = [sys.executable, "-m", "tidegate", "shell", "home-broadband", "--", "no-such-program", "--", "true"]
    env = environment()
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert "no-such-program cannot be started: No such file or directory" in done.stderr


def test_a_model_that_falls_behind_ends_the_session_with_the_reason(tmp_path: Path) -> None:
    # 25 million packets a second: no machine simulates that in time
    (tmp_path / "flood.toml").write_text(
        """duration = "20s"
links = [{ name = "link", from = "left", to = "right", delay = "1ms" }]
flows = [
  { name = "call", from = "left", to = "right", media = { controller = "gcc" } },
  { name = "flood", from = "left", to = "right", udp = { rate = "20Gbps", packet_size = "100B" } },
]
"""
    )
    done = shell(tmp_path, "flood.toml", programs=("import time; time.sleep(15)",) * 2)
    assert done.returncode == 2
    assert "this machine is too slow for the session: the model fell a second behind the clock" in done.stderr
    assert "Traceback" not in done.stderr


def test_an_ordinary_user_can(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("the other tests are those of an ordinary user already")
    user, python, env = ordinary_user(tmp_path)
    tidegate = [python, "-m", "tidegate", "shell", "home-broadband", "--duration", "8s", "--json"]
    programs = [python, "-c", CALL + OUT]
    done = subprocess.run(
        [*user, *tidegate, "--", *programs, "--", *programs],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    session = told(done)["session"]
    assert session["replay_differs"] is None
    assert session["packets"] == 800
    printed = done.stdout.partition("\n{")[0]
    assert printed.count("no raw") == 2
    assert printed.count("True 0000000000000000") == 2


def test_with_one_program_a_shell_is_at_the_other_end(tmp_path: Path) -> None:
    env = environment(SHELL="/bin/sh")
    program = [sys.executable, "-c", "import time; time.sleep(30)"]
    done = subprocess.run(
        [sys.executable, "-m", "tidegate", "shell", "home-broadband", "--", *program],
        input="echo I am at $TIDEGATE_SIDE, $TIDEGATE_ADDRESS; ip -br link\nexit\n",
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "your shell is at end B; the session ends with this shell" in done.stderr
    assert "I am at B, 10.77.0.2" in done.stdout
    assert "eth0" in done.stdout
    assert "the replay differs" not in done.stdout


def test_with_none_one_end_is_here_and_the_other_is_entered_by_name(tmp_path: Path) -> None:
    env = environment(SHELL="/bin/sh", XDG_RUNTIME_DIR=str(tmp_path))
    tidegate = [sys.executable, "-m", "tidegate", "shell"]
    process = subprocess.Popen(
        [*tidegate, "home-broadband", "--out", "run"],
        cwd=tmp_path,
        env=env,
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        send = "import os, socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); "
        send += "print(os.environ['TIDEGATE_SIDE'], s.sendto(bytes(72), (os.environ['TIDEGATE_PEER'], 9)), os.getpid() < 100, "
        send += "*(int(line.split()[1], 16) for line in open('/proc/self/status') if line.startswith(('CapEff', 'NoNewPrivs'))))"
        end = time.monotonic() + 40
        while time.monotonic() < end:
            entered = subprocess.run(
                [*tidegate, "--enter", "home-broadband", "--", sys.executable, "-c", send],
                cwd=tmp_path,
                env=env,
                capture_output=True,
                text=True,
                timeout=30,
                check=False,
            )
            if entered.returncode == 0:
                break
            assert entered.returncode == 2, entered.stderr
            assert "no session of this name" in entered.stderr or "beginning or ending" in entered.stderr
            time.sleep(0.2)
        # what enters has no more rights than the other programs
        rights = sum(1 << number for number in (0, 1, 3, 4, 5, 6, 7, 10, 23, 31)) if os.geteuid() == 0 else 0
        assert entered.stdout.strip() == f"B 72 True {rights} 1", entered.stderr
        out, err = process.communicate("echo here is $TIDEGATE_SIDE; sleep 0.2\nexit\n", timeout=40)
    finally:
        process.kill()
    assert process.returncode == 0, err
    assert "here is A" in out
    assert "tidegate shell --enter home-broadband" in err
    # 100 bytes from B, and the answer of A, on a closed port: an ICMP message
    run = Run.load(tmp_path / "run")
    assert run.metrics("B-1")["packets_received"] == 1
    assert not list((tmp_path / "tidegate").iterdir())


def test_no_file_of_the_present_folder_is_run(tmp_path: Path) -> None:
    """Neither by the session, which is begun with all rights where one is root, nor by a contender's; programs find their own environment."""
    for name in ("json", "resource", "csv", "signal", "subprocess", "tidegate"):
        (tmp_path / f"{name}.py").write_text(f'open({str(tmp_path / "ran")!r}, "a").write("{name} ")\n')
    (tmp_path / "bin").mkdir()
    command = as_script(tmp_path / "bin")
    env = environment()
    program = "import os; open(os.environ['TIDEGATE_SIDE'], 'w').write(str(os.environ.get('PYTHONSAFEPATH')))"
    for argv in (
        [
            "shell",
            "home-broadband",
            "--duration",
            "2s",
            *(word for _ in "AB" for word in ("--", sys.executable, "-P", "-c", program)),
        ],
        ["compare", "program:sleep 1", "--capacity", "1Mbps", "--duration", "2s"],
    ):
        done = subprocess.run(
            [*command, *argv], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60, check=False
        )
        assert not (tmp_path / "ran").exists(), (tmp_path / "ran").read_text()
        assert done.returncode in {0, 1}, done.stderr
    assert [(tmp_path / side).read_text() for side in "AB"] == ["None", "None"]
