"""Changes valid files in their shape: data by values and keys, tables by rows and cells, bytes by fields.

The kind is read off the contents: gzip is changed inside; JSON, a line of JSON each, and TOML as data; other text by
rows, cells and words; other bytes by fields of one to eight bytes, cuts and repeats.
"""

from __future__ import annotations

import gzip
import json
import random
import re
import tomllib
from collections.abc import Callable
from typing import Any

import files_checks

from tidegate.errors import TidegateError
from tidegate.results import sweeps
from tidegate.scenario import toml

_MOST = 2**20  # bytes of a changed file
_REPEATS = (2, 3, 30, 500)
_HOSTILE = ("\x1b[2J", "\x1b]0;title\x07", "\x9b31m", "\x7f", "\u202egnp.", "\r", "\u2028", "\ud800", "<b>", "\n", "")
_WORD = re.compile(r'"[^"\n]*"|[-+]?[\w.]+')
_WORDS = (
    "", "0", "-1", "-0.0", "0.5", "1e308", "1e-320", "1e400", "nan", "-inf", "null", "true", "1979-05-27T07:32:00Z",
    str(2**63), str(2**64), "99999999999999", "9" * 400, "9" * 5000, "0x" + "f" * 5000, "\uff11", "\u00b2",
    "\0", '"\\u0000"', '"\\u001b[2J"', "\x1b[2J", "\u202e", "\u2028", "x" * 5000, '"' + "x" * 70_000 + '"',
    "a." * 500 + "a", "[" * 3000, '{"a":' * 3000, "{ a = " * 300, '"""', "'", ",", ";", "#", "\n", "\r",
)  # fmt: skip
"""What takes the place of a word of text."""
_FIELDS = tuple(
    value.to_bytes(width, order)
    for width in (1, 2, 4, 8)
    for value in (0, 1, 0x7F, 2 ** (8 * width - 1) - 1, 2 ** (8 * width - 1), 2 ** (8 * width) - 1)
    for order in ("little", "big")
)
"""What takes the place of a field of bytes."""


def mutation(data: bytes, luck: random.Random) -> bytes:
    """A file's contents, changed; a result's hash is made right."""
    if data.startswith(b"\x1f\x8b") and luck.random() < 0.7:
        return gzip.compress(mutation(gzip.decompress(data), luck), 1)[:_MOST]
    if luck.random() < 0.2:
        return files_checks.changed(data, [data], _MOST, luck)
    try:
        text = data.decode()
    except ValueError:
        return _fields(data, luck)[:_MOST]
    made = None if luck.random() < 0.3 else _data(text, luck)
    if made is None:
        made = luck.choice((_words, _rows))(text, luck)
    return made.encode("utf-8", "surrogatepass")[:_MOST]


# --- data -----------------------------------------------------------------------------------------


def _data(text: str, luck: random.Random) -> str | None:
    """JSON, JSON a line or TOML with changed values and keys; None when the text is nothing of it."""
    forms: tuple[tuple[Callable[[str], Any], Callable[[Any], str]], ...] = (
        (json.loads, _json),
        (lambda text: [json.loads(line) for line in text.splitlines()], lambda rows: "\n".join(map(json.dumps, rows))),
        (tomllib.loads, toml.write),
    )
    for read, write in forms:
        try:
            tree = read(text)
        except ValueError:
            continue
        if luck.random() < 0.4:
            tree = named(tree, luck)
        else:
            files_checks.reshaped(tree, luck)
        try:
            return write(tree)
        except (ValueError, RecursionError, TypeError, AttributeError, TidegateError):
            return None  # of what the form has no way to write
    return None


def _json(tree: Any) -> str:
    if isinstance(tree, dict) and "content" in tree:
        # a forged result has the right hash
        del tree["content"]
        tree["content"] = sweeps.content_hash(tree)
    return json.dumps(tree)


def named(data: Any, luck: random.Random) -> Any:
    """Data with hostile characters in a name, a key or a text."""
    match data:
        case dict() if data:
            key = luck.choice(list(data))
            if luck.random() < 0.2:
                return {_hostile(name, luck) if name == key else name: value for name, value in data.items()}
            return {**data, key: named(data[key], luck)}
        case list() if data:
            number = luck.randrange(len(data))
            return [*data[:number], named(data[number], luck), *data[number + 1 :]]
        case str():
            return _hostile(data, luck)
    return luck.choice(_HOSTILE)


def _hostile(text: str, luck: random.Random) -> str:
    at = luck.randint(0, len(text))
    return text[:at] + luck.choice(_HOSTILE) + text[at:]


# --- text and bytes -------------------------------------------------------------------------------


def _words(text: str, luck: random.Random) -> str:
    """Text with some of its words replaced: by hostile ones, or by others of the same text."""
    words = list(_WORD.finditer(text))
    for word in sorted(
        luck.sample(words, min(len(words), luck.choice((1, 1, 2, 4)))), key=re.Match.start, reverse=True
    ):
        new = luck.choice(_WORDS) if luck.random() < 0.8 else luck.choice(words)[0]
        text = text[: word.start()] + new + text[word.end() :]
    return text


def _rows(text: str, luck: random.Random) -> str:
    """Text with rows or cells taken out, doubled, exchanged or repeated."""
    rows = text.splitlines(keepends=True)
    for _ in range(luck.choice((1, 1, 2, 4))):
        if not rows:
            break
        at = luck.randrange(len(rows))
        if luck.random() < 0.5:
            _rearranged(rows, luck)
            continue
        mark = luck.choice([mark for mark in ",;\t :" if mark in rows[at]] or [","])
        cells = rows[at].rstrip("\n").split(mark)
        _rearranged(cells, luck)
        rows[at] = mark.join(cells) + "\n"
    return "".join(rows)


def _rearranged(parts: list[str], luck: random.Random) -> None:
    at, other = luck.randrange(len(parts)), luck.randrange(len(parts))
    match luck.randrange(4):
        case 0:
            del parts[at]
        case 1:
            parts[at:at] = parts[at : at + 1] * luck.choice(_REPEATS)
        case 2:
            parts[at], parts[other] = parts[other], parts[at]
        case _:
            parts[at] = parts[other]


def _fields(data: bytes, luck: random.Random) -> bytes:
    """Bytes with fields overwritten, and stretches cut, repeated or exchanged."""
    out = bytearray(data)
    for _ in range(luck.choice((1, 1, 2, 4))):
        at = luck.randint(0, len(out))
        until = min(len(out), at + luck.choice((1, 4, 16, 64, 256)))
        other = luck.randint(0, len(out))
        match luck.randrange(8):
            case 0 | 1 | 2 | 3:
                field = luck.choice(_FIELDS)
                out[at : at + len(field)] = field
            case 4:
                del out[luck.choice((at, until)) :]
            case 5:
                del out[at:until]
            case 6:
                out[at:at] = out[at:until] * luck.choice(_REPEATS)
            case _:
                out[at:until] = out[other : other + until - at]
    return bytes(out)
