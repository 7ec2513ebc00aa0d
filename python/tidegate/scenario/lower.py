"""From what people write to what the engine takes: base units, no defaults left, files read."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from tidegate import controllers, trace
from tidegate.errors import InputError, TidegateError, TraceError
from tidegate.scenario import frames, population
from tidegate.scenario.checks import flow_names
from tidegate.scenario.flows import (
    Adaptive,
    Audio,
    CbrVideo,
    EncoderVideo,
    FileTransfer,
    Fixed,
    Flow,
    FramesVideo,
    GreedyVideo,
    IdealVideo,
    Media,
    StatisticalVideo,
    Tcp,
    Udp,
    Video,
    Web,
)
from tidegate.scenario.links import (
    Back,
    BrownianCapacity,
    GilbertElliott,
    Link,
    LossSchedule,
    MeanLoss,
    NormalJitter,
    Queue,
    Rfc8868Jitter,
    Schedule,
    StatusCapacity,
    TraceCapacity,
    UniformJitter,
)
from tidegate.scenario.sessions import Member, PictureMedia, Session
from tidegate.units import Duration, Fraction, Rate

if TYPE_CHECKING:
    from tidegate.scenario.scenario import Scenario

Ir = dict[str, Any]
T = TypeVar("T")


@dataclass
class Inputs:
    """What an experiment needs beside its settings."""

    traces: list[trace.Trace] = field(default_factory=list)
    """Recorded networks, by their index in the experiment."""
    python: dict[str, Callable[[], Any]] = field(default_factory=dict)
    """What makes controllers written in Python, and iterators over pictures, by their name in the experiment."""
    files: dict[str, str] = field(default_factory=dict)
    """SHA-256 of every file that the experiment was made from, by name."""


@dataclass(frozen=True)
class Experiment:
    """What the engine takes for one run."""

    ir: Ir
    """The normalised experiment; see `crates/sim/src/scenario`."""
    inputs: Inputs
    """What it needs beside that."""
    hash: str
    """Of everything that the run's result depends on but its seed; hexadecimal."""


class Files:
    """What has been read for several scenarios, so that they share it."""

    def __init__(self) -> None:
        self._found: dict[Any, Any] = {}

    def once(self, key: Any, read: Callable[[], T]) -> T:
        """What `read` gave when it was called for `key` the first time."""
        if key not in self._found:
            self._found[key] = read()
        found: T = self._found[key]
        return found


class Lowered:
    """A scenario as the engine takes it, with the files that it names read: once for all seeds.

    Runs in threads share it. Another process gets the scenario alone and reads the files itself, once for all runs
    that it does of this object.

    Args:
        scenario: What is to be run.
        files: What has been read for others; by default all is read anew.

    Raises:
        InputError: when a file or a controller that the scenario names is not usable.
    """

    def __init__(self, scenario: Scenario, files: Files | None = None) -> None:
        self.scenario = scenario
        self._key = f"{os.getpid()} {next(_numbers)}"
        self._parts: tuple[Ir, Inputs] | None = _lower(scenario, files or Files())
        self._hashes: dict[str, str] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        """How it goes to another process: without what was read."""
        return _in_this_process, (self._key, self.scenario)

    @property
    def inputs(self) -> Inputs:
        """What its runs need beside their settings."""
        return self._lowered()[1]

    def _lowered(self) -> tuple[Ir, Inputs]:
        if self._parts is None:
            self._parts = _lower(self.scenario, Files())
        return self._parts

    def experiment(self, *, seed: int | None = None, record: str | None = None) -> Experiment:
        """The experiment of one run.

        Args:
            seed: Instead of the scenario's.
            record: How much is kept, instead of the scenario's.

        Raises:
            InputError: when they are not usable, or nobody is in the scenario's radio network.
        """
        if seed is not None and not 0 <= seed < 2**64:
            raise InputError(f"seed: found {seed}; expected a whole number from 0 to 2^64 - 1")
        if record not in {None, "summary", "series", "packets"}:
            raise InputError(f"record: found {record!r}; expected summary, series or packets")
        scenario, (ir, inputs) = self.scenario, self._lowered()
        ir = {
            **ir,
            "seed": scenario.seed if seed is None else seed,
            "record": {**ir["record"], "level": record or scenario.record},
        }
        level = ir["record"]["level"]
        if level not in self._hashes:
            self._hashes[level] = _hash(ir, inputs, scenario)
        return Experiment(ir if scenario.lte is None else _populated(ir, scenario), inputs, self._hashes[level])


_numbers = itertools.count()
_known: dict[str, Lowered] = {}
_KEPT = 8  # scenarios whose files a process keeps for the next run: runs of one scenario come one after the other


def _in_this_process(key: str, scenario: Scenario) -> Lowered:
    """What another process calls `key`; reads its files when they are needed, so that an error is one of the run."""
    found = _known.pop(key, None)
    if found is None:
        found = Lowered.__new__(Lowered)
        found.scenario, found._key, found._parts, found._hashes = scenario, key, None, {}  # noqa: SLF001
    _known[key] = found
    while len(_known) > _KEPT:
        del _known[next(iter(_known))]
    return found


def lower(scenario: Scenario, *, seed: int | None = None, record: str | None = None) -> Experiment:
    """The experiment of one run of a scenario; for several see [Lowered][tidegate.scenario.lower.Lowered].

    Raises:
        InputError: when a file or a controller that it names is not usable.
    """
    return Lowered(scenario).experiment(seed=seed, record=record)


def _lower(scenario: Scenario, files: Files) -> tuple[Ir, Inputs]:
    ir: Ir = {
        "name": scenario.name,
        "duration": int(scenario.duration),
        "warmup": int(scenario.warmup),
        "seeds": [[name, value] for name, value in scenario.seeds.items()],
        "record": {"bin": int(scenario.bin), "capture": scenario.capture},
        "sending_jitter": _jitter_of_senders(scenario.sending_jitter),
    }
    lowering = _Lowering(Inputs(), scenario, files)
    ir["links"] = [one for link in scenario.links for one in lowering.link(link)]
    ir["flows"] = [one for flow in scenario.flows for one in lowering.flow(flow)]
    if scenario.sessions:
        ir["sessions"] = [_session(session) for session in scenario.sessions]
    return ir, lowering.inputs


def _hash(ir: Ir, inputs: Inputs, scenario: Scenario) -> str:
    # who is in a radio network when depends on the seed; the hash is of what it depends on beside it
    plain = ir if scenario.lte is None else {**ir, "lte": scenario.lte.model_dump(mode="json")}
    plain = {key: value for key, value in plain.items() if key not in {"seed", "name"}}
    text = json.dumps([plain, sorted(inputs.files.values())], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _populated(ir: Ir, scenario: Scenario) -> Ir:
    """With the users of the radio network, and a flow for each where a flow is theirs."""
    assert scenario.lte is not None  # noqa: S101
    groups = population.population(scenario, ir["seed"])
    end = int(scenario.duration)
    flows = [flow for one in ir["flows"] for flow in population.flows_of(one, groups, end)]
    names: set[str] = set()
    for flow in flows:
        if flow["name"] in names:
            raise InputError(f'flows: two are called "{flow["name"]}"; one of a user is called after its number')
        names.add(flow["name"])
    if not names:
        raise InputError("flows: nobody whom a flow is for comes before the run's end")
    return {**ir, "lte": population.lower_radio(scenario.lte, groups), "flows": flows}


def _jitter_of_senders(value: str | Duration) -> str | int:
    return int(value) if isinstance(value, Duration) else value


def _session(session: Session) -> Ir:
    members = [_member(session, member, name) for member in session.members for name in member.names]
    bandwidth, overhead = int(session.bandwidth), int(session.overhead)
    return {"name": session.name, "bandwidth": bandwidth, "overhead": overhead, "members": members}


def _member(session: Session, member: Member, name: str) -> Ir:
    rules = session.avpf
    profile: Ir = {"avp": {"minimum": int(session.minimum)}}
    if (member.profile or session.profile) == "avpf":
        profile = {
            "avpf": {
                "l": rules.l,
                "k": rules.k,
                "redraw": rules.redraw,
                "max_feedback_delay": int(rules.max_feedback_delay),
                "rr_interval": int(rules.rr_interval),
                "reduced_size": rules.reduced_size,
            }
        }
    media: Ir | None = None
    if isinstance(member.media, PictureMedia):
        pictures = member.media
        media = {"segments": {"fps": pictures.fps, "segments": pictures.segments, "rate": int(pictures.rate)}}
    elif member.media is not None:
        media = {"packets": {"size": int(member.media.packet_size), "rate": int(member.media.rate)}}
    return {
        "name": name,
        "node": member.node or member.name,
        "profile": profile,
        "media": media,
        "declared_sender": member.declared_sender,
        "reports_losses": member.reports_losses,
        "join": int(member.join),
        "leave": _maybe(member.leave),
        "crashes": member.crashes,
    }


class _Lowering:
    """One pass over a scenario."""

    def __init__(self, inputs: Inputs, scenario: Scenario, files: Files) -> None:
        self.inputs = inputs
        self.files = files
        self.scenario = scenario
        self.base = scenario.base
        self.indices: dict[str, int] = {}

    def link(self, link: Link) -> Iterator[Ir]:
        yield self._direction(link.name, link.from_, link.to, link, Back())
        if link.back is not False:
            back = link.back if isinstance(link.back, Back) else Back()
            yield self._direction(f"{link.name}.back", link.to, link.from_, link, back)

    def _direction(self, name: str, begin: str, end: str, link: Link, other: Back) -> Ir:
        def value(key: str) -> Any:
            special = getattr(other, key)
            return getattr(link, key) if special is None else special

        # a link of statuses has no queue; what the checks let through beside it is the default
        queue = Queue() if isinstance(value("capacity"), StatusCapacity) else value("queue")
        with _Place(self.scenario, f"links.{name}.capacity"):
            capacity = self._capacity(value("capacity"))
        return {
            "name": name,
            "from": begin,
            "to": end,
            "capacity": capacity,
            "delay": int(value("delay")),
            "queue": {
                "packets": queue.packets,
                "bytes": _maybe(queue.bytes),
                "time": _maybe(queue.time),
                "counts_in_service": queue.counts_in_service,
            },
            "loss": _loss(value("loss")),
            "byte_error": float(value("byte_error")),
            "jitter": _jitter(value("jitter")),
        }

    def _capacity(self, capacity: object) -> Any:
        match capacity:
            case "infinite" | "external":
                return capacity
            case Rate():
                return {"constant": int(capacity)}
            case Schedule(schedule=steps, period=period):
                plain = [[int(at), int(rate)] for at, rate in steps]
                return {"schedule": {"steps": plain, "period": _maybe(period)}}
            case TraceCapacity():
                offset, scale = int(capacity.offset), capacity.scale
                index = self._trace(capacity)
                return {"trace": {"index": index, "offset": offset, "scale": scale}}
            case BrownianCapacity(brownian=settings):
                return {
                    "brownian": {
                        "start": int(settings.start),
                        "max": int(settings.max),
                        "sigma": int(settings.sigma),
                        "outage_escape": settings.outage_escape,
                    }
                }
            case StatusCapacity():
                return {
                    "statuses": {
                        "interval": int(capacity.interval),
                        "rate_window": int(capacity.rate_window),
                        "statuses": [
                            {"name": one.name, "capacity": int(one.capacity), "probability": float(one.probability)}
                            for one in capacity.statuses
                        ],
                    }
                }
        raise AssertionError(capacity)

    def _trace(self, capacity: TraceCapacity) -> int:
        path = self.base / capacity.trace
        key = capacity.model_dump_json(exclude={"offset", "scale"})
        if key not in self.indices:
            loaded, self.inputs.files[capacity.trace] = self.files.once(
                (path, key), lambda: (_load(path, capacity), _digest(path))
            )
            self.indices[key] = len(self.inputs.traces)
            self.inputs.traces.append(loaded)
        return self.indices[key]

    def flow(self, flow: Flow) -> Iterator[Ir]:
        for number, name in enumerate(flow_names(flow)):
            ir = {
                "name": name,
                "from": flow.from_,
                "to": flow.to,
                "start": int(flow.start) + number * int(flow.start_step),
                "stop": _maybe(flow.stop),
            }
            if flow.media is not None:
                with _Place(self.scenario, f"flows.{flow.name}.media"):
                    media = self._media(flow.media)
                if not flow.media.both_ways:
                    yield {**ir, "kind": {"media": media}}
                    continue
                back = f"{name}.back"
                yield {**ir, "kind": {"media": {**media, "pair": back}}}
                turned = {**ir, "name": back, "from": flow.to, "to": flow.from_}
                yield {**turned, "kind": {"media": {**media, "pair": name}}}
            elif flow.udp is not None:
                yield {**ir, "kind": {"udp": _udp(flow.udp)}}
            elif flow.tcp is not None:
                yield {**ir, "kind": {"tcp": _tcp(flow.tcp)}}
            elif flow.external is not None:
                yield {**ir, "kind": "external"}

    def _media(self, media: Media) -> Ir:
        chosen = controllers.choose(media.controller, self.base)
        factory = chosen.factory()
        if factory is not None:
            self.inputs.python[chosen.label] = factory
            if chosen.source is not None and chosen.source.is_file():
                self.inputs.files[chosen.name] = _digest(chosen.source)
        audio = media.audio
        return {
            "controller": chosen.to_ir(),
            "min_rate": int(media.least_rate),
            "max_rate": int(media.largest_rate),
            "start_rate": int(media.first_rate),
            "video": None if media.video is False else self._video(media.video),
            "audio": None if audio is False else _audio(audio),
            "feedback": {
                "format": chosen.feedback if media.feedback.format == "auto" else media.feedback.format,
                "interval": int(media.feedback.interval),
                "reports": _maybe(media.feedback.reports),
                "profile": media.feedback.profile,
                "bandwidth": _maybe(media.feedback.bandwidth),
                "reduced_size": media.feedback.reduced_size,
                "rr_interval": int(media.feedback.rr_interval),
            },
            "playout": _playout(media.playout),
            **({"repair": repair} if (repair := media.repair.to_ir()) else {}),
            "payload": int(media.payload),
            "overhead": int(media.overhead),
            "packets": media.packets,
            "queue_limit": int(media.queue_limit),
            "pauses": [[int(begin), int(end)] for begin, end in media.pauses],
            "pair": None,
        }

    def _video(self, video: Video | CbrVideo | EncoderVideo) -> Ir:
        match video:
            case EncoderVideo():
                return self._encoder(video)
            case CbrVideo():
                steps = [[int(at), int(rate)] for at, rate in video.steps]
                source: Any = {"cbr": {"packet_size": int(video.packet_size), "schedule": steps}}
                # it has no frames, and what it sends follows from nothing but its schedule
                return {"source": source, "min": int(video.max), "max": int(video.max), "fps": 0.0}
            case StatisticalVideo():
                source = {
                    "statistical": {
                        "tau_v": int(video.tau_v),
                        "transient_frames": video.transient_frames,
                        "burst": int(video.burst),
                        "scale_t": video.scale_t,
                        "scale_b": video.scale_b,
                    }
                }
            case GreedyVideo():
                source = "greedy"
            case IdealVideo():
                source = "ideal"
            case FramesVideo():
                rungs = self.files.once((self.base, video.ladder), lambda: _ladder(self.base, video.ladder))
                self.inputs.files.update({name: digest for name, digest, _ in rungs})
                plain = [rung for _, _, rung in rungs]
                groups = {} if video.group is None else {"group": video.group}
                source = {"frames": {"rungs": plain, "skip": video.left_out, **groups}}
            case _:
                raise AssertionError(video)
        return {"source": source, "min": int(video.min), "max": int(video.max), "fps": video.fps}

    def _encoder(self, video: EncoderVideo) -> Ir:
        # real video is loaded only where there is some
        from tidegate.media import live, settings

        chosen = settings.Settings.parse(video.clip)
        live.check(chosen)
        clip = chosen.open(self.base)
        # by contents, so that the hash of the experiment is of the pictures, not of a path
        name = f"clip {hashlib.sha256(clip.identity.encode()).hexdigest()[:20]}"
        count = math.ceil(self.scenario.duration / 1e9 * clip.fps) + 1
        self.inputs.python[name] = lambda: clip.pictures(count)
        size = {"width": clip.width, "height": clip.height}
        source = {"encoder": {"codec": live.NAME, "clip": name, **size, "group": chosen.group}}
        return {"source": source, "min": int(video.min), "max": int(video.max), "fps": round(float(clip.fps), 3)}


class _Place:
    """Puts the key before the message of whatever goes wrong inside."""

    def __init__(self, scenario: Scenario, key: str) -> None:
        self.scenario = scenario
        self.key = key

    def __enter__(self) -> None:
        """Begins the place."""

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """Names the place in an error that leaves it."""
        if isinstance(error, InputError):
            where = self.scenario.where(self.key)
            raise type(error)(f"{where + ': ' if where else ''}{self.key}: {error}") from error.__cause__


def _maybe(value: int | None) -> int | None:
    return None if value is None else int(value)


def _load(path: Path, capacity: TraceCapacity) -> trace.Trace:
    loaded = trace.load(
        path,
        format=capacity.format,
        frequency=capacity.frequency,
        direction=capacity.direction,
        reference_rate=capacity.reference_rate,
    )
    if loaded.mean_rate == 0:
        raise TraceError(f"{path}: every rate is zero; a link that never carries anything is no link")
    return loaded


def _ladder(base: Path, pattern: str) -> list[tuple[str, str, list[Any]]]:
    """Of each rung: its file's name and hash, its rate and sizes."""
    rungs = frames.ladder(base, pattern)
    return [(rung.path.name, _digest(rung.path), [int(rung.rate), rung.sizes]) for rung in rungs]


def _digest(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise TidegateError(f"{path}: cannot be read: {error.strerror}") from None


def _loss(loss: object) -> Any:
    match loss:
        case Fraction():
            return {"bernoulli": float(loss)} if loss else "none"
        case MeanLoss(mean=mean, burst=burst):
            # Gilbert's two states, with all lost in the bad one: mean = to_bad / (to_bad + to_good)
            to_good = 1 / burst
            to_bad = to_good * mean / (1 - mean)
            states = {"to_bad": min(to_bad, 1.0), "to_good": to_good}
            return {"gilbert_elliott": {**states, "loss_good": 0.0, "loss_bad": 1.0}}
        case GilbertElliott():
            keys = ("to_bad", "to_good", "loss_good", "loss_bad")
            return {"gilbert_elliott": {key: float(getattr(loss, key)) for key in keys}}
        case LossSchedule(schedule=steps):
            return {"schedule": [[int(at), float(share)] for at, share in steps]}
    raise AssertionError(loss)


def _jitter(jitter: object) -> Any:
    match jitter:
        case "none":
            return "none"
        case Rfc8868Jitter(rfc8868=settings):
            std, mean = int(settings.std), int(settings.mean)
            return {"rfc8868": {"std": std, "n_std": settings.n_std, "mean": mean}}
        case UniformJitter(uniform=largest):
            return {"uniform": {"max": int(largest)}}
        case NormalJitter(normal=std):
            return {"normal": {"std": int(std)}}
    raise AssertionError(jitter)


def _audio(audio: Audio) -> Ir:
    ir: Ir = {"rate": int(audio.rate), "interval": int(audio.interval)}
    if audio.means is not None:
        ir["spurts"] = {"talk": int(audio.means.talk), "pause": int(audio.means.pause)}
    return ir


def _playout(playout: object) -> Ir:
    match playout:
        case Fixed(fixed=delay):
            return {"fixed": {"delay": int(delay)}}
        case Adaptive(adaptive=bounds):
            return {"adaptive": {"min": int(bounds.min), "max": int(bounds.max)}}
    raise AssertionError(playout)


def _udp(udp: Udp) -> Ir:
    pattern: Any = udp.pattern
    if udp.on is not None and udp.off is not None:
        pattern = {"on_off": {"on": int(udp.on), "off": int(udp.off)}}
    return {
        "pattern": pattern,
        "rate": int(udp.rate),
        "packet_size": int(udp.packet_size),
        "schedule": [[int(at), int(rate)] for at, rate in udp.schedule],
    }


def _tcp(tcp: Tcp) -> Ir:
    match tcp.workload:
        case FileTransfer(file=size):
            workload: Any = {"file": int(size)}
        case Web(web=web):
            workload = {"web": {"min": int(web.min), "max": int(web.max), "idle": int(web.idle)}}
        case _:
            workload = "long"
    return {
        "algorithm": tcp.algorithm,
        "workload": workload,
        "initial_window": tcp.initial_window,
        "min_rto": int(tcp.min_rto),
        "delayed_ack": tcp.delayed_ack,
        "handshake": tcp.handshake,
        "receive_window": int(tcp.receive_window),
        "packet_size": int(tcp.packet_size),
    }
