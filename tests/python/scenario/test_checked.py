"""What `tidegate scenario check` finds good is what a run begins."""

from __future__ import annotations

from pathlib import Path

import pytest

import tidegate
from support import PLAIN, Cli
from tidegate import Scenario
from tidegate.scenario.lower import lower

RADIO = """duration = "2s"
[[links]]
name = "wire"
from = "server"
to = "core"
capacity = "10Mbps"
[lte]
users = [{users}]
[[flows]]
name = "a"
from = "server"
to = "phone"
media = {{ controller = "gcc" }}
{more}"""

PHONE = '{ name = "phone" }'
SEVERAL = PHONE + ', { name = "group", count = 2 }'
COMING = PHONE + ', { name = "group", arrival = { rate = "3/s", stay = "1s" } }'
TO_GROUP = '[[flows]]\nname = "b"\nfrom = "server"\nto = "group"\nmedia = { controller = "gcc" }\n'
FROM_GROUP = TO_GROUP.replace("server", "x").replace("group", "server").replace("x", "group")
COUPLED = '[[couplings]]\nflows = ["a", "b"]\n'


def moved(flow: str) -> str:
    return f'[[moves]]\ntime = "1s"\nflow = "{flow}"\nkey = "running"\nvalue = true\n'


OTHER_PATH = '[[moves]]\ntime = "1s"\nflow = "a"\nkey = "path"\nvalue = ["wire"]\n'


STATEMENTS: list[tuple[str, str, str]] = [
    (PHONE, moved("a"), ""),
    (PHONE.replace("}", ', start = "500ms" }'), moved("a"), ""),
    (SEVERAL, TO_GROUP + COUPLED, ""),
    (COMING, TO_GROUP + COUPLED, ""),
    (SEVERAL, FROM_GROUP + COUPLED, '20: couplings[1].flows[2]: "b" is sent from each of several users, "group"; expected flows of one sender'),
    (SEVERAL, TO_GROUP + moved("b"), '21: moves[1].flow: found "b"; "group" are several users of the radio network, each with a flow of its own, whose begin and end follow from its user\'s arrival and cannot be moved'),
    (PHONE, OTHER_PATH, '14: moves[1]: path: found phone; expected a call whose ends are no users of a radio network, whose path is the radio network\'s'),
    (COMING, TO_GROUP + moved("b"), '21: moves[1].flow: found "b"; "group" are several users of the radio network, each with a flow of its own, whose begin and end follow from its user\'s arrival and cannot be moved'),
    (PHONE.replace("}", ', stop = "1s" }') + ', { name = "x" }', TO_GROUP.replace("group", "x") + moved("a").replace("true", "false").replace("1s", "0s"), '20: moves[1].time: found "0s"; expected a time after a begins (0s)'),
    (PHONE.replace("}", ', start = "500ms", stop = "1s" }'), 'start = "700ms"\n' + TO_GROUP.replace("group", "phone") + moved("a"), '22: moves[1].flow: found "a"; its user "phone" is not there at its start (1.2s)'),
]  # fmt: skip


@pytest.mark.parametrize(("users", "more", "said"), STATEMENTS)
def test_moves_and_couplings_of_radio_flows(cli: Cli, tmp_path: Path, users: str, more: str, said: str) -> None:
    (tmp_path / "x.toml").write_text(RADIO.format(users=users, more=more))
    checked, run = cli("scenario", "check", "x.toml"), cli("run", "x.toml")
    assert checked.code == run.code
    assert checked.code == (2 if said else 0)
    if said:
        assert checked.err == run.err == f"tidegate: x.toml:{said}\n"


def test_a_flow_to_a_group_is_coupled_as_that_of_each_user() -> None:
    group = Scenario.parse(RADIO.format(users=SEVERAL, more=TO_GROUP + COUPLED))
    single = TO_GROUP.replace('"b"', '"b-{0}"').replace('"group"', '"group-{0}"')
    flows = single.replace("{0}", "1") + single.replace("{0}", "2")
    users = PHONE + ', { name = "group-1" }, { name = "group-2" }'
    listed = Scenario.parse(RADIO.format(users=users, more=flows + '[[couplings]]\nflows = ["a", "b-1", "b-2"]\n'))
    assert lower(group).ir["couplings"] == lower(listed).ir["couplings"]
    run = tidegate.run(group)
    assert run.digest == tidegate.run(listed).digest
    assert run.digest != tidegate.run(group.with_changes({"couplings": []})).digest


def test_code_has_a_stand_in_which_can_be_coupled(cli: Cli, tmp_path: Path) -> None:
    """What a class can do is in its code; only a run, or --run-code, knows it."""
    (tmp_path / "mine.py").write_text(
        "import pathlib, tidegate\n"
        "class Mine(tidegate.Controller):\n"
        "    def __init__(self):\n"
        "        pathlib.Path('made').touch()\n"
        "    def on_report(self, now_ns, report):\n"
        "        return 10**6\n"
    )
    text = PLAIN.replace('"gcc"', '"python:mine.py:Mine"')
    (tmp_path / "x.toml").write_text(text + '[[couplings]]\nflows = ["call"]\n')
    assert cli("scenario", "check", "x.toml").code == 0
    assert not (tmp_path / "made").exists()
    checked = cli("scenario", "check", "--run-code", "x.toml")
    assert checked.code == 2
    assert "expected a controller that can be coupled" in checked.err
    assert checked.err == cli("run", "x.toml").err.partition("\n")[2]


def test_external_flows_are_named(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_text(PLAIN + '[[flows]]\nname = "mine"\nexternal = {}\n')
    assert cli("scenario", "check", "x.toml").out.endswith(
        "driven by code of yours (tidegate.simpy), not by `tidegate run`: flows.mine\n"
    )
    assert cli("run", "x.toml").code == 2


def test_a_bin_of_years_is_no_work(cli: Cli, tmp_path: Path) -> None:
    """Nothing is generated for a bin that the run does not reach: this had no end."""
    generated = 'capacity = { brownian = { start = "5Mbps", sigma = "2Mbps", max = "12Mbps" } }'
    long = PLAIN.replace('capacity = "2Mbps"', generated)
    assert generated in long
    (tmp_path / "long.toml").write_text('bin = "200000000s"\n' + long)
    assert cli("scenario", "check", "long.toml").code == 0
