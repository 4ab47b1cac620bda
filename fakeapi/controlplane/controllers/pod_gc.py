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

from extender.controllers.context import ControllerContext
from extender.kube.controller_runtime.controller import Controller
from extender.kube.controller_runtime.workqueue import WorkQueue
from extender.kube.rest.resources import NODES, PODS
from fakeapi.controlplane.controllers.pod_status_writer import DISRUPTED, PodStatusWriter
from fakeapi.controlplane.controllers.types import Node, Pod, decode_node, decode_pod

PERIOD_SECONDS: Final = 20.0
MISSING_NODE_SECONDS: Final = 40.0
TERMINATED_THRESHOLD: Final = 12_500

_OUT_OF_SERVICE: Final = "node.kubernetes.io/out-of-service"
_NO_NODE: Final = {
    **DISRUPTED,
    "reason": "DeletionByPodGC",
    "message": "PodGC: node no longer exists",
}


@dataclass(slots=True)
class MissingNodes:
    """Missing nodes, and since when, in seconds."""

    since: dict[str, float]

    def update(self, missing: Iterable[str], now: float) -> list[str]:
        """Update the missing nodes, and return those that have been missing for long enough."""
        self.since = {name: self.since.get(name, now) for name in missing}
        return [name for name, at in self.since.items() if now - at >= MISSING_NODE_SECONDS]


def finished_above_threshold(pods: Iterable[Pod], threshold: int) -> list[Pod]:
    """Return the finished pods above the threshold, in order of deletion; 0 keeps all."""
    finished = [pod for pod in pods if pod.status.phase not in ("Pending", "Running", "Unknown")]
    count = len(finished) - threshold if threshold > 0 else 0
    return sorted(finished, key=_deletion_order)[: max(count, 0)]


def on_out_of_service_node(pods: Iterable[Pod], node: Node | None) -> list[Pod]:
    """Return the pods being deleted on a node that is out of service."""
    if node is None or not any(t.key == _OUT_OF_SERVICE for t in node.spec.taints or ()):
        return []
    ready = node.condition("Ready")
    if ready is not None and ready.status == "True":
        return []
    return sorted((pod for pod in pods if pod.metadata.deleting), key=_deletion_order)


def unscheduled_terminating(pods: Iterable[Pod]) -> list[Pod]:
    """Return the pods being deleted that were never scheduled."""
    return [pod for pod in pods if pod.metadata.deleting and not pod.spec.node_name]


def _deletion_order(pod: Pod) -> tuple[bool, str, str]:
    evicted = pod.status.phase == "Failed" and pod.status.reason == "Evicted"
    return not evicted, pod.metadata.creation_timestamp or "", pod.metadata.name


class PodGarbageCollector:
    """The component ``podgc``; ``threshold`` is how many finished pods are kept."""

    def __init__(self, context: ControllerContext, threshold: int = TERMINATED_THRESHOLD) -> None:
        self._client = context.client
        self._clock = context.clock
        self._pods = context.informers.of(PODS, decode_pod)
        self._nodes = context.informers.of(NODES, decode_node)
        self._writer = PodStatusWriter(context.client, context.clock)
        self._quarantine = MissingNodes({})
        self._threshold = threshold
        self._queue: WorkQueue[str] = WorkQueue(context.clock)
        self.controller = Controller("podgc", self._queue, self._sync)

    async def run(self) -> None:
        """Check all pods periodically until cancelled."""
        await asyncio.gather(self._pods.wait_synced(), self._nodes.wait_synced())
        self._queue.add("pods")
        await self.controller.run()

    async def _sync(self, _key: str) -> float:
        pods = tuple(self._pods.objects.values())
        await self._delete_all(finished_above_threshold(pods, self._threshold))
        await self._delete_all(self._on_out_of_service_nodes(pods))
        await self._delete_orphans(pods)
        await self._delete_all(unscheduled_terminating(pods))
        return PERIOD_SECONDS

    def _on_out_of_service_nodes(self, pods: Collection[Pod]) -> list[Pod]:
        return [
            pod
            for pod in pods
            if pod.metadata.deleting
            and on_out_of_service_node((pod,), self._nodes.objects.get(pod.spec.node_name))
        ]

    async def _delete_orphans(self, pods: Collection[Pod]) -> None:
        names = dict.fromkeys(pod.spec.node_name for pod in pods if pod.spec.node_name)
        missing = [name for name in names if self._nodes.objects.get(name) is None]
        orphans = [
            name
            for name in self._quarantine.update(missing, self._clock.monotonic())
            if not await self._exists(name)
        ]
        for pod in pods:
            if pod.spec.node_name in orphans:
                await self._writer.fail_and_delete(pod, _NO_NODE)

    async def _exists(self, node: str) -> bool:
        return await self._client.find(NODES.object(node), bytes) is not None

    async def _delete_all(self, pods: Iterable[Pod]) -> None:
        for pod in pods:
            await self._writer.fail_and_delete(pod)
