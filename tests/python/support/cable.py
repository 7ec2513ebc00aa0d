"""A made-up paper about a cable, and copies of it with one thing wrong."""

from __future__ import annotations

from pathlib import Path

from support import ROOT

CABLE = ROOT / "tests" / "data" / "papers" / "cable"
TOML = (CABLE / "paper.toml").read_text("utf-8")
CODE = (CABLE / "experiment.py").read_text("utf-8")


def wrong(folder: Path, found: str = "", replaced: str = "", code: str = CODE) -> Path:
    """The cable with one thing wrong."""
    assert found in TOML
    target = folder / "p"
    target.mkdir(exist_ok=True)
    (target / "paper.toml").write_text(TOML.replace(found, replaced, 1), "utf-8")
    (target / "experiment.py").write_text(code, "utf-8")
    return target
