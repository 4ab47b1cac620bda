"""PodTopologySpread on columns.

Pods that leave or join a node change, for each constraint, the count of the node's own domain and
no other. So the rule ``count + 1 - least ≤ maxSkew`` becomes a fixed limit by row, computed once
from the least count of the *other* domains, and a count that changes:

    count ≤ others + maxSkew - 1, and no other condition if the own domain is the smallest (unless
    even then the skew is too large, which a maxSkew below 1 would cause)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from policies.kubernetes.selectors import SpreadConstraint
from policies.kubernetes.snapshot import Pod
from policies.preemption.columns.cluster_columns import TERMINATING
from policies.preemption.columns.encoded_column import Bools, Ints
from policies.preemption.columns.node_columns import clamp_amount
from policies.preemption.columns.pod_block import CLASS, FLAGS
from policies.preemption.filtering import FilterPlugin, PodTopologySpread, pod_topology_spread
from policies.preemption.filtering.taint_toleration import effective_tolerations
from policies.preemption.filtering.topology_counts import TopologyDomain
from policies.preemption.time_limit import HasTimeLeft, in_time
from policies.preemption.vectorized.framework import ConstraintState, FilterInput, VectorizedFilter
from policies.preemption.vectorized.row_view import RowView
from policies.preemption.vectorized.static_node_filters import may_run_on, tolerated
from policies.preemption.vectorized.status import RowStatuses
from policies.preemption.vectorized.topology_counts import TopologyColumn, topology_column

_NEVER = -(2**62)


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
    skews = tuple(
        _skew(constraint, where, has_all_keys & _included(constraint, filter_input), filter_input)
        for constraint, where in in_time(zip(constraints, topologies, strict=True), has_time_left)
    )
    found = PodTopologySpreadConstraint(spreading.name, filter_input, constraints, skews)
    return VectorizedFilter((found,), reads_other_pods=True)


@dataclass(frozen=True)
class SpreadConstraintColumns:
    """One constraint, counted, by row of the columns.

    ``here`` is the count of the row's own domain, which may be ``limit`` at most. ``included``
    holds whether pods that leave or join the row change the count, ``weights`` by class which pods
    do. By domain, ``totals`` holds the counts, and ``counted`` whether the domain counts at all.
    """

    topology: TopologyColumn
    totals: Ints
    counted: Bools
    here: Ints
    limit: Ints
    included: Bools
    weights: Ints

    def by_domain(self) -> dict[TopologyDomain, int]:
        """Return the counts in the format of the reference engine's filter."""
        key, values = self.topology.key, self.topology.values
        return {
            TopologyDomain(key, str(values[domain])): int(self.totals[domain])
            for domain in np.flatnonzero(self.counted).tolist()
        }

    def moving(self, view: RowView) -> Ints:
        """Return by how much each pod changes the count when it leaves or joins, (depth, rows)."""
        moving: Ints = self.weights.take(view.channel(CLASS)) * view.of_nodes(self.included)
        return moving

    def count(self, view: RowView) -> Ints:
        """Return the count in each row's domain without the removed pods."""
        here = view.of_nodes(self.here)
        return here if view.removed is None else here - view.sum_of_removed(self.moving(view))


@dataclass(frozen=True)
class PodTopologySpreadConstraint:
    """The topology spread filter of one pod, with its counts as columns."""

    name: str
    filter_input: FilterInput
    constraints: tuple[SpreadConstraint, ...]
    skews: tuple[SpreadConstraintColumns, ...]

    def evaluate(self, view: RowView, statuses: RowStatuses) -> None:
        """Refuse the rows without a topology label and those whose skew would be exceeded."""
        for skew in in_time(self.skews, self.filter_input.has_time_left):
            statuses.refuse(~view.of_nodes(skew.topology.labelled), pod_topology_spread.NO_LABEL)
            over = skew.count(view) > view.of_nodes(skew.limit)
            statuses.refuse(over, pod_topology_spread.SKEWED)

    def state(self, view: RowView) -> ConstraintState | None:
        """Return the counts of the rows' own domains."""
        return SpreadConstraintState(view, self.skews, self.filter_input.has_time_left)

    def filter_plugin(self) -> FilterPlugin:
        """Return the same constraint as the reference engine's filter plugin."""
        pod, release = self.filter_input.pod, self.filter_input.release
        tolerations = effective_tolerations(pod, release)
        counted = [skew.by_domain() for skew in self.skews]
        return pod_topology_spread.counted_plugin(pod, tolerations, self.constraints, counted)


class SpreadConstraintState:
    """The counts of each row's own domains as pods are added back."""

    def __init__(
        self,
        view: RowView,
        skews: tuple[SpreadConstraintColumns, ...],
        has_time_left: HasTimeLeft,
    ) -> None:
        self._has_time_left = has_time_left
        self._counts = [skew.count(view).copy() for skew in in_time(skews, has_time_left)]
        self._limits = [view.of_nodes(skew.limit) for skew in skews]
        self._moving = [skew.moving(view) for skew in in_time(skews, has_time_left)]

    def allows(self, depth: int) -> Bools:
        """Return for each row whether its domains stay within their limits with one more pod."""
        together = zip(self._counts, self._limits, self._moving, strict=True)
        allowed: list[Bools] = [
            count + moving[depth] <= limit
            for count, limit, moving in in_time(together, self._has_time_left)
        ]
        everywhere: Bools = np.logical_and.reduce(allowed)
        return everywhere

    def add_back(self, depth: int, where: Bools) -> None:
        """Count the pods at ``depth`` in their domains on the rows ``where``."""
        for count, moving in zip(self._counts, self._moving, strict=True):
            np.add(count, moving[depth], out=count, where=where)


def _skew(
    constraint: SpreadConstraint, where: TopologyColumn, included: Bools, filter_input: FilterInput
) -> SpreadConstraintColumns:
    moving = _matching(constraint, filter_input)
    counts = where.totals(np.where(included, _initial_counts(constraint, moving, filter_input), 0))
    counted = np.zeros(len(where.values), np.bool_)
    counted[where.domains[included]] = True
    return SpreadConstraintColumns(
        topology=where,
        totals=counts,
        counted=counted,
        here=np.where(counted, counts, 0).take(where.domains),
        limit=_limits(constraint, counts, counted, filter_input.pod).take(where.domains),
        included=included,
        weights=moving,
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


def _matching(constraint: SpreadConstraint, filter_input: FilterInput) -> Ints:
    """Return by class whether its pods count when they leave or join: 1 or 0."""
    selector, namespace = constraint.selector, filter_input.pod.namespace

    def counts(other: Pod) -> bool:
        return (
            selector is not None and other.namespace == namespace and selector.matches(other.labels)
        )

    classes, has_time_left = filter_input.columns.classes, filter_input.has_time_left
    return classes.lookup(selector, counts, has_time_left).astype(np.int64)


def _initial_counts(constraint: SpreadConstraint, moving: Ints, filter_input: FilterInput) -> Ints:
    """Count the matching pods of each row: not terminating ones, and none for an empty selector."""
    if constraint.selector is None or not constraint.selector.requirements:
        return np.zeros(len(filter_input.columns.names), np.int64)
    view = filter_input.all_rows
    staying = view.channel(FLAGS) & TERMINATING == 0
    counts: Ints = (moving.take(view.channel(CLASS)) * staying).sum(axis=0)
    return counts
