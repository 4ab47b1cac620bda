"""Nodes without heartbeats that recover, and the pods on them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from itertools import pairwise
from types import TracebackType
from typing import Any, Final, Self

import orjson
import pytest

from extender.kube.decoders.object_meta import NS_PER_SECOND, format_time, parse_time
from extender.kube.rest.api_errors import ApiError
from extender.kube.rest.client import PatchType
from extender.kube.rest.resources import LEASES, NODES, PODS
from fakeapi.controlplane.controllers.taint_eviction import tolerated_seconds
from fakeapi.controlplane.controllers.types import Pod, Taint, decode_pod
from tests.builders import Document, encoded, running_pod
from tests.fakeapi.controlplane.conftest import SetStage
from tests.stage import Stage, decode

NAMESPACE: Final = "kube-node-lease"
RENEW_SECONDS: Final = 10.0
STATUS_SECONDS: Final = 300.0


class Kubelets:
    """The kubelets of some nodes, which they register, as an async context manager."""

    def __init__(self, stage: Stage, names: Iterable[str]) -> None:
        self._stage = stage
        self._silent: dict[str, None] = {}
        self._names = list(names)
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        for name in self._names:
            self._stage.load(
                {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "uid": name}},
                {
                    "apiVersion": "coordination.k8s.io/v1",
                    "kind": "Lease",
                    "metadata": {"name": name, "namespace": NAMESPACE},
                    "spec": {"holderIdentity": name, "leaseDurationSeconds": 40},
                },
            )
        self._tasks = [
            asyncio.create_task(work)
            for name in self._names
            for work in (
                self._repeat(name, RENEW_SECONDS, self._renew),
                self._repeat(name, STATUS_SECONDS, self._report),
            )
        ]
        return self

    async def __aexit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def silence(self, name: str) -> None:
        """Have a kubelet fall silent."""
        self._silent[name] = None

    def wake(self, name: str) -> None:
        """Have a kubelet speak again."""
        self._silent.pop(name, None)

    async def _repeat(self, name: str, seconds: float, act: object) -> None:
        while True:
            if name not in self._silent:
                try:
                    await act(name)  # type: ignore[operator]
                except ApiError as error:
                    if error.status not in (404, 409):
                        raise
            await self._stage.cluster.clock.sleep(seconds)

    async def _renew(self, name: str) -> None:
        now_ns = self._stage.cluster.clock.now_ns()
        time = f"{format_time(now_ns)[:-1]}.{now_ns % 10**9 // 1000:06}Z"
        body = orjson.dumps({"spec": {"renewTime": time}})
        path = LEASES.object(name, NAMESPACE)
        await self._stage.client.patch(path, PatchType.MERGE, body, decode)

    async def _report(self, name: str) -> None:
        now = format_time(self._stage.cluster.clock.now_ns())
        times = {"lastHeartbeatTime": now, "lastTransitionTime": now}
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", **times}
        body = orjson.dumps({"status": {"conditions": [ready]}})
        path = NODES.object(name).subresource("status")
        await self._stage.client.patch(path, PatchType.STRATEGIC, body, decode)


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


async def test_a_node_that_renews_its_lease_is_well(set_stage: SetStage) -> None:
    stage = await set_stage(BOTH)
    async with Kubelets(stage, ["a", "b"]):
        await stage.passes(1200)
        assert (await taints(stage, "a"), await ready(stage, "a")) == ([], "True")


async def test_an_unreachable_node_loses_its_pods_in_time(set_stage: SetStage) -> None:
    stage = await set_stage(BOTH)
    async with Kubelets(stage, ["a", "b"]) as kubelets:
        tolerations = [{"key": UNREACHABLE, "operator": "Exists", "tolerationSeconds": 300}]
        stage.load(running_pod("p", "a", tolerations=tolerations), running_pod("q", "b"))
        await stage.passes(60)
        kubelets.silence("a")
        await stage.passes(50)
        assert await ready(stage, "a") == "True"
        await stage.passes(20)
        assert await ready(stage, "a") == "Unknown"
        assert await taints(stage, "a") == [
            ("unreachable", "NoExecute"),
            ("unreachable", "NoSchedule"),
        ]
        pod = await stage.get(PODS, "p")
        assert pod["status"]["conditions"][0]["status"] == "False"
        await stage.passes(280)
        assert "deletionTimestamp" not in (await pod_of(stage, "p"))["metadata"]
        await stage.passes(20)
        assert "deletionTimestamp" in (await pod_of(stage, "p"))["metadata"]
        assert "deletionTimestamp" not in (await pod_of(stage, "q"))["metadata"]


async def pod_of(stage: Stage, name: str) -> Document:
    return await stage.get(PODS, name)


async def test_a_node_that_comes_back_in_time_keeps_its_pods(set_stage: SetStage) -> None:
    stage = await set_stage(BOTH)
    async with Kubelets(stage, ["a", "b"]) as kubelets:
        tolerations = [{"operator": "Exists", "tolerationSeconds": 300}]
        stage.load(running_pod("p", "a", tolerations=tolerations))
        await stage.passes(60)
        kubelets.silence("a")
        await stage.passes(200)
        assert await taints(stage, "a") != []
        kubelets.wake("a")
        await stage.passes(600)
        assert await taints(stage, "a") == []
        assert "deletionTimestamp" not in (await pod_of(stage, "p"))["metadata"]
        told = [message for reason, _, message in await stage.told() if "Taint" in reason]
        assert told == ["Cancelling deletion of Pod default/p"]


async def test_no_pod_is_evicted_if_all_nodes_are_unreachable(set_stage: SetStage) -> None:
    stage = await set_stage(BOTH)
    async with Kubelets(stage, ["a", "b"]) as kubelets:
        stage.load(running_pod("p", "a"))
        await stage.passes(60)
        kubelets.silence("a")
        kubelets.silence("b")
        await stage.passes(1200)
        assert await taints(stage, "a") == [("unreachable", "NoSchedule")]
        assert "deletionTimestamp" not in (await pod_of(stage, "p"))["metadata"]


async def test_nodes_are_tainted_one_in_ten_seconds(set_stage: SetStage) -> None:
    stage = await set_stage(BOTH)
    names = [f"n{i}" for i in range(6)]
    async with Kubelets(stage, names) as kubelets:
        await stage.passes(60)
        for name in names[:3]:
            kubelets.silence(name)
        await stage.passes(120)
        given_up = {
            taint["timeAdded"]
            for change in stage.cluster.history("nodes")
            for taint in change.object.get("spec", {}).get("taints", ())
            if (taint["key"], taint["effect"]) == (UNREACHABLE, "NoExecute")
        }
        seconds = sorted(parse_time(time) // NS_PER_SECOND for time in given_up)
        assert [later - earlier for earlier, later in pairwise(seconds)] == [10, 10]


async def test_a_cordoned_node_is_marked(set_stage: SetStage) -> None:
    stage = await set_stage(BOTH)
    async with Kubelets(stage, ["a"]):
        await stage.patch(NODES, "a", {"spec": {"unschedulable": True}})
        await stage.passes(1)
        assert await taints(stage, "a") == [("unschedulable", "NoSchedule")]
        await stage.patch(NODES, "a", {"spec": {"unschedulable": None}})
        await stage.passes(1)
        assert await taints(stage, "a") == []


async def test_a_node_that_never_spoke_becomes_unknown_after_a_minute(set_stage: SetStage) -> None:
    stage = await set_stage(BOTH)
    await stage.create(NODES, {"metadata": {"name": "a"}})
    assert await taints(stage, "a") == [("not-ready", "NoSchedule")]
    await stage.passes(60)
    assert await ready(stage, "a") == ""
    await stage.passes(10)
    assert await ready(stage, "a") == "Unknown"
    assert ("unreachable", "NoSchedule") in await taints(stage, "a")


def pod(*tolerations: dict[str, Any]) -> Pod:
    return decode_pod(encoded({"spec": {"tolerations": list(tolerations)}}))  # type: ignore[arg-type]


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
def test_how_long_a_pod_tolerates(
    tolerations: tuple[dict[str, Any], ...], on_node: list[Taint], seconds: float | None
) -> None:
    assert tolerated_seconds(pod(*tolerations), on_node) == seconds


async def test_a_pod_without_tolerations_goes_at_once_and_says_why(set_stage: SetStage) -> None:
    stage = await set_stage("tainteviction")
    stage.load({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a", "uid": "a"}})
    stage.load(running_pod("p", "a"))
    await stage.passes(1)
    await stage.patch(NODES, "a", {"spec": {"taints": [{"key": "gone", "effect": "NoExecute"}]}})
    await stage.passes(1)
    found = await pod_of(stage, "p")
    assert "deletionTimestamp" in found["metadata"]
    mark = next(c for c in found["status"]["conditions"] if c["type"] == "DisruptionTarget")
    assert mark["reason"] == "DeletionByTaintManager"
    assert [t[2] for t in await stage.told()] == ["Marking for deletion Pod default/p"]
