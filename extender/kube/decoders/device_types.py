"""Types of resource.k8s.io with the fields that are read, for partial decoding.

They are those of v1 and v1beta2. In v1beta1 a device has its fields in ``basic``, and a request
those of ``exactly`` in itself.
"""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct

from extender.kube.decoders import core_v1_types
from extender.kube.decoders.core_v1_types import Quantity
from extender.kube.decoders.storage_types import StorageMetaV1

Amounts = dict[str, Quantity]


class DeviceMetaV1(StorageMetaV1):
    creationTimestamp: datetime | None = None


class DeviceAttributeV1(Struct, rename={"int_": "int", "bool_": "bool"}):
    """A value of one of the types; lists are not read."""

    int_: int | None = None
    bool_: bool | None = None
    string: str | None = None
    version: str | None = None


class CapacityRequestPolicyRangeV1(Struct):
    min: Quantity | None = None
    max: Quantity | None = None
    step: Quantity | None = None


class CapacityRequestPolicyV1(Struct):
    default: Quantity | None = None
    validValues: list[Quantity] | None = None
    validRange: CapacityRequestPolicyRangeV1 | None = None


class DeviceCapacityV1(Struct):
    value: Quantity = "0"
    requestPolicy: CapacityRequestPolicyV1 | None = None


class CounterV1(Struct):
    value: Quantity = "0"


class DeviceCounterConsumptionV1(Struct):
    counterSet: str = ""
    counters: dict[str, CounterV1] | None = None
    compatibilityGroups: object = None


class CounterSetV1(Struct):
    name: str = ""
    counters: dict[str, CounterV1] | None = None


class DeviceTaintV1(Struct):
    key: str = ""
    value: str = ""
    effect: str = ""


class NodeFieldsV1(Struct):
    """The fields with which a slice or a device names its nodes."""

    nodeName: str | None = None
    nodeSelector: core_v1_types.NodeSelectorV1 | None = None
    allNodes: bool | None = None


class DeviceFieldsV1(NodeFieldsV1):
    attributes: dict[str, DeviceAttributeV1] | None = None
    capacity: dict[str, DeviceCapacityV1] | None = None
    consumesCounters: list[DeviceCounterConsumptionV1] | None = None
    taints: list[DeviceTaintV1] | None = None
    bindingConditions: list[str] | None = None
    allowMultipleAllocations: bool | None = None
    nodeAllocatableResourceMappings: object = None
    nodeAllocatableResources: object = None


class DeviceV1(DeviceFieldsV1):
    name: str = ""
    basic: DeviceFieldsV1 | None = None


class ResourcePoolV1(Struct):
    name: str = ""
    generation: int = 0
    resourceSliceCount: int = 0


class ResourceSliceSpecV1(NodeFieldsV1):
    driver: str = ""
    pool: ResourcePoolV1 | None = None
    devices: list[DeviceV1] | None = None
    perDeviceNodeSelection: bool | None = None
    sharedCounters: list[CounterSetV1] | None = None


class ResourceSliceV1(Struct):
    metadata: DeviceMetaV1
    spec: ResourceSliceSpecV1 | None = None


class CelDeviceSelectorV1(Struct):
    expression: str = ""


class DeviceSelectorV1(Struct):
    cel: CelDeviceSelectorV1 | None = None


class DeviceClassSpecV1(Struct):
    selectors: list[DeviceSelectorV1] | None = None
    extendedResourceName: str | None = None


class DeviceClassV1(Struct):
    metadata: DeviceMetaV1
    spec: DeviceClassSpecV1 | None = None


class DeviceTaintSelectorV1(Struct):
    driver: str | None = None
    pool: str | None = None
    device: str | None = None
    deviceClassName: str | None = None
    selectors: object = None


class DeviceTaintRuleSpecV1(Struct):
    deviceSelector: DeviceTaintSelectorV1 | None = None
    taint: DeviceTaintV1 | None = None


class DeviceTaintRuleV1(Struct):
    metadata: DeviceMetaV1
    spec: DeviceTaintRuleSpecV1 | None = None


class DeviceTolerationV1(Struct):
    key: str | None = None
    operator: str | None = None
    value: str | None = None
    effect: str | None = None


class CapacityRequirementsV1(Struct):
    requests: Amounts | None = None


class ExactDeviceRequestV1(Struct):
    deviceClassName: str = ""
    selectors: list[DeviceSelectorV1] | None = None
    allocationMode: str | None = None
    count: int | None = None
    adminAccess: bool | None = None
    tolerations: list[DeviceTolerationV1] | None = None
    capacity: CapacityRequirementsV1 | None = None
    derivedAttributes: list[object] | None = None


class DeviceSubRequestV1(ExactDeviceRequestV1):
    name: str = ""


class DeviceRequestV1(DeviceSubRequestV1):
    exactly: ExactDeviceRequestV1 | None = None
    firstAvailable: list[DeviceSubRequestV1] | None = None


class DeviceConstraintV1(Struct):
    requests: list[str] | None = None
    matchAttribute: str | None = None
    distinctAttribute: str | None = None


class DeviceClaimV1(Struct):
    requests: list[DeviceRequestV1] | None = None
    constraints: list[DeviceConstraintV1] | None = None


class ResourceClaimSpecV1(Struct):
    devices: DeviceClaimV1 | None = None


class DeviceRequestAllocationResultV1(Struct):
    driver: str = ""
    pool: str = ""
    device: str = ""
    adminAccess: bool | None = None
    bindingConditions: list[str] | None = None
    shareID: str | None = None
    consumedCapacity: Amounts | None = None


class DeviceAllocationResultV1(Struct):
    results: list[DeviceRequestAllocationResultV1] | None = None


class AllocationResultV1(Struct):
    devices: DeviceAllocationResultV1 | None = None
    nodeSelector: core_v1_types.NodeSelectorV1 | None = None


class ResourceClaimConsumerV1(Struct):
    """resource.k8s.io/v1.ResourceClaimConsumerReference."""

    resource: str = "pods"
    uid: str = ""


class ResourceClaimStatusV1(Struct):
    allocation: AllocationResultV1 | None = None
    reservedFor: list[ResourceClaimConsumerV1] | None = None


class ResourceClaimV1(Struct):
    metadata: DeviceMetaV1
    spec: ResourceClaimSpecV1 | None = None
    status: ResourceClaimStatusV1 | None = None
