"""Circuit breakers (RFC 8083): which senders would have had to stop, and where a run says so.

The equations and the times are held to closed forms in `crates/endpoint` (`src/breaker/tests.rs`, `tests/breakers.rs`).
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import tidegate
from support import Cli
from tidegate.show import report

CALL = """\
duration = "20s"

[[links]]
name = "cable"
capacity = "1Mbps"
delay = "25ms"

[[flows]]
name = "call"

[flows.media]
controller = "{controller}"
{more}
video = {{ source = "ideal", max = "12Mbps" }}
"""

WHY = "because the flow sent more than ten times the rate that TCP would get (RFC 8083 section 4.3)"


def call(folder: Path, controller: str, more: str = "") -> Path:
    """A call over 1 Mbit/s."""
    file = folder / "call.toml"
    file.write_text(CALL.format(controller=controller, more=more), "utf-8")
    return file


def test_a_flow_that_congests_a_link_would_be_stopped_and_one_that_reacts_would_not(tmp_path: Path) -> None:
    """10 Mbit/s into 1 Mbit/s lose nine tenths; `gcc` finds the rate."""
    fixed = tidegate.run(call(tmp_path, "fixed:10Mbps"), record="summary")
    metrics = fixed.metrics()
    assert metrics["circuit_breaker"] == "congestion"
    # 350 ms of round trip: ten of them, in reports every few hundred milliseconds
    assert 1 < metrics["circuit_breaker_s"] < 6
    assert metrics["packets_sent"] > 19 * 10e6 / 8 / 1300, "a watch stops nothing"
    assert fixed.warnings == [
        f"flows.call.media.circuit_breaker: fixed would have stopped at {metrics['circuit_breaker_s']:.1f} s {WHY}"
    ]
    gcc = tidegate.run(call(tmp_path, "gcc"), record="summary")
    assert (gcc.metrics()["circuit_breaker"], gcc.metrics()["circuit_breaker_s"], gcc.warnings) == (None, None, [])


def test_a_link_that_is_gone_for_seconds_is_a_media_timeout(tmp_path: Path) -> None:
    """Reports go on coming back while nothing arrives."""
    text = call(tmp_path, "fixed:500kbps").read_text("utf-8")
    # by libwebrtc's rule the receiver reports each second, times 0.5 to 1.5: five reports without news take 2.5 to 7.5 s, and
    # the one before them up to 1.5 s more. By RFC 3550's reduced minimum the session of 12 Mbit/s has reports every 30 ms, times
    # 0.5 to 1.5 over 1.22; the round trip is twice as long, so that ten or eleven of them are wanted: 0.12 to 0.41 s
    for reports, short, long, least, most in (
        ("libwebrtc", "12s", "19s", 12.5, 19.0),
        ("rfc3550", "10050ms", "10500ms", 10.12, 10.45),
    ):
        for end, breaker in ((short, None), (long, "media timeout")):
            file = tmp_path / "gone.toml"
            schedule = f'{{ schedule = [["0s", "1Mbps"], ["10s", "0bps"], ["{end}", "1Mbps"]] }}'
            file.write_text(text.replace('"1Mbps"', schedule + '\nback = { capacity = "1Mbps" }'), "utf-8")
            scenario = tidegate.Scenario.load(file, {"flows.call.media.feedback.reports": reports})
            metrics = tidegate.run(scenario, record="summary").metrics()
            assert metrics["circuit_breaker"] == breaker
            if breaker:
                assert least < metrics["circuit_breaker_s"] < most


def test_off_says_nothing_and_moves_nothing(tmp_path: Path) -> None:
    """The record is the same."""
    watched = tidegate.run(call(tmp_path, "fixed:10Mbps"))
    off = tidegate.run(call(tmp_path, "fixed:10Mbps", 'circuit_breaker = "off"'))
    assert watched.digest == off.digest
    assert (off.metrics()["circuit_breaker"], off.warnings) == (None, [])


def test_it_is_told_wherever_warnings_are(tmp_path: Path, cli: Cli) -> None:
    """On standard error with the line of the flow, in summaries, in reports, and of several runs in one sentence."""
    file = call(tmp_path, "fixed:10Mbps", 'circuit_breaker = "watch"')
    told = cli("run", str(file), "--json", "--out", "out")
    assert told.err.startswith(f"tidegate: note: {file}:13: flows.call.media.circuit_breaker: fixed would ")
    (flow,) = json.loads(told.out)["flows"]
    assert flow["circuit_breaker"] == "congestion"
    saved = tidegate.Run.load(tmp_path / "out")
    assert len(saved.warnings) == 1
    assert WHY in saved.warnings[0]
    assert saved.warnings[0] in report.html(saved)

    both = tidegate.compare(["fixed:10Mbps", "gcc"], file, seeds=2)
    warning, seed = both.warnings
    assert seed.startswith("seed: ")
    assert warning.startswith("flows.call.media.circuit_breaker: fixed would have stopped in 2 of 2 runs, at ")
    assert warning in both.table.to_markdown()


def test_many_flows_are_one_sentence(tmp_path: Path) -> None:
    """A hundred senders that would stop for the same reason."""
    text = call(tmp_path, "fixed:2Mbps").read_text("utf-8")
    head, _, flow = text.partition("[[flows]]")
    file = tmp_path / "many.toml"
    flows = (flow.replace('"call"', f'"call-{number}"') for number in range(5))
    file.write_text(head + "".join(f"[[flows]]{one}" for one in flows), "utf-8")
    (warning,) = tidegate.run(file, record="summary").warnings
    assert warning.startswith("media.circuit_breaker: 5 flows of fixed would have stopped, the first at ")


@pytest.mark.parametrize("word", ["on", "stop"])
def test_a_wrong_word_is_refused(tmp_path: Path, word: str) -> None:
    """With what would be right."""
    with pytest.raises(tidegate.ScenarioError, match=r"circuit_breaker.*watch"):
        tidegate.Scenario.load(call(tmp_path, "gcc", f'circuit_breaker = "{word}"'))


def test_a_sender_that_obeys_stops_for_good(tmp_path: Path) -> None:
    """What comes before is the same run."""
    watched = tidegate.run(call(tmp_path, "fixed:10Mbps"))
    run = tidegate.run(call(tmp_path, "fixed:10Mbps", 'circuit_breaker = "act"'), record="packets")
    metrics = run.metrics()
    at = metrics["circuit_breaker_s"]
    assert at == watched.metrics()["circuit_breaker_s"]
    table = run.table("packets")
    sent, kind = table.to_numpy("sent_s"), table.to_numpy("kind")
    media = sent[kind == "video"]
    assert at - 0.1 < media.max() <= at
    (warning,) = run.warnings
    assert warning.startswith(f"flows.call.media.circuit_breaker: fixed stopped at {at:.1f} s because ")
    assert (metrics["circuit_breaker_stopped"], watched.metrics()["circuit_breaker_stopped"]) == (True, False)
