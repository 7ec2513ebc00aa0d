"""A run that is stepped, inspected and changed interactively, and the scenario that repeats it."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tidegate import _core
from tidegate._core import Table
from tidegate._files import write_file
from tidegate.errors import InputError, ScenarioError, located
from tidegate.output.progress import progress_bar
from tidegate.runs.jobs import run_of
from tidegate.runs.result import Run
from tidegate.scenario import Scenario, memory, moves
from tidegate.scenario.assembling import engine_errors
from tidegate.scenario.lower import Lowered
from tidegate.units import Duration, Fraction, Rate, Size

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tidegate.runs.pool import Progress
    from tidegate.scenario.links import Mtu, Queue
    from tidegate.scenario.model import Model
    from tidegate.scenario.scenario import Level

_SECOND = 1_000_000_000
_LONGEST = 1e9  # seconds; a scenario may not last longer either
_MAX_MOVES = 10_000  # of a scenario
_SLICES = 100  # of a step; the bar is updated after each


class LiveWorld:
    """A running scenario: it advances when it is stepped, and its links may be changed at any time.

    Each change is stored in the scenario as one of its `moves`, and is applied before all other events at its time. So
    `scenario` contains all changes, and running it reproduces this run bit for bit. Any link can be changed except
    external links, links with a table of statuses, and radio networks. Controllers in Python work as usual.

    Created by [live_world][tidegate.runs.world.live_world].

    >>> import tidegate
    >>> world = tidegate.live_world("home-broadband")
    >>> world.step(seconds=10)
    >>> world.change("uplink", capacity="500kbps", loss="1%")
    >>> world.step(until="12s")
    >>> world.now, world.table("series").columns[:2]
    (12.0, ['t_s', 'flow'])
    >>> world.metrics()["packets_sent"] > 1000
    True
    >>> run = world.finish()
    >>> run.digest == tidegate.run(world.scenario).digest
    True
    """

    def __init__(self, scenario: Scenario, record: Level | None) -> None:
        """Use [live_world][tidegate.runs.world.live_world]."""
        run_input = Lowered(scenario).for_run(record=record)
        # managed links can be changed, and give the same bits
        links = [
            link if link["capacity"] == "external" else {**link, "service": "managed"} for link in run_input.ir["links"]
        ]
        memory.check(run_input)
        with engine_errors(scenario):
            core = _core.World(
                json.dumps({**run_input.ir, "links": links}), run_input.inputs.traces, run_input.inputs.python
            )
        if core.links or core.flows:
            kind, name = ("links", core.links[0]) if core.links else ("flows", core.flows[0])
            right = "needs a driver; run this scenario inside tidegate.simpy"
            raise InputError(f"{scenario.name}: {kind}.{name} is external and {right}")
        self._scenario = scenario
        self._moves: list[dict[str, Any]] = [*scenario.to_dict().get("moves", [])]
        self._included = len(self._moves)
        self._record = record
        self._input = run_input
        self._links = [str(link["name"]) for link in links]
        self._core = core
        self._run: Run | None = None
        self._by_hand = moves.ByHand(scenario)

    @property
    def scenario(self) -> Scenario:
        """The scenario, with all past and planned changes as its moves."""
        if self._included < len(self._moves):
            self._scenario = self._scenario.with_changes({"moves": self._moves})
            self._included = len(self._moves)
        return self._scenario

    @property
    def now(self) -> float:
        """Current time, in seconds: all earlier events are done."""
        return self.duration if self._run is not None else self._nanoseconds() / _SECOND

    @property
    def duration(self) -> float:
        """Simulated time of the whole run, in seconds."""
        return self._core.duration_ns / _SECOND

    @property
    def links(self) -> list[str]:
        """Names of its links, each in one direction."""
        return list(self._links)

    def step(
        self,
        seconds: float | None = None,
        *,
        until: Duration | str | float | None = None,
        progress: Progress | bool | None = None,
    ) -> None:
        """Advances the simulation, at most to the end of the scenario; events at the stop time are not yet processed.

        Args:
            seconds: Length of the step: seconds, or text with a unit.
            until: The time to stop at, instead of `seconds`: text with a unit, or seconds on the same clock as `now`.
            progress: True for a bar, or a function that is called with the fraction of this step that is done.

        Ctrl-C stops at the current time, from which the simulation can continue. While a controller in Python runs,
        Ctrl-C is raised inside it, and the simulation cannot continue.

        Raises:
            InputError: when the time is invalid, or the simulation has finished.
            RunError: when a component fails; the simulation cannot continue.
        """
        if (seconds is None) == (until is None):
            stated = "neither" if until is None else "both"
            raise InputError(f"step: found {stated} of seconds and until; expected one of them")
        begin = self._nanoseconds()
        if seconds is not None:
            end = begin + _nanoseconds("seconds", seconds)
        else:
            end = _nanoseconds("until", until)
            if end < begin:
                raise InputError(f"until: found {end / _SECOND:g} s; the run is at {begin / _SECOND:g} s already")
        end = min(end, self._core.duration_ns)
        with progress_bar(progress, self._scenario.name) as tell, engine_errors(self._scenario):
            for slice_number in range(1, _SLICES + 1) if tell else [_SLICES]:
                self._core.step(begin + (end - begin) * slice_number // _SLICES)
                if tell:
                    tell(slice_number / _SLICES)

    def change(
        self,
        link: str,
        *,
        at: Duration | str | float | None = None,
        capacity: Rate | str | None = None,
        delay: Duration | str | None = None,
        loss: Fraction | float | str | Mapping[str, Any] | Model | None = None,
        jitter: str | Mapping[str, Any] | Model | None = None,
        byte_error: Fraction | float | str | None = None,
        ecn: str | None = None,
        netem: str | None = None,
        mtu: Size | str | Mapping[str, Any] | Mtu | None = None,
        queue: Mapping[str, Any] | Queue | None = None,
        discipline: str | Mapping[str, Any] | Model | None = None,
    ) -> None:
        """Changes a link from a time on; other properties stay. All values are as in a file.

        Args:
            link: Its name; `NAME.back` is the other direction.
            at: Time of the change: text with a unit, or seconds as `now` has them; now by default, and not earlier.
            capacity: New capacity, which also replaces a schedule or a trace. The remaining bits of a packet in service
                go at the new rate; 0bps holds the packet.
            delay: Propagation delay of packets served from then on; they keep their order.
            loss: Loss of packets served from then on.
            jitter: Jitter of packets served from then on.
            byte_error: Probability that a byte of packets served from then on is damaged.
            ecn: Treatment of ECN of packets served from then on.
            netem: Options of the network emulator in the words of tc, for packets that come to it from then on.
            mtu: Size of the largest IP packet from then on, or a table with `bytes` and `too_big`.
            queue: Limits of the queue. Waiting packets that do not fit are dropped.
            discipline: Queue discipline, into which waiting packets come in the order in which they came to the link.

        Raises:
            InputError: when there is no such link or it cannot be changed, the time is past or behind the end, a value
                is not usable, or the world has finished. The world is unchanged then.
        """
        time = self._time(link, at)
        changes = self._by_hand.moves(
            link,
            Duration(time),
            capacity=capacity,
            delay=delay,
            loss=loss,
            jitter=jitter,
            byte_error=byte_error,
            ecn=ecn,
            netem=netem,
            mtu=mtu,
            queue=queue,
            discipline=discipline,
        )
        if len(self._moves) + len(changes) > _MAX_MOVES:
            right = f"a scenario has at most {_MAX_MOVES} moves"
            raise InputError(f"{link}: found {len(self._moves)} changes before this one; {right}")
        with engine_errors(self._scenario):
            self._core.plan(link, time, self._by_hand.to_ir(changes))
        self._moves += (move.to_dict() for move in changes)

    def change_call(
        self,
        flow: str,
        *,
        at: Duration | str | float | None = None,
        path: Sequence[str] | None = None,
        signalled: bool = True,
        max_rate: Rate | str | None = None,
        min_rate: Rate | str | None = None,
        video_max: Rate | str | None = None,
        repair: bool | None = None,
    ) -> None:
        """Changes a call from a time on; all values are as those of moves in a file.

        Args:
            flow: Name of its flow; `NAME.back` is what a call in both directions sends back.
            at: Time of the change: text with a unit, or seconds as `now` has them; now by default, and not earlier.
            path: Links that it takes from then on, from the flow's beginning to its end; what comes back takes their
                other directions.
            signalled: Whether its ends hear of the new path, and begin anew.
            max_rate: Largest target that its controller may set.
            min_rate: Smallest target that its controller may set.
            video_max: Highest rate of its encoder, of which the controller hears as of less to send.
            repair: Whether the repair that it has goes on.

        Raises:
            InputError: when there is no such call, the time is past or behind the end, a value is not usable, or the
                world has finished. The world is unchanged then.
        """
        time = self._time(flow, at)
        limits = {"max_rate": max_rate, "min_rate": min_rate, "video_max": video_max, "repair": repair}
        path = None if path is None else list(path)
        changes = self._by_hand.of_call(flow, Duration(time), path=path, signalled=signalled, **limits)
        moves = [*self._moves, *(move.to_dict() for move in changes)]
        try:
            self._scenario.with_changes({"moves": moves})
        except ScenarioError as error:
            raise InputError(f"{flow}: {error}") from None
        with engine_errors(self._scenario):
            self._core.plan_call(flow, time, self._by_hand.call_to_ir(changes))
        self._moves = moves

    def _time(self, subject: str, at: Duration | str | float | None) -> int:
        """The time of a change in nanoseconds.

        Raises:
            InputError: when it is past or behind the end.
        """
        now = self._nanoseconds()
        time = now if at is None else _nanoseconds("at", at)
        if not now <= time <= self._core.duration_ns:
            right = f"from {now / _SECOND:g} s (now) to the end of the run at {self.duration:g} s"
            raise InputError(f"{subject}: at: found {time / _SECOND:g} s; expected a time {right}")
        return time

    @property
    def tables(self) -> list[str]:
        """Names of the recorded tables."""
        return self._run.tables if self._run is not None else self._core.table_names()

    def table(self, name: str) -> Table:
        """A recorded table so far, as a [run][tidegate.runs.Run.table] has it; the last bin may still be filled.

        Raises:
            KeyError: when there is no table of that name; lists the names that there are.
        """
        return self._so_far().table(name)

    def metrics(self, flow: str | None = None) -> Mapping[str, Any]:
        """The metrics of a flow as if the run ended now; of the subject by default.

        They leave out a freeze that still lasts and speech that is incomplete.

        Raises:
            InputError: when there is no such flow.
        """
        return self._so_far().metrics(flow)

    def save(self, path: str | Path) -> Path:
        """Writes the scenario to a TOML file, with each change so far as a timed move; completely or not at all.

        `tidegate run` of the file has the same digest as this world after `finish`.

        Raises:
            InputError: when the scenario names files relative to its folder, and `path` is in another folder.
            OutputError: when the file cannot be written.
        """
        path, base = Path(path), self._scenario.base
        named = [name for name in self._input.inputs.files if not Path(name).is_absolute() and (base / name).is_file()]
        if named and path.parent.resolve() != base.resolve():
            raise InputError(f"{path}: the scenario names {named[0]}, which is in {base.resolve()}; save it there")
        write_file(path, self.scenario.to_toml())
        return path

    def finish(self, *, progress: Progress | bool | None = None) -> Run:
        """Runs to the end; returns the [Run][tidegate.runs.Run] of the scenario with all changes.

        Args:
            progress: True for a bar, or a function that is called with the fraction of the rest that is done.

        Raises:
            RunError: when a component fails.
        """
        if self._run is None:
            self.step(until=self.duration, progress=progress)
            with engine_errors(self._scenario):
                recording = self._core.finish()
            run_input = Lowered(self.scenario).for_run(record=self._record)
            self._run = run_of(self.scenario, run_input, recording)
        return self._run

    def _nanoseconds(self) -> int:
        with engine_errors(self._scenario):
            return self._core.reached_ns

    def _so_far(self) -> Run:
        if self._run is not None:
            return self._run
        with engine_errors(self._scenario):
            summary = json.loads(self._core.summary_json())
        about = {
            "name": self._scenario.name,
            "seed": self._input.ir["seed"],
            "digest": summary["digest"],
            "summary": summary,
        }
        return Run(about, _Tables(self._core))

    def __repr__(self) -> str:
        try:
            where = f"at {self.now:g} s of {self.duration:g}"
        except InputError:
            where = "stopped with an error"
        return f"<tidegate LiveWorld of {self._scenario.name}, {where}>"


class _Tables:
    """The current tables of a world."""

    def __init__(self, core: _core.World) -> None:
        self.names = core.table_names
        self.get = core.table


def live_world(scenario: Scenario | str | Path, seed: int | None = None, record: Level | None = None) -> LiveWorld:
    """Builds the world of a scenario, which is then stepped, inspected and changed interactively.

    Args:
        scenario: A scenario, or the path or name of one.
        seed: Instead of the scenario's.
        record: Level of recording, instead of the scenario's: summary, series or packets.

    Raises:
        InputError: when the scenario is not usable, or has external links or flows.

    >>> import tidegate
    >>> world = tidegate.live_world("home-broadband", seed=3)
    >>> for capacity in ("4Mbps", "1Mbps", "300kbps"):
    ...     world.change("uplink", capacity=capacity)
    ...     world.step(seconds=5)
    >>> [str(move.value) for move in world.scenario.moves]
    ['4Mbps', '1Mbps', '300kbps']
    """
    loaded = scenario if isinstance(scenario, Scenario) else Scenario.load(scenario)
    changes: dict[str, Any] = {}
    if seed is not None:
        changes["seed"] = seed
    if record is not None:
        changes["record"] = record
    return LiveWorld(loaded.with_changes(changes) if changes else loaded, record)


def _nanoseconds(name: str, value: object) -> int:
    """Converts a time to whole nanoseconds: text with a unit, or seconds.

    Raises:
        InputError: when it is neither, is negative, or is longer than any run.
    """
    if isinstance(value, str):
        with located(name):
            nanoseconds = int(Duration.parse(value))
    elif isinstance(value, Duration):
        nanoseconds = int(value)
    elif isinstance(value, int | float) and not isinstance(value, bool | Rate | Fraction):
        if not (math.isfinite(value) and abs(value) <= _LONGEST):
            raise InputError(f"{name}: found {value}; expected a number of seconds up to 1e9")
        nanoseconds = round(value * _SECOND)
    else:
        raise InputError(f'{name}: found {value!r}; expected text with a unit, such as "20ms", or seconds')
    if not 0 <= nanoseconds <= _LONGEST * _SECOND:
        raise InputError(f"{name}: found {value}; expected a time from 0 to 1e9 s")
    return nanoseconds
