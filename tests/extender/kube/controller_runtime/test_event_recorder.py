"""Events are written as reported, in their order, whatever the server does meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import orjson
import pytest

from extender.kube.controller_runtime.event_recorder import (
    EVENTS,
    MAX_PENDING,
    EventRecorder,
    EventWriter,
    ObjectReference,
)
from extender.kube.rest.client import Client
from extender.kube.rest.transport import Request, Response
from fakeapi import VirtualCluster
from fakeapi.testing.faults import fault
from tests.extender.kube.conftest import Lost, Reply, ScriptedApi, SteppedClock

POD = ObjectReference("v1", "Pod", "default", "p", "uid", "7")
NODE = ObjectReference("v1", "Node", "", "n", "n")


class Scene:
    """A writer whose requests bear a name of their own, and what came of them."""

    def __init__(self, cluster: VirtualCluster) -> None:
        self.cluster = cluster
        client = Client(cluster.local_transport("writer"))
        self.writer = EventWriter(client, cluster.clock, Random(1))
        self.recorder: EventRecorder = self.writer.recorder("tester")

    async def told(self) -> list[dict[str, Any]]:
        listed = await self.cluster.client.list(EVENTS, lambda raw: orjson.loads(bytes(raw)))
        return sorted(listed.items, key=lambda each: str(each["metadata"]["name"]))

    async def messages(self) -> list[tuple[str, int]]:
        return [(each["message"], each["count"]) for each in await self.told()]

    @property
    def asked(self) -> list[tuple[str, int]]:
        """Methods and statuses of the writer's requests."""
        requests = self.cluster.requests
        return [(each.method, each.status) for each in requests if each.user_agent == "writer"]


@pytest.fixture
async def scene(virtual_cluster: VirtualCluster) -> Scene:
    return Scene(virtual_cluster)


async def test_a_report_is_written_as_an_event(scene: Scene) -> None:
    scene.recorder.warning(POD, "Broken", "it broke")
    await scene.writer.flush()
    (event,) = await scene.told()
    assert event["involvedObject"] == {
        "apiVersion": "v1",
        "kind": "Pod",
        "namespace": "default",
        "name": "p",
        "uid": "uid",
        "resourceVersion": "7",
    }
    assert (event["type"], event["reason"], event["message"]) == ("Warning", "Broken", "it broke")
    assert (event["source"], event["count"]) == ({"component": "tester"}, 1)
    assert (event["reportingComponent"], event["reportingInstance"]) == ("tester", "")
    assert event["metadata"]["namespace"] == "default"
    assert event["metadata"]["name"] == f"p.{scene.cluster.clock.now_ns():x}"
    assert event["firstTimestamp"] == event["lastTimestamp"] == "2026-01-01T00:00:00Z"


async def test_telling_does_not_wait(scene: Scene) -> None:
    scene.cluster.faults.plan(fault("latency", seconds=30).by("writer"))
    scene.recorder.normal(POD, "Fine", "it works")
    assert await scene.told() == []
    await scene.cluster.clock.advance(30)
    assert await scene.messages() == [("it works", 1)]


async def test_events_are_written_in_the_order_of_their_reports(scene: Scene) -> None:
    other = scene.writer.recorder("other")
    scene.cluster.faults.plan(fault("latency", least=0, most=3).by("writer"))
    for number in range(6):
        recorder = other if number % 2 else scene.recorder
        recorder.normal(POD, f"Reason{number}", "it works")
    await scene.cluster.clock.advance(60)
    written = [change.object["reason"] for change in scene.cluster.history("events")]
    assert written == [f"Reason{number}" for number in range(6)]


async def test_two_events_never_share_a_name(scene: Scene) -> None:
    for number in range(20):
        scene.recorder.normal(POD, f"Reason{number}", "it works")
        scene.writer.recorder("other").normal(POD, f"Reason{number}", "it works")
    await scene.writer.flush()
    assert len(await scene.told()) == 40


async def test_repetitions_are_counted(scene: Scene) -> None:
    for _ in range(3):
        scene.recorder.normal(POD, "Fine", "it works")
        await scene.cluster.clock.advance(60)
    scene.recorder.normal(POD, "Fine", "it still works")
    await scene.writer.flush()
    first, second = await scene.told()
    assert (first["count"], second["count"]) == (3, 1)
    assert first["firstTimestamp"] == "2026-01-01T00:00:00Z"
    assert first["lastTimestamp"] == "2026-01-01T00:02:00Z"
    assert scene.asked == [("POST", 201), ("PATCH", 200), ("PATCH", 200), ("POST", 201)]


async def test_similar_events_are_combined(scene: Scene) -> None:
    for number in range(12):
        scene.recorder.warning(POD, "Broken", f"it broke in way {number}")
        await scene.cluster.clock.advance(1)
    told = await scene.messages()
    assert told[:9] == [(f"it broke in way {number}", 1) for number in range(9)]
    assert told[9:] == [("(combined from similar events): it broke in way 11", 3)]
    last = (await scene.told())[-1]
    assert (last["reportingComponent"], last["source"]) == ("", {"component": "tester"})


async def test_an_expired_event_is_created_again_with_its_count(scene: Scene) -> None:
    for _ in range(2):
        scene.recorder.normal(POD, "Fine", "it works")
        await scene.cluster.clock.advance(3601)
    assert await scene.told() == []
    added = [c for c in scene.cluster.history("events") if c.type == "ADDED"]
    assert [c.object["count"] for c in added] == [1, 2]
    assert len({c.object["metadata"]["name"] for c in added}) == 1


async def test_events_of_cluster_wide_objects_lie_in_the_default_namespace(scene: Scene) -> None:
    scene.recorder.normal(NODE, "Fine", "it works")
    await scene.writer.flush()
    (event,) = await scene.told()
    assert event["metadata"]["namespace"] == "default"


@pytest.mark.parametrize("name", ["system:node", "Upper", "a..b", "x" * 240])
async def test_an_object_whose_name_is_no_valid_event_name_gets_events(
    scene: Scene, name: str
) -> None:
    role = ObjectReference("rbac.authorization.k8s.io/v1", "ClusterRole", "", name, "u")
    scene.recorder.normal(role, "Fine", "it works")
    await scene.writer.flush()
    (event,) = await scene.told()
    assert (len(event["metadata"]["name"]), event["involvedObject"]["name"]) == (36, name)


async def test_one_that_is_refused_is_dropped(scene: Scene) -> None:
    scene.recorder.normal(ObjectReference("v1", "Pod", "nowhere", "p", "u"), "Fine", "it works")
    scene.cluster.faults.plan(fault(500).by("writer").after(1).once())
    scene.recorder.normal(POD, "Fine", "it works")
    scene.recorder.normal(NODE, "Fine", "it works")
    await scene.cluster.clock.advance(60)
    assert scene.asked == [("POST", 404), ("POST", 500), ("POST", 201)]


async def test_an_unanswered_write_is_retried_while_others_wait(scene: Scene) -> None:
    scene.cluster.faults.plan(fault("drop").by("writer").times(3))
    scene.recorder.normal(POD, "Fine", "it works")
    scene.recorder.normal(NODE, "Fine", "it works")
    await scene.cluster.clock.advance(19)
    assert await scene.told() == []
    await scene.cluster.clock.advance(12)
    assert len(await scene.told()) == 2


async def test_one_that_is_never_answered_is_dropped_after_twelve_tries(scene: Scene) -> None:
    scene.cluster.faults.plan(fault("drop").by("writer").times(12))
    scene.recorder.normal(POD, "Fine", "it works")
    scene.recorder.normal(NODE, "Fine", "it works")
    await scene.cluster.clock.advance(111)
    assert [method for method, status in scene.asked if not status] == ["POST"] * 12
    assert [each["involvedObject"]["kind"] for each in await scene.told()] == ["Node"]


async def test_a_write_with_a_lost_answer_counts_once(scene: Scene) -> None:
    scene.recorder.normal(POD, "Fine", "it works")
    scene.cluster.faults.plan(fault("drop", when="after").by("writer").every(2))
    await scene.cluster.clock.advance(60)
    for _ in range(4):
        scene.recorder.normal(POD, "Fine", "it works")
        await scene.cluster.clock.advance(60)
    assert await scene.messages() == [("it works", 5)]


async def test_flushing_writes_what_is_left_and_tries_each_once(scene: Scene) -> None:
    scene.cluster.faults.plan(fault("drop").by("writer").times(2))
    for about in (POD, NODE, ObjectReference("v1", "Pod", "default", "q", "q")):
        scene.recorder.normal(about, "Fine", "it works")
    await scene.cluster.clock.advance(0)  # the first was tried, and rests
    await scene.writer.flush()
    assert scene.asked == [("POST", 0), ("POST", 0), ("POST", 201), ("POST", 201)]
    assert [each["involvedObject"]["name"] for each in await scene.told()] == ["n", "q"]


async def test_flushing_takes_five_seconds_at_most(scene: Scene) -> None:
    scene.cluster.faults.plan(fault("latency", seconds=1000).by("writer"))
    scene.recorder.normal(POD, "Fine", "it works")
    scene.recorder.normal(NODE, "Fine", "it works")
    flushing = asyncio.create_task(scene.writer.flush())
    await scene.cluster.clock.advance(5)
    assert flushing.done()
    scene.cluster.faults.end()
    scene.recorder.normal(POD, "Fine", "it works again")
    await scene.writer.flush()
    assert await scene.messages() == [("it works again", 1)]


async def test_with_nothing_left_flushing_does_nothing(scene: Scene) -> None:
    await scene.writer.flush()
    scene.recorder.normal(POD, "Fine", "it works")
    await scene.cluster.clock.advance(1)
    await scene.writer.flush()
    assert scene.asked == [("POST", 201)]


async def test_no_more_than_a_thousand_wait(scene: Scene) -> None:
    scene.cluster.faults.plan(fault("latency", seconds=1).by("writer").once())
    for number in range(MAX_PENDING + 10):
        about = ObjectReference("v1", "Pod", "default", f"p{number}", f"p{number}")
        scene.recorder.normal(about, "Fine", "it works")
    await scene.cluster.clock.advance(1)
    assert len(await scene.told()) == MAX_PENDING


@asynccontextmanager
async def scripted(*script: Reply) -> AsyncIterator[tuple[EventRecorder, ScriptedApi]]:
    clock = SteppedClock()
    api = ScriptedApi(clock, *script)
    writer = EventWriter(Client(api), clock, Random(1))
    yield writer.recorder("tester"), api
    await writer.flush()


async def test_pauses_are_ten_seconds_and_the_first_is_drawn() -> None:
    async with scripted(*[Lost()] * 3, Response(201, b"{}")) as (recorder, api):
        recorder.normal(POD, "Fine", "it works")
        for _ in range(50):
            await asyncio.sleep(0)
    times = [asked.at for asked in api.asked]
    assert 0 < times[1] < 10
    assert (times[2] - times[1], times[3] - times[2]) == pytest.approx((10, 10))
    assert {asked.request.method for asked in api.asked} == {"POST"}
    assert isinstance(api.asked[0].request, Request)
