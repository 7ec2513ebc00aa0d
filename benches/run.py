"""Measure tidegate and its peers on the same work, and print the comparison.

    python benches/run.py                       every work, tidegate against ns-2 and SimPy
    PEERS=ns3 python benches/run.py             ... and ns-3
    python benches/run.py --quick --works cbr10,tcp5

Rounds are interleaved (A B C A B C ...), so that a busy minute of the machine hits every tool, and medians are
reported. The rate is bottleneck packets over the seconds inside the simulation loop, as each tool times itself;
wall time, CPU time and peak memory are those of the whole process, as the operating system counts them. Every figure goes to
bench.json. What the works are, and what the comparison leaves out: benches/README.md. Standard library only.
"""

import argparse
import json
import os
import platform
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
PEER_FILES = HERE / "peers"

QUICK = 0.1
# CBR works are deterministic: tools may differ by the packets on the wire at the end, not by more.
CBR_AGREEMENT = 0.005
NS3_HEADER = Path("/usr/include/ns3/core-module.h")
NS3_LIBRARIES = "core network internet point-to-point applications stats traffic-control".split()


@dataclass(frozen=True)
class Work:
    """One thing to simulate. A work without `dumbbell` settings is a call, which only tidegate can do."""

    letter: str
    name: str
    title: str
    duration_s: float
    dumbbell: dict = field(default_factory=dict)

    def settings(self, scale):
        """The dumbbell's settings as key=value words, the duration scaled."""
        return [f"{key}={value}" for key, value in {**self.dumbbell, "duration_s": self.duration_s * scale}.items()]


def dumbbell(cbr, tcp, pairs, rate_mbps, queue):
    return {"cbr": cbr, "tcp": tcp, "pairs": pairs, "rate_mbps": rate_mbps, "queue": queue}


WORKS = (
    Work("a", "cbr10", "10 CBR flows, 20 Mb/s", 600, dumbbell(10, 0, 10, 20, 100)),
    Work("b", "tcp5", "1 CBR + 5 TCP, 50 Mb/s", 300, dumbbell(1, 5, 6, 50, 200)),
    Work("c", "cbr1000", "1000 CBR flows, 1.2 Gb/s", 20, dumbbell(1000, 0, 10, 1200, 100)),
    Work("j", "tail100", "100 CBR flows, 98 Mb/s", 60),
    Work("j", "fq100", "the same through FQ-CoDel", 60),
    Work("d", "call", "one GCC video call, 1 hour", 3600),
    Work("d", "call2023", "the same, libwebrtc of 2023", 3600),
    Work("e", "calls100", "100 GCC calls, 100 Mb/s", 600),
    Work("f", "thesis", "the thesis's sender and network", 3600),
    Work("g", "sprout", "one Sprout video call, 1 hour", 3600),
    Work("h", "lte", "LTE, 21 cells, 100 users", 60),
    Work("i", "group1000", "an RTP session of 1000 members", 600),
)


class Skip(Exception):
    """A tool cannot do this work here; the message says why."""


class Failed(Exception):
    """A tool that should have done the work did not; the message says how."""


@dataclass(frozen=True)
class Measurement:
    """One run of one tool: what it reported about itself, and what the operating system saw."""

    report: dict
    wall_s: float
    cpu_s: float
    peak_rss_kib: int

    @property
    def packets_per_s(self):
        return self.report["packets"] / self.report["run_s"]


def run_child(command):
    """Run a command to its end and read the JSON object in its last line of output.

    Raises Failed on a bad exit status or an unreadable report.
    """
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        started = time.perf_counter()
        child = subprocess.Popen(command, stdout=output, stderr=errors)
        try:
            _, status, usage = os.wait4(child.pid, 0)
        except BaseException:
            child.kill()
            child.wait()
            raise
        wall_s = time.perf_counter() - started
        child.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        errors.seek(0)
        lines = output.read().decode(errors="replace").splitlines()
        complaint = errors.read().decode(errors="replace").strip().splitlines()[-1:]
    if child.returncode != 0:
        raise Failed(f"exit status {child.returncode}: {' '.join(complaint) or 'no message'}")
    cpu_s = usage.ru_utime + usage.ru_stime
    return Measurement(read_report(lines), wall_s, cpu_s, peak_kib(usage.ru_maxrss))


def read_report(lines):
    """The report in the last of a program's lines: positive `packets` and `run_s`, a `hops_per_packet`."""
    try:
        report = json.loads(lines[-1])
        if report["packets"] > 0 and report["run_s"] > 0 and report["hops_per_packet"] > 0:
            return report
    except (IndexError, KeyError, TypeError, ValueError):
        pass
    raise Failed(f"no usable report in its output: {lines[-1] if lines else 'nothing'!r}")


def peak_kib(ru_maxrss):
    """ru_maxrss is in KiB on Linux and in bytes on macOS."""
    return ru_maxrss // 1024 if sys.platform == "darwin" else ru_maxrss


def peak_floor_kib():
    """The smallest peak that can be seen: a child inherits the high-water mark of the process that starts it."""
    child = subprocess.Popen(["true"])
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    return peak_kib(usage.ru_maxrss)


class Tidegate:
    name = "tidegate"

    def __init__(self, python):
        self.python = python

    def prepare(self):
        return python_version(self.python, "tidegate", "import tidegate")

    def command(self, work, scale):
        return [self.python, str(PEER_FILES / "engine.py"), work.name, "--scale", repr(scale)]


class Ns2:
    name = "ns-2"

    def prepare(self):
        if not shutil.which("ns"):
            raise Skip("`ns` is not on the path (Debian: ns2)")
        return query(["ns", "-"], "puts [ns-version]; exit 0")

    def command(self, work, scale):
        return ["ns", str(PEER_FILES / "ns2.tcl"), *peer_settings(work, scale)]


class Ns3:
    name = "ns-3"

    def __init__(self, cache):
        self.program = cache / "ns3"

    def prepare(self):
        if not NS3_HEADER.exists():
            raise Skip(f"no {NS3_HEADER} (Debian: libns3-dev)")
        compiler = os.environ.get("CXX", "g++")
        if not shutil.which(compiler):
            raise Skip(f"no C++ compiler `{compiler}`")
        source = PEER_FILES / "ns3.cc"
        if not self.program.exists() or self.program.stat().st_mtime < source.stat().st_mtime:
            note("compiling ns3.cc")
            self.program.parent.mkdir(parents=True, exist_ok=True)
            command = [compiler, "-O2", "-DNDEBUG", "-std=c++17", str(source), "-o", str(self.program)]
            built = subprocess.run(
                [*command, *(f"-lns3-{library}" for library in NS3_LIBRARIES)], capture_output=True, text=True
            )
            if built.returncode != 0:
                raise Failed(f"ns3.cc does not compile: {built.stderr.strip().splitlines()[:1]}")
        return query(["pkg-config", "--modversion", "ns3-core"]) or "unknown version"

    def command(self, work, scale):
        return [str(self.program), *(f"--{setting}" for setting in peer_settings(work, scale))]


class SimPy:
    def __init__(self, kind, python):
        self.name = f"SimPy {kind}"
        self.script = PEER_FILES / f"simpy_{kind}.py"
        self.python = python

    def prepare(self):
        return python_version(self.python, "simpy", "import simpy")

    def command(self, work, scale):
        if work.dumbbell.get("tcp"):
            raise Skip("SimPy has no TCP")
        return [self.python, str(self.script), *peer_settings(work, scale)]


class TidegateSimPy:
    """Our sender and receiver in a network of SimPy processes: what it costs to leave the engine."""

    name = "tidegate.simpy"

    def __init__(self, python):
        self.python = python

    def prepare(self):
        return python_version(self.python, "simpy", "import tidegate.simpy")

    def command(self, work, scale):
        if work.name != "thesis":
            raise Skip("does the work thesis only")
        return [self.python, str(PEER_FILES / "simpy_tidegate.py"), repr(work.duration_s * scale)]


def peer_settings(work, scale):
    if not work.dumbbell:
        raise Skip("has no real-time media")
    return work.settings(scale)


def python_version(python, package, statement):
    """The version of an importable package; Skip if the statement fails in that interpreter."""
    code = (
        f"import platform\n{statement}\nimport {package} as p\n"
        "print(getattr(p, '__version__', 'unknown version'), 'on Python', platform.python_version())"
    )
    done = subprocess.run([python, "-c", code], capture_output=True, text=True)
    if done.returncode != 0:
        reason = done.stderr.strip().splitlines()[-1:] or ["no message"]
        raise Skip(f"not importable by {python}: {reason[0]}")
    return done.stdout.strip()


def query(command, text=""):
    """The output of a small command, or None if there is no such command or it fails."""
    try:
        return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None


def note(text):
    """Progress, on standard error only."""
    print(f"[bench] {text}", file=sys.stderr, flush=True)


def machine():
    """What the figures were measured on."""
    cpu = platform.processor() or platform.machine()
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                cpu = line.partition(":")[2].strip()
                break
    except OSError:
        pass
    return {
        "cpu": cpu,
        "cores": os.cpu_count(),
        "system": platform.platform(),
        "load_at_start": os.getloadavg()[0],
        "commit": query(["git", "-C", str(ROOT), "describe", "--always", "--dirty"]),
    }


def measure(works, tools, rounds, scale):
    """All rounds of all works. Returns ({(work name, tool name): [Measurement]}, {(work name, tool name): reason})."""
    found, absent, failed = {}, {}, {}
    versions = {}
    for tool in tools:
        try:
            versions[tool.name] = tool.prepare()
        except Skip as reason:
            note(f"{tool.name}: skipped, {reason}")
            absent.update({(work.name, tool.name): str(reason) for work in works})
        except Failed as reason:
            failed.update({(work.name, tool.name): str(reason) for work in works})
    for work in works:
        for index in range(rounds):
            for tool in tools:
                key = (work.name, tool.name)
                if key in absent or key in failed:
                    continue
                try:
                    measured = run_child(tool.command(work, scale))
                except Skip as reason:
                    absent[key] = str(reason)
                    continue
                except Failed as reason:
                    failed[key] = str(reason)
                    note(f"{work.name} {tool.name}: failed, {reason}")
                    continue
                found.setdefault(key, []).append(measured)
                note(
                    f"{work.name} round {index + 1}/{rounds} {tool.name}: "
                    f"{measured.packets_per_s / 1e3:.0f} k packets/s in {measured.report['run_s']:.2f} s"
                )
    return found, absent, failed, versions


def disagreement(work, found, tools):
    """A sentence if the tools did not forward the same packets in a CBR work, or their runs of one differ."""
    digests = {
        tool.name: found[work.name, tool.name][0].report["digest"]
        for tool in tools
        if (work.name, tool.name) in found and "digest" in found[work.name, tool.name][0].report
    }
    if len(set(digests.values())) > 1:
        return f"{work.name}: the runs differ: {digests}"
    packets = {
        tool.name: found[work.name, tool.name][0].report["packets"] for tool in tools if (work.name, tool.name) in found
    }
    if not work.dumbbell or work.dumbbell["tcp"] or len(packets) < 2:
        return None
    if max(packets.values()) - min(packets.values()) <= CBR_AGREEMENT * max(packets.values()):
        return None
    return f"{work.name}: the tools forwarded different numbers of packets: {packets}"


def table(works, tools, found, absent, failed, floor_kib):
    """The comparison as lines of text. Peaks at the floor are upper bounds and say so."""
    head = ("work", "tool", "packets", "hops", "packets/s", "spread", "tidegate is", "process", "CPU", "peak")
    rows = [head]
    for work in works:
        ours = found.get((work.name, "tidegate"))
        for tool in tools:
            key = (work.name, tool.name)
            if key in failed or key in absent:
                word, reason = ("failed", failed[key]) if key in failed else ("skipped", absent[key])
                rows.append((work.name, tool.name, f"{word}: {reason}"))
                continue
            runs = found[key]
            rates = [run.packets_per_s for run in runs]
            ratio = ""
            if ours and tool.name != "tidegate":
                ratio = f"{statistics.median(run.packets_per_s for run in ours) / statistics.median(rates):.1f} x"
            rows.append(
                (
                    work.name,
                    tool.name,
                    f"{runs[0].report['packets']:.0f}",
                    f"{runs[0].report['hops_per_packet']:g}",
                    f"{statistics.median(rates) / 1e3:.1f} k",
                    f"{(max(rates) - min(rates)) / statistics.median(rates):.0%}",
                    ratio,
                    f"{statistics.median(run.wall_s for run in runs):.2f} s",
                    f"{statistics.median(run.cpu_s for run in runs):.2f} s",
                    peak_text(max(run.peak_rss_kib for run in runs), floor_kib),
                )
            )
    full = [row for row in rows if len(row) == len(head)]
    widths = [max(len(row[column]) for row in full) for column in range(len(head))]
    # a skipped row has a name and a reason only; it must not stretch the columns of figures
    widths[:2] = [max(len(row[column]) for row in rows) for column in range(2)]
    return [
        "  ".join(
            cell.ljust(width) if column < 2 or len(row) < len(head) else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths))
        ).rstrip()
        for row in rows
    ]


def peak_text(kib, floor_kib):
    # the floor itself moves by a page or two between children
    return f"{'<= ' if kib <= 1.02 * floor_kib else ''}{kib / 1024:.0f} MiB"


def parse_works(text):
    """Works by name or letter, in the order given."""
    chosen = []
    for word in text.split(","):
        found = [work for work in WORKS if word in (work.name, work.letter)]
        if not found:
            names = ", ".join(f"{work.name} ({work.letter})" for work in WORKS)
            raise argparse.ArgumentTypeError(f"there is no work {word!r}; available: {names}")
        chosen += found
    return chosen


def parse_rounds(text):
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError("a whole number from 1 up")
    return int(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--works", type=parse_works, default=list(WORKS), help="names or letters, comma-separated")
    parser.add_argument(
        "--rounds", type=parse_rounds, default=3, help="number of runs of each tool on each work (default 3)"
    )
    parser.add_argument("--quick", action="store_true", help="simulate a tenth of the time")
    parser.add_argument("--python", default=sys.executable, help="interpreter that has tidegate (default: this one)")
    parser.add_argument("--simpy-python", help="interpreter that has SimPy (default: --python)")
    parser.add_argument("--out", type=Path, default=ROOT / "bench.json", help="default: bench.json in the checkout")
    args = parser.parse_args()

    peers = os.environ.get("PEERS", "").replace(",", " ").split()
    if set(peers) - {"ns3"}:
        parser.error(f"PEERS may name ns3 (ns-2 and SimPy always run), not {os.environ['PEERS']!r}")
    simpy_python = args.simpy_python or args.python
    tools = [Tidegate(args.python), Ns2(), SimPy("lean", simpy_python), SimPy("idiomatic", simpy_python)]
    tools.append(TidegateSimPy(args.python))
    if "ns3" in peers:
        tools.insert(2, Ns3(ROOT / ".cache" / "bench"))

    scale = QUICK if args.quick else 1.0
    where = machine()
    floor_kib = peak_floor_kib()
    if where["load_at_start"] > 0.5 * where["cores"]:
        note(f"the machine is busy (load {where['load_at_start']:.1f}): figures will be low and scattered")
    found, absent, failed, versions = measure(args.works, tools, args.rounds, scale)
    warnings = [text for work in args.works if (text := disagreement(work, found, tools))]

    for line in table(args.works, tools, found, absent, failed, floor_kib):
        print(line)
    for text in warnings:
        print(f"warning: {text}")
    args.out.write_text(
        json.dumps(
            {
                "machine": where,
                "versions": versions,
                "rounds": args.rounds,
                "scale": scale,
                "rss_floor_kib": floor_kib,
                "command": shlex.join(sys.argv),
                "works": {
                    work.name: {
                        "title": work.title,
                        "simulated_s": work.duration_s * scale,
                        "settings": work.dumbbell,
                        "tools": {tool.name: entry((work.name, tool.name), found, absent, failed) for tool in tools},
                    }
                    for work in args.works
                },
                "warnings": warnings,
            },
            indent=2,
        )
        + "\n"
    )
    note(f"every figure is in {args.out}")
    return 1 if failed or warnings else 0


def entry(key, found, absent, failed):
    """What bench.json keeps of one tool on one work."""
    if key not in found:
        return {"failed": failed[key]} if key in failed else {"skipped": absent[key]}
    runs = found[key]
    kept = {
        "median_packets_per_s": statistics.median(run.packets_per_s for run in runs),
        "runs": [
            {**run.report, "wall_s": run.wall_s, "cpu_s": run.cpu_s, "peak_rss_kib": run.peak_rss_kib} for run in runs
        ],
    }
    if key in failed:
        kept["failed"] = failed[key]
    return kept


if __name__ == "__main__":
    sys.exit(main())
