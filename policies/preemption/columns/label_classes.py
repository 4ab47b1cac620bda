"""Label classes: pods grouped by the properties that other pods select, many pods in few classes.

Replicas of one workload have the same labels, ports and anti-affinity. So a selector is matched
against classes, not pods; each cell of the columns holds the number of its pod's class, and an
array of results by class number (a *lookup*) yields the result of every pod at once. A class exists
as long as pods have it; then its number is reused. Number 0 belongs to empty cells.

Selectors and label sets are indexed by label. A selector with an ``In`` requirement can only match
objects that carry one of its values, so it is indexed under these; only selectors indexed under a
label of the object have to be matched in full. Both indexes return a superset: the caller matches.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Generic, TypeVar

import numpy as np

from policies.kubernetes.selectors import Labels, LabelSelector, Requirement
from policies.kubernetes.snapshot import AffinityTerm, Pod
from policies.kubernetes.storage import PodStorage
from policies.preemption.columns.encoded_column import Bools, Ints
from policies.preemption.time_limit import PODS_PER_STEP, HasTimeLeft, in_time, no_deadline

T = TypeVar("T", bound=Hashable)
K = TypeVar("K", bound=Hashable)
Label = tuple[str, str]


class SelectorIndex(Generic[T]):
    """Items with a selector, found by the labels that it may match."""

    def __init__(self) -> None:
        self._by_label: dict[Label, dict[T, None]] = {}
        self._others: dict[T, None] = {}

    def add(self, selector: LabelSelector, item: T) -> None:
        """Index ``item`` under ``selector``."""
        requirement = _most_selective(selector)
        if requirement is None:
            self._others[item] = None
        else:
            for value in requirement.values:
                self._by_label.setdefault((requirement.key, value), {})[item] = None

    def remove(self, selector: LabelSelector, item: T) -> None:
        """Undo ``add``."""
        requirement = _most_selective(selector)
        if requirement is None:
            self._others.pop(item, None)
        else:
            for value in requirement.values:
                _discard(self._by_label, (requirement.key, value), item)

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
        requirement = _most_selective(selector)
        if requirement is None:
            return self._all
        found = (
            self._by_label.get((requirement.key, value), {})
            for value in dict.fromkeys(requirement.values)
        )
        return [item for items in found for item in items]


def _most_selective(selector: LabelSelector) -> Requirement | None:
    requirements = [each for each in selector.requirements if each.operator == "In"]
    return min(requirements, key=lambda each: len(each.values), default=None)


def _discard(index: dict[Label, dict[T, None]], label: Label, item: T) -> None:
    items = index.get(label)
    if items is not None:
        items.pop(item, None)
        if not items:
            del index[label]


class InternTable(Generic[K]):
    """Numbers for keys, from 1 on, with use counts; ``sample`` is a pod that has the key."""

    def __init__(self, key: Callable[[Pod], K]) -> None:
        self._key = key
        self._number_of: dict[K, int] = {}
        self._uses: list[int] = [0]
        self._free: list[int] = []
        self.samples: list[Pod | None] = [None]

    def __len__(self) -> int:
        return len(self.samples)

    def acquire(self, pod: Pod) -> tuple[int, bool]:
        """Count one more use of the pod's key; return its number, and whether it is new."""
        key = self._key(pod)
        number = self._number_of.get(key)
        if number is not None:
            self._uses[number] += 1
            return number, False
        number = self._free.pop() if self._free else self._append()
        self._number_of[key] = number
        self._uses[number] = 1
        self.samples[number] = pod
        return number, True

    def find(self, key: K) -> int | None:
        """Return the number of a key, None if no pod has it."""
        return self._number_of.get(key)

    def release(self, number: int) -> Pod | None:
        """Count one use less; return the sample if it was the last, and free the number."""
        self._uses[number] -= 1
        sample = None if self._uses[number] else self.samples[number]
        if sample is None:
            return None
        del self._number_of[self._key(sample)]
        self.samples[number] = None
        self._free.append(number)
        return sample

    def _append(self) -> int:
        self._uses.append(0)
        self.samples.append(None)
        return len(self.samples) - 1


class LabelClasses:
    """Classes by namespace and labels, for selectors of pods."""

    def __init__(self) -> None:
        self._interned = InternTable(lambda pod: (pod.namespace, frozenset(pod.labels.items())))
        self._index: LabelIndex[int] = LabelIndex()

    def __len__(self) -> int:
        return len(self._interned)

    def acquire(self, pod: Pod) -> tuple[int, bool]:
        """Return the number of the pod's class, and whether it is new."""
        number, new = self._interned.acquire(pod)
        if new:
            self._index.add(pod.labels, number)
        return number, new

    def release(self, number: int) -> bool:
        """Count one pod of a class less; return whether it was the last."""
        last = self._interned.release(number)
        if last is not None:
            self._index.remove(last.labels, number)
        return last is not None

    def may_match(self, selector: LabelSelector) -> Iterator[tuple[int, Pod]]:
        """Yield the classes that ``selector`` may match, each with one of its pods."""
        for number in self._index.may_match(selector):
            sample = self._interned.samples[number]
            if sample is not None:
                yield number, sample

    def lookup(
        self,
        selector: LabelSelector | None,
        selects: Callable[[Pod], bool],
        has_time_left: HasTimeLeft = no_deadline,
    ) -> Bools:
        """Return by class number whether ``selector`` may match and ``selects`` holds.

        Raise DeadlineExceededError if ``has_time_left`` returns false.
        """
        answers = np.zeros(len(self), np.bool_)
        if selector is not None:
            classes = self.may_match(selector)
            for number, sample in in_time(classes, has_time_left, PODS_PER_STEP):
                answers[number] = selects(sample)
        return answers


class PodTraits:
    """Classes by other properties than labels: host ports, required anti-affinity, volumes.

    Most pods have none of these: their number is 0.
    """

    def __init__(self) -> None:
        self._interned = InternTable(lambda pod: (pod.host_ports, pod.anti_affinity, pod.storage))
        self._repelling: SelectorIndex[tuple[AffinityTerm, int, int]] = SelectorIndex()
        self._with_ports: dict[int, Pod] = {}
        self._with_storage: dict[int, PodStorage] = {}

    def acquire(self, pod: Pod) -> int:
        """Return the number of the pod's class."""
        if not pod.host_ports and not pod.anti_affinity and pod.storage is None:
            return 0
        number, new = self._interned.acquire(pod)
        if new:
            for place, term in enumerate(pod.anti_affinity):
                if term.selector is not None:
                    self._repelling.add(term.selector, (term, place, number))
            if pod.host_ports:
                self._with_ports[number] = pod
            if pod.storage is not None:
                self._with_storage[number] = pod.storage
        return number

    def release(self, number: int) -> None:
        """Count one pod of a class less."""
        last = self._interned.release(number) if number else None
        if last is None:
            return
        self._with_ports.pop(number, None)
        self._with_storage.pop(number, None)
        for place, term in enumerate(last.anti_affinity):
            if term.selector is not None:
                self._repelling.remove(term.selector, (term, place, number))

    def conflicting(self, conflicts: Callable[[Pod], bool]) -> Bools:
        """Return by class number whether ``conflicts`` holds; false without host ports."""
        answers = np.zeros(len(self._interned), np.bool_)
        for number, sample in self._with_ports.items():
            answers[number] = conflicts(sample)
        return answers

    def storage_counts(self, count: Callable[[PodStorage], int]) -> Ints:
        """Return by class number the ``count`` of its volumes and devices; 0 without any."""
        answers = np.zeros(len(self._interned), np.int64)
        for number, storage in self._with_storage.items():
            answers[number] = count(storage)
        return answers

    def anti_affinity_counts(
        self,
        labels: Labels,
        selects: Callable[[AffinityTerm], bool],
        has_time_left: HasTimeLeft = no_deadline,
    ) -> dict[str, Ints]:
        """Return, by topology key and class number, how many anti-affinity terms select a pod.

        ``labels`` are the pod's; ``selects`` returns whether a term selects it. Raise
        DeadlineExceededError if ``has_time_left`` returns false.
        """
        counts: dict[str, Ints] = {}
        terms = self._repelling.may_match(labels)
        for term, _, number in in_time(terms, has_time_left, PODS_PER_STEP):
            if selects(term):
                if term.topology_key not in counts:
                    counts[term.topology_key] = np.zeros(len(self._interned), np.int64)
                counts[term.topology_key][number] += 1
        return counts
