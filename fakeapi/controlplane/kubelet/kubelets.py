"""The component ``kubelet``: the hollow kubelets of all nodes, in one process.

    nodes, pods  ──watches──>  hollow nodes  ──items──>  queue  ──one at a time──>  client

Only what must happen at a time uses a timer: a pod's next transition, the slots of leases and
heartbeats. So thousands of nodes cost what happens on them. All work runs through the queue: while
it is paused, no kubelet writes anything, and the nodes become silent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, TypeVar

import msgspec

from extender.kube.client import EVERYTHING, Selection
from extender.kube.controller import Controller
from extender.kube.events import EventWriter
from extender.kube.informer import Informer, Sink
from extender.kube.informers import end
from extender.kube.logs import quiet_log
from extender.kube.resources import NODES, PODS, Resource
from extender.kube.workqueue import WorkQueue
from fakeapi.controlplane.kubelet.answers import Answers
from fakeapi.controlplane.kubelet.fleet import REGISTER, Fleet, Work
from fakeapi.controlplane.kubelet.leases import Leases
from fakeapi.controlplane.kubelet.nodesyncs import NodeSyncs
from fakeapi.controlplane.kubelet.outfits import NO_OUTFIT, Outfit
from fakeapi.controlplane.kubelet.podsyncs import PodSyncs
from fakeapi.controlplane.kubelet.pressuresyncs import PressureSyncs
from fakeapi.controlplane.kubelet.pulses import Pulses
from fakeapi.controlplane.kubelet.scripts import NOTHING_SAID
from fakeapi.controlplane.kubelet.shapes import Node, Pod, Seen, decode_node, decode_pod
from fakeapi.controlplane.part import Setting

S = TypeVar("S", Node, Pod)

_BOUND: Final = Selection(field_selector="spec.nodeName!=")


class Kubelets:
    """The component ``kubelet``."""

    def __init__(self, setting: Setting, outfit: Outfit = NO_OUTFIT) -> None:
        self._setting = setting
        self._outfit = outfit
        client, clock = outfit.client or setting.client, setting.clock
        self._events = EventWriter(client, clock, setting.rng)
        playbook = outfit.playbook or NOTHING_SAID
        recorder = self._events.recorder("kubelet") if playbook.events else None
        self._client = client
        self._queue: WorkQueue[Work] = WorkQueue(clock)
        self._fleet = Fleet(playbook, clock, self._queue)
        self._pods = PodSyncs(self._fleet, client, clock, recorder)
        self._nodes = NodeSyncs(self._fleet, client, clock, recorder)
        self._pressure = PressureSyncs(self._fleet, client, clock, recorder)
        leases = Leases(client, clock, self._fleet.speaks)
        self._pulses = Pulses(leases, self._nodes, self._queue, setting.rng)
        self.controller = Controller("kubelet", self._queue, self._sync)

    async def run(self) -> None:
        """Run the kubelets of all nodes until cancelled."""
        answers = Answers(self._fleet, self._setting.clock)
        leave = self._outfit.attend(answers.answer)
        nodes = self._informer(NODES, decode_node, self._fleet.nodes)
        tasks = [asyncio.create_task(nodes.run())]
        try:
            await nodes.wait_synced()
            pods = self._informer(PODS, decode_pod, self._fleet.pods, _BOUND)
            tasks.append(asyncio.create_task(pods.run()))
            await pods.wait_synced()
            self._queue.add(REGISTER)
            await self.controller.run()
        finally:
            leave()
            await end(tasks)
            await self._events.flush()

    def _informer(
        self,
        resource: Resource,
        decode: Callable[[msgspec.Raw], Seen[S]],
        sink: Sink[Seen[S]],
        selection: Selection = EVERYTHING,
    ) -> Informer[Seen[S]]:
        clock, rng = self._setting.clock, self._setting.rng
        of = (self._client, resource, decode, sink, clock, rng, selection)
        return Informer(*of, log=quiet_log())

    async def _sync(self, work: Work) -> float | None:
        if work.what == "pod":
            return await self._pods.sync(work.name)
        if work.what == "node":
            return await self._look_at(work.name)
        if work.what == "pressure":
            return await self._pressure.sync(work.name)
        if work.what == "lease":
            return await self._pulses.lease(int(work.name))
        if work.what == "beat":
            return await self._pulses.beat(int(work.name))
        await self._nodes.register()
        return None

    async def _look_at(self, name: str) -> float | None:
        """Sync a node, and start or stop its heartbeats."""
        again = await self._nodes.sync(name)
        host = self._fleet.hosts.get(name)
        if host is None:
            self._pulses.leave(name)
        elif host.held:
            await self._pulses.join(host)
        return again
