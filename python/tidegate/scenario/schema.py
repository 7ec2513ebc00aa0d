"""The JSON Schema of scenario files, for editors that complete and check while one types."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tidegate.scenario.scenario import Scenario

FILE = Path(__file__).with_name("scenario.schema.json")
"""The schema as it is shipped."""


def schema() -> dict[str, Any]:
    """As data."""
    made = Scenario.model_json_schema(by_alias=True, mode="validation")
    made.pop("title", None)

    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "tidegate scenario",
        **made,
    }


def text() -> str:
    """As a file."""
    return json.dumps(schema(), indent=1, ensure_ascii=False) + "\n"
