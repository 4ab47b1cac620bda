"""PodTopologySpread on columns.

Pods that leave or join a node change, for each constraint, the count of the node's own domain and
no other. So the rule ``count + 1 - least ≤ maxSkew`` becomes a fixed limit by row, computed once
from the least count of the *other* domains, and a count that changes:

    count ≤ others + maxSkew - 1, and no other condition if the own domain is the smallest (unless
    even then the skew is too large, which a maxSkew below 1 would cause)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from policies.kubernetes.selectors import LabelSelector, SpreadConstraint
from policies.kubernetes.snapshot import Pod
from policies.preemption.columns.cluster_columns import TERMINATING
from policies.preemption.columns.encoded_column import Bools, Ints
from policies.preemption.columns.node_columns import clamp_amount
from policies.preemption.columns.pod_block import CLASS, FLAGS
from policies.preemption.filtering import FilterPlugin, PodTopologySpread, pod_topology_spread
from policies.preemption.filtering.taint_toleration import effective_tolerations
from policies.preemption.filtering.topology_counts import TopologyDomain
from policies.preemption.time_limit import in_time
from policies.preemption.vectorized.filtering.framework import (
    Capacity,
    CountedConstraint,
    FilterInput,
    NominatedAmounts,
    VectorizedFilter,
)
from policies.preemption.vectorized.filtering.static_node_filters import may_run_on, tolerated
from policies.preemption.vectorized.filtering.topology_counts import TopologyColumn, topology_column
from policies.preemption.vectorized.row_view import Amounts, RowView, sum_by_row
from policies.preemption.vectorized.status import RowStatuses

_NEVER = -(2**62)
_UNLIMITED = 2**60


def vectorize_pod_topology_spread(
    spreading: PodTopologySpread, filter_input: FilterInput
) -> VectorizedFilter:
    """Return the vectorized PodTopologySpread."""
    constraints = spreading.constraints(filter_input.pod, filter_input.snapshot)
    if not constraints:
        return VectorizedFilter()
    columns, has_time_left = filter_input.columns, filter_input.has_time_left
    keys = in_time((each.topology_key for each in constraints), has_time_left)
    topologies = [topology_column(columns, key) for key in keys]
    has_all_keys = np.logical_and.reduce([each.labelled for each in topologies])
    selectors = in_time({each.selector for each in constraints}, has_time_left)
    selected = {each: _selected_pods(each, filter_input) for each in selectors}
    skews = tuple(
        _skew(
            constraint,
            where,
            has_all_keys & _included(constraint, filter_input),
            selected[constraint.selector],
            filter_input,
        )
        for constraint, where in in_time(zip(constraints, topologies, strict=True), has_time_left)
    )
    found = PodTopologySpreadConstraint(spreading.name, filter_input, constraints, skews)
    return VectorizedFilter((found,))


@dataclass(frozen=True)
class SelectedPods:
    """The pods that a selector counts: by class whether it does, and how many are on each row.

    ``nominated`` counts the nominated pods of a row.
    """

    matching: Bools
    counts: Ints
    nominated: NominatedAmounts


@dataclass(frozen=True)
class SpreadConstraintColumns:
    """One constraint, counted, by row of the columns.

    ``slack`` is how many more pods the row's own domain may have, ``nominated`` how many nominated
    pods of the row need some of it. ``included`` holds whether pods that leave or join the row
    change the count, ``matching`` by class which pods do. By domain, ``totals`` holds the counts,
    and ``counted`` whether the domain counts at all.
    """

    topology: TopologyColumn
    totals: Ints
    counted: Bools
    slack: Ints
    nominated: NominatedAmounts
    included: Bools
    matching: Bools

    def by_domain(self) -> dict[TopologyDomain, int]:
        """Return the counts in the format of the reference engine's filter."""
        key, values = self.topology.key, self.topology.values
        return {
            TopologyDomain(key, str(values[domain])): int(self.totals[domain])
            for domain in np.flatnonzero(self.counted).tolist()
        }

    def slack_of(self, view: RowView) -> Ints:
        """Return the slack of each row without the removed pods."""
        leaving = -self.nominated.of_rows(view)[0]
        if view.removed is not None:
            leaving += view.sum_of_removed(view.lookup(CLASS, self.matching))
        slack: Ints = view.of_nodes(self.slack) + leaving * view.of_nodes(self.included)
        return slack


@dataclass(frozen=True)
class PodTopologySpreadConstraint(CountedConstraint):
    """The topology spread filter of one pod, with its counts as columns."""

    name: str
    filter_input: FilterInput
    constraints: tuple[SpreadConstraint, ...]
    skews: tuple[SpreadConstraintColumns, ...]

    def evaluate(self, view: RowView, statuses: RowStatuses) -> None:
        """Refuse the rows without a topology label and those whose skew would be exceeded."""
        for skew in in_time(self.skews, self.filter_input.has_time_left):
            statuses.refuse(~view.of_nodes(skew.topology.labelled), pod_topology_spread.NO_LABEL)
            statuses.refuse(skew.slack_of(view) < 0, pod_topology_spread.SKEWED)

    def capacities(self, view: RowView) -> Iterable[Capacity]:
        """Return the slack of the rows' own domains, where the removed pods might exhaust it."""
        for skew in in_time(self.skews, self.filter_input.has_time_left):
            included, with_all = view.of_nodes(skew.included), view.removing(None)
            if (included & (skew.slack_of(with_all) < 0)).any():
                slack = np.where(included, skew.slack_of(view), _UNLIMITED)
                yield Capacity(slack, view.lookup(CLASS, skew.matching))

    def inputs(self) -> Sequence[Amounts]:
        """Return the slack of each domain, where it is exhausted, or nominated pods need some."""
        nominated = self.filter_input.with_nominated
        return [np.where(nominated, each.slack, np.minimum(each.slack, 0)) for each in self.skews]

    def filter_plugin(self) -> FilterPlugin:
        """Return the same constraint as the reference engine's filter plugin."""
        pod, release = self.filter_input.pod, self.filter_input.release
        tolerations = effective_tolerations(pod, release)
        counted = [skew.by_domain() for skew in self.skews]
        return pod_topology_spread.counted_plugin(pod, tolerations, self.constraints, counted)


def _skew(
    constraint: SpreadConstraint,
    where: TopologyColumn,
    included: Bools,
    pods: SelectedPods,
    filter_input: FilterInput,
) -> SpreadConstraintColumns:
    counts = where.totals(np.where(included, pods.counts, 0))
    counted = np.zeros(len(where.values), np.bool_)
    counted[where.domains[included]] = True
    limits = _limits(constraint, counts, counted, filter_input.pod)
    slack = (limits - np.where(counted, counts, 0)).take(where.domains)
    return SpreadConstraintColumns(
        topology=where,
        totals=counts,
        counted=counted,
        slack=slack,
        nominated=pods.nominated,
        included=included,
        matching=pods.matching,
    )


def _limits(constraint: SpreadConstraint, counts: Ints, counted: Bools, pod: Pod) -> Ints:
    """Return by domain the largest count with which the pod may join, whatever the count is now."""
    joins = constraint.selector is not None and constraint.selector.matches(pod.labels)
    slack = clamp_amount(constraint.max_skew) - joins
    if np.count_nonzero(counted) < constraint.min_domains:
        return np.full(len(counts), slack)
    limits = _least_of_others(counts, counted) + slack
    if slack < 0:
        limits[counted] = _NEVER
    return limits


def _least_of_others(counts: Ints, counted: Bools) -> Ints:
    """Return by domain the least count of the other domains that count."""
    domains = np.flatnonzero(counted)
    none = pod_topology_spread.NO_DOMAINS
    if not len(domains):
        return np.full(len(counts), none)
    emptiest = domains[np.argmin(counts[domains])]
    others = np.full(len(counts), counts[emptiest])
    rest = domains[domains != emptiest]
    others[emptiest] = counts[rest].min(initial=none)
    return others


def _included(constraint: SpreadConstraint, filter_input: FilterInput) -> Bools:
    included = np.ones(len(filter_input.columns.names), np.bool_)
    if constraint.honors_affinity:
        included &= may_run_on(filter_input.pod, filter_input.columns)
    if constraint.honors_taints:
        included &= tolerated(filter_input)
    return included


def _selected_pods(selector: LabelSelector | None, filter_input: FilterInput) -> SelectedPods:
    namespace = filter_input.pod.namespace

    def selects(other: Pod) -> bool:
        return (
            selector is not None and other.namespace == namespace and selector.matches(other.labels)
        )

    classes, has_time_left = filter_input.columns.classes, filter_input.has_time_left
    matching = classes.lookup(selector, selects, has_time_left)
    nominated = NominatedAmounts(filter_input, 1, lambda other, _: (selects(other),))
    if selector is None or not selector.requirements:
        none = np.zeros(len(filter_input.columns.names), np.int64)
        return SelectedPods(matching, none, nominated)
    return SelectedPods(matching, _count_staying(matching, filter_input), nominated)


def _count_staying(matching: Bools, filter_input: FilterInput) -> Ints:
    """Count the matching pods of each row that do not terminate."""
    view, columns = filter_input.all_rows, filter_input.columns
    counts = sum_by_row(view.lookup(CLASS, matching))
    leaving = view.select(np.array([columns.index[name] for name in columns.departing], np.int64))
    terminating = leaving.channel(FLAGS) & TERMINATING != 0
    counts[leaving.rows] -= sum_by_row(leaving.lookup(CLASS, matching) & terminating)
    return counts
