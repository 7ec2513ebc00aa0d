"""Numbers of studies, kept with the digests of the runs behind them.

A study makes a table of the documentation from hundreds of runs. A run can be repeated to the bit, so its numbers need not be
measured at every test: `studies/kept/STUDY.jsonl` holds them, and tables are written from the file. Tests repeat a sample of the
runs of each study, and one study as a whole, another one after each commit (`tests/python/whole/test_studies.py`).
`make studies STUDY=NAME` measures all numbers of a study again and writes its file and its tables.
"""

from __future__ import annotations

import importlib
import json
import math
import os
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from threading import Lock
from typing import Any, Generic, ParamSpec, TypeVar

from tidegate import Run

FOLDER = Path(__file__).parent / "kept"
P = ParamSpec("P")
R = TypeVar("R")
ROUNDING = 1e-9
"""By which part a number may differ where the runs are the same: NumPy and its BLAS add up and take logarithms by other
instructions on another processor."""


class StaleError(Exception):
    """A number that is not kept, or is not what its runs give today."""


@dataclass(frozen=True)
class Entry:
    """The numbers of one call of a measuring function."""

    value: Any
    """The result, as JSON has it."""
    digests: Sequence[str]
    """Digests of the runs that it was measured on, sorted."""
    controllers: Sequence[str]
    """Controllers of their flows, sorted: a sample has each of them."""

    def text(self) -> str:
        """All of it as one line of JSON."""
        return json.dumps([self.value, self.digests, self.controllers])


def agree(value: Any, other: Any) -> bool:
    """Whether two results, as JSON has them, are the same but for rounding; NaN agrees with NaN."""
    if isinstance(value, dict) and isinstance(other, dict):
        return value.keys() == other.keys() and all(agree(value[key], other[key]) for key in value)
    if isinstance(value, list | tuple) and isinstance(other, list | tuple):
        return len(value) == len(other) and all(map(agree, value, other))
    if isinstance(value, float) and isinstance(other, float):
        return math.isclose(value, other, rel_tol=ROUNDING) or (math.isnan(value) and math.isnan(other))
    return type(value) is type(other) and bool(value == other)


class Store:
    """The kept numbers of one study: entries by function and arguments."""

    def __init__(self, study: str) -> None:
        """Reads the file, if there is one yet."""
        self.study = study
        self.path = FOLDER / f"{study}.jsonl"
        self.entries: dict[str, dict[str, Entry]] = {}
        self.asked: dict[str, dict[str, Entry]] | None = None
        """While a study is made anew: the entries that were asked for, which is what is written. Else None."""
        if self.path.exists():
            for line in self.path.read_text("utf-8").splitlines():
                function, args, *entry = json.loads(line)
                self.entries.setdefault(function, {})[json.dumps(args)] = Entry(*entry)

    def write(self) -> None:
        """Writes the entries that were asked for, a line each: function, arguments, result, digests, controllers."""
        lines = [
            f"[{json.dumps(function)}, {key}, {entry.text()[1:]}"
            for function, entries in sorted((self.asked or {}).items())
            for key, entry in sorted(entries.items())
        ]
        FOLDER.mkdir(exist_ok=True)
        self.path.write_text("\n".join([*lines, ""]), "utf-8")

    def sample(self, seed: object) -> list[tuple[str, str]]:
        """Function and key of some entries: at least two, and one of each set of controllers."""
        groups: dict[tuple[str, ...], list[tuple[str, str]]] = {}
        for function, entries in self.entries.items():
            for key, entry in entries.items():
                groups.setdefault(tuple(entry.controllers), []).append((function, key))
        draw = random.Random(f"{self.study} {seed}")
        chosen = [draw.choice(group) for _, group in sorted(groups.items())]
        rest = sorted({place for group in groups.values() for place in group} - {*chosen})
        return [*chosen, *draw.sample(rest, min(len(rest), max(0, 2 - len(chosen))))]

    def stale(self, places: Sequence[tuple[str, str]]) -> list[str]:
        """Measures these entries again: a line for each that differs."""
        lines = []
        for function, key in places:
            kept, now = self.entries[function][key], measure(self.study, function, key)
            runs = (now.digests, now.controllers) == (kept.digests, kept.controllers)
            if not (runs and agree(now.value, kept.value)):
                digests = "digests differ" if now.digests != kept.digests else "the digests are the same"
                lines.append(f"{function}({key[1:-1]}) is now {now.value}, kept is {kept.value}; {digests}")
        return lines


@cache
def store(study: str) -> Store:
    """The kept numbers of a study."""
    return Store(study)


class Kept(Generic[P, R]):
    """A measuring function whose results are kept: see [kept][]."""

    def __init__(self, function: Callable[P, R]) -> None:
        """Wraps the function."""
        self.function = function
        self.__name__ = function.__name__
        self.__doc__ = function.__doc__
        self.study = function.__module__

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """The kept result for these arguments."""
        if kwargs:
            raise TypeError(f"{self.__name__}: arguments of a kept function are given by position")
        here, key = store(self.study), json.dumps(args)
        entry = here.entries.get(self.__name__, {}).get(key)
        if here.asked is not None:
            entry = entry or measure(self.study, self.__name__, key)
            here.entries.setdefault(self.__name__, {})[key] = entry
            here.asked.setdefault(self.__name__, {})[key] = entry
        if entry is None:
            raise StaleError(
                f"{here.path.name} has no {self.__name__}({key[1:-1]}): make studies STUDY={self.study} measures it"
            )
        value: R = entry.value
        return value


def kept(function: Callable[P, R]) -> Kept[P, R]:
    """Keeps the results of a function in its module's file.

    Arguments are given by position and are text, numbers or lists of these. The result is what JSON can hold: numbers, text,
    lists, and mappings with text for keys. The function makes its runs itself: one that comes out of a cache leaves no digest.
    """
    return Kept(function)


@contextmanager
def _runs() -> Iterator[tuple[set[str], set[str]]]:
    """Notes the digest of each run that is made meanwhile in this process, and the controllers of its flows."""
    digests: set[str] = set()
    controllers: set[str] = set()
    lock, begin = Lock(), Run.__init__

    def noting(self: Run, about: Mapping[str, Any], tables: Any) -> None:
        begin(self, about, tables)
        with lock:
            digests.add(self.digest)
            flows = self.summary["flows"]
            controllers.update(str(flow["controller"]) for flow in flows if flow.get("controller"))

    Run.__init__ = noting  # type: ignore[method-assign]
    try:
        yield digests, controllers
    finally:
        Run.__init__ = begin  # type: ignore[method-assign]


def measure(study: str, function: str, key: str) -> Entry:
    """Measures one entry of a study anew."""
    wrapped: Kept[..., Any] = getattr(importlib.import_module(study), function)
    with _runs() as (digests, controllers):
        value = wrapped.function(*json.loads(key))
    # as it comes out of a file
    return Entry(json.loads(json.dumps(value)), sorted(digests), sorted(controllers))


@dataclass(frozen=True)
class Study:
    """A module of measuring functions, with `TABLES`: what writes each of its tables, by page and name.

    `further`, if the module has one, asks for numbers that tests alone look at.
    """

    name: str

    @property
    def module(self) -> Any:
        """The module."""
        return importlib.import_module(self.name)

    def tables(self) -> dict[tuple[str, str], str]:
        """The tables as kept numbers make them, by page and name."""
        return {place: write() for place, write in self.module.TABLES.items()}

    def sample(self, seed: object) -> list[str]:
        """Measures some entries again: a line for each that differs."""
        return store(self.name).stale(store(self.name).sample(seed))

    def whole(self) -> list[str]:
        """Measures all entries again: a line for each that differs."""
        here = store(self.name)
        return here.stale([(function, key) for function, entries in here.entries.items() for key in entries])

    def remake(self, progress: Callable[[int, int], None] = lambda *_: None) -> dict[tuple[str, str], str]:
        """Measures all numbers again, on all cores, and writes them: its tables.

        Entries that nothing asks for any more are left out.
        """
        here, module = store(self.name), self.module
        places = [
            (function, key)
            for function, entries in here.entries.items()
            if isinstance(getattr(module, function, None), Kept)
            for key in entries
        ]
        here.entries = {}
        # spawned: a copy of a process with threads could wait for ever
        with ProcessPoolExecutor(os.cpu_count(), get_context("spawn")) as pool:
            results = [pool.submit(measure, self.name, *place) for place in places]
            for number, ((function, key), result) in enumerate(zip(places, results, strict=True), start=1):
                here.entries.setdefault(function, {})[key] = result.result()
                progress(number, len(places))
        here.asked = {}
        tables = self.tables()
        if hasattr(module, "further"):
            module.further()
        here.write()
        here.asked = None
        return tables
