"""Faults without sockets, on a clock that the test moves: what a client sees, and when."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import orjson
import pytest

from extender.kube.rest.transport import Request, TransportError
from fakeapi import VirtualCluster
from fakeapi.apiserver.serving.local_transport import LocalTransport
from fakeapi.testing.faults import Fault, fault
from tests.fakeapi.faulty_clients import MAPS, config_map, create, follow, names


@pytest.fixture
async def cluster() -> AsyncIterator[VirtualCluster]:
    async with VirtualCluster(run="none") as cluster:
        yield cluster


@pytest.fixture
def transport(cluster: VirtualCluster) -> LocalTransport:
    return cluster.local_transport("tester/1")


class TestRequests:
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
        self,
        cluster: VirtualCluster,
        transport: LocalTransport,
        code: int,
        reason: str,
        seconds: int,
    ) -> None:
        cluster.faults.plan(fault(code, retry_after=seconds).on("create", "configmaps").once())
        body = orjson.dumps({"metadata": {"name": "a"}})
        answer = await transport.request(Request("POST", MAPS, body=body))
        status = orjson.loads(answer.body)
        assert (answer.status, status["kind"], status["code"]) == (code, "Status", code)
        assert status["reason"] == reason
        assert answer.headers.get("retry-after") == (str(seconds) if seconds else None)
        assert status["details"].get("retryAfterSeconds", 0) == seconds
        assert await names(transport) == []
        assert await create(transport, "a") == 201

    async def test_a_refusal_has_the_words_that_it_was_given(
        self, cluster: VirtualCluster, transport: LocalTransport
    ) -> None:
        message = 'configmaps "a" is forbidden: exceeded quota: small'
        cluster.faults.plan(fault(403, message=message).on("create", "configmaps"))
        body = orjson.dumps({"metadata": {"name": "a"}})
        answer = await transport.request(Request("POST", MAPS, body=body))
        status = orjson.loads(answer.body)
        assert (answer.status, status["reason"], status["message"]) == (403, "Forbidden", message)
        assert "details" not in status

    async def test_latency_passes_on_the_worlds_clock(
        self, cluster: VirtualCluster, transport: LocalTransport
    ) -> None:
        cluster.faults.plan(fault("latency", seconds=5).on("create"))
        creating = asyncio.create_task(create(transport, "a"))
        await cluster.clock.advance(4)
        assert (creating.done(), await names(transport)) == (False, [])
        await cluster.clock.advance(1)
        assert (await creating, await names(transport)) == (201, ["a"])

    async def test_latency_after_the_commit_delays_the_answer_only(
        self, cluster: VirtualCluster, transport: LocalTransport
    ) -> None:
        cluster.faults.plan(fault("latency", seconds=5, when="after").on("create"))
        creating = asyncio.create_task(create(transport, "a"))
        await cluster.clock.advance(4)
        assert (creating.done(), await names(transport)) == (False, ["a"])
        await cluster.clock.advance(1)
        assert await creating == 201

    @pytest.mark.parametrize(("when", "there"), [("before", []), ("after", ["a"])])
    async def test_a_drop_leaves_open_whether_it_happened(
        self, cluster: VirtualCluster, transport: LocalTransport, when: str, there: list[str]
    ) -> None:
        cluster.faults.plan(fault("drop", when=when).on("create").once())
        with pytest.raises(TransportError, match="reset"):
            await create(transport, "a")
        assert await names(transport) == there

    async def test_an_abrupt_cut_gives_no_answer(
        self, cluster: VirtualCluster, transport: LocalTransport
    ) -> None:
        cluster.faults.plan(fault("cut").on("list").once())
        with pytest.raises(TransportError):
            await names(transport)
        assert await names(transport) == []

    async def test_a_clean_cut_gives_half_a_document(
        self, cluster: VirtualCluster, transport: LocalTransport
    ) -> None:
        whole = (await transport.request(Request("GET", MAPS))).body
        cluster.faults.plan(fault("cut", end="clean").on("list").once())
        answer = await transport.request(Request("GET", MAPS))
        assert (answer.status, answer.body) == (200, whole[: len(whole) // 2])

    async def test_a_request_that_met_a_fault_is_logged_with_it(
        self, cluster: VirtualCluster, transport: LocalTransport
    ) -> None:
        cluster.faults.plan(
            fault("drop", when="after").on("create").once(), fault(503).on("create").once()
        )
        with pytest.raises(TransportError):
            await create(transport, "a")
        assert [await create(transport, name) for name in ("b", "c")] == [503, 201]
        logged = [(record.status, record.fault) for record in cluster.requests]
        assert logged == [(201, "drop after"), (503, "503"), (201, "")]

    async def test_other_clients_are_left_alone(
        self, cluster: VirtualCluster, transport: LocalTransport
    ) -> None:
        cluster.faults.plan(fault(500).by("tester/*"))
        assert await create(transport, "a") == 500
        assert await create(cluster.local_transport(), "a") == 201


class TestWatches:
    async def test_a_lagging_watch_shows_everything_later_in_order(
        self, cluster: VirtualCluster, transport: LocalTransport
    ) -> None:
        follower = await follow(cluster, fault("lag", seconds=10))
        for name in "abc":
            await create(transport, name)
            await cluster.clock.advance(4)
        await cluster.clock.advance(20)
        expected = [(10, "ADDED", "a"), (14, "ADDED", "b"), (18, "ADDED", "c")]
        assert follower.seen == expected

    async def test_a_bookmark_does_not_overtake_lagging_events(
        self, cluster: VirtualCluster, transport: LocalTransport
    ) -> None:
        follower = await follow(cluster, fault("lag", seconds=10), allowWatchBookmarks="true")
        await cluster.clock.advance(55)
        await create(transport, "a")
        await cluster.clock.advance(30)
        assert follower.seen == [(65, "ADDED", "a"), (70, "BOOKMARK", "")]

    async def test_a_lagging_watch_expires_after_its_held_events(
        self, cluster: VirtualCluster
    ) -> None:
        follower = await follow(cluster, fault("lag", seconds=10))
        cluster.load([config_map("a")])
        await cluster.clock.advance(5)
        cluster.load([config_map("b")])
        cluster.api.store.compact(cluster.api.store.version)
        await cluster.clock.advance(20)
        assert follower.seen == [(10, "ADDED", "a"), (15, "ERROR", "Expired")]
        assert follower.end == "ended"

    async def test_a_silence_begins_between_two_events_of_one_moment(
        self, cluster: VirtualCluster
    ) -> None:
        follower = await follow(cluster, fault("silence", seconds=9, after_frames=1))
        cluster.load([config_map("a"), config_map("b")])
        await cluster.clock.advance(20)
        assert follower.seen == [(0, "ADDED", "a"), (9, "ADDED", "b")]

    async def test_a_silent_watch_sends_nothing_until_its_end(
        self, cluster: VirtualCluster, transport: LocalTransport
    ) -> None:
        asked = {"allowWatchBookmarks": "true", "timeoutSeconds": "200"}
        follower = await follow(cluster, fault("silence", after_frames=1), **asked)
        for name in "ab":
            await create(transport, name)
            await cluster.clock.advance(0)
        await cluster.clock.advance(199)
        assert (follower.seen, follower.end) == ([(0, "ADDED", "a")], "")
        await cluster.clock.advance(1)
        assert (follower.seen, follower.end) == ([(0, "ADDED", "a")], "ended")

    async def test_a_silence_that_passes_has_lost_nothing(
        self, cluster: VirtualCluster, transport: LocalTransport
    ) -> None:
        asked = {"allowWatchBookmarks": "true"}
        follower = await follow(cluster, fault("silence", seconds=100), **asked)
        for name in "ab":
            await create(transport, name)
            await cluster.clock.advance(40)
        assert follower.seen == []
        await cluster.clock.advance(60)
        assert follower.seen[:2] == [(100, "ADDED", "a"), (100, "ADDED", "b")]
        assert {kind for _, kind, _ in follower.seen[2:]} == {"BOOKMARK"}

    @pytest.mark.parametrize(("frames", "seen"), [(0, []), (1, ["a"]), (2, ["a", "b"])])
    async def test_an_expired_watch_ends_with_410(
        self, cluster: VirtualCluster, transport: LocalTransport, frames: int, seen: list[str]
    ) -> None:
        follower = await follow(cluster, fault("expire", after_frames=frames))
        for name in "abc":
            await create(transport, name)
            await cluster.clock.advance(0)
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
    async def test_a_watch_breaks(
        self,
        cluster: VirtualCluster,
        transport: LocalTransport,
        rule: Fault,
        seen: list[str],
        end: str,
    ) -> None:
        follower = await follow(cluster, rule.on("watch"))
        for name in "abc":
            await create(transport, name)
            await cluster.clock.advance(0)
        assert ([frame[2] for frame in follower.seen], follower.end) == (seen, end)

    async def test_bookmarks_come_twice(self, cluster: VirtualCluster) -> None:
        follower = await follow(cluster, fault("duplicate"), allowWatchBookmarks="true")
        await cluster.clock.advance(61)
        assert follower.seen == [(60, "BOOKMARK", ""), (60, "BOOKMARK", "")]

    async def test_a_compaction_expires_the_next_resume(
        self, cluster: VirtualCluster, transport: LocalTransport
    ) -> None:
        version = str(cluster.api.store.version)
        await create(transport, "a")
        follower = await follow(cluster, fault("compact").on("watch"), resourceVersion=version)
        assert [frame[1:] for frame in follower.seen] == [("ERROR", "Expired")]

    async def test_a_plan_that_has_ended_leaves_a_watch_as_it_found_it(
        self, cluster: VirtualCluster, transport: LocalTransport
    ) -> None:
        follower = await follow(cluster, fault("lag", seconds=10))
        assert cluster.faults.end()["faults"][0]["injected"] == 1
        await create(transport, "a")
        await cluster.clock.advance(10)
        assert follower.seen == [(10, "ADDED", "a")]
        assert cluster.faults.report()["faults"] == []

    async def test_a_faulty_watch_leaves_no_tasks(self, cluster: VirtualCluster) -> None:
        before = asyncio.all_tasks()
        follower = await follow(cluster, fault("silence", seconds=100), timeoutSeconds="5")
        await cluster.clock.advance(6)
        assert follower.end == "ended"
        assert asyncio.all_tasks() == before


async def test_a_fork_goes_on_with_the_plan(cluster: VirtualCluster) -> None:
    cluster.faults.plan(fault(500).on("create").times(2))
    assert await create(cluster.local_transport("c"), "a") == 500
    async with cluster.fork() as fork:
        found = [await create(fork.local_transport("c"), name) for name in ("a", "b")]
    assert found == [500, 201]
    assert cluster.faults.injected == (1,)
