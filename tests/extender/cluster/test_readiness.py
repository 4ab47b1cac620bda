"""The extender is ready once all kinds are synced and fresh; staleness and its cause are shown."""

from __future__ import annotations

import asyncio
import random

import aiohttp
import pytest
from structlog.testing import capture_logs

from extender.cluster.readiness import Readiness, ReadinessLog
from extender.config.component_config import Config
from extender.kube.informers.reflector import Reflector, ReflectorContext
from extender.kube.rest.client import Client
from extender.kube.rest.clock import SystemClock
from extender.kube.rest.connection import connect
from extender.kube.rest.resources import PODS
from extender.kube.rest.transport import Transport
from extender.server.process import run_server
from fakeapi.testing.fake_cluster import FakeCluster
from tests.builders import node, node_json
from tests.extender.conftest import HandClock, InformerState, filter_body, live_cluster, served
from tests.extender.kube.conftest import (
    Lost,
    Reply,
    ScriptedApi,
    Silence,
    Stay,
    SteppedClock,
    a_list,
    a_refusal,
    a_watch,
    added,
    an_error,
    bookmark,
    thing,
)
from tests.extender.kube.informer_scripts import A1, RecordingStore, play
from tests.extender.secure_serving.raw_clients import wait_until


def readiness(seconds: float, **feeds: InformerState) -> Readiness:
    clock = HandClock()
    clock.seconds = seconds
    return Readiness(clock, feeds, stale_seconds=60)


CASES: dict[str, tuple[Readiness, str, list[str]]] = {
    "recent events": (readiness(60, pods=InformerState()), "", ["[+] pods synced"]),
    "one without events": (
        readiness(61, pods=InformerState(), nodes=InformerState(last_heard=30)),
        "no recent data for pods",
        ["[-] pods no data received for 61 s", "[+] nodes synced"],
    ),
    "one not listed yet": (
        readiness(61, pods=InformerState(synced=False, settled=False), nodes=InformerState()),
        "waiting for pods",
        ["[-] pods not synced", "[-] nodes no data received for 61 s"],
    ),
    "those whose requests fail": (
        readiness(
            61,
            pods=InformerState(
                synced=False, settled=False, last_error="403 Forbidden:\nno list", retry_at=63.4
            ),
            nodes=InformerState(last_error="connection refused", retry_at=60),
        ),
        "waiting for pods",
        [
            "[-] pods not synced: 403 Forbidden: no list; retry in 2 s",
            "[-] nodes no data received for 61 s: connection refused; retry in 0 s",
        ],
    ),
    "one whose watch is retried": (
        readiness(60, pods=InformerState(last_error="410 Expired", retry_at=90)),
        "",
        ["[+] pods synced: 410 Expired; retry in 30 s"],
    ),
    "one that need not be": (
        readiness(
            61,
            claims=InformerState(synced=False, refusal="v1 Claim rejected", last_error="404"),
        ),
        "",
        ["[+] claims excluded: v1 Claim rejected: pods that need it are not evaluated"],
    ),
}


@pytest.mark.parametrize(("state", "problem", "lines"), CASES.values(), ids=CASES)
def test_the_verbose_lines(state: Readiness, problem: str, lines: list[str]) -> None:
    assert state.problem() == problem
    assert list(state.verbose_lines()) == lines


def test_kinds_that_are_added_later_count_as_well() -> None:
    state = readiness(60, pods=InformerState())
    assert not state.problem()
    state.informers = {**state.informers, "quotas": InformerState(settled=False)}
    assert state.problem() == "waiting for quotas"


def test_warnings_are_shown_and_do_not_affect_readiness() -> None:
    state = readiness(0, pods=InformerState())
    state.warnings += [lambda: "certificate expired", lambda: ""]
    assert list(state.verbose_lines()) == ["[+] pods synced", "[!] certificate expired"]
    assert not state.problem()


def test_changes_of_readiness_are_logged_once() -> None:
    clock, pods = HandClock(), InformerState(settled=False)
    state = Readiness(clock, {"pods": pods}, stale_seconds=60)
    log = ReadinessLog(state)
    with capture_logs() as lines:
        for pods.settled, clock.seconds, pods.last_heard, state.stopping in (
            (False, 60, 0, False),
            (True, 60, 0, False),
            (True, 60, 0, False),
            (True, 61, 0, False),
            (True, 62, 0, False),
            (True, 62, 62, False),
            (True, 62, 62, True),
            (True, 123, 62, True),
        ):
            log.update()
    assert lines == [
        {"event": "ready", "log_level": "info"},
        {"event": "not_ready", "problem": "no recent data for pods", "log_level": "warning"},
        {"event": "ready", "log_level": "info"},
        {"event": "not_ready", "problem": "shutting down", "log_level": "info"},
    ]


async def test_a_process_logs_that_it_is_ready_and_that_it_stops() -> None:
    with capture_logs() as lines:
        async with FakeCluster() as cluster:
            transport, config = cluster.local_transport(), Config(port=0)
            async with run_server(config, transport, SystemClock(), random.Random(0)) as extender:
                await extender.wait_synced()
                await wait_until(lambda: any(line["event"] == "ready" for line in lines))
    changes = [each for each in lines if each["event"] in ("ready", "not_ready")]
    assert [each.get("problem", "") for each in changes] == ["", "shutting down"]


async def test_the_permission_that_an_account_lacks_is_named() -> None:
    async with FakeCluster(tls=True, rbac=True) as cluster, aiohttp.ClientSession() as session:
        transport = await connect(None, cluster.add_user("scheduler").kubeconfig_path)
        config, rng = Config(port=0), random.Random(0)
        async with run_server(config, transport, SystemClock(), rng) as extender:
            informers = extender.service.informers.values()
            await wait_until(lambda: all(each.last_error for each in informers))
            async with session.get(f"{extender.url}/readyz?verbose") as response:
                lines = (await response.text()).splitlines()
        await transport.close()
    pods = (
        '[-] pods not synced: 403 Forbidden: pods is forbidden: User "scheduler" cannot list '
        'resource "pods" in API group "" at the cluster scope; grant list and watch on pods; retry '
    )
    assert any(line.startswith(pods) for line in lines)
    assert (
        "[+] csinodes excluded: storage.k8s.io/v1 CSINode rejected by the server (403 Forbidden; "
        "grant list and watch on csinodes.storage.k8s.io): pods that need it are not evaluated"
    ) in lines


async def test_a_stale_service_is_not_ready_and_gives_no_decision() -> None:
    clock = HandClock()
    async with served(live_cluster(node("node-1")), clock) as extender:
        extender.service.readiness.informers = extender.service.informers = {
            "pods": InformerState()
        }
        clock.seconds = 181.0
        ready = await extender.get("/readyz")
        assert (ready.status, ready.text) == (503, "not ready: no recent data for pods\n")
        reply = await extender.post("/filter", filter_body(None, "node-1"))
        assert (reply.status, reply.text) == (503, "reprieve: stale: no recent data for pods\n")
        assert reply.headers["Retry-After"] == "1"
        assert (await extender.get("/livez")).status == 200
        figures = (await extender.get("/metrics")).text.splitlines()
        assert "reprieve_ready 0.0" in figures
        assert 'reprieve_cache_age_seconds{kind="pods"} 181.0' in figures


FAILURES: dict[str, tuple[Reply, str]] = {
    "connection refused": (Lost(), "connection refused"),
    "500": (a_refusal(500, "InternalError"), "500 InternalError: it is InternalError"),
    "410": (a_watch(an_error(410, "Expired")), "410 Expired: it is Expired"),
}


@pytest.mark.parametrize(("reply", "error"), FAILURES.values(), ids=FAILURES)
async def test_the_error_and_the_retry_of_a_watch_are_shown(reply: Reply, error: str) -> None:
    run = await play(a_list(2, A1), reply)
    state = Readiness(run.clock, {"pods": run.informer})
    retried_at = run.api.requests[2].at
    run.clock.elapsed = retried_at - 0.4
    (line,) = state.verbose_lines()
    assert line.startswith("[+] pods synced: ")
    assert error in line
    assert line.endswith("; retry in 0 s")
    assert run.informer.retry_at == retried_at


async def test_no_error_is_shown_after_recovery() -> None:
    run = await play(a_list(2, A1), Lost(), a_watch(bookmark(3)))
    assert [*Readiness(run.clock, {"pods": run.informer}).verbose_lines()] == ["[+] pods synced"]


class TestWatchesWithoutEvents:
    async def test_a_watch_without_events_is_opened_again_at_its_version(self) -> None:
        clock, store = SteppedClock(), RecordingStore()
        api = ScriptedApi(
            clock, a_list(2, A1), a_watch(bookmark(7), Silence()), a_watch(added("b", 8))
        )
        context = ReflectorContext(Client(api), clock, random.Random(0), silence_seconds=90)
        informer = Reflector(context, PODS, thing, store)
        following = asyncio.create_task(informer.run())
        await api.played.wait()
        following.cancel()
        assert store.changes == ["=a1", "+b8"]
        assert [each.request.idle_timeout for each in api.requests[1:3]] == [90, 90]
        assert api.requests[2].query["resourceVersion"] == "7"
        assert 90 <= api.requests[2].at - api.requests[1].at < 92

    async def test_an_opened_watch_counts_as_an_event(self) -> None:
        scene = await play(a_list(2, A1), Lost(), a_watch(Stay(60)))
        opened = scene.api.requests[2].at
        assert opened > 0
        assert scene.informer.last_heard - scene.clock.monotonic() == opened - scene.clock.elapsed

    async def test_watches_without_events_do_not_count_as_contact(self) -> None:
        silent = a_watch(Silence())
        scene = await play(a_list(2, A1), a_watch(bookmark(3), Silence()), silent, silent)
        assert len(scene.api.requests) == 5
        assert scene.informer.last_heard == scene.api.requests[1].at

    async def test_one_event_on_a_later_watch_is_contact(self) -> None:
        scene = await play(a_list(2, A1), a_watch(Silence()), a_watch(Stay(9), bookmark(3)))
        assert scene.informer.last_heard == scene.api.requests[2].at + 9


async def test_a_server_that_stops_answering_is_detected_on_a_real_socket() -> None:
    """Keep the connection open while the peer's process sends nothing."""
    watches = asyncio.Queue[str]()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while head := await reader.readuntil(b"\r\n\r\n"):
            target = head.split()[1].decode()
            if "watch=true" in target:
                writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
                watches.put_nowait(target)
            else:
                body = a_list(5).body
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)

    server = await asyncio.start_server(serve, "127.0.0.1")
    transport = await connect(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    clock = SteppedClock()
    context = ReflectorContext(Client(transport), clock, random.Random(0), silence_seconds=0.05)
    informer = Reflector(context, PODS, thing, RecordingStore())
    following = asyncio.create_task(informer.run())
    first, second = await watches.get(), await watches.get()
    assert "resourceVersion=5" in first
    assert "resourceVersion=5" in second
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)
    await transport.close()
    server.close()


async def test_shutdown_ends_readiness_first() -> None:
    async with FakeCluster() as cluster, aiohttp.ClientSession() as session:
        cluster.load([node_json("node-1")])
        waiting = Waiting()
        config = Config(port=0, shutdown_delay_seconds=5)
        transport: Transport = cluster.local_transport()
        stop = asyncio.Event()

        async def serve() -> None:
            async with run_server(config, transport, waiting, random.Random(0)) as extender:
                await extender.wait_synced()
                url.set_result(extender.url)
                await stop.wait()

        url = asyncio.get_running_loop().create_future()
        serving = asyncio.create_task(serve())
        base = await url
        async with session.get(f"{base}/readyz") as response:
            assert response.status == 200
        stop.set()
        await waiting.asked.wait()
        async with session.get(f"{base}/readyz") as response:
            assert (response.status, await response.text()) == (503, "not ready: shutting down\n")
        body = filter_body(None, "node-1")
        async with session.post(f"{base}/filter", data=body) as response:
            assert response.status == 200
        waiting.over.set()
        await serving
        with pytest.raises(aiohttp.ClientConnectionError):
            await session.get(f"{base}/readyz")


class Waiting(SystemClock):
    """The system's clock, but the five seconds of the shutdown end when the test ends them."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.over = asyncio.Event()

    async def sleep(self, seconds: float) -> None:
        if seconds == 5:
            self.asked.set()
            await self.over.wait()
        else:
            await super().sleep(seconds)
