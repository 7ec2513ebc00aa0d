"""Moves of a scenario: their form in files, their checks, and their effects."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tidegate
from support import Cli
from tidegate import Scenario
from tidegate.control.registry import registry
from tidegate.errors import InputError, ScenarioError
from tidegate.scenario.lower import lower
from tidegate.scenario.ways import Capacities

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
    (move("5s", 'flow = "call"', "loss", '"1%"'), 'scenario.toml:21: moves[1].key: found "loss"; expected running, path, video, audio, max_rate, min_rate, video.max or repair for a flow'),
    (move("5s", 'link = "uplink"', "running", "true"), 'scenario.toml:21: moves[1].key: found "running"; expected capacity, delay, loss, jitter, byte_error, ecn, netem, mtu, queue or discipline for a link'),
    (move("5s", 'link = "uplink"', "capacity", '"20ms"'), 'scenario.toml:22: moves[1].value: found "20ms"; no unit of rate is called "ms"'),
    (move("5s", 'link = "uplink"', "loss", "true"), 'scenario.toml:22: moves[1].value: found true; expected a fraction, for example "5%"'),
    (move("5s", 'link = "uplink"', "capacity", "5"), 'scenario.toml:22: moves[1].value: found 5; a rate needs a unit, for example "5kbps" or "5Mbps"'),
    (move("5s", 'link = "uplink"', "capacity", '"1Mb"'), 'scenario.toml:22: moves[1].value: found "1Mb"; no unit of rate is called "Mb"'),
    (move("5s", 'link = "uplink"', "delay", "20"), 'scenario.toml:22: moves[1].value: found 20; a time needs a unit, for example "20ms"'),
    (move("5s", 'flow = "call"', "running", '"off"'), 'scenario.toml:22: moves[1].value: found "off"; expected true or false'),
    (move("5s", 'link = "uplink"\nflow = "call"', "loss", '"1%"'), "moves[1]: found both link and flow; expected exactly one of them"),
    (move("5s", 'flow = "call"', "path", '"lte"'), 'scenario.toml:22: moves[1].value: found "lte"; expected a list'),
    (move("5s", 'flow = "call"', "path", "[]"), "scenario.toml:22: moves[1].value: found []; expected a list of length 1 or more"),
    (move("5s", 'flow = "call"', "path", '["uplnk"]'), 'scenario.toml:22: moves[1].value: found "uplnk"; expected the name of a link; did you mean uplink?'),
    (move("5s", 'flow = "call"', "path", '["5 Mbit"]'), 'scenario.toml:22: moves[1].value[1]: found "5 Mbit"'),
    (move("5s", 'link = "uplink"', "path", '["uplink"]'), 'scenario.toml:21: moves[1].key: found "path"; expected capacity, delay, loss, jitter, byte_error, ecn, netem, mtu, queue or discipline for a link'),
    (move("5s", 'link = "uplink"', "capacity", '["uplink"]'), 'scenario.toml:22: moves[1].value: found ["uplink"]; expected a rate'),
    (move("5s", 'link = "uplink"', "loss", '"1%"') + "signalled = false", "scenario.toml:23: moves[1].signalled: found beside another key than path"),
    (move("5s", 'link = "uplink"', "colour", '"red"'), 'scenario.toml:21: moves[1].key: found "colour"; expected "capacity", "delay"'),
    (move("5s", 'link = "uplink"', "loss", "{ mean = 0.9, burst = 2 }"), "scenario.toml:22: moves[1].value.mean: found 0.9; expected at most 0.667 with bursts of 2"),
    (move("5s", 'link = "uplink"', "queue", "{ packet = 5 }"), "scenario.toml:22: moves[1].value.packet: there is no such key; did you mean packets?"),
    (move("5s", 'link = "uplink"', "discipline", '{ name = "pie", t_update = "1us" }'), 'scenario.toml:22: moves[1].value.t_update: found "1us"; expected at least 10us'),
    (move("5s", 'link = "uplink"', "jitter", '{ uniform = "0s" }'), 'scenario.toml:22: moves[1].value.uniform: found "0s"; expected more than zero'),
    (move("5s", "", "loss", '"1%"'), "moves[1]: found neither link nor flow; expected exactly one of them"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "said"), WRONG)
def test_what_is_wrong_is_told_with_its_line(text: str, said: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        Scenario.parse(HOME + text)
    assert said in str(caught.value)


def test_another_discipline_brings_its_limits_where_none_are_stated() -> None:
    # 2 Mbit/s for 4: the queue grows to its limit
    text = HOME.replace("queue = { packets = 60 }\n", "").replace("tcp = {}", 'udp = { rate = "4Mbps" }')
    pie = '{ name = "pie", qdelay_ref = "10s", max_burst = "20s" }'

    def most(*changes: str) -> int:
        run = tidegate.run(Scenario.parse(text + "".join(changes)))
        return int(run.table("queues").to_numpy("packets").max())

    assert most() < 80
    uplink = 'link = "uplink"'
    assert most(move("2s", uplink, "discipline", pie)) == 1000, "that of PIE"
    assert most(move("1s", uplink, "queue", "{ packets = 90 }"), move("2s", uplink, "discipline", pie)) == 90
    assert most(move("2s", uplink, "discipline", pie), move("4s", uplink, "queue", "{ packets = 90 }")) > 90


def test_by_hand_each_key_is_a_move(tmp_path: Path) -> None:
    world = tidegate.live_world(Scenario.parse(HOME.replace("queue = { packets = 60 }\n", "")), seed=2)
    world.step(seconds=3)
    world.change("uplink", discipline="fq-codel", jitter={"uniform": "4ms"}, loss={"mean": 0.01, "burst": 3})
    world.change("uplink.back", at="5s", byte_error=1e-6, ecn="bleach", queue={"packets": 50}, discipline="codel")
    world.step(seconds=8)
    world.change("uplink", discipline={"name": "shaper", "rate": "1Mbps", "burst": "20kB"})
    file = world.save(tmp_path / "by-hand.toml")
    assert tidegate.run(Scenario.load(file), seed=2).digest == world.finish().digest
    assert [move.key for move in world.scenario.moves] == [
        *("loss", "jitter", "queue", "discipline"),
        *("byte_error", "ecn", "queue", "discipline"),
        *("queue", "discipline"),
    ]
    for changes, said in [
        ({"queue": {"packets": 0}}, "uplink: queue.packets: found 0; expected a number of at least 1"),
        ({"discipline": "pi"}, 'uplink: discipline: found "pi"; expected one of drop-tail, codel'),
        ({"jitter": {"uniform": "0s"}}, 'uplink: jitter.uniform: found "0s"; expected more than zero'),
        ({"jitter": {"uniform": "1ms"}, "loss": {"to_bad": 0, "to_good": 0}}, "uplink: loss: to_bad and to_good are both 0"),
    ]:  # fmt: skip
        again = tidegate.live_world(Scenario.parse(HOME), seed=2)
        with pytest.raises(InputError) as caught:
            again.change("uplink", **changes)  # type: ignore[arg-type]
        assert said in str(caught.value)
        assert again.scenario.moves == []


def test_bounds_of_what_is_sent_hold_where_a_shaper_goes_and_comes() -> None:
    shaped = HOME.replace(
        "queue = { packets = 60 }", 'discipline = { name = "shaper", rate = "200kbps", burst = "3kB" }'
    )
    gone = Scenario.parse(shaped + move("4s", 'link = "uplink"', "discipline", '"drop-tail"'))
    come = Scenario.parse(
        HOME + move("4s", 'link = "uplink"', "discipline", '{ name = "shaper", rate = "200kbps", burst = "3kB" }')
    )
    for scenario in (gone, come):
        lowered = lower(scenario)
        bound = Capacities(lowered.ir, [])
        packets = tidegate.run(scenario, record="packets").table("packets")
        there = (packets.to_numpy("kind") != "rtcp") & (packets.to_numpy("kind") != "ack")
        carried = 8 * packets.to_numpy("size")[there & np.isfinite(packets.to_numpy("arrived_s"))].sum()
        bits = bound.amount("uplink", 0, 20 * 10**9)
        assert carried < bits < 2e6 * 20
    bound = Capacities(lower(gone).ir, [])
    assert bound.amount("uplink", 0, 4 * 10**9) == 0.2e6 * 4 + 24_000
    assert bound.amount("uplink", 4 * 10**9, 5 * 10**9) == 2e6


CALL = """duration = "30s"
seed = 3

[[links]]
name = "uplink"
capacity = "5Mbps"
delay = "20ms"

[[flows]]
name = "call"
media = { controller = "%s", audio = {}, both_ways = true }
"""


def targets(run: tidegate.Run, begin: float, end: float, flow: str = "call") -> np.ndarray:
    """The targets that hold from `begin` until before `end`."""
    table = run.table("decisions")
    mine = table.to_numpy("flow") == flow
    times, rates = table.to_numpy("t_s")[mine], table.to_numpy("target_bps")[mine]
    first = np.searchsorted(times, begin, side="right") - 1
    held: np.ndarray = rates[max(first, 0) : np.searchsorted(times, end)]
    return held


def adaptive() -> list[str]:
    names = (f"{name}:{preset}" for name, entry in registry().items() for preset in entry["presets"])
    return [name for name in names if not name.startswith("fixed")]


@pytest.mark.parametrize("controller", adaptive())
def test_every_controller_keeps_to_moved_limits(controller: str) -> None:
    still = tidegate.run(Scenario.parse(CALL % controller))
    limit = targets(still, 7, 10).max() // 2
    lower = move("10s", 'flow = "call"', "max_rate", f'"{limit:.0f}bps"')
    lower += move("20s", 'flow = "call"', "max_rate", '"2.6Mbps"')
    run = tidegate.run(Scenario.parse(CALL % controller + lower))
    assert targets(run, 10, 20).max() <= limit
    assert targets(run, 24, 30).max() > 1.1 * limit
    assert targets(run, 10, 20, "call.back").max() > 1.1 * limit, "what comes back has limits of its own"
    higher = tidegate.run(Scenario.parse(CALL % controller + move("10s", 'flow = "call"', "min_rate", '"2.4Mbps"')))
    assert targets(higher, 10, 30).min() >= 2_400_000


def test_an_encoder_with_a_lower_limit_sends_no_more_and_the_controller_probes_when_it_rises() -> None:
    limits = [("0s", "500kbps"), ("10s", "2.5Mbps"), ("20s", "800kbps")]
    text = CALL % "gcc" + "".join(move(at, 'flow = "call"', "video.max", f'"{rate}"') for at, rate in limits)
    run = tidegate.run(Scenario.parse(text))
    table = run.table("series")
    mine = table.to_numpy("flow") == "call"
    times, rates = table.to_numpy("t_s")[mine], table.to_numpy("sending_rate_bps")[mine]
    # video, some 30 kbit/s of audio, and headers
    for begin, end, low, high in ((4, 10, 4.5e5, 6.4e5), (14, 20, 2.2e6, 2.9e6), (22, 30, 7.5e5, 1e6)):
        assert low < rates[(times > begin) & (times < end)].mean() < high
    # what the probes of the beginning measured, and no more
    assert targets(run, 5, 9.9).max() < 1.4e6
    assert targets(run, 11, 20).max() > 2e6


@pytest.mark.parametrize("content", ["camera", "screen"])
def test_video_and_audio_pause_by_themselves(content: str) -> None:
    text = CALL % "gcc" + "".join(
        move(time, 'flow = "call"', key, value)
        for time, key, value in [
            ("0s", "video", "false"),
            ("8s", "video", "true"),
            ("16s", "video", "false"),
            ("12s", "audio", "false"),
            ("20s", "audio", "true"),
        ]
    )
    text = text.replace("audio = {}", f'audio = {{}}, content = "{content}"')
    run = tidegate.run(Scenario.parse(text), record="packets")
    packets = run.table("packets")
    sent, kind = packets.to_numpy("sent_s"), packets.to_numpy("kind")
    sent, kind = (values[packets.to_numpy("flow") == "call"] for values in (sent, kind))
    video, audio = sent[kind == "video"], sent[kind == "audio"]
    assert 8 <= video[0] < 8.02
    assert audio[0] == 0
    assert 15.9 < video[-1] < 16.2
    assert not ((audio > 12.05) & (audio < 20)).any()
    assert (audio >= 20).sum() > 400
    # when everything pauses, the flow has no share of the link
    assert run.metrics("call")["freeze_time_s"] < 0.5
    assert Scenario.parse(run.scenario.to_toml()).to_dict() == run.scenario.to_dict()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (move("5s", 'flow = "upload"', "max_rate", '"1Mbps"'), '20: moves[1].flow: found "upload"; expected a media flow for max_rate'),
        (move("5s", 'flow = "call"', "audio", "false"), '21: moves[1].key: found "audio"; the flow has no audio'),
        (move("5s", 'flow = "call"', "max_rate", '"0bps"'), '22: moves[1].value: found "0Mbps"; expected more than zero'),
        (move("5s", 'flow = "call"', "max_rate", '"20kbps"'), '22: moves[1].value: found "20kbps"; expected at least min_rate, which is 30kbps then'),
        (move("5s", 'flow = "call"', "max_rate", '"1Mbps"') + move("4s", 'flow = "call"', "min_rate", '"1.2Mbps"'), '22: moves[1].value: found "1Mbps"; expected at least min_rate, which is 1.2Mbps then'),
        (move("5s", 'flow = "call"', "video.max", '"9Mbps"'), '22: moves[1].value: found "9Mbps"; expected from 30kbps to 2.5Mbps, between which its encoder works'),
        (move("5s", 'flow = "call.back"', "video.max", '"1Mbps"'), '20: moves[1].flow: found "call.back"; expected the name of a flow'),
    ],
)  # fmt: skip
def test_moves_of_what_a_call_has_not_are_refused(text: str, said: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        Scenario.parse(HOME + text)
    assert f"scenario.toml:{said}" in str(caught.value)


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
