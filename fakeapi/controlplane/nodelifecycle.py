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

from extender.kube.api_error import ApiError
from extender.kube.client import PatchType, Selection
from extender.kube.controller import Controller
from extender.kube.events import rfc3339
from extender.kube.indexes import BY_NODE, node_of
from extender.kube.resources import LEASES, NODES, PODS
from extender.kube.workqueue import WorkQueue
from fakeapi.controlplane.nodehealth import (
    NOT_READY,
    UNREACHABLE,
    Heard,
    has_taint,
    is_silent,
    listen,
    no_schedule_taints,
    swapped,
    unknown_conditions,
)
from fakeapi.controlplane.part import Setting
from fakeapi.controlplane.podstatus import PodWriter
from fakeapi.controlplane.shapes import Node, Pod, Taint, decode_lease, decode_node, decode_pod
from fakeapi.controlplane.zones import Zones, zone_of

PERIOD_SECONDS: Final = 5.0
LEASE_NAMESPACE: Final = "kube-node-lease"

_SPARED: Final = "node.kubernetes.io/exclude-disruption"
_NOT_READY: Final = {"type": "Ready", "status": "False"}
_TAINT_OF: Final = {"False": NOT_READY, "Unknown": UNREACHABLE}


@dataclass(frozen=True, slots=True)
class Work:
    """A queue item; for ``node``, ``zone`` and ``pod`` it has a name.

    ``nodes`` monitors all nodes, ``node`` updates the taints of one, ``zone`` taints one node of a
    zone, and ``pod`` checks a newly assigned pod.
    """

    what: str
    name: str = ""


class NodeLifecycleController:
    """The component ``nodelifecycle``."""

    def __init__(self, setting: Setting) -> None:
        self._client = setting.client
        self._clock = setting.clock
        of = setting.informers.of
        self._nodes = of(NODES, decode_node)
        self._leases = of(LEASES, decode_lease, Selection(LEASE_NAMESPACE))
        self._pods = of(PODS, decode_pod)
        self._pods.objects.add_index(BY_NODE, node_of)
        self._writer = PodWriter(setting.client, setting.clock)
        self._recorder = setting.events.recorder("node-controller")
        self._heard: dict[str, Heard] = {}
        self._known: dict[str, Node] = {}
        self._zones = Zones()
        self._given_up: dict[str, dict[str, None]] = {}
        self._queue: WorkQueue[Work] = WorkQueue(setting.clock)
        self.controller = Controller("nodelifecycle", self._queue, self._sync)

    async def run(self) -> None:
        """Monitor nodes until cancelled."""
        shared = (self._nodes, self._leases, self._pods)
        await asyncio.gather(*(each.wait_synced() for each in shared))
        self._nodes.objects.add_handler(_Nodes(self._queue))
        self._pods.objects.add_handler(_Pods(self._queue))
        self._queue.add(Work("nodes"))
        await self.controller.run()

    async def _sync(self, work: Work) -> float | None:
        if work.what == "nodes":
            await self._listen_to_all()
            return PERIOD_SECONDS
        if work.what == "zone":
            return await self._give_one_up(work.name)
        if work.what == "pod":
            await self._look_at_pod(work.name)
        else:
            await self._taint_by_condition(work.name)
        return None

    async def _listen_to_all(self) -> None:
        nodes = tuple(self._nodes.objects.values())
        self._welcome(nodes)
        counts: dict[str, tuple[int, int]] = {}
        for node in nodes:
            status = await self._listen_to(node)
            if _SPARED not in (node.metadata.labels or {}):
                ready, unready = counts.get(zone_of(node), (0, 0))
                healthy = status == "True"
                counts[zone_of(node)] = (ready + healthy, unready + (not healthy))
        if self._zones.update(counts, self._clock.monotonic()):
            for node in nodes:
                await self._take_back(node)
        for zone, waiting in self._given_up.items():
            if waiting:
                self._queue.add(Work("zone", zone))

    def _welcome(self, nodes: Sequence[Node]) -> None:
        present = {node.metadata.name: node for node in nodes}
        for name, node in present.items():
            if name not in self._known:
                told = f"Node {name} event: Registered Node {name} in Controller"
                self._recorder.normal(node.reference, "RegisteredNode", told)
        for name, node in self._known.items():
            if name not in present:
                self._heard.pop(name, None)
                told = f"Node {name} event: Removing Node {name} from Controller"
                self._recorder.normal(node.reference, "RemovingNode", told)
        self._known = present

    async def _listen_to(self, node: Node) -> str:
        """Return the status of a node's Ready condition, set to Unknown if heartbeats stopped."""
        name, now_ns = node.metadata.name, self._clock.now_ns()
        lease = self._leases.objects.get(f"{LEASE_NAMESPACE}/{name}")
        renewed = (lease.spec.renew_time if lease else None) or ""
        heard = self._heard[name] = listen(self._heard.get(name), node, renewed, now_ns)
        ready = node.condition("Ready")
        observed = current = ready.status if ready else "Unknown"
        conditions = []
        if is_silent(heard, node, now_ns):
            conditions = unknown_conditions(node, self._now())
            current = "Unknown"
        if conditions:
            await self._patch_status(node, conditions)
        if ready is not None or conditions:
            await self._judge(node, observed)
        if observed == "True" and current != "True":
            await self._fall_silent(node)
        return current if ready is not None or conditions else "Unknown"

    async def _fall_silent(self, node: Node) -> None:
        told = f"Node {node.metadata.name} status is now: NodeNotReady"
        self._recorder.normal(node.reference, "NodeNotReady", told)
        for pod in tuple(self._pods.objects.by(BY_NODE, node.metadata.name)):
            await self._mark_not_ready(pod)

    async def _judge(self, node: Node, status: str) -> None:
        """Queue a node for its taint or remove the taint, by its observed Ready status."""
        if status == "True":
            await self._take_back(node)
            return
        wanted = _TAINT_OF.get(status, UNREACHABLE)
        opposite = NOT_READY if wanted == UNREACHABLE else UNREACHABLE
        if has_taint(node.spec.taints, opposite):
            after = swapped(node.spec.taints, wanted, (opposite,), self._now())
            await self._patch_taints(node, after)
        elif not has_taint(node.spec.taints, wanted):
            self._given_up.setdefault(zone_of(node), {})[node.metadata.name] = None

    async def _take_back(self, node: Node) -> None:
        self._given_up.get(zone_of(node), {}).pop(node.metadata.name, None)
        if not node.spec.taints:
            return
        both = (NOT_READY, UNREACHABLE)
        await self._patch_taints(node, swapped(node.spec.taints, "", both, self._now()))

    async def _give_one_up(self, zone: str) -> float | None:
        waiting = self._given_up.get(zone, {})
        turnstile = self._zones.turnstile(zone, self._clock.monotonic())
        while waiting:
            name = next(iter(waiting))
            node = self._nodes.objects.get(name)
            ready = node.condition("Ready") if node else None
            if node is None or ready is None or ready.status == "True":
                del waiting[name]
            elif not turnstile.passes(self._clock.monotonic()):
                return turnstile.next_in()
            else:
                del waiting[name]
                wanted = _TAINT_OF.get(ready.status, UNREACHABLE)
                opposite = NOT_READY if wanted == UNREACHABLE else UNREACHABLE
                after = swapped(node.spec.taints, wanted, (opposite,), self._now())
                await self._patch_taints(node, after)
        return None

    async def _taint_by_condition(self, name: str) -> None:
        node = self._nodes.objects.get(name)
        if node is not None:
            await self._patch_taints(node, no_schedule_taints(node, self._now()))

    async def _look_at_pod(self, key: str) -> None:
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
        return rfc3339(self._clock.now_ns())


class _Nodes:
    """Handles events of nodes."""

    def __init__(self, queue: WorkQueue[Work]) -> None:
        self._queue = queue

    def added(self, item: Node) -> None:
        self._queue.add(Work("node", item.metadata.name))

    def updated(self, _old: Node, new: Node) -> None:
        self.added(new)

    def removed(self, item: Node) -> None:
        """Ignore removals; the next monitoring pass detects them."""


class _Pods:
    """Handles events of pods that are assigned to a node."""

    def __init__(self, queue: WorkQueue[Work]) -> None:
        self._queue = queue

    def added(self, item: Pod) -> None:
        if item.spec.node_name:
            self._queue.add(Work("pod", item.metadata.key))

    def updated(self, old: Pod, new: Pod) -> None:
        if old.spec.node_name != new.spec.node_name:
            self.added(new)

    def removed(self, item: Pod) -> None:
        """Ignore removals; no state is kept per pod."""
