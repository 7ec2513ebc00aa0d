"""AlphaRTC's Python class as a controller: what it is told, when it is asked, and what is said of a wrong one."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tidegate import InputError, RunError, Scenario, run
from tidegate._core import Remb
from tidegate.control import Arrived, registry
from tidegate.control.learned._receiving import Estimating
from tidegate.scenario.variants import with_controller

MS = 10**6

# of our own, in the shape that challenges have: a class in one file, helpers and data beside it
ESTIMATOR = """
import json
from helpers.record import Record


class Estimator(object):
    def __init__(self, start=500_000, weights="weights.json"):
        with open(weights) as file:
            self.gain = json.load(file)["gain"]
        self.record = Record()
        self.rate = start
        self.asked = []

    def report_states(self, stats: dict):
        self.record.add(stats)

    def get_estimated_bandwidth(self) -> int:
        self.asked.append(len(self.record.seen))
        self.rate = self.gain * self.record.rate() if self.record.lost() == 0 else 0.8 * self.rate
        return self.rate
"""
RECORD = """
class Record:
    def __init__(self):
        self.seen = []

    def add(self, stats):
        self.seen.append(stats)

    def rate(self):
        since = [one for one in self.seen if one["arrival_time_ms"] > self.seen[-1]["arrival_time_ms"] - 1000]
        return 8 * sum(one["payload_size"] for one in since)

    def lost(self):
        numbers = [one["sequence_number"] for one in self.seen[-50:]]
        return numbers[-1] - numbers[0] + 1 - len(numbers)
"""


def submission(folder: Path, gain: float = 1.5, record: str = RECORD) -> Path:
    (folder / "helpers").mkdir(parents=True, exist_ok=True)
    (folder / "helpers" / "record.py").write_text(record)
    (folder / "weights.json").write_text(json.dumps({"gain": gain}))
    file = folder / "BandwidthEstimator.py"
    file.write_text(ESTIMATOR)
    return file


def scenario(controller: str, duration: str = "6s") -> Scenario:
    return Scenario.load("home-broadband").with_changes(
        {"flows.call.media.controller": controller, "duration": duration}
    )


def half_of(label: str) -> Estimating:
    halves = registry.choose(label, Path()).factory()
    assert halves is not None
    half = halves()[1]
    assert isinstance(half, Estimating)
    return half


def test_a_packet_is_told_in_the_keys_of_alphartc(tmp_path: Path) -> None:
    half = half_of(f"alphartc:{submission(tmp_path)}")
    # half a second by the sender's clock, just before its 24 bits wrap, and the next one just after
    first = Arrived(7, 1100, 2**24 - 2**17, ssrc=9, rtp_sequence=2**16 + 5, header=32, padding=0, payload_type=96)
    half.on_packet(1_234_567_890, first)
    half.on_packet(1_235_999_999, Arrived(8, 240, 2**17, ssrc=4, header=12, padding=228, payload_type=127))
    reported = half._estimator.record.seen  # type: ignore[attr-defined]
    assert reported == [
        {
            "send_time_ms": 63_500,
            "arrival_time_ms": 1234,
            "payload_type": 126,
            "sequence_number": 5,
            "ssrc": 9,
            "padding_length": 0,
            "header_length": 32,
            "payload_size": 1068,
        },
        {
            "send_time_ms": 64_500,
            "arrival_time_ms": 1235,
            "payload_type": 127,
            "sequence_number": 8,
            "ssrc": 4,
            "padding_length": 228,
            "header_length": 12,
            "payload_size": 228,
        },
    ]


@pytest.mark.parametrize(("settings", "media"), [("", 126), (":payload_type=96", 96), (":payload_type=100", 100)])
def test_video_has_the_payload_type_of_alphartcs_environment_or_that_which_one_says(
    tmp_path: Path, settings: str, media: int
) -> None:
    half = half_of(f"alphartc:{submission(tmp_path)}{settings}")
    for number, payload_type in enumerate((96, 97, 98, 111, 127)):
        half.on_packet(number * MS, Arrived(number, 100, number * 262, payload_type=payload_type))
    reported = half._estimator.record.seen  # type: ignore[attr-defined]
    # retransmissions, parity, audio and padding are not media of that type
    assert [stats["payload_type"] for stats in reported] == [media, 97, 98, 111, 127]


# as published estimators do: packets of other types do not count for the loss, and without a loss nothing grows
BY_LOSS = """
class Estimator:
    def __init__(self):
        self.numbers, self.rate = [], 300_000

    def report_states(self, stats):
        if stats["payload_type"] == 126:
            self.numbers.append(stats["sequence_number"])

    def get_estimated_bandwidth(self):
        numbers, self.numbers = self.numbers, []
        if numbers and len(numbers) == max(numbers) - min(numbers) + 1:
            self.rate = min(1.05 * self.rate, 1_500_000)
        return int(self.rate)
"""


def test_an_estimator_that_looks_for_type_126_grows(tmp_path: Path) -> None:
    (tmp_path / "e.py").write_text(BY_LOSS)
    rates = {
        settings: run(scenario(f"alphartc:{tmp_path / 'e.py'}{settings}", "12s")).metrics("call")["receive_rate_bps"]
        for settings in ("", ":payload_type=96")
    }
    assert rates[""] > 8e5
    assert rates[":payload_type=96"] < 3.5e5


@pytest.mark.parametrize(("settings", "interval"), [("", 200), (":interval_ms=60", 60)])
def test_it_is_asked_every_200_ms_or_as_often_as_one_says(tmp_path: Path, settings: str, interval: int) -> None:
    half = half_of(f"alphartc:{submission(tmp_path)}{settings}")
    asked = []
    for number in range(1000):  # a packet a millisecond
        ask = half.on_packet((10 + number) * MS, Arrived(number, 100, number * 262))
        if isinstance(ask, tuple) and ask[0] == "now":
            asked.append(number)
    assert asked == list(range(interval, 1000, interval))
    # what arrived until then was told before
    assert half._estimator.asked == [number + 1 for number in asked]  # type: ignore[attr-defined]


def test_a_submission_runs_as_it_is_from_another_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    file = submission(tmp_path / "mine")
    monkeypatch.chdir(tmp_path)
    path, modules = list(sys.path), set(sys.modules)
    done = run(with_controller(scenario("gcc"), "alphartc:mine/BandwidthEstimator.py:start=700000"))
    assert (sys.path, Path.cwd()) == (path, tmp_path)
    assert not {name for name in set(sys.modules) - modules if name.startswith("helpers")}
    # the estimate grows by half of what arrived in a second, so that the call fills the line of 5 Mbit/s at times
    assert 1e6 < done.metrics("call")["receive_rate_bps"] < 5e6
    # the result names each file that it is made of
    assert sorted(done.about["inputs"]) == sorted(
        ["alphartc:mine/BandwidthEstimator.py", f"{file.parent}/helpers/record.py"]
    )
    assert capfd.readouterr().out == ""


def test_submissions_whose_modules_have_the_same_names_keep_their_own(tmp_path: Path) -> None:
    slow = RECORD.replace("return 8 * sum", "return 100_000 + 0 * sum")
    files = [submission(tmp_path / "a"), submission(tmp_path / "b", record=slow)]
    rates = []
    for file in (*files, files[0]):
        half = half_of(f"alphartc:{file}")
        half.on_packet(0, Arrived(0, 1_000_012, 0))
        half.on_alarm(200 * MS)
        [remb] = half.message(200 * MS)
        assert isinstance(remb, Remb)
        rates.append(remb.bitrate_bps)
    assert rates == [12_000_000, 150_000, 12_000_000]


def test_a_module_of_ones_own_with_such_a_name_stays_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = ModuleType("helpers")
    mine.__file__ = str(tmp_path / "elsewhere" / "helpers.py")
    monkeypatch.setitem(sys.modules, "helpers", mine)
    half = half_of(f"alphartc:{submission(tmp_path / 'a')}")
    assert sys.modules["helpers"] is mine
    assert "helpers.record" not in sys.modules
    half.on_packet(0, Arrived(0, 1012, 0))


def test_a_changed_helper_is_read_anew_and_another_result(tmp_path: Path) -> None:
    from tidegate.scenario.lower import Lowered

    label = f"alphartc:{submission(tmp_path)}"
    first = Lowered(scenario(label)).for_run()
    (tmp_path / "helpers" / "record.py").write_text(RECORD + "\nCHANGED = True\n")
    assert Lowered(scenario(label)).for_run().hash != first.hash


def test_arrays_with_one_number_are_answers_as_for_int(tmp_path: Path) -> None:
    answer = "import numpy as np\nclass Estimator:\n    def report_states(self, stats): pass\n"
    (tmp_path / "e.py").write_text(f"{answer}    def get_estimated_bandwidth(self): return np.array([[8e5]])\n")
    half = half_of(f"alphartc:{tmp_path / 'e.py'}")
    half.on_packet(0, Arrived(0, 100, 0))
    half.on_alarm(200 * MS)
    [remb] = half.message(0)
    assert isinstance(remb, Remb)
    assert remb.bitrate_bps == 800_000


WRONG = {
    "float('nan')": "nan",
    "None": "None",
    "-5": "-5",
    "10**20": "100000000000000000000",
    "'fast'": '"fast"',
    "True": "True",
    "[1, 2]": r"\[1, 2\]",
}


@pytest.mark.parametrize("answer", WRONG)
def test_an_answer_that_is_no_rate_ends_the_run_with_its_file_and_line(tmp_path: Path, answer: str) -> None:
    file = tmp_path / "e.py"
    body = f"class Estimator:\n    def report_states(self, stats):\n        pass\n\n    def get_estimated_bandwidth(self):\n        return {answer}\n"
    file.write_text(body)
    message = rf"e\.py \(line 5\): get_estimated_bandwidth returned {WRONG[answer]}; expected bit/s from 0 to 10\^12$"
    with pytest.raises(RunError, match=rf"^call\.receiver at [\d.]+s: .*{message}"):
        run(scenario(f"alphartc:{file}", "2s"))


def test_the_line_is_that_of_the_file_that_has_the_method(tmp_path: Path) -> None:
    (tmp_path / "other.py").write_text("class Base:\n    def get_estimated_bandwidth(self):\n        return None\n")
    text = "from other import Base\nclass Estimator(Base):\n    def report_states(self, stats): pass\n"
    (tmp_path / "e.py").write_text(text)
    with pytest.raises(RunError, match=r"e\.py \(other\.py, line 2\): get_estimated_bandwidth returned None"):
        run(scenario(f"alphartc:{tmp_path / 'e.py'}", "2s"))


def test_an_exception_ends_the_run_with_its_place(tmp_path: Path) -> None:
    file = tmp_path / "e.py"
    file.write_text(
        "class Estimator:\n    def report_states(self, stats):\n        stats['size']\n    def get_estimated_bandwidth(self): pass\n"
    )
    with pytest.raises(RunError, match=r"raised KeyError: 'size' \(.*e\.py, line 3, in report_states\)$"):
        run(scenario(f"alphartc:{file}", "2s"))


BROKEN = {
    "import torch_that_is_absent": r"cannot be imported: ModuleNotFoundError: No module named '\w+' \(line 1\)",
    "def Estimator(": r"cannot be imported: SyntaxError: .* \(line 1\)",
    "import helpers.worse": r"cannot be imported: ZeroDivisionError: .* \(helpers/worse\.py, line 2\)",
    "class Estimate: pass": r"the module has no class Estimator; did you mean Estimate\?",
    "Estimator = 3": "the module has no class Estimator",
    "\nclass Estimator:\n    def report_states(self, stats): pass": (
        r"\(line 2\): Estimator has no method get_estimated_bandwidth; expected report_states and get_estimated_bandwidth"
    ),
}


@pytest.mark.parametrize("text", BROKEN)
def test_what_is_no_estimator_is_told_in_one_line(tmp_path: Path, text: str) -> None:
    (tmp_path / "helpers").mkdir()
    (tmp_path / "helpers" / "worse.py").write_text("\n1 / 0\n")
    (tmp_path / "e.py").write_text(text)
    with pytest.raises(InputError) as error:
        registry.choose("alphartc:e.py", tmp_path)
    assert "\n" not in str(error.value)
    assert error.match(rf"^e\.py:? ?{BROKEN[text]}")


def test_settings_that_it_does_not_take_are_told(tmp_path: Path) -> None:
    label = f"alphartc:{submission(tmp_path)}"
    for setting, message in {
        "gain=2": r"\(line 6\): Estimator: got an unexpected keyword argument 'gain'",
        "interval_ms=0": 'interval_ms: found "0"; expected 1 to 60000 milliseconds',
        "interval_ms=soon": 'interval_ms: found "soon"',
        "payload_type=128": 'payload_type: found "128"; expected a whole number from 0 to 127',
        "payload_type=96.5": 'payload_type: found "96.5"',
        "fast": 'found "fast"; expected key=value',
    }.items():
        with pytest.raises(InputError, match=message):
            registry.choose(f"{label}:{setting}", Path())
    with pytest.raises(InputError, match=r'found "alphartc:"; expected alphartc:BandwidthEstimator\.py'):
        registry.choose("alphartc:", Path())


def test_what_its_making_raises_is_told_with_its_place(tmp_path: Path) -> None:
    file = submission(tmp_path)
    (tmp_path / "weights.json").unlink()
    with pytest.raises(InputError, match=r"Estimator\(\) raised FileNotFoundError: .*weights\.json' \(line 8\)$"):
        run(scenario(f"alphartc:{file}"))


def test_who_only_reads_runs_nothing(tmp_path: Path) -> None:
    file = tmp_path / "e.py"
    file.write_text("raise SystemExit('run')\nclass Estimator: pass\n")
    assert registry.choose("alphartc:e.py", tmp_path, run_code=False).is_run is False
    named = scenario(f"alphartc:{file}")
    named.check()
    assert named.code == [f"alphartc:{file}"]
    file.write_text("class Other: pass\n")
    with pytest.raises(InputError, match="the module has no class Estimator"):
        registry.choose("alphartc:e.py", tmp_path, run_code=False)
