"""When two values are the same JSON."""

from __future__ import annotations

from typing import Any

import orjson


def same_json(one: Any, other: Any) -> bool:
    """Return whether two values are the same JSON (unlike ``==``, for which 1 and true are one)."""
    return bool(one == other) and _canonical(one) == _canonical(other)


def _canonical(value: Any) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
