"""TCP beside ns-2, ns-3 and Mathis's formula, through scenarios; `pytest -s` shows what was seen.

The tables that docs/tcp.md shows are these: TIDEGATE_BLESS=1 writes them again.
"""

from __future__ import annotations

import csv
import math
from functools import cache

import numpy as np
import pytest

from support import ROOT, check_table, markdown
from tidegate import Scenario, run

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

PAGE = ROOT / "docs" / "tcp.md"
REFERENCE = ROOT / "benches" / "reference" / "tcp_reference.csv"
TWINS = {
    "tahoe": ("ns-2", "Tahoe"),
    "reno": ("ns-2", "Reno"),
    "newreno": ("ns-2", "Newreno"),
    "sack": ("ns-2", "Sack1"),
    # ns-2's is an older CUBIC with another beta; of ns-3's, the one without HyStart, which is over before second 20
    "cubic": ("ns-3", "TcpCubic/nohystart"),
}
"""Whose rows an algorithm is held against."""
SEEDS = range(1, 6)


@cache
def reference() -> list[dict[str, str]]:
    with REFERENCE.open() as file:
        return list(csv.DictReader(file))


def twin(algorithm: str, experiment: str, column: str, **where: float) -> float:
    """The mean over seeds of what the other simulator measured."""
    tool, variant = TWINS[algorithm]
    found = [
        row
        for row in reference()
        if (row["tool"], row["variant"], row["experiment"]) == (tool, variant, experiment)
        and all(float(row[key]) == value for key, value in where.items())
    ]
    if column == "share":
        shares = [[float(one) for one in row["goodput_mbps"].split(";")] for row in found]
        return float(np.mean([first / (first + second) for first, second in shares]))
    return float(np.mean([float(row[column]) for row in found]))


# --- what is measured -----------------------------------------------------------------------------


@cache
def one_flow(algorithm: str, delayed_ack: bool, sending_jitter: str) -> dict[str, float]:
    """One flow over 10 Mbit/s, 20 ms one way and 33 packets of 1500 B; seconds 20 to 120."""
    done = run(
        Scenario.from_dict(
            {
                "duration": "120s",
                "warmup": "20s",
                "sending_jitter": sending_jitter,
                "links": [{"name": "link", "capacity": "10Mbps", "delay": "20ms", "queue": {"packets": 33}}],
                "flows": [{"name": "tcp", "tcp": {"algorithm": algorithm, "delayed_ack": delayed_ack}}],
            }
        ),
        record="summary",
    )
    metrics = done.metrics()
    return {
        "utilisation": done.summary["links"][0]["carried_bps"] / 10e6,
        "loss": metrics["loss_fraction"],
        "mean": metrics["queueing_delay_ms_mean"],
        "p95": metrics["queueing_delay_ms_p95"],
    }


@cache
def shares(algorithm: str, delayed_ack: bool, sending_jitter: str) -> tuple[float, ...]:
    """Goodput of a flow with 40 ms of round trip over that of one with 120 ms; seconds 20 to 600."""
    ratios = []
    for seed in SEEDS:
        starts = np.random.default_rng(seed).uniform(0, 1000, 2)
        tcp = {"algorithm": algorithm, "delayed_ack": delayed_ack}
        done = run(
            Scenario.from_dict(
                {
                    "duration": "600s",
                    "warmup": "20s",
                    "sending_jitter": sending_jitter,
                    "links": [
                        {"name": "near", "from": "a", "to": "router"},
                        {"name": "far", "from": "b", "to": "router", "delay": "40ms"},
                        {
                            "name": "link",
                            "from": "router",
                            "to": "end",
                            "capacity": "10Mbps",
                            "delay": "20ms",
                            "queue": {"packets": 33},
                        },
                    ],
                    "flows": [
                        {"name": name, "from": begin, "to": "end", "start": f"{start:.3f}ms", "tcp": tcp}
                        for name, begin, start in zip(("short", "long"), "ab", starts, strict=True)
                    ],
                }
            ),
            seed,
            "summary",
        )
        ratios.append(done.metrics("short")["goodput_bps"] / done.metrics("long")["goodput_bps"])
    return tuple(ratios)


NS2_PHASE = {
    39_999: (1.81, 1.40, 1.96),
    40_000: (2.58, 2.14, 3.16),
    40_001: (3.42, 2.85, 4.37),
    40_050: (3.66, 3.30, 3.90),
}
"""By the longer way in microseconds: ns-2.35's ratio of the goodputs of two NewReno flows beside noise, mean of eight seeds, least and
most. tcp.tcl's dumbbell with a Poisson source of 1000 bytes and 0.1 Mbit/s, measured once (its table was in docs/tcp.md)."""


@cache
def beside_noise(longer_us: int, ways: str) -> tuple[float, ...]:
    """The same of ours over `ways` to the bottleneck of such a capacity: 67 packets, least timeout 0.2 s, seconds 20 to 300."""
    ratios = []
    for seed in range(1, 9):
        starts = np.random.default_rng(seed).uniform(0, 1000, 2)
        tcp = {"algorithm": "newreno", "delayed_ack": False, "min_rto": "200ms", "hystart": False}
        ends = {"a": "0ms", "b": f"{longer_us}us", "c": "0ms"}
        link = {"capacity": "10Mbps", "delay": "20ms", "queue": {"packets": 67}}
        made = {
            "duration": "300s",
            "warmup": "20s",
            "sending_jitter": "off",
            "links": [
                *(
                    {"name": f"way-{end}", "from": end, "to": "router", "capacity": ways, "delay": delay}
                    for end, delay in ends.items()
                ),
                {"name": "link", "from": "router", "to": "end", **link},
            ],
            "flows": [
                *(
                    {"name": name, "from": begin, "to": "end", "start": f"{start:.3f}ms", "tcp": tcp}
                    for name, begin, start in zip(("short", "long"), "ab", starts, strict=True)
                ),
                {
                    "name": "noise",
                    "from": "c",
                    "to": "end",
                    "udp": {"rate": "0.1Mbps", "packet_size": "1000B", "pattern": "poisson"},
                },
            ],
        }
        done = run(Scenario.from_dict(made), seed, "summary")
        ratios.append(done.metrics("short")["goodput_bps"] / done.metrics("long")["goodput_bps"])
    return tuple(ratios)


LOSSES = (0.001, 0.005, 0.01, 0.02)


@cache
def over_mathis(algorithm: str, delayed_ack: bool, loss: float) -> float:
    """Goodput over MSS/RTT * sqrt(1.5/p) (Mathis, Semke, Mahdavi, Ott 1997, an ACK a packet); 3000 s."""
    done = run(
        Scenario.from_dict(
            {
                "duration": "3000s",
                "links": [{"name": "link", "capacity": "1Gbps", "delay": "60ms", "loss": loss, "back": {"loss": 0}}],
                "flows": [{"name": "tcp", "tcp": {"algorithm": algorithm, "delayed_ack": delayed_ack}}],
            }
        ),
        record="summary",
    )
    goodput = done.metrics()["goodput_bps"]
    assert isinstance(goodput, float)
    return goodput / (1460 * 8 / 0.120 * math.sqrt(1.5 / loss))


QUEUES = {0.5: 17, 1: 33, 4: 133, 16: 533}
"""Packets of 1500 bytes in a queue of so many bandwidth-delay products of 10 Mbit/s and 40 ms."""


@cache
def beside_cubic(queue: int) -> tuple[tuple[float, float, float], ...]:
    """Of BBR beside CUBIC its share of the goodput, its loss and its mean wait in ms; seconds 60 to 240, 20 seeds."""
    seen = []
    for seed in range(1, 21):
        starts = np.random.default_rng(seed).uniform(0, 1000, 2)
        done = run(
            Scenario.from_dict(
                {
                    "duration": "240s",
                    "warmup": "60s",
                    "links": [{"name": "link", "capacity": "10Mbps", "delay": "20ms", "queue": {"packets": queue}}],
                    "flows": [
                        {"name": name, "start": f"{start:.3f}ms", "tcp": {"algorithm": name}}
                        for name, start in zip(("bbr", "cubic"), starts, strict=True)
                    ],
                }
            ),
            seed,
            "summary",
        )
        bbr, cubic = (done.metrics(name) for name in ("bbr", "cubic"))
        share = bbr["goodput_bps"] / (bbr["goodput_bps"] + cubic["goodput_bps"])
        seen.append((share, bbr["loss_fraction"], bbr["queueing_delay_ms_mean"]))
    return tuple(seen)


# --- what must hold -------------------------------------------------------------------------------


@pytest.mark.parametrize(("algorithm", "least", "most"), [("newreno", 20, 24), ("cubic", 30, 34)])
def test_one_flow_fills_the_link(algorithm: str, least: float, most: float) -> None:
    seen = one_flow(algorithm, delayed_ack=False, sending_jitter="off")
    assert 0.99 < seen["utilisation"] < 1.0 + 1e-4
    assert 4e-4 <= seen["loss"] <= 1e-3
    assert least <= seen["mean"] <= most
    assert 36 <= seen["p95"] <= 40


@pytest.mark.parametrize("delayed_ack", [False, True])
@pytest.mark.parametrize("algorithm", TWINS)
def test_one_flow_does_as_its_twin_does(algorithm: str, delayed_ack: bool) -> None:
    seen = one_flow(algorithm, delayed_ack, "off")
    expected = {
        name: twin(algorithm, "base", column, delack=delayed_ack)
        for name, column in (
            ("utilisation", "utilisation"),
            ("loss", "loss_fraction"),
            ("mean", "mean_qdelay_ms"),
            ("p95", "p95_qdelay_ms"),
        )
    }
    # as far apart as ns-2's Newreno and ns-3's TcpNewReno are, with and without SACK: 0.2 % of the link and
    # half a millisecond to one; of 83,000 packets some 24 to 47 are lost, and 10 % are two to four of them
    assert seen["utilisation"] == pytest.approx(expected["utilisation"], abs=0.003)
    assert seen["loss"] == pytest.approx(expected["loss"], rel=0.10)
    assert seen["mean"] == pytest.approx(expected["mean"], abs=0.6)
    assert seen["p95"] == pytest.approx(expected["p95"], abs=0.3)


def test_the_shorter_flow_gets_two_to_three_times_as_much() -> None:
    for delayed_ack in (False, True):
        mean = np.mean(shares("newreno", delayed_ack, "auto"))
        assert 2.0 <= mean <= 3.0, (delayed_ack, mean)
    # in step with the queue who loses is decided by the phase, and the shorter flow gets less (Floyd and
    # Jacobson 1992): switching the jitter off makes another experiment
    assert np.mean(shares("newreno", False, "off")) < 0.9


@pytest.mark.parametrize("algorithm", ["newreno", "sack"])
@pytest.mark.parametrize("loss", LOSSES)
def test_random_loss_gives_the_rate_of_mathis(algorithm: str, loss: float) -> None:
    assert over_mathis(algorithm, False, loss) == pytest.approx(1.0, rel=0.15)


def test_bbr_yields_where_the_queue_is_deeper_than_its_cap() -> None:
    shares = {products: np.mean([one[0] for one in beside_cubic(queue)]) for products, queue in QUEUES.items()}
    # in a queue of one product the cap of two is never reached, and only CUBIC answers losses
    assert shares[0.5] > 0.8
    assert 0.5 < shares[1] < 1
    assert shares[4] < shares[1]
    assert shares[16] < 0.5


def test_with_noise_the_phase_decides_as_in_ns_2() -> None:
    for longer_us, (ratio, _, _) in NS2_PHASE.items():
        # means of eight that wander by a fifth each, on both sides
        assert np.mean(beside_noise(longer_us, "1Gbps")) == pytest.approx(ratio, rel=0.2), longer_us


def test_the_page_shows_what_was_measured() -> None:
    measured = {"one flow": table_of_one_flow(), "shares": table_of_shares(), "mathis": table_of_mathis()}
    measured |= {"bbr": table_of_bbr(), "phase": table_of_phase()}
    for name, table in measured.items():
        print(f"\n{name}\n{table}")
        check_table(PAGE, name, table)


def table_of_one_flow() -> str:
    head = ("algorithm", "ACKs", "jitter", "beside", "utilisation, %", "loss, %", "wait, mean, ms", "p95, ms")

    def figures(one: dict[str, float]) -> tuple[str, ...]:
        return (
            f"{100 * one['utilisation']:.2f}",
            f"{100 * one['loss']:.4f}",
            f"{one['mean']:.2f}",
            f"{one['p95']:.2f}",
        )

    rows: list[tuple[str, ...]] = []
    # the defaults of a scenario first: they differ most from what the others measure
    for delayed_ack, jitter in ((True, "auto"), (False, "auto"), (True, "off"), (False, "off")):
        acks = "every second" if delayed_ack else "each"
        for algorithm, (tool, variant) in TWINS.items():
            rows.append((algorithm, acks, jitter, "", *figures(one_flow(algorithm, delayed_ack, jitter))))
            if jitter == "off":
                columns = {"utilisation": "utilisation", "loss": "loss_fraction"}
                columns |= {"mean": "mean_qdelay_ms", "p95": "p95_qdelay_ms"}
                beside = {key: twin(algorithm, "base", name, delack=delayed_ack) for key, name in columns.items()}
                rows.append(("", "", "", f"{tool} {variant}", *figures(beside)))
    return markdown(head, 4, rows)


def table_of_shares() -> str:
    head = ("algorithm", "ACKs", "jitter", "ratio, mean", "each seed", "share, %", "ns-2's share, %")
    rows = []
    for algorithm, delayed_ack, jitter in (
        ("newreno", False, "auto"),
        ("newreno", False, "off"),
        ("newreno", True, "auto"),
        ("sack", False, "auto"),
        ("sack", False, "off"),
        ("cubic", False, "auto"),
    ):
        ratios = shares(algorithm, delayed_ack, jitter)
        share = np.mean([ratio / (1 + ratio) for ratio in ratios])
        known = algorithm != "cubic" and not delayed_ack
        theirs = twin(algorithm, "two_rtt", "share", jitter_ms=1.2 if jitter == "auto" else 0) if known else math.nan
        rows.append(
            (
                algorithm,
                "every second" if delayed_ack else "each",
                jitter,
                f"{np.mean(ratios):.2f}",
                ", ".join(f"{ratio:.2f}" for ratio in ratios),
                f"{100 * share:.1f}",
                f"{100 * theirs:.1f}" if known else "",
            )
        )
    return markdown(head, 3, rows)


def table_of_mathis() -> str:
    head = ("algorithm", "ACKs", *(f"p = {100 * loss:g} %" for loss in LOSSES))
    rows: list[tuple[str, ...]] = []
    for algorithm, delayed_ack in (("reno", False), ("newreno", False), ("sack", False), ("newreno", True)):
        tool, variant = TWINS[algorithm]
        acks = "every second" if delayed_ack else "each"
        rows.append((algorithm, acks, *(f"{over_mathis(algorithm, delayed_ack, loss):.3f}" for loss in LOSSES)))
        theirs = (twin(algorithm, "mathis", "mathis_ratio", random_loss=loss, delack=delayed_ack) for loss in LOSSES)
        rows.append((f"{tool} {variant}", acks, *(f"{ratio:.3f}" for ratio in theirs)))
    return markdown(head, 2, rows)


def table_of_bbr() -> str:
    head = (
        "queue, bandwidth-delay products",
        "packets",
        "BBR's share, %",
        "least",
        "most",
        "its loss, %",
        "its wait, ms",
    )
    rows = []
    for products, queue in QUEUES.items():
        share, loss, wait = np.transpose(beside_cubic(queue))
        figures = (100 * share.mean(), 100 * share.min(), 100 * share.max())
        tail = (f"{100 * loss.mean():.2f}", f"{wait.mean():.0f}")
        rows.append((products, queue, *(f"{one:.0f}" for one in figures), *tail))
    return markdown(head, 0, rows)


def table_of_phase() -> str:
    def told(mean: float, least: float, most: float) -> str:
        return f"{mean:.2f} ({least:.2f} to {most:.2f})"

    def here(longer_us: int, ways: str) -> str:
        seen = beside_noise(longer_us, ways)
        return told(float(np.mean(seen)), min(seen), max(seen))

    rows = [(f"{us / 1000:g}", "1 Gbit/s", told(*theirs), here(us, "1Gbps")) for us, theirs in NS2_PHASE.items()]
    rows.append(("40", "infinite", "", here(40_000, "infinite")))
    head = ["longer way, ms", "ways to the bottleneck", "ratio in ns-2: mean (least to most)", "here"]
    return markdown(head, 0, rows)
