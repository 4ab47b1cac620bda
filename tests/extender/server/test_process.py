"""The extender as a process serves it, with the informers that its configuration needs."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import msgspec
import pytest

from extender.config.component_config import Config, load_config
from extender.kube.rest.clock import SystemClock
from extender.server.process import run_server
from fakeapi.testing.fake_cluster import FakeCluster
from tests.builders import manifest, node_json, pod_json
from tests.extender.conftest import filter_body, following
from tests.extender.go_decoder import filtered
from tests.extender.secure_serving.raw_clients import FILTER, wait_until

SPREAD_BY_DEFAULT = """
pluginConfig:
- name: PodTopologySpread
  args:
    defaultingType: List
    defaultConstraints:
    - {maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}
"""
WORKLOADS = {"services", "replicationcontrollers", "replicasets", "statefulsets"}


async def test_services_are_followed_only_if_pods_are_spread_by_default(tmp_path: Path) -> None:
    path = tmp_path / "reprieve.yaml"
    path.write_text(SPREAD_BY_DEFAULT)
    web = {"app": "web"}
    objects = [
        node_json("node-1", labels={"zone": "a"}),
        node_json("node-2", labels={"zone": "b"}),
        pod_json("web", on="node-1", labels=web),
        manifest("Service", "web", spec={"selector": web, "ports": [{"port": 80}]}),
    ]
    asking = filter_body(pod_json("next", labels=web), "node-1", "node-2")
    for config, followed, feasible in (
        (load_config(path), WORKLOADS, ["node-2"]),
        (Config(), set(), ["node-1", "node-2"]),
    ):
        async with following(objects, msgspec.structs.replace(config, port=0)) as it:
            await it.let_it_sync()
            assert WORKLOADS.intersection(it.extender.service.informers) == followed
            reply = await it.extender.post("/filter", asking)
            assert filtered(reply.body, ["node-1", "node-2"], cached=True).names == feasible


@pytest.mark.parametrize(
    ("names", "feasible"), [((), ["node-1"]), (("default-scheduler", "batch"), [])]
)
async def test_nominations_count_for_all_profiles_of_the_scheduler(
    names: tuple[str, ...], feasible: list[str]
) -> None:
    nominated = pod_json(
        "batch",
        cpu="1",
        priority=1,
        spec={"schedulerName": "batch"},
        status={"nominatedNodeName": "node-1"},
    )
    config = Config(port=0, scheduler_names=names)
    async with following([node_json("node-1", cpu="1"), nominated], config) as it:
        await it.let_it_sync()
        reply = await it.extender.post("/filter", filter_body(pod_json("web", cpu="1"), "node-1"))
        assert filtered(reply.body, ["node-1"], cached=True).names == feasible


async def test_the_extender_is_idle_unless_a_call_is_active() -> None:
    async with (
        FakeCluster() as cluster,
        run_server(
            Config(port=0), cluster.local_transport(), SystemClock(), random.Random(0)
        ) as extender,
    ):
        await extender.wait_synced()
        assert extender.is_idle()
        port = int(extender.url.rpartition(":")[2])
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(FILTER[:-1])
        await wait_until(lambda: not extender.is_idle())
        writer.write(FILTER[-1:])
        assert b"200 OK" in await reader.readline()
        await wait_until(extender.is_idle)
        writer.close()
