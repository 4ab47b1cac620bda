"""Many clusters scheduled by one real kube-scheduler, one after another.

fakeapi and an extender that returns its input run in this process, the scheduler in another.
Between clusters everything is deleted, so that the scheduler's caches stay valid.

Watches of different kinds deliver events in any order. So before each pod a *marker*, a tiny pod
that fits only its own node, has to be bound: then the scheduler has received all earlier events.
The node and the markers are part of the cluster for both sides.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

import aiohttp
import orjson
from aiohttp import web

from fakeapi import FakeCluster
from fakeapi.apiserver.endpoints import Api, Request, Response
from tests.builders import Document, manifest, node_json, pod_json, rfc3339
from tests.conformance.scheduling.kube_scheduler import (
    Extender,
    configuration,
    gate_flags,
    kube_scheduler,
)
from tests.differential import volumes
from tests.differential.case import Answer, Case, Offer
from tests.differential.random_clusters import NAMESPACES, SCHEDULER, Generated

PATIENCE_SECONDS: Final = 60.0
_MARKERS: Final = "witnesses"
_CLAIMS_OF_DEVICES: Final = "/apis/resource.k8s.io/v1/resourceclaims"
_KINDS: Final = (
    "/api/v1/namespaces",
    "/api/v1/nodes",
    "/api/v1/persistentvolumes",
    "/api/v1/persistentvolumeclaims",
    "/apis/storage.k8s.io/v1/csinodes",
    "/apis/storage.k8s.io/v1/csidrivers",
    "/apis/storage.k8s.io/v1/csistoragecapacities",
    "/apis/storage.k8s.io/v1/storageclasses",
    "/apis/policy/v1/poddisruptionbudgets",
    "/apis/resource.k8s.io/v1/deviceclasses",
    "/apis/resource.k8s.io/v1/resourceslices",
    _CLAIMS_OF_DEVICES,
    "/apis/scheduling.k8s.io/v1beta1/podgroups",
    "/api/v1/pods",
)
_CLUSTER_WIDE: Final = tuple(
    path
    for path in _KINDS[1:]
    if not path.endswith(("claims", "capacities", "budgets", "groups", "pods"))
)
_NAMESPACED: Final = (
    ("/api/v1", "persistentvolumeclaims"),
    ("/apis/storage.k8s.io/v1", "csistoragecapacities"),
    ("/apis/policy/v1", "poddisruptionbudgets"),
    ("/apis/resource.k8s.io/v1", "resourceclaims"),
    ("/apis/scheduling.k8s.io/v1beta1", "podgroups"),
)
_LATER: Final = 1_760_000_000
"""A time after that at which any generated pod has started, and long ago."""
_LONGEST_LINE: Final = 2**22


class UnansweredError(RuntimeError):
    """The scheduler did not do in time what the text names."""


@dataclass(slots=True)
class ScheduleRunner:
    """Has a scheduler schedule pods: the API that it watches, and its calls to its extender."""

    api: Api
    load: Callable[[Sequence[Document]], int]
    upstream: str
    gates: Mapping[str, bool]
    _pods: dict[str, Document] = field(default_factory=dict)
    _messages: dict[str, str] = field(default_factory=dict)
    _offers: dict[str, dict[str, Offer]] = field(default_factory=dict)
    _others: set[tuple[str, str]] = field(default_factory=set)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    _markers: int = 0
    _running: int = 0

    async def schedule_all(self, name: str, generated: Generated) -> list[Case]:
        """Load a cluster, schedule its pods, and delete it again."""
        self.load([*generated.items, _marker_node()])
        cases: list[Case] = []
        for number, pod in enumerate(generated.pods):
            cases.append(await self._schedule(f"{name}-{number}", pod))
            if _has_lost_nomination(cases):
                break  # a pod that lost its nominated node is scheduled again at once
        await self._clear()
        return cases

    async def _schedule(self, name: str, pod: Document) -> Case:
        await self._wait_for_marker()
        items = self._items()
        uid = pod["metadata"]["uid"]
        self._others.clear()
        self.load([pod])
        await self._until(f"an answer to {name}", lambda: self._is_answered(uid))
        answer = self._answer(uid, items)
        case = Case(name, self.upstream, items, pod, answer, self.gates)
        if case.answer.bound_to:
            self._start(uid)
        elif not case.answer.nominated_node:
            self._delete(_path(pod))  # or it would be scheduled again after changes
        return case

    def _start(self, uid: str) -> None:
        """Start a bound pod: the order of victims that have not started is random."""
        self._running += 1
        pod, started = self._pods[uid], rfc3339(_LATER + self._running)
        status = {**pod["status"], "phase": "Running", "startTime": started}
        self.load([{**pod, "kind": "Pod", "apiVersion": "v1", "status": status}])

    def _is_answered(self, uid: str) -> bool:
        pod = self._pods.get(uid)
        if pod is None or self._is_bound(uid):
            return pod is not None
        if not (nominated := pod["status"].get("nominatedNodeName")):
            return uid in self._messages
        if uid not in self._offers:
            return False  # since 1.35 also a pod whose volumes are being bound is nominated
        return all(map(self._is_leaving, self._offers[uid][nominated].victims))

    def _is_leaving(self, uid: str) -> bool:
        pod = self._pods.get(uid)
        return pod is None or "deletionTimestamp" in pod["metadata"]

    def _answer(self, uid: str, items: Sequence[Document]) -> Answer:
        pod, offers = self._pods[uid], self._offers.get(uid, {})
        nominated = "" if self._is_bound(uid) else pod["status"].get("nominatedNodeName", "")
        own = offers[nominated].victims if nominated else ()
        others = {victim for runner, victim in self._others if runner != uid}.difference(own)
        staying = [
            item["metadata"]["uid"]
            for item in items
            if item["kind"] == "Pod" and "deletionTimestamp" not in item["metadata"]
        ]
        return Answer(
            bound_to=pod["spec"].get("nodeName", ""),
            candidates=self._offers.get(uid),
            nominated_node=nominated,
            victims=tuple(sorted(filter(self._is_leaving, {*staying} - others))),
            message=self._messages.get(uid, ""),
        )

    async def _wait_for_marker(self) -> None:
        """Return once the scheduler has received all events.

        A marker that arrives before its node would be tried again only after a second, so another
        one replaces it.
        """
        while True:
            self._markers += 1
            pod = _marker(self._markers)
            uid = pod["metadata"]["uid"]
            self.load([pod])
            await self._until("a witness", partial(self._has_result, uid))
            if self._is_bound(uid):
                return
            self._delete(_path(pod))

    def _has_result(self, uid: str) -> bool:
        return self._is_bound(uid) or uid in self._messages

    def _is_bound(self, uid: str) -> bool:
        pod = self._pods.get(uid)
        return pod is not None and "nodeName" in pod["spec"]

    async def _clear(self) -> None:
        for namespace in (*NAMESPACES, _MARKERS):
            for root, plural in (("/api/v1", "pods"), *_NAMESPACED):
                self._delete(f"{root}/namespaces/{namespace}/{plural}")
        for path in _CLUSTER_WIDE:
            self._delete(path)
        self._release_claims()
        await self._until("an empty cluster", lambda: not self._pods)
        self._messages.clear()
        self._offers.clear()

    def _release_claims(self) -> None:
        """Let go of the deleted claims of devices, as their controller does."""
        listed = self.api.handle(Request("GET", _CLAIMS_OF_DEVICES))
        for claim in orjson.loads(_succeeded(listed, _CLAIMS_OF_DEVICES).body)["items"]:
            meta = claim["metadata"]
            root = _CLAIMS_OF_DEVICES.replace("/resourceclaims", "")
            path = f"{root}/namespaces/{meta['namespace']}/resourceclaims/{meta['name']}"
            patch = b'{"metadata":{"finalizers":null}}'
            media_type = "application/merge-patch+json"
            _succeeded(self.api.handle(Request("PATCH", path, {}, patch, media_type)), path)

    def _delete(self, path: str) -> None:
        request = Request("DELETE", path, {"gracePeriodSeconds": "0"})
        _succeeded(self.api.handle(request), path)

    def _items(self) -> list[Document]:
        found = []
        for path in _KINDS:
            listed = orjson.loads(_succeeded(self.api.handle(Request("GET", path)), path).body)
            kind = listed["kind"].removesuffix("List")
            found += [{**item, "kind": kind} for item in listed["items"]]
        return found

    async def _until(self, what: str, holds: Callable[[], bool]) -> None:
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                while not holds():
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            raise UnansweredError(f"timed out waiting for {what}") from None

    async def echo(self, request: web.Request) -> web.Response:
        """Answer a preempt call with its own candidates, and record the first call for each pod.

        An answer may not name victims on other nodes, as those of a whole group may be; such
        candidates are left out.
        """
        asked = orjson.loads(await request.read())
        uid, offered = asked["Pod"]["metadata"]["uid"], asked["NodeNameToMetaVictims"]
        offers = {
            node: Offer(tuple(pod["UID"] for pod in each["Pods"]), each["NumPDBViolations"])
            for node, each in offered.items()
        }
        self._offers.setdefault(uid, offers)
        self._others |= {(uid, victim) for each in offers.values() for victim in each.victims}
        answered = {
            node: offered[node]
            for node, offer in offers.items()
            if all(self._is_on(victim, node) for victim in offer.victims)
        }
        return web.json_response({"NodeNameToMetaVictims": answered})

    def _is_on(self, uid: str, node: str) -> bool:
        pod = self._pods.get(uid)
        return pod is None or pod["spec"].get("nodeName") == node

    async def watch_pods(self, url: str) -> None:
        """Watch all pods, and record the first message about each unschedulable one."""
        async for event in _watch(url, "/api/v1/pods"):
            self._record(event["type"], event["object"])

    async def bind_volumes(self, url: str) -> None:
        """Complete the bindings that the scheduler begins on volumes, as the volume controller."""
        async for event in _watch(url, "/api/v1/persistentvolumes"):
            volume = event["object"]
            ref = volume["spec"].get("claimRef") or {}
            if event["type"] == "MODIFIED" and ref.get("uid"):
                path = f"/api/v1/namespaces/{ref['namespace']}/persistentvolumeclaims/{ref['name']}"
                found = self.api.handle(Request("GET", path))
                if isinstance(found, Response) and found.status == 200:
                    self.load([volumes.bound(orjson.loads(found.body), volume["metadata"]["name"])])

    async def provision_volumes(self, url: str) -> None:
        """Provision volumes for the claims with a selected node."""
        async for event in _watch(url, "/api/v1/persistentvolumeclaims"):
            claim = event["object"]
            selected = volumes.SELECTED_NODE in (claim["metadata"].get("annotations") or {})
            if event["type"] == "MODIFIED" and selected and not claim["spec"].get("volumeName"):
                volume = volumes.provisioned(claim)
                self.load([volume, volumes.bound(claim, volume["metadata"]["name"])])

    def _record(self, change: str, pod: Document) -> None:
        uid = pod["metadata"]["uid"]
        if change == "DELETED":
            self._pods.pop(uid, None)
        else:
            self._pods[uid] = pod
            for condition in pod.get("status", {}).get("conditions", ()):
                if condition["type"] == "PodScheduled" and condition.get("status") == "False":
                    self._messages.setdefault(uid, condition["message"])
        self._changed.set()


async def _watch(url: str, path: str) -> AsyncIterator[Document]:
    forever = aiohttp.ClientTimeout(total=None)
    async with (
        aiohttp.ClientSession(url, timeout=forever, read_bufsize=_LONGEST_LINE) as http,
        http.get(path, params={"watch": "true"}) as answer,
    ):
        async for line in answer.content:
            yield orjson.loads(line)


@asynccontextmanager
async def schedule_runner(
    program: Path, upstream: str, gates: Mapping[str, bool]
) -> AsyncIterator[ScheduleRunner]:
    """Run a scheduler of the release ``upstream`` and its extender until the block ends."""
    async with FakeCluster(run="none") as cluster:
        cluster.load(_namespaces())
        runner = ScheduleRunner(cluster.api, cluster.load, upstream, gates)
        async with _extender(runner) as url, asyncio.TaskGroup() as group:
            watches = runner.watch_pods, runner.bind_volumes, runner.provision_volumes
            following = [group.create_task(watch(cluster.url)) for watch in watches]
            given = configuration(cluster.kubeconfig_path, [Extender(url, ("preempt",))])
            async with kube_scheduler(program, given, gate_flags(gates)):
                yield runner
            for each in following:
                each.cancel()


@asynccontextmanager
async def _extender(calls: ScheduleRunner) -> AsyncIterator[str]:
    app = web.Application(client_max_size=_LONGEST_LINE)
    app.router.add_post("/preempt", calls.echo)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        host, port = runner.addresses[0][:2]
        yield f"http://{host}:{port}"
    finally:
        await runner.cleanup()


def _has_lost_nomination(cases: Sequence[Case]) -> bool:
    nominated = [case.answer.nominated_node for case in cases]
    return bool(nominated[-1]) and nominated[-1] in nominated[:-1]


def _namespaces() -> list[Document]:
    teams = {**{name: name for name in NAMESPACES}, _MARKERS: "none"}
    return [
        manifest("Namespace", name, metadata={"labels": {"team": team}})
        for name, team in teams.items()
    ]


def _marker_node() -> Document:
    return node_json("witness", cpu="1", taints=["witness:NoSchedule"])


def _marker(number: int) -> Document:
    """Return a marker; it requests nothing, so that any number of them fits."""
    name = f"witness-{number}"
    return pod_json(
        name,
        namespace=_MARKERS,
        uid=name,
        priority=2_000_000_000,
        spec={
            "schedulerName": SCHEDULER,
            "tolerations": [{"key": "witness", "operator": "Exists"}],
            "affinity": _only_on("witness"),
        },
    )


def _only_on(node: str) -> Document:
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    terms = [{"matchFields": [field]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    return {"nodeAffinity": required}


def _path(pod: Document) -> str:
    meta = pod["metadata"]
    return f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}"


def _succeeded(answer: Any, path: str) -> Response:
    if not isinstance(answer, Response) or answer.status != 200:
        raise UnansweredError(f"{path}: {answer}")
    return answer
