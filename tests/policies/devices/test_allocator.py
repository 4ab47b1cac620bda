"""The structured allocator on one node: which devices are found for which requests."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from policies import release
from policies.devices.allocator import Outcome, Verdict
from policies.devices.inventory import device_search
from policies.devices.planning import plan_claim
from policies.kubernetes.devices import (
    Attribute,
    AttributeType,
    Counters,
    DeviceConstraint,
    DeviceNodes,
    DeviceTaint,
    DeviceTaintRule,
    DeviceToleration,
    PoolId,
    RequestPolicy,
)
from policies.kubernetes.quantity import NANOS
from policies.kubernetes.selectors import NodeSelector, NodeSelectorTerm, Requirement
from policies.kubernetes.storage import ResourceClaim
from policies.testing.storage import StorageObject, build_storage
from tests.builders import node
from tests.builders.devices import GPU, gpu, gpu_claim, gpus, held_by, request, same, units

FITS, REFUSED, UNKNOWN, ERROR = Outcome.FITS, Outcome.REFUSED, Outcome.UNKNOWN, Outcome.ERROR
FOUR = gpus("node-1", *(gpu(f"gpu-{n}", numa=n // 2) for n in range(4)))


def outcome(
    *things: StorageObject, gates: dict[str, bool] | None = None, on: str = "node-1", **labels: str
) -> Outcome:
    """Return whether all claims of ``things`` that are not allocated can be allocated."""
    return verdict(*things, gates=gates, on=on, **labels).outcome


def verdict(
    *things: StorageObject, gates: dict[str, bool] | None = None, on: str = "node-1", **labels: str
) -> Verdict:
    storage = build_storage((GPU, *things))
    rules = release("1.37", gates)
    waiting = (each for each in storage.devices.values() if not each.allocated)
    planned = [
        plan_claim(each.requests, each.constraints, storage.device_classes, each.name)
        for each in waiting
    ]
    search = device_search(planned, storage, rules.gates)
    return search.verdict(node(on, labels=labels), {})


def wants(*requests: Any, **fields: Any) -> ResourceClaim:
    return gpu_claim("wanted", *requests, **fields)


def tainted(effect: str = "NoSchedule") -> Any:
    return {"taints": (DeviceTaint("broken", "yes", effect),)}


SHARED = {"shared": True}
STEPS = RequestPolicy(minimum=2 * NANOS, step=2 * NANOS)
SLICED = gpu("gpu-0", capacity={"mem": units(10, STEPS)}, others=SHARED)
PARTS = gpus(
    "node-1",
    gpu("small", consumes={"mem": 40}),
    gpu("large", consumes={"mem": 60}),
    name="parts",
    count=2,
)
COUNTERS = gpus("node-1", count=2, counters=(Counters("set", (("mem", 80 * NANOS),)),))
LARGE = request(selectors=('device.attributes["gpu.example.com"].size == "large"',))
SIZES = gpus("node-1", gpu("big", size="large"), gpu("little", size="small"))
SMALL = request("s", selectors=('device.attributes["gpu.example.com"].size == "small"',))
EITHER = request(first_available=(replace(LARGE, name="big"), replace(SMALL, name="little")))
TWO_OF_A_KIND = wants(request(count=2), constraints=(same("numa"),))
LIST = Attribute(AttributeType.UNSUPPORTED, 0)


def shares(*amounts: int) -> tuple[StorageObject, ...]:
    """Return a device of capacity 10, of which a claim has 4, and claims for ``amounts``."""
    held = held_by("a", "node-1", "gpu-0", shared=True, capacity=(("mem", 4 * NANOS),))
    asked = [request(f"r{n}", capacity=(("mem", n * NANOS),)) for n in amounts]
    return gpus("node-1", SLICED), held, wants(*asked)


CASES: dict[str, tuple[Outcome, tuple[StorageObject, ...]]] = {
    "a free device is found": (FITS, (FOUR, wants())),
    "a node without devices has none": (REFUSED, (wants(),)),
    "more devices than there are": (REFUSED, (FOUR, wants(request(count=5)))),
    "devices of other claims are in use": (
        REFUSED,
        (FOUR, held_by("a", "node-1", "gpu-0", "gpu-1"), wants(request(count=3))),
    ),
    "a device of the same name in another pool is not in use": (
        FITS,
        (FOUR, held_by("a", "node-2", "gpu-0"), wants(request(count=4))),
    ),
    "an administrator's allocation does not use a device": (
        FITS,
        (FOUR, held_by("a", "node-1", "gpu-0", admin=True), wants(request(count=4))),
    ),
    "two claims of one pod do not share a device": (
        REFUSED,
        (FOUR, wants(request(count=2)), gpu_claim("more", request(count=3))),
    ),
    "a slice of the pool is missing": (REFUSED, (replace(FOUR, count=2), wants())),
    "a newer generation elsewhere makes the node's slice obsolete": (
        REFUSED,
        (
            replace(FOUR, count=2),
            gpus("node-2", name="newer", pool=FOUR.pool, generation=2),
            wants(),
        ),
    ),
    "only the highest generation on the node counts": (
        REFUSED,
        (FOUR, gpus("node-1", gpu("new"), name="newer", generation=2), wants(request(count=2))),
    ),
    "slices for other nodes complete a pool": (
        FITS,
        (
            replace(FOUR, count=2),
            gpus("node-2", name="rest", pool=FOUR.pool, count=2),
            wants(),
        ),
    ),
    "two devices of one name make a pool invalid": (
        REFUSED,
        (gpus("node-1", gpu("a"), gpu("a")), wants()),
    ),
    "the selectors of a request hold beside those of its class": (FITS, (SIZES, wants(LARGE))),
    "no device passes the selectors": (REFUSED, (SIZES, wants(replace(LARGE, count=2)))),
    "an absent attribute is an error, so the result is unknown": (UNKNOWN, (FOUR, wants(LARGE))),
    "all devices, of which one is in use": (
        REFUSED,
        (FOUR, held_by("a", "node-1", "gpu-3"), wants(request(count=None))),
    ),
    "all devices for an administrator, of which one is in use": (
        FITS,
        (FOUR, held_by("a", "node-1", "gpu-3"), wants(request(count=None, admin=True))),
    ),
    "all devices of none": (REFUSED, (wants(request(count=None)),)),
    "all devices while a pool is incomplete": (
        ERROR,
        (
            FOUR,
            gpus("node-1", name="x", pool=PoolId("x", "x"), count=2),
            wants(request(count=None)),
        ),
    ),
    "all devices with a constraint that they do not meet": (
        REFUSED,
        (FOUR, wants(request(count=None), constraints=(same("numa"),))),
    ),
    "the second alternative, as the first one is in use": (
        FITS,
        (SIZES, held_by("a", "node-1", "big"), wants(EITHER)),
    ),
    "no alternative is free": (
        REFUSED,
        (SIZES, held_by("a", "node-1", "big", "little"), wants(EITHER)),
    ),
    "two devices with the same attribute": (
        FITS,
        (FOUR, held_by("a", "node-1", "gpu-1"), TWO_OF_A_KIND),
    ),
    "no two free devices with the same attribute": (
        REFUSED,
        (FOUR, held_by("a", "node-1", "gpu-1", "gpu-2"), TWO_OF_A_KIND),
    ),
    "the same attribute across requests, by name": (
        REFUSED,
        (SIZES, wants(request("a"), request("b"), constraints=(same("size", "a", "b"),))),
    ),
    "a constraint on other requests only": (
        FITS,
        (SIZES, wants(request("a"), request("b"), constraints=(same("size", "a"),))),
    ),
    "different attributes": (
        FITS,
        (SIZES, wants(request(count=2), constraints=(same("size")._replace(distinct=True),))),
    ),
    "more devices than different attributes": (
        REFUSED,
        (FOUR, wants(request(count=3), constraints=(same("numa")._replace(distinct=True),))),
    ),
    "a constraint on an attribute that is absent": (
        REFUSED,
        (FOUR, wants(constraints=(same("rack"),))),
    ),
    "a constraint on a list attribute is unknown": (
        UNKNOWN,
        (
            gpus("node-1", gpu("a", x=LIST)),
            wants(constraints=(DeviceConstraint("gpu.example.com/x"),)),
        ),
    ),
    "a tainted device": (REFUSED, (gpus("node-1", gpu("a", others=tainted())), wants())),
    "a taint without effect": (FITS, (gpus("node-1", gpu("a", others=tainted("None"))), wants())),
    "a tolerated taint": (
        FITS,
        (
            gpus("node-1", gpu("a", others=tainted())),
            wants(request(tolerations=(DeviceToleration("broken", "Exists"),))),
        ),
    ),
    "an administrator does not pass a taint": (
        REFUSED,
        (gpus("node-1", gpu("a", others=tainted())), wants(request(admin=True))),
    ),
    "a taint by a rule": (
        REFUSED,
        (FOUR, DeviceTaintRule("r", DeviceTaint("x", "", "NoExecute"), pool="node-1"), wants()),
    ),
    "a rule for other devices": (
        FITS,
        (FOUR, DeviceTaintRule("r", DeviceTaint("x", "", "NoExecute"), pool="node-2"), wants()),
    ),
    "a partition beside another": (FITS, (PARTS, COUNTERS, wants())),
    "partitions that exceed the counters": (
        REFUSED,
        (PARTS, COUNTERS, held_by("a", "node-1", "small"), wants()),
    ),
    "two partitions of one claim that exceed the counters": (
        REFUSED,
        (PARTS, COUNTERS, wants(request(count=2))),
    ),
    "a partition of counters that no slice has": (
        REFUSED,
        (replace(PARTS, count=1), wants()),
    ),
    "a share of 3 is rounded to 4, and 4 are left": (FITS, shares(3)),
    "shares of one device by two requests of a claim": (FITS, shares(3, 2)),
    "shares beyond the capacity": (REFUSED, shares(3, 4)),
    "a capacity that the device does not have": (
        REFUSED,
        (FOUR, wants(request(capacity=(("mem", NANOS),)))),
    ),
    "a feature that is not evaluated": (
        UNKNOWN,
        (gpus("node-1", gpu("a", others={"unsupported": "compatibilityGroups"})), wants()),
    ),
    "such a device that the request does not select": (
        FITS,
        (
            gpus(
                "node-1",
                gpu("a", size="small", others={"unsupported": "x"}),
                gpu("b", size="large"),
            ),
            wants(LARGE),
        ),
    ),
    "a request that is not evaluated": (UNKNOWN, (FOUR, wants(request(unsupported="x")))),
    "more than 32 devices": (
        ERROR,
        (gpus("node-1", *(gpu(f"g{n}") for n in range(40))), wants(request(count=33))),
    ),
}


@pytest.mark.parametrize(("expected", "things"), CASES.values(), ids=CASES)
def test_the_devices_of_a_node_suffice_or_not(
    expected: Outcome, things: tuple[StorageObject, ...]
) -> None:
    assert outcome(*things) is expected


@pytest.mark.parametrize(("expected", "things"), CASES.values(), ids=CASES)
def test_the_order_of_objects_does_not_matter(
    expected: Outcome, things: tuple[StorageObject, ...]
) -> None:
    assert outcome(*reversed(things)) is expected


def test_a_slice_may_be_for_all_nodes_or_for_those_with_a_label() -> None:
    zone = NodeSelector((NodeSelectorTerm((Requirement("zone", "In", ("a",)),)),))
    everywhere = replace(FOUR, nodes=DeviceNodes(every=True))
    zonal = replace(FOUR, nodes=DeviceNodes(selector=zone))
    assert outcome(everywhere, wants(), on="node-7") is FITS
    assert outcome(zonal, wants(), on="node-7", zone="a") is FITS
    assert outcome(zonal, wants(), on="node-7", zone="b") is REFUSED


def test_a_slice_may_leave_the_choice_of_nodes_to_its_devices() -> None:
    here, there = (replace(gpu(name), nodes=DeviceNodes(name)) for name in ("node-1", "node-2"))
    per_device = gpus("", here, there, nodes=None)
    assert outcome(per_device, wants()) is FITS
    assert outcome(per_device, wants(request(count=2))) is REFUSED
    assert outcome(per_device, wants(), gates={"DRAPartitionableDevices": False}) is REFUSED


def test_binding_conditions_are_met_after_scheduling() -> None:
    fabric = gpus("node-1", gpu("a", others={"binds": True}))
    assert outcome(fabric, wants()) is FITS
    assert outcome(fabric, wants(), gates={"DRADeviceBindingConditions": False}) is REFUSED


def test_a_search_that_takes_too_long_is_unknown() -> None:
    crowded = gpus("node-1", *(gpu(f"gpu-{n}") for n in range(30)))
    assert outcome(crowded, wants(request("a", count=15), request("b", count=16))) is UNKNOWN


ONE = gpus("node-1", gpu("gpu-0", others=tainted()))
ALL = wants(request(count=None))
OF_TWO = "wanted, request gpus: needs 1 of 2 matching device(s)"
THREE_OF_FOUR = "wanted, request gpus: needs 3 of 4 matching device(s)"
REFUSALS: dict[str, tuple[tuple[StorageObject, ...], str]] = {
    "no device": ((wants(),), "wanted, request gpus: no device matches"),
    "an incomplete pool": (
        (replace(FOUR, count=2), wants()),
        "wanted, request gpus: a pool of the node is incomplete or invalid",
    ),
    "devices in use": (
        (FOUR, held_by("a", "node-1", "gpu-0", "gpu-1"), wants(request(count=3))),
        f"{THREE_OF_FOUR}: 2 in use",
    ),
    "all devices, one in use": (
        (FOUR, held_by("a", "node-1", "gpu-0"), ALL),
        "wanted, request gpus: needs 4 of 4 matching device(s): 1 in use",
    ),
    "tainted devices": (
        (ONE, wants()),
        "wanted, request gpus: needs 1 of 1 matching device(s): 1 tainted",
    ),
    "counters": (
        (PARTS, COUNTERS, held_by("a", "node-1", "large"), wants()),
        f"{OF_TWO}: 1 in use, 1 without enough counters",
    ),
    "capacity": (
        shares(8),
        "wanted, request r8: needs 1 of 1 matching device(s): 1 without enough capacity",
    ),
    "constraints": (
        (FOUR, wants(request(count=3), constraints=(same("numa"),))),
        f"{THREE_OF_FOUR}: constraints or other requests exclude some",
    ),
    "the second of two requests": (
        (FOUR, wants(request("a", count=2), request("b", count=5))),
        "wanted, request b: needs 5 of 4 matching device(s)",
    ),
    "alternatives": (
        (gpus("node-1", gpu("gpu-0", size="medium")), wants(EITHER)),
        "wanted, request gpus: no device matches",
    ),
    "more devices than a claim can have": (
        (gpus("node-1", *(gpu(f"gpu-{n}") for n in range(33))), ALL),
        "a claim needs more than 32 devices",
    ),
    "a request that is not evaluated": (
        (FOUR, wants(request(unsupported="x"))),
        "x of request gpus (wanted)",
    ),
}


@pytest.mark.parametrize(("things", "detail"), REFUSALS.values(), ids=REFUSALS)
def test_a_verdict_names_the_request_that_fails_and_why(
    things: tuple[StorageObject, ...], detail: str
) -> None:
    assert verdict(*things).detail == detail
