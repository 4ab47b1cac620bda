"""When two values are the same JSON, and how to make a second one."""

from __future__ import annotations

from typing import Any, Final, TypeVar, cast

import orjson

T = TypeVar("T")

_NESTED: Final = (dict, list)


def same_json(one: Any, other: Any) -> bool:
    """Tell whether two values are the same JSON (unlike ``==``, for which 1 and true are one)."""
    return bool(one == other) and _canonical(one) == _canonical(other)


def copied(value: T) -> T:
    """Give a copy of which nothing is shared but what cannot be changed.

    Does for JSON what ``deepcopy`` does, which takes twenty times as long.
    """
    copy: Any = value
    if isinstance(value, dict):
        copy = {
            key: copied(item) if item.__class__ in _NESTED else item for key, item in value.items()
        }
    elif isinstance(value, list):
        copy = [copied(item) if item.__class__ in _NESTED else item for item in value]
    return cast("T", copy)


def _canonical(value: Any) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
