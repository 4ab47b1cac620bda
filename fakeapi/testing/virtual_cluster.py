"""Virtual clusters: an API server with a control plane, without sockets, on a virtual clock."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Final, Self

from extender.kube.rest.client import Client
from fakeapi.apiserver.serving.virtual_clock import START_NS, VirtualClock
from fakeapi.apiserver.store.object_store import DEFAULT_HISTORY
from fakeapi.apiserver.webhooks.calls import WebhookFunction
from fakeapi.controlplane.components import (
    DEFAULT_RUN,
    parse_run,
    read_scheduler_options,
    read_simulation_script,
    register_nodes,
)
from fakeapi.controlplane.kubelet.scripts import ScriptSource
from fakeapi.controlplane.scheduler.options import ConfigurationSource, ExtenderFunction
from fakeapi.simulation.world import ComponentOptions, World, create_world
from fakeapi.testing.cluster import Cluster
from policies.workloadspread.quirks import quirks_of_mode

_SERVED: Final = ("add_user", "kubeconfig_path", "server", "url", "write_kubeconfig")


class SocketlessCluster(Cluster):
    """A cluster without sockets, on a clock that is paused until it is advanced or run."""

    def __init__(self, world: World, run: tuple[str, ...], clock: VirtualClock) -> None:
        super().__init__(world, run)
        self.clock = clock

    async def __aenter__(self) -> Self:
        await self._stack.enter_async_context(self._background_tasks)
        transport = self.local_transport()
        self.client = Client(transport)
        self._stack.push_async_callback(transport.close)
        return self

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            """Explain what only a cluster with a socket has."""
            if name in _SERVED:
                raise AttributeError(
                    f"{name}: a virtual cluster has no socket; use `async with FakeCluster()`"
                )
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @asynccontextmanager
    async def _deadline(self, seconds: float) -> AsyncIterator[None]:
        """Raise TimeoutError in the block after ``seconds`` of the clock.

        A paused clock jumps while the block waits.
        """
        async with AsyncExitStack() as stack:
            if not self.clock.factor:
                await stack.enter_async_context(self.clock.jumping())
            deadline = await stack.enter_async_context(asyncio.timeout(None))
            timer = asyncio.create_task(self.clock.sleep(seconds))
            stack.callback(timer.cancel)
            timer.add_done_callback(
                lambda done: None if done.cancelled() else deadline.reschedule(0.0)
            )
            yield

    def fork(self, snapshot: str = "") -> SocketlessCluster:
        """Return a new cluster, not yet entered, with the state of a snapshot or the current one.

        Its clock starts at this cluster's current time. Raises StatusError (404).
        """
        clock = VirtualClock(self.clock.now_ns())
        return SocketlessCluster(self.world.fork(snapshot, clock), self._run, clock)


class VirtualCluster(SocketlessCluster):
    """A new cluster without sockets, on its own virtual clock, as an async context manager.

    The options are those of :class:`~fakeapi.FakeCluster`; ``start_ns`` is the clock's start, in
    nanoseconds since the Unix epoch.
    """

    def __init__(
        self,
        *,
        run: str = DEFAULT_RUN,
        seed: int = 0,
        history: int = DEFAULT_HISTORY,
        webhooks: Mapping[str, WebhookFunction] | None = None,
        kubelet: ScriptSource = "",
        nodes: int = 0,
        quirks: str = "fixed",
        scheduler: ConfigurationSource = "",
        extender: str = "",
        extenders: Mapping[str, ExtenderFunction] | None = None,
        upstream: str = "",
        feature_gates: Mapping[str, bool] | None = None,
        start_ns: int = START_NS,
    ) -> None:
        components = parse_run(run)
        options = ComponentOptions(
            register_nodes(read_simulation_script(kubelet), nodes, components),
            read_scheduler_options(
                scheduler, extender, extenders, upstream, feature_gates=feature_gates
            ),
            quirks_of_mode(quirks),
        )
        clock = VirtualClock(start_ns)
        world = create_world(clock, seed, history, component_options=options)
        world.api.webhooks.handlers.update(webhooks or {})
        super().__init__(world, components, clock)
