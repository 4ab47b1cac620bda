"""The heartbeat schedule: when the leases and status heartbeats of nodes are due.

Every node has a slot among the tenths of ten seconds for its lease, and among the seconds of five
minutes for the times in its status, chosen at random when it is added. Work items are per slot, so
that the queue holds some hundred entries, independent of the number of nodes.
"""

from __future__ import annotations

from random import Random
from typing import Final

from extender.kube.workqueue import WorkQueue
from fakeapi.controlplane.kubelet.fleet import KubeletWorkItem
from fakeapi.controlplane.kubelet.hosts import HollowNode
from fakeapi.controlplane.kubelet.leases import NodeLeases
from fakeapi.controlplane.kubelet.nodesyncs import NodeStatusWorker

LEASE_SECONDS: Final = 10.0
LEASE_SLOTS: Final = 100
HEARTBEAT_SECONDS: Final = 300.0
HEARTBEAT_SLOTS: Final = 300


class HeartbeatSchedule:
    """The slots of all nodes."""

    def __init__(
        self,
        leases: NodeLeases,
        nodes: NodeStatusWorker,
        queue: WorkQueue[KubeletWorkItem],
        rng: Random,
    ) -> None:
        self._leases = leases
        self._nodes = nodes
        self._queue = queue
        self._rng = rng
        self._slots: dict[str, tuple[str, int, int]] = {}
        self._of_leases: dict[int, dict[str, None]] = {}
        self._of_beats: dict[int, dict[str, None]] = {}

    async def add_node(self, host: HollowNode) -> None:
        """Start a node's heartbeats, unless they are running; create its lease at once."""
        name, uid = host.name, host.node.metadata.uid
        if self._slots.get(name, ("",))[0] == uid:
            return
        self.remove_node(name)
        lease, beat = self._rng.randrange(LEASE_SLOTS), self._rng.randrange(HEARTBEAT_SLOTS)
        self._slots[name] = uid, lease, beat
        self._leases.add(name, uid)
        self._enter(self._of_leases, "lease", lease, name, LEASE_SECONDS / LEASE_SLOTS)
        self._enter(self._of_beats, "beat", beat, name, HEARTBEAT_SECONDS / HEARTBEAT_SLOTS)
        await self._leases.renew([name])

    def remove_node(self, name: str) -> None:
        """Stop a node's heartbeats."""
        _, lease, beat = self._slots.pop(name, ("", -1, -1))
        self._of_leases.get(lease, {}).pop(name, None)
        self._of_beats.get(beat, {}).pop(name, None)
        self._leases.drop(name)

    async def renew_leases(self, slot: int) -> float | None:
        """Renew the leases of a slot; return the seconds until the next renewal."""
        members = self._of_leases.get(slot, {})
        await self._leases.renew(tuple(members))
        return LEASE_SECONDS if members else None

    async def write_heartbeats(self, slot: int) -> float | None:
        """Write the heartbeats of a slot; return the seconds until the next ones."""
        members = self._of_beats.get(slot, {})
        for name in tuple(members):
            await self._nodes.write_heartbeat(name)
        return HEARTBEAT_SECONDS if members else None

    def _enter(
        self, of: dict[int, dict[str, None]], what: str, slot: int, name: str, width: float
    ) -> None:
        members = of.setdefault(slot, {})
        members[name] = None
        if len(members) == 1:
            self._queue.add_after(KubeletWorkItem(what, str(slot)), (slot + 1) * width)
