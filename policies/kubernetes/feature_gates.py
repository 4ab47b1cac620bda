"""The feature gates that change a decision, as data: their stages, and their defaults by release.

A gate that changes no filter result, victim or message is not in the table. Read from
pkg/features/kube_features.go of v1.30.12 to v1.37.0. The stages of 1.38 follow merged pull requests
and enhancement proposals.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import Final, NamedTuple

from policies.kubernetes.input_error import similar_name


class FeatureGate(StrEnum):
    """A feature gate, by its name in the flag ``--feature-gates``."""

    COMPOSITE_POD_GROUP = "CompositePodGroup"
    DRA_ADMIN_ACCESS = "DRAAdminAccess"
    DRA_CONSUMABLE_CAPACITY = "DRAConsumableCapacity"
    DRA_DERIVED_ATTRIBUTES = "DRADerivedAttributes"
    DRA_DEVICE_BINDING_CONDITIONS = "DRADeviceBindingConditions"
    DRA_DEVICE_COMPATIBILITY_GROUPS = "DRADeviceCompatibilityGroups"
    DRA_DEVICE_TAINT_RULES = "DRADeviceTaintRules"
    DRA_DEVICE_TAINTS = "DRADeviceTaints"
    DRA_EXTENDED_RESOURCE = "DRAExtendedResource"
    DRA_FRACTIONAL_CAPACITY_RANGE = "DRAFractionalCapacityRange"
    DRA_LIST_TYPE_ATTRIBUTES = "DRAListTypeAttributes"
    DRA_NODE_ALLOCATABLE_RESOURCES = "DRANodeAllocatableResources"
    DRA_OPTIONAL_NODE_OPERATIONS = "DRAOptionalNodeOperations"
    DRA_PARTITIONABLE_DEVICES = "DRAPartitionableDevices"
    DRA_PRIORITIZED_LIST = "DRAPrioritizedList"
    DRA_WORKLOAD_RESOURCE_CLAIMS = "DRAWorkloadResourceClaims"
    DYNAMIC_RESOURCE_ALLOCATION = "DynamicResourceAllocation"
    GANG_SCHEDULING = "GangScheduling"
    GENERIC_WORKLOAD = "GenericWorkload"
    IN_PLACE_POD_LEVEL_RESOURCES_VERTICAL_SCALING = "InPlacePodLevelResourcesVerticalScaling"
    IN_PLACE_POD_VERTICAL_SCALING = "InPlacePodVerticalScaling"
    IN_PLACE_POD_VERTICAL_SCALING_SCHEDULER_PREEMPTION = (
        "InPlacePodVerticalScalingSchedulerPreemption"
    )
    NODE_DECLARED_FEATURES = "NodeDeclaredFeatures"
    NOMINATED_NODE_NAME_FOR_EXPECTATION = "NominatedNodeNameForExpectation"
    POD_GROUP_PREEMPTION_POLICY = "PodGroupPreemptionPolicy"
    POD_LEVEL_RESOURCES = "PodLevelResources"
    TAINT_TOLERATION_COMPARISON_OPERATORS = "TaintTolerationComparisonOperators"
    TOPOLOGY_AWARE_WORKLOAD_SCHEDULING = "TopologyAwareWorkloadScheduling"
    VOLUME_ATTRIBUTES_CLASS = "VolumeAttributesClass"
    VOLUME_LIMIT_SCALING = "VolumeLimitScaling"
    WORKLOAD_AWARE_PREEMPTION = "WorkloadAwarePreemption"


class Stability(Enum):
    """The stability level of a feature; a GA gate cannot be set."""

    ALPHA = "alpha"
    BETA = "beta"
    GA = "GA"


class Stage(NamedTuple):
    """A stage of a gate that begins in the minor release ``since``."""

    since: int
    stability: Stability
    enabled: bool


def _alpha(since: int) -> Stage:
    return Stage(since, Stability.ALPHA, enabled=False)


def _beta(since: int) -> Stage:
    return Stage(since, Stability.BETA, enabled=True)


def _beta_off(since: int) -> Stage:
    return Stage(since, Stability.BETA, enabled=False)


def _ga(since: int) -> Stage:
    return Stage(since, Stability.GA, enabled=True)


_G = FeatureGate
STAGES: Final[Mapping[FeatureGate, tuple[Stage, ...]]] = {
    _G.COMPOSITE_POD_GROUP: (_alpha(37), _beta_off(38)),
    _G.DRA_ADMIN_ACCESS: (_alpha(32), _beta(34), _ga(36)),
    _G.DRA_CONSUMABLE_CAPACITY: (_alpha(34), _beta(36)),
    _G.DRA_DERIVED_ATTRIBUTES: (_alpha(37),),
    _G.DRA_DEVICE_BINDING_CONDITIONS: (_alpha(34), _beta(36)),
    _G.DRA_DEVICE_COMPATIBILITY_GROUPS: (_alpha(37),),
    _G.DRA_DEVICE_TAINT_RULES: (_alpha(35), _beta_off(36), _ga(37)),
    _G.DRA_DEVICE_TAINTS: (_alpha(33), _beta(36), _ga(37)),
    _G.DRA_EXTENDED_RESOURCE: (_alpha(34), _beta(36), _ga(37)),
    _G.DRA_FRACTIONAL_CAPACITY_RANGE: (_beta(37),),
    _G.DRA_LIST_TYPE_ATTRIBUTES: (_alpha(36),),
    _G.DRA_NODE_ALLOCATABLE_RESOURCES: (_alpha(36),),
    _G.DRA_OPTIONAL_NODE_OPERATIONS: (_alpha(37),),
    _G.DRA_PARTITIONABLE_DEVICES: (_alpha(33), _beta(36)),
    _G.DRA_PRIORITIZED_LIST: (_alpha(33), _beta(34), _ga(36)),
    _G.DRA_WORKLOAD_RESOURCE_CLAIMS: (_alpha(36), _beta_off(37)),
    _G.DYNAMIC_RESOURCE_ALLOCATION: (_alpha(26), _beta_off(32), _ga(34)),
    _G.GANG_SCHEDULING: (_alpha(35),),
    _G.GENERIC_WORKLOAD: (_alpha(35), _beta_off(37), _ga(38)),
    _G.IN_PLACE_POD_LEVEL_RESOURCES_VERTICAL_SCALING: (_alpha(35), _beta(36)),
    _G.IN_PLACE_POD_VERTICAL_SCALING: (_alpha(27), _beta(33), _ga(35)),
    _G.IN_PLACE_POD_VERTICAL_SCALING_SCHEDULER_PREEMPTION: (_alpha(37),),
    _G.NODE_DECLARED_FEATURES: (_alpha(35), _beta(36), _ga(37)),
    _G.NOMINATED_NODE_NAME_FOR_EXPECTATION: (_alpha(34), _beta(35)),
    _G.POD_GROUP_PREEMPTION_POLICY: (_alpha(37),),
    _G.POD_LEVEL_RESOURCES: (_alpha(32), _beta(34)),
    _G.TAINT_TOLERATION_COMPARISON_OPERATORS: (_alpha(35),),
    _G.TOPOLOGY_AWARE_WORKLOAD_SCHEDULING: (_alpha(36), _beta_off(38)),
    _G.VOLUME_ATTRIBUTES_CLASS: (_alpha(29), _beta_off(31), _ga(34)),
    _G.VOLUME_LIMIT_SCALING: (_alpha(35), _beta(37)),
    _G.WORKLOAD_AWARE_PREEMPTION: (_alpha(36),),
}

_LAST: Final[Mapping[FeatureGate, int]] = {
    _G.GANG_SCHEDULING: 36,
    _G.WORKLOAD_AWARE_PREEMPTION: 36,
}
"""The last minor release with a gate; GenericWorkload includes both of these since 1.37."""

_SHOWN_SINCE: Final[Mapping[FeatureGate, int]] = {
    _G.COMPOSITE_POD_GROUP: 37,
    _G.DYNAMIC_RESOURCE_ALLOCATION: 32,
    _G.GANG_SCHEDULING: 36,
    _G.GENERIC_WORKLOAD: 36,
    _G.WORKLOAD_AWARE_PREEMPTION: 36,
}
"""Gates that matter only for pods with groups or claims, and the first release that is read so.

The API server drops these fields, and does not serve the objects, unless its own gate is on.
"""

_ALL: Final = {"AllAlpha": Stability.ALPHA, "AllBeta": Stability.BETA}


@dataclass(frozen=True, slots=True)
class GateSettings:
    """The gates that are on, and one line for each setting that has no effect."""

    enabled: frozenset[FeatureGate]
    warnings: tuple[str, ...] = ()


def apply_settings(minor: int, settings: Mapping[str, bool]) -> GateSettings:
    """Return the gates of the release 1.``minor`` after ``settings``, by name as in the flag.

    ``AllAlpha`` and ``AllBeta`` set all gates of a stability that are not set by name. Source:
    k8s.io/component-base/featuregate/feature_gate.go.
    """
    stages = dict(_stages(minor))
    states = {gate: stage.enabled for gate, stage in stages.items()}
    for name, stability in _ALL.items():
        if name in settings:
            of_stability = (g for g, stage in stages.items() if stage.stability is stability)
            states |= dict.fromkeys(of_stability, settings[name])
    warnings: list[str] = []
    for name, enabled in settings.items():
        stage = stages.get(FeatureGate(name)) if name in STAGES else None
        if name in _ALL:
            continue
        if name not in STAGES:
            similar = similar_name(name, STAGES, cutoff=0.8)
            hint = f"; did you mean {similar}?" if similar else ""
            warnings.append(f"{name} changes no decision; it is ignored{hint}")
        elif stage is None:
            warnings.append(f"{name} does not exist in 1.{minor}; it is ignored")
        elif stage.stability is Stability.GA and not enabled:
            warnings.append(f"{name} is GA in 1.{minor} and cannot be disabled; it is ignored")
        else:
            states[FeatureGate(name)] = enabled
    return GateSettings(frozenset(g for g, on in states.items() if on), tuple(warnings))


def shown_gates(minor: int, settings: Mapping[str, bool]) -> frozenset[FeatureGate]:
    """Return the gates of 1.``minor`` that are off by default, not set, and shown by objects.

    To take them as on is safe: without these objects it changes no decision.
    """
    unset_all = {stability for name, stability in _ALL.items() if name not in settings}
    return frozenset(
        gate
        for gate, stage in _stages(minor)
        if minor >= _SHOWN_SINCE.get(gate, minor + 1)
        and not stage.enabled
        and stage.stability in unset_all
        and gate not in settings
    )


def _stages(minor: int) -> Iterator[tuple[FeatureGate, Stage]]:
    """Yield the gates that exist in a release with their stages."""
    for gate, stages in STAGES.items():
        begun = [stage for stage in stages if stage.since <= minor]
        if begun and minor <= _LAST.get(gate, minor):
            yield gate, begun[-1]
