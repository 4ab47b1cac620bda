"""Equality of JSON values."""

from __future__ import annotations

from typing import Any

import orjson


def json_equal(one: Any, other: Any) -> bool:
    """Return whether two values are the same JSON (for ``==``, in contrast, 1 equals true)."""
    return bool(one == other) and _canonical(one) == _canonical(other)


def _canonical(value: Any) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
