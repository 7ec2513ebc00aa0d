"""The document's network (its figure 2): three subnets, video from node 0 to node 4, TCP from node 1 to node 5.

The settings that the document does not state are fields of `Setting`, so that they can be varied.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tidegate import Flow, Link, Media, Scenario, Tcp

FRAMES = 2000
"""Frames of the video (figure 6)."""
FPS = 25
GROUP = 12
"""Frames from an I frame to the next (section 4)."""
END = "80s"
"""End of the video: 2000 frames."""
REPORTS = 5.0
"""Seconds between two receiver reports (section 3)."""

DEFAULT_GAP = "2.4ms"
"""The table's default gap, which section 3 has and does not print: a packet of 1200 bytes on the only link whose rate
limits anything, of 4 Mb/s. A sender that knows nothing of the network yet sends no faster than that."""
GAPS = ("0.096ms", "1ms", "2.4ms", "5ms", "9.6ms")
"""Default gaps that the document allows: from a packet on its sender's own link of 100 Mb/s, below which a gap is none,
to a packet at the video's rate of 1 Mb/s, above which the 80 s of video do not arrive in 80 s."""

_RECORDED = Path(__file__).parent / "frames"

SENDERS: Mapping[str, str] = {
    "none": "lookup_table:none",
    "equation": "lookup_table:equation,delay_source=simulator",
    "table": "lookup_table:table,delay_source=simulator",
}
"""The three senders of figure 3."""

OTHER_SENDERS: Mapping[str, str] = {
    "existing": "rrb-simd",
    "fixed": "fixed:1Mbps",
    "tfrc": "tfrc",
    "gcc": "gcc:libwebrtc-v1",
}
"""Other senders on this network; `existing` is reference [16], with which the document compares its own."""

CONTROLLERS: Mapping[str, str] = {**SENDERS, **OTHER_SENDERS}

LABELS: Mapping[str, str] = {
    "none": "no control",
    "equation": "equation only",
    "table": "with the table",
    "existing": "RRB-SIMD (as inferred)",
    "fixed": "fixed, 1 Mb/s",
    "tfrc": "TFRC",
    "gcc": "GCC",
}
"""Names of the senders in tables and figures."""


@dataclass(frozen=True)
class Setting:
    """Values of the settings that the document leaves open."""

    queue: int = 100
    """Packets in each queue: ns-3's default."""
    delays: tuple[str, str, str] = ("2ms", "2ms", "2ms")
    """One-way propagation delays of the three subnets: those of ns-3's tutorial."""
    segment: int = 536
    """Bytes of data in TCP's packets: ns-3's default."""
    algorithm: str = "newreno"
    """Congestion control of TCP: ns-3's default until release 3.31."""
    downloads: int = 1
    """Number of parallel TCP connections."""
    video: str = "1Mbps"
    """Rate of the video."""
    adapts: bool = False
    """Whether the encoder follows the controller; the document's video is a stored trace."""
    waits: str = "2s"
    """Longest queue of video at the sender, as time at the controller's target rate."""
    reports: str = f"{REPORTS:g}s"
    """Time between two receiver reports, before RFC 3550's randomisation."""
    default_gap: str = DEFAULT_GAP
    """Gap of the table before the first report, and while nothing is lost."""
    controller: str = ""
    """Settings that are added to those of the controller."""
    greedy: bool = False
    """Whether there is always a packet to send, so that the gaps alone determine the rate."""

    def but(self, **changes: Any) -> Setting:
        """The setting with some changes."""
        return replace(self, **changes)


FOUND = Setting()
"""Setting of all measures whose names give no other."""

TCP_HEADERS = 54
"""Bytes of PPP (2), IPv4 (20), TCP (20) and its timestamps option (12), as ns-3 sends them."""


def scenario(name: str, setting: Setting = FOUND) -> Scenario:
    """Scenario of the network with one of `CONTROLLERS` sending the video.

    Its runs have the video's frames in the table `frames`; `media.with_clip` replaces the recorded sizes by a real
    clip.
    """
    gap = f"default_gap={setting.default_gap}" if name == "table" else ""
    spec = ",".join(filter(None, (CONTROLLERS[name], gap, setting.controller)))
    first, middle, last = setting.delays
    queue = {"packets": setting.queue}
    tcp = Tcp(
        algorithm=setting.algorithm,
        recovery="rfc6675" if setting.algorithm == "cubic" else None,
        min_rto="1s",
        delayed_ack=True,
        hystart=False,
        options=False,
        receive_window="131072B",
        packet_size=f"{setting.segment + TCP_HEADERS}B",
    )
    return Scenario(
        name=f"lissah2019-{name}",
        source="Lissah, Mbise: Rate Adaptive Congestion Control Using Lookup Table Scheme (2019), figure 2",
        duration="85s",
        record="packets",
        links=[
            Link(name=f"{begin}-{end}", from_=begin, to=end, capacity=capacity, delay=delay, queue=queue)
            for begin, end, capacity, delay in (
                ("n0", "n2", "100Mbps", first),
                ("n1", "n2", "100Mbps", first),
                ("n2", "n3", "4Mbps", middle),
                ("n3", "n4", "100Mbps", last),
                ("n3", "n5", "100Mbps", last),
            )
        ],
        flows=[
            Flow(name="video", from_="n0", to="n4", stop=END, media=_media(spec, setting)),
            Flow(name="tcp", from_="n1", to="n5", stop=END, count=setting.downloads, tcp=tcp),
        ],
    )


def _media(spec: str, setting: Setting) -> Media:
    video: dict[str, Any] = {"source": "frames", "ladder": str(_RECORDED / "bikes_*.txt"), "skip": 0, "fps": FPS}
    video["below_min"] = "wait"  # a sender sends no more than its controller allows
    if setting.greedy:
        video = {"source": "greedy", "max": "100Mbps"}
    elif setting.adapts:
        video |= {"min": "150kbps", "max": "2.5Mbps"}
    else:
        video |= {"min": setting.video, "max": setting.video}
    # without a gap the document's senders pass each frame to their interface at once
    bound = {"max_rate": "100Mbps"} if spec.startswith("lookup_table") else {}
    return Media(
        controller=spec,
        video=video,
        feedback={"reports": setting.reports},
        repair="none",
        queue_limit=setting.waits,
        # packets have the sizes that the document states, as in ns-2
        marks=False,
        **bound,
    )
