"""The pod garbage collector: deletes pods that no other controller deletes.

Every 20 seconds, of all pods:

    finished, above the threshold                    evicted pods first, then the oldest
    being deleted, on a node that is not ready and   deleted
    has the out-of-service taint
    on a node that has been missing for 40 s and     marked as disrupted and failed, and deleted
    does not exist on the server either
    being deleted before they were scheduled         deleted

They are deleted without a grace period, and are failed first unless they have finished.

Source: kubernetes/pkg/controller/podgc/gc_controller.go.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Final

from extender.kube.api_error import ApiError
from extender.kube.controller import Controller
from extender.kube.resources import NODES, PODS
from extender.kube.workqueue import WorkQueue
from fakeapi.controlplane.part import Setting
from fakeapi.controlplane.podstatus import DISRUPTED, PodWriter
from fakeapi.controlplane.shapes import Node, Pod, decode_node, decode_pod

PERIOD_SECONDS: Final = 20.0
QUARANTINE_SECONDS: Final = 40.0
TERMINATED_THRESHOLD: Final = 12_500

_OUT_OF_SERVICE: Final = "node.kubernetes.io/out-of-service"
_NO_NODE: Final = {
    **DISRUPTED,
    "reason": "DeletionByPodGC",
    "message": "PodGC: node no longer exists",
}


@dataclass(slots=True)
class Quarantine:
    """Missing nodes, and since when, in seconds."""

    since: dict[str, float]

    def over(self, missing: Iterable[str], now: float) -> list[str]:
        """Update the missing nodes, and return those that have been missing for long enough."""
        self.since = {name: self.since.get(name, now) for name in missing}
        return [name for name, at in self.since.items() if now - at >= QUARANTINE_SECONDS]


def surplus(pods: Iterable[Pod], threshold: int) -> list[Pod]:
    """Return the finished pods above the threshold, in order of deletion; 0 keeps all."""
    finished = [pod for pod in pods if pod.status.phase not in ("Pending", "Running", "Unknown")]
    count = len(finished) - threshold if threshold > 0 else 0
    return sorted(finished, key=_first_to_go)[: max(count, 0)]


def stranded(pods: Iterable[Pod], node: Node | None) -> list[Pod]:
    """Return the pods being deleted on a node that is out of service."""
    if node is None or not any(t.key == _OUT_OF_SERVICE for t in node.spec.taints or ()):
        return []
    ready = node.condition("Ready")
    if ready is not None and ready.status == "True":
        return []
    return sorted((pod for pod in pods if pod.metadata.deleting), key=_first_to_go)


def unscheduled(pods: Iterable[Pod]) -> list[Pod]:
    """Return the pods being deleted that were never scheduled."""
    return [pod for pod in pods if pod.metadata.deleting and not pod.spec.node_name]


def _first_to_go(pod: Pod) -> tuple[bool, str, str]:
    evicted = pod.status.phase == "Failed" and pod.status.reason == "Evicted"
    return not evicted, pod.metadata.creation_timestamp or "", pod.metadata.name


class PodCollector:
    """The component ``podgc``; ``threshold`` is how many finished pods are kept."""

    def __init__(self, setting: Setting, threshold: int = TERMINATED_THRESHOLD) -> None:
        self._client = setting.client
        self._clock = setting.clock
        self._pods = setting.informers.of(PODS, decode_pod)
        self._nodes = setting.informers.of(NODES, decode_node)
        self._writer = PodWriter(setting.client, setting.clock)
        self._quarantine = Quarantine({})
        self._threshold = threshold
        self._queue: WorkQueue[str] = WorkQueue(setting.clock)
        self.controller = Controller("podgc", self._queue, self._sync)

    async def run(self) -> None:
        """Check all pods periodically until cancelled."""
        await asyncio.gather(self._pods.wait_synced(), self._nodes.wait_synced())
        self._queue.add("pods")
        await self.controller.run()

    async def _sync(self, _key: str) -> float:
        pods = tuple(self._pods.objects.values())
        await self._end(surplus(pods, self._threshold))
        await self._end(self._stranded(pods))
        await self._end_orphans(pods)
        await self._end(unscheduled(pods))
        return PERIOD_SECONDS

    def _stranded(self, pods: Collection[Pod]) -> list[Pod]:
        return [
            pod
            for pod in pods
            if pod.metadata.deleting
            and stranded((pod,), self._nodes.objects.get(pod.spec.node_name))
        ]

    async def _end_orphans(self, pods: Collection[Pod]) -> None:
        names = dict.fromkeys(pod.spec.node_name for pod in pods if pod.spec.node_name)
        missing = [name for name in names if self._nodes.objects.get(name) is None]
        gone = [
            name
            for name in self._quarantine.over(missing, self._clock.monotonic())
            if not await self._exists(name)
        ]
        for pod in pods:
            if pod.spec.node_name in gone:
                await self._writer.fail_and_delete(pod, _NO_NODE)

    async def _exists(self, node: str) -> bool:
        try:
            await self._client.get(NODES.object(node), bytes)
        except ApiError as error:
            if error.status == 404:
                return False
            raise
        return True

    async def _end(self, pods: Iterable[Pod]) -> None:
        for pod in pods:
            await self._writer.fail_and_delete(pod)
