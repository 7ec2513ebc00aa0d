"""Memory that a finished call holds, at recording level `summary`."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from support import example

bench = example("engine", "benches/peers")

RUN = """\
import sys
from tidegate import _core

_core.run(sys.stdin.read())
# ru_maxrss would count what the process was before it became this program
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
print(int(status["VmHWM"].split()[0]) * 1024)
"""
FEW, MANY = 50, 1050


def experiment(calls: int) -> str:
    """Calls of a second over a link that has room for all, in two seconds."""
    made: Any = bench.scenario("call", 2.0)
    for link in made["links"]:
        link["capacity"] = {"constant": 10**10}
        link["settings"]["queue"] = {"packets": 100_000}
    (call,) = made["flows"]
    # what it has seen is a second at the start rate, and no probe's
    media = call["kind"]["media"]
    media["max_rate"] = media["video"]["max"] = media["start_rate"]
    made["flows"] = [
        {**call, "name": f"call{number}", "start": 10**6 * (number % 100), "stop": 10**9} for number in range(calls)
    ]
    return json.dumps(made)


def peak(text: str) -> int:
    """The peak resident memory in bytes of a process that runs it."""
    done = subprocess.run([sys.executable, "-c", RUN], input=text, capture_output=True, text=True, check=True)
    return int(done.stdout)


@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak of a process from /proc")
def test_an_end_of_a_call_takes_what_it_has_seen_and_no_more() -> None:
    few, many = experiment(FEW), experiment(MANY)
    # the text of the experiment is there twice: in Python and as it is read
    an_end = (peak(many) - peak(few) - 2 * (len(many) - len(few))) / (MANY - FEW) / 2
    assert 5_000 < an_end < 20_000
