"""Experiments on TFRC: what its RFCs and the literature claim of it, run.

`test_tfrc_behaviour.py` puts bounds on what comes out, `docs/tfrc-behaviour.md` explains it, and
`docs/make_figures.py` draws it. Starts, silence and data-limited times are in `tfrc_situations.py`; what the rules make of all
is in `tfrc_claims.py`.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

import numpy as np
import numpy.typing as npt

from gcc_experiments import KILO, MEGA, Experiment, Row
from tidegate import Audio, Feedback, Flow, Link, Media, Queue, Run, Scenario, Tcp, pool, tfrc
from tidegate.running import RunJob

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
    return Media(controller=controller, min_rate=LEAST, video=video, payload=f"{payload}B", feedback=FEEDBACK)


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
    return Scenario(
        name="tfrc", duration=f"{duration}s", warmup=f"{warmup}s", links=[link], flows=list(flows), record=record
    )


def run_all(scenarios: Iterable[Scenario], seeds: Iterable[int] = (1,)) -> list[Run]:
    """All of them with all seeds, the seeds of the first scenario first, on all cores."""
    given = list(seeds)
    done = pool.run_all([RunJob(one, seed) for one in scenarios for seed in given])
    assert all(isinstance(run, Run) for run in done)
    return [run for run in done if isinstance(run, Run)]


def noted(run: Run, name: str, flow: str = "call") -> tuple[Floats, Floats]:
    """When a controller noted a value, s, and what."""
    table = run.table("internals")
    mine = (np.asarray(table.to_numpy("name")) == name) & (np.asarray(table.to_numpy("flow")) == flow)
    return np.asarray(table.to_numpy("t_s"))[mine], np.asarray(table.to_numpy("value"))[mine]


def at(t: Floats, values: Floats, when: Floats | float) -> Floats:
    """What held at these times: values stay until the next."""
    return values[np.maximum(np.searchsorted(t, when, side="right") - 1, 0)]


def series(run: Run, flow: str, column: str) -> tuple[Floats, Floats]:
    table = run.table("series")
    mine = np.asarray(table.to_numpy("flow")) == flow
    return np.asarray(table.to_numpy("t_s"))[mine], np.nan_to_num(np.asarray(table.to_numpy(column))[mine])


def of_kind(run: Run, kind: str) -> list[dict[str, float]]:
    """The metrics of all flows whose names begin so."""
    return [flow for flow in run.summary["flows"] if flow["flow"].startswith(kind)]


# --- steady state ---------------------------------------------------------------------------------

STEADY_LOSSES = (0.1, 1, 5, 10)


@cache
def steady() -> list[Row]:
    cases = [(rules, loss) for rules in RULES for loss in STEADY_LOSSES]
    runs = run_all(
        scenario(path(f"{loss}%", "10Mbps"), 330, Flow(name="call", media=greedy(f"tfrc:{rules}")), warmup=30)
        for rules, loss in cases
    )
    rows = []
    for (rules, loss), run in zip(cases, runs, strict=True):
        (call,) = of_kind(run, "call")
        p, rtt = (float(values[t > 30].mean()) for t, values in (noted(run, "p"), noted(run, "rtt_ms")))
        size = call["bytes_sent"] / call["packets_sent"] - UDP_IP
        numbers = {
            "p (%)": p * 100,
            "RTT (ms)": rtt,
            "sent (kb/s)": call["packets_sent"] * size * 8 / 300 / KILO,
            "equation (kb/s)": tfrc.throughput(size, rtt / 1e3, p) * 8 / KILO,
        }
        numbers["ratio"] = numbers["sent (kb/s)"] / numbers["equation (kb/s)"]
        rows.append(Row(f"{rules}, {loss:g} % lost", numbers))
    return rows


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


def shares(run: Run, kind: str, count: int) -> Floats:
    """Each flow's rate over its fair share: the normalised throughput."""
    return np.array([flow["receive_rate_bps"] for flow in of_kind(run, kind)]) * 2 * count / CAPACITY / MEGA


@cache
def fairness_runs(queue: str) -> dict[int, list[Run]]:
    runs = run_all([beside(count, QUEUES[queue]) for count in COUNTS], FAIRNESS_SEEDS)
    many = len(FAIRNESS_SEEDS)
    return {count: runs[i * many : (i + 1) * many] for i, count in enumerate(COUNTS)}


@cache
def fairness() -> list[Row]:
    rows = []
    for queue in QUEUES:
        for count, runs in fairness_runs(queue).items():
            calls, tcps = (np.concatenate([shares(run, kind, count) for run in runs]) for kind in ("call", "tcp"))
            links = [run.summary["links"][0] for run in runs]
            sent = sum(flow["packets_sent"] for run in runs for flow in run.summary["flows"])
            lost = sum(link["dropped_queue"] for link in links)
            numbers = {
                "TFRC": float(calls.mean()),
                "TFRC least": float(calls.min()),
                "TFRC most": float(calls.max()),
                "TCP": float(tcps.mean()),
                "TCP least": float(tcps.min()),
                "TCP most": float(tcps.max()),
                "TFRC/TCP": float(calls.mean() / tcps.mean()),
                "utilisation": float(np.mean([link["utilisation"] for link in links])),
                "lost (%)": 100 * lost / sent,
            }
            rows.append(Row(f"{queue}, n = {count}", numbers))
    return rows


CAUSES = {
    "as above": {},
    "no sending jitter": {"sending_jitter": "off"},
    "TCP's least timeout 1 s": {"flows.tcp.tcp.min_rto": "1s"},
    "both": {"sending_jitter": "off", "flows.tcp.tcp.min_rto": "1s"},
    "t_RTO = 2 R in the equation": {"flows.call.media.controller": "tfrc:rfc5348,rto_rtts=2"},
}
"""What may explain how 32 and 32 flows share, one change at a time."""


@cache
def causes() -> list[Row]:
    base = beside(COUNTS[-1], QUEUES["50 packets"])
    rows = []
    for label, changes in CAUSES.items():
        runs = run_all([base.with_changes(changes)], FAIRNESS_SEEDS)
        mean = {kind: np.mean([shares(run, kind, COUNTS[-1]).mean() for run in runs]) for kind in ("call", "tcp")}
        lost = {
            kind: 100 * np.mean([flow["loss_fraction"] for run in runs for flow in of_kind(run, kind)])
            for kind in ("call", "tcp")
        }
        numbers = {
            "TFRC/TCP": float(mean["call"] / mean["tcp"]),
            "TFRC lost (%)": float(lost["call"]),
            "TCP lost (%)": float(lost["tcp"]),
        }
        rows.append(Row(label, numbers))
    return rows


# --- smoothness -----------------------------------------------------------------------------------

SCALES = (0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
SMOOTH_COUNT = 16


def variation(t: Floats, rate: Floats, scale: float, start: float) -> float:
    """Coefficient of variation of the mean rates over windows of `scale` s: deviation over mean."""
    width = round(scale / float(t[1] - t[0]))
    rate = rate[t >= start - 1e-9]
    windows = rate[: len(rate) // width * width].reshape(-1, width).mean(axis=1)
    return float(windows.std() / windows.mean())


@cache
def smoothness_run() -> Run:
    made = beside(SMOOTH_COUNT, QUEUES["125 packets"]).with_changes(bin="100ms")
    return run_all([made])[0]


@cache
def smoothness() -> list[Row]:
    run = smoothness_run()

    def mean(kind: str, scale: float) -> float:
        flows = [str(flow["flow"]) for flow in of_kind(run, kind)]
        return float(np.mean([variation(*series(run, flow, "sending_rate_bps"), scale, 20.0) for flow in flows]))

    rows = []
    for scale in SCALES:
        call, tcp = mean("call", scale), mean("tcp", scale)
        rows.append(Row(f"{scale:g} s", {"TFRC": call, "TCP": tcp, "TFRC/TCP": call / tcp}))
    return rows


# --- steps of the loss ----------------------------------------------------------------------------

STEP_AT, BACK_AT, STEP_END = 60.0, 90.0, 150.0
STEP_SEEDS = tuple(range(1, 31))
BASES = (0.5, 1, 2, 5)


@cache
def step_runs(kind: str) -> list[Run]:
    """1 %, 5 % and 1 % again."""
    link = path({"schedule": [["0s", "1%"], [f"{STEP_AT}s", "5%"], [f"{BACK_AT}s", "1%"]]})
    flow = Flow(name="call", media=greedy("tfrc")) if kind == "tfrc" else Flow(name="call", tcp=download())
    return run_all([scenario(link, STEP_END, flow)], STEP_SEEDS)


def mean_rate(kind: str) -> tuple[Floats, Floats]:
    """The sending rate, a mean over the seeds, bit/s."""
    all_of = [series(run, "call", "sending_rate_bps") for run in step_runs(kind)]
    return all_of[0][0], np.mean([rate for _, rate in all_of], axis=0)


@cache
def steps() -> list[Row]:
    rows = []
    for kind, name in (("tfrc", "TFRC"), ("tcp", "TCP")):
        t, rate = mean_rate(kind)
        smooth = np.convolve(rate, np.ones(5) / 5, mode="full")[: len(rate)]  # the last second
        before, during, after = (
            float(rate[(t >= a) & (t < b)].mean())
            for a, b in ((30.0, STEP_AT), (75.0, BACK_AT), (BACK_AT + 30, STEP_END))
        )
        down = t[(t >= STEP_AT) & (smooth <= (before + during) / 2)]
        up = t[(t >= BACK_AT) & (smooth >= (during + after) / 2)]
        numbers = {
            "at 1 % (kb/s)": before / KILO,
            "at 5 % (kb/s)": during / KILO,
            "1 % again (kb/s)": after / KILO,
            "half-way down (s)": float(down[0]) - STEP_AT,
            "half-way up (s)": float(up[0]) - BACK_AT,
        }
        rows.append(Row(name, numbers))
    return rows


@cache
def persistent_runs(base: float) -> list[Run]:
    """Half of all packets lost from STEP_AT on: a loss event in each round trip."""
    link = path({"schedule": [["0s", f"{base}%"], [f"{STEP_AT}s", "50%"]]})
    return run_all([scenario(link, STEP_AT + 5, Flow(name="call", media=greedy("tfrc")))], STEP_SEEDS)


@cache
def persistent() -> list[Row]:
    rows = []
    for base in BASES:
        needed = []
        for run in persistent_runs(base):
            t, x = noted(run, "x_bps")
            halved = t[(t >= STEP_AT) & (x <= float(at(t, x, STEP_AT)) / 2)]
            needed.append((float(halved[0]) - STEP_AT) / RTT)
        numbers = {"least": min(needed), "median": float(np.median(needed)), "most": max(needed)}
        rows.append(Row(f"{base:g} % before", numbers))
    return rows


@cache
def relief_runs(discounting: bool) -> list[Run]:
    """No loss any more from STEP_AT on."""
    link = path({"schedule": [["0s", "1%"], [f"{STEP_AT}s", "0%"]]})
    controller = f"tfrc:rfc5348,discounting={str(discounting).lower()}"
    return run_all([scenario(link, STEP_AT + 20, Flow(name="call", media=greedy(controller)))], STEP_SEEDS[:10])


def packets_a_round_trip(run: Run, times: Floats) -> Floats:
    t, x = noted(run, "x_bps")
    (call,) = of_kind(run, "call")
    size = call["bytes_sent"] / call["packets_sent"] - UDP_IP
    return at(t, x, times) / 8 / size * RTT


@cache
def relief() -> list[Row]:
    """Increase of X, in packets a round trip and round trip, over five seconds."""
    starts = np.arange(STEP_AT + 0.5, STEP_AT + 15.0, 0.1)
    rows = []
    for discounting in (True, False):
        slopes = np.array(
            [
                (packets_a_round_trip(run, starts + 5.0) - packets_a_round_trip(run, starts)) / (5.0 / RTT)
                for run in relief_runs(discounting)
            ]
        )
        numbers = {"mean of the first": float(slopes[:, 0].mean()), "most": float(slopes.max())}
        rows.append(Row("with discounting" if discounting else "without", numbers))
    return rows


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


def _voice_flow(kind: str, *, talk: bool) -> Flow:
    if kind == "tcp":
        return Flow(name="call", tcp=download())
    return Flow(name="call", media=voice(kind) if talk else greedy(kind, SIZES["voice"]))


@cache
def voice_runs(kind: str, talk: bool) -> dict[float, list[Run]]:
    made = [
        scenario(path(f"{loss}%"), 220, _voice_flow(kind, talk=talk), warmup=20, record="summary")
        for loss in VOICE_LOSSES
    ]
    runs = run_all(made, VOICE_SEEDS)
    many = len(VOICE_SEEDS)
    return {loss: runs[i * many : (i + 1) * many] for i, loss in enumerate(VOICE_LOSSES)}


def _mean(runs: list[Run], kind: str, key: str) -> float:
    return float(np.mean([flow[key] for run in runs for flow in of_kind(run, kind)]))


@cache
def voip() -> list[Row]:
    rows = []
    for loss in VOICE_LOSSES:
        columns = {"tfrc": "tfrc", "tfrc-sp": "tfrc-sp", NO_GAP: "tfrc-sp, no gap", "tcp": "TCP"}
        numbers = {
            f"{column} (kb/s)": _mean(voice_runs(kind, talk=False)[loss], "call", "sending_rate_bps") / KILO
            for kind, column in columns.items()
        }
        for kind in VOICE_KINDS:
            runs = voice_runs(kind, talk=True)[loss]
            spoken = 200 * 50 * len(runs)
            skipped = sum(run.metrics()["sender_skipped_frames"] for run in runs)
            numbers[f"voice not sent, {kind} (%)"] = 100 * skipped / spoken
            numbers[f"waits, {kind} (ms)"] = _mean(runs, "call", "sender_delay_ms_p50")
        rows.append(Row(f"{loss:g} % lost", numbers))
    return rows


SMALL_QUEUES = {"in packets": Queue(packets=50), "in bytes": Queue(bytes="75kB")}
SMALL_CAPACITIES = (4, 6)
SMALL_COUNT = 20


@cache
def small_runs(kind: str, queue: str, capacity: int) -> list[Run]:
    """Flows of small packets beside as many TCP flows with full ones."""
    step = {"count": SMALL_COUNT, "start_step": "53ms"}
    made = scenario(
        path(capacity=f"{capacity}Mbps", queue=SMALL_QUEUES[queue]),
        220,
        Flow(name="call", media=greedy(kind, SIZES["voice"]), **step),
        Flow(name="tcp", start="31ms", tcp=download(), **step),
        warmup=20,
        record="summary",
    )
    return run_all([made], VOICE_SEEDS)


@cache
def small() -> list[Row]:
    rows = []
    for kind in VOICE_KINDS:
        for queue in SMALL_QUEUES:
            for capacity in SMALL_CAPACITIES:
                runs = small_runs(kind, queue, capacity)
                call, tcp = (_mean(runs, flow, "receive_rate_bps") / KILO for flow in ("call", "tcp"))
                numbers = {
                    "small (kb/s)": call,
                    "TCP (kb/s)": tcp,
                    "small/TCP": call / tcp,
                    "small lost (%)": 100 * _mean(runs, "call", "loss_fraction"),
                    "TCP lost (%)": 100 * _mean(runs, "tcp", "loss_fraction"),
                }
                rows.append(Row(f"{kind}, queue {queue}, {capacity} Mb/s", numbers))
    return rows


EXPERIMENTS = {
    one.name: one
    for one in (
        Experiment("steady", {"p (%)": 0.01, "RTT (ms)": 0.1, "sent (kb/s)": 1, "equation (kb/s)": 1, "ratio": 0.01}, steady),
        Experiment("fairness", {"TFRC": 0.01, "TFRC least": 0.01, "TFRC most": 0.01, "TCP": 0.01, "TCP least": 0.01, "TCP most": 0.01, "TFRC/TCP": 0.01, "lost (%)": 0.01}, fairness),
        Experiment("causes", {"TFRC/TCP": 0.01, "TFRC lost (%)": 0.1, "TCP lost (%)": 0.1}, causes),
        Experiment("smoothness", {"TFRC": 0.01, "TCP": 0.01, "TFRC/TCP": 0.01}, smoothness),
        Experiment("steps", {"at 1 % (kb/s)": 10, "at 5 % (kb/s)": 10, "1 % again (kb/s)": 10, "half-way down (s)": 0.2, "half-way up (s)": 0.2}, steps),
        Experiment("persistent", {"least": 0.1, "median": 0.1, "most": 0.1}, persistent),
        Experiment("relief", {"mean of the first": 0.001, "most": 0.001}, relief),
        Experiment("voip", {"tfrc (kb/s)": 1, "tfrc-sp (kb/s)": 1, "tfrc-sp, no gap (kb/s)": 1, "TCP (kb/s)": 1, "voice not sent, tfrc (%)": 0.1, "waits, tfrc (ms)": 1, "voice not sent, tfrc-sp (%)": 0.1, "waits, tfrc-sp (ms)": 1}, voip),
        Experiment("small", {"small (kb/s)": 1, "TCP (kb/s)": 1, "small/TCP": 0.01, "small lost (%)": 0.1, "TCP lost (%)": 0.1}, small),
    )
}  # fmt: skip
