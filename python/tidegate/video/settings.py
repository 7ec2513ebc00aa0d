"""The value of `--media`: a clip, and the settings of its encoding and judging."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from tidegate.errors import InputError, did_you_mean, located
from tidegate.units import show
from tidegate.video.clip import Clip, find, parse_size


def _whole(least: int, most: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not re.fullmatch(r"\d{1,6}", text) or not least <= int(text) <= most:
            raise InputError(f"found {show(text)}; expected a whole number from {least} to {most}")
        return int(text)

    return parse


def _share(text: str) -> float:
    if not re.fullmatch(r"[01]|0?\.\d{1,6}", text):
        raise InputError(f"found {show(text)}; expected a number from 0 to 1")
    return float(text)


def _setting(default: Any, parse: Callable[[str], Any], doc: str) -> Any:
    return field(default=default, metadata={"parse": parse, "doc": doc})


@dataclass(frozen=True)
class Settings:
    """A clip, and the settings of its encoding and judging.

    >>> Settings.parse("bikes:size=352x288,group=24").group
    24
    """

    clip: str
    """Name of a clip, or path of a video file."""
    size: tuple[int, int] | None = _setting(
        None, parse_size, "size of the pictures, WIDTHxHEIGHT; by default the clip's own"
    )
    complexity: float | None = _setting(None, _share, "complexity of the procedural clip, 0 to 1 (0.3)")
    codec: str | None = _setting(
        None, str, "encoder: x264 or intra, by default the better installed one; openh264: encoder in the loop"
    )
    group: int = _setting(
        12,
        _whole(0, 1000),
        "number of frames from one key frame to the next (12); 0, only openh264: key frames on request",
    )
    b_frames: int = _setting(
        0, _whole(0, 4), "number of B frames between two other frames (0); 2: IBBP as in EvalVid's examples"
    )
    rungs: int = _setting(12, _whole(1, 100), "number of encoded rates, from the sender's minimum to its maximum (12)")
    vmaf_every: int = _setting(5, _whole(0, 1000), "interval of frames with VMAF, in frames (5); 0: no VMAF")

    @classmethod
    def parse(cls, text: str) -> Settings:
        """Reads `CLIP` or `CLIP:setting=value,...`.

        Raises:
            InputError: names the wrong part, and what is expected.
        """
        match = re.fullmatch(r"(?P<clip>.+?)(?::(?P<rest>\w+=.*))?", text.strip())
        if match is None:
            raise InputError(f"--media: found {show(text)}; expected CLIP or CLIP:setting=value,...")
        parsers = {setting.name: setting.metadata["parse"] for setting in fields(cls) if setting.metadata}
        values: dict[str, Any] = {}
        for part in filter(None, (match["rest"] or "").split(",")):
            key, equals, value = part.partition("=")
            if key not in parsers or not equals:
                hint = did_you_mean(key, parsers) or f"; available: {', '.join(parsers)}"
                raise InputError(f"--media {match['clip']}: {show(key)} is not a setting{hint}")
            if key in values:
                raise InputError(f"--media {match['clip']}: {key} is given twice")
            with located(f"--media {match['clip']}: {key}"):
                values[key] = parsers[key](value)
        return cls(clip=match["clip"], **values)

    def open(self, base: Path | None = None) -> Clip:
        """The clip.

        Args:
            base: The folder that a relative path starts from; the working directory by default.

        Raises:
            InputError: when there is none, or it is not usable.
        """
        near = base / self.clip if base is not None else None
        name = str(near) if near is not None and near.is_file() else self.clip
        return find(name, size=self.size, complexity=self.complexity)

    def text(self) -> str:
        """Text that [parse][tidegate.video.settings.Settings.parse] turns into these settings.

        >>> Settings.parse("bikes:group=24,size=352x288").text()
        'bikes:size=352x288,group=24'
        """
        parts = []
        for setting in fields(self):
            value = getattr(self, setting.name)
            if setting.metadata and value != setting.default:
                parts.append(f"{setting.name}={'x'.join(map(str, value)) if isinstance(value, tuple) else value}")
        return f"{self.clip}:{','.join(parts)}" if parts else self.clip


def table() -> list[tuple[str, str]]:
    """Name and description of each setting."""
    return [(setting.name, setting.metadata["doc"]) for setting in fields(Settings) if setting.metadata]
