"""tidegate: a workbench for congestion control of real-time media.

How does this controller behave on that network, against those flows, for that media, and how do I
know?

>>> import tidegate
>>> calls = tidegate.compare(["gcc", "fixed:1Mbps"], tidegate.scenario_for(duration="5s"), seeds=2)
>>> calls.controllers
['gcc', 'fixed:1Mbps']
"""

from __future__ import annotations

from importlib import import_module
from threading import RLock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tidegate import control, errors, media, paper, scenario, units
    from tidegate._core import Stream, Table
    from tidegate.comparison import Comparison, compare
    from tidegate.comparison.sweeping import SweepResult, sweep
    from tidegate.control import (
        Arrived,
        Controller,
        ControllerHost,
        Decision,
        EcnCounts,
        Limits,
        LossReport,
        Needs,
        NewFrame,
        Outgoing,
        PacketResult,
        Probe,
        ReceiverHalf,
        ReceiverHost,
        Report,
        Sent,
        sprout,
        tfrc,
    )
    from tidegate.control.loop import controller, receiver
    from tidegate.errors import (
        ControllerError,
        InputError,
        OutputError,
        RunError,
        ScenarioError,
        TidegateError,
        TraceError,
    )
    from tidegate.net import rtcp, trace, wire
    from tidegate.net.trace import Trace
    from tidegate.results import metrics, quality
    from tidegate.runs import Run, lte, pool, run, version
    from tidegate.runs.world import LiveWorld, live_world
    from tidegate.scenario import Audio, Back, Feedback, Flow, Link, Lte, Media, Queue, Scenario, Tcp, Udp, Users
    from tidegate.scenario.variants import scenario_for
    from tidegate.show import plot, report
    from tidegate.units import Duration, Rate, Size

    __version__: str
else:
    # loaded on first use, so that the command line handles Ctrl-C before all modules are loaded
    _NAMES_BY_MODULE = {
        "_core": "Stream Table",
        "comparison": "Comparison compare",
        "comparison.sweeping": "SweepResult sweep",
        "control": "Arrived Controller ControllerHost Decision EcnCounts Limits LossReport NewFrame Needs Outgoing "
        "PacketResult Probe ReceiverHalf ReceiverHost Report Sent sprout tfrc",
        "control.loop": "controller receiver",
        "errors": "ControllerError InputError OutputError RunError ScenarioError TidegateError TraceError",
        "net": "rtcp trace wire",
        "net.trace": "Trace",
        "results": "metrics quality",
        "runs": "Run lte pool run version",
        "runs.world": "LiveWorld live_world",
        "scenario": "Audio Back Feedback Flow Link Lte Media Queue Scenario Tcp Udp Users",
        "scenario.variants": "scenario_for",
        "show": "plot report",
        "units": "Duration Rate Size",
    }
    _MODULE_OF = {name: module for module, names in _NAMES_BY_MODULE.items() for name in names.split()}

    # threads that load modules at once would wait for each other, and see them half loaded
    _LOADING = RLock()

    def __getattr__(name: str) -> object:
        with _LOADING:
            return _load(name)

    def _load(name: str) -> object:
        if name == "__version__":
            value = import_module("tidegate.runs").version()
        elif name in _MODULE_OF:
            # `fromlist` imports a module of a package, which makes it an attribute
            value = getattr(__import__(f"tidegate.{_MODULE_OF[name]}", fromlist=[name]), name)
        elif name.startswith("_"):
            raise AttributeError(f"module 'tidegate' has no attribute {name!r}")
        else:
            try:
                value = import_module(f"tidegate.{name}")
            except ModuleNotFoundError as error:
                if error.name != f"tidegate.{name}":
                    raise
                raise AttributeError(f"module 'tidegate' has no attribute {name!r}") from None
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        helpers = {"TYPE_CHECKING", "RLock", "annotations", "import_module"}
        return sorted({*__all__, *(name for name in globals() if name.startswith("__") or name[0] != "_")} - helpers)


__all__ = [
    "Arrived",
    "Audio",
    "Back",
    "Comparison",
    "Controller",
    "ControllerError",
    "ControllerHost",
    "Decision",
    "Duration",
    "EcnCounts",
    "Feedback",
    "Flow",
    "InputError",
    "Limits",
    "Link",
    "LiveWorld",
    "LossReport",
    "Lte",
    "Media",
    "Needs",
    "NewFrame",
    "Outgoing",
    "OutputError",
    "PacketResult",
    "Probe",
    "Queue",
    "Rate",
    "ReceiverHalf",
    "ReceiverHost",
    "Report",
    "Run",
    "RunError",
    "Scenario",
    "ScenarioError",
    "Sent",
    "Size",
    "Stream",
    "SweepResult",
    "Table",
    "Tcp",
    "TidegateError",
    "Trace",
    "TraceError",
    "Udp",
    "Users",
    "__version__",
    "compare",
    "control",
    "controller",
    "errors",
    "live_world",
    "lte",
    "media",
    "metrics",
    "paper",
    "plot",
    "pool",
    "quality",
    "receiver",
    "report",
    "rtcp",
    "run",
    "scenario",
    "scenario_for",
    "sprout",
    "sweep",
    "tfrc",
    "trace",
    "units",
    "version",
    "wire",
]
