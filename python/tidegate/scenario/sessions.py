"""Sessions: RTP among any number of members; each packet of a member goes to all others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from tidegate.scenario import _rules as rules
from tidegate.scenario.explain import Path, Problem
from tidegate.scenario.model import Model, Name, lowered, numbered
from tidegate.scenario.shapes import OneOf
from tidegate.units import Duration, Rate, Size

if TYPE_CHECKING:
    from tidegate.scenario.reading import Reading

_MIN_MEMBERS, _MAX_MEMBERS = 2, 10_000
_RTP_HEADER = 12  # bytes, without extensions

Profile = Literal["avp", "avpf"]


class Avpf(Model):
    """Parameters that RFC 4585 leaves to a session."""

    if TYPE_CHECKING:

        def __init__(self, /, **keys: Any) -> None: ...

    l: Annotated[float, Field(ge=0, le=1000, allow_inf_nan=False)] = 0.5  # noqa: E741
    """Longest delay of feedback in RTCP intervals, in sessions of more than two members (section 3.5.2)."""
    k: Annotated[float, Field(ge=0, le=1000, allow_inf_nan=False)] | None = None
    """Longest delay of feedback as a multiple of RTT/2 times the number of members, instead of `l`, for members that
    know the round-trip time: a rule of draft-ietf-avt-rtcp-feedback-00 (k = 1) that is not in RFC 4585. Not in use by
    default."""
    redraw: bool = False
    """Whether the RTCP interval that `l` multiplies is drawn again for each feedback message, instead of the current
    interval. Tables 10 to 13 of draft-burmeister-avt-rtcp-feedback-sim-00 seem to use this rule, judging by where they
    stop changing."""
    max_feedback_delay: Duration = Duration(1_000_000_000)
    """Longest delay of feedback; feedback that cannot be sent in time is discarded (T_max_fb_delay, section 3.5.2)."""
    rr_interval: Duration = Duration(0)
    """Shortest time between full regular packets, before randomisation (T_rr_interval, section 3.5.3)."""
    reduced_size: bool = False
    """Whether early packets hold only feedback, without report and source description (RFC 5506)."""


class PacketMedia(Model):
    """Packets of equal size at a constant rate."""

    rate: Rate
    """Sending rate, headers included."""
    packet_size: Size = Size(1000)
    """Size of a packet on the wire, headers included."""

    def fits(self, headers: int, path: Path) -> Iterator[Problem]:
        """Yields a problem if its packets are too small for their headers, or too large."""
        if not headers < self.packet_size <= rules.IP_PACKET:
            right = f"more than the {headers} bytes of headers, and at most {rules.IP_PACKET} bytes"
            yield Problem((*path, "packet_size"), f'found "{self.packet_size}"; expected {right}')

    def to_ir(self, reading: Reading) -> Any:
        """As the engine takes it."""
        return {"packets": super().to_ir(reading)}


class PictureMedia(Model):
    """Pictures with a fixed number of segments, one packet each; losses are reported by NEWPRED messages."""

    rate: Rate
    """Sending rate, headers included."""
    fps: Annotated[float, Field(ge=0.001, le=1000, allow_inf_nan=False)]
    """Number of pictures per second."""
    segments: Annotated[int, Field(ge=1, le=1000)]
    """Number of segments of a picture."""

    def fits(self, headers: int, path: Path) -> Iterator[Problem]:
        """Yields a problem if its packets are too small for their headers, or too large."""
        size = round(self.rate / (8 * self.fps * self.segments))
        if not headers < size <= rules.IP_PACKET:
            right = f"expected more than the {headers} bytes of headers, and at most {rules.IP_PACKET} bytes"
            yield Problem((*path, "segments"), f"packets would have {size} bytes; {right}")

    def to_ir(self, reading: Reading) -> Any:
        """As the engine takes it."""
        return {"segments": super().to_ir(reading)}


class Member(Model):
    """A member of a session, or several identical ones at one point."""

    if TYPE_CHECKING:

        def __init__(self, /, **keys: Any) -> None: ...

    name: Name
    """Name of the member, unique in the session; also its canonical name (CNAME) in reports."""
    node: Name | None = None
    """Point of the network at which the member is; by default the point with the member's name."""
    profile: Profile | None = None
    """Profile under which the member sends RTCP; by default the profile of the session."""
    media: (
        Annotated[
            PacketMedia | PictureMedia,
            OneOf("a table with rate and packet_size, or with rate, fps and segments", table=PacketMedia),
        ]
        | None
    ) = None
    """Media that the member sends; none by default."""
    declared_sender: bool = False
    """Whether the member counts as a sender, with sender reports, even if it sends no RTP: it then learns the
    round-trip times to the members that report on it."""
    reports_losses: bool = True
    """Whether the member reports losses, by Generic NACK (RFC 4585 section 6.2.1) or NEWPRED."""
    join: Duration = Duration(0)
    """Time at which the member joins."""
    leave: Duration | None = None
    """Time at which the member leaves; by default the end of the run."""
    crashes: bool = False
    """Whether the member leaves without a BYE."""
    count: Annotated[int, Field(ge=1, le=10_000)] = 1
    """Number of identical members; if several, they are called NAME-1, NAME-2 and so on."""

    @property
    def names(self) -> list[str]:
        """Names of the members that this table stands for."""
        return numbered(self.name, self.count)

    def problems(self, path: Path, duration: Duration) -> Iterator[Problem]:
        """Yields a problem for each value that is out of range or contradicts another."""
        if self.leave is not None and self.leave <= self.join:
            yield Problem((*path, "leave"), f'found "{self.leave}"; expected later than join ({self.join})')
        if self.join >= duration:
            yield Problem((*path, "join"), f'found "{self.join}"; expected less than the duration ({duration})')
        if self.crashes and self.leave is None:
            yield Problem((*path, "crashes"), "found true; it needs leave, the time at which the member leaves")

    def to_ir(self, reading: Reading) -> Any:
        """As the engine takes it; the session adds the profile."""
        ir = super().to_ir(reading)
        del ir["count"]
        return {**ir, "node": self.node or self.name}


class Session(Model):
    """An RTP session, over multicast trees along the links with the fewest hops.

    >>> Session(name="call", bandwidth="200kbps", members=[Member(name="A1"), Member(name="A2")]).members[1].name
    'A2'
    """

    if TYPE_CHECKING:

        def __init__(self, /, **keys: Any) -> None: ...

    name: Name
    """Name of the session; unique among sessions and flows."""
    bandwidth: Annotated[Rate, rules.POSITIVE]
    """Session bandwidth, of which RTCP may use 5 % (RFC 3550 section 6.2)."""
    profile: Profile = "avpf"
    """Profile under which members send RTCP unless they state their own."""
    minimum: Annotated[Duration, rules.POSITIVE] = Duration(5_000_000_000)
    """Shortest time between two reports under AVP, before randomisation (RFC 3550 section 6.2)."""
    avpf: Avpf = Avpf()
    """Parameters that RFC 4585 leaves to the session."""
    overhead: Size = Size(28)
    """Size of the headers of IPv4 and UDP, which count for the RTCP interval."""
    members: Annotated[list[Member], Field(min_length=1, max_length=10_000)]
    """Members of the session."""

    def problems(self, path: Path, duration: Duration) -> Iterator[Problem]:
        """Yields a problem for each value that is out of range or contradicts another."""
        yield from super().problems(path, duration)
        yield from rules.Bounds(maximum=rules.MAX_OVERHEAD).problems((*path, "overhead"), self.overhead)
        count = sum(member.count for member in self.members)
        if not _MIN_MEMBERS <= count <= _MAX_MEMBERS:
            message = f"found {count}; expected from {_MIN_MEMBERS} to {_MAX_MEMBERS} members"
            yield Problem((*path, "members"), message)
        pictures = {member.media.segments for member in self.members if isinstance(member.media, PictureMedia)}
        media = [member.media for member in self.members if member.media is not None]
        if len(pictures) > 1 or (pictures and any(not isinstance(content, PictureMedia) for content in media)):
            message = (
                "found different kinds of media; expected packets only, or pictures with equal numbers of segments"
            )
            yield Problem((*path, "members"), message)
        taken: dict[str, int] = {}
        for position, member in enumerate(self.members):
            inner = (*path, "members", position)
            for name in member.names:
                if name in taken:
                    yield Problem(
                        (*inner, "name"), f'"{name}" is the name of entry {taken[name]}, too; names are unique'
                    )
                    break
                taken[name] = position + 1
            yield from member.problems(inner, duration)
            if member.media is None:
                continue
            if not 0 < member.media.rate <= rules.MAX_RATE:
                message = f'found "{member.media.rate}"; expected from 1bps to {rules.MAX_RATE}'
                yield Problem((*inner, "media", "rate"), message)
            else:
                yield from member.media.fits(int(self.overhead) + _RTP_HEADER, (*inner, "media"))

    def to_ir(self, reading: Reading) -> Any:
        """As the engine takes it."""
        profiles = {"avp": {"avp": {"minimum": int(self.minimum)}}, "avpf": {"avpf": lowered(self.avpf, reading)}}
        members = [
            {**lowered(member, reading), "name": name, "profile": profiles[member.profile or self.profile]}
            for member in self.members
            for name in member.names
        ]
        return {
            "name": self.name,
            "bandwidth": int(self.bandwidth),
            "overhead": int(self.overhead),
            "members": members,
        }
