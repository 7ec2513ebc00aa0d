"""Calls in a loaded LTE network: what is run (slide "Simulation scenario"), and what is kept of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from tidegate.runs import Run
from tidegate.scenario import Scenario

Floats = npt.NDArray[np.float64]

CELLS = 21
"""7 sites with 3 cells each."""
CALL_S = 60.0
"""How long a call takes."""
FTP_BPS = 2e6
"""File transfer that is offered to each cell."""
FILES: Mapping[str, tuple[str, float]] = {"500 kB": ("500kB", 4e6), "500 kbit": ("62500B", 0.5e6)}
"""What "500kb" may mean: as a size, and in bits."""


@dataclass(frozen=True)
class Caller:
    """Who calls."""

    label: str
    """In figures and tables."""
    controller: str
    """As the command line has it."""
    changes: Mapping[str, Any] = field(default_factory=dict)
    """Further keys of the scenario."""

    @property
    def keys(self) -> Mapping[str, Any]:
        """Keys of the shipped scenarios, whose flow is called `call`."""
        return {
            "flows.call.media.controller": self.controller,
            "flows.call.media.video": VIDEO,
            # packets as Sprout's video calls had them: without what browsers mark frames with
            "flows.call.media.marks": False,
            **self.changes,
        }

    def under(self, keys: Mapping[str, Any]) -> Caller:
        """The same where other keys hold, unless it has its own."""
        return replace(self, changes={**keys, **self.changes})


VIDEO: Mapping[str, Any] = {"min": "200kbps", "max": "1.5Mbps", "burst": "1B"}
"""RFC 8593's encoder (2019) without its burst of 13.5 kB at each change of the rate, which is not in the slides."""
BURSTS: Mapping[str, Any] = {"flows.call.media.video": {"min": "200kbps", "max": "1.5Mbps"}}
"""The same with it."""
EQUAL: Mapping[str, Any] = {"flows.call.media.video": {"source": "ideal", "min": "200kbps", "max": "1.5Mbps"}}
"""An encoder whose frames are all of the size that its rate asks for."""


def _constant(rate: str) -> Mapping[str, Any]:
    """An encoder that stays at a rate, and is sent as it comes: the pacer has room for its largest frames."""
    return {"flows.call.media.max_rate": "6Mbps", "flows.call.media.video": {**VIDEO, "min": rate, "max": rate}}


CALLERS: Mapping[str, Caller] = {
    "sprout": Caller("Sprout", "sprout"),
    "aware": Caller("Sprout, aware", "sprout:aware"),
    # neither of 2013 nor of today: the newest preset that, as the deck's callers, does not probe
    "gcc": Caller("GCC", "gcc:libwebrtc-v1"),
    "tfrc": Caller("TFRC", "tfrc"),
    "most": Caller("fixed, 1.5 Mb/s", "fixed:6Mbps", _constant("1.5Mbps")),
    "least": Caller("fixed, 0.2 Mb/s", "fixed:6Mbps", _constant("200kbps")),
}
"""By the name in measures. The last one shows what delay the network has for whoever sends the least."""

WARMUP_S = 60
"""When the first calls end, and as many are there as there will be on average."""
SEEN_S = 20.0
"""How much of a call must be after the warm-up for it to count."""


@dataclass(frozen=True)
class Cell:
    """One run of the network."""

    caller: Caller
    load: float
    """Calls in each cell on average."""
    case: int = 1
    """Of 3GPP."""
    file: str = "500 kB"
    """Of `FILES`."""
    end_s: int = 100
    """How long it runs."""

    @property
    def scenario(self) -> Scenario:
        """The shipped one with these settings."""
        size, bits = FILES[self.file]
        arrivals, files = self.load * CELLS / CALL_S, FTP_BPS * CELLS / bits
        return _shipped().with_changes(
            {
                "duration": f"{self.end_s}s",
                "warmup": f"{WARMUP_S}s",
                "record": "series",
                "bin": "1s",
                "lte.case": self.case,
                "lte.users.caller.arrival.rate": f"{arrivals:.6f}/s",
                "lte.users.downloader.arrival.rate": f"{files:.6f}/s",
                "flows.download.tcp.workload.file": size,
                **self.caller.keys,
            }
        )


@cache
def _shipped() -> Scenario:
    return Scenario.load("lte-cell")


@dataclass(frozen=True)
class Calls:
    """What the calls of a run came to; arrays have an entry for each that counts."""

    rate: Floats
    """Mean rate that was sent, bit/s, headers included."""
    variation: Floats
    """Coefficient of variation of the rate of each second, over the call's time."""
    steps: Floats
    """Mean change of the rate from one second to the next, of its mean: a slow rise does not count."""
    network: Floats
    """Mean delay from the wire to arrival, ms."""
    waiting: Floats
    """Mean time that a packet waited at its sender, ms."""
    late: Floats
    """95 % quantile of the delay from the wire to arrival, ms."""
    loss: Floats
    """Share of packets lost."""
    frozen: Floats
    """Share of the time frozen."""
    files_s: float
    """Mean time that a file took."""
    digest: str

    @property
    def spread(self) -> float:
        """Coefficient of variation over users of their mean rates."""
        return float(self.rate.std() / self.rate.mean())

    @classmethod
    def of(cls, run: Run) -> Calls:
        """Of a run."""
        end = float(run.scenario.duration.seconds)
        flows = run.table("flows")
        stays = {
            name: (max(begin, WARMUP_S), min(stop, end))
            for name, begin, stop in zip(
                flows.to_numpy("flow"), flows.to_numpy("start_s"), flows.to_numpy("stop_s"), strict=True
            )
        }
        metrics = {one["flow"]: one for one in run.summary["flows"] if one["kind"] == "media"}
        series = _series(run)
        files = [one["flow"] for one in run.summary["flows"] if one["kind"] == "tcp"]
        seen = [name for name in metrics if stays[name][1] - stays[name][0] >= SEEN_S]

        def column(name: str) -> Floats:
            return np.array([np.nan if metrics[one][name] is None else metrics[one][name] for one in seen], dtype=float)

        variation, steps = np.transpose([_unrest(*series[one][:2], *stays[one]) for one in seen])
        long = np.array([stays[one][1] - stays[one][0] for one in seen])
        return cls(
            rate=column("sending_rate_bps"),
            variation=variation,
            steps=steps,
            network=column("one_way_delay_ms_mean"),
            waiting=column("sender_delay_ms_mean"),
            late=column("one_way_delay_ms_p95"),
            loss=column("loss_fraction"),
            frozen=column("freeze_time_s") / long,
            files_s=_files(
                [(stays[name][0], *series[name]) for name in files if WARMUP_S < stays[name][0] < end - SEEN_S]
            ),
            digest=run.digest,
        )


def _series(run: Run) -> dict[str, tuple[Floats, Floats, Floats]]:
    """For each flow the beginning of each second, the rate sent in it and the goodput."""
    series = run.table("series")
    flow = series.to_numpy("flow")
    columns = [series.to_numpy(name) for name in ("t_s", "sending_rate_bps", "goodput_bps")]
    # a flow's rows stand together
    first = np.flatnonzero(np.append(True, flow[1:] != flow[:-1]))
    at, sent, good = (np.split(column, first[1:]) for column in columns)
    return {str(flow[row]): one for row, one in zip(first, zip(at, sent, good, strict=True), strict=True)}


def unrest(rates: Floats) -> tuple[float, float]:
    """Coefficient of variation of rates one after the other, and the mean step between two of them over their mean."""
    if len(rates) < 2 or not rates.mean():  # noqa: PLR2004
        return np.nan, np.nan
    return float(rates.std() / rates.mean()), float(np.abs(np.diff(rates)).mean() / rates.mean())


def _unrest(at: Floats, rate: Floats, begin: float, end: float) -> tuple[float, float]:
    """The same over whole seconds of a call."""
    return unrest(rate[(at >= begin) & (at + 1 <= end)])


def _files(downloads: Sequence[tuple[float, Floats, Floats, Floats]]) -> float:
    """Mean time until the last bytes of a file arrive, each to half a second."""
    took = [at[good > 0][-1] + 0.5 - begin for begin, at, _, good in downloads if (good > 0).any()]
    return float(np.mean(took)) if took else np.nan
