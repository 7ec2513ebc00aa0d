"""The tidegate side of ``make bench``: ``python benches/peers/engine.py WORK`` prints one line of JSON.

The works are those that ns-2, ns-3 and SimPy do in ``benches/peers``: a dumbbell with three hops a
packet (access 1 Gb/s 1 ms, bottleneck 20 ms, access), a drop-tail queue at each hop.
"""

from __future__ import annotations

import json
import resource
import sys
from pathlib import Path
from typing import Any

from tidegate import _core
from tidegate.control import registry as controllers
from tidegate.scenario import Scenario
from tidegate.scenario.lower import lower
from tidegate.scenario.population import lower_radio, members_of
from tidegate.scenario.radio import Lte, Users

SECOND = 10**9
MILLISECOND = 10**6
GIGABIT = 10**9

#: What each work is, in words, with its simulated seconds.
WORKS: dict[str, tuple[str, float]] = {
    "cbr10": ("10 CBR flows of 1 Mb/s, 1200 B, over 20 Mb/s", 600),
    "tcp5": ("1 CBR + 5 SACK TCP over 50 Mb/s, 20 ms", 300),
    "cbr1000": ("1000 CBR flows of 1 Mb/s over 1.2 Gb/s", 20),
    "tail100": ("100 CBR flows of 1 Mb/s over 98 Mb/s, drop-tail", 60),
    "fq100": ("the same through FQ-CoDel", 60),
    "call": ("one GCC video call up to 2.5 Mb/s", 3600),
    "call2023": ("the same under gcc:libwebrtc-v1, which does not probe", 3600),
    "calls100": ("100 GCC video calls over 100 Mb/s", 600),
    "sprout": ("one Sprout call up to 2.5 Mb/s", 3600),
    "lte": ("LTE: 21 cells of 10 MHz, 100 users, 1 Mb/s to each", 60),
    "group1000": ("an RTP session of 1000 members, AVP and AVPF, one sender of 500 kb/s", 600),
    "thesis": ("the thesis's sender and network, under GCC; in SimPy, too", 3600),
}


#: Its defaults (RFC 8290 section 5.2).
FQ_CODEL = {
    "target": 5 * MILLISECOND,
    "interval": 100 * MILLISECOND,
    "quantum": 1514,
    "flows": 1024,
    "maxpacket": 1500,
    "ecn": True,
}


def _link(name: str, ends: tuple[str, str], rate: int, delay: int, packets: int) -> dict[str, Any]:
    return {
        "name": name,
        "from": ends[0],
        "to": ends[1],
        "capacity": {"constant": rate},
        "settings": {"delay": delay, "queue": {"packets": packets}},
    }


def _dumbbell(rate: int, packets: int, pairs: int) -> list[dict[str, Any]]:
    links = []
    for a, b, way in (("left", "right", "there"), ("right", "left", "back")):
        links.append(_link(f"bottleneck {way}", (a, b), rate, 20 * MILLISECOND, packets))
    for i in range(pairs):
        for host, router in ((f"s{i}", "left"), (f"t{i}", "right")):
            links.append(_link(f"{host} up", (host, router), GIGABIT, MILLISECOND, 1000))
            links.append(_link(f"{host} down", (router, host), GIGABIT, MILLISECOND, 1000))
    return links


def _cbr(index: int, flows: int, pairs: int) -> dict[str, Any]:
    host = index % pairs
    return {
        "name": f"cbr{index}",
        "from": f"s{host}",
        "to": f"t{host}",
        # spread over one packet interval, as in the peers
        "start": 9_600_000 * index // flows,
        "kind": {"udp": {"pattern": "cbr", "rate": 10**6, "packet_size": 1200}},
    }


def _tcp(index: int, pairs: int) -> dict[str, Any]:
    host = (index + 1) % pairs
    return {
        "name": f"tcp{index}",
        "from": f"s{host}",
        "to": f"t{host}",
        "start": 100 * MILLISECOND * index,
        "kind": {
            "tcp": {
                "algorithm": "sack",
                "workload": "long",
                "initial_window": 10,
                "min_rto": SECOND,
                "delayed_ack": False,
                "handshake": False,
                # all that a header can say (RFC 7323 section 2.3)
                "receive_window": 65_535 << 14,
                "packet_size": 1500,
            }
        },
    }


def _call(index: int, pairs: int, controller: dict[str, Any], feedback: str) -> dict[str, Any]:
    host = index % pairs
    return {
        "name": f"call{index}",
        "from": f"s{host}",
        "to": f"t{host}",
        "start": 10 * MILLISECOND * index,
        "kind": {
            "media": {
                "controller": controller,
                "min_rate": 30_000,
                "max_rate": 2_500_000,
                "start_rate": 300_000,
                "video": {"source": "ideal", "min": 30_000, "max": 2_500_000, "fps": 30.0},
                "feedback": {"format": feedback, "interval": 50 * MILLISECOND},
                "playout": {"adaptive": {"min": 0, "max": 10 * SECOND}},
                "payload": 1200,
                "overhead": 28,
            }
        },
    }


def _lte(users: int) -> dict[str, Any]:
    """The radio network and the flows to its users."""
    network = Lte(users=[Users(name="user", count=users)])
    members = {group.name: members_of(group, network.name, 1, 0) for group in network.users}
    return {
        "radios": [lower_radio(network, members)],
        "links": [_link("wire", ("server", "core"), 10 * GIGABIT, MILLISECOND, 10_000)],
        "flows": [{**_cbr(i, users, 1), "from": "server", "to": f"user-{i + 1}"} for i in range(users)],
    }


def thesis(seconds: float) -> Scenario:
    """The scenario ``thesis-network`` without an end to its packets."""
    data = Scenario.load("thesis-network", {"duration": f"{seconds:.9f}s", "record": "summary"}).to_dict()
    del data["flows"][0]["media"]["packets"]
    return Scenario.from_dict(data)


def group(seconds: float, members: int = 1000) -> Scenario:
    """A session of one sender and receivers at ten places, half of them under AVPF; each loss is shared by all."""
    places = [f"place{i}" for i in range(10)]
    links: list[Any] = [{"name": "trunk", "from": "studio", "to": "hub", "loss": "0.1%", "back": {"loss": "0%"}}]
    links += [{"name": place, "from": "hub", "to": place, "capacity": "10Mbps", "delay": "20ms"} for place in places]
    heads: list[Any] = [{"name": "sender", "node": "studio", "media": {"rate": "500kbps", "packet_size": "1000B"}}]
    for number, place in enumerate(places):
        # the sender is one of the members
        count = (members - 1) // len(places) + (number < (members - 1) % len(places))
        for profile, part in (("avp", count // 2), ("avpf", count - count // 2)):
            heads.append({"name": f"{profile}-{place}", "node": place, "count": part, "profile": profile})
    return Scenario.from_dict(
        {
            "name": f"bench-group{members}",
            "duration": f"{seconds:.9f}s",
            "record": "summary",
            "links": links,
            "sessions": [{"name": "group", "bandwidth": "500kbps", "members": heads}],
        }
    )


def scenario(work: str, seconds: float) -> dict[str, Any]:
    """The work as the engine takes it, ``seconds`` of simulated time long."""
    if work == "thesis":
        return lower(thesis(seconds)).ir
    if work == "lte":
        frame = {"name": "bench lte", "duration": round(seconds * SECOND), "seed": 1, "sending_jitter": "off"}
        return {**frame, "record": {"level": "summary", "bin": 200 * MILLISECOND}, **_lte(100)}
    if work == "group1000":
        return lower(group(seconds)).ir
    if work in {"cbr10", "cbr1000"}:
        flows, rate = (10, 20 * 10**6) if work == "cbr10" else (1000, 1_200 * 10**6)
        links = _dumbbell(rate, 100, 10)
        parts = [_cbr(i, flows, 10) for i in range(flows)]
    elif work in {"tail100", "fq100"}:
        links = _dumbbell(98 * 10**6, 1000, 10)
        parts = [_cbr(i, 100, 10) for i in range(100)]
        if work == "fq100":
            # in both directions of the bottleneck
            for link in links[:2]:
                link["settings"]["discipline"] = {"fq_codel": FQ_CODEL}
    elif work == "tcp5":
        links = _dumbbell(50 * 10**6, 200, 6)
        parts = [_cbr(0, 1, 6)] + [_tcp(i, 6) for i in range(5)]
    else:
        calls, rate, pairs = (100, 100 * 10**6, 10) if work == "calls100" else (1, 10 * 10**6, 1)
        name, feedback = ("sprout", "none") if work == "sprout" else ("gcc", "twcc")
        name = "gcc:libwebrtc-v1" if work == "call2023" else name
        # as in a scenario: a call's settings where they differ from the bare controller's
        controller = controllers.choose(name, Path()).to_ir()
        # 300 ms of full packets (RFC 8867 section 4)
        links = _dumbbell(rate, round(rate * 0.3 / 8 / 1248), pairs)
        parts = [_call(i, pairs, controller, feedback) for i in range(calls)]
    return {
        "name": f"bench {work}",
        "duration": round(seconds * SECOND),
        "seed": 1,
        "record": {"level": "summary", "bin": 200 * MILLISECOND},
        # the peers have none either
        "sending_jitter": "off",
        "links": links,
        "flows": parts,
    }


def measure(work: str, seconds: float) -> dict[str, Any]:
    """Runs the work and says what it did and how long it took."""
    recording = _core.run(json.dumps(scenario(work, seconds)))
    summary = json.loads(recording.summary_json())
    packets = sum(flow["packets_received"] for flow in summary["flows"])
    carried = {link["link"]: link["carried_bps"] for link in summary["links"]}
    if work.startswith("cbr") or work in {"tail100", "fq100"}:
        # what left the bottleneck, as the peers count it; every packet has 1200 bytes
        packets = round(carried["bottleneck there"] * seconds / 8 / 1200)
    # what a user, and a cell, cost for a second of simulated time
    cost = recording.run_seconds / seconds * 1e6
    shares = {"us_per_user_s": cost / 100, "us_per_cell_s": cost / 21} if work == "lte" else {}
    return {
        **shares,
        "tool": "tidegate",
        "work": work,
        "simulated_s": seconds,
        "packets": packets,
        "dropped": sum(link["dropped_queue"] for link in summary["links"]),
        # packets carried by any link, feedback and acknowledgements included
        "hops": recording.hops,
        # every data packet crosses access, bottleneck, access; a wire and the air; a trunk and a branch
        "hops_per_packet": {"thesis": 1, "lte": 2, "group1000": 2}.get(work, 3),
        "events": recording.events,
        "bottleneck_bps": carried[
            {"thesis": "network", "lte": "lte", "group1000": "trunk"}.get(work, "bottleneck there")
        ],
        **({"session": _session(summary["members"])} if "members" in summary else {}),
        "run_s": recording.run_seconds,
        "peak_rss_kib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
        "digest": recording.digest,
    }


def _session(members: list[dict[str, Any]]) -> dict[str, Any]:
    """What a session of one sender came to: RTCP's share, and how many reports a loss seen by all draws."""
    losses = max(one["losses"] for one in members)
    reports = sum(one["reported_early"] + one["reported_regular"] for one in members)
    early = sum(one["reported_early"] for one in members)
    return {
        "rtcp_share": sum(one["rtcp_share"] or 0.0 for one in members),
        "losses": losses,
        "reports_a_loss": reports / losses if losses else None,
        "early_reports_a_loss": early / losses if losses else None,
    }


def main(arguments: list[str]) -> int:
    """``WORK [--scale S]``: S multiplies the simulated seconds."""
    works = "\n".join(f"  {key}  {words}, {seconds:g} s" for key, (words, seconds) in WORKS.items())
    usage = f"usage: python benches/peers/engine.py WORK [--scale S]\n{works}"
    match arguments:
        case [work] if work in WORKS:
            scale = 1.0
        case [work, "--scale", text] if work in WORKS:
            scale = float(text)
        case _:
            print(usage, file=sys.stderr)
            return 2
    print(json.dumps(measure(work, WORKS[work][1] * scale)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
