"""The component ``kubelet``: the hollow kubelets of all nodes, in one process.

    nodes, pods  ──watches──>  hollow nodes  ──items──>  queue  ──some at a time──>  client

Only what must happen at a time uses a timer: a pod's next transition, the slots of leases and
heartbeats. So thousands of nodes cost what happens on them. All work runs through the queue: while
it is paused, no kubelet writes anything, and the nodes become silent. Heartbeats come first, so
that no lease expires while the kubelets start many pods; then nodes, before the pods on them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Final, TypeVar

import msgspec

from extender.controllers.context import ControllerContext
from extender.kube.controller_runtime.controller import Controller
from extender.kube.controller_runtime.event_recorder import EventWriter
from extender.kube.controller_runtime.workqueue import WorkQueue
from extender.kube.informers.reflector import Reflector, ReflectorContext, ReflectorStore
from extender.kube.informers.shared_informer import cancel_tasks
from extender.kube.rest.client import EVERYTHING, Selection
from extender.kube.rest.rate_limited_log import quiet_log
from extender.kube.rest.resources import NODES, PODS, Resource
from fakeapi.controlplane.kubelet.eviction_manager import EvictionManager
from fakeapi.controlplane.kubelet.heartbeat import HeartbeatSchedule, NodeLeases
from fakeapi.controlplane.kubelet.hollow_nodes import REGISTER, HollowNodes, KubeletWorkItem
from fakeapi.controlplane.kubelet.http_api import KubeletApi
from fakeapi.controlplane.kubelet.node_status import NodeStatusWorker
from fakeapi.controlplane.kubelet.pod_worker import PodWorker
from fakeapi.controlplane.kubelet.scripts import (
    DEFAULT_KUBELET_OPTIONS,
    EMPTY_SCRIPT,
    KubeletOptions,
)
from fakeapi.controlplane.kubelet.types import (
    DecodedObject,
    KubeletNode,
    KubeletPod,
    decode_node,
    decode_pod,
)

S = TypeVar("S", KubeletNode, KubeletPod)

WORKERS: Final = 16
"""A request of a kubelet waits for all others that the server has received meanwhile."""

_RANKS: Final = {"lease": 0, "beat": 0, "node": 1}


def _rank(work: KubeletWorkItem) -> int:
    """Return the rank of a work item: 0 is the first."""
    return _RANKS.get(work.kind, len(_RANKS))


_BOUND: Final = Selection(field_selector="spec.nodeName!=")


class HollowKubelet:
    """The component ``kubelet``."""

    def __init__(
        self, context: ControllerContext, options: KubeletOptions = DEFAULT_KUBELET_OPTIONS
    ) -> None:
        self._context = context
        self._options = options
        client, clock = options.client or context.client, context.clock
        self._events = EventWriter(client, clock, context.rng)
        script = options.script or EMPTY_SCRIPT
        recorder = self._events.recorder("kubelet") if script.events else None
        self._client = client
        self._queue: WorkQueue[KubeletWorkItem] = WorkQueue(clock, rank=_rank)
        self._hollow_nodes = HollowNodes(script, clock, self._queue)
        self._pods = PodWorker(self._hollow_nodes, client, clock, recorder)
        self._nodes = NodeStatusWorker(self._hollow_nodes, client, clock, recorder)
        self._pressure = EvictionManager(self._hollow_nodes, client, clock, recorder)
        leases = NodeLeases(client, clock, self._hollow_nodes.is_speaking)
        self._heartbeats = HeartbeatSchedule(leases, self._nodes, self._queue, context.rng)
        self.controller = Controller("kubelet", self._queue, self._sync, WORKERS)

    async def run(self) -> None:
        """Run the kubelets of all nodes until cancelled."""
        api = KubeletApi(self._hollow_nodes, self._context.clock)
        unregister = self._options.register_endpoint(api.respond)
        nodes = self._informer(NODES, decode_node, self._hollow_nodes.nodes)
        forget_resets = self._options.on_reset(partial(self._queue.add, REGISTER))
        tasks = [asyncio.create_task(nodes.run())]
        try:
            await nodes.wait_synced()
            pods = self._informer(PODS, decode_pod, self._hollow_nodes.pods, _BOUND)
            tasks.append(asyncio.create_task(pods.run()))
            await pods.wait_synced()
            self._queue.add(REGISTER)
            await self.controller.run()
        finally:
            forget_resets()
            unregister()
            await cancel_tasks(tasks)
            await self._events.flush()

    def _informer(
        self,
        resource: Resource,
        decode: Callable[[msgspec.Raw], DecodedObject[S]],
        store: ReflectorStore[DecodedObject[S]],
        selection: Selection = EVERYTHING,
    ) -> Reflector[DecodedObject[S]]:
        clock, rng = self._context.clock, self._context.rng
        context = ReflectorContext(self._client, clock, rng, quiet_log())
        return Reflector(context, resource, decode, store, selection)

    async def _sync(self, work: KubeletWorkItem) -> float | None:
        if work.kind == "pod":
            await asyncio.sleep(0)  # thousands of pods may be resumed without a request
            return await self._pods.sync(work.name)
        if work.kind == "node":
            return await self._sync_node(work.name)
        if work.kind == "pressure":
            return await self._pressure.sync(work.name)
        if work.kind == "lease":
            return await self._heartbeats.renew_leases(int(work.name))
        if work.kind == "beat":
            return await self._heartbeats.write_heartbeats(int(work.name))
        await self._nodes.register()
        return None

    async def _sync_node(self, name: str) -> float | None:
        """Sync a node, and start or stop its heartbeats."""
        again = await self._nodes.sync(name)
        hollow = self._hollow_nodes.nodes_by_name.get(name)
        if hollow is None:
            self._heartbeats.remove_node(name)
        elif hollow.written_conditions and self._options.heartbeats:
            await self._heartbeats.add_node(hollow)
        return again
