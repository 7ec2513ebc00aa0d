"""Writes the reference pages from what the program itself knows: `make docs` runs it first.

Scenario files come from their JSON Schema, metrics from their catalogue, controllers from the
registry. The pages go to docs/reference/; they are kept, so that links to them lead somewhere in a
clone, too, and a test holds them against what the program knows.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tidegate import metrics
from tidegate.control.registry import registry, settings_of
from tidegate.scenario import flows, moves, schema
from tidegate.scenario.flows import Flow
from tidegate.scenario.links import Way
from tidegate.scenario.media import Media

HERE = Path(__file__).parent
NOTE = "<!-- Written by docs/gen_reference.py: changes here are lost. -->\n\n"

SCENARIO = """\
A scenario is a TOML file. Every time, rate and size carries its unit; 1 kb is 1000 bit and 1 kB is
1000 bytes. Keys that are not listed are errors. For completion in an editor:
`tidegate scenario schema > scenario.schema.json`.

"""
METRICS = """\
What a run's summary holds, for flows, links and fairness. Names are the same in Python, JSON and
CSV, where values are in the unit of the name's suffix; tables for people show the unit given here.
What the metrics have in common is told in [What the numbers mean](../results.md).

"""
CONTROLLERS = """\
`NAME:PRESET,KEY=VALUE` names a controller with a preset and settings of one's own; the first preset
is the default. `tidegate controllers NAME` prints the same.
"""

Schema = Mapping[str, Any]


def cell(text: object) -> str:
    """Text for one cell of a Markdown table."""
    return " ".join(str(text).split()).replace("|", "\\|").replace("<", "&lt;")


def row(*cells: object) -> str:
    """One line of a Markdown table."""
    return "| " + " | ".join(cell(one) for one in cells) + " |\n"


def head(*names: str) -> str:
    """The first two lines of a Markdown table."""
    return row(*names) + "|" + "---|" * len(names) + "\n"


#: Types of JSON Schema in words.
WORDS = {
    "object": "table",
    "string": "text",
    "integer": "whole number",
    "number": "number",
    "boolean": "true or false",
}


class Scenario:
    """The reference of scenario files, a section for each kind of table in them."""

    def __init__(self, root: Schema) -> None:
        self.root = root
        self.definitions: Mapping[str, Schema] = root.get("$defs", {})

    def page(self) -> str:
        """The whole page."""
        parts = [
            "# Scenario files\n\n",
            NOTE,
            SCENARIO,
            "## The file\n\n",
            self.table(self.root),
        ]
        for name in self.reachable():
            definition = self.definitions[name]
            # the examples of a docstring are Python, and this page is about files
            about = definition.get("description", "").partition(">>>")[0].strip()
            parts.append(f"\n## {name}\n\n{about}\n\n")
            parts.append(self.table(definition))
            if name == "Move":
                parts.append(moved())
        return "".join(parts)

    def reachable(self) -> list[str]:
        """Names of the tables that the file can hold, in the order in which a reader meets them."""
        found: dict[str, None] = {}
        waiting = list(self.references(self.root.get("properties", {})))
        while waiting:
            name = waiting.pop(0)
            definition = self.definitions.get(name, {})
            if name not in found and definition.get("properties"):
                found[name] = None
                waiting += self.references(definition)
        return list(found)

    def references(self, node: Any) -> Iterator[str]:
        """Names of definitions that a part of the schema speaks of."""
        if isinstance(node, dict):
            if isinstance(node.get("$ref"), str):
                yield node["$ref"].rsplit("/", 1)[-1]
            for value in node.values():
                yield from self.references(value)
        elif isinstance(node, list):
            for value in node:
                yield from self.references(value)

    def table(self, definition: Schema) -> str:
        """The keys of one table."""
        required = set(definition.get("required", ()))
        lines = [head("key", "value", "default", "meaning")]
        for name, node in definition.get("properties", {}).items():
            if "default" in node:
                default = f"`{json.dumps(node['default'], ensure_ascii=False)}`"
            else:
                default = "**required**" if name in required else ""
            lines.append(row(f"`{name}`", self.kind(node), default, node.get("description", "")))
        return "".join(lines)

    def kind(self, node: Schema) -> str:
        """What a value may be, in words."""
        if "$ref" in node:
            return self.named(node["$ref"].rsplit("/", 1)[-1])
        for key in ("anyOf", "oneOf", "allOf"):
            if key in node:
                kinds = [self.kind(one) for one in node[key] if one.get("type") != "null"]
                return " or ".join(dict.fromkeys(kind for kind in kinds if kind))
        if words := node.get("enum", [node["const"]] if "const" in node else []):
            return ", ".join(f"`{json.dumps(one)}`" for one in words)
        if node.get("type") == "array":
            return self.array(node)
        if node.get("type") == "string" and node.get("examples"):
            return f"text such as `{json.dumps(node['examples'][0])}`"
        word = WORDS.get(node.get("type", ""), "")
        return word + bounds(node) if "number" in word else word

    def array(self, node: Schema) -> str:
        """A list, in words."""
        if "prefixItems" in node:
            return "[" + ", ".join(self.kind(one) for one in node["prefixItems"]) + "]"
        return f"list of {self.kind(node.get('items', {}))}"

    def named(self, name: str) -> str:
        """A definition: a link to its section, or what it says where it has none."""
        definition = self.definitions.get(name, {})
        if definition.get("properties"):
            return f"[{name}](#{name.lower()})"
        return self.kind(definition)


#: Values of keys that are others in a move than in a table, or that moves alone have.
MOVED_VALUES = {
    "capacity": "a rate",
    "running": "true (begins) or false (ends)",
    "path": "list of links",
    "video": "true (goes on) or false (pauses)",
    "audio": "true (goes on) or false (pauses)",
    "video.max": "a rate",
    "repair": "true (goes on) or false (ends)",
}


def moved() -> str:
    """Which keys of links, flows and calls a move can change."""
    lines = ["\n### Keys that can be moved\n\n", head("of", "key", "moved", "value, where the table has another")]
    for of, model, keys in (
        ("link", Way, moves.OF_LINKS),
        ("flow", Flow, ["running"]),
        ("call", Media, ["path", *moves.OF_MEDIA]),
    ):
        named = [field.alias or name for name, field in model.model_fields.items() if name not in flows.KINDS]
        lines += [
            row(of, f"`{key}`", "yes" if key in keys else "no", MOVED_VALUES.get(key, ""))
            for key in [*named, *(key for key in keys if key not in named)]
        ]
    return "".join(lines)


def bounds(node: Schema) -> str:
    """The range of a number, in words."""
    low = node.get("minimum", node.get("exclusiveMinimum"))
    high = node.get("maximum", node.get("exclusiveMaximum"))
    if low is None and high is None:
        return ""
    if high is None:
        return f" above {low}" if "exclusiveMinimum" in node else f", at least {low}"
    if low is None:
        return f", at most {high}"
    return f" from {low} to {high}" if "minimum" in node else f" above {low}, at most {high}"


def metrics_page() -> str:
    """Every metric of a run's summary."""
    better = {"higher": "higher", "lower": "lower", "neither": ""}
    lines = [
        "# Metrics\n\n",
        NOTE,
        METRICS,
        head("name", "label", "shown in", "better", "definition"),
    ]
    lines += [
        row(f"`{one.name}`", one.label, one.unit, better[one.better], one.definition)
        for one in metrics.METRICS.values()
    ]
    return "".join(lines)


def controllers_page() -> str:
    """Every controller with its presets and settings."""
    lines = [
        "# Controllers\n\n",
        NOTE,
        CONTROLLERS,
    ]
    for entry in registry().values():
        presets = ", ".join(f"`{preset}`" for preset in entry["presets"])
        lines.append(f"\n## {entry['name']}\n\n{entry['summary']}. Presets: {presets}. ")
        lines.append(f"Feedback: {entry['needs']}.\n\n")
        usual = [preset for preset in entry["presets"] if preset not in entry["own_settings"]]
        for presets in (usual, *([preset] for preset in entry["own_settings"])):
            lines.append(head("setting", "unit", "meaning", *presets, "source"))
            for one in settings_of(entry["name"], presets[0]):
                values = [f"`{json.dumps(entry['defaults'][preset][one['name']])}`" for preset in presets]
                lines.append(row(f"`{one['name']}`", one["unit"], one["doc"], *values, one["source"]))
            lines.append("\n")
    return "".join(lines)


def pages() -> dict[str, str]:
    """The pages by the names of their files."""
    return {
        "scenario.md": Scenario(json.loads(schema.text())).page(),
        "metrics.md": metrics_page(),
        "controllers.md": controllers_page(),
    }


def main() -> None:
    """Writes the pages."""
    folder = HERE / "reference"
    folder.mkdir(exist_ok=True)
    for name, text in pages().items():
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
