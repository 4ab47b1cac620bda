"""Kubelets that ask as any client does: what goes wrong between clients and the API meets them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random

from extender.kube.client import Client
from fakeapi import VirtualCluster
from fakeapi.controlplane.kubelet.outfits import USER_AGENT, KubeletOptions, ScriptSource
from fakeapi.controlplane.kubelet.parsing import load_script
from fakeapi.controlplane.plane import ComponentSwitch, ControllerManager, ManagerOptions
from fakeapi.orders import components


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
