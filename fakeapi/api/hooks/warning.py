"""Warnings: each is told once, and all together are kept short.

Source: k8s.io/apiserver/pkg/endpoints/filters/warning.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

MOST: Final = 4_096
"""How many characters all warnings may have before each is cut."""

SHORT: Final = 256


def fitting(warnings: Iterable[str]) -> tuple[str, ...]:
    """Return warnings without repetition; if they are too long, cut and only as many as fit."""
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
