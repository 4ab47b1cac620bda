"""Objects of Dynamic Resource Allocation, in every version of their API."""

from __future__ import annotations

from typing import Any

import pytest

from extender.kube.decoders import devices
from extender.kube.decoders.typed_decoder import ObjectError
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
from policies.kubernetes.quantity import NANOS
from policies.kubernetes.selectors import NodeSelector, NodeSelectorTerm, Requirement
from policies.kubernetes.storage import ResourceClaim
from tests.builders import Document, encoded, manifest

HERE = {"nodeSelectorTerms": [
    {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}
]}  # fmt: skip
ON_N = NodeSelector((NodeSelectorTerm(fields=(Requirement("metadata.name", "In", ("n",)),)),))
POOL = {"name": "n", "generation": 3, "resourceSliceCount": 2}


def meta(**fields: Any) -> Document:
    return {"metadata": {"name": "x", **fields}}


def published(*listed: Document, **spec: Any) -> Document:
    every = {"driver": "d", "pool": POOL, "nodeName": "n", "devices": [*listed], **spec}
    return {**meta(), "spec": every}


FIELDS: Document = {
    "attributes": {
        "index": {"int": 1},
        "ok": {"bool": False},
        "model": {"string": "a"},
        "version": {"version": "1.2.3"},
        "lanes": {"ints": [1]},
    },
    "capacity": {"mem": {"value": "1"}},
    "taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}],
    "consumesCounters": [{"counterSet": "s", "counters": {"c": {"value": "2"}}}],
}
DEVICE = Device(
    "a",
    attributes={
        "index": Attribute(AttributeType.INT, 1),
        "ok": Attribute(AttributeType.BOOL, value=False),
        "model": Attribute(AttributeType.STRING, "a"),
        "version": Attribute(AttributeType.VERSION, "1.2.3"),
        "lanes": Attribute(AttributeType.UNSUPPORTED, ""),
    },
    capacity={"mem": Capacity(NANOS)},
    taints=(DeviceTaint("k", "v", "NoSchedule"),),
    consumes=(Counters("s", (("c", 2 * NANOS),)),),
)


def slice_of(*listed: Device, **fields: Any) -> ResourceSlice:
    known = {"nodes": DeviceNodes("n"), "devices": listed, **fields}
    return ResourceSlice("x", PoolId("d", "n"), 3, 2, **known)


SLICES: list[tuple[Document, ResourceSlice]] = [
    (published({"name": "a", **FIELDS}), slice_of(DEVICE)),
    (published({"name": "a", "basic": FIELDS}), slice_of(DEVICE)),
    (published(nodeName=None, allNodes=True), slice_of(nodes=DeviceNodes(every=True))),
    (published(nodeName=None, nodeSelector=HERE), slice_of(nodes=DeviceNodes(selector=ON_N))),
    (
        published({"name": "a", "nodeName": "m"}, nodeName=None, perDeviceNodeSelection=True),
        slice_of(Device("a", nodes=DeviceNodes("m")), nodes=None),
    ),
    (
        published(sharedCounters=[{"name": "s", "counters": {"c": {"value": "1"}}}], devices=None),
        slice_of(counters=(Counters("s", (("c", NANOS),)),)),
    ),
    (
        published({"name": "a", "allowMultipleAllocations": True, "bindingConditions": ["c"]}),
        slice_of(Device("a", shared=True, binds=True)),
    ),
    (
        published({"name": "a", "nodeAllocatableResources": {"cpu": {}}}),
        slice_of(Device("a", unsupported="nodeAllocatableResources")),
    ),
    (
        published({"name": "a", "consumesCounters": [{"compatibilityGroups": ["g"]}]}),
        slice_of(Device("a", consumes=(Counters(""),), unsupported="compatibilityGroups")),
    ),
    (
        published({"name": "a", "capacity": {"mem": {"value": "4", "requestPolicy": {
            "default": "1", "validRange": {"min": "1", "max": "3", "step": "1"},
        }}}}),
        slice_of(Device("a", capacity={"mem": Capacity(4 * NANOS, RequestPolicy(
            NANOS, (), NANOS, 3 * NANOS, NANOS
        ))})),
    ),
]  # fmt: skip


@pytest.mark.parametrize(("document", "expected"), SLICES)
def test_slices(document: Document, expected: ResourceSlice) -> None:
    assert devices.decode_resource_slice(encoded(document)) == expected


def test_classes() -> None:
    spec = {"selectors": [{"cel": {"expression": "true"}}, {}], "extendedResourceName": "a/b"}
    document = {**meta(creationTimestamp="1970-01-01T00:00:01Z"), "spec": spec}
    found = devices.decode_device_class(encoded(document))
    assert found == DeviceClass("x", ("true", ""), "a/b", 10**9)
    assert devices.decode_device_class(encoded(meta())) == DeviceClass("x")


def test_taint_rules() -> None:
    taint = {"key": "k", "effect": "NoExecute"}
    document = {**meta(), "spec": {"taint": taint, "deviceSelector": {"pool": "p"}}}
    expected = DeviceTaintRule("x", DeviceTaint("k", "", "NoExecute"), pool="p")
    assert devices.decode_device_taint_rule(encoded(document)) == expected


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({}, "spec.taint: required"),
        (
            {"taint": {}, "deviceSelector": {"selectors": [{}]}},
            "spec.deviceSelector: selectors and deviceClassName are not read",
        ),
    ],
)
def test_a_taint_rule_that_cannot_be_evaluated_is_unreadable(spec: Document, problem: str) -> None:
    with pytest.raises(ObjectError) as caught:
        devices.decode_device_taint_rule(encoded({**meta(), "spec": spec}))
    assert str(caught.value) == f"DeviceTaintRule x: {problem}"


EXACT = {
    "deviceClassName": "gpu",
    "selectors": [{"cel": {"expression": "true"}}],
    "count": 2,
    "adminAccess": True,
    "tolerations": [{"operator": "Exists"}],
    "capacity": {"requests": {"mem": "1"}},
}
REQUEST = DeviceRequest(
    "r",
    "gpu",
    selectors=("true",),
    count=2,
    admin=True,
    tolerations=(DeviceToleration(operator="Exists"),),
    capacity=(("mem", NANOS),),
)
REQUESTS: list[tuple[Document, DeviceRequest]] = [
    ({"name": "r", "exactly": EXACT}, REQUEST),
    ({"name": "r", **EXACT}, REQUEST),
    ({"name": "r", "exactly": {"deviceClassName": "gpu"}}, DeviceRequest("r", "gpu")),
    (
        {"name": "r", "exactly": {"deviceClassName": "gpu", "allocationMode": "All"}},
        DeviceRequest("r", "gpu", count=None),
    ),
    (
        {"name": "r", "firstAvailable": [{"name": "a", "deviceClassName": "gpu"}]},
        DeviceRequest("r", first_available=(DeviceRequest("a", "gpu"),)),
    ),
    (
        {"name": "r", "exactly": {"deviceClassName": "gpu", "derivedAttributes": [{}]}},
        DeviceRequest("r", "gpu", unsupported="derivedAttributes"),
    ),
    (
        {"name": "r", "exactly": {"deviceClassName": "gpu", "allocationMode": "Most"}},
        DeviceRequest("r", "gpu", unsupported="allocationMode"),
    ),
]


@pytest.mark.parametrize(("document", "expected"), REQUESTS)
def test_requests(document: Document, expected: DeviceRequest) -> None:
    spec = {"devices": {"requests": [document]}}
    found = devices.decode_resource_claim(encoded({**meta(), "spec": spec}))
    assert found.requests == (expected,)


def test_constraints() -> None:
    listed = [{"matchAttribute": "d/a", "requests": ["r"]}, {"distinctAttribute": "d/b"}]
    document = {**meta(), "spec": {"devices": {"constraints": listed}}}
    assert devices.decode_resource_claim(encoded(document)).constraints == (
        DeviceConstraint("d/a", frozenset({"r"})),
        DeviceConstraint("d/b", distinct=True),
    )


CLAIMS: list[tuple[Document, ResourceClaim]] = [
    (meta(), ResourceClaim("default", "x")),
    ({**meta(), "status": {"allocation": None}}, ResourceClaim("default", "x")),
    (
        {
            **meta(deletionTimestamp="2024-01-01T00:00:00Z"),
            "status": {"allocation": {}},
        },
        ResourceClaim("default", "x", deleting=True, allocated=True),
    ),
    (
        {
            **meta(
                namespace="ns",
                ownerReferences=[{"uid": "pod", "controller": True}],
                annotations={"resource.kubernetes.io/extended-resource-claim": "true"},
            ),
            "status": {
                "allocation": {
                    "nodeSelector": HERE,
                    "devices": {"results": [
                        {"driver": "d", "pool": "n", "device": "a", "adminAccess": True},
                        {
                            "driver": "d",
                            "pool": "n",
                            "device": "b",
                            "shareID": "s",
                            "consumedCapacity": {"mem": "1"},
                            "bindingConditions": ["Ready"],
                        },
                    ]},
                },
                "reservedFor": [{"resource": "pods", "name": "p", "uid": "pod"}],
            },
        },
        ResourceClaim(
            "ns",
            "x",
            owner="pod",
            allocated=True,
            nodes=ON_N,
            conditional=True,
            reserved_for=frozenset({"pod"}),
            results=(
                AllocatedDevice(PoolId("d", "n"), "a", admin=True),
                AllocatedDevice(PoolId("d", "n"), "b", shared=True, capacity=(("mem", NANOS),)),
            ),
            extended=True,
        ),
    ),
]  # fmt: skip


USERS = {"pods": False, "podgroups": True}


@pytest.mark.parametrize(("resource", "is_another"), USERS.items())
def test_a_claim_may_have_other_users_than_pods(resource: str, *, is_another: bool) -> None:
    user = {"resource": resource, "name": "x", "uid": "x"}
    document = {**manifest("ResourceClaim", "x"), "status": {"reservedFor": [user]}}
    found = devices.decode_resource_claim(encoded(document))
    assert found.used_by_others is is_another


@pytest.mark.parametrize(("document", "expected"), CLAIMS)
def test_claims(document: Document, expected: ResourceClaim) -> None:
    assert devices.decode_resource_claim(encoded(document)) == expected


def test_an_invalid_amount_is_reported_with_the_object() -> None:
    document = published({"name": "a", "capacity": {"mem": {"value": "much"}}})
    with pytest.raises(ObjectError, match="'much' is not a quantity"):
        devices.decode_resource_slice(encoded(document))
