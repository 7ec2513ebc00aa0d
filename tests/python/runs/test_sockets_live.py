"""A call of our own endpoints in two namespaces, over the links of `tidegate shell`, beside its simulation.

Half a minute by the wall clock. Skips where namespaces are forbidden.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from support import environment, need_namespaces

pytestmark = pytest.mark.slow

need_namespaces()

from tidegate import Run  # noqa: E402
from tidegate.comparison.gap import gap  # noqa: E402

SCENARIO = """
duration = "20s"
[[links]]
name = "link"
from = "a"
to = "b"
capacity = "1Mbps"
delay = "20ms"
queue = { time = "300ms" }
back = { capacity = "10Mbps" }
[[flows]]
name = "call"
from = "a"
to = "b"
media = { controller = "gcc" }
"""

TRIES = 3
"""A machine that has much else to do is late, and the result says so; then it is tried again."""


def session_of_a_call(folder: Path, duration: str, *more: str) -> subprocess.CompletedProcess[str]:
    """A session of so long with a call between its ends, over the links of the scenario."""
    (folder / "flat.toml").write_text(SCENARIO)
    key = folder / "call.key"
    key.write_bytes(os.urandom(32))
    key.chmod(0o600)
    tidegate = f"{shlex.quote(sys.executable)} -m tidegate"
    # the receiver says when it is ready; the sender waits for that
    receives = (
        f"{tidegate} live receive --bind $TIDEGATE_ADDRESS:5004 --key call.key --wait 60s --out received 2> there"
    )
    sends = (
        "for _ in $(seq 300); do grep -qs waiting there && break; sleep 0.2; done; "
        f"exec {tidegate} live send $TIDEGATE_PEER:5004 --key call.key --scenario flat.toml --out sent {' '.join(more)}"
    )
    command = [sys.executable, "-m", "tidegate", "shell", "flat.toml", "--duration", duration]
    command += ["--", "sh", "-c", sends, "--", "sh", "-c", receives]
    env = environment()
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=180, check=False)


def call(folder: Path) -> Run:
    """A call between two namespaces."""
    done = session_of_a_call(folder, "120s")
    assert done.returncode == 0, done.stdout + done.stderr
    return Run.load(folder / "sent")


def test_a_session_that_is_over_leaves_what_both_sides_of_a_call_know(tmp_path: Path) -> None:
    # the links are gone when both get SIGTERM: neither can fetch what the other has recorded
    done = session_of_a_call(tmp_path, "12s", "--duration 60s")
    assert done.returncode == 0, done.stdout + done.stderr
    sent, received = (Run.load(tmp_path / name) for name in ("sent", "received"))
    assert sent.about["live"]["why"] == received.about["live"]["why"] == "stopped"
    assert sent.metrics()["packets_sent"] > 100
    assert received.metrics()["packets_received"] > 100
    assert "the receiver's record did not arrive" in sent.warnings[0]


def test_a_call_over_a_link_is_what_its_simulation_says(tmp_path: Path) -> None:
    for number in range(TRIES):
        folder = tmp_path / str(number)
        folder.mkdir()
        live = call(folder)
        assert live.digest == Run.load(folder / "received").digest
        found = gap(live)
        health = live.about["live"]
        quiet = all(health[side]["late_ms"][1] <= 5.0 for side in ("own", "other"))
        if found.within or quiet:
            break
    assert found.within, found.to_data()
    # the link is there: nothing passes 1 Mb/s, and the round trip is its two delays
    assert 0.7e6 < live.metrics()["receive_rate_bps"] < 1.0e6
    assert 40.0 <= health["least_round_trip_ms"] < 45.0
