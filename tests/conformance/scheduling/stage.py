"""The processes of a scheduling scenario: an API server, kube-scheduler, ``reprieve serve``.

Each is a process of its own. There are no kubelets: a deleted pod stays, until
the scenario lets it go.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.conformance.objects import NAMESPACE, Document
from tests.conformance.scheduling.kube_scheduler import (
    AGENT,
    EVERY_NODE,
    Extender,
    Sampling,
    configuration,
    kube_scheduler,
)
from tests.conformance.scheduling.pods import classes
from tests.conformance.scheduling.relay import Relay, relay
from tests.conformance.scheduling.servers import Opening, Server, fake_server
from tests.conformance.scheduling.serving import Served, served
from tests.conformance.watched_cluster import Watched, watched

_POD: Final = re.compile(rf"/api/v1/namespaces/{NAMESPACE}/pods/([^/]+)/?(.*)")


@dataclass(frozen=True, slots=True)
class Stage:
    """The actions and observations of a scenario."""

    world: Watched
    server: Server
    extender: Served
    relay: Relay

    async def load(self, *objects: Mapping[str, Any]) -> None:
        """Store objects, their status included."""
        await self.server.load(objects)

    async def placed(self, *pods: str) -> dict[str, str]:
        """Wait until pods have landed, and give where, by their names."""
        await self.world.until(lambda: all(map(self.node_of, pods)))
        return {pod: self.node_of(pod) for pod in pods}

    async def nominated(self, *pods: str) -> dict[str, str]:
        """Wait until pods are nominated, and return their nodes by name."""
        await self.world.until(lambda: all(map(self.nomination_of, pods)))
        return {pod: self.nomination_of(pod) for pod in pods}

    async def refused(self, pod: str, why: str = "") -> str:
        """Wait until it is said of a pod that it fits nowhere, and ``why``; gives the message."""
        await self.world.until(lambda: bool(self.said_of(pod)) and why in self.said_of(pod))
        return self.said_of(pod)

    async def told_to_go(self, count: int) -> list[str]:
        """Wait until so many pods were deleted, and return all that were, sorted."""
        await self.world.until(lambda: len(self.leaving()) >= count)
        return self.leaving()

    async def let_go(self) -> None:
        """Remove all terminating pods."""
        for pod in self.leaving():
            await self.world.delete("Pod", pod, gracePeriodSeconds=0)

    def leaving(self) -> list[str]:
        """Return the names of the terminating pods, sorted."""
        going = (
            p["metadata"] for p in self.world.all("Pod") if "deletionTimestamp" in p["metadata"]
        )
        return sorted(meta["name"] for meta in going)

    def node_of(self, pod: str) -> str:
        """Return the node of a pod; "" if it has none."""
        return str(self._part(pod, "spec").get("nodeName", ""))

    def nomination_of(self, pod: str) -> str:
        """Return the nominated node of a pod; "" if it has none."""
        return str(self._part(pod, "status").get("nominatedNodeName", ""))

    def said_of(self, pod: str) -> str:
        """Return why a pod is not scheduled, or nothing."""
        conditions = self._part(pod, "status").get("conditions", ())
        told = [c for c in conditions if c["type"] == "PodScheduled" and c["status"] == "False"]
        return str(told[0]["message"]) if told else ""

    def written(self) -> list[str]:
        """Return the scheduler's writes about pods, as ``METHOD pod/subresource``, in order."""
        return [
            f"{each.method} {'/'.join(filter(None, found.groups()))}"
            for each in self.server.writes(AGENT)
            if (found := _POD.fullmatch(each.path))
        ]

    def removed(self) -> list[str]:
        """Return the names of the pods that the scheduler deleted, by the server's log, sorted."""
        writes = map(str.split, self.written())
        return sorted(pod for method, pod in writes if method == "DELETE")

    def _part(self, pod: str, part: str) -> Document:
        found = self.world.get("Pod", pod)
        read: Document = found[part] if found else {}
        return read


@asynccontextmanager
async def nobody(_server: Server) -> AsyncIterator[None]:
    """Run no other component."""
    yield


@dataclass(frozen=True, slots=True)
class Setting:
    """How a scenario wants its scheduler and its extender.

    ``run`` and ``beside`` are what else takes part: parts of the control plane that fakeapi is to
    run, and what starts before the scheduler does.
    """

    sampling: Sampling = EVERY_NODE
    extender: Callable[[str], Extender] = Extender
    serving: Mapping[str, Any] = field(default_factory=dict)
    run: str = "none"
    beside: Callable[[Server], AbstractAsyncContextManager[None]] = nobody


@dataclass(frozen=True, slots=True)
class Scene:
    """A scenario of scheduling: ``play`` runs on a stage that is set up as it wants."""

    play: Callable[[Stage], Awaitable[None]]
    setting: Setting = Setting()

    @property
    def name(self) -> str:
        """Its name."""
        return self.play.__name__


@asynccontextmanager
async def stage(
    program: Path, upstream: str, setting: Setting, opening: Opening = fake_server
) -> AsyncIterator[Stage]:
    """Set a stage up, with the kube-scheduler of the release ``upstream``, until the block ends."""
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(opening(setting.run))
        namespace = {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": NAMESPACE}}
        await server.load([namespace, *classes()])
        there = await stack.enter_async_context(watched(server.session(), "Pod"))
        await stack.enter_async_context(setting.beside(server))
        extender = await stack.enter_async_context(
            served(server.kubeconfig, upstream, **setting.serving)
        )
        between = await stack.enter_async_context(relay(extender.url))
        extenders = [setting.extender(between.url)]
        given = configuration(server.kubeconfig, extenders, setting.sampling)
        await stack.enter_async_context(kube_scheduler(program, given))
        yield Stage(there, server, extender, between)
