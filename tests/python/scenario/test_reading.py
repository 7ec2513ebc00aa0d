"""Files that a scenario names: they are read once, and hashed whatever their size."""

from __future__ import annotations

import hashlib
from pathlib import Path

from support import PLAIN
from tidegate import Scenario
from tidegate.scenario._frames import ladder
from tidegate.scenario.lower import lower
from tidegate.scenario.reading import digest


def test_a_model_of_a_megabyte_is_hashed(tmp_path: Path) -> None:
    # models and files beside a controller are larger than code
    model = tmp_path / "model.onnx"
    model.write_bytes(bytes(10**6))
    assert digest(model) == hashlib.sha256(bytes(10**6)).hexdigest()


def test_a_ladder_of_twenty_minutes_is_read_and_hashed(tmp_path: Path) -> None:
    frames = "".join(f"{number}\tP\t{number / 30:.6f}\t30.0\t{1000 + number % 7}\n" for number in range(36_000))
    (tmp_path / "talk_500.txt").write_text(frames)
    assert len(frames) > 750_000
    path = tmp_path / "x.toml"
    path.write_text(PLAIN.replace('"gcc"', '"gcc", video = { source = "frames", ladder = "talk_*.txt" }'))
    run_input = lower(Scenario.load(path))
    assert run_input.inputs.files["talk_500.txt"] == hashlib.sha256(frames.encode()).hexdigest()
    (rung,) = ladder(tmp_path, "talk_*.txt")
    assert rung.sizes == [1000 + number % 7 for number in range(36_000)]
