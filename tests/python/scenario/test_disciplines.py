"""Queue disciplines in whole runs: what a person sees of them."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pytest

from tidegate import Flow, Link, Media, Run, Scenario, Tcp, Udp, run
from tidegate.errors import ScenarioError

DISCIPLINES = ("codel", "fq-codel", "pie", "dualpi2")


def overloaded(discipline: Any, *, ecn: str = "off", **link: Any) -> Run:
    """Three seconds of 3 Mbit/s of calls in a link of 2, and a bit of something else."""
    cable = Link(
        name="cable", capacity="2Mbps", delay="10ms", discipline=discipline, back={"capacity": "infinite"}, **link
    )
    calls = [
        Flow(name=f"call-{n}", media=Media(controller="fixed:1500kbps", start_rate="1500kbps", ecn=ecn)) for n in (1, 2)
    ]
    other = Flow(name="other", udp=Udp(rate="50kbps", packet_size="200B"))
    return run(Scenario(duration="5s", links=[cable], flows=[*calls, other]), record="packets")


def link_of(done: Run) -> dict[str, Any]:
    """Metrics of the overloaded link."""
    link: dict[str, Any] = done.summary["links"][0]
    return link


@pytest.mark.parametrize("name", DISCIPLINES)
def test_drops_are_the_queues_and_marks_stand_for_them(name: str) -> None:
    dropped, tail = overloaded(name), overloaded("drop-tail")
    # a third is too much, and PIE marks with up to 10 % only, unless told otherwise
    marked = overloaded({"name": "pie", "mark_ecnth": 1} if name == "pie" else name, ecn="ect1")
    packets = dropped.table("packets")
    fate = packets.to_numpy("fate")
    assert set(fate) <= {"arrived", "queue", "under way"}, set(fate)
    assert (fate == "queue").sum() == link_of(dropped)["dropped_queue"] > 50
    assert link_of(dropped)["marked"] == 0
    # a mark is told where it is made; of the packets that bear one only the few in the medium have not arrived
    ce = (marked.table("packets").to_numpy("ecn") == "ce").sum()
    assert 50 < link_of(marked)["marked"] - 10 <= ce <= link_of(marked)["marked"]
    # a saturated link carries its rate whatever the discipline
    for done in (dropped, marked, tail):
        assert 0.97 < link_of(done)["utilisation"] <= 1.0


@pytest.mark.parametrize("name", DISCIPLINES)
def test_it_differs_from_drop_tail_only_where_something_waits(name: str) -> None:
    flow = Flow(name="steady", udp=Udp(rate="1Mbps", packet_size="1000B"))
    scenarios = [
        Scenario(
            duration="3s",
            links=[Link(name="cable", capacity="2Mbps", delay="1ms", discipline=discipline)],
            flows=[flow],
        )
        for discipline in ("drop-tail", name)
    ]
    first, second = (run(discipline) for discipline in scenarios)
    assert first.digest == second.digest


@pytest.mark.parametrize("name", DISCIPLINES)
def test_the_room_is_that_of_the_queue(name: str) -> None:
    done = overloaded(name, queue={"packets": 4})
    assert link_of(done)["dropped_queue"] > 100
    waits = done.table("packets").to_numpy("queueing_delay_ms")
    # four packets of at most 1500 bytes, one of them in service
    assert 10 < np.nanmax(waits) <= 4 * 1500 * 8 / 2e6 * 1e3


def beside_downloads(discipline: str) -> tuple[float, float, float]:
    """Of a call of 300 kbit/s beside four downloads in 10 Mbit/s: its mean wait (ms), its loss, the link's utilisation."""
    cable = Link(name="cable", capacity="10Mbps", delay="20ms", discipline=discipline, back={"capacity": "infinite"})
    call = Flow(name="call", media=Media(controller="fixed:300kbps", start_rate="300kbps"))
    files = [Flow(name=f"file-{n}", start=f"{n / 7:.3f}s", tcp=Tcp(hystart=False)) for n in range(4)]
    done = run(Scenario(duration="40s", warmup="10s", links=[cable], flows=[call, *files]))
    seen = done.summary["flows"][0]
    return seen["queueing_delay_ms_mean"], seen["loss_fraction"], link_of(done)["utilisation"]


def test_each_holds_its_target_and_flow_queues_keep_a_call_apart() -> None:
    waits = {name: beside_downloads(name) for name in ("drop-tail", *DISCIPLINES)}
    # 300 ms of room, which CUBIC fills
    assert 150 < waits["drop-tail"][0] < 300
    # CoDel lets waits swing above its 5 ms, PIE and DualPI2 hold 15 ms in the mean
    assert 4 < waits["codel"][0] < 12
    assert 12 < waits["pie"][0] < 18
    assert 12 < waits["dualpi2"][0] < 18
    # the call's own queue is empty: behind the packet in service there is at most one of each download
    assert waits["fq-codel"][0] < 1.5
    assert waits["fq-codel"][1] == 0
    assert all(utilisation > 0.95 for _, _, utilisation in waits.values())


@pytest.mark.parametrize("classic", ["cubic", "sack"])
def test_dualpi2_gives_l4s_its_share_without_the_wait(classic: Literal["cubic", "sack"]) -> None:
    kinds: dict[str, Literal["prague", "cubic", "sack"]] = {"l4s": "prague", "classic": classic}
    flows = [
        Flow(name=f"{name}-{n}", start=f"{n / 5:.3f}s", tcp=Tcp(algorithm=algorithm))
        for name, algorithm in kinds.items()
        for n in range(2)
    ]
    cable = Link(name="cable", capacity="40Mbps", delay="10ms", discipline="dualpi2", back={"capacity": "infinite"})
    done = run(Scenario(duration="40s", warmup="15s", links=[cable], flows=flows)).summary["flows"]
    rates = {name: sum(one["goodput_bps"] for one in done if one["flow"].startswith(name)) for name in kinds}
    # the coupling makes them equal where round trips are: Prague's has no queue in it, 20 ms to 35
    assert 0.8 < rates["l4s"] / rates["classic"] < 35 / 20, rates
    for one in done:
        is_l4s = one["flow"].startswith("l4s")
        low, high = (0, 1) if is_l4s else (12, 18)
        assert low < one["queueing_delay_ms_mean"] < high
        assert (one["lost_queue"] == 0) == is_l4s
        assert (one["marked"] > 100) == is_l4s


def test_a_discipline_goes_packet_by_packet_and_changes_under_a_driver() -> None:
    from tidegate.simpy import Environment, World

    link = Link(name="link", capacity="4Mbps", delay="5ms", discipline="codel", back=False)
    flow = Flow(name="steady", udp=Udp(rate="2Mbps", packet_size="1000B"), stop="1s")
    env = Environment()
    world = World(env, Scenario(duration="2s", links=[link], flows=[flow]))

    def change() -> Any:
        yield env.timeout("200ms")
        world.change("link", capacity="1Mbps")

    env.process(change())
    done = env.run(until=world.done)
    assert done.summary["links"][0]["dropped_queue"] > 5


def test_each_direction_has_its_own() -> None:
    both = Scenario(
        duration="1s",
        links=[Link(name="cable", discipline="codel", capacity="1Mbps")],
        flows=[Flow(udp=Udp(rate="1Mbps"))],
    )
    from tidegate.scenario.lower import lower

    def of(scenario: Scenario) -> list[Any]:
        return [
            (next(iter(one), one) if isinstance(one, dict) else one, queue["packets"], queue["time"])
            for one, queue in (
                (link["settings"]["discipline"], link["settings"]["queue"]) for link in lower(scenario).ir["links"]
            )
        ]

    assert of(both) == [("codel", 1000, None)] * 2
    back = both.with_changes({"links.cable.back": {"discipline": "drop-tail"}})
    assert of(back) == [("codel", 1000, None), ("drop_tail", None, 300_000_000)]
    limited = both.with_changes({"links.cable.queue.packets": 7, "links.cable.back": {"discipline": "drop-tail"}})
    assert of(limited) == [("codel", 7, None), ("drop_tail", 7, None)]
    statuses = {"statuses": [{"name": "x", "capacity": "1Mbps", "probability": 1}], "interval": "1s"}
    with pytest.raises(ScenarioError, match=r"links.cable.discipline: a link with statuses has no queue"):
        both.with_changes({"links.cable.capacity": statuses})
    with pytest.raises(ScenarioError, match=r'back.capacity: .* \(set discipline = "drop-tail" in back'):
        both.with_changes({"links.cable.back": {"capacity": statuses}})
