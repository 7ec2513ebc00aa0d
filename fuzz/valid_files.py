"""Small valid files of every kind that `readers.py` changes. Recordings and most scenarios are those of `corpus/`."""

from __future__ import annotations

import gzip
import shutil
from pathlib import Path

from tidegate import Scenario, run
from tidegate.recordings import imported

CORPUS = Path(__file__).with_name("corpus")

SCENARIO = """\
duration = "1s"

[[links]]
name = "cable"
capacity = "2Mbps"
delay = "10ms"

[[flows]]
name = "call"
media = {}
"""

SUITE = """\
description = "a network"
source = "here"

[[cases]]
name = "a"
scenario = "plain.toml"

[[cases]]
name = "wifi"
not_run = "no node"

[[rules]]
name = "rate"
says = "carries a megabit"
metric = "receive_rate_bps"
at_least = 1_000_000
source = "here"
"""

_ALL_OF_A_SUITE = """\
description = "networks"
source = "here"
seeds = 2
baseline = "fixed:1Mbps"

[[cases]]
name = "steps"
title = "a cable"
scenario = "plain.toml"
set = { duration = "8s", "links.cable.capacity" = { schedule = [["0s", "1Mbps"], ["3s", "600kbps"]] } }
vary = { "links.cable.delay" = ["50ms", "100ms"], "links.cable.loss" = ["0%", "1%"] }

[[cases]]
name = "later"
scenario = "plain.toml"
begin_between = ["0s", "500ms"]

[[cases]]
name = "drive"
scenario = "plain.toml"
windows = { count = 2, length = "2s", between = ["100kbps", "20Mbps"] }

[[cases]]
name = "wifi"
not_run = "no node"

[[rules]]
name = "rate"
says = "carries half a megabit"
metric = "receive_rate_bps"
at_least = 500_000
source = "here"

[[rules]]
name = "queue"
says = "keeps the queue short"
metric = "queueing_delay_ms_p95"
at_most = 100
cases = ["steps*"]
source = "here"
why = "for talk"
"""

_RECORDED = """\
duration = "1s"

[[links]]
name = "cable"
capacity = { trace = "net.csv", offset = "500ms", scale = 0.5 }
delay = "10ms"

[[flows]]
name = "call"
media = { video = { source = "frames", ladder = "chat_*.txt", group = 2, skip = 2 } }
"""

_FRAMES = """\
% frame type x y size
0 I 0 0.0 5000
1 P 1 0.033 300

2 P 3 0.067 301
3 I 4 0.1 4000
"""

NETWORKS = {
    "mahimahi.trace": "1\n5\n5\n9\n20\n31\n",
    "seconds.txt": "0.0 2.5\n0.5 1\n1e0 .5\n2 3\n",
    "pattern.csv": "# :recommended_freqeuncy=20\n1000\n2500\n0\n800\n",
    "opennetlab.json": '{"type":"video","downlink":{},"uplink":{"trace_pattern":['
    '{"duration":500,"capacity":1000,"loss":0.1,"rtt":20,"jitter":0},{"duration":1500,"capacity":300}]}}',
    "pantheon.json": '{"timestamps":[0.0,0.5,1.0],"bandwidths":[0.1,2.5,1.0],"delays":[30.5],"loss":0.01}',
    "pion.json": '[{"DurationSeconds":2,"CapacityRatio":2.0,"DataLossRate":5},'
    '{"DurationSeconds":3,"CapacityRatio":0.5}]',
    "raca.csv": "Timestamp,Longitude,Latitude,DL_bitrate,UL_bitrate,PINGAVG,PINGMIN,PINGMAX,PINGLOSS\n"
    "2020.02.29_23.59.59,1.5,52.5,100,7,-,-,-,-\n2020.03.01_00.00.01,1.5,52.5,-,8,40,30,55,0\n"
    "2020.03.01_00.00.02,1.5,52.5,2500,8,40,30,55,0\n",
    "lumos.csv": "app_throughput,delivery_time\n285,0.5\n1200.5,1\n30,2.25\n",
    "net.csv": "# duration_s=2.5\ntime_ms,rate_kbps,loss,delay_ms\n0,1000,0,10\n500,800,0.01,15\n1500,250,0.5,20\n",
}
"""Recorded networks, one of each format; those that others wrote differently are in the corpus of the parsers."""

_CORPUS_NETWORKS = {
    **{f"{name}.json": f"trace_json/{name}" for name in ("sabre", "iperf3", "devtools", "lighthouse")},
    "milliseconds.txt": "trace_text/milliseconds",
    "link.log": "trace_text/log",
    "connectivity.ini": "trace_text/ini",
    "unix.csv": "trace_csv/unix-and-back",
}

_PAPER = """\
title = "A title"
authors = ["A. Author", "B. Other"]
year = 2020
kind = "Paper"
source = "https://example.org"
about = "What it is about."

[[unstated]]
what = "the queue"
chosen = "50 packets"
why = "a default"

[[claim]]
id = "loss"
where = "section 1"
text = "UDP loses 4 % of its packets"
published = 4.0
unit = "%"
sigma = 0.5
measure = "udp.loss"
tolerance = { within = "10%", why = "one run" }
trend = "udp.loss > 1"
reason = "ours is {ours}, of {udp.loss} in all"
because = "udp.loss < 50"

[[claim]]
id = "order"
where = "section 1"
text = "UDP loses more"
agrees = "udp.loss > gcc.loss"
trend = "udp.loss > 0"

[[table]]
id = "t"
where = "table 1"
text = "losses"
unit = "%"
row = "link"
columns = [{ name = "x" }, { name = "y", tolerance = { within = ["0.5 points"], why = "rounded" } }]
measure = "loss.{row}.{column}"
tolerance = { within = "5%", why = "rounded" }

[table.rows]
a = [1.0, 2.0]
b = [3.0, 4.0]
"""

_EXPERIMENT = """\
from tidegate.paper import Experiment as Base
from tidegate.paper import Measure, Outcome


class Experiment(Base):
    quick_seeds = 1

    def jobs(self, plan):
        return {}

    def outcome(self, plan, done):
        names = ["udp.loss", "gcc.loss", "loss.a.x", "loss.a.y", "loss.b.x", "loss.b.y"]
        return Outcome({name: Measure.exact(4.2 - number, "%") for number, name in enumerate(names)})
"""


def scenarios() -> None:
    """Scenarios in `scenarios/`, with a recorded network and recorded frames beside them."""
    folder = Path("scenarios")
    folder.mkdir()
    for file in sorted((CORPUS / "files_scenario").iterdir()):
        shutil.copy(file, folder / f"{file.name}.toml")
    ladder(folder)


def ladder(folder: Path = Path()) -> None:
    """A scenario with recorded frames, `recorded.toml`."""
    (folder / "recorded.toml").write_text(_RECORDED)
    (folder / "net.csv").write_text(NETWORKS["net.csv"])
    for rate in (100, 600):
        (folder / f"chat_{rate}.txt").write_text(_FRAMES)


def suite() -> None:
    """A suite with all that suites can have, and the folder of its recorded networks."""
    Path("suite.toml").write_text(_ALL_OF_A_SUITE)
    networks()


def networks() -> None:
    """Recorded networks in `networks/`, plain and packed."""
    folder = Path("networks")
    folder.mkdir()
    for name, text in NETWORKS.items():
        (folder / name).write_text(text)
    for name, kept in _CORPUS_NETWORKS.items():
        # the first two bytes choose a format and options
        (folder / name).write_bytes((CORPUS / kept).read_bytes()[2:])
    (folder / "packed.csv.gz").write_bytes(gzip.compress(NETWORKS["net.csv"].encode()))


def recordings(*names: str) -> None:
    """Recordings of calls in `calls/`, plain and packed; the names are those of the corpus."""
    folder = Path("calls")
    folder.mkdir()
    for name in names:
        data = (CORPUS / name).read_bytes()
        (folder / Path(name).name).write_bytes(data)
        (folder / f"{Path(name).name}.gz").write_bytes(gzip.compress(data))


def session() -> None:
    """A recorded call in `calls/`, and in `session/` the session of real programs in which it was made."""
    recordings("event_log/sender")
    run(Scenario.parse(SCENARIO)).save(Path("session"))
    packets = imported([Path("calls/sender")]).table("packets")
    arrivals, fates = ["number,at_ns,clamped_ns,from,size,ssrc,sequence"], ["number,at_ns,fate,written_ns"]
    for number, (place, sent_s) in enumerate(
        zip(packets.to_numpy("rtp_sequence"), packets.to_numpy("sent_s"), strict=True)
    ):
        at_ns = 3 * 10**9 + round(sent_s * 1e9)
        arrivals.append(f"{number},{at_ns},0,A,1200,4660,{int(place)}")
        fates.append(f"{number},{at_ns + 20_000_000},{'arrives' if number % 9 else 'queue'},")
    for name, rows in (("arrivals.csv", arrivals), ("fates.csv", fates)):
        (Path("session") / name).write_text("\n".join(rows) + "\n")


def paper() -> None:
    """A paper that simulates nothing, in `paper/`."""
    folder = Path("paper")
    folder.mkdir()
    (folder / "paper.toml").write_text(_PAPER)
    (folder / "experiment.py").write_text(_EXPERIMENT)
    shutil.copy(CORPUS / "files_paper" / "mutations", folder / "mutations.json")
