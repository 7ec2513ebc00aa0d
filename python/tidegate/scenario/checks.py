"""What no single key can tell: names, routes, and values that must fit each other."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from tidegate.errors import did_you_mean
from tidegate.scenario import population
from tidegate.scenario.explain import Path, Problem
from tidegate.scenario.flows import (
    KINDS,
    Adaptive,
    Audio,
    CbrVideo,
    Feedback,
    FileTransfer,
    Flow,
    Media,
    StatisticalVideo,
    Tcp,
    Udp,
    Web,
)
from tidegate.scenario.frames import LARGEST as LARGEST_FRAME
from tidegate.scenario.links import (
    Back,
    BrownianCapacity,
    GilbertElliott,
    Link,
    LossSchedule,
    MeanLoss,
    NormalJitter,
    Queue,
    Schedule,
    StatusCapacity,
    UniformJitter,
)
from tidegate.scenario.sessions import Member, PictureMedia, Session
from tidegate.units import Duration, Quantity, Rate, Size, show

if TYPE_CHECKING:
    from tidegate.scenario.scenario import Scenario

_MOST_FLOWS = 100_000
_MOST_BINS = 10_000_000
_IP_PACKET = 65_535  # bytes, RFC 791
_RTP_HEADER = 24  # bytes of RTP header with abs-send-time and transport-wide sequence number
_MOST_OVERHEAD = Size(1000)
_UDP_HEADERS = 28  # bytes of IPv4 and UDP, which a capture file has whatever the overhead
_TCP_HEADERS = 40  # bytes of IPv4 and TCP without options
_WIDEST_WINDOW = 2**30  # bytes, RFC 7323 section 2.3
_LONGEST_RTO = 60 * 10**9  # ns; RFC 6298 (2.5) allows a bound of 60 s or more, the engine has 60
_MOST_RATE = Rate(10**12)  # of a sender: 12 ns for a packet of 1500 bytes, where the clock ticks in ns
# opportunities of the generated link are of 1500 bytes, and the engine takes from 1 to 10 million a second
_LEAST_BROWNIAN, _MOST_BROWNIAN = Rate(12_000), Rate(12_000 * 10**7)

# a link of statuses, as the engine has it
_LEAST_STATUS, _LONGEST_WINDOW = Duration(100_000), Duration(60 * 10**9)
# of talk spurts and pauses: long enough that their ends can be counted, and within a day
_LEAST_SPURT, _MOST_SPURT = Duration(1_000_000), Duration(86_400 * 10**9)
_ROUNDING = 1e-9  # how far probabilities may sum to something else than 1: that of decimal fractions


def problems(scenario: Scenario) -> Iterator[Problem]:
    """Everything about a scenario that does not fit together."""
    yield from _times(scenario)
    yield from _unique(scenario)
    yield from _seeds(scenario)
    for position, link in enumerate(scenario.links):
        yield from _link(link, ("links", position), scenario.duration)
    for position, flow in enumerate(scenario.flows):
        yield from _flow(flow, ("flows", position), scenario.duration)
    yield from population.problems(scenario)
    yield from _routes(scenario)
    for position, session in enumerate(scenario.sessions):
        yield from _session(session, ("sessions", position), scenario)
    if not scenario.flows and not scenario.sessions:
        yield Problem(("flows",), "neither flows nor sessions; expected at least one of them")


def _times(scenario: Scenario) -> Iterator[Problem]:
    if not scenario.duration:
        yield _positive(("duration",), scenario.duration)
    elif scenario.warmup >= scenario.duration:
        what = f'found "{scenario.warmup}"; expected less than the duration ({scenario.duration})'
        yield Problem(("warmup",), what)
    if not scenario.bin:
        yield _positive(("bin",), scenario.bin)
    elif scenario.record != "summary":
        members = sum(member.count for session in scenario.sessions for member in session.members)
        series = sum(flow.count for flow in scenario.flows) + members + 2 * len(scenario.links)
        if scenario.duration / scenario.bin * series > _MOST_BINS:
            what = f'found "{scenario.bin}"; that makes more than {_MOST_BINS} bins for all flows and links'
            yield Problem(("bin",), what)


def _unique(scenario: Scenario) -> Iterator[Problem]:
    everything: dict[str, Sequence[Link | Flow | Session]] = {"links": scenario.links, "flows": scenario.flows}
    if scenario.sessions:
        everything["sessions"] = scenario.sessions
    seen: dict[str, int] = {}
    for key, entries in everything.items():
        if key != "sessions":
            # members are flows, too: SESSION.MEMBER
            seen = {}
        if key == "links" and scenario.lte is not None and scenario.lte.name in _link_names(scenario.links):
            yield Problem(("lte", "name"), f'"{scenario.lte.name}" is the name of a link; names are unique')
        for position, entry in enumerate(entries):
            for name in _all_names(entry):
                if name in seen:
                    what = f'"{name}" is taken by number {seen[name]}; names are unique'
                    yield Problem((key, position, "name"), what)
                    break
                seen[name] = position + 1
            if len(seen) > _MOST_FLOWS:
                yield Problem((key,), f"more than {_MOST_FLOWS} in all")
                return


def _seeds(scenario: Scenario) -> Iterator[Problem]:
    entries: list[Link | Flow | Session] = [*scenario.links, *scenario.flows, *scenario.sessions]
    known = [name for entry in entries for name in _all_names(entry)]
    known += [] if scenario.lte is None else [scenario.lte.name]
    for name in scenario.seeds:
        if name not in known:
            hint = did_you_mean(name, known) or f"; there are {', '.join(known[:12])}"
            yield Problem(("seeds", name), f"no link, flow or member has that name{hint}")


def _link_names(links: Sequence[Link]) -> set[str]:
    return {name for link in links for name in _all_names(link)}


def _all_names(entry: Link | Flow | Session) -> list[str]:
    if isinstance(entry, Session):
        return [f"{entry.name}.{name}" for member in entry.members for name in member.names]
    if isinstance(entry, Link):
        return [entry.name] if entry.back is False else [entry.name, f"{entry.name}.back"]
    return flow_names(entry)


def flow_names(flow: Flow) -> list[str]:
    """What the flows that a `[[flows]]` table stands for are called, without their way back."""
    if flow.count == 1:
        return [flow.name]
    return [f"{flow.name}-{number}" for number in range(1, flow.count + 1)]


def _positive(path: Path, value: Quantity) -> Problem:
    return Problem(path, f'found "{value}"; expected more than zero')


def _order(low: tuple[str, Quantity], high: tuple[str, Quantity], path: Path) -> Iterator[Problem]:
    """`low` must not be above `high`; both with their keys below `path`."""
    if low[1] > high[1]:
        what = f'found "{low[1]}"; expected at most {high[0]} ({high[1]})'
        yield Problem((*path, low[0]), what)


def _steps(steps: Sequence[tuple[Duration, object]], path: Path) -> Iterator[Problem]:
    if steps and steps[0][0] != 0:
        yield Problem((*path, 0), f'begins at "{steps[0][0]}"; the first step is at "0s"')
    for position in range(1, len(steps)):
        before, here = steps[position - 1][0], steps[position][0]
        if here <= before:
            what = f'"{here}" after "{before}"; steps are in order of time'
            yield Problem((*path, position), what)
            return


def _link(link: Link, path: Path, duration: Duration) -> Iterator[Problem]:
    if link.from_ == link.to:
        yield Problem((*path, "to"), f'found "{link.to}"; a link goes to another point than its from')
    yield from _direction(link.capacity, link.loss, link.jitter, path)
    yield from _statuses(link, link.capacity, path, duration)
    yield from _external(link, path)
    back = link.back
    if not isinstance(back, bool):
        inner = (*path, "back")
        yield from _direction(back.capacity, back.loss, back.jitter, inner)
        yield from _statuses(back, back.capacity or link.capacity, inner, duration)
        yield from _external(back, inner)
        if back.loss is None and link.loss and isinstance(back.capacity, StatusCapacity):
            yield Problem((*inner, "capacity"), f"{_NOT_BESIDE_STATUSES} (loss = 0 here keeps that of the link out)")


def _external(here: Link | Back, path: Path) -> Iterator[Problem]:
    """What only a link of the engine can have."""
    if here.capacity != "external":
        return
    for key in ("delay", "queue", "loss", "byte_error", "jitter"):
        if key in here.model_fields_set:
            what = "an external link does to packets what whoever drives the run does, and nothing else"
            yield Problem((*path, key), what)


_NOT_BESIDE_STATUSES = "a link of statuses has neither queue nor loss of its own: what it cannot carry is lost"


def _statuses(here: Link | Back, capacity: object, path: Path, duration: Duration) -> Iterator[Problem]:
    """What belongs to a link of statuses, of one direction, and what cannot stand beside it."""
    if not isinstance(capacity, StatusCapacity):
        return
    if "queue" in here.model_fields_set and here.queue not in (None, Queue()):
        yield Problem((*path, "queue"), _NOT_BESIDE_STATUSES)
    if here.loss:
        yield Problem((*path, "loss"), _NOT_BESIDE_STATUSES)
    if here.capacity is None:
        return  # it was said of the other direction
    at = (*path, "capacity")
    if capacity.interval < _LEAST_STATUS:
        yield Problem((*at, "interval"), f'found "{capacity.interval}"; expected at least {_LEAST_STATUS}')
    elif duration / capacity.interval > _MOST_BINS:
        what = f'found "{capacity.interval}"; that makes more than {_MOST_BINS} statuses, one after the other'
        yield Problem((*at, "interval"), what)
    if capacity.rate_window > _LONGEST_WINDOW:
        yield Problem((*at, "rate_window"), f'found "{capacity.rate_window}"; expected at most {_LONGEST_WINDOW}')
    names = [one.name for one in capacity.statuses]
    for position, name in enumerate(names):
        if name in names[:position]:
            what = f'"{name}" is taken by number {names.index(name) + 1}; names are unique'
            yield Problem((*at, "statuses", position, "name"), what)
    total = sum(one.probability for one in capacity.statuses)
    if abs(total - 1) > _ROUNDING:
        yield Problem((*at, "statuses"), f"the probabilities sum to {total:.12g}; expected 1")
    if not any(one.capacity and one.probability for one in capacity.statuses):
        what = "every status that can occur carries nothing; a link that never carries anything is no link"
        yield Problem((*at, "statuses"), what)


def _direction(capacity: object, loss: object, jitter: object, path: Path) -> Iterator[Problem]:
    at = (*path, "capacity")
    match capacity:
        case Rate() if capacity == 0:
            yield Problem(at, f'found "{capacity}"; a link that never carries anything is no link')
        case Schedule(schedule=steps, period=period):
            yield from _steps(steps, (*at, "schedule"))
            if all(rate == 0 for _, rate in steps):
                yield Problem(at, "every rate is zero; a link that never carries anything is no link")
            if period is not None and period <= steps[-1][0]:
                what = f'found "{period}"; expected more than the last step ({steps[-1][0]})'
                yield Problem((*at, "period"), what)
        case BrownianCapacity(brownian=settings):
            yield from _order(("start", settings.start), ("max", settings.max), (*at, "brownian"))
            bounds = (("max", settings.max, _LEAST_BROWNIAN), ("sigma", settings.sigma, Rate(1_200)))
            for key, rate, least in bounds:
                if not least <= rate <= _MOST_BROWNIAN and not (key == "sigma" and not rate):
                    what = f'found "{rate}"; expected from {least} to {_MOST_BROWNIAN}'
                    yield Problem((*at, "brownian", key), what)
    yield from _loss(loss, (*path, "loss"))
    match jitter:
        case UniformJitter(uniform=span) if span == 0:
            yield _positive((*path, "jitter", "uniform"), span)
        case NormalJitter(normal=span) if span == 0:
            yield _positive((*path, "jitter", "normal"), span)


def _loss(loss: object, path: Path) -> Iterator[Problem]:
    match loss:
        case MeanLoss(mean=mean, burst=burst):
            largest = burst / (1 + burst)
            if mean > largest:
                what = f"found {mean:g}; bursts of {burst:g} allow at most {largest:.3g}"
                yield Problem((*path, "mean"), what)
        case GilbertElliott(to_bad=to_bad, to_good=to_good) if not to_bad and not to_good:
            yield Problem(path, "to_bad and to_good are both 0; the state would never change")
        case LossSchedule(schedule=steps):
            yield from _steps(steps, (*path, "schedule"))


def _flow(flow: Flow, path: Path, duration: Duration) -> Iterator[Problem]:
    kinds = [kind for kind in KINDS if getattr(flow, kind) is not None]
    if len(kinds) != 1:
        found = " and ".join(kinds) if kinds else "none of them"
        yield Problem(path, f"has {found}; expected exactly one of media, udp, tcp and external")
    if flow.from_ == flow.to:
        yield Problem((*path, "to"), f'found "{flow.to}"; a flow goes to another point than its from')
    last = Duration(flow.start + flow.start_step * (flow.count - 1))
    if last >= duration > 0:
        which = "start" if flow.start >= duration else "start_step"
        what = f'the last one starts at "{last}"' if which == "start_step" else f'found "{last}"'
        yield Problem((*path, which), f"{what}; expected before the run's end ({duration})")
    if flow.stop is not None and flow.stop <= last:
        yield Problem((*path, "stop"), f'found "{flow.stop}"; expected after the start ({last})')
    if flow.media is not None:
        yield from _media(flow.media, (*path, "media"))
    if flow.udp is not None:
        yield from _udp(flow.udp, (*path, "udp"))
    if flow.tcp is not None:
        yield from _tcp(flow.tcp, (*path, "tcp"))


def _media(media: Media, path: Path) -> Iterator[Problem]:
    if media.video is False and media.audio is False:
        yield Problem(path, "has neither video nor audio; expected at least one of them")
    yield from _bounds(media, path)
    yield from _sources(media, path)
    yield from _feedback(media.feedback, (*path, "feedback"))
    if isinstance(media.playout, Adaptive):
        bounds = media.playout.adaptive
        yield from _order(("min", bounds.min), ("max", bounds.max), (*path, "playout", "adaptive"))
    yield from media.repair.problems((*path, "repair"), media.video is not False)
    yield from _packet(media, path)
    for position, (begin, end) in enumerate(media.pauses):
        before = media.pauses[position - 1][1] if position else 0
        if not before <= begin < end:
            what = f'"{begin}" to "{end}"; pauses are pairs in order of time, one after the other'
            yield Problem((*path, "pauses", position), what)


def _feedback(feedback: Feedback, path: Path) -> Iterator[Problem]:
    if not feedback.interval:
        yield _positive((*path, "interval"), feedback.interval)
    if feedback.reports == 0:
        yield _positive((*path, "reports"), feedback.reports)
    if feedback.bandwidth is not None:
        yield from _rate((*path, "bandwidth"), feedback.bandwidth)
    if feedback.profile == "avpf":
        if feedback.reports is not None:
            yield Problem((*path, "reports"), f'found "{feedback.reports}"; profile "avpf" has rr_interval instead')
        return
    for key in ("reduced_size", "rr_interval"):
        if getattr(feedback, key):
            what = show(getattr(feedback, key))
            yield Problem((*path, key), f'found {what}; it needs profile = "avpf", which is "{feedback.profile}"')


def _bounds(media: Media, path: Path) -> Iterator[Problem]:
    low, top = media.least_rate, media.largest_rate
    if media.max_rate is not None:
        yield from _rate((*path, "max_rate"), media.max_rate)
    if not top:
        return  # it was said of max_rate, or is of the sources
    if not low:
        yield _positive((*path, "min_rate"), low)
    yield from _order(("min_rate", low), ("max_rate", top), path)
    if "start_rate" in media.model_fields_set and not low <= media.start_rate <= top:
        what = f'found "{media.start_rate}"; expected between {low} and {top}'
        yield Problem((*path, "start_rate"), what)


def _rate(path: Path, rate: Rate) -> Iterator[Problem]:
    """A rate of a sender: some, and not so much that time cannot pass between two packets."""
    if not rate:
        yield _positive(path, rate)
    if rate > _MOST_RATE:
        yield Problem(path, f'found "{rate}"; expected at most {_MOST_RATE}')


def _sources(media: Media, path: Path) -> Iterator[Problem]:
    if isinstance(media.video, CbrVideo):
        yield from _cbr(media.video, media.overhead, (*path, "video"))
    elif media.video is not False:
        inner = (*path, "video")
        yield from _order(("min", media.video.min), ("max", media.video.max), inner)
        yield from _rate((*inner, "max"), media.video.max)
        if isinstance(media.video, StatisticalVideo):
            burst = media.video.burst
            if not burst:
                yield _positive((*inner, "burst"), burst)
            if burst > LARGEST_FRAME:
                yield Problem((*inner, "burst"), f'found "{burst}"; expected at most {Size(LARGEST_FRAME)}')
    if media.audio is not False:
        yield from _rate((*path, "audio", "rate"), media.audio.rate)
        if not media.audio.interval:
            yield _positive((*path, "audio", "interval"), media.audio.interval)
        if media.audio.rate * media.audio.interval > LARGEST_FRAME * 8 * 10**9:
            what = f'found "{media.audio.interval}"; that makes packets of more than {Size(LARGEST_FRAME)}'
            yield Problem((*path, "audio", "interval"), what)
        yield from _spurts(media.audio, (*path, "audio", "spurts"))


def _spurts(audio: Audio, path: Path) -> Iterator[Problem]:
    if audio.means is None:
        return
    for key, mean in (("talk", audio.means.talk), ("pause", audio.means.pause)):
        if not _LEAST_SPURT <= mean <= _MOST_SPURT:
            what = f'found "{mean}"; expected from {_LEAST_SPURT} to {_MOST_SPURT}'
            yield Problem((*path, key), what)


def _cbr(video: CbrVideo, overhead: Size, path: Path) -> Iterator[Problem]:
    if (video.rate is None) == (not video.schedule):
        found = "neither" if video.rate is None else "both"
        yield Problem(path, f"has {found} of rate and schedule; expected exactly one")
        return
    if video.rate is not None:
        yield from _rate((*path, "rate"), video.rate)
    for position, (_, rate) in enumerate(video.schedule):
        if rate:
            yield from _rate((*path, "schedule", position), rate)
    yield from _steps(video.schedule, (*path, "schedule"))
    if video.schedule and not video.max:
        yield Problem((*path, "schedule"), "every rate is zero; a source that never sends anything is no source")
    # a byte of payload, and what an IP packet holds with the headers that a capture file has
    least = Size(overhead + _RTP_HEADER + 1)
    most = Size(_IP_PACKET - max(_UDP_HEADERS - overhead, 0))
    if not least <= video.packet_size <= most:
        what = f'found "{video.packet_size}"; expected from {least}, the headers and a byte, to {most}'
        yield Problem((*path, "packet_size"), what)


def _packet(media: Media, path: Path) -> Iterator[Problem]:
    if media.overhead > _MOST_OVERHEAD:
        yield Problem((*path, "overhead"), f'found "{media.overhead}"; expected at most {_MOST_OVERHEAD}')
        return
    headers = max(media.overhead, _UDP_HEADERS) + _RTP_HEADER + media.repair.added
    smallest, largest = Size(64), Size(_IP_PACKET - headers)
    if not smallest <= media.payload <= largest:
        what = f'found "{media.payload}"; expected from {smallest} to {largest}'
        yield Problem((*path, "payload"), what)


def _udp(udp: Udp, path: Path) -> Iterator[Problem]:
    if udp.rate or not any(rate for _, rate in udp.schedule):
        yield from _rate((*path, "rate"), udp.rate)
    for position, (_, rate) in enumerate(udp.schedule):
        if rate:
            yield from _rate((*path, "schedule", position), rate)
    yield from _steps(udp.schedule, (*path, "schedule"))
    if not 1 <= udp.packet_size <= _IP_PACKET:
        what = f'found "{udp.packet_size}"; expected from 1B to {Size(_IP_PACKET)}'
        yield Problem((*path, "packet_size"), what)
    for key, value in (("on", udp.on), ("off", udp.off)):
        if udp.pattern == "on_off" and not value:
            yield Problem((*path, key), 'is needed with pattern "on_off", and more than zero')
        elif udp.pattern != "on_off" and value is not None:
            yield Problem((*path, key), f'belongs to pattern "on_off", found "{udp.pattern}"')


def _tcp(tcp: Tcp, path: Path) -> Iterator[Problem]:
    if not _TCP_HEADERS < tcp.packet_size <= _IP_PACKET:
        what = f'found "{tcp.packet_size}"; expected from {Size(_TCP_HEADERS + 1)} to {Size(_IP_PACKET)}'
        yield Problem((*path, "packet_size"), what)
    if tcp.receive_window < tcp.packet_size:
        what = f'found "{tcp.receive_window}"; expected at least packet_size ({tcp.packet_size})'
        yield Problem((*path, "receive_window"), what)
    elif tcp.receive_window > _WIDEST_WINDOW:
        what = f'found "{tcp.receive_window}"; expected at most {Size(_WIDEST_WINDOW)}'
        yield Problem((*path, "receive_window"), what)
    if not tcp.min_rto:
        yield _positive((*path, "min_rto"), tcp.min_rto)
    elif tcp.min_rto > _LONGEST_RTO:
        what = f'found "{tcp.min_rto}"; expected at most the largest time-out ({Duration(_LONGEST_RTO)})'
        yield Problem((*path, "min_rto"), what)
    match tcp.workload:
        case FileTransfer(file=size) if not size:
            yield _positive((*path, "workload", "file"), size)
        case Web(web=web):
            inner = (*path, "workload", "web")
            yield from _order(("min", web.min), ("max", web.max), inner)
            for key, value in (("min", web.min), ("idle", web.idle)):
                if not value:
                    yield _positive((*inner, key), value)


def _onward(scenario: Scenario) -> dict[str, list[str]]:
    """The points to which links lead from each point."""
    onward: dict[str, list[str]] = {}
    for link in scenario.links:
        onward.setdefault(link.from_, []).append(link.to)
        onward.setdefault(link.to, [])
        if link.back is not False:
            onward[link.to].append(link.from_)
    return onward


_LEAST_MEMBERS, _MOST_MEMBERS = 2, 10_000


def _session(session: Session, path: Path, scenario: Scenario) -> Iterator[Problem]:
    if not session.bandwidth:
        yield _positive((*path, "bandwidth"), session.bandwidth)
    if not session.minimum:
        yield _positive((*path, "minimum"), session.minimum)
    yield from _order(("overhead", session.overhead), ("the most", _MOST_OVERHEAD), path)
    count = sum(member.count for member in session.members)
    if not _LEAST_MEMBERS <= count <= _MOST_MEMBERS:
        yield Problem((*path, "members"), f"found {count}; expected from {_LEAST_MEMBERS} to {_MOST_MEMBERS} members")
    pictures = {member.media.segments for member in session.members if isinstance(member.media, PictureMedia)}
    media = [member.media for member in session.members if member.media is not None]
    if len(pictures) > 1 or (pictures and any(not isinstance(one, PictureMedia) for one in media)):
        what = "all senders of a session send packets, or pictures of equally many segments"
        yield Problem((*path, "members"), what)
    taken: dict[str, int] = {}
    onward = _onward(scenario)
    first: str | None = None
    for position, member in enumerate(session.members):
        inner = (*path, "members", position)
        for name in member.names:
            if name in taken:
                yield Problem((*inner, "name"), f'"{name}" is taken by number {taken[name]}; names are unique')
                break
            taken[name] = position + 1
        point = member.node or member.name
        if point not in onward:
            known = sorted(onward)
            hint = did_you_mean(point, known)
            what = f'no link touches "{point}"{hint} (points: {", ".join(known[:12])})'
            yield Problem((*inner, "node"), what)
            continue
        first = first or point
        for begin, end in ((first, point), (point, first)):
            if end not in _reachable(begin, onward):
                yield Problem((*inner, "node"), f'no links lead from "{begin}" to "{end}"')
        yield from _member(member, inner, session, scenario.duration)


def _member(member: Member, path: Path, session: Session, duration: Duration) -> Iterator[Problem]:
    if member.leave is not None and member.leave <= member.join:
        yield Problem((*path, "leave"), f'found "{member.leave}"; expected later than join ({member.join})')
    if member.join >= duration:
        yield Problem((*path, "join"), f'found "{member.join}"; expected less than the duration ({duration})')
    if member.crashes and member.leave is None:
        yield Problem((*path, "crashes"), "found true; it needs a time to leave")
    if member.media is None:
        return
    inner = (*path, "media")
    if not 0 < member.media.rate <= _MOST_RATE:
        yield Problem((*inner, "rate"), f'found "{member.media.rate}"; expected from 1bps to {_MOST_RATE}')
        return
    headers = int(session.overhead) + 12
    if isinstance(member.media, PictureMedia):
        size = round(member.media.rate / (8 * member.media.fps * member.media.segments))
        what = f"that makes packets of {size} bytes; expected more than the {headers} of headers and at most 65535"
        if not headers < size <= _IP_PACKET:
            yield Problem((*inner, "segments"), what)
    elif not headers < member.media.packet_size <= _IP_PACKET:
        what = f'found "{member.media.packet_size}"; expected more than the {headers} bytes of headers, at most 65535'
        yield Problem((*inner, "packet_size"), what)


def _routes(scenario: Scenario) -> Iterator[Problem]:
    onward = _onward(scenario)
    if scenario.lte is not None:
        for group in scenario.lte.users:
            onward.setdefault(scenario.lte.core, []).append(group.name)
            onward.setdefault(group.name, []).append(scenario.lte.core)
    reached: dict[str, set[str]] = {}
    for position, flow in enumerate(scenario.flows):
        ends = (("from", flow.from_), ("to", flow.to))
        missing = [(key, point) for key, point in ends if point not in onward]
        for key, point in missing:
            known = sorted(onward)
            hint = did_you_mean(point, known)
            what = f'no link touches "{point}"{hint} (points: {", ".join(known[:12])})'
            yield Problem(("flows", position, key), what)
        if missing:
            continue
        ways = [(flow.from_, flow.to)]
        if flow.udp is None and flow.external is None:
            ways.append((flow.to, flow.from_))
        for begin, end in ways:
            if begin not in reached:
                reached[begin] = _reachable(begin, onward)
            if end not in reached[begin]:
                why = "" if (begin, end) == ways[0] else ", which feedback needs"
                what = f'no links lead from "{begin}" to "{end}"{why}'
                yield Problem(("flows", position), what)


def _reachable(begin: str, onward: dict[str, list[str]]) -> set[str]:
    found, waiting = {begin}, deque([begin])
    while waiting:
        for point in onward[waiting.popleft()]:
            if point not in found:
                found.add(point)
                waiting.append(point)
    return found
