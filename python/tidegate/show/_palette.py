"""How lines of controllers look, on every figure and in every report.

The hues are those of Okabe and Ito ("Color Universal Design", 2008), which people with any of the
common colour-vision deficiencies can tell apart. Black and yellow are left out: black is the axes'
colour, and yellow lines vanish on white. A dash, and for points a marker, is a second channel: eight hues do not
reach for all controllers, and nobody prints in colour only.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterable, Iterator
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
    "#4ba6e8",
    "#ff8b4d",
    "#35c99b",
    "#e8a6cb",
    "#f2bb4a",
    "#9bd6fa",
    "#c39b8f",
    "#b5bac2",
)

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


def look(label: str) -> Look:
    """How a controller looks by itself: it depends on nothing but its label.

    A label is a controller's name with an optional preset or settings (`gcc:draft-02`). All of one algorithm have its
    hue, presets a dash each; others have what the hash of their label gives.

    >>> look("gcc").colour, look("gcc:draft-02").colour, look("gcc:draft-02").dash
    ('#0072b2', '#0072b2', 2)
    """
    name, _, rest = label.partition(":")
    number = zlib.crc32(label.encode())
    if name not in KNOWN:
        return Look(number % len(HUES), 1 + number // len(HUES) % (len(DASHES) - 1))
    hue, first = KNOWN[name]
    preset, comma, _ = rest.partition(",")
    try:
        presets = list(registry.registry()[name]["presets"])
    except (TidegateError, KeyError):
        presets = []
    if not rest or (preset in presets and not comma):
        return Look(hue, (first + (presets.index(preset) if rest else 0)) % len(DASHES))
    return Look(hue, 1 + number % (len(DASHES) - 1))


def looks(labels: Iterable[str]) -> dict[str, Look]:
    """How the controllers of one figure look: each as by itself, whatever it is compared with.

    Only where two would look the same does the one whose label comes later in the alphabet take the next look that is
    free: another dash of its hue, then other hues.

    >>> [looks(["mine", *others])["gcc"] == look("gcc") for others in (["gcc"], ["fixed", "gcc", "tfrc"])]
    [True, True]
    """
    given = list(dict.fromkeys(labels))
    found: dict[str, Look] = {}
    # those without a setting first: they keep what is theirs
    for label in sorted(given, key=lambda label: (label.partition(":")[0] not in KNOWN, ":" in label, label)):
        own = look(label)
        found[label] = next((one for one in _next(own) if one not in found.values()), own)
    return {label: found[label] for label in given}


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
