"""Links over satellites in low Earth orbit, whole runs of them; the process itself is tested against its recordings in Rust."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tidegate
from tidegate import Scenario, ScenarioError


def made(capacity: dict[str, Any], **link: Any) -> Scenario:
    """Pings every 20 ms up a dish."""
    cable = {"name": "dish", "capacity": {"leo": {"median": "10Mbps", **capacity}}, **link}
    flow = {"name": "pings", "udp": {"rate": "24kbps", "packet_size": "60B"}}
    return Scenario.from_dict(
        {"name": "x", "duration": "150s", "sending_jitter": "off", "links": [cable], "flows": [flow]}
    )


def rates(run: tidegate.Run, link: str) -> tuple[np.ndarray, np.ndarray]:
    """The capacity that a link had, bin by bin."""
    truth = run.table("truth")
    mine = truth.to_numpy("link") == link
    return truth.to_numpy("t_s")[mine], truth.to_numpy("capacity_bps")[mine]


def test_a_way_through_the_sky_lasts_15_s_and_has_one_delay() -> None:
    run = tidegate.run(made({}, delay="5ms"), record="packets")
    table = run.table("packets")
    sent, arrived = table.to_numpy("sent_s"), table.to_numpy("arrived_s")
    t, rate = rates(run, "dish")
    (changed,) = np.nonzero(np.diff(rate[: len(rate)]))
    # a change inside a bin makes two steps of it
    begins = [t[at + 1] for at in changed if at - 1 not in changed]
    assert 9 <= len(begins) <= 11
    assert np.allclose(np.diff(begins), 15, atol=0.21)
    delay = (arrived - sent) * 1000
    seen = set()
    for begin in begins[:-1]:
        inside = (sent > begin + 0.3) & (sent < begin + 14.7)
        some = delay[inside & ~np.isnan(delay)]
        assert len(some) > 700
        # 60 bytes at what the link carries then
        service = 480 / rate[np.searchsorted(t, begin + 5)] * 1000
        assert np.ptp(some) < 1e-3
        assert some[0] - service - 5 >= 19 / 2
        seen.add(round(some[0] - service, 3))
    assert len(seen) == len(begins) - 1


def test_both_ways_change_together_and_all_controllers_meet_the_same_sky() -> None:
    both = [tidegate.run(made({}, service=service), 3) for service in ("fifo", "managed")]
    assert both[0].digest == both[1].digest
    t, there = rates(both[0], "dish")
    _, back = rates(both[0], "dish.back")
    assert np.array_equal(np.nonzero(np.diff(there))[0], np.nonzero(np.diff(back))[0])
    assert not np.array_equal(there, back)
    one, other = (
        tidegate.run(Scenario.load("starlink", {"flows.call.media.controller": name})) for name in ("gcc", "tfrc")
    )
    assert np.array_equal(rates(one, "dish")[1], rates(other, "dish")[1])
    assert not np.array_equal(rates(one, "dish")[1], rates(tidegate.run("starlink", seed=2), "dish")[1])
    assert len(t) == 750


def test_losses_are_at_changes_and_a_link_may_have_its_own() -> None:
    lossy = made({"handover": "1s", "handover_loss": 1, "loss": 0, "interval": "10s"})
    run = tidegate.run(lossy, record="packets")
    table = run.table("packets")
    sent, lost = table.to_numpy("sent_s"), np.isnan(table.to_numpy("arrived_s"))
    known = sent < 149
    # a second in ten
    assert lost[known].mean() == pytest.approx(0.1, abs=0.008)
    bursts = np.diff(np.flatnonzero(np.diff(lost[known].astype(int)) == 1))
    assert set(bursts) <= {499, 500, 501}
    own = tidegate.run(lossy.with_changes({"links.dish.loss": 0.25}))
    assert own.metrics()["loss_fraction"] == pytest.approx(0.25, abs=0.02)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"median": "0bps"}, r'capacity\.leo\.median: found "0Mbps"; expected more than zero'),
        ({"interval": "0s"}, r'capacity\.leo\.interval: found "0s"; expected more than zero'),
        ({"handover": "15s"}, r'capacity\.leo\.handover: found "15s"; expected less than the interval \(15s\)'),
        ({"sigma": 3}, r"capacity\.leo\.sigma: found 3; expected a number of at most 2"),
        ({"loss": "101%"}, r'capacity\.leo\.loss: found "101%"; a fraction lies between 0 and 1'),
    ],
)
def test_what_makes_no_sense_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        made(change).check()
