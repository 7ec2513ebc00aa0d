"""Same seed, same bits; a flow's random draws change no other flow."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from support import ROOT
from tidegate import Run, Scenario, compare, run
from tidegate.errors import ScenarioError

# two paths that share nothing: on one a call and a download over a generated cellular link with losses, on
# the other a call beside Poisson traffic
TWO_PATHS = """\
name = "two-paths"
duration = "12s"
seed = 5

[[links]]
name = "cell"
from = "a"
to = "b"
capacity = { brownian = { start = "4Mbps", max = "8Mbps", sigma = "500kbps" } }
delay = "25ms"
loss = "1%"

[[links]]
name = "cable"
from = "c"
to = "d"
capacity = "2Mbps"
delay = "10ms"
jitter = { rfc8868 = { std = "2ms" } }

[[flows]]
name = "call"
from = "a"
to = "b"
media = { controller = "gcc", audio = {} }

[[flows]]
name = "download"
from = "a"
to = "b"
start = "2s"
tcp = { algorithm = "cubic" }

[[flows]]
name = "other"
from = "c"
to = "d"
media = { controller = "gcc:draft-02", both_ways = true }

[[flows]]
name = "noise"
from = "c"
to = "d"
udp = { rate = "500kbps", pattern = "poisson" }
"""
LEVELS = ("summary", "series", "packets")


@pytest.fixture(scope="module")
def two_paths() -> Scenario:
    return Scenario.parse(TWO_PATHS)


@pytest.fixture(scope="module")
def plain(two_paths: Scenario) -> Run:
    return run(two_paths, record="packets")


IN_A_PROCESS = """\
import json, sys, tidegate
scenario = tidegate.Scenario.parse(sys.stdin.read())
found = {}
for level in ("summary", "series", "packets"):
    done = tidegate.run(scenario, record=level)
    found[level] = [done.digest, done.summary]
json.dump(found, sys.stdout)
"""


def test_processes_and_levels_give_the_same_bits(plain: Run) -> None:
    env = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    found = []
    for hash_seed in ("1", "2"):  # Python's own hashes differ from process to process, too
        done = subprocess.run(
            [sys.executable, "-c", IN_A_PROCESS],
            input=TWO_PATHS,
            env={**env, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        )
        found.append(json.loads(done.stdout))
    assert found[0] == found[1]
    expected = json.loads(json.dumps([plain.digest, plain.summary]))
    assert [found[0][level] for level in LEVELS] == [expected] * 3, "down to the last bit of every metric"


def test_threads_give_the_same_bits(two_paths: Scenario) -> None:
    digests = []
    for workers in (1, 2):
        done = compare(["gcc", "fixed:800kbps"], two_paths, seeds=[5, 6], workers=workers)
        digests.append({(name, one.seed): one.digest for name, runs in done.runs.items() for one in runs})
    assert digests[0] == digests[1]
    assert len(set(digests[0].values())) == 4, "another controller or seed is another run"


def rows(one: Run, flow: str) -> dict[str, np.ndarray]:
    """The packets of a flow, each column."""
    table = one.table("packets")
    mine = table.to_numpy("flow") == flow
    assert mine.any()
    return {column: table.to_numpy(column)[mine] for column in table.columns}


def assert_same_rows(first: Run, second: Run, flow: str) -> None:
    before, after = rows(first, flow), rows(second, flow)
    for column, values in before.items():
        np.testing.assert_array_equal(values, after[column], err_msg=f"{flow}: {column}", strict=True)


def common_luck(first: Run, second: Run, name: str) -> tuple[bool, int]:
    """Whether a substream gave both runs the same as far as both drew, and how far that was looked at."""
    one, two = (done.draws[name]["checkpoints"] for done in (first, second))
    seen = min(len(one), len(two))
    return one[:seen] == two[:seen], one[seen - 1][0] if seen else 0


def test_another_flows_luck_on_a_path_of_its_own_changes_nothing(two_paths: Scenario, plain: Run) -> None:
    other = run(two_paths.with_changes({"seeds": {"noise": 99}}), record="packets")
    assert other.digest != plain.digest
    assert not np.array_equal(rows(other, "noise")["sent_s"], rows(plain, "noise")["sent_s"])
    for flow in ("call", "download"):
        assert_same_rows(plain, other, flow)
    # the other path's link, too
    for column in ("t_s", "capacity_bps"):
        np.testing.assert_array_equal(plain.table("truth").to_numpy(column), other.table("truth").to_numpy(column))
    # and the same seed under another name is the seed of the run
    same = run(two_paths.with_changes({"seeds": {"noise": two_paths.seed}}), record="packets")
    assert same.digest == plain.digest


@pytest.mark.parametrize("changed", ["noise", "download", "call", "cell", "cell.back"])
def test_everybody_elses_luck_is_the_same_on_a_shared_link(two_paths: Scenario, plain: Run, changed: str) -> None:
    other = run(two_paths.with_changes({"seeds": {changed: 99}}), record="packets")
    mine = {"call": ("call.sender/", "call.receiver/")}.get(changed, (f"{changed}/",))
    assert other.draws.keys() == plain.draws.keys()
    looked_at, differing = 0, 0
    for name in plain.draws:
        same, draws = common_luck(plain, other, name)
        if name.startswith(mine):
            differing += not same
        else:
            assert same, name
            looked_at += draws
    assert differing > 0, "the changed seed changes something"
    # the link draws once for each packet, and the luck of all that came by is compared
    assert looked_at > 2000


def test_an_added_flow_disturbs_nobodys_luck(two_paths: Scenario, plain: Run) -> None:
    data = two_paths.to_dict()
    data["flows"].insert(0, {"name": "first", "from": "c", "to": "d", "udp": {"rate": "100kbps", "pattern": "poisson"}})
    more = run(Scenario.from_dict(data), record="packets")
    for flow in ("call", "download"):
        assert_same_rows(plain, more, flow)
    for name in plain.draws:
        assert common_luck(plain, more, name)[0], name


def test_a_seed_is_for_something_there_is() -> None:
    for name, right in (("nois", "noise"), ("cable.bak", "cable.back")):
        text = TWO_PATHS.replace("seed = 5", f'seed = 5\nseeds = {{ "{name}" = 7 }}')
        with pytest.raises(
            ScenarioError,
            match=f'seeds.{name}: no link, flow, member or radio network is called "{name}"; did you mean {right}',
        ):
            Scenario.parse(text)
