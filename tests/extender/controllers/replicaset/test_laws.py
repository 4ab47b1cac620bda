"""The ReplicaSet controller's laws under faults, over hundreds of random histories.

1. The outstanding creations and deletions never exceed the controller's expectations (for five
   minutes; then it waits for nothing any more, like upstream).
2. If no other client writes pods, there are never more than were ever desired, and never fewer.
   While the number of replicas stays the same, no more pods are created than are missing.
3. In the end there are as many pods as desired, and the status shows it, whatever has happened.
4. Without a change nothing is written.

They hold without exception for faults that a controller can distinguish from success, however stale
its caches are, whenever it is killed, however its wall clock jumps, and for several controllers
that elect a leader.

**Lost responses.** A creation is not repeated under the same name, and a creation that seems to
have failed is not expected: so each lost response may cause one pod too many, until it is observed
and one is deleted. A deletion is by name: if the cache changes before the retry, another pod may be
chosen. Upstream does exactly this (replica_set.go, manageReplicas: every error lowers the
expectations), and so the laws 1 and 2 are checked up to the number of lost responses.

**Stale lists.** A controller that starts with a stale list does not see existing pods. Upstream
had that until its informers began with a stream (WatchList) of the newest state; if a server
refuses the stream, both still begin with whatever list the server has at hand.

**Interference.** A pod that is created, and deleted by another client while the watch is down, is
never observed. Upstream then waits for five minutes, and does not sync again until the resync,
after 12 to 24 hours; so do we, and law 3 takes that long.
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
from policies.replicaset import DELETION_COST
from tests.builders.replicas import a_pod, a_replica_set
from tests.extender.controllers.replicaset.history_runner import Outcome, run_history
from tests.extender.controllers.replicaset.random_histories import (
    LOST,
    REFUSED,
    WATCHED,
    Family,
    History,
)
from tests.extender.controllers.replicaset.stages import AGENT, WEB, SteppedStage, stepped_stage
from tests.properties.sampling import seeds
from tests.stage import Stage

DISTINGUISHABLE: Final = (*REFUSED, *WATCHED)
CONTROLLERS: Final = (1, 1, 1, 2)
FAMILIES: Final = {
    "replicas stay": Family(DISTINGUISHABLE, controllers=CONTROLLERS),
    "replicas change": Family(DISTINGUISHABLE, scales=4, controllers=CONTROLLERS),
    "responses are lost": Family((*DISTINGUISHABLE, *LOST), controllers=CONTROLLERS),
    "responses are lost, replicas change": Family(
        (*DISTINGUISHABLE, *LOST), scales=4, controllers=CONTROLLERS
    ),
    "other clients interfere": Family(
        (*DISTINGUISHABLE, *LOST), scales=2, interference=8, controllers=CONTROLLERS
    ),
}


def check_outstanding(out: Outcome) -> None:
    assert out.excess <= out.lost_creates + out.lost_deletes


def check_numbers(history: History, out: Outcome) -> None:
    assert max(out.pods.counts) <= max(history.numbers) + out.lost_creates
    assert min(out.pods.counts) >= min(history.numbers) - out.lost_deletes
    if history.is_constant:
        missing = max(0, history.replicas - history.pods)
        assert out.pods.created <= missing + out.lost_creates + out.lost_deletes


def check_end(out: Outcome) -> None:
    assert out.settled_after is not None, f"{out.status} instead of {out.expected}"
    assert out.status == out.expected
    assert out.idle_writes == []


@pytest.mark.parametrize("seed", seeds(3, 50))
@pytest.mark.parametrize("family", FAMILIES)
async def test_laws(family: str, seed: int) -> None:
    history = FAMILIES[family].draw(seed)
    out = await run_history(history)
    try:
        check_outstanding(out)
        if not history.kubelet:
            check_numbers(history, out)
        check_end(out)
    except AssertionError as error:
        error.add_note(str(history))
        raise


async def test_the_same_seed_gives_the_same_history() -> None:
    history = FAMILIES["responses are lost, replicas change"].draw(7)
    one, other = await run_history(history), await run_history(history)
    assert one.pods.counts == other.pods.counts
    assert (one.settled_after, one.status) == (other.settled_after, other.status)


async def active(stage: SteppedStage) -> int:
    return sum("deletionTimestamp" not in each["metadata"] for each in await stage.all(PODS))


async def test_a_lost_response_to_a_creation_causes_one_pod_too_many_for_a_moment() -> None:
    async with stepped_stage(a_replica_set(replicas=1)) as stage:
        stage.watch.hold()
        stage.plan_faults(fault("drop", when="after").on("create", "pods").once())
        assert (await stage.sync()).creates == 1
        assert stage.expectations.counts(WEB) == (0, 0)  # it seems to have failed
        assert (await stage.sync()).creates == 1
        assert await active(stage) == 2
        stage.watch.release()
        await stage.passes()
        assert (await stage.sync()).deletes == 1
        assert await active(stage) == 1


async def test_a_deletion_is_retried_for_the_same_pod_unless_the_cache_changes() -> None:
    made = "2026-01-01T00:00:00Z"
    pods = [a_pod(name, "web", creationTimestamp=made) for name in "ab"]
    lost = fault("drop", when="after").on("delete", "pods").once()
    async with stepped_stage(a_replica_set(replicas=1), *pods) as stage:
        stage.watch.hold()
        stage.plan_faults(lost)
        assert (await stage.sync()).deletes == 1
        assert stage.expectations.counts(WEB) == (0, 0)  # it seems to have failed
        assert (await stage.sync()).deletes == 1  # the same pod, which is gone
        assert await active(stage) == 1
    async with stepped_stage(a_replica_set(replicas=1), *pods) as stage:
        stage.watch.hold()
        await stage.patch(PODS, "b", {"metadata": {"annotations": {DELETION_COST: "-1"}}})
        stage.plan_faults(lost)
        assert (await stage.sync()).deletes == 1
        stage.watch.release(1)  # what happened before the deletion
        await stage.passes(0)
        assert (await stage.sync()).deletes == 1
        assert await active(stage) == 0
        stage.watch.release()
        await stage.passes()
        assert (await stage.sync()).creates == 1


@asynccontextmanager
async def controlled(*faults: Fault, pods: Sequence[str], replicas: int) -> AsyncIterator[Stage]:
    """Open a stage whose controller has just been started, and whose requests meet faults."""
    async with VirtualCluster(run="none") as cluster:
        stage = Stage(cluster)
        stage.load(a_replica_set(replicas=replicas), *(a_pod(name, "web") for name in pods))
        stage.plan_faults(*faults, agent=AGENT)
        client = Client(cluster.local_transport(AGENT))
        manager = ControllerManager(client, cluster.clock, Random(1), ("replicaset",))
        manager.start()
        yield stage
        await manager.stop()


async def test_a_stale_list_causes_surplus_pods_for_a_moment() -> None:
    refused = fault(500).on("watch", "pods").once()
    old = fault("stale", behind=2).on("list", "pods").once()
    late = fault("lag", seconds=5).on("watch", "pods")
    async with controlled(refused, old, late, pods="abc", replicas=3) as stage:
        await stage.passes(0)
        assert len(await stage.names(PODS)) == 5
        await stage.passes(60)
        assert len(await stage.names(PODS)) == 3


async def test_an_initial_stream_causes_no_surplus_pods() -> None:
    old = fault("stale", behind=2)
    late = fault("lag", seconds=5).on("watch", "pods")
    async with controlled(old, late, pods="abc", replicas=3) as stage:
        await stage.passes(60)
        assert await stage.names(PODS) == ["a", "b", "c"]


async def test_a_pod_created_and_deleted_unseen_is_expected_until_the_resync() -> None:
    silence = fault("silence", seconds=30, after_frames=1).on("watch", "pods").once()
    async with controlled(silence, pods=(), replicas=1) as stage:
        await stage.passes(1)
        (unseen,) = await stage.names(PODS)
        await stage.delete(PODS, unseen)
        stage.cluster.api.store.compact(stage.cluster.api.store.version)
        await stage.passes(11 * 3600)
        assert await stage.names(PODS) == []
        await stage.passes(14 * 3600)
        assert len(await stage.names(PODS)) == 1
