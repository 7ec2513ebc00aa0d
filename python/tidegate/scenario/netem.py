"""Linux's network emulator in tc's own words: `delay 50ms 10ms distribution normal loss 1%`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Annotated, Any

from pydantic import AfterValidator
from pydantic_core import PydanticCustomError

from tidegate.errors import InputError, did_you_mean

_ALL = 2**32 - 1
"""The probability of a certain event: Linux counts in parts of the largest 32-bit number."""

_TIMES = {"": 1_000, "us": 1_000, "ms": 10**6, "s": 10**9, "ns": 1}
_TIMES |= {f"{unit}{end}": size for unit, size in list(_TIMES.items()) if unit for end in ("ec", "ecs")}
"""Nanoseconds of each unit of time (`get_time64` of iproute2); without a unit a time is in microseconds."""

_BITS = {f"{prefix}bit": Decimal(1000) ** power for power, prefix in enumerate(("", "k", "m", "g", "t"))}
_BITS |= {f"{prefix}ibit": Decimal(1024) ** power for power, prefix in enumerate("kmgt", 1)}
_RATES = _BITS | {unit.replace("bit", "bps"): 8 * size for unit, size in _BITS.items()} | {"": Decimal(1)}
"""Bits per second of each unit of rate (`get_rate64`). There bps are bytes per second; without a unit it is bit/s."""

_NUMBER = re.compile(r"(\d+(?:\.\d*)?|\.\d+)([A-Za-z%]*)\Z")
_DISTRIBUTIONS = ("uniform", "normal", "pareto", "paretonormal")


class _Arguments:
    """The words of a command, taken one after the other."""

    def __init__(self, text: str) -> None:
        words = text.split()
        # a whole command of tc, as it was typed
        self._words = words[words.index("netem") + 1 :] if "netem" in words else words
        self._next = 0

    def word(self, after: str = "") -> str | None:
        """The next word; `None` at the end, which is an error after a word that needs another one."""
        if self._next == len(self._words):
            if after:
                raise InputError(f'found nothing after "{after}"; expected a value')
            return None
        self._next += 1
        return self._words[self._next - 1]

    def has_number(self, *, signed: bool = False) -> bool:
        """Whether the next word is a number."""
        if self._next == len(self._words):
            return False
        return self._words[self._next].lstrip("-" if signed else "")[:1].isdigit()

    def value(self, name: str, parse: Callable[[str], int]) -> int:
        """The next word as a value."""
        text = self.word(after=name) or ""
        try:
            return parse(text)
        except InputError as error:
            raise InputError(f"{name}: {error}") from None

    def optional(self, name: str, parse: Callable[[str], int], default: int = 0) -> int:
        """The next word as a value if it is a number."""
        return self.value(name, parse) if self.has_number() else default


def _quantity(text: str, units: Mapping[str, int | Decimal], noun: str, example: str) -> Decimal:
    match = _NUMBER.match(text)
    if match is None or (unit := match[2].lower()) not in units:
        raise InputError(f'found "{text}"; expected {noun}, such as {example}')
    return Decimal(match[1]) * units[unit]


def _time(text: str) -> int:
    return int(_quantity(text, _TIMES, "a time", "100ms"))


def _part(text: str) -> int:
    share = _quantity(text, {"": Decimal("0.01"), "%": Decimal("0.01")}, "per cent", "1%")
    if share > 1:
        raise InputError(f'found "{text}"; expected at most 100%')
    # rint of a double, as in `set_percent` of iproute2
    return round(float(share) * _ALL)


def _rate(text: str) -> int:
    bytes_per_s = int(_quantity(text, _RATES, "a rate", "2mbit")) // 8
    if not bytes_per_s:
        raise InputError(f'found "{text}"; expected at least 8bit')
    return bytes_per_s


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise InputError(f'found "{text}"; expected a whole number') from None


def _limit(text: str) -> int:
    packets = int(_quantity(text, {"": 1, "k": 1024, "m": 1024**2}, "a number of packets", "1000"))
    if not 1 <= packets <= _ALL:
        raise InputError(f'found "{text}"; expected from 1 to {_ALL} packets')
    return packets


def parse(text: str) -> dict[str, Any]:
    """The settings as the engine takes them.

    Args:
        text: The options of netem as tc takes them, or a whole command with them.

    Raises:
        InputError: when tc would refuse them, or they are not modelled.

    >>> parse("tc qdisc add dev eth0 root netem delay 50ms 10ms loss 1%")["delay"]
    50000000
    """
    arguments, netem = _Arguments(text), dict[str, Any]()
    while (word := arguments.word()) is not None:
        full = next((full for full in _OPTIONS if full.startswith(word)), None)
        if full is None:
            hint = did_you_mean(word, list(_OPTIONS)) or f"; expected one of {', '.join(_OPTIONS)}"
            raise InputError(f'found "{word}"{hint}')
        _OPTIONS[full](arguments, netem)
    _drop_lone_correlation(netem)
    _check_pairs(netem)
    return netem


def _delay(arguments: _Arguments, netem: dict[str, Any]) -> None:
    netem["delay"] = arguments.value("delay", _time)
    if arguments.has_number():
        netem["jitter"] = arguments.value("jitter", _time)
        if arguments.has_number():
            netem["delay_correlation"] = arguments.value("delay correlation", _part)


def _loss(arguments: _Arguments, netem: dict[str, Any]) -> None:
    if "loss" in netem:
        raise InputError("found a second loss; expected one")
    model = "random" if arguments.has_number() else arguments.word(after="loss")
    match model:
        case "random":
            settings = _chance("loss", arguments)
        case "state":
            p13 = arguments.value("p13", _part)
            defaults = {"p31": _ALL - p13, "p32": 0, "p23": _ALL, "p14": 0}
            rest = {name: arguments.optional(name, _part, default) for name, default in defaults.items()}
            settings = {"p13": p13, **rest}
        case "gemodel":
            p = arguments.value("p", _part)
            r = arguments.optional("r", _part, _ALL - p)
            # tc asks for 1-h, the loss in the bad state; Linux keeps h
            h = _ALL - arguments.optional("1-h", _part, _ALL)
            settings = {"p": p, "r": r, "h": h, "k1": arguments.optional("1-k", _part)}
        case _:
            raise InputError(f'loss: found "{model}"; expected per cent, random, state or gemodel')
    netem["loss"] = {model: settings}


def _chance(name: str, arguments: _Arguments) -> dict[str, int]:
    chance = {"probability": arguments.value(name, _part)}
    if arguments.has_number():
        chance["correlation"] = arguments.value(f"{name} correlation", _part)
    return chance


def _distribution(arguments: _Arguments, netem: dict[str, Any]) -> None:
    name = arguments.word(after="distribution") or ""
    if name not in _DISTRIBUTIONS:
        hint = did_you_mean(name, _DISTRIBUTIONS) or f"; expected one of {', '.join(_DISTRIBUTIONS)}"
        raise InputError(f'distribution: found "{name}"{hint}')
    netem["distribution"] = name


def _serialisation(arguments: _Arguments, netem: dict[str, Any]) -> None:
    netem["rate"] = {"bytes_per_s": arguments.value("rate", _rate)}
    for key, signed in (("overhead", True), ("cell", False), ("cell_overhead", True)):
        if arguments.has_number(signed=signed):
            netem["rate"][key] = arguments.value(key.replace("_", " "), _whole)


def _refuse_slot(_arguments: _Arguments, _netem: dict[str, Any]) -> None:
    raise InputError("slot is not modelled; a capacity with a schedule sends in slots")


_OPTIONS: dict[str, Callable[[_Arguments, dict[str, Any]], object]] = {
    "limit": lambda arguments, netem: netem.update(limit=arguments.value("limit", _limit)),
    "latency": _delay,
    "delay": _delay,
    "loss": _loss,
    "drop": _loss,
    # the run has its own seed
    "seed": lambda arguments, _: arguments.value("seed", _whole),
    "ecn": lambda _, netem: netem.update(ecn=True),
    "reorder": lambda arguments, netem: netem.update(reorder=_chance("reorder", arguments)),
    "corrupt": lambda arguments, netem: netem.update(corrupt=_chance("corrupt", arguments)),
    "gap": lambda arguments, netem: netem.update(gap=arguments.value("gap", _whole)),
    "duplicate": lambda arguments, netem: netem.update(duplicate=_chance("duplicate", arguments)),
    "distribution": _distribution,
    "rate": _serialisation,
    "slot": _refuse_slot,
}
"""What is done at each word, in the order in which tc tries an abbreviation."""


def _drop_lone_correlation(netem: dict[str, Any]) -> None:
    """Drops the correlation of duplicates where it is the only one: iproute2 then forgets to hand it over.

    Its `netem_parse_opt` counts `present[TCA_NETEM_CORR]` for all correlations but this one.
    """
    chances = (netem.get("loss", {}).get("random", {}), netem.get("reorder", {}), netem.get("corrupt", {}))
    if "delay_correlation" not in netem and not any("correlation" in chance for chance in chances):
        netem.get("duplicate", {}).pop("correlation", None)


def _check_pairs(netem: dict[str, Any]) -> None:
    """Refuses what needs another option that is not there, as tc does."""
    if netem.get("reorder", {}).get("probability"):
        if not netem.get("delay"):
            raise InputError("reorder: found no delay; packets that wait for nothing cannot be overtaken")
        netem.setdefault("gap", 1)
    elif netem.get("gap"):
        raise InputError("gap: found no reorder; expected a probability for it")
    if netem.get("ecn") and "loss" not in netem:
        raise InputError("ecn: found no loss; expected losses, which become marks")
    if "distribution" in netem and not (netem.get("delay") and netem.get("jitter")):
        raise InputError("distribution: found no delay with jitter; expected both")


def _check(text: str) -> str:
    try:
        parse(text)
    except InputError as error:
        raise PydanticCustomError("tidegate", "{why}", {"why": str(error)}) from None
    return text


NetemText = Annotated[str, AfterValidator(_check)]
"""Options of netem in tc's words."""
