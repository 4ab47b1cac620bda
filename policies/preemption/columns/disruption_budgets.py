"""Which disruption budgets cover which label classes, kept current as pods and budgets change.

A change of ``allowed``, by far the most frequent one, leaves the coverage as it is. A change of
selectors recomputes it, from the classes that the selectors may match.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from policies.kubernetes.releases import Release
from policies.kubernetes.snapshot import DisruptionBudget, Pod
from policies.preemption.columns.encoded_column import Bools, Ints
from policies.preemption.columns.label_classes import LabelClasses, SelectorIndex
from policies.preemption.columns.node_columns import clamp_amount
from policies.preemption.disruption_budgets import covers


class DisruptionBudgetColumns:
    """``covering[j, number]`` is the index of the j-th budget that covers a class, or -1."""

    def __init__(self, classes: LabelClasses, release: Release) -> None:
        self._classes = classes
        self._release = release
        self._index: dict[str, SelectorIndex[int]] = {}
        self.budgets: Sequence[DisruptionBudget] = ()
        self.allowed: Ints = np.zeros(0, np.int64)
        self.desired_healthy: Ints = np.zeros(0, np.int64)
        self.disrupted: dict[int, frozenset[str]] = {}
        self.covering: Ints = np.full((1, 16), -1, np.int64)
        self._changed: set[int] = set()
        self._has_new_scopes = False

    def follow(self, budgets: Sequence[DisruptionBudget]) -> None:
        """Take over the current budgets, in their order."""
        if budgets is self.budgets:
            return
        before, self.budgets = self.budgets, budgets
        self.allowed = np.array([clamp_amount(each.allowed) for each in budgets], np.int64)
        self.desired_healthy = np.array(
            [clamp_amount(each.desired_healthy) for each in budgets], np.int64
        )
        self.disrupted = {
            place: each.disrupted for place, each in enumerate(budgets) if each.disrupted
        }
        if [_scope(each) for each in before] != [_scope(each) for each in budgets]:
            self._recompute_coverage()
            self._has_new_scopes = True
        else:
            pairs = enumerate(zip(before, budgets, strict=True))
            self._changed |= {place for place, (old, new) in pairs if _limit(old) != _limit(new)}

    def changed_classes(self) -> Bools | None:
        """Return by class number whether its budgets have changed since the last call.

        Return None if no budget has.
        """
        if not self._has_new_scopes and not self._changed:
            return None
        changed = np.ones(len(self._classes), np.bool_)
        if not self._has_new_scopes:
            found = np.isin(self.covering[:, : len(changed)], list(self._changed))
            changed = np.logical_or.reduce(found, axis=0)
        self._changed, self._has_new_scopes = set(), False
        return changed

    def add_class(self, number: int, sample: Pod) -> None:
        """Find the budgets of a new class."""
        index = self._index.get(sample.namespace)
        about = () if index is None else index.may_match(sample.labels)
        places = [p for p in about if covers(self.budgets[p], sample, self._release)]
        self._write(number, sorted(places))

    def remove_class(self, number: int) -> None:
        """Remove a class."""
        self._write(number, ())

    def _recompute_coverage(self) -> None:
        self._index = {}
        covering: dict[int, list[int]] = {}
        for place, budget in enumerate(self.budgets):
            if budget.selector is None:
                continue
            index = self._index.setdefault(budget.namespace, SelectorIndex())
            index.add(budget.selector, place)
            for number, sample in self._classes.may_match(budget.selector):
                if covers(budget, sample, self._release):
                    covering.setdefault(number, []).append(place)
        most = max(map(len, covering.values()), default=1)
        self.covering = np.full((most, max(16, len(self._classes))), -1, np.int64)
        for number, places in covering.items():
            self._write(number, places)

    def _write(self, number: int, places: Sequence[int]) -> None:
        ranks, numbers = self.covering.shape
        if len(places) > ranks or number >= numbers:
            wider = np.full((max(ranks, len(places)), max(numbers, 2 * number)), -1, np.int64)
            wider[:ranks, :numbers] = self.covering
            self.covering = wider
        self.covering[:, number] = -1
        self.covering[: len(places), number] = places


def _limit(budget: DisruptionBudget) -> tuple[int, frozenset[str]]:
    return budget.allowed, budget.disrupted


def _scope(budget: DisruptionBudget) -> tuple[str, object]:
    return budget.namespace, budget.selector
