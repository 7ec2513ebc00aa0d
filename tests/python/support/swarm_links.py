"""What the swarm draws of networks: links, and what changes of them while a scenario runs."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

Table = dict[str, Any]


class Dice:
    """What a scenario is drawn from."""

    def __init__(self, seed: int) -> None:
        self.luck = random.Random(seed)

    def chance(self, probability: float) -> bool:
        return self.luck.random() < probability

    def pick(self, *from_: Any) -> Any:
        return self.luck.choice(from_)

    def whole(self, low: int, high: int) -> int:
        return self.luck.randint(low, high)

    def near(self, low: float, high: float) -> float:
        """Any magnitude between the two is as likely as any other."""
        return float(low * (high / low) ** self.luck.random())

    def span(self, low: float, high: float) -> str:
        """A time in seconds; now and then the least one, or a round one."""
        if self.chance(0.1):
            return f"{round(low * 1e9)}ns"
        value = self.near(low, high)
        return f"{value:.2g}s" if value >= 0.01 and self.chance(0.5) else f"{max(1, round(value * 1e9))}ns"

    def rate(self, low: float, high: float) -> str:
        value = self.near(low, high)
        return f"{round(value)}bps" if self.chance(0.5) else f"{float(f'{value / 1e3:.2g}'):g}kbps"

    def size(self, low: int, high: int) -> str:
        return f"{round(self.near(low, high))}B"

    def steps(self, end: float, draw: Callable[[], Any]) -> list[list[Any]]:
        """Pairs of a time and a value, the first at 0s."""
        times = sorted({self.whole(1, round(end * 1000)) for _ in range(self.whole(0, 5))})
        return [["0s", draw()], *([f"{at}ms", draw()] for at in times)]

    def some(self, table: Table, probability: float, **draws: Callable[[], Any]) -> Table:
        """The table with each further key by chance."""
        for key, draw in draws.items():
            if self.chance(probability):
                table[key.rstrip("_")] = draw()
        return table


# --- links ----------------------------------------------------------------------------------------


def capacity(dice: Dice, end: float, *, finite: bool) -> Any:
    def rate() -> str:
        return dice.rate(5e4, 2e7)

    def with_pauses() -> str:
        return "0bps" if dice.chance(0.2) else rate()

    match dice.whole(0, 11):
        case 0 | 1 if not finite:
            return "infinite"
        case 2 | 3:
            steps = dice.steps(end, with_pauses)
            steps[0][1] = rate()
            table: Table = {"schedule": steps}
            if dice.chance(0.3):
                table["period"] = f"{int(steps[-1][0].removesuffix('ms').removesuffix('s')) + dice.whole(1, 3000)}ms"
            return table
        case 4:
            most = dice.near(2e5, 2e7)
            table = {"max": f"{round(most)}bps", "start": f"{round(most * dice.luck.random())}bps"}
            return {
                "brownian": dice.some(
                    table, 0.5, sigma=lambda: dice.rate(2e3, 1e7), outage_escape=lambda: dice.near(0.1, 10)
                )
            }
        case 5:
            shares = [dice.whole(1, 9) for _ in range(dice.whole(1, 4))]
            parts = [share / sum(shares) for share in shares]
            statuses = [
                {"name": f"s{at}", "capacity": rate() if at == 0 else with_pauses(), "probability": part}
                for at, part in enumerate(parts)
            ]
            table = {"statuses": statuses, "interval": dice.span(0.001, 2)}
            return dice.some(table, 0.3, rate_window=lambda: dice.span(1e-6, 0.5))
        case 7:
            table = {"median": rate()}
            draws: dict[str, Callable[[], Any]] = {
                "sigma": lambda: 2 * dice.luck.random(),
                "interval": lambda: dice.span(0.5, 30),
                "round_trip": lambda: dice.span(1e-3, 0.5),
                "rest": lambda: dice.span(1e-3, 0.1),
                "rest_sigma": lambda: 2 * dice.luck.random(),
                "correlation": dice.luck.random,
                "handover": lambda: dice.span(1e-3, 0.4),
                "handover_loss": dice.luck.random,
                "loss": lambda: dice.near(1e-5, 0.1),
            }
            return {"leo": dice.some(table, 0.4, **draws)}
        case 6:
            table = {"trace": dice.pick("lte.trace", "path.csv")}
            return dice.some(
                table,
                0.4,
                offset=lambda: "random" if dice.chance(0.5) else dice.span(1e-3, 10),
                scale=lambda: dice.near(0.1, 4),
                capacity_only=lambda: True,
            )
    return rate()


def loss(dice: Dice, end: float) -> Any:
    def share() -> float:
        return float(f"{dice.near(1e-4, 0.3):.3g}")

    match dice.whole(0, 4):
        case 0:
            burst = dice.near(1, 20)
            return {"mean": share() * 0.9, "burst": burst}
        case 1:
            return dice.some(
                {"to_bad": share(), "to_good": share()}, 0.5, loss_good=lambda: share() / 10, loss_bad=share
            )
        case 2:
            return {"schedule": dice.steps(end, lambda: dice.pick(0, 1, share()))}
    return share()


def jitter(dice: Dice) -> Any:
    match dice.whole(0, 2):
        case 0:
            draws = {
                "std": lambda: dice.span(1e-6, 0.03),
                "n_std": lambda: dice.near(0.5, 5),
                "mean": lambda: dice.span(1e-6, 0.1),
            }
            return {"rfc8868": dice.some({}, 0.6, **draws)}
        case 1:
            return {"uniform": dice.span(1e-9, 0.05)}
    return {"normal": dice.span(1e-9, 0.05)}


def queue(dice: Dice) -> Table:
    draws: dict[str, Callable[[], Any]] = {
        "packets": lambda: dice.whole(1, 200),
        "bytes": lambda: dice.size(1500, 500_000),
        "time": lambda: dice.span(0.001, 2),
        "counts_in_service": lambda: False,
    }
    return dice.some({}, 0.4, **draws)


def discipline(dice: Dice) -> Any:
    codel: dict[str, Callable[[], Any]] = {
        "target": lambda: dice.span(0.0001, 0.1),
        "interval": lambda: dice.span(0.001, 1),
        "maxpacket": lambda: dice.size(1, 5000),
        "ecn": lambda: False,
        "ce_threshold": lambda: dice.span(0.0001, 0.1),
    }
    pie: dict[str, Callable[[], Any]] = {
        "qdelay_ref": lambda: dice.span(0.001, 0.1),
        "t_update": lambda: dice.span(0.001, 0.1),
        "max_burst": lambda: dice.pick("0s", dice.span(0.001, 1)),
        "alpha": lambda: dice.near(0.01, 10),
        "beta": lambda: dice.near(0.01, 10),
        "mean_pktsize": lambda: dice.size(1, 5000),
        "ecn": lambda: False,
        "mark_ecnth": lambda: dice.near(0.001, 1),
        "derandomize": lambda: False,
        "cap_drop": lambda: False,
    }
    dual: dict[str, Callable[[], Any]] = {
        "target": lambda: dice.span(0.001, 0.1),
        "rtt_max": lambda: dice.span(0.01, 1),
        "k": lambda: dice.near(0.5, 4),
        "min_th": lambda: dice.pick("0s", dice.span(0.0001, 0.1)),
        "range": lambda: dice.pick("0s", dice.span(0.0001, 0.1)),
        "th_len": lambda: dice.whole(0, 10),
        "classic_weight": lambda: dice.near(0.01, 0.9),
    }
    fair = {"quantum": lambda: dice.size(1, 20_000), "flows": lambda: dice.pick(1, 2, 16, dice.whole(1, 65_536))}
    kinds: dict[str, dict[str, Callable[[], Any]]] = {
        "codel": codel,
        "fq-codel": {**codel, **fair},
        "pie": pie,
        "dualpi2": dual,
    }
    name = dice.pick(*kinds)
    drawn = name if dice.chance(0.4) else dice.some({"name": name}, 0.4, **kinds[name])
    return bucket(dice, drawn) if dice.chance(0.25) else drawn


def bucket(dice: Dice, discipline: Any) -> Any:
    rate = round(dice.near(5e4, 2e7))
    table = {"name": dice.pick("policer", "shaper"), "rate": f"{rate}bps", "burst": dice.size(500, 300_000)}
    return dice.some(
        table,
        0.4,
        peak_rate=lambda: f"{rate + round(dice.near(1, 1e7))}bps",
        mtu=lambda: dice.size(500, 5000),
        discipline=lambda: discipline,
    )


def way(dice: Dice, end: float, *, finite: bool) -> Table:
    table: Table = {"capacity": capacity(dice, end, finite=finite), "delay": dice.span(0.001, 0.4)}
    plain = not (isinstance(table["capacity"], dict) and "statuses" in table["capacity"])
    draws: dict[str, Callable[[], Any]] = {"byte_error": lambda: dice.near(1e-8, 1e-4), "jitter": lambda: jitter(dice)}
    draws["ecn"] = lambda: dice.pick("bleach", "drop")
    if plain:
        draws |= {"queue": lambda: queue(dice), "loss": lambda: loss(dice, end), "discipline": lambda: discipline(dice)}
    dice.some(table, 0.3, **draws)
    return dice.some(table, 0.1, service=lambda: "managed")


def link(dice: Dice, name: str, begin: str, to: str, end: float, *, finite: bool) -> Table:
    table = {"name": name, "from": begin, "to": to, **way(dice, end, finite=finite)}
    if dice.chance(0.5):
        # all keys of the way back are its own, so that nothing of the way there stands beside statuses
        back = way(dice, end, finite=finite)
        own = {"loss": 0, "queue": {}, "discipline": "drop-tail"}
        table["back"] = {**{key: value for key, value in own.items() if key in table}, **back}
        if isinstance(back["capacity"], dict) and "statuses" in back["capacity"]:
            table["back"].pop("queue", None)
    return table


# --- moves ----------------------------------------------------------------------------------------


def netem(dice: Dice) -> str:
    """Options of netem, a few of those that there are."""

    def share() -> str:
        return f"{dice.pick(dice.near(0.01, 30), dice.whole(0, 100)):.3g}%"

    def correlated(word: str) -> str:
        return f"{word} {share()}" + (f" {share()}" if dice.chance(0.3) else "")

    delay = f"delay {dice.near(0.01, 400):.4g}ms"
    if jitters := dice.chance(0.5):
        delay += f" {dice.near(0.01, 100):.4g}ms"
        delay += f" {share()}" if dice.chance(0.3) else ""
        if dice.chance(0.4):
            delay += f" distribution {dice.pick('normal', 'pareto', 'paretonormal')}"
    models = (
        correlated("loss"),
        f"loss gemodel {share()} {share()} {share()} {share()}",
        f"loss state {share()} {share()} {share()} {share()} {share()}",
    )
    options = [
        delay if jitters or dice.chance(0.5) else "",
        dice.pick(*models) if dice.chance(0.4) else "",
        correlated("duplicate") if dice.chance(0.3) else "",
        correlated("corrupt") if dice.chance(0.2) else "",
        f"rate {round(dice.near(5e4, 2e7))}bit {dice.whole(-20, 40)}" if dice.chance(0.3) else "",
        f"limit {dice.whole(1, 2000)}" if dice.chance(0.4) else "",
    ]
    if options[0] and dice.chance(0.3):
        options.append(correlated("reorder") + (f" gap {dice.whole(1, 9)}" if dice.chance(0.5) else ""))
    if options[1] and dice.chance(0.2):
        options.append("ecn")
    return " ".join(filter(None, options))


def emulated(dice: Dice, links: list[Table]) -> None:
    """Puts the emulator on one of the links, in one direction or both."""
    one = dice.pick(*links)
    place = one["back"] if isinstance(one.get("back"), dict) and dice.chance(0.5) else one
    place["netem"] = netem(dice)


def mtu(dice: Dice) -> Any:
    """A largest packet, alone or with the fate of larger ones."""
    size = f"{dice.whole(576, 2000)}B"
    return size if dice.chance(0.4) else {"bytes": size, "too_big": dice.pick("fragment", "drop", "report")}


def via(dice: Dice) -> Any:
    """A connection that carries calls, with its settings or without."""
    draws: dict[str, Callable[[], Any]] = {
        "algorithm": lambda: dice.pick("reno", "newreno", "sack", "cubic", "bbr", "bbr3"),
        "buffer": lambda: f"{dice.whole(1448, 300_000)}B",
        "writer": lambda: dice.pick("client", "relay"),
        "framing": lambda: f"{dice.whole(0, 40)}B",
    }
    return "tcp" if dice.chance(0.3) else dice.some({}, 0.5, **draws)


def other_wires(dice: Dice, links: list[Table]) -> None:
    """Now and then a largest packet, or a connection that carries calls, on a link."""
    for one in links:
        place = one["back"] if isinstance(one.get("back"), dict) and dice.chance(0.5) else one
        if one.get("capacity") == "external":
            continue
        if dice.chance(0.1):
            place["mtu"] = mtu(dice)
        if one.get("back", True) is not False and dice.chance(0.1):
            place["via"] = via(dice)


def changeable(links: list[Table]) -> list[str]:
    """The links that may be changed, in each direction."""

    def statuses(one: Any) -> bool:
        return isinstance(one, dict) and isinstance(one.get("capacity"), dict) and "statuses" in one["capacity"]

    there = [one["name"] for one in links if not statuses(one)]
    return there + [
        f"{one['name']}.back" for one in links if not (one.get("back") is False or statuses(one.get("back", one)))
    ]


def changes(dice: Dice, links: list[Table], end: float) -> list[Table]:
    """Changes of links by every key but capacity and delay, which `moves` draws."""
    ways = changeable(links)
    values: dict[str, Callable[[], Any]] = {
        "loss": lambda: loss(dice, end),
        "jitter": lambda: "none" if dice.chance(0.3) else jitter(dice),
        "byte_error": lambda: dice.pick(0, dice.near(1e-8, 1e-4)),
        "ecn": lambda: dice.pick("pass", "bleach", "drop"),
        "netem": lambda: "" if dice.chance(0.2) else netem(dice),
        "mtu": lambda: mtu(dice),
        "queue": lambda: queue(dice),
        "discipline": lambda: "drop-tail" if dice.chance(0.2) else discipline(dice),
    }
    return [
        {
            "time": f"{dice.whole(0, round(end * 1000))}ms",
            "link": dice.pick(*ways),
            "key": (key := dice.pick(*values)),
            "value": values[key](),
        }
        for _ in range(dice.whole(1, 6) if ways else 0)
    ]


def moves(dice: Dice, links: list[Table], flows: list[Table], end: float) -> list[Table]:
    """Changes of links that may be changed, and of flows that are one."""
    ways = changeable(links)
    values: dict[str, Callable[[], Any]] = {
        "capacity": lambda: "0bps" if dice.chance(0.1) else dice.rate(5e4, 2e7),
        "delay": lambda: f"{dice.whole(1, 200)}ms",
        "loss": lambda: round(dice.near(1e-4, 0.3), 5),
    }
    made: list[Table] = []
    for _ in range(dice.whole(1, 5) if ways else 0):
        key = dice.pick(*values)
        at = f"{dice.whole(0, round(end * 1000))}ms"
        made.append({"time": at, "link": dice.pick(*ways), "key": key, "value": values[key]()})
    single = [one for one in flows if not one.keys() & {"count", "start", "stop"}]
    if single and dice.chance(0.5):
        flow, begin = dice.pick(*single)["name"], dice.whole(0, round(end * 500))
        made.append({"time": f"{begin}ms", "flow": flow, "key": "running", "value": True})
        if dice.chance(0.5):
            # at one time now and then, which is refused
            stop = begin if dice.chance(0.1) else dice.whole(begin + 1, round(end * 1000))
            made.append({"time": f"{stop}ms", "flow": flow, "key": "running", "value": False})
    return made
