"""Canonical quantities, compared with those of a kube-apiserver."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakeapi.api.quantities import canonical
from policies.quantity import parse_quantity


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
    ],
)
def test_a_quantity_has_one_spelling(text: str, expected: str) -> None:
    assert canonical(text) == expected


@pytest.mark.parametrize("text", ["", "abc", "1.2.3", "1 Gi", "1ki", "--1", "e3", "."])
def test_what_is_no_quantity_is_refused(text: str) -> None:
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
    spelled = canonical(text)
    rounding = Fraction(1) if text.endswith("i") else 0
    assert abs(parse_quantity(spelled) - parse_quantity(text)) <= rounding * 10**9
