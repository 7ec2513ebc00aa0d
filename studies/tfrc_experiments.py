"""Experiments on TFRC: claims of its RFCs and of the literature, run.

`test_tfrc_behaviour.py` puts bounds on the numbers, `docs/tfrc-behaviour.md` explains them, and
`docs/make_figures.py` draws them. Starts, silence and data-limited times are in `tfrc_situations.py`; verdicts on all
are in `tfrc_claims.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import sliding_window_view

import tidegate
from gcc_experiments import KILO, MEGA, Experiment, Row
from kept import kept
from tidegate import Audio, Feedback, Flow, Link, Media, Queue, Run, Scenario, Tcp, tfrc
from tidegate.runs import RunJob
from tidegate.runs.jobs import execute

Floats = npt.NDArray[np.float64]
RULES = ("rfc5348", "rfc3448")
RTT = 0.1
"""Round-trip time of all paths here without their queues, s."""
SIZES = {"tfrc": 1448, "voice": 160}
UDP_IP = 28
LEAST = "1bps"  # TFRC's own least rate is to be seen, not the session's
FEEDBACK = Feedback(format="none", reports="5s")
"""TFRC's own and nothing else. The interval of reports would follow `max_rate`, which is far above what is sent here."""


def greedy(controller: str, payload: int = SIZES["tfrc"]) -> Media:
    """A call that always has something to send, with 1500 bytes on the wire by default (52 of headers), as TCP."""
    video = {"source": "greedy", "min": LEAST, "max": "100Mbps"}
    return Media(
        controller=controller,
        min_rate=LEAST,
        video=video,
        payload=f"{payload}B",
        feedback=FEEDBACK,
        repair="none",
    )


def download(**keys: object) -> Tcp:
    """The TCP of the literature: SACK and an ACK for each segment, least timeout 200 ms as in ns-2."""
    return Tcp(algorithm="sack", min_rto="200ms", **keys)


def path(loss: object = "0%", capacity: str = "100Mbps", queue: Queue | None = None, delay: str = "50ms") -> Link:
    """RTT there and back by default; the way back is without limits and losses."""
    return Link(
        name="bottleneck",
        capacity=capacity,
        delay=delay,
        queue=queue or Queue(packets=1000),
        loss=loss,
        back={"capacity": "infinite", "loss": "0%"},
    )


def scenario(link: Link, duration: float, *flows: Flow, warmup: float = 0.0, record: str = "series") -> Scenario:
    """These flows over one link."""
    return Scenario(
        name="tfrc", duration=f"{duration}s", warmup=f"{warmup}s", links=[link], flows=list(flows), record=record
    )


def run_all(case: Scenario, seeds: Iterable[int]) -> list[Run]:
    """A scenario with each of the seeds, on all cores."""
    return execute([RunJob(case, seed) for seed in seeds])


def noted(run: Run, name: str, flow: str = "call") -> tuple[Floats, Floats]:
    """Times at which a controller noted a value, s, and the values."""
    table = run.table("internals")
    mine = (np.asarray(table.to_numpy("name")) == name) & (np.asarray(table.to_numpy("flow")) == flow)
    return np.asarray(table.to_numpy("t_s"))[mine], np.asarray(table.to_numpy("value"))[mine]


def at(t: Floats, values: Floats, when: Floats | float) -> Floats:
    """The values in force at these times: each stays until the next."""
    return values[np.maximum(np.searchsorted(t, when, side="right") - 1, 0)]


def series(run: Run, flow: str, column: str) -> tuple[Floats, Floats]:
    """Times, s, and a column of a flow's series."""
    table = run.table("series")
    mine = np.asarray(table.to_numpy("flow")) == flow
    return np.asarray(table.to_numpy("t_s"))[mine], np.nan_to_num(np.asarray(table.to_numpy(column))[mine])


def of_kind(run: Run, kind: str) -> list[dict[str, float]]:
    """The metrics of all flows whose names begin so."""
    return [flow for flow in run.summary["flows"] if flow["flow"].startswith(kind)]


def mean_of(run: Run, kind: str, metric: str) -> float:
    """A metric averaged over the flows whose names begin so."""
    return fmean(flow[metric] for flow in of_kind(run, kind))


def segment(run: Run) -> float:
    """Mean size of the call's packets without UDP and IP, bytes."""
    (call,) = of_kind(run, "call")
    return call["bytes_sent"] / call["packets_sent"] - UDP_IP


def averages(runs: Sequence[dict[str, Any]]) -> dict[str, float]:
    """Each number averaged over the runs, and over their flows."""
    return {name: float(np.mean([run[name] for run in runs])) for name in runs[0]}


# --- steady state ---------------------------------------------------------------------------------

STEADY_LOSSES = (0.1, 1, 5, 10)


@kept
def steady(rules: str, loss: float) -> dict[str, float]:
    """The rate under random loss, and the equation's at the means of its loss event rate and round-trip time."""
    call = Flow(name="call", media=greedy(f"tfrc:{rules}"))
    run = tidegate.run(scenario(path(f"{loss}%", "10Mbps"), 330, call, warmup=30))
    p, rtt = (float(values[t > 30].mean()) for t, values in (noted(run, "p"), noted(run, "rtt_ms")))
    sent = of_kind(run, "call")[0]["packets_sent"] * segment(run) * 8 / 300
    equation = tfrc.throughput(segment(run), rtt / 1e3, p) * 8
    return {
        "p (%)": p * 100,
        "RTT (ms)": rtt,
        "sent (kb/s)": sent / KILO,
        "equation (kb/s)": equation / KILO,
        "ratio": sent / equation,
    }


def _steady() -> list[Row]:
    return [Row(f"{rules}, {loss:g} % lost", steady(rules, loss)) for rules in RULES for loss in STEADY_LOSSES]


# --- beside TCP -----------------------------------------------------------------------------------

COUNTS = (1, 2, 4, 8, 16, 32)
CAPACITY = 15.0
"""Mb/s, as in Floyd et al. 2000."""
FAIRNESS_SEEDS = (1, 2, 3)
QUEUES = {"125 packets": Queue(packets=125), "50 packets": Queue(packets=50)}
"""One bandwidth-delay product, and less than half of it."""


def beside(count: int, queue: Queue, duration: float = 220.0, warmup: float = 20.0) -> Scenario:
    """`count` TFRC flows and as many TCP flows; their starts are spread so that none are in phase."""
    step = {"count": count, "start_step": "53ms"}
    return scenario(
        path(capacity=f"{CAPACITY}Mbps", queue=queue),
        duration,
        Flow(name="call", media=greedy("tfrc"), **step),
        Flow(name="tcp", start="31ms", tcp=download(), **step),
        warmup=warmup,
    )


CAUSES: dict[str, dict[str, str]] = {
    "as above": {},
    "no sending jitter": {"sending_jitter": "off"},
    "TCP's least timeout 1 s": {"flows.tcp.tcp.min_rto": "1s"},
    "both": {"sending_jitter": "off", "flows.tcp.tcp.min_rto": "1s"},
    "t_RTO = 2 R in the equation": {"flows.call.media.controller": "tfrc:rfc5348,rto_rtts=2"},
}
"""Changes that may explain how 32 and 32 flows share, each alone."""


KINDS = {"TFRC": "call", "TCP": "tcp"}
"""Beginnings of the names of their flows."""


@kept
def sharing(queue: str, count: int, change: str, seed: int) -> dict[str, Any]:
    """Losses, and each flow's rate over its fair share: the normalised throughput."""
    run = tidegate.run(beside(count, QUEUES[queue]).with_changes(CAUSES[change]), seed, "summary")
    link = run.summary["links"][0]
    numbers = {
        "utilisation": link["utilisation"],
        "sent": sum(flow["packets_sent"] for flow in run.summary["flows"]),
        "dropped": link["dropped_queue"],
    }
    for name, kind in KINDS.items():
        numbers[name] = [flow["receive_rate_bps"] * 2 * count / CAPACITY / MEGA for flow in of_kind(run, kind)]
        numbers[f"{name} lost (%)"] = 100 * mean_of(run, kind, "loss_fraction")
    return numbers


def over_seeds(queue: str, count: int, change: str = "as above") -> list[dict[str, Any]]:
    """The numbers of each seed."""
    return [sharing(queue, count, change, seed) for seed in FAIRNESS_SEEDS]


def _fairness() -> list[Row]:
    rows = []
    for queue in QUEUES:
        for count in COUNTS:
            runs = over_seeds(queue, count)
            numbers = averages(runs)
            for name in KINDS:
                numbers[f"{name} least"] = min(min(run[name]) for run in runs)
                numbers[f"{name} most"] = max(max(run[name]) for run in runs)
            numbers["TFRC/TCP"] = numbers["TFRC"] / numbers["TCP"]
            numbers["lost (%)"] = 100 * numbers["dropped"] / numbers["sent"]
            rows.append(Row(f"{queue}, n = {count}", numbers))
    return rows


def _causes() -> list[Row]:
    each = {change: averages(over_seeds("50 packets", COUNTS[-1], change)) for change in CAUSES}
    return [Row(change, {**mean, "TFRC/TCP": mean["TFRC"] / mean["TCP"]}) for change, mean in each.items()]


# --- smoothness -----------------------------------------------------------------------------------

SCALES = (0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
SMOOTH_COUNT = 16


def variation(t: Floats, rate: Floats, scale: float, start: float) -> float:
    """Coefficient of variation of the mean rates over windows of `scale` s: deviation over mean."""
    width = round(scale / float(t[1] - t[0]))
    rate = rate[t >= start - 1e-9]
    windows = rate[: len(rate) // width * width].reshape(-1, width).mean(axis=1)
    return float(windows.std() / windows.mean())


def smoothness_run() -> Run:
    """TFRC and TCP flows in bins of 100 ms."""
    return tidegate.run(beside(SMOOTH_COUNT, QUEUES["125 packets"]).with_changes(bin="100ms"))


@kept
def smoothness() -> dict[str, list[float]]:
    """The coefficient of variation at each of the scales, a mean over the flows of a kind."""
    run = smoothness_run()

    def mean(kind: str, scale: float) -> float:
        flows = [str(flow["flow"]) for flow in of_kind(run, kind)]
        return fmean(variation(*series(run, flow, "sending_rate_bps"), scale, 20.0) for flow in flows)

    return {name: [mean(kind, scale) for scale in SCALES] for name, kind in KINDS.items()}


def _smoothness() -> list[Row]:
    both = zip(SCALES, *smoothness().values(), strict=True)
    return [Row(f"{scale:g} s", {"TFRC": call, "TCP": tcp, "TFRC/TCP": call / tcp}) for scale, call, tcp in both]


# --- steps of the loss ----------------------------------------------------------------------------

STEP_AT, BACK_AT, STEP_END = 60.0, 90.0, 150.0
STEP_SEEDS = tuple(range(1, 31))
BASES = (0.5, 1, 2, 5)


def mean_rate(kind: str) -> tuple[Floats, Floats]:
    """The sending rate under 1 % of loss, 5 %, and 1 % again: a mean over the seeds, bit/s."""
    link = path({"schedule": [["0s", "1%"], [f"{STEP_AT}s", "5%"], [f"{BACK_AT}s", "1%"]]})
    flow = Flow(name="call", media=greedy("tfrc")) if kind == "tfrc" else Flow(name="call", tcp=download())
    runs = run_all(scenario(link, STEP_END, flow), STEP_SEEDS)
    every = [series(run, "call", "sending_rate_bps") for run in runs]
    return every[0][0], np.mean([rate for _, rate in every], axis=0)


@kept
def steps(kind: str) -> dict[str, float]:
    """Mean rates before, between and after the steps, and how long after each the rate is half-way."""
    t, rate = mean_rate(kind)
    smooth = sliding_window_view(np.concatenate([np.zeros(4), rate]), 5).mean(axis=1)  # the last second
    before, during, after = (
        float(rate[(t >= a) & (t < b)].mean()) for a, b in ((30.0, STEP_AT), (75.0, BACK_AT), (BACK_AT + 30, STEP_END))
    )
    down = t[(t >= STEP_AT) & (smooth <= (before + during) / 2)]
    up = t[(t >= BACK_AT) & (smooth >= (during + after) / 2)]
    return {
        "at 1 % (kb/s)": before / KILO,
        "at 5 % (kb/s)": during / KILO,
        "1 % again (kb/s)": after / KILO,
        "half-way down (s)": float(down[0]) - STEP_AT,
        "half-way up (s)": float(up[0]) - BACK_AT,
    }


def _steps() -> list[Row]:
    return [Row("TFRC", steps("tfrc")), Row("TCP", steps("tcp"))]


def persistent_runs(base: float) -> list[Run]:
    """Half of all packets lost from STEP_AT on: a loss event in each round trip."""
    link = path({"schedule": [["0s", f"{base}%"], [f"{STEP_AT}s", "50%"]]})
    return run_all(scenario(link, STEP_AT + 5, Flow(name="call", media=greedy("tfrc"))), STEP_SEEDS)


@kept
def persistent(base: float) -> dict[str, float]:
    """Round trips until X is halved, over the seeds."""
    needed = []
    for run in persistent_runs(base):
        t, x = noted(run, "x_bps")
        halved = t[(t >= STEP_AT) & (x <= float(at(t, x, STEP_AT)) / 2)]
        needed.append((float(halved[0]) - STEP_AT) / RTT)
    return {"least": min(needed), "median": float(np.median(needed)), "most": max(needed)}


def _persistent() -> list[Row]:
    return [Row(f"{base:g} % before", persistent(base)) for base in BASES]


DISCOUNTING = {"with discounting": "true", "without": "false"}


def relief_runs(discounting: str) -> list[Run]:
    """No loss any more from STEP_AT on."""
    link = path({"schedule": [["0s", "1%"], [f"{STEP_AT}s", "0%"]]})
    call = Flow(name="call", media=greedy(f"tfrc:rfc5348,discounting={DISCOUNTING[discounting]}"))
    return run_all(scenario(link, STEP_AT + 20, call), STEP_SEEDS[:10])


def packets_a_round_trip(run: Run, times: Floats) -> Floats:
    """X at these times, in the call's packets."""
    return at(*noted(run, "x_bps"), times) / 8 / segment(run) * RTT


@kept
def relief(discounting: str) -> dict[str, float]:
    """Increase of X, in packets a round trip and round trip, over five seconds."""
    starts = np.arange(STEP_AT + 0.5, STEP_AT + 15.0, 0.1)
    slopes = np.array(
        [
            (packets_a_round_trip(run, starts + 5.0) - packets_a_round_trip(run, starts)) / (5.0 / RTT)
            for run in relief_runs(discounting)
        ]
    )
    return {"mean of the first": float(slopes[:, 0].mean()), "most": float(slopes.max())}


def _relief() -> list[Row]:
    return [Row(discounting, relief(discounting)) for discounting in DISCOUNTING]


# --- voice ----------------------------------------------------------------------------------------

VOICE_LOSSES = (0.5, 1, 2, 5, 10, 20)
VOICE_KINDS = ("tfrc", "tfrc-sp")
NO_GAP = "tfrc-sp:rfc5348,min_gap=0ms"
VOICE_SEEDS = (1, 2, 3)
VOICE = Audio(rate="64kbps", interval="20ms")
"""G.711 in packets of 160 bytes."""


def voice(controller: str) -> Media:
    """A voice call whose session does not limit it: headers need more than the encoder's 64 kb/s."""
    return Media(
        controller=controller,
        min_rate=LEAST,
        max_rate="1Mbps",
        video=False,
        audio=VOICE,
        feedback=FEEDBACK,
    )


def voice_run(flow: Flow, loss: float, seed: int) -> Run:
    """A flow alone under random loss."""
    return tidegate.run(scenario(path(f"{loss}%"), 220, flow, warmup=20, record="summary"), seed)


@kept
def greedy_rate(kind: str, loss: float, seed: int) -> float:
    """The sending rate of a flow that sends all it may, in small packets or, as TCP, in full ones, kb/s."""
    tcp = Flow(name="call", tcp=download())
    flow = tcp if kind == "tcp" else Flow(name="call", media=greedy(kind, SIZES["voice"]))
    return mean_of(voice_run(flow, loss, seed), "call", "sending_rate_bps") / KILO


@kept
def voice_call(kind: str, loss: float, seed: int) -> dict[str, float]:
    """Voice that is never sent, and the median wait at the sender."""
    run = voice_run(Flow(name="call", media=voice(kind)), loss, seed)
    return {
        f"voice not sent, {kind} (%)": 100 * run.metrics()["sender_skipped_frames"] / (200 * 50),
        f"waits, {kind} (ms)": mean_of(run, "call", "sender_delay_ms_p50"),
    }


def _voip() -> list[Row]:
    columns = {"tfrc": "tfrc", "tfrc-sp": "tfrc-sp", NO_GAP: "tfrc-sp, no gap", "tcp": "TCP"}
    rows = []
    for loss in VOICE_LOSSES:
        numbers = {
            f"{column} (kb/s)": fmean(greedy_rate(kind, loss, seed) for seed in VOICE_SEEDS)
            for kind, column in columns.items()
        }
        for kind in VOICE_KINDS:
            numbers |= averages([voice_call(kind, loss, seed) for seed in VOICE_SEEDS])
        rows.append(Row(f"{loss:g} % lost", numbers))
    return rows


SMALL_QUEUES = {"in packets": Queue(packets=50), "in bytes": Queue(bytes="75kB")}
SMALL_CAPACITIES = (4, 6)
SMALL_COUNT = 20


@kept
def small(kind: str, queue: str, capacity: int, seed: int) -> dict[str, float]:
    """Flows of small packets beside as many TCP flows with full ones: means over the flows of each kind."""
    step = {"count": SMALL_COUNT, "start_step": "53ms"}
    case = scenario(
        path(capacity=f"{capacity}Mbps", queue=SMALL_QUEUES[queue]),
        220,
        Flow(name="call", media=greedy(kind, SIZES["voice"]), **step),
        Flow(name="tcp", start="31ms", tcp=download(), **step),
        warmup=20,
        record="summary",
    )
    run = tidegate.run(case, seed)
    return {
        "small (kb/s)": mean_of(run, "call", "receive_rate_bps") / KILO,
        "TCP (kb/s)": mean_of(run, "tcp", "receive_rate_bps") / KILO,
        "small lost (%)": 100 * mean_of(run, "call", "loss_fraction"),
        "TCP lost (%)": 100 * mean_of(run, "tcp", "loss_fraction"),
    }


def _small() -> list[Row]:
    rows = []
    for kind in VOICE_KINDS:
        for queue in SMALL_QUEUES:
            for capacity in SMALL_CAPACITIES:
                numbers = averages([small(kind, queue, capacity, seed) for seed in VOICE_SEEDS])
                numbers["small/TCP"] = numbers["small (kb/s)"] / numbers["TCP (kb/s)"]
                rows.append(Row(f"{kind}, queue {queue}, {capacity} Mb/s", numbers))
    return rows


EXPERIMENTS = {
    experiment.name: experiment
    for experiment in (
        Experiment("steady", {"p (%)": 0.01, "RTT (ms)": 0.1, "sent (kb/s)": 1, "equation (kb/s)": 1, "ratio": 0.01}, _steady),
        Experiment("fairness", {"TFRC": 0.01, "TFRC least": 0.01, "TFRC most": 0.01, "TCP": 0.01, "TCP least": 0.01, "TCP most": 0.01, "TFRC/TCP": 0.01, "lost (%)": 0.01}, _fairness),
        Experiment("causes", {"TFRC/TCP": 0.01, "TFRC lost (%)": 0.1, "TCP lost (%)": 0.1}, _causes),
        Experiment("smoothness", {"TFRC": 0.01, "TCP": 0.01, "TFRC/TCP": 0.01}, _smoothness),
        Experiment("steps", {"at 1 % (kb/s)": 10, "at 5 % (kb/s)": 10, "1 % again (kb/s)": 10, "half-way down (s)": 0.2, "half-way up (s)": 0.2}, _steps),
        Experiment("persistent", {"least": 0.1, "median": 0.1, "most": 0.1}, _persistent),
        Experiment("relief", {"mean of the first": 0.001, "most": 0.001}, _relief),
        Experiment("voip", {"tfrc (kb/s)": 1, "tfrc-sp (kb/s)": 1, "tfrc-sp, no gap (kb/s)": 1, "TCP (kb/s)": 1, "voice not sent, tfrc (%)": 0.1, "waits, tfrc (ms)": 1, "voice not sent, tfrc-sp (%)": 0.1, "waits, tfrc-sp (ms)": 1}, _voip),
        Experiment("small", {"small (kb/s)": 1, "TCP (kb/s)": 1, "small/TCP": 0.01, "small lost (%)": 0.1, "TCP lost (%)": 0.1}, _small),
    )
}  # fmt: skip

TABLES = {("tfrc-behaviour.md", name): experiment.text for name, experiment in EXPERIMENTS.items()}
