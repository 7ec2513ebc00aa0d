"""The settings of two results as trees, and their differences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from tidegate.errors import InputError
from tidegate.scenario import Scenario, toml

Tree: TypeAlias = Mapping[str, Any]
"""Values by key; tables are trees, and lists of entries with names are trees by these names."""

_PROSE = frozenset({"description", "source", "title", "says", "why"})
"""Keys of texts for readers, which no run depends on."""

NONE = "-"
"""The mark of a setting that a side does not have."""


@dataclass(frozen=True)
class Setting:
    """One setting that differs."""

    key: str
    """Its key, with dots: `links.uplink.delay`."""
    a: str
    """The value on side A, as in a file; `-` where that side does not have it."""
    b: str
    """The value on side B."""


@dataclass(frozen=True)
class Settings:
    """A tree of the settings that were written down, and the same tree with all defaults."""

    explicit: Tree
    """The settings that differ from the defaults."""
    complete: Tree
    """All settings, with the defaults."""

    @classmethod
    def of_scenario(cls, scenario: Scenario) -> Settings:
        """The settings of a scenario."""
        complete = scenario.model_dump(mode="json", by_alias=True)
        return cls(_by_name(scenario.to_dict()), _by_name(complete))

    @classmethod
    def of_text(cls, text: str) -> Settings:
        """The settings of a scenario as text; without defaults if this version does not understand it."""
        try:
            return cls.of_scenario(Scenario.parse(text))
        except InputError:
            return cls.without_defaults(_by_name(toml.parse(text, "scenario")))

    @classmethod
    def without_defaults(cls, tree: Tree) -> Settings:
        """Settings that have no defaults."""
        return cls(tree, tree)

    @classmethod
    def joined(cls, parts: Mapping[str, Settings]) -> Settings:
        """The settings of several parts, each part under its key."""
        return cls(
            {key: settings.explicit for key, settings in parts.items()},
            {key: settings.complete for key, settings in parts.items()},
        )

    def beside(self, extra: Tree) -> Settings:
        """These settings with extra ones, which replace those of the same name."""
        return Settings({**self.explicit, **extra}, {**self.complete, **extra})

    def without(self, key: str) -> Settings:
        """These settings without one key."""
        trees = (self.explicit, self.complete)
        return Settings(*({name: value for name, value in tree.items() if name != key} for tree in trees))


def differing(a: Settings, b: Settings) -> list[Setting]:
    """The settings that differ, in the order of the sides.

    A setting is the same if one side leaves it to its default, and the other side writes the same value down.

    >>> a = Settings.without_defaults({"x": {"y": 1, "z": 2}})
    >>> b = Settings.without_defaults({"x": {"y": 1, "z": "3ms"}, "w": True})
    >>> differing(a, b)
    [Setting(key='x.z', a='2', b='3ms'), Setting(key='w', a='-', b='true')]
    """
    return list(_walk((), a.explicit, b.explicit, a.complete, b.complete))


def _walk(path: tuple[str, ...], a: Tree, b: Tree, complete_a: Tree, complete_b: Tree) -> Iterator[Setting]:
    for key in dict.fromkeys([*a, *b]):
        if key in _PROSE:
            continue
        key_path = (*path, key)
        # a setting that is not written down has its default
        value_a, value_b = a.get(key, complete_a.get(key)), b.get(key, complete_b.get(key))
        if isinstance(value_a, Mapping) and isinstance(value_b, Mapping):
            defaults = complete_a.get(key, value_a), complete_b.get(key, value_b)
            yield from _walk(key_path, a.get(key, {}), b.get(key, {}), *defaults)
        elif value_a != value_b:
            yield Setting(".".join(key_path), _toml_text(value_a), _toml_text(value_b))


def _toml_text(value: object) -> str:
    """A value as it is written in a file; text has no quotes."""
    if value is None:
        return NONE
    return value if isinstance(value, str) else toml.inline(_without_none(value))


def _without_none(value: object) -> object:
    """A value without the keys whose value is `None`, which TOML cannot write."""
    if isinstance(value, Mapping):
        return {str(key): _without_none(inner) for key, inner in value.items() if inner is not None}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_without_none(inner) for inner in value]
    return value


def _by_name(value: Any, key: str = "") -> Any:
    """A table in which lists of entries with names are tables by these names, and a controller is its short text."""
    if isinstance(value, Mapping):
        if key == "controller" and "name" in value:
            return _controller(value)
        return {name: _by_name(inner, name) for name, inner in value.items()}
    is_list_of_tables = isinstance(value, list) and value and all(isinstance(entry, Mapping) for entry in value)
    names = [str(entry.get("name", number)) for number, entry in enumerate(value, 1)] if is_list_of_tables else []
    if names and len({*names}) == len(names):
        unnamed = [{name: inner for name, inner in entry.items() if name != "name"} for entry in value]
        return dict(zip(names, map(_by_name, unnamed), strict=True))
    return value


def _controller(table: Mapping[str, Any]) -> str:
    """The short text of a controller that is written as a table, as on the command line."""
    parts = [str(table["preset"])] if table.get("preset") else []
    parts += [f"{key}={_toml_text(value)}" for key, value in (table.get("settings") or {}).items()]
    name = str(table["name"])
    return f"{name}{',' if ':' in name else ':'}{','.join(parts)}" if parts else name
