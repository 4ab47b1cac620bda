"""Schedulers that are attached to a replay, and what the report says of their decisions."""

from __future__ import annotations

from typing import Any

import orjson

from extender.recording.files import Recording
from fakeapi import VirtualCluster
from fakeapi.replay.report import Report
from fakeapi.replay.scheduling_decisions import (
    DecisionComparison,
    DecisionDifference,
    SchedulingComparison,
)
from tests.extender.recording.recording_lines import (
    CREATED,
    Document,
    a_recording,
    an_object,
    header,
    line,
)

DEFAULT = an_object("default", "Namespace")
NODES_TOO = header("Namespace", "Node", "Pod")
GONE_AT: Document = {"deletionTimestamp": "2026-01-01T00:00:09Z", "deletionGracePeriodSeconds": 30}


def a_host(name: str) -> Document:
    """Write a node with room for one pod down."""
    room = {"cpu": "1", "memory": "8Gi", "pods": "110"}
    return an_object(name, "Node", status={"allocatable": room, "capacity": room})


def a_resident(name: str, node: str, priority: int, **fields: Any) -> Document:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
    spec: Document = {"containers": [container], "priority": priority}
    spec["schedulerName"] = "default-scheduler"
    if node:
        spec["nodeName"] = node
    return an_object(name, spec=spec, **{"status": {"phase": "Pending"}, **fields})


def urgent(node: str = "", **fields: Any) -> Document:
    return a_resident("urgent", node, 100, **fields)


def landed(node: str, at: float = 2) -> list[bytes]:
    """Record that the urgent pod was bound."""
    bound = {"type": "PodScheduled", "status": "True", "lastTransitionTime": CREATED}
    status = {"phase": "Pending", "conditions": [bound]}
    return [line(at, "MODIFIED", urgent(node, status=status))]


def preempted(pod: Document, **metadata: Any) -> Document:
    """Write a pod down as kube-scheduler marks its victims."""
    reason = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
    marked: Document = orjson.loads(orjson.dumps(pod))
    marked["metadata"].update(metadata)
    marked["status"]["conditions"] = [reason]
    return marked


def full_but_one() -> list[bytes]:
    """Record two nodes of which the first is taken."""
    there = DEFAULT, a_host("n-1"), a_host("n-2"), a_resident("there", "n-1", 100)
    return [line(0, "LISTED", each) for each in there]


async def played(recording: Recording, run: str, seed: int = 4) -> Report:
    start = recording.header.start_ns
    async with VirtualCluster(run=run, seed=seed, start_ns=start) as cluster:
        return await cluster.replay(recording)


async def test_pods_land_where_it_says_and_not_where_they_were_seen() -> None:
    recording = a_recording(
        *full_but_one(), line(1, "ADDED", urgent()), *landed("n-1"), first=NODES_TOO
    )
    report = await played(recording, run="scheduler")
    assert report.scheduling is not None
    assert report.scheduling.placed == DecisionComparison(
        1, 1, [DecisionDifference("default/urgent", "n-1", "n-2")]
    )
    [changed] = report.resources["pods"].changed
    assert (changed.name, changed.fields) == ("default/urgent", ["spec.nodeName"])


async def test_a_pod_created_with_a_node_was_not_scheduled() -> None:
    report = await played(a_recording(*full_but_one(), first=NODES_TOO), run="scheduler")
    assert report.same
    assert report.scheduling == SchedulingComparison(*[DecisionComparison(0, 0)] * 3)


async def test_a_victim_ends_when_the_recorded_one_did() -> None:
    """Another one was chosen then; the world's own ends in its place."""
    dear, cheap = a_resident("dear", "n-1", 9), a_resident("cheap", "n-2", 1)
    recording = a_recording(
        *(line(0, "LISTED", each) for each in (DEFAULT, a_host("n-1"), a_host("n-2"))),
        *(line(0, "LISTED", each) for each in (dear, cheap)),
        line(1, "ADDED", urgent()),
        line(2, "MODIFIED", preempted(dear)),
        line(2.1, "MODIFIED", preempted(dear, **GONE_AT)),
        line(2.2, "MODIFIED", urgent(status={"nominatedNodeName": "n-1"})),
        line(9, "DELETED", preempted(dear, **GONE_AT)),
        *landed("n-1", at=9.5),
        first=NODES_TOO,
    )
    report = await played(recording, run="scheduler")
    assert report.scheduling == SchedulingComparison(
        placed=DecisionComparison(1, 1, [DecisionDifference("default/urgent", "n-1", "n-2")]),
        nominated=DecisionComparison(1, 1, [DecisionDifference("default/urgent", "n-1", "n-2")]),
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


async def test_an_end_that_comes_before_the_preemption_is_made_up_for() -> None:
    """Streams come one by one, and here the scheduler may be slower than it was."""
    there = a_resident("there", "n-1", 1)
    recording = a_recording(
        *(line(0, "LISTED", each) for each in (DEFAULT, a_host("n-1"), there)),
        line(2, "MODIFIED", preempted(there, **GONE_AT)),
        line(3, "DELETED", preempted(there, **GONE_AT)),
        line(3.1, "ADDED", urgent()),
        *landed("n-1", at=5),
        first=NODES_TOO,
    )
    async with VirtualCluster(run="scheduler") as cluster:
        report = await cluster.replay(recording)
        names = [each["metadata"]["name"] for each in cluster.export() if each["kind"] == "Pod"]
    assert names == ["urgent"]
    assert report.scheduling is not None
    assert report.scheduling.placed == report.scheduling.preempted == DecisionComparison(1, 1)


async def test_a_write_about_a_victim_does_not_restore_it() -> None:
    """Here it is deleted before the recording comes to that."""
    there = a_resident("there", "n-1", 1)
    recording = a_recording(
        *(line(0, "LISTED", each) for each in (DEFAULT, a_host("n-1"), there)),
        line(1, "ADDED", urgent()),
        line(5, "MODIFIED", preempted(there, labels={"seen": "yes"})),
        first=NODES_TOO,
    )
    async with VirtualCluster(run="scheduler") as cluster:
        await cluster.replay(recording)
        found = {each["metadata"]["name"]: each["metadata"] for each in cluster.export()}
    assert found["there"]["labels"] == {"seen": "yes"}
    assert found["there"]["deletionTimestamp"]


async def test_other_clients_writes_of_a_pod_are_replayed() -> None:
    said = {"type": "example.com/warm", "status": "True"}
    recording = a_recording(
        *full_but_one(),
        line(1, "ADDED", urgent()),
        line(3, "MODIFIED", urgent(status={"conditions": [said], "phase": "Pending"})),
        first=NODES_TOO,
    )
    async with VirtualCluster(run="scheduler") as cluster:
        await cluster.replay(recording)
        [pod] = [each for each in cluster.export() if each["metadata"]["name"] == "urgent"]
    kept = {each["type"]: each["status"] for each in pod["status"]["conditions"]}
    assert (pod["spec"]["nodeName"], kept) == (
        "n-2",
        {"example.com/warm": "True", "PodScheduled": "True"},
    )


async def test_with_a_head_start_the_beginning_is_there_before_anything_happens() -> None:
    recording = a_recording(*full_but_one(), line(1, "ADDED", urgent()), first=NODES_TOO)
    async with VirtualCluster(run="scheduler", start_ns=recording.header.start_ns) as cluster:
        await cluster.replay(recording, head_start=60)
        passed = cluster.clock.now_ns() - recording.header.start_ns
    assert passed == (60 + 1 + 11) * 10**9


async def test_with_kubelets_a_preemption_is_recognized_by_its_condition() -> None:
    """Kubelets write of a status what is theirs; who preempted is another's to say."""
    there = a_resident("there", "n-1", 1)
    recording = a_recording(
        *(line(0, "LISTED", each) for each in (DEFAULT, a_host("n-1"), there)),
        line(5, "MODIFIED", preempted(there)),
        line(5.1, "MODIFIED", preempted(there, **GONE_AT)),
        line(9, "DELETED", preempted(there, **GONE_AT)),
        first=NODES_TOO,
    )
    report = await played(recording, run="kubelet")
    assert report.deletions.recorded == report.deletions.replayed == {"scheduler": 1}
