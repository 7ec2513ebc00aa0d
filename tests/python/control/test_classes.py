"""Classes as controllers: given as they are, with settings, from cells of a notebook and from inside functions."""

from __future__ import annotations

import io
import json
import linecache
import sys
import threading
import types
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import tidegate
from tidegate import Controller, InputError, Limits, Media, Run, Scenario
from tidegate.control import classes
from tidegate.control.contenders import contenders
from tidegate.control.registry import choose
from tidegate.output import progress
from tidegate.runs import engine, pool
from tidegate.runs.jobs import by_processes
from tidegate.runs.pool import Job
from tidegate.scenario.lower import Lowered, lower
from tidegate.scenario.variants import with_controller
from tidegate.suite import Plan, Suite

SCENARIO = tidegate.scenario_for(capacity="2Mbps", duration="3s")
CALL = f"flows.{SCENARIO.flows[0].name}.media.controller"
CELL = '''
from tidegate import Controller

{extra}
class Mine(Controller):
    """A part of the rate to begin with."""

    def __init__(self, part: float = 0.5) -> None:
        super().__init__()
        self.part = part

    def on_limits(self, now_ns, limits):
        self.limits = limits
        return int(self.part * limits.start_bps) {more}

    def on_report(self, now_ns, report):
        return int(self.part * self.limits.start_bps) {more}
'''


class Half(Controller):
    """In a file that others import."""

    def on_limits(self, now_ns: int, limits: Any) -> int:
        self.rate = int(limits.start_bps) // 2
        return self.rate

    def on_report(self, now_ns: int, report: Any) -> int:
        return self.rate


class NoHooks:
    pass


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A module like that of a notebook: no file, and the text of each cell is known to linecache alone."""
    module = types.ModuleType("__main__")
    monkeypatch.setitem(sys.modules, "__main__", module)
    cells: list[str] = []

    def run(extra: str = "", more: str = "") -> type[Any]:
        text = CELL.format(extra=extra, more=more)
        name = f"<cell {len(cells)} of test>"
        cells.append(name)
        linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
        exec(compile(text, name, "exec"), vars(module))
        cls: type[Any] = module.Mine
        return cls

    return run


def test_classes_take_part_by_their_names(notebook: Any) -> None:
    mine = notebook()
    comparison = tidegate.compare([mine, (mine, {"part": 0.25}), Half, "gcc"], SCENARIO, seeds=2)
    assert comparison.controllers == ["Mine", "Mine:part=0.25", "Half", "gcc"]
    targets = {name: runs[0].table("decisions").to_numpy("target_bps") for name, runs in comparison.runs.items()}
    begin = Limits().start_bps
    assert set(targets["Mine"]) == set(targets["Half"]) == {begin / 2}
    assert set(targets["Mine:part=0.25"]) == {begin / 4}


def test_two_classes_of_one_name_are_told_apart(notebook: Any) -> None:
    old = notebook(more="// 2")
    new = notebook()
    comparison = tidegate.compare([new, old], SCENARIO)
    assert comparison.controllers == ["Mine", "Mine@2"]
    first, second = (comparison.runs[name][0] for name in comparison.controllers)
    assert first.digest != second.digest
    assert tidegate.run(with_controller(SCENARIO, new)).digest == first.digest
    assert tidegate.run(with_controller(SCENARIO, old)).digest == second.digest
    # also where the order is the other one
    assert tidegate.compare([old, new], SCENARIO).runs["Mine"][0].digest == second.digest


def test_a_class_of_a_function_is_found_again_by_its_name() -> None:
    def make(rate: int) -> type[Any]:
        class Constant(Controller):
            def on_limits(self, now_ns: int, limits: Any) -> int:
                return rate

            def on_report(self, now_ns: int, report: Any) -> int:
                return rate

        return Constant

    slow, fast = make(300_000), make(900_000)
    scenarios = {name: with_controller(SCENARIO, scenario) for name, scenario in {"slow": slow, "fast": fast}.items()}
    # through the text of a file, too
    again = Scenario.parse(scenarios["slow"].to_toml(), SCENARIO.base / "again.toml")
    assert tidegate.run(again).digest == tidegate.run(scenarios["slow"]).digest
    comparison = tidegate.compare([slow, fast], SCENARIO)
    assert comparison.runs["Constant"][0].digest == tidegate.run(scenarios["slow"]).digest
    assert comparison.runs["Constant@2"][0].digest == tidegate.run(scenarios["fast"]).digest
    hashes = {lower(scenario).hash for scenario in scenarios.values()}
    assert len(hashes) == 2


def test_the_folder_says_what_the_class_was(notebook: Any, tmp_path: Path) -> None:
    mine = notebook()
    run = tidegate.run(with_controller(SCENARIO, (mine, {"part": 0.25})))
    about = json.loads((run.save(tmp_path / "run") / "run.json").read_text())
    (text,) = about["classes"].values()
    assert text.startswith("class Mine(Controller):")
    assert text.rstrip().endswith("int(self.part * self.limits.start_bps)")
    again = Run.load(tmp_path / "run")
    assert again.scenario.flows[0].media.controller.name == "python:__main__:Mine"  # type: ignore[union-attr]
    # nothing that others import is copied
    assert "classes" not in tidegate.run(with_controller(SCENARIO, "fixed:1Mbps")).about
    with pytest.raises(InputError, match="this process has not defined it"):
        Scenario.parse(again.scenario.to_toml().replace(":Mine", ":Other")).check()
    # a class without source text goes by its name
    del sys.modules["__main__"].Mine
    with pytest.raises(
        InputError, match="Mine: the class belongs to a notebook or script, and this process has not defined it"
    ):
        tidegate.run(again.scenario)
    nameless: dict[str, Any] = {"__name__": "__main__"}
    exec(CELL.format(extra="", more=""), nameless)
    assert classes.text_of(nameless["Mine"]) == "Mine"


def test_what_a_class_of_a_cell_uses_counts_as_its_code(notebook: Any) -> None:
    def fingerprint(**parts: str) -> str:
        return classes.fingerprint(notebook(**parts))

    plain = fingerprint()
    assert fingerprint() == plain
    helped = fingerprint(extra="def helper():\n    return 1\n", more="* helper()")
    assert len({plain, helped, fingerprint(extra="def helper():\n    return 2\n", more="* helper()")}) == 3
    assert fingerprint(extra="STEP = 2", more="* STEP") != fingerprint(extra="STEP = 3", more="* STEP")
    # the text of a comment is no code
    assert fingerprint(extra="# nothing") == fingerprint(extra="")


def test_a_sweep_runs_again_what_a_changed_class_did(notebook: Any, tmp_path: Path) -> None:
    mine = notebook()
    grid = {CALL: [mine, "fixed:1Mbps"]}
    first = tidegate.sweep(SCENARIO, grid, out=tmp_path / "out")
    assert [row["settings"][CALL] for row in first.rows] == ["Mine", "fixed:1Mbps"]
    assert tidegate.sweep(SCENARIO, grid, out=tmp_path / "out").resumed == 2
    changed = {CALL: [notebook(more="// 2"), "fixed:1Mbps"]}
    again = tidegate.sweep(SCENARIO, changed, out=tmp_path / "out")
    assert again.resumed == 1
    assert again.rows[0]["digest"] != first.rows[0]["digest"]
    assert "class Mine" in (tmp_path / "out" / "sweep.json").read_text()


def test_a_suite_takes_classes(notebook: Any, tmp_path: Path) -> None:
    suite = Suite.parse('[[cases]]\nname = "home"\nscenario = "home-broadband"\nset = { duration = "4s" }\n')
    mine = notebook()
    # two seeds would go to processes, which do not have the class: threads do them
    plan = Plan.of(suite, [mine, (mine, {"part": 0.25}), "gcc"], seeds=2)
    result = plan.run(tmp_path / "out")
    assert result.controllers == ("Mine", "Mine:part=0.25", "gcc")
    assert not result.troubles
    assert "class Mine" in (tmp_path / "out" / "suite.json").read_text()


def test_processes_are_refused_where_they_would_not_have_the_class(
    notebook: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = notebook()
    with pytest.raises(
        InputError, match=r"python:__main__:Mine: the class is defined in a notebook.*python:FILE.py:CLASS"
    ):
        tidegate.compare([mine, "gcc"], SCENARIO, processes=True)
    with pytest.raises(InputError, match="so other processes lack it"):
        tidegate.sweep(SCENARIO, {CALL: [mine]}, out=tmp_path / "out", processes=True)
    # another engine is sent the class itself
    with monkeypatch.context() as patch:
        patch.setattr(engine, "current", object)
        assert by_processes(True, [Lowered(with_controller(SCENARIO, mine))], 2, 2)
    # threads are the default
    assert tidegate.compare([mine, "gcc"], SCENARIO, seeds=2, processes=None, workers=2).seeds == [1, 2]


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (
            NoHooks,
            r"NoHooks: the class has no method on_report\(now_ns, report\); derive it from tidegate.Controller, which has every method",
        ),
        (Half(), r"found an instance of Half; expected the class itself, Half, or with settings: \(Half, "),
        (lambda: None, r'found ".*lambda.*"; expected a name such as "gcc", a class, or one of them with settings'),
        (None, r'found "None"; expected a name'),
        (3, r'found "3"; expected a name'),
        ((Half, 3), r"expected a name such as"),
        ((Half, {"k": 2}), r"Half: got an unexpected keyword argument 'k'"),
        ((Half, {"k": [2]}), r'Half: k: found "\[2\]"; expected a number, text, True or False'),
        ((Half, {"name": "x"}), r"Half: name: is reserved for scenarios"),
        (int, r"int: the class has no method on_report"),
    ],
)
def test_what_is_no_controller_is_told_in_a_line(wrong: Any, words: str, tmp_path: Path) -> None:
    suite = Suite.parse('[[cases]]\nname = "home"\nscenario = "home-broadband"\nset = { duration = "4s" }\n')
    for give in (
        lambda: tidegate.compare([wrong, "gcc"], SCENARIO),
        lambda: tidegate.sweep(SCENARIO, {CALL: [wrong]}, out=tmp_path / "out"),
        lambda: Plan.of(suite, [wrong, "gcc"]),
    ):
        try:
            plan: Any = give()
        except InputError as error:
            message = str(error)
        else:
            # a controller that fits no case is told where the others are run
            message = " ".join(plan.refused.values())
        assert __import__("re").search(words, message), message
        assert "\n" not in message


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (Half, r"found Half; expected a list, such as \[Half\]"),
        ("gcc", r'found "gcc"; expected a list, such as \["gcc"\]'),
        (5, "expected a list"),
        ([], "at least one controller"),
        ([Half, Half], "Half: the contender is listed twice"),
        (["gcc", "gcc"], "gcc: the contender is listed twice"),
    ],
)
def test_a_list_of_controllers_that_is_none_is_told(wrong: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        contenders(wrong)


def test_a_scenario_holds_a_class_by_its_name() -> None:
    media = Media(controller=Half)
    assert media.controller == f"python:{Half.__module__}:Half"
    with pytest.raises(InputError, match="expected text"):
        Media(controller=Half())


def test_a_grid_takes_classes_for_controllers_alone(tmp_path: Path) -> None:
    link = SCENARIO.links[0].name
    with pytest.raises(InputError, match=rf'links.{link}.delay: found 5; expected values as text, such as "20ms"'):
        tidegate.sweep(SCENARIO, {f"links.{link}.delay": [5]}, out=tmp_path / "out")  # type: ignore[list-item]


class Terminal(io.StringIO):
    """A terminal that notes when a share of the work stands on it."""

    def __init__(self) -> None:
        super().__init__()
        self.drawn = threading.Event()

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        if "%" in text:
            self.drawn.set()
        return super().write(text)


class Waiting:
    """An engine whose runs begin when a bar is drawn: what is over within a beat has none, and a quick machine is done then."""

    def __init__(self, drawn: threading.Event) -> None:
        self.drawn = drawn

    def run_all(self, jobs: Sequence[Job[Any]], **how: Any) -> list[Any]:
        return pool.run_all([partial(self.do, job) for job in jobs], **how)

    def do(self, job: Job[Any], tick: pool.Tick) -> Any:
        assert self.drawn.wait(30), "no bar was drawn while nothing was done"
        return job(tick)


@pytest.mark.parametrize("runner", ["run", "compare", "sweep", "suite"])
def test_a_bar_is_drawn_for_whoever_asks(runner: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(progress, "_PATIENCE", -1.0)
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    suite = Suite.parse('[[cases]]\nname = "home"\nscenario = "home-broadband"\nset = { duration = "3s" }\n')
    runners: dict[str, Callable[[], object]] = {
        "run": lambda: tidegate.run(SCENARIO, record="summary", progress=True),
        "compare": lambda: tidegate.compare(["gcc", "fixed:1Mbps"], SCENARIO, progress=True, seeds=3),
        "sweep": lambda: tidegate.sweep(
            SCENARIO, {CALL: ["gcc", "nada"]}, out=tmp_path / "out", progress=True, seeds=2
        ),
        "suite": lambda: Plan.of(suite, ["gcc"], seeds=4).run(tmp_path / "out", progress=True),
    }
    with engine.using(Waiting(terminal.drawn)):
        runners[runner]()
    output = terminal.getvalue()
    assert "%" in output
    assert "time left" in output


def test_a_bar_in_a_notebook_is_one_display_that_changes_and_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[tuple[str, str]] = []

    class Handle:
        def update(self, content: Any) -> None:
            drawn.append(("update", content))

    def display(content: Any, display_id: bool) -> Handle:
        drawn.append(("display", content))
        return Handle()

    fake = types.ModuleType("IPython.display")
    fake.HTML, fake.display = str, display  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", types.ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", fake)
    monkeypatch.setattr("rich.console.Console.is_jupyter", True, raising=False)
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    monkeypatch.setattr(progress, "_PATIENCE", -1.0)
    with progress.progress_bar(True, "<b>") as tell:
        assert tell is not None
        tell(0.25)
        tell(0.5)
    assert [how for how, _ in drawn] == ["display", "update", "update"]
    assert "25%" in drawn[0][1]
    assert "&lt;b&gt;" in drawn[0][1]
    assert drawn[-1][1] == ""


def test_progress_that_is_none_is_told() -> None:
    with pytest.raises(InputError, match="progress: found 3; expected True, or a function"):
        tidegate.run(SCENARIO, progress=3)  # type: ignore[arg-type]
    heard: list[float] = []
    tidegate.run(SCENARIO, progress=heard.append)
    assert heard[-1] == 1.0
    assert tidegate.run(SCENARIO, progress=False).name == SCENARIO.name


def test_values_that_are_made_anew_count_in_the_hash_even_at_the_address_of_a_freed_one() -> None:
    class Fresh(property):
        """Has a new list in place of its function at each look."""

        number = 0

        @property
        def fget(self) -> Any:  # type: ignore[override]
            return [self.number]

    def of(*numbers: int) -> str:
        members = {f"value_{k}": Fresh() for k in range(len(numbers))}
        for member, number in zip(members.values(), numbers, strict=True):
            member.number = number
        return classes.fingerprint(type("Mine", (), members))

    assert of(1, 2, 3, 4) == of(1, 2, 3, 4)
    assert len({of(1, 2, 3, 4), of(1, 5, 3, 4), of(1, 2, 5, 4), of(1, 2, 3, 5)}) == 4


def test_runs_in_several_threads_wait_for_the_whole_of_a_file(tmp_path: Path) -> None:
    slow = "import time\ntime.sleep(0.2)\n" + CELL.format(extra="", more="")
    (tmp_path / "slow.py").write_text(slow, "utf-8")
    with ThreadPoolExecutor(4) as threads:
        choices = list(threads.map(lambda _: choose("python:slow.py:Mine", tmp_path), range(4)))
    assert len({id(choice.made_by) for choice in choices}) == 1
