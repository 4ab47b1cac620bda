"""Clients without sockets, for tests of faults: their requests, and what a watch shows them."""

from __future__ import annotations

import asyncio

import orjson

from extender.kube.rest.transport import Request, TransportError
from fakeapi import VirtualCluster
from fakeapi.apiserver.serving.local_transport import LocalTransport
from fakeapi.testing.faults import Fault
from tests.builders import Document, manifest

MAPS = "/api/v1/namespaces/default/configmaps"


def config_map(name: str) -> Document:
    return manifest("ConfigMap", name)


async def create(transport: LocalTransport, name: str) -> int:
    body = orjson.dumps({"metadata": {"name": name}})
    return (await transport.request(Request("POST", MAPS, body=body))).status


async def names(transport: LocalTransport, **query: str) -> list[str]:
    answer = await transport.request(Request("GET", MAPS, tuple(query.items())))
    assert answer.status == 200, answer.body
    return [item["metadata"]["name"] for item in orjson.loads(answer.body)["items"]]


class Follower:
    """Collects the events of a watch with their times, and how it ends."""

    def __init__(self, cluster: VirtualCluster, **query: str) -> None:
        self.seen: list[tuple[float, str, str]] = []
        self.end = ""
        self._clock = cluster.clock
        self._task = asyncio.create_task(self._follow(cluster.local_transport("tester/1"), query))

    async def _follow(self, transport: LocalTransport, query: dict[str, str]) -> None:
        asked = Request("GET", MAPS, (("watch", "true"), *query.items()))
        try:
            async with transport.stream(asked) as stream:
                async for line in stream:
                    frame = orjson.loads(line)
                    what = frame["object"].get("metadata", {}).get("name", "")
                    reason = what or frame["object"].get("reason", "")
                    self.seen.append((self._clock.monotonic(), frame["type"], reason))
            self.end = "ended"
        except TransportError:
            self.end = "broken"


async def follow(cluster: VirtualCluster, *faults: Fault, **query: str) -> Follower:
    """Watch from now on under a plan."""
    cluster.faults.plan(*faults)
    follower = Follower(cluster, **{"resourceVersion": str(cluster.api.store.version), **query})
    await cluster.clock.advance(0)
    return follower


async def follow_from(cluster: VirtualCluster, version: str) -> Follower:
    follower = Follower(cluster, resourceVersion=version)
    await cluster.clock.advance(0)
    return follower
