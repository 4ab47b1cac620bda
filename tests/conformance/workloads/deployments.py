"""Scenarios of Deployments."""

from __future__ import annotations

from typing import Any

from tests.builders import Document
from tests.conformance.clusters.watched_cluster import WatchedCluster
from tests.conformance.objects import NAMESPACE
from tests.conformance.operators.objects import containers, workload
from tests.conformance.workloads.runs import Scenario, Settle


def deployment(replicas: int = 3, **spec: Any) -> Document:
    """Build a Deployment."""
    return workload("Deployment", "web", NAMESPACE, replicas, **spec)


async def change(world: WatchedCluster, settle: Settle, **spec: Any) -> None:
    """Change the spec of the Deployment, and wait for the outcome."""
    await world.patch("Deployment", "web", {"spec": spec})
    await settle()


def image(name: str, **labels: str) -> Document:
    """Return a template with another image."""
    return {"metadata": {"labels": labels}, "spec": containers(name)}


async def a_rollout_back_and_forth(world: WatchedCluster, settle: Settle) -> None:
    metadata = {"annotations": {"team": "shop"}, "labels": {"app": "web"}}
    await world.create(deployment(metadata={"namespace": NAMESPACE, **metadata}))
    await settle()
    await change(world, settle, template=image("v2"))
    await change(world, settle, template=image("v1"))
    await change(world, settle, replicas=5, minReadySeconds=1)
    await change(world, settle, replicas=0)


async def a_rollout_that_is_stuck(world: WatchedCluster, settle: Settle) -> None:
    rolling = {"maxSurge": 3, "maxUnavailable": 2}
    strategy = {"type": "RollingUpdate", "rollingUpdate": rolling}
    await world.create(deployment(10, strategy=strategy, progressDeadlineSeconds=4))
    await settle()
    await change(world, settle, template=image("v2", state="stuck"))
    await change(world, settle, replicas=15)
    await change(world, settle, replicas=4)
    await change(world, settle, template=image("v3", state="running"))


async def a_deployment_that_is_recreated(world: WatchedCluster, settle: Settle) -> None:
    await world.create(deployment(strategy={"type": "Recreate"}, revisionHistoryLimit=1))
    await settle()
    for name in ("v2", "v3", "v4"):
        await change(world, settle, template=image(name))


async def a_deployment_that_is_paused(world: WatchedCluster, settle: Settle) -> None:
    await world.create(deployment(paused=True))
    await settle()
    await change(world, settle, paused=False)
    await change(world, settle, paused=True, replicas=4, template=image("v2"))
    await change(world, settle, paused=False)


SCENARIOS = (
    Scenario(a_rollout_back_and_forth),
    Scenario(a_rollout_that_is_stuck),
    Scenario(a_deployment_that_is_recreated),
    Scenario(a_deployment_that_is_paused),
)
