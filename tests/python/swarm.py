"""Random valid scenarios of every feature of the schema, and what must hold for each of them.

    python tests/python/swarm.py [--seconds 60] [--first 1] [--out swarm-faults]
    python tests/python/swarm.py --only SEED

A seed makes the same scenario everywhere. Each one is checked and run, and then: the check finds it good if, and only
if, the run begins; no panic and no error; it ends within a budget of
CPU time; the engine's count of packets adds up at every node (it checks itself); written as TOML and read again it is
the same scenario; and the digest is the same at another recording level, with links that go packet by packet, and
with every datagram sent through its bytes. A fault is written to a folder, with the command that shows it again.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
import traceback
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from support.swarm_links import Table
from support.swarm_scenarios import files, scenario
from tidegate import Scenario, _core
from tidegate.errors import InputError, ScenarioError
from tidegate.scenario.lower import RunInput, lower

CPU_SECONDS = 60.0
"""What a run of some simulated seconds may take; the slowest of ten thousand took a tenth of it."""


class Fault(Exception):
    """Something did not hold."""


@dataclass
class Tally:
    """What came out of all of it."""

    runs: int = 0
    scenarios: int = 0
    refused: int = 0
    flow_hours: float = 0.0
    slowest: float = 0.0
    faults: list[int] = field(default_factory=list)
    why: Counter[str] = field(default_factory=Counter)
    """Of drawn ones that were no scenarios."""


def _run(made: RunInput, what: str, tally: Tally) -> _core.Recording:
    begun = time.thread_time()

    def tick(_: float) -> bool:
        if time.thread_time() - begun > CPU_SECONDS:
            raise Fault(f"{what}: still running after {CPU_SECONDS:g} s of CPU time")
        return True

    done = _core.run(json.dumps(made.ir), made.inputs.traces, made.inputs.python, tick)
    tally.runs += 1
    tally.slowest = max(tally.slowest, time.thread_time() - begun)
    tally.flow_hours += len(json.loads(done.summary_json())["flows"]) * made.ir["duration"] / 3.6e12
    return done


def _same(one: object, other: object, what: str) -> None:
    if one != other:
        raise Fault(f"{what}: {other}, where the plain run has {one}")


def _objection(made: Scenario) -> str | None:
    """What `tidegate scenario check` says, if it does not find the scenario good."""
    try:
        made.check()
    except InputError as error:
        return str(error)
    return None


def check(data: Table, folder: Path, tally: Tally) -> None:
    """Runs a scenario in every way.

    Raises:
        ScenarioError: when it is none.
        Exception: when anything does not hold.
    """
    made = Scenario.from_dict(data, folder)
    objection = _objection(made)
    try:
        plain = lower(made)
        first = _run(plain, "run", tally)
    except (InputError, _core.Refused) as error:
        if objection is None:
            raise Fault(f"checked: good, but a run is refused: {error}") from None
        raise ScenarioError([str(error)]) from None
    if objection is not None:
        raise Fault(f"checked: {objection}, but it runs")
    again = lower(Scenario.parse(made.to_toml(), folder / "again.toml"))
    _same(plain.ir, again.ir, "written and read again")
    for table in first.table_names():
        first.table(table)
    if made.capture:
        first.pcapng("sender")
        first.pcapng("receiver")
    level = "summary" if made.record != "summary" else "packets"
    _same(first.digest, _run(lower(made, record=level), f"at {level}", tally).digest, f"at {level}")
    links = [{**one, "service": "managed"} for one in data["links"]]
    links = [
        {**one, "back": {**one["back"], "service": "managed"}} if isinstance(one.get("back"), dict) else one
        for one in links
    ]
    managed = lower(Scenario.from_dict({**data, "links": links}, folder), record="summary")
    _same(first.digest, _run(managed, "packet by packet", tally).digest, "packet by packet")
    in_bytes = lower(made, record="summary")
    in_bytes.ir["bytes"] = True
    _same(first.digest, _run(in_bytes, "through bytes", tally).digest, "through bytes")


def swarm(first: int, seconds: float, out: Path, tally: Tally, *, most: int | None = None) -> None:
    """Scenario after scenario until the time is over; faults go to `out`."""
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="tidegate-swarm-") as name:
        folder = Path(name)
        files(folder)
        seed = first
        while time.monotonic() - begun < seconds and (most is None or seed < first + most):
            data = scenario(seed)
            try:
                check(data, folder, tally)
                tally.scenarios += 1
            except ScenarioError as error:
                tally.refused += 1
                tally.why[str(error)] += 1
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # noqa: BLE001
                tally.faults.append(seed)
                _keep(seed, data, error, out)
            seed += 1


def _keep(seed: int, data: Table, error: BaseException, out: Path) -> None:
    place = out / f"seed-{seed}"
    place.mkdir(parents=True, exist_ok=True)
    files(place)
    command = f"python tests/python/swarm.py --only {seed}"
    (place / "scenario.toml").write_text(Scenario.from_dict(data, place).to_toml())
    why = "".join(traceback.format_exception(error))
    (place / "fault.txt").write_text(f"{command}\ntidegate run {place / 'scenario.toml'}\n\n{why}")
    print(f"seed {seed}: {type(error).__name__}: {error}\n  again: {command}\n  kept in {place}", flush=True)


def told(tally: Tally) -> str:
    """What came out, in one line."""
    return (
        f"{tally.scenarios} scenarios, {tally.runs} runs, {tally.flow_hours:.1f} flow-hours, {len(tally.faults)} faults "
        f"({tally.refused} drawn ones were no scenarios; the slowest run took {tally.slowest:.1f} s of CPU)"
    )


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    parser.add_argument("--only", type=int, help="one seed alone")
    parser.add_argument("--out", type=Path, default=Path("swarm-faults"), help="where faults are written")
    given = parser.parse_args()
    tally = Tally()
    if given.only is not None:
        swarm(given.only, float("inf"), given.out, tally, most=1)
    else:
        swarm(given.first, given.seconds, given.out, tally)
    print(told(tally))
    return 1 if tally.faults else 0


if __name__ == "__main__":
    sys.exit(main())
