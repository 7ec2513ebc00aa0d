"""Results in folders: whole or not at all, and no foreign file is lost."""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from support import PLAIN, ROOT, Cli
from tidegate import Run, Scenario, compare, run, scenario_for
from tidegate._files import sha256
from tidegate.errors import OutputError
from tidegate.results import folders
from tidegate.results.folders import MANIFEST, Manifest, add_file, begin_folder, check_folder, write_folder

KIND = "mark"


def fill(folder: Path, **files: str) -> None:
    with write_folder(folder, KIND) as making:
        for name, text in {KIND: "it", **files}.items():
            path = making / name.replace("__", "/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)


def contents(folder: Path) -> dict[str, str]:
    """Everything in a folder but its manifest."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.name != MANIFEST)
    return {path.relative_to(folder).as_posix(): path.read_text() for path in files}


@pytest.fixture(params=["exchange", "two renames"])
def folder(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    if request.param == "two renames":
        monkeypatch.setattr(folders, "_exchange", lambda draft, target: False)
    return tmp_path / "o"


def test_foreign_files_stay(folder: Path) -> None:
    fill(folder, old="1", deep__x="1")
    (folder / "notes.txt").write_text("mine")
    (folder / "deep" / "more.txt").write_text("mine, too")
    (folder / "mine" / "empty").mkdir(parents=True)
    (folder / "link").symlink_to("/nowhere/at/all")
    (folder / "way").symlink_to(folder.parent)
    inode = (folder / "notes.txt").stat().st_ino
    fill(folder, new="2")
    files = contents(folder)
    assert files.pop("notes.txt") == "mine"
    assert files.pop("deep/more.txt") == "mine, too"
    assert files == {KIND: "it", "new": "2"}
    assert (folder / "mine" / "empty").is_dir()
    assert ((folder / "link").readlink(), (folder / "way").readlink()) == (Path("/nowhere/at/all"), folder.parent)
    assert (folder / "notes.txt").stat().st_ino == inode, "the file itself, not a copy"
    assert [path.name for path in folder.parent.iterdir()] == ["o"], "nothing beside it"


def test_what_was_changed_is_foreign(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    fill(folder, page="one", table="one", gone="one")
    (folder / "page").write_text("my words")
    (folder / "gone").write_text("my words")
    fill(folder, page="two", table="two")
    assert contents(folder) == {
        KIND: "it",
        "page": "two",
        "page.kept-1": "my words",
        "table": "two",
        "gone": "my words",
    }
    assert [record.getMessage() for record in caplog.records] == [
        f"{folder}: page is not as tidegate wrote it; it is kept as page.kept-1"
    ]
    # kept files are never overwritten, and the same content again is not kept twice
    fill(folder, page="three")
    (folder / "page").write_text("other words")
    fill(folder, page="four")
    files = contents(folder)
    assert (files["page"], files["page.kept-1"], files["page.kept-2"]) == ("four", "my words", "other words")
    assert "page.kept-3" not in files


def test_a_file_where_a_folder_comes_and_a_folder_where_a_file_comes(folder: Path) -> None:
    fill(folder)
    (folder / "runs").write_text("a file of mine")
    (folder / "page" / "deep").mkdir(parents=True)
    (folder / "page" / "x").write_text("x")
    (folder / "page" / "deep" / "y").write_text("y")
    fill(folder, runs__one="1", page="2")
    assert contents(folder) == {
        KIND: "it", "runs/one": "1", "page": "2",
        "runs.kept-1": "a file of mine", "page.kept-1/x": "x", "page.kept-1/deep/y": "y",
    }  # fmt: skip


def test_what_is_not_ours_is_refused(tmp_path: Path) -> None:
    (tmp_path / KIND).write_text("mine")
    with pytest.raises(OutputError, match=r"holds a result of an earlier version, .*; choose another folder"):
        check_folder(tmp_path, KIND)
    (tmp_path / MANIFEST).write_text("{")
    with pytest.raises(OutputError, match=r"manifest.json is damaged, .*; choose another folder, or move"):
        check_folder(tmp_path, KIND)
    (tmp_path / KIND).unlink()
    (tmp_path / MANIFEST).write_text('{"name": "an extension of a browser"}')
    with pytest.raises(
        OutputError, match=r"the folder holds other files \(it has no manifest.json of tidegate\); choose"
    ):
        check_folder(tmp_path, KIND)
    fill(tmp_path / "o")
    with pytest.raises(OutputError, match=r"holds another kind of result \(mark, not run.json\)"):
        check_folder(tmp_path / "o", "run.json")
    with pytest.raises(OutputError, match=r"not a directory|is not a folder"):
        check_folder(tmp_path / MANIFEST / "x", KIND)


def test_a_manifest_reaches_nothing_outside_its_folder(folder: Path) -> None:
    outside = folder.parent / "outside"
    outside.write_text("mine")
    fill(folder)
    Manifest(KIND, {"../outside": sha256(outside), KIND: "0" * 64}).write(folder)
    fill(folder)
    assert outside.read_text() == "mine"
    assert contents(folder) == {KIND: "it", f"{KIND}.kept-1": "it"}


def test_the_folder_one_is_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(tmp_path / "o", deep__x="1")
    monkeypatch.chdir(tmp_path / "o" / "deep")
    for path in ("..", "."):
        with pytest.raises(OutputError, match=r"other files|this is the current folder"):
            check_folder(Path(path), KIND)


def test_a_folder_behind_a_link(folder: Path) -> None:
    fill(folder, page="one")
    link = folder.parent / "latest"
    link.symlink_to(folder)
    fill(link, page="two")
    assert link.is_symlink()
    assert contents(folder)["page"] == "two"


def test_what_is_written_during_the_exchange_is_kept(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    fill(folder, page="one", table="one")
    exchange = folders._exchange

    def busy(draft: Path, target: Path) -> bool:
        (folder / "late.txt").write_text("late")
        (folder / "page").write_text("late words")
        return exchange(draft, target)

    monkeypatch.setattr(folders, "_exchange", busy)
    fill(folder, page="two", table="two")
    assert contents(folder) == {
        KIND: "it", "page": "two", "page.kept-1": "late words", "table": "two", "late.txt": "late",
    }  # fmt: skip
    assert [path.name for path in folder.parent.iterdir()] == ["o"]


#: Makes a second result over a first with a note in it, and kills itself at the given call.
KILLED = """
import os, signal, sys
from pathlib import Path
from tidegate.results import folders
call, two_renames = sys.argv[1], sys.argv[2] == "two renames"
count = 0
def deadly(module, name, at=1):
    real = getattr(module, name)
    def called(*args, **kwargs):
        global count
        count += 1
        if count == at:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*args, **kwargs)
    setattr(module, name, called)
if two_renames:
    folders._exchange = lambda one, other: False
name, _, at = call.partition("/")
if name == "filling":
    pass
elif name == "rename":
    deadly(Path, "rename", int(at))
else:
    deadly(folders, name, int(at))
with folders.write_folder(Path("o"), "mark") as making:
    (making / "mark").write_text("it")
    (making / "page").write_text("two")
    if name == "filling":
        os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize(
    ("call", "how"),
    [
        ("filling", "exchange"),
        ("_adopt/1", "exchange"),
        ("_link/1", "exchange"),
        ("_exchange/1", "exchange"),
        # nothing is left over at the start, so the first call is the one after the exchange
        ("_clear/1", "exchange"),
        ("rename/1", "two renames"),
        ("rename/2", "two renames"),
        ("_clear/1", "two renames"),
    ],
)
def test_a_kill_at_any_moment(call: str, how: str, tmp_path: Path) -> None:
    folder = tmp_path / "o"
    fill(folder, page="one")
    (folder / "notes.txt").write_text("mine")
    env = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    killed = subprocess.run([sys.executable, "-c", KILLED, call, how], cwd=tmp_path, env=env, check=False)
    assert killed.returncode == -signal.SIGKILL
    beside = [path.name for path in tmp_path.iterdir() if path.name != "o"]
    assert len(beside) in {1, 2}, "something is left beside it"
    # at no moment is a note anywhere but in its place, except between two renames
    if (call, how) == ("rename/2", "two renames"):
        assert not folder.exists()
    else:
        assert contents(folder) in ({KIND: "it", "page": text, "notes.txt": "mine"} for text in ("one", "two"))
    # the next run puts it right, even one that goes no further than a look
    check_folder(folder, KIND)
    assert [path.name for path in tmp_path.iterdir()] == ["o"]
    assert contents(folder)["notes.txt"] == "mine"
    fill(folder, page="three")
    assert contents(folder) == {KIND: "it", "page": "three", "notes.txt": "mine"}


def test_what_another_run_is_at_is_left_alone(folder: Path) -> None:
    with write_folder(folder, KIND) as making:
        (making / KIND).write_text("slow")
        fill(folder, page="fast")
        check_folder(folder, KIND)
        assert making.is_dir()
    assert contents(folder) == {KIND: "slow"}
    assert [path.name for path in folder.parent.iterdir()] == ["o"]


def test_files_are_added(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = tmp_path / "s"
    begin_folder(folder, KIND)
    add_file(folder, "summary", "one")
    add_file(folder, "summary", "two")
    assert contents(folder) == {"summary": "two"}
    (folder / "summary").write_text("my words")
    add_file(folder, "summary", "three")
    assert contents(folder) == {"summary": "three", "summary.kept-1": "my words"}
    assert caplog.record_tuples == [
        (
            "tidegate.results.folders",
            logging.WARNING,
            f"{folder}: summary is not as tidegate wrote it; it is kept as summary.kept-1",
        )
    ]
    # in any other folder a file of that name is replaced
    (tmp_path / "page").write_text("old")
    add_file(tmp_path, "page", "new")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["page", "s"]


# --- the commands ---------------------------------------------------------------------------------


def test_a_note_survives_the_same_run_again(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_text(PLAIN)
    argv = ("run", "x.toml", "--out", "o")
    assert cli(*argv).code == 0
    (tmp_path / "o" / "notes.txt").write_text("mine")
    (tmp_path / "o" / "run.json").write_text("my words")
    got = cli(*argv)
    assert (got.code, got.err) == (
        0,
        "tidegate: o: run.json is not as tidegate wrote it; it is kept as run.json.kept-1\n",
    )
    assert (tmp_path / "o" / "notes.txt").read_text() == "mine"
    assert (tmp_path / "o" / "run.json.kept-1").read_text() == "my words"
    assert Run.load(tmp_path / "o").seed == 1


def test_a_note_survives_in_a_comparison(cli: Cli, tmp_path: Path) -> None:
    argv = ("compare", "fixed", "--duration", "2s", "--capacity", "2Mbps", "--out", "o")
    assert cli(*argv).code == 0
    (tmp_path / "o" / "notes.txt").write_text("mine")
    (tmp_path / "o" / "runs" / "fixed-seed1" / "notes.txt").write_text("mine")
    # reports that are made again are tidegate's, in a comparison and in a part of it
    assert cli("report", "o").code == 0
    assert cli("report", "o/runs/fixed-seed1").code == 0
    got = cli(*argv)
    assert (got.code, got.err) == (0, "")
    assert not list((tmp_path / "o").rglob("*.kept-*"))
    assert not (tmp_path / "o" / "runs" / "fixed-seed1" / "report.html").exists()
    for notes in ("notes.txt", "runs/fixed-seed1/notes.txt"):
        assert (tmp_path / "o" / notes).read_text() == "mine"
    # a run that a person put there is theirs
    run(Scenario.parse(PLAIN)).save(tmp_path / "o" / "mine")
    assert cli(*argv).code == 0
    assert Run.load(tmp_path / "o" / "mine").seed == 1


def test_a_note_survives_in_a_sweep(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_text(PLAIN)
    argv = ("sweep", "x.toml", "--set", "links.cable.delay=10ms,20ms", "--out", "o")
    assert cli(*argv).code == 0
    (tmp_path / "o" / "notes.txt").write_text("mine")
    with (tmp_path / "o" / "summary.md").open("a") as file:
        file.write("my conclusion\n")
    got = cli(*argv)
    assert got.err == (
        "tidegate: o: summary.md is not as tidegate wrote it; it is kept as summary.md.kept-1\n"
        "tidegate: 2 of 2 runs existed already\n"
    )
    assert (tmp_path / "o" / "notes.txt").read_text() == "mine"
    assert (tmp_path / "o" / "summary.md.kept-1").read_text().endswith("my conclusion\n")


def test_a_manifest_names_everything(tmp_path: Path) -> None:
    folder = compare(["fixed"], scenario_for(capacity="2Mbps", duration="2s")).save(tmp_path / "o")
    listed = json.loads((folder / MANIFEST).read_text())["files"]
    present = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()} - {MANIFEST}
    assert present == set(listed)
    assert {"report.html", "runs/fixed-seed1/run.json", f"runs/fixed-seed1/{MANIFEST}"} < present
    assert all(sha256(folder / name) == content for name, content in listed.items())
