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


def fill(place: Path, **files: str) -> None:
    with write_folder(place, KIND) as making:
        for name, text in {KIND: "it", **files}.items():
            path = making / name.replace("__", "/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)


def told(place: Path) -> dict[str, str]:
    """Everything in a folder but its manifest."""
    files = (path for path in place.rglob("*") if path.is_file() and path.name != MANIFEST)
    return {path.relative_to(place).as_posix(): path.read_text() for path in files}


@pytest.fixture(params=["exchange", "two renames"])
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    if request.param == "two renames":
        monkeypatch.setattr(folders, "_exchange", lambda one, other: False)
    return tmp_path / "o"


def test_foreign_files_stay(place: Path) -> None:
    fill(place, old="1", deep__x="1")
    (place / "notes.txt").write_text("mine")
    (place / "deep" / "more.txt").write_text("mine, too")
    (place / "mine" / "empty").mkdir(parents=True)
    (place / "link").symlink_to("/nowhere/at/all")
    (place / "way").symlink_to(place.parent)
    inode = (place / "notes.txt").stat().st_ino
    fill(place, new="2")
    files = told(place)
    assert files.pop("notes.txt") == "mine"
    assert files.pop("deep/more.txt") == "mine, too"
    assert files == {KIND: "it", "new": "2"}
    assert (place / "mine" / "empty").is_dir()
    assert ((place / "link").readlink(), (place / "way").readlink()) == (Path("/nowhere/at/all"), place.parent)
    assert (place / "notes.txt").stat().st_ino == inode, "the file itself, not a copy"
    assert [path.name for path in place.parent.iterdir()] == ["o"], "nothing beside it"


def test_what_was_changed_is_foreign(place: Path, caplog: pytest.LogCaptureFixture) -> None:
    fill(place, page="one", table="one", gone="one")
    (place / "page").write_text("my words")
    (place / "gone").write_text("my words")
    fill(place, page="two", table="two")
    assert told(place) == {KIND: "it", "page": "two", "page.kept-1": "my words", "table": "two", "gone": "my words"}
    assert [record.getMessage() for record in caplog.records] == [
        f"{place}: page is not as tidegate wrote it; it is kept as page.kept-1"
    ]
    # what is kept is never overwritten, and the same again keeps nothing more
    fill(place, page="three")
    (place / "page").write_text("other words")
    fill(place, page="four")
    files = told(place)
    assert (files["page"], files["page.kept-1"], files["page.kept-2"]) == ("four", "my words", "other words")
    assert "page.kept-3" not in files


def test_a_file_where_a_folder_comes_and_a_folder_where_a_file_comes(place: Path) -> None:
    fill(place)
    (place / "runs").write_text("a file of mine")
    (place / "page" / "deep").mkdir(parents=True)
    (place / "page" / "x").write_text("x")
    (place / "page" / "deep" / "y").write_text("y")
    fill(place, runs__one="1", page="2")
    assert told(place) == {
        KIND: "it", "runs/one": "1", "page": "2",
        "runs.kept-1": "a file of mine", "page.kept-1/x": "x", "page.kept-1/deep/y": "y",
    }  # fmt: skip


def test_what_is_not_ours_is_refused(tmp_path: Path) -> None:
    (tmp_path / KIND).write_text("mine")
    with pytest.raises(OutputError, match=r"holds a result without a list of its files .*; choose another folder"):
        check_folder(tmp_path, KIND)
    (tmp_path / MANIFEST).write_text("{")
    with pytest.raises(OutputError, match=r"its manifest.json is damaged, .*; choose another folder, or move"):
        check_folder(tmp_path, KIND)
    (tmp_path / KIND).unlink()
    (tmp_path / MANIFEST).write_text('{"name": "an extension of a browser"}')
    with pytest.raises(OutputError, match=r"there is something else in it \(no manifest.json of tidegate\); choose"):
        check_folder(tmp_path, KIND)
    fill(tmp_path / "o")
    with pytest.raises(OutputError, match=r"holds another kind of result \(mark; this would be run.json\)"):
        check_folder(tmp_path / "o", "run.json")
    with pytest.raises(OutputError, match=r"not a directory|is no folder"):
        check_folder(tmp_path / MANIFEST / "x", KIND)


def test_a_manifest_reaches_nothing_outside_its_folder(place: Path) -> None:
    outside = place.parent / "outside"
    outside.write_text("mine")
    fill(place)
    Manifest(KIND, {"../outside": sha256(outside), KIND: "0" * 64}).write(place)
    fill(place)
    assert outside.read_text() == "mine"
    assert told(place) == {KIND: "it", f"{KIND}.kept-1": "it"}


def test_the_folder_one_is_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(tmp_path / "o", deep__x="1")
    monkeypatch.chdir(tmp_path / "o" / "deep")
    for path in ("..", "."):
        with pytest.raises(OutputError, match=r"something else|is the folder that you are in"):
            check_folder(Path(path), KIND)


def test_a_folder_behind_a_link(place: Path) -> None:
    fill(place, page="one")
    link = place.parent / "latest"
    link.symlink_to(place)
    fill(link, page="two")
    assert link.is_symlink()
    assert told(place)["page"] == "two"


def test_what_is_written_during_the_exchange_is_kept(
    place: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    fill(place, page="one", table="one")
    exchange = folders._exchange

    def busy(one: Path, other: Path) -> bool:
        (place / "late.txt").write_text("late")
        (place / "page").write_text("late words")
        return exchange(one, other)

    monkeypatch.setattr(folders, "_exchange", busy)
    fill(place, page="two", table="two")
    assert told(place) == {
        KIND: "it", "page": "two", "page.kept-1": "late words", "table": "two", "late.txt": "late",
    }  # fmt: skip
    assert [path.name for path in place.parent.iterdir()] == ["o"]


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
        # the first call is that of a clear start
        ("_clear/1", "exchange"),
        ("rename/1", "two renames"),
        ("rename/2", "two renames"),
        ("_clear/1", "two renames"),
    ],
)
def test_a_kill_at_any_moment(call: str, how: str, tmp_path: Path) -> None:
    place = tmp_path / "o"
    fill(place, page="one")
    (place / "notes.txt").write_text("mine")
    env = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    killed = subprocess.run([sys.executable, "-c", KILLED, call, how], cwd=tmp_path, env=env, check=False)
    assert killed.returncode == -signal.SIGKILL
    beside = [path.name for path in tmp_path.iterdir() if path.name != "o"]
    assert len(beside) in {1, 2}, "something is left beside it"
    # at no moment is a note anywhere but in its place, except between two renames
    if (call, how) == ("rename/2", "two renames"):
        assert not place.exists()
    else:
        assert told(place) in ({KIND: "it", "page": text, "notes.txt": "mine"} for text in ("one", "two"))
    # the next run puts it right, even one that goes no further than a look
    check_folder(place, KIND)
    assert [path.name for path in tmp_path.iterdir()] == ["o"]
    assert told(place)["notes.txt"] == "mine"
    fill(place, page="three")
    assert told(place) == {KIND: "it", "page": "three", "notes.txt": "mine"}


def test_what_another_run_is_at_is_left_alone(place: Path) -> None:
    with write_folder(place, KIND) as making:
        (making / KIND).write_text("slow")
        fill(place, page="fast")
        check_folder(place, KIND)
        assert making.is_dir()
    assert told(place) == {KIND: "slow"}
    assert [path.name for path in place.parent.iterdir()] == ["o"]


def test_files_are_added(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    place = tmp_path / "s"
    begin_folder(place, KIND)
    add_file(place, "summary", "one")
    add_file(place, "summary", "two")
    assert told(place) == {"summary": "two"}
    (place / "summary").write_text("my words")
    add_file(place, "summary", "three")
    assert told(place) == {"summary": "three", "summary.kept-1": "my words"}
    assert caplog.record_tuples == [
        (
            "tidegate.results.folders",
            logging.WARNING,
            f"{place}: summary is not as tidegate wrote it; it is kept as summary.kept-1",
        )
    ]
    # anywhere else a file is what its name says
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
        "tidegate: 2 of 2 runs were there already\n"
    )
    assert (tmp_path / "o" / "notes.txt").read_text() == "mine"
    assert (tmp_path / "o" / "summary.md.kept-1").read_text().endswith("my conclusion\n")


def test_a_manifest_names_everything(tmp_path: Path) -> None:
    place = compare(["fixed"], scenario_for(capacity="2Mbps", duration="2s")).save(tmp_path / "o")
    listed = json.loads((place / MANIFEST).read_text())["files"]
    found = {path.relative_to(place).as_posix() for path in place.rglob("*") if path.is_file()} - {MANIFEST}
    assert found == set(listed)
    assert {"report.html", "runs/fixed-seed1/run.json", f"runs/fixed-seed1/{MANIFEST}"} < found
    assert all(sha256(place / name) == content for name, content in listed.items())
