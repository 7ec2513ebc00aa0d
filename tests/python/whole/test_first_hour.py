"""The first hour of a user: documents that are true, tables that fit, names of every kind."""

from __future__ import annotations

import itertools
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from fcntl import ioctl
from pathlib import Path

import pytest
from matplotlib.text import Text

from support import PLAIN, ROOT, Cli
from tidegate import Scenario, plot, run
from tidegate.control import registry as controllers
from tidegate.errors import InputError
from tidegate.scenario import shipped


def on_a_terminal(argv: list[str], folder: Path, columns: int) -> str:
    """What a command prints on a terminal of that width."""
    here, there = pty.openpty()
    ioctl(there, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    env = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "TERM": "xterm"}
    env.pop("COLUMNS", None)
    process = subprocess.Popen(
        [sys.executable, "-m", "tidegate", *argv], cwd=folder, env=env, stdin=there, stdout=there, stderr=there
    )
    os.close(there)
    shown = b""
    try:
        while piece := os.read(here, 65536):
            shown += piece
    except OSError:
        pass  # the other end is closed
    os.close(here)
    assert process.wait(timeout=60) == 0, shown
    return re.sub(r"\x1b\[[0-9;]*m", "", shown.decode()).replace("\r\n", "\n")


@pytest.mark.parametrize("columns", [80, 120])
def test_a_run_fits_a_terminal(columns: int, tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_text(PLAIN + '\n[[flows]]\nname = "download"\ntcp = {}\n')
    shown = on_a_terminal(["run", "x.toml"], tmp_path, columns)
    assert max(map(len, shown.splitlines())) <= columns
    assert re.search(r"^flow +call +download$", shown, re.MULTILINE)
    assert re.search(r"^receive rate \(Mbit/s\) +\d", shown, re.MULTILINE)
    assert "…" not in shown


@pytest.mark.parametrize("name", ["gcc", "gcc:draft-02", "sprout"])
def test_settings_fit_a_terminal(name: str, tmp_path: Path) -> None:
    shown = on_a_terminal(["controllers", name], tmp_path, 100)
    assert max(map(len, shown.splitlines())) <= 100
    controller, _, preset = name.partition(":")
    for setting in controllers.settings_of(controller, preset):
        assert re.search(rf"^{setting['name']} ", shown, re.MULTILINE)


def test_a_table_in_parts_has_all_its_columns(cli: Cli, tmp_path: Path) -> None:
    shown = on_a_terminal(
        ["compare", *(f"fixed:{rate}kbps" for rate in range(500, 510)), "--duration", "1s"], tmp_path, 80
    )
    assert max(map(len, shown.splitlines())) <= 80
    for rate in range(500, 510):
        assert f"fixed:{rate}kbps" in shown


def test_a_preset_is_a_controller_to_look_at(cli: Cli) -> None:
    plain, draft = cli("controllers", "gcc"), cli("controllers", "gcc:draft-02")
    assert (plain.code, draft.code) == (0, 0)
    assert "values below: draft-02" in draft.out
    defaults = controllers.registry()["gcc"]["defaults"]
    other = next(key for key, value in defaults["draft-02"].items() if value != defaults["libwebrtc-v1"].get(key))
    line = next(line for line in draft.out.splitlines() if line.startswith(f"{other} "))
    assert line.split()[1] == str(defaults["draft-02"][other]).strip('"')
    wrong = cli("controllers", "gcc:draft")
    assert (wrong.code, wrong.err) == (2, "tidegate: gcc:draft: gcc has no such preset; did you mean draft-02?\n")


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        (["gc"], {"gcc", "gcc:draft-02", "gcc-remb"}),
        (["gcc", ":"], {"draft-02", "aiortc"}),
        (["gcc", ":", "dr"], {"draft-02"}),
        (["fixed", "gcc", ":", "dr"], {"draft-02"}),
        (["gcc:dr"], {"gcc:draft-02"}),
    ],
)
@pytest.mark.parametrize("command", ["compare", "controllers"])
def test_bash_completes_after_a_colon(command: str, typed: list[str], expected: set[str], tmp_path: Path) -> None:
    words = ["tidegate", command, *typed]
    env = {
        **os.environ,
        "PYTHONPATH": str(ROOT / "python"),
        "_TIDEGATE_COMPLETE": "complete_bash",
        "COMP_WORDS": " ".join(words),
        "COMP_CWORD": str(len(words) - 1),
    }
    got = subprocess.run(
        [sys.executable, "-m", "tidegate"], env=env, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    found = set(got.stdout.split())
    assert expected <= found, got
    assert all(one.startswith(typed[-1].strip(":")) for one in found)


def test_names_of_every_script_are_drawn_without_a_warning() -> None:
    # warnings are errors in these tests
    one = run(Scenario.parse(PLAIN.replace('"4s"', '"2s"')))
    figure = plot.comparison({"控制器 é ü": [one], "$x$_y": [one], "Ω и": [one]})
    figure.savefig(os.devnull, format="png")
    texts = {text.get_text() for text in figure.findobj(Text)}
    assert any("[63A7][5236][5668] é ü" in text for text in texts)
    assert any("$x$_y" in text for text in texts)
    assert any("Ω и" in text for text in texts)


# --- documents ------------------------------------------------------------------------------------


def test_the_examples_in_the_pages_are_those_that_are_tested() -> None:
    found = 0
    for page in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md")):
        text = page.read_text()
        assert "--8<--" not in text, f"{page} shows a marker to readers of the clone"
        for name, code in re.findall(r'^``` {\.python title="(.*?)"}\n(.*?)^```$', text, re.DOTALL | re.MULTILINE):
            if (ROOT / "docs" / "examples" / name).is_file():
                assert code == (ROOT / "docs" / "examples" / name).read_text(), f"{page}: {name}"
                found += 1
    assert found >= 3


def test_the_first_commands_of_the_readme_work(cli: Cli, tmp_path: Path) -> None:
    text = (ROOT / "README.md").read_text()
    (block,) = re.findall(r"## The main job\n\n```sh\n(.*?)```", text, re.DOTALL)
    commands = [line.partition("#")[0].split() for line in block.splitlines()]
    for command in commands:
        assert command[0] == "tidegate"
        short = {"--seeds": "1", "--duration": "60s"}
        argv = [short.get(before, one) for before, one in itertools.pairwise(command)]
        got = cli(*argv)
        # a recorded network may be gone for so long that a sender would have to stop
        errors = [line for line in got.err.splitlines() if "circuit_breaker" not in line]
        assert (got.code, errors) == (0, []), command
    assert (tmp_path / "out" / "lte" / "report.html").is_file()


def test_clips_in_examples_keep_their_shape() -> None:
    shape = re.compile(r"bikes:size=(\d+)x(\d+)")
    pages = [*(ROOT / "python" / "tidegate" / "cli").glob("*.py"), ROOT / "docs" / "media.md"]
    found = [match for page in pages for match in shape.findall(page.read_text())]
    assert len(found) > 5
    for width, height in found:
        assert int(width) * 272 == int(height) * 640


def test_looking_up_a_controller_in_python_says_so(tmp_path: Path, cli: Cli) -> None:
    (tmp_path / "mine.py").write_text((ROOT / "docs" / "examples" / "aimd.py").read_text())
    got = cli("controllers", "python:mine.py:Aimd")
    assert got.code == 2
    assert "is not a controller of tidegate" in got.err
    with pytest.raises(InputError):
        shipped.find("nothing")


def test_pcap_writes_what_both_sides_see(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_text(PLAIN)
    refused = cli("run", "x.toml", "--pcap")
    assert (refused.code, refused.err) == (2, "tidegate: --pcap: no folder is given for the files; add --out DIR\n")
    assert cli("run", "x.toml", "--pcap", "--out", "one").code == 0
    assert cli("compare", "gcc", "fixed", "--scenario", "x.toml", "--pcap", "--out", "two").code == 0
    for folder in ("one", "two/runs/gcc-seed1", "two/runs/fixed-seed1"):
        for end in ("sender", "receiver"):
            data = (tmp_path / folder / f"packets-{end}.pcapng").read_bytes()
            assert data.startswith(b"\x0a\x0d\x0d\x0a")
            # the option with the name of an interface, which is that of the end
            names = [f"call.{one}".encode() for one in ("sender", "receiver")]
            found = [struct.pack("<HH", 2, len(name)) + name in data for name in names]
            assert found == [end == "sender", end == "receiver"]


def test_a_saved_run_and_a_comparison_become_pictures(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_text(PLAIN)
    assert cli("run", "x.toml", "--out", "one").code == 0
    assert cli("compare", "gcc", "fixed", "--scenario", "x.toml", "--out", "two").code == 0
    for folder, name, begin in (("one", "a.png", b"\x89PNG"), ("one", "a.pdf", b"%PDF"), ("two", "b.svg", b"<?xml")):
        got = cli("report", folder, "--out", name)
        assert (got.code, got.err) == (0, "")
        assert (tmp_path / name).read_bytes().startswith(begin)
    assert cli("report", "one", "--out", "a.png").code == 0, "a picture may be drawn again"
