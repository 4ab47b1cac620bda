"""Pods that a WorkloadSpread has put into subsets, and that kube-scheduler puts on their nodes.

A real ReplicaSet controller makes the pods, and ``reprieve controllers`` answers the API server's
webhooks. Each subset is a zone, and each zone has one node.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

from tests.conformance.controller_processes import SPREADING, real, running
from tests.conformance.objects import NAMESPACE, Document, replica_set
from tests.conformance.scheduling.pods import ZONE, host, newcomer, resident
from tests.conformance.scheduling.releases import built
from tests.conformance.scheduling.servers import Server
from tests.conformance.scheduling.stage import Scene, Setting, Stage
from tests.conformance.watched_cluster import watched
from tests.conformance.workloadspread_cluster import DEFINITION, is_active, subset_of

_REGISTERED: Final = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
_CONFIGURATION: Final = "reprieve-workloadspread"
_WEB: Final = {"app": "web"}


@asynccontextmanager
async def spreading(server: Server) -> AsyncIterator[None]:
    """Have WorkloadSpreads kept, and ReplicaSets; the server asks before a pod is made."""
    await server.load([DEFINITION])
    async with (
        running(SPREADING, server.kubeconfig, "workloadspread"),
        running(real(built("controllers")), server.kubeconfig, "replicaset"),
        watched(server.session(), *_REGISTERED) as there,
    ):
        await there.until(lambda: all(there.get(kind, _CONFIGURATION, "") for kind in _REGISTERED))
        yield


async def subsets_in_turn(stage: Stage) -> None:
    """A subset that has as many pods as it takes passes the next on, whatever room its node has.

    kube-scheduler would rather have used the roomiest node, which is that of the last subset.
    """
    await stage.load(*_zones(a="4", b="2", c="32"))
    await _spread(stage, a=2, b=1, c=None)
    await _web(stage, 5, priority=5)
    await stage.world.until(lambda: len(_placed(stage)) == 5)
    assert _counted(stage) == {("a", "node-a"): 2, ("b", "node-b"): 1, ("c", "node-c"): 2}
    assert stage.removed() == []
    assert "requiredNodeSelectorTerm" in (await _in_the_older_version(stage))["subsets"][0]


async def a_subset_makes_room(stage: Stage) -> None:
    """Pods that have to be in a full zone preempt pods there, though other zones are free."""
    await stage.load(*_zones(a="2", b="4"), resident("cheap", "node-a", priority=1))
    await _spread(stage, a=2, b=None)
    await _web(stage, 3, priority=50)
    assert await stage.told_to_go(1) == ["cheap"]
    await stage.let_go()
    await stage.world.until(lambda: len(_placed(stage)) == 3)
    assert _counted(stage) == {("a", "node-a"): 2, ("b", "node-b"): 1}
    assert set(stage.removed()) == {"cheap"}


async def a_spread_pod_goes_and_comes_back(stage: Stage) -> None:
    """The pod that replaces a victim belongs to its subset, and waits until it fits."""
    await _preempt(stage, {})
    assert Counter(map(subset_of, _waiting(stage))) == {"a": 2}
    for pod in _waiting(stage):
        await stage.refused(pod["metadata"]["name"])
    await stage.world.delete("Pod", "urgent", gracePeriodSeconds=0)
    await stage.world.until(lambda: len(_placed(stage)) == 3)
    assert _counted(stage) == {("a", "node-a"): 2, ("b", "node-b"): 1}


async def a_spread_pod_goes_elsewhere(stage: Stage) -> None:
    """If the spread is adaptive, a subset that is out of room for a second passes pods on.

    Free capacity is not estimated beforehand: a pod that has to wait is rescheduled.
    """
    adaptive = {"rescheduleCriticalSeconds": 1, "disableSimulationSchedule": True}
    await _preempt(stage, {"type": "Adaptive", "adaptive": adaptive})
    await stage.load(host("node-b2", cpu="4", zone="b"))
    await stage.world.until(lambda: len(_placed(stage)) == 3)
    assert _counted(stage) == {("b", "node-b"): 1, ("b", "node-b2"): 2}
    assert stage.node_of("urgent") == "node-a"


async def _preempt(stage: Stage, strategy: Mapping[str, Any]) -> None:
    """Have an urgent pod take the place of the two that the first of two subsets has."""
    await stage.load(*_zones(a="2", b="3"), resident("dear", "node-b", priority=10))
    await _spread(stage, strategy, a=2, b=None)
    await _web(stage, 3, priority=5)
    await stage.world.until(lambda: len(_placed(stage)) == 3)
    assert _counted(stage) == {("a", "node-a"): 2, ("b", "node-b"): 1}
    victims = sorted(p["metadata"]["name"] for p in _placed(stage) if subset_of(p) == "a")
    await stage.world.create(newcomer("urgent"))
    assert await stage.nominated("urgent") == {"urgent": "node-a"}
    assert await stage.told_to_go(2) == victims
    await stage.world.until(lambda: len(_waiting(stage)) == 2)
    await stage.let_go()
    await stage.placed("urgent")
    assert stage.removed() == victims


async def _spread(
    stage: Stage, strategy: Mapping[str, Any] | None = None, **limits: int | None
) -> None:
    """Make the WorkloadSpread of the ReplicaSet web: a subset for each zone, with its limit."""
    subsets = [_subset(zone, limit) for zone, limit in limits.items()]
    target = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web"}
    spec = {"targetRef": target, "subsets": subsets, "scheduleStrategy": dict(strategy or {})}
    await stage.world.create(
        {
            "apiVersion": "apps.kruise.io/v1beta1",
            "kind": "WorkloadSpread",
            "metadata": {"name": "web", "namespace": NAMESPACE},
            "spec": spec,
        }
    )


def _subset(zone: str, limit: int | None) -> Document:
    wanted = {"key": ZONE, "operator": "In", "values": [zone]}
    taken = {} if limit is None else {"maxReplicas": limit}
    return {"name": zone, "requiredNodeSelector": {"matchExpressions": [wanted]}, **taken}


async def _in_the_older_version(stage: Stage) -> Document:
    """Read the spec of the WorkloadSpread as v1alpha1, into which a webhook converts it."""
    where = f"/apis/apps.kruise.io/v1alpha1/namespaces/{NAMESPACE}/workloadspreads/web"
    async with stage.server.session() as http, http.get(where) as answer:
        assert answer.status == 200, await answer.text()
        spec: Document = (await answer.json())["spec"]
        return spec


async def _web(stage: Stage, replicas: int, priority: int) -> None:
    """Make the ReplicaSet web, whose pods want one core each, and come when it is known as spread.

    A webhook that has not seen a WorkloadSpread yet lets the pods of its target pass.
    """
    spec = newcomer("web", "1", priority)["spec"]
    template = {"metadata": {"labels": _WEB}, "spec": spec}
    await stage.world.create(replica_set("web", 0, template=template))
    async with watched(stage.server.session(), "WorkloadSpread") as there:
        await there.until(lambda: _is_looked_at(there.get("WorkloadSpread", "web")))
    await stage.world.patch("ReplicaSet", "web", {"spec": {"replicas": replicas}})


def _is_looked_at(spread: Document | None) -> bool:
    return spread is not None and "observedGeneration" in spread.get("status", {})


def _zones(**cores: str) -> list[Document]:
    return [host(f"node-{zone}", cpu=cpu, zone=zone) for zone, cpu in cores.items()]


def _pods(stage: Stage) -> list[Document]:
    """Return the active pods of web."""
    pods = stage.world.all("Pod")
    return [p for p in pods if _WEB.items() <= _labels(p).items() and is_active(p)]


def _labels(pod: Document) -> Mapping[str, str]:
    found: Mapping[str, str] = pod["metadata"].get("labels", {})
    return found


def _placed(stage: Stage) -> list[Document]:
    return [pod for pod in _pods(stage) if pod["spec"].get("nodeName")]


def _waiting(stage: Stage) -> list[Document]:
    return [pod for pod in _pods(stage) if not pod["spec"].get("nodeName")]


def _counted(stage: Stage) -> dict[tuple[str, str], int]:
    """Count the pods of web that have landed, by their subset and their node."""
    return dict(Counter((subset_of(pod), pod["spec"]["nodeName"]) for pod in _placed(stage)))


_SPREADING: Final = Setting(beside=spreading)

SCENES: Final = [
    Scene(subsets_in_turn, _SPREADING),
    Scene(a_subset_makes_room, _SPREADING),
    Scene(a_spread_pod_goes_and_comes_back, _SPREADING),
    Scene(a_spread_pod_goes_elsewhere, _SPREADING),
]
