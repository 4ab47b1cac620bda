"""Errors with spread pods: a real ReplicaSet controller gets an error, and retries."""

from __future__ import annotations

from pathlib import Path

from tests.conformance.clusters.controller_processes import SPREADING, Controllers, running
from tests.conformance.clusters.workloadspread_cluster import (
    DEFINITION,
    Rollout,
    spread_cluster,
    subset_of,
    web,
    webhooks_registered,
    zone_spread,
)
from tests.conformance.clusters.world import World
from tests.conformance.objects import (
    NAMESPACE,
    NAMESPACE_DOCUMENT,
    owned,
    replica_set,
    with_metadata,
)


def failures(world: World, name: str) -> list[str]:
    """Return the messages of a ReplicaSet's Events about pods that were not created."""
    return [
        event["message"]
        for event in world.all("Event")
        if event["reason"] == "FailedCreate"
        and event["involvedObject"]["kind"] == "ReplicaSet"
        and event["involvedObject"]["name"].startswith(name)
    ]


async def test_no_pod_is_created_while_the_webhooks_are_down_and_an_event_has_the_reason(
    real_controllers: Controllers, script: Path
) -> None:
    async with (
        spread_cluster(script, DEFINITION) as world,
        running(real_controllers, world.cluster.url, "replicaset,deployment"),
    ):
        rollout = Rollout(world)
        async with running(SPREADING, world.cluster.url, "workloadspread"):
            await webhooks_registered(world)
            await world.create(zone_spread())
            await world.create(web(2))
            await rollout.wait_settled("first", pods=2)
        await rollout.scale(6)
        await world.until(lambda: bool(failures(world, "web")))
        assert len(rollout.pods()) == 2
        (message,) = set(failures(world, "web"))
        assert 'failed calling webhook "create-pod.workloadspread.apps.kruise.io"' in message
        assert message.endswith("connect: connection refused")
        async with running(SPREADING, world.cluster.url, "workloadspread"):
            await rollout.wait_settled("first", pods=6)
            assert rollout.placed() == {"a": 4, "b": 2}


async def test_pods_wait_for_a_missing_owner_and_other_pods_are_admitted(
    real_controllers: Controllers, script: Path
) -> None:
    orphans = owned(replica_set("orphan", 3), "Deployment", "lost", "long-gone")
    async with (
        spread_cluster(script, DEFINITION, run="kubelet") as world,  # gc would delete orphans
        running(SPREADING, world.cluster.url, "workloadspread"),
        running(real_controllers, world.cluster.url, "replicaset"),
    ):
        await webhooks_registered(world)
        await world.create(zone_spread())
        await world.create(orphans)
        await world.create(replica_set("stranger", 3))
        await world.until(lambda: len(world.active_pods_of("stranger")) == 3)
        await world.until(lambda: bool(failures(world, "orphan")))
        (message,) = set(failures(world, "orphan"))
        assert message.endswith('denied the request: Deployment "lost" not found')
        assert not world.pods_of("orphan")
        await world.create(with_metadata(web(3), name="lost"))
        await world.wait_settled()
        assert len(world.active_pods_of("orphan")) == 3
        assert not any(map(subset_of, world.all("Pod")))


def lines(log: str, event: str) -> int:
    """Count the lines of a log with an event."""
    return sum(event in line for line in log.splitlines())


async def test_definition_workload_and_namespace_may_be_created_late_and_deleted(
    real_controllers: Controllers, script: Path
) -> None:
    async with (
        spread_cluster(script) as world,
        running(real_controllers, world.cluster.url, "replicaset,deployment"),
        running(SPREADING, world.cluster.url, "workloadspread") as spreading,
    ):
        rollout = Rollout(world)
        await world.create(replica_set("before", 2))
        await world.wait_settled()
        await spreading.wait_for_log("kind_not_served")
        world.cluster.load([DEFINITION])
        await webhooks_registered(world)
        for _ in range(2):
            await world.create(zone_spread())
            await world.until(lambda: bool(rollout.counted()))
            assert rollout.counted() == {"a": (0, 4), "b": (0, 8), "c": (0, -1)}
            await world.create(web(13))
            await rollout.wait_settled("first", pods=13)
            assert rollout.placed() == {"a": 4, "b": 8, "c": 1}
            await world.delete("Namespace", NAMESPACE)
            await world.until(lambda: world.get("Namespace", NAMESPACE, "") is None)
            await world.create(NAMESPACE_DOCUMENT)
        log = spreading.read_log()
    assert lines(log, "kind_not_served") == 1
    assert not lines(log, '"error"')
