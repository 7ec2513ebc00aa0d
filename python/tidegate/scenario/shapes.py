"""Values of several shapes: a word, a table or a quantity, distinguished by their form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel, GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

TAG = "~"
"""Prefix of the tags of shapes; tags are not part of a path."""


class OneOf:
    """Chooses among the members of the union that it annotates, so that errors are about one shape only.

    A string that is a `Literal` is that word. A table has the shape whose required key is in it, and where there is
    but one table, that one. A list has the shape of a list, and any other value has the shape that remains.

    Args:
        expected: The valid values in words, for the message when no shape fits.
        by: Key of all tables whose word selects the table; a table with a default for it may leave it out.
        table: The shape of a table that has none of the selecting keys.
    """

    def __init__(self, expected: str, *, by: str = "", table: type[BaseModel] | None = None) -> None:
        self._expected, self._by, self._table = expected, by, table

    def __get_pydantic_core_schema__(self, union: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Builds a union whose members are tagged by their number."""
        shapes = get_args(union)
        numbers = {shape: f"{TAG}{number}" for number, shape in enumerate(shapes)}
        words = {word: shape for shape in shapes for word in _literals(shape) if isinstance(word, str)}
        tables = [shape for shape in shapes if isinstance(shape, type) and issubclass(shape, BaseModel)]
        lists = [shape for shape in shapes if _is_list(shape)]
        scalars = [shape for shape in shapes if shape not in (*tables, *lists, *words.values())]
        keys = self._keys(tables)

        def choose(value: object) -> str | None:
            if isinstance(value, BaseModel):
                return next((numbers[table] for table in tables if isinstance(value, table)), None)
            if isinstance(value, Mapping):
                key = value.get(self._by, "") if self._by else next((key for key in keys if key in value), "")
                # a file may have an unhashable value here
                shape = keys.get(key) if isinstance(key, str) else None
            elif isinstance(value, list) and lists:
                (shape,) = lists
            elif isinstance(value, str) and value in words:
                shape = words[value]
            elif isinstance(value, str) and words and not any(character.isdigit() for character in value):
                # neither a known word nor a quantity: the message should list the words
                shape = None
            else:
                shape = next((shape for shape in scalars if isinstance(value, bool) or not _literals(shape)), None)
            return None if shape is None else numbers[shape]

        return core_schema.tagged_union_schema(
            {numbers[shape]: handler.generate_schema(shape) for shape in shapes},
            choose,
            custom_error_type="shape",
            custom_error_message=self._expected,
        )

    def _keys(self, tables: list[type[BaseModel]]) -> dict[str, type[BaseModel]]:
        """Tables by the key or word that selects them; the empty key is for tables with none of these."""
        if self._by:
            fields = [(table, table.model_fields[self._by]) for table in tables]
            keys = {word: table for table, field in fields for word in _literals(field.annotation)}
            default = next((table for table, field in fields if not field.is_required()), None)
        else:
            required = [
                (field.alias or name, table)
                for table in tables
                for name, field in table.model_fields.items()
                if field.is_required()
            ]
            names = [key for key, _ in required]
            keys = {key: table for key, table in required if names.count(key) == 1}
            default = self._table or (tables[0] if len(tables) == 1 else None)
        return keys if default is None else {**keys, "": default}


def _is_list(shape: Any) -> bool:
    return get_origin(shape.__origin__ if hasattr(shape, "__metadata__") else shape) is list


def _literals(shape: Any) -> tuple[Any, ...]:
    return get_args(shape) if get_origin(shape) is Literal else ()


def shape_of(annotation: Any, tag: str) -> Any:
    """The member with `tag` in the union of an annotation with [OneOf][]; `None` if there is no such union."""
    if any(isinstance(mark, OneOf) for mark in getattr(annotation, "__metadata__", ())):
        return get_args(get_args(annotation)[0])[int(tag.removeprefix(TAG))]
    return next((shape for part in get_args(annotation) if (shape := shape_of(part, tag)) is not None), None)
