"""Input files: what may be opened, and up to which size. The costs of whole verbs are in `whole/test_bombs.py`."""

from __future__ import annotations

import gzip
import hashlib
import os
import re
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from support import PLAIN, ROOT, Cli
from tidegate import _inputs
from tidegate._inputs import TRACE, Kind, check_file, check_toml, check_trace, parse_json, read
from tidegate.cli import completing
from tidegate.errors import LIMIT_VARIABLE, InputError
from tidegate.units import Size

SMALL = Kind("a small file", 1000)
needs_pipes = pytest.mark.skipif(sys.platform == "win32", reason="named pipes are files on POSIX systems")


@pytest.fixture(autouse=True)
def no_raised_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(LIMIT_VARIABLE, raising=False)


def written(folder: Path, data: bytes, name: str = "file") -> Path:
    (folder / name).write_bytes(data)
    return folder / name


def test_a_file_of_exactly_the_limit_is_read_with_its_hash(tmp_path: Path) -> None:
    content = read(written(tmp_path, b"x" * 1000), SMALL)
    assert content.data == b"x" * 1000
    assert content.sha256 == hashlib.sha256(content.data).hexdigest()


def test_one_byte_more_is_refused_and_a_raised_limit_allows_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path, b"x" * 1001)
    for check in (read, check_file):
        with pytest.raises(InputError, match=r"is larger than 1kB, the limit of a small file; .* --limit"):
            check(path, SMALL)
    monkeypatch.setenv(LIMIT_VARIABLE, "1001B")
    assert len(read(path, SMALL).data) == 1001
    check_file(path, SMALL)
    # a smaller one does not lower a limit
    monkeypatch.setenv(LIMIT_VARIABLE, "1B")
    assert len(read(written(tmp_path, b"x" * 1000), SMALL).data) == 1000
    monkeypatch.setenv(LIMIT_VARIABLE, "many")
    with pytest.raises(InputError, match=f"^{LIMIT_VARIABLE}: "):
        read(path, SMALL)


def test_files_of_the_kernel_say_that_they_are_empty_and_are_read(tmp_path: Path) -> None:
    if not Path("/proc/self/status").exists():
        pytest.skip("no /proc here")
    assert b"Name:" in read(Path("/proc/self/status"), Kind("a status", 10_000)).data
    with pytest.raises(InputError, match="is larger than"):
        read(Path("/proc/self/maps"), Kind("a map", 10))


@pytest.mark.parametrize("path", ["/dev/zero", "/dev/null", "/dev/tty"])
def test_devices_are_not_opened(path: str) -> None:
    if not Path(path).exists():
        pytest.skip(f"no {path} here")
    with pytest.raises(InputError, match=f"^{path} is a device; expected a small file"):
        read(Path(path), SMALL)


def test_folders_and_missing_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is a folder; expected a small file"):
        read(tmp_path, SMALL)
    with pytest.raises(InputError, match="there is no such file"):
        read(tmp_path / "none", SMALL)


def write_to(pipe: Path, *chunks: bytes) -> threading.Thread:
    def work() -> None:
        with pipe.open("wb", buffering=0) as file:
            for chunk in chunks:
                file.write(chunk)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


@needs_pipes
def test_a_pipe_is_read_to_its_end(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for chunks in [(b"abc",), (b"a" * 600, b"b" * 400)]:
        writer = write_to(tmp_path / "pipe", *chunks)
        assert read(tmp_path / "pipe", SMALL).data == b"".join(chunks)
        writer.join(10)


@needs_pipes
def test_a_pipe_has_the_limit_of_a_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    write_to(tmp_path / "pipe", b"x" * 1001)
    with pytest.raises(InputError, match="is larger than 1kB"):
        read(tmp_path / "pipe", SMALL)


@needs_pipes
def test_a_silent_pipe_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_inputs, "PIPE_WAIT_S", 0.1)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="nothing came out of this pipe"):
        read(tmp_path / "pipe", SMALL)
    # a writer that has begun and sends no more
    keep = os.open(tmp_path / "pipe", os.O_RDWR)
    os.write(keep, b"begun")
    with pytest.raises(InputError, match="nothing came out of this pipe"):
        read(tmp_path / "pipe", SMALL)
    os.close(keep)


@needs_pipes
def test_a_pipe_is_no_file_for_a_library(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="is a pipe; expected a small file"):
        check_file(tmp_path / "pipe", SMALL)


def test_a_packed_file_is_unpacked_up_to_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path, gzip.compress(b"x" * 1000), "x.gz")
    content = read(path, SMALL, unpack=True)
    assert (len(content.data), content.sha256) == (1000, hashlib.sha256(path.read_bytes()).hexdigest())
    assert read(path, SMALL).data == path.read_bytes()
    with pytest.raises(InputError, match="is larger than 1kB"):
        read(written(tmp_path, gzip.compress(b"x" * 1001)), SMALL, unpack=True)
    monkeypatch.setattr(_inputs, "UNPACK_FLOOR", 100)
    large = Kind("a large file", 10**7)
    bomb = written(tmp_path, gzip.compress(b"x" * 10**6))
    with pytest.raises(InputError, match="unpacks to over 100 times its size"):
        read(bomb, large, unpack=True)
    monkeypatch.setenv(LIMIT_VARIABLE, "1MB")
    assert len(read(bomb, large, unpack=True).data) == 10**6


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(gzip.compress(b"x" * 100)[:-9], id="cut"),
        pytest.param(b"\x1f\x8b\x07", id="head"),
        pytest.param(b"\x1f\x8b\x08\x00" + b"\xff" * 40, id="noise"),
    ],
)
def test_a_damaged_packed_file_is_refused(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(InputError, match="cannot be unpacked by gzip"):
        read(written(tmp_path, data), SMALL, unpack=True)


def test_json_is_estimated_before_it_is_parsed() -> None:
    assert parse_json(b'{"a": [1, {}]}') == {"a": [1, {}]}
    for text, limit in [("[" + "{}," * 999 + "{}]", 22_676), ("[" + "1," * 2400 + "1]", 16_016)]:
        assert parse_json(text, limit)
        assert parse_json(text.encode(), limit)
        with pytest.raises(ValueError, match="so many values"):
            parse_json(text, limit - 1)
    with pytest.raises(ValueError, match="nested too deeply"):
        parse_json("[" * 100_000)


def test_toml_is_measured_before_it_is_parsed() -> None:
    check_toml("a" + ".a" * 31 + " = 1")
    with pytest.raises(ValueError, match="line 3 has a key of 33 parts"):
        check_toml("x = 1\n# a comment\na" + ".a" * 32 + " = 1")
    with pytest.raises(ValueError, match="line 3 has a key of 33 parts"):
        check_toml("x = '''\n'''\n[" + '"a".' * 32 + "a]")
    # dots of text and of numbers are none of a key
    check_toml('x = "' + "a." * 100 + '"\ny = [' + "1.5, " * 100 + "] # " + "a." * 100)
    check_toml("x = '''" + "a.\n" * 100 + "'''\ny = \"\"\"" + 'a."' * 100 + '"""')
    check_toml("x = [" + "1," * 49_990 + "]")
    with pytest.raises(ValueError, match="has 50002 keys and values; expected at most 50000"):
        check_toml("x = [" + "1," * 50_000 + "]")


@pytest.mark.parametrize(
    ("text", "count"),
    [
        pytest.param(b"time_s,rate_bps\n" + b"0,1\n" * 99, 21_200, id="rows"),
        pytest.param(b"1 1\n" * 99, 6_336, id="pairs"),
        pytest.param(b"1\x0c1\n" * 99, 6_336, id="pairs with another space"),
        pytest.param(b"1\n" * 99, 6_336, id="numbers"),
        pytest.param(b"\xef\xbb\xbf [" + b'{"":0},' * 99 + b"0]", 72_414, id="tables"),
        pytest.param(b"[" + b"[0]," * 99 + b"0]", 19_152, id="lists"),
        pytest.param(b"[" + b'"a",' * 99 + b"0]", 8_064, id="texts"),
    ],
)
def test_a_recorded_network_is_estimated_before_it_is_parsed(text: bytes, count: int) -> None:
    limit = -(-count // 12)
    check_trace(text, limit)
    with pytest.raises(ValueError, match="so many values"):
        check_trace(text, limit - 1)
    # an hour at 20 Mbit/s in mahimahi's form
    check_trace(b"1000000\n" * 6_000_000, TRACE.size)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("a." * 40 + "b = 1\n", id="parts"),
        pytest.param("a = " + "[" * 40_000, id="deep"),
        pytest.param("#" * (_inputs.TOML.size + 1), id="large"),
    ],
)
def test_completions_read_within_the_limits(tmp_path: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "x.toml").write_text(text)
    # what the limits refuse does not reach the parser
    parsed: list[str] = []
    monkeypatch.setattr("tomllib.loads", parsed.append)
    typed = SimpleNamespace(params={"scenario": str(tmp_path / "x.toml")}, args=[])
    assert "duration=" in completing.complete_keys(typed, "dur")  # type: ignore[arg-type]
    assert len(parsed) == text.startswith("a = ")
    monkeypatch.undo()
    assert "duration=" in completing.complete_keys(typed, "dur")  # type: ignore[arg-type]


@needs_pipes
def test_a_scenario_from_a_pipe_is_shown(cli: Cli, tmp_path: Path) -> None:
    """It is read once: nothing is left in a pipe for a second reading."""
    os.mkfifo(tmp_path / "pipe.toml")
    writer = write_to(tmp_path / "pipe.toml", PLAIN.encode())
    got = cli("scenario", "show", "pipe.toml")
    writer.join(10)
    assert (got.code, got.out, got.err) == (0, PLAIN, "")


def test_the_page_of_limits_has_every_kind() -> None:
    kinds = {kind.noun: str(Size(kind.size)) for kind in vars(_inputs).values() if isinstance(kind, Kind)}
    rows = re.findall(r"^\| (an? [^|]+?) \| (\w+) \|", (ROOT / "docs/limits.md").read_text("utf-8"), re.MULTILINE)
    del kinds[_inputs.CLIP.noun]  # has none
    assert dict(rows) == kinds
