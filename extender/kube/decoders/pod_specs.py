"""What the spec of a v1.Pod requests: resources, ports, and on which nodes the pod may run.

Most pods are replicas of others. Their specs differ in the node, and some in their volumes, device
claims and node affinity. The rest is encoded again, which takes a tenth of the time to decode it,
and looked up by these bytes: equal specs are decoded once and share one object.

``matchLabelKeys`` and ``mismatchLabelKeys`` select by the pod's own values of these labels. The API
server merges the values into the selectors when a pod is created, and kube-scheduler reads only the
selectors of affinity terms: if the pod is relabelled later, its terms stay as they are. For spread
constraints, kube-scheduler of every release merges the current values itself. A pod from a file
that no API server has created needs the merge of its terms, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

import msgspec
from msgspec import structs

from extender.kube.decoders import core_v1_types, pod_resources
from extender.kube.decoders.typed_decoder import compile_requirements, label_selector_of
from policies.kubernetes.devices import ExtendedRequest
from policies.kubernetes.pod_requests import extended_requests, pod_requests
from policies.kubernetes.releases import Release
from policies.kubernetes.selectors import (
    Labels,
    LabelSelector,
    NodeSelector,
    NodeSelectorTerm,
    Requirement,
    SpreadConstraint,
    Toleration,
    equals_all,
    field_requirement,
    node_requirement,
)
from policies.kubernetes.snapshot import ANY_ADDRESS, AffinityTerm, HostPort, Resources

_MOST_SPECS = 4096
_NO_AFFINITY = core_v1_types.AffinityV1()
_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(core_v1_types.PodV1)


class DecodedSpec(NamedTuple):
    """The fields of :class:`policies.kubernetes.snapshot.Pod` that equal specs share."""

    requests: Resources
    resource_names: frozenset[str]
    extended_requests: tuple[ExtendedRequest, ...]
    host_ports: frozenset[HostPort]
    node_selector: tuple[Requirement, ...]
    tolerations: tuple[Toleration, ...]
    affinity: tuple[AffinityTerm, ...]
    anti_affinity: tuple[AffinityTerm, ...]
    spread: tuple[SpreadConstraint, ...]
    soft_spread: bool
    required_features: frozenset[str]


def decode_spec(pod: core_v1_types.PodV1, namespace: str, release: Release) -> DecodedSpec:
    """Decode the spec of a pod, and the resources that its status reports. Raise FieldError."""
    return _decode_encoded(_encoder.encode(_shared_part(pod, namespace)), release)


def _shared_part(pod: core_v1_types.PodV1, namespace: str) -> core_v1_types.PodV1:
    """Return the part of a pod on which the fields of DecodedSpec depend."""
    spec, status = pod.spec, pod.status or core_v1_types.PodStatusV1()
    affinity = spec.affinity and structs.replace(spec.affinity, nodeAffinity=None)
    return core_v1_types.PodV1(
        core_v1_types.ObjectMetaV1(
            namespace=namespace,
            labels=pod.metadata.labels if spec.topologySpreadConstraints else None,
        ),
        structs.replace(spec, nodeName=None, volumes=None, resourceClaims=None, affinity=affinity),
        core_v1_types.PodStatusV1(
            conditions=[
                core_v1_types.PodConditionV1(each.type, reason=each.reason)
                for each in status.conditions or ()
                if each.type == "PodResizePending"
            ],
            containerStatuses=_without_restarts(status.containerStatuses),
            initContainerStatuses=_without_restarts(status.initContainerStatuses),
            resize=status.resize,
            resources=status.resources,
            allocatedResources=status.allocatedResources,
        ),
    )


def _without_restarts(
    statuses: Iterable[core_v1_types.ContainerStatusV1] | None,
) -> list[core_v1_types.ContainerStatusV1]:
    return [structs.replace(each, restartCount=0) for each in statuses or ()]


@lru_cache(_MOST_SPECS)
def _decode_encoded(encoded: bytes, release: Release) -> DecodedSpec:
    return compile_spec(_decoder.decode(encoded), release)


def compile_spec(pod: core_v1_types.PodV1, release: Release) -> DecodedSpec:
    """Do the same as :func:`decode_spec` for one pod, without sharing. Raise FieldError."""
    spec, status = pod.spec, pod.status or core_v1_types.PodStatusV1()
    affinity, constraints = spec.affinity or _NO_AFFINITY, spec.topologySpreadConstraints or ()
    resources = pod_resources.pod_resources(spec, status)
    namespace = pod.metadata.namespace or ""
    return DecodedSpec(
        requests=pod_requests(resources, release),
        resource_names=frozenset(pod_resources.mentioned_resources(spec)),
        extended_requests=extended_requests(resources),
        host_ports=frozenset(_host_ports(spec, release)),
        node_selector=equals_all(spec.nodeSelector or {}),
        tolerations=tuple(toleration_of(each) for each in spec.tolerations or ()),
        affinity=pod_terms("podAffinity", affinity.podAffinity, namespace),
        anti_affinity=pod_terms("podAntiAffinity", affinity.podAntiAffinity, namespace),
        spread=hard_constraints(constraints, pod.metadata),
        soft_spread=any(each.whenUnsatisfiable != "DoNotSchedule" for each in constraints),
        required_features=frozenset(_required_features(spec)),
    )


def node_affinity(affinity: core_v1_types.AffinityV1) -> NodeSelector | None:
    """Compile the required node affinity; return None if there is none. Raise FieldError."""
    required = affinity.nodeAffinity and affinity.nodeAffinity.required
    path = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
    return node_selector(path, required) if required else None


def node_selector(path: str, required: core_v1_types.NodeSelectorV1) -> NodeSelector:
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
    field: str, terms: core_v1_types.PodAffinityV1 | None, namespace: str
) -> tuple[AffinityTerm, ...]:
    """Compile the required terms of pod (anti-)affinity; preferred terms do not filter."""
    path = f"spec.affinity.{field}"
    return tuple(_pod_term(path, term, namespace) for term in _required(terms))


def hard_constraints(
    constraints: Iterable[core_v1_types.TopologySpreadConstraintV1], pod: core_v1_types.ObjectMetaV1
) -> tuple[SpreadConstraint, ...]:
    """Compile the topology spread constraints with DoNotSchedule; others do not filter.

    Source: filterTopologySpreadConstraints in
    pkg/scheduler/framework/plugins/podtopologyspread/common.go.
    """
    return tuple(
        SpreadConstraint(
            max_skew=each.maxSkew,
            topology_key=each.topologyKey,
            selector=_with_own_labels(
                label_selector_of("spec.topologySpreadConstraints", each.labelSelector),
                pod.labels or {},
                each.matchLabelKeys or (),
            ),
            min_domains=1 if each.minDomains is None else each.minDomains,
            honors_affinity=each.nodeAffinityPolicy != "Ignore",
            honors_taints=each.nodeTaintsPolicy == "Honor",
        )
        for each in constraints
        if each.whenUnsatisfiable == "DoNotSchedule"
    )


def _required(
    terms: core_v1_types.PodAffinityV1 | None,
) -> Iterable[core_v1_types.PodAffinityTermV1]:
    return () if terms is None else terms.required or ()


def _pod_term(path: str, term: core_v1_types.PodAffinityTermV1, namespace: str) -> AffinityTerm:
    own = not term.namespaces and term.namespaceSelector is None
    return AffinityTerm(
        selector=label_selector_of(path, term.labelSelector),
        namespaces=frozenset([namespace] if own else term.namespaces or ()),
        namespace_selector=label_selector_of(path, term.namespaceSelector),
        topology_key=term.topologyKey,
    )


def _with_own_labels(
    selector: LabelSelector | None, labels: Labels, keys: Iterable[str]
) -> LabelSelector | None:
    if selector is None:
        return None
    own = (Requirement(key, "In", (labels[key],)) for key in keys if key in labels)
    return LabelSelector((*selector.requirements, *own))


def merge_label_keys(pod: core_v1_types.PodV1) -> None:
    """Add the pod's values of label keys to the selectors of its affinity terms, in place.

    Source: applyMatchLabelKeysAndMismatchLabelKeys in pkg/registry/core/pod/strategy.go.
    """
    labels, affinity = pod.metadata.labels or {}, pod.spec.affinity or _NO_AFFINITY
    for term in (*_required(affinity.podAffinity), *_required(affinity.podAntiAffinity)):
        if term.labelSelector is not None:
            term.labelSelector.matchExpressions = [
                *(term.labelSelector.matchExpressions or ()),
                *_own_values("In", term.matchLabelKeys, labels),
                *_own_values("NotIn", term.mismatchLabelKeys, labels),
            ]


def _own_values(
    operator: str, keys: Iterable[str] | None, labels: Labels
) -> Iterator[core_v1_types.SelectorRequirementV1]:
    for key in keys or ():
        if key in labels:
            yield core_v1_types.SelectorRequirementV1(key, operator, [labels[key]])


def _host_ports(spec: core_v1_types.PodSpecV1, release: Release) -> Iterator[HostPort]:
    sidecars = [c for c in spec.initContainers or () if c.restartPolicy == "Always"]
    for container in (*(sidecars if release.sidecar_host_ports else ()), *(spec.containers or ())):
        for port in container.ports or ():
            if port.hostPort is not None and port.hostPort > 0:
                yield HostPort(port.hostIP or ANY_ADDRESS, port.protocol or "TCP", port.hostPort)


def _required_features(spec: core_v1_types.PodSpecV1) -> Iterator[str]:
    """Yield the features that a node has to declare to run the pod.

    Source: the InferForScheduling of each feature in
    k8s.io/component-helpers/nodedeclaredfeatures/features.
    """
    if spec.hostNetwork and spec.hostUsers is False:
        yield "UserNamespacesHostNetworkSupport"
    for container in (*(spec.initContainers or ()), *(spec.containers or ())):
        for rule in container.restartPolicyRules or ():
            if rule.action == "RestartAllContainers":
                yield "RestartAllContainersOnContainerExits"
        if any(mount.bindMountOptions for mount in container.volumeMounts or ()):
            yield "VolumeBindMountOptions"


def toleration_of(shape: core_v1_types.TolerationV1) -> Toleration:
    """Decode a toleration; equal ones are the same object."""
    return _interned_toleration(
        shape.key or "", shape.operator or "", shape.value or "", shape.effect or ""
    )


_interned_toleration = lru_cache(maxsize=1024)(Toleration)
