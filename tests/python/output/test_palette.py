"""Colours of contenders: those of tidegate keep theirs, and users' own controllers take free ones."""

from __future__ import annotations

import itertools
import json
import random
import re
import string
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.legend import Legend

from support import synthetic_runs as synthetic
from support.suite_results import made
from tidegate import plot, report
from tidegate.control.registry import registry
from tidegate.media import Judged
from tidegate.media._figures import quality
from tidegate.output import html
from tidegate.output.palette import DASHES, HUES, KNOWN, OWN, look, looks

Groups = Mapping[str, Sequence[synthetic.SyntheticRun]]
LOOKS = {
    "gcc": (0, 0), "gcc:libwebrtc": (2, 2), "gcc:draft-02": (0, 2), "gcc:aiortc": (0, 3), "gcc:beta=0.8": (0, 4),
    "gcc:draft-02,beta=0.9": (0, 1), "gcc-remb": (5, 0), "gcc-remb:aiortc": (5, 1), "fixed": (1, 0),
    "fixed:1Mbps": (1, 4), "fixed:2Mbps": (1, 2), "fixed:700kbps": (2, 1), "tfrc": (4, 0), "tfrc-sp": (6, 0),
    "scream": (1, 1), "scream:libwebrtc": (2, 4), "scream-v1": (1, 3), "sprout": (2, 0), "sprout:bulk": (3, 4),
    "sprout-ewma": (2, 3), "nada": (3, 1), "nada:ns3-rmcat": (3, 3), "lookup_table": (3, 0),
    "lookup_table:none": (3, 2), "rrb-simd": (7, 0),
}  # fmt: skip
"""Variants of all schemes in one picture, with the hue and dash that they have had since hashes chose these."""
EIGHT = ("gcc", "gcc-remb", "fixed", "tfrc", "tfrc-sp", "sprout", "nada", "rrb-simd")
"""Schemes of eight hues."""


def hues(labels: Sequence[str]) -> list[int]:
    return [chosen.hue for chosen in looks(labels).values()]


def names(number: int) -> list[str]:
    """Random names of classes, also with the path of a file or a setting."""
    draw = random.Random(33)
    letters = string.ascii_letters + string.digits + "_"
    classes = ["".join(draw.choices(string.ascii_letters, k=1) + draw.choices(letters, k=9)) for _ in range(number)]
    forms = (
        "{}",
        "python:mine.py:{}",
        "python:/home/me/{}.py:Mine",
        "{}:gain=2",
        "onnx:models/{}.onnx",
        "program:./{}",
    )
    return [form.format(name) for form, name in zip(itertools.cycle(forms), classes, strict=False)]


def test_every_scheme_has_a_hue_of_its_own_choice_and_keeps_it() -> None:
    assert set(KNOWN) == set(registry())
    assert {label: (chosen.hue, chosen.dash) for label, chosen in looks(LOOKS).items()} == LOOKS
    beside = looks([*LOOKS, *names(12)])
    assert {label: (beside[label].hue, beside[label].dash) for label in LOOKS} == LOOKS
    assert sorted(look(label).hue for label in EIGHT) == list(range(len(HUES)))


@pytest.mark.parametrize("others", [("gcc", "nada", "scream"), ("fixed:1Mbps", "gcc:draft-02"), EIGHT[:7]])
def test_a_class_of_ones_own_has_a_hue_that_nobody_else_has(others: tuple[str, ...]) -> None:
    for name in names(2000):
        *known_hues, hue = hues([*others, name])
        assert hue not in known_hues, name
        assert known_hues == [look(label).hue for label in others]


@pytest.mark.parametrize("number", [2, 3, 5])
def test_several_have_different_hues_in_whatever_order(number: int) -> None:
    pool = names(100 * number)
    for start in range(0, len(pool), number):
        labels = ["gcc", *pool[start : start + number], "nada", "scream"]
        expected = looks(labels)
        assert len(set(hues(labels))) == len(labels), labels
        for order in itertools.islice(itertools.permutations(labels), 0, 5040, 97):
            assert looks(order) == expected


def test_those_of_schemes_that_many_compare_are_taken_last() -> None:
    pool = names(200)
    often = {look(label).hue for label in ("gcc", "fixed", "nada", "scream")}
    assert not often & {*OWN}
    for start in range(0, len(pool), len(OWN)):
        assert sorted(hues(pool[start : start + len(OWN)])) == sorted(OWN)


def test_where_no_hue_is_free_the_line_tells_them_apart_and_hues_are_shared_evenly() -> None:
    for name in names(200):
        drawn = looks([*EIGHT, name])
        assert len(set(drawn.values())) == len(drawn)
        assert [drawn[label] for label in EIGHT] == [look(label) for label in EIGHT]
    all_looks = looks([*registry(), *names(len(HUES) * len(DASHES) - len(registry()))])
    assert len(set(all_looks.values())) == len(all_looks) == len(HUES) * len(DASHES)
    for number in range(1, 3 * len(HUES)):
        lines = Counter(hues(names(number)))
        assert len(lines) == min(number, len(HUES))
        assert max(lines.values()) - min(lines.values()) <= 1
    # more names than there are looks: none is refused
    assert len(looks(names(100))) == 100


def test_it_keeps_its_colour_where_it_may_wherever_its_file_lies() -> None:
    for name in ("Mine", "Aimd"):
        same = (name, f"python:mine.py:{name}", f"python:/home/me/mine.py:{name}", f"python:__main__:{name}")
        assert len({look(label) for label in same}) == 1
        for others in (["gcc"], ["fixed", "gcc", "nada"], ["scream"]):
            assert all(looks([*others, label])[label] == look(name) for label in same)
    assert look("onnx:a/m.onnx") == look("onnx:/b/m.onnx") != look("onnx:a/n.onnx")


# --- all drawings that colour contenders ----------------------------------------------------------

Colours = dict[str, set[str]]


def legend_of(legend: Legend | None) -> Colours:
    assert legend is not None
    handles = zip(legend.legend_handles, legend.get_texts(), strict=True)
    return {text.get_text(): {to_hex(cast("Any", line).get_color())} for line, text in handles}


def on_sheet(groups: Groups) -> Colours:
    axes = plot.comparison(groups).axes
    colours = legend_of(axes[len(groups)].get_legend())
    for label, ax in zip(groups, axes, strict=False):
        (heading,) = [text for text in ax.texts if text.get_text() == label]
        colours[label] |= {to_hex(heading.get_color())}
    return colours


def of_delays(groups: Groups) -> Colours:
    return legend_of(plot.delay_cdf(groups).axes[0].get_legend())


def of_points(groups: Groups) -> Colours:
    return {text.get_text(): {to_hex(text.get_color())} for text in plot.rate_delay_scatter(groups).axes[0].texts[:-1]}


def on_page(groups: Groups) -> Colours:
    text = report.html(report.Source(groups))
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert data is not None
    charts = json.loads(data[1])["timeline"]
    colours: Colours = {label: set() for label in groups}
    for column in charts["columns"]:
        colours[column["label"]] |= {flow["colour"][0] for flow in column["flows"]}
    for line in charts["cdf"]["lines"]:
        colours[line["label"]].add(line["colour"][0])
    for label in groups:
        heads = re.findall(rf'<p[^>]*style="--light:(\S+?);--dark:\S+?"[^>]*>{label}</p>', text)
        swatches = re.findall(rf'<svg[^>]*style="--light:(\S+?);--dark:\S+?">(?:(?!</svg>).)*</svg>{label}</th>', text)
        dots = re.findall(rf'<text[^>]*style="--light:(\S+?);--dark:\S+?"[^>]*>{label}</text>', text)
        # the table of a flow may have several parts
        assert (len(heads) > 1, len(swatches) >= 2, len(dots) <= 1) == (True, True, True), label
        colours[label] |= {*heads, *swatches, *dots}
    return colours


def of_video(groups: Groups) -> Colours:
    columns = ("t_s", "psnr_encoded_db", "psnr_db", "vmaf", "vmaf_encoded", "latency_ms")
    values = {name: np.linspace(30.0, 40.0, 9) for name in columns}
    video = {
        label: Judged(cast("Any", runs[0]), "subject", cast("Any", None), values, {}, ())
        for label, runs in groups.items()
    }
    colours = legend_of(quality(video).legends[0])
    del colours["as encoded"]
    return colours


def on_suite_page(groups: Groups) -> Colours:
    result = made(tuple(groups))
    rows = {
        (case, label): {seed: _under(row, groups[label][0]) for seed, row in by_seed.items()}
        for (case, label), by_seed in result.rows.items()
    }
    text = html.page(replace(result, rows=rows).document())
    styles = re.findall(r'style="--light:(\S+?);--dark:\S+?"[^>]* data-name="([^"]+)"', text)
    colours: Colours = {label: {colour} for colour, label in styles}
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert data is not None
    for contender in json.loads(data[1])["cells"]["controllers"]:
        colours[contender["name"]].add(contender["light"])
    return colours


def _under(row: Mapping[str, Any], run: synthetic.SyntheticRun) -> dict[str, Any]:
    call, *others = row["flows"]
    return {**row, "flows": [{**call, "controller": run.summary["flows"][0]["controller"]}, *others]}


def _swept(groups: Groups) -> Any:
    """A sweep over two delays and the contenders, of a flow that has a second flow beside it."""
    rows = []
    for delay, (label, (run,)) in itertools.product(("2ms", "9ms"), groups.items()):
        flow = {**run.summary["flows"][0], "flow": "call"}
        summary = {**run.summary, "flows": [{**flow, "flow": "subject", "controller": "sprout"}, flow]}
        settings = {"links.up.delay": delay, "flows.call.media.controller": label}
        rows.append({"settings": settings, "seed": 1, "digest": "1", "summary": summary})
    return SimpleNamespace(
        keys=["links.up.delay", "flows.call.media.controller"], rows=rows, name="swept", failed=(), planned=len(rows), scenario="", command="",
        verdicts={},
    )  # fmt: skip


def of_sweep(groups: Groups) -> Colours:
    return legend_of(plot.sweep(_swept(groups)).legends[0])


def on_sweep_page(groups: Groups) -> Colours:
    text = report.html(_swept(groups))
    colours: Colours = {}
    for label in groups:
        swatch = rf'<svg[^>]*style="--light:(\S+?);--dark:\S+?">(?:(?!</svg>).)*</svg>(?:<b>)?{label}</(?:b|td)>'
        colours[label] = {*re.findall(swatch, text)}
    return colours


DRAWINGS: list[Callable[[Groups], Colours]] = [
    on_sheet, of_delays, of_points, on_page, of_video, on_suite_page, of_sweep, on_sweep_page,
]  # fmt: skip


@pytest.mark.parametrize("colours_of", DRAWINGS)
@pytest.mark.parametrize(
    ("ran", "expected"),
    [
        # a class beside schemes, whatever its file is called in a run
        (
            {"gcc": "gcc", "nada": "nada", "scream": "scream", "Mine": "python:/tmp/mine.py:Mine"},
            {"gcc": "gcc", "nada": "nada", "scream": "scream", "Mine": "Mine"},
        ),
        # people's own labels for schemes, and for a class of theirs
        (
            {"GCC": "gcc", "SCReAM": "scream", "NADA": "nada", "ours": "python:mine.py:Mine"},
            {"GCC": "gcc", "SCReAM": "scream", "NADA": "nada", "ours": "Mine"},
        ),
        # labels that are the name of another scheme than the one that ran, and classes named like a scheme
        (
            {"fixed": "gcc", "gcc": "nada", "scream": "python:__main__:scream"},
            {"fixed": "gcc", "gcc": "nada", "scream": "python:__main__:scream"},
        ),
        ({"tfrc": "python:__main__:tfrc", "tfrc@2": "tfrc"}, {"tfrc": "python:__main__:tfrc", "tfrc@2": "tfrc"}),
        # a variant's label says more than its run does
        (
            {"gcc:beta=0.8": "gcc", "fixed:1Mbps": "fixed"},
            {"gcc:beta=0.8": "gcc:beta=0.8", "fixed:1Mbps": "fixed:1Mbps"},
        ),
    ],
    ids=["own", "words", "others", "namesakes", "variants"],
)
def test_each_place_gives_a_label_the_colour_of_what_ran(
    colours_of: Callable[[Groups], Colours], ran: dict[str, str], expected: dict[str, str]
) -> None:
    groups = {label: [synthetic.under(controller)] for label, controller in ran.items()}
    chosen = looks(expected.values())
    assert colours_of(groups) == {label: {chosen[controller].colour} for label, controller in expected.items()}
    assert len({chosen[controller].hue for controller in expected.values()}) == len(expected)


def test_one_controller_under_several_labels_has_its_look_once_and_free_hues_after_that() -> None:
    groups = {label: [synthetic.under("gcc")] for label in ("before", "after", "gcc")}
    (ax,) = plot.delay_cdf(groups).axes
    lines = {str(line.get_label()): line for line in ax.lines if str(line.get_label()) in groups}
    assert len({to_hex(line.get_color()) for line in lines.values()}) == len(groups)
    assert to_hex(lines["gcc"].get_color()) == look("gcc").colour
    # without a label that is its name, the first label has its look
    assert looks(["before", "after"], {"before": ["gcc"], "after": ["gcc"]})["before"] == look("gcc")


def test_columns_of_variants_have_hues_of_their_own_and_contenders_keep_theirs() -> None:
    ran = {"as it is": ["gcc"], "long queue": ["gcc"], "far": ["gcc"], "NADA": ["nada"], "old": ["gcc:draft-02"]}
    chosen = looks(ran, ran)
    assert chosen["as it is"] == look("gcc")
    assert chosen["NADA"] == look("nada")
    assert chosen["old"] == look("gcc:draft-02")
    hues = [chosen[label].hue for label in ("as it is", "long queue", "far", "NADA")]
    assert len(set(hues)) == len(hues)
    # in the order of the columns, whatever the names
    other = {"z": ["gcc"], "y": ["gcc"], "x": ["gcc"]}
    assert [look.hue for look in looks(other, other).values()] == [look.hue for look in looks(
        {"a": 0, "b": 0, "c": 0}, {name: ["gcc"] for name in "abc"}).values()]  # fmt: skip


def test_a_label_of_several_controllers_goes_by_their_scheme_or_its_own_name() -> None:
    variants = [synthetic.under("gcc"), synthetic.under("gcc:draft-02", 2)]
    assert of_delays({"GCC": variants}) == {"GCC": {look("gcc").colour}}
    mixed = [synthetic.under("gcc"), synthetic.under("nada", 2)]
    assert of_delays({"both": mixed, "gcc": variants}) == {"both": {look("both").colour}, "gcc": {look("gcc").colour}}


def test_one_run_by_itself_has_its_colour_of_comparisons() -> None:
    run = synthetic.under("python:/home/me/mine.py:Mine")
    received = plot.time_series(run).axes[1].lines[-1]
    assert to_hex(received.get_color()) == look("Mine").colour == looks(["gcc", "nada", "Mine"])["Mine"].colour
