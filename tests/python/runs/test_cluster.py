"""A real cluster of Dask: a scheduler and three worker processes over TCP, in folders of their own."""

from __future__ import annotations

import os
import re
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from support import PLAIN
from tidegate import Scenario, run
from tidegate.comparison.sweeping import Plan as SweepPlan
from tidegate.errors import InputError, RunError
from tidegate.runs import Run, RunJob, engine
from tidegate.scenario.lower import Lowered

distributed = pytest.importorskip("distributed", reason='Dask is an extra: pip install "tidegate[dask]"')

from tidegate.runs.dask import Cluster  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

WATCH = """\
import os, sys
def _watch(event, args):
    if event == "open" and isinstance(args[0], (str, bytes)) and {folder!r} in os.fsdecode(args[0]):
        with open({log!r}, "a") as log:
            print(args[0], file=log)
sys.addaudithook(_watch)
"""
"""What a worker loads first: it notes whatever file of the caller's it opens."""


class Net:
    """A scheduler and its workers."""

    def __init__(self, folder: Path, stack: ExitStack, failures: int) -> None:
        self.folder, self._stack = folder, stack
        env = {"DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": str(failures)}
        self._begin("scheduler", ["--host", "127.0.0.1", "--port", "0", "--no-dashboard"], "scheduler", env)
        self.address = self._wait("scheduler", r"(tcp://127\.0\.0\.1:\d+)")
        self.processes: list[subprocess.Popen[bytes]] = []

    def _begin(self, what: str, argv: list[str], name: str, env: dict[str, str]) -> subprocess.Popen[bytes]:
        folder = self.folder / name
        folder.mkdir()
        plain = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        with (self.folder / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", f"distributed.cli.dask_{what}", *argv],
                cwd=folder,
                env={**plain, **env, "TMPDIR": str(folder)},
                stdout=log,
                stderr=log,
            )
        self._stack.callback(self._end, process)
        return process

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _wait(self, name: str, pattern: str) -> str:
        end = time.monotonic() + 240
        while time.monotonic() < end:
            if found := re.search(pattern, (self.folder / f"{name}.log").read_text()):
                return found[1]
            time.sleep(0.1)
        raise AssertionError((self.folder / f"{name}.log").read_text())

    def worker(self, preload: str = "", *, nanny: bool = False) -> subprocess.Popen[bytes]:
        name = f"worker{len(self.processes)}"
        file = self.folder / f"{name}.py"
        file.write_text(preload)
        how = ["--nthreads", "1", "--memory-limit", "0", "--no-dashboard", "--nanny" if nanny else "--no-nanny"]
        process = self._begin("worker", [self.address, *how, "--preload", str(file)], name, {})
        self.processes.append(process)
        return process


@pytest.fixture
def net(tmp_path: Path) -> Iterator[Callable[..., Net]]:
    with ExitStack() as stack:
        yield lambda failures=3: Net(tmp_path, stack, failures)


@contextmanager
def three(net: Net, preload: str = "", *, nanny: bool = False) -> Iterator[Cluster]:
    """The engine of three workers."""
    for _ in range(3):
        net.worker(preload, nanny=nanny)
    with Cluster(net.address, patience=240) as cluster:
        cluster.client.wait_for_workers(3, timeout=240)
        with engine.using(cluster):
            yield cluster


def digests(done: list[Any]) -> list[Any]:
    return [one.digest if isinstance(one, Run) else one for one in done]


def jobs_of(count: int, duration: str = "300s") -> list[RunJob]:
    lowered = Lowered(Scenario.load("home-broadband", {"duration": duration}))
    return [RunJob(lowered, seed, "summary") for seed in range(1, count + 1)]


def test_workers_have_no_file_of_ours_and_get_each_once(
    net: Callable[..., Net], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = tmp_path / "callers"
    here.mkdir()
    log = tmp_path / "opened"
    # no two lines alike, so that it does not shrink on the way
    times = sorted(secrets.randbelow(10_000_000) for _ in range(60_000))
    (here / "lte.trace").write_text("\n".join(map(str, times)))
    (here / "helper.py").write_text("def half(rate):\n    return rate // 2\n")
    (here / "mine.py").write_text(
        "import helper\nfrom tidegate import Controller\nclass Mine(Controller):\n"
        "    def on_report(self, now_ns, report):\n        return helper.half(700_000)\n"
    )
    monkeypatch.chdir(here)
    monkeypatch.syspath_prepend(here)
    changes = {"links.cable.capacity": {"trace": "lte.trace"}, "duration": "20s"}
    made = Scenario.parse(PLAIN, "net.toml", changes)
    grid = {"flows.call.media.controller": ["gcc", "python:mine.py:Mine"], "links.cable.delay": ["5ms", "10ms", "20ms"]}
    plan = SweepPlan.of(made, grid, [1, 2, 3, 4, 5])
    expected = plan.run(tmp_path / "pool")
    with three(net(), WATCH.format(folder=str(here), log=str(log))) as cluster:
        found = plan.run(tmp_path / "dask")
        assert not log.exists(), log.read_text()
        # and the watch would have told
        file = str(here / "mine.py")
        cluster.client.run(lambda: Path(file).read_bytes())
        assert "mine.py" in log.read_text()
    assert not found.failed
    assert [row["digest"] for row in found.rows] == [row["digest"] for row in expected.rows]
    trace = (here / "lte.trace").stat().st_size
    # once for 30 runs in 6 scenarios; compressed, the rest are small
    assert cluster.sent < trace + 30 * 4_000


def test_a_worker_that_is_killed_costs_a_retry(net: Callable[..., Net]) -> None:
    jobs = jobs_of(60)
    expected = digests(engine.run_all(jobs))
    network = net()
    killed: list[float] = []

    def kill(fraction: float) -> None:
        if fraction > 0.2 and not killed:
            network.processes[1].send_signal(signal.SIGKILL)
            killed.append(fraction)

    kept: list[int] = []

    def keep(number: int, run: Run) -> Run:
        kept.append(number)
        return run

    with three(network):
        done = engine.run_all(jobs, progress=kill, keep=keep)
    assert 0.2 < killed[0] < 0.9
    assert network.processes[1].poll() == -signal.SIGKILL
    assert digests(done) == expected
    assert sorted(kept) == [*range(60)], "each once"


def test_a_run_that_kills_its_workers_fails_alone(net: Callable[..., Net], tmp_path: Path) -> None:
    (tmp_path / "ends.py").write_text(
        "import os, signal\nfrom tidegate import Controller\nclass Ends(Controller):\n"
        "    def on_report(self, now_ns, report):\n        os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    ends = Scenario.parse(PLAIN, tmp_path / "net.toml", {"flows.call.media.controller": "python:ends.py:Ends"})
    jobs = jobs_of(20, "10s")
    expected = digests(engine.run_all(jobs))
    with three(net(failures=1), nanny=True):
        done = engine.run_all([*jobs[:10], RunJob(ends, 1), *jobs[10:]], keep_going=True)
    error = done.pop(10)
    assert isinstance(error, RunError)
    assert re.match(r"the run ended its worker 2 times, the last one tcp://127\.0\.0\.1:\d+: ", str(error))
    assert digests(done) == expected


def test_ctrl_c_leaves_nothing_on_the_cluster(net: Callable[..., Net]) -> None:
    def interrupted(_: float) -> None:
        if time.monotonic() > begun + 2:
            signal.raise_signal(signal.SIGINT)

    with three(net()) as cluster:
        begun = time.monotonic()
        # runs of half a minute and more, which have to be stopped in the middle
        with pytest.raises(KeyboardInterrupt):
            engine.run_all(jobs_of(20, "50000s"), progress=interrupted)
        end = time.monotonic() + 5
        while time.monotonic() < end and any(states(cluster).values()):
            time.sleep(0.1)
        assert not any(states(cluster).values()), states(cluster)
        # and it is as good as before
        assert len(engine.run_all(jobs_of(3, "1s"))) == 3


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_ctrl_c_in_a_terminal_ends_own_workers_and_keeps_what_is_done(tmp_path: Path) -> None:
    argv = ["sweep", "home-broadband", "--set", "duration=600s", "--seeds", "500", "--engine", "dask", "-j", "2"]
    process = subprocess.Popen(
        [sys.executable, "-m", "tidegate", *argv, "--out", "o"],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    end = time.monotonic() + 240
    while time.monotonic() < end and not list((tmp_path / "o").glob("results/[0-9a-f]*.json")):
        time.sleep(0.1)
    # as a terminal does, to all processes
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert re.fullmatch(
        r"tidegate: Dask: 2 workers at tcp://127\.0\.0\.1:\d+\n"
        r"tidegate: stopped; [1-9]\d* of 500 runs are done and kept in o; the same command goes on from there\n",
        err,
    ), err
    while _is_there(process.pid):
        assert time.monotonic() < end + 30
        time.sleep(0.1)


def _is_there(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def states(cluster: Cluster) -> dict[str, Any]:
    found: dict[str, Any] = cluster.client.run(lambda dask_worker: [str(key) for key in dask_worker.state.tasks])
    return found


SHORT = run(Scenario.load("home-broadband", {"duration": "1s", "record": "summary"})).digest
"""The digest of a canary run that is shorter than the others'."""


@pytest.mark.parametrize(
    ("preload", "why"),
    [
        ("import tidegate.runs._versions as v\nv.version = lambda: '0.0.1'\n", "tidegate is 0.0.1, and "),
        ("import tidegate.runs._versions as v\nv.build = lambda: 'beef'\n", "the engine's build is beef, and "),
        (
            "import tidegate.runs._remote as r\nr.CANARY = {'duration': '1s'}\n",
            f"the digest of a canary run is {SHORT}, and ",
        ),
        ("import sys\nsys.modules['tidegate'] = None\n", "the worker has no tidegate with Dask (ModuleNotFoundError"),
        ("import distributed\ndistributed.__version__ = '2019.1'\n", "the version of distributed is 2019.1, and "),
    ],
)
def test_a_worker_that_is_not_like_this_machine_is_refused(net: Callable[..., Net], preload: str, why: str) -> None:
    network = net()
    network.worker(preload)
    with pytest.raises(InputError) as caught:
        Cluster(network.address, patience=240)
    assert re.match(rf"worker tcp://127\.0\.0\.1:\d+: {re.escape(why)}", str(caught.value)), caught.value
    assert "\n" not in str(caught.value)


def test_a_worker_that_goes_away_while_it_is_asked_is_not_missed(net: Callable[..., Net]) -> None:
    network = net()
    # it ends as soon as its results are asked for
    network.worker("import os\nimport tidegate.runs._remote as r\nr.signature = lambda: os._exit(1)\n")
    network.worker()
    with distributed.Client(network.address, timeout=240) as client:
        client.wait_for_workers(2, timeout=240)
    with Cluster(network.address, patience=240) as cluster, engine.using(cluster):
        assert len(engine.run_all(jobs_of(3, "1s"))) == 3
    assert network.processes[0].wait(60) == 1


def test_one_that_comes_later_is_refused_before_its_first_job(net: Callable[..., Net]) -> None:
    network = net()
    network.worker()
    with Cluster(network.address, patience=240) as cluster, engine.using(cluster):
        network.worker("import tidegate.runs._remote as r\nr.CANARY = {'duration': '1s'}\n")
        cluster.client.wait_for_workers(2, timeout=60)
        # as if it had come in the middle
        cluster._checked.update(cluster.client.scheduler_info()["workers"])
        with pytest.raises(InputError, match=f"the digest of a canary run is {SHORT}, and "):
            engine.run_all(jobs_of(40, "10s"))


def test_a_scheduler_without_workers_is_said(net: Callable[..., Net]) -> None:
    network = net()
    with pytest.raises(InputError, match=r"no worker \(waited 2 s\); `dask worker tcp://127"):
        Cluster(network.address, patience=2)
    with pytest.raises(InputError, match="no Dask scheduler answers there within 1 s"):
        Cluster("tcp://127.0.0.1:1", patience=1)
