"""Canonical quantities, compared with those of a kube-apiserver."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.kubernetes.quantity import (
    MALFORMED,
    UNKNOWN_SUFFIX,
    QuantityError,
    as_decoded,
    canonical,
    format_binary,
    format_decimal,
    parse_error_message,
    parse_quantity,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", "0"),
        ("-0", "0"),
        ("0.5", "500m"),
        ("1024Ki", "1Mi"),
        ("1000m", "1"),
        ("1500m", "1500m"),
        ("1.5Gi", "1536Mi"),
        ("0.5Ki", "512"),
        ("1000", "1k"),
        ("1000000", "1M"),
        ("1e3", "1e3"),
        ("1E6", "1e6"),
        ("12e2", "1200"),
        ("100n", "100n"),
        ("0.1n", "1n"),
        ("+5", "5"),
        ("-2", "-2"),
        (".5", "500m"),
        ("5.", "5"),
        ("1Ei", "1Ei"),
        ("8Ei", "9223372036854775807"),
        ("1.1Gi", "1181116006400m"),
        ("2000000000000000000000", "2000E"),
        ("1e-7", "100e-9"),
    ],
)
def test_a_quantity_has_one_spelling(text: str, expected: str) -> None:
    assert canonical(text) == expected


@pytest.mark.parametrize("text", ["", "abc", "1.2.3", "1 Gi", "1ki", "--1", "e3", "."])
def test_an_invalid_quantity_is_rejected(text: str) -> None:
    with pytest.raises(ValueError, match="quantities must match the regular expression"):
        canonical(text)


_QUANTITIES = st.builds(
    lambda whole, fraction, suffix: f"{whole}{fraction}{suffix}",
    st.integers(min_value=-(10**9), max_value=10**9),
    st.sampled_from(("", ".5", ".25", ".125")),
    st.sampled_from(("", "m", "k", "M", "G", "Ki", "Mi", "Gi")),
)


@given(_QUANTITIES)
def test_spelling_changes_nothing_of_the_value(text: str) -> None:
    assert parse_quantity(canonical(text)) == parse_quantity(text)


@pytest.mark.parametrize(
    ("text", "spelled"),
    [
        ("100Mi", "100Mi"),
        ("1024Mi", "1Gi"),
        ("1536Mi", "1536Mi"),
        ("1.5Gi", "1536Mi"),
        ("+5Mi", "+5Mi"),
        ("007", "007"),
        ("0", "0"),
        ("0Mi", "0"),
        ("1200", "1200"),
        ("2000", "2k"),
        ("1.500", "1.500"),
        ("1.50", "1500m"),
        ("12e6", "12e6"),
        ("1e4", "10e3"),
        ("-1Gi", "-1Gi"),
        ("0.5", "500m"),
        ("999999999999999999999Mi", "9223372036854775807"),
    ],
)
def test_most_quantities_are_spelled_canonically(text: str, spelled: str) -> None:
    assert as_decoded(text) == spelled


@given(_QUANTITIES)
def test_a_spelling_that_is_kept_is_the_same_amount(text: str) -> None:
    assert parse_quantity(as_decoded(text)) == parse_quantity(text)


@pytest.mark.parametrize(
    ("number", "bytes_", "count"),
    [
        (0, "0", "0"),
        (1000, "1k", "1k"),
        (1023, "1023", "1023"),
        (1024, "1Ki", "1024"),
        (2000, "2000", "2k"),
        (1610612736, "1536Mi", "1610612736"),
        (-1048576, "-1Mi", "-1048576"),
    ],
)
def test_whole_numbers_are_spelled_as_bytes_or_as_counts(
    number: int, bytes_: str, count: str
) -> None:
    assert (format_binary(number), format_decimal(number)) == (bytes_, count)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", MALFORMED),
        ("abc", MALFORMED),
        ("10X", MALFORMED),
        ("1 Gi", MALFORMED),
        ("1.2.3", MALFORMED),
        ("1ki", UNKNOWN_SUFFIX),
        ("1Gii", UNKNOWN_SUFFIX),
        ("1e", UNKNOWN_SUFFIX),
    ],
)
def test_upstream_says_why_a_text_is_no_quantity(text: str, words: str) -> None:
    with pytest.raises(QuantityError):
        as_decoded(text)
    assert parse_error_message(text) == words
