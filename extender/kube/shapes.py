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

from extender.kube.disks import DiskSources

Quantity = str | int | float
Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
ResourceList = dict[str, Quantity | None]


class OwnerReference(Struct):
    """metav1.OwnerReference."""

    apiVersion: str = ""  # noqa: N815 - the key as Kubernetes writes it
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None


class Meta(Struct):
    """metadata."""

    name: str = ""
    namespace: str | None = None
    uid: str | None = None
    labels: dict[str, str] | None = None
    deletionTimestamp: datetime | None = None  # noqa: N815
    ownerReferences: list[OwnerReference] | None = None  # noqa: N815


class Expression(Struct):
    """One entry of matchExpressions or matchFields."""

    key: str = ""
    operator: str = ""
    values: list[str] | None = None


class Selector(Struct):
    """metav1.LabelSelector."""

    matchLabels: dict[str, str] | None = None  # noqa: N815
    matchExpressions: list[Expression] | None = None  # noqa: N815


class SelectorTerm(Struct):
    """v1.NodeSelectorTerm."""

    matchExpressions: list[Expression] | None = None  # noqa: N815
    matchFields: list[Expression] | None = None  # noqa: N815


class RequiredTerms(Struct):
    """v1.NodeSelector."""

    nodeSelectorTerms: list[SelectorTerm] | None = None  # noqa: N815


class NodeAffinity(Struct, rename={"required": "requiredDuringSchedulingIgnoredDuringExecution"}):
    """v1.NodeAffinity; preferred terms do not filter."""

    required: RequiredTerms | None = None


class PodTerm(Struct):
    """v1.PodAffinityTerm."""

    labelSelector: Selector | None = None  # noqa: N815
    namespaces: list[str] | None = None
    namespaceSelector: Selector | None = None  # noqa: N815
    topologyKey: str = ""  # noqa: N815
    matchLabelKeys: list[str] | None = None  # noqa: N815
    mismatchLabelKeys: list[str] | None = None  # noqa: N815


class PodTerms(Struct, rename={"required": "requiredDuringSchedulingIgnoredDuringExecution"}):
    """v1.PodAffinity and v1.PodAntiAffinity; preferred terms do not filter."""

    required: list[PodTerm] | None = None


class Affinity(Struct):
    """v1.Affinity."""

    nodeAffinity: NodeAffinity | None = None  # noqa: N815
    podAffinity: PodTerms | None = None  # noqa: N815
    podAntiAffinity: PodTerms | None = None  # noqa: N815


class Spread(Struct):
    """v1.TopologySpreadConstraint."""

    maxSkew: int = 1  # noqa: N815
    topologyKey: str = ""  # noqa: N815
    whenUnsatisfiable: str = ""  # noqa: N815
    labelSelector: Selector | None = None  # noqa: N815
    minDomains: int | None = None  # noqa: N815
    nodeAffinityPolicy: str | None = None  # noqa: N815
    nodeTaintsPolicy: str | None = None  # noqa: N815
    matchLabelKeys: list[str] | None = None  # noqa: N815


class ClaimSource(Struct):
    """v1.PersistentVolumeClaimVolumeSource."""

    claimName: str = ""  # noqa: N815


class Volume(DiskSources):
    """v1.Volume, as far as filter plugins read it."""

    name: str = ""
    persistentVolumeClaim: ClaimSource | None = None  # noqa: N815
    ephemeral: object = None


class DeviceSource(Struct):
    """v1.PodResourceClaim."""

    name: str = ""
    resourceClaimName: str | None = None  # noqa: N815
    resourceClaimTemplateName: str | None = None  # noqa: N815


class Amounts(Struct):
    """v1.ResourceRequirements."""

    requests: ResourceList | None = None
    limits: ResourceList | None = None


class Port(Struct):
    """v1.ContainerPort."""

    hostPort: int | None = None  # noqa: N815
    hostIP: str | None = None  # noqa: N815
    protocol: str | None = None


class Container(Struct):
    """v1.Container."""

    name: str = ""
    resources: Amounts | None = None
    ports: list[Port] | None = None
    restartPolicy: str | None = None  # noqa: N815


class TolerationShape(Struct):
    """v1.Toleration."""

    key: str | None = None
    operator: str | None = None
    value: str | None = None
    effect: str | None = None


class PodSpec(Struct):
    """v1.PodSpec."""

    containers: list[Container] | None = None
    initContainers: list[Container] | None = None  # noqa: N815
    overhead: ResourceList | None = None
    resources: Amounts | None = None
    nodeName: str | None = None  # noqa: N815
    nodeSelector: dict[str, str] | None = None  # noqa: N815
    affinity: Affinity | None = None
    tolerations: list[TolerationShape] | None = None
    topologySpreadConstraints: list[Spread] | None = None  # noqa: N815
    volumes: list[Volume] | None = None
    resourceClaims: list[DeviceSource] | None = None  # noqa: N815
    priority: Int32 | None = None
    priorityClassName: str | None = None  # noqa: N815
    preemptionPolicy: str | None = None  # noqa: N815


class Condition(Struct):
    """v1.PodCondition."""

    type: str = ""
    status: str = ""
    reason: str | None = None


class ContainerStatus(Struct):
    """v1.ContainerStatus, as far as in-place resizing reports resources in it."""

    name: str = ""
    allocatedResources: ResourceList | None = None  # noqa: N815
    resources: Amounts | None = None


class DeviceStatus(Struct):
    """v1.PodResourceClaimStatus: the claim created from a template; null if none is needed."""

    name: str = ""
    resourceClaimName: str | None = None  # noqa: N815


class PodStatus(Struct):
    """v1.PodStatus."""

    phase: str | None = None
    conditions: list[Condition] | None = None
    nominatedNodeName: str | None = None  # noqa: N815
    startTime: datetime | None = None  # noqa: N815
    containerStatuses: list[ContainerStatus] | None = None  # noqa: N815
    initContainerStatuses: list[ContainerStatus] | None = None  # noqa: N815
    resources: Amounts | None = None
    allocatedResources: ResourceList | None = None  # noqa: N815
    resourceClaimStatuses: list[DeviceStatus] | None = None  # noqa: N815


class PodShape(Struct):
    """v1.Pod."""

    metadata: Meta
    spec: PodSpec
    status: PodStatus | None = None


class TaintShape(Struct):
    """v1.Taint."""

    key: str = ""
    value: str | None = None
    effect: str = ""


class NodeSpec(Struct):
    """v1.NodeSpec."""

    taints: list[TaintShape] | None = None
    unschedulable: bool | None = None


class NodeStatus(Struct):
    """v1.NodeStatus."""

    allocatable: ResourceList | None = None


class NodeShape(Struct):
    """v1.Node."""

    metadata: Meta
    spec: NodeSpec | None = None
    status: NodeStatus | None = None


class BudgetSpec(Struct):
    """policy/v1.PodDisruptionBudgetSpec."""

    selector: Selector | None = None


class BudgetStatus(Struct):
    """policy/v1.PodDisruptionBudgetStatus."""

    disruptionsAllowed: int | None = None  # noqa: N815
    disruptedPods: dict[str, object] | None = None  # noqa: N815


class BudgetShape(Struct):
    """policy/v1.PodDisruptionBudget."""

    metadata: Meta
    spec: BudgetSpec | None = None
    status: BudgetStatus | None = None


class MapSelectingSpec(Struct):
    """v1.ServiceSpec and v1.ReplicationControllerSpec, as far as they select pods."""

    selector: dict[str, str] | None = None


class MapSelectingShape(Struct):
    """v1.Service and v1.ReplicationController."""

    metadata: Meta
    spec: MapSelectingSpec | None = None


class SelectingSpec(Struct):
    """apps/v1.ReplicaSetSpec and apps/v1.StatefulSetSpec, as far as they select pods."""

    selector: Selector | None = None


class SelectingShape(Struct):
    """apps/v1.ReplicaSet and apps/v1.StatefulSet."""

    metadata: Meta
    spec: SelectingSpec | None = None


class NamespaceShape(Struct):
    """v1.Namespace."""

    metadata: Meta


class PriorityClassShape(Struct):
    """scheduling.k8s.io/v1.PriorityClass."""

    metadata: Meta
    value: int = 0
    globalDefault: bool | None = None  # noqa: N815
    preemptionPolicy: str | None = None  # noqa: N815
