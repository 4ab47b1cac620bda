"""Devices: pods that need one, by a claim or by an extended resource, on nodes without free CPU.

No driver runs, and no controller of claims: scenarios create claims before their pods, and delete
them.
"""

from __future__ import annotations

from typing import Any, Final

from tests.builders import Document, manifest
from tests.conformance.objects import NAMESPACE
from tests.conformance.scheduling.environment import Environment, SchedulingScenario, Setting
from tests.conformance.scheduling.pods import bound_pod, pending_pod, small_node

DRIVER: Final = "gpu.example.com"
RESOURCE: Final = "example.com/gpu"
CLASS: Final = "gpu"


def device_class() -> Document:
    """Return the class of all devices, which also backs the extended resource."""
    selectors = [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}]
    spec = {"selectors": selectors, "extendedResourceName": RESOURCE}
    return manifest("DeviceClass", CLASS, spec=spec)


def devices_of(node: str, *devices: Document, **counters: Any) -> list[Document]:
    """Return the ResourceSlices of a node, with a pool of its name.

    A slice has either devices or the counters that they share.
    """
    parts: list[Document] = [{"devices": list(devices)}]
    parts += [counters] if counters else []
    pool = {"name": node, "generation": 1, "resourceSliceCount": len(parts)}
    common = {"driver": DRIVER, "nodeName": node, "pool": pool}
    return [
        manifest("ResourceSlice", f"{node}-{number}", spec={**common, **part})
        for number, part in enumerate(parts)
    ]


def claim(name: str, **status: Any) -> Document:
    """Return a claim of one device, with all defaults."""
    exactly = {"deviceClassName": CLASS, "allocationMode": "ExactCount", "count": 1}
    request = {"name": "one", "exactly": exactly}
    made = manifest("ResourceClaim", name, namespace=NAMESPACE)
    return {**made, "spec": {"devices": {"requests": [request]}}, "status": status}


def held(node: str, device: str, *users: str) -> Document:
    """Return a claim that a device of a node is allocated to, for pods with the UIDs ``users``."""
    result = {"request": "one", "driver": DRIVER, "pool": node, "device": device}
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    nodes = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    allocation = {"devices": {"results": [result]}, "nodeSelector": nodes}
    reserved = [{"resource": "pods", "name": uid, "uid": uid} for uid in users]
    return claim(f"held-{node}-{device}", allocation=allocation, reservedFor=reserved)


def claiming(pod: Document, name: str) -> Document:
    """Return a pod that uses a claim."""
    claims = [{"name": "device", "resourceClaimName": name}]
    return {**pod, "spec": {**pod["spec"], "resourceClaims": claims}}


async def a_free_device_behind_an_extended_resource(env: Environment) -> None:
    """The pod is bound to the node whose devices back the resource, though it lists none."""
    await env.load(device_class(), *map(small_node, ("node-0", "node-1")))
    await env.load(*devices_of("node-1", {"name": "gpu-0"}))
    await env.cluster.create(pending_pod("new", others={RESOURCE: "1"}))
    assert await env.wait_bound("new") == {"new": "node-1"}


async def cpu_for_an_extended_resource(env: Environment) -> None:
    """A pod is preempted where a device is free, not where it would be cheaper."""
    await env.load(device_class(), *map(small_node, ("node-0", "node-1")))
    await env.load(bound_pod("dear", "node-0", priority=10), bound_pod("cheap", "node-1"))
    await env.load(*devices_of("node-0", {"name": "gpu-0"}))
    await env.load(*devices_of("node-1", {"name": "gpu-0"}), held("node-1", "gpu-0"))
    await env.cluster.create(pending_pod("new", others={RESOURCE: "1"}))
    await env.wait_preempted("new", "node-0")
    assert env.deleted() == ["dear"]


async def cpu_for_a_claim(env: Environment) -> None:
    """A pod is preempted where a device is free, not where it would be cheaper."""
    await env.load(device_class(), *map(small_node, ("node-0", "node-1")))
    await env.load(bound_pod("dear", "node-0", priority=10), bound_pod("cheap", "node-1"))
    await env.load(*devices_of("node-0", {"name": "gpu-0"}))
    await env.load(*devices_of("node-1", {"name": "gpu-0"}), held("node-1", "gpu-0"))
    await env.load(claim("wanted"))
    await env.cluster.create(claiming(pending_pod("new"), "wanted"))
    await env.wait_preempted("new", "node-0")
    assert env.deleted() == ["dear"]


async def cpu_for_a_partition(env: Environment) -> None:
    """A pod is preempted where the counters of a partitioned device suffice."""
    await env.load(device_class(), *map(small_node, ("node-0", "node-1")))
    await env.load(bound_pod("dear", "node-0", priority=10), bound_pod("cheap", "node-1"))
    await env.load(*_partitioned("node-0"), *_partitioned("node-1"), held("node-1", "large"))
    await env.load(claim("wanted"))
    await env.cluster.create(claiming(pending_pod("new"), "wanted"))
    await env.wait_preempted("new", "node-0")
    assert env.deleted() == ["dear"]


async def no_device_is_free(env: Environment) -> None:
    """The pod waits, and no pod is preempted."""
    await env.load(device_class(), small_node("node-0"), bound_pod("cheap", "node-0"))
    await env.load(*devices_of("node-0", {"name": "gpu-0"}), held("node-0", "gpu-0"))
    await env.load(claim("wanted"))
    await env.cluster.create(claiming(pending_pod("new"), "wanted"))
    await env.wait_unschedulable("new")
    assert env.deleted() == []


async def a_device_of_a_victim(env: Environment) -> None:
    """A pod that holds a device is preempted, and no other while its claim is still allocated."""
    await env.load(device_class(), *map(small_node, ("node-0", "node-1")), claim("wanted"))
    await env.load(bound_pod("dear", "node-0", priority=10), bound_pod("cheap", "node-1", "1"))
    await env.cluster.until(lambda: env.node_of("cheap") != "")
    [uid] = [
        pod["metadata"]["uid"]
        for pod in env.cluster.all("Pod")
        if pod["metadata"]["name"] == "cheap"
    ]
    await env.load(*devices_of("node-1", {"name": "gpu-0"}), held("node-1", "gpu-0", uid))
    await env.load(*devices_of("node-0", {"name": "gpu-0"}))
    await env.cluster.create(claiming(pending_pod("new", "1"), "wanted"))
    assert await env.wait_nominated("new") == {"new": "node-1"}
    assert await env.wait_for_deletions(1) == ["cheap"]
    await env.remove_terminating()
    await env.wait_unschedulable("new", "no candidate node for preemption")
    assert env.nomination_of("new") == "node-1"
    await env.cluster.delete("ResourceClaim", "held-node-1-gpu-0")
    assert await env.wait_bound("new") == {"new": "node-1"}
    assert env.deleted() == ["cheap"]


def _partitioned(node: str) -> list[Document]:
    """Return the slices of a device of 80 GB: a partition of 60, and one of 40."""
    counters = [{"name": "gpu-0", "counters": {"memory": {"value": "80Gi"}}}]
    partitions = [
        {
            "name": name,
            "consumesCounters": [{"counterSet": "gpu-0", "counters": {"memory": {"value": size}}}],
        }
        for name, size in (("large", "60Gi"), ("medium", "40Gi"))
    ]
    return devices_of(node, *partitions, sharedCounters=counters)


SCENARIOS: Final = [
    SchedulingScenario(play, Setting(serving={"search": search}))
    for play in (
        a_free_device_behind_an_extended_resource,
        cpu_for_an_extended_resource,
        cpu_for_a_claim,
        cpu_for_a_partition,
        no_device_is_free,
    )
    for search in ("offered", "cluster")
] + [
    SchedulingScenario(
        a_device_of_a_victim,
        Setting(serving={"search": "cluster", "devices": {"freeVictims": True}}),
    )
]
