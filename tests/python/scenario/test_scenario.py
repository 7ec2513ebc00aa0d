"""Scenarios: what is understood, what is refused and how, and what the engine gets."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support import PLAIN, shared
from tidegate import Audio, Back, Flow, Link, Media, Queue, Scenario, Tcp, Udp, _core
from tidegate.errors import InputError, ScenarioError
from tidegate.scenario import schema, shipped
from tidegate.scenario.lower import lower
from tidegate.units import Duration


def ir_of(text: str) -> dict[str, object]:
    return lower(Scenario.parse(text)).ir


def test_the_engine_gets_base_units_and_no_defaults_are_left() -> None:
    ir = ir_of(PLAIN)
    assert ir == {
        "name": "scenario",
        "duration": 4_000_000_000,
        "warmup": 0,
        "seed": 1,
        "seeds": [],
        "record": {"level": "series", "bin": 200_000_000, "capture": False},
        "sending_jitter": "auto",
        "links": [
            {
                "name": name,
                "from": ends[0],
                "to": ends[1],
                "capacity": {"constant": 2_000_000},
                "service": "fifo",
                "settings": {
                    "delay": 10_000_000,
                    "queue": {"packets": None, "bytes": None, "time": 300_000_000, "counts_in_service": True},
                    "discipline": "drop_tail",
                    "loss": "none",
                    "byte_error": 0.0,
                    "jitter": "none",
                    "ecn": "pass",
                },
            }
            for name, ends in (("cable", ("left", "right")), ("cable.back", ("right", "left")))
        ],
        "flows": [
            {
                "name": "call",
                "from": "left",
                "to": "right",
                "start": 0,
                "stop": None,
                "kind": {
                    "media": {
                        "controller": {"name": "gcc", "preset": "", "settings": {}, "python": False},
                        "min_rate": 30_000,
                        "max_rate": 2_500_000,
                        "start_rate": 300_000,
                        "video": {
                            "source": {
                                "statistical": {
                                    "tau_v": 200_000_000,
                                    "transient_frames": 8,
                                    "burst": 13_500,
                                    "key_factor": 3.0,
                                    "scale_t": 0.15,
                                    "scale_b": 0.15,
                                }
                            },
                            "min": 30_000,
                            "max": 2_500_000,
                            "fps": 30.0,
                            "below_min": "send",
                        },
                        "audio": None,
                        "feedback": {
                            "format": "twcc",
                            "interval": None,
                            "reports": "libwebrtc",
                            "profile": "free",
                            "bandwidth": None,
                            "reduced_size": False,
                            "rr_interval": 0,
                            "ecn_reports": False,
                        },
                        "playout": {"adaptive": {"min": 0, "max": 1_000_000_000}},
                        "repair": {
                            "nack": {"wait": 0, "requests": 100, "keep": None},
                            "pli": {"interval": 300_000_000},
                        },
                        "ecn": "off",
                        "ecn_initiation": False,
                        "circuit_breaker": "watch",
                        "payload": 1200,
                        "overhead": 28,
                        "marks": True,
                        "packets": None,
                        "queue_limit": 2_000_000_000,
                        "pauses": [],
                        "pair": None,
                    }
                },
            }
        ],
    }


EVERYTHING = """\
name = "everything"
duration = "60s"
warmup = "5s"
seed = 7
seeds = { cable = 9 }
sending_jitter = "5ms"
record = "packets"
bin = "100ms"
capture = true

[[links]]
name = "cable"
capacity = { schedule = [["0s", "1Mbps"], ["40s", "0bps"]], period = "50s" }
delay = "20ms"
queue = { packets = 100, bytes = "1MB", counts_in_service = false }
loss = { mean = "2%", burst = 5 }
byte_error = 1e-6
jitter = { rfc8868 = {} }
[links.back]
capacity = "infinite"
queue = {}
loss = 0
jitter = "none"

[[links]]
name = "second"
from = "right"
to = "far"
capacity = { brownian = { start = "3Mbps" } }
loss = { to_bad = 0.1, to_good = "50%", loss_bad = 0.9 }
jitter = { uniform = "3ms" }
back = false

[[links]]
name = "third"
from = "far"
to = "right"
loss = { schedule = [["0s", "1%"], ["10s", 0]] }
jitter = { normal = "2ms" }
back = false

[[flows]]
name = "call"
count = 2
start = "1s"
start_step = "2s"
stop = "50s"
media = { controller = { name = "fixed", rate = "1.5Mbps" }, both_ways = true, audio = {}, pauses = [["5s", "6s"]] }

[[flows]]
name = "talk"
media.controller = "gcc:draft-02"
media.video = false
media.audio = { rate = "64kbps" }
media.playout = { fixed = "150ms" }
media.feedback = { format = "ccfb", interval = "100ms" }

[[flows]]
name = "cross"
to = "far"
udp = { pattern = "on_off", rate = "1Mbps", on = "1s", off = "2s", schedule = [["0s", "2Mbps"]] }

[[flows]]
name = "web"
tcp = { workload = { web = { min = "10kB" } }, algorithm = "newreno", delayed_ack = false }

[[flows]]
name = "file"
tcp = { workload = { file = "1MB" } }
"""


def test_everything_at_once() -> None:
    ir = json.loads(json.dumps(ir_of(EVERYTHING)))
    cable, back, second, third = (link | link["settings"] for link in ir["links"])
    assert cable["capacity"] == {"schedule": {"steps": [[0, 10**6], [40 * 10**9, 0]], "period": 50 * 10**9}}
    assert cable["queue"] == {"packets": 100, "bytes": 10**6, "time": None, "counts_in_service": False}
    states = cable["loss"]["gilbert_elliott"]
    assert states["to_good"] == 0.2
    # in the long run the share of the bad state is the mean loss
    assert math.isclose(states["to_bad"] / (states["to_bad"] + states["to_good"]), 0.02)
    assert cable["jitter"] == {"rfc8868": {"std": 5_000_000, "n_std": 3.0, "mean": 0}}
    assert (back["name"], back["from"], back["to"]) == ("cable.back", "right", "left")
    assert (back["capacity"], back["loss"], back["jitter"]) == ("infinite", "none", "none")
    assert back["delay"] == cable["delay"]
    assert back["byte_error"] == 1e-6
    assert set(back["queue"].values()) == {None, True}
    assert second["capacity"]["brownian"]["start"] == 3_000_000
    assert second["loss"]["gilbert_elliott"] == {"to_bad": 0.1, "to_good": 0.5, "loss_good": 0.0, "loss_bad": 0.9}
    assert third["loss"] == [[0, {"bernoulli": 0.01}], [10**10, {"bernoulli": 0.0}]]
    flows = {flow["name"]: flow for flow in ir["flows"]}
    assert list(flows) == ["call-1", "call-1.back", "call-2", "call-2.back", "talk", "cross", "web", "file"]
    assert flows["call-2"]["start"] == 3 * 10**9
    assert flows["call-1"]["kind"]["media"]["pair"] == "call-1.back"
    assert flows["call-1.back"]["kind"]["media"]["pair"] == "call-1"
    assert (flows["call-1.back"]["from"], flows["call-1.back"]["to"]) == ("right", "left")
    chosen = flows["call-1"]["kind"]["media"]["controller"]
    assert chosen == {"name": "fixed", "preset": "", "settings": {"rate": 1_500_000}, "python": False}
    assert flows["call-1"]["kind"]["media"]["max_rate"] == 2_520_000
    talk = flows["talk"]["kind"]["media"]
    assert (talk["controller"]["preset"], talk["video"], talk["max_rate"]) == ("draft-02", None, 64_000)
    assert (talk["start_rate"], talk["playout"]) == (64_000, {"fixed": {"delay": 150_000_000}})
    cross = flows["cross"]["kind"]["udp"]
    assert cross["pattern"] == {"on_off": {"on": 10**9, "off": 2 * 10**9}}
    assert flows["web"]["kind"]["tcp"]["workload"] == {"web": {"min": 10_000, "max": 50_000, "idle": 10**10}}
    assert flows["file"]["kind"]["tcp"]["workload"] == {"file": 10**6}
    assert (ir["sending_jitter"], ir["seeds"]) == (5_000_000, [["cable", 9]])


@pytest.mark.parametrize("text", [PLAIN, EVERYTHING])
def test_a_scenario_survives_its_own_text(text: str) -> None:
    once = Scenario.parse(text)
    again = Scenario.parse(once.to_toml())
    assert again.to_dict() == once.to_dict()
    assert lower(again).ir == lower(once).ir
    assert lower(again).hash == lower(once).hash


def test_the_hash_is_of_what_matters() -> None:
    base = Scenario.parse(PLAIN)
    same = base.with_changes({"description": "x", "name": "other", "seed": 5})
    assert lower(same).hash == lower(base).hash
    assert lower(base.with_changes({"links.cable.delay": "11ms"})).hash != lower(base).hash


def test_builders_say_the_same_as_a_file() -> None:
    built = Scenario(
        name="scenario",
        duration="4s",
        links=[Link(name="cable", capacity="2Mbps", delay=Duration(10_000_000))],
        flows=[Flow(name="call", media=Media(controller="gcc"))],
    )
    assert lower(built).ir == ir_of(PLAIN)
    other = Link(name="x", queue=Queue(packets=3), back=Back(delay="1ms"))
    assert Scenario.parse(PLAIN).links[0].queue != other.queue
    assert Flow(udp=Udp(rate="1Mbps")).udp != Udp(rate="2Mbps")
    assert Flow(tcp=Tcp()).tcp == Tcp(algorithm="cubic")
    assert Media(audio=Audio()).largest_rate == 2_520_000


def test_builders_refuse_with_the_same_words() -> None:
    with pytest.raises(ScenarioError) as error:
        Link(name="x", delay=20, capcity="1Mbps")
    assert error.value.problems == (
        'Link: delay: found 20; a time needs a unit, for example "20ms" or "20s"',
        "Link: capcity: there is no such key; did you mean capacity? (keys here: back, byte_error, capacity, delay, "
        "discipline, ecn, from, jitter, loss, mtu, name, netem, queue, service, to, via)",
    )
    built = Scenario(duration="4s", links=[Link(name="a"), Link(name="a")], flows=[Flow(tcp=Tcp())])
    with pytest.raises(ScenarioError, match=r'links.a.name: "a" is the name of entry 1, too; names are unique'):
        built.check()


WRONG = [
    ('duration = "4s"', 'duration = 4', '1: duration: found 4; a time needs a unit, for example "4ms" or "4s"'),
    ('duration = "4s"', 'duration = "0s"', '1: duration: found "0s"; expected more than zero'),
    ('duration = "4s"', 'duration = "4s"\nwarmup = "4s"', '2: warmup: found "4s"; expected less than the duration (4s)'),
    ('duration = "4s"', 'duration = "4s"\nseed = -1', "2: seed: found -1; expected a number of at least 0"),
    ('duration = "4s"', 'duration = "4s"\nseed = 1.5', "2: seed: found 1.5; expected a whole number"),
    ('duration = "4s"', 'duration = "4s"\nrecord = "all"', '2: record: found "all"; expected "summary", "series" or '
     '"packets"'),
    ('duration = "4s"', 'duration = "4s"\nbin = "1ns"', '2: bin: found "1ns"; the series of flows and links would have more than 10000000 bins; expected a longer bin'),
    ('duration = "4s"', 'duraton = "4s"', 'x.toml: duration: the key is missing'),
    ('"2Mbps"', '"0Mbps"', '5: links.cable.capacity: found "0Mbps"; the link would never carry a packet'),
    ('"2Mbps"', '"fast"', '5: links.cable.capacity: found "fast"; expected a rate such as "10Mbps", "infinite", "external", or a table with schedule, trace, brownian, leo or statuses'),
    ('"2Mbps"', "{}", '5: links.cable.capacity: found {}; expected a rate such as "10Mbps", "infinite", "external", or a table with '
     "schedule, trace, brownian, leo or statuses"),
    ('"2Mbps"', '{ schedule = [["0s", "1Mbps"], ["3s", "2Mbps"], ["2s", "1Mbps"]] }',
     '5: links.cable.capacity.schedule[3]: the step at "2s" follows "3s"; expected steps in order of time'),
    ('"2Mbps"', '{ schedule = [["1s", "1Mbps"]] }',
     '5: links.cable.capacity.schedule[1]: the first step is at "1s"; expected "0s"'),
    ('"2Mbps"', '{ schedule = [["0s"]] }', '5: links.cable.capacity.schedule[1][2]: the key is missing'),
    ('"2Mbps"', '{ schedule = [] }', '5: links.cable.capacity.schedule: found []; expected a list of length 1 or more'),
    ('"2Mbps"', '{ brownian = { start = "20Mbps" } }',
     '5: links.cable.capacity.brownian.start: found "20Mbps"; expected at most max (12Mbps)'),
    ('delay = "10ms"', 'loss = "200%"', '6: links.cable.loss: found "200%"; a fraction lies between 0 and 1'),
    ('delay = "10ms"', 'loss = { mean = "90%", burst = 2 }',
     "6: links.cable.loss.mean: found 0.9; expected at most 0.667 with bursts of 2"),
    ('delay = "10ms"', "byte_error = nan", "6: links.cable.byte_error: found nan; a fraction lies between 0 and 1"),
    ('delay = "10ms"', 'to = "left"', '6: links.cable.to: found "left"; expected a point other than the one in `from`'),
    ('delay = "10ms"', "queue = { packets = 0 }", "6: links.cable.queue.packets: found 0; expected a number of at least 1"),
    ('delay = "10ms"', 'jitter = { uniform = "0s" }',
     '6: links.cable.jitter.uniform: found "0s"; expected more than zero'),
    ('name = "call"', 'name = "call"\nstart = "4s"', "10: flows.call.start: found \"4s\"; expected a time before the run's end (4s)"),
    ('name = "call"', 'name = "call"\nstop = "0s"', '10: flows.call.stop: found "0s"; expected a time after the start (0s)'),
    ('name = "call"', 'name = "call"\nto = "rihgt"',
     '10: flows.call.to: no link begins or ends at "rihgt"; did you mean right? (points: left, right)'),
    ('name = "call"', 'name = "a call"', '9: flows[1].name: found "a call"; expected a letter or digit, then letters, digits and _ . + -, at '
     "most 64 in total"),
    ('name = "call"', 'name = "call"\ntcp = {}', "8: flows.call: found media and tcp; expected exactly one of media, udp, tcp and external"),
    ('media = { controller = "gcc" }', "", "8: flows.call: found none; expected exactly one of media, udp, tcp and external"),
    ('"gcc" }', '"gcc", video = false }', "10: flows.call.media: found neither video nor audio; expected at least one of them"),
    ('"gcc" }', '"gcc", min_rate = "3Mbps" }',
     '10: flows.call.media.min_rate: found "3Mbps"; expected at most max_rate (2.5Mbps)'),
    ('"gcc" }', '"gcc", start_rate = "10bps" }',
     '10: flows.call.media.start_rate: found "10bps"; expected between 30kbps and 2.5Mbps'),
    ('"gcc" }', '"gcc", feedback = { format = "rtcp" } }',
     '10: flows.call.media.feedback.format: found "rtcp"; expected "auto", "twcc", "ccfb" or "none"'),
    ('"gcc" }', '"gcc", feedback = { interval = "often" } }',
     '10: flows.call.media.feedback.interval: found "often"; expected "auto", "frame", or a time'),
    ('"gcc" }', '"gcc", feedback = { interval = "1us" } }',
     '10: flows.call.media.feedback.interval: found "1us"; expected at least 1ms'),
    ('"gcc" }', '"gcc", pauses = [["3s", "2s"]] }',
     '10: flows.call.media.pauses[1]: found "3s" to "2s"; expected pauses in order of time, each from begin to a later end'),
    ('"gcc" }', '"gcc", video = { source = "camera" } }', '10: flows.call.media.video: found {source = "camera"}; expected '
     "false, or a table whose source is statistical, ideal, greedy, frames, encoder or cbr"),
    ('"gcc" }', '"gcc", video = { source = "ideal", schedule = [["0s", "1Mbps"], ["2s", "20kbps"]] } }',
     '10: flows.call.media.video.schedule[2]: found "20kbps"; expected at least min (30kbps)'),
    ('"gcc" }', '"gcc", video = { source = "greedy", schedule = [["1s", "1Mbps"]] } }',
     '10: flows.call.media.video.schedule[1]: the first step is at "1s"; expected "0s"'),
    ('delay = "10ms"', "back = false", '8: flows.call: no links lead from "right" to "left" for feedback or acknowledgements'),
]  # fmt: skip


@pytest.mark.parametrize(("found", "replaced", "message"), WRONG)
def test_refuses_and_says_where(found: str, replaced: str, message: str) -> None:
    assert found in PLAIN
    with pytest.raises(ScenarioError) as error:
        Scenario.parse(PLAIN.replace(found, replaced, 1), "x.toml")
    wanted = message if message.startswith("x.toml") else f"x.toml:{message}"
    assert error.value.problems[0] == wanted


def test_all_problems_are_told_at_once() -> None:
    text = PLAIN.replace('"10ms"', "10").replace('"2Mbps"', "2").replace("media", "medai")
    with pytest.raises(ScenarioError) as error:
        Scenario.parse(text, "x.toml")
    assert [problem.split(":")[1] for problem in error.value.problems] == ["5", "6", "10"]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6) | st.sampled_from(["1s", "1Mbps"]),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.sampled_from(["name", "capacity", "delay", "media", "video", "source", "back", "loss", "tcp",
                                       "schedule", "trace", "mean", "x"]), inner, max_size=4),
    max_leaves=10,
)  # fmt: skip


@given(json_values, json_values, json_values)
def test_nonsense_is_refused_never_a_crash(link: object, flow: object, other: object) -> None:
    try:
        Scenario.from_dict({"duration": "1s", "links": [link], "flows": [flow], "bin": other})
    except ScenarioError as error:
        assert error.problems


# --- the schema -----------------------------------------------------------------------------------


def test_the_shipped_schema_is_the_schema() -> None:
    assert schema.FILE.read_text("utf-8") == schema.text(), "run: tidegate scenario schema > (that file)"


def test_the_schema_takes_what_is_right_and_refuses_what_is_wrong() -> None:
    import tomllib

    validator = jsonschema.Draft202012Validator(schema.schema())
    for path in shipped.files():
        assert list(validator.iter_errors(tomllib.loads(path.read_text("utf-8")))) == [], path.name
    assert list(validator.iter_errors(tomllib.loads(EVERYTHING))) == []
    for original, replaced in [('"4s"', "4"), ('"2Mbps"', '"2MBps"'), ("delay", "dealy"), ('"gcc"', "3")]:
        assert list(validator.iter_errors(tomllib.loads(PLAIN.replace(original, replaced, 1)))), replaced


# --- files that scenarios name --------------------------------------------------------------------


def test_recorded_frames(tmp_path: Path) -> None:
    for rate, sizes in ((100, (400, 500)), (1000, (4000, 5000))):
        lines = [f"{number} P 0. {number / 30:.6f} {size}" for number, size in enumerate(sizes)]
        (tmp_path / f"talk_{rate}.txt").write_text("\n".join(["% header", *lines]))
    path = tmp_path / "x.toml"
    path.write_text(PLAIN.replace('"gcc"', '"gcc", video = { source = "frames", ladder = "talk_*.txt" }'))
    run_input = lower(Scenario.load(path))
    video = run_input.ir["flows"][0]["kind"]["media"]["video"]
    assert video["source"] == {"frames": {"rungs": [[100_000, [400, 500]], [1_000_000, [4000, 5000]]], "skip": 20}}
    assert set(run_input.inputs.files) == {"talk_100.txt", "talk_1000.txt"}
    for settings, skip in (({}, 0), ({"skip": 4}, 4)):
        changes = {"flows.call.media.video": {"source": "frames", "ladder": "talk_*.txt", "group": 2, **settings}}
        video = lower(Scenario.load(path, changes)).ir["flows"][0]["kind"]["media"]["video"]
        assert (video["source"]["frames"]["group"], video["source"]["frames"]["skip"]) == (2, skip)
    (tmp_path / "talk_100.txt").write_text("% header\n0 P 0. 0.0 400\n1 P 0. x\n")
    with pytest.raises(ScenarioError) as error:
        lower(Scenario.load(path))
    right = "five columns: frame, type, two others, size in bytes"
    assert str(error.value).endswith(f"talk_100.txt:3: found 4 columns; expected {right}")


def test_a_pattern_of_a_ladder_does_not_walk_through_many_folders(tmp_path: Path) -> None:
    """As `/*/*/*/x.txt` would through a whole disk: it is refused at the first part that matches too much."""
    for number in range(40 * 40):
        (tmp_path / f"{number // 40}" / f"{number % 40}").mkdir(parents=True)
    path = tmp_path / "x.toml"
    path.write_text(PLAIN.replace('"gcc"', '"gcc", video = { source = "frames", ladder = "*/*/*/x_100.txt" }'))
    with pytest.raises(
        InputError, match=r"over 1000 files or folders match \"\*\" in \"\*/\*/\*/x_100.txt\"; expected"
    ):
        lower(Scenario.load(path))
    # folders with a rung each are few
    (tmp_path / "1" / "talk_100.txt").write_text("0 P 0. 0.0 400\n")
    path.write_text(PLAIN.replace('"gcc"', '"gcc", video = { source = "frames", ladder = "*/talk_100.txt" }'))
    lower(Scenario.load(path))


def test_recorded_frames_of_the_public_set() -> None:
    folder = shared() / "traces" / "syncodecs-frames" / "chat_firefox_h264"
    scenario = Scenario.from_dict({**Scenario.parse(PLAIN).to_dict()}, folder).with_changes(
        {"flows.call.media.video": {"source": "frames", "ladder": "chat_360p_*.txt"}}
    )
    rungs = lower(scenario).ir["flows"][0]["kind"]["media"]["video"]["source"]["frames"]["rungs"]
    rates = [rate for rate, _ in rungs]
    assert rates == sorted(rates)
    assert rates[0] == 100_000
    # what an encoder asked for 100 kbit/s at some 30 frames a second made, within a factor of two
    mean = sum(rungs[0][1]) / len(rungs[0][1]) * 8 * 30
    assert 50_000 < mean < 200_000


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("links.wire.delay", "links.wire.delay: no entry of links is called wire; available: cable"),
        ("links.cabel.delay", "links.cabel.delay: no entry of links is called cabel; did you mean cable?"),
        ("links.cable", "links.cable: found the name of a table; expected a key in this table"),
        ("links..x", '"links..x" is not a key; expected names with dots between them'),
    ],
)
def test_changes_that_lead_nowhere(key: str, message: str) -> None:
    with pytest.raises(InputError) as error:
        Scenario.parse(PLAIN, changes={key: "1ms"})
    assert str(error.value) == message


def test_a_list_of_values_is_changed_as_a_whole() -> None:
    with pytest.raises(InputError) as error:
        Scenario.load("coupled-calls").with_changes({"couplings.1.priorities.2": 5})
    assert str(error.value) == (
        "couplings.1.priorities.2: couplings.1.priorities is a list of values; expected the whole list, as in "
        "couplings.1.priorities=[1, 2]"
    )
    made = Scenario.load("coupled-calls").with_changes({"couplings.1.priorities": [3, 1, 2]})
    assert made.couplings[0].priorities == [3, 1, 2]


def test_changes_go_where_they_should() -> None:
    scenario = Scenario.parse(PLAIN, changes={"flows.1.media.controller.beta": 0.9, "links.cable.back.loss": "1%"})
    controller = lower(scenario).ir["flows"][0]["kind"]["media"]["controller"]
    assert controller["settings"] == {"beta": 0.9}
    assert [link["settings"]["loss"] for link in lower(scenario).ir["links"]] == ["none", {"bernoulli": 0.01}]
    with pytest.raises(ScenarioError, match=r"^x.toml, as changed: links.cable.delay: found 3; a time needs"):
        Scenario.parse(PLAIN, "x.toml", changes={"links.cable.delay": 3})


def test_a_queue_limit_counts_the_packet_in_service_wherever_it_is_said() -> None:
    assert Queue().counts_in_service
    ir = lower(Scenario.parse(PLAIN, changes={"links.cable.capacity": "200kbps"})).ir
    digests = set()
    for queue in (
        {"packets": 2},
        {"packets": 2, "counts_in_service": True},
        {"packets": 2, "counts_in_service": False},
    ):
        ir["links"][0]["settings"]["queue"] = queue
        digests.add(_core.run(json.dumps(ir)).digest)
    assert len(digests) == 2, "the engine's own default is that of the scenario"


@pytest.mark.parametrize(
    ("media", "said"),
    [
        # the default of each, which means something else where it is written out
        ({"video": {"source": "greedy", "max": "2.5Mbps"}, "max_rate": "9Mbps"}, "max"),
        ({"video": {"source": "frames", "ladder": "sizes", "group": 10, "skip": 20}}, "skip"),
        ({"min_rate": "30kbps", "video": {"source": "ideal", "min": "1kbps", "max": "31kbps"}}, "min_rate"),
    ],
)
def test_a_default_that_was_written_is_written_again(media: dict[str, Any], said: str, tmp_path: Path) -> None:
    (tmp_path / "sizes").mkdir()
    (tmp_path / "sizes" / "made_900.txt").write_text("".join(f"{n} P 0 0 3000\n" for n in range(60)))

    def made(media: dict[str, Any]) -> Scenario:
        links = [{"name": "cable", "capacity": "2Mbps"}]
        data = {"duration": "2s", "links": links, "flows": [{"name": "call", "media": media}]}
        return Scenario.from_dict(data, tmp_path)

    one = made(media)
    again = Scenario.parse(one.to_toml(), tmp_path / "x.toml")
    assert f"{said} = " in one.to_toml()
    assert lower(again).ir == lower(one).ir | {"name": again.name}
    without = {key: value for key, value in media.items() if key != said}
    if said != "min_rate":
        without["video"] = {key: value for key, value in media["video"].items() if key != said}
        assert lower(made(without)).ir != lower(one).ir, "it means something"
    assert f"{said} = " not in made(without).to_toml()


def test_a_segment_with_timestamps_has_data() -> None:
    def scenario(size: str) -> Scenario:
        tcp = {"timestamps": True, "packet_size": size}
        return Scenario.from_dict({"duration": "4s", "links": [{"delay": "5ms"}], "flows": [{"tcp": tcp}]})

    scenario("53B")
    with pytest.raises(ScenarioError, match=r'packet_size: found "52B"; expected at least "53B", as with timestamps'):
        scenario("52B")


@pytest.mark.parametrize("version", ["bbr", "bbr3"])
def test_bbr_answers_no_marks_and_says_so(version: str) -> None:
    with pytest.raises(
        ScenarioError, match=rf"flows\.tcp\.tcp\.ecn: found true with {version}, whose .*expected false"
    ):
        Scenario.from_dict(
            {
                "duration": "4s",
                "links": [{"delay": "5ms"}],
                "flows": [{"name": "tcp", "tcp": {"algorithm": version, "ecn": True}}],
            }
        )


def test_other_algorithms_answer_marks() -> None:
    for algorithm in ("cubic", "dctcp", "prague"):
        Scenario.from_dict(
            {"duration": "4s", "links": [{"delay": "5ms"}], "flows": [{"tcp": {"algorithm": algorithm, "ecn": True}}]}
        )
