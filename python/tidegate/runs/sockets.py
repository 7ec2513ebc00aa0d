"""Calls over sockets: tidegate's endpoints on UDP between two machines; each returns a run."""

from __future__ import annotations

import ipaddress
import json
import os
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tidegate import _core
from tidegate.errors import InputError, RunError
from tidegate.runs._tables import Fresh
from tidegate.runs._versions import versions
from tidegate.runs.jobs import run_of
from tidegate.runs.result import FORMAT, Run
from tidegate.scenario import Scenario, subject
from tidegate.scenario.assembling import engine_errors
from tidegate.scenario.lower import Lowered
from tidegate.units import Rate, Size

Progress = Callable[[str, float], bool]
"""Called every 50 ms with the phase (waiting, media, exchange) and its fraction done; returns whether to go on."""

SEAL = 24
"""Bytes that the session appends to each datagram: sequence number and tag (`crates/live/src/session`)."""

LEAST_KEY = 16
"""Bytes of the shortest key: 128 bits."""

SILENCE = 2
"""Seconds without a datagram from the other side after which a call ends (`crates/live/src/call`)."""

_MAX_KEY = 4096  # bytes; a longer file is probably no key

LEAST_RATE, MOST_RATE = Rate(50_000), Rate(1_000_000_000)
"""Bounds of the cap of a call; a single loop of ppoll cannot send more."""

USUAL_RATE = Rate(20_000_000)
"""Default cap of a call."""

_HEADERS = {4: 28, 6: 48}  # bytes of IP and UDP headers

_PLAIN = {
    "description": "One call over a socket.",
    "duration": "30s",
    "links": [{"name": "network", "from": "here", "to": "there", "capacity": "1Gbps"}],
    "flows": [{"name": "call", "from": "here", "to": "there", "media": {"controller": "gcc"}}],
}


def scenario_of(file: str | Path | None, changes: Mapping[str, Any] | None = None) -> Scenario:
    """The scenario of a call: from a file or by name; by default a call over an unspecified network.

    Raises:
        InputError: when there is no such scenario, or it has no media.
    """
    if file is not None:
        return Scenario.load(file, changes)
    default = Scenario.from_dict({"name": "call", **_PLAIN})
    return default.with_changes(changes) if changes else default


def over_socket(scenario: Scenario, peer: str) -> Scenario:
    """The scenario with the subject's overhead over a socket to `peer`, the session's bytes included.

    A simulation of the result counts these headers, too.

    Raises:
        InputError: when its subject has no media, or media that cannot go over a socket.
    """
    position = subject.of_scenario(scenario, "transport")
    flow = scenario.flows[position]
    assert flow.media is not None  # noqa: S101
    if any(flow.name in coupling.flows for coupling in scenario.couplings):
        raise InputError(
            f"{scenario.name}: {flow.name} is coupled with other flows; expected a single flow over a socket"
        )
    headers = Size(_HEADERS[ipaddress.ip_address(address(peer)[0]).version] + SEAL)
    if flow.media.overhead >= headers:
        return scenario
    data = scenario.to_dict()
    data["flows"][position]["media"]["overhead"] = str(headers)
    return Scenario.from_dict(data, scenario.base)


def address(text: str) -> tuple[str, int]:
    """Address and port of `ADDRESS:PORT`, with IPv6 in brackets.

    Raises:
        InputError: when it is no such address.

    >>> address("[::1]:5004")
    ('::1', 5004)
    """
    host, _, port = text.rpartition(":")
    bracketed = host.startswith("[") and host.endswith("]")
    try:
        ip = ipaddress.ip_address(host[1:-1] if bracketed else host)
    except ValueError:
        ip = None
    if ip is None or (ip.version == 6) != bracketed or not port.isascii() or not port.isdigit():  # noqa: PLR2004
        raise InputError(
            f"{text}: expected ADDRESS:PORT, such as 192.0.2.1:5004 or [2001:db8::1]:5004, without host names"
        )
    if not 1 <= int(port) <= 65535:  # noqa: PLR2004
        raise InputError(f"{text}: found port {port}; expected from 1 to 65535")
    return str(ip), int(port)


def peer_address(text: str) -> str:
    """Checks that a call can go to an address, and returns it.

    Raises:
        InputError: when it is not the address of a single machine.
    """
    ip = ipaddress.ip_address(address(text)[0])
    if ip.is_multicast or ip.is_unspecified or ip == ipaddress.ip_address("255.255.255.255"):
        raise InputError(f"{text}: expected the address of one machine")
    return text


def read_key(file: str | Path) -> bytes:
    """Reads the key in a file: all of its bytes.

    Raises:
        InputError: when there is no such file, other users may read it, or its length is out of bounds.
    """
    path = Path(file)
    make = f"head -c 32 /dev/urandom > {path}; chmod 600 {path}"
    try:
        with path.open("rb") as opened:
            mode = stat.S_IMODE(os.fstat(opened.fileno()).st_mode)
            data = opened.read(_MAX_KEY + 1)
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file; make a key with: {make}") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    if mode & 0o077:
        raise InputError(
            f"{path}: found mode {mode:04o}, so that other users can access the key; expected 0600: chmod 600 {path}"
        )
    if not LEAST_KEY <= len(data) <= _MAX_KEY:
        length = f"more than {_MAX_KEY}" if len(data) > _MAX_KEY else str(len(data))
        raise InputError(
            f"{path}: found {length} bytes; expected from {LEAST_KEY} to {_MAX_KEY}; make a key with: {make}"
        )
    return data


def capped(rate: Rate) -> Rate:
    """Checks a cap on the rate, and returns it.

    Raises:
        InputError: when it is out of bounds.
    """
    if not LEAST_RATE <= rate <= MOST_RATE:
        raise InputError(f"--max-rate: found {rate}; expected from {LEAST_RATE} to {MOST_RATE}")
    return rate


def send(
    scenario: Scenario,
    peer: str,
    key: bytes,
    *,
    max_rate: Rate = USUAL_RATE,
    bind: str | None = None,
    seed: int | None = None,
    record: str | None = None,
    progress: Progress | None = None,
    capture: Path | None = None,
) -> Run:
    """Sends the subject of a scenario over UDP; returns when the call is over.

    Args:
        scenario: The scenario; its subject is sent, and its links serve only for simulations.
        peer: Address of `receive`: `ADDRESS:PORT`.
        key: Key that both sides share, at least 16 bytes.
        max_rate: Cap of the sending rate, apart from bursts of a quarter of a second.
        bind: Local address and port.
        seed: Instead of the scenario's.
        record: Level of recording, instead of the scenario's.
        progress: Called every 50 ms.
        capture: Capture file (pcapng) of this side's socket, the handshake included; see `capture_failed` in
            `run.about["live"]`.

    Raises:
        InputError: when an argument is not usable, or there is no route to the address.
        RunError: when the peer does not answer, or the other side refuses.
    """
    extended = over_socket(scenario, peer_address(peer))
    lowered = Lowered(extended)
    run_input = lowered.for_run(seed=seed, record=record)
    flow = extended.flows[subject.of_scenario(extended, "transport")].name
    flows = [entry for entry in run_input.ir["flows"] if entry["name"] == flow]
    ir = {key: value for key, value in run_input.ir.items() if key not in {"couplings", "sessions", "radios"}}
    about = {"about": {"scenario": extended.to_toml(), "seed": run_input.ir["seed"], "name": extended.name}}
    with engine_errors(extended):
        recording, facts_json = _engine("live_send")(
            json.dumps({**ir, "links": [], "flows": flows}),
            peer,
            key,
            int(capped(max_rate)),
            json.dumps(about),
            bind,
            run_input.inputs.python,
            progress,
            None if capture is None else str(capture),
        )
    return _with_facts(run_of(extended, run_input, recording), facts_json)


def receive(
    bind: str,
    key: bytes,
    *,
    max_rate: Rate = USUAL_RATE,
    progress: Progress | None = None,
    capture: Path | None = None,
) -> Run:
    """Waits for a call and answers it; returns when it is over.

    Args:
        bind: Local address and port: `ADDRESS:PORT`.
        key: Key that both sides share, at least 16 bytes.
        max_rate: Cap of the rate of feedback.
        progress: Called every 50 ms.
        capture: As in `send`.

    Raises:
        InputError: when the address is not of this machine, or the port is in use.
        RunError: when no call came before `progress` returned false, or the caller speaks another version.
    """
    address(bind)
    try:
        recording, facts_json = _engine("live_receive")(
            bind, key, int(capped(max_rate)), "{}", progress, None if capture is None else str(capture)
        )
    except _core.RunError as error:
        raise RunError(str(error)) from None
    except ValueError as error:
        raise InputError(str(error)) from None
    facts = json.loads(facts_json)
    scenario, name = _caller_scenario(facts)
    summary = {**json.loads(recording.summary_json()), "name": name, "seed": facts["seed"]}
    about = {
        "format": FORMAT,
        "name": name,
        "seed": facts["seed"],
        "digest": recording.digest,
        "inputs": {},
        "versions": dict(versions()),
        "base": str(Path.cwd()),
        "scenario": scenario.to_toml(),
        "summary": summary,
    }
    return _with_facts(Run(about, Fresh(recording, capture=False)), facts_json)


def _caller_scenario(facts: Mapping[str, Any]) -> tuple[Scenario, str]:
    """The scenario in the caller's facts, and its name; the default one where it is missing or cannot be parsed."""
    default = scenario_of(None)
    try:
        about = json.loads(facts["about"] or "{}")["about"]
        scenario = Scenario.parse(about["scenario"], f"{default.name}.toml")
    except (KeyError, TypeError, ValueError, InputError):
        return default, default.name
    return scenario, scenario.name


def _engine(name: str) -> Any:
    function = getattr(_core, name, None)
    if function is None:
        raise InputError("calls over sockets need Linux")
    return function


def _with_facts(run: Run, facts_json: str) -> Run:
    facts = {key: value for key, value in json.loads(facts_json).items() if key != "about"}
    return Run({**run.about, "live": facts}, run._tables)  # noqa: SLF001
