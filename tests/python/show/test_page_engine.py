"""The engine for browsers gives the digests of every other build."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from support import ROOT
from tidegate import Scenario, live_world, run
from tidegate.scenario.lower import lower

SHIPPED = ["home-broadband", "l4s-access", "rfc8867-5.1-variable-capacity", "satellite", "lte-cell", "group-t4"]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that crates/wasm/build writes."""
    for tool in ("node", "cargo", "rustc"):
        if shutil.which(tool) is None:
            pytest.skip(f"there is no {tool}, which builds or runs the engine for browsers")
    target = "wasm32-unknown-unknown"
    command = ["rustc", "--print", "target-libdir", "--target", target]
    result = subprocess.run(command, check=False, capture_output=True, text=True)
    if result.returncode or not Path(result.stdout.strip()).is_dir():
        pytest.skip(f"Rust's target {target} is not installed: rustup target add {target}")
    folder = tmp_path_factory.mktemp("engine")
    subprocess.run([ROOT / "crates" / "wasm" / "build", folder], check=True, timeout=1200)
    return folder


def in_node(engine: Path, scenario: Scenario, folder: Path, changes: list[dict[str, object]]) -> str:
    """The digest of a run of the browser's engine in node."""
    lowered = lower(scenario)
    ir = {**lowered.ir, "links": [{**link, "service": "managed"} for link in lowered.ir["links"]]}
    files = {"scenario": json.dumps(ir), "changes": json.dumps(changes)}
    files["traces"] = "[" + ",".join(trace.to_json() for trace in lowered.inputs.traces) + "]"
    for name, text in files.items():
        (folder / f"{name}.json").write_text(text)
    command = ["node", ROOT / ".ci" / "page-engine.mjs", engine, *(folder / f"{name}.json" for name in files)]
    done = subprocess.run([str(part) for part in command], check=True, capture_output=True, text=True, timeout=120)
    return done.stdout.strip()


@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_scenario_has_its_digest(engine: Path, tmp_path: Path, name: str) -> None:
    lines = (ROOT / "tests" / "golden" / "shipped.txt").read_text().splitlines()
    digest = next(line.split()[2] for line in lines if line.startswith(f"{name} "))
    assert in_node(engine, Scenario.load(name), tmp_path, []) == digest


def test_a_recorded_capacity_and_changes_by_hand_have_the_digest_of_python(engine: Path, tmp_path: Path) -> None:
    rows = "time_s,rate_bps,loss,delay_ms\n0,2000000,0,20\n4,900000,0.02,45.5\n8,1500000,0,20\n"
    (tmp_path / "x.csv").write_text(rows)
    text = Scenario.load("home-broadband", {"duration": "20s"}).to_toml()
    text = text.replace('capacity = "5Mbps"', 'capacity = { trace = "x.csv" }')
    scenario = Scenario.parse(text, tmp_path / "recorded.toml")
    assert in_node(engine, scenario, tmp_path, []) == run(scenario).digest
    world = live_world(scenario)
    world.step(until="7.25s")
    world.change("uplink", capacity="600kbps", loss="1%")
    change = {"capacity": 600_000, "loss": {"bernoulli": 0.01}}
    changes: list[dict[str, object]] = [{"time_s": 7.25, "link": "uplink", "change": change}]
    assert in_node(engine, scenario, tmp_path, changes) == world.finish().digest
