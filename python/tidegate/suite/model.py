"""A suite's file as people write it: cases, and rules for them."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from tidegate.scenario.model import Model, Name
from tidegate.units import Duration, Rate

_Number = Annotated[float, Field(allow_inf_nan=False, strict=False)]
_Glob = Annotated[str, Field(min_length=1, max_length=200)]


class WindowsTable(Model):
    """Cases from a folder of recorded networks: windows that are spread over it."""

    count: Annotated[int, Field(ge=1, le=10_000)]
    """Number of windows, each a case of its own."""
    length: Duration
    """Length of each window, and duration of its case."""
    between: Annotated[list[Rate], Field(min_length=2, max_length=2)] = Field(
        default_factory=lambda: [Rate(150_000), Rate(20_000_000)]
    )
    """Least and greatest mean capacity of a window: below, no call can be had; above, every scheme has all it wants."""


class CaseTable(Model):
    """One network that each controller is tried on, or several of a kind."""

    name: Name
    """Its name in tables; with `vary` and `windows` the first part of it."""
    title: str = ""
    """A few words about it."""
    source: str = ""
    """Its source: a document and section."""
    scenario: str | None = None
    """A scenario that tidegate ships, or a file relative to the suite's."""
    set: dict[str, Any] = Field(default_factory=dict)
    """Other values for keys of the scenario, as `--set` takes them."""
    vary: dict[str, Annotated[list[Any], Field(min_length=1, max_length=100)]] = Field(default_factory=dict)
    """Several values for a key: every combination is a case of its own, called after them."""
    windows: WindowsTable | None = None
    """The capacity of the scenario's first link is a window of a recorded network, for each window a case."""
    contenders: list[str] = Field(default_factory=list)
    """The media flows that take the controller; all by default."""
    begin_between: Annotated[tuple[Duration, Duration], Field(strict=False)] | None = None
    """Of those that take the controller only flows that begin in this time are judged: where users of a radio network
    come and go, the first ones only fill it. All by default."""
    not_run: str = ""
    """Why it is listed and not run."""


class RuleTable(Model):
    """A limit that a number has to keep for a case to be passed."""

    name: Name
    """Its name in tables."""
    says: Annotated[str, Field(min_length=1)]
    """Its demand, as a sentence."""
    metric: str
    """A number of a flow's summary, or a measure of a flow or of a run (`tidegate suite metrics`)."""
    of: str | None = None
    """Of several contenders' numbers the `worst` (the default), the `mean` or the `sum`; or the name of one flow."""
    at_least: _Number | None = None
    """The least value that is right, in the metric's own unit."""
    at_most: _Number | None = None
    """The greatest value that is right, in the metric's own unit."""
    relative_to: str | None = None
    """A case: the number is divided by what the same controller has there with the same seed."""
    cases: Annotated[list[_Glob], Field(min_length=1)] = Field(default_factory=lambda: ["*"])
    """Cases that it applies to, as patterns of their names (`5.1*`)."""
    controllers: Annotated[list[_Glob], Field(min_length=1)] = Field(default_factory=lambda: ["*"])
    """Controllers that it applies to, as patterns of their names."""
    source: Annotated[str, Field(min_length=1)]
    """Its source: a document and section."""
    why: str = ""
    """Why this number, where the source has none."""


class WithoutTable(Model):
    """Parts that a suite does not take over from the one that it extends."""

    cases: list[_Glob] = Field(default_factory=list)
    """Cases, as patterns of the names in its file: a case that varies goes with all its combinations."""
    rules: list[_Glob] = Field(default_factory=list)
    """Rules, as patterns of their names."""


class SuiteTable(Model):
    """A suite's file."""

    extends: Annotated[str, Field(min_length=1)] | None = None
    """A suite whose cases, rules and other keys hold here, too, where this file says nothing else: one that tidegate
    ships, or a file relative to this one. A case or rule of the same name replaces that of the other suite."""
    without: WithoutTable = Field(default_factory=WithoutTable)
    """Parts that are not taken over from it."""
    description: str = ""
    """Its purpose, in a sentence."""
    source: str = ""
    """Source of its cases."""
    seeds: Annotated[int, Field(ge=1, le=100_000)] = 5
    """Default number of seeds."""
    baseline: str | None = None
    """The controller that others are compared with seed by seed, where it takes part; else the first one named."""
    cases: Annotated[list[CaseTable], Field(min_length=1, max_length=10_000)]
    """Networks on which each controller runs."""
    rules: Annotated[list[RuleTable], Field(max_length=10_000)] = Field(default_factory=list)
    """Limits that each controller has to keep."""


class ExtendingTable(SuiteTable):
    """The file of a suite that extends another: it may have no case of its own."""

    cases: Annotated[list[CaseTable], Field(max_length=10_000)] = Field(default_factory=list)
