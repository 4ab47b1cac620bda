"""Types of apps.kruise.io and of related kinds with the fields that are read.

WorkloadSpreads are v1beta1; older ones are converted before.
"""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct, field

from extender.kube import replicas
from extender.kube.shapes import Int32, Selector, SelectorTerm, TolerationShape

Moments = dict[str, datetime]


class Meta(replicas.Meta):
    """metadata."""

    resourceVersion: str | None = None  # noqa: N815 - the key as Kubernetes writes it
    generation: int | None = None


class TargetShape(Struct, rename="camel"):
    """TargetReference."""

    api_version: str = ""
    kind: str = ""
    name: str = ""


class FilterShape(Struct, rename="camel"):
    """TargetFilter."""

    selector: Selector | None = None
    replicas_path_list: list[str] | None = None


class PreferenceShape(Struct):
    """v1.PreferredSchedulingTerm."""

    weight: Int32 = 0
    preference: SelectorTerm = field(default_factory=SelectorTerm)


class BoundedToleration(TolerationShape, rename="camel"):
    """v1.Toleration."""

    toleration_seconds: int | None = None


class SubsetShape(Struct, rename="camel"):
    """WorkloadSpreadSubset."""

    name: str = ""
    required_node_selector: SelectorTerm | None = None
    preferred_node_selector: list[PreferenceShape] | None = None
    tolerations: list[BoundedToleration] | None = None
    max_replicas: Int32 | str | None = None
    patch: object = None


class AdaptiveShape(Struct, rename="camel"):
    """AdaptiveWorkloadSpreadStrategy."""

    disable_simulation_schedule: bool | None = None
    reschedule_critical_seconds: Int32 | None = None


class StrategyShape(Struct):
    """WorkloadSpreadScheduleStrategy."""

    type: str | None = None
    adaptive: AdaptiveShape | None = None


class SpreadSpec(Struct, rename="camel"):
    """WorkloadSpreadSpec."""

    target_ref: TargetShape | None = None
    target_filter: FilterShape | None = None
    subsets: list[SubsetShape] | None = None
    schedule_strategy: StrategyShape | None = None


class ConditionShape(replicas.Condition, rename="camel"):
    """metav1.Condition."""

    observed_generation: int | None = None
    message: str | None = None


class SubsetStatusShape(Struct, rename="camel"):
    """WorkloadSpreadSubsetStatus."""

    name: str = ""
    replicas: Int32 = 0
    conditions: list[ConditionShape] | None = None
    missing_replicas: Int32 = 0
    creating_pods: Moments | None = None
    deleting_pods: Moments | None = None


class SpreadStatus(Struct, rename="camel"):
    """WorkloadSpreadStatus."""

    observed_generation: int | None = None
    subset_statuses: list[SubsetStatusShape] | None = None
    versioned_subset_statuses: dict[str, list[SubsetStatusShape] | None] | None = None


class SpreadShape(Struct):
    """WorkloadSpread."""

    metadata: Meta
    spec: SpreadSpec | None = None
    status: SpreadStatus | None = None


class RequiredTerms(Struct, rename="camel"):
    """v1.NodeSelector."""

    node_selector_terms: list[SelectorTerm] | None = None


class NodeAffinity(Struct, rename={"required": "requiredDuringSchedulingIgnoredDuringExecution"}):
    """v1.NodeAffinity."""

    required: RequiredTerms | None = None


class Affinity(Struct, rename="camel"):
    """v1.Affinity."""

    node_affinity: NodeAffinity | None = None


class PodSpec(replicas.Spec):
    """v1.PodSpec."""

    affinity: Affinity | None = None
    tolerations: list[TolerationShape] | None = None


class PodShape(Struct):
    """v1.Pod."""

    metadata: Meta
    spec: PodSpec | None = None
    status: replicas.Status | None = None


class WorkloadSpec(Struct):
    """The spec of a kind that every WorkloadSpread may target."""

    replicas: Int32 | None = None
    parallelism: Int32 | None = None
    selector: Selector | None = None
    template: object = None


class WorkloadStatus(Struct, rename="camel"):
    """The status of a CloneSet, and the fields that other kinds share with it."""

    observed_generation: int | None = None
    update_revision: str | None = None
    current_revision: str | None = None


class WorkloadShape(Struct):
    """An object of a kind that every WorkloadSpread may target."""

    metadata: Meta
    spec: WorkloadSpec | None = None
    status: WorkloadStatus | None = None


class AnyShape(Struct):
    """An object of any kind."""

    metadata: Meta


class ConfigMapShape(Struct):
    """v1.ConfigMap."""

    metadata: Meta
    data: dict[str, str] | None = None


class ScalePaths(Struct, rename="camel"):
    """CustomResourceSubresourceScale."""

    spec_replicas_path: str = ""
    label_selector_path: str | None = None


class Subresources(Struct):
    """CustomResourceSubresources."""

    scale: ScalePaths | None = None


class DefinedVersion(Struct):
    """CustomResourceDefinitionVersion."""

    name: str = ""
    subresources: Subresources | None = None


class DefinedNames(Struct):
    """CustomResourceDefinitionNames."""

    kind: str = ""


class DefinitionSpec(Struct):
    """CustomResourceDefinitionSpec."""

    group: str = ""
    names: DefinedNames = field(default_factory=DefinedNames)
    versions: list[DefinedVersion] | None = None


class DefinitionShape(Struct):
    """CustomResourceDefinition."""

    metadata: Meta
    spec: DefinitionSpec | None = None
