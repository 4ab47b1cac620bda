"""Errors with spread pods: a real ReplicaSet controller gets an error, and retries."""

from __future__ import annotations

from pathlib import Path

from tests.conformance.controller_processes import SPREADING, Contender, running
from tests.conformance.objects import NAMESPACE, owned, replica_set, with_metadata
from tests.conformance.workloadspread_cluster import (
    DEFINITION,
    NAMESPACE_DOCUMENT,
    Rollout,
    spread,
    stage,
    subset_of,
    web,
    webhooks_registered,
)
from tests.conformance.world import World


def failures(there: World, name: str) -> list[str]:
    """Return the messages of a ReplicaSet's Events about pods that were not created."""
    return [
        event["message"]
        for event in there.all("Event")
        if event["reason"] == "FailedCreate"
        and event["involvedObject"]["kind"] == "ReplicaSet"
        and event["involvedObject"]["name"].startswith(name)
    ]


async def test_while_the_webhooks_are_down_no_pod_comes_and_its_replica_set_says_why(
    real_controllers: Contender, book: Path
) -> None:
    async with (
        stage(book, DEFINITION) as there,
        running(real_controllers, there.cluster.url, "replicaset,deployment"),
    ):
        rollout = Rollout(there)
        async with running(SPREADING, there.cluster.url, "workloadspread"):
            await webhooks_registered(there)
            await there.create(spread())
            await there.create(web(2))
            await rollout.settled("first", pods=2)
        await rollout.scale(6)
        await there.until(lambda: bool(failures(there, "web")))
        assert len(rollout.pods()) == 2
        (told,) = set(failures(there, "web"))
        assert 'failed calling webhook "create-pod.workloadspread.apps.kruise.io"' in told
        assert told.endswith("connect: connection refused")
        async with running(SPREADING, there.cluster.url, "workloadspread"):
            await rollout.settled("first", pods=6)
            assert rollout.placed() == {"a": 4, "b": 2}


async def test_pods_whose_owner_is_missing_wait_for_it_and_strangers_pass(
    real_controllers: Contender, book: Path
) -> None:
    orphans = owned(replica_set("orphan", 3), "Deployment", "lost", "long-gone")
    async with (
        stage(book, DEFINITION, run="kubelet") as there,  # without gc, which would end them
        running(SPREADING, there.cluster.url, "workloadspread"),
        running(real_controllers, there.cluster.url, "replicaset"),
    ):
        await webhooks_registered(there)
        await there.create(spread())
        await there.create(orphans)
        await there.create(replica_set("stranger", 3))
        await there.until(lambda: len(there.active_pods_of("stranger")) == 3)
        await there.until(lambda: bool(failures(there, "orphan")))
        (told,) = set(failures(there, "orphan"))
        assert told.endswith('denied the request: Deployment "lost" not found')
        assert not there.pods_of("orphan")
        await there.create(with_metadata(web(3), name="lost"))
        await there.settled()
        assert len(there.active_pods_of("orphan")) == 3
        assert not any(map(subset_of, there.all("Pod")))


def lines(log: str, event: str) -> int:
    """Count the lines of a log with an event."""
    return sum(event in line for line in log.splitlines())


async def test_definition_workload_and_namespace_may_come_late_and_go(
    real_controllers: Contender, book: Path
) -> None:
    async with (
        stage(book) as there,
        running(real_controllers, there.cluster.url, "replicaset,deployment"),
        running(SPREADING, there.cluster.url, "workloadspread") as spreading,
    ):
        rollout = Rollout(there)
        await there.create(replica_set("before", 2))
        await there.settled()
        there.cluster.load([DEFINITION])
        await webhooks_registered(there)
        for _ in range(2):
            await there.create(spread())
            await there.until(lambda: bool(rollout.counted()))
            assert rollout.counted() == {"a": (0, 4), "b": (0, 8), "c": (0, -1)}
            await there.create(web(13))
            await rollout.settled("first", pods=13)
            assert rollout.placed() == {"a": 4, "b": 8, "c": 1}
            await there.delete("Namespace", NAMESPACE)
            await there.until(lambda: there.get("Namespace", NAMESPACE, "") is None)
            await there.create(NAMESPACE_DOCUMENT)
        log = spreading.told()
    assert lines(log, "kind_not_served") == 1
    assert not lines(log, '"error"')
