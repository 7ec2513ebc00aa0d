"""Bounds on the numbers of TFRC's experiments, most of them from formulas, and the verdicts on the claims about it."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import tfrc_claims
import tfrc_experiments as study
import tfrc_situations as situations
from tfrc_claims import rows
from tidegate import tfrc

HEADER = 24  # of RTP and TFRC's extension beside a payload: 1500 = 1448 + 24 + 28
REFUTED = {"even", "two"}


def test_verdicts() -> None:
    """A change of one is a change of what the page says about it."""
    assert {name for name, claim in tfrc_claims.claims().items() if not claim.holds} == REFUTED


def between(low: float, value: float, high: float, why: str) -> None:
    assert low <= value <= high, f"{value:g} is not in {low:g} to {high:g}: {why}"


@pytest.mark.parametrize("rules", study.RULES)
@pytest.mark.parametrize("loss", study.STEADY_LOSSES)
def test_steady_state(rules: str, loss: float) -> None:
    row = rows("steady")[f"{rules}, {loss:g} % lost"]
    # the equation is convex in p: the mean of its values is above its value at the mean of p, never below
    between(1.0, row["ratio"], 1.15, "Jensen's inequality; 15 % is what the milestone allows")
    # several losses in a round trip are one event; and sampling error of 3 / sqrt(events in 300 s)
    events = row["sent (kb/s)"] * 1e3 / 8 / 1472 * 300 * loss / 100
    between(0.7 * loss, row["p (%)"], loss * (1 + 3 / math.sqrt(events)), "loss events, not losses")
    between(100, row["RTT (ms)"], 102, "two ways of 50 ms and 1500 bytes at 10 Mb/s")


@pytest.mark.parametrize("label", [f"{queue}, n = {n}" for queue in study.QUEUES for n in study.COUNTS])
def test_the_link_is_shared_and_used(label: str) -> None:
    row = rows("fairness")[label]
    # all that is carried is one or the other, but for RTCP (of 5 s, some 100 bytes a call)
    between(
        row["utilisation"] - 0.01, (row["TFRC"] + row["TCP"]) / 2, row["utilisation"] + 1e-9, "no other flow is there"
    )
    # a packet may have begun before the 200 s
    between(
        0.95,
        row["utilisation"],
        1 + 1500 * 8 / 15e6 / 200,
        "a queue of 0.4 or 1 bandwidth-delay products keeps it busy",
    )
    # RFC 8868 section 3 asks for a factor of three between equal flows
    assert row["TFRC least"] > row["TFRC most"] / 3


def test_what_explains_the_shares_of_many() -> None:
    base, quiet, slow, both, quick = (rows("causes")[label]["TFRC/TCP"] for label in study.CAUSES)
    assert base == rows("fairness")["50 packets, n = 32"]["TFRC/TCP"]
    # each change favours TFRC, and the two of TCP together more than each
    assert base < slow < both
    assert base < quiet < both
    between(0.8, quick, 1.25, "with the timeout that these TCPs have the equation gives their rate")
    lost = rows("causes")["as above"]
    assert lost["TFRC lost (%)"] > lost["TCP lost (%)"], "who spaces packets evenly meets full queues more often"
    lost = rows("causes")["no sending jitter"]
    assert lost["TFRC lost (%)"] < lost["TCP lost (%)"]


def test_variation_is_a_deviation_over_a_mean() -> None:
    t = np.arange(0, 100, 0.1)
    wave = 1 + np.sin(2 * math.pi * t)  # period 1 s: deviation sqrt(1/2), and none over whole periods
    assert study.variation(t, wave, 0.1, 0.0) == pytest.approx(math.sqrt(0.5), rel=1e-6)
    assert study.variation(t, wave, 1.0, 0.0) == pytest.approx(0.0, abs=1e-12)
    # over half a period the means are 1 +- 2 / pi, of five samples a little more
    half = np.sin(2 * math.pi * np.arange(5) / 10).mean()
    assert study.variation(t, wave, 0.5, 0.0) == pytest.approx(half, rel=1e-6)


@pytest.mark.parametrize("scale", study.SCALES)
def test_smoother_at_every_scale(scale: float) -> None:
    row = rows("smoothness")[f"{scale:g} s"]
    assert row["TFRC"] < row["TCP"]
    # longer means cannot vary more than the shorter ones of which they are made
    assert row["TFRC"] <= rows("smoothness")["0.2 s"]["TFRC"]


@pytest.mark.parametrize("column", ["at 1 % (kb/s)", "at 5 % (kb/s)", "1 % again (kb/s)"])
def test_steps_begin_and_end_at_the_equations_rate(column: str) -> None:
    p = 0.05 if "5 %" in column else 0.01
    expected = tfrc.throughput(1472, study.RTT, p) * 1500 / 1472 * 8 / 1e3
    # more by fewer events than losses (a tenth of p is a twentieth of the rate) and by convexity, as in the steady state
    between(expected, rows("steps")["TFRC"][column], 1.2 * expected, "the equation at the rate of losses")


@pytest.mark.parametrize("base", study.BASES)
def test_persistent_congestion(base: float) -> None:
    """Loss events until X is halved, by the formulas: a new interval each has what a round trip holds."""
    before = 100 / base
    intervals, events = [before] * 8, 0
    first = packets = tfrc.throughput(1, 1, 1 / before)  # a round trip
    while packets > first / 2:
        events += 1
        intervals = [max(1.0, packets), *intervals[:7]]
        packets = tfrc.throughput(1, 1, 1 / tfrc.mean_interval([1.0, *intervals]))
    row = rows("persistent")[f"{base:g} % before"]
    # one round trip for the news; of the first event six packets must go for three to arrive, and each further event
    # begins with the first loss after a round trip: two packets later, of 3/4 of the first rate on average
    some = 0.75 * first
    latest = 1 + 6 / some + (events - 1) * (1 + 2 / some) + 1
    between(events, row["median"], latest, f"{events} events")
    assert row["least"] > 2


@pytest.mark.parametrize("discounting", [True, False])
def test_relief(discounting: bool) -> None:
    """The open interval grows by X R packets a round trip; by the formulas from eight equal intervals."""
    row = rows("relief")["with discounting" if discounting else "without"]
    opened, packets = 114.0, []  # 1 / p at 1 % lost: 0.875 % in the steady state
    for _ in range(200):
        interval = tfrc.mean_interval([opened, *[114.0] * 8], discounting=discounting)
        packets.append(tfrc.throughput(1, 1, 1 / interval))
        opened += packets[-1]
    most = max(b - a for a, b in zip(packets, packets[50:], strict=False)) / 50
    # 0.75 / 6 without: the derivative of sqrt(1.5 I) where I grows by a sixth of what is sent
    assert discounting or most == pytest.approx(0.75 / 6, rel=0.02)
    # unequal intervals, of which the long ones may be the old ones, change it by a few percent
    between(0.9 * most, row["most"], 1.15 * most, "the law of the formulas")


@pytest.mark.parametrize("loss", study.VOICE_LOSSES)
def test_small_packets(loss: float) -> None:
    row = rows("voip")[f"{loss:g} % lost"]
    # 100 packets a second of 220 bytes on the wire is all that 10 ms between packets allow
    assert row["tfrc-sp (kb/s)"] <= 176 + 0.5
    if row["tfrc-sp, no gap (kb/s)"] > 2 * 176:
        assert row["tfrc-sp (kb/s)"] == pytest.approx(176, abs=1)
    # the equation's rate is of RTP bytes, at the rate of losses: events are fewer, and more so the more packets
    # a round trip has
    rate = tfrc.throughput(160 + HEADER, study.RTT, loss / 100) * 220 / (160 + HEADER) * 8 / 1e3
    events = rate * 1e3 / 8 / 220 * loss / 100 * 200 * len(study.VOICE_SEEDS)
    # the equation falls with the square of p at most: twice three deviations of the number of events
    between(rate * (1 - 6 / math.sqrt(events)), row["tfrc (kb/s)"], 1.6 * rate, "the equation with s = 184 bytes")


def test_voice() -> None:
    for loss in study.VOICE_LOSSES:
        row = rows("voip")[f"{loss:g} % lost"]
        # what can be sent and what cannot is all of the call's 88 kb/s
        needed = max(0.0, 1 - row["tfrc (kb/s)"] / 88) * 100
        between(needed - 5, row["voice not sent, tfrc (%)"], needed + 5, "the rest of the call")


@pytest.mark.parametrize("rules", study.RULES)
def test_silence(rules: str) -> None:
    for loss in situations.SITUATION_LOSSES:
        for seed in situations.seeds(loss)[:3]:
            numbers = situations.silence(rules, loss, seed)
            # from 2 Mb/s down to the first rate below 2 W_init/R (RFC 5348), or below 8 packets a round trip (RFC 3448:
            # twice an X_recv of less than 4): both are 320 kb/s
            before, after = numbers["X before silence (kb/s)"], numbers["X after it (kb/s)"]
            assert after >= 160 or loss > 0
            assert after < 320
            assert before > after
            for (first, _), (second, _) in itertools.pairwise(numbers["falls"]):
                between(0.79, second - first, 0.82, "four round trips of 200 ms and the packets' own time")


def test_the_start() -> None:
    """The rate doubles each round trip (or each other one, as X_recv lags): more of them from one packet than four."""
    new, old = (rows("situations")[f"{rules}, 0 % lost"]["start (s)"] for rules in study.RULES)
    least = situations.LONG_RTT * math.log2(situations.MEDIA_KBPS / (4 * 40))
    between(least, new, 2 * least + 3 * situations.LONG_RTT, "from four packets of 1000 bytes in 200 ms")
    between(
        2 * situations.LONG_RTT,
        old - new,
        2 * 2 * situations.LONG_RTT + 2 * situations.LONG_RTT,
        "two more doublings, and bins",
    )
