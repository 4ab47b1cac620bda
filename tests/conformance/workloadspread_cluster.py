"""A Deployment that a real Kubernetes rolls out, and a WorkloadSpread that its pods follow.

The Deployment and ReplicaSet controllers are real ones, a process of theirs; the webhooks and the
controller of WorkloadSpreads are another process. Kubelets are fakeapi's, and a binder puts each
pod on the node of the zone that its node affinity asks for, as kube-scheduler would have to.
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
from tests.conformance.controller_processes import SPREADING, Contender, running
from tests.conformance.objects import COST, NAMESPACE, TEMPLATE_SPEC, Document
from tests.conformance.world import World, world

ZONE: Final = "topology.kubernetes.io/zone"
LIMITS: Final[Mapping[str, int | None]] = {"a": 4, "b": 8, "c": None}
"""Subsets, one for each zone, and how many pods each takes."""
COSTS: Final = {"a": 300, "b": 200, "c": 100}
COSTS_OF_AN_OLD_VERSION: Final = {"a": 100, "b": 200, "c": 300}
SCRIPT: Final = "kubelet.fakeapi/script"

_ANNOTATION: Final = "apps.kruise.io/matched-workloadspread"
_HASH: Final = "pod-template-hash"
_REGISTERED: Final = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
_CONFIGURATION: Final = "reprieve-workloadspread"
_CRD: Final = Path(__file__).parents[2] / "deploy/crds/workloadspreads.apps.kruise.io.yaml"
DEFINITION: Final[Document] = yaml.safe_load(_CRD.read_text())
_UNBOUND: Final = {"watch": "true", "fieldSelector": "spec.nodeName=", "timeoutSeconds": "3600"}
NAMESPACE_DOCUMENT: Final = {
    "kind": "Namespace",
    "apiVersion": "v1",
    "metadata": {"name": NAMESPACE},
}
_PODS: Final = f"/api/v1/namespaces/{NAMESPACE}/pods"

BOOK: Final[Document] = {
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
    """Return the Deployment web, which is rolled out three pods at a time, none missing."""
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": NAMESPACE},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "strategy": {"rollingUpdate": {"maxSurge": 3, "maxUnavailable": 0}},
            "template": {
                "metadata": {"labels": {"app": "web", "version": version}},
                "spec": TEMPLATE_SPEC,
            },
        },
    }


def spread() -> Document:
    """Return the WorkloadSpread of the Deployment web: a subset for each zone."""
    subsets = [
        {
            "name": zone,
            "requiredNodeSelector": {
                "matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]
            },
            **({} if limit is None else {"maxReplicas": limit}),
        }
        for zone, limit in LIMITS.items()
    ]
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    return {
        "apiVersion": "apps.kruise.io/v1beta1",
        "kind": "WorkloadSpread",
        "metadata": {"name": "web", "namespace": NAMESPACE},
        "spec": {"targetRef": target, "subsets": subsets},
    }


class Rollout:
    """Actions on the Deployment web, and observations of its pods."""

    def __init__(self, world: World) -> None:
        self.world = world

    async def scale(self, replicas: int) -> None:
        """Ask for another number of replicas."""
        await self.world.patch("Deployment", "web", {"spec": {"replicas": replicas}}, "scale")

    async def become(self, version: str) -> None:
        """Roll another version out."""
        template = {"metadata": {"labels": {"version": version}}}
        await self.world.patch("Deployment", "web", {"spec": {"template": template}})

    async def let_run(self, pods: Collection[Document]) -> None:
        """Have pods of the slow version become ready."""
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
        told = self.status()
        if version:
            (template_hash,) = {p["metadata"]["labels"][_HASH] for p in self.pods(version)}
            entries = told.get("versionedSubsetStatuses", {}).get(template_hash, ())
        else:
            entries = told.get("subsetStatuses", ())
        return {each["name"]: (each["replicas"], each["missingReplicas"]) for each in entries}

    async def settled(self, version: str, *old: str, pods: int) -> None:
        """Return once there are so many pods, ready or stuck, and the status is up to date."""
        await self.world.at_rest(
            lambda: len(self.pods()) == pods and self._all_is_said(version, old)
        )

    def _all_is_said(self, version: str, old: Collection[str]) -> bool:
        pods = self.pods()
        there = {pod["metadata"]["labels"]["version"] for pod in pods}
        hashes = {pod["metadata"]["labels"][_HASH] for pod in pods}
        told = self.status().get("versionedSubsetStatuses", {})
        return (
            there <= {version, *old}
            and all(pod["status"].get("phase") == "Running" for pod in pods)
            and set(told) == hashes
            and all(map(_nothing_is_under_way, told.values()))
            and all(self._counts(each) for each in there)
            and all(COST in pod["metadata"]["annotations"] for pod in pods)
            and self._costs_are_written(version, old)
        )

    def _counts(self, version: str) -> bool:
        placed = self.placed(version)
        said = {name: count for name, (count, _) in self.counted(version).items() if count}
        return said == placed

    def _costs_are_written(self, version: str, old: Collection[str]) -> bool:
        named = {version: COSTS, **dict.fromkeys(old, COSTS_OF_AN_OLD_VERSION)}
        return all(
            cost == {costs[subset]}
            for each, costs in named.items()
            for subset, cost in self.costs(each).items()
        )

    def never_overfull(self) -> None:
        """Check that no subset ever had more active pods of a version than it takes."""

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
    """Return whether a pod neither finished nor is about to go."""
    finished = pod.get("status", {}).get("phase") in ("Succeeded", "Failed")
    return not finished and "deletionTimestamp" not in pod["metadata"]


@asynccontextmanager
async def rollout(real: Contender, book: Path) -> AsyncIterator[Rollout]:
    """Have a cluster in which WorkloadSpreads are kept, and the Deployment web without pods."""
    async with (
        stage(book, DEFINITION) as there,
        running(SPREADING, there.cluster.url, "workloadspread"),
        running(real, there.cluster.url, "replicaset,deployment"),
    ):
        await webhooks_registered(there)
        await there.create(spread())
        await there.create(web(0))
        yield Rollout(there)


@asynccontextmanager
async def stage(
    book: Path, *objects: Mapping[str, Any], run: str = "gc,namespaces,kubelet"
) -> AsyncIterator[World]:
    """Have a cluster with kubelets that go by a book, and a binder; ``run`` are its parts."""
    with FakeCluster.as_process(run=run, kubelet=book) as cluster:
        cluster.load((NAMESPACE_DOCUMENT, *objects))
        async with world(cluster) as there, asyncio.TaskGroup() as group:
            there.follow("Namespace", *_REGISTERED)
            binder = group.create_task(_bind_pods(cluster.url))
            yield there
            binder.cancel()


async def webhooks_registered(there: World) -> None:
    """Return once the API server calls the webhooks; WorkloadSpreads are watched from then on."""
    await there.until(lambda: all(there.get(kind, _CONFIGURATION, "") for kind in _REGISTERED))
    there.follow("WorkloadSpread")


async def _bind_pods(url: str) -> None:
    """Put each pod that asks for a zone on its node."""
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
    body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod}, "target": target}
    async with http.post(f"{_PODS}/{pod}/binding", json=body) as answer:
        assert answer.status in (201, 404, 409), await answer.text()  # it may be about to go


def _zone_of(pod: Document) -> str:
    affinity = pod["spec"].get("affinity", {}).get("nodeAffinity", {})
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution", {})
    for term in required.get("nodeSelectorTerms", ()):
        for expression in term.get("matchExpressions", ()):
            if expression["key"] == ZONE:
                return str(expression["values"][0])
    return ""


def _nothing_is_under_way(entries: Collection[Document]) -> bool:
    return not any(each.get("creatingPods") or each.get("deletingPods") for each in entries)
