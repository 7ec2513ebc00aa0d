"""Files of strangers: commands that read them end as commands end, whatever the files hold.

The loop behind it is `fuzz/readers.py`, with more runs: `make fuzz FUZZ_TARGETS=readers`.
"""

from __future__ import annotations

import random
from pathlib import Path
from types import ModuleType

import pytest

from support import ROOT, example

RUNS = {
    "baseline": 150,
    "capture": 400,
    "comparison": 300,
    "event_log": 500,
    "getstats": 500,
    "ladder": 1000,
    "network": 1000,
    "paper": 1000,
    "run": 300,
    "scenario": 1000,
    "search": 300,
    "session": 300,
    "suite": 300,
    "suite_file": 1000,
    "suite_sweep": 300,
    "sweep": 300,
    "table": 300,
}
"""Runs of each reader: 2 to 16 ms of CPU each, together less than a minute."""


@pytest.fixture(scope="module")
def readers(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    with pytest.MonkeyPatch.context() as patch:
        # the checks that both loops of fuzz/ share
        patch.syspath_prepend(str(ROOT / "fuzz"))
        module = example("readers", "fuzz")
    vars(module)["FOUND"] = tmp_path_factory.mktemp("found")
    return module


def test_every_reader_is_here(readers: ModuleType) -> None:
    assert sorted(reader.name for reader in readers.READERS) == list(RUNS)


@pytest.mark.parametrize("name", RUNS)
def test_changed_files_make_a_result_or_a_sentence(name: str, readers: ModuleType, tmp_path: Path) -> None:
    (reader,) = (reader for reader in readers.READERS if reader.name == name)
    readers.prepare(reader, tmp_path)
    luck = random.Random(name)
    for _ in range(RUNS[name]):
        readers.fuzz(reader, tmp_path, luck)
