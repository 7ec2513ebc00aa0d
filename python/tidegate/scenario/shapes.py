"""Values of several shapes: a word, a table or a quantity, told apart by what they look like."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel, GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

TAG = "~"
"""How the tags of shapes begin; they are no part of a path."""


class OneOf:
    """Chooses among the members of the union that it annotates, so that errors speak of one shape only.

    A string that is a `Literal` is that word. A table has the shape whose required key is in it, and where there is
    but one table, that one. A list is the list, and everything else has the shape that is left.

    Args:
        expected: What is right, for the message when no shape fits.
        by: A key of all tables whose word says which of them it is; the one that has a default may leave it out.
        table: The shape of a table that has no key of a shape.
    """

    def __init__(self, expected: str, *, by: str = "", table: type[BaseModel] | None = None) -> None:
        self._expected, self._by, self._table = expected, by, table

    def __get_pydantic_core_schema__(self, union: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """A union whose members go by their number."""
        shapes = get_args(union)
        numbers = {shape: f"{TAG}{number}" for number, shape in enumerate(shapes)}
        words = {word: shape for shape in shapes for word in _literals(shape) if isinstance(word, str)}
        tables = [shape for shape in shapes if isinstance(shape, type) and issubclass(shape, BaseModel)]
        lists = [shape for shape in shapes if _is_list(shape)]
        left = [shape for shape in shapes if shape not in (*tables, *lists, *words.values())]
        keys = self._keys(tables)

        def choose(value: object) -> str | None:
            if isinstance(value, BaseModel):
                return next((numbers[table] for table in tables if isinstance(value, table)), None)
            if isinstance(value, Mapping):
                key = value.get(self._by, "") if self._by else next((key for key in keys if key in value), "")
                # a list of what a file may have there cannot be a key
                shape = keys.get(key) if isinstance(key, str) else None
            elif isinstance(value, list) and lists:
                (shape,) = lists
            elif isinstance(value, str) and value in words:
                shape = words[value]
            elif isinstance(value, str) and words and not any(character.isdigit() for character in value):
                # a word that is none of them, and no quantity either: the message should name the words
                shape = None
            else:
                shape = next((shape for shape in left if isinstance(value, bool) or not _literals(shape)), None)
            return None if shape is None else numbers[shape]

        return core_schema.tagged_union_schema(
            {numbers[shape]: handler.generate_schema(shape) for shape in shapes},
            choose,
            custom_error_type="shape",
            custom_error_message=self._expected,
        )

    def _keys(self, tables: list[type[BaseModel]]) -> dict[str, type[BaseModel]]:
        """What gives each table away: a key, or a word; the empty one stands for none."""
        if self._by:
            fields = [(table, table.model_fields[self._by]) for table in tables]
            keys = {word: table for table, field in fields for word in _literals(field.annotation)}
            plain = next((table for table, field in fields if not field.is_required()), None)
        else:
            required = [
                (field.alias or name, table)
                for table in tables
                for name, field in table.model_fields.items()
                if field.is_required()
            ]
            names = [key for key, _ in required]
            keys = {key: table for key, table in required if names.count(key) == 1}
            plain = self._table or (tables[0] if len(tables) == 1 else None)
        return keys if plain is None else {**keys, "": plain}


def _is_list(shape: Any) -> bool:
    return get_origin(shape.__origin__ if hasattr(shape, "__metadata__") else shape) is list


def _literals(shape: Any) -> tuple[Any, ...]:
    return get_args(shape) if get_origin(shape) is Literal else ()


def shape_of(annotation: Any, tag: str) -> Any:
    """The member that stands under `tag` in the union of an annotation with [OneOf][]; `None` where there is none."""
    if any(isinstance(mark, OneOf) for mark in getattr(annotation, "__metadata__", ())):
        return get_args(get_args(annotation)[0])[int(tag.removeprefix(TAG))]
    return next((shape for part in get_args(annotation) if (shape := shape_of(part, tag)) is not None), None)
