"""How lines of controllers look, on every figure and in every report.

The hues are those of Okabe and Ito ("Color Universal Design", 2008), which people with any of the
common colour-vision deficiencies can tell apart. Black and yellow are left out: black is the axes'
colour, and yellow lines vanish on white. A dash, and for points a marker, is a second channel: eight hues do not
reach for all controllers, and nobody prints in colour only.
"""

from __future__ import annotations

import math
import re
import zlib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from tidegate.control import registry
from tidegate.errors import TidegateError

HUES: tuple[str, ...] = (
    "#0072b2",  # blue
    "#d55e00",  # vermilion
    "#009e73",  # bluish green
    "#cc79a7",  # reddish purple
    "#e69f00",  # orange
    "#56b4e9",  # sky blue
    "#8c564b",  # brown: not of the set; for the seventh and later
    "#555555",
)

#: The same hues, lifted to stand on a dark page.
HUES_ON_DARK: tuple[str, ...] = (
    "#4ba6e8", "#ff8b4d", "#35c99b", "#e8a6cb", "#f2bb4a", "#9bd6fa", "#c39b8f", "#b5bac2",
)  # fmt: skip

#: Lengths of strokes and gaps, in widths of the line, and the marker that goes with each.
DASHES: tuple[tuple[float, ...], ...] = ((), (5.0, 1.6), (1.4, 1.4), (6.0, 1.6, 1.4, 1.6), (9.0, 2.5))
MARKERS: tuple[str, ...] = ("o", "s", "^", "D", "v")

#: Hue and first dash of the controllers that come with tidegate, so that GCC is blue on every sheet.
KNOWN: dict[str, tuple[int, int]] = {
    "gcc": (0, 0), "gcc-remb": (5, 0), "fixed": (1, 0), "tfrc": (4, 0), "tfrc-sp": (6, 0),
    "sprout": (2, 0), "sprout-ewma": (2, 3), "lookup_table": (3, 0), "rrb-simd": (7, 0),
    "nada": (3, 1),
    "scream": (1, 1), "scream-v1": (1, 3),
}  # fmt: skip

#: Hues of which each controller of one's own prefers one: none is that of gcc, fixed, nada or scream, so that it mostly
#: keeps its hue from figure to figure.
OWN: tuple[int, ...] = (2, 4, 5, 6)

#: Cross traffic, capacity and other things that are not the subject.
MUTED = "#8a8f98"
CAPACITY_FILL = "#e9ecf1"
CAPACITY_EDGE = "#a9b0bc"


@dataclass(frozen=True)
class Look:
    """How the line of one controller looks."""

    hue: int
    dash: int = 0

    @property
    def colour(self) -> str:
        """On a light page."""
        return HUES[self.hue]

    @property
    def on_dark(self) -> str:
        """On a dark page."""
        return HUES_ON_DARK[self.hue]

    @property
    def linestyle(self) -> Literal["-"] | tuple[float, tuple[float, ...]]:
        """For matplotlib."""
        return (0, DASHES[self.dash]) if DASHES[self.dash] else "-"

    @property
    def dashes(self) -> tuple[float, ...]:
        """Lengths of strokes and gaps, in widths of the line; none for a whole line."""
        return DASHES[self.dash]

    @property
    def marker(self) -> str:
        """For matplotlib."""
        return MARKERS[self.dash]


def look(controller: str) -> Look:
    """The look of a controller by itself, which depends on nothing but its name.

    The name may have a preset or settings (`gcc:draft-02`). All of one algorithm have its hue, presets a dash each.
    One that does not come with tidegate has what the hash of its name gives; where its file lies does not count.

    >>> look("gcc").colour, look("gcc:draft-02").colour, look("gcc:draft-02").dash
    ('#0072b2', '#0072b2', 2)
    >>> look("python:mine.py:Mine") == look("Mine")
    True
    """
    name, _, rest = controller.partition(":")
    if name not in KNOWN:
        number = zlib.crc32(_short(controller).encode())
        return Look(OWN[number % len(OWN)], 1 + number // len(OWN) % (len(DASHES) - 1))
    hue, first = KNOWN[name]
    preset, comma, _ = rest.partition(",")
    try:
        presets = list(registry.registry()[name]["presets"])
    except (TidegateError, KeyError):
        presets = []
    if not rest or (preset in presets and not comma):
        return Look(hue, (first + (presets.index(preset) if rest else 0)) % len(DASHES))
    return Look(hue, 1 + zlib.crc32(controller.encode()) % (len(DASHES) - 1))


def looks(labels: Iterable[str], ran: Mapping[str, Collection[str]] | None = None) -> dict[str, Look]:
    """The looks of all controllers of one figure or page; their order does not matter.

    Those that come with tidegate have their places first, in order of the alphabet. Each looks as it does by itself,
    whatever it is compared with. Only where two would look the same does the later one take the next look that is free:
    another dash of its hue, then other hues.

    All others follow, in order of the alphabet, too. Each takes a hue that nobody has: the one that it has by itself if
    that is free, else the next of `OWN`, else any. Where no hue is free it takes the one with the fewest lines, and a
    dash that none of them has.

    Args:
        labels: The names in the figure.
        ran: The controllers that ran under each label, where that is known. A label that is no name of theirs looks
            as the first of them does, if all are of one scheme.

    >>> [looks(["mine", *others])["gcc"] == look("gcc") for others in (["gcc"], ["fixed", "gcc", "tfrc"])]
    [True, True]
    >>> looks(["GCC", "theirs"], {"GCC": ["gcc"], "theirs": ["nada"]}) == {"GCC": look("gcc"), "theirs": look("nada")}
    True
    >>> hues = [own.hue for own in looks(["gcc", "nada", "scream", "mine", "yours"]).values()]
    >>> len(set(hues)) == len(hues)
    True
    """
    given = list(dict.fromkeys(labels))
    controllers = {label: _controller(label, (ran or {}).get(label, ())) for label in given}

    def place(label: str) -> tuple[bool, bool, str, bool, str]:
        controller = controllers[label]
        short = _short(controller)
        # those without a setting first, and those that are called what they are: they keep what is theirs
        return not _is_known(controller), ":" in short, short, label != controller, label

    placed: dict[str, Look] = {}
    for label in sorted(given, key=place):
        own = look(controllers[label])
        free = [other for other in _next(own) if other not in placed.values()] or [own]
        if not _is_known(controllers[label]):
            lines = Counter(other.hue for other in placed.values())
            free.sort(key=lambda other: (lines[other.hue], other.hue not in OWN))
        placed[label] = free[0]
    return {label: placed[label] for label in given}


def _controller(label: str, ran: Collection[str]) -> str:
    """The controller behind a label: the label itself, which has its settings, too, or another one that ran."""
    schemes = {_scheme(controller) for controller in ran}
    return label if len(schemes) != 1 or _scheme(label) in schemes else min(ran)


def _scheme(controller: str) -> tuple[bool, str]:
    """Whether a controller comes with tidegate, and its name without preset and settings."""
    return _is_known(controller), _short(controller).partition(":")[0]


def _is_known(controller: str) -> bool:
    return controller.partition(":")[0] in KNOWN


def _short(controller: str) -> str:
    """A name without the place of the file of one's own controller.

    >>> [_short(name) for name in ("python:a/mine.py:Mine:k=2", "onnx:models/m.onnx", "Mine:k=2")]
    ['Mine:k=2', 'onnx:m.onnx', 'Mine:k=2']
    """
    return controller if _is_known(controller) else re.sub(r"^python:[^:]*:|[^:,=]*[/\\]", "", controller)


def _next(own: Look) -> Iterator[Look]:
    for hue in range(len(HUES)):
        for dash in range(len(DASHES)):
            yield Look((own.hue + hue) % len(HUES), (own.dash + dash) % len(DASHES))


def colours(labels: Iterable[str]) -> dict[str, str]:
    """Colours that are apart, for the few lines of a figure whose labels are no controllers, or not only.

    A label of a known controller has its hue if that is free; all else takes the first free one, in order.

    >>> colours(["fixed", "gcc", "mine"])
    {'fixed': '#d55e00', 'gcc': '#0072b2', 'mine': '#009e73'}
    """
    given = list(dict.fromkeys(labels))
    taken: dict[str, int] = {}
    for label in given:
        hue, _ = KNOWN.get(label.partition(":")[0], (None, 0))
        if hue is not None and hue not in taken.values():
            taken[label] = hue
    for label in given:
        if label not in taken:
            free = (hue for hue in range(len(HUES)) if hue not in taken.values())
            taken[label] = next(free, len(taken) % len(HUES))
    return {label: HUES[taken[label]] for label in given}


#: Past this ratio between the largest and the smallest value, shades go by ratios.
_SHADES_BY_RATIO = 30.0
#: The darkest shade by which direction is better; none is of a controller's line.
_DARKEST: dict[str, tuple[int, int, int]] = {
    "higher": (0x0B, 0x3C, 0x6F), "lower": (0x8A, 0x2D, 0x04), "neither": (0x33, 0x3A, 0x45),
}  # fmt: skip
_LIGHTEST = (0xF4, 0xF6, 0xF9)
_LUMA = (0.299, 0.587, 0.114)


def shade(value: float, low: float, top: float, better: str) -> tuple[str, str]:
    """The colour of a cell of a map whose values reach from `low` to `top`, and a colour to write on it.

    What is large is dark: blue where that is good, brown where it is bad.

    >>> shade(1.0, 1.0, 2.0, "higher"), shade(2.0, 1.0, 2.0, "higher")
    (('#f4f6f9', '#1b2028'), ('#0b3c6f', '#ffffff'))
    """
    if not math.isfinite(value):
        return "#ffffff", "#1b2028"
    if low > 0 and top / low > _SHADES_BY_RATIO:
        value, low, top = math.log(value), math.log(low), math.log(top)
    part = (value - low) / (top - low) if top > low else 0.5
    mixed = [round(a + part * (b - a)) for a, b in zip(_LIGHTEST, _DARKEST[better], strict=True)]
    light = sum(share * one for share, one in zip(_LUMA, mixed, strict=True))
    return "#" + "".join(f"{one:02x}" for one in mixed), "#1b2028" if light > 140 else "#ffffff"  # noqa: PLR2004
