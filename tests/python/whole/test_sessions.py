"""Sessions of many members: what is refused and how, what the engine gets, what a run, a sweep and a report show."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path

import jsonschema
import numpy as np
import pytest

import tidegate
from support import Cli, example
from tidegate import Run, Scenario
from tidegate.errors import InputError, ScenarioError
from tidegate.results.metrics import MEMBERS, METRICS
from tidegate.scenario import Avpf, Link, Member, Session, schema
from tidegate.scenario.lower import lower
from tidegate.show.report import Source, html

bench = example("engine", "benches/peers")

FILE = """duration = "20s"

[[links]]
loss = "2%"
delay = "20ms"

[[sessions]]
name = "group"
bandwidth = "200kbps"

[[sessions.members]]
name = "speaker"
node = "left"
media = { rate = "200kbps", packet_size = "500B" }

[[sessions.members]]
name = "listener"
node = "right"
count = 3
"""


@pytest.fixture(scope="module")
def group() -> Scenario:
    return Scenario.parse(FILE)


@pytest.fixture(scope="module")
def once(group: Scenario) -> Run:
    return tidegate.run(group)


# --- what is understood ----------------------------------------------------------------------------------------------


def test_the_engine_gets_every_member_in_base_units(group: Scenario) -> None:
    rules = {"l": 0.5, "k": None, "redraw": False, "max_feedback_delay": 10**9, "rr_interval": 0, "reduced_size": False}
    rest = {"declared_sender": False, "reports_losses": True, "join": 0, "leave": None, "crashes": False}
    speaker: dict[str, object] = {
        "name": "speaker",
        "node": "left",
        "media": {"packets": {"packet_size": 500, "rate": 200_000}},
    }
    listeners: list[dict[str, object]] = [{"name": f"listener-{n}", "node": "right", "media": None} for n in (1, 2, 3)]
    members = [{**one, **rest, "profile": {"avpf": rules}} for one in (speaker, *listeners)]
    ir = lower(group).ir
    assert ir["sessions"] == [{"name": "group", "bandwidth": 200_000, "overhead": 28, "members": members}]
    assert ir["flows"] == []


def test_profiles_and_media_of_a_member_go_before_those_of_the_session() -> None:
    text = FILE.replace('bandwidth = "200kbps"', 'bandwidth = "200kbps"\nprofile = "avp"\nminimum = "2s"')
    text = text.replace("count = 3", 'profile = "avpf"\njoin = "1s"\nleave = "3s"\ncrashes = true')
    text = text.replace('packet_size = "500B"', "fps = 10, segments = 5")
    (session,) = lower(Scenario.parse(text)).ir["sessions"]
    speaker, listener = session["members"]
    assert speaker["profile"] == {"avp": {"minimum": 2 * 10**9}}
    assert speaker["media"] == {"segments": {"fps": 10.0, "segments": 5, "rate": 200_000}}
    assert set(listener["profile"]) == {"avpf"}
    assert (listener["join"], listener["leave"], listener["crashes"]) == (10**9, 3 * 10**9, True)


def test_builders_say_the_same_as_a_file(group: Scenario) -> None:
    members = [
        Member(name="speaker", node="left", media={"rate": "200kbps", "packet_size": "500B"}),
        Member(name="listener", node="right", count=3),
    ]
    built = Scenario(
        duration="20s",
        links=[Link(loss="2%", delay="20ms")],
        sessions=[Session(name="group", bandwidth="200kbps", members=members, avpf=Avpf(l=0.5))],
    )
    assert lower(built).hash == lower(group).hash


def test_a_session_survives_its_own_text(group: Scenario) -> None:
    again = Scenario.parse(group.to_toml())
    assert (again.to_toml(), lower(again).hash) == (group.to_toml(), lower(group).hash)


def test_the_schema_knows_sessions(group: Scenario) -> None:
    validator = jsonschema.Draft202012Validator(json.loads(schema.text()))
    data = group.to_dict()
    validator.validate(data)
    data["sessions"][0]["members"][0]["colour"] = "red"
    assert not validator.is_valid(data)


@pytest.mark.parametrize(
    ("found", "replaced", "line", "message"),
    [
        ('bandwidth = "200kbps"', 'bandwidth = "0bps"', 9, 'sessions.group.bandwidth: found "0Mbps"'),
        ('bandwidth = "200kbps"', "", 7, "sessions.group.bandwidth: the key is missing"),
        ("count = 3", "count = 0", 19, "sessions.group.members.listener.count: found 0"),
        ("count = 3", "count = 10000", 11, "sessions.group.members: found 10001; expected from 2 to 10000 members"),
        ("count = 3", 'colour = "red"', 19, "sessions.group.members.listener.colour: there is no such key"),
        ("count = 3", 'profile = "avpx"', 19, 'sessions.group.members.listener.profile: found "avpx"'),
        ("count = 3", 'leave = "0s"', 19, 'leave: found "0s"; expected later than join'),
        ("count = 3", 'join = "30s"', 19, 'join: found "30s"; expected less than the duration (20s)'),
        ("count = 3", "crashes = true", 19, "crashes: found true; it needs leave, the time at which the member leaves"),
        (
            "count = 3",
            '[[sessions.members]]\nname = "speaker"',
            20,
            '"speaker" is the name of entry 1, too; names are unique',
        ),
        ('node = "right"', 'node = "rihgt"', 18, 'no link begins or ends at "rihgt"; did you mean right?'),
        ('packet_size = "500B"', 'packet_size = "40B"', 14, "expected more than the 40 bytes of headers"),
        ('packet_size = "500B"', "fps = 100, segments = 100", 14, "packets would have 2 bytes"),
        ('rate = "200kbps", ', 'rate = "0bps", ', 14, 'media.rate: found "0Mbps"'),
        ('loss = "2%"', 'loss = "2%"\nback = false', 19, 'no links lead from "right" to "left"'),
        ('name = "group"', 'name = "group"\navpf = { l = -1 }', 9, "sessions.group.avpf.l: found -1"),
    ],
)
def test_what_is_refused_says_where(found: str, replaced: str, line: int, message: str, tmp_path: Path) -> None:
    file = tmp_path / "bad.toml"
    assert FILE.count(found) == 1
    file.write_text(FILE.replace(found, replaced), encoding="utf-8")
    with pytest.raises(ScenarioError) as error:
        Scenario.load(file)
    told = [one for one in str(error.value).splitlines() if message in one]
    assert told, str(error.value)
    assert f"{file}:{line}: " in told[0]


def test_a_scenario_needs_flows_or_sessions() -> None:
    with pytest.raises(ScenarioError, match="found neither flows nor sessions; expected at least one of them"):
        Scenario.parse(FILE.partition("[[sessions]]")[0])


def test_a_member_may_not_have_the_name_of_a_flow() -> None:
    flow = '\n[[flows]]\nname = "group.speaker"\nudp = { rate = "10kbps" }\n'
    with pytest.raises(ScenarioError, match=r'"group\.speaker" is the name of entry 1'):
        Scenario.parse(FILE + flow)


# --- what a run shows ------------------------------------------------------------------------------------------------


def test_losses_are_all_accounted_for(once: Run) -> None:
    speaker, *listeners = once.members
    assert [one["member"] for one in once.members] == ["speaker", "listener-1", "listener-2", "listener-3"]
    table = once.table("losses")
    flows, what = np.asarray(table.to_numpy("flow")), np.asarray(table.to_numpy("reporting"))
    waited = np.asarray(table.to_numpy("waited_ms"))
    for one in once.members:
        mine = flows == one["flow"]
        for column, word in (
            ("reported_early", "early"),
            ("reported_regular", "regular"),
            ("suppressed", "suppressed"),
            ("not_allowed", "not_allowed"),
        ):
            assert one[column] == np.sum(mine & (what == word))
        assert one["losses"] == np.sum(mine)
        sent = mine & np.isin(what, ["early", "regular"])
        if sent.any():
            assert one["waiting_ms_mean"] == pytest.approx(waited[sent].mean(), rel=1e-9)
    # the trunk drops one copy for all: all members behind it miss the same
    assert len({one["losses"] for one in listeners}) == 1
    assert listeners[0]["losses"] > 5
    assert speaker["losses"] == 0
    assert sum(one["suppressed"] for one in listeners) > 0
    assert speaker["losses_heard"] <= listeners[0]["losses"]


def test_shares_are_bytes_over_the_session_bandwidth(once: Run) -> None:
    table = once.table("rtcp")
    flows, sizes = np.asarray(table.to_numpy("flow")), np.asarray(table.to_numpy("size"), dtype=float)
    for one in once.members:
        expected = sizes[flows == one["flow"]].sum() * 8 / 20 / 200_000
        assert one["rtcp_share"] == pytest.approx(expected, rel=1e-9)


def test_a_saved_run_has_its_members_and_losses(once: Run, tmp_path: Path) -> None:
    again = Run.load(once.save(tmp_path / "run"))
    assert again.members == once.members
    assert "losses" in again.tables
    ours, theirs = (run.table("losses").to_numpy("t_s") for run in (once, again))
    assert np.array_equal(ours, theirs)


def test_a_run_without_sessions_has_no_members() -> None:
    run = tidegate.run(Scenario.load("home-broadband", {"duration": "1s"}))
    assert run.members == []
    assert "losses" not in run.tables


def test_every_metric_of_members_is_defined(once: Run) -> None:
    for name in MEMBERS:
        assert METRICS[name].definition
        assert name in once.members[0]


def test_the_command_line_shows_members_and_leaves_out_empty_flows(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "group.toml"
    file.write_text(FILE, encoding="utf-8")
    done = cli("run", str(file), "--out", str(tmp_path / "run"))
    assert done.code == 0, done.err
    blocks = [block.splitlines() for block in done.out.split("\n\n")]
    assert not [block for block in blocks if block[0].startswith("flow")]
    (found,) = [block for block in blocks if any(line.strip() == "group" for line in block)]
    members = found[[line.strip() for line in found].index("group") :]
    assert [line.split()[0] for line in members[1:]] == ["speaker", "listener-1", "listener-2", "listener-3", "all"]
    shares = [float(line.split()[2]) for line in members[1:-1]]
    assert float(members[-1].split()[2]) == pytest.approx(sum(shares), abs=0.002)
    page = cli("report", str(tmp_path / "run"))
    assert page.code == 0, page.err
    assert "Members of sessions" in (tmp_path / "run" / "report.html").read_text(encoding="utf-8")


def test_a_session_of_two_is_a_flow_as_well(cli: Cli) -> None:
    done = cli("run", "newpred")
    assert done.code == 0, done.err
    (flows,) = [block.splitlines() for block in done.out.split("\n\n") if block.startswith("flow")]
    assert flows[0].split() == ["flow", "video.sender"], "a column for each flow"
    page = html(Source({"avpf": [tidegate.run("newpred")]}))
    assert "In numbers" in page
    assert ">video.sender</th>" in page
    assert ">video.receiver</th>" not in page


def test_long_lists_of_members_are_cut(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "crowd.toml"
    file.write_text(FILE.replace("count = 3", "count = 60").replace("20s", "5s"), encoding="utf-8")
    done = cli("run", str(file))
    assert done.code == 0, done.err
    assert "and 41 more" in done.out
    assert "listener-20" not in done.out


def test_a_report_has_a_row_for_each_member_and_both_figures(once: Run) -> None:
    page = html(Source({"avpf": [once]}))
    for one in once.members:
        assert f">{one['member']}</th>" in page
    assert page.count('<svg viewBox="0 0 640 360"') == 2
    assert page.count("<polyline") == 2
    # what is copied on its way has no one rate or delay
    assert ">group.speaker</th>" not in page
    assert "In numbers" not in page
    assert "all 4" in page


def test_a_report_of_a_run_without_series_has_the_table_alone(group: Scenario) -> None:
    page = html(Source({"avpf": [tidegate.run(group, record="summary")]}))
    assert "Members of sessions" in page
    assert "<polyline" not in page


def test_a_sweep_has_the_sums_of_sessions(group: Scenario, tmp_path: Path) -> None:
    grid = {"sessions.group.avpf.l": ["0", "1"]}
    done = tidegate.sweep(group, grid, out=tmp_path / "sweep", seeds=2)
    rows = list(csv.DictReader(done.to_csv().splitlines()))
    assert len(rows) == 4
    for row, result in zip(rows, done.rows, strict=True):
        total = sum(one["rtcp_share"] for one in result["summary"]["members"])
        assert float(row["group.rtcp_share"]) == pytest.approx(total, rel=1e-12)
    # a member that does not wait suppresses no report
    waits: dict[str, list[float]] = {row["sessions.group.avpf.l"]: [] for row in rows}
    for row in rows:
        waits[row["sessions.group.avpf.l"]].append(float(row["group.waiting_ms_mean"]))
    assert np.mean(waits["0"]) < np.mean(waits["1"])
    assert "group: RTCP share (%)" in done.to_markdown()


def test_a_comparison_says_that_there_is_nothing_to_replace(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "group.toml"
    file.write_text(FILE, encoding="utf-8")
    done = cli("compare", "gcc", "--scenario", str(file))
    assert done.code == 2
    assert "no media flow has a controller to replace; members of sessions have no controller" in done.err
    crossed = cli("compare", "gcc", "--scenario", str(file), "--cross", "tcp:cubic@1s")
    assert crossed.code == 2
    assert "--cross tcp:cubic@1s: group has no flow, whose ends cross traffic would have" in crossed.err
    with pytest.raises(InputError, match="members of sessions have no controller"):
        tidegate.compare(["gcc"], Scenario.parse(FILE))


# --- sessions as they come with tidegate -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "members"),
    [("group-t2", 2), ("group-t4", 4), ("group-t8", 8), ("group-t16", 16), ("group-mixed", 8), ("newpred", 2)],
)
def test_shipped_sessions_stay_within_their_share_and_see_losses(name: str, members: int) -> None:
    run = tidegate.run(Scenario.load(name, {"duration": "1000s"}), record="summary")
    assert len(run.members) == members
    share = sum(one["rtcp_share"] for one in run.members)
    # section 5.2 of the draft has up to 5.09 % with losses
    assert 0.02 < share < 0.0515
    assert sum(one["losses"] for one in run.members) > 50


def test_newpred_repairs_what_was_reported_after_a_round_trip_and_a_picture() -> None:
    run = tidegate.run(Scenario.load("newpred", {"sessions.video.bandwidth": "10Mbps"}), record="summary")
    sender, receiver = run.members
    assert receiver["losses"] > 400
    assert receiver["losses"] - 3 <= receiver["recovered"] <= receiver["losses"]
    # RTCP is all but unlimited: what is left is waiting for the end of the picture, the round trip of 2 x 70 ms, and
    # for the next segment in the same place. From the gap, seen with the next segment, to the end of a picture of 6
    # segments, each missing in turn, are 4, 3, 2, 1, 0 and 0 sixths of it; then half a picture, and one more for each
    # segment in 20 that is lost again.
    picture = 1000 / 15
    to_the_end = np.mean([4, 3, 2, 1, 0, 0]) / 6
    assert receiver["waiting_ms_mean"] == pytest.approx(to_the_end * picture, rel=0.15)
    mean = 140 + picture * (to_the_end + 0.5 + 0.05 / 0.95)
    assert receiver["recovery_ms_mean"] == pytest.approx(mean, abs=picture / 6)
    assert math.isclose(sender["losses_heard"], receiver["losses"], abs_tol=3)


@pytest.mark.slow
def test_a_group_of_a_thousand_stays_within_its_share_and_a_shared_loss_draws_few_reports() -> None:
    run = tidegate.run(bench.group(600.0))
    assert len(run.members) == 1000
    assert sum(one["rtcp_share"] or 0 for one in run.members) < 0.051
    losses = max(one["losses"] for one in run.members)
    assert losses > 20
    assert sum(one["reported_early"] for one in run.members) / losses < 3
    assert sum(one["reported_early"] + one["reported_regular"] for one in run.members) / losses < 10
