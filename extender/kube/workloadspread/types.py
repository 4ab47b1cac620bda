"""Types of apps.kruise.io and of related kinds with the fields that are read.

WorkloadSpreads are v1beta1; older ones are converted before. Below are conversions of fields that
several of these objects have: owners, node selector terms, tolerations.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from msgspec import Struct, field

from extender.kube.decoders import replicasets
from extender.kube.decoders.core_v1_types import (
    Int32,
    LabelSelectorV1,
    NodeSelectorTermV1,
    OwnerReferenceV1,
    SelectorRequirementV1,
    TolerationV1,
)
from policies.kubernetes.selectors import Toleration
from policies.workloadspread import model
from policies.workloadspread.object_references import WorkloadReference

PodTimes = dict[str, datetime]


class WorkloadSpreadMetaV1(replicasets.ReplicaMetaV1):
    resourceVersion: str | None = None
    generation: int | None = None


class TargetReferenceV1Beta1(Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""
    name: str = ""


class TargetFilterV1Beta1(Struct, rename="camel"):
    selector: LabelSelectorV1 | None = None
    replicas_path_list: list[str] | None = None


class PreferredSchedulingTermV1(Struct):
    weight: Int32 = 0
    preference: NodeSelectorTermV1 = field(default_factory=NodeSelectorTermV1)


class SubsetTolerationV1(TolerationV1, rename="camel"):
    """v1.Toleration."""

    toleration_seconds: int | None = None


class SubsetV1Beta1(Struct, rename="camel"):
    name: str = ""
    required_node_selector: NodeSelectorTermV1 | None = None
    preferred_node_selector: list[PreferredSchedulingTermV1] | None = None
    tolerations: list[SubsetTolerationV1] | None = None
    max_replicas: Int32 | str | None = None
    patch: object = None


class AdaptiveStrategyV1Beta1(Struct, rename="camel"):
    """AdaptiveWorkloadSpreadStrategy."""

    disable_simulation_schedule: bool | None = None
    reschedule_critical_seconds: Int32 | None = None


class ScheduleStrategyV1Beta1(Struct):
    type: str | None = None
    adaptive: AdaptiveStrategyV1Beta1 | None = None


class WorkloadSpreadSpecV1Beta1(Struct, rename="camel"):
    target_ref: TargetReferenceV1Beta1 | None = None
    target_filter: TargetFilterV1Beta1 | None = None
    subsets: list[SubsetV1Beta1] | None = None
    schedule_strategy: ScheduleStrategyV1Beta1 | None = None


class SubsetConditionV1Beta1(replicasets.ReplicaPodConditionV1, rename="camel"):
    """metav1.Condition."""

    observed_generation: int | None = None
    message: str | None = None


class SubsetStatusV1Beta1(Struct, rename="camel"):
    name: str = ""
    replicas: Int32 = 0
    conditions: list[SubsetConditionV1Beta1] | None = None
    missing_replicas: Int32 = 0
    creating_pods: PodTimes | None = None
    deleting_pods: PodTimes | None = None


class WorkloadSpreadStatusV1Beta1(Struct, rename="camel"):
    observed_generation: int | None = None
    subset_statuses: list[SubsetStatusV1Beta1] | None = None
    versioned_subset_statuses: dict[str, list[SubsetStatusV1Beta1] | None] | None = None


class WorkloadSpreadV1Beta1(Struct):
    metadata: WorkloadSpreadMetaV1
    spec: WorkloadSpreadSpecV1Beta1 | None = None
    status: WorkloadSpreadStatusV1Beta1 | None = None


class SpreadNodeSelectorV1(Struct, rename="camel"):
    """v1.NodeSelector."""

    node_selector_terms: list[NodeSelectorTermV1] | None = None


class SpreadNodeAffinityV1(
    Struct, rename={"required": "requiredDuringSchedulingIgnoredDuringExecution"}
):
    """v1.NodeAffinity."""

    required: SpreadNodeSelectorV1 | None = None


class SpreadAffinityV1(Struct, rename="camel"):
    """v1.Affinity."""

    node_affinity: SpreadNodeAffinityV1 | None = None


class SpreadPodSpecV1(replicasets.ReplicaPodSpecV1):
    """v1.PodSpec."""

    affinity: SpreadAffinityV1 | None = None
    tolerations: list[TolerationV1] | None = None


class SpreadPodV1(Struct):
    """v1.Pod."""

    metadata: WorkloadSpreadMetaV1
    spec: SpreadPodSpecV1 | None = None
    status: replicasets.ReplicaPodStatusV1 | None = None


class TargetWorkloadSpec(Struct):
    """The spec of a kind that every WorkloadSpread may target."""

    replicas: Int32 | None = None
    parallelism: Int32 | None = None
    selector: LabelSelectorV1 | None = None
    template: object = None


class TargetWorkloadStatus(Struct, rename="camel"):
    """The status of a CloneSet, and the fields that other kinds share with it."""

    observed_generation: int | None = None
    update_revision: str | None = None
    current_revision: str | None = None


class TargetWorkload(Struct):
    """An object of a kind that every WorkloadSpread may target."""

    metadata: WorkloadSpreadMetaV1
    spec: TargetWorkloadSpec | None = None
    status: TargetWorkloadStatus | None = None


class ObjectOfAnyKind(Struct):
    """An object of any kind."""

    metadata: WorkloadSpreadMetaV1


class ConfigMapV1(Struct):
    metadata: WorkloadSpreadMetaV1
    data: dict[str, str] | None = None


class ScalePaths(Struct, rename="camel"):
    """CustomResourceSubresourceScale."""

    spec_replicas_path: str = ""
    label_selector_path: str | None = None


class CrdSubresources(Struct):
    """CustomResourceSubresources."""

    scale: ScalePaths | None = None


class CrdVersion(Struct):
    """CustomResourceDefinitionVersion."""

    name: str = ""
    subresources: CrdSubresources | None = None


class CrdNames(Struct):
    """CustomResourceDefinitionNames."""

    kind: str = ""


class CrdSpec(Struct):
    """CustomResourceDefinitionSpec."""

    group: str = ""
    names: CrdNames = field(default_factory=CrdNames)
    versions: list[CrdVersion] | None = None


class CustomResourceDefinitionV1(Struct):
    metadata: WorkloadSpreadMetaV1
    spec: CrdSpec | None = None


def uid_or_placeholder(uid: str | None, kind: str, name: str) -> str:
    """Return an object's UID; kind and name replace it for an object from a file."""
    return uid or f"{kind}/{name}"


def owner_of(shape: OwnerReferenceV1) -> WorkloadReference:
    """Convert an owner reference."""
    uid = uid_or_placeholder(shape.uid, shape.kind, shape.name)
    return WorkloadReference(shape.apiVersion, shape.kind, shape.name, uid)


def controller_of(owners: Iterable[OwnerReferenceV1] | None) -> WorkloadReference | None:
    """Return the controller of an object, or None."""
    return next((owner_of(each) for each in owners or () if each.controller), None)


def expression_of(shape: SelectorRequirementV1) -> model.Expression:
    """Convert a selector expression without validation."""
    return model.Expression(shape.key, shape.operator, tuple(shape.values or ()))


def term_of(shape: NodeSelectorTermV1) -> model.NodeTerm:
    """Convert a node selector term without validation."""
    return model.NodeTerm(
        expressions=tuple(map(expression_of, shape.matchExpressions or ())),
        fields=tuple(map(expression_of, shape.matchFields or ())),
    )


def toleration_of(shape: TolerationV1) -> Toleration:
    """Convert a toleration."""
    return Toleration(shape.key or "", shape.operator or "", shape.value or "", shape.effect or "")


def without_empty(value: object) -> object:
    """Return JSON without null, "", [] and {}, which Go's decoder does not distinguish."""
    if isinstance(value, dict):
        below = {key: without_empty(each) for key, each in value.items()}
        return {key: each for key, each in below.items() if not _is_empty(each)}
    if isinstance(value, list):
        return [without_empty(each) for each in value]
    return value


def _is_empty(value: object) -> bool:
    return value is None or value in ("", {}, [])
