"""Placement constraints of a pod: node affinity, pod (anti-)affinity, and topology spread.

``matchLabelKeys`` and ``mismatchLabelKeys`` select by the pod's own values of these labels. The API
server merges them into the selector when a pod is created; kube-scheduler does so for spread
constraints in older releases. A repeated merge has no effect, and pods from files need it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from extender.kube import shapes
from extender.kube.decoding import compile_requirements, label_selector_of
from policies.model import AffinityTerm, SpreadConstraint
from policies.selectors import (
    LabelSelector,
    NodeSelector,
    NodeSelectorTerm,
    Requirement,
    field_requirement,
    node_requirement,
)


def node_affinity(affinity: shapes.AffinityV1) -> NodeSelector | None:
    """Compile the required node affinity; return None if there is none. Raise FieldError."""
    required = affinity.nodeAffinity and affinity.nodeAffinity.required
    path = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
    return node_selector(path, required) if required else None


def node_selector(path: str, required: shapes.NodeSelectorV1) -> NodeSelector:
    """Compile a node selector; ``path`` is its field path. Raise FieldError."""
    return NodeSelector(
        tuple(
            NodeSelectorTerm(
                labels=compile_requirements(path, node_requirement, term.matchExpressions),
                fields=compile_requirements(path, field_requirement, term.matchFields),
            )
            for term in required.nodeSelectorTerms or ()
        )
    )


def pod_terms(
    field: str, terms: shapes.PodAffinityV1 | None, pod: shapes.ObjectMetaV1
) -> tuple[AffinityTerm, ...]:
    """Compile the required terms of pod (anti-)affinity; preferred terms do not filter."""
    path = f"spec.affinity.{field}"
    required = () if terms is None else terms.required or ()
    return tuple(_pod_term(path, term, pod) for term in required)


def hard_constraints(
    constraints: Iterable[shapes.TopologySpreadConstraintV1], pod: shapes.ObjectMetaV1
) -> tuple[SpreadConstraint, ...]:
    """Compile the topology spread constraints with DoNotSchedule; others do not filter."""
    return tuple(
        SpreadConstraint(
            max_skew=each.maxSkew,
            topology_key=each.topologyKey,
            selector=_with_own_labels(
                label_selector_of("spec.topologySpreadConstraints", each.labelSelector),
                _own_labels(pod, each.matchLabelKeys, "In"),
            ),
            min_domains=1 if each.minDomains is None else each.minDomains,
            honors_affinity=each.nodeAffinityPolicy != "Ignore",
            honors_taints=each.nodeTaintsPolicy == "Honor",
        )
        for each in constraints
        if each.whenUnsatisfiable == "DoNotSchedule"
    )


def _pod_term(path: str, term: shapes.PodAffinityTermV1, pod: shapes.ObjectMetaV1) -> AffinityTerm:
    own = not term.namespaces and term.namespaceSelector is None
    return AffinityTerm(
        selector=_with_own_labels(
            label_selector_of(path, term.labelSelector),
            (
                *_own_labels(pod, term.matchLabelKeys, "In"),
                *_own_labels(pod, term.mismatchLabelKeys, "NotIn"),
            ),
        ),
        namespaces=frozenset([pod.namespace or "default"] if own else term.namespaces or ()),
        namespace_selector=label_selector_of(path, term.namespaceSelector),
        topology_key=term.topologyKey,
    )


def _own_labels(
    pod: shapes.ObjectMetaV1, keys: Iterable[str] | None, operator: str
) -> Iterator[Requirement]:
    labels = pod.labels or {}
    return (Requirement(key, operator, (labels[key],)) for key in keys or () if key in labels)


def _with_own_labels(
    selector: LabelSelector | None, own: Iterable[Requirement]
) -> LabelSelector | None:
    return None if selector is None else LabelSelector((*selector.requirements, *own))
