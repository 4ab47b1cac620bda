"""The requests of a scenario to an API server, and its watched state.

Nothing waits for a fixed time: watches keep a cache of the objects, and conditions are checked when
it changes.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

import aiohttp
import orjson

from tests.builders import Document
from tests.conformance.objects import NAMESPACE

PATIENCE_SECONDS: Final = 180.0
"""client-go waits up to a minute, after repeated errors, until it opens a watch again."""

_MERGE: Final = {"Content-Type": "application/merge-patch+json"}
_JSON: Final = {"Content-Type": "application/json"}
_WATCH: Final = {"watch": "true", "timeoutSeconds": "3600"}
_ADMISSION: Final = "/apis/admissionregistration.k8s.io/v1"
_ROOTS: Final = {
    "Namespace": "/api/v1/namespaces",
    "Pod": "/api/v1/pods",
    "Event": "/api/v1/events",
    "Node": "/api/v1/nodes",
    "Service": "/api/v1/services",
    "ConfigMap": "/api/v1/configmaps",
    "Secret": "/api/v1/secrets",
    "ServiceAccount": "/api/v1/serviceaccounts",
    "ResourceQuota": "/api/v1/resourcequotas",
    "Widget": "/apis/example.com/v1/widgets",
    "PersistentVolumeClaim": "/api/v1/persistentvolumeclaims",
    "ControllerRevision": "/apis/apps/v1/controllerrevisions",
    "Deployment": "/apis/apps/v1/deployments",
    "ReplicaSet": "/apis/apps/v1/replicasets",
    "StatefulSet": "/apis/apps/v1/statefulsets",
    "DaemonSet": "/apis/apps/v1/daemonsets",
    "Job": "/apis/batch/v1/jobs",
    "CronJob": "/apis/batch/v1/cronjobs",
    "Lease": "/apis/coordination.k8s.io/v1/leases",
    "EndpointSlice": "/apis/discovery.k8s.io/v1/endpointslices",
    "PodDisruptionBudget": "/apis/policy/v1/poddisruptionbudgets",
    "HorizontalPodAutoscaler": "/apis/autoscaling/v2/horizontalpodautoscalers",
    "JobSet": "/apis/jobset.x-k8s.io/v1alpha2/jobsets",
    "ResourceClaim": "/apis/resource.k8s.io/v1/resourceclaims",
    "WorkloadSpread": "/apis/apps.kruise.io/v1beta1/workloadspreads",
    "MutatingWebhookConfiguration": f"{_ADMISSION}/mutatingwebhookconfigurations",
    "ValidatingWebhookConfiguration": f"{_ADMISSION}/validatingwebhookconfigurations",
}

_CLUSTER_SCOPED: Final = (
    "Namespace",
    "Node",
    "MutatingWebhookConfiguration",
    "ValidatingWebhookConfiguration",
)

Key = tuple[str, str, str]
"""Kind, namespace, name."""


class WatchedCluster:
    """Requests to a server, and a copy of its objects.

    ``owners`` maps UIDs to the names of their objects, ``generated`` generated names to prefixes.
    """

    def __init__(self, http: aiohttp.ClientSession, group: asyncio.TaskGroup) -> None:
        self.owners: dict[str, str] = {}
        self.generated: dict[str, str] = {}
        self._http = http
        self._copy: dict[Key, Document] = {}
        self._group = group
        self._followed: dict[str, asyncio.Task[None]] = {}
        self._versions: dict[str, int] = {}
        self._changes = 0
        self._changed = asyncio.Event()

    def all(self, kind: str, namespace: str = NAMESPACE) -> list[Document]:
        """Return the copies of a kind's objects."""
        return [thing for (k, n, _), thing in self._copy.items() if (k, n) == (kind, namespace)]

    def get(self, kind: str, name: str, namespace: str = NAMESPACE) -> Document | None:
        """Return the copy of an object, or None."""
        return self._copy.get((kind, namespace, name))

    async def create(self, thing: Document) -> Document:
        """Create an object, and return it."""
        made = await self._send("POST", _collection(thing), thing, _JSON)
        await self._see(thing["kind"], made)
        return made

    async def patch(
        self,
        kind: str,
        name: str,
        patch: Document,
        subresource: str = "",
        namespace: str = NAMESPACE,
    ) -> None:
        """Merge a patch into an object."""
        path = _path(kind, namespace, name) + (f"/{subresource}" if subresource else "")
        await self._see(kind, await self._send("PATCH", path, patch, _MERGE))

    async def delete(
        self, kind: str, name: str, namespace: str = NAMESPACE, **options: Any
    ) -> None:
        """Delete an object of the namespace, or with ``kind`` Namespace a namespace.

        Return once the copy shows it. Another object may have its name by then.
        """
        there = "" if kind == "Namespace" else namespace
        former = _uid(self.get(kind, name, there))
        await self._send("DELETE", _path(kind, namespace, name), options, _JSON)
        if kind in self._followed:
            await self.until(
                lambda: is_going(found := self.get(kind, name, there)) or _uid(found) != former
            )

    async def evict(self, name: str) -> None:
        """Evict a pod."""
        path = _path("Pod", NAMESPACE, name) + "/eviction"
        eviction = {"kind": "Eviction", "apiVersion": "policy/v1", "metadata": {"name": name}}
        await self._send("POST", path, eviction, _JSON)
        await self.until(lambda: is_going(self.get("Pod", name)))

    async def until(self, holds: Callable[[], bool], seconds: float = PATIENCE_SECONDS) -> None:
        """Return once a condition of the copy holds; raise TimeoutError if it does not in time."""
        async with asyncio.timeout(seconds):
            while not holds():
                self._changed.clear()
                await self._changed.wait()

    def follow(self, *kinds: str) -> None:
        """Keep copies of the objects of kinds, which have to be served."""
        for kind in kinds:
            self._followed[kind] = self._group.create_task(self._follow(kind))

    def end(self) -> None:
        """Keep no copies any more."""
        for task in self._followed.values():
            task.cancel()

    async def _follow(self, kind: str) -> None:
        """Watch a kind; resume ended watches, and list the objects again if one has expired."""
        while True:
            seen = self._versions.get(kind)
            since = {} if seen is None else {"resourceVersion": str(seen)}
            async with self._http.get(_ROOTS[kind], params={**_WATCH, **since}) as answer:
                async for line in answer.content:
                    event = orjson.loads(line)
                    if event["type"] == "ERROR":
                        await self._list(kind)
                        break
                    self._note(kind, event["type"], event["object"])

    async def _list(self, kind: str) -> None:
        """Replace the copies of a kind's objects by those of a list."""
        async with self._http.get(_ROOTS[kind]) as answer:
            found = orjson.loads(await answer.read())
        for key in [key for key in self._copy if key[0] == kind]:
            del self._copy[key]
        for thing in found["items"]:
            self._note(kind, "ADDED", thing)
        self._versions[kind] = int(found["metadata"]["resourceVersion"])
        self._changed.set()

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
        """Return once the copy shows the write."""
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


def open_session(url: str, headers: Mapping[str, str]) -> aiohttp.ClientSession:
    """Return a session for watches without end; the server's certificate is not verified."""
    return aiohttp.ClientSession(
        url,
        headers=headers,
        timeout=aiohttp.ClientTimeout(total=None),
        read_bufsize=2**20,
        connector=aiohttp.TCPConnector(ssl=False),
    )


@asynccontextmanager
async def watched(session: aiohttp.ClientSession, *kinds: str) -> AsyncIterator[WatchedCluster]:
    """Follow a server until the block ends, at first the objects of ``kinds``."""
    async with session as http, asyncio.TaskGroup() as group:
        made = WatchedCluster(http, group)
        made.follow(*kinds)
        yield made
        made.end()


def is_going(thing: Document | None) -> bool:
    """Return whether an object is deleted or terminating."""
    return thing is None or "deletionTimestamp" in thing["metadata"]


def _uid(thing: Document | None) -> str:
    return "" if thing is None else str(thing["metadata"]["uid"])


def _label(kind: str, meta: Document) -> str:
    return kind if kind == "Event" else f"{kind} {meta.get('generateName', meta['name'])}"


def _collection(thing: Document) -> str:
    return _path(thing["kind"], thing["metadata"].get("namespace", ""), "").removesuffix("/")


def _path(kind: str, namespace: str, name: str) -> str:
    root = _ROOTS[kind]
    if kind in _CLUSTER_SCOPED:
        return f"{root}/{name}"
    parent, _, plural = root.rpartition("/")
    return f"{parent}/namespaces/{namespace}/{plural}/{name}"
