"""The pods added and removed between two states of one node, compared by identity."""

from __future__ import annotations

from collections.abc import Sequence
from operator import is_
from typing import TypeVar

T = TypeVar("T")


def diff_pods(before: Sequence[T], now: Sequence[T]) -> tuple[Sequence[T], Sequence[T]]:
    """Return the removed and the added items, each in order; no item is twice in a state.

    Most often one item was removed and others, if any, were appended: that case needs no lookup of
    each item.
    """
    same = list(map(is_, before, now))
    start = same.index(False) if False in same else len(same)
    if start == len(before):
        return (), now[start:]
    rest = before[start + 1 :]
    if len(now) - start >= len(rest) and all(map(is_, rest, now[start:])):
        return before[start : start + 1], now[start + len(rest) :]
    known, present = set(map(id, before)), set(map(id, now))
    return (
        tuple([each for each in before if id(each) not in present]),
        tuple([each for each in now if id(each) not in known]),
    )
