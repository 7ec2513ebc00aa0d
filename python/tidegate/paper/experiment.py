"""A paper's code: its jobs, and what their results come to."""

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
    """How much of a paper is run."""

    quick: bool
    """Whether a short run of minutes is wanted, instead of everything that the document did."""
    seeds: Sequence[int]
    """The seeds of the runs."""


@dataclass(frozen=True)
class Outcome:
    """The results of a paper's experiment."""

    measures: Mapping[str, Measure]
    """Everything that claims speak of, by name."""
    tables: Sequence[Table] = ()
    figures: Sequence[Drawing] = ()
    notes: Sequence[str] = ()
    """Sentences about the runs that a reader of the page should know."""
    digests: Mapping[str, str] = field(default_factory=dict)
    """Digest of each run, by a name of it."""

    def __post_init__(self) -> None:
        """Checks what it is made of: the code of a paper is anybody's."""
        from tidegate.paper.figures import Drawing

        for what, kind, found in (
            ("measures", Measure, self.measures.values()),
            ("tables", Table, self.tables),
            ("figures", Drawing, self.figures),
            ("notes", str, self.notes),
            ("digests", str, self.digests.values()),
        ):
            for one in found:
                if not isinstance(one, kind):
                    raise TypeError(f"{what}: found {one!r}; expected a {kind.__name__}")


class Experiment(ABC):
    """A paper's code: `papers/KEY/experiment.py` defines a class `Experiment` of this kind.

    It is made without arguments, once for each run.
    """

    quick_seeds: ClassVar[int] = 3
    """How many seeds a quick run takes."""
    full_seeds: ClassVar[int] = 20
    """How many a full one takes."""

    @abstractmethod
    def jobs(self, plan: Plan) -> Mapping[Any, Job[Any]]:
        """The work, each piece under a key of its own choice; pieces are done in any order and at once."""

    @abstractmethod
    def outcome(self, plan: Plan, done: Mapping[Any, Any]) -> Outcome:
        """Measures, tables and figures, from the results of the jobs under the same keys."""


@dataclass(frozen=True)
class Then(Generic[T, U]):
    """A job, and what is kept of its result: `Then(RunJob(scenario, seed), lambda run: run.metrics())`.

    Runs hold all their tables; of hundreds of them only what is measured should stay in memory.
    """

    job: Job[T]
    keep: Callable[[T], U]

    def __call__(self, tick: Tick) -> U:
        """Does the job and keeps what is asked for."""
        return self.keep(self.job(tick))


def group_seeds(done: Mapping[Any, T]) -> dict[Any, list[T]]:
    """Results whose keys end in a seed, by the rest of their keys: those of all seeds together, in the order of jobs.

    >>> group_seeds({("gcc", 1): 0.1, ("gcc", 2): 0.3, ("udp", 1): 0.5})
    {('gcc',): [0.1, 0.3], ('udp',): [0.5]}
    """
    groups: dict[Any, list[T]] = {}
    for key, result in done.items():
        groups.setdefault(key[:-1], []).append(result)
    return groups
