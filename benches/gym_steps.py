#!/usr/bin/env python3
"""Steps a second of the Gymnasium environment: one call at 100 ms a step, full observation, default reward, no checkers.

    python benches/gym_steps.py            # a release build: make setup

Prints steps per second of CPU time (of this process, all threads) and of wall time, the median of five episodes, and the load
it began under. Actions are drawn beforehand; resets are not counted, and stated apart.
"""

import os
import statistics
import time

import numpy as np

from tidegate import Flow, Link, Media, Scenario
from tidegate.gym import CallEnv, CallVectorEnv

EPISODES = 5


def world(capacity: str, video: str, *cross: Flow, seconds: int) -> Scenario:
    link = Link(name="link", capacity=capacity, delay="20ms", queue={"time": "200ms"})
    call = Flow(name="call", media=Media(video={"source": "statistical", "max": video}))
    return Scenario(name="steps", duration=f"{seconds}s", links=[link], flows=[call, *cross])


def rates(scenario: Scenario, what: str) -> None:
    env = CallEnv(scenario)
    cpu, wall, begins, packets = [], [], [], 0
    steps = int(scenario.duration) // 100_000_000
    for seed in range(EPISODES):
        begun = time.perf_counter()
        env.reset(seed=seed)
        begins.append(time.perf_counter() - begun)
        actions = list(np.random.default_rng(seed).uniform(0.9, 1, (steps, 1)).astype(np.float32))
        step = env.step
        at, used = time.perf_counter(), time.process_time()
        for action in actions:
            step(action)
        wall.append(steps / (time.perf_counter() - at))
        cpu.append(steps / (time.process_time() - used))
        packets = sum(flow["packets_sent"] for flow in env.finish().summary["flows"]) / steps
    print(
        f"{what}: {statistics.median(cpu):,.0f} steps a CPU second, {statistics.median(wall):,.0f} a wall second; ",
        end="",
    )
    print(f"{packets:.0f} packets a step; reset {1e3 * statistics.median(begins):.1f} ms")


def many(scenario: Scenario, count: int) -> None:
    envs = CallVectorEnv(scenario, num_envs=count)
    envs.reset(seed=1)
    steps = int(scenario.duration) // 100_000_000
    actions = np.random.default_rng(1).uniform(0.9, 1, (steps, count, 1)).astype(np.float32)
    at, used = time.perf_counter(), time.process_time()
    for action in actions:
        envs.step(action)
    wall, cpu = time.perf_counter() - at, time.process_time() - used
    print(f"{count} at once: {count * steps / wall:,.0f} steps a wall second, {count * steps / cpu:,.0f} a CPU second")


if __name__ == "__main__":
    print(f"load {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores")
    small = world("2.5Mbps", "2.5Mbps", seconds=300)
    rates(small, "2.5 Mb/s, one call")
    rates(
        world("100Mbps", "2.5Mbps", Flow(name="download", tcp={"algorithm": "cubic"}), seconds=30),
        "100 Mb/s, a call beside TCP",
    )
    many(small, 16)
