"""Kubelets that ask as any client does: what goes wrong between clients and the API meets them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random

from extender.controllers.process.controller_manager import (
    ComponentSwitch,
    ControllerManager,
    ManagerOptions,
)
from extender.kube.rest.client import Client
from fakeapi import VirtualCluster
from fakeapi.controlplane.components import components
from fakeapi.controlplane.kubelet.script_parser import load_script
from fakeapi.controlplane.kubelet.scripts import USER_AGENT, KubeletOptions, ScriptSource


@asynccontextmanager
async def hindered_kubelets(
    cluster: VirtualCluster, book: ScriptSource = "", seed: int = 0
) -> AsyncIterator[ComponentSwitch]:
    """Run the kubelets of a cluster that has none of its own."""
    client = Client(cluster.local_transport(USER_AGENT))
    outfit = KubeletOptions(load_script(book), client)
    options = ManagerOptions(components=components(outfit))
    plane = ControllerManager(client, cluster.clock, Random(seed), ("kubelet",), options)
    plane.start()
    try:
        yield plane["kubelet"]
    finally:
        await plane.stop()
        await client.close()
