"""Values of several shapes: a word, a table or a quantity, distinguished by their form."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple, get_args, get_origin

from pydantic import BaseModel, GetCoreSchemaHandler, GetJsonSchemaHandler, ValidationInfo
from pydantic.json_schema import JsonSchemaValue
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

    def shape(self, union: Any, tag: str) -> Any:
        """The member of the annotated `union` with this tag."""
        return get_args(union)[int(tag.removeprefix(TAG))]

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


class _Keyed(NamedTuple):
    key: str
    value: object


class ByKey:
    """Chooses the type of the annotated value by the table's `key`, which comes before it, so that errors are about it.

    Args:
        types: The type of each key's value. A table with another key is wrong already, and takes any value.
        dump: Turns a value into plain data.
    """

    def __init__(self, types: Mapping[str, Any], dump: Callable[[Any], Any]) -> None:
        self._types, self._dump = types, dump

    def shape(self, _union: Any, tag: str) -> Any:
        """The type with this tag."""
        return self._types.get(tag.removeprefix(TAG))

    def __get_pydantic_core_schema__(self, _source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Builds a union whose members are tagged by their key."""

        def keyed(value: object, info: ValidationInfo) -> object:
            return _Keyed(info.data.get("key", ""), value)

        def bare(schema: CoreSchema) -> CoreSchema:
            return core_schema.no_info_before_validator_function(lambda keyed: keyed.value, schema)

        choices = {f"{TAG}{key}": bare(handler.generate_schema(shape)) for key, shape in self._types.items()}
        union = core_schema.tagged_union_schema(
            {**choices, TAG: bare(core_schema.any_schema())},
            lambda keyed: f"{TAG}{keyed.key}",
            serialization=core_schema.plain_serializer_function_ser_schema(self._dump),
        )
        return core_schema.with_info_before_validator_function(keyed, union)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """The schemas of all keys' values."""
        union = handler(schema)
        shapes = [shape for shape in union.pop("oneOf") if shape]
        # a value may fit several of them, as a fraction does
        return {**union, "anyOf": [shape for number, shape in enumerate(shapes) if shape not in shapes[:number]]}


def _is_list(shape: Any) -> bool:
    return get_origin(shape.__origin__ if hasattr(shape, "__metadata__") else shape) is list


def _literals(shape: Any) -> tuple[Any, ...]:
    return get_args(shape) if get_origin(shape) is Literal else ()


def shape_of(annotation: Any, tag: str) -> Any:
    """The member with `tag` in the union of an annotation with [OneOf][] or [ByKey][]; `None` if there is none."""
    for mark in getattr(annotation, "__metadata__", ()):
        if isinstance(mark, OneOf | ByKey):
            return mark.shape(get_args(annotation)[0], tag)
    return next((shape for part in get_args(annotation) if (shape := shape_of(part, tag)) is not None), None)
