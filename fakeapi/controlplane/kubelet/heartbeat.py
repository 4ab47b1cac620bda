"""Node leases, which kubelets renew every ten seconds as a heartbeat, and the heartbeat schedule.

A renewal sends the server's last response with a new time in it, so that nothing is read or encoded
again; many renewals run concurrently. A lease that another client has changed or deleted is read
again, or recreated.

Every node has a slot among the tenths of ten seconds for its lease, and among the seconds of five
minutes for the times in its status, chosen at random when it is added. Work items are per slot, so
that the queue holds some hundred entries, independent of the number of nodes.

Source: k8s.io/component-helpers/apimachinery/lease/controller.go, pkg/kubelet/util/nodelease.go.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final

import msgspec

from extender.kube.controller_runtime.workqueue import WorkQueue
from extender.kube.decoders.object_meta import format_time
from extender.kube.rest.api_errors import ApiError, MalformedError
from extender.kube.rest.client import Client
from extender.kube.rest.clock import Clock
from extender.kube.rest.resources import LEASES, ObjectPath
from extender.kube.rest.transport import TransportError
from fakeapi.controlplane.kubelet.hollow_node import HollowNode
from fakeapi.controlplane.kubelet.hollow_nodes import KubeletWorkItem
from fakeapi.controlplane.kubelet.node_status import NodeStatusWorker

NAMESPACE: Final = "kube-node-lease"
DURATION_SECONDS: Final = 40

_TOGETHER: Final = 10
_ATTEMPTS: Final = 5
_RENEWED: Final = b'"renewTime":"'
_WIDTH: Final = len("2026-01-01T00:00:00.000000Z")


@dataclass(slots=True)
class _NodeLease:
    """A node's lease: its path, its node's UID, and the server's last response (b"" for none)."""

    path: ObjectPath
    uid: str
    response: bytes = b""


class NodeLeases:
    """The leases of nodes; ``speaks`` returns whether a node's kubelet is not silent."""

    def __init__(self, client: Client, clock: Clock, speaks: Callable[[str], bool]) -> None:
        self._client = client
        self._clock = clock
        self._speaks = speaks
        self._leases: dict[str, _NodeLease] = {}

    def add(self, node: str, uid: str) -> None:
        """Renew a node's lease from now on."""
        self._leases[node] = _NodeLease(LEASES.object(node, NAMESPACE), uid)

    def drop(self, node: str) -> None:
        """Stop renewing a node's lease."""
        self._leases.pop(node, None)

    async def renew(self, nodes: Sequence[str]) -> None:
        """Renew the leases of some nodes, several of them concurrently."""
        left = iter(nodes)
        await asyncio.gather(*(self._renew_all(left) for _ in nodes[:_TOGETHER]))

    async def _renew_all(self, left: Iterator[str]) -> None:
        for node in left:
            await self._renew(node)

    async def _renew(self, node: str) -> None:
        lease = self._leases.get(node)
        if lease is None or not self._speaks(node):
            return
        try:
            for _ in range(_ATTEMPTS):
                if await self._write(node, lease):
                    return
        except (ApiError, MalformedError, TransportError):
            lease.response = b""  # it is read again at the next renewal

    async def _write(self, node: str, lease: _NodeLease) -> bool:
        """Renew or create a lease; return False if another client has changed it."""
        lease.response = lease.response or await self._read(lease)
        try:
            if lease.response:
                body = self._renewed(lease.response, node)
                lease.response = await self._client.update(lease.path, body, _bytes)
            else:
                where, body = LEASES.collection(NAMESPACE), self._new(node, lease.uid)
                lease.response = await self._client.create(where, body, _bytes)
        except ApiError as error:
            if error.status not in (404, 409):
                raise
            lease.response = b""
            return False
        return True

    async def _read(self, lease: _NodeLease) -> bytes:
        """Return the current lease; b"" if there is none."""
        return await self._client.find(lease.path, _bytes) or b""

    def _renewed(self, response: bytes, node: str) -> bytes:
        """Return a lease with the current time as its renewTime."""
        begin = response.rfind(_RENEWED) + len(_RENEWED)
        end = begin + _WIDTH
        if _RENEWED in response and response[end : end + 1] == b'"':
            return b"".join((response[:begin], self._now(), response[end:]))
        lease = msgspec.json.decode(response)  # not in the format of a kubelet
        lease["spec"] = {**(lease.get("spec") or {}), **self._spec(node)}
        return msgspec.json.encode(lease)

    def _new(self, node: str, uid: str) -> bytes:
        owner = {"apiVersion": "v1", "kind": "Node", "name": node, "uid": uid}
        lease = {
            "kind": "Lease",
            "apiVersion": "coordination.k8s.io/v1",
            "metadata": {"name": node, "namespace": NAMESPACE, "ownerReferences": [owner]},
            "spec": self._spec(node),
        }
        return msgspec.json.encode(lease)

    def _spec(self, node: str) -> dict[str, str | int]:
        return {
            "holderIdentity": node,
            "leaseDurationSeconds": DURATION_SECONDS,
            "renewTime": self._now().decode(),
        }

    def _now(self) -> bytes:
        now_ns = self._clock.now_ns()
        return f"{format_time(now_ns)[:-1]}.{now_ns % 10**9 // 1000:06}Z".encode()


def _bytes(raw: msgspec.Raw) -> bytes:
    return bytes(raw).removesuffix(b"\n")


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

    async def add_node(self, hollow: HollowNode) -> None:
        """Start a node's heartbeats, unless they are running; create its lease at once."""
        name, uid = hollow.name, hollow.node.metadata.uid
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
