"""The changed entries between two versions of a mapping that share most of their values."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import compress
from operator import is_not
from typing import TypeVar

K = TypeVar("K")


def changed_keys(before: Mapping[K, object], after: Mapping[K, object]) -> set[K]:
    """Return the keys whose values are not the same object in both mappings; None is no value."""
    if before is after:
        return set()
    found = set(compress(after, map(is_not, after.values(), map(before.get, after))))
    if len(before) + sum(key not in before for key in found) != len(after):
        found |= before.keys() - after.keys()
    return found
