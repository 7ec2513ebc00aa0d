"""TFRC: its formulas against vectors, its rate through the whole engine, its halves by hand, its queue at the sender."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

import tidegate
from support import shared
from tidegate import Arrived, Audio, Flow, Limits, Link, Media, Queue, Report, Run, Scenario, tfrc, wire
from tidegate.scenario import shipped


def _network(
    media: Media, *, capacity: str = "10Mbps", loss: float = 0.0, duration: str = "60s", **keys: object
) -> Run:
    link = Link(name="wire", from_="a", to="b", capacity=capacity, delay="40ms", queue=Queue(time="300ms"), loss=loss)
    flow = Flow(name="call", from_="a", to="b", media=media)
    return tidegate.run(Scenario(name="tfrc", duration=duration, links=[link], flows=[flow], **keys))


def _internal(run: Run, name: str, after: float) -> float:
    """The mean of what a controller has said by this name after so many seconds."""
    table = run.table("internals")
    wanted = (table.to_numpy("name") == name) & (table.to_numpy("t_s") > after)
    return float(table.to_numpy("value")[wanted].mean())


class TestFormulas:
    def test_the_equation_both_ways(self) -> None:
        vectors = json.loads((shared() / "vectors" / "tfrc_equation.json").read_text())
        for segment, rtt, p, one, two in vectors["rows"]:
            assert tfrc.throughput(segment, rtt, p) == pytest.approx(one, rel=1e-9)
            assert tfrc.throughput(segment, rtt, p, b=2) == pytest.approx(two, rel=1e-9)
            assert tfrc.loss_event_rate(segment, rtt, one) == pytest.approx(p, rel=1e-9)
            assert tfrc.loss_event_rate(segment, rtt, two, b=2, t_rto_s=4 * rtt) == pytest.approx(p, rel=1e-9)

    def test_the_mean_interval(self) -> None:
        vectors = json.loads((shared() / "vectors" / "tfrc_wali.json").read_text())
        for case in vectors["cases"]:
            mean = tfrc.mean_interval(case["intervals_newest_first_I0_open"])
            assert mean == pytest.approx(case["i_mean"], rel=1e-9)
            assert 1 / mean == pytest.approx(case["p"], rel=1e-9)

    def test_the_simple_form_of_section_3_1(self) -> None:
        for p in (1e-4, 0.01, 0.3):
            f = math.sqrt(2 * p / 3) + 12 * math.sqrt(3 * p / 8) * p * (1 + 32 * p * p)
            assert tfrc.throughput(1460, 0.1, p) == pytest.approx(1460 / (0.1 * f), rel=1e-12)
        assert tfrc.throughput(1460, 0.1, 0) == math.inf

    def test_discounting_as_section_5_5_writes_it(self) -> None:
        weights = [1.0 if i < 4 else 2 * (8 - i) / 10 for i in range(8)]
        rng = np.random.default_rng(1)
        for _ in range(200):
            closed = rng.integers(1, 400, rng.integers(1, 12)).astype(float)
            kept = rng.uniform(0.1, 1, len(closed))
            n = min(8, len(closed))
            i, d = [float(rng.integers(1, 4000)), *closed], [1.0, *kept]
            total = sum(i[k] * weights[k - 1] * d[k] for k in range(1, n + 1))
            mean = total / sum(weights[k - 1] * d[k] for k in range(1, n + 1))
            df = max(2 * mean / i[0], 0.25) if i[0] > 2 * mean else 1.0
            total0 = i[0] * weights[0] + sum(i[k] * weights[k] * d[k] * df for k in range(1, n))
            weight0 = weights[0] + sum(weights[k] * d[k] * df for k in range(1, n))
            assert tfrc.discount_factor(i, discounts=list(kept)) == pytest.approx(df, rel=1e-12)
            assert tfrc.mean_interval(i, discounting=True, discounts=list(kept)) == pytest.approx(
                max(total0 / weight0, mean), rel=1e-12
            )
        assert tfrc.mean_interval([10.0]) == math.inf

    @pytest.mark.parametrize(
        ("call", "message"),
        [
            (lambda: tfrc.throughput(0, 1, 0.1), "segment_bytes: found 0; expected a number of more than 0"),
            (lambda: tfrc.throughput(1, math.nan, 0.1), "rtt_s: found NaN; expected"),
            (lambda: tfrc.loss_event_rate(1, 1, 0), "rate: found 0; expected a number of more than 0"),
            (lambda: tfrc.mean_interval([]), "intervals: found none; expected at least the open interval I_0"),
            (lambda: tfrc.mean_interval([1, 0]), r"intervals\[1\]: found 0; expected a number of more than 0"),
            (lambda: tfrc.mean_interval([1, 2], discounts=[]), "discounts: found 0 values; expected 1, one for each"),
            (lambda: tfrc.discount_factor([1, 2], threshold=2), "threshold: found 2; expected .* at most 1"),
            (lambda: tfrc.initial_window(-1), "mss_bytes: found -1; expected a number of more than 0"),
        ],
    )
    def test_bad_numbers_are_named(self, call: object, message: str) -> None:
        with pytest.raises(ValueError, match=message):
            call()  # type: ignore[operator]


class TestSteadyState:
    @pytest.mark.parametrize("loss", [0.01, 0.05])
    @pytest.mark.parametrize("controller", ["tfrc", "tfrc:rfc3448"])
    def test_the_mean_rate_is_the_equations_at_the_measured_p_and_round_trip(
        self, controller: str, loss: float
    ) -> None:
        video = {"source": "greedy", "min": "1kbps", "max": "10Mbps"}
        media = Media(controller=controller, min_rate="1kbps", video=video)
        run = _network(media, loss=loss, duration="330s", warmup="30s", seed=3)
        p, rtt = _internal(run, "p", 30), _internal(run, "rtt_ms", 30) / 1e3
        metrics = run.metrics()
        size = metrics["bytes_sent"] / metrics["packets_sent"] - 28
        sent = metrics["packets_sent"] * size / 300
        assert sent == pytest.approx(tfrc.throughput(size, rtt, p), rel=0.15)
        # one packet to an event, nearly: few events have a second loss within the round trip
        assert p == pytest.approx(loss, rel=0.2)
        assert rtt == pytest.approx(0.081, rel=0.02)
        # and what may be sent leaves at once: the encoder follows
        assert metrics["sender_delay_ms_p95"] < 100


class TestAtTheSender:
    """A source that does not adapt, before a controller that has less for it: Vardhan's table 4 in small."""

    @pytest.mark.parametrize("limit", [0.5, 2.0])
    def test_what_waits_is_bounded_counted_and_not_in_the_delay_of_the_network(self, limit: float) -> None:
        media = Media(
            controller="tfrc",
            min_rate="1kbps",
            max_rate="2Mbps",
            video=False,
            audio=Audio(rate="448kbps", interval="20ms"),
            queue_limit=f"{limit}s",
        )
        run = _network(media, capacity="300kbps", duration="120s", warmup="20s")
        metrics = run.metrics()
        sent, skipped = metrics["packets_sent"], metrics["sender_skipped_frames"]
        # every frame is one packet: captured in 100 s are 5000, less or more by what waits at the ends
        assert sent + skipped == pytest.approx(5000, abs=2 * limit * 50)
        assert skipped > 1000
        assert metrics["sender_skipped_bytes"] == skipped * 1120
        # the limit is time at the target rate, which is a part of what leaves
        assert 0.3 * limit * 1e3 < metrics["sender_delay_ms_p50"] < 1.2 * limit * 1e3
        assert metrics["one_way_delay_ms_max"] < 400
        assert metrics["utilisation"] > 0.9

    @pytest.mark.parametrize("controller", ["tfrc", "tfrc-sp"])
    def test_a_voice_flow_alone_is_left_alone(self, controller: str) -> None:
        # the session's maximum is by default the encoder's 64 kb/s, which has no room for headers
        media = Media(controller=controller, video=False, audio=Audio(rate="64kbps", interval="20ms"))
        metrics = _network(media, capacity="200kbps", warmup="5s").metrics()
        assert metrics["sender_skipped_frames"] == 0
        assert metrics["sender_delay_ms_max"] < 20
        assert metrics["packets_sent"] == pytest.approx(55 * 50, abs=2)

    def test_nothing_waits_where_there_is_room(self) -> None:
        media = Media(controller="fixed:1Mbps", video=False, audio=Audio(rate="64kbps", interval="20ms"))
        metrics = _network(media).metrics()
        assert metrics["sender_delay_ms_max"] == 0
        assert metrics["sender_skipped_frames"] == metrics["sender_skipped_bytes"] == 0


class TestByHand:
    def test_both_halves_in_a_loop(self) -> None:
        limits = Limits(min_bps=1, max_bps=10**8, start_bps=1000)
        sender = tidegate.controller("tfrc", limits=limits)
        receiver = tidegate.receiver("tfrc")
        assert sender.decision.target_bps == 1460 * 8
        assert sender.decision.alarm_ns == 2 * 10**9
        stamp = sender.stamp(0, tidegate.Outgoing(0, 1000))
        assert stamp is not None
        assert len(stamp[1]) == 9
        sender.on_sent(0, tidegate.Sent(0, 1000, 1000))
        urgency, _ = receiver.on_packet(50_000_000, Arrived(0, 1000, 0, extension=stamp))
        assert urgency == "now"
        (message,) = receiver.message(51_000_000)
        assert isinstance(message, wire.App)
        assert (message.name, len(message.data)) == (b"TFRC", 16)
        report = Report(messages=[(message.name.decode(), message.data)])
        decision = sender.on_report(101_000_000, report)
        # 101 ms less the millisecond that it waited: 4380 bytes in 100 ms
        assert decision.target_bps == pytest.approx(4380 * 8 / 0.1, rel=1e-6)
        assert sender.internals["rtt_ms"] == pytest.approx(100)
        assert decision.alarm_ns == 501_000_000


# a receiver that decides cannot be coupled
@pytest.mark.parametrize(
    "name", [name for name in shipped.names() if not (Scenario.load(name).sessions or Scenario.load(name).couplings)]
)
def test_it_works_on_every_shipped_scenario(name: str) -> None:
    scenario = Scenario.load(name, {"duration": "12s"} if name == "hundred-calls" else {})
    comparison = tidegate.compare(["tfrc", "tfrc-sp"], scenario, record="summary")
    for (run,) in comparison.runs.values():
        assert run.metrics()["goodput_bps"] > 100_000


def test_small_packets_get_the_bandwidth_of_large_ones() -> None:
    """RFC 4828 section 3: at the same loss a voice flow may send more than TFRC grants its small packets."""

    def over_loss(controller: str) -> Run:
        media = Media(
            controller=controller,
            min_rate="1kbps",
            max_rate="2Mbps",
            video=False,
            audio=Audio(rate="64kbps", interval="20ms"),
        )
        return _network(media, loss=0.1, duration="120s", warmup="20s", seed=2)

    runs = [over_loss("tfrc"), over_loss("tfrc-sp")]
    plain, small = (run.metrics() for run in runs)
    (plain_rate, plain_p, rtt), (small_rate, small_p, _) = (
        [_internal(run, name, 20) for name in ("equation_bps", "p", "rtt_ms")] for run in runs
    )
    # segments of 1460 bytes instead of 160 and headers, and fewer loss events: more packets a round trip share one
    assert small_p < plain_p
    expected = tfrc.throughput(1460, rtt / 1e3, small_p) / tfrc.throughput(196, rtt / 1e3, plain_p)
    assert small_rate / plain_rate == pytest.approx(expected, rel=0.1)
    # the 78 kb/s of packets do not fit the one rate, and fit the other
    assert plain["sender_skipped_frames"] > 500
    assert small["sender_skipped_frames"] == 0
    assert small["packets_sent"] == pytest.approx(5000, abs=5)
