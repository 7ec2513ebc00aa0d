"""The marks of the best controllers in a comparison, and the controllers that carried too little to be compared."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

import tidegate
from support import Cli
from tidegate import Scenario
from tidegate.show import _carried, report

CALL = """\
name = "one-call"
duration = "20s"
links = [{ name = "way", from = "left", to = "right", capacity = "2Mbps", delay = "20ms", queue = { time = "300ms" } }]
flows = [{ name = "call", media = { controller = "gcc" } }]
"""


def run(rate: float, *, seed: int = 1, loss: float = 0.0, capacity: float = 10e6, others: tuple[str, ...] = ()) -> Any:
    """A run with the numbers that decide whether a controller carried too little."""
    call: dict[str, Any] = {
        "flow": "call",
        "kind": "media",
        "controller": "any",
        "receive_rate_bps": rate,
        "loss_fraction": loss,
    }
    call["utilisation"] = rate / capacity
    flows = [call, *({"flow": f"{kind}-{n}", "kind": kind} for n, kind in enumerate(others))]
    sharing = [flow["flow"] for flow in flows if flow["kind"] != "udp"]
    return SimpleNamespace(
        summary={"seed": seed, "flows": flows, "fairness": {"flows": sharing if len(sharing) > 1 else []}}
    )


@pytest.mark.parametrize(
    ("groups", "out"),
    [
        ({"a": [run(2e6)], "b": [run(1.01e6)]}, ""),
        ({"a": [run(2e6)], "b": [run(0.99e6)]}, "b"),
        # the mean over seeds counts
        ({"a": [run(2e6), run(2e6, seed=2)], "b": [run(0.5e6), run(1.6e6, seed=2)]}, ""),
        # a controller that loses more than a tenth does not show what could be carried, unless all do
        ({"hog": [run(9e6, loss=0.11)], "a": [run(2e6, loss=0.1)], "b": [run(1.5e6)]}, ""),
        ({"hog": [run(9e6, loss=0.3)], "a": [run(2e6, loss=0.2)]}, "a"),
        # 10 Mbit/s for five flows: a controller that takes more than 2 is no yardstick
        ({"hog": [run(9e6, others=("tcp",) * 4)], "a": [run(1.1e6, others=("tcp",) * 4)]}, ""),
        ({"hog": [run(9e6, others=("tcp",) * 4)], "a": [run(0.9e6, others=("tcp",) * 4)]}, "a"),
        (
            {
                "hog": [run(9e6, others=("udp",))],
                "a": [run(2.6e6, others=("udp",))],
                "b": [run(2.4e6, others=("udp",))],
            },
            "b",
        ),
        ({"a": [run(0.0)], "b": [run(0.0)]}, ""),
    ],
)
def test_who_carried_too_little(groups: dict[str, Any], out: str) -> None:
    assert list(_carried.too_little(groups)) == list(out)


def test_nobody_is_best_by_not_sending(cli: Cli) -> None:
    """Without this rule 30 kbit/s is the best for delay, loss and queue on every network."""
    done = tidegate.compare(["gcc", "fixed:30kbps", "fixed:1Mbps"], Scenario.parse(CALL), seeds=2)
    rows = {row.key: row for row in done.table.rows}
    delay = rows["one_way_delay_ms_p95"]
    assert min(delay.cells, key=lambda name: delay.cells[name].mean) == "fixed:30kbps", "it has the least delay"
    assert delay.best.labels == {"fixed:1Mbps"}
    assert not any("fixed:30kbps" in row.best.labels for row in done.table.rows)
    assert list(done.table.too_little) == ["fixed:30kbps"]
    why = done.table.too_little["fixed:30kbps"]
    assert why.startswith("carried 0.04 Mbit/s, less than half of the possible 1.")
    assert f"`fixed:30kbps` {why}." in done.table.to_markdown()
    assert f"<code>fixed:30kbps</code> {why}." in report.html(done)
    assert done.to_data()["carried_too_little"] == {"fixed:30kbps": why}

    alone = tidegate.compare(["gcc", "fixed:30kbps"], Scenario.parse(CALL))
    best = {row.key for row in alone.table.rows if row.best.labels}
    assert best == {"receive_rate_bps", "utilisation"}, "only rates can be compared between the two"


def test_what_people_see_says_the_same(cli: Cli, tmp_path: Any) -> None:
    """Terminal, Markdown, JSON and report mark the same controllers as best, with the same certainty."""
    (tmp_path / "call.toml").write_text(CALL, "utf-8")
    argv = ["compare", "gcc", "fixed:30kbps", "fixed:1Mbps", "--scenario", "call.toml", "--seeds", "2"]
    printed = cli(*argv, "--out", "out")
    (line,) = (line for line in printed.out.splitlines() if line.startswith("one-way delay"))
    assert line.count("*") == 1
    data = json.loads(cli(*argv, "--json").out)
    cells = [cell for cell in data["table"] if cell["metric"] == "one_way_delay_ms_p95"]
    assert [cell["best"] for cell in cells] == [False, False, True]
    sure = cells[2]["sure"]
    assert ("*?" in line) == (not sure)
    (line,) = (line for line in (tmp_path / "out" / "table.md").read_text().splitlines() if "| one-way delay" in line)
    assert line.count("**") == 2
    assert ("** ?" in line) == (not sure)
    page = (tmp_path / "out" / "report.html").read_text()
    (row,) = (row for row in page.split("<tr>") if "95th percentile</span>" in row and "One-way" in row)
    assert row.count('class="best"') == int(sure)
    assert row.count('class="best unsure"') == int(not sure)
    assert row.count('class="out"') == 1, "a controller that is not compared is faint"
    assert "fixed:30kbps carried 0.04 Mbit/s" in printed.out


def test_one_seed_is_never_sure(cli: Cli, tmp_path: Any) -> None:
    (tmp_path / "call.toml").write_text(CALL, "utf-8")
    printed = cli("compare", "fixed:1Mbps", "fixed:1.9Mbps", "--scenario", "call.toml")
    assert "seed 1; * best, *? best mean, perhaps by chance" in printed.out
    assert printed.out.count("*?") == printed.out.count("*") - 1 >= 3
