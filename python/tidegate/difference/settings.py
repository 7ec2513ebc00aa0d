"""What two results were made of, as trees of settings, and where these differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from tidegate.errors import InputError
from tidegate.scenario import Scenario, toml

Tree: TypeAlias = Mapping[str, Any]
"""Values by key; tables are trees, and entries of lists that have names are found by them."""

_PROSE = frozenset({"description", "source", "title", "says", "why"})
"""Keys that people read, and no run."""

NONE = "-"
"""What stands for a setting that one side does not have."""


@dataclass(frozen=True)
class Setting:
    """One setting that differs."""

    key: str
    """Its key, with dots: `links.uplink.delay`."""
    a: str
    """What one side has, as in a file; `-` where it has nothing of that name."""
    b: str
    """What the other side has."""


@dataclass(frozen=True)
class Settings:
    """A tree of settings as people wrote them, and the same tree with all that they left to its default."""

    said: Tree
    """Only what differs from the defaults."""
    whole: Tree
    """With the defaults."""

    @classmethod
    def of_scenario(cls, scenario: Scenario) -> Settings:
        """Those of a scenario."""
        whole = scenario.model_dump(mode="json", by_alias=True)
        return cls(_named(scenario.to_dict()), _named(whole))

    @classmethod
    def of_text(cls, text: str) -> Settings:
        """Those of a scenario as text; of one that this version does not understand, what is written there."""
        try:
            return cls.of_scenario(Scenario.parse(text))
        except InputError:
            return cls.plain(_named(toml.parse(text, "scenario")))

    @classmethod
    def plain(cls, tree: Tree) -> Settings:
        """A tree that has no defaults."""
        return cls(tree, tree)

    @classmethod
    def joined(cls, parts: Mapping[str, Settings]) -> Settings:
        """Several, each under a key of its own."""
        return cls({key: one.said for key, one in parts.items()}, {key: one.whole for key, one in parts.items()})

    def beside(self, further: Tree) -> Settings:
        """These, and some more; a further one takes the place of one of its name."""
        return Settings({**self.said, **further}, {**self.whole, **further})

    def without(self, key: str) -> Settings:
        """These but for one."""
        return Settings(*({name: one for name, one in tree.items() if name != key} for tree in (self.said, self.whole)))


def differing(a: Settings, b: Settings) -> list[Setting]:
    """Every setting that differs, in the order in which the sides have them.

    A setting that one side leaves to its default, and the other one writes down with the same value, is the same.

    >>> one, other = Settings.plain({"x": {"y": 1, "z": 2}}), Settings.plain({"x": {"y": 1, "z": "3ms"}, "w": True})
    >>> differing(one, other)
    [Setting(key='x.z', a='2', b='3ms'), Setting(key='w', a='-', b='true')]
    """
    return list(_walk((), a.said, b.said, a.whole, b.whole))


def _walk(at: tuple[str, ...], a: Tree, b: Tree, whole_a: Tree, whole_b: Tree) -> Iterator[Setting]:
    for key in dict.fromkeys([*a, *b]):
        if key in _PROSE:
            continue
        here = (*at, key)
        # what is not written down has its default
        one, other = (side.get(key, whole.get(key)) for side, whole in ((a, whole_a), (b, whole_b)))
        if isinstance(one, Mapping) and isinstance(other, Mapping):
            defaults = whole_a.get(key, one), whole_b.get(key, other)
            yield from _walk(here, a.get(key, {}), b.get(key, {}), *defaults)
        elif one != other:
            yield Setting(".".join(here), _shown(one), _shown(other))


def _shown(value: object) -> str:
    """A value as it stands in a file, text without its quotes."""
    if value is None:
        return NONE
    return value if isinstance(value, str) else toml.inline(_without_nothing(value))


def _without_nothing(value: object) -> object:
    if isinstance(value, Mapping):
        return {str(key): _without_nothing(one) for key, one in value.items() if one is not None}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_without_nothing(one) for one in value]
    return value


def _named(value: Any, key: str = "") -> Any:
    """A table in which lists of entries with names are tables by these names, and a controller is its short text."""
    if isinstance(value, Mapping):
        if key == "controller" and "name" in value:
            return _controller(value)
        return {name: _named(one, name) for name, one in value.items()}
    entries = isinstance(value, list) and value and all(isinstance(one, Mapping) for one in value)
    names = [str(one.get("name", at)) for at, one in enumerate(value, 1)] if entries else []
    if names and len({*names}) == len(names):
        inner = [{name: one for name, one in entry.items() if name != "name"} for entry in value]
        return dict(zip(names, map(_named, inner), strict=True))
    return value


def _controller(table: Mapping[str, Any]) -> str:
    """A controller that is written as a table, as it is typed."""
    parts = [str(table["preset"])] if table.get("preset") else []
    parts += [f"{key}={_shown(value)}" for key, value in (table.get("settings") or {}).items()]
    name = str(table["name"])
    return f"{name}{',' if ':' in name else ':'}{','.join(parts)}" if parts else name
