"""The scheduler from the command line, in a process, and over the management API."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from random import Random
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from extender.config.component_config import Config
from extender.config.strict_decoding import ConfigError
from extender.kube.rest.clock import SystemClock
from extender.server.process import run_server
from fakeapi import FakeCluster
from fakeapi.cli.serve_command import serve_fakeapi
from fakeapi.controlplane.components import DEFAULT_RUN
from tests.commands import reprieve, written
from tests.fakeapi.controlplane.scheduler.stages import node, pod

ERRORS: list[tuple[dict[str, Any], str]] = [
    (
        {"run": "gc", "extender": "http://127.0.0.1:1"},
        "--extender: no scheduler in --run gc; expected 'scheduler' in it, or 'all'",
    ),
    (
        {"upstream": "1.34"},
        f"--upstream: no scheduler in --run {DEFAULT_RUN}; expected 'scheduler' in it, or 'all'",
    ),
    (
        {"feature_gates": {"GenericWorkload": True}},
        f"--feature-gates: no scheduler in --run {DEFAULT_RUN}; expected 'scheduler' in it, or",
    ),
    (
        {"run": "scheduler", "extender": "127.0.0.1:8888"},
        "--extender: '127.0.0.1:8888'; expected http://HOST:PORT, optionally with a path",
    ),
    (
        {"run": "scheduler", "upstream": "1.12"},
        "--upstream: unknown Kubernetes release '1.12'; expected one of 1.30, 1.31",
    ),
    (
        {"run": "scheduler", "scheduler_config": "/nowhere"},
        "--scheduler-config: /nowhere: No such file or directory",
    ),
]


@pytest.mark.parametrize(("options", "problem"), ERRORS)
def test_errors_are_one_line(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        serve_fakeapi(port=0, **options)
    assert str(caught.value).startswith(problem)
    assert "\n" not in str(caught.value)


@pytest.mark.slow
async def test_an_invalid_configuration_is_named(tmp_path: Path) -> None:
    path = written(tmp_path, "scheduler.json", {"kind": "KubeSchedulerConfiguration", "x": 1})
    done = await reprieve("fakeapi", "--run", "scheduler", "--scheduler-config", path)
    problem = f"--scheduler-config: {path}: (the document): object contains unknown field x"
    assert (done.code, done.err) == (2, f"reprieve: {problem}\n")


@pytest.fixture
async def extender() -> Any:
    """Serve an extender that accepts every node."""

    async def handle(request: web.Request) -> web.Response:
        asked = await request.json()
        return web.json_response({"NodeNames": asked["NodeNames"]})

    app = web.Application()
    app.router.add_post("/{verb}", handle)
    async with TestServer(app) as server:
        yield str(server.make_url("")).rstrip("/")


async def trace_of(session: aiohttp.ClientSession, url: str, method: str = "GET") -> list[Any]:
    async with session.request(method, f"{url}/_fakeapi/scheduler/trace") as answer:
        assert answer.status == 200
        exchanges: list[Any] = (await answer.json())["exchanges"]
        return exchanges


async def test_the_trace_is_read_and_cleared_over_http(extender: str) -> None:
    async with (
        aiohttp.ClientSession() as session,
        FakeCluster(run="scheduler", extender=extender) as cluster,
    ):
        assert await trace_of(session, cluster.url) == []
        cluster.load([node("a"), pod("p")])
        await cluster.scheduler.trace.reached(1)
        [exchange] = await trace_of(session, cluster.url, "DELETE")
        assert await trace_of(session, cluster.url) == []
    assert {key: exchange[key] for key in ("pod", "extender", "verb", "status", "verdict")} == {
        "pod": "default/p",
        "extender": extender,
        "verb": "filter",
        "status": 200,
        "verdict": "accepted",
    }
    assert exchange["request"]["NodeNames"] == exchange["answer"]["NodeNames"] == ["a"]
    async with aiohttp.ClientSession() as session, FakeCluster(run="none") as cluster:
        assert await trace_of(session, cluster.url) == []
        async with session.post(f"{cluster.url}/_fakeapi/scheduler/trace") as answer:
            assert answer.status == 405
        async with session.get(f"{cluster.url}/_fakeapi/scheduler") as answer:
            assert (answer.status, "scheduler/trace" in await answer.text()) == (404, True)


async def test_a_cluster_in_a_process_calls_its_extender(extender: str, tmp_path: Path) -> None:
    entry = {"urlPrefix": extender, "filterVerb": "sift", "nodeCacheCapable": True}
    path = tmp_path / "scheduler.yaml"
    path.write_text(json.dumps({"extenders": [entry]}))
    made = FakeCluster.as_process(run="scheduler", scheduler=path, upstream="1.34")

    def schedule() -> list[dict[str, Any]]:
        with made as cluster:
            cluster.load([node("a"), pod("p")])
            while not cluster.exchanges:
                cluster.advance(1)
            return list(cluster.exchanges)

    [exchange] = await asyncio.to_thread(schedule)
    assert (exchange["verb"], exchange["url"]) == ("sift", f"{extender}/sift")


@pytest.mark.slow
async def test_reprieve_serves_a_cluster_whose_scheduler_calls_it(unused_tcp_port: int) -> None:
    config, clock = Config(port=unused_tcp_port), SystemClock()
    url = f"http://127.0.0.1:{unused_tcp_port}"
    async with FakeCluster(run="scheduler", extender=url) as cluster:
        transport = cluster.local_transport()
        async with run_server(config, transport, clock, Random(1)) as served:
            await served.wait_synced()
            cluster.load([node("a"), pod("low", "2", on="a", priority=1)])
            cluster.load([pod("vip", "2", priority=9)])
            await cluster.scheduler.trace.reached(2)
        verbs = {each.verb: each.verdict.value for each in cluster.scheduler.trace}
    assert verbs == {"preempt": "accepted", "filter": "accepted"}
