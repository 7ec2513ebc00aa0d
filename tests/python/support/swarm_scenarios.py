"""What the swarm draws: random scenarios of every feature of the schema, the same everywhere for a seed."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

from support.swarm_links import Dice, Table, changes, emulated, link, moves, other_wires
from tidegate import Controller
from tidegate.control import registry as controllers

COUPLED = ("gcc", "gcc:draft-02", "gcc:libwebrtc-v1", "gcc:aiortc", "nada", "scream", "scream:libwebrtc", "scream-v1")
"""Controllers that can be coupled."""


class Steady(Controller):
    """A controller in Python."""

    def on_report(self, now_ns: int, report: Any) -> int:
        return 400_000 if now_ns % 2 else 600_000


# --- flows ----------------------------------------------------------------------------------------


def controller(dice: Dice) -> Any:
    if dice.chance(0.05):
        return "python:support.swarm_scenarios:Steady"
    name = dice.pick(*controllers.registry())
    if name == "fixed":
        return f"fixed:{dice.rate(1e4, 5e6)}"
    preset = dice.pick(*controllers.registry()[name]["presets"])
    return f"{name}:{preset}" if dice.chance(0.6) else name


def video(dice: Dice, end: float) -> Any:
    most = dice.near(2e5, 8e6)
    bounds = dice.some({"max": f"{round(most)}bps"}, 0.5, min=lambda: f"{round(most * dice.near(0.01, 1))}bps")
    bounds = dice.some(bounds, 0.4, fps=lambda: dice.pick(5, 24, 29.97, 60))
    if "min" in bounds:
        least = float(bounds["min"].removesuffix("bps"))
        bounds = dice.some(bounds, 0.2, schedule=lambda: dice.steps(end, lambda: dice.rate(1.1 * least, 8e6)))
    floor = {"below_min": lambda: dice.pick("wait", "send", "suspend")}
    encoder = floor | {
        "key_interval": lambda: dice.span(0.05, 10),
        "requests": lambda: f"{round(dice.near(0.1, 20), 2)}/s",
    }
    match dice.whole(0, 6):
        case 0:
            return dice.some({"source": "ideal", **bounds}, 0.2, **encoder)
        case 1:
            return {"source": "greedy", **bounds}
        case 2:
            table = {"source": "cbr", "packet_size": dice.size(100, 1500)}
            return table | (
                {"rate": dice.rate(2e4, 4e6)}
                if dice.chance(0.6)
                else {"schedule": dice.steps(end, lambda: dice.rate(2e4, 4e6))}
            )
        case 3:
            table = dice.some({"source": "frames", "ladder": "sizes", **bounds}, 0.2, **floor)
            if dice.chance(0.4):
                group = dice.whole(1, 20)
                return dice.some({**table, "group": group}, 0.3, skip=lambda: group * dice.whole(0, 3))
            return dice.some(table, 0.3, skip=lambda: dice.whole(0, 10), **encoder)
        case 4:
            draws: dict[str, Callable[[], Any]] = {
                "tau_v": lambda: dice.span(0.01, 1),
                "transient_frames": lambda: dice.whole(1, 20),
                "burst": lambda: dice.size(100, 50_000),
                "scale_t": lambda: dice.luck.random() * 0.5,
                "scale_b": lambda: dice.luck.random() * 0.5,
                "key_factor": lambda: dice.near(1, 10),
                **encoder,
            }
            return dice.some({"source": "statistical", **bounds}, 0.5, **draws)
    return bounds


def audio(dice: Dice) -> Table:
    spurts = dice.pick(True, {"talk": dice.span(0.01, 3), "pause": dice.span(0.01, 3)})
    table = {"rate": dice.rate(5e3, 2e5), "interval": dice.pick("20ms", "10ms", "60ms", "7ms")}
    return dice.some(table, 0.3, spurts=lambda: spurts)


def repair(dice: Dice, *, fec: bool) -> Table:
    packets = dice.whole(1, 20)
    draws: dict[str, Callable[[], Any]] = {
        "nack": lambda: dice.pick(
            True,
            dice.some(
                {},
                0.7,
                wait=lambda: dice.span(1e-4, 0.1),
                requests=lambda: dice.whole(1, 12),
                keep=lambda: dice.span(0.01, 3),
            ),
        ),
        "pli": lambda: dice.pick(True, {"interval": dice.span(0.001, 1)}),
    }
    if fec:
        draws["fec"] = lambda: {"packets": packets, "parity": dice.whole(1, packets), "by_frame": dice.chance(0.5)}
    return dice.some({}, 0.5, **draws)


def feedback(dice: Dice) -> Table:
    table: Table = dice.some(
        {},
        0.5,
        interval=lambda: "frame" if dice.chance(0.2) else dice.span(0.01, 0.3),
        bandwidth=lambda: dice.rate(1e4, 5e6),
    )
    dice.some(table, 0.3, ecn_reports=lambda: dice.pick("on", "off"))
    if dice.chance(0.25):
        table["format"] = dice.pick("twcc", "ccfb", "none")
    if dice.chance(0.3):
        table["profile"] = "avpf"
        return dice.some(table, 0.4, reduced_size=lambda: True, rr_interval=lambda: dice.span(0.05, 5))
    if dice.chance(0.3):
        table["profile"] = "avp"
        return dice.some(table, 0.4, reports=lambda: dice.pick("rfc3550", dice.span(0.05, 5)))
    return dice.some(table, 0.5, reports=lambda: dice.pick("rfc3550", "libwebrtc", dice.span(0.05, 5)))


def media(dice: Dice, end: float) -> Table:
    table: Table = {"controller": controller(dice), "video": video(dice, end)}
    if dice.chance(0.35):
        table["audio"] = audio(dice)
        if dice.chance(0.3):
            table["video"] = False
    begin = dice.near(1e4, 2e6)
    draws: dict[str, Callable[[], Any]] = {
        "playout": lambda: dice.pick(
            {"fixed": dice.span(0.001, 1)}, {"adaptive": {"min": "10ms", "max": dice.span(0.02, 3)}}
        ),
        "feedback": lambda: feedback(dice),
        "ecn": lambda: dice.pick("off", "ect0", "ect1"),
        "ecn_initiation": lambda: "rtp",
        "circuit_breaker": lambda: dice.pick("off", "act"),
        "payload": lambda: dice.size(64, 1400),
        "overhead": lambda: dice.size(8, 60),
        "queue_limit": lambda: dice.span(0.01, 3),
        "both_ways": lambda: True,
        "packets": lambda: dice.whole(1, 2000),
    }
    dice.some(table, 0.25, **draws)
    if dice.chance(0.2):
        table |= {
            "start_rate": f"{round(begin)}bps",
            "min_rate": f"{round(begin / 4)}bps",
            "max_rate": f"{round(begin * 5)}bps",
        }
    if dice.chance(0.2):
        times = sorted({dice.whole(0, round(end * 1000)) for _ in range(dice.pick(2, 4))})
        table["pauses"] = [[f"{a}ms", f"{b}ms"] for a, b in zip(times[::2], times[1::2], strict=False)]
    if table["video"] is not False and dice.chance(0.15):
        table["content"] = "screen"
    framed = table["video"] is not False and table["video"].get("source") not in {"greedy", "cbr"}
    marked = not dice.chance(0.1)
    if not marked:
        table["marks"] = False
    if table["video"] is not False and dice.chance(0.4):
        table["repair"] = repair(dice, fec=marked or not framed)
    return table


def tcp(dice: Dice) -> Table:
    draws: dict[str, Callable[[], Any]] = {
        "algorithm": lambda: dice.pick("tahoe", "reno", "newreno", "sack", "cubic", "bbr", "bbr3", "dctcp", "prague"),
        "workload": lambda: dice.pick(
            {"file": dice.size(1, 500_000)},
            {"web": {"min": "1kB", "max": dice.size(2000, 90_000), "idle": dice.span(0.01, 2)}},
        ),
        "initial_window": lambda: dice.whole(1, 40),
        "min_rto": lambda: dice.span(0.01, 2),
        "recovery": lambda: dice.pick("rack", "rfc6675"),
        "delayed_ack": lambda: True,
        "handshake": lambda: False,
        "options": lambda: False,
        "hystart": lambda: False,
        "ecn": lambda: True,
        "timestamps": lambda: True,
        "offload": lambda: True,
        "packet_size": lambda: dice.size(600, 1500),
    }
    # a wide window over a link without a limit makes millions of packets a second
    table = dice.some({"receive_window": dice.size(3000, 200_000)}, 0.4, **draws)
    if table.get("algorithm") in {"bbr", "bbr3"}:
        # refused: BBR does not answer marks
        table.pop("ecn", None)
    if table.get("algorithm") in {"tahoe", "reno", "newreno"}:
        # refused: they have no SACK
        table.pop("recovery", None)
    return table


def udp(dice: Dice, end: float) -> Table:
    table = {
        "rate": dice.rate(1e4, 5e6),
        "packet_size": dice.size(60, 1500),
        "pattern": dice.pick("cbr", "poisson", "on_off"),
    }
    if table["pattern"] == "on_off":
        table |= {"on": dice.span(0.01, 2), "off": dice.span(0.01, 2)}
    return dice.some(table, 0.3, schedule=lambda: dice.steps(end, lambda: dice.pick("0bps", dice.rate(1e4, 5e6))))


def flow(dice: Dice, name: str, ends: list[str], end: float) -> Table:
    begin, to = dice.luck.sample(ends, 2)
    table: Table = {"name": name, "from": begin, "to": to}
    if dice.chance(0.15):
        table |= {"count": dice.whole(2, 4), "start_step": f"{dice.whole(0, round(end * 100))}ms"}
    if dice.chance(0.3):
        table["start"] = f"{dice.whole(0, round(end * 500))}ms"
    if dice.chance(0.2):
        table["stop"] = f"{round(end * 1000) - dice.whole(0, round(end * 80))}ms"
    match dice.whole(0, 9):
        case 0 | 1 | 2:
            table["tcp"] = tcp(dice)
        case 3 | 4:
            table["udp"] = udp(dice, end)
        case _:
            table["media"] = media(dice, end)
    return table


def session(dice: Dice, points: list[str], end: float) -> Table:
    pictures = dice.chance(0.3)
    segments, fps = dice.whole(1, 8), dice.pick(5, 15, 30)

    def sends() -> Table:
        if pictures:
            return {"rate": f"{segments * fps * dice.whole(80, 900) * 8}bps", "fps": fps, "segments": segments}
        return {"rate": dice.rate(1e4, 1e6), "packet_size": dice.size(200, 1500)}

    def member(at: int) -> Table:
        table: Table = {"name": f"m{at}", "node": dice.pick(*points)}
        draws: dict[str, Callable[[], Any]] = {
            "media": sends,
            "profile": lambda: dice.pick("avp", "avpf"),
            "declared_sender": lambda: True,
            "reports_losses": lambda: False,
            "count": lambda: dice.whole(2, 5),
            "join": lambda: f"{dice.whole(0, round(end * 400))}ms",
        }
        dice.some(table, 0.35, **draws)
        if dice.chance(0.3):
            table |= {"leave": f"{round(end * 1000 * dice.pick(0.6, 0.9))}ms", "crashes": dice.chance(0.4)}
        return table

    members = [member(at) for at in range(dice.whole(2, 6))]
    members[0]["media"] = sends()
    table = {"name": "group", "bandwidth": dice.rate(2e4, 2e6), "members": members}
    avpf: dict[str, Callable[[], Any]] = {
        "l": lambda: dice.near(0.01, 5),
        "k": lambda: dice.near(0.01, 3),
        "redraw": lambda: True,
        "max_feedback_delay": lambda: dice.span(0.001, 5),
        "rr_interval": lambda: dice.span(0.01, 5),
        "reduced_size": lambda: True,
    }
    draws: dict[str, Callable[[], Any]] = {
        "profile": lambda: "avp",
        "minimum": lambda: dice.span(0.05, 5),
        "avpf": lambda: dice.some({}, 0.4, **avpf),
        "overhead": lambda: dice.size(8, 60),
    }
    return dice.some(table, 0.4, **draws)


def lte(dice: Dice, end: float) -> Table:
    draws: dict[str, Callable[[], Any]] = {
        "sites": lambda: dice.pick(7, 19),
        "wrap": lambda: False,
        "case": lambda: 3,
        "tilt": lambda: True,
        "bandwidth": lambda: "5MHz",
        "antennas": lambda: dice.pick("1x1", "2x2"),
        "fading": lambda: dice.pick("epa", "eva", "flat", "none"),
        "speed": lambda: dice.pick("0km/h", "30km/h", "120km/h"),
        "interferers": lambda: dice.whole(0, 6),
        "scheduler": lambda: "rr",
        "outer_loop": lambda: False,
        "window": lambda: dice.span(0.001, 1),
        "queue": lambda: dice.some(
            {},
            0.6,
            packets=lambda: dice.whole(1, 500),
            bytes=lambda: dice.size(3000, 10**6),
            age=lambda: dice.span(0.01, 2),
        ),
        "handover": lambda: {
            "hysteresis": dice.luck.random() * 4,
            "trigger": dice.span(0.001, 1),
            "interruption": dice.span(0.001, 0.5),
        },
    }
    users: Table = {"name": "phone", "count": dice.whole(1, 3)}
    if dice.chance(0.3):
        users = {"name": "phone", "arrival": {"rate": f"{dice.whole(1, 6)}/s", "stay": dice.span(0.1, end)}}
    more = [{"name": "others", "full_buffer": True, "count": dice.whole(1, 3)}] if dice.chance(0.5) else []
    return dice.some({"core": "b", "users": [users, *more]}, 0.3, **draws)


# --- a scenario -----------------------------------------------------------------------------------


def scenario(seed: int) -> Table:
    """A scenario as plain data; almost all are valid."""
    dice = Dice(seed)
    end = round(dice.near(0.3, 12), 2)
    radio = dice.chance(0.05)
    if radio:
        end = min(end, 3.0)
    flows_of_tcp = dice.chance(0.5)
    points = ["a", "b", *(["c", "d"][: dice.whole(0, 2)])]
    shape = [("a", "b"), *((dice.pick(*points[:at]), points[at]) for at in range(2, len(points)))]
    links = [link(dice, f"l{at}", *ends, end, finite=flows_of_tcp) for at, ends in enumerate(shape)]
    if dice.chance(0.1):
        links.append(link(dice, "other", "b", "a", end, finite=True) | {"back": False})
    flows = [flow(dice, f"f{at}", points, end) for at in range(dice.whole(1, 4))]
    data: Table = {
        "name": f"swarm-{seed}",
        "duration": f"{end}s",
        "seed": dice.whole(0, 2**64 - 1),
        "links": links,
        "flows": flows,
    }
    air: list[Table] = []
    if radio:
        data["lte"] = lte(dice, end)
        ends = ("a", "phone") if dice.chance(0.6) else ("phone", "a")
        traffic = {
            key: value for key, value in flow(dice, "air", points, end).items() if key in {"media", "tcp", "udp"}
        }
        air = [{"name": "air", "from": ends[0], "to": ends[1], **traffic}]
    media = [one for one in [*flows, *air] if "media" in one]
    couple = [one["name"] for one in media if one.get("from", "left") == media[0].get("from", "left")]
    if couple and dice.chance(0.5 if radio else 0.15):
        data["couplings"] = [
            {
                "flows": couple,
                "priorities": [round(dice.near(0.5, 8), 3) for _ in couple],
                "algorithm": dice.pick("active", "conservative"),
            }
        ]
        for one in media:
            one["media"]["controller"] = dice.pick(*COUPLED)
    if not flows_of_tcp:
        for one in flows:
            if one.pop("tcp", None) is not None:
                one["udp"] = udp(dice, end)
    flows += air
    if dice.chance(0.25):
        data["sessions"] = [session(dice, points, end)]
        if dice.chance(0.3):
            data["flows"] = []
    draws: dict[str, Callable[[], Any]] = {
        "warmup": lambda: f"{round(end * 1000 * dice.luck.random() * 0.9)}ms",
        "sending_jitter": lambda: dice.pick("off", dice.span(1e-6, 0.01)),
        "record": lambda: dice.pick("summary", "packets"),
        "bin": lambda: dice.span(0.001, 1),
        "capture": lambda: True,
        "seeds": lambda: {"l0": dice.whole(0, 2**64 - 1)},
        "moves": lambda: moves(dice, links, data["flows"], end),
    }
    data = dice.some(data, 0.25, **draws)
    # of luck of their own, so that the scenarios of earlier seeds stay
    other_paths(Dice(seed + 2**64), data, end)
    further_moves(Dice(seed + 2**65), data, end)
    further_faults(Dice(seed + 2**66), data)
    further_sources(Dice(seed + 2**67), data)
    other_wires(Dice(seed + 2**68), data["links"])
    other_clocks(Dice(seed + 2**69), data, end)
    return data


def single_calls(data: Table) -> list[Table]:
    """The calls that are one flow each, and none of a radio network's users."""
    return [one for one in data["flows"] if "media" in one and not {"count", "phone"} & {*one, one["from"], one["to"]}]


def further_moves(dice: Dice, data: Table, end: float) -> None:
    """Now and then moves of all keys of links, and of calls."""
    if dice.chance(0.2):
        data["moves"] = [*data.get("moves", []), *changes(dice, data["links"], end)]
    calls = single_calls(data)
    if not calls or not dice.chance(0.2):
        return
    values: dict[str, Callable[[], Any]] = {
        "video": lambda: dice.chance(0.5),
        "audio": lambda: dice.chance(0.5),
        "max_rate": lambda: dice.rate(2e5, 8e6),
        "min_rate": lambda: dice.rate(5e3, 2e5),
        "video.max": lambda: dice.rate(1e5, 5e6),
        "repair": lambda: dice.chance(0.5),
    }
    data["moves"] = [
        *data.get("moves", []),
        *(
            {
                "time": f"{dice.whole(0, round(end * 1000))}ms",
                "flow": dice.pick(*calls)["name"],
                "key": (key := dice.pick(*values)),
                "value": values[key](),
            }
            for _ in range(dice.whole(1, 4))
        ),
    ]


def other_clocks(dice: Dice, data: Table, end: float) -> None:
    """Now and then a clock that runs apart, or is set, at an end of a call."""
    calls = single_calls(data)
    if not calls or not dice.chance(0.15):
        return
    point = dice.pick(*calls)[dice.pick("from", "to")]
    times = sorted({dice.whole(0, round(end * 1000)) for _ in range(dice.whole(0, 3))})
    steps = [{"time": f"{time}ms", dice.pick("ahead", "behind"): dice.span(1e-4, 1e4)} for time in times]
    data["clocks"] = {
        point: dice.some({}, 0.7, ppm=lambda: round(dice.luck.uniform(-1000, 1000), 3), steps=lambda: steps)
    }


def further_faults(dice: Dice, data: Table) -> None:
    """Now and then the emulator on a link."""
    if dice.chance(0.15):
        emulated(dice, data["links"])


def further_sources(dice: Dice, data: Table) -> None:
    """Now and then audio with DTX, and video whose resolution and frame rate follow its rate."""
    for media in (one["media"] for one in data["flows"] if "media" in one):
        audio, video = media.get("audio"), media.get("video")
        if audio and dice.chance(0.3):
            audio["dtx"] = dice.pick("400ms", dice.span(0.06, 1))
        if video and video.get("source", "statistical") in {"statistical", "ideal"} and dice.chance(0.2):
            video["adaptation"] = dice.pick(True, adaptation(dice))


def adaptation(dice: Dice) -> Table:
    rates = sorted({0, *(round(dice.near(3e4, 8e6)) for _ in range(dice.whole(0, 4)))})
    steps = [{"rate": f"{rate}bps", "height": 90 * (2 * at + dice.whole(1, 2))} for at, rate in enumerate(rates)]
    steps = [dice.some(step, 0.5, fps=lambda: dice.pick(7, 15, 30.5)) for step in steps]
    draws: dict[str, Callable[[], Any]] = {
        "hysteresis": lambda: round(dice.near(1, 2), 3),
        "up_after": lambda: dice.pick("0s", dice.span(0.1, 5)),
        "down_after": lambda: dice.pick("0s", dice.span(0.1, 2)),
    }
    return dice.some({"steps": steps}, 0.6, **draws)


def other_paths(dice: Dice, data: Table, end: float) -> None:
    """Now and then another link between the ends of a call, to which the call goes over, and perhaps back."""
    calls = single_calls(data)
    if not calls or not dice.chance(0.2):
        return
    call = dice.pick(*calls)
    data["links"].append(link(dice, "spare", call["from"], call["to"], end, finite=True))
    ways = [
        one["name"] if one["from"] == call["from"] else f"{one['name']}.back"
        for one in data["links"]
        if {one["from"], one["to"]} == {call["from"], call["to"]} and one.get("back") is not False
    ]
    changes = [
        dice.some(
            {
                "time": f"{dice.whole(0, round(end * 1000))}ms",
                "flow": call["name"],
                "key": "path",
                "value": [dice.pick(*ways)],
            },
            0.3,
            signalled=lambda: dice.chance(0.5),
        )
        for _ in range(dice.whole(1, 3))
    ]
    data["moves"] = [*data.get("moves", []), *changes]


def files(folder: Path) -> None:
    """What scenarios name: recorded capacities and frame sizes."""
    luck = random.Random(1)
    at, lines = 0, []
    while at < 8000:
        at += luck.choice((0, 1, 1, 2, 5, 40))
        lines.append(f"{at}\n")
    (folder / "lte.trace").write_text("".join(lines))
    rows = [
        f"{t / 10},{luck.choice((0, 200, 900, 4000))},{luck.choice((0, 0.01, 0.2))},{luck.randrange(30)}\n"
        for t in range(60)
    ]
    (folder / "path.csv").write_text("# duration_s=6\ntime_s,rate_kbps,loss,delay_ms\n" + "".join(rows))
    (folder / "sizes").mkdir(exist_ok=True)
    for kbps in (200, 900, 2500):
        mean = kbps * 125 / 30
        sizes = [round(mean * (4 if n % 12 == 0 else luck.uniform(0.4, 1.2))) for n in range(90)]
        (folder / "sizes" / f"made_{kbps}.txt").write_text(
            "".join(f"{n} P 0 0 {size}\n" for n, size in enumerate(sizes))
        )
