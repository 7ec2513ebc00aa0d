"""One end of a call, for peers in Python: its name, signalling through files, and its statistics. See session.py."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from typing import Any


class End:
    """Side A or B of a call, from what `session.py` and `tidegate shell` put into the environment."""

    def __init__(self) -> None:
        self.side = os.environ["TIDEGATE_SIDE"]
        self.network = os.environ["TIDEGATE_ADDRESS"].rpartition(".")[0] + "."
        """How the addresses begin that lie in the session's network."""
        self.folder = Path(os.environ["CALL_FOLDER"])
        self.clip = Path(os.environ["CALL_CLIP"])
        self.most = int(float(os.environ.get("CALL_MAX_RATE", "3e6")))
        """bits a second that are sent at most: more than the scenarios' links carry, which are to limit the call."""
        self.over = False
        """Whether the session is over."""
        self.seen: dict[str, Any] = {"connected_s": None, "frames": 0}
        """What stands in each line of the statistics beside the report."""
        self._begun = time.monotonic() - _age()
        self._stats = (self.folder / f"stats-{self.side}.jsonl").open("w", encoding="utf-8")
        signal.signal(signal.SIGTERM, self._end)

    def _end(self, *_: object) -> None:
        self.over = True

    def seconds(self) -> float:
        """Since the process began."""
        return time.monotonic() - self._begun

    def tell(self, name: str, value: object) -> None:
        """Writes a file for the other end, which gets its name when it is complete."""
        part = self.folder / f"{name}.part"
        part.write_text(json.dumps(value), encoding="utf-8")
        part.replace(self.folder / name)

    def told(self, name: str) -> Any | None:
        """What the other end has written; None as long as it has not."""
        file = self.folder / name
        return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else None

    def note(self, report: list[dict[str, Any]], **more: object) -> None:
        """Writes a line of statistics: times, what was seen, and the report, by the names of getStats."""
        line = {"time_s": self.seconds(), "unix_s": time.time(), **self.seen, **more, "report": report}
        self._stats.write(json.dumps(line, default=str) + "\n")
        self._stats.flush()


def _age() -> float:
    """Seconds since this process was started: to import libraries takes some."""
    # field 22 of proc(5), in ticks since the machine's start
    ticks = Path("/proc/self/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[19]
    return time.clock_gettime(time.CLOCK_BOOTTIME) - int(ticks) / os.sysconf("SC_CLK_TCK")


def cpu_seconds(root: int) -> float:
    """CPU time of a process and all that it has started and that still runs, or that it has waited for."""
    spent: dict[int, float] = {}
    children: dict[int, list[int]] = {}
    for file in Path("/proc").glob("[0-9]*/stat"):
        try:
            # the name, in brackets, may have spaces in it; fields 4 and 14 to 17 of proc(5)
            fields = file.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        except OSError:
            continue
        number = int(file.parent.name)
        children.setdefault(int(fields[1]), []).append(number)
        spent[number] = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    total, left = 0.0, [root]
    while left:
        one = left.pop()
        total += spent.get(one, 0.0)
        left += children.get(one, [])
    return total
