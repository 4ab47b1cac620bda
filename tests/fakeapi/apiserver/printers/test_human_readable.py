"""Ages, selectors, long lists and missing values as texts."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakeapi.apiserver.printers.human_readable import (
    at,
    human_duration,
    labels,
    number,
    objects,
    parse_time,
    selector,
    shortened,
    since,
    text,
    texts,
)

MINUTE, HOUR, DAY = 60, 3600, 86_400
YEAR = 365 * DAY


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (-2, "<invalid>"),
        (-1, "0s"),
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (125, "2m5s"),
        (10 * MINUTE - 1, "9m59s"),
        (10 * MINUTE + 1, "10m"),
        (3 * HOUR - 1, "179m"),
        (3 * HOUR, "3h"),
        (3 * HOUR + 61, "3h1m"),
        (8 * HOUR + 61, "8h"),
        (2 * DAY - 1, "47h"),
        (2 * DAY, "2d"),
        (2 * DAY + HOUR, "2d1h"),
        (8 * DAY + HOUR, "8d"),
        (2 * YEAR - 1, "729d"),
        (2 * YEAR, "2y"),
        (2 * YEAR + DAY, "2y1d"),
        (8 * YEAR + DAY, "8y"),
    ],
)
def test_a_duration_has_at_most_two_units(seconds: int, expected: str) -> None:
    assert human_duration(seconds) == expected


@pytest.mark.parametrize(
    ("stamp", "seconds"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("2026-01-01T00:00:00Z", 1_767_225_600),
        ("2026-01-01T00:00:00.999999Z", 1_767_225_600),
        ("2026-01-01T01:00:00+01:00", 1_767_225_600),
        ("2025-12-31T22:30:00-01:30", 1_767_225_600),
        ("yesterday", None),
        ("", None),
        (None, None),
        (7, None),
    ],
)
def test_times_are_read_in_every_zone(stamp: Any, seconds: int | None) -> None:
    assert parse_time(stamp) == seconds


def test_a_missing_time_is_unknown() -> None:
    assert since(None, 100) == "<unknown>"


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, "<none>"),
        ({"matchLabels": {"b": "2", "a": "1"}}, "a=1,b=2"),
        (
            {
                "matchLabels": {"m": "x"},
                "matchExpressions": [
                    {"key": "z", "operator": "DoesNotExist"},
                    {"key": "k", "operator": "NotIn", "values": ["q", "p"]},
                    {"key": "a", "operator": "Exists"},
                    {"key": "o", "operator": "In", "values": ["one"]},
                ],
            },
            "a,k notin (p,q),m=x,o in (one),!z",
        ),
        ({"matchExpressions": [{"key": "k", "operator": "Near"}]}, "<error>"),
    ],
)
def test_a_selector_is_one_line(spec: Any, expected: str) -> None:
    assert selector({"spec": spec}, "spec") == expected


def test_long_lists_are_cut() -> None:
    assert shortened([], 3, "<unset>") == "<unset>"
    assert shortened(["a", "b", "c"], 3, "") == "a,b,c"
    assert shortened(["a", "b", "c", "d", "e"], 3, "") == "a,b,c + 2 more..."


def test_labels_are_sorted() -> None:
    assert labels({"x": {"b": "2", "a": "1"}}, "x") == "a=1,b=2"
    assert labels({}, "x") == "<none>"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from("abc"), inner),
)


@given(JSON)
def test_a_value_of_another_type_counts_as_absent(document: Any) -> None:
    assert isinstance(text(document, "a", "b"), str)
    assert isinstance(number(document, "a", "b"), int)
    assert all(isinstance(item, dict) for item in objects(document, "a"))
    assert all(isinstance(item, str) for item in texts(document, "a"))
    assert at(document, "a", "b", "c", "a", "b") is None or isinstance(document, dict)
