"""Every shipped scenario in one line: its digest, and what its subject came to.

The table is reviewed as a diff: a change of the engine that is to move no result moves no line of it, and one that
does shows for every scenario what it moved.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from support import ROOT, rotation
from tidegate import Run, Scenario, run

GOLDEN = ROOT / "tests" / "golden" / "shipped.txt"
NAMES = sorted(file.stem for file in (ROOT / "python" / "tidegate" / "scenarios").glob("*.toml"))

_COLUMNS = ("scenario", "subject", "digest", "rate (Mbit/s)", "delay p95 (ms)", "loss (%)", "without picture (s)")


def _number(value: Any, scale: float, digits: int) -> str:
    return "-" if value is None else f"{value * scale:.{digits}f}"


def line(one: Run) -> str:
    """What a run came to."""
    metrics = one.metrics()
    values = (
        one.name,
        one.subject,
        one.digest,
        _number(metrics.get("receive_rate_bps"), 1e-6, 3),
        _number(metrics.get("one_way_delay_ms_p95"), 1, 1),
        _number(metrics.get("loss_fraction"), 100, 2),
        _number(metrics.get("without_picture_s"), 1, 2),
    )
    return _row(values)


def _row(values: Iterable[str]) -> str:
    widths = (33, 20, 18, 15, 16, 10, 19)
    return "".join(f"{value:<{width}}" for value, width in zip(values, widths, strict=True)).rstrip() + "\n"


def once(name: str, **settings: Any) -> Run:
    """One run of a shipped scenario with the seed that it names."""
    return run(Scenario.load(name), record="summary", **settings)


def rotating(fixed: Sequence[str], count: int = 6) -> list[str]:
    """So many scenarios beside the fixed ones, others after each commit: for passes that are too long over all of them."""
    rest = [name for name in NAMES if name not in fixed]
    begin = rotation() * count
    return [rest[(begin + number) % len(rest)] for number in range(count)]


def head() -> str:
    """The first line of the table."""
    return _row(_COLUMNS)


def table() -> str:
    """All of them."""
    return head() + "".join(line(once(name)) for name in NAMES)
