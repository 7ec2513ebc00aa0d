"""From what people write to what the engine takes: base units, no defaults left, files read."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any

from tidegate.errors import InputError
from tidegate.scenario import population
from tidegate.scenario.model import lowered
from tidegate.scenario.reading import Files, Inputs, Reading

if TYPE_CHECKING:
    from tidegate.scenario.scenario import Scenario

Ir = dict[str, Any]


@dataclass(frozen=True)
class RunInput:
    """What the engine takes for one run."""

    ir: Ir
    """The scenario with its seed, in base units; see `crates/sim/src/scenario`."""
    inputs: Inputs
    """What it needs beside that."""
    hash: str
    """Of everything that the run's result depends on but its seed; hexadecimal."""


class Lowered:
    """A scenario as the engine takes it, with the files that it names read: once for all seeds.

    Runs in threads share it. Another process gets the scenario alone and reads the files itself, once for all runs
    that it does of this object.

    Args:
        scenario: What is to be run.
        files: What has been read for others; by default all is read anew.
        run_code: Whether Python modules that the scenario names may be imported, which runs them; without that it can
            be checked, and not run.

    Raises:
        InputError: when a file or a controller that the scenario names is not usable.
    """

    def __init__(self, scenario: Scenario, files: Files | None = None, *, run_code: bool = True) -> None:
        self.scenario = scenario
        self._key = f"{os.getpid()} {next(_numbers)}"
        self._parts: tuple[Ir, Inputs] | None = _lower(scenario, files or Files(), run_code=run_code)
        self._hashes: dict[str, str] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        """How it goes to another process: without what was read."""
        return _in_this_process, (self._key, self.scenario)

    @classmethod
    def of_parts(cls, scenario: Scenario, ir: Ir, inputs: Inputs) -> Lowered:
        """What [parts][tidegate.scenario.lower.Lowered.parts] gave somewhere else: no file is read."""
        return _of_parts(scenario, f"{os.getpid()} {next(_numbers)}", (ir, inputs))

    @property
    def parts(self) -> tuple[Scenario, Ir, Inputs]:
        """The scenario, what the engine takes without seed and level, and what it needs beside that."""
        return (self.scenario, *self._lowered())

    @property
    def inputs(self) -> Inputs:
        """What its runs need beside their settings."""
        return self._lowered()[1]

    def _lowered(self) -> tuple[Ir, Inputs]:
        if self._parts is None:
            self._parts = _lower(self.scenario, Files(), run_code=True)
        return self._parts

    def for_run(self, *, seed: int | None = None, record: str | None = None) -> RunInput:
        """What the engine takes for one run.

        Args:
            seed: Instead of the scenario's.
            record: How much is kept, instead of the scenario's.

        Raises:
            InputError: when they are not usable, or nobody is in the scenario's radio network.
        """
        if seed is not None:
            check_seed("seed", seed)
        if record not in {None, "summary", "series", "packets"}:
            raise InputError(f"record: found {record!r}; expected summary, series or packets")
        scenario, (ir, inputs) = self.scenario, self._lowered()
        ir = {
            **ir,
            "seed": scenario.seed if seed is None else int(seed),
            "record": {**ir["record"], "level": record or scenario.record},
        }
        level = ir["record"]["level"]
        if level not in self._hashes:
            self._hashes[level] = _hash(ir, inputs, scenario)
        return RunInput(_populated(ir, scenario) if scenario.radios else ir, inputs, self._hashes[level])


def check_seed(where: str, seed: object) -> None:
    """Whether `seed` is one; in a notebook it may be anything.

    Raises:
        InputError: when it is none.
    """
    if isinstance(seed, bool) or not isinstance(seed, Integral) or not 0 <= int(seed) < 2**64:
        raise InputError(f"{where}: found {seed!r}; expected a whole number from 0 to 2^64 - 1")


_numbers = itertools.count()
_known: dict[str, Lowered] = {}
_KEPT = 8  # scenarios whose files a process keeps for the next run: runs of one scenario come one after the other


def _in_this_process(key: str, scenario: Scenario) -> Lowered:
    """What another process calls `key`; reads its files when they are needed, so that an error is one of the run."""
    found = _known.pop(key, None)
    if found is None:
        found = _of_parts(scenario, key, None)
    _known[key] = found
    while len(_known) > _KEPT:
        del _known[next(iter(_known))]
    return found


def _of_parts(scenario: Scenario, key: str, parts: tuple[Ir, Inputs] | None) -> Lowered:
    made = Lowered.__new__(Lowered)
    made.scenario, made._key, made._parts, made._hashes = scenario, key, parts, {}  # noqa: SLF001
    return made


def lower(scenario: Scenario, *, seed: int | None = None, record: str | None = None, run_code: bool = True) -> RunInput:
    """What the engine takes for one run of a scenario.

    For several runs see [Lowered][tidegate.scenario.lower.Lowered].

    Raises:
        InputError: when a file or a controller that it names is not usable.
    """
    return Lowered(scenario, run_code=run_code).for_run(seed=seed, record=record)


def _lower(scenario: Scenario, files: Files, *, run_code: bool) -> tuple[Ir, Inputs]:
    reading = Reading(scenario, files, run_code=run_code)
    ir: Ir = {
        "name": scenario.name,
        "duration": int(scenario.duration),
        "warmup": int(scenario.warmup),
        "seeds": [[name, value] for name, value in scenario.seeds.items()],
        "record": {"bin": int(scenario.bin), "capture": scenario.capture},
        "sending_jitter": lowered(scenario.sending_jitter, reading),
        "links": [one for link in scenario.links for one in link.to_ir(reading)],
        "flows": [one for flow in scenario.flows for one in flow.to_ir(reading)],
    }
    for key in ("couplings", "moves", "sessions"):
        if entries := getattr(scenario, key):
            ir[key] = lowered(entries, reading)
    return ir, reading.inputs


def _hash(ir: Ir, inputs: Inputs, scenario: Scenario) -> str:
    # who is in a radio network when depends on the seed; the hash is of what it depends on beside it
    plain = {**ir, **{key: getattr(scenario, key).model_dump(mode="json") for key in scenario.radios}}
    plain = {key: value for key, value in plain.items() if key not in {"seed", "name"}}
    text = json.dumps([plain, sorted(inputs.files.values())], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _populated(ir: Ir, scenario: Scenario) -> Ir:
    """With the users of the radio network, and a flow for each where a flow is theirs."""
    groups = population.population(scenario, ir["seed"])
    end = int(scenario.duration)
    flows = [flow for one in ir["flows"] for flow in population.flows_of(one, groups, end)]
    names: set[str] = set()
    for flow in flows:
        if flow["name"] in names:
            raise InputError(f'flows: two are called "{flow["name"]}"; one of a user is called after its number')
        names.add(flow["name"])
    if not names:
        raise InputError("flows: nobody whom a flow is for comes before the run's end")
    radios = [population.lower_radio(radio, groups) for radio in scenario.radios.values()]
    return {**ir, "radios": radios, "flows": flows}
