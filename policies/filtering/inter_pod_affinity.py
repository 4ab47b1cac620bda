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
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from policies.decision import Code, Rejection, refused, unresolvable
from policies.filtering.counting import Domain, DomainCounts
from policies.filtering.framework import NOTHING_TO_CHECK, Check, Preparation
from policies.model import AffinityTerm, NodeState, Pod, Snapshot
from policies.selectors import Labels
from policies.upstream import Release

NO_AFFINITY = unresolvable(Code.POD_AFFINITY)
ANTI_AFFINITY = refused(Code.POD_ANTI_AFFINITY)
REPELLED = refused(Code.EXISTING_ANTI_AFFINITY)


@dataclass(frozen=True, slots=True)
class InterPodAffinity:
    """Source: pkg/scheduler/framework/plugins/interpodaffinity/filtering.go."""

    name: str = "InterPodAffinity"

    def prepare(self, pod: Pod, snapshot: Snapshot, release: Release) -> Preparation:  # noqa: ARG002
        """Count by domain the pods that match the pod's terms, or whose terms match the pod."""
        namespaces = snapshot.namespaces
        repelled = Counter(_repelled(pod, snapshot))
        if not pod.affinity and not pod.anti_affinity and not repelled:
            return NOTHING_TO_CHECK
        attracted: Counter[Domain] = Counter()
        averse: Counter[Domain] = Counter()
        if pod.affinity or pod.anti_affinity:
            for state in snapshot.nodes.values():
                for other in state.pods:
                    attracted.update(_attracting(pod, other, state.node.labels, namespaces))
                    averse.update(_averse(pod, other, state.node.labels, namespaces))
        return Preparation(counted_check(pod, namespaces, attracted, averse, repelled))


def counted_check(
    pod: Pod,
    namespaces: Mapping[str, Labels],
    attracted: Mapping[Domain, int],
    averse: Mapping[Domain, int],
    repelled: Mapping[Domain, int],
) -> Check:
    """Return the filter plugin of a pod from the counts of the cluster's pods by domain.

    ``affinity_counts`` counts a pod for each of the pod's affinity terms, ``anti_affinity_counts``
    for each of its anti-affinity terms that selects the other pod,
    ``existing_anti_affinity_counts`` for each of the other pod's anti-affinity terms that selects
    the pod.
    """
    return _AffinityCheck(
        pod,
        namespaces,
        DomainCounts(attracted),
        DomainCounts(averse),
        DomainCounts(repelled),
        all(term.matches(pod, namespaces) for term in pod.affinity),
    )


@dataclass(frozen=True, slots=True)
class _AffinityCheck:
    pod: Pod
    namespaces: Mapping[str, Labels]
    attracted: DomainCounts
    averse: DomainCounts
    repelled: DomainCounts
    attracts_itself: bool

    def refuse(self, node: NodeState) -> Rejection | None:
        labels = node.node.labels
        if not self._is_attracted(labels):
            return NO_AFFINITY
        if any(self.averse.of(domain) > 0 for domain in _domains(self.pod.anti_affinity, labels)):
            return ANTI_AFFINITY
        if any(self.repelled.of(Domain(key, value)) > 0 for key, value in labels.items()):
            return REPELLED
        return None

    def removing(self, pod: Pod, node: NodeState) -> Check:
        return self._changed(pod, node, -1)

    def adding(self, pod: Pod, node: NodeState) -> Check:
        return self._changed(pod, node, 1)

    def _is_attracted(self, labels: Labels) -> bool:
        domains = list(_domains(self.pod.affinity, labels))
        if len(domains) < len(self.pod.affinity):
            return False
        if all(self.attracted.of(domain) > 0 for domain in domains):
            return True
        return self.attracts_itself and not self.attracted.any()

    def _changed(self, pod: Pod, node: NodeState, by: int) -> Check:
        labels, mine = node.node.labels, self.pod
        against = _against(mine, pod, labels, self.namespaces)
        return replace(
            self,
            attracted=_shifted(self.attracted, _attracting(mine, pod, labels, self.namespaces), by),
            averse=_shifted(self.averse, _averse(mine, pod, labels, self.namespaces), by),
            repelled=_shifted(self.repelled, against, by),
        )


def _shifted(counts: DomainCounts, domains: Iterable[Domain], by: int) -> DomainCounts:
    for domain in domains:
        counts = counts.changed(domain, by)
    return counts


def _attracting(
    pod: Pod, other: Pod, labels: Labels, namespaces: Mapping[str, Labels]
) -> Iterator[Domain]:
    """Yield the domains in which ``other`` matches all affinity terms of ``pod``."""
    if pod.affinity and all(term.matches(other, namespaces) for term in pod.affinity):
        yield from _domains(pod.affinity, labels)


def _averse(
    pod: Pod, other: Pod, labels: Labels, namespaces: Mapping[str, Labels]
) -> Iterator[Domain]:
    """Yield the domains in which ``other`` counts against ``pod`` by the pod's own terms."""
    matching = [term for term in pod.anti_affinity if term.matches(other, namespaces)]
    yield from _domains(matching, labels)


def _against(
    pod: Pod, other: Pod, labels: Labels, namespaces: Mapping[str, Labels]
) -> Iterator[Domain]:
    """Yield the domains in which the anti-affinity of ``other`` keeps ``pod`` away."""
    matching = [term for term in other.anti_affinity if term.matches(pod, namespaces)]
    yield from _domains(matching, labels)


def _repelled(pod: Pod, snapshot: Snapshot) -> Iterator[Domain]:
    for other in snapshot.repelling:
        state = snapshot.nodes.get(other.node_name or "")
        if state is not None:
            yield from _against(pod, other, state.node.labels, snapshot.namespaces)


def _domains(terms: Iterable[AffinityTerm], labels: Labels) -> Iterator[Domain]:
    for term in terms:
        value = labels.get(term.topology_key)
        if value is not None:
            yield Domain(term.topology_key, value)
