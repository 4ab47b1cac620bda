"""Three replicas of the extender: they answer alike, and each may be killed at any moment."""

from __future__ import annotations

import asyncio
import json
import random
import signal
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp

from extender.kube.rest.client import Client
from extender.kube.rest.resources import PODS
from fakeapi.testing.fake_cluster import FakeCluster
from tests.builders import node_json, pod_json
from tests.commands import start, wait_ready
from tests.extender.conftest import filter_body, preempt_body

NODES = [f"node-{number}" for number in range(12)]
OFFERS = {name.replace("-", "_"): [f"web-{name}"] for name in NODES}


@dataclass
class Replica:
    """One extender in a process of its own."""

    process: Process
    url: str


async def replica(server: str) -> Replica:
    """Start an extender and wait until it is ready, as a Service does before it sends calls."""
    process = await start("serve", "--port", "0", "--server", server)
    assert process.stdout is not None
    url = (await process.stdout.readline()).decode().split()[-1]
    await wait_ready(url)
    return Replica(process, url)


@asynccontextmanager
async def replicas(server: str, count: int) -> AsyncIterator[list[Replica]]:
    """Run replicas; those that still run at the end must exit with 0 after SIGTERM."""
    running = list(await asyncio.gather(*(replica(server) for _ in range(count))))
    try:
        yield running
    finally:
        for each in running:
            if each.process.returncode is None:
                each.process.send_signal(signal.SIGTERM)
        ended = [await each.process.communicate() for each in running]
    for each, (_, errors) in zip(running, ended, strict=True):
        assert each.process.returncode == 0, errors.decode()


def objects() -> list[dict[str, Any]]:
    """Return full nodes, whose pods differ in priority."""
    return [
        *(node_json(name, cpu="1") for name in NODES),
        *(
            pod_json(f"web-{name}", on=name, cpu="1", priority=3 + number % 5)
            for number, name in enumerate(NODES)
        ),
    ]


class Service:
    """Sends each call to one of the replicas, and to the next if the connection breaks.

    kube-proxy and kube-scheduler do so together: a call that fails is repeated in the next
    scheduling cycle, over a new connection.
    """

    def __init__(self, session: aiohttp.ClientSession, behind: Sequence[Replica]) -> None:
        self._session = session
        self._behind = behind
        self._turn = 0

    async def call(self, verb: str, body: bytes) -> object:
        while True:
            self._turn += 1
            url = self._behind[self._turn % len(self._behind)].url
            try:
                async with self._session.post(f"{url}/{verb}", data=body) as response:
                    text = await response.text()
                    assert response.status == 200, text
                    return json.loads(text)
            except aiohttp.ClientConnectionError:
                continue


def calls(name: str) -> list[tuple[str, bytes]]:
    """Return the filter call and the preempt call for a pod."""
    pod = pod_json(name, cpu="1", priority=10)
    return [("filter", filter_body(pod, *NODES)), ("preempt", preempt_body(pod, **OFFERS))]


async def test_all_answer_alike() -> None:
    async with FakeCluster(run="none") as cluster, aiohttp.ClientSession() as session:
        cluster.load(objects())
        async with replicas(cluster.url, 3) as running:
            for verb, body in calls("vip"):
                answers = [await Service(session, [each]).call(verb, body) for each in running]
                assert answers[0] == answers[1] == answers[2]


class Scheduler:
    """Preempts as kube-scheduler does: offers nodes, and carries out the answer.

    Only this process keeps decisions, so none is lost when a replica is killed.
    """

    def __init__(self, cluster: FakeCluster, service: Service) -> None:
        self._cluster = cluster
        self._service = service
        self._client = Client(cluster.local_transport())
        self.evicted: list[str] = []

    async def place(self, name: str) -> None:
        """Find a node for a pod, evict the victims, and bind it."""
        pod = pod_json(name, cpu="1", priority=10)
        answer: Any = await self._service.call("preempt", preempt_body(pod, **self._offers()))
        [(node, victims)] = answer["NodeNameToMetaVictims"].items()
        assert [victim["UID"] for victim in victims["Pods"]] == self._offers()[node]
        await self._client.delete(PODS.object(f"web-{node}", "default"), grace_period_seconds=0)
        self._cluster.load([pod_json(name, on=node, cpu="1", priority=10)])
        self.evicted.append(f"web-{node}")

    def _offers(self) -> dict[str, list[str]]:
        pods = [each for each in self._cluster.export() if each["kind"] == "Pod"]
        others = [each for each in pods if each["metadata"]["name"].startswith("web-")]
        return {each["spec"]["nodeName"]: [each["metadata"]["uid"]] for each in others}


async def test_killing_any_of_them_at_any_moment_loses_nothing() -> None:
    rng = random.Random(7)
    async with FakeCluster(run="none") as cluster, aiohttp.ClientSession() as session:
        cluster.load(objects())
        async with replicas(cluster.url, 3) as running:
            scheduler = Scheduler(cluster, Service(session, running))
            for number in range(8):
                placing = asyncio.create_task(scheduler.place(f"vip-{number}"))
                if number % 3 == 0:
                    for _ in range(rng.randrange(30)):  # at any moment of the call
                        await asyncio.sleep(0)
                    await replaced(running, rng.randrange(3), cluster.url)
                await placing
        # The eight pods of the lowest priorities were evicted in order, each once.
        expected = sorted((f"web-{n}" for n in NODES), key=lambda name: (priority_of(name), name))
        assert scheduler.evicted == expected[:8]


def priority_of(name: str) -> int:
    """Return the priority of an initial pod."""
    return 3 + NODES.index(name.removeprefix("web-")) % 5


async def replaced(running: list[Replica], place: int, server: str) -> None:
    """Kill a replica, and replace it by a new one, as a Deployment does."""
    running[place].process.kill()
    await running[place].process.communicate()
    running[place] = await replica(server)
