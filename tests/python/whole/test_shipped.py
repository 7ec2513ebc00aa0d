"""The results of the shipped scenarios, digest by digest.

`TIDEGATE_BLESS=1` writes the table anew; a commit that does so shows old and new lines and says why.
"""

from __future__ import annotations

import os

from support import shipped


def test_every_shipped_scenario_tells_the_same_story() -> None:
    text = shipped.table()
    if os.environ.get("TIDEGATE_BLESS") == "1":
        shipped.GOLDEN.write_text(text)
    assert shipped.GOLDEN.read_text() == text, (
        f"{shipped.GOLDEN.name} differs (TIDEGATE_BLESS=1 accepts it); now:\n{text}"
    )
