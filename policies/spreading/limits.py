"""The limit of a subset: maxReplicas, absolute or a percentage of the workload's replicas.

    maxReplicas   of 10 replicas
    4             4
    "33%"         4      (rounded up)
    absent        no limit

Source: k8s.io/apimachinery/pkg/util/intstr/intstr.go. Upstream interprets a string in two ways.
GetScaledValueFromIntOrPercent, for counting, requires a number followed by one "%";
GetValueFromIntOrPercent, for costs and validation, removes every "%" and takes the rest as a
percentage.
"""

from __future__ import annotations

import re
from typing import Final

from policies.spreading.model import MaxReplicas
from policies.spreading.quirks import NUMERIC_STRINGS, Quirks

_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,18}", re.ASCII)


class MaxReplicasError(ValueError):
    """A maxReplicas is neither a number nor a percentage, or it is negative."""


def limit_for_counting(limit: MaxReplicas, replicas: int, quirks: Quirks) -> int | None:
    """Return the maximum number of pods of a subset; None without limit. Raise MaxReplicasError."""
    return None if limit is None else _not_negative(scaled_value(limit, replicas, quirks), limit)


def limit_for_costs(limit: MaxReplicas, replicas: int, quirks: Quirks) -> int | None:
    """Return the wanted number of pods of a subset; None without limit. Raise MaxReplicasError."""
    if isinstance(limit, str) and NUMERIC_STRINGS in quirks:
        return _not_negative(percentage_value(limit, replicas), limit)
    return limit_for_counting(limit, replicas, quirks)


def scaled_value(limit: int | str, replicas: int, quirks: Quirks) -> int:
    """Return a maxReplicas as a number, which can be negative. Raise MaxReplicasError."""
    if isinstance(limit, int):
        return limit
    if limit.endswith("%"):
        return _percentage_of(_integer(limit.removesuffix("%"), limit), replicas)
    if NUMERIC_STRINGS in quirks:
        raise MaxReplicasError(f"{limit!r} is not a percentage such as 30%")
    return _integer(limit, limit)


def percentage_value(limit: int | str, replicas: int) -> int:
    """Return a maxReplicas as a number, any string as a percentage. Raise MaxReplicasError."""
    if isinstance(limit, int):
        return limit
    return _percentage_of(_integer(limit.replace("%", ""), limit), replicas)


def _percentage_of(percentage: int, replicas: int) -> int:
    return -(-percentage * replicas // 100)


def _integer(text: str, limit: str) -> int:
    if not _NUMBER.fullmatch(text):
        raise MaxReplicasError(f"{limit!r} is not a number or a percentage such as 30%")
    return int(text)


def _not_negative(number: int, limit: MaxReplicas) -> int:
    if number < 0:
        raise MaxReplicasError(f"{limit!r} is negative")
    return number
