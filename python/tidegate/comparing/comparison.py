"""Controllers side by side: the same network, the same luck, the same competitors."""

from __future__ import annotations

import itertools
import json
import re
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral
from pathlib import Path
from typing import Any, Self

from tidegate import _core
from tidegate._files import named, write_file
from tidegate.control import registry
from tidegate.errors import InputError, RunError
from tidegate.results._folders import write_folder
from tidegate.results._saved import Contents, read_json
from tidegate.running import FolderJob, Run, RunJob, pool, versions
from tidegate.scenario import Scenario
from tidegate.scenario import _subject as subject
from tidegate.scenario._lower import Lowered
from tidegate.scenario._reading import Files
from tidegate.scenario.scenario import Level
from tidegate.show.table import ComparisonTable, flows_csv
from tidegate.units import Duration, Rate, Size, show

COMPARISON_FILE = "comparison.json"
DEFAULT = "lte-generated"
"""The scenario of comparisons that name none."""
_MOST_SEEDS = 100_000
_LONGEST_NAME = 150  # bytes of a file name; the least limit of usual file systems is 255


@dataclass(frozen=True)
class Comparison:
    """Runs of several controllers over the same scenario and seeds."""

    scenario: Scenario
    """The scenario; the controllers take the place of its subject's."""
    runs: Mapping[str, Sequence[Run]]
    """The runs of each controller, in order of seeds."""
    command: str = ""
    """What was typed to get it."""
    attached: Mapping[str, bytes] = field(default_factory=dict)
    """Further files by their names: of real video `quality.png`, `contact-sheet.png` and `quality-*.csv`."""
    failed: Mapping[str, str] = field(default_factory=dict)
    """Why the runs of a controller are not there, by its name."""
    table: ComparisonTable = field(init=False)
    """Means over seeds with 95 % intervals."""

    def __post_init__(self) -> None:
        """Gives each run its controller's name, and makes the table."""
        named = {name: [run.under(name) for run in some] for name, some in self.runs.items()}
        object.__setattr__(self, "runs", named)
        object.__setattr__(self, "table", ComparisonTable.of(self.runs, self.failed))

    @property
    def controllers(self) -> list[str]:
        """What was compared."""
        return list(self.runs)

    @property
    def seeds(self) -> list[int]:
        """With which luck."""
        return [run.seed for run in next(iter(self.runs.values()))]

    def to_data(self) -> dict[str, Any]:
        """As plain data: what `--json` prints."""
        return {
            "scenario": self.scenario.name,
            "controllers": self.controllers,
            "failed": dict(self.failed),
            "seeds": self.seeds,
            "command": self.command,
            "versions": dict(versions()),
            "table": self.table.to_data(),
            "quality": dict(self.table.verdicts),
            "runs": [
                {"controller": name, "seed": run.seed, "digest": run.digest, "summary": run.summary}
                for name, some in self.runs.items()
                for run in some
            ],
        }

    def to_csv(self) -> str:
        """As CSV, a line for each controller, seed and flow with all its metrics, in the summary's own units."""
        return flows_csv(["controller"], (([name], run.summary) for name, some in self.runs.items() for run in some))

    def save(self, folder: str | Path) -> Path:
        """Writes table, picture, report and runs into a folder, whole or not at all.

        An earlier comparison there is replaced; files in it that are not tidegate's, or were changed, are kept.

        Raises:
            InputError: when a controller has two runs of one seed.
            OutputError: when it cannot be written, or something else is there.
        """
        from tidegate.show import plot, report

        path = Path(folder)
        with write_folder(path, COMPARISON_FILE) as making:
            places = []
            folders = file_names(self.runs)
            for name, some in self.runs.items():
                for run in some:
                    place = f"runs/{folders[name]}-seed{run.seed}"
                    if (making / place).exists():
                        raise InputError(f"{name}: has two runs of seed {run.seed}; expected one of each")
                    run.save(making / place)
                    places.append({"controller": name, "seed": run.seed, "folder": place})
            write_file(making / "table.md", self.table.to_markdown())
            write_file(making / "table.csv", self.table.to_csv())
            write_file(making / "runs.csv", self.to_csv())
            write_file(making / "scenario.toml", self.scenario.to_toml())
            for name, data in self.attached.items():
                write_file(making / name, data)
            with named(path):
                plot.comparison(self.runs).savefig(making / "comparison.png")
                report.write(making / "report.html", self)
            about = {
                "format": 1,
                "command": self.command,
                "base": str(self.scenario.base.resolve()),
                "scenario": self.scenario.to_toml(),
                "name": self.scenario.name,
                "runs": places,
                "attached": list(self.attached),
                "failed": dict(self.failed),
            }
            write_file(making / COMPARISON_FILE, json.dumps(about, indent=1) + "\n")
        return path

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Reads what [save][tidegate.comparing.Comparison.save] wrote.

        Raises:
            InputError: when there is no comparison, or it is damaged.
        """
        path = Path(folder)
        saved = Contents(path)
        about = read_json(saved.file(COMPARISON_FILE))
        try:
            scenario = Scenario.parse(about["scenario"], Path(about["base"]) / f"{about['name']}.toml")
            runs: dict[str, list[Run]] = {}
            for one in about["runs"]:
                runs.setdefault(str(one["controller"]), []).append(Run.load(path / one["folder"]))
            names = [Path(name).name for name in about.get("attached", [])]
            attached = {name: saved.file(name).read_bytes() for name in names}
            if not runs:
                raise InputError(f"{path / COMPARISON_FILE}: is damaged: it has no runs")
            failed = {label: str(why) for label, why in about.get("failed", {}).items()}
            return cls(scenario, runs, str(about["command"]), attached, failed)
        except OSError as error:
            raise InputError(f"{path}: is not whole: {error.filename} cannot be read") from None
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InputError(f"{path / COMPARISON_FILE}: is damaged: {error!r}") from None


def file_name(label: str) -> str:
    """A controller's label as part of a file name.

    >>> file_name("gcc:draft-02,k_up=0.01")
    'gcc-draft-02-k_up-0.01'
    """
    return re.sub(r"[^A-Za-z0-9_.]+", "-", label).strip("-.") or "controller"


def file_names(labels: Iterable[str]) -> dict[str, str]:
    """A file name for each label, different ones for different labels, also where capitals do not count.

    >>> file_names(["gcc:a", "gcc-a", "GCC:a", "fixed"])
    {'gcc:a': 'gcc-a', 'gcc-a': 'gcc-a-2', 'GCC:a': 'GCC-a-3', 'fixed': 'fixed'}
    """
    found: dict[str, str] = {}
    taken: set[str] = set()
    for label in labels:
        first = file_name(label)[:_LONGEST_NAME]
        tries = (first if number == 1 else f"{first}-{number}" for number in itertools.count(1))
        found[label] = next(name for name in tries if name.lower() not in taken)
        taken.add(found[label].lower())
    return found


def seeds_from(count: int, first: int = 1) -> list[int]:
    """The seeds `first`, `first` + 1 and so on.

    Raises:
        InputError: when there are none, or too many.
    """
    if not 1 <= count <= _MOST_SEEDS:
        raise InputError(f"seeds: found {count}; expected from 1 to {_MOST_SEEDS}")
    return list(range(first, first + count))


def seeds_of(seeds: int | Sequence[int]) -> list[int]:
    """The seeds that were asked for: how many, counted from 1, or which.

    Raises:
        InputError: when there are none, too many, one twice, or something that is no seed.
    """
    if isinstance(seeds, int) and not isinstance(seeds, bool):
        return seeds_from(seeds)
    if isinstance(seeds, bool | str) or not isinstance(seeds, Iterable):
        raise InputError(f"seeds: found {seeds!r}; expected how many, or a list of whole numbers")
    chosen: list[Any] = list(seeds)
    if not chosen:
        raise InputError("seeds: found none; expected at least one")
    known: set[Any] = set()
    for number, seed in enumerate(chosen):
        if isinstance(seed, bool) or not isinstance(seed, Integral) or not 0 <= int(seed) < 2**64:
            raise InputError(f"seeds[{number}]: found {seed!r}; expected a whole number from 0 to 2^64 - 1")
        if seed in known:
            raise InputError(f"seeds: {seed} is named twice; the same luck again says nothing new")
        known.add(seed)
    return [int(seed) for seed in chosen]


def with_controller(scenario: Scenario, controller: str) -> Scenario:
    """The scenario with another controller in its subject.

    Raises:
        InputError: when the subject has no media.
        ControllerError: when there is no such controller.
    """
    at = subject.of_scenario(scenario, "controller")
    registry.choose(controller, Path())
    data = scenario.to_dict()
    data["flows"][at]["media"]["controller"] = anchored(controller)
    return Scenario.from_dict(data, scenario.base)


def anchored(controller: str) -> str:
    """A Python file named on the command line begins where the person is, not where the scenario is."""
    match = re.fullmatch(r"python:([^:]+\.py)(:.*)", controller)
    return f"python:{Path(match[1]).resolve()}{match[2]}" if match else controller


def compare(
    controllers: Iterable[str],
    scenario: Scenario | str | Path | None = None,
    *,
    seeds: int | Sequence[int] = 1,
    record: Level | None = None,
    workers: int | None = None,
    processes: bool | None = False,
    progress: pool.Progress | None = None,
    command: str = "",
    media: str | None = None,
) -> Comparison:
    """Runs a scenario with each of several controllers and each of several seeds.

    Args:
        controllers: Names with their parts, such as `gcc`, `gcc:draft-02`, `fixed:2Mbps`.
        scenario: A scenario, or the path or name of one; a generated LTE link by default.
        seeds: How many, counted from 1, or which.
        record: How much each run keeps, instead of the scenario's.
        workers: How many runs at once; one a core by default.
        processes: Whether to use processes, for controllers that are busy in Python; None: where there are such.
        progress: Told the fraction of simulated time that is done.
        command: What was typed, for the record.
        media: A clip that is really encoded, sent and decoded, as `--media` takes it: adds the metrics of pictures.

    Raises:
        InputError: when scenario, controllers, seeds or clip are not usable.
        RunError: when the runs of every controller fail; those of some are in `failed`, and the others are kept.

    >>> lte = scenario_for(duration="5s")
    >>> compare(["gcc", "fixed:1Mbps"], lte, seeds=2).seeds
    [1, 2]
    """
    if isinstance(controllers, str):
        raise InputError(f"controllers: found {show(controllers)}; expected several, such as [{show(controllers)}]")
    labels = list(controllers)
    if not labels:
        raise InputError("name at least one controller, for example gcc")
    if len(set(labels)) != len(labels):
        twice = next(label for label in labels if labels.count(label) > 1)
        raise InputError(f"{twice}: is named twice")
    match scenario:
        case None:
            base = Scenario.load(DEFAULT)
        case Scenario():
            base = scenario
        case _:
            base = Scenario.load(scenario)
    chosen = seeds_of(seeds)
    every = [with_controller(base, label) for label in labels]

    def runs_of(
        variants: Iterable[Scenario], level: Level | None, tell: pool.Progress | None
    ) -> tuple[dict[str, list[Run]], dict[str, str]]:
        files = Files()
        lowered = [Lowered(variant, files) for variant in variants]
        split = busy_in_python(lowered, len(lowered) * len(chosen), workers) if processes is None else processes
        jobs = [RunJob(one, seed, level) for one in lowered for seed in chosen]
        done = attempt(jobs, workers=workers, processes=split, progress=tell, keep_going=len(labels) > 1)
        return _sorted({label: done[at * len(chosen) : (at + 1) * len(chosen)] for at, label in enumerate(labels)})

    attached: dict[str, bytes] = {}
    if media is None:
        runs, failed = runs_of(every, record, progress)
    else:
        from tidegate.media import _results as results

        chain = results.Chain(media, workers=workers, progress=progress)
        base = chain.feed(base)
        runs, failed = runs_of((with_controller(base, label) for label in labels), "packets", chain.running)
        every_judged = iter(chain.judge([run for some in runs.values() for run in some]))
        judged = {label: list(itertools.islice(every_judged, len(some))) for label, some in runs.items()}
        runs = {label: [one.judged_run() for one in some] for label, some in judged.items()}
        attached = results.files(judged)
    return Comparison(base, runs, command, attached, failed)


def _sorted(done: Mapping[str, Sequence[Run | BaseException]]) -> tuple[dict[str, list[Run]], dict[str, str]]:
    """The runs of those whose runs all went well, and why the others have none."""
    runs, failed = {}, {}
    for label, some in done.items():
        errors = [one for one in some if isinstance(one, BaseException)]
        if not errors:
            runs[label] = [one for one in some if isinstance(one, Run)]
        elif isinstance(errors[0], RunError | InputError | _core.InternalError):
            failed[label] = str(errors[0])
        else:
            raise errors[0]
    if not runs:
        raise next(one for some in done.values() for one in some if isinstance(one, BaseException))
    return runs, failed


def busy_in_python(lowered: Iterable[Lowered], runs: int, workers: int | None) -> bool:
    """Whether it pays to use processes: a controller in Python holds the interpreter lock."""
    if runs == 1 or (workers or pool.cores()) == 1:
        return False
    return any(one.inputs.python for one in lowered)


def execute(
    jobs: Sequence[RunJob],
    *,
    workers: int | None = None,
    processes: bool = False,
    progress: pool.Progress | None = None,
) -> list[Run]:
    """Does the runs, at once over threads or processes, and returns them in order.

    Raises:
        RunError: when a run fails.
    """
    done = attempt(jobs, workers=workers, processes=processes, progress=progress)
    return [run for run in done if isinstance(run, Run)]


def attempt(
    jobs: Sequence[RunJob],
    *,
    workers: int | None = None,
    processes: bool = False,
    progress: pool.Progress | None = None,
    keep_going: bool = False,
) -> list[Run | BaseException]:
    """The same; to keep going, with an error in the place of each run that failed.

    Raises:
        RunError: when a run fails, and not to keep going; when a process of a run went away.
    """
    if not processes or len(jobs) < 2:  # noqa: PLR2004
        return pool.run_all(jobs, workers=workers, progress=progress, keep_going=keep_going)
    with tempfile.TemporaryDirectory(prefix="tidegate-", ignore_cleanup_errors=True) as scratch:
        folders = [FolderJob(job, Path(scratch) / str(at)) for at, job in enumerate(jobs)]
        places = pool.run_all(folders, workers=workers, processes=True, progress=progress, keep_going=keep_going)
        return [Run.load(place).kept() if isinstance(place, Path) else place for place in places]


# --- scenarios put together from a few words ------------------------------------------------------

_CROSS = re.compile(r"(?P<what>[^@*]+)(?:\*(?P<count>\d{1,5}))?(?:@(?P<start>[^-]+)(?:-(?P<stop>[^-]+))?)?")
_CROSS_FORMS = "tcp, tcp:cubic@20s, udp:1Mbps@10s-30s, udp:poisson:500kbps, web*10, media:gcc@5s; *N makes N of them"


def scenario_for(
    *,
    link: str | Path | None = None,
    capacity: str | None = None,
    delay: str | None = None,
    queue: str | None = None,
    cross: Iterable[str] = (),
    duration: str | None = None,
    media_source: str | None = None,
    base: Scenario | str | Path | None = None,
) -> Scenario:
    """A scenario from a few words, as `tidegate compare` puts it together.

    Args:
        link: File with a recorded network; a generated LTE link if nothing says otherwise.
        capacity: A constant capacity instead.
        delay: One-way propagation delay.
        queue: Queue limit in time, packets or bytes: `300ms`, `100p`, `64kB`.
        cross: Competing flows, such as `tcp:cubic@20s` or `udp:1Mbps@10s-30s`.
        duration: How long.
        media_source: statistical, ideal or greedy.
        base: A scenario to begin with; its first link and its subject are changed.

    Raises:
        InputError: when something does not fit.

    >>> scenario_for(capacity="3Mbps", cross=["tcp:cubic@20s"]).flows[1].tcp.algorithm
    'cubic'
    """
    if link is not None and capacity is not None:
        raise InputError("a recorded link has its own capacity; give --link or --capacity")
    scenario = base if isinstance(base, Scenario) else Scenario.load(base or DEFAULT)
    data, where = scenario.to_dict(), scenario.base
    if link is not None or capacity is not None:
        # it is another network now, and what was said of the first one no longer holds
        data.pop("description", None)
        data.pop("source", None)
        data["name"] = file_name(Path(Path(link).name.removesuffix(".gz")).stem if link is not None else str(capacity))[
            :64
        ]
    first = data["links"][0]
    if link is not None:
        first["capacity"] = {"trace": str(Path(link).resolve())}
    if capacity is not None:
        first["capacity"] = capacity
    if delay is not None:
        first["delay"] = str(_named("--delay", Duration.parse, delay))
    if queue is not None:
        first["queue"] = _queue(queue)
    if duration is not None:
        data["duration"] = str(_named("--duration", Duration.parse, duration))
    if media_source is not None:
        try:
            media = data["flows"][subject.of_scenario(scenario, "video")]["media"]
        except InputError as error:
            raise InputError(f"--media-source: {error}") from None
        media["video"] = {**(media.get("video") or {}), "source": media_source}
    taken = {flow.get("name", "flow") for flow in data.get("flows", [])}
    for text in cross:
        if not taken:
            raise InputError(f"--cross {text}: {scenario.name} has no flow whose way it could share, only sessions")
        ends = data["flows"][subject.place([(flow.name, flow.kind) for flow in scenario.flows])]
        data["flows"].append(_cross(text, ends, taken))
    return Scenario.from_dict(data, where)


def _named(option: str, parse: Any, text: str) -> Any:
    try:
        return parse(text)
    except InputError as error:
        raise InputError(f"{option}: {error}") from None


def _queue(text: str) -> dict[str, Any]:
    packets = re.fullmatch(r"(\d{1,9})\s*(?:p|packets)", text)
    if packets:
        return {"packets": int(packets[1])}
    for key, kind in (("time", Duration), ("bytes", Size)):
        try:
            return {key: str(kind.parse(text))}
        except InputError:
            continue
    right = 'expected a time, a size or packets: "300ms", "64kB", "100p"'
    raise InputError(f"--queue: found {show(text)}; {right}")


def _cross(text: str, ends: Mapping[str, Any], taken: set[str]) -> dict[str, Any]:
    match = _CROSS.fullmatch(text.strip())
    if match is None:
        raise InputError(f"--cross: found {show(text)}; expected something like {_CROSS_FORMS}")
    kind, _, rest = match["what"].partition(":")
    flow: dict[str, Any] = {key: ends[key] for key in ("from", "to") if key in ends}
    flow["name"] = _free(kind, taken)
    for key in ("start", "stop"):
        if match[key]:
            flow[key] = str(_named(f"--cross {text}", Duration.parse, match[key]))
    if match["count"]:
        flow["count"] = int(match["count"])
    match kind:
        case "tcp":
            flow["tcp"] = {"algorithm": rest} if rest else {}
        case "web":
            flow["tcp"] = {"workload": {"web": {}}} | ({"algorithm": rest} if rest else {})
        case "udp" if rest:
            pattern, colon, rate = rest.rpartition(":")
            flow["udp"] = {"rate": str(_named(f"--cross {text}", Rate.parse, rate))}
            flow["udp"] |= {"pattern": pattern} if colon else {}
        case "media" if rest:
            registry.choose(rest, Path())
            flow["media"] = {"controller": anchored(rest)}
        case _:
            raise InputError(f"--cross: found {show(text)}; expected something like {_CROSS_FORMS}")
    return flow


def _free(kind: str, taken: set[str]) -> str:
    names = (kind if number == 1 else f"{kind}{number}" for number in range(1, 10**6))
    name = next(name for name in names if name not in taken)
    taken.add(name)
    return name
