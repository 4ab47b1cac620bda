"""The control plane as a whole: components by name, and errors in them."""

from __future__ import annotations

import asyncio
from random import Random

import pytest

from extender.controllers.process.controller_manager import (
    SPREAD_WEBHOOKS,
    ComponentContext,
    ComponentSwitch,
    ControllerManager,
    ManagerOptions,
    UnknownComponentError,
    parse_workloads,
)
from extender.kube.controller_runtime.controller import Controller
from extender.kube.controller_runtime.event_recorder import EventWriter
from extender.kube.controller_runtime.workqueue import WorkQueue
from extender.kube.decoders.object_meta import PartialObject, decode_partial
from extender.kube.informers.shared_informer import SharedInformerFactory
from extender.kube.rest.client import Propagation, Selection
from extender.kube.rest.clock import SystemClock
from extender.kube.rest.resources import NODES, REPLICA_SETS
from fakeapi import FakeCluster, VirtualCluster
from fakeapi.controlplane.components import COMPONENTS, DEFAULT_RUN, components, parse_run
from tests.builders import blocking, manifest, owner, thing
from tests.builders.replicas import a_replica_set
from tests.stage import CONFIG_MAPS, decode

TIMEOUT_SECONDS = 30
RUNS = [
    ("none", ()),
    ("all", tuple(dict.fromkeys((*COMPONENTS, "workloadspread")))),
    ("gc", ("gc",)),
    ("podgc, gc,podgc", ("podgc", "gc")),
    (DEFAULT_RUN, ("gc", "namespaces", "resourcequota")),
]


@pytest.mark.parametrize(("run", "names"), RUNS)
def test_components_to_run_are_parsed(run: str, names: tuple[str, ...]) -> None:
    assert parse_run(run) == names


@pytest.mark.parametrize("run", ["", "gc,", "unknown", "all,gc", "GC"])
def test_unknown_components_are_refused_with_the_known_ones(run: str) -> None:
    with pytest.raises(UnknownComponentError, match=r"no component.*none, all, gc, namespaces"):
        parse_run(run)


def test_controllers_of_workloads_are_parsed() -> None:
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
        assert cluster.control_plane.run == ("gc", "namespaces", "resourcequota")


async def test_components_can_be_started_and_stopped_repeatedly() -> None:
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


async def test_a_component_paused_before_its_start_starts_paused() -> None:
    async with VirtualCluster(run="none") as cluster:
        gc = cluster.control_plane["gc"]
        gc.pause()
        gc.start()
        await cluster.clock.advance(1)
        owners = [owner("missing", "Node")]
        cluster.load([manifest("Node", "a", metadata={"ownerReferences": owners})])
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


async def test_requests_of_components_are_not_recorded() -> None:
    async with FakeCluster(run="all") as cluster:
        await cluster.clock.advance(60)
        assert cluster.requests == ()


class Broken:
    """A component whose syncs fail."""

    def __init__(self, context: ComponentContext) -> None:
        queue: WorkQueue[str] = WorkQueue(context.clock)
        queue.add("anything")
        self.controller = Controller("broken", queue, self._sync)

    async def run(self) -> None:
        await self.controller.run()

    async def _sync(self, _key: str) -> None:
        raise ZeroDivisionError


async def test_an_error_of_a_component_is_raised(virtual_cluster: VirtualCluster) -> None:
    client, clock, rng = virtual_cluster.client, virtual_cluster.clock, Random(1)
    informers, events = SharedInformerFactory(client, clock, rng), EventWriter(client, clock, rng)
    context, fault = ComponentContext(client, informers, clock, rng, events), asyncio.Event()
    switch = ComponentSwitch("broken", Broken, context, fault)
    switch.start()
    await clock.advance(10)
    assert fault.is_set()
    with pytest.raises(ZeroDivisionError):
        await switch.stop()


class FailingHandler:
    """A handler that fails."""

    def added(self, _item: PartialObject) -> None:
        raise ZeroDivisionError

    def updated(self, old: PartialObject, new: PartialObject) -> None:
        """Nothing."""

    def removed(self, item: PartialObject) -> None:
        """Nothing."""


async def test_an_error_of_a_handler_is_raised_by_the_factory(
    virtual_cluster: VirtualCluster,
) -> None:
    client, clock = virtual_cluster.client, virtual_cluster.clock
    shared = SharedInformerFactory(client, clock, Random(1))
    failed = asyncio.create_task(shared.failure.wait())
    shared.of(NODES, decode_partial).objects.add_handler(FailingHandler())
    await clock.advance(1)
    assert not failed.done()
    virtual_cluster.load([manifest("Node", "a")])
    await clock.advance(1)
    assert failed.done()
    with pytest.raises(ZeroDivisionError):
        await shared.stop()


async def test_pending_work_can_be_finished(virtual_cluster: VirtualCluster) -> None:
    client, clock = virtual_cluster.client, virtual_cluster.clock
    manager = ControllerManager(client, clock, Random(1), ("replicaset",))
    broken = asyncio.create_task(manager.wait_for_failure())
    manager.start()
    virtual_cluster.load([a_replica_set(replicas=100)])
    finished = asyncio.create_task(manager.drain())
    await clock.advance(1)
    assert finished.done()
    virtual_cluster.load([a_replica_set("late")])
    await clock.advance(1)
    assert len((await client.list(REPLICA_SETS, decode_partial)).items) == 2
    assert not broken.done()
    broken.cancel()
    await manager.stop()


async def test_garbage_is_collected_over_http() -> None:
    async with FakeCluster(run="none") as cluster:
        cluster.load([thing("a"), thing("b", blocking("a")), thing("c", blocking("b"))])
        options = ManagerOptions(components=components())
        manager = ControllerManager(cluster.client, SystemClock(), Random(1), ("gc",), options)
        manager.start()
        begin = (await cluster.client.list(CONFIG_MAPS, decode)).resource_version
        path = CONFIG_MAPS.object("a", "default")
        await cluster.client.delete(path, propagation=Propagation.FOREGROUND)
        gone: list[str] = []
        async with (
            asyncio.timeout(TIMEOUT_SECONDS),
            cluster.client.watch(
                CONFIG_MAPS,
                Selection("default"),
                resource_version=begin,
                timeout_seconds=TIMEOUT_SECONDS,
            ) as events,
        ):
            async for event in events:
                if event.type == "DELETED":
                    gone.append(decode(event.object)["metadata"]["name"])
                if gone[-1:] == ["a"]:
                    break
        assert gone == ["c", "b", "a"]
        await manager.stop()
