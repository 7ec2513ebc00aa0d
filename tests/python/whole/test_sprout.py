"""Sprout: its forecasts against the original's and against a plain program, and its loop through the whole engine."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tidegate
from support import ROOT, example, shared, sprout_plain
from tidegate import Arrived, Flow, Link, Media, Queue, Report, Run, Scenario, sprout, wire

VECTORS = ("onoff", "poisson300")


class TestForecasts:
    @pytest.mark.parametrize("name", VECTORS)
    def test_those_of_the_original(self, name: str) -> None:
        assert example("replay_sprout").replay(ROOT / "tests" / "data" / "sprout" / f"sprout_{name}.csv") == (70, [])

    @pytest.mark.parametrize("name", VECTORS)
    def test_whole_series(self, name: str) -> None:
        assert example("replay_sprout").replay(shared() / "vectors" / f"sprout_{name}.csv") == (150, [])

    def test_a_wrong_row_is_seen(self, tmp_path: Path) -> None:
        lines = (ROOT / "tests" / "data" / "sprout" / "sprout_onoff.csv").read_text().splitlines()
        lines[30] = lines[30][:-1] + "7"
        file = tmp_path / "wrong.csv"
        file.write_text("\n".join(lines) + "\n")
        assert example("replay_sprout").replay(file) == (70, [29])

    @pytest.mark.parametrize("seed", range(12))
    def test_other_series_as_a_plain_program_has_them(self, seed: int) -> None:
        """Bursts far above 29 packets, parts of packets, silences announced and not."""
        luck = np.random.default_rng(seed)
        came: list[int] = []
        silences: list[int] = []
        while len(came) < 300:
            length = int(luck.integers(1, 40))
            kind = luck.integers(5)
            rate = luck.uniform(0, 25)
            sizes = {
                0: luck.poisson(rate, length) * 1400,
                1: luck.integers(0, 60_000, length),
                2: np.zeros(length, int),
                3: luck.integers(1, 2000, length),
                4: luck.poisson(luck.uniform(30, 120), length) * 1400,
            }[int(kind)]
            came += sizes.tolist()
            silences += luck.choice([0, 20, 50, 500, 65_535], length, p=[0.3, 0.4, 0.2, 0.09, 0.01]).tolist()
        found = sprout.forecasts(came, time_to_next_ms=silences)
        np.testing.assert_array_equal(found, sprout_plain.forecasts(came, silences))

    def test_a_long_silence_ends_in_nothing_and_an_announced_one_in_no_haste(self) -> None:
        came = [11_200] * 50 + [0] * 3000
        hard = sprout.forecasts(came)
        soft = sprout.forecasts(came, time_to_next_ms=65_535)
        assert (hard[60:] == 0).all()
        # unseen, the belief only spreads; after 65.5 s silence is what it always is
        assert 5 < soft[55, 7] < soft[49, 7]
        assert (soft[-1] == soft[-2]).all()

    def test_the_average(self) -> None:
        found = sprout.forecasts([2100] * 400, controller="sprout-ewma")
        assert found[-1].tolist() == [1, 2, 4, 5, 7, 8, 10, 11], "1.5 in a tick, and part of a packet is none"
        least = sprout.forecasts([60] * 400, controller="sprout-ewma")
        assert least[-1].tolist() == [0, 1, 2, 3, 4, 5, 6, 7], "just under one in a tick"
        one = sprout.forecasts([11_200], controller="sprout-ewma")
        assert one.tolist() == [[1, 2, 3, 4, 5, 6, 7, 8]]

    def test_less_confidence_forecasts_more(self) -> None:
        came = [8400] * 50
        last = [sprout.forecasts(came, confidence=confidence)[-1, 7] for confidence in (99, 95, 75, 50, 25, 5)]
        assert last == sorted(last)
        assert last[0] < 48 < last[-1]

    @pytest.mark.parametrize(
        ("came", "keys", "message"),
        [
            ([1, -1], {}, r"bytes_per_tick\[1\]: found -1; expected a whole number of at least 0"),
            ([1.5], {}, r"bytes_per_tick\[0\]: found 1.5"),
            ([float("nan")], {}, r"bytes_per_tick\[0\]: found nan"),
            (["a"], {}, r"bytes_per_tick\[0\]: found a"),
            ([[1]], {}, "bytes_per_tick: found 2 dimensions; expected one, for the ticks"),
            ([1, 2], {"time_to_next_ms": [20]}, "time_to_next_ms: found 1 values; expected 2, one for each tick"),
            ([1], {"time_to_next_ms": 70_000}, r"found 70000; expected a whole number of at least 0 and at most 65535"),
            ([1], {"controller": "gcc"}, "controller: found `gcc`; expected `sprout` or `sprout-ewma`"),
            ([1], {"confidence": 100}, "`confidence` is 100, expected a number from 1 to 99 %"),
            ([1], {"confidense": 1}, "`confidense` is not a setting"),
        ],
    )
    def test_what_is_wrong_is_said(self, came: list[int], keys: dict[str, object], message: str) -> None:
        with pytest.raises(ValueError, match=message):
            sprout.forecasts(came, **keys)  # type: ignore[arg-type]

    def test_no_ticks_no_forecasts(self) -> None:
        assert sprout.forecasts([]).shape == (0, 8)


def _call(controller: str, *, capacity: str = "5Mbps", duration: str = "60s", **keys: object) -> Run:
    link = Link(name="wire", from_="a", to="b", capacity=capacity, delay="20ms", queue=Queue(bytes="1MB"))
    media = Media(controller=controller, feedback={"reports": "5s"}, **keys)
    flow = Flow(name="call", from_="a", to="b", media=media)
    return tidegate.run(
        Scenario(name="sprout", duration=duration, links=[link], flows=[flow], record="packets"),
    )


GREEDY = {"source": "greedy", "min": "30kbps", "max": "30Mbps"}


class TestEngine:
    def test_forecasts_are_rtcp_of_real_bytes_every_tick(self) -> None:
        rtcp = _call("sprout:bulk", video=GREEDY).table("rtcp")
        said = rtcp.to_numpy("from_receiver").astype(bool) & (rtcp.to_numpy("size") == 36 + 28)
        times = rtcp.to_numpy("t_s")[said]
        # without the few that went along with an RTCP report
        assert 2950 <= len(times) <= 3000
        assert np.median(np.diff(times)) == pytest.approx(0.020, abs=1e-9)

    def test_a_silent_source_leaves_heartbeats(self) -> None:
        run = _call("sprout:bulk", video=GREEDY, queue_limit="100ms", pauses=[("20s", "60s")])
        packets = run.table("packets")
        sent, kind = packets.to_numpy("sent_s"), packets.to_numpy("kind")
        late = (sent > 30) & (kind != "rtcp")
        assert set(kind[late]) == {"padding"}
        assert np.diff(sent[late]) == pytest.approx(0.050, abs=1e-9)
        # 28 of IP and UDP, 12 of RTP, 4 + 16 of extensions (abs-send-time 4, transport number 3, stamp 9), 1 of padding
        assert set(packets.to_numpy("size")[late]) == {28 + 12 + 4 + 16 + 1}

    def test_a_link_of_its_own_is_filled_within_the_delay(self) -> None:
        call = _call("sprout:bulk", video=GREEDY, capacity="8Mbps").metrics("call")
        assert 0.95 * 8e6 <= call["receive_rate_bps"] <= 8e6
        # a flight of 100 ms of forecast, of which 40 ms are the round trip
        assert 25 <= call["one_way_delay_ms_p95"] <= 20 + 100
        assert call["loss_fraction"] == 0

    @pytest.mark.parametrize(
        ("kbps", "delay_ms"),
        [(500, 5), (2000, 5), (8000, 5), (8000, 20), (2000, 50), (4000, 50)],
    )
    def test_it_uses_of_a_link_what_the_originals_two_ends_use(self, kbps: int, delay_ms: int) -> None:
        """Packets are whole here and cut to the window there, which is one packet of a few. Between these cases, at 20 ms and
        4 Mb/s or less, both have several rates at which they stay, and trifles decide.
        """
        link = Link(
            name="wire", from_="a", to="b", capacity=f"{kbps}kbps", delay=f"{delay_ms}ms", queue=Queue(bytes="1MB")
        )
        media = Media(controller="sprout:bulk", feedback={"reports": "5s"}, video=GREEDY)
        flow = Flow(name="call", from_="a", to="b", media=media)
        run = tidegate.run(Scenario(name="sprout", duration="30s", links=[link], flows=[flow], record="packets"))
        packets = run.table("packets")
        late = (packets.to_numpy("arrived_s") >= 10) & (packets.to_numpy("kind") != "rtcp")
        used = packets.to_numpy("size")[late].sum() * 8 / 20 / kbps / 1000
        assert abs(used - sprout_plain.share(kbps, delay_ms)) <= 0.15, used

    def test_the_trap_of_a_source_with_little_to_send_and_the_cure(self) -> None:
        """Hermanns 2013: an encoder that follows the forecast, alone on a link of twice its largest rate."""
        trapped, told = (_call(name).metrics("call") for name in ("sprout", "sprout:aware"))
        # of 2.5 Mb/s less than a quarter (489 to 516 kb/s over twelve seeds)
        assert 150e3 <= trapped["receive_rate_bps"] <= 2.5e6 / 4
        assert 2.4e6 <= told["receive_rate_bps"] <= 2.7e6
        assert told["one_way_delay_ms_p95"] <= 20 + 30
        assert told["sender_delay_ms_p95"] <= 50

    def test_the_cure_keeps_to_a_link_that_is_too_slow(self) -> None:
        told = _call("sprout:aware", capacity="1Mbps").metrics("call")
        assert 0.5e6 <= told["receive_rate_bps"] <= 1e6
        assert told["one_way_delay_ms_p95"] <= 20 + 100


class TestByHand:
    def test_both_halves(self) -> None:
        sender, half = tidegate.controller("sprout"), tidegate.receiver("sprout")
        assert sender.decision.window == 0
        assert sender.decision.heartbeat_ns == 50_000_000
        now = 0
        for number in range(200):
            stamp = sender.stamp(now, tidegate.Outgoing(number, 1200, backlog=1200))
            assert stamp is not None
            assert stamp[0] == 8
            sender.on_sent(now, tidegate.Sent(number, 1200, backlog=1200))
            half.on_packet(now, Arrived(number, 1200, 0, extension=stamp))
            now += 2_500_000
        (said,) = half.message(now)
        assert isinstance(said, wire.App)
        assert said.name == b"SPRT"
        counts = np.frombuffer(said.data[8:], ">u2")
        assert (np.diff(counts.astype(int)) > 0).all()
        before = sender.in_flight()
        decision = sender.on_report(now, Report(messages=[("SPRT", said.data)]))
        # all has arrived: what is left is the overhead of the last 10 ms, four packets and the present one
        assert before == 200 * 1200
        assert (sender.in_flight() or 0) <= 5 * 50
        # five ticks of the forecast, and the last byte of one packet
        assert decision.window == 1440 * int(counts[5] - counts[0]) + 1199
