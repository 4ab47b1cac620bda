"""Preferences as ordered lists of named criteria, total to the end.

An :class:`Order` compares two things by the first criterion that tells them apart, the smaller key
being preferred, and falls back on a text that no two things share. So the choice never depends on
the order of the input, and the explanation — the first criterion that separates the winner from its
closest rival — is read off the same keys that decided.

A :class:`StoppingOrder` has criteria that see only roughly, and that end the comparison where they
see no difference but there is one. It is no order in the strict sense: see there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import groupby
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Criterion(Generic[T]):
    """One question with an integer answer that fits int64; the smaller answer is preferred."""

    name: str
    key: Callable[[T], int]


@dataclass(frozen=True, slots=True)
class Coarse(Criterion[T]):
    """A criterion whose key only tells roughly what ``exact`` (int64, too) tells exactly.

    Where two things have the same key but differ in ``exact``, the comparison ends: the order's
    last text decides, and no later criterion is asked. That is called ``stop_name``.
    """

    exact: Callable[[T], int]
    stop_name: str


@dataclass(frozen=True, slots=True)
class Order(Generic[T]):
    """Criteria from the weightiest to the least, and a last text that makes the order total.

    ``last`` is called ``last_name`` in explanations.
    """

    criteria: tuple[Criterion[T], ...]
    last: Callable[[T], str]
    last_name: str

    def key(self, item: T) -> tuple[tuple[int, ...], str]:
        """Return what ``item`` is sorted by."""
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


class Comparison(NamedTuple):
    """How two things compare: ``sign`` is below 0 if the first is preferred, and what decided."""

    sign: int
    criterion: str


@dataclass(frozen=True, slots=True)
class Stage(Generic[T]):
    """Criteria that are asked up to a stop: ``stop`` is the last of them, or None at the end."""

    criteria: tuple[Criterion[T], ...]
    stop: Coarse[T] | None

    def key(self, item: T) -> tuple[int, ...]:
        """Return what the criteria see of ``item``."""
        return tuple([criterion.key(item) for criterion in self.criteria])


@dataclass(frozen=True, slots=True)
class StoppingOrder(Generic[T]):
    """Criteria of which some are :class:`Coarse`, and a last text, as in an :class:`Order`.

    :meth:`compare` is the rule. It need not be transitive. Take a coarse criterion that sees no
    difference between three things of which two really are the same, and a second criterion::

            exact  second  text
        a       7       1  "1"
        b       8       0  "2"
        c       7       0  "3"

    a comes before b and b before c, by their texts; but c comes before a, by the second criterion.
    So no list has every pair in its order. :meth:`sort` gives one in which no two neighbours are
    the wrong way round; where a list exists that has every pair in its order, it gives that list.
    """

    criteria: tuple[Criterion[T], ...]
    last: Callable[[T], str]
    last_name: str

    def compare(self, one: T, other: T) -> Comparison:
        """Compare two things by the first criterion that separates them or stops."""
        for criterion in self.criteria:
            mine, theirs = criterion.key(one), criterion.key(other)
            if mine != theirs:
                return Comparison(-1 if mine < theirs else 1, criterion.name)
            if isinstance(criterion, Coarse) and criterion.exact(one) != criterion.exact(other):
                return Comparison(self._by_text(one, other), criterion.stop_name)
        return Comparison(self._by_text(one, other), self.last_name)

    def sort(self, items: Iterable[T]) -> list[T]:
        """List ``items``, none of them directly behind one that it is preferred to.

        Up to a stop, things stand by their keys and texts. Neighbours that really are the same are
        then sorted among themselves by what follows; from all others their texts separate them.
        """
        return self._sorted(items, self.stages())

    def stages(self) -> tuple[Stage[T], ...]:
        """Return the criteria up to each stop, and those that are left."""
        stages: list[Stage[T]] = []
        begun = 0
        for end, criterion in enumerate(self.criteria, 1):
            if isinstance(criterion, Coarse):
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
