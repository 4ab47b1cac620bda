"""Pods told apart only by what others see of them: many pods, few classes.

Replicas of one workload carry the same labels, ports and anti-affinity. So a selector is matched
against classes, not pods; each cell of the columns holds the number of its pod's class, and a list
of answers by class number (a *lookup*) turns into an answer for every pod at once. A class lives as
long as pods have it; then its number is used again. Number 0 is nobody's: that of an empty cell.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from typing import Generic, TypeVar

import numpy as np

from policies.columns.coded import Bools, Ints
from policies.columns.selecting import LabelIndex, SelectorIndex
from policies.model import AffinityTerm, Pod
from policies.selectors import Labels, LabelSelector
from policies.storage import PodStorage

K = TypeVar("K", bound=Hashable)


class Interned(Generic[K]):
    """Numbers for keys, from 1 on, counted; ``sample`` is a pod that has the key."""

    def __init__(self, key: Callable[[Pod], K]) -> None:
        self._key = key
        self._number_of: dict[K, int] = {}
        self._uses: list[int] = [0]
        self._free: list[int] = []
        self.samples: list[Pod | None] = [None]

    def __len__(self) -> int:
        return len(self.samples)

    def acquire(self, pod: Pod) -> tuple[int, bool]:
        """Count one more use of the pod's key; gives its number, and whether that is new."""
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

    def release(self, number: int) -> Pod | None:
        """Count one use less; gives the sample if that was the last, and the number is free."""
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
    """Classes by namespace and labels, for selectors that ask about pods."""

    def __init__(self) -> None:
        self._interned = Interned(lambda pod: (pod.namespace, frozenset(pod.labels.items())))
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
        """Let go of one pod of a class; tells whether it was the last."""
        gone = self._interned.release(number)
        if gone is not None:
            self._index.remove(gone.labels, number)
        return gone is not None

    def selected(self, selector: LabelSelector) -> Iterator[tuple[int, Pod]]:
        """Return the classes that ``selector`` may match, each with one of its pods."""
        for number in self._index.selected(selector):
            sample = self._interned.samples[number]
            if sample is not None:
                yield number, sample

    def lookup(self, selector: LabelSelector | None, speaks_of: Callable[[Pod], bool]) -> Bools:
        """Return by class number whether ``speaks_of`` holds, which ``selector`` must match for."""
        answers = np.zeros(len(self), np.bool_)
        if selector is not None:
            for number, sample in self.selected(selector):
                answers[number] = speaks_of(sample)
        return answers


class Traits:
    """Classes by what a pod has beyond labels: host ports, required anti-affinity, volumes.

    Most pods have none of it: theirs is number 0.
    """

    def __init__(self) -> None:
        self._interned = Interned(lambda pod: (pod.host_ports, pod.anti_affinity, pod.storage))
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
        """Let go of one pod of a class."""
        gone = self._interned.release(number) if number else None
        if gone is None:
            return
        self._with_ports.pop(number, None)
        self._with_storage.pop(number, None)
        for place, term in enumerate(gone.anti_affinity):
            if term.selector is not None:
                self._repelling.remove(term.selector, (term, place, number))

    def conflicting(self, conflicts: Callable[[Pod], bool]) -> Bools:
        """Return by class number whether a pod of it ``conflicts``; those with ports are asked."""
        answers = np.zeros(len(self._interned), np.bool_)
        for number, sample in self._with_ports.items():
            answers[number] = conflicts(sample)
        return answers

    def storing(self, count: Callable[[PodStorage], int]) -> Ints:
        """Return by class number what ``count`` says of its volumes; 0 for one without."""
        answers = np.zeros(len(self._interned), np.int64)
        for number, storage in self._with_storage.items():
            answers[number] = count(storage)
        return answers

    def repelling(
        self, labels: Labels, speaks_of: Callable[[AffinityTerm], bool]
    ) -> dict[str, Ints]:
        """Give, by topology key and class number, how many anti-affinity terms are against a pod.

        ``labels`` are the pod's, ``speaks_of`` tells whether a term is about it.
        """
        counts: dict[str, Ints] = {}
        for term, _, number in self._repelling.about(labels):
            if speaks_of(term):
                size = len(self._interned)
                counts.setdefault(term.topology_key, np.zeros(size, np.int64))[number] += 1
        return counts
