"""Turns validation errors of pydantic into messages for people: place, value found, value expected."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from tidegate.errors import did_you_mean, first_problems
from tidegate.scenario.shapes import TAG, shape_of
from tidegate.units import show

Path = tuple[str | int, ...]
"""Keys and positions from the top of the file."""


@dataclass(frozen=True)
class Problem:
    """A wrong key or value of a file."""

    path: Path
    message: str
    on_key: bool = False
    """Whether the key itself is wrong, not its value."""

    def text(self, where: str, named: Mapping[Path, str] | None = None) -> str:
        """`where: key: message`."""
        key = dotted(self.path, named)
        return f"{where}: {key}: {self.message}" if key else f"{where}: {self.message}"


def dotted(path: Path, named: Mapping[Path, str] | None = None) -> str:
    """A path as people write it: entries of lists by their name, or else by their number.

    >>> dotted(("links", 0, "delay"), {("links", 0): "bottleneck"})
    'links.bottleneck.delay'
    >>> dotted(("links", 1, "capacity", "schedule", 2))
    'links[2].capacity.schedule[3]'
    """
    text = ""
    for depth, step in enumerate(path):
        name = (named or {}).get(path[: depth + 1])
        if name is not None:
            text += f".{name}"
        elif isinstance(step, int):
            text += f"[{step + 1}]"
        else:
            text += f".{step}"
    return text.lstrip(".")


def explain(error: ValidationError, model: type[BaseModel]) -> Iterator[Problem]:
    """Yields each problem of a validation error of `model`, in the order of the file."""
    # each message may search for similar names
    details, rest = first_problems(error.errors(include_url=False))
    for detail in details:
        raw = detail["loc"]
        path = tuple(step for step in raw if not (isinstance(step, str) and step.startswith(TAG)))
        yield Problem(path, _message(detail, model), on_key=detail["type"] == "extra_forbidden")
    if rest:
        yield Problem((), f"{rest} more problems")


def _message(detail: ErrorDetails, model: type[BaseModel]) -> str:
    value = show(detail["input"])
    context = detail.get("ctx", {})
    match detail["type"]:
        case "tidegate":
            return str(context["why"])
        case "missing":
            return "the key is missing"
        case "extra_forbidden":
            keys = sorted(_keys_at(model, detail["loc"][:-1]))
            hint = did_you_mean(str(detail["loc"][-1]), keys)
            return f"there is no such key{hint} (keys here: {', '.join(keys)})"
        case "shape":
            return f"found {value}; expected {detail['msg']}"
        case "string_pattern_mismatch":
            return f"found {value}; expected a letter or digit, then letters, digits and _ . + -, at most 64 in total"
        case "literal_error":
            words = str(context["expected"]).replace("'", '"').replace("False", "false")
            choices = [word.strip('"') for word in words.replace(" or ", ", ").split(", ")]
            hint = did_you_mean(value.strip('"'), choices)
            return f"found {value}; expected {words}{hint}"
        case "value_error":
            return str(context["error"])
    expected = _EXPECTED.get(detail["type"])
    if expected is not None:
        return f"found {value}; expected {expected.format(**context)}"
    message = detail["msg"].removeprefix("Input should be ")
    return f"found {value}; expected {message[:1].lower()}{message[1:]}"


_EXPECTED: dict[str, str] = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "string_type": "text",
    "string_too_short": "text",
    "list_type": "a list",
    "tuple_type": "a pair",
    "missing_argument": "a pair",
    "too_short": "a list of length {min_length} or more",
    "too_long": "a list of length {max_length} or less",
    "dict_type": "a table",
    "model_type": "a table",
    "finite_number": "a finite number",
    "greater_than": "a number greater than {gt}",
    "greater_than_equal": "a number of at least {ge}",
    "less_than_equal": "a number of at most {le}",
    "less_than": "a number below {lt}",
}


def _keys_at(model: type[BaseModel], path: tuple[str | int, ...]) -> set[str]:
    """The valid keys at `path`, found by walking the annotations."""
    candidates: list[Any] = [model]
    for step in path:
        following: list[Any] = []
        for candidate in candidates:
            if isinstance(step, str) and step.startswith(TAG):
                following.append(shape_of(candidate, step))
            else:
                following.extend(_field(kind, step) for kind in _models(candidate))
        candidates = [annotation for annotation in following if annotation is not None] or candidates
    return {key for kind in candidates for table in _models(kind) for key in _keys(table)}


def _field(model: type[BaseModel], step: str | int) -> Any:
    for name, field in model.model_fields.items():
        if step in (name, field.alias):
            return field.rebuild_annotation()
    return None


def _keys(model: type[BaseModel]) -> Iterator[str]:
    for name, field in model.model_fields.items():
        yield field.alias or name


def _models(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for part in get_args(annotation) for model in _models(part)]
