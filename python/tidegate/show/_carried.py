"""Contenders that carried too little to be compared: an idle sender must not win by its low delay."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from tidegate.results.metrics import finite, metric
from tidegate.results.stats import could_carry
from tidegate.show import view
from tidegate.show.view import RunLike

RATES = frozenset({"receive_rate_bps", "goodput_bps", "utilisation"})
"""Metrics in which an idle sender cannot be the best, so that all contenders are compared."""


def too_little(groups: Mapping[str, Sequence[RunLike]]) -> dict[str, str]:
    """Contenders that carried too little for comparisons of delay, loss and time without a picture, with reasons.

    The yardstick is the best rate among contenders that lost at most a tenth, but at most an equal share of the
    tightest link on the path: a contender that takes more than its share is no yardstick for the others.
    """
    rates = {label: view.mean(runs, "receive_rate_bps") for label, runs in groups.items()}
    losses = {label: view.mean(runs, "loss_fraction") for label, runs in groups.items()}
    finite_rates = {label: rate for label, rate in rates.items() if math.isfinite(rate)}
    shares = [share for runs in groups.values() for run in runs if (share := _equal_share(run)) is not None]
    possible, enough = could_carry(finite_rates, losses, math.fsum(shares) / len(shares) if shares else math.inf)
    show, unit = metric("receive_rate_bps").show, metric("receive_rate_bps").unit
    why = f"less than half of the possible {show(possible)}: delay, loss and time without a picture are not compared"
    return {label: f"carried {show(rate)} {unit}, {why}" for label, rate in finite_rates.items() if rate < enough}


def _equal_share(run: RunLike) -> float | None:
    """The subject's equal share (bit/s) of its tightest link among the flows on the busiest link; `None` if unknown."""
    flow = view.flow_summary(run, view.subject_of(run))
    rate, utilisation = finite(flow.get("receive_rate_bps")), finite(flow.get("utilisation"))
    if not rate or not utilisation:
        return None
    sharing = {str(name) for name in run.summary.get("fairness", {}).get("flows", ())}
    sharing |= {str(entry["flow"]) for entry in run.summary["flows"] if entry["kind"] == "udp"}
    return rate / utilisation / len(sharing | {str(flow["flow"])})
