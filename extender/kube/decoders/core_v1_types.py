"""Types of core/v1 with the fields that are read, for partial decoding.

msgspec skips every key that a type does not name, so decoding a pod costs microseconds where the
generated model classes cost milliseconds. Go writes nil lists and maps as ``null``, hence the many
``| None``. A quantity is a string, but Go's decoder accepts a number as well.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import msgspec
from msgspec import Struct

from extender.kube.decoders.in_tree_volumes import InTreeVolumeSources

Quantity = str | int | float
Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
Name = Annotated[str, msgspec.Meta(max_length=253)]
"""A name of an object, a DNS subdomain at most, or a UID."""
LabelKey = Annotated[str, msgspec.Meta(max_length=253 + 1 + 63)]
"""A qualified name, as that of a label or of a resource: a prefix, a slash, and a name."""
LabelValue = Annotated[str, msgspec.Meta(max_length=63)]
ResourceList = dict[LabelKey, Quantity | None]


class OwnerReferenceV1(Struct):
    apiVersion: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None


class ObjectMetaV1(Struct):
    name: Name = ""
    namespace: Name | None = None
    uid: Name | None = None
    labels: dict[LabelKey, LabelValue] | None = None
    annotations: dict[str, str] | None = None
    creationTimestamp: datetime | None = None
    deletionTimestamp: datetime | None = None
    ownerReferences: list[OwnerReferenceV1] | None = None


class SelectorRequirementV1(Struct):
    """One entry of matchExpressions or matchFields."""

    key: str = ""
    operator: str = ""
    values: list[str] | None = None


class LabelSelectorV1(Struct):
    matchLabels: dict[str, str] | None = None
    matchExpressions: list[SelectorRequirementV1] | None = None


class NodeSelectorTermV1(Struct):
    matchExpressions: list[SelectorRequirementV1] | None = None
    matchFields: list[SelectorRequirementV1] | None = None


class NodeSelectorV1(Struct):
    nodeSelectorTerms: list[NodeSelectorTermV1] | None = None


class NodeAffinityV1(Struct, rename={"required": "requiredDuringSchedulingIgnoredDuringExecution"}):
    """v1.NodeAffinity; preferred terms do not filter."""

    required: NodeSelectorV1 | None = None


class PodAffinityTermV1(Struct):
    labelSelector: LabelSelectorV1 | None = None
    namespaces: list[str] | None = None
    namespaceSelector: LabelSelectorV1 | None = None
    topologyKey: str = ""
    matchLabelKeys: list[str] | None = None
    mismatchLabelKeys: list[str] | None = None


class PodAffinityV1(Struct, rename={"required": "requiredDuringSchedulingIgnoredDuringExecution"}):
    """v1.PodAffinity and v1.PodAntiAffinity; preferred terms do not filter."""

    required: list[PodAffinityTermV1] | None = None


class AffinityV1(Struct):
    nodeAffinity: NodeAffinityV1 | None = None
    podAffinity: PodAffinityV1 | None = None
    podAntiAffinity: PodAffinityV1 | None = None


class TopologySpreadConstraintV1(Struct):
    maxSkew: int = 1
    topologyKey: str = ""
    whenUnsatisfiable: str = ""
    labelSelector: LabelSelectorV1 | None = None
    minDomains: int | None = None
    nodeAffinityPolicy: str | None = None
    nodeTaintsPolicy: str | None = None
    matchLabelKeys: list[str] | None = None


class ClaimVolumeSourceV1(Struct):
    claimName: Name = ""


class VolumeV1(InTreeVolumeSources):
    """v1.Volume, as far as filter plugins read it."""

    name: str = ""
    persistentVolumeClaim: ClaimVolumeSourceV1 | None = None
    ephemeral: object = None


class PodResourceClaimV1(Struct):
    name: str = ""
    resourceClaimName: Name | None = None
    resourceClaimTemplateName: Name | None = None


class ResourceRequirementsV1(Struct):
    requests: ResourceList | None = None
    limits: ResourceList | None = None


class ContainerPortV1(Struct):
    hostPort: int | None = None
    hostIP: str | None = None
    protocol: str | None = None


class RestartPolicyRuleV1(Struct):
    action: str = ""


class VolumeMountV1(Struct):
    bindMountOptions: list[str] | None = None


class ContainerV1(Struct):
    name: str = ""
    resources: ResourceRequirementsV1 | None = None
    ports: list[ContainerPortV1] | None = None
    restartPolicy: str | None = None
    restartPolicyRules: list[RestartPolicyRuleV1] | None = None
    volumeMounts: list[VolumeMountV1] | None = None


class TolerationV1(Struct):
    key: str | None = None
    operator: str | None = None
    value: str | None = None
    effect: str | None = None


class SchedulingGroupV1(Struct):
    podGroupName: str | None = None


class PodSpecV1(Struct):
    containers: list[ContainerV1] | None = None
    initContainers: list[ContainerV1] | None = None
    overhead: ResourceList | None = None
    resources: ResourceRequirementsV1 | None = None
    nodeName: Name | None = None
    schedulerName: str | None = None
    schedulingGates: list[object] | None = None
    hostNetwork: bool | None = None
    hostUsers: bool | None = None
    nodeSelector: dict[str, str] | None = None
    affinity: AffinityV1 | None = None
    tolerations: list[TolerationV1] | None = None
    topologySpreadConstraints: list[TopologySpreadConstraintV1] | None = None
    volumes: list[VolumeV1] | None = None
    resourceClaims: list[PodResourceClaimV1] | None = None
    priority: Int32 | None = None
    priorityClassName: Name | None = None
    preemptionPolicy: str | None = None
    schedulingGroup: SchedulingGroupV1 | None = None


class PodConditionV1(Struct):
    type: str = ""
    status: str = ""
    reason: str | None = None
    lastTransitionTime: datetime | None = None


class ContainerStatusV1(Struct):
    """v1.ContainerStatus, as far as in-place resizing reports resources in it, and restarts."""

    name: str = ""
    restartCount: int = 0
    allocatedResources: ResourceList | None = None
    resources: ResourceRequirementsV1 | None = None


class PodResourceClaimStatusV1(Struct):
    """v1.PodResourceClaimStatus: the claim created from a template; null if none is needed."""

    name: str = ""
    resourceClaimName: Name | None = None


class PodStatusV1(Struct):
    phase: str | None = None
    conditions: list[PodConditionV1] | None = None
    nominatedNodeName: Name | None = None
    startTime: datetime | None = None
    containerStatuses: list[ContainerStatusV1] | None = None
    initContainerStatuses: list[ContainerStatusV1] | None = None
    resize: str | None = None
    resources: ResourceRequirementsV1 | None = None
    allocatedResources: ResourceList | None = None
    resourceClaimStatuses: list[PodResourceClaimStatusV1] | None = None


class PodV1(Struct):
    metadata: ObjectMetaV1
    spec: PodSpecV1
    status: PodStatusV1 | None = None


class TaintV1(Struct):
    key: str = ""
    value: str | None = None
    effect: str = ""


class NodePodPreemptionPolicyV1(Struct):
    disableResizePreemption: list[str] | None = None


class NodeSpecV1(Struct):
    taints: list[TaintV1] | None = None
    unschedulable: bool | None = None
    podPreemptionPolicy: NodePodPreemptionPolicyV1 | None = None


class NodeStatusV1(Struct):
    allocatable: ResourceList | None = None
    declaredFeatures: list[str] | None = None


class NodeV1(Struct):
    metadata: ObjectMetaV1
    spec: NodeSpecV1 | None = None
    status: NodeStatusV1 | None = None


class PodDisruptionBudgetSpecV1(Struct):
    selector: LabelSelectorV1 | None = None


class PodDisruptionBudgetStatusV1(Struct):
    disruptionsAllowed: int | None = None
    desiredHealthy: int | None = None
    disruptedPods: dict[str, object] | None = None


class PodDisruptionBudgetV1(Struct):
    metadata: ObjectMetaV1
    spec: PodDisruptionBudgetSpecV1 | None = None
    status: PodDisruptionBudgetStatusV1 | None = None


class MapSelectorSpecV1(Struct):
    """v1.ServiceSpec and v1.ReplicationControllerSpec, as far as they select pods."""

    selector: dict[str, str] | None = None


class MapSelectorWorkloadV1(Struct):
    """v1.Service and v1.ReplicationController."""

    metadata: ObjectMetaV1
    spec: MapSelectorSpecV1 | None = None


class LabelSelectorSpecV1(Struct):
    """apps/v1.ReplicaSetSpec and apps/v1.StatefulSetSpec, as far as they select pods."""

    selector: LabelSelectorV1 | None = None


class LabelSelectorWorkloadV1(Struct):
    """apps/v1.ReplicaSet and apps/v1.StatefulSet."""

    metadata: ObjectMetaV1
    spec: LabelSelectorSpecV1 | None = None


class NamespaceV1(Struct):
    metadata: ObjectMetaV1


class PriorityClassV1(Struct):
    metadata: ObjectMetaV1
    value: int = 0
    globalDefault: bool | None = None
    preemptionPolicy: str | None = None
