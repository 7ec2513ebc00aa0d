"""Real video in a comparison: encoding, runs, judging, and files with figures and tables."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

from tidegate._files import file_names
from tidegate.media import _figures as figures
from tidegate.media._received import Sent, sent_by
from tidegate.media.feeding import with_clip, with_encoder
from tidegate.media.judge import Judged, JudgeJob
from tidegate.runs import Run, pool
from tidegate.scenario import Scenario
from tidegate.video import openh264
from tidegate.video.settings import Settings

_ENCODED, _RUN = 0.5, 0.55
"""Fraction of the work that is done after encoding, and after the runs, as measured with a new clip; for progress."""

SHEET, QUALITY = "contact-sheet.png", "quality.png"
"""Names of the files with pictures."""


class Chain:
    """The steps from a scenario to judged runs, with one progress for all."""

    def __init__(self, media: str, *, workers: int | None = None, progress: pool.Progress | None = None) -> None:
        """Parses the value of `--media`."""
        self._settings = Settings.parse(media)
        self._workers = workers
        self._progress = progress
        self._sent: Sent | None = None

    def feed(self, scenario: Scenario) -> Scenario:
        """The scenario with the clip, which is encoded unless it is in the cache or the encoder is in the loop."""
        if self._settings.codec == openh264.NAME:
            return with_encoder(scenario, self._settings)
        progress = _part(self._progress, 0, _ENCODED)
        fed, self._sent = with_clip(scenario, self._settings, workers=self._workers, progress=progress)
        return fed

    @property
    def running(self) -> pool.Progress | None:
        """Progress of the runs, as a part of the whole; None if no progress is wanted."""
        return _part(self._progress, _ENCODED, _RUN)

    def judge(self, runs: Sequence[Run]) -> list[Judged]:
        """Judges the video of the runs' subjects.

        Raises:
            InputError: when a subject sent no video.
        """
        vmaf_every = self._settings.vmaf_every
        jobs = [JudgeJob(run, self._sent or sent_by(run), vmaf_every=vmaf_every) for run in runs]
        done = pool.run_all(jobs, workers=self._workers, progress=_part(self._progress, _RUN, 1))
        return [result for result in done if isinstance(result, Judged)]


def _part(progress: pool.Progress | None, begin: float, end: float) -> pool.Progress | None:
    if progress is None:
        return None
    tell = progress
    return lambda fraction: tell(begin + (end - begin) * fraction)


def files(judged: Mapping[str, Sequence[Judged]]) -> dict[str, bytes]:
    """Files beside a comparison, by name: figures of the first seed of each controller, and a table of each run."""
    firsts = {label: videos[0] for label, videos in judged.items()}
    names = file_names(judged)
    tables = {
        f"quality-{names[label]}-seed{video.run.seed}.csv": video.to_csv().encode()
        for label, videos in judged.items()
        for video in videos
    }
    return {QUALITY: _png(figures.quality(firsts)), SHEET: _png(figures.contact_sheet(firsts)), **tables}


def _png(figure: Any) -> bytes:
    out = io.BytesIO()
    figure.savefig(out, format="png")
    return out.getvalue()
