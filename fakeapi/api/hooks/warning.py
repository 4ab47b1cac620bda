"""Warnings of one response: without duplicates, and truncated if they are too long together.

Source: k8s.io/apiserver/pkg/endpoints/filters/warning.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

MOST: Final = 4_096
"""The maximum number of characters of all warnings before each is truncated."""

SHORT: Final = 256


def fitting(warnings: Iterable[str]) -> tuple[str, ...]:
    """Return warnings without duplicates; if they are too long, each truncated, while they fit."""
    once = tuple(dict.fromkeys(warnings))
    return once if sum(map(len, once)) <= MOST else tuple(_cut(once))


def _cut(warnings: Iterable[str]) -> Iterator[str]:
    told = 0
    for warning in warnings:
        short = warning[:SHORT]
        told += len(short)
        if told > MOST:
            return
        yield short
