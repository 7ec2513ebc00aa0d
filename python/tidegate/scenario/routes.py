"""The routes that the engine takes over the links of a scenario."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

from tidegate._core import Routes as _Routes
from tidegate.scenario.links import Link

T = TypeVar("T")


class Routes(Generic[T]):
    """Routes over links; each link is a triple of its ends and of the value that stands for it in a route."""

    def __init__(self, links: Iterable[tuple[str, str, T]]) -> None:
        triples = list(links)
        self._links = [link for _, _, link in triples]
        self._routes = _Routes([(begin, end) for begin, end, _ in triples])

    def between(self, begin: str, end: str) -> list[T] | None:
        """The links from one point to another: empty from a point to itself, `None` if there is no route."""
        numbers = self._routes.between(begin, end)
        return None if numbers is None else [self._links[number] for number in numbers]


def directions(links: Sequence[Link]) -> Iterator[tuple[str, str, str, dict[str, Any]]]:
    """Yields each direction of each link in the engine's order: begin, end, name, and its keys."""
    for link in links:
        ends = ((link.from_, link.to), (link.to, link.from_))
        for (begin, end), name, keys in zip(ends, link.names, link.ways, strict=False):
            yield begin, end, name, keys
