"""What every table of a scenario file has in common."""

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
"""What names look like."""

Name = Annotated[str, Field(pattern=NAME)]
"""A name: letters, digits and `_ . + -`, at most 64 characters."""

Factor = Annotated[float, Field(gt=0, le=1e6, allow_inf_nan=False)]
"""A positive number without a unit."""


class Said(BaseModel):
    """A table with keys that mean something else when somebody writes their default: files keep them then."""

    _said: ClassVar[frozenset[str]] = frozenset()

    @model_serializer(mode="wrap")
    def _with_said(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        table: dict[str, Any] = handler(self)
        for name in sorted(self._said & self.model_fields_set - table.keys()):
            value = getattr(self, name)
            table[name] = str(value) if isinstance(value, Quantity) else value
        return table


class Model(BaseModel):
    """A table of a scenario file: frozen, strict, no unknown keys.

    Built from Python with keyword arguments, wrong values raise
    [ScenarioError][tidegate.errors.ScenarioError] with the same words as a wrong file.
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
        """What does not fit in the table at `path`, in a run of `duration`: by the rules of its keys, and inside it."""
        for name, field in type(self).model_fields.items():
            value, here = getattr(self, name), (*path, field.alias or name)
            for rule in field.metadata:
                if isinstance(rule, Rule):
                    yield from rule.problems(here, value)
            if isinstance(value, Model):
                yield from value.problems(here, duration)

    def to_ir(self, reading: Reading) -> Any:
        """As the engine takes it: its keys under their own names, in base units, files read by `reading`."""
        return {name: lowered(getattr(self, name), reading) for name in type(self).model_fields}

    def to_dict(self) -> dict[str, Any]:
        """As plain data with units, as in a file; only what differs from the defaults."""
        return self.model_dump(mode="json", by_alias=True, exclude_defaults=True)


def numbered(name: str, count: int) -> list[str]:
    """What several alike are called: NAME-1, NAME-2 and so on; one alone has the name itself."""
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
            return [lowered(one, reading) for one in value]
    return value
