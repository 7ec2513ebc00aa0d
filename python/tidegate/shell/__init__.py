"""Real programs on the links of a scenario, by the wall clock (Linux).

The command `tidegate shell` calls [session][tidegate.shell.sessions]. Links of a scenario, simulated by the engine,
join two network namespaces, and a program runs in each. The session records all arrivals; its results come from a
replay of the same arrivals in virtual time.
"""

from __future__ import annotations

from tidegate.shell._contender import Contender, LiveJob, attempt, beside, how_long
from tidegate.shell._judging import LIMITS, Lateness, verdict
from tidegate.shell._scenario import with_programs
from tidegate.shell._streams import Stream, streams
from tidegate.shell.sessions import Programs, Session, check_environment, replay, session

__all__ = [
    "LIMITS",
    "Contender",
    "Lateness",
    "LiveJob",
    "Programs",
    "Session",
    "Stream",
    "attempt",
    "beside",
    "check_environment",
    "how_long",
    "replay",
    "session",
    "streams",
    "verdict",
    "with_programs",
]
