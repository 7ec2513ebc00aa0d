"""What the fuzz targets of Python check, for their corpora and a thousand mutations of each."""

from __future__ import annotations

import random
from types import ModuleType

import pytest

from support import ROOT, example

CORPUS = ROOT / "fuzz" / "corpus"
TARGETS = ["files_getstats", "files_media", "files_paper", "files_rule", "files_saved", "files_scenario"]
MOST = 32_768


@pytest.fixture(scope="module")
def checks() -> ModuleType:
    module = example("files_checks", "fuzz")
    module.prepare()
    return module


def test_every_target_is_here(checks: ModuleType) -> None:
    assert sorted(checks.TARGETS) == TARGETS


@pytest.mark.parametrize("name", TARGETS)
def test_a_thousand_mutations(name: str, checks: ModuleType) -> None:
    seeds = [file.read_bytes() for file in sorted((CORPUS / name).iterdir())]
    for seed in seeds:
        checks.check(name, seed)
    luck = random.Random(name)
    for number in range(1000):
        data = seeds[number % len(seeds)]
        checks.check(name, checks.mutated(data, MOST, luck, lambda data=data: checks.changed(data, seeds, MOST, luck)))
