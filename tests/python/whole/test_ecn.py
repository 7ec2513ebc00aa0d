"""ECN from end to end: the codepoint that a controller needs, the queue's marks, and what it hears of them.

`docs/networks.md#ecn` says what there is.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, ClassVar, Literal

import pytest

import tidegate
from tidegate import Controller, Needs, Scenario

NAMES = {0: "not-ect", 1: "ect1", 2: "ect0", 3: "ce"}


class Listener(Controller):
    """Sends 1.2 Mbit/s whatever it hears, and keeps what it hears of ECN."""

    packets: ClassVar[dict[int, int]]
    counts: ClassVar[Counter[str]]

    def on_limits(self, now_ns: int, limits: Any) -> int:
        """A constant rate."""
        return 1_200_000

    def on_report(self, now_ns: int, report: Any) -> int:
        """The same rate."""
        for packet in report.packets:
            if packet.arrival_ns is not None:
                self.packets[packet.sequence] = packet.ecn
        if report.ecn is not None:
            for name in ("not_ect", "ect0", "ect1", "ce"):
                self.counts[name] += getattr(report.ecn, name)
        return 1_200_000


def listener(use: Literal["off", "ect0", "ect1"]) -> type[Listener]:
    """One that needs this codepoint."""
    return type("Listener", (Listener,), {"needs": Needs(ecn=use), "packets": {}, "counts": Counter()})


def fields(run: tidegate.Run) -> list[str | None]:
    """The ECN field with which each packet of the call arrived, in the order of sending; none where it did not."""
    table = run.table("packets")
    kind, sent, fate, ecn = (table.to_numpy(name).tolist() for name in ("kind", "sent_s", "fate", "ecn"))
    rows = sorted(
        (at, number) for number, (at, what) in enumerate(zip(sent, kind, strict=True)) if what in {"video", "padding"}
    )
    return [str(ecn[number]) if fate[number] == "arrived" else None for _, number in rows]


def scenario(controller: type[Controller], discipline: Any, **media: Any) -> Scenario:
    """A call over 1 Mbit/s with a queue that marks."""
    link = {"name": "cable", "capacity": "1Mbps", "delay": "10ms", "queue": {"time": "1s"}, "discipline": discipline}
    # on the way back nothing waits, and nothing is marked
    link["back"] = {"capacity": "100Mbps", "discipline": "drop-tail"}
    video = {"source": "ideal", "max": "2Mbps"}
    made = {"controller": controller, "video": video, "repair": {}, **media}
    return Scenario.from_dict({"duration": "10s", "links": [link], "flows": [{"name": "call", "media": made}]})


@pytest.mark.parametrize(
    "queue",
    [
        {"name": "codel", "ecn": True},
        {"name": "fq-codel"},
        {"name": "pie", "ecn": True, "mark_ecnth": 0.9},
        {"name": "dualpi2"},
    ],
    ids=lambda queue: str(queue["name"]),
)
@pytest.mark.parametrize("use", ["ect0", "ect1"])
def test_marks_go_from_the_queue_to_the_controller(queue: dict[str, Any], use: Literal["ect0", "ect1"]) -> None:
    """What it needs is sent, what is sent is marked, and every mark is heard of: in `PacketResult.ecn` and in `Report.ecn`."""
    controller = listener(use)
    run = tidegate.run(scenario(controller, queue), record="packets")
    arrived = {number: ecn for number, ecn in enumerate(fields(run)) if ecn is not None}
    assert set(arrived.values()) == {"ce", use}, "it is sent with what the controller needs, and marked"
    # of what came in before the last report
    heard = {number: NAMES[ecn] for number, ecn in controller.packets.items()}
    assert heard == {number: ecn for number, ecn in arrived.items() if number <= max(heard)}
    assert len(heard) > 0.95 * len(arrived)
    counted = Counter(heard.values())
    assert (controller.counts["ce"], controller.counts[use]) == (counted["ce"], counted[use])
    assert controller.counts["not_ect"] == 0
    marked = sum(ecn == "ce" for ecn in arrived.values())
    (link,) = (link for link in run.summary["links"] if link["link"] == "cable")
    # those marked at the end may not have arrived
    assert marked <= run.metrics()["marked"] == link["marked"] <= marked + 10
    assert marked > 5


def test_without_a_codepoint_nothing_is_marked() -> None:
    """The queue drops where it would mark, and feedback has nothing to tell."""
    controller = listener("off")
    run = tidegate.run(scenario(controller, {"name": "codel", "ecn": True}), record="packets")
    assert run.metrics()["marked"] == 0
    assert run.metrics()["lost_queue"] > 5
    assert set(controller.packets.values()) == {0}
    assert not controller.counts, "transport-wide feedback does not tell"


def test_a_scenario_has_the_last_word() -> None:
    """`media.ecn` replaces what the controller needs."""
    run = tidegate.run(scenario(listener("off"), {"name": "codel", "ecn": True}, ecn="ect0"), record="packets")
    assert run.metrics()["marked"] > 5
    run = tidegate.run(scenario(listener("ect1"), {"name": "codel", "ecn": True}, ecn="off"), record="packets")
    assert run.metrics()["marked"] == 0


def test_a_path_that_bleaches_clears_codepoints_and_marks_and_counts_them() -> None:
    """Whether a link is computed at once or packet by packet: the same run, and a mark before it is gone behind it."""
    digests = set()
    for service in ("fifo", "managed"):
        controller = listener("ect0")
        made = scenario(controller, "drop-tail").to_dict()
        made["links"][0] |= {"ecn": "bleach", "service": service}
        made["links"][0]["back"] |= {"ecn": "pass"}
        made["flows"][0]["media"]["controller"] = controller
        run = tidegate.run(Scenario.from_dict(made), record="packets")
        digests.add(run.digest)
        arrived = [ecn for ecn in fields(run) if ecn is not None]
        assert set(arrived) == {"not-ect"}
        assert set(controller.packets.values()) == {0}
        assert controller.counts["not_ect"] == len(controller.packets) > 500
        link, back = run.summary["links"]
        # what is on its way at the end may be cleared already
        assert len(arrived) <= link["bleached"] <= len(arrived) + 200
        assert back["bleached"] == 0, "RTCP bears no codepoint"
    assert len(digests) == 1

    controller = listener("ect0")
    made = scenario(controller, {"name": "codel", "ecn": True}).to_dict()
    made["links"][0] |= {"ecn": "bleach"}
    made["flows"][0]["media"]["controller"] = controller
    run = tidegate.run(Scenario.from_dict(made))
    assert run.metrics()["marked"] > 5
    assert controller.counts["ce"] == 0


@pytest.mark.parametrize("service", ["fifo", "managed"])
def test_a_path_that_drops_lets_nothing_through_that_bears_a_codepoint(service: str) -> None:
    """All of the media or none of it."""
    cases: list[tuple[Literal["off", "ect1"], int]] = [("ect1", 0), ("off", 500)]
    for use, received in cases:
        controller = listener(use)
        made = scenario(controller, "drop-tail").to_dict()
        made["links"][0] |= {"ecn": "drop", "service": service}
        made["flows"][0]["media"]["controller"] = controller
        run = tidegate.run(Scenario.from_dict(made))
        metrics = run.metrics()
        assert (metrics["packets_received"] > received) == (received > 0), use
        assert (metrics["lost_wire"] > 500) == (received == 0), use


@pytest.mark.parametrize("form", ["twcc", "none"])
def test_receivers_report_marks_that_their_feedback_does_not_tell(form: str) -> None:
    """RFC 6679's reports, and none unless requested."""
    controller = listener("ect0")
    codel = {"name": "codel", "ecn": True}
    run = tidegate.run(scenario(controller, codel, feedback={"format": form}), record="packets")
    arrived = Counter(fields(run))
    # the last ones are not reported on
    assert arrived["ce"] - 10 <= controller.counts["ce"] <= arrived["ce"]
    assert arrived["ect0"] - 200 <= controller.counts["ect0"] <= arrived["ect0"]
    assert arrived["ce"] > 5
    contents = " ".join(run.table("rtcp").to_numpy("contents").tolist())
    assert "XR" in contents
    assert "ECN" in contents

    controller = listener("ect0")
    feedback = {"format": form, "ecn_reports": "off"}
    run = tidegate.run(scenario(controller, codel, feedback=feedback), record="packets")
    assert not controller.counts
    assert "XR" not in " ".join(run.table("rtcp").to_numpy("contents").tolist())


@pytest.mark.parametrize(
    ("path", "form", "check"),
    [
        ("pass", "ccfb", "verified"),
        ("pass", "twcc", "verified"),
        ("bleach", "twcc", "cleared"),
        ("drop", "ccfb", "dropped"),
        ("drop", "none", "dropped"),
    ],
)
def test_a_sender_finds_out_whether_its_path_carries_ecn(path: str, form: str, check: str) -> None:
    """Initiation by RFC 6679: a few packets are tried, and all or none follow."""
    controller = listener("ect0")
    feedback = {"format": form, "reports": "rfc3550"}  # the first 200 packets are tried within the first reports
    made = scenario(controller, "drop-tail", ecn_initiation="rtp", feedback=feedback).to_dict()
    made["links"][0] |= {"ecn": path, "capacity": "2Mbps"}
    made["links"][0]["back"] |= {"ecn": "pass"}
    made["flows"][0]["media"]["controller"] = controller
    run = tidegate.run(Scenario.from_dict(made), record="packets")
    assert run.metrics()["ecn_check"] == check
    # of some 1100 packets in 10 s
    late = fields(run)[200:]
    if check == "verified":
        assert set(late[:-50]) == {"ect0"}
        assert fields(run)[:6] == [*["not-ect"] * 4, "ect0", "not-ect"], "a small part at first"
    else:
        assert set(late[:-50]) == {"not-ect"}
        lost = run.metrics()["lost_wire"]
        assert (0 < lost < 30) if path == "drop" else lost == 0
    assert run.metrics()["feedback_refused"] == 0


def test_initiation_needs_reports() -> None:
    """The scenario says so before anything runs."""
    with pytest.raises(tidegate.ScenarioError, match=r"it needs feedback\.ecn_reports"):
        scenario(listener("ect0"), "drop-tail", ecn_initiation="rtp", feedback={"ecn_reports": "off"})
