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

from policies.columns.cells import CLASS, FLAGS
from policies.columns.coded import Bools, Ints
from policies.columns.nodes import bounded
from policies.columns.table import TERMINATING
from policies.filtering import Check, PodTopologySpread, pod_topology_spread
from policies.filtering.counting import Domain
from policies.model import Pod, SpreadConstraint
from policies.vectorized.asking import Asked, Footing, Twin
from policies.vectorized.standing import may_run_on, tolerated
from policies.vectorized.tallies import Topology, topology
from policies.vectorized.verdicts import Verdicts
from policies.vectorized.view import View

_NEVER = -(2**62)


def spread(spreading: PodTopologySpread, asked: Asked) -> Twin:
    """Return the vectorized PodTopologySpread."""
    constraints = spreading.constraints(asked.pod, asked.snapshot)
    if not constraints:
        return Twin()
    topologies = [topology(asked.columns, each.topology_key) for each in constraints]
    has_all_keys = np.logical_and.reduce([each.labelled for each in topologies])
    skews = tuple(
        _skew(constraint, where, has_all_keys & _included(constraint, asked), asked)
        for constraint, where in zip(constraints, topologies, strict=True)
    )
    found = _Spread(spreading.name, asked.pod, constraints, skews)
    return Twin((found,), reads_other_pods=True)


@dataclass(frozen=True)
class _Skew:
    """One constraint, counted, by row of the columns.

    ``here`` is the count of the row's own domain, which may be ``limit`` at most. ``included``
    holds whether pods that leave or join the row change the count, ``weights`` by class which pods
    do. By domain, ``totals`` holds the counts, and ``counted`` whether the domain counts at all.
    """

    topology: Topology
    totals: Ints
    counted: Bools
    here: Ints
    limit: Ints
    included: Bools
    weights: Ints

    def by_domain(self) -> dict[Domain, int]:
        """Return the counts in the format of the reference engine's filter."""
        key, values = self.topology.key, self.topology.values
        return {
            Domain(key, str(values[domain])): int(self.totals[domain])
            for domain in np.flatnonzero(self.counted).tolist()
        }

    def moving(self, view: View) -> Ints:
        """Return by how much each pod changes the count when it leaves or joins, (depth, rows)."""
        moving: Ints = self.weights.take(view.channel(CLASS)) * view.marks(self.included)
        return moving

    def count(self, view: View) -> Ints:
        """Return the count in each row's domain without the removed pods."""
        here = view.of_nodes(self.here)
        return here if view.gone is None else here - view.departed(self.moving(view))


@dataclass(frozen=True)
class _Spread:
    name: str
    pod: Pod
    constraints: tuple[SpreadConstraint, ...]
    skews: tuple[_Skew, ...]

    def judge(self, view: View, verdicts: Verdicts) -> None:
        for skew in self.skews:
            verdicts.refuse(~view.marks(skew.topology.labelled), pod_topology_spread.NO_LABEL)
            over = skew.count(view) > view.of_nodes(skew.limit)
            verdicts.refuse(over, pod_topology_spread.SKEWED)

    def footing(self, view: View) -> Footing | None:
        return _SpreadFooting(view, self.skews)

    def check(self) -> Check:
        """Return the same constraint as the reference engine's filter plugin."""
        counted = [skew.by_domain() for skew in self.skews]
        return pod_topology_spread.counted_check(self.pod, self.constraints, counted)


class _SpreadFooting:
    """The counts of each row's own domains as pods are added back."""

    def __init__(self, view: View, skews: tuple[_Skew, ...]) -> None:
        self._counts = [skew.count(view).copy() for skew in skews]
        self._limits = [view.of_nodes(skew.limit) for skew in skews]
        self._moving = [skew.moving(view) for skew in skews]

    def allows(self, depth: int) -> Bools:
        allowed: list[Bools] = [
            count + moving[depth] <= limit
            for count, limit, moving in zip(self._counts, self._limits, self._moving, strict=True)
        ]
        together: Bools = np.logical_and.reduce(allowed)
        return together

    def put_back(self, depth: int, where: Bools) -> None:
        for count, moving in zip(self._counts, self._moving, strict=True):
            np.add(count, moving[depth], out=count, where=where)


def _skew(constraint: SpreadConstraint, where: Topology, included: Bools, asked: Asked) -> _Skew:
    moving = _matching(constraint, asked)
    counts = where.totals(np.where(included, _standing(constraint, moving, asked), 0))
    counted = np.zeros(len(where.values), np.bool_)
    counted[where.domains[included]] = True
    return _Skew(
        topology=where,
        totals=counts,
        counted=counted,
        here=np.where(counted, counts, 0).take(where.domains),
        limit=_limits(constraint, counts, counted, asked.pod).take(where.domains),
        included=included,
        weights=moving,
    )


def _limits(constraint: SpreadConstraint, counts: Ints, counted: Bools, pod: Pod) -> Ints:
    """Return by domain the largest count with which the pod may join, whatever the count is now."""
    joins = constraint.selector is not None and constraint.selector.matches(pod.labels)
    slack = bounded(constraint.max_skew) - joins
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


def _included(constraint: SpreadConstraint, asked: Asked) -> Bools:
    included = np.ones(len(asked.columns.names), np.bool_)
    if constraint.honors_affinity:
        included &= may_run_on(asked.pod, asked.columns)
    if constraint.honors_taints:
        included &= tolerated(asked.pod, asked.columns)
    return included


def _matching(constraint: SpreadConstraint, asked: Asked) -> Ints:
    """Return by class whether its pods count when they leave or join: 1 or 0."""
    selector, namespace = constraint.selector, asked.pod.namespace

    def counts(other: Pod) -> bool:
        return (
            selector is not None and other.namespace == namespace and selector.matches(other.labels)
        )

    return asked.columns.classes.lookup(selector, counts).astype(np.int64)


def _standing(constraint: SpreadConstraint, moving: Ints, asked: Asked) -> Ints:
    """Count the matching pods of each row: not terminating ones, and none for an empty selector."""
    if constraint.selector is None or not constraint.selector.requirements:
        return np.zeros(len(asked.columns.names), np.int64)
    view = asked.everything
    staying = view.channel(FLAGS) & TERMINATING == 0
    standing: Ints = (moving.take(view.channel(CLASS)) * staying).sum(axis=0)
    return standing
