"""A leader's work and Lease when it ends, is cancelled, or loses the Lease."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from extender.kube.controller_runtime.leader_election import LeadershipLostError
from extender.kube.rest.resources import LEASES
from fakeapi.testing.faults import fault
from tests.extender.kube.lease_candidates import LEASE, NAMESPACE, Candidate, Election, election


async def clean_up_for_a_minute(stage: Election, ended: list[float]) -> None:
    try:
        await asyncio.Event().wait()
    finally:
        await stage.cluster.clock.sleep(60)
        ended.append(stage.cluster.clock.monotonic())


async def test_the_lease_is_released_after_the_work_has_ended() -> None:
    ended: list[float] = []
    async with election() as stage:
        candidate = Candidate(stage.cluster, "a")
        work = partial(clean_up_for_a_minute, stage, ended)
        running = asyncio.create_task(candidate.elector.run(work))
        await stage.passes(1)
        running.cancel()
        await stage.passes(59)
        assert (candidate.leading, await stage.holder()) == (True, "a")
        await stage.passes(2)
        assert (ended, running.cancelled(), candidate.leading) == ([61], True, False)
        assert await stage.holder() == ""


@pytest.mark.parametrize("turns", range(0, 40, 3))
async def test_a_cancelled_candidate_does_not_lead(turns: int) -> None:
    async with election() as stage:
        candidate, other = (Candidate(stage.cluster, name) for name in "ab")
        candidate.start()
        for _ in range(turns):
            await asyncio.sleep(0)
        await candidate.stop()
        assert (candidate.leading, candidate.working) == (False, False)
        other.start()
        await stage.passes(20)
        assert (candidate.leading, other.leading) == (False, True)
        await other.stop()


async def test_a_leader_cancelled_twice_lets_the_lease_expire() -> None:
    async with election("b") as stage:
        await stage["b"].stop()
        candidate = Candidate(stage.cluster, "a")
        work = partial(clean_up_for_a_minute, stage, [])
        running = asyncio.create_task(candidate.elector.run(work))
        await stage.passes(5)
        for _ in range(2):
            running.cancel()
            await stage.passes(5)
        assert (running.cancelled(), candidate.leading) == (True, False)
        assert await stage.holder() == "a"
        stage["b"].start()
        assert await stage.leaders_after(20) == ["b"]
        await stage.passes(60)


async def test_the_lease_is_released_when_the_work_ends() -> None:
    async with election() as stage:
        work = partial(stage.cluster.clock.sleep, 30)
        running = asyncio.create_task(Candidate(stage.cluster, "a").elector.run(work))
        await stage.passes(31)
        await running
        assert await stage.holder() == ""


async def test_an_exception_of_the_work_is_raised_after_the_lease_is_released() -> None:
    async def work() -> None:
        raise ZeroDivisionError

    async with election() as stage:
        with pytest.raises(ZeroDivisionError):
            await Candidate(stage.cluster, "a").elector.run(work)
        assert await stage.holder() == ""


async def test_a_lease_of_another_holder_is_not_released() -> None:
    async with election() as stage:

        async def lose_the_lease() -> None:
            await stage.patch(LEASES, LEASE, {"spec": {"holderIdentity": "b"}}, NAMESPACE)
            await asyncio.Event().wait()

        running = asyncio.create_task(Candidate(stage.cluster, "a").elector.run(lose_the_lease))
        await stage.passes(3)
        with pytest.raises(LeadershipLostError, match="a no longer holds kube-system/the-lease"):
            await running
        assert await stage.holder() == "b"


async def test_a_late_renewal_does_not_prevent_the_release_of_the_lease() -> None:
    async with election("a") as stage:
        await stage.passes(1)
        slow = fault("latency", seconds=2).on("update").once()
        less_slow = fault("latency", seconds=1).on("update").after(1).once()
        stage.plan_faults(slow, less_slow, agent="a")
        await stage.passes(1.25)  # a renewal is under way
        stage["a"].cancel()
        await stage.passes(5)
        assert await stage.holder() == ""
