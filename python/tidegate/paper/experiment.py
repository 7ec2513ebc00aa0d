"""A paper's code: its jobs, and the measures, tables and figures made from their results."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from tidegate.paper.measures import Measure, Table
from tidegate.runs.pool import Job, Tick

if TYPE_CHECKING:
    from tidegate.paper.figures import Drawing

T = TypeVar("T")
U = TypeVar("U")


@dataclass(frozen=True)
class Plan:
    """Scope of a run of a paper."""

    quick: bool
    """Whether to run for minutes only, instead of everything that the document did."""
    seeds: Sequence[int]
    """The seeds of the runs."""


@dataclass(frozen=True)
class Outcome:
    """The results of a paper's experiment."""

    measures: Mapping[str, Measure]
    """All measures that claims refer to, by name."""
    tables: Sequence[Table] = ()
    figures: Sequence[Drawing] = ()
    notes: Sequence[str] = ()
    """Sentences about the runs for the reader of the page."""
    digests: Mapping[str, str] = field(default_factory=dict)
    """Digest of each run, by the run's name."""

    def __post_init__(self) -> None:
        """Checks the types, because users write the code of papers too."""
        from tidegate.paper.figures import Drawing

        for label, kind, parts in (
            ("measures", Measure, self.measures.values()),
            ("tables", Table, self.tables),
            ("figures", Drawing, self.figures),
            ("notes", str, self.notes),
            ("digests", str, self.digests.values()),
        ):
            for part in parts:
                if not isinstance(part, kind):
                    raise TypeError(f"{label}: found {part!r}; expected a {kind.__name__}")


class Experiment(ABC):
    """A paper's code: `papers/KEY/experiment.py` defines a class `Experiment` of this kind.

    An instance is made for each run of the paper, without arguments.
    """

    quick_seeds: ClassVar[int] = 3
    """Number of seeds of a quick run."""
    full_seeds: ClassVar[int] = 20
    """Number of seeds of a full run."""

    @abstractmethod
    def jobs(self, plan: Plan) -> Mapping[Any, Job[Any]]:
        """The jobs, each under a key that the experiment chooses; they run in any order and in parallel."""

    @abstractmethod
    def outcome(self, plan: Plan, done: Mapping[Any, Any]) -> Outcome:
        """Measures, tables and figures from the jobs' results, which have the keys of their jobs."""


@dataclass(frozen=True)
class Then(Generic[T, U]):
    """A job and a function of its result: `Then(RunJob(scenario, seed), lambda run: run.metrics())`.

    A run holds all its tables. With hundreds of runs, only the measured numbers should stay in memory.
    """

    job: Job[T]
    keep: Callable[[T], U]

    def __call__(self, tick: Tick) -> U:
        """Does the job and returns the function's value of its result."""
        return self.keep(self.job(tick))


def group_seeds(done: Mapping[Any, T]) -> dict[Any, list[T]]:
    """Groups results by their key without the seed at its end; each group is in the order of the jobs.

    >>> group_seeds({("gcc", 1): 0.1, ("gcc", 2): 0.3, ("udp", 1): 0.5})
    {('gcc',): [0.1, 0.3], ('udp',): [0.5]}
    """
    groups: dict[Any, list[T]] = {}
    for key, result in done.items():
        groups.setdefault(key[:-1], []).append(result)
    return groups
