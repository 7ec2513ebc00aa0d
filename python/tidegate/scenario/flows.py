"""Flows: their ends, their times, their number, and their traffic."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from tidegate.scenario.explain import Path, Problem
from tidegate.scenario.media import Media
from tidegate.scenario.model import Model, Name, lowered, numbered
from tidegate.scenario.traffic import External, Tcp, Udp
from tidegate.units import Duration

if TYPE_CHECKING:
    from tidegate.scenario.reading import Reading


KINDS = ("media", "udp", "tcp", "external")
"""Kinds of flows."""


class Flow(Model):
    """One flow, or several alike: exactly one of media, udp, tcp and external.

    >>> Flow(name="call", media=Media(controller="gcc"), stop="60s").stop
    Duration('60s')
    """

    if TYPE_CHECKING:

        def __init__(self, /, **keys: Any) -> None: ...

    name: Name = "flow"
    """Name of the flow; unique."""
    from_: Annotated[Name, Field(alias="from")] = "left"
    """Point of the network at which the sender is."""
    to: Name = "right"
    """Point of the network at which the receiver is."""
    start: Duration = Duration(0)
    """Time at which the flow begins."""
    stop: Duration | None = None
    """Time at which the flow ends; by default the end of the run."""
    count: Annotated[int, Field(ge=1, le=100_000)] = 1
    """Number of identical flows; if several, they are called NAME-1, NAME-2 and so on."""
    start_step: Duration = Duration(0)
    """Time between the starts of two consecutive flows, if `count` is above 1."""
    media: Media | None = None
    """RTP media under a congestion controller."""
    udp: Udp | None = None
    """UDP cross traffic."""
    tcp: Tcp | None = None
    """A TCP connection."""
    external: External | None = None
    """Datagrams that your own code sends (see tidegate.simpy); usually an empty table."""

    @property
    def kind(self) -> str:
        """The kind of the flow: one of `KINDS`, or "none"."""
        return next((kind for kind in KINDS if getattr(self, kind) is not None), "none")

    @property
    def names(self) -> list[str]:
        """Names of the flows that this table stands for, without those of their return flows."""
        return numbered(self.name, self.count)

    def problems(self, path: Path, duration: Duration) -> Iterator[Problem]:
        """Yields a problem for each value that is out of range or contradicts another."""
        kinds = [kind for kind in KINDS if getattr(self, kind) is not None]
        if len(kinds) != 1:
            listed = " and ".join(kinds) or "none"
            yield Problem(path, f"found {listed}; expected exactly one of media, udp, tcp and external")
        if self.from_ == self.to:
            yield Problem((*path, "to"), f'found "{self.to}"; expected a point other than the one in `from`')
        last = Duration(self.start + self.start_step * (self.count - 1))
        if last >= duration > 0:
            key = "start" if self.start >= duration else "start_step"
            message = f'the last flow starts at "{last}"' if key == "start_step" else f'found "{last}"'
            yield Problem((*path, key), f"{message}; expected a time before the run's end ({duration})")
        if self.stop is not None and self.stop <= last:
            yield Problem((*path, "stop"), f'found "{self.stop}"; expected a time after the start ({last})')
        yield from super().problems(path, duration)

    def to_ir(self, reading: Reading) -> Any:
        """As the engine takes it: a flow for each of several alike, and a second one for a call in both directions."""
        flows = []
        for number, name in enumerate(self.names):
            start = int(self.start) + number * int(self.start_step)
            ends = {"name": name, "from": self.from_, "to": self.to}
            times = {"start": start, "stop": lowered(self.stop, reading)}
            if self.media is None:
                flows.append({**ends, **times, "kind": self._kind_to_ir(reading)})
                continue
            with reading.at(f"flows.{self.name}.media"):
                media = self.media.to_ir(reading)
            back = f"{name}.back" if self.media.both_ways else None
            flows.append({**ends, **times, "kind": {"media": {**media, "pair": back}}})
            if back is not None:
                turned = {"name": back, "from": self.to, "to": self.from_}
                flows.append({**turned, **times, "kind": {"media": {**media, "pair": name}}})
        return flows

    def _kind_to_ir(self, reading: Reading) -> Any:
        if self.external is not None:
            return "program" if self.external.program else "external"
        table = lowered(getattr(self, self.kind), reading)
        return {self.kind: table} if table else self.kind
