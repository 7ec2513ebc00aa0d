"""Results do not depend on the floating-point environment of the process: a run in another one is refused."""

from __future__ import annotations

import importlib.util
import platform
import subprocess
import sys

import pytest

from support import environment

MODES = {
    "x86_64": {"up": 0x800, "down": 0x400, "zero": 0xC00},
    "aarch64": {"up": 0x400000, "down": 0x800000, "zero": 0xC00000},
}
"""FE_UPWARD, FE_DOWNWARD and FE_TOWARDZERO of glibc's `bits/fenv.h`."""

BEGIN = """\
import ctypes
import tidegate
from tidegate import Controller, RunError, Scenario

libm = ctypes.CDLL("libm.so.6")
modes = {modes}
home = Scenario.load("home-broadband", {{"duration": "2s"}})


def refused(call):
    try:
        call()
    except RunError as error:
        assert str(error).endswith("call {right} before"), error
        return str(error)
    raise AssertionError("it was not refused")


digest = tidegate.run(home).digest
"""

RUN = """
for name, mode in modes.items():
    libm.fesetround(mode)
    refused(lambda: tidegate.run(home))
    refused(home.check)
    refused(lambda: tidegate.compare(["fixed:1Mbps"], scenario=home, seeds=2))
    libm.fesetround(0)
    assert tidegate.run(home).digest == digest, name
"""

WORLD = """
for mode in modes.values():
    libm.fesetround(mode)
    refused(lambda: tidegate.live_world(home))
    libm.fesetround(0)
    world = tidegate.live_world(home)
    world.step(seconds=1)
    libm.fesetround(mode)
    refused(lambda: world.step(seconds=0.5))
    refused(lambda: world.change("uplink", capacity="1Mbps"))
    refused(world.finish)
    # nothing has happened, so that it goes on
    libm.fesetround(0)
    assert world.finish().digest == digest
"""

CALLBACKS = """
class Mine(Controller):
    broken = ""

    def _sets(self, method, answer=None):
        if self.broken == method:
            libm.fesetround(modes["up"])
        return answer

    def on_report(self, now_ns, report):
        libm.fesetround(0)  # too late
        return self._sets("on_report", 400_000)

    def on_limits(self, now_ns, limits):
        return self._sets("on_limits", super().on_limits(now_ns, limits))

    def in_flight(self):
        return self._sets("in_flight", 0)

    def stamp(self, now_ns, packet):
        return self._sets("stamp")


for method in ("on_report", "on_limits", "in_flight", "stamp"):
    Mine.broken = method
    with_mine = Scenario.from_dict({{**home.to_dict(), "flows": [{{"name": "call", "from": "home", "to": "internet",
        "media": {{"controller": Mine}}}}]}})
    why = refused(lambda: tidegate.run(with_mine))
    assert method in why, why
    libm.fesetround(0)

world = tidegate.live_world(home)
refused(lambda: world.step(seconds=1, progress=lambda share: libm.fesetround(modes["down"])))
libm.fesetround(0)
assert tidegate.run(home).digest == digest
"""

AGENT = """
import numpy as np
from tidegate.gym import CallEnv, CallVectorEnv

for mode in modes.values():
    env = CallEnv(home)
    env.reset(seed=1)
    env.step(np.zeros(1, np.float32))
    libm.fesetround(mode)
    refused(lambda: env.step(np.zeros(1, np.float32)))
    refused(lambda: CallEnv(home).reset(seed=1))
    libm.fesetround(0)
    env.step(np.zeros(1, np.float32))
"""

SUBNORMALS = """
kept = ctypes.create_string_buffer(64)
libm.fegetenv(kept)
flushing = ctypes.create_string_buffer(kept.raw)
for bits in (0x8000, 0x0040):  # results, and operands, of SSE that become zero; MXCSR is at byte 28 of glibc's fenv_t
    register = int.from_bytes(kept.raw[28:32], "little") | bits
    flushing[28:32] = register.to_bytes(4, "little")
    libm.fesetenv(flushing)
    refused(lambda: tidegate.run(home))
    libm.fesetenv(kept)
    assert tidegate.run(home).digest == digest
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc" or platform.machine() not in MODES, reason="needs glibc")
@pytest.mark.parametrize(
    ("name", "code"), [("run", RUN), ("world", WORLD), ("callbacks", CALLBACKS), ("agent", AGENT), ("sub", SUBNORMALS)]
)
def test_another_environment_is_refused(name: str, code: str) -> None:
    if name == "agent" and importlib.util.find_spec("gymnasium") is None:
        pytest.skip("needs gymnasium")
    if name == "sub" and platform.machine() != "x86_64":
        pytest.skip("the layout of fenv_t is that of x86_64")
    right = "fesetenv(FE_DFL_ENV)" if name == "sub" else "fesetround(FE_TONEAREST)"
    program = (BEGIN + code).format(modes=MODES[platform.machine()], right=right)
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=240, check=False, env=environment()
    )
    assert done.returncode == 0, done.stderr
