"""PodTopologySpread: the pod's hard spread constraints must hold after it has joined the node.

For each constraint the pods that its selector matches are counted per domain, over the nodes that
the constraint includes. With three zones holding 3, 1 and 2 such pods and ``maxSkew: 1``, a further
one may join the second zone (2 - 1 ≤ 1) and no other (3 + 1 - 1 > 1; 2 + 1 - 1 > 1).

For a pod without constraints of its own, kube-scheduler's default constraints apply, if it has any;
these count the pods that the pod's Services and its controller select.

Two of upstream's rules that a dry run exposes are kept as they are: counting skips terminating
pods, but removing one in a dry run lowers the count all the same; and an empty selector counts no
pods at first, although it matches all pods that a dry run removes or adds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from policies.kubernetes.default_selector import default_selector
from policies.kubernetes.releases import Release
from policies.kubernetes.selectors import SpreadConstraint, Toleration, untolerated
from policies.kubernetes.snapshot import Node, NodeState, Pod, Snapshot
from policies.preemption.filtering.framework import NOTHING_TO_CHECK, FilterPlugin, PreFilter
from policies.preemption.filtering.status import Code, Rejection, refused, unresolvable
from policies.preemption.filtering.taint_toleration import effective_tolerations
from policies.preemption.filtering.topology_counts import DomainCounts, TopologyDomain
from policies.preemption.time_limit import HasTimeLeft, in_time, no_deadline

NO_LABEL = unresolvable(Code.SPREAD_LABEL)
SKEWED = refused(Code.SPREAD)
NO_DOMAINS = 2**31 - 1


@dataclass(frozen=True, slots=True)
class PodTopologySpread:
    """Source: pkg/scheduler/framework/plugins/podtopologyspread (filtering.go, common.go).

    ``defaults`` are its hard defaultConstraints; their selectors are not read.
    """

    name: str = "PodTopologySpread"
    defaults: tuple[SpreadConstraint, ...] = ()

    def pre_filter(self, pod: Pod, snapshot: Snapshot, release: Release) -> PreFilter:
        """Count the matching pods of each domain, for each constraint."""
        return self.count(pod, snapshot, release, no_deadline)

    def count(
        self, pod: Pod, snapshot: Snapshot, release: Release, has_time_left: HasTimeLeft
    ) -> PreFilter:
        """See :class:`CountingFilter`."""
        constraints = self.constraints(pod, snapshot)
        if not constraints:
            return NOTHING_TO_CHECK
        tolerations = effective_tolerations(pod, release)
        counted: list[Counter[TopologyDomain]] = [Counter() for _ in constraints]
        for state in in_time(snapshot.nodes.values(), has_time_left):
            if not _has_all_keys(state.node, constraints):
                continue
            for constraint, counts in zip(constraints, counted, strict=True):
                if _includes(constraint, pod, tolerations, state.node):
                    domain = TopologyDomain(
                        constraint.topology_key, state.node.labels[constraint.topology_key]
                    )
                    counts[domain] += _matching(constraint, pod, state)
        return PreFilter(counted_plugin(pod, tolerations, constraints, counted))

    def constraints(self, pod: Pod, snapshot: Snapshot) -> tuple[SpreadConstraint, ...]:
        """Return the hard constraints of ``pod``, or the defaults if it has none at all."""
        if pod.spread or pod.soft_spread or not self.defaults:
            return pod.spread
        workloads = snapshot.workloads.get(pod.namespace, ())
        selector = default_selector(pod.labels, pod.controller, workloads)
        if not selector.requirements:
            return ()
        return tuple(replace(each, selector=selector) for each in self.defaults)


def counted_plugin(
    pod: Pod,
    tolerations: tuple[Toleration, ...],
    constraints: tuple[SpreadConstraint, ...],
    counted: Sequence[Mapping[TopologyDomain, int]],
) -> FilterPlugin:
    """Return the filter plugin from the counts of matching pods, by domain for each constraint.

    A domain that counts has an entry, even with no pods.
    """
    skews = tuple(
        CountedSpreadConstraint(constraint, DomainCounts(counts), _two_least(counts))
        for constraint, counts in zip(constraints, counted, strict=True)
    )
    return PodTopologySpreadFilter(pod, tolerations, constraints, skews)


@dataclass(frozen=True, slots=True)
class CountedSpreadConstraint:
    """One constraint with its counts; ``least`` are the two smallest domains as first counted."""

    constraint: SpreadConstraint
    counts: DomainCounts
    least: tuple[tuple[TopologyDomain, int], ...]

    def minimum(self) -> int:
        """Return the count of the smallest domain."""
        if len(self.counts.base) < self.constraint.min_domains:
            return 0
        changed = [self.counts.of(domain) for domain in self.counts.changes]
        unchanged = [count for domain, count in self.least if domain not in self.counts.changes]
        return min((*changed, *unchanged), default=NO_DOMAINS)


@dataclass(frozen=True, slots=True)
class PodTopologySpreadFilter:
    """The topology spread filter of one pod, with the count of each constraint."""

    pod: Pod
    tolerations: tuple[Toleration, ...]
    constraints: tuple[SpreadConstraint, ...]
    skews: tuple[CountedSpreadConstraint, ...]

    def refuse(self, node: NodeState) -> Rejection | None:
        """Return a rejection if a topology label is missing or a constraint's skew is exceeded."""
        for skew in self.skews:
            constraint = skew.constraint
            value = node.node.labels.get(constraint.topology_key)
            if value is None:
                return NO_LABEL
            joining = _counts(constraint, self.pod)
            here = skew.counts.of(TopologyDomain(constraint.topology_key, value))
            if here + joining - skew.minimum() > constraint.max_skew:
                return SKEWED
        return None

    def removing(self, pod: Pod, node: NodeState) -> FilterPlugin:
        """Return the filter with the pod's counts removed."""
        return self._changed(pod, node.node, -1)

    def adding(self, pod: Pod, node: NodeState) -> FilterPlugin:
        """Return the filter with the pod's counts added."""
        return self._changed(pod, node.node, 1)

    def _changed(self, pod: Pod, node: Node, by: int) -> FilterPlugin:
        if pod.namespace != self.pod.namespace or not _has_all_keys(node, self.constraints):
            return self
        return replace(self, skews=tuple(self._moved(skew, pod, node, by) for skew in self.skews))

    def _moved(
        self, skew: CountedSpreadConstraint, pod: Pod, node: Node, by: int
    ) -> CountedSpreadConstraint:
        constraint = skew.constraint
        if not _counts(constraint, pod) or not _includes(
            constraint, self.pod, self.tolerations, node
        ):
            return skew
        domain = TopologyDomain(constraint.topology_key, node.labels[constraint.topology_key])
        return replace(skew, counts=skew.counts.changed(domain, by))


def _two_least(counts: Mapping[TopologyDomain, int]) -> tuple[tuple[TopologyDomain, int], ...]:
    # A dry run changes one domain of a constraint; the other of these two is then the smallest of
    # the unchanged domains.
    return tuple(sorted(counts.items(), key=lambda each: each[1])[:2])


def _has_all_keys(node: Node, constraints: Sequence[SpreadConstraint]) -> bool:
    return all(constraint.topology_key in node.labels for constraint in constraints)


def _includes(
    constraint: SpreadConstraint, pod: Pod, tolerations: Sequence[Toleration], node: Node
) -> bool:
    if constraint.honors_affinity and not _may_run_on(pod, node):
        return False
    return not constraint.honors_taints or untolerated(node.taints, tolerations) is None


def _may_run_on(pod: Pod, node: Node) -> bool:
    if not all(requirement.matches(node.labels) for requirement in pod.node_selector):
        return False
    return pod.node_affinity is None or pod.node_affinity.matches(node.name, node.labels)


def _matching(constraint: SpreadConstraint, pod: Pod, state: NodeState) -> int:
    if constraint.selector is None or not constraint.selector.requirements:
        return 0
    return sum(
        _counts(constraint, other)
        for other in state.pods
        if not other.terminating and other.namespace == pod.namespace
    )


def _counts(constraint: SpreadConstraint, pod: Pod) -> bool:
    return constraint.selector is not None and constraint.selector.matches(pod.labels)
