"""A world that a scenario of controllers acts on: it writes, and waits until things have settled.

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

from fakeapi.testing.process_cluster import ProcessCluster
from tests.conformance.objects import NAMESPACE, Document, replica_set, with_metadata
from tests.conformance.watched_cluster import Watched, is_going, open_session

AGENT: Final = "scenario"
WITNESSES: Final = "witnesses"

_FOLLOWED: Final = ("Pod", "ReplicaSet", "Event")
_COUNTS: Final = ("replicas", "readyReplicas", "terminatingReplicas")
_FINISHED: Final = ("Succeeded", "Failed")


class World(Watched):
    """The actions and observations of a controller scenario, in a cluster of its own.

    ``moments`` tells what there was each time that the world had settled.
    """

    def __init__(
        self, cluster: ProcessCluster, http: aiohttp.ClientSession, group: asyncio.TaskGroup
    ) -> None:
        super().__init__(http, group)
        self.cluster = cluster
        self.moments: list[list[Document]] = []
        self._witnesses = 0

    def pods_of(self, name: str) -> list[Document]:
        """Return the pods that a ReplicaSet controls, finished ones included, by their names."""
        found = self.get("ReplicaSet", name)
        uid = found["metadata"]["uid"] if found else ""
        controlled = [pod for pod in self.all("Pod") if _controller(pod) == uid]
        return sorted(controlled, key=lambda pod: str(pod["metadata"]["name"]))

    def active_pods_of(self, name: str) -> list[Document]:
        """Return those of them that neither finished nor are about to go."""
        return [pod for pod in self.pods_of(name) if _is_active(pod)]

    def status(self, name: str) -> Document:
        """Return a ReplicaSet's status; raises KeyError if there is no such ReplicaSet."""
        told: Document = self._copy["ReplicaSet", NAMESPACE, name]["status"]
        return told

    def owns(self, name: str, pod: str) -> bool:
        """Return whether a ReplicaSet controls a pod."""
        return any(each["metadata"]["name"] == pod for each in self.pods_of(name))

    async def scale(self, name: str, replicas: int) -> None:
        """Ask for another number of replicas."""
        await self.patch("ReplicaSet", name, {"spec": {"replicas": replicas}}, "scale")

    async def label(self, name: str, **labels: str | None) -> None:
        """Change labels of a pod; None takes one away."""
        await self.patch("Pod", name, {"metadata": {"labels": labels}})

    async def report(self, name: str, **status: Any) -> None:
        """Report a pod's status, as its kubelet would."""
        await self.patch("Pod", name, {"status": status}, "status")

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
        """Return whether a ReplicaSet's status speaks of its newest spec and of its pods."""
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


@asynccontextmanager
async def world(cluster: ProcessCluster) -> AsyncIterator[World]:
    """Follow a cluster until the block ends."""
    async with (
        open_session(cluster.url, {"User-Agent": AGENT}) as http,
        asyncio.TaskGroup() as group,
    ):
        made = World(cluster, http, group)
        await made.create(
            {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": WITNESSES}}
        )
        made.follow(*_FOLLOWED)
        yield made
        made.end()


def _controller(thing: Document) -> str:
    owners = thing["metadata"].get("ownerReferences", ())
    return next((owner["uid"] for owner in owners if owner.get("controller")), "")


def _is_active(pod: Document) -> bool:
    return pod["status"].get("phase") not in _FINISHED and not is_going(pod)


def _is_leaving(pod: Document) -> bool:
    return pod["status"].get("phase") not in _FINISHED and is_going(pod)


def _is_ready(pod: Document) -> bool:
    conditions = pod["status"].get("conditions", ())
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
