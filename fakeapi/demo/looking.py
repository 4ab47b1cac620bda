"""Observes the cluster with list requests for pods, nodes, Events and webhook configurations."""

from __future__ import annotations

from dataclasses import dataclass

from extender.kube.events import EVENTS
from extender.kube.metadata import decode_partial
from extender.kube.resources import NODES, PODS
from fakeapi.controllers.spreadwebhooks.registration import MUTATING, NAME
from fakeapi.demo.reading import read_event, read_node, read_pod
from fakeapi.demo.sights import ObservedState
from fakeapi.demo.staging import DemoCluster


@dataclass(slots=True)
class ClusterObserver:
    """Reads the state of a demo cluster.

    ``pods_before_burst`` are the UIDs of the pods that existed before the burst.
    """

    cluster: DemoCluster
    began: float
    pods_before_burst: frozenset[str] = frozenset()

    async def observe(self) -> ObservedState:
        """Return the current state of the cluster. Raises ApiError, TransportError."""
        client = self.cluster.client
        pods = await client.list(PODS, read_pod)
        nodes = await client.list(NODES, read_node)
        events = await client.list(EVENTS, read_event)
        webhooks = await client.list(MUTATING, decode_partial)
        return ObservedState(
            self.cluster.clock.monotonic() - self.began,
            tuple(pods.items),
            tuple(sorted(nodes.items, key=lambda node: node.name)),
            tuple(events.items),
            tuple(self.cluster.collector.decisions),
            tuple(self.cluster.trace),
            self.pods_before_burst,
            NAME in [each.metadata.name for each in webhooks.items],
        )
