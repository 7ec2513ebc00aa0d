"""gcc:libwebrtc against recordings of libwebrtc's whole controller, through the example that replays them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support import ROOT, Cli, example, shared
from tidegate import Scenario, run
from tidegate.control import registry as controllers
from tidegate.scenario import shipped

CARRIED = ROOT / "tests" / "data" / "gcc" / "goog_cc_bursty"


def check(result: dict[str, float], answers: int, probes: int) -> None:
    """Every answer to the bit, and every probe at its instant."""
    rates = dict.fromkeys(("target_bps", "stable_target_bps", "pacing_bps", "padding_bps"), 0.0)
    wrong = dict.fromkeys(("wrong_probes", "missing_probes", "missing"), 0)
    assert result == {**rates, **wrong, "answers": answers, "probes": probes}


def test_the_carried_recording() -> None:
    check(example("replay_goog_cc").Replay(str(CARRIED)).run(), 358, 3)


@pytest.mark.parametrize(
    ("name", "options", "answers", "probes"),
    [
        ("const1m", {}, 2391, 2),
        ("steps", {}, 3556, 3),
        ("drop_recovery", {}, 3036, 8),
        ("alr", {}, 1457, 10),
        ("alr_drop", {}, 2375, 6),
        ("bursty", {}, 2359, 3),
        ("limited_noalr", {"alr_probing": False}, 2395, 3),
        ("loss5", {"start_bps": 500_000, "max_bps": 5_000_000, "one_way_ms": 40}, 1820, 3),
    ],
)
def test_whole_recordings(name: str, options: dict[str, Any], answers: int, probes: int) -> None:
    prefix = shared() / "vectors" / f"goog_cc_{name}"
    check(example("replay_goog_cc").Replay(str(prefix), **options).run(), answers, probes)


def test_what_differs_is_seen(tmp_path: Path) -> None:
    for kind in ("packets", "rr", "targets", "probes"):
        shutil.copy(f"{CARRIED}_{kind}.csv", tmp_path / f"it_{kind}.csv")
    probes = (tmp_path / "it_probes.csv").read_text().replace("125000,3,3800000", "127000,3,3800000")
    (tmp_path / "it_probes.csv").write_text(probes)
    lines = (tmp_path / "it_targets.csv").read_text().splitlines()
    cells = lines[-1].split(",")
    cells[2] = str(int(int(cells[2]) / 1.01))
    (tmp_path / "it_targets.csv").write_text("\n".join([*lines[:-1], ",".join(cells)]) + "\n")
    result = example("replay_goog_cc").Replay(str(tmp_path / "it")).run()
    assert result["target_bps"] == pytest.approx(0.01, rel=1e-3)
    assert result["wrong_probes"] == 1
    # another setting, other answers
    assert example("replay_goog_cc").Replay(str(CARRIED), probe_first=2.5).run()["wrong_probes"] == 1
    assert example("replay_goog_cc").Replay(str(CARRIED), alr_usage=0.7, loss_offset=0.01).run()["target_bps"] > 0.01


def test_each_preset_has_settings_of_its_own_and_shows_them(cli: Cli) -> None:
    presets = controllers.registry()["gcc"]["presets"]
    settings = {preset: {setting["name"] for setting in controllers.settings_of("gcc", preset)} for preset in presets}
    assert {"probe_first", "beta"} <= settings["libwebrtc"]
    assert "k_up" not in settings["libwebrtc"]
    for preset in set(presets) - {"libwebrtc"}:
        assert {"k_up", "beta"} <= settings[preset]
        assert 5 <= len(settings[preset]) <= 25
    output = cli("controllers", "gcc:libwebrtc,beta=0.9").out
    assert "probe_first" in output
    assert "k_up" not in output
    draft = cli("controllers", "gcc:draft-02").out
    assert "overuse_time" in draft
    assert "decrease_offset" not in draft
    default = presets[0]
    assert default == "libwebrtc"
    listing = json.loads(cli("controllers", "gcc", "--json").out)
    assert listing["own_settings"].keys() == set(presets) - {default}
    assert {setting["name"] for setting in listing["settings"]} == settings[default]
    assert "defaults of a scenario's call with a camera: alr_probing=false, pacing_factor=1.1" in output
    assert "defaults of a scenario's call with a screen: alr_probing=true, pacing_factor=1.0" in output
    assert "a scenario's call" not in draft


def test_a_setting_of_another_preset_is_refused_with_its_name(cli: Cli) -> None:
    def refused(controller: str) -> str:
        return cli("controllers", controller).err

    assert "gcc: k_up is a setting of libwebrtc-v1, draft-02, aiortc, hoang2017, not of libwebrtc; available:" in (
        refused("gcc:libwebrtc,k_up=0.01")
    )
    assert "gcc: loss_over is a setting of hoang2017, not of draft-02; available: group_length, " in (
        refused("gcc:draft-02,loss_over=time")
    )
    # one that nothing has any longer
    assert "gcc: state_boost: there is no such setting; available: send_clock, " in refused("gcc:aiortc,state_boost=5")


@pytest.mark.parametrize(("parts", "factor"), [("", 1.1), (",pacing_factor=2", 2.0)])
def test_in_a_scenario_it_is_a_calls(parts: str, factor: float) -> None:
    """A call's pacing factor unless the scenario has one, and probes that find 2.5 Mbit/s in 0.3 s: a round trip each, and the next frame."""
    scenario = Scenario.load(shipped.find("home-broadband"))
    changes = {"flows.call.media.controller": f"gcc:libwebrtc{parts}", "duration": "5s"}
    decisions = run(scenario.with_changes(changes), record="series").table("decisions")
    time, target, pacing = (decisions.to_numpy(column) for column in ("t_s", "target_bps", "pacing_bps"))
    # whole bytes in a second
    assert np.abs(pacing - factor * target).max() <= 8
    assert 0.2 < time[np.argmax(target >= 2.4e6)] < 0.3
