"""The controller contract: what Rust has Python has, and controllers in Python are controllers."""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import tidegate
from support import ROOT
from tidegate import Needs, Run, Scenario, control, run
from tidegate.control import registry as controllers
from tidegate.scenario.lower import lower

CORE = ROOT / "crates" / "core" / "src"
SOURCES = [f"control/{file}.rs" for file in ("contract", "messages", "probes", "needs")]
DOCS = ROOT / "docs" / "contract.md"

# --- the same on both sides -----------------------------------------------------------------------


class Part(NamedTuple):
    """A field of a struct, or a method of a trait or of an implementation."""

    name: str
    type: str
    doc: str


def source() -> str:
    """The contract in Rust, without its tests."""
    return "\n".join((CORE / file).read_text().partition("#[cfg(test)]")[0] for file in SOURCES)


def first_sentence(doc: str) -> str:
    text = " ".join(line.strip().removeprefix("///").strip() for line in doc.strip().splitlines())
    text = re.sub(r"\[(`[^`]+`)\](\([^)]*\))?", r"\1", text)
    return re.split(r"(?<=[^0-9])\. (?=[A-Z])", text)[0].removesuffix(".").replace("|", "\\|")


def bodies(kind: str) -> Iterator[tuple[str, str]]:
    for match in re.finditer(
        rf"^{kind} (\w+)(?:<[^>]*>)?(?:: Send)? \{{\n(.*?)^\}}", source(), re.MULTILINE | re.DOTALL
    ):
        yield match[1], match[2]


DOC = r"(?P<doc>(?:    ///[^\n]*\n)*)(?:    #\[[^\n]*\n)*"


def structs() -> dict[str, list[Part]]:
    """The public fields of each public struct."""
    field = re.compile(DOC + r"    pub (?P<name>\w+): (?P<type>[^\n]+),\n")
    return {
        name: [Part(match["name"], match["type"], first_sentence(match["doc"])) for match in field.finditer(body)]
        for name, body in bodies("pub struct")
    }


def methods(kind: str, visible: str = "") -> dict[str, list[Part]]:
    """The methods of each trait, or the public ones of each implementation."""
    method = re.compile(DOC + rf"    {visible}(?:const )?fn (?P<name>\w+)\(")
    return {
        name: [Part(match["name"], "", first_sentence(match["doc"])) for match in method.finditer(body)]
        for name, body in bodies(kind)
    }


VALUES = {
    name: getattr(control, name)
    for name in (
        [
            "Decision",
            "Probe",
            "Needs",
            "Limits",
            "Report",
            "PacketResult",
            "EcnCounts",
            "LossReport",
            "Sent",
            "NewFrame",
            "Outgoing",
            "Arrived",
        ]
    )
}
"""Structs of the contract and their classes."""

NO_VALUES = {"Notes", "Context", "FeedbackRequest", "Probes"}
"""Structs that Python has in another form: `internals`, attributes, answers, lists, ValueError."""

MORE = {"Report": {"rtt_ns", "sequence", "size", "sent_ns", "arrival_ns"}}
"""Names that only Python has: the method of that name, and columns of `packets` as arrays."""

TRAITS = {"Controller": tidegate.Controller, "ReceiverHalf": tidegate.ReceiverHalf}
HOSTED = {"Controller": tidegate.ControllerHost, "ReceiverHalf": tidegate.ReceiverHost}

CONTEXT = {
    "rng": "`self.rng`",
    "unchanged": "answer `None`",
    "last": "what you answered last",
    "note": "`self.internals[name] = value`",
    "wants_notes": "`self.internals` is read only if the scenario asks for it",
    "fail": "raise an exception",
}
"""Methods that a call can use, with their counterparts in Python."""

HOSTS = {"objection", "alarm_objection"}
"""Methods of Context for those who host controllers of other languages."""


def twin(part: Part) -> str:
    """The name of a field in Python: with its unit."""
    if "Rate" in part.type:
        return f"{part.name}_bps"
    return f"{part.name}_ns" if re.search(r"Time|Span", part.type) else part.name


def public(kind: type[Any]) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")}


def test_every_struct_of_the_contract_is_known_here() -> None:
    parts_of = structs()
    assert parts_of.keys() == VALUES.keys() | NO_VALUES
    assert sum(map(len, parts_of.values())) > 60, "the source is read"


@pytest.mark.parametrize("name", VALUES)
def test_every_field_has_its_twin(name: str) -> None:
    twins = {twin(part) for part in structs()[name]}
    assert twins, "it has fields"
    assert public(VALUES[name]) == twins | MORE.get(name, set())
    assert set(inspect.signature(VALUES[name]).parameters) == twins, "and can be made with each"


@pytest.mark.parametrize("name", TRAITS)
def test_every_hook_has_its_twin_in_both_directions(name: str) -> None:
    hooks = {part.name for part in methods("pub trait")[name]}
    assert len(hooks) >= 4
    # rng and internals stand for the context of a call
    assert {hook for hook in public(TRAITS[name]) if hook != "internals"} == hooks
    assert set(TRAITS[name].__annotations__) >= {"rng", "internals"}
    assert hooks <= public(HOSTED[name])


def test_all_that_a_call_can_use_has_its_twin() -> None:
    methods_of_context = {part.name for part in methods("impl", "pub ")["Context"]}
    methods_of_context |= {part.name for part in structs()["Context"]}
    assert methods_of_context == CONTEXT.keys() | HOSTS


def table() -> str:
    """Both sides, as Markdown."""
    lines = []

    def section(title: str, rows: list[tuple[str, str, str]]) -> None:
        lines.extend(["", f"### {title}", "", "| Rust | Python | what it is |", "|---|---|---|"])
        lines.extend(f"| `{rust}` | {python} | {doc} |" for rust, python, doc in rows)

    for name, parts in methods("pub trait").items():
        section(f"Hooks of a `{name}`", [(part.name, f"`{part.name}`", part.doc) for part in parts])
    section("What a call can use", [(f"cx.{name}", python, "") for name, python in CONTEXT.items()])
    parts_of = structs()
    for name in VALUES:
        section(f"`{name}`", [(part.name, f"`{twin(part)}`", part.doc) for part in parts_of[name]])
    rows = enumerate(parts_of["FeedbackRequest"])
    section("`FeedbackRequest`, in Python a pair (`Ask`)", [(part.name, f"`[{n}]`", part.doc) for n, part in rows])
    return "\n".join(lines) + "\n"


def test_the_table_in_the_docs_is_that_of_the_source() -> None:
    text = DOCS.read_text()
    mark = "<!-- made by tests/python/control/test_contract.py; TIDEGATE_BLESS=1 writes it again -->\n"
    before, mark_in_text, _ = text.partition(mark)
    assert mark_in_text
    expected = before + mark + table()
    if os.environ.get("TIDEGATE_BLESS") == "1":
        DOCS.write_text(expected)
        text = expected
    assert text == expected, "TIDEGATE_BLESS=1 writes it again"


# --- a controller of the engine in Python's hands is the same -------------------------------------

CALL = """\
duration = "12s"
[[links]]
name = "cable"
capacity = {{ schedule = [["0s", "2Mbps"], ["5s", "600kbps"], ["8s", "1500kbps"]] }}
delay = "20ms"
loss = "0.5%"
[[flows]]
name = "call"
[flows.media]
controller = "{controller}"
feedback = {{ format = "{format}", interval = "{interval}", reports = "rfc3550" }}
"""


def call(controller: str, feedback: str, interval: str) -> Run:
    return run(Scenario.parse(CALL.format(controller=controller, format=feedback, interval=interval)))


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("gcc", "preset=draft-02"),
        ("gcc-remb", ""),
        ("tfrc", ""),
        ("tfrc-sp", ""),
        ("sprout", ""),
        ("sprout-ewma", "preset=bulk"),
        ("nada", ""),
        ("nada", "placement=receiver"),
        ("lookup_table", "delay_source=simulator"),
        ("rrb-simd", ""),
        ("scream", ""),
        ("scream", "preset=ericsson-2026-07"),
        ("scream-v1", ""),
        ("fixed", ""),
    ],
)
def test_a_controller_through_python_is_itself(name: str, parts: str) -> None:
    text = f"{name}:{parts.removeprefix('preset=')}" if parts else name
    chosen = controllers.choose(text, Path())
    feedback, _ = chosen.session("auto", "auto")
    interval = "frame" if chosen.needs.interval == "frame" else "auto"
    native = call(text, feedback, interval)
    proxied = call(f"python:twins:make:name={name}" + (f",{parts}" if parts else ""), feedback, interval)
    assert len(native.table("decisions")) > (0 if name == "fixed" else 10), "it did something"
    assert proxied.digest == native.digest


# --- what a controller needs ----------------------------------------------------------------------


class Marked(tidegate.Controller):
    """Wants its packets to carry ECT(1), and remembers what reports said of marks."""

    needs = Needs(ecn="ect1")
    reported: list[Any] = []  # noqa: RUF012

    def on_limits(self, now_ns: int, limits: tidegate.Limits) -> float:
        del now_ns
        return limits.max_bps / 4

    def on_report(self, now_ns: int, report: tidegate.Report) -> None:
        del now_ns
        Marked.reported.append((report.ecn, len(report.packets)))


class OnReports(Marked):
    needs = Needs("receiver-reports")


def media(controller: Any, **keys: Any) -> dict[str, Any]:
    link = tidegate.Link(name="cable", capacity="2Mbps", delay="20ms")
    flow = tidegate.Flow(name="call", media=tidegate.Media(controller=controller, **keys))
    scenario = Scenario(name="call", duration="2s", links=[link], flows=[flow])
    return dict(lower(scenario).ir["flows"][0]["kind"]["media"])


@pytest.mark.parametrize(
    ("controller", "keys", "feedback", "ecn"),
    [
        ("gcc", {}, "twcc", "off"),
        ("fixed", {}, "twcc", "off"),
        ("scream", {}, "ccfb", "ect1"),
        ("scream:ecn=off", {}, "ccfb", "off"),
        ("scream-v1", {}, "ccfb", "ect0"),
        ("gcc-remb", {}, "none", "off"),
        ("rrb-simd", {}, "none", "off"),
        ("nada", {}, "ccfb", "ect0"),
        ("nada:ns3-rmcat", {}, "twcc", "off"),
        ("nada:placement=receiver", {}, "none", "ect0"),
        ("gcc", {"ecn": "ect0"}, "ccfb", "ect0"),
        ("gcc", {"ecn": "ect0", "feedback": {"format": "twcc"}}, "twcc", "ect0"),
        (Marked, {}, "ccfb", "ect1"),
        (Marked, {"ecn": "off"}, "twcc", "off"),
        (Marked, {"ecn": "ect0"}, "ccfb", "ect0"),
        (OnReports, {}, "none", "off"),
    ],
)
def test_auto_is_what_the_controller_needs(controller: Any, keys: dict[str, Any], feedback: str, ecn: str) -> None:
    lowered = media(controller, **keys)
    assert (lowered["feedback"]["format"], lowered["ecn"]) == (feedback, ecn)


@pytest.mark.parametrize(
    ("controller", "interval", "lowered"),
    [
        ("gcc", "auto", None),
        ("gcc", "frame", "frame"),
        ("scream", "auto", "frame"),
        ("scream", "frame", "frame"),
        ("scream", "30ms", 30_000_000),
        ("scream-v1", "auto", "frame"),
    ],
)
def test_reports_go_with_frames_where_asked_for(controller: str, interval: str, lowered: str | int | None) -> None:
    assert media(controller, feedback={"interval": interval})["feedback"]["interval"] == lowered


def test_each_frame_has_its_report() -> None:
    Marked.reported.clear()
    scenario = Scenario.parse(CALL.format(controller="gcc", format="auto", interval="frame")).to_dict()
    scenario["flows"][0]["media"] |= {
        "controller": Marked,
        "max_rate": "1Mbps",
        "video": {"source": "ideal", "fps": 50},
    }
    del scenario["links"][0]["loss"]
    run(Scenario.from_dict(scenario))
    # a packet a frame, and a report with each
    reported = [packets for _, packets in Marked.reported if packets]
    assert len(reported) == pytest.approx(12 * 50, abs=3)


def test_packets_carry_what_was_typed_for_and_reports_say_so() -> None:
    Marked.reported.clear()
    scenario = Scenario.parse(CALL.format(controller="gcc", format="auto", interval="auto")).to_dict()
    scenario["flows"][0]["media"]["controller"] = Marked
    run(Scenario.from_dict(scenario))
    reported = [(ecn, packets) for ecn, packets in Marked.reported if ecn is not None]
    assert len(reported) > 100
    arrived = sum(ecn.ect1 for ecn, _ in reported)
    assert arrived == sum(ecn.ect1 + ecn.not_ect + ecn.ect0 + ecn.ce for ecn, _ in reported), (
        "none is changed on the way"
    )
    assert 0.9 < arrived / sum(packets for _, packets in reported) <= 1, "but for what is lost"


# --- answers that are none ------------------------------------------------------------------------

MINE = """\
import tidegate
from tidegate import Decision, Probe
calls = []
class Mine(tidegate.Controller):
    {attributes}
    def on_limits(self, now_ns, limits):
        return 1e6
    def on_report(self, now_ns, report):
        {on_report}
    def on_alarm(self, now_ns):
        {on_alarm}
"""

WRONG = {
    "window": ("window='large'", r"window: found 'large' of type str; it must be a whole number of bytes"),
    "negative window": ("window=-1", r"window: found -1; it must not be negative"),
    "fraction": ("window=1.5", r"window: found 1.5 of type float; it must be a whole number of bytes"),
    "gap": ("min_gap_ns=-1", r"min_gap_ns: found -1; it must not be negative"),
    "heartbeat": ("heartbeat_ns=-1", r"heartbeat_ns: found -1; it must not be negative"),
    "pacing": ("pacing_bps=float('nan')", r"pacing_bps: found NaN; a rate must be finite and not negative"),
    "padding": ("padding_bps=-5", r"padding_bps: found -5; a rate must be finite and not negative"),
    "alarm": ("alarm_ns='soon'", r"alarm_ns: found 'soon' of type str; it must be a whole number of nanoseconds"),
    "probes": ("probes=7", r"probes: found 7 of type int; it must be a list of Probe"),
    "no probe": ("probes=[(1, 2)]", r"probes: found \(1, 2\) of type tuple; each item must be a Probe"),
    "many": ("probes=[Probe(1, 1e6, 10**7)] * 5", r"probes: found more than 4; a decision has at most 4"),
    "no rate": ("probes=[Probe(1, 0, 10**7)]", r"rate_bps: found 0; the rate of a probe must be more than 0"),
    "length": ("probes=[Probe(1, 1e6, -1)]", r"length_ns: found -1; it must not be negative"),
    "spacing": ("probes=[Probe(1, 1e6, 1, spacing_ns=-1)]", r"spacing_ns: found -1; it must not be negative"),
}


def failure(
    tmp_path: Path, on_report: str = "return None", on_alarm: str = "return None", attributes: str = "pass"
) -> str:
    text = MINE.format(on_report=on_report, on_alarm=on_alarm, attributes=attributes)
    (tmp_path / "mine.py").write_text(text)
    scenario = CALL.format(controller=f"python:{tmp_path}/mine.py:Mine", format="twcc", interval="auto")
    with pytest.raises(tidegate.TidegateError) as caught:
        run(Scenario.parse(scenario))
    return str(caught.value)


@pytest.mark.parametrize("case", WRONG)
def test_a_decision_that_makes_no_sense_names_class_method_and_field(case: str, tmp_path: Path) -> None:
    keys, reason = WRONG[case]
    message = failure(tmp_path, f"return Decision(1e6, {keys})")
    assert re.search(rf"^call\.sender at 0\.\d{{9}}s: Mine\.on_report raised \w+: {reason}", message), message


@pytest.mark.parametrize(
    ("on_report", "on_alarm", "reason"),
    [
        (
            "return Decision(1e6, alarm_ns=now_ns - 1)",
            "return None",
            r"Mine\.on_report asked for an alarm at .* in the past",
        ),
        (
            "return Decision(1e6, alarm_ns=now_ns)",
            "return Decision(1e6, alarm_ns=now_ns)",
            r"Mine\.on_alarm asked for a second alarm at the present instant \(0\.\d{9}s\)",
        ),
        ("return Decision(1e6, alarm_ns=now_ns + 1)", "return 'fast'", r"Mine\.on_alarm returned 'fast' of type str"),
        ("return float('nan')", "return None", r"Mine\.on_report: found NaN; a rate must be"),
        ("return [1]", "return None", r"Mine\.on_report returned \[1\] of type list; it must be a Decision, a rate"),
    ],
)
def test_an_answer_that_is_none_names_class_and_method(
    on_report: str, on_alarm: str, reason: str, tmp_path: Path
) -> None:
    assert re.search(reason, failure(tmp_path, on_report, on_alarm))


@pytest.mark.parametrize(
    ("attributes", "reason"),
    [
        (
            "in_flight = lambda self: -1",
            r"Mine\.in_flight raised ValueError: the returned value: found -1; it must not be negative",
        ),
        (
            "in_flight = lambda self: 'all'",
            r"Mine\.in_flight raised ValueError: the returned value: found 'all' of type str",
        ),
        ("stamp = lambda self, now_ns, packet: 5", r"Mine\.stamp raised TypeError"),
        ("needs_sent = 'often'", r"Mine\.needs_sent: found 'often' of type str; it must be True or False"),
        ("needs = 'ccfb'", r"needs: found \"ccfb\"; expected a tidegate\.Needs"),
        ("needs = tidegate.Needs(ecn='l4s')", r"ecn: found \"l4s\"; expected one of off, ect0, ect1"),
    ],
)
def test_an_attribute_that_is_none_of_the_contract(attributes: str, reason: str, tmp_path: Path) -> None:
    assert re.search(reason, failure(tmp_path, attributes=attributes))


# --- random numbers -------------------------------------------------------------------------------


class Lucky(tidegate.Controller):
    """Draws its rate."""

    def on_report(self, now_ns: int, report: tidegate.Report) -> float:
        del now_ns, report
        return 500_000 + 1_000_000 * self.rng.uniform()


def test_a_class_draws_from_its_own_substream() -> None:
    scenario = Scenario.parse(CALL.format(controller="gcc", format="twcc", interval="auto")).to_dict()
    scenario["flows"][0]["media"]["controller"] = Lucky
    first, again, other_seed = (run(Scenario.from_dict(scenario), seed=seed) for seed in (1, 1, 2))
    assert first.digest == again.digest != other_seed.digest
    # the first decision is that of the limits; the next are draws of the controller's substream, one a report
    drawn = first.table("decisions").to_numpy("target_bps")
    stream = tidegate.Stream(1, "call.sender", "controller")
    expected = {round(500_000 + 1_000_000 * stream.uniform()) for _ in range(len(drawn))}
    assert {int(rate) for rate in drawn[1:]} <= expected
    assert len(set(drawn)) > 100
