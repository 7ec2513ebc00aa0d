"""Input files: opened in one way for all verbs, and read up to limits.

A file can cost far more than its size: a packed one unpacks to gigabytes, a short text holds a million tables, a device
never ends, and a pipe without a writer waits for ever. So each kind of file has a limit, and the cost of a text is
estimated before it is parsed. docs/limits.md lists the limits; `--limit` or TIDEGATE_LIMIT raises them.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import re
import select
import stat
import sys
import time
import tomllib
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tidegate._files import readable
from tidegate.errors import LIMIT_VARIABLE, InputError, TidegateError, located
from tidegate.units import Size

PIPE_WAIT_S = 10.0
"""Time without data after which a pipe is given up; a writer that is alive sends sooner."""

UNPACK_FLOOR, UNPACK_RATIO = 64 * 10**6, 100
"""A packed file may unpack to this many bytes, or to this multiple of its size. gzip packs zeros 1000 times, and
getStats, the most repetitive honest kind, 20 to 40 times."""

_GZIP = b"\x1f\x8b"
_CHUNK = 1 << 20
_CONTAINER_BYTES, _VALUE_BYTES = 96, 40
"""Memory of an empty list or table, and of a value with its slot, in CPython 3.11 to 3.13 (`sys.getsizeof`)."""
_BYTES_A_BYTE = 6
"""Memory of a parsed JSON file for each byte of its limit; honest files need two to five."""

_TRACE_BYTES_A_BYTE = 12
"""Memory of a parsed recorded network for each byte of its limit, so that one which is refused at its end has cost less
than 500 MB; honest files need five to ten."""
_LINE_BYTES, _ROW_BYTES, _CELL_BYTES = 64, 180, 32
"""Memory of a line of numbers (56 of a `Row` of `crates/sim/src/link/trace/mod.rs`, and so few that they are parsed
in 2 s), of a row of CSV with its slices of the text and what is merged from it, and of a cell."""
_TABLE_BYTES, _LIST_BYTES, _ENTRY_BYTES, _QUOTE_BYTES = 650, 144, 48, 16
"""Memory of a table, a list, an entry and half a text of JSON in `serde_json`: nodes of eleven entries, space for four
values, a value with half as much to grow, and the smallest piece of the heap."""

_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")

_KEY_PARTS = 32
"""Parts of a dotted key. `tomllib` needs time and memory by the square of them; the deepest key of ours has six."""
_DEEPEST = 100
"""Levels of tables, pairs and lists in each other; a scenario has a dozen, and Python's stack holds some hundred."""
_TOO_DEEP = "not valid TOML: nested too deeply"
_TOML_VALUES = 50_000
"""Values, keys and entries of a TOML file: a schedule of a capacity has some four a row."""
_TOML_STRINGS = re.compile(
    r""""{3}(?:[^"\\]|\\.|"(?!""))*+"{3}|'{3}(?:[^']|'(?!''))*+'{3}|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+'|#[^\n]*+""",
    re.DOTALL,
)
_TOML_LONG_KEY = re.compile(rf"(?:\.[^=\[\]{{}},\n.]*+){{{_KEY_PARTS},}}")


def _placeholder(match: re.Match[str]) -> str:
    return "" if match[0][0] == "#" else "s" + "\n" * match[0].count("\n")


@dataclass(frozen=True)
class Kind:
    """A kind of file, with its limit."""

    noun: str
    """Such as `a TOML file`."""
    size: int
    """Largest size in bytes, unpacked."""

    @property
    def limit(self) -> int:
        """Largest size in bytes, after `--limit` or TIDEGATE_LIMIT.

        Raises:
            InputError: when the variable holds no size.
        """
        return max(self.size, raised_limit())


# Sizes at which a file that is refused at its end has cost at most 500 MB of memory; tests/python/whole/test_bombs.py
TOML = Kind("a TOML file", 4 * 10**6)
JSON = Kind("a JSON file", 32 * 10**6)
FRAMES = Kind("a file of frame sizes", 4 * 10**6)
TRACE = Kind("a recorded network", 32 * 10**6)
RECORDING = Kind("a recorded call", 200 * 10**6)
SESSION = Kind("a session's table of packets", 32 * 10**6)
CODE = Kind("a Python file", 500 * 10**3)
MODEL = Kind("a model", 256 * 10**6)
ATTACHED = Kind("an attached file", 32 * 10**6)
"""A picture or a table beside a comparison, which its report holds."""
CLIP = Kind("a video file", 2**62)
"""Read by ffmpeg piece by piece, so its size costs no memory."""


@dataclass(frozen=True)
class Content:
    """The contents of a file that was read once."""

    data: bytes
    """Its bytes, unpacked if it was packed by gzip."""
    sha256: str
    """SHA-256 of the file as it was, hexadecimal."""


def raised_limit() -> int:
    """The limit in bytes of TIDEGATE_LIMIT; 0 if it is not set.

    Raises:
        InputError: when it holds no size.
    """
    text = os.environ.get(LIMIT_VARIABLE, "")
    try:
        return int(Size.parse(text)) if text else 0
    except InputError as error:
        raise InputError(f"{LIMIT_VARIABLE}: {error}") from None


def raise_limit(size: str | None) -> None:
    """Sets the limit of this process and of those that it begins, as `--limit` does; None changes nothing.

    Raises:
        InputError: when it is no size.
    """
    if size is not None:
        with located("--limit"):
            os.environ[LIMIT_VARIABLE] = str(Size.parse(size))


def read(path: Path, kind: Kind, error: type[TidegateError] = InputError, *, unpack: bool = False) -> Content:
    """Reads a whole file: a regular one, or a pipe.

    Args:
        path: The file.
        kind: Its kind, which limits it.
        error: Type of the errors.
        unpack: Whether a file that gzip packed is unpacked.

    Raises:
        InputError: for no such file, a folder, a device, a silent pipe, and a file over its limit; or `error` instead.
    """
    limit = kind.limit
    buffer, hasher = bytearray(), hashlib.sha256()
    with readable(path, error):
        for chunk in _chunks(path, kind, limit, error):
            buffer += chunk
            hasher.update(chunk)
            if len(buffer) > limit:
                raise error(too_large(path, kind))
    data = bytes(buffer)
    if unpack and data.startswith(_GZIP):
        data = _unpacked(path, data, kind, limit, error)
    elif unpack and path.suffix == ".gz":
        raise error(f"{path} is not packed by gzip, as its name says; rename it, or pack it again")
    return Content(data, hasher.hexdigest())


def decoded(data: bytes, path: Path, kind: Kind) -> str:
    """The text of a file in UTF-8.

    Raises:
        InputError: names the line of the first byte that is none.
    """
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        byte = f"0x{data[error.start]:02x}"
        raise InputError(f"{path}:{line}: found byte {byte}; expected {kind.noun} in UTF-8") from None


def check_file(path: Path, kind: Kind, error: type[TidegateError] = InputError) -> None:
    """Checks a file that a library will open: it is a regular one, within its limit.

    Raises:
        InputError: for no such file, anything but a regular one, and a file over its limit; or `error` instead.
    """
    with readable(path, error):
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise error(f"{path} is {_noun(status.st_mode)}; expected {kind.noun}")
        if status.st_size > kind.limit:
            raise error(too_large(path, kind))


def too_large(path: Path, kind: Kind) -> str:
    """Message for a file over the limit of its kind."""
    return (
        f"{path} is larger than {Size(kind.limit)}, the limit of {kind.noun}; for a larger one give --limit, "
        f"or set {LIMIT_VARIABLE}, to its size, such as 2GB"
    )


def _noun(mode: int) -> str:
    nouns = {stat.S_IFDIR: "a folder", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket", stat.S_IFREG: "a file"}
    return nouns.get(stat.S_IFMT(mode), "a device")


def _chunks(path: Path, kind: Kind, limit: int, error: type[TidegateError]) -> Iterator[bytes]:
    """Yields the bytes of a regular file or a pipe.

    Raises:
        OSError: when it cannot be opened or read.
        error: for other files, a regular file over its limit, and a silent pipe.
    """
    # looked at before it is opened, because opening a device can act on it
    _check_mode(path, path.stat().st_mode, kind, error)
    # without O_NONBLOCK opening a pipe waits for a writer
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    try:
        status = os.fstat(handle)
        _check_mode(path, status.st_mode, kind, error)
        if status.st_size > limit:
            raise error(too_large(path, kind))
        chunks = _from_pipe(path, handle, error) if stat.S_ISFIFO(status.st_mode) else _from_file(handle)
        yield from chunks
    finally:
        os.close(handle)


def _check_mode(path: Path, mode: int, kind: Kind, error: type[TidegateError]) -> None:
    if not (stat.S_ISREG(mode) or stat.S_ISFIFO(mode)):
        raise error(f"{path} is {_noun(mode)}; expected {kind.noun}, or a pipe with its contents")


def _from_file(handle: int) -> Iterator[bytes]:
    while chunk := os.read(handle, _CHUNK):
        yield chunk


def _from_pipe(path: Path, handle: int, error: type[TidegateError]) -> Iterator[bytes]:
    if sys.platform == "win32":
        raise error(f"{path} is a pipe, and pipes are not read on Windows; expected a file")
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    begun = False
    deadline = time.monotonic() + PIPE_WAIT_S
    while True:
        try:
            chunk = os.read(handle, _CHUNK)
        except BlockingIOError:
            chunk = None
        if chunk:
            begun, deadline = True, time.monotonic() + PIPE_WAIT_S
            yield chunk
            continue
        # before the first writer has come, a pipe reads as if it had ended
        if chunk is not None and begun:
            return
        left = deadline - time.monotonic()
        if left <= 0:
            raise error(
                f"{path}: nothing came out of this pipe for {PIPE_WAIT_S:.0f} s; is there a program that writes to it?"
            )
        events = poll.poll(left * 1000)
        if events and not events[0][1] & select.POLLIN:
            return


def _unpacked(path: Path, packed: bytes, kind: Kind, limit: int, error: type[TidegateError]) -> bytes:
    allowed = min(limit, max(UNPACK_FLOOR, UNPACK_RATIO * len(packed), raised_limit()))
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(packed)) as file:
            data = file.read(allowed + 1)
    except (EOFError, gzip.BadGzipFile, zlib.error) as problem:
        raise error(f"{path} cannot be unpacked by gzip: {problem}") from None
    if len(data) > allowed:
        if allowed == limit:
            raise error(too_large(path, kind))
        raise error(
            f"{path} unpacks to over {UNPACK_RATIO} times its size; if that is right, give --limit, or set "
            f"{LIMIT_VARIABLE}, to its unpacked size, such as 2GB"
        )
    return data


def parse_json(data: bytes | str, limit: int = JSON.size) -> Any:
    """Parses JSON whose memory, estimated beforehand, is within a limit.

    Args:
        data: The text.
        limit: Size limit of the file that it is from, in bytes.

    Raises:
        ValueError: for text that is no JSON, is nested too deeply, holds half a character, or would need more memory
            than files of this limit.
    """
    comma, array, table = (b",", b"[", b"{") if isinstance(data, bytes) else (",", "[", "{")
    containers = data.count(array) + data.count(table)  # type: ignore[arg-type]
    memory = _CONTAINER_BYTES * containers + _VALUE_BYTES * data.count(comma)  # type: ignore[arg-type]
    _check_memory(memory, _BYTES_A_BYTE * limit)
    try:
        value = json.loads(data)
        if _SURROGATE.search(data if isinstance(data, bytes) else data.encode()):
            # half a surrogate pair is no character, and could not be written anywhere
            json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"found {error.object[error.start]!a}, which is no character") from None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    return value


def _check_memory(memory: int, limit: int) -> None:
    if memory > limit:
        raise ValueError(f"it holds so many values that they would take {memory / 1e9:.1f} GB of memory")


def check_trace(data: bytes, limit: int = TRACE.size) -> None:
    """Checks that a recorded network will be parsed in memory that is in proportion to it.

    Args:
        data: The contents of its file.
        limit: Size limit of the file, in bytes.

    Raises:
        ValueError: for too many rows, cells, tables or lists.
    """
    commas = data.count(b",")
    if data.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in {b"{", b"["}:
        memory = _TABLE_BYTES * data.count(b"{") + _LIST_BYTES * data.count(b"[")
        memory += _ENTRY_BYTES * commas + _QUOTE_BYTES * data.count(b'"')
    elif commas:
        memory = _ROW_BYTES * data.count(b"\n") + _CELL_BYTES * commas
    else:
        memory = _LINE_BYTES * data.count(b"\n")
    _check_memory(memory, _TRACE_BYTES_A_BYTE * limit)


def parse_toml(text: str) -> dict[str, Any]:
    """Parses TOML within bounds that every reader behind it counts on.

    Raises:
        ValueError: when it is no TOML, is nested too deeply, has too many values or parts of a key, a number of
            thousands of digits, or a NUL.
    """
    check_toml(text)
    try:
        data = tomllib.loads(text)
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    except tomllib.TOMLDecodeError:
        raise
    except ValueError:
        # of Python's limit for text that becomes a number; it bounds the time that this takes
        digits, most = max(map(len, re.findall(r"[0-9_]+", text)), default=0), sys.get_int_max_str_digits()
        raise ValueError(f"found a number of {digits} digits; expected at most {most}") from None
    level: list[Any] = [data]
    for _ in range(_DEEPEST):
        if any("\0" in value for value in level if isinstance(value, str)):
            # no text of ours may have it, and no name of a file can
            raise ValueError("found a text with a NUL; expected text without it")
        below = [[*value.items()] if isinstance(value, dict) else value for value in level]
        level = [inner for value in below if isinstance(value, list | tuple) for inner in value]
        if not level:
            return data
    raise ValueError(_TOO_DEEP)


def check_toml(text: str) -> None:
    """Checks that TOML will be parsed in time and memory that are in proportion to it.

    Raises:
        ValueError: for a key of too many parts, or too many values.
    """
    plain = _TOML_STRINGS.sub(_placeholder, text)
    values = sum(map(plain.count, "=,["))
    most = max(_TOML_VALUES, raised_limit() * _TOML_VALUES // TOML.size)
    if values > most:
        raise ValueError(f"it has {values} keys and values; expected at most {most}")
    if match := _TOML_LONG_KEY.search(plain):
        line, parts = plain.count("\n", 0, match.start()) + 1, match[0].count(".") + 1
        raise ValueError(f"line {line} has a key of {parts} parts; expected at most {_KEY_PARTS}")
