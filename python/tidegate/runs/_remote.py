"""Code of a Dask worker: runs batches of jobs, after it has shown that its results have the same bits."""

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

_REPORT_INTERVAL = 1.0  # seconds between progress reports of a job: a thousand workers then send a thousand messages
CANARY = {"duration": "2s", "record": "summary"}
"""Changes to `home-broadband` for the canary run of each worker: some ten milliseconds of work."""


@cache
def signature() -> Mapping[str, str]:
    """Facts that have to be equal for comparable results: versions, the engine's build, code in Python, and a digest.

    Python's minor version is among them, since code that is sent by value fits no other.
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
    """Hash of the package's modules."""
    folder = Path(_shipped.__file__).parent
    hasher = hashlib.sha256()
    for file in sorted(folder.rglob("*.py")):
        hasher.update(file.relative_to(folder).as_posix().encode() + b"\0" + file.read_bytes() + b"\0")
    return hasher.hexdigest()[:16]


@dataclass(frozen=True)
class Refusal:
    """Answer of a worker whose results would differ."""

    worker: str
    signature: Mapping[str, str]


@dataclass(frozen=True)
class Done:
    """A finished job."""

    outcome: bytes
    """Its result or error, packed for `wire.outcome_of`."""
    seconds: float
    """Time that it took."""


def part(data: bytes) -> bytes:
    """Task for a shared object: Dask sends it to each worker once, and repeats the task where it was lost."""
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
    """Runs a batch of jobs.

    Args:
        jobs: The jobs with their numbers.
        parts: Bytes of the objects that they share, by hash.
        names: Hashes of large parts, which come from tasks of their own.
        large: Bytes of the large parts.
        expected: The caller's `signature`.
        topic: Topic of progress reports.
    """
    forget()
    worker = get_worker()
    if signature() != expected:
        return Refusal(worker.address, signature())
    tick = _Tick(worker, topic)
    done = []
    for number, job in wire_unpacked(jobs, {**parts, **dict(zip(names, large, strict=True))}):
        started = time.perf_counter()
        tick.number = number
        try:
            outcome = job if isinstance(job, BaseException) else job(tick)
        except BaseException as error:  # noqa: BLE001
            if tick.stopped:
                break
            error.add_note(traceback.format_exc())
            outcome = error
        answer = wire.outcome_bytes(outcome)
        done.append(Done(answer, time.perf_counter() - started))
    return done


def wire_unpacked(jobs: bytes, parts: Mapping[str, bytes]) -> list[tuple[int, Any]]:
    """Unpacks the jobs.

    Raises:
        RunError: when they cannot be rebuilt here.
    """
    try:
        unpacked: list[tuple[int, Any]] = _unpacker.unpack(jobs, parts)
    except Exception as error:  # noqa: BLE001
        raise RunError(
            f"{get_worker().address}: the worker cannot rebuild the jobs ({type(error).__name__}: {error}); "
            "install the modules that the controllers import there"
        ) from None
    return unpacked


class _Tick:
    """Reports the progress of a job, and ends it when its batch was cancelled."""

    def __init__(self, worker: Any, topic: str) -> None:
        self.number = 0
        self.stopped = False
        self._worker, self._topic = worker, topic
        self._task = worker.state.tasks.get(worker.get_current_task())
        self._next = time.monotonic() + _REPORT_INTERVAL

    def __call__(self, fraction: float) -> bool:
        if self._task is not None and self._task.state == "cancelled":
            self.stopped = True
            raise KeyboardInterrupt
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + _REPORT_INTERVAL
            self._worker.log_event(self._topic, [self.number, fraction])
        return True
