"""Remarks of a comparison on questions that it cannot answer, and their absence where it can."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import tidegate
from support import Cli
from tidegate import Scenario
from tidegate.show import report


def call(**media: Any) -> dict[str, Any]:
    return {"name": "call", "media": {"controller": "gcc", **media}}


def network(*flows: dict[str, Any], duration: str = "20s", **link: Any) -> Scenario:
    table = {"name": "way", "from": "left", "to": "right", "capacity": "10Mbps", "delay": "20ms", **link}
    return Scenario.from_dict(
        {"name": "doubts", "duration": duration, "links": [table], "flows": list(flows) or [call()]}
    )


def keys(scenario: Scenario, *controllers: str, seeds: int = 1) -> list[str]:
    """Settings in the warnings of a comparison, without circuit breakers."""
    names = controllers or ("fixed:5Mbps", "fixed:4Mbps")
    warnings = tidegate.compare(names, scenario, seeds=seeds, record="summary").warnings
    return [key for key in (warning.partition(": ")[0] for warning in warnings) if not key.endswith("circuit_breaker")]


MAX = "flows.call.media.video.max"
IDEAL = {"source": "ideal"}


@pytest.mark.parametrize(
    ("flow", "link", "key"),
    [
        (call(), {}, MAX),
        (call(video=IDEAL, audio={"rate": "32kbps"}), {}, MAX),
        (call(), {"capacity": "infinite"}, MAX),
        (call(max_rate="1Mbps"), {}, "flows.call.media.max_rate"),
        # the link limits them: it is used fully, or its capacity is below the source's rate
        (call(), {"capacity": "2.6Mbps"}, None),
        (call(), {"capacity": "2Mbps"}, None),
        # the source's rate is given on purpose
        (call(video={"source": "cbr", "rate": "1Mbps", "packet_size": "1000B"}), {}, None),
        (call(video={"schedule": [["0s", "1Mbps"]], "max": "1Mbps"}), {}, None),
    ],
)
def test_a_source_that_holds_them_is_named(flow: dict[str, Any], link: dict[str, Any], key: str | None) -> None:
    assert keys(network(flow, **link)) == ([key] if key else [])


def test_it_takes_two_that_are_held() -> None:
    """Rates can be compared if only one controller reaches the largest rate of the source."""
    assert keys(network(), "fixed:5Mbps", "fixed:1Mbps") == []
    assert keys(network(), "fixed:5Mbps", "fixed:1Mbps", "fixed:4Mbps") == [MAX]
    assert keys(network(), "fixed:5Mbps") == [MAX], "or one that is alone"
    # another flow fills the link, so that delays are compared
    beside = {"name": "others", "udp": {"rate": "7.4Mbps", "packet_size": "1200B"}}
    assert keys(network(call(), beside)) == []


@pytest.mark.parametrize(
    ("link", "others", "warned"),
    [
        ({}, [], True),
        ({"capacity": {"schedule": [["0s", "2Mbps"], ["5s", "1Mbps"]]}}, [], True),
        ({"discipline": "codel"}, [], True),
        ({"loss": 0.01}, [], False),
        ({"back": {"loss": 0.01}}, [], False),
        ({"jitter": {"uniform": "5ms"}}, [], False),
        ({"discipline": "pie"}, [], False),
        ({"capacity": {"brownian": {}}}, [], False),
        ({}, [{"name": "bulk", "tcp": {"algorithm": "cubic"}}], False),
    ],
)
def test_seeds_that_change_only_noise_are_named(link: dict[str, Any], others: list[Any], warned: bool) -> None:
    slow = {"capacity": "2Mbps"}
    scenario = network(call(), *others, **{**slow, **link}, duration="5s")
    assert keys(scenario, "fixed:1Mbps", "fixed:500kbps", seeds=2) == (["seed"] if warned else [])
    assert keys(scenario, "fixed:1Mbps", "fixed:500kbps") == [], "one seed has no intervals"
    drawn = {name for name in tidegate.run(scenario, 1, record="summary").draws if not name.startswith("call.")}
    assert bool(drawn) != warned, "components besides the call draw random numbers"


def test_a_recording_of_which_little_is_played_is_named(tmp_path: Path) -> None:
    rows = [f"{second},{3000 + second}" for second in range(600)]
    (tmp_path / "hour.csv").write_text("\n".join(["# duration_s=600", "time_s,rate_kbps", *rows, ""]), "utf-8")
    trace = str(tmp_path / "hour.csv")
    random = network(capacity={"trace": trace, "offset": "random"}, duration="20s")
    done = tidegate.compare(["fixed:1Mbps", "fixed:2Mbps"], random, record="summary")
    (warning,) = done.warnings
    assert warning.startswith("links.way.capacity.trace: 3 % of hour.csv was played")
    assert keys(random, "fixed:1Mbps", "fixed:2Mbps", seeds=6) == [], "six parts of 20 s are more than a tenth"
    # six seeds that play the same part of it play no more than one
    assert keys(network(capacity={"trace": trace}, duration="20s"), "fixed:1Mbps", "fixed:2Mbps", seeds=6) == [
        "links.way.capacity.trace",
        "seed",
    ]
    assert keys(network(capacity={"trace": trace}, duration="60s"), "fixed:1Mbps", "fixed:2Mbps") == []


def test_doubts_are_told_wherever_warnings_are(tmp_path: Path, cli: Cli) -> None:
    (tmp_path / "wide.toml").write_text(network(duration="5s").to_toml(), "utf-8")
    argv = ("compare", "fixed:5Mbps", "fixed:4Mbps", "--scenario", "wide.toml", "--seeds", "2")
    printed = cli(*argv, "--out", "out")
    rate = "fixed:5Mbps and fixed:4Mbps sent all that the source can produce (2.5Mbps), on a link that was 2"
    assert f": {MAX}: {rate}" in printed.err
    assert ": seed: the network is the same for all seeds" in printed.err
    assert f"Warning: {MAX}: {rate}" in (tmp_path / "out" / "table.md").read_text("utf-8")
    assert f"{MAX}: {rate}" in (tmp_path / "out" / "report.html").read_text("utf-8")
    data = json.loads(cli(*argv, "--json").out)
    assert data["warnings"][0].startswith(f"{MAX}: {rate}")
    assert data["notes"] == data["warnings"][1:], "a note is also one of the warnings"
    loaded = tidegate.Comparison.load(tmp_path / "out")
    assert len(loaded.warnings) == 2
    assert f"{MAX}: {rate}" in report.html(loaded)


@pytest.mark.parametrize("name", ["rfc8867-5.1-variable-capacity", "rfc8867-5.2-two-flows", "rfc8867-5.6-long-tcp"])
def test_the_cases_of_rfc_8867_raise_no_doubts(name: str) -> None:
    """The RFC limits their encoders to 1.5 Mbit/s, and its capacities are chosen for that.

    It also says that they do not go below 150 kbit/s: below that media waits at the sender, of which a warning tells.
    """
    assert [key for key in keys(Scenario.load(name), "gcc", "nada", seeds=2) if not key.endswith("video.min")] == []
