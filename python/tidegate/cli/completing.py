"""Completions of the shell: scenarios, suites, controllers with presets and settings, keys of a scenario.

The shell waits for them at each press of Tab, so this module imports nothing but the engine.
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
from tidegate.errors import TidegateError


def scenarios(incomplete: str) -> list[str]:
    """Names of scenarios that begin with the typed text."""
    return [name for name in _shipped.scenarios() if name.startswith(incomplete)]


def complete_suites(incomplete: str) -> list[str]:
    """Names of suites that begin with the typed text."""
    return [name for name in _shipped.suites() if name.startswith(incomplete)]


class _AfterColon(str):
    """The part of a completion after a colon; Typer would drop it, because it does not begin with the typed text."""

    __slots__ = ()

    def startswith(self, *_: Any) -> bool:
        """Returns true: the completion was chosen before."""
        return True


def complete_controllers(ctx: typer.Context, incomplete: str) -> list[str]:
    """Names of controllers, their presets and, after a colon, their settings that begin with the typed text."""
    catalogue = {controller["name"]: controller for controller in json.loads(_core.controllers_json())}
    typed = [*(ctx.params.get("names") or ()), incomplete]
    # Bash splits words at a colon, and puts our completion after it
    if ":" in typed[-2:]:
        colon = len(typed) - 1 - typed[::-1].index(":")
        name, rest = typed[colon - 1] if colon else "", "".join(typed[colon + 1 :])
        return [_AfterColon(completion) for completion in _presets_and_settings(catalogue.get(name), rest)]
    name, colon_there, rest = incomplete.partition(":")
    if colon_there:
        return [f"{name}:{completion}" for completion in _presets_and_settings(catalogue.get(name), rest)]
    presets = [f"{name}:{preset}" for name, controller in catalogue.items() for preset in controller["presets"]]
    return [name for name in [*catalogue, *presets] if name.startswith(incomplete)]


def _presets_and_settings(controller: Mapping[str, Any] | None, typed: str) -> list[str]:
    """Presets and settings that may follow the colon of a controller."""
    if controller is None:
        return []
    before_last, comma, last = typed.rpartition(",")
    first_part = before_last.partition(",")[0]
    preset = first_part if first_part in controller["presets"] else controller["presets"][0]
    keys_typed = {part.partition("=")[0] for part in before_last.split(",")}
    keys = [key for key in controller["defaults"][preset] if key not in keys_typed and key.startswith(last)]
    settings = [f"{before_last}{comma}{key}=" for key in keys]
    presets = [] if before_last else [preset for preset in controller["presets"] if preset.startswith(last)]
    return [*presets, *settings]


def complete_keys(ctx: typer.Context, incomplete: str) -> list[str]:
    """Dotted keys of a scenario for `--set`, each with an equals sign, also keys that its file leaves out."""
    # an option without its value ends the parsing; the remaining words are in `args`
    names = [ctx.params.get("scenario"), *ctx.args]
    data: Any = next((tables for name in names if (tables := _scenario(name)) is not None), {})
    schema = _schema()
    keys = dict.fromkeys(_keys(schema, schema, data, "", incomplete))
    # names in a file are a stranger's text, and the shell prints them
    return [f"{key}=" for key in keys if key.startswith(incomplete) and key.isprintable()]


def _scenario(name: str | None) -> Any:
    """The tables of a scenario; `None` if there is no scenario of that name."""
    if name is None:
        return None
    with suppress(OSError, ValueError, TidegateError):
        if not name.endswith(".toml"):
            return tomllib.loads((_shipped.SCENARIOS / f"{name}.toml").read_text(encoding="utf-8"))
        # it loads pydantic, which shipped scenarios do not need
        from tidegate._inputs import TOML, decoded, parse_toml, read

        return parse_toml(decoded(read(Path(name), TOML).data, Path(name), TOML))
    return None


def _schema() -> Any:
    return json.loads((_shipped.SCENARIOS.parent / "scenario" / "scenario.schema.json").read_text(encoding="utf-8"))


def _keys(root: Any, schema: Any, data: Any, before: str, typed: str) -> Iterator[str]:
    """Keys below `before`, as deep as the scenario's file or the typed text goes."""
    for name, subschema in _properties(root, schema):
        key, content = f"{before}{name}", data.get(name) if isinstance(data, dict) else None
        tables = [alternative for alternative in _alternatives(root, subschema) if "properties" in alternative]
        rows = [
            alternative["items"]
            for alternative in _alternatives(root, subschema)
            if alternative.get("type") == "array" and "items" in alternative
        ]
        if isinstance(content, list) and any(isinstance(entry, dict) and "name" in entry for entry in content):
            for entry in content:
                for row in rows:
                    yield from _keys(root, row, entry, f"{key}.{entry['name']}.", typed)
        elif tables and (isinstance(content, dict) or typed.startswith(f"{key}.")):
            yield from _keys(root, subschema, content, f"{key}.", typed)
        else:
            yield key


def _alternatives(root: Any, schema: Any) -> Iterator[Any]:
    """Schemas of the forms that a value may have."""
    if "$ref" in schema:
        yield from _alternatives(root, root["$defs"][schema["$ref"].rpartition("/")[2]])
    elif alternatives := schema.get("anyOf") or schema.get("oneOf"):
        for alternative in alternatives:
            yield from _alternatives(root, alternative)
    else:
        yield schema


def _properties(root: Any, schema: Any) -> Iterator[tuple[str, Any]]:
    for alternative in _alternatives(root, schema):
        yield from alternative.get("properties", {}).items()
