"""What a worker of Dask does: a batch of jobs, one after the other, after it has shown that it gives the same bits."""

from __future__ import annotations

import hashlib
import platform
import time
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from distributed import get_worker

from tidegate import _shipped
from tidegate.errors import RunError
from tidegate.runs import _wire as wire
from tidegate.runs._interpreter import forget
from tidegate.runs._versions import build, version
from tidegate.runs.jobs import RunJob
from tidegate.scenario import Scenario

_TELL = 1.0  # seconds of a job between two words of how far it is: a thousand workers are a thousand messages then
CANARY = {"duration": "2s", "record": "summary"}
"""What of `home-broadband` every worker runs first: some ten milliseconds of work."""


@cache
def signature() -> Mapping[str, str]:
    """What makes results comparable: versions, the build of the engine, our code in Python, and a digest.

    Of Python the minor version: code that is sent by value fits no other one.
    """
    run = RunJob(Scenario.load("home-broadband", CANARY))(lambda _: True)
    return {
        "tidegate": version(),
        "the engine's build": build(),
        "tidegate's code in Python": _code(),
        "Python": ".".join(platform.python_version_tuple()[:2]),
        "the digest of a canary run": run.digest,
    }


def _code() -> str:
    """A hash of the package's modules."""
    folder = Path(_shipped.__file__).parent
    found = hashlib.sha256()
    for file in sorted(folder.rglob("*.py")):
        found.update(file.relative_to(folder).as_posix().encode() + b"\0" + file.read_bytes() + b"\0")
    return found.hexdigest()[:16]


@dataclass(frozen=True)
class Refusal:
    """What a worker answers whose results would be other ones."""

    worker: str
    signature: Mapping[str, str]


@dataclass(frozen=True)
class Done:
    """A job that is done."""

    outcome: bytes
    """Its result or error, as `wire.outcome_of` reads it."""
    seconds: float
    """How long it took."""


def part(data: bytes) -> bytes:
    """Something shared: Dask sends it to each worker that needs it once, and makes it again where it was lost."""
    return data


_unpacker = wire.Unpacker()


def work(
    jobs: bytes,
    parts: Mapping[str, bytes],
    names: list[str],
    large: list[bytes],
    expected: Mapping[str, str],
    topic: str,
) -> list[Done] | Refusal:
    """Does a batch.

    Args:
        jobs: The jobs with their numbers.
        parts: What they share, by its hash.
        names: Hashes of further parts.
        large: These parts.
        expected: The caller's `signature`.
        topic: Under which is told how far jobs are.
    """
    forget()
    worker = get_worker()
    if signature() != expected:
        return Refusal(worker.address, signature())
    tick = _Tick(worker, topic)
    done = []
    for number, job in wire_unpacked(jobs, {**parts, **dict(zip(names, large, strict=True))}):
        begun = time.perf_counter()
        tick.number = number
        try:
            outcome = job if isinstance(job, BaseException) else job(tick)
        except BaseException as error:  # noqa: BLE001
            if tick.stopped:
                break
            error.add_note(traceback.format_exc())
            outcome = error
        answer = wire.outcome_bytes(outcome)
        done.append(Done(answer, time.perf_counter() - begun))
    return done


def wire_unpacked(jobs: bytes, parts: Mapping[str, bytes]) -> list[tuple[int, Any]]:
    """The jobs; where they cannot be made here, for each an error in its place."""
    try:
        found: list[tuple[int, Any]] = _unpacker.unpack(jobs, parts)
    except Exception as error:  # noqa: BLE001
        raise RunError(
            f"{get_worker().address}: cannot make what it was sent ({type(error).__name__}: {error}); what a "
            "controller imports has to be installed there"
        ) from None
    return found


class _Tick:
    """Told how far a job is; ends it when its batch was cancelled."""

    def __init__(self, worker: Any, topic: str) -> None:
        self.number = 0
        self.stopped = False
        self._worker, self._topic = worker, topic
        self._task = worker.state.tasks.get(worker.get_current_task())
        self._next = time.monotonic() + _TELL

    def __call__(self, fraction: float) -> bool:
        if self._task is not None and self._task.state == "cancelled":
            self.stopped = True
            raise KeyboardInterrupt
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + _TELL
            self._worker.log_event(self._topic, [self.number, fraction])
        return True
