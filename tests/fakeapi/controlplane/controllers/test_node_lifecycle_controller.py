"""Nodes without heartbeats, their recovery, and the pods on them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import Any, Final

import pytest

from extender.kube.decoders.object_meta import NS_PER_SECOND, format_time, parse_time
from extender.kube.rest.api_errors import ApiError
from extender.kube.rest.client import PatchType
from extender.kube.rest.resources import LEASES, NODES
from fakeapi.controlplane.controllers.taint_eviction import tolerated_seconds
from fakeapi.controlplane.controllers.types import Taint, decode_pod
from tests.builders import encoded, manifest, running_pod, thing
from tests.fakeapi.controlplane.conftest import SetStage
from tests.stage import Stage, decode

NAMESPACE: Final = "kube-node-lease"
RENEW_SECONDS: Final = 10.0
STATUS_SECONDS: Final = 300.0


@asynccontextmanager
async def heartbeats(stage: Stage, *names: str) -> AsyncIterator[set[str]]:
    """Register nodes and send their heartbeats, except for nodes in the set that it yields."""
    silent: set[str] = set()

    async def repeat(name: str, seconds: float, send: Callable[[Stage, str], Any]) -> None:
        while True:
            if name not in silent:
                try:
                    await send(stage, name)
                except ApiError as error:
                    if error.status not in (404, 409):
                        raise
            await stage.cluster.clock.sleep(seconds)

    for name in names:
        lease = {"holderIdentity": name, "leaseDurationSeconds": 40}
        stage.load(
            thing(name, kind="Node", namespace=""),
            manifest("Lease", name, namespace=NAMESPACE, spec=lease),
        )
    tasks = [
        asyncio.create_task(repeat(name, seconds, send))
        for name in names
        for seconds, send in ((RENEW_SECONDS, renew_lease), (STATUS_SECONDS, report_ready))
    ]
    try:
        yield silent
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def renew_lease(stage: Stage, name: str) -> None:
    now_ns = stage.cluster.clock.now_ns()
    time = f"{format_time(now_ns)[:-1]}.{now_ns % 10**9 // 1000:06}Z"
    await stage.patch(LEASES, name, {"spec": {"renewTime": time}}, NAMESPACE)


async def report_ready(stage: Stage, name: str) -> None:
    now = format_time(stage.cluster.clock.now_ns())
    times = {"lastHeartbeatTime": now, "lastTransitionTime": now}
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", **times}
    path = NODES.object(name).subresource("status")
    body = encoded({"status": {"conditions": [ready]}})
    await stage.client.patch(path, PatchType.STRATEGIC, body, decode)


BOTH = "nodelifecycle,tainteviction"
UNREACHABLE = "node.kubernetes.io/unreachable"


async def taints(stage: Stage, node: str) -> list[tuple[str, str]]:
    found = await stage.get(NODES, node)
    listed = found["spec"].get("taints", ())
    return sorted((t["key"].rpartition("/")[2], t["effect"]) for t in listed)


async def ready(stage: Stage, node: str) -> str:
    found = await stage.get(NODES, node)
    return next(
        (c["status"] for c in found["status"].get("conditions", ()) if c["type"] == "Ready"), ""
    )


async def test_a_node_that_renews_its_lease_is_ready(set_stage: SetStage) -> None:
    stage = await set_stage(BOTH)
    async with heartbeats(stage, "a", "b"):
        await stage.passes(1200)
        assert (await taints(stage, "a"), await ready(stage, "a")) == ([], "True")


async def test_an_unreachable_node_loses_its_pods_in_time(set_stage: SetStage) -> None:
    stage = await set_stage(BOTH)
    async with heartbeats(stage, "a", "b") as silent:
        tolerations = [{"key": UNREACHABLE, "operator": "Exists", "tolerationSeconds": 300}]
        stage.load(running_pod("p", "a", tolerations=tolerations), running_pod("q", "b"))
        await stage.passes(60)
        silent.add("a")
        await stage.passes(50)
        assert await ready(stage, "a") == "True"
        await stage.passes(20)
        assert await ready(stage, "a") == "Unknown"
        assert await taints(stage, "a") == [
            ("unreachable", "NoExecute"),
            ("unreachable", "NoSchedule"),
        ]
        pod = await stage.pod("p")
        assert pod["status"]["conditions"][0]["status"] == "False"
        await stage.passes(280)
        assert "deletionTimestamp" not in (await stage.pod("p"))["metadata"]
        await stage.passes(20)
        assert "deletionTimestamp" in (await stage.pod("p"))["metadata"]
        assert "deletionTimestamp" not in (await stage.pod("q"))["metadata"]


async def test_a_node_that_recovers_in_time_keeps_its_pods(set_stage: SetStage) -> None:
    stage = await set_stage(BOTH)
    async with heartbeats(stage, "a", "b") as silent:
        tolerations = [{"operator": "Exists", "tolerationSeconds": 300}]
        stage.load(running_pod("p", "a", tolerations=tolerations))
        await stage.passes(60)
        silent.add("a")
        await stage.passes(200)
        assert await taints(stage, "a") != []
        silent.remove("a")
        await stage.passes(600)
        assert await taints(stage, "a") == []
        assert "deletionTimestamp" not in (await stage.pod("p"))["metadata"]
        messages = [
            message for reason, _, message in await stage.list_events() if "Taint" in reason
        ]
        assert messages == ["Cancelling deletion of Pod default/p"]


async def test_no_pod_is_evicted_if_all_nodes_are_unreachable(set_stage: SetStage) -> None:
    stage = await set_stage(BOTH)
    async with heartbeats(stage, "a", "b") as silent:
        stage.load(running_pod("p", "a"))
        await stage.passes(60)
        silent.add("a")
        silent.add("b")
        await stage.passes(1200)
        assert await taints(stage, "a") == [("unreachable", "NoSchedule")]
        assert "deletionTimestamp" not in (await stage.pod("p"))["metadata"]


async def test_nodes_are_tainted_one_in_ten_seconds(set_stage: SetStage) -> None:
    stage = await set_stage(BOTH)
    names = [f"n{i}" for i in range(6)]
    async with heartbeats(stage, *names) as silent:
        await stage.passes(60)
        for name in names[:3]:
            silent.add(name)
        await stage.passes(120)
        tainted = {
            taint["timeAdded"]
            for change in stage.cluster.history("nodes")
            for taint in change.object.get("spec", {}).get("taints", ())
            if (taint["key"], taint["effect"]) == (UNREACHABLE, "NoExecute")
        }
        seconds = sorted(parse_time(time) // NS_PER_SECOND for time in tainted)
        assert [later - earlier for earlier, later in pairwise(seconds)] == [10, 10]


async def test_a_cordoned_node_is_tainted(set_stage: SetStage) -> None:
    stage = await set_stage(BOTH)
    async with heartbeats(stage, "a"):
        await stage.patch(NODES, "a", {"spec": {"unschedulable": True}})
        await stage.passes(1)
        assert await taints(stage, "a") == [("unschedulable", "NoSchedule")]
        await stage.patch(NODES, "a", {"spec": {"unschedulable": None}})
        await stage.passes(1)
        assert await taints(stage, "a") == []


async def test_a_node_without_heartbeats_is_unknown_after_a_minute(set_stage: SetStage) -> None:
    stage = await set_stage(BOTH)
    await stage.create(NODES, {"metadata": {"name": "a"}})
    assert await taints(stage, "a") == [("not-ready", "NoSchedule")]
    await stage.passes(60)
    assert await ready(stage, "a") == ""
    await stage.passes(10)
    assert await ready(stage, "a") == "Unknown"
    assert ("unreachable", "NoSchedule") in await taints(stage, "a")


GONE, SICK = Taint("gone", "", "NoExecute"), Taint("sick", "yes", "NoExecute")

TOLERATING = [
    ((), [GONE], 0),
    (({"operator": "Exists"},), [GONE, SICK], None),
    (({"key": "gone", "operator": "Exists"},), [GONE, SICK], 0),
    (({"key": "gone", "operator": "Exists", "tolerationSeconds": 30},), [GONE], 30),
    (({"key": "gone", "operator": "Exists", "tolerationSeconds": -1},), [GONE], 0),
    (
        (
            {"key": "gone", "operator": "Exists", "tolerationSeconds": 30},
            {"key": "sick", "value": "yes", "tolerationSeconds": 20},
        ),
        [GONE, SICK],
        20,
    ),
    (({"key": "sick", "value": "no"},), [SICK], 0),
    (({"key": "gone", "operator": "Exists", "effect": "NoSchedule"},), [GONE], 0),
]


@pytest.mark.parametrize(("tolerations", "on_node", "seconds"), TOLERATING)
def test_the_shortest_toleration_limits_the_time_on_a_node(
    tolerations: tuple[dict[str, Any], ...], on_node: list[Taint], seconds: float | None
) -> None:
    pod = decode_pod(encoded({"spec": {"tolerations": tolerations}}))  # type: ignore[arg-type]
    assert tolerated_seconds(pod, on_node) == seconds


async def test_a_pod_without_tolerations_is_deleted_at_once(set_stage: SetStage) -> None:
    node = thing("a", kind="Node", namespace="")
    stage = await set_stage("tainteviction", node, running_pod("p", "a"), seconds=1)
    await stage.patch(NODES, "a", {"spec": {"taints": [{"key": "gone", "effect": "NoExecute"}]}})
    await stage.passes(1)
    found = await stage.pod("p")
    assert "deletionTimestamp" in found["metadata"]
    condition = next(c for c in found["status"]["conditions"] if c["type"] == "DisruptionTarget")
    assert condition["reason"] == "DeletionByTaintManager"
    assert [t[2] for t in await stage.list_events()] == ["Marking for deletion Pod default/p"]
