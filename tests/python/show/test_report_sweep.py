"""The page, the figure and the table of a sweep: the roles of its settings, and agreement with the results."""

from __future__ import annotations

import html
import itertools
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

from support import PLAIN, Cli
from tidegate import InputError, Scenario, plot, report, sweep
from tidegate.comparison.sweeping import SweepResult
from tidegate.output.palette import look, shade
from tidegate.show.sweeps import Swept, shortened

UP, DOWN, CONTROLLER = "links.up.delay", "links.down.delay", "flows.call.media.controller"


@dataclass
class FakeSweep:
    """A sweep that was never run: rate and delay grow with the number of the run."""

    grid: Mapping[str, Sequence[str]]
    seeds: int = 1
    name: str = "made"
    failed: Sequence[str] = ()
    scenario: str = 'name = "made"'
    command: str = "tidegate sweep made"
    verdicts: Mapping[tuple[str, ...], str] = field(default_factory=dict)
    rows: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        def combinations(keys: Sequence[str]) -> list[dict[str, str]]:
            if not keys:
                return [{}]
            return [{keys[0]: value, **rest} for value in self.grid[keys[0]] for rest in combinations(keys[1:])]

        for settings in combinations(list(self.grid)):
            for seed in range(1, self.seeds + 1):
                number = len(self.rows) + 1
                controller = next((value for key, value in settings.items() if key.endswith("controller")), "gcc")
                flow = {
                    "flow": "call", "kind": "media", "controller": controller, "utilisation": 0.5, "loss_fraction": 0.0,
                    "receive_rate_bps": 1e6 * number, "one_way_delay_ms_p95": 10.0 * number,
                }  # fmt: skip
                summary = {"name": "made", "seed": seed, "digest": f"{number:x}", "flows": [flow], "links": []}
                self.rows.append({"settings": settings, "seed": seed, "digest": f"{number:x}", "summary": summary})

    @property
    def keys(self) -> list[str]:
        return list(self.grid)

    @property
    def planned(self) -> int:
        return len(self.rows)


ONE = {UP: ["2ms", "10ms", "50ms"]}
TWO = {UP: ["2ms", "10ms"], DOWN: ["1ms", "5ms", "9ms"]}
CONTROLLERS = {CONTROLLER: ["gcc", "nada", "fixed:1Mbps"]}


@pytest.mark.parametrize(
    ("grid", "axes", "panels", "lines", "how"),
    [
        (ONE, [UP], [""], 1, ""),
        ({**ONE, **CONTROLLERS, "duration": ["9s"]}, [UP], [""], 3, ""),
        (CONTROLLERS, [], [""], 3, ""),
        (TWO, [UP, DOWN], [""], 1, ""),
        ({**CONTROLLERS, **TWO}, [UP, DOWN], ["gcc", "nada", "fixed:1Mbps"], 1,
         "Axes: up.delay and down.delay. A panel for each controller."),
        ({**TWO, "links.up.queue.time": ["1s", "2s"], **CONTROLLERS}, [UP, DOWN],
         [f"queue.time {time}, {name}" for time in ("1s", "2s") for name in CONTROLLERS[CONTROLLER]], 1,
         "Axes: up.delay and down.delay. A panel for each queue.time and controller."),
        ({"case": ["5.1", "5.2"], **ONE, **CONTROLLERS}, [UP], ["all cases", "5.1", "5.2"], 3,
         "Axes: up.delay. A panel for each case."),
    ],
)  # fmt: skip
def test_which_setting_is_drawn_how(
    grid: dict[str, list[str]], axes: list[str], panels: list[str], lines: int, how: str
) -> None:
    swept = Swept.of(FakeSweep(grid))
    assert list(swept.axes) == axes
    assert [panel.title for panel in swept.panels] == panels
    assert {len(panel.lines) for panel in swept.panels} == {lines}
    assert swept.how == how
    drawn = [combination for panel in swept.panels for line in panel.lines.values() for combination in line]
    assert sorted(map(id, drawn)) == sorted(map(id, swept.combinations))


def test_keys_are_shortened_as_far_as_they_stay_apart() -> None:
    keys = ["links.a.queue.time", "links.b.queue.time", "flows.x.media.controller", "duration"]
    assert list(shortened(keys).values()) == ["a.queue.time", "b.queue.time", "controller", "duration"]
    controllers = ["flows.x.media.controller", "flows.y.media.controller"]
    assert list(shortened(controllers).values()) == ["x.media.controller", "y.media.controller"]


def words(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.findobj(Text) if text.get_text() and text.get_visible()]


def test_the_figure_of_one_setting_has_a_line_for_each_controller_with_the_values_at_its_points() -> None:
    figure = plot.sweep(FakeSweep({**ONE, **CONTROLLERS}))
    (ax,) = figure.axes
    lines = [line for line in ax.lines if len(line.get_xdata()) == 3]
    assert [line.get_color() for line in lines] == [look(name).colour for name in CONTROLLERS[CONTROLLER]]
    # runs are numbered consecutively: the first controller has every third
    assert list(lines[0].get_ydata()) == [1.0, 4.0, 7.0]
    assert list(lines[0].get_xdata()) == [10.0, 40.0, 70.0]
    texts = words(figure)
    assert {"Receive rate (Mbit/s)", "One-way delay, 95th percentile (ms)", f"made, along {UP}"} <= {*texts}
    assert sorted(text for text in texts if text.endswith("ms") and text[0].isdigit()) == sorted(ONE[UP] * 3)
    assert ax.get_xlim()[0] > ax.get_xlim()[1]


def test_the_figure_of_two_settings_is_two_maps_for_each_controller() -> None:
    figure = plot.sweep(FakeSweep({**TWO, "flows.call.media.controller": ["gcc", "nada"]}))
    maps = figure.findobj(lambda artist: getattr(artist, "patches", None) and len(artist.patches) == 6)
    assert len(maps) == 4
    texts = words(figure)
    assert {UP, DOWN, "gcc", "nada", "Receive rate (Mbit/s)", "One-way delay, 95th percentile (ms)"} <= {*texts}
    assert {f"{10.0 * number:.1f}" for number in range(1, 10)} <= {*texts}


def test_panels_that_are_left_out_are_told() -> None:
    cases = {"case": [f"c{number}" for number in range(15)], **ONE}
    assert any("The first 12 of 16 panels." in text for text in words(plot.sweep(FakeSweep(cases))))
    with pytest.raises(ValueError, match="needs at least two combinations of settings with rate and delay"):
        plot.sweep(FakeSweep({UP: ["1ms"]}))


def test_labels_cover_no_other_label() -> None:
    figure = plot.sweep(FakeSweep({UP: [f"{number}ms" for number in range(1, 80)]}))
    (ax,) = figure.axes
    boxes = [text.get_window_extent() for text in ax.texts]
    assert 5 < len(boxes) < 79
    # widths are estimates: a letter may exceed them a little
    shrunk = [box.expanded(0.85, 0.85) for box in boxes]
    assert not any(a.overlaps(b) for a, b in itertools.combinations(shrunk, 2))


def test_the_page_has_every_combination_and_fetches_nothing() -> None:
    text = report.html(FakeSweep({**ONE, **CONTROLLERS}, seeds=2))
    assert text.count('class="dot plain"') == 9 * (1 + 4)
    assert "default-src 'none'" in html.unescape(text)
    assert not re.search(r'(?:src|href)="(?!data:)', text)
    body = text.partition('class="numbers"')[2].partition("</table>")[0]
    assert body.count("<tr>") == 1 + 9
    # the mean of the first two runs and its interval: t(0.975, 1) * sqrt(0.5) / sqrt(2)
    assert f'1.50<span class="interval"> ± {12.7062 * math.sqrt(0.5) / math.sqrt(2):.2f}</span>' in body
    assert "uplink" not in text.partition("<main>")[2]


def test_a_map_of_the_page_has_the_numbers_in_their_places() -> None:
    text = report.html(FakeSweep(TWO))
    first = text.partition('class="map"')[2].partition("</table>")[0]
    rows = [re.findall(r"<t[dh][^>]*>([^<]*)</t[dh]>", row) for row in first.split("<tr>")[1:]]
    assert rows == [
        ["down.delay \\ up.delay", "2ms", "10ms"],
        ["9ms", "3.00", "6.00"],
        ["5ms", "2.00", "5.00"],
        ["1ms", "1.00", "4.00"],
    ]
    darkest, _ = shade(6.0, 1.0, 6.0, "higher")
    assert first.count(f"background:{darkest}") == 1


def test_names_are_text_on_the_page() -> None:
    evil = "<script>alert(1)</script>"
    text = report.html(FakeSweep({UP: [evil, "2"], "flows.<b>.media.controller": ["</script><b>", "gcc"]}, name=evil))
    assert evil not in text
    assert "</script><b>" not in text
    assert html.escape(evil) in text


@pytest.mark.parametrize("value", [math.nan, None])
def test_a_number_that_is_not_there_is_a_dash_and_no_point(value: float | None) -> None:
    swept = FakeSweep(ONE)
    swept.rows[1]["summary"]["flows"][0]["one_way_delay_ms_p95"] = value
    text = report.html(swept)
    assert text.partition("All numbers")[0].count('class="dot plain"') == 2
    assert "nan" not in text.partition("<main>")[2].partition("<script")[0].lower()
    plot.sweep(swept).savefig("/dev/null", format="png")


def test_many_combinations_stay_small_and_say_so() -> None:
    swept = FakeSweep({UP: [f"{number}ms" for number in range(60)], DOWN: [f"{number}ms" for number in range(60)]})
    text = report.html(swept)
    assert "The first 1000 of 3600 combinations; summary.md has all." in text
    assert len(text) < 5_000_000


# --- with runs ------------------------------------------------------------------------------------


def test_a_sweep_comes_back_from_its_folder_and_so_does_its_page(tmp_path: Path, cli: Cli) -> None:
    (tmp_path / "x.toml").write_text(PLAIN.replace('"4s"', '"1s"'))
    argv = (
        "--set",
        "links.cable.delay=10ms:20ms:2",
        "--set",
        f"{CONTROLLER}=gcc,fixed:1Mbps",
        "--seeds",
        "2",
        "--out",
        "o",
    )
    got = cli("sweep", "x.toml", *argv)
    assert got.code == 0, got.err
    assert (
        "written to o: report.html, sweep.png, summary.md, summary.csv, flows.csv, results/, runs.parquet/" in got.out
    )
    folder = tmp_path / "o"
    page, picture = (folder / "report.html").read_bytes(), (folder / "sweep.png").read_bytes()
    again = SweepResult.load(folder)
    assert again.to_csv() == (folder / "summary.csv").read_text()
    assert again.to_markdown() == (folder / "summary.md").read_text()
    (folder / "report.html").unlink()
    assert cli("report", "o").code == 0
    assert (folder / "report.html").read_bytes() == page
    assert cli("report", "o", "--out", "o.png").code == 0
    assert (tmp_path / "o.png").read_bytes() == picture
    assert b"tidegate sweep x.toml" in page or b"The command that made these runs" in page
    # a missing run is reported, not forgotten
    next((folder / "results").glob("*.json")).unlink()
    assert cli("report", "o").code == 0
    assert b"1 of 8 runs are missing" in (folder / "report.html").read_bytes()


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (lambda index: index.pop("results"), "is damaged: results: the key is missing"),
        (lambda index: index["results"].pop(), "is damaged: "),
        (lambda index: index.update(grid=3), "is damaged: "),
        (lambda index: index.update(results=["0" * 32] * 2), "none of the 2 runs of the sweep is done"),
    ],
)
def test_a_damaged_sweep_says_so(tmp_path: Path, damage: Any, why: str) -> None:
    sweep(Scenario.parse(PLAIN.replace('"4s"', '"1s"')), {"links.cable.delay": ["1ms", "2ms"]}, out=tmp_path / "o")
    file = tmp_path / "o" / "sweep.json"
    index = json.loads(file.read_text())
    damage(index)
    file.write_text(json.dumps(index))
    (tmp_path / "o" / "manifest.json").unlink()
    with pytest.raises(InputError) as caught:
        SweepResult.load(tmp_path / "o")
    assert why in str(caught.value)


def test_what_is_the_same_in_every_line_is_told_once(tmp_path: Path, cli: Cli) -> None:
    (tmp_path / "x.toml").write_text(PLAIN)
    got = cli("sweep", "x.toml", "--set", "links.cable.delay=1ms,2ms", "--set", "duration=1s", "--out", "o")
    assert "duration = 1s, 1 run each\n" in got.out
    head = next(line for line in got.out.splitlines() if "cable.delay" in line)
    assert "duration" not in head
    assert max(map(len, got.out.splitlines())) <= 130
