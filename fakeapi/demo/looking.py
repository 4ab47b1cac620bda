"""Observes the cluster with list requests for pods, nodes, Events and webhook configurations."""

from __future__ import annotations

from dataclasses import dataclass

from extender.kube.events import EVENTS
from extender.kube.metadata import decode_partial
from extender.kube.resources import NODES, PODS
from fakeapi.controllers.spreadwebhooks.registration import MUTATING, NAME
from fakeapi.demo.reading import read_event, read_node, read_pod
from fakeapi.demo.sights import Sight
from fakeapi.demo.staging import Stage


@dataclass(slots=True)
class Lookout:
    """Reads the state of a demo cluster.

    ``pods_before_burst`` are the UIDs of the pods that existed before the burst.
    """

    stage: Stage
    began: float
    before: frozenset[str] = frozenset()

    async def look(self) -> Sight:
        """Return the current state of the cluster. Raises ApiError, TransportError."""
        client = self.stage.client
        pods = await client.list(PODS, read_pod)
        nodes = await client.list(NODES, read_node)
        events = await client.list(EVENTS, read_event)
        webhooks = await client.list(MUTATING, decode_partial)
        return Sight(
            self.stage.clock.monotonic() - self.began,
            tuple(pods.items),
            tuple(sorted(nodes.items, key=lambda node: node.name)),
            tuple(events.items),
            tuple(self.stage.witness.deliberations),
            tuple(self.stage.trace),
            self.before,
            NAME in [each.metadata.name for each in webhooks.items],
        )
