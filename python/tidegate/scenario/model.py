"""Base class of the tables of scenario files, and helpers that they share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    ValidationError,
    model_serializer,
)

from tidegate.errors import ScenarioError
from tidegate.scenario._rules import Rule
from tidegate.scenario.explain import Path, Problem, explain
from tidegate.units import Duration, Fraction, Quantity

if TYPE_CHECKING:
    from tidegate.scenario.reading import Reading

NAME = r"^[A-Za-z0-9][A-Za-z0-9_.+-]{0,63}$"
"""Pattern of names."""

Name = Annotated[str, Field(pattern=NAME)]
"""A name: letters, digits and `_ . + -`, at most 64 characters."""

Factor = Annotated[float, Field(gt=0, le=1e6, allow_inf_nan=False)]
"""A positive number without a unit."""


class StatedDefaults(BaseModel):
    """A table with keys that mean something else when their default is stated: files keep such a stated default."""

    _kept_if_stated: ClassVar[frozenset[str]] = frozenset()

    @model_serializer(mode="wrap")
    def _with_stated(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        table: dict[str, Any] = handler(self)
        for name in sorted(self._kept_if_stated & self.model_fields_set - table.keys()):
            value = getattr(self, name)
            table[name] = str(value) if isinstance(value, Quantity) else value
        return table


class Model(BaseModel):
    """A table of a scenario file: frozen, strict, no unknown keys.

    Built from Python with keyword arguments, wrong values raise
    [ScenarioError][tidegate.errors.ScenarioError] with the same messages as a wrong file.
    """

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        strict=True,
        populate_by_name=True,
        arbitrary_types_allowed=False,
    )

    def __init__(self, /, **values: Any) -> None:
        """Takes the keys of the table as keyword arguments."""
        try:
            self.__pydantic_validator__.validate_python(values, self_instance=self)
        except ValidationError as error:
            raise ScenarioError(problem.text(type(self).__name__) for problem in explain(error, type(self))) from None

    # pydantic reads this mark to know that nested tables need not go through __init__
    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]

    def problems(self, path: Path, duration: Duration) -> Iterator[Problem]:
        """Yields the problems of the table at `path` in a run of `duration`, those of tables inside it included."""
        for name, field in type(self).model_fields.items():
            value, key_path = getattr(self, name), (*path, field.alias or name)
            for rule in field.metadata:
                if isinstance(rule, Rule):
                    yield from rule.problems(key_path, value)
            if isinstance(value, Model):
                yield from value.problems(key_path, duration)

    def to_ir(self, reading: Reading) -> Any:
        """As the engine takes it: its keys under their own names, in base units, files read by `reading`."""
        return {name: lowered(getattr(self, name), reading) for name in type(self).model_fields}

    def to_dict(self) -> dict[str, Any]:
        """Plain data with units, as in a file; only values that differ from the defaults."""
        return self.model_dump(mode="json", by_alias=True, exclude_defaults=True)


def numbered(name: str, count: int) -> list[str]:
    """Names of `count` identical flows, members or users: NAME-1, NAME-2 and so on; `name` alone if `count` is 1."""
    return [name] if count == 1 else [f"{name}-{number}" for number in range(1, count + 1)]


def lowered(value: Any, reading: Reading) -> Any:
    """A value as the engine takes it: nanoseconds, bit/s, bytes, fractions."""
    match value:
        case Model():
            return value.to_ir(reading)
        case Fraction():
            return float(value)
        case Quantity():
            return int(value)
        case list() | tuple():
            return [lowered(element, reading) for element in value]
        case dict():
            return {key: lowered(element, reading) for key, element in value.items()}
    return value
