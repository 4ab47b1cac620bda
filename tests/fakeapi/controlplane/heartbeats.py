"""Kubelets that do one thing: show life, as upstream's do, by their leases and their status."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from types import TracebackType
from typing import Final, Self

import orjson

from extender.kube.decoders.object_meta import format_time
from extender.kube.rest.api_errors import ApiError
from extender.kube.rest.client import PatchType
from extender.kube.rest.resources import LEASES, NODES
from tests.fakeapi.controlplane.stage import Stage, decode

NAMESPACE: Final = "kube-node-lease"
RENEW_SECONDS: Final = 10.0
STATUS_SECONDS: Final = 300.0


class Kubelets:
    """The kubelets of some nodes, which they register, as an async context manager."""

    def __init__(self, stage: Stage, names: Iterable[str]) -> None:
        self._stage = stage
        self._silent: dict[str, None] = {}
        self._names = list(names)
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        for name in self._names:
            self._stage.load(
                {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "uid": name}},
                {
                    "apiVersion": "coordination.k8s.io/v1",
                    "kind": "Lease",
                    "metadata": {"name": name, "namespace": NAMESPACE},
                    "spec": {"holderIdentity": name, "leaseDurationSeconds": 40},
                },
            )
        self._tasks = [
            asyncio.create_task(work)
            for name in self._names
            for work in (
                self._repeat(name, RENEW_SECONDS, self._renew),
                self._repeat(name, STATUS_SECONDS, self._report),
            )
        ]
        return self

    async def __aexit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def silence(self, name: str) -> None:
        """Have a kubelet fall silent."""
        self._silent[name] = None

    def wake(self, name: str) -> None:
        """Have a kubelet speak again."""
        self._silent.pop(name, None)

    async def _repeat(self, name: str, seconds: float, act: object) -> None:
        while True:
            if name not in self._silent:
                try:
                    await act(name)  # type: ignore[operator]
                except ApiError as error:
                    if error.status not in (404, 409):
                        raise
            await self._stage.cluster.clock.sleep(seconds)

    async def _renew(self, name: str) -> None:
        now_ns = self._stage.cluster.clock.now_ns()
        time = f"{format_time(now_ns)[:-1]}.{now_ns % 10**9 // 1000:06}Z"
        body = orjson.dumps({"spec": {"renewTime": time}})
        path = LEASES.object(name, NAMESPACE)
        await self._stage.client.patch(path, PatchType.MERGE, body, decode)

    async def _report(self, name: str) -> None:
        now = format_time(self._stage.cluster.clock.now_ns())
        times = {"lastHeartbeatTime": now, "lastTransitionTime": now}
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", **times}
        body = orjson.dumps({"status": {"conditions": [ready]}})
        path = NODES.object(name).subresource("status")
        await self._stage.client.patch(path, PatchType.STRATEGIC, body, decode)
