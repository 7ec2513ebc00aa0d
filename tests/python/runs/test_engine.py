"""The contract of engines: the same results from each, kept by the caller alone, and jobs that carry all they need."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from support import PLAIN, Cli
from tidegate import Controller, Scenario
from tidegate.errors import InputError, RunError
from tidegate.runs import RunJob, engine, pool
from tidegate.scenario.lower import Lowered
from tidegate.scenario.reading import Inputs

distributed = pytest.importorskip("distributed", reason='Dask is an extra: pip install "tidegate[dask]"')

from tidegate.runs import _wire as wire  # noqa: E402
from tidegate.runs.dask import Cluster  # noqa: E402

TRACE = "\n".join(str(at * at // 7) for at in range(1, 400)) + "\n"
HELPER = "def half(rate):\n    return rate // 2\n"
MINE = """\
import helper
from tidegate import Controller

class Mine(Controller):
    def __init__(self, rate: int = 600_000) -> None:
        super().__init__()
        self.rate = helper.half(rate)

    def on_report(self, now_ns, report):
        return self.rate
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """Workers that are threads of this process: everything but another process."""
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, dashboard_address="127.0.0.1:0", memory_limit=0
        ) as made,
        distributed.Client(made, set_as_default=False) as client,
        Cluster(client) as ready,
    ):
        yield ready


@dataclass(frozen=True)
class Wrong:
    """A job that fails."""

    def __call__(self, tick: pool.Tick) -> Any:
        raise RunError("no")


def jobs_of(scenario: Scenario, count: int) -> list[RunJob]:
    lowered = Lowered(scenario)
    return [RunJob(lowered, seed, "summary") for seed in range(1, count + 1)]


@pytest.mark.parametrize("name", ["pool", "dask"])
def test_results_come_in_order_and_are_kept_by_the_caller(cluster: Cluster, name: str) -> None:
    chosen = cluster if name == "dask" else engine.POOL
    jobs: list[Any] = [*jobs_of(Scenario.load("home-broadband", {"duration": "3s"}), 12)]
    expected = [job(lambda _: True).digest for job in jobs]
    fractions: list[float] = []
    digests: dict[int, str] = {}

    def keep(number: int, run: Any) -> int:
        digests[number] = run.digest
        return number

    with engine.using(chosen):
        done = engine.run_all([*jobs, Wrong()], keep=keep, keep_going=True, progress=fractions.append)
    assert done[:-1] == [*range(12)]
    assert isinstance(done[-1], RunError)
    assert [digests[number] for number in range(12)] == expected
    assert fractions[-1] == 1.0
    assert engine.current() is engine.POOL, "outside"
    with engine.using(chosen), pytest.raises(RunError, match="no"):
        engine.run_all([*jobs, Wrong()])


def test_what_needs_this_machine_stays_here(cluster: Cluster) -> None:
    class Here:
        here = True

        def __call__(self, tick: pool.Tick) -> Any:
            return self

    job, before = Here(), cluster.sent
    with engine.using(cluster):
        assert engine.run_all([job]) == [job]
    assert cluster.sent == before


def test_the_commands_give_the_same_on_each(cli: Cli, cluster: Cluster, tmp_path: Path) -> None:
    sweep = ["sweep", "home-broadband", "--set", "links.uplink.delay=10ms,30ms", "--set", "duration=3s", "--seeds", "2"]
    suite = ["suite", "run", "smoke", "gcc", "fixed:500kbps", "--cases", "fq-codel", "--seeds", "1"]
    compare = ["compare", "gcc", "fixed:500kbps", "--duration", "4s", "--seeds", "2"]
    for number, argv in enumerate((sweep, suite, compare)):
        digests = []
        for name in ("pool", "dask"):
            with engine.using(cluster if name == "dask" else engine.POOL):
                got = cli(*argv, "--json", "--out", str(tmp_path / f"{number}-{name}"))
            assert got.code == 0, got.err
            digests.append([line.strip() for line in got.out.splitlines() if '"digest"' in line])
        assert digests[0] == digests[1]
        assert number == 1 or digests[0]
    ours, theirs = (
        sorted((file.name, file.read_bytes()) for file in (tmp_path / f"1-{name}" / "results").iterdir())
        for name in ("pool", "dask")
    )
    assert [name for name, _ in ours] == [name for name, _ in theirs]
    assert ours == theirs
    with engine.using(cluster):
        again = cli(*sweep, "--out", str(tmp_path / "0-dask"))
    assert "4 of 4 runs existed already" in again.err


def test_what_is_sent_stands_for_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process, in an empty folder, after all files are gone; one of the controllers was never in a file."""
    here = tmp_path / "here"
    here.mkdir()
    for name, text in (("lte.trace", TRACE), ("mine.py", MINE), ("helper.py", HELPER)):
        (here / name).write_text(text)
    monkeypatch.chdir(here)
    monkeypatch.syspath_prepend(here)
    changes = {"links.cable.capacity": {"trace": "lte.trace"}}
    mine = {"flows.call.media.controller": "python:mine.py:Mine:rate=300000"}
    filed = Scenario.parse(PLAIN, "net.toml", {**changes, **mine})

    class Typed(Controller):
        def on_report(self, now_ns: int, report: Any) -> int:
            return 250_000

    made, ir, inputs = Lowered(filed).parts
    (label,) = inputs.python
    typed = Inputs(inputs.traces, inputs.origins, {label: Typed}, inputs.files)
    jobs = [RunJob(Lowered(filed), 1), RunJob(Lowered.of_parts(made, ir, typed), 1)]
    digests = [job(lambda _: True).digest for job in jobs]
    assert digests[0] != digests[1]
    data, parts = wire.Packer().pack(jobs)
    there = tmp_path / "there"
    there.mkdir()
    (there / "jobs").write_bytes(data)
    for name, part in parts.items():
        (there / name).write_bytes(part)
    for file in here.iterdir():
        if file.is_file():
            file.unlink()
    code = """
        import json, pathlib
        from tidegate.runs import _wire as wire
        parts = {one.name: one.read_bytes() for one in pathlib.Path().iterdir()}
        done = [job(lambda _: True) for job in wire.Unpacker().unpack(parts.pop("jobs"), parts)]
        back = [wire.outcome_of(wire.outcome_bytes(one)) for one in done]
        print(json.dumps([[one.digest, one.about["base"], one.tables] for one in back]))
    """
    got = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], cwd=there, capture_output=True, text=True, check=False
    )
    assert got.returncode == 0, got.stderr
    found = json.loads(got.stdout)
    assert [digest for digest, _, _ in found] == digests
    assert found[0][1] == str(filed.base.resolve()), "where the caller's files are"
    assert "series" in found[0][2]


def test_a_trace_goes_once_for_all_scenarios_and_batches(tmp_path: Path) -> None:
    (tmp_path / "lte.trace").write_text(TRACE)
    base = Scenario.parse(PLAIN, tmp_path / "net.toml", {})
    link = base.links[0].name
    scenarios = [
        base.with_changes({f"links.{link}.capacity": {"trace": "lte.trace"}, f"links.{link}.delay": f"{delay}ms"})
        for delay in range(1, 6)
    ]
    packer = wire.Packer()
    parts: dict[str, bytes] = {}
    for scenario in scenarios:
        parts |= packer.pack([RunJob(Lowered(scenario), 1)])[1]
    assert sum(TRACE.encode() in zlib.decompress(part) for part in parts.values()) == 1
    assert len(parts) == 1 + 2 * len(scenarios), "a scenario, and what the engine takes of it"


def test_what_cannot_be_sent_is_said(tmp_path: Path) -> None:
    (tmp_path / "locked.py").write_text(
        "import threading\nfrom tidegate import Controller\nLOCK = threading.Lock()\n"
        "class Locked(Controller):\n    def on_report(self, now_ns, report):\n        with LOCK:\n            return 1\n"
    )
    made = Scenario.parse(PLAIN, tmp_path / "net.toml", {"flows.call.media.controller": "python:locked.py:Locked"})
    with pytest.raises(
        InputError, match=r"^python:locked\.py:Locked: cannot be sent to another machine: .*lock.*__init__"
    ):
        wire.Packer().pack([RunJob(Lowered(made), 1)])


def test_what_does_not_go_together_is_said(cli: Cli) -> None:
    got = cli("compare", "gcc", "--engine", "pool", "--scheduler", "tcp://127.0.0.1:1")
    assert (got.code, got.err) == (
        2,
        "tidegate: --scheduler tcp://127.0.0.1:1: the option is only valid with --engine dask\n",
    )
    got = cli("compare", "gcc", "-j", "2", "--scheduler", "tcp://127.0.0.1:1")
    assert got.code == 2
    assert "the cluster decides the number" in got.err
    got = cli("compare", "gcc", "--scheduler", "nonsense")
    assert got.code == 2
    assert got.err.startswith("tidegate: --scheduler nonsense: Invalid url scheme")


def test_what_needs_its_folder_stays_here(tmp_path: Path) -> None:
    (tmp_path / "bwe.py").write_text(
        "class Estimator:\n    def report_states(self, stats):\n        pass\n"
        "    def get_estimated_bandwidth(self):\n        return 500000\n"
    )
    made = Scenario.parse(PLAIN, tmp_path / "net.toml", {"flows.call.media.controller": "alphartc:bwe.py"})
    with pytest.raises(InputError, match=r"^alphartc:bwe\.py: cannot be sent to another machine: .*folder of its file"):
        wire.Packer().pack([RunJob(Lowered(made), 1)])
