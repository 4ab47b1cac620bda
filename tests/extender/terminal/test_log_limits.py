"""The limits of a log line, whatever was sent."""

from __future__ import annotations

from typing import Any

import pytest
import structlog

from extender.terminal.log_limits import (
    MAX_ITEMS,
    MAX_TEXT,
    MAX_TRACEBACK,
    bound_event,
    shortened,
)

LONG = "x" * 10**6
CUT = "x" * MAX_TEXT + "… (999000 more characters)"


def test_a_text_within_the_limit_is_kept() -> None:
    assert shortened("x" * MAX_TEXT) == "x" * MAX_TEXT


@pytest.mark.parametrize(
    ("value", "logged"),
    [
        ("a", "a"),
        (12, 12),
        (LONG, CUT),
        ([LONG, 1], [CUT, 1]),
        (("a",), ["a"]),
        ({"a": LONG}, {"a": CUT}),
        ({LONG: 1}, {CUT: 1}),
        (list(range(MAX_ITEMS + 2)), [*range(MAX_ITEMS), "… (2 more)"]),
        (dict.fromkeys(range(MAX_ITEMS + 2), 0), {**{str(n): 0 for n in range(MAX_ITEMS)}, "…": 2}),
        ([[[LONG]]], [[[CUT]]]),
    ],
    ids=[
        "short",
        "number",
        "long",
        "in a list",
        "tuple",
        "in a mapping",
        "key",
        "many",
        "many keys",
        "nested",
    ],
)
def test_a_field_is_bounded(value: Any, logged: Any) -> None:
    assert bound_event(structlog.get_logger(), "info", {"field": value}) == {"field": logged}


def test_a_traceback_has_a_limit_of_its_own() -> None:
    event = bound_event(structlog.get_logger(), "error", {"exception": LONG})
    assert event["exception"].startswith("x" * MAX_TRACEBACK + "…")
