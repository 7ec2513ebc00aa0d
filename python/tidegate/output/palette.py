"""Colours, dashes and markers of controllers, in all figures and reports.

The hues are those of Okabe and Ito ("Color Universal Design", 2008), which people with any of the
common colour-vision deficiencies can tell apart. Black and yellow are left out: black is the axes'
colour, and yellow lines vanish on white. Dashes and markers are a second channel: eight hues are too few for all
controllers, and papers are also printed without colour.
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

#: Hues that users' own controllers prefer: none is that of gcc, fixed, nada or scream, so that such a controller mostly
#: keeps its hue from figure to figure.
OWN: tuple[int, ...] = (2, 4, 5, 6)

#: Cross traffic, capacity and other things that are not the subject.
MUTED = "#8a8f98"
CAPACITY_FILL = "#e9ecf1"
CAPACITY_EDGE = "#a9b0bc"


@dataclass(frozen=True)
class Look:
    """The look of one controller's line."""

    hue: int
    dash: int = 0

    @property
    def colour(self) -> str:
        """The colour on a light page."""
        return HUES[self.hue]

    @property
    def on_dark(self) -> str:
        """The colour on a dark page."""
        return HUES_ON_DARK[self.hue]

    @property
    def linestyle(self) -> Literal["-"] | tuple[float, tuple[float, ...]]:
        """The dash as matplotlib's line style."""
        return (0, DASHES[self.dash]) if DASHES[self.dash] else "-"

    @property
    def dashes(self) -> tuple[float, ...]:
        """Lengths of strokes and gaps, in widths of the line; empty for a solid line."""
        return DASHES[self.dash]

    @property
    def marker(self) -> str:
        """The marker, by matplotlib's name."""
        return MARKERS[self.dash]


def look(controller: str) -> Look:
    """The look of a controller by itself, which depends only on its name.

    The name may have a preset or settings (`gcc:draft-02`). All variants of an algorithm have its hue; each preset has
    a dash of its own. For a user's own controller the hash of its name decides, without the path of its file.

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
    """The looks of all controllers of one figure or page, whatever the order of the labels.

    Controllers that come with tidegate are placed first, in alphabetical order. Each looks the same in every
    comparison. Only where two would look alike does the later one take the next free look: another dash of its hue,
    then other hues.

    Users' own controllers follow, in alphabetical order. Each takes a free hue: the one that it has by itself, else the
    next of `OWN`, else any. Where no hue is free it takes the hue with the fewest lines, and a free dash.

    Of several labels under which the same controller ran, as the columns of a comparison of variants, the first keeps
    its look (or the label that is its name). The others take free hues after all other labels, in their order.

    Args:
        labels: The names in the figure.
        ran: The controllers that ran under each label, where known. A label that names none of them has the look of
            the first one, if all are of one scheme.

    >>> [looks(["mine", *names])["gcc"] == look("gcc") for names in (["gcc"], ["fixed", "gcc", "tfrc"])]
    [True, True]
    >>> looks(["GCC", "theirs"], {"GCC": ["gcc"], "theirs": ["nada"]}) == {"GCC": look("gcc"), "theirs": look("nada")}
    True
    >>> variants = looks(["as it is", "more buffer", "nada"], {"as it is": ["gcc"], "more buffer": ["gcc"]})
    >>> variants["as it is"] == look("gcc"), len({look.hue for look in variants.values()})
    (True, 3)
    >>> hues = [look.hue for look in looks(["gcc", "nada", "scream", "mine", "yours"]).values()]
    >>> len(set(hues)) == len(hues)
    True
    """
    distinct = list(dict.fromkeys(labels))
    controllers = {label: _controller(label, (ran or {}).get(label, ())) for label in distinct}

    # a label that is the controller's name goes before other labels of it
    named_first = sorted(distinct, key=lambda label: label != controllers[label])
    first_of = {controllers[label]: label for label in reversed(named_first)}
    further = [label for label in distinct if first_of[controllers[label]] != label]

    def priority(label: str) -> tuple[int, bool, bool, str, str]:
        controller = controllers[label]
        short = _short(controller)
        # first controllers without settings: these keep their own look
        place = further.index(label) + 1 if label in further else 0
        return place, not _is_known(controller), ":" in short, short, label

    placed: dict[str, Look] = {}
    for label in sorted(distinct, key=priority):
        preferred = look(controllers[label])
        free = [candidate for candidate in _candidates(preferred) if candidate not in placed.values()] or [preferred]
        if label in further or not _is_known(controllers[label]):
            lines = Counter(used.hue for used in placed.values())
            free.sort(key=lambda candidate: (lines[candidate.hue], candidate.hue not in OWN))
        placed[label] = free[0]
    return {label: placed[label] for label in distinct}


def _controller(label: str, ran: Collection[str]) -> str:
    """The controller behind a label: the label itself, which includes its settings, or the controller that ran."""
    schemes = {_scheme(controller) for controller in ran}
    return label if len(schemes) != 1 or _scheme(label) in schemes else min(ran)


def _scheme(controller: str) -> tuple[bool, str]:
    """Whether a controller comes with tidegate, and its name without preset and settings."""
    return _is_known(controller), _short(controller).partition(":")[0]


def _is_known(controller: str) -> bool:
    return controller.partition(":")[0] in KNOWN


def _short(controller: str) -> str:
    """A controller's name without the path of its file.

    >>> [_short(name) for name in ("python:a/mine.py:Mine:k=2", "onnx:models/m.onnx", "Mine:k=2")]
    ['Mine:k=2', 'onnx:m.onnx', 'Mine:k=2']
    """
    return controller if _is_known(controller) else re.sub(r"^python:[^:]*:|[^:,=]*[/\\]", "", controller)


def _candidates(preferred: Look) -> Iterator[Look]:
    """Yields all looks in the order in which they are tried: first the dashes of the preferred hue."""
    for hue in range(len(HUES)):
        for dash in range(len(DASHES)):
            yield Look((preferred.hue + hue) % len(HUES), (preferred.dash + dash) % len(DASHES))


def colours(labels: Iterable[str]) -> dict[str, str]:
    """Distinct colours for a figure with few lines whose labels are not all controllers.

    A label of a known controller has its hue if that is free; each further label takes the first free one.

    >>> colours(["fixed", "gcc", "mine"])
    {'fixed': '#d55e00', 'gcc': '#0072b2', 'mine': '#009e73'}
    """
    distinct = list(dict.fromkeys(labels))
    chosen: dict[str, int] = {}
    for label in distinct:
        hue, _ = KNOWN.get(label.partition(":")[0], (None, 0))
        if hue is not None and hue not in chosen.values():
            chosen[label] = hue
    for label in distinct:
        if label not in chosen:
            free = (hue for hue in range(len(HUES)) if hue not in chosen.values())
            chosen[label] = next(free, len(chosen) % len(HUES))
    return {label: HUES[chosen[label]] for label in distinct}


#: Above this ratio between the largest and the smallest value, shades are logarithmic.
_SHADES_BY_RATIO = 30.0
#: The darkest shade, by the direction that is better; no line of a controller has one of them.
_DARKEST: dict[str, tuple[int, int, int]] = {
    "higher": (0x0B, 0x3C, 0x6F), "lower": (0x8A, 0x2D, 0x04), "neither": (0x33, 0x3A, 0x45),
}  # fmt: skip
_LIGHTEST = (0xF4, 0xF6, 0xF9)
_LUMA = (0.299, 0.587, 0.114)


def shade(value: float, low: float, top: float, better: str) -> tuple[str, str]:
    """The background and text colour of a cell of a map whose values reach from `low` to `top`.

    Large values are dark: blue where they are good, brown where they are bad.

    >>> shade(1.0, 1.0, 2.0, "higher"), shade(2.0, 1.0, 2.0, "higher")
    (('#f4f6f9', '#1b2028'), ('#0b3c6f', '#ffffff'))
    """
    if not math.isfinite(value):
        return "#ffffff", "#1b2028"
    if low > 0 and top / low > _SHADES_BY_RATIO:
        value, low, top = math.log(value), math.log(low), math.log(top)
    part = (value - low) / (top - low) if top > low else 0.5
    mixed = [round(a + part * (b - a)) for a, b in zip(_LIGHTEST, _DARKEST[better], strict=True)]
    light = sum(share * channel for share, channel in zip(_LUMA, mixed, strict=True))
    return "#" + "".join(f"{channel:02x}" for channel in mixed), "#1b2028" if light > 140 else "#ffffff"  # noqa: PLR2004
