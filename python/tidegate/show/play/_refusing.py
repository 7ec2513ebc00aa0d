"""Reasons to refuse a scenario: a browser cannot run it, or its capacity cannot be dragged."""

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
"""The largest size (bytes) of recorded networks in a page: an hour of a mobile network, and the file can be mailed."""

ROOM = 2**29
"""The largest memory (bytes) of a run: a browser's engine has 4 GiB, for two runs that are shown and two that are being
made."""


class Unplayable(InputError):
    """A scenario that the page cannot play."""


def check(scenario: Scenario, flow: int) -> None:
    """Refuses a scenario whose text shows that it cannot be played; `flow` is the index of the compared flow.

    Raises:
        Unplayable: with the key, and its line where that is known.
    """
    for key, why in _reasons(scenario, flow):
        raise _unplayable(scenario, key, why)


def check_room(scenario: Scenario, ir: Ir, inputs: Inputs) -> None:
    """Refuses a run for which a browser has not enough memory.

    Raises:
        Unplayable: with the memory that the run needs.
    """
    if (need := memory.need(ir, inputs.traces)) > ROOM:
        needs = f"found {scenario.duration}, for which a run needs about {need / 2**20:.0f} MiB of memory"
        why = f"{needs}; a page has {ROOM // 2**20} MiB for each run"
        raise _unplayable(scenario, "duration", why)


def carried(scenario: Scenario, inputs: Inputs) -> list[Any]:
    """The recorded networks of a scenario, as JSON values for the page.

    Raises:
        Unplayable: if they are too large, with the link and their size.
    """
    texts = [trace.to_json() for trace in inputs.traces]
    size = sum(map(len, texts))
    if size > LARGEST:
        traced = next(
            link.name for link in scenario.links if any("trace" in str(each["capacity"]) for each in link.ways)
        )
        why = f"found {size / 2**20:.1f} MiB of recorded networks; a page carries at most {LARGEST // 2**20} MiB"
        raise _unplayable(scenario, f"links.{traced}.capacity.trace", why)
    return [json.loads(text) for text in texts]


def check_contenders(contenders: Sequence[str], scenario: Scenario) -> None:
    """Refuses controllers that cannot be played.

    Raises:
        InputError: with the first such controller and the reason.
    """
    for label in contenders:
        if why := controller(label):
            raise InputError(f"{why}; the scenario cannot be played")
        registry.choose(label, scenario.base)


def unmoved(scenario: Scenario, flow: str, link: str) -> Unplayable:
    """The error for a flow without a link whose capacity can be dragged; `link` is any link on its path."""
    cable = link if any(entry.name == link for entry in scenario.links) else link.removesuffix(".back")
    why = f"no link on the path of {flow} has a capacity that can be dragged: each link has random states, or no limit"
    return _unplayable(scenario, f"links.{cable}.capacity", why)


def refused(scenario: Scenario, error: _core.Refused) -> InputError:
    """The engine's error for a scenario, with its place in the file."""
    where = scenario.where(error.place) or scenario.name
    return InputError(f"{where}: {error}")


def controller(label: str) -> str:
    """The reason why a controller cannot be played; empty if it can.

    >>> controller("gcc:draft-02")
    ''
    >>> controller("python:mine.py:Mine")
    'python:mine.py:Mine is a file, and a browser has no Python; use `tidegate compare`'
    """
    if registry.is_program(label):
        return f"{label} is a real program, which runs in real time; use `tidegate compare`"
    if registry.is_file(label):
        return f"{label} is a file, and a browser has no Python; use `tidegate compare`"
    return ""


_LARGEST_SEED = 2**53 - 1  # JavaScript's numbers are exact up to here


def _reasons(scenario: Scenario, flow: int) -> Iterator[tuple[str, str]]:
    seeds = {"seed": scenario.seed, **{f"seeds.{name}": seed for name, seed in scenario.seeds.items()}}
    for key, seed in seeds.items():
        if seed > _LARGEST_SEED:
            yield key, f"found {seed}; the page takes seeds up to {_LARGEST_SEED}"
    for key in scenario.radios:
        yield key, "found a radio network, whose capacity depends on the positions of its users and cannot be dragged"
    for link in scenario.links:
        if any(direction["capacity"] == "external" for direction in link.ways):
            why = 'found "external"; a program carries the packets of this flow, and a browser has no programs'
            yield f"links.{link.name}.capacity", why
    for entry in scenario.flows:
        if entry.external is not None:
            yield f"flows.{entry.name}.external", "found a flow that a program feeds, and a browser has no programs"
        elif entry.media is not None:
            setting: Any = entry.media.controller
            key = f"flows.{entry.name}.media"
            if why := controller(setting if isinstance(setting, str) else getattr(setting, "name", "python:")):
                yield f"{key}.controller", why
            if isinstance(entry.media.video, EncoderVideo):
                yield f"{key}.video.source", 'found "encoder"; a browser has neither the clip nor the encoder'
    compared = scenario.flows[flow]
    if compared.media is not None and compared.media.both_ways:
        why = "found true; the page compares controllers only in one direction of a call"
        yield f"flows.{compared.name}.media.both_ways", why


def _unplayable(scenario: Scenario, key: str, why: str) -> Unplayable:
    where = scenario.where(key) or scenario.name
    return Unplayable(f"{where}: {key}: {why}; the scenario cannot be played")
