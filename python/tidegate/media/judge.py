"""How a run's video looked: each tick of the display as encoded beside as seen."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tidegate.media._decode import Pair, pairs
from tidegate.media._live import Take
from tidegate.media._received import Received, Sent, received, sent_by
from tidegate.media._screen import Schedule, captured_in_order, schedule, shown_in_order
from tidegate.output import csv
from tidegate.runs import Run, pool
from tidegate.video import vmaf as vmafs
from tidegate.video.clip import Clip, Picture, luma
from tidegate.video.codec.intra import black
from tidegate.video.measures import Floats, distortion, grades, psnr, ssim

_MOMENTS = 6
"""Parts of a run, of each of which the worst tick is kept in pictures."""
_MEASURED = (
    "t_s",
    "picture",
    "rate_bps",
    "psnr_encoded_db",
    "psnr_db",
    "psnr_own_db",
    "ssim_encoded",
    "ssim",
    "latency_ms",
)
_MEANS = (
    "psnr_db", "psnr_encoded_db", "psnr_own_db", "ssim", "ssim_encoded", "vmaf", "vmaf_encoded", "mos", "mos_encoded",
)  # fmt: skip
"""Columns whose means are metrics."""
_FREEZE_RATIO, _FREEZE_S = 3.0, 0.15
"""A gap of max(3 x mean, mean + 150 ms) is a freeze (W3C webrtc-stats, freezeCount)."""


@dataclass(frozen=True)
class Tick:
    """What is due and what is seen at one tick of the display."""

    t_s: float
    """The middle of the tick."""
    due: Pair
    """The picture that should be seen."""
    original: Picture
    """Before encoding."""
    screen: Picture
    """What is seen."""
    own: Picture
    """The original of what is seen; black where nothing has been seen yet."""
    age_s: float
    """How long ago what is seen was captured; NaN before the first picture."""


@dataclass(frozen=True)
class Moment:
    """A tick in pictures."""

    t_s: float
    sent: Picture
    """What was due, as it was encoded."""
    seen: Picture
    sent_db: float
    """Its PSNR as encoded."""
    seen_db: float


@dataclass(frozen=True)
class Judged:
    """The video of one flow in one run."""

    run: Run
    flow: str
    sent: Sent
    columns: Mapping[str, npt.NDArray[Any]]
    """One value a tick: `t_s`, `picture`, `rate_bps`, `psnr_encoded_db`, `psnr_db`, `psnr_own_db`, `ssim_encoded`,
    `ssim`, `latency_ms`, `vmaf_encoded`, `vmaf` (NaN between the frames that are scored), `mos_encoded`, `mos`."""
    summary: Mapping[str, float | None]
    """The metrics that begin with `picture_`; see [metrics][tidegate.results.metrics]."""
    moments: tuple[Moment, ...]
    """The worst tick of each part of the run, in order of time."""

    def judged_run(self) -> Run:
        """The run with these metrics among those of its flow."""
        return self.run.with_metrics(self.flow, self.summary)

    def to_csv(self) -> str:
        """The columns, a line a tick."""
        rows = zip(*(values.tolist() for values in self.columns.values()), strict=True)
        return csv.lines(self.columns, (map(_cell, row) for row in rows))


def _cell(value: float) -> str:
    if isinstance(value, int):
        return str(value)
    return "" if math.isnan(value) else f"{value:.6g}"


@dataclass(frozen=True)
class JudgeJob:
    """The judgement of a run as a piece of work for the pool."""

    run: Run
    sent: Sent
    flow: str | None = None
    vmaf_every: int = 5

    def __call__(self, tick: pool.Tick) -> Judged:
        """Decodes and judges."""
        got = received(self.run, self.sent, self.flow)
        return _Judge(self.run, got, self.vmaf_every).judge(tick)


def judge(
    run: Run,
    *,
    flow: str | None = None,
    vmaf_every: int = 5,
    progress: pool.Progress | None = None,
) -> Judged:
    """Judges the video of a flow; of the subject by default.

    Args:
        run: A run with real video and its packets: made with `--media`, or with the scenario of
            [with_clip][tidegate.media.feeding.with_clip] at the level packets.
        flow: Whose video.
        vmaf_every: VMAF of every so many frames; 0 for none, as without imageio-ffmpeg.
        progress: Told the fraction that is done.

    Raises:
        InputError: when the run has no real video or kept no packets, or its encoded clip is gone.
        RunError: when a program that is needed fails.
    """
    (done,) = pool.run_all([JudgeJob(run, sent_by(run, flow), flow, vmaf_every)], progress=progress)
    if isinstance(done, BaseException):
        raise done
    return done


def ticks(got: Received, plan: Schedule) -> Iterator[Tick]:
    """The display, tick by tick; holds the pictures between what is on and what is due, and no more."""
    form = got.sent.form
    captured = captured_in_order(got)
    screen = own = black(form.width, form.height)
    since = math.nan
    window: deque[tuple[Pair, Picture]] = deque()
    first = 0  # the picture at the window's left end
    passed = -1  # up to which picture all have had their time
    source = _with_originals(got)
    for t_s, on, due in zip(plan.t_s.tolist(), plan.on.tolist(), plan.due.tolist(), strict=True):
        while first + len(window) <= due:
            window.append(next(source))
        for at in range(passed + 1, on + 1):
            pair, original = window[at - first]
            if pair.seen is not None:
                screen, own, since = pair.seen, original, float(captured[at])
        passed = on
        pair, original = window[due - first]
        yield Tick(t_s, pair, original, screen, own, t_s - since)
        while first < on:
            window.popleft()
            first += 1


def _with_originals(got: Received) -> Iterator[tuple[Pair, Picture]]:
    originals = _Originals(got.sent.clip, got.sent.pictures)
    for pair in pairs(got):
        yield pair, originals.at(pair.number % got.sent.pictures)


class _Originals:
    """The clip's pictures in rising order, from the beginning again where it goes back."""

    def __init__(self, clip: Clip, count: int) -> None:
        self._clip, self._count = clip, count
        self._pictures = clip.pictures(count)
        self._next = 0

    def at(self, number: int) -> Picture:
        if number < self._next:
            self._pictures, self._next = self._clip.pictures(self._count), 0
        for picture in self._pictures:
            self._next += 1
            if self._next > number:
                return picture
        raise RuntimeError(f"{self._clip.name}: has no picture {number} any more")


class _Judge:
    """One pass over a run."""

    def __init__(self, run: Run, got: Received, vmaf_every: int) -> None:
        self.run, self.got = run, got
        self.every = vmaf_every if vmafs.program() else 0
        scenario = run.scenario
        self.warmup_s, self.end_s = scenario.warmup / 1e9, scenario.duration / 1e9
        fps = float(got.sent.clip.fps)
        self.plan = schedule(captured_in_order(got), shown_in_order(got), fps, self.end_s)
        self.rows: list[tuple[float, ...]] = []
        self.worst: list[tuple[tuple[float, float], Moment] | None] = [None] * _MOMENTS
        self.sent_quality: dict[int, tuple[float, float]] = {}

    def judge(self, tick: pool.Tick) -> Judged:
        form = self.got.sent.form
        scores: AbstractContextManager[vmafs.Vmaf | None] = nullcontext()
        if self.every:
            scores = vmafs.Vmaf(form.width, form.height, others=2, every=self.every)
        with scores as vmaf:
            for at, one in enumerate(ticks(self.got, self.plan)):
                self._take(at, one)
                if vmaf is not None:
                    vmaf.add(one.original, [one.due.sent, one.screen])
                tick(min(0.99, at / len(self.plan.t_s)))
        sent_vmaf, seen_vmaf = vmaf.scores if vmaf is not None else [np.full(len(self.rows), math.nan)] * 2
        names = [*_MEASURED, "due_captured_s"]
        table = np.array(self.rows, dtype=float).reshape(-1, len(names))
        columns: dict[str, npt.NDArray[Any]] = {name: table[:, k] for k, name in enumerate(names)}
        counted = columns.pop("due_captured_s") >= self.warmup_s
        columns["picture"] = columns["picture"].astype(np.int64)
        columns |= {"vmaf_encoded": sent_vmaf, "vmaf": seen_vmaf}
        columns["mos_encoded"] = grades(columns["psnr_encoded_db"])
        columns["mos"] = grades(columns["psnr_db"])
        moments = tuple(kept[1] for kept in self.worst if kept is not None)
        return Judged(self.run, self.got.flow, self.got.sent, columns, self._summary(columns, counted), moments)

    def _take(self, at: int, one: Tick) -> None:
        """Measures one tick."""
        number = one.due.number
        if number not in self.sent_quality:
            reference, sent = luma(one.original), luma(one.due.sent)
            self.sent_quality[number] = psnr(reference, sent), ssim(reference, sent)
        sent_db, sent_ssim = self.sent_quality[number]
        seen_db, seen_ssim = sent_db, sent_ssim
        if not np.array_equal(one.screen, one.due.sent):
            reference, seen = luma(one.original), luma(one.screen)
            seen_db, seen_ssim = psnr(reference, seen), ssim(reference, seen)
        own_db = seen_db if one.own is one.original else psnr(luma(one.own), luma(one.screen))
        rate = self.got.rate(one.due.frame)
        captured = float(self.got.captured_s[one.due.frame])
        row = (one.t_s, number, rate, sent_db, seen_db, own_db, sent_ssim, seen_ssim, one.age_s * 1e3, captured)
        self.rows.append(row)
        part = at * _MOMENTS // len(self.plan.t_s)
        badness = (sent_db - seen_db, -seen_db)
        kept = self.worst[part]
        if kept is None or badness > kept[0]:
            self.worst[part] = badness, Moment(one.t_s, one.due.sent, one.screen, sent_db, seen_db)

    def _summary(
        self, columns: Mapping[str, npt.NDArray[Any]], counted: npt.NDArray[np.bool_]
    ) -> dict[str, float | None]:
        def mean(name: str) -> float | None:
            values = columns[name][counted]
            known = values[np.isfinite(values)]
            return float(known.mean()) if len(known) else None

        latency = columns["latency_ms"][counted]
        latency = latency[np.isfinite(latency)]
        freezes = _freezes(columns["t_s"] - columns["latency_ms"] / 1e3, counted, float(self.got.sent.clip.fps))
        harm = self._harm()
        share = distortion(columns["mos"][counted], columns["mos_encoded"][counted])
        return {
            **{f"picture_{name}": mean(name) for name in _MEANS},
            "picture_distortion_in_interval": None if math.isnan(share) else share,
            "picture_latency_ms_mean": float(latency.mean()) if len(latency) else None,
            "picture_latency_ms_p95": float(np.quantile(latency, 0.95)) if len(latency) else None,
            "picture_freezes": float(len(freezes)),
            "picture_freeze_time_s": float(sum(freezes)),
            **harm,
        }

    def _harm(self) -> dict[str, float | None]:
        """How many frames had slices missing at their time, of those that were due before the end."""
        lost = damaged = left_out = count = 0
        for frame in range(len(self.got)):
            if self.got.captured_s[frame] < self.warmup_s or self.got.shown_s[frame] >= self.end_s:
                continue
            there = self.got.there(frame)
            count += 1
            if not len(there):
                left_out += 1
                continue
            lost += not there.any()
            damaged += bool(there.any() and not there.all())
        if not count:
            return dict.fromkeys(("picture_frames_lost", "picture_frames_damaged", "picture_frames_left_out"))
        return {
            "picture_frames_lost": lost / count,
            "picture_frames_damaged": damaged / count,
            "picture_frames_left_out": left_out / count if isinstance(self.got.sent, Take) else None,
        }


def _freezes(captured_s: Floats, counted: npt.NDArray[np.bool_], fps: float) -> list[float]:
    """Lengths in seconds for which the same picture stood too long, by when each tick's picture was captured."""
    mean = 1 / fps
    limit = max(_FREEZE_RATIO * mean, mean + _FREEZE_S)
    stamps = np.round(captured_s[counted] * 1e6)
    edges = np.flatnonzero(np.concatenate([[True], stamps[1:] != stamps[:-1], [True]])) if len(stamps) else np.zeros(1)
    lengths = np.diff(edges) / fps
    return [float(length) for length in lengths if length >= limit - 1e-9]
