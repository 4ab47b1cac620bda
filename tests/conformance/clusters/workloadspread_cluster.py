"""A Deployment that real controllers roll out, and the WorkloadSpread of its pods.

The real Deployment and ReplicaSet controllers are one process; the webhooks and the controller of
WorkloadSpreads are another. The kubelets are fakeapi's. Each pod is bound to the node of the zone
that its node affinity requires, as kube-scheduler would do.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import aiohttp
import orjson
import yaml

from fakeapi import FakeCluster
from tests.builders import Document, manifest, without_none, workload_json
from tests.conformance.clusters.controller_processes import SPREADING, Controllers, running
from tests.conformance.clusters.watched_cluster import WatchedCluster
from tests.conformance.clusters.world import World, follow
from tests.conformance.objects import COST, NAMESPACE, NAMESPACE_DOCUMENT, TEMPLATE_SPEC

ZONE: Final = "topology.kubernetes.io/zone"
LIMITS: Final[Mapping[str, int | None]] = {"a": 4, "b": 8, "c": None}
"""Subsets, one for each zone, and their limits."""
COSTS: Final = {"a": 300, "b": 200, "c": 100}
COSTS_OF_AN_OLD_VERSION: Final = {"a": 100, "b": 200, "c": 300}
SCRIPT: Final = "kubelet.fakeapi/script"

_ANNOTATION: Final = "apps.kruise.io/matched-workloadspread"
_HASH: Final = "pod-template-hash"
WEBHOOK_KINDS: Final = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
_CONFIGURATION: Final = "reprieve-workloadspread"
_CRD: Final = Path(__file__).parents[3] / "deploy/crds/workloadspreads.apps.kruise.io.yaml"
DEFINITION: Final[Document] = yaml.safe_load(_CRD.read_text())
_UNBOUND: Final = {"watch": "true", "fieldSelector": "spec.nodeName=", "timeoutSeconds": "3600"}
_PODS: Final = f"/api/v1/namespaces/{NAMESPACE}/pods"

SIMULATION_SCRIPT: Final[Document] = {
    "register": [
        {"name": f"node-{zone}", "labels": {ZONE: zone}, "capacity": {"cpu": "64", "pods": "500"}}
        for zone in LIMITS
    ],
    "pods": [
        {"match": {"labels": {"version": "slow"}}, "start": "0s", "stages": [{"ready": False}]},
        {"match": {"labels": {"app": "*"}}, "start": "0s", "stages": [{}]},
    ],
}
"""Pods are ready at once; those of the version ``slow`` when the scenario sets it."""


def web(replicas: int, version: str = "first") -> Document:
    """Build the Deployment web, which surges by three pods and keeps all replicas available."""
    return workload_json(
        "Deployment",
        "web",
        replicas,
        namespace=NAMESPACE,
        labels={"version": version},
        pod=TEMPLATE_SPEC,
        strategy={"rollingUpdate": {"maxSurge": 3, "maxUnavailable": 0}},
    )


def zone_spread(
    kind: str = "Deployment", limits: Mapping[str, int | None] = LIMITS, **spec: Any
) -> Document:
    """Build the WorkloadSpread of the workload web: a subset for each zone, with its limit."""
    subsets = []
    for zone, limit in limits.items():
        in_zone = {"key": ZONE, "operator": "In", "values": [zone]}
        selector = {"matchExpressions": [in_zone]}
        subsets.append(without_none(name=zone, requiredNodeSelector=selector, maxReplicas=limit))
    target = {"apiVersion": "apps/v1", "kind": kind, "name": "web"}
    fields = {"targetRef": target, "subsets": subsets, **spec}
    return manifest("WorkloadSpread", "web", namespace=NAMESPACE, spec=fields)


class Rollout:
    """Actions on the Deployment web, and observations of its pods."""

    def __init__(self, world: World) -> None:
        self.world = world

    async def scale(self, replicas: int) -> None:
        """Set the number of replicas."""
        await self.world.patch("Deployment", "web", {"spec": {"replicas": replicas}}, "scale")

    async def roll_out(self, version: str) -> None:
        """Roll another version out."""
        template = {"metadata": {"labels": {"version": version}}}
        await self.world.patch("Deployment", "web", {"spec": {"template": template}})

    async def make_ready(self, pods: Collection[Document]) -> None:
        """Make pods of the slow version ready."""
        script = orjson.dumps({"start": "0s", "stages": [{"ready": True}]}).decode()
        for pod in pods:
            patch = {"metadata": {"annotations": {SCRIPT: script}}}
            await self.world.patch("Pod", pod["metadata"]["name"], patch)

    def pods(self, version: str = "", *subsets: str) -> list[Document]:
        """Return the active pods, of a version and of subsets if they are named."""
        return [
            pod
            for pod in self.world.all("Pod")
            if is_active(pod)
            and pod["metadata"]["labels"]["app"] == "web"
            and (not version or pod["metadata"]["labels"]["version"] == version)
            and (not subsets or subset_of(pod) in subsets)
        ]

    def placed(self, version: str = "") -> dict[str, int]:
        """Count the active pods of each subset."""
        return dict(Counter(subset_of(pod) for pod in self.pods(version)))

    def zones(self) -> set[tuple[str, str]]:
        """Return the subsets of the active pods, each with the node that such a pod runs on."""
        return {(subset_of(pod), pod["spec"].get("nodeName", "")) for pod in self.pods()}

    def costs(self, version: str) -> dict[str, set[int]]:
        """Return the costs that the active pods of each subset have."""
        found: dict[str, set[int]] = {}
        for pod in self.pods(version):
            cost = pod["metadata"]["annotations"].get(COST, "0")
            found.setdefault(subset_of(pod), set()).add(int(cost))
        return found

    def status(self) -> Document:
        """Return the status of the WorkloadSpread."""
        found = self.world.get("WorkloadSpread", "web")
        return (found or {}).get("status") or {}

    def counted(self, version: str = "") -> dict[str, tuple[int, int]]:
        """Return each subset's pods and missing replicas, by the status."""
        status = self.status()
        entries = status.get("subsetStatuses", ())
        if version:
            (template_hash,) = {p["metadata"]["labels"][_HASH] for p in self.pods(version)}
            entries = status.get("versionedSubsetStatuses", {}).get(template_hash, ())
        return {each["name"]: (each["replicas"], each["missingReplicas"]) for each in entries}

    async def wait_settled(self, version: str, *old: str, pods: int) -> None:
        """Return once there are so many pods, which run, and the status is up to date."""
        await self.world.wait_idle(
            lambda: len(self.pods()) == pods and self._is_up_to_date(version, old)
        )

    def _is_up_to_date(self, version: str, old: Collection[str]) -> bool:
        pods = self.pods()
        present = {pod["metadata"]["labels"]["version"] for pod in pods}
        hashes = {pod["metadata"]["labels"][_HASH] for pod in pods}
        statuses = self.status().get("versionedSubsetStatuses", {})
        return (
            present <= {version, *old}
            and all(pod["status"].get("phase") == "Running" for pod in pods)
            and set(statuses) == hashes
            and not any(map(_has_pending_pods, statuses.values()))
            and all(self._has_counted(each) for each in present)
            and all(COST in pod["metadata"]["annotations"] for pod in pods)
            and self._costs_are_written(version, old)
        )

    def _has_counted(self, version: str) -> bool:
        counted = {name: count for name, (count, _) in self.counted(version).items() if count}
        return counted == self.placed(version)

    def _costs_are_written(self, version: str, old: Collection[str]) -> bool:
        named = {version: COSTS, **dict.fromkeys(old, COSTS_OF_AN_OLD_VERSION)}
        return all(
            cost == {costs[subset]}
            for each, costs in named.items()
            for subset, cost in self.costs(each).items()
        )

    def check_limits(self) -> None:
        """Check that no subset ever had more active pods of a version than its limit."""

        def within_limits(present: Collection[Document]) -> bool:
            found = Counter(
                (pod["metadata"]["labels"][_HASH], subset_of(pod))
                for pod in present
                if is_active(pod) and subset_of(pod)
            )
            return all(count <= (LIMITS[subset] or count) for (_, subset), count in found.items())

        self.world.cluster.history("pods", NAMESPACE).always(within_limits)


def subset_of(pod: Document) -> str:
    """Return the subset that a pod has been put into; "" if it is of none."""
    written = pod["metadata"].get("annotations", {}).get(_ANNOTATION)
    return "" if written is None else str(orjson.loads(written)["subset"])


def is_active(pod: Document) -> bool:
    """Return whether a pod has neither finished nor is terminating."""
    finished = pod.get("status", {}).get("phase") in ("Succeeded", "Failed")
    return not finished and "deletionTimestamp" not in pod["metadata"]


@asynccontextmanager
async def rollout(real: Controllers, script: Path) -> AsyncIterator[Rollout]:
    """Run the controllers in a cluster with the WorkloadSpread web and its Deployment of 0 pods."""
    async with (
        spread_cluster(script, DEFINITION) as world,
        running(SPREADING, world.cluster.url, "workloadspread"),
        running(real, world.cluster.url, "replicaset,deployment"),
    ):
        await webhooks_registered(world)
        await world.create(zone_spread())
        await world.create(web(0))
        yield Rollout(world)


@asynccontextmanager
async def spread_cluster(
    script: Path, *objects: Mapping[str, Any], run: str = "gc,namespaces,kubelet"
) -> AsyncIterator[World]:
    """Run a cluster whose kubelets follow a simulation script and whose pods are bound by zone."""
    with FakeCluster.as_process(run=run, kubelet=script) as cluster:
        cluster.load((NAMESPACE_DOCUMENT, *objects))
        async with follow(cluster) as world, asyncio.TaskGroup() as group:
            world.follow("Namespace", *WEBHOOK_KINDS)
            binder = group.create_task(_bind_pods(cluster.url))
            yield world
            binder.cancel()


async def webhooks_registered(world: World) -> None:
    """Return once the API server calls the webhooks; WorkloadSpreads are watched from then on."""
    await world.until(lambda: are_webhooks_registered(world))
    world.follow("WorkloadSpread")


def are_webhooks_registered(cluster: WatchedCluster) -> bool:
    """Return whether the API server knows the webhooks of WorkloadSpreads."""
    return all(cluster.get(kind, _CONFIGURATION, "") for kind in WEBHOOK_KINDS)


async def _bind_pods(url: str) -> None:
    """Bind each pod that requires a zone to the zone's node."""
    endless = aiohttp.ClientTimeout(total=None)
    async with (
        aiohttp.ClientSession(url, timeout=endless, read_bufsize=2**20) as http,
        http.get(_PODS, params=_UNBOUND) as answer,
    ):
        async for line in answer.content:
            event = orjson.loads(line)
            zone = _zone_of(event["object"])
            if event["type"] != "DELETED" and zone:
                await _bind(http, event["object"]["metadata"]["name"], f"node-{zone}")


async def _bind(http: aiohttp.ClientSession, pod: str, node: str) -> None:
    target = {"apiVersion": "v1", "kind": "Node", "name": node}
    body = manifest("Binding", pod, namespace=NAMESPACE, target=target)
    async with http.post(f"{_PODS}/{pod}/binding", json=body) as answer:
        assert answer.status in (201, 404, 409), await answer.text()  # it may be terminating


def _zone_of(pod: Document) -> str:
    affinity = pod["spec"].get("affinity", {}).get("nodeAffinity", {})
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution", {})
    for term in required.get("nodeSelectorTerms", ()):
        for expression in term.get("matchExpressions", ()):
            if expression["key"] == ZONE:
                return str(expression["values"][0])
    return ""


def _has_pending_pods(entries: Collection[Document]) -> bool:
    return any(each.get("creatingPods") or each.get("deletingPods") for each in entries)
