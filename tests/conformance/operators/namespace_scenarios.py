"""What namespaces contain by themselves, what they limit, and what becomes of it."""

from __future__ import annotations

from tests.builders import Document
from tests.conformance.clusters.watched_cluster import WatchedCluster
from tests.conformance.operators.objects import in_namespace, pods, status, workload


async def the_own_objects_of_a_namespace_are_restored(
    world: WatchedCluster, namespace: str
) -> None:
    for kind, name in (("ServiceAccount", "default"), ("ConfigMap", "kube-root-ca.crt")):
        await _delete_and_see_again(world, kind, name, namespace)
    certificate = world.get("ConfigMap", "kube-root-ca.crt", namespace) or {}
    assert certificate["data"]["ca.crt"].startswith("-----BEGIN CERTIFICATE-----")


async def a_quota_is_recounted(world: WatchedCluster, namespace: str) -> None:
    spec = {"hard": {"secrets": "3", "count/deployments.apps": "50"}}
    await world.create(in_namespace("ResourceQuota", "few", namespace, spec=spec))
    await world.until(lambda: _used(world, namespace) == "0")
    for name in ("one", "two"):
        await world.create(in_namespace("Secret", name, namespace))
    await world.until(lambda: _used(world, namespace) == "2")
    await world.delete("Secret", "one", namespace)
    await world.until(lambda: _used(world, namespace) == "1")


async def dependents_are_collected_or_orphaned(world: WatchedCluster, namespace: str) -> None:
    policies = ("Foreground", "Background", "Orphan")
    for policy in policies:
        await _delete_owner(world, policy.lower(), namespace, policy)
    await world.until(
        lambda: [len(pods(world, namespace, app=each.lower())) for each in policies] == [0, 0, 2]
    )
    orphans = pods(world, namespace, app="orphan")
    assert not any(pod["metadata"].get("ownerReferences") for pod in orphans)


SCENARIOS = (
    the_own_objects_of_a_namespace_are_restored,
    a_quota_is_recounted,
    dependents_are_collected_or_orphaned,
)


async def _delete_and_see_again(
    world: WatchedCluster, kind: str, name: str, namespace: str
) -> None:
    await world.until(lambda: world.get(kind, name, namespace) is not None)
    former = _uid(world, kind, name, namespace)
    await world.delete(kind, name, namespace)
    await world.until(lambda: _uid(world, kind, name, namespace) not in ("", former))


async def _delete_owner(world: WatchedCluster, name: str, namespace: str, policy: str) -> None:
    await world.create(workload("ReplicaSet", name, namespace, 2))
    # The controllers have seen the pods: the garbage collector cannot orphan what it has not.
    await world.until(lambda: status(world, "ReplicaSet", name, namespace).get("replicas") == 2)
    await world.delete("ReplicaSet", name, namespace, propagationPolicy=policy)
    await world.until(lambda: world.get("ReplicaSet", name, namespace) is None)


def _uid(world: WatchedCluster, kind: str, name: str, namespace: str) -> str:
    found: Document = world.get(kind, name, namespace) or {"metadata": {"uid": ""}}
    return str(found["metadata"]["uid"])


def _used(world: WatchedCluster, namespace: str) -> str:
    return str(status(world, "ResourceQuota", "few", namespace).get("used", {}).get("secrets"))
