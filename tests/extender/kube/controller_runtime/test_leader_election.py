"""One of several candidates leads; if it stops renewing, another does, and never two at once."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from extender.kube.controller_runtime.leader_election import LeaderElectionConfig, LeaderElector
from extender.kube.controller_runtime.lease_lock import LeaseLock, LeaseSpec
from extender.kube.rest.rate_limited_log import quiet_log
from extender.kube.rest.resources import LEASES
from fakeapi import VirtualCluster
from fakeapi.testing.faults import Fault, fault
from tests.builders import Document, manifest
from tests.extender.kube.lease_candidates import LEASE, NAMESPACE, election


def held(holder: str, seconds: int = 15, spec: Document | None = None) -> Document:
    held_spec = {"holderIdentity": holder, "leaseDurationSeconds": seconds, "leaseTransitions": 3}
    return manifest(
        "Lease",
        LEASE,
        namespace=NAMESPACE,
        metadata={"labels": {"kept": "yes"}},
        spec=held_spec if spec is None else spec,
    )


async def test_a_candidate_creates_a_missing_lease_and_leads() -> None:
    async with election("a") as stage:
        assert await stage.leaders_after(1) == ["a"]
        assert stage["a"].working
        assert await stage.lease_spec() == {
            "holderIdentity": "a",
            "leaseDurationSeconds": 15,
            "acquireTime": "2026-01-01T00:00:00.000000Z",
            "renewTime": "2026-01-01T00:00:00.000000Z",
            "leaseTransitions": 0,
        }


async def test_the_leader_renews_every_two_seconds_with_one_request() -> None:
    async with election("a") as stage:
        await stage.passes(9)
        spec = await stage.lease_spec()
        assert spec["acquireTime"] == "2026-01-01T00:00:00.000000Z"
        assert spec["renewTime"] == "2026-01-01T00:00:08.000000Z"
        assert spec["leaseTransitions"] == 0
        methods = [each.method for each in stage.cluster.requests if each.user_agent == "a"]
        assert methods == ["GET", "POST", "PUT", "PUT", "PUT", "PUT"]


@pytest.mark.parametrize(
    ("lease", "after", "transitions"),
    [
        (held(""), 0, 4),
        (held("", spec={}), 0, 1),
        (held("a"), 0, 3),
        (held("b", 0), 0, 4),
        (held("b", 3), 3, 4),
        (held("b", 15), 15, 4),
        (held("b", 60), 60, 4),
    ],
    ids=["released", "empty", "own", "without a duration", "short", "usual", "long"],
)
async def test_a_lease_is_taken_over_after_its_duration_without_a_change(
    lease: Document, after: float, transitions: int
) -> None:
    async with election("a", lease=lease) as stage:
        assert await stage.leaders_after(after - 0.25 if after else 0) == []
        assert await stage.leaders_after(5) == ["a"]
        found = await stage.lease()
        assert found["spec"]["leaseTransitions"] == transitions
        assert found["metadata"]["labels"] == {"kept": "yes"}


async def test_one_of_three_leads_while_the_others_wait() -> None:
    async with election("a", "b", "c") as stage:
        leader = await stage.wait_for_leader(1)
        assert await stage.leaders_after(120) == [leader]
        assert sum(each.elections for each in stage.candidates) == 1
        assert {each.elector.holder for each in stage.candidates} == {leader}


async def test_a_stopping_leader_releases_the_lease_and_another_leads_at_once() -> None:
    async with election("a", "b") as stage:
        assert await stage.leaders_after(1) == ["a"]
        await stage["a"].stop()
        spec = await stage.lease_spec()
        assert (spec["holderIdentity"], spec["leaseDurationSeconds"]) == ("", 1)
        assert await stage.wait_for_leader(4.5) == "b"
        assert (await stage.lease_spec())["leaseTransitions"] == 1


async def test_the_leader_is_reported_by_an_event() -> None:
    async with election("a", "b") as stage:
        await stage.passes(1)
        uid = (await stage.lease())["metadata"]["uid"]
        await stage["a"].stop()
        await stage.passes(5)
    events = [change.object for change in stage.cluster.history("events")]
    assert [each["message"] for each in events] == [
        "a became leader",
        "a stopped leading",
        "b became leader",
        "b stopped leading",
    ]
    assert {(each["reason"], each["type"]) for each in events} == {("LeaderElection", "Normal")}
    assert {each["involvedObject"]["uid"] for each in events} == {uid}


async def test_a_paused_leader_is_replaced_and_notices_it() -> None:
    async with election("a", "b") as stage:
        await stage.passes(1)
        stage["a"].running.clear()
        assert await stage.leaders_after(10) == []
        assert await stage.wait_for_leader(12) == "b"
        stage["a"].running.set()
        assert await stage.leaders_after(30) == ["b"]
        assert (stage["a"].losses, stage["a"].working) == (1, False)


CUT_OFF = {
    "refused": fault(503),
    "unanswered": fault("latency", seconds=1000),
    "lost": fault("drop"),
    "done and lost": fault("drop", when="after"),
    "done and unanswered": fault("latency", seconds=1000, when="after"),
}


@pytest.mark.parametrize("error", CUT_OFF.values(), ids=CUT_OFF)
async def test_a_leader_that_cannot_renew_stops_in_time(error: Fault) -> None:
    async with election("a", "b") as stage:
        await stage.passes(3)
        stage.plan_faults(error, agent="a")
        await stage.passes(11)
        assert (stage.leaders, stage["a"].working) == ([], False)
        assert await stage.leaders_after(25) == ["b"]
        stage.cluster.faults.end()
        assert await stage.leaders_after(30) == ["b"]


@pytest.mark.parametrize(
    "error",
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
async def test_a_leader_survives_transient_errors(error: Fault) -> None:
    async with election("a", "b") as stage:
        await stage.passes(1)
        stage.plan_faults(error, agent="a")
        assert await stage.leaders_after(60) == ["a"]
        assert stage["a"].losses == 0


async def test_a_renewal_counts_from_the_time_of_the_request() -> None:
    async with election("a", "b") as stage:
        await stage.passes(1)
        late = fault("latency", seconds=4, when="after").once()
        stage.plan_faults(late, fault("drop").after(1), agent="a")
        assert await stage.leaders_after(10.75) == ["a"]  # renewed at 2 s, answered at 6 s
        assert await stage.leaders_after(0.25) == []


async def test_jumps_of_wall_clocks_change_nothing() -> None:
    async with election("a", "b") as stage:
        await stage.passes(1)
        for jump in (+3600, -7200, +(10**6)):
            for candidate in stage.candidates:
                candidate.clock.jumped_ns = jump * 10**9
                assert await stage.leaders_after(20) == ["a"]
        assert stage["a"].losses == stage["b"].elections == 0


@pytest.mark.parametrize("rate", [0.7, 1.45])
async def test_clocks_may_run_at_somewhat_different_rates(rate: float) -> None:
    async with election("a", "b", rate=rate) as stage:
        await stage.passes(1)
        stage.plan_faults(fault("drop").between(10, 60), agent="a")
        assert await stage.leaders_after(60) == ["b"]
        stage.plan_faults(fault("drop").between(10, 60), agent="b")
        assert await stage.leaders_after(60) == ["a"]


async def test_a_delayed_write_makes_no_candidate_lead() -> None:
    async with election("a", "b") as stage:
        await stage.passes(1)
        stage.plan_faults(fault("latency", seconds=13).on("update").once(), agent="a")
        stage["a"].clock.jumped_ns = 1  # so that it is another write than the last
        await stage.passes(2.5)
        stage.plan_faults(fault("drop"), agent="a")
        assert await stage.leaders_after(12) == []
        assert (await stage.lease_spec())["renewTime"].endswith("00:02.000000Z")
        assert await stage.leaders_after(30) == ["b"]


async def test_a_deleted_lease_is_created_again() -> None:
    async with election("a") as stage:
        await stage.passes(1)
        await stage.delete(LEASES, LEASE, namespace=NAMESPACE)
        assert await stage.leaders_after(3) == ["a"]
        assert (await stage.lease_spec())["holderIdentity"] == "a"


async def test_an_invalid_response_is_survived() -> None:
    truncated = fault("cut", end="clean").times(2)
    async with election("a", lease=held("b", 3), faults=(truncated,)) as stage:
        assert await stage.leaders_after(20) == ["a"]


@pytest.mark.parametrize(
    ("terms", "error"),
    [
        ((10, 10, 2), "lease_seconds must be more than renew_deadline"),
        ((15, 2.4, 2), "renew_deadline must be more than 1.2"),
        ((15, 10, 0), "renew_deadline must be more than 1.2"),
    ],
)
def test_inconsistent_terms_are_refused(terms: tuple[Any, ...], error: str) -> None:
    with pytest.raises(ValueError, match=error):
        LeaderElectionConfig(*terms)


async def test_there_is_no_leader_before_an_election() -> None:
    async with VirtualCluster() as cluster:
        lock = LeaseLock(cluster.client, NAMESPACE, LEASE)
        elector = LeaderElector(lock, "a", cluster.clock, Random(1), log=quiet_log())
        assert (elector.is_leader, elector.holder) == (False, "")
        assert await lock.read() is None
    assert LeaseSpec().holder == ""
