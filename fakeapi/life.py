"""Background tasks of a world: its control plane and the TTL of its Events.

The tasks run while the ``async with`` block runs; the world exists before and after. The control
plane uses a client like any other component, but its requests are not in the request log. Some
components enable admission plugins (:mod:`fakeapi.apiserver.admission.builtin_plugins`); others
install the CustomResourceDefinition of their kind (:mod:`fakeapi.apiserver.kinds.schemas`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Self

from extender.kube.client import Client
from extender.kube.informers import cancel_tasks
from fakeapi.answering import in_process_endpoint
from fakeapi.api import Api, Response
from fakeapi.api.plugins import COMPONENT_PLUGINS
from fakeapi.controlplane.kubelet.outfits import USER_AGENT, KubeletEndpoint, KubeletOptions
from fakeapi.controlplane.plane import ControllerManager, ManagerOptions
from fakeapi.expiry import EventTTLController
from fakeapi.kinds.shipped import shipped_definitions
from fakeapi.orders import components
from fakeapi.world import World, copy_random


class BackgroundTasks:
    """The background tasks of one world, as an async context manager.

    ``run`` names control-plane components; ``certificate`` is the server's CA certificate in PEM.
    """

    def __init__(self, world: World, run: tuple[str, ...], certificate: str = "") -> None:
        world.api.registry.plugins = tuple(
            COMPONENT_PLUGINS[name] for name in run if name in COMPONENT_PLUGINS
        )
        world.api.seed(shipped_definitions(run))
        self._expiry = EventTTLController(world.api.store, world.clock)
        self._client, self._kubelets = (
            Client(world.internal_transport(agent)) for agent in ("", USER_AGENT)
        )
        kubelet = KubeletOptions(
            world.simulation_script, self._kubelets, _node_proxy_registrar(world.api)
        )
        options = ManagerOptions(
            certificate=certificate,
            quirks=world.quirks,
            webhook_endpoint=in_process_endpoint(world.api),
            components=components(kubelet, world.scheduler),
        )
        rng = copy_random(world.rng)
        self.control_plane = ControllerManager(self._client, world.clock, rng, run, options)
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        self._tasks = [asyncio.create_task(self._expiry.run())]
        self.control_plane.start()
        return self

    async def __aexit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        try:
            await self.control_plane.stop()
        finally:
            await cancel_tasks(self._tasks)
            await self._kubelets.close()
            await self._client.close()


def _node_proxy_registrar(api: Api) -> Callable[[KubeletEndpoint], Callable[[], None]]:
    """Return a function that registers the handler of an API's node proxy requests."""

    def attend(answers: KubeletEndpoint) -> Callable[[], None]:
        def answer(node: str, path: str, query: Mapping[str, str]) -> Response | None:
            told = answers(node, path, query)
            return None if told is None else Response(told.status, told.body, told.content_type)

        return api.node_proxy.register(answer)

    return attend
