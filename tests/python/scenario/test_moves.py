"""Moves of a scenario: their form in files, their checks, and their effects."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tidegate
from support import Cli
from tidegate import Scenario
from tidegate.errors import InputError, ScenarioError

HOME = """duration = "20s"
sending_jitter = "off"

[[links]]
name = "uplink"
capacity = "2Mbps"
delay = "20ms"
queue = { packets = 60 }

[[flows]]
name = "call"
media = {}

[[flows]]
name = "upload"
tcp = {}
"""


def move(time: str, subject: str, key: str, value: str) -> str:
    return f'\n[[moves]]\ntime = "{time}"\n{subject}\nkey = "{key}"\nvalue = {value}\n'


DOWN = [("6s", "500kbps"), ("11s", "0bps"), ("12s", "3Mbps")]
# the way back has the capacity of the way there where nothing else is said, so a schedule is of both
MOVED = HOME + "".join(
    move(at, f'link = "{link}"', "capacity", f'"{rate}"') for at, rate in DOWN for link in ("uplink", "uplink.back")
)


def test_a_call_meets_moved_capacities_as_those_of_a_schedule() -> None:
    schedule = [["0s", "2Mbps"], *map(list, DOWN)]
    scheduled = Scenario.parse(HOME, changes={"links.uplink.capacity": {"schedule": schedule}})
    moved, planned = tidegate.run(Scenario.parse(MOVED)), tidegate.run(scheduled)
    assert moved.digest == planned.digest
    assert moved.summary["links"] == planned.summary["links"]
    for name in ("truth", "series", "queues"):
        for column in moved.table(name).columns:
            np.testing.assert_array_equal(moved.table(name)[column], planned.table(name)[column])
    still = tidegate.run(Scenario.parse(HOME))
    assert moved.digest != still.digest
    assert moved.metrics("call")["goodput_bps"] < 0.9 * still.metrics("call")["goodput_bps"]


def test_they_are_kept_as_they_were_written(tmp_path: Path) -> None:
    text = MOVED + move("3s", 'link = "uplink.back"', "delay", '"80ms"') + move("2s", 'link = "uplink"', "loss", '"1%"')
    text += move("4s", 'flow = "upload"', "running", "true") + move("9s", 'flow = "upload"', "running", "false")
    scenario = Scenario.parse(text)
    assert Scenario.parse(scenario.to_toml()).to_dict() == scenario.to_dict()
    run = tidegate.run(scenario)
    run.save(tmp_path / "run")
    again = tidegate.Run.load(tmp_path / "run")
    assert tidegate.run(again.scenario).digest == run.digest
    upload = run.table("packets" if "packets" in run.tables else "series")
    assert len(upload)
    flows = dict(zip(*(run.table("flows").to_numpy(name).tolist() for name in ("flow", "start_s")), strict=True))
    assert flows == {"call": 0.0, "upload": 4.0}


WRONG: list[tuple[str, str]] = [
    (move("5s", 'link = "uplnk"', "loss", '"1%"'), 'scenario.toml:20: moves[1].link: found "uplnk"; expected the name of a link; did you mean uplink?'),
    (move("21s", 'link = "uplink"', "loss", '"1%"'), 'scenario.toml:19: moves[1].time: found "21s"; expected at most the duration (20s)'),
    (move("5s", 'flow = "call"', "loss", '"1%"'), 'scenario.toml:21: moves[1].key: found "loss"; expected running or path for a flow'),
    (move("5s", 'link = "uplink"', "running", "true"), 'scenario.toml:21: moves[1].key: found "running"; expected capacity, delay or loss for a link'),
    (move("5s", 'link = "uplink"', "capacity", '"20ms"'), 'scenario.toml:22: moves[1].value: found "20ms"; expected a rate, such as "500kbps"'),
    (move("5s", 'link = "uplink"', "loss", "true"), 'scenario.toml:22: moves[1].value: found true; expected a fraction, such as "5%"'),
    (move("5s", 'link = "uplink"', "capacity", "5"), 'scenario.toml:22: moves[1].value: found 5; a rate needs a unit, for example "5kbps" or "5Mbps"'),
    (move("5s", 'link = "uplink"', "capacity", '"1Mb"'), 'scenario.toml:22: moves[1].value: found "1Mb"; no unit of rate is called "Mb"'),
    (move("5s", 'link = "uplink"', "delay", "20"), 'scenario.toml:22: moves[1].value: found 20; a time needs a unit, for example "20ms"'),
    (move("5s", 'flow = "call"', "running", '"off"'), 'scenario.toml:22: moves[1].value: found "off"; expected true or false'),
    (move("5s", 'link = "uplink"\nflow = "call"', "loss", '"1%"'), "moves[1]: found both link and flow; expected exactly one of them"),
    (move("5s", 'flow = "call"', "path", '"lte"'), 'scenario.toml:22: moves[1].value: found "lte"; expected a list of links, such as ["lte"]'),
    (move("5s", 'flow = "call"', "path", "[]"), "scenario.toml:22: moves[1].value: found []; expected a list of length 1 or more"),
    (move("5s", 'flow = "call"', "path", '["uplnk"]'), 'scenario.toml:22: moves[1].value: found "uplnk"; expected the name of a link; did you mean uplink?'),
    (move("5s", 'flow = "call"', "path", '["5 Mbit"]'), 'scenario.toml:22: moves[1].value[1]: found "5 Mbit"'),
    (move("5s", 'link = "uplink"', "path", '["uplink"]'), 'scenario.toml:21: moves[1].key: found "path"; expected capacity, delay or loss for a link'),
    (move("5s", 'link = "uplink"', "capacity", '["uplink"]'), 'scenario.toml:22: moves[1].value: found ["uplink"]; expected a rate, such as "500kbps"'),
    (move("5s", 'link = "uplink"', "loss", '"1%"') + "signalled = false", "scenario.toml:23: moves[1].signalled: found beside another key than path"),
    (move("5s", "", "loss", '"1%"'), "moves[1]: found neither link nor flow; expected exactly one of them"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "said"), WRONG)
def test_what_is_wrong_is_told_with_its_line(text: str, said: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        Scenario.parse(HOME + text)
    assert said in str(caught.value)


LTE = """
[[links]]
name = "lte"
capacity = "1Mbps"
delay = "60ms"
back = %s
"""


def test_a_call_goes_over_to_another_link_and_both_its_ends_hear_of_it() -> None:
    text = HOME + LTE % "true" + move("9s", 'flow = "call"', "path", '["lte"]')
    run = tidegate.run(Scenario.parse(text), record="packets")
    packets = run.table("packets")
    of_call = (packets.to_numpy("flow") == "call") & np.isfinite(packets.to_numpy("arrived_s"))
    sent, delay = (
        packets.to_numpy("sent_s")[of_call],
        (packets.to_numpy("arrived_s") - packets.to_numpy("sent_s"))[of_call],
    )
    assert delay[sent < 9].min() < 0.03
    assert delay[sent >= 9].min() > 0.06
    assert {*packets.to_numpy("kind")[of_call][sent >= 9]} >= {"video", "rtcp"}
    decisions = run.table("decisions")
    began = decisions.to_numpy("t_s") == 9.0
    assert decisions.to_numpy("target_bps")[began].tolist() == [300_000.0]
    silent = tidegate.run(Scenario.parse(text + "signalled = false"), record="series")
    assert 9.0 not in silent.table("decisions").to_numpy("t_s")
    assert Scenario.parse(run.scenario.to_toml()).to_dict() == run.scenario.to_dict()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (LTE % "false" + move("5s", 'flow = "call"', "path", '["lte"]'), '"lte" has no other direction, which the call\'s feedback needs'),
        (LTE % "true" + move("5s", 'flow = "call"', "path", '["lte.back"]'), 'moves[1]: path: found lte.back; expected a link from left'),
        (LTE % "true" + move("5s", 'flow = "call"', "path", '["lte", "uplink"]'), "expected a link from right (it leads from left to right)"),
        (LTE % "true" + move("5s", 'flow = "upload"', "path", '["lte"]'), 'found upload; expected a media flow: others keep their path'),
    ],
)  # fmt: skip
def test_a_path_leads_from_one_end_of_a_call_to_the_other_and_back(
    cli: Cli, tmp_path: Path, change: str, said: str
) -> None:
    (tmp_path / "x.toml").write_text(HOME + change)
    done = cli("scenario", "check", "x.toml")
    assert done.code == 2
    assert said in done.err
    assert cli("run", "x.toml").err == done.err


def running(time: str, value: str) -> str:
    return move(time, 'flow = "upload"', "running", value)


TIMES: list[tuple[str, str]] = [
    (running("5s", "true") + running("6s", "true"), "24: moves[2]: upload begins by moves[1] already; a flow begins once and ends once"),
    (running("5s", "false") + running("6s", "false"), "24: moves[2]: upload ends by moves[1] already; a flow begins once and ends once"),
    (running("5s", "true") + running("5s", "false"), '25: moves[2].time: found "5s"; expected a time after upload begins (5s)'),
    (running("5s", "false") + running("6s", "true"), '19: moves[1].time: found "5s"; expected a time after upload begins (6s)'),
    (running("0s", "false"), '19: moves[1].time: found "0s"; expected a time after upload begins (0s)'),
    ('stop = "4s"\n' + running("5s", "true"), '20: moves[1].time: found "5s"; expected a time before upload ends (4s)'),
]  # fmt: skip


@pytest.mark.parametrize("verb", ["run", "scenario check"])
@pytest.mark.parametrize(("text", "said"), TIMES)
def test_a_flow_begins_once_and_then_ends_once(cli: Cli, tmp_path: Path, text: str, said: str, verb: str) -> None:
    (tmp_path / "x.toml").write_text(HOME + text)
    done = cli(*verb.split(), "x.toml")
    assert (done.code, done.err) == (2, f"tidegate: x.toml:{said}\n")


def test_a_link_of_statuses_cannot_be_moved(cli: Cli, tmp_path: Path) -> None:
    text = HOME.replace(
        '"2Mbps"', '{ interval = "2s", statuses = [{ name = "one", capacity = "1Mbps", probability = 1 }] }'
    )
    text = text.replace('delay = "20ms"\nqueue = { packets = 60 }\n', "")
    (tmp_path / "x.toml").write_text(text + move("5s", 'link = "uplink"', "capacity", '"1Mbps"'))
    done = cli("run", "x.toml")
    assert done.code == 2
    assert "x.toml:16: moves[1]: links.uplink.capacity: " in done.err
    assert "no such setting with statuses" in done.err
    assert cli("scenario", "check", "x.toml").err == done.err
    with pytest.raises(InputError, match="no such setting with statuses"):
        Scenario.load("x.toml").check()
