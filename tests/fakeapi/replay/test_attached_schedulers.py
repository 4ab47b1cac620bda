"""Schedulers that are attached to a replay, and their decisions in the report."""

from __future__ import annotations

from typing import Any

import orjson

from fakeapi import VirtualCluster
from fakeapi.replay.scheduling_decisions import (
    DecisionComparison,
    DecisionDifference,
    SchedulingComparison,
)
from tests.builders import container_json
from tests.extender.recording.recording_lines import (
    CREATED,
    Document,
    a_recording,
    an_object,
    header,
    line,
)
from tests.fakeapi.replay.replays import DEFAULT, GONE_AT, listed, replay, replayed

WITH_NODES = header("Namespace", "Node", "Pod")
AMOUNTS = {"cpu": "1", "memory": "8Gi", "pods": "110"}
NODE_1, NODE_2 = (
    an_object(name, "Node", status={"allocatable": AMOUNTS, "capacity": AMOUNTS})
    for name in ("n-1", "n-2")
)
OTHER_NODE = [DecisionDifference("default/urgent", "n-1", "n-2")]


def pod_of_priority(name: str, node: str, priority: int, **fields: Any) -> Document:
    """Build a pod that fills a node."""
    container = container_json("c", {"cpu": "1"})
    spec: Document = {"containers": [container], "priority": priority}
    spec["schedulerName"] = "default-scheduler"
    if node:
        spec["nodeName"] = node
    return an_object(name, spec=spec, **{"status": {"phase": "Pending"}, **fields})


def urgent(node: str = "", **fields: Any) -> Document:
    return pod_of_priority("urgent", node, 100, **fields)


def bound(node: str, at: float = 2) -> bytes:
    """Record that the urgent pod was bound."""
    scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": CREATED}
    status = {"phase": "Pending", "conditions": [scheduled]}
    return line(at, "MODIFIED", urgent(node, status=status))


def preempted(pod: Document, **metadata: Any) -> Document:
    """Return a pod as kube-scheduler marks its victims."""
    reason = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
    marked: Document = orjson.loads(orjson.dumps(pod))
    marked["metadata"].update(metadata)
    marked["status"]["conditions"] = [reason]
    return marked


def full_but_one() -> list[bytes]:
    """Record two nodes of which the first is full."""
    return listed(DEFAULT, NODE_1, NODE_2, pod_of_priority("there", "n-1", 100))


async def test_the_attached_scheduler_decides_instead_of_the_recording() -> None:
    recording = a_recording(
        *full_but_one(), line(1, "ADDED", urgent()), bound("n-1"), first=WITH_NODES
    )
    report = await replayed(recording, "scheduler")
    assert report.scheduling is not None
    assert report.scheduling.placed == DecisionComparison(1, 1, OTHER_NODE)
    [changed] = report.resources["pods"].changed
    assert (changed.name, changed.fields) == ("default/urgent", ["spec.nodeName"])


async def test_a_pod_created_with_a_node_was_not_scheduled() -> None:
    report = await replayed(a_recording(*full_but_one(), first=WITH_NODES), "scheduler")
    assert report.same
    assert report.scheduling == SchedulingComparison(*[DecisionComparison(0, 0)] * 3)


async def test_a_victim_ends_when_the_recorded_one_did() -> None:
    """The recording has another victim; the replay's own one ends at the same time."""
    dear, cheap = pod_of_priority("dear", "n-1", 9), pod_of_priority("cheap", "n-2", 1)
    recording = a_recording(
        *listed(DEFAULT, NODE_1, NODE_2, dear, cheap),
        line(1, "ADDED", urgent()),
        line(2, "MODIFIED", preempted(dear)),
        line(2.1, "MODIFIED", preempted(dear, **GONE_AT)),
        line(2.2, "MODIFIED", urgent(status={"nominatedNodeName": "n-1"})),
        line(9, "DELETED", preempted(dear, **GONE_AT)),
        bound("n-1", at=9.5),
        first=WITH_NODES,
    )
    report = await replayed(recording, "scheduler")
    assert report.scheduling == SchedulingComparison(
        placed=DecisionComparison(1, 1, OTHER_NODE),
        nominated=DecisionComparison(1, 1, OTHER_NODE),
        preempted=DecisionComparison(
            1,
            1,
            [
                DecisionDifference("default/dear", "n-1", ""),
                DecisionDifference("default/cheap", "", "n-2"),
            ],
        ),
    )
    assert report.left == {"scheduler": 1}
    assert report.resources["pods"].only_recorded == ["default/cheap"]
    assert report.resources["pods"].only_replayed == ["default/dear"]


async def test_a_victim_that_was_deleted_before_its_preemption_is_deleted_after_it() -> None:
    """Watches are recorded one by one, and the attached scheduler may be slower."""
    there = pod_of_priority("there", "n-1", 1)
    recording = a_recording(
        *listed(DEFAULT, NODE_1, there),
        line(2, "MODIFIED", preempted(there, **GONE_AT)),
        line(3, "DELETED", preempted(there, **GONE_AT)),
        line(3.1, "ADDED", urgent()),
        bound("n-1", at=5),
        first=WITH_NODES,
    )
    report, objects = await replay(recording, "scheduler")
    assert [each["metadata"]["name"] for each in objects if each["kind"] == "Pod"] == ["urgent"]
    assert report.scheduling is not None
    assert report.scheduling.placed == report.scheduling.preempted == DecisionComparison(1, 1)


async def test_a_write_about_a_victim_does_not_restore_it() -> None:
    """The replay deletes it before that write."""
    there = pod_of_priority("there", "n-1", 1)
    recording = a_recording(
        *listed(DEFAULT, NODE_1, there),
        line(1, "ADDED", urgent()),
        line(5, "MODIFIED", preempted(there, labels={"seen": "yes"})),
        first=WITH_NODES,
    )
    _, objects = await replay(recording, "scheduler")
    found = {each["metadata"]["name"]: each["metadata"] for each in objects}
    assert found["there"]["labels"] == {"seen": "yes"}
    assert found["there"]["deletionTimestamp"]


async def test_other_clients_writes_of_a_pod_are_replayed() -> None:
    warm = {"type": "example.com/warm", "status": "True"}
    recording = a_recording(
        *full_but_one(),
        line(1, "ADDED", urgent()),
        line(3, "MODIFIED", urgent(status={"conditions": [warm], "phase": "Pending"})),
        first=WITH_NODES,
    )
    _, objects = await replay(recording, "scheduler")
    [pod] = [each for each in objects if each["metadata"]["name"] == "urgent"]
    kept = {each["type"]: each["status"] for each in pod["status"]["conditions"]}
    assert (pod["spec"]["nodeName"], kept) == (
        "n-2",
        {"example.com/warm": "True", "PodScheduled": "True"},
    )


async def test_a_head_start_passes_after_the_initial_objects() -> None:
    recording = a_recording(*full_but_one(), line(1, "ADDED", urgent()), first=WITH_NODES)
    async with VirtualCluster(run="scheduler", start_ns=recording.header.start_ns) as cluster:
        await cluster.replay(recording, head_start=60)
        passed = cluster.clock.now_ns() - recording.header.start_ns
    assert passed == (60 + 1 + 11) * 10**9


async def test_with_kubelets_a_preemption_is_recognized_by_its_condition() -> None:
    """Kubelets write their part of a status, and keep the condition of the scheduler."""
    there = pod_of_priority("there", "n-1", 1)
    recording = a_recording(
        *listed(DEFAULT, NODE_1, there),
        line(5, "MODIFIED", preempted(there)),
        line(5.1, "MODIFIED", preempted(there, **GONE_AT)),
        line(9, "DELETED", preempted(there, **GONE_AT)),
        first=WITH_NODES,
    )
    report = await replayed(recording, "kubelet")
    assert report.deletions.recorded == report.deletions.replayed == {"scheduler": 1}
