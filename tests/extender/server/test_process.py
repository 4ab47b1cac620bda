"""The extender as a process serves it, with the informers that its configuration needs."""

from __future__ import annotations

import asyncio
import json
import random
from pathlib import Path

import msgspec
import pytest
import structlog

from extender.config.component_config import Config, load_config
from extender.kube.rest.clock import SystemClock
from extender.server.process import run_server
from fakeapi.testing.fake_cluster import FakeCluster
from policies.preemption.vectorized import VectorizedEngine
from tests.builders import manifest, node_json, pod_json
from tests.extender.conftest import filter_body, following, preempt_body
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
    ("upstream", "gates", "followed", "assumed"),
    [
        ("1.35", {}, set(), ""),
        ("1.36", {"CompositePodGroup": True}, {"podgroups"}, "GenericWorkload"),
        (
            "1.37",
            {},
            {"podgroups", "compositepodgroups"},
            "GenericWorkload, CompositePodGroup",
        ),
        ("1.37", {"GenericWorkload": False}, set(), ""),
        ("1.37", {"GenericWorkload": True, "CompositePodGroup": False}, {"podgroups"}, ""),
        ("1.38", {}, {"podgroups", "compositepodgroups"}, "CompositePodGroup"),
        ("1.33", {}, {"resourceclaims"}, "DynamicResourceAllocation"),
        ("1.33", {"DynamicResourceAllocation": False}, set(), ""),
    ],
)
async def test_gates_are_taken_as_on_where_their_objects_are_served_unless_they_are_configured(
    upstream: str, gates: dict[str, bool], followed: set[str], assumed: str
) -> None:
    config = Config(port=0, upstream=upstream, feature_gates=gates)
    shown = {"podgroups", "compositepodgroups"} | (
        {"resourceclaims"} if upstream < "1.34" else set()
    )
    with structlog.testing.capture_logs() as logs:
        async with following([], config) as it:
            await it.let_it_sync()
            kinds = set(it.extender.service.informers)
            ready = (await it.extender.get("/readyz?verbose")).text
    assert kinds & shown == followed
    start = "taken as on, because the API server serves their objects: "
    lines = [line for line in ready.splitlines() if line.startswith("[!]")]
    told = f"{start}{assumed}; set featureGates to those of kube-scheduler"
    assert lines == ([f"[!] {told}"] if assumed else [])
    assert [each["detail"] for each in logs if each["event"] == "feature_gates"] == (
        [told] if assumed else []
    )


async def test_a_group_is_whole_without_a_configured_gate() -> None:
    spec = {"schedulingGroup": {"podGroupName": "g"}}
    members = [
        pod_json(name, on="node-1", cpu="2", priority=1, spec=spec) for name in ("one", "two")
    ]
    group = manifest(
        "PodGroup",
        "g",
        version="scheduling.k8s.io/v1beta1",
        spec={"schedulingPolicy": {"basic": {}}, "disruptionMode": {"all": {}}},
    )
    objects = [node_json("node-1", cpu="4"), *members, group]
    for gates, victims in (({}, ["one", "two"]), ({"GenericWorkload": False}, ["one"])):
        async with following(objects, Config(port=0, upstream="1.37", feature_gates=gates)) as it:
            await it.let_it_sync()
            body = preempt_body(pod_json("vip", cpu="2", priority=10), node_1=["one", "two"])
            reply = await it.extender.post("/preempt", body)
            entry = json.loads(reply.text)["NodeNameToMetaVictims"]["node-1"]
            assert len(entry["Pods"]) == len(victims)


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


async def test_calls_are_decided_by_the_fastest_engine_soon_after_the_start() -> None:
    async with following([node_json("node-1")], Config(port=0)) as it:
        service = it.extender.service
        await wait_until(lambda: isinstance(service.engine, VectorizedEngine))
        await it.let_it_sync()
        reply = await it.extender.post("/filter", filter_body(pod_json("next"), "node-1"))
        assert filtered(reply.body, ["node-1"], cached=True).names == ["node-1"]
