"""Recorders: the resources that they follow, the first lists, and faults."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random

import pytest

from extender.kube.informers.reflector import ReflectorContext
from extender.kube.rest.rate_limited_log import quiet_log
from extender.recording.event_writer import REDACTED, RecordingWriter
from extender.recording.files import Recording, parse_recording
from extender.recording.recorder import Recorder
from extender.recording.resource_selection import ResourceNameError, make_plan
from fakeapi import VirtualCluster
from fakeapi.testing.faults import fault
from tests.builders.definitions import INTEGER, definition
from tests.extender.recording.recording_lines import an_object
from tests.fakeapi.replay.random_world import GADGET_DEFINITION
from tests.fakeapi.replay.replays import replayed


class Output:
    """A recording that is being written."""

    def __init__(self) -> None:
        self.data = b""

    def write(self, data: bytes) -> None:
        self.data += data

    @property
    def recording(self) -> Recording:
        return parse_recording(self.data, "f")

    @property
    def events(self) -> list[tuple[float, str, str]]:
        """Return seconds, type and name of the events of objects."""
        return [
            (event.at_ns / 10**9, event.type, event.metadata.name)
            for event in self.recording.events
            if event.type != "BOOKMARK"
        ]


@asynccontextmanager
async def recorded(
    cluster: VirtualCluster, *names: str, namespace: str = ""
) -> AsyncIterator[Output]:
    plan = await make_plan(cluster.client, names, namespace)
    output, stop = Output(), asyncio.Event()
    context = ReflectorContext(cluster.client, cluster.clock, Random(3), quiet_log())
    recorder = Recorder(context, plan, RecordingWriter(output.write, cluster.clock, REDACTED))
    task = asyncio.create_task(recorder.run(stop))
    await cluster.clock.advance(0)
    yield output
    stop.set()
    await task


@pytest.fixture
def cluster(virtual_cluster: VirtualCluster) -> VirtualCluster:
    return virtual_cluster


async def test_a_recording_begins_with_lists_at_time_zero(cluster: VirtualCluster) -> None:
    cluster.load([an_object("a"), an_object("n", "Node")])
    async with recorded(cluster, "pods", "nodes") as output:
        await cluster.clock.advance(5)
        cluster.load([an_object("b")])
        await cluster.clock.advance(5)
    assert output.events == [(0, "LISTED", "a"), (0, "LISTED", "n"), (5, "ADDED", "b")]
    assert output.recording.header.server == "v1.37.0"


async def test_a_late_resource_is_listed_late(cluster: VirtualCluster) -> None:
    cluster.load([an_object("a"), an_object("n", "Node")])
    cluster.faults.plan(fault(503).on("list", "nodes").between(0, 30))
    async with recorded(cluster, "pods", "nodes") as output:
        await cluster.clock.advance(9)
        assert output.data == b""
        await cluster.clock.advance(2)
        assert output.events == [(0, "LISTED", "a")]
        await cluster.clock.advance(60)
    assert [each[1:] for each in output.events] == [("LISTED", "a"), ("LISTED", "n")]
    assert output.events[1][0] > 20


async def test_a_forbidden_resource_does_not_delay_others(cluster: VirtualCluster) -> None:
    cluster.load([an_object("a")])
    cluster.faults.plan(fault(403).on("list", "nodes"))
    async with recorded(cluster, "pods", "nodes") as output:
        await cluster.clock.advance(1)
        assert output.events == [(0, "LISTED", "a")]


async def test_a_recorder_stopped_before_the_first_list_is_valid(cluster: VirtualCluster) -> None:
    cluster.faults.plan(fault(503).on("list"))
    async with recorded(cluster, "pods") as output:
        await cluster.clock.advance(1)
    assert output.recording.events == ()


async def test_a_relist_is_recorded_as_the_missed_changes(cluster: VirtualCluster) -> None:
    cluster.load([an_object("stays"), an_object("goes"), an_object("same", uid="one")])
    async with recorded(cluster, "pods") as output:
        await cluster.clock.advance(1)
        cluster.reset()
        cluster.load(
            [
                an_object("comes"),
                an_object("stays", spec={"nodeName": "n"}),
                an_object("same", uid="another"),
            ]
        )
        await cluster.clock.advance(30)
    after = output.events[3:]
    assert {at for at, *_ in after} == {after[0][0]}
    assert [each[1:] for each in after] == [
        ("RELISTED", ""),
        ("DELETED", "goes"),
        ("ADDED", "comes"),
        ("DELETED", "same"),
        ("ADDED", "same"),
        ("MODIFIED", "stays"),
    ]


class TestResources:
    async def test_a_namespace_and_cluster_scoped_objects(self, cluster: VirtualCluster) -> None:
        other = an_object("theirs")
        other["metadata"]["namespace"] = "other"
        cluster.load([an_object("ours"), other, an_object("n", "Node")])
        async with recorded(cluster, "pods", "nodes", namespace="default") as output:
            await cluster.clock.advance(1)
        assert {name for _, _, name in output.events} == {"ours", "n"}
        assert output.recording.header.namespace == "default"

    async def test_a_custom_resource_with_its_definition(self, cluster: VirtualCluster) -> None:
        cluster.load([GADGET_DEFINITION])
        async with recorded(cluster, "gadgets", "pods") as output:
            await cluster.clock.advance(1)
        assert [each.name for each in output.recording.header.resources] == [
            "customresourcedefinitions.apiextensions.k8s.io",
            "gadgets.example.com",
            "pods",
        ]
        assert output.events == [(0, "LISTED", "gadgets.example.com")]

    async def test_all_includes_resources_that_are_defined_later(
        self, cluster: VirtualCluster
    ) -> None:
        cluster.load([GADGET_DEFINITION])
        async with recorded(cluster, "all") as output:
            await cluster.clock.advance(5)
            cluster.load([definition(spec={"size": INTEGER}), an_object("g", "Gadget")])
            await cluster.clock.advance(5)
            cluster.load([an_object("w", "Widget")])
            await cluster.clock.advance(60)
        custom = "gadgets.example.com", "widgets.example.com"
        events = [(each.type, each.metadata.name) for each in output.recording.events]
        assert [events.count(("LISTED", name)) for name in custom] == [1, 0]
        assert events.count(("ADDED", "g")) == events.count(("ADDED", "w")) == 1

        report = await replayed(output.recording, "none")
        assert report.same
        assert report.resources["widgets.example.com"].recorded == 1

    async def test_served_default_resources(self, cluster: VirtualCluster) -> None:
        plan = await make_plan(cluster.client, (), "")
        names = [each.recorded.name for each in plan.sources]
        assert {"namespaces", "nodes", "pods", "replicasets.apps", "jobs.batch"} <= set(names)
        assert not {"secrets", "events", "workloadspreads.apps.kruise.io"} & set(names)

    async def test_all_but_events_and_leases(self, cluster: VirtualCluster) -> None:
        plan = await make_plan(cluster.client, ("all",), "")
        names = {each.recorded.name for each in plan.sources}
        assert {"secrets", "configmaps", "cronjobs.batch"} <= names
        assert not {"events", "events.events.k8s.io", "leases.coordination.k8s.io"} & names

    async def test_an_unknown_name(self, cluster: VirtualCluster) -> None:
        with pytest.raises(ResourceNameError, match="no resource 'pod' can be listed"):
            await make_plan(cluster.client, ("pod",), "")
