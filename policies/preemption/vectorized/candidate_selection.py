"""The best candidates of a dry run, by the policy's order (pickOneNodeForPreemption).

Criteria are evaluated one after another, each only on the rows that are still equal.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from policies.kubernetes.criteria import Criterion, Order
from policies.preemption.columns.encoded_column import Ints
from policies.preemption.consequences.criteria import NOT_COUNTED, CountedCriterion
from policies.preemption.decision import Candidate, VictimSet
from policies.preemption.guards.allowance import BoundAllowance
from policies.preemption.guards.candidate_limit import STRICT_BUDGETS, Limit, refused_by
from policies.preemption.policy import DEFAULT_VICTIM_ORDER
from policies.preemption.vectorized.disruption_budgets import exceeded_budgets
from policies.preemption.vectorized.dry_run import DryRunRows, PolicyInput
from policies.preemption.vectorized.victim_keys import criterion_keys, exceeds_allowance


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

    def leading(
        self, run: DryRunRows, order: Order[Candidate], depth: int, most: int
    ) -> list[Candidate]:
        """Do the same as :meth:`Order.leading` with all candidates; see ``best`` about ``run``."""
        level = np.arange(len(self._rows))
        preferred: list[int] = []
        for place, criterion in enumerate(order.criteria):
            if place < depth and len(level) > 1:
                keys = self.keys_by(run, criterion, level)
                level = level[keys == keys.min()]
            elif place >= depth and len(level) > (left := most - len(preferred)):
                keys = self.keys_by(run, criterion, level)
                last = np.partition(keys, left - 1)[left - 1]
                preferred += level[keys < last].tolist()
                level = level[keys == last]
        level_by_name = sorted(level.tolist(), key=self._name_at)
        found = [self._at(place) for place in [*preferred, *level_by_name][:most]]
        return order.leading([*found, *self._others.values()], depth, most)

    def _best_two(self, run: DryRunRows, order: Order[Candidate]) -> list[int]:
        """Narrow the rows down to one, then those that equalled it until the last criterion."""
        level = self._contenders(run, order)
        winner: list[int] = []
        for criterion in order.criteria:
            if len(level) > 1:
                keys = self.keys_by(run, criterion, level)
                best = level[keys == keys.min()]
                if len(best) == 1 and not winner:
                    winner, rest = best.tolist(), keys != keys.min()
                    level, keys = level[rest], keys[rest]
                    best = level[keys == keys.min()]
                level = best
        named = sorted(level.tolist(), key=self._name_at)
        return [*winner, *named][:2]

    def _contenders(self, run: DryRunRows, order: Order[Candidate]) -> Ints:
        """Return the rows that may be among the best two: those of a shortlist, if there is one."""
        for criterion in reversed(order.criteria):
            if isinstance(criterion, CountedCriterion) and criterion.counts:
                index, names = run.candidates.columns.index, criterion.counts.keys()
                rows = sorted(index[name] for name in names - self._others.keys())
                return np.searchsorted(self._rows, np.array(rows, np.int64))
        return np.arange(len(self._rows))

    def _name_at(self, place: int) -> str:
        return self._names[int(self._rows[place])]

    def keys_by(self, run: DryRunRows, criterion: Criterion[Candidate], level: Ints) -> Ints:
        """Return the keys of some of the candidates of ``run``."""
        if isinstance(criterion, CountedCriterion):
            return self._counted(run, criterion, level)
        keys = criterion_keys(run, criterion, level)
        if keys is None:
            return np.array([criterion.key(self._at(place)) for place in level.tolist()], np.int64)
        return keys

    def _counted(self, run: DryRunRows, criterion: CountedCriterion, level: Ints) -> Ints:
        keys, rows = np.full(len(level), NOT_COUNTED), self._rows[level]
        for name, count in criterion.counts.items():
            if name not in self._others:
                keys[rows == run.candidates.columns.index[name]] = count
        return keys

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


def within_limits(run: DryRunRows, limits: Sequence[Limit], policy: PolicyInput) -> DryRunRows:
    """Return a dry run without the candidates above a limit, whose rows it refuses."""
    if not limits or not len(run.candidates):
        return run
    candidates, every = RankedCandidates(run, {}), np.arange(len(run.candidates))
    refused = np.zeros(len(every), np.bool_)
    strict = run.candidates.columns.strict_budgets
    for limit in limits:
        if isinstance(limit, BoundAllowance):
            allowance = next(each for each in policy.allowances if each.bound is limit)
            above = exceeds_allowance(run, allowance)
        elif strict is not None and limit.name == STRICT_BUDGETS:
            above = exceeded_budgets(run.candidates, run.victims, policy.allowed, strict) > 0
        else:
            above = candidates.keys_by(run, limit.criterion, every) > limit.at_most
        above &= ~refused
        refused |= above
        rows = np.zeros(len(run.statuses.codes), np.bool_)
        rows[run.places[above]] = True
        run.statuses.refuse(rows, refused_by(limit))
    return run.keep(np.flatnonzero(~refused))
