"""Warnings of one response: without duplicates, and truncated if they are too long together.

Source: k8s.io/apiserver/pkg/endpoints/filters/warning.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

TRUNCATE_AT_TOTAL: Final = 4_096
"""The maximum number of characters of all warnings before each is truncated."""

TRUNCATED_LENGTH: Final = 256


def truncate_warnings(warnings: Iterable[str]) -> tuple[str, ...]:
    """Return warnings without duplicates; if they are too long, each truncated, while they fit."""
    once = tuple(dict.fromkeys(warnings))
    return once if sum(map(len, once)) <= TRUNCATE_AT_TOTAL else tuple(_truncated(once))


def _truncated(warnings: Iterable[str]) -> Iterator[str]:
    told = 0
    for warning in warnings:
        short = warning[:TRUNCATED_LENGTH]
        told += len(short)
        if told > TRUNCATE_AT_TOTAL:
            return
        yield short
