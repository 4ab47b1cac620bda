"""Events are written as reported, in their order, whatever the server does meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random

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
from tests.builders import Document
from tests.extender.kube.conftest import Lost, Reply, ScriptedApi, SteppedClock
from tests.stage import Stage

AGENT = "writer"
POD = ObjectReference("v1", "Pod", "default", "p", "uid", "7")
NODE = ObjectReference("v1", "Node", "", "n", "n")


class EventStage(Stage):
    """A stage with a writer of Events, whose requests have a user agent of their own."""

    def __init__(self, cluster: VirtualCluster) -> None:
        super().__init__(cluster)
        client = Client(cluster.local_transport(AGENT))
        self.writer = EventWriter(client, cluster.clock, Random(1))
        self.recorder: EventRecorder = self.writer.recorder("tester")

    def record(self, *objects: ObjectReference, message: str = "it works") -> None:
        """Record an Event about each object."""
        for each in objects:
            self.recorder.normal(each, "Fine", message)

    async def events(self) -> list[Document]:
        return sorted(await self.all(EVENTS), key=lambda each: str(each["metadata"]["name"]))

    async def messages(self) -> list[tuple[str, int]]:
        return [(each["message"], each["count"]) for each in await self.events()]

    @property
    def requests(self) -> list[tuple[str, int]]:
        """Methods and statuses of the writer's requests."""
        requests = self.cluster.requests
        return [(each.method, each.status) for each in requests if each.user_agent == AGENT]


@pytest.fixture
async def stage(virtual_cluster: VirtualCluster) -> EventStage:
    return EventStage(virtual_cluster)


async def test_a_report_is_written_as_an_event(stage: EventStage) -> None:
    stage.recorder.warning(POD, "Broken", "it broke")
    await stage.writer.flush()
    (event,) = await stage.events()
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
    assert event["metadata"]["name"] == f"p.{stage.cluster.clock.now_ns():x}"
    assert event["firstTimestamp"] == event["lastTimestamp"] == "2026-01-01T00:00:00Z"


async def test_recording_does_not_wait(stage: EventStage) -> None:
    stage.plan_faults(fault("latency", seconds=30), agent=AGENT)
    stage.record(POD)
    assert await stage.events() == []
    await stage.passes(30)
    assert await stage.messages() == [("it works", 1)]


async def test_events_are_written_in_the_order_of_their_reports(stage: EventStage) -> None:
    other = stage.writer.recorder("other")
    stage.plan_faults(fault("latency", least=0, most=3), agent=AGENT)
    for number in range(6):
        recorder = other if number % 2 else stage.recorder
        recorder.normal(POD, f"Reason{number}", "it works")
    await stage.passes(60)
    written = [change.object["reason"] for change in stage.cluster.history("events")]
    assert written == [f"Reason{number}" for number in range(6)]


async def test_two_events_never_share_a_name(stage: EventStage) -> None:
    for number in range(20):
        stage.recorder.normal(POD, f"Reason{number}", "it works")
        stage.writer.recorder("other").normal(POD, f"Reason{number}", "it works")
    await stage.writer.flush()
    assert len(await stage.events()) == 40


async def test_repetitions_are_counted(stage: EventStage) -> None:
    for _ in range(3):
        stage.record(POD)
        await stage.passes(60)
    stage.record(POD, message="it still works")
    await stage.writer.flush()
    first, second = await stage.events()
    assert (first["count"], second["count"]) == (3, 1)
    assert first["firstTimestamp"] == "2026-01-01T00:00:00Z"
    assert first["lastTimestamp"] == "2026-01-01T00:02:00Z"
    assert stage.requests == [("POST", 201), ("PATCH", 200), ("PATCH", 200), ("POST", 201)]


async def test_similar_events_are_combined(stage: EventStage) -> None:
    for number in range(12):
        stage.recorder.warning(POD, "Broken", f"it broke in way {number}")
        await stage.passes(1)
    messages = await stage.messages()
    assert messages[:9] == [(f"it broke in way {number}", 1) for number in range(9)]
    assert messages[9:] == [("(combined from similar events): it broke in way 11", 3)]
    last = (await stage.events())[-1]
    assert (last["reportingComponent"], last["source"]) == ("", {"component": "tester"})


async def test_an_expired_event_is_created_again_with_its_count(stage: EventStage) -> None:
    for _ in range(2):
        stage.record(POD)
        await stage.passes(3601)
    assert await stage.events() == []
    added = [c for c in stage.cluster.history("events") if c.type == "ADDED"]
    assert [c.object["count"] for c in added] == [1, 2]
    assert len({c.object["metadata"]["name"] for c in added}) == 1


async def test_events_of_cluster_scoped_objects_are_in_the_default_namespace(
    stage: EventStage,
) -> None:
    stage.record(NODE)
    await stage.writer.flush()
    (event,) = await stage.events()
    assert event["metadata"]["namespace"] == "default"


@pytest.mark.parametrize("name", ["system:node", "Upper", "a..b", "x" * 240])
async def test_an_object_whose_name_is_no_valid_event_name_gets_events(
    stage: EventStage, name: str
) -> None:
    role = ObjectReference("rbac.authorization.k8s.io/v1", "ClusterRole", "", name, "u")
    stage.record(role)
    await stage.writer.flush()
    (event,) = await stage.events()
    assert (len(event["metadata"]["name"]), event["involvedObject"]["name"]) == (36, name)


async def test_a_refused_event_is_dropped(stage: EventStage) -> None:
    stage.record(ObjectReference("v1", "Pod", "nowhere", "p", "u"))
    stage.plan_faults(fault(500).after(1).once(), agent=AGENT)
    stage.record(POD, NODE)
    await stage.passes(60)
    assert stage.requests == [("POST", 404), ("POST", 500), ("POST", 201)]


async def test_an_unanswered_write_is_retried_while_others_wait(stage: EventStage) -> None:
    stage.plan_faults(fault("drop").times(3), agent=AGENT)
    stage.record(POD, NODE)
    await stage.passes(19)
    assert await stage.events() == []
    await stage.passes(12)
    assert len(await stage.events()) == 2


async def test_an_unanswered_event_is_dropped_after_twelve_attempts(stage: EventStage) -> None:
    stage.plan_faults(fault("drop").times(12), agent=AGENT)
    stage.record(POD, NODE)
    await stage.passes(111)
    assert [method for method, status in stage.requests if not status] == ["POST"] * 12
    assert [each["involvedObject"]["kind"] for each in await stage.events()] == ["Node"]


async def test_a_write_with_a_lost_response_counts_once(stage: EventStage) -> None:
    stage.record(POD)
    stage.plan_faults(fault("drop", when="after").every(2), agent=AGENT)
    await stage.passes(60)
    for _ in range(4):
        stage.record(POD)
        await stage.passes(60)
    assert await stage.messages() == [("it works", 5)]


async def test_flushing_tries_each_pending_event_once(stage: EventStage) -> None:
    stage.plan_faults(fault("drop").times(2), agent=AGENT)
    stage.record(POD, NODE, ObjectReference("v1", "Pod", "default", "q", "q"))
    await stage.passes(0)  # the first attempt has failed
    await stage.writer.flush()
    assert stage.requests == [("POST", 0), ("POST", 0), ("POST", 201), ("POST", 201)]
    assert [each["involvedObject"]["name"] for each in await stage.events()] == ["n", "q"]


async def test_flushing_takes_five_seconds_at_most(stage: EventStage) -> None:
    stage.plan_faults(fault("latency", seconds=1000), agent=AGENT)
    stage.record(POD, NODE)
    flushing = asyncio.create_task(stage.writer.flush())
    await stage.passes(5)
    assert flushing.done()
    stage.cluster.faults.end()
    stage.record(POD, message="it works again")
    await stage.writer.flush()
    assert await stage.messages() == [("it works again", 1)]


async def test_flushing_without_pending_events_does_nothing(stage: EventStage) -> None:
    await stage.writer.flush()
    stage.record(POD)
    await stage.passes(1)
    await stage.writer.flush()
    assert stage.requests == [("POST", 201)]


async def test_at_most_a_thousand_events_are_pending(stage: EventStage) -> None:
    stage.plan_faults(fault("latency", seconds=1).once(), agent=AGENT)
    for number in range(MAX_PENDING + 10):
        stage.record(ObjectReference("v1", "Pod", "default", f"p{number}", f"p{number}"))
    await stage.passes(1)
    assert len(await stage.events()) == MAX_PENDING


@asynccontextmanager
async def scripted(*script: Reply) -> AsyncIterator[tuple[EventRecorder, ScriptedApi]]:
    clock = SteppedClock()
    api = ScriptedApi(clock, *script)
    writer = EventWriter(Client(api), clock, Random(1))
    yield writer.recorder("tester"), api
    await writer.flush()


async def test_delays_are_ten_seconds_except_a_random_first_one() -> None:
    async with scripted(*[Lost()] * 3, Response(201, b"{}")) as (recorder, api):
        recorder.normal(POD, "Fine", "it works")
        for _ in range(50):
            await asyncio.sleep(0)
    times = [each.at for each in api.requests]
    assert 0 < times[1] < 10
    assert (times[2] - times[1], times[3] - times[2]) == pytest.approx((10, 10))
    assert {each.request.method for each in api.requests} == {"POST"}
    assert isinstance(api.requests[0].request, Request)
