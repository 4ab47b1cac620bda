"""Several processes that serve one address answer alike, and end together."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Final

import aiohttp
import pytest

from fakeapi import FakeCluster
from tests.builders import node_json, pod_json
from tests.commands import reprieve, serving, start, wait_ready, written
from tests.extender.conftest import filter_body, preempt_body

URGENT: Final = pod_json("urgent", cpu="1", priority=1000)
SMALL: Final = pod_json("small", cpu="1", priority=10)
OBJECTS: Final = (
    node_json("node-1", cpu="1"),
    pod_json("web", cpu="1", on="node-1", priority=1),
    URGENT,
    SMALL,
)
CONNECTIONS: Final = 6
DEADLINES: Final = {"filter": 60_000, "preempt": 60_000}


class Clients:
    """Clients of an extender, each with a connection of its own."""

    def __init__(self, url: str, sessions: list[aiohttp.ClientSession]) -> None:
        self.url = url
        self.sessions = sessions

    async def call(self, verb: str, body: bytes) -> tuple[list[Any], set[str]]:
        """Return the answer to each client, and the prefixes of the IDs of these calls."""
        found = await asyncio.gather(*(self._call(each, verb, body) for each in self.sessions))
        return [answer for answer, _ in found], {prefix for _, prefix in found}

    async def get(self, path: str) -> list[str]:
        """Return what each client gets."""
        return [await (await each.get(f"{self.url}{path}")).text() for each in self.sessions]

    async def _call(
        self, session: aiohttp.ClientSession, verb: str, body: bytes
    ) -> tuple[Any, str]:
        async with session.post(f"{self.url}/{verb}", data=body) as response:
            assert response.status == 200, await response.text()
            return await response.json(), response.headers["X-Request-Id"].rpartition("-")[0]


@asynccontextmanager
async def clients(url: str) -> AsyncIterator[Clients]:
    """Connect clients to all processes of an extender, as far as new connections reach them."""
    async with AsyncExitStack() as stack:
        sessions = [
            await stack.enter_async_context(aiohttp.ClientSession()) for _ in range(CONNECTIONS)
        ]
        yield Clients(url, sessions)


@pytest.fixture
def config(tmp_path: Path) -> str:
    """Return a configuration whose deadlines a busy machine keeps."""
    return written(tmp_path, "c.yaml", {"port": 0, "deadlineMilliseconds": DEADLINES})


@asynccontextmanager
async def cluster() -> AsyncIterator[FakeCluster]:
    async with FakeCluster(run="none") as found:
        found.load(OBJECTS)
        yield found


async def test_two_processes_answer_alike_and_count_together(config: str) -> None:
    flags = "--workers", "2", "--config", config
    async with cluster() as api, serving("serve", "--server", api.url, *flags) as url:
        await wait_ready(url)
        async with clients(url) as connected:
            before, _ = await connected.call("filter", filter_body(SMALL, "node-1"))
            offer = preempt_body(URGENT, node_1=["web"])
            chosen, deciding = await connected.call("preempt", offer)
            later, _ = await connected.call("filter", filter_body(SMALL, "node-1"))
            counts = await connected.get("/metrics")
            decisions = await connected.get("/decisions?limit=3")
            pages = await connected.get("/readyz")
    assert [each["FailedNodes"] for each in before] == [{"node-1": "Insufficient cpu"}] * 6
    assert [list(each["NodeNameToMetaVictims"]) for each in chosen] == [["node-1"]] * 6
    assert len({json.dumps(each, sort_keys=True) for each in later}) == 1
    assert (
        len(deciding) <= 2
    )  # the numbers of the primary, for its own calls and for forwarded ones
    for verb, count in (("filter", 12.0), ("preempt", 6.0)):
        line = f'reprieve_requests_total{{status="200",verb="{verb}"}} {count}'
        assert [line in each.splitlines() for each in counts] == [True] * 6
    assert [len(json.loads(each)["decisions"]) for each in decisions] == [3] * 6
    assert pages == ["ok\n"] * 6


async def test_an_assumed_preemption_is_known_to_all_processes(config: str) -> None:
    flags = "--workers", "3", "--config", config
    async with cluster() as api, serving("serve", "--server", api.url, *flags) as url:
        await wait_ready(url)
        answering: set[str] = set()
        async with asyncio.timeout(30), clients(url) as connected:
            await connected.call("preempt", preempt_body(URGENT, node_1=["web"]))
        # New connections, until all processes have answered.
        while len(answering) < 3:
            async with asyncio.timeout(30), clients(url) as connected:
                answers, found = await connected.call("filter", filter_body(URGENT, "node-1"))
            answering |= found
            # Without the victim, which counts as leaving, the preemptor fits.
            assert [each["NodeNames"] for each in answers] == [["node-1"]] * CONNECTIONS


def running_processes() -> set[int]:
    return {int(each.name) for each in Path("/proc").iterdir() if each.name.isdigit()}


def children(process: Process) -> list[int]:
    listed = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
    return [int(each) for each in listed.split()]


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="the workers are found in /proc")
async def test_the_end_of_a_worker_ends_all_processes_with_one_line() -> None:
    async with cluster() as api:
        process = await start("serve", "--server", api.url, "--workers", "3", "--port", "0")
        assert process.stdout is not None
        url = (await process.stdout.readline()).decode().split()[-1]
        await wait_ready(url)
        workers = children(process)
        os.kill(workers[0], signal.SIGKILL)
        async with asyncio.timeout(30):
            _, errors = await process.communicate()
    assert process.returncode == 1
    assert errors.decode().splitlines()[-1] == (
        f"reprieve: worker 1 (process {workers[0]}) has ended"
    )
    assert not set(workers) & running_processes()


@pytest.mark.parametrize(
    ("flags", "problem"),
    [
        (
            ("--ledger", "l.db"),
            "--workers: 2; expected 1 with a ledger, which has one writer",
        ),
        (("--embedded", "demo"), "--embedded serves from one process; expected no workers"),
    ],
)
async def test_what_needs_one_process_is_refused(flags: tuple[str, ...], problem: str) -> None:
    done = await reprieve("serve", "--workers", "2", *flags)
    assert (done.code, done.out, done.err) == (2, "", f"reprieve: {problem}\n")
