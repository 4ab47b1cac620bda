"""A cluster that a scenario of controllers writes to, waiting until the controllers are idle.

A step has *settled* when the watched state is complete and does not change until a marker is
synced: a ReplicaSet in its own namespace, created after everything else, gets its pod, its status
and its event. Controllers write events in order, so no earlier event is outstanding then.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

import aiohttp

from fakeapi.testing.process_cluster import ProcessCluster
from tests.builders import Document, manifest
from tests.conformance.clusters.watched_cluster import WatchedCluster, is_going, open_session
from tests.conformance.objects import NAMESPACE, replica_set, with_metadata

AGENT: Final = "scenario"
MARKERS: Final = "markers"

_FOLLOWED: Final = ("Pod", "ReplicaSet", "Event")
_COUNTS: Final = ("replicas", "readyReplicas", "terminatingReplicas")
_FINISHED: Final = ("Succeeded", "Failed")


class World(WatchedCluster):
    """The actions and observations of a controller scenario, in its own cluster.

    ``moments`` are the objects at the end of each step.
    """

    def __init__(
        self, cluster: ProcessCluster, http: aiohttp.ClientSession, group: asyncio.TaskGroup
    ) -> None:
        super().__init__(http, group)
        self.cluster = cluster
        self.moments: list[list[Document]] = []
        self._markers = 0

    def pods_of(self, name: str) -> list[Document]:
        """Return the pods that a ReplicaSet controls, finished ones included, by their names."""
        found = self.get("ReplicaSet", name)
        uid = found["metadata"]["uid"] if found else ""
        controlled = [pod for pod in self.all("Pod") if _controller(pod) == uid]
        return sorted(controlled, key=lambda pod: str(pod["metadata"]["name"]))

    def active_pods_of(self, name: str) -> list[Document]:
        """Return those of them that neither finished nor are terminating."""
        return [pod for pod in self.pods_of(name) if _is_active(pod)]

    def status(self, name: str) -> Document:
        """Return a ReplicaSet's status; raises KeyError if there is no such ReplicaSet."""
        status: Document = self._copy["ReplicaSet", NAMESPACE, name]["status"]
        return status

    def owns(self, name: str, pod: str) -> bool:
        """Return whether a ReplicaSet controls a pod."""
        return any(each["metadata"]["name"] == pod for each in self.pods_of(name))

    async def scale(self, name: str, replicas: int) -> None:
        """Set the number of replicas."""
        await self.patch("ReplicaSet", name, {"spec": {"replicas": replicas}}, "scale")

    async def relabel(self, name: str, **labels: str | None) -> None:
        """Change labels of a pod; None removes one."""
        await self.patch("Pod", name, {"metadata": {"labels": labels}})

    async def report(self, name: str, **status: Any) -> None:
        """Report a pod's status, as its kubelet would."""
        await self.patch("Pod", name, {"status": status}, "status")

    async def wait_settled(self, holds: Callable[[], bool] = lambda: True) -> None:
        """End a step as :meth:`wait_idle` does, once all ReplicaSets have their pods."""
        await self.wait_idle(
            lambda: all(map(self._is_complete, self.all("ReplicaSet"))) and holds()
        )

    async def wait_idle(self, holds: Callable[[], bool]) -> None:
        """End a step: ``holds`` and correct statuses last until a marker is synced.

        Raise TimeoutError.
        """
        since = -1
        while since != self._changes:
            await self.until(lambda: holds() and all(map(self._is_true, self.all("ReplicaSet"))))
            since = self._changes
            await self._sync_marker()
        self.moments.append(
            [thing for (_, namespace, _), thing in self._copy.items() if namespace == NAMESPACE]
        )

    async def _sync_marker(self) -> None:
        self._markers += 1
        name = f"marker-{self._markers}-of-{len(self.moments)}"
        await self.create(with_metadata(replica_set(name, 1), namespace=MARKERS))

        def has_event() -> bool:
            events = self.all("Event", MARKERS)
            return any(event["involvedObject"]["name"] == name for event in events)

        def has_status() -> bool:
            marker = self.get("ReplicaSet", name, MARKERS)
            return marker is not None and marker["status"].get("replicas") == 1

        await self.until(lambda: has_event() and has_status())

    def _is_complete(self, thing: Document) -> bool:
        return bool(
            len(self.active_pods_of(thing["metadata"]["name"])) == thing["spec"]["replicas"]
        )

    def _is_true(self, thing: Document) -> bool:
        """Return whether a ReplicaSet's status is that of its newest spec and of its pods."""
        status, name = thing["status"], thing["metadata"]["name"]
        active = self.active_pods_of(name)
        counted = [status.get(count, 0) for count in _COUNTS]
        terminating = sum(map(_is_terminating, self.pods_of(name)))
        newest = status.get("observedGeneration") == thing["metadata"]["generation"]
        return newest and counted == [len(active), sum(map(_is_ready, active)), terminating]


@asynccontextmanager
async def follow(cluster: ProcessCluster) -> AsyncIterator[World]:
    """Follow a cluster until the block ends."""
    async with (
        open_session(cluster.url, {"User-Agent": AGENT}) as http,
        asyncio.TaskGroup() as group,
    ):
        world = World(cluster, http, group)
        await world.create(manifest("Namespace", MARKERS))
        world.follow(*_FOLLOWED)
        yield world
        world.end()


def _controller(thing: Document) -> str:
    owners = thing["metadata"].get("ownerReferences", ())
    return next((owner["uid"] for owner in owners if owner.get("controller")), "")


def _is_active(pod: Document) -> bool:
    return pod["status"].get("phase") not in _FINISHED and not is_going(pod)


def _is_terminating(pod: Document) -> bool:
    return pod["status"].get("phase") not in _FINISHED and is_going(pod)


def _is_ready(pod: Document) -> bool:
    conditions = pod["status"].get("conditions", ())
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
