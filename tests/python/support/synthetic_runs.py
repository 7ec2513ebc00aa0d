"""Made-up runs in the shape of real ones: a fluid link with a queue, and two toy controllers.

For tests of figures and reports only: the numbers have the look of a recording, not its truth.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

import numpy as np

BIN = 0.2
PACKET_BITS = 1200 * 8


class SyntheticRun:
    """A run with a summary and tables, nothing else."""

    def __init__(self, summary: dict[str, Any], tables: dict[str, dict[str, np.ndarray]]) -> None:
        self.summary = summary
        self._tables = tables

    @property
    def digest(self) -> str:
        return str(self.summary["digest"])

    def table(self, name: str) -> dict[str, np.ndarray]:
        return self._tables[name]


def _aggressive(target: float, delay: float, loss: float, rng: np.random.Generator) -> float:
    return target * 0.85 if loss > 0.1 else target * 1.03 if loss < 0.02 else target


def _careful(target: float, delay: float, loss: float, rng: np.random.Generator) -> float:
    return target * 0.88 if delay > 60 else target * (1.02 + 0.01 * rng.random())


def _constant(target: float, delay: float, loss: float, rng: np.random.Generator) -> float:
    return 1e6


CONTROLLERS: dict[str, Callable[[float, float, float, np.random.Generator], float]] = {
    "gcc": _careful,
    "fixed": _constant,
    "nada": _aggressive,
    "mine": lambda target, delay, loss, rng: _careful(target, delay * 0.7, loss, rng),
}


def run(
    controller: str = "gcc",
    seed: int = 1,
    *,
    duration: float = 60.0,
    flows: int = 2,
    wandering: bool = False,
    packets: bool = False,
) -> SyntheticRun:
    """One run: flow ``subject`` under ``controller``; others come in as cross traffic from 20 s."""
    rng = np.random.default_rng(seed)
    n = round(duration / BIN)
    t = np.arange(n) * BIN
    capacity = np.select([t < 0.25 * duration, t < 0.6 * duration], [2.5e6, 1.2e6], 3.0e6)
    if wandering:
        capacity = np.clip(2e6 * np.exp(np.cumsum(rng.normal(0, 0.06, n))), 0.2e6, 6e6)
    names = ["subject", *(f"cross-{i}" for i in range(1, flows))]
    rate = np.zeros((flows, n))
    delay, loss, queue = np.zeros(n), np.zeros(n), np.zeros(n)
    target, backlog, targets = 3e5, 0.0, np.zeros(n)
    step = CONTROLLERS[controller]
    for i in range(n):
        rate[0, i] = target * (1 + rng.normal(0, 0.04))
        for j in range(1, flows):
            if t[i] >= 20 + 5 * (j - 1) and t[i] < 45:
                rate[j, i] = (0.5e6 / (flows - 1)) * (1 + rng.normal(0, 0.1))
        backlog += (rate[:, i].sum() - capacity[i]) * BIN
        limit = capacity[i] * 0.3
        over = max(backlog - limit, 0.0)
        backlog = min(max(backlog, 0.0), limit)
        loss[i] = over / (rate[:, i].sum() * BIN)
        delay[i] = 20 + backlog / capacity[i] * 1e3 + rng.exponential(1.5)
        queue[i] = backlog / 8
        targets[i] = target
        target = min(max(step(target, delay[i], loss[i], rng), 5e4), 4e6)
    received = rate * (1 - loss)
    sent = rate * BIN / PACKET_BITS
    arrived = np.round(sent * (1 - loss))
    lost = np.round(sent * loss)
    active = rate > 0

    def each(values: np.ndarray) -> np.ndarray:
        return np.where(active, np.broadcast_to(values, rate.shape), np.nan).ravel()

    tables: dict[str, dict[str, np.ndarray]] = {
        "flows": {"flow": np.array(names, dtype=object)},
        "links": {"link": np.array(["bottleneck", "bottleneck.back"], dtype=object)},
        "series": {
            "t_s": np.tile(t, flows),
            "flow": np.repeat(np.array(names, dtype=object), n),
            "sending_rate_bps": rate.ravel(),
            "receive_rate_bps": received.ravel(),
            "goodput_bps": (received * 0.97).ravel(),
            "one_way_delay_ms_mean": each(delay),
            "one_way_delay_ms_max": each(delay * 1.15),
            "queueing_delay_ms_mean": each(delay - 20),
            "packets_sent": np.round(sent).ravel(),
            "packets_lost": lost.ravel(),
            "packets_arrived": arrived.ravel(),
        },
        "decisions": {
            "t_s": t,
            "flow": np.full(n, "subject", dtype=object),
            "target_bps": targets,
            "pacing_bps": targets * 2.5,
            "window_bytes": np.full(n, np.nan),
        },
        "internals": {
            "t_s": np.tile(t, 2),
            "flow": np.full(2 * n, "subject", dtype=object),
            "name": np.repeat(np.array(["trend", "threshold"], dtype=object), n),
            "value": np.concatenate([np.gradient(delay), np.full(n, 12.5)]),
        },
        "queues": {
            "t_s": t,
            "link": np.full(n, "bottleneck", dtype=object),
            "packets": np.round(queue / 1200),
            "bytes": queue,
        },
        "truth": {
            "t_s": t,
            "link": np.full(n, "bottleneck", dtype=object),
            "capacity_bps": capacity,
        },
    }
    if packets:
        count = 5000
        when = np.sort(rng.uniform(0, duration, count))
        d = np.interp(when, t, delay) / 1e3
        d[rng.random(count) < 0.01] = np.nan
        tables["packets"] = {
            "flow": np.full(count, "subject", dtype=object),
            "kind": np.full(count, "video", dtype=object),
            "sent_s": when,
            "arrived_s": when + d,
        }
    entries = []
    for j, name in enumerate(names):
        on = active[j]
        entries.append(
            {
                "flow": name,
                "kind": "media" if j == 0 else "tcp",
                "controller": controller if j == 0 else "cubic",
                "sending_rate_bps": rate[j].mean(),
                "receive_rate_bps": received[j].mean(),
                "goodput_bps": received[j].mean() * 0.97,
                "packets_sent": int(sent[j].sum()),
                "loss_fraction": float(loss[on].mean()) if on.any() else None,
                "one_way_delay_ms_mean": float(delay[on].mean()) if on.any() else None,
                "one_way_delay_ms_p50": float(np.median(delay[on])) if on.any() else None,
                "one_way_delay_ms_p95": float(np.quantile(delay[on], 0.95)) if on.any() else None,
                "queueing_delay_ms_p95": float(np.quantile(delay[on] - 20, 0.95)) if on.any() else None,
                "frame_delay_ms_p95": None if j else float(np.quantile(delay, 0.95) + 12),
                "freezes": None if j else 2,
                "without_picture_s": None if j else 0.8,
                "utilisation": float(received[j].sum() / capacity.sum()),
                "convergence_time_s": None,
            }
        )
    carried = received.sum(axis=0).mean()
    summary = {
        "name": "synthetic",
        "seed": seed,
        "duration_s": duration,
        "digest": f"{seed:016x}{zlib.crc32(controller.encode()):08x}",
        "flows": entries,
        "links": [
            {
                "link": "bottleneck",
                "capacity_bps": float(capacity.mean()),
                "carried_bps": float(carried),
                "utilisation": float(carried / capacity.mean()),
                "dropped_queue": int(lost.sum()),
                "dropped_wire": 0,
                "marked": 0,
            },
            {
                "link": "bottleneck.back",
                "capacity_bps": None,
                "carried_bps": 2e4,
                "utilisation": None,
                "dropped_queue": 0,
                "dropped_wire": 0,
                "marked": 0,
            },
        ],
        "fairness": {"jain_1s": 0.9, "jain_5s": 0.93, "jain_20s": None},
    }
    return SyntheticRun(summary, tables)


def under(controller: str, seed: int = 1, **kwargs: Any) -> SyntheticRun:
    """A run that says it was under any controller."""
    made = run("gcc", seed, **kwargs)
    made.summary["flows"][0]["controller"] = controller
    return made


def comparison(
    controllers: tuple[str, ...] = ("gcc", "fixed"), seeds: int = 5, **kwargs: Any
) -> dict[str, list[SyntheticRun]]:
    """Runs of several controllers over seeds 1 to ``seeds``."""
    return {name: [run(name, seed, **kwargs) for seed in range(1, seeds + 1)] for name in controllers}
