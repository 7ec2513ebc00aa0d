"""One colour for each controller, the same in every figure and report.

The hues are those of Okabe and Ito ("Color Universal Design", 2008), which people with any of the
common colour-vision deficiencies can tell apart. Black and yellow are left out: black is the axes'
colour, and yellow lines vanish on white.
"""

from __future__ import annotations

from collections.abc import Iterable

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

#: Colour index of the controllers that come with tidegate, so that GCC is blue on every sheet.
KNOWN: dict[str, int] = {"gcc": 0, "fixed": 1, "nada": 2, "scream": 3, "tfrc": 4, "sprout": 5}

#: Cross traffic, capacity and other things that are not the subject.
MUTED = "#8a8f98"
CAPACITY_FILL = "#e9ecf1"
CAPACITY_EDGE = "#a9b0bc"


def colours(controllers: Iterable[str]) -> dict[str, str]:
    """Gives each label its colour.

    A label is a controller's name with an optional preset or settings (``gcc:draft-02``). The first
    label of a known controller takes that controller's own colour; everything else takes the first
    free one, in order, so that the result depends on nothing but the labels.

    >>> colours(["fixed", "gcc", "mine"])
    {'fixed': '#d55e00', 'gcc': '#0072b2', 'mine': '#009e73'}
    """
    labels = list(dict.fromkeys(controllers))
    taken: dict[str, int] = {}
    for label in labels:
        index = KNOWN.get(label.partition(":")[0])
        if index is not None and index not in taken.values():
            taken[label] = index
    for label in labels:
        if label not in taken:
            free = (i for i in range(len(HUES)) if i not in taken.values())
            taken[label] = next(free, len(taken) % len(HUES))
    return {label: HUES[taken[label]] for label in labels}
