"""Faults over sockets: their effect on responses, and the ways to plan and to read them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest
from aiohttp import ClientSession

from extender.kube.rest.http_transport import AiohttpTransport
from extender.kube.rest.transport import Request, TransportError
from fakeapi import FakeCluster
from fakeapi.apiserver.testing.fault_injection import PlanError
from fakeapi.testing.faults import FaultControl, fault
from tests.builders import manifest
from tests.commands import reprieve, serving

MAPS = "/api/v1/namespaces/default/configmaps"
JSON = {"Content-Type": "application/json"}
FAULTS = "/_fakeapi/faults"


@pytest.fixture
async def http(cluster: FakeCluster) -> AsyncIterator[ClientSession]:
    headers = {"User-Agent": "tester/1"}
    async with ClientSession(cluster.url, headers=headers) as session:
        yield session


def config_map_of_size(name: str, size: int = 1) -> dict[str, Any]:
    return manifest("ConfigMap", name, data={"k": "v" * size})


async def create(http: ClientSession, name: str) -> int:
    async with http.post(MAPS, data=orjson.dumps(config_map_of_size(name)), headers=JSON) as answer:
        return answer.status


async def raw_exchange(url: str, target: str) -> tuple[bytes, bool]:
    """Return the received bytes of a response, and whether the connection was reset."""
    host, port = url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(f"GET {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
    arrived, reset = b"", False
    try:
        async with asyncio.timeout(20):
            while chunk := await reader.read(65536):
                arrived += chunk
    except ConnectionResetError:
        reset = True
    finally:
        writer.close()
    return arrived, reset


class TestResponses:
    async def test_an_error_has_retry_time(self, cluster: FakeCluster, http: ClientSession) -> None:
        cluster.faults.plan(fault(503, retry_after=7).on("list"))
        async with http.get(MAPS) as answer:
            assert (answer.status, answer.headers["Retry-After"]) == (503, "7")
            assert orjson.loads(await answer.read())["reason"] == "ServiceUnavailable"

    async def test_a_conflict_is_that_of_a_stale_update(
        self, cluster: FakeCluster, http: ClientSession
    ) -> None:
        lease = {**manifest("Lease", "web"), "apiVersion": "coordination.k8s.io/v1"}
        cluster.load([lease])
        stale = {**lease, "metadata": {**lease["metadata"], "resourceVersion": "1"}}
        path = "/apis/coordination.k8s.io/v1/namespaces/default/leases/web"
        body = orjson.dumps(stale)
        async with http.put(path, data=body, headers=JSON) as answer:
            expected = await answer.json()
        cluster.faults.plan(fault(409).on(resources="leases").once())
        async with http.get(path) as answer:
            current = await answer.read()
        for status in (409, 200):
            async with http.put(path, data=current, headers=JSON) as answer:
                assert answer.status == status
                if status == 409:
                    assert await answer.json() == expected
        assert cluster.faults.injected == (1,)

    @pytest.mark.parametrize("when", ["before", "after"])
    async def test_a_drop_is_a_reset(self, cluster: FakeCluster, when: str) -> None:
        cluster.faults.plan(fault("drop", when=when).on("list"))
        assert await raw_exchange(cluster.url, MAPS) == (b"", True)

    @pytest.mark.parametrize("when", ["before", "after"])
    async def test_a_dropped_write_may_have_happened(
        self, cluster: FakeCluster, http: ClientSession, when: str
    ) -> None:
        cluster.faults.plan(fault("drop", when=when).on("create").once())
        with pytest.raises(aiohttp.ClientError):
            await create(http, "a")
        assert await create(http, "a") == {"before": 201, "after": 409}[when]

    @pytest.mark.parametrize("size", [1, 3_000_000])
    async def test_an_abrupt_cut_ends_the_document(self, cluster: FakeCluster, size: int) -> None:
        cluster.load([config_map_of_size("a", size)])
        whole, _ = await raw_exchange(cluster.url, f"{MAPS}/a?timeout=1")
        cluster.faults.plan(fault("cut").on("get"))
        half, reset = await raw_exchange(cluster.url, f"{MAPS}/a")
        body = whole.partition(b"\r\n\r\n")[2]
        head, _, rest = half.partition(b"\r\n\r\n")
        assert f"Content-Length: {len(body)}".encode() in head
        assert (rest, reset) == (body[: len(body) // 2], False)

    async def test_a_clean_cut_is_a_whole_answer_with_half_a_document(
        self, cluster: FakeCluster, http: ClientSession
    ) -> None:
        cluster.load([config_map_of_size("a", 1_000_000)])
        cluster.faults.plan(fault("cut", end="clean").on("get"))
        async with http.get(f"{MAPS}/a", headers={"Accept-Encoding": "gzip"}) as answer:
            body = await answer.read()
        assert (answer.status, answer.headers["Content-Encoding"]) == (200, "gzip")
        with pytest.raises(orjson.JSONDecodeError):
            orjson.loads(body)

    @pytest.mark.parametrize(
        ("rule", "expected"),
        [
            (fault("cut", after_frames=1), {"half a frame"}),
            (fault("cut", end="clean", after_frames=1), {"half a frame", "a complete end"}),
            (fault("drop", when="after", after_frames=1), {"a reset"}),
        ],
        ids=["abrupt", "clean", "drop"],
    )
    async def test_a_watch_breaks_after_a_frame(
        self, cluster: FakeCluster, rule: Any, expected: set[str]
    ) -> None:
        cluster.load([config_map_of_size("a"), config_map_of_size("b")])
        cluster.faults.plan(rule.on("watch"))
        arrived, reset = await raw_exchange(cluster.url, f"{MAPS}?watch=1")
        first, _, rest = arrived.partition(b"}\n")
        assert b'"name":"a"' in first
        found = {
            "half a frame": b'{"type":"ADDED","object":{' in rest,
            "a complete end": rest.endswith(b"\r\n0\r\n\r\n"),
            "a reset": reset,
        }
        assert {name for name, holds in found.items() if holds} == expected

    async def test_a_reset_reaches_clients_over_tls(self) -> None:
        async with FakeCluster(tls=True, run="none") as cluster:
            cluster.faults.plan(fault("drop", when="after").on("create").once())
            transport = AiohttpTransport(cluster._access.endpoint(cluster.url))
            creation = Request("POST", MAPS, body=orjson.dumps(config_map_of_size("a")))
            with pytest.raises(TransportError, match="reset"):
                await transport.request(creation)  # aiohttp itself would repeat a read
            assert (await transport.request(creation)).status == 409
            await transport.close()


class TestManagement:
    async def test_a_plan_is_made_read_and_ended(self, http: ClientSession) -> None:
        plan = b"faults: [{fault: 500, times: 1, match: {verbs: create}}]"
        async with http.post(FAULTS, data=plan) as answer:
            assert answer.status == 200
        assert [await create(http, name) for name in "abc"] == [500, 201, 201]
        expected = {
            "fault": 500,
            "times": 1,
            "match": {"verbs": "create"},
            "matched": 3,
            "injected": 1,
            "clients": {"tester/1": {"matched": 3, "injected": 1}},
        }
        async with http.get(FAULTS) as answer:
            assert orjson.loads(await answer.read()) == {"seed": 0, "faults": [expected]}
        async with http.delete(FAULTS) as answer:
            assert orjson.loads(await answer.read())["faults"] == [expected]
        async with http.get(FAULTS) as answer:
            assert orjson.loads(await answer.read())["faults"] == []

    async def test_the_log_of_requests_names_the_fault(
        self, cluster: FakeCluster, http: ClientSession
    ) -> None:
        cluster.faults.plan(fault(429).once())
        await create(http, "a")
        await create(http, "b")
        async with http.get("/_fakeapi/requests") as answer:
            logged = orjson.loads(await answer.read())["requests"]
        assert [(each["status"], each.get("fault")) for each in logged] == [
            (429, "429"),
            (201, None),
        ]

    async def test_an_invalid_plan_is_a_400_and_the_old_one_stays(
        self, cluster: FakeCluster, http: ClientSession
    ) -> None:
        cluster.faults.plan(fault(500))
        async with http.post(FAULTS, data=b'{"faults":[{"fault":"lag"}]}') as answer:
            status = orjson.loads(await answer.read())
        assert (answer.status, status["reason"]) == (400, "BadRequest")
        assert status["message"].startswith("faults[0].seconds: expected how long")
        assert [each["fault"] for each in cluster.faults.report()["faults"]] == [500]

    async def test_no_other_method_is_known(self, http: ClientSession) -> None:
        async with http.put(FAULTS, data=b"{}") as answer:
            assert answer.status == 405


@pytest.mark.parametrize("create", [FakeCluster.in_thread, FakeCluster.as_process])
def test_faults_of_clusters_in_threads_and_processes(create: Any) -> None:
    with create(run="none", seed=4) as cluster:
        faults: FaultControl = cluster.faults
        faults.plan(fault(500).on("create", "pods").times(3))
        assert (faults.report()["seed"], faults.injected) == (4, (0,))
        with pytest.raises(PlanError, match=r"\[0\].match.verbs: no verb 'x'"):
            faults.plan(fault(500).on("x"))
        faults.plan(fault("drop"), seed=9)
        assert faults.end()["seed"] == 9
        assert faults.report()["faults"] == []


class TestCommandLine:
    async def test_a_plan_is_read_from_a_file(self, tmp_path: Path) -> None:
        plan = tmp_path / "plan.yaml"
        plan.write_text(
            "faults: [{fault: 503, times: 1, match: {verbs: list, resources: nodes}}]\n"
        )
        async with (
            serving("fakeapi", "--faults", str(plan), "--seed", "3") as url,
            ClientSession(url) as session,
        ):
            found = []
            for _ in range(2):
                async with session.get("/api/v1/nodes") as answer:
                    found.append(answer.status)
            async with session.get(FAULTS) as answer:
                assert orjson.loads(await answer.read())["seed"] == 3
        assert found == [503, 200]

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            (
                "faults: [{fault: 500, match: {resources: podz}}]",
                "faults[0].match.resources: 'podz'",
            ),
            ("faults: [{fault: 500, times: 0}]", "faults[0].times: expected a whole number of at"),
            ("faults: [", "plan: "),
            (None, "No such file or directory"),
        ],
    )
    async def test_an_error_is_exit_code_2_and_one_line(
        self, tmp_path: Path, text: str | None, expected: str
    ) -> None:
        plan = tmp_path / "plan.yaml"
        if text is not None:
            plan.write_text(text)
        done = await reprieve("fakeapi", "--port", "0", "--faults", str(plan))
        assert (done.code, done.out) == (2, "")
        assert done.err.startswith(f"reprieve: --faults: {plan}: {expected}")
        assert done.err.count("\n") == 1

    @pytest.mark.slow
    async def test_a_plan_is_read_from_standard_input(self) -> None:
        done = await reprieve("fakeapi", "--port", "0", "--faults", "-", stdin=b"[]")
        assert done.err == "reprieve: --faults: standard input: plan: expected an object, got []\n"
