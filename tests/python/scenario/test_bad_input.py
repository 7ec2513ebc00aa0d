"""Wrong inputs, each with the exact message that a person sees and the exit code; never a traceback."""

from __future__ import annotations

import copy
import json
import os
import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from support import PLAIN, Cli, begin, interrupt
from tidegate import Scenario, _core
from tidegate.errors import InputError
from tidegate.scenario.assembling import engine_errors
from tidegate.scenario.lower import lower
from tidegate.scenario.scenario import assign_all

MINE = """\
import tidegate

class Mine(tidegate.Controller):
    def __init__(self, gain=0.5):
        self.gain = gain

    def on_report(self, now_ns, report):
        {body}

class Bare:
    def on_limits(self, now_ns, limits):
        return limits.start_bps
"""


@dataclass(frozen=True)
class Case:
    """One wrong input."""

    name: str
    argv: tuple[str, ...]
    message: str
    code: int = 2
    files: dict[str, str | bytes] = field(default_factory=dict)


def scenario(original: str = "", replaced: str = "") -> dict[str, str | bytes]:
    assert original in PLAIN
    return {"x.toml": PLAIN.replace(original, replaced, 1)}


def mine(body: str) -> dict[str, str | bytes]:
    return {"mine.py": MINE.format(body=body)}


RUN = ("run", "x.toml")
TOY = ("compare", "gcc", "--duration", "2s", "--capacity", "2Mbps")
PYTHON = ("compare", "python:mine.py:Mine", "--duration", "2s", "--capacity", "2Mbps")

CASES = [
    # files
    Case("no such file", ("run", "nowhere.toml"), "nowhere.toml: there is no such file"),
    Case("a folder", ("run", "."), ".: is a folder; expected a scenario file"),
    Case("no such scenario", ("run", "home-brodband"),
         "home-brodband: there is no such scenario; did you mean home-broadband? (see tidegate scenario list)"),
    Case("empty file", RUN, "x.toml: duration: the key is missing\nx.toml: links: the key is missing",
         files={"x.toml": ""}),
    Case("binary file", RUN, "x.toml:1: found byte 0xff; expected a TOML file in UTF-8",
         files={"x.toml": b"\xff\xfe\x00"}),
    Case("no TOML", RUN, "x.toml:2: not valid TOML: invalid value", files={"x.toml": 'duration = "4s"\nseed =\n'}),
    # numbers
    Case("no unit", RUN, 'x.toml:6: links.cable.delay: found 10; a time needs a unit, for example "10ms" or "10s"',
         files=scenario('"10ms"', "10")),
    Case("rate of zero", RUN,
         'x.toml:5: links.cable.capacity: found "0Mbps"; the link would never carry a packet',
         files=scenario('"2Mbps"', '"0Mbps"')),
    Case("negative", RUN, 'x.toml:6: links.cable.delay: found "-1ms"; a time cannot be negative',
         files=scenario('"10ms"', '"-1ms"')),
    Case("not a number", RUN, 'x.toml:6: links.cable.loss: found nan; a fraction lies between 0 and 1',
         files=scenario('delay = "10ms"', "loss = nan")),
    Case("huge", RUN, 'x.toml:1: duration: found "1e30s"; the largest time is 1000000000s',
         files=scenario('"4s"', '"1e30s"')),
    Case("times out of order", RUN,
         'x.toml:5: links.cable.capacity.schedule[2]: the step at "0s" follows "0s"; expected steps in order of time',
         files=scenario('"2Mbps"', '{ schedule = [["0s", "1Mbps"], ["0s", "2Mbps"]] }')),
    Case("seed out of range", ("run", "x.toml", "--seed", "99999999999999999999"),
         "seed: found 99999999999999999999; expected a whole number from 0 to 2^64 - 1", files=scenario()),
    Case("digits of another script", RUN,
         'x.toml:5: links.cable.capacity: found "٣Mbps"; expected a rate, for example "2.5Mbps"',
         files=scenario('"2Mbps"', '"٣Mbps"')),
    Case("no such unit", RUN, 'x.toml:1: duration: found "4 d"; no unit of time is called "d"; available: h, min, s, ms, us, ns',
         files=scenario('"4s"', '"4 d"')),
    Case("half a unit", RUN, 'x.toml:5: links.cable.capacity: found "2Mb"; no unit of rate is called "Mb"; available: Gbps, '
         "Mbps, kbps, bps; did you mean Mbps?", files=scenario('"2Mbps"', '"2Mb"')),
    Case("duration of zero", RUN, 'x.toml:1: duration: found "0s"; expected more than zero', files=scenario('"4s"', '"0s"')),
    Case("too many bins", RUN, 'x.toml:2: bin: found "1us"; the series of flows and links would '
         "have more than 10000000 bins; expected a longer bin",
         files=scenario('duration = "4s"', 'duration = "4s"\nbin = "1us"')),
    Case("sender too fast for the clock", RUN,
         'x.toml:10: flows.call.media.max_rate: found "1000000000Gbps"; expected at most 1000Gbps',
         files=scenario('"gcc"', '"gcc", max_rate = "1e9Gbps"')),
    Case("largest rate of zero", RUN, 'x.toml:10: flows.call.media.max_rate: found "0Mbps"; expected more than zero',
         files=scenario('"gcc"', '"gcc", max_rate = "0bps"')),
    Case("frame too large", RUN, 'x.toml:10: flows.call.media.video.burst: found "1GB"; expected at most 100MB',
         files=scenario('"gcc"', '"gcc", video = { burst = "1GB" }')),
    Case("frames too rare", RUN, "x.toml:10: flows.call.media.video.fps: found 1e-09; expected a number of at least 0.001",
         files=scenario('"gcc"', '"gcc", video = { fps = 1e-9 }')),
    Case("audio too large", RUN, 'x.toml:10: flows.call.media.audio.interval: found "1000s"; expected a shorter one: packets would exceed 100MB',
         files=scenario('"gcc"', '"gcc", audio = { rate = "1Gbps", interval = "1000s" }')),
    Case("loss of any size", RUN, "x.toml:7: links.cable.loss: found 1" + "0" * 76 + "...; a fraction lies between 0 and 1",
         files=scenario('"10ms"', '"10ms"\nloss = 1' + "0" * 400)),
    Case("source is a list", RUN, 'x.toml:10: flows.call.media.video: found {source = ["ideal"]}; expected false, or a table '
         "whose source is statistical, ideal, greedy, frames, encoder or cbr",
         files=scenario('"gcc"', '"gcc", video = { source = ["ideal"] }')),
    Case("video is not true", RUN, "x.toml:10: flows.call.media.video: found true; expected false",
         files=scenario('"gcc"', '"gcc", video = true')),
    Case("neither video nor audio", RUN,
         "x.toml:10: flows.call.media: found neither video nor audio; expected at least one of them",
         files=scenario('"gcc"', '"gcc", video = false')),
    Case("generated link too wild", RUN,
         'x.toml:5: links.cable.capacity.brownian.sigma: found "1000000000Gbps"; expected from 1.2kbps to 120Gbps',
         files=scenario('"2Mbps"', '{ brownian = { sigma = "1e9Gbps" } }')),
    Case("time-out too long", RUN,
         'x.toml:10: flows.call.tcp.min_rto: found "1000s"; expected at most the largest time-out (60s)',
         files=scenario('media = { controller = "gcc" }', 'tcp = { min_rto = "1000s" }')),
    Case("window too wide", RUN,
         'x.toml:10: flows.call.tcp.receive_window: found "2GB"; expected at most 1.07372544GB',
         files=scenario('media = { controller = "gcc" }', 'tcp = { receive_window = "2GB" }')),
    Case("no such discipline", RUN, 'x.toml:7: links.cable.discipline: found "red"; expected one of drop-tail, codel, fq-codel, pie, dualpi2, or a table '
         'with the name of one of these, of a policer or of a shaper, such as { name = "policer", rate = "2Mbps", burst = "60kB" }', files=scenario('"10ms"', '"10ms"\ndiscipline = "red"')),
    Case("discipline without patience", RUN, 'x.toml:7: links.cable.discipline.target: found "0s"; expected more than zero',
         files=scenario('"10ms"', '"10ms"\ndiscipline = { name = "codel", target = "0s" }')),
    Case("key of another discipline", RUN, "x.toml:7: links.cable.discipline.quantum: there is no such key (keys here: ce_threshold, ecn, "
         "interval, maxpacket, name, target)", files=scenario('"10ms"', '"10ms"\ndiscipline = { name = "codel", quantum = "1B" }')),
    Case("misspelt key of a discipline in a shaper", RUN, "x.toml:7: links.cable.discipline.discipline.qdelayref: there is no such key; "
         "did you mean qdelay_ref? (keys here: alpha, beta, cap_drop, derandomize, ecn, mark_ecnth, max_burst, mean_pktsize, name, qdelay_ref, "
         "t_update)", files=scenario('"10ms"', '"10ms"\ndiscipline = { name = "shaper", rate = "1Mbps", burst = "9kB", '
                                                'discipline = { name = "pie", qdelayref = "5ms" } }')),
    Case("PIE that computes for ever", RUN, 'x.toml:7: links.cable.discipline.t_update: found "1ns"; expected at least 10us',
         files=scenario('"10ms"', '"10ms"\ndiscipline = { name = "pie", t_update = "1ns" }')),
    Case("DualPI2 that computes for ever", RUN, 'x.toml:7: links.cable.discipline.rtt_max: found "29us"; expected at least 30us',
         files=scenario('"10ms"', '"10ms"\ndiscipline = { name = "dualpi2", rtt_max = "29us" }')),
    Case("no idle time", RUN, 'x.toml:10: flows.call.tcp.workload.web.idle: found "0s"; expected more than zero',
         files=scenario('media = { controller = "gcc" }', 'tcp = { workload = { web = { idle = "0s" } } }')),
    Case("what only the engine refuses", RUN, "x.toml:10: flows.call.udp.on: found 0.000001ms; expected at least one "
         "millionth of the time that sending a packet takes (12.000000ms)",
         files=scenario('media = { controller = "gcc" }',
                        'udp = { rate = "1Mbps", pattern = "on_off", on = "1ns", off = "1ns" }')),
    # names
    Case("line break in a name", RUN, 'x.toml:9: flows[1].name: found "ca\\nll"; expected a letter or digit, then letters, digits and _ . + -, '
         "at most 64 in total", files=scenario('name = "call"', 'name = "ca\\nll"')),
    Case("misspelt key", RUN, "x.toml:6: links.cable.dealy: there is no such key; did you mean delay? (keys here: back, "
         "byte_error, capacity, delay, discipline, ecn, from, jitter, loss, mtu, name, netem, queue, service, to, via)", files=scenario("delay", "dealy")),
    Case("duplicate name", RUN, 'x.toml:13: flows.call.name: "call" is the name of entry 1, too; names are unique',
         files={"x.toml": PLAIN + '\n[[flows]]\nname = "call"\nudp = { rate = "1Mbps" }\n'}),
    Case("no route", RUN, 'x.toml:8: flows.call: no links lead from "right" to "left" for feedback or acknowledgements',
         files=scenario('delay = "10ms"', "back = false")),
    Case("no such point", RUN, 'x.toml:10: flows.call.to: no link begins or ends at "rigt"; did you mean right? (points: left, right)',
         files=scenario('name = "call"', 'name = "call"\nto = "rigt"')),
    Case("unknown controller", ("compare", "gccc"), "gccc: there is no such controller; did you mean gcc?"),
    Case("unknown controller in a file", RUN, "x.toml:10: flows.call.media: gccc: there is no such controller; did you mean gcc?",
         files=scenario('"gcc"', '"gccc"')),
    Case("unknown preset", ("compare", "gcc:draft"), "gcc:draft: gcc has no such preset; did you mean draft-02?"),
    Case("unknown setting", ("compare", "fixed:rte=2Mbps"), "fixed: rte: there is no such setting; did you mean rate?"),
    Case("setting without unit", ("compare", "fixed:2"),
         'fixed: rate: found 2; a rate needs a unit, for example "2kbps" or "2Mbps"'),
    Case("setting out of range", ("compare", "fixed:0bps"),
         "fixed: `rate` is 0, expected a number from 1 to 1000000000000 bit/s"),
    Case("named twice", ("compare", "gcc", "gcc"), "gcc: the contender is listed twice"),
    # usage
    Case("no controller", ("compare",), "found neither a controller nor a variant; expected controllers, such as gcc nada, or --variant"),
    Case("no such command", ("comapre", "gcc"), "No such command 'comapre'. Did you mean 'compare'?\n(see tidegate --help)"),
    Case("no seeds", ("compare", "gcc", "--seeds", "0"),
         "Invalid value for '--seeds': Input should be greater than or equal to 1\n(see tidegate compare --help)"),
    Case("cross traffic", (*TOY, "--cross", "quic@3s"), '--cross: found "quic@3s"; expected a flow such as tcp, '
         "tcp:cubic@20s, udp:1Mbps@10s-30s, udp:poisson:500kbps, web*10, media:gcc@5s; *N adds N flows"),
    Case("late cross traffic", (*TOY, "--cross", "tcp@20s"),
         "scenario: flows.tcp.start: found \"20s\"; expected a time before the run's end (2s)"),
    Case("beside", (*TOY, "--with", "@3s"), '--with: found "@3s"; expected a controller or a TCP, such as nada, '
         "scream@20s, gcc:libwebrtc-v1@20s-60s, tcp:cubic@20s"),
    Case("an unknown competitor", (*TOY, "--with", "gc"), "--with: gc: there is no such controller; did you mean gcc?"),
    Case("beside late", (*TOY, "--with", "gcc@20s"),
         "scenario: flows.beside.start: found \"20s\"; expected a time before the run's end (2s)"),
    Case("link and capacity", ("compare", "gcc", "--link", "x", "--capacity", "1Mbps"),
         "found both --link, which has its own capacity, and --capacity; expected one of them"),
    Case("queue", (*TOY, "--queue", "some"),
         '--queue: found "some"; expected a time, a size or a number of packets: "300ms", "64kB", "100p"'),
    Case("change without value", ("run", "x.toml", "--set", "seed"),
         "--set seed: expected KEY=VALUE, such as links.uplink.delay=50ms", files=scenario()),
    Case("sweep of nothing", ("sweep", "x.toml", "--set", "seed=1,,2", "--out", "o"),
         "--set seed=1,,2: expected values with commas between them", files=scenario()),
    Case("sweep of a wrong value", ("sweep", "x.toml", "--set", "duration=2s,3", "--out", "o"),
         'with duration=3: scenario: duration: found 3; a time needs a unit, for example "3ms" or "3s"', files=scenario()),
    Case("sweep over two lines", ("sweep", "x.toml", "--set", "name=a\nb", "--out", "o"),
         "--set name=a\nb: expected values with commas between them", files=scenario()),
    # traces
    Case("trace of nothing", ("compare", "gcc", "--link", "t.csv"), "links.bottleneck.capacity: {cwd}/t.csv: every rate is "
         "zero; the link would never carry a packet", files={"t.csv": "time_s,rate_mbps\n0,0\n1,0\n"}),
    Case("trace too long for its format", ("trace", "convert", "t.csv", "o.mm"), "t.csv: 12500012500000 B make 8311178524 "
         "opportunities; a file can have 1 to 20 million", files={"t.csv": "time_s,rate_mbps\n0,1000000\n100,1\n"}),
    Case("trace of no time", ("trace", "generate", "o", "--duration", "1ns"),
         'duration: found "1ns"; expected from 1ms to 4233600s'),
    Case("trace with a wrong rate", ("trace", "generate", "o", "--max", "3"),
         'max: found "3"; a rate needs a unit, for example "3kbps" or "3Mbps"'),
    Case("trace that begins too high", ("trace", "generate", "o", "--start", "20Mbps"),
         'start: found "20Mbps"; expected at most max (12Mbps)'),
    Case("trace with a huge seed", ("trace", "generate", "o", "--seed", "18446744073709551616"),
         "seed: found 18446744073709551616; expected a whole number from 0 to 2^64 - 1"),
    Case("no trace", ("compare", "gcc", "--link", "no.trace"),
         "links.bottleneck.capacity: {cwd}/no.trace: there is no such file"),
    Case("empty trace", ("trace", "show", "e.trace"), "e.trace: the file is empty; expected a recorded network",
         files={"e.trace": ""}),
    Case("no gzip", ("trace", "show", "t.csv.gz"), "t.csv.gz is not packed by gzip, as its name says; rename it, or pack it again",
         files={"t.csv.gz": "plain text"}),
    Case("trace over a scenario", ("trace", "generate", "x.toml", "--to", "csv"),
         "x.toml: the file exists already and is not a csv trace; give another name, or --force to replace it", 1, files=scenario()),
    Case("trace over a trace of another format", ("trace", "convert", "t.csv", "p.csv"),
         "p.csv: the file exists already and is not a csv trace; give another name, or --force to replace it", 1,
         files={"t.csv": "time_s,rate_mbps\n0,1\n1,2\n", "p.csv": "1\n2\n3\n"}),
    Case("trace as a scenario", ("trace", "generate", "x.toml"),
         "x.toml: found .toml; expected one of .csv, .trace, .mahimahi, .mm, .up, .down, or --to mahimahi or --to csv",
         files=scenario()),
    Case("trace with an unknown suffix", ("trace", "convert", "t.csv", "t.foo"),
         "t.foo: found .foo; expected one of .csv, .trace, .mahimahi, .mm, .up, .down, or --to mahimahi or --to csv",
         files={"t.csv": "time_s,rate_mbps\n0,1\n1,2\n"}),
    Case("packed trace", ("trace", "generate", "t.trace.gz", "--to", "mahimahi"),
         "t.trace.gz: found .gz; traces are written uncompressed: run gzip afterwards"),
    Case("trace of an unknown format", ("trace", "generate", "t.csv", "--to", "cvs"),
         "--to: found cvs; expected mahimahi or csv; did you mean csv?"),
    Case("report over another page", ("report", ".", "--out", "x.html"),
         "x.html: the file exists already and is not a report of tidegate; give another name, or --force to replace it", 1,
         files={"x.html": "<p>mine"}),
    Case("report as what it is not", ("report", ".", "--out", "x.gif"),
         "--out x.gif: found the suffix .gif; expected .html, .pdf, .png, .svg"),
    Case("report without a suffix", ("report", ".", "--out", "x"),
         "--out x: found no suffix; expected .html, .pdf, .png, .svg"),
    Case("film over a scenario", ("media", "render", ".", "-o", "x.toml"),
         "x.toml: the file exists already and is not a MP4 film; give another name, or --force to replace it", 1, files=scenario()),
    Case("trace to nowhere", ("trace", "generate", "no/such/x.trace"),
         "no/such/x.trace: cannot be written: No such file or directory", 1),
    # controllers in Python
    Case("no such python file", ("compare", "python:mine.py:Mine"),
         "mine.py: there is no such file (looked for {cwd}/mine.py)"),
    Case("no such class", ("compare", "python:mine.py:Mien"),
         "mine.py: the module has no class Mien; did you mean Mine?", files=mine("return 1")),
    Case("no class named", ("compare", "python:mine.py"),
         'found "python:mine.py"; expected python:file.py:Class or python:package.module:Class'),
    Case("no method", ("compare", "python:mine.py:Bare"),
         "python:mine.py:Bare: the class has no method on_report(now_ns, report); derive it from tidegate.Controller, which "
         "has every method except on_report", files=mine("return 1")),
    Case("syntax error", ("compare", "python:mine.py:Mine"),
         "mine.py: cannot be imported: SyntaxError: invalid syntax (line 8)", files=mine("return return")),
    Case("fails to import", ("compare", "python:mine.py:Mine"),
         "mine.py: cannot be imported: ModuleNotFoundError: No module named 'nowhere_at_all' (line 1)",
         files={"mine.py": "import nowhere_at_all\n"}),
    Case("exits when imported", ("compare", "python:mine.py:Mine"), "mine.py: cannot be imported: SystemExit: 3 (line 1)",
         files={"mine.py": "raise SystemExit(3)\n"}),
    Case("python setting", ("compare", "python:mine.py:Mine:gian=1"),
         "python:mine.py:Mine: got an unexpected keyword argument 'gian'", files=mine("return 1")),
    # places
    Case("something else there", ("run", "x.toml", "--out", "."),
         ".: the folder holds other files (it has no manifest.json of tidegate); choose an empty or a new folder", 1, files=scenario()),
    Case("a file is there", ("run", "x.toml", "--out", "x.toml"), "x.toml: found a file; expected a folder, or no file of this name", 1,
         files=scenario()),
    Case("under a file", ("run", "x.toml", "--out", "x.toml/y"), "x.toml/y: {cwd}/x.toml is not a folder", 1,
         files=scenario()),
    Case("the root", ("run", "x.toml", "--out", "/"),
         "/: the folder holds other files (it has no manifest.json of tidegate); choose an empty or a new folder", 1, files=scenario()),
    Case("too long a name for the folder beside it", ("run", "x.toml", "--out", "d" * 250),
         f"{'d' * 250}: cannot be written: File name too long", 1, files=scenario()),
    Case("too long a name", ("run", "d" * 300), f"{'d' * 300}: cannot be read: File name too long"),
    Case("too long a name of a suite", ("suite", "show", "d" * 300), f"{'d' * 300}: cannot be read: File name too long"),
    Case("too deep a folder", ("run", "x.toml", "--out", "d/" * 1500), "d/...: has 1500 folders; expected at most 200", 1,
         files=scenario()),
    Case("thousands of digits", RUN, "x.toml: found a number of 6000 digits; expected at most 4300",
         files=scenario('duration = "4s"', f'duration = "4s"\nseed = {"9" * 6000}')),
    Case("thousands of hexadecimal digits", RUN, f"x.toml:2: seed: found 0x{'f' * 75}...; expected a number of at most {2**64 - 1}",
         files=scenario('duration = "4s"', f'duration = "4s"\nseed = 0x{"f" * 6000}')),
    Case("thousands of hexadecimal digits for a word", RUN,
         f'x.toml:2: record: found 0x{"f" * 75}...; expected "summary", "series" or "packets"',
         files=scenario('duration = "4s"', f'duration = "4s"\nrecord = 0x{"f" * 6000}')),
    Case("thousands of digits in --set", (*RUN, "--set", f"seed={'9' * 6000}"),
         f'x.toml, as changed: seed: found "{"9" * 76}...; expected a whole number', files=scenario()),
    Case("400 keys in each other", RUN, "x.toml: line 2 has a key of 400 parts; expected at most 32",
         files=scenario('duration = "4s"', f'duration = "4s"\n{".".join("a" * 400)} = 1')),
    Case("400 tables in each other", RUN, "x.toml: not valid TOML: nested too deeply",
         files=scenario('duration = "4s"', 'duration = "4s"\nx = ' + "{ a = " * 400 + "1" + " }" * 400)),
    Case("400 names in --set", (*RUN, "--set", f"{'.'.join('a' * 400)}=1"),
         f"{'a.' * 20}...: is not a key; expected at most 50 names with dots between them", files=scenario()),
    Case("a NUL in a path", RUN, "x.toml: found a text with a NUL; expected text without it",
         files=scenario('capacity = "2Mbps"', 'capacity = { trace = "a\\u0000b" }')),
    Case("a pattern of the whole disk", RUN,
         'x.toml:10: flows.call.media: video.ladder: found "/**/*"; ** stands for all folders below, which may '
         "be a whole disk; name the folder, or a pattern of files in it",
         files=scenario('media = { controller = "gcc" }', 'media = { video = { source = "frames", ladder = "/**/*" } }')),
    Case("no frequency", ("trace", "show", "x.trace", "--frequency", "nan"),
         "frequency: found nan; expected lines per second, more than zero", files={"x.trace": "1\n2\n"}),
    Case("a negative frequency", ("trace", "convert", "x.trace", "o.csv", "--frequency", "-1"),
         "frequency: found -1; expected lines per second, more than zero", files={"x.trace": "1\n2\n"}),
    Case("no result", ("report", "."),
         ". does not hold a run, comparison, sweep, search or suite result (no run.json, "
         "comparison.json, sweep.json, optimise.json, suite.json)"),
    Case("damaged result", ("report", "."), "run.json: the file is damaged: Expecting value: line 1 column 1 (char 0)",
         files={"run.json": "x"}),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_wrong_input(case: Case, cli: Cli, tmp_path: Path) -> None:
    for name, content in case.files.items():
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    before = sorted(path.name for path in tmp_path.rglob("*"))
    got = cli(*case.argv)
    message = case.message.replace("{cwd}", str(tmp_path))
    assert got.err == f"tidegate: {message}\n"
    assert got.code == case.code
    assert got.out == ""
    after = sorted(path.name for path in tmp_path.rglob("*") if "__pycache__" not in path.parts[-2:])
    assert [name for name in after if not name.endswith(".pyc")] == before, "nothing may be left behind"


BROKEN = [
    ("raises", "raise KeyError('oh')", "on_report raised KeyError: 'oh'"),
    ("returns nan", "return float('nan')", "on_report: found NaN; a rate must be finite and not negative"),
    ("returns text", "return 'fast'", "on_report returned 'fast' of type str; it must be a Decision, a rate in bit/s, or "
     "None for no change"),
    ("returns True", "return True", "on_report returned True of type bool; it must be a Decision, a rate in bit/s, or None "
     "for no change"),
    ("True in a decision", "return tidegate.Decision(True)", "found True of type bool; it must be a number of bit/s"),
    ("text as an internal", "self.internals['state'] = 'up'; return 10**6", "internals: 'state' of type str is 'up' of type str; "
     "internals must be a dict of names and numbers"),
    ("negative rate", "return -1", "on_report: found -1; a rate must be finite and not negative"),
    ("alarm in the past", "return tidegate.Decision(10**6, alarm_ns=now_ns - 1)", "which is in the past"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "body", "reason"), BROKEN, ids=[name for name, *_ in BROKEN])
@pytest.mark.parametrize("seeds", ["1", "2"])
def test_a_controller_in_python_that_fails(
    name: str, body: str, reason: str, seeds: str, cli: Cli, tmp_path: Path
) -> None:
    (tmp_path / "mine.py").write_text(MINE.format(body=body))
    got = cli(*PYTHON, "--seeds", seeds, "--out", "o")
    assert got.code == 1
    assert reason in got.err
    # who and when in simulated time
    assert got.err.startswith("tidegate: call")
    assert "s: " in got.err
    assert "Traceback" not in got.err
    assert got.out == ""
    assert not (tmp_path / "o").exists()


def test_a_failure_is_placed_once(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(MINE.format(body="raise KeyError"))
    got = cli(*PYTHON)
    assert re.fullmatch(
        r"tidegate: call\.sender at 0\.\d{9}s: Mine\.on_report raised KeyError \(mine\.py, line 8, in on_report\)\n",
        got.err,
    )


@pytest.mark.parametrize(
    ("key", "value", "place", "found", "expected", "line"),
    [
        ("warmup", 5 * 10**9, "warmup", "5000.000000ms", "less than the duration (4000.000000ms)", 0),
        ("flows.call.stop", 0, "flows.call.stop", "0.000000000s", "after the start (0.000000000s)", 8),
        (
            "flows.call.kind.media.controller.name",
            "gccc",
            "flows.call.media.controller",
            "gccc",
            "one of fixed, gcc",
            10,
        ),
        ("links.cable.settings.byte_error", 2.0, "links.cable.byte_error", "2", "a probability", 3),
    ],
)
def test_what_the_engine_refuses_comes_in_parts(
    key: str, value: object, place: str, found: str, expected: str, line: int, tmp_path: Path
) -> None:
    (tmp_path / "x.toml").write_text(PLAIN, encoding="utf-8")
    loaded = Scenario.load(tmp_path / "x.toml")
    ir = copy.deepcopy(lower(loaded).ir)
    assign_all(ir, {key: value})
    with pytest.raises(InputError) as caught, engine_errors(loaded):
        _core.run(json.dumps(ir))
    refused = caught.value.__context__
    assert isinstance(refused, _core.Refused)
    assert (refused.place, refused.expected[: len(expected)]) == (place, expected)
    assert found in refused.found
    # file and line come from the place, not from the words
    where = f"{tmp_path / 'x.toml'}:{line}" if line else "x"
    assert str(caught.value) == f"{where}: {refused}"


@pytest.mark.parametrize("body", ["raise ValueError('no')", "return 5"])
def test_a_stamp_that_fails_fails_the_run(body: str, cli: Cli, tmp_path: Path) -> None:
    stamp = f"\n    def stamp(self, now_ns, packet):\n        {body}\n"
    (tmp_path / "mine.py").write_text(MINE.format(body="return 10**6" + stamp))
    got = cli(*PYTHON)
    assert got.code == 1
    assert "stamp raised " in got.err


def test_a_controller_that_cannot_be_made(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(MINE.format(body="return 1").replace("self.gain = gain", "1 / 0"))
    got = cli(*PYTHON)
    assert got.code == 2
    assert got.err.endswith(
        "python:mine.py:Mine: the constructor raised ZeroDivisionError: division by zero (mine.py, line 5, in __init__)\n"
    )


def test_the_line_of_the_failure_is_told(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(MINE.format(body="return report.packts"))
    got = cli(*PYTHON)
    assert got.code == 1
    assert "(mine.py, line 8, in on_report)" in got.err


def test_a_process_that_goes_away_is_told(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("import os\n" + MINE.format(body="os._exit(9)"))
    got = cli(*PYTHON, "--seeds", "2", "--jobs", "2", "--out", "o")
    why = "ended with exit code 9: its controller, or a library that the controller uses, ended it"
    assert (got.code, got.err, got.out) == (1, f"tidegate: the process of a run {why}\n", "")
    assert not (tmp_path / "o").exists()


@pytest.mark.parametrize("seeds", ["1", "2"])
def test_what_a_controller_prints_is_no_result(seeds: str, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("print('loud')\n" + MINE.format(body="print('louder'); return 10**6"))
    process = begin([*PYTHON, "--seeds", seeds, "--jobs", "2", "--json"], tmp_path)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0
    assert len(json.loads(out)["runs"]) == int(seeds)
    assert "loud\n" in err
    assert "louder\n" in err


def test_debug_shows_the_traceback(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.py").write_text(MINE.format(body="return report.packts"))
    monkeypatch.setenv("TIDEGATE_DEBUG", "1")
    got = cli(*PYTHON)
    assert "Traceback (most recent call last)" in got.err
    assert "return report.packts" in got.err


BROKEN_TRACES = {
    "mahimahi": "1\n2\n3\n12x4\n",
    "csv": "time_s,rate_mbps\n0,1\n1,2\n12x4,oops\n",
}


@pytest.mark.parametrize("format_", BROKEN_TRACES)
def test_a_broken_line_in_a_trace(format_: str, cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "t.trace").write_text(BROKEN_TRACES[format_])
    got = cli("trace", "show", "t.trace", "--format", format_)
    assert got.code == 2
    assert got.err.startswith("tidegate: t.trace:4: ") or got.err.startswith("tidegate: t.trace, line 4: ")
    assert "found 4 characters that are not a number; expected" in got.err


def test_what_is_no_trace_is_not_shown(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "key").write_text("-----BEGIN PRIVATE KEY-----\nMIIhidden\n")
    (tmp_path / "chat_600.txt").write_text("a b c d hidden\n")
    for got in (
        cli("trace", "show", "key"),
        cli("compare", "gcc", "--link", "key"),
        *(cli("trace", "show", "key", "--format", form) for form in ("mahimahi", "csv", "opennetlab", "raca")),
        cli("run", "home-broadband", "--set", "flows.call.media.video={ladder='chat_600.txt'}"),
        cli("run", "home-broadband", "--set", "flows.call.media.video={ladder='chat_600.txt'}", "--json"),
    ):
        assert got.code == 2
        assert "key" in got.err or "chat_600.txt:1: found 5 columns" in got.err
        assert "PRIVATE" not in got.err
        assert "hidden" not in got.err


def test_a_full_disk(cli: Cli, tmp_path: Path) -> None:
    got = cli("trace", "generate", "/dev/full", "--duration", "5s")
    assert (got.code, got.err) == (1, "tidegate: /dev/full: cannot be written: No space left on device\n")


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    """A file system of 64 kB."""
    folder = tmp_path / "tiny"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("needs the right to mount a tmpfs")
    return folder


def test_a_full_disk_leaves_nothing(tiny: Path, cli: Cli, tmp_path: Path) -> None:
    try:
        (tmp_path / "x.toml").write_text(PLAIN.replace('"4s"', '"60s"'))
        got = cli("run", "x.toml", "--record", "packets", "--out", str(tiny / "run"))
        assert got.code == 1
        assert got.err.startswith(f"tidegate: {tiny}/")
        assert "cannot be written" in got.err
        assert "No space left on device" in got.err
        assert "Traceback" not in got.err
        assert list(tiny.iterdir()) == []
    finally:
        subprocess.run(["umount", str(tiny)], check=True)


def test_a_file_system_that_takes_nothing(cli: Cli) -> None:
    got = cli("run", "home-broadband", "--set", "duration=2s", "--out", "/proc/tidegate-run")
    assert got.code == 1
    assert got.err.startswith("tidegate: /proc/tidegate-run: cannot be written: ")
    assert "Traceback" not in got.err


def test_ctrl_c_in_a_sweep_loses_nothing(tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_text(PLAIN.replace('"4s"', '"20s"'))
    argv = [
        "sweep",
        "x.toml",
        "--set",
        "links.cable.delay=" + ",".join(f"{ms}ms" for ms in range(1, 201)),
        "--out",
        "o",
    ]
    code, out, err = interrupt(begin([*argv, "--seeds", "5"], tmp_path), tmp_path / "o" / "results", more_than=1)
    assert (code, out) == (130, "")
    finished = sorted((tmp_path / "o" / "results").iterdir())
    assert err == (
        f"tidegate: stopped; {len(finished)} of 1000 runs are done and kept in o; the same command goes on from there\n"
    )
    assert 2 <= len(finished) < 1000
    for file in finished:
        assert file.suffix == ".json", "no half-written file"
        assert {"digest", "summary", "seed"} <= json.loads(file.read_text()).keys()
    # the same again goes on from there: what is kept is not touched
    stamps = {file.name: file.stat().st_mtime_ns for file in finished}
    results = tmp_path / "o" / "results"
    code, _, err = interrupt(begin([*argv, "--seeds", "5"], tmp_path), results, more_than=len(finished))
    assert code == 130
    assert len(finished) < len(list(results.iterdir())) < 1000
    assert {name: (tmp_path / "o" / "results" / name).stat().st_mtime_ns for name in stamps} == stamps


#: Tells that a run is on.
RUNNING = "open('running', 'w').close()"


def test_ctrl_c_in_a_comparison_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(MINE.format(body=f"{RUNNING}; return 10**6"))
    argv = ["compare", "python:mine.py:Mine", "gcc", "--duration", "100000s", "--capacity", "5Mbps", "--out", "o"]
    code, out, err = interrupt(begin(argv, tmp_path), tmp_path / "running")
    assert (code, out, err) == (130, "", "tidegate: stopped; nothing was written\n")
    assert not (tmp_path / "o").exists()


@pytest.mark.parametrize("seeds", ["1", "2"])
def test_ctrl_c_reaches_a_controller_that_never_returns(seeds: str, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(MINE.format(body=f"{RUNNING}\n        while True: pass"))
    process = begin([*PYTHON, "--seeds", seeds, "--jobs", "2", "--out", "o"], tmp_path)
    code, out, err = interrupt(process, tmp_path / "running")
    assert (code, out, err) == (130, "", "tidegate: stopped; nothing was written\n")
    assert not (tmp_path / "o").exists()


def test_a_reader_that_goes_away_is_no_error(tmp_path: Path) -> None:
    process = begin(["scenario", "schema"], tmp_path)
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    assert (process.wait(timeout=60), process.stderr.read()) == (0, "")
    process.stderr.close()


def test_a_bug_is_called_a_bug(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    from tidegate import runs

    monkeypatch.setattr(runs, "versions", lambda: 1 / 0)
    got = cli("version")
    assert got.code == 1
    assert got.err.startswith("tidegate: this is a bug in tidegate: ZeroDivisionError: division by zero\nPlease report")
    assert "Traceback" not in got.err


def test_there_are_enough_of_them() -> None:
    assert len(CASES) + len(BROKEN) >= 25


def test_a_narrow_terminal_hides_no_number(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from tidegate.output import terminal

    monkeypatch.setattr(terminal, "_PIPE_WIDTH", 20)
    terminal.print_rows(["flow", "a long head", "another long head"], [["call", "1234567.89", "2345678.90"]])
    shown = capsys.readouterr().out
    assert "another long head" in shown
    assert "2345678.90" in shown
    assert "…" not in shown
