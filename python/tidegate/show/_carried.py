"""Who carried enough to be compared: nobody is best by not sending."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from tidegate.results.metrics import finite, metric
from tidegate.results.stats import could_carry
from tidegate.show import view
from tidegate.show.view import RunLike

RATES = frozenset({"receive_rate_bps", "goodput_bps", "utilisation"})
"""What an idle sender does not win: in these everybody is compared."""


def too_little(groups: Mapping[str, Sequence[RunLike]]) -> dict[str, str]:
    """Those that carried too little for their delay, loss and freezes to be compared, and how little, in words.

    What could be carried is the rate of the best contender that lost at most a tenth, and no more than an equal share
    of the tightest link on the way: who takes more than that is no measure for the others.
    """
    rates = {label: view.mean(runs, "receive_rate_bps") for label, runs in groups.items()}
    losses = {label: view.mean(runs, "loss_fraction") for label, runs in groups.items()}
    known = {label: rate for label, rate in rates.items() if math.isfinite(rate)}
    shares = [share for runs in groups.values() for run in runs if (share := _equal_share(run)) is not None]
    most, enough = could_carry(known, losses, math.fsum(shares) / len(shares) if shares else math.inf)
    show, unit = metric("receive_rate_bps").show, metric("receive_rate_bps").unit
    why = f"less than half of the {show(most)} that could be: its delay, loss and freezes are not compared"
    return {label: f"carried {show(rate)} {unit}, {why}" for label, rate in known.items() if rate < enough}


def _equal_share(run: RunLike) -> float | None:
    """What the subject gets of the tightest link on its way if all that share the busiest one get the same (bit/s)."""
    flow = view.flow_summary(run, view.subject_of(run))
    rate, utilisation = finite(flow.get("receive_rate_bps")), finite(flow.get("utilisation"))
    if not rate or not utilisation:
        return None
    sharing = {str(name) for name in run.summary.get("fairness", {}).get("flows", ())}
    sharing |= {str(one["flow"]) for one in run.summary["flows"] if one["kind"] == "udp"}
    return rate / utilisation / len(sharing | {str(flow["flow"])})
