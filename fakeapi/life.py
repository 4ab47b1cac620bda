"""What goes on in a world by itself: its control plane works, and its Events expire.

A life begins and ends with the ``async with`` around it; the world is there before and after. The
control plane asks as everybody does, through a client, but its requests are not put on record. With
some of its parts comes admission of their own (:mod:`fakeapi.api.plugins`), with others the kinds
that they are about (:mod:`fakeapi.kinds.shipped`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Self

from extender.kube.client import Client
from extender.kube.informers import end
from fakeapi.answering import reception_of
from fakeapi.api import Api, Response
from fakeapi.api.plugins import PLUGINS
from fakeapi.controlplane.kubelet.outfits import AGENT, NodeAnswers, Outfit
from fakeapi.controlplane.plane import ControlPlane
from fakeapi.expiry import EventExpiry
from fakeapi.kinds.shipped import definitions_of
from fakeapi.world import World, copy_dice


class Life:
    """One world's life, as an async context manager.

    ``run`` are parts of the control plane, ``certificate`` is the server's authority's, in PEM.
    """

    def __init__(self, world: World, run: tuple[str, ...], certificate: str = "") -> None:
        world.api.registry.plugins = tuple(PLUGINS[name] for name in run if name in PLUGINS)
        world.api.begin_with(definitions_of(run))
        self._expiry = EventExpiry(world.api.store, world.clock)
        self._client, self._kubelets = (
            Client(world.inner_transport(agent)) for agent in ("", AGENT)
        )
        outfit = Outfit(world.playbook, self._kubelets, _attended(world.api))
        of = (self._client, world.clock, copy_dice(world.rng))
        self.control_plane = ControlPlane(
            *of,
            run,
            certificate,
            outfit=outfit,
            quirks=world.quirks,
            reception=reception_of(world.api),
            scheduler=world.scheduler,
        )
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
            await end(self._tasks)
            await self._kubelets.close()
            await self._client.close()


def _attended(api: Api) -> Callable[[NodeAnswers], Callable[[], None]]:
    """Return the way to have an API ask others what nodes answer."""

    def attend(answers: NodeAnswers) -> Callable[[], None]:
        def answer(node: str, path: str, query: Mapping[str, str]) -> Response | None:
            told = answers(node, path, query)
            return None if told is None else Response(told.status, told.body, told.content_type)

        return api.node_proxy.attend(answer)

    return attend
