"""InterPodAffinity: required affinity and anti-affinity between the pod and running pods.

Three rules, checked in this order, each by counts per topology domain:

1. every affinity term has a pod in the node's domain that matches *all* of the pod's terms; the
   first pod of a group, which matches its own terms while no other pod does, fits any domain;
2. no anti-affinity term of the pod matches a pod in the node's domain;
3. no running pod in the node's domain has an anti-affinity term that matches the pod.

A node without a term's topology label is in no domain: it fails affinity, and passes the others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from policies.kubernetes.releases import Release
from policies.kubernetes.selectors import Labels
from policies.kubernetes.snapshot import AffinityTerm, NodeState, Pod, Snapshot
from policies.preemption.filtering.framework import NOTHING_TO_CHECK, FilterPlugin, PreFilter
from policies.preemption.filtering.status import Code, Rejection, refused, unresolvable
from policies.preemption.filtering.topology_counts import DomainCounts, TopologyDomain
from policies.preemption.time_limit import PODS_PER_STEP, HasTimeLeft, in_time, no_deadline

POD_AFFINITY = unresolvable(Code.POD_AFFINITY)
POD_ANTI_AFFINITY = refused(Code.POD_ANTI_AFFINITY)
EXISTING_ANTI_AFFINITY = refused(Code.EXISTING_ANTI_AFFINITY)


@dataclass(frozen=True, slots=True)
class InterPodAffinity:
    """Source: pkg/scheduler/framework/plugins/interpodaffinity/filtering.go."""

    name: str = "InterPodAffinity"

    def pre_filter(self, pod: Pod, snapshot: Snapshot, release: Release) -> PreFilter:
        """Count by domain the pods that match the pod's terms, or whose terms match the pod."""
        return self.count(pod, snapshot, release, no_deadline)

    def count(
        self,
        pod: Pod,
        snapshot: Snapshot,
        release: Release,  # noqa: ARG002
        has_time_left: HasTimeLeft,
    ) -> PreFilter:
        """See :class:`CountingFilter`."""
        namespaces = snapshot.namespaces
        repelling = in_time(snapshot.pods_with_anti_affinity, has_time_left, PODS_PER_STEP)
        existing = Counter(_existing_anti_affinity(pod, repelling, snapshot))
        if not pod.affinity and not pod.anti_affinity and not existing:
            return NOTHING_TO_CHECK
        affinity: Counter[TopologyDomain] = Counter()
        anti_affinity: Counter[TopologyDomain] = Counter()
        if pod.affinity or pod.anti_affinity:
            for state in in_time(snapshot.nodes.values(), has_time_left):
                labels = state.node.labels
                for other in state.pods:
                    terms = affinity_terms(pod, other, namespaces)
                    affinity.update(_domains(terms, labels))
                    terms = anti_affinity_terms(pod, other, namespaces)
                    anti_affinity.update(_domains(terms, labels))
        return PreFilter(counted_plugin(pod, namespaces, affinity, anti_affinity, existing))


def counted_plugin(
    pod: Pod,
    namespaces: Mapping[str, Labels],
    affinity_counts: Mapping[TopologyDomain, int],
    anti_affinity_counts: Mapping[TopologyDomain, int],
    existing_anti_affinity_counts: Mapping[TopologyDomain, int],
) -> FilterPlugin:
    """Return the filter plugin of a pod from the counts of the cluster's pods by domain.

    ``affinity_counts`` counts a pod for each of the pod's affinity terms, ``anti_affinity_counts``
    for each of its anti-affinity terms that selects the other pod,
    ``existing_anti_affinity_counts`` for each of the other pod's anti-affinity terms that selects
    the pod.
    """
    return InterPodAffinityFilter(
        pod,
        namespaces,
        DomainCounts(affinity_counts),
        DomainCounts(anti_affinity_counts),
        DomainCounts(existing_anti_affinity_counts),
        all(term.matches(pod, namespaces) for term in pod.affinity),
    )


@dataclass(frozen=True, slots=True)
class InterPodAffinityFilter:
    """The pod (anti-)affinity filter of one pod; counts are of pods by topology domain."""

    pod: Pod
    namespaces: Mapping[str, Labels]
    affinity_counts: DomainCounts
    anti_affinity_counts: DomainCounts
    existing_anti_affinity_counts: DomainCounts
    matches_own_terms: bool

    def refuse(self, node: NodeState) -> Rejection | None:
        """Return a rejection if a term of the pod or of an existing pod is violated."""
        labels = node.node.labels
        if not self._matches_affinity(labels):
            return POD_AFFINITY
        if any(
            self.anti_affinity_counts.of(domain) > 0
            for domain in _domains(self.pod.anti_affinity, labels)
        ):
            return POD_ANTI_AFFINITY
        if any(
            self.existing_anti_affinity_counts.of(TopologyDomain(key, value)) > 0
            for key, value in labels.items()
        ):
            return EXISTING_ANTI_AFFINITY
        return None

    def removing(self, pod: Pod, node: NodeState) -> FilterPlugin:
        """Return the filter with the pod's counts removed."""
        return self._changed(pod, node, -1)

    def adding(self, pod: Pod, node: NodeState) -> FilterPlugin:
        """Return the filter with the pod's counts added."""
        return self._changed(pod, node, 1)

    def _matches_affinity(self, labels: Labels) -> bool:
        domains = list(_domains(self.pod.affinity, labels))
        if len(domains) < len(self.pod.affinity):
            return False
        if all(self.affinity_counts.of(domain) > 0 for domain in domains):
            return True
        return self.matches_own_terms and not self.affinity_counts.any()

    def _changed(self, pod: Pod, node: NodeState, by: int) -> FilterPlugin:
        affinity = affinity_terms(self.pod, pod, self.namespaces)
        anti_affinity = anti_affinity_terms(self.pod, pod, self.namespaces)
        existing = anti_affinity_terms(pod, self.pod, self.namespaces)
        labels = node.node.labels

        def shifted(counts: DomainCounts, terms: Iterable[AffinityTerm]) -> DomainCounts:
            for domain in _domains(terms, labels):
                counts = counts.changed(domain, by)
            return counts

        return replace(
            self,
            affinity_counts=shifted(self.affinity_counts, affinity),
            anti_affinity_counts=shifted(self.anti_affinity_counts, anti_affinity),
            existing_anti_affinity_counts=shifted(self.existing_anti_affinity_counts, existing),
        )


def affinity_terms(
    pod: Pod, other: Pod, namespaces: Mapping[str, Labels]
) -> Sequence[AffinityTerm]:
    """Return the affinity terms of ``pod`` if ``other`` matches all of them, or else none."""
    matches = all(term.matches(other, namespaces) for term in pod.affinity)
    return pod.affinity if matches else ()


def anti_affinity_terms(
    pod: Pod, other: Pod, namespaces: Mapping[str, Labels]
) -> Sequence[AffinityTerm]:
    """Return the anti-affinity terms of ``pod`` that keep it and ``other`` apart."""
    return [term for term in pod.anti_affinity if term.matches(other, namespaces)]


def _existing_anti_affinity(
    pod: Pod, repelling: Iterable[Pod], snapshot: Snapshot
) -> Iterator[TopologyDomain]:
    for other in repelling:
        state = snapshot.nodes.get(other.node_name or "")
        if state is not None:
            terms = anti_affinity_terms(other, pod, snapshot.namespaces)
            yield from _domains(terms, state.node.labels)


def _domains(terms: Iterable[AffinityTerm], labels: Labels) -> Iterator[TopologyDomain]:
    for term in terms:
        value = labels.get(term.topology_key)
        if value is not None:
            yield TopologyDomain(term.topology_key, value)
