"""What a recorder follows, when its recording begins, and what it tells of trouble."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
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
from tests.extender.recording.recording_lines import an_object
from tests.fakeapi.replay.random_world import GADGET_DEFINITION

Told = list[tuple[float, str, str]]


class Studio:
    """A recording while it is made, and afterwards."""

    def __init__(self) -> None:
        self.data = b""

    def write(self, data: bytes) -> None:
        self.data += data

    @property
    def recording(self) -> Recording:
        return parse_recording(self.data, "f")

    @property
    def told(self) -> Told:
        """What was told of objects: seconds, type, name."""
        return [
            (event.at_ns / 10**9, event.type, event.metadata.name)
            for event in self.recording.events
            if event.type != "BOOKMARK"
        ]


@asynccontextmanager
async def recorded(
    cluster: VirtualCluster, *names: str, namespace: str = ""
) -> AsyncIterator[Studio]:
    plan = await make_plan(cluster.client, names, namespace)
    studio, stop = Studio(), asyncio.Event()
    context = ReflectorContext(cluster.client, cluster.clock, Random(3), quiet_log())
    recorder = Recorder(context, plan, RecordingWriter(studio.write, cluster.clock, REDACTED))
    task = asyncio.create_task(recorder.run(stop))
    await cluster.clock.advance(0)
    yield studio
    stop.set()
    await task


def names_of(recording: Recording) -> Sequence[str]:
    return [each.name for each in recording.header.resources]


async def test_it_begins_with_everything_listed_at_nought(virtual_cluster: VirtualCluster) -> None:
    virtual_cluster.load([an_object("a"), an_object("n", "Node")])
    async with recorded(virtual_cluster, "pods", "nodes") as studio:
        await virtual_cluster.clock.advance(5)
        virtual_cluster.load([an_object("b")])
        await virtual_cluster.clock.advance(5)
    assert studio.told == [(0, "LISTED", "a"), (0, "LISTED", "n"), (5, "ADDED", "b")]
    assert studio.recording.header.server == "v1.37.0"


async def test_a_late_resource_is_listed_late(virtual_cluster: VirtualCluster) -> None:
    virtual_cluster.load([an_object("a"), an_object("n", "Node")])
    virtual_cluster.faults.plan(fault(503).on("list", "nodes").between(0, 30))
    async with recorded(virtual_cluster, "pods", "nodes") as studio:
        await virtual_cluster.clock.advance(9)
        assert studio.data == b""
        await virtual_cluster.clock.advance(2)
        assert studio.told == [(0, "LISTED", "a")]
        await virtual_cluster.clock.advance(60)
    assert [each[1:] for each in studio.told] == [("LISTED", "a"), ("LISTED", "n")]
    assert studio.told[1][0] > 20


async def test_a_refusal_holds_nothing_up(virtual_cluster: VirtualCluster) -> None:
    virtual_cluster.load([an_object("a")])
    virtual_cluster.faults.plan(fault(403).on("list", "nodes"))
    async with recorded(virtual_cluster, "pods", "nodes") as studio:
        await virtual_cluster.clock.advance(1)
        assert studio.told == [(0, "LISTED", "a")]


async def test_stopping_before_the_first_list_leaves_a_valid_recording(
    virtual_cluster: VirtualCluster,
) -> None:
    virtual_cluster.faults.plan(fault(503).on("list"))
    async with recorded(virtual_cluster, "pods") as studio:
        await virtual_cluster.clock.advance(1)
    assert studio.recording.events == ()


async def test_a_relist_is_recorded_as_the_missed_changes(virtual_cluster: VirtualCluster) -> None:
    virtual_cluster.load([an_object("stays"), an_object("goes"), an_object("same", uid="one")])
    async with recorded(virtual_cluster, "pods") as studio:
        await virtual_cluster.clock.advance(1)
        virtual_cluster.reset()
        virtual_cluster.load(
            [
                an_object("comes"),
                an_object("stays", spec={"nodeName": "n"}),
                an_object("same", uid="another"),
            ]
        )
        await virtual_cluster.clock.advance(30)
    after = studio.told[3:]
    assert {at for at, *_ in after} == {after[0][0]}
    assert [each[1:] for each in after] == [
        ("RELISTED", ""),
        ("DELETED", "goes"),
        ("ADDED", "comes"),
        ("DELETED", "same"),
        ("ADDED", "same"),
        ("MODIFIED", "stays"),
    ]


class TestWhatIsFollowed:
    async def test_a_namespace_and_all_that_has_none(self, virtual_cluster: VirtualCluster) -> None:
        other = an_object("theirs")
        other["metadata"]["namespace"] = "other"
        virtual_cluster.load([an_object("ours"), other, an_object("n", "Node")])
        async with recorded(virtual_cluster, "pods", "nodes", namespace="default") as studio:
            await virtual_cluster.clock.advance(1)
        assert {name for _, _, name in studio.told} == {"ours", "n"}
        assert studio.recording.header.namespace == "default"

    async def test_a_custom_resource_with_its_definition(
        self, virtual_cluster: VirtualCluster
    ) -> None:
        virtual_cluster.load([GADGET_DEFINITION])
        async with recorded(virtual_cluster, "gadgets", "pods") as studio:
            await virtual_cluster.clock.advance(1)
        assert names_of(studio.recording) == [
            "customresourcedefinitions.apiextensions.k8s.io",
            "gadgets.example.com",
            "pods",
        ]
        assert studio.told == [(0, "LISTED", "gadgets.example.com")]

    async def test_the_usual_as_far_as_it_is_served(self, virtual_cluster: VirtualCluster) -> None:
        plan = await make_plan(virtual_cluster.client, (), "")
        names = [each.recorded.name for each in plan.sources]
        assert {"namespaces", "nodes", "pods", "replicasets.apps", "jobs.batch"} <= set(names)
        assert not {"secrets", "events", "workloadspreads.apps.kruise.io"} & set(names)

    async def test_all_but_events_and_leases(self, virtual_cluster: VirtualCluster) -> None:
        plan = await make_plan(virtual_cluster.client, ("all",), "")
        names = {each.recorded.name for each in plan.sources}
        assert {"secrets", "configmaps", "cronjobs.batch"} <= names
        assert not {"events", "events.events.k8s.io", "leases.coordination.k8s.io"} & names

    async def test_a_name_that_is_not_known(self, virtual_cluster: VirtualCluster) -> None:
        with pytest.raises(ResourceNameError, match="no resource 'pod' can be listed"):
            await make_plan(virtual_cluster.client, ("pod",), "")
