"""Calls over sockets: our endpoints on UDP between two machines, and the run that each of them leaves."""

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
from tidegate.runs.jobs import engine_errors, run_of
from tidegate.runs.recorded import FORMAT, Run
from tidegate.scenario import Scenario, subject
from tidegate.scenario.lower import Lowered
from tidegate.units import Rate, Size

Progress = Callable[[str, float], bool]
"""Is told a phase (waiting, media, exchange) and its share every 50 ms, and says whether to go on."""

SEAL = 24
"""Bytes that the session puts behind each datagram: sequence number and tag (`crates/live/src/session`)."""

LEAST_KEY = 16
"""Bytes of the shortest key: 128 bits."""

_MOST_KEY = 4096  # a file that is longer is hardly a key

LEAST_RATE, MOST_RATE = Rate(50_000), Rate(1_000_000_000)
"""Between these a call may be capped; one loop of ppoll does not send more."""

USUAL_RATE = Rate(20_000_000)
"""What a call is capped at by default."""

_HEADERS = {4: 28, 6: 48}  # bytes of IP and UDP headers

_PLAIN = {
    "description": "One call over a socket.",
    "duration": "30s",
    "links": [{"name": "network", "from": "here", "to": "there", "capacity": "1Gbps"}],
    "flows": [{"name": "call", "from": "here", "to": "there", "media": {"controller": "gcc"}}],
}


def scenario_of(file: str | Path | None, changes: Mapping[str, Any] | None = None) -> Scenario:
    """The scenario of a call: a file or a name, or one call over a network of which nothing is known.

    Raises:
        InputError: when there is no such scenario, or it has no media.
    """
    if file is not None:
        return Scenario.load(file, changes)
    plain = Scenario.from_dict({"name": "call", **_PLAIN})
    return plain.with_changes(changes) if changes else plain


def over_socket(scenario: Scenario, peer: str) -> Scenario:
    """The scenario with the headers that its subject's packets have over a socket to `peer`, the session's included.

    So a simulation of it counts them, too.

    Raises:
        InputError: when its subject has no media, or media that cannot go over a socket.
    """
    at = subject.of_scenario(scenario, "transport")
    flow = scenario.flows[at]
    assert flow.media is not None  # noqa: S101
    if any(flow.name in coupling.flows for coupling in scenario.couplings):
        raise InputError(f"{scenario.name}: {flow.name} is coupled with others; expected one flow alone over a socket")
    headers = Size(_HEADERS[ipaddress.ip_address(address(peer)[0]).version] + SEAL)
    if flow.media.overhead >= headers:
        return scenario
    data = scenario.to_dict()
    data["flows"][at]["media"]["overhead"] = str(headers)
    return Scenario.from_dict(data, scenario.base)


def address(text: str) -> tuple[str, int]:
    """Address and port of `ADDRESS:PORT`, with IPv6 in brackets.

    Raises:
        InputError: when it is none.

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
        raise InputError(f"{text}: expected ADDRESS:PORT, such as 192.0.2.1:5004 or [2001:db8::1]:5004; no names")
    if not 1 <= int(port) <= 65535:  # noqa: PLR2004
        raise InputError(f"{text}: port {port}; expected 1 to 65535")
    return str(ip), int(port)


def peer_address(text: str) -> str:
    """An address that a call can go to.

    Raises:
        InputError: when it is none of a single machine.
    """
    ip = ipaddress.ip_address(address(text)[0])
    if ip.is_multicast or ip.is_unspecified or ip == ipaddress.ip_address("255.255.255.255"):
        raise InputError(f"{text}: expected the address of one machine")
    return text


def read_key(file: str | Path) -> bytes:
    """The key in a file, all its bytes.

    Raises:
        InputError: when there is none, others may read it, or it is too short.
    """
    path = Path(file)
    make = f"head -c 32 /dev/urandom > {path}; chmod 600 {path}"
    try:
        with path.open("rb") as opened:
            mode = stat.S_IMODE(os.fstat(opened.fileno()).st_mode)
            data = opened.read(_MOST_KEY + 1)
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file; this makes a key: {make}") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    if mode & 0o077:
        raise InputError(
            f"{path}: found mode {mode:04o}, which lets others at the key; expected 0600: chmod 600 {path}"
        )
    if not LEAST_KEY <= len(data) <= _MOST_KEY:
        found = f"more than {_MOST_KEY}" if len(data) > _MOST_KEY else str(len(data))
        raise InputError(
            f"{path}: found {found} bytes; expected from {LEAST_KEY} to {_MOST_KEY}; this makes a key: {make}"
        )
    return data


def capped(rate: Rate) -> Rate:
    """A cap on the rate.

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
    """Sends the subject of a scenario over UDP, and stays until the call is over.

    Args:
        scenario: What is sent; its links say what a simulation beside it has for a network.
        peer: Where `receive` is: `ADDRESS:PORT`.
        key: What both sides hold, at least 16 bytes.
        max_rate: More is never sent, but for bursts of a quarter of a second.
        bind: From which address and port.
        seed: Instead of the scenario's.
        record: How much is kept, instead of the scenario's.
        progress: Asked every 50 ms.
        capture: A file (pcapng) for what this side's socket sees, the handshake included; see `capture_failed` in
            `run.about["live"]`.

    Raises:
        InputError: when something does not fit, or there is no way to the address.
        RunError: when nobody answers, or the other side refuses.
    """
    made = over_socket(scenario, peer_address(peer))
    lowered = Lowered(made)
    given = lowered.for_run(seed=seed, record=record)
    flow = made.flows[subject.of_scenario(made, "transport")].name
    flows = [one for one in given.ir["flows"] if one["name"] == flow]
    ir = {key: value for key, value in given.ir.items() if key not in {"couplings", "sessions", "radios"}}
    about = {"about": {"scenario": made.to_toml(), "seed": given.ir["seed"], "name": made.name}}
    with engine_errors(made):
        recording, told = _engine("live_send")(
            json.dumps({**ir, "links": [], "flows": flows}),
            peer,
            key,
            int(capped(max_rate)),
            json.dumps(about),
            bind,
            given.inputs.python,
            progress,
            None if capture is None else str(capture),
        )
    return _with(run_of(made, given, recording), told)


def receive(
    bind: str,
    key: bytes,
    *,
    max_rate: Rate = USUAL_RATE,
    progress: Progress | None = None,
    capture: Path | None = None,
) -> Run:
    """Waits for a call, answers it, and stays until it is over.

    Args:
        bind: At which address and port: `ADDRESS:PORT`.
        key: What both sides hold, at least 16 bytes.
        max_rate: More feedback is never sent.
        progress: Asked every 50 ms.
        capture: As in `send`.

    Raises:
        InputError: when the address is not of this machine, or the port is in use.
        RunError: when no call came before `progress` said not to go on, or the caller speaks another version.
    """
    address(bind)
    try:
        recording, told = _engine("live_receive")(
            bind, key, int(capped(max_rate)), "{}", progress, None if capture is None else str(capture)
        )
    except _core.RunError as error:
        raise RunError(str(error)) from None
    except ValueError as error:
        raise InputError(str(error)) from None
    facts = json.loads(told)
    made, name = _told_of(facts)
    summary = {**json.loads(recording.summary_json()), "name": name, "seed": facts["seed"]}
    about = {
        "format": FORMAT,
        "name": name,
        "seed": facts["seed"],
        "digest": recording.digest,
        "inputs": {},
        "versions": dict(versions()),
        "base": str(Path.cwd()),
        "scenario": made.to_toml(),
        "summary": summary,
    }
    return _with(Run(about, Fresh(recording, capture=False)), told)


def _told_of(facts: Mapping[str, Any]) -> tuple[Scenario, str]:
    """The scenario that the caller has told of; a plain one where it has not, or where it cannot be read here."""
    plain = scenario_of(None)
    try:
        about = json.loads(facts["about"] or "{}")["about"]
        made = Scenario.parse(about["scenario"], f"{plain.name}.toml")
    except (KeyError, TypeError, ValueError, InputError):
        return plain, plain.name
    return made, made.name


def _engine(name: str) -> Any:
    found = getattr(_core, name, None)
    if found is None:
        raise InputError("calls over sockets need Linux")
    return found


def _with(run: Run, told: str) -> Run:
    facts = {key: value for key, value in json.loads(told).items() if key != "about"}
    return Run({**run.about, "live": facts}, run._tables)  # noqa: SLF001
