"""Preferences as ordered lists of named criteria, total to the end.

An :class:`Order` compares two things by the first criterion that tells them apart, the smaller key
being preferred, and falls back on a text that no two things share. So the choice never depends on
the order of the input, and the explanation — the first criterion that separates the winner from its
closest rival — is read off the same keys that decided.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Criterion(Generic[T]):
    """One question with an integer answer that fits int64; the smaller answer is preferred."""

    name: str
    key: Callable[[T], int]


@dataclass(frozen=True, slots=True)
class Order(Generic[T]):
    """Criteria from the weightiest to the least, and a last text that makes the order total.

    ``last`` is called ``last_name`` in explanations.
    """

    criteria: tuple[Criterion[T], ...]
    last: Callable[[T], str]
    last_name: str

    def key(self, item: T) -> tuple[tuple[int, ...], str]:
        """Give what ``item`` is sorted by."""
        return tuple([criterion.key(item) for criterion in self.criteria]), self.last(item)

    def sort(self, items: Iterable[T]) -> list[T]:
        """List ``items`` with the preferred one first."""
        return sorted(items, key=self.key)

    def separating(self, winner: T, rival: T) -> str:
        """Name the first criterion by which two things differ."""
        for criterion in self.criteria:
            if criterion.key(winner) != criterion.key(rival):
                return criterion.name
        return self.last_name
