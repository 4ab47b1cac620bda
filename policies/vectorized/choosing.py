"""The best candidates of a dry run, by the policy's order.

Criteria are asked one after another, each only of the rows that are still level.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np

from policies.columns.cells import PRIORITY, STARTED
from policies.columns.coded import Bools, Ints
from policies.decision import Candidate, VictimSet
from policies.order import Criterion, Order
from policies.policy import CANDIDATE_CRITERIA, IMPORTANCE, PRIORITY_SHIFT
from policies.vectorized.reprieving import DryRun

_HIGHEST, _LOWEST = 2**63 - 1, -(2**63)


class Candidates(Mapping[str, Candidate]):
    """The candidates of a decision, each put together when someone asks for it.

    ``others`` are those that were worked out one by one.
    """

    def __init__(self, run: DryRun, others: Mapping[str, Candidate]) -> None:
        self._run = run
        self._others = others
        columns = run.candidates.columns
        rows = run.candidates.numbers.tolist()
        self._names = [columns.names[row] for row in rows]
        self._pods = [columns.pods[row] for row in rows]
        self._places: dict[str, int] | None = None

    def best(self, order: Order[Candidate]) -> list[Candidate]:
        """Give the best two by ``order``, or as many as there are."""
        open_ = np.ones(len(self._names), np.bool_)
        found = []
        for _ in range(min(2, len(self._names))):
            place = self._first(order, open_)
            open_[place] = False
            found.append(self._at(place))
        return order.sort([*found, *self._others.values()])[:2]

    def _first(self, order: Order[Candidate], open_: Bools) -> int:
        level = np.flatnonzero(open_)
        for criterion in order.criteria:
            if len(level) == 1:
                break
            keys = self._keys(criterion, level)
            level = level[keys == keys.min()]
        return min(level.tolist(), key=lambda place: self._names[place])

    def _keys(self, criterion: Criterion[Candidate], level: Ints) -> Ints:
        known = _KEYS.get(criterion.name)
        if known is None or CANDIDATE_CRITERIA.get(criterion.name) is not criterion:
            return np.array([criterion.key(self._at(place)) for place in level.tolist()], np.int64)
        return known(self._run, level)

    def _at(self, place: int) -> Candidate:
        pods = self._pods[place]
        run = self._run
        gone = np.flatnonzero(run.victims[:, place]).tolist()
        spared = np.flatnonzero(run.potential[:, place] & ~run.victims[:, place]).tolist()
        victims = IMPORTANCE.sort(pods[depth] for depth in gone)
        return Candidate(
            self._names[place],
            VictimSet(tuple(victims), int(run.violations[place])),
            tuple(pods[depth] for depth in spared),
        )

    def __getitem__(self, name: str) -> Candidate:
        if name in self._others:
            return self._others[name]
        if self._places is None:
            self._places = {known: place for place, known in enumerate(self._names)}
        return self._at(self._places[name])

    def __iter__(self) -> Iterator[str]:
        yield from self._names
        yield from self._others

    def __len__(self) -> int:
        return len(self._names) + len(self._others)

    def __repr__(self) -> str:
        return repr(dict(self))


def _violations(run: DryRun, level: Ints) -> Ints:
    return run.violations[level]


def _first_priority(run: DryRun, level: Ints) -> Ints:
    # Victims stand by importance, so the first one has the highest priority.
    priorities, victims = _of_victims(run, level)
    return np.where(victims, priorities, _LOWEST).max(axis=0)


def _sum_of_priorities(run: DryRun, level: Ints) -> Ints:
    priorities, victims = _of_victims(run, level)
    return np.where(victims, priorities + PRIORITY_SHIFT, 0).sum(axis=0)


def _count(run: DryRun, level: Ints) -> Ints:
    return np.count_nonzero(run.victims[:, level], axis=0)


def _latest_start(run: DryRun, level: Ints) -> Ints:
    priorities, victims = _of_victims(run, level)
    top = np.where(victims, priorities, _LOWEST).max(axis=0)
    starts = run.candidates.channel(STARTED)[:, level]
    return -np.where(victims & (priorities == top), starts, _HIGHEST).min(axis=0)


def _of_victims(run: DryRun, level: Ints) -> tuple[Ints, Bools]:
    return run.candidates.channel(PRIORITY)[:, level], run.victims[:, level]


_KEYS: Mapping[str, Callable[[DryRun, Ints], Ints]] = dict(
    zip(
        CANDIDATE_CRITERIA,
        (_violations, _first_priority, _sum_of_priorities, _count, _latest_start),
        strict=True,
    )
)
"""The criteria of :data:`policies.policy.CANDIDATE_CRITERIA`, in its order, on columns."""
