"""Thresholds' values: float32 percentages, quantities, and durations as Go parses them."""

from __future__ import annotations

import pytest

from policies.eviction.signals import parse_percentage, percentage_from_fraction, read_quantity
from policies.kubernetes.duration import format_duration, parse_duration, quoted
from policies.kubernetes.quantity import NANOS
from tests.builders.eviction import whole

MINUTE = 60 * NANOS


@pytest.mark.parametrize(
    ("percentage", "capacity", "amount"),
    [
        ("10%", "10Gi", 1073741840),
        ("15%", "16Gi", 2576980480),
        ("5%", "1000000", 50000),
        ("33.3%", "1000", 333),
        ("100.0%", "20Gi", 21474836480),
        ("0.0%", "20Gi", 0),
        ("10%", "0", 0),
    ],
)
def test_percentages_are_rounded_as_upstream_rounds_them(
    percentage: str, capacity: str, amount: int
) -> None:
    found = parse_percentage(percentage)
    assert found.nanos_of(whole(capacity)) == amount * NANOS


def test_a_percentage_is_formatted_as_bytes_for_any_signal() -> None:
    assert parse_percentage("10%").formatted(whole("10Gi")) == "1073741840"
    assert parse_percentage("5%").formatted(1_000_000) == "50000"
    assert parse_percentage("50%").formatted(2**31) == "1Gi"
    assert read_quantity("50000").formatted(1_000_000) == "50k"


def test_a_percentage_may_be_given_as_a_fraction() -> None:
    assert percentage_from_fraction(0.105) == parse_percentage("10.5%")
    assert percentage_from_fraction(0.105).text == "10.5%"


def test_extra_percent_signs_are_ignored() -> None:
    assert parse_percentage("10%%") == parse_percentage("10")


@pytest.mark.parametrize(
    ("text", "milli"), [("Mi", 0), ("+", 0), (".", 0), (".5", 500), ("-2", -2000), ("2", 2000)]
)
def test_a_suffix_without_a_number_is_zero(text: str, milli: int) -> None:
    assert read_quantity(text).nanos == milli * NANOS // 1000


def test_texts_are_quoted_as_go_quotes_them() -> None:
    assert quoted('a "b" \\ é') == '"a \\"b\\" \\\\ é"'


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("0", 0),
        ("-0", 0),
        ("30s", 30 * NANOS),
        ("1m30s", 90 * NANOS),
        ("1.5h", 90 * MINUTE),
        ("-1m", -MINUTE),
        ("+.5s", NANOS // 2),
        ("1s.5s", NANOS * 3 // 2),
        ("5m0s", 5 * MINUTE),
        ("2us3µs4μs", 9_000),
        ("1ns", 1),
        ("1h1h", 120 * MINUTE),
    ],
)
def test_durations_are_read_as_go_reads_them(text: str, nanoseconds: int) -> None:
    assert parse_duration(text) == nanoseconds


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", 'time: invalid duration ""'),
        ("-", 'time: invalid duration "-"'),
        (".s", 'time: invalid duration ".s"'),
        ("1", 'time: missing unit in duration "1"'),
        ("1s2", 'time: missing unit in duration "1s2"'),
        ("1 s", 'time: unknown unit " s" in duration "1 s"'),
        ("3000000h", 'time: invalid duration "3000000h"'),
        ("9223372036854775808ns", 'time: invalid duration "9223372036854775808ns"'),
        ("99999999999999999999", 'time: invalid duration "99999999999999999999"'),
    ],
)
def test_an_invalid_duration_has_gos_error(text: str, error: str) -> None:
    with pytest.raises(ValueError, match="time: ") as raised:
        parse_duration(text)
    assert str(raised.value) == error


@pytest.mark.parametrize(
    ("nanoseconds", "text"),
    [
        (0, "0s"),
        (90 * NANOS, "1m30s"),
        (2 * 60 * MINUTE, "2h0m0s"),
        (1_500_000_000, "1.5s"),
        (1, "0.000000001s"),
    ],
)
def test_durations_have_one_spelling(nanoseconds: int, text: str) -> None:
    assert format_duration(nanoseconds) == text
