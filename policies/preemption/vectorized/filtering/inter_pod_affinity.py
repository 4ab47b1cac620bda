"""InterPodAffinity on columns.

Adding a pod back can only violate anti-affinity. It cannot violate affinity: a pod that counts for
affinity counts in every domain of its node. So the dry run marks the pods that repel the preemptor
or that it repels as conflicting, and evaluates affinity once. For the same reason, nominated pods
can violate anti-affinity, and can only satisfy affinity, which has to hold without them, too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from policies.kubernetes.snapshot import AffinityTerm, Pod
from policies.preemption.columns.encoded_column import Bools, Ints
from policies.preemption.columns.pod_block import CLASS, TRAITS
from policies.preemption.filtering import FilterPlugin, InterPodAffinity, inter_pod_affinity
from policies.preemption.filtering.topology_counts import TopologyDomain
from policies.preemption.time_limit import in_time
from policies.preemption.vectorized.filtering.framework import (
    Capacity,
    ConstraintWithoutCapacities,
    CountedConstraint,
    FilterInput,
    NominatedAmounts,
    VectorizedFilter,
    no_conflicts,
)
from policies.preemption.vectorized.filtering.topology_counts import (
    DomainCountColumns,
    count_by_domain,
    topology_column,
)
from policies.preemption.vectorized.row_view import Amounts, RowView
from policies.preemption.vectorized.status import RowStatuses


def vectorize_inter_pod_affinity(
    each: InterPodAffinity, filter_input: FilterInput
) -> VectorizedFilter:
    """Return the vectorized InterPodAffinity."""
    pod, namespaces = filter_input.pod, filter_input.snapshot.namespaces
    existing = _existing_anti_affinity_counts(filter_input)
    if not pod.affinity and not pod.anti_affinity and not any(t.counts.any() for t in existing):
        return VectorizedFilter()
    found = InterPodAffinityConstraint(
        each.name,
        filter_input,
        affinity_counts=_affinity_counts(filter_input),
        matches_own_terms=all(term.matches(pod, namespaces) for term in pod.affinity),
        anti_affinity_counts=_anti_affinity_counts(filter_input),
        existing_anti_affinity_counts=existing,
        nominated=NominatedAmounts(filter_input, 3, _matched_by(filter_input)),
    )
    if pod.affinity and filter_input.with_nominated.any():
        return VectorizedFilter((found,), (AffinityWithoutNominated(found),))
    return VectorizedFilter((found,))


@dataclass(frozen=True)
class InterPodAffinityConstraint(CountedConstraint):
    """The pod (anti-)affinity filter of one pod, with its counts as columns.

    ``nominated`` counts the domains in which nominated pods match all affinity terms, or an
    anti-affinity term, or have such a term that matches the pod.
    """

    name: str
    filter_input: FilterInput
    affinity_counts: tuple[DomainCountColumns, ...]
    matches_own_terms: bool
    anti_affinity_counts: tuple[DomainCountColumns, ...]
    existing_anti_affinity_counts: tuple[DomainCountColumns, ...]
    nominated: NominatedAmounts

    def evaluate(self, view: RowView, statuses: RowStatuses) -> None:
        """Refuse the rows on which a term of the pod, or an existing pod's, is violated."""
        attracting, repelled, repelling = self.nominated.of_rows(view) > 0
        if self.affinity_counts:
            matches = self.matches_affinity(view, attracting)
            statuses.refuse(~matches, inter_pod_affinity.POD_AFFINITY)
        for counts, of_nominated, rejection in (
            (self.anti_affinity_counts, repelled, inter_pod_affinity.POD_ANTI_AFFINITY),
            (
                self.existing_anti_affinity_counts,
                repelling,
                inter_pod_affinity.EXISTING_ANTI_AFFINITY,
            ),
        ):
            statuses.refuse(of_nominated, rejection)
            for each in in_time(counts, self.filter_input.has_time_left):
                statuses.refuse((each.count_of_row(view) > 0) & each.labelled(view), rejection)

    def capacities(self, view: RowView) -> Iterable[Capacity]:
        """Return that pods may not be added back that an anti-affinity term selects."""
        counts = (*self.anti_affinity_counts, *self.existing_anti_affinity_counts)
        for each in in_time(counts, self.filter_input.has_time_left):
            conflicting = (each.cell_weights(view) > 0) & each.labelled(view)
            if conflicting.any():
                yield no_conflicts(view, conflicting)

    def inputs(self) -> Sequence[Amounts]:
        """Return the counts of each row's domains, and whether others attract the pod."""
        attracting = self.affinity_counts
        counted = (*attracting, *self.anti_affinity_counts, *self.existing_anti_affinity_counts)
        counts = [each.counts.take(each.topology.domains) for each in counted]
        totals = [each.counts.sum() for each in attracting]
        others = [total > own for total, own in zip(totals, counts, strict=False)]
        return [*counts, *others]

    def filter_plugin(self) -> FilterPlugin:
        """Return the same constraint as the reference engine's filter plugin."""
        return inter_pod_affinity.counted_plugin(
            self.filter_input.pod,
            self.filter_input.snapshot.namespaces,
            _by_domain(self.affinity_counts),
            _by_domain(self.anti_affinity_counts),
            _by_domain(self.existing_anti_affinity_counts),
        )

    def matches_affinity(self, view: RowView, attracting: Bools) -> Bools:
        """Return which rows satisfy the affinity; ``attracting`` have other pods that match it."""
        everywhere = np.ones(len(view), np.bool_)
        found = everywhere.copy()
        anywhere = np.zeros(len(view), np.bool_)
        for each in in_time(self.affinity_counts, self.filter_input.has_time_left):
            everywhere &= each.labelled(view)
            here = each.count_of_row(view)
            found &= here > 0
            # The count left in all domains: the total, less the removed pods of the own domain.
            removed = each.counts.take(view.of_nodes(each.topology.domains)) - here
            anywhere |= each.counts.sum() - np.where(each.labelled(view), removed, 0) > 0
        found |= attracting
        return everywhere & (found | (~anywhere if self.matches_own_terms else False))


@dataclass(frozen=True)
class AffinityWithoutNominated(ConstraintWithoutCapacities):
    """The affinity of a pod on rows without their nominated pods.

    Its inputs are those of the constraint.
    """

    constraint: InterPodAffinityConstraint

    def evaluate(self, view: RowView, statuses: RowStatuses) -> None:
        """Refuse the rows on which the affinity needs nominated pods."""
        matches = self.constraint.matches_affinity(view, np.zeros(len(view), np.bool_))
        statuses.refuse(~matches, inter_pod_affinity.POD_AFFINITY)


def _matched_by(filter_input: FilterInput) -> Callable[[Pod, Ints], Sequence[int | Ints]]:
    """Return the function that counts in how many domains another pod matches on each row."""
    pod, namespaces = filter_input.pod, filter_input.snapshot.namespaces

    @cache
    def labelled(key: str) -> Ints:
        return topology_column(filter_input.columns, key).labelled.astype(np.int64)

    def count(other: Pod, rows: Ints) -> Sequence[int | Ints]:
        matching = (
            inter_pod_affinity.affinity_terms(pod, other, namespaces),
            inter_pod_affinity.anti_affinity_terms(pod, other, namespaces),
            inter_pod_affinity.anti_affinity_terms(other, pod, namespaces),
        )
        return [sum(labelled(each.topology_key)[rows] for each in terms) for terms in matching]

    return count


def _by_domain(counts: Iterable[DomainCountColumns]) -> dict[TopologyDomain, int]:
    return {domain: count for each in counts for domain, count in each.by_domain().items()}


def _affinity_counts(filter_input: FilterInput) -> tuple[DomainCountColumns, ...]:
    terms = filter_input.pod.affinity
    if not terms:
        return ()
    matching = np.ones(len(filter_input.columns.classes), np.bool_)
    for term in terms:
        matching &= _selected_classes(term, filter_input)
    keys = Counter(term.topology_key for term in terms)
    return _count_columns(
        {key: matching * count for key, count in keys.items()}, filter_input, CLASS
    )


def _anti_affinity_counts(filter_input: FilterInput) -> tuple[DomainCountColumns, ...]:
    weights: dict[str, Ints] = {}
    for term in filter_input.pod.anti_affinity:
        found = _selected_classes(term, filter_input).astype(np.int64)
        weights[term.topology_key] = weights.get(term.topology_key, 0) + found
    return _count_columns(weights, filter_input, CLASS)


def _existing_anti_affinity_counts(filter_input: FilterInput) -> tuple[DomainCountColumns, ...]:
    pod, namespaces = filter_input.pod, filter_input.snapshot.namespaces
    weights = filter_input.columns.traits.anti_affinity_counts(
        pod.labels, lambda term: term.matches(pod, namespaces), filter_input.has_time_left
    )
    return _count_columns(weights, filter_input, TRAITS)


def _count_columns(
    weights: dict[str, Ints], filter_input: FilterInput, channel: int
) -> tuple[DomainCountColumns, ...]:
    return tuple(
        count_by_domain(
            filter_input.all_rows, topology_column(filter_input.columns, key), each, channel
        )
        for key, each in in_time(weights.items(), filter_input.has_time_left)
    )


def _selected_classes(term: AffinityTerm, filter_input: FilterInput) -> Bools:
    namespaces = filter_input.snapshot.namespaces

    def matches(pod: Pod) -> bool:
        return term.matches(pod, namespaces)

    classes, has_time_left = filter_input.columns.classes, filter_input.has_time_left
    return classes.lookup(term.selector, matches, has_time_left)
