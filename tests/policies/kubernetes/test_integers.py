"""Integers in text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.kubernetes.integers import INT32_MAX, INT64_MAX, parse_integer


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", 0),
        ("-0", 0),
        ("+7", 7),
        ("007", 7),
        ("-12", -12),
        (str(INT64_MAX), INT64_MAX),
        (str(-INT64_MAX - 1), -INT64_MAX - 1),
        (str(INT64_MAX + 1), None),
        (str(-INT64_MAX - 2), None),
        ("0" * 10**6 + "1", 1),
        ("1" * 10**7, None),
        *((text, None) for text in ("", "-", "+-1", " 1", "1_000", "1.0", "0x1", "\u0661", "a")),
    ],
    ids=lambda each: str(each)[:24],
)
def test_a_text_is_an_integer_within_64_bits_or_none(text: str, number: int | None) -> None:
    assert parse_integer(text) == number


@given(st.integers(-(2**40), 2**40))
def test_an_integer_within_the_limit_is_parsed(number: int) -> None:
    within = -INT32_MAX - 1 <= number <= INT32_MAX
    assert parse_integer(str(number), INT32_MAX) == (number if within else None)
