"""Turns scenarios into the engine's input: values in base units, defaults filled in, files loaded."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any

from tidegate.errors import InputError
from tidegate.scenario import couplings, moves, population
from tidegate.scenario.model import lowered
from tidegate.scenario.reading import Files, Inputs, Reading

if TYPE_CHECKING:
    from tidegate.scenario.scenario import Scenario

Ir = dict[str, Any]


@dataclass(frozen=True)
class RunInput:
    """The engine's input for one run."""

    ir: Ir
    """The scenario with its seed, in base units; see `crates/sim/src/scenario`."""
    inputs: Inputs
    """Recorded networks, controllers and files that the run needs."""
    hash: str
    """Hexadecimal hash of everything but the seed that the run's result depends on."""


class Lowered:
    """A scenario translated ("lowered") into the engine's input, with its files loaded once for all seeds.

    Runs in threads share the object. Another process gets only the scenario, and loads the files once for all runs of
    this object.

    Args:
        scenario: The scenario to run.
        files: Files that were loaded for other scenarios; by default each is loaded anew.
        run_code: Whether Python modules that the scenario names may be imported, which runs them; if not, it can be
            checked, but not run.

    Raises:
        InputError: when a file or a controller that the scenario names is not usable.
    """

    def __init__(self, scenario: Scenario, files: Files | None = None, *, run_code: bool = True) -> None:
        self.scenario = scenario
        self._key = f"{os.getpid()} {next(_numbers)}"
        self._parts: tuple[Ir, Inputs] | None = _lower(scenario, files or Files(), run_code=run_code)
        self._hashes: dict[str, str] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles only the key and the scenario, without the loaded files."""
        return _in_this_process, (self._key, self.scenario)

    @classmethod
    def of_parts(cls, scenario: Scenario, ir: Ir, inputs: Inputs) -> Lowered:
        """Rebuilds it from [parts][tidegate.scenario.lower.Lowered.parts] of another process; loads no file."""
        return _of_parts(scenario, f"{os.getpid()} {next(_numbers)}", (ir, inputs))

    @property
    def parts(self) -> tuple[Scenario, Ir, Inputs]:
        """The scenario, the engine's input without seed and level, and the inputs that it refers to."""
        return (self.scenario, *self._lowered())

    @property
    def inputs(self) -> Inputs:
        """Recorded networks, controllers and files that its runs need."""
        return self._lowered()[1]

    def _lowered(self) -> tuple[Ir, Inputs]:
        if self._parts is None:
            self._parts = _lower(self.scenario, Files(), run_code=True)
        return self._parts

    def for_run(self, *, seed: int | None = None, record: str | None = None) -> RunInput:
        """Returns the engine's input for one run.

        Args:
            seed: Instead of the scenario's.
            record: Level of recording, instead of the scenario's.

        Raises:
            InputError: when seed or level is not usable, or no user of the scenario's radio network has a flow.
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
    """Checks that `seed` is a seed, since calls from Python can pass any value.

    Raises:
        InputError: when it is no whole number of 64 bits.
    """
    if isinstance(seed, bool) or not isinstance(seed, Integral) or not 0 <= int(seed) < 2**64:
        raise InputError(f"{where}: found {seed!r}; expected a whole number from 0 to 2^64 - 1")


_numbers = itertools.count()
_by_key: dict[str, Lowered] = {}
_MAX_LOWERED = 8  # scenarios whose files a process keeps; runs of one scenario come one after the other


def _in_this_process(key: str, scenario: Scenario) -> Lowered:
    """The scenario that another process calls `key`; the first run loads its files, so that errors are the run's."""
    cached = _by_key.pop(key, None)
    if cached is None:
        cached = _of_parts(scenario, key, None)
    _by_key[key] = cached
    while len(_by_key) > _MAX_LOWERED:
        del _by_key[next(iter(_by_key))]
    return cached


def _of_parts(scenario: Scenario, key: str, parts: tuple[Ir, Inputs] | None) -> Lowered:
    rebuilt = Lowered.__new__(Lowered)
    rebuilt.scenario, rebuilt._key, rebuilt._parts, rebuilt._hashes = scenario, key, parts, {}  # noqa: SLF001
    return rebuilt


def lower(scenario: Scenario, *, seed: int | None = None, record: str | None = None, run_code: bool = True) -> RunInput:
    """Returns the engine's input for one run of a scenario.

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
        "links": [entry for link in scenario.links for entry in link.to_ir(reading)],
        "flows": [entry for flow in scenario.flows for entry in flow.to_ir(reading)],
    }
    for key in ("couplings", "sessions", "clocks"):
        if entries := getattr(scenario, key):
            ir[key] = lowered(entries, reading)
    if scenario.moves:
        ir["moves"] = moves.to_ir(scenario, reading)
    return ir, reading.inputs


def _hash(ir: Ir, inputs: Inputs, scenario: Scenario) -> str:
    # the users present in a radio network depend on the seed, so the hash takes the settings that they are drawn from
    settings = {**ir, **{key: getattr(scenario, key).model_dump(mode="json") for key in scenario.radios}}
    settings = {key: value for key, value in settings.items() if key not in {"seed", "name"}}
    text = json.dumps([settings, sorted(inputs.files.values())], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _populated(ir: Ir, scenario: Scenario) -> Ir:
    """Adds the users of the radio networks, and expands each flow of a user group into a flow per user."""
    groups = population.population(scenario, ir["seed"])
    end = int(scenario.duration)
    expanded = {template["name"]: list(population.flows_of(template, groups, end)) for template in ir["flows"]}
    flows = [flow for of_users in expanded.values() for flow in of_users]
    names: set[str] = set()
    for flow in flows:
        if flow["name"] in names:
            raise InputError(
                f'flows: two flows are called "{flow["name"]}"; flows of users are called NAME-1, NAME-2 ...'
            )
        names.add(flow["name"])
    if not names:
        raise InputError("flows: no user with a flow arrives before the run's end; expected at least one")
    radios = [population.lower_radio(radio, groups) for radio in scenario.radios.values()]
    ir = {**ir, "radios": radios, "flows": flows}
    if "couplings" in ir:
        names_by_template = {name: [flow["name"] for flow in of_users] for name, of_users in expanded.items()}
        ir["couplings"] = [couplings.expanded(coupling, names_by_template) for coupling in ir["couplings"]]
    return ir
