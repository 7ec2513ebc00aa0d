"""Couplings: media flows of one sender whose controllers share a common rate (RFC 8699)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from tidegate.errors import did_you_mean
from tidegate.scenario.explain import Path, Problem
from tidegate.scenario.flows import Flow
from tidegate.scenario.model import Model, Name

if TYPE_CHECKING:
    from tidegate.scenario.reading import Reading

Priority = Annotated[float, Field(ge=0.001, le=1000, allow_inf_nan=False)]


class Coupling(Model):
    """Media flows of one sender whose congestion controls are coupled.

    >>> Coupling(flows=["camera", "slides"], priorities=[2, 1]).algorithm
    'active'
    """

    if TYPE_CHECKING:

        def __init__(self, /, **keys: Any) -> None: ...

    flows: Annotated[list[Name], Field(min_length=1, max_length=10_000)]
    """Names of the flows; a flow with a `count` stands for all of its copies, and a flow to several users of a radio
    network for those of all users."""
    priorities: list[Priority] = Field(default_factory=list)
    """Priority of each flow: the flow's share of the common rate is its priority divided by the sum of all priorities
    (WebRTC's very-low, low, medium and high are 1, 2, 4 and 8). Equal by default."""
    algorithm: Literal["active", "conservative"] = "active"
    """Rule by which the common rate follows the rate of a flow: by each change (active; RFC 8699 section 5.3.1), or,
    when the rate of the flow falls, in proportion and once in two round trips (conservative; section 5.3.2)."""

    def fits(self, flows: Sequence[Flow], several: Collection[str], path: Path) -> Iterator[Problem]:
        """Yields a problem for each name or priority that does not match the flows of the scenario.

        `several` are the points that stand for several users of a radio network.
        """
        media = {flow.name: flow for flow in flows if flow.media is not None}
        first: Flow | None = None
        for position, name in enumerate(self.flows):
            key_path = (*path, "flows", position)
            flow = media.get(name)
            if flow is None:
                hint = did_you_mean(name, media) or f"; available: {', '.join(list(media)[:12]) or 'none'}"
                yield Problem(key_path, f'found "{name}"; expected the name of a media flow{hint}')
                continue
            if flow.from_ in several:
                message = f'"{name}" is sent from each of several users, "{flow.from_}"'
                yield Problem(key_path, f"{message}; expected flows of one sender")
                continue
            first = first or flow
            if flow.from_ != first.from_:
                message = f'"{name}" is sent from "{flow.from_}", but "{first.name}" from "{first.from_}"'
                yield Problem(key_path, f"{message}; expected flows of one sender")
        if self.priorities and len(self.priorities) != len(self.flows):
            count = len(self.priorities)
            message = f"found {count} priorities for {len(self.flows)} flows; expected one for each flow, or none"
            yield Problem((*path, "priorities"), message)

    def each(self, names: Mapping[str, Sequence[str]]) -> list[tuple[str, float]]:
        """Each flow with its priority; a name in `names` stands for the flows listed there."""
        priorities = self.priorities or [1.0] * len(self.flows)
        pairs = zip(self.flows, priorities, strict=True)
        return [(flow, priority) for name, priority in pairs for flow in names.get(name, [name])]

    def to_ir(self, reading: Reading) -> Any:
        """As the engine takes it."""
        names = {flow.name: flow.names for flow in reading.scenario.flows}
        return {"flows": [list(pair) for pair in self.each(names)], "algorithm": self.algorithm}


def expanded(coupling: Mapping[str, Any], names: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """The engine's coupling, with the flows of a run's radio users in the place of the flow of each group."""
    pairs = [[name, priority] for template, priority in coupling["flows"] for name in names[template]]
    return {**coupling, "flows": pairs}


def problems(couplings: Sequence[Coupling], flows: Sequence[Flow], several: Collection[str]) -> Iterator[Problem]:
    """Yields the problems of a scenario's couplings; `several` as in `Coupling.fits`."""
    coupled: set[str] = set()
    for number, coupling in enumerate(couplings):
        yield from coupling.fits(flows, several, ("couplings", number))
        for position, name in enumerate(coupling.flows):
            if name in coupled:
                message = f'"{name}" is coupled already; a flow can be in one coupling only'
                yield Problem(("couplings", number, "flows", position), message)
            coupled.add(name)
