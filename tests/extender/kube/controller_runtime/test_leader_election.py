"""One of several candidates leads; if it stops renewing, another does, and never two at once."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from extender.kube.controller_runtime.leader_election import LeaderElectionConfig, LeaderElector
from extender.kube.controller_runtime.lease_lock import LeaseLock, LeaseSpec
from extender.kube.rest.client import Client
from extender.kube.rest.rate_limited_log import quiet_log
from fakeapi import VirtualCluster
from fakeapi.testing.faults import Fault, fault
from tests.extender.kube.lease_candidates import HERE, LEASE, NAMESPACE, racing, spec_of, the_lease


def held(holder: str, seconds: int = 15) -> dict[str, Any]:
    spec = {"holderIdentity": holder, "leaseDurationSeconds": seconds, "leaseTransitions": 3}
    metadata = {"name": LEASE, "namespace": NAMESPACE, "labels": {"kept": "yes"}}
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": metadata,
        "spec": spec,
    }


async def test_a_candidate_creates_a_missing_lease_and_leads(
    virtual_cluster: VirtualCluster,
) -> None:
    async with racing(virtual_cluster, "a") as race:
        await race.passes(1)
        assert race.leaders == ["a"]
        assert race["a"].working
        assert await spec_of(virtual_cluster) == {
            "holderIdentity": "a",
            "leaseDurationSeconds": 15,
            "acquireTime": "2026-01-01T00:00:00.000000Z",
            "renewTime": "2026-01-01T00:00:00.000000Z",
            "leaseTransitions": 0,
        }


async def test_the_leader_renews_every_two_seconds_with_one_request(
    virtual_cluster: VirtualCluster,
) -> None:
    async with racing(virtual_cluster, "a") as race:
        await race.passes(9)
        spec = await spec_of(virtual_cluster)
        assert spec["acquireTime"] == "2026-01-01T00:00:00.000000Z"
        assert spec["renewTime"] == "2026-01-01T00:00:08.000000Z"
        assert spec["leaseTransitions"] == 0
        asked = [each.method for each in virtual_cluster.requests if each.user_agent == "a"]
        assert asked == ["GET", "POST", "PUT", "PUT", "PUT", "PUT"]


@pytest.mark.parametrize(
    ("spec", "after", "transitions"),
    [
        (held("")["spec"], 0, 4),
        ({}, 0, 1),
        (held("a")["spec"], 0, 3),
        (held("b", 0)["spec"], 0, 4),
        (held("b", 3)["spec"], 3, 4),
        (held("b", 15)["spec"], 15, 4),
        (held("b", 60)["spec"], 60, 4),
    ],
    ids=["released", "empty", "own", "of no duration", "short", "usual", "long"],
)
async def test_a_lease_is_taken_over_when_it_has_not_changed_for_as_long_as_it_says(
    virtual_cluster: VirtualCluster, spec: dict[str, Any], after: float, transitions: int
) -> None:
    virtual_cluster.load([{**held(""), "spec": spec}])
    async with racing(virtual_cluster, "a") as race:
        await race.passes(after - 0.25 if after else 0)
        assert race.leaders == []
        await race.passes(5)
        assert race.leaders == ["a"]
        lease = await the_lease(virtual_cluster)
        assert lease["spec"]["leaseTransitions"] == transitions
        assert lease["metadata"]["labels"] == {"kept": "yes"}


async def test_of_three_the_others_wait_while_one_leads(virtual_cluster: VirtualCluster) -> None:
    async with racing(virtual_cluster, "a", "b", "c") as race:
        leader = await race.until_somebody_leads(1)
        await race.passes(120)
        assert race.leaders == [leader]
        assert sum(each.elections for each in race.candidates) == 1
        assert {each.elector.holder for each in race.candidates} == {leader}


async def test_a_stopping_leader_releases_the_lease_and_another_leads_at_once(
    virtual_cluster: VirtualCluster,
) -> None:
    async with racing(virtual_cluster, "a", "b") as race:
        await race.passes(1)
        assert race.leaders == ["a"]
        await race["a"].stop()
        spec = await spec_of(virtual_cluster)
        assert (spec["holderIdentity"], spec["leaseDurationSeconds"]) == ("", 1)
        assert await race.until_somebody_leads(4.5) == "b"
        assert (await spec_of(virtual_cluster))["leaseTransitions"] == 1


async def test_the_leader_is_reported_by_an_event(virtual_cluster: VirtualCluster) -> None:
    async with racing(virtual_cluster, "a", "b") as race:
        await race.passes(1)
        uid = (await the_lease(virtual_cluster))["metadata"]["uid"]
        await race["a"].stop()
        await race.passes(5)
    told = [change.object for change in virtual_cluster.history("events")]
    assert [each["message"] for each in told] == [
        "a became leader",
        "a stopped leading",
        "b became leader",
        "b stopped leading",
    ]
    assert {(each["reason"], each["type"]) for each in told} == {("LeaderElection", "Normal")}
    assert {each["involvedObject"]["uid"] for each in told} == {uid}


async def test_a_leader_that_stands_still_is_followed_by_another_and_finds_out(
    virtual_cluster: VirtualCluster,
) -> None:
    async with racing(virtual_cluster, "a", "b") as race:
        await race.passes(1)
        race["a"].running.clear()
        await race.passes(10)
        assert race.leaders == []
        assert await race.until_somebody_leads(12) == "b"
        race["a"].running.set()
        await race.passes(30)
        assert race.leaders == ["b"]
        assert (race["a"].losses, race["a"].working) == (1, False)


CUT_OFF = {
    "refused": fault(503),
    "unanswered": fault("latency", seconds=1000),
    "lost": fault("drop"),
    "done and lost": fault("drop", when="after"),
    "done and unanswered": fault("latency", seconds=1000, when="after"),
}


@pytest.mark.parametrize("trouble", CUT_OFF.values(), ids=CUT_OFF)
async def test_a_leader_that_cannot_renew_stops_in_time(
    virtual_cluster: VirtualCluster, trouble: Fault
) -> None:
    async with racing(virtual_cluster, "a", "b") as race:
        await race.passes(3)
        virtual_cluster.faults.plan(trouble.by("a"))
        await race.passes(11)
        assert (race.leaders, race["a"].working) == ([], False)
        await race.passes(25)
        assert race.leaders == ["b"]
        virtual_cluster.faults.end()
        await race.passes(30)
        assert race.leaders == ["b"]


@pytest.mark.parametrize(
    "trouble",
    [
        fault(500).times(3),
        fault(429, retry_after=1).times(3),
        fault("drop").times(3),
        fault("drop", when="after").times(3),
        fault("cut").times(3),
        fault("latency", seconds=4),
        fault("latency", seconds=4, when="after"),
        fault("latency", seconds=8).times(1),
    ],
    ids=str,
)
async def test_a_leader_survives_transient_errors(
    virtual_cluster: VirtualCluster, trouble: Fault
) -> None:
    async with racing(virtual_cluster, "a", "b") as race:
        await race.passes(1)
        virtual_cluster.faults.plan(trouble.by("a"))
        await race.passes(60)
        assert race.leaders == ["a"]
        assert race["a"].losses == 0


async def test_a_leader_counts_from_when_it_asked_and_not_from_when_it_was_answered(
    virtual_cluster: VirtualCluster,
) -> None:
    async with racing(virtual_cluster, "a", "b") as race:
        await race.passes(1)
        virtual_cluster.faults.plan(
            fault("latency", seconds=4, when="after").by("a").once(), fault("drop").by("a").after(1)
        )
        await race.passes(10.75)  # renewed at 2 s, answered at 6 s
        assert race.leaders == ["a"]
        await race.passes(0.25)
        assert race.leaders == []


async def test_jumps_of_wall_clocks_change_nothing(virtual_cluster: VirtualCluster) -> None:
    async with racing(virtual_cluster, "a", "b") as race:
        await race.passes(1)
        for jump in (+3600, -7200, +(10**6)):
            for candidate in race.candidates:
                candidate.clock.jumped_ns = jump * 10**9
                await race.passes(20)
        assert race.leaders == ["a"]
        assert race["a"].losses == race["b"].elections == 0


@pytest.mark.parametrize("rate", [0.7, 1.45])
async def test_clocks_may_go_at_somewhat_different_rates(
    virtual_cluster: VirtualCluster, rate: float
) -> None:
    async with racing(virtual_cluster, "a", "b", rate=rate) as race:
        await race.passes(1)
        virtual_cluster.faults.plan(fault("drop").by("a").between(10, 60))
        await race.passes(60)
        assert race.leaders == ["b"]
        virtual_cluster.faults.plan(fault("drop").by("b").between(10, 60))
        await race.passes(60)
        assert race.leaders == ["a"]


async def test_a_delayed_write_makes_no_candidate_lead(
    virtual_cluster: VirtualCluster,
) -> None:
    async with racing(virtual_cluster, "a", "b") as race:
        await race.passes(1)
        virtual_cluster.faults.plan(fault("latency", seconds=13).by("a").on("update").once())
        race["a"].clock.jumped_ns = 1  # so that it is another write than the last
        await race.passes(2.5)
        virtual_cluster.faults.plan(fault("drop").by("a"))
        await race.passes(12)
        assert race.leaders == []
        assert (await spec_of(virtual_cluster))["renewTime"].endswith("00:02.000000Z")
        await race.passes(30)
        assert race.leaders == ["b"]


async def test_a_deleted_lease_is_created_again(virtual_cluster: VirtualCluster) -> None:
    async with racing(virtual_cluster, "a") as race:
        await race.passes(1)
        await virtual_cluster.client.delete(HERE)
        await race.passes(3)
        assert race.leaders == ["a"]
        assert (await spec_of(virtual_cluster))["holderIdentity"] == "a"


async def test_an_answer_that_is_no_lease_is_survived(virtual_cluster: VirtualCluster) -> None:
    virtual_cluster.load([held("b", 3)])
    virtual_cluster.faults.plan(fault("cut", end="clean").by("a").times(2))
    async with racing(virtual_cluster, "a") as race:
        await race.passes(20)
        assert race.leaders == ["a"]


@pytest.mark.parametrize(
    ("terms", "wrong"),
    [
        ((10, 10, 2), "lease_seconds must be more than renew_deadline"),
        ((15, 2.4, 2), "renew_deadline must be more than 1.2"),
        ((15, 10, 0), "renew_deadline must be more than 1.2"),
    ],
)
def test_terms_that_cannot_work_are_refused(terms: tuple[Any, ...], wrong: str) -> None:
    with pytest.raises(ValueError, match=wrong):
        LeaderElectionConfig(*terms)


async def test_there_is_no_leader_before_an_election(virtual_cluster: VirtualCluster) -> None:
    lock = LeaseLock(Client(virtual_cluster.local_transport()), NAMESPACE, LEASE)
    elector = LeaderElector(lock, "a", virtual_cluster.clock, Random(1), log=quiet_log())
    assert (elector.is_leader, elector.holder) == (False, "")
    assert await lock.read() is None
    assert LeaseSpec().holder == ""
