"""Figures 5 and 16 to 20 with the thesis's axes, and the settings that decide them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product

import numpy as np

from tidegate.paper import Drawing, Measure, Sheet
from tidegate.papers.hoang2017.calls import THESIS, UDP_RATE, Call, Pairs
from tidegate.papers.hoang2017.fairness import Shared
from tidegate.papers.hoang2017.variants import BY_PACKET, BY_WINDOW, RECOMMENDED

DECIDING = [*BY_PACKET.values(), *(variant for variant in BY_WINDOW.values() if variant is not THESIS)]
"""The variants of packet size and loss window, with the thesis's only once."""


def throughput(run: Shared) -> Drawing:
    """Figure 5."""
    sheet = Sheet("Figure 5", "Bottleneck 5 Mbit/s, 50 ms", x="Time (s)", y="Throughput (kbit/s)", ylim=(0, None))
    for flow, (times, rates) in run.rates.items():
        sheet.series(flow, times, rates / 1e3)
    return sheet.drawing("figure-05", "Rate received by the call and by five TCP connections, by second.")


def estimates(udp: Call, rrtcc: Call) -> Drawing:
    """Figure 16."""
    sheet = Sheet(
        "Figure 16", "Estimated bandwidths of the sender", x="Time (s)", y="Bandwidth (bit/s)", ylim=(0, None)
    )
    end = max(rrtcc.reports[-1], udp.reports[-1])
    drawn = rrtcc.steps < end
    sheet.series("Real bandwidth", [*rrtcc.steps[drawn], end], [*rrtcc.capacity[drawn], np.nan], step=True)
    for label, values in (("A_r", rrtcc.a_r), ("A_s", rrtcc.a_s), ("A", rrtcc.a)):
        if len(values) == len(rrtcc.reports):  # without a controller there are no estimates
            sheet.series(label, rrtcc.reports, values)
    sheet.series("A UDP", [0, end], [UDP_RATE, UDP_RATE])
    return sheet.drawing(
        "figure-16", "First seed of configuration 2. A is the minimum of A_s and A_r, and its line covers that one."
    )


def ratios(udp: Call, rrtcc: Call) -> Drawing:
    """Figure 17."""
    sheet = Sheet("Figure 17", "Loss ratio calculated by the sender", x="Time (s)", y="Loss ratio", ylim=(0, 1))
    sheet.series("Loss ratio (RRTCC)", rrtcc.reports, rrtcc.ratios)
    sheet.series("Loss ratio (UDP)", udp.reports, udp.ratios)
    return sheet.drawing("figure-17", "First seed of configuration 2, as in figure 16.")


_BARS: Sequence[tuple[str, str, str, str, Mapping[str, Callable[[Call], float]]]] = (
    (
        "18",
        "Average loss ratio",
        "Loss ratio",
        "Means over seeds of the loss ratio that the sender calculates.",
        {"loss ratio": lambda call: call.ratio},
    ),
    (
        "19",
        "Average sending bitrate",
        "Bitrate (bit/s)",
        "Means over seeds.",
        {"sending rate": lambda call: call.rate},
    ),
    (
        "20",
        "Average sending bitrate and goodput",
        "Bitrate (bit/s)",
        "Means over seeds.",
        {"sending rate": lambda call: call.rate, "goodput": lambda call: call.goodput},
    ),
)
"""Figures 18 to 20: number, title, axis, caption, and the quantities of a call that they show."""


def by_configuration(calls: Mapping[str, Pairs]) -> Iterator[Drawing]:
    """Figures 18 to 20."""
    for number, title, axis, caption, quantities in _BARS:
        sheet = Sheet(f"Figure {number}", title, x="Network configuration (table 9)", y=axis)
        for (label, take), (index, sender) in product(quantities.items(), ((1, "RRTCC"), (0, "UDP"))):
            values = {name: Measure.of([take(pair[index]) for pair in pairs]) for name, pairs in calls.items()}
            sheet.bars(f"{sender} {label}", values)
        yield sheet.drawing(f"figure-{number}", caption)


def _scan(sheet: Sheet, seeds: Sequence[Pairs], x: Sequence[float]) -> Sheet:
    for index, label in ((1, "RRTCC"), (0, "UDP")):
        sheet.series(label, x, np.array([[pair[index].ratio for pair in pairs] for pairs in seeds]).T)
    return sheet


def by_packet(variants: Mapping[str, Pairs]) -> Drawing:
    """Loss ratio by packet size."""
    title, axis = "Loss ratio by packet size", "Size of a packet (kB)"
    sheet = Sheet("section 4.1", title, axis, "Loss ratio", xlog=True, ylim=(0, None))
    _scan(sheet, [variants[variant.name] for variant in BY_PACKET.values()], [size * 1e-3 for size in BY_PACKET])
    return sheet.drawing(
        "by-packet",
        "1000 packets of 1.5 kB are sent before the first report; larger packets leave time to react.",
    )


def by_window(variants: Mapping[str, Pairs]) -> Drawing:
    """Loss ratio by loss window."""
    title, axis = "Loss ratio by loss window (RTCP_limit)", "Loss window (packets)"
    sheet = Sheet("section 3.4.3.1", title, axis, "Loss ratio", xlog=True, ylim=(0, None))
    _scan(sheet, [variants[variant.name] for variant in BY_WINDOW.values()], list(BY_WINDOW))
    return sheet.drawing("by-window", "Configuration 2, packets of 24 kB.")


def by_controller(variants: Mapping[str, Pairs]) -> Drawing:
    """Loss ratios with the thesis's values, with gcc-02's, and with the second placement."""
    sheet = Sheet("section 5.2", "Values and placements with the same seeds", x="", y="Loss ratio", ylim=(0, None))
    names = {variant.short: variants[variant.name] for variant in RECOMMENDED}
    for index, label in ((1, "RRTCC"), (0, "UDP")):
        sheet.bars(label, {short: Measure.of([pair[index].ratio for pair in pairs]) for short, pairs in names.items()})
    return sheet.drawing(
        "by-controller", "Configuration 2. At receiver: second placement, delay-based part at the receiver."
    )
