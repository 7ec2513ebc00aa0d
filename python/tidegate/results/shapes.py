"""Shapes of saved files: what a reader asks of them before it uses them."""

from __future__ import annotations

import math
import re
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from tidegate.errors import InputError, located
from tidegate.results.saved import LARGEST, check_summary
from tidegate.scenario.explain import explain
from tidegate.units import show

S = TypeVar("S", bound="Shape")


class Shape(BaseModel):
    """A table of a saved file. Keys that it does not name may have any value."""

    model_config = ConfigDict(strict=True, frozen=True)


def checked(path: Path, data: Any, shape: type[S], fault: str = "the file is damaged") -> S:
    """The data of a file in the shape that its reader asks for.

    Args:
        path: The file, for errors.
        data: The data.
        shape: The shape.
        fault: Words for data of another shape.

    Raises:
        InputError: names file, place, the value found and the value expected.
    """
    with located(f"{path}: {fault}"):
        try:
            return shape.model_validate(data)
        except ValidationError as error:
            problem = next(explain(error, shape))
            where, _, message = problem.text("").removeprefix(": ").partition(": ")
            raise InputError(f"{where}: {message}" if message else where) from None


def _without_nul(text: str) -> str:
    if "\0" in text:
        raise ValueError("found a NUL; expected the name of a file")
    return text


def _file_name(text: str) -> str:
    if {"", "..", "."} & {*_without_nul(text).split("/")}:
        raise ValueError(f"found {text}; expected the name of a file in its folder")
    return text


def _hexadecimal(digits: int, text: str) -> str:
    if not re.fullmatch(rf"[0-9a-f]{{{digits}}}", text):
        raise ValueError(f"found {show(text)}; expected {digits} hexadecimal digits")
    return text


def _in_range(number: float) -> float:
    if math.isfinite(number) and abs(number) > LARGEST:
        raise ValueError(f"found {number}; expected a number of at most {LARGEST:g}")
    return number


def _summary(data: dict[str, Any]) -> dict[str, Any]:
    check_summary(data)
    return data


FilePath = Annotated[str, AfterValidator(_without_nul)]
"""A path or a part of one."""
FileName = Annotated[str, AfterValidator(_file_name)]
"""A file of a result, by its path in the folder of the result."""
Seed = Annotated[int, Field(ge=0, lt=2**64)]
"""A seed of a run."""
Key = Annotated[str, AfterValidator(partial(_hexadecimal, 32))]
"""The key of a kept run, which is the name of its file."""
Finite = Annotated[float, Field(ge=-LARGEST, le=LARGEST, allow_inf_nan=False)]
"""A number."""
Unbounded = Annotated[float, AfterValidator(_in_range)]
"""A number, an infinite one, or NaN."""
Numbers = dict[str, Unbounded | None]
"""Numbers by name; those that are not known are null."""
Summary = Annotated[dict[str, Any], AfterValidator(_summary)]
"""The summary of a run."""


class RecordedFile(Shape):
    """A file that a recorded call came from."""

    sha256: Annotated[str, AfterValidator(partial(_hexadecimal, 64))]


class Imported(Shape):
    """The origin of a recorded call."""

    files: list[RecordedFile]


class SessionVerdict(Shape):
    """The verdict on the clock of a session of real programs."""

    against: list[str]


class RunShape(Shape):
    """`run.json`."""

    name: FilePath
    digest: str
    scenario: FilePath
    base: FilePath
    seed: Annotated[int, Field(ge=0)]
    summary: Summary
    controller: str | None = None
    versions: dict[str, str] = Field(default_factory=dict)
    scenario_hash: str = ""
    inputs: dict[str, str] = Field(default_factory=dict)
    files: list[FileName] = Field(default_factory=list)
    imported: Imported | None = None
    session: SessionVerdict | None = None
