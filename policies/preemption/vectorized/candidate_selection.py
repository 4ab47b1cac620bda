"""The best candidates of a dry run, by the policy's order (pickOneNodeForPreemption).

Criteria are evaluated one after another, each only on the rows that are still equal.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from policies.kubernetes.criteria import Criterion, Order
from policies.kubernetes.snapshot import Pod, Snapshot
from policies.preemption.columns import ClusterColumns
from policies.preemption.columns.encoded_column import Bools, Ints
from policies.preemption.consequences.criteria import NOT_COUNTED, CountedCriterion
from policies.preemption.decision import Candidate, VictimSet
from policies.preemption.guards.allowance import BoundAllowance
from policies.preemption.guards.candidate_limit import STRICT_BUDGETS, Limit, refused_by
from policies.preemption.policy import CANDIDATE_CRITERIA, DEFAULT_VICTIM_ORDER
from policies.preemption.vectorized.disruption_budgets import exceeded_budgets
from policies.preemption.vectorized.dry_run import DryRunRows, PolicyInput
from policies.preemption.vectorized.row_results import RowResults
from policies.preemption.vectorized.victim_keys import VIOLATIONS, criterion_keys, exceeds_allowance


class RankedCandidates(Mapping[str, Candidate]):
    """The candidates of a decision, each built on access.

    ``others`` are those of the rows evaluated one by one. The pods of a node are read from the
    columns until these change, and then from the snapshot, in the order of the policy.
    """

    def __init__(
        self, results: RowResults, rows: Bools, snapshot: Snapshot, columns: ClusterColumns
    ) -> None:
        by_hand = [row for row in results.others if rows[row]]
        self._others = {each.node: each for each in map(results.others.__getitem__, by_hand)}
        found = rows.copy()
        found[by_hand] = False
        self._found, self._rows = found, np.flatnonzero(found)
        self._keys = dict(results.keys)
        self._victims, self._reprieved = results.victims, results.reprieved
        self._names = columns.row_names.listed()
        self._numbers = columns.row_names.listed_rows()
        self._nodes = snapshot.nodes
        self._columns = columns

    def best(self, run: DryRunRows, order: Order[Candidate]) -> list[Candidate]:
        """Return the best two by ``order``, or as many as there are.

        ``run`` is the dry run that produced them; its columns must not have changed since.
        """
        found = [self._at(row) for row in self._rows[self._best_two(run, order)].tolist()]
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
        places = [*preferred, *self._by_name(run, level)][:most]
        found = [self._at(row) for row in self._rows[places].tolist()]
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
        return [*winner, *self._by_name(run, level)][:2]

    def _by_name(self, run: DryRunRows, level: Ints) -> list[int]:
        """Return the places of ``level``, sorted by node name."""
        ranks = run.candidates.columns.row_names.ranks()[self._rows[level]]
        by_name: list[int] = level[ranks.argsort()].tolist()
        return by_name

    def _contenders(self, run: DryRunRows, order: Order[Candidate]) -> Ints:
        """Return the rows that may be among the best two: those of a shortlist, if there is one."""
        for criterion in reversed(order.criteria):
            if isinstance(criterion, CountedCriterion) and criterion.counts:
                index, names = run.candidates.columns.index, criterion.counts.keys()
                rows = sorted(index[name] for name in names - self._others.keys())
                return np.searchsorted(self._rows, np.array(rows, np.int64))
        return np.arange(len(self._rows))

    def keys_by(self, run: DryRunRows, criterion: Criterion[Candidate], level: Ints) -> Ints:
        """Return the keys of some of the candidates of ``run``."""
        if isinstance(criterion, CountedCriterion):
            return self._counted(run, criterion, level)
        if CANDIDATE_CRITERIA.get(criterion.name) is criterion:
            return self._keys[criterion.name][self._rows[level]]
        return keys_by(run, criterion, level)

    def _counted(self, run: DryRunRows, criterion: CountedCriterion, level: Ints) -> Ints:
        keys, rows = np.full(len(level), NOT_COUNTED), self._rows[level]
        for name, count in criterion.counts.items():
            if name not in self._others:
                keys[rows == run.candidates.columns.index[name]] = count
        return keys

    def _at(self, row: int) -> Candidate:
        name = self._names[row]
        pods = self._columns.pods_of(name, self._nodes[name])
        evicted, reprieved = (
            np.flatnonzero(np.unpackbits(bits[:, row])).tolist()
            for bits in (self._victims, self._reprieved)
        )
        return _candidate(name, pods, evicted, reprieved, int(self._keys[VIOLATIONS][row]))

    def __getitem__(self, name: str) -> Candidate:
        if name in self._others:
            return self._others[name]
        row = self._numbers[name]
        if not self._found[row]:
            raise KeyError(name)
        return self._at(row)

    def __iter__(self) -> Iterator[str]:
        yield from map(self._names.__getitem__, self._rows.tolist())
        yield from self._others

    def __len__(self) -> int:
        return len(self._rows) + len(self._others)

    def __repr__(self) -> str:
        return repr(dict(self))


def keys_by(run: DryRunRows, criterion: Criterion[Candidate], level: Ints) -> Ints:
    """Return the keys of the candidates ``level`` of a dry run."""
    keys = criterion_keys(run, criterion, level)
    if keys is None:
        found = (criterion.key(_candidate_at(run, place)) for place in level.tolist())
        return np.array(list(found), np.int64)
    return keys


def _candidate_at(run: DryRunRows, place: int) -> Candidate:
    columns, row = run.candidates.columns, int(run.candidates.numbers[place])
    evicted = np.flatnonzero(run.victims[:, place]).tolist()
    reprieved = np.flatnonzero(run.potential[:, place] & ~run.victims[:, place]).tolist()
    violations = int(run.violations[place])
    return _candidate(columns.names[row], columns.pods[row], evicted, reprieved, violations)


def _candidate(
    name: str, pods: Sequence[Pod], evicted: list[int], reprieved: list[int], violations: int
) -> Candidate:
    victims = DEFAULT_VICTIM_ORDER.sort(pods[depth] for depth in evicted)
    spared = tuple(pods[depth] for depth in reprieved)
    return Candidate(name, VictimSet(tuple(victims), violations), spared)


def within_limits(run: DryRunRows, limits: Sequence[Limit], policy: PolicyInput) -> DryRunRows:
    """Return a dry run without the candidates above a limit, whose rows it refuses."""
    if not limits or not len(run.candidates):
        return run
    every = np.arange(len(run.candidates))
    refused = np.zeros(len(every), np.bool_)
    strict = run.candidates.columns.strict_budgets
    for limit in limits:
        if isinstance(limit, BoundAllowance):
            allowance = next(each for each in policy.allowances if each.bound is limit)
            above = exceeds_allowance(run, allowance)
        elif strict is not None and limit.name == STRICT_BUDGETS:
            above = exceeded_budgets(run.candidates, run.victims, policy.allowed, strict) > 0
        else:
            above = keys_by(run, limit.criterion, every) > limit.at_most
        above &= ~refused
        refused |= above
        rows = np.zeros(len(run.statuses.codes), np.bool_)
        rows[run.places[above]] = True
        run.statuses.refuse(rows, refused_by(limit))
    return run.keep(np.flatnonzero(~refused))
