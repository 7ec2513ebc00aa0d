"""Policers and shapers of links, whole runs of them; the buckets themselves are tested to the nanosecond in Rust."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tidegate
from tidegate import Scenario, ScenarioError

SIZE = 1000
SERVICE = SIZE * 8 / 100e6  # seconds that a packet takes at 100 Mbit/s


def made(discipline: Any, *, rate: str = "4Mbps", size: int = SIZE, duration: str = "20s", **link: Any) -> Scenario:
    """Packets at a constant rate over a link of 100 Mbit/s."""
    cable = {"name": "cable", "capacity": "100Mbps", "delay": "10ms", "discipline": discipline, "back": False, **link}
    flow = {"name": "flow", "udp": {"rate": rate, "packet_size": f"{size}B"}}
    return Scenario.from_dict(
        {"name": "x", "duration": duration, "sending_jitter": "off", "links": [cable], "flows": [flow]}
    )


def packets(run: tidegate.Run) -> tuple[np.ndarray, np.ndarray]:
    """When each packet was sent, and when it arrived; NaN for never."""
    table = run.table("packets")
    return table.to_numpy("sent_s"), table.to_numpy("arrived_s")


def test_a_policer_loses_and_delays_nothing() -> None:
    """Exactly rate t + burst passes, and takes as long as on an idle link."""
    run = tidegate.run(made({"name": "policer", "rate": "2Mbps", "burst": "60kB"}), record="packets")
    sent, arrived = packets(run)
    passed = ~np.isnan(arrived)
    assert np.allclose((arrived - sent)[passed], 0.010 + SERVICE, atol=1e-9)
    # twice the rate comes: 60 packets are ahead after 120, and then every other one is lost
    first = int(np.argmin(passed))
    assert first == 119, "before the 120th, 59 x 1000 B are gone that did not come in"
    for count in (500, 2000, 9900):
        allowed = (2e6 * sent[count - 1] / 8 + 60_000) / SIZE
        assert allowed - 1 < passed[:count].sum() <= allowed
    metrics = run.metrics()
    assert metrics["loss_fraction"] == pytest.approx(0.5, abs=0.01)
    assert metrics["queueing_delay_ms_mean"] == 0
    (link,) = run.summary["links"]
    assert link["capacity_bps"] == 2e6, "what it lets pass in the long run"
    assert 0 <= (~passed).sum() - link["dropped_queue"] <= 3, "the others are under way"


def test_a_shaper_delays_and_its_queue_is_in_time_at_its_rate() -> None:
    """The burst passes as it comes; then the queue of 300 ms fills, at the rate of the shaper."""
    run = tidegate.run(made({"name": "shaper", "rate": "2Mbps", "burst": "60kB"}), record="packets")
    sent, arrived = packets(run)
    delay = arrived - sent - 0.010 - SERVICE
    assert np.allclose(delay[:119], 0, atol=1e-9)
    # 75 kB at 2 Mbit/s; what comes in waits at most for that much, less its own 4 ms and with those of the one that goes
    assert 0.295 < np.nanmax(delay) < 0.3
    # 4 ms apart, exactly
    late = np.diff(np.sort(arrived[sent > 3]))
    late = late[~np.isnan(late)]
    assert np.allclose(late, 0.004, atol=2e-9)
    assert len(late) > 4000


def test_a_peak_rate_spreads_the_burst() -> None:
    """Packets that come at 100 Mbit/s leave at the peak rate until the bucket is empty, and then at the rate."""
    bucket = {"name": "shaper", "rate": "1Mbps", "burst": "50kB", "peak_rate": "5Mbps", "mtu": "1000B"}
    run = tidegate.run(made(bucket, rate="80Mbps", duration="3s", queue={}), record="packets")
    _, arrived = packets(run)
    gaps = np.diff(arrived[:400])
    # (50 kB - 1 kB) / (1 - 1/5) of the first bytes go at the peak rate: each takes 1.6 ms, in which 200 B come in
    assert np.allclose(gaps[:60], 0.0016, atol=2e-9)
    assert np.allclose(gaps[62:], 0.008, atol=2e-9)
    # a policer lets as much pass, and the peak rate is what it says
    police = {**bucket, "name": "policer"}
    sent, arrived = packets(tidegate.run(made(police, rate="80Mbps", duration="3s"), record="packets"))
    assert ((~np.isnan(arrived))[sent < 0.0795]).sum() == 1 + int(0.0795 / 0.0016)


def test_a_shaper_manages_its_queue_by_another_discipline() -> None:
    """CoDel behind the bucket keeps the wait of what gives way around its target; drop-tail lets it fill."""
    waits = {}
    for inner in ("drop-tail", "codel"):
        cable: dict[str, Any] = {"name": "cable", "capacity": "100Mbps", "delay": "20ms"}
        cable["discipline"] = {"name": "shaper", "rate": "5Mbps", "burst": "3kB", "discipline": inner}
        flow = {"name": "flow", "tcp": {}}
        run = tidegate.run(Scenario.from_dict({"name": "x", "duration": "20s", "links": [cable], "flows": [flow]}))
        assert run.metrics()["receive_rate_bps"] > 4e6
        waits[inner] = run.metrics()["queueing_delay_ms_mean"]
    assert waits["codel"] < 20, waits
    assert waits["drop-tail"] > 60, waits


def test_behind_a_radio_the_slower_of_the_two_counts(tmp_path: Any) -> None:
    """Opportunities that come while there are no tokens are lost, and tokens that come while there is no opportunity are kept."""
    # 1504 bytes every 2 ms, 6 Mbit/s, in the first half of each second, and one at its end
    (tmp_path / "half.trace").write_text("".join(f"{at}\n" for at in [*range(2, 501, 2), 1000]), "utf-8")
    # half of the time the bucket is emptied at 1 Mbit/s, and at the beginning of each such half it is full: 2000 B more
    for rate, expected in (("1Mbps", 0.5e6 + 16e3), ("8Mbps", 251 * 12e3)):
        scenario = made({"name": "shaper", "rate": rate, "burst": "2kB"}, rate="9Mbps", size=1500)
        data = scenario.to_dict()
        data["links"][0] |= {"capacity": {"trace": "half.trace"}, "queue": {"packets": 100}}
        run = tidegate.run(Scenario.from_dict(data, tmp_path))
        assert run.metrics()["receive_rate_bps"] == pytest.approx(expected, rel=0.003), rate


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rate": "0bps"}, r'cable\.discipline\.rate: found "0Mbps"; expected more than zero'),
        ({"burst": "0B"}, r'cable\.discipline\.burst: found "0B"; expected a number of at least 1'),
        ({"peak_rate": "1Mbps"}, r'cable\.discipline\.peak_rate: found "1Mbps"; expected at least the rate \(2Mbps\)'),
        ({"discipline": {"name": "shaper"}}, r"cable\.discipline\.discipline: found .*expected one of drop-tail"),
        ({"discipline": {"name": "codel", "target": "0s"}}, r"discipline\.discipline\.target: found .*more than zero"),
        ({"rate": None}, r"cable\.discipline\.rate"),
    ],
)
def test_what_makes_no_sense_is_refused(change: dict[str, Any], message: str) -> None:
    """With its place, what was found and what would be right."""
    bucket = {"name": "policer", "rate": "2Mbps", "burst": "60kB", **change}
    with pytest.raises(ScenarioError, match=message):
        made({key: value for key, value in bucket.items() if value is not None}).check()


def test_a_bucket_that_holds_no_packet_warns() -> None:
    """It drops all of that size."""
    run = tidegate.run(made({"name": "shaper", "rate": "2Mbps", "burst": "999B"}))
    assert run.metrics()["packets_received"] == 0
    told = "links.cable.discipline.burst: 999 bytes are too few for a packet of 1000 bytes: each packet of that size is dropped"
    assert run.warnings == [told]
