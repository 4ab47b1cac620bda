"""A real kube-apiserver, with an etcd behind it, as the server that scenarios run on.

One pair serves many scenarios, one after the other: each leaves only the objects that all of them
share. No controller runs. Objects are loaded as clients create them: an object first, its status
afterwards, a priority by its class.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final
from urllib.parse import urlsplit

import aiohttp
import orjson

from tests.builders import Document
from tests.conformance.clusters.watched_cluster import open_session
from tests.conformance.clusters.world import AGENT
from tests.conformance.objects import NAMESPACE
from tests.conformance.scheduling.kube_scheduler import gate_flags
from tests.conformance.scheduling.pods import priority_class
from tests.conformance.scheduling.servers import Write
from tests.e2e.scenario_runner import write_kubeconfig
from tests.real_server import TOKEN, real_server

_AT_A_TIME: Final = 32
_BETWEEN_SECONDS: Final = 0.05
_PATIENCE_SECONDS: Final = 60.0
_MERGE: Final = {"Content-Type": "application/merge-patch+json"}
_NOW: Final = {"gracePeriodSeconds": 0}
_IN_NAMESPACE: Final = f"namespaces/{NAMESPACE}"
_COLLECTIONS: Final[Mapping[str, str]] = {
    "Namespace": "/api/v1/namespaces",
    "PriorityClass": "/apis/scheduling.k8s.io/v1/priorityclasses",
    "CustomResourceDefinition": "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "Node": "/api/v1/nodes",
    "Pod": f"/api/v1/{_IN_NAMESPACE}/pods",
    "PodDisruptionBudget": f"/apis/policy/v1/{_IN_NAMESPACE}/poddisruptionbudgets",
    "PodGroup": f"/apis/scheduling.k8s.io/v1beta1/{_IN_NAMESPACE}/podgroups",
    "CompositePodGroup": f"/apis/scheduling.k8s.io/v1alpha3/{_IN_NAMESPACE}/compositepodgroups",
    "DeviceClass": "/apis/resource.k8s.io/v1/deviceclasses",
    "ResourceSlice": "/apis/resource.k8s.io/v1/resourceslices",
    "ResourceClaim": f"/apis/resource.k8s.io/v1/{_IN_NAMESPACE}/resourceclaims",
    "StorageClass": "/apis/storage.k8s.io/v1/storageclasses",
    "PersistentVolumeClaim": f"/api/v1/{_IN_NAMESPACE}/persistentvolumeclaims",
}
_STAYING: Final = ("Namespace", "PriorityClass", "CustomResourceDefinition")
"""Kinds of what is the same in all scenarios, and may be there already."""
_ADMISSION: Final = "/apis/admissionregistration.k8s.io/v1"
_PASSING: Final = (
    f"{_ADMISSION}/mutatingwebhookconfigurations",
    f"{_ADMISSION}/validatingwebhookconfigurations",
    f"/apis/apps.kruise.io/v1beta1/{_IN_NAMESPACE}/workloadspreads",
    f"/apis/apps/v1/{_IN_NAMESPACE}/replicasets",
    *(
        _COLLECTIONS[kind]
        for kind in (
            *("Pod", "PodGroup", "CompositePodGroup", "PodDisruptionBudget"),
            *("PersistentVolumeClaim", "ResourceClaim"),
            *("ResourceSlice", "DeviceClass", "StorageClass", "Node"),
        )
    ),
)
"""What a scene leaves behind, in the order of deletion: first webhooks without a server."""
_GATES: Final = (
    "GenericWorkload",
    "TopologyAwareWorkloadScheduling",
    "CompositePodGroup",
    "PodGroupPreemptionPolicy",
    "InPlacePodVerticalScalingSchedulerPreemption",
)
"""Feature gates of the server, so that it accepts the objects and fields of all scenarios."""
_METHODS: Final = {"create": "POST", "update": "PUT", "patch": "PATCH", "delete": "DELETE"}
_AUDITED: Final = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["ResponseStarted", "ResponseComplete", "Panic"],
    "rules": [
        {
            "level": "Metadata",
            "verbs": list(_METHODS),
            "resources": [{"group": "", "resources": ["pods", "pods/*"]}],
        },
        {"level": "None"},
    ],
}


@dataclass(frozen=True, slots=True)
class RealApi:
    """A running pair: its address, its audit log, and a kubeconfig."""

    url: str
    audit: Path
    kubeconfig: Path

    @asynccontextmanager
    async def opened(self, run: str) -> AsyncIterator[RealServer]:
        """Run one scenario; raise ValueError if it names components of the control plane."""
        if run != "none":
            raise ValueError(f"{run}: a real API server has no such components")
        async with _session(self.url) as http:
            made = RealServer(
                self.url, self.kubeconfig, self.audit, self.audit.stat().st_size, http
            )
            try:
                yield made
            finally:
                await made.clear()


@dataclass(frozen=True, slots=True)
class RealServer:
    """The pair in one scenario; the audit log up to ``begun`` is of earlier ones."""

    url: str
    kubeconfig: Path
    audit: Path
    begun: int
    http: aiohttp.ClientSession

    def session(self) -> aiohttp.ClientSession:
        """Return a session whose requests it answers."""
        return _session(self.url)

    async def load(self, objects: Iterable[Mapping[str, Any]]) -> None:
        """Create objects in any order, each before its status is written."""
        documents = [dict(each) for each in objects]
        await asyncio.gather(*map(self._create, _classes_of(documents)))
        limit = asyncio.Semaphore(_AT_A_TIME)

        async def create(document: Document) -> None:
            async with limit:
                await self._create(document)

        await asyncio.gather(*map(create, documents))

    def writes(self, agent: str) -> list[Write]:
        """Return the writes since the scenario began: the server logs them before it answers."""
        with self.audit.open("rb") as log:
            log.seek(self.begun)
            noted = [orjson.loads(line) for line in log]
        return [
            Write(_METHODS[each["verb"]], urlsplit(each["requestURI"]).path)
            for each in noted
            if each["userAgent"].startswith(agent)
        ]

    async def clear(self) -> None:
        """Delete the objects that a scenario has left."""
        async with asyncio.timeout(_PATIENCE_SECONDS):
            for collection in _PASSING:
                await self._empty(collection)

    async def _empty(self, collection: str) -> None:
        """Delete the objects of a collection, if it is served.

        No controller runs that would remove finalizers.
        """
        while True:
            async with self.http.get(collection) as answer:
                items = [] if answer.status == 404 else (await answer.json())["items"]
            if not items:
                return
            for each in items:
                if "finalizers" in each["metadata"]:
                    await self._remove_finalizers(f"{collection}/{each['metadata']['name']}")
            async with self.http.delete(collection, json=_NOW) as answer:
                if answer.status != 200:  # a webhook that was just deleted may still be called
                    await asyncio.sleep(_BETWEEN_SECONDS)

    async def _remove_finalizers(self, path: str) -> None:
        patch = {"metadata": {"finalizers": None}}
        async with self.http.patch(path, json=patch, headers=_MERGE) as answer:
            assert answer.status in (200, 404), await answer.text()

    async def _create(self, thing: Mapping[str, Any]) -> None:
        kind, name = thing["kind"], thing["metadata"]["name"]
        collection = _COLLECTIONS[kind]
        async with asyncio.timeout(_PATIENCE_SECONDS):
            status_code, text = await self._post(collection, thing)
            while status_code == 403 and "no PriorityClass with name" in text:
                await asyncio.sleep(_BETWEEN_SECONDS)  # admission reads classes from a watch
                status_code, text = await self._post(collection, thing)
        if status_code == 409 and kind in _STAYING:
            return
        assert status_code == 201, text
        if kind == "CustomResourceDefinition":
            await self._served(thing["spec"])
        elif status := thing.get("status"):
            where, patch = f"{collection}/{name}/status", {"status": status}
            async with self.http.patch(where, json=patch, headers=_MERGE) as answer:
                assert answer.status == 200, await answer.text()

    async def _post(self, collection: str, thing: Mapping[str, Any]) -> tuple[int, str]:
        """Create an object; return the status code and the body of the answer."""
        async with self.http.post(collection, json=_as_clients_write(thing)) as answer:
            return answer.status, await answer.text()

    async def _served(self, definition: Mapping[str, Any]) -> None:
        """Return once a kind's objects can be listed."""
        version = next(each["name"] for each in definition["versions"] if each["storage"])
        where = f"/apis/{definition['group']}/{version}/{definition['names']['plural']}"
        async with asyncio.timeout(_PATIENCE_SECONDS):
            while True:
                async with self.http.get(where) as answer:
                    if answer.status == 200:
                        return
                await asyncio.sleep(_BETWEEN_SECONDS)


@asynccontextmanager
async def real_api(etcd: Path, apiserver: Path) -> AsyncIterator[RealApi]:
    """Run a pair that logs the writes of pods until the block ends.

    New nodes get no taint: no controller runs that would remove it.
    """
    with TemporaryDirectory(prefix="audit-") as name:
        policy, audit = Path(name) / "policy.json", Path(name) / "log"
        policy.write_bytes(orjson.dumps(_AUDITED))
        audit.touch()
        flags = (
            f"--audit-policy-file={policy}",
            f"--audit-log-path={audit}",
            "--disable-admission-plugins=TaintNodesByCondition",
            "--delete-collection-workers=16",
            "--runtime-config=scheduling.k8s.io/v1beta1=true,scheduling.k8s.io/v1alpha3=true",
            *gate_flags(dict.fromkeys(_GATES, True)),
        )
        async with real_server(etcd, apiserver, "--unsafe-no-fsync", serving=flags) as server:
            kubeconfig = write_kubeconfig(server.directory / "kubeconfig", server.url, TOKEN)
            yield RealApi(server.url, audit, kubeconfig)


def _session(url: str) -> aiohttp.ClientSession:
    return open_session(url, {"User-Agent": AGENT, "Authorization": f"Bearer {TOKEN}"})


def _as_clients_write(thing: Mapping[str, Any]) -> Document:
    """Return an object without the fields that a server sets."""
    meta = {key: value for key, value in thing["metadata"].items() if key != "uid"}
    written = {key: value for key, value in thing.items() if key != "status"}
    if priority := _priority_of(thing):
        written["spec"] = {**thing["spec"], "priorityClassName": f"p{priority}"}
    return {**written, "metadata": meta}


def _classes_of(things: Iterable[Mapping[str, Any]]) -> list[Document]:
    """Return the PriorityClasses of pods."""
    return [priority_class(value) for value in sorted(set(map(_priority_of, things)) - {0})]


def _priority_of(thing: Mapping[str, Any]) -> int:
    return int(thing["spec"].get("priority", 0)) if thing["kind"] == "Pod" else 0
