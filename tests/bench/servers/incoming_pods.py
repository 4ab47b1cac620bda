"""Pods created on a server whose scheduler is being measured."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import aiohttp
import orjson

from tests.bench.clusters import preemptor
from tests.builders import Document, manifest

_START: Final = "start"
_CLASS: Final = "urgent"
_PODS: Final = "/api/v1/namespaces/default/pods"
_JSON: Final = {"Content-Type": "application/json"}
_NOW: Final = {"gracePeriodSeconds": "0"}
_ANNOUNCED: Final = re.compile(r"preempting (\d+) victims")
_PATIENCE_SECONDS: Final = 600.0
_LONGEST_LINE: Final = 2**22


@dataclass(frozen=True, slots=True)
class Chosen:
    """The node of a pod and its victims, by name."""

    node: str
    victims: frozenset[str]


@dataclass(frozen=True, slots=True)
class Nominated:
    """The result for a pod, and the seconds from its creation to its nomination."""

    chosen: Chosen
    seconds: float


@dataclass(slots=True)
class PodCreator:
    """Creates pods and watches all pods; ``terminating`` are the names of terminating ones."""

    http: aiohttp.ClientSession
    terminating: set[str] = field(default_factory=set)
    _created: int = 0
    _nominated: dict[str, tuple[str, float, int]] = field(default_factory=dict)
    _bound: set[str] = field(default_factory=set)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    async def one(self) -> Nominated:
        """Create a pod, and return when it is bound.

        Its victims are removed together: otherwise it would preempt again.
        """
        name, begun = await self._create()
        await self._until(lambda: name in self._nominated)
        node, moment, count = self._nominated[name]
        await self._until(lambda: len(self.terminating) == count)
        victims = frozenset(self.terminating)
        await asyncio.gather(*map(self._remove, victims))
        await self._until(lambda: name in self._bound)
        return Nominated(Chosen(node, victims), moment - begun)

    async def at_once(self, count: int) -> float:
        """Create so many pods; return the seconds until the last of them is nominated."""
        begun = time.perf_counter()
        names = {name for name, _ in await asyncio.gather(*(self._create() for _ in range(count)))}
        await self._until(lambda: names <= self._nominated.keys())
        return max(self._nominated[name][1] for name in names) - begun

    async def _create(self) -> tuple[str, float]:
        self._created += 1
        name = f"preemptor-{self._created}"
        begun = time.perf_counter()
        await self._ask("POST", _PODS, orjson.dumps(_plain_pod(name)))
        return name, begun

    async def _remove(self, name: str) -> None:
        await self._ask("DELETE", f"{_PODS}/{name}", params=_NOW)

    async def _ask(self, method: str, path: str, body: bytes = b"", **options: Any) -> Document:
        async with self.http.request(method, path, data=body, headers=_JSON, **options) as answer:
            if answer.status >= 300:
                raise RuntimeError(f"{method} {path}: {await answer.text()}")
            document: Document = orjson.loads(await answer.read())
            return document

    async def _until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(_PATIENCE_SECONDS):
            while not holds():
                self._changed.clear()
                await self._changed.wait()

    async def follow(self, version: str) -> None:
        """Watch pods since a version, and record the times of changes."""
        params = {"watch": "true", "resourceVersion": version, "timeoutSeconds": "3600"}
        async with self.http.get("/api/v1/pods", params=params) as answer:
            async for line in answer.content:
                event = orjson.loads(line)
                self._record(event["type"], event["object"], time.perf_counter())

    def _record(self, change: str, pod: Document, moment: float) -> None:
        name = pod["metadata"]["name"]
        if change == "DELETED":
            self.terminating.discard(name)
        elif node := pod["status"].get("nominatedNodeName"):
            if name not in self._nominated:
                self._nominated[name] = node, moment, _announced(pod)
        elif "deletionTimestamp" in pod["metadata"]:
            self.terminating.add(name)
        if pod["metadata"]["labels"].get("app") == "preemptor" and "nodeName" in pod["spec"]:
            self._bound.add(name)
        self._changed.set()


async def prepare(url: str) -> None:
    """Add the pods' PriorityClass to a cluster, and take a snapshot of it."""
    urgent = manifest("PriorityClass", _CLASS, value=1000)
    async with aiohttp.ClientSession(url, timeout=_forever()) as http:
        await _manage(http, "load", orjson.dumps(urgent))
        await _manage(http, f"snapshot?name={_START}")


@asynccontextmanager
async def pod_creator(url: str) -> AsyncIterator[PodCreator]:
    """Restore the snapshot of a prepared cluster, and create pods until the block ends."""
    async with (
        aiohttp.ClientSession(url, timeout=_forever(), read_bufsize=_LONGEST_LINE) as http,
        asyncio.TaskGroup() as group,
    ):
        await _manage(http, f"restore/{_START}")
        made = PodCreator(http)
        listed = await made._ask("GET", "/api/v1/pods", params={"limit": "1"})
        following = group.create_task(made.follow(listed["metadata"]["resourceVersion"]))
        yield made
        following.cancel()


async def _manage(http: aiohttp.ClientSession, action: str, body: bytes = b"") -> None:
    async with http.post(f"/_fakeapi/{action}", data=body) as answer:
        if answer.status != 200:
            raise RuntimeError(f"{action}: {await answer.text()}")


def _forever() -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(total=None)


def _announced(pod: Document) -> int:
    """Return the number of victims in a nomination's message, as of release 1.37."""
    said = " ".join(each.get("message", "") for each in pod["status"]["conditions"])
    found = _ANNOUNCED.search(said)
    if found is None:
        raise RuntimeError(f"nominated, but of how many victims? {said}")
    return int(found[1])


def _plain_pod(name: str) -> Document:
    """Return the *plain* preemptor as a client writes it."""
    pod = preemptor("plain", 0)
    spec = {key: value for key, value in pod["spec"].items() if key != "priority"}
    containers = [{**each, "image": "registry.example/c:1"} for each in spec["containers"]]
    metadata = {"labels": pod["metadata"]["labels"]}
    spec |= {"containers": containers, "priorityClassName": _CLASS}
    return manifest("Pod", name, metadata=metadata, spec=spec)
