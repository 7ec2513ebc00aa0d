"""Unknown numbers: absent from pages, pictures, tables, cells and JSON, and never a crash or a "nan".

Recordings of one place do not tell when packets were sent, or whether they arrived; in a run nothing may arrive, or nothing be
counted.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

import tidegate
from support import Cli, event_logs
from support.captures import pcap, rtp, udp
from tidegate import Comparison, Run, Scenario
from tidegate.recordings import imported
from tidegate.show import plot

NOT_A_NUMBER = re.compile(r"(?<![\w-])[+-]?(nan|NaN|NAN|inf|Inf|Infinity|undefined|None)(?![\w-])")


def two_packets(folder: Path) -> Run:
    """A capture of two packets, one each way."""
    ways = [("192.0.2.1", "192.0.2.2", 1), ("192.0.2.2", "192.0.2.1", 2)]
    packets = [(1000 + n / 500, udp(source, target, rtp(n, ssrc))) for n, (source, target, ssrc) in enumerate(ways)]
    (folder / "two.pcap").write_bytes(pcap(packets))
    return imported([folder / "two.pcap"], rtp="192.0.2.1:5000")


def many_packets(folder: Path) -> Run:
    """A capture of ten seconds both ways, without feedback."""
    ways = [("192.0.2.1", "192.0.2.2", 1), ("192.0.2.2", "192.0.2.1", 2)]
    packets = [(1000 + n / 50, udp(*ways[n % 2][:2], rtp(n // 2, ways[n % 2][2]))) for n in range(500) if n % 40]
    (folder / "many.pcap").write_bytes(pcap(packets))
    return imported([folder / "many.pcap"])


def receivers_log(folder: Path) -> Run:
    """An event log of the receiving side alone."""
    packets = [event_logs.Rtp(1000 + 20 * n, n, timestamp=1800 * n) for n in range(200) if n % 7]
    log = event_logs.begin(990) + event_logs.rtp(packets, outgoing=False)
    (folder / "receiver.log").write_bytes(log)
    return imported([folder / "receiver.log"])


def senders_log(folder: Path) -> Run:
    """An event log of the sending side alone, without feedback."""
    packets = [event_logs.Rtp(1000 + 20 * n, n, timestamp=1800 * n) for n in range(200)]
    log = event_logs.begin(990) + event_logs.rtp(packets, outgoing=True)
    (folder / "sender.log").write_bytes(log)
    return imported([folder / "sender.log"])


def simulated(changes: dict[str, str], folder: Path) -> Run:
    """A run of a call."""
    return tidegate.run(Scenario.load("home-broadband", {"duration": "4s", **changes}))


RUNS: dict[str, Callable[[Path], Run]] = {
    "two packets": two_packets,
    "many packets": many_packets,
    "receiver's log": receivers_log,
    "sender's log": senders_log,
    "all lost": partial(simulated, {"links.uplink.loss": "100%"}),
    "begins at the end": partial(simulated, {"flows.call.start": "3.999s"}),
    "counts nothing": partial(simulated, {"warmup": "3.999s", "links.uplink.loss": "100%"}),
}


@pytest.fixture(scope="module", params=list(RUNS))
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Run:
    name: str = request.param
    return RUNS[name](tmp_path_factory.mktemp("inputs"))


def refuse(constant: str) -> None:
    """For JSON, which has no such numbers, though Python writes and reads them."""
    pytest.fail(f"{constant} in JSON")


def check_text(text: str) -> None:
    """No number that is none in what is read, or in JSON for scripts."""
    for data in re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', text, re.DOTALL):
        json.loads(data, parse_constant=refuse)
    shown = re.sub(r"<(script|style)\b.*?</\1>|<meta[^>]*>", "", text, flags=re.DOTALL)
    around = [shown[max(0, one.start() - 60) : one.end() + 20] for one in NOT_A_NUMBER.finditer(shown)]
    assert around == []


PICTURES: dict[str, Callable[[Run], Figure]] = {
    "session": plot.session,
    "time series": plot.time_series,
    "internals": plot.internals,
    "delays": lambda run: plot.delay_cdf({"one": [run], "other": [run]}),
    "scatter": lambda run: plot.rate_delay_scatter({"one": [run], "other": [run]}),
    "sheet": lambda run: plot.comparison({"one": [run], "other": [run, run]}),
}


@pytest.mark.parametrize("name", PICTURES)
def test_pictures(run: Run, name: str, tmp_path: Path) -> None:
    if name == "internals" and "internals" not in run.tables:
        pytest.skip("no controller noted anything")
    figure = PICTURES[name](run)
    figure.savefig(tmp_path / "picture.svg")
    texts: list[Text] = figure.findobj(Text)
    check_text("\n".join(text.get_text() for text in texts))


def test_cells_and_pages(run: Run, tmp_path: Path, cli: Cli) -> None:
    check_text(run._repr_html_())
    run.save(tmp_path / "run")
    for file in (tmp_path / "run").glob("*.json"):
        json.loads(file.read_text(), parse_constant=refuse)
    for argv in (
        ["report", "run"],
        ["report", "run", "--out", "picture.png"],
        ["diff", "run", "run"],
        ["diff", "run", "run", "--json"],
    ):
        done = cli(*argv)
        assert done.code == 0, (argv, done.err)
        check_text(done.err)
        if "--json" in argv:
            json.loads(done.out, parse_constant=refuse)
        else:
            check_text(done.out)
    for page in tmp_path.rglob("*.html"):
        check_text(page.read_text())
    for table in [*tmp_path.rglob("*.md"), *tmp_path.rglob("*.csv")]:
        check_text(table.read_text())


def test_tables_of_numbers(run: Run) -> None:
    for value in run.metrics().values():
        assert not isinstance(value, float) or math.isfinite(value), "absent, and not a number that is none"
    json.dumps(run.summary, allow_nan=False)


def test_an_imported_call_on_the_command_line(tmp_path: Path, cli: Cli) -> None:
    two_packets(tmp_path)
    plain = ["import", "two.pcap", "--rtp", "192.0.2.1:5000", "--out", "call"]
    for argv in (plain, [*plain, "--json"]):
        done = cli(*argv)
        assert done.code == 0, done.err
        check_text(done.out if "--json" not in argv else "")
    json.loads(done.out, parse_constant=refuse)


LOST = {"duration": "4s", "links.uplink.loss": "100%"}


def test_comparisons_of_calls_of_which_nothing_arrives(tmp_path: Path, cli: Cli) -> None:
    changes = [part for key, value in LOST.items() for part in ("--set", f"{key}={value}")]
    done = cli("compare", "gcc", "fixed", "--scenario", "home-broadband", "--seeds", "2", *changes, "--out", "lost")
    assert done.code == 0, done.err
    check_text(done.out)
    done = cli("compare", "gcc", "fixed", "--scenario", "home-broadband", "--seeds", "2", *changes, "--json")
    json.loads(done.out, parse_constant=refuse)
    done = cli("sweep", "home-broadband", "--set", "flows.call.media.controller=gcc,fixed", *changes, "--out", "swept")
    assert done.code == 0, done.err
    check_text(done.out)
    for page in [*tmp_path.rglob("*.html"), *tmp_path.rglob("*.md"), *tmp_path.rglob("*.csv")]:
        check_text(page.read_text())
    comparison = Comparison.load(tmp_path / "lost")
    check_text(comparison._repr_html_())
