"""TOML with line numbers: values from the standard library's parser, and the line of each key.

`tomllib` reports no positions. The index here walks the same text once more. The parser has accepted it already, so
the walk need not detect errors.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tidegate._inputs import TOML, decoded, parse_toml
from tidegate._inputs import read as read_input
from tidegate.errors import InputError, ScenarioError
from tidegate.units import WIDEST

Key = tuple[str | int, ...]

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_SPACE = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_SCALAR = re.compile(r"[^,\]}\n#]+")
_LINE = 70  # characters of the longest table on one line


def read(path: Path) -> str:
    """The text of a file.

    Raises:
        InputError: when it cannot be read, is not UTF-8, or is far too large.
    """
    return decoded(read_input(path, TOML).data, path, TOML)


def parse(text: str, where: str) -> dict[str, Any]:
    """The values of a TOML text.

    Raises:
        ScenarioError: names `where` and the line of the first error.
    """
    try:
        return parse_toml(text)
    except tomllib.TOMLDecodeError as error:
        match = re.search(r" \(at (?:line (\d+), column (\d+)|end of document)\)$", str(error))
        line = match[1] if match and match[1] else str(text.count("\n") + 1)
        message = re.sub(r" \(at .*\)$", "", str(error))
        message = message[:1].lower() + message[1:]
        raise ScenarioError([f"{where}:{line}: not valid TOML: {message}"]) from None
    except ValueError as error:
        raise ScenarioError([f"{where}: {error}"]) from None


def lines(text: str) -> dict[Key, int]:
    r"""Line of each key, table and entry of a list.

    >>> lines('a = 1\n[[links]]\ndelay = "1s"\nqueue = { time = "2s" }\n[[links]]\n')
    ... # doctest: +NORMALIZE_WHITESPACE
    {('a',): 1, ('links',): 2, ('links', 0): 2, ('links', 0, 'delay'): 3, ('links', 0, 'queue'): 4,
    ('links', 0, 'queue', 'time'): 4, ('links', 1): 5}
    """
    return _Walk(text).index


class _Walk:
    """Walk over a valid TOML text that records the line of each path."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.offset = 0
        self.line = 1
        self.marked = 0  # the offset that `line` is of
        self.index: dict[Key, int] = {}
        self.entries: dict[Key, int] = {}
        table: Key = ()
        while self._space() < len(text):
            if text.startswith("[", self.offset):
                table = self._header()
            else:
                self._pair(table)

    def _space(self) -> int:
        match = _SPACE.match(self.text, self.offset)
        if match:
            self.offset = match.end()
        return self.offset

    def _mark(self, path: Key) -> None:
        self.line += self.text.count("\n", self.marked, self.offset)
        self.marked = self.offset
        self.index.setdefault(path, self.line)

    def _header(self) -> Key:
        array = self.text.startswith("[[", self.offset)
        self.offset += 2 if array else 1
        keys = self._keys()
        self.offset += 2 if array else 1
        path: Key = ()
        for depth, key in enumerate(keys, 1):
            path = (*path, key)
            self._mark(path)
            if array and depth == len(keys):
                self.entries[path] = self.entries.get(path, -1) + 1
            if path in self.entries:
                path = (*path, self.entries[path])
                self._mark(path)
        return path

    def _keys(self) -> list[str]:
        keys = []
        while True:
            self._space()
            if self.text[self.offset] in "\"'":
                start = self.offset
                self._string()
                keys.append(tomllib.loads(f"x = {self.text[start : self.offset]}")["x"])
            else:
                match = _BARE.match(self.text, self.offset)
                keys.append(match[0] if match else self.text[self.offset])
                self.offset = match.end() if match else self.offset + 1
            self._space()
            if not self.text.startswith(".", self.offset):
                return keys
            self.offset += 1

    def _pair(self, table: Key) -> None:
        path = table
        for key in self._keys():
            path = (*path, key)
            self._mark(path)
        self.offset += 1
        self._value(path)

    def _value(self, path: Key) -> None:
        self._space()
        match self.text[self.offset]:
            case '"' | "'":
                self._string()
            case "[":
                self._list(path)
            case "{":
                self._inline(path)
            case _:
                match = _SCALAR.match(self.text, self.offset)
                self.offset = match.end() if match else self.offset + 1

    def _string(self) -> None:
        quote = self.text[self.offset]
        long = self.text.startswith(quote * 3, self.offset)
        end = self.offset + (3 if long else 1)
        closing = quote * 3 if long else quote
        while not self.text.startswith(closing, end):
            end += 2 if quote == '"' and self.text[end] == "\\" else 1
        end += len(closing)
        while long and self.text.startswith(quote, end):
            end += 1
        self.offset = end

    def _list(self, path: Key) -> None:
        self.offset += 1
        for position in range(len(self.text)):
            self._space()
            if self.text[self.offset] == "]":
                break
            self._mark((*path, position))
            self._value((*path, position))
            self._space()
            if self.text[self.offset] == ",":
                self.offset += 1
        self.offset += 1

    def _inline(self, path: Key) -> None:
        self.offset += 1
        while True:
            self._space()
            if self.text[self.offset] == "}":
                break
            if self.text[self.offset] == ",":
                self.offset += 1
                continue
            self._pair(path)
        self.offset += 1


def write(data: Mapping[str, Any]) -> str:
    """Formats plain data as TOML: short values on one line, long tables under a heading of their own.

    >>> print(write({"seed": 1, "links": [{"name": "x", "queue": {"packets": 3}}]}), end="")
    seed = 1
    <BLANKLINE>
    [[links]]
    name = "x"
    queue = { packets = 3 }
    """
    return "\n".join(_table(data, "")).lstrip("\n") + "\n"


def _table(data: Mapping[str, Any], name: str) -> Iterator[str]:
    below = {key: value for key, value in data.items() if _is_tables(value) or _is_long(value)}
    for key, value in data.items():
        if key not in below:
            yield f"{_key(key)} = {inline(value)}"
    for key, value in below.items():
        inner = f"{name}.{_key(key)}" if name else _key(key)
        if isinstance(value, dict):
            yield from ("", f"[{inner}]", *_table(value, inner))
            continue
        for entry in value:
            yield from ("", f"[[{inner}]]", *_table(entry, inner))


def _is_long(value: object) -> bool:
    return isinstance(value, dict) and len(inline(value)) > _LINE


def _is_tables(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(entry, dict) for entry in value)


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _quoted(key)


def _quoted(text: str) -> str:
    # JSON escapes the same characters as TOML, except DEL
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def inline(value: object) -> str:
    """Formats a value as TOML on one line."""
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return _quoted(value)
        case dict():
            pairs = ", ".join(f"{_key(key)} = {inline(item)}" for key, item in value.items())
            return f"{{ {pairs} }}" if pairs else "{}"
        case list() | tuple():
            return "[" + ", ".join(inline(item) for item in value) + "]"
        case int() if value > 0 and value.bit_length() > WIDEST:
            return hex(value)  # TOML has no negative ones, which are read only as far as Python writes them
        case int() | float():
            return repr(value)
    raise InputError(f"{value!r} cannot be written as TOML")
