"""The engine's controllers, driven by your own loop: in a test, on a socket, over a recorded log.

>>> from tidegate import PacketResult, Report
>>> gcc = controller("gcc", "aiortc", beta=0.9)
>>> gcc.decision.target_bps
300000
>>> report = Report([PacketResult(n, 1200, n * 10_000_000, n * 10_000_000) for n in range(20)])
>>> gcc.on_report(250_000_000, report).target_bps > 0
True
>>> "threshold" in gcc.internals
True
>>> controller("gcc", betta=0.9)
Traceback (most recent call last):
...
ValueError: gcc: `betta` is not a setting of ...
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tidegate import _core

if TYPE_CHECKING:
    from tidegate.control import ControllerHost, Limits, ReceiverHost


def controller(
    name: str,
    preset: str = "",
    *,
    seed: int = 0,
    now_ns: int = 0,
    limits: Limits | None = None,
    **settings: object,
) -> ControllerHost:
    """Makes one of the engine's controllers, to be driven by hand.

    Args:
        name: Its name in the registry; `tidegate controllers` lists them.
        preset: A preset of it; its default if empty.
        seed: Seed of its random substream.
        now_ns: Time at which it begins, in nanoseconds; later calls must not be earlier.
        limits: What the session allows; 30 kbit/s to 10 Mbit/s from 300 kbit/s on by default.
        settings: Settings that differ from the preset (`tidegate controllers gcc` lists them).

    Returns:
        The host of the controller: `on_report`, `on_alarm`, `on_limits`, `on_sent`, `stamp`,
        `decision` and `internals` (named values of the last call).

    Raises:
        ValueError: With what is wrong and what would be right.
    """
    return _core.controller(name, preset, json.dumps(settings), seed, now_ns, limits)


def receiver(name: str, preset: str = "", *, seed: int = 0, **settings: object) -> ReceiverHost:
    """Makes the receiving half of one of the engine's controllers, to be driven by hand.

    Args:
        name: Its name in the registry, of a controller that has a receiving half.
        preset: A preset of it; its default if empty.
        seed: Seed of its random substream.
        settings: Settings that differ from the preset.

    Returns:
        The host of the half: `on_packet`, `on_alarm`, `message`, `alarm_ns` and `internals`.

    Raises:
        ValueError: With what is wrong and what would be right.
    """
    return _core.receiver(name, preset, json.dumps(settings), seed)
