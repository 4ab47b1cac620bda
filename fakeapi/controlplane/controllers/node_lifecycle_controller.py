"""The node lifecycle controller: conditions, taints and pod readiness of unhealthy nodes.

Every five seconds the health of each node is observed
(:mod:`fakeapi.controlplane.controllers.node_health`). A node that is not ready or unreachable is
queued for its NoExecute taint, by which its pods are evicted
(:mod:`fakeapi.controlplane.controllers.taint_eviction`), and is tainted at the rate of its zone. A
node that is ready again loses the taint at once. The NoSchedule taints follow the conditions
without delay.

Source: kubernetes/pkg/controller/nodelifecycle/node_lifecycle_controller.go.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from extender.controllers.context import ControllerContext
from extender.kube.controller_runtime.controller import Controller
from extender.kube.controller_runtime.workqueue import WorkQueue
from extender.kube.decoders.object_meta import format_time
from extender.kube.informers.indexer import BY_NODE, node_of
from extender.kube.rest.api_errors import ApiError
from extender.kube.rest.client import PatchType, Selection
from extender.kube.rest.resources import LEASES, NODES, PODS
from fakeapi.controlplane.controllers.node_health import (
    NOT_READY,
    UNREACHABLE,
    NodeHealthData,
    ZoneStates,
    has_missed_heartbeats,
    has_taint,
    no_schedule_taints,
    observe_heartbeat,
    swap_taints,
    unknown_conditions,
    zone_of,
)
from fakeapi.controlplane.controllers.pod_status_writer import PodStatusWriter
from fakeapi.controlplane.controllers.types import (
    Node,
    Pod,
    Taint,
    decode_lease,
    decode_node,
    decode_pod,
)

PERIOD_SECONDS: Final = 5.0
LEASE_NAMESPACE: Final = "kube-node-lease"

_EXCLUDED: Final = "node.kubernetes.io/exclude-disruption"
_NOT_READY: Final = {"type": "Ready", "status": "False"}
_TAINT_OF: Final = {"False": NOT_READY, "Unknown": UNREACHABLE}


@dataclass(frozen=True, slots=True)
class NodeLifecycleWorkItem:
    """A queue item; for ``node``, ``zone`` and ``pod`` it has a name.

    ``nodes`` monitors all nodes, ``node`` updates the taints of one, ``zone`` taints one node of a
    zone, and ``pod`` checks a newly assigned pod.
    """

    what: str
    name: str = ""


class NodeLifecycleController:
    """The component ``nodelifecycle``."""

    def __init__(self, context: ControllerContext) -> None:
        self._client = context.client
        self._clock = context.clock
        of = context.informers.of
        self._nodes = of(NODES, decode_node)
        self._leases = of(LEASES, decode_lease, Selection(LEASE_NAMESPACE))
        self._pods = of(PODS, decode_pod)
        self._pods.objects.add_index(BY_NODE, node_of)
        self._writer = PodStatusWriter(context.client, context.clock)
        self._recorder = context.events.recorder("node-controller")
        self._health: dict[str, NodeHealthData] = {}
        self._nodes_by_name: dict[str, Node] = {}
        self._zones = ZoneStates()
        self._taint_queues: dict[str, dict[str, None]] = {}
        self._queue: WorkQueue[NodeLifecycleWorkItem] = WorkQueue(context.clock)
        self.controller = Controller("nodelifecycle", self._queue, self._sync)

    async def run(self) -> None:
        """Monitor nodes until cancelled."""
        shared = (self._nodes, self._leases, self._pods)
        await asyncio.gather(*(each.wait_synced() for each in shared))
        self._nodes.objects.add_handler(_NodeLifecycleNodeEventHandler(self._queue))
        self._pods.objects.add_handler(_NodeLifecyclePodEventHandler(self._queue))
        self._queue.add(NodeLifecycleWorkItem("nodes"))
        await self.controller.run()

    async def _sync(self, work: NodeLifecycleWorkItem) -> float | None:
        if work.what == "nodes":
            await self._monitor_nodes()
            return PERIOD_SECONDS
        if work.what == "zone":
            return await self._taint_next_node(work.name)
        if work.what == "pod":
            await self._check_pod(work.name)
        else:
            await self._taint_by_condition(work.name)
        return None

    async def _monitor_nodes(self) -> None:
        nodes = tuple(self._nodes.objects.values())
        self._record_node_events(nodes)
        counts: dict[str, tuple[int, int]] = {}
        for node in nodes:
            status = await self._monitor_node(node)
            if _EXCLUDED not in (node.metadata.labels or {}):
                ready, unready = counts.get(zone_of(node), (0, 0))
                healthy = status == "True"
                counts[zone_of(node)] = (ready + healthy, unready + (not healthy))
        if self._zones.update(counts, self._clock.monotonic()):
            for node in nodes:
                await self._remove_eviction_taints(node)
        for zone, queue in self._taint_queues.items():
            if queue:
                self._queue.add(NodeLifecycleWorkItem("zone", zone))

    def _record_node_events(self, nodes: Sequence[Node]) -> None:
        present = {node.metadata.name: node for node in nodes}
        for name, node in present.items():
            if name not in self._nodes_by_name:
                message = f"Node {name} event: Registered Node {name} in Controller"
                self._recorder.normal(node.reference, "RegisteredNode", message)
        for name, node in self._nodes_by_name.items():
            if name not in present:
                self._health.pop(name, None)
                message = f"Node {name} event: Removing Node {name} from Controller"
                self._recorder.normal(node.reference, "RemovingNode", message)
        self._nodes_by_name = present

    async def _monitor_node(self, node: Node) -> str:
        """Return the status of a node's Ready condition, set to Unknown if heartbeats stopped."""
        name, now_ns = node.metadata.name, self._clock.now_ns()
        lease = self._leases.objects.get(f"{LEASE_NAMESPACE}/{name}")
        renewed = (lease.spec.renew_time if lease else None) or ""
        health = self._health[name] = observe_heartbeat(
            self._health.get(name), node, renewed, now_ns
        )
        ready = node.condition("Ready")
        observed = current = ready.status if ready else "Unknown"
        conditions = []
        if has_missed_heartbeats(health, node, now_ns):
            conditions = unknown_conditions(node, self._now())
            current = "Unknown"
        if conditions:
            await self._patch_status(node, conditions)
        if ready is not None or conditions:
            await self._update_eviction_taint(node, observed)
        if observed == "True" and current != "True":
            await self._mark_pods_not_ready(node)
        return current if ready is not None or conditions else "Unknown"

    async def _mark_pods_not_ready(self, node: Node) -> None:
        message = f"Node {node.metadata.name} status is now: NodeNotReady"
        self._recorder.normal(node.reference, "NodeNotReady", message)
        for pod in tuple(self._pods.objects.by(BY_NODE, node.metadata.name)):
            await self._mark_not_ready(pod)

    async def _update_eviction_taint(self, node: Node, status: str) -> None:
        """Queue a node for its taint or remove the taint, by its observed Ready status."""
        if status == "True":
            await self._remove_eviction_taints(node)
            return
        key = _TAINT_OF.get(status, UNREACHABLE)
        opposite = NOT_READY if key == UNREACHABLE else UNREACHABLE
        if has_taint(node.spec.taints, opposite):
            after = swap_taints(node.spec.taints, key, (opposite,), self._now())
            await self._patch_taints(node, after)
        elif not has_taint(node.spec.taints, key):
            self._taint_queues.setdefault(zone_of(node), {})[node.metadata.name] = None

    async def _remove_eviction_taints(self, node: Node) -> None:
        self._taint_queues.get(zone_of(node), {}).pop(node.metadata.name, None)
        if not node.spec.taints:
            return
        both = (NOT_READY, UNREACHABLE)
        await self._patch_taints(node, swap_taints(node.spec.taints, "", both, self._now()))

    async def _taint_next_node(self, zone: str) -> float | None:
        queue = self._taint_queues.get(zone, {})
        rate_limiter = self._zones.rate_limiter(zone, self._clock.monotonic())
        while queue:
            name = next(iter(queue))
            node = self._nodes.objects.get(name)
            ready = node.condition("Ready") if node else None
            if node is None or ready is None or ready.status == "True":
                del queue[name]
            elif not rate_limiter.try_accept(self._clock.monotonic()):
                return rate_limiter.seconds_until_next()
            else:
                del queue[name]
                key = _TAINT_OF.get(ready.status, UNREACHABLE)
                opposite = NOT_READY if key == UNREACHABLE else UNREACHABLE
                after = swap_taints(node.spec.taints, key, (opposite,), self._now())
                await self._patch_taints(node, after)
        return None

    async def _taint_by_condition(self, name: str) -> None:
        node = self._nodes.objects.get(name)
        if node is not None:
            await self._patch_taints(node, no_schedule_taints(node, self._now()))

    async def _check_pod(self, key: str) -> None:
        pod = self._pods.objects.get(key)
        node = self._nodes.objects.get(pod.spec.node_name) if pod else None
        ready = node.condition("Ready") if node else None
        if pod is not None and ready is not None and ready.status != "True":
            await self._mark_not_ready(pod)

    async def _mark_not_ready(self, pod: Pod) -> None:
        if not pod.ready:
            return
        try:
            await self._writer.set_condition(pod, _NOT_READY)
        except ApiError as error:
            if error.status not in (404, 409):
                raise
            return
        self._recorder.warning(pod.reference, "NodeNotReady", "Node is not ready")

    async def _patch_status(self, node: Node, conditions: Sequence[dict[str, object]]) -> None:
        path = NODES.object(node.metadata.name).subresource("status")
        body = msgspec.json.encode({"status": {"conditions": conditions}})
        await self._client.patch(path, PatchType.STRATEGIC, body, bytes)

    async def _patch_taints(self, node: Node, taints: list[Taint] | None) -> None:
        """Write a node's taints, unless they are unchanged; raises ApiError (409)."""
        if taints is None:
            return
        path = NODES.object(node.metadata.name)
        metadata = {"resourceVersion": node.metadata.resource_version}
        body = msgspec.json.encode({"metadata": metadata, "spec": {"taints": taints or None}})
        await self._client.patch(path, PatchType.MERGE, body, bytes)

    def _now(self) -> str:
        return format_time(self._clock.now_ns())


class _NodeLifecycleNodeEventHandler:
    """Handles events of nodes."""

    def __init__(self, queue: WorkQueue[NodeLifecycleWorkItem]) -> None:
        self._queue = queue

    def added(self, item: Node) -> None:
        self._queue.add(NodeLifecycleWorkItem("node", item.metadata.name))

    def updated(self, _old: Node, new: Node) -> None:
        self.added(new)

    def removed(self, item: Node) -> None:
        """Ignore removals; the next monitoring pass detects them."""


class _NodeLifecyclePodEventHandler:
    """Handles events of pods that are assigned to a node."""

    def __init__(self, queue: WorkQueue[NodeLifecycleWorkItem]) -> None:
        self._queue = queue

    def added(self, item: Pod) -> None:
        if item.spec.node_name:
            self._queue.add(NodeLifecycleWorkItem("pod", item.metadata.key))

    def updated(self, old: Pod, new: Pod) -> None:
        if old.spec.node_name != new.spec.node_name:
            self.added(new)

    def removed(self, item: Pod) -> None:
        """Ignore removals; no state is kept per pod."""
