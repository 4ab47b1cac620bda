"""Informers that several share, and the loop of a controller."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from random import Random

import pytest

from extender.kube.api_error import ApiError
from extender.kube.controller import Controller, RetryError
from extender.kube.informers import Informers
from extender.kube.metadata import PartialObject, decode_partial
from extender.kube.resources import NODES
from extender.kube.workqueue import WorkQueue
from fakeapi import VirtualCluster


def a_node(name: str) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}


@pytest.fixture
async def informers(virtual_cluster: VirtualCluster) -> AsyncIterator[Informers]:
    shared = Informers(virtual_cluster.client, virtual_cluster.clock, Random(1))
    yield shared
    await shared.stop()


async def test_who_asks_for_the_same_gets_the_same_copy(
    informers: Informers, virtual_cluster: VirtualCluster
) -> None:
    one, other = (informers.of(NODES, decode_partial) for _ in range(2))
    assert one is other
    virtual_cluster.load([a_node("a")])
    await virtual_cluster.clock.advance(1)
    assert [item.metadata.name for item in one.objects.values()] == ["a"]
    assert sum("watch" in request.query for request in virtual_cluster.requests) == 1


async def test_what_is_dropped_is_told_to_have_gone(
    informers: Informers, virtual_cluster: VirtualCluster
) -> None:
    virtual_cluster.load([a_node("a")])
    shared = informers.of(NODES, decode_partial)
    await virtual_cluster.clock.advance(1)
    informers.drop(NODES, decode_partial)
    assert len(shared.objects) == 0
    assert informers.of(NODES, decode_partial) is not shared


class Faulty:
    """A handler that cannot bear anything new."""

    def added(self, item: PartialObject) -> None:
        raise ZeroDivisionError(item.metadata.name)

    def updated(self, old: PartialObject, new: PartialObject) -> None:
        """Nothing."""

    def removed(self, item: PartialObject) -> None:
        """Nothing."""


async def test_a_fault_in_a_handler_is_raised_in_the_end(virtual_cluster: VirtualCluster) -> None:
    shared = Informers(virtual_cluster.client, virtual_cluster.clock, Random(1))
    shared.of(NODES, decode_partial).objects.add_handler(Faulty())
    virtual_cluster.load([a_node("a")])
    await virtual_cluster.clock.advance(1)
    with pytest.raises(ZeroDivisionError):
        await shared.stop()


async def test_a_controller_tries_again_what_was_refused_and_comes_back_when_asked_to(
    virtual_cluster: VirtualCluster,
) -> None:
    clock, tried = virtual_cluster.clock, []

    async def sync(key: str) -> float | None:
        tried.append((key, round(clock.monotonic(), 3)))
        if len(tried) == 1:
            raise RetryError("not now")
        if len(tried) == 2:
            raise ApiError(409, "Conflict", "someone was faster")
        return 60.0 if len(tried) == 3 else None

    queue: WorkQueue[str] = WorkQueue(clock)
    controller = Controller("tester", queue, sync)
    running = asyncio.create_task(controller.run())
    queue.add("a")
    await clock.advance(300)
    assert tried == [("a", 0), ("a", 0.005), ("a", 0.015), ("a", 60.015)]
    running.cancel()
    await asyncio.wait((running,))


async def test_a_fault_of_a_controller_ends_it(virtual_cluster: VirtualCluster) -> None:
    async def sync(_key: str) -> None:
        raise ZeroDivisionError

    queue: WorkQueue[str] = WorkQueue(virtual_cluster.clock)
    running = asyncio.create_task(Controller("tester", queue, sync).run())
    queue.add("a")
    await virtual_cluster.clock.advance(1)
    with pytest.raises(ZeroDivisionError):
        await running
