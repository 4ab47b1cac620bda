"""The nodes of a cluster and the pods on them, kept current by informers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from random import Random

from extender.kube.decoders.node_hosts import (
    AdvisedNode,
    AdvisedPod,
    advised_pod_decoder,
    decode_advised_node,
)
from extender.kube.informers.reflector import Reflector, ReflectorContext
from extender.kube.informers.shared_informer import cancel_tasks
from extender.kube.rest.client import Client, Selection
from extender.kube.rest.clock import Clock
from extender.kube.rest.rate_limited_log import quiet_log
from extender.kube.rest.resources import NODES, PODS
from policies.eviction.kubelet_releases import EvictionRelease


class AdvisedNodeStore:
    """The nodes, by their names; the store of an informer."""

    def __init__(self) -> None:
        self.by_name: dict[str, AdvisedNode] = {}

    def replace(self, items: Sequence[AdvisedNode]) -> None:
        """Replace all nodes."""
        self.by_name = {each.name: each for each in items}

    def upsert(self, item: AdvisedNode) -> None:
        """Add or update a node."""
        self.by_name[item.name] = item

    def remove(self, item: AdvisedNode) -> None:
        """Remove a node."""
        self.by_name.pop(item.name, None)


class AdvisedPodStore:
    """The pods, by their nodes; the store of an informer."""

    def __init__(self) -> None:
        self._on: dict[str, dict[str, AdvisedPod]] = {}
        self._node_of: dict[str, str] = {}

    def pods_on(self, node: str) -> list[AdvisedPod]:
        """Return the pods on a node, active or not."""
        return list(self._on.get(node, {}).values())

    def replace(self, items: Sequence[AdvisedPod]) -> None:
        """Replace all pods."""
        self._on, self._node_of = {}, {}
        for each in items:
            self.upsert(each)

    def upsert(self, item: AdvisedPod) -> None:
        """Add or update a pod, whichever node it was on."""
        self.remove(item)
        self._node_of[item.key] = item.node
        self._on.setdefault(item.node, {})[item.key] = item

    def remove(self, item: AdvisedPod) -> None:
        """Remove a pod."""
        node = self._node_of.pop(item.key, None)
        if node is not None:
            self._on[node].pop(item.key)
            if not self._on[node]:
                del self._on[node]


class NodeInventory:
    """The current nodes and pods."""

    def __init__(self, nodes: AdvisedNodeStore, pods: AdvisedPodStore) -> None:
        self._nodes = nodes
        self._pods = pods

    @property
    def nodes(self) -> Mapping[str, AdvisedNode]:
        """The nodes by their names."""
        return self._nodes.by_name

    def pods_on(self, node: str) -> list[AdvisedPod]:
        """Return the active pods on a node."""
        return [each for each in self._pods.pods_on(node) if each.active]


@asynccontextmanager
async def run_inventory(
    client: Client, clock: Clock, rng: Random, release: EvictionRelease, node: str | None = None
) -> AsyncIterator[NodeInventory]:
    """Run the informers of all nodes, or of one.

    Raise ApiError, MalformedError or TransportError if the server rejects the first requests or
    cannot be reached; later errors are retried.
    """
    named = Selection(field_selector="" if node is None else f"metadata.name={node}")
    bound = Selection(field_selector="spec.nodeName!=" if node is None else f"spec.nodeName={node}")
    node_store, pod_store = AdvisedNodeStore(), AdvisedPodStore()
    nothing = Selection(field_selector="metadata.name=")
    for resource in (NODES, PODS):
        # An informer would retry without end.
        await client.list(resource, bytes, nothing, resource_version="0")
    context = ReflectorContext(client, clock, rng, quiet_log())
    nodes = Reflector(context, NODES, decode_advised_node, node_store, named)
    pods = Reflector(context, PODS, advised_pod_decoder(release), pod_store, bound)
    tasks = [asyncio.create_task(nodes.run()), asyncio.create_task(pods.run())]
    try:
        await nodes.wait_synced()
        await pods.wait_synced()
        yield NodeInventory(node_store, pod_store)
    finally:
        await cancel_tasks(tasks)
