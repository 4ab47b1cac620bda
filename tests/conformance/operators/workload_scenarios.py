"""Deployments, StatefulSets, DaemonSets, and what follows their pods."""

from __future__ import annotations

from itertools import pairwise

from tests.builders import Document
from tests.conformance.clusters.watched_cluster import WatchedCluster
from tests.conformance.operators.objects import (
    WORKERS,
    containers,
    has_condition,
    in_namespace,
    pods,
    status,
    workload,
)


async def a_deployment_rolls_out_and_back(world: WatchedCluster, namespace: str) -> None:
    await world.create(workload("Deployment", "web", namespace, 3))
    await world.until(lambda: _rolled_out(world, namespace, 3))
    first = _active_set(world, namespace)
    await _set_image(world, namespace, "v2")
    await world.until(lambda: _rolled_out(world, namespace, 3))
    assert _active_set(world, namespace) != first
    await _set_image(world, namespace, "v1")
    await world.until(lambda: _rolled_out(world, namespace, 3))
    assert _active_set(world, namespace) == first
    await world.patch("Deployment", "web", {"spec": {"replicas": 5}}, namespace=namespace)
    await world.until(lambda: _rolled_out(world, namespace, 5))
    deployment = world.get("Deployment", "web", namespace) or {}
    assert deployment["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "3"


async def pods_of_a_stateful_set_start_and_end_in_order(
    world: WatchedCluster, namespace: str
) -> None:
    await world.create(workload("StatefulSet", "db", namespace, 3, serviceName="db"))
    await world.until(
        lambda: status(world, "StatefulSet", "db", namespace).get("readyReplicas") == 3
    )
    # Another watch, which may be behind that of the set.
    await world.until(
        lambda: all(
            has_condition(world, "Pod", f"db-{number}", namespace, type="Ready", status="True")
            for number in range(3)
        )
    )
    members = pods(world, namespace, app="db")
    assert [pod["metadata"]["name"] for pod in members] == ["db-0", "db-1", "db-2"]
    assert all(
        _ready_since(one) <= other["metadata"]["creationTimestamp"]
        for one, other in pairwise(members)
    )
    await world.patch("StatefulSet", "db", {"spec": {"replicas": 1}}, namespace=namespace)
    await world.until(lambda: [_name(pod) for pod in pods(world, namespace, app="db")] == ["db-0"])


async def a_daemon_set_runs_on_each_node(world: WatchedCluster, namespace: str) -> None:
    labels = {"app": "agent"}
    template = {"metadata": {"labels": labels}, "spec": containers("v1")}
    spec = {"selector": {"matchLabels": labels}, "template": template}
    await world.create(in_namespace("DaemonSet", "agent", namespace, spec=spec))
    await world.until(lambda: _agents(world, namespace) == {f"node-{n}" for n in range(WORKERS)})
    patch = {"spec": {"template": {"spec": containers("v2")}}}
    await world.patch("DaemonSet", "agent", patch, namespace=namespace)
    await world.until(
        lambda: (
            status(world, "DaemonSet", "agent", namespace).get("updatedNumberScheduled") == WORKERS
            and len(_agents(world, namespace)) == WORKERS
        )
    )


async def a_service_has_the_addresses_of_ready_pods(world: WatchedCluster, namespace: str) -> None:
    await world.create(workload("Deployment", "shop", namespace, 2))
    spec = {"selector": {"app": "shop"}, "ports": [{"port": 80, "targetPort": 8080}]}
    await world.create(in_namespace("Service", "shop", namespace, spec=spec))
    await world.until(lambda: len(_addresses(world, namespace, "shop")) == 2)
    await world.patch("Deployment", "shop", {"spec": {"replicas": 3}}, namespace=namespace)
    await world.until(lambda: len(_addresses(world, namespace, "shop")) == 3)
    # Another watch, which may be behind that of the slices.
    await world.until(
        lambda: (
            _addresses(world, namespace, "shop")
            == {pod["status"].get("podIP") for pod in pods(world, namespace, app="shop")}
        )
    )


async def a_disruption_budget_counts_healthy_pods(world: WatchedCluster, namespace: str) -> None:
    await world.create(workload("ReplicaSet", "guarded", namespace, 3))
    spec = {"minAvailable": 2, "selector": {"matchLabels": {"app": "guarded"}}}
    await world.create(in_namespace("PodDisruptionBudget", "guarded", namespace, spec=spec))
    counts = {"currentHealthy": 3, "desiredHealthy": 2, "disruptionsAllowed": 1, "expectedPods": 3}
    await world.until(
        lambda: counts.items() <= status(world, "PodDisruptionBudget", "guarded", namespace).items()
    )


async def an_autoscaler_without_metrics_reports_it(world: WatchedCluster, namespace: str) -> None:
    await world.create(workload("Deployment", "scaled", namespace, 1))
    spec = {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "scaled"},
        "maxReplicas": 3,
        "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": _HALF}}],
    }
    await world.create(in_namespace("HorizontalPodAutoscaler", "scaled", namespace, spec=spec))
    await world.until(
        lambda: has_condition(
            world, "HorizontalPodAutoscaler", "scaled", namespace,
            type="ScalingActive", status="False", reason="FailedGetResourceMetric",
        )
    )  # fmt: skip


_HALF = {"type": "Utilization", "averageUtilization": 50}

SCENARIOS = (
    a_deployment_rolls_out_and_back,
    pods_of_a_stateful_set_start_and_end_in_order,
    a_daemon_set_runs_on_each_node,
    a_service_has_the_addresses_of_ready_pods,
    a_disruption_budget_counts_healthy_pods,
    an_autoscaler_without_metrics_reports_it,
)


def _rolled_out(world: WatchedCluster, namespace: str, replicas: int) -> bool:
    deployment = world.get("Deployment", "web", namespace) or {"metadata": {}}
    found = deployment.get("status", {})
    counts = ("replicas", "updatedReplicas", "availableReplicas")
    return found.get("observedGeneration") == deployment["metadata"].get("generation") and all(
        found.get(count) == replicas for count in counts
    )


async def _set_image(world: WatchedCluster, namespace: str, image: str) -> None:
    patch = {"spec": {"template": {"spec": containers(image)}}}
    await world.patch("Deployment", "web", patch, namespace=namespace)


def _active_set(world: WatchedCluster, namespace: str) -> str:
    """Return the name of the only ReplicaSet of the Deployment that has replicas."""
    (active,) = [
        each
        for each in world.all("ReplicaSet", namespace)
        if each["spec"]["replicas"] and each["metadata"]["labels"]["app"] == "web"
    ]
    return _name(active)


def _agents(world: WatchedCluster, namespace: str) -> set[str]:
    """Return the nodes of the DaemonSet's ready pods."""
    return {
        pod["spec"]["nodeName"]
        for pod in pods(world, namespace, app="agent")
        if pod["status"].get("phase") == "Running"
    }


def _addresses(world: WatchedCluster, namespace: str, service: str) -> set[str]:
    return {
        address
        for piece in world.all("EndpointSlice", namespace)
        if piece["metadata"]["labels"]["kubernetes.io/service-name"] == service
        for endpoint in piece.get("endpoints") or []
        if endpoint["conditions"]["ready"]
        for address in endpoint["addresses"]
    }


def _ready_since(pod: Document) -> str:
    return next(
        str(condition["lastTransitionTime"])
        for condition in pod["status"]["conditions"]
        if condition["type"] == "Ready"
    )


def _name(thing: Document) -> str:
    return str(thing["metadata"]["name"])
