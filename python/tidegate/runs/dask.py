"""The Dask engine: does runs on the workers of a scheduler, or in processes of this machine that Dask manages.

    with engine.using(Cluster("tcp://10.0.0.5:8786")):
        compare(["gcc", "nada"], seeds=100)

Jobs go out in batches of a second of work, some at a time, so that neither the scheduler nor this process holds
more than these. Objects that many jobs share are sent once to each worker (`_wire`). If a worker ends, its batch is
tried again on another one. A worker with different results is refused before its first job (`_remote.signature`).
"""

from __future__ import annotations

import contextlib
import logging
import math
import queue
import signal
import sys
import threading
import time
import uuid
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Self, TypeVar, Unpack

try:
    import dask.config
    import distributed
except ImportError as error:
    _absent: str | None = str(error)
else:
    _absent = None

from tidegate._signals import noted
from tidegate.errors import InputError, RunError
from tidegate.runs import pool
from tidegate.runs._interpreter import forget, safe_path, variables
from tidegate.runs._versions import version
from tidegate.runs.engine import How
from tidegate.runs.pool import Job

T = TypeVar("T")

_PATIENCE = 10.0  # seconds for a scheduler to answer, and for a first worker
_BATCH = 1.0  # seconds of work in a batch; the cost of a batch is less than a hundredth of it
_MAX_BATCH = 512  # jobs in a batch, so that messages of the scheduler stay small
_AHEAD = 2  # batches per thread: one that runs, and one that waits
_LOOK = 5.0  # seconds between updates of the list of workers
_LARGE = 16_384  # bytes from which on a shared object is a task of its own, which each worker gets once


class Cluster:
    """An engine: the workers of a Dask scheduler.

    Args:
        scheduler: Its address, such as `tcp://10.0.0.5:8786`, or a `distributed.Client`; by default processes of this
            machine (`LocalCluster`), which end with the `with` block.
        workers: Number of processes on this machine, without a scheduler; one per core by default.
        patience: Seconds for the scheduler to answer.

    Raises:
        InputError: when Dask is not installed, no scheduler answers, it has no worker, or a worker has other versions
            or other results.
    """

    def __init__(self, scheduler: Any = None, *, workers: int | None = None, patience: float = _PATIENCE) -> None:
        if _absent is not None:
            raise InputError(f'Dask is not installed here ({_absent}): pip install "tidegate[dask]"')
        self._patience = patience
        self._owned: list[Any] = []
        self._checked: set[str] = set()
        self.sent = 0
        """Bytes of jobs, and of the objects that they share, that were sent through Dask."""
        self.received = 0
        """Bytes of results."""
        self.batches = 0
        """Number of batches that were sent through Dask, a task each."""
        self.where = scheduler if isinstance(scheduler, str) else "this machine's cluster"
        try:
            with _quietly():
                self.client = self._connected(scheduler, workers)
                theirs = self.client.run_on_scheduler(distributed.versions.get_versions)
                _same_version("the scheduler", theirs["packages"]["distributed"])
                self.check_workers()
        except BaseException:
            self.close()
            raise

    def _connected(self, scheduler: Any, workers: int | None) -> Any:
        if isinstance(scheduler, distributed.Client):
            return scheduler
        address = scheduler
        if scheduler is None:
            # Ctrl-C reaches all processes of a terminal, but only this one handles it
            environment = {f"distributed.nanny.pre-spawn-environ.{name}": value for name, value in variables().items()}
            with safe_path(), _blocked(), dask.config.set(environment):
                address = distributed.LocalCluster(
                    n_workers=workers or pool.cores(),
                    threads_per_worker=1,
                    memory_limit=0,  # runs check their memory themselves (`scenario.memory`)
                    dashboard_address="127.0.0.1:0",
                    silence_logs=logging.CRITICAL,
                )
            # Dask sets the variables for its workers in this process, too
            forget()
            self._owned.append(address)
        if isinstance(address, str):
            try:
                distributed.comm.get_address_host_port(address, strict=True)
            except ValueError as error:
                right = "expected an address as `dask scheduler` prints it, such as tcp://10.0.0.5:8786"
                raise InputError(f"--scheduler {address}: {error}; {right}") from None
        try:
            client = distributed.Client(address, timeout=self._patience, set_as_default=False)
        except (OSError, ValueError, TimeoutError) as error:
            raise InputError(
                f"--scheduler {scheduler}: no Dask scheduler answers there within {self._patience:g} s "
                f"({str(error).splitlines()[0]}); `dask scheduler` starts one and prints its address"
            ) from None
        self._owned.append(client)
        return client

    def close(self) -> None:
        """Disconnects from the scheduler, and ends the processes that this engine started."""
        with _quietly():
            for resource in reversed(self._owned):
                with contextlib.suppress(OSError, TimeoutError):
                    resource.close()
        self._owned.clear()
        forget()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Disconnects from the scheduler."""
        self.close()

    def check_workers(self) -> None:
        """Checks that new workers give the same results as this machine.

        Raises:
            InputError: names the worker, its value, and the expected one.
        """
        try:
            self.client.wait_for_workers(1, timeout=self._patience)
        except (TimeoutError, OSError):
            raise InputError(
                f"{self.where}: no worker (waited {self._patience:g} s); `dask worker {self.address}` starts one"
            ) from None
        fresh = [
            worker for worker in self.client.scheduler_info(n_workers=-1)["workers"] if worker not in self._checked
        ]
        if not fresh:
            return
        for address, reply in self.client.run(_probe(), workers=fresh, on_error="return").items():
            if isinstance(reply, BaseException):
                if self._has_left(address):
                    continue  # like a worker that ends during a batch: others do its work
                raise InputError(f"worker {address}: no valid answer to the check of versions: {reply}")
            _same_version(f"worker {address}", reply["distributed"])
            if "lacks" in reply:
                raise InputError(
                    f"worker {address}: the worker has no tidegate with Dask ({reply['lacks']}); "
                    f'install the same version there: pip install "tidegate[dask]=={version()}"'
                )
            refuse(address, reply["signature"])
            self._checked.add(address)

    def _has_left(self, worker: str) -> bool:
        """Whether the scheduler drops a worker that did not answer; it may notice the end a moment later."""
        for _ in range(20):
            if worker not in self.client.scheduler_info(n_workers=-1)["workers"]:
                return True
            time.sleep(0.1)
        return False

    @property
    def address(self) -> str:
        """The scheduler's address."""
        return str(self.client.scheduler_info(n_workers=0)["address"])

    @property
    def workers(self) -> int:
        """Number of workers."""
        return len(self.client.nthreads())

    def run_all(self, jobs: Sequence[Job[T]], **how: Unpack[How]) -> list[T | BaseException]:
        """Does all jobs and returns their results in order; see [Engine][tidegate.runs.engine.Engine].

        The cluster decides how many go at once.
        """
        if not jobs:
            return []
        with noted() as asked, _quietly():
            self.check_workers()
            under_way = _UnderWay(self, jobs)
            try:
                return under_way.finish(asked, how)
            finally:
                under_way.end()


class _UnderWay:
    """State of a list of jobs that a cluster does."""

    def __init__(self, cluster: Cluster, jobs: Sequence[Job[Any]]) -> None:
        from tidegate.runs import _remote as remote
        from tidegate.runs import _wire as wire

        self._remote, self._wire = remote, wire
        self._cluster, self._client, self._jobs = cluster, cluster.client, jobs
        self._packer = wire.Packer()
        self._todo = deque(range(len(jobs)))
        """Numbers of the jobs to send; jobs of a batch that cannot be packed are sent alone."""
        self._batches: dict[Any, list[int]] = {}
        self._parts: dict[str, Any] = {}
        self._ended: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._alone: set[int] = set()
        self._suspects: deque[int] = deque()
        """Jobs whose workers ended too often, because of them or of jobs beside them."""
        self._watched = -1
        """Number of the suspect that runs alone; -1 for none."""
        self._outcomes: list[Any] = [None] * len(jobs)
        self._seconds = (0.0, 0)
        self._fractions: dict[int, float] = {}
        self._name = f"tidegate-{uuid.uuid4().hex[:12]}"
        self._submitted = 0
        self._threads, self._looked = 1, -math.inf
        self._client.subscribe_topic(self._name, self._hear)

    def _hear(self, event: tuple[float, Any]) -> None:
        number, fraction = event[1]
        self._fractions[int(number)] = float(fraction)

    def finish(self, asked: threading.Event, how: How) -> list[Any]:
        progress, keep, keep_going = how.get("progress"), how.get("keep"), how.get("keep_going")
        missing = len(self._jobs)
        while missing:
            for number, error in self._fill():
                missing -= 1
                self._outcomes[number] = error
                if not keep_going:
                    raise error
            failed = None
            for number, outcome in self._taken():
                missing -= 1
                self._fractions.pop(number, None)
                good = not isinstance(outcome, BaseException)
                self._outcomes[number] = keep(number, outcome) if good and keep is not None else outcome
                failed = failed or (None if good else outcome)
            if asked.is_set():
                raise KeyboardInterrupt
            if progress is not None:
                progress((len(self._jobs) - missing + sum(self._fractions.values())) / len(self._jobs))
            if failed is not None and not keep_going:
                raise failed
        if progress is not None:
            progress(1.0)
        return self._outcomes

    def _fill(self) -> Iterator[tuple[int, InputError]]:
        """Sends batches until all threads have work; yields the errors of jobs that cannot be sent."""
        if time.monotonic() - self._looked > _LOOK:
            self._threads = max(1, sum(self._client.nthreads().values()))
            self._looked = time.monotonic()
        while self._todo and len(self._batches) < _AHEAD * self._threads + 1:
            numbers = [self._todo.popleft() for _ in range(min(self._size(), len(self._todo)))]
            try:
                self._submit(numbers)
            except InputError as error:
                if len(numbers) > 1:
                    self._alone.update(numbers)
                    self._todo.extendleft(reversed(numbers))
                else:
                    yield numbers[0], error
        if self._suspects and not self._todo and not self._batches:
            self._watched = self._suspects.popleft()
            self._submit([self._watched])

    def _size(self) -> int:
        """Number of jobs in the next batch: a second of work, and less towards the end."""
        total, count = self._seconds
        if not count or self._todo[0] in self._alone:
            return 1
        share = math.ceil(len(self._todo) / (_AHEAD * self._threads))
        return max(1, min(_MAX_BATCH, share, round(_BATCH * count / max(total, 1e-6))))

    def _submit(self, numbers: list[int]) -> None:
        data, parts = self._packer.pack([(number, self._jobs[number]) for number in numbers])
        large = [name for name, part in parts.items() if len(part) >= _LARGE]
        for name in large:
            if name not in self._parts:
                self._cluster.sent += len(parts[name])
                # a task, not scattered data: if its worker ends, another one repeats it
                self._parts[name] = self._client.submit(
                    self._remote.part, parts[name], key=f"{self._name}-part-{name}", pure=False
                )
        small = {name: part for name, part in parts.items() if name not in self._parts}
        self._cluster.sent += len(data) + sum(map(len, small.values()))
        self._submitted += 1
        self._cluster.batches += 1
        future = self._client.submit(
            self._remote.work,
            data,
            small,
            large,
            [self._parts[name] for name in large],
            dict(self._remote.signature()),
            self._name,
            key=f"{self._name}-{self._submitted}",
            pure=False,
        )
        self._batches[future] = numbers
        future.add_done_callback(self._ended.put)

    def _taken(self) -> Iterator[tuple[int, Any]]:
        """Yields the jobs that end within a beat: their numbers, and their results or errors."""
        ended = [future for future in pool.taken(self._ended) if future in self._batches]
        good = [future for future in ended if future.status == "finished"]
        answers = self._gathered(good)
        for future in ended:
            if future not in answers and future.status not in {"error", "cancelled"}:
                # the worker with the answer ended before it was fetched: Dask repeats the batch
                future.add_done_callback(self._ended.put)
                continue
            numbers = self._batches.pop(future)
            if future not in answers:
                yield from self._lost(future, numbers)
                continue
            answer = answers[future]
            if isinstance(answer, self._remote.Refusal):
                refuse(answer.worker, answer.signature)
            for number, done in zip(numbers, answer, strict=True):
                self._cluster.received += len(done.outcome)
                self._seconds = (self._seconds[0] + done.seconds, self._seconds[1] + 1)
                yield number, self._wire.outcome_of(done.outcome)

    def _gathered(self, good: list[Any]) -> dict[Any, Any]:
        """Fetches the answers of finished batches: by one request, or one by one where that fails."""
        try:
            return dict(zip(good, self._client.gather(good), strict=True))
        except Exception:  # noqa: BLE001
            answers = {}
            for future in good:
                with contextlib.suppress(Exception):
                    answers[future] = future.result()
            return answers

    def _lost(self, future: Any, numbers: list[int]) -> Iterator[tuple[int, Any]]:
        """Handles a batch without an answer: yields its errors, or plans another try."""
        error = future.exception() if future.status == "error" else None
        if isinstance(error, distributed.KilledWorker):
            if numbers == [self._watched]:
                yield (
                    numbers[0],
                    RunError(
                        f"the run ended its worker {error.allowed_failures + 1} times, the last one "
                        f"{error.last_worker.address}: it used up the memory, or its controller ended the process"
                    ),
                )
                return
            # Dask suspects all jobs that waited on a worker that ended. When the other jobs are done, each suspect runs
            # alone, which shows the run that ends workers
            self._suspects.extend(numbers)
        elif isinstance(error, ModuleNotFoundError):
            raise InputError(f"a worker of {self._cluster.where}: {error}; install the same packages there as here")
        elif error is not None:
            for number in numbers:
                yield number, error if isinstance(error, RunError) else RunError(f"Dask: {error!r}")
        else:
            raise RunError(
                f"{self._cluster.where}: the scheduler ended, or cancelled the runs; run the same "
                "command again for the missing runs"
            )

    def end(self) -> None:
        """Removes all tasks from the cluster."""
        with contextlib.suppress(OSError, TimeoutError, RuntimeError):
            if self._batches:
                self._client.cancel(list(self._batches), force=True)
            self._client.unsubscribe_topic(self._name)
        self._batches.clear()
        self._parts.clear()


def refuse(worker: str, theirs: Mapping[str, str]) -> None:
    """Refuses a worker whose versions or results differ from this machine's.

    Raises:
        InputError: names the worker and both values.
    """
    from tidegate.runs import _remote as remote

    for aspect, ours in remote.signature().items():
        if theirs.get(aspect) != ours:
            raise InputError(
                f"worker {worker}: {aspect} is {theirs.get(aspect)}, and {ours} here: results would not be comparable; "
                "install the same wheel on both"
            )


def _same_version(process: str, theirs: str) -> None:
    if theirs != distributed.__version__:
        raise InputError(
            f"{process}: the version of distributed is {theirs}, and {distributed.__version__} here; "
            f"Dask needs the same version: pip install distributed=={distributed.__version__}"
        )


def _probe() -> Callable[[], dict[str, Any]]:
    """Makes the check of a worker; as an inner function it goes by value, since the worker may lack tidegate."""

    def probe() -> dict[str, Any]:
        import distributed as theirs

        facts: dict[str, Any] = {"distributed": theirs.__version__}
        try:
            from tidegate.runs._remote import signature
        except Exception as error:  # noqa: BLE001
            return {**facts, "lacks": f"{type(error).__name__}: {error}"}
        return {**facts, "signature": dict(signature())}

    return probe


@contextlib.contextmanager
def _quietly() -> Iterator[None]:
    """Silences Dask's own messages: this module reports errors."""
    logger = logging.getLogger("distributed")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        with warnings.catch_warnings(), dask.config.set({"distributed.admin.large-graph-warning-threshold": "1GB"}):
            warnings.filterwarnings("ignore", module=r"distributed\b")
            yield
    finally:
        logger.setLevel(before)


@contextlib.contextmanager
def _blocked() -> Iterator[None]:
    """Blocks Ctrl-C for processes and threads that start inside."""
    if sys.platform == "win32":
        yield
        return
    from multiprocessing import resource_tracker

    # its start unblocks Ctrl-C in this thread, so it starts before the block
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
