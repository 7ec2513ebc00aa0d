"""Values of a sweep as people write them: at their commas, and ranges spread out."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from support import PLAIN, Cli
from tidegate import InputError
from tidegate.query.ranges import values
from tidegate.units import Duration, Rate


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2ms:50ms:5", ["2ms", "14ms", "26ms", "38ms", "50ms"]),
        ("50ms:2ms:3", ["50ms", "26ms", "2ms"]),
        ("log:100kbps:10Mbps:4", ["100kbps", "464kbps", "2.15Mbps", "10Mbps"]),
        # a unit of both ends stays; with two units values are written as quantities are
        ("100ms:2000ms:3", ["100ms", "1050ms", "2000ms"]),
        ("500ms:2s:4", ["500ms", "1s", "1.5s", "2s"]),
        ("1ms:2ms:4", ["1ms", "1.333ms", "1.667ms", "2ms"]),
        ("0.1:0.4:4", ["0.1", "0.2", "0.3", "0.4"]),
        ("log:0.001:0.1:3", ["0.001", "0.01", "0.1"]),
        ("5%:0%:3", ["5%", "2.5%", "0%"]),
        ("-5:5:3", ["-5", "0", "5"]),
        ("1:10:4", ["1", "4", "7", "10"]),
    ],
)
def test_ranges(text: str, expected: list[str]) -> None:
    assert values(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("gcc:draft-02,fixed:2Mbps,python:mine.py:Mine", ["gcc:draft-02", "fixed:2Mbps", "python:mine.py:Mine"]),
        ('gcc,"gcc:draft-02,k_up=0.02"', ["gcc", "gcc:draft-02,k_up=0.02"]),
        ("[2, 1],[1,1]", ["[2, 1]", "[1,1]"]),
        ('0%,{ mean = "1%", burst = 5 }', ["0%", '{ mean = "1%", burst = 5 }']),
        ('{ file = "a,b}" },x', ['{ file = "a,b}" }', "x"]),
        ('"1ms:2ms:3",4ms', ["1ms:2ms:3", "4ms"]),
        ('"a ""b""",c', ['a "b"', "c"]),
        ("1ms, 2ms:4ms:2 ,8ms", ["1ms", "2ms", "4ms", "8ms"]),
    ],
)
def test_commas_and_colons_of_the_values_themselves(text: str, expected: list[str]) -> None:
    assert values(text) == expected


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("2ms:50ms", "2ms:50ms: expected a range with its ends and a count: 2ms:50ms:5 (five values, evenly)"),
        ("2ms:50ms:1", 'found the count "1"; expected a whole number from 2 to 1000'),
        ("2ms:50ms:2.5", 'found the count "2.5"'),
        ("2ms:50ms:1001", 'found the count "1001"'),
        ("2:50ms:5", "2:50ms:5: both ends need their unit: 2ms?"),
        ("2ms:50:5", "both ends need their unit: 50ms?"),
        ("2ms:50kbps:5", "the units of 2ms and 50kbps do not fit together"),
        ("2ms:50%:5", "the units of 2ms and 50% do not fit together"),
        ("2ms:2ms:5", "both ends are equal; expected different ends"),
        ("2ms:0.002s:5", "both ends are equal; expected different ends"),
        ("log:0ms:2ms:5", "both ends of a log range must be above zero"),
        ("2mss:50mss:5", 'there is no unit "mss"'),
        ("2ms:x:5", '"x" is not a number with its unit'),
        ("1e999999999:2:3", "1e999999999 is outside of the range of numbers"),
        ("1e-999999999:2:3", "1e-999999999 is outside of the range of numbers"),
        ("1e18h:1h:3", "1e18h is outside of the range of numbers"),
        ("[1,2", "] is missing at the end"),
        ('"a,b', '" is missing at the end'),
        ("a,,b", "expected values with commas between them"),
        ("a,", "expected values with commas between them"),
    ],
)
def test_what_is_wrong_is_said(text: str, why: str) -> None:
    with pytest.raises(InputError) as caught:
        values(text)
    assert why in str(caught.value)


@given(st.integers(1, 10**12), st.integers(1, 10**12), st.integers(2, 60), st.booleans())
@example(10**12, 1, 3, True)
def test_steps_are_equal(low: int, high: int, count: int, log: bool) -> None:
    smaller, larger = min(low, high), max(low, high)
    closest = smaller * ((larger / smaller) ** (1 / (count - 1)) - 1) if log else (larger - smaller) / (count - 1)
    if closest < 1 + 1e-6:
        return
    spread = values(f"{'log:' if log else ''}{low}ns:{high}ns:{count}")
    assert (spread[0], spread[-1], len(spread)) == (f"{low}ns", f"{high}ns", count)
    numbers = [float(text.removesuffix("ns")) for text in spread]
    numbers = [math.log(number) for number in numbers] if log else numbers
    step = (numbers[-1] - numbers[0]) / (count - 1)
    # rounding moves each of two neighbours by half a hundredth of their distance at most, which is less in logarithms
    assert all(abs(b - a - step) <= 0.01 * abs(step) + 1e-9 for a, b in itertools.pairwise(numbers))


@given(st.integers(1, 10**9), st.integers(1, 10**9), st.integers(2, 20))
@example(1000, 1, 2)
def test_what_is_spread_can_be_read(low: int, high: int, count: int) -> None:
    if low == high:
        return
    for kind, units in ((Duration, ("us", "s")), (Rate, ("bps", "kbps"))):
        ends = [int(kind.parse(f"{end}{unit}")) for end, unit in zip((low, high), units, strict=True)]
        if abs(ends[1] - ends[0]) < count - 1:
            why = "both ends are equal" if ends[0] == ends[1] else "values would be less than"
            with pytest.raises(InputError, match=why):
                values(f"{low}{units[0]}:{high}{units[1]}:{count}")
            continue
        amounts = [kind.parse(text) for text in values(f"{low}{units[0]}:{high}{units[1]}:{count}")]
        assert amounts[0] == kind.parse(f"{low}{units[0]}")
        assert amounts == sorted(set(amounts), reverse=amounts[0] > amounts[-1])


@pytest.mark.parametrize("text", ["982bps:1kbps:20", "982bps:990bps:20", "log:1bps:4bps:5", "1ns:3ns:4"])
def test_values_closer_than_the_resolution_are_refused(text: str) -> None:
    with pytest.raises(
        InputError, match=f"^{text}: .* values would be less than 1(bps|ns) apart; expected fewer values"
    ):
        values(text)


def test_the_command_spreads_ranges(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_text(PLAIN.replace('"4s"', '"1s"'))
    got = cli("sweep", "x.toml", "--set", "links.cable.delay=2ms:6ms:3,50ms", "--out", "o", "--json")
    assert got.code == 0, got.err
    delays = [run["settings"]["links.cable.delay"] for run in json.loads(got.out)["runs"]]
    assert delays == ["2ms", "4ms", "6ms", "50ms"]


def test_priorities_need_no_quotes(cli: Cli) -> None:
    argv = ("--set", "couplings.1.priorities=[2, 1, 1],[1, 1, 1]", "--set", "duration=21s", "--out", "o", "--json")
    got = cli("sweep", "coupled-calls", *argv)
    assert got.code == 0, got.err
    rates = [[flow["receive_rate_bps"] for flow in run["summary"]["flows"]] for run in json.loads(got.out)["runs"]]
    assert len(rates) == 2
    assert rates[0] != rates[1]
