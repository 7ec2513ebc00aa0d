"""TOML with the line of every key, and TOML written."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate._inputs import parse_toml
from tidegate.errors import ScenarioError
from tidegate.scenario import toml

TEXT = '''\
title = "a \\"quoted\\" # not a comment"   # a comment = 1
long = """
[[links]] is text here
x = 1
"""
[[links]]
name = 'raw \\'
"odd key" = 1
capacity = { schedule = [
  ["0s", "1Mbps"],  # first
  ["5s", "2Mbps"],
], period = "10s" }
[links.back]
delay.deep = "1ms"

[[links]]
name = """a\\"""b"""
[table.of.things]
when = 1979-05-27T07:32:00Z
'''


def paths(value: Any, at: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    items: Iterator[tuple[str | int, Any]]
    match value:
        case dict():
            items = iter(value.items())
        case list():
            items = iter(enumerate(value))
        case _:
            return
    for key, inner in items:
        yield (*at, key)
        yield from paths(inner, (*at, key))


def test_every_key_has_its_line() -> None:
    found = toml.lines(TEXT)
    assert set(found) == set(paths(tomllib.loads(TEXT)))
    assert found[("title",)] == 1
    assert found[("links", 0)] == 6
    assert found[("links", 0, "odd key")] == 8
    assert found[("links", 0, "capacity", "schedule", 1)] == 11
    assert found[("links", 0, "capacity", "period")] == 12
    assert found[("links", 0, "back", "delay", "deep")] == 14
    assert found[("links", 1, "name")] == 17
    assert found[("table", "of", "things", "when")] == 19


keys = st.text("ab-_ ü.\"'\\", min_size=1, max_size=5)
scalars = st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | st.text(max_size=8)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=12,
)


@given(st.dictionaries(keys, values, max_size=5))
def test_what_is_written_is_read_again(data: dict[str, Any]) -> None:
    text = toml.write(data)
    assert tomllib.loads(text) == data
    assert set(toml.lines(text)) == set(paths(data))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a = ", "x.toml:1: not valid TOML: invalid value"),
        ('a = "1s"\nb == 3', "x.toml:2: not valid TOML: invalid value"),
        ("a = 1\na = 2", "x.toml:2: not valid TOML: cannot overwrite a value"),
        ('a = "', "x.toml:1: not valid TOML: unterminated string"),
        ("[[links]", "x.toml:1: not valid TOML: expected ']]' at the end of an array declaration"),
        ("a = " + "[" * 5000, "x.toml: not valid TOML: nested too deeply"),
    ],
)
def test_what_is_no_toml(text: str, message: str) -> None:
    with pytest.raises(ScenarioError) as error:
        toml.parse(text, "x.toml")
    assert str(error.value) == message


def test_a_number_of_thousands_of_digits_is_written_in_the_form_that_can_be_read() -> None:
    data = {"a": int("f" * 6000, 16), "b": -(10**4200)}
    assert parse_toml(toml.write(data)) == data
