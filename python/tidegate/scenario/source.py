"""A TOML file of ours while it is read: its values, where they stand, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, TypeVar

from pydantic import BaseModel, ValidationError

from tidegate.errors import ScenarioError
from tidegate.scenario import toml
from tidegate.scenario.explain import Path as KeyPath
from tidegate.scenario.explain import Problem, explain

Names = Mapping[KeyPath, str]
"""What entries of lists are called, by their place."""

Model = TypeVar("Model", bound=BaseModel)


@dataclass(frozen=True)
class Source:
    """What a file says, with the line of each key."""

    path: Path
    data: dict[str, Any]
    lines: Mapping[KeyPath, int]
    naming: Callable[[Mapping[str, Any]], Names]
    """Finds in the values what their entries are called."""

    @classmethod
    def parse(cls, text: str, path: Path, naming: Callable[[Mapping[str, Any]], Names]) -> Self:
        """Reads the text of `path`.

        Raises:
            ScenarioError: names the file and the line.
        """
        return cls(path, toml.parse(text, str(path)), toml.lines(text), naming)

    @property
    def named(self) -> Names:
        """What its entries are called, also when the values were changed since they were read."""
        return self.naming(self.data)

    def where(self, place: KeyPath) -> str:
        """File and line of a key, or of the table that it would be in."""
        while place and place not in self.lines:
            place = place[:-1]
        return f"{self.path}:{self.lines[place]}" if place else str(self.path)

    def error(self, problems: Iterable[Problem]) -> ScenarioError:
        """All problems with their lines."""
        named = self.named
        return ScenarioError(one.text(self.where(one.path), named) for one in problems)

    def fill(self, model: type[Model]) -> Model:
        """The values as `model`.

        Raises:
            ScenarioError: lists every problem with its line.
        """
        try:
            return model.model_validate(self.data)
        except ValidationError as error:
            raise self.error(list(explain(error, model))) from None


def names_of(data: Mapping[str, Any], lists: Iterable[str], key: str) -> Names:
    """What the entries of these lists call themselves under `key`, as far as it is text.

    >>> names_of({"cases": [{"name": "a"}, {"name": 1}], "rules": 3}, ("cases", "rules"), "name")
    {('cases', 0): 'a'}
    """
    found = ((name, data.get(name)) for name in lists)
    entries = ((name, at, one) for name, many in found if isinstance(many, list) for at, one in enumerate(many))
    return {
        (name, at): one[key] for name, at, one in entries if isinstance(one, dict) and isinstance(one.get(key), str)
    }
