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
ResourceList = dict[str, Quantity | None]


class OwnerReferenceV1(Struct):
    """metav1.OwnerReference."""

    apiVersion: str = ""  # noqa: N815 - the key as Kubernetes writes it
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None


class ObjectMetaV1(Struct):
    """metadata."""

    name: str = ""
    namespace: str | None = None
    uid: str | None = None
    labels: dict[str, str] | None = None
    deletionTimestamp: datetime | None = None  # noqa: N815
    ownerReferences: list[OwnerReferenceV1] | None = None  # noqa: N815


class SelectorRequirementV1(Struct):
    """One entry of matchExpressions or matchFields."""

    key: str = ""
    operator: str = ""
    values: list[str] | None = None


class LabelSelectorV1(Struct):
    """metav1.LabelSelector."""

    matchLabels: dict[str, str] | None = None  # noqa: N815
    matchExpressions: list[SelectorRequirementV1] | None = None  # noqa: N815


class NodeSelectorTermV1(Struct):
    """v1.NodeSelectorTerm."""

    matchExpressions: list[SelectorRequirementV1] | None = None  # noqa: N815
    matchFields: list[SelectorRequirementV1] | None = None  # noqa: N815


class NodeSelectorV1(Struct):
    """v1.NodeSelector."""

    nodeSelectorTerms: list[NodeSelectorTermV1] | None = None  # noqa: N815


class NodeAffinityV1(Struct, rename={"required": "requiredDuringSchedulingIgnoredDuringExecution"}):
    """v1.NodeAffinity; preferred terms do not filter."""

    required: NodeSelectorV1 | None = None


class PodAffinityTermV1(Struct):
    """v1.PodAffinityTerm."""

    labelSelector: LabelSelectorV1 | None = None  # noqa: N815
    namespaces: list[str] | None = None
    namespaceSelector: LabelSelectorV1 | None = None  # noqa: N815
    topologyKey: str = ""  # noqa: N815
    matchLabelKeys: list[str] | None = None  # noqa: N815
    mismatchLabelKeys: list[str] | None = None  # noqa: N815


class PodAffinityV1(Struct, rename={"required": "requiredDuringSchedulingIgnoredDuringExecution"}):
    """v1.PodAffinity and v1.PodAntiAffinity; preferred terms do not filter."""

    required: list[PodAffinityTermV1] | None = None


class AffinityV1(Struct):
    """v1.Affinity."""

    nodeAffinity: NodeAffinityV1 | None = None  # noqa: N815
    podAffinity: PodAffinityV1 | None = None  # noqa: N815
    podAntiAffinity: PodAffinityV1 | None = None  # noqa: N815


class TopologySpreadConstraintV1(Struct):
    """v1.TopologySpreadConstraint."""

    maxSkew: int = 1  # noqa: N815
    topologyKey: str = ""  # noqa: N815
    whenUnsatisfiable: str = ""  # noqa: N815
    labelSelector: LabelSelectorV1 | None = None  # noqa: N815
    minDomains: int | None = None  # noqa: N815
    nodeAffinityPolicy: str | None = None  # noqa: N815
    nodeTaintsPolicy: str | None = None  # noqa: N815
    matchLabelKeys: list[str] | None = None  # noqa: N815


class ClaimVolumeSourceV1(Struct):
    """v1.PersistentVolumeClaimVolumeSource."""

    claimName: str = ""  # noqa: N815


class VolumeV1(InTreeVolumeSources):
    """v1.Volume, as far as filter plugins read it."""

    name: str = ""
    persistentVolumeClaim: ClaimVolumeSourceV1 | None = None  # noqa: N815
    ephemeral: object = None


class PodResourceClaimV1(Struct):
    """v1.PodResourceClaim."""

    name: str = ""
    resourceClaimName: str | None = None  # noqa: N815
    resourceClaimTemplateName: str | None = None  # noqa: N815


class ResourceRequirementsV1(Struct):
    """v1.ResourceRequirements."""

    requests: ResourceList | None = None
    limits: ResourceList | None = None


class ContainerPortV1(Struct):
    """v1.ContainerPort."""

    hostPort: int | None = None  # noqa: N815
    hostIP: str | None = None  # noqa: N815
    protocol: str | None = None


class ContainerV1(Struct):
    """v1.Container."""

    name: str = ""
    resources: ResourceRequirementsV1 | None = None
    ports: list[ContainerPortV1] | None = None
    restartPolicy: str | None = None  # noqa: N815


class TolerationV1(Struct):
    """v1.Toleration."""

    key: str | None = None
    operator: str | None = None
    value: str | None = None
    effect: str | None = None


class PodSpecV1(Struct):
    """v1.PodSpec."""

    containers: list[ContainerV1] | None = None
    initContainers: list[ContainerV1] | None = None  # noqa: N815
    overhead: ResourceList | None = None
    resources: ResourceRequirementsV1 | None = None
    nodeName: str | None = None  # noqa: N815
    nodeSelector: dict[str, str] | None = None  # noqa: N815
    affinity: AffinityV1 | None = None
    tolerations: list[TolerationV1] | None = None
    topologySpreadConstraints: list[TopologySpreadConstraintV1] | None = None  # noqa: N815
    volumes: list[VolumeV1] | None = None
    resourceClaims: list[PodResourceClaimV1] | None = None  # noqa: N815
    priority: Int32 | None = None
    priorityClassName: str | None = None  # noqa: N815
    preemptionPolicy: str | None = None  # noqa: N815


class PodConditionV1(Struct):
    """v1.PodCondition."""

    type: str = ""
    status: str = ""
    reason: str | None = None


class ContainerStatusV1(Struct):
    """v1.ContainerStatus, as far as in-place resizing reports resources in it."""

    name: str = ""
    allocatedResources: ResourceList | None = None  # noqa: N815
    resources: ResourceRequirementsV1 | None = None


class PodResourceClaimStatusV1(Struct):
    """v1.PodResourceClaimStatus: the claim created from a template; null if none is needed."""

    name: str = ""
    resourceClaimName: str | None = None  # noqa: N815


class PodStatusV1(Struct):
    """v1.PodStatus."""

    phase: str | None = None
    conditions: list[PodConditionV1] | None = None
    nominatedNodeName: str | None = None  # noqa: N815
    startTime: datetime | None = None  # noqa: N815
    containerStatuses: list[ContainerStatusV1] | None = None  # noqa: N815
    initContainerStatuses: list[ContainerStatusV1] | None = None  # noqa: N815
    resources: ResourceRequirementsV1 | None = None
    allocatedResources: ResourceList | None = None  # noqa: N815
    resourceClaimStatuses: list[PodResourceClaimStatusV1] | None = None  # noqa: N815


class PodV1(Struct):
    """v1.Pod."""

    metadata: ObjectMetaV1
    spec: PodSpecV1
    status: PodStatusV1 | None = None


class TaintV1(Struct):
    """v1.Taint."""

    key: str = ""
    value: str | None = None
    effect: str = ""


class NodeSpecV1(Struct):
    """v1.NodeSpec."""

    taints: list[TaintV1] | None = None
    unschedulable: bool | None = None


class NodeStatusV1(Struct):
    """v1.NodeStatus."""

    allocatable: ResourceList | None = None


class NodeV1(Struct):
    """v1.Node."""

    metadata: ObjectMetaV1
    spec: NodeSpecV1 | None = None
    status: NodeStatusV1 | None = None


class PodDisruptionBudgetSpecV1(Struct):
    """policy/v1.PodDisruptionBudgetSpec."""

    selector: LabelSelectorV1 | None = None


class PodDisruptionBudgetStatusV1(Struct):
    """policy/v1.PodDisruptionBudgetStatus."""

    disruptionsAllowed: int | None = None  # noqa: N815
    disruptedPods: dict[str, object] | None = None  # noqa: N815


class PodDisruptionBudgetV1(Struct):
    """policy/v1.PodDisruptionBudget."""

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
    """v1.Namespace."""

    metadata: ObjectMetaV1


class PriorityClassV1(Struct):
    """scheduling.k8s.io/v1.PriorityClass."""

    metadata: ObjectMetaV1
    value: int = 0
    globalDefault: bool | None = None  # noqa: N815
    preemptionPolicy: str | None = None  # noqa: N815
