"""Real programs' calls beside the simulated `gcc`: what is run for `docs/real-calls.md`, and what is measured of it.

`python studies/real_calls.py wrtc steps --runs 10` runs what is missing and writes `studies/kept/real-calls.csv` (a line
a run) and `real-calls-series.csv` (medians by the second) again. Sessions are kept in `.cache/real-calls`.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from rich.progress import Progress

from tidegate import Run, Scenario
from tidegate import run as simulate
from tidegate.media import Procedural
from tidegate.shell._judging import verdict

ROOT = Path(__file__).parents[1]
CALLS = ROOT / "docs" / "examples" / "calls"
KEPT = ROOT / ".cache" / "real-calls"
RECORD = ROOT / "studies" / "kept" / "real-calls.csv"
SERIES = ROOT / "studies" / "kept" / "real-calls-series.csv"
TRIES = 4
"""A session that was noisy is begun anew, three times at most."""
MOST = 3e6
"""Bit/s that the programs send at most; what they could send beyond it, some say and some do not."""
LOADED = 5.0
"""Seconds after which a program has done what it does only once."""
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Case:
    """A scenario, and the stretches of it for which the estimate is stated."""

    name: str
    scenario: str
    link: str
    windows: Mapping[str, tuple[float, float]]
    """Seconds from and to."""
    step_up: float | None = None
    """When the capacity comes back."""
    trace: str | None = None
    """In the folder of recordings."""
    sets: Mapping[str, Any] = field(default_factory=dict)

    def options(self) -> list[str]:
        """For `tidegate shell`."""
        return [
            word
            for key, value in self.overrides().items()
            for word in ("--set", f"{key}={value if isinstance(value, str) else json.dumps(value)}")
        ]

    def overrides(self) -> dict[str, Any]:
        """Keys of the scenario that have another value."""
        made = dict(self.sets)
        if self.trace:
            folder = Path(os.environ.get("TIDEGATE_SHARED", ROOT.parent / "shared")) / "traces"
            made[f"links.{self.link}.capacity.trace"] = str(folder / self.trace)
        return made


# the film that the programs send, and how WebRTC repairs; the scenarios of the calls' folder say it themselves
ALIKE = {
    "flows.call.media.video.max": "3Mbps",
    "flows.call.media.video.fps": 25,
    "flows.call.media.repair.nack": True,
    "flows.call.media.repair.pli": True,
}


def beside(flow: str) -> dict[str, Any]:
    """The same, beside a TCP that counts duplicates, which was the default when the programs' sessions were made."""
    return {**ALIKE, f"flows.{flow}.tcp.recovery": "rfc6675"}


CASES = {
    case.name: case
    for case in (
        Case(
            "steps",
            str(CALLS / "scenarios" / "steps.toml"),
            "bottleneck",
            {"before": (10, 30), "during": (40, 60), "after": (70, 90)},
            step_up=60,
        ),
        Case(
            "lte",
            str(CALLS / "scenarios" / "lte.toml"),
            "bottleneck",
            {"before": (10, 30), "during": (30, 60), "after": (60, 90)},
            trace="mahimahi/Verizon-LTE-short.down",
        ),
        Case(
            "tcp",
            "tcp-joins",
            "downlink",
            {"before": (10, 20), "during": (30, 60), "after": (70, 90)},
            sets=beside("download"),
        ),
        Case(
            "fq-codel",
            "fq-codel-home",
            "uplink",
            {"before": (10, 20), "during": (30, 60), "after": (70, 80)},
            sets=beside("backup"),
        ),
    )
}
SIMULATED = ("gcc", "gcc+jitter", "gcc:libwebrtc,burst=0ms", "gcc:libwebrtc,burst=0ms+jitter", "scream")
"""Contenders that are the scenario's own call, simulated under this controller, some on a link with jitter."""
JITTER = {"rfc8868": {"std": "3ms", "n_std": 3}}
"""Stands for programs that wake late: no session measures how late its peers see and send packets. With 15 ms the
estimates on the recorded cell are at most 14 % lower than with 3 ms (docs/real-calls.md)."""
LABELS = {
    "gcc": "`gcc`",
    "gcc+jitter": "`gcc`, jitter",
    "chromium": "Chromium 156",
    "gcc:libwebrtc,burst=0ms": "`gcc` without bursts",
    "gcc:libwebrtc,burst=0ms+jitter": "without bursts, jitter",
    "wrtc": "libwebrtc 2022 (`wrtc`)",
    "wrtc+made-up": "`wrtc` sending noise",
    "pion": "pion",
    "aiortc": "aiortc",
    "scream": "`scream`",
    "chromium+scream": "Chromium, SCReAM trial",
}
"""Programs and controllers as the page calls them, in its order."""


@dataclass
class Row:
    """A line of the record: one run."""

    program: str
    case: str
    seed: int
    state: str
    """quiet, noisy or simulated."""
    tries: int
    numbers: dict[str, float]
    """By the names in NUMBERS; NaN where there is none."""

    def line(self) -> list[str]:
        """As it stands in the file."""
        values = [self.numbers.get(name, float("nan")) for name in NUMBERS]
        return [self.program, self.case, str(self.seed), self.state, str(self.tries), *(_text(one) for one in values)]


NUMBERS = (
    "estimate_before_kbps",
    "estimate_during_kbps",
    "estimate_after_kbps",
    "estimate_over_capacity",
    "receive_kbps",
    "loss_percent",
    "queue_peak_ms",
    "queue_p95_ms",
    "freezes",
    "freeze_s",
    "to_90_s",
    "frames_shown_percent",
    "connected_s",
    "late_p99_ms",
    "peer_late_ms",
)
HEAD = ("program", "case", "seed", "state", "tries", *NUMBERS)
SECONDS = ("program", "case", "t_s", "estimate_kbps", "receive_kbps", "queue_ms", "capacity_kbps")


def _text(value: float) -> str:
    return "" if np.isnan(value) else f"{value:.5g}"


@dataclass
class Measured:
    """A run's numbers, and its course by the second."""

    numbers: dict[str, float]
    course: dict[str, Floats]
    """Columns of SECONDS, at whole seconds."""


def every(report: Any, key: str) -> Iterator[Any]:
    """The values of a key wherever it is in what getStats said, a list or a dictionary of tables."""
    for table in report.values() if isinstance(report, dict) else report:
        if isinstance(table, dict) and key in table:
            yield table[key]
    if isinstance(report, dict) and key in report:
        yield report[key]


def last(report: Any, key: str) -> float:
    """The largest of the numbers under a key: pairs of candidates that are not used have none, or what was set at first."""
    numbers = [float(one) for one in every(report, key) if one is not None]
    return max(numbers, default=float("nan"))


def said(folder: Path, side: str) -> list[dict[str, Any]]:
    """The lines of a peer's statistics; one that was cut off by its end is left out."""
    found = []
    for line in (folder / f"stats-{side}.jsonl").read_text("utf-8").splitlines():
        try:
            found.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    return found


def estimate_of(line: Mapping[str, Any]) -> float:
    """The estimate that a line of statistics has, bit/s: that of the pair of candidates which is in use."""
    report = line["report"]
    tables = report.values() if isinstance(report, dict) else report
    nominated = [
        one for one in tables if isinstance(one, dict) and one.get("nominated") and "availableOutgoingBitrate" in one
    ]
    return last(nominated or report, "availableOutgoingBitrate")


def measure(run: Run, case: Case, flow: str, times: Floats, estimates: Floats) -> Measured:
    """States of a run, of a program or of tidegate.

    Args:
        run: The session's replay, or the simulation.
        case: Its scenario.
        flow: That of the media.
        times: When the estimate was noted, seconds of the run.
        estimates: It, bit/s.
    """
    estimates = np.minimum(estimates, MOST)
    end = float(run.summary["duration_s"]) if "duration_s" in run.summary else times[-1]
    seconds = np.arange(1, int(end) + 1, dtype=float)
    at = (
        np.interp(seconds, times, estimates, left=np.nan, right=np.nan) if len(times) else np.full(len(seconds), np.nan)
    )
    metrics = run.metrics(flow)
    numbers = {
        f"estimate_{name}_kbps": _median(at[(seconds >= first) & (seconds < until)]) / 1e3
        for name, (first, until) in case.windows.items()
    }
    truth = run.table("truth")
    mine = np.asarray(truth.to_numpy("link")) == case.link
    changes, rates = (np.asarray(truth.to_numpy(name))[mine] for name in ("t_s", "capacity_bps"))
    # over the second before: recorded cells change faster than estimates are noted
    capacity = np.array([_mean_rate(changes, rates, one - 1, one) for one in seconds])
    late = seconds >= min(first for first, _ in case.windows.values())
    numbers["estimate_over_capacity"] = _median((at / capacity)[late & (capacity > 0)])
    numbers["receive_kbps"] = float(metrics["receive_rate_bps"]) / 1e3
    numbers["loss_percent"] = 100 * float(metrics["loss_fraction"])
    numbers["queue_peak_ms"] = float(metrics["queueing_delay_ms_max"])
    numbers["queue_p95_ms"] = float(metrics["queueing_delay_ms_p95"])
    if case.step_up is not None:
        numbers["to_90_s"] = _crossing(times, estimates, case.step_up, 0.9 * float(rates[changes >= case.step_up][0]))
    series = run.table("series")
    mine = np.asarray(series.to_numpy("flow")) == flow
    t, rate, wait = (
        np.asarray(series.to_numpy(name))[mine] for name in ("t_s", "receive_rate_bps", "queueing_delay_ms_mean")
    )
    course = {
        "t_s": seconds,
        "estimate_kbps": at / 1e3,
        "receive_kbps": _by_second(seconds, t, rate) / 1e3,
        "queue_ms": _by_second(seconds, t, wait),
        "capacity_kbps": capacity / 1e3,
    }
    return Measured(numbers, course)


def _median(values: Floats) -> float:
    return float(np.nanmedian(values)) if np.isfinite(values).any() else float("nan")


def _mean_rate(changes: Floats, rates: Floats, first: float, until: float) -> float:
    """The mean of a capacity that holds from each change to the next one."""
    inside = changes[(changes > first) & (changes < until)]
    edges = np.concatenate([[first], inside, [until]])
    holding = rates[np.maximum(0, np.searchsorted(changes, edges[:-1], side="right") - 1)]
    return float(np.sum(holding * np.diff(edges)) / (until - first))


def _by_second(seconds: Floats, t: Floats, values: Floats) -> Floats:
    """Means of what bins begin in the second that ends at each of the seconds."""
    found = np.full(len(seconds), np.nan)
    for index, one in enumerate(seconds):
        mine = values[(t >= one - 1) & (t < one)]
        if np.isfinite(mine).any():
            found[index] = np.nanmean(mine)
    return found


def _crossing(times: Floats, values: Floats, after: float, level: float) -> float:
    """Seconds after an instant until a growing value reaches a level.

    It is noted once a second and grows by a share of itself, so that between two notes its logarithm is straight.
    """
    for (t0, v0), (t1, v1) in zip(
        zip(times, values, strict=True), zip(times[1:], values[1:], strict=True), strict=False
    ):
        if t1 > after and v1 >= level > 0:
            if v0 >= level or t0 < after:
                return max(0.0, float(t1 - after if v0 < level else t0 - after))
            return float(t0 + (t1 - t0) * np.log(level / v0) / np.log(v1 / v0) - after)
    return float("nan")


def real(folder: Path, case: Case) -> Measured:
    """Of a session's folder."""
    run = Run.load(folder)
    about = json.loads((folder / "session.json").read_text("utf-8"))
    a, b = said(folder, "A"), said(folder, "B")
    # peers without the clock's time: they began with the session, and what node or Python takes to start is not known
    times = np.array([one["unix_s"] - about["began_unix_s"] if "unix_s" in one else one["time_s"] for one in a])
    flow = max((name for name in run.flows if name.startswith("A-")), key=lambda name: run.metrics(name)["bytes_sent"])
    made = measure(run, case, flow, times, np.array([estimate_of(one) for one in a]))
    final, sent = b[-1]["report"], a[-1]["report"]
    shown = last(final, "framesDecoded")
    encoded = a[-1].get("frames", last(sent, "framesEncoded"))
    made.numbers |= {
        "freezes": last(final, "freezeCount"),
        "freeze_s": last(final, "totalFreezesDuration"),
        "frames_shown_percent": 100 * shown / encoded if encoded else float("nan"),
        "connected_s": float(a[-1].get("connected_s") or "nan"),
        "late_p99_ms": about["lateness"]["p99_ms"],
        "peer_late_ms": max(_late(a), _late(b)),
    }
    return made


def _late(lines: Sequence[Mapping[str, Any]]) -> float:
    """Of the worst wakeups by the second the 95th percentile, without the first seconds, in which a program is loaded."""
    worst = [float(one["late_ms"]) for one in lines if "late_ms" in one and one["time_s"] > LOADED]
    return float(np.percentile(worst, 95)) if worst else float("nan")


def simulated(case: Case, seed: int, contender: str = SIMULATED[0]) -> Measured:
    """The scenario's own call, with a controller of ours; its target is noted once a second, as a program's is."""
    controller, _, jitter = contender.partition("+")
    more: dict[str, Any] = {"flows.call.media.controller": controller}
    if jitter:
        more[f"links.{case.link}.jitter"] = JITTER
    scenario = Scenario.load(case.scenario, {**case.overrides(), **more})
    run = simulate(scenario, seed=seed)
    table = run.table("decisions")
    mine = np.asarray(table.to_numpy("flow")) == "call"
    t, target = (np.asarray(table.to_numpy(name))[mine] for name in ("t_s", "target_bps"))
    times = np.arange(1.0, 1000.0)
    times = times[times <= max(until for _, until in case.windows.values())]
    held = target[np.maximum(0, np.searchsorted(t, times, side="right") - 1)]
    made = measure(run, case, "call", times, held)
    metrics = run.metrics("call")
    captured = metrics["frames_sent"] + metrics["sender_skipped_frames"] + metrics["left_out_frames"]
    made.numbers |= {
        "freezes": metrics["freezes"],
        "freeze_s": metrics["freeze_time_s"],
        "frames_shown_percent": 100 * metrics["frames_rendered"] / captured,
    }
    return made


def call(program: str, case: Case, seed: int, said_to: Callable[[str], None] = lambda _: None) -> tuple[Path, str, int]:
    """A session; one that is kept is not begun again.

    Returns:
        Its folder, whether it was quiet, and how often it was begun.
    """
    folder = KEPT / program / case.name / str(seed)
    noted = folder / "tries"
    if noted.is_file():
        state, tries = noted.read_text().split()
        return folder, state, int(tries)
    folder.parent.mkdir(parents=True, exist_ok=True)
    state, attempt = "noisy", 0
    while state == "noisy" and attempt < TRIES:
        attempt += 1
        shutil.rmtree(folder, ignore_errors=True)
        name, _, variant = program.partition("+")
        done = subprocess.run(
            [*URGENT, CALLS / name / "run.sh", case.scenario, *case.options(), "--seed", str(seed), "--out", folder],
            env={**os.environ, "PYTHON": sys.executable, **VARIANTS[variant]()},
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
        )
        if not (folder / "session.json").is_file():
            raise SystemExit(f"{program} {case.name} {seed}: {done.stderr[-800:]}")
        state, why = verdict(json.loads((folder / "session.json").read_text("utf-8")))
        if why:
            said_to(f"{program} {case.name} {seed} is noisy: {'; '.join(why)}")
    noted.write_text(f"{state} {attempt}\n")
    # what figures are not made of: a megabyte a second
    for capture in folder.glob("packets-*.pcapng"):
        capture.unlink()
    return folder, state, attempt


URGENT = ["nice", "-n", "-15"] if os.geteuid() == 0 else []
"""What else runs on the machine is not to be seen in the calls; only root may ask for it."""


def made_up() -> dict[str, str]:
    """Pictures with so much noise that an encoder always has more to send than it may."""
    path = KEPT.parent / "made-up.y4m"
    if not path.is_file():
        noise = Procedural(640, 360, complexity=0.5)
        part = path.with_suffix(".part")
        with part.open("wb") as file:
            file.write(b"YUV4MPEG2 W640 H360 F25:1 Ip A1:1 C420jpeg\n")
            for picture in noise.pictures(250):
                file.write(b"FRAME\n" + picture.tobytes())
        part.replace(path)
    return {"CALL_CLIP": str(path)}


SCREAM = "WebRTC-RFC8888CongestionControlFeedback/Enabled,offer:true/WebRTC-Bwe-ScreamV2/Enabled/"
"""Field trials with which Chromium sends by SCReAM on the feedback of RFC 8888."""
VARIANTS: Mapping[str, Callable[[], Mapping[str, str]]] = {
    "": dict,
    "made-up": made_up,
    "scream": lambda: {"CALL_FIELD_TRIALS": SCREAM},
}
"""Of programs, as in wrtc+made-up: environments of their peers."""


def read() -> list[Row]:
    """The record."""
    if not RECORD.is_file():
        return []
    with RECORD.open(newline="") as file:
        lines = list(csv.reader(file))
    rows = []
    for program, case, seed, state, tries, *values in lines[1:]:
        numbers = {name: float(one or "nan") for name, one in zip(NUMBERS, values, strict=True)}
        rows.append(Row(program, case, int(seed), state, int(tries), numbers))
    return rows


def read_series() -> dict[tuple[str, str], dict[str, Floats]]:
    """Medians by the second, by program and case."""
    if not SERIES.is_file():
        return {}
    with SERIES.open(newline="") as file:
        lines = list(csv.reader(file))[1:]
    found: dict[tuple[str, str], list[list[float]]] = {}
    for program, case, *values in lines:
        found.setdefault((program, case), []).append([float(one or "nan") for one in values])
    return {key: dict(zip(SECONDS[2:], np.array(rows).T, strict=True)) for key, rows in found.items()}


def write(rows: Iterable[Row], series: Mapping[tuple[str, str], Mapping[str, Floats]]) -> None:
    """Writes both files."""
    with RECORD.open("w", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(HEAD)
        out.writerows(one.line() for one in sorted(rows, key=lambda one: (one.case, one.program, one.seed)))
    with SERIES.open("w", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(SECONDS)
        for (program, case), columns in sorted(series.items(), key=lambda one: one[0][::-1]):
            for values in zip(*(columns[name] for name in SECONDS[2:]), strict=True):
                out.writerow([program, case, *(_text(one) for one in values)])


def record(program: str, case: Case, made: Sequence[tuple[int, str, int, Measured]]) -> None:
    """Puts the runs of a program on a scenario into the record, instead of what was there of them."""
    rows = [one for one in read() if (one.program, one.case) != (program, case.name)]
    rows += [Row(program, case.name, seed, state, tries, one.numbers) for seed, state, tries, one in made]
    series = read_series()
    good = [one for _, state, _, one in made if state != "noisy"] or [one for *_, one in made]
    length = min(len(one.course["t_s"]) for one in good)
    with np.errstate(all="ignore"):
        series[program, case.name] = {
            name: np.array([_median(np.array([one.course[name][at] for one in good])) for at in range(length)])
            for name in SECONDS[2:]
        }
    write(rows, series)


def medians(program: str, case: str) -> dict[str, float]:
    """Of the runs in the record that were quiet, by the names in NUMBERS."""
    rows = [one for one in read() if (one.program, one.case) == (program, case) and one.state != "noisy"]
    found = {name: np.array([one.numbers[name] for one in rows]) for name in NUMBERS}
    if CASES[case].step_up is not None:
        # what never got there took longer than any other
        found["to_90_s"] = np.nan_to_num(found["to_90_s"], nan=np.inf)
    return {
        name: float(np.median(values)) if name == "to_90_s" and len(values) else _median(values)
        for name, values in found.items()
    }


def main() -> None:
    """From the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        epilog="Example: python studies/real_calls.py wrtc steps --runs 3",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("program", help=f"a folder of docs/examples/calls, or {' or '.join(SIMULATED)}, simulated")
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"by default all: {', '.join(CASES)}")
    parser.add_argument("--runs", type=int, default=3, help="number of sessions of each case, one a seed (3)")
    parser.add_argument("--jobs", type=int, default=2, help="number of sessions at once (2)")
    typed = parser.parse_args()
    unknown = [name for name in typed.cases if name not in CASES]
    if unknown:
        parser.error(f"found the case {unknown[0]}; available: {', '.join(CASES)}")
    seeds = range(1, typed.runs + 1)
    with Progress() as bar:
        for case in (CASES[name] for name in typed.cases or CASES):
            task = bar.add_task(f"{typed.program} {case.name}", total=len(seeds))

            def one(seed: int, case: Case = case, task: Any = task) -> tuple[int, str, int, Measured]:
                if typed.program in SIMULATED:
                    made = (seed, "simulated", 1, simulated(case, seed, typed.program))
                else:
                    folder, state, tries = call(typed.program, case, seed, bar.console.print)
                    made = (seed, state, tries, real(folder, case))
                bar.advance(task)
                return made

            with ThreadPoolExecutor(typed.jobs) as pool:
                record(typed.program, case, list(pool.map(one, seeds)))


if __name__ == "__main__":
    main()
