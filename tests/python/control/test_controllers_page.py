"""`docs/controllers/index.md`: all schemes side by side, as the registry has them."""

from __future__ import annotations

from pathlib import Path

from support import ROOT
from tidegate.control import registry

PAGE = ROOT / "docs/controllers/index.md"


def test_every_scheme_is_in_the_table_with_what_it_needs() -> None:
    """Feedback and ECN are those of its default preset, and its page is there."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.read_text().splitlines()]
    documented = {row[0].split("`")[1]: (row[0], row[3], row[4]) for row in rows if row[0].startswith("[`")}
    assert sorted(documented) == sorted(registry.registry())
    for name, (link, feedback, ecn) in documented.items():
        needs = registry.choose(name, Path()).needs
        assert (needs.feedback, needs.ecn) == (feedback, ecn), name
        assert link == f"[`{name}`]({name}.md)"
        assert PAGE.with_name(f"{name}.md").is_file()
