"""Pods that a WorkloadSpread puts into subsets and kube-scheduler binds to nodes.

A real ReplicaSet controller creates the pods, and ``reprieve controllers`` answers the API server's
webhooks. Each subset is a zone, and each zone has one node.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

from tests.builders import Document
from tests.conformance.clusters.controller_processes import SPREADING, real, running
from tests.conformance.clusters.watched_cluster import watched
from tests.conformance.clusters.workloadspread_cluster import (
    DEFINITION,
    WEBHOOK_KINDS,
    are_webhooks_registered,
    is_active,
    subset_of,
    zone_spread,
)
from tests.conformance.objects import NAMESPACE, replica_set
from tests.conformance.scheduling.environment import Environment, SchedulingScenario, Setting
from tests.conformance.scheduling.pods import bound_pod, pending_pod, small_node
from tests.conformance.scheduling.releases import built
from tests.conformance.scheduling.servers import Server


@asynccontextmanager
async def spread_controllers(server: Server) -> AsyncIterator[None]:
    """Run the controllers of WorkloadSpreads and ReplicaSets, and the webhooks of the former."""
    await server.load([DEFINITION])
    async with (
        running(SPREADING, server.kubeconfig, "workloadspread"),
        running(real(built("controllers")), server.kubeconfig, "replicaset"),
        watched(server.session(), *WEBHOOK_KINDS) as configurations,
    ):
        await configurations.until(lambda: are_webhooks_registered(configurations))
        yield


async def subsets_are_filled_in_order(env: Environment) -> None:
    """Pods beyond the limit of a subset are put into the next one, however free its node is.

    kube-scheduler alone would prefer the freest node, which is that of the last subset.
    """
    await env.load(*_zones(a="4", b="2", c="32"))
    await _spread(env, a=2, b=1, c=None)
    await _web(env, 5, priority=5)
    await env.cluster.until(lambda: len(_placed(env)) == 5)
    assert _counted(env) == {("a", "node-a"): 2, ("b", "node-b"): 1, ("c", "node-c"): 2}
    assert env.deleted() == []
    assert "requiredNodeSelectorTerm" in (await _in_the_older_version(env))["subsets"][0]


async def a_full_subset_preempts(env: Environment) -> None:
    """Pods that require a full zone preempt pods there, even if other zones are free."""
    await env.load(*_zones(a="2", b="4"), bound_pod("cheap", "node-a", priority=1))
    await _spread(env, a=2, b=None)
    await _web(env, 3, priority=50)
    assert await env.wait_for_deletions(1) == ["cheap"]
    await env.remove_terminating()
    await env.cluster.until(lambda: len(_placed(env)) == 3)
    assert _counted(env) == {("a", "node-a"): 2, ("b", "node-b"): 1}
    assert set(env.deleted()) == {"cheap"}


async def a_preempted_spread_pod_is_replaced(env: Environment) -> None:
    """The pod that replaces a victim is put into its subset, and stays pending until it fits."""
    await _preempt(env, {})
    assert Counter(map(subset_of, _waiting(env))) == {"a": 2}
    for pod in _waiting(env):
        await env.wait_unschedulable(pod["metadata"]["name"])
    await env.cluster.delete("Pod", "urgent", gracePeriodSeconds=0)
    await env.cluster.until(lambda: len(_placed(env)) == 3)
    assert _counted(env) == {("a", "node-a"): 2, ("b", "node-b"): 1}


async def a_preempted_spread_pod_is_rescheduled(env: Environment) -> None:
    """With the adaptive strategy, pods of a subset that is full for a second are rescheduled.

    Free capacity is not estimated beforehand: a pod that stays pending is rescheduled.
    """
    adaptive = {"rescheduleCriticalSeconds": 1, "disableSimulationSchedule": True}
    await _preempt(env, {"type": "Adaptive", "adaptive": adaptive})
    await env.load(small_node("node-b2", cpu="4", zone="b"))
    await env.cluster.until(lambda: len(_placed(env)) == 3)
    assert _counted(env) == {("b", "node-b"): 1, ("b", "node-b2"): 2}
    assert env.node_of("urgent") == "node-a"


async def _preempt(env: Environment, strategy: Mapping[str, Any]) -> None:
    """Preempt both pods of the first of two subsets."""
    await env.load(*_zones(a="2", b="3"), bound_pod("dear", "node-b", priority=10))
    await _spread(env, strategy, a=2, b=None)
    await _web(env, 3, priority=5)
    await env.cluster.until(lambda: len(_placed(env)) == 3)
    assert _counted(env) == {("a", "node-a"): 2, ("b", "node-b"): 1}
    victims = sorted(p["metadata"]["name"] for p in _placed(env) if subset_of(p) == "a")
    await env.cluster.create(pending_pod("urgent"))
    assert await env.wait_nominated("urgent") == {"urgent": "node-a"}
    assert await env.wait_for_deletions(2) == victims
    await env.cluster.until(lambda: len(_waiting(env)) == 2)
    await env.remove_terminating()
    await env.wait_bound("urgent")
    assert env.deleted() == victims


async def _spread(
    env: Environment, strategy: Mapping[str, Any] | None = None, **limits: int | None
) -> None:
    """Create the WorkloadSpread of the ReplicaSet web: a subset for each zone, with its limit."""
    spread = zone_spread("ReplicaSet", limits, scheduleStrategy=dict(strategy or {}))
    await env.cluster.create(spread)


async def _in_the_older_version(env: Environment) -> Document:
    """Read the spec of the WorkloadSpread as v1alpha1, into which a webhook converts it."""
    where = f"/apis/apps.kruise.io/v1alpha1/namespaces/{NAMESPACE}/workloadspreads/web"
    async with env.server.session() as http, http.get(where) as answer:
        assert answer.status == 200, await answer.text()
        spec: Document = (await answer.json())["spec"]
        return spec


async def _web(env: Environment, replicas: int, priority: int) -> None:
    """Create the ReplicaSet web, and its pods of one core each once its spread is synced.

    A webhook that has not seen a WorkloadSpread yet admits the pods of its target unchanged.
    """
    pod = pending_pod("web", "1", priority)["spec"]
    await env.cluster.create(replica_set("web", 0, pod=pod))
    async with watched(env.server.session(), "WorkloadSpread") as spreads:
        await spreads.until(lambda: _is_synced(spreads.get("WorkloadSpread", "web")))
    await env.cluster.patch("ReplicaSet", "web", {"spec": {"replicas": replicas}})


def _is_synced(spread: Document | None) -> bool:
    return spread is not None and "observedGeneration" in spread.get("status", {})


def _zones(**cores: str) -> list[Document]:
    return [small_node(f"node-{zone}", cpu=cpu, zone=zone) for zone, cpu in cores.items()]


def _pods(env: Environment) -> list[Document]:
    """Return the active pods of web."""
    labelled = [pod for pod in env.cluster.all("Pod") if "labels" in pod["metadata"]]
    return [p for p in labelled if p["metadata"]["labels"].get("app") == "web" and is_active(p)]


def _placed(env: Environment) -> list[Document]:
    return [pod for pod in _pods(env) if pod["spec"].get("nodeName")]


def _waiting(env: Environment) -> list[Document]:
    return [pod for pod in _pods(env) if not pod["spec"].get("nodeName")]


def _counted(env: Environment) -> dict[tuple[str, str], int]:
    """Count the bound pods of web by their subset and node."""
    return dict(Counter((subset_of(pod), pod["spec"]["nodeName"]) for pod in _placed(env)))


SCENARIOS: Final = [
    SchedulingScenario(play, Setting(alongside=spread_controllers))
    for play in (
        *(subsets_are_filled_in_order, a_full_subset_preempts),
        *(a_preempted_spread_pod_is_replaced, a_preempted_spread_pod_is_rescheduled),
    )
]
