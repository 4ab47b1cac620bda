"""The values of criteria as text: what an entry keeps are the keys that were compared.

A key is an integer of which the smaller is preferred, so criteria that prefer the most of
something have negative keys. The criteria are those of policies.preemption.policy and of
policies.preemption.costs.catalog, by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from extender.kube.decoders.object_meta import format_time
from policies.kubernetes.duration import format_duration

_SECOND_NS: Final = 10**9
_PRIORITY_SHIFT: Final = 2**31
"""Upstream adds it to the priority of each victim, so that no term of a sum is negative."""
_HOUR_OF_WORK: Final = 3600 * 1000
_NOT_STARTED_NS: Final = 2**63 - 1
"""The start of pods that have not started."""
_NOT_COUNTED: Final = 2**62
"""The key of a candidate whose consequences were not counted."""


def criterion_text(criterion: str, key: int, victims: int) -> str:
    """Return the value of a candidate with so many victims, with its unit.

    Lost work is in weighted hours, the usage of quotas in %.
    """
    if key >= _NOT_COUNTED:
        return "not counted"
    if criterion == "smallest sum of priorities":
        return str(key - victims * _PRIORITY_SHIFT)
    return UNITS[criterion](key) if criterion in UNITS else str(key)


def _start(key: int) -> str:
    return format_time(-key) if 0 <= -key < _NOT_STARTED_NS else "not started"


def _lost_work(key: int) -> str:
    return f"{key / _HOUR_OF_WORK:.4g} h"


UNITS: Final[Mapping[str, Callable[[int], str]]] = {
    "latest start of the most important victims": _start,
    "least lost work": _lost_work,
    "least lost work of gangs": _lost_work,
    "least run time": lambda key: format_duration(key * _SECOND_NS),
    "most restarts": lambda key: str(-key),
    "most victims that can run elsewhere": lambda key: f"{key} cannot",
    "highest quota usage": lambda key: f"{-key / 10:g}%",
}
"""The texts of keys by the name of the criterion, where a key is not a plain number."""
