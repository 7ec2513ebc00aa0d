"""What cannot be played: what a browser cannot run, and what nobody can drag."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from tidegate import _core
from tidegate.control import registry
from tidegate.errors import InputError
from tidegate.scenario import Scenario, memory
from tidegate.scenario.lower import Ir
from tidegate.scenario.reading import Inputs
from tidegate.scenario.sources import EncoderVideo

LARGEST = 8 * 2**20
"""Bytes of recorded networks that a page carries: an hour of a mobile network, and still a file to be mailed."""

ROOM = 2**29
"""Bytes that a run may need: a browser's engine has 4 GiB, two runs are shown, and two more are made beside them."""


class Unplayable(InputError):
    """A scenario that the page cannot play."""


def check(scenario: Scenario, flow: int) -> None:
    """Whether a scenario can be played, as far as its text tells; `flow` is the place of the one that is compared.

    Raises:
        Unplayable: names the key, and its line where that is known.
    """
    for key, why in _reasons(scenario, flow):
        raise _unplayable(scenario, key, why)


def check_room(scenario: Scenario, ir: Ir, inputs: Inputs) -> None:
    """Whether a browser has the memory for a run.

    Raises:
        Unplayable: says how much it needs.
    """
    if (need := memory.need(ir, inputs.traces)) > ROOM:
        needs = f"found {scenario.duration}, for which a run needs about {need / 2**20:.0f} MiB of memory"
        why = f"{needs}; a page has {ROOM // 2**20} MiB for each"
        raise _unplayable(scenario, "duration", why)


def carried(scenario: Scenario, inputs: Inputs) -> list[Any]:
    """The recorded networks of a scenario as a page carries them.

    Raises:
        Unplayable: names the link and how large they are, if that is too much.
    """
    texts = [trace.to_json() for trace in inputs.traces]
    size = sum(map(len, texts))
    if size > LARGEST:
        traced = next(link.name for link in scenario.links if any("trace" in str(way["capacity"]) for way in link.ways))
        why = f"found {size / 2**20:.1f} MiB of recorded networks; a page carries at most {LARGEST // 2**20} MiB"
        raise _unplayable(scenario, f"links.{traced}.capacity.trace", why)
    return [json.loads(text) for text in texts]


def check_contenders(contenders: Sequence[str], scenario: Scenario) -> None:
    """Whether controllers that somebody named can be played.

    Raises:
        InputError: says which cannot, and why.
    """
    for label in contenders:
        if why := controller(label):
            raise InputError(f"{why}; it cannot be played")
        registry.choose(label, scenario.base)


def unmoved(scenario: Scenario, flow: str, link: str) -> Unplayable:
    """Of a flow on whose way nothing can be dragged; `link` is on it."""
    cable = link if any(one.name == link for one in scenario.links) else link.removesuffix(".back")
    why = f"no link on the way of {flow} has a capacity that can be dragged: they have statuses, or no limit"
    return _unplayable(scenario, f"links.{cable}.capacity", why)


def refused(scenario: Scenario, error: _core.Refused) -> InputError:
    """What the engine says of a scenario, with its place."""
    where = scenario.where(error.place) or scenario.name
    return InputError(f"{where}: {error}")


def controller(label: str) -> str:
    """Why a controller cannot be played; empty for one that can.

    >>> controller("gcc:draft-02")
    ''
    >>> controller("python:mine.py:Mine")
    'python:mine.py:Mine is a file, and a browser has no Python; `tidegate compare` runs it'
    """
    if registry.is_program(label):
        return f"{label} is a real program, which makes a call by the wall clock; `tidegate compare` runs it"
    if registry.is_file(label):
        return f"{label} is a file, and a browser has no Python; `tidegate compare` runs it"
    return ""


_LARGEST_SEED = 2**53 - 1  # JavaScript's numbers are exact up to here


def _reasons(scenario: Scenario, flow: int) -> Iterator[tuple[str, str]]:
    for key, seed in {"seed": scenario.seed, **{f"seeds.{name}": one for name, one in scenario.seeds.items()}}.items():
        if seed > _LARGEST_SEED:
            yield key, f"found {seed}; the page takes seeds up to {_LARGEST_SEED}"
    for key in scenario.radios:
        yield key, "found a radio network, whose capacity is a matter of who is where; nobody can drag it"
    for link in scenario.links:
        if any(way["capacity"] == "external" for way in link.ways):
            why = 'found "external"; its packets are carried by a program, and a browser has none'
            yield f"links.{link.name}.capacity", why
    for one in scenario.flows:
        if one.external is not None:
            yield f"flows.{one.name}.external", "found a flow that a program feeds, and a browser has none"
        elif one.media is not None:
            named: Any = one.media.controller
            key = f"flows.{one.name}.media"
            if why := controller(named if isinstance(named, str) else getattr(named, "name", "python:")):
                yield f"{key}.controller", why
            if isinstance(one.media.video, EncoderVideo):
                yield f"{key}.video.source", 'found "encoder"; a browser has neither the clip nor the encoder'
    compared = scenario.flows[flow]
    if compared.media is not None and compared.media.both_ways:
        why = "found true; the page compares the two controllers of a call in one way"
        yield f"flows.{compared.name}.media.both_ways", why


def _unplayable(scenario: Scenario, key: str, why: str) -> Unplayable:
    where = scenario.where(key) or scenario.name
    return Unplayable(f"{where}: {key}: {why}; it cannot be played")
