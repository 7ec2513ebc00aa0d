"""Changes of a scenario by dotted key, from Python and from every command that takes them: together, in any order."""

from __future__ import annotations

import itertools
import random
from pathlib import Path

import pytest

from support import PLAIN, Cli
from tidegate import Rate, Scenario, ScenarioError, Size, TidegateError, scenario_for, sweep
from tidegate.cli.options import changes

MINE = """\
import tidegate
class Slope(tidegate.Controller):
    def __init__(self, gain=0.08):
        self.rate, self.gain = 300e3, gain
    def on_report(self, now_ns, report):
        self.rate *= 1 + self.gain
        return min(self.rate, 2e6)
"""
FAMILY = {
    "flows.call.media.controller": "gcc:draft-02",
    "flows.call.media.controller.beta": 0.7,
    "flows.call.media.video": {"source": "greedy"},
    "flows.call.media.video.max": "1Mbps",
    "links.uplink.capacity": {"schedule": [["0s", "1Mbps"]]},
    "links.uplink.discipline": "codel",
    "links.uplink.discipline.target": "7ms",
    "links.uplink.queue": {"time": "100ms"},
    "duration": "5s",
    "warmup": "2s",
    "flows.call.start": "1s",
    "flows.call.name": "talk",
}
"""Tables and keys in them, and a name by which others go."""


@pytest.mark.parametrize("seed", range(20))
def test_the_order_of_changes_does_not_matter(seed: int) -> None:
    draw = random.Random(seed)
    drawn = draw.sample(sorted(FAMILY), draw.randint(2, len(FAMILY)))
    # a setting needs the name of what it is of, which home-broadband leaves to its default
    parents = {key.rpartition(".")[0] for key in drawn} & {*FAMILY}
    keys = draw.sample(sorted({*drawn, *parents}), len({*drawn, *parents}))
    wanted = Scenario.load("home-broadband", {key: FAMILY[key] for key in FAMILY if key in keys})
    shuffled = {key: FAMILY[key] for key in keys}
    for scenario in (
        Scenario.load("home-broadband", shuffled),
        Scenario.load("home-broadband").with_changes(shuffled),
        scenario_for(base="home-broadband", changes=shuffled),
    ):
        assert scenario.to_dict() == wanted.to_dict()
    if {"flows.call.media.controller", "flows.call.media.controller.beta"} <= {*keys}:
        media = wanted.flows[0].media
        assert media is not None
        assert media.to_dict()["controller"] == {"name": "gcc:draft-02", "beta": 0.7}
    assert FAMILY["flows.call.media.video"] == {"source": "greedy"}, "the caller's own tables are left as they were"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"flows.call.media.video": False, "flows.call.media.video.max": "1Mbps"},
            "flows.call.media.video.max: its table flows.call.media.video is also set, to false",
        ),
        (
            {"links.uplink.capacity.trace": "x.csv", "links.uplink.capacity": "1Mbps"},
            "links.uplink.capacity.trace: its table links.uplink.capacity is also set, to",
        ),
        (
            {"flows.call.media.controller": "gcc", "flows.call.media.controller.name": "nada"},
            "flows.call.media.controller.name: found the same key again as flows.call.media.controller; expected one of them",
        ),
        ({"links.1.delay": "1ms", "links.uplink.delay": "2ms"}, ".delay: found the same key again as links."),
    ],
)
def test_changes_that_contradict_each_other_are_refused_in_any_order(given: dict[str, object], message: str) -> None:
    for keys in itertools.permutations(given):
        with pytest.raises(TidegateError) as refused:
            Scenario.load("home-broadband").with_changes({key: given[key] for key in keys})
        assert message in str(refused.value)


def test_changes_are_checked_when_all_are_made() -> None:
    """The download begins at 30 s of 60."""
    both = {"duration": "20s", "flows.download.start": "5s"}
    for scenario in (
        Scenario.load("drop-and-download", both),
        Scenario.load("drop-and-download").with_changes(both),
        scenario_for(base="drop-and-download", changes=both),
    ):
        assert (str(scenario.duration), str(scenario.flows[1].start)) == ("20s", "5s")
    with pytest.raises(ScenarioError, match="before the run's end"):
        Scenario.load("drop-and-download", {"duration": "20s"})


def sets(*pairs: str) -> list[str]:
    return [part for pair in pairs for part in ("--set", pair)]


SHORT = ["--duration", "20s", *sets("flows.download.start=5s")]
SHORT_SETS = sets("duration=20s", "flows.download.start=5s")


@pytest.mark.parametrize(
    "argv",
    [
        ["run", "drop-and-download", *SHORT_SETS],
        ["compare", "gcc", "fixed", "--scenario", "drop-and-download", *SHORT],
        ["compare", "gcc", "fixed", "--scenario", "drop-and-download", *SHORT_SETS],
        ["sweep", "drop-and-download", *SHORT_SETS, *sets("links.downlink.delay=10ms,20ms"), "--out", "swept"],
        ["play", "drop-and-download", *SHORT_SETS, "--out", "page.html"],
    ],
    ids=lambda argv: f"{argv[0]} {argv[-1]}",
)
def test_commands_check_when_all_changes_are_made(argv: list[str], cli: Cli) -> None:
    done = cli(*argv)
    assert "before the run's end" not in done.err
    assert done.code == 0 or "the page is not built here" in done.err, done.err


@pytest.mark.parametrize("command", ["run", "compare", "sweep"])
def test_commands_take_parents_and_children_in_any_order(command: str, tmp_path: Path, cli: Cli) -> None:
    (tmp_path / "slope.py").write_text(MINE)
    pairs = [
        "duration=4s",
        "flows.call.media.controller.gain=0.02",
        "flows.call.media.controller=python:slope.py:Slope",
    ]
    head = {
        "run": ["run", "home-broadband", "--json"],
        "compare": ["compare", "gcc", "--scenario", "two-calls", "--json"],
        "sweep": ["sweep", "home-broadband", "--json"],
    }[command]
    if command == "compare":
        pairs = ["duration=24s", *(one.replace("flows.call.", "flows.second.") for one in pairs[1:])]
    outputs = set()
    for number, order in enumerate(itertools.permutations(pairs)):
        done = cli(*head, *sets(*order), *(["--out", f"out{number}"] if command == "sweep" else []))
        assert done.code == 0, done.err
        outputs.add(",".join(line for line in done.out.splitlines() if '"digest"' in line))
    assert len(outputs) == 1
    default = cli(*head, *sets(pairs[0], pairs[2]), *(["--out", "default"] if command == "sweep" else []))
    assert not any(line in outputs for line in [",".join(x for x in default.out.splitlines() if '"digest"' in x)])


def test_a_swept_setting_of_a_controller_that_is_named_later_is_swept(tmp_path: Path, cli: Cli) -> None:
    (tmp_path / "slope.py").write_text(MINE)
    grid = ["flows.call.media.controller.gain=0.02:0.2:4", "flows.call.media.controller=python:slope.py:Slope"]
    for number, order in enumerate(itertools.permutations(grid)):
        done = cli("sweep", "home-broadband", *sets(*order, "duration=4s"), "--out", f"out{number}")
        assert done.code == 0, done.err
        rates = [line.split()[1] for line in done.out.splitlines() if line[:4] in {"0.02", "0.08", "0.14", "0.2 "}]
        assert len(set(rates)) == 4, done.out


@pytest.mark.parametrize(
    "grid",
    [
        {"links.uplink.capacity": ["1Mbps", "1000kbps"]},
        {"links.uplink.capacity": ["1Mbps", "2Mbps"], "links.uplink.delay": ["10ms", "0.01s"]},
        {"seed": ["1", "2"]},
    ],
)
def test_combinations_that_are_one_scenario_are_refused(grid: dict[str, list[str]], tmp_path: Path) -> None:
    with pytest.raises(TidegateError, match="two combinations of values give the same scenario: "):
        sweep("home-broadband", grid, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_what_is_given_twice_is_refused(cli: Cli) -> None:
    for argv, message in (
        (["run", "home-broadband", *sets("duration=5s", "duration=6s")], "--set duration: the key is given twice"),
        (
            ["compare", "gcc", "--duration", "5s", *sets("duration=6s")],
            "--duration 5s: --set duration sets the same key; expected only one of the two",
        ),
    ):
        done = cli(*argv)
        assert (done.code, done.out) == (2, "")
        assert message in done.err


@pytest.mark.parametrize("value", ['"1ms"\nseed=7', '"1ms"\n[links]', '"1ms" # short', "{ a = 1 }\n#"])
def test_a_value_is_alone(cli: Cli, value: str) -> None:
    done = cli("run", "home-broadband", "--set", f"description={value}")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("tidegate: --set description: found ")
    assert done.err.endswith("; expected a value alone, without a comment or another key\n")
    done = cli("sweep", "home-broadband", "--set", f"description={value}", "--out", "x")
    assert (done.code, done.out) == (2, "")


def test_text_is_a_value_whatever_its_lines() -> None:
    assert changes(["description=one\ntwo # three", "name=[1,\n2]"]) == {
        "description": "one\ntwo # three",
        "name": [1, 2],
    }


def test_a_setting_with_a_unit_stays_one(tmp_path: Path) -> None:
    """Given as a quantity, it is written and changed like the text in a file; a class gets the number."""
    base = Scenario.load("home-broadband").with_changes(duration="2s")
    key = "flows.call.media.controller"
    changed = base.with_changes({key: {"name": "tfrc", "segment": Size("500B")}})
    assert changed == base.with_changes({key: {"name": "tfrc", "segment": "500B"}})
    again = tmp_path / "again.toml"
    again.write_text(changed.to_toml())
    assert Scenario.load(again).to_toml() == changed.with_changes(duration="2s").to_toml() == changed.to_toml()
    of_class = base.with_changes({key: {"name": "python:mine.py:Mine", "limit": Rate("50kbps")}})
    media = of_class.flows[0].media
    assert media is not None
    assert media.controller.settings == {"limit": 50_000}  # type: ignore[union-attr]


def test_a_setting_is_added_to_a_controller_that_is_there_by_default() -> None:
    """`to_dict` leaves the default out, and so may a file."""
    for scenario in (Scenario.parse(PLAIN), Scenario.parse(PLAIN.replace('{ controller = "gcc" }', "{}"))):
        changed = scenario.with_changes({"flows.call.media.controller.beta": 0.7})
        assert changed.to_dict()["flows"][0]["media"]["controller"] == {"name": "gcc", "beta": 0.7}
        named = scenario.with_changes({"flows.call.media.controller.k": 2, "flows.call.media.controller.name": "nada"})
        assert named.to_dict()["flows"][0]["media"]["controller"] == {"name": "nada", "k": 2}
