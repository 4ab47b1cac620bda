"""A leader's work and Lease when it ends, is cancelled, or loses the Lease."""

from __future__ import annotations

import asyncio

import orjson
import pytest

from extender.kube.controller_runtime.leader_election import LeadershipLostError
from extender.kube.rest.client import PatchType
from fakeapi import VirtualCluster
from fakeapi.testing.faults import fault
from tests.extender.kube.lease_candidates import HERE, Candidate, racing, spec_of


async def test_the_work_has_ended_before_the_lease_is_given_back(
    virtual_cluster: VirtualCluster,
) -> None:
    clock = virtual_cluster.clock
    ended: list[float] = []

    async def tidies_up_for_a_minute() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await clock.sleep(60)
            ended.append(clock.monotonic())

    candidate = Candidate(virtual_cluster, "a")
    running = asyncio.create_task(candidate.elector.run(tidies_up_for_a_minute))
    await clock.advance(1)
    running.cancel()
    await clock.advance(59)
    assert (candidate.leading, (await spec_of(virtual_cluster))["holderIdentity"]) == (True, "a")
    await clock.advance(2)
    assert (ended, running.cancelled(), candidate.leading) == ([61], True, False)
    assert (await spec_of(virtual_cluster))["holderIdentity"] == ""


@pytest.mark.parametrize("turns", range(0, 40, 3))
async def test_a_cancelled_candidate_does_not_lead(
    virtual_cluster: VirtualCluster, turns: int
) -> None:
    candidate = Candidate(virtual_cluster, "a")
    candidate.start()
    for _ in range(turns):
        await asyncio.sleep(0)
    await candidate.stop()
    assert (candidate.leading, candidate.working) == (False, False)
    other = Candidate(virtual_cluster, "b")
    other.start()
    await virtual_cluster.clock.advance(20)
    assert (candidate.leading, other.leading) == (False, True)
    await other.stop()


async def test_a_leader_cancelled_twice_lets_the_lease_expire(
    virtual_cluster: VirtualCluster,
) -> None:
    clock = virtual_cluster.clock

    async def tidies_up_for_a_minute() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await clock.sleep(60)

    async with racing(virtual_cluster, "b") as race:
        await race["b"].stop()
        candidate = Candidate(virtual_cluster, "a")
        running = asyncio.create_task(candidate.elector.run(tidies_up_for_a_minute))
        await clock.advance(5)
        for _ in range(2):
            running.cancel()
            await clock.advance(5)
        assert (running.cancelled(), candidate.leading) == (True, False)
        assert (await spec_of(virtual_cluster))["holderIdentity"] == "a"
        race["b"].start()
        await race.passes(20)
        assert race.leaders == ["b"]
        await clock.advance(60)


async def test_work_that_ends_gives_the_lease_back(virtual_cluster: VirtualCluster) -> None:
    async def work() -> None:
        await virtual_cluster.clock.sleep(30)

    candidate = Candidate(virtual_cluster, "a")
    running = asyncio.create_task(candidate.elector.run(work))
    await virtual_cluster.clock.advance(31)
    await running
    assert (await spec_of(virtual_cluster))["holderIdentity"] == ""


async def test_an_exception_of_the_work_is_raised_after_the_lease_is_released(
    virtual_cluster: VirtualCluster,
) -> None:
    async def work() -> None:
        raise ZeroDivisionError

    candidate = Candidate(virtual_cluster, "a")
    with pytest.raises(ZeroDivisionError):
        await candidate.elector.run(work)
    assert (await spec_of(virtual_cluster))["holderIdentity"] == ""


async def test_a_lease_that_is_another_s_is_not_given_back(virtual_cluster: VirtualCluster) -> None:
    candidate = Candidate(virtual_cluster, "a")

    async def is_robbed() -> None:
        robbed = orjson.dumps({"spec": {"holderIdentity": "b"}})
        await virtual_cluster.client.patch(HERE, PatchType.MERGE, robbed, bytes)
        await asyncio.Event().wait()

    running = asyncio.create_task(candidate.elector.run(is_robbed))
    await virtual_cluster.clock.advance(3)
    with pytest.raises(LeadershipLostError, match="a no longer holds kube-system/the-lease"):
        await running
    assert (await spec_of(virtual_cluster))["holderIdentity"] == "b"


async def test_a_renewal_that_comes_through_late_does_not_keep_the_lease_from_being_given_back(
    virtual_cluster: VirtualCluster,
) -> None:
    async with racing(virtual_cluster, "a") as race:
        await race.passes(1)
        virtual_cluster.faults.plan(
            fault("latency", seconds=2).by("a").on("update").once(),
            fault("latency", seconds=1).by("a").on("update").after(1).once(),
        )
        await race.passes(1.25)  # a renewal is under way
        race["a"].order_to_stop()
        await race.passes(5)
        assert (await spec_of(virtual_cluster))["holderIdentity"] == ""
