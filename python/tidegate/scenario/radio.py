"""A radio network: cells, how they reach their users, and who the users are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, Literal, Protocol

from pydantic import Field

from tidegate.scenario import _rules as rules
from tidegate.scenario.explain import Path, Problem
from tidegate.scenario.model import Model, Name
from tidegate.units import Duration, Frequency, Size, Speed

_AT_MOST_A_MINUTE = rules.Bounds(most=Duration(60 * 10**9))

Metres = Annotated[float, Field(ge=-1e6, le=1e6, allow_inf_nan=False)]


class RadioQueue(Model):
    """Limits of each user's queue, of packets of which nothing has been sent yet; several hold at once."""

    if TYPE_CHECKING:

        def __init__(self, /, **keys: Any) -> None: ...

    packets: Annotated[int, Field(ge=1, le=10**9)] | None = None
    """In packets."""
    bytes: Size | None = None
    """In bytes."""
    age: Annotated[Duration | None, rules.POSITIVE] = None
    """A packet that has waited longer is dropped (PDCP's discard timer)."""


class Handover(Model):
    """When a user changes its cell (event A3 of TS 36.331)."""

    if TYPE_CHECKING:

        def __init__(self, /, **keys: Any) -> None: ...

    hysteresis: Annotated[float, Field(ge=0, le=30, allow_inf_nan=False)] = 3.0
    """How many dB better the other cell must be ..."""
    trigger: Annotated[Duration, _AT_MOST_A_MINUTE] = Duration(200_000_000)
    """... for how long; cells are compared every 100 ms ..."""
    interruption: Annotated[Duration, _AT_MOST_A_MINUTE] = Duration(30_000_000)
    """... and how long nothing is sent then."""


class Arrival(Model):
    """Users that come and go: a Poisson process, and the same stay for all."""

    rate: Annotated[Frequency, rules.POSITIVE]
    """How many come, in the whole network."""
    stay: Annotated[Duration, rules.POSITIVE]
    """How long each one stays."""


class Users(Model):
    """Users alike: one, some, or as many as arrive.

    A flow to or from them stands for one flow for each of them, and its times count from when that user comes.

    >>> Users(name="caller", arrival={"rate": "2/s", "stay": "60s"}).arrival.rate
    Frequency('2/s')
    """

    if TYPE_CHECKING:

        def __init__(self, /, **keys: Any) -> None: ...

    name: Name = "user"
    """Their name, which flows use as `from` or `to`; several of them are called NAME-1, NAME-2 and so on."""
    count: Annotated[int, Field(ge=1, le=10_000)] = 1
    """How many there are from the start on."""
    arrival: Arrival | None = None
    """Instead of a count: they come one by one."""
    start: Duration = Duration(0)
    """From when on they are there, or the first one may come."""
    stop: Duration | None = None
    """When they leave, or the last one may come; the run's end by default."""
    place: Annotated[tuple[Metres, Metres], Field(strict=False)] | None = None
    """Metres east and north of the middle at the beginning; drawn for each one by default."""
    full_buffer: bool = False
    """Whether there is always something to send to them: interference, and load, without packets."""

    @property
    def several(self) -> bool:
        """Whether the name stands for more than one."""
        return self.arrival is not None or self.count > 1


class Radio(Protocol):
    """A radio network of any kind: a point of the network, whose users are points as well."""

    @property
    def name(self) -> str:
        """Its name, among those of links."""

    @property
    def core(self) -> str:
        """The point behind it."""

    @property
    def users(self) -> list[Users]:
        """Who is there."""

    def access(self) -> dict[str, Any]:
        """The kind of network and its settings, as the engine takes them."""

    def problems(self, path: Path, duration: Duration) -> Iterator[Problem]:
        """The settings that are out of their range."""


class Lte(Model):
    """An LTE network at system level: a point of the network, whose users are points as well.

    >>> Lte(case=3, bandwidth="5MHz", users=[Users(name="phone")]).speed
    Speed('3km/h')
    """

    if TYPE_CHECKING:

        def __init__(self, /, **keys: Any) -> None: ...

    name: Name = "lte"
    """Its name, among those of links."""
    core: Name = "core"
    """The point behind its base stations."""
    sites: Literal[7, 19] = 7
    """Sites on a hexagonal grid, with three cells each."""
    wrap: bool = True
    """Whether copies of the layout surround it, so that no cell is at the edge."""
    case: Literal[1, 3] = 1
    """3GPP case: sites 500 m (1) or 1732 m (3) apart (TR 25.814 table A.2.1.1-1)."""
    tilt: bool = False
    """Whether the antennas have a vertical pattern and look down (TR 36.814), or only a horizontal one (TR 25.814)."""
    bandwidth: Literal["5MHz", "10MHz"] = "10MHz"
    """Of the carrier."""
    antennas: Literal["1x1", "1x2", "2x2"] = "1x2"
    """Antennas of a cell and of a user; 2x2 is transmit diversity, one stream."""
    fading: Literal["tu6", "epa", "eva", "flat", "none"] = "tu6"
    """Multipath profile: Typical Urban, Extended Pedestrian A, Extended Vehicular A, one path, or no fast fading."""
    speed: Annotated[Speed, rules.Bounds(most=Speed(500_000))] = Speed(3_000)
    """How fast users walk or drive, straight on."""
    interferers: Annotated[int, Field(ge=0, le=6)] = 2
    """So many of a user's strongest interferers fade fast; the others are there at their mean strength."""
    scheduler: Literal["pf", "rr"] = "pf"
    """Proportional fair over subbands of 5 resource blocks, or the whole carrier to one user after the other."""
    outer_loop: bool = True
    """Whether a loop moves what reports say until first transmissions fail one time in ten."""
    window: Annotated[Duration, rules.Bounds(Duration(1_000_000))] = Duration(300_000_000)
    """Window of the proportional-fair average."""
    queue: RadioQueue = RadioQueue(packets=1000)
    """Limits of each user's queue, in each direction."""
    handover: Handover = Handover()
    """When users change their cell."""
    users: Annotated[list[Users], Field(min_length=1, max_length=10_000)]
    """Who is there."""

    def access(self) -> dict[str, Any]:
        """Everything but its place and its users, as the engine takes it: under the same names, in base units."""
        own = {name: getattr(self, name) for name in type(self).model_fields if name not in {"name", "core", "users"}}
        settings = {
            **own,
            "speed": self.speed / 3600,  # metres a second
            "window": int(self.window) // 10**6,  # TTIs of a millisecond
            "queue": {key: None if value is None else int(value) for key, value in self.queue},
            "handover": {
                "hysteresis": self.handover.hysteresis,
                "trigger": int(self.handover.trigger),
                "interruption": int(self.handover.interruption),
            },
        }
        return {"lte": settings}


# 6 bits a symbol with the code of the best CQI (TS 36.213 table 7.2.3-1), on all of an uplink's elements of a subframe
_LTE_PEAK = {"5MHz": 5.5547 * 144 * 25 * 1000, "10MHz": 5.5547 * 144 * 50 * 1000}
_CELLS = 3  # of a site


def peak_rates(access: dict[str, Any]) -> tuple[float, float]:
    """Bit/s at most for one user and for all cells of an `access` of a radio network."""
    ((_, settings),) = access.items()  # lte is the only kind
    peak = _LTE_PEAK[settings["bandwidth"]]
    return peak, _CELLS * int(settings["sites"]) * peak
