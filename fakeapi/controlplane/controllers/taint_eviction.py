"""Taint-based eviction: deletes pods that do not tolerate a NoExecute taint of their node.

    the pod's tolerations                              it is deleted
    do not cover some NoExecute taint                  at once
    cover all taints, the shortest one for n seconds   n seconds after the taint was observed
    cover all taints, without a limit                  never

A pending deletion is cancelled when the taints are removed or the tolerations cover them without a
limit. Its time is not changed by tolerations that change later. Pods are marked as disrupted and
deleted with their own grace period; disruption budgets are not consulted.

Source: kubernetes/pkg/controller/tainteviction/taint_eviction.go.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Final

from extender.controllers.context import ControllerContext
from extender.kube.controller_runtime.controller import Controller
from extender.kube.controller_runtime.event_recorder import ObjectReference
from extender.kube.controller_runtime.workqueue import WorkQueue
from extender.kube.informers.indexer import BY_NODE, node_of
from extender.kube.rest.resources import NODES, PODS
from fakeapi.controlplane.controllers.node_health import NO_EXECUTE
from fakeapi.controlplane.controllers.pod_status_writer import DISRUPTED, PodStatusWriter
from fakeapi.controlplane.controllers.types import Node, Pod, Taint, decode_node, decode_pod
from policies.kubernetes import selectors

_DISRUPTION_TARGET: Final = {
    **DISRUPTED,
    "reason": "DeletionByTaintManager",
    "message": "Taint manager: deleting due to NoExecute taint",
}


def tolerated_seconds(pod: Pod, taints: Sequence[Taint]) -> float | None:
    """Return for how long a pod tolerates all of some taints; None without a limit."""
    shortest: float | None = None
    for taint in taints:
        modelled = selectors.Taint(taint.key, taint.value or "", taint.effect)
        covering = next(
            (
                toleration
                for toleration in pod.spec.tolerations or ()
                if selectors.Toleration(
                    toleration.key or "",
                    toleration.operator or "",
                    toleration.value or "",
                    toleration.effect or "",
                ).tolerates(modelled)
            ),
            None,
        )
        if covering is None:
            return 0.0
        if covering.toleration_seconds is not None:
            seconds = max(0.0, covering.toleration_seconds)
            shortest = seconds if shortest is None else min(shortest, seconds)
    return shortest


class TaintEvictionController:
    """The component ``tainteviction``."""

    def __init__(self, context: ControllerContext) -> None:
        self._clock = context.clock
        self._nodes = context.informers.of(NODES, decode_node)
        self._pods = context.informers.of(PODS, decode_pod)
        self._pods.objects.add_index(BY_NODE, node_of)
        self._writer = PodStatusWriter(context.client, context.clock)
        self._recorder = context.events.recorder("taint-eviction-controller")
        self._doomed: dict[str, float] = {}
        self._queue: WorkQueue[str] = WorkQueue(context.clock)
        self.controller = Controller("tainteviction", self._queue, self._sync)

    async def run(self) -> None:
        """Evict pods until cancelled."""
        await asyncio.gather(self._nodes.wait_synced(), self._pods.wait_synced())
        self._nodes.objects.add_handler(_TaintEvictionNodeEventHandler(self))
        self._pods.objects.add_handler(_TaintEvictionPodEventHandler(self._queue))
        await self.controller.run()

    def enqueue_pods_of_node(self, name: str) -> None:
        """Enqueue all pods of a node."""
        for pod in self._pods.objects.by(BY_NODE, name):
            self._queue.add(pod.metadata.key)

    async def _sync(self, key: str) -> float | None:
        pod = self._pods.objects.get(key)
        if pod is None or pod.metadata.deleting:
            self._doomed.pop(key, None)
            return None
        taints = no_execute_taints(self._nodes.objects.get(pod.spec.node_name))
        seconds = tolerated_seconds(pod, taints) if taints else None
        if seconds is None:
            self._cancel_deletion(pod)
            return None
        now = self._clock.monotonic()
        due = self._doomed.setdefault(key, now + seconds) if seconds else now
        if due > now:
            return due - now
        self._doomed.pop(key, None)
        message = f"Marking for deletion Pod {key}"
        self._recorder.normal(_reference(pod), "TaintManagerEviction", message)
        await self._writer.disrupt_and_delete(pod, _DISRUPTION_TARGET)
        return None

    def _cancel_deletion(self, pod: Pod) -> None:
        if self._doomed.pop(pod.metadata.key, None) is not None:
            message = f"Cancelling deletion of Pod {pod.metadata.key}"
            self._recorder.normal(_reference(pod), "TaintManagerEviction", message)


class _TaintEvictionNodeEventHandler:
    """Handles events of nodes whose NoExecute taints change."""

    def __init__(self, controller: TaintEvictionController) -> None:
        self._evictor = controller

    def added(self, item: Node) -> None:
        if no_execute_taints(item):
            self._evictor.enqueue_pods_of_node(item.metadata.name)

    def updated(self, old: Node, new: Node) -> None:
        if no_execute_taints(old) != no_execute_taints(new):
            self._evictor.enqueue_pods_of_node(new.metadata.name)

    def removed(self, item: Node) -> None:
        self._evictor.enqueue_pods_of_node(item.metadata.name)


class _TaintEvictionPodEventHandler:
    """Handles events of pods: new node, new tolerations, or deletion."""

    def __init__(self, queue: WorkQueue[str]) -> None:
        self._queue = queue

    def added(self, item: Pod) -> None:
        if item.spec.node_name:
            self._queue.add(item.metadata.key)

    def updated(self, old: Pod, new: Pod) -> None:
        same = old.spec.tolerations == new.spec.tolerations
        if not same or old.spec.node_name != new.spec.node_name:
            self.added(new)

    def removed(self, item: Pod) -> None:
        self.added(item)


def no_execute_taints(node: Node | None) -> Sequence[Taint]:
    """Return the NoExecute taints of a node; none if the node does not exist."""
    taints: Iterable[Taint] = (node.spec.taints if node else None) or ()
    return [taint for taint in taints if taint.effect == NO_EXECUTE]


def _reference(pod: Pod) -> ObjectReference:
    return ObjectReference("v1", "Pod", pod.metadata.namespace, pod.metadata.name, "")
