"""Objects of Dynamic Resource Allocation, decoded to what policies.kubernetes.devices reads.

Every version of resource.k8s.io is read, from v1beta1 on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from extender.kube.decoders import device_types as shapes
from extender.kube.decoders.core_v1_types import Quantity
from extender.kube.decoders.pod_specs import node_selector
from extender.kube.decoders.pods import epoch_ns
from extender.kube.decoders.storage import controller_uid
from extender.kube.decoders.typed_decoder import FieldError, amounts_of, object_decoder
from policies.kubernetes.devices import (
    AllocatedDevice,
    Attribute,
    AttributeType,
    Capacity,
    Counters,
    Device,
    DeviceClass,
    DeviceConstraint,
    DeviceNodes,
    DeviceRequest,
    DeviceTaint,
    DeviceTaintRule,
    DeviceToleration,
    PoolId,
    RequestPolicy,
    ResourceSlice,
)
from policies.kubernetes.storage import ResourceClaim

_EXTENDED = "resource.kubernetes.io/extended-resource-claim"
_DEVICES = "spec.devices"


def _slice(shape: shapes.ResourceSliceV1) -> ResourceSlice:
    spec = shape.spec or shapes.ResourceSliceSpecV1()
    pool = spec.pool or shapes.ResourcePoolV1()
    return ResourceSlice(
        name=shape.metadata.name,
        pool=PoolId(spec.driver, pool.name),
        generation=pool.generation,
        count=pool.resourceSliceCount,
        nodes=None if spec.perDeviceNodeSelection else _nodes("spec", spec),
        devices=tuple(_device(each) for each in spec.devices or ()),
        counters=tuple(_counters(each.name, each.counters) for each in spec.sharedCounters or ()),
    )


def _nodes(path: str, fields: shapes.NodeFieldsV1) -> DeviceNodes:
    selector = fields.nodeSelector
    return DeviceNodes(
        fields.nodeName or "",
        bool(fields.allNodes),
        None if selector is None else node_selector(f"{path}.nodeSelector", selector),
    )


def _device(shape: shapes.DeviceV1) -> Device:
    fields = shape.basic or shape
    return Device(
        name=shape.name,
        attributes={name: _attribute(it) for name, it in (fields.attributes or {}).items()},
        capacity={name: _capacity(it) for name, it in (fields.capacity or {}).items()},
        taints=tuple(_taint(each) for each in fields.taints or ()),
        consumes=tuple(
            _counters(each.counterSet, each.counters) for each in fields.consumesCounters or ()
        ),
        shared=bool(fields.allowMultipleAllocations),
        binds=bool(fields.bindingConditions),
        nodes=_nodes(_DEVICES, fields),
        unsupported=next(_unsupported_fields(fields), ""),
    )


def _unsupported_fields(fields: shapes.DeviceFieldsV1) -> Iterator[str]:
    if any(each.compatibilityGroups for each in fields.consumesCounters or ()):
        yield "compatibilityGroups"
    if fields.nodeAllocatableResources or fields.nodeAllocatableResourceMappings:
        yield "nodeAllocatableResources"


def _attribute(shape: shapes.DeviceAttributeV1) -> Attribute:
    values = (
        (AttributeType.INT, shape.int_),
        (AttributeType.BOOL, shape.bool_),
        (AttributeType.STRING, shape.string),
        (AttributeType.VERSION, shape.version),
    )
    found = (Attribute(type_, value) for type_, value in values if value is not None)
    return next(found, Attribute(AttributeType.UNSUPPORTED, ""))


def _capacity(shape: shapes.DeviceCapacityV1) -> Capacity:
    policy = shape.requestPolicy
    return Capacity(_nanos(shape.value), None if policy is None else _policy(policy))


def _policy(shape: shapes.CapacityRequestPolicyV1) -> RequestPolicy:
    span = shape.validRange or shapes.CapacityRequestPolicyRangeV1()
    return RequestPolicy(
        default=_optional_nanos(shape.default),
        values=tuple(_nanos(each) for each in shape.validValues or ()),
        minimum=_optional_nanos(span.min),
        maximum=_optional_nanos(span.max),
        step=_optional_nanos(span.step),
    )


def _optional_nanos(amount: Quantity | None) -> int | None:
    return None if amount is None else _nanos(amount)


def _nanos(amount: Quantity) -> int:
    return amounts_of(_DEVICES, {"amount": amount})["amount"]


def _counters(name: str, counters: Mapping[str, shapes.CounterV1] | None) -> Counters:
    amounts = ((each, _nanos(counter.value)) for each, counter in (counters or {}).items())
    return Counters(name, tuple(sorted(amounts)))


def _taint(shape: shapes.DeviceTaintV1) -> DeviceTaint:
    return DeviceTaint(shape.key, shape.value, shape.effect)


def _device_class(shape: shapes.DeviceClassV1) -> DeviceClass:
    spec, created = shape.spec or shapes.DeviceClassSpecV1(), shape.metadata.creationTimestamp
    return DeviceClass(
        shape.metadata.name,
        _expressions(spec.selectors),
        spec.extendedResourceName or "",
        0 if created is None else epoch_ns(created),
    )


def _expressions(selectors: Iterable[shapes.DeviceSelectorV1] | None) -> tuple[str, ...]:
    # An empty expression is not valid CEL, so a selector of an unknown type is unknown.
    return tuple("" if each.cel is None else each.cel.expression for each in selectors or ())


def _taint_rule(shape: shapes.DeviceTaintRuleV1) -> DeviceTaintRule:
    spec = shape.spec or shapes.DeviceTaintRuleSpecV1()
    chosen, taint = spec.deviceSelector or shapes.DeviceTaintSelectorV1(), spec.taint
    if taint is None:
        raise FieldError("spec.taint", "required")
    if chosen.selectors or chosen.deviceClassName:
        raise FieldError("spec.deviceSelector", "selectors and deviceClassName are not read")
    return DeviceTaintRule(
        shape.metadata.name, _taint(taint), chosen.driver, chosen.pool, chosen.device
    )


def _claim(shape: shapes.ResourceClaimV1) -> ResourceClaim:
    meta, status = shape.metadata, shape.status or shapes.ResourceClaimStatusV1()
    devices = (shape.spec or shapes.ResourceClaimSpecV1()).devices or shapes.DeviceClaimV1()
    allocation = status.allocation or shapes.AllocationResultV1()
    nodes, consumers = allocation.nodeSelector, status.reservedFor or ()
    results = (allocation.devices or shapes.DeviceAllocationResultV1()).results or ()
    return ResourceClaim(
        namespace=meta.namespace or "default",
        name=meta.name,
        owner=controller_uid(meta),
        deleting=meta.deletionTimestamp is not None,
        allocated=status.allocation is not None,
        nodes=None if nodes is None else node_selector("status.allocation.nodeSelector", nodes),
        conditional=any(result.bindingConditions for result in results),
        reserved_for=frozenset(consumer.uid for consumer in consumers),
        used_by_others=any(consumer.resource != "pods" for consumer in consumers),
        requests=tuple(_request(each) for each in devices.requests or ()),
        constraints=tuple(_constraint(each) for each in devices.constraints or ()),
        results=tuple(_result(each) for each in results),
        extended=(meta.annotations or {}).get(_EXTENDED) == "true",
    )


def _request(shape: shapes.DeviceRequestV1) -> DeviceRequest:
    if shape.firstAvailable:
        alternatives = (_exact_request(each.name, each) for each in shape.firstAvailable)
        return DeviceRequest(shape.name, first_available=tuple(alternatives))
    return _exact_request(shape.name, shape.exactly or shape)


def _exact_request(name: str, shape: shapes.ExactDeviceRequestV1) -> DeviceRequest:
    capacity = shape.capacity or shapes.CapacityRequirementsV1()
    mode = shape.allocationMode or "ExactCount"
    problems = {
        "derivedAttributes": bool(shape.derivedAttributes),
        "allocationMode": mode not in ("ExactCount", "All"),
    }
    return DeviceRequest(
        name=name,
        device_class=shape.deviceClassName,
        selectors=_expressions(shape.selectors),
        count=None if mode == "All" else 1 if shape.count is None else shape.count,
        admin=bool(shape.adminAccess),
        tolerations=tuple(
            DeviceToleration(
                each.key or "", each.operator or "Equal", each.value or "", each.effect or ""
            )
            for each in shape.tolerations or ()
        ),
        capacity=tuple(sorted(amounts_of(_DEVICES, {**(capacity.requests or {})}).items())),
        unsupported=next((field for field, present in problems.items() if present), ""),
    )


def _constraint(shape: shapes.DeviceConstraintV1) -> DeviceConstraint:
    attribute = shape.matchAttribute or shape.distinctAttribute
    if not attribute:
        raise FieldError("spec.devices.constraints", "only attributes are read")
    return DeviceConstraint(
        attribute, frozenset(shape.requests or ()), distinct=shape.matchAttribute is None
    )


def _result(shape: shapes.DeviceRequestAllocationResultV1) -> AllocatedDevice:
    capacity = amounts_of("status.allocation", {**(shape.consumedCapacity or {})})
    return AllocatedDevice(
        PoolId(shape.driver, shape.pool),
        shape.device,
        admin=bool(shape.adminAccess),
        shared=shape.shareID is not None,
        capacity=tuple(sorted(capacity.items())),
    )


decode_resource_slice = object_decoder("ResourceSlice", shapes.ResourceSliceV1, _slice)
decode_device_class = object_decoder("DeviceClass", shapes.DeviceClassV1, _device_class)
decode_device_taint_rule = object_decoder("DeviceTaintRule", shapes.DeviceTaintRuleV1, _taint_rule)
decode_resource_claim = object_decoder("ResourceClaim", shapes.ResourceClaimV1, _claim)
