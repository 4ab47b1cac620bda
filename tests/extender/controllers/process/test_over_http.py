"""The same parts in front of a server that they reach over a socket, as they would any other."""

from __future__ import annotations

import asyncio
from random import Random

from extender.controllers.process.controller_manager import ControllerManager, ManagerOptions
from extender.kube.rest.client import Propagation, Selection
from extender.kube.rest.clock import SystemClock
from fakeapi import FakeCluster
from fakeapi.controlplane.components import components
from tests.builders import blocking, thing
from tests.stage import CONFIG_MAPS, decode

PATIENCE_SECONDS = 30


async def test_garbage_is_collected_over_http() -> None:
    async with FakeCluster(run="none") as cluster:
        cluster.load([thing("a"), thing("b", blocking("a")), thing("c", blocking("b"))])
        options = ManagerOptions(components=components())
        plane = ControllerManager(cluster.client, SystemClock(), Random(1), ("gc",), options)
        plane.start()
        begin = (await cluster.client.list(CONFIG_MAPS, decode)).resource_version
        path = CONFIG_MAPS.object("a", "default")
        await cluster.client.delete(path, propagation=Propagation.FOREGROUND)
        gone: list[str] = []
        async with (
            asyncio.timeout(PATIENCE_SECONDS),
            cluster.client.watch(
                CONFIG_MAPS,
                Selection("default"),
                resource_version=begin,
                timeout_seconds=PATIENCE_SECONDS,
            ) as events,
        ):
            async for event in events:
                if event.type == "DELETED":
                    gone.append(decode(event.object)["metadata"]["name"])
                if gone[-1:] == ["a"]:
                    break
        assert gone == ["c", "b", "a"]
        await plane.stop()
