"""Faults without sockets, on a virtual clock: responses, events and their times."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import orjson
import pytest

from extender.kube.rest.transport import Request, TransportError
from fakeapi import VirtualCluster
from fakeapi.testing.faults import Fault, fault
from tests.fakeapi.clients.faulty_clients import MAPS, Follower, config_map, create, follow, names
from tests.stage import Stage


class FaultStage(Stage):
    """A cluster, and a client whose requests have faults."""

    def __init__(self, cluster: VirtualCluster) -> None:
        super().__init__(cluster)
        self.transport = cluster.local_transport("tester/1")

    def plan(self, *faults: Fault) -> None:
        self.cluster.faults.plan(*faults)

    async def post(self, name: str) -> int:
        return await create(self.transport, name)

    async def listed(self) -> list[str]:
        return await names(self.transport)

    async def follow(self, *faults: Fault, **query: str) -> Follower:
        return await follow(self.cluster, *faults, **query)


@pytest.fixture
async def stage() -> AsyncIterator[FaultStage]:
    async with VirtualCluster(run="none") as cluster:
        yield FaultStage(cluster)


@pytest.mark.parametrize(
    ("code", "reason", "seconds"),
    [
        (429, "TooManyRequests", 1),
        (500, "InternalError", 0),
        (503, "ServiceUnavailable", 3),
        (504, "Timeout", 3),
    ],
)
async def test_an_error_is_a_status_and_nothing_is_done(
    stage: FaultStage, code: int, reason: str, seconds: int
) -> None:
    stage.plan(fault(code, retry_after=seconds).on("create", "configmaps").once())
    body = orjson.dumps({"metadata": {"name": "a"}})
    answer = await stage.transport.request(Request("POST", MAPS, body=body))
    status = orjson.loads(answer.body)
    assert (answer.status, status["kind"], status["code"]) == (code, "Status", code)
    assert status["reason"] == reason
    assert answer.headers.get("retry-after") == (str(seconds) if seconds else None)
    assert status["details"].get("retryAfterSeconds", 0) == seconds
    assert await stage.listed() == []
    assert await stage.post("a") == 201


async def test_a_refusal_has_the_message_of_its_fault(stage: FaultStage) -> None:
    message = 'configmaps "a" is forbidden: exceeded quota: small'
    stage.plan(fault(403, message=message).on("create", "configmaps"))
    body = orjson.dumps({"metadata": {"name": "a"}})
    answer = await stage.transport.request(Request("POST", MAPS, body=body))
    status = orjson.loads(answer.body)
    assert (answer.status, status["reason"], status["message"]) == (403, "Forbidden", message)
    assert "details" not in status


async def test_latency_is_measured_by_the_virtual_clock(stage: FaultStage) -> None:
    stage.plan(fault("latency", seconds=5).on("create"))
    creating = asyncio.create_task(stage.post("a"))
    await stage.passes(4)
    assert (creating.done(), await stage.listed()) == (False, [])
    await stage.passes(1)
    assert (await creating, await stage.listed()) == (201, ["a"])


async def test_latency_after_the_commit_delays_the_answer_only(stage: FaultStage) -> None:
    stage.plan(fault("latency", seconds=5, when="after").on("create"))
    creating = asyncio.create_task(stage.post("a"))
    await stage.passes(4)
    assert (creating.done(), await stage.listed()) == (False, ["a"])
    await stage.passes(1)
    assert await creating == 201


@pytest.mark.parametrize(("when", "there"), [("before", []), ("after", ["a"])])
async def test_a_drop_before_or_after_the_commit_looks_the_same(
    stage: FaultStage, when: str, there: list[str]
) -> None:
    stage.plan(fault("drop", when=when).on("create").once())
    with pytest.raises(TransportError, match="reset"):
        await stage.post("a")
    assert await stage.listed() == there


async def test_an_abrupt_cut_gives_no_answer(stage: FaultStage) -> None:
    stage.plan(fault("cut").on("list").once())
    with pytest.raises(TransportError):
        await stage.listed()
    assert await stage.listed() == []


async def test_a_clean_cut_gives_half_a_document(stage: FaultStage) -> None:
    whole = (await stage.transport.request(Request("GET", MAPS))).body
    stage.plan(fault("cut", end="clean").on("list").once())
    answer = await stage.transport.request(Request("GET", MAPS))
    assert (answer.status, answer.body) == (200, whole[: len(whole) // 2])


async def test_a_request_that_met_a_fault_is_logged_with_it(stage: FaultStage) -> None:
    stage.plan(fault("drop", when="after").on("create").once(), fault(503).on("create").once())
    with pytest.raises(TransportError):
        await stage.post("a")
    assert [await stage.post(name) for name in ("b", "c")] == [503, 201]
    logged = [(record.status, record.fault) for record in stage.cluster.requests]
    assert logged == [(201, "drop after"), (503, "503"), (201, "")]


async def test_other_clients_have_no_faults(stage: FaultStage) -> None:
    stage.plan(fault(500).by("tester/*"))
    assert await stage.post("a") == 500
    assert await create(stage.cluster.local_transport(), "a") == 201


async def test_a_lagging_watch_shows_everything_later_in_order(stage: FaultStage) -> None:
    follower = await stage.follow(fault("lag", seconds=10))
    for name in "abc":
        await stage.post(name)
        await stage.passes(4)
    await stage.passes(20)
    expected = [(10, "ADDED", "a"), (14, "ADDED", "b"), (18, "ADDED", "c")]
    assert follower.seen == expected


async def test_a_bookmark_does_not_overtake_lagging_events(stage: FaultStage) -> None:
    follower = await stage.follow(fault("lag", seconds=10), allowWatchBookmarks="true")
    await stage.passes(55)
    await stage.post("a")
    await stage.passes(30)
    assert follower.seen == [(65, "ADDED", "a"), (70, "BOOKMARK", "")]


async def test_a_lagging_watch_expires_after_its_held_events(stage: FaultStage) -> None:
    follower = await stage.follow(fault("lag", seconds=10))
    stage.load(config_map("a"))
    await stage.passes(5)
    stage.load(config_map("b"))
    stage.cluster.api.store.compact(stage.cluster.api.store.version)
    await stage.passes(20)
    assert follower.seen == [(10, "ADDED", "a"), (15, "ERROR", "Expired")]
    assert follower.end == "ended"


async def test_a_silence_begins_between_two_events_of_one_moment(stage: FaultStage) -> None:
    follower = await stage.follow(fault("silence", seconds=9, after_frames=1))
    stage.load(config_map("a"), config_map("b"))
    await stage.passes(20)
    assert follower.seen == [(0, "ADDED", "a"), (9, "ADDED", "b")]


async def test_a_silent_watch_sends_nothing_until_its_end(stage: FaultStage) -> None:
    asked = {"allowWatchBookmarks": "true", "timeoutSeconds": "200"}
    follower = await stage.follow(fault("silence", after_frames=1), **asked)
    for name in "ab":
        await stage.post(name)
        await stage.passes(0)
    await stage.passes(199)
    assert (follower.seen, follower.end) == ([(0, "ADDED", "a")], "")
    await stage.passes(1)
    assert (follower.seen, follower.end) == ([(0, "ADDED", "a")], "ended")


async def test_a_silence_that_ends_loses_no_events(stage: FaultStage) -> None:
    asked = {"allowWatchBookmarks": "true"}
    follower = await stage.follow(fault("silence", seconds=100), **asked)
    for name in "ab":
        await stage.post(name)
        await stage.passes(40)
    assert follower.seen == []
    await stage.passes(60)
    assert follower.seen[:2] == [(100, "ADDED", "a"), (100, "ADDED", "b")]
    assert {kind for _, kind, _ in follower.seen[2:]} == {"BOOKMARK"}


@pytest.mark.parametrize(("frames", "seen"), [(0, []), (1, ["a"]), (2, ["a", "b"])])
async def test_an_expired_watch_ends_with_410(
    stage: FaultStage, frames: int, seen: list[str]
) -> None:
    follower = await stage.follow(fault("expire", after_frames=frames))
    for name in "abc":
        await stage.post(name)
        await stage.passes(0)
    assert [frame[2] for frame in follower.seen] == [*seen, "Expired"]
    assert (follower.seen[-1][1], follower.end) == ("ERROR", "ended")


@pytest.mark.parametrize(
    ("rule", "seen", "end"),
    [
        (fault("cut"), [], "broken"),
        (fault("cut", after_frames=1), ["a"], "broken"),
        (fault("cut", end="clean", after_frames=1), ["a"], "ended"),
        (fault("drop", when="after"), [], "broken"),
        (fault("drop", when="after", after_frames=2), ["a", "b"], "broken"),
        (fault("drop", when="before"), [], "broken"),
    ],
)
async def test_a_watch_breaks(stage: FaultStage, rule: Fault, seen: list[str], end: str) -> None:
    follower = await stage.follow(rule.on("watch"))
    for name in "abc":
        await stage.post(name)
        await stage.passes(0)
    assert ([frame[2] for frame in follower.seen], follower.end) == (seen, end)


async def test_bookmarks_come_twice(stage: FaultStage) -> None:
    follower = await stage.follow(fault("duplicate"), allowWatchBookmarks="true")
    await stage.passes(61)
    assert follower.seen == [(60, "BOOKMARK", ""), (60, "BOOKMARK", "")]


async def test_a_compaction_expires_the_next_resume(stage: FaultStage) -> None:
    version = str(stage.cluster.api.store.version)
    await stage.post("a")
    follower = await stage.follow(fault("compact").on("watch"), resourceVersion=version)
    assert [frame[1:] for frame in follower.seen] == [("ERROR", "Expired")]


async def test_a_watch_keeps_its_faults_after_the_end_of_the_plan(stage: FaultStage) -> None:
    follower = await stage.follow(fault("lag", seconds=10))
    assert stage.cluster.faults.end()["faults"][0]["injected"] == 1
    await stage.post("a")
    await stage.passes(10)
    assert follower.seen == [(10, "ADDED", "a")]
    assert stage.cluster.faults.report()["faults"] == []


async def test_a_faulty_watch_leaves_no_tasks(stage: FaultStage) -> None:
    before = asyncio.all_tasks()
    follower = await stage.follow(fault("silence", seconds=100), timeoutSeconds="5")
    await stage.passes(6)
    assert follower.end == "ended"
    assert asyncio.all_tasks() == before


async def test_a_fork_goes_on_with_the_plan(stage: FaultStage) -> None:
    stage.plan(fault(500).on("create").times(2))
    assert await create(stage.cluster.local_transport("c"), "a") == 500
    async with stage.cluster.fork() as fork:
        found = [await create(fork.local_transport("c"), name) for name in ("a", "b")]
    assert found == [500, 201]
    assert stage.cluster.faults.injected == (1,)
