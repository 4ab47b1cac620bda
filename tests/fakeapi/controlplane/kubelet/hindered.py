"""Kubelets that ask as any client does: what goes wrong between clients and the API meets them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random

from extender.kube.client import Client
from fakeapi import VirtualCluster
from fakeapi.controlplane.kubelet.outfits import AGENT, Outfit, Script
from fakeapi.controlplane.kubelet.parsing import read_playbook
from fakeapi.controlplane.plane import ControlPlane, ManagerOptions, Switch
from fakeapi.orders import components


@asynccontextmanager
async def hindered_kubelets(
    cluster: VirtualCluster, book: Script = "", seed: int = 0
) -> AsyncIterator[Switch]:
    """Run the kubelets of a cluster that has none of its own."""
    client = Client(cluster.local_transport(AGENT))
    outfit = Outfit(read_playbook(book), client)
    options = ManagerOptions(components=components(outfit))
    plane = ControlPlane(client, cluster.clock, Random(seed), ("kubelet",), options)
    plane.start()
    try:
        yield plane["kubelet"]
    finally:
        await plane.stop()
        await client.close()
