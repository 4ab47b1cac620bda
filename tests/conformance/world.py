"""A world that a scenario acts on: it writes to an API server, and waits until things are so.

Nothing waits for a time: a copy of the world is kept by watches, and whoever waits looks at the
copy each time it changes.

A step has *settled* when the copy is as it is to be, and nothing changes until a witness has been
heard: a ReplicaSet in a namespace of its own, made after everything else, gets its pod, its status
and its event. What a controller tells people it tells in order, so nothing of before is to come.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

import aiohttp
import orjson

from fakeapi.process import ProcessCluster
from tests.conformance.objects import NAMESPACE, Document, replica_set, with_metadata

AGENT: Final = "scenario"
WITNESSES: Final = "witnesses"
PATIENCE_SECONDS: Final = 60.0

_MERGE: Final = {"Content-Type": "application/merge-patch+json"}
_JSON: Final = {"Content-Type": "application/json"}
_WATCH: Final = {"watch": "true", "timeoutSeconds": "3600"}
_ADMISSION: Final = "/apis/admissionregistration.k8s.io/v1"
_ROOTS: Final = {
    "Namespace": "/api/v1/namespaces",
    "Pod": "/api/v1/pods",
    "Event": "/api/v1/events",
    "Deployment": "/apis/apps/v1/deployments",
    "ReplicaSet": "/apis/apps/v1/replicasets",
    "WorkloadSpread": "/apis/apps.kruise.io/v1beta1/workloadspreads",
    "MutatingWebhookConfiguration": f"{_ADMISSION}/mutatingwebhookconfigurations",
    "ValidatingWebhookConfiguration": f"{_ADMISSION}/validatingwebhookconfigurations",
}
_FOLLOWED: Final = ("Pod", "ReplicaSet", "Event")

_COUNTS: Final = ("replicas", "readyReplicas", "terminatingReplicas")
_FINISHED: Final = ("Succeeded", "Failed")

Key = tuple[str, str, str]
"""Kind, namespace, name."""


class World:
    """What a scenario can do, and see.

    ``owners`` tells of every UID whose it is, ``generated`` of every name that the server has made
    what it begins with, ``moments`` what there was each time that the world had settled.
    """

    def __init__(
        self, cluster: ProcessCluster, http: aiohttp.ClientSession, group: asyncio.TaskGroup
    ) -> None:
        self.cluster = cluster
        self.owners: dict[str, str] = {}
        self.generated: dict[str, str] = {}
        self.moments: list[list[Document]] = []
        self._http = http
        self._copy: dict[Key, Document] = {}
        self._group = group
        self._followed: dict[str, asyncio.Task[None]] = {}
        self._versions: dict[str, int] = {}
        self._changes = 0
        self._witnesses = 0
        self._changed = asyncio.Event()

    # What is there.

    def all(self, kind: str, namespace: str = NAMESPACE) -> list[Document]:
        """Give the copies of a kind's objects."""
        return [thing for (k, n, _), thing in self._copy.items() if (k, n) == (kind, namespace)]

    def get(self, kind: str, name: str, namespace: str = NAMESPACE) -> Document | None:
        """Give the copy of an object, or None."""
        return self._copy.get((kind, namespace, name))

    def pods_of(self, name: str) -> list[Document]:
        """Give the pods that a ReplicaSet controls, finished ones included, by their names."""
        found = self.get("ReplicaSet", name)
        uid = found["metadata"]["uid"] if found else ""
        controlled = [pod for pod in self.all("Pod") if _controller(pod) == uid]
        return sorted(controlled, key=lambda pod: str(pod["metadata"]["name"]))

    def active_pods_of(self, name: str) -> list[Document]:
        """Give those of them that neither finished nor are about to go."""
        return [pod for pod in self.pods_of(name) if _is_active(pod)]

    def status(self, name: str) -> Document:
        """Give a ReplicaSet's status; raises KeyError if there is no such ReplicaSet."""
        told: Document = self._copy["ReplicaSet", NAMESPACE, name]["status"]
        return told

    def owns(self, name: str, pod: str) -> bool:
        """Tell whether a ReplicaSet controls a pod."""
        return any(each["metadata"]["name"] == pod for each in self.pods_of(name))

    # What can be done.

    async def create(self, thing: Document) -> Document:
        """Create an object, and give it as it is then."""
        made = await self._send("POST", _collection(thing), thing, _JSON)
        await self._see(thing["kind"], made)
        return made

    async def patch(self, kind: str, name: str, patch: Document, subresource: str = "") -> None:
        """Merge a patch into an object."""
        path = _path(kind, NAMESPACE, name) + (f"/{subresource}" if subresource else "")
        await self._see(kind, await self._send("PATCH", path, patch, _MERGE))

    async def scale(self, name: str, replicas: int) -> None:
        """Ask for another number of replicas."""
        await self.patch("ReplicaSet", name, {"spec": {"replicas": replicas}}, "scale")

    async def label(self, name: str, **labels: str | None) -> None:
        """Change labels of a pod; None takes one away."""
        await self.patch("Pod", name, {"metadata": {"labels": labels}})

    async def report(self, name: str, **status: Any) -> None:
        """Report a pod's status, as its kubelet would."""
        await self.patch("Pod", name, {"status": status}, "status")

    async def delete(self, kind: str, name: str, **options: Any) -> None:
        """Delete an object of the namespace, or with ``kind`` Namespace a namespace."""
        await self._send("DELETE", _path(kind, NAMESPACE, name), options, _JSON)
        if kind in self._followed:
            await self.until(lambda: _is_going(self.get(kind, name)))

    async def evict(self, name: str) -> None:
        """Evict a pod."""
        path = _path("Pod", NAMESPACE, name) + "/eviction"
        eviction = {"kind": "Eviction", "apiVersion": "policy/v1", "metadata": {"name": name}}
        await self._send("POST", path, eviction, _JSON)
        await self.until(lambda: _is_going(self.get("Pod", name)))

    # How one waits.

    async def until(self, holds: Callable[[], bool]) -> None:
        """Return once a condition of the copy holds; raises TimeoutError."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not holds():
                self._changed.clear()
                await self._changed.wait()

    async def settled(self, holds: Callable[[], bool] = lambda: True) -> None:
        """End a step: there are as many pods as are wanted, besides what :meth:`at_rest` says."""
        await self.at_rest(lambda: all(map(self._is_complete, self.all("ReplicaSet"))) and holds())

    async def at_rest(self, holds: Callable[[], bool]) -> None:
        """End a step: ``holds`` holds, all statuses are true, and stay so until a witness is heard.

        Raises TimeoutError.
        """
        since = -1
        while since != self._changes:
            await self.until(lambda: holds() and all(map(self._is_true, self.all("ReplicaSet"))))
            since = self._changes
            await self._hear_a_witness()
        self.moments.append(
            [thing for (_, namespace, _), thing in self._copy.items() if namespace == NAMESPACE]
        )

    async def _hear_a_witness(self) -> None:
        self._witnesses += 1
        name = f"witness-{self._witnesses}-of-{len(self.moments)}"
        await self.create(with_metadata(replica_set(name, 1), namespace=WITNESSES))

        def heard() -> bool:
            events = self.all("Event", WITNESSES)
            return any(event["involvedObject"]["name"] == name for event in events)

        def counted() -> bool:
            told = self.get("ReplicaSet", name, WITNESSES)
            return told is not None and told["status"].get("replicas") == 1

        await self.until(lambda: heard() and counted())

    def _is_complete(self, thing: Document) -> bool:
        wanted: int = thing["spec"]["replicas"]
        return len(self.active_pods_of(thing["metadata"]["name"])) == wanted

    def _is_true(self, thing: Document) -> bool:
        """Tell whether a ReplicaSet's status speaks of its newest spec and of its pods."""
        status, name = thing["status"], thing["metadata"]["name"]
        active = self.active_pods_of(name)
        counted = [status.get(count, 0) for count in _COUNTS]
        there = [
            len(active),
            sum(map(_is_ready, active)),
            sum(map(_is_leaving, self.pods_of(name))),
        ]
        newest = status.get("observedGeneration") == thing["metadata"]["generation"]
        return newest and counted == there

    # How the copy is kept.

    def follow(self, *kinds: str) -> None:
        """Keep copies of the objects of kinds, which have to be served."""
        for kind in kinds:
            self._followed[kind] = self._group.create_task(self._follow(kind))

    def end(self) -> None:
        """Keep no copies any more."""
        for task in self._followed.values():
            task.cancel()

    async def _follow(self, kind: str) -> None:
        async with self._http.get(_ROOTS[kind], params=_WATCH) as answer:
            async for line in answer.content:
                event = orjson.loads(line)
                self._note(kind, event["type"], event["object"])

    def _note(self, kind: str, change: str, thing: Document) -> None:
        meta = thing["metadata"]
        key = (kind, meta.get("namespace", ""), meta["name"])
        self._versions[kind] = max(self._versions.get(kind, 0), int(meta["resourceVersion"]))
        if change == "DELETED":
            self._copy.pop(key, None)
        else:
            self._copy[key] = {**thing, "kind": kind}
        self.owners[meta["uid"]] = _label(kind, meta)
        if prefix := meta.get("generateName"):
            self.generated[meta["name"]] = prefix
        if key[1] == NAMESPACE:
            self._changes += 1
        self._changed.set()

    async def _see(self, kind: str, written: Document) -> None:
        """Return once the copy shows what was written."""
        if kind in self._followed:
            version = int(written["metadata"]["resourceVersion"])
            await self.until(lambda: self._versions.get(kind, 0) >= version)

    async def _send(
        self, method: str, path: str, body: Document, headers: dict[str, str]
    ) -> Document:
        data = orjson.dumps(body)
        async with self._http.request(method, path, data=data, headers=headers) as answer:
            assert answer.status < 300, await answer.text()
            document: Document = orjson.loads(await answer.read())
            return document


@asynccontextmanager
async def world(cluster: ProcessCluster) -> AsyncIterator[World]:
    """Follow a cluster until the block ends."""
    session = aiohttp.ClientSession(
        cluster.url,
        headers={"User-Agent": AGENT},
        timeout=aiohttp.ClientTimeout(total=None),
        read_bufsize=2**20,
    )
    async with session as http, asyncio.TaskGroup() as group:
        made = World(cluster, http, group)
        await made.create(
            {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": WITNESSES}}
        )
        made.follow(*_FOLLOWED)
        yield made
        made.end()


def _label(kind: str, meta: Document) -> str:
    return kind if kind == "Event" else f"{kind} {meta.get('generateName', meta['name'])}"


def _collection(thing: Document) -> str:
    return _path(thing["kind"], thing["metadata"].get("namespace", ""), "").removesuffix("/")


def _path(kind: str, namespace: str, name: str) -> str:
    root = _ROOTS[kind]
    if kind == "Namespace":
        return f"{root}/{name}"
    parent, _, plural = root.rpartition("/")
    return f"{parent}/namespaces/{namespace}/{plural}/{name}"


def _controller(thing: Document) -> str:
    owners = thing["metadata"].get("ownerReferences", ())
    return next((owner["uid"] for owner in owners if owner.get("controller")), "")


def _is_going(thing: Document | None) -> bool:
    return thing is None or "deletionTimestamp" in thing["metadata"]


def _is_active(pod: Document) -> bool:
    return pod["status"].get("phase") not in _FINISHED and not _is_going(pod)


def _is_leaving(pod: Document) -> bool:
    return pod["status"].get("phase") not in _FINISHED and _is_going(pod)


def _is_ready(pod: Document) -> bool:
    conditions = pod["status"].get("conditions", ())
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
