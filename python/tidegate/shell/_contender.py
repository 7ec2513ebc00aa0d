"""A program as a contender: it makes the call of a scenario, beside simulated controllers in the same table."""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import tempfile
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from tidegate._files import sha256
from tidegate.control.registry import PROGRAM
from tidegate.errors import InputError, RunError
from tidegate.runs import Run, RunJob
from tidegate.scenario import Scenario, memory
from tidegate.scenario.lower import lower
from tidegate.shell._files import FOLDER_PREFIX, OUTPUT, SHARED
from tidegate.shell._judging import Lateness, verdict
from tidegate.shell._network import SIDES
from tidegate.shell._scenario import Standing, standing_for
from tidegate.shell.entering import alive
from tidegate.shell.sessions import FILES, Programs, begin, check_environment, replay, search_path
from tidegate.units import show

AGAIN = 3
"""Times that a noisy session is repeated at most; if all are noisy, the one whose packets were the least late is
kept."""
_EARLY = 1.0
"""Seconds before its call ends in which a program may end by itself."""
_OVERHEAD = 2.0
"""Seconds that a session takes beside its scenario: to begin, to end, and for its replay."""
_FASTER = 50.0
"""Seconds that are simulated in one second, roughly; only for the progress."""
_BEAT = 0.2
"""Seconds between two looks at the clock, for the progress."""

Tell = Callable[[float], None]


@dataclass(frozen=True)
class Contender:
    """A program that takes part in comparisons, as `program:COMMAND`."""

    label: str
    """The name that the user gave it."""
    argv: tuple[str, ...]
    """The program and its arguments."""

    @classmethod
    def of(cls, label: str) -> Self:
        """Parses `program:COMMAND`; a shell's quotes have their meaning there, and no other syntax of a shell has.

        Raises:
            InputError: when there is no such program, or no command.

        >>> Contender.of("program:sh -c 'sleep 1'").argv
        ('sh', '-c', 'sleep 1')
        """
        right = 'expected a program with its arguments, such as "program:node call.js"'
        try:
            argv = shlex.split(label.removeprefix(PROGRAM))
        except ValueError as error:
            raise InputError(f"{label}: {error}; {right}") from None
        if not argv or "\0" in label:
            raise InputError(f"{show(label)}: found no command; {right}")
        if shutil.which(argv[0], path=search_path()) is None:
            file = Path(argv[0])
            why = "the file cannot be executed" if file.exists() else "the program does not exist"
            if file.is_file():
                why += "; chmod +x makes it executable"
            raise InputError(f"{label}: {argv[0]}: {why}")
        return cls(label, tuple(argv))

    @property
    def content(self) -> str:
        """Hash of all that its runs depend on: its words, and the contents of those that are files."""
        parts = []
        for word in (shutil.which(self.argv[0], path=search_path()) or self.argv[0], *self.argv[1:]):
            file = Path(word)
            parts.append(f"{word} {sha256(file)}" if file.is_file() else word)
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()


@dataclass(frozen=True)
class LiveJob:
    """One session of a program in place of a call, and its run."""

    contender: Contender
    """The program."""
    standing: Standing
    """The scenario with its links."""
    seed: int
    """Seed of all random numbers."""
    record: str | None = None
    """Level of recording, instead of the scenario's."""

    @classmethod
    def of(cls, label: str, scenario: Scenario, call: str, seed: int, record: str | None = None) -> Self:
        """The session of a program as the call of that name.

        Raises:
            InputError: when there is no such program, or it cannot be that call.
        """
        return cls(Contender.of(label), standing_for(scenario, call), seed, record)

    @property
    def seconds(self) -> float:
        """Time that it takes if it is quiet, s."""
        return int(self.standing.live.duration) / 1e9 + _OVERHEAD

    def __call__(self, tell: Tell | None = None) -> Run:
        """Runs the session, repeats it while it is noisy, and replays it in virtual time.

        Raises:
            InputError: when a program cannot be started.
            RunError: when a program fails, ends early or sends nothing, or the machine is too slow.
            KeyboardInterrupt: when the user interrupts it.
        """
        best = self._hold(tell)
        tries = 1
        while best.against and tries <= AGAIN:
            best = min(best, self._hold(tell), key=lambda held: held.judged)
            tries += 1
        return self._run(best, tries)

    def _hold(self, tell: Tell | None) -> _Held:
        """Runs the session once."""
        folder = _Folder()
        path = folder.path
        (path / SHARED).mkdir()
        live, argv = self.standing.live, self.contender.argv
        memory.check(lower(live, seed=self.seed, record="summary"))
        stop = None if self.standing.stop is None else int(self.standing.stop) / 1e9
        with _ticking(tell, self.seconds):
            about = begin(
                path,
                live,
                Programs(argv, argv),
                self.seed,
                sides=self.standing.sides,
                times=(int(self.standing.start) / 1e9, stop),
                variables={"TIDEGATE_SEED": str(self.seed), "TIDEGATE_FOLDER": str(path / SHARED)},
            )
        if about["interrupted"]:
            raise KeyboardInterrupt
        held = _Held(folder, about)
        self._check(held)
        return held

    def _check(self, held: _Held) -> None:
        about, label = held.about, self.contender.label
        if about["why"] == "behind":
            right = "expected a scenario with less traffic, or a faster or less busy machine"
            raise RunError(
                f"this machine is too slow for the session: the model fell a second behind the clock; {right}"
            )
        end = int(self.standing.stop or self.standing.live.duration) / 1e9
        for name, program in about["programs"].items():
            status, ended = program["status"], program["ended_s"]
            if program["stopped"] or status is None or (status == 0 and ended is not None and ended > end - _EARLY):
                continue
            how = f"ended with exit code {status}" if status >= 0 else f"was killed by signal {-status}"
            when = "" if ended is None else f" after {ended:.1f} s of {end:g} s"
            right = "" if status else "; expected a program that runs until SIGTERM"
            raise RunError(f"{label}: the program at side {name} {how}{when}{right}; {held.last_words(name)}")
        if not held.sent:
            raise RunError(f"{label}: side A sent nothing to 10.77.0.2 (TIDEGATE_PEER); {held.last_words('A')}")

    def _run(self, held: _Held, tries: int) -> Run:
        """The run of a session, under the name and with the columns of a simulated one."""
        standing, label = self.standing, self.contender.label
        run, differs = replay(held.path, standing.live, seed=self.seed, record=self.record)
        about = held.about
        details = {
            "program": list(self.contender.argv),
            "verdict": "noisy" if held.against else "quiet",
            "against": held.against,
            "sessions": tries,
            "lateness": about["lateness"],
            "clamped_by": about["clamped_by"],
            "packets": about["packets"],
            "replay_differs": differs,
        }
        warnings = list(run.summary.get("warnings", ()))
        if held.against:
            why = f"seed {self.seed} is noisy in all {tries} sessions: {'; '.join(held.against)}"
            warnings.append({"key": label, "says": f"{why}. Its numbers depend on the load of this machine"})
        if differs is not None:
            warnings.append({"key": label, "says": f"seed {self.seed}: the replay differs from the session: {differs}"})
        call, back = standing.sides
        flows = {flow["flow"]: dict(flow) for flow in run.summary["flows"]}
        for name in standing.sides:
            # only an endpoint knows these, and programs do not report them
            flows[name] |= {"controller": label, **dict.fromkeys(_UNKNOWN)}
        if flows[back]["kind"] == "external":
            flows[call]["feedback_rate_bps"] = flows[back]["sending_rate_bps"]
        summary = {**run.summary, "flows": list(flows.values()), "warnings": warnings}
        return run.with_files(held.path, held.files, {"summary": summary, "session": details}, held)


_UNKNOWN = ("discarded_late", "feedback_rate_bps", "feedback_overhead", "convergence_time_s")


class _Folder:
    """A temporary folder that lasts as long as this object is referenced, at most as long as the process."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix=f"{FOLDER_PREFIX}{os.getpid()}-"))
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


class _Held:
    """A session that is over; its folder lasts as long as this object is referenced."""

    def __init__(self, folder: _Folder, about: Mapping[str, Any]) -> None:
        self._folder = folder
        self.path = folder.path
        self.about = about
        self.against = verdict(about)[1]

    @property
    def judged(self) -> tuple[bool, float]:
        """Key for comparing sessions: the lower, the less late its packets were."""
        return bool(self.against), Lateness(**self.about["lateness"]).p99_ms or 0.0

    @property
    def sent(self) -> bool:
        """Whether side A sent a packet."""
        with (self.path / FILES[0]).open(encoding="utf-8") as file:
            column = next(file).strip().split(",").index("from")
            return any(line.split(",", column + 1)[column] == "A" for line in file)

    @property
    def files(self) -> list[str]:
        """Files to keep, relative to its folder: its records, the output of programs, and files that they left."""
        names = [*FILES, *(OUTPUT.format(name) for name in SIDES)]
        outputs = (self.path / SHARED).rglob("*")
        names += sorted(file.relative_to(self.path).as_posix() for file in outputs if _is_regular(file))
        return [name for name in names if (self.path / name).is_file()]

    def last_words(self, side: str) -> str:
        """The last line that a program has printed."""
        try:
            with (self.path / OUTPUT.format(side)).open("rb") as file:
                file.seek(max(0, file.seek(0, os.SEEK_END) - 4096))
                lines = file.read().decode(errors="replace").split("\n")
        except OSError:
            lines = []
        printed = [line.strip() for line in lines if line.strip()]
        return f"the program printed last: {show(printed[-1][:200])}" if printed else "the program printed nothing"


def _is_regular(file: Path) -> bool:
    # a link could point anywhere, and sockets and pipes of programs cannot be copied
    return file.is_file() and not file.is_symlink()


@contextmanager
def _ticking(tell: Tell | None, seconds: float) -> Iterator[None]:
    """A context that reports the fraction of `seconds` that is over, as long as it is open."""
    over = threading.Event()

    def run(tell: Tell) -> None:
        waited = 0.0
        while not over.wait(_BEAT):
            waited += _BEAT
            tell(min(1.0, waited / seconds))

    if tell is not None:
        threading.Thread(target=run, args=(tell,), daemon=True).start()
    try:
        yield
    finally:
        over.set()


def attempt(
    jobs: Sequence[LiveJob], tell: Tell | None = None, keep: Callable[[int, Run], Any] = lambda _, run: run
) -> list[Any]:
    """Runs the sessions one after the other, with nothing else at the same time; a failed one gives its error.

    Args:
        jobs: The sessions.
        tell: Called with the fraction that is done.
        keep: Called with the number of a session and its run when it is over; its result stands for the run.

    Raises:
        InputError: when this machine cannot run sessions.
        KeyboardInterrupt: when the user interrupts them.
    """
    done: list[Any] = []
    if jobs:
        check_environment()
        _clear_leftovers()
    total = sum(job.seconds for job in jobs)
    before = 0.0
    for number, job in enumerate(jobs):
        share = job.seconds / total

        def tell_all(part: float, share: float = share, before: float = before) -> None:
            if tell is not None:
                tell(before + share * part)

        try:
            done.append(keep(number, job(tell_all)))
        except (RunError, InputError) as error:
            done.append(error)
        before += share
        tell_all(1.0)
    return done


def _clear_leftovers() -> None:
    """Removes the session folders of processes that were killed."""
    for folder in Path(tempfile.gettempdir()).glob(f"{FOLDER_PREFIX}*-*"):
        with suppress(OSError):
            pid = folder.name.removeprefix(FOLDER_PREFIX).partition("-")[0]
            mine = folder.lstat().st_uid == os.getuid() and not folder.is_symlink()
            if mine and pid.isdecimal() and not alive(int(pid)):
                shutil.rmtree(folder, ignore_errors=True)


def beside(tell: Tell | None, jobs: Sequence[RunJob], sessions: Sequence[LiveJob]) -> tuple[Tell | None, Tell | None]:
    """Splits one progress into those of simulations and of sessions after them, in proportion to their times."""
    if tell is None or not sessions:
        return tell, tell
    tell_all = tell
    simulated = sum(int(job.simulated.duration) for job in jobs) / 1e9 / _FASTER
    share = simulated / (simulated + sum(job.seconds for job in sessions))
    return lambda part: tell_all(share * part), lambda part: tell_all(share + (1 - share) * part)


def how_long(jobs: Sequence[LiveJob]) -> str:
    """The number of sessions and the time that they take, as a sentence."""
    seconds = round(sum(job.seconds for job in jobs))
    sessions = "1 session" if len(jobs) == 1 else f"{len(jobs)} sessions, one after the other,"
    verb = "takes" if len(jobs) == 1 else "take"
    return f"{sessions} of programs in real time {verb} about {_long(seconds)}, and more if a noisy session is repeated"


def _long(seconds: int) -> str:
    return f"{seconds} s" if seconds < 120 else f"{seconds // 60} min {seconds % 60} s"  # noqa: PLR2004
