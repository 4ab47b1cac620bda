"""v1.Pod decoded to the scheduler's Pod, with requests summed and selectors compiled once.

``matchLabelKeys`` and ``mismatchLabelKeys`` select by the pod's own values of these labels. The API
server merges the values into the selectors when a pod is created, and kube-scheduler reads only the
selectors of affinity terms: if the pod is relabelled later, its terms stay as they are. For spread
constraints, kube-scheduler of every release merges the current values itself. A pod from a file
that no API server has created needs the merge of its terms, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from sys import intern
from typing import Final

import msgspec

from extender.kube.decoders import core_v1_types, pod_resources
from extender.kube.decoders.in_tree_volumes import disks_of
from extender.kube.decoders.typed_decoder import (
    FINISHED,
    compile_requirements,
    decode_object,
    label_selector_of,
)
from policies.kubernetes.default_selector import (
    REPLICA_SET,
    REPLICATION_CONTROLLER,
    STATEFUL_SET,
    PodOwner,
)
from policies.kubernetes.feature_gates import FeatureGate
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
from policies.kubernetes.snapshot import ANY_ADDRESS, DEFAULT_SCHEDULER, AffinityTerm, HostPort, Pod
from policies.kubernetes.storage import ClaimVolume, DeviceClaim, Disk, PodStorage

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_LAST_NS = 2**63 - 1

NO_KEYS: Final = frozenset[str]()
NO_LABELS: Final[Labels] = {}

_FOLLOWED = {("v1", REPLICATION_CONTROLLER), ("apps/v1", REPLICA_SET), ("apps/v1", STATEFUL_SET)}

_NO_AFFINITY = core_v1_types.AffinityV1()
_pods = msgspec.json.Decoder(core_v1_types.PodV1)


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


def decode_pod(raw: bytes, release: Release, annotations: frozenset[str] = NO_KEYS) -> Pod:
    """Decode a v1.Pod; its requests are summed by the rules of ``release``. Raise ObjectError.

    Of its annotations, those with the keys ``annotations`` are kept.
    """
    return decode_object("Pod", _pods, raw, lambda shape: _pod(shape, release, annotations))


def decode_undefaulted_pod(
    raw: bytes, release: Release, annotations: frozenset[str] = NO_KEYS
) -> Pod:
    """Decode a v1.Pod that no API server may have defaulted yet. Raise ObjectError.

    One without a UID has not been created by an API server. See :func:`decode_pod`.
    """

    def convert(shape: core_v1_types.PodV1) -> Pod:
        pod_resources.default_requests(shape.spec)
        if not shape.metadata.uid:
            _merge_label_keys(shape)
        return _pod(shape, release, annotations)

    return decode_object("Pod", _pods, raw, convert)


def _merge_label_keys(pod: core_v1_types.PodV1) -> None:
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


def epoch_ns(moment: datetime) -> int:
    """Return nanoseconds since the epoch; a time without a zone is UTC.

    int64 holds the years 1678 to 2262. Times outside are clamped to the minimum or maximum; the
    minimum can be negated, too.
    """
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    exact = (aware - _EPOCH) // _MICROSECOND * 1000
    return max(-_LAST_NS, min(exact, _LAST_NS))


def _pod(shape: core_v1_types.PodV1, release: Release, annotations: frozenset[str]) -> Pod:
    meta, spec, status = shape.metadata, shape.spec, shape.status or core_v1_types.PodStatusV1()
    namespace = meta.namespace or "default"
    affinity = spec.affinity or _NO_AFFINITY
    constraints = spec.topologySpreadConstraints or ()
    conditions = status.conditions or ()
    preempted = _preempted(conditions)
    resources = pod_resources.pod_resources(spec, status)
    return Pod(
        namespace=namespace,
        name=meta.name,
        uid=meta.uid or "",
        labels=meta.labels or {},
        priority=spec.priority or 0,
        preempts=spec.preemptionPolicy != "Never",
        node_name=spec.nodeName or None,
        nominated_node=status.nominatedNodeName or None,
        started_ns=None if status.startTime is None else epoch_ns(status.startTime),
        terminating=meta.deletionTimestamp is not None,
        preempted=preempted is not None,
        may_be_assumed=_may_be_assumed(spec, status, release),
        resize_deferred=_is_resize_deferred(spec, status, release),
        finished=status.phase in FINISHED,
        requests=pod_requests(resources, release),
        resource_names=frozenset(pod_resources.mentioned_resources(spec)),
        host_ports=frozenset(_host_ports(spec, release)),
        node_selector=equals_all(spec.nodeSelector or {}),
        node_affinity=node_affinity(affinity),
        tolerations=tuple(toleration_of(t) for t in spec.tolerations or ()),
        affinity=pod_terms("podAffinity", affinity.podAffinity, namespace),
        anti_affinity=pod_terms("podAntiAffinity", affinity.podAntiAffinity, namespace),
        spread=hard_constraints(constraints, meta),
        soft_spread=any(each.whenUnsatisfiable != "DoNotSchedule" for each in constraints),
        controller=_controller(meta.ownerReferences or ()),
        extended_requests=extended_requests(resources),
        storage=_storage(meta.name, spec, status),
        required_features=frozenset(_required_features(spec)),
        # Many pods share few priority classes and schedulers.
        scheduler_name=intern(spec.schedulerName or DEFAULT_SCHEDULER),
        group=(spec.schedulingGroup and spec.schedulingGroup.podGroupName) or "",
        priority_class=intern(spec.priorityClassName or ""),
        owner=_owner(meta.ownerReferences or ()),
        annotations=_kept(meta.annotations or {}, annotations),
        ready=any(each.type == "Ready" and each.status == "True" for each in conditions),
        restarts=sum(each.restartCount for each in status.containerStatuses or ()),
        preempted_ns=_transition_ns(preempted),
        waiting_since_ns=_waiting_since(meta, conditions),
    )


def _preempted(
    conditions: Iterable[core_v1_types.PodConditionV1],
) -> core_v1_types.PodConditionV1 | None:
    """Return the condition by which kube-scheduler marks its victims."""
    found = next((each for each in conditions if each.type == "DisruptionTarget"), None)
    is_victim = found and (found.status, found.reason) == ("True", "PreemptionByScheduler")
    return found if is_victim else None


def _may_be_assumed(
    spec: core_v1_types.PodSpecV1, status: core_v1_types.PodStatusV1, release: Release
) -> bool:
    """Return whether kube-scheduler may have assumed a pending pod on its nominated node.

    It nominates a pod that waits at Permit or in PreBind, too. A pod with scheduling gates does not
    get there, and one whose last attempt failed is taken for a preemptor that waits for its
    victims. Source: the binding cycle in pkg/scheduler/schedule_one.go.
    """
    if FeatureGate.NOMINATED_NODE_NAME_FOR_EXPECTATION not in release.gates:
        return False
    if spec.nodeName or not status.nominatedNodeName or spec.schedulingGates:
        return False
    return not any(
        (each.type, each.status, each.reason) == ("PodScheduled", "False", "Unschedulable")
        for each in status.conditions or ()
    )


def _is_resize_deferred(
    spec: core_v1_types.PodSpecV1, status: core_v1_types.PodStatusV1, release: Release
) -> bool:
    """Return whether kube-scheduler preempts for the in-place resize of a running pod.

    Source: IsPodResizeDeferred in k8s.io/component-helpers/resource/helpers.go.
    """
    if FeatureGate.IN_PLACE_POD_VERTICAL_SCALING_SCHEDULER_PREEMPTION not in release.gates:
        return False
    reasons = [e.reason for e in status.conditions or () if e.type == "PodResizePending"]
    return bool(spec.nodeName) and reasons[:1] == ["Deferred"]


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


def _controller(references: Iterable[core_v1_types.OwnerReferenceV1]) -> PodOwner | None:
    for each in references:
        if each.controller:
            followed = (each.apiVersion, each.kind) in _FOLLOWED
            return _interned_owner(each.kind, each.name) if followed else None
    return None


_interned_owner = lru_cache(maxsize=4096)(PodOwner)


def _owner(references: Iterable[core_v1_types.OwnerReferenceV1]) -> PodOwner | None:
    for each in references:
        if each.controller:
            return _interned_owner(each.kind, each.name)
    return None


def _kept(annotations: Mapping[str, str], keys: frozenset[str]) -> Labels:
    return {key: annotations[key] for key in keys if key in annotations} if keys else NO_LABELS


def _waiting_since(
    meta: core_v1_types.ObjectMetaV1, conditions: Iterable[core_v1_types.PodConditionV1]
) -> int:
    refused = next((e for e in conditions if (e.type, e.status) == ("PodScheduled", "False")), None)
    if refused is None:
        return 0 if meta.creationTimestamp is None else epoch_ns(meta.creationTimestamp)
    return _transition_ns(refused)


def _transition_ns(condition: core_v1_types.PodConditionV1 | None) -> int:
    since = None if condition is None else condition.lastTransitionTime
    return 0 if since is None else epoch_ns(since)


def toleration_of(shape: core_v1_types.TolerationV1) -> Toleration:
    """Decode a toleration; equal ones are the same object."""
    return _interned_toleration(
        shape.key or "", shape.operator or "", shape.value or "", shape.effect or ""
    )


_interned_toleration = lru_cache(maxsize=1024)(Toleration)


def _storage(
    name: str, spec: core_v1_types.PodSpecV1, status: core_v1_types.PodStatusV1
) -> PodStorage | None:
    volumes = tuple(_volumes(name, spec.volumes)) if spec.volumes else ()
    devices = tuple(_devices(spec.resourceClaims, status)) if spec.resourceClaims else ()
    return PodStorage(volumes, devices) if volumes or devices else None


def _volumes(pod: str, volumes: Iterable[core_v1_types.VolumeV1]) -> Iterator[ClaimVolume | Disk]:
    for volume in volumes:
        if volume.persistentVolumeClaim is not None:
            yield ClaimVolume(volume.persistentVolumeClaim.claimName)
        elif volume.ephemeral is not None:
            yield ClaimVolume(f"{pod}-{volume.name}", ephemeral=True)
        else:
            yield from disks_of(volume)


def _devices(
    sources: Iterable[core_v1_types.PodResourceClaimV1], status: core_v1_types.PodStatusV1
) -> Iterator[DeviceClaim]:
    """Return the pod's device claims, except those that turned out not to be needed."""
    made = {each.name: each.resourceClaimName for each in status.resourceClaimStatuses or ()}
    for source in sources:
        if source.resourceClaimName is not None:
            yield DeviceClaim(source.name, source.resourceClaimName)
        elif source.resourceClaimTemplateName is None:
            yield DeviceClaim(source.name, None)
        elif made.get(source.name, "") is not None:
            yield DeviceClaim(source.name, made.get(source.name), templated=True)
