"""Indexes of selectors by label, and of label sets by label.

A selector with an ``In`` requirement can only match objects that carry one of its values, so it is
indexed under these; only selectors indexed under a label of the object have to be matched in full.
Both indexes return a superset: the caller matches.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from typing import Generic, TypeVar

from policies.selectors import Labels, LabelSelector, Requirement

T = TypeVar("T", bound=Hashable)
Label = tuple[str, str]


class SelectorIndex(Generic[T]):
    """Items with a selector, found by the labels that it may match."""

    def __init__(self) -> None:
        self._by_label: dict[Label, dict[T, None]] = {}
        self._others: dict[T, None] = {}

    def add(self, selector: LabelSelector, item: T) -> None:
        """Index ``item`` under ``selector``."""
        asked = _most_selective(selector)
        if asked is None:
            self._others[item] = None
        else:
            for value in asked.values:
                self._by_label.setdefault((asked.key, value), {})[item] = None

    def remove(self, selector: LabelSelector, item: T) -> None:
        """Undo ``add``."""
        asked = _most_selective(selector)
        if asked is None:
            self._others.pop(item, None)
        else:
            for value in asked.values:
                _discard(self._by_label, (asked.key, value), item)

    def may_match(self, labels: Labels) -> Iterator[T]:
        """Yield all items whose selector may match ``labels``, each once."""
        yield from self._others
        for label in labels.items():
            yield from self._by_label.get(label, ())


class LabelIndex(Generic[T]):
    """Items with labels, found by a selector that may match them."""

    def __init__(self) -> None:
        self._by_label: dict[Label, dict[T, None]] = {}
        self._all: dict[T, None] = {}

    def add(self, labels: Labels, item: T) -> None:
        """Index ``item`` under its labels."""
        self._all[item] = None
        for label in labels.items():
            self._by_label.setdefault(label, {})[item] = None

    def remove(self, labels: Labels, item: T) -> None:
        """Undo ``add``."""
        self._all.pop(item, None)
        for label in labels.items():
            _discard(self._by_label, label, item)

    def may_match(self, selector: LabelSelector) -> Iterable[T]:
        """Return all items that ``selector`` may match, each once."""
        asked = _most_selective(selector)
        if asked is None:
            return self._all
        found = (
            self._by_label.get((asked.key, value), {}) for value in dict.fromkeys(asked.values)
        )
        return [item for items in found for item in items]


def _most_selective(selector: LabelSelector) -> Requirement | None:
    asked = [each for each in selector.requirements if each.operator == "In"]
    return min(asked, key=lambda each: len(each.values), default=None)


def _discard(index: dict[Label, dict[T, None]], label: Label, item: T) -> None:
    items = index.get(label)
    if items is not None:
        items.pop(item, None)
        if not items:
            del index[label]
