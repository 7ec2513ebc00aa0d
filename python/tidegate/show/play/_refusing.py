"""What cannot be played: what a browser cannot run, and what nobody can drag."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from tidegate import _core
from tidegate.control import registry
from tidegate.errors import InputError
from tidegate.scenario import Scenario
from tidegate.scenario._reading import Inputs
from tidegate.scenario.sources import EncoderVideo

LARGEST = 8 * 2**20
"""Bytes of recorded networks that a page carries: an hour of a mobile network, and still a file to be mailed."""


def check(scenario: Scenario, flow: int) -> None:
    """Whether a scenario can be played, as far as its text tells; `flow` is the place of the one that is compared.

    Raises:
        InputError: names the key, and its line where that is known.
    """
    for key, why in _reasons(scenario, flow):
        raise InputError(_said(scenario, key, why))


def carried(scenario: Scenario, inputs: Inputs) -> list[Any]:
    """The recorded networks of a scenario as a page carries them.

    Raises:
        InputError: names the link and how large they are, if that is too much.
    """
    texts = [trace.to_json() for trace in inputs.traces]
    size = sum(map(len, texts))
    if size > LARGEST:
        traced = next(link.name for link in scenario.links if any("trace" in str(way["capacity"]) for way in link.ways))
        why = f"found {size / 2**20:.1f} MiB of recorded networks; a page carries at most {LARGEST // 2**20} MiB"
        raise InputError(_said(scenario, f"links.{traced}.capacity.trace", why))
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


def unmoved(scenario: Scenario, flow: str) -> InputError:
    """Of a flow on whose way nothing can be dragged."""
    link = next(link for link in scenario.links)
    why = f"the links on the way of {flow} have statuses, which nobody can drag"
    return InputError(_said(scenario, f"links.{link.name}.capacity", why))


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
    if scenario.lte is not None:
        yield "lte", "found a radio network, whose capacity is a matter of who is where; nobody can drag it"
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
                yield f"{key}.controller", f"found {why}"
            if isinstance(one.media.video, EncoderVideo):
                yield f"{key}.video.source", 'found "encoder"; a browser has neither the clip nor the encoder'
    compared = scenario.flows[flow]
    if compared.media is not None and compared.media.both_ways:
        why = "found true; the page compares the two controllers of a call in one way"
        yield f"flows.{compared.name}.media.both_ways", why


def _said(scenario: Scenario, key: str, why: str) -> str:
    where = scenario.where(key) or scenario.name
    return f"{where}: {key}: {why}; it cannot be played"
