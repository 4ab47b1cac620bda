"""Quantities: values, arithmetic and canonical spellings."""

from __future__ import annotations

from contextlib import suppress
from fractions import Fraction
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.kubernetes.quantity import (
    MALFORMED,
    NANOS,
    UNKNOWN_SUFFIX,
    QuantityError,
    as_decoded,
    canonical,
    format_binary,
    format_decimal,
    milli,
    parse_error_message,
    parse_quantity,
    units,
)

SUFFIXES = {
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    "": Fraction(1),
    "k": Fraction(1000),
    "M": Fraction(10**6),
    "G": Fraction(10**9),
    "T": Fraction(10**12),
    "P": Fraction(10**15),
    "E": Fraction(10**18),
    "Ki": Fraction(2**10),
    "Mi": Fraction(2**20),
    "Gi": Fraction(2**30),
    "Ti": Fraction(2**40),
    "Pi": Fraction(2**50),
    "Ei": Fraction(2**60),
}


@pytest.mark.parametrize(
    ("text", "thousandths"),
    [
        ("0", 0),
        ("1", 1000),
        ("100m", 100),
        ("1.5", 1500),
        ("1.", 1000),
        (".5", 500),
        ("+2", 2000),
        ("-2", -2000),
        ("007", 7000),
        ("2e3", 2_000_000),
        ("2E3", 2_000_000),
        ("2e+3", 2_000_000),
        ("25e-1", 2500),
        ("1k", 10**6),
        ("1Ki", 1024_000),
        ("1.5Gi", 3 * 2**29 * 1000),
        ("0.5Ki", 512_000),
        ("1E", 10**21),
        ("1Ei", 2**60 * 1000),
    ],
)
def test_each_form_means_what_kubernetes_says(text: str, thousandths: int) -> None:
    assert parse_quantity(text) == thousandths * 10**6


@pytest.mark.parametrize(
    ("text", "nanos"),
    [("1n", 1), ("0.5n", 1), ("0.0000000001", 1), ("-0.5n", -1), ("1.1n", 2), ("1u", 1000)],
)
def test_fractions_of_a_nano_are_rounded_away_from_zero(text: str, nanos: int) -> None:
    assert parse_quantity(text) == nanos


@pytest.mark.parametrize("text", ["8Ei", "9223372036854775808Ki", "100000Ei"])
def test_a_binary_quantity_is_capped_at_the_largest_int64(text: str) -> None:
    assert parse_quantity(text) == (2**63 - 1) * NANOS


def test_a_decimal_quantity_is_not_capped() -> None:
    assert units(parse_quantity("100E")) == 10**20


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "1 ", " 1", "1 Gi", "1\n", "one", "0x10", "1_000", "1,5", "--1", "+-1"),
        *("1K", "1ki", "1mi", "1mm", "1i", "1gb", "1GiB", "1.5.5", "1e", "1e+", "1e1.5", "1e1k"),
        *(".", "+", "-", "m", "Ki", "e3", "٣", "1٣", "NaN", "inf"),
    ],
)
def test_an_invalid_quantity_is_named_with_an_example(text: str) -> None:
    with pytest.raises(QuantityError) as caught:
        parse_quantity(text)
    assert repr(text) in str(caught.value)
    assert "1.5Gi" in str(caught.value)


@pytest.mark.parametrize("text", ["1e101", "1e-101", "1e99999999999"])
def test_an_absurd_exponent_is_refused_before_it_is_computed(text: str) -> None:
    with pytest.raises(QuantityError, match="exponent"):
        parse_quantity(text)


@pytest.mark.parametrize(
    "text", ["1" * 5000, "0." + "1" * 5000, "1e" + "9" * 5000, "1" * 10**7], ids=len
)
def test_an_endless_quantity_is_refused_in_one_line(text: str) -> None:
    for read in (parse_quantity, as_decoded, canonical):
        with pytest.raises(ValueError, match=r"expected at most 256|regular expression") as raised:
            read(text)
        assert len(str(raised.value)) < 200


@pytest.mark.parametrize(
    ("text", "whole", "thousandths"),
    [("1", 1, 1000), ("1m", 1, 1), ("0.1m", 1, 1), ("1.0001", 2, 1001), ("0", 0, 0), ("1n", 1, 1)],
)
def test_units_and_thousandths_are_rounded_up(text: str, whole: int, thousandths: int) -> None:
    nanos = parse_quantity(text)
    assert (units(nanos), milli(nanos)) == (whole, thousandths)


def test_rounding_happens_after_the_sum() -> None:
    half = parse_quantity("0.5m")
    assert milli(half + half) == 1


@given(
    sign=st.sampled_from(["", "+", "-"]),
    whole=st.integers(0, 10**20),
    part=st.text("0123456789", max_size=15),
    suffix=st.sampled_from(sorted(SUFFIXES)),
)
def test_a_quantity_with_a_suffix_is_the_exact_fraction(
    sign: str, whole: int, part: str, suffix: str
) -> None:
    exact = Fraction(f"{whole}.{part}0") * SUFFIXES[suffix]
    nanos = ceil(exact * NANOS)
    if suffix.endswith("i"):
        nanos = min(nanos, (2**63 - 1) * NANOS)
    text = f"{sign}{whole}.{part}{suffix}" if part else f"{sign}{whole}{suffix}"
    assert parse_quantity(text) == (-nanos if sign == "-" else nanos)


@given(
    whole=st.integers(0, 10**6),
    part=st.text("0123456789", min_size=1, max_size=6),
    exponent=st.integers(-30, 30),
    letter=st.sampled_from("eE"),
)
def test_a_quantity_with_an_exponent_is_the_exact_fraction(
    whole: int, part: str, exponent: int, letter: str
) -> None:
    exact = Fraction(f"{whole}.{part}") * Fraction(10) ** exponent
    assert parse_quantity(f"{whole}.{part}{letter}{exponent}") == ceil(exact * NANOS)


@given(st.text(max_size=12))
def test_any_text_is_a_quantity_or_an_error_of_ours(text: str) -> None:
    with suppress(QuantityError):
        assert isinstance(parse_quantity(text), int)


# Spelling


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
def test_upstreams_error_messages_of_invalid_quantities(text: str, words: str) -> None:
    with pytest.raises(QuantityError):
        as_decoded(text)
    assert parse_error_message(text) == words
