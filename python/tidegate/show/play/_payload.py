"""The data of the page: scenarios, and the engine's input for each choice that the page offers."""

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
"""Default opponents of a scenario's controller: the first of them that is not the same."""

_BIN = 100_000_000  # ns: the eye follows ten values a second

_QUEUES: dict[str, tuple[str, dict[str, Any]]] = {
    "drop-tail-50ms": ("drop-tail, 50 ms", {"queue": {"time": "50ms"}, "discipline": "drop-tail"}),
    "drop-tail-200ms": ("drop-tail, 200 ms", {"queue": {"time": "200ms"}, "discipline": "drop-tail"}),
    "drop-tail-1s": ("drop-tail, 1 s", {"queue": {"time": "1s"}, "discipline": "drop-tail"}),
    "codel": ("CoDel", {"discipline": "codel"}),
    "fq-codel": ("FQ-CoDel", {"discipline": "fq-codel"}),
    "pie": ("PIE", {"discipline": "pie"}),
    "dualpi2": ("DualPI2 (L4S)", {"discipline": "dualpi2"}),
}
"""The queues that a link can have on the page: a title, and keys of the link. Disciplines have their usual limits."""


def payload(scenario: Scenario | None = None, contenders: Sequence[str] = (), *, refused: str = "") -> dict[str, Any]:
    """Makes the data of the page: the scenario to open, if there is one, then the lessons.

    Args:
        scenario: The scenario to open; without one, the first lesson is open.
        contenders: One or two controllers with which it begins, as for `tidegate compare`; by default the scenario's
            own one and another.
        refused: The reason why the scenario cannot be played, if known: the page shows it, and plays the lessons.

    Raises:
        Unplayable: when the scenario cannot be played.
        InputError: when it has no call, or a contender is not usable.
    """
    taught = lessons()
    situations = []
    if scenario is not None:
        situations = [{**_identity(scenario), "refused": refused} if refused else _situation(scenario, contenders)]
    if situations and any(lesson.scenario.name == situations[0]["id"] for lesson in taught):
        situations[0]["id"] += ".toml"  # ids must be distinct, since links name situations by them
    for lesson in taught:
        texts = {"look_for": lesson.look_for, "question": lesson.question, "answer": lesson.answer}
        situation = _situation(lesson.scenario, lesson.contenders)
        situations.append({**situation, "title": lesson.title, "lesson": {"number": lesson.number, **texts}})
    return {"version": _core.__version__, "situations": situations}


def _situation(scenario: Scenario, contenders: Sequence[str]) -> dict[str, Any]:
    """A scenario in the form of the page."""
    index = subject.of_scenario(scenario, "controller")
    refusing.check(scenario, index)
    refusing.check_contenders(contenders, scenario)
    scenario, index = _split_flows(scenario, index)
    document = {**scenario.to_dict(), "seed": scenario.seed}
    lowered = lower(scenario)
    traces = refusing.carried(scenario, lowered.inputs)
    ir = _for_page(lowered)
    refusing.check_room(scenario, ir, lowered.inputs)
    try:
        _begin(ir, lowered)
    except _core.Refused as error:
        raise refusing.refused(scenario, error) from None
    flow = scenario.flows[index]
    link = way.tightest(ir, lowered.inputs.traces, flow.from_, flow.to)
    if link is None:
        raise refusing.unmoved(scenario, flow.name, Ways(ir).between(flow.from_, flow.to)[0]["name"])
    controllers = dict(_controllers(document, scenario, index, contenders))
    labels = list(dict.fromkeys(contenders)) or [next(iter(controllers)), *_opponent(controllers)]
    return {
        **_identity(scenario),
        "document": document,
        "lowered": ir,
        "traces": traces,
        "flow": flow.name,
        "link": link,
        "links": [entry["name"] for entry in ir["links"] if way.is_movable(entry)],
        "paths": way.paths(ir, flow.from_, flow.to),
        "contenders": labels,
        "controllers": controllers,
        "queues": _queues(document, scenario, link),
        "download": _download(document, scenario, index),
        "refused": None,
    }


def _identity(scenario: Scenario) -> dict[str, Any]:
    return {"id": scenario.name, "title": scenario.name, "about": scenario.description, "lesson": None}


def _for_page(lowered: RunInput) -> Ir:
    """The input as the page runs it: series are recorded, and links can be changed. Neither changes the digest."""
    ir = lowered.ir
    links = [{**link, "service": "managed"} if way.is_movable(link) else link for link in ir["links"]]
    return {**ir, "record": {"bin": _BIN, "capture": False, "level": "series"}, "links": links}


def _begin(ir: Ir, lowered: RunInput) -> None:
    """Begins a run and drops it, so that the engine can refuse its input."""
    _core.World(json.dumps(ir), lowered.inputs.traces)


def _split_flows(scenario: Scenario, index: int) -> tuple[Scenario, int]:
    """The scenario with a table for each of the flows that the compared table counts (`count`): the run is the same."""
    flow = scenario.flows[index]
    if flow.count == 1:
        return scenario, index
    data = scenario.to_dict()
    common = {key: value for key, value in data["flows"][index].items() if key not in {"count", "start_step"}}
    starts = (Duration(flow.start + number * flow.start_step) for number in range(flow.count))
    data["flows"][index : index + 1] = [
        {**common, "name": name, "start": str(start)} for name, start in zip(flow.names, starts, strict=True)
    ]
    return Scenario.from_dict(data, scenario.base), index


def _changed(document: Mapping[str, Any], base: Path, **tables: Any) -> RunInput:
    return lower(Scenario.from_dict({**document, **tables}, base))


def _with(tables: Sequence[Mapping[str, Any]], index: int, table: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The tables with one replaced."""
    return [table if number == index else entry for number, entry in enumerate(tables)]


def _controllers(
    document: Mapping[str, Any], scenario: Scenario, index: int, contenders: Sequence[str]
) -> Iterator[tuple[str, Ir]]:
    """Yields the flow under each controller that it can have, by the controller's label; its own one comes first.

    Raises:
        InputError: for a contender that the flow cannot have.
    """
    table = document["flows"][index]
    scenario_label = _label(table["media"].get("controller", "gcc"))
    presets = [
        f"{name}:{preset}" if number else name
        for name, entry in registry.registry().items()
        for number, preset in enumerate(entry["presets"])
    ]
    for label in dict.fromkeys([scenario_label, *contenders, *presets]):
        flow = {**table, "media": {**table["media"], "controller": label}}
        try:
            lowered = _changed(document, scenario.base, flows=_with(document["flows"], index, flow))
            _begin(lowered.ir, lowered)
        except (InputError, _core.Refused) as error:
            if label in (scenario_label, *contenders):
                raise (refusing.refused(scenario, error) if isinstance(error, _core.Refused) else error) from None
            continue
        yield label, next(entry for entry in lowered.ir["flows"] if entry["name"] == scenario.flows[index].name)


def _label(controller: str | Mapping[str, Any]) -> str:
    """A controller as one word of the command line."""
    if isinstance(controller, str):
        return controller
    settings = {key: value for key, value in controller.items() if key not in {"name", "preset"}}
    pairs = [f"{key}={str(value).lower() if isinstance(value, bool) else value}" for key, value in settings.items()]
    parts = ",".join(filter(None, [controller.get("preset", ""), *pairs]))
    return f"{controller['name']}:{parts}" if parts else str(controller["name"])


def _opponent(controllers: Mapping[str, Any]) -> list[str]:
    """The default second controller, in a list; an empty list where the flow can have none of `SECOND`."""
    first = next(iter(controllers)).partition(":")[0]
    return [label for label in SECOND if label in controllers and label != first][:1]


def _queues(document: Mapping[str, Any], scenario: Scenario, link: str) -> dict[str, dict[str, Any]]:
    """The link with each queue: the changed keys of its table, and the engine's input. Its own queue comes first."""
    cable = link.removesuffix(".back") if not any(entry.name == link for entry in scenario.links) else link
    index = next(number for number, entry in enumerate(scenario.links) if entry.name == cable)
    variants = {}
    for key, (title, changes) in {"own": (_title(scenario.links[index], link), {}), **_QUEUES}.items():
        table = (
            _one_way(scenario.links[index], document["links"][index], changes, back=cable != link) if changes else {}
        )
        links = _with(document["links"], index, {**document["links"][index], **table})
        lowered = _for_page(_changed(document, scenario.base, links=links))["links"]
        changed_link = next(entry for entry in lowered if entry["name"] == link)
        variants[key] = {"title": title, "document": table, "lowered": changed_link}
    return variants


def _one_way(link: Link, table: Mapping[str, Any], keys: Mapping[str, Any], *, back: bool) -> dict[str, Any]:
    """Keys of a link's table that change its queue in one direction, and state the queue of the other direction."""
    # the limits are stated, since a link's own limits would replace the discipline's usual ones
    discipline = managed(keys["discipline"])
    wanted = {"queue": Queue(**discipline.limits()).to_dict() if discipline is not None else {}, **keys}
    if len(link.names) == 1:
        return wanted
    forward, backward = (
        {"queue": limits(direction).to_dict(), "discipline": _discipline_table(direction["discipline"])}
        for direction in link.ways
    )
    back_table = table.get("back", {})
    back_table = back_table if isinstance(back_table, dict) else {}
    return {**forward, "back": {**back_table, **wanted}} if back else {**wanted, "back": {**back_table, **backward}}


def _discipline_table(discipline: Any) -> Any:
    """A discipline as in a scenario: its name, or a table with its name and settings."""
    return discipline if isinstance(discipline, str) else {"name": discipline.name, **discipline.to_dict()}


def _title(link: Link, name: str) -> str:
    """A queue in a few words."""
    direction = link.ways[link.names.index(name)]
    queue: Queue = limits(direction)
    packets = None if queue.packets is None else f"{queue.packets} packets"
    room = [str(limit) for limit in (queue.time, queue.bytes, packets) if limit is not None]
    discipline = _discipline_table(direction["discipline"])
    discipline_name = discipline if isinstance(discipline, str) else discipline["name"]
    return f"scenario's own: {', '.join([discipline_name, *room])}"


def _download(document: Mapping[str, Any], scenario: Scenario, index: int) -> dict[str, Any] | None:
    """A TCP connection on the path of the flow; `None` where the path does not allow one."""
    flow = scenario.flows[index]
    table = {"from": flow.from_, "to": flow.to, "tcp": {}}
    try:
        lowered = _changed(document, scenario.base, flows=[*document["flows"], {"name": "download-of-page", **table}])
    except InputError:
        return None
    return {"document": table, "lowered": lowered.ir["flows"][-1]}
