"""Node leases, which kubelets renew every ten seconds as a heartbeat.

A renewal sends the server's last response with a new time in it, so that nothing is read or encoded
again; many renewals run concurrently. A lease that another client has changed or deleted is read
again, or recreated.

Source: k8s.io/component-helpers/apimachinery/lease/controller.go, pkg/kubelet/util/nodelease.go.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from extender.kube.api_error import ApiError, MalformedError
from extender.kube.client import Client
from extender.kube.clock import Clock
from extender.kube.events import format_time
from extender.kube.resources import LEASES, ObjectPath
from extender.kube.transport import TransportError

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
    known: bytes = b""


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
            lease.known = b""  # it is read again at the next renewal

    async def _write(self, node: str, lease: _NodeLease) -> bool:
        """Renew or create a lease; return False if another client has changed it."""
        lease.known = lease.known or await self._read(lease)
        try:
            if lease.known:
                body = self._renewed(lease.known, node)
                lease.known = await self._client.update(lease.path, body, _bytes)
            else:
                where, body = LEASES.collection(NAMESPACE), self._new(node, lease.uid)
                lease.known = await self._client.create(where, body, _bytes)
        except ApiError as error:
            if error.status not in (404, 409):
                raise
            lease.known = b""
            return False
        return True

    async def _read(self, lease: _NodeLease) -> bytes:
        """Return the current lease; b"" if there is none."""
        try:
            return await self._client.get(lease.path, _bytes)
        except ApiError as error:
            if error.status == 404:
                return b""
            raise

    def _renewed(self, known: bytes, node: str) -> bytes:
        """Return a lease with the current time as its renewTime."""
        begin = known.rfind(_RENEWED) + len(_RENEWED)
        end = begin + _WIDTH
        if _RENEWED in known and known[end : end + 1] == b'"':
            return b"".join((known[:begin], self._now(), known[end:]))
        lease = msgspec.json.decode(known)  # not in the format of a kubelet
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
