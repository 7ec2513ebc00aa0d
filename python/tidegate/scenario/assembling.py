"""Assembles a scenario's world in the engine without running it, and says what the engine refuses."""

from __future__ import annotations

import json
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tidegate import _core
from tidegate.control import Controller, learned
from tidegate.control.contenders import as_typed
from tidegate.errors import InputError, RunError
from tidegate.scenario import memory
from tidegate.scenario.lower import Ir, RunInput, lower

if TYPE_CHECKING:
    from tidegate.scenario.scenario import Scenario


def assemble(scenario: Scenario, *, run_code: bool = False) -> RunInput:
    """Returns the engine's input for a run that would begin: the engine has built all of its links and flows.

    Args:
        scenario: The scenario.
        run_code: Whether Python modules that it names are imported, which runs them; if not, controllers of theirs
            have a stand-in.

    Raises:
        InputError: when a file or a controller is not usable, or the engine refuses the scenario.
        RunError: when a run needs more memory than is free.
    """
    run_input = lower(scenario, run_code=run_code)
    memory.check(run_input)
    inputs = run_input.inputs
    objects = {**inputs.python, **dict.fromkeys(inputs.unrun, _StandIn)}
    with engine_errors(scenario):
        _core.World(json.dumps(run_input.ir), inputs.traces, objects)
    return run_input


def external(ir: Ir) -> list[str]:
    """Keys of the links and flows that wait for a driver, without which the scenario does not run."""
    links = [f"links.{link['name']}" for link in ir["links"] if link["capacity"] == "external"]
    return links + [f"flows.{flow['name']}" for flow in ir["flows"] if flow["kind"] == "external"]


class _StandIn(Controller):
    """A controller in the place of one whose code is not run; it can do whatever a scenario may ask for."""

    def on_report(self, now_ns: int, report: Any) -> None:
        """Changes nothing."""

    def coupled_rate(self) -> int:
        """Rate that it offers to a coupling."""
        return 0

    def on_coupled(self, now_ns: int, rate_bps: int) -> None:
        """Changes nothing."""


@contextmanager
def engine_errors(scenario: Scenario) -> Iterator[None]:
    """Turns an error of the engine into one with its place in `scenario`, or in the file of a controller in Python.

    Raises:
        RunError: for a run that failed.
        InputError: for a scenario that the engine refuses.
    """
    try:
        yield
    except _core.RunError as error:
        raise RunError(f"{as_typed(str(error))}{_place(error.__cause__)}") from error.__cause__
    except _core.Refused as error:
        where = scenario.where(error.place) or scenario.name
        raise InputError(f"{where}: {as_typed(str(error))}{_place(error.__cause__)}") from (error.__cause__ or error)
    except ValueError as error:
        raise InputError(f"{scenario.name}: {error}") from None


_LEARNED = Path(learned.__file__).parent


def _place(error: BaseException | None) -> str:
    """Position in its file at which a controller in Python failed, for a message; empty if unknown."""
    frames = traceback.extract_tb(error.__traceback__) if error is not None else []
    if not frames:
        return ""
    last = frames[-1]
    if Path(last.filename).parent == _LEARNED:
        return ""  # its errors name the file of the controller or of the model
    file = Path(last.filename)
    shortened = file.relative_to(Path.cwd()) if file.is_relative_to(Path.cwd()) else file
    return f" ({shortened}, line {last.lineno}, in {last.name})"
