"""Named variants of a scenario, which `tidegate compare` runs side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from tidegate.scenario.model import Model


class Variant(Model):
    """A variant of the scenario: some of its values replaced.

    >>> Variant(name="FQ-CoDel", set={"links.uplink.discipline": "fq-codel"}).name
    'FQ-CoDel'
    """

    if TYPE_CHECKING:

        def __init__(self, /, **keys: Any) -> None: ...

    name: Annotated[str, Field(pattern=r"^\S(.{0,62}\S)?$")]
    """Name of its column: at most 64 characters."""
    set: Annotated[dict[str, Any], Field(max_length=1000)] = Field(default_factory=dict)
    """Values by dotted key, as `--set` takes them; `controller` is the controller of the call. Only the first variant
    may change nothing, and then stands for the scenario as it is."""
