"""Another reading of RFC 3550 section 6.3 and A.7 and RFC 4585 section 3.5, against `tidegate.rtcp.Schedule`.

`python replay_rtcp.py [EVENTS]` drives both with the same random numbers through the same events and compares every
decision and every tp, tn and T_rr. `Reading` was written from the RFCs alone; the one thing that the two have agreed
on is that T and Td are rounded to whole nanoseconds.
"""

from __future__ import annotations

import math
import random
import sys
from collections import Counter
from dataclasses import dataclass

from tidegate.net.rtcp import Schedule

SECOND = 1_000_000_000
PAIR = 2  # members of a session that is point to point
BYE_AT_ONCE = 50
AVPF_PART = 0.8  # most rules are AVPF's


def whole(nanoseconds: float) -> int:
    return int(math.copysign(math.floor(abs(nanoseconds) + 0.5), nanoseconds))


@dataclass
class Reading:
    """One participant; the names are those of the RFCs."""

    rng: random.Random
    avpf: bool
    session_bandwidth: int
    avg_rtcp_size: float
    l: float  # noqa: E741 - the RFC's name
    T_max_fb_delay: int
    T_rr_interval: int
    members: int = 1
    pmembers: int = 1
    senders: int = 0
    we_sent: bool = False
    initial: bool = True
    leaving: bool = False
    tp: int = 0
    tn: int | None = None
    T_rr: int = 0
    allow_early: bool = True
    t_rr_last: float = math.nan
    te: int | None = None
    stored: bool = False

    def interval(self) -> int:
        """RFC 3550 section 6.3.1, with the Tmin of RFC 4585 section 3.5.1 and 3.5.3."""
        rtcp_bw = self.session_bandwidth / 8 * 0.05
        n = self.members
        if self.senders <= self.members * 0.25:
            if self.we_sent:
                rtcp_bw, n = rtcp_bw * 0.25, self.senders
            else:
                rtcp_bw, n = rtcp_bw * 0.75, self.members - self.senders
        if not self.avpf:
            t_min = 5 * SECOND // 2 if self.initial else 5 * SECOND
        elif self.initial and (self.members != PAIR or self.leaving):
            t_min = SECOND
        else:
            t_min = 0
        t_d = max(t_min, whole(n * self.avg_rtcp_size / rtcp_bw * SECOND))
        self.T_rr = whole(t_d * ((0.5 + self.rng.random()) / (math.e - 1.5)))
        return self.T_rr

    def average(self, size: int) -> None:
        """RFC 3550 section 6.3.3."""
        self.avg_rtcp_size = 1 / 16 * size + 15 / 16 * self.avg_rtcp_size

    def begin(self, tc: int) -> None:
        self.tp = tc
        self.tn = tc + self.interval()
        self.pmembers = self.members

    def join(self, tc: int, members: int) -> None:
        self.members = members
        self.begin(tc)

    def expire(self, tc: int) -> str:
        assert self.tn is not None
        if self.te is not None and self.te < self.tn:  # RFC 4585 section 3.5.2, step 6
            return "early"
        scheduled = self.tn  # "calculated prior to timer reconsideration" (section 3.4)
        self.tn = self.tp + self.interval()
        self.pmembers = self.members
        if self.tn > tc:
            return "nothing"
        if self.leaving:
            self.tn = None
            return "goodbye"
        if self.avpf and self.T_rr_interval and not math.isnan(self.t_rr_last):  # section 3.5.3, step 2
            current = whole(self.T_rr_interval * (0.5 + self.rng.random()))
            if self.t_rr_last + current > scheduled:
                if self.te is not None or self.stored:
                    return "minimal"
                self.next_interval(tc)
                return "nothing"
        self.t_rr_last = scheduled
        return "regular"

    def next_interval(self, tc: int) -> None:
        self.initial, self.allow_early = False, True
        self.te, self.stored = None, False
        self.begin(tc)

    def sent(self, tc: int, size: int) -> None:
        self.average(size)
        self.next_interval(tc)

    def sent_early(self, size: int) -> None:
        """RFC 4585 section 3.5.2, step 6."""
        assert self.tn is not None
        self.average(size)
        self.allow_early = False
        self.te, self.stored = None, False
        self.tp, self.tn = self.tn, self.tp + 2 * self.T_rr

    def feedback(self, t0: int) -> tuple[str, int | None]:
        """RFC 4585 section 3.5.2, steps 1 to 4."""
        assert self.tn is not None
        if not self.avpf:
            return "regular", self.tn
        if self.leaving:
            return "discard", None
        if self.te is not None:  # 2a
            return "early", self.te
        if self.stored:
            return "regular", self.tn
        t_dither_max = 0 if self.members == PAIR else whole(self.T_rr * self.l)  # 2b
        if t0 + t_dither_max > self.tn:  # 3a
            self.stored = True
            return "regular", self.tn
        if not self.allow_early:  # 4a
            if self.tn - t0 < self.T_max_fb_delay:
                self.stored = True
                return "regular", self.tn
            return "discard", None
        self.te = t0 + whole(t_dither_max * self.rng.random())  # 4b
        return "early", self.te

    def set_members(self, tc: int, members: int) -> None:
        """RFC 3550 section 6.3.4."""
        if self.leaving:
            return
        self.members = members
        if members < self.pmembers and self.tn is not None:
            self.tn = tc + whole(members / self.pmembers * (self.tn - tc))
            self.tp = tc - whole(members / self.pmembers * (tc - self.tp))
            self.pmembers = members

    def goodbye(self, tc: int, size: int) -> bool:
        """RFC 3550 section 6.3.7."""
        self.te, self.stored = None, False
        if self.members <= BYE_AT_ONCE:
            return True
        self.members, self.senders, self.initial, self.we_sent = 1, 0, True, False
        self.avg_rtcp_size, self.leaving = size, True
        self.begin(tc)
        return False


class Replay:
    """Both readings through the same events; it ends with the first thing that differs."""

    def __init__(self, seed: int) -> None:
        self.seed, self.script = seed, random.Random(seed)
        self.compared, self.counts = 0, Counter[str]()
        self.differences: list[str] = []
        script, avpf = self.script, self.script.random() < AVPF_PART
        bandwidth = script.choice([16_000, 64_000, 1_000_000, 5_000_000])
        size = script.randrange(60, 300)
        delay, interval = script.randrange(2 * SECOND), script.choice([0, 0, script.randrange(10 * SECOND)])
        self.ours = Schedule(
            "avpf" if avpf else "avp",
            session_bandwidth=bandwidth,
            uniform=random.Random(seed + 1).random,
            first_size=size,
            max_feedback_delay=delay,
            rr_interval=interval,
        )
        self.theirs = Reading(random.Random(seed + 1), avpf, bandwidth, size, 0.5, delay, interval)
        self.now = script.randrange(SECOND)
        members = script.choice([1, 2, 2, 5, 60, 200])
        self.ours.join(self.now, members)
        self.theirs.join(self.now, members)

    def check(self, what: str, one: object, other: object) -> None:
        self.compared += 1
        if one != other:
            where = f"seed {self.seed}, {self.now} ns"
            self.differences.append(f"{where}: {what}: {one}, the other reading {other}")

    def run(self, events: int) -> None:
        ours, theirs = self.ours, self.theirs
        while self.counts["events"] < events and not self.differences and theirs.tn is not None:
            self.counts["events"] += 1
            due = theirs.tn if theirs.te is None else min(theirs.te, theirs.tn)
            self.check("due", ours.due, due)
            step = int(self.script.expovariate(4 / max(theirs.T_rr, 1)))
            if self.now + step >= due:
                self.now = due
                self.expire()
            else:
                self.now += step
                self.happen()
            self.check("tp", ours.tp, theirs.tp)
            self.check("tn", ours.tn, theirs.tn)
            self.check("T_rr", ours.t_rr, theirs.T_rr)
            self.check("allow_early", ours.allow_early, theirs.allow_early)
            # the RFC's sum of two products and one product of a difference round differently
            self.check("avg_rtcp_size", math.isclose(ours.average_size, theirs.avg_rtcp_size, rel_tol=1e-12), True)

    def expire(self) -> None:
        decision = self.ours.expire(self.now, waiting=self.theirs.te is not None or self.theirs.stored)
        self.check("expire", decision, self.theirs.expire(self.now))
        self.counts[f"expire {decision}"] += 1
        size = self.script.randrange(40, 1500)
        if decision in {"regular", "minimal"}:
            self.ours.sent(self.now, size)
            self.theirs.sent(self.now, size)
        elif decision == "early":
            self.ours.sent_early(size)
            self.theirs.sent_early(size)

    def happen(self) -> None:
        """Something that is not the timer."""
        events = {"feedback": 8, "received": 4, "members": 3, "senders": 2, "cancel": 1, "goodbye": 0.1}
        (event,) = self.script.choices(list(events), list(events.values()))
        self.counts[event] += 1
        getattr(self, event)()

    def feedback(self) -> None:
        chance = self.ours.feedback(self.now)
        self.check("feedback", chance, self.theirs.feedback(self.now))
        self.counts[f"feedback {chance[0]}"] += 1

    def received(self) -> None:
        size = self.script.randrange(40, 1500)
        if self.theirs.leaving:
            self.ours.heard_goodbye(size)
            self.theirs.members += 1
        else:
            self.ours.received(size)
        self.theirs.average(size)

    def members(self) -> None:
        members = max(1, self.theirs.members + self.script.choice([-30, -3, -1, 1, 3, 30]))
        members = self.script.choice([members] * 9 + [2])
        self.ours.set_members(self.now, members)
        self.theirs.set_members(self.now, members)

    def senders(self) -> None:
        we_sent = self.script.choice([False, True])
        senders = self.script.randrange(self.theirs.members) + we_sent
        self.ours.set_senders(senders, we_sent)
        if not self.theirs.leaving:
            self.theirs.senders, self.theirs.we_sent = senders, we_sent

    def cancel(self) -> None:
        self.ours.cancel_early()
        self.theirs.te, self.theirs.stored = None, False

    def goodbye(self) -> None:
        if not self.theirs.leaving:
            at_once = self.ours.goodbye(self.now, 90)
            self.check("goodbye", at_once, self.theirs.goodbye(self.now, 90))
            self.counts["goodbye at once" if at_once else "goodbye later"] += 1


def replay(events: int) -> tuple[int, Counter[str], list[str]]:
    """How many things were compared, how often each event and decision came, and what differed."""
    compared, counts, differences, seed = 0, Counter[str](), list[str](), 0
    while counts["events"] < events:
        one = Replay(seed)
        one.run(1000)
        compared, seed = compared + one.compared, seed + 1
        counts += one.counts
        differences += one.differences
    return compared, counts, differences


if __name__ == "__main__":
    compared, counts, differences = replay(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
    print(f"{compared} comparisons, {len(differences)} differ")
    print(", ".join(f"{key} {count}" for key, count in sorted(counts.items())))
    print("\n".join(differences[:20]))
