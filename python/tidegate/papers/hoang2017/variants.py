"""Other readings of the thesis, and settings that decide its results: one change at a time, with the same seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tidegate.papers.hoang2017.calls import THESIS, Variant

PACKETS = (1_500, 3_000, 6_000, 12_000, 24_000, 36_000, 48_000)
"""Packet sizes in bytes; 1500 is the largest on an Ethernet."""

WINDOWS = (25, 50, 100, 200, 400)
"""Loss windows in packets."""


BY_PACKET: Mapping[int, Variant] = {
    size: THESIS if size == THESIS.packet else Variant(f"packet.{size}", f"packets of {size / 1e3:g} kB", packet=size)
    for size in PACKETS
}
BY_WINDOW: Mapping[int, Variant] = {
    packets: THESIS
    if packets == THESIS.window
    else Variant(f"window.{packets}", f"loss window of {packets} packets", window=packets)
    for packets in WINDOWS
}

_STATUS = "links.network.capacity.statuses"


def _split(first: str, second: str) -> dict[str, str]:
    return {f"{_STATUS}.cross-traffic-1.probability": first, f"{_STATUS}.cross-traffic-2.probability": second}


READINGS: Sequence[Variant] = (
    THESIS,
    Variant("gains.text", "K_u = 0.00018 and K_d = 0.01, as in the text", {"k_up": "0.00018", "k_down": "0.01"}),
    Variant(
        "window.time",
        "T of table 6 as a loss window of 0.5 s",
        {"loss_over": "time", "loss_interval": "500ms"},
    ),
    Variant("deviation", "delay with a variance of 0.001 s²", changes={"links.network.jitter.normal": "31.6ms"}),
    Variant("split.first", "25 % for cross-traffic 1, 0 % for 2", changes=_split("25%", "0%")),
    Variant("split.second", "0 % for cross-traffic 1, 25 % for 2", changes=_split("0%", "25%")),
    Variant("offered", "incoming rate measured over 0.5 s", changes={"links.network.capacity.rate_window": "500ms"}),
    Variant("back", "5 % of the reports lost", changes={"links.network.back.loss": "5%"}),
    Variant("late.1", "packets later than 1 ms counted as lost", {"late_after": "1ms"}),
    Variant("late.2", "packets later than 2 ms counted as lost", {"late_after": "2ms"}),
    Variant("late.3", "packets later than 3 ms counted as lost", {"late_after": "3ms"}),
    Variant("late.5", "packets later than 5 ms counted as lost", {"late_after": "5ms"}),
    Variant("beta", "beta 0.85, as gcc-02 recommends", {"beta": "0.85"}),
    Variant("often", "a report every 100 ms", changes={"flows.sender.media.feedback.interval": "100ms"}),
)
"""The thesis's choices and, one at a time, other readings of those that it leaves open."""

RECOMMENDED: Sequence[Variant] = (
    THESIS,
    Variant("gcc-02.3s", "gcc-02's values, a report every 3 s", controller="gcc:draft-02", brief="gcc-02, 3 s"),
    Variant(
        "gcc-02",
        "gcc-02's values, a report every 100 ms",
        controller="gcc:draft-02",
        changes={"flows.sender.media.feedback.interval": "100ms"},
        brief="gcc-02, 100 ms",
    ),
    Variant(
        "second", "the thesis's values, second placement", controller="gcc-remb:hoang2017", brief="thesis,\nat receiver"
    ),
    Variant(
        "second.gcc-02",
        "gcc-02's values, second placement",
        controller="gcc-remb:draft-02",
        brief="gcc-02,\nat receiver",
    ),
)
"""The thesis's values, gcc-02's recommended values, and the second placement, with the same seeds."""

ALL: Mapping[str, Variant] = {
    variant.name: variant for variant in (*READINGS, *BY_PACKET.values(), *BY_WINDOW.values(), *RECOMMENDED)
}
