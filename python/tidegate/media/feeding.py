"""Scenarios whose media flows send a real clip instead of the frames of a video model."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from tidegate.errors import InputError
from tidegate.media.ladder import Ladder, encode
from tidegate.runs import pool
from tidegate.scenario import Scenario
from tidegate.scenario.media import Media
from tidegate.scenario.sources import EncoderVideo, Video
from tidegate.video import openh264
from tidegate.video.settings import Settings


def with_clip(
    scenario: Scenario,
    settings: Settings | str,
    *,
    workers: int | None = None,
    progress: pool.Progress | None = None,
) -> tuple[Scenario, Ladder]:
    """The scenario with a clip, encoded at a ladder of rates, as the video of every media flow that has video.

    Rates go from the least of the flows' `video.min` to the largest of their `video.max`; each flow keeps its own
    bounds, and frames come at the clip's rate.

    Args:
        scenario: At least one flow with video.
        settings: Clip and encoding, as `--media` takes them.
        workers: Number of encoders at once.
        progress: Called with the fraction of encoding that is done.

    Raises:
        InputError: when there is no video, or the clip is not usable.
        OutputError: when the cache of encoded clips cannot be written.
    """
    chosen = Settings.parse(settings) if isinstance(settings, str) else settings
    if chosen.codec == openh264.NAME:
        raise InputError(f"codec={openh264.NAME} encodes while a run goes on, and leaves no ladder: use with_encoder")
    flows = _with_video(scenario)
    bounds = [_bounds(media) for media in flows]
    clip = chosen.open()
    pauses = max(len(media.pauses) for media in flows)
    ladder = encode(
        chosen,
        # after a pause the rest of a group is left out
        frames=math.ceil(scenario.duration / 1e9 * clip.fps) + 1 + pauses * chosen.group,
        least=min(low for low, _ in bounds),
        most=max(high for _, high in bounds),
        payload=min(int(media.payload) for media in flows),
        workers=workers,
        progress=progress,
    )

    def video(media: Media) -> dict[str, Any]:
        low, high = _bounds(media)
        return {
            "source": "frames",
            "ladder": str(ladder.folder / "rung_*.txt"),
            "group": ladder.form.group,
            "min": f"{low}bps",
            "max": f"{high}bps",
            "fps": round(float(clip.fps), 3),
        }

    return _fed(scenario, video), ladder


def with_encoder(scenario: Scenario, settings: Settings | str) -> Scenario:
    """The scenario with a clip that an encoder in the loop encodes, as the video of every media flow that has video.

    Each flow keeps its own bounds, `video.min` and `video.max`, and frames come at the clip's rate.

    Args:
        scenario: At least one flow with video.
        settings: Clip and encoding, as `--media` takes them; the codec is openh264.

    Raises:
        InputError: when there is no video, the clip is not usable, or this build has no such encoder.
    """
    chosen = Settings.parse(settings) if isinstance(settings, str) else settings
    openh264.check(chosen)
    _with_video(scenario)
    if chosen.open().name != chosen.clip:
        chosen = replace(chosen, clip=str(Path(chosen.clip).expanduser().resolve()))

    def video(media: Media) -> dict[str, Any]:
        low, high = _bounds(media)
        return {"source": "encoder", "clip": chosen.text(), "min": f"{low}bps", "max": f"{high}bps"}

    return _fed(scenario, video)


def _with_video(scenario: Scenario) -> list[Media]:
    flows = [flow.media for flow in scenario.flows if flow.media is not None and flow.media.video is not False]
    if not flows:
        raise InputError(f"{scenario.name}: --media is for flows with video, and the scenario has none")
    return flows


def _fed(scenario: Scenario, video: Callable[[Media], dict[str, Any]]) -> Scenario:
    """The scenario with other video in its media flows."""
    data = scenario.to_dict()
    for flow, table in zip(scenario.flows, data["flows"], strict=True):
        if flow.media is not None and flow.media.video is not False:
            table["media"]["video"] = video(flow.media)
    return Scenario.from_dict(data, scenario.base)


def _bounds(media: Media) -> tuple[int, int]:
    video = media.video if isinstance(media.video, Video | EncoderVideo) else Video()
    # clips are encoded for 150 kbit/s at least, unless the scenario states less
    low = video.min if "min" in video.model_fields_set else Video().min
    return int(min(low, video.max)), int(video.max)
