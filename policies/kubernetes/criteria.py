"""Preferences as ordered lists of named criteria that always end in a decision.

An :class:`Order` compares two items by the first criterion in which they differ, and prefers the
smaller key. If no criterion differs, a text that is unique to each item decides. So the choice
never depends on the order of the input. The explanation — the first criterion that separates the
winner from the second best — comes from the same keys as the choice.

A :class:`NonTransitiveOrder` also has approximate criteria, which end the comparison where their
keys are equal but the exact values are not. It is not an order in the strict sense; see its
docstring.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import groupby
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Criterion(Generic[T]):
    """A named integer key that fits int64; the smaller key is preferred."""

    name: str
    key: Callable[[T], int]


@dataclass(frozen=True, slots=True)
class ApproximateCriterion(Criterion[T]):
    """A criterion whose key approximates ``exact`` (also int64).

    Where two items have the same key but differ in ``exact``, the comparison ends: the order's last
    text decides, and later criteria are not evaluated. That result is named ``stop_name``.
    """

    exact: Callable[[T], int]
    stop_name: str


@dataclass(frozen=True, slots=True)
class Order(Generic[T]):
    """Criteria from the most to the least important, and a last text that makes the order total.

    Explanations name ``last`` by ``last_name``.
    """

    criteria: tuple[Criterion[T], ...]
    last: Callable[[T], str]
    last_name: str

    def key(self, item: T) -> tuple[tuple[int, ...], str]:
        """Return the sort key of ``item``."""
        return tuple([criterion.key(item) for criterion in self.criteria]), self.last(item)

    def sort(self, items: Iterable[T]) -> list[T]:
        """Return ``items`` with the preferred one first."""
        return sorted(items, key=self.key)

    def leading(self, items: Iterable[T], depth: int, most: int) -> list[T]:
        """Return the first items, at most ``most``, that are equal by the first criteria.

        They equal the preferred one by the first ``depth`` criteria.
        """
        keyed = sorted(((self.key(item), item) for item in items), key=lambda pair: pair[0])
        return [item for (keys, _), item in keyed[:most] if keys[:depth] == keyed[0][0][0][:depth]]

    def deciding_criterion(self, winner: T, second: T) -> str:
        """Return the name of the first criterion in which two items differ."""
        for criterion in self.criteria:
            if criterion.key(winner) != criterion.key(second):
                return criterion.name
        return self.last_name


class Comparison(NamedTuple):
    """The result of a comparison: ``sign`` < 0 if the first is preferred, and what decided."""

    sign: int
    criterion: str


@dataclass(frozen=True, slots=True)
class Stage(Generic[T]):
    """The criteria up to a stop: ``stop`` is the last of them, or None in the last stage."""

    criteria: tuple[Criterion[T], ...]
    stop: ApproximateCriterion[T] | None

    def key(self, item: T) -> tuple[int, ...]:
        """Return the keys of ``item``, one for each criterion."""
        return tuple([criterion.key(item) for criterion in self.criteria])


@dataclass(frozen=True, slots=True)
class NonTransitiveOrder(Generic[T]):
    """Criteria, some of them an :class:`ApproximateCriterion`, and a last text, as in an Order.

    :meth:`compare` is the rule. It need not be transitive. Take an approximate criterion with the
    same key for three items, two of which have the same exact value, and a second criterion::

            exact  second  text
        a       7       1  "1"
        b       8       0  "2"
        c       7       0  "3"

    a comes before b and b before c, by their texts; but c comes before a, by the second criterion.
    So no list has every pair in its order. :meth:`sort` returns a list in which no two neighbours
    are in the wrong order; if a list exists that has every pair in its order, it returns that list.
    """

    criteria: tuple[Criterion[T], ...]
    last: Callable[[T], str]
    last_name: str

    def compare(self, one: T, other: T) -> Comparison:
        """Compare two items by the first criterion that separates them or stops."""
        for criterion in self.criteria:
            mine, theirs = criterion.key(one), criterion.key(other)
            if mine != theirs:
                return Comparison(-1 if mine < theirs else 1, criterion.name)
            if isinstance(criterion, ApproximateCriterion) and criterion.exact(
                one
            ) != criterion.exact(other):
                return Comparison(self._by_text(one, other), criterion.stop_name)
        return Comparison(self._by_text(one, other), self.last_name)

    def sort(self, items: Iterable[T]) -> list[T]:
        """Return ``items`` such that none directly follows one that it is preferred to.

        Up to a stop, items are sorted by their keys and texts. Neighbours with the same exact value
        are then sorted among themselves by the later criteria; from all others their texts separate
        them.
        """
        return self._sorted(items, self.stages())

    def stages(self) -> tuple[Stage[T], ...]:
        """Return the criteria up to each stop, and those after the last one."""
        stages: list[Stage[T]] = []
        begun = 0
        for end, criterion in enumerate(self.criteria, 1):
            if isinstance(criterion, ApproximateCriterion):
                stages.append(Stage(self.criteria[begun:end], criterion))
                begun = end
        return (*stages, Stage(self.criteria[begun:], None))

    def _sorted(self, items: Iterable[T], stages: tuple[Stage[T], ...]) -> list[T]:
        stage, *later = stages
        ranked = sorted(items, key=lambda item: (stage.key(item), self.last(item)))
        if stage.stop is None:
            return ranked
        exact = stage.stop.exact
        runs = groupby(ranked, key=lambda item: (stage.key(item), exact(item)))
        return [item for _, run in runs for item in self._sorted(run, tuple(later))]

    def _by_text(self, one: T, other: T) -> int:
        mine, theirs = self.last(one), self.last(other)
        return (mine > theirs) - (mine < theirs)
