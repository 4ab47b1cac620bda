"""The syntax of names, with all errors of one and the first of them."""

from __future__ import annotations

import pytest

from policies.kubernetes.name_validation import (
    invalid_label_key,
    invalid_label_value,
    label_key_errors,
    label_value_errors,
)


@pytest.mark.parametrize(
    ("key", "beginnings"),
    [
        ("zone", []),
        ("example.com/zone", []),
        ("a" * 63, []),
        ("", ["name part must be non-empty", "name part must consist of"]),
        ("a b", ["name part must consist of"]),
        ("a" * 64, ["name part must be no more than 63 bytes"]),
        ("-" + "a" * 63, ["name part must be no more than", "name part must consist of"]),
        ("/zone", ["prefix part must be non-empty"]),
        ("Example/zone", ["prefix part a lowercase RFC 1123 subdomain"]),
        ("A/", ["prefix part a", "name part must be non-empty", "name part must consist of"]),
        ("a/b/c", ["a valid label key must consist of"]),
    ],
)
def test_keys(key: str, beginnings: list[str]) -> None:
    found = label_key_errors(key)
    assert len(found) == len(beginnings)
    for fault, beginning in zip(found, beginnings, strict=True):
        assert fault.startswith(beginning)
    assert invalid_label_key(key) == (found[0] if found else "")


@pytest.mark.parametrize(
    ("value", "beginnings"),
    [
        ("", []),
        ("web.1_2-3", []),
        ("a b", ["a valid label must be an empty string or"]),
        ("a" * 64, ["must be no more than 63 bytes"]),
        ("-" * 64, ["must be no more than 63 bytes", "a valid label must be"]),
    ],
)
def test_values(value: str, beginnings: list[str]) -> None:
    found = label_value_errors(value)
    assert len(found) == len(beginnings)
    for fault, beginning in zip(found, beginnings, strict=True):
        assert fault.startswith(beginning)
    assert invalid_label_value(value) == (found[0] if found else "")
