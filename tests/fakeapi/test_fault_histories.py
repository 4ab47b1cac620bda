"""The same seed causes the same faults and so the same history, byte for byte."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from random import Random
from typing import Any, Final

import orjson
import pytest

from extender.kube.informers.reflector import Reflector, ReflectorContext
from extender.kube.rest.client import Client
from extender.kube.rest.resources import PODS
from extender.kube.rest.transport import Request, TransportError
from fakeapi import VirtualCluster
from fakeapi.apiserver.testing.request_log import RequestRecord
from fakeapi.apiserver.watch.watch_cursor import encode_event
from fakeapi.testing.faults import fault
from tests.builders import container_json
from tests.fakeapi.clients.test_real_clients import Cache, name_and_version
from tests.fakeapi.testing.test_faults_and_clients import stored
from tests.properties.sampling import examples

SEEDS: Final = examples(100)
PODS_PATH: Final = "/api/v1/namespaces/default/pods"
PLAN: Final = (
    fault("latency", least=0, most=3).probability(0.4),
    fault(429, retry_after=2).probability(0.1),
    fault(500).on("create").probability(0.1),
    fault("drop").probability(0.05),
    fault("drop", when="after").on("create").probability(0.1),
    fault("compact").on("watch").probability(0.1),
    fault("stale", behind=2).probability(0.3),
    fault("lag", seconds=2).probability(0.3),
    fault("silence", seconds=20, after_frames=2).probability(0.3),
    fault("cut", after_frames=3).on("watch").probability(0.2),
    fault("expire", after_frames=2).probability(0.2),
)


async def write(cluster: VirtualCluster, agent: str, count: int) -> None:
    """Create pods with generated names and delete every third; errors are ignored."""
    transport = cluster.local_transport(agent)
    spec = {"containers": [container_json()]}
    body = orjson.dumps({"metadata": {"generateName": f"{agent}-"}, "spec": spec})
    for number in range(count):
        await cluster.clock.sleep(3)
        try:
            answer = await transport.request(Request("POST", PODS_PATH, body=body))
            if answer.status == 201 and number % 3 == 0:
                name = orjson.loads(answer.body)["metadata"]["name"]
                target = (("gracePeriodSeconds", "0"),)
                await transport.request(Request("DELETE", f"{PODS_PATH}/{name}", target))
        except TransportError:
            pass


@dataclass(frozen=True)
class Run:
    """The history, requests and faults of a run, the pods, and the informer's cache of them."""

    history: bytes
    requests: tuple[RequestRecord, ...]
    report: list[Any]
    pods: dict[str, str]
    cached: dict[str, str]


async def run(seed: int) -> Run:
    """Run two writers and an informer for a minute with faults, and longer without."""
    async with VirtualCluster(run="none", seed=seed) as cluster:
        cluster.faults.plan(*PLAN)
        cache = Cache()
        client = Client(cluster.local_transport("informer"))
        context = ReflectorContext(client, cluster.clock, Random(seed))
        informer = Reflector(context, PODS, name_and_version, cache)
        tasks = [
            asyncio.create_task(informer.run()),
            asyncio.create_task(write(cluster, "one", 8)),
            asyncio.create_task(write(cluster, "two", 8)),
        ]
        await cluster.clock.advance(60)
        report = [each["clients"] for each in cluster.faults.end()["faults"]]
        await cluster.clock.advance(200)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        history = b"".join(map(encode_event, cluster.api.store.history()))
        return Run(history, tuple(cluster.requests), report, stored(cluster), cache.pods)


@pytest.mark.sampled
async def test_the_same_seed_gives_the_same_history() -> None:
    runs = set()
    for seed in range(SEEDS):
        one, other = await run(seed), await run(seed)
        assert one == other, f"seed {seed}"
        assert one.cached == one.pods, f"seed {seed}: the informer has not recovered"
        runs.add(one.requests)
    assert len(runs) == SEEDS


async def test_each_fault_of_the_plan_occurs() -> None:
    faults = set()
    for seed in range(10):
        records = (await run(seed)).requests
        faults |= {name for record in records if record.fault for name in record.fault.split(", ")}
    assert {name.split()[0] for name in faults} == {str(each.fields["fault"]) for each in PLAN}
