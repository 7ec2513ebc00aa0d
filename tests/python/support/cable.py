"""A made-up paper about a cable, and copies of it with a mistake."""

from __future__ import annotations

from pathlib import Path

from support import ROOT

CABLE = ROOT / "tests" / "data" / "papers" / "cable"
TOML = (CABLE / "paper.toml").read_text("utf-8")
CODE = (CABLE / "experiment.py").read_text("utf-8")


def wrong(folder: Path, original: str = "", replaced: str = "", code: str = CODE) -> Path:
    """Folder of a copy of the paper with a replaced text, or with other code."""
    assert original in TOML
    target = folder / "p"
    target.mkdir(exist_ok=True)
    (target / "paper.toml").write_text(TOML.replace(original, replaced, 1), "utf-8")
    (target / "experiment.py").write_text(code, "utf-8")
    return target
