"""Modules by the names that they had before they moved into packages: the same objects, and never a second copy."""

from __future__ import annotations

import importlib
import pickle
import subprocess
import sys
from unittest import mock

import pytest

import tidegate
from tidegate._moved import MOVED, NAMES, new_name

_OLD = """
    _palette _session _view _worker comparing control controllers driving errors files folders lte media
    media.cache media.clip media.codec media.decode media.extra media.feeding media.h264 media.intra media.judge
    media.ladder media.live media.measures media.received media.render media.results media.screen media.sent
    media.settings media.show media.vmaf memory metrics metrics.model metrics.pictures paper paper.experiment
    paper.facts paper.figures paper.grids paper.model paper.mutations paper.opening paper.page paper.reading
    paper.readme paper.result paper.rules paper.shipped paper.tables paper.verdicts paper.words plot plot.one
    plot.points plot.session plot.sheet plot.style pool quality report report.markup report.members report.page
    report.scatter report.series report.tables results rtcp running saved scenario scenario.checks
    scenario.explain scenario.flows scenario.frames scenario.links scenario.loops scenario.lower scenario.media
    scenario.model scenario.population scenario.radio scenario.reading scenario.repair scenario.rules
    scenario.scenario scenario.schema scenario.sessions scenario.shipped scenario.sources scenario.toml simpy
    sprout stats subject sweeping table tfrc trace units unrun wire
"""
OLD = _OLD.split()
"""Every module that there was, but for programs."""
PRIVATE = {name for name in OLD if name.startswith("_")}


@pytest.mark.parametrize("name", [name for name in OLD if name not in PRIVATE])
def test_a_module_is_imported_by_its_old_name(name: str) -> None:
    old = importlib.import_module(f"tidegate.{name}")
    new = importlib.import_module(new_name(f"tidegate.{name}") or f"tidegate.{name}")
    assert old is new
    assert old is sys.modules[old.__name__]
    assert old.__spec__ is not None
    assert old.__spec__.name == old.__name__  # what reload and find_spec go by


def test_every_old_name_that_differs_is_one_that_there_was() -> None:
    assert set(MOVED) <= set(OLD)


def test_no_module_is_there_twice_whichever_name_comes_first() -> None:
    # in a process of its own, where the old names come first
    program = f"""
import importlib, sys
import tidegate.comparing, tidegate.media, tidegate.paper, tidegate.running, tidegate.scenario, tidegate.show
from tidegate.results import metrics
from tidegate.show import plot, report

packages = [tidegate.comparing, tidegate.media, tidegate.paper, tidegate.running, tidegate.scenario, metrics, plot, report]
before = [[getattr(one, name) for name in one.__all__] for one in packages]
for name in {[name for name in OLD if name not in PRIVATE]!r}:
    importlib.import_module("tidegate." + name)
import tidegate.show.plot.one, tidegate.show.report._page
files = {{}}
for module in list(sys.modules.values()):
    file = getattr(module, "__file__", None) or ""
    if "tidegate" in file:
        files.setdefault(file, {{id(module): module}})[id(module)] = module
assert before == [[getattr(one, name) for name in one.__all__] for one in packages], "a module took a function's place"
print(len(files), [some for some in files.values() if len(some) > 1])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    count, _, twice = done.stdout.strip().partition(" ")
    assert int(count) > len(OLD) // 2
    assert twice == "[]"


def test_what_is_imported_by_an_old_name_is_the_same_class() -> None:
    from tidegate.comparing import Comparison
    from tidegate.control.registry import registry
    from tidegate.net.rtcp import Schedule

    olds = {name: importlib.import_module(f"tidegate.{name}") for name in ("comparing", "controllers", "rtcp")}
    assert olds["comparing"].Comparison is Comparison is tidegate.Comparison
    assert olds["controllers"].registry is registry
    assert olds["rtcp"].Schedule is Schedule


@pytest.mark.parametrize(("module", "name"), [(module, name) for module, names in NAMES.items() for name in names])
def test_a_name_is_imported_from_the_module_that_it_has_left(module: str, name: str) -> None:
    old = importlib.import_module(f"tidegate.{module}")
    new = importlib.import_module(f"tidegate.{NAMES[module][name]}")
    assert name not in vars(old)
    assert getattr(old, name) is getattr(new, name)
    with pytest.raises(AttributeError, match=r"has no attribute 'nothing'"):
        _ = old.nothing


def test_a_pickle_that_names_an_old_module_is_read() -> None:
    interval = importlib.import_module("tidegate.results.stats").Interval
    assert pickle.loads(b"ctidegate.stats\nInterval\n.") is interval
    assert pickle.loads(b"ctidegate.running\nRun\n.") is tidegate.Run
    assert pickle.loads(pickle.dumps(tidegate.Rate("1Mbps"))) == tidegate.Rate("1Mbps")


def test_what_is_patched_by_an_old_name_is_patched() -> None:
    from tidegate.results import _folders

    with mock.patch("tidegate.folders.MANIFEST", "other.json"):
        assert _folders.MANIFEST == "other.json"
    assert _folders.MANIFEST != "other.json"


def test_names_that_never_were_are_still_errors() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"tidegate\.nothing"):
        importlib.import_module("tidegate.nothing")
    with pytest.raises(ModuleNotFoundError, match=r"tidegate\.show\.plot\.nothing"):
        importlib.import_module("tidegate.plot.nothing")
    with pytest.raises(AttributeError, match="nothing"):
        _ = tidegate.nothing  # type: ignore[attr-defined]


def test_every_public_name_is_there() -> None:
    for name in tidegate.__all__:
        assert getattr(tidegate, name) is not None


@pytest.mark.parametrize("name", [name for name in OLD if "." in name and name.partition(".")[0] in MOVED])
def test_what_was_in_a_package_is_taken_from_it_by_its_old_name(name: str) -> None:
    package, _, inside = name.rpartition(".")
    took: dict[str, object] = {}
    exec(f"from tidegate.{package} import {inside} as it", took)
    function = getattr(importlib.import_module(f"tidegate.{package}"), inside, None)
    assert took["it"] in {importlib.import_module(f"tidegate.{name}"), function}


def test_threads_may_be_the_first_to_ask_for_parts() -> None:
    program = """
import sys
sys.setswitchinterval(1e-5)
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
import tidegate
names = ["report", "compare", "run", "plot", "Scenario", "sweep", "lte", "Trace"]
together = Barrier(len(names))
def ask(name):
    together.wait()
    return getattr(tidegate, name).__name__
with ThreadPoolExecutor(len(names)) as threads:
    print(list(threads.map(ask, names)))
"""
    for _ in range(5):
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
