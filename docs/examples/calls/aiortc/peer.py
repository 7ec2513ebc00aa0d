"""One end of a call of aiortc: A sends the clip, B receives it. See ../session.py for the environment."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict
from fractions import Fraction
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import av
from aiortc import (
    MediaStreamError,
    MediaStreamTrack,
    RTCConfiguration,
    RTCPeerConnection,
    RTCSessionDescription,
    rtcrtpsender,
)
from aiortc.codecs import vpx
from av.video.frame import PictureType
from end import End

CLOCK = Fraction(1, 90_000)
"""That of RTP timestamps of video."""


class Estimate:
    """What the receiver's REMB messages say, bit/s: aiortc hands that to its encoder, for itself alone."""

    def __init__(self) -> None:
        self.rate: int | None = None
        unpack = rtcrtpsender.unpack_remb_fci

        def noting(data: bytes) -> tuple[int, list[int]]:
            found: tuple[int, list[int]] = unpack(data)
            self.rate = found[0]
            return found

        rtcrtpsender.unpack_remb_fci = noting


class Film(MediaStreamTrack):
    """The clip over and over, at its own pace."""

    kind = "video"

    def __init__(self, end: End) -> None:
        super().__init__()
        self._end = end
        self._pictures = self._read()
        self._first: float | None = None

    def _read(self) -> Iterator[av.VideoFrame]:
        while True:
            with av.open(str(self._end.clip)) as file:
                self._interval = float(1 / file.streams.video[0].average_rate)
                yield from file.decode(video=0)

    async def recv(self) -> av.VideoFrame:
        """The next picture, when it is due."""
        picture = next(self._pictures)
        if self._first is None:
            self._first = time.monotonic()
        number = self._end.seen["frames"]
        self._end.seen["frames"] += 1
        await asyncio.sleep(max(0.0, self._first + number * self._interval - time.monotonic()))
        # each is a key picture in the file, and would be encoded as one
        picture.pict_type = PictureType.NONE
        picture.pts, picture.time_base = round(number * self._interval / CLOCK), CLOCK
        return picture


class Shown:
    """What comes out of the decoder. A freeze is what W3C's webrtc-stats calls one, over the 30 pictures before it."""

    def __init__(self) -> None:
        self.freezes, self.frozen_s = 0, 0.0
        self._last: float | None = None
        self._gaps: deque[float] = deque(maxlen=30)

    def picture(self) -> None:
        """One has been decoded."""
        now = time.monotonic()
        if self._last is not None:
            gap = now - self._last
            if self._gaps:
                mean = sum(self._gaps) / len(self._gaps)
                if gap >= max(3 * mean, mean + 0.15):
                    self.freezes += 1
                    self.frozen_s += gap
            self._gaps.append(gap)
        self._last = now


async def take(end: End, track: MediaStreamTrack, shown: Shown) -> None:
    """Receives until the track ends."""
    with suppress(MediaStreamError):
        while True:
            await track.recv()
            end.seen["frames"] += 1
            shown.picture()


async def describe(end: End, pc: RTCPeerConnection, name: str, description: RTCSessionDescription) -> None:
    """Sets our description, which then has all addresses, and writes it for the other end."""
    await pc.setLocalDescription(description)
    end.tell(name, {"type": pc.localDescription.type, "sdp": pc.localDescription.sdp})


async def hear(end: End, pc: RTCPeerConnection, name: str) -> None:
    """Waits for the other end's description and sets it."""
    while (said := end.told(name)) is None:
        if end.over:
            return
        await asyncio.sleep(0.02)
    await pc.setRemoteDescription(RTCSessionDescription(**said))


async def note(end: End, pc: RTCPeerConnection, estimate: Estimate, shown: Shown) -> None:
    """A line of statistics: aiortc's own getStats, and by its names what that leaves out."""
    report: list[dict[str, Any]] = [
        asdict(one) if not isinstance(one, dict) else one for one in (await pc.getStats()).values()
    ]
    if end.side == "A":
        report.append({"type": "candidate-pair", "nominated": True, "availableOutgoingBitrate": estimate.rate})
        report.append({"type": "media-source", "kind": "video", "frames": end.seen["frames"]})
    else:
        frames = {"framesDecoded": end.seen["frames"]}
        freezes = {"freezeCount": shown.freezes, "totalFreezesDuration": shown.frozen_s}
        for one in report:
            if one["type"] == "inbound-rtp":
                one.update(frames | freezes)
    spent = os.times()
    end.note(report, cpu_s=spent.user + spent.system)


async def call(end: End) -> None:
    """Calls until the session is over."""
    # aiortc sends 1.5 Mbit/s at most (MAX_BITRATE, codecs/vpx.py), which would limit the call instead of the link
    vpx.MAX_BITRATE = end.most
    estimate, shown = Estimate(), Shown()
    # without any servers: its default is one on the internet
    pc = RTCPeerConnection(RTCConfiguration(iceServers=[]))
    tasks: list[asyncio.Task[None]] = []

    @pc.on("connectionstatechange")
    def met() -> None:
        if pc.connectionState == "connected" and end.seen["connected_s"] is None:
            end.seen["connected_s"] = end.seconds()

    @pc.on("track")
    def coming(track: MediaStreamTrack) -> None:
        tasks.append(asyncio.create_task(take(end, track, shown)))

    if end.side == "A":
        pc.addTransceiver(Film(end), "sendonly")
        await describe(end, pc, "offer.json", await pc.createOffer())
        await hear(end, pc, "answer.json")
    else:
        await hear(end, pc, "offer.json")
        await describe(end, pc, "answer.json", await pc.createAnswer())
    due = end.seconds()
    while not end.over:
        due += 1
        while not end.over and (left := due - end.seconds()) > 0:  # noqa: ASYNC110  (a signal ends it)
            await asyncio.sleep(min(left, 0.05))
        await note(end, pc, estimate, shown)
    with suppress(TimeoutError):
        await asyncio.wait_for(pc.close(), 3)


if __name__ == "__main__":
    asyncio.run(call(End()))
