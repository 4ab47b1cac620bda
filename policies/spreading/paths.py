"""Integers at dotted paths of an object: ``spec.replicas``, ``spec.groups.0.replicas``.

A step into an object is a key, a step into an array is an index.

Source: openkruise/kruise pkg/util/workloadspread/utils.go (NestedField) and GetReplicasFromObject.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

_INDEX: Final = re.compile(r"[+-]?[0-9]{1,18}", re.ASCII)


class PathError(ValueError):
    """A path does not exist, or its value is not an integer."""


def replicas_at(document: object, paths: Iterable[str]) -> int:
    """Add up the integers at ``paths``; an empty path counts as 0. Raise PathError."""
    return sum(nested_integer(document, path.split(".")) if path else 0 for path in paths)


def nested_integer(document: object, steps: Sequence[str]) -> int:
    """Return the integer at the path ``steps``. Raise PathError."""
    found = document
    for step in steps:
        found = _child(found, step)
    if not isinstance(found, int) or isinstance(found, bool):
        raise PathError("object type error")
    return found


def _child(found: object, step: str) -> object:
    if isinstance(found, Mapping):
        if step not in found:
            raise PathError(f'path "{step}" not exists')
        return found[step]
    if isinstance(found, list):
        if not _INDEX.fullmatch(step):
            raise PathError(f'strconv.Atoi: parsing "{step}": invalid syntax')
        if not 0 <= int(step) < len(found):
            raise PathError(f"index {int(step)} out of range")
        return found[int(step)]
    raise PathError("object is not deep enough")
