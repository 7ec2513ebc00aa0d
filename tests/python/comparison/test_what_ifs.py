"""Variants of a scenario side by side: their columns, their luck, their differences."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tidegate
from support import Cli
from support.captures import A, B, pcap, rtp, udp
from tidegate import Comparison, Run, Scenario
from tidegate.errors import InputError, ScenarioError
from tidegate.output import html, markdown
from tidegate.output.document import Column, Document, Number, Paragraph, Row, Table
from tidegate.recordings import imported
from tidegate.results.metrics import METRICS
from tidegate.results.stats import Interval
from tidegate.show.table import ComparisonTable

HOME = """duration = "10s"

[[links]]
name = "uplink"
capacity = "1.5Mbps"
delay = "20ms"

[[flows]]
name = "call"
media = {}
"""
FAR = {"links.uplink.delay": "80ms"}
SCREAM = {"controller": "scream"}


def base() -> Scenario:
    return Scenario.parse(HOME, "home.toml")


def _controller(run: Run) -> Any:
    media = run.scenario.flows[0].media
    return media and media.controller


def test_columns_are_the_scenario_and_its_variants_with_the_same_luck() -> None:
    done = tidegate.compare(
        scenario=base(), variants={"far": FAR, "other": SCREAM, "far other": {**FAR, **SCREAM}}, seeds=2
    )
    assert done.controllers == ["home", "far", "other", "far other"]
    plain, far = base(), base().with_changes(FAR)
    other = {"flows.call.media.controller": "scream"}
    alone = [plain, far, plain.with_changes(other), far.with_changes(other)]
    for name, scenario in zip(done.controllers, alone, strict=True):
        assert [run.digest for run in done.runs[name]] == [tidegate.run(scenario, seed=seed).digest for seed in (1, 2)]
    assert done.variants == {"home": {}, "far": FAR, "other": SCREAM, "far other": {**FAR, **SCREAM}}


def test_differences_are_of_the_same_seeds() -> None:
    done = tidegate.compare(scenario=base(), variants={"far": FAR}, seeds=3)
    rates = [[run.metrics("call")["receive_rate_bps"] for run in done.runs[name]] for name in ("home", "far")]
    row = next(row for row in done.table.rows if row.key == "receive_rate_bps")
    difference = done.table.difference(row, "far")
    np.testing.assert_allclose(difference.mean, np.mean(np.subtract(rates[1], rates[0])))
    # Student's t for three runs
    assert difference.half is not None
    np.testing.assert_allclose(
        difference.half, 4.3027 * np.std(np.subtract(rates[1], rates[0]), ddof=1) / 3**0.5, rtol=1e-4
    )
    data = [entry for entry in done.table.to_data() if entry["metric"] == "receive_rate_bps"]
    assert ["difference" in entry for entry in data] == [False, True]
    assert data[1]["difference"] == difference.mean
    assert len([block for block in done.table.blocks() if isinstance(block, Table)]) == 2
    controllers = tidegate.compare(["gcc", "fixed"], base())
    assert not controllers.variants
    assert all("difference" not in entry for entry in controllers.table.to_data())


def test_the_first_variant_may_be_the_scenario_as_it_is_and_all_have_one_controller() -> None:
    done = tidegate.compare(["fixed:500kbps"], base(), variants={"today": {}, "far": FAR})
    assert done.controllers == ["today", "far"]
    assert {_controller(run) for runs in done.runs.values() for run in runs} == {"fixed:500kbps"}


def test_a_scenario_may_have_its_variants() -> None:
    table = '\n[[variants]]\nname = "today"\n\n[[variants]]\nname = "far"\nset = { "links.uplink.delay" = "80ms" }\n'
    stated = Scenario.parse(HOME + table, "home.toml")
    assert Scenario.parse(stated.to_toml()).variants == stated.variants
    done = tidegate.compare(scenario=stated)
    assert done.controllers == ["today", "far"]
    assert done.runs["far"][0].digest == tidegate.run(base().with_changes(FAR)).digest
    # they change nothing else
    assert tidegate.run(stated).digest == tidegate.run(base()).digest
    assert tidegate.compare(["gcc", "fixed"], stated).controllers == ["gcc", "fixed"]


def test_they_are_saved_loaded_and_reported(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "home.toml").write_text(HOME)
    out = tmp_path / "out"
    args = ["--scenario", str(tmp_path / "home.toml"), "--variant", "far: links.uplink.delay=80ms", "--seeds", "2"]
    shown = cli("compare", *args, "--variant", "far: links.uplink.queue.time=50ms", "--out", str(out))
    assert shown.code == 0, shown.err
    assert "Differences from home, of runs with the same seed:" in shown.out
    again = Comparison.load(out)
    assert again.variants == {"home": {}, "far": {"links.uplink.delay": "80ms", "links.uplink.queue.time": "50ms"}}
    assert again.table.against == "home"
    assert again.runs["far"][0].scenario.links[0].delay == 80_000_000
    assert "Differences from" in (out / "report.html").read_text()
    data = json.loads(cli("compare", *args, "--json").out)
    assert data["variants"]["far"] == FAR
    diffed = cli("diff", str(out), str(out))
    assert diffed.code == 0, diffed.err


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (["far"], '--variant far: expected NAME: KEY=VALUE, such as "far: links.uplink.delay=80ms"'),
        ([": links.uplink.delay=1ms"], "expected NAME: KEY=VALUE"),
        (["far: links.uplink.delay"], "expected NAME: KEY=VALUE"),
        (["far: links.uplink.delay=1ms", "far: links.uplink.delay=2ms"], "the key is given twice"),
        (["far: links.uplink.delay=soon"], 'variant far: scenario: links.uplink.delay: found "soon"'),
        (["far: links.up.delay=1ms"], "variant far: links.up.delay: no entry of links is called up"),
        (["other: controller=gc"], "variant other: gc: there is no such controller; did you mean gcc?"),
        (["home: links.uplink.delay=1ms"], "variant home: found the scenario's own name; expected another"),
        (["far: links.uplink.delay=1ms", "near:"], "variant near: found no changed value; expected a setting, as in"),
    ],
)
def test_what_is_wrong_is_told(cli: Cli, tmp_path: Path, texts: list[str], said: str) -> None:
    (tmp_path / "home.toml").write_text(HOME)
    options = [part for text in texts for part in ("--variant", text)]
    refused = cli("compare", "--scenario", str(tmp_path / "home.toml"), *options)
    assert refused.code == 2
    assert said in refused.err


@pytest.mark.parametrize(
    ("args", "starts"),
    [
        (["--variant", "far", "--variant", "near"], ["--variant far: expected", "--variant near: expected"]),
        (
            ["--variant", "a: links.up.delay=1ms", "--variant", "b: controller=gc", "--variant", "c: duration=5s"],
            ["variant a: links.up.delay: no entry", "variant b: gc: there is no such controller"],
        ),
        (
            ["--variant", "home: duration=5s", "--variant", "a:", "--variant", "b:"],
            ["variant a: found no changed value", "variant b: found no", "variant home: found the scenario's own"],
        ),
        (["gcd", "gcc", "nad"], ["gcd: there is no such controller", "nad: there is no such controller"]),
    ],
)
def test_everything_wrong_is_named_at_once(cli: Cli, tmp_path: Path, args: list[str], starts: list[str]) -> None:
    (tmp_path / "home.toml").write_text(HOME)
    refused = cli("compare", "--scenario", str(tmp_path / "home.toml"), *args)
    assert refused.code == 2
    lines = refused.err.removeprefix("tidegate: ").splitlines()
    assert len(lines) == len(starts)
    for line, start in zip(lines, starts, strict=True):
        assert line.strip().startswith(start)


def test_a_suite_names_every_controller_that_does_not_exist(cli: Cli) -> None:
    refused = cli("suite", "run", "smoke", "gcd", "gcc", "nad")
    assert refused.code == 2
    assert "gcd: there is no such controller" in refused.err
    assert "nad: there is no such controller" in refused.err


def test_controllers_times_variants_are_a_sweep() -> None:
    with pytest.raises(
        InputError, match=r"found 2 controllers beside variants; expected at most one: `tidegate sweep`"
    ):
        tidegate.compare(["gcc", "nada"], base(), variants={"far": FAR})
    with pytest.raises(InputError, match="a real program is compared with controllers alone"):
        tidegate.compare(["program:true"], base(), variants={"far": FAR})


@pytest.mark.parametrize("name", ["", " x", "x" * 65])
def test_names_of_variants_have_their_form(name: str) -> None:
    variants: list[Any] = [{"name": name, "set": FAR}]
    with pytest.raises(ScenarioError, match=r"variants\[1\]\.name"):
        Scenario.from_dict({**base().to_dict(), "variants": variants})


# --- a recorded call beside them -----------------------------------------------------------------


@pytest.fixture
def recorded(tmp_path: Path) -> Run:
    """Speech of ten seconds as its receiver got it, a twentieth of it lost."""
    file = tmp_path / "speech.pcap"
    packets = [(1.7e9 + n / 50, udp(B, A, rtp(n, 70_000), hops=60)) for n in range(500) if n % 20 != 7]
    file.write_bytes(pcap(packets))
    return imported([file])


def test_a_recorded_call_is_a_column_that_is_not_ranked(recorded: Run) -> None:
    done = tidegate.compare(["fixed:60kbps"], base(), seeds=2, recordings={"customer": recorded})
    assert done.controllers == ["fixed:60kbps", "customer, recorded"]
    rows = {row.key: row for row in done.table.rows}
    assert rows["loss_fraction"].cells["customer, recorded"].mean == pytest.approx(0.05, abs=0.003)
    # it carries more than the other, and loses more
    for row in rows.values():
        assert "customer, recorded" not in row.best.labels
    assert not done.table.too_little
    alone = tidegate.compare(["fixed:60kbps"], base(), seeds=2)
    freezes = ["freeze_time_s", "freezes"]
    assert [*(row.key for row in alone.table.rows), *freezes] == list(rows), "what all simulated columns have stays"
    text = markdown.markdown(done.document())
    assert "`customer, recorded` was recorded and not simulated: it is not ranked" in text
    assert "It has no frozen time: there is no getStats that counts it" in text


def test_a_recorded_and_a_simulated_call_share_a_row_of_frozen_time(tmp_path: Path) -> None:
    def report(second: int) -> dict[str, Any]:
        froze = second > 5
        counts = {"packetsReceived": 100 * (second + 1), "bytesReceived": 100_000 * (second + 1), "packetsLost": 0}
        stats = {"id": "I", "type": "inbound-rtp", "kind": "video", "ssrc": 77, "timestamp": 1.7e12 + 1000 * second}
        return {**stats, **counts, "freezeCount": int(froze), "totalFreezesDuration": 0.75 * froze}

    file = tmp_path / "stats.json"
    file.write_text("".join(json.dumps({"time_s": at, "report": [report(at)]}) + "\n" for at in range(10)))
    done = tidegate.compare(["fixed:3Mbps"], base(), recordings={"customer": imported([file])})
    rows = {row.key: row for row in done.table.rows}
    (simulated,) = done.runs["fixed:3Mbps"]
    ours = simulated.metrics("call")
    for name, theirs in (("freeze_time_s", 0.75), ("freezes", 1)):
        assert rows[name].cells["customer, recorded"].mean == theirs
        assert rows[name].cells["fixed:3Mbps"].mean == pytest.approx(ours[name])
    assert ours["freezes"]
    text = markdown.markdown(done.document())
    assert "Its browser counted its freezes" in text
    assert "no frozen time" not in text


def test_a_row_without_a_number_in_a_block_or_a_difference_is_left_out() -> None:
    def row(label: str, *means: float | None) -> Row:
        return Row([label, *(Number(METRICS["loss_fraction"], Interval.of([mean])) for mean in means)])

    columns = [Column(text) for text in ("", "a", "b", "c", "d")]
    table = Table(columns, [row("all", 1, 2, 3, 4), row("few", None, None, 3, 4)], "headline", abreast=2)
    first, second = html.page(Document("t", [table])).split("<table")[1:3]
    assert ("all" in first, "few" in first) == (True, False)
    assert ("all" in second, "few" in second) == (True, True)

    # three calls in a row without a queueing delay have a difference in none
    runs = tidegate.compare(scenario=base(), variants={"far": FAR}).runs
    without = {name: [run.under(name) for run in same] for name, same in runs.items()}
    for run in (run for same in without.values() for run in same):
        run.summary["flows"][0]["queueing_delay_ms_mean"] = None
    without["far"][0].summary["flows"][0]["queueing_delay_ms_mean"] = 3.0
    made = ComparisonTable.of(without, against="home")
    values, differences = [block for block in made.blocks() if isinstance(block, Table)]
    labels = [[str(line.cells[0]) for line in block.rows] for block in (values, differences)]
    assert "queueing delay, mean" in labels[0]
    assert "queueing delay, mean" not in labels[1]


def test_two_seeds_have_no_interval_that_is_wider_than_the_number() -> None:
    keys = {"links.uplink.capacity": "20Mbps", "links.uplink.loss": "0.05%"}
    done = tidegate.compare(["fixed:60kbps"], base().with_changes(keys), seeds=2)
    wide = [row for row in done.table.rows for cell in row.cells.values() if (cell.half or 0) > abs(cell.mean)]
    assert wide
    text = markdown.markdown(done.document())
    shown = {cells[1].strip(): cells[3] for line in text.splitlines() if len(cells := line.split("|")) > 3}
    for row in done.table.rows:
        cell = next(iter(row.cells.values()))
        assert ("±" in shown[row.label]) == (row not in wide and cell.half is not None), row.label
    sentence = "A number of two seeds alone has no interval"
    assert text.count(sentence) == 1
    assert all(entry["half_interval_95"] is not None for entry in done.table.to_data() if entry["runs"] == 2)
    more = markdown.markdown(tidegate.compare(["fixed:60kbps"], base().with_changes(keys), seeds=3).document())
    assert sentence not in more

    # of a row that only a whole document has, only a whole document says it
    def of_details(table: ComparisonTable) -> list[bool]:
        return [block.detail for block in table.blocks() if isinstance(block, Paragraph) and sentence in str(block)]

    hidden = replace(done.table, rows=[row for row in done.table.rows if row not in wide], details=wide)
    assert (of_details(done.table), of_details(hidden)) == ([False], [True])


def test_marks_are_a_row_where_a_queue_marks() -> None:
    marking = {"links.uplink.discipline": "dualpi2", "controller": "scream"}
    done = tidegate.compare(scenario=base(), variants={"L4S": marking})
    (row,) = (row for row in done.table.rows if row.key == "marked_fraction")
    flow = done.runs["L4S"][0].metrics("call")
    assert flow["marked"] > 0
    assert row.cells["L4S"].mean == pytest.approx(flow["marked"] / flow["packets_sent"])
    assert row.cells["home"].mean == 0
    assert "marked_fraction" not in {row.key for row in tidegate.compare(["gcc"], base()).table.rows}


def test_a_recorded_call_beside_variants_has_no_differences(recorded: Run, cli: Cli, tmp_path: Path) -> None:
    recorded.save(tmp_path / "mine")
    (tmp_path / "home.toml").write_text(HOME)
    command = ["compare", "--scenario", str(tmp_path / "home.toml"), "--recording", str(tmp_path / "mine")]
    done = cli(*command, "--variant", "far: links.uplink.delay=80ms", "--out", str(tmp_path / "out"))
    assert done.code == 0
    before, _, behind = done.out.partition("Differences from home")
    assert "mine, recorded" in before
    assert "far" in behind
    assert "mine, recorded" not in behind.partition("was recorded")[0].rpartition("\n")[0]
    again = Comparison.load(tmp_path / "out")
    assert again.table.recorded == ["mine, recorded"]
    # alone it stands beside the scenario as it is
    done = cli(*command, "--record", "summary")
    assert done.code == 0
    assert "Differences" not in done.out
    assert "home" in done.out


def test_what_is_no_recording_is_refused(recorded: Run, cli: Cli, tmp_path: Path) -> None:
    tidegate.run(base()).save(tmp_path / "simulated")
    (tmp_path / "home.toml").write_text(HOME)
    command = ["compare", "gcc", "--scenario", str(tmp_path / "home.toml")]
    for texts, said in (
        (["simulated"], "simulated: found a run that was simulated; expected a recorded call (tidegate import)"),
        (["nothing"], "--recording"),
    ):
        options = [part for text in texts for part in ("--recording", str(tmp_path / text))]
        done = cli(*command, *options)
        assert (done.code, done.out) == (2, "")
        assert said in done.err
    recorded.save(tmp_path / "mine")
    done = cli(*command, *(["--recording", f"a: {tmp_path / 'mine'}"] * 2))
    assert done.code == 2
    assert "found a twice; expected names that differ, as in NAME: DIR" in done.err
