"""What the page needs of Python: scenarios, and what the engine takes for each choice that the page offers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tidegate import _core
from tidegate.control import registry
from tidegate.errors import InputError
from tidegate.scenario import Scenario, subject
from tidegate.scenario.disciplines import managed
from tidegate.scenario.links import Link, Queue, limits
from tidegate.scenario.lower import Ir, RunInput, lower
from tidegate.scenario.ways import Ways
from tidegate.show.play import _refusing as refusing
from tidegate.show.play import _way as way
from tidegate.show.play._lessons import lessons
from tidegate.units import Duration

SECOND = ("nada", "gcc")
"""Beside whom a scenario's own controller is played: the first of them that is another one."""

_BIN = 100_000_000  # ns: ten values a second are what an eye follows

_QUEUES: dict[str, tuple[str, dict[str, Any]]] = {
    "drop-tail-50ms": ("drop-tail, 50 ms", {"queue": {"time": "50ms"}, "discipline": "drop-tail"}),
    "drop-tail-200ms": ("drop-tail, 200 ms", {"queue": {"time": "200ms"}, "discipline": "drop-tail"}),
    "drop-tail-1s": ("drop-tail, 1 s", {"queue": {"time": "1s"}, "discipline": "drop-tail"}),
    "codel": ("CoDel", {"discipline": "codel"}),
    "fq-codel": ("FQ-CoDel", {"discipline": "fq-codel"}),
    "pie": ("PIE", {"discipline": "pie"}),
    "dualpi2": ("DualPI2 (L4S)", {"discipline": "dualpi2"}),
}
"""What a link's queue can be on the page: a title, and keys of the link. Disciplines have the room that is usual."""


def payload(scenario: Scenario | None = None, contenders: Sequence[str] = (), *, refused: str = "") -> dict[str, Any]:
    """All that the page carries: a scenario that is asked for, then the lessons.

    Args:
        scenario: What is opened; the first lesson if there is none.
        contenders: One or two controllers that it begins with, as `tidegate compare` takes them; by default its own one
            and another.
        refused: Why the scenario cannot be played, if that is known: the page says it, and plays the lessons.

    Raises:
        Unplayable: when it cannot be played.
        InputError: when there is no call in it, or a contender is not usable.
    """
    taught = lessons()
    made = []
    if scenario is not None:
        # of a scenario that cannot be played the page says why
        made = [{**_about(scenario), "refused": refused} if refused else _situation(scenario, contenders)]
    if made and any(lesson.scenario.name == made[0]["id"] for lesson in taught):
        made[0]["id"] += ".toml"  # links name situations by this
    for lesson in taught:
        words = {"look_for": lesson.look_for, "question": lesson.question, "answer": lesson.answer}
        situation = _situation(lesson.scenario, lesson.contenders)
        made.append({**situation, "title": lesson.title, "lesson": {"number": lesson.number, **words}})
    return {"version": _core.__version__, "situations": made}


def _situation(scenario: Scenario, contenders: Sequence[str]) -> dict[str, Any]:
    """A scenario as the page takes it."""
    at = subject.of_scenario(scenario, "controller")
    refusing.check(scenario, at)
    refusing.check_contenders(contenders, scenario)
    scenario, at = _one_by_one(scenario, at)
    document = {**scenario.to_dict(), "seed": scenario.seed}
    made = lower(scenario)
    traces = refusing.carried(scenario, made.inputs)
    ir = _for_page(made)
    refusing.check_room(scenario, ir, made.inputs)
    try:
        _begin(ir, made)
    except _core.Refused as error:
        raise refusing.refused(scenario, error) from None
    flow = scenario.flows[at]
    link = way.tightest(ir, made.inputs.traces, flow.from_, flow.to)
    if link is None:
        raise refusing.unmoved(scenario, flow.name, Ways(ir).between(flow.from_, flow.to)[0]["name"])
    controllers = dict(_controllers(document, scenario, at, contenders))
    words = list(dict.fromkeys(contenders)) or [next(iter(controllers)), *_other(controllers)]
    return {
        **_about(scenario),
        "document": document,
        "lowered": ir,
        "traces": traces,
        "flow": flow.name,
        "link": link,
        "links": [one["name"] for one in ir["links"] if way.is_movable(one)],
        "contenders": words,
        "controllers": controllers,
        "queues": _queues(document, scenario, link),
        "download": _download(document, scenario, at),
        "refused": None,
    }


def _about(scenario: Scenario) -> dict[str, Any]:
    return {"id": scenario.name, "title": scenario.name, "about": scenario.description, "lesson": None}


def _for_page(made: RunInput) -> Ir:
    """As the page runs it: what it shows is kept, and whatever can be changed can be. None of it changes the digest."""
    ir = made.ir
    links = [{**link, "service": "managed"} if way.is_movable(link) else link for link in ir["links"]]
    return {**ir, "record": {"bin": _BIN, "capture": False, "level": "series"}, "links": links}


def _begin(ir: Ir, made: RunInput) -> None:
    """Begins a run and leaves it, for what the engine has against it."""
    _core.World(json.dumps(ir), made.inputs.traces)


def _one_by_one(scenario: Scenario, at: int) -> tuple[Scenario, int]:
    """With a table for each of several flows alike, where the compared one is among them: the run is the same."""
    flow = scenario.flows[at]
    if flow.count == 1:
        return scenario, at
    data = scenario.to_dict()
    plain = {key: value for key, value in data["flows"][at].items() if key not in {"count", "start_step"}}
    starts = (Duration(flow.start + number * flow.start_step) for number in range(flow.count))
    data["flows"][at : at + 1] = [
        {**plain, "name": name, "start": str(start)} for name, start in zip(flow.names, starts, strict=True)
    ]
    return Scenario.from_dict(data, scenario.base), at


def _changed(document: Mapping[str, Any], base: Path, **tables: Any) -> RunInput:
    return lower(Scenario.from_dict({**document, **tables}, base))


def _with(tables: Sequence[Mapping[str, Any]], at: int, table: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [table if place == at else one for place, one in enumerate(tables)]


def _controllers(
    document: Mapping[str, Any], scenario: Scenario, at: int, contenders: Sequence[str]
) -> Iterator[tuple[str, Ir]]:
    """The flow under each controller that can have it, by how a scenario names that: its own one comes first.

    Raises:
        InputError: for one of the contenders that cannot have it.
    """
    table = document["flows"][at]
    own = _text(table["media"].get("controller", "gcc"))
    others = [
        f"{name}:{preset}" if place else name
        for name, one in registry.registry().items()
        for place, preset in enumerate(one["presets"])
    ]
    for word in dict.fromkeys([own, *contenders, *others]):
        flow = {**table, "media": {**table["media"], "controller": word}}
        try:
            made = _changed(document, scenario.base, flows=_with(document["flows"], at, flow))
            _begin(made.ir, made)
        except (InputError, _core.Refused) as error:
            if word in (own, *contenders):
                raise (refusing.refused(scenario, error) if isinstance(error, _core.Refused) else error) from None
            continue
        yield word, next(one for one in made.ir["flows"] if one["name"] == scenario.flows[at].name)


def _text(controller: str | Mapping[str, Any]) -> str:
    """A controller in one word, as the command line has it."""
    if isinstance(controller, str):
        return controller
    settings = {key: value for key, value in controller.items() if key not in {"name", "preset"}}
    plain = [f"{key}={str(value).lower() if isinstance(value, bool) else value}" for key, value in settings.items()]
    parts = ",".join(filter(None, [controller.get("preset", ""), *plain]))
    return f"{controller['name']}:{parts}" if parts else str(controller["name"])


def _other(controllers: Mapping[str, Any]) -> list[str]:
    own = next(iter(controllers)).partition(":")[0]
    return [word for word in SECOND if word in controllers and word != own][:1]


def _queues(document: Mapping[str, Any], scenario: Scenario, link: str) -> dict[str, dict[str, Any]]:
    """The link with each queue: keys that differ in its table, and what the engine takes. Its own one comes first."""
    cable = link.removesuffix(".back") if not any(one.name == link for one in scenario.links) else link
    at = next(place for place, one in enumerate(scenario.links) if one.name == cable)
    made = {}
    for word, (title, keys) in {"own": (_title(scenario.links[at], link), {}), **_QUEUES}.items():
        table = _one_way(scenario.links[at], document["links"][at], keys, back=cable != link) if keys else {}
        links = _with(document["links"], at, {**document["links"][at], **table})
        lowered = _for_page(_changed(document, scenario.base, links=links))["links"]
        made[word] = {"title": title, "document": table, "lowered": next(one for one in lowered if one["name"] == link)}
    return made


def _one_way(link: Link, table: Mapping[str, Any], keys: Mapping[str, Any], *, back: bool) -> dict[str, Any]:
    """Keys of a link's table that change its queue in one direction, and write out what the other one has."""
    # in full: a link may have a queue of its own where the discipline would bring the usual one
    discipline = managed(keys["discipline"])
    wanted = {"queue": Queue(**discipline.limits()).to_dict() if discipline is not None else {}, **keys}
    if len(link.names) == 1:
        return wanted
    there, here = ({"queue": limits(one).to_dict(), "discipline": _plain(one["discipline"])} for one in link.ways)
    differs = table.get("back", {})
    differs = differs if isinstance(differs, dict) else {}
    return {**there, "back": {**differs, **wanted}} if back else {**wanted, "back": {**differs, **here}}


def _plain(discipline: Any) -> Any:
    return discipline if isinstance(discipline, str) else {"name": discipline.name, **discipline.to_dict()}


def _title(link: Link, name: str) -> str:
    """A queue in a few words."""
    here = link.ways[link.names.index(name)]
    queue: Queue = limits(here)
    packets = None if queue.packets is None else f"{queue.packets} packets"
    room = [str(limit) for limit in (queue.time, queue.bytes, packets) if limit is not None]
    discipline = _plain(here["discipline"])
    known = discipline if isinstance(discipline, str) else discipline["name"]
    return f"its own: {', '.join([known, *room])}"


def _download(document: Mapping[str, Any], scenario: Scenario, at: int) -> dict[str, Any] | None:
    """A TCP connection on the way of the flow; none where a TCP cannot be had on it."""
    flow = scenario.flows[at]
    table = {"from": flow.from_, "to": flow.to, "tcp": {}}
    try:
        made = _changed(document, scenario.base, flows=[*document["flows"], {"name": "download-of-page", **table}])
    except InputError:
        return None
    return {"document": table, "lowered": made.ir["flows"][-1]}
