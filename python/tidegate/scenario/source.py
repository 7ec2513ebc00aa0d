"""A TOML file of tidegate while it is parsed: its values, their lines, and its problems."""

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
"""Names of entries of lists, by their path."""

Model = TypeVar("Model", bound=BaseModel)


@dataclass(frozen=True)
class Source:
    """The values of a file, with the line of each key."""

    path: Path
    data: dict[str, Any]
    lines: Mapping[KeyPath, int]
    naming: Callable[[Mapping[str, Any]], Names]
    """Finds the names of entries in the values."""

    @classmethod
    def parse(cls, text: str, path: Path, naming: Callable[[Mapping[str, Any]], Names]) -> Self:
        """Reads the text of `path`.

        Raises:
            ScenarioError: names the file and the line.
        """
        return cls(path, toml.parse(text, str(path)), toml.lines(text), naming)

    @property
    def named(self) -> Names:
        """Names of its entries, computed anew, since values may have changed after parsing."""
        return self.naming(self.data)

    def where(self, path: KeyPath) -> str:
        """File and line of a key, or of the table that it would be in."""
        while path and path not in self.lines:
            path = path[:-1]
        return f"{self.path}:{self.lines[path]}" if path else str(self.path)

    def error(self, problems: Iterable[Problem]) -> ScenarioError:
        """Builds an error of all problems with their lines."""
        named = self.named
        return ScenarioError(problem.text(self.where(problem.path), named) for problem in problems)

    def fill(self, model: type[Model]) -> Model:
        """Builds `model` from the values.

        Raises:
            ScenarioError: lists every problem with its line.
        """
        try:
            return model.model_validate(self.data)
        except ValidationError as error:
            raise self.error(list(explain(error, model))) from None


def names_of(data: Mapping[str, Any], lists: Iterable[str], key: str) -> Names:
    """Names that the entries of these lists have under `key`, as far as they are text.

    >>> names_of({"cases": [{"name": "a"}, {"name": 1}], "rules": 3}, ("cases", "rules"), "name")
    {('cases', 0): 'a'}
    """
    return {
        (name, index): entry[key]
        for name in lists
        if isinstance(entries := data.get(name), list)
        for index, entry in enumerate(entries)
        if isinstance(entry, dict) and isinstance(entry.get(key), str)
    }
