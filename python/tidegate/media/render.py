"""Renders the viewer's screen as a video file that plays everywhere: MP4 with H.264."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tidegate._files import atomic, writable
from tidegate.errors import InputError
from tidegate.media._received import Sent, received, sent_by
from tidegate.media._screen import captured_in_order, schedule, shown_in_order
from tidegate.media.judge import ticks
from tidegate.runs import Run, pool
from tidegate.video import extra
from tidegate.video.clip import Picture, joined, planes
from tidegate.video.codec.intra import black

_STRIP = 24  # lines of the label above each picture
_CRF = "18"  # x264's constant quality: no loss that one sees


class _Viewer:
    """One run's display."""

    def __init__(self, run: Run) -> None:
        self.sent: Sent = sent_by(run)
        self._got = received(run, self.sent)
        fps = float(self.sent.clip.fps)
        ends = run.scenario.duration / 1e9
        self._plan = schedule(captured_in_order(self._got), shown_in_order(self._got), fps, ends)
        controller = run.metrics().get("controller") or ""
        self.label = f"{controller}, seed {run.seed}"
        self.start = round(float(self._plan.t_s[0]) * fps) if len(self._plan.t_s) else 0
        self.length = self.start + len(self._plan.t_s)

    def pictures(self, begin: int) -> Iterator[Picture]:
        """The screen at each tick since `begin`; black before the first picture."""
        form = self.sent.form
        last = black(form.width, form.height)
        for _ in range(begin, self.start):
            yield last
        for tick in ticks(self._got, self._plan):
            last = tick.screen
            yield last
        while True:
            yield last


def render(runs: Sequence[Run], path: str | Path, *, progress: pool.Progress | None = None) -> Path:
    """Writes the screens of the viewers of one run, or of two runs side by side.

    The pictures stand on the display's clock, so that freezes are seen as such.

    Args:
        runs: One or two runs with real video.
        path: The MP4 file; it is written completely or not at all.
        progress: Called with the fraction that is done.

    Raises:
        InputError: when there are not one or two runs, they have no real video, or they sent different clips.
        OutputError: when the file cannot be written.
    """
    extra.needs("av", "to write MP4")
    target = Path(path)
    if not 1 <= len(runs) <= 2:  # noqa: PLR2004
        raise InputError(f"found {len(runs)} runs; expected one, or two for a film side by side")
    if target.suffix.lower() != ".mp4":
        raise InputError(f"{target}: expected a name that ends in .mp4")
    viewers = [_Viewer(run) for run in runs]
    first = viewers[0].sent
    for viewer in viewers[1:]:
        if (viewer.sent.clip.fps, viewer.sent.form.height) != (first.clip.fps, first.form.height):
            raise InputError("the two runs sent clips of different size or frame rate; they do not fit side by side")
    begin, end = min(viewer.start for viewer in viewers), max(viewer.length for viewer in viewers)
    if begin == end:
        raise InputError("no picture was due for display in these runs, so a film would be empty")
    with writable(target), atomic(target) as making:
        _write(making, viewers, begin, end, progress or (lambda _: None))
    return target


def _write(path: Path, viewers: Sequence[_Viewer], begin: int, end: int, tell: Callable[[float], None]) -> None:
    import av

    strips = [_strip(viewer.label, viewer.sent.form.width) for viewer in viewers]
    lines = [viewer.pictures(begin) for viewer in viewers]
    with av.open(str(path), "w", format="mp4", options={"movflags": "faststart"}) as out:
        stream = out.add_stream("libx264", rate=viewers[0].sent.clip.fps, options={"crf": _CRF, "preset": "veryfast"})
        form = viewers[0].sent.form
        stream.width = sum(viewer.sent.form.width for viewer in viewers)
        stream.height = form.height + _STRIP
        stream.pix_fmt = "yuv420p"
        for number in range(end - begin):
            pictures = [_under(strip, next(line)) for strip, line in zip(strips, lines, strict=True)]
            out.mux(stream.encode(av.VideoFrame.from_ndarray(_beside(pictures), format="yuv420p")))
            tell(number / (end - begin))
        out.mux(stream.encode(None))


def _under(strip: Picture, picture: Picture) -> Picture:
    return joined([np.vstack(pair) for pair in zip(planes(strip), planes(picture), strict=True)])


def _beside(pictures: Sequence[Picture]) -> Picture:
    return joined([np.hstack(row) for row in zip(*map(planes, pictures), strict=True)])


def _strip(label: str, width: int) -> Picture:
    """A label, light on dark."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    dpi = 100
    figure = Figure(figsize=(width / dpi, _STRIP / dpi), dpi=dpi, facecolor="black")
    figure.text(0.02, 0.5, label, color="white", fontsize=9, va="center")
    canvas: Any = FigureCanvasAgg(figure)
    canvas.draw()
    grey: npt.NDArray[np.uint8] = np.asarray(canvas.buffer_rgba())[:_STRIP, :width, 0]
    out = black(width, _STRIP)
    out[:_STRIP] = 16 + grey.astype(np.uint16) * 219 // 255
    return out
