"""The program of Hoang's thesis (2017) as SimPy processes: manager, network, sender, receiver (Figures 7 to 11).

    python thesis_simpy.py [CONTROLLER] [SEED]

The figures are those of the scenario `thesis-network`, and so are the results, bit for bit.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Generator
from typing import Any

import simpy

import tidegate
from tidegate import Run, Scenario, Stream
from tidegate.simpy import Call, End, Environment, Packet

Steps = Generator[simpy.Event, Any, None]
THESIS = Scenario.load("thesis-network")


class Network:
    """Section 3.4.2: its status is drawn anew now and then, and decides how much it can carry."""

    def __init__(self, env: Environment, link: tidegate.Link, seed: int) -> None:
        self.env, self.link = env, link
        self.luck = {name: Stream(seed, link.name, name) for name in ("status", "loss", "jitter")}
        self.capacity = 0
        self.latest: int | None = None  # the last instant at which something came in
        self.gap: int | None = None  # from the instant before it
        self.size = 0  # bytes that came in at that instant
        env.process(self.change_status())

    def change_status(self) -> Steps:
        while True:
            u, below = self.luck["status"].uniform(), 0.0
            for status in self.link.capacity.statuses:
                below += status.probability
                if u < below:
                    break
            self.capacity = int(status.capacity)
            yield self.env.timeout(self.link.capacity.interval)

    def loss(self, packet: Packet) -> float:
        """Loss probability: what is offered beyond the capacity."""
        if self.latest != self.env.now:
            self.gap = None if self.latest is None else self.env.now - self.latest
            self.latest, self.size = self.env.now, 0
        self.size += packet.size
        if not self.capacity:
            return 1.0
        if self.gap is None:
            return 0.0  # nothing is known of the offered rate yet
        return 1.0 - self.capacity * self.gap / (self.size * 8.0 * 1e9)

    def carry(self, packet: Packet, end: End) -> Steps:
        delay = normal_delay(self.link, self.luck["jitter"])
        lost = self.luck["loss"].chance(self.loss(packet))
        yield self.env.timeout(delay)
        if lost:
            packet.drop("loss")
        else:
            end.receive(packet)


class WayBack:
    """For RTCP: the same delay, and no loss."""

    def __init__(self, env: Environment, link: tidegate.Link, seed: int) -> None:
        self.env, self.link = env, link
        self.luck = Stream(seed, f"{link.name}.back", "jitter")

    def carry(self, packet: Packet, end: End) -> Steps:
        yield self.env.timeout(normal_delay(self.link, self.luck))
        end.receive(packet)


def normal_delay(link: tidegate.Link, luck: Stream) -> int:
    """Normal around the link's delay, in whole nanoseconds, and never negative."""
    jitter = int(link.jitter.normal) * luck.normal()
    part, whole = math.modf(jitter)
    nearest = whole + math.trunc(2 * part)  # halves away from zero
    return max(0, int(link.delay) + int(nearest))


def manager(controller: str | type[Any], seed: int, scenario: Scenario = THESIS) -> Run:
    """One sender, one receiver, and the network between them."""
    env = Environment()
    (link,), (flow,) = scenario.links, scenario.flows
    call = Call(env, flow, duration=scenario.duration, controller=controller, seed=seed, record=scenario.record)
    network, back = Network(env, link, seed), WayBack(env, link, seed)
    call.sender.out = lambda packet: env.process(network.carry(packet, call.receiver))
    call.receiver.out = lambda packet: env.process(back.carry(packet, call.sender))
    return env.run(until=call.done)


if __name__ == "__main__":
    given = dict(enumerate(sys.argv))
    controller, seed = given.get(1, "gcc:hoang2017"), int(given.get(2, 1))
    run = manager(controller, seed)
    sent = run.metrics()
    print(
        f"{controller}, seed {seed}: {sent['sending_rate_bps'] / 1e6:.3f} Mb/s sent, {sent['loss_fraction']:.1%} lost"
    )
    native = tidegate.run(THESIS.with_changes({"flows.sender.media.controller": controller}), seed=seed)
    print(f"digest {run.digest}, of the engine's own network {native.digest}")
