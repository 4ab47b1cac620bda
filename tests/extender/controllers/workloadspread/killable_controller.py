"""A WorkloadSpread controller as a process that can be killed between any two of its writes."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager
from enum import Enum
from random import Random

from extender.controllers.process.controller_manager import ControllerManager, ManagerOptions
from extender.controllers.webhooks.webhook_endpoint import WebhookEndpoint
from extender.kube.rest.client import Client
from extender.kube.rest.transport import Request, Response, Stream, Transport
from fakeapi import VirtualCluster
from policies.workloadspread.quirks import FIXED, Quirks

AGENT = "workloadspread"


class When(Enum):
    """When the last write is cut off."""

    BEFORE = "before it is carried out"
    AFTER = "before its response arrives"


class LimitedTransport:
    """A transport that lets so many writes through, and then never answers; Events do not count."""

    def __init__(self, transport: Transport, writes: int | None, when: When) -> None:
        self._transport = transport
        self._left = writes
        self._when = when
        self.exhausted = asyncio.Event()

    async def request(self, request: Request) -> Response:
        if request.method == "GET" or request.path.endswith("/events"):
            return await self._transport.request(request)
        if self._left is not None:
            self._left -= 1
        if self._left is not None and self._left < 0:
            if self._when is When.AFTER and self._left == -1:
                await self._transport.request(request)
            self.exhausted.set()
            await asyncio.Event().wait()
        return await self._transport.request(request)

    def stream(self, request: Request) -> AbstractAsyncContextManager[Stream]:
        return self._transport.stream(request)

    async def close(self) -> None:
        await self._transport.close()


class Process:
    """A running controller; it is cut off after so many ``writes`` (None: never).

    If there is an ``endpoint``, webhooks of the same process are called there.
    """

    def __init__(
        self,
        cluster: VirtualCluster,
        writes: int | None = None,
        when: When = When.BEFORE,
        quirks: Quirks = FIXED,
        endpoint: WebhookEndpoint | None = None,
    ) -> None:
        self._transport = LimitedTransport(cluster.local_transport(AGENT), writes, when)
        self._manager = ControllerManager(
            Client(self._transport),
            cluster.clock,
            Random(1),
            ("workloadspread",),
            ManagerOptions(quirks=quirks, webhook_endpoint=endpoint),
        )
        self._manager.start()

    @property
    def is_cut_off(self) -> bool:
        """Whether the process has come to its last write."""
        return self._transport.exhausted.is_set()

    async def kill(self) -> None:
        """End the process at once."""
        await self._manager.stop()
