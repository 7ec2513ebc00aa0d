"""Numbers with units."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.errors import InputError
from tidegate.units import Duration, Fraction, Quantity, Rate, Size, seconds


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (Duration, "20ms", 20_000_000),
        (Duration, " 1.5 s ", 1_500_000_000),
        (Duration, "2min", 120_000_000_000),
        (Duration, "33.333333ms", 33_333_333),
        (Duration, "7us", 7_000),
        (Duration, "0s", 0),
        (Rate, "2.5Mbps", 2_500_000),
        (Rate, "1e3kbps", 1_000_000),
        (Rate, "64 kbit/s", 64_000),
        (Rate, "1Gb/s", 10**9),
        (Size, "1200B", 1200),
        (Size, "1_500B", 1500),
        (Size, "13.5kB", 13_500),
    ],
)
def test_reads(kind: type[Quantity], text: str, value: int) -> None:
    got = kind.parse(text)
    assert (got, type(got)) == (value, kind)


@pytest.mark.parametrize(
    ("kind", "wrong", "message"),
    [
        (Duration, "20", 'found "20"; a time needs a unit, for example "20ms" or "20s"'),
        (Duration, 20, 'found 20; a time needs a unit, for example "20ms" or "20s"'),
        (Duration, True, 'found true; expected a time, for example "20ms"'),
        (Duration, "-1s", 'found "-1s"; a time cannot be negative'),
        (Duration, "nan", 'found "nan"; expected a time, for example "20ms"'),
        (Duration, "infs", 'found "infs"; expected a time, for example "20ms"'),
        (Duration, "1e99s", 'found "1e99s"; the largest time is 1000000000s'),
        (Duration, "0.1ns", 'found "0.1ns"; the smallest time above zero is 1ns'),
        (Duration, "5 weeks", 'found "5 weeks"; no unit of time is called "weeks"; available: h, min, s, ms, us, ns'),
        (Rate, "5MBps", 'found "5MBps"; no unit of rate is called "MBps"; available: Gbps, Mbps, kbps, bps; did you '
         "mean Mbps?"),
        (Rate, 3, 'found 3; a rate needs a unit, for example "3kbps" or "3Mbps"'),
        (Rate, Duration(5), 'found "5ns"; expected a rate, for example "2.5Mbps"'),
        (Rate, [1], 'found [1]; expected a rate, for example "2.5Mbps"'),
        (Size, "1 KB", 'found "1 KB"; no unit of size is called "KB"; available: GB, MB, kB, B; did you mean kB?'),
        (Size, "1" * 40 + "B", f'found "{"1" * 40}B"; expected a size, for example "1200B"'),
    ],
)  # fmt: skip
def test_refuses(kind: type[Quantity], wrong: object, message: str) -> None:
    with pytest.raises(InputError) as error:
        kind.parse(wrong)
    assert str(error.value) == message


@given(st.sampled_from([Duration, Rate, Size]), st.integers(0, 10**18))
def test_what_is_written_is_read_again(kind: type[Quantity], value: int) -> None:
    assert kind.parse(str(kind(value))) == value


@given(st.text(max_size=30))
def test_any_text_is_a_value_or_an_error(text: str) -> None:
    for kind in (Duration, Rate, Size, Fraction):
        try:
            assert kind.parse(text) >= 0
        except InputError as error:
            assert "found" in str(error)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (5, 'found 5; a fraction lies between 0 and 1; did you mean "5%"?'),
        ("5", 'found "5"; expected a fraction, for example "5%" or 0.05'),
        ("101%", 'found "101%"; a fraction lies between 0 and 1'),
        (-0.1, "found -0.1; a fraction lies between 0 and 1"),
        (float("nan"), "found nan; a fraction lies between 0 and 1"),
        (Duration(1), 'found "1ns"; expected a fraction, for example "5%" or 0.05'),
    ],
)
def test_fractions_refuse(wrong: object, message: str) -> None:
    with pytest.raises(InputError) as error:
        Fraction.parse(wrong)
    assert str(error.value) == message


def test_fractions_and_seconds() -> None:
    assert (Fraction.parse("12.5%"), Fraction.parse(1), Fraction.parse("0%")) == (0.125, 1.0, 0.0)
    assert seconds(0.1) == 100_000_000
