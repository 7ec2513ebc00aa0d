"""Judges the video of a run: at each tick of the display, the picture as encoded and as seen."""

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
"""Parts of a run; the worst tick of each is kept with its pictures."""
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
    """The picture that is due and the one that is seen, at one tick of the display."""

    t_s: float
    """The middle of the tick."""
    due: Pair
    """The picture that should be seen."""
    original: Picture
    """Before encoding."""
    screen: Picture
    """The picture on the screen."""
    screen_original: Picture
    """The original of the picture on the screen; black before the first picture."""
    age_s: float
    """Time since the picture on the screen was captured, s; NaN before the first picture."""


@dataclass(frozen=True)
class Moment:
    """A tick of the display with its pictures."""

    t_s: float
    sent: Picture
    """The picture that was due, as it was encoded."""
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
        """The columns as CSV, one line a tick."""
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
        flow: Name of the flow.
        vmaf_every: VMAF of every n-th frame; 0 for none, as without imageio-ffmpeg.
        progress: Called with the fraction that is done.

    Raises:
        InputError: when the run has no real video or kept no packets, or its encoded clip is gone.
        RunError: when the ffmpeg program fails.
    """
    (done,) = pool.run_all([JudgeJob(run, sent_by(run, flow), flow, vmaf_every)], progress=progress)
    if isinstance(done, BaseException):
        raise done
    return done


def ticks(got: Received, plan: Schedule) -> Iterator[Tick]:
    """The display, tick by tick; holds only the pictures from the one on the screen to the one that is due."""
    form = got.sent.form
    captured = captured_in_order(got)
    screen = screen_original = black(form.width, form.height)
    since = math.nan
    window: deque[tuple[Pair, Picture]] = deque()
    first = 0  # the oldest picture in the window
    passed = -1  # the last picture whose time has come
    source = _with_originals(got)
    for t_s, on, due in zip(plan.t_s.tolist(), plan.on.tolist(), plan.due.tolist(), strict=True):
        while first + len(window) <= due:
            window.append(next(source))
        for picture in range(passed + 1, on + 1):
            pair, original = window[picture - first]
            if pair.decoded is not None:
                screen, screen_original, since = pair.decoded, original, float(captured[picture])
        passed = on
        pair, original = window[due - first]
        yield Tick(t_s, pair, original, screen, screen_original, t_s - since)
        while first < on:
            window.popleft()
            first += 1


def _with_originals(got: Received) -> Iterator[tuple[Pair, Picture]]:
    originals = _Originals(got.sent.clip, got.sent.pictures)
    for pair in pairs(got):
        yield pair, originals.picture(pair.number % got.sent.pictures)


class _Originals:
    """The clip's pictures in rising order; it starts from the beginning again where a number is lower."""

    def __init__(self, clip: Clip, count: int) -> None:
        self._clip, self._count = clip, count
        self._pictures = clip.pictures(count)
        self._next = 0

    def picture(self, number: int) -> Picture:
        if number < self._next:
            self._pictures, self._next = self._clip.pictures(self._count), 0
        for picture in self._pictures:
            self._next += 1
            if self._next > number:
                return picture
        raise RuntimeError(f"{self._clip.name}: the clip no longer has a picture {number}")


class _Judge:
    """One pass over a run."""

    def __init__(self, run: Run, got: Received, vmaf_every: int) -> None:
        self.run, self.got = run, got
        self.vmaf_every = vmaf_every if vmafs.program() else 0
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
        if self.vmaf_every:
            scores = vmafs.Vmaf(form.width, form.height, distorted=2, subsample=self.vmaf_every)
        with scores as vmaf:
            for number, display_tick in enumerate(ticks(self.got, self.plan)):
                self._take(number, display_tick)
                if vmaf is not None:
                    vmaf.add(display_tick.original, [display_tick.due.sent, display_tick.screen])
                tick(min(0.99, number / len(self.plan.t_s)))
        sent_vmaf, seen_vmaf = vmaf.scores if vmaf is not None else [np.full(len(self.rows), math.nan)] * 2
        names = [*_MEASURED, "due_captured_s"]
        table = np.array(self.rows, dtype=float).reshape(-1, len(names))
        columns: dict[str, npt.NDArray[Any]] = {name: table[:, k] for k, name in enumerate(names)}
        counted = columns.pop("due_captured_s") >= self.warmup_s
        columns["picture"] = columns["picture"].astype(np.int64)
        columns |= {"vmaf_encoded": sent_vmaf, "vmaf": seen_vmaf}
        columns["mos_encoded"] = grades(columns["psnr_encoded_db"])
        columns["mos"] = grades(columns["psnr_db"])
        moments = tuple(worst[1] for worst in self.worst if worst is not None)
        return Judged(self.run, self.got.flow, self.got.sent, columns, self._summary(columns, counted), moments)

    def _take(self, position: int, tick: Tick) -> None:
        """Measures one tick."""
        number = tick.due.number
        if number not in self.sent_quality:
            reference, sent = luma(tick.original), luma(tick.due.sent)
            self.sent_quality[number] = psnr(reference, sent), ssim(reference, sent)
        sent_db, sent_ssim = self.sent_quality[number]
        seen_db, seen_ssim = sent_db, sent_ssim
        if not np.array_equal(tick.screen, tick.due.sent):
            reference, displayed = luma(tick.original), luma(tick.screen)
            seen_db, seen_ssim = psnr(reference, displayed), ssim(reference, displayed)
        own_db = (
            seen_db if tick.screen_original is tick.original else psnr(luma(tick.screen_original), luma(tick.screen))
        )
        rate = self.got.rate(tick.due.frame)
        captured = float(self.got.captured_s[tick.due.frame])
        row = (tick.t_s, number, rate, sent_db, seen_db, own_db, sent_ssim, seen_ssim, tick.age_s * 1e3, captured)
        self.rows.append(row)
        part = position * _MOMENTS // len(self.plan.t_s)
        badness = (sent_db - seen_db, -seen_db)
        worst = self.worst[part]
        if worst is None or badness > worst[0]:
            self.worst[part] = badness, Moment(tick.t_s, tick.due.sent, tick.screen, sent_db, seen_db)

    def _summary(
        self, columns: Mapping[str, npt.NDArray[Any]], counted: npt.NDArray[np.bool_]
    ) -> dict[str, float | None]:
        def mean(name: str) -> float | None:
            values = columns[name][counted]
            finite = values[np.isfinite(values)]
            return float(finite.mean()) if len(finite) else None

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
        """Shares of the frames due before the end: lost (no slice in time), damaged (some slices missing), left out."""
        lost = damaged = left_out = count = 0
        for frame in range(len(self.got)):
            if self.got.captured_s[frame] < self.warmup_s or self.got.shown_s[frame] >= self.end_s:
                continue
            in_time = self.got.slices_in_time(frame)
            count += 1
            if not len(in_time):
                left_out += 1
                continue
            lost += not in_time.any()
            damaged += bool(in_time.any() and not in_time.all())
        if not count:
            return dict.fromkeys(("picture_frames_lost", "picture_frames_damaged", "picture_frames_left_out"))
        return {
            "picture_frames_lost": lost / count,
            "picture_frames_damaged": damaged / count,
            "picture_frames_left_out": left_out / count if isinstance(self.got.sent, Take) else None,
        }


def _freezes(captured_s: Floats, counted: npt.NDArray[np.bool_], fps: float) -> list[float]:
    """Lengths of freezes in seconds: ticks whose picture has the same time of capture for too long."""
    mean = 1 / fps
    limit = max(_FREEZE_RATIO * mean, mean + _FREEZE_S)
    stamps = np.round(captured_s[counted] * 1e6)
    edges = np.flatnonzero(np.concatenate([[True], stamps[1:] != stamps[:-1], [True]])) if len(stamps) else np.zeros(1)
    lengths = np.diff(edges) / fps
    return [float(length) for length in lengths if length >= limit - 1e-9]
