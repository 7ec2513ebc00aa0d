"""Variants of scenarios from short descriptions: another controller, another link, competing flows."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from tidegate._files import file_name
from tidegate.control import registry
from tidegate.control.contenders import Contender, anchored, bare, written
from tidegate.errors import InputError, located
from tidegate.scenario import subject
from tidegate.scenario.scenario import Scenario, assign_all
from tidegate.units import Duration, Rate, Size, show

DEFAULT = "lte-generated"
"""Name of the scenario of comparisons by default."""
PREFIX = "controller."
"""Prefix of keys that are the controller's own settings, beside the controller's name."""
_CROSS = re.compile(r"(?P<traffic>[^@*]+)(?:\*(?P<count>\d{1,5}))?(?:@(?P<start>[^-]+)(?:-(?P<stop>[^-]+))?)?")
_BESIDE = re.compile(r"(?P<traffic>[^@]+)(?:@(?P<start>[^-]+)(?:-(?P<stop>[^-]+))?)?")
_BESIDE_FORMS = "nada, scream@20s, gcc:libwebrtc-v1@20s-60s, tcp:cubic@20s"
_CROSS_FORMS = "tcp, tcp:cubic@20s, udp:1Mbps@10s-30s, udp:poisson:500kbps, web*10, media:gcc@5s; *N adds N flows"


def with_controller(scenario: Scenario, controller: Contender | Mapping[str, Any]) -> Scenario:
    """Returns the scenario with another controller in its subject.

    Args:
        scenario: The scenario.
        controller: A name with its parts, a class, one of them with settings `(Mine, {"k": 2})`, or a table of a
            scenario that names a controller.

    Raises:
        InputError: when the subject has no media.
        ControllerError: when there is no such controller.
    """
    position = subject.of_scenario(scenario, "controller")
    named = controller if isinstance(controller, str | Mapping) else written(controller)
    if isinstance(named, str):
        # errors are about the name as typed, before its path is completed
        registry.choose(named, Path())
    data = scenario.to_dict()
    data["flows"][position]["media"]["controller"] = anchored(named)
    return Scenario.from_dict(data, scenario.base)


def labelled(controller: str, values: Mapping[str, str]) -> str:
    """A controller's name with its own settings: those of `values` whose keys begin with `controller.`.

    >>> labelled("gcc", {"controller.beta": "0.8"}), labelled("gcc:draft-02", {"controller.k_up": "0.01"})
    ('gcc:beta=0.8', 'gcc:draft-02,k_up=0.01')
    """
    parts = [f"{key.removeprefix(PREFIX)}={value}" for key, value in values.items() if key.startswith(PREFIX)]
    return f"{controller}{':' if bare(controller) else ','}{','.join(parts)}" if parts else controller


def scenario_for(
    *,
    link: str | Path | None = None,
    capacity: str | None = None,
    delay: str | None = None,
    queue: str | None = None,
    cross: Iterable[str] = (),
    beside: str | Iterable[str] = (),
    duration: str | None = None,
    media_source: str | None = None,
    base: Scenario | str | Path | None = None,
    changes: Mapping[str, Any] | None = None,
) -> Scenario:
    """Builds a scenario from short descriptions, as `tidegate compare` does.

    Args:
        link: File with a recorded network; each seed begins at another position in it. By default a generated LTE link.
        capacity: A constant capacity instead.
        delay: One-way propagation delay.
        queue: Queue limit in time, packets or bytes: `300ms`, `100p`, `64kB`.
        cross: Competing flows, such as `tcp:cubic@20s` or `udp:1Mbps@10s-30s`.
        beside: Flows like the subject, with the same sources, under other controllers, or TCP: `nada`, `scream@20s`,
            `tcp:cubic@20s-60s`; one, or several.
        duration: Simulated time.
        media_source: statistical, ideal or greedy.
        base: Scenario to start from; its first link and its subject are changed.
        changes: Values by dotted key that replace those of the result, which is checked as a whole.

    Raises:
        InputError: when a description is invalid or does not fit the scenario.

    >>> scenario_for(capacity="3Mbps", cross=["tcp:cubic@20s"]).flows[1].tcp.algorithm
    'cubic'
    """
    if link is not None and capacity is not None:
        raise InputError("found both --link, which has its own capacity, and --capacity; expected one of them")
    scenario = base if isinstance(base, Scenario) else Scenario.load(base or DEFAULT)
    data, where = scenario.to_dict(), scenario.base
    if link is not None or capacity is not None:
        # the description and source of the replaced network no longer hold
        data.pop("description", None)
        data.pop("source", None)
        data["name"] = file_name(Path(Path(link).name.removesuffix(".gz")).stem if link is not None else str(capacity))[
            :64
        ]
    first = data["links"][0]
    if link is not None:
        # random, since from a fixed offset each seed would see the same minute of a long recording
        first["capacity"] = {"trace": str(Path(link).resolve()), "offset": "random"}
    if capacity is not None:
        first["capacity"] = capacity
    if delay is not None:
        first["delay"] = str(_parse_option("--delay", Duration.parse, delay))
    if queue is not None:
        first["queue"] = _queue(queue)
    if duration is not None:
        data["duration"] = str(_parse_option("--duration", Duration.parse, duration))
    if media_source is not None:
        with located("--media-source"):
            media = data["flows"][subject.of_scenario(scenario, "video")]["media"]
        media["video"] = {**(media.get("video") or {}), "source": media_source}
    _compete(data, scenario, cross, [beside] if isinstance(beside, str) else beside)
    assign_all(data, changes or {})
    return Scenario.from_dict(data, where)


def _compete(data: dict[str, Any], scenario: Scenario, cross: Iterable[str], beside: Iterable[str]) -> None:
    """Adds competing flows."""
    taken = {flow.get("name", "flow") for flow in data.get("flows", [])}
    for text in cross:
        if not taken:
            raise InputError(f"--cross {text}: {scenario.name} has no flow, whose ends cross traffic would have")
        ends = data["flows"][subject.place([(flow.name, flow.kind) for flow in scenario.flows])]
        data["flows"].append(_cross(text, ends, taken))
    for text in beside:
        position = subject.of_scenario(scenario, "controller")
        data["flows"].append(_beside(text, data["flows"][position], taken))


def _parse_option(option: str, parse: Any, text: str) -> Any:
    with located(option):
        return parse(text)


def _queue(text: str) -> dict[str, Any]:
    packets = re.fullmatch(r"(\d{1,9})\s*(?:p|packets)", text)
    if packets:
        return {"packets": int(packets[1])}
    for key, kind in (("time", Duration), ("bytes", Size)):
        try:
            return {key: str(kind.parse(text))}
        except InputError:
            continue
    right = 'expected a time, a size or a number of packets: "300ms", "64kB", "100p"'
    raise InputError(f"--queue: found {show(text)}; {right}")


def _cross(text: str, ends: Mapping[str, Any], taken: set[str]) -> dict[str, Any]:
    match = _CROSS.fullmatch(text.strip())
    if match is None:
        raise InputError(f"--cross: found {show(text)}; expected a flow such as {_CROSS_FORMS}")
    kind, _, rest = match["traffic"].partition(":")
    flow: dict[str, Any] = {key: ends[key] for key in ("from", "to") if key in ends}
    flow["name"] = _unused_name(kind, taken)
    flow |= _times(f"--cross {text}", match)
    if match["count"]:
        flow["count"] = int(match["count"])
    match kind:
        case "tcp":
            flow["tcp"] = {"algorithm": rest} if rest else {}
        case "web":
            flow["tcp"] = {"workload": {"web": {}}} | ({"algorithm": rest} if rest else {})
        case "udp" if rest:
            pattern, colon, rate = rest.rpartition(":")
            flow["udp"] = {"rate": str(_parse_option(f"--cross {text}", Rate.parse, rate))}
            flow["udp"] |= {"pattern": pattern} if colon else {}
        case "media" if rest:
            registry.choose(rest, Path())
            flow["media"] = {"controller": anchored(rest)}
        case _:
            raise InputError(f"--cross: found {show(text)}; expected a flow such as {_CROSS_FORMS}")
    return flow


def _beside(text: str, template: Mapping[str, Any], taken: set[str]) -> dict[str, Any]:
    match = _BESIDE.fullmatch(text.strip())
    if match is None:
        raise InputError(f"--with: found {show(text)}; expected a controller or a TCP, such as {_BESIDE_FORMS}")
    flow = copy.deepcopy(dict(template))
    for key in ("start", "stop", "count", "start_step"):
        flow.pop(key, None)
    flow["name"] = _unused_name("beside", taken)
    flow |= _times(f"--with {text}", match)
    kind, _, algorithm = match["traffic"].partition(":")
    if kind == "tcp":
        del flow["media"]
        flow["tcp"] = {"algorithm": algorithm} if algorithm else {}
    else:
        _parse_option("--with", partial(registry.choose, base=Path()), match["traffic"])
        flow["media"]["controller"] = anchored(match["traffic"])
    return flow


def _times(option: str, match: re.Match[str]) -> dict[str, str]:
    """Start and stop of a flow, as far as an option has them."""
    return {key: str(_parse_option(option, Duration.parse, match[key])) for key in ("start", "stop") if match[key]}


def _unused_name(kind: str, taken: set[str]) -> str:
    names = (kind if number == 1 else f"{kind}{number}" for number in range(1, 10**6))
    name = next(name for name in names if name not in taken)
    taken.add(name)
    return name
