"""Typed values: granular and atomic values by type, and the field set of an applied configuration.

A value is a leaf, or a granular object or list, whose items have their own owners. Its type
determines which; untyped objects are granular, untyped lists are atomic.

Go structs have fields by value: a Deployment always has a ``strategy``, even an empty one, so no
manager owns its existence. OpenAPI marks these fields with ``default: {}``. Likewise, a required
list is always there, if only as null.

A manager that applies ``spec.containers[name="web"].image`` owns the image and the container, not
the list and not the spec. Empty objects, nulls and the keys of maps are in the set themselves.

Source: sigs.k8s.io/structured-merge-diff/typed (helpers.go, tofieldset.go), fieldpath/set.go, the
structs of k8s.io/api.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from fakeapi.apiserver.kinds.structural_types import (
    UNTYPED,
    ListType,
    MapType,
    Scalar,
    Struct,
    Type,
    Untyped,
)
from fakeapi.apiserver.managedfields.field_set import (
    EMPTY,
    LEAF,
    FieldSet,
    as_member,
    field_element,
    item_element,
)

GranularObject = Struct | MapType | Untyped

BY_VALUE: Final[frozenset[str]] = frozenset(
    (
        "metadata",
        "spec",
        "status",
        "template",
        "ContainerStatus.lastState",
        "ContainerStatus.state",
        "Container.resources",
        "EphemeralContainer.resources",
        "Event.involvedObject",
        "Event.source",
        "Event.deprecatedSource",
        "NodeDaemonEndpoints.kubeletEndpoint",
        "NodeStatus.daemonEndpoints",
        "NodeStatus.nodeInfo",
        "PersistentVolumeClaimSpec.resources",
        "PreferredSchedulingTerm.preference",
        "WeightedPodAffinityTerm.podAffinityTerm",
        "ServiceStatus.loadBalancer",
        "IngressStatus.loadBalancer",
        "MutatingWebhook.clientConfig",
        "ValidatingWebhook.clientConfig",
        "CustomResourceDefinitionSpec.names",
        "CustomResourceDefinitionStatus.acceptedNames",
        "DaemonSetSpec.updateStrategy",
        "StatefulSetSpec.updateStrategy",
        "DeploymentSpec.strategy",
        "CronJobSpec.jobTemplate",
        "HorizontalPodAutoscalerSpec.scaleTargetRef",
        "ClusterRoleBinding.roleRef",
        "RoleBinding.roleRef",
        "FlowSchemaSpec.priorityLevelConfiguration",
        "LimitedPriorityLevelConfiguration.limitResponse",
        "Event.regarding",
        "Endpoint.conditions",
        "Binding.target",
        "StorageVersionMigrationSpec.resource",
        "HTTPIngressPath.backend",
        "IngressServiceBackend.port",
        "NetworkPolicySpec.podSelector",
        "VolumeAttachmentSpec.source",
        "ExternalMetricSource.metric",
        "ExternalMetricSource.target",
        "ExternalMetricStatus.current",
        "ExternalMetricStatus.metric",
        "ObjectMetricSource.describedObject",
        "ObjectMetricSource.metric",
        "ObjectMetricSource.target",
        "ObjectMetricStatus.current",
        "ObjectMetricStatus.describedObject",
        "ObjectMetricStatus.metric",
        "PodsMetricSource.metric",
        "PodsMetricSource.target",
        "PodsMetricStatus.current",
        "PodsMetricStatus.metric",
        "ResourceMetricSource.target",
        "ResourceMetricStatus.current",
        "ContainerResourceMetricSource.target",
        "ContainerResourceMetricStatus.current",
        "ResourceClaimSpec.devices",
        "AllocationResult.devices",
        "ResourceSliceSpec.pool",
        "DeviceTaintRuleSpec.taint",
    )
)
"""Fields by value, as ``Struct.field``, or as ``field`` if that holds for every struct."""

POINTERS: Final[frozenset[str]] = frozenset(
    ("ReplicationControllerSpec.template", "CustomResourceSubresources.status")
)
"""Exceptions: fields of these names that are pointers."""

NULLS: Final[frozenset[str]] = frozenset(("ClusterRole.rules", "Role.rules"))
"""Optional fields that are null if they are not set, in addition to the required ones."""


def granular_object_type(shape: Type, value: Any) -> GranularObject | None:
    """Return the type of a granular object; None for an atomic value or another type."""
    if not isinstance(value, dict) or isinstance(shape, Scalar | ListType):
        return None
    if isinstance(shape, Untyped) or not shape.atomic:
        return shape
    return None


def granular_list_type(shape: Type, value: Any) -> ListType | None:
    """Return the type of a granular list; None for an atomic list or another type."""
    if isinstance(shape, ListType) and isinstance(value, list) and shape.kind != "atomic":
        return shape
    return None


ZEROS: Final[frozenset[str]] = frozenset(
    ("Event.reportingComponent", "Event.reportingInstance", "PriorityClass.value")
)
"""Optional scalars that are serialized even if they are empty, in addition to required ones."""


@dataclass(frozen=True, slots=True)
class ImplicitFields:
    """Fields that a Go struct has even if they are not set: structs by value, nulls, zero values.

    ``times`` are the timestamps of a condition, which are null if they are not set.
    """

    by_value: tuple[str, ...] = ()
    nulls: tuple[str, ...] = ()
    zeros: frozenset[str] = frozenset()
    times: tuple[str, ...] = ()


_NOTHING: Final = ImplicitFields()


@lru_cache(maxsize=4096)
def implicit_fields(shape: GranularObject) -> ImplicitFields:
    """Return the fields that a type has even if they are not set."""
    if not isinstance(shape, Struct) or not shape.go:
        return _NOTHING
    owner = shape.name.rpartition(".")[2]
    structs = [name for name, field in shape.fields.items() if isinstance(field.type, Struct)]
    by_value = [name for name in structs if _is_by_value(owner, name)]
    nulls = [
        name
        for name, field in shape.fields.items()
        if name not in by_value
        and not isinstance(field.type, Scalar)
        and (field.required or f"{owner}.{name}" in NULLS)
    ]
    zeros = [
        name for name, field in shape.fields.items() if field.required or f"{owner}.{name}" in ZEROS
    ]
    condition = owner.endswith("Condition")
    times = [name for name, field in shape.fields.items() if condition and is_time(field.type)]
    return ImplicitFields(tuple(by_value), tuple(nulls), frozenset((*nulls, *zeros)), tuple(times))


def is_time(shape: Type) -> bool:
    """Return whether a type is a timestamp."""
    return isinstance(shape, Scalar) and shape.format == "date-time"


def _is_by_value(owner: str, name: str) -> bool:
    full = f"{owner}.{name}"
    return full in BY_VALUE or (name in BY_VALUE and full not in POINTERS)


def field_type(shape: GranularObject, name: str) -> Type:
    """Return the type of a field of an object."""
    if isinstance(shape, Struct):
        field = shape.fields.get(name)
        return UNTYPED if field is None else field.type
    return shape.value if isinstance(shape, MapType) else UNTYPED


def to_field_set(shape: Type, document: Mapping[str, Any]) -> FieldSet:
    """Return the field set of a document."""
    return _node(shape, document) or EMPTY


def ensure_named_fields_are_members(shape: Type, fields: FieldSet) -> FieldSet:
    """Return the set with every struct field that has members below it as a member, too."""
    named: FieldSet = {}
    for element, node in fields.items():
        found = ensure_named_fields_are_members(_below(shape, element), node) if node else LEAF
        is_field = isinstance(shape, Struct) and element[2:] in shape.fields and element[0] == "f"
        named[element] = as_member(found) if is_field else found
    return named


def _below(shape: Type, element: str) -> Type:
    if isinstance(shape, ListType):
        return shape.element if element[0] == "k" else UNTYPED
    return UNTYPED if isinstance(shape, Scalar) else field_type(shape, element[2:])


def _node(shape: Type, value: Any) -> FieldSet | None:
    """Return the node of a value; None if the set has no field in it."""
    branch = granular_object_type(shape, value)
    if branch is not None:
        return _object(branch, value) or None
    items = granular_list_type(shape, value)
    if items is not None:
        return _list(items, value) or None
    return None if _is_null_object(shape, value) else LEAF


def _is_null_object(shape: Type, value: Any) -> bool:
    granular = isinstance(shape, Struct | MapType) and not shape.atomic
    return value is None and (granular or (isinstance(shape, ListType) and shape.kind != "atomic"))


def _object(branch: GranularObject, value: Mapping[str, Any]) -> FieldSet:
    node: FieldSet = {}
    for name, part in value.items():
        found = _node(field_type(branch, name), part)
        is_field = isinstance(branch, Struct) and name in branch.fields
        if part is None or part == {} or not is_field:
            found = as_member(found)
        if found is not None:
            node[field_element(name)] = found
    return node


def _list(items: ListType, values: list[Any]) -> FieldSet:
    elements = [item_element(items, value) for value in values]
    counts = Counter(elements)
    return {
        element: as_member(_node(items.element, value)) if counts[element] == 1 else LEAF
        for element, value in zip(elements, values, strict=True)
    }
