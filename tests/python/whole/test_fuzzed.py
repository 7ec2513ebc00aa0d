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


def changed(data: bytes, seeds: list[bytes], luck: random.Random) -> bytes:
    """Bytes flipped, set, put in, taken out and doubled, or another file's from somewhere on."""
    out = bytearray(data)
    for _ in range(luck.randint(1, 4)):
        at = luck.randint(0, len(out))
        until = min(len(out), at + luck.randint(1, 16))
        match luck.randrange(6):
            case 0 if at < len(out):
                out[at] ^= 1 << luck.randrange(8)
            case 1 if at < len(out):
                out[at] = luck.choice(b'\0\x01\x7f\x80\xff09-{}[]"')
            case 2:
                out[at:at] = luck.randbytes(luck.randrange(9))
            case 3:
                del out[at:until]
            case 4:
                out[at:at] = out[at:until]
            case _:
                other = luck.choice(seeds)
                out[at:] = other[luck.randint(0, len(other)) :]
    return bytes(out[:MOST])


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
        checks.check(name, checks.mutated(data, MOST, luck, lambda data=data: changed(data, seeds, luck)))
