"""A setting has one name: in the file, in Python, in the engine's JSON and in Rust."""

from __future__ import annotations

from collections.abc import Iterator

from tidegate import Scenario, run
from tidegate.scenario.model import Model
from tidegate.scenario.reading import Files, Reading

EVERY_TABLE = """\
duration = "10s"
warmup = "1s"
sending_jitter = "2ms"
[[links]]
name = "a"
capacity = { schedule = [["0s","1Mbps"],["3s","2Mbps"]], period = "6s" }
delay = "3ms"
queue = { packets = 3, bytes = "10kB", time="1s", counts_in_service = false }
discipline = { name = "codel", ecn = false, ce_threshold = "1ms" }
loss = { mean = "1%", burst = 3 }
byte_error = "0.1%"
jitter = { rfc8868 = { std = "3ms" } }
back = { capacity = { brownian = { start = "1Mbps" } }, loss = { to_bad = 0.1, to_good = 0.4 }, jitter = { uniform = "2ms" }, byte_error = 0 }
[[links]]
name = "l"
from = "far"
to = "farther"
discipline = { name = "pie", qdelay_ref = "10ms", derandomize = false }
back = { discipline = { name = "dualpi2", range = "0s" } }
[[links]]
name = "b"
capacity = { statuses = [{name="x",capacity="1Mbps",probability=0.5},{name="y",capacity="0bps",probability=0.5}], interval="1s" }
from = "right"
to = "far"
[[links]]
name = "c"
from = "right"
to = "near"
discipline = { name = "policer", rate = "1Mbps", burst = "20kB", peak_rate = "3Mbps", discipline = { name = "fq-codel", flows = 16, quantum = "300B" } }
loss = { schedule = [["0s","1%"],["2s",0.2]] }
jitter = { normal = "2ms" }
back = false
[[links]]
name = "f"
from = "right"
to = "sky"
capacity = { leo = { median = "5Mbps" } }
[[links]]
name = "d"
from = "near"
to = "left"
capacity = "external"
[[flows]]
name = "m"
count = 2
start_step = "1s"
[flows.media]
controller = "gcc:draft-02,k_up=0.02"
audio = { spurts = true }
video = { source = "cbr", rate = "1Mbps", packet_size = "1000B" }
playout = { fixed = "30ms" }
both_ways = true
pauses = [["1s","2s"]]
packets = 5
repair = { nack = true, pli = { interval = "1s" }, fec = { packets = 5 } }
feedback = { profile = "avpf", reduced_size = true, rr_interval = "1s" }
[[flows]]
name = "m2"
media = { video = { source = "greedy" }, audio = {}, feedback = { bandwidth = "1Mbps", reports = "1s" } }
[[flows]]
name = "m3"
media = { video = { source = "ideal", max = "3Mbps", adaptation = { steps = [{ height = 180 }, { rate = "1Mbps", height = 360, fps = 15 }] } }, repair = {} }
[[flows]]
name = "m4"
media = { start_rate = "400kbps", playout = { adaptive = { max = "1s" } } }
[[flows]]
name = "u"
udp = { rate = "1Mbps", pattern = "on_off", on = "1s", off = "2s" }
[[flows]]
name = "u2"
udp = { rate = "1Mbps", schedule = [["0s","1Mbps"],["2s","2Mbps"]] }
[[flows]]
name = "t"
tcp = { workload = { web = {} }, algorithm = "reno" }
[[flows]]
name = "t2"
tcp = { workload = { file = "3MB" } , handshake = true }
[[flows]]
name = "t3"
tcp = {}
stop = "5s"
[[flows]]
name = "e"
external = {}
[[sessions]]
name = "s"
bandwidth = "100kbps"
members = [{name="p", node="left", media={rate="10kbps"}}, {name="q", node="right", count=2, profile="avp", leave="3s", crashes=true}]
"""
"""Every kind of table that needs no file."""

OTHER_NAMES = {
    "Link": {
        "back": "a link for each direction",
        **dict.fromkeys(("netem", "mtu", "via"), "left out where there is none"),
    },
    "Clock": {"ppm": "as `drift`, in parts per billion"},
    "ClockStep": dict.fromkeys(("time", "ahead", "behind"), "a pair of a time and a step"),
    "Flow": {
        **dict.fromkeys(("count", "start_step"), "a flow for each of several alike"),
        **dict.fromkeys(("media", "udp", "tcp", "external"), "the kind, under its own name"),
        "kind": "which of them it is",
    },
    "Media": {
        "both_ways": "two flows",
        "repair": "left out where nothing is repaired",
        "content": "below the controller, which a call sets up for it",
    },
    **{
        f"{kind}Video": dict.fromkeys(("schedule", "key_interval", "requests"), "left out where there is none")
        for kind in ("Ideal", "Frames")
    },
    "StatisticalVideo": dict.fromkeys(
        ("schedule", "key_interval", "requests", "adaptation"), "left out where there is none"
    ),
    "GreedyVideo": {"schedule": "left out where there is none"},
    "CbrVideo": {"rate": "a schedule of one step", **dict.fromkeys(("min", "max", "fps"), "what all video has")},
    "Schedule": {"schedule": "is the tag as well", "steps": "what the table has under its tag"},
    "Leo": {"cable": "whose two ways change together"},
    "MeanLoss": dict.fromkeys(
        ("mean", "burst", "to_bad", "to_good", "loss_good", "loss_bad"), "Gilbert's two states, by their mean"
    ),
    "Audio": dict.fromkeys(("spurts", "dtx"), "left out where there are none"),
    "Udp": {"on": "below the pattern", "off": "below the pattern"},
    **{kind: {"name": "is the tag"} for kind in ("Codel", "FqCodel", "Pie", "DualPi2", "Policer", "Shaper")},
    "Fixed": {"fixed": "is the tag as well", "delay": "what the table has under its tag"},
    "Member": {"count": "a member for each of several alike"},
    "Session": {
        **dict.fromkeys(("profile", "minimum", "avpf"), "said of each member"),
    },
    "Repair": dict.fromkeys(("nack", "pli", "fec"), "left out where it is off"),
}
"""Where a lowered key is not one of the model, or the other way round, and why."""

TAGS = {
    "schedule",
    "trace",
    "statuses",
    "gilbert_elliott",
    "packets",
    "segments",
    "fixed",
    "avp",
    "avpf",
    "codel",
    "policer",
    "shaper",
    "fq_codel",
    "pie",
    "dualpi2",
}
"""Words that say which of several shapes a table has: `{"statuses": {...}}`."""


def tables(value: object) -> Iterator[Model]:
    """Every table in a scenario."""
    if isinstance(value, Model):
        yield value
        for name in type(value).model_fields:
            yield from tables(getattr(value, name))
    elif isinstance(value, list):
        for entry in value:
            yield from tables(entry)


def test_every_setting_has_one_name() -> None:
    scenario = Scenario.parse(EVERY_TABLE)
    reading = Reading(scenario, Files())
    kinds, differing = set(), set()
    for table in (entry for part in (scenario.links, scenario.flows, scenario.sessions) for entry in tables(part)):
        kind = type(table).__name__
        kinds.add(kind)
        if kind in {"Back", "Controller"}:
            continue  # one is what differs from its link, the other is looked up in the registry
        ir = table.to_ir(reading)
        for entry in ir if isinstance(ir, list) else [ir]:
            if not isinstance(entry, dict):
                continue  # greedy, ideal
            if set(entry) <= TAGS and len(entry) == 1 and isinstance(next(iter(entry.values())), dict):
                entry = next(iter(entry.values()))  # noqa: PLW2901
            fields = {field.alias or name for name, field in type(table).model_fields.items()}
            fields -= {"source"}
            lowered = set(entry) - {"source"}
            if kind == "Link":
                lowered = (lowered - {"settings"}) | set(entry["settings"])
            if isinstance(entry.get("source"), dict):
                lowered |= set(next(iter(entry["source"].values())))
            differing |= {(kind, key) for key in fields ^ lowered}
    assert {
        "Link",
        "Queue",
        "StatusCapacity",
        "UniformJitter",
        "Udp",
        "Tcp",
        "StatisticalVideo",
        "Member",
        "Fec",
    } <= kinds
    assert differing == {(kind, key) for kind, keys in OTHER_NAMES.items() if kind in kinds for key in keys}
    # and the engine knows all of them: it refuses what it does not know
    without = scenario.with_changes({"links.d.capacity": "1Mbps"}).to_dict()
    without["flows"] = [flow for flow in without["flows"] if flow["name"] != "e"]
    assert run(Scenario.from_dict({**without, "duration": "2s", "warmup": "0s"}), record="summary").flows
