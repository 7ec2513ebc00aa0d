"""Radio networks: their cells, their settings, and their users."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, Literal, Protocol

from pydantic import Field

from tidegate.scenario import _rules as rules
from tidegate.scenario.explain import Path, Problem
from tidegate.scenario.model import Model, Name
from tidegate.units import Duration, Frequency, Size, Speed

_AT_MOST_A_MINUTE = rules.Bounds(maximum=Duration(60 * 10**9))

Metres = Annotated[float, Field(ge=-1e6, le=1e6, allow_inf_nan=False)]


class RadioQueue(Model):
    """Limits of each user's queue, which can hold at once; packets of which a part has been sent do not count."""

    if TYPE_CHECKING:

        def __init__(self, /, **keys: Any) -> None: ...

    packets: Annotated[int, Field(ge=1, le=10**9)] | None = None
    """Limit in packets."""
    bytes: Size | None = None
    """Limit in bytes."""
    age: Annotated[Duration | None, rules.POSITIVE] = None
    """Longest waiting time; a packet that has waited longer is dropped (PDCP's discard timer)."""


class Handover(Model):
    """Conditions for a change of a user's cell (event A3 of TS 36.331)."""

    if TYPE_CHECKING:

        def __init__(self, /, **keys: Any) -> None: ...

    hysteresis: Annotated[float, Field(ge=0, le=30, allow_inf_nan=False)] = 3.0
    """Margin in dB by which another cell must be better."""
    trigger: Annotated[Duration, _AT_MOST_A_MINUTE] = Duration(200_000_000)
    """Time for which another cell must be better; cells are compared every 100 ms."""
    interruption: Annotated[Duration, _AT_MOST_A_MINUTE] = Duration(30_000_000)
    """Time without transmissions during the change."""


class Arrival(Model):
    """Users that come and go: arrivals as a Poisson process, and the same stay for all users."""

    rate: Annotated[Frequency, rules.POSITIVE]
    """Mean rate of arrivals in the whole network."""
    stay: Annotated[Duration, rules.POSITIVE]
    """Time for which each user stays."""


class Users(Model):
    """A group of identical users: a single one, a fixed number, or as many as arrive.

    A flow to or from the group stands for a flow per user, and its times count from that user's arrival.

    >>> Users(name="caller", arrival={"rate": "2/s", "stay": "60s"}).arrival.rate
    Frequency('2/s')
    """

    if TYPE_CHECKING:

        def __init__(self, /, **keys: Any) -> None: ...

    name: Name = "user"
    """Name of the group, which flows use as `from` or `to`; several users are called NAME-1, NAME-2 and so on."""
    count: Annotated[int, Field(ge=1, le=10_000)] = 1
    """Number of users, all present from `start` on."""
    arrival: Arrival | None = None
    """Arrival process of the users; instead of a count."""
    start: Duration = Duration(0)
    """Time from which on the users are present, or may arrive."""
    stop: Duration | None = None
    """Time at which the users leave, or after which no user arrives; by default the end of the run."""
    place: Annotated[tuple[Metres, Metres], Field(strict=False)] | None = None
    """Position at the beginning: metres east and north of the centre; by default random for each user."""
    full_buffer: bool = False
    """Whether the buffers of the users are always full: such users cause interference and load, without packets."""

    @property
    def several(self) -> bool:
        """Whether the name stands for more than one user."""
        return self.arrival is not None or self.count > 1


class Radio(Protocol):
    """A radio network of any kind: a point of the network, whose users are points as well."""

    @property
    def name(self) -> str:
        """Its name, among those of links."""

    @property
    def core(self) -> str:
        """The point that connects it to links."""

    @property
    def users(self) -> list[Users]:
        """Its users, in groups."""

    def access(self) -> dict[str, Any]:
        """The kind of network and its settings, as the engine takes them."""

    def problems(self, path: Path, duration: Duration) -> Iterator[Problem]:
        """Yields a problem for each setting that is out of its range."""


class Lte(Model):
    """An LTE network at system level: a point of the network, whose users are points as well.

    >>> Lte(case=3, bandwidth="5MHz", users=[Users(name="phone")]).speed
    Speed('3km/h')
    """

    if TYPE_CHECKING:

        def __init__(self, /, **keys: Any) -> None: ...

    name: Name = "lte"
    """Name of the network; unique among networks and links."""
    core: Name = "core"
    """Point that connects the base stations to links."""
    sites: Literal[7, 19] = 7
    """Number of sites, on a hexagonal grid, with three cells each."""
    wrap: bool = True
    """Whether copies of the layout surround the network, so that no cell is at the edge."""
    case: Literal[1, 3] = 1
    """3GPP case: sites 500 m (1) or 1732 m (3) apart (TR 25.814 table A.2.1.1-1)."""
    tilt: bool = False
    """Whether the antennas have a vertical pattern and look down (TR 36.814), or only a horizontal one (TR 25.814)."""
    bandwidth: Literal["5MHz", "10MHz"] = "10MHz"
    """Bandwidth of the carrier."""
    antennas: Literal["1x1", "1x2", "2x2"] = "1x2"
    """Number of antennas of a cell and of a user; 2x2: transmit diversity with one stream."""
    fading: Literal["tu6", "epa", "eva", "flat", "none"] = "tu6"
    """Multipath profile: Typical Urban, Extended Pedestrian A, Extended Vehicular A, one path, or no fast fading."""
    speed: Annotated[Speed, rules.Bounds(maximum=Speed(500_000))] = Speed(3_000)
    """Speed of users, who move in straight lines."""
    interferers: Annotated[int, Field(ge=0, le=6)] = 2
    """Number of a user's strongest interferers with fast fading; other interferers have their mean strength."""
    scheduler: Literal["pf", "rr"] = "pf"
    """Scheduler: proportional fair in subbands of 5 resource blocks (pf), or the whole carrier for each user in turn
    (rr)."""
    outer_loop: bool = True
    """Whether a loop corrects reported channel qualities so that one in ten first transmissions fails."""
    window: Annotated[Duration, rules.Bounds(Duration(1_000_000))] = Duration(300_000_000)
    """Averaging time of the proportional-fair scheduler."""
    queue: RadioQueue = RadioQueue(packets=1000)
    """Limits of each user's queue, in each direction."""
    handover: Handover = Handover()
    """Conditions for a change of a user's cell."""
    users: Annotated[list[Users], Field(min_length=1, max_length=10_000)]
    """Users of the network, in groups."""

    def access(self) -> dict[str, Any]:
        """All settings but name, core and users, as the engine takes them: under the same names, in base units."""
        values = {
            name: getattr(self, name) for name in type(self).model_fields if name not in {"name", "core", "users"}
        }
        settings = {
            **values,
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
_CELLS = 3  # per site


def peak_rates(access: dict[str, Any]) -> tuple[float, float]:
    """Bit/s at most for one user and for all cells of an `access` of a radio network."""
    ((_, settings),) = access.items()  # lte is the only kind
    peak = _LTE_PEAK[settings["bandwidth"]]
    return peak, _CELLS * int(settings["sites"]) * peak
