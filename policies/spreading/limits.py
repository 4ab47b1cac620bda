"""How many pods a subset may have: maxReplicas, absolute or a share of the workload's replicas.

    maxReplicas   of 10 replicas
    4             4
    "33%"         4      (rounded up)
    absent        no limit

Source: k8s.io/apimachinery/pkg/util/intstr/intstr.go. Upstream has two readings of a text.
GetScaledValueFromIntOrPercent, for counting, wants a number and one "%" behind it;
GetValueFromIntOrPercent, for costs and validation, takes any "%" away and the rest for a share.
"""

from __future__ import annotations

import re
from typing import Final

from policies.spreading.model import MaxReplicas
from policies.spreading.quirks import NUMERIC_STRINGS, Quirks

_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,18}", re.ASCII)


class LimitError(ValueError):
    """A maxReplicas is neither a number nor a percentage, or it is negative."""


def limit_for_counting(limit: MaxReplicas, replicas: int, quirks: Quirks) -> int | None:
    """Return how many pods a subset may have; None for any number. Raises LimitError."""
    return None if limit is None else _natural(scaled(limit, replicas, quirks), limit)


def limit_for_costs(limit: MaxReplicas, replicas: int, quirks: Quirks) -> int | None:
    """Return how many pods of a subset are wanted; None for any number. Raises LimitError."""
    if isinstance(limit, str) and NUMERIC_STRINGS in quirks:
        return _natural(share(limit, replicas), limit)
    return limit_for_counting(limit, replicas, quirks)


def scaled(limit: int | str, replicas: int, quirks: Quirks) -> int:
    """Return a maxReplicas as a number, which may be negative. Raises LimitError."""
    if isinstance(limit, int):
        return limit
    if limit.endswith("%"):
        return _part(_integer(limit.removesuffix("%"), limit), replicas)
    if NUMERIC_STRINGS in quirks:
        raise LimitError(f"{limit!r} is not a percentage such as 30%")
    return _integer(limit, limit)


def share(limit: int | str, replicas: int) -> int:
    """Return a maxReplicas as a number, any text as a share. Raises LimitError."""
    if isinstance(limit, int):
        return limit
    return _part(_integer(limit.replace("%", ""), limit), replicas)


def _part(percentage: int, replicas: int) -> int:
    return -(-percentage * replicas // 100)


def _integer(text: str, limit: str) -> int:
    if not _NUMBER.fullmatch(text):
        raise LimitError(f"{limit!r} is not a number or a percentage such as 30%")
    return int(text)


def _natural(number: int, limit: MaxReplicas) -> int:
    if number < 0:
        raise LimitError(f"{limit!r} is negative")
    return number
