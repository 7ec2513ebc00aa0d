"""The verbs that run the Python code that a scenario names say so, and no others."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from support import PLAIN, Cli
from support import event_logs as log
from tidegate import Comparison, ControllerError, InputError, Run, Scenario
from tidegate.control import _source as unrun
from tidegate.control import registry as controllers

CODE = """\
from pathlib import Path
from tidegate import Controller, Decision

marker = Path(__file__).with_name("marker")
marker.write_text(marker.read_text() + "x" if marker.exists() else "x")


class Mine(Controller):
    def on_report(self, now_ns, report):
        return Decision(target_bps=500_000)


class Estimator(Mine):
    pass
"""

NAMED = "python:code/mine.py:Mine"


@pytest.fixture
def marker(tmp_path: Path) -> Path:
    """The file that is there once the code has run, beside a scenario that names the code."""
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "mine.py").write_text(CODE)
    (tmp_path / "net.toml").write_text(PLAIN.replace('"gcc"', f'"{NAMED}"').replace('"4s"', '"1s"'))
    packets = [log.Rtp(1000 + 10 * n, n, n, timestamp=3000 * n, marker=True) for n in range(50)]
    (tmp_path / "call.log").write_bytes(log.begin(990) + log.streams(1, 2) + log.rtp(packets, outgoing=True))
    return tmp_path / "code" / "marker"


READERS: list[list[str]] = [
    ["scenario", "check", "net.toml"],
    ["scenario", "check", "--ir", "net.toml"],
    ["scenario", "show", "net.toml"],
    ["scenario", "list"],
    ["scenario", "schema"],
    ["trace", "show", "net.toml"],
    ["trace", "show", "code/mine.py"],
    ["trace", "convert", "code/mine.py", "x.csv"],
    ["report", "net.toml"],
    ["paper", "list"],
    ["media", "clips"],
    ["play", "net.toml", "--out", "x.html"],
    ["suite", "check", "net.toml"],
    ["suite", "show", "net.toml"],
    ["diff", "net.toml", "net.toml"],
    ["results", "code"],
    ["import", "call.log", "--link", "net.toml", "--out", "call"],
    ["controllers"],
    ["controllers", NAMED],
    ["--help"],
]


@pytest.mark.parametrize("argv", READERS, ids=" ".join)
def test_verbs_that_read_run_nothing(cli: Cli, marker: Path, argv: list[str]) -> None:
    assert "a bug" not in cli(*argv).err
    assert not marker.exists()


@pytest.mark.parametrize("controller", [NAMED, "alphartc:code/mine.py", "onnx:net.toml"])
def test_no_controller_of_a_file_hears_a_recording(cli: Cli, marker: Path, controller: str) -> None:
    got = cli("import", "call.log", "--replay", controller, "--out", "call")
    assert (got.code, got.out) == (2, "")
    assert f"{controller}: found a controller in a file; expected a controller of tidegate" in got.err
    assert not marker.exists()


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["run", "net.toml"], True),
        (["run", "net.toml", "--json", "--seed", "3"], True),
        (["run", "net.toml", "--set", "flows.call.media.controller=python:code/mine.py:Mine:x=1"], False),
        (["sweep", "net.toml", "--set", "links.cable.delay=5ms,6ms", "--out", "swept"], True),
        # the subject's controller is replaced by those that were typed
        (["compare", "fixed", "--scenario", "net.toml"], False),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_verbs_that_run_say_so_once(cli: Cli, marker: Path, argv: list[str], says: bool) -> None:
    got = cli(*argv)
    notice = f"tidegate: net.toml names Python code, which runs with your rights: {NAMED}\n"
    assert got.err.count("rights") == got.err.count(notice) == int(says)
    assert marker.exists() is (argv[0] != "compare")


def test_compare_says_what_the_competitors_of_a_file_run(cli: Cli, marker: Path) -> None:
    both = Path("net.toml")
    both.write_text(both.read_text() + f'\n[[flows]]\nname = "other"\nmedia = {{ controller = "{NAMED}" }}\n')
    got = cli("compare", "fixed", "--scenario", "net.toml")
    assert got.code == 0
    assert got.err == f"tidegate: net.toml names Python code, which runs with your rights: {NAMED}\n"
    assert marker.exists()


def test_what_check_says(cli: Cli, marker: Path) -> None:
    got = cli("scenario", "check", "net.toml")
    assert (got.code, got.err) == (0, "")
    assert got.out == (
        f"net.toml: good (2 one-way links, 1 flows, 1s)\nchecked without running: {NAMED} (--run-code imports it)\n"
    )
    refused = cli("scenario", "check", "net.toml", "--ir")
    right = "which has to be run for it; add --run-code"
    assert (refused.code, refused.err) == (2, f"tidegate: --ir: the engine's input depends on {NAMED}, {right}\n")
    assert not marker.exists()

    assert '"python": true' in cli("scenario", "check", "net.toml", "--ir", "--run-code").out
    assert marker.exists()


WRONG: list[tuple[str, str]] = [
    ("x = (", "SyntaxError: '(' was never closed (line 1)"),
    ("x = 1\n\0", "source code string cannot contain null bytes"),
    ("class Nine: ...", "the module has no class Mine; did you mean Nine?"),
    ("def f():\n    class Mine: ...", "the module has no class Mine"),
    ("(" * 5000, "cannot be imported: "),
]


@pytest.mark.parametrize(("code", "why"), WRONG)
def test_what_check_finds_without_running(cli: Cli, marker: Path, code: str, why: str) -> None:
    Path("code/mine.py").write_text(code)
    got = cli("scenario", "check", "net.toml")
    assert got.code == 2
    assert got.err.startswith("tidegate: net.toml:10: flows.call.media: code/mine.py: ")
    assert why in got.err
    Path("code/mine.py").unlink()
    assert "there is no such file" in cli("scenario", "check", "net.toml").err


HOLDS = [
    "class Mine: ...",
    "def Mine(): ...",
    "Mine = object",
    "Mine: type = object",
    "a, (b, Mine) = 1, (2, 3)",
    "from x import Mine",
    "from x import y as Mine",
    "import Mine.z",
    "from x import *",
    "def __getattr__(name): ...",
    "try:\n    import x\nexcept ImportError:\n    class Mine: ...",
    "if 0:\n    pass\nelse:\n    class Mine: ...",
    "match 1:\n    case 2:\n        Mine = 3",
    "with x as Mine: ...",
    "for Mine in (): ...",
]


@pytest.mark.parametrize("code", HOLDS)
def test_names_at_the_top_of_a_file(tmp_path: Path, code: str) -> None:
    file = tmp_path / "x.py"
    file.write_text(code)
    names = unrun.names(file, "x.py")
    assert names is None or "Mine" in names


def test_a_module_is_found_without_the_packages_that_it_is_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    inner = tmp_path / "tg_outer" / "inner"
    inner.mkdir(parents=True)
    for folder in (inner.parent, inner):
        (folder / "__init__.py").write_text(CODE)
    (inner / "mine.py").write_text(CODE)
    choice = controllers.choose("python:tg_outer.inner.mine:Mine", tmp_path, run_code=False)
    assert (choice.label, choice.is_run) == ("python:tg_outer.inner.mine:Mine", False)
    with pytest.raises(ControllerError, match=r"no class Mind; did you mean Mine\?"):
        controllers.choose("python:tg_outer.inner.mine:Mind", tmp_path, run_code=False)
    for missing in ("tg_outer.none", "tg_outer.none.deeper", "tg_none", "tg_outer.inner.mine.more"):
        with pytest.raises(ControllerError, match="No module named"):
            controllers.choose(f"python:{missing}:Mine", tmp_path, run_code=False)
    assert not list(tmp_path.rglob("marker"))
    assert not [name for name in sys.modules if name.startswith("tg_outer")]
    # nothing can be said of what has no text
    assert controllers.choose("python:math:Mine", tmp_path, run_code=False).label == "python:math:Mine"


def test_in_python_a_check_runs_nothing_unless_it_is_told_to(marker: Path) -> None:
    scenario = Scenario.load(marker.parents[1] / "net.toml")
    scenario.check()
    assert scenario.code == [NAMED]
    assert not marker.exists()
    scenario.check(run_code=True)
    assert marker.exists()


def _nothing(_: Path) -> None: ...


@pytest.mark.parametrize("more", [_nothing, lambda folder: (folder / "code" / "mine.py").unlink()])
def test_saved_results_are_read_without_the_code(cli: Cli, marker: Path, more: Callable[[Path], None]) -> None:
    assert cli("run", "net.toml", "--out", "one").code == 0
    assert cli("compare", NAMED, "fixed", "--scenario", "net.toml", "--out", "two").code == 0
    marker.unlink()
    forget()
    more(Path())
    assert cli("report", "one").code == cli("report", "two").code == 0
    assert Run.load("one").scenario.code == [NAMED]
    assert Run.load("one").table("truth").num_rows
    assert Comparison.load("two").table.to_markdown()
    assert not marker.exists()


OTHER = f"""
[[flows]]
name = "other"
media = {{ controller = "{NAMED}" }}
"""
SUITE = """
description = "a network"
source = "here"
[[cases]]
name = "a"
scenario = "net.toml"
contenders = ["call"]
"""


def with_code(marker: Path) -> Path:
    """A suite whose scenario names code in a flow beside the contender."""
    folder = marker.parents[1]
    (folder / "net.toml").write_text(PLAIN.replace('"4s"', '"1s"') + OTHER)
    (folder / "suite.toml").write_text(SUITE)
    return folder / "suite.toml"


def forget() -> None:
    """Makes this process forget the controllers' modules, which would run their code again."""
    for name in [name for name in sys.modules if name.startswith("tidegate_controller_")]:
        del sys.modules[name]


@pytest.mark.parametrize(
    "call",
    [
        "suite run suite.toml gcc --seeds 1 --out o",
        "sweep --suite suite.toml --controller gcc --set controller.beta=0.8,0.9 --seeds 1 --out o",
        "check base.json gcc --suite suite.toml --seeds 10 --write -j 1",
    ],
)
def test_a_suite_says_what_its_scenarios_run(cli: Cli, marker: Path, call: str) -> None:
    with_code(marker)
    got = cli(*call.split())
    assert got.code == 0, got.err
    assert got.err.count(f"tidegate: suite.toml names Python code, which runs with your rights: {NAMED}\n") == 1


KEPT = {
    "sweep": "sweep net.toml --set links.cable.delay=5ms,6ms --seeds 1 -j 1 --out o",
    "suite": "suite run suite.toml gcc fixed:500kbps --seeds 1 -j 1 --out o",
    "search": "optimise flows.call.media.controller=gcc,nada --scenario net.toml --tries 2 --seeds 1 --for utilisation -j 1 --out o",
}


@pytest.mark.parametrize("kind", KEPT)
def test_kept_results_are_read_without_the_code(cli: Cli, marker: Path, kind: str) -> None:
    if kind == "search":
        pytest.importorskip("optuna")
    with_code(marker)
    done = cli(*KEPT[kind].split())
    assert done.code == 0, done.err
    assert marker.exists()
    marker.unlink()
    forget()
    reads = [["report", "o", "--out", "x.html"], ["diff", "o", "o"], ["results", "o"], ["suite", "check", "suite.toml"]]
    if kind == "search":
        reads = reads[:1]
    for argv in reads:
        got = cli(*argv)
        assert (argv, got.code) == (argv, 0), got.err
    assert not marker.exists()


def test_a_folder_of_a_paper_is_judged_before_its_code_runs(cli: Cli, tmp_path: Path) -> None:
    from tidegate.paper import shipped

    folder = tmp_path / "paper"
    shutil.copytree(shipped.find("hermanns2013"), folder)
    (folder / "experiment.py").write_text(CODE)
    with pytest.raises(InputError, match="defines no class"):
        shipped.experiment(folder)
    assert (folder / "marker").exists()  # running a paper runs its code
    (folder / "marker").unlink()
    (folder / "paper.toml").write_text("x = 1\n")
    assert cli("paper", "paper", "--quick").code == 2
    assert not (folder / "marker").exists()
