"""The processes of a scheduling scenario: an API server, kube-scheduler, ``reprieve serve``.

Each is a process of its own. There are no kubelets: a deleted pod is terminating until the scenario
removes it.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.builders import Document
from tests.conformance.clusters.logged_process import LoggedProcess
from tests.conformance.clusters.watched_cluster import WatchedCluster, watched
from tests.conformance.objects import NAMESPACE, NAMESPACE_DOCUMENT
from tests.conformance.scheduling.kube_scheduler import (
    AGENT,
    EVERY_NODE,
    Extender,
    Sampling,
    configuration,
    gate_flags,
    kube_scheduler,
)
from tests.conformance.scheduling.pods import priority_classes
from tests.conformance.scheduling.relay import Relay, relay
from tests.conformance.scheduling.servers import Opening, Server, fake_server
from tests.conformance.scheduling.serving import Served, served

_POD: Final = re.compile(rf"/api/v1/namespaces/{NAMESPACE}/pods/([^/]+)/?(.*)")


@dataclass(frozen=True, slots=True)
class Environment:
    """The actions and observations of a scheduling scenario."""

    cluster: WatchedCluster
    server: Server
    extender: Served
    relay: Relay
    scheduler: LoggedProcess

    async def load(self, *objects: Mapping[str, Any]) -> None:
        """Store objects, their status included."""
        await self.server.load(objects)

    async def wait_bound(self, *pods: str) -> dict[str, str]:
        """Wait until pods are bound, and return their nodes by name."""
        await self.cluster.until(lambda: all(map(self.node_of, pods)))
        return {pod: self.node_of(pod) for pod in pods}

    async def wait_nominated(self, *pods: str) -> dict[str, str]:
        """Wait until pods are nominated, and return their nodes by name."""
        await self.cluster.until(lambda: all(map(self.nomination_of, pods)))
        return {pod: self.nomination_of(pod) for pod in pods}

    async def wait_unschedulable(self, pod: str, why: str = "") -> str:
        """Wait until a pod is reported as unschedulable because of ``why``; return the message."""

        def is_reported() -> bool:
            message = self.unschedulable_message(pod)
            return bool(message) and why in message

        await self.cluster.until(is_reported)
        return self.unschedulable_message(pod)

    async def wait_preempted(self, preemptor: str, node: str, victims: int = 1) -> list[str]:
        """Wait until a pod has preempted so many pods on a node and is bound there.

        Return the victims.
        """
        assert await self.wait_nominated(preemptor) == {preemptor: node}
        deleted = await self.wait_for_deletions(victims)
        await self.remove_terminating()
        assert await self.wait_bound(preemptor) == {preemptor: node}
        return deleted

    async def wait_for_deletions(self, count: int) -> list[str]:
        """Wait until at least so many pods are terminating, and return their names."""
        await self.cluster.until(lambda: len(self.terminating()) >= count)
        return self.terminating()

    async def remove_terminating(self) -> None:
        """Remove all terminating pods."""
        for pod in self.terminating():
            await self.cluster.delete("Pod", pod, gracePeriodSeconds=0)

    def terminating(self) -> list[str]:
        """Return the names of the terminating pods, sorted."""
        pods = (pod["metadata"] for pod in self.cluster.all("Pod"))
        return sorted(pod["name"] for pod in pods if "deletionTimestamp" in pod)

    def node_of(self, pod: str) -> str:
        """Return the node of a pod; "" if it has none."""
        return str(self._part(pod, "spec").get("nodeName", ""))

    def nomination_of(self, pod: str) -> str:
        """Return the nominated node of a pod; "" if it has none."""
        return str(self._part(pod, "status").get("nominatedNodeName", ""))

    def unschedulable_message(self, pod: str) -> str:
        """Return the message about a pod that is not scheduled; "" if there is none."""
        conditions = self._part(pod, "status").get("conditions", ())
        failed = [c for c in conditions if c["type"] == "PodScheduled" and c["status"] == "False"]
        return str(failed[0]["message"]) if failed else ""

    def written(self) -> list[str]:
        """Return the scheduler's writes about pods, as ``METHOD pod/subresource``, in order."""
        return [
            f"{each.method} {'/'.join(filter(None, found.groups()))}"
            for each in self.server.writes(AGENT)
            if (found := _POD.fullmatch(each.path))
        ]

    def deleted(self) -> list[str]:
        """Return the names of the pods that the scheduler deleted, by the server's log, sorted."""
        writes = map(str.split, self.written())
        return sorted(pod for method, pod in writes if method == "DELETE")

    def _part(self, pod: str, part: str) -> Document:
        found = self.cluster.get("Pod", pod)
        read: Document = found[part] if found else {}
        return read


@asynccontextmanager
async def nothing_else(_server: Server) -> AsyncIterator[None]:
    """Run no other component."""
    yield


@dataclass(frozen=True, slots=True)
class Setting:
    """The options of a scenario's scheduler and extender.

    ``configured`` returns the scheduler's configuration. ``run`` names components of the control
    plane that fakeapi runs, ``alongside`` starts others before the scheduler. ``gates`` are feature
    gates that the scheduler and the extender have on, ``flags`` further flags of the scheduler.
    """

    sampling: Sampling = EVERY_NODE
    extender: Callable[[str], Extender] = Extender
    configured: Callable[[Path, Sequence[Extender], Sampling], Document] = configuration
    serving: Mapping[str, Any] = field(default_factory=dict)
    gates: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    run: str = "none"
    alongside: Callable[[Server], AbstractAsyncContextManager[None]] = nothing_else


@dataclass(frozen=True, slots=True)
class SchedulingScenario:
    """A scenario of scheduling: ``play`` runs in an environment with its options."""

    play: Callable[[Environment], Awaitable[None]]
    setting: Setting = Setting()

    @property
    def name(self) -> str:
        """Its name."""
        return self.play.__name__


@asynccontextmanager
async def environment(
    program: Path, upstream: str, setting: Setting, opening: Opening = fake_server
) -> AsyncIterator[Environment]:
    """Run the processes, with the kube-scheduler of release ``upstream``, until the block ends."""
    gates = dict.fromkeys(setting.gates, True)
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(opening(setting.run))
        await server.load([NAMESPACE_DOCUMENT, *priority_classes()])
        cluster = await stack.enter_async_context(watched(server.session(), "Pod"))
        await stack.enter_async_context(setting.alongside(server))
        extender = await stack.enter_async_context(
            served(
                server.kubeconfig,
                upstream,
                featureGates=gates,
                **setting.serving,
            )
        )
        passing = await stack.enter_async_context(relay(extender.url))
        extenders = [setting.extender(passing.url)]
        config = setting.configured(server.kubeconfig, extenders, setting.sampling)
        scheduler = await stack.enter_async_context(
            kube_scheduler(program, config, (*gate_flags(gates), *setting.flags))
        )
        yield Environment(cluster, server, extender, passing, scheduler)
