"""Remote extenders: a replay waits until they are ready, and during their calls."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from fakeapi import FakeCluster
from fakeapi.apiserver.serving.virtual_clock import VirtualClock
from fakeapi.controlplane.components import read_scheduler_options, remote_extender_urls
from fakeapi.controlplane.scheduler.options import Call, Reply
from fakeapi.replay.report import Report
from fakeapi.testing.extenders import (
    ExtenderNotReadyError,
    pause_during_calls,
    wait_extenders_ready,
)
from tests.extender.recording.recording_lines import a_recording, line
from tests.fakeapi.controlplane.scheduler.stages import X
from tests.fakeapi.replay.test_attached_schedulers import WITH_NODES, full_but_one, urgent


@asynccontextmanager
async def answering(*statuses: int) -> AsyncIterator[tuple[str, list[str]]]:
    """Serve these statuses in turn, the last one repeatedly; yield the URL and the requests."""
    left: Iterator[int] = iter(statuses[:-1])
    requests: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        requests.append(request.path)
        return web.Response(status=next(left, statuses[-1]))

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0][:2]
    try:
        yield f"http://{host}:{port}/extender", requests
    finally:
        await runner.cleanup()


async def test_an_extender_that_is_not_ready_is_polled() -> None:
    async with answering(503, 200) as (url, requests):
        await wait_extenders_ready((url,))
    assert requests == ["/readyz", "/readyz"]


@pytest.mark.parametrize("status", [200, 404, 405, 500])
async def test_an_extender_without_readyz_is_ready(status: int) -> None:
    async with answering(status) as (url, requests):
        await wait_extenders_ready((url,))
    assert requests == ["/readyz"]


async def test_an_extender_that_stays_unready_is_an_error() -> None:
    async with answering(503) as (url, _):
        with pytest.raises(ExtenderNotReadyError, match="is not ready, for 0 s"):
            await wait_extenders_ready((url,), timeout_seconds=0)


async def test_an_unreachable_extender_is_an_error() -> None:
    async with answering(200) as (url, _):
        pass
    with pytest.raises(ExtenderNotReadyError, match="does not respond"):
        await wait_extenders_ready((url,), timeout_seconds=0)


@pytest.mark.slow
async def test_the_clock_stops_during_a_call() -> None:
    """At this factor a real second is a quarter of an hour."""
    recording = a_recording(*full_but_one(), line(1, "ADDED", urgent()), first=WITH_NODES)
    factors: list[float] = []

    async def ask(call: Call) -> Reply:
        factors.append(cluster.clock.factor)
        return Reply.of({"NodeNames": call.document()["NodeNames"]})

    clock = VirtualClock(recording.header.start_ns)
    options: dict[str, Any] = {"extenders": {X: ask}, "waiting": pause_during_calls(clock)}
    async with FakeCluster(run="scheduler", clock=clock, **options) as cluster:
        clock.run(1000)
        report: Report = await cluster.replay(recording)
    assert set(factors) == {0}
    assert clock.factor == 1000
    assert report.scheduling is not None
    assert report.scheduling.placed.replayed == 1


def test_external_extenders_are_those_without_a_replacement() -> None:
    document = {"extenders": [{"urlPrefix": "http://there/", "filterVerb": "filter"}]}
    options = read_scheduler_options(document, "http://here", {X: lambda _: Reply(200, b"")}, "")
    assert set(remote_extender_urls(options)) == {"http://there", "http://here"}
    assert remote_extender_urls(read_scheduler_options("", "", None, "")) == ()
