"""The ReplicaSet controller's laws under faults, over hundreds of random histories.

1. No more creates and deletes are outstanding than it says that it expects (for five minutes; then
   it waits for nothing any more, as upstream does not).
2. Where no other client writes pods there are never more than were ever asked for, and never fewer.
   As long as the number asked for stays, no more pods are made than are missing.
3. In the end there are as many pods as asked for, and the status shows it, whatever has happened.
4. Where nothing is to be done, nothing is written.

They hold as they stand for faults that a controller can tell from success, however old its copies
are, whenever it is killed, however its wall clock jumps, and for several that elect a leader.

**What is done though its answer is lost** is another matter. A create is not repeated under a name
that would make it the same one, and what seems to have failed is not expected: so for each such
answer there may be one pod too many, for as long as it takes to see it and delete one. A delete
goes by name: if the copy changes before it is tried again, another pod may be chosen. Upstream does
exactly this (replica_set.go, manageReplicas: every error lowers the expectations), and so the laws
1 and 2 are held up to the number of answers that were lost.

**Old lists.** A controller that begins with an old list does not see pods that are there. Upstream
had that until its informers began with a stream (WatchList) of the newest state; where a server
refuses the stream, both still begin with whatever list the server has at hand.

**Meddling.** A pod that is made, and deleted by another client while the watch is down, is never
seen. Upstream then waits for five minutes, and does not sync again until the resync, after 12 to 24
hours; so do we, and law 3 takes that long.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from random import Random
from typing import Final

import pytest

from extender.controllers.process.controller_manager import ControllerManager
from extender.kube.rest.client import Client
from extender.kube.rest.resources import PODS
from fakeapi import VirtualCluster
from fakeapi.testing.faults import Fault, fault
from tests.builders.replicas import a_pod, a_replica_set
from tests.extender.controllers.replicaset.controller_cluster import WEB, Workshop, workshop
from tests.extender.controllers.replicaset.history_runner import Outcome, live
from tests.extender.controllers.replicaset.random_histories import (
    LOST,
    REFUSED,
    WATCHED,
    Family,
    Trial,
)
from tests.sampling import seeds
from tests.stage import Stage

TELLING: Final = (*REFUSED, *WATCHED)
OFTEN_ALONE: Final = (1, 1, 1, 2)
FAMILIES: Final = {
    "replicas stay": Family(TELLING, controllers=OFTEN_ALONE),
    "replicas change": Family(TELLING, scales=4, controllers=OFTEN_ALONE),
    "answers are lost": Family((*TELLING, *LOST), controllers=OFTEN_ALONE),
    "answers are lost, replicas change": Family(
        (*TELLING, *LOST), scales=4, controllers=OFTEN_ALONE
    ),
    "others meddle": Family((*TELLING, *LOST), scales=2, meddling=8, controllers=OFTEN_ALONE),
}


def check_outstanding(out: Outcome) -> None:
    assert out.excess <= out.lost_creates + out.lost_deletes


def check_numbers(trial: Trial, out: Outcome) -> None:
    assert max(out.witness.counts) <= max(trial.numbers) + out.lost_creates
    assert min(out.witness.counts) >= min(trial.numbers) - out.lost_deletes
    if trial.is_constant:
        missing = max(0, trial.replicas - trial.pods)
        assert out.witness.made <= missing + out.lost_creates + out.lost_deletes


def check_end(out: Outcome) -> None:
    assert out.settled_after is not None, f"{out.status}, and it should be {out.should_be}"
    assert out.status == out.should_be
    assert out.idle_writes == []


@pytest.mark.parametrize("seed", seeds(3, 50))
@pytest.mark.parametrize("family", FAMILIES)
async def test_laws(family: str, seed: int) -> None:
    trial = FAMILIES[family].draw(seed)
    out = await live(trial)
    try:
        check_outstanding(out)
        if not trial.kubelet:
            check_numbers(trial, out)
        check_end(out)
    except AssertionError as error:
        error.add_note(str(trial))
        raise


async def test_the_same_seed_gives_the_same_life() -> None:
    trial = FAMILIES["answers are lost, replicas change"].draw(7)
    one, other = await live(trial), await live(trial)
    assert one.witness.counts == other.witness.counts
    assert (one.settled_after, one.status) == (other.settled_after, other.status)


async def active(shop: Workshop) -> int:
    return sum("deletionTimestamp" not in each["metadata"] for each in await shop.pods())


async def test_a_create_whose_answer_is_lost_makes_one_pod_too_many_for_a_moment() -> None:
    async with workshop(a_replica_set(replicas=1)) as shop:
        shop.valve.close_watch()
        shop.plan(fault("drop", when="after").on("create", "pods").once())
        assert (await shop.look()).creates == 1
        assert shop.part.expectations.counts(WEB) == (0, 0)  # it seems to have failed
        assert (await shop.look()).creates == 1
        assert await active(shop) == 2
        shop.valve.let_through()
        await shop.passes()
        assert (await shop.look()).deletes == 1
        assert await active(shop) == 1


async def test_after_a_lost_answer_to_a_delete_the_same_pod_is_chosen_unless_the_copy_changes() -> (
    None
):
    made = "2026-01-01T00:00:00Z"
    pods = [a_pod(name, "web", creationTimestamp=made) for name in "ab"]
    cheap = {"controller.kubernetes.io/pod-deletion-cost": "-1"}
    lost = fault("drop", when="after").on("delete", "pods").once()
    async with workshop(a_replica_set(replicas=1), *pods) as shop:
        shop.valve.close_watch()
        shop.plan(lost)
        assert (await shop.look()).deletes == 1
        assert shop.part.expectations.counts(WEB) == (0, 0)  # it seems to have failed
        assert (await shop.look()).deletes == 1  # the same pod, which has gone
        assert await active(shop) == 1
    async with workshop(a_replica_set(replicas=1), *pods) as shop:
        shop.valve.close_watch()
        await shop.patch_pod("b", {"metadata": {"annotations": cheap}})
        shop.plan(lost)
        assert (await shop.look()).deletes == 1
        shop.valve.let_through(1)  # what happened before the deletion
        await shop.passes(0)
        assert (await shop.look()).deletes == 1
        assert await active(shop) == 0
        shop.valve.let_through()
        await shop.passes()
        assert (await shop.look()).creates == 1


@asynccontextmanager
async def controlled(*faults: Fault, pods: Sequence[str], replicas: int) -> AsyncIterator[Stage]:
    """Return a world in which a controller has just begun, with faults before it."""
    async with VirtualCluster(run="none") as cluster:
        cluster.load([a_replica_set(replicas=replicas), *(a_pod(name, "web") for name in pods)])
        cluster.faults.plan(*(each.by("controller") for each in faults))
        client = Client(cluster.local_transport("controller"))
        plane = ControllerManager(client, cluster.clock, Random(1), ("replicaset",))
        plane.start()
        yield Stage(cluster)
        await plane.stop()


async def test_a_controller_that_begins_with_an_old_list_makes_pods_that_are_there() -> None:
    refused = fault(500).on("watch", "pods").once()
    old = fault("stale", behind=2).on("list", "pods").once()
    late = fault("lag", seconds=5).on("watch", "pods")
    async with controlled(refused, old, late, pods="abc", replicas=3) as world:
        await world.passes(0)
        assert len(await world.names(PODS)) == 5
        await world.passes(60)
        assert len(await world.names(PODS)) == 3


async def test_a_controller_that_begins_with_a_stream_sees_what_is_there() -> None:
    old = fault("stale", behind=2)
    late = fault("lag", seconds=5).on("watch", "pods")
    async with controlled(old, late, pods="abc", replicas=3) as world:
        await world.passes(60)
        assert await world.names(PODS) == ["a", "b", "c"]


async def test_a_pod_created_and_deleted_unseen_is_expected_until_the_resync() -> None:
    silence = fault("silence", seconds=30, after_frames=1).on("watch", "pods").once()
    async with controlled(silence, pods=(), replicas=1) as world:
        await world.passes(1)
        (unseen,) = await world.names(PODS)
        await world.delete(PODS, unseen)
        world.cluster.api.store.compact(world.cluster.api.store.version)
        await world.passes(11 * 3600)
        assert await world.names(PODS) == []
        await world.passes(14 * 3600)
        assert len(await world.names(PODS)) == 1
