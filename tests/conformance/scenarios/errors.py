"""Errors: quotas, terminating namespaces, pods that finish, deletes that fail."""

from __future__ import annotations

from fakeapi.testing.faults import Fault, fault
from tests.conformance.clusters.world import World
from tests.conformance.objects import NAMESPACE, replica_set
from tests.conformance.scenario_runner import Scenario

_FULL = "exceeded quota: small, requested: pods=1, used: pods=3, limited: pods=3"


def _quota() -> Fault:
    refusal = fault(403, message=f"pods is forbidden: {_FULL}")
    return refusal.on("create", "pods", namespaces=NAMESPACE)


async def a_quota_that_is_full(world: World) -> None:
    """At first creates fail: they are retried and reported; the condition is cleared at last."""
    world.cluster.faults.plan(_quota().times(4))
    await world.create(replica_set("web", 5))
    await world.wait_settled()


async def a_quota_for_three(world: World) -> None:
    """Three pods fit; of the next four each is refused, and then one at a time is tried."""
    world.cluster.faults.plan(_quota().after(3).times(6))
    await world.create(replica_set("web", 10))
    await world.wait_settled()


async def a_server_in_trouble(world: World) -> None:
    """A server that answers 500 is asked again."""
    world.cluster.faults.plan(fault(500).on("create", "pods", namespaces=NAMESPACE).times(2))
    await world.create(replica_set("web", 2))
    await world.wait_settled()


async def deletes_that_fail(world: World) -> None:
    """A failed delete is reported by an Event, and tried again."""
    await world.create(replica_set("web", 3))
    await world.wait_settled()
    refused = fault(403, message="pods is forbidden: not today").on("delete", "pods")
    world.cluster.faults.plan(refused.once())
    await world.scale("web", 2)
    await world.wait_settled()


async def a_namespace_that_ends(world: World) -> None:
    """Pods that a terminating namespace refuses are neither reported nor retried; deletes work."""
    await world.create(replica_set("web", 2))
    await world.wait_settled()
    await world.delete("Namespace", NAMESPACE)
    await world.scale("web", 9)
    await world.wait_idle(lambda: len(world.active_pods_of("web")) == 2)


async def fewer_in_a_namespace_that_ends(world: World) -> None:
    """In an ending namespace pods can be deleted still."""
    await world.create(replica_set("web", 3))
    await world.wait_settled()
    await world.delete("Namespace", NAMESPACE)
    await world.scale("web", 1)
    await world.wait_settled()


async def pods_that_finish(world: World) -> None:
    """A pod that failed or succeeded is left where it is, and another one is made."""
    await world.create(replica_set("web", 3))
    await world.wait_settled()
    first, second, third = (each["metadata"]["name"] for each in world.pods_of("web"))
    await world.report(first, phase="Failed", reason="Evicted")
    await world.wait_settled()
    await world.report(second, phase="Succeeded")
    await world.wait_settled()
    await world.delete("Pod", third)
    await world.wait_settled()
    await world.scale("web", 0)
    await world.wait_settled()


SCENARIOS = (
    Scenario(a_quota_that_is_full),
    Scenario(a_quota_for_three),
    Scenario(a_server_in_trouble),
    Scenario(deletes_that_fail),
    Scenario(a_namespace_that_ends),
    Scenario(fewer_in_a_namespace_that_ends),
    Scenario(pods_that_finish),
)
