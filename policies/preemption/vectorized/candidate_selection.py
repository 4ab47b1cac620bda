"""The best candidates of a dry run, by the policy's order (pickOneNodeForPreemption).

Criteria are evaluated one after another, each only on the rows that are still equal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np

from policies.kubernetes.criteria import Criterion, Order
from policies.preemption.columns.encoded_column import Bools, Ints
from policies.preemption.columns.pod_block import PRIORITY, START_TIME
from policies.preemption.decision import Candidate, VictimSet
from policies.preemption.policy import CANDIDATE_CRITERIA, DEFAULT_VICTIM_ORDER, PRIORITY_SHIFT
from policies.preemption.vectorized.dry_run import DryRunRows

_HIGHEST, _LOWEST = 2**63 - 1, -(2**63)


class RankedCandidates(Mapping[str, Candidate]):
    """The candidates of a decision, each built on access.

    ``others`` are those of the rows evaluated one by one. The instance holds no reference to the
    columns, because they change later.
    """

    def __init__(self, run: DryRunRows, others: Mapping[str, Candidate]) -> None:
        columns = run.candidates.columns
        self._victims = run.victims
        self._reprieved = run.potential & ~run.victims
        self._violations = run.violations
        self._others = others
        self._names = tuple(columns.names)
        self._pods = tuple(columns.pods)
        self._rows = run.candidates.numbers
        self._places: dict[str, int] | None = None

    def best(self, run: DryRunRows, order: Order[Candidate]) -> list[Candidate]:
        """Return the best two by ``order``, or as many as there are.

        ``run`` is the dry run that produced them; its columns must not have changed since.
        """
        found = [self._at(place) for place in self._best_two(run, order)]
        return order.sort([*found, *self._others.values()])[:2]

    def _best_two(self, run: DryRunRows, order: Order[Candidate]) -> list[int]:
        """Narrow the rows down to one, then those that equalled it until the last criterion."""
        level = np.arange(len(self._rows))
        winner: list[int] = []
        for criterion in order.criteria:
            if len(level) > 1:
                keys = self._keys(run, criterion, level)
                best = level[keys == keys.min()]
                if len(best) == 1 and not winner:
                    winner, rest = best.tolist(), keys != keys.min()
                    level, keys = level[rest], keys[rest]
                    best = level[keys == keys.min()]
                level = best
        named = sorted(level.tolist(), key=self._name_at)
        return [*winner, *named][:2]

    def _name_at(self, place: int) -> str:
        return self._names[int(self._rows[place])]

    def _keys(self, run: DryRunRows, criterion: Criterion[Candidate], level: Ints) -> Ints:
        known = _KEYS.get(criterion.name)
        if known is None or CANDIDATE_CRITERIA.get(criterion.name) is not criterion:
            return np.array([criterion.key(self._at(place)) for place in level.tolist()], np.int64)
        return known(run, level)

    def _at(self, place: int) -> Candidate:
        pods = self._pods[self._rows[place]]
        evicted = np.flatnonzero(self._victims[:, place]).tolist()
        reprieved = np.flatnonzero(self._reprieved[:, place]).tolist()
        victims = DEFAULT_VICTIM_ORDER.sort(pods[depth] for depth in evicted)
        return Candidate(
            self._name_at(place),
            VictimSet(tuple(victims), int(self._violations[place])),
            tuple(pods[depth] for depth in reprieved),
        )

    def __getitem__(self, name: str) -> Candidate:
        if name in self._others:
            return self._others[name]
        if self._places is None:
            self._places = {self._name_at(place): place for place in range(len(self._rows))}
        return self._at(self._places[name])

    def __iter__(self) -> Iterator[str]:
        yield from map(self._name_at, range(len(self._rows)))
        yield from self._others

    def __len__(self) -> int:
        return len(self._rows) + len(self._others)

    def __repr__(self) -> str:
        return repr(dict(self))


def _violations(run: DryRunRows, level: Ints) -> Ints:
    return run.violations[level]


def _first_priority(run: DryRunRows, level: Ints) -> Ints:
    # Victims are sorted by importance, so the first one has the highest priority.
    priorities, victims = _of_victims(run, level)
    highest: Ints = np.where(victims, priorities, _LOWEST).max(axis=0)
    return highest


def _sum_of_priorities(run: DryRunRows, level: Ints) -> Ints:
    priorities, victims = _of_victims(run, level)
    total: Ints = np.where(victims, priorities + PRIORITY_SHIFT, 0).sum(axis=0)
    return total


def _count(run: DryRunRows, level: Ints) -> Ints:
    count: Ints = np.count_nonzero(run.victims[:, level], axis=0)
    return count


def _latest_start(run: DryRunRows, level: Ints) -> Ints:
    priorities, victims = _of_victims(run, level)
    top = np.where(victims, priorities, _LOWEST).max(axis=0)
    starts = run.candidates.channel(START_TIME)[:, level]
    earliest: Ints = np.where(victims & (priorities == top), starts, _HIGHEST).min(axis=0)
    return -earliest


def _of_victims(run: DryRunRows, level: Ints) -> tuple[Ints, Bools]:
    priorities = run.candidates.channel(PRIORITY)
    if len(level) == len(run.candidates):
        return priorities, run.victims
    return priorities[:, level], run.victims[:, level]


_KEYS: Mapping[str, Callable[[DryRunRows, Ints], Ints]] = dict(
    zip(
        CANDIDATE_CRITERIA,
        (_violations, _first_priority, _sum_of_priorities, _count, _latest_start),
        strict=True,
    )
)
"""The criteria of :data:`policies.preemption.policy.CANDIDATE_CRITERIA`, in order, on columns."""
