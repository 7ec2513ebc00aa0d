"""What a shell offers at Tab: scenarios, suites, controllers with presets and settings, keys of a scenario.

A shell waits for this at each press of the key: it loads nothing but the engine.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import typer

from tidegate import _core, _shipped


def scenarios(incomplete: str) -> list[str]:
    """Names of scenarios that go on from what was typed."""
    return [name for name in _shipped.scenarios() if name.startswith(incomplete)]


def complete_suites(incomplete: str) -> list[str]:
    """Names of suites that go on from what was typed."""
    return [name for name in _shipped.suites() if name.startswith(incomplete)]


class _Behind(str):
    """What stands behind a colon, which Typer would take out because it does not begin with the colon itself."""

    __slots__ = ()

    def startswith(self, *_: Any) -> bool:
        """It has been chosen already."""
        return True


def complete_controllers(ctx: typer.Context, incomplete: str) -> list[str]:
    """Names of controllers, their presets and, behind a colon, their settings that go on from what was typed."""
    known = {one["name"]: one for one in json.loads(_core.controllers_json())}
    typed = [*(ctx.params.get("names") or ()), incomplete]
    # Bash takes a colon for a word of its own, and puts what we answer behind it
    if ":" in typed[-2:]:
        colon = len(typed) - 1 - typed[::-1].index(":")
        name, rest = typed[colon - 1] if colon else "", "".join(typed[colon + 1 :])
        return [_Behind(one) for one in _presets_and_settings(known.get(name), rest)]
    name, colon_there, rest = incomplete.partition(":")
    if colon_there:
        return [f"{name}:{one}" for one in _presets_and_settings(known.get(name), rest)]
    presets = [f"{name}:{preset}" for name, one in known.items() for preset in one["presets"]]
    return [name for name in [*known, *presets] if name.startswith(incomplete)]


def _presets_and_settings(about: Mapping[str, Any] | None, typed: str) -> list[str]:
    """What may follow the colon of a controller."""
    if about is None:
        return []
    given, comma, last = typed.rpartition(",")
    first = given.partition(",")[0]
    preset = first if first in about["presets"] else about["presets"][0]
    taken = {one.partition("=")[0] for one in given.split(",")}
    keys = [key for key in about["defaults"][preset] if key not in taken and key.startswith(last)]
    settings = [f"{given}{comma}{key}=" for key in keys]
    presets = [] if given else [one for one in about["presets"] if one.startswith(last)]
    return [*presets, *settings]


def complete_keys(ctx: typer.Context, incomplete: str) -> list[str]:
    """Dotted keys of a scenario for `--set`, those that its file could have, too, with an equals sign behind."""
    # an option without its value ends the reading of words: what is no option's is left as it was
    named = [ctx.params.get("scenario"), *ctx.args]
    data: Any = next((found for one in named if (found := _scenario(one)) is not None), {})
    schema = _schema()
    found = dict.fromkeys(_keys(schema, schema, data, "", incomplete))
    return [f"{key}=" for key in found if key.startswith(incomplete)]


def _scenario(name: str | None) -> Any:
    """The tables of a scenario; None if there is none of that name."""
    if name is None:
        return None
    file = Path(name) if name.endswith(".toml") else _shipped.SCENARIOS / f"{name}.toml"
    with suppress(OSError, ValueError):
        return tomllib.loads(file.read_text(encoding="utf-8"))
    return None


def _schema() -> Any:
    return json.loads((_shipped.SCENARIOS.parent / "scenario" / "scenario.schema.json").read_text(encoding="utf-8"))


def _keys(whole: Any, schema: Any, data: Any, before: str, typed: str) -> Iterator[str]:
    """Keys below `before`: as deep as the file goes, or what was typed."""
    for name, of in _members(whole, schema):
        key, there = f"{before}{name}", data.get(name) if isinstance(data, dict) else None
        tables = [one for one in _kinds(whole, of) if "properties" in one]
        rows = [one["items"] for one in _kinds(whole, of) if one.get("type") == "array" and "items" in one]
        if isinstance(there, list) and any(isinstance(one, dict) and "name" in one for one in there):
            for one in there:
                for row in rows:
                    yield from _keys(whole, row, one, f"{key}.{one['name']}.", typed)
        elif tables and (isinstance(there, dict) or typed.startswith(f"{key}.")):
            yield from _keys(whole, of, there, f"{key}.", typed)
        else:
            yield key


def _kinds(whole: Any, schema: Any) -> Iterator[Any]:
    """The forms that a value may have."""
    if "$ref" in schema:
        yield from _kinds(whole, whole["$defs"][schema["$ref"].rpartition("/")[2]])
    elif several := schema.get("anyOf") or schema.get("oneOf"):
        for one in several:
            yield from _kinds(whole, one)
    else:
        yield schema


def _members(whole: Any, schema: Any) -> Iterator[tuple[str, Any]]:
    for kind in _kinds(whole, schema):
        yield from kind.get("properties", {}).items()
