"""What programs of a session may do beside their own network, and what a flood of theirs fills.

In namespaces that the session makes, some seconds each. Skips where they are forbidden.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from support import environment, need_namespaces, ordinary_user

pytestmark = pytest.mark.slow

need_namespaces()

from support.shell_sessions import shell, told  # noqa: E402

KEPT = sum(1 << number for number in (0, 1, 3, 4, 5, 6, 7, 10, 23, 31)) if os.geteuid() == 0 else 0
"""Capabilities of root's programs: CHOWN to SETUID without DAC_READ_SEARCH, NET_BIND_SERVICE, SYS_NICE, SETFCAP (capability.h)."""

TRIES = """
import ctypes, errno, glob, os, socket, subprocess, sys
libc = ctypes.CDLL(None, use_errno=True)
NEWNET = 0x40000000
said = []
def tries(name, act):
    try: act(); said.append(f"{name}: done")
    except OSError as error: said.append(f"{name}: {errno.errorcode[error.errno]}")
def enter(file, kind=NEWNET):
    number = os.open(file, os.O_RDONLY)
    if libc.setns(number, kind): raise OSError(ctypes.get_errno(), "setns")
def checked(result):
    if result: raise OSError(ctypes.get_errno(), "refused")
tries("packet", lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0x0300))
tries("raw", lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1))
tries("echo", lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM, 1))
tries("init", lambda: enter("/proc/1/ns/net"))
tries("own", lambda: enter("/proc/self/ns/net"))
tries("mounts", lambda: enter("/proc/self/ns/mnt", 0x20000))
tries("new", lambda: checked(libc.unshare(NEWNET)))
def descriptors():
    # their names may be listed; opened, they would be the networks
    reached = False
    for name in os.listdir("/proc/1/fd"):
        try: os.close(os.open("/proc/1/fd/" + name, os.O_RDONLY | os.O_NONBLOCK)); reached = True
        except OSError as error: failed = error
    if not reached: raise failed
tries("descriptors", descriptors)
tries("trace", lambda: checked(libc.ptrace(16, 1, 0, 0)))
tries("device", lambda: subprocess.run(["ip", "link", "set", "eth0", "down"], capture_output=True).returncode and checked(1) or None)
status = dict(line.split(":\\t") for line in open("/proc/self/status").read().splitlines() if ":\\t" in line)
said.append(f"rights: {int(status['CapEff'], 16)} {int(status['CapPrm'], 16)} {status['NoNewPrivs']}")
sys.stdout.write("; ".join([os.environ["TIDEGATE_SIDE"] + sys.argv[1], *said]) + "\\n"); sys.stdout.flush()
# once more after another exec, and in a user's own user namespace, where it is root
if sys.argv[1] == " itself":
    again = [sys.executable, "-c", sys.argv[2], " after exec", ""]
    subprocess.run(["sh", "-c", 'exec "$@"', "-", *again])
    subprocess.run(["unshare", "--user", "--map-root-user", sys.executable, "-c", sys.argv[2], " in a user namespace", ""])
"""


@pytest.mark.parametrize("whose", ["mine", "an ordinary user's"])
def test_programs_have_no_rights_in_the_session(tmp_path: Path, whose: str) -> None:
    user: list[str] = []
    python, env, kept = sys.executable, environment(), KEPT
    if whose != "mine":
        if os.geteuid() != 0:
            pytest.skip("the tests are those of an ordinary user already")
        user, python, env = ordinary_user(tmp_path)
        kept = 0
    programs = ["--", python, "-c", TRIES, " itself", TRIES] * 2
    command = [*user, python, "-m", "tidegate", "shell", "home-broadband", "--duration", "15s", *programs]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    lines = dict(line.split("; ", 1) for line in done.stdout.splitlines() if "; packet" in line)
    assert set(lines) == {f"{side} {when}" for side in "AB" for when in ("itself", "after exec", "in a user namespace")}
    for who, line in lines.items():
        said = dict(part.split(": ") for part in line.split("; "))
        assert (said["packet"], said["raw"]) == ("EPERM", "EPERM"), who
        # init is not ours to look at, and not ours to enter
        assert {said["init"], said["descriptors"]} <= {"EACCES", "EPERM"}, who
        assert said["trace"] == "EPERM", who
        assert said["own"] == "EPERM", who
        if "user namespace" not in who:
            assert (said["new"], said["mounts"]) == ("EPERM", "EPERM"), who
            assert said["rights"] == f"{kept} {kept} 1", who
            # what ping needs is allowed to all
            assert said["echo"] == "done", who
    assert done.stdout.count("device: done") == 0


def test_programs_of_root_keep_what_is_no_way_out(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("the programs of an ordinary user have no rights to keep")
    (tmp_path / "of-another").write_text("")
    os.chown(tmp_path / "of-another", 1000, 1000)
    (tmp_path / "of-another").chmod(0)
    keeps = (
        "import os, socket; s = socket.socket(); s.bind(('10.77.0.1' if os.environ['TIDEGATE_SIDE'] == 'A' else '10.77.0.2', 80)); "
        "open('of-another', 'a').write('x'); os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1)); "
        "os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0)); os.setgroups([]); os.setgid(1000); os.setuid(1000); "
        "print('KEPT', open('/proc/self/status').read().split('CapPrm:')[1].split()[0])"
    )
    done = shell(tmp_path, "home-broadband", "--duration", "5s", programs=(keeps, keeps))
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("KEPT 0000000000000000") == 2
    assert (tmp_path / "of-another").read_text() == "xx"


def test_a_program_whose_file_has_capabilities_begins_without_them(tmp_path: Path) -> None:
    """As `ping` has on many systems; a bounding set without them would make its start fail."""
    cat = shutil.which("cat")
    assert cat is not None
    copy = tmp_path / "cat"
    shutil.copy(cat, copy)
    if subprocess.run(["setcap", "cap_net_raw,cap_sys_admin+ep", copy], capture_output=True, check=False).returncode:
        pytest.skip("no capabilities can be given to files here (setcap)")
    command = [sys.executable, "-m", "tidegate", "shell", "home-broadband", "--duration", "5s"]
    programs = ["--", str(copy), "/proc/self/status"] * 2
    done = subprocess.run(
        [*command, *programs], cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("CapPrm:\t0000000000000000") == 2
    assert done.stdout.count("CapEff:\t0000000000000000") == 2


def test_unix_sockets_of_the_host_are_reached_by_their_path_unless_it_is_hidden(tmp_path: Path) -> None:
    place = tmp_path / "run"
    place.mkdir()
    path = str(place / "s")
    abstract = f"\0tidegate-test-{os.getpid()}"
    connects = f"""
import errno, socket, sys
for name, address in (("path", {path!r}), ("abstract", {abstract!r})):
    s = socket.socket(socket.AF_UNIX)
    try: s.connect(address); print(sys.argv[1:], name, "REACHED")
    except OSError as error: print(sys.argv[1:], name, errno.errorcode[error.errno])
"""
    program = [sys.executable, "-c", connects]
    hidden = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c"]
    hidden += [f'mount -t tmpfs none {place} && exec "$0" "$@"', *program, "hidden"]
    with socket.socket(socket.AF_UNIX) as by_path, socket.socket(socket.AF_UNIX) as by_name:
        by_path.bind(path)
        by_path.listen()
        by_name.bind(abstract)
        by_name.listen()
        command = [sys.executable, "-m", "tidegate", "shell", "home-broadband", "--duration", "5s"]
        done = subprocess.run(
            [*command, "--", *program, "--", *hidden],
            cwd=tmp_path,
            env=environment(PYTHONUNBUFFERED=""),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    assert "[] path REACHED" in done.stdout
    assert "['hidden'] path ENOENT" in done.stdout
    # these belong to a network
    assert "[] abstract ECONNREFUSED" in done.stdout
    assert "['hidden'] abstract ECONNREFUSED" in done.stdout


FLOODS = """
import os, random, socket, time
if os.environ["TIDEGATE_SIDE"] == "A":
    luck, peer = random.Random(1), os.environ["TIDEGATE_PEER"]
    sockets = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(200)]
    for number in range(10_000):
        header = b"\\x80" + bytes([luck.choice([96, 200, 205, 206])]) + luck.randbytes(10)
        sockets[number % 200].sendto(header + bytes(luck.randrange(1000)), (peer, luck.randrange(1, 65536)))
        if number % 20 == 0: time.sleep(0.005)
else: time.sleep(18)  # the other one has 5 s once this has ended
"""


def test_a_flood_of_ports_and_ssrcs_fills_a_session_only_so_far(tmp_path: Path) -> None:
    sets = ["--set", "links.uplink.capacity=infinite"]
    done = shell(
        tmp_path, "home-broadband", *sets, "--duration", "20s", "--json", "--out", "run", programs=(FLOODS, FLOODS)
    )
    summary = told(done)
    session = summary["session"]
    assert session["replay_differs"] is None
    assert session["packets"] + session["missed"] >= 10_000
    # 128 flows of each side, the last one of which takes all others; no SSRC is a stream
    names = {flow["flow"] for flow in summary["flows"] if flow["flow"].startswith("A-")}
    assert names == {f"A-{number}" for number in range(1, 129)}
    assert session["shared"] > 1000
