"""Events: the same words about the same object are one Event that is counted."""

from __future__ import annotations

from typing import Any

import orjson

from extender.kube.events import EVENTS, EventRecorder, ObjectReference
from fakeapi import VirtualCluster

POD = ObjectReference("v1", "Pod", "default", "p", "uid")
NODE = ObjectReference("", "Node", "", "n", "n")


async def told(cluster: VirtualCluster) -> list[dict[str, Any]]:
    listed = await cluster.client.list(EVENTS, lambda raw: orjson.loads(bytes(raw)))
    return list(listed.items)


async def test_what_is_told_stands_in_an_event(virtual_cluster: VirtualCluster) -> None:
    recorder = EventRecorder(virtual_cluster.client, virtual_cluster.clock, "tester")
    await recorder.warning(POD, "Broken", "it broke")
    (event,) = await told(virtual_cluster)
    assert event["involvedObject"] == POD.document()
    assert (event["type"], event["reason"], event["message"]) == ("Warning", "Broken", "it broke")
    assert (event["source"], event["count"]) == ({"component": "tester"}, 1)
    assert event["metadata"]["namespace"] == "default"
    assert event["firstTimestamp"] == event["lastTimestamp"] == "2026-01-01T00:00:00Z"


async def test_repetitions_are_counted(virtual_cluster: VirtualCluster) -> None:
    recorder = EventRecorder(virtual_cluster.client, virtual_cluster.clock, "tester")
    for _ in range(3):
        await recorder.normal(POD, "Fine", "it works")
        await virtual_cluster.clock.advance(60)
    await recorder.normal(POD, "Fine", "it still works")
    first, second = sorted(await told(virtual_cluster), key=lambda e: -e["count"])
    assert (first["count"], second["count"]) == (3, 1)
    assert first["lastTimestamp"] == "2026-01-01T00:02:00Z"


async def test_one_that_has_expired_is_told_anew(virtual_cluster: VirtualCluster) -> None:
    recorder = EventRecorder(virtual_cluster.client, virtual_cluster.clock, "tester")
    for _ in range(2):
        await recorder.normal(POD, "Fine", "it works")
        await virtual_cluster.clock.advance(3601)
    assert await told(virtual_cluster) == []
    added = [c for c in virtual_cluster.history("events") if c.type == "ADDED"]
    assert [c.object["count"] for c in added] == [1, 1]


async def test_events_of_cluster_wide_objects_lie_in_the_default_namespace(
    virtual_cluster: VirtualCluster,
) -> None:
    recorder = EventRecorder(virtual_cluster.client, virtual_cluster.clock, "tester")
    await recorder.normal(NODE, "Fine", "it works")
    (event,) = await told(virtual_cluster)
    assert event["metadata"]["namespace"] == "default"


async def test_one_that_cannot_be_written_is_dropped(virtual_cluster: VirtualCluster) -> None:
    recorder = EventRecorder(virtual_cluster.client, virtual_cluster.clock, "tester")
    await recorder.normal(ObjectReference("v1", "Pod", "nowhere", "p", "u"), "Fine", "it works")
    assert await told(virtual_cluster) == []
