"""The control plane as a whole: parts by name, and what becomes of faults in them."""

from __future__ import annotations

import asyncio
from random import Random

import pytest

from extender.controllers.process.controller_manager import (
    SPREAD_WEBHOOKS,
    ComponentContext,
    ComponentSwitch,
    ControllerManager,
    UnknownComponentError,
    parse_workloads,
)
from extender.kube.controller_runtime.controller import Controller
from extender.kube.controller_runtime.event_recorder import EventWriter
from extender.kube.controller_runtime.workqueue import WorkQueue
from extender.kube.decoders.object_meta import PartialObject, decode_partial
from extender.kube.informers.shared_informer import SharedInformerFactory
from extender.kube.rest.resources import NODES, REPLICA_SETS
from fakeapi import FakeCluster, VirtualCluster
from fakeapi.controlplane.components import COMPONENTS, DEFAULT_RUN, parse_run
from tests.builders.replicas import a_replica_set

RUNS = [
    ("none", ()),
    ("all", tuple(dict.fromkeys((*COMPONENTS, "workloadspread")))),
    ("gc", ("gc",)),
    ("podgc, gc,podgc", ("podgc", "gc")),
    (DEFAULT_RUN, ("gc", "namespaces")),
]


@pytest.mark.parametrize(("run", "parts"), RUNS)
def test_which_parts_are_to_run(run: str, parts: tuple[str, ...]) -> None:
    assert parse_run(run) == parts


@pytest.mark.parametrize("run", ["", "gc,", "sorcery", "all,gc", "GC"])
def test_unknown_parts_are_refused_with_those_there_are(run: str) -> None:
    with pytest.raises(UnknownComponentError, match=r"no component.*none, all, gc, namespaces"):
        parse_run(run)


def test_which_controllers_of_workloads_are_to_run() -> None:
    assert parse_workloads("replicaset, replicaset") == ("replicaset",)
    with pytest.raises(
        UnknownComponentError, match=r"no controller 'gc'; expected one of: replicaset"
    ):
        parse_workloads("gc")


async def test_only_the_chosen_components_run() -> None:
    async with VirtualCluster(run="gc,podgc") as cluster:
        on = [name for name, switch in cluster.control_plane.items() if switch.on]
        assert (on, set(cluster.control_plane)) == (["gc", "podgc"], {*COMPONENTS, SPREAD_WEBHOOKS})
    async with VirtualCluster() as cluster:
        assert cluster.control_plane.run == ("gc", "namespaces")


async def test_parts_are_switched_on_and_off_again_and_again() -> None:
    async with VirtualCluster(run="none") as cluster:
        for _ in range(3):
            for switch in cluster.control_plane.values():
                switch.start()
                switch.start()
            await cluster.clock.advance(10)
            for switch in cluster.control_plane.values():
                await switch.stop()
                await switch.stop()
                assert (switch.on, switch.pending, await switch.step()) == (False, 0, "")


async def test_a_part_that_was_paused_before_it_began_begins_paused() -> None:
    async with VirtualCluster(run="none") as cluster:
        gc = cluster.control_plane["gc"]
        gc.pause()
        gc.start()
        await cluster.clock.advance(1)
        owned = [{"apiVersion": "v1", "kind": "Node", "name": "nobody", "uid": "nobody"}]
        orphan = {"name": "a", "ownerReferences": owned}
        cluster.load([{"apiVersion": "v1", "kind": "Node", "metadata": orphan}])
        await cluster.clock.advance(60)
        assert gc.pending == 1
        gc.resume()
        await cluster.clock.advance(1)
        assert (gc.pending, gc.paused) == (0, False)
        assert list(list(cluster.history("nodes").states())[-1]) == []


async def test_forks_have_a_control_plane_of_their_own() -> None:
    async with VirtualCluster(run="gc") as cluster, cluster.fork() as fork:
        fork.control_plane["gc"].pause()
        assert fork.control_plane.run == ("gc",)
        assert not cluster.control_plane["gc"].paused


async def test_its_requests_are_not_put_on_record() -> None:
    async with FakeCluster(run="all") as cluster:
        await cluster.clock.advance(60)
        assert cluster.requests == ()


class Broken:
    """A part with a fault."""

    def __init__(self, setting: ComponentContext) -> None:
        queue: WorkQueue[str] = WorkQueue(setting.clock)
        queue.add("anything")
        self.controller = Controller("broken", queue, self._sync)

    async def run(self) -> None:
        await self.controller.run()

    async def _sync(self, _key: str) -> None:
        raise ZeroDivisionError


async def test_a_fault_in_a_part_does_not_go_unnoticed(virtual_cluster: VirtualCluster) -> None:
    client, clock, rng = virtual_cluster.client, virtual_cluster.clock, Random(1)
    informers, events = SharedInformerFactory(client, clock, rng), EventWriter(client, clock, rng)
    setting, fault = ComponentContext(client, informers, clock, rng, events), asyncio.Event()
    switch = ComponentSwitch("broken", Broken, setting, fault)
    switch.start()
    await clock.advance(10)
    assert fault.is_set()
    with pytest.raises(ZeroDivisionError):
        await switch.stop()


class Deaf:
    """A handler with a fault."""

    def added(self, _item: PartialObject) -> None:
        raise ZeroDivisionError

    def updated(self, old: PartialObject, new: PartialObject) -> None:
        """Nothing."""

    def removed(self, item: PartialObject) -> None:
        """Nothing."""


async def test_a_fault_in_a_copy_is_noticed_where_all_parts_are(
    virtual_cluster: VirtualCluster,
) -> None:
    client, clock = virtual_cluster.client, virtual_cluster.clock
    shared = SharedInformerFactory(client, clock, Random(1))
    noticed = asyncio.create_task(shared.failure.wait())
    shared.of(NODES, decode_partial).objects.add_handler(Deaf())
    await clock.advance(1)
    assert not noticed.done()
    virtual_cluster.load([{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}}])
    await clock.advance(1)
    assert noticed.done()
    with pytest.raises(ZeroDivisionError):
        await shared.stop()


async def test_pending_work_can_be_finished(virtual_cluster: VirtualCluster) -> None:
    client, clock = virtual_cluster.client, virtual_cluster.clock
    plane = ControllerManager(client, clock, Random(1), ("replicaset",))
    broken = asyncio.create_task(plane.wait_for_failure())
    plane.start()
    virtual_cluster.load([a_replica_set(replicas=100)])
    finished = asyncio.create_task(plane.drain())
    await clock.advance(1)
    assert finished.done()
    virtual_cluster.load([a_replica_set("late")])
    await clock.advance(1)
    assert len((await client.list(REPLICA_SETS, decode_partial)).items) == 2
    assert not broken.done()
    broken.cancel()
    await plane.stop()
