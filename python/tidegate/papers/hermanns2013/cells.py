"""Calls in a loaded LTE network: scenarios (slide "Simulation scenario"), and summaries of their runs."""

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
"""Duration of a call."""
FTP_BPS = 2e6
"""Load of file transfers offered to each cell."""
FILES: Mapping[str, tuple[str, float]] = {"500 kB": ("500kB", 4e6), "500 kbit": ("62500B", 0.5e6)}
"""Meanings of "500kb" on the slide, as size and in bits."""


@dataclass(frozen=True)
class Caller:
    """A kind of calls: the controller and its settings."""

    label: str
    """Name in figures and tables."""
    controller: str
    """The controller as on the command line."""
    changes: Mapping[str, Any] = field(default_factory=dict)
    """Further keys of the scenario."""

    @property
    def keys(self) -> Mapping[str, Any]:
        """Keys for the shipped scenarios, whose flow is called `call`."""
        return {
            "flows.call.media.controller": self.controller,
            "flows.call.media.video": VIDEO,
            # packets as in Sprout's video calls: without the marks of frames that browsers send
            "flows.call.media.marks": False,
            **self.changes,
        }

    def under(self, keys: Mapping[str, Any]) -> Caller:
        """The caller with more keys, unless it sets them itself."""
        return replace(self, changes={**keys, **self.changes})


VIDEO: Mapping[str, Any] = {
    "min": "200kbps",
    "max": "1.5Mbps",
    "burst": "1B",
    "below_min": "wait",
    "key_factor": 1.0,
}
"""RFC 8593's encoder (2019) without its burst of 13.5 kB at each change of the rate: the slides have no such burst."""
BURSTS: Mapping[str, Any] = {"flows.call.media.video": {**VIDEO, "burst": "13.5kB"}}
"""RFC 8593's encoder with its burst at each change of the rate."""
EQUAL: Mapping[str, Any] = {
    "flows.call.media.video": {"source": "ideal", "min": "200kbps", "max": "1.5Mbps", "below_min": "wait"}
}
"""An encoder whose frames all have the size that its rate gives."""


def _constant(rate: str) -> Mapping[str, Any]:
    """An encoder at a constant rate without waiting: the pacer has room for its largest frames."""
    return {"flows.call.media.max_rate": "6Mbps", "flows.call.media.video": {**VIDEO, "min": rate, "max": rate}}


CALLERS: Mapping[str, Caller] = {
    "sprout": Caller("Sprout", "sprout"),
    "aware": Caller("Sprout with our rule", "sprout:aware"),
    # neither of 2013 nor of today: the newest preset that does not probe, as the callers of the slides
    "gcc": Caller("GCC", "gcc:libwebrtc-v1"),
    "tfrc": Caller("TFRC", "tfrc"),
    "most": Caller("fixed rate of 1.5 Mb/s", "fixed:6Mbps", _constant("1.5Mbps")),
    "least": Caller("fixed rate of 0.2 Mb/s", "fixed:6Mbps", _constant("200kbps")),
}
"""Callers by their name in measures. The last one shows the network's delay for the lowest rate."""

WARMUP_S = 60
"""Time at which the first calls end, so that from then on the number of calls is at its mean."""
MIN_COUNTED_S = 20.0
"""Shortest part of a call after the warm-up with which the call counts."""


@dataclass(frozen=True)
class Cell:
    """Settings of a run of the network."""

    caller: Caller
    load: float
    """Mean number of calls in each cell."""
    case: int = 1
    """Case of 3GPP."""
    file: str = "500 kB"
    """Key of `FILES`."""
    end_s: int = 100
    """Duration of the run."""

    @property
    def scenario(self) -> Scenario:
        """The shipped scenario with these settings."""
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
                "flows.download.tcp.recovery": "rfc6675",
                **self.caller.keys,
            }
        )


@cache
def _shipped() -> Scenario:
    return Scenario.load("lte-cell")


@dataclass(frozen=True)
class Calls:
    """Summary of the calls of a run; arrays have a value for each call that counts."""

    rate: Floats
    """Mean rate sent, bit/s, headers included."""
    variation: Floats
    """Coefficient of variation of the rates of the call's seconds."""
    steps: Floats
    """Mean change of the rate from second to second, as a share of the mean rate: a slow rise adds little."""
    network: Floats
    """Mean delay from the wire to arrival, ms."""
    waiting: Floats
    """Mean time of a packet at its sender, ms."""
    late: Floats
    """95 % quantile of the delay from the wire to arrival, ms."""
    loss: Floats
    """Share of packets lost."""
    frozen: Floats
    """Share of the time without a new picture."""
    files_s: float
    """Mean time that a file takes."""
    settings: Mapping[str, float]
    """What the slides state of the network, read back from the run."""
    digest: str

    @property
    def spread(self) -> float:
        """Coefficient of variation of the users' mean rates."""
        return float(self.rate.std() / self.rate.mean())

    @classmethod
    def from_run(cls, run: Run) -> Calls:
        """Summarises a run of the network."""
        end = float(run.scenario.duration.seconds)
        flows = run.table("flows")
        spans = {
            name: (max(begin, WARMUP_S), min(stop, end))
            for name, begin, stop in zip(
                flows.to_numpy("flow"), flows.to_numpy("start_s"), flows.to_numpy("stop_s"), strict=True
            )
        }
        metrics = {row["flow"]: row for row in run.summary["flows"] if row["kind"] == "media"}
        series = _series(run)
        downloads = [row["flow"] for row in run.summary["flows"] if row["kind"] == "tcp"]
        counted = [name for name in metrics if spans[name][1] - spans[name][0] >= MIN_COUNTED_S]

        def column(name: str) -> Floats:
            return np.array(
                [np.nan if metrics[call][name] is None else metrics[call][name] for call in counted], dtype=float
            )

        variation, steps = np.transpose([_of_whole_seconds(*series[call][:2], *spans[call]) for call in counted])
        durations = np.array([spans[call][1] - spans[call][0] for call in counted])
        return cls(
            rate=column("sending_rate_bps"),
            variation=variation,
            steps=steps,
            network=column("one_way_delay_ms_mean"),
            waiting=column("sender_delay_ms_mean"),
            late=column("one_way_delay_ms_p95"),
            loss=column("loss_fraction"),
            frozen=column("without_picture_s") / durations,
            files_s=_mean_file_time(
                [
                    (spans[name][0], *series[name])
                    for name in downloads
                    if WARMUP_S < spans[name][0] < end - MIN_COUNTED_S
                ]
            ),
            settings=_settings(run, spans, end),
            digest=run.digest,
        )


def _settings(run: Run, spans: Mapping[str, tuple[float, float]], end: float) -> Mapping[str, float]:
    """Settings of the slide "Simulation scenario"; those of calls and files are counted in the run."""
    lte: Any = run.scenario.lte
    flows: Any = run.scenario.flows
    call, download = flows
    table = run.table("flows")
    names, begins, stops = (table.to_numpy(name) for name in ("flow", "start_s", "stop_s"))
    kinds = {row["flow"]: row["kind"] for row in run.summary["flows"]}
    kind = np.array([kinds.get(name, "") if name in spans else "" for name in names])
    files = np.sort(begins[kind == "tcp"])
    whole = (kind == "media") & (stops < end)
    transmit, receive = map(float, lte.antennas.split("x"))
    gaps = np.diff(files)
    return {
        "sites": float(lte.sites),
        "case": float(lte.case),
        "bandwidth": float(lte.bandwidth.removesuffix("MHz")),
        "transmit": transmit,
        "receive": receive,
        "speed": float(lte.speed) / 1000,
        "least": float(call.media.least_rate) / 1e6,
        "most": float(call.media.video.max) / 1e6,
        "length": float(np.median(stops[whole] - begins[whole])),
        "load": 8e-6 * float(download.tcp.workload.file) * (len(files) - 1) / (CELLS * float(files[-1] - files[0])),
        "gaps": float(gaps.std() / gaps.mean()),
    }


def _series(run: Run) -> dict[str, tuple[Floats, Floats, Floats]]:
    """Begin, rate sent and goodput of each second, by flow."""
    series = run.table("series")
    flow = series.to_numpy("flow")
    columns = [series.to_numpy(name) for name in ("t_s", "sending_rate_bps", "goodput_bps")]
    # rows of a flow are adjacent
    first = np.flatnonzero(np.append(True, flow[1:] != flow[:-1]))
    begins, sent, good = (np.split(column, first[1:]) for column in columns)
    by_flow = zip(begins, sent, good, strict=True)
    return {str(flow[row]): arrays for row, arrays in zip(first, by_flow, strict=True)}


def variation_and_steps(rates: Floats) -> tuple[float, float]:
    """Coefficient of variation of successive rates, and the mean step between two of them over their mean."""
    if len(rates) < 2 or not rates.mean():  # noqa: PLR2004
        return np.nan, np.nan
    return float(rates.std() / rates.mean()), float(np.abs(np.diff(rates)).mean() / rates.mean())


def _of_whole_seconds(begins: Floats, rate: Floats, begin: float, end: float) -> tuple[float, float]:
    """`variation_and_steps` over whole seconds of a call."""
    return variation_and_steps(rate[(begins >= begin) & (begins + 1 <= end)])


def _mean_file_time(downloads: Sequence[tuple[float, Floats, Floats, Floats]]) -> float:
    """Mean time until the last bytes of a file arrive, to half a second."""
    times = [seconds[good > 0][-1] + 0.5 - begin for begin, seconds, _, good in downloads if (good > 0).any()]
    return float(np.mean(times)) if times else np.nan
